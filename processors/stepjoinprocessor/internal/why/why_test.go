package why

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// job makes breakdowns of the steps of a run of 16 ranks on 2 hosts.
type job struct {
	*rand.Rand
	noise  func(r *rand.Rand) float64 // around 1
	step   int
	steady bool // the same ranks are late in every step
}

func rank(r int64) breakdown.Who {
	return breakdown.Who{Rank: r, HasRank: true, Host: fmt.Sprintf("node-%d", r/8), Comm: "DP Group 0", Operation: "AllReduce"}
}

var collectives = []breakdown.Who{{Comm: "DP Group 0", Operation: "AllReduce"}, {Comm: "TP Group 0", Operation: "AllGather"}}

// usual are the parts of a step of 5.4 s, beside collectives.
var usual = map[breakdown.Kind]float64{
	breakdown.Compute: 3.6, breakdown.Get: 0.25, breakdown.Put: 0.1, breakdown.DataLoading: 0.15, breakdown.RPCSerialize: 0.1, breakdown.RPCReceive: 0.1,
	breakdown.RPCServer: 0.2, breakdown.Unattributed: 0.2,
}

// fault is an addition to the time of a step.
type fault struct {
	kind    breakdown.Kind
	who     breakdown.Who
	seconds float64
}

func (j *job) window(faults ...fault) *Window {
	j.step++
	b := &breakdown.Breakdown{}
	for k := range breakdown.Kind(breakdown.Kinds) {
		if u := usual[k]; u > 0 {
			b.Time[k], b.Known[k] = u*j.noise(j.Rand), true
		}
	}
	b.Known[breakdown.Wait], b.Known[breakdown.Collective] = true, true
	for i, of := range collectives {
		b.Collectives = append(b.Collectives, breakdown.Part{Who: of, Seconds: []float64{0.3, 0.1}[i] * j.noise(j.Rand)})
	}
	waits := map[int64]float64{}
	for i := range int64(8) {
		r := j.Int64N(16)
		if j.steady {
			r = i
		}
		waits[r] += 0.04 * j.noise(j.Rand)
	}
	for _, f := range faults {
		switch f.kind {
		case breakdown.Wait:
			waits[f.who.Rank] += f.seconds
		case breakdown.Collective:
			for i := range b.Collectives {
				if b.Collectives[i].Who == f.who {
					b.Collectives[i].Seconds += f.seconds
				}
			}
		default:
			b.Time[f.kind] += f.seconds
			b.Known[f.kind] = true
		}
	}
	for r, s := range waits {
		b.Waits = append(b.Waits, breakdown.Part{Who: rank(r), Seconds: s})
		b.Time[breakdown.Wait] += s
	}
	for _, c := range b.Collectives {
		b.Time[breakdown.Collective] += c.Seconds
	}
	for _, s := range b.Time {
		b.Duration += s
	}
	return &Window{Key: Key{Run: "run-1", Steps: 1, Batch: 256}, Subject: fmt.Sprintf("Step %d", j.step), Ranks: 16, Breakdown: b}
}

// tails have every moment below the third only (Student's t, 3 degrees of freedom), in both directions.
func tails(scale float64) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		chi := 0.0
		for range 3 {
			x := r.NormFloat64()
			chi += x * x
		}
		return max(0.1, 1+scale*r.NormFloat64()/math.Sqrt(chi/3))
	}
}

// hiccups are lognormal, and one part in a hundred takes up to three times as long.
func hiccups(scale float64) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		x := math.Exp(scale * r.NormFloat64())
		if r.IntN(100) == 0 {
			x *= 1 + 2*r.Float64()*scale*10
		}
		return x
	}
}

// noises are those of healthy runs; windows are made of 14 to 20 parts, each with its own.
var noises = map[string]func(r *rand.Rand) float64{
	"t, 1 %": tails(0.01), "t, 3 %": tails(0.03), "t, 5 %": tails(0.05), "hiccups, 2 %": hiccups(0.02), "hiccups, 5 %": hiccups(0.05),
	"lognormal, 10 %": func(r *rand.Rand) float64 { return math.Exp(0.1 * r.NormFloat64()) },
	"exponential":     func(r *rand.Rand) float64 { return 0.8 + 0.2*r.ExpFloat64() },
}

