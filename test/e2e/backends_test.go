//go:build e2e

package e2e

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/porttest"
)

// jaeger is a real Jaeger v2 with its memory storage.
type jaeger struct {
	*process
	otlp string // address of the OTLP/gRPC port
	ui   string // base URL of the query API
}

func startJaeger(tb testing.TB) *jaeger {
	tb.Helper()
	return startJaegerWith(tb, "")
}

// startJaegerWith starts Jaeger with the web page of a folder; "": without a page.
func startJaegerWith(tb testing.TB, page string) *jaeger {
	tb.Helper()
	j := &jaeger{otlp: freeAddr(tb)}
	query, health := freeAddr(tb), freeAddr(tb)
	j.ui = "http://" + query
	config := write(tb, "jaeger.yaml", fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {jaeger_storage_exporter: {trace_storage: memory}}
extensions:
  healthcheckv2: {use_v2: true, http: {endpoint: %q}}
  jaeger_storage: {backends: {memory: {memory: {max_traces: 500000}}}}
  jaeger_query: {storage: {traces: memory}, http: {endpoint: %q}, grpc: {endpoint: %q}, ui: {assets_path: %q}}
service:
  extensions: [healthcheckv2, jaeger_storage, jaeger_query]
  pipelines: {traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}}
  telemetry: {metrics: {level: none}, logs: {level: warn}}
`, j.otlp, health, query, freeAddr(tb), page))
	// Jaeger traces itself, to 127.0.0.1:4317, where another test's collector may listen.
	j.process = start(tb, "jaeger", jaegerBin(tb), []string{"OTEL_TRACES_SAMPLER=always_off"}, "--config", config)
	j.ready(tb, "http://"+health+"/status")
	return j
}

var (
	longAgo = time.Unix(0, 0).UTC()
	farOff  = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

// find returns every trace with a span of the service ("": of any). Raw: without Jaeger's clock skew correction.
func (j *jaeger) find(service string) (ptrace.Traces, error) {
	q := url.Values{
		"query.service_name":   {service},
		"query.start_time_min": {longAgo.Format(time.RFC3339Nano)},
		"query.start_time_max": {farOff.Format(time.RFC3339Nano)},
		"query.num_traces":     {"100000"},
		"query.raw_traces":     {"true"},
	}
	return j.traces("/api/v3/traces?" + q.Encode())
}

// verl is find for the default service.
func (j *jaeger) verl() (ptrace.Traces, error) { return j.find("verl") }

// trace returns one trace.
func (j *jaeger) trace(id pcommon.TraceID) (ptrace.Traces, error) {
	return j.traces("/api/v3/traces/" + id.String() + "?raw_traces=true")
}

// traces returns an empty set for an unknown trace.
func (j *jaeger) traces(path string) (ptrace.Traces, error) {
	body, err := get(j.ui+path, "")
	if none := (*statusError)(nil); errors.As(err, &none) && none.code == http.StatusNotFound {
		return ptrace.NewTraces(), nil
	}
	if err != nil {
		return ptrace.Traces{}, err
	}
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(body, &answer); err != nil {
		return ptrace.Traces{}, err
	}
	return (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(answer.Result)
}

// tempo is a real Grafana Tempo, all parts in one process.
type tempo struct {
	*process
	otlp string
	api  string
}

func startTempo(tb testing.TB) *tempo {
	tb.Helper()
	return startTempoWith(tb, "", "")
}

// startTempoWith starts Tempo with extra settings: of the WAL, and any.
func startTempoWith(tb testing.TB, wal, more string) *tempo {
	tb.Helper()
	httpPort := porttest.On(tb, porttest.Host)
	s := &tempo{otlp: freeAddr(tb), api: fmt.Sprintf("http://%s:%d", porttest.Host, httpPort)}
	dir := tb.TempDir()
	config := write(tb, "tempo.yaml", fmt.Sprintf(`
# Its parts look for each other at 127.0.0.1, whatever is said here.
server: {http_listen_address: %[1]s, http_listen_port: %[2]d, grpc_listen_address: 127.0.0.1, grpc_listen_port: %[3]d, log_level: warn}
distributor: {receivers: {otlp: {protocols: {grpc: {endpoint: %[4]q}}}}}
ingester:
  trace_idle_period: 12s # longer than step_join waits: Tempo knows who is whose child where the root came with the rest
  flush_check_period: 1s
  lifecycler: {address: 127.0.0.1, min_ready_duration: 1s, ring: {kvstore: {store: inmemory}, replication_factor: 1}}
memberlist: {bind_addr: [%[1]s], bind_port: %[5]d}
storage: {trace: {backend: local, local: {path: %[6]q}, wal: {path: %[7]q%[8]s}}}
usage_report: {reporting_enabled: false}
%[9]s
`, porttest.Host, httpPort, porttest.On(tb, "127.0.0.1"), s.otlp, porttest.On(tb, porttest.Host), dir+"/blocks", dir+"/wal", wal, more))
	s.process = start(tb, "tempo", tempoBin(tb), nil, "-config.file="+config)
	s.ready(tb, s.api+"/ready")
	return s
}

// search runs a TraceQL query over the last half hour and returns the ids of the matching traces.
func (s *tempo) search(query string) (map[pcommon.TraceID]bool, error) {
	now := time.Now()
	return s.searchIn(now.Add(-30*time.Minute), now.Add(time.Minute), query)
}

// searchIn is search over another time.
func (s *tempo) searchIn(start, end time.Time, query string) (map[pcommon.TraceID]bool, error) {
	q := url.Values{
		"q": {query}, "limit": {"10000"}, "spss": {"1"},
		"start": {strconv.FormatInt(start.Unix(), 10)},
		"end":   {strconv.FormatInt(end.Unix(), 10)},
	}
	body, err := get(s.api+"/api/search?"+q.Encode(), "")
	if err != nil {
		return nil, err
	}
	var answer struct{ Traces []struct{ TraceID string } }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	found := make(map[pcommon.TraceID]bool)
	for _, tr := range answer.Traces {
		id, err := traceID(tr.TraceID)
		if err != nil {
			return nil, err
		}
		found[id] = true
	}
	return found, nil
}

// awaitFound waits until a TraceQL query finds exactly these traces.
func (s *tempo) awaitFound(tb testing.TB, query string, want map[pcommon.TraceID]bool) {
	tb.Helper()
	eventually(tb, func() error {
		got, err := s.search(query)
		if err == nil && !maps.Equal(got, want) {
			err = fmt.Errorf("%s finds %d traces, want %d: %v, want %v", query, len(got), len(want), got, want)
		}
		return err
	})
}

// all returns the traces held by another backend.
func (s *tempo) all(traces map[pcommon.TraceID]map[pcommon.SpanID]*node) (ptrace.Traces, error) {
	all := ptrace.NewTraces()
	for id := range traces {
		td, err := s.trace(id)
		if err != nil {
			return all, fmt.Errorf("trace %s: %w", id, err)
		}
		td.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
	}
	return all, nil
}

// trace returns one trace. Tempo's protobuf answer has the wire form of OTLP's TracesData.
func (s *tempo) trace(id pcommon.TraceID) (ptrace.Traces, error) {
	body, err := get(s.api+"/api/traces/"+id.String(), "application/protobuf")
	if err != nil {
		return ptrace.Traces{}, err
	}
	return (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(body)
}

// prometheus is a real Prometheus that scrapes the given addresses every second.
type prometheus struct {
	*process
	api string
}

func startPrometheus(tb testing.TB, targets ...string) *prometheus {
	tb.Helper()
	return startPrometheusWith(tb, "", nil, targets...)
}

// startPrometheusWith starts Prometheus with more settings and flags.
func startPrometheusWith(tb testing.TB, more string, flags []string, targets ...string) *prometheus {
	tb.Helper()
	addr := freeAddr(tb)
	p := &prometheus{api: "http://" + addr}
	list, err := json.Marshal(targets)
	require.NoError(tb, err)
	config := write(tb, "prometheus.yaml", fmt.Sprintf(`
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: trainbridge
    honor_labels: true
    static_configs: [{targets: %s}]
%s
`, list, more))
	p.process = start(tb, "prometheus", prometheusBin(tb), nil, append(flags, "--config.file="+config, "--storage.tsdb.path="+tb.TempDir(),
		"--web.listen-address="+addr, "--enable-feature=exemplar-storage,native-histograms", "--log.level=warn")...)
	p.ready(tb, p.api+"/-/ready")
	return p
}

// sample is one series of an instant vector.
type sample struct {
	Metric map[string]string
	Value  float64
}

// query evaluates PromQL now.
func (p *prometheus) query(promQL string) ([]sample, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := p.ask("/api/v1/query", url.Values{"query": {promQL}}, &data); err != nil {
		return nil, err
	}
	out := make([]sample, 0, len(data.Result))
	for _, r := range data.Result {
		text, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fatal(fmt.Errorf("value of %v: %w", r.Metric, err))
		}
		out = append(out, sample{r.Metric, v})
	}
	return out, nil
}

// point is a value at a time.
type point struct {
	at    time.Time
	value float64
}

// raw are the samples of a selector's series in a range ending at end.
func (p *prometheus) raw(selector string, end time.Time, length string) (map[string][]point, error) {
	return p.points("/api/v1/query", url.Values{"query": {selector + "[" + length + "]"}, "time": {strconv.FormatInt(end.Unix(), 10)}})
}

// graph evaluates PromQL at each step from a time to a time.
func (p *prometheus) graph(promQL string, start, end time.Time, step string) (map[string][]point, error) {
	return p.points("/api/v1/query_range", url.Values{
		"query": {promQL}, "start": {strconv.FormatInt(start.Unix(), 10)}, "end": {strconv.FormatInt(end.Unix(), 10)}, "step": {step},
	})
}

// points are the points of an answer by the labels of their series, as JSON.
func (p *prometheus) points(path string, q url.Values) (map[string][]point, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
	if err := p.ask(path, q, &data); err != nil {
		return nil, err
	}
	out := map[string][]point{}
	for _, r := range data.Result {
		labels, err := json.Marshal(r.Metric)
		if err != nil {
			return nil, err
		}
		for _, v := range r.Values {
			at, _ := v[0].(float64)
			text, _ := v[1].(string)
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fatal(fmt.Errorf("value of %s: %w", labels, err))
			}
			out[string(labels)] = append(out[string(labels)], point{time.UnixMilli(int64(math.Round(at * 1000))), x})
		}
	}
	return out, nil
}

// value is the value of a query for one series.
func (p *prometheus) value(promQL string) (float64, error) {
	got, err := p.query(promQL)
	if err != nil || len(got) != 1 {
		return 0, cmp.Or(err, fmt.Errorf("%s: %d answers", promQL, len(got)))
	}
	return got[0].Value, nil
}

// awaitValues waits until each query returns one series with its value.
func (p *prometheus) awaitValues(tb testing.TB, want map[string]float64) {
	tb.Helper()
	eventually(tb, func() (wrong error) {
		for _, query := range slices.Sorted(maps.Keys(want)) { // a random order would pass for a change
			got, err := p.query(query)
			if err != nil {
				return err
			}
			if len(got) != 1 || !same(got[0].Value, want[query]) {
				wrong = errors.Join(wrong, fmt.Errorf("%s is %v, want %v", query, got, want[query]))
			}
		}
		return wrong
	})
}

// ofJob puts the label of a job where the queries have %s.
func ofJob(name string, want map[string]float64) map[string]float64 {
	out := make(map[string]float64)
	for query, v := range want {
		out[fmt.Sprintf(query, fmt.Sprintf("job=%q", name))] = v
	}
	return out
}

// exemplar is an exemplar of a histogram, with its trace.
type exemplar struct {
	Labels map[string]string
	Value  string
}

// exemplars returns the exemplars of the last hour of a selector's series.
func (p *prometheus) exemplars(selector string) ([]exemplar, error) {
	now := time.Now()
	var data []struct{ Exemplars []exemplar }
	err := p.ask("/api/v1/query_exemplars", url.Values{
		"query": {selector},
		"start": {now.Add(-time.Hour).Format(time.RFC3339)},
		"end":   {now.Add(time.Hour).Format(time.RFC3339)},
	}, &data)
	var out []exemplar
	for _, series := range data {
		out = append(out, series.Exemplars...)
	}
	return out, err
}

func (p *prometheus) ask(path string, q url.Values, data any) error {
	body, err := get(p.api+path+"?"+q.Encode(), "")
	if bad := (*statusError)(nil); errors.As(err, &bad) && bad.code == http.StatusBadRequest {
		return fatal(err)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body, &struct{ Data any }{data})
}

// traceID reads the hexadecimal id of an API's answer; Tempo leaves leading zeros out.
func traceID(text string) (pcommon.TraceID, error) {
	var id pcommon.TraceID
	raw, err := hex.DecodeString(strings.Repeat("0", max(0, 32-len(text))) + text)
	if err != nil || len(raw) != len(id) {
		return id, fatal(fmt.Errorf("%q is no trace id", text))
	}
	copy(id[:], raw)
	return id, nil
}
