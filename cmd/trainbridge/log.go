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

// plainLog leaves out repetitive messages, and all names of a component but its id, which precedes messages without a name.
type plainLog struct {
	zapcore.Core
	id string // of the component
}

func plain(core zapcore.Core) zapcore.Core { return plainLog{Core: core} }

func (c plainLog) With(fields []zapcore.Field) zapcore.Core {
	id, others := c.id, []zapcore.Field(nil)
	for _, f := range fields {
		if f.Type == zapcore.InlineMarshalerType { // the collector's mark of a component's logger
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

func (c plainLog) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if slices.Contains(startErrors, e.Message) || strings.HasPrefix(e.Message, sameEndpoint) ||
		e.Level == zapcore.InfoLevel && slices.Contains(chatter, e.Message) {
		return ce
	}
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c plainLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if c.id != "" && !strings.Contains(e.Message, c.id) {
		fields = append([]zapcore.Field{{Key: fieldID, Type: zapcore.StringType, String: c.id}}, fields...)
	}
	return c.Core.Write(e, fields)
}
