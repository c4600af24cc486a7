package account

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func second(n int64) int64 { return 1_790_000_000e9 + n*1e9 }

// whole holds the sum of the states against the wall clock, in ns.
func whole(t *testing.T, a *Account) {
	t.Helper()
	sum := int64(0)
	for s, seconds := range a.Seconds {
		require.GreaterOrEqual(t, seconds, 0.0, State(s))
		sum += int64(math.Round(seconds * 1e9))
	}
	if a.Clock {
		apart := int64(0)
		for _, g := range a.Apart {
			apart += g.End - g.Start
		}
		require.Equal(t, a.End-a.Start-apart, sum, "%v", a.Seconds)
	}
	require.InDelta(t, a.Wall, float64(sum)/1e9, 1e-9*a.Wall)
	require.False(t, math.IsNaN(a.Productive))
	require.GreaterOrEqual(t, a.Productive, 0.0)
	for _, of := range [...]float64{a.Goodput(), a.Google(), a.CRE(), a.ETTR()} {
		require.False(t, of < 0 || of > 1 || math.IsInf(of, 0), of)
	}
}

// accountOf is the account of a ledger, with its sum checked.
func accountOf(t *testing.T, l *Ledger) *Account {
	t.Helper()
	a, ok := l.Account()
	require.True(t, ok)
	whole(t, &a)
	return &a
}

// run adds steps of a number of s each.
func run(l *Ledger, at, first, last int64, of Step) int64 {
	for n := first; n <= last; n++ {
		s := of
		s.Number, s.Start, s.End = n, second(at), second(at+2)
		l.Add(s)
		at += 2
	}
	return at
}

func seconds(states map[State]float64) (all [States]float64) {
	for s, n := range states {
		all[s] = n
	}
	return all
}

// TestWholeSeconds: a log with stamps of whole seconds has two records of 0.8 s in some seconds. None is a copy, and none has a gap before.
func TestWholeSeconds(t *testing.T) {
	var l Ledger
	took, at := int64(800e6), second(0)
	for n := int64(10); n <= 1000; n += 10 {
		at += took
		end := at / 1e9 * 1e9
		add(&l, Step{Start: end - took, End: end, Number: n, Steps: 10})
	}
	a := accountOf(t, &l)
	assert.EqualValues(t, 1000, a.Steps)
	assert.InDelta(t, 0, a.Seconds[Unexplained], 1)
	assert.InDelta(t, 80, a.Seconds[InStep], 1)

	l = Ledger{} // a pause of 5 s remains one
	for n, end := range []int64{second(1), second(2), second(8), second(9)} {
		add(&l, Step{Start: end - 1e9, End: end, Number: int64(n), Steps: 1})
	}
	assert.InDelta(t, 5, accountOf(t, &l).Seconds[Unexplained], 1e-9)
}

// TestTypical: a log of medians tells not how long its steps took, though it has one step more.
func TestTypical(t *testing.T) {
	var l Ledger
	run(&l, 0, 1, 30, Step{Steps: 1, Source: 1, Typical: true})
	run(&l, 0, 2, 30, Step{Steps: 1, Source: 2})
	a := accountOf(t, &l)
	assert.EqualValues(t, 29, a.Steps)
}

// most is the capacity of the ledgers in these tests.
const most = 1 << 15

// add adds a step, and makes room.
func add(l *Ledger, s Step) Ref {
	if l.Len() >= most {
		l.Merge()
	}
	return l.Add(s)
}

func TestEmpty(t *testing.T) {
	var l Ledger
	l.Seen(second(0))
	l.Pause(Evaluation, second(0), second(1))
	_, ok := l.Account()
	assert.False(t, ok)
}

