package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
)

const long = `trainbridge reads the logs of ML training and inference jobs as they are written, and turns them into traces (OTLP to Jaeger or Tempo)
and metrics (for Prometheus). It is an OpenTelemetry Collector.
Without --config it runs the configuration that is built in: it reads the logs below, sends spans to TRAINBRIDGE_OTLP_ENDPOINT, takes OTLP on
127.0.0.1:4317 (gRPC) and :4318 (HTTP), and has metrics on 127.0.0.1:8889 (the job), :8888 (itself), health on :13133.

  TRAINBRIDGE_LOGS='/data/job/**/*.log' trainbridge

Variables (globs may be several, with commas between them):
  TRAINBRIDGE_LOGS            logs of any kind: each file goes to the receiver that understands it
  TRAINBRIDGE_SERVICE         the name of the job; without, each receiver has its own
  TRAINBRIDGE_RUN_ID          the run that the logs are of; without, what SLURM_JOB_ID and its like say, else each directory of logs is a run
  TRAINBRIDGE_COLLECTOR       the name of this collector, where several count what is of one run (the host's name)
  TRAINBRIDGE_OTLP_ENDPOINT   where spans go (127.0.0.1:14317)
  TRAINBRIDGE_STATE_DIR       where positions in files are kept (.trainbridge): remove it to read all again
  TRAINBRIDGE_VERDICTS        a file that gets each verdict as a log record, as it comes; without, verdicts are on spans and in metrics
  TRAINBRIDGE_DEVICE          the GPUs that train, such as 'H100 SXM', for MFU; without, those that are found
  TRAINBRIDGE_HISTOGRAMS      'explicit' for a Prometheus without native histograms
  TRAINBRIDGE_LISTEN, TRAINBRIDGE_OTLP_PORT, TRAINBRIDGE_OTLP_HTTP_PORT, TRAINBRIDGE_METRICS_PORT, TRAINBRIDGE_TELEMETRY_PORT,
  TRAINBRIDGE_HEALTH_PORT     the address of these ports, and another port for each; 0: a free one, which is printed
  TRAINBRIDGE_FOLLOW_SYMLINKS true: logs are read through symbolic links too
  TRAINBRIDGE_TQ_LOGS, TRAINBRIDGE_FLAGSCALE_LOGS, TRAINBRIDGE_TRAIN_LOGS, TRAINBRIDGE_ZMQ_LOGS, TRAINBRIDGE_NCCL_LOGS,
  TRAINBRIDGE_EVENT_LOGS      logs for one receiver only: verl with TransferQueue, FlagScale, training logs, ZeroMQ clients, NCCL, stderr
`

// usages are shorter than the collector's own: the default of its gates alone is 3,000 characters.
var usages = map[string]string{
	"config":        "a `file` with a configuration in place of the built-in one; of several, the later wins",
	"set":           "set `key=value` of the configuration, such as processors.train_perf.train.device=H100",
	"feature-gates": "features of the collector to switch on, or off with - before them: trainbridge featuregate lists `names`",
}

// explainItself gives the root command its help texts, errors of usage with advice, and the subcommand version.
func explainItself(root *cobra.Command) {
	root.Short, root.Long = "Turn ML training and inference logs into traces and metrics", long
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if errors.As(err, new(*pflag.NotExistError)) {
			err = fmt.Errorf("%w: %s -h lists the flags", err, cmd.CommandPath())
		}
		return reading.Usage(err)
	})
	root.InitDefaultHelpFlag()
	root.InitDefaultCompletionCmd()
	// The collector's own flags, in our words.
	for _, cmd := range append(root.Commands(), root) {
		for name, usage := range usages {
			if f := cmd.Flags().Lookup(name); f != nil {
				f.Usage, f.DefValue = usage, ""
			}
		}
	}
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return reading.Usage(fmt.Errorf("there is no command %q: trainbridge -h lists them", args[0]))
		}
		return nil
	}
	root.AddCommand(&cobra.Command{
		Use: "version", Short: "Print version, commit and Go", Args: reading.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	})
}

// commit is set by the build.
var commit string

// versionLine is "trainbridge 0.1.0, commit 1f21ccab, go1.26 linux/amd64". A build without the make target has the commit that Go found, or none.
func versionLine() string {
	if info, ok := debug.ReadBuildInfo(); ok && commit == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	if commit == "" {
		commit = "not known"
	}
	return fmt.Sprintf("trainbridge %s, commit %s, %s %s/%s", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// exitCode is 2 for a wrong command line, else 1.
func exitCode(err error) int {
	if errors.As(err, new(*reading.UsageError)) {
		return 2
	}
	return 1
}
