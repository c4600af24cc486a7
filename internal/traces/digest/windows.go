package digest

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Window sums up the breakdowns of a kind: the time of steps, of batches or of passes.
type Window struct {
	Of        string // a spans.Window… value; "": unknown
	Took      Values // s, of each window
	Over      Series // s, by iteration; without one, by ordinal
	Parts     map[string]*Part
	Judged    int64 // windows with a usual time; for the others step_join saw too few like them
	SlowCount int
	Excess    Total                // s, excess of slow windows over the usual time
	Devices   Total                // s, the excess multiplied by the job's current ranks
	Slow      Top[Slow]            // the dearest thousand
	Worst     Top[[]view.PartTime] // the parts of the dearest
	SlowTook  Values               // s, of the slow ones
	Longest   Top[view.Int]        // the iterations of the longest
	sample    Top[sampled]         // a random sample of all, for Typical
	costs     table[blame, Cost]
	Verdicts
}

// Files returns in how many logs the windows are, by a sample of the windows.
func (w *Window) Files() int {
	files := map[string]bool{}
	for i := range w.sample {
		files[w.sample[i].File] = true
	}
	return len(files)
}

// Part is the exclusive time of a part, in s; Slow of slow windows. Both are of windows whose logs have the part.
type Part struct {
	Name      string
	All, Slow Values
	Devices   Total  // s, of All, multiplied by the job's current ranks; 0: unknown
	Over      Series // s, by iteration
}

// Slow is a window longer than usual.
type Slow struct {
	Iteration view.Int
	Took      float64 // s
	Usual     float64 // s; NaN: not known
	Over      float64 // s above the limit
	Reason    string  // a sentence
}

// sampled is a candidate for a typical window.
type sampled struct {
	iteration view.Int
	took      float64
}

const mostSampled = 512

// SlowOf returns the verdict that the window of a breakdown was slow; false: not slow.
func SlowOf(s ptrace.Span) (Slow, bool) {
	for v := range view.Verdicts(s) {
		if v.Name == spans.VerdictStepSlow {
			return Slow{Took: v.Value, Over: orZero(v.Value - v.Threshold), Reason: v.Reason}, true
		}
	}
	return Slow{}, false
}

// Windows are the breakdowns, by kind.
type Windows struct {
	by table[string, Window]
	b  view.Breakdown // of the last window

	bare ptrace.Span // see addBare
}

// addBreakdown adds the breakdown of a window: a span of step_join with the time of the window by part and, if the window was slow, the causes.
func (d *Digest) addBreakdown(s ptrace.Span, res *resource) {
	d.Windows.b.Read(s)
	d.addWindow(s, res)
}

// addBare adds a breakdown without a span, and returns a span with nothing but the ids and the time, valid until the next call.
func (d *Digest) addBare(w *spans.Window, res *resource) ptrace.Span {
	s := &d.Windows.bare
	if *s == (ptrace.Span{}) {
		*s = ptrace.NewSpan()
	}
	s.SetTraceID(w.Trace)
	s.SetSpanID(w.ID)
	s.SetStartTimestamp(spans.Timestamp(w.Start))
	s.SetEndTimestamp(s.StartTimestamp() + 1)
	d.Windows.b.Take(w)
	d.addWindow(*s, res)
	return *s
}