func TestNanoseconds(t *testing.T) {
	var l Ledger
	at := second(0)
	l.Seen(at - 7)
	for n := range int64(1000) {
		l.Add(Step{Number: n, Start: at, End: at + 1_000_000_003})
		at += 1_000_000_003 + n%7
	}
	l.Seen(at + 11)
	a := accountOf(t, &l)
	assert.Equal(t, seconds(map[State]float64{StartUp: 7e-9, InStep: 1000.000003, Unexplained: 2992e-9, AfterEnd: 16e-9}), a.Seconds) // 999 % 7 = 5, and 11 more
	assert.Equal(t, 1000, int(a.Steps))
	assert.Len(t, a.Attempts, 1)
}

// Of two logs of the same steps, as a trainer's standard output and standard error, the one without lengths of steps changes nothing, wherever its records are.
func TestLogWithoutLengths(t *testing.T) {
	for _, at := range []int64{0, 50, 1000} {
		var l Ledger
		run(&l, 0, 1, 60, Step{Steps: 1})
		for n := int64(1); n <= 60; n++ {
			add(&l, Step{Start: second(at), End: second(at), Number: n, Steps: 1, Writer: 1})
		}
		a := accountOf(t, &l)
		assert.InDelta(t, 120, a.Wall, 1e-9, at)
		assert.InDelta(t, 120, a.Seconds[InStep], 1e-9, at)
		assert.EqualValues(t, 60, a.Steps, at)
	}
}

// Logs of no clock have the times at which their files were last written: one that ended early is no attempt before the others. One that begins with a later
// step is of an attempt of its own.
func TestWritersWithoutClock(t *testing.T) {
	for first, redone := range map[int64]int64{1: 0, 20: 10} {
		var l Ledger
		run(&l, 1000, 1, 29, Step{Steps: 1, Writer: 1, Synthetic: true})
		run(&l, 1100, first, 80, Step{Steps: 1, Writer: 2, Synthetic: true})
		a := accountOf(t, &l)
		assert.EqualValues(t, 80, a.Steps)
		assert.Equal(t, redone, a.Redone)
	}
}

// Two writers of the same steps are no restart, even with one clock behind the other.
func TestTwoWriters(t *testing.T) {
	for name, behind := range map[string]int64{"at once": 0, "0.1 s": 1e8, "0.9 s": 9e8, "1.5 s": 15e8, "1.9 s": 19e8, "earlier": -15e8} {
		t.Run(name, func(t *testing.T) {
			var l Ledger
			for _, writer := range []int32{0, 1} {
				for n := int64(1); n <= 100; n++ {
					at := second(2*n) + int64(writer)*behind
					l.Add(Step{Number: n, Start: at, End: at + 2e9, Writer: writer})
				}
			}
			a := accountOf(t, &l)
			assert.Equal(t, 100, int(a.Steps))
			assert.Zero(t, a.Redone)
			assert.Len(t, a.Attempts, 1)
			assert.InDelta(t, 200, a.Wall, 2)
		})
	}
}

// Records of one step by many writers count once, also beyond the capacity of a ledger.
func TestManyWriters(t *testing.T) {
	const writers, steps = 4096, 200
	var l Ledger
	for n := range int64(steps) {
		for w := range int32(writers) {
			at := second(2*n) + int64(w)*1e3
			add(&l, Step{Number: n, Start: at, End: at + 2e9, Writer: w, Ranks: writers})
		}
	}
	a := accountOf(t, &l)
	assert.Equal(t, steps, int(a.Steps))
	assert.Zero(t, a.Redone)
	assert.Len(t, a.Attempts, 1)
	assert.Equal(t, writers, int(a.Ranks))
	assert.InDelta(t, 2*steps, a.Seconds[InStep], 0.1)
	assert.Zero(t, a.Seconds[Stalled])
}

