package bridge

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/trainbridge/trainbridge/spans"
)

// callHelpers calls each helper once: a function within ctx, a step outside of any trace.
func callHelpers(ctx, outside context.Context, r *rig) {
	func(ctx context.Context) {
		ctx, s := r.StartFunction(ctx, "generate_sequences", attribute.Int(spans.AttrTQBatchSize, 32))
		defer s.End()
		func(ctx context.Context) {
			ctx, s := r.StartGet(ctx)
			defer s.End()
			n := int64(-1)
			_, s = r.StartClientGet(ctx, attribute.Int(spans.AttrTQBatchSize, 8))
			defer s.DataSize(&n).End()
			n = 3 << 20
		}(ctx)
		func(ctx context.Context) {
			_, s := r.StartCompute(ctx)
			defer s.End()
		}(ctx)
		func(ctx context.Context) {
			ctx, s := r.StartPut(ctx, attribute.String("storage", "a"))
			defer s.End()
			_, s = r.StartClientPut(ctx)
			defer s.End()
		}(ctx)
	}(ctx)
	func(ctx context.Context) {
		ctx, s := r.StartStep(ctx, 7, attribute.Float64(spans.AttrLoss, 1.5), attribute.Int(spans.AttrRank, 3))
		defer s.End()
		request, response := int64(8), int64(-1)
		ctx, s = r.StartRPC(ctx, spans.RPCSystemZeroMQ, "Matmul", attribute.String(spans.AttrNetworkTransport, "unix"))
		defer s.MessageSizes(&request, &response).End()
		func(ctx context.Context) {
			_, s := r.StartRPCSerialize(ctx)
			defer s.End()
		}(ctx)
		func(ctx context.Context) {
			_, s := r.StartRPCSend(ctx)
			defer s.End()
		}(ctx)
		func(ctx context.Context) {
			_, s := r.StartRPCReceive(ctx)
			defer s.End()
		}(ctx)
		func(ctx context.Context) {
			_, s := r.StartRPCDeserialize(ctx)
			defer s.End()
		}(ctx)
		response = 4096
	}(outside)
}

// The names stand in the receivers' READMEs, and are written out here.
func TestHelpers(t *testing.T) {
	r := newRig(t)
	callHelpers(WithTraceID(t.Context(), "a1b2c3d4"), t.Context(), r)
	all := r.flush()

	assert.Equal(t, map[string]string{
		"generate_sequences": "", "tq.get": "generate_sequences", "tq.client.get": "tq.get", "tq.compute": "generate_sequences", "tq.put": "generate_sequences",
		"tq.client.put": "tq.put",
		"train.step":    "", "Matmul": "train.step", "rpc.serialize": "Matmul", "rpc.send": "Matmul", "rpc.receive": "Matmul", "rpc.deserialize": "Matmul",
	}, parents(all))
	shares := takeShares(t, all["generate_sequences"])
	assert.Equal(t, sharesOf(all["generate_sequences"], []got{all["tq.get"], all["tq.compute"], all["tq.put"]}), shares)
}

// takeShares removes the shares of a function's stages from its attributes, and returns them.
func takeShares(t *testing.T, function got) map[string]any {
	t.Helper()
	shares := map[string]any{}
	for _, name := range shareNames {
		x, ok := function.Attributes().Get(name)
		require.True(t, ok, name)
		shares[name] = x.Double()
		function.Attributes().Remove(name)
	}
	return shares
}

