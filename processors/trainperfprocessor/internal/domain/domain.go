// Package domain is how spans come to the domains of train_perf: each is a package that judges the spans of some kinds and knows nothing of the others.
package domain

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
)

// Domain is what train_perf knows about one kind of work. Batches may come concurrently: the state of one batch is in a Judge of its own, and what batches
// share (sliding windows, episodes) has a lock of its own.
type Domain interface {
	// Kinds of the spans that it judges. No other domain has one of them.
	Kinds() []view.Kind
	// Outcomes are the names of what may become of a span, in the order of Tally.Outcomes.
	Outcomes() []string
	// NewJudge makes the memory that judges batch after batch. At is where the spans of the batch stand; status says that a bad verdict is an error of its
	// span.
	NewJudge(at *At, status bool) Judge
}

// Judge judges a batch, resource by resource, in place. Spans that it cannot judge it leaves as they are, and counts.
type Judge interface {
	// Span takes a span of one of the domain's kinds.
	Span(kind view.Kind, span ptrace.Span)
	// EndResource judges what needs all spans of a resource: they were all taken by now. It is called where any judge has taken a span.
	EndResource()
	// Tally is what became of the spans of the batch.
	Tally() *Tally
	// Reset lets go of the batch: of its spans, and of strings that may share memory with it.
	Reset()
}

// ShareResolution is far below the precision of a log's milliseconds with three decimals, and above the error of adding them up as floats:
// 0.1 s + 0.2 s of 1 s is not more than 30 %.
const ShareResolution = 1e-9

// Exceeds says whether a share is above its limit; a limit of 0 is none. A share that is not known (NaN) is above nothing.
func Exceeds(share, limit float64) bool { return limit > 0 && share > limit+ShareResolution }

// At is where spans stand.
type At struct {
	view.Resource
	Attributes pcommon.Map // of the resource
	Scope      pcommon.Map // the attributes of the scope
	Memory     *verdict.Memory
}

// Tally counts what became of the spans of a batch.
type Tally struct {
	Outcomes []int64
	Evicted  int64 // windows that were forgotten, to make room
}

// NewTally counts the outcomes of a domain.
func NewTally(outcomes []string) Tally { return Tally{Outcomes: make([]int64, len(outcomes))} }

func (t *Tally) reset() {
	clear(t.Outcomes)
	t.Evicted = 0
}

// Panel is a judge of each domain, and where they are in the batch.
type Panel struct {
	Judges []Judge // in the order of the domains
	at     At
	wanted bool // a judge has taken a span of the resource, which was read then
	byKind []Judge
}

// NewPanel makes the judges. The memory has what was said of spans that come again; nil: none.
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

// Judge has the judges see each span of a batch that is of one of their kinds.
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
		if !p.wanted { // such as the resource of a rank: the root of its collective has another one
			continue
		}
		for _, j := range p.Judges {
			j.EndResource()
		}
	}
}

func (p *Panel) span(span ptrace.Span) {
	if view.IsDetail(span) { // no domain wants one
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

// Reset has the judges let go of the batch.
func (p *Panel) Reset() {
	for _, j := range p.Judges {
		j.Tally().reset()
		j.Reset()
	}
	p.at = At{Memory: p.at.Memory}
}
