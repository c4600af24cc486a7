package tq

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// Commands are the commands of the package.
func Commands() []*cobra.Command { return []*cobra.Command{newCommand()} }

func newCommand() *cobra.Command {
	opt := DefaultOptions()
	var when writer.TimeFlags
	var detail string
	cmd := &cobra.Command{
		Use:   "tq",
		Short: "Generate verl + TransferQueue logs (TQ-TRACE, TQ-DETAIL)",
		Long: `Generates logs as verl with TransferQueue writes them: every batch has a trace id, and every worker runs every
function on it. The ground truth goes to truth.json in the directory, or to FILE.truth.json.`,
		Example: `  gen tq --out tq-logs --workers 8 --batches 100 --seed 42
  gen tq --out driver.log --rate 500 --batches 0   # a live driver log, until Ctrl-C`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := when.Parse(&opt.Start, &opt.Timezone); err != nil {
				return err
			}
			switch detail {
			case "on", "off":
				opt.Detail = detail == "on"
			default:
				return fmt.Errorf("%w: --detail %q: use on or off", logfile.ErrOptions, detail)
			}
			run, err := Generate(cmd.Context(), opt, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			truth := opt.truthPath()
			if truth == "" {
				truth = "not written"
			}
			cmd.PrintErrf("wrote %d lines to %d file(s) at %s: %d functions (%d complete) in %d batches, %d spans; truth: %s\n",
				run.Lines, len(run.Files), opt.Out, run.Functions, run.Complete, run.Batches, run.Spans, truth)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Out, "out", opt.Out, "directory (one worker-*.err per worker), file with an extension (driver log), or - for standard output")
	f.StringVar(&opt.Truth, "truth", "", "file for the ground truth; none: no truth (default beside the log)")
	f.StringVar(&opt.Prefix, "prefix", "", "python, ray, ray-ansi or none (default python for a directory, else ray-ansi)")
	f.IntVar(&opt.Workers, "workers", opt.Workers, "worker processes")
	f.IntVar(&opt.Batches, "batches", opt.Batches, "batches (traces); 0: until stopped, with --rate")
	f.StringSliceVar(&opt.Functions, "functions", opt.Functions, "functions that every worker runs on every batch")
	f.IntVar(&opt.Concurrency, "concurrency", opt.Concurrency, "coroutines of one function in one process")
	f.StringSliceVar(&opt.IPs, "ip", nil, "further hosts beside the driver's node; workers go round them")
	f.Uint64Var(&opt.Seed, "seed", opt.Seed, "same seed, flags and --start: same bytes")
	when.Add(cmd)
	f.Float64Var(&opt.Rate, "rate", 0, "lines per second over all workers, written in real time; 0: as fast as possible")
	f.Float64Var(&opt.Scale, "duration-scale", opt.Scale, "factor on all durations (not with --rate)")
	f.Float64Var(&opt.OverheadHigh, "overhead-high", opt.OverheadHigh, "share of the batches with a TQ overhead over 30 %")
	f.StringVar(&detail, "detail", "on", "TQ-DETAIL lines: on or off")
	f.BoolVar(&opt.Costs, "costs", false, "lines between the records as newer versions write them: cost times of tasks, reports of the storage unit")
	f.Float64Var(&opt.NA, "na", 0, "share of the functions with trace_id=N/A")
	f.Float64Var(&opt.Crash, "crash", 0, "share of the functions that never end")
	f.Float64Var(&opt.ComputeOnly, "compute-only", 0, "share of the functions that put nothing")
	f.IntVar(&opt.RotateEvery, "rotate-every", 0, "rename a file to .1, .2, … after so many lines; 0: never")
	return cmd
}
