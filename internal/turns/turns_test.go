package turns

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// entering has a delivery's message enter a judge, and says whether the message waits.
func entering(ctx context.Context, t *Turn, judge any) (leave func(), waits func() bool) {
	in := make(chan func(), 1)
	go func() { in <- Enter(With(ctx, t), judge) }()
	return func() { (<-in)() }, func() bool {
		synctest.Wait()
		return len(in) == 0
	}
}

// A delivery waits for earlier deliveries of its logs at each judge until the last message was judged, and for no others.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line Line
		one, other := new(int), new(int)
		a, b, c := line.Begin([]int{7, 1}), line.Begin([]int{2, 7}), line.Begin([]int{3})
		ctx := t.Context()
		leaveB, waitsB := entering(ctx, b, one)
		leaveC, waitsC := entering(ctx, c, one)
		assert.True(t, waitsB())
		assert.False(t, waitsC(), "another log")
		leaveC()
		Enter(With(ctx, a), one)()
		assert.True(t, waitsB(), "more messages of the first delivery come")
		a.Last()
		Enter(With(ctx, a), one)()
		assert.False(t, waitsB())
		leaveB()
		leaveB, waitsB = entering(ctx, b, other)
		assert.True(t, waitsB(), "at another judge")
		a.Over()
		a.Over()
		assert.False(t, waitsB())
		leaveB()
		c.Over()
		b.Over()
		assert.Empty(t, line.turns)
		Enter(With(ctx, a), one)() // another try of a delivery waits for nobody
		Enter(ctx, one)()          // nor does what has no turn
	})
}

// Without the earlier delivery a message waits until its context ends.
func TestTurnOfACanceledDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line Line
		line.Begin([]int{1})
		ctx, cancel := context.WithCancel(t.Context())
		leave, waits := entering(ctx, line.Begin([]int{1}), new(int))
		assert.True(t, waits())
		cancel()
		assert.False(t, waits())
		leave()
	})
}
