package gen

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// The causes of slow steps.
const (
	FaultStraggler  = "straggler"     // a rank comes late to one collective
	FaultLink       = "link"          // the sends of a rank are slow, and so are all collectives of the step
	FaultGPU        = "gpu"           // a rank computes longer: its GPU is throttled
	FaultData       = "data_loading"  // data come late
	FaultCheckpoint = "checkpoint"    // a checkpoint takes longer
	FaultGet        = "get"           // all workers wait longer for TransferQueue in one function
	FaultPut        = "put"           // the same in a PUT
	FaultSerialize  = "rpc.serialize" // the client of RPCs serializes longer
)

// Faults are all causes.
func Faults() []string {
	return []string{FaultStraggler, FaultLink, FaultGPU, FaultData, FaultCheckpoint, FaultGet, FaultPut, FaultSerialize}
}

// Faults of clocks, ids and windows.
const (
	ClockSeconds = "seconds" // stamps of whole seconds (TransferQueue's and the training log's)
	ClockSkew    = "skew"    // hosts' clocks are up to 5 s apart and drift by up to 50 ppm; the first host's is right
	ClockNoStart = "nostart" // NCCL Inspector without event traces: no start times
	ClockNA      = "na"      // TransferQueue's ids are N/A
	ClockNSteps  = "nsteps"  // a record of the training log is about nSteps steps
	ClockTwoJobs = "twojobs" // two jobs on the same hosts, in the directories job-0 and job-1
	ClockOverlap = "overlap" // sequences of the next step are generated while the actor is updated
)

// Clocks are all faults of clocks.
func Clocks() []string {
	return []string{ClockSeconds, ClockSkew, ClockNoStart, ClockNA, ClockNSteps, ClockTwoJobs, ClockOverlap}
}

// Whether logs have ids.
const (
	IDsUUID = "uuid"
	IDsNone = "none"
)

const (
	perHost  = 8 // ranks on a host
	nSteps   = 5 // steps of a record, with ClockNSteps
	maxRanks = 64 * 1024
	quiet    = 10 // steps without a fault at the beginning, for comparison
)

// Options are of a job.
type Options struct {
	Out    string // directory
	Ranks  int
	Steps  int
	Seed   uint64
	Start  time.Time // zero: now with Live, else the logs end now
	Live   bool      // written in real time
	Faults []string
	// FaultEvery is the number of steps from one fault to the next.
	FaultEvery int
	Clocks     []string
	IDs        string
	// NCCL is nccl_inspector or vccl_json; empty: vccl_json, if the clocks of hosts agree. VCCL has neither numbers nor communicators: its records are joined by
	// their times.
	NCCL string
	// Collectives of a step, shared out over AllReduce, AllGather and ReduceScatter.
	Collectives     int
	CheckpointEvery int // steps; 0: never
	EvalEvery       int // steps; 0: never

	job int // with ClockTwoJobs
}

// DefaultOptions are the flags' defaults.
func DefaultOptions() Options {
	return Options{
		Ranks: 16, Steps: 50, Seed: 1, FaultEvery: 5, IDs: IDsUUID, Collectives: 6, CheckpointEvery: 10, EvalEvery: 25,
	}
}

// validate returns an error for each wrong option, joined; all wrap logfile.ErrOptions.
func (o *Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{logfile.ErrOptions}, args...)...))
	}
	oneOf := func(flag string, names []string, values ...string) {
		for _, v := range values {
			if !slices.Contains(names, v) {
				bad("--%s %q: use one of %q", flag, v, names)
			}
		}
	}
	if o.Out == "" || o.Out == "-" {
		bad("%q: give a directory, the job has many files", o.Out)
	}
	if o.Ranks < 2 || o.Ranks > maxRanks || o.Ranks > perHost && o.Ranks%perHost != 0 {
		bad("--ranks %d: use 2 to %d, and from %d on a multiple of it, as each host has so many", o.Ranks, maxRanks, perHost)
	}
	if o.Steps < 1 {
		bad("--steps %d: use at least 1", o.Steps)
	}
	if o.clock(ClockNSteps) && o.Steps%nSteps != 0 {
		bad("--steps %d: with --clocks %s a record is about %d steps, use a multiple", o.Steps, ClockNSteps, nSteps)
	}
	if o.Live && !o.Start.IsZero() {
		bad("--live and --start: a live log begins now, drop one")
	}
	if o.Live && o.clock(ClockTwoJobs) {
		bad("--live and --clocks %s: one job is written at a time, run two", ClockTwoJobs)
	}
	oneOf("faults", Faults(), o.Faults...)
	oneOf("clocks", Clocks(), o.Clocks...)
	if o.FaultEvery < 2 {
		bad("--fault-every %d: use at least 2, a step is slow beside others", o.FaultEvery)
	}
	oneOf("ids", []string{IDsUUID, IDsNone}, o.IDs)
	oneOf("nccl", []string{NCCLInspector, NCCLVCCL}, o.ncclFormat())
	if o.Collectives < 1 {
		bad("--collectives-per-step %d: use at least 1", o.Collectives)
	}
	if o.CheckpointEvery < 0 {
		bad("--checkpoint-every %d: use 0 (never) or more", o.CheckpointEvery)
	}
	if slices.Contains(o.Faults, FaultCheckpoint) && o.CheckpointEvery == 0 {
		bad("--faults %s: there are no checkpoints, see --checkpoint-every", FaultCheckpoint)
	}
	if o.EvalEvery < 0 {
		bad("--eval-every %d: use 0 (never) or more", o.EvalEvery)
	}
	return errors.Join(errs...)
}

// clock says whether a fault of clocks is asked for.
func (o *Options) clock(name string) bool { return slices.Contains(o.Clocks, name) }

func (o *Options) hosts() int { return (o.Ranks + perHost - 1) / perHost }

// ids says whether logs have trace ids.
func (o *Options) ids() bool { return o.IDs == IDsUUID }

// ncclFormat is the format of the logs of collectives.
func (o *Options) ncclFormat() string {
	switch {
	case o.clock(ClockNoStart), o.NCCL == "" && o.clock(ClockSkew):
		return NCCLInspector
	case o.NCCL == "":
		return NCCLVCCL
	}
	return o.NCCL
}
