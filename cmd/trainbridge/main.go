// Command trainbridge is an OpenTelemetry Collector that turns the performance logs of ML training and inference jobs
// into traces and metrics, with subcommands that need no collector: gen (make a log) and show (draw a trace).
package main

import (
	"os"
	"runtime/debug"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/otelcol"

	"github.com/trainbridge/trainbridge"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/show"
)

func settings() otelcol.CollectorSettings {
	return otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{
			Command:     "trainbridge",
			Description: "OpenTelemetry Collector that turns ML training and inference logs into traces",
			Version:     version,
		},
		Factories: components,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{
				// The default; any --config replaces it.
				URIs: []string{"yaml:" + trainbridge.DefaultConfig},
				ProviderFactories: []confmap.ProviderFactory{
					envprovider.NewFactory(),
					fileprovider.NewFactory(),
					yamlprovider.NewFactory(),
				},
			},
		},
	}
}

func main() {
	// A tailer's live heap is small and its garbage plenty: collecting half as often costs some 20 MiB and saves several
	// percent of CPU (make bench). GOGC in the environment decides otherwise.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	root := otelcol.NewCommand(settings())
	root.AddCommand(gen.NewCommand(), show.NewCommand())
	if err := root.Execute(); err != nil { // cobra has printed it
		os.Exit(1)
	}
}
