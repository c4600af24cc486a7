//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// crashConfig has the exporter and the storage of the shipped config, and nothing that makes a start slower.
const crashConfig = `
receivers: {tq_trace: {include: [%q], storage: state_storage, run_id: %q, service_name: %q}}
processors: {train_perf: }
exporters:
  otlp_acked:
    endpoint: %q
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 100ms, max_interval: 500ms, max_elapsed_time: 0}
extensions: {state_storage: {directory: %q}}
service:
  extensions: [state_storage]
  pipelines: {traces: {receivers: [tq_trace], processors: [train_perf], exporters: [otlp_acked]}}
  telemetry: {metrics: {level: none}}
`

// crashPlan is what one run does. All of it follows from the seed; how far the collector has come at a given moment does not.
type crashPlan struct {
	seed    uint64
	writing time.Duration // how long the log takes to write
	kills   []time.Duration
	// away is when the backend goes and for how long; zero length: it stays.
	awayAt, awayFor time.Duration
	rotations       int
}

func newCrashPlan(seed uint64) (crashPlan, *rand.Rand) {
	rng := rand.New(rand.NewPCG(seed, 0xc0ffee))
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	// A collector is up within some 40 ms and stores its first offsets within a second or so: one kill in four hits the start.
	kill := func() time.Duration {
		if rng.IntN(4) == 0 {
			return upTo(60 * time.Millisecond)
		}
		return upTo(1500 * time.Millisecond)
	}
	p := crashPlan{seed: seed, writing: upTo(1500 * time.Millisecond), kills: []time.Duration{kill()}}
	for len(p.kills) < 4 && rng.IntN(3) == 0 {
		p.kills = append(p.kills, kill())
	}
	if rng.IntN(3) == 0 {
		p.awayAt, p.awayFor = upTo(800*time.Millisecond), 300*time.Millisecond+upTo(1200*time.Millisecond)
	}
	if rng.IntN(2) == 0 {
		p.rotations = 1 + rng.IntN(3)
	}
	return p, rng
}

// crashTotals sums up all runs.
type crashTotals struct{ runs, kills, early, away, rotated, spans, copies, lost atomic.Int64 }

// The promise of the shipped config: a collector that is killed at any moment, with its backend away or its log rotated,
// delivers every span after a restart, and what it delivers twice has the same ids. CRASH_RUNS says how many runs, CRASH_SEED=N repeats one.
func TestCrash(t *testing.T) {
	bin, j := trainbridgeBin(t), startJaeger(t)
	first, runs := uint64(1), 200
	if v := os.Getenv("CRASH_RUNS"); v != "" {
		n, err := strconv.Atoi(v)
		require.NoError(t, err, "CRASH_RUNS")
		runs = n
	}
	if v := os.Getenv("CRASH_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		require.NoError(t, err, "CRASH_SEED")
		first, runs = n, 1
	}
	var totals crashTotals
	began := time.Now()
	t.Run("runs", func(t *testing.T) {
		for seed := first; seed < first+uint64(runs); seed++ {
			t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
				t.Parallel()
				crash(t, bin, j, seed, &totals)
			})
		}
	})
	t.Logf("%d runs in %v: %d kills (%d before the collector was up), backend away in %d runs, %d rotations; %d spans expected, %d lost, %d delivered again with the same ids",
		totals.runs.Load(), time.Since(began).Round(time.Second), totals.kills.Load(), totals.early.Load(), totals.away.Load(), totals.rotated.Load(),
		totals.spans.Load(), totals.lost.Load(), totals.copies.Load())
}

