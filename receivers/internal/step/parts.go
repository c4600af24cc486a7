package step

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// part is a stage of a record on its way to a span.
type part struct {
	*stage
	ns    int64 // duration
	start int64
	next  int64  // where the next part below this one starts
	order string // AttrStageOrder: whether the trainer's code shows the order
	above int    // index of the enclosing part; ofStep: the step
}

const (
	ofStep = -1
	// maxPlaced bounds the parts with a place: a trainer has a third as many.
	maxPlaced = 64
	// tick is the least time between the starts of two parts, and between the end of a part and the start of the next. Jaeger counts microseconds, draws spans
	// with the same start in any order, and leaves a span that ends as the next begins out of the critical path.
	tick = 1000
	// slack bounds the delay of a part beyond end to end because of the ticks.
	slack = (2*maxPlaced + maxRanks) * tick
)

// parts adds the spans of a record's stages. Logs have the durations of parts, not their times: each part is drawn below its enclosing part, end to end with
// its neighbours, in the order of the trainer's code. Parts unknown to the code start at the beginning of the step, a tick apart; in a Side, whose beginning is
// unknown, they end with the Side. No part starts too late to end within its enclosing part.
func (b *stepBatch) parts(out *spans.Batch, it *item) {
	if it.stagesFrom == it.stagesTo {
		return
	}
	it.parts = 0
	ps, total := b.laid[:0], int64(0)
	for i := it.stagesFrom; i < it.stagesTo; i++ {
		st := &b.stages[i]
		ps = append(ps, part{stage: st, ns: nanos(st.seconds), above: ofStep, order: spans.OrderUnknown})
	}
	// In the order of the code; parts unknown to the code come after, as logged. An enclosing part so comes before its parts.
	slices.SortStableFunc(ps, func(a, b part) int { return cmp.Compare(a.codeOrder(), b.codeOrder()) })
	placed := 0 // the parts before this index have a place
	for placed < min(len(ps), maxPlaced) && ps[placed].place != nil {
		p := &ps[placed]
		p.above, p.order = enclosing(ps[:placed], p.place), spans.OrderTrainer
		placed++
	}
	for i := range ps {
		if ps[i].above == ofStep && i < placed {
			total += ps[i].untilNext()
		}
	}
	total = max(0, total-tick) // the last part has no next one
	// The step, as the part around all others.
	step := part{start: it.start, next: it.start, ns: it.end - it.start}
	switch {
	case it.kind == record.Side: // without a span: its parts end with it
		step.start, step.next, step.ns = it.end-total, it.end-total, total
	case step.ns == 0:
		step.ns = total // Jaeger would take parts that begin before their step for a clock skew, with a warning on each
	}
	for i := range ps {
		p := &ps[i]
		whole := &step
		if p.above != ofStep {
			whole = &ps[p.above]
		}
		latest := whole.start + whole.ns - p.ns // a later start would end after the enclosing part
		switch {
		case i < placed:
			p.start = whole.next
			if p.start > max(whole.start, latest) {
				if p.start > latest+slack { // the parts do not run end to end after all
					p.order = spans.OrderUnknown
				}
				p.start = max(whole.start, latest)
			}
		case it.kind == record.Side:
			p.start = latest
		default:
			p.start = max(whole.start, min(whole.start+int64(i-placed)*tick, latest))
		}
		// The ranks come before the parts below.
		p.next = p.start + int64(min(p.ranksTo-p.ranksFrom, maxRanks))*tick
		whole.next = max(whole.next, p.start+p.untilNext())
		b.part(out, it, ps, p)
	}
	clear(ps)
	b.laid = ps[:0]
}

// untilNext returns the time from the start of a part to the start of the next, ns.
func (p *part) untilNext() int64 {
	if p.ns < tick {
		return tick
	}
	return p.ns + tick
}

// nanos returns a duration in ns; 0 for an implausible one.
func nanos(seconds float64) int64 {
	if seconds > 0 && seconds < maxSeconds {
		return int64(math.Round(seconds * 1e9))
	}
	return 0
}

// codeOrder returns the position of a part in the trainer's code, a large number if unknown.
func (p *part) codeOrder() int {
	if p.place == nil {
		return 1 << 30
	}
	return p.place.Order
}

// enclosing returns the index in ps of the innermost logged part around a place; ofStep: none.
func enclosing(ps []part, place *record.Place) int {
	for u := place.Under; u != nil; u = u.Under {
		if i := slices.IndexFunc(ps, func(p part) bool { return p.place == u }); i >= 0 {
			return i
		}
	}
	return ofStep
}

// part adds the span of p, one of the parts ps, below its enclosing part or the step, with the spans of p's ranks. A part of a Side, which has no span, is put
// below the step that the Side belongs to.
func (b *stepBatch) part(out *spans.Batch, it *item, ps []part, p *part) {
	parent := it.id
	switch {
	case p.above != ofStep:
		parent = b.partID(it, ps[p.above].name)
	case it.kind == record.Side: // no span
		parent = it.parent
	}
	s := out.Add(b.partResource(it), spans.Span{
		Trace: it.trace, ID: b.partID(it, p.name), Parent: parent, Name: p.name,
		Is: spans.KindPart, Kind: ptrace.SpanKindInternal, Start: p.start, End: p.start + p.ns, Source: spans.TimeSynthetic, Attributes: 8,
	})
	m := s.Attributes()
	m.PutStr(spans.AttrStage, p.name)
	m.PutStr(spans.AttrStageOrder, p.order)
	putRank(m, it.rank, it.local)
	if p.hasMin {
		putNumber(m, spans.AttrStageDurationMin, p.min)
	}
	if p.ranksTo > p.ranksFrom {
		b.rankParts(out, it, p, m, s.SpanID())
	}
}

// partID returns the id of the span of a record's part.
func (b *stepBatch) partID(it *item, name string) pcommon.SpanID {
	return spans.SpanID(it.trace, spans.AttrStage, it.id[:], []byte(name))
}
