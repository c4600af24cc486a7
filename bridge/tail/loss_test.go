package tail

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Losses of lines measured with contrib's fileconsumer.

func TestFileconsumerLoss_SameFirstKilobytes(t *testing.T) {
	r := newRig(t)
	pre := strings.Repeat("# both files begin like this\n", 60)
	r.write("a.log", pre+numbered(1, 3))
	r.write("b.log", pre+numbered(4, 6))
	r.step(0)
	r.write("a2.log", pre+numbered(7, 9)) // and a file that begins like a copy of the first
	r.step(poll)
	r.want(numberedLines(1, 9)...)
}

func TestFileconsumerLoss_RestartRewritesPreamble(t *testing.T) {
	pre := strings.Repeat("# both runs begin like this\n", 60)
	r := newRig(t)
	r.write("a.log", pre+numbered(1, 3))
	r.step(0)
	r.checkpoint()
	r.crash()
	r.write("a.log", pre+numbered(4, 9))
	r.boot()
	r.step(0)
	r.want(numberedLines(1, 9)...)
}

func TestFileconsumerLoss_PauseInsideLine(t *testing.T) {
	r := newRig(t)
	r.append("a.log", `{"loss": 1.2, `)
	r.steps(20, 3*time.Second)
	r.append("a.log", `"step": 3}`+"\n")
	r.step(10 * time.Second)
	r.want(`{"loss": 1.2, "step": 3}`)
}

func TestFileconsumerLoss_ConsumerError(t *testing.T) {
	r := newRig(t)
	r.append("a.log", numbered(1, 3))
	r.err = errors.New("queue is full")
	r.step(0)
	r.checkpoint()
	r.restart() // the offset has not moved on
	r.step(0)
	r.err = nil
	r.step(poll)
	r.want(numberedLines(1, 3)...)
}

func TestFileconsumerLoss_SlowConsumerOfOneFile(t *testing.T) {
	r := newRig(t)
	r.hold = true
	r.consume = func(_ context.Context, s *Stream, out []string) error {
		if strings.HasSuffix(s.path, "slow.log") {
			return errors.New("slow")
		}
		r.out = append(r.out, out...)
		return nil
	}
	r.append("slow.log", numbered(1, 1000))
	r.append("b.log", numbered(1, 2))
	r.step(0)
	r.append("b.log", numbered(3, 4))
	r.step(poll)
	for i := range slices.Backward(r.flying) {
		r.ack(i)
	}
	assert.ElementsMatch(t, numberedLines(1, 4), r.out)
}

func TestFileconsumerLoss_MillionLinesAgainstSlowQueue(t *testing.T) {
	lines := 1_000_000
	if testing.Short() {
		lines /= 8
	}
	r := newRig(t, func(c *Config) { c.MaxInFlightBytes = 1 << 20 })
	r.hold = true
	n := 0
	r.consume = func(_ context.Context, _ *Stream, out []string) error { n += len(out); return nil }
	r.write("a.log", numbered(1, lines))
	r.step(0)
	for len(r.flying) > 0 {
		assert.LessOrEqual(t, r.tl.inFlight, r.cfg.MaxInFlightBytes)
		r.ack(0)
		r.step(0)
	}
	assert.Equal(t, lines, n)
}