func crash(t *testing.T, bin string, j *jaeger, seed uint64, totals *crashTotals) {
	t.Helper()
	plan, rng := newCrashPlan(seed)
	source, live := t.TempDir(), t.TempDir()
	tr := generate(t, source, "--seed", strconv.FormatUint(seed, 10), "--workers", "2", "--batches", "12", "--concurrency", "2", "--na", "0.2",
		"--functions", "generate_sequences,update_actor")
	service := fmt.Sprintf("crash-%d", seed)
	p := startProxy(t, j.otlp)
	config := write(t, "crash.yaml", fmt.Sprintf(crashConfig, globOf(live), service, service, p.addr, t.TempDir()))

	// The writer and the backend go their own way while the collector dies.
	var others sync.WaitGroup
	defer others.Wait()
	w := newWriter(t, tr, live, rng, plan.rotations)
	others.Go(func() { w.write(plan.writing) })
	if plan.awayFor > 0 {
		totals.away.Add(1)
		others.Go(func() {
			time.Sleep(plan.awayAt)
			p.cut()
			time.Sleep(plan.awayFor)
			if err := p.restore(); err != nil {
				t.Error(err)
			}
		})
	}
	for _, delay := range plan.kills {
		c := start(t, "trainbridge", bin, nil, "--config", config)
		select {
		case <-c.done:
			t.Fatalf("seed %d: the collector ended by itself:\n%s", seed, c.tail(10))
		case <-time.After(delay):
		}
		c.kill()
		totals.kills.Add(1)
		if !c.logged("Everything is ready") {
			totals.early.Add(1)
		}
	}
	c := start(t, "trainbridge", bin, nil, "--config", config)
	others.Wait()
	require.NoError(t, w.err)
	var a *answer
	err := wait(30*time.Second, func() error {
		if !c.running() {
			return fatal(fmt.Errorf("the collector ended by itself:\n%s", c.tail(10)))
		}
		td, err := j.find(service)
		if err != nil {
			return err
		}
		if td.SpanCount() < tr.run.Spans { // cheaper than a comparison
			return fmt.Errorf("%d spans of %d", td.SpanCount(), tr.run.Spans)
		}
		if a = tr.compare(td); len(a.missing) == 0 && len(a.problems) > 0 {
			return fatal(a.err())
		}
		return a.err()
	})
	totals.runs.Add(1)
	totals.rotated.Add(int64(w.rotated))
	totals.spans.Add(int64(tr.run.Spans))
	if err != nil {
		td, asked := j.find(service)
		require.NoError(t, asked)
		a = tr.compare(td)
		totals.lost.Add(int64(len(a.missing)))
		for i := range w.names {
			for n := w.parts[i]; n > 0; n-- {
				t.Logf("the last line of %s.%d: %s", w.names[i], n, lastLine(fmt.Sprintf("%s.%d", w.names[i], n)))
			}
		}
		t.Errorf("%v\nin the end: %v\nplan: %+v\nrepeat with CRASH_SEED=%d go test -tags e2e -run TestCrash ./test/e2e", err, a.err(), plan, seed)
	}
	totals.copies.Add(int64(a.copies))
	c.kill()
}

// writer copies the logs of a truth into a folder piece by piece, in pieces that do not end where lines end.
type writer struct {
	dir       string
	rng       *rand.Rand
	left      [][]byte
	names     []string
	rotations int
	rotated   int
	parts     []int
	err       error
}

func newWriter(tb testing.TB, tr *truth, dir string, rng *rand.Rand, rotations int) *writer {
	tb.Helper()
	w := &writer{dir: dir, rng: rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())), rotations: rotations}
	for _, f := range tr.run.Files {
		data, err := os.ReadFile(f.Path)
		require.NoError(tb, err)
		w.left = append(w.left, data)
		w.names = append(w.names, filepath.Join(dir, filepath.Base(f.Path)))
	}
	w.parts = make([]int, len(w.left))
	return w
}

// write spreads the writing over about the given time.
func (w *writer) write(within time.Duration) {
	const pieces = 40
	for n := range pieces {
		for i := range w.left {
			size := 1 + w.rng.IntN(2*len(w.left[i])/(pieces-n)+1)
			if n == pieces-1 {
				size = len(w.left[i])
			}
			size = min(size, len(w.left[i]))
			if w.err = w.piece(i, size); w.err != nil {
				return
			}
		}
		time.Sleep(within / pieces)
	}
}

// piece appends to a file, which is renamed now and then. As Python's rotating handlers do, it rotates between lines
// and opens the new file at once.
func (w *writer) piece(i, size int) error {
	rotate := w.rotations > 0 && w.rng.IntN(40/w.rotations) == 0
	if rotate {
		size += 1 + bytes.IndexByte(w.left[i][size:], '\n') // 0 more when the end is reached
	}
	f, err := os.OpenFile(w.names[i], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(w.left[i][:size])
	w.left[i] = w.left[i][size:]
	if err = errors.Join(err, f.Close()); err != nil || !rotate {
		return err
	}
	w.rotated++
	// .1 is the newest; the older ones move up.
	for n := w.parts[i]; n > 0; n-- {
		if err := os.Rename(fmt.Sprintf("%s.%d", w.names[i], n), fmt.Sprintf("%s.%d", w.names[i], n+1)); err != nil {
			return err
		}
	}
	w.parts[i]++
	if err := os.Rename(w.names[i], w.names[i]+".1"); err != nil {
		return err
	}
	return os.WriteFile(w.names[i], nil, 0o600)
}

func lastLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	data = bytes.TrimSuffix(data, []byte("\n"))
	return string(data[bytes.LastIndexByte(data, '\n')+1:])
}
