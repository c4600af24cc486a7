package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trainbridge/trainbridge/internal/porttest"
	"github.com/trainbridge/trainbridge/internal/secrets"
)

// refusing takes spans as JSON, and refuses spans with a field `refused`.
type refusing struct {
	ptraceotlp.UnimplementedGRPCServer
	mu    sync.Mutex
	spans []byte // a message on each line
}

func (b *refusing) Export(_ context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	text, err := new(ptrace.JSONMarshaler).MarshalTraces(req.Traces())
	if err == nil && bytes.Contains(text, []byte("field.refused")) {
		err = status.Error(codes.InvalidArgument, "no")
	}
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.spans = append(append(b.spans, text...), '\n')
	}
	return ptraceotlp.NewExportResponse(), err
}

func (b *refusing) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.spans)
}

// secretLogs writes logs with examples of all kinds of secrets wherever a log has text: fields, names of stages, functions, methods, communicators, lines that
// are no records, and records that a backend refuses. Names without blanks reach labels.
func secretLogs(t *testing.T) (dir string, all []secrets.Example) {
	t.Helper()
	var jsonl, broken, verl, tq, zmq, nccl strings.Builder
	zmq.WriteString("ZeroMQ Performance Log - Transport: IPC\nID    Method               Serialize(ms)   Send(ms)     Recv(ms)     Deserialize(ms)   Total(ms)    Note\n")
	for _, k := range secrets.Kinds() {
		for _, e := range k.Examples {
			n := len(all)
			all = append(all, e)
			text, err := json.Marshal(e.Text)
			require.NoError(t, err)
			at := time.Date(2026, 6, 12, 10, 0, n, 0, time.UTC)
			fmt.Fprintf(&jsonl, `{"timestamp": %q, "step": %d, "loss": 2.3, "step_time_s": 0.9, "note": %s, "nested": {"argv": [%s]}}`+"\n", at.Format(time.RFC3339), n, text, text)
			fmt.Fprintf(&jsonl, `{"timestamp": %q, "step": %d, "loss": 2.3, "step_time_s": 0.9, "refused": %s}`+"\n", at.Format(time.RFC3339), n+1000, text)
			fmt.Fprintf(&broken, `{"timestamp": %q, "step": %d, "loss": 2.3}`+"\n", at.Format(time.RFC3339), n+2000)
			fmt.Fprintf(&broken, `{"step": %d, "note": %s, "loss": `+"\n", n, text)
			if !strings.ContainsAny(e.Text, "|\n") {
				fmt.Fprintf(&tq, "%s [TQ-TRACE] trace_id=t%d | func=rollout | stage=FUNCTION_END | total_duration=0.9s | get_ratio=85%% | compute_ratio=10%% | put_ratio=5%% | note=%s\n",
					at.Format("2026-06-12 15:04:05"), n, e.Text)
			}
			if strings.ContainsAny(e.Text, " |\n") {
				continue
			}
			if !strings.ContainsAny(e.Text, ":=") {
				for i := range 8 {
					fmt.Fprintf(&verl, "step:%d - timing_s/gen:1 - timing_s/step:1.1\n", 10*n+i)
				}
				fmt.Fprintf(&verl, "step:%d - timing_s/gen:1 - timing_s/%s:60.5 - timing_s/step:62\n", 10*n+8, e.Text)
			}
			fmt.Fprintf(&tq, "%s [TQ-TRACE] trace_id=f%d | func=%s | stage=FUNCTION_END | total_duration=0.9s | get_ratio=85%% | compute_ratio=10%% | put_ratio=5%%\n",
				at.Format("2026-06-12 15:04:05"), n, e.Text)
			fmt.Fprintf(&zmq, "1     %s   6.0   0.5   11.25   2.0   19.76   %s\n", e.Text, e.Text)
			fmt.Fprintf(&nccl, `{"header":{"id":"0x5eed%04x","comm_name":%s,"rank":0,"n_ranks":1,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"",`+
				`"rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":"node-17","pid":300},"coll_perf":{"coll":"AllReduce","coll_sn":%d,`+
				`"coll_msg_size_bytes":1024,"coll_exec_time_us":9,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":0.1,"coll_busbw_gbs":0.1}}`+"\n", n, text, at.UnixMicro(), n+1)
		}
	}
	dir = t.TempDir()
	for name, text := range map[string]*strings.Builder{"a.jsonl": &jsonl, "broken.jsonl": &broken, "verl.log": &verl, "tq.log": &tq, "zmq.log": &zmq, "nccl.log": &nccl} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "alien.txt"), []byte(strings.Repeat(all[0].Text+"\n", 300)), 0o600))
	return dir, all
}

