package zmq

import (
	"errors"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// LayoutCSV is the layout of a ZeroMQ RPC log converted to CSV; the layouts v1 to v4 are original.
const LayoutCSV = "csv"

// Options are the options of a simulated client of RPCs over ZeroMQ and its log. Fractions are 0..1.
type Options struct {
	Out   string // directory, file or "-"
	Truth string // file for the ground truth; empty: beside the log; "none": not written

	Layout    string // v1, v2, v3, v4 or csv
	Transport string // as in the title; with +SHM tensors go through shared memory
	Passes    int    // after the warm-up; 0: until stopped (needs Rate or Lines)
	Layers    int
	Warmup    int // passes before the statistics are reset and the ids restart; 0: no reset
	Seed      uint64
	Start     time.Time // zero: now with a rate, else the log ends now
	Rate      float64   // rows per second, written in real time; 0: as fast as possible
	Lines     int64     // rows in the log, with as many passes as needed; 0: Passes decides

	SerializeHigh float64 // share of the passes that serialize for more than 30 % of the time
	NoFooter      bool
	Crash         bool // the last pass breaks off, and no footer follows
}

// DefaultOptions are the flags' defaults.
func DefaultOptions() Options {
	return Options{Out: "zmq-logs", Layout: "v1", Transport: "IPC", Passes: 10, Layers: 16, Warmup: 1, Seed: 1, SerializeHigh: 0.2}
}

// maxZMQRate leaves a row the time outside of stages, which is not scaled.
const maxZMQRate = 5000

func (o *Options) validate() error {
	var errs writer.Complaints
	bad := errs.Bad
	if o.Out == "" {
		bad("--out is empty: give a directory, a file or -")
	}
	errs.OneOf("layout", o.Layout, "v1", "v2", "v3", "v4", LayoutCSV)
	if o.Transport == "" || strings.ContainsFunc(o.Transport, func(r rune) bool { return r <= ' ' || r > '~' }) {
		bad("--transport %q: use such as IPC, TCP or IPC+SHM", o.Transport)
	}
	if o.Passes < 0 || o.Passes == 0 && o.Rate == 0 && o.Lines == 0 {
		bad("--passes %d: use at least 1 (0 means until stopped, and needs --rate or --lines)", o.Passes)
	}
	if o.Layers < 1 || o.Layers > 10_000 {
		bad("--layers %d: use 1 to 10000", o.Layers)
	}
	if o.Warmup < 0 {
		bad("--warmup %d: use 0 (no restart of the ids) or more", o.Warmup)
	}
	if o.Lines < 0 {
		bad("--lines %d: use 0 (as --passes says) or more", o.Lines)
	}
	if !(o.SerializeHigh >= 0 && o.SerializeHigh <= 1) {
		bad("--serialize-high %v: use 0 to 1", o.SerializeHigh)
	}
	if !(o.Rate >= 0 && o.Rate <= maxZMQRate) {
		bad("--rate %v: use 0 (no pacing) to %d rows per second", o.Rate, maxZMQRate)
	}
	if o.Rate > 0 && !o.Start.IsZero() {
		bad("--rate and --start: with a rate the calls are made in real time, drop one")
	}
	if o.Crash && (o.Lines > 0 || o.Passes == 0) {
		bad("--crash breaks off the last of --passes: give their number, and no --lines")
	}
	return errors.Join(errs...)
}

// shared says whether tensors go through shared memory.
func (o *Options) shared() bool { return strings.Contains(o.Transport, "+SHM") }

func (o *Options) truthPath() string { return writer.TruthPath(o.Out, o.Truth) }
