package flagscalereceiver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// The largest summaries and lines arrive whole, in messages within every backend's limit.
func TestLargest(t *testing.T) {
	const session = "Performance Monitor Session Started: 2026-04-10 08:00:00\n" // the row before waits for no more lines
	many := 20_000
	if testing.Short() {
		many /= 8
	}
	list := func(n int, between string, item func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = item(i + 1)
		}
		return strings.Join(all, between)
	}
	number := func(i int) string { return fmt.Sprintf("%06d", i) }
	// As many further keys as are kept, with names and texts as long as are kept.
	keys := list(record.MaxExtra, ", ", func(i int) string {
		return fmt.Sprintf(`"%0*d": "%0*d"`, spans.MaxAttributeBytes, i, spans.MaxAttributeBytes, i)
	})
	summary := func(n int, more string) string {
		return `{"session_info": {}, "final_statistics": {` + keys + `}, "iteration_logs": [` + list(n, ", ", func(i int) string {
			return fmt.Sprintf(`{"iteration": %d, "timestamp": "2026-04-10 08:00:13", "memory_GB": 1.5%s}`, i, more)
		}) + `]}`
	}
	for name, c := range map[string]struct {
		file, text    string
		steps, stages int
	}{
		"summary":              {"perf_summary_20260410_080000.json", summary(many, ""), many, 0},
		"summary of wide rows": {"perf_summary_20260410_080000.json", summary(3, ", "+keys), 3, 0},
		"table of wide rows": {"perf_metrics_20260410_080000.log", "Timestamp Step Memory(GB) " + list(250, " ", number) + "\n" + list(12, "\n", func(i int) string {
			return fmt.Sprintf("2026-04-10 08:00:13 %d 1.5", i) + strings.Repeat(" "+strings.Repeat("v", 4000), 250)
		}) + "\n" + session, 12, 0},
		"iterations of long names": {"console.log", list(5, "\n", func(i int) string {
			return fmt.Sprintf(" iteration %d/ 100 |", i) + list(250, " ", func(i int) string { return fmt.Sprintf("%0*d: 1.5 |", spans.MaxAttributeBytes-20, i) })
		}) + "\n" + session, 5, 0},
		"iteration of many stages": {
			"console.log",
			" iteration 1/ 100 | lm loss: 1.5 |\n" + strings.Repeat(
				"time (ms) | "+list(3*many, " | ", func(i int) string { return number(i) + ": 1.5" })+"\n", 2,
			) + session,
			1, 3 * many,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(filereceivertest.Put(t, t.TempDir(), c.file, c.text))
			want := 1 + c.steps + c.stages // the run
			if strings.HasPrefix(c.file, summaryPrefix) {
				want++
			}
			r := filereceivertest.Run(t, NewFactory(), cfg, func(r *filereceivertest.Result) bool { return r.Traces.SpanCount() >= want })
			assert.Equal(t, want, r.Traces.SpanCount())
			filereceivertest.Numbered(t, r.All(spans.SpanStep), spans.AttrIteration, c.steps)
			stages := 0
			for _, s := range r.All("") {
				if filereceivertest.Attr(s, spans.AttrStage) != "" && s.EndTimestamp()-s.StartTimestamp() == 3e6 { // of both lines
					stages++
				}
			}
			assert.Equal(t, c.stages, stages)
		})
	}
}