// A crash after step 80, four minutes down including one of start-up, and on from step 71.
func TestRestart(t *testing.T) {
	for name, of := range map[string]Step{"the same writer": {}, "another file": {Writer: 1}, "a launcher's attempt": {Attempt: 1}} {
		t.Run(name, func(t *testing.T) {
			var l Ledger
			l.Seen(second(0))
			l.Begins(second(0))
			at := run(&l, 30, 1, 80, Step{})
			l.Begins(second(at + 240))
			at = run(&l, at+300, 71, 120, of)
			l.Seen(second(at + 5))
			a := accountOf(t, &l)
			assert.Equal(t, seconds(map[State]float64{StartUp: 30 + 60, InStep: 240, Redone: 20, Down: 240, AfterEnd: 5}), a.Seconds)
			require.Len(t, a.Attempts, 2)
			assert.Equal(t, []int64{1, 80, 80, 0}, []int64{a.Attempts[0].First, a.Attempts[0].Last, a.Attempts[0].Steps, a.Attempts[0].Redone})
			assert.Equal(t, []int64{71, 120, 50, 10}, []int64{a.Attempts[1].First, a.Attempts[1].Last, a.Attempts[1].Steps, a.Attempts[1].Redone})
			assert.Equal(t, 120, int(a.Steps))
			assert.Equal(t, 10, int(a.Redone))
			assert.InDelta(t, 240/a.Wall, a.Goodput(), 1e-9)
		})
	}
}

// A requeued job continues with the next step: it was down between the two, and no step was repeated. Steps that continue at once, and ends long before the
// pause, make no attempt.
func TestEnded(t *testing.T) {
	for _, c := range []struct {
		name         string
		ended, pause int64
		attempts     int
		of           State
	}{
		{"requeued", 160, 240, 2, Down},
		{"the clock is that of the line before", 158, 240, 2, Down},
		{"an end that was none", 160, 1, 1, Unexplained},
		{"an end of before", 60, 240, 1, Stalled},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l Ledger
			at := run(&l, 0, 1, 80, Step{})
			l.Ended(second(c.ended))
			run(&l, at+c.pause, 81, 120, Step{})
			a := accountOf(t, &l)
			assert.Equal(t, seconds(map[State]float64{InStep: 240, c.of: float64(c.pause)}), a.Seconds)
			assert.Len(t, a.Attempts, c.attempts)
			assert.Zero(t, a.Redone)
		})
	}
}

// Without a line of the new process all of the time between is down.
func TestDownWithoutAProcess(t *testing.T) {
	var l Ledger
	at := run(&l, 0, 1, 80, Step{})
	run(&l, at+300, 71, 120, Step{})
	a := accountOf(t, &l)
	assert.InDelta(t, 300, a.Seconds[Down], 1e-9)
	assert.Zero(t, a.Seconds[StartUp])
	assert.Equal(t, Down, a.Gaps[0].State)
	assert.Equal(t, 80, int(a.Gaps[0].After))
}

// Both writers go back after a restart; each repeated step counts once.
func TestRestartOfTwoWriters(t *testing.T) {
	for _, behind := range []int64{0, 3e8, 15e8} {
		var l Ledger
		for _, writer := range []int32{0, 1} {
			for n := int64(1); n <= 80; n++ {
				at := second(2*n) + int64(writer)*behind
				l.Add(Step{Number: n, Start: at, End: at + 2e9, Writer: writer})
			}
			for n := int64(71); n <= 120; n++ {
				at := second(400+2*n) + int64(writer)*behind
				l.Add(Step{Number: n, Start: at, End: at + 2e9, Writer: writer})
			}
		}
		a := accountOf(t, &l)
		assert.Equal(t, 120, int(a.Steps), behind)
		assert.Equal(t, 10, int(a.Redone), behind)
		assert.Len(t, a.Attempts, 2, behind)
	}
}

