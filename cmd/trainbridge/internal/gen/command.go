package gen

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/logfile"
)

// NewCommand is `trainbridge gen`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gen",
		Short: "Generate the logs of a job, seeded and realistic, with their exact ground truth",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return reading.Usage(fmt.Errorf("there is no generator %q: trainbridge gen -h lists them", args[0]))
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(newRun())
	return cmd
}

// newRun is `trainbridge gen run`.
func newRun() *cobra.Command {
	opt, start := DefaultOptions(), ""
	cmd := &cobra.Command{
		Use:   "run DIR",
		Short: "Generate the logs of one job in all formats at once",
		Long: `Generates the logs of one training of reinforcement learning, as verl does it, into directories below DIR:
  tq     the driver's log with what all workers tell of TransferQueue
  zmq    the log of a client of RPCs, a pass while the first worker generates sequences
  nccl   a file per rank about the collectives while the actor is updated
  train  a JSON line per step
Where each step's time went, who was waited for, how many spans belong to it and why it was slow is in DIR/truth.json.

Faults, one of which is drawn for a step that has one:
  straggler      a rank comes late to one collective        data_loading   data come late
  link           a rank's sends are slow                    checkpoint     a checkpoint takes longer
  gpu            a rank computes longer, throttled          get, put       TransferQueue is slow in one function
  rpc.serialize  the client serializes longer
Clocks:
  seconds  stamps of whole seconds                          nsteps   a training record of 5 steps
  skew     hosts up to 5 s apart, drifting by 50 ppm        twojobs  two jobs on the same hosts, DIR/job-0 and DIR/job-1
  nostart  NCCL Inspector without start times               overlap  the next step's sequences are generated meanwhile
  na       TransferQueue's ids are N/A`,
		Example: `  trainbridge gen run --ranks 16 --steps 50 --faults straggler,get,data_loading job-logs
  trainbridge gen run --ranks 64 --ids none --clocks skew,na,overlap job-logs`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return reading.Usage(errors.New("gen run: name one directory to write to, such as: trainbridge gen run job-logs"))
			}
			return nil
		},
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if start != "" {
				opt.Start, err = time.Parse(time.RFC3339Nano, start)
				if err != nil {
					return fmt.Errorf("%w: --start %q: use RFC 3339, such as 2026-02-11T16:40:00Z", logfile.ErrOptions, start)
				}
			}
			opt.Out = args[0]
			truths, err := Generate(cmd.Context(), opt)
			if err != nil {
				return err
			}
			for i := range truths {
				t := &truths[i]
				slow := 0
				for _, s := range t.Steps {
					if s.Cause != nil {
						slow++
					}
				}
				cmd.PrintErrf("wrote %d file(s) at %s: %d ranks, %d windows of steps, %d of them slow for a reason; truth: truth.json there\n",
					len(t.Files), opt.Out, t.Ranks, len(t.Steps), slow)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&opt.Ranks, "ranks", opt.Ranks, "GPUs, each with a worker, 8 a host")
	f.IntVar(&opt.Steps, "steps", opt.Steps, "training steps")
	f.Uint64Var(&opt.Seed, "seed", opt.Seed, "same seed, flags and --start: same bytes")
	f.StringVar(&start, "start", "", "time of the first line, RFC 3339 (default: such that the log ends now)")
	f.BoolVar(&opt.Live, "live", false, "written in real time, the truth at the end")
	f.StringSliceVar(&opt.Faults, "faults", nil, "why steps are slow: "+strings.Join(Faults(), ", "))
	f.IntVar(&opt.FaultEvery, "fault-every", opt.FaultEvery, "steps from one with a fault to the next; the first 10 have none")
	f.StringSliceVar(&opt.Clocks, "clocks", nil, "what is wrong with clocks, ids and records: "+strings.Join(Clocks(), ", "))
	f.StringVar(&opt.IDs, "ids", opt.IDs, "uuid: the step's trace id in all logs (NCCL Inspector has no room for it); none: in none")
	f.StringVar(&opt.NCCL, "nccl", opt.NCCL, "logs of collectives: "+NCCLVCCL+" or "+NCCLInspector+" (default the latter with skew and nostart)")
	f.IntVar(&opt.Collectives, "collectives-per-step", opt.Collectives, "collectives of a step")
	f.IntVar(&opt.CheckpointEvery, "checkpoint-every", opt.CheckpointEvery, "steps between checkpoints; 0: none")
	f.IntVar(&opt.EvalEvery, "eval-every", opt.EvalEvery, "steps between evaluations; 0: none")
	return cmd
}
