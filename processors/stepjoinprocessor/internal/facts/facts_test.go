package facts

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
	"github.com/trainbridge/trainbridge/spans"
)

const (
	odd    = int64(1001) // a time with more than whole seconds or milliseconds
	second = int64(time.Second)
)

var now = time.Unix(1_800_000_000, 0)

type built struct {
	*Run
	groups map[string]*Group
}

func newBuilt() *built { return &built{NewRun("run"), map[string]*Group{}} }

// window adds a window to a group: times in seconds.
func (b *built) window(group string, kind WindowKind, start, end float64, edit ...func(*Window)) {
	g := b.Group(spans.KeyTraceID("run", group), "service")
	b.groups[group] = g
	w := Window{
		Kind: kind, Span: spans.SpanID(g.ID, fmt.Sprint(group, start, end, len(g.Windows))), Start: odd + int64(start*1e9), End: odd + int64(end*1e9),
		Number: -1, Steps: 1,
	}
	for _, f := range edit {
		f(&w)
	}
	b.AddWindow(g, w, now)
}

func at(b *built, host string, pid int32) func(*Window) {
	return func(w *Window) { w.Host, w.PID = b.Number(host), pid }
}

func (b *built) name(g *Group) string {
	for name, of := range b.groups {
		if of == g {
			return name
		}
	}
	return ""
}

type resolved struct {
	name      string
	build     func(b *built)
	host      string
	pid       int32
	start     float64
	end       float64
	observed  bool
	want, by  string
	ambiguous bool
}

func promise(b *built, group string) { b.groups[group].Promised = true }

var places = []resolved{
	{name: "the step that holds it", build: func(b *built) {
		b.window("one", Step, 0, 10)
		b.window("two", Step, 10, 20)
	}, start: 11, end: 12, want: "two", by: spans.JoinByRun},
	{name: "over the edge of two", build: func(b *built) {
		b.window("one", Step, 0, 10)
		b.window("two", Step, 10, 20)
	}, start: 9.5, end: 10.5},
	{name: "within the tolerance of both", build: func(b *built) {
		b.window("one", Step, 0, 10)
		b.window("two", Step, 10, 20)
	}, start: 10, end: 10.0005, ambiguous: true, by: spans.JoinByRun},
	{name: "a batch in a step", build: func(b *built) {
		b.window("step", Step, 0, 10)
		b.window("batch", Function, 1, 5, at(b, "n", 1))
		b.window("batch", Function, 2, 9, at(b, "n", 2))
		promise(b, "batch")
	}, start: 1.5, end: 8, want: "batch", by: spans.JoinByRun},
	{name: "two steps that overlap, in a window that holds both", build: func(b *built) {
		b.window("one", Step, 0, 10)
		b.window("two", Step, 5, 15)
		b.window("epoch", Other, 0, 100)
	}, start: 6, end: 7, want: "epoch", by: spans.JoinByRun, ambiguous: true},
	{name: "two of the same time", build: func(b *built) {
		b.window("one", Step, 0, 10)
		b.window("two", Step, 0, 10)
	}, start: 6, end: 7, by: spans.JoinByRun, ambiguous: true},
	{name: "its process", build: func(b *built) {
		b.window("step", Step, 0, 10)
		b.window("mine", Function, 1, 9, at(b, "n", 1))
		b.window("other", Function, 2, 8, at(b, "n", 2))
	}, host: "n", pid: 1, start: 3, end: 4, want: "mine", by: spans.JoinByPID},
	{name: "the same process number on another host", build: func(b *built) {
		b.window("other", Function, 1, 9, at(b, "m", 1))
	}, host: "n", pid: 1, start: 3, end: 4},
	{name: "its host", build: func(b *built) {
		b.window("step", Step, 0, 10)
		b.window("call", Function, 1, 9, at(b, "n", 2))
	}, host: "n", start: 3, end: 4, want: "call", by: spans.JoinByHost},
	{name: "a call of one process holds nothing of no host", build: func(b *built) {
		b.window("call", Function, 1, 9, at(b, "n", 2))
	}, start: 3, end: 4},
	{name: "a step of another host", build: func(b *built) {
		b.window("step", Step, 0, 10, at(b, "m", 0))
	}, host: "n", start: 3, end: 4},
	{name: "made-up times hold nothing", build: func(b *built) {
		b.window("step", Step, 0, 10, func(w *Window) { w.Flags = Timeless })
	}, start: 3, end: 4},
	{name: "an end alone holds nothing", build: func(b *built) {
		b.window("step", Step, 0, 10, func(w *Window) { w.Flags = Point })
	}, start: 3, end: 4},
	{name: "stamps of whole seconds", build: func(b *built) {
		b.window("step", Step, 0, 10, func(w *Window) { w.Start, w.End = 0, 10*second })
	}, start: 9, end: 10.8, want: "step", by: spans.JoinByRun},
	{name: "stamps of nanoseconds", build: func(b *built) {
		b.window("step", Step, 0, 10)
	}, start: 9, end: 10.8},
	{name: "times of arrival", build: func(b *built) {
		b.window("step", Step, 0, 10)
	}, start: 9, end: 10.8, observed: true, want: "step", by: spans.JoinByRun},
	{name: "a pass by the arrival of its lines", build: func(b *built) {
		b.window("step", Step, 0, 10)
		b.window("late pass", Pass, 9.7, 10.2, func(w *Window) { w.Flags = Observed })
	}, start: 9, end: 9.2, want: "step", by: spans.JoinByRun},
}

