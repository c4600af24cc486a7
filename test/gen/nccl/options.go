package nccl

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// The formats of `gen nccl`. FormatInspector is version v4.0; suffixes "_v4.1" … "_v4.4" are the later versions.
const (
	FormatVCCLJSON       = "vccl_json"
	FormatVCCLPretty     = "vccl_json_pretty" // consecutive objects of several lines
	FormatVCCLArray      = "vccl_json_array"  // a single array
	FormatVCCLCSV        = "vccl_csv"
	FormatVCCLFlow       = "vccl_flow"   // 13 columns
	FormatVCCLPacked     = "vccl_packed" // a 64-bit word per line
	FormatVCCLMean       = "vccl_mean"   // six columns
	FormatVCCLText       = "vccl_text"   // the oldest form
	FormatInspector      = "nccl_inspector"
	FormatNCCLProfiler   = "nccl_profiler"
	FormatFlightRecorder = "flight_recorder"
)

// inspectorVersions are the versions of the Inspector's output; the empty version is the default.
var inspectorVersions = []string{"", "_v4.0", "_v4.1", "_v4.2", "_v4.3", "_v4.4"}

func ncclFormats() []string {
	formats := []string{
		FormatVCCLJSON, FormatVCCLPretty, FormatVCCLArray, FormatVCCLCSV, FormatVCCLFlow, FormatVCCLPacked, FormatVCCLMean, FormatVCCLText,
		FormatNCCLProfiler, FormatFlightRecorder,
	}
	for _, v := range inspectorVersions {
		formats = append(formats, FormatInspector+v)
	}
	return formats
}

// Options are the options of a simulated training with collectives, and of the logs.
type Options struct {
	Format string
	Out    string // directory
	Truth  string // file for the ground truth; empty: in the directory; "none": not written

	Ranks, Nodes int
	RanksPerFile int // GPUs of a process, of NCCL Inspector
	Steps        int // 0: until stopped (needs Live)
	PerStep      int // collectives per step
	Operations   []string
	Sizes        []int64 // By; S of nccl-tests: for AllGather and ReduceScatter the sum over all ranks
	Seed         uint64
	Start        time.Time // zero: now with Live, else the log ends now
	Timezone     *time.Location
	Live         bool // written in real time

	Compute       time.Duration // of a rank per step
	Jitter        float64       // standard deviation of Compute, as a fraction
	BusBandwidth  float64       // GB/s (1e9 By)
	EndJitter     time.Duration // the ranks leave a collective within ±EndJitter
	ClockSkew     time.Duration // of a host, uniform within ±
	ClockDrift    float64       // ppm, uniform within ±
	DumpInterval  time.Duration // of NCCL Inspector; 0: at the end only
	Channels      int
	CommName      string
	Verbose       bool // Inspector: event traces; example profiler: the proxy's events
	InvalidTokens bool // example profiler: as 2.28 and 2.29 wrote
	NoEnd         bool // example profiler: as of a killed job
	NoTiming      bool // Flight Recorder: without durations
	Compact       bool // Flight Recorder: on a single line
	Gigabytes     bool // VCCL JSON and CSV: bandwidth_gbps in GB/s, by its label, not in Gbit/s, by its example
	FlipAt        int64

	SlowRank, SlowFrom int // -1: none; the first step
	SlowBy             float64
	MissingRank        int // -1: none
	MissingFrom        int // its first missing collective
	GapRank, GapAt     int // -1: none
	SlowLink           string
	SlowLinkBy         float64
	SlowCollective     int // -1: none
	Retries, Errors    float64
}

// DefaultOptions are the flags' defaults.
func DefaultOptions() Options {
	return Options{
		Format: FormatInspector, Out: "nccl-logs", Ranks: 16, Nodes: 2, RanksPerFile: 1, Steps: 100, PerStep: 4,
		Operations: []string{"AllReduce", "AllGather", "ReduceScatter"}, Sizes: []int64{4 << 20, 64 << 20, 16 << 20, 1 << 20},
		Seed: 1, Timezone: time.Local, Compute: 80 * time.Millisecond, Jitter: 0.01, BusBandwidth: 200, EndJitter: 7 * time.Microsecond,
		DumpInterval: time.Second, Channels: 2, CommName: "DP Group 0", FlipAt: 10 << 20,
		SlowRank: -1, SlowBy: 0.05, MissingRank: -1, GapRank: -1, SlowLinkBy: 4, SlowCollective: -1,
	}
}

