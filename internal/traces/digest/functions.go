package digest

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// highOverhead is the share of get and put above which a call waits for its data.
const highOverhead = 0.3

// FunctionSums are sums over the calls of one TransferQueue function. Times are of complete calls only.
type FunctionSums struct {
	Name                     string
	Calls, Incomplete        int
	WithoutID                int   // calls whose log names no trace id, of all
	Total, Get, Compute, Put int64 // ns
}

// Ratio is a share of the summed time, as verl's analyser reports it; NaN where there is none.
func (s *FunctionSums) Ratio(ns int64) float64 { return float64(ns) / float64(s.Total) }

// Seconds is the mean of a summed time, NaN where no call is complete.
func (s *FunctionSums) Seconds(ns int64) float64 { return float64(ns) / 1e9 / float64(s.Calls) }

func (s *FunctionSums) plus(o *FunctionSums) {
	s.Calls, s.Incomplete, s.WithoutID = s.Calls+o.Calls, s.Incomplete+o.Incomplete, s.WithoutID+o.WithoutID
	s.Total, s.Get, s.Compute, s.Put = s.Total+o.Total, s.Get+o.Get, s.Compute+o.Compute, s.Put+o.Put
}

// Function sums up the calls of one TransferQueue function.
type Function struct {
	FunctionSums
	Verdicts
}

// Functions are the TransferQueue functions.
type Functions struct {
	by        map[string]*Function
	high      int // calls above highOverhead
	hosts     map[string]bool
	highHosts map[string]bool // where these ran
}

func (d *Functions) add(t *tree.Trace) {
	withoutID := WithoutID(t) != nil
	for _, s := range t.Spans {
		if s.Kind != view.KindFunction {
			continue
		}
		var v view.Function
		v.Read(s.Span)
		d.note(s, &v)
		f := d.function(cmp.Or(v.Name, s.Name()))
		f.count(s)
		if withoutID {
			f.WithoutID++
		}
		if v.Incomplete {
			f.Incomplete++
			continue
		}
		f.Calls++
		f.Total += s.NS()
		f.Get += stageNS(s, spans.TQGet)
		f.Compute += stageNS(s, spans.TQCompute)
		f.Put += stageNS(s, spans.TQPut)
	}
}

func (d *Functions) function(name string) *Function {
	if d.by == nil {
		d.by, d.hosts, d.highHosts = map[string]*Function{}, map[string]bool{}, map[string]bool{}
	}
	f := d.by[name]
	if f == nil {
		f = &Function{FunctionSums{Name: name}, newVerdicts()}
		d.by[name] = f
	}
	return f
}

// note remembers on which hosts calls waited for their data.
func (d *Functions) note(s *tree.Span, v *view.Function) {
	d.function(cmp.Or(v.Name, s.Name()))
	host := cmp.Or(v.Host, s.Resource.Host)
	d.hosts[host] = true
	if overhead(s, v) > highOverhead {
		d.high++
		d.highHosts[host] = true
	}
}

// Rows are the functions by name.
func (d *Functions) Rows() []*Function {
	return slices.SortedFunc(maps.Values(d.by), func(a, b *Function) int { return cmp.Compare(a.Name, b.Name) })
}

// Sum is over all functions.
func (d *Functions) Sum() *FunctionSums {
	all := new(FunctionSums)
	for _, f := range d.by {
		all.plus(&f.FunctionSums)
	}
	return all
}

// High is how many calls spent more than 30 % of their time in TransferQueue, and on which host, if that was on one of several.
func (d *Functions) High() (calls int, host string) {
	if len(d.highHosts) == 1 && len(d.hosts) > 1 {
		for host = range d.highHosts {
		}
	}
	return d.high, host
}

// WithoutID is the one function of a trace whose log names no trace id: each such call is a trace of its own. Nil: the log names an id.
func WithoutID(t *tree.Trace) *tree.Span {
	var only *tree.Span
	for _, s := range t.Spans {
		if s.Kind != view.KindFunction {
			continue
		}
		if only != nil {
			return nil
		}
		only = s
	}
	if only == nil {
		return nil
	}
	var v view.Function
	if v.Read(only.Span); v.TraceID == "" || !spans.NoTraceID(v.TraceID) { // without a text it is the trace id
		return nil
	}
	return only
}

// FunctionName is a function's name in the log, else the span's name.
func FunctionName(s *tree.Span) string {
	var v view.Function
	v.Read(s.Span)
	return cmp.Or(v.Name, s.Name())
}

// Overhead is the share of get and put in a TransferQueue function: train_perf's if it ran, else from the children. NaN where it is not known.
func Overhead(s *tree.Span) float64 {
	if s.Kind != view.KindFunction {
		return math.NaN()
	}
	var v view.Function
	v.Read(s.Span)
	return overhead(s, &v)
}

func overhead(s *tree.Span, v *view.Function) float64 {
	switch {
	case !math.IsNaN(v.Overhead):
		return v.Overhead
	case s.NS() == 0 || v.Incomplete:
		return math.NaN()
	}
	return float64(stageNS(s, spans.TQGet)+stageNS(s, spans.TQPut)) / float64(s.NS())
}

// StageOf is the stage or client operation of TransferQueue that a span is, TQNone if it is none.
func StageOf(s *tree.Span) spans.TQStage {
	switch s.Kind {
	case view.KindFunction:
		return spans.TQFunction
	case view.KindStage:
		var v view.Stage
		v.Read(s.Span)
		return v.Stage
	}
	return spans.TQNone
}

// stageNS is the time spent in children of a stage.
func stageNS(s *tree.Span, stage spans.TQStage) (ns int64) {
	for _, c := range s.Children {
		if StageOf(c) == stage {
			ns += c.NS()
		}
	}
	return ns
}
