package tq

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/domain"
	"github.com/trainbridge/trainbridge/spans"
)

const childStages = 3 // get, compute, put

// spanKey names a span. Span ids alone are unique only within their trace.
type spanKey struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// function is a function span with its attributes.
type function struct {
	view.Function

	span ptrace.Span
	key  spanKey
}

// child is a stage span of a function.
type child struct {
	fn         int32 // index of the function, −1 while unknown
	stage      spans.TQStage
	open       bool    // the duration is unknown
	parent     spanKey // the function's
	id         pcommon.SpanID
	start, end uint64 // ns
}

// apart is a stage span not preceded by its function.
type apart struct {
	child  int32 // index in children
	span   ptrace.Span
	name   string // of the function
	judged bool   // by another train_perf
}

// judge is the memory of a batch.
type judge struct {
	*Domain
	at    *domain.At
	tally domain.Tally
	sheet verdict.Sheet

	scope       pcommon.Map // of the last span
	scopeJudged bool        // another train_perf has seen the spans of the scope

	stage     view.Stage        // of the last stage or client operation
	functions []function        // of the resource
	children  []child           // stages of the resource
	apart     []apart           // of children, those that did not follow their function
	byKey     map[spanKey]int32 // functions by span, while apart are assigned

	summary verdict.Summary
	saying  saying
}

// Tally implements domain.Judge.
func (j *judge) Tally() *domain.Tally { return &j.tally }

// Reset implements domain.Judge.
func (j *judge) Reset() {
	j.endResource()
	j.sheet.Reset()
	j.scope, j.stage, j.saying = pcommon.Map{}, view.Stage{}, saying{}
}

// endResource empties the memory of a resource; spans are cleared, because they point into the batch.
func (j *judge) endResource() {
	clear(j.functions)
	clear(j.apart)
	j.functions, j.children, j.apart = j.functions[:0], j.children[:0], j.apart[:0]
}

// Span keeps a function or a stage until EndResource. Client operations need no other span and are judged at once. A scope with the attribute AttrTQJudged was
// judged by an earlier train_perf; the attribute is set here.
func (j *judge) Span(kind view.Kind, span ptrace.Span) {
	if j.scope != j.at.Scope {
		j.scope = j.at.Scope
		_, j.scopeJudged = j.scope.Get(spans.AttrTQJudged)
		if !j.scopeJudged {
			j.scope.PutBool(spans.AttrTQJudged, true)
		}
	}
	if kind == view.KindFunction {
		j.functions = append(j.functions, function{span: span, key: spanKey{span.TraceID(), span.SpanID()}})
		f := &j.functions[len(j.functions)-1]
		f.Read(span)
		f.Judged = f.Judged || j.scopeJudged
		return
	}
	j.stage.Read(span)
	j.stage.Judged = j.stage.Judged || j.scopeJudged
	switch j.stage.Stage {
	case spans.TQGet, spans.TQCompute, spans.TQPut:
		j.addChild(span)
	case spans.TQClientGet, spans.TQClientPut:
		j.judgeClient(span)
	}
}

// addChild adds a stage, with its function if that was the last function before.
func (j *judge) addChild(span ptrace.Span) {
	c := child{
		fn: -1, stage: j.stage.Stage, parent: spanKey{span.TraceID(), span.ParentSpanID()}, id: span.SpanID(),
		start: uint64(span.StartTimestamp()), end: uint64(span.EndTimestamp()),
	}
	c.open = j.stage.Incomplete || c.end < c.start
	// tq_trace writes the children right after their function.
	if last := len(j.functions) - 1; last >= 0 && j.functions[last].key == c.parent {
		c.fn = int32(last)
	}
	if c.fn < 0 {
		j.apart = append(j.apart, apart{child: int32(len(j.children)), span: span, name: j.stage.Function, judged: j.stage.Judged})
	}
	j.children = append(j.children, c)
}

// EndResource judges the functions of one resource. A function and its stages share a resource, and tq_trace sends them together. The SDK of a Go service sends
// spans as they end: a function may come without its stages, and its span carries the shares.
func (j *judge) EndResource() {
	j.assignStages()
	next := 0
	for i := range j.functions {
		first := next
		for next < len(j.children) && j.children[next].fn == int32(i) {
			next++
		}
		j.tally.Outcomes[j.measureFunction(&j.functions[i], j.children[first:next])]++
	}
	j.endResource()
}

// assignStages assigns stages that did not follow their function, judges stages without a function alone, and sorts the others by function and, within a
// function, by time.
func (j *judge) assignStages() {
	if len(j.apart) > 0 {
		if j.byKey == nil {
			j.byKey = make(map[spanKey]int32)
		}
		clear(j.byKey)
		for i := range j.functions {
			j.byKey[j.functions[i].key] = int32(i)
		}
		for i := range j.apart {
			a := &j.apart[i]
			c := &j.children[a.child]
			if fn, ok := j.byKey[c.parent]; ok {
				c.fn = fn
			} else {
				j.judgeStageAlone(a, c)
			}
		}
		j.children = slices.DeleteFunc(j.children, func(c child) bool { return c.fn < 0 })
	}
	order := func(a, b child) int { return cmp.Or(cmp.Compare(a.fn, b.fn), cmp.Compare(a.start, b.start)) }
	if !slices.IsSortedFunc(j.children, order) {
		slices.SortStableFunc(j.children, order)
	}
}
