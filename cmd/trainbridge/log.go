package main

import (
	"slices"
	"strings"

	"go.uber.org/zap/zapcore"
)

// startErrors are log messages about errors that the collector also returns. The command prints the returned error, once.
var startErrors = []string{"Failed to start component", "Failed to start extension", "error found during service initialization"}

// sameEndpoint begins a warning of health_check about its endpoint outside 'http'. The endpoint works there with the gate and without.
const sameEndpoint = "Feature gate enabled but using legacy config format. "

// chatter is the messages of the collector and its components about each step of a start and a stop without errors.
var chatter = []string{
	"Internal trace telemetry disabled", "Starting extensions...", "Extension is starting...", "Extension started.", "Starting health_check extension",
	"Health Check state change",
	"Starting GRPC server", "Starting HTTP server", "Context done, terminating process", "Stopping extensions...", "Starting up", "Setting up own telemetry...",
}

// fieldID is one of the fields with which the collector marks each line of a component.
const fieldID = "otelcol.component.id"

// plainLog is a log for users: without the messages that Check leaves out, and with the component's id in place of the collector's several fields about the
// component.
type plainLog struct {
	zapcore.Core
	id string // of the component that logs; "": of the collector itself
}

func plain(core zapcore.Core) zapcore.Core { return plainLog{Core: core} }

// With implements zapcore.Core: the log of a component, or one with further fields. The collector's fields about a component come as one inlined object; of
// them the id is kept.
func (c plainLog) With(fields []zapcore.Field) zapcore.Core {
	id, others := c.id, []zapcore.Field(nil)
	for _, f := range fields {
		if f.Type == zapcore.InlineMarshalerType {
			in := zapcore.NewMapObjectEncoder()
			f.AddTo(in)
			if name, ok := in.Fields[fieldID].(string); ok {
				id = name
				continue
			}
		}
		others = append(others, f)
	}
	return plainLog{c.Core.With(others), id}
}

// Check implements zapcore.Core. It leaves out errors that the command prints at its end, the warning of health_check, and the chatter of a normal start and
// stop.
func (c plainLog) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	repeated := slices.Contains(startErrors, e.Message) || strings.HasPrefix(e.Message, sameEndpoint)
	if repeated || e.Level == zapcore.InfoLevel && slices.Contains(chatter, e.Message) {
		return ce
	}
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write implements zapcore.Core. A message that does not name its component begins its fields with the component's id.
func (c plainLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if c.id != "" && !strings.Contains(e.Message, c.id) {
		fields = append([]zapcore.Field{{Key: fieldID, Type: zapcore.StringType, String: c.id}}, fields...)
	}
	return c.Core.Write(e, fields)
}
