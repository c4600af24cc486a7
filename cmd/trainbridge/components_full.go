//go:build full

package main

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/loadbalancingexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourcedetectionprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/filelogreceiver"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/receiver"

	"github.com/trainbridge/trainbridge/exporters/runlakeexporter"
)

// init gives the full build its further components; `make build-full` sets the build tag.
func init() {
	full.receivers = []receiver.Factory{
		filelogreceiver.NewFactory(),
	}
	full.processors = []processor.Factory{
		resourcedetectionprocessor.NewFactory(),
		transformprocessor.NewFactory(),
		filterprocessor.NewFactory(),
		tailsamplingprocessor.NewFactory(),
	}
	full.exporters = []exporter.Factory{
		prometheusremotewriteexporter.NewFactory(),
		loadbalancingexporter.NewFactory(),
		runlakeexporter.NewFactory(),
	}
}