// In 10,000 healthy windows of each noise, up to 92 are slow, by computing; nothing is named for any.
func TestHealthy(t *testing.T) {
	for name, noise := range noises {
		h, j, slow := New(), newJob(noise), 0
		for range 10_000 {
			if v, ok := h.Judge(j.window()); ok {
				slow++
				assert.Empty(t, v.Causes, "%s: %s", name, v.Sentence)
			}
		}
		t.Logf("%s: %d of 10,000 are slow", name, slow)
		assert.LessOrEqual(t, slow, 100)
	}
}

// Of 3,000 checkpoints and evaluations of healthy runs only the longest tail is named, which did take longer.
func TestHealthyCheckpoints(t *testing.T) {
	for name, noise := range noises {
		h, j, slow, named := New(), newJob(noise), 0, 0
		for i := range 10_000 {
			if v, ok := h.Judge(j.window(j.others(i)...)); ok {
				slow++
				named += min(len(v.Causes), 1)
				for _, c := range v.Causes {
					assert.Contains(t, []breakdown.Kind{breakdown.Checkpoint, breakdown.Evaluation}, c.Kind, "%s: %s", name, v.Sentence)
				}
			}
		}
		t.Logf("%s: %d of 10,000 are slow, for %d a cause is named", name, slow, named)
		assert.LessOrEqual(t, slow, 100)
		assert.LessOrEqual(t, named, 15)
	}
}

// If GET is most of a step, with a long tail, the steps slowed by GET are ascribed to GET, rightly; no rank is accused.
func TestHealthyOfGet(t *testing.T) {
	for name, noise := range noises {
		h, j, named := New(), newJob(noise), 0
		for range 2_000 {
			w := j.window()
			b := w.Breakdown
			b.Time[breakdown.Get], b.Time[breakdown.Compute] = b.Time[breakdown.Compute], b.Time[breakdown.Get]
			v, _ := h.Judge(w)
			if len(v.Causes) > 0 {
				named++
				assert.Equal(t, breakdown.Get, v.Causes[0].Kind, name)
			}
			for _, c := range v.Causes {
				assert.Empty(t, c.Who, name)
			}
		}
		assert.LessOrEqual(t, named, 20, name)
	}
}

// others are the checkpoint and the evaluation of a step: every fifth step has a checkpoint, and every tenth both.
func (j *job) others(step int) (some []fault) {
	if step%5 == 0 {
		some = append(some, fault{kind: breakdown.Checkpoint, seconds: 2.5 * j.noise(j.Rand)})
	}
	if step%10 == 0 {
		some = append(some, fault{kind: breakdown.Evaluation, seconds: 1.5 * j.noise(j.Rand)})
	}
	return some
}

// cause draws the fault of a step.
func (j *job) cause(i int, seconds float64) (f fault, notes []Note) {
	f.seconds = seconds
	switch i % 7 {
	case 0:
		f.kind, f.who = breakdown.Wait, rank(j.Int64N(16))
	case 1:
		f.kind, f.who = breakdown.Wait, rank(j.Int64N(16))
		notes = []Note{{Who: f.who, Text: "GPU 3 was held down by heat", Seconds: 0.9 * seconds}}
	case 2:
		f.kind, f.who = breakdown.Collective, collectives[j.IntN(2)]
	case 3:
		f.kind = breakdown.DataLoading
	case 4:
		f.kind = breakdown.Get
	case 5:
		f.kind = breakdown.RPCSerialize
	default:
		f.kind = breakdown.Checkpoint
	}
	return f, notes
}

