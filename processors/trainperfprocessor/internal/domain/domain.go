// Package domain dispatches spans to the domains of train_perf. A domain is a package that judges spans of certain kinds, independent of the rest.
package domain

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
)

// Domain is train_perf's knowledge of one kind of work. Batches may come concurrently: each batch has a Judge; state shared between batches (sliding windows,
// episodes) has a lock.
type Domain interface {
	// Kinds are the kinds of spans to judge, disjoint between domains.
	Kinds() []view.Kind
	// Outcomes are the names of the outcomes of a span, in the order of Tally.Outcomes.
	Outcomes() []string
	// NewJudge makes a judge, reused for batch after batch. At is the place of the current span; status: a bad verdict is an error of its span.
	NewJudge(at *At, status bool) Judge
}

// Judge judges a batch, resource by resource, in place. Spans without a judgement pass unchanged, and are counted.
type Judge interface {
	// Span takes a span of one of the domain's kinds.
	Span(kind view.Kind, span ptrace.Span)
	// EndResource judges with all spans of a resource taken. It is called where any judge has taken a span.
	EndResource()
	// Tally counts the outcomes of the batch's spans.
	Tally() *Tally
	// Reset drops the batch: spans, and strings that may share memory with them.
	Reset()
}

// ShareResolution is far below the precision of milliseconds with three decimals, and above the rounding error of float sums: 0.1 s + 0.2 s of 1 s is not more
// than 30 %.
const ShareResolution = 1e-9

// Exceeds reports whether a share is above its limit. A limit of 0 is none; NaN, an unknown share, is never above.
func Exceeds(share, limit float64) bool { return limit > 0 && share > limit+ShareResolution }

// At is where spans stand.
type At struct {
	view.Resource
	Attributes pcommon.Map // of the resource
	Scope      pcommon.Map // the attributes of the scope
	Memory     *verdict.Memory
}

// Tally counts the outcomes of a batch's spans.
type Tally struct {
	Outcomes []int64
	Evicted  int64 // windows dropped to make room
}

// NewTally returns a tally for so many outcomes.
func NewTally(outcomes []string) Tally { return Tally{Outcomes: make([]int64, len(outcomes))} }

// reset sets the counts to 0.
func (t *Tally) reset() {
	clear(t.Outcomes)
	t.Evicted = 0
}

// Panel has a judge of each domain, and their common place in the batch.
type Panel struct {
	Judges []Judge // in the order of the domains
	at     At
	wanted bool    // a judge has taken a span of this resource, so the resource has been read
	byKind []Judge // by view.Kind; nil: no domain judges the kind
}

// NewPanel returns a panel with a judge of each domain. The memory has the verdicts of spans judged before; nil: none. status: a bad verdict is an error of its
// span.
func NewPanel(memory *verdict.Memory, status bool, domains ...Domain) *Panel {
	p := new(Panel)
	p.at.Memory = memory
	for _, d := range domains {
		judge := d.NewJudge(&p.at, status)
		p.Judges = append(p.Judges, judge)
		for _, kind := range d.Kinds() {
			for int(kind) >= len(p.byKind) {
				p.byKind = append(p.byKind, nil)
			}
			p.byKind[kind] = judge
		}
	}
	return p
}

// Judge passes each span of a batch to the judge of its kind, and ends each resource of which a judge has taken a span (EndResource).
func (p *Panel) Judge(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		p.at.Attributes, p.wanted = rs.Resource().Attributes(), false
		for _, ss := range rs.ScopeSpans().All() {
			p.at.Scope = ss.Scope().Attributes()
			list := ss.Spans()
			for i := range list.Len() {
				p.span(list.At(i))
			}
		}
		if !p.wanted { // no judge has taken a span: of a resource of ranks, for example, whose collective's root has another resource
			continue
		}
		for _, j := range p.Judges {
			j.EndResource()
		}
	}
}

// span passes a span to the judge of its kind. The resource is read for the first span that any judge takes: most resources have none.
func (p *Panel) span(span ptrace.Span) {
	if view.IsDetail(span) { // no domain judges details
		return
	}
	kind := view.KindOf(span)
	if int(kind) >= len(p.byKind) {
		return
	}
	j := p.byKind[kind]
	if j == nil {
		return
	}
	if !p.wanted {
		p.at.Read(p.at.Attributes)
		p.wanted = true
	}
	j.Span(kind, span)
}

// Reset makes the judges drop the batch.
func (p *Panel) Reset() {
	for _, j := range p.Judges {
		j.Tally().reset()
		j.Reset()
	}
	p.at = At{Memory: p.at.Memory}
}