func TestResolve(t *testing.T) {
	for _, tt := range places {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilt()
			tt.build(b)
			b.Sort()
			v := Resolver{Tolerance: time.Millisecond}
			g, by, ambiguous := v.Resolve(b.Run, Place{
				Start: odd + int64(tt.start*1e9), End: odd + int64(tt.end*1e9), Host: b.Number(tt.host), PID: tt.pid, Observed: tt.observed,
			})
			assert.Equal(t, tt.want, b.name(g))
			assert.Equal(t, tt.by, by)
			assert.Equal(t, tt.ambiguous, ambiguous)
		})
	}
}

// A span repeated after a crash counts once, in small groups and in large groups, and among leaves without a group.
func TestTwice(t *testing.T) {
	b := newBuilt()
	b.window("step", Step, 0, 10)
	g := b.groups["step"]
	for range 2 {
		for i := range int64(200) {
			l := Leaf{Trace: g.ID, Span: spans.SpanID(g.ID, strconv.FormatInt(i, 10)), Start: odd + i, End: odd + i + 1, Kind: breakdown.Get}
			b.AddOwn(g, l, now)
			l.Trace = pcommon.TraceID{1}
			b.AddLeaf(l, now)
		}
	}
	assert.Len(t, g.Own, 200)
	b.Sort()
	n := 0
	b.EachLeaf(0, second, func(*Leaf) { n++ })
	assert.Equal(t, 200, n)
}

// Dropped facts free their memory.
func TestForget(t *testing.T) {
	b := newBuilt()
	empty := b.Bytes()
	for i := range 100 {
		b.window(fmt.Sprint("g", i), Step, float64(i), float64(i+1))
		g := b.groups[fmt.Sprint("g", i)]
		b.AddOwn(g, Leaf{Span: spans.SpanID(g.ID, "own"), Start: g.Start, End: g.End}, now)
		b.AddLeaf(Leaf{Span: spans.SpanID(g.ID, "leaf"), Start: g.Start, End: g.End}, now.Add(time.Duration(i)*time.Second))
	}
	full := b.Bytes()
	b.Sort()
	require.Len(t, b.Open(), 100)
	for _, g := range b.Open()[:50] {
		b.Close(g, now)
	}
	require.Len(t, b.Open(), 50)
	assert.Equal(t, full, b.Bytes())
	b.Forget(now.Add(40 * time.Second))
	b.Sort()
	assert.Len(t, b.Groups, 50)
	assert.Equal(t, 60, b.Leaves())
	assert.Equal(t, odd+40*second, b.Lost, "a step that comes later lacks them")
	b.Shed(10)
	assert.Equal(t, 50, b.Leaves())
	assert.Equal(t, odd+50*second, b.Lost)
	for _, g := range b.Open() {
		b.Close(g, now)
	}
	assert.Positive(t, b.ShedGroups(1<<40))
	b.Shed(1000)
	b.Sort()
	assert.Empty(t, b.Groups)
	assert.Equal(t, empty, b.Bytes())
}

// The oldest leaves are dropped, also those that came since the last Sort.
func TestShedUnsorted(t *testing.T) {
	b := newBuilt()
	for _, end := range []int64{30, 40, 10} {
		b.AddLeaf(Leaf{Span: pcommon.SpanID{byte(end)}, Start: end * second, End: (end + 1) * second}, now)
	}
	b.Shed(1)
	assert.Equal(t, 11*second, b.Lost)
	assert.Equal(t, 30*second, b.Leaf(0).Start)
}

