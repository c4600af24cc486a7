package trainmetricsconnector

import (
	"fmt"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/book"
	"github.com/trainbridge/trainbridge/internal/wire"
)

// The stored state of a run: a head, the names of its writers, its pauses, what joins of several logs know of its steps, and its steps in chunks. A batch
// stores the head and the changed rest: mostly the last chunk.

const stepsOfChunk = 256

// storedParts is how much of a run is stored.
type storedParts struct {
	slot    int
	stale   bool // the run changed since it was stored
	chunks  int  // of steps
	writers int  // names of sources and writers
	pauses  int
	known   int // what joins know of steps
}

// The keys of a run's parts: "run-3", "run-3-writers", "run-3-pauses", "run-3-known", and "run-3-0" and so on for the chunks of steps.
func (k *storedParts) head() string       { return "run-" + strconv.Itoa(k.slot) }
func (k *storedParts) names() string      { return k.head() + "-writers" }
func (k *storedParts) times() string      { return k.head() + "-pauses" }
func (k *storedParts) joins() string      { return k.head() + "-known" }
func (k *storedParts) chunk(n int) string { return k.head() + "-" + strconv.Itoa(n) }
func chunksOf(steps int) int              { return (steps + stepsOfChunk - 1) / stepsOfChunk }
func (k *storedParts) all() (keys []string) {
	keys = []string{k.head(), k.names(), k.times(), k.joins()}
	for n := range k.chunks {
		keys = append(keys, k.chunk(n))
	}
	return keys
}

// runWrite is one run in a write, and what was stored before.
type runWrite struct {
	run    *run
	before storedParts
	same   int // how many of the first steps were stored, and have not changed
}

// changes adds the changes of runs to a write: the keys of evicted runs are deleted, changed runs are stored.
func (a *accountAdder) changes(w *write) {
	for i := range a.gone {
		for _, key := range a.gone[i].all() {
			w.ops = append(w.ops, storage.DeleteOperation(key))
		}
	}
	w.gone, a.gone = a.gone, nil
	for _, r := range a.slots {
		if r != nil && r.stored.stale {
			w.runs = append(w.runs, r.addTo(w))
		}
	}
}

// hasChanges reports whether a run changed or was evicted since the last write.
func (a *accountAdder) hasChanges() bool {
	for _, r := range a.slots {
		if r != nil && r.stored.stale {
			return true
		}
	}
	return len(a.gone) > 0
}

// takeBackWrite returns a failed write to the changes. Which keys were written is unknown: as many chunks as before or after the write may exist, to be deleted
// later, and only steps stored before the write count as stored.
func (a *accountAdder) takeBackWrite(w *write) {
	a.gone = append(w.gone, a.gone...)
	for _, rw := range w.runs {
		chunks := max(rw.before.chunks, rw.run.stored.chunks)
		rw.run.stored = rw.before
		rw.run.stored.stale, rw.run.stored.chunks = true, chunks
		_, same := rw.run.Ledger.Steps()
		rw.run.Ledger.Stored(min(same, rw.same))
	}
}

// addTo adds the changes of a run to a write: the chunks from the first changed step on, names and pauses if their number has changed, and the head. Stored
// chunks after the last step are deleted: steps were merged.
func (r *run) addTo(w *write) *runWrite {
	steps, same := r.Ledger.Steps()
	k := &r.stored
	out := &runWrite{r, *k, same}
	set := func(key string, code func(c *codec)) {
		c := &codec{}
		code(c)
		w.ops = append(w.ops, storage.SetOperation(key, c.b))
	}
	for n := same / stepsOfChunk; n < chunksOf(len(steps)); n++ {
		set(k.chunk(n), func(c *codec) {
			for _, s := range steps[n*stepsOfChunk : min(len(steps), (n+1)*stepsOfChunk)] {
				s.MoveBehind() // Others is not kept
				codeStep(c, &s)
			}
		})
	}
	for n := chunksOf(len(steps)); n < k.chunks; n++ {
		w.ops = append(w.ops, storage.DeleteOperation(k.chunk(n)))
	}
	k.chunks = chunksOf(len(steps))
	sources, writers := r.Names()
	if n := len(sources) + len(writers); n != k.writers {
		k.writers = n
		set(k.names(), func(c *codec) { codeNames(c, &sources, &writers) })
	}
	var pauses []pauseOf
	r.Ledger.Pauses(func(of account.State, start, end int64) { pauses = append(pauses, pauseOf{of, start, end}) })
	if len(pauses) != k.pauses {
		k.pauses = len(pauses)
		set(k.times(), func(c *codec) { codePauses(c, &pauses) })
	}
	slow, had := joinFactsOf(&r.Ledger)
	if n := len(slow) + len(had); n != k.known {
		k.known = n
		set(k.joins(), func(c *codec) { codeJoinFacts(c, &slow); codeJoinFacts(c, &had) })
	}
	r.Ledger.Stored(len(steps))
	k.stale = false
	n := len(steps)
	set(k.head(), func(c *codec) { r.code(c, &n) })
	return out
}

