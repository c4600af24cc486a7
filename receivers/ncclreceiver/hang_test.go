package ncclreceiver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// live is a receiver that follows the logs of some ranks, with an injected clock.
type live struct {
	t     *testing.T
	dir   string
	cfg   *Config
	tl    *tail.Tailer
	ahead atomic.Int64 // of the clock
	asked atomic.Int64
	lines int64

	mu   sync.Mutex
	down bool
	got  filereceivertest.Result
}

func newLive(t *testing.T, change func(*Config), before ...record) *live {
	t.Helper()
	l := &live{t: t, dir: t.TempDir()}
	l.say(before...)
	l.cfg = config(l.dir + "/*")
	l.cfg.PollInterval = 10 * time.Millisecond
	if change != nil {
		change(l.cfg)
	}
	next, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.down {
			return context.DeadlineExceeded
		}
		return l.got.Traces.ConsumeTraces(ctx, td)
	})
	require.NoError(t, err)
	var parts filereceiver.Parts
	mk := func(r *filereceiver.Receiver, c component.Config) (filereceiver.Parts, error) {
		var err error
		parts, err = newParts(r, c)
		return parts, err
	}
	_, err = filereceiver.Prepare(receivertest.NewNopSettings(metadata.Type), l.cfg, mk, next, consumertest.NewNop())
	require.NoError(t, err)
	l.tl, err = tail.New(parts.Tail, tail.Settings{
		ID: component.NewID(metadata.Type), Kind: component.KindReceiver, Telemetry: componenttest.NewNopTelemetrySettings(), HoldTimeout: parts.HoldTimeout,
		Joint: parts.Joint, InTurn: parts.InTurn,
		Clock: func() time.Time { l.asked.Add(1); return time.Now().Add(time.Duration(l.ahead.Load())) },
	}, parts.NewHandler)
	require.NoError(t, err)
	require.NoError(t, l.tl.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, l.tl.Shutdown(context.Background()))
		parts.Shutdown()
	})
	return l
}

