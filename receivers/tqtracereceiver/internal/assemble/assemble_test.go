package assemble_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/assemble"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/tqline"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ledger is a tail.Stream that checks the contract: a line is held at most once and released exactly once.
type ledger struct {
	t    testing.TB
	next tail.Held
	held map[tail.Held]bool
	last int // Hold calls for the current line
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	return &ledger{t: t, held: map[tail.Held]bool{}}
}

func (l *ledger) Hold() tail.Held {
	if l.last++; l.last > 1 {
		l.t.Fatal("a line held twice")
	}
	l.next++
	l.held[l.next] = true
	return l.next
}

func (l *ledger) Release(h tail.Held) {
	if !l.held[h] {
		l.t.Fatalf("line %d released but not held", h)
	}
	delete(l.held, h)
}

func (*ledger) Place() tail.Place { return 0 }

// rig passes text lines to an assembler.
type rig struct {
	*assemble.Assembler
	ledger *ledger
	t      testing.TB
	procs  map[int64]*assemble.Proc
	base   assemble.Base
	line   tqline.Line
	fates  [4]int
	seq    int64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	l := newLedger(t)
	a := assemble.New(l)
	a.Out = &assemble.Out{}
	return &rig{Assembler: a, ledger: l, t: t, procs: map[int64]*assemble.Proc{}}
}

func (r *rig) proc(pid int64) *assemble.Proc {
	p := r.procs[pid]
	if p == nil {
		a := &clock.Anchor{}
		a.Observe(0, 0) // wall = counter, so that tests read the same numbers
		p = assemble.NewProc("", pid, a)
		r.procs[pid] = p
	}
	return p
}

// add takes a line as printed by a process with a known pid (0: unknown).
func (r *rig) add(pid int64, text string) assemble.Fate {
	require.NoError(r.t, tqline.Parse([]byte(text), &r.line), text)
	r.seq++
	r.ledger.last = 0
	f := r.Add(
		&r.line,
		&assemble.At{Proc: r.proc(pid), Base: r.base, T: r.line.Timestamp, Wall: r.line.Timestamp, Since: r.seq, Source: spans.TimeDerived, Raw: r.line.RawTime},
	)
	r.fates[f]++
	return f
}

func (r *rig) end() {
	r.Expire(1 << 62)
	assert.Empty(r.t, r.ledger.held, "lines still held after everything has left")
	assert.Zero(r.t, r.Open)
}

// call is the true course of a function call, in µs.
type call struct {
	pid                                         int64
	fn                                          string
	start, get0, get1, comp0, comp1, put0, put1 int64
	cget0, cget1, cput0, cput1                  int64
	put                                         bool
	id                                          string
	lines                                       []timed
}

type timed struct {
	at   int64
	text string
}

func us(v int64) string { return fmt.Sprintf("%d.%06d", v/1e6, v%1e6) }

