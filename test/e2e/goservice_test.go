//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// prefetch is the part of a trace from examples/goservice: its loader's spans, and its server's spans below the two calls.
const prefetch = `prefetch_batch data-loader Internal
  tq.get data-loader Internal
    tq.client.get data-loader Client
      goservice.Data/Fetch data-loader Client
        goservice.Data/Fetch data-server Server
  tq.compute data-loader Internal
  tq.put data-loader Internal
    tq.client.put data-loader Client
      goservice.Data/Store data-loader Client
        goservice.Data/Store data-server Server
`

// goservice is examples/goservice: a data server, and a loader run on demand.
type goservice struct {
	*process
	bin, addr string
	env       []string
}

// startGoservice builds the example, and starts the server.
func startGoservice(tb testing.TB, otlp, runID string) *goservice {
	tb.Helper()
	s := &goservice{
		bin: filepath.Join(tb.TempDir(), "goservice"), addr: freeAddr(tb),
		env: []string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + otlp, "OTEL_RESOURCE_ATTRIBUTES=ml.run.id=" + runID,
			// Debian's Prometheus expects all histograms of a name to be native if any is.
			"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION=base2_exponential_bucket_histogram",
		},
	}
	run(tb, nil, "go", "build", "-o", s.bin, "../../examples/goservice")
	s.process = start(tb, "goservice-serve", s.bin, s.env, "serve", "--listen", s.addr)
	eventually(tb, func() error {
		switch {
		case !s.running():
			return fatal(errors.New("the data server has ended"))
		case !s.logged("listening on " + s.addr):
			return errors.New("the data server does not listen")
		}
		return nil
	})
	return s
}

// fetch runs the loader for these ids, and returns the traces that it reports as sent, in order.
func (s *goservice) fetch(tb testing.TB, ids ...string) []pcommon.TraceID {
	tb.Helper()
	args := []string{"fetch", "--server", s.addr, "--samples", "512"}
	for _, id := range ids {
		args = append(args, "--trace-id", id)
	}
	p := start(tb, "goservice-fetch", s.bin, s.env, args...)
	code, out := p.end(tb)
	require.Zero(tb, code, p.tail(20))
	var traces []pcommon.TraceID
	for _, m := range regexp.MustCompile(`(?m)^trace ([0-9a-f]{32})  .* 512 samples stored as batch-\d+$`).FindAllStringSubmatch(out, -1) {
		id, err := traceID(m[1])
		require.NoError(tb, err)
		traces = append(traces, id)
	}
	require.Len(tb, traces, len(ids), p.tail(20))
	return traces
}

// A Go service that names the trace_id of a batch appears in the waterfall of the batch's log lines, on both sides of its gRPC calls.
func TestGoService(t *testing.T) {
	t.Parallel()
	const runID, text = "goservice", "batch-17"
	j, s := startJaeger(t), startTempo(t)
	logs, rpcs := t.TempDir(), t.TempDir()
	tr := generate(t, logs, "--seed", "6", "--workers", "1", "--batches", "8", "--na", "0.2", "--duration-scale", "0.5")
	// Batch ids are free text.
	require.NoError(t, os.WriteFile(filepath.Join(logs, "worker-9.err"), []byte(waterfall(text, time.Now())), 0o600))
	gen(t, "zmq", "--out", filepath.Join(rpcs, "zmq.log"), "--passes", "1") // has calls of its own: rpc.client.call.duration
	otlp := freeAddr(t)
	c := newCollector(t, trainbridgeBin(t), globOf(logs), j.otlp, fmt.Sprintf(toTempo, s.otlp), fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}, tq_trace: {run_id: %s}}
