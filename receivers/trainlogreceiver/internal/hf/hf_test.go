package hf_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/hf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink takes records as step.Out does.
type sink struct {
	rec     record.Record
	emitted int
	each    func(*record.Record)
}

func (s *sink) Record() *record.Record {
	s.rec.Reset()
	return &s.rec
}

func (s *sink) Emit(rec *record.Record) {
	s.emitted++
	if s.each != nil {
		s.each(rec)
	}
}

func show(rec *record.Record) string {
	w := []string{[]string{"step", "evaluation", "summary"}[rec.Kind]}
	for _, f := range []struct {
		name  string
		field record.Field
	}{
		{"it", record.Iteration},
		{"of", record.Iterations},
		{"loss", record.Loss},
		{"vloss", record.ValidationLoss},
		{"norm", record.GradientNorm},
		{"lr", record.LearningRate},
		{"epoch", record.Epoch},
		{"duration", record.Duration},
		{"samples/s", record.SampleThroughput},
	} {
		if rec.Has(f.field) {
			w = append(w, fmt.Sprintf("%s=%g", f.name, rec.Get(f.field)))
		}
	}
	for _, e := range rec.Extra {
		if e.Text != nil {
			w = append(w, fmt.Sprintf("%s:%q", e.Name, e.Text))
		} else {
			w = append(w, fmt.Sprintf("%s:%g", e.Name, e.Value))
		}
	}
	return strings.Join(w, " ")
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{
			"version 4", `{'loss': 1.4498, 'grad_norm': 2.3919131755828857, 'learning_rate': 4e-05, 'epoch': 0.1}`,
			[]string{"step loss=1.4498 norm=2.3919131755828857 lr=4e-05 epoch=0.1"},
		},
		{
			"version 5", `{'loss': '5.072', 'grad_norm': '20.19', 'learning_rate': '0', 'epoch': '0.009302'}`,
			[]string{"step loss=5.072 norm=20.19 lr=0 epoch=0.009302"},
		},
		{"not finite", `{'loss': nan, 'grad_norm': inf, 'learning_rate': 0.0}`, []string{"step loss=NaN norm=+Inf lr=0"}},
		{"not finite, filtered", `{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05}`, []string{"step loss=NaN norm=NaN lr=1e-05"}},
		{"no loss left", `{'loss': 0.0, 'grad_norm': 0.0}`, []string{"step loss=0 norm=0"}},
		{"not finite, as text", `{'loss': 'nan', 'grad_norm': '-inf'}`, []string{"step loss=NaN norm=-Inf"}},
		{
			"glued to a progress bar", "\r  1%|          | 10/1000 [00:12<20:31,  1.24s/it]\r              \r{'loss': 2, 'epoch': 0.01}            ",
			[]string{"step loss=2 epoch=0.01"},
		},
		{"behind a platform's clock", `[  222.6s] {'loss': 2.0001, 'epoch': 0.03}`, []string{"step loss=2.0001 epoch=0.03"}},
		{
			"Python's words and quotes", `{'loss': 1, 'a': True, 'b': None, 'c': 'it\'s "ok"', "d": "it's", 'e': [1, {'f': '}'}]}`,
			[]string{`step loss=1 a:"True" c:"it's \"ok\"" d:"it's" e:"[1, {'f': '}'}]"`},
		},
		{
			"ms-swift",
			`Train:   2%|▏ | 1/60 [00:55<54:36, 55.53s/it]{'loss': '0.6647', 'global_step/max_steps': '1/60', 'elapsed_time': '56s', 'remaining_time': '54m 37s', 'train_speed(s/it)': '55.54'}`,
			[]string{`step it=1 of=60 loss=0.6647 duration=55.54 elapsed_time:"56s" remaining_time:"54m 37s"`},
		},
		{"ms-swift without steps", `{'loss': 1, 'global_step/max_steps': '?/60'}`, []string{`step loss=1 global_step/max_steps:"?/60"`}},
		{
			"evaluation", `{'eval_loss': 1.04, 'eval_accuracy': 0.45, 'eval_runtime': 7.7288, 'eval_samples_per_second': 2.588, 'epoch': 2.0}`,
			[]string{"evaluation vloss=1.04 epoch=2 duration=7.7288 eval_accuracy:0.45 eval_samples_per_second:2.588"},
		},
		{
			"the last row", `{'train_runtime': '70.47', 'train_samples_per_second': '1.277', 'train_steps_per_second': 0.262, 'train_loss': '2.286', 'epoch': '1'}`,
			[]string{"summary loss=2.286 epoch=1 duration=70.47 samples/s=1.277 train_steps_per_second:0.262"},
		},
		{"two ranks in one line", `{'loss': 1}{'loss': 2}`, []string{"step loss=1", "step loss=2"}},
		{"after another dict", `{'a': 1} {'loss': 2}`, []string{"step loss=2"}},
		{"after a broken one", `{'loss': 1, {'loss': 2}`, []string{"step loss=2"}},
		{"NumPy", `{'loss': np.float64(0.5), 'grad_norm': tensor(1.5)}`, []string{"step loss=0.5 norm=1.5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, found, reason := lineOf(c.text)
			assert.Equal(t, c.want, got)
			assert.Empty(t, reason)
			assert.True(t, found)
		})
	}
}

