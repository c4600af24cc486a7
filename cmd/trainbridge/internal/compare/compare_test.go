package compare

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/spans"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// job writes the logs of a job.
func job(t *testing.T, seed uint64, change func(*gen.Options)) (dir string, truth *gen.Truth) {
	t.Helper()
	opt := gen.DefaultOptions()
	opt.Out, opt.Seed, opt.Ranks, opt.Steps = filepath.Join(t.TempDir(), strconv.FormatUint(seed, 10)), seed, 4, 40
	opt.Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if change != nil {
		change(&opt)
	}
	truths, err := gen.Generate(t.Context(), opt)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(opt.Out, "truth.json")))
	return opt.Out, &truths[0]
}

func readRun(t *testing.T, dir string) *Run {
	t.Helper()
	cmd := NewCommand()
	cmd.SetContext(t.Context())
	cmd.SetErr(&bytes.Buffer{})
	r, err := readLogs(cmd, dir, "--run-a", "", offline.Options{})
	require.NoError(t, err)
	return r
}

func compare(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := NewCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SilenceErrors = true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// Runs of the same job with other seeds accuse nothing: of all pairs at most as many as the confidence says. With 21 seeds: 3 of 210 pairs.
func TestHealthy(t *testing.T) {
	var all []*Run
	pairs, accused := 0, 0
	for seed := range uint64(6) {
		dir, _ := job(t, 100+seed, nil)
		b := readRun(t, dir)
		for _, a := range all {
			pairs++
			c := Compare(a, b)
			require.Greater(t, len(c.figures), 40)
			if d := (&document{Comparison: c}).conclusion(); !strings.HasPrefix(d, "No difference is found") {
				accused++
				t.Log(d)
			}
		}
		all = append(all, b)
	}
	assert.LessOrEqual(t, accused, 2, "of %d pairs", pairs) // 0.75 are to be expected at most, and pairs share runs
}

// The change is found, and nothing else: TransferQueue is slow in some steps of B.
func TestFault(t *testing.T) {
	a, _ := job(t, 1, nil)
	b, truth := job(t, 2, func(o *gen.Options) { o.Faults, o.FaultEvery = []string{gen.FaultGet}, 3 })
	c := Compare(readRun(t, a), readRun(t, b))
	found := map[string]*figure{}
	for _, f := range c.figures {
		if f.section == sectionBreakdown && f.differs() {
			found[f.name] = f
		}
	}
	require.Contains(t, found, "get")
	require.Contains(t, found, nameUsual)
	assert.NotContains(t, found, "compute")
	assert.True(t, found["get"].worse())
	// The mean is the mean of the generator's truth, without the first step.
	sum := 0.0
	for _, s := range truth.Steps[1:] {
		sum += s.Time["get"]
	}
	assert.InEpsilon(t, sum/float64(len(truth.Steps)-1), found["get"].estimate.b, 0.01)
	assert.Regexp(t, `^A step( without checkpoint and evaluation)? takes .* longer in B than in A .* Of it: get \+`, (&document{Comparison: c}).conclusion())
}

// Runs as fast as each other differ where one of the trainer's parts is longer and another shorter by as much.
func TestTimers(t *testing.T) {
	run := func(gen, update float64) *Run {
		var log strings.Builder
		r := rand.New(rand.NewPCG(3, 4))
		for i := 1; i <= 60; i++ {
			g, u := gen*math.Exp(0.03*r.NormFloat64()), update*math.Exp(0.03*r.NormFloat64())
			fmt.Fprintf(&log, "step:%d - timing_s/gen:%.4f - timing_s/update_actor:%.4f - timing_s/step:%.4f\n", i, g, u, g+u+1)
		}
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "verl.log"), []byte(log.String()), 0o600))
		return readRun(t, dir)
	}
	a := run(30, 15)
	assert.Equal(t, "No difference is found in the time of steps. Of 6 figures 2 differ: gen shorter, update_actor longer.",
		(&document{Comparison: Compare(a, run(24, 21))}).conclusion())
	assert.Regexp(t, `Of it: compute \+.* s \(update_actor \+.* s\)\.$`, (&document{Comparison: Compare(a, run(30, 21))}).conclusion())
}

