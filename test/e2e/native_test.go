//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Data sent by jobs themselves, over OTLP to the built-in config: NCCL Inspector's metrics (NVIDIA/nccl plugins/profiler/inspector/inspector_otel.cc @88980683)
// and Megatron-LM's spans and metrics (NVIDIA/Megatron-LM megatron/core/telemetry @68f64227). The payloads in testdata/otlp are ours.
func TestNative(t *testing.T) {
	t.Parallel()
	takeShippedPorts(t)
	requireFree(t, collectorPorts...)
	j := startJaeger(t)
	log := generateTrain(t, "megatron", "train_log", "--steps", "20") // its spans make gauges of the same names
	none := filepath.Join(t.TempDir(), "none")
	env := []string{"TRAINBRIDGE_STATE_DIR=" + t.TempDir(), "TRAINBRIDGE_OTLP_ENDPOINT=" + j.otlp, "TRAINBRIDGE_TRAIN_LOGS=" + log.dir + "/*"}
	for _, name := range []string{"TQ", "FLAGSCALE", "ZMQ", "NCCL"} {
		env = append(env, "TRAINBRIDGE_"+name+"_LOGS="+none)
	}
	c := &collector{process: start(t, "trainbridge", trainbridgeBin(t), env)}
	c.ready(t, "http://127.0.0.1:13133")
	prom := startPrometheus(t, "127.0.0.1:8889", "127.0.0.1:8888")
	conn, err := grpc.NewClient("127.0.0.1:4317", grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()

	t.Run("refused", func(t *testing.T) { checkRefused(t, conn) })
	for _, tt := range []struct {
		name, run string
		post      func(tb testing.TB, signal string, payload []byte) error
	}{
		{"megatron/http+json", "00000000a001", postJSON},
		{"megatron/http+protobuf", "00000000a002", postProto},
		{"megatron/grpc", "00000000a003", func(tb testing.TB, signal string, payload []byte) error {
			tb.Helper()
			return export(tb, conn, signal, payload)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent := payload(t, "megatron_traces.json", tt.run)
			require.NoError(t, tt.post(t, "traces", sent))
			require.NoError(t, tt.post(t, "metrics", payload(t, "megatron_metrics.json", tt.run)))
			checkSent(t, j, tracesRequest(t, sent).Traces())
			prom.await(t, `{job="megatron-lm",instance=~"`+tt.run+`-.*"}`, payload(t, "megatron_metrics.prom", tt.run))
		})
	}
	eventually(t, func() error { // one name, one type, for all senders
		got, err := prom.query(`ml_train_loss{job="train"}`)
		if err == nil && len(got) != 1 {
			err = fmt.Errorf("%v", got)
		}
		return err
	})
	checkPromtool(t, "http://127.0.0.1:8889/metrics")
	// The Inspector speaks JSON over HTTP only. promtool would reject its names.
	t.Run("nccl_inspector", func(t *testing.T) {
		require.NoError(t, postJSON(t, "metrics", payload(t, "nccl_inspector.json", "")))
		require.NoError(t, postJSON(t, "metrics", payload(t, "nccl_inspector_verbose.json", "")))
		prom.await(t, `{job="nccl-inspector",instance="127.0.0.1:8889"}`, payload(t, "nccl_inspector.prom", ""))
		prom.await(t, `{job="nccl-inspector",instance="4711-3"}`, payload(t, "nccl_inspector_verbose.prom", ""))
	})
	c.stop(t)
	c.assertQuiet(t)
	assert.NotContains(t, c.output(t), "Instrument description conflict", "one text per metric, whoever sends it")
}

// checkSent: Jaeger has the traces unchanged, each span once.
func checkSent(t *testing.T, j *jaeger, sent ptrace.Traces) {
	t.Helper()
	for id, trace := range read(sent).traces {
		var got map[pcommon.SpanID]*node
		eventually(t, func() error {
			td, err := j.trace(id)
			if err != nil {
				return err
			}
			got = read(td).traces[id]
			if text := outline(got); text != outlines[id[15]] {
				return fmt.Errorf("trace %v is\n%s", id, text)
			}
			return nil
		})
		for id, n := range trace {
			require.NoError(t, ptracetest.CompareSpan(n.Span, got[id].Span))
			assert.Equal(t, n.resource.Attributes().AsRaw(), got[id].resource.Attributes().AsRaw())
			assert.Equal(t, 1, got[id].copies, n.Name())
		}
	}
}

// outlines are the traces of megatron_traces.json, by the last byte of their ids. In the second trace the job is still running: the spans above the step are
// not sent yet.
var outlines = map[byte]string{
	1: `megatron.pretrain
  megatron.train
    megatron.train_step
      megatron.forward_backward
        megatron.microbatch.forward
        megatron.p2p.send_forward
        megatron.microbatch.backward
      megatron.grad_sync.finish
      megatron.optimizer_step
    megatron.save_checkpoint
      megatron.save_checkpoint.io_write
`,
	2: `megatron.train_step
  megatron.pp.recv_forward.linked
`,
}

// payload reads a file of testdata/otlp, and gives its run another id: trace ids begin with the run's id.
func payload(tb testing.TB, name, run string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "otlp", name))
	require.NoError(tb, err)
	if run != "" {
		data = bytes.ReplaceAll(data, []byte("5f0e1d2c3b4a"), []byte(run))
	}
	return data
}

func postJSON(tb testing.TB, signal string, payload []byte) error {
	tb.Helper()
	return post(tb, signal, "application/json", "", payload)
}

