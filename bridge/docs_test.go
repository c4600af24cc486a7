package bridge_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/grpc"

	"github.com/trainbridge/trainbridge/bridge"
	"github.com/trainbridge/trainbridge/spans"
)

// The code of docs/guides/go-services.md, unchanged.

func main() {
	ctx := context.Background()
	b, err := bridge.New(ctx, bridge.WithServiceName("data-server"), bridge.WithRunID("run-42"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = b.Shutdown(ctx) }() // sends the queued spans
	s := &server{bridge: b}
	if err := s.generate(ctx, "a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d"); err != nil {
		log.Print(err)
	}
}

func (s *server) generate(ctx context.Context, batchID string) (err error) {
	ctx = bridge.WithTraceID(ctx, batchID) // the trace_id of the batch's [TQ-TRACE] lines
	ctx, span := s.bridge.StartFunction(ctx, "generate_sequences", attribute.Int(spans.AttrTQBatchSize, 32))
	defer span.EndErr(&err)
	data, err := s.get(ctx)
	if err != nil {
		return err
	}
	return s.put(ctx, data)
}

func (s *server) get(ctx context.Context) (data []byte, err error) {
	ctx, span := s.bridge.StartGet(ctx)
	defer span.EndErr(&err)
	return s.fetch(ctx)
}

func instrumented(b *bridge.Bridge, handler http.Handler) (*grpc.Server, http.Handler) {
	server := grpc.NewServer(grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(b.TracerProvider()), otelgrpc.WithMeterProvider(b.MeterProvider()), otelgrpc.WithPropagators(b.Propagator()))))
	handler = otelhttp.NewHandler(handler, "name",
		otelhttp.WithTracerProvider(b.TracerProvider()), otelhttp.WithMeterProvider(b.MeterProvider()), otelhttp.WithPropagators(b.Propagator()))
	return server, handler
}

// End of the code.

type server struct{ bridge *bridge.Bridge }

func (s *server) fetch(ctx context.Context) ([]byte, error) { return []byte("data"), ctx.Err() }

func (s *server) put(context.Context, []byte) error { return errors.New("no room") }

func page(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + dir + "/go-services.md")
	require.NoError(t, err)
	return string(text)
}

func TestPageHasThisCode(t *testing.T) {
	source, err := os.ReadFile("docs_test.go")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page(t, "guides"), -1)
	require.Len(t, blocks, 2)
	for _, block := range blocks {
		assert.Contains(t, string(source), block[1])
	}
}

func TestCodeOfThePage(t *testing.T) {
	c := startTree()
	defer c.stop()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+c.addr)
	main()
	require.Len(t, c.got, 1)
	spans := c.got[0].Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	require.Equal(t, 2, spans.Len()) // in the order of their ends
	assert.Equal(t, "tq.get", spans.At(0).Name())
	assert.Equal(t, spans.At(1).SpanID(), spans.At(0).ParentSpanID())
	assert.Equal(t, "generate_sequences", spans.At(1).Name())
	assert.Equal(t, "a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d", spans.At(1).TraceID().String())
	assert.Equal(t, "no room", spans.At(1).Status().Message())

	server, handler := instrumented(nil, http.NotFoundHandler()) // the server of a switched-off bridge
	server.Stop()
	assert.NotNil(t, handler)
}

// The page's table of helpers lists the attributes of their spans.
func TestHelpersOfThePage(t *testing.T) {
	c := startTree()
	defer c.stop()
	b, err := bridge.New(t.Context(), bridge.WithEndpoint(c.addr))
	require.NoError(t, err)
	ctx, n := bridge.WithTraceID(t.Context(), "a1"), int64(1)
	ctx, fn := b.StartFunction(ctx, "name")
	ctx, s := b.StartGet(ctx)
	s.End()
	ctx, s = b.StartCompute(ctx)
	s.End()
	ctx, s = b.StartPut(ctx)
	s.End()
	ctx, s = b.StartClientGet(ctx)
	s.DataSize(&n).End()
	ctx, s = b.StartClientPut(ctx)
	s.DataSize(&n).End()
	ctx, s = b.StartStep(ctx, 1)
	s.End()
	ctx, call := b.StartRPC(ctx, "zeromq", "method")
	call.MessageSizes(&n, &n)
	ctx, s = b.StartRPCSerialize(ctx)
	s.End()
	ctx, s = b.StartRPCSend(ctx)
	s.End()
	ctx, s = b.StartRPCReceive(ctx)
	s.End()
	_, s = b.StartRPCDeserialize(ctx)
	s.End()
	call.End()
	fn.End()
	require.NoError(t, b.Shutdown(t.Context()))
	want := map[string][]string{}
	for _, req := range c.got {
		for _, s := range req.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			var names []string
			for name := range s.Attributes().All() {
				if name != spans.AttrTimeSource && name != spans.AttrKind && name != spans.AttrJoinBy { // allowed on any span
					names = append(names, name)
				}
			}
			want[s.Name()] = names
		}
	}
	got := helpersOfThePage(t)
	require.Len(t, got, len(want))
	for name, attrs := range want {
		assert.ElementsMatch(t, attrs, got[name], name)
	}
}

// helpersOfThePage reads the attributes of every span from the page's table.
func helpersOfThePage(t *testing.T) map[string][]string {
	t.Helper()
	_, table, found := strings.Cut(page(t, "reference"), "| | Span | Attributes |\n| --- | --- | --- |\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	quoted := regexp.MustCompile("`([^`=]*)[^`]*`")
	got := map[string][]string{}
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		require.Len(t, cells, 5, row)
		for _, name := range quoted.FindAllStringSubmatch(cells[2], -1) {
			got[name[1]] = []string{}
			for _, attr := range quoted.FindAllStringSubmatch(cells[3], -1) {
				got[name[1]] = append(got[name[1]], attr[1])
			}
		}
	}
	return got
}
