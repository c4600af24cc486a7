package facts

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRanksAt(t *testing.T) {
	type use struct {
		id                uint32
		ranks, start, end int64
	}
	for _, test := range []struct {
		name  string
		uses  []use
		world int64
		want  int64 // from 100 to 200
	}{
		{"nothing is known", nil, 0, 0},
		{"the log of the training alone", nil, 32, 32},
		{"one communicator", []use{{1, 16, 110, 120}}, 0, 16},
		{"one that is used before and after", []use{{1, 16, 10, 20}, {1, 16, 300, 310}}, 0, 16},
		{"fewer ranks than before", []use{{1, 16, 10, 90}, {2, 8, 110, 120}}, 0, 8},
		{"fewer ranks than before, as the log says", []use{{1, 16, 10, 90}, {2, 8, 110, 120}}, 8, 8},
		{"fewer ranks afterwards", []use{{1, 16, 10, 190}, {2, 8, 210, 320}}, 0, 16},
		{"all ranks at the start, then groups", []use{{1, 16, 1, 2}, {2, 8, 110, 120}, {3, 8, 110, 120}, {4, 2, 110, 120}}, 0, 16},
		{"groups of one size twice", []use{{1, 16, 1, 2}, {2, 8, 110, 120}, {3, 8, 110, 120}, {4, 8, 110, 120}, {5, 8, 110, 120}}, 0, 16},
		{"groups, and the log knows the job", []use{{1, 8, 110, 120}}, 16, 16},
		{"half of the groups", []use{{1, 16, 1, 2}, {2, 4, 1, 90}, {3, 4, 1, 190}, {4, 4, 90, 190}, {5, 4, 1, 99}}, 0, 8},
		{"no collective then", []use{{1, 16, 10, 90}}, 0, 16},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := NewRun("run")
			for _, u := range test.uses {
				r.Communicates(u.id, u.ranks, u.start, u.end)
			}
			w := &Window{Start: 100, End: 200, World: test.world}
			for range 2 {
				assert.Equal(t, test.want, r.RanksAt(w))
			}
		})
	}
}

// Communicators that never end are dropped, and the job keeps the number of ranks.
func TestManyCommunicators(t *testing.T) {
	r := NewRun("run")
	for i := range int64(50_000) {
		r.Communicates(uint32(i), 16, i, i+1)
	}
	assert.Len(t, r.communicators, maxCommunicators)
	assert.Equal(t, int64(16), r.RanksAt(&Window{Start: 49_000, End: 50_000}))
}
