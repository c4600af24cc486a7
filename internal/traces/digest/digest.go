// Package digest sums up spans: sums and distributions per TransferQueue function, series per training log, RPCs and their passes, collectives per operation
// and communicator, the time of steps by part and its cost, the number of each verdict. It prints nothing: code that prints, plots or compares reads the
// figures here.
//
// Spans are added one by one, in any order, and not kept. Memory is bounded: see [Values], [Top], [Series] and [Most]. The figures are independent of the order
// of spans, but for the last digits of sums and for names beyond the limits. Times are in s, sizes in By, rates per second.
package digest

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Digest sums up spans, domain by domain. The zero value is empty.
type Digest struct {
	Functions   Functions
	Steps       Steps
	Passes      Passes
	Collectives Collectives
	Windows     Windows
	Verdicts    Findings

	places *places        // where windows stand in the logs, for their breakdowns; nil: of no interest
	kept   quantileBudget // the budget of values; of a job unused: Jobs has one for all
}

// resource is the origin of the current spans, and the place of their record in a log.
type resource struct {
	view.Resource

	file   string  // the log; "": not said
	offset int64   // By, of the first line of the record; -1: not said
	places *places // places of the windows, for a breakdown, which is in no log: see at
}

// locate reads the place of a record in a log from the attributes of a span. Only the first span of a record has them: for the others found is false, and the
// last place stays.
func (r *resource) locate(s ptrace.Span) (found bool) {
	for name, v := range s.Attributes().All() {
		switch name {
		case spans.AttrLogFile:
			if file := v.Str(); file != r.file {
				r.file = shortText(file)
			}
		case spans.AttrLogOffset:
			r.offset, found = v.Int(), true
		}
	}
	return found
}

// Add adds a span. Parents are expected before the spans below them.
func (d *Digest) Add(s ptrace.Span, kind view.Kind, res *view.Resource) {
	r := resource{Resource: *res, offset: -1}
	r.locate(s)
	d.span(s, kind, &r)
	d.Collectives.orphans = d.Collectives.orphans[:0] // only Jobs.Batch has the rest of the message
	d.kept.count(1, d.each)
}

// each calls f for every distribution of the digest. A new field of type Values must be added here: quantileBudget limits the memory of those listed.
func (d *Digest) each(f func(*Values)) {
	all := func(values ...*Values) {
		for _, v := range values {
			f(v)
		}
	}
	for _, x := range d.Functions.by.by {
		all(&x.Took, &x.Stages[0], &x.Stages[1], &x.Stages[2], &x.Overhead)
	}
	for _, x := range d.Functions.operations {
		all(&x.Took, &x.Size, &x.Throughput)
	}
	for _, x := range d.Steps.by.by {
		for i := range x.Measures {
			f(&x.Measures[i].Values)
		}
		for _, m := range x.Parts {
			f(&m.Values)
		}
	}
	p := &d.Passes.Complete
	all(&p.Calls, &p.Duration, &p.Serialize, &p.Transport, &p.Server, &p.Throughput)
	d.Passes.Calls.each(f)
	for _, x := range d.Passes.logs.by {
		x.each(f)
	}
	for _, x := range append(d.Collectives.Rows(), d.Collectives.Operations()...) {
		all(&x.Took, &x.Algorithm, &x.Bus, &x.Late, &x.Records.Took, &x.Records.Bandwidth)
	}
	for _, w := range d.Windows.by.by {
		all(&w.Took, &w.SlowTook)
		for _, p := range w.Parts {
			all(&p.All, &p.Slow)
		}
	}
}

// Exact reports whether every quantile is exact.
func (d *Digest) Exact() bool {
	exact := true
	d.each(func(v *Values) { exact = exact && v.Exact() })
	return exact
}

// span adds a span to the domain of its kind.
func (d *Digest) span(s ptrace.Span, kind view.Kind, res *resource) {
	switch kind {
	case view.KindCallPart:
		d.Passes.addPart(s, res)
	case view.KindStage:
		d.addStage(s, res)
	case view.KindCall:
		d.addCall(s, res)
	case view.KindRank:
		if !d.Collectives.rankRecord(s, res) {
			d.Collectives.orphans = append(d.Collectives.orphans, orphan{s, *res})
		}
	case view.KindFunction:
		d.addFunction(s, res)
	case view.KindCollective:
		d.addCollective(s, res)
	case view.KindStep:
		d.addStep(s, res)
	case view.KindPart:
		d.Steps.addPart(s, res)
	case view.KindRanks, view.KindEvaluation:
		d.ranksOrEvaluation(s, kind, res)
	case view.KindPass, view.KindSession, view.KindCalls:
		d.addGroup(s, kind, res)
	case view.KindBreakdown:
		d.addBreakdown(s, res)
	}
}

// spanSeconds returns the length of a span, s; 0: the end is before the start.
func spanSeconds(s ptrace.Span) float64 {
	return float64(max(0, int64(s.EndTimestamp()-s.StartTimestamp()))) / 1e9
}
