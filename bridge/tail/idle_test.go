package tail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// waiter is a toy that counts how often it is told that there is nothing, and then sends what it was given.
type waiter struct {
	toy

	told int
	says string
}

func (h *waiter) Forget() {}

func (h *waiter) Idle(time.Time) {
	h.told++
	if h.says != "" {
		h.batch, h.says = append(h.batch, h.says), ""
	}
}

// A handler is told that there is nothing when all was read and accepted, and not before.
func TestIdle(t *testing.T) {
	r := newRig(t)
	var h *waiter
	r.handler = func(s *Stream) Handler {
		h = &waiter{toy: toy{rig: r, s: s, open: map[string]opened{}}}
		return h
	}
	r.restart()
	r.hold = true
	r.write("a.log", "one\n")
	r.steps(3, 10*time.Second)
	assert.Zero(t, h.told, "a batch is in flight")
	r.ackAll()
	r.step(10 * time.Second)
	r.want("one")
	assert.Equal(t, 1, h.told)

	h.says = "nothing"
	r.step(10 * time.Second)
	r.step(10 * time.Second)
	assert.Equal(t, 2, h.told, "what it said is in flight")
	r.ackAll()
	r.want("nothing")

	r.append("a.log", "two\nSTART x\nthe beginning of")
	r.step(10 * time.Second)
	r.ackAll()
	r.want("two")
	r.step(10 * time.Second)
	assert.Equal(t, 2, h.told, "a line is held")
	r.append("a.log", " a line\nEND x\n and of another")
	r.step(10 * time.Second)
	r.ackAll()
	r.out = nil
	r.steps(3, 10*time.Second)
	assert.Equal(t, 5, h.told, "a line without its end may stay so")
}
