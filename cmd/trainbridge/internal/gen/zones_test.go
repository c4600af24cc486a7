package gen

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// asMegatron replaces a training log by the same steps in Megatron's format, in another zone and without a zone.
func asMegatron(t *testing.T, dir string, zone *time.Location) {
	t.Helper()
	was := filepath.Join(dir, "train", "train.jsonl")
	text, err := os.ReadFile(was)
	require.NoError(t, err)
	var log strings.Builder
	for line := range strings.Lines(string(text)) {
		var row struct {
			Step      int64     `json:"step"`
			Timestamp time.Time `json:"timestamp"`
			Loss      float64   `json:"loss"`
			Seconds   float64   `json:"step_time_s"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		fmt.Fprintf(&log, " [%s] iteration %8d/    1000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | global batch size:    64 | lm loss: %.6E |\n",
			row.Timestamp.In(zone).Format("2006-01-02 15:04:05.000000"), row.Step, 64*row.Step, row.Seconds*1e3, row.Loss)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train", "megatron.log"), []byte(log.String()), 0o600))
	require.NoError(t, os.Remove(was))
}

// A training log in another zone than the logs of collectives is found, and with the right zone so are all stragglers.
func TestMegatronOfAnotherZone(t *testing.T) {
	for seed := range uint64(3) {
		opt := options(t, func(o *Options) {
			o.Seed, o.Ranks, o.Steps, o.Faults, o.NCCL, o.IDs = 1+seed, 16, 60, []string{FaultStraggler}, NCCLInspector, IDsNone
		})
		truths, err := Generate(t.Context(), opt)
		require.NoError(t, err)
		_, local := time.Now().Zone()
		zone := time.FixedZone("", (local/3600+9)%12*3600+1800) // another than the machine's
		asMegatron(t, opt.Out, zone)
		for _, other := range []string{"tq", "zmq", "truth.json"} {
			require.NoError(t, os.RemoveAll(filepath.Join(opt.Out, other)))
		}
		read := func(zones ...offline.Zone) (named map[int]int64, shifts []offline.Shift) {
			named = map[int]int64{}
			var mu sync.Mutex
			sink, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
				mu.Lock()
				defer mu.Unlock()
				for _, rs := range td.ResourceSpans().All() {
					for _, ss := range rs.ScopeSpans().All() {
						for _, s := range ss.Spans().All() {
							if view.KindOf(s) != view.KindBreakdown {
								continue
							}
							n, _ := s.Attributes().Get(spans.AttrIteration)
							for c := range view.Causes(s) {
								if c.Rank.OK {
									named[int(n.Int())] = c.Rank.N
								}
							}
						}
					}
				}
				return nil
			})
			require.NoError(t, err)
			in, err := offline.Open([]string{opt.Out}, strings.NewReader(""))
			require.NoError(t, err)
			defer in.Close()
			got, err := offline.Read(t.Context(), in, offline.Options{Run: "job", Positions: true, Zones: zones}, offline.Sink{Traces: sink})
			require.NoError(t, err)
			return named, got.Shifts
		}
		named, shifts := read()
		assert.Empty(t, named)
		require.Len(t, shifts, 1)
		assert.Equal(t, time.Unix(0, 0).In(zone).Format("-07:00"), shifts[0].Zone)

		named, shifts = read(offline.Zone{Log: filepath.Join(opt.Out, "**", "megatron.log"), Name: shifts[0].Zone})
		assert.Empty(t, shifts)
		late := 0
		for _, step := range truths[0].Steps {
			if rank, ok := named[step.Step]; ok && step.Cause != nil {
				late++
				assert.Equal(t, int64(step.Cause.Rank), rank, "step %d", step.Step)
			}
		}
		assert.Len(t, named, late, "no other step has a late rank")
		assert.GreaterOrEqual(t, late, 7, "of the stragglers")
	}
}
