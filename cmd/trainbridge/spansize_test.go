package main

import (
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/test/gen/commands"
)

// TestSpanSize bounds the size of a span behind the receiver and train_perf, its share of the resources included: values that a log repeats are encoded once.
func TestSpanSize(t *testing.T) {
	for name, tt := range map[string]struct {
		receiver string
		most     int // By per span, as OTLP without compression
		out      string
		gen      []string
	}{
		"perf_monitor": {"flagscale", 350, "logs", []string{"flagscale", "--interval", "1", "--steps", "2000"}},
		"megatron": {
			"flagscale", 600, "x.log", []string{"megatron", "--log-interval", "1", "--eval-interval", "0", "--timers=false", "--prefix", "none", "--steps", "2000"},
		},
		"jsonl": {"train_log", 310, "x.log", []string{"jsonl", "--fields", "full", "--steps", "2000"}},
		"tq":    {"tq_trace", 390, "x.log", []string{"tq", "--prefix", "python", "--workers", "1", "--concurrency", "4", "--batches", "20"}},
		"zmq":   {"zmq_rpc", 130, "x.log", []string{"zmq", "--no-footer", "--lines", "2000"}},
		"nccl":  {"nccl", 200, "logs", []string{"nccl", "--ranks", "8", "--nodes", "1", "--ranks-per-file", "8", "--collectives-per-step", "4", "--steps", "100"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), tt.out)
			cmd := commands.New()
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			cmd.SetArgs(append(tt.gen, "--out", out))
			require.NoError(t, cmd.ExecuteContext(t.Context()))
			size, n, resources := 0, 0, 0
			var sizer ptrace.ProtoMarshaler
			for _, td := range judgedSpans(t, tt.receiver, out) {
				size, n, resources = size+sizer.TracesSize(td), n+td.SpanCount(), resources+td.ResourceSpans().Len()
			}
			t.Logf("%s: %d B per span of %d, of %d resources", name, size/n, n, resources)
			assert.LessOrEqual(t, size/n, tt.most)
		})
	}
}

// judgedSpans are spans of a log behind a receiver and train_perf, at least a thousand.
func judgedSpans(t *testing.T, receiver, log string) []ptrace.Traces {
	t.Helper()
	factories, err := components()
	require.NoError(t, err)
	sink := new(consumertest.TracesSink)
	judge := factories.Processors[component.MustNewType("train_perf")]
	next, err := judge.CreateTraces(t.Context(), processortest.NewNopSettings(judge.Type()), judge.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	read := factories.Receivers[component.MustNewType(receiver)]
	cfg := read.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"include": []any{log, log + "/**/*.log"}, "run_id": "r", "poll_interval": "10ms"}).Unmarshal(cfg))
	r, err := read.CreateTraces(t.Context(), receivertest.NewNopSettings(read.Type()), cfg, next)
	require.NoError(t, err)
	require.NoError(t, next.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return sink.SpanCount() > 1000 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	require.NoError(t, next.Shutdown(t.Context()))
	return sink.AllTraces()
}
