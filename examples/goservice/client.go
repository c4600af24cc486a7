package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/trainbridge/trainbridge/bridge"
	"github.com/trainbridge/trainbridge/spans"
)

// loader prepares batches for a job.
type loader struct {
	bridge *bridge.Bridge
	conn   *grpc.ClientConn
}

// newLoader connects on the first call. The stats handler makes a CLIENT span of each call and sends its id along.
func newLoader(b *bridge.Bridge, server string) (*loader, error) {
	conn, err := grpc.NewClient(
		server,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // to this host; TLS across a network
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(
			otelgrpc.WithTracerProvider(b.TracerProvider()), otelgrpc.WithMeterProvider(b.MeterProvider()), otelgrpc.WithPropagators(b.Propagator()),
		)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxBatch+16)),
	)
	if err != nil {
		return nil, err
	}
	return &loader{b, conn}, nil
}

// prepared is a batch in the server, and the trace of its preparation.
type prepared struct {
	key   string
	trace trace.TraceID
}

// prefetchBatch takes samples from the data set, at random, for the batch with the id traceID in the job's logs.
func (l *loader) prefetchBatch(ctx context.Context, traceID string, samples int) (batch prepared, err error) {
	ctx, cancel := context.WithTimeout(bridge.WithTraceID(ctx, traceID), 10*time.Second)
	defer cancel()
	ctx, function := l.bridge.StartFunction(ctx, "prefetch_batch", attribute.Int(spans.AttrTQBatchSize, samples))
	defer function.EndErr(&err)
	batch.trace = function.SpanContext().TraceID()

	data, err := l.get(ctx)
	if err != nil {
		return batch, err
	}
	data, err = l.compute(ctx, data, samples)
	if err != nil {
		return batch, err
	}
	batch.key, err = l.put(ctx, data)
	return batch, err
}

func (l *loader) get(ctx context.Context) (data []byte, err error) {
	ctx, stage := l.bridge.StartGet(ctx)
	defer stage.EndErr(&err)
	size := int64(-1)
	ctx, operation := l.bridge.StartClientGet(ctx)
	defer operation.DataSize(&size).EndErr(&err)
	batch := new(wrapperspb.BytesValue)
	if err := l.conn.Invoke(ctx, "/"+serviceName+"/Fetch", wrapperspb.String(datasetKey), batch); err != nil {
		return nil, err
	}
	size = int64(len(batch.GetValue()))
	return batch.GetValue(), nil
}

func (l *loader) compute(ctx context.Context, data []byte, samples int) (_ []byte, err error) {
	_, stage := l.bridge.StartCompute(ctx)
	defer stage.EndErr(&err)
	return pick(data, samples)
}

func (l *loader) put(ctx context.Context, data []byte) (key string, err error) {
	ctx, stage := l.bridge.StartPut(ctx)
	defer stage.EndErr(&err)
	size := int64(len(data))
	ctx, operation := l.bridge.StartClientPut(ctx)
	defer operation.DataSize(&size).EndErr(&err)
	stored := new(wrapperspb.StringValue)
	err = l.conn.Invoke(ctx, "/"+serviceName+"/Store", wrapperspb.Bytes(data), stored)
	return stored.GetValue(), err
}

// pick unpacks the data set and takes random samples, each at most once.
func pick(data []byte, samples int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("data set: %w", err)
	}
	all, err := io.ReadAll(io.LimitReader(r, datasetSamples*sampleSize))
	if err != nil {
		return nil, fmt.Errorf("data set: %w", err)
	}
	have := len(all) / sampleSize
	if samples > have {
		return nil, fmt.Errorf("data set: %d samples, want %d", have, samples)
	}
	out := make([]byte, 0, samples*sampleSize)
	for _, i := range rand.Perm(have)[:samples] {
		out = append(out, all[i*sampleSize:(i+1)*sampleSize]...)
	}
	return out, nil
}