// A record's checkpoints after a step lie between the step and the next.
func TestPausesBehindSteps(t *testing.T) {
	var l Ledger
	at := int64(0)
	for n := int64(1); n <= 100; n++ {
		of := l.Add(Step{Number: n, Start: second(at), End: second(at + 2)})
		at += 2
		switch {
		case n%10 == 0:
			l.Part(of, Checkpoint, 40, true)
			at += 41
		case n%25 == 0:
			l.Evaluated(of)
			at += 7
		case n == 12:
			l.Part(of, Evaluation, 1, false)
		case n == 13: // longer than the step: after the step
			l.Part(of, Checkpoint, 5, false)
			at += 5
		case n == 14: // after the step too: the rest of the step leaves too little room
			l.Part(of, InStep, 1, false)
			l.Part(of, Evaluation, 1.5, false)
			at += 2
		}
	}
	a := accountOf(t, &l)
	assert.Equal(t, seconds(map[State]float64{InStep: 199, Checkpoint: 405, Evaluation: 1 + 1.5 + 2*7, Unexplained: 9.5}), a.Seconds)
	assert.Equal(t, 100, int(a.Steps))
	assert.Len(t, a.Of(Checkpoint), 11)
	assert.Equal(t, Pause{State: Checkpoint, After: 10, Seconds: 40, Between: true, At: Place{}}, a.Of(Checkpoint)[0])
	assert.InDelta(t, 199.0, a.Productive, 1) // the step with 5 s of checkpoint is one of 2 s
}

// Without time in the log a pause is cut: the pause ends as the next step begins, and the rest of a checkpoint is dropped.
func TestPausesThatDoNotFit(t *testing.T) {
	var l Ledger
	for n := range int64(10) {
		l.Part(l.Add(Step{Number: n, Start: second(3 * n), End: second(3*n + 2)}), Checkpoint, 100, true)
	}
	a := accountOf(t, &l)
	assert.Equal(t, seconds(map[State]float64{InStep: 20, Checkpoint: 9 + 100}), a.Seconds) // the whole pause after the last step
}

// The time behind a step is not that behind a later one, whose record by another writer came first.
func TestLateCopy(t *testing.T) {
	var l Ledger
	run(&l, 0, 1, 10, Step{})
	for n := range int64(10) {
		of := l.Add(Step{Number: n + 1, Start: second(2*n + 5), End: second(2*n + 7), Writer: 1})
		if n == 8 {
			l.Part(of, Evaluation, 100, true)
		}
	}
	assert.Equal(t, seconds(map[State]float64{InStep: 20}), accountOf(t, &l).Seconds)
}

// A checkpoint moves to the same step of another writer.
func TestCarriedCheckpoints(t *testing.T) {
	var l Ledger
	at := int64(0)
	for n := int64(1); n <= 40; n++ {
		l.Add(Step{Number: n, Start: second(at), End: second(at + 2)})
		of := l.Add(Step{Number: n, Start: second(at) + 1e8, End: second(at+2) + 1e8, Writer: 1})
		at += 2
		if n%10 == 0 {
			l.Part(of, Checkpoint, 30, true)
			at += 30
		}
	}
	a := accountOf(t, &l)
	assert.Equal(t, seconds(map[State]float64{InStep: 80, Checkpoint: 120}), a.Seconds)
	assert.Zero(t, a.Redone)
}

func TestStalledAndEvaluated(t *testing.T) {
	var l Ledger
	at := run(&l, 0, 1, 50, Step{})
	at = run(&l, at+600, 51, 100, Step{})
	l.Pause(Evaluation, second(at+5), second(at+25))
	at = run(&l, at+25, 101, 110, Step{})
	l.Pause(Evaluation, second(at+1), second(at+11))
	a := accountOf(t, &l)
	assert.Equal(t, seconds(map[State]float64{InStep: 220, Stalled: 600, Evaluation: 30, Unexplained: 5, AfterEnd: 1}), a.Seconds)
}

// Without a clock steps are back to back, and pauses are added.
func TestNoClock(t *testing.T) {
	var l Ledger
	l.Seen(second(-1000))
	for n := int64(1); n <= 20; n++ {
		of := l.Add(Step{Number: n, Start: second(2 * n), End: second(2*n + 2), Synthetic: true})
		if n%10 == 0 {
			l.Part(of, Checkpoint, 15, true)
		}
	}
	a := accountOf(t, &l)
	assert.False(t, a.Clock)
	assert.Equal(t, seconds(map[State]float64{InStep: 40, Checkpoint: 30}), a.Seconds)
	assert.InDelta(t, 70, a.Wall, 1e-9)
	assert.InDelta(t, 40.0/70, a.Goodput(), 1e-9)
}

