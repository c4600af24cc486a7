package step

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/tail"
)

// numbered is a stream that knows its held lines.
type numbered struct {
	direct

	at   int
	open map[tail.Held]int
}

func (n *numbered) Hold() tail.Held {
	h := n.direct.Hold()
	n.open[h] = n.at
	return h
}

func (n *numbered) Release(h tail.Held) {
	n.direct.Release(h)
	delete(n.open, h)
}

// Reading again from the beginning of a batch, with the state saved there, gives the same spans: not only the same ids.
func TestReadAgain(t *testing.T) {
	lines := []string{
		"step it=1 stamp=2026-01-01T00:00:01 memMiB=3", "step it=2 stamp=2026-01-01T00:00:02", "step it=5 stamp=2026-01-01T00:00:10 open", "side dur=0.5 loss=1",
		"eval it=5 dur=1 stamp=2026-01-01T00:00:12", "step it=6 stamp=2026-01-01T00:00:20", "[rank1]: step it=3 dur=1 stamp=2026-01-01T00:00:21",
		"step it=3 stamp=2026-01-01T00:00:30 open a:1", "side late:1", "restart", "step it=4 stamp=2026-01-01T00:00:31", "step loss=3 stamp=2026-01-01T00:00:35",
		"model", "step loss=4 stamp=2026-01-01T00:00:39 trace=x", "eval vloss=4 stamp=2026-01-01T00:00:40", "step it=9 stamp=2026-01-01T00:00:41 open trace=y", "side b:2",
	}
	// read passes the lines to a handler, beginning at a given one, and calls at before each.
	read := func(from int, state []byte, at func(line int, h *handler, s *numbered)) map[pcommon.SpanID]any {
		res, s := &result{}, &numbered{open: make(map[tail.Held]int)}
		h := handlerWith(t, &s.direct, &res.traces, nil)
		h.stream = s
		if state != nil {
			h.Restore(state)
		}
		for i := from; i < len(lines); i++ {
			at(i, h, s)
			s.at = i
			h.Line(&tail.Line{Text: []byte(lines[i]), Observed: written, ModTime: written})
		}
		h.flushPending()
		require.NoError(t, h.Cut().Send(context.Background()))
		content := make(map[pcommon.SpanID]any)
		for _, td := range res.traces.AllTraces() {
			for _, rs := range td.ResourceSpans().All() {
				for _, ss := range rs.ScopeSpans().All() {
					for _, span := range ss.Spans().All() {
						content[span.SpanID()] = said(rs.Resource().Attributes(), span)
					}
				}
			}
		}
		return content
	}
	type mark struct {
		from  int
		state []byte
	}
	var marks []mark
	whole := read(0, nil, func(line int, h *handler, s *numbered) {
		marks = append(marks, mark{min(line, slices.Min(append(slices.Collect(maps.Values(s.open)), line))), h.Save()})
	})
	require.Greater(t, len(whole), len(lines)/2)
	for line, m := range marks {
		again := read(m.from, m.state, func(int, *handler, *numbered) {})
		require.NotEmpty(t, again)
		for id, got := range again {
			if want := whole[id]; want != nil { // the run begins at the first record read
				assert.Equal(t, want, got, "read again from line %d, with the state before line %d", m.from, line)
			} else {
				assert.Equal(t, "train.run", got.(map[string]any)["name"])
			}
		}
	}
}

// said is all attributes of a span, on the span or on its resource.
func said(resource pcommon.Map, span ptrace.Span) map[string]any {
	all := resource.AsRaw()
	maps.Copy(all, span.Attributes().AsRaw())
	all["name"], all["trace"], all["parent"] = span.Name(), span.TraceID().String(), span.ParentSpanID().String()
	if span.Name() != "train.run" {
		all["times"] = fmt.Sprint(span.StartTimestamp(), span.EndTimestamp())
	}
	return all
}
