package source

import (
	"context"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
)

// Memory is a Source of spans in memory.
type Memory struct {
	name   string
	traces []*tree.Trace
}

// NewMemory returns a source of spans, with a name for sentences. The spans must not change any more.
func NewMemory(name string, td ptrace.Traces) *Memory { return &Memory{name, tree.Build(td)} }

func (m *Memory) String() string { return m.name }

// Services implements Source.
func (m *Memory) Services(context.Context) ([]string, error) {
	known := map[string]bool{}
	var names []string
	for _, t := range m.traces {
		for _, s := range t.Spans {
			if name := s.Resource.Service; name != "" && !known[name] {
				known[name] = true
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// Trace implements Source.
func (m *Memory) Trace(_ context.Context, id pcommon.TraceID) (*tree.Trace, error) {
	i := slices.IndexFunc(m.traces, func(t *tree.Trace) bool { return t.ID == id })
	if i < 0 {
		return nil, noTrace(m, id)
	}
	return m.traces[i], nil
}

// Find implements Source.
func (m *Memory) Find(_ context.Context, q Query) (*Found, error) {
	var traces []*tree.Trace
	for _, t := range m.traces {
		ofService := len(q.Services) == 0 || slices.ContainsFunc(t.Spans, func(s *tree.Span) bool { return slices.Contains(q.Services, s.Resource.Service) })
		if ofService && (q.Run == "" || t.OfRun(q.Run)) {
			traces = append(traces, t)
		}
	}
	there := count(traces)
	traces = newest(traces, q.Limit)
	return &Found{Traces: traces, Share: Share{Read: count(traces), There: there}}, nil
}
