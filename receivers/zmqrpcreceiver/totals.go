package zmqrpcreceiver

import (
	"context"
	"math"
	"strings"

	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/rpclog"
)

// totals are sums over rows.
type totals struct {
	Calls    int64                   `json:"calls"`
	NS       [rpclog.Durations]int64 `json:"ns"`
	Sent     int64                   `json:"sent"` // By
	Received int64                   `json:"received"`
	Has      rpclog.Columns          `json:"has"`
}

// add adds a row.
func (t *totals) add(has rpclog.Columns, durations *[rpclog.Durations]int64, sent, received int64) {
	t.Calls++
	for i, ns := range durations {
		t.NS[i] = addSaturated(t.NS[i], ns)
	}
	t.Sent, t.Received = addSaturated(t.Sent, sent), addSaturated(t.Received, received)
	t.Has |= has
}

// addSaturated is a + b, or the largest number: spoilt rows do not turn a sum negative.
func addSaturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// explained is the sum of the stages of a call, and the number of stages in the log.
func explained(ns *[rpclog.Durations]int64, has rpclog.Columns) (sum int64, n int64) {
	for i := range stageSpans[:callStages] {
		if s := stageSpans[i].column; has.Has(s) {
			sum = addSaturated(sum, ns[s])
			n++
		}
	}
	return sum, n
}

// unattributed is the part of a call's time outside all stages. A part within the rounding of the print (half a digit of each number) counts as 0.
func (c *call) unattributed() int64 {
	sum, n := explained(&c.ns, c.has)
	if rest := c.ns[rpclog.Total] - sum; n > 0 && 2*rest > (n+1)*c.step { // n stages and the total are rounded
		return rest
	}
	return 0
}

// sharedMemory says whether tensors go through shared memory: then the sizes in the log are those of the control messages.
func sharedMemory(transport string) bool { return strings.Contains(transport, "SHM") }

// networkTransport is the semconv name: ZeroMQ's ipc is a Unix domain socket. Empty: neither.
func networkTransport(transport string) string {
	switch {
	case strings.HasPrefix(transport, "IPC"):
		return "unix"
	case strings.HasPrefix(transport, "TCP"):
		return "tcp"
	}
	return ""
}

// check compares the numbers of a row with one another, counts contradictions, and sets how far the printed throughput is from sizes and duration.
func (h *handler) check(row *rpclog.Row, c *call) {
	sum, n := explained(&c.ns, c.has)
	limit := func(numbers int64) int64 { return numbers * c.step / 2 } // how far rounding moves a sum of rounded numbers, ns
	// Comm is not shorter than the sum of the stages, and, where the log has all of them, may be a little longer.
	longer := c.ns[rpclog.Comm] - sum
	if c.has.Has(rpclog.Comm) && (-longer > limit(n+1) || n == callStages && longer-commSlack > limit(n+1)) {
		h.inconsistent(commSum)
	}
	if sum-c.ns[rpclog.Total] > limit(n+1) {
		h.inconsistent(stagesExceedTotal)
	}
	if c.has.Has(rpclog.Server) && c.has.Has(rpclog.Receive) && c.ns[rpclog.Server]-c.ns[rpclog.Receive] > limit(2) {
		h.inconsistent(serverExceedsReceive)
	}
	g := h.open
	if !c.has.Has(rpclog.Throughput) || sharedMemory(g.transport) {
		return
	}
	own := c.recomputed()
	if !(own > 0) { // or unknown
		return
	}
	g.compared, c.compared = true, true
	bytes := float64(c.sent + c.received)
	// The relative errors of the sizes, of the duration and of the throughput by their last printed digits.
	rounding := float64(row.SizeStep)/bytes + float64(c.step)/2/float64(c.ns[rpclog.Total]) + row.ThroughputStep/2/own
	if off := math.Abs(row.Throughput-own) / own; off > rounding+1e-9 {
		c.disagreement = off
		g.disagreement = max(g.disagreement, off)
		h.inconsistent(throughputOff)
	}
}

// commSlack: the writers time Comm as a whole, including the time between the stages: up to 0.08 ms in real logs.
const commSlack = 100_000

// inconsistent counts a contradiction in a row.
func (h *handler) inconsistent(what inconsistency) {
	h.r.tel.TrainbridgeZmqInconsistentRows.Add(context.Background(), 1, inconsistencyOptions[what])
}

// recomputed is (sent + received) / total, By/s. NaN: unknown.
func (c *call) recomputed() float64 {
	if !c.has.Has(rpclog.Sent) || !c.has.Has(rpclog.Received) || c.ns[rpclog.Total] <= 0 {
		return math.NaN()
	}
	return (float64(c.sent) + float64(c.received)) / (float64(c.ns[rpclog.Total]) / 1e9)
}