// Of several logs of one training the account is of the one with most steps and a clock.
func TestSeveralLogs(t *testing.T) {
	var l Ledger
	run(&l, 0, 1, 100, Step{Source: 1})
	run(&l, 1, 1, 90, Step{Source: 2, Writer: 1})
	run(&l, 5000, 1, 500, Step{Source: 3, Writer: 2, Synthetic: true})
	a := accountOf(t, &l)
	assert.True(t, a.Clock)
	assert.Equal(t, 100, int(a.Steps))
	assert.InDelta(t, 200, a.Wall, 1e-9)
}

// Beyond the room, neighbours are put together, and nothing of the time is lost.
func TestBeyondRoom(t *testing.T) {
	const steps = 5*most + 12345
	var l Ledger
	at := second(0)
	checkpoints := 0
	for n := range int64(steps) {
		of := add(&l, Step{Number: n, Start: at, End: at + 1e9})
		at += 1e9
		if n%1000 == 999 {
			l.Part(of, Checkpoint, 10, true)
			at += 1e10
			checkpoints++
		}
	}
	assert.Greater(t, l.Len(), most/4, "most steps stay apart")
	a := accountOf(t, &l)
	assert.Equal(t, steps, int(a.Steps))
	assert.InDelta(t, steps, a.Seconds[InStep], 1e-3)
	assert.InDelta(t, 10*checkpoints, a.Seconds[Checkpoint], 1e-3)
	assert.Len(t, a.Attempts, 1)
	assert.InDelta(t, 1, a.Usual, 1e-6)
}

// Records are merged even where no two steps follow closely, and the run keeps its end.
func TestBeyondRoomFarApart(t *testing.T) {
	const steps = 3 * most / 2
	for name, number := range map[string]func(n int64) int64{
		"each tenth": func(n int64) int64 { return 10 * n }, "not numbered": func(int64) int64 { return -1 },
	} {
		t.Run(name, func(t *testing.T) {
			var l Ledger
			for n := range int64(steps) {
				add(&l, Step{Number: number(n), Start: second(10 * n), End: second(10*n + 2)})
			}
			a := accountOf(t, &l)
			assert.Equal(t, steps, int(a.Steps))
			assert.InDelta(t, 10*steps-8, a.Wall, 1)
			assert.Len(t, a.Attempts, 1)
		})
	}
}

func TestHostile(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	var l Ledger
	for _, s := range []Step{
		{Number: math.MaxInt64, Start: math.MaxInt64, End: math.MinInt64, Steps: math.MaxInt32, Checkpoint: float32(inf), EvaluationBehind: float32(nan)},
		{Number: math.MinInt64, Start: math.MinInt64, End: math.MaxInt64, Steps: -1, Ranks: -7, CheckpointBehind: float32(inf), Evaluation: -5},
		{Number: 7, Start: 5, End: 4, Steps: math.MaxInt32},
		{Number: 7, Start: 5, End: 6, Steps: math.MaxInt32, Attempt: math.MinInt32},
	} {
		of := l.Add(s)
		for _, seconds := range []float64{inf, nan, -1, 1e300, -inf} {
			l.Part(of, Checkpoint, seconds, false)
			l.Part(of, Evaluation, seconds, true)
		}
	}
	l.Pause(Evaluation, math.MinInt64, math.MaxInt64)
	l.Seen(math.MaxInt64)
	l.Seen(math.MinInt64)
	l.Begins(math.MinInt64)
	a, ok := l.Account()
	require.True(t, ok)
	for s, seconds := range a.Seconds {
		assert.GreaterOrEqual(t, seconds, 0.0, State(s))
		assert.Less(t, seconds, 1e11, State(s))
	}
}

