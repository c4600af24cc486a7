package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/trainbridge/trainbridge/bridge"
)

const (
	maxBatch = 4 << 20  // bytes of a batch
	maxTotal = 64 << 20 // bytes of all stored batches; the oldest go first

	datasetKey     = "dataset"
	datasetSamples = 4096
	sampleTokens   = 64
	sampleSize     = 4 * sampleTokens // bytes, before compression
)

// dataServer keeps batches in memory.
type dataServer struct {
	mu      sync.Mutex
	batches map[string][]byte
	keys    []string // of stored batches, oldest first
	total   int      // bytes of the stored batches
	stored  int      // batches ever
}

// newServer makes a gRPC server with the service. Its only part for tracing is the stats handler, which reads the caller's span from each request, and makes a
// SERVER span below.
func newServer(b *bridge.Bridge) *grpc.Server {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxBatch+16), // 16: the wrapper around the bytes
		grpc.StatsHandler(otelgrpc.NewServerHandler(
			otelgrpc.WithTracerProvider(b.TracerProvider()), otelgrpc.WithMeterProvider(b.MeterProvider()), otelgrpc.WithPropagators(b.Propagator()),
		)),
	)
	server.RegisterService(&service, &dataServer{batches: map[string][]byte{datasetKey: dataset()}})
	return server
}

// Fetch returns a batch by its key.
func (s *dataServer) Fetch(_ context.Context, key *wrapperspb.StringValue) (*wrapperspb.BytesValue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch, ok := s.batches[key.GetValue()]
	if !ok {
		return nil, status.Error(codes.NotFound, "no batch has this key")
	}
	return wrapperspb.Bytes(batch), nil
}

// Store keeps a batch and returns its key.
func (s *dataServer) Store(_ context.Context, batch *wrapperspb.BytesValue) (*wrapperspb.StringValue, error) {
	data := batch.GetValue()
	if len(data) == 0 || len(data) > maxBatch {
		return nil, status.Errorf(codes.InvalidArgument, "a batch has 1 to %d bytes, this one has %d", maxBatch, len(data))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.total+len(data) > maxTotal {
		s.total -= len(s.batches[s.keys[0]])
		delete(s.batches, s.keys[0])
		s.keys = s.keys[1:]
	}
	s.stored++
	key := "batch-" + strconv.Itoa(s.stored)
	s.batches[key] = data
	s.keys = append(s.keys, key)
	s.total += len(data)
	return wrapperspb.String(key), nil
}

// dataset is the data to load: samples of token ids, compressed.
func dataset() []byte {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // these are no secrets
	raw := make([]byte, 0, datasetSamples*sampleSize)
	for range datasetSamples * sampleTokens {
		raw = binary.LittleEndian.AppendUint32(raw, random.Uint32N(32000))
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(raw) // a bytes.Buffer takes all
	_ = w.Close()
	return out.Bytes()
}

const serviceName = "goservice.Data"

// service stands for what protoc would generate of
//
//	service Data {
//	  rpc Fetch(google.protobuf.StringValue) returns (google.protobuf.BytesValue);
//	  rpc Store(google.protobuf.BytesValue) returns (google.protobuf.StringValue);
//	}
var service = grpc.ServiceDesc{
	ServiceName: serviceName,
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{unary("Fetch", (*dataServer).Fetch), unary("Store", (*dataServer).Store)},
}

func unary[Req, Resp any](method string, call func(*dataServer, context.Context, *Req) (*Resp, error)) grpc.MethodDesc {
	handle := func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		req := new(Req)
		if err := decode(req); err != nil {
			return nil, err
		}
		next := func(ctx context.Context, req any) (any, error) { return call(srv.(*dataServer), ctx, req.(*Req)) }
		if interceptor == nil {
			return next(ctx, req)
		}
		return interceptor(ctx, req, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + serviceName + "/" + method}, next)
	}
	return grpc.MethodDesc{MethodName: method, Handler: handle}
}
