package digest

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/spans"
)

// Figure is a value of a step in a training log, or recomputed by train_perf.
type Figure uint8

// The figures. Rates are of all devices unless otherwise named.
const (
	StepTime                     Figure = iota // s
	Loss                                       //
	ValidationLoss                             //
	LearningRate                               //
	GradientNorm                               //
	SampleThroughput                           // 1/s: performance/samples_per_second
	TokenThroughput                            // 1/s: performance/tokens_per_second
	DeviceTokenThroughput                      // 1/s
	FlopThroughputReported                     // 1/s, as logged: performance/tflops_total
	DeviceFlopThroughputReported               // 1/s, likewise: performance/tflops_per_gpu
	FlopThroughput                             // 1/s, recomputed
	DeviceFlopThroughput                       // 1/s, recomputed
	MFUReported                                // share
	MFU                                        // share, recomputed
	MemoryUsage                                // By of a device: memory/current_gb
	MemoryPeak                                 // By of a device: memory/peak_gb
	GPUUtilization                             // share
	Figures
)

// Measure is a figure of a log: its distribution, and its series by step. The step of a record without a number is its place among the log's records.
type Measure struct {
	Values
	Over Series

	at     int64 // the last step
	newest Total // values of the last step
}

// add adds a value at step number at; NaN and infinities are ignored.
func (m *Measure) add(at int64, x float64) {
	if !stat.Finite(x) {
		return
	}
	m.Add(x)
	m.Over.Add(at, x)
	if at > m.at || m.newest.Count() == 0 {
		m.at, m.newest = at, Total{}
	}
	if at == m.at {
		m.newest.Add(x)
	}
}

// Latest returns the value of the last step: the mean over the ranks that log the step. NaN: no value.
func (m *Measure) Latest() float64 { return m.newest.Mean() }

// Below returns the buckets of the series with a mean below a limit. With Quantile(0.1) as limit, these are the buckets that the report marks as "below P10".
func (m *Measure) Below(limit float64) (out []Bucket) {
	for _, b := range m.Over.Buckets() {
		if b.Mean() < limit {
			out = append(out, b)
		}
	}
	return out
}

// LossAt is a loss and its place.
type LossAt struct {
	Step  view.Int
	Value float64 // NaN: not finite
	Text  string  // of a non-finite loss
	At
	record int64
}

// String returns the loss with four digits, or the text of a non-finite one; "": nil.
func (l *LossAt) String() string {
	if l == nil {
		return ""
	}
	return LossText(view.Loss{Value: l.Value, Text: l.Text})
}

// Log has the records of a kind of training log.
type Log struct {
	Name     string // its format; "": unknown
	Records  int64
	Covered  float64 // steps, of the rank with most: each rank may log all
	World    int64   // largest number of ranks in the log; 0: not logged
	Planned  int64   // largest number of planned iterations; 0: not logged
	Measures [Figures]Measure

	First, Last, Lowest *LossAt // by step, then by time; nil: no loss
	NotFinite           int64   // losses
	FirstNotFinite      *LossAt // of these the first; nil: all are finite
	Slowest             Top[view.Int]
	Parts               map[string]*Measure // s, of the named parts of steps
	Verdicts

	hosts   map[string]*HostTime
	ranks   map[int64]*RankTime
	covered map[writer]*float64 // steps of each writer
	by      writer              // the last writer: mostly the next step has the same
	steps   *float64            // of the last writer, in covered
}

// writer is a writer of steps.
type writer struct {
	rank, local int64 // -1: not known
	host        string
}

// mostWriters bounds the writers of a log whose steps are counted.
const mostWriters = 4096

// countCovered adds the steps of a record to those of its writer: the rank, or the local rank on its host. Writers beyond mostWriters do not count.
func (l *Log) countCovered(steps float64, rank view.Int, s ptrace.Span, res *resource) {
	by := writer{rank.Or(-1), -1, res.Host}
	if v, ok := s.Attributes().Get(spans.AttrLocalRank); ok {
		by.local = view.IntOf(v).Or(-1)
	}
	if l.steps == nil || by != l.by {
		count := l.covered[by]
		if count == nil {
			if len(l.covered) >= mostWriters {
				return
			}
			if l.covered == nil {
				l.covered = make(map[writer]*float64)
			}
			count = new(float64)
			l.covered[by] = count
		}
		l.by, l.steps = by, count
	}
	*l.steps += steps
	l.Covered = max(l.Covered, *l.steps)
}