// Causes are seeded into steps, one of 15 to 65 % of the step each: the share named first depends on the noise. A wrong cause is never named.
func TestSeeded(t *testing.T) {
	for name, tt := range map[string]struct {
		noise func(r *rand.Rand) float64
		named float64
	}{
		"t, 1 %": {tails(0.01), 0.99}, "hiccups, 2 %": {hiccups(0.02), 0.99}, "t, 3 %": {tails(0.03), 0.9}, "hiccups, 5 %": {hiccups(0.05), 0.75},
	} {
		const n = 700
		first := 0
		j := newJob(tt.noise)
		h := New()
		for i := range 50 {
			h.Judge(j.window(j.others(i)...))
		}
		for i := range n {
			f, notes := j.cause(i, 5.4*(0.15+0.5*j.Float64()))
			others := j.others(j.IntN(20)) // concurrent activities
			if f.kind == breakdown.Checkpoint {
				others = j.others(5 * (1 + j.IntN(2)))
			}
			w := j.window(append(others, f)...)
			w.Notes = notes
			v, _ := h.Judge(w)
			if len(v.Causes) > 0 {
				require.Equal(t, f.kind, v.Causes[0].Kind, "%s: %s", name, v.Sentence)
				require.True(t, addsUp(t, v.Sentence), v.Sentence)
				if v.Causes[0].Who == f.who {
					first++
				} else {
					require.Empty(t, v.Causes[0].Who, "%s: %s", name, v.Sentence)
				}
				if notes != nil && v.Causes[0].Who.HasRank {
					require.Equal(t, notes[0], v.Causes[0].Note)
				}
			}
			for i := range 3 + j.IntN(10) {
				h.Judge(j.window(j.others(i)...))
			}
		}
		t.Logf("%s: %.2f %% named first", name, 100*float64(first)/n)
		assert.GreaterOrEqual(t, float64(first)/n, tt.named, name)
	}
}

var number = regexp.MustCompile(`(\d+(?:\.\d+)?) (s|ms)\b`)

// addsUp says whether the causes of a sentence add up to its excess, and the excess to the window's time beyond the usual, to the last digit.
func addsUp(t *testing.T, sentence string) bool {
	t.Helper()
	sum := func(of string) (all int64) { // µs
		for _, n := range number.FindAllStringSubmatch(of, -1) {
			f, err := strconv.ParseFloat(n[1], 64)
			require.NoError(t, err)
			all += int64(math.Round(f * map[string]float64{"s": 1e6, "ms": 1e3}[n[2]]))
		}
		return all
	}
	head, causes, _ := strings.Cut(parentheses.ReplaceAllString(sentence, ""), ": ")
	took, more, _ := strings.Cut(head, ", ")
	causes, rest, found := strings.Cut(causes, "; other parts took ")
	less, unexplained, _ := strings.Cut(rest, " less")
	if !found {
		less, unexplained = "", rest
	}
	usual := sum(sentence[strings.Index(sentence, "("):strings.Index(sentence, ")")])
	return sum(took) == usual+sum(more) && sum(more) == sum(causes)-sum(less)+sum(unexplained)
}

var parentheses = regexp.MustCompile(` \([^)]*\)`)

func exactly(*rand.Rand) float64 { return 1 }

func newJob(noise func(r *rand.Rand) float64) *job {
	return &job{Rand: rand.New(rand.NewPCG(1, 2)), noise: noise}
}

// seen is a history of 30 steps like those of the job.
func seen(j *job) *History {
	h := New()
	for range 30 {
		h.Judge(j.window())
	}
	return h
}

// known leaves one log of a window.
func known(w *Window, kind breakdown.Kind) {
	w.Breakdown.Known = [breakdown.Kinds]bool{}
	w.Breakdown.Known[kind] = true
}

