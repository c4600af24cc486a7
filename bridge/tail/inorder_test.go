package tail

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// numbering is a handler that numbers its lines. It holds the lines from a line with ( to a line with ), except lines with !: the held lines leave as one
// record, and until then the state is the state before them. A line with # is a header, and only counts.
type numbering struct {
	rig    *rig
	s      *Stream
	n      int // lines so far
	before int // lines before the held lines
	held   []Held
	open   []string
	batch  []string
}

func (h *numbering) Line(l *Line) (Verdict, string) {
	if len(h.held) == 0 {
		h.before = h.n
	}
	h.n++
	if l.Text[0] == '#' {
		return Ignored, "header"
	}
	text := fmt.Sprintf("%d%s", h.n, l.Text)
	if len(h.held) == 0 && l.Text[0] != '(' || l.Text[0] == '!' {
		h.batch = append(h.batch, text)
		return Record, ""
	}
	h.held, h.open = append(h.held, h.s.Hold()), append(h.open, text)
	if l.Text[0] == ')' {
		h.close()
	}
	return Record, ""
}

func (h *numbering) close() {
	for _, held := range h.held {
		h.s.Release(held)
	}
	h.batch = append(h.batch, strings.Join(h.open, " "))
	h.held, h.open, h.before = nil, nil, h.n
}

func (h *numbering) Expire(before time.Time) {
	if len(h.held) > 0 && before.Equal(farFuture) {
		h.close()
	}
}

func (h *numbering) Cut() Delivery {
	if len(h.batch) == 0 {
		return nil
	}
	out := h.batch
	h.batch = nil
	return sendFunc(func(ctx context.Context) error { return h.rig.consume(ctx, h.s, out) })
}

func (h *numbering) Save() []byte {
	if len(h.held) > 0 {
		return fmt.Append(nil, h.before)
	}
	return fmt.Append(nil, h.n)
}
func (h *numbering) Restore(b []byte) { _, _ = fmt.Sscan(string(b), &h.n) }

// ordered is an InOrder numbering.
type ordered struct{ *numbering }

func (ordered) InOrder() {}

func newNumbering(t *testing.T, inOrder bool, change ...func(*Config)) *rig {
	t.Helper()
	r := newRig(t, change...)
	r.crash()
	r.handler = func(s *Stream) Handler {
		c := &numbering{rig: r, s: s}
		if inOrder {
			return ordered{c}
		}
		return c
	}
	r.boot()
	r.hold = true
	return r
}

// pieces appends texts in turn; a blank ends a line.
func pieces(texts ...string) func(*rig) {
	return func(r *rig) {
		for _, text := range texts {
			r.append("a.log", strings.ReplaceAll(text, " ", "\n")+"\n")
			r.step(poll)
		}
	}
}

func rotatedAmid(r *rig) {
	pieces("a b (", "c")(r)
	r.rename("a.log", "a.log.1")
	pieces("d ) e", "f")(r)
}

// longDone has a file between others whose lines were all accepted long ago.
func longDone(r *rig) {
	pieces("a")(r)
	r.rename("a.log", "a.log.1")
	pieces("b c")(r)
	r.rename("a.log.1", "a.log.2")
	r.rename("a.log", "a.log.1")
	pieces("d")(r)
	require.True(r.t, r.ack(1))
	for range 4 {
		r.rest()
	}
}

// packedHeader puts the line behind the handler's state into a compressed file.
func packedHeader(r *rig) {
	pieces("#")(r)
	r.rename("a.log", "a.log.1")
	pieces("")(r)
	r.write("a.log.1.gz", gz("#\n"))
	r.remove("a.log.1")
	r.steps(5, time.Second)
	pieces("a")(r)
	r.rest()
}