func TestHelpersAttributes(t *testing.T) {
	r := newRig(t)
	pid := int64(os.Getpid())
	callHelpers(WithTraceID(t.Context(), "a1b2c3d4"), t.Context(), r)
	all := r.flush()
	takeShares(t, all["generate_sequences"])
	is := map[string]string{
		"generate_sequences": "function", "tq.get": "stage", "tq.compute": "stage", "tq.put": "stage", "tq.client.get": "stage", "tq.client.put": "stage",
		"train.step": "step", "Matmul": "call", "rpc.serialize": "call_part", "rpc.send": "call_part", "rpc.receive": "call_part", "rpc.deserialize": "call_part",
	}
	perSecond := func(bytes float64, name string) float64 { return bytes / all[name].seconds() }
	for name, want := range map[string]struct {
		kind  ptrace.SpanKind
		trace [16]byte
		attrs map[string]any
	}{
		"generate_sequences": {attrs: map[string]any{
			"tq.function": "generate_sequences", "tq.stage": "function", "tq.trace_id": "a1b2c3d4", "tq.batch.size": int64(32), "process.pid": pid, "trainbridge.join.by": "id",
		}},
		"tq.get":     {attrs: map[string]any{"tq.function": "generate_sequences", "tq.stage": "get"}},
		"tq.compute": {attrs: map[string]any{"tq.function": "generate_sequences", "tq.stage": "compute"}},
		"tq.put":     {attrs: map[string]any{"tq.function": "generate_sequences", "tq.stage": "put", "storage": "a"}},
		"tq.client.get": {kind: ptrace.SpanKindClient, attrs: map[string]any{
			"peer.service": "transferqueue", "tq.function": "generate_sequences", "tq.stage": "client_get", "tq.batch.size": int64(8), "tq.data.size": int64(3145728),
			"tq.throughput": perSecond(3145728, "tq.client.get"),
		}},
		"tq.client.put": {
			kind: ptrace.SpanKindClient, attrs: map[string]any{"peer.service": "transferqueue", "tq.function": "generate_sequences", "tq.stage": "client_put"},
		},
		"train.step": {trace: spans.StepTraceID("run-1", 7), attrs: map[string]any{
			"ml.train.iteration": int64(7), "ml.train.loss": 1.5, "dl.rank": int64(3), "trainbridge.source": "go",
		}},
		"Matmul": {kind: ptrace.SpanKindClient, trace: spans.StepTraceID("run-1", 7), attrs: map[string]any{
			"rpc.system.name": "zeromq", "rpc.method": "Matmul", "network.transport": "unix", "zeromq.request.size": int64(8), "zeromq.response.size": int64(4096),
			"zeromq.throughput": perSecond(4104, "Matmul"),
		}},
		"rpc.serialize":   {trace: spans.StepTraceID("run-1", 7), attrs: map[string]any{}},
		"rpc.send":        {trace: spans.StepTraceID("run-1", 7), attrs: map[string]any{}},
		"rpc.receive":     {trace: spans.StepTraceID("run-1", 7), attrs: map[string]any{}},
		"rpc.deserialize": {trace: spans.StepTraceID("run-1", 7), attrs: map[string]any{}},
	} {
		if want.trace == [16]byte{} {
			want.trace = spans.TraceID("run-1", []byte("a1b2c3d4"))
		}
		if want.kind == 0 {
			want.kind = ptrace.SpanKindInternal
		}
		want.attrs["trainbridge.time.source"], want.attrs["trainbridge.kind"] = "logged", is[name]
		assert.Equal(t, want.attrs, all[name].attrs(), name)
		assert.Equal(t, want.kind, all[name].Kind(), name)
		assert.EqualValues(t, want.trace, all[name].TraceID(), name)
		assert.Positive(t, all[name].EndTimestamp()-all[name].StartTimestamp(), name)
	}
}

// sharesOf computes the shares of a function from the received spans independently: for each interval between two span boundaries, is a stage running?
func sharesOf(function got, stages []got) map[string]any {
	start, end := int64(function.StartTimestamp()), int64(function.EndTimestamp())
	sums := map[string]int64{}
	borders := []int64{start, end}
	for _, s := range stages {
		stage, _ := s.Attributes().Get("tq.stage")
		sums[stage.Str()] += int64(s.EndTimestamp() - s.StartTimestamp())
		borders = append(borders, int64(s.StartTimestamp()), int64(s.EndTimestamp()))
	}
	slices.Sort(borders)
	unattributed := int64(0)
	for i, from := range borders[:len(borders)-1] {
		to := borders[i+1]
		if from >= start && to <= end && !slices.ContainsFunc(stages, func(s got) bool {
			return int64(s.StartTimestamp()) <= from &&
				to <= int64(s.EndTimestamp())
		}) {
			unattributed += to - from
		}
	}
	total := float64(end - start)
	return map[string]any{
		"tq.get.utilization": float64(sums["get"]) / total, "tq.compute.utilization": float64(sums["compute"]) / total,
		"tq.put.utilization":      float64(sums["put"]) / total,
		"tq.overhead.utilization": float64(sums["get"]+sums["put"]) / total, "tq.unattributed.utilization": float64(unattributed) / total,
	}
}

