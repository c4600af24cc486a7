package zmq

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// Commands are the commands of the package.
func Commands() []*cobra.Command { return []*cobra.Command{newCommand()} }

func newCommand() *cobra.Command {
	opt := DefaultOptions()
	var when writer.TimeFlags
	cmd := &cobra.Command{
		Use:   "zmq",
		Short: "Generate logs of RPCs over ZeroMQ",
		Long: `Generates the log that a client of RPCs over ZeroMQ writes: passes through a model whose layers are computed by a
server, a row per call. The ground truth, one JSON line per pass, goes to truth.json in the directory, or to FILE.truth.json.`,
		Example: `  gen zmq --out zmq-logs --passes 100 --serialize-high 0.3
  gen zmq --out zmq.log --layout v4 --transport IPC+SHM --rate 200 --passes 0   # live, until Ctrl-C`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := when.Parse(&opt.Start, nil); err != nil {
				return err
			}
			run, err := Generate(cmd.Context(), opt, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			cmd.PrintErrf("wrote %d lines to %d file(s) at %s: %d calls, %d passes; truth: %s\n",
				run.Lines, len(run.Files), opt.Out, run.Records, run.Passes, cmp.Or(opt.truthPath(), "not written"))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Out, "out", opt.Out, "directory, file with an extension, or - for standard output")
	f.StringVar(&opt.Truth, "truth", "", "file for the ground truth; none: no truth (default beside the log)")
	f.StringVar(&opt.Layout, "layout", opt.Layout, "version of the writer: v1 (the first), v2 (time offline), v3 (communication), v4 (server's time); or csv")
	f.StringVar(&opt.Transport, "transport", opt.Transport, "as the title has it: IPC, TCP, IPC+SHM (tensors go through shared memory) …")
	f.IntVar(&opt.Passes, "passes", opt.Passes, "passes after the warm-up; 0: until stopped, with --rate, or as --lines says")
	f.IntVar(&opt.Layers, "layers", opt.Layers, "layers of the model: a pass is 2 calls, and 6 per layer")
	f.IntVar(&opt.Warmup, "warmup", opt.Warmup, "passes before statistics and ids start anew; 0: they do not")
	f.Uint64Var(&opt.Seed, "seed", opt.Seed, "same seed, flags and --start: same bytes")
	when.AddStart(cmd)
	f.Float64Var(&opt.Rate, "rate", 0, "rows per second, each written when its call ends in real time; 0: as fast as possible")
	f.Int64Var(&opt.Lines, "lines", 0, "rows after which the log ends, with as many passes as that takes; 0: as --passes says")
	f.Float64Var(&opt.SerializeHigh, "serialize-high", opt.SerializeHigh, "share of the passes that serialize for more than 30 % of the time")
	f.BoolVar(&opt.NoFooter, "no-footer", false, "no summary at the end")
	f.BoolVar(&opt.Crash, "crash", false, "the last pass breaks off, and no summary follows")
	return cmd
}
