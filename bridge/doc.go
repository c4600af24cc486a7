// Package bridge puts an instrumented Go service into the traces that trainbridge builds from logs: with the same trace ids, span names, attributes and units.
//
// A [Bridge] owns OpenTelemetry providers that send to a collector over OTLP/gRPC. [WithTraceID] and [WithStep] name the trace of the next span, and the
// helpers start the spans of a TransferQueue function, a training step or an RPC as OpenTelemetry's own tracers do:
//
//	ctx, span := b.StartFunction(ctx, "generate_sequences")
//	defer span.End()
//
// Spans started with the returned context are children of the span until its end.
package bridge
