package report

import (
	"io"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/test/gen/train"
)

// The cost of a report of a log, from its bytes to its text. cpu-ns/line counts on a busy machine.
func BenchmarkReport(b *testing.B) {
	const steps = 40_000
	for _, format := range []string{"jsonl", "megatron"} {
		b.Run(format, func(b *testing.B) {
			opt := train.DefaultOptions(format)
			opt.Out, opt.Truth, opt.Steps = filepath.Join(b.TempDir(), "train.log"), "none", steps
			opt.Start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
			_, err := train.Generate(b.Context(), opt, io.Discard)
			require.NoError(b, err)
			b.ReportAllocs()
			from := cpu(b)
			for b.Loop() {
				cmd := NewCommand()
				cmd.SetOut(io.Discard)
				cmd.SetErr(io.Discard)
				cmd.SetArgs([]string{opt.Out})
				require.NoError(b, cmd.ExecuteContext(b.Context()))
			}
			b.ReportMetric(float64(cpu(b)-from)/float64(b.N)/steps, "cpu-ns/line")
		})
	}
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
