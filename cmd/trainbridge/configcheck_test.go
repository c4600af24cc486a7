package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// validate runs the subcommand and returns its output.
func validate(t *testing.T, yaml string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := command()
	cmd.SetArgs([]string{"validate", "--config", "yaml:" + yaml})
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	assert.Equal(t, err != nil, out.Len() > 0)
	return out.String()
}

// validated is a configuration with room for one fault in each component.
const validated = `
receivers: {train_log: {include: [x], storage: file_storage%s}}
processors: {train_perf: {%s}}
connectors: {train_metrics: {%s}}
exporters: {debug: {}}
extensions: {file_storage: {directory: "%s", create_directory: true}, file_storage/idle: {directory: DIR}}
service:
  extensions: [file_storage]
  pipelines:
    traces: {receivers: [train_log], processors: [train_perf], exporters: [train_metrics]}
    metrics: {receivers: [train_metrics], exporters: [debug]}
`

// Each error is printed once, with its key and advice.
func TestValidate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	valid := strings.NewReplacer("FILE", file, "DIR", t.TempDir()).Replace
	for _, tt := range []struct {
		name, receiver, processor, connector, dir string
		want                                      string // part of one line; "" for no error
	}{
		{name: "valid"},
		{name: "later made", dir: "DIR/a/b"},
		{"bare poll_interval", ", poll_interval: 200", "", "", "", "'poll_interval': 200 has no unit: write 200ms, 200s or 200m"},
		{"bare pending_timeout", ", pending_timeout: 30", "", "", "", "'pending_timeout': 30 has no unit"},
		{"bare late_min", "", "nccl: {late_min: 5}", "", "", "'nccl::late_min': 5 has no unit"},
		{"histograms", "", "", "histogram: {type: native}", "", "Error: connectors::train_metrics: 'histogram::type' must be exponential, or explicit for a server without native histograms, not \"native\""},
		{"bare dedup_window", "", "", "dedup_window: 600", "", "'dedup_window': 600 has no unit"},
		{"short poll_interval", ", poll_interval: 9ms", "", "", "", "Error: receivers::train_log: 'poll_interval' must be at least 10ms, such as 200ms"},
		{"once", ", start_at: middle", "", "", "", "Error: receivers::train_log: 'start_at' must be beginning or end"},
		{
			"device", "", "train: {device: H9000}", "", "",
			`Error: processors::train_perf: 'train::device': "H9000" is not in the table of peaks: write a name such as "H100 SXM", or set 'train::peak_flops'`,
		},
		{"device with its peak", "", "train: {device: H9000, peak_flops: 1e15}", "", "", ""},
		{
			"no storage", ", storage: redis", "", "", "",
			`Error: 'receivers::train_log::storage': extension "redis" is not configured: add it under 'extensions' and to 'service::extensions'`,
		},
		{
			"idle storage", ", storage: file_storage/idle", "", "", "",
			`Error: 'receivers::train_log::storage': extension "file_storage/idle" does not run: add it to 'service::extensions'`,
		},
		{"no directory", "", "", "", " ", "'extensions::file_storage::directory' is empty: name the directory that keeps the offsets"},
		{"not a directory", "", "", "", "FILE/state", `'extensions::file_storage::directory' is "` + file + `/state", and nothing can be written to`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			receiver := tt.receiver
			storage := "DIR"
			if tt.dir != "" {
				storage = strings.TrimSpace(tt.dir)
			}
			yaml := fmt.Sprintf(validated, receiver, tt.processor, tt.connector, storage)
			if strings.Contains(receiver, "storage:") {
				yaml = strings.Replace(yaml, "storage: file_storage, ", "", 1)
			}
			got := validate(t, valid(yaml))
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Equal(t, 1, strings.Count(got, tt.want), got)
			if strings.HasPrefix(tt.want, "Error: ") {
				assert.Equal(t, tt.want+"\n", got)
			}
			assert.NotContains(t, got, "Usage:")
		})
	}
}

