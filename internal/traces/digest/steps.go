package digest

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// Step is a record of a training log: one step, or the several steps that it covers. NaN: not known.
type Step struct {
	Place    view.Place
	Start    int64 // ns since 1970
	Covered  float64
	Duration float64 // ns, of one step
	Loss     string  // four digits, or the text of a loss that is not finite; "": not known

	TokenThroughput              float64 // 1/s
	DeviceFlopThroughputReported float64 // 1/s, as the log states it
	DeviceFlopThroughput         float64 // 1/s, recomputed
	MFU                          float64
}

// Series has the records of one kind of log, in the order of steps.
type Series struct {
	Log   string // its format; "": not known
	Steps []Step
	Verdicts
}

// Covered is how many steps there are.
func (l *Series) Covered() (n float64) {
	for i := range l.Steps {
		n += l.Steps[i].Covered
	}
	return n
}

// Loss is the first and the last one.
func (l *Series) Loss() (first, last string) {
	for i := range l.Steps {
		if loss := l.Steps[i].Loss; loss != "" {
			first, last = cmp.Or(first, loss), loss
		}
	}
	return first, last
}

// Values are a figure of all records that say it.
func (l *Series) Values(of func(*Step) float64) (v Values) {
	for i := range l.Steps {
		v.add(of(&l.Steps[i]))
	}
	return v
}

// Steps are the training steps.
type Steps struct{ by map[string]*Series }

func (d *Steps) add(t *tree.Trace) {
	for _, s := range t.Spans {
		if s.Kind != view.KindStep {
			continue
		}
		var v view.Step
		v.Read(s.Span, s.Resource)
		if d.by == nil {
			d.by = map[string]*Series{}
		}
		l := d.by[v.Format]
		if l == nil {
			l = &Series{Log: v.Format, Verdicts: newVerdicts()}
			d.by[v.Format] = l
		}
		l.count(s)
		l.Steps = append(l.Steps, Step{
			v.Place, s.Start(), v.Covered(), StepDuration(s, &v), LossText(v.Loss),
			v.TokenThroughput, v.DeviceFlopThroughputReported, v.DeviceFlopThroughput, v.MFU,
		})
	}
}

// Rows are the logs by name, with their records in order: by step where they have one, then by time, then by their place in the log.
func (d *Steps) Rows() []*Series {
	for _, l := range d.by {
		slices.SortStableFunc(l.Steps, func(a, b Step) int {
			return cmp.Or(
				cmp.Compare(a.Place.Iteration.Or(math.MaxInt64), b.Place.Iteration.Or(math.MaxInt64)),
				cmp.Compare(a.Start, b.Start), cmp.Compare(a.Place.Record.N, b.Place.Record.N),
			)
		})
	}
	return slices.SortedFunc(maps.Values(d.by), func(a, b *Series) int { return cmp.Compare(a.Log, b.Log) })
}

// StepDuration is the time of one step in ns, NaN where it is not known.
func StepDuration(s *tree.Span, v *view.Step) float64 {
	switch {
	case !math.IsNaN(v.Duration):
		return v.Duration * 1e9
	case v.TimePoint:
		return math.NaN()
	}
	return float64(s.NS()) / v.Covered()
}

// LossText is a loss with four digits, or the text that stands for one that is not finite.
func LossText(l view.Loss) string {
	if math.IsNaN(l.Value) {
		return l.Text
	}
	return strconv.FormatFloat(l.Value, 'g', 4, 64)
}
