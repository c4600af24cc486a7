package collectives

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// says is a rank's record of an AllReduce.
type says struct {
	input, rank, seq int
	size             int64
	us               int64  // duration, waiting included
	start            int64  // µs
	of               int    // ranks of the communicator; 0: not known
	counted          bool   // the number is not in the log
	alone            bool   // has no number
	id               string // of the trace
}

func (s says) op() *op.Op {
	o := new(op.Op)
	o.Init()
	o.Kind, o.Seq, o.HasSeq, o.Ordinal = op.AllReduce, uint64(s.seq), !s.alone, s.counted
	o.Comm, o.CommSize, o.Rank = []byte("0xabc"), int32(s.of), int32(s.rank)
	o.Host, o.PID = fmt.Appendf(nil, "host-%d", s.rank), int64(100+s.rank)
	o.Size, o.Total = s.size, s.size
	o.Start, o.Duration, o.Waits, o.Time = epoch+s.start*1000, s.us*1000, true, spans.TimeLogged
	o.End = o.Start + o.Duration
	if s.id != "" {
		o.IDs = &logids.IDs{logids.Trace: []byte(s.id)}
	}
	return o
}

const epoch = 1_781_000_000_000_000_000

// rig is a joiner and the collectives that left. Origins of records are texts.
type rig struct {
	tb     testing.TB
	j      *Joiner[string]
	inputs []*Input[string]
	now    int64
	left   []*Collective
	came   []string
	lines  []string // the outcome of each collective that left
}

func newRig(tb testing.TB, inputs int, change func(*Settings)) *rig {
	tb.Helper()
	s := Settings{JoinConfig: DefaultJoinConfig(), Series: 1000}
	if change != nil {
		change(&s)
	}
	r := &rig{tb: tb, j: New[string](s), now: epoch}
	for i := range inputs {
		r.inputs = append(r.inputs, r.j.Input(From{Run: "run", Path: fmt.Sprintf("/logs/%d.log", i), Family: "test"}, r.take))
	}
	return r
}

func (r *rig) take(c *Collective, came []string) {
	r.left, r.came = append(r.left, c), append(r.came, came...)
	r.lines = append(r.lines, fmt.Sprintf("%s by %s", c.text(), strings.Join(came, ",")))
}

// text is the outcome of a collective.
func (c *Collective) text() string {
	ranks := make([]string, len(c.parts))
	for i := range c.parts {
		ranks[i] = strconv.Itoa(int(c.parts[i].rank))
	}
	text := fmt.Sprintf("%d: %v, ranks %s", c.seq, c.outcome, strings.Join(ranks, " "))
	if c.missingCount > 0 {
		text += fmt.Sprintf(", missing %v", c.missing)
	}
	if c.hang {
		text += ", hang"
	}
	if c.mismatch {
		text += ", mismatch"
	}
	if c.latest >= 0 && c.lateMax > 0 {
		text += fmt.Sprintf(", rank %d late by %v", c.parts[c.latest].rank, time.Duration(c.lateMax))
	}
	return text
}

// say adds records, each with a text of its rank and number.
func (r *rig) say(records ...says) {
	for _, s := range records {
		r.inputs[s.input].Add(s.op(), []string{fmt.Sprintf("%d/%d", s.rank, s.seq)}, r.now)
	}
}

// pass advances the time, and has each input expire collectives.
func (r *rig) pass(d time.Duration) {
	r.now += d.Nanoseconds()
	for _, in := range r.inputs {
		in.Expire(r.now)
	}
}

// end ends reading.
func (r *rig) end() {
	for before := -1; before < len(r.left); {
		before = len(r.left)
		for _, in := range r.inputs {
			in.Expire(math.MaxInt64)
		}
	}
}

// numbered is a record of one of two ranks, each with an input of its own.
func numbered(rank, seq int) says {
	return says{input: rank, rank: rank, seq: seq, size: 4096, us: 100, of: 2}
}

// unnumbered is a record of a rank without a number in the log.
func unnumbered(rank, seq int, us, start int64) says {
	return says{input: rank, rank: rank, seq: seq, size: 4096, us: us, start: start, counted: true}
}

// both has both ranks say the same.
func (r *rig) both(seqs ...int) {
	for _, seq := range seqs {
		r.say(numbered(0, seq), numbered(1, seq))
	}
}

// TestJoin checks the leaving collectives, their order and lines.
func TestJoin(t *testing.T) {
	for name, c := range joins {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, c.change)
			c.do(r)
			assert.Equal(t, c.want, r.lines)
		})
	}
}

