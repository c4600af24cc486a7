package tqtracereceiver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/tqline"
	"github.com/trainbridge/trainbridge/spans"
)

// Calls without an END that are given up together all arrive, in messages within every backend's limit.
func TestLargestExpiry(t *testing.T) {
	// As many fields as are kept, with names and texts as long as are kept.
	var fields strings.Builder
	for i := range tqline.MaxFields - 1 {
		fmt.Fprintf(&fields, " | %s%d=%s", strings.Repeat("n", spans.MaxAttributeBytes), i, strings.Repeat("v", spans.MaxAttributeBytes))
	}
	many := 70_000
	if testing.Short() {
		many /= 8
	}
	for name, c := range map[string]struct {
		format string // with the call's number and time, µs
		calls  int
	}{
		"functions":               {"[TQ-TRACE] trace_id=N/A | func=f | pid=1 | stage=FUNCTION_START | call=%d | timestamp=1.%06d", many},
		"operations":              {"[TQ-DETAIL] trace_id=N/A | func=f | pid=1 | stage=TQ_CLIENT_PUT_START | call=%d | timestamp=1.%06d", many / 3},
		"of many processes":       {"(W pid=%[1]d, ip=10.0.0.1) [TQ-TRACE] trace_id=N/A | func=f | stage=FUNCTION_START | call=%[1]d | timestamp=1.%06[2]d", many / 3},
		"functions of many texts": {"[TQ-TRACE] trace_id=N/A | func=f | pid=1 | stage=FUNCTION_START | call=%d | timestamp=1.%06d" + fields.String(), 200},
	} {
		t.Run(name, func(t *testing.T) {
			lines := make([]string, c.calls)
			for i := range lines {
				lines[i] = fmt.Sprintf(c.format, i+1, 10*i)
			}
			r := read(t, nil, write(t, "x.log", lines...))
			all := r.All("f")
			if len(all) == 0 {
				all = r.All(spans.SpanTQClientPut)
			}
			filereceivertest.Numbered(t, all, spans.AttrTQFieldPrefix+"call", c.calls)
			complete := func(s ptrace.Span) bool { return filereceivertest.Attr(s, spans.AttrIncomplete) != "true" }
			assert.False(t, slices.ContainsFunc(all, complete))
			assert.Equal(t, 1+c.calls, r.Traces.SpanCount(), "and the run")
		})
	}
}

// The statistics of the largest line arrive whole too.
func TestLargestLine(t *testing.T) {
	const head = "TQStorageUnit_1: [Performance] Total success requests: 1840, Total req/min: 368.00, Total avg process time: 0.0123s\nTime range: last 5.00 minutes;\n"
	const operations = 10_000
	cfg := createDefaultConfig().(*Config)
	cfg.Include = []string{
		write(
			t, "x.log",
			head+"Per-operation statistics: "+strings.Repeat(
				"PUT_DATA: req_count=920, req/min=184.00, avg_time=0.0100s, max_time=0.2000s, min_time=0.0010s; ", operations,
			),
		),
	}
	r := filereceivertest.Run(t, NewFactory(), cfg, func(r *filereceivertest.Result) bool { return r.Metrics.DataPointCount() >= 3+5*operations })
	assert.Equal(t, 3+5*operations, r.Metrics.DataPointCount())
}
