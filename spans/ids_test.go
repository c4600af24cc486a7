package spans

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/logids"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTraceIDOfUUIDIsItsBytes(t *testing.T) {
	for _, text := range []string{
		"a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d",
		"A1B2C3D4-5E6F-4A7B-8C9D-0E1F2A3B4C5D",
		"a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d",
	} {
		want, err := uuid.Parse(text) // the oracle: google/uuid
		require.NoError(t, err)
		assert.Equal(t, pcommon.TraceID(want), TraceID("run-1", []byte(text)), text)
		assert.Equal(t, TraceID("run-1", []byte(text)), TraceID("run-2", []byte(text)), "a UUID is not salted")
	}
}

func TestTraceIDOfOtherTextIsSaltedHash(t *testing.T) {
	seen := map[pcommon.TraceID]string{}
	for _, run := range []string{"run-1", "run-2", ""} {
		for _, text := range []string{
			"a1b2c3d4", "", "00000000-0000-0000-0000-000000000000", strings.Repeat("0", 32),
			"a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5", "g1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d", "a1b2c3d4x5e6f-4a7b-8c9d-0e1f2a3b4c5d", "Ünïcode",
		} {
			id := TraceID(run, []byte(text))
			assert.False(t, id.IsEmpty())
			assert.Equal(t, id, TraceID(run, []byte(text)), "the same arguments give the same id")
			other, dup := seen[id]
			assert.False(t, dup, "%q of run %q collides with %s", text, run, other)
			seen[id] = run + "/" + text
		}
	}
}

// The ids are a contract with data already stored: a changed hash would split old traces from new ones. The values come
// from the reference XXH3 (Python xxhash 4.1.0) over the length-prefixed parts.
func TestIDsStayTheSame(t *testing.T) {
	trace := TraceID("run-1", []byte("a1b2c3d4"))
	assert.Equal(t, "58006445d9153ef721f5d4fd9f6deea3", hex.EncodeToString(trace[:]))
	span := SpanID(trace, "tq.get", []byte("generate_sequences"), []byte("2642022"), []byte("98231.402113"))
	assert.Equal(t, "bfecdb3af3f82c80", hex.EncodeToString(span[:]))
	root := RootID(trace)
	assert.Equal(t, "3b427f3e2f6c2817", hex.EncodeToString(root[:]))
}

func TestSpanIDSeparatesItsParts(t *testing.T) {
	trace := pcommon.TraceID{1}
	ab := SpanID(trace, "r", []byte("a"), []byte("bc"))
	assert.NotEqual(t, ab, SpanID(trace, "r", []byte("ab"), []byte("c")))
	assert.NotEqual(t, ab, SpanID(trace, "ra", []byte("bc")))
	assert.NotEqual(t, ab, SpanID(pcommon.TraceID{2}, "r", []byte("a"), []byte("bc")))
	assert.NotEqual(t, SpanID(trace, "r"), SpanID(trace, "r", nil))
	assert.False(t, ab.IsEmpty())
}

func TestDigest(t *testing.T) {
	key := func(parts ...string) string {
		var d Digest
		for _, p := range parts {
			d.Add([]byte(p))
		}
		return hex.EncodeToString(d.Key())
	}
	all := [][]string{
		{},
		{""},
		{"", ""},
		{"a"},
		{"b"},
		{"a", ""},
		{"", "a"},
		{"a", "b"},
		{"b", "a"},
		{"ab"},
		{"a", "a"},
		{"a", "a", "a"},
		{"a", "b", "c"},
		{"a", "bc"},
		{"ab", "c"},
		{"abc"},
		{"c", "b", "a"},
		{"b", "a", "c"},
	}
	seen := map[string][]string{}
	for _, parts := range all {
		k := key(parts...)
		assert.Len(t, k, 32)
		assert.Equal(t, k, key(parts...), "the same parts give the same key")
		assert.NotContains(t, seen, k, "%q is %q", parts, seen[k])
		seen[k] = parts
	}
	// The hash is part of ids, see TestIDsStayTheSame. Here the reference computes each part's hash, seeded with the lower half of the hash before.
	assert.Equal(t, "8b58f87459277d59ffd4ef3f9add15d8", key("1 Embedding 0.1", "", "2 LMHead 0.25"))
}

