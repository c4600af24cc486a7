//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/spans"
)

// stepFleet is a fleet with the logs of a job, the steps at an agent of their own. limit is the longest wait of steps for their collectives.
func stepFleet(t *testing.T, b *broker, name, backend, limit string, flags ...string) (*fleet, *jobTruth) {
	t.Helper()
	tr := generateJob(t, append([]string{"--ranks", "16", "--nccl", "nccl_inspector"}, flags...)...)
	f := newFleet(t, b, name, backend, &ncclLog{name: "nccl", dir: filepath.Join(tr.dir, "nccl")})
	f.run, f.more = tr.RunID, fmt.Sprintf("processors: {step_join: {wait: 3s, wait_limit: %s}}", limit)
	for _, a := range f.agents {
		a.env = append(a.env, "TRAINBRIDGE_RUN_ID="+tr.RunID)
	}
	to := t.TempDir()
	for _, log := range []string{"train/train.jsonl", "tq/driver.log", "zmq/zmq_performance.log"} {
		text, err := os.ReadFile(filepath.Join(tr.dir, log))
		require.NoError(t, err)
		f.files = append(f.files, &grownFile{text: string(text), to: filepath.Join(to, filepath.Base(log))})
	}
	f.agent("TRAINBRIDGE_RUN_ID="+tr.RunID, "TRAINBRIDGE_LOGS="+to+"/*")
	return f, tr
}

// gate creates the topics and starts two gateways.
func (f *fleet) gate() {
	f.Helper()
	f.broker.topics(f, f.topics()...)
	f.gateway(quiet{f})
	f.gateway(quiet{f})
	f.broker.shared(f, 2, f.topics()...)
}

// breakdowns waits until all steps have a breakdown, stops the fleet, and compares each breakdown that is not partial with the truth of its
// collectives. It returns the number of whole breakdowns, and of partial ones by reason.
func (f *fleet) breakdowns(tr *jobTruth, sink *spanSink) (whole int, partial map[string]int) {
	f.Helper()
	eventually(f, func() error {
		sink.mu.Lock()
		defer sink.mu.Unlock()
		broken := map[string]bool{}
		for _, n := range sink.steps { // a step in progress at a crash may have only its root
			broken[n.TraceID().String()] = true
		}
		missing := slices.DeleteFunc(slices.Clone(tr.Steps), func(s *jobStep) bool { return broken[strings.ReplaceAll(s.TraceID, "-", "")] })
		if len(missing) > 0 {
			return fmt.Errorf("%d of %d steps have no breakdown, the first is %d", len(missing), len(tr.Steps), missing[0].Step)
		}
		return nil
	})
	f.stop()
	truth := map[int64]*jobStep{}
	for _, s := range tr.Steps {
		truth[int64(s.Step)] = s
	}
	partial = map[string]int{}
	for _, n := range sink.steps {
		if n.str(spans.AttrStepWindow) != spans.WindowStep {
			continue
		}
		if n.str(spans.AttrJoinPartial) == "true" {
			reason := n.str(spans.AttrJoinPartialReason)
			assert.NotEmpty(f, reason)
			partial[reason]++
			continue
		}
		whole++
		failed := f.Failed()
		truth[n.int(spans.AttrIteration)].checkBreakdown(f.T, n, spans.PartCollective, spans.PartWait)
		if f.Failed() && !failed { // the first wrong breakdown
			f.Logf("step %d:%s", n.int(spans.AttrIteration), sink.arrivals(n))
		}
	}
	return whole, partial
}

// A late agent, started long after the end of the steps, is waited for.
func TestFleetLateAgent(t *testing.T) {
	t.Parallel()
	sink := startSpanSink(t)
	f, tr := stepFleet(t, startKafka(t, 4), "late", sink.addr, "90s", "--steps", "30")
	f.gate()
	f.grow(rand.New(rand.NewPCG(1, 19)), 1)
	late := f.agents[1]
	for _, a := range f.agents {
		if a != late {
			a.up(t)
		}
	}
	lasts(10 * time.Second)
	late.up(t)
	whole, partial := f.breakdowns(tr, sink)
	assert.Equal(t, len(tr.Steps), whole)
	assert.Empty(t, partial)
}

// Under any faults, a breakdown that differs from the truth is marked partial, with the reason.
func TestFleetStepFaults(all *testing.T) {
	all.Parallel()
	var complete atomic.Int64
	all.Cleanup(func() { assert.Positive(all, complete.Load()) }) // a gateway suspended during a whole job may have none
	for seed := *fleetSeed; seed < *fleetSeed+*fleetSeeds; seed++ {
		all.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			b := startKafka(t, 6)
			rnd := rand.New(rand.NewPCG(seed, 23))
			sink := startSpanSink(t)
			// Within 90 s a busy machine starts all, also after a killed broker: a run of which no gateway has read any record of NCCL for as long is told without
			// (docs/reference/adr/0025).
			// The log begins now, and is written faster: where a log grows further behind its own times than heartbeats are apart, nobody knows that more is to come.
			f, tr := stepFleet(t, b, "steps-"+strconv.FormatUint(seed, 10), sink.addr, "90s", "--steps", "60", "--seed", strconv.FormatUint(seed, 10),
				"--start", time.Now().Format(time.RFC3339Nano))
			f.gate()
			for _, a := range f.agents {
				a.up(quiet{t})
			}
			var happened []string
			const faults = 4
			for i := range faults {
				f.grow(rnd, float64(i+1)/(faults+1))
				moment(rnd, 5000)
				fault := fleetFaults[rnd.IntN(len(fleetFaults))]
				happened = append(happened, fault.name)
				fault.do(f, rnd, sink)
			}
			f.grow(rnd, 1)
			t.Log(happened)
			whole, partial := f.breakdowns(tr, sink)
			t.Logf("%v: %d breakdowns are whole, partial %v", happened, whole, partial)
			complete.Add(int64(whole))
		})
	}
}
