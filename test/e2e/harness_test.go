//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func TestMain(m *testing.M) {
	becomeSocketless()
	goleak.VerifyTestMain(summed{m})
}

// summed repeats at the end what the tests waited for in vain: the logs of the processes stand between the message and the end of the output.
type summed struct{ *testing.M }

// Run runs the tests.
func (s summed) Run() int {
	code := s.M.Run()
	missed.Range(func(test, err any) bool {
		fmt.Printf("%s: %v\n", test, err)
		return true
	})
	return code
}

// missed are the errors of eventually by the names of the tests.
var missed sync.Map

// send pushes one span over OTLP.
func send(tb testing.TB, addr string, id pcommon.TraceID) error {
	tb.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "harness")
	s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetTraceID(id)
	s.SetSpanID(pcommon.SpanID{1})
	s.SetName("op")
	s.Attributes().PutDouble("share", 0.5)
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now().Add(-3 * time.Minute)))
	s.SetEndTimestamp(s.StartTimestamp() + 1e6)
	return sendTraces(tb, addr, td)
}

// sendTraces pushes spans over OTLP.
func sendTraces(tb testing.TB, addr string, td ptrace.Traces) error {
	tb.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(tb, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	_, err = ptraceotlp.NewGRPCClient(conn).Export(ctx, ptraceotlp.NewExportRequestFromTraces(td))
	return err
}

// Foundation of the tests below: the servers return the spans sent, and a cut proxy acts as a server that is down.
func TestHarness(t *testing.T) {
	t.Parallel()
	j, s := startJaeger(t), startTempo(t)
	p := startProxy(t, j.otlp)
	first, second := pcommon.TraceID{0, 1}, pcommon.TraceID{2}

	require.NoError(t, send(t, p.addr, first))
	p.cut()
	require.Error(t, send(t, p.addr, second))
	eventually(t, func() error { return holds(j.find("harness"))(1) })
	require.NoError(t, p.restore())
	require.NoError(t, send(t, p.addr, second))
	eventually(t, func() error { return holds(j.find(""))(2) })
	td, err := j.trace(first)
	require.NoError(t, err)
	assert.Equal(t, 1, td.SpanCount())
	td, err = j.trace(pcommon.TraceID{9})
	require.NoError(t, err)
	assert.Zero(t, td.SpanCount())

	require.NoError(t, send(t, s.otlp, first))
	eventually(t, func() error {
		found, err := s.search(`{ span.share > 0.3 }`)
		if err == nil && (len(found) != 1 || !found[first]) {
			err = fmt.Errorf("found %v", found)
		}
		return err
	})
	found, err := s.search(`{ span.share > 0.6 }`)
	require.NoError(t, err)
	assert.Empty(t, found)
	td, err = s.trace(first)
	require.NoError(t, err)
	assert.Equal(t, 1, td.SpanCount())

	got, err := startPrometheus(t).query("vector(2) + 3")
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.InDelta(t, 5, got[0].Value, 0)
}

// holds says whether an answer has n spans.
func holds(td ptrace.Traces, err error) func(n int) error {
	return func(n int) error {
		if err != nil {
			return err
		}
		if td.SpanCount() != n {
			return fmt.Errorf("%d spans, want %d", td.SpanCount(), n)
		}
		return nil
	}
}