// Steps are the training steps.
type Steps struct {
	by      table[string, Log]
	v       view.Step // the step read last
	message message
	parts   view.Part // the part read last
	Clocks  Clocks
}

// message has the steps of the current message, for the parts behind: parts may be in a resource of their own.
type message struct {
	steps []messageStep
	by    map[spanKey]int // indices of the first steps, as far as parts have asked
	n     int             // how many of steps are in by
}

// messageStep is a step with its place in the series of its log.
type messageStep struct {
	key  spanKey
	at   int64
	host *HostTime // nil: unknown
	rank *RankTime // likewise
}

// mostOfMessage bounds the steps of a message.
const mostOfMessage = 1 << 14

// begin empties the list, for the next message.
func (r *message) begin() {
	clear(r.by)
	r.steps, r.n = r.steps[:0], 0
}

// add adds a step. Beyond mostOfMessage, the list begins anew.
func (r *message) add(s messageStep) {
	if len(r.steps) >= mostOfMessage {
		r.begin()
	}
	r.steps = append(r.steps, s)
}

// stepWithID returns the step of the message with these ids; nil: none.
func (r *message) stepWithID(k spanKey) *messageStep {
	if r.by == nil {
		r.by = map[spanKey]int{}
	}
	for ; r.n < len(r.steps); r.n++ {
		r.by[r.steps[r.n].key] = r.n
	}
	if i, ok := r.by[k]; ok {
		return &r.steps[i]
	}
	return nil
}

// log returns the log of a format, made if absent.
func (d *Steps) log(format string) *Log {
	return d.by.findOrMake(format, Other, mostLogs, func(name string) (string, *Log) {
		name = shortText(name)
		return name, &Log{Name: name}
	})
}

// mostLogs bounds the kinds of training logs counted separately.
const mostLogs = 32

// addStep adds a record of a training step to its log: each figure to its distribution and series.
func (d *Digest) addStep(s ptrace.Span, res *resource) {
	v := &d.Steps.v
	v.Read(s, &res.Resource)
	d.places.note(s, res, view.KindStep, 0)
	l := d.Steps.log(v.Format)
	d.countVerdicts(s, &v.Head, res, &l.Verdicts)
	l.Records++
	rank := res.Rank
	if v, ok := s.Attributes().Get(spans.AttrRank); ok {
		rank = view.IntOf(v)
	}
	l.countCovered(v.Covered(), rank, s, res)
	l.World = max(l.World, res.WorldSize.Or(0))
	if v.Iterations > 0 && v.Iterations < 1<<53 {
		l.Planned = max(l.Planned, int64(v.Iterations))
	}
	ofHost, ofRank := l.host(res.Host), l.rank(rank, res)
	if ofHost != nil {
		ofHost.Total.add(v.Duration, v.Covered())
	}
	if ofRank != nil {
		ofRank.Total.add(v.Duration, v.Covered())
	}
	step := v.Step()
	at := step.Or(l.Records) // without a number, the ordinal of the record
	d.Steps.message.add(messageStep{spanKey{s.TraceID(), s.SpanID()}, at, ofHost, ofRank})
	for f, x := range [...]float64{
		StepTime: v.Duration, Loss: v.Loss.Value, LearningRate: v.LearningRate, GradientNorm: v.GradientNorm, ValidationLoss: math.NaN(),
		SampleThroughput: v.SampleThroughput, TokenThroughput: v.TokenThroughput, DeviceTokenThroughput: v.DeviceTokenThroughput,
		FlopThroughputReported: v.FlopThroughputReported, DeviceFlopThroughputReported: v.DeviceFlopThroughputReported,
		FlopThroughput: v.FlopThroughput, DeviceFlopThroughput: v.DeviceFlopThroughput, MFUReported: v.MFUReported, MFU: v.MFU,
		MemoryUsage: v.MemoryUsage, MemoryPeak: v.MemoryPeak, GPUUtilization: v.GPUUtilization,
	} {
		if !math.IsNaN(x) { // most figures are absent
			l.Measures[f].add(at, x)
		}
	}
	if slowest := l.Slowest.add(mostShown, v.Duration, s, res); slowest != nil {
		*slowest = step
	}
	l.noteLoss(s, v, res)
}

