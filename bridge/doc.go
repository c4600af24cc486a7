// Package bridge puts an instrumented Go service into the traces that trainbridge builds from logs: the same trace ids, span names, attributes and units.
//
// A [Bridge] owns OpenTelemetry providers that send to a collector over OTLP/gRPC. [WithTraceID] and [WithStep] say which trace the next span belongs to,
// and the helpers start the spans of a TransferQueue function, a training step or an RPC in one line:
//
//	defer b.TQFunction(&ctx, "generate_sequences").End()
//
// A helper replaces ctx, so that what is called with it comes below the span until that ends. Goroutines need a variable each (ctx := ctx): two helpers that write the
// same one at once are a data race.
package bridge
