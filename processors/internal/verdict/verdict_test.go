package verdict

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/spans"
)

// rank is the subject of the sentences in these tests.
type rank struct {
	host    string
	number  int64 // −1: not known
	late    float64
	stopped bool
}

var places = Places[rank]{
	Numbers: map[string]func(*rank) float64{"late": func(r *rank) float64 { return r.late }},
	Counts:  map[string]func(*rank) int64{"rank": func(r *rank) int64 { return r.number }},
	Texts:   map[string]func([]byte, *rank) []byte{"host": func(b []byte, r *rank) []byte { return append(b, r.host...) }},
	When:    map[string]func(*rank) bool{"stopped": func(r *rank) bool { return r.stopped }},
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSentence(t *testing.T) {
	nan := math.NaN()
	known, unknown := rank{"node-1", 5, 0.25, true}, rank{"", -1, nan, false}
	for template, want := range map[string][2]string{ // the sentence about a fully known rank, and about an unknown one
		"Nothing to name.":                            {"Nothing to name.", "Nothing to name."},
		"Rank {rank} on {host} came {late} s late.":   {"Rank 5 on node-1 came 0.25 s late.", "Rank  on  came  s late."},
		"A rank[ on {host}] came late.":               {"A rank on node-1 came late.", "A rank came late."},
		"[Rank {rank}|A rank] came late.":             {"Rank 5 came late.", "A rank came late."},
		"It [stopped?stopped|runs on {host}].":        {"It stopped.", "It runs on ."},
		"It came[stopped? no more].":                  {"It came no more.", "It came."},
		"[stopped?|It runs.]":                         {"", "It runs."},
		"Rank[ {rank}[ on {host}]].":                  {"Rank 5 on node-1.", "Rank."},
		"[Rank {rank}|[Host {host}|Who knows]].":      {"Rank 5.", "Who knows."},
		"Late by {late:percent}[ or {late:seconds}].": {"Late by 25% or 250 ms.", "Late by ."},
		"{late} {late:bytes} {late:flop/s}":           {"0.25 0.25 B 0.25 FLOP/s", "  "},
		"{value} of {threshold:rate}":                 {"3 of 1.5 GB/s", "3 of 1.5 GB/s"},
		"Is it late? {host}":                          {"Is it late? node-1", "Is it late? "},
	} {
		s := compile(template, &places)
		for i, of := range []*rank{&known, &unknown} {
			b, _ := s.write([]byte("> "), of, given{3, 1.5e9})
			assert.Equal(t, "> "+want[i], string(b), template)
		}
	}
}

func TestWrongTemplates(t *testing.T) {
	for template, why := range map[string]string{
		"{node}":            "no such place",
		"{late:minutes}":    "no such style",
		"{late":             "a place has no end",
		"[on {host}":        "a section has no end",
		"[on {host}|":       "a section has no end",
		"on {host}]":        "no section begins",
		"a|b":               "no section begins",
		"[a|b|c]":           "no section begins",
		"[is late?yes|no]":  "no such condition",
		"[[stopped?yes|no]": "a section has no end",
	} {
		func() {
			defer func() { assert.Contains(t, recover(), why, template) }()
			New(spans.VerdictNCCLLate, template, &places)
		}()
	}
}

// A verdict of the registry that is a warning, with a cause, and a bad one.
const hot, slow = spans.VerdictNCCLLink, spans.VerdictRankSlow

// TestSay: the name, the tag, the worst severity, the event and the status.
func TestSay(t *testing.T) {
	link, late := NewCause(hot, spans.CauseLinkHot, "Rank {rank} is hot.", &places), New(slow, "Rank {rank} came late.", &places)
	event := func(name, severity, reason string) map[string]any {
		return map[string]any{spans.AttrVerdictName: name, spans.AttrVerdictSeverity: severity, spans.AttrVerdictReason: reason, spans.AttrVerdictValue: 1.0}
	}
	warned, accused := event(hot, "warning", "Rank 5 is hot."), event(slow, "bad", "Rank 5 came late.")
	warned[spans.AttrVerdictCause] = spans.CauseLinkHot
	put := event(slow, "bad", "Rank 5 came late.")
	put[spans.AttrTQStage] = spans.StagePut
	for name, tt := range map[string]struct {
		say      []*Verdict[rank]
		names    []any
		severity string
		events   []map[string]any
		message  string
	}{
		"warning":            {[]*Verdict[rank]{link}, []any{hot}, "warning", []map[string]any{warned}, ""},
		"bad":                {[]*Verdict[rank]{late}, []any{slow}, "bad", []map[string]any{accused}, "Rank 5 came late."},
		"warning beside bad": {[]*Verdict[rank]{link, late}, []any{hot, slow}, "bad", []map[string]any{warned, accused}, "Rank 5 came late."},
		"two of one name": {
			[]*Verdict[rank]{late, New(slow, "Rank {rank} came late.", &places).In(spans.TQPut)}, []any{slow}, "bad", []map[string]any{accused, put}, "Rank 5 came late.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sheet, span := Sheet{Status: true}, ptrace.NewSpan()
			assert.Zero(t, sheet.Attributes())
			for _, v := range tt.say {
				v.Say(&sheet, &rank{number: 5}, 1, math.NaN())
			}
			sheet.Put(span)
			raw := span.Attributes().AsRaw()
			assert.Equal(t, tt.names, raw[spans.AttrVerdict])
			for _, name := range tt.names {
				assert.Equal(t, true, raw[spans.AttrVerdictPrefix+name.(string)])
			}
			assert.Equal(t, tt.severity, raw[spans.AttrVerdictSeverity])
			assert.LessOrEqual(t, span.Attributes().Len(), sheet.Attributes(), "no more than was made room for")
			assert.Equal(t, tt.message, span.Status().Message())
			var events []map[string]any
			for _, e := range span.Events().All() {
				events = append(events, e.Attributes().AsRaw())
			}
			assert.Equal(t, tt.events, events)
			sheet.Begin()
			assert.True(t, sheet.Empty())
		})
	}
}