// clean checks that an output has something of the logs, and nothing of the secrets.
func clean(t *testing.T, what, text string, all []secrets.Example) {
	t.Helper()
	assert.NotEmpty(t, text, what)
	reported := make(map[string]bool)
	for _, e := range all {
		if i := strings.Index(text, e.Secret); i >= 0 && !reported[e.Secret] {
			reported[e.Secret] = true
			t.Errorf("%s: %q in …%s…", what, e.Secret, text[max(0, i-80):min(len(text), i+len(e.Secret)+40)])
		}
	}
}

// below is the content of all files below a directory.
func below(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			out.Write(text)
			return err
		}
		return err
	}))
	return out.String()
}

// inflated is a file with its compressed parts inflated: Perfetto's packets are compressed.
func inflated(file string) string {
	var out strings.Builder
	out.WriteString(file)
	for i := range file {
		if strings.HasPrefix(file[i:], "\x78\x01") { // zlib, of the fastest level
			if r, err := zlib.NewReader(strings.NewReader(file[i:])); err == nil {
				_, _ = io.Copy(&out, r)
			}
		}
	}
	return out.String()
}

// page is the answer of a URL, empty without an answer.
func page(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(text)
}

// serve starts a backend.
func serve(t *testing.T) (b *refusing, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed by the server
	require.NoError(t, err)
	server := grpc.NewServer()
	b = new(refusing)
	ptraceotlp.RegisterGRPCServer(server, b)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return b, l.Addr().String()
}

// ways are the outputs of a collector.
type ways struct{ spans, labels, metrics, log, verdicts, dead, state string }

// collectSecrets runs the shipped collector, with dead letters, until every output has something.
func collectSecrets(t *testing.T, logs string) ways {
	t.Helper()
	for _, name := range kinds {
		t.Setenv(name, "[]")
	}
	b, backend := serve(t)
	out, state := t.TempDir(), t.TempDir()
	verdicts, dead := filepath.Join(out, "verdicts.log"), filepath.Join(out, "refused.log")
	prometheus, own := porttest.Addr(t), porttest.Addr(t)
	host, port, err := net.SplitHostPort(own)
	require.NoError(t, err)
	t.Setenv("TRAINBRIDGE_LOGS", logs+"/*")
	t.Setenv("TRAINBRIDGE_STATE_DIR", state)
	t.Setenv("TRAINBRIDGE_OTLP_ENDPOINT", backend)
	t.Setenv("TRAINBRIDGE_VERDICTS", verdicts)
	set := settings(new(configChecker))
	set.ConfigProviderSettings.ResolverSettings.URIs = append(
		set.ConfigProviderSettings.ResolverSettings.URIs,
		"yaml:receivers::otlp::protocols: {grpc: {endpoint: '127.0.0.1:0'}, http: {endpoint: '127.0.0.1:0'}}", "yaml:receivers::train_log::dead_letter: "+dead,
		"yaml:connectors::train_metrics::metrics_flush_interval: 1s", "yaml:exporters::prometheus::endpoint: "+prometheus, "yaml:extensions::health_check::endpoint: 127.0.0.1:0",
		fmt.Sprintf("yaml:service::telemetry::metrics: {level: normal, readers: [{pull: {exporter: {prometheus: {host: %q, port: %s}}}}]}", host, port),
	)
	var said syncBuffer
	set.LoggingOptions = append(set.LoggingOptions, zap.WrapCore(func(zapcore.Core) zapcore.Core {
		return zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), &said, zap.InfoLevel)
	}))
	col, err := otelcol.NewCollector(set)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- col.Run(t.Context()) }()
	size := func(path string) int64 {
		fi, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return fi.Size()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(size(dead), size(verdicts), said.String())
		}
	})
	require.Eventually(t, func() bool {
		for _, service := range []string{"verl", "zeromq", "train", "nccl"} {
			if !strings.Contains(b.text(), `"stringValue":"`+service+`"`) {
				return false
			}
		}
		return size(dead) > 0 && size(verdicts) > 0 && strings.Contains(said.String(), "All is read") &&
			strings.Contains(page(t, "http://"+prometheus+"/metrics"), "[redacted]")
	}, time.Minute, 50*time.Millisecond)
	labels, metrics := page(t, "http://"+prometheus+"/metrics"), page(t, "http://"+own+"/metrics")
	col.Shutdown()
	require.NoError(t, <-ended)
	return ways{b.text(), labels, metrics, said.String(), below(t, verdicts), below(t, dead), below(t, state)}
}