func TestShares(t *testing.T) {
	type stage struct {
		stage      spans.TQStage
		start, end int64 // end 0: still runs
	}
	for name, it := range map[string]struct {
		stages []stage
		want   []float64 // get, compute, put, overhead, unattributed
	}{
		"one after the other": {[]stage{{spans.TQGet, 1000, 1100}, {spans.TQCompute, 1100, 1800}, {spans.TQPut, 1900, 2000}}, []float64{0.1, 0.7, 0.1, 0.2, 0.1}},
		"none of one kind":    {[]stage{{spans.TQCompute, 1000, 2000}}, []float64{0, 1, 0, 0, 0}},
		"twice":               {[]stage{{spans.TQGet, 1000, 1100}, {spans.TQGet, 1500, 1600}}, []float64{0.2, 0, 0, 0.2, 0.8}},
		"at once":             {[]stage{{spans.TQGet, 1000, 1500}, {spans.TQGet, 1000, 1500}, {spans.TQCompute, 1250, 1750}}, []float64{1, 0.5, 0, 1, 0.25}},
		"one within another":  {[]stage{{spans.TQCompute, 1000, 2000}, {spans.TQPut, 1250, 1500}}, []float64{0, 1, 0.25, 0.25, 0}},
		"begun out of order":  {[]stage{{spans.TQPut, 1500, 1750}, {spans.TQGet, 1000, 1250}}, []float64{0.25, 0, 0.25, 0.5, 0.5}},
		"still runs":          {[]stage{{spans.TQGet, 1000, 1500}, {spans.TQPut, 1750, 0}}, []float64{0.5, 0, 0.25, 0.75, 0.25}},
		"no time":             {[]stage{{spans.TQGet, 1000, 1000}}, []float64{0, 0, 0, 0, 1}},
		"many": {[]stage{
			{spans.TQGet, 1000, 1100},
			{spans.TQCompute, 1100, 1200},
			{spans.TQPut, 1200, 1300},
			{spans.TQGet, 1300, 1400},
			{spans.TQCompute, 1400, 1500},
			{spans.TQPut, 1500, 1600},
		}, []float64{0.2, 0.2, 0.2, 0.4, 0.4}},
	} {
		t.Run(name, func(t *testing.T) {
			var st stages
			index := make([]int, len(it.stages))
			for i, s := range it.stages {
				index[i] = st.begin(s.stage, s.start)
			}
			for i, s := range it.stages {
				if s.end != 0 {
					st.end(index[i], s.end)
				}
			}
			got, ok := st.shares(1000, 2000)
			require.True(t, ok)
			assert.InDeltaSlice(t, it.want, got[:], 1e-12)
			st.end(st.begin(spans.TQGet, 2000), 2100) // too late, and no harm
		})
	}
	var none stages
	_, ok := none.shares(1000, 2000)
	assert.False(t, ok, "no stages are no shares of zero")
	none.end(none.begin(spans.TQGet, 2000), 2100)
	var st stages
	st.begin(spans.TQGet, 1000)
	_, ok = st.shares(1000, 1000)
	assert.False(t, ok)
}

func TestTraceIDAttribute(t *testing.T) {
	r := newRig(t)
	for name, ctx := range map[string]context.Context{
		"text": WithTraceID(t.Context(), "a1"), "N/A": WithTraceID(t.Context(), "N/A"), "empty": WithTraceID(t.Context(), ""), "step": WithStep(t.Context(), 1),
		"raw": WithTraceID(t.Context(), "\xff"), "none": t.Context(),
	} {
		_, s := r.StartFunction(ctx, name)
		s.End()
	}
	got := map[string]any{}
	for name, s := range r.flush() {
		got[name] = s.attrs()["tq.trace_id"]
	}
	assert.Equal(t, map[string]any{"text": "a1", "N/A": "N/A", "empty": nil, "step": nil, "raw": "\uFFFD", "none": nil}, got)
}

func TestSizesThatAreNotKnown(t *testing.T) {
	r := newRig(t)
	sizes := []string{"tq.data.size", "tq.throughput", "zeromq.request.size", "zeromq.response.size", "zeromq.throughput"}
	unknown, known, zero, most := int64(-1), int64(8), int64(0), int64(math.MaxInt64)
	want := map[string][]string{}
	for name, it := range map[string]struct {
		start func(*Span) *Span
		want  []string
	}{
		"unknown":         {func(s *Span) *Span { return s.DataSize(&unknown) }, nil},
		"none":            {func(s *Span) *Span { return s.DataSize(nil) }, nil},
		"zero":            {func(s *Span) *Span { return s.DataSize(&zero) }, sizes[:2]},
		"both unknown":    {func(s *Span) *Span { return s.MessageSizes(nil, &unknown) }, nil},
		"no response":     {func(s *Span) *Span { return s.MessageSizes(&known, nil) }, []string{"zeromq.request.size", "zeromq.throughput"}},
		"response failed": {func(s *Span) *Span { return s.MessageSizes(&known, &unknown) }, []string{"zeromq.request.size"}},
		"most":            {func(s *Span) *Span { return s.MessageSizes(&most, &most) }, sizes[2:]},
	} {
		_, s := r.StartRPC(t.Context(), "zeromq", name)
		it.start(s).End()
		want[name] = it.want
	}
	all := r.flush()
	require.Len(t, all, len(want))
	for name, names := range want {
		for _, size := range sizes {
			if slices.Contains(names, size) {
				assert.Contains(t, all[name].attrs(), size, name)
			} else {
				assert.NotContains(t, all[name].attrs(), size, name)
			}
		}
	}
	assert.Positive(t, all["most"].attrs()["zeromq.throughput"])
}

