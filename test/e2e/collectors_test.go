//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// agents are two collectors of one run, each on its own host, that count their logs.
type agents struct {
	*testing.T
	dirs       [2]string
	collectors [2]*collector
	functions  int // in both logs
}

// log writes n TransferQueue functions, and n sends over one link, into the logs of an agent.
func (a *agents) log(agent, n int) {
	a.Helper()
	var functions, sends strings.Builder
	for i := range n {
		functions.WriteString(waterfall(uuid.NewString(), time.Now()))
		fmt.Fprintf(&sends, "%s: Group:7, from rank 0 to rank 8, channel_id:0, func:4,FuncTimes:%d, 10.10.1.11->10.10.1.12 send 524288 Bytes used 22310 nsec, "+
			"devIndex:0, sendWrCounter:3\n", time.Now().Format("20060102150405"), a.functions+i)
	}
	a.functions += n
	for name, text := range map[string]string{"worker.err": functions.String(), "node01-mlx5_0-Port0-A.log": sends.String()} {
		appendTo(a, filepath.Join(a.dirs[agent], name), text)
	}
}

func appendTo(tb testing.TB, file, text string) {
	tb.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(tb, err)
	_, err = f.WriteString(text)
	require.NoError(tb, errors.Join(err, f.Close()))
}

// Two named collectors of one run on one host: in Prometheus the sum of their counters is the true number, while they count, while they are idle, and after a
// restart of either.
func TestCollectorsOfARun(t *testing.T) {
	t.Parallel()
	a, s := &agents{T: t}, startSink(t)
	for i := range a.collectors {
		a.dirs[i] = t.TempDir()
		c := newCollector(t, trainbridgeBin(t), a.dirs[i]+"/*.err", s.addr, "connectors: {train_metrics: {metrics_flush_interval: 1s, histogram: {type: explicit}}}")
		c.env = append(c.env, "TRAINBRIDGE_NCCL_LOGS="+a.dirs[i]+"/*.log", "TRAINBRIDGE_RUN_ID=shared", fmt.Sprint("TRAINBRIDGE_COLLECTOR=agent-", i))
		a.collectors[i] = c
		a.log(i, 10*(i+1))
		c.up(t)
	}
	// resets() of Debian's Prometheus does not see native histograms.
	p := startPrometheus(t, a.collectors[0].scrape[0], a.collectors[1].scrape[0])
	const functions, link = `tq_function_duration_seconds_count{instance="shared"}`, `nccl_link_io_bytes_total{instance="shared"}`
	sums := func() map[string]float64 {
		return map[string]float64{
			`sum without (trainbridge_collector) (` + functions + `)`: float64(a.functions), `count(` + functions + `)`: 2, `count(` + link + `)`: 2,
		}
	}
	p.awaitValues(t, sums())

	before := a.functions
	for range 5 { // both count all the time
		a.log(0, 30)
		a.log(1, 50)
		p.awaitValues(t, sums())
	}
	p.awaitValues(t, map[string]float64{`sum(resets(` + functions + `[5m]))`: 0, `sum(resets(` + link + `[5m]))`: 0})
	a.rose(p, functions, float64(a.functions-before))

	// Counting has ended: Prometheus looks back on 5 s without change.
	p.awaitValues(t, map[string]float64{
		`sum(increase(` + functions + `[5s]))`: 0, `sum(increase(` + link + `[5s]))`: 0, `count(count_over_time(` + functions + `[5s]) > 3)`: 2,
	})

	// The name survives a restart of the collector: the counter continues in its series.
	a.collectors[1].stop(t)
	a.collectors[1].up(t)
	a.log(0, 40)
	a.log(1, 60)
	a.rose(p, functions, float64(a.functions-before))
	p.awaitValues(t, map[string]float64{`count(` + functions + `)`: 2})
	for _, c := range a.collectors {
		c.stop(t)
		c.assertQuiet(t)
	}
}