// Steps of a run without other facts become groups once another fact comes.
func TestMix(t *testing.T) {
	r := NewRun("run")
	for i := range int64(mostPlain + 10) {
		require.True(t, r.AddPlain(pcommon.TraceID{byte(i), byte(i >> 8), 1}, Window{Kind: Step, Span: pcommon.SpanID{1}, Start: i, End: i + 1}, "s", now))
	}
	assert.Empty(t, r.Groups)
	r.Mix()
	assert.Len(t, r.Groups, mostPlain/2+10)
	assert.False(t, r.AddPlain(pcommon.TraceID{9}, Window{}, "s", now))
}

// A run has only steps until another fact comes; a promise of the last process is one.
func TestOnlySteps(t *testing.T) {
	r := NewRun("run")
	step := Window{Kind: Step, Span: pcommon.SpanID{1}, Start: 1, End: 2}
	r.AddWindow(r.Group(pcommon.TraceID{1}, "s"), step, now)
	assert.True(t, r.OnlySteps())
	r.Mix()
	assert.False(t, r.OnlySteps())
	restored := NewRun("run")
	restored.Restore(restored.Group(pcommon.TraceID{1}, "s"), step, false, now)
	assert.False(t, restored.OnlySteps())
}

// Finished logs are unread from the time on that the slowest source has reached, until its end.
func TestUnread(t *testing.T) {
	r := NewRun("run")
	assert.EqualValues(t, math.MaxInt64, r.Unread())
	r.Advance("a", 10, now)
	r.Advance("b", 30, now)
	assert.EqualValues(t, 10, r.Unread())
	r.Ended("a")
	assert.EqualValues(t, 30, r.Unread())
	r.Ended("b")
	assert.EqualValues(t, math.MaxInt64, r.Unread())
}

// A source that reads old logs is waited for; a source behind at the pace of time has another clock.
func TestBehind(t *testing.T) {
	r := NewRun("run")
	r.Advance("fast", 100*second, now)
	r.Advance("late clock", 100*second, now)
	for i := range int64(5) {
		at := now.Add(time.Duration(i+1) * time.Second)
		r.Advance("fast", (100+60*(i+1))*second, at)
		r.Advance("late clock", (101+i)*second, at)
	}
	at := now.Add(6 * time.Second)
	assert.False(t, r.Behind(300*second, at, 10*time.Second))
	assert.True(t, r.Behind(500*second, at, 10*time.Second))
	assert.False(t, r.Behind(500*second, at.Add(time.Minute), 10*time.Second), "it has come to its end")
}

// Steps of a run without other facts are dropped in time, all of them if old.
func TestForgetPlain(t *testing.T) {
	r := NewRun("run")
	empty := r.Bytes()
	for i := range int64(3) {
		r.AddPlain(pcommon.TraceID{1}, Window{Kind: Step, Start: i, End: i + 1}, "s", now.Add(time.Duration(i)*time.Second))
	}
	r.Forget(now.Add(2 * time.Second))
	assert.Equal(t, empty+plainBytes, r.Bytes())
	r.Forget(now.Add(time.Hour))
	assert.Equal(t, empty, r.Bytes())
}

// Leaves are in order after each Sort, for any order of arrival.
func TestSortLeaves(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := NewRun("run")
	for i := range 500 {
		for range random.IntN(5) {
			r.AddLeaf(Leaf{Span: pcommon.SpanID{byte(i), byte(random.IntN(9))}, Start: int64(i) - random.Int64N(50)}, now)
		}
		if random.IntN(20) == 0 {
			r.Shed(random.IntN(10))
		}
		r.Sort()
		require.True(t, slices.IsSortedFunc(r.leaves, compareLeaves))
	}
	require.Greater(t, r.Leaves(), 500)
}

// A leaf that comes late, after 100,000.
func BenchmarkLateLeaf(b *testing.B) {
	r := NewRun("run")
	for i := range int64(100_000) {
		r.AddLeaf(Leaf{Start: i}, now)
	}
	late := int64(0)
	for b.Loop() {
		late++
		r.AddLeaf(Leaf{Start: 99_000 + late%1000}, now)
		r.Sort()
	}
}

// A run whose first word of a source is none of its beginning came by another partition before: partitions were added.
func TestPartitionsAdded(t *testing.T) {
	b := newBuilt()
	b.Partition = "otlp_spans/7"
	b.Watermark(&Watermark{Source: "otlp_nccl/1", Epoch: 1, Number: 1, First: true})
	assert.Zero(t, b.Lost)
	b.Watermark(&Watermark{Source: "otlp_nccl/0", Epoch: 1, Number: 9, Until: 20 * second, Sent: 10 * second})
	assert.Equal(t, 10*second, b.Lost)
	assert.Equal(t, spans.PartialRestart, b.LostBy)
}