func TestDigestAllocatesNothing(t *testing.T) {
	var d Digest
	row := []byte(strings.Repeat("98 LMHead 9.000 ", 20))
	assert.Zero(t, testing.AllocsPerRun(100, func() { d.Add(row) }))
}

func FuzzTraceID(f *testing.F) {
	f.Add("run", []byte("a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d"))
	f.Add("", []byte("N/A"))
	f.Fuzz(func(t *testing.T, run string, text []byte) {
		before := bytes.Clone(text)
		id := TraceID(run, text)
		if id.IsEmpty() {
			t.Fatal("empty trace id")
		}
		if !bytes.Equal(before, text) {
			t.Fatal("the text was changed")
		}
		want, err := uuid.ParseBytes(text)
		if err == nil && len(text) == 36 && want != uuid.Nil && pcommon.TraceID(want) != id {
			t.Fatalf("%q: %x", text, id)
		}
	})
}

func BenchmarkSpanID(b *testing.B) {
	trace := TraceID("run-1", []byte("a1b2c3d4"))
	fn, pid, start := []byte("generate_sequences"), []byte("2642022"), []byte("98231.402113")
	b.ReportAllocs()
	for b.Loop() {
		SpanID(trace, "tq.get", fn, pid, start)
	}
}

func TestStepIDs(t *testing.T) {
	ids := NewStepIDs("run")
	for _, n := range []int64{0, 0, 1, 10, 9, 1, 1 << 60, -3} {
		assert.Equal(t, StepTraceID("run", n), ids.Trace(n))
	}
}

func TestIsUUID(t *testing.T) {
	const text = "9fddca35-a6b4-4a70-8485-89eaab933522"
	id := TraceID("", []byte(text))
	assert.True(t, IsUUID(text, id))
	for _, other := range []string{
		"", "N/A", "9FDDCA35-A6B4-4A70-8485-89EAAB933522", "9fddca35a6b44a70848589eaab933522", "9fddca35-a6b4-4a70-8485-89eaab933523", "9fddca350a6b4-4a70-8485-89eaab933522",
	} {
		assert.False(t, IsUUID(other, id), other)
	}
}

const (
	w3cTrace  = "0af7651916cd43dd8448eb211c80319c" // the examples of W3C Trace Context
	w3cParent = "b7ad6b7169203331"
)

