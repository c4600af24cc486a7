package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/trainbridge/trainbridge/bridge"
	"github.com/trainbridge/trainbridge/internal/porttest"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) {
	for _, v := range os.Environ() { // the machine's environment is no part of a test
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") || slices.Contains(spans.JobVariables(), name) {
			_ = os.Unsetenv(name)
		}
	}
	goleak.VerifyTestMain(m)
}

// collector is an OTLP/gRPC server that keeps the spans received.
type collector struct {
	ptraceotlp.UnimplementedGRPCServer
	mu  sync.Mutex
	all []span
}

type span struct {
	ptrace.Span
	service string
}

// Export keeps the spans.
func (c *collector) Export(_ context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range req.Traces().ResourceSpans().All() {
		service, _ := rs.Resource().Attributes().Get(spans.AttrServiceName)
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				c.all = append(c.all, span{s, service.Str()})
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

// tree draws a trace: children below their parents, in order of time.
func (c *collector) tree(id pcommon.TraceID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.all, func(a, b span) int { return int(a.StartTimestamp()) - int(b.StartTimestamp()) })
	var out strings.Builder
	var below func(parent pcommon.SpanID, indent string)
	below = func(parent pcommon.SpanID, indent string) {
		for _, s := range c.all {
			if s.TraceID() == id && s.ParentSpanID() == parent {
				out.WriteString(indent + s.Name() + " " + s.Kind().String() + " " + s.service)
				if s.Status().Code() == ptrace.StatusCodeError {
					out.WriteString(" " + s.Status().Message())
				}
				out.WriteString("\n")
				below(s.SpanID(), indent+"  ")
			}
		}
	}
	below(pcommon.SpanID{}, "")
	return out.String()
}

// startCollector starts the collector and names it in the environment.
func startCollector(t *testing.T) *collector {
	t.Helper()
	c, server := &collector{}, grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(server, c)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	return c
}

const whole = `prefetch_batch Internal data-loader
  tq.get Internal data-loader
    tq.client.get Client data-loader
      goservice.Data/Fetch Client data-loader
        goservice.Data/Fetch Server data-server
  tq.compute Internal data-loader
  tq.put Internal data-loader
    tq.client.put Client data-loader
      goservice.Data/Store Client data-loader
        goservice.Data/Store Server data-server
`

func TestBothInOneProcess(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "ml.run.id=run-1")
	const id = "a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d"
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--trace-id", id, "--trace-id", "batch-17", "--trace-id", "N/A", "--trace-id", "", "--samples", "10"}, &out))

	lines := regexp.MustCompile(`(?m)^trace ([0-9a-f]{32})  trace_id="(.*)"  10 samples stored as batch-(\d)$`).FindAllStringSubmatch(out.String(), -1)
	require.Len(t, lines, 4, out.String())
	seen := map[string]bool{}
	for i, text := range []string{id, "batch-17", "N/A", ""} {
		assert.Equal(t, text, lines[i][2])
		assert.Equal(t, string(rune('1'+i)), lines[i][3])
		assert.NotContains(t, seen, lines[i][1])
		seen[lines[i][1]] = true
		traceID, err := uuid.Parse(lines[i][1]) // takes 32 digits too
		require.NoError(t, err)
		assert.Equal(t, whole, c.tree(pcommon.TraceID(traceID)), text)
	}
	assert.Equal(t, strings.ReplaceAll(id, "-", ""), lines[0][1])
	assert.Equal(t, spans.TraceID("run-1", []byte("batch-17")).String(), lines[1][1])
	for _, s := range c.all {
		size, ok := s.Attributes().Get(spans.AttrTQDataSize)
		switch s.Name() {
		case spans.SpanTQClientGet:
			assert.Equal(t, int64(len(dataset())), size.Int())
		case spans.SpanTQClientPut:
			assert.Equal(t, int64(10*64*4), size.Int())
		default:
			assert.False(t, ok, s.Name())
		}
	}
}

// The server and the loader as two parts, until the signal.
func TestServeAndFetch(t *testing.T) {
	startCollector(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	served := make(chan error, 1)
	go func() { served <- run(ctx, []string{"serve", "--listen", "127.0.0.1:0"}, w) }()
	line := make([]byte, 100)
	n, err := r.Read(line)
	require.NoError(t, err)
	addr, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "listening on ")
	require.True(t, ok, "%q", line[:n])
	for _, want := range []string{"batch-1\n", "batch-2\n"} {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), []string{"fetch", "--server", addr}, &out))
		assert.Regexp(t, want+"$", out.String())
	}
	cancel()
	require.NoError(t, <-served)
}

// The span has the caller's error.
func TestServerIsAway(t *testing.T) {
	c := startCollector(t)
	const id = "a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d"
	err := run(t.Context(), []string{"fetch", "--server", porttest.Addr(t), "--trace-id", id}, new(bytes.Buffer))
	require.ErrorContains(t, err, id)
	require.Equal(t, codes.Unavailable, status.Code(err))
	tree := c.tree(pcommon.TraceID(uuid.MustParse(id)))
	assert.Equal(t, 4, strings.Count(tree, "connection refused"), tree)
	assert.NotContains(t, tree, "compute")
}