// perNode is how many ranks a host has.
func (o *Options) perNode() int { return o.Ranks / o.Nodes }

// collectives is the number of collectives, 0 if unknown.
func (o *Options) collectives() int { return o.Steps * o.PerStep }

// inspector is the version of the Inspector's output, in its own spelling; empty for other formats.
func (o *Options) inspector() string {
	v, ok := strings.CutPrefix(o.Format, FormatInspector)
	if !ok {
		return ""
	}
	if v == "" {
		return "v4.0"
	}
	return v[1:]
}

// perNIC says whether a log is of a network card, not of a rank.
func (o *Options) perNIC() bool {
	return slices.Contains([]string{FormatVCCLFlow, FormatVCCLPacked, FormatVCCLMean, FormatVCCLText}, o.Format)
}

// documented reports whether the log has the fields of VCCL's document (package vccl).
func (o *Options) documented() bool {
	return slices.Contains([]string{FormatVCCLJSON, FormatVCCLPretty, FormatVCCLArray, FormatVCCLCSV}, o.Format)
}

// neighbour is the rank that a rank sends to in the log: in a ring over all ranks; for network cards, in a ring per card.
func (o *Options) neighbour(rank int) int {
	if o.perNIC() {
		return (rank + o.perNode()) % o.Ranks
	}
	return (rank + 1) % o.Ranks
}

// slowLink is the source of the slow link, -1: none.
func (o *Options) slowLink() (int, error) {
	if o.SlowLink == "" {
		return -1, nil
	}
	var from, to int
	if n, err := fmt.Sscanf(o.SlowLink, "%d:%d", &from, &to); n != 2 || err != nil {
		return -1, fmt.Errorf("--slow-link %q: use two ranks, such as 0:%d", o.SlowLink, o.neighbour(0))
	}
	if from < 0 || from >= o.Ranks || o.neighbour(from) != to {
		return -1, fmt.Errorf("--slow-link %q: this log has no such link, rank 0 sends to %d, and so on in a ring", o.SlowLink, o.neighbour(0))
	}
	return from, nil
}

