package domain

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listener is a domain that records its calls.
type listener struct {
	kinds []view.Kind
	at    *At
	tally Tally
	calls []string
}

func (l *listener) Kinds() []view.Kind { return l.kinds }

func (l *listener) Outcomes() []string { return []string{"seen", "resources"} }

func (l *listener) NewJudge(at *At, _ bool) Judge {
	l.at, l.tally = at, NewTally(l.Outcomes())
	return l
}

func (l *listener) Span(kind view.Kind, span ptrace.Span) {
	scope, _ := l.at.Scope.Get("scope")
	l.calls = append(l.calls, strings.Join([]string{l.at.Run, scope.Str(), kind.String(), span.Name()}, " "))
	l.tally.Outcomes[0]++
}

func (l *listener) EndResource() {
	l.calls = append(l.calls, "end of "+l.at.Run)
	l.tally.Outcomes[1]++
}

func (l *listener) Tally() *Tally { return &l.tally }

func (l *listener) Reset() { l.calls = nil }

// TestPanel: each domain gets the spans of its kinds with their place, and the ends of resources.
func TestPanel(t *testing.T) {
	td := ptrace.NewTraces()
	for _, run := range []string{"one", "two"} {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(spans.AttrRunID, run)
		for _, scope := range []string{"a", "b"} {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().Attributes().PutStr("scope", scope)
			for _, name := range []string{spans.SpanStep, spans.SpanRPCPass, spans.SpanNCCLRank, "GET /"} {
				ss.Spans().AppendEmpty().SetName(name)
			}
		}
	}
	steps, passes := &listener{kinds: []view.Kind{view.KindStep}}, &listener{kinds: []view.Kind{view.KindPass, view.KindCalls, view.KindRank}}
	p := NewPanel(nil, true, steps, passes)
	p.Judge(td)
	assert.Equal(t, []string{
		"one a step train.step", "one b step train.step", "end of one", "two a step train.step", "two b step train.step", "end of two",
	}, steps.calls)
	assert.Equal(t, []string{
		"one a pass rpc.pass", "one b pass rpc.pass", "end of one", "two a pass rpc.pass", "two b pass rpc.pass", "end of two",
	}, passes.calls, "what is below collectives comes to nobody")
	assert.Equal(t, []int64{4, 2}, steps.Tally().Outcomes)
	p.Reset()
	assert.Equal(t, []int64{0, 0}, steps.Tally().Outcomes)
	assert.Zero(t, *steps.at)
}

func TestExceeds(t *testing.T) {
	assert.True(t, Exceeds(0.31, 0.3))
	assert.False(t, Exceeds(0.3, 0.3))
	sum := 0.1
	sum += 0.2
	assert.Greater(t, sum, 0.3)
	assert.False(t, Exceeds(sum, 0.3), "what adding up floats gets wrong")
	assert.False(t, Exceeds(1, 0), "0 is no limit")
}