// sentences are the expected sentences of steps with faults.
var sentences = map[string]struct {
	faults []fault
	change func(w *Window)
}{
	"Step 31 took 7.73 s, 2.31 s more than usual (5.42 s): 1.92 s waiting for rank 9 on node-1 in AllReduce of DP Group 0 " +
		"(its GPU 3 was held down by heat for 1.7 s), 300 ms in TransferQueue GET; 90 ms unexplained.": {
		[]fault{{breakdown.Wait, rank(9), 1.92}, {breakdown.Get, breakdown.Who{}, 0.3}, {breakdown.Put, breakdown.Who{}, 0.09}},
		func(w *Window) {
			w.Notes = []Note{{rank(9), "GPU 3 was held down by heat", 1.7}, {rank(8), "GPU 2 was held down by heat", 1.8}}
		},
	},
	"Step 31 took 6.92 s, 1.5 s more than usual (5.42 s): 1.5 s waiting for late ranks.": {
		[]fault{{breakdown.Wait, rank(3), 0.7}, {breakdown.Wait, rank(9), 0.8}}, nil,
	},
	"Step 31 took 7.42 s, 2 s more than usual (5.42 s): 2 s computing (rank 9 on node-1: GPU 3 was held down by heat for 1.7 s).": {
		[]fault{{breakdown.Compute, breakdown.Who{}, 2}},
		func(w *Window) { w.Notes = []Note{{rank(9), "GPU 3 was held down by heat", 1.7}} },
	},
	"Step 31 took 7.42 s, 2 s more than usual (5.42 s): 2 s computing; the logs do not say why: no single rank was late; " +
		"profile such a window, and check the clocks of the GPUs.": {
		[]fault{{breakdown.Compute, breakdown.Who{}, 2}}, nil,
	},
	"Step 31 took 7.42 s, 2 s more than usual (5.42 s); the logs do not say why: no log says when ranks reached their " +
		"collectives, so the late rank is not known; set NCCL_INSPECTOR_ENABLE=1 and NCCL_INSPECTOR_DUMP_VERBOSE=1.": {
		[]fault{{breakdown.Unattributed, breakdown.Who{}, 2}}, func(w *Window) { known(w, breakdown.Compute) },
	},
	"Step 31 took 7.42 s, 2 s more than usual (5.42 s): 2 s transferring in collectives; the logs do not say why: some " +
		"ranks do not log when they reached their collectives, so the late rank is not known; set NCCL_INSPECTOR_ENABLE=1 and " +
		"NCCL_INSPECTOR_DUMP_VERBOSE=1.": {
		[]fault{{breakdown.Collective, collectives[0], 2}}, func(w *Window) { known(w, breakdown.Collective) },
	},
	"Step 31 took 7.42 s, 2 s more than usual (5.42 s); the logs do not say why: the hosts' clocks are 250 ms apart, so " +
		"their logs cannot be aligned; set the clocks by NTP or PTP.": {
		[]fault{{breakdown.Unattributed, breakdown.Who{}, 2}}, func(w *Window) { w.Apart = 0.25 },
	},
	"Step 31 took 7.42 s, 2 s more than usual (5.42 s); the logs do not say why: no timers of the step, so loading data " +
		"and computing cannot be told apart; set --timing-log-level 2 in Megatron.": {
		[]fault{{breakdown.Unattributed, breakdown.Who{}, 2}}, func(w *Window) { known(w, breakdown.Wait); w.Trainer = "megatron" },
	},
	"Step 31 took 7.42 s, 2 s more than usual (5.42 s); the logs do not say why: no timers of the step, so loading data " +
		"and computing cannot be told apart; have the training loop log the time of loading data, such as data_time in JSON " + "lines.": {
		[]fault{{breakdown.Unattributed, breakdown.Who{}, 2}}, func(w *Window) { known(w, breakdown.Wait); w.Trainer = "hf" },
	},
	"Step 31 took 7.42 s, 2 s more than usual (5.42 s); the logs do not say why: no timers of the step, so loading data " +
		"and computing cannot be told apart; set \"wall_clock_breakdown\": true in DeepSpeed's configuration.": { // of one rank, not waited for
		[]fault{{breakdown.Unattributed, breakdown.Who{}, 2}}, func(w *Window) { known(w, breakdown.Get); w.Trainer, w.World = "deepspeed", 1 },
	},
	"Step 31 took 7.42 s, 2 s more than usual (5.42 s); the logs do not say why: all logs that could tell were read; " + "profile such a window.": {
		[]fault{{breakdown.Unattributed, breakdown.Who{}, 2}}, nil,
	},
	"Step 31 took 7.42 s, 2 s more than usual (5.42 s): 2 s waiting for RPC responses; the logs do not say why: the " +
		"server's time is not logged, so server and transport cannot be told apart; log the server's time.": {
		[]fault{{breakdown.RPCReceive, breakdown.Who{}, 2}}, func(w *Window) { known(w, breakdown.RPCReceive) },
	},
	"Step 31 took 7.42 s, 2 s more than usual (5.42 s): 2 s in RPCs, outside of their stages; the logs do not say why: " +
		"the rest of the pass is not logged; log the time of each stage.": {
		[]fault{{breakdown.RPCUnattributed, breakdown.Who{}, 2}}, nil,
	},
}

