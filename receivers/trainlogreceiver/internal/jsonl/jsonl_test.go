package jsonl_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/jsonl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// losses reads a line and returns the losses of its records.
func losses(p *jsonl.Parser, text string) (got []float64, reason string) {
	found, reason := p.Line([]byte(text), &sink{each: func(rec *record.Record) { got = append(got, rec.Get(record.Loss)) }})
	if found != (len(got) > 0) {
		panic("found, but no record; or a record, but not found")
	}
	return got, reason
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []float64
		reason     string
	}{
		{"object", `{"loss": 2.5}`, []float64{2.5}, ""},
		{"byte order mark and CRLF", "\xef\xbb\xbf{\"loss\": 2.5}\r", []float64{2.5}, ""},
		{"blanks around", " \t{\"loss\": 2.5} ", []float64{2.5}, ""},
		{"array", `[{"loss": 1}, {"loss": 2}]`, []float64{1, 2}, ""},
		{"array with others", `[{"loss": 1}, {"x": 2}, {"loss": 3}]`, []float64{1, 3}, ""},
		{"array without records", `[{"x": 2}]`, nil, ""},
		{"two in a line", `{"loss": 1}{"loss": 2}`, []float64{1, 2}, ""},
		{"two in a line, with a comma", `{"loss": 1}, {"loss": 2},`, []float64{1, 2}, ""},
		{"behind a progress bar", `  5%|5   | 5/100 [00:10<03:10,  2.00s/it]{"loss": 1}`, []float64{1}, ""},
		{"pretty", "{\n  \"loss\": 1,\n  \"lr\": 2\n}", []float64{1}, ""},

		{"empty", ``, nil, ""},
		{"one byte", `{`, nil, ""},
		{"text", `Traceback (most recent call last):`, nil, ""},
		{"no training record", `{"level": "info", "msg": "loss is fine"}`, nil, ""},
		{"Python's dict", `{'loss': 1}`, nil, ""},
		{"list of texts", `["a", "b"]`, nil, ""},
		{"text in brackets", `[INFO] hello`, nil, ""},
		{"braces", `{...}`, nil, ""},
		{"text with a broken object", `posted {"loss": 1`, nil, ""},

		{"half", `{"loss": 2.24, "throughput": 5`, nil, jsonl.BadJSON},
		{"half of the second", `{"loss": 1}{"loss": 2`, nil, jsonl.BadJSON},
		{"more behind it", `{"loss": 1} Traceback`, nil, jsonl.BadJSON},
		{"half an array", `[{"loss": 1}, {"loss"`, nil, jsonl.BadJSON},
		{"array broken inside", `[{"loss": 1}, {"loss" 2}]`, nil, jsonl.BadJSON},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, reason := losses(jsonl.New(nil), c.text)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.reason, reason)
		})
	}
}

func TestNoAllocations(t *testing.T) {
	p, out, line := jsonl.New(nil), &sink{}, []byte(
		`{"step": 1201, "loss": 2.345, "throughput": 512.3, "lr": 1.2e-5, "x": {"y": 1}, "reward/mean": 2, "gpu_util": [1, 2]}`,
	)
	p.Line(line, out)
	assert.Zero(t, testing.AllocsPerRun(100, func() { p.Line(line, out) }))
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{`{"loss": 2.5}`, `[{"loss": 1}, {"loss": 2}]`, `{"loss": 1}{"loss": 2}`, `x{"loss": 1}`, `[{"loss"`, "\xef\xbb\xbf{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := jsonl.New(nil)
		out := &sink{each: func(rec *record.Record) {
			if rec.Source != jsonl.Source || rec.Empty() {
				t.Errorf("a record of %q, empty: %v", rec.Source, rec.Empty())
			}
		}}
		found, reason := p.Line(b, out)
		if found != (out.emitted > 0) {
			t.Errorf("found %v, but %d records", found, out.emitted)
		}
		if found && reason != "" {
			t.Errorf("found, and %s", reason)
		}
	})
}
