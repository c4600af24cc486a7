package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/internal/stat"
)

// sample is a run of a contender over a log. Each value of memory is a maximum.
type sample struct {
	cpu, wall float64 // seconds: from the file's appearance to a moment after the last item's arrival, and to the arrival
	memory
	items, bytes int64
}

// table is the result of a duel.
type table struct {
	duel        *duel
	lines, size int64 // of the log; size in bytes
	fit         int64 // lines that the expression for peers fits
	spans       int64 // that the log becomes at least
	contenders  []contender
	samples     [][]sample        // by contender, by round
	short       map[string]string // by contender that did not deliver all: how much
}

// stats are the medians of a contender's rounds; of memory the largest.
type stats struct {
	line, low, high          float64 // CPU per line: µs
	item                     float64 // CPU per item: µs
	itemsPerLine             float64
	bytesPerLine, bytesPerIt float64 // on the wire: per line, per item
	memory
	ok bool // the contender ran
}

// column is a value of each element.
func column[T any](list []T, of func(T) float64) []float64 {
	v := make([]float64, 0, len(list))
	for _, x := range list {
		v = append(v, of(x))
	}
	return v
}

// of gives the figures of a contender; not ok if the contender did not run.
func (t *table) of(name string) stats {
	i := slices.IndexFunc(t.contenders, func(c contender) bool { return c.name == name })
	if i < 0 || len(t.samples[i]) == 0 {
		return stats{}
	}
	all, lines := t.samples[i], float64(t.lines)
	cpu := column(all, func(s sample) float64 { return 1e6 * s.cpu / lines })
	items := stat.Middle(column(all, func(s sample) float64 { return float64(s.items) }))
	bytes := stat.Middle(column(all, func(s sample) float64 { return float64(s.bytes) }))
	return stats{
		line: stat.Middle(cpu), low: slices.Min(cpu), high: slices.Max(cpu), item: stat.Middle(cpu) * lines / items,
		itemsPerLine: items / lines, bytesPerLine: bytes / lines, bytesPerIt: bytes / items,
		memory: memory{
			anon: slices.Max(column(all, func(s sample) float64 { return s.anon })),
			file: slices.Max(column(all, func(s sample) float64 { return s.file })),
			peak: slices.Max(column(all, func(s sample) float64 { return s.peak })),
		},
		ok: true,
	}
}

// print writes a row for each contender; its multiples are of the first contender: trainbridge, unless left out.
func (t *table) print(w io.Writer) {
	fmt.Fprintf(w, "### %s: %d lines of %.0f B\n\n", t.duel.name, t.lines, float64(t.size)/float64(t.lines))
	fmt.Fprintln(w, "| contender | CPU µs per line (rounds) | per line | per item | items per line | wire B per line | per item "+
		"| MiB own | mapped | peak of both |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|")
	first := t.of(t.contenders[0].name)
	for _, c := range t.contenders {
		s := t.of(c.name)
		if !s.ok {
			continue
		}
		fmt.Fprintf(w, "| %s | %.2f (%.2f–%.2f) | %.2f× | %.2f× | %.2f | %.0f | %.0f | %.0f | %.0f | %.0f |\n", c.name, s.line, s.low, s.high,
			s.line/first.line, s.item/first.item, s.itemsPerLine, s.bytesPerLine, s.bytesPerIt, s.anon, s.file, s.peak)
	}
	fmt.Fprintln(w)
	for _, name := range slices.Sorted(maps.Keys(t.short)) {
		fmt.Fprintf(w, "%s has no row: it delivered %s.\n\n", name, t.short[name])
	}
}

// idleTable is the cost of idle contenders.
type idleTable struct {
	title string
	rows  []idleRow
}

// idleRow is a contender while nothing happens.
type idleRow struct {
	name string
	core float64 // the share of a core
	memory
}

// print writes the table in Markdown.
func (t *idleTable) print(w io.Writer) {
	fmt.Fprintf(w, "| %s | %% of a core | MiB own | mapped | peak of both |\n|---|---|---|---|---|\n", t.title)
	for _, r := range t.rows {
		fmt.Fprintf(w, "| %s | %.2f | %.0f | %.0f | %.0f |\n", r.name, 100*r.core, r.anon, r.file, r.peak)
	}
	fmt.Fprintln(w)
}

// report is the content of all tables.
type report struct {
	tables    []*table
	idle      *idleTable
	size      int64         // of the binary
	coldBuild time.Duration // 0: not measured
}

// binary measures the size of bin, and the time of a build without a cache if cold.
func (r *report) binary(bin string, cold bool) error {
	info, err := os.Stat(bin)
	if err != nil {
		return err
	}
	r.size = info.Size()
	if !cold {
		return nil
	}
	dir, err := os.MkdirTemp("", "cold")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("make", "build", "BIN="+dir)
	cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(dir, "cache"))
	begin := time.Now()
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make build: %w: %s", err, text)
	}
	r.coldBuild = time.Since(begin)
	return nil
}

// times is the ratio of theirs to ours in CPU; empty: either did not run.
func times(theirs, ours float64) string {
	if theirs == 0 || ours == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f×", theirs/ours)
}

