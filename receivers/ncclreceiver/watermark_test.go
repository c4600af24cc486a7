package ncclreceiver

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// After partitions were added, records of a log's other communicators may be in a new partition. A watermark then says that collectives may have been sent
// elsewhere, until all agents must have learned of the partitions. No watermark without that word reaches records which came after the change.
func TestPartitionsAdded(t *testing.T) {
	var mu sync.Mutex
	var words []word
	c := newCluster(t, 1)
	g := c.start(func(_ context.Context, td ptrace.Traces) error {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range filereceivertest.Spans([]ptrace.Traces{td}, spans.SpanNCCLWatermark) {
			m := s.Attributes().AsRaw()
			words = append(words, word{m[spans.AttrNCCLWatermarkUntil].(int64), m[spans.AttrNCCLWatermarkSent].(int64), m[spans.AttrNCCLWatermarkFirst] == true})
		}
		return nil
	}, nil)
	said := func(what string, is func(w word) bool) {
		wait(t, what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(words) > 0 && is(words[len(words)-1])
		})
	}
	start := func(seq int64) int64 { return 1_781_000_000_000_000_000 + seq*1_000_000 }
	c.says(0, ranked(0, 2, 0, 1), ranked(1, 2, 0, 1))
	said("the first", func(w word) bool { return w.until == start(1) && !w.first })

	made, err := kadm.NewClient(c.client).CreatePartitions(t.Context(), 2, "otlp_nccl")
	require.NoError(t, err)
	require.NoError(t, made.Error())
	c.says(0, ranked(0, 2, 2, 3), ranked(1, 2, 2, 3))
	said("the change", func(w word) bool { return w.until == start(3) && w.sent >= w.until && w.first })

	mu.Lock()
	for _, w := range words {
		assert.False(t, w.until > start(1) && !w.first, w)
	}
	mu.Unlock()
	g.ahead(moving)
	c.says(0, ranked(0, 2, 4), ranked(1, 2, 4))
	said("the end of the change", func(w word) bool { return w.until == start(4) && !w.first })
	g.stop()
	assert.GreaterOrEqual(t, moving, 10*time.Minute, "metadata::refresh_interval of the kafka exporter")
}
