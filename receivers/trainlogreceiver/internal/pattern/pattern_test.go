package pattern

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

func parse(t *testing.T, pattern string, lines ...string) (rec record.Record, found bool) {
	t.Helper()
	p, err := Compile(pattern)
	require.NoError(t, err)
	parser := NewSet([]*Pattern{p}, nil).New(nil)
	for _, line := range lines {
		rec.Reset()
		found, _ = parser.Parse([]byte(line), &rec)
	}
	return rec, found
}

func TestPatterns(t *testing.T) {
	type want map[record.Field]float64
	for _, tt := range []struct {
		pattern string
		lines   []string // the last line's record
		want    want     // nil: none
	}{
		{
			"iter {iteration}: loss {loss}, time {step_time:ms}ms, mfu {mfu:%}%",
			[]string{"iter 10: loss 2.5, time 12.5ms, mfu 30.5%"},
			want{record.Iteration: 10, record.Loss: 2.5, record.Duration: 0.0125, record.MFU: 0.305},
		},
		{"iter {iteration}: loss {loss}", []string{"2026-11-20 INFO x: iter   10: loss   2.5, time 12.5ms"}, want{record.Iteration: 10, record.Loss: 2.5}},
		{
			"[{epoch}/{epochs}][{iteration}/{iterations}] loss={loss}",
			[]string{"[  2/3][ 7/40] loss=-0.5e-3"},
			want{record.Epoch: 2, record.Iteration: 47, record.Iterations: 120, record.Loss: -0.5e-3},
		},
		{
			"[{epoch}/{epochs}][{iteration}/{iterations}] loss={loss}",
			[]string{"[0/3][ 7/40] loss=1", "[1/3][ 7/40] loss=1"},
			want{record.Epoch: 1, record.Iteration: 47, record.Iterations: 120, record.Loss: 1},
		},
		{"S {step} L {loss} T {duration}", []string{"S 1,234 L 2 T 0.5"}, want{record.Iteration: 1234, record.Loss: 2, record.Duration: 0.5}},
		{"S {step} L {loss} T {duration}", []string{"S 1 L 1,234.5 T 0.5"}, want{record.Iteration: 1, record.Loss: 1234.5, record.Duration: 0.5}},
		{"{step},{loss},{duration:ms}", []string{"10,250,125"}, want{record.Iteration: 10, record.Loss: 250, record.Duration: 0.125}},
		{"S {step} L {loss}{*}", []string{"S 1 L 12.5,123"}, want{record.Iteration: 1, record.Loss: 12.5}},
		{"S {step} L {loss} T {time:min}", []string{"S 1 L 2 T 2"}, want{record.Iteration: 1, record.Loss: 2, record.Duration: 120}},
		{
			"step:{step}/{steps} {*}train_time:{elapsed:ms}ms",
			[]string{"step:1/10 x train_time:1000ms", "step:3/10 x train_time:2500ms"},
			want{record.Iteration: 3, record.Iterations: 10, record.Duration: 0.75},
		},
		{"mem {peak_memory:GB} of step {step}", []string{"mem 1.5 GB of step 7"}, nil},
		{"mem {peak_memory:GB} GB of step {step}", []string{"mem 1.5 GB of step 7"}, want{record.Iteration: 7, record.MemoryPeak: 1.5 * (1 << 30)}},
		{"{{{step}}} {loss}", []string{"{7} 2.5"}, want{record.Iteration: 7, record.Loss: 2.5}},
		{`/iter (?P<iteration>\d+) took (?P<step_time_ms>[\d.]+)/`, []string{"x iter 7 took 250 ms"}, want{record.Iteration: 7, record.Duration: 0.25}},
		{`/iter (?P<iteration>\d+) epoch (?P<epoch>\S+)/`, []string{"iter 7 epoch none"}, want{record.Iteration: 7}},
		{"iter {iteration}: loss {loss}", []string{"iter ten: loss 2"}, nil},
		{"iter {iteration}: loss {loss}", []string{"iter 10: val 2"}, nil},
		{"ep {*} it {iteration} loss {loss}", []string{"ep one it x it 5 loss 3"}, nil},
		{"it {iteration}: {...}", []string{"it 7: loss:2.5, lr=1e-5 grad_norm:tensor(1.5, device='cuda:0')"}, want{
			record.Iteration: 7, record.Loss: 2.5, record.LearningRate: 1e-5, record.GradientNorm: 1.5,
		}},
		{"it {iteration}: {...} end", []string{"it 7: loss:2.5 end"}, want{record.Iteration: 7, record.Loss: 2.5}},
		{"it {iteration}: {...}", []string{"it 7: loss:2.5 and more"}, nil},
		{"it {iteration}: {...}", []string{"it 7: loss: 2.5"}, nil},
		{"it {iteration} loss {loss}", []string{"it 7 loss tensor(2.5, grad_fn=<NllLossBackward0>)"}, want{record.Iteration: 7, record.Loss: 2.5}},
		{"it {iteration} loss {loss}", []string{"it 7 loss tensor(x)"}, nil},
		{"it {iteration} mfu {mfu:%}%", []string{"it 7 mfu -100.00%"}, want{record.Iteration: 7}}, // unknown so far
	} {
		t.Run(tt.pattern, func(t *testing.T) {
			rec, found := parse(t, tt.pattern, tt.lines...)
			assert.Equal(t, tt.want != nil, found)
			got := maps.Collect(rec.All())
			for f, v := range tt.want {
				assert.InDelta(t, v, got[f], 1e-12*math.Abs(v), "%d", f)
			}
			assert.Len(t, got, len(tt.want))
		})
	}
}