func (o *Options) validate() error {
	var errs writer.Complaints
	bad := errs.Bad
	errs.OneOf("format", o.Format, ncclFormats()...)
	if st, err := os.Stat(o.Out); o.Out == "" || o.Out == "-" || err == nil && !st.IsDir() {
		bad("--out %q: every rank has its own file, give a directory", o.Out)
	}
	if o.Ranks < 2 || o.Ranks > 1<<16 {
		bad("--ranks %d: use 2 to %d", o.Ranks, 1<<16)
	}
	if o.Nodes < 1 || o.Ranks%max(1, o.Nodes) != 0 {
		bad("--nodes %d: use a divisor of the %d ranks", o.Nodes, o.Ranks)
		return errors.Join(errs...)
	}
	if o.perNIC() && o.Nodes < 2 {
		bad("--format %s is about what goes from node to node: use --nodes of at least 2", o.Format)
	}
	if o.RanksPerFile < 1 || o.perNode()%max(1, o.RanksPerFile) != 0 {
		bad("--ranks-per-file %d: use a divisor of the %d ranks of a node", o.RanksPerFile, o.perNode())
	} else if o.RanksPerFile > 1 && o.inspector() == "" {
		bad("--ranks-per-file: only NCCL Inspector writes one file per process")
	}
	if o.Steps < 0 || o.Steps == 0 && !o.Live {
		bad("--steps %d: use at least 1 (0 means until stopped, and needs --live)", o.Steps)
	}
	if o.PerStep < 1 {
		bad("--collectives-per-step %d: use at least 1", o.PerStep)
	}
	if len(o.Operations) == 0 {
		bad("--operations is empty")
	}
	for _, name := range o.Operations {
		errs.OneOf("operations", name, ncclNames()...)
	}
	if len(o.Sizes) == 0 {
		bad("--sizes is empty")
	}
	for _, size := range o.Sizes {
		if size < 4*int64(o.Ranks) || size > 1<<40 {
			bad("--sizes %d: use %d (4 bytes per rank) to %d", size, 4*o.Ranks, int64(1)<<40)
		}
	}
	if o.Live && !o.Start.IsZero() {
		bad("--live and --start: a live log begins now, drop one")
	}
	if o.Live && o.Format == FormatFlightRecorder {
		bad("--live: a flight recorder is dumped when all is over")
	}
	errs.Positive("compute", o.Compute)
	errs.Range01("jitter", o.Jitter, 0.2)
	if !(o.BusBandwidth > 0 && o.BusBandwidth <= 1e6) {
		bad("--busbw %v: use more than 0 GB/s, to 1e6", o.BusBandwidth)
	}
	if o.EndJitter < 0 || o.EndJitter > latency/2 {
		bad("--end-jitter %v: use 0 to %v", o.EndJitter, latency/2)
	}
	if o.ClockSkew < 0 || o.ClockSkew > time.Hour {
		bad("--clock-skew %v: use 0 to 1h", o.ClockSkew)
	}
	if !(o.ClockDrift >= 0 && o.ClockDrift <= 1000) {
		bad("--clock-drift %v: use 0 to 1000 ppm", o.ClockDrift)
	}
	if o.DumpInterval < 0 || o.DumpInterval > 0 && o.DumpInterval < time.Millisecond {
		bad("--dump-interval %v: use 0 (at the end) or at least 1ms", o.DumpInterval)
	}
	if o.Channels < 1 || o.Channels > 64 {
		bad("--channels %d: use 1 to 64", o.Channels)
	}
	if strings.ContainsFunc(o.CommName, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		bad("--comm-name %q: use plain text", o.CommName)
	}
	if o.FlipAt < 4096 {
		bad("--flip-at %d: use at least 4096 bytes", o.FlipAt)
	}
	o.validateFaults(&errs)
	return errors.Join(errs...)
}

func (o *Options) validateFaults(errs *writer.Complaints) {
	bad := errs.Bad
	for _, f := range []struct {
		flag string
		rank int
	}{{"slow-rank", o.SlowRank}, {"missing-rank", o.MissingRank}, {"gap-rank", o.GapRank}} {
		if f.rank < -1 || f.rank >= o.Ranks {
			bad("--%s %d: use 0 to %d, or -1 for none", f.flag, f.rank, o.Ranks-1)
		}
	}
	if !(o.SlowBy >= 0 && o.SlowBy <= 100) {
		bad("--slow-by %v: use 0 to 100 (0.05: 5 %% more time)", o.SlowBy)
	}
	if o.SlowFrom < 0 || o.MissingFrom < 0 || o.GapAt < 0 {
		bad("--slow-from, --missing-from and --gap-at count from 0")
	}
	if o.SlowCollective < -1 {
		bad("--slow-collective %d: use 0 or more, or -1 for none", o.SlowCollective)
	}
	if o.perNIC() && o.MissingRank+o.GapRank > -2 {
		bad("--format %s has no record per rank that could be missing", o.Format)
	}
	if !(o.SlowLinkBy >= 1 && o.SlowLinkBy <= 1000) {
		bad("--slow-link-by %v: use 1 to 1000", o.SlowLinkBy)
	}
	if _, err := o.slowLink(); err != nil {
		bad("%w", err)
	} else if o.SlowLink != "" && !o.perNIC() && !o.documented() {
		bad("--slow-link: --format %s does not say who sends to whom", o.Format)
	}
	errs.Range01("retries", o.Retries, 1)
	errs.Range01("errors", o.Errors, 1)
	if (o.Retries > 0 || o.Errors > 0) && !o.documented() {
		bad("--retries and --errors: --format %s has no such field", o.Format)
	}
}

// truthPath is empty for no truth. Here out is always a directory, whatever its name.
func (o *Options) truthPath() string {
	return writer.TruthPath(o.Out, cmp.Or(o.Truth, filepath.Join(o.Out, "truth.json")))
}
