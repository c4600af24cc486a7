// Command trainbridge is an OpenTelemetry Collector that turns the performance logs of ML training and inference jobs into traces and metrics. Subcommands need
// no running collector: gen (make logs), report (a finished job from its logs), show (draw a trace) and more.
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/otelcol"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/check"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/compare"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/replay"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/show"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/top"
	"github.com/trainbridge/trainbridge/internal/ending"
)

// settings are the settings of the collector. config, as a converter of configurations, sees each configuration before the collector uses the configuration.
func settings(config *configChecker) otelcol.CollectorSettings {
	return otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{
			Command:     "trainbridge",
			Description: "OpenTelemetry Collector that turns ML training and inference logs into traces",
			Version:     version,
		},
		Factories: components,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{
				URIs: builtIn(), // any --config replaces the built-in one
				ProviderFactories: []confmap.ProviderFactory{
					envprovider.NewFactory(),
					fileprovider.NewFactory(),
					yamlprovider.NewFactory(),
				},
				ConverterFactories: []confmap.ConverterFactory{
					confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return config }),
				},
			},
		},
		DisableGracefulShutdown: true, // untilSignal replaces the collector's handling of signals
		LoggingOptions:          []zap.Option{zap.WrapCore(plain)},
		// gRPC warns at each attempt to connect; exporters report lasting failures.
		SkipSettingGRPCLogger: true,
	}
}

// builtIn is the configuration without --config. Verdicts go to a file only if one is named: a pipeline without an end is not worth its cost.
func builtIn() []string {
	uris := []string{"yaml:" + trainbridge.DefaultConfig}
	if os.Getenv("TRAINBRIDGE_VERDICTS") != "" {
		uris = append(uris, "yaml:"+trainbridge.VerdictsConfig)
	}
	return uris
}

// makeVerdictFile makes a missing file with the mode of any new file. The exporter's mode would keep the group from writing whatever the umask; errors of the
// path are left to the exporter.
func makeVerdictFile(path string) {
	if path == "" {
		return
	}
	_ = os.MkdirAll(filepath.Dir(path), 0o777)                                             //nolint:gosec // less the umask
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666); err == nil { //nolint:gosec // less the umask
		_ = f.Close()
	}
}

// healthGate has health_check read the status of components, for its key component_health. --feature-gates can switch the gate off.
const healthGate = "extension.healthcheck.useComponentStatus"

// command is the whole command line: without a subcommand the collector, otherwise one of the collector's subcommands (validate, components, …) or of ours.
func command() *cobra.Command {
	if err := featuregate.GlobalRegistry().Set(healthGate, true); err != nil {
		panic(err) // the extension has dropped the gate
	}
	config := new(configChecker)
	root := otelcol.NewCommand(settings(config))
	// What only a running collector needs: free ports, the stop by a signal, the file of verdicts.
	collect := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		ports, err := choosePorts()
		if err != nil {
			return err
		}
		if len(ports) > 0 {
			fmt.Fprintln(os.Stderr, "free ports:", strings.Join(ports, " ")) // scripts read the line too
		}
		cmd.SetContext(untilSignal(cmd.Context()))
		makeVerdictFile(os.Getenv("TRAINBRIDGE_VERDICTS"))
		return collect(cmd, args)
	}
	// What all commands with a configuration need: --set onto the built-in one, errors with advice.
	for _, cmd := range append(root.Commands(), root) {
		if run := cmd.RunE; run != nil {
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				if err := setOntoBuiltIn(cmd.Flags()); err != nil {
					return err
				}
				return config.explain(run(cmd, args))
			}
		}
	}
	root.AddCommand(
		check.NewCommand(new(configChecker).resolve), compare.NewCommand(), gen.NewCommand(), replay.NewCommand(), report.NewCommand(), show.NewCommand(),
		top.NewCommand(),
	)
	explainItself(root)
	return root
}

// setOntoBuiltIn names the built-in configuration for --set without --config: otherwise the collector takes --set for the whole configuration.
func setOntoBuiltIn(flags *pflag.FlagSet) error {
	if !flags.Changed("set") || flags.Changed("config") {
		return nil
	}
	for _, uri := range builtIn() {
		if err := flags.Set("config", uri); err != nil {
			return err
		}
	}
	return nil
}

// How long after a signal the collector may send, and run in all. A pod has 30 s by default, `docker stop` 10 s. Signals within atOnce are one: timeout(1)
// signals the process and then its group.
const (
	lastSend = 5 * time.Second
	lastStop = 9 * time.Second
	atOnce   = 250 * time.Millisecond
)

// untilSignal returns a context that ends with the first SIGINT or SIGTERM: the collector then delivers its data, for lastSend at most, and stops. A later
// signal, or a stop that takes longer than lastStop, ends the process at once. Lines not accepted by then are not stored as read.
func untilSignal(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		s := <-signals
		fmt.Fprintf(os.Stderr, "%v: stopping; once more ends it at once\n", s)
		ending.After(lastSend)
		cancel()
		for once := time.After(atOnce); once != nil; {
			select {
			case <-signals:
			case <-once:
				once = nil
			}
		}
		why := "again"
		select {
		case s = <-signals:
		case <-time.After(lastStop):
			why = fmt.Sprintf("%v ago", lastStop)
		}
		fmt.Fprintf(os.Stderr, "%v %s: ended; what was not accepted yet is read again at the next start\n", s, why)
		os.Exit(128 + int(s.(syscall.Signal))) // as shells state a death by a signal
	}()
	return ctx
}

// unsetEmpty makes empty variables of ours unset ones: a default in the configuration stands for both, as in a shell's ${NAME:-default}.
func unsetEmpty() {
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "TRAINBRIDGE_") && value == "" {
			_ = os.Unsetenv(name)
		}
	}
}

// kinds are the variables for logs of one kind. They have defaults in the shipped configuration.
var kinds = []string{
	"TRAINBRIDGE_TQ_LOGS", "TRAINBRIDGE_FLAGSCALE_LOGS", "TRAINBRIDGE_TRAIN_LOGS", "TRAINBRIDGE_ZMQ_LOGS", "TRAINBRIDGE_NCCL_LOGS", "TRAINBRIDGE_EVENT_LOGS",
}

// logsOfAnyKind takes the defaults of kinds away where TRAINBRIDGE_LOGS names all logs: nobody asked for the default directories then.
func logsOfAnyKind() {
	if os.Getenv("TRAINBRIDGE_LOGS") == "" {
		return
	}
	for _, name := range kinds {
		if _, ok := os.LookupEnv(name); !ok {
			_ = os.Setenv(name, "[]") // an empty list; the collector complains of empty variables
		}
	}
}

// main prepares memory and environment before the collector reads its configuration, then runs the command line.
func main() {
	root := command()
	garbage, large := uint64(maxGarbage), uint64(math.MaxUint64)
	// A subcommand may have more garbage than the collector, which runs beside a job.
	if cmd, _, err := root.Find(os.Args[1:]); err == nil && cmd != root {
		garbage, large = maxCommandGarbage, largeCommand
	}
	limitMemory(garbage, large)
	unsetEmpty()
	logsOfAnyKind()
	if err := root.Execute(); err != nil { // cobra has printed the error
		os.Exit(exitCode(err))
	}
}