func TestBadArguments(t *testing.T) {
	startCollector(t)
	for want, args := range map[string][]string{
		`"strore": use serve, fetch or flags alone`: {"strore"},
		`"more": use serve`:                         {"fetch", "more"},
		`--samples 0: use 1 to 4096`:                {"fetch", "--samples", "0"},
		`--samples 4097: use 1 to 4096`:             {"--samples", "4097"},
		`invalid value "x" for flag -samples`:       {"--samples", "x"},
		`-trace-id`:                                 {"serve", "--trace-id", "a"},
		`listen tcp: address 127.0.0.1`:             {"serve", "--listen", "127.0.0.1"},
	} {
		require.ErrorContains(t, run(t.Context(), args, new(bytes.Buffer)), want)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector")
	for _, args := range [][]string{{"serve"}, {"fetch"}, nil} {
		require.ErrorIs(t, run(t.Context(), args, new(bytes.Buffer)), bridge.ErrEndpoint)
	}
}

// rig is a data server and a connection to it.
func rig(t *testing.T) *grpc.ClientConn {
	t.Helper()
	t.Setenv("OTEL_SDK_DISABLED", "true")
	b, err := bridge.New(t.Context())
	require.NoError(t, err)
	server := newServer(b)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxBatch+16)))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func store(t *testing.T, conn *grpc.ClientConn, batch []byte) (string, error) {
	t.Helper()
	key := new(wrapperspb.StringValue)
	err := conn.Invoke(t.Context(), "/"+serviceName+"/Store", wrapperspb.Bytes(batch), key)
	return key.GetValue(), err
}

func load(t *testing.T, conn *grpc.ClientConn, key string) ([]byte, error) {
	t.Helper()
	batch := new(wrapperspb.BytesValue)
	err := conn.Invoke(t.Context(), "/"+serviceName+"/Fetch", wrapperspb.String(key), batch)
	return batch.GetValue(), err
}

func TestServer(t *testing.T) {
	conn := rig(t)
	key, err := store(t, conn, []byte("samples"))
	require.NoError(t, err)
	got, err := load(t, conn, key)
	require.NoError(t, err)
	assert.Equal(t, "samples", string(got))

	_, err = load(t, conn, "batch-2")
	assert.Equal(t, codes.NotFound, status.Code(err))
	_, err = store(t, conn, nil)
	assert.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = store(t, conn, make([]byte, maxBatch))
	require.NoError(t, err)
	_, err = store(t, conn, make([]byte, maxBatch+1))
	assert.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = store(t, conn, make([]byte, maxBatch+100))
	assert.Equal(t, codes.ResourceExhausted, status.Code(err))
	for _, method := range []string{"Fetch", "Store"} {
		garbage := []byte("\x0a\xff\xff\xff\xff\x0f")
		err = conn.Invoke(t.Context(), "/"+serviceName+"/"+method, &garbage, new(wrapperspb.StringValue), grpc.ForceCodec(bytesCodec{}))
		assert.Equal(t, codes.Internal, status.Code(err))
	}
	got, err = load(t, conn, key) // the server still works
	require.NoError(t, err)
	assert.Equal(t, "samples", string(got))
}

// bytesCodec sends bytes that are no message.
type bytesCodec struct{}

func (bytesCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (bytesCodec) Unmarshal(data []byte, v any) error {
	return proto.Unmarshal(data, v.(proto.Message))
}
func (bytesCodec) Name() string { return "proto" }

// The oldest batches make room; the data set stays.
func TestStoreIsBounded(t *testing.T) {
	s := &dataServer{batches: map[string][]byte{datasetKey: []byte("all")}}
	put := func(size int) string {
		key, err := s.Store(t.Context(), wrapperspb.Bytes(make([]byte, size)))
		require.NoError(t, err)
		return key.GetValue()
	}
	small := put(1)
	var full []string
	for range 16 { // 16 · 4 MiB are the 64 MiB
		full = append(full, put(4<<20))
	}
	_, err := s.Fetch(t.Context(), wrapperspb.String(small))
	assert.Equal(t, codes.NotFound, status.Code(err))
	small = put(1)
	for i, key := range append(full, small, datasetKey) {
		_, err := s.Fetch(t.Context(), wrapperspb.String(key))
		assert.Equal(t, i == 0, err != nil, key)
	}
	assert.Equal(t, 15*(4<<20)+1, s.total)
	assert.Len(t, s.batches, 17)
}

func TestPick(t *testing.T) {
	pack := func(raw []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := w.Write(raw)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return out.Bytes()
	}
	var raw []byte // sample i is all i
	for i := range byte(5) {
		raw = append(raw, bytes.Repeat([]byte{i}, sampleSize)...)
	}
	got, err := pick(pack(raw), 5)
	require.NoError(t, err)
	var seen []byte
	for s := range slices.Chunk(got, sampleSize) {
		assert.Equal(t, bytes.Repeat(s[:1], sampleSize), s)
		seen = append(seen, s[0])
	}
	slices.Sort(seen)
	assert.Equal(t, []byte{0, 1, 2, 3, 4}, seen)

	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"too few":  {pack(raw[:3*sampleSize]), "3 samples, want 4"},
		"cut":      {pack(raw)[:20], "unexpected EOF"},
		"not gzip": {raw, "invalid header"},
		"nothing":  {nil, "EOF"},
	} {
		_, err := pick(tt.data, 4)
		require.ErrorContains(t, err, tt.want, name)
	}
	// Data larger than the data set are not unpacked to their end.
	got, err = pick(pack(make([]byte, 2*datasetSamples*sampleSize)), datasetSamples)
	require.NoError(t, err)
	assert.Len(t, got, datasetSamples*sampleSize)
	_, err = pick(pack(make([]byte, 2*datasetSamples*sampleSize)), datasetSamples+1)
	assert.ErrorContains(t, err, "4096 samples, want 4097")
}