// print writes the call's lines with the exact f-strings of verl, with the rounding noise of ±1 µs of real durations.
func (c *call) print(r *rand.Rand, detail bool) {
	noise := func() int64 { return r.Int64N(3) - 1 }
	add := func(at int64, format string, args ...any) {
		c.lines = append(c.lines, timed{at, fmt.Sprintf(format, args...)})
	}
	tr := "[TQ-TRACE] trace_id=" + c.id + " | func=" + c.fn
	de := "[TQ-DETAIL] trace_id=" + c.id
	add(c.start, "%s | pid=%d | stage=FUNCTION_START | timestamp=%s", tr, c.pid, us(c.start))
	add(c.get0, "%s | stage=GET_START | batch_size=32 | timestamp=%s", tr, us(c.get0+noise()))
	if detail {
		add(c.cget0, "%s | stage=TQ_CLIENT_GET_START | batch_size=32 | timestamp=%s", de, us(c.cget0))
		add(c.cget1, "%s | stage=TQ_CLIENT_GET_END | duration=%ss | data_size_mb=1.58 | timestamp=%s", de, us(c.cget1-c.cget0), us(c.cget1))
	}
	add(c.get1, "%s | stage=GET_END | duration=%ss | timestamp=%s", tr, us(c.get1-c.get0), us(c.get1))
	add(c.comp0, "%s | stage=COMPUTE_START | timestamp=%s", tr, us(c.comp0+noise()))
	add(c.comp1, "%s | stage=COMPUTE_END | duration=%ss | timestamp=%s", tr, us(c.comp1-c.comp0), us(c.comp1))
	if !c.put {
		return
	}
	add(c.put0, "%s | stage=PUT_START | timestamp=%s", tr, us(c.put0+noise()))
	if detail {
		add(
			c.cput0-10, "%s | func=%s | pid=%d | stage=TQ_CLIENT_PUT_START | batch_size=torch.Size([32]) | data_size_mb=12.63 | timestamp=%s", de, c.fn, c.pid,
			us(c.cput0-10),
		)
		add(
			c.cput1, "%s | func=%s | pid=%d | stage=TQ_CLIENT_PUT_END | duration=%ss | throughput_mbps=152.49 | timestamp=%s", de, c.fn, c.pid, us(c.cput1-c.cput0),
			us(c.cput1),
		)
	}
	add(c.put1, "%s | stage=PUT_END | duration=%ss | timestamp=%s", tr, us(c.put1-c.put0), us(c.put1))
	add(
		c.put1, "%s | stage=FUNCTION_END | total_duration=%ss | get_ratio=1.00%% | compute_ratio=2.00%% | put_ratio=3.00%% | timestamp=%s", tr,
		us(c.put1-c.start), us(c.put1),
	)
}

// loops are the event loops of processes: code without an await occupies its loop.
type loops struct {
	busy  map[int64]int64 // until when, by pid
	queue []event
}

type event struct {
	at int64
	do func(now int64)
}

// push plans f; f returns its time on the loop.
func (l *loops) push(pid, at int64, f func(now int64) int64) {
	i, _ := slices.BinarySearchFunc(l.queue, at, func(e event, t int64) int { return cmp.Compare(e.at, t+1) })
	l.queue = slices.Insert(l.queue, i, event{at, func(now int64) {
		now = max(now, l.busy[pid])
		l.busy[pid] = now + f(now)
	}})
}

func (l *loops) run() {
	for len(l.queue) > 0 {
		e := l.queue[0]
		l.queue = l.queue[1:]
		e.do(e.at)
	}
}

// simulate runs n calls in event loops: within one pid, code between two awaits (START after END) is not interrupted.
func simulate(r *rand.Rand, n, concurrency int, pids []int64, detail, noPut bool) []*call {
	calls := make([]*call, 0, n)
	l := loops{busy: map[int64]int64{}}
	started := 0
	var begin func(pid int64, now int64)
	begin = func(pid, now int64) {
		if started == n {
			return
		}
		started++
		c := &call{pid: pid, id: "N/A", fn: "generate_sequences", put: !noPut || r.IntN(4) > 0}
		if r.IntN(5) == 0 {
			c.fn = "compute_reward"
		}
		calls = append(calls, c)
		run := func(at int64, f func(now int64) int64) { l.push(pid, at, f) }
		run(now, func(now int64) int64 {
			c.start, c.get0 = now, now+15+r.Int64N(20)
			c.cget0 = c.get0 + 8 + r.Int64N(5)
			run(c.cget0+500+r.Int64N(60_000), func(now int64) int64 {
				c.cget1, c.get1 = now, now+40+r.Int64N(100)
				c.comp0 = c.get1 + 8 + r.Int64N(10)
				run(c.comp0+1000+r.Int64N(900_000), func(now int64) int64 {
					c.comp1 = now
					if !c.put {
						begin(pid, now+100+r.Int64N(2000))
						return 20
					}
					c.put0 = now + 15 + r.Int64N(20)
					c.cput0 = c.put0 + 25 + r.Int64N(10)
					run(c.cput0+300+r.Int64N(90_000), func(now int64) int64 {
						c.cput1, c.put1 = now, now+8+r.Int64N(5)
						begin(pid, now+100+r.Int64N(2000))
						return c.put1 - now + 20
					})
					return c.cput0 - now + 20
				})
				return c.comp0 - now + 20
			})
			return c.cget0 - now + 20
		})
	}
	for _, pid := range pids {
		for range concurrency {
			begin(pid, 98_231_402_113+r.Int64N(3000))
		}
	}
	l.run()
	for _, c := range calls {
		c.print(r, detail)
	}
	return calls
}

