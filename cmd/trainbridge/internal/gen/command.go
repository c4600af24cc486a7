package gen

import (
	"fmt"

	"github.com/spf13/cobra"
)

// UsageError is a command line that asks for what is not there.
type UsageError struct{ error }

// NewCommand is `trainbridge gen`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gen",
		Short: "Generate seeded, realistic logs with their exact ground truth",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &UsageError{fmt.Errorf("there is no generator %q: trainbridge gen -h lists them", args[0])}
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(
		newTQ(),
		newTrain(FormatFlagScale, "Generate logs of FlagScale's perf_monitor", "  trainbridge gen flagscale --out perf_monitor --steps 1000 --breakdown"),
		newTrain(FormatMegatron, "Generate the standard output of a Megatron-LM training", "  trainbridge gen megatron --out megatron.log --steps 1000 --slow 0.05"),
		newTrain(FormatJSONL, "Generate a training log of JSON lines", "  trainbridge gen jsonl --out train.jsonl --rate 2 --steps 0   # live, until Ctrl-C"),
		newTrain(FormatHF, "Generate logs of transformers.Trainer", "  trainbridge gen hf --out hf-logs --transformers 5"),
		newTrain(FormatVerl, "Generate the step lines of a verl training", "  trainbridge gen verl --out verl-logs --steps 200 --filelogger"),
		newZMQ(),
		newNCCL(),
	)
	return cmd
}
