package bridge

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/trainbridge/trainbridge/spans"
)

// RPC starts the CLIENT span of a call, named by its method, as zmq_rpc makes it of a row. system is rpc.system.name; train_metrics counts the calls of "zeromq"
// (spans.RPCSystemZeroMQ). For gRPC and HTTP take otelgrpc and otelhttp with the bridge's providers. See [Span.MessageSizes].
//
//	defer b.RPC(&ctx, "zeromq", "Matmul", attribute.String(spans.AttrNetworkTransport, "unix")).EndErr(&err)
func (b *Bridge) RPC(ctx *context.Context, system, method string, attrs ...attribute.KeyValue) *Span {
	method = spans.Name(method)
	s := b.begin(ctx, kindRPC, method, nil, clientSpan...)
	s.set(attrs, timeLogged, attribute.String(spans.AttrRPCSystem, spans.Name(system)), attribute.String(spans.AttrRPCMethod, method))
	return s
}

// RPCSerialize starts the phase in which a call makes its request, directly below the call around it.
func (b *Bridge) RPCSerialize(ctx *context.Context) *Span {
	return b.phase(ctx, spans.SpanRPCSerialize)
}

// RPCSend starts the phase in which a call sends its request.
func (b *Bridge) RPCSend(ctx *context.Context) *Span { return b.phase(ctx, spans.SpanRPCSend) }

// RPCReceive starts the phase in which a call waits for its response: the server's queue and work are in it.
func (b *Bridge) RPCReceive(ctx *context.Context) *Span { return b.phase(ctx, spans.SpanRPCReceive) }

// RPCDeserialize starts the phase in which a call reads its response.
func (b *Bridge) RPCDeserialize(ctx *context.Context) *Span {
	return b.phase(ctx, spans.SpanRPCDeserialize)
}

func (b *Bridge) phase(ctx *context.Context, name string) *Span {
	s := b.begin(ctx, kindPhase, name, nil)
	s.set(nil, timeLogged)
	return s
}