func TestNoRecord(t *testing.T) {
	for _, c := range []struct{ name, text, reason string }{
		{"half", `{'loss': 1.8, 'grad`, hf.BadDict},
		{"half, without a number", `{'note': 'x`, ""},
		{"spread over lines", `{'grad_norm': 1.0,`, ""},
		{"another dict", `{'a': 1}`, ""},
		{"numbers for names", `{1: 2}`, ""},
		{"JSON", `{"loss": 1}`, ""},
		{"text", `hello`, ""},
		{"empty", ``, ""},
		{"progress bar", ` 50%|#####     | 5/10 [00:10<00:10,  2.00s/it]`, hf.ProgressBar},
		{"progress bar at its beginning", `  0%|          | 0/10 [00:00<?, ?it/s]`, hf.ProgressBar},
		{"progress bar without a total", "17it [00:02,  6.21it/s]\r", hf.ProgressBar},
		{"named progress bar", `Map (num_proc=8): 100%|██████████| 1000/1000 [00:01<00:00, 812.10 examples/s]`, hf.ProgressBar},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, found, reason := lineOf(c.text)
			assert.Empty(t, got)
			assert.Equal(t, c.reason, reason)
			assert.False(t, found)
		})
	}
}

func lineOf(text string) (got []string, found bool, reason string) {
	out := &sink{each: func(rec *record.Record) { got = append(got, show(rec)) }}
	found, reason = hf.New(nil).Line([]byte(text), out)
	return got, found, reason
}

func TestState(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
		found      bool
		reason     string
	}{
		{
			"rows", "{\n  \"epoch\": 1.0,\n  \"log_history\": [\n    {\n      \"epoch\": 0.5,\n      \"loss\": NaN,\n      \"step\": 10\n    },\n    {\n      \"eval_loss\": 1.04,\n      \"step\": 10\n    },\n" +
				"    {\n      \"train_runtime\": 9.5,\n      \"step\": 20\n    }\n  ],\n  \"max_steps\": 20\n}\n",
			[]string{"step it=10 loss=NaN epoch=0.5", "evaluation it=10 vloss=1.04", "summary it=20 duration=9.5"},
			true, "",
		},
		{"no rows yet", `{"log_history": [], "epoch": 0}`, nil, false, ""},
		{"half", `{"log_history": [{"loss": 1, "step": 1}`, nil, false, ""},
		{"broken rows", `{"log_history": [{"loss": 1}, 5]}`, nil, false, hf.BadDict},
		{"another document", `{"loss": 1}`, nil, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			out := &sink{each: func(rec *record.Record) {
				assert.True(t, rec.Dedup)
				assert.Equal(t, byte('{'), rec.Key[0])
				assert.Equal(t, byte('}'), rec.Key[len(rec.Key)-1])
				got = append(got, show(rec))
			}}
			found, reason := hf.New(nil).State([]byte(c.text), out)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.found, found)
			assert.Equal(t, c.reason, reason)
		})
	}
}

