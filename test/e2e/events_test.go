//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// The end of a job arrives in Jaeger, Prometheus and the file of verdicts: from a training log, between its steps, and from a stderr without steps.
func TestRunEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var steps strings.Builder
	for i := range 5 {
		fmt.Fprintf(&steps, " [2025-11-03 10:00:%02d] iteration %8d/     100 | consumed samples: %12d | elapsed time per iteration (ms): 1000.0 | "+
			"learning rate: 1.000000E-04 | global batch size:    16 | lm loss: 8.000000E+00 |\n", i+1, i+1, 16*(i+1))
	}
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	put("train.log", steps.String()+
		"[rank3]:[E1103 10:10:09.041194513 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: "+
		"WorkNCCL(SeqNum=57, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600009 milliseconds before timing out.\n")
	put("rank_5.err", "Traceback (most recent call last):\n  File \"/job/train.py\", line 7, in step\nValueError: bad batch\n")

	j := startJaeger(t)
	c := newCollector(t, trainbridgeBin(t), "", j.otlp)
	c.args = append([]string{"--config", shippedConfig(t), "--config", verdictsConfig(t)}, c.args[2:]...)
	records := filepath.Join(dir, "verdicts.json")
	c.env = append(c.env, "TRAINBRIDGE_RUN_ID=dead", "TRAINBRIDGE_TRAIN_LOGS="+filepath.Join(dir, "*.log"), "TRAINBRIDGE_EVENT_LOGS="+filepath.Join(dir, "*.err"),
		"TRAINBRIDGE_VERDICTS="+records)
	c.up(t)
	p := startPrometheus(t, c.scrape...)

	trace, _ := spans.RunIDs("dead")
	eventually(t, func() error {
		td, err := j.trace(trace)
		if err != nil {
			return err
		}
		got := map[string]view.Event{}
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if s.Name() == spans.SpanEvent && s.Status().Code() == ptrace.StatusCodeError {
						var e view.Event
						e.Read(s)
						got[e.Class] = e
					}
				}
			}
		}
		if len(got) != 2 || got["collective_timeout"].Rank.N != 3 || got["exception"].Rank.N != 5 || got["exception"].ExceptionType != "ValueError" {
			return fmt.Errorf("events in Jaeger: %v", got)
		}
		return nil
	})
	p.awaitValues(t, map[string]float64{
		`sum(ml_run_events_total{ml_run_event_class="exception"})`: 1, `sum(ml_run_events_total{ml_run_event_class="collective_timeout"})`: 1,
	})
	eventually(t, func() error {
		text, err := os.ReadFile(records)
		if err != nil || strings.Contains(string(text), "ValueError: bad batch") {
			return err
		}
		return fmt.Errorf("records: %s", text)
	})
	c.stop(t)
}
