// Package html is the report as a page: conclusions, charts, traces. The page makes no network request.
package html

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

const (
	mostPoints = 2048    // of a series: about as many as a wide screen has columns
	fewPoints  = 128     // the least, however many jobs there are
	sizeLimit  = 4 << 20 // of the data of a page, By
)

// Page makes the page of a report.
type Page struct {
	format.Request
	jobs *digest.Jobs
}

// New is the format of `--format html`.
func New(req format.Request) format.Writer { return NewPage(req) }

// NewPage makes an unwritten page.
func NewPage(req format.Request) *Page { return &Page{Request: req, jobs: digest.New()} }

// Sink implements format.Writer.
func (w *Page) Sink() offline.Sink { return format.Digest(w.jobs) }

// Finish implements format.Writer.
func (w *Page) Finish(ctx context.Context, read *offline.Reading) error {
	data, err := w.Data(ctx, read)
	if err != nil {
		return err
	}
	return write(w.Out, data)
}

// Data is the content of the page, as JSON with <, > and & escaped. It reads the logs again for the traces to draw, if there are any. A page that would be too
// large shows less (fit).
func (w *Page) Data(ctx context.Context, read *offline.Reading) ([]byte, error) {
	jobs := format.Jobs(w.jobs, read)
	chosen := choose(jobs, w.Chinese)
	if err := w.spans(ctx, chosen); err != nil {
		return nil, err
	}
	first := make([]format.Conclusion, len(jobs)) // what the page says first of each job
	for i, j := range jobs {
		first[i] = w.Conclude(j, read)
	}
	return fit(sizeLimit, len(jobs), func(c composer) *page {
		c.chinese = w.Chinese
		p := c.page(jobs, chosen, first, read)
		p.Links = w.Links
		if len(jobs) == 0 {
			p.About += c.t(". ", "。") + w.Nothing()
		}
		return p
	})
}

// Empty is the data of a page without content, as from Data.
func (w *Page) Empty() ([]byte, error) {
	c := composer{chinese: w.Chinese}
	return marshal(c.frame())
}

// marshal is a page as JSON.
func marshal(p *page) ([]byte, error) {
	body, err := json.Marshal(p) // writes <, > and & as \u003c, \u003e and \u0026: no text can end the element around the data
	if err != nil {
		return nil, fmt.Errorf("html: %w", err)
	}
	return body, nil
}

// fit makes a page that takes limit bytes at most as JSON, if it can: points of series and rows of traces are halved down to fewPoints, then the number of jobs
// with charts is halved down to none. compose makes the page within the bounds of a composer.
func fit(limit, jobs int, compose func(composer) *page) ([]byte, error) {
	for c := (composer{points: mostPoints, rows: mostSpans, drawn: jobs}); ; {
		body, err := marshal(compose(c))
		if err != nil {
			return nil, err
		}
		switch {
		case len(body) <= limit || c.drawn == 0:
			return body, nil
		case c.points > fewPoints || c.rows > fewPoints:
			c.points, c.rows = max(c.points/2, fewPoints), max(c.rows/2, fewPoints)
		default:
			c.drawn /= 2
		}
	}
}

// composer makes a page of jobs within bounds.
type composer struct {
	chinese      bool
	points, rows int // of a series, and of a trace
	drawn        int // jobs with charts

	job string // of the charts at hand: their cursors move together
}

// t is a text in the language of the report.
func (c *composer) t(english, chinese string) string {
	if c.chinese {
		return chinese
	}
	return english
}

// frame is a page without jobs.
func (c *composer) frame() *page {
	p := &page{Title: c.t("trainbridge report", "trainbridge 报告"), Lang: "en", Words: words["en"], Jobs: []job{}}
	if c.chinese {
		p.Lang, p.Words = "zh", words["zh"]
	}
	return p
}

// page makes the page: what is said of each job, and charts of the first c.drawn jobs. chosen has the traces to draw, first the conclusion of each job.
func (c *composer) page(jobs []*digest.Job, chosen map[*digest.Job][]*choice, first []format.Conclusion, read *offline.Reading) *page {
	p := c.frame()
	known := 0
	for _, f := range read.Files {
		if f.Receiver != "" {
			known++
		}
	}
	p.About = fmt.Sprintf(c.t("%s of %s files understood, %s, %s records in %s lines", "识别 %s / %s 个文件，%s，%[5]s 行中 %[4]s 条记录"),
		human.Thousands(known), human.Thousands(len(read.Files)), human.Bytes(float64(read.Bytes)), human.Thousands(read.Records), human.Thousands(read.Lines))
	p.Runs = c.runs(first)
	for i, j := range jobs {
		c.job = strconv.Itoa(i)
		one := conclusion(&first[i])
		one.Run, one.States = j.Run, c.states(j)
		if i < c.drawn {
			one.Sections = c.sections(j, chosen[j])
		} else {
			one.Missing = append(one.Missing, fmt.Sprintf(
				c.t("The charts of this job have no room on this page: --run %s makes a page of it alone.", "本页已放不下该任务的图表：请用 --run %s 单独生成。"), j.Run))
		}
		p.Jobs = append(p.Jobs, one)
	}
	p.After = []section{c.files(read)}
	return p
}

