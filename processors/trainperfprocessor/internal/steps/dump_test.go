package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
	"github.com/trainbridge/trainbridge/spans"
)

// TestDumpsOfMegatron: from the argument dump of a log to FLOP/s, for each golden model of Megatron's own function. The log's throughput is that function's, so
// no verdict may blame it.
func TestDumpsOfMegatron(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "flops", "testdata", "golden.json"))
	require.NoError(t, err)
	var golden struct {
		Megatron map[string]struct {
			Batch     int64             `json:"batch_size"`
			Flops     float64           `json:"flops"`
			Arguments map[string]string `json:"arguments"`
		} `json:"megatron"`
	}
	require.NoError(t, json.Unmarshal(raw, &golden))
	const world, seconds, steps = 256, 7.5, 3
	for name, g := range golden.Megatron {
		t.Run(name, func(t *testing.T) {
			g.Arguments["world_size"], g.Arguments["global_batch_size"] = strconv.Itoa(world), strconv.FormatInt(g.Batch, 10)
			var log strings.Builder
			log.WriteString("------------------------ arguments ------------------------\n")
			for _, arg := range slices.Sorted(maps.Keys(g.Arguments)) {
				fmt.Fprintf(&log, "  %s %s %s\n", arg, strings.Repeat(".", max(0, 48-len(arg))), g.Arguments[arg])
			}
			log.WriteString("-------------------- end of arguments ---------------------\n")
			for i := range steps {
				fmt.Fprintf(&log, " [2026-03-01 10:00:%02d.000000] iteration %8d/     100 | consumed samples: %12d | elapsed time per iteration (ms): %.1f "+
					"| throughput per GPU (TFLOP/s/GPU): %.1f |"+
					" learning rate: 1.000000E-04 | global batch size: %5d | lm loss: 9.874163E+00 | loss scale: 1.0 | grad norm: 4.066 | number of skipped "+
					"iterations:   0 | number of nan iterations:   0 |\n",
					10*i, i+1, int64(i+1)*g.Batch, seconds*1000, g.Flops/seconds/world/1e12, g.Batch)
			}
			td := readLog(t, log.String(), steps)
			p, _ := newTest(t, func(c *Config) { c.PeakFlops = 1e16 }, func(c *Config) { c.MFULow = 0 })
			n := 0
			for _, traces := range td.AllTraces() {
				perftest.Judge(p, traces)
				for _, rs := range traces.ResourceSpans().All() {
					for _, ss := range rs.ScopeSpans().All() {
						for _, s := range ss.Spans().All() {
							if s.Name() != spans.SpanStep {
								continue
							}
							n++
							perftest.Numbers(t, s, map[string]float64{spans.AttrFlopCount: g.Flops, spans.AttrDeviceFlopThroughput: g.Flops / seconds / world})
							assert.Equal(t, "megatron", perftest.Text(s, spans.AttrFlopFormula))
							assert.Empty(t, perftest.Verdicts(s))
						}
					}
				}
			}
			assert.Equal(t, steps, n)
		})
	}
}

// readLog has the train_log receiver read a log.
func readLog(t *testing.T, content string, steps int) *consumertest.TracesSink {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.log")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	factory, sink := trainlogreceiver.NewFactory(), new(consumertest.TracesSink)
	cfg := factory.CreateDefaultConfig().(*trainlogreceiver.Config)
	cfg.Include, cfg.RunID = []string{path}, "run"
	r, err := factory.CreateTraces(context.Background(), receivertest.NewNopSettings(factory.Type()), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()))
	assert.Eventually(t, func() bool { return sink.SpanCount() >= steps }, time.Minute, 5*time.Millisecond)
	require.NoError(t, r.Shutdown(context.Background()))
	return sink
}