func TestFunctionWithoutStages(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	_, s := r.StartFunction(ctx, "f")
	s.End()
	attrs := r.flush()["f"].attrs()
	for _, name := range shareNames {
		assert.NotContains(t, attrs, name)
	}
	assert.NotContains(t, attrs, "tq.trace_id")
}

// A function without an end must not remember all its stages.
func TestTooManyStages(t *testing.T) {
	var st stages
	for range maxStages {
		st.end(st.begin(spans.TQGet, 1000), 1001)
	}
	assert.Len(t, st.all, maxStages)
	late := st.begin(spans.TQPut, 1001)
	assert.Empty(t, st.all)
	st.end(late, 1002)
	_, ok := st.shares(1000, 2000)
	assert.False(t, ok, "shares of some of its stages would be wrong")
}

// A stage that begins after its function's end is still part of the function, with the spans below the stage.
func TestStageAfterItsFunction(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	ctx, s := r.StartFunction(ctx, "f")
	s.End()
	ctx, put := r.StartPut(ctx)
	_, s = r.StartClientPut(ctx)
	s.End()
	put.End()
	all := r.flush()
	assert.Equal(t, "f", all["tq.put"].attrs()["tq.function"])
	assert.Equal(t, "f", all["tq.client.put"].attrs()["tq.function"])
	assert.NotContains(t, all["f"].attrs(), "tq.put.utilization")
}

// A span outside any function names its batch itself.
func TestWithoutFunction(t *testing.T) {
	r := newRig(t)
	ctx := WithTraceID(t.Context(), "a1")
	ctx, s := r.StartGet(ctx)
	s.End()
	_, s = r.StartClientGet(ctx, attribute.String("tq.trace_id", "mine"))
	s.End()
	all := r.flush()
	pid := int64(os.Getpid())
	assert.Equal(t, map[string]any{
		"tq.stage": "get", "tq.trace_id": "a1", "process.pid": pid, "trainbridge.time.source": "logged",
		"trainbridge.kind": "stage", "trainbridge.join.by": "id",
	}, all["tq.get"].attrs())
	assert.Equal(
		t, map[string]any{
			"peer.service": "transferqueue", "tq.stage": "client_get", "tq.trace_id": "mine", "process.pid": pid,
			"trainbridge.time.source": "logged", "trainbridge.kind": "stage", "trainbridge.join.by": "id",
		},
		all["tq.client.get"].attrs(), "the caller wins",
	)
}

func TestConcurrentStages(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4096")
	r := newRig(t)
	func(ctx context.Context) {
		ctx, s := r.StartFunction(ctx, "f")
		defer s.End()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 25 {
					ctx := ctx
					switch i % 3 {
					case 0:
						_, s := r.StartGet(ctx)
						defer s.End() // all run until the goroutine ends
					case 1:
						_, s := r.StartCompute(ctx)
						s.End()
					default:
						_, s := r.StartPut(ctx)
						s.End()
					}
				}
			})
		}
		wg.Wait()
	}(t.Context())
	require.NoError(t, r.Shutdown(t.Context()))
	var function got
	var below []got
	for _, s := range r.collector.spans() {
		if s.Name() == "f" {
			function = s
		} else {
			below = append(below, s)
		}
	}
	require.Len(t, below, 200)
	want := sharesOf(function, below)
	for _, name := range shareNames {
		x, _ := function.Attributes().Get(name)
		assert.InDelta(t, want[name], x.Double(), 1e-12, name)
	}
	for _, s := range below {
		assert.Equal(t, function.SpanID(), s.ParentSpanID())
	}
}

