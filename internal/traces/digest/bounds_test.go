package digest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// All figures of jobs, in eleven digits: the last few of a sum may differ with the order.
func figures(jobs *Jobs) string {
	var b strings.Builder
	line := func(a ...any) { fmt.Fprintln(&b, a...) }
	values := func(name string, v *Values) {
		line(name, v.Count(), fmt.Sprintf("%.11g %.11g %.11g %.11g %.11g %.9g", v.Sum(), v.Min(), v.Quantile(0.5), v.Quantile(0.95), v.Max(), v.Std()))
	}
	for _, j := range jobs.Rows() {
		line("job", j.Run, j.Services, j.Hosts, j.Spans, j.First, j.Last)
		figuresOfCalls(j, line, values)
		for _, f := range j.Functions.Rows() {
			line(f.Name, f.Incomplete, f.WithoutID, f.Verdicts, f.Slowest)
			values("took", &f.Took)
			for i := range f.Stages {
				values("stage", &f.Stages[i])
			}
		}
		for _, o := range j.Functions.Operations() {
			line(o.Stage, o.Incomplete, o.Slowest)
			values("size", &o.Size)
			values("throughput", &o.Throughput)
		}
		for _, l := range j.Steps.Rows() {
			line(l.Name, l.Records, l.Covered, l.First, l.Last, l.Lowest, l.Slowest)
			for i := range l.Measures {
				values("measure", &l.Measures[i].Values)
				for _, bucket := range l.Measures[i].Over.Buckets() {
					line(bucket.At, bucket.Count, bucket.Min, bucket.Max)
				}
			}
		}
		for _, o := range append(j.Collectives.Operations(), j.Collectives.Rows()...) {
			line(o.Communicator, o.Operation, o.Count, o.Incomplete, o.Slowest, o.Latest, o.Last)
			for _, v := range []*Values{&o.Took, &o.Bus, &o.Algorithm, &o.Late, &o.Records.Took, &o.Records.Bandwidth} {
				values("collectives", v)
			}
			for power := range 64 {
				line(power, o.Sizes[power].Count, o.Sizes[power].Bytes)
			}
		}
		start, width, n := j.Collectives.Columns()
		line(start, width, n)
		for _, r := range j.Collectives.Ranks() {
			line(r.Communicator, r.Rank, r.Host, r.Records, r.Last, r.Late.Count(), r.Late.Max())
			for _, l := range r.Over {
				line(l.Count, l.Max)
			}
		}
		for _, v := range j.Verdicts.Rows() {
			line(v.Name, v.Severity, v.Count, v.Worst)
		}
	}
	return b.String()
}

func figuresOfCalls(j *Job, line func(...any), values func(string, *Values)) {
	c := &j.Passes.Calls
	values("calls", &c.Took)
	for i := range c.Stages {
		values("stage", &c.Stages[i])
	}
	for _, of := range append(c.Slowest, c.Largest...) {
		line(of.At, of.Of.ID, of.Of.Stages)
	}
	for _, m := range c.Methods() {
		values(m.Name, &m.Took)
	}
	line(j.Passes.Count, len(j.Passes.Newest()), j.Passes.Middle(), j.Passes.Sum())
}

// Consumers are concurrent, and files are read in parallel: the order of messages is chance. Within a message parents come before their children.
func TestAnyOrder(t *testing.T) {
	m := newJobLike()
	var messages []ptrace.Traces
	cut := func() {
		messages = append(messages, m.Traces())
		m.Batch = spans.NewBatch("test", "")
	}
	for i := range int64(300) {
		m.step(i * 1000)
		m.step(i * 997)
		m.function(i % 8)
		m.collective(i%7 + 1)
		if i%3 == 0 {
			m.pass()
		}
		if i%2 == 0 {
			cut()
		}
	}
	random := rand.New(rand.NewPCG(5, 6))
	sum := func() string {
		j := New()
		for _, td := range messages {
			j.Batch(td)
		}
		return figures(j)
	}
	first := sum()
	for range 3 {
		random.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
		require.Equal(t, first, sum())
	}
}

// heap is how much memory lives, By.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// The memory of a job of a million spans is bounded: the values of the budget, and some megabytes.
func TestBounded(t *testing.T) {
	m, j := newJobLike(), New()
	flush := func() {
		j.Batch(m.Traces())
		m.Batch = spans.NewBatch("test", "")
	}
	before := heap()
	for i := range int64(100_000) {
		m.step(i)
		m.function(i % 64)
		if i%1000 == 0 {
			m.pass()
			m.collective(256)
			flush()
		}
	}
	flush()
	job := j.Rows()[0]
	assert.Greater(t, job.Spans, int64(800_000))
	assert.Less(t, heap()-before, 8*budget+16.*(1<<20))
	assert.Equal(t, int64(100_000), job.Steps.Rows()[0].Records)
	assert.Equal(t, int64(32), job.Steps.Rows()[0].Measures[Loss].Over.Width)
}

