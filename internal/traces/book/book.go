// Package book adds up the time in a run's spans in the run's ledger: for finished and for growing logs, by the same rules.
package book

import (
	"cmp"
	"hash/fnv"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/spans"
)

const (
	// MostSteps bounds the steps of all runs together, 96 bytes each: see Fit.
	MostSteps = 1 << 18

	mostBooked  = 8192    // steps that recent finds at least
	mostWriters = 1 << 12 // numbered sources, files and writers
	textLimit   = 512     // By, of a name
)

// Entry is the time in one span. Its texts live as long as the span.
type Entry struct {
	kind         view.Kind
	id           pcommon.SpanID // of a step; of a part: the id of its step
	step         account.Step
	epoch        int64 // of the step; below 0: not known
	source, file string
	rank         int64

	state      account.State // of a part
	behind     bool          // of a part: the trainer's step time does not contain the part, which comes behind the step
	seconds    float64       // of a part, or of an evaluation without a clock; of a breakdown the excess over the usual time
	ranks      int64         // of the job, in a breakdown; 0: not known
	start, end int64         // ns, of an evaluation; both 0: its duration is unknown
}

// Step is the entry of a step, read by v. file is its log, and offset, in By, the place of its record; −1: unknown.
func Step(s ptrace.Span, v *view.Step, res *view.Resource, file string, offset int64) Entry {
	e := Entry{kind: view.KindStep, id: s.SpanID(), source: v.Format, file: file, rank: v.Rank.Or(-1), step: account.Step{
		Start: int64(s.StartTimestamp()), End: int64(s.EndTimestamp()), Number: v.Step().Or(-1), Steps: int32(min(v.Covered(), math.MaxInt32)),
		Attempt: int32(min(res.RunAttempt.Or(0), math.MaxInt32)), Synthetic: res.TimeSource == spans.TimeSynthetic,
		Ranks: int32(min(v.WorldSize.Or(res.WorldSize.Or(0)), math.MaxInt32)), Trace: s.TraceID(), Offset: offset,
		Typical: v.DurationKind == spans.DurationMedian,
	}}
	e.epoch = -1
	if v.Epoch >= 0 && v.Epoch < math.MaxInt32 {
		e.epoch = int64(v.Epoch)
	}
	if v.TimePoint || e.step.End-e.step.Start <= 1 {
		e.step.End = e.step.Start // a span of no length has 1 ns
	}
	return e
}

// Breakdown is the entry of a breakdown, read by b, which begins with its step. ok: the window is a step.
func Breakdown(s ptrace.Span, b *view.Breakdown) (e Entry, ok bool) {
	return Entry{kind: view.KindBreakdown, start: int64(s.StartTimestamp()), seconds: b.Excess, ranks: b.WorldSize.Or(0)}, b.Window == spans.WindowStep
}

// Part is the entry of a named part of a step: a checkpoint, an evaluation, or another part, whose time says whether those are within the step. ok: the account
// needs the part.
func Part(s ptrace.Span, name string, res *view.Resource) (e Entry, ok bool) {
	e = Entry{kind: view.KindPart, id: s.ParentSpanID(), seconds: length(s)}
	loop := trainers.Of(res.Source, res.StepDurationKind)
	switch trainers.PartOf(name) {
	case trainers.Checkpointing:
		e.state, e.behind = account.Checkpoint, loop.Checkpoint == trainers.Between
	case trainers.Evaluating:
		e.state, e.behind = account.Evaluation, loop.Evaluation == trainers.Between
	default:
		e.state = account.InStep
		return e, loop.Checkpoint == trainers.Unknown || loop.Evaluation == trainers.Unknown // else the place is known without the other parts
	}
	return e, true
}