func replay(r *rig, calls []*call, prefixed bool) {
	type printed struct {
		timed
		pid int64
	}
	var all []printed
	for _, c := range calls {
		for _, l := range c.lines {
			all = append(all, printed{l, c.pid})
		}
	}
	slices.SortStableFunc(all, func(x, y printed) int { return cmp.Compare(x.at, y.at) })
	for _, l := range all {
		pid := int64(0)
		if prefixed {
			pid = l.pid
		}
		r.add(pid, l.text)
	}
}

type interval struct{ a, b int64 }

func (c *call) truth(detail bool) (fn interval, stages []interval, ops []interval) {
	fn = interval{c.start, c.comp1}
	stages = []interval{{c.get0, c.get1}, {c.comp0, c.comp1}}
	if c.put {
		fn.b = c.put1
		stages = append(stages, interval{c.put0, c.put1})
	}
	if detail {
		ops = append(ops, interval{c.cget0, c.cget1})
		if c.put {
			ops = append(ops, interval{c.cput0, c.cput1})
		}
	}
	return fn, stages, ops
}

// check compares the output with the truth, function by function.
func check(t *testing.T, r *rig, calls []*call, detail bool) {
	t.Helper()
	require.Len(t, r.Out.Functions, len(calls))
	require.Empty(t, r.Out.Lone)
	type id struct {
		pid   int64
		fn    string
		start int64
	}
	byStart := map[id]*call{}
	for _, c := range calls {
		byStart[id{c.pid, c.fn, c.start}] = c
	}
	keys := map[string]bool{}
	for i := range r.Out.Functions {
		f := &r.Out.Functions[i]
		c := byStart[id{f.PID, f.Name, f.Start / 1000}]
		if !assert.NotNil(t, c, "no call of %d starts at %d", f.PID, f.Start/1000) {
			continue
		}
		delete(byStart, id{f.PID, f.Name, f.Start / 1000})
		keys[fmt.Sprint(f.PID, f.Name, string(f.Key.Bytes()))] = true
		wantFn, wantStages, wantOps := c.truth(detail)
		var stages, ops []interval
		for _, s := range f.Stages {
			if s.Known {
				stages = append(stages, interval{s.Start / 1000, s.End / 1000})
				assert.Empty(t, s.Incomplete)
			}
		}
		for _, o := range r.Out.Ops[f.OpsFrom:f.OpsTo] {
			ops = append(ops, interval{o.Start / 1000, o.End / 1000})
			assert.Empty(t, o.Incomplete)
		}
		require.Equal(t, wantFn, interval{f.Start / 1000, f.End / 1000})
		require.Equal(t, wantStages, stages)
		require.Equal(t, wantOps, ops)
		if c.put {
			assert.Empty(t, f.Incomplete)
		} else {
			assert.Equal(t, assemble.ReasonNoFunctionEnd, f.Incomplete)
		}
	}
	assert.Len(t, keys, len(calls), "keys must differ")
}

