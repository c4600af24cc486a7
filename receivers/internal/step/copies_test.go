package step

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// of makes the record of a step with a loss.
func lossOf(step int, loss float64) *record.Record {
	rec := new(record.Record)
	rec.Source = "jsonl"
	rec.Set(record.Iteration, float64(step))
	rec.Set(record.Loss, loss)
	return rec
}

// TestCopies: the output of eight ranks for 40 steps, in any order, is 40 steps of one rank; from the first difference on each rank has its own.
func TestCopies(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var c copies
		kept, owners := 0, map[int64]int{}
		at := [8]int{}
		for range 8 * 40 {
			rank := rng.IntN(8)
			for at[rank] == 40 {
				rank = (rank + 1) % 8
			}
			at[rank]++
			if is, owner := c.check(lossOf(at[rank], 3-float64(at[rank])/40), int64(rank)); !is {
				kept++
				owners[owner]++
			}
		}
		assert.Equal(t, 40, kept)
		assert.GreaterOrEqual(t, owners[c.Lead], 30, "but for those before the first copy")
	}
}

func TestCopiesDiffer(t *testing.T) {
	var c copies
	var got []string
	say := func(step int, loss float64, rank int64) {
		is, owner := c.check(lossOf(step, loss), rank)
		got = append(got, fmt.Sprint(is, owner))
	}
	say(1, 2.5, 3) // rank 3 leads
	say(1, 2.5, 0)
	say(2, 2.4, 0) // rank 0 is ahead
	say(2, 2.4, 3)
	say(1, 2.5, 3) // the job went back
	say(1, 2.5, 0)
	assert.Equal(t, []string{"false 3", "true 0", "false 3", "true 3", "false 3", "true 0"}, got)

	kept := c.settled()
	got, c = nil, kept // the collector was restarted
	say(3, 2.3, 1)
	say(3, 2.3, 3)
	assert.Equal(t, []string{"false 3", "true 3"}, got)

	got = nil
	say(4, 2.2, 3)
	say(4, 2.1, 1)
	say(5, 2, 3)
	say(5, 2, 1)
	assert.Equal(t, []string{"false 3", "false 1", "false 3", "false 1"}, got, "ranks differ")
	assert.Equal(t, copies{Differ: true, Found: true, Lead: 3}, c.settled())
	assert.LessOrEqual(t, len(c.said), maxSaid)

	own := lossOf(1, 1)
	own.HasRank = true
	c = copies{}
	for rank := range int64(2) {
		is, owner := c.check(own, rank)
		assert.False(t, is)
		assert.Equal(t, rank, owner)
	}
}

func TestCopiesBounded(t *testing.T) {
	var c copies
	for i := range 10 * maxSaid {
		c.check(lossOf(i, 1), 0)
	}
	assert.Len(t, c.said, maxSaid)
	assert.Len(t, c.ring, maxSaid)
	assert.Zero(t, testing.AllocsPerRun(100, func() { c.check(lossOfSteady, 0) }))
}

var lossOfSteady = lossOf(1, 1)