// Intervals hold the truth as often as stated, for values with skew, rare values, or values like their neighbours.
func TestConfidence(t *testing.T) {
	kinds := map[string]func(r *rand.Rand, n int) []float64{
		"lognormal": func(r *rand.Rand, n int) (v []float64) {
			for range n {
				v = append(v, math.Exp(0.7*r.NormFloat64()))
			}
			return v
		},
		"rare": func(r *rand.Rand, n int) (v []float64) {
			for range n {
				x := 1 + 0.05*r.NormFloat64()
				if r.Float64() < 0.15 {
					x += 2
				}
				v = append(v, x)
			}
			return v
		},
		"neighbours": func(r *rand.Rand, n int) (v []float64) {
			x := 0.0
			for range n {
				x = 0.6*x + r.NormFloat64()
				v = append(v, 10+x)
			}
			return v
		},
	}
	const pairs = 100
	for name, of := range kinds {
		r := rand.New(rand.NewPCG(7, 7))
		wrong := 0
		for i := range pairs {
			f := figure{section: name, name: strconv.Itoa(i)}
			f.likeA, f.likeB = of(r, 49), of(r, 60)
			for _, v := range f.likeA {
				f.a = append(f.a, unit{v, 1})
			}
			for _, v := range f.likeB {
				f.b = append(f.b, unit{v, 1})
			}
			if f.estimateOne(0.95); !f.noDifference() {
				wrong++
			}
		}
		t.Log(name, wrong)
		assert.LessOrEqual(t, wrong, 10, "%s: of %d", name, pairs) // 5 are to be expected, more than 10 in 1.1 % of all tries
	}
}

// Runs of another model, batch or number of GPUs are not comparable; the differences in settings are said, and the figures are shown.
func TestNotComparable(t *testing.T) {
	log := func(ranks, batch int, took float64) string {
		var b strings.Builder
		fmt.Fprintf(&b, "using world size: %d, data-parallel size: %d\n  hidden_size ..................... %d\n", ranks, ranks, 1024*ranks)
		for i := range 20 {
			fmt.Fprintf(&b, " [2026-01-02 03:%02d:05] iteration %8d/ 100 | consumed samples: %d | elapsed time per iteration (ms): %.1f | learning rate: 1.0E-04 | "+
				"global batch size: %d | lm loss: %.6E | loss scale: 1.0 | grad norm: 1.000 |\n", i, i+1, (i+1)*batch, took+float64(i%4), batch, 3-0.01*float64(i))
		}
		path := filepath.Join(t.TempDir(), "megatron.log")
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
		return path
	}
	a, b := log(8, 64, 1000), log(8, 128, 1500)
	out, err := compare(t, a, b)
	require.NoError(t, err)
	assert.Contains(t, out, "NOT COMPARABLE: the runs differ in batch size: A 64, B 128. ")
	assert.Contains(t, out, "A step of B has +100% samples, and samples/s are higher (+33.4%).")
	chinese, err := compare(t, a, b, "--lang", "zh")
	require.NoError(t, err)
	assert.Contains(t, chinese, "，B 每步的 samples 较 A +100%，samples/s 更高（+33.4%）")
	assert.NotContains(t, out, "longer, worse")
	out, err = compare(t, a, log(8, 64, 1500))
	require.NoError(t, err)
	assert.NotContains(t, out, "NOT COMPARABLE")
	assert.Contains(t, out, "A step takes 500 ms longer in B than in A (1.00 → 1.50 s, +49.9%). Of it")
	assert.Contains(t, out, "longer, worse")
	out, err = compare(t, a, b, "--format", "json", "--lang", "zh")
	require.NoError(t, err)
	var doc jsonDocument
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	assert.False(t, doc.Comparable)
	assert.Equal(t, []string{"不可比较：两次运行的设置不同（批大小: A 64, B 128）。下列差异可能由此造成。"}, doc.Warnings)
}