// noteLoss records the loss of a record if it is the first, the last, the lowest or the first non-finite loss so far, by step, whatever the order of records.
func (l *Log) noteLoss(s ptrace.Span, v *view.Step, res *resource) {
	if math.IsNaN(v.Loss.Value) && v.Loss.Text == "" {
		return
	}
	start := int64(s.StartTimestamp())
	broken := v.Loss.NotFinite() != ""
	if broken {
		l.NotFinite++
		broken = l.FirstNotFinite == nil || l.FirstNotFinite.isAfter(v, start)
	}
	// Compare before anything is copied: most losses are the last at best.
	first := l.First == nil || l.First.isAfter(v, start)
	last := l.Last == nil || !l.Last.isAfter(v, start)
	lowest := false
	if !math.IsNaN(v.Loss.Value) { // of equal losses the first
		lowest = l.Lowest == nil || v.Loss.Value < l.Lowest.Value || v.Loss.Value == l.Lowest.Value && l.Lowest.isAfter(v, start)
	}
	if !first && !last && !lowest && !broken {
		return
	}
	at := LossAt{Step: v.Step(), Value: v.Loss.Value, Text: shortText(v.Loss.Text), At: res.at(s), record: v.Record.N}
	for _, of := range [...]struct {
		is bool
		to **LossAt
	}{{first, &l.First}, {last, &l.Last}, {lowest, &l.Lowest}, {broken, &l.FirstNotFinite}} {
		if of.is {
			if *of.to == nil {
				*of.to = new(LossAt)
			}
			**of.to = at
		}
	}
}

// isAfter reports whether the loss is later than that of another record: by step if known, then by time (start of the other, Unix ns), then by place in the
// log.
func (l *LossAt) isAfter(v *view.Step, start int64) bool {
	return cmp.Or(cmp.Compare(l.Step.Or(math.MaxInt64), v.Step().Or(math.MaxInt64)), cmp.Compare(l.Start, start), cmp.Compare(l.record, v.Record.N)) > 0
}

// addPart adds the time of a named part of a step to the distribution of the part and, if the step is in the same message, to the series. Beyond
// mostDistributed names, further ones count as Other.
func (d *Steps) addPart(s ptrace.Span, res *resource) {
	v := &d.parts
	v.Read(s, &res.Resource)
	l := d.log(v.Format)
	part := l.Parts[v.Name]
	if part == nil {
		if l.Parts == nil {
			l.Parts = map[string]*Measure{}
		}
		name := shortText(v.Name)
		if len(l.Parts) >= mostDistributed {
			name = Other
		}
		part = l.Parts[name]
		if part == nil {
			part = new(Measure)
			l.Parts[name] = part
		}
	}
	took := spanSeconds(s)
	part.Add(took)
	if step := d.message.stepWithID(spanKey{s.TraceID(), s.ParentSpanID()}); step != nil {
		kind := trainers.PartOf(v.Name)
		if step.host != nil {
			step.host.Total.addPart(kind, took)
		}
		if v.DurationMin <= took && trainers.Together(v.Name) {
			took = v.DurationMin // more is waiting for the rank that came last
		}
		part.Over.Add(step.at, took)
		if step.rank != nil {
			step.rank.addPart(v.Name, kind, step.at, took)
		}
	}
}

// ranksOrEvaluation adds spans beside the steps of a log: of KindRanks (a report on the values of each rank) the clocks and verdicts, of KindEvaluation the
// verdicts and the loss.
func (d *Digest) ranksOrEvaluation(s ptrace.Span, kind view.Kind, res *resource) {
	if kind == view.KindRanks {
		var v view.Ranks
		d.Steps.Clocks.add(s, res)
		if v.Read(s, &res.Resource); v.Verdicts.Len() > 0 {
			d.countVerdicts(s, &v.Head, res, &d.Steps.log(v.Format).Verdicts)
		}
		return
	}
	var v view.Evaluation
	v.Read(s, &res.Resource)
	l := d.Steps.log(v.Format)
	d.countVerdicts(s, &v.Head, res, &l.Verdicts)
	m := &l.Measures[ValidationLoss]
	m.add(v.Step().Or(m.Count()+1), v.Loss.Value) // without a step at the ordinal
}

// Rows returns the logs with steps or validations, by name.
func (d *Steps) Rows() []*Log {
	all := d.by.rows(func(a, b *Log) int { return cmp.Compare(a.Name, b.Name) })
	return slices.DeleteFunc(all, func(l *Log) bool { return l.Records == 0 && l.Measures[ValidationLoss].Count() == 0 })
}

// LossText returns a loss with four digits, or the text of a non-finite one.
func LossText(l view.Loss) string {
	switch {
	case math.IsNaN(l.Value):
		return l.Text
	case math.IsInf(l.Value, 0):
		return strconv.FormatFloat(l.Value, 'g', -1, 64)
	}
	return human.Digits(l.Value)
}
