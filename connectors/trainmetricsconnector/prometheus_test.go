package trainmetricsconnector

import (
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/trainbridge/trainbridge/internal/porttest"
	"github.com/trainbridge/trainbridge/spans"
)

// startPrometheus starts contrib's prometheus exporter, with OpenMetrics for exemplars and without scope labels, and returns the exporter and its address.
func startPrometheus(t *testing.T) (exporter.Metrics, string) {
	t.Helper()
	address := porttest.Addr(t)
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

const openMetrics = "application/openmetrics-text;version=1.0.0"

// scrape reads the page as Prometheus does.
func scrape(t *testing.T, address, accept string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(t, err)
	req.Header.Set("Accept", accept)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode, string(body))
	return string(body)
}

// TestPrometheusNames scrapes the real exporter: the names, units, labels and exemplars of users' queries.
func TestPrometheusNames(t *testing.T) {
	exp, address := startPrometheus(t)
	c := newBed(t)
	c.next = exp
	c.clock = time.Now() // the exporter's own expiration looks at the real clock

	b := spans.NewBatch("test", "")
	for i, run := range []string{"run-1", "run-2"} { // two runs of one job must not share a series
		res := spans.Resource{Service: "verl", RunID: run}
		f := add(b, res, 100*i+1, "rollout", spans.StageFunction, 914_024_000)
		f.Attributes().PutDouble(spans.AttrTQGetUtilization, 0.25)
		f.Attributes().PutDouble(spans.AttrTQOverheadUtilization, 0.35)
		f.Attributes().PutDouble(spans.AttrTQUtilizationDisagreement, 0.0002)
		judged(f, spans.VerdictTQOverhead)
		warned(f, spans.VerdictTQOverhead, "", "")
		add(b, res, 100*i+2, "rollout", spans.StageGet, 52_000_000)
		add(b, res, 100*i+3, "rollout", spans.StageClientPut, 60_000_000).Attributes().PutDouble(spans.AttrTQThroughput, 200*mib)
		add(b, res, 100*i+4, "rollout", spans.StagePut, 1).Attributes().PutBool(spans.AttrIncomplete, true)
	}
	c.consume(b.Traces())
	c.flush(context.Background())
	page := scrape(t, address, openMetrics)
	const job = `instance="run-1",job="verl"`
	lines := strings.Split(page, "\n")
	for series, rest := range map[string]string{
		`tq_function_duration_seconds_sum{` + job + `,tq_function="rollout"}`:                                                                         ` 0.914024`,
		`tq_function_duration_seconds_count{` + job + `,tq_function="rollout"}`:                                                                       ` 1`,
		`tq_stage_duration_seconds_count{` + job + `,tq_function="rollout",tq_stage="get"}`:                                                           ` 1`,
		`tq_stage_utilization_ratio{` + job + `,tq_function="rollout",tq_stage="get"}`:                                                                ` 0.25`,
		`tq_function_time_seconds_total{` + job + `,tq_function="rollout"}`:                                                                           ` 0.914024 # {`,
		`tq_stage_time_seconds_total{` + job + `,tq_function="rollout",tq_stage="get"}`:                                                               ` 0.228506 # {`,
		`tq_overhead_utilization_ratio{` + job + `,tq_function="rollout"}`:                                                                            ` 0.35`,
		`tq_client_throughput_bytes_per_second_sum{` + job + `,tq_function="rollout",tq_stage="client_put"}`:                                          ` 2.097152e+08`,
		`tq_utilization_reported_disagreement_count{` + job + `,tq_function="rollout"}`:                                                               ` 1`,
		`trainbridge_verdicts_total{` + job + `,tq_function="rollout",trainbridge_verdict_name="tq_overhead",trainbridge_verdict_severity="warning"}`: ` 1.0 # {span_id="0000000000000001"`,
		`trainbridge_incomplete_spans_total{` + job + `,tq_function="rollout",tq_stage="put"}`:                                                        ` 1.0`,
		`target_info{instance="run-2",job="verl",ml_run_id="run-2"}`:                                                                                  ` 1`,
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

	// Every ended series is gone, even if several of one metric end together.
	c.clock = c.clock.Add(time.Hour)
	c.flush(context.Background())
	assert.NotContains(t, scrape(t, address, openMetrics), "rollout")
}

// withBuckets has buckets on the page of text.
func withBuckets(c *Config) { c.Histogram.Type = Explicit }

// TestPrometheusRPC: the names of calls and passes.
func TestPrometheusRPC(t *testing.T) {
	exp, address := startPrometheus(t)
	c := newBed(t, withBuckets)
	c.next = exp
	c.clock = time.Now()
	c.consume(rpcBatch())
	c.flush(context.Background())
	const job = `instance="run-1",job="verl"`
	const matmul, pass = job + `,network_transport="unix",rpc_method="Matmul",rpc_system_name="zeromq"`, job + `,rpc_system_name="zeromq"`
	lines := strings.Split(scrape(t, address, openMetrics), "\n")
	for _, want := range []string{
		`# TYPE rpc_client_call_duration_seconds histogram`,
		`rpc_client_call_duration_seconds_bucket{` + matmul + `,le="0.048194088293998155"} 0`,
		`rpc_client_call_duration_seconds_bucket{` + matmul + `,le="0.05255602595335716"} 1 # {`,
		`rpc_client_call_duration_seconds_sum{` + matmul + `} 0.81992`,
		`rpc_client_call_duration_seconds_bucket{` + job + `,rpc_method="Embedding",rpc_system_name="zeromq",le="2.1579186437577742e-05"} 1 # {`,
		`rpc_client_request_size_bytes_bucket{` + matmul + `,le="64.0"} 1 # {`,
		`rpc_client_request_size_bytes_sum{` + matmul + `} 1.6777362e+07`,
		`rpc_client_response_size_bytes_bucket{` + matmul + `,le="1.34217728e+08"} 1`,
		`zeromq_pass_duration_seconds_bucket{` + pass + `,le="0.8408964152537146"} 1 # {`,
		`zeromq_pass_calls_bucket{` + pass + `,le="3.084421650815882"} 1 # {`,
		`zeromq_stage_utilization_ratio{` + pass + `,zeromq_stage="transport"} 0.17`,
		`zeromq_throughput_disagreement_bucket{` + pass + `,le="3.0517578125e-05"} 2`,
		`trainbridge_verdicts_total{` + pass + `,trainbridge_verdict_name="zeromq_serialize_high",trainbridge_verdict_severity="warning"} 2.0 # {`,
		`trainbridge_incomplete_spans_total{` + pass + `} 1.0 # {`,
		`trainbridge_incomplete_spans_total{` + matmul + `} 1.0 # {`,
	} {
		assert.True(t, slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }), want)
	}
	if t.Failed() {
		t.Log(strings.Join(lines, "\n"))
	}
}