// print writes what is said over all tables: the summary of the duels, and the aims.
func (r *report) print(w io.Writer) {
	if len(r.tables) > 0 {
		r.summary(w)
	}
	r.aims(w)
}

// summary writes the table of docs/reference/performance.md: for each log, trainbridge's figures and those of its peers as multiples. Peers that have figures
// for no log have no column.
func (r *report) summary(w io.Writer) {
	peers := slices.DeleteFunc([]string{peer, typed, rotel, fluentBit, "base"}, func(name string) bool {
		return !slices.ContainsFunc(r.tables, func(t *table) bool { return t.of(name).ok })
	})
	fmt.Fprintln(w, "CPU of a peer as a multiple of trainbridge's, per line / per item that arrives (a span of trainbridge, a log record of a peer):")
	fmt.Fprintf(w, "\n| log | trainbridge: k lines/s per core | spans per line | %s | B per span | peak MiB: own + mapped | of %s |\n",
		strings.Join(peers, " | "), peer)
	fmt.Fprintf(w, "|---%s\n", strings.Repeat("|---", len(peers)+5)+"|")
	for _, t := range r.tables {
		us, them := t.of(ours), t.of(peer)
		fmt.Fprintf(w, "| %s, %.0f B | %.0f | %.2f |", t.duel.name, float64(t.size)/float64(t.lines), 1e3/us.line, us.itemsPerLine)
		for _, name := range peers {
			s := t.of(name)
			fmt.Fprintf(w, " %s / %s |", times(s.line, us.line), times(s.item, us.item))
		}
		fmt.Fprintf(w, " %.0f | %.0f + %.0f | %.0f + %.0f |\n", us.bytesPerIt, us.anon, us.file, them.anon, them.file)
	}
	fmt.Fprint(w, `
Comparable: all read the same file on one core and send all of it to one sink by OTLP without compression; trainbridge and file_log are collectors of
the same version with the same GOGC (file_log needs the full build, so compare what is their own and not what is mapped). trainbridge runs its shipped
topology: it makes spans with units and parents, joins lines that belong together, judges them (train_perf), makes metrics of them (train_metrics),
and moves its position in the file only when the sink has accepted. No peer makes spans from logs: each sends one record per line with the fields as
text, file_log with the time stamp, rotel and Fluent Bit without; rotel drops lines that its pattern does not fit. "typed" makes numbers of the
fields: of JSON in the parser, of text by the transform processor.

`)
}

// aims writes the project's targets beside what was measured. What did not run has no row, or an empty cell.
func (r *report) aims(w io.Writer) {
	fmt.Fprintln(w, "| figure | measured | aim |\n|---|---|---|")
	row := func(figure, measured, aim string) { fmt.Fprintf(w, "| %s | %s | %s |\n", figure, measured, aim) }
	// The log with the largest value.
	worst := func(of func(*table) float64) (string, float64) {
		t := slices.MaxFunc(r.tables, func(a, b *table) int { return cmp.Compare(of(a), of(b)) })
		return t.duel.name, of(t)
	}
	for _, t := range r.tables {
		us, them := t.of(ours), t.of(peer)
		row(t.duel.name+", CPU per line of file_log beside trainbridge's", times(them.line, us.line), fmt.Sprintf("≥ %.0f×", t.duel.perLine))
		if t.duel.perItem > 0 {
			row(t.duel.name+", CPU per item", times(them.item, us.item), fmt.Sprintf("≥ %.0f×", t.duel.perItem))
		}
		if t.duel.perSpan > 0 {
			row(t.duel.name+", bytes per span, uncompressed", fmt.Sprintf("%.0f", us.bytesPerIt), fmt.Sprintf("≤ %.0f", t.duel.perSpan))
		}
	}
	if len(r.tables) > 0 {
		name, ratio := worst(func(t *table) float64 { return t.of(ours).line / max(t.of(alone).line, 1e-9) }) // not by 0, where alone did not run
		if r.tables[0].of(alone).ok {
			all := stat.Middle(column(r.tables, func(t *table) float64 { return t.of(ours).line / t.of(alone).line }))
			row("shipped topology against exporter alone, median of the logs", fmt.Sprintf("%.2f (worst: %s, %.2f)", all, name, ratio), "≤ 1.08")
		}
		name, peak := worst(func(t *table) float64 { return t.of(ours).peak })
		row("peak RSS of any log", fmt.Sprintf("%.0f MiB (%s)", peak, name), "≤ 100 MiB")
	}
	if r.idle != nil && len(r.idle.rows) > 1 {
		empty, full := r.idle.rows[0], r.idle.rows[1]
		row(r.idle.title+", peak above empty", fmt.Sprintf("%.0f MiB", full.peak-empty.peak), "≤ 64 MiB")
		row(r.idle.title+", share of a core", fmt.Sprintf("%.2f %%", 100*full.core), "< 1 %")
	}
	row("binary", fmt.Sprintf("%.0f MB", float64(r.size)/1e6), "≤ 55 MB")
	if r.coldBuild > 0 {
		row("build without a cache", fmt.Sprintf("%.1f min", r.coldBuild.Minutes()), "≤ 4.5 min")
	}
	fmt.Fprintln(w)
}