// Evaluation is the entry of an evaluation's results: with start and end where a clock gave both, with the length alone where the times are made up, and
// without a duration where the span has none.
func Evaluation(s ptrace.Span, res *view.Resource, file string) Entry {
	e := Entry{kind: view.KindEvaluation, source: source(s, res), file: file}
	e.step.Number = -1
	if n, ok := s.Attributes().Get(spans.AttrIteration); ok {
		e.step.Number = view.IntOf(n).Or(-1)
	}
	start, end := int64(s.StartTimestamp()), int64(s.EndTimestamp())
	if end-start <= 1 { // a span of no length has 1 ns
		return e
	}
	time := res.TimeSource
	if text := spans.AttrText(s.Attributes(), spans.AttrTimeSource); text != "" {
		time = spans.TimeSource(text)
	}
	if time == spans.TimeSynthetic {
		e.seconds = length(s)
	} else {
		e.start, e.end = start, end
	}
	return e
}

// Covers is the length of a step's record, ns; 0 for other entries.
func (e *Entry) Covers() int64 { return e.step.End - e.step.Start }

// source is the log's format, by the span, else by the resource.
func source(s ptrace.Span, res *view.Resource) string {
	return cmp.Or(spans.AttrText(s.Attributes(), spans.AttrSource), res.Source)
}

// length is the length of a span, s; 0 for an end before the start.
func length(s ptrace.Span) float64 {
	return float64(max(0, int64(s.EndTimestamp()-s.StartTimestamp()))) / 1e9
}

// Book is the ledger of a run, with the identities of its spans. The zero value is empty.
type Book struct {
	Ledger account.Ledger

	ids      recent[pcommon.SpanID] // the steps whose parts may still come: mostly in the same message, or in one of the next
	sources  map[string]int32       // numbers, as in Names
	files    map[string]int32       // numbers
	writers  map[Writer]int32       // numbers, as in Names
	numbers  recent[numbered]       // the same steps by their numbers, for later evaluations
	counters map[int32]*counter     // by writer
	early    map[numbered]float64   // s, of evaluations whose step has not come: another resource of the same message may have the step
	perEpoch []perEpoch             // steps since the last Fit whose numbers may restart with each epoch
}

// perEpoch is a step with the number in its epoch.
type perEpoch struct {
	of            account.Ref
	writer        int32
	start         int64 // ns since 1970
	epoch, number int64
}

// counter makes a continuous sequence of step numbers that restart with each epoch.
type counter struct {
	epoch, last int64           // of the last step; the epoch below 0: not known
	before      int64           // steps of the epochs before
	starts      map[int64]int64 // before, of each epoch
}

// mostEpochs of a writer are remembered, for a restart from an earlier epoch.
const mostEpochs = 4096

// number is the number of a step in the sequence over all epochs: a log with the numbers 1, 2, 3 of epoch 0 and 1, 2, 3 of epoch 1 has 1 to 6. A step without
// number or epoch keeps its number, and so do steps whose numbers go on from epoch to epoch.
func (c *counter) number(number, epoch int64) int64 {
	if number < 0 || epoch < 0 {
		return number
	}
	switch {
	case c.epoch >= 0 && epoch > c.epoch && number <= c.last:
		if c.starts == nil {
			c.starts = map[int64]int64{c.epoch: c.before}
		}
		c.before += c.last + 1 - min(number, 1) // c.last steps, and one more if the first step of an epoch is 0
		if len(c.starts) < mostEpochs {
			c.starts[epoch] = c.before
		}
	case epoch < c.epoch && c.starts != nil: // the job went back to a checkpoint
		if before, ok := c.starts[epoch]; ok {
			c.before = before
		}
	}
	c.epoch, c.last = epoch, number
	return c.before + number
}

// settle numbers the steps since the last settle over all epochs, in the order of time: a message has the first step of each epoch, of one step, in another
// resource than records of several steps.
func (b *Book) settle() {
	slices.SortStableFunc(b.perEpoch, func(x, y perEpoch) int {
		return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.epoch, y.epoch), cmp.Compare(x.number, y.number))
	})
	for _, s := range b.perEpoch {
		b.Ledger.Renumber(s.of, b.counter(s.writer).number(s.number, s.epoch))
	}
	b.perEpoch = b.perEpoch[:0]
}

// own is a copy of the writer that outlives the span.
func (w Writer) own() Writer {
	w.File = text(w.File)
	return w
}

// numbered is a step of a source, in a file or (anyFile) in whichever.
type numbered struct {
	source, file int32
	number       int64
}

const anyFile = -1

