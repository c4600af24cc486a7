package otlpackedexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	"github.com/trainbridge/trainbridge/internal/refusal"
)

// grpcClient sends by OTLP/gRPC.
type grpcClient struct {
	conn    *grpc.ClientConn
	spans   ptraceotlp.GRPCClient
	points  pmetricotlp.GRPCClient
	options []grpc.CallOption
}

// newGRPCClient is a client with a connection, which need not be established yet.
func newGRPCClient(ctx context.Context, e *otlpExporter, host component.Host) (client, error) {
	conn, err := e.cfg.ToClientConn(ctx, host.GetExtensions(), e.set.TelemetrySettings, configgrpc.WithGrpcDialOption(grpc.WithUserAgent(e.userAgent)))
	if err != nil {
		return nil, err
	}
	return &grpcClient{
		conn: conn, spans: ptraceotlp.NewGRPCClient(conn), points: pmetricotlp.NewGRPCClient(conn),
		options: []grpc.CallOption{grpc.WaitForReady(e.cfg.WaitForReady)},
	}, nil
}

func (c *grpcClient) traces(ctx context.Context, td ptrace.Traces) (int64, string, error) {
	resp, err := c.spans.Export(ctx, ptraceotlp.NewExportRequestFromTraces(td), c.options...)
	if err != nil {
		return refusal.FromGateway(err)
	}
	return resp.PartialSuccess().RejectedSpans(), resp.PartialSuccess().ErrorMessage(), nil
}

func (c *grpcClient) metrics(ctx context.Context, md pmetric.Metrics) (int64, string, error) {
	resp, err := c.points.Export(ctx, pmetricotlp.NewExportRequestFromMetrics(md), c.options...)
	if err != nil {
		return refusal.FromGateway(err)
	}
	return resp.PartialSuccess().RejectedDataPoints(), resp.PartialSuccess().ErrorMessage(), nil
}

func (c *grpcClient) close() error { return c.conn.Close() }