func TestEveryCallComesOutExactly(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 7))
		for name, tt := range map[string]struct {
			pids     []int64
			conc     int
			prefixed bool
			detail   bool
			noPut    bool
		}{
			"one pid, one at a time":      {pids: []int64{7}, conc: 1, detail: true},
			"one pid, no prefix":          {pids: []int64{7}, conc: 1 + r.IntN(40), detail: true},
			"one pid, hundreds at once":   {pids: []int64{7}, conc: 400, detail: true},
			"no detail, some without put": {pids: []int64{7}, conc: 8, noPut: true},
			"some without put":            {pids: []int64{7}, conc: 8, detail: true, noPut: true},
			"pids with prefix":            {pids: []int64{7, 8, 9, 10}, conc: 6, prefixed: true, detail: true, noPut: true},
		} {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				calls := simulate(r, 1000, tt.conc, tt.pids, tt.detail, tt.noPut)
				rig := newRig(t)
				replay(rig, calls, tt.prefixed)
				rig.end()
				check(t, rig, calls, tt.detail)
				assert.Zero(t, rig.fates[assemble.Late]+rig.fates[assemble.Duplicate]+rig.fates[assemble.TooMany])
			})
		}
	}
}

// Several processes in one file without prefixes: events of two processes within the same microseconds cannot be distinguished, so only calls at a distance are
// certain.
func TestPidsWithoutPrefix(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	calls := simulate(r, 1000, 1, []int64{7, 8, 9, 10}, true, false)
	var times []interval
	for i, c := range calls {
		for _, at := range []int64{c.start, c.cget1, c.comp1, c.cput1} {
			times = append(times, interval{at, int64(i)})
		}
	}
	slices.SortFunc(times, func(x, y interval) int { return cmp.Compare(x.a, y.a) })
	blurred := map[int64]bool{}
	for i := 1; i < len(times); i++ {
		if times[i].a-times[i-1].a < 300 {
			blurred[times[i].b], blurred[times[i-1].b] = true, true
		}
	}
	require.Less(t, len(blurred), 300)
	rig := newRig(t)
	replay(rig, calls, false)
	rig.end()
	got := map[interval]bool{}
	for i := range rig.Out.Functions {
		f := &rig.Out.Functions[i]
		if f.Incomplete == "" && f.Stages[0].Known && f.Stages[1].Known && f.Stages[2].Known && f.OpsTo-f.OpsFrom == 2 {
			got[interval{f.Start / 1000, f.End / 1000}] = true
		}
	}
	for i, c := range calls {
		if !blurred[int64(i)] {
			fn, _, _ := c.truth(true)
			assert.True(t, got[fn], "call %d", i)
		}
	}
}

func TestRandomOrderConservesLines(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 9))
		calls := simulate(r, 60, 1+r.IntN(6), []int64{7}, true, true)
		var lines []string
		for _, c := range calls {
			for _, l := range c.lines {
				if r.IntN(10) > 0 { // lost
					lines = append(lines, l.text)
				}
				if r.IntN(10) == 0 { // twice
					lines = append(lines, l.text)
				}
			}
		}
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		rig := newRig(t)
		for _, l := range lines {
			rig.add(0, l)
		}
		rig.end()
	}
}

// Any order, any loss, any repetition: nothing panics, and every held line is released once.
func FuzzAssembler(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 3))
	var pool []string
	for _, c := range simulate(r, 12, 3, []int64{7, 8}, true, true) {
		for _, l := range c.lines {
			pool = append(pool, l.text)
		}
	}
	for _, op := range []string{"TQ_GET", "TQ_PUT", "TQ_CLEAR"} {
		pool = append(pool, "[TQ-LOG] op="+op+" | func=f | stage=START", "[TQ-LOG] op="+op+" | func=f | stage=END | duration=0.5s")
	}
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Add([]byte{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0})
	f.Add([]byte{0, 0, 250, 1, 255, 1, 5, 5, 251, 120, 121, 252, 122, 123, 253, 1, 2, 3})
	f.Fuzz(func(t *testing.T, in []byte) {
		rig := newRig(t)
		pid := int64(0)
		for _, b := range in {
			switch {
			case b >= 252:
				rig.base = assemble.Base(b - 252)
			case b == 251:
				rig.Expire(rig.seq - 5)
			case b == 250:
				rig.Break("", pid)
			case b == 249:
				pid ^= 7
			default:
				rig.add(pid, pool[int(b)%len(pool)])
			}
		}
		rig.end()
		for i := range rig.Out.Functions {
			if fn := &rig.Out.Functions[i]; len(fn.Key.Bytes()) < 2 && rig.base == assemble.Perf {
				t.Fatalf("function without a key: %+v", fn)
			}
		}
	})
}