func TestSentences(t *testing.T) {
	for want, tt := range sentences {
		j := newJob(exactly)
		// The ranks waited for are the same in each step, so only the faults' change.
		j.steady = true
		h := seen(j)
		w := j.window(tt.faults...)
		if tt.change != nil {
			tt.change(w)
		}
		v, ok := h.Judge(w)
		assert.True(t, ok)
		assert.Equal(t, want, v.Sentence)
		assert.InDelta(t, w.Breakdown.Duration, v.Value, 0)
		assert.InDelta(t, 1.1*5.42, v.Threshold, 1e-9)
		sum := v.Unexplained
		for _, c := range v.Causes {
			sum += c.Seconds
		}
		assert.InDelta(t, v.Excess, sum, 1e-9)
	}
}

// Short windows use their own unit; the kind of a window decides the verdict's name.
func TestPass(t *testing.T) {
	h := New()
	window := func(send float64) *Window {
		b := &breakdown.Breakdown{Duration: 0.04 + send}
		b.Time[breakdown.RPCServer], b.Time[breakdown.RPCSend] = 0.04, send
		b.Known[breakdown.RPCServer], b.Known[breakdown.RPCSend] = true, true
		return &Window{Key: Key{Run: "run-1", Of: Pass}, Subject: "Pass 4", Breakdown: b}
	}
	for range 20 {
		_, ok := h.Judge(window(0.002))
		assert.False(t, ok)
	}
	v, ok := h.Judge(window(0.022))
	assert.True(t, ok)
	assert.Equal(t, "Pass 4 took 62 ms, 20 ms more than usual (42 ms): 20 ms sending RPC requests.", v.Sentence)
}

// The time between the functions of a batch is explained by the timers of its step.
func TestBatch(t *testing.T) {
	h, j := New(), newJob(exactly)
	j.steady = true
	window := func(faults ...fault) *Window {
		w := j.window(faults...)
		w.Of, w.Subject = Batch, "The batch"
		known(w, breakdown.Wait)
		return w
	}
	for range 20 {
		_, ok := h.Judge(window())
		assert.False(t, ok)
	}
	v, ok := h.Judge(window(fault{kind: breakdown.Unattributed, seconds: 2}))
	assert.True(t, ok)
	assert.Equal(t, "The batch took 7.42 s, 2 s more than usual (5.42 s); the logs do not say why: no timers of the step, so loading "+
		"data, checkpoint and evaluation cannot be told apart; log each training step with its timers.", v.Sentence)
}

