package bridge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// A single text of invalid UTF-8 would cost the whole batch: OTLP cannot carry it. A text of 10 MB would exceed a collector's limit.
func TestTextsAreMadeToFit(t *testing.T) {
	const raw, fit = "a\xffb", "a\uFFFDb"
	long := strings.Repeat("é", 5<<20)
	r := newRig(t)
	_, s := r.StartFunction(WithTraceID(t.Context(), long), long)
	s.End()
	ctx := WithTraceID(t.Context(), raw)
	ctx, s = r.StartFunction(
		ctx, raw, attribute.String(raw, raw), attribute.StringSlice("slice", []string{raw, "b"}),
		attribute.Slice("nested", attribute.SliceValue(attribute.StringValue(raw), attribute.IntValue(1))), attribute.Int("n", 1),
	)
	s.End()
	ctx, call := r.StartRPC(ctx, "zeromq\xff", "call\xff")
	err := errors.New(raw)
	call.EndErr(&err)
	func() {
		defer func() { assert.Equal(t, raw, recover(), "which goes on as it is") }()
		ctx, s = r.StartRPC(ctx, "zeromq", "panics") //nolint:fatcontext // the call "beside" follows it in one scope
		defer s.End()
		panic(raw)
	}()
	// Spans of other instrumentation, such as otelgrpc, where the client names the method.
	_, span := r.TracerProvider().Tracer("any").Start(ctx, "other\xff", trace.WithAttributes(attribute.String("rpc.method", raw)),
		trace.WithLinks(trace.Link{SpanContext: call.SpanContext(), Attributes: []attribute.KeyValue{attribute.String("link", raw)}}))
	span.AddEvent("event\xff", trace.WithAttributes(attribute.String("a", raw)))
	span.SetStatus(codes.Error, raw)
	span.End()
	_, s = r.StartRPC(ctx, "zeromq", "beside")
	s.End()
	all := r.flush()

	require.Len(t, all, 6)
	assert.Contains(t, all, "beside")
	f := all[fit].attrs()
	assert.Equal(t, fit, f["tq.function"])
	assert.Equal(t, fit, f["tq.trace_id"])
	assert.Equal(t, fit, f[fit])
	assert.Equal(t, []any{fit, "b"}, f["slice"])
	assert.Equal(t, []any{[]any{fit, int64(1)}}, f["nested"])
	assert.Equal(t, int64(1), f["n"])
	assert.Equal(t, "zeromq\uFFFD", all["call\uFFFD"].attrs()["rpc.system.name"])
	assert.Equal(t, "call\uFFFD", all["call\uFFFD"].attrs()["rpc.method"])
	assert.Equal(t, fit, all["call\uFFFD"].Status().Message())
	assert.Equal(t, "panic: "+fit, all["panics"].Status().Message())
	other := all["other\uFFFD"]
	assert.Equal(t, fit, other.attrs()["rpc.method"])
	assert.Equal(t, fit, other.Status().Message())
	assert.Equal(t, "event\uFFFD", other.Events().At(0).Name())
	assert.Equal(t, map[string]any{"a": fit}, other.Events().At(0).Attributes().AsRaw())
	assert.Equal(t, map[string]any{"link": fit}, other.Links().At(0).Attributes().AsRaw())
	name := long[:4096]
	require.Contains(t, all, name)
	assert.Equal(t, name, all[name].attrs()["tq.function"])
	assert.Equal(t, name, all[name].attrs()["tq.trace_id"])
	for _, s := range all {
		s.Attributes().Range(func(key string, v pcommon.Value) bool { return assert.True(t, utf8.ValidString(key+v.AsString())) })
	}
}

// The creator of a sent span may still read it.
func TestTextsAreMadeToFitInACopy(t *testing.T) {
	attrs := func() []attribute.KeyValue {
		return []attribute.KeyValue{
			attribute.String("a\xff", "\xff"), attribute.StringSlice("b", []string{"\xff"}), attribute.Slice("c", attribute.StringValue("\xff")),
		}
	}
	stub := func() tracetest.SpanStub {
		return tracetest.SpanStub{
			Name: "a\xff", Attributes: attrs(), Events: []sdktrace.Event{{Name: "b\xff", Attributes: attrs()}}, Links: []sdktrace.Link{{Attributes: attrs()}},
		}
	}
	before := stub()
	s := outgoing{before.Snapshot()}
	for _, attrs := range [][]attribute.KeyValue{s.Attributes(), s.Events()[0].Attributes, s.Links()[0].Attributes} {
		require.Equal(t, attribute.String("a\uFFFD", "\uFFFD"), attrs[0])
	}
	require.Equal(t, "b\uFFFD", s.Events()[0].Name)
	assert.Equal(t, stub(), before)
}

