//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shippedConfig is the config embedded in the binary.
func shippedConfig(tb testing.TB) string {
	tb.Helper()
	path, err := filepath.Abs(filepath.Join(repoRoot, "otelcol-config.yaml"))
	require.NoError(tb, err)
	return path
}

// collector is a running trainbridge. It survives restarts: start it again with the same settings and the same state.
type collector struct {
	*process
	bin     string
	env     []string
	args    []string
	health  string // URL
	metrics string // URL of the prometheus exporter's page
	own     string // URL of the collector's own metrics
	scrape  []string
}

// newCollector prepares a collector with the shipped config, on free ports and with its state in a folder of its own. logs is the comma-separated list of
// globs; each of more is YAML merged over the config.
func newCollector(tb testing.TB, bin, logs, backend string, more ...string) *collector {
	tb.Helper()
	health, metrics, own := freeAddr(tb), freeAddr(tb), freeAddr(tb)
	host, port, _ := strings.Cut(own, ":")
	c := &collector{
		bin: bin,
		env: []string{
			"TRAINBRIDGE_TQ_LOGS=" + logs,
			"TRAINBRIDGE_OTLP_ENDPOINT=" + backend,
			"TRAINBRIDGE_STATE_DIR=" + tb.TempDir(),
		},
		args:    []string{"--config", shippedConfig(tb)},
		health:  "http://" + health,
		metrics: "http://" + metrics + "/metrics",
		own:     "http://" + own + "/metrics",
		scrape:  []string{metrics, own},
	}
	ports := fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}}
processors: {step_join: {wait: 2s}}
exporters: {prometheus: {endpoint: %q}}
extensions: {health_check: {endpoint: %q}}
service: {telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: %q, port: %s}}}}]}}}
`, freeAddr(tb), freeAddr(tb), metrics, health, host, port)
	for i, text := range append([]string{ports}, more...) {
		c.args = append(c.args, "--config", write(tb, fmt.Sprintf("more%d.yaml", i), text))
	}
	return c
}

// readersConfig has receivers, each {name, settings}, whose spans go to train_metrics, to the backend and, if not nil, to a Tempo.
func readersConfig(s *tempo, receivers [][2]string) string {
	var tempos, also string
	var blocks, names strings.Builder
	for _, r := range receivers {
		fmt.Fprintf(&blocks, "  %s: %s\n", r[0], r[1])
		names.WriteString(r[0] + ", ")
	}
	if s != nil {
		tempos, also = fmt.Sprintf("exporters: {otlp_acked/tempo: {endpoint: %q, tls: {insecure: true}}}", s.otlp), ", otlp_acked/tempo"
	}
	return fmt.Sprintf(`
connectors: {train_metrics: {metrics_flush_interval: 1s}}
receivers:
%s%s
service:
  pipelines:
    traces: {receivers: [%s], exporters: [otlp_acked, train_metrics%s]}
    metrics: {receivers: [%strain_metrics]}
`, blocks.String(), tempos, strings.TrimSuffix(names.String(), ", "), also, names.String())
}

// launch starts the process without waiting.
func (c *collector) launch(tb testing.TB) {
	tb.Helper()
	c.process = start(tb, "trainbridge", c.bin, c.env, c.args...)
}

// up starts the process and waits until its pipelines run.
func (c *collector) up(tb testing.TB) {
	tb.Helper()
	c.launch(tb)
	c.ready(tb, c.health)
}

// complaint finds a log entry of level warn or above in the collector's console encoding.
var complaint = regexp.MustCompile(`(?m)^\S+\t(?:warn|error|dpanic|panic|fatal)\t.*$`)

// complaints are the warnings and errors in the collector's log.
func (c *collector) complaints(tb testing.TB) []string {
	tb.Helper()
	data, err := os.ReadFile(c.log)
	require.NoError(tb, err)
	return complaint.FindAllString(string(data), -1)
}

// assertQuiet fails when the collector's log holds a warning or an error.
func (c *collector) assertQuiet(tb testing.TB) {
	tb.Helper()
	assert.Empty(tb, c.complaints(tb), "the collector complains")
}

// metric is one line of a Prometheus text page.
type metric struct {
	name   string
	labels map[string]string
	value  float64
}

var (
	metricLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)`)
	labelPair  = regexp.MustCompile(`([a-zA-Z0-9_]+)="((?:[^"\\]|\\.)*)"`)
)

// ownMetrics reads the collector's own metrics.
func (c *collector) ownMetrics() ([]metric, error) { return metricsOf(c.own) }

// accounts are the line and record counts of the collector's receivers of logs.
func (c *collector) accounts() (map[string]map[string]int64, error) {
	list, err := c.ownMetrics()
	if err != nil {
		return nil, err
	}
	all := make(map[string]map[string]int64)
	for _, m := range list {
		name, ok := strings.CutPrefix(strings.TrimSuffix(m.name, "_total"), "trainbridge_tail_")
		if !ok {
			continue
		}
		sum := all[m.labels["receiver"]]
		if sum == nil {
			sum = make(map[string]int64)
			all[m.labels["receiver"]] = sum
		}
		sum[name] += int64(m.value)
	}
	return all, nil
}

// waits waits until the given number of receivers have lines not yet accepted by the backend.
func (c *collector) waits(tb testing.TB, receivers int) {
	tb.Helper()
	eventually(tb, func() error {
		accounts, err := c.accounts()
		n := 0
		for _, a := range accounts {
			n += int(min(a["pending"], 1))
		}
		if err == nil && n < receivers {
			err = fmt.Errorf("%d receivers have lines that wait, want %d", n, receivers)
		}
		return err
	})
}

// metricsOf reads a page of Prometheus's text.
func metricsOf(url string) ([]metric, error) {
	page, err := get(url, "")
	if err != nil {
		return nil, err
	}
	var out []metric
	for lines := bufio.NewScanner(bytes.NewReader(page)); lines.Scan(); {
		m := metricLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, fatal(fmt.Errorf("%s: %w", lines.Text(), err))
		}
		labels := make(map[string]string)
		for _, l := range labelPair.FindAllStringSubmatch(m[2], -1) {
			labels[l[1]] = l[2]
		}
		out = append(out, metric{m[1], labels, v})
	}
	return out, nil
}
