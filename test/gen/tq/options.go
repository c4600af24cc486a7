package tq

import (
	"errors"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// Options of a run. Fractions are 0..1.
type Options struct {
	// Out is a directory (one file per Worker), a file (a driver log with all workers) or "-" (standard output).
	Out    string
	Truth  string // file for the ground truth; empty: beside the log; "none": not written
	Prefix string // python, ray, ray-ansi, none; empty: python for a directory, else ray-ansi

	Workers     int
	Batches     int // 0: until stopped (needs Rate)
	Functions   []string
	Concurrency int      // coroutines of a function in a process
	IPs         []string // further hosts; workers alternate between the driver's node and the IPs
	Seed        uint64

	Start    time.Time // zero: now with a rate, else the log ends now
	Timezone *time.Location
	Rate     float64 // lines per second over all workers, written in real time; 0: as fast as possible
	Scale    float64 // factor on all durations; with a rate it is computed

	OverheadHigh float64 // share of the batches with a TQ overhead over 30 %
	Detail       bool
	Costs        bool    // the lines of newer versions between the records: cost times of getting and putting, and the reports of a storage unit
	NA           float64 // share of the functions with trace_id=N/A
	Crash        float64 // share of the functions without an end
	ComputeOnly  float64 // share of the functions without a PUT
	RotateEvery  int     // lines per file before it is renamed; 0: never
}

// PrefixPython is the prefix of Python's logging: INFO:2026-02-11 16:40:00,120: Ray's prefix comes first (writer.RayPrefix).
const PrefixPython = "python"

// DefaultOptions are the flags' defaults.
func DefaultOptions() Options {
	return Options{
		Out: "tq-logs", Workers: 4, Batches: 20, Concurrency: 1, Seed: 1, Timezone: time.Local, Scale: 1, Detail: true,
		Functions:    []string{"generate_sequences", "compute_log_prob", "update_actor"},
		OverheadHigh: 0.2,
	}
}

func (o *Options) validate() error {
	var errs writer.Complaints
	bad := errs.Bad
	if o.Out == "" {
		bad("--out is empty: give a directory, a file or -")
	}
	switch o.Prefix {
	case "", PrefixPython, writer.PrefixRay, writer.PrefixRayANSI, writer.PrefixNone:
	default:
		bad("--prefix %q: use python, ray, ray-ansi or none", o.Prefix)
	}
	if o.Workers < 1 || o.Workers > 10000 {
		bad("--workers %d: use 1 to 10000", o.Workers)
	}
	if o.Concurrency < 1 || o.Concurrency > 1000 {
		bad("--concurrency %d: use 1 to 1000", o.Concurrency)
	}
	if o.Batches < 0 || o.Batches == 0 && o.Rate == 0 {
		bad("--batches %d: use at least 1 (0 means until stopped, and needs --rate)", o.Batches)
	}
	if len(o.Functions) == 0 {
		bad("--functions is empty: name at least one")
	}
	for _, f := range o.Functions {
		if f == "" || strings.ContainsAny(f, "|=\r\n ") {
			bad("--functions: %q would break the line format", f)
		}
	}
	for _, f := range []struct {
		flag  string
		value float64
	}{{"overhead-high", o.OverheadHigh}, {"na", o.NA}, {"crash", o.Crash}, {"compute-only", o.ComputeOnly}, {"crash + compute-only", o.Crash + o.ComputeOnly}} {
		if !(f.value >= 0 && f.value <= 1) {
			bad("--%s %v: use 0 to 1", f.flag, f.value)
		}
	}
	if !(o.Rate >= 0 && o.Rate <= 1e6) {
		bad("--rate %v: use 0 (no pacing) to 1000000 lines per second", o.Rate)
	}
	if !(o.Scale >= 0 && o.Scale <= 1000) {
		bad("--duration-scale %v: use 0 to 1000", o.Scale)
	}
	if o.Rate > 0 && o.Scale != 1 {
		bad("--rate and --duration-scale: with a rate the durations follow from it, drop one")
	}
	if o.Rate > 0 && !o.Start.IsZero() {
		bad("--rate and --start: with a rate the stamps are the real time, drop one")
	}
	if o.RotateEvery < 0 {
		bad("--rotate-every %d: use 0 (never) or more", o.RotateEvery)
	}
	if o.RotateEvery > 0 && o.Out == "-" {
		bad("--rotate-every: standard output cannot be rotated, use --out FILE")
	}
	return errors.Join(errs...)
}

func (o *Options) intoFiles() bool { return writer.IsDir(o.Out) }

func (o *Options) truthPath() string { return writer.TruthPath(o.Out, o.Truth) }