func TestSeverity(t *testing.T) {
	v := New(slow, "", &places)
	assert.Equal(t, Bad, v.kind.severity)
	assert.Equal(t, Warning, v.As(Warning).kind.severity)
	assert.Panics(t, func() { New("tq_unheard_of", "", &places) }, "the registry has none of this name")
}

// TestSayAllocates nothing but the sentence.
func TestSayAllocates(t *testing.T) {
	v := New(slow, "[Rank {rank}|A rank][ on {host}] came {value:seconds} late[stopped? and stopped].", &places)
	var sheet Sheet
	of := &rank{host: "node-1", number: 5, stopped: true}
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		sheet.Begin()
		v.Say(&sheet, of, 0.25, math.NaN())
	}), 1.0)
}

// BenchmarkSay: a sentence of a collective's length, with its verdict.
func BenchmarkSay(b *testing.B) {
	v := New(spans.VerdictNCCLLate, "[Rank {rank}|A rank][ on {host}] came {value:seconds} late to it, whose transfer took {late:seconds}; "+
		"the limit is {threshold:seconds}: see what it did before (data loading, a checkpoint, more work than the others).", &places)
	var sheet Sheet
	of := &rank{host: "node-1", number: 5, late: 0.002}
	b.ReportAllocs()
	for b.Loop() {
		sheet.Begin()
		v.Say(&sheet, of, 0.25, 0.002)
	}
}

func TestSummary(t *testing.T) {
	var s Summary
	put := func(f func()) string {
		span := ptrace.NewSpan()
		s.Begin()
		f()
		s.Put(span)
		if v, ok := span.Attributes().Get(spans.AttrSummary); ok {
			return v.Str()
		}
		assert.Equal(t, pcommon.NewMap().AsRaw(), span.Attributes().AsRaw())
		return "nothing"
	}
	assert.Equal(t, "nothing", put(func() { s.Share("get", math.NaN()) }))
	assert.Equal(t, "get 12.3% · put 0%; batch; worker", put(func() {
		s.Share("get", 0.1234)
		s.Share("put", 0)
		s.Part("batch")
		s.Part("worker")
	}))
}
