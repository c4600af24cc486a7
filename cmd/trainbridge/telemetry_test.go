package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver"
	"github.com/trainbridge/trainbridge/receivers/runeventsreceiver"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver"
)

// instruments provides meters that record their instruments, as rows of a table.
type instruments struct {
	noop.MeterProvider
	rows map[string]bool
}

func (i instruments) Meter(string, ...metric.MeterOption) metric.Meter { return noting{rows: i.rows} }

type noting struct {
	noop.Meter
	rows map[string]bool
}

func (n noting) row(name, kind, unit, description string) {
	if strings.HasPrefix(name, "trainbridge.") { // documentation.md has the instruments of metadata.yaml; the rest are the collector's
		n.rows[fmt.Sprintf("| `%s` | %s | %s | %s |", strings.ReplaceAll(name, ".", "_"), kind, unit, description)] = true
	}
}

func (n noting) Int64Counter(name string, opts ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	cfg := metric.NewInt64CounterConfig(opts...)
	n.row(name, "counter", cfg.Unit(), cfg.Description())
	return n.Meter.Int64Counter(name)
}

func (n noting) Int64ObservableCounter(name string, opts ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	cfg := metric.NewInt64ObservableCounterConfig(opts...)
	n.row(name, "counter", cfg.Unit(), cfg.Description())
	return n.Meter.Int64ObservableCounter(name)
}

func (n noting) Int64ObservableUpDownCounter(name string, opts ...metric.Int64ObservableUpDownCounterOption) (metric.Int64ObservableUpDownCounter, error) {
	cfg := metric.NewInt64ObservableUpDownCounterConfig(opts...)
	n.row(name, "gauge", cfg.Unit(), cfg.Description()) // Prometheus' type
	return n.Meter.Int64ObservableUpDownCounter(name)
}

func (n noting) Float64ObservableGauge(name string, opts ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	cfg := metric.NewFloat64ObservableGaugeConfig(opts...)
	n.row(name, "gauge", cfg.Unit(), cfg.Description())
	return n.Meter.Float64ObservableGauge(name)
}

// docs/reference/reliability.md has all own metrics of the log receivers, and no more; the receivers' READMEs link to the page.
func TestOwnMetrics(t *testing.T) {
	docs := filepath.Join("..", "..", "docs", "reference", "reliability.md")
	page, err := os.ReadFile(docs)
	require.NoError(t, err)
	table := regexp.MustCompile("(?m)^\\| `trainbridge_.*$").FindAllString(string(page), -1)
	for dir, factory := range map[string]receiver.Factory{
		"flagscale": flagscalereceiver.NewFactory(), "nccl": ncclreceiver.NewFactory(), "tqtrace": tqtracereceiver.NewFactory(),
		"trainlog": trainlogreceiver.NewFactory(), "zmqrpc": zmqrpcreceiver.NewFactory(), "runevents": runeventsreceiver.NewFactory(),
	} {
		made := instruments{rows: map[string]bool{}}
		set := receivertest.NewNopSettings(factory.Type())
		set.MeterProvider = made
		cfg := factory.CreateDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(map[string]any{"include": []any{filepath.Join(t.TempDir(), "*")}}).Unmarshal(cfg))
		r, err := factory.CreateTraces(t.Context(), set, cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, r.Shutdown(t.Context()))
		assert.ElementsMatch(t, slices.Collect(maps.Keys(made.rows)), table, dir)
		readme, err := os.ReadFile(filepath.Join("..", "..", "receivers", dir+"receiver", "README.md"))
		require.NoError(t, err)
		assert.Contains(t, string(readme), "](../../docs/reference/reliability.md#its-own-metrics)", dir)
	}
}