// The shipped collector lets no secret out: in spans, labels, its own metrics and log, verdicts, dead letters and state.
func TestSecretsStayInCollector(t *testing.T) {
	logs, all := secretLogs(t)
	out := collectSecrets(t, logs)
	for what, text := range map[string]string{"spans": out.spans, "labels": out.labels, "own log": out.log, "verdicts": out.verdicts, "dead letters": out.dead} {
		clean(t, what, text, all)
		assert.Contains(t, text, "[redacted]", what)
	}
	clean(t, "own metrics", out.metrics, all)
	clean(t, "state", out.state, all)
	assert.Contains(t, out.metrics, "trainbridge_redacted")
	assert.Equal(t, len(all), strings.Count(out.dead, "\n"))
}

// syncBuffer is a log that is read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (*syncBuffer) Sync() error { return nil }

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// No command that reads logs, or their traces, shows a secret.
func TestSecretsStayInCommands(t *testing.T) {
	logs, all := secretLogs(t)
	b, backend := serve(t)
	dir := t.TempDir()
	execute := func(ctx context.Context, out io.Writer, args ...string) {
		cmd := command()
		cmd.SetOut(out)
		cmd.SetErr(out)
		cmd.SetArgs(args)
		_ = cmd.ExecuteContext(ctx) // check exits with 1 for its findings
	}
	said := func(args ...string) string {
		var out syncBuffer
		execute(t.Context(), &out, args...)
		return out.String()
	}
	shows := func(what, text string) {
		clean(t, what, text, all)
		assert.Contains(t, text, "[redacted]", what)
	}
	for _, format := range []string{"text", "html", "json", "perfetto"} {
		path := filepath.Join(dir, format)
		said("report", logs, "--format", format, "-o", path)
		shows("report "+format, inflated(below(t, path)))
	}
	said("report", logs, "--format", "csv", "-o", filepath.Join(dir, "csv"))
	shows("report csv", below(t, filepath.Join(dir, "csv")))
	shows("check", said("check", logs))
	shows("check --format=json", said("check", logs, "--format=json"))
	clean(t, "compare", said("compare", logs, logs), all)
	clean(t, "replay", said("replay", logs, "--endpoint", backend), all)
	shows("what replay sends", b.text())
	recorded := filepath.Join(dir, "spans.json")
	require.NoError(t, os.WriteFile(recorded, []byte(b.text()), 0o600))
	clean(t, "show", said("show", "--file", recorded), all)
	clean(t, "show --format=json", said("show", "--file", recorded, "--format=json"), all)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var top syncBuffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		execute(ctx, &top, "top", logs)
	}()
	require.Eventually(t, func() bool { return strings.Count(top.String(), "\n") > 10 }, time.Minute, 50*time.Millisecond)
	stop()
	<-done
	clean(t, "top", top.String(), all)
}