// With endless names and steps far apart memory is bounded, and names without room are counted as other.
func TestHostile(t *testing.T) {
	m, j := newJobLike(), New()
	before := heap()
	for i := range int64(40_000) {
		res := spans.Resource{
			Service: fmt.Sprint("service", i), RunID: fmt.Sprint("run", i%8), Host: fmt.Sprint("host", i), Time: spans.TimeLogged, Source: fmt.Sprint("source", i),
		}
		trace, start, name := m.trace(), base+i*i*1000, fmt.Sprint("name", i)
		add := func(name, kind string) pcommon.Map {
			m.n++
			return m.Add(res, spans.Span{Trace: trace, ID: spanID(m.n), Name: name, Is: kind, Start: start, End: start + i, Source: spans.TimeLogged}).Attributes()
		}
		add(name, spans.KindFunction).PutStr(spans.AttrTQTraceID, name)
		add(name, spans.KindCall).PutInt(spans.AttrZMQRequestSize, i)
		add(name, spans.KindPass).PutEmptySlice(spans.AttrVerdict).AppendEmpty().SetStr(name)
		add(name, spans.KindBreakdown).PutDouble(spans.StepTimePrefix+name, 1)
		a := add(spans.SpanStep, spans.KindStep)
		a.PutDouble(spans.AttrLoss, float64(i))
		a.PutInt(spans.AttrIteration, i*i*i*i)
		a = add(name, spans.KindCollective)
		a.PutStr(spans.AttrNCCLCommName, name)
		a.PutInt(spans.AttrNCCLLateRank, i)
		a.PutStr(spans.AttrNCCLLateHost, name)
		a.PutEmptySlice(spans.AttrNCCLLinkSlow).AppendEmpty().SetStr(name + "→" + name)
		a.PutInt(spans.AttrNCCLCommRank, i)
		a.PutDouble(spans.AttrNCCLLateMax, 1)
		if i%100 == 99 {
			j.Batch(m.Traces())
			m.Batch = spans.NewBatch("test", "")
		}
	}
	jobs := j.Rows()
	require.Len(t, jobs, 8)
	assert.Less(t, heap()-before, (120+16)*float64(1<<20), "digests, and the ledgers of their accounts")
	job := jobs[slices.IndexFunc(jobs, func(j *Job) bool { return j.Run == "run3" })]
	assert.Equal(t, int64(30_000), job.Spans)
	functions := job.Functions.Rows()
	assert.Len(t, functions, mostDistributed+1)
	other := functions[slices.IndexFunc(functions, func(f *Function) bool { return f.Name == Other })]
	assert.Equal(t, int64(4000), other.Took.Count(), "of 5,000, a thousand have a name")
}

func TestTop(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{1, 5, 1000} {
		var top Top[view.Int]
		var all []Ranked[view.Int]
		res := &resource{offset: -1}
		for i := range 3000 {
			s := ptrace.NewSpan()
			s.SetStartTimestamp(pcommon.Timestamp(random.IntN(10)))
			s.SetTraceID(pcommon.TraceID{byte(i), byte(i >> 8)})
			weight := float64(random.IntN(500))
			for range 2 { // a copy counts once
				if of := top.add(n, weight, s, res); of != nil {
					of.N = int64(i)
				}
			}
			all = append(all, Ranked[view.Int]{Weight: weight, At: res.at(s), Of: view.Int{N: int64(i)}})
		}
		slices.SortFunc(all, func(a, b Ranked[view.Int]) int {
			if a.Weight != b.Weight {
				return int(b.Weight - a.Weight)
			}
			return a.compare(&b.At)
		})
		assert.Equal(t, all[:n], []Ranked[view.Int](top))
	}
}

// A key whose copy is cut, or is that of a full table before, finds the same value again.
func TestCutKey(t *testing.T) {
	var in table[string, Total]
	name := strings.Repeat("n", textLimit+1)
	for _, k := range []string{name, "b", name, "b"} {
		in.findOrMake(k, Other, Most, func(k string) (string, *Total) { return shortText(k), new(Total) }).Add(1)
	}
	assert.Len(t, in.by, 2)
	assert.Equal(t, int64(2), in.by[shortText(name)].Count())
}