func TestUnknownNamesAreFields(t *testing.T) {
	rec, found := parse(t, "{step} {reward_mean} [{who}] {loss}", "7 1.5 [critic 2] 3")
	require.True(t, found)
	require.Len(t, rec.Extra, 2)
	assert.Equal(t, "reward_mean", string(rec.Extra[0].Name))
	assert.InDelta(t, 1.5, rec.Extra[0].Value, 0)
	assert.Equal(t, "who", string(rec.Extra[1].Name))
	assert.Equal(t, "critic 2", string(rec.Extra[1].Text))
}

func TestFieldsWhateverTheirNamesMean(t *testing.T) {
	rec, found := parse(t, "it {iteration} of step {step:field}, train loss {train loss:result}", "it 8 of step 2, train loss 2.5")
	require.True(t, found)
	assert.Equal(t, record.Evaluation, rec.Kind)
	assert.Equal(t, map[record.Field]float64{record.Iteration: 8}, maps.Collect(rec.All()))
	assert.Equal(t, []record.Extra{{Name: []byte("step"), Value: 2}, {Name: []byte("train loss"), Value: 2.5}}, rec.Extra)
}

func TestErrors(t *testing.T) {
	for pattern, want := range map[string]string{
		"":                         "is empty",
		"step":                     "has no placeholder",
		"step {*}":                 "has no placeholder",
		"step {step":               "character 6: '{' without a '}'",
		"step step}":               "character 10: '}' without a '{'",
		"{step}{loss}":             "character 7: two placeholders",
		"{*}{...} {step}":          "character 4: two placeholders",
		"é {step:parsec}":          `character 3: "parsec" is no unit`,
		"it {iteration obj {loss}": "character 4: '{' without a '}'",
		"a {} {step}":              "character 3: a placeholder without a name",
		"/(/":                      "is no regular expression",
		`/step \d+/`:               "names nothing",
		strings.Repeat("x", 5000):  "has 5000 bytes",
	} {
		_, err := Compile(pattern)
		assert.ErrorContains(t, err, want, pattern)
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("iter {iteration}: loss {loss}, time {step_time:ms}ms", "iter 1: loss 2, time 3ms")
	f.Add("{step} {*} x {loss:%}", "1 a x 5")
	f.Add("{step}: {...} of {all:field}", "1: loss:tensor(2, a=1), lr=3 of 9")
	f.Add(`/(?P<step>\d+)/`, "17")
	f.Fuzz(func(t *testing.T, pattern, line string) {
		p, err := Compile(pattern)
		if err != nil {
			return
		}
		parser := NewSet([]*Pattern{p}, nil).New(nil)
		var rec record.Record
		before := line
		if found, _ := parser.Parse([]byte(line), &rec); !found && p.re == nil && !rec.Empty() {
			t.Fatalf("%q left something of %q", pattern, line)
		}
		if before != line {
			t.Fatal("the line was changed")
		}
	})
}

func BenchmarkPattern(b *testing.B) {
	p, err := Compile("iter {iteration}: loss {loss}, time {step_time:ms}ms, mfu {mfu:%}%")
	require.NoError(b, err)
	parser := NewSet([]*Pattern{p}, nil).New(nil)
	line := []byte("iter 100: loss 2.3456, time 45.23ms, mfu 30.12%")
	var rec record.Record
	b.ReportAllocs()
	for b.Loop() {
		rec.Reset()
		if found, _ := parser.Parse(line, &rec); !found {
			b.Fatal("no record")
		}
	}
}

func TestPropose(t *testing.T) {
	for name, tt := range map[string]struct{ log, want string }{
		"names":    {"it 1 obj 2.5 in 12 ms\nit 2 obj 2.4 in 13 ms\nhello 5 world 6\nit 3 obj 2.3 in 14 ms", "it {iteration} obj {obj} in {step_time:ms} ms"},
		"no names": {"1/60: 2.5\n2/60: 2.4\n3/60: 2.25", "{iteration}/{iterations}: {loss}"},
		"the same": {"layer 3 has 5 heads\nlayer 3 has 5 heads\nlayer 3 has 5 heads", ""},
		"braces":   {"{1} x=2.5\n{2} x=2.4\n{3} x=2.3", "{{{iteration}}} x={x}"},
		"time of steps": {
			"it 1 loss 2.5 time: 20.5 sec/100 iters\nit 2 loss 2.4 time: 20.4 sec/100 iters\nit 3 loss 2.3 time: 20.3 sec/100 iters",
			"it {iteration} loss {loss} time: {*} sec/100 iters",
		},
		"time without a name, of steps": {
			"it 1 loss 2.5 20.5 secs / 100 iters\nit 2 loss 2.4 20.4 secs / 100 iters\nit 3 loss 2.3 20.3 secs / 100 iters",
			"it {iteration} loss {loss} {*} secs / 100 iters",
		},
		"other time alone": {
			"step 1: load took 0.5\nstep 2: load took 0.4\nstep 3: load took 0.3", "step {iteration}: load took {*}",
		},
		"share of time": {"it 1 loss 2.5 time 50 %\nit 2 loss 2.4 time 51 %\nit 3 loss 2.3 time 52 %", "it {iteration} loss {loss} time {*} %"},
		"other time before": {
			"it 1 loss 2.5 data time 0.1 s time 1.5 s\nit 2 loss 2.4 data time 0.2 s time 1.4 s\nit 3 loss 2.3 data time 0.3 s time 1.3 s",
			"it {iteration} loss {loss} data time {*} s time {step_time:s} s",
		},
		"prose": {"In 2024 there were 5 of them.\nNothing.\n", ""},
	} {
		got := Propose(strings.Split(tt.log, "\n"))
		assert.Equal(t, tt.want, got, name)
		if got != "" {
			_, err := Compile(got)
			assert.NoError(t, err, name)
		}
	}
}