// After a crash, all lines from the oldest unaccepted batch on are given again, with the handler's state of that time. A handler that is not InOrder gets only
// the missing lines, with the last state.
func TestInOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		write    func(*rig)
		accepted []string // the first characters of the accepted batches
		// ordered are the lines given after the crash, holes the lines given to a handler that is not InOrder.
		ordered, holes []string
	}{
		"a later one was accepted":       {pieces("a", "b", "c"), []string{"2b"}, []string{"1a", "2b", "3c"}, []string{"4a", "5c"}},
		"nothing before is given again":  {pieces("a", "b", "c"), []string{"1a", "3c"}, []string{"2b", "3c"}, []string{"4b"}},
		"all were accepted":              {pieces("a", "b", "c"), []string{"3c", "1a", "2b"}, []string{}, []string{}},
		"none was accepted":              {pieces("a", "b"), []string{}, []string{"1a", "2b"}, []string{"3a", "4b"}},
		"held lines over several pieces": {pieces("a (", "b", "c ) d", "e"), []string{"1a", "7e"}, []string{"2( 3b 4c 5)", "6d", "7e"}, []string{"8( 9b 10c 11)", "12d"}},
		"what was held is older":         {pieces("a (", "b ) c", "d"), []string{"2( 3b 4)"}, []string{"1a", "2( 3b 4)", "5c", "6d"}, []string{"7a", "8d"}},
		"lines are held at the crash":    {pieces("a", "b ("), []string{"1a", "2b"}, []string{"3("}, []string{"3("}},
		"held, and a batch before it":    {pieces("a", "b", "c ("), []string{"2b", "3c"}, []string{"1a", "2b", "3c", "4("}, []string{"4a", "5("}},
		"a batch while lines are held":   {pieces("a (", "!b", "c )", "d"), []string{"1a", "2( 4c 5)"}, []string{"3!b", "2( 4c 5)", "6d"}, []string{"7!b", "8d"}},
		"over a rotation":                {rotatedAmid, []string{"3( 4c 5d 6)"}, []string{"1a", "2b", "3( 4c 5d 6)", "7e", "8f"}, []string{"9a", "10b", "11f"}},
		"over a rotation, the last half": {rotatedAmid, []string{"1a", "8f"}, []string{"3( 4c 5d 6)", "7e", "8f"}, []string{"9( 10c 11d 12)", "13e"}},
		"the header's file is packed":    {packedHeader, nil, []string{"2a"}, []string{"3a"}},
		"a file between is long done":    {longDone, nil, []string{"1a", "2b", "3c", "4d"}, []string{"5a", "6d"}},
	} {
		for pattern, change := range map[string]func(*Config){"out of pattern": func(*Config) {}, "in pattern": every} {
			for _, inOrder := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, in order %v", name, pattern, inOrder), func(t *testing.T) {
					r := newNumbering(t, inOrder, change)
					tc.write(r)
					for _, first := range tc.accepted {
						r.accept(first)
					}
					r.checkpoint()
					r.restart()
					r.hold, r.out = false, []string{}
					r.step(0)
					r.rest()
					r.tl.expireAll() // a ( without its )
					r.ackAll()
					if inOrder {
						assert.Equal(t, tc.ordered, r.out)
					} else {
						assert.Equal(t, tc.holes, r.out)
					}
				})
			}
		}
	}
}

// accept has the consumer accept only the batch that begins with the given record.
func (r *rig) accept(first string) {
	r.t.Helper()
	all := r.consume
	defer func() { r.consume = all }()
	r.consume = func(ctx context.Context, s *Stream, out []string) error {
		if out[0] != first {
			return errors.New("another one")
		}
		return all(ctx, s, out)
	}
	for i := range r.flying {
		if r.ack(i) {
			return
		}
	}
	require.Fail(r.t, "no batch begins so", first)
}

// modelLines makes the lines of the model, and the expected records of an InOrder handler.
type modelLines struct {
	n          int
	want, open []string
}

// next is a unique line, recognized also in a copy.
func (l *modelLines) next(text string) string {
	l.n++
	text = fmt.Sprintf("%s-%d", text, l.n)
	l.open = append(l.open, fmt.Sprintf("%d%s", l.n, text))
	if text[0] == ')' || len(l.open) == 1 && text[0] != '(' {
		l.want, l.open = append(l.want, strings.Join(l.open, " ")), nil
	}
	return text + "\n"
}

func (l *modelLines) some(rnd *rand.Rand) string {
	var b strings.Builder
	for range 1 + rnd.IntN(40) {
		switch k := rnd.IntN(8); {
		case k == 0 && len(l.open) == 0:
			b.WriteString(l.next("("))
		case k <= 1 && len(l.open) > 0:
			b.WriteString(l.next(")"))
		default:
			b.WriteString(l.next("x"))
		}
	}
	return b.String()
}

// TestInOrderModel applies random events to a file, the consumer and the process: each record comes at least once, with the numbers of its lines in a run
// without faults.
func TestInOrderModel(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			change := func(*Config) {}
			if rnd.IntN(2) == 0 {
				change = every
			}
			r := newNumbering(t, true, change, func(c *Config) { c.MaxInFlightBytes = minInFlight })
			r.early = true
			at := r.now
			r.tick = func(string) time.Time { at = at.Add(time.Second); return at }
			lines, files := modelLines{}, 0
			for range 30 {
				switch rnd.IntN(9) {
				case 0, 1, 2, 3:
					r.append("a.log", lines.some(rnd))
				case 4:
					if lines.n > 0 {
						r.step(poll)
						files++
						if old := fmt.Sprintf("a.log.%d", files); rnd.IntN(3) > 0 {
							r.rename("a.log", old)
						} else {
							r.copy("a.log", old)
							r.truncate("a.log")
						}
						r.append("a.log", lines.next("x"))
						r.step(time.Duration(rnd.IntN(100)) * time.Second)
					}
				case 5, 6:
					if len(r.flying) > 0 {
						r.ack(rnd.IntN(len(r.flying)))
					}
				case 7:
					r.checkpoint()
				case 8:
					r.restart()
				}
				if rnd.IntN(2) == 0 {
					r.step(poll)
				}
			}
			r.hold = false
			r.append("a.log", lines.next("x")+lines.next(")"))
			r.step(0)
			r.ackAll()
			r.rest()
			slices.Sort(lines.want)
			slices.Sort(r.out)
			require.Equal(t, lines.want, slices.Compact(r.out))
		})
	}
}