var joins = map[string]struct {
	change func(*Settings)
	do     func(r *rig)
	want   []string // in the order of leaving
}{
	"two ranks": {do: func(r *rig) { r.both(0, 1) }, want: []string{"0: complete, ranks 0 1 by 0/0,1/0", "1: complete, ranks 0 1 by 0/1,1/1"}},
	"in the order of ranks": {
		do:   func(r *rig) { r.say(numbered(1, 0), numbered(0, 0)) },
		want: []string{"0: complete, ranks 0 1 by 0/0,1/0"},
	},
	"late": {
		do: func(r *rig) {
			s := numbered(1, 0)
			s.us = 60
			r.say(numbered(0, 0), s)
		},
		want: []string{"0: complete, ranks 0 1, rank 1 late by 40µs by 0/0,1/0"},
	},
	"mismatch": {
		do: func(r *rig) {
			s := numbered(1, 0)
			s.size = 8192
			r.say(numbered(0, 0), s)
		},
		want: []string{"0: complete, ranks 0 1, mismatch by 0/0,1/0"},
	},
	"missing, and its rank has gone on": {
		do: func(r *rig) {
			r.both(0)
			r.say(numbered(0, 1), numbered(0, 2), numbered(1, 2))
		},
		want: []string{"0: complete, ranks 0 1 by 0/0,1/0", "1: gap, ranks 0, missing [1] by 0/1", "2: complete, ranks 0 1 by 0/2,1/2"},
	},
	"missing when reading ends": {
		do: func(r *rig) {
			r.both(0)
			r.say(numbered(0, 1))
			r.end()
		},
		want: []string{"0: complete, ranks 0 1 by 0/0,1/0", "1: end, ranks 0, missing [1] by 0/1"},
	},
	"reading ends while a record goes on": {
		do: func(r *rig) {
			r.inputs[1].Begin()
			r.say(numbered(0, 0))
			r.end()
			assert.Empty(r.tb, r.left)
			r.say(numbered(1, 0))
			r.inputs[1].End()
		},
		want: []string{"0: complete, ranks 0 1 by 0/0,1/0"},
	},
	"times out, and its rank comes back": {
		change: func(s *Settings) { s.HangTimeout = 4 * time.Second },
		do: func(r *rig) {
			r.both(0)
			r.say(numbered(0, 1))
			r.pass(time.Second)
			assert.Len(r.tb, r.left, 1, "a quarter of the time that inputs have to end what they began")
			r.pass(time.Nanosecond)
			r.say(numbered(0, 2), numbered(1, 1)) // rank 1 is not waited for, and its record joins the trace of the collective that has left
			r.say(numbered(1, 3), numbered(0, 3)) // rank 1 is waited for again
		},
		want: []string{
			"0: complete, ranks 0 1 by 0/0,1/0", "1: hang_timeout, ranks 0, missing [1], hang by 0/1", "2: rank_gone, ranks 0, missing [1] by 0/2",
			"1: late, ranks 1 by 1/1", "3: complete, ranks 0 1 by 0/3,1/3",
		},
	},
	"no room": {
		change: func(s *Settings) { s.MaxStateBytes, s.WindowSize = 4000, 10 },
		do:     func(r *rig) { r.say(numbered(0, 0), numbered(0, 1), numbered(0, 2), numbered(0, 3)) },
		want:   []string{"0: evicted, ranks 0 by 0/0"},
	},
	"size not known: waits for the other input": {
		do: func(r *rig) {
			r.say(says{rank: 0, seq: 0, size: 4096, us: 100})
			assert.Empty(r.tb, r.left)
			r.say(says{input: 1, rank: 1, seq: 0, size: 4096, us: 100})
		},
		want: []string{"0: complete, ranks 0 1 by 0/0,1/0"},
	},
	"size not known: the other input has nothing to say": {
		do: func(r *rig) {
			r.say(says{rank: 0, seq: 0, size: 4096, us: 100})
			r.inputs[1].EndWait()
			r.pass(0)
		},
		want: []string{"0: complete, ranks 0 by 0/0"},
	},
	"several ranks by one span": {
		do: func(r *rig) {
			for rank := range 2 {
				r.inputs[0].Add(numbered(rank, 0).op(), []string{"span"}, r.now)
			}
		},
		want: []string{"0: complete, ranks 0 1 by span,span"},
	},
	"without a number": {
		do:   func(r *rig) { r.say(says{rank: 0, size: 4096, us: 100, alone: true}) },
		want: []string{"0: complete, ranks 0 by 0/0"},
	},
	"rank beyond bounds": {
		do:   func(r *rig) { r.say(says{rank: MaxRank + 1, size: 4096, us: 100, of: 2}) },
		want: []string{"0: complete, ranks 65536 by 65536/0"},
	},
	"counted": {
		do: func(r *rig) {
			for seq := range 2 {
				at := int64(seq) * 1_000_000
				r.say(unnumbered(0, seq, 100, at), unnumbered(1, seq, 90, at))
			}
		},
		want: []string{"0: complete, ranks 0 1, rank 1 late by 10µs by 0/0,1/0", "1: complete, ranks 0 1, rank 1 late by 10µs by 0/1,1/1"},
	},
	"counted, and a line is lost": {
		do: func(r *rig) {
			for seq := range 3 {
				at := int64(seq) * 1_000_000
				r.say(unnumbered(0, seq, 100, at))
				if seq > 0 {
					r.say(unnumbered(1, seq-1, 90, at))
				}
			}
			r.end()
		},
		want: []string{"0: gap, ranks 0 by 0/0", "1: complete, ranks 0 1 by 0/1,1/0", "2: complete, ranks 0 1 by 0/2,1/1"},
	},
}