// A log with runs appended weeks apart: each run has its own time, the time between is not accounted, and no step is repeated.
func TestRunsApart(t *testing.T) {
	var l Ledger
	l.Seen(second(-5))
	end := run(&l, 0, 1, 20, Step{Ranks: 8})
	l.Pause(Checkpoint, second(end), second(end+4))
	later := end + 20*24*3600
	l.Pause(Evaluation, second(later-2*24*3600), second(later-2*24*3600+9))
	l.Begins(second(later - 3))
	end = run(&l, later, 1, 30, Step{Ranks: 8})
	l.Seen(second(end + 1))
	a := accountOf(t, &l)
	assert.Equal(t, seconds(map[State]float64{StartUp: 5, InStep: 100, AfterEnd: 1}), a.Seconds)
	assert.Equal(t, seconds(map[State]float64{StartUp: 40, InStep: 800, AfterEnd: 8}), a.Devices)
	assert.Equal(t, int64(50), a.Steps)
	assert.Zero(t, a.Redone)
	assert.Len(t, a.Attempts, 2)
	assert.Len(t, a.Apart, 1)
	assert.InDelta(t, 100./106, a.Goodput(), 1e-9)
	assert.True(t, math.IsNaN(a.Google()) && math.IsNaN(a.CRE()))

	l.Seen(second(end + 30*24*3600)) // nor is a line weeks after the last step
	a = accountOf(t, &l)
	assert.Equal(t, seconds(map[State]float64{StartUp: 5, InStep: 100}), a.Seconds)

	var days Ledger // a repair takes days
	end = run(&days, 0, 1, 20, Step{})
	run(&days, end+3*24*3600, 15, 30, Step{})
	assert.InDelta(t, 3*24*3600, accountOf(t, &days).Seconds[Down], 0)

	var back Ledger // another run is appended within days, from its own first step
	end = run(&back, 0, 500, 520, Step{})
	run(&back, end+3600, 1, 30, Step{})
	a = accountOf(t, &back)
	assert.InDelta(t, 3600, a.Seconds[Down], 0)
	assert.Len(t, a.Attempts, 2)

	var none Ledger // steps without any time
	none.Add(Step{Number: 1, Synthetic: true})
	none.Part(none.Add(Step{Number: 2, Synthetic: true}), Evaluation, 7, true)
	_, ok := none.Account()
	assert.False(t, ok)
}

// The checkpoint in the last of a step's micro-batches is no time of the step; one that is longer than the micro-batch came after the step.
func TestCheckpointInMicroBatch(t *testing.T) {
	for took, want := range map[float32]struct{ checkpoint, inStep float64 }{
		1: {30, 90},
		5: {150, 120},
	} {
		var l Ledger
		at := int64(0)
		for n := range int64(30) {
			at = run(&l, at, n, n, Step{})
			at = run(&l, at, n, n, Step{Checkpoint: took})
			if took == 5 {
				at += 5
			}
		}
		a := accountOf(t, &l)
		assert.Equal(t, int64(30), a.Steps)
		assert.InDelta(t, want.checkpoint, a.Seconds[Checkpoint], 0)
		assert.InDelta(t, want.inStep, a.Seconds[InStep], 0)
	}
}

// A loop that logs each micro-batch with the number of its step has not repeated any step.
func TestMicroBatches(t *testing.T) {
	var l Ledger
	at := int64(0)
	for n := range int64(30) {
		for range 4 {
			at = run(&l, at, n, n, Step{})
		}
	}
	a := accountOf(t, &l)
	assert.Equal(t, int64(30), a.Steps)
	assert.Zero(t, a.Redone)
	assert.Len(t, a.Attempts, 1)
	assert.InDelta(t, 240, a.Seconds[InStep], 0)
	assert.InDelta(t, 1, a.Goodput(), 1e-9)

	run(&l, at+30, 29, 40, Step{}) // a restart that goes back to the last step
	a = accountOf(t, &l)
	assert.Len(t, a.Attempts, 2)
	assert.Equal(t, int64(1), a.Redone)
}

