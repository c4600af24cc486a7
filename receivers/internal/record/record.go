// Package record is what the parsers of training logs fill: one Record per record of a log, in base units.
package record

import (
	"iter"
	"math"
	"math/bits"

	"github.com/trainbridge/trainbridge/internal/logids"
)

// Kind says what a record is about.
type Kind uint8

// The kinds of a record.
const (
	Step       Kind = iota // one training step, or several
	Evaluation             // a validation result
	Summary                // what the job says about itself at its end
	Side                   // values that belong to the record before it, in lines of their own
	Ranks                  // what a job says about the times of its ranks
	Sample                 // Samples at Unix, and nothing else: no step, and no time of steps
)

// DurationOf says which time a duration is: of one step, or a mean or median of several.
type DurationOf uint8

// The values of DurationOf.
const (
	OneStep DurationOf = iota // this very step
	Mean                      // the mean over the steps covered
	Median                    // the median of many steps before (FlagScale's perf_monitor)
)

// Record is what one record of a log says. A parser fills it; its slices point into the line and live as long as that.
// The zero value is empty and ready; Reset makes it so again, keeping memory.
type Record struct {
	Kind   Kind
	Source string // the format, a constant: megatron, perf_monitor, jsonl, …

	// The end of the record, as far as the record itself tells. Without it, the stamp of the line's prefix is used.
	Stamp   []byte // "2026-06-12 10:30:57", as clock.Stamps reads it
	Unix    int64  // ns since the epoch, for records with a number; RawUnix is its text
	RawUnix []byte

	// Start is when the record began, ns since the epoch, where the log states that too. 0: not.
	Start int64
	// Key is the natural key of the record beside its time, where there may be several of a step at one time: raw text of the log.
	// nil: the time alone, or without one the text of the line.
	Key []byte

	// IDs are the ids of its trace that the record carries.
	IDs logids.IDs

	// Open: lines that follow may belong to this record (Side, or Join): it waits for them up to HoldTimeout.
	Open bool
	// Unnumbered: likewise, and the next line states the record's iteration: only then has the record its place in time and trace.
	Unnumbered bool
	// Join: the record belongs to the waiting record if that has the same rank and iteration, else it stands by itself.
	Join bool
	// Dedup: the same record may stand in another file of the receiver too; then it counts once.
	Dedup bool

	// Of says which time Duration is.
	Of DurationOf
	// Covers is how many steps the record is of, as far as the log says. 0: the iterations of the records before tell.
	Covers int64
	// Several: a record without an iteration covers an unknown number of steps: the time since the record before is not the time of one step.
	Several bool

	// Late: the writer holds records back, so that the time at which the record is read says nothing of when it was.
	Late bool

	// Rank as the record states it (not its prefix). Valid when HasRank.
	Rank    int64
	HasRank bool
	// Host is that of the rank, as the record names it. nil: it does not.
	Host []byte

	// Counted: ConsumedTokens is exact: the difference of two records is of the steps between. Other logs round for people.
	Counted bool
	// EitherTokens: Tokens may also be those since the run began.
	EitherTokens bool

	// GPUs is hw.gpu.utilization of each device, 0..1. OneGPU: there is one value, and no list whose places number the devices.
	GPUs   []float64
	OneGPU bool
	// Samples are what GPUs were like when the record ends; at Unix, where that is known.
	Samples []GPUSample

	Stages []Stage
	Extra  []Extra
	// Dropped counts the fields that AddExtra did not keep.
	Dropped int

	has    uint64
	values [NumFields]float64 // of the fields in has; the other values are left from earlier records
	units  [NumFields]Unit    // likewise
}

// Stage is a part of the step that the record states a duration of.
type Stage struct {
	Name []byte
	// Seconds is its duration; where the log has the range over ranks, the duration of the slowest rank, and Min of the fastest.
	Seconds, Min float64
	HasMin       bool
	// Place is where in the step it belongs, nil where the trainer's code does not tell.
	Place *Place
	// Rank is the rank that took this time, where HasRank says that the log has a time per rank. A part has as many Stages, one after the other.
	Rank    int64
	HasRank bool
}

// Extra is a field that has no place in Field. Text nil: a number.
type Extra struct {
	Name  []byte
	Text  []byte
	Value float64
	// Metric is the gauge that the value goes to as well, if any, with its unit and the value of its label spans.AttrStatistic, if any.
	Metric, Unit, Statistic string
}

// MaxExtra bounds the unknown fields kept of one record, because each attribute put into a span is compared with all before it. verl
// prints over a hundred.
const MaxExtra = 256

