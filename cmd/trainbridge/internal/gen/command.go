package gen

import "github.com/spf13/cobra"

// NewCommand is `trainbridge gen`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gen",
		Short: "Generate seeded, realistic logs with their exact ground truth",
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
