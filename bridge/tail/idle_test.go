package tail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// waiter is a toy that counts the calls of Idle, and then sends its records.
type waiter struct {
	toy

	idles int
	says  string
}

func (h *waiter) Forget() {}

func (h *waiter) Idle(time.Time) {
	h.idles++
	if h.says != "" {
		h.batch, h.says = append(h.batch, h.says), ""
	}
}

// Idle is called once everything was read and accepted, and not before.
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
	assert.Zero(t, h.idles, "a batch is in flight")
	r.ackAll()
	r.step(10 * time.Second)
	r.want("one")
	assert.Equal(t, 1, h.idles)

	h.says = "nothing"
	r.step(10 * time.Second)
	r.step(10 * time.Second)
	assert.Equal(t, 2, h.idles, "what it said is in flight")
	r.ackAll()
	r.want("nothing")

	r.append("a.log", "two\nSTART x\nthe beginning of")
	r.step(10 * time.Second)
	r.ackAll()
	r.want("two")
	r.step(10 * time.Second)
	assert.Equal(t, 2, h.idles, "a line is held")
	r.append("a.log", " a line\nEND x\n and of another")
	r.step(10 * time.Second)
	r.ackAll()
	r.out = nil
	r.steps(3, 10*time.Second)
	assert.Equal(t, 5, h.idles, "a line without its end may stay so")
}
