package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/grpc"

	"github.com/trainbridge/trainbridge/bridge"
	"github.com/trainbridge/trainbridge/spans"
)

func ExampleNew() {
	ctx := context.Background()
	b, err := bridge.New(ctx,
		bridge.WithEndpoint("http://127.0.0.1:4317"),
		bridge.WithServiceName("data-server"),
		bridge.WithRunID("run-42"), // the run_id of the receivers
	)
	if err != nil {
		panic(err)
	}
	defer func() { _ = b.Shutdown(ctx) }() // sends the queued spans

	_, err = bridge.New(ctx, bridge.WithEndpoint("collector"))
	fmt.Println(b.RunID())
	fmt.Println(err)
	// Output:
	// run-42
	// bridge: WithEndpoint: "collector": not an endpoint such as http://127.0.0.1:4317, https://host:4317 or host:4317
}

func ExampleWithTraceID() {
	c := startTree()
	defer c.stop()
	ctx := context.Background()
	b, err := bridge.New(ctx, bridge.WithEndpoint(c.addr), bridge.WithRunID("run-42"))
	if err != nil {
		panic(err)
	}
	defer func() { _ = b.Shutdown(ctx) }()

	// The trace_id of the batch's [TQ-TRACE] lines. Any tracer of the bridge joins its trace.
	_, span := b.Tracer().Start(bridge.WithTraceID(ctx, "a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d"), "load")
	defer span.End()
	fmt.Println(span.SpanContext().TraceID())
	// Output: a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d
}

func ExampleWithStep() {
	c := startTree()
	defer c.stop()
	ctx := context.Background()
	b, err := bridge.New(ctx, bridge.WithEndpoint(c.addr), bridge.WithRunID("run-42"))
	if err != nil {
		panic(err)
	}
	defer func() { _ = b.Shutdown(ctx) }()

	_, span := b.Tracer().Start(bridge.WithStep(ctx, 7), "load")
	defer span.End()
	fmt.Println(span.SpanContext().TraceID().String() == spans.StepTraceID("run-42", 7).String())
	// Output: true
}

func ExampleBridge_StartFunction() {
	c := startTree()
	defer c.stop()
	b, err := bridge.New(context.Background(), bridge.WithEndpoint(c.addr))
	if err != nil {
		panic(err)
	}

	get := func(ctx context.Context) []byte {
		ctx, stage := b.StartGet(ctx)
		defer stage.End()
		n := int64(-1)
		_, operation := b.StartClientGet(ctx)
		defer operation.DataSize(&n).End()
		data := make([]byte, 4096)
		n = int64(len(data)) // read when the span ends
		return data
	}
	compute := func(ctx context.Context, data []byte) {
		_, stage := b.StartCompute(ctx)
		defer stage.End()
		clear(data)
	}
	generate := func(ctx context.Context) {
		ctx, function := b.StartFunction(ctx, "generate_sequences", attribute.Int(spans.AttrTQBatchSize, 32))
		defer function.End()
		compute(ctx, get(ctx))
	}
	generate(bridge.WithTraceID(context.Background(), "batch-17"))

	_ = b.Shutdown(context.Background())
	c.print(spans.AttrTQTraceID, spans.AttrTQBatchSize, spans.AttrTQDataSize)
	// Output:
	// generate_sequences tq.trace_id=batch-17 tq.batch.size=32
	//   tq.get
	//     tq.client.get tq.data.size=4096
	//   tq.compute
}

func ExampleBridge_StartStep() {
	c := startTree()
	defer c.stop()
	b, err := bridge.New(context.Background(), bridge.WithEndpoint(c.addr), bridge.WithRunID("run-42"))
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	for iteration := range int64(2) {
		_, step := b.StartStep(ctx, iteration)
		step.SetAttributes(attribute.Float64(spans.AttrLoss, 1.5))
		step.End()
	}

	_ = b.Shutdown(context.Background())
	c.print(spans.AttrIteration, spans.AttrLoss, spans.AttrSource)
	// Output:
	// train.step ml.train.iteration=0 ml.train.loss=1.5 trainbridge.source=go
	// train.step ml.train.iteration=1 ml.train.loss=1.5 trainbridge.source=go
}

func ExampleBridge_StartRPC() {
	c := startTree()
	defer c.stop()
	b, err := bridge.New(context.Background(), bridge.WithEndpoint(c.addr))
	if err != nil {
		panic(err)
	}

	send := func(ctx context.Context, _ []byte) error {
		_, phase := b.StartRPCSend(ctx)
		defer phase.End()
		return errors.New("no route to host")
	}
	matmul := func(ctx context.Context) (err error) {
		request, response := int64(16), int64(-1)
		ctx, call := b.StartRPC(ctx, spans.RPCSystemZeroMQ, "Matmul")
		defer call.MessageSizes(&request, &response).EndErr(&err)
		_, phase := b.StartRPCSerialize(ctx)
		phase.End()
		return send(ctx, make([]byte, request))
	}
	fmt.Println(matmul(context.Background()))

	_ = b.Shutdown(context.Background())
	c.print(spans.AttrRPCSystem, spans.AttrZMQRequestSize)
	// Output:
	// no route to host
	// Matmul rpc.system.name=zeromq zeromq.request.size=16: no route to host
	//   rpc.serialize
	//   rpc.send
}

// tree is a collector that prints the received spans.
type tree struct {
	ptraceotlp.UnimplementedGRPCServer
	addr   string
	server *grpc.Server
	mu     sync.Mutex
	got    []ptraceotlp.ExportRequest
}

func startTree() *tree {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	t := &tree{addr: listener.Addr().String(), server: grpc.NewServer()}
	ptraceotlp.RegisterGRPCServer(t.server, t)
	go func() { _ = t.server.Serve(listener) }()
	return t
}

func (t *tree) stop() { t.server.Stop() }

// Export keeps the spans.
func (t *tree) Export(_ context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.got = append(t.got, req)
	return ptraceotlp.NewExportResponse(), nil
}

// print writes each span with the given attributes, below its parent.
func (t *tree) print(attrs ...string) {
	t.below(pcommon.SpanID{}, "", attrs)
}

func (t *tree) below(parent pcommon.SpanID, indent string, attrs []string) {
	for _, req := range t.got {
		for _, rs := range req.Traces().ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if s.ParentSpanID() != parent {
						continue
					}
					fmt.Print(indent, s.Name())
					for _, name := range attrs {
						if v, ok := s.Attributes().Get(name); ok {
							fmt.Print(" ", name, "=", v.AsString())
						}
					}
					if m := s.Status().Message(); m != "" {
						fmt.Print(": ", m)
					}
					fmt.Println()
					t.below(s.SpanID(), indent+"  ", attrs)
				}
			}
		}
	}
}
