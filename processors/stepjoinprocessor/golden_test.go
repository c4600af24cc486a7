package stepjoinprocessor

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goldenJobs are jobs with their golden files.
var goldenJobs = map[string]struct {
	want string
	job  func(j *job)
}{
	"a step whose line comes after its batch, with collectives and a pass": {"step.yaml", func(j *job) { aStep(j, 7, 1000*second) }},
	"passes of a worker's process, of another one on its host, and of another host": {"process.yaml", func(j *job) {
		batch := spans.KeyTraceID(j.run, "uuid")
		j.function(batch, "generate_sequences", 100, 1000*second, second, 3*second, second)
		j.call("Matmul", 100, "node-0", 1001*second, 1002*second)
		j.call("Embedding", 999, "node-0", 1002*second, 1003*second)
		j.call("Softmax", 5, "node-1", 1002*second, 1003*second)
	}},
	"a step of which two ranks tell, a checkpoint and an evaluation": {"ranks.yaml", func(j *job) {
		for rank := range int64(2) {
			j.rankStep(7, rank, 1000*second, (1010-rank)*second)
		}
		j.part(spans.StepTraceID(j.run, 7), "save-checkpoint", 1000*second, 1004*second)
		j.part(spans.StepTraceID(j.run, 7), "all-grads-sync", 1004*second, 1005*second)
	}},
	"the last of many steps was slow": {"slow_step.yaml", func(j *job) {
		for n := range int64(15) {
			end := 1004 + 10*n
			if n == 14 {
				end += 2
			}
			trace := j.step(n, (1000+10*n)*second, end*second)
			j.part(trace, "data_loading", (1000+10*n)*second, (end-3)*second)
		}
	}},
	"the last of many batches was slow": {"slow_batch.yaml", func(j *job) {
		for n := range int64(15) {
			get := second / 2
			if n == 14 {
				get += 2 * second
			}
			batch := spans.KeyTraceID(j.run, "uuid", fmt.Appendf(nil, "%d", n))
			j.function(batch, "generate_sequences", 100, (1000+10*n)*second, get, 3*second, second/4)
		}
	}},
	"the last of many passes was slow": {"slow_pass.yaml", func(j *job) {
		for n := range int64(15) {
			end := 1001 + 10*n
			if n == 14 {
				end++
			}
			j.pass(n, (1000+10*n)*second, end*second)
		}
	}},
}

// TestGolden compares the spans added to the traces of jobs with golden files.
func TestGolden(t *testing.T) {
	for name, tt := range goldenJobs {
		t.Run(name, func(t *testing.T) {
			b, j := newBench(t, func(c *Config) { c.Slowest = 1 }), newJob()
			tt.job(j)
			require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
			passed := b.sink.SpanCount()
			b.sink.Reset()
			b.over(t)
			assert.Positive(t, passed)
			added := ptrace.NewTraces()
			for _, td := range b.sink.AllTraces() {
				td.ResourceSpans().MoveAndAppendTo(added.ResourceSpans())
			}
			path := filepath.Join("testdata", tt.want)
			if *update {
				require.NoError(t, golden.WriteTracesToFile(path, added))
			}
			want, err := golden.ReadTraces(path)
			require.NoError(t, err)
			require.NoError(t, ptracetest.CompareTraces(want, added, ptracetest.IgnoreSpansOrder()))
		})
	}
}

// call is a group of calls of a process, in a trace of its own.
func (j *job) call(method string, pid int64, host string, start, end int64) {
	trace := spans.KeyTraceID(j.run, "call", []byte(method))
	j.out.Add(spans.Resource{Service: "zeromq", RunID: j.run, System: spans.RPCSystemZeroMQ, PID: pid, Host: host, Time: spans.TimeLogged}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, "calls"), Name: spans.SpanRPCCalls, Is: spans.KindCalls, Kind: ptrace.SpanKindInternal, Start: start, End: end,
		Source: spans.TimeLogged,
	})
}

// rankStep is one rank's span of a step.
func (j *job) rankStep(n, rank, start, end int64) {
	trace := spans.StepTraceID(j.run, n)
	id := spans.SpanID(trace, "step")
	if rank > 0 {
		id = spans.SpanID(trace, "step", []byte{byte(rank)})
	}
	s := j.out.Add(spans.Resource{Service: "train", RunID: j.run, Time: spans.TimeDerived}, spans.Span{
		Trace: trace, ID: id, Name: spans.SpanStep, Kind: ptrace.SpanKindInternal, Start: start, End: end, Source: spans.TimeDerived,
	})
	s.Attributes().PutInt(spans.AttrIteration, n)
	s.Attributes().PutInt(spans.AttrRank, rank)
}