// Checkpoints and evaluations are compared with earlier checkpoints and evaluations: the first few accuse nobody, regular ones are usual, unless longer, also
// in a step with both. They hide nothing else.
func TestCheckpoints(t *testing.T) {
	j := newJob(tails(0.01))
	h := seen(j)
	judge := func(faults ...fault) (Verdict, bool) {
		for range 9 {
			_, ok := h.Judge(j.window())
			assert.False(t, ok)
		}
		return h.Judge(j.window(faults...))
	}
	checkpoint := func(seconds float64) fault { return fault{kind: breakdown.Checkpoint, seconds: seconds} }
	evaluation := func(seconds float64) fault { return fault{kind: breakdown.Evaluation, seconds: seconds} }
	get := fault{kind: breakdown.Get, seconds: 3}

	v, ok := judge(checkpoint(4), get)
	assert.True(t, ok)
	assert.Equal(t, breakdown.Get, v.Causes[0].Kind)
	assert.Len(t, v.Causes, 1)
	for i := range leastRare - 1 {
		_, ok = judge(checkpoint(3 + 4*float64(i%2)))
		assert.False(t, ok)
	}
	for range 10 {
		_, ok = judge(checkpoint(3.8 + 0.4*j.Float64()))
		assert.False(t, ok)
	}
	v, ok = judge(checkpoint(9))
	assert.True(t, ok)
	assert.Equal(t, breakdown.Checkpoint, v.Causes[0].Kind)
	assert.InDelta(t, 5, v.Causes[0].Seconds, 0.3)
	assert.Contains(t, v.Sentence, "more than usual with a checkpoint (9.")
	v, ok = judge(checkpoint(4), get)
	assert.True(t, ok)
	assert.Equal(t, breakdown.Get, v.Causes[0].Kind)
	assert.Len(t, v.Causes, 1)

	_, ok = judge(checkpoint(4), evaluation(20))
	assert.False(t, ok)
	for range leastRare {
		_, ok = judge(evaluation(2))
		assert.False(t, ok)
	}
	_, ok = judge(checkpoint(4), evaluation(2))
	assert.False(t, ok)
	v, ok = judge(checkpoint(7), evaluation(2))
	assert.True(t, ok)
	assert.Equal(t, breakdown.Checkpoint, v.Causes[0].Kind)
	assert.Len(t, v.Causes, 1)
	assert.Contains(t, v.Sentence, "more than usual with a checkpoint and an evaluation (11.")
	v, ok = judge(checkpoint(4), evaluation(5))
	assert.True(t, ok)
	assert.Equal(t, breakdown.Evaluation, v.Causes[0].Kind)
	v, ok = judge(evaluation(5))
	assert.True(t, ok)
	assert.Contains(t, v.Sentence, "more than usual with an evaluation (7.")
}

// A rank late in every step is usual: a slow step has another cause.
func TestAlwaysLate(t *testing.T) {
	j, h := newJob(tails(0.01)), New()
	late := fault{breakdown.Wait, rank(5), 1}
	for range 40 {
		h.Judge(j.window(late))
	}
	v, ok := h.Judge(j.window(late, fault{breakdown.Get, breakdown.Who{}, 1}))
	assert.True(t, ok)
	assert.Equal(t, breakdown.Get, v.Causes[0].Kind)
	v, ok = h.Judge(j.window(late, fault{breakdown.Wait, rank(6), 1.5}))
	assert.True(t, ok)
	assert.Equal(t, rank(6), v.Causes[0].Who)

	what, ok := h.WhatIf("run-1")
	assert.True(t, ok)
	assert.EqualValues(t, 39, what.Steps)
	assert.Equal(t, breakdown.Who{Rank: 5, HasRank: true, Host: "node-0"}, what.Workers[0].Who)
	assert.InDelta(t, 1/5.4, what.Workers[0].Faster, 0.01)
}

// A log read from some step on takes its time from the unattributed time before: it explains nothing.
func TestNewLog(t *testing.T) {
	j := newJob(tails(0.01))
	h := seen(j)
	w := j.window(fault{breakdown.Compute, breakdown.Who{}, 1})
	b := w.Breakdown
	b.Time[breakdown.RPCSend], b.Known[breakdown.RPCSend] = 2, true
	b.Time[breakdown.Compute] -= 2
	v, ok := h.Judge(w)
	assert.True(t, ok)
	assert.Empty(t, v.Causes, v.Sentence)
}

// The first windows of a key, and all before ten were seen, are never slow. Windows of other keys are not compared.
func TestWarmUp(t *testing.T) {
	h, j := New(), newJob(exactly)
	for i := range warmUp + least {
		_, ok := h.Judge(j.window(fault{breakdown.Get, breakdown.Who{}, float64(10 * (i % 2))}))
		assert.False(t, ok)
	}
	w := j.window(fault{breakdown.Get, breakdown.Who{}, 100})
	w.Batch++
	_, ok := h.Judge(w)
	assert.False(t, ok)
}

