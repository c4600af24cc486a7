package view

import (
	"iter"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Breakdown says where the time of a step, a batch or a pass went.
type Breakdown struct {
	Head

	Window    string     // what it is of: one of the Window… values
	Iteration Int        // of a step
	Partial   bool       // not all may be in it
	Times     []PartTime // in the order in which the span names them
	GPUs      GPUs
}

// GPUs are what the GPUs of a window were like: means over the GPUs, and the one that was furthest from the mean.
type GPUs struct {
	Count, Samples              Int
	Utilization, UtilizationMin float64 // share
	Power                       float64 // W
	Temperature, TemperatureMax float64 // Cel
	Clock, ClockMin             float64 // Hz
	Throttled                   []Throttled
}

// Throttled is for how long a cause held down the clocks of a GPU.
type Throttled struct {
	Cause   string
	Seconds float64
}

var noGPUs = GPUs{
	Utilization: absent, UtilizationMin: absent, Power: absent, Temperature: absent, TemperatureMax: absent, Clock: absent, ClockMin: absent,
}

func (g *GPUs) take(name string, v pcommon.Value) bool {
	switch name {
	case spans.AttrGPUCount:
		g.Count = IntOf(v)
	case spans.AttrGPUSampleCount:
		g.Samples = IntOf(v)
	case spans.AttrGPUUtilization:
		g.Utilization = spans.ValueNumber(v)
	case spans.AttrGPUUtilizationMin:
		g.UtilizationMin = spans.ValueNumber(v)
	case spans.AttrGPUPower:
		g.Power = spans.ValueNumber(v)
	case spans.AttrGPUTemperature:
		g.Temperature = spans.ValueNumber(v)
	case spans.AttrGPUTemperatureMax:
		g.TemperatureMax = spans.ValueNumber(v)
	case spans.AttrGPUClock:
		g.Clock = spans.ValueNumber(v)
	case spans.AttrGPUClockMin:
		g.ClockMin = spans.ValueNumber(v)
	default:
		cause, ok := strings.CutPrefix(name, spans.GPUThrottleTimePrefix)
		if ok {
			g.Throttled = append(g.Throttled, Throttled{cause, spans.ValueNumber(v)})
		}
		return ok
	}
	return true
}

// PartTime is the time of one part, in s.
type PartTime struct {
	Part    string  // one of the Part… values
	Seconds float64 // exclusive: those of all parts add up to the length of what it is of
	Sum     float64 // of the durations of all its spans
	Union   float64 // wall-clock in which it went on
}

// Read reads a span of KindBreakdown. It uses the memory of its lists again.
func (b *Breakdown) Read(span ptrace.Span) {
	throttled := b.GPUs.Throttled[:0]
	*b = Breakdown{Times: b.Times[:0], GPUs: noGPUs}
	b.GPUs.Throttled = throttled
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrStepWindow:
			b.Window = spans.ValueText(v)
		case spans.AttrIteration:
			b.Iteration = IntOf(v)
		case spans.AttrJoinPartial:
			b.Partial = flagOf(v)
		default:
			if !b.part(name, v) && !b.GPUs.take(name, v) {
				b.take(name, v)
			}
		}
	}
}

// Length is how long what it is of took, in s: the exclusive times of all parts together.
func (b *Breakdown) Length() (sum float64) {
	for _, p := range b.Times {
		if p.Seconds > 0 {
			sum += p.Seconds
		}
	}
	return sum
}

// part notes a time of a part, if the attribute is one.
func (b *Breakdown) part(name string, v pcommon.Value) bool {
	if part, ok := strings.CutPrefix(name, spans.StepTimePrefix); ok {
		b.of(part).Seconds = spans.ValueNumber(v)
		return true
	}
	if part, ok := strings.CutPrefix(name, spans.StepSumPrefix); ok {
		b.of(part).Sum = spans.ValueNumber(v)
		return true
	}
	if part, ok := strings.CutPrefix(name, spans.StepUnionPrefix); ok {
		b.of(part).Union = spans.ValueNumber(v)
		return true
	}
	return false
}

// of finds a part, or adds it. There are some 15; those of one part mostly stand together.
func (b *Breakdown) of(part string) *PartTime {
	for i := len(b.Times) - 1; i >= 0; i-- {
		if b.Times[i].Part == part {
			return &b.Times[i]
		}
	}
	b.Times = append(b.Times, PartTime{part, absent, absent, absent})
	return &b.Times[len(b.Times)-1]
}

// Cause is why a window was slow.
type Cause struct {
	Part            string  // one of the Part… values; PartUnattributed: what was not explained
	Seconds         float64 // more than usual
	Cost            float64 // the same times the ranks of the job, s; NaN where their number is not known
	Rank            Int     // that was waited for
	Host            string  // its
	Comm, Operation string  // of collectives
	Note            string  // what else is known
}

// Causes are the causes that a span of KindBreakdown names, the largest first.
func Causes(span ptrace.Span) iter.Seq[Cause] {
	return func(yield func(Cause) bool) {
		for _, e := range span.Events().All() {
			if e.Name() == spans.EventCause && !yield(causeOf(e)) {
				return
			}
		}
	}
}

func causeOf(e ptrace.SpanEvent) Cause {
	out := Cause{Seconds: absent, Cost: absent}
	for name, v := range e.Attributes().All() {
		switch name {
		case spans.AttrStepPart:
			out.Part = spans.ValueText(v)
		case spans.AttrCauseTime:
			out.Seconds = spans.ValueNumber(v)
		case spans.AttrCauseCost:
			out.Cost = spans.ValueNumber(v)
		case spans.AttrNCCLLateRank:
			out.Rank = ordinalOf(v)
		case spans.AttrNCCLLateHost:
			out.Host = spans.ValueText(v)
		case spans.AttrNCCLCommName:
			out.Comm = spans.ValueText(v)
		case spans.AttrNCCLOperation:
			out.Operation = spans.ValueText(v)
		case spans.AttrCauseNote:
			out.Note = spans.ValueText(v)
		}
	}
	return out
}
