package tail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
)

// placing is a toy that knows the lines of each record.
type placing struct {
	toy
	places []Place
}

func (h *placing) Line(l *Line) (Verdict, string) {
	before := len(h.batch)
	v, reason := h.toy.Line(l)
	h.place(before)
	return v, reason
}

func (h *placing) Expire(before time.Time) {
	for id, o := range h.open {
		if o.at.Before(before) {
			delete(h.open, id)
			h.s.Release(o.h)
			n := len(h.batch)
			h.batch = append(h.batch, o.text)
			h.place(n)
		}
	}
}

func (h *placing) place(from int) {
	for range h.batch[from:] {
		h.places = append(h.places, h.s.Place())
	}
}

func (h *placing) Cut() Delivery {
	if len(h.batch) == 0 {
		return nil
	}
	d := &joined{parts: []part{{h.batch, h.places}}, bad: h.rig.bad}
	h.batch, h.places = nil, nil
	return d
}

// joined refuses the records with a word.
type joined struct {
	parts []part
	bad   string
}

type part struct {
	texts  []string
	places []Place
}

func (d *joined) Join(other Delivery) bool {
	d.parts = append(d.parts, other.(*joined).parts...)
	return true
}

func (d *joined) Send(context.Context) error {
	r := &Refused{Places: map[int][]Place{}, Err: consumererror.NewPermanent(errors.New("bad"))}
	for i, p := range d.parts {
		for j, text := range p.texts {
			if strings.Contains(text, d.bad) {
				r.Places[i] = append(r.Places[i], p.places[j])
			}
		}
	}
	if len(r.Places) == 0 {
		return nil
	}
	return r
}

func placingRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	r := newRig(t, func(c *Config) { c.DeadLetter = filepath.Join(dir, "refused.log") })
	r.handler = func(s *Stream) Handler {
		return &placing{toy: toy{rig: r, s: s, open: map[string]opened{}}}
	}
	r.bad = "BAD"
	r.restart()
	return r
}