func TestManyOpenAtOnce(t *testing.T) {
	rig := newRig(t)
	const n = 120_000 // more than are kept
	for i := range n {
		rig.add(0, fmt.Sprintf("[TQ-TRACE] trace_id=N/A | func=f | pid=1 | stage=FUNCTION_START | timestamp=%d.5", i))
	}
	assert.Len(t, rig.Out.Functions, n-100_000, "the oldest leave")
	for i := n - 1; i >= n-100_000; i-- {
		rig.add(0, fmt.Sprintf("[TQ-TRACE] trace_id=N/A | func=f | stage=FUNCTION_END | total_duration=%d.0s | timestamp=%d.5", i%9, i+i%9))
	}
	rig.end()
	assert.Len(t, rig.Out.Functions, n)
}

// A log with an id per call leaves many groups behind, and few of them are kept.
func TestManyTraces(t *testing.T) {
	rig := newRig(t)
	for i := range 5000 {
		rig.add(0, fmt.Sprintf("[TQ-TRACE] trace_id=%d | func=f | pid=1 | stage=FUNCTION_START | timestamp=%d.5", i, i))
		rig.add(0, fmt.Sprintf("[TQ-TRACE] trace_id=%d | func=f | stage=FUNCTION_END | total_duration=0.1s | timestamp=%d.6", i, i))
	}
	assert.Equal(t, assemble.Duplicate, rig.add(0, "[TQ-TRACE] trace_id=4999 | func=f | pid=1 | stage=FUNCTION_START | timestamp=4999.5"))
	rig.end()
	assert.Len(t, rig.Out.Functions, 5000)
}