func TestAttributesAreMadeToFit(t *testing.T) {
	for _, it := range [][2]attribute.KeyValue{
		{attribute.String("a", "\xff"), attribute.String("a", "\uFFFD")},
		{attribute.String("a", strings.Repeat("a", 4097)), attribute.String("a", strings.Repeat("a", 4096))},
		{attribute.Int("\xff", 1), attribute.Int("\uFFFD", 1)},
		{attribute.String("a\u202eb", "c\x00\u202ed\te"), attribute.String("a\uFFFDb", "c\uFFFD\u202ed\te")},
		{attribute.StringSlice("a", []string{"b", "\xff"}), attribute.StringSlice("a", []string{"b", "\uFFFD"})},
		{attribute.Slice("a", attribute.StringValue("\xff")), attribute.Slice("a", attribute.StringValue("\uFFFD"))},
		{attribute.ByteSlice("a", []byte{0xff}), attribute.ByteSlice("a", []byte{0xff})},
		{attribute.Float64Slice("a", []float64{1}), attribute.Float64Slice("a", []float64{1})},
	} {
		first := attribute.Bool("first", true)
		assert.Equal(t, []attribute.KeyValue{first, it[1]}, texts([]attribute.KeyValue{first, it[0]}))
	}
	fit := []attribute.KeyValue{attribute.String("a", "b"), attribute.Int("c", 1)}
	assert.Zero(t, testing.AllocsPerRun(10, func() { texts(fit) }))
	assert.Empty(t, texts(nil))
}

// Texts are cut before their span is queued, because the queue holds thousands of spans.
func TestLongTextsDoNotWait(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	b := &Bridge{tracer: provider.Tracer(scopeName)}
	long := strings.Repeat("a", 1<<20)
	ctx := WithTraceID(t.Context(), long)
	err := errors.New(long)
	ctx, s := b.StartFunction(ctx, long)
	s.EndErr(&err)
	ctx, s = b.StartGet(ctx)
	s.EndErr(&err)
	_, s = b.StartRPC(ctx, long, long)
	s.EndErr(&err)
	for _, s := range recorder.Ended() {
		texts := []string{s.Name(), s.Status().Description}
		for _, a := range append(s.Attributes(), s.Events()[0].Attributes...) {
			texts = append(texts, a.Value.AsString())
		}
		for _, text := range texts {
			assert.LessOrEqual(t, len(text), 4096)
		}
	}
	require.NoError(t, provider.Shutdown(t.Context()))
}

// failing is an exporter with a sequence of errors.
type failing []error

func (f *failing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	err := (*f)[0]
	*f = (*f)[1:]
	return err
}

func (f *failing) Shutdown(context.Context) error { return nil }

func TestErrorsAreReportedOnceAMinute(t *testing.T) {
	bad := errors.New("refused")
	now := time.Unix(1, 0)
	errs := failing{bad, nil, bad, bad, bad, nil, bad, bad, bad, bad, bad}
	e := &exporter{SpanExporter: &errs, now: func() time.Time { return now }}
	export := func() error { return e.ExportSpans(t.Context(), nil) }

	require.EqualError(t, export(), "refused")
	require.NoError(t, export()) // sent
	now = now.Add(time.Minute - 1)
	require.NoError(t, export())
	require.NoError(t, export())
	now = now.Add(1)
	err := export()
	require.EqualError(t, err, "refused (and 2 exports before it)")
	require.ErrorIs(t, err, bad)
	now = now.Add(time.Hour)
	require.NoError(t, export()) // sent
	require.EqualError(t, export(), "refused")
	require.NoError(t, export())
	require.NoError(t, e.failed())
	e.stop()
	require.NoError(t, export(), "it is Shutdown's")
	require.EqualError(t, e.failed(), "refused")
	now = now.Add(time.Hour)
	require.NoError(t, export())
	require.NoError(t, export())
	assert.Empty(t, errs)
}