// Put puts an entry into the ledger; Fit follows the entries of a message. Steps are expected before their parts: without its step, a part is left out. An
// evaluation waits for its step.
func (b *Book) Put(e *Entry) {
	switch e.kind {
	case view.KindStep:
		source := number(&b.sources, e.source, text)
		step := e.step
		step.Source = int16(source)
		step.Writer = b.writer(Writer{source, e.file, e.rank})
		step.Name = nameOf(e.file, e.rank)
		of := b.Ledger.Add(step)
		if e.epoch >= 0 && step.Number >= 0 {
			b.perEpoch = append(b.perEpoch, perEpoch{of, step.Writer, step.Start, e.epoch, step.Number})
		}
		b.ids.note(e.id, of)
		b.place(numbered{source, anyFile, e.step.Number}, of)
		if e.file != "" { // with concurrently read logs, any may have the latest step of the number
			b.place(numbered{source, number(&b.files, e.file, text), e.step.Number}, of)
		}
	case view.KindBreakdown:
		b.Ledger.Slow(e.start, e.seconds)
		b.Ledger.Had(e.ranks, e.start)
	case view.KindPart:
		if of, found := b.ids.find(e.id); found {
			b.Ledger.Part(of, e.state, e.seconds, e.behind)
		}
	case view.KindEvaluation:
		b.evaluation(e)
	}
}

// writer is the number of a writer, whose rank the ledger knows.
func (b *Book) writer(w Writer) int32 {
	known := len(b.writers)
	n := number(&b.writers, w, Writer.own)
	if len(b.writers) > known {
		b.Ledger.Rank(n, w.Rank)
	}
	return n
}

// nameOf is a hash of a writer's name.
func nameOf(file string, rank int64) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(file)) // by package hash, it never fails
	return h.Sum32() + uint32(rank)
}

// counter is the counter of a writer.
func (b *Book) counter(writer int32) *counter {
	c := b.counters[writer]
	if c == nil {
		if b.counters == nil {
			b.counters = map[int32]*counter{}
		}
		c = &counter{epoch: -1}
		b.counters[writer] = c
	}
	return c
}

// evaluation puts an evaluation into the ledger: as a pause of the run with a start and an end, else with the last step of its number, or the first to come.
func (b *Book) evaluation(e *Entry) {
	if e.end > e.start {
		b.Ledger.Pause(account.Evaluation, e.start, e.end)
		return
	}
	at := numbered{number(&b.sources, e.source, text), anyFile, e.step.Number}
	if file, steps := b.files[e.file]; steps { // a file without steps has the results of another
		at.file = file
	}
	if of, ok := b.numbers.find(at); ok {
		b.evaluated(e.seconds, of)
		return
	}
	if len(b.early) >= mostBooked {
		clear(b.early)
	}
	if b.early == nil {
		b.early = map[numbered]float64{}
	}
	b.early[at] = e.seconds
}

// place notes a step under a number, and puts the evaluation of that number into the ledger, if the evaluation came first.
func (b *Book) place(at numbered, of account.Ref) {
	b.numbers.note(at, of)
	if len(b.early) == 0 {
		return
	}
	if seconds, ok := b.early[at]; ok {
		b.evaluated(seconds, of)
		delete(b.early, at)
	}
}

// evaluated puts an evaluation without start and end into the ledger: the time behind a step, or without a duration a mark on the step.
func (b *Book) evaluated(seconds float64, of account.Ref) {
	if seconds > 0 {
		b.Ledger.Part(of, account.Evaluation, seconds, true)
		return
	}
	b.Ledger.Evaluated(of)
}

// recent finds the latest steps by a key: the last mostBooked at least. Few are ever looked up, so the maps are built at a look-up. A full map becomes the
// older of the two, and the oldest steps are forgotten.
type recent[K comparable] struct {
	put         []keyed[K] // since the last look-up
	now, before map[K]account.Ref
}

// keyed is a step with its key.
type keyed[K comparable] struct {
	key K
	of  account.Ref
}