// places are helpers used in succession in one scope: ctx is still the context inside the span before.
var places = map[string]struct {
	run  func(r *rig, ctx context.Context)
	want map[string]string
}{
	"stages": {func(r *rig, ctx context.Context) {
		ctx, s := r.StartFunction(ctx, "f")
		defer s.End()
		ctx, s = r.StartGet(ctx)
		s.End()
		ctx, s = r.StartCompute(ctx)
		s.End()
		ctx, put := r.StartPut(ctx)
		ctx, s = r.StartClientPut(ctx)
		s.End()
		_, s = r.StartClientGet(ctx)
		s.End()
		put.End()
	}, map[string]string{"f": "", "tq.get": "f", "tq.compute": "f", "tq.put": "f", "tq.client.put": "tq.put", "tq.client.get": "tq.put"}},
	"phases": {func(r *rig, ctx context.Context) {
		ctx, s := r.StartRPC(ctx, "zeromq", "a")
		defer s.End()
		ctx, s = r.StartRPCSerialize(ctx)
		s.End()
		ctx, s = r.StartRPCSend(ctx)
		s.End()
		ctx, s = r.StartRPCReceive(ctx)
		defer s.End()
		_, s = r.StartRPCDeserialize(ctx)
		defer s.End()
	}, map[string]string{"a": "", "rpc.serialize": "a", "rpc.send": "a", "rpc.receive": "a", "rpc.deserialize": "a"}},
	"calls": {func(r *rig, ctx context.Context) {
		ctx, s := r.StartFunction(ctx, "f")
		defer s.End()
		ctx, s = r.StartRPC(ctx, "zeromq", "a")
		s.End()
		ctx, s = r.StartRPC(ctx, "zeromq", "b")
		s.End()
		ctx, c := r.StartRPC(ctx, "zeromq", "c")
		_, s = r.StartRPC(ctx, "zeromq", "d")
		s.End() // c has not ended
		c.End()
	}, map[string]string{"f": "", "a": "f", "b": "f", "c": "f", "d": "c"}},
	"contexts of the caller between": {func(r *rig, ctx context.Context) {
		type key struct{}
		ctx, s := r.StartFunction(ctx, "f")
		defer s.End()
		for i, name := range []string{"tq.get", "tq.put", "a", "b", "c"} {
			ctx = context.WithValue(ctx, key{}, i) //nolint:fatcontext // that is what is tested
			switch name {
			case "tq.get":
				ctx, s = r.StartGet(ctx)
			case "tq.put":
				ctx, s = r.StartPut(ctx)
			default:
				ctx, s = r.StartRPC(ctx, "zeromq", name)
			}
			s.End()
			assert.Equal(r.tb, i, ctx.Value(key{}))
		}
	}, map[string]string{"f": "", "tq.get": "f", "tq.put": "f", "a": "f", "b": "f", "c": "f"}},
	"context of the caller inside of a call": {func(r *rig, ctx context.Context) {
		type key struct{}
		ctx, a := r.StartRPC(ctx, "zeromq", "a")
		ctx = context.WithValue(ctx, key{}, 1)
		ctx, s := r.StartRPCSend(ctx)
		s.End()
		a.End()
		ctx, s = r.StartRPC(ctx, "zeromq", "b")
		s.End()
		assert.Equal(r.tb, 1, ctx.Value(key{}))
	}, map[string]string{"a": "", "rpc.send": "a", "b": ""}},
	"context of the caller, and the end of what is around it": {func(r *rig, ctx context.Context) {
		type key struct{}
		ctx, fn := r.StartFunction(ctx, "f")
		ctx, get := r.StartGet(ctx)
		ctx = context.WithValue(ctx, key{}, 1)
		get.End()
		ctx, s := r.StartRPC(ctx, "zeromq", "a")
		s.End()
		fn.End()
		ctx, s = r.StartRPC(ctx, "zeromq", "b")
		s.End()
		assert.Equal(r.tb, 1, ctx.Value(key{}))
	}, map[string]string{"f": "", "tq.get": "f", "a": "f", "b": ""}},
	"functions": {func(r *rig, ctx context.Context) {
		ctx, outer := r.StartFunction(ctx, "outer")
		ctx, _ = r.StartCompute(ctx)
		ctx, inner := r.StartFunction(ctx, "inner")
		ctx, s := r.StartGet(ctx)
		s.End()
		inner.End()
		ctx, next := r.StartFunction(ctx, "next")
		_, s = r.StartPut(ctx)
		s.End()
		next.End()
		outer.End()
	}, map[string]string{"outer": "", "inner": "?", "tq.get": "inner", "next": "?", "tq.put": "next"}},
	"stage in a span of the service": {func(r *rig, ctx context.Context) {
		ctx, s := r.StartFunction(ctx, "f")
		defer s.End()
		ctx, span := r.Tracer().Start(ctx, "own")
		defer span.End()
		ctx, s = r.StartGet(ctx)
		defer s.End()
		ctx, span = r.Tracer().Start(ctx, "try")
		defer span.End()
		_, s = r.StartClientGet(ctx)
		defer s.End()
	}, map[string]string{"f": "", "own": "f", "tq.get": "f", "try": "tq.get", "tq.client.get": "try"}},
	"stage without a function": {func(r *rig, ctx context.Context) {
		ctx, span := r.Tracer().Start(ctx, "own")
		defer span.End()
		_, s := r.StartGet(ctx)
		defer s.End()
	}, map[string]string{"own": "", "tq.get": "own"}},
	"after what has ended": {func(r *rig, ctx context.Context) {
		ctx, s := r.StartFunction(ctx, "f")
		defer s.End()
		ctx, s = r.StartGet(ctx)
		s.End()
		ctx, s = r.StartRPC(ctx, "zeromq", "a")
		s.End()
		ctx, s = r.StartClientPut(ctx)
		s.End()
		func(ctx context.Context) {
			_, s := r.StartRPC(ctx, "zeromq", "b")
			s.End()
		}(ctx) // which is passed on
		_, span := r.Tracer().Start(ctx, "own") // OpenTelemetry's own: the rule is the helpers'
		span.End()
	}, map[string]string{"f": "", "tq.get": "f", "a": "f", "tq.client.put": "f", "b": "f", "own": "tq.client.put"}},
	"span of the service after what has ended": {func(r *rig, ctx context.Context) {
		ctx, s := r.StartFunction(ctx, "f")
		defer s.End()
		ctx, s = r.StartCompute(ctx)
		s.End()
		ctx, span := r.Tracer().Start(ctx, "own")
		defer span.End()
		ctx, s = r.StartRPC(ctx, "zeromq", "a")
		s.End()
		_, s = r.StartRPC(ctx, "zeromq", "b")
		s.End()
	}, map[string]string{"f": "", "tq.compute": "f", "own": "tq.compute", "a": "own", "b": "own"}},
	"recursion": {func(r *rig, ctx context.Context) {
		ctx, s := r.StartFunction(ctx, "f")
		defer s.End()
		ctx, s = r.StartGet(ctx)
		defer s.End()
		ctx, s = r.StartFunction(ctx, "g")
		defer s.End()
		ctx, s = r.StartCompute(ctx)
		defer s.End()
		ctx, s = r.StartPut(ctx)
		defer s.End() // within COMPUTE, and beside COMPUTE
		ctx, s = r.StartRPC(ctx, "zeromq", "a")
		defer s.End()
		ctx, s = r.StartRPCReceive(ctx)
		defer s.End()
		ctx, s = r.StartRPC(ctx, "zeromq", "b")
		defer s.End()
		ctx, s = r.StartRPCSend(ctx)
		defer s.End()
		_, s = r.StartStep(ctx, 1)
		defer s.End()
	}, map[string]string{
		"f": "", "tq.get": "f", "g": "tq.get", "tq.compute": "g", "tq.put": "g", "a": "tq.put", "rpc.receive": "a", "b": "rpc.receive", "rpc.send": "b",
		"train.step": "rpc.send",
	}},
	"function after a function": {func(r *rig, ctx context.Context) {
		ctx, s := r.StartFunction(ctx, "outer")
		defer s.End()
		ctx, s = r.StartFunction(ctx, "inner")
		s.End()
		_, s = r.StartGet(ctx)
		s.End()
	}, map[string]string{"outer": "", "inner": "outer", "tq.get": "outer"}},
	"goroutine that outlives its function": {func(r *rig, ctx context.Context) {
		ctx, fn := r.StartFunction(ctx, "f")
		later := func(ctx context.Context) {
			ctx, s := r.StartPut(ctx)
			defer s.End()
			_, s = r.StartClientPut(ctx)
			defer s.End()
		}
		fn.End()
		later(ctx)
	}, map[string]string{"f": "", "tq.put": "f", "tq.client.put": "tq.put"}},
	"phases without a call": {func(r *rig, ctx context.Context) {
		ctx, span := r.Tracer().Start(ctx, "own")
		defer span.End()
		ctx, s := r.StartRPCSend(ctx)
		s.End()
		_, s = r.StartRPCReceive(ctx)
		s.End()
	}, map[string]string{"own": "", "rpc.send": "own", "rpc.receive": "own"}},
	"call of another trace": {func(r *rig, ctx context.Context) {
		ctx, s := r.StartRPC(ctx, "zeromq", "a")
		defer s.End()
		remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
		ctx = trace.ContextWithRemoteSpanContext(ctx, remote)
		ctx, s = r.StartRPCSend(ctx)
		defer s.End()
		_, s = r.StartClientGet(ctx)
		defer s.End()
	}, map[string]string{"a": "", "rpc.send": "?", "tq.client.get": "rpc.send"}},
	"stage of another trace": {func(r *rig, ctx context.Context) {
		ctx, s := r.StartFunction(ctx, "f")
		defer s.End()
		ctx = WithTraceID(ctx, "another")
		_, s = r.StartGet(ctx)
		defer s.End()
	}, map[string]string{"f": "", "tq.get": ""}},
}