// Live, too, the timer is named that took longer than usual, not the longest timer.
func TestTimersLive(t *testing.T) {
	j := newJob(tails(0.01))
	h := New()
	timed := func(w *Window, forward, optimizer float64) *Window {
		w.Timers = []Timer{{Name: "forward", Seconds: forward, Rank: -1}, {Name: "optimizer", Seconds: optimizer, Rank: -1}}
		return w
	}
	for range warmUp + 30 {
		h.Judge(timed(j.window(), 2, 1.6))
	}
	v, slow := h.Judge(timed(j.window(fault{breakdown.Compute, breakdown.Who{}, 1.5}), 2, 3.1))
	require.True(t, slow)
	require.Len(t, v.Causes, 1, v.Sentence)
	assert.Equal(t, "optimizer", v.Causes[0].Who.Timer, v.Sentence)
	v, slow = h.Judge(timed(j.window(fault{breakdown.Compute, breakdown.Who{}, 1.5}), 2, 1.6))
	require.True(t, slow)
	assert.Empty(t, v.Causes, "no timer has the time: %s", v.Sentence)
}

// Where all timers within computing took longer alike, no log of a late rank is missing: no part alone is slow.
func TestTimersAlike(t *testing.T) {
	timed := func(w *Window, forward, backward, optimizer float64) *Window {
		w.Timers = []Timer{{Name: "forward", Seconds: forward, Rank: -1}, {Name: "backward", Seconds: backward, Rank: -1}, {Name: "optimizer", Seconds: optimizer, Rank: -1}}
		w.Breakdown.Known[breakdown.Wait] = false
		return w
	}
	j, h := newJob(tails(0.01)), New()
	for range warmUp + 30 {
		h.Judge(timed(j.window(), 1.2, 1.8, 0.6))
	}
	longer := fault{breakdown.Compute, breakdown.Who{}, 3.6}
	v, slow := h.Judge(timed(j.window(longer), 2.4, 3.6, 1.2))
	require.True(t, slow)
	assert.Empty(t, v.Causes, v.Sentence)
	assert.Contains(t, v.Sentence, "all timers within computing grew alike")
	v, slow = h.Judge(timed(j.window(longer), 3, 3.6, 0.6))
	require.True(t, slow)
	assert.Equal(t, spans.ReasonArrivals, v.Reason.Of, v.Sentence)
}

// A window by the configuration is no step: its time is in that of a step already, and its record has no numbers of steps.
func TestNotAStep(t *testing.T) {
	h := New()
	b := &breakdown.Breakdown{Duration: 10}
	for range warmUp + 20 {
		h.Judge(&Window{Key: Key{Run: "run-1", Name: "handle_request"}, Number: -1, Breakdown: b})
	}
	_, ok := h.WhatIf("run-1")
	assert.False(t, ok)
	assert.Equal(t, "The step", (&Window{Key: Key{Steps: 10}, Number: -1}).subject())
}

// TestWhatIf compares with a run counted by hand: 10 s a step, with waits of 1 s for rank 1, and 0.5 s for rank 2.
func TestWhatIf(t *testing.T) {
	h := New()
	b := &breakdown.Breakdown{Duration: 10, Waits: []breakdown.Part{{Who: rank(1), Seconds: 1}, {Who: rank(2), Seconds: 0.5}}}
	b.Time[breakdown.Wait], b.Time[breakdown.Unattributed] = 1.5, 8.5
	for range warmUp + 20 {
		h.Judge(&Window{Key: Key{Run: "run-1"}, Ranks: 16, Breakdown: b})
	}
	got, ok := h.WhatIf("run-1")
	require.True(t, ok)
	assert.InDelta(t, 10/8.5, got.Slowdown, 1e-9)
	assert.InDelta(t, 10/8.5, Slowdown(b), 1e-9)
	require.Len(t, got.Workers, 2)
	assert.InDelta(t, 180, got.Workers[0].Without, 1e-9)
	assert.InDelta(t, 10.0/9-1, got.Workers[0].Faster, 1e-9)
	assert.InDelta(t, 1/1.5, got.Workers[0].Share, 1e-9)
	assert.InDelta(t, 10/9.5-1, got.Workers[1].Faster, 1e-9)
	assert.Equal(t, "Without rank 1 on node-0 the run would be 11.1% faster: 20 s of 200 s went by waiting for it, which is 66.7% of all waiting for late ranks.",
		got.Sentence())
	_, ok = h.WhatIf("run-2")
	assert.False(t, ok)
}

