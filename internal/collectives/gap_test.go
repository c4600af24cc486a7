package collectives

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
