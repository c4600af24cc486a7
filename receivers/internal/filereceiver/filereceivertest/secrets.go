package filereceivertest

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/spans"
)

// Text returns the whole output, as OTLP's JSON.
func (r *Result) Text(tb testing.TB) string {
	tb.Helper()
	var out []byte
	for _, td := range r.Traces.AllTraces() {
		b, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
		require.NoError(tb, err)
		out = append(out, b...)
	}
	for _, md := range r.Metrics.AllMetrics() {
		b, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
		require.NoError(tb, err)
		out = append(out, b...)
	}
	return string(out)
}

// ids returns the ids of all spans, sorted, without the run's: its id follows from the log's folder too.
func (r *Result) ids() []string {
	var out []string
	for _, s := range r.All("") {
		if s.Name() == spans.SpanRun {
			continue
		}
		out = append(out, s.TraceID().String()+" "+s.SpanID().String()+" "+s.ParentSpanID().String())
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}

// Secrets checks that secrets in the output without redaction are gone from the output with redaction, replaced by the given number of redacted texts, and that
// the ids are the same. The result is the output with the default redaction.
func Secrets(tb testing.TB, read func(redact.Config) *Result, redacted int, secrets ...string) *Result {
	tb.Helper()
	raw, clean := read(redact.Config{}), read(redact.DefaultConfig())
	before, after := raw.Text(tb), clean.Text(tb)
	for _, s := range secrets {
		assert.Contains(tb, before, s, "the test has no such text")
		assert.NotContains(tb, after, s)
	}
	assert.Equal(tb, redacted, strings.Count(after, redact.Redacted), after)
	assert.Equal(tb, raw.ids(), clean.ids(), "ids are made of what the log says")
	return clean
}