// Two processes whose stages begin within microseconds, distinguished only by FUNCTION_START. The second is the last before the first's next START, so that
// each call gets records of the other until their ends decide.
func TestCallsThatCrossAreUntangled(t *testing.T) {
	type times struct{ start, get0, get1, comp0, comp1, put0, put1 int64 }
	for name, c := range map[string][2]times{
		"at GET_START":            {{1000, 1020, 21000, 21010, 90000, 90010, 95000}, {1009, 1031, 25000, 25010, 80000, 80010, 99000}},
		"starts within tolerance": {{1000, 1020, 21000, 21010, 90000, 90010, 95000}, {1003, 1024, 25000, 25010, 80000, 80010, 99000}},
		"at COMPUTE_START":        {{1000, 1020, 21000, 21012, 90000, 90010, 95000}, {5000, 5020, 21007, 21019, 80000, 80010, 99000}},
		"at PUT_START":            {{1000, 1020, 21000, 21010, 80000, 80012, 95000}, {5000, 5020, 25000, 25010, 80007, 80019, 99000}},
	} {
		t.Run(name, func(t *testing.T) {
			us := func(v int64) string { return fmt.Sprintf("%d.%06d", v/1e6, v%1e6) }
			var lines []timed
			for i, x := range c {
				add := func(at int64, format string, args ...any) {
					lines = append(lines, timed{at, fmt.Sprintf("[TQ-TRACE] trace_id=N/A | func=f | "+format, args...) + " | timestamp=" + us(at)})
				}
				add(x.start, "pid=%d | stage=FUNCTION_START", i+1)
				add(x.get0, "stage=GET_START | batch_size=%d", i+10)
				add(x.get1, "stage=GET_END | duration=%s", us(x.get1-x.get0))
				add(x.comp0, "stage=COMPUTE_START")
				add(x.comp1, "stage=COMPUTE_END | duration=%s", us(x.comp1-x.comp0))
				add(x.put0, "stage=PUT_START")
				add(x.put1, "stage=PUT_END | duration=%s", us(x.put1-x.put0))
				add(x.put1, "stage=FUNCTION_END | total_duration=%s", us(x.put1-x.start))
			}
			slices.SortStableFunc(lines, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
			rig := newRig(t)
			for _, l := range lines {
				rig.add(0, l.text)
			}
			assert.Zero(t, rig.Open)
			rig.end()
			require.Len(t, rig.Out.Functions, 2)
			for _, f := range rig.Out.Functions {
				x := c[f.PID-1]
				got := times{f.Start, f.Stages[0].Start, f.Stages[0].End, f.Stages[1].Start, f.Stages[1].End, f.Stages[2].Start, f.Stages[2].End}
				for _, p := range []*int64{&got.start, &got.get0, &got.get1, &got.comp0, &got.comp1, &got.put0, &got.put1} {
					*p /= 1000
				}
				assert.Equal(t, x, got, "pid %d", f.PID)
				assert.Equal(t, x.put1*1000, f.End)
				assert.Equal(t, f.PID+9, f.BatchSize)
				assert.Empty(t, f.Incomplete)
				assert.Equal(t, "s"+us(x.start), string(f.Key.Bytes()))
			}
		})
	}
}

// In a log without a clock the order of the lines is the order of the events: an operation behind a function that has left is not of that function. With a
// clock an operation of another process is not, either.
func TestOperationBehindItsFunction(t *testing.T) {
	r := newRig(t)
	r.base = assemble.None
	for _, text := range []string{
		"[TQ-TRACE] trace_id=N/A | func=f | stage=FUNCTION_START | pid=1",
		"[TQ-TRACE] trace_id=N/A | func=f | stage=GET_START",
		"[TQ-TRACE] trace_id=N/A | func=f | stage=GET_END | duration=1s",
		"[TQ-TRACE] trace_id=N/A | func=f | stage=FUNCTION_END | total_duration=2s",
		"[TQ-DETAIL] trace_id=N/A | func=f | stage=TQ_CLIENT_GET_START",
		"[TQ-DETAIL] trace_id=N/A | func=f | stage=TQ_CLIENT_GET_END | duration=1s",
	} {
		assert.Equal(t, assemble.Used, r.add(0, text), text)
	}
	r.end()
	assert.Len(t, r.Out.Lone, 1)

	r = newRig(t)
	for _, text := range []string{
		"[TQ-TRACE] trace_id=N/A | func=f | stage=FUNCTION_START | pid=1 | timestamp=10.000000",
		"[TQ-TRACE] trace_id=N/A | func=f | stage=GET_START | timestamp=10.000001",
		"[TQ-TRACE] trace_id=N/A | func=f | stage=GET_END | duration=1s | timestamp=11.000001",
		"[TQ-TRACE] trace_id=N/A | func=f | stage=FUNCTION_END | total_duration=2s | timestamp=12.000000",
		"[TQ-DETAIL] trace_id=N/A | func=f | stage=TQ_CLIENT_GET_END | pid=2 | duration=0.5s | timestamp=10.700000",
	} {
		assert.Equal(t, assemble.Used, r.add(0, text), text)
	}
	assert.Equal(t, assemble.Late, r.add(0, "[TQ-DETAIL] trace_id=N/A | stage=TQ_CLIENT_GET_END | pid=1 | duration=0.5s | timestamp=10.800000"))
	r.end()
	assert.Len(t, r.Out.Lone, 1)
}
