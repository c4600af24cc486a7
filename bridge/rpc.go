package bridge

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/trainbridge/trainbridge/spans"
)

// StartRPC starts the CLIENT span of a call, named by its method, like zmq_rpc's span of a row. system is rpc.system.name; train_metrics counts the calls of
// "zeromq" (spans.RPCSystemZeroMQ). For gRPC and HTTP use otelgrpc and otelhttp with the bridge's providers. See [Span.MessageSizes].
//
//	ctx, s := b.StartRPC(ctx, "zeromq", "Matmul", attribute.String(spans.AttrNetworkTransport, "unix"))
//	defer s.EndErr(&err)
func (b *Bridge) StartRPC(ctx context.Context, system, method string, attrs ...attribute.KeyValue) (context.Context, *Span) {
	method = spans.Name(method)
	ctx, s := b.begin(ctx, kindRPC, method, nil, clientSpan...)
	s.set(attrs, is[kindRPC], timeLogged, attribute.String(spans.AttrRPCSystem, spans.Name(system)), attribute.String(spans.AttrRPCMethod, method))
	return ctx, s
}

// StartRPCSerialize starts the phase in which a call makes its request, directly below the call.
func (b *Bridge) StartRPCSerialize(ctx context.Context) (context.Context, *Span) {
	return b.phase(ctx, spans.SpanRPCSerialize)
}

// StartRPCSend starts the phase in which a call sends its request.
func (b *Bridge) StartRPCSend(ctx context.Context) (context.Context, *Span) {
	return b.phase(ctx, spans.SpanRPCSend)
}

// StartRPCReceive starts the phase in which a call waits for its response, including the server's queue and work.
func (b *Bridge) StartRPCReceive(ctx context.Context) (context.Context, *Span) {
	return b.phase(ctx, spans.SpanRPCReceive)
}

// StartRPCDeserialize starts the phase in which a call reads its response.
func (b *Bridge) StartRPCDeserialize(ctx context.Context) (context.Context, *Span) {
	return b.phase(ctx, spans.SpanRPCDeserialize)
}

// phase starts a part of an RPC, directly below the span of the call.
func (b *Bridge) phase(ctx context.Context, name string) (context.Context, *Span) {
	ctx, s := b.begin(ctx, kindPhase, name, nil)
	s.set(nil, is[kindPhase], timeLogged)
	return ctx, s
}
