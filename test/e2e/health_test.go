//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	"github.com/trainbridge/trainbridge/internal/porttest"
)

// healthWithin shortens the minute of the shipped configurations.
const healthWithin = "extensions: {health_check: {component_health: {recovery_duration: 3s}}}"

// red waits until health reports that nothing is delivered.
func (c *collector) red(tb testing.TB) {
	tb.Helper()
	eventually(tb, func() error {
		_, err := get(c.health, "")
		if answer, ok := errors.AsType[*statusError](err); !ok || answer.code != http.StatusInternalServerError {
			return fmt.Errorf("health is not red: %v", err) //nolint:errorlint // nil where it is 200
		}
		return nil
	})
}

// Health is 200 with nothing to send, red while the backend accepts nothing, and 200 again once the backend accepts.
func TestHealth(t *testing.T) {
	t.Parallel()
	logs, backend := t.TempDir(), freeAddr(t)
	c := newCollector(t, trainbridgeBin(t), globOf(logs), backend, healthWithin)
	c.up(t)
	generate(t, logs, "--workers", "4", "--batches", "5", "--seed", "3")
	c.red(t)
	listener, err := porttest.Listen(backend)
	require.NoError(t, err)
	server, spans := grpc.NewServer(), new(sink)
	ptraceotlp.RegisterGRPCServer(server, spans)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	c.ready(t, c.health)
	require.NotZero(t, spans.spans.Load())
	c.stop(t)
}

// A gateway without its brokers reads nothing, and reports this until they are up.
func TestHealthOfKafka(t *testing.T) {
	t.Parallel()
	b := newKafka(t, freeAddr(t), 4)
	c := deployed(t, "kafka/gateway.yaml", "TRAINBRIDGE_KAFKA="+b.addr, "TRAINBRIDGE_COLLECTOR=gateway-0")
	c.merge(t, healthWithin)
	c.launch(t)
	c.red(t)
	b.up(t)
	b.topics(t, "otlp_spans", "otlp_nccl")
	c.ready(t, c.health)
	c.stop(t)
}