`, otlp, runID))
	c.env = append(c.env, "TRAINBRIDGE_ZMQ_LOGS="+rpcs+"/*.log")
	prom := startPrometheus(t, c.scrape...)
	c.up(t)
	service := startGoservice(t, otlp, runID)

	batch := tr.functions[slices.IndexFunc(tr.functions, func(f *function) bool { return f.TraceID != "N/A" })].TraceID
	ids := service.fetch(t, batch, text, "N/A", "")
	service.stop(t) // the service sends its spans on exit

	ofBatch := tr.outline(batch)
	t.Run("one trace in Jaeger", func(t *testing.T) {
		assert.Equal(t, strings.ReplaceAll(batch, "-", ""), ids[0].String())
		assert.Equal(t, spans.TraceID(runID, []byte(text)).String(), ids[1].String())
		for i, log := range []string{
			ofBatch,
			"rollout verl Internal\n  tq.get verl Internal\n  tq.compute verl Internal\n  tq.put verl Internal\n", "", "",
		} {
			checkMixedTrace(t, j.trace, ids[i], log)
		}
	})
	if t.Failed() {
		return
	}
	t.Run("one trace in Tempo", func(t *testing.T) {
		checkMixedTrace(t, s.trace, ids[0], ofBatch)
		checkMixedTraceQL(t, s, batch, ids)
	})
	t.Run("Prometheus", func(t *testing.T) {
		prom.awaitValues(t, map[string]float64{
			// Made of spans by train_metrics: each call counts once.
			`histogram_count(tq_function_duration_seconds{tq_function="prefetch_batch",job="data-loader"})`:                          4,
			`sum(histogram_count(tq_stage_duration_seconds{tq_function="prefetch_batch"}))`:                                          4 * 5,
			`histogram_count(tq_client_throughput_bytes_per_second{tq_function="prefetch_batch",tq_stage="client_get"})`:             4,
			`histogram_count(tq_function_duration_seconds{tq_function="rollout",job="verl"})`:                                        1,
			`count(histogram_count(tq_function_duration_seconds{tq_function="prefetch_batch"}))`:                                     1,
			`histogram_count(rpc_client_call_duration_seconds{rpc_method="goservice.Data/Fetch",job="data-loader"})`:                 4, // a metric of otelgrpc
			`histogram_count(rpc_client_call_duration_seconds{rpc_method="goservice.Data/Store",job="data-loader"})`:                 4,
			`histogram_count(rpc_server_call_duration_seconds{rpc_method="goservice.Data/Store",job="data-server"})`:                 4,
			`count(count by (job) (histogram_count(rpc_client_call_duration_seconds{rpc_system_name="zeromq",job!="data-loader"})))`: 1, // a metric of train_metrics
		})
		checkPromtool(t, c.metrics)
	})
	assert.NotContains(t, c.output(t), "Instrument description conflict", "of rpc.client.call.duration, which train_metrics sends too")
	c.stop(t)
	c.assertQuiet(t)
}

// outline is the expected text of a batch's log lines for checkMixedTrace: its functions in order, with their stages.
func (tr *truth) outline(batch string) string {
	var out strings.Builder
	functions := slices.DeleteFunc(slices.Clone(tr.functions), func(f *function) bool { return f.TraceID != batch })
	slices.SortStableFunc(functions, func(a, b *function) int { return int(a.StartUnixNano - b.StartUnixNano) })
	for _, f := range functions {
		fmt.Fprintf(&out, "%s verl Internal\n", f.Func)
		for _, st := range f.Stages {
			fmt.Fprintf(&out, "  tq.%s verl Internal\n", st.Stage)
			if st.Client != nil {
				fmt.Fprintf(&out, "    tq.client.%s verl Client\n", st.Stage)
			}
		}
	}
	return out.String()
}

// checkMixedTraceQL: queries for the spans of either process find the batch's traces.
func checkMixedTraceQL(t *testing.T, s *tempo, batch string, ids []pcommon.TraceID) {
	t.Helper()
	// Before compaction, Tempo matches a query with each part of a trace that arrived together: the spans of one process.
	for query, want := range map[string][]pcommon.TraceID{
		fmt.Sprintf(`{ resource.service.name = "data-loader" && span.tq.trace_id = %q }`, batch): ids[:1],
		`{ resource.service.name = "verl" && span.tq.trace_id = "batch-17" }`:                    ids[1:2],
		`{ resource.service.name = "data-loader" && span.tq.trace_id = "batch-17" }`:             ids[1:2],
		`{ resource.service.name = "data-server" && kind = server && name =~ ".*/Store" }`:       ids,
		`{ name = "prefetch_batch" } && { name =~ ".*/Fetch" && kind = client }`:                 ids,
	} {
		s.awaitFound(t, query, setOf(want))
	}
}

func setOf(ids []pcommon.TraceID) map[pcommon.TraceID]bool {
	set := make(map[pcommon.TraceID]bool)
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// checkMixedTrace expects the log's spans and then the service's spans in a trace, each span within its parent.
func checkMixedTrace(t *testing.T, find func(pcommon.TraceID) (ptrace.Traces, error), id pcommon.TraceID, log string) {
	t.Helper()
	var trace map[pcommon.SpanID]*node
	eventually(t, func() error {
		td, err := find(id)
		if err != nil {
			return err
		}
		a := read(td)
		if len(a.problems)+len(a.missing) > 0 {
			return a.err()
		}
		trace = a.traces[id]
		for _, n := range trace {
			n.SetName(n.Name() + " " + n.of(spans.AttrServiceName) + " " + n.Kind().String())
		}
		if got := outline(trace); got != log+prefetch {
			return fmt.Errorf("trace %s is\n%s\nwant\n%s%s", id, got, log, prefetch)
		}
		return nil
	})
	pids := make(map[string]string)
	for _, n := range trace {
		assert.Equal(t, 1, n.copies, n.Name())
		assert.LessOrEqual(t, n.StartTimestamp(), n.EndTimestamp(), n.Name())
		assert.Equal(t, "goservice", n.of(spans.AttrRunID), n.Name())
		service, parent := n.of(spans.AttrServiceName), trace[n.ParentSpanID()]
		if service == "verl" {
			continue
		}
		pids[service] = n.of(spans.AttrProcessPID)
		if parent != nil { // same host, same clock
			assert.LessOrEqual(t, parent.StartTimestamp(), n.StartTimestamp(), n.Name())
			assert.Less(t, n.StartTimestamp(), parent.EndTimestamp(), n.Name())
			if n.Kind() != ptrace.SpanKindServer { // a server's span may end after the caller has its answer
				assert.LessOrEqual(t, n.EndTimestamp(), parent.EndTimestamp(), n.Name())
			}
		}
	}
	assert.Len(t, pids, 2)
	assert.NotEqual(t, pids["data-loader"], pids["data-server"])
}

// of returns an attribute of the resource as text, empty if absent.
func (n *node) of(key string) string {
	v, ok := n.resource.Attributes().Get(key)
	if !ok {
		return ""
	}
	return v.AsString()
}

// A service whose collector is unreachable or killed still works and exits.
func TestGoServiceWithoutCollector(t *testing.T) {
	t.Parallel()
	otlp, j := freeAddr(t), startJaeger(t)
	c := newCollector(t, trainbridgeBin(t), globOf(t.TempDir()), j.otlp, fmt.Sprintf("receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}", otlp))
	c.up(t)
	service := startGoservice(t, otlp, "goservice")
	first := service.fetch(t, "")[0]
	eventually(t, func() error {
		td, err := j.trace(first)
		if err == nil && td.SpanCount() < 8 {
			err = fmt.Errorf("%d spans", td.SpanCount())
		}
		return err
	})
	c.kill()
	service.fetch(t, "", "")
	service.stop(t)
	assert.True(t, service.logged("goservice: spans or metrics were lost"))
}
