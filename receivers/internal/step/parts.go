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
	ns, start, next int64 // next is where the next part below it begins
	order           string
	above           int // the part that it is a part of; above: the step
}

const (
	ofStep = -1
	// maxPlaced bounds the parts whose place is looked for: a trainer has a third of that.
	maxPlaced = 64
	// tick is the least time between the starts of two parts, and between the end of a part and the start of the next. Jaeger counts microseconds, draws spans
	// with the same start in any order, and leaves a span that ends as the next begins out of the critical path.
	tick = 1000
	// slack bounds how much later than end to end a part may be drawn because of the ticks.
	slack = (2*maxPlaced + maxRanks) * tick
)

// parts draws the stages of a record: each below the stage it is a part of, end to end in the order in which the trainer's code runs them. Logs state
// how long parts took, not when. No part starts so late that it would end after the stage it is a part of.
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
	// In the order of the code; parts that the code does not tell of come after, as logged.
	slices.SortStableFunc(ps, func(a, b part) int { return cmp.Compare(a.code(), b.code()) })
	placed := 0
	for placed < min(len(ps), maxPlaced) && ps[placed].place != nil {
		p := &ps[placed]
		p.above, p.order = above(ps[:placed], p.place), spans.OrderTrainer
		placed++
	}
	for i := range ps {
		if ps[i].above == ofStep && i < placed {
			total += ps[i].takes()
		}
	}
	total = max(0, total-tick) // the last part has no next one
	// The step, as the part that all others are a part of.
	step := part{start: it.start, next: it.start, ns: it.end - it.start}
	switch {
	case it.kind == record.Side: // without a span: its parts end where it does
		step.start, step.next, step.ns = it.end-total, it.end-total, total
	case step.ns == 0:
		step.ns = total // parts that begin before their step would be a skew of clocks to Jaeger, with a warning on each
	}
	for i := range ps {
		p := &ps[i]
		whole := &step
		if p.above != ofStep {
			whole = &ps[p.above]
		}
		latest := whole.start + whole.ns - p.ns
		switch {
		case i < placed:
			if p.start = whole.next; p.start > max(whole.start, latest) {
				if p.start > latest+slack {
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
		whole.next = max(whole.next, p.start+p.takes())
		b.part(out, it, ps, p)
	}
	clear(ps)
	b.laid = ps[:0]
}

// takes is the time from the start of a part to the start of the next.
func (p *part) takes() int64 {
	if p.ns < tick {
		return tick
	}
	return p.ns + tick
}

func nanos(seconds float64) int64 {
	if seconds > 0 && seconds < maxSeconds {
		return int64(math.Round(seconds * 1e9))
	}
	return 0
}

// code orders parts as the trainer's code runs them.
func (p *part) code() int {
	if p.place == nil {
		return 1 << 30
	}
	return p.place.Order
}

// above is the innermost logged part that a place is in.
func above(ps []part, place *record.Place) int {
	for u := place.Under; u != nil; u = u.Under {
		if i := slices.IndexFunc(ps, func(p part) bool { return p.place == u }); i >= 0 {
			return i
		}
	}
	return ofStep
}

func (b *stepBatch) part(out *spans.Batch, it *item, ps []part, p *part) {
	parent := it.id
	switch {
	case p.above != ofStep:
		parent = b.partID(it, ps[p.above].name)
	case it.kind == record.Side: // it has no span
		parent = it.parent
	}
	s := out.Add(b.ofParts(it), spans.Span{
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

func (b *stepBatch) partID(it *item, name string) pcommon.SpanID {
	return spans.SpanID(it.trace, spans.AttrStage, it.id[:], []byte(name))
}