// A collector killed again and again while its logs grow counts each event exactly once, and Prometheus sees no counter fall: repeats after a crash are
// recognized, and unscraped counts are not lost.
func TestCountersSurviveKills(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), startSink(t)
	c := newCollector(t, trainbridgeBin(t), dir+"/*.err", s.addr, "connectors: {train_metrics: {metrics_flush_interval: 1s, histogram: {type: explicit}}}")
	c.env = append(c.env, "TRAINBRIDGE_TRAIN_LOGS="+dir+"/*.jsonl", "TRAINBRIDGE_RUN_ID=killed")
	const each = 200
	n := 0
	grow := func() {
		var functions, steps strings.Builder
		for range each {
			n++
			functions.WriteString(waterfall(uuid.NewString(), time.Now()))
			fmt.Fprintf(&steps, "{\"step\": %d, \"loss\": 2.5, \"time\": %q}\n", n, time.Now().Format(time.RFC3339Nano))
		}
		appendTo(t, filepath.Join(dir, "worker.err"), functions.String())
		appendTo(t, filepath.Join(dir, "train.jsonl"), steps.String())
	}
	counters := []string{"tq_function_duration_seconds_count", "tq_stage_duration_seconds_count", "ml_train_steps_total"}
	per := []float64{1, 0, 1}
	grow()
	c.up(t)
	p := startPrometheus(t, c.scrape[0])
	p.awaitValues(t, map[string]float64{"sum(" + counters[0] + ")": each})
	stages, err := p.value("sum(" + counters[1] + ")")
	require.NoError(t, err)
	per[1] = stages / each

	rnd := rand.New(rand.NewPCG(1, 19))
	for range 6 {
		grow()
		moment(rnd, 1500)
		grow()
		moment(rnd, 400) // as likely as not in the middle of reading
		c.kill()
		grow()
		c.up(t)
	}
	want := map[string]float64{}
	for i, name := range counters {
		want["sum("+name+")"] = per[i] * float64(n)
		want["sum(resets("+name+"[10m]))"] = 0
	}
	p.awaitValues(t, want)
	grow() // all repeats had come before
	for i, name := range counters {
		want["sum("+name+")"] = per[i] * float64(n)
	}
	p.awaitValues(t, want)
	c.stop(t)
	c.assertQuiet(t)
}

// A collector killed while the disk of its state is full for a time counts its logs correctly afterwards: no stored position is ahead of the counters.
func TestCountersSurviveAFullDisk(t *testing.T) {
	t.Parallel()
	dir, state, sink := t.TempDir(), t.TempDir(), startOTLPSink(t)
	smallDisk(t, state, 6<<20)
	c := newCollector(t, trainbridgeBin(t), dir+"/*.err", sink.addr, "connectors: {train_metrics: {metrics_flush_interval: 200ms}}")
	c.env = append(c.env, "TRAINBRIDGE_TRAIN_LOGS="+dir+"/*.jsonl", "TRAINBRIDGE_STATE_DIR="+state)
	rnd := rand.New(rand.NewPCG(27, 4))
	var all []record
	grow := func() {
		t.Helper()
		for range 60 + rnd.IntN(60) {
			all = append(all, jsonRecord(rnd, 0, len(all)))
			appendTo(t, filepath.Join(dir, "train.jsonl"), all[len(all)-1].lines[0][0]+"\n")
		}
		eventually(t, func() error {
			for _, r := range all {
				if !sink.has(r.keys[0]) {
					return fmt.Errorf("%s is not accepted", r.keys[0])
				}
			}
			return nil
		})
	}
	c.up(t)
	for range 20 {
		grow()
		eventually(t, c.counted("ml_train_step_duration_seconds_count", len(all)))
		moment(rnd, 1500) // the last block of a file has some room, or none
		free := fill(t, state)
		grow()
		moment(rnd, 2500) // positions are stored once a second
		c.kill()
		free()
		c.up(t)
		eventually(t, c.counted("ml_train_step_duration_seconds_count", len(all)))
	}
	c.stop(t)
}

// counted compares the sum of a counter with want.
func (c *collector) counted(name string, want int) func() error {
	return func() error {
		list, err := metricsOf(c.metrics)
		if err != nil {
			return err
		}
		sum := 0
		for _, m := range list {
			if m.name == name {
				sum += int(m.value)
			}
		}
		if sum != want {
			err = fmt.Errorf("%s is %d, want %d", name, sum, want)
		}
		return err
	}
}

// rose waits until both counters have risen by want since their first scrape. Prometheus extrapolates by one or two scrapes, possibly far apart.
func (a *agents) rose(p *prometheus, counter string, want float64) {
	a.Helper()
	eventually(a, func() error {
		got, err := p.value(`sum without (trainbridge_collector) (increase(` + counter + `[5m]))`)
		if err == nil && math.Abs(got-want) > 0.15*want {
			err = fmt.Errorf("%s rose by %v, want %v", counter, got, want)
		}
		return err
	})
}
