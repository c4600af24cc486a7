package perfetto

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func BenchmarkConsumeTraces(b *testing.B) {
	w := newWorkload(nil)
	var messages []ptrace.Traces
	for range 20 {
		messages = append(messages, w.message())
	}
	each := w.n / len(messages)
	var size counting
	out := New(&size)
	b.ReportAllocs()
	b.ResetTimer()
	slices := 0
	for b.Loop() {
		if err := out.ConsumeTraces(b.Context(), messages[rand.IntN(len(messages))]); err != nil {
			b.Fatal(err)
		}
		slices += each
	}
	require.NoError(b, out.Close())
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(slices), "ns/slice")
	b.ReportMetric(float64(size)/float64(slices), "B/slice")
}

// counting counts bytes.
type counting int

func (c *counting) Write(b []byte) (int, error) {
	*c += counting(len(b))
	return len(b), nil
}