func TestPlace(t *testing.T) {
	for name, it := range places {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			it.run(r, t.Context())
			assert.Equal(t, it.want, parents(r.flush()))
		})
	}
}

// A loop of a million turns must not keep a million spans: each turn restores its outer context.
func TestContextsOfALoop(t *testing.T) {
	r := newRig(t)
	type start = func(context.Context) (context.Context, *Span)
	for name, turn := range map[string]start{
		"StartFunction":       func(ctx context.Context) (context.Context, *Span) { return r.StartFunction(ctx, "f") },
		"StartGet":            func(ctx context.Context) (context.Context, *Span) { return r.StartGet(ctx) },
		"StartClientPut":      func(ctx context.Context) (context.Context, *Span) { return r.StartClientPut(ctx) },
		"StartStep":           func(ctx context.Context) (context.Context, *Span) { return r.StartStep(ctx, 1) },
		"StartRPC":            func(ctx context.Context) (context.Context, *Span) { return r.StartRPC(ctx, "zeromq", "a") },
		"StartRPCDeserialize": r.StartRPCDeserialize,
		"all": func(ctx context.Context) (context.Context, *Span) {
			ctx, step := r.StartStep(ctx, 1)
			ctx, fn := r.StartFunction(ctx, "f")
			ctx, get := r.StartGet(ctx)
			ctx, client := r.StartClientGet(ctx)
			client.End()
			ctx, put := r.StartPut(ctx) // GET has not ended
			get.End()
			put.End()
			assert.Same(t, fn.inner, get.outer)
			fn.End()
			ctx, call := r.StartRPC(ctx, "zeromq", "a")
			ctx, send := r.StartRPCSend(ctx)
			send.End()
			ctx, receive := r.StartRPCReceive(ctx)
			assert.Same(t, call.inner, receive.outer)
			receive.End()
			call.End()
			return ctx, step
		},
		"in a function that goes on": func(ctx context.Context) (context.Context, *Span) {
			ctx, get := r.StartGet(ctx)
			ctx, put := r.StartPut(ctx)
			get.End()
			put.End()
			return ctx, get
		},
	} {
		t.Run(name, func(t *testing.T) {
			begin := t.Context()
			if strings.HasPrefix(name, "in ") {
				begin, _ = r.StartFunction(begin, "f") // which does not end
			}
			ctx, s := begin, (*Span)(nil)
			for range 3 {
				ctx, s = turn(ctx) //nolint:fatcontext // that is what is tested
				s.End()
				assert.Same(t, begin, s.outer)
			}
			own, cancel := context.WithCancel(ctx) // the caller's context must stay
			ctx, first := turn(own)
			first.End()
			assert.NotSame(t, begin, first.outer)
			_, second := turn(ctx)
			assert.Same(t, first.outer, second.outer)
			cancel()
			require.ErrorIs(t, second.outer.Err(), context.Canceled)
			second.End()
		})
	}
}

