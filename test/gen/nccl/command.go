package nccl

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// Commands are the commands of the package.
func Commands() []*cobra.Command { return []*cobra.Command{newCommand(), newPartialsCommand()} }

func newCommand() *cobra.Command {
	opt := DefaultOptions()
	var when writer.TimeFlags
	cmd := &cobra.Command{
		Use:   "nccl",
		Short: "Generate logs of collectives (NCCL Inspector, example profiler, Flight Recorder, VCCL)",
		Long: `Generates the logs about a training's collectives, a file per rank, process or network card, named as the real ones. In a step every rank
computes, then all do the same collectives: who is first waits for the last, then all leave together. The ground truth, one JSON line per collective,
goes to truth.json in the directory.

Formats: ` + strings.Join(ncclFormats(), ", ") + ` (without a version: v4.0).

Faults: a slow rank, a rank whose records stop (of a flight recorder: a rank that never comes, so that the others hang), a lost record, a slow link,
a slow collective, retries and errors, and clocks of hosts that differ and drift.`,
		Example: `  gen nccl --out nccl-logs --ranks 64 --nodes 8 --slow-rank 17 --slow-by 0.05
  gen nccl --out nccl-logs --ranks 1024 --nodes 128 --ranks-per-file 8 --steps 250 --format nccl_inspector_v4.4
  gen nccl --out nccl-logs --format vccl_flow --slow-link 0:8 --clock-skew 5s --clock-drift 50
  gen nccl --out nccl-logs --steps 0 --live --verbose   # until Ctrl-C`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := when.Parse(&opt.Start, &opt.Timezone); err != nil {
				return err
			}
			run, err := Generate(cmd.Context(), opt)
			if err != nil {
				return err
			}
			cmd.PrintErrf("wrote %d lines to %d file(s) at %s: %d collectives of %d ranks in %d steps; truth: %s\n",
				run.Lines, len(run.Files), opt.Out, run.Collectives, run.Ranks, run.Steps, cmp.Or(opt.truthPath(), "not written"))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Out, "out", opt.Out, "directory")
	f.StringVar(&opt.Truth, "truth", "", "file for the ground truth; none: no truth (default truth.json in the directory)")
	f.StringVar(&opt.Format, "format", opt.Format, "see above")
	f.IntVar(&opt.Ranks, "ranks", opt.Ranks, "GPUs")
	f.IntVar(&opt.Nodes, "nodes", opt.Nodes, "hosts, a divisor of the ranks")
	f.IntVar(&opt.RanksPerFile, "ranks-per-file", opt.RanksPerFile, "GPUs of a process, which writes one file (Inspector only)")
	f.IntVar(&opt.Steps, "steps", opt.Steps, "training steps; 0: until stopped, with --live")
	f.IntVar(&opt.PerStep, "collectives-per-step", opt.PerStep, "collectives after a step's computation")
	f.StringSliceVar(&opt.Operations, "operations", opt.Operations, "in turn within a step: "+strings.Join(ncclNames(), ", "))
	f.Int64SliceVar(&opt.Sizes, "sizes", opt.Sizes, "in turn within a step: bytes, of AllGather and ReduceScatter those of all ranks together")
	f.Uint64Var(&opt.Seed, "seed", opt.Seed, "same seed, flags and --start: same bytes")
	when.Add(cmd)
	f.BoolVar(&opt.Live, "live", false, "written in real time")
	f.DurationVar(&opt.Compute, "compute", opt.Compute, "a step's computation")
	f.Float64Var(&opt.Jitter, "jitter", opt.Jitter, "its standard deviation per rank and step, as a fraction")
	f.Float64Var(&opt.BusBandwidth, "busbw", opt.BusBandwidth, "bus bandwidth in GB/s, with a standard deviation of 1 %")
	f.DurationVar(&opt.EndJitter, "end-jitter", opt.EndJitter, "the ranks leave a collective within ± so much")
	f.DurationVar(&opt.ClockSkew, "clock-skew", 0, "a host's clock is off by up to ± so much")
	f.Float64Var(&opt.ClockDrift, "clock-drift", 0, "and gains up to ± so many ppm")
	f.DurationVar(&opt.DumpInterval, "dump-interval", opt.DumpInterval, "Inspector: time between dumps of a process; 0: one at the end")
	f.IntVar(&opt.Channels, "channels", opt.Channels, "channels of a collective")
	f.StringVar(&opt.CommName, "comm-name", opt.CommName, "Inspector: name of the communicator")
	f.BoolVar(&opt.Verbose, "verbose", false, "Inspector: event traces (v4.4: proxy records, too); example profiler: events of the proxy")
	f.BoolVar(&opt.InvalidTokens, "invalid-tokens", false, "example profiler: invalid JSON, as 2.28 and 2.29 write")
	f.BoolVar(&opt.NoEnd, "no-end", false, "example profiler: no end of the array, as of a killed job")
	f.BoolVar(&opt.NoTiming, "no-timing", false, "Flight Recorder: no durations, as by default in PyTorch")
	f.BoolVar(&opt.Compact, "compact", false, "Flight Recorder: all in one line, as PyTorch dumps it")
	f.BoolVar(&opt.Gigabytes, "gigabytes", false, "VCCL JSON, CSV: bandwidth_gbps in GB/s, not Gbit/s")
	f.Int64Var(&opt.FlipAt, "flip-at", opt.FlipAt, "VCCL's logs of network cards: bytes after which the other file of the pair is written anew")
	f.IntVar(&opt.SlowRank, "slow-rank", -1, "rank that computes longer; -1: none")
	f.Float64Var(&opt.SlowBy, "slow-by", opt.SlowBy, "by how much, as a fraction")
	f.IntVar(&opt.SlowFrom, "slow-from", 0, "from which step on")
	f.IntVar(&opt.MissingRank, "missing-rank", -1, "rank whose records stop; -1: none")
	f.IntVar(&opt.MissingFrom, "missing-from", 0, "from which collective of the run on")
	f.IntVar(&opt.GapRank, "gap-rank", -1, "rank that loses one record; -1: none")
	f.IntVar(&opt.GapAt, "gap-at", 0, "of which collective of the run")
	f.StringVar(&opt.SlowLink, "slow-link", "", "FROM:TO, ranks with a slow link: the next rank, of network cards that of the same number on the next node")
	f.Float64Var(&opt.SlowLinkBy, "slow-link-by", opt.SlowLinkBy, "factor")
	f.IntVar(&opt.SlowCollective, "slow-collective", -1, "collective of the run with a quarter of the bandwidth; -1: none")
	f.Float64Var(&opt.Retries, "retries", 0, "VCCL JSON, CSV: share of the records with retries")
	f.Float64Var(&opt.Errors, "errors", 0, "VCCL JSON, CSV: share of the records with errors")
	return cmd
}
