package view

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Throttled is for how long a cause held down the clocks of a GPU.
type Throttled struct {
	Cause   string
	Seconds float64
}

// throttled adds a cause.
func (g *GPUs) throttled(cause string) *Throttled {
	g.Throttled = append(g.Throttled, Throttled{Cause: cause})
	return &g.Throttled[len(g.Throttled)-1]
}

// PartTime is the time of a part, in s.
type PartTime struct {
	Part    string  // a Part… value
	Seconds float64 // exclusive: the times of all parts add up to the window's length
	Sum     float64 // of the durations of all its spans
	Union   float64 // wall-clock time with at least one of its spans
}

// Read reads a span of KindBreakdown. It reuses the memory of its lists.
func (b *Breakdown) Read(span ptrace.Span) {
	times, throttled := b.Times[:0], b.GPUs.Throttled[:0]
	*b = noBreakdown
	b.Times, b.GPUs.Throttled = times, throttled
	b.take(span.Attributes())
}

// Take makes the breakdown of a value without a span. It reuses the memory of its lists.
func (b *Breakdown) Take(w *spans.Window) {
	times, throttled := b.Times[:0], b.GPUs.Throttled[:0]
	*b = noBreakdown
	b.Times, b.GPUs.Throttled = times, throttled
	b.Window, b.Usual = w.Of, w.Usual
	if w.Iteration >= 0 {
		b.Iteration = Int{N: w.Iteration, OK: true}
	}
	if w.Ranks > 0 {
		b.WorldSize = Int{N: w.Ranks, OK: true}
	}
	b.Times = append(b.Times, PartTime{spans.PartUnattributed, w.Seconds, absent, absent})
}

// Lacks reports whether spans of the window may be missing, so that its times cannot be added to those of others. With clocks apart none is missing: time whose
// place is uncertain is unattributed.
func (b *Breakdown) Lacks() bool { return b.Partial && b.PartialReason != spans.PartialClocks }

// Length returns the length of the window, in s: the exclusive times of all parts together.
func (b *Breakdown) Length() (sum float64) {
	for _, p := range b.Times {
		if p.Seconds > 0 {
			sum += p.Seconds
		}
	}
	return sum
}

// part finds or adds a part. A breakdown has some 15; attributes of the same part are mostly neighbours.
func (b *Breakdown) part(part string) *PartTime {
	for i := len(b.Times) - 1; i >= 0; i-- {
		if b.Times[i].Part == part {
			return &b.Times[i]
		}
	}
	b.Times = append(b.Times, PartTime{part, absent, absent, absent})
	return &b.Times[len(b.Times)-1]
}

// Causes returns the causes in a span of KindBreakdown, the largest first.
func Causes(span ptrace.Span) iter.Seq[Cause] {
	return func(yield func(Cause) bool) {
		for _, e := range span.Events().All() {
			if e.Name() == spans.EventCause && !yield(causeOf(e)) {
				return
			}
		}
	}
}

// causeOf reads the event of a cause.
func causeOf(e ptrace.SpanEvent) Cause {
	out := noCause
	out.take(e.Attributes())
	return out
}