// runs is a table of several runs side by side; nil: there is a single one.
func (c *composer) runs(first []format.Conclusion) *table {
	if len(first) < 2 {
		return nil
	}
	rows := make([]*tables.Run, len(first))
	for i := range first {
		rows[i] = &first[i].Run
	}
	of := tables.Runs(rows, c.chinese)
	t := tableOf(c.t("Runs", "运行"), of)
	t.Note = c.t("What differs between two of them, and whether by more than chance: trainbridge compare DIR DIR",
		"比较其中两个运行，以及差异是否大于随机波动：trainbridge compare 目录 目录")
	for _, r := range of.Rows {
		by := make(numbers, len(r))
		for i := range r {
			by[i] = r[i].Value
		}
		t.By = append(t.By, by)
	}
	return t
}

// conclusion is the part of the page about a job, with what the text report says first. Advice is given once.
func conclusion(of *format.Conclusion) job {
	out := job{Name: of.Title, Conclusion: of.Headline, Severity: of.Severity, Missing: slices.Clone(of.Gaps)}
	told := map[string]bool{}
	for _, claim := range of.Claims {
		if told[claim.Advice] {
			claim.Advice = ""
		}
		told[claim.Advice] = true
		out.Causes = append(out.Causes, cause{Text: claim.Text, Advice: claim.Advice, Evidence: claim.Proof})
	}
	return out
}