func TestCarried(t *testing.T) {
	of := func(f logids.Field, text string) (ids logids.IDs) {
		ids.Set(f, []byte(text))
		return ids
	}
	both := func(trace, parent, span, traceParent string) (ids logids.IDs) {
		for f, text := range map[logids.Field]string{logids.Trace: trace, logids.Parent: parent, logids.Span: span, logids.TraceParent: traceParent} {
			if text != "" {
				ids.Set(f, []byte(text))
			}
		}
		return ids
	}
	traceParent := "00-" + w3cTrace + "-" + w3cParent + "-01"
	hashed := func(text string) string {
		id := KeyTraceID("r", "id", []byte(text))
		return hex.EncodeToString(id[:])
	}
	other := strings.Repeat("1", 32)
	for name, c := range map[string]struct {
		ids           logids.IDs
		trace, parent string // "": none
	}{
		"nothing":                         {},
		"UUID":                            {of(logids.Trace, "0af76519-16cd-43dd-8448-eb211c80319c"), w3cTrace, ""},
		"upper case":                      {of(logids.Trace, strings.ToUpper(w3cTrace)), w3cTrace, ""},
		"a text":                          {of(logids.Trace, "batch-7"), hashed("batch-7"), ""},
		"10 kB":                           {of(logids.Trace, strings.Repeat("x", 10240)), hashed(strings.Repeat("x", 256)), ""},
		"none":                            {ids: of(logids.Trace, "N/A")},
		"zero":                            {ids: of(logids.Trace, "0")},
		"zeros":                           {ids: of(logids.Trace, strings.Repeat("0", 32))},
		"a UUID of zeros":                 {ids: of(logids.Trace, "00000000-0000-0000-0000-000000000000")},
		"a span of no trace":              {ids: of(logids.Span, w3cParent)},
		"traceparent":                     {of(logids.TraceParent, traceParent), w3cTrace, w3cParent},
		"traceparent as the id":           {of(logids.Trace, traceParent), w3cTrace, w3cParent},
		"traceparent in upper case":       {of(logids.TraceParent, strings.ToUpper(traceParent)), w3cTrace, w3cParent},
		"a later version":                 {of(logids.TraceParent, "cc"+traceParent[2:]+"-what.comes"), w3cTrace, w3cParent},
		"a version that does not exist":   {ids: of(logids.TraceParent, "ff"+traceParent[2:])},
		"more than version 00 has":        {ids: of(logids.TraceParent, traceParent+"-01")},
		"no version":                      {ids: of(logids.TraceParent, "zz"+traceParent[2:])},
		"no flags":                        {ids: of(logids.TraceParent, traceParent[:53]+"zz")},
		"a traceparent of zeros":          {ids: of(logids.TraceParent, "00-"+strings.Repeat("0", 32)+"-"+w3cParent+"-01")},
		"a parent of zeros":               {ids: of(logids.TraceParent, "00-"+w3cTrace+"-"+strings.Repeat("0", 16)+"-01")},
		"a bad traceparent as the id":     {of(logids.Trace, "ff"+traceParent[2:]), hashed("ff" + traceParent[2:]), ""},
		"the span is the parent":          {both("batch-7", "", w3cParent, ""), hashed("batch-7"), w3cParent},
		"the parent before the span":      {both("batch-7", w3cParent, "1111111111111111", ""), hashed("batch-7"), w3cParent},
		"no hex digits":                   {both("batch-7", "b7ad6b716920333x", "0", ""), hashed("batch-7"), ""},
		"a parent of zeros in a field":    {both("batch-7", "0000000000000000", "", ""), hashed("batch-7"), ""},
		"the id before the traceparent":   {both(other, "", "", traceParent), other, ""},
		"the id as in the traceparent":    {both(w3cTrace, "", "", traceParent), w3cTrace, w3cParent},
		"no id, so the traceparent's":     {both("N/A", "", "", traceParent), w3cTrace, w3cParent},
		"a parent before the traceparent": {both("", "1111111111111111", "", traceParent), w3cTrace, "1111111111111111"},
	} {
		trace, parent, ok := Carried("r", &c.ids)
		assert.Equal(t, c.trace, trace.String(), name)
		assert.Equal(t, c.parent, parent.String(), name)
		assert.Equal(t, c.trace != "", ok, name)
	}
}

func FuzzCarried(f *testing.F) {
	f.Add("batch-7", w3cParent, "", "00-"+w3cTrace+"-"+w3cParent+"-01")
	f.Add("00-"+w3cTrace+"-"+w3cParent+"-01", "", "0", "")
	f.Fuzz(func(t *testing.T, trace, parent, span, traceParent string) {
		ids := logids.IDs{logids.Trace: []byte(trace), logids.Parent: []byte(parent), logids.Span: []byte(span), logids.TraceParent: []byte(traceParent)}
		id, above, ok := Carried("r", &ids)
		if ok == id.IsEmpty() || !ok && !above.IsEmpty() {
			t.Fatal(id, above, ok)
		}
		if again, _, _ := Carried("r", &ids); again != id {
			t.Fatal("another id")
		}
	})
}
