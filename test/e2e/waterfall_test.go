//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/spans"
)

// The page of a step is as wide as the step in Jaeger, though the passes of RPCs have no clock: for replayed logs, and for logs read while being written.
func TestWaterfall(t *testing.T) {
	t.Parallel()
	t.Run("replayed", func(t *testing.T) {
		t.Parallel()
		j := startJaeger(t)
		for seed := range 5 {
			tr := generateJob(t, "--ranks", "8", "--steps", "40", "--seed", strconv.Itoa(seed+1), "--fault-every", "4", "--faults", jobFaults)
			service := "job-" + strconv.Itoa(seed)
			out, err := replay(t, tr.dir, "--run", tr.RunID, "--service", service, "--endpoint", j.otlp)
			require.NoError(t, err, out)
			tr.checkWidths(t, j, service)
		}
	})
	t.Run("live", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		j := startJaeger(t)
		c := newCollector(t, trainbridgeBin(t), dir+"/tq/*", j.otlp, "processors: {step_join: {wait: 4s}}")
		c.env = append(c.env, "TRAINBRIDGE_SERVICE=live", "TRAINBRIDGE_RUN_ID=live", "TRAINBRIDGE_TRAIN_LOGS="+dir+"/train/*", "TRAINBRIDGE_ZMQ_LOGS="+dir+"/zmq/*",
			"TRAINBRIDGE_NCCL_LOGS="+dir+"/nccl/*")
		c.up(t)
		tr := generateJobIn(t, dir, "--ranks", "2", "--steps", "8", "--checkpoint-every", "0", "--eval-every", "0", "--live")
		tr.checkWidths(t, j, "live")
	})
}

// checkWidths compares the traces of all steps, as read by Jaeger's page, with the truth: they have the same duration, and the pass.
func (tr *jobTruth) checkWidths(t *testing.T, j *jaeger, service string) {
	t.Helper()
	var all map[string]*pageTrace
	eventually(t, func() error {
		pages, err := j.pages(service)
		if err != nil {
			return err
		}
		all = map[string]*pageTrace{}
		for _, p := range pages {
			all[p.TraceID] = p
		}
		for _, s := range tr.Steps {
			id := spans.TraceID("", []byte(s.TraceID))
			if p := all[id.String()]; p == nil || p.count(spans.SpanRPCPass) == 0 || p.count(spans.SpanBreakdown) == 0 {
				return fmt.Errorf("step %d is not whole yet", s.Step)
			}
		}
		return nil
	})
	for _, s := range tr.Steps {
		id := spans.TraceID("", []byte(s.TraceID))
		p := all[id.String()]
		start, end := p.rows[0].StartTime, p.rows[0].end()
		for _, row := range p.rows {
			start, end = min(start, row.StartTime), max(end, row.end())
		}
		step := float64(s.End-s.Start) / 1e3
		assert.LessOrEqual(t, float64(end-start), 1.05*step, "step %d of %s", s.Step, service)
		assert.GreaterOrEqual(t, float64(end-start), 0.95*step, "step %d of %s", s.Step, service)
		assert.Equal(t, 1, p.count(spans.SpanRPCPass), "step %d of %s", s.Step, service)
		own := all[spans.ClocklessTraceID(id).String()]
		require.NotNil(t, own, "the pass of step %d", s.Step)
		assert.GreaterOrEqual(t, len(own.rows), 1+s.Spans[spans.KindCall])
	}
}

// count is how many rows are of an operation.
func (tr *pageTrace) count(operation string) (n int) {
	for _, s := range tr.rows {
		if s.OperationName == operation {
			n++
		}
	}
	return n
}