// The clock of another host may be apart: how long its log goes on behind its own last step counts, not when by its clock.
func TestEdgesOfOtherClocks(t *testing.T) {
	ledger := func() *Ledger {
		l := new(Ledger)
		for n := range int64(100) {
			l.Add(Step{Number: n, Start: second(n), End: second(n + 1)})
		}
		return l
	}
	l := ledger()
	l.Began(second(-185), 5e9) // 3 minutes behind, and 5 s before its steps
	l.Over(second(100+540+2), 2e9)
	a := accountOf(t, l)
	assert.Equal(t, seconds(map[State]float64{StartUp: 5, InStep: 100, AfterEnd: 2}), a.Seconds)

	l = ledger() // a host that died halfway, and whose log ends before the others
	l.Over(second(60), 30e9)
	a = accountOf(t, l)
	assert.Equal(t, seconds(map[State]float64{InStep: 100}), a.Seconds)

	l = ledger() // a log whose records have no clock
	l.Over(second(107), -1)
	a = accountOf(t, l)
	assert.Equal(t, seconds(map[State]float64{InStep: 100, AfterEnd: 7}), a.Seconds)
}

func TestClocksOfRanksApart(t *testing.T) {
	// Four ranks log 50 steps of 2 s; the clock of one host is wrong.
	for name, ahead := range map[string]int64{"behind": -420, "ahead": 420, "ahead within the run": 30, "set": 0} {
		t.Run(name, func(t *testing.T) {
			var l Ledger
			for rank := range int32(4) {
				l.Rank(rank, int64(rank))
				at, last := int64(0), int64(50)
				if rank == 2 {
					at, last = ahead, 51 // its last record came first
				}
				run(&l, at, 1, last, Step{Writer: rank, Steps: 1})
			}
			a := accountOf(t, &l)
			assert.Equal(t, seconds(map[State]float64{InStep: 102}), a.Seconds)
			assert.Len(t, a.Attempts, 1)
			assert.Zero(t, a.Redone)
		})
	}
	t.Run("with a restart", func(t *testing.T) {
		var l Ledger
		for rank := range int32(2) {
			l.Rank(rank, int64(rank))
			at := run(&l, int64(rank)*300, 1, 50, Step{Writer: rank, Steps: 1})
			run(&l, at+100, 41, 60, Step{Writer: rank, Steps: 1})
		}
		a := accountOf(t, &l)
		assert.Equal(t, seconds(map[State]float64{InStep: 120, Redone: 20, Down: 100}), a.Seconds)
		assert.Len(t, a.Attempts, 2)
	})
	t.Run("another rank goes on from a checkpoint", func(t *testing.T) { // the last rank logs, and the job has become smaller
		var l Ledger
		l.Rank(0, 63)
		l.Rank(1, 55)
		at := run(&l, 0, 1, 50, Step{Writer: 0, Steps: 1})
		run(&l, at+100, 41, 60, Step{Writer: 1, Steps: 1})
		a := accountOf(t, &l)
		assert.Equal(t, seconds(map[State]float64{InStep: 120, Redone: 20, Down: 100}), a.Seconds)
	})
}

// Steps of 2.2 s in a log whose stamps are cut to whole seconds: a second is the most that may look like pauses.
func TestStepsLongerThanTheirStamps(t *testing.T) {
	var l Ledger
	for n := range int64(100) {
		end := second((n + 1) * 22 / 10)
		l.Add(Step{Number: n, Start: end - 2_200_000_000, End: end})
	}
	assert.LessOrEqual(t, accountOf(t, &l).Seconds[Unexplained], 1.0)
}

// Hugging Face's rows behind stamps of kubectl logs have times, and no durations: nothing between them is a pause.
func TestRowsWithoutDurations(t *testing.T) {
	var l Ledger
	for n := range int64(100) {
		l.Add(Step{Number: n, Start: second(n * 65), End: second(n * 65)})
	}
	_, ok := l.Account()
	assert.False(t, ok)
}