// TestPrometheusCollectives: the names of collectives, and counters of absent events are 0.
func TestPrometheusCollectives(t *testing.T) {
	exp, address := startPrometheus(t)
	c := newBed(t, withBuckets)
	c.next = exp
	c.clock = time.Now()
	c.consume(collectiveBatch())
	c.flush(context.Background())
	const job = `instance="run-1",job="verl"`
	// The exporter sorts labels by name.
	const comm = `nccl_comm_id="0x9e",nccl_comm_name="DP",nccl_comm_size="4"`
	const ring, gather = job + `,nccl_algorithm="RING",` + comm + `,nccl_operation="AllReduce"`, job + `,` + comm + `,nccl_operation="AllGather"`
	lines := strings.Split(scrape(t, address, openMetrics), "\n")
	for _, want := range []string{
		`# TYPE nccl_collective_duration_seconds histogram`,
		`# TYPE nccl_collective_io_bytes counter`,
		`nccl_collective_duration_seconds_bucket{` + ring + `,le="0.002762135864009951"} 1`,
		`nccl_collective_duration_seconds_bucket{` + ring + `,le="0.0030121305183748847"} 2 # {`,
		`nccl_collective_duration_seconds_bucket{` + job + `,nccl_operation="Send",le="0.0010649489576809157"} 1 # {`,
		`nccl_collective_late_seconds_bucket{` + ring + `,le="0.0009765625"} 1`,
		`nccl_collective_late_seconds_sum{` + ring + `} 0.0129`,
		`nccl_collective_late_cost_seconds_total{` + ring + `} 0.039 # {`,
		`nccl_collective_io_bytes_total{` + ring + `} 2.69484032e+08 # {`,
		`nccl_collective_bandwidth_bytes_per_second_sum{` + job + `,nccl_bandwidth_kind="busbw",nccl_data_size_class="1MiB",nccl_operation="AllReduce"} 7.5e+10`,
		`nccl_collective_bandwidth_bytes_per_second_bucket{` + job + `,nccl_bandwidth_kind="algbw",nccl_data_size_class="1MiB",nccl_operation="AllReduce",le="5.298996046931418e+10"} 1 # {`,
		`nccl_collective_errors_total{` + ring + `} 5.0 # {`,
		`nccl_collective_errors_total{` + gather + `} 0.0`,
		`nccl_collective_retries_total{` + ring + `} 10.0 # {`,
		`nccl_collective_missing_total{` + gather + `} 2.0 # {`,
		`trainbridge_verdicts_total{` + gather + `,trainbridge_verdict_name="nccl_hang",trainbridge_verdict_severity="bad"} 1.0 # {`,
		`trainbridge_incomplete_spans_total{` + gather + `} 1.0 # {`,
	} {
		assert.True(t, slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }), want)
	}
	if t.Failed() {
		t.Log(strings.Join(lines, "\n"))
	}
}