// code passes the head of a run through a codec, with the number of its steps.
func (r *run) code(c *codec, steps *int) {
	r.key.service, r.key.run, r.service = c.text(r.key.service), c.text(r.key.run), c.text(r.service)
	r.end, r.updated = pcommon.Timestamp(c.num(int64(r.end))), c.num(r.updated)
	r.live, r.came, r.outcome, r.at, r.fresh = c.flag(r.live), c.num(r.came), c.num(r.outcome), c.num(r.at), c.flag(r.fresh)
	if c.reading() && (r.outcome < running || r.outcome > failed) {
		c.Fail()
	}
	r.changed, r.reported, *steps = c.flag(r.changed), int(c.num(int64(r.reported))), int(c.num(int64(*steps)))
}

// codeStep passes a step of a run through a codec. The end is stored as a difference, and times of checkpoints and evaluations only if there are any, so that
// most numbers are small. Offset (a place in the log) and Others are not stored.
func codeStep(c *codec, s *account.Step) {
	s.Start = c.num(s.Start)
	s.End = s.Start + c.num(s.End-s.Start)
	s.Number = c.num(s.Number)
	for _, n := range []*int32{&s.Steps, &s.Attempt, &s.Ranks, &s.Writer} {
		*n = int32(c.num(int64(*n)))
	}
	s.Source = int16(c.num(int64(s.Source)))
	s.Evaluated, s.Synthetic = c.flag(s.Evaluated), c.flag(s.Synthetic)
	if c.flag(s.Checkpoint+s.Evaluation+s.CheckpointBehind+s.EvaluationBehind > 0) {
		for _, x := range []*float32{&s.Checkpoint, &s.Evaluation, &s.CheckpointBehind, &s.EvaluationBehind} {
			*x = float32(c.float(float64(*x)))
			if c.reading() && !(*x >= 0 && *x <= math.MaxFloat32) {
				c.Fail()
			}
		}
	}
	s.Offset = -1
	if c.reading() && (s.End < s.Start || s.Steps < 1) {
		c.Fail()
	}
}

// codeNames passes the names of sources (formats) and writers (files and ranks) through a codec; steps refer to them by number.
func codeNames(c *codec, sources *[]string, writers *[]book.Writer) {
	if n := c.length(len(*sources)); c.reading() {
		*sources = make([]string, n)
	}
	for i := range *sources {
		(*sources)[i] = c.text((*sources)[i])
	}
	if n := c.length(len(*writers)); c.reading() {
		*writers = make([]book.Writer, n)
	}
	for i := range *writers {
		w := &(*writers)[i]
		w.Source, w.File, w.Rank = int32(c.num(int64(w.Source))), c.text(w.File), c.num(w.Rank)
	}
}

// pauseOf is a pause of a ledger.
type pauseOf struct {
	state      account.State
	start, end int64
}

// codePauses passes the pauses of a run through a codec.
func codePauses(c *codec, pauses *[]pauseOf) {
	if n := c.length(len(*pauses)); c.reading() {
		*pauses = make([]pauseOf, n)
	}
	for i := range *pauses {
		p := &(*pauses)[i]
		state := c.num(int64(p.state))
		p.state, p.start, p.end = account.State(state), c.num(p.start), c.num(p.end)
		if c.reading() && (state < 0 || state >= int64(account.States)) {
			c.Fail()
			return
		}
	}
}