func TestCosts(t *testing.T) {
	j := newJob(exactly)
	j.steady = true
	h := seen(j)
	for range 3 {
		h.Judge(j.window(fault{breakdown.Wait, rank(9), 2}))
		h.Judge(j.window(fault{breakdown.Get, breakdown.Who{}, 3}))
	}
	h.Judge(j.window(fault{breakdown.Unattributed, breakdown.Who{}, 1}))
	costs := h.Costs("run-1")
	require.Len(t, costs, 3)
	for i, want := range []Cost{
		{breakdown.Get, breakdown.Who{}, 3, 9, 144},
		{breakdown.Wait, breakdown.Who{Rank: 9, HasRank: true, Host: "node-1"}, 3, 6, 96},
		{breakdown.Unattributed, breakdown.Who{}, 1, 1, 16},
	} {
		assert.Equal(t, want.Kind, costs[i].Kind)
		assert.Equal(t, want.Who, costs[i].Who)
		assert.Equal(t, want.Windows, costs[i].Windows)
		assert.InDelta(t, want.Seconds, costs[i].Seconds, 1e-9)
		assert.InDelta(t, want.GPUSeconds, costs[i].GPUSeconds, 1e-6)
	}
	assert.Equal(t, "96 GPU-seconds (6 s) waiting for rank 9 on node-1, in 3 windows", costs[1].Sentence())
	assert.Equal(t, "16 GPU-seconds (1 s) that no log explains, in 1 window", costs[2].Sentence())
	assert.Empty(t, h.Costs("run-2"))
}

// Histories are bounded in keys, runs, ranks, causes and notes.
func TestBounds(t *testing.T) {
	j := newJob(tails(0.01))
	h := seen(j)
	for i := range 1000 {
		w := j.window()
		w.Run, w.Batch = strconv.Itoa(i), int64(i)
		h.Judge(w)
	}
	assert.Equal(t, keys, h.series.Len())
	assert.LessOrEqual(t, h.runs.Len(), runs)

	h = seen(j)
	for i := range int64(maxBlames + 100) {
		w := j.window(fault{breakdown.Wait, rank(100 + i), 4})
		for n := range 100 {
			w.Notes = append(w.Notes, Note{rank(int64(n)), "note", float64(n)})
			w.Breakdown.Waits = append(w.Breakdown.Waits, breakdown.Part{Who: rank(1000 + 100*i + int64(n)), Seconds: 1e-6})
		}
		h.Judge(w)
		for range 2 {
			h.Judge(j.window())
		}
	}
	r, _ := h.runs.Get("run-1")
	assert.Len(t, r.workers, maxWorkers)
	assert.LessOrEqual(t, len(r.costs), maxBlames+1)
	s, _ := h.series.Get(Key{Run: "run-1", Steps: 1, Batch: 256})
	assert.Len(t, s.windows, kept)
	for _, p := range s.windows {
		assert.LessOrEqual(t, max(cap(p.ranks), cap(p.ops)), 2*few)
		assert.LessOrEqual(t, len(p.notes), few)
	}
}

func BenchmarkJudge(b *testing.B) {
	for name, faults := range map[string][]fault{"healthy": nil, "slow": {{breakdown.Wait, rank(9), 2}}} {
		b.Run(name, func(b *testing.B) {
			j := newJob(tails(0.01))
			h := seen(j)
			w, other := j.window(faults...), j.window()
			b.ReportAllocs()
			for b.Loop() {
				h.Judge(w)
				h.Judge(other) // keeps w from becoming usual
				h.Judge(other)
			}
		})
	}
}
