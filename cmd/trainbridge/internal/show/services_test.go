package show

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/spans"
)

// A log's function, and the spans of examples/goservice in its trace.
func TestServices(t *testing.T) {
	td := ptrace.NewTraces()
	add := func(service string, id, parent byte, name, stage string, start, end int) ptrace.Span {
		rs := td.ResourceSpans().AppendEmpty()
		if service != "" {
			rs.Resource().Attributes().PutStr(spans.AttrServiceName, service)
		}
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{1})
		s.SetSpanID(pcommon.SpanID{id})
		s.SetParentSpanID(pcommon.SpanID{parent})
		s.SetName(name)
		s.SetStartTimestamp(pcommon.Timestamp(start) * 1e6)
		s.SetEndTimestamp(pcommon.Timestamp(end) * 1e6)
		if stage != "" {
			s.Attributes().PutStr(spans.AttrTQStage, stage)
		}
		return s
	}
	// Jaeger answers in any order.
	add("data-server", 6, 5, "goservice.Data/Fetch", "", 720, 780)
	add("data-loader", 3, 0, "prefetch_batch", spans.StageFunction, 600, 1000)
	add("data-loader", 4, 3, spans.SpanTQGet, spans.StageGet, 600, 800)
	add("data-loader", 5, 4, "goservice.Data/Fetch", "", 700, 800)
	add("verl", 1, 0, "rollout", spans.StageFunction, 0, 500)
	add("verl", 2, 1, spans.SpanTQGet, spans.StageGet, 0, 50)
	add("evil\x1b[2J", 7, 6, "lookup", "", 730, 740)
	status := add("", 8, 7, "disk", "", 730, 735).Status()
	status.SetCode(ptrace.StatusCodeError)
	status.SetMessage("no space\n")
	add("", 9, 7, "disk", "", 736, 737).Status().SetCode(ptrace.StatusCodeError)
	var out strings.Builder
	printWaterfall(&out, tree.Build(td)[0], style{120, cst, false})
	head, rows, ok := strings.Cut(out.String(), "\n\n")
	require.True(t, ok)
	assert.Equal(t, "trace 01000000000000000000000000000000  services verl, data-loader, data-server, evil?[2J", strings.Split(head, "\n")[0])
	var got []string
	for line := range strings.Lines(rows) {
		if name, detail, ok := strings.Cut(line, "▕"); ok {
			_, detail, _ = strings.Cut(detail, "▏")
			name = regexp.MustCompile(` +\d.*$`).ReplaceAllString(strings.TrimRight(name, " "), "")
			got = append(got, name+": "+strings.TrimSpace(detail))
		}
	}
	assert.Equal(t, []string{
		"rollout: TQ overhead 10%",
		"└─tq.get: 10%",
		"prefetch_batch: data-loader · TQ overhead 50%",
		"└─tq.get: 50%",
		"  └─goservice.Data/Fetch: ",
		"    └─goservice.Data/Fetch: data-server",
		"      └─lookup: evil?[2J",
		"        ├─disk: no service · ERROR no space?",
		"        └─disk: no service · ERROR",
	}, got)
}

func TestNamesOfServices(t *testing.T) {
	for n, want := range map[int]string{
		0: "service -", 1: "service s0", 2: "services s0, s1", 4: "services s0, s1, s2, s3", 5: "services s0, s1, s2, 2 more", 9: "services s0, s1, s2, 6 more",
	} {
		td := ptrace.NewTraces()
		for i := range 2 * max(n, 1) {
			rs := td.ResourceSpans().AppendEmpty()
			if n > 0 {
				rs.Resource().Attributes().PutStr(spans.AttrServiceName, fmt.Sprintf("s%d", i%n))
			}
			s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			s.SetSpanID(pcommon.SpanID{byte(i + 1)})
			s.SetStartTimestamp(pcommon.Timestamp(i))
		}
		assert.Equal(t, want, servicesText(tree.Build(td)[0]))
	}
}