// Different accounts are set side by side, with the largest difference first; alike accounts are a line.
func TestAccount(t *testing.T) {
	log := func(steps int, saves time.Duration) string {
		var b strings.Builder
		at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
		for i := range steps {
			at = at.Add(2 * time.Second)
			fmt.Fprintf(&b, " [%s] iteration %8d/ 100 | consumed samples: %d | elapsed time per iteration (ms): 2000.0 | learning rate: 1.0E-04 | "+
				"global batch size: 8 | lm loss: 2.000000E+00 | loss scale: 1.0 | grad norm: 1.000 |\n", at.Format("2006-01-02 15:04:05.000000"), i+1, 8*(i+1))
			if i%20 == 19 && saves > 0 {
				at = at.Add(saves)
				fmt.Fprintf(&b, "(min, max) time across ranks (ms):\n    save-checkpoint ................................: (%d.00, %[1]d.00)\n", saves.Milliseconds())
			}
		}
		path := filepath.Join(t.TempDir(), "megatron.log")
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
		return path
	}
	a, b := log(100, 0), log(100, 10*time.Second)
	out, err := compare(t, a, b)
	require.NoError(t, err)
	head, rest, _ := strings.Cut(out, "\n")
	assert.Contains(t, head, "Goodput: A 100%, B 80%. What differs most of the wall clock: checkpoints, A 0 s of 200 s, B 50 s of 250 s. Otherwise no difference is found")
	for _, row := range []string{
		"steps 200 s 200 s 0 s -20.0 %", "checkpoints 0 s 50 s +50 s +20.0 %", "wall clock 200 s 250 s +50 s", "goodput 100% 80% -20.0 %",
	} {
		assert.Contains(t, strings.Join(strings.Fields(rest), " "), row)
	}
	out, err = compare(t, a, b, "--format", "json")
	require.NoError(t, err)
	var doc jsonDocument
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	require.True(t, doc.Account.Differs)
	assert.InDelta(t, 250, doc.Account.B.Wall, 1e-6)
	assert.InDelta(t, 50, doc.Account.B.States["checkpoint"], 1e-6)
	assert.InDelta(t, 0.8, doc.Account.B.Goodput, 1e-9)
	for format, want := range map[string]string{"html": "<td>checkpoints</td><td>0 s</td><td>50 s</td><td>+50 s</td>", "text": "有效时间比"} {
		out, err = compare(t, a, b, "--format", format, "--lang", map[string]string{"html": "en", "text": "zh"}[format])
		require.NoError(t, err)
		assert.Contains(t, strings.ReplaceAll(out, "&#43;", "+"), want)
	}

	out, err = compare(t, a, log(90, 0))
	require.NoError(t, err)
	assert.Contains(t, out, "Alike to 1 % of the wall clock: A 200 s, goodput 100%; B 180 s, goodput 100%.")
	assert.NotContains(t, out, "wall clock  ")
}

