package main

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/basicauthextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/bearertokenauthextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/healthcheckextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/redactionprocessor"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/forwardconnector"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/zpagesextension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector"
	"github.com/trainbridge/trainbridge/connectors/verdictlogsconnector"
	"github.com/trainbridge/trainbridge/exporters/kafkaexporter"
	"github.com/trainbridge/trainbridge/exporters/otlpackedexporter"
	"github.com/trainbridge/trainbridge/extensions/statestorage"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor"
	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver"
	"github.com/trainbridge/trainbridge/receivers/kafkareceiver"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver"
	"github.com/trainbridge/trainbridge/receivers/nvmlreceiver"
	"github.com/trainbridge/trainbridge/receivers/runeventsreceiver"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver"
)

// version equals the version in the manifests; a test compares them.
const version = "0.1.0"

// onlyFull lists the components, by kind, of the full build alone (components_full.go): they make the binary almost three times as large, and agents beside the
// logs need none. The agent has the names to say how to get them.
var onlyFull = map[string][]string{
	"receivers":  {"file_log"},
	"processors": {"resource_detection", "transform", "filter", "tail_sampling"},
	"exporters":  {"prometheus_remote_write", "load_balancing", "run_lake"},
}

// full are the factories of onlyFull; nil in the agent.
var full struct {
	receivers  []receiver.Factory
	processors []processor.Factory
	exporters  []exporter.Factory
}

// components lists the distribution's components. builder-config.yaml, and builder-full.yaml for the full build, have the same lists for ocb; a test compares
// them.
func components() (otelcol.Factories, error) {
	f := otelcol.Factories{Telemetry: otelconftelemetry.NewFactory()}
	var err error
	f.Receivers, err = otelcol.MakeFactoryMap(append([]receiver.Factory{
		tqtracereceiver.NewFactory(),
		flagscalereceiver.NewFactory(),
		trainlogreceiver.NewFactory(),
		zmqrpcreceiver.NewFactory(),
		runeventsreceiver.NewFactory(),
		ncclreceiver.NewFactory(),
		nvmlreceiver.NewFactory(),
		otlpreceiver.NewFactory(),
		kafkareceiver.NewFactory(),
	}, full.receivers...)...)
	if err != nil {
		return otelcol.Factories{}, err
	}
	f.Processors, err = otelcol.MakeFactoryMap(append([]processor.Factory{
		trainperfprocessor.NewFactory(),
		stepjoinprocessor.NewFactory(),
		memorylimiterprocessor.NewFactory(),
		redactionprocessor.NewFactory(),
	}, full.processors...)...)
	if err != nil {
		return otelcol.Factories{}, err
	}
	f.Exporters, err = otelcol.MakeFactoryMap(append([]exporter.Factory{
		otlpackedexporter.NewFactory(),
		otlpexporter.NewFactory(),
		otlphttpexporter.NewFactory(),
		debugexporter.NewFactory(),
		fileexporter.NewFactory(),
		prometheusexporter.NewFactory(),
		kafkaexporter.NewFactory(),
	}, full.exporters...)...)
	if err != nil {
		return otelcol.Factories{}, err
	}
	f.Connectors, err = otelcol.MakeFactoryMap[connector.Factory](
		trainmetricsconnector.NewFactory(),
		verdictlogsconnector.NewFactory(),
		spanmetricsconnector.NewFactory(),
		forwardconnector.NewFactory(),
	)
	if err != nil {
		return otelcol.Factories{}, err
	}
	f.Extensions, err = otelcol.MakeFactoryMap[extension.Factory](
		statestorage.NewFactory(),
		filestorage.NewFactory(),
		healthcheckextension.NewFactory(),
		basicauthextension.NewFactory(),
		bearertokenauthextension.NewFactory(),
		zpagesextension.NewFactory(),
	)
	if err != nil {
		return otelcol.Factories{}, err
	}
	return f, nil
}
