package collectives

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

func remote(s *Settings) { s.Remote = true }

// TestAgain sends records twice, like a collector that died without knowing the last accepted ones.
func TestAgain(t *testing.T) {
	for name, c := range again {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, remote)
			c.do(r)
			assert.Equal(t, c.want, r.lines)
			r.end()
			require.NoError(t, r.j.Leftover())
		})
	}
}

var again = map[string]struct {
	do   func(r *rig)
	want []string
}{
	"while its collective waits": {
		do:   func(r *rig) { r.say(numbered(0, 0), numbered(0, 0), numbered(1, 0)) },
		want: []string{"0: complete, ranks 0 1 by 0/0,1/0"},
	},
	"after it has left": {
		do: func(r *rig) {
			r.both(0, 1)
			r.both(0, 1)
			r.both(2)
		},
		want: []string{"0: complete, ranks 0 1 by 0/0,1/0", "1: complete, ranks 0 1 by 0/1,1/1", "2: complete, ranks 0 1 by 0/2,1/2"},
	},
	"after it has left without a rank": {
		do: func(r *rig) {
			r.both(0)
			r.say(numbered(0, 1), numbered(0, 2), numbered(1, 2))
			r.say(numbered(0, 1), numbered(1, 1)) // the latter for the first time
			r.say(numbered(0, 1), numbered(1, 1), numbered(0, 2))
		},
		want: []string{
			"0: complete, ranks 0 1 by 0/0,1/0", "1: gap, ranks 0, missing [1] by 0/1", "2: complete, ranks 0 1 by 0/2,1/2", "1: late, ranks 1 by 1/1",
		},
	},
	"several links of a rank are no repetition": {
		do: func(r *rig) {
			for _, to := range []int32{1, 2, 1} {
				o := numbered(0, 0).op()
				o.Source, o.Destination, o.Sends = 0, to, 1
				r.inputs[0].Add(o, []string{strconv.Itoa(int(to))}, r.now)
			}
			r.end()
		},
		want: []string{"0: end, ranks 0 0 by 1,2"},
	},
	"numbers begin anew": {
		do: func(r *rig) {
			r.both(0)
			for rank := range 2 {
				s := numbered(rank, 0)
				s.start = 1000
				r.say(s)
			}
		},
		want: []string{"0: complete, ranks 0 1 by 0/0,1/0", "0: complete, ranks 0 1 by 0/0,1/0"},
	},
	"counted": {
		do: func(r *rig) {
			for range 2 {
				r.say(unnumbered(0, 0, 100, 0), unnumbered(1, 0, 90, 0))
			}
		},
		want: []string{"0: complete, ranks 0 1, rank 1 late by 10µs by 0/0,1/0"},
	},
}

// Whatever section of its log a collector sends again after a crash, the collectives are the same as for records sent once.
func TestCrashes(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 19))
			const seqs = 50
			ranks := 2 + rnd.IntN(3)
			r := newRig(t, ranks, remote)
			next, most := make([]int, ranks), make([]int, ranks)
			for left := ranks * seqs; left > 0; {
				rank := rnd.IntN(ranks)
				if next[rank] == seqs {
					continue
				}
				if rnd.IntN(10) == 0 {
					next[rank] = rnd.IntN(next[rank] + 1)
					continue
				}
				s := numbered(rank, next[rank])
				s.of, s.start = ranks, int64(1000*next[rank])
				first := r.inputs[rank].Add(s.op(), []string{fmt.Sprintf("%d/%d", rank, next[rank])}, r.now)
				assert.Equal(t, next[rank] == most[rank], first)
				if next[rank]++; first {
					most[rank], left = next[rank], left-1
				}
			}
			assert.Len(t, r.left, seqs)
			assert.Len(t, r.came, ranks*seqs)
			for _, c := range r.left {
				assert.Equal(t, Complete, c.outcome)
			}
			require.NoError(t, r.j.Leftover())
		})
	}
}

// A rank whose collector is silent is not said to hang: the rank's state is unknown.
func TestUnheard(t *testing.T) {
	for name, c := range map[string]struct {
		alive time.Duration // when the collector of rank 1 sends its next heartbeat; 0: never
		want  string
	}{
		"a dead collector":                    {want: "1: unheard, ranks 0, missing [1]"},
		"a rank that hangs":                   {alive: 8 * time.Second, want: "1: hang_timeout, ranks 0, missing [1], hang"},
		"a collector that died while it hung": {alive: 2 * time.Second, want: "1: unheard, ranks 0, missing [1]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, func(s *Settings) { s.Remote, s.HangTimeout = true, 4*time.Second })
			r.both(0)
			r.now += time.Second.Nanoseconds()
			r.say(numbered(0, 1))
			if c.alive > 0 {
				r.inputs[1].Alive(epoch + c.alive.Nanoseconds())
			}
			r.pass(7 * time.Second)
			require.Len(t, r.lines, 2)
			assert.Equal(t, c.want, strings.TrimSuffix(r.lines[1], " by 0/1"))
			if c.alive < 4*time.Second {
				assert.Equal(t, []int32{1}, r.left[1].unheard)
			}
		})
	}
}

// Collectives sent before a restart are judged and not added up again.
func TestKnown(t *testing.T) {
	r := newRig(t, 1, func(s *Settings) { s.Remote = true })
	send := func(seq int, known bool) {
		o := numbered(0, seq).op()
		o.Kind, o.HasSeq, o.Peer = op.Send, false, 1
		r.inputs[0].Known = known
		r.inputs[0].Add(o, []string{"line"}, r.now)
	}
	send(0, true)
	send(1, false)
	send(2, false)
	var sent float64
	for _, p := range r.j.Learned(nil, r.left[1:]) {
		if p.Metric == "nccl.link.io" {
			sent = p.Value
		}
	}
	assert.InDelta(t, 2*4096, sent, 0)
	assert.Equal(t, "run", r.left[0].Run())
}