// Reset empties the record.
func (r *Record) Reset() {
	r.Kind, r.Source, r.Of, r.Covers = Step, "", OneStep, 0
	r.Stamp, r.Unix, r.RawUnix, r.Start, r.Key = nil, 0, nil, 0, nil
	r.IDs = logids.IDs{}
	r.Open, r.Unnumbered, r.Join, r.Dedup, r.Several, r.Late = false, false, false, false, false, false
	r.Rank, r.HasRank, r.Host, r.OneGPU = 0, false, nil, false
	r.Counted, r.EitherTokens = false, false
	r.GPUs, r.Samples, r.Stages, r.Extra, r.Dropped = r.GPUs[:0], r.Samples[:0], r.Stages[:0], r.Extra[:0], 0
	r.has = 0 // clearing the values, too, would take longer than all of the above
}

// Set sets a field in its base unit.
func (r *Record) Set(f Field, v float64) {
	r.has |= 1 << f
	r.values[f], r.units[f] = v, Base
}

// SetIn sets a field given in another unit, and remembers which.
func (r *Record) SetIn(f Field, v float64, u Unit) {
	r.has |= 1 << f
	r.values[f], r.units[f] = u.InBase(v), u
}

// Unset takes a field away.
func (r *Record) Unset(f Field) { r.has &^= 1 << f }

// Merge adds the fields that the other record has and this one lacks, but not its Stages and Extra.
func (r *Record) Merge(o *Record) {
	for f := range NumFields {
		if f == Tokens && o.EitherTokens { // whose sense follows from the record in its place
			continue
		}
		if o.Has(f) && !r.Has(f) {
			r.has |= 1 << f
			r.values[f], r.units[f] = o.values[f], o.units[f]
		}
	}
	if len(r.GPUs) == 0 {
		r.GPUs, r.OneGPU = append(r.GPUs, o.GPUs...), o.OneGPU
	}
	r.Dropped += o.Dropped
}

// Layout is which fields are set, in which units.
type Layout struct {
	has   uint64
	units [NumFields]Unit
}

// Layout returns the record's layout, to compare with the layout of the record before.
func (r *Record) Layout() Layout { return Layout{r.has, r.units} }

// UnitOf is the unit in which a field was given.
func (r *Record) UnitOf(f Field) Unit { return r.units[f] }

// Has says whether a field is set.
func (r *Record) Has(f Field) bool { return r.has&(1<<f) != 0 }

// Empty says that no field, stage or extra is set.
func (r *Record) Empty() bool {
	return r.has == 0 && len(r.Stages) == 0 && len(r.Extra) == 0 && len(r.GPUs) == 0 && len(r.Samples) == 0
}

// All returns the fields that are set, in their order, in base units.
func (r *Record) All() iter.Seq2[Field, float64] {
	return func(yield func(Field, float64) bool) {
		for rest := r.has; rest != 0; rest &= rest - 1 {
			f := Field(bits.TrailingZeros64(rest))
			if !yield(f, r.values[f]) {
				return
			}
		}
	}
}

// Get returns a field in its base unit, NaN when it is not set (or is NaN).
func (r *Record) Get(f Field) float64 {
	if !r.Has(f) {
		return math.NaN()
	}
	return r.values[f]
}

// AddExtra keeps an unknown field, up to MaxExtra of them, and counts the others.
func (r *Record) AddExtra(e Extra) {
	if len(r.Extra) == MaxExtra {
		r.Dropped++
		return
	}
	r.Extra = append(r.Extra, e)
}

// Unit is a unit of a log.
type Unit uint8

// The units of logs. Base is the base unit of the field (spans.Unit…).
const (
	Base Unit = iota
	Milliseconds
	Minutes
	TeraFlopPerSecond // TFLOPS, TFLOP/s
	GigaFlopPerSecond
	TeraFlop // a count: FlagScale's breakdown calls it TFLOPS
	Mebibytes
	Gibibytes // GB in FlagScale, Megatron and DeepSpeed logs is GiB
	Percent
	Kilowatts
	Megahertz
	numUnits
)

// String is the UCUM code of the unit, empty for Base.
func (u Unit) String() string { return unitInfo[u].text }

// InBase converts a value of the unit to the base unit.
func (u Unit) InBase(v float64) float64 {
	if u == Base {
		return v
	}
	return v * unitInfo[u].scale / unitInfo[u].per
}

// A unit is scale / per base units. Dividing by 1000 rounds once where multiplying by 0.001 does twice: 9.8 ms are 0.0098 s.
var unitInfo = [numUnits]struct {
	text       string
	scale, per float64
}{
	Base: {"", 1, 1}, Milliseconds: {"ms", 1, 1e3}, Minutes: {"min", 60, 1}, TeraFlopPerSecond: {"TFLOP/s", 1e12, 1}, GigaFlopPerSecond: {"GFLOP/s", 1e9, 1},
	TeraFlop:  {"TFLOP", 1e12, 1},
	Mebibytes: {"MiBy", 1 << 20, 1}, Gibibytes: {"GiBy", 1 << 30, 1}, Percent: {"%", 1, 100}, Kilowatts: {"kW", 1e3, 1},
	Megahertz: {"MHz", 1e6, 1},
}