// addWindow adds the breakdown in d.Windows.b, with the ids, the time, the verdicts and the causes of a span.
func (d *Digest) addWindow(s ptrace.Span, res *resource) {
	b := &d.Windows.b
	res.places = d.places // until the end of the function, Top.add looks up the place of the window
	w := d.Windows.by.findOrMake(b.Window, Other, mostLogs, func(name string) (string, *Window) {
		name = shortText(name)
		return name, &Window{Of: name, Parts: map[string]*Part{}}
	})
	d.countVerdicts(s, &b.Head, res, &w.Verdicts)
	took := b.Length()
	w.Took.Add(took)
	at := b.Iteration.Or(w.Took.Count()) // without a number, the ordinal
	w.Over.Add(at, took)
	if longest := w.Longest.add(mostShown, took, s, res); longest != nil {
		*longest = b.Iteration
	}
	id := s.TraceID() // a hash: the lowest are a random sample
	if candidate := w.sample.add(mostSampled, -float64(binary.BigEndian.Uint32(id[8:])), s, res); candidate != nil {
		*candidate = sampled{b.Iteration, took}
	}
	slow, isSlow := SlowOf(s)
	if !math.IsNaN(b.Usual) {
		w.Judged++
	}
	// A slow window, and its causes.
	if isSlow {
		w.SlowCount++
		w.Excess.Add(b.Excess)
		w.Devices.Add(b.Excess * float64(b.WorldSize.Or(0)))
		w.SlowTook.Add(slow.Took)
		if entry := w.Slow.add(mostSlow, slow.Over, s, res); entry != nil {
			slow.Iteration, slow.Usual, slow.Reason = b.Iteration, b.Usual, shortText(slow.Reason)
			*entry = slow
		}
		if times := w.Worst.add(1, slow.Over, s, res); times != nil {
			*times = slices.Clone(b.Times)
			for i := range *times {
				(*times)[i].Part = shortText((*times)[i].Part)
			}
		}
		w.addCauses(s, b, res)
	}
	// The time by part.
	for _, p := range b.Times {
		part := w.part(p.Part)
		part.All.Add(p.Seconds)
		part.Devices.Add(p.Seconds * float64(b.WorldSize.Or(0)))
		part.Over.Add(at, p.Seconds)
		if isSlow {
			part.Slow.Add(p.Seconds)
		}
	}
	res.places = nil
}

// part returns a part by name, made if absent. Beyond mostDistributed names, further ones count as Other.
func (w *Window) part(name string) *Part {
	if part := w.Parts[name]; part != nil {
		return part
	}
	name = shortText(name)
	if len(w.Parts) >= mostDistributed {
		name = Other
	}
	part := w.Parts[name]
	if part == nil {
		part = &Part{Name: name}
		w.Parts[name] = part
	}
	return part
}

// windowOrder is the order of kinds of windows, enclosing ones first.
var windowOrder = map[string]int{spans.WindowStep: -3, spans.WindowBatch: -2, spans.WindowPass: -1}

// Rows returns the kinds of windows, enclosing ones first.
func (d *Windows) Rows() []*Window {
	return d.by.rows(func(a, b *Window) int {
		return cmp.Or(cmp.Compare(windowOrder[a.Of], windowOrder[b.Of]), cmp.Compare(a.Of, b.Of))
	})
}

// ByTime returns the parts by time, the largest first; the unattributed rest comes last.
func (w *Window) ByTime() []*Part {
	var all []*Part
	for _, p := range w.Parts {
		if p.All.Count() > 0 {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *Part) int {
		last := func(p *Part) int {
			if p.Name == spans.PartUnattributed {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(b.All.Sum(), a.All.Sum()), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Share returns which share of the time of the windows a part took, 0 to 1; NaN: no time.
func (w *Window) Share(p *Part) float64 {
	if w.Took.Sum() == 0 {
		return math.NaN()
	}
	return p.All.Sum() / w.Took.Sum()
}

// Typical returns the place and the iteration of a window of about median length: of mostSampled windows chosen by id, the closest. false: no window.
func (w *Window) Typical() (at At, iteration view.Int, ok bool) {
	middle, closest := w.Took.Quantile(0.5), math.Inf(1)
	for i := range w.sample {
		if off := math.Abs(w.sample[i].Of.took - middle); off < closest {
			at, iteration, ok, closest = w.sample[i].At, w.sample[i].Of.iteration, true, off
		}
	}
	return at, iteration, ok
}

// orZero returns v, or 0 for NaN.
func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}