// say appends a record to its rank's log.
func (l *live) say(records ...record) {
	l.t.Helper()
	for _, r := range records {
		f, err := os.OpenFile(filepath.Join(l.dir, fmt.Sprintf("rank%d.log", r.rank)), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(l.t, err)
		_, err = f.WriteString(r.String() + "\n")
		require.NoError(l.t, err)
		require.NoError(l.t, f.Close())
		l.lines++
	}
}

// read waits until everything in the logs is read.
func (l *live) read() {
	l.t.Helper()
	wait(l.t, "all lines", func() bool { return l.tl.Counts().Lines == l.lines })
}

// pass lets time pass.
func (l *live) pass(d time.Duration) {
	l.t.Helper()
	l.ahead.Add(int64(d))
	before := l.asked.Load()
	wait(l.t, "looks at the files", func() bool { return l.asked.Load() > before+20 })
}

func (l *live) do(what func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what()
}

// roots waits for n collectives.
func (l *live) roots(n int) map[string]ptrace.Span {
	l.t.Helper()
	var out map[string]ptrace.Span
	wait(l.t, fmt.Sprint(n, " collectives"), func() bool {
		l.do(func() { out = roots(&l.got) })
		return len(out) >= n
	})
	require.Len(l.t, out, n)
	return out
}

// A rank missing at the wavefront is named after hang_timeout, not before; then no collective waits for the rank any more; after its return, the rank counts
// again.
func TestHang(t *testing.T) {
	l := newLive(t, nil)
	all := func(sn int, but int) {
		for rank := range 4 {
			if rank != but {
				l.say(record{host: "n", rank: rank, of: 4, sn: sn, size: 4096, start: int64(sn)*1000 + 1, us: 100})
			}
		}
	}
	all(0, -1)
	all(1, -1)
	l.roots(2)
	all(2, 3) // rank 3 hangs
	l.read()
	l.pass(l.cfg.HangTimeout / 2)
	l.roots(2)
	l.pass(l.cfg.HangTimeout)
	s := l.roots(3)["AllReduce 2"]
	assert.Equal(t, "true", attr(s, spans.AttrNCCLHang))
	assert.Equal(t, "[3]", attr(s, spans.AttrNCCLRanksMissing))
	assert.Equal(t, spans.NCCLIncompleteTimeout, attr(s, spans.AttrIncompleteReason))
	assert.InDelta(t, l.cfg.HangTimeout.Seconds()*5/4, number(t, s, spans.AttrNCCLWaited), 1e-9)
	assert.Equal(t, ptrace.StatusCodeError, s.Status().Code())

	all(3, 3) // the others continue without it, as after an abort
	s = l.roots(4)["AllReduce 3"]
	assert.Equal(t, spans.NCCLIncompleteGone, attr(s, spans.AttrIncompleteReason))
	assert.Equal(t, "[3]", attr(s, spans.AttrNCCLRanksMissing))
	assert.Empty(t, attr(s, spans.AttrNCCLHang))

	all(4, 2) // back again; another is missing
	l.read()
	l.pass(l.cfg.HangTimeout / 2)
	l.roots(4)
	all(5, -1)
	both := l.roots(6)
	assert.Equal(t, "[2]", attr(both["AllReduce 4"], spans.AttrNCCLRanksMissing))
	assert.Equal(t, spans.NCCLIncompleteGap, attr(both["AllReduce 4"], spans.AttrIncompleteReason))
	assert.Empty(t, attr(both["AllReduce 5"], spans.AttrIncompleteReason))

	l.say(record{host: "n", rank: 3, of: 4, sn: 2, size: 4096, start: 2001, us: 100}) // too late
	wait(t, "its span", func() bool {
		found := false
		l.do(func() {
			for _, s := range rankSpans(&l.got) {
				found = found || s.ParentSpanID() == both["AllReduce 2"].SpanID() && attr(s, spans.AttrNCCLCommRank) == "3"
			}
		})
		return found
	})
	l.do(func() { sound(t, &l.got) })
}

// Several operations wait at once: only the last of each sequence is where the ranks hang.
func TestHangOfSeveral(t *testing.T) {
	l := newLive(t, nil)
	for sn := range 3 {
		for rank := range 3 {
			if sn == 0 || rank > 0 {
				l.say(record{host: "n", rank: rank, of: 3, sn: sn, size: 4096, start: int64(sn)*1000 + 1, us: 100})
				l.say(record{host: "n", rank: rank, of: 3, coll: "AllGather", sn: sn, size: 4096, start: int64(sn)*1000 + 501, us: 100})
			}
		}
	}
	l.read()
	l.pass(2 * l.cfg.HangTimeout)
	for name, s := range l.roots(6) {
		switch name {
		case "AllReduce 0", "AllGather 0":
			assert.Empty(t, attr(s, spans.AttrNCCLRanksMissing), name)
		default:
			assert.Equal(t, "[0]", attr(s, spans.AttrNCCLRanksMissing), name)
			assert.Equal(t, name == "AllReduce 2" || name == "AllGather 2", attr(s, spans.AttrNCCLHang) == "true", name)
		}
	}
}

// While the next component is down, reading pauses: unread records are not missing.
func TestPauseIsNoHang(t *testing.T) {
	l := newLive(t, func(c *Config) { c.MaxInFlightBytes = 64 << 10 })
	l.do(func() { l.down = true })
	const n = 600
	for sn := range n {
		for rank := range 2 {
			l.say(record{host: "n", rank: rank, of: 2, sn: sn, size: 4096, start: int64(sn)*1000 + 1, us: 100})
		}
	}
	wait(t, "a pause", func() bool {
		before, asked := l.tl.Counts().Lines, l.asked.Load()
		wait(t, "looks at the files", func() bool { return l.asked.Load() > asked+50 })
		return before > 0 && l.tl.Counts().Lines == before
	})
	require.Less(t, l.tl.Counts().Lines, l.lines, "not all is read")
	l.pass(10 * l.cfg.HangTimeout)
	l.do(func() { l.down = false })
	for name, s := range l.roots(n) {
		assert.Empty(t, attr(s, spans.AttrIncompleteReason), name)
		assert.Empty(t, attr(s, spans.AttrNCCLHang), name)
	}
}

// Without the number of ranks in a log, collectives wait for the streams without a record so far. When the last of these streams turns out to have another
// subject, the waiting collectives leave, with the next one.
func TestSilentStream(t *testing.T) {
	l := newLive(t, nil)
	other, err := os.Create(filepath.Join(l.dir, "other.log"))
	require.NoError(t, err)
	defer other.Close()
	const n = 100
	for sn := range n {
		for rank := range 2 {
			l.say(record{host: "n", rank: rank, sn: sn, size: 4096, start: int64(sn)*1000 + 1, us: 100})
		}
	}
	l.read()
	l.roots(0)
	for range maxQuiet {
		_, err := other.WriteString("# nothing to do with it\n")
		require.NoError(t, err)
	}
	l.lines += maxQuiet
	l.read()
	for sn := range n {
		for rank := range 2 {
			l.say(record{host: "n", comm: "0xdef", rank: rank, of: 2, sn: sn, size: 4096, start: int64(sn)*1000 + 1, us: 100})
		}
	}
	wait(t, "all", func() bool {
		all := 0
		l.do(func() { all = len(rankSpans(&l.got)) })
		return all == 4*n
	})
	l.do(func() {
		for _, s := range l.got.All("AllReduce") {
			assert.Equal(t, "2", attr(s, spans.AttrNCCLRanks))
		}
	})
}

// All logs that exist at the start are known before the first one is read: without the number of ranks in a log, no rank is left out.
func TestStart(t *testing.T) {
	const ranks = 200
	var records []record
	for rank := range ranks {
		for sn := range 3 {
			records = append(records, record{host: "n", rank: rank, sn: sn, size: 4096, start: int64(sn)*1000 + 1, us: 100})
		}
	}
	l := newLive(t, nil, records...)
	for name, s := range l.roots(3) {
		assert.InDelta(t, ranks, number(t, s, spans.AttrNCCLRanks), 0, name)
	}
}

// Ranks with logs elsewhere are waited for once.
func TestRanksElsewhere(t *testing.T) {
	l := newLive(t, nil)
	say := func(sn int) {
		for rank := range 2 {
			l.say(record{host: "n", rank: rank, of: 16, sn: sn, size: 4096, start: int64(sn)*1000 + 1, us: 100})
		}
	}
	say(0)
	l.read()
	l.roots(0)
	l.pass(2 * l.cfg.HangTimeout)
	l.pass(time.Minute) // each log is looked through for what is given up every 30 s, one perhaps just before the time passed
	l.roots(1)
	say(1)
	for name, s := range l.roots(2) {
		assert.Empty(t, attr(s, spans.AttrNCCLHang), name)
		assert.Empty(t, attr(s, spans.AttrIncompleteReason), name)
	}
}
