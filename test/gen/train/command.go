package train

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// intervalFlag is the flag for Options.Interval, by the trainer's own name.
func intervalFlag(format string) string {
	switch format {
	case FormatMegatron:
		return "--log-interval"
	case FormatHF:
		return "--logging-steps"
	}
	if t := trainers[format]; t != nil && t.flag != "" {
		return "--" + t.flag
	}
	return "--interval"
}

// Commands are the commands of the package, one per format.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newCommand(FormatFlagScale, "Generate logs of FlagScale's perf_monitor", "  gen flagscale --out perf_monitor --steps 1000 --breakdown"),
		newCommand(FormatMegatron, "Generate the standard output of a Megatron-LM training", "  gen megatron --out megatron.log --steps 1000 --slow 0.05"),
		newCommand(FormatJSONL, "Generate a training log of JSON lines", "  gen jsonl --out train.jsonl --rate 2 --steps 0   # live, until Ctrl-C"),
		newCommand(FormatHF, "Generate logs of transformers.Trainer", "  gen hf --out hf-logs --transformers 5"),
		newCommand(FormatVerl, "Generate the step lines of a verl training", "  gen verl --out verl-logs --steps 200 --filelogger"),
		newCommand(FormatDeepSpeed, "Generate the standard output of a DeepSpeed training", "  gen deepspeed --out deepspeed.log --steps-per-print 1"),
		newCommand(FormatTorchTitan, "Generate the standard output of a torchtitan training", "  gen torchtitan --out titan.log --prefix rank"),
		newCommand(FormatNeMo, "Generate the standard output of a NeMo 2 training", "  gen nemo --out nemo.log --log-interval 1"),
		newCommand(FormatOpenRLHF, "Generate the standard output of OpenRLHF's PPO", "  gen openrlhf --out openrlhf.log --steps 200"),
		newCommand(FormatSlime, "Generate the standard output of slime's trainer", "  gen slime --out slime.log --steps 200"),
		newCommand(FormatNanochat, "Generate the standard output of a nanochat training", "  gen nanochat --out nanochat.log --steps 2000"),
		newCommand(FormatMaxText, "Generate the standard output of a MaxText training", "  gen maxtext --out maxtext.log --nan-loss-at 500"),
		newCommand(FormatNeMoRL, "Generate the standard output of NeMo-RL's SFT", "  gen nemorl --out nemorl.log --steps 200"),
	}
}

func newCommand(format, short, example string) *cobra.Command {
	opt := DefaultOptions(format)
	var when writer.TimeFlags
	cmd := &cobra.Command{
		Use:   format,
		Short: short,
		Long: short + `. A training run is simulated: steps with noise, loss, learning rate, FLOP/s by a real model's formula.
The ground truth, one JSON line per record, goes to truth.json in the directory, or to FILE.truth.json.`,
		Example:      example,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := when.Parse(&opt.Start, &opt.Timezone); err != nil {
				return err
			}
			run, err := Generate(cmd.Context(), opt, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			cmd.PrintErrf("wrote %d lines to %d file(s) at %s: %d records of %d steps; truth: %s\n",
				run.Lines, len(run.Files), opt.Out, run.Records, run.Steps, cmp.Or(opt.truthPath(), "not written"))
			return nil
		},
	}
	f := cmd.Flags()
	out := "directory, file with an extension, or - for standard output"
	if format == FormatFlagScale {
		out = "directory"
	}
	f.StringVar(&opt.Out, "out", opt.Out, out)
	f.StringVar(&opt.Truth, "truth", "", "file for the ground truth; none: no truth (default beside the log)")
	f.IntVar(&opt.Steps, "steps", opt.Steps, "training steps; 0: until stopped, with --rate")
	f.Uint64Var(&opt.Seed, "seed", opt.Seed, "same seed, flags and --start: same bytes")
	when.Add(cmd)
	f.Float64Var(&opt.Rate, "rate", 0, "records per second, written in real time; 0: as fast as possible")
	f.IntVar(&opt.WorldSize, "world-size", opt.WorldSize, "GPUs")
	f.Float64Var(&opt.Slow, "slow", 0, "share of the records whose steps are slow")
	f.Float64Var(&opt.SlowFactor, "slow-factor", opt.SlowFactor, "duration of slow steps, in normal ones")
	f.IntVar(&opt.NaNLossAt, "nan-loss-at", 0, "step whose loss is NaN; 0: none")
	t := trainers[format]
	if format == FormatFlagScale || format == FormatMegatron || format == FormatHF || t != nil && t.flag != "" {
		f.IntVar(&opt.Interval, intervalFlag(format)[2:], opt.Interval, "steps per record")
	}
	if format == FormatMegatron || format == FormatHF || format == FormatVerl || t != nil && t.evalInterval > 0 {
		f.IntVar(&opt.EvalInterval, "eval-interval", opt.EvalInterval, "steps between evaluations; 0: none")
	}
	switch format {
	case FormatFlagScale:
		f.StringVar(&opt.Writer, "writer", opt.Writer, "which version of perf_monitor: merged or douzi")
		f.BoolVar(&opt.Breakdown, "breakdown", false, "FLOP counts after each row (merged only)")
		f.BoolVar(&opt.Restart, "restart", false, "a second session after three fifths of the steps; the first has no summary")
		f.BoolVar(&opt.DPOmitted, "dp-omitted", opt.DPOmitted, "samples/s and TFLOPS without the data-parallel size, as the original has it")
	case FormatMegatron:
		f.StringVar(&opt.Prefix, "prefix", opt.Prefix, "before each line: torchrun, srun, rank or none")
		f.BoolVar(&opt.Timers, "timers", opt.Timers, "times across ranks after each record")
	case FormatJSONL:
		f.StringVar(
			&opt.Fields, "fields", opt.Fields,
			"minimal (loss, throughput), recommended (and step_time_s, lr, gpu_util) full (and step, timestamp), or the number of fields, as loggers of every layer "+
				"write them: 40 are 1.8 KB a line",
		)
		f.Float64Var(&opt.Nasty, "nasty", 0, "share of the records with a trap: NaN, strings, CRLF, aliases, nested data, noise, a half line")
	case FormatHF:
		f.IntVar(&opt.Version, "transformers", opt.Version, "major version: 4, or 5 with texts for numbers")
		f.IntVar(&opt.SaveInterval, "save-steps", opt.SaveInterval, "steps between checkpoints")
		f.BoolVar(&opt.Progress, "progress", opt.Progress, "tqdm's progress bars")
	case FormatVerl:
		f.StringVar(&opt.Prefix, "prefix", opt.Prefix, "before each line: ray, ray-ansi or none")
		f.BoolVar(&opt.FileLogger, "filelogger", false, "filelogger.jsonl beside the console log")
	case FormatDeepSpeed:
		f.BoolVar(&opt.Timers, "timers", opt.Timers, "parts of each step (wall_clock_breakdown)")
	}
	if t != nil {
		prefixes := "torchrun, srun, rank or none"
		if t.ray != "" {
			prefixes = "ray, ray-ansi or none"
		}
		f.StringVar(&opt.Prefix, "prefix", opt.Prefix, "before each line: "+prefixes)
		f.Float64Var(&opt.Nasty, "nasty", 0, "share of the records with a trap: NaN, zeros, wide numbers, no duration, a line of another writer")
	}
	return cmd
}
