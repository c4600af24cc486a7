package compare

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/stat"
)

// Past is a run in a lake, with the columns of the table of runs.
type Past struct {
	Run     string
	Start   time.Time
	Texts   map[string]string
	Numbers map[string]float64
}

// ReadHistory reads a run of a lake, the newest for "", and the runs in the time (last) before; left are errors of files that cannot be read. nil: this is the
// agent, which reads no Parquet.
var ReadHistory func(dir, run string, last time.Duration) (of Past, before []Past, left []error, err error)

// fewestLike is how many like runs it takes to call the longest or the shortest unusual.
const fewestLike = 10

// pastFigures are the figures of a run among others.
var pastFigures = []struct {
	name, low, high string // words for the lowest and the highest
	of              func(*Past) float64
	write           func(float64) string
}{
	{"step time", "shortest", "longest", column("step_time_s_p50"), human.Seconds},
	{"tokens/s", "lowest", "highest", column("tokens_per_sec_p50"), human.Digits},
	{"MFU", "lowest", "highest", column("mfu_p50"), human.Percent},
	{"goodput", "lowest", "highest", column("goodput"), human.Percent},
	{"time in checkpoints", "lowest", "highest", shareOf("checkpoint_s"), human.Percent},
	{"time stalled or down", "lowest", "highest", shareOf("down_s", "stalled_s", "unexplained_s"), human.Percent},
	{"waiting for late ranks, per step", "shortest", "longest", perStep("late_cost_s"), human.Seconds},
}

// column returns a function that returns a column of the table of runs; NaN: the run has no value.
func column(name string) func(*Past) float64 {
	return func(p *Past) float64 {
		if x, ok := p.Numbers[name]; ok {
			return x
		}
		return math.NaN()
	}
}

// shareOf returns a function that returns the sum of columns as a share of the wall clock.
func shareOf(names ...string) func(*Past) float64 {
	return func(p *Past) (sum float64) {
		for _, name := range names {
			sum += column(name)(p)
		}
		return sum / column("wall_s")(p)
	}
}

// perStep returns a function that returns a column divided by the number of steps of the run.
func perStep(name string) func(*Past) float64 {
	return func(p *Past) float64 { return column(name)(p) / column("steps")(p) }
}

// history is a run and the like runs before it.
type history struct {
	run     *Past
	like    []Past
	others  int // runs that are not like it
	figures []pastFigure
	last    string // the value of --last
}

// pastFigure is a figure of the run, with its rank among those of like runs.
type pastFigure struct {
	Name   string   `json:"name"`
	Value  float64  `json:"value"`
	Rank   int      `json:"rank"` // 1: the lowest; runs with the same value share a rank
	Of     int      `json:"of"`   // with this run
	Median *float64 `json:"median,omitempty"`
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
	Edge   string   `json:"edge,omitempty"` // lowest or highest: beyond all like runs, of which there are enough

	write func(float64) string
	words string // for the edge
}

// likeKey returns a key that like runs have in common: the trainer, the model and the number of ranks.
func (p *Past) likeKey() string {
	return strings.Join([]string{p.Texts["formats"], p.Texts["model"], strconv.FormatFloat(p.Numbers["ranks"], 'f', -1, 64)}, "\x00")
}

// rankAmong ranks each figure of the run among those of the like runs before. With fewestLike values or more, a figure beyond all of them gets an edge.
func rankAmong(run Past, before []Past, last string) *history {
	h := &history{run: &run, last: last}
	for i := range before {
		if before[i].likeKey() == run.likeKey() {
			h.like = append(h.like, before[i])
		} else {
			h.others++
		}
	}
	for _, f := range pastFigures {
		value := f.of(&run)
		if !stat.Finite(value) {
			continue
		}
		var values []float64
		for i := range h.like {
			if x := f.of(&h.like[i]); stat.Finite(x) {
				values = append(values, x)
			}
		}
		slices.Sort(values)
		one := pastFigure{Name: f.name, Value: value, Rank: 1, Of: len(values) + 1, write: f.write}
		for _, x := range values {
			if x < value {
				one.Rank++
			}
		}
		if n := len(values); n > 0 {
			median := stat.Middle(values)
			one.Median, one.Low, one.High = &median, &values[0], &values[n-1]
			switch {
			case n < fewestLike:
			case value < values[0]:
				one.Edge, one.words = "lowest", f.low
			case value > values[n-1]:
				one.Edge, one.words = "highest", f.high
			}
		}
		h.figures = append(h.figures, one)
	}
	return h
}

