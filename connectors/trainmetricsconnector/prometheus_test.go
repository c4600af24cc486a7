package trainmetricsconnector

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/trainbridge/trainbridge/spans"
)

// startPrometheus starts contrib's prometheus exporter, with OpenMetrics for exemplars and without scope labels, and returns it
// with its address.
func startPrometheus(t *testing.T) (exporter.Metrics, string) {
	t.Helper()
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	factory := prometheusexporter.NewFactory()
	cfg := factory.CreateDefaultConfig().(*prometheusexporter.Config)
	cfg.ServerConfig.NetAddr.Endpoint = address
	cfg.EnableOpenMetrics = true
	cfg.WithoutScopeInfo = true
	exp, err := factory.CreateMetrics(t.Context(), exportertest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, exp.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, exp.Shutdown(context.Background())) })
	return exp, address
}

// scrape reads the page as Prometheus does.
func scrape(t *testing.T, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(t, err)
	req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode, string(body))
	return string(body)
}

// TestPrometheusNames scrapes the real exporter: the names, units, labels and exemplars that users query.
func TestPrometheusNames(t *testing.T) {
	exp, address := startPrometheus(t)
	c := newBed(t)
	c.next = exp
	c.clock = time.Now() // the exporter's own expiration looks at the real clock

	b := spans.NewBatch("test", "")
	for i, run := range []string{"run-1", "run-2"} { // two runs of one job must not be one series twice
		res := spans.Resource{Service: "verl", RunID: run}
		f := add(b, res, 100*i+1, "rollout", spans.StageFunction, 914_024_000)
		f.Attributes().PutDouble(spans.AttrTQGetUtilization, 0.25)
		f.Attributes().PutDouble(spans.AttrTQOverheadUtilization, 0.35)
		f.Attributes().PutDouble(spans.AttrTQUtilizationDisagreement, 0.0002)
		f.Attributes().PutEmptySlice(spans.AttrVerdict).AppendEmpty().SetStr(spans.VerdictTQOverheadHigh)
		add(b, res, 100*i+2, "rollout", spans.StageGet, 52_000_000)
		add(b, res, 100*i+3, "rollout", spans.StageClientPut, 60_000_000).Attributes().PutDouble(spans.AttrTQThroughput, 200*mib)
		add(b, res, 100*i+4, "rollout", spans.StagePut, 1).Attributes().PutBool(spans.AttrIncomplete, true)
	}
	c.consume(b.Traces())
	c.flush(context.Background())
	page := scrape(t, address)
	const job = `instance="run-1",job="verl"`
	lines := strings.Split(page, "\n")
	for series, rest := range map[string]string{
		`tq_function_duration_seconds_bucket{` + job + `,tq_function="rollout",le="1.0"}`:                           ` 1 # {span_id="0000000000000001",trace_id="01000000000000000000000000000000"} 0.914024`,
		`tq_function_duration_seconds_bucket{` + job + `,tq_function="rollout",le="0.5"}`:                           ` 0`,
		`tq_function_duration_seconds_sum{` + job + `,tq_function="rollout"}`:                                       ` 0.914024`,
		`tq_function_duration_seconds_count{` + job + `,tq_function="rollout"}`:                                     ` 1`,
		`tq_stage_duration_seconds_count{` + job + `,tq_function="rollout",tq_stage="get"}`:                         ` 1`,
		`tq_stage_utilization_ratio{` + job + `,tq_function="rollout",tq_stage="get"}`:                              ` 0.25`,
		`tq_overhead_utilization_ratio{` + job + `,tq_function="rollout"}`:                                          ` 0.35`,
		`tq_client_throughput_bytes_per_second_sum{` + job + `,tq_function="rollout",tq_stage="client_put"}`:        ` 2.097152e+08`,
		`tq_utilization_reported_disagreement_count{` + job + `,tq_function="rollout"}`:                             ` 1`,
		`trainbridge_verdicts_total{` + job + `,tq_function="rollout",trainbridge_verdict_name="tq_overhead_high"}`: ` 1.0 # {span_id="0000000000000001"`,
		`trainbridge_incomplete_spans_total{` + job + `,tq_function="rollout",tq_stage="put"}`:                      ` 1.0`,
		`target_info{instance="run-2",job="verl",ml_run_id="run-2"}`:                                                ` 1`,
	} {
		found := false
		for _, l := range lines {
			// The exporter writes the labels of an exemplar in any order.
			l = strings.Replace(l, `{trace_id="01000000000000000000000000000000",span_id="0000000000000001"}`,
				`{span_id="0000000000000001",trace_id="01000000000000000000000000000000"}`, 1)
			found = found || strings.HasPrefix(l, series+rest)
		}
		assert.True(t, found, "%s%s", series, rest)
	}
	if t.Failed() {
		t.Log(page)
	}

	// Every series is gone once it ended, also where several of one metric end together.
	c.clock = c.clock.Add(time.Hour)
	c.flush(context.Background())
	assert.NotContains(t, scrape(t, address), "rollout")
}