// sections are the sections of a job that have charts, in the order of the page.
func (c *composer) sections(j *digest.Job, chosen []*choice) (out []section) {
	for _, s := range []section{
		c.account(j), c.steps(j), c.training(j), c.queue(j), c.calls(j), c.collectives(j), c.gpus(j), c.traces(chosen), c.verdicts(j),
	} {
		if slices.ContainsFunc(s.Charts, func(chart any) bool { _, is := chart.(*boxes); return is }) {
			s.Notes = append(s.Notes, c.t("Boxes: P25 to P75; thick line: median, whose value stands at the right; whiskers: P5 and P95; dots: the extremes.",
				"箱体：P25 至 P75；粗线：中位数（数值在右侧）；须：P5 与 P95；圆点：最小值与最大值。"))
		}
		if len(s.Charts) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// means of the buckets of a series, with the extremes of each bucket; NaN for an empty bucket.
type means struct{ of, low, high numbers }

// line is a line of values. Buckets with a single value have no extremes.
func (m means) line(width int64, l line) line {
	l.Values = m.of
	if width > 1 {
		l.Low, l.High = m.low, m.high
	}
	return l
}

// points puts series on a common axis: xs are the numbers at which its buckets begin, width is how many numbers a bucket has, and values has a value per bucket
// for each series (NaN: empty). Buckets become as wide as the widest of all series, and wider until no more than most are left.
func points(most int, all ...*digest.Series) (xs numbers, values []means, width int64) {
	width = 1
	for _, s := range all {
		width = max(width, s.Width)
	}
	lists := make([][]digest.Bucket, len(all))
	for i, s := range all {
		lists[i] = s.Buckets()
	}
	var keys []int64 // buckets with values, each by its beginning through width
	for ; ; width *= 2 {
		seen := map[int64]bool{}
		for _, list := range lists {
			for i := range list {
				seen[floor(list[i].At, width)] = true
			}
		}
		if len(seen) <= most {
			for k := range seen {
				keys = append(keys, k)
			}
			break
		}
	}
	slices.Sort(keys)
	at := make(map[int64]int, len(keys))
	for i, k := range keys {
		at[k] = i
		xs = append(xs, float64(k*width))
	}
	for _, list := range lists {
		merged := make([]digest.Bucket, len(keys))
		for i := range list {
			merged[at[floor(list[i].At, width)]].Plus(&list[i])
		}
		m := means{make(numbers, len(keys)), make(numbers, len(keys)), make(numbers, len(keys))}
		for k := range merged {
			m.of[k], m.low[k], m.high[k] = math.NaN(), math.NaN(), math.NaN()
			if b := &merged[k]; b.Count > 0 {
				m.of[k], m.low[k], m.high[k] = b.Mean(), b.Min, b.Max
			}
		}
		values = append(values, m)
	}
	return xs, values, width
}

// floor is n through by, rounded down, of negative numbers too.
func floor(n, by int64) int64 {
	q := n / by
	if n%by < 0 {
		q--
	}
	return q
}

// movingAverage has for each value the mean of the known ones among it and the n-1 before, NaN for none: pandas' rolling(n, min_periods=1).mean().
func movingAverage(values numbers, n int) numbers {
	out := make(numbers, len(values))
	for i := range values {
		sum, count := 0.0, 0
		for _, v := range values[max(0, i-n+1) : i+1] {
			if !math.IsNaN(v) {
				sum += v
				count++
			}
		}
		out[i] = sum / float64(count)
	}
	return out
}

// only is the values with NaN in the place of those that keep refuses.
func only(values numbers, keep func(float64) bool) numbers {
	out := slices.Clone(values)
	for i, v := range out {
		if !keep(v) {
			out[i] = math.NaN()
		}
	}
	return out
}

// anyKnown says whether any value is known.
func anyKnown(values numbers) bool {
	return slices.ContainsFunc(values, func(v float64) bool { return !math.IsNaN(v) })
}

// boxOf is a distribution as a box.
func boxOf(name string, colour int, v *digest.Values) box {
	q := func(q float64) number { return number(v.Quantile(q)) }
	return box{name, colour, v.Count(), number(v.Min()), q(0.05), q(0.25), q(0.5), q(0.75), q(0.95), number(v.Max())}
}

// named are values with a name.
type named struct {
	name string
	*digest.Values
}

// bins are the bins of a histogram over a logarithmic axis: each of them in a factor of base.
type bins struct{ base, each float64 }

// binsOf chooses the bins for values from low to high: of sizes (By), whose axis has powers of two, 2 in each; else 32 in a decade for values within one
// decade, 16 within two, 8 beyond.
func binsOf(unit string, low, high float64) bins {
	decades := math.Log10(high / low)
	switch {
	case unit == "By":
		return bins{2, 2}
	case decades < 1:
		return bins{10, 32}
	case decades < 2:
		return bins{10, 16}
	}
	return bins{10, 8}
}

// of is the bin of a value.
func (b bins) of(v float64) int { return int(math.Floor(b.each * math.Log(v) / math.Log(b.base))) }

// edge is where a bin begins.
func (b bins) edge(i int) float64 { return math.Pow(b.base, float64(i)/b.each) }

// mostBins bounds the bins of a histogram: the smallest values are left out beyond.
const mostBins = 160

// distribution draws histograms of several distributions over a logarithmic axis: the share of values in each bin, by the function below: exact where all
// values are kept, else from their quantiles. Distributions of fewer than two values, or of none above 0, are left out.
func (c *composer) distribution(title, label, unit string, all []named) *series {
	out := &series{
		head: head{Kind: "series", Title: title}, XLabel: label, XUnit: unit, LogX: true,
		Axes: []axis{{Unit: "1", Zero: true, Label: c.t("share", "占比")}},
	}
	low, high := math.Inf(1), 0.0
	for _, v := range all {
		if v.Count() > 1 && v.Max() > 0 {
			low, high = min(low, positive(v.Values)), max(high, v.Max())
		}
	}
	if low > high { // there is nothing to draw
		return out
	}
	in := binsOf(unit, low, high)
	// One bin more than the highest value needs: each line comes down to 0 at its right.
	from, to := in.of(low), in.of(high)+2
	from = max(from, to-mostBins)
	for i := from; i <= to; i++ {
		out.Xs = append(out.Xs, in.edge(i))
	}
	for k, v := range all {
		if v.Count() < 2 || v.Max() <= 0 {
			continue
		}
		shares := make(numbers, 0, to-from+1)
		before := below(v.Values, in.edge(from))
		for i := from; i < to; i++ {
			next := below(v.Values, in.edge(i+1))
			shares = append(shares, next-before)
			before = next
		}
		out.Series = append(out.Series, line{Name: v.name, Colour: k % grey, Draw: "steps", Values: append(shares, 0)}) // 0: a value for the last edge
	}
	return out
}

// positive is the least value above 0, to a hundredth of all values: it begins the logarithmic axis.
func positive(v *digest.Values) float64 {
	if v.Min() > 0 {
		return v.Min()
	}
	for q := 0.01; q <= 1; q += 0.01 {
		if x := v.Quantile(q); x > 0 {
			return x
		}
	}
	return v.Max()
}

// below is the share of values less than x, 0 to 1: exact if all values are kept, else by a search for the quantile that is x.
func below(v *digest.Values, x float64) float64 {
	switch {
	case x <= v.Min():
		return 0
	case x > v.Max():
		return 1
	}
	if n := v.Count(); v.Exact() { // the quantiles k/(n-1) are the values
		k := sort.Search(int(n), func(k int) bool { return v.Quantile(float64(k)/float64(n-1)) >= x })
		return float64(k) / float64(n)
	}
	low, high := 0.0, 1.0
	for range 24 { // halvings: to a ten-millionth
		if middle := (low + high) / 2; v.Quantile(middle) < x {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
