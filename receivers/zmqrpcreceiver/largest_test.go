package zmqrpcreceiver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// The largest tables, passes and rows arrive whole, in messages within every backend's limit.
func TestLargest(t *testing.T) {
	const columns = "ID Method Offline(ms) Serialize(ms) Send(ms) Recv(ms) Deserialize(ms) GPU(ms) Total(ms)"
	// The largest number of further columns; a row of them is a line of almost 1 MiB.
	var more, cells strings.Builder
	for i := range 55 {
		fmt.Fprintf(&more, " %s%d", strings.Repeat("n", 70), i)
		fmt.Fprintf(&cells, " %d%s", i, strings.Repeat("v", 18_000))
	}
	long, many := strings.Repeat("M", spans.MaxAttributeBytes), 8*maxCallSpans
	if testing.Short() {
		many = 2 * maxCallSpans
	}
	for name, c := range map[string]struct {
		header, method, cells string
		calls, pass           int // pass: calls of each
	}{
		"passes of the most calls": {columns, "Linear", "", many, maxCallSpans},
		"one pass without end":     {columns, "Linear", "", many, many},
		"long names":               {columns, long, "", 1000, maxCallSpans},
		"rows as long as a line":   {columns + more.String(), "Linear", cells.String(), 20, 20},
	} {
		t.Run(name, func(t *testing.T) {
			lines := []string{"ZeroMQ Performance Log - Transport: TCP", c.header}
			for i := range c.calls {
				method := c.method
				if i%c.pass == 0 {
					method = "Embedding"
				}
				if i == c.calls-1 {
					method = "LMHead"
				}
				lines = append(lines, fmt.Sprintf("%d %s 0.5 0.1 0.1 2.0 0.1 1.0 2.5%s", i+1, method, c.cells))
			}
			cfg := config(filereceivertest.Write(t, "zmq_performance.log", lines...))
			cfg.MaxCalls = maxCallSpans
			r := filereceivertest.Run(t, NewFactory(), cfg, func(r *filereceivertest.Result) bool { return len(calls(r)) >= c.calls })
			filereceivertest.Numbered(t, calls(r), spans.AttrZMQCallID, c.calls)
		})
	}
}
