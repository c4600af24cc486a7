// Command bench runs the shipped collector and its peers side by side: the same log, the same core, the same sink, in turn. It prints tables in Markdown and
// asserts nothing.
//
// Contenders are pinned to core 0; this program, the sink, should be pinned to another core (bench/run.sh does).
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/trainbridge/trainbridge/internal/fakenvml"
)

// options are the command's flags.
type options struct {
	bin, gen, out   string
	contenders      []contender
	only            *regexp.Regexp // names of duels, idle, latency, gpus, kafka, offline, files
	lines, rounds   int
	idleFiles       int
	settle, watched time.Duration // of idle contenders
	coldBuild       bool
}

// main reads the flags and runs the bench; an error is exit code 1.
func main() {
	o := options{}
	flag.StringVar(&o.bin, "bin", "bin/trainbridge", "the collector")
	flag.StringVar(&o.gen, "gen", "bin/gen", "what writes the logs")
	peerBin := flag.String("peer", "bin/trainbridge-full", "the collector that runs file_log")
	base := flag.String("base", "", "another build of trainbridge, to compare with")
	baseConfig := flag.String("base-config", "otelcol-config.yaml", "the shipped configuration of -base: an older build may not know all keys of this tree's")
	rotelBin := flag.String("rotel", os.Getenv("ROTEL"), "rotel, with its file receiver; empty: leave it out")
	kafkaLibs := flag.String("kafka", "bin/tools/kafka", "the broker that make kafka installs; where it is not there, nothing goes through Kafka")
	fluentBin := flag.String("fluent-bit", os.Getenv("FLUENT_BIT"), "Fluent Bit; empty: leave it out")
	flag.StringVar(&o.out, "out", "bench/out", "working directory")
	flag.IntVar(&o.lines, "lines", 400_000, "lines of a log, about")
	flag.IntVar(&o.rounds, "rounds", 5, "times that each contender runs")
	flag.IntVar(&o.idleFiles, "idle-files", 10_000, "files of the idle test")
	flag.DurationVar(&o.settle, "settle", 75*time.Second, "how long what is idle runs before it is measured: the collector gives memory back after up to a minute")
	flag.DurationVar(&o.watched, "watched", 30*time.Second, "how long it is measured")
	flag.BoolVar(&o.coldBuild, "cold-build", false, "measure also a build without Go's build cache")
	only := flag.String("only", "", "`regexp` of what to run: names of logs, idle, latency, gpus, kafka, offline, files; empty: all")
	python := flag.String("python", "bin/tools/tables/bin/python", "Python with DuckDB and polars, which make tables installs")
	which := flag.String("contenders", "", "`regexp` of the contenders to run, such as '^(trainbridge|base)$'; empty: all")
	flag.Parse()
	var err error
	o.only, err = regexp.Compile(*only)
	if err == nil {
		err = o.run(os.Stdout, *which, *peerBin, *base, *baseConfig, *rotelBin, *fluentBin, *kafkaLibs, *python)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// part is a part of the bench beside the duels.
type part struct {
	name string
	run  func() (printed, error)
}

// printed is a table that writes itself in Markdown.
type printed interface{ print(w io.Writer) }

// run runs what o.only asks for, in the order of the tables, and prints each table when done. which is a regular expression of contenders' names; the other
// arguments are paths, empty for what is left out.
func (o *options) run(w io.Writer, which, peerBin, base, baseConfig, rotelBin, fluentBin, kafkaLibs, python string) error {
	want, err := regexp.Compile(which)
	if err != nil {
		return err
	}
	// A contender runs in a directory of its own.
	for _, path := range []*string{&o.bin, &o.gen, &o.out, &peerBin, &base, &rotelBin, &fluentBin, &kafkaLibs, &python} {
		if *path != "" {
			*path, err = filepath.Abs(*path)
			if err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	o.contenders = contenders(o.bin, peerBin, base, baseConfig, rotelBin, fluentBin)
	o.contenders = slices.DeleteFunc(o.contenders, func(c contender) bool { return !want.MatchString(c.name) })

	r := report{}
	for i := range duels {
		d := &duels[i]
		if !o.only.MatchString(d.name) {
			continue
		}
		t, err := o.duel(d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		t.print(w)
		r.tables = append(r.tables, t)
	}
	if o.only.MatchString("idle") {
		r.idle, err = o.idle()
		if err != nil {
			return fmt.Errorf("idle files: %w", err)
		}
		r.idle.print(w)
	}
	parts := []part{
		{"latency", func() (printed, error) { return o.latency() }},
		{"gpus", func() (printed, error) { return o.gpus() }},
		{"kafka", func() (printed, error) { return o.collectives(kafkaLibs) }},
		{"offline", func() (printed, error) { return o.offline(python) }},
		{"files", func() (printed, error) { return o.files() }},
	}
	for _, p := range parts {
		if _, err := os.Stat(kafkaLibs); !o.only.MatchString(p.name) || p.name == "kafka" && err != nil {
			continue
		}
		t, err := p.run()
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		t.print(w)
	}
	if err := r.binary(o.bin, o.coldBuild); err != nil {
		return err
	}
	r.print(w)
	return nil
}

// duel has all contenders read the log of d, in rounds, each beginning with a different contender: what warms up or slows down in a round is shared. A
// contender that does not deliver all runs no more and has no row; trainbridge must deliver all.
func (o *options) duel(d *duel) (*table, error) {
	log := filepath.Join(o.out, d.name+".log")
	t := &table{duel: d, contenders: o.contenders, samples: make([][]sample, len(o.contenders)), short: map[string]string{}}
	if err := t.generate(o.gen, log, o.lines); err != nil {
		return nil, err
	}
	defer os.Remove(log)
	for round := range o.rounds {
		for k := range o.contenders {
			i := (k + round) % len(o.contenders)
			c := &o.contenders[i]
			if t.short[c.name] != "" {
				continue
			}
			want := t.want(c)
			s, err := o.measure(c, d, log, want)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Fprintf(os.Stderr, "%s, round %d, %s: %.2f s\n", d.name, round+1, c.name, s.cpu)
			if t.samples[i] = append(t.samples[i], s); s.items < want {
				t.samples[i], t.short[c.name] = nil, fmt.Sprintf("%d of %d items in round %d", s.items, want, round+1)
			}
		}
	}
	if t.short[ours] != "" {
		return nil, fmt.Errorf("%s delivered %s", ours, t.short[ours])
	}
	return t, nil
}

// want is how many items a contender delivers at least.
func (t *table) want(c *contender) int64 {
	switch {
	case c.drops:
		return t.fit
	case c.records:
		return t.lines
	}
	return t.spans
}

// generate has gen write the log of the duel, and counts the lines, the lines that fit the peers' expression, and the spans that will be made.
func (t *table) generate(gen, log string, lines int) error {
	dir, err := os.MkdirTemp(filepath.Dir(log), "gen")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	to := filepath.Join(dir, "x.log")
	if t.duel.written != "" {
		to = dir
	}
	cmd := exec.Command(gen, append(t.duel.gen(lines), "--out", to, "--seed", "1", "--truth", "none")...)
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	if t.spans, err = t.duel.spans(string(said)); err != nil {
		return err
	}
	if t.duel.written != "" {
		found, err := filepath.Glob(filepath.Join(to, t.duel.written))
		if err != nil || len(found) != 1 {
			return errors.Join(err, fmt.Errorf("%d %s in %s", len(found), t.duel.written, to))
		}
		to = found[0]
	}
	raw, err := os.ReadFile(to)
	t.lines, t.size, t.fit = int64(bytes.Count(raw, []byte("\n"))), int64(len(raw)), t.duel.fits(raw)
	return errors.Join(err, os.Rename(to, log))
}

const (
	// trailing is the time after the last item in which a contender's work still counts: positions are acknowledged and stored.
	trailing = 100 * time.Millisecond
	// quiet is the silence after which nothing more is expected of a contender that has not delivered all.
	quiet = 3 * time.Second
	// unknown is the number of items that a contender delivers where only its own work tells.
	unknown = math.MaxInt64
)

// measure has c read log, until so many items have arrived as are wanted and no more come. The CPU time is read once trailing has passed after the last item,
// and again if more items come; what is missing after quiet does not come. Where nobody knows the number, unknown is wanted. An error says that after 5 minutes
// nothing has arrived, or items still come.
func (o *options) measure(c *contender, d *duel, log string, want int64) (sample, error) {
	dir, err := os.MkdirTemp(o.out, "run")
	if err != nil {
		return sample{}, err
	}
	defer os.RemoveAll(dir)
	p, s, err := c.start(d, dir)
	if err != nil {
		return sample{}, err
	}
	defer s.stop()
	defer p.stop()
	before, err := p.cpu() // of the start, which does not count
	if err != nil {
		return sample{}, err
	}
	patience := quiet
	if c.reads {
		before, patience = 0, 5*quiet // nothing arrives while held-back data is read
	}
	begin := time.Now()
	// A hard link makes the whole file appear at once, without the cost of a copy.
	if err := os.Link(log, filepath.Join(dir, "verl.log")); err != nil {
		return sample{}, err
	}
	r, last := sample{}, begin // last: when an item arrived last
	for settled := false; ; time.Sleep(5 * time.Millisecond) {
		m, err := p.memory()
		if err != nil {
			return sample{}, err
		}
		r.anon, r.file, r.peak = max(r.anon, m.anon), max(r.file, m.file), m.peak
		now := time.Now()
		if n := s.items.Load(); n > r.items {
			r.items, r.wall, last, settled = n, now.Sub(begin).Seconds(), now, false
		}
		if r.items == 0 || now.Sub(last) < trailing {
			if now.Sub(begin) > 5*time.Minute {
				return sample{}, fmt.Errorf("after 5 minutes %d items have arrived; see %s", r.items, p.log)
			}
			continue
		}
		if !settled {
			after, err := p.cpu()
			if err != nil {
				return sample{}, err
			}
			r.cpu, settled = (after - before).Seconds(), true
		}
		if r.items >= want || now.Sub(last) > patience {
			r.bytes = s.bytes.Load()
			return r, os.Remove(p.log)
		}
	}
}

// start starts a sink and a contender that sends to the sink; more is added to the contender's environment. The caller stops both.
func (c *contender) start(d *duel, dir string, more ...string) (*process, *sink, error) {
	s, err := newSink()
	if err != nil {
		return nil, nil, err
	}
	args, env, err := c.command(d, dir, s)
	if err != nil {
		s.stop()
		return nil, nil, err
	}
	p, err := start(dir, args, append(env, more...), c.ready)
	if err != nil {
		s.stop()
	}
	return p, s, err
}

// idle has trainbridge and file_log watch many files that do not grow, and none.
func (o *options) idle() (*idleTable, error) {
	t := &idleTable{title: fmt.Sprintf("%d idle files", o.idleFiles)}
	for _, c := range o.contenders {
		if c.name != ours && c.name != peer {
			continue
		}
		for _, files := range []int{0, o.idleFiles} {
			dir, err := os.MkdirTemp(o.out, "idle")
			if err != nil {
				return nil, err
			}
			defer os.RemoveAll(dir)
			for i := range files {
				line := fmt.Sprintf("INFO:2026-02-11 16:40:00,120:[TQ-LOG] op=TQ_PUT | func=fit:%d | stage=END | duration=0.031187s\n", i)
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("worker-%05d.log", i)), []byte(line), 0o600); err != nil {
					return nil, err
				}
			}
			if err := o.still(t, fmt.Sprintf("%s, %d files", c.name, files), &c, &duels[0], dir); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// gpus has nvml sample 8 GPUs of internal/fakenvml once a second, beside the same collector without GPUs. The time of a real driver is not measured.
func (o *options) gpus() (*idleTable, error) {
	dir, err := os.MkdirTemp(o.out, "gpus")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := fakenvml.BuildDir(dir); err != nil {
		return nil, err
	}
	state, err := fakenvml.New(filepath.Join(dir, "gpus"), "devices 8\n")
	if err != nil {
		return nil, err
	}
	defer state.Close()
	t, c := &idleTable{title: "GPUs"}, collector("", o.bin, "none", "otelcol-config", "bench/config/shipped", "bench/config/every_second")
	if err := o.still(t, "8 GPUs at 1 Hz", &c, &duels[0], dir, "LD_LIBRARY_PATH="+dir, fakenvml.Env+"="+state.Path()); err != nil {
		return nil, err
	}
	return t, o.still(t, "no GPUs", &c, &duels[0], dir)
}

// still adds a row to t: what c costs while nothing happens in dir, after o.settle, for o.watched.
func (o *options) still(t *idleTable, name string, c *contender, d *duel, dir string, env ...string) error {
	p, s, err := c.start(d, dir, env...)
	if err != nil {
		return err
	}
	defer s.stop()
	defer p.stop()
	time.Sleep(o.settle)
	before, errB := p.cpu()
	time.Sleep(o.watched)
	after, errA := p.cpu()
	m, errM := p.memory()
	t.rows = append(t.rows, idleRow{name, (after - before).Seconds() / o.watched.Seconds(), m})
	return errors.Join(errB, errA, errM, os.Remove(p.log))
}