// A line of many "{" must not take time quadratic in its length.
func TestManyBeginnings(t *testing.T) {
	found, _ := hf.New(nil).Line([]byte(strings.Repeat("{'a':", 1<<18)), &sink{})
	assert.False(t, found)
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{
		`{'loss': 1.4498, 'note': 'it\'s', 'x': [1, (2)], 'y': np.float64(1), 'z': None}`, "\r 1%| | 1/10 [00:12<20:31]{'loss': nan}", `{'a': 1} {'loss': 2}`,
		`{"log_history": [{"loss": 1, "step": 2}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := hf.New(nil)
		for _, read := range []func(*sink) (bool, string){
			func(s *sink) (bool, string) { return p.Line(b, s) },
			func(s *sink) (bool, string) { return p.State(b, s) },
		} {
			out := &sink{}
			if found, reason := read(out); found != (out.emitted > 0) || found && reason != "" {
				t.Errorf("found %v, %d records, reason %q", found, out.emitted, reason)
			}
		}
	})
}

func BenchmarkLine(b *testing.B) {
	for name, text := range map[string]string{
		"v4":   `{'loss': 1.4498, 'grad_norm': 2.3919131755828857, 'learning_rate': 4e-05, 'epoch': 0.1}`,
		"v5":   `{'loss': '5.072', 'grad_norm': '20.19', 'learning_rate': '0.0002', 'epoch': '0.009302'}`,
		"bar":  ` 50%|#####     | 5/10 [00:10<00:10,  2.00s/it]`,
		"text": `The attention mask and the pad token id were not set. As a consequence, you may observe unexpected behavior.`,
	} {
		b.Run(name, func(b *testing.B) {
			p, out, line := hf.New(nil), &sink{}, []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				p.Line(line, out)
			}
		})
	}
}

// TestBrokenBehindBar: the write of a broken dict is of the dict, and moves no other record.
func TestBrokenBehindBar(t *testing.T) {
	for _, c := range []struct {
		name, broken string
		at, covers   int // step of the broken dict; steps of the record after
	}{
		{"evaluation", `{'eval_loss': 1.9, 'eval_runtime': 2.0, 'epo`, 150, 100},
		{"step", `{'loss': 1.9, 'grad_norm': 2.0, 'epo`, 150, 50},
	} {
		for _, buffered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s buffered=%t", c.name, buffered), func(t *testing.T) {
				p := hf.New(nil)
				var got []string
				out := &sink{each: func(rec *record.Record) {
					got = append(got, fmt.Sprintf("%d %g %d %.1f", rec.Kind, rec.Get(record.Iteration), rec.Covers, rec.Get(record.Duration)))
				}}
				bar := func(step int) {
					p.Line(fmt.Appendf(nil, "%d%%|#    | %d/300 [%02d:%02d<01:00,  1.00s/it]", step/3, step, step/60, step%60), out)
				}
				write := func(step int, dict string) {
					bar(step)
					p.Blank()
					if !buffered {
						p.Line([]byte(dict), out)
					}
					bar(step)
				}
				bar(0)
				bar(1)
				dicts := []string{`{'loss': 2.0, 'epoch': 1.0}`, c.broken, `{'loss': 1.8, 'epoch': 2.0}`}
				for i, step := range []int{100, c.at, 200} {
					write(step, dicts[i])
				}
				if buffered {
					for _, dict := range dicts {
						p.Line([]byte(dict), out)
					}
					assert.Equal(t, []string{"0 100 100 1.0", fmt.Sprintf("0 200 %d 1.0", c.covers)}, without(got, "NaN"))
					return
				}
				assert.Equal(t, []string{"3 100 100 1.0", fmt.Sprintf("3 200 %d 1.0", c.covers)}, without(got, "0 NaN"))
			})
		}
	}
}

// TestNumberedBehindBar: a dict with its own step needs no numbers of the bar.
func TestNumberedBehindBar(t *testing.T) {
	p, out := hf.New(nil), &sink{}
	bar := []byte("Train:  10%|#    | 1/10 [00:01<00:09,  1.00s/it]")
	p.Line(bar, out)
	p.Blank()
	p.Line([]byte(`{'loss': 2.0, 'global_step/max_steps': '1/10', 'epoch': 0.1}`), out)
	found, reason := p.Line(bar, out)
	assert.False(t, found)
	assert.Equal(t, hf.ProgressBar, reason)
	assert.Equal(t, 1, out.emitted)
}

// without leaves out lines that begin with a text.
func without(lines []string, begin string) (kept []string) {
	for _, l := range lines {
		if !strings.HasPrefix(l, begin) {
			kept = append(kept, l)
		}
	}
	return kept
}