// Steps as fast as before are no difference, though their share of the wall clock falls by as much as the share of the time between steps grows.
func TestAccountBetweenSteps(t *testing.T) {
	log := func(pause float64) string {
		var b strings.Builder
		at := 1.78e9
		for i := 1; i <= 60; i++ {
			at += 0.5
			fmt.Fprintf(&b, `{"step": %d, "loss": 2.5, "step_time": 0.5, "time": %.3f}`+"\n", i, at)
			if i%20 == 0 {
				at += pause
			}
		}
		path := filepath.Join(t.TempDir(), "train.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
		return path
	}
	out, err := compare(t, log(1), log(8))
	require.NoError(t, err)
	assert.Contains(t, out, "What differs most of the wall clock: between steps, unexplained, A 2 s of 32 s, B 16 s of 46 s.")
}

// Equal times whose sums differ in the last bits have no sign.
func TestAccountRounding(t *testing.T) {
	tenth, fifth := 0.1, 0.2
	a, b := account.Account{Wall: tenth + fifth}, account.Account{Wall: 0.3}
	d := &document{Comparison: &Comparison{accounts: accounts{&a, &b}}}
	require.NotEqual(t, a.Wall, b.Wall)
	row := d.accountRow("wall clock", func(of *account.Account) float64 { return of.Wall }, "")
	assert.Equal(t, []string{"wall clock", "300 ms", "300 ms", "0 s", ""}, row)
}

// The same logs give the same bytes, in each format and language.
func TestGolden(t *testing.T) {
	parent := t.TempDir()
	for i, name := range []string{"a", "b"} {
		dir, _ := job(t, uint64(i+1), func(o *gen.Options) {
			if i == 1 {
				o.Faults, o.FaultEvery = []string{gen.FaultGet}, 3
			}
		})
		require.NoError(t, os.Rename(dir, filepath.Join(parent, name)))
	}
	t.Chdir(parent)
	t.Setenv("TRAINBRIDGE_RUN_ID", "the-run") // else by the directory
	for _, format := range []string{"text", "html", "json"} {
		for _, lang := range []string{"en", "zh"} {
			out, err := compare(t, "a", "b", "--format", format, "--lang", lang)
			require.NoError(t, err)
			if lang == "en" {
				again, err := compare(t, "a", "b", "--format", format, "--lang", lang)
				require.NoError(t, err)
				assert.Equal(t, out, again)
			}
			golden(t, lang+"."+strings.Replace(format, "text", "txt", 1), out)
		}
	}
}

var testdata, _ = filepath.Abs("testdata") // before a test changes the directory

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(testdata, name)
	if *update {
		require.NoError(t, os.MkdirAll(testdata, 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "%s: -update writes it anew", name)
}

// Texts of logs cannot write to the terminal, nor become elements of the page.
func TestHostile(t *testing.T) {
	const name = "\x1b[2J<script>alert(1)</script>"
	hostile := newRun(name)
	for i := range 20 {
		s := ptrace.NewSpan()
		s.SetStartTimestamp(pcommon.Timestamp(i * 1e9))
		hostile.sampleOf(hostile.functions, name, mostCalls).add(row{start: int64(i) * 1e9, step: noStep, trace: uint64(i)}, 1, 2, 3, 4)
	}
	hostile.addFact(spans.ModelPrefix+name, name)
	d := &document{Compare(hostile, newRun(name)), false, name, name}
	for format, write := range formats {
		var out bytes.Buffer
		require.NoError(t, write(&out, d))
		assert.NotContains(t, out.String(), "\x1b", format)
		if format == "html" {
			assert.NotContains(t, out.String(), "<script>")
		}
	}
}

// A ratio of means of 0 or less says nothing, also of few steps and of equal values: of a loss that falls from -2 to -3 it would be +50 %.
func TestRatioOfNegativeMeans(t *testing.T) {
	units := func(n int, value float64) []unit { return slices.Repeat([]unit{{value, 1}}, n) }
	for _, n := range []int{3, 10} {
		for _, of := range [][2]float64{{-2, -3}, {0, 1}, {2, -1}} {
			e := compareMeans("", units(n, of[0]), units(n, of[1]), false, 0.99)
			assert.InDelta(t, of[1]-of[0], e.difference.value, 0)
			assert.True(t, math.IsNaN(e.ratio.value), "%d of %v", n, of)
		}
		assert.InDelta(t, 1.5, compareMeans("", units(n, 2), units(n, 3), false, 0.99).ratio.value, 1e-12)
	}
}

// A bounded number of rows is kept, the same in any order.
func TestSample(t *testing.T) {
	forth, back := newSample(100), newSample(100)
	row := func(i int) row {
		return row{start: int64(i), order: orderOf(pcommon.SpanID{byte(i >> 8), byte(i)})}
	}
	const n = 5000
	for i := range n {
		forth.add(row(i), float64(i))
		back.add(row(n-1-i), float64(n-1-i))
	}
	assert.Equal(t, forth.sorted(), back.sorted())
	assert.Equal(t, n, forth.seen)
	assert.LessOrEqual(t, len(forth.rows), 100)
	assert.Greater(t, len(forth.rows), 40)
	assert.EqualValues(t, 0, forth.first.start)
}

func TestErrors(t *testing.T) {
	text := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(text, []byte("nothing of interest\n"), 0o600))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{}, "compare: name the logs of two runs, A and B"},
		{[]string{text}, "compare: name the logs of two runs, A and B"},
		{[]string{text, text}, "compare: nothing to read: the file is text in no format that is known"},
		{[]string{"/nothing/here", text}, "compare: stat /nothing/here"},
	} {
		_, err := compare(t, tt.args...)
		require.ErrorContains(t, err, tt.want, tt.args)
		require.ErrorAs(t, err, new(*reading.UsageError))
	}
	two := t.TempDir()
	for i, name := range []string{"x", "y"} {
		dir, _ := job(t, uint64(i), nil)
		require.NoError(t, os.Rename(dir, filepath.Join(two, name)))
	}
	_, err := compare(t, two, two)
	require.ErrorContains(t, err, "there are 2 runs in it, choose one by --run-a: run-")
	_, err = compare(t, two, two, "--run-a", "nobody")
	require.ErrorContains(t, err, "--run-a nobody: ")
}

func BenchmarkCompareMeans(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var x, y []unit
	for range 100 {
		x, y = append(x, unit{r.Float64(), 1}), append(y, unit{r.Float64(), 1})
	}
	for b.Loop() {
		compareMeans("", x, y, false, 0.999)
	}
}
