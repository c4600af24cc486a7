package collectives

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// Whatever the order of records, with losses, silent ranks and passing time: each record leaves once, with its origin, and nothing waits in the end.
func TestEachRecordOnce(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			ranks := 1 + rnd.IntN(5)
			bounded := false
			r := newRig(t, ranks, func(s *Settings) {
				s.HangTimeout = time.Duration(1+rnd.IntN(100)) * time.Millisecond
				bounded = rnd.IntN(3) == 0
				if bounded {
					s.MaxStateBytes = int64(rnd.IntN(20_000))
				}
			})
			counted, of, want := rnd.IntN(2) == 0, ranks*rnd.IntN(2), map[string]int{}
			next, ordinal := make([]int, ranks), make([]int, ranks)
			for range 50 * ranks {
				rank := rnd.IntN(ranks)
				s := says{input: rank, rank: rank, seq: next[rank], size: 4096, us: 100, start: int64(next[rank]) * 1000 * int64(1+rnd.IntN(2)), of: of, counted: counted}
				next[rank]++
				if rnd.IntN(10) == 0 {
					continue // lost
				}
				if counted {
					s.seq = ordinal[rank]
					ordinal[rank]++
				}
				var came []string
				for i := range rnd.IntN(3) {
					came = append(came, fmt.Sprintf("%d/%d line %d", rank, next[rank], i))
					want[came[i]]++
				}
				r.inputs[rank].Add(s.op(), came, r.now)
				if rnd.IntN(20) == 0 {
					r.pass(time.Duration(rnd.IntN(50)) * time.Millisecond)
				}
			}
			r.end()
			got := map[string]int{}
			for _, text := range r.came {
				got[text]++
			}
			assert.Equal(t, want, got)
			require.NoError(t, r.j.Leftover())
			for id, n := range byID(t, r) {
				assert.True(t, n == 1 || bounded, "each span has an id of its own, unless what it had is forgotten: %v %v of %d", n, id, of)
			}
		})
	}
}

type spanID struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// byID counts the spans of all collectives, and checks that a second writing is equal.
func byID(tb testing.TB, r *rig) map[spanID]int {
	tb.Helper()
	write := func() ptrace.Traces {
		out := spans.NewBatch("scope", "version")
		AddSpans(out, "service", r.left, func(int) {})
		return out.Traces()
	}
	td := write()
	var m ptrace.ProtoMarshaler
	one, err := m.MarshalTraces(td)
	require.NoError(tb, err)
	two, err := m.MarshalTraces(write())
	require.NoError(tb, err)
	assert.Equal(tb, one, two)
	n := map[spanID]int{}
	for _, rs := range td.ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			n[spanID{s.TraceID(), s.SpanID()}]++
		}
	}
	return n
}

// The interleaving of the ranks' records changes no id.
func TestIDsInAnyOrder(t *testing.T) {
	const ranks, collectives = 4, 20
	var want map[spanID]int
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		r := newRig(t, ranks, nil)
		for next := make([]int, ranks); slices.Min(next) < collectives; {
			if rank := rnd.IntN(ranks); next[rank] < collectives {
				r.say(says{input: rank, rank: rank, seq: next[rank], size: 4096, us: int64(100 + rank), start: int64(next[rank]) * 1000, of: ranks})
				next[rank]++
			}
		}
		require.Len(t, r.left, collectives)
		got := byID(t, r)
		if want == nil {
			want = got
		}
		assert.Equal(t, want, got)
	}
}

// A late record is below the root that left, whichever of the two names a trace.
func TestLateID(t *testing.T) {
	for name, c := range map[string]struct{ left, tooLate, want string }{
		"none": {}, "both": {"a", "a", "a"}, "the collective": {"a", "", "a"}, "the record": {left: "", tooLate: "a"}, "another": {"a", "b", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, nil)
			r.both(0)
			first, second := numbered(0, 1), numbered(1, 1)
			first.id, second.id = c.left, c.tooLate
			r.say(first, numbered(0, 2), numbered(1, 2), second)
			require.Contains(t, r.lines[len(r.lines)-1], "1: late")
			root, tooLate := r.left[1], r.left[len(r.left)-1]
			assert.Equal(t, c.want != "", root.byID)
			assert.Equal(t, root.joinBy(), tooLate.joinBy())
			if c.want != "" {
				assert.Equal(t, spans.TraceID("run", []byte(c.want)), root.trace)
			}
			ids := byID(t, r)
			assert.Contains(t, ids, spanID{root.trace, root.id})
			assert.Equal(t, spanID{root.trace, root.id}, spanID{tooLate.trace, tooLate.id}, "the parent of its rank")
			for id, n := range ids {
				assert.Equal(t, 1, n, id)
			}
		})
	}
}

// A rank that comes late for the first time, as from a host whose collector was away, is named like the others.
func TestLateName(t *testing.T) {
	r := newRig(t, 2, remote)
	r.say(numbered(0, 0), numbered(0, 1))
	r.pass(time.Hour)
	r.say(numbered(1, 0))
	require.Contains(t, r.lines[len(r.lines)-1], "0: late")
	root, tooLate := r.left[0], r.left[len(r.left)-1]
	assert.Equal(t, spans.NCCLRankName(0, root.parts[0].src.host), root.parts[0].name)
	assert.Equal(t, spans.NCCLRankName(1, tooLate.parts[0].src.host), tooLate.parts[0].name)
}

// Origins are taken once, in order, and their slots are recycled.
func TestHolds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var h origins[int]
	want, n := map[slot][]int{}, 0
	for range 10_000 {
		if rnd.IntN(2) == 0 && len(want) < 100 {
			var put []int
			for range 1 + rnd.IntN(3) {
				n++
				put = append(put, n)
			}
			want[h.put(put)] = put
			continue
		}
		for at, put := range want {
			require.Equal(t, put, h.take(nil, at))
			delete(want, at)
			break
		}
	}
	assert.LessOrEqual(t, len(h.slots), 300)
	assert.Equal(t, noSlot, h.put(nil))
	assert.Empty(t, h.take(nil, noSlot))
	for at := range want {
		h.take(nil, at)
	}
	assert.Zero(t, h.used)
}

// Where much was held, the values are forgotten together with their room.
func TestHoldsForget(t *testing.T) {
	var h origins[int]
	var all []slot
	for i := range maxIdle + 1 {
		all = append(all, h.put([]int{i}))
	}
	for _, at := range all {
		h.take(nil, at)
	}
	assert.Empty(t, h.slots)
}

// A late record joins the trace of its collective, also where a number counts all operations of the communicator.
func TestLateOfAll(t *testing.T) {
	r := newRig(t, 2, nil)
	add := func(rank, seq int, kind op.Kind) {
		o := numbered(rank, seq).op()
		o.Kind, o.SeqOfAll = kind, true
		r.inputs[rank].Add(o, []string{"line"}, r.now)
	}
	add(0, 0, op.AllGather)
	add(1, 0, op.AllGather)
	add(0, 1, op.AllReduce)
	add(0, 2, op.AllGather)
	add(1, 2, op.AllGather)
	add(1, 1, op.AllReduce)
	require.Contains(t, r.lines[len(r.lines)-1], "1: late")
	root, tooLate := r.left[1], r.left[len(r.left)-1]
	assert.Equal(t, spanID{root.trace, root.id}, spanID{tooLate.trace, tooLate.id})
}