func TestStepsOfALoop(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	for i := range int64(3) {
		var step, fn *Span
		ctx, step = r.StartStep(ctx, i) //nolint:fatcontext // that is what is tested
		ctx, fn = r.StartFunction(ctx, "f")
		assert.Equal(t, trace.TraceID(spans.StepTraceID("run-1", i)), fn.SpanContext().TraceID())
		fn.End()
		step.End()
	}
	require.NoError(t, r.Shutdown(t.Context()))
	for _, s := range r.collector.spans() {
		assert.Equal(t, s.Name() == "train.step", s.ParentSpanID().IsEmpty())
	}
}

// A step in a known trace stays in the trace.
func TestStepInAnotherTrace(t *testing.T) {
	r := newRig(t)
	ctx := WithTraceID(t.Context(), "a1b2c3d4")
	_, step := r.StartStep(ctx, 1)
	assert.Equal(t, trace.TraceID(spans.TraceID("run-1", []byte("a1b2c3d4"))), step.SpanContext().TraceID())
	ctx, span := r.Tracer().Start(t.Context(), "own")
	_, step = r.StartStep(ctx, 1)
	assert.Equal(t, span.SpanContext().TraceID(), step.SpanContext().TraceID())
	_, step = r.StartStep(WithTraceID(t.Context(), "N/A"), 1)
	id := step.SpanContext().TraceID()
	assert.True(t, id.IsValid())
	assert.NotEqual(t, trace.TraceID(spans.StepTraceID("run-1", 1)), id)
}

// broken is an error whose nil pointer is no nil error.
type broken struct{ text string }

func (b *broken) Error() string { return b.text }

