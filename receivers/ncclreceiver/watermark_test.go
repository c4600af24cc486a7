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

	"github.com/trainbridge/trainbridge/internal/collectives/partial"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// said is the watermarks that a gateway has sent.
type said struct {
	mu    sync.Mutex
	words []word
}

func (s *said) take(_ context.Context, td ptrace.Traces) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range filereceivertest.Spans([]ptrace.Traces{td}, spans.SpanNCCLWatermark) {
		s.words = append(s.words, wordOf(span.Attributes().AsRaw()))
	}
	return nil
}

// wait waits for a last watermark.
func (s *said) wait(t *testing.T, what string, is func(w word) bool) {
	t.Helper()
	wait(t, what, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.words) > 0 && is(s.words[len(s.words)-1])
	})
}

func (s *said) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.words)
}

// start is the start of a collective of ranked, Unix ns.
func start(seq int64) int64 { return 1_781_000_000_000_000_000 + seq*1_000_000 }

// A run whose agents were silent while a gateway took the partition over, as during an outage of the brokers, is no new run: its collectives of before went to
// another gateway.
func TestTakenOverInSilence(t *testing.T) {
	c, before, after := newCluster(t, 1), new(said), new(said)
	g := c.start(before.take, nil)
	c.says(0, ranked(0, 2, 0, 1), ranked(1, 2, 0, 1), heartbeatOf(0), heartbeatOf(1))
	before.wait(t, "the first", func(w word) bool { return w.until == start(1) })
	wait(t, "all is committed", func() bool { return c.committed(0).Begin == c.sent })
	g.stop()
	g = c.start(after.take, nil)
	other := ranked(0, 2, 0)
	other.From.Run = "other"
	c.says(0, other)
	wait(t, "the partition is read", func() bool { return c.committed(0).Head == c.sent }) // a run first read after the silence is a new one
	g.ahead(time.Minute)
	c.says(0, ranked(0, 2, 2, 3), ranked(1, 2, 2, 3), heartbeatOf(0), heartbeatOf(1))
	after.wait(t, "what went elsewhere", func(w word) bool { return w.until == start(3) && w.sent >= start(1) })
	g.stop()
	for _, w := range after.words {
		assert.False(t, w.first, w)
	}
}

// After partitions were added, records of a log's other communicators may be in a new partition. A watermark then says that collectives may have been sent
// elsewhere, until all agents must have learned of the partitions. No watermark without that word reaches records which came after the change.
func TestPartitionsAdded(t *testing.T) {
	c, out := newCluster(t, 1), new(said)
	g := c.start(out.take, nil)
	c.says(0, ranked(0, 2, 0, 1), ranked(1, 2, 0, 1), heartbeatOf(0), heartbeatOf(1))
	out.wait(t, "the first", func(w word) bool { return w.until == start(1) && !w.first })

	made, err := kadm.NewClient(c.client).CreatePartitions(t.Context(), 2, "otlp_nccl")
	require.NoError(t, err)
	require.NoError(t, made.Error())
	c.says(0, ranked(0, 2, 2, 3), ranked(1, 2, 2, 3), heartbeatOf(0), heartbeatOf(1))
	out.wait(t, "the change", func(w word) bool { return w.until == start(3) && w.sent >= w.until && w.first })

	out.mu.Lock()
	for _, w := range out.words {
		assert.False(t, w.until > start(1) && !w.first, w)
	}
	out.mu.Unlock()
	g.ahead(moving)
	c.says(0, ranked(0, 2, 4), ranked(1, 2, 4), heartbeatOf(0), heartbeatOf(1))
	out.wait(t, "the end of the change", func(w word) bool { return w.until == start(4) && !w.first })
	g.stop()
	assert.GreaterOrEqual(t, moving, 10*time.Minute, "metadata::refresh_interval of the kafka exporter")
}

// The spans of an agent's batch, one for each communicator, come by messages of their own. If the brokers fail between two of them, those that came do not say
// that the others did: the watermark waits for the agent's next batch, or for a heartbeat.
func TestBatchInParts(t *testing.T) {
	for name, next := range map[string]func(rank int) *partial.Stretch{
		"the next batch": func(rank int) *partial.Stretch {
			s := ranked(rank, 2, 5)
			s.ReadTo = start(4)
			return s
		},
		"a heartbeat": heartbeatOf,
	} {
		t.Run(name, func(t *testing.T) {
			c, out := newCluster(t, 1), new(said)
			g := c.start(out.take, nil)
			c.says(0, ranked(0, 2, 0, 1), ranked(1, 2, 0, 1), heartbeatOf(0), heartbeatOf(1))
			out.wait(t, "the first", func(w word) bool { return w.until == start(1) })
			of := func(comm string, rank, seq int) *partial.Stretch {
				s := rankedIn(comm, rank, 2, seq)
				s.ReadTo = start(1)
				return s
			}
			c.says(0, of("0xabc", 0, 4), of("0xabc", 1, 4)) // the records of another communicator, which began before, are under way
			out.wait(t, "what was sent", func(w word) bool { return w.sent > start(4) })
			for range 3 { // the watermarks of three more looks at the topic
				said := out.count()
				g.ahead(remindEvery)
				out.wait(t, "another", func(w word) bool { return len(out.words) > said })
			}
			out.mu.Lock()
			for _, w := range out.words {
				assert.LessOrEqual(t, w.until, start(1))
			}
			out.mu.Unlock()
			c.says(0, of("0xdef", 0, 3), of("0xdef", 1, 3), next(0), next(1))
			out.wait(t, "the rest", func(w word) bool { return w.until == start(4) })
			g.stop()
		})
	}
}
