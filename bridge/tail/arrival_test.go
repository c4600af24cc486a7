package tail

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// arriving is a handler of a log without a clock: a record says when its line was read, and how many lines followed it then.
type arriving struct {
	rig   *rig
	s     *Stream
	batch []string
}

func (h *arriving) Line(l *Line) (Verdict, string) {
	h.s.ByArrival()
	follow := 0
	h.s.Ahead(func([]byte) bool { follow++; return true })
	h.batch = append(h.batch, fmt.Sprintf("%s %v %d %v %d", l.Text, l.Live, l.Observed.UnixNano(), l.ModTime.UnixNano(), follow))
	return Record, ""
}

func (h *arriving) Cut() Delivery {
	if len(h.batch) == 0 {
		return nil
	}
	out := h.batch
	h.batch = nil
	return sendFunc(func(ctx context.Context) error { return h.rig.consume(ctx, h.s, out) })
}

func (*arriving) Expire(time.Time) {}
func (*arriving) Save() []byte     { return nil }
func (*arriving) Restore([]byte)   {}
func (*arriving) InOrder()         {}

// What was sent before a crash comes again as it came, also where a line has no time but that of its arrival: whatever was accepted, and whenever positions
// were stored.
func TestArrivals(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			r := newRig(t, func(c *Config) { c.MaxInFlightBytes = minInFlight })
			r.crash()
			r.handler = func(s *Stream) Handler { return &arriving{rig: r, s: s} }
			r.boot()
			r.hold, r.early = true, true
			sent := make(map[string]string)
			r.consume = func(_ context.Context, _ *Stream, out []string) error {
				for _, text := range out {
					name, _, _ := strings.Cut(text, " ")
					if was, ok := sent[name]; ok {
						require.Equal(t, was, text)
					}
					sent[name] = text
				}
				return r.err
			}
			n, files := 0, 0
			for range 40 {
				switch rnd.IntN(8) {
				case 0, 1, 2:
					for range 1 + rnd.IntN(30) {
						n++
						r.append("a.log", fmt.Sprintf("%d\n", n))
					}
				case 3:
					r.err = context.DeadlineExceeded // it has the batch all the same
					if len(r.flying) > 0 {
						r.ack(rnd.IntN(len(r.flying)))
					}
					r.err = nil
				case 4:
					if len(r.flying) > 0 {
						r.ack(rnd.IntN(len(r.flying)))
					}
				case 5:
					r.checkpoint()
				case 6:
					r.restart()
				case 7:
					if n > 0 && rnd.IntN(3) == 0 {
						r.step(poll)
						files++
						r.rename("a.log", fmt.Sprintf("a.log.%d", files))
						n++
						r.append("a.log", fmt.Sprintf("%d\n", n))
					}
				}
				if rnd.IntN(2) == 0 {
					r.step(time.Duration(1+rnd.IntN(2000)) * time.Millisecond)
				}
			}
			r.hold = false
			r.step(0)
			r.ackAll()
			r.rest()
			require.Len(t, sent, n)
		})
	}
}
