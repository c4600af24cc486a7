package step

import (
	"math"
)

// Kind says what a record is about.
type Kind uint8

// The kinds of a record.
const (
	Step       Kind = iota // one training step, or several
	Evaluation             // a validation result
	Summary                // what the job says about itself at its end
	Side                   // values that belong to the record before it, in lines of their own
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

	// DurationKind says what Duration is: spans.DurationStep (default), DurationMean or DurationMedian.
	DurationKind string

	// Rank as the record states it (not its prefix). Valid when HasRank.
	Rank    int64
	HasRank bool

	// GPUs is hw.gpu.utilization of each device, 0..1.
	GPUs []float64

	has    uint64
	values [NumFields]float64
	units  [NumFields]Unit
	Stages []Stage
	Extra  []Extra
}

// Stage is a part of the step that the record states a duration of.
type Stage struct {
	Name []byte
	// Seconds is its duration; where the log has the range over ranks, that of the slowest, and Min that of the fastest rank.
	Seconds, Min float64
	HasMin       bool
}

// Extra is a field that has no place in Field. Text nil: a number.
type Extra struct {
	Name  []byte
	Text  []byte
	Value float64
	// Metric is set by train_log's 'fields' setting only: the gauge the value goes to, with its unit.
	Metric, Unit string
}

// MaxExtra bounds the unknown fields kept of one record: verl prints over a hundred.
const MaxExtra = 256

// Reset empties the record.
func (r *Record) Reset() {
	*r = Record{Stages: r.Stages[:0], Extra: r.Extra[:0], GPUs: r.GPUs[:0]}
}

// Set sets a field in its base unit.
func (r *Record) Set(f Field, v float64) { r.SetIn(f, v, Base) }

// SetIn sets a field given in another unit, and remembers which.
func (r *Record) SetIn(f Field, v float64, u Unit) {
	r.has |= 1 << f
	r.values[f] = v * unitInfo[u].scale
	r.units[f] = u
}

// Has says whether a field is set.
func (r *Record) Has(f Field) bool { return r.has&(1<<f) != 0 }

// Empty says that no field, stage or extra is set.
func (r *Record) Empty() bool {
	return r.has == 0 && len(r.Stages) == 0 && len(r.Extra) == 0 && len(r.GPUs) == 0
}

// Get returns a field in its base unit, NaN when it is not set (or is NaN).
func (r *Record) Get(f Field) float64 {
	if !r.Has(f) {
		return math.NaN()
	}
	return r.values[f]
}

// AddExtra keeps an unknown field, up to MaxExtra of them.
func (r *Record) AddExtra(e Extra) {
	if len(r.Extra) < MaxExtra {
		r.Extra = append(r.Extra, e)
	}
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
	numUnits
)

var unitInfo = [numUnits]struct {
	text  string
	scale float64
}{
	Base: {"", 1}, Milliseconds: {"ms", 1e-3}, Minutes: {"min", 60}, TeraFlopPerSecond: {"TFLOP/s", 1e12}, GigaFlopPerSecond: {"GFLOP/s", 1e9}, TeraFlop: {"TFLOP", 1e12},
	Mebibytes: {"MiBy", 1 << 20}, Gibibytes: {"GiBy", 1 << 30}, Percent: {"%", 0.01}, Kilowatts: {"kW", 1e3},
}