// The agent says how to get a component of the full build, under its older name too. The full build accepts both names.
func TestComponentOfTheFullBuild(t *testing.T) {
	got := validate(t, `
receivers: {otlp: {protocols: {grpc: {}}}}
processors: {filter/1: {}, transform: {}}
exporters: {prometheusremotewrite/a: {endpoint: "http://localhost:1"}}
service: {pipelines: {metrics: {receivers: [otlp], processors: [filter/1, transform], exporters: [prometheusremotewrite/a]}}}
`)
	want := `Error: 'exporters::prometheusremotewrite/a': "prometheusremotewrite" is in the full build only: make that with ` + "`make build-full`" + `
'processors::filter/1': "filter" is in the full build only: make that with ` + "`make build-full`" + `
'processors::transform': "transform" is in the full build only: make that with ` + "`make build-full`" + "\n"
	if full.receivers != nil {
		want = ""
	}
	assert.Equal(t, want, got)
}

// Every config of ours with a duration refuses a number without a unit.
func TestDurationsNeedAUnit(t *testing.T) {
	factories, err := components()
	require.NoError(t, err)
	n := 0
	check := func(name string, cfg any, key string) {
		conf := confmap.NewFromStringMap(map[string]any{key: 200})
		require.ErrorContains(t, conf.Unmarshal(cfg), "'"+key+"': 200 has no unit", name)
		n++
	}
	for id, f := range factories.Receivers {
		switch id.String() {
		case "tq_trace", "flagscale", "train_log", "zmq_rpc", "nccl", "run_events":
			check(id.String(), f.CreateDefaultConfig(), "poll_interval")
			check(id.String(), f.CreateDefaultConfig(), "pending_timeout")
		case "nvml":
			check(id.String(), f.CreateDefaultConfig(), "collection_interval")
		}
		if id.String() == "nccl" {
			check(id.String(), f.CreateDefaultConfig(), "hang_timeout")
		}
	}
	assert.Equal(t, 14, n)
}

func TestUnsetEmpty(t *testing.T) {
	t.Setenv("TRAINBRIDGE_STATE_DIR", "")
	t.Setenv("TRAINBRIDGE_DEVICE", "H100")
	t.Setenv("OTHER", "")
	unsetEmpty()
	_, set := os.LookupEnv("TRAINBRIDGE_STATE_DIR")
	assert.False(t, set)
	assert.Equal(t, "H100", os.Getenv("TRAINBRIDGE_DEVICE"))
	_, set = os.LookupEnv("OTHER")
	assert.True(t, set)
}

func TestTakenPort(t *testing.T) {
	has, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer has.Close()
	addr := has.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	_, taken := net.Listen("tcp", addr)
	require.Error(t, taken)
	c := &configChecker{conf: map[string]any{
		"receivers":  map[string]any{"otlp": map[string]any{"protocols": map[string]any{"grpc": map[string]any{"endpoint": addr}}}},
		"exporters":  map[string]any{"otlp_grpc": map[string]any{"endpoint": addr}},
		"extensions": map[string]any{"health_check": map[string]any{"endpoint": addr}},
		"service":    map[string]any{"telemetry": map[string]any{"metrics": map[string]any{"readers": []any{map[string]any{"port": port}}}}},
	}}
	for text, key := range map[string]string{
		`cannot start pipelines: failed to start "otlp" receiver: %w`:                  "receivers::otlp::protocols::grpc::endpoint",
		`cannot start pipelines: failed to start "prometheus" exporter: %w`:            "exporters::prometheus", // by default
		`failed to start extensions: failed to bind: %w`:                               "extensions::health_check::endpoint",
		`failed to create meter provider: binding address for Prometheus exporter: %w`: "service::telemetry::metrics::readers::0::port",
	} {
		got := c.explain(fmt.Errorf(text, taken))
		want := fmt.Sprintf("port %s is taken by trainbridge.tes (pid %d): stop that, or give '%s' another port", port, os.Getpid(), key)
		if name := portKeys[key]; name != "" {
			want += "; in the shipped configuration it is " + name + ", 0 for a free one"
		}
		require.EqualError(t, got, want)
	}
	other := errors.New("other")
	assert.Equal(t, other, c.explain(other))
}
