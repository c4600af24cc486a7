// Package record is the output of the parsers of training logs: one Record per record of a log, in base units.
package record

import (
	"iter"
	"math"
	"math/bits"

	"github.com/trainbridge/trainbridge/internal/logids"
)

// Kind is the kind of a record.
type Kind uint8

// The kinds of a record.
const (
	Step       Kind = iota // one training step, or several
	Evaluation             // a validation result
	Summary                // the job's own summary at its end
	Side                   // values of the record before, on separate lines
	Ranks                  // times of the job's ranks
	Sample                 // Samples at Unix, without a step or times of steps
)

// DurationOf is the meaning of a duration: of one step, or a mean or median of several.
type DurationOf uint8

// The values of DurationOf.
const (
	OneStep DurationOf = iota // the step itself
	Mean                      // the mean over the steps covered
	Median                    // the median of many steps before (FlagScale's perf_monitor)
)

// Record is one record of a log. A parser fills it; the slices point into the line and live as long as the line. The zero value is empty and ready; Reset
// empties a Record, keeping memory.
type Record struct {
	Kind   Kind
	Source string // the format, a constant: megatron, perf_monitor, jsonl, …

	// The end of the record, as far as the record itself has it. Without it, the stamp of the line's prefix is used.
	Stamp   []byte // "2026-06-12 10:30:57", in a form of clock.Stamps
	Unix    int64  // ns since the epoch, for records with a number; RawUnix is its text
	RawUnix []byte

	// Start is the start of the record, ns since the epoch, if the log has it. 0: unknown.
	Start int64
	// Key is the natural key of the record beside its time, where a step may have several at one time: raw text of the log. nil: the time alone; evaluations,
	// records without a time and records in a trace by id have the text of the line for Key.
	Key []byte

	// IDs are the trace ids in the record.
	IDs logids.IDs

	// Open: later lines may belong to the record (Side, or Join): the record waits for them up to HoldTimeout.
	Open bool
	// Unnumbered: as Open, and the next line states the iteration: only then the record has its place in time and trace.
	Unnumbered bool
	// Join: the record joins the waiting record of the same source, rank and iteration, else it is independent.
	Join bool
	// Dedup: the same record may be in another file of the receiver, and then counts once.
	Dedup bool

	// Of is the meaning of Duration.
	Of DurationOf
	// Covers is the number of steps of the record, as far as the log says. 0: derived from the iterations of the records before.
	Covers int64
	// Several: a record without an iteration covers an unknown number of steps: the time since the record before is not the time of one step.
	Several bool

	// Late: the writer buffers records, so the time of reading does not show the time of the record.
	Late bool

	// Rank is the rank in the record (not in its prefix). Valid when HasRank.
	Rank    int64
	HasRank bool
	// Host is the host of the rank, as named in the record. nil: none.
	Host []byte

	// Counted: ConsumedTokens is exact: the difference of two records is the tokens of the steps between. Other logs round for people.
	Counted bool
	// EitherTokens: Tokens may also count since the start of the run.
	EitherTokens bool

	// GPUs is hw.gpu.utilization of each device, 0..1. OneGPU: a single value, not a list indexed by device.
	GPUs   []float64
	OneGPU bool
	// Samples are the values of GPUs at the end of the record; at Unix, if known.
	Samples []GPUSample

	Stages []Stage
	Extra  []Extra
	// Dropped counts the fields left out: beyond MaxExtra, or beyond the bound of a format.
	Dropped int

	has    uint64
	values [NumFields]float64 // of the fields in has; others are left from earlier records
	units  [NumFields]Unit    // of the fields in has
}

// Stage is a part of the step whose duration the record states.
type Stage struct {
	Name []byte
	// Seconds is the duration; where the log has the range over ranks, the duration of the slowest rank, and Min of the fastest.
	Seconds, Min float64
	HasMin       bool
	// Place is the position in the step, nil where the trainer's code does not show it.
	Place *Place
	// Rank is the rank of this duration, if HasRank: the log has a time per rank. A part has as many Stages, one after the other.
	Rank    int64
	HasRank bool
}

// Extra is a value of the log for which no Field exists, by the log's name. Text nil: Value, a number.
type Extra struct {
	Name  []byte
	Text  []byte
	Value float64
	// Metric is the gauge of the value, if any, with its unit and the value of its label spans.AttrStatistic, if any.
	Metric, Unit, Statistic string
}

// MaxExtra bounds the unknown fields of one record, because each attribute put into a span is compared with all before. verl prints over a hundred.
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

// SetIn sets a field in another unit, and remembers the unit.
func (r *Record) SetIn(f Field, v float64, u Unit) {
	r.has |= 1 << f
	r.values[f], r.units[f] = u.InBase(v), u
}

// Unset takes a field away.
func (r *Record) Unset(f Field) { r.has &^= 1 << f }

// Merge adds the fields, GPU values and count of dropped fields of o, another record of the same step; of fields in both, r's stay. The caller adds Stages and
// Extra.
func (r *Record) Merge(o *Record) {
	for f := range NumFields {
		if f == Tokens && o.EitherTokens { // their meaning depends on the record's place
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

// Layout is which fields a record has, and their units: the same for most records of a log.
type Layout struct {
	has   uint64
	units [NumFields]Unit
}

// Layout returns the record's layout, to compare with the layout of the record before.
func (r *Record) Layout() Layout { return Layout{r.has, r.units} }

// UnitOf is the unit of a field as given.
func (r *Record) UnitOf(f Field) Unit { return r.units[f] }

// Has says whether a field is set.
func (r *Record) Has(f Field) bool { return r.has&(1<<f) != 0 }

// Empty says that no field, stage, extra or value of a GPU is set.
func (r *Record) Empty() bool {
	return r.has == 0 && len(r.Stages) == 0 && len(r.Extra) == 0 && len(r.GPUs) == 0 && len(r.Samples) == 0
}

// All returns the fields that are set, in order, in base units.
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

// Get returns a field in its base unit, NaN when unset (or NaN).
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