// note notes a step.
func (r *recent[K]) note(k K, of account.Ref) {
	if len(r.put) >= 4*mostBooked { // the two maps keep 2*mostBooked at most: the first half would be forgotten
		r.put = slices.Delete(r.put, 0, 2*mostBooked)
	}
	r.put = append(r.put, keyed[K]{k, of})
}

// find is the last step noted under a key; false: none, or forgotten.
func (r *recent[K]) find(k K) (account.Ref, bool) {
	if n := len(r.put); n > 0 && r.put[n-1].key == k { // parts mostly follow their step
		return r.put[n-1].of, true
	}
	for _, p := range r.put {
		if r.now == nil || len(r.now) >= mostBooked {
			r.now, r.before = make(map[K]account.Ref, len(r.now)), r.now
		}
		r.now[p.key] = p.of
	}
	r.put = r.put[:0]
	of, ok := r.now[k]
	if !ok {
		of, ok = r.before[k]
	}
	return of, ok
}

// Limits of Due. The account of 100,000 steps takes 0.2 s.
const (
	dueAlways = 512         // steps up to which each report is due
	dueShare  = 64          // of so many steps, one must be new
	dueQuiet  = time.Minute // after which a report is due anyway
)

// Due reports whether the account of a running job is to be reported again, with reported steps in the last report and a quiet time: beyond 512 steps only if 1
// in 64 is new, after a minute without news, or if the ledger has fewer steps than then (Fit has merged some). So accounts take a few ms per interval of
// metrics.
func (b *Book) Due(reported int, quiet time.Duration) bool {
	n := b.Ledger.Len()
	return n <= dueAlways || n < reported || n-reported >= n/dueShare || quiet >= dueQuiet
}

// File is the log of a writer; "": not known.
func (b *Book) File(of int32) string {
	for w, n := range b.writers {
		if n == of {
			return w.File
		}
	}
	return ""
}

// Writer is a writer of steps: the number of its source, as in Names, the log, "" if unknown, and the rank, −1 if unknown.
type Writer struct {
	Source int32
	File   string
	Rank   int64
}

// Names are the sources and the writers by their numbers in the ledger's steps.
func (b *Book) Names() (sources []string, writers []Writer) {
	sources, writers = make([]string, min(len(b.sources), mostWriters)), make([]Writer, min(len(b.writers), mostWriters))
	for name, n := range b.sources {
		sources[n] = name
	}
	for w, n := range b.writers {
		writers[n] = w
	}
	return sources, writers
}

// Restore fills an empty book with the content of a previous one. Later parts of the restored steps find no step.
func Restore(sources []string, writers []Writer, steps []account.Step) *Book {
	b := &Book{sources: map[string]int32{}, writers: map[Writer]int32{}}
	for _, name := range sources {
		number(&b.sources, name, text)
	}
	for _, w := range writers {
		b.writer(w)
	}
	for i := range steps {
		b.numbers.note(numbered{int32(steps[i].Source), anyFile, steps[i].Number}, b.Ledger.Add(steps[i]))
	}
	b.Ledger.Stored(len(steps))
	return b
}

// Fit ends a message: steps whose numbers restart with each epoch are numbered over all epochs. Then Fit merges neighbouring steps of the largest book, again
// and again, until all books together have at most most steps, or no merge frees any more.
func Fit(books iter.Seq[*Book], most int) {
	for b := range books {
		b.settle()
	}
	for {
		var largest *Book
		sum := 0
		for b := range books {
			n := b.Ledger.Len()
			if sum += n; largest == nil || n > largest.Ledger.Len() {
				largest = b
			}
		}
		if sum <= most || !largest.Ledger.Merge() {
			return
		}
	}
}

// number is the number of a key in a map, the next one for a new key. own is the copy of a key to keep. All keys beyond mostWriters share the number
// mostWriters.
func number[K comparable](m *map[K]int32, k K, own func(K) K) int32 {
	n, ok := (*m)[k]
	if ok {
		return n
	}
	if *m == nil {
		*m = map[K]int32{}
	}
	n = int32(len(*m))
	if n < mostWriters {
		(*m)[own(k)] = n
	}
	return n
}

// text is a copy of a name: a reference would keep the whole message alive.
func text(s string) string { return strings.Clone(s[:min(len(s), textLimit)]) }