func (r *rig) refusedLines() []string {
	text, err := os.ReadFile(r.cfg.DeadLetter)
	require.NoError(r.t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Only the refused records of a batch count as refused: their lines are counted and set aside, the lines of the other records are not.
func TestRefusedRecordsAreSetAside(t *testing.T) {
	r := placingRig(t)
	r.write("a.log", "one\n# comment\ntwo BAD\nfour\nthree BAD\n")
	r.step(0)
	c := r.tl.Counts()
	assert.EqualValues(t, 2, c.Refused)
	assert.EqualValues(t, 2, c.Sent)
	assert.Equal(t, []string{"two BAD", "three BAD"}, r.refusedLines())
}

// The log shows a refused line, with its own file, for any batches sent with it, set aside or not.
func TestSampleOfRefused(t *testing.T) {
	for _, aside := range []bool{false, true} {
		t.Run(fmt.Sprintf("set aside %v", aside), func(t *testing.T) {
			r := placingRig(t)
			if !aside {
				r.cfg.DeadLetter = ""
			}
			logs := r.observed()
			r.hold = true
			r.write("a.log", "one\ntwo\n")
			r.write("b.log", "three\n# comment\nfour BAD\nfive\nsix BAD\n")
			r.step(0)
			require.Len(t, r.flying, 2)
			a, b := r.flying[0], r.flying[1]
			if a.stream.path != r.path("a.log") {
				a, b = b, a
			}
			require.True(t, a.delivery.Join(b.delivery))
			r.tl.settle([]*lineBatch{a, b}, a.delivery.Send(t.Context()))
			r.flying = nil
			r.balance()
			said := logs.FilterMessage("The next component refused records for good").All()
			require.Len(t, said, 1)
			assert.Equal(t, "four BAD", said[0].ContextMap()["sample"])
			assert.Equal(t, r.path("b.log"), said[0].ContextMap()["path"])
		})
	}
}

// Held lines count among the lines of their record.
func TestRefusedRecordOfSeveralLines(t *testing.T) {
	r := placingRig(t)
	r.bad = "START 7"
	r.write("a.log", "one\nSTART 7\n# comment\ntwo\nSTART 8\nEND 7\nEND 8\nthree\n")
	r.step(0)
	c := r.tl.Counts()
	assert.EqualValues(t, 2, c.Refused)
	assert.EqualValues(t, 5, c.Sent)
	assert.Equal(t, []string{"START 7", "END 7"}, r.refusedLines())
}

// Records that expire together are accepted or refused individually.
func TestRefusedAmongExpired(t *testing.T) {
	r := placingRig(t)
	var all strings.Builder
	for i := range 100 {
		fmt.Fprintf(&all, "START %d\n", i)
	}
	r.bad = "START 42"
	r.write("a.log", all.String())
	r.step(0)
	r.step(r.cfg.PendingTimeout + time.Minute)
	r.rest()
	c := r.tl.Counts()
	assert.EqualValues(t, 1, c.Refused)
	assert.EqualValues(t, 99, c.Sent)
	assert.Equal(t, []string{"START 42"}, r.refusedLines())
}

// If only the refused share is known, without the records, they are counted all the same.
func TestRefusedByNumber(t *testing.T) {
	for _, share := range []float64{0, 0.1666, 0.5, 0.999, 1, 7} {
		r := newRig(t)
		r.hold = true
		r.write("a.log", numbered(1, 5000))
		r.step(0)
		require.NotEmpty(t, r.flying)
		lines, batches := int64(0), len(r.flying)
		for _, b := range r.flying {
			lines += b.records
			r.tl.settle([]*lineBatch{b}, &Refused{Share: share, Err: errors.New("partly")})
		}
		r.flying = nil
		c := r.tl.Counts()
		assert.InDelta(t, float64(lines)*min(share, 1), c.Refused, float64(batches), share)
		assert.Equal(t, lines, c.Refused+c.Sent)
	}
}

// Small batches of many streams go together; none waits for long.
func TestSmallBatchesAreJoined(t *testing.T) {
	const files = 50
	dir := t.TempDir()
	for i := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.log", i)), []byte("line\n"), 0o600))
	}
	cfg := DefaultConfig()
	cfg.Include = []string{filepath.Join(dir, "*.log")}
	sent := make(chan int, files)
	tl, err := New(cfg, testSettings(), func(*Stream) Handler { return &counting{sent: sent} })
	require.NoError(t, err)
	require.NoError(t, tl.Start(t.Context(), componenttest.NewNopHost()))
	groups := 0
	for n := 0; n < files; groups++ {
		n += <-sent
	}
	assert.Less(t, groups, files)
	require.NoError(t, tl.Shutdown(t.Context()))
	assert.EqualValues(t, files, tl.Counts().Sent)
}

// counting sends how many batches were joined.
type counting struct {
	nop
	sent chan int
	n    int
}

func (h *counting) Cut() Delivery {
	if h.nop.n == 0 {
		return nil
	}
	h.nop.n = 0
	return &counting{sent: h.sent, n: 1}
}

func (h *counting) Send(context.Context) error { h.sent <- h.n; return nil }
func (h *counting) Join(other Delivery) bool   { h.n += other.(*counting).n; return true }

// However many streams have something to send, the senders are few.
func TestSendersAreFew(t *testing.T) {
	var o outbox
	o.init(1)
	blocked, free := make(chan struct{}, 100), make(chan struct{})
	o.open(senders, func([]*lineBatch) { blocked <- struct{}{}; <-free })
	for range 100 {
		o.put(&lineBatch{stream: new(Stream), bytes: maxBatchCost, delivery: nothing{}})
	}
	for range senders {
		<-blocked
	}
	select {
	case <-blocked:
		t.Fatal("one more than there are senders")
	default:
	}
	close(free)
	o.close()
	assert.Len(t, blocked, 100-senders)
}

// In turn, a stream's batch is not joined with the stream's next one: when the next one is sent, all before has been accepted.
func TestGroupInTurn(t *testing.T) {
	for _, inTurn := range []bool{false, true} {
		o := outbox{inTurn: inTurn}
		o.init(1)
		one, other := new(Stream), new(Stream)
		for _, s := range []*Stream{one, other, one, one, other} {
			o.put(&lineBatch{stream: s, bytes: 1, delivery: &counting{}})
		}
		o.end()
		var sizes []int
		for group := o.next(); group != nil; group = o.next() {
			sizes = append(sizes, len(group))
		}
		if inTurn {
			assert.Equal(t, []int{2, 1, 2}, sizes)
		} else {
			assert.Equal(t, []int{5}, sizes)
		}
	}
}
