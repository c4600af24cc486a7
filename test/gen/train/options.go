package train

import (
	"errors"
	"math"
	"path/filepath"
	"time"

	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// The formats of training logs.
const (
	FormatFlagScale = "flagscale" // FlagScale's perf_monitor
	FormatMegatron  = "megatron"  // standard output of Megatron-LM's last rank
	FormatJSONL     = "jsonl"     // one JSON object per step
	FormatHF        = "hf"        // transformers.Trainer: standard output and trainer_state.json
	FormatVerl      = "verl"      // verl's console, and its FileLogger
	// Standard output of further trainers: trainers.go.
	FormatDeepSpeed  = "deepspeed"
	FormatTorchTitan = "torchtitan"
	FormatNeMo       = "nemo"
	FormatOpenRLHF   = "openrlhf" // PPO
	FormatSlime      = "slime"
	FormatNanochat   = "nanochat"
	FormatMaxText    = "maxtext"
	FormatNeMoRL     = "nemorl" // SFT
)

// Options are the options of a simulated training run and its log. Fractions are 0..1.
type Options struct {
	Format string
	Out    string // directory, file or "-"; the FlagScale log is always a directory
	Truth  string // file for the ground truth; empty: beside the log; "none": not written

	Steps    int // 0: until stopped (needs Rate)
	Seed     uint64
	Start    time.Time // zero: now with a rate, else the log ends now
	Timezone *time.Location
	Rate     float64 // records per second, written in real time; 0: as fast as possible

	WorldSize    int
	Interval     int     // steps per record
	EvalInterval int     // steps between evaluations; 0: none
	Slow         float64 // share of the records whose steps are slow
	SlowFactor   float64 // of the duration of slow steps
	NaNLossAt    int     // the step whose loss is NaN; 0: none

	Writer    string // flagscale: merged or douzi
	Breakdown bool   // flagscale: FLOP counts after each row
	Restart   bool   // flagscale: a second session after three fifths of the steps
	DPOmitted bool   // flagscale: samples/s and TFLOPS without the data-parallel size, like the original

	Prefix string // verl, openrlhf, slime: none, ray or ray-ansi; megatron and all further trainers: none, torchrun, srun or rank
	Timers bool   // megatron: the times across ranks; deepspeed: the parts of the step

	Fields string  // jsonl: minimal, recommended, full or the number of fields
	Nasty  float64 // jsonl, and the trainers of trainers.go: share of the records with a trap

	Version      int  // hf: 4 or 5
	SaveInterval int  // hf: steps between checkpoints
	Progress     bool // hf: progress bars between the records

	FileLogger bool // verl: filelogger.jsonl beside the console log
}

// DefaultOptions are the flags' defaults.
func DefaultOptions(format string) Options {
	o := Options{
		Format: format, Out: format + "-logs", Steps: 1000, Seed: 1, Timezone: time.Local, WorldSize: 8, Interval: 1, SlowFactor: 2,
		Writer: "merged", DPOmitted: true, Timers: true, Fields: "recommended", Version: 4, SaveInterval: 500,
	}
	switch format {
	case FormatFlagScale:
		o.Interval = 10
	case FormatMegatron:
		o.Interval, o.EvalInterval, o.Prefix = 10, 100, "torchrun"
	case FormatHF:
		o.Interval, o.EvalInterval = 10, 500
	case FormatVerl:
		o.EvalInterval, o.Prefix = 20, writer.PrefixRayANSI
	}
	if t := trainers[format]; t != nil {
		o.Interval, o.EvalInterval, o.Prefix = max(1, t.interval), t.evalInterval, writer.PrefixNone
		if t.ray != "" {
			o.Prefix = writer.PrefixRayANSI
		}
	}
	return o
}

func (o *Options) validate() error {
	var errs writer.Complaints
	bad, oneOf := errs.Bad, errs.OneOf
	if o.Out == "" {
		bad("--out is empty: give a directory, a file or -")
	}
	if o.Steps < 0 || o.Steps == 0 && o.Rate == 0 {
		bad("--steps %d: use at least 1 (0 means until stopped, and needs --rate)", o.Steps)
	}
	if o.WorldSize < 1 || o.WorldSize > 1<<20 {
		bad("--world-size %d: use 1 to %d", o.WorldSize, 1<<20)
	}
	if o.Interval < 1 {
		bad("%s %d: use 1 (every step) or more", intervalFlag(o.Format), o.Interval)
	}
	if o.EvalInterval < 0 {
		bad("--eval-interval %d: use 0 (never) or more", o.EvalInterval)
	}
	if !(o.Slow >= 0 && o.Slow <= 1) {
		bad("--slow %v: use 0 to 1", o.Slow)
	}
	if !(o.Nasty >= 0 && o.Nasty <= 1) {
		bad("--nasty %v: use 0 to 1", o.Nasty)
	}
	if !(o.SlowFactor >= 1 && o.SlowFactor <= 1000) {
		bad("--slow-factor %v: use 1 to 1000", o.SlowFactor)
	}
	if !(o.Rate >= 0 && o.Rate <= 1e5) {
		bad("--rate %v: use 0 (no pacing) to 100000 records per second", o.Rate)
	}
	if o.Rate > 0 && !o.Start.IsZero() {
		bad("--rate and --start: with a rate the stamps are the real time, drop one")
	}
	switch o.Format {
	case FormatFlagScale:
		oneOf("writer", o.Writer, "merged", "douzi")
		if o.Breakdown && o.Writer == "douzi" {
			bad("--breakdown: the douzi writer never prints one, use --writer merged")
		}
		if o.Restart && o.Steps < 5 {
			bad("--restart needs --steps of at least 5")
		}
		if o.Out == "-" {
			bad("--out -: perf_monitor writes several files, give a directory")
		}
	case FormatMegatron:
		oneOf("prefix", o.Prefix, writer.PrefixNone, "torchrun", "srun", "rank")
	case FormatJSONL:
		if o.fieldCount() == 0 {
			bad("--fields %q: use minimal, recommended, full or a number from %d to %d", o.Fields, fullFields, maxFields)
		}
	case FormatHF:
		if o.Version != 4 && o.Version != 5 {
			bad("--transformers %d: use 4 or 5", o.Version)
		}
		if o.SaveInterval < 1 {
			bad("--save-steps %d: use 1 or more", o.SaveInterval)
		}
	case FormatDeepSpeed, FormatTorchTitan, FormatNeMo, FormatNanochat, FormatMaxText, FormatNeMoRL:
		oneOf("prefix", o.Prefix, writer.PrefixNone, "torchrun", "srun", "rank")
	case FormatOpenRLHF, FormatSlime:
		oneOf("prefix", o.Prefix, writer.PrefixNone, writer.PrefixRay, writer.PrefixRayANSI)
	case FormatVerl:
		oneOf("prefix", o.Prefix, writer.PrefixNone, writer.PrefixRay, writer.PrefixRayANSI)
		if o.FileLogger && !writer.IsDir(o.Out) {
			bad("--filelogger writes a second file: give a directory as --out")
		}
	}
	return errors.Join(errs...)
}

// horizon is the number of steps of the learning-rate schedule.
func (o *Options) horizon() int64 {
	if o.Steps == 0 {
		return 100_000
	}
	return int64(o.Steps)
}

// secondsPerStep is 0 without a rate.
func (o *Options) secondsPerStep() float64 {
	if o.Rate == 0 {
		return 0
	}
	return 1 / (o.Rate * float64(o.Interval))
}

func (o *Options) truthPath() string {
	if o.Format == FormatFlagScale && o.Truth == "" {
		return filepath.Join(o.Out, "truth.json")
	}
	return writer.TruthPath(o.Out, o.Truth)
}

func round(v float64, decimals int) float64 {
	p := math.Pow10(decimals)
	return math.Round(v*p) / p
}
