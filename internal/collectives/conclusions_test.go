package collectives

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// concluded are the attributes of each collective that depend on earlier ones.
func (r *rig) concluded() (all map[uint64]map[string]any, said int) {
	all = make(map[uint64]map[string]any)
	for _, c := range r.left {
		m := pcommon.NewMap()
		c.describe(m)
		m.RemoveIf(func(key string, _ pcommon.Value) bool {
			return !strings.HasPrefix(key, "nccl.straggler") && !strings.HasPrefix(key, "nccl.link") &&
				key != spans.AttrNCCLBandwidthBaseline && key != spans.AttrNCCLBandwidthDeviation
		})
		said += min(m.Len(), 1)
		all[c.seq] = m.AsRaw()
	}
	return all, said
}

// After a crash the next process repeats the judgement of collectives already sent, even empty ones, and judges later ones by the collectives read since.
// Without the stored judgements the results differ.
func TestConclusionsAfterACrash(t *testing.T) {
	const from, crash, end = 70, 160, 320
	job := func(r *rig, from, to int) {
		rnd := rand.New(rand.NewPCG(1, 2))
		for seq := range to {
			a, b := numbered(0, seq), numbered(1, seq)
			a.start, b.start = int64(seq)*2000, int64(seq)*2000
			a.us, b.us = 100+rnd.Int64N(10), 100+rnd.Int64N(10)
			switch {
			case seq%50 > 40 && seq%3 == 0: // a slow link
				a.us, b.us = 400+rnd.Int64N(200), 400+rnd.Int64N(200)
			case seq > 90 && seq < 200: // rank 1 comes late
				a.us += 300 + rnd.Int64N(50)
				b.start += 300
			}
			if seq >= from {
				r.say(a, b)
			}
		}
	}
	first := newRig(t, 2, func(s *Settings) { s.Conclusions = new(Conclusions) })
	job(first, 0, crash)
	want, said := first.concluded()
	assert.Greater(t, said, 10)
	stored, n := first.j.set.Conclusions.Fresh()
	require.Equal(t, crash, n)

	second := new(Conclusions)
	assert.Equal(t, n, second.Restore(stored))
	for name, tt := range map[string]struct {
		conclusions *Conclusions
		same        bool
	}{"stored": {second, true}, "not stored": {new(Conclusions), false}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, func(s *Settings) { s.Conclusions = tt.conclusions })
			job(r, from, end)
			got, _ := r.concluded()
			differ, later := 0, 0
			for seq := range uint64(end) {
				switch {
				case seq >= crash:
					later += min(len(got[seq]), 1)
				case seq >= from && !assert.ObjectsAreEqual(want[seq], got[seq]):
					differ++
				}
			}
			assert.Equal(t, tt.same, differ == 0, differ)
			assert.Greater(t, later, 10)
		})
	}
}

// Without a reader of Fresh, the memory of judgements is bounded.
func TestConclusionsAreBounded(t *testing.T) {
	r := newRig(t, 2, nil)
	r.both(1)
	s := new(Conclusions)
	for range 3 * RememberedConclusions {
		s.restoreOrRemember(&r.left[0].judged)
		require.LessOrEqual(t, s.n, RememberedConclusions)
	}
	assert.Less(t, len(s.fresh), 16*RememberedConclusions)
}

// Cut or invalid bytes have no effect.
func FuzzConclusions(f *testing.F) {
	r := newRig(f, 2, func(s *Settings) { s.Conclusions = new(Conclusions) })
	r.both(1, 2, 3)
	r.left[0].setConclusion(&conclusion{Baseline: 3e9, Deviation: 4, Late: []slowRank{{Rank: 1, Late: 2, Cost: 3, Score: 4}}, Slowest: 1, Hot: []string{"0→1"}})
	f.Add(r.left[0].appendConclusion(make([]byte, 8)))
	stored, _ := r.j.set.Conclusions.Fresh()
	f.Add(stored)
	f.Fuzz(func(t *testing.T, b []byte) {
		known := new(Conclusions)
		n := known.Restore(b)
		assert.LessOrEqual(t, len(known.known), n)
		for _, said := range known.known {
			r.left[0].setConclusion(said)
			r.left[0].describe(pcommon.NewMap())
		}
	})
}