// postProto posts like the Python SDK with OTEL_EXPORTER_OTLP_PROTOCOL http/protobuf and OTEL_EXPORTER_OTLP_COMPRESSION gzip.
func postProto(tb testing.TB, signal string, payload []byte) error {
	tb.Helper()
	var body []byte
	var err error
	if signal == "traces" {
		body, err = tracesRequest(tb, payload).MarshalProto()
	} else {
		body, err = metricsRequest(tb, payload).MarshalProto()
	}
	require.NoError(tb, err)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(body)
	require.NoError(tb, errors.Join(err, w.Close()))
	return post(tb, signal, "application/x-protobuf", "gzip", packed.Bytes())
}

func export(tb testing.TB, conn *grpc.ClientConn, signal string, payload []byte) error {
	tb.Helper()
	if signal == "traces" {
		_, err := ptraceotlp.NewGRPCClient(conn).Export(tb.Context(), tracesRequest(tb, payload))
		return err
	}
	_, err := pmetricotlp.NewGRPCClient(conn).Export(tb.Context(), metricsRequest(tb, payload))
	return err
}

func tracesRequest(tb testing.TB, payload []byte) ptraceotlp.ExportRequest {
	tb.Helper()
	req := ptraceotlp.NewExportRequest()
	require.NoError(tb, req.UnmarshalJSON(payload))
	return req
}

func metricsRequest(tb testing.TB, payload []byte) pmetricotlp.ExportRequest {
	tb.Helper()
	req := pmetricotlp.NewExportRequest()
	require.NoError(tb, req.UnmarshalJSON(payload))
	return req
}

// post sends to the default port of OTLP/HTTP. An answer other than 200 is a *statusError.
func post(tb testing.TB, signal, contentType, encoding string, body []byte) error {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, "http://127.0.0.1:4318/v1/"+signal, bytes.NewReader(body))
	require.NoError(tb, err)
	req.Header.Set("Content-Type", contentType)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = &statusError{resp.StatusCode, string(answer)}
	}
	return err
}

// raw is an encoded message.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
func (raw) Name() string                       { return "proto" }

// Data other than OTLP is refused, each time as the sender's fault.
func checkRefused(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	good := payload(t, "nccl_inspector.json", "")
	const json, proto = "application/json", "application/x-protobuf"
	for name, tt := range map[string]struct {
		signal, contentType, encoding, body string
		want                                int
	}{
		"cut":                    {"metrics", json, "", string(good[:len(good)/2]), 400},
		"empty":                  {"metrics", json, "", "", 400},
		"bare NaN":               {"metrics", json, "", strings.Replace(string(good), "46.25", "nan", 1), 400},
		"decimal comma":          {"metrics", json, "", strings.Replace(string(good), "46.25", "46,25", 1), 400},
		"number for a text":      {"traces", json, "", `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":7}]}]}]}`, 400},
		"trace id in base64":     {"traces", json, "", `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"Xw4dLDtKAAAAAAAAAAAAAQ=="}]}]}]}`, 400},
		"above 20 MiB":           {"traces", json, "", "{" + strings.Repeat(" ", 20<<20) + "}", 400},
		"JSON, said to be proto": {"metrics", proto, "", string(good), 400},
		"not gzip":               {"metrics", json, "gzip", string(good), 400},
		"unknown encoding":       {"metrics", json, "bzip2", string(good), 400},
		"plain text":             {"metrics", "text/plain", "", string(good), 415},
		"no such signal":         {"spans", json, "", "{}", 404},
	} {
		status := (*statusError)(nil)
		if assert.ErrorAs(t, post(t, tt.signal, tt.contentType, tt.encoding, []byte(tt.body)), &status, name) {
			assert.Equal(t, tt.want, status.code, "%s: %v", name, status)
		}
	}
	for _, method := range []string{"trace.v1.TraceService", "metrics.v1.MetricsService"} {
		var answer []byte
		err := conn.Invoke(t.Context(), "/opentelemetry.proto.collector."+method+"/Export", &good, &answer, grpc.ForceCodec(raw{}))
		require.ErrorContains(t, err, "error unmarshalling request", method)
	}
}

// await waits until a selector's series are exactly the series of a Prometheus text.
func (p *prometheus) await(tb testing.TB, selector string, text []byte) {
	tb.Helper()
	want := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		i := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
		require.NoError(tb, err)
		want[line[:i]] = v
	}
	eventually(tb, func() error {
		series, err := p.query(selector)
		if err != nil {
			return err
		}
		got := make(map[string]float64)
		for _, s := range series {
			var labels []string
			for name, value := range s.Metric {
				if name != "__name__" {
					labels = append(labels, name+"="+strconv.Quote(value))
				}
			}
			slices.Sort(labels)
			got[s.Metric["__name__"]+"{"+strings.Join(labels, ",")+"}"] = s.Value
		}
		if maps.Equal(got, want) {
			return nil
		}
		differ := func(a, b map[string]float64) string {
			var out []string
			for name, x := range a {
				if v, ok := b[name]; !ok || v != x {
					out = append(out, fmt.Sprintf("%s %v", name, x))
				}
			}
			slices.Sort(out)
			return strings.Join(out, "\n")
		}
		return fmt.Errorf("%s: not expected:\n%s\nmissing:\n%s", selector, differ(got, want), differ(want, got))
	})
}

// outline is a trace as text: children below their parents, in order of time. A span without its parent is a root.
func outline(trace map[pcommon.SpanID]*node) string {
	var b strings.Builder
	var write func(list []*node, indent string)
	write = func(list []*node, indent string) {
		slices.SortFunc(list, func(a, b *node) int { return cmp.Compare(a.StartTimestamp(), b.StartTimestamp()) })
		for _, n := range list {
			b.WriteString(indent + n.Name() + "\n")
			write(n.children, indent+"  ")
		}
	}
	var roots []*node
	for _, n := range trace {
		if trace[n.ParentSpanID()] == nil {
			roots = append(roots, n)
		}
	}
	write(roots, "")
	return b.String()
}
