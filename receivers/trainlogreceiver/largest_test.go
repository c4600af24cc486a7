package trainlogreceiver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// The largest documents and lines arrive whole, in messages within every backend's limit.
func TestLargest(t *testing.T) {
	many := 80_000
	if testing.Short() {
		many /= 8
	}
	row := func(i int) string { return fmt.Sprintf(`{"step": %d, "loss": 2.5}`, i) }
	rows := func(from, to int, row func(int) string, between string) string {
		list := make([]string, 0, to-from)
		for i := from; i < to; i++ {
			list = append(list, row(i))
		}
		return strings.Join(list, between)
	}
	// As many fields as are kept, with names and texts as long as are kept.
	wide := func(i int) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"step": %d, "loss": 2.5`, i)
		for j := range record.MaxExtra {
			fmt.Fprintf(&b, `, "%0*d": "%0*d"`, spans.MaxAttributeBytes, j, spans.MaxAttributeBytes, j)
		}
		return b.String() + "}"
	}
	// The hash of an address is three times as long.
	addresses := func(i int) string {
		return fmt.Sprintf(`{"step": %d, "loss": 2.5, "peers": "%s"}`, i, strings.Repeat("8.8.8.8 ", spans.MaxAttributeBytes/8))
	}
	for name, c := range map[string]struct {
		file, text string
		steps      int
	}{
		"document":              {"trainer_state.json", `{"log_history": [` + rows(1, many+1, row, ", ") + `]}`, many},
		"document of wide rows": {"trainer_state.json", `{"log_history": [` + rows(1, 5, wide, ", ") + `]}`, 4},
		"line between others":   {"x.jsonl", rows(1, 51, row, "\n") + "\n[" + rows(51, many+51, row, ", ") + "]\n" + rows(many+51, many+101, row, "\n") + "\n", many + 100},
		"line of addresses":     {"x.jsonl", "[" + rows(1, 2001, addresses, ", ") + "]\n", 2000},
		"line of wide rows":     {"x.jsonl", "[" + rows(1, 5, wide, ", ") + "]\n", 4},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := live(filereceivertest.Put(t, t.TempDir(), c.file, c.text))
			cfg.MaxLineBytes = 64 << 20
			cfg.Redact.HashHosts, cfg.Redact.HashKey = true, "0123456789abcdef"
			r := filereceivertest.Run(t, NewFactory(), cfg, func(r *filereceivertest.Result) bool {
				return r.Traces.SpanCount() > c.steps && r.Metrics.DataPointCount() >= 2*c.steps
			})
			filereceivertest.Numbered(t, r.All(spans.SpanStep), spans.AttrIteration, c.steps)
			assert.Equal(t, c.steps+1, r.Traces.SpanCount(), "and the run")
			assert.Equal(t, 2*c.steps, r.Metrics.DataPointCount(), "iteration and loss")
		})
	}
}
