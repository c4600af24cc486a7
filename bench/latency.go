package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// latencies are lines per second of the latency test, and among how many files they are dealt.
var latencies = []struct{ rate, files int }{{5, 1}, {10_000, 1}, {10_000, 100}}

// latencyFor is how long lines are written at each rate.
const latencyFor = 20 * time.Second

// latencyTable tells how long a line takes from its write to the sink.
type latencyTable struct{ rows []latencyRow }

// latencyRow is a contender at one rate.
type latencyRow struct {
	name          string
	rate, files   int
	p50, p99, max time.Duration
	cpu           float64 // µs per line
}

// latency has the collector, and the older build if given, read a JSONL log while the log is written: each line becomes a span.
func (o *options) latency() (*latencyTable, error) {
	i := slices.IndexFunc(duels, func(d duel) bool { return d.name == "JSONL" })
	log, d := filepath.Join(o.out, "latency.log"), &duels[i]
	most := 0 // lines of the longest test
	for _, l := range latencies {
		most = max(most, l.files+l.rate*int(latencyFor.Seconds()))
	}
	if err := (&table{duel: d}).generate(o.gen, log, most); err != nil {
		return nil, err
	}
	defer os.Remove(log)
	text, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	t := &latencyTable{}
	for range o.rounds {
		for _, l := range latencies {
			for _, c := range o.contenders {
				if c.name != ours && c.name != "base" {
					continue
				}
				row, err := o.follow(&c, d, lines[:l.files+l.rate*int(latencyFor.Seconds())], l.rate, l.files)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", c.name, err)
				}
				t.rows = append(t.rows, row)
			}
		}
	}
	return t, nil
}

// follow has c read logs while lines are written to them at a rate, and compares when each line was written and when its span arrived: the n-th span counts as
// that of the n-th line. The first line of each file is written before, so that the file is known, and not counted.
func (o *options) follow(c *contender, d *duel, lines [][]byte, rate, files int) (row latencyRow, err error) {
	dir, err := os.MkdirTemp(o.out, "latency")
	if err != nil {
		return row, err
	}
	defer os.RemoveAll(dir)
	p, s, err := c.start(d, dir)
	if err != nil {
		return row, err
	}
	defer s.stop()
	defer p.stop()
	to := make([]*os.File, files)
	for i := range to {
		to[i], err = os.Create(filepath.Join(dir, fmt.Sprintf("train-%d.log", i)))
		if err != nil {
			return row, err
		}
		defer to[i].Close()
		if _, err := to[i].Write(lines[i]); err != nil {
			return row, err
		}
	}
	time.Sleep(quiet)
	lines = lines[files:]
	before, err := p.cpu()
	if err != nil {
		return row, err
	}
	// Write, while a goroutine notes the arrivals.
	arrived, begin := make(chan []time.Duration), time.Now()
	go func() { arrived <- s.arrivals(begin, s.items.Load(), len(lines)) }()
	written := make([]time.Duration, len(lines))
	for next := 0; next < len(lines); time.Sleep(time.Millisecond) {
		now := time.Since(begin)
		for until := min(len(lines), 1+int(now.Seconds()*float64(rate))); next < until; next++ {
			if _, err := to[next%files].Write(lines[next]); err != nil {
				return row, err
			}
			written[next] = time.Since(begin)
		}
	}
	took := <-arrived
	after, err := p.cpu()
	if err != nil || len(took) < len(lines) {
		return row, errors.Join(err, fmt.Errorf("%d of %d lines have arrived; see %s", len(took), len(lines), p.log))
	}
	for i := range took { // from the time of arrival to the latency
		took[i] -= written[i]
	}
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))] }
	return latencyRow{c.name, rate, files, at(0.5), at(0.99), at(1), 1e6 * (after - before).Seconds() / float64(len(lines))}, os.Remove(p.log)
}

// arrivals returns when each of most items came, after the first ones and since a time. It ends when nothing comes for a while.
func (s *sink) arrivals(since time.Time, first int64, most int) (at []time.Duration) {
	for last := time.Now(); len(at) < most && time.Since(last) < 5*quiet; time.Sleep(200 * time.Microsecond) {
		for n := s.items.Load() - first; int64(len(at)) < min(n, int64(most)); last = time.Now() {
			at = append(at, time.Since(since))
		}
	}
	return at
}

// print writes the table in Markdown.
func (t *latencyTable) print(w io.Writer) {
	fmt.Fprintln(w, "| line written → accepted | lines/s | files | p50 ms | p99 | most | CPU µs per line |\n|---|---|---|---|---|---|---|")
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	for _, r := range t.rows {
		fmt.Fprintf(w, "| %s | %d | %d | %.1f | %.1f | %.1f | %.1f |\n", r.name, r.rate, r.files, ms(r.p50), ms(r.p99), ms(r.max), r.cpu)
	}
	fmt.Fprintln(w)
}