// conclusion returns a sentence or two about what is unusual.
func (h *history) conclusion() string {
	var edges []string
	for i := range h.figures {
		if f := &h.figures[i]; f.Edge != "" {
			edges = append(edges, fmt.Sprintf("%s %s, %s of %d (median %s)", f.Name, f.write(f.Value), f.words, f.Of, f.write(*f.Median)))
		}
	}
	switch n := len(h.like); {
	case n == 0:
		return "There is no like run before it: nothing to compare with."
	case n < fewestLike:
		return fmt.Sprintf("Only %s before it: too few to call anything unusual (%d at least).", human.Plural(n, "like run"), fewestLike)
	case len(edges) == 0:
		return fmt.Sprintf("Nothing unusual: each figure is within those of %s before it.", human.Plural(n, "like run"))
	default:
		return fmt.Sprintf("Unusual among %s before it: %s. By chance alone a figure is beyond all others in 2 of %d runs.",
			human.Plural(n, "like run"), strings.Join(edges, "; "), n+1)
	}
}

// writeText writes the run, the conclusion and, with like runs, a table of the figures that like runs have too.
func (h *history) writeText(w *bytes.Buffer) {
	p := h.run
	fmt.Fprintf(w, "%s, begun %s: %s, %s\n", reading.Clean(p.Run), p.Start.Format(time.DateTime), cmp.Or(reading.Clean(p.Texts["formats"]), "no training log"),
		ranksOf(p))
	for _, line := range human.Wrap(h.conclusion(), 100) {
		fmt.Fprintln(w, line)
	}
	if len(h.like) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s %s %s %s %s\n", human.Pad("figure", 34), human.PadLeft("this run", 10), human.PadLeft("rank", 10), human.PadLeft("median", 10), "  range")
	for i := range h.figures {
		f := &h.figures[i]
		if f.Median == nil {
			continue
		}
		fmt.Fprintf(w, "%s %s %s %s   %s\n", human.Pad(f.Name, 34), human.PadLeft(f.write(f.Value), 10), human.PadLeft(fmt.Sprintf("%d of %d", f.Rank, f.Of), 10),
			human.PadLeft(f.write(*f.Median), 10), human.Range(f.write(*f.Low), f.write(*f.High)))
	}
	fmt.Fprintf(w, "\nRank 1 is the lowest. Like runs have the same trainer, model and number of GPUs; %s left out.\n", human.Plural(h.others, "other run"))
}

// ranksOf returns the number of GPUs of a run as a text.
func ranksOf(p *Past) string {
	if n, ok := p.Numbers["ranks"]; ok {
		return human.Plural(int64(n), "GPU")
	}
	return "number of GPUs not known"
}

// writeJSON writes the history as a JSON document. figures is never null.
func (h *history) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Conclusion string       `json:"conclusion"`
		Run        string       `json:"run"`
		Start      time.Time    `json:"start"`
		Like       int          `json:"like_runs"`
		Others     int          `json:"other_runs"`
		Last       string       `json:"last,omitempty"`
		Figures    []pastFigure `json:"figures"`
	}{h.conclusion(), h.run.Run, h.run.Start, len(h.like), h.others, h.last, append([]pastFigure{}, h.figures...)})
}

// isLake reports whether a directory is a lake.
func isLake(dir string) bool {
	days, err := filepath.Glob(filepath.Join(dir, "runs", "day=*"))
	return err == nil && len(days) > 0
}

// parseDays parses a number of days, such as 30d; "": 0.
func parseDays(text string) (time.Duration, bool) {
	number, ok := strings.CutSuffix(text, "d")
	n, err := strconv.Atoi(number)
	if text == "" {
		return 0, true
	}
	return time.Duration(n) * 24 * time.Hour, ok && err == nil && n > 0 && n <= 36_500
}

// compareHistory compares a run of a lake, by id or the newest for "", with the like runs before, and prints the history as text or JSON. HTML and Chinese are
// usage errors.
func compareHistory(cmd *cobra.Command, lake, id string, opt *options) error {
	if ReadHistory == nil {
		return reading.Errorf(cmd, "a lake is read by the full build only: make that with `make build-full`")
	}
	if !isLake(lake) {
		return reading.Errorf(cmd, "%s is no lake: report --format parquet -o %s makes one", lake, lake)
	}
	last, ok := parseDays(opt.last)
	if !ok {
		return reading.Errorf(cmd, "--last %q: a number of days, such as 30d", opt.last)
	}
	if opt.format == "html" || opt.lang != "en" {
		return reading.Errorf(cmd, "a run among its history is English text or JSON")
	}
	run, before, left, err := ReadHistory(lake, id, last)
	if err != nil {
		return reading.Errorf(cmd, "%w", err)
	}
	if len(left) > 0 {
		cmd.PrintErrf("%s left out, such as %v\n", human.Plural(len(left), "file"), left[0])
	}
	if run.Run == "" && id != "" {
		return reading.Errorf(cmd, "--run %s: %s has no such run", id, lake)
	}
	if run.Run == "" {
		return reading.Errorf(cmd, "%s has no run that can be read", lake)
	}
	h := rankAmong(run, before, opt.last)
	var out bytes.Buffer
	if opt.format == "json" {
		if err := h.writeJSON(&out); err != nil {
			return err
		}
	} else {
		h.writeText(&out)
	}
	_, err = out.WriteTo(cmd.OutOrStdout())
	return err
}