// TestPrometheusSteps: names, and rate() works on counters of steps from the first record on.
func TestPrometheusSteps(t *testing.T) {
	exp, address := startPrometheus(t)
	c := newBed(t)
	c.next = exp
	c.clock = time.Now().Truncate(time.Second)
	c.store = newStore(c.cfg, c.clock)
	begin := c.clock
	c.consume(stepBatch())
	c.clock = c.clock.Add(time.Second)
	c.flush(context.Background())
	const job, ranked = `instance="run-1",job="verl"`, `dl_rank="7",instance="run-1",job="verl"`
	const megatron = `{` + ranked + `,trainbridge_source="megatron"}`
	lines := strings.Split(scrape(t, address, openMetrics), "\n")
	for _, want := range []string{
		`# TYPE ml_train_steps counter`,
		`ml_train_steps_total` + megatron + ` 11.0`,
		`ml_train_samples_total` + megatron + ` 2048.0`,
		`ml_train_tokens_total` + megatron + ` 8.3886085e+06`,
		`ml_train_step_duration_seconds_count` + megatron + ` 2`,
		`ml_train_step_duration_seconds_sum` + megatron + ` 1.0`,
		`ml_train_stage_duration_seconds_count{` + job + `,ml_train_stage="gen",trainbridge_source="verl"} 2`,
		`ml_train_flop_throughput_per_second` + megatron + ` 3.2e+15`,
		`ml_train_device_flop_throughput_per_second` + megatron + ` 4e+14`,
		`ml_train_flop_utilization_ratio` + megatron + ` 0.43`,
		`ml_train_hardware_flop_utilization_ratio` + megatron + ` 0.5`,
		`ml_train_flop_throughput_disagreement_count` + megatron + ` 1`,
		`trainbridge_verdicts_total{` + ranked + `,trainbridge_source="megatron",trainbridge_verdict_name="train_mfu_low",trainbridge_verdict_severity="warning"} 2.0`,
		`trainbridge_incomplete_spans_total{` + job + `,trainbridge_source="jsonl"} 1.0`,
	} {
		assert.True(t, slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }), want)
	}

	// The next flush counts on. With created-timestamp-zero-ingestion Prometheus reads the start from the protobuf page, as a Timestamp{seconds}, and takes the
	// counter to be 0 at the start: rate() then misses nothing.
	c.consume(oneStep(100, 100, map[string]float64{spans.AttrStepsCovered: 30}))
	c.clock = c.clock.Add(time.Second)
	c.flush(context.Background())
	c.consume(oneStep(101, 101, map[string]float64{spans.AttrStepsCovered: 5}))
	c.flush(context.Background())
	assert.Contains(t, scrape(t, address, openMetrics), `ml_train_steps_total{`+job+`,trainbridge_source="megatron"} 35.0`)
	page := scrape(t, address, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	for _, at := range []time.Time{begin, begin.Add(time.Second)} { // of the series of the first batch, and of the series of the second
		assert.Contains(t, page, string(binary.AppendUvarint([]byte{0x08}, uint64(at.Unix()))))
	}
}
