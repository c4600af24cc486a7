package step

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// parts draws the spans below the steps: start and end of each part, ms since the step's start, in the order of the spans.
func (res *result) parts() string {
	var all []ptrace.Span
	at := map[pcommon.SpanID]ptrace.Span{}
	for _, td := range res.traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				all = append(all, s)
				at[s.SpanID()] = s
			}
		}
	}
	var b strings.Builder
	for _, s := range all {
		if attr(s, spans.AttrStage) == nil {
			continue
		}
		above, root := at[s.ParentSpanID()], s
		for !root.ParentSpanID().IsEmpty() {
			b.WriteString("  ")
			root = at[root.ParentSpanID()]
		}
		ms := func(t pcommon.Timestamp) float64 { return float64(int64(t)-int64(root.StartTimestamp())) / 1e6 }
		fmt.Fprintf(&b, "%s %g–%g %v", s.Name(), ms(s.StartTimestamp()), ms(s.EndTimestamp()), attr(s, spans.AttrStageOrder))
		if s.StartTimestamp() < above.StartTimestamp() || s.EndTimestamp() > above.EndTimestamp() {
			b.WriteString(" outside")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// All parts began with the step, in any order: in Jaeger each look at a trace showed another order.
func TestPartsInTheOrderOfTheTrainer(t *testing.T) {
	checkParts(t, map[string]partsCase{
		"end to end": {"dur=1 update:0.3 pass:0.5", `
  pass 0–500 trainer
  update 500.001–800.001 trainer`},
		"nested": {"dur=1 clip:0.05 load:0.01 forward:0.1 apply:0.1 pass:0.5 backward:0.3 update:0.2", `
  pass 0–500 trainer
    forward 0–100 trainer
      load 0–10 trainer
    backward 100.001–400.001 trainer
  update 500.001–700.001 trainer
    clip 500.001–550.001 trainer
    apply 550.002–650.002 trainer`},
		"what they are parts of is not logged": {"dur=1 load:0.01 backward:0.3 apply:0.1", `
  load 0–10 trainer
  backward 10.001–310.001 trainer
  apply 310.002–410.002 trainer`},
		"the one between is not logged": {"dur=1 load:0.01 pass:0.2", `
  pass 0–200 trainer
    load 0–10 trainer`},
		"no time at all": {"dur=1 pass:0 forward:0 update:0 save:0.1", `
  pass 0–1e-06 trainer
    forward 0–1e-06 trainer
  update 0.001–0.001001 trainer
  save 0.002–100.002 trainer`},
	})
}

func TestPartsLongerThanWhatTheyArePartsOf(t *testing.T) {
	checkParts(t, map[string]partsCase{
		// Each duration is of the slowest rank.
		"longer than what they are parts of": {"dur=1 pass:0.5 forward:0.3 backward:0.4 update:0.1", `
  pass 0–500 trainer
    forward 0–300 trainer
    backward 100–500 unknown
  update 500.001–600.001 trainer`},
		"longer than the step": {"dur=1 pass:0.9 update:0.2 save:0.1", `
  pass 0–900 trainer
  update 800–1000 unknown
  save 900–1000 unknown`},
		// verl's testing is outside of its step's time.
		"one longer than the step": {"dur=1 pass:0.5 save:2", `
  pass 0–500 trainer
  save 0–2000 unknown outside`},
	})
}

func TestPartsWithoutOrderOrStep(t *testing.T) {
	checkParts(t, map[string]partsCase{
		// A microsecond apart: Jaeger draws parts with the same start in any order.
		"no order known": {"dur=1 b:0.2 a:0.3 c:1", `
  b 0–200 unknown
  a 0.001–300.001 unknown
  c 0–1000 unknown`},
		"some order known": {"dur=1 b:0.2 update:0.3 a:0.3", `
  update 0–300 trainer
  b 0–200 unknown
  a 0.001–300.001 unknown`},
		// From the step's time on: Jaeger takes parts that begin before their step for a clock skew.
		"the duration of the step is not known": {"pass:0.5 forward:0.2 update:0.3 b:0.1", `
  pass 0–500 trainer outside
    forward 0–200 trainer
  update 500.001–800.001 trainer outside
  b 0–100 unknown outside`},
	})
}

type partsCase struct{ line, want string }

func checkParts(t *testing.T, cases map[string]partsCase) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			var first string
			for i := range 3 {
				res := read(t, []string{"step it=4 stamp=2026-01-01T00:00:10 " + tt.line})
				got := res.parts()
				assert.Equal(t, strings.TrimPrefix(tt.want, "\n")+"\n", got)
				for _, s := range res.spans("pass") {
					assert.Equal(t, string(spans.TimeSynthetic), attr(s, spans.AttrTimeSource))
				}
				if i == 0 {
					first = got
				}
				require.Equal(t, first, got)
			}
		})
	}
}

// A line of thousands of parts is drawn as fast as it is read.
func TestManyParts(t *testing.T) {
	line := "step it=4 dur=1 stamp=2026-01-01T00:00:10" + strings.Repeat(" load:0.1 pass:0.5", 50) + strings.Repeat(" x:0.1", 20_000)
	res := read(t, []string{line})
	assert.Len(t, res.spans("load"), 50)
	assert.Len(t, res.spans("x"), 20_000)
}
