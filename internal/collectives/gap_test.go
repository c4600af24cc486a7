package collectives

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// Numbers missing behind a record read again after a restart are of collectives accepted before the restart. Numbers missing between records read for the first
// time are a gap.
func TestGapOfWhatIsReadAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		again map[int]bool // numbers of the records read again
		want  map[uint64]uint64
	}{
		"nothing is read again":    {nil, map[uint64]uint64{3: 0, 20: 16, 40: 19, 41: 0, 50: 8}},
		"two holes, then the head": {map[int]bool{3: true, 20: true}, map[uint64]uint64{3: 0, 20: 0, 40: 0, 41: 0, 50: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			r, got := newRig(t, 2, nil), make(map[uint64]uint64)
			for i := range r.inputs {
				r.inputs[i] = r.j.Input(From{Run: "run", Path: "/logs/x.log", Family: "test"}, func(c *Collective, _ []string) { got[c.seq] = c.gap })
			}
			for _, seq := range []int{3, 20, 40, 41, 50} {
				for rank := range 2 {
					o := says{input: rank, rank: rank, seq: seq, of: 2, us: 10, start: int64(100 * seq)}.op()
					o.Again = tt.again[seq]
					r.inputs[rank].Add(o, nil, r.now)
				}
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

// A rank given up for a missing record of one operation may have a record of another, which waits on for the ranks without.
func TestGivenUpElsewhere(t *testing.T) {
	r := newRig(t, 4, nil)
	say := func(kind op.Kind, seq int, ranks ...int) {
		for _, rank := range ranks {
			o := says{rank: rank, seq: seq, size: 4096, us: 100, of: 4}.op()
			o.Kind = kind
			r.inputs[rank].Add(o, []string{"line"}, r.now)
		}
	}
	say(op.AllReduce, 0, 0, 1, 2, 3)
	say(op.AllReduce, 1, 0, 1, 2)
	say(op.AllGather, 7, 3)
	r.now += int64(time.Minute)
	say(op.AllGather, 7, 0)
	r.pass(20 * time.Second) // gives up rank 3
	say(op.AllGather, 7, 1)
	say(op.AllGather, 7, 2)
	r.end()
	var got []string
	for _, c := range r.left {
		got = append(got, c.text())
	}
	assert.Equal(t, []string{"0: complete, ranks 0 1 2 3", "1: hang_timeout, ranks 0 1 2, missing [3], hang", "7: complete, ranks 0 1 2 3"}, got)
}