func TestEndErr(t *testing.T) {
	r := newRig(t)
	call := func(name string, returned error) (err error) {
		ctx := t.Context()
		_, s := r.StartRPC(ctx, "zeromq", name)
		defer s.EndErr(&err)
		return returned
	}
	require.NoError(t, call("fine", nil))
	require.Error(t, call("failed", io.ErrUnexpectedEOF))
	if call("broken", (*broken)(nil)) == nil { // and lives
		t.Error("it is an error")
	}
	require.Error(t, call("long", errors.New(strings.Repeat("é", 1<<20))))
	ctx := t.Context()
	_, s := r.StartRPC(ctx, "zeromq", "nil")
	s.EndErr(nil)
	err := errors.New("too late")
	s.EndErr(&err)
	all := r.flush()
	assert.Equal(t, ptrace.StatusCodeUnset, all["fine"].Status().Code())
	assert.Equal(t, ptrace.StatusCodeUnset, all["nil"].Status().Code())
	for name, want := range map[string][2]string{
		"failed": {"*errors.errorString", "unexpected EOF"}, "broken": {"*bridge.broken", "<nil>"}, "long": {"*errors.errorString", strings.Repeat("é", 2048)},
	} {
		assert.Equal(t, ptrace.StatusCodeError, all[name].Status().Code())
		assert.Equal(t, want[1], all[name].Status().Message())
		require.Equal(t, 1, all[name].Events().Len())
		assert.Equal(t, "exception", all[name].Events().At(0).Name())
		assert.Equal(t, map[string]any{"exception.type": want[0], "exception.message": want[1]}, all[name].Events().At(0).Attributes().AsRaw())
	}
}

func TestPanicGoesOn(t *testing.T) {
	r := newRig(t)
	assert.PanicsWithValue(t, "broken", func() {
		ctx := t.Context()
		ctx, s := r.StartFunction(ctx, "f")
		defer s.End()
		var err error
		_, s = r.StartGet(ctx)
		defer s.EndErr(&err)
		panic("broken")
	})
	assert.PanicsWithValue(t, "broken", func() {
		ctx := t.Context()
		_, s := r.StartFunction(ctx, "with stack")
		defer s.End(trace.WithStackTrace(true))
		panic("broken")
	})
	for name, s := range r.flush() {
		assert.Equal(t, ptrace.StatusCodeError, s.Status().Code(), name)
		assert.Equal(t, "panic: broken", s.Status().Message())
		require.Equal(t, 1, s.Events().Len())
		assert.Equal(t, "exception", s.Events().At(0).Name())
		attrs := s.Events().At(0).Attributes().AsRaw()
		if name == "with stack" {
			assert.Contains(t, attrs["exception.stacktrace"], "TestPanicGoesOn")
			delete(attrs, "exception.stacktrace")
		}
		assert.Equal(t, map[string]any{"exception.type": "string", "exception.message": "broken"}, attrs)
	}
}

// The caller's options are only read: several goroutines may share them.
func TestEndLeavesOptionsAlone(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	options := make([]trace.SpanEndOption, 1, 2)
	options[0] = trace.WithStackTrace(false)
	_, s := r.StartFunction(ctx, "f")
	s.End(options...)
	assert.Nil(t, options[:2][1])
}

func TestEndFromAnotherGoroutine(t *testing.T) {
	r := newRig(t)
	for i := range int64(20) {
		ctx := t.Context()
		ctx, step := r.StartStep(ctx, i)
		var wg sync.WaitGroup
		for range 4 { // concurrently
			wg.Go(func() { step.End() })
			wg.Go(func() {
				ctx := ctx
				_, s := r.StartRPC(ctx, "zeromq", "a")
				s.End()
			})
		}
		wg.Wait()
	}
	require.NoError(t, r.Shutdown(t.Context()))
	steps := 0
	for _, s := range r.collector.spans() {
		if s.Name() == "train.step" {
			steps++
		}
	}
	assert.Equal(t, 20, steps)
}

// An end before the start is the caller's, and is no duration.
func TestEndBeforeStart(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	ctx, fn := r.StartFunction(ctx, "f")
	ctx, step := r.StartStep(ctx, 1)
	n := int64(8)
	ctx, s := r.StartGet(ctx)
	s.End()
	_, call := r.StartRPC(ctx, "zeromq", "a")
	call.MessageSizes(&n, &n)
	for _, s := range []*Span{call, step, fn} {
		s.End(trace.WithTimestamp(time.Unix(1, 0)))
	}
	all := r.flush()
	require.Len(t, all, 4)
	assert.NotContains(t, all["f"].attrs(), "tq.get.utilization")
	assert.NotContains(t, all["a"].attrs(), "zeromq.throughput")
	assert.EqualValues(t, time.Second, all["a"].EndTimestamp())
}

func TestEndsOnce(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	ctx, fn := r.StartFunction(ctx, "f")
	_, get := r.StartGet(ctx)
	get.End()
	get.End()
	at := time.Now().Add(time.Hour)
	fn.End(trace.WithTimestamp(at))
	fn.End()
	all := r.flush()
	assert.Len(t, all, 2)
	assert.EqualValues(t, at.UnixNano(), all["f"].EndTimestamp())
	x, _ := all["f"].Attributes().Get("tq.get.utilization")
	assert.InDelta(t, all["tq.get"].seconds()/all["f"].seconds(), x.Double(), 1e-12)
}
