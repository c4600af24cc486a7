package main

import (
	"slices"

	"go.uber.org/zap/zapcore"
)

// startErrors are what the collector logs of an error that it also returns. The command prints that one, once.
var startErrors = []string{"Failed to start component", "Failed to start extension", "error found during service initialization"}

type quietStart struct{ zapcore.Core }

func withoutStartErrors(core zapcore.Core) zapcore.Core { return quietStart{core} }

func (c quietStart) With(fields []zapcore.Field) zapcore.Core { return quietStart{c.Core.With(fields)} }

func (c quietStart) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if slices.Contains(startErrors, e.Message) {
		return ce
	}
	return c.Core.Check(e, ce)
}
