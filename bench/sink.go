package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	_ "go.opentelemetry.io/collector/config/configgrpc" // zstd
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip"
)

// sink counts data received over OTLP: spans by gRPC, log records by gRPC and HTTP.
type sink struct {
	grpc, http   string // host:port
	items, bytes atomic.Int64
	stop         func()
}

// traceServer takes spans by gRPC.
type traceServer struct {
	ptraceotlp.UnimplementedGRPCServer
	*sink
}

// Export counts the spans of a request.
func (s *traceServer) Export(_ context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.items.Add(int64(r.Traces().SpanCount()))
	return ptraceotlp.NewExportResponse(), nil
}

// logServer takes log records by gRPC.
type logServer struct {
	plogotlp.UnimplementedGRPCServer
	*sink
}

// Export counts the log records of a request.
func (s *logServer) Export(_ context.Context, r plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	s.items.Add(int64(r.Logs().LogRecordCount()))
	return plogotlp.NewExportResponse(), nil
}

// ServeHTTP takes protobuf without compression.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	logs := plogotlp.NewExportRequest()
	err = errors.Join(err, logs.UnmarshalProto(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty response
	s.items.Add(int64(logs.Logs().LogRecordCount()))
}

// newSink listens for spans and log records on two free ports.
func newSink() (*sink, error) {
	g, errG := net.Listen("tcp", "127.0.0.1:0")
	h, errH := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(errG, errH); err != nil {
		return nil, err
	}
	s := &sink{grpc: g.Addr().String(), http: h.Addr().String()}
	overGRPC, overHTTP := grpc.NewServer(grpc.MaxRecvMsgSize(64<<20)), &http.Server{Handler: s}
	ptraceotlp.RegisterGRPCServer(overGRPC, &traceServer{sink: s})
	plogotlp.RegisterGRPCServer(overGRPC, &logServer{sink: s})
	go func() { _ = overGRPC.Serve(counted{g, &s.bytes}) }()
	go func() { _ = overHTTP.Serve(counted{h, &s.bytes}) }()
	s.stop = func() { overGRPC.Stop(); _ = overHTTP.Close() }
	return s, nil
}

// counted adds up the received bytes, including the frames of HTTP.
type counted struct {
	net.Listener
	n *atomic.Int64
}

func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.n}, err
}

type countedConn struct {
	net.Conn
	n *atomic.Int64
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}