// joinFact is what a join knows of a step, by its start.
type joinFact struct {
	start int64
	value float64
}

// joinFactsOf returns what joins know of the steps of a ledger: the excess of slow steps, s, and the number of ranks of the job.
func joinFactsOf(l *account.Ledger) (slow, had []joinFact) {
	l.Known(func(start int64, excess float64) { slow = append(slow, joinFact{start, excess}) },
		func(n, start int64) { had = append(had, joinFact{start, float64(n)}) })
	return slow, had
}

// codeJoinFacts passes facts of joins through a codec.
func codeJoinFacts(c *codec, all *[]joinFact) {
	if n := c.length(len(*all)); c.reading() {
		*all = make([]joinFact, n)
	}
	for i := range *all {
		k := &(*all)[i]
		k.start, k.value = c.num(k.start), c.float(k.value)
		if c.reading() && !(k.value > 0 && k.value <= math.MaxInt32) {
			c.Fail()
			return
		}
	}
}

// restoreRun restores the run of a slot, which is the next one in a.slots. head is the stored head of the run; empty: the slot is free. get reads the other
// keys of the run.
func (a *accountAdder) restoreRun(slot int, head []byte, get func(keys ...string) ([][]byte, error)) error {
	a.slots = append(a.slots, nil)
	if len(head) == 0 {
		return nil
	}
	r := &run{slot: slot, stored: storedParts{slot: slot}}
	steps := 0
	c := newDecoder(head)
	if r.code(c, &steps); c.Bad || len(c.Rest) > 0 || steps < 0 || steps > book.MostSteps || a.runs[r.key] != nil {
		return fmt.Errorf("%w: %s", errStored, r.stored.head())
	}
	r.stored.chunks = chunksOf(steps)
	values, err := get(r.stored.all()[1:]...)
	if err != nil {
		return err
	}
	if err := r.restoreBook(values, steps); err != nil {
		return err
	}
	a.runs[r.key], a.slots[slot] = r, r
	return nil
}

// restoreBook restores the book of a run, with so many steps, from the values of its keys after the head.
func (r *run) restoreBook(values [][]byte, steps int) error {
	var (
		sources   []string
		writers   []book.Writer
		pauses    []pauseOf
		slow, had []joinFact
		all       []account.Step
	)
	keys := r.stored.all()[1:]
	for n, code := range []func(c *codec){
		func(c *codec) { codeNames(c, &sources, &writers) },
		func(c *codec) { codePauses(c, &pauses) },
		func(c *codec) { codeJoinFacts(c, &slow); codeJoinFacts(c, &had) },
	} {
		c := newDecoder(values[n])
		if len(values[n]) > 0 { // empty: never stored
			code(c)
		}
		if c.Bad || len(c.Rest) > 0 {
			return fmt.Errorf("%w: %s", errStored, keys[n])
		}
	}
	for n, b := range values[len(keys)-r.stored.chunks:] {
		c := newDecoder(b)
		for i := n * stepsOfChunk; i < min(steps, (n+1)*stepsOfChunk) && !c.Bad; i++ {
			var s account.Step
			codeStep(c, &s)
			all = append(all, s)
		}
		if c.Bad || len(c.Rest) > 0 {
			return fmt.Errorf("%w: %s", errStored, r.stored.chunk(n))
		}
	}
	r.Book = book.Restore(sources, writers, all)
	for _, p := range pauses {
		r.Ledger.Pause(p.state, p.start, p.end)
	}
	for _, k := range slow {
		r.Ledger.Slow(k.start, k.value)
	}
	for _, k := range had {
		r.Ledger.Had(int64(k.value), k.start)
	}
	r.stored.writers, r.stored.pauses, r.stored.known = len(sources)+len(writers), len(pauses), len(slow)+len(had)
	return nil
}

// newDecoder returns a codec that reads b.
func newDecoder(b []byte) *codec { return &codec{Cursor: wire.Cursor{Rest: b}, reads: true} }
