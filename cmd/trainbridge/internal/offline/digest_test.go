package offline_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Logs as described in the documents, read by the code of the commands: the figures equal a script's on the written numbers.

// read sums up logs, by name, of a single job.
func read(t *testing.T, logs map[string]string) *digest.Job {
	t.Helper()
	dir := t.TempDir()
	for name, text := range logs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	in, err := offline.Open([]string{dir}, new(bytes.Reader))
	require.NoError(t, err)
	defer in.Close()
	jobs := digest.New()
	traces, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		jobs.Batch(td)
		return nil
	})
	require.NoError(t, err)
	metrics, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		jobs.Metrics(md)
		return nil
	})
	require.NoError(t, err)
	_, err = offline.Read(t.Context(), in, offline.Options{Positions: true}, offline.Sink{Traces: traces, Metrics: metrics})
	require.NoError(t, err)
	rows := jobs.Rows()
	require.Len(t, rows, 1)
	return rows[0]
}

// sample is a script's list of numbers.
type sample []float64

func (s sample) sum() (sum float64) {
	for _, x := range s {
		sum += x
	}
	return sum
}

// percentile is numpy's.
func (s sample) percentile(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	at := q / 100 * float64(len(sorted)-1)
	low := int(at)
	if low+1 == len(sorted) {
		return sorted[low]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// equal holds values against a sample, whose numbers are in another unit.
func equal(t *testing.T, want sample, unit float64, got *digest.Values, of string) {
	t.Helper()
	require.Equal(t, int64(len(want)), got.Count(), of)
	near := func(want, got float64) { assert.InDelta(t, unit*want, got, 1e-9*unit*want, of) }
	near(want.sum(), got.Sum())
	near(want.sum()/float64(len(want)), got.Mean())
	for _, q := range []float64{0, 10, 50, 95, 99, 100} {
		near(want.percentile(q), got.Quantile(q/100))
	}
}

type rpc struct {
	method                                      string
	serialize, send, receive, deserialize, rest int64 // µs
	sent, received                              float64
}

func (c *rpc) total() int64 { return c.serialize + c.send + c.receive + c.deserialize + c.rest }

// 99 calls warm up; then the numbers begin anew, as in TSQP's logs.
func TestRPCLog(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var log strings.Builder
	log.WriteString("ZeroMQ Performance Log - Transport: IPC\n" + strings.Repeat("=", 120) + "\n")
	log.WriteString("ID    Method               Serialize(ms)   Send(ms)     Recv(ms)     Deserialize(ms)   Total(ms)    Sent(KB)     Recv(KB)     Throughput(MB/s)  \n")
	log.WriteString(strings.Repeat("=", 120) + "\n")
	var calls []rpc
	row := func(id int, method string) {
		us := func(most int64) int64 { return 1 + random.Int64N(most) }
		c := rpc{method, us(3000), us(300), us(9000), us(700), us(5) + 5, float64(8 + random.IntN(99999)), float64(8 + random.IntN(99999))}
		calls = append(calls, c)
		ms := func(us int64) string { return fmt.Sprintf("%d.%03d", us/1000, us%1000) }
		fmt.Fprintf(&log, "%-5d %-20s %-15s %-12s %-12s %-17s %-12s %-12.2f %-12.2f %-18.2f\n", id, method, ms(c.serialize), ms(c.send), ms(c.receive),
			ms(c.deserialize), ms(c.total()), c.sent, c.received, (c.sent+c.received)/1024/(float64(c.total())/1e6))
	}
	row(1, "Init")
	for _, first := range []int{2, 1} {
		row(first, "Embedding")
		for i := range 96 {
			row(first+1+i, []string{"BatchLinear", "Matmul"}[i%2])
		}
		row(first+97, "LMHead")
	}
	job := read(t, map[string]string{"zmq_performance.log": log.String()})
	logs := job.Passes.Logs()
	require.Len(t, logs, 1)
	assert.Equal(t, int64(99), logs[0].WarmUp)
	assert.True(t, strings.HasSuffix(logs[0].File, "zmq_performance.log"))
	assert.Equal(t, map[string]int{"unix": 197}, logs[0].Transports)
	for of, c := range map[string]struct {
		of   []rpc
		have *digest.Calls
	}{"all": {calls, &job.Passes.Calls}, "measured": {calls[99:], &logs[0].Calls}} {
		column := func(value func(*rpc) float64) (s sample) {
			for i := range c.of {
				s = append(s, value(&c.of[i]))
			}
			return s
		}
		equal(t, column(func(c *rpc) float64 { return float64(c.total()) }), 1e-6, &c.have.Took, of)
		equal(t, column(func(c *rpc) float64 { return float64(c.serialize) }), 1e-6, &c.have.Stages[view.RPCSerialize], of)
		equal(t, column(func(c *rpc) float64 { return float64(c.send) }), 1e-6, &c.have.Stages[view.RPCSend], of)
		equal(t, column(func(c *rpc) float64 { return float64(c.receive) }), 1e-6, &c.have.Stages[view.RPCReceive], of)
		equal(t, column(func(c *rpc) float64 { return float64(c.deserialize) }), 1e-6, &c.have.Stages[view.RPCDeserialize], of)
		equal(t, column(func(c *rpc) float64 { return c.sent }), 1024, &c.have.Sent, of)
		equal(t, column(func(c *rpc) float64 { return c.received }), 1024, &c.have.Received, of)
		assert.InEpsilon(t, column(func(c *rpc) float64 { return float64(c.rest) }).sum()/1e6, c.have.Total(view.RPCUnattributed), 1e-9, of)
		whole := column(func(c *rpc) float64 { return 1024 * (c.sent + c.received) }).sum() / column(func(c *rpc) float64 { return float64(c.total()) / 1e6 }).sum()
		assert.InEpsilon(t, whole, c.have.Overall(), 1e-9)
		for _, m := range c.have.Methods() {
			var of sample
			for i := range c.of {
				if c.of[i].method == m.Name {
					of = append(of, float64(c.of[i].total()))
				}
			}
			equal(t, of, 1e-6, &m.Took, m.Name)
		}
		tops(t, c.of, c.have)
	}
}

// tops holds the slowest and the largest calls against a sorted list.
func tops(t *testing.T, calls []rpc, have *digest.Calls) {
	t.Helper()
	byTime := slices.SortedStableFunc(slices.Values(calls), func(a, b rpc) int { return int(b.total() - a.total()) })
	bySize := slices.SortedStableFunc(slices.Values(calls), func(a, b rpc) int { return int(b.sent + b.received - a.sent - a.received) })
	for i := range 5 {
		slow, large := have.Slowest[i].Of, have.Largest[i].Of
		assert.InDelta(t, float64(byTime[i].total())/1e6, slow.Took, 1e-12)
		assert.InDelta(t, float64(byTime[i].receive)/1e6, slow.Stages[view.RPCReceive], 1e-12)
		assert.InDelta(t, 1024*(bySize[i].sent+bySize[i].received), large.Sent+large.Received, 1e-6)
		assert.GreaterOrEqual(t, have.Slowest[i].Offset, int64(0))
	}
}

// The report of verl's analyze_tq_logs.py: per function and in all.
func TestTransferQueueLog(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	var log strings.Builder
	type call struct{ total, get, compute, put sample } // µs
	want := map[string]*call{}
	var sizes, rates sample
	now := int64(98231_000000)
	for i := range 60 {
		name := []string{"rollout", "compute_log_prob", "update_actor"}[i%3]
		trace := fmt.Sprintf("trace_id=%08x-0000-4000-8000-%012x", i, i)
		line := func(level, kind, format string, a ...any) {
			fmt.Fprintf(&log, "%s:2026-02-11 16:40:%02d,%03d:[TQ-%s] %s | %s | timestamp=%d.%06d\n", level, i, 0, kind, trace, fmt.Sprintf(format, a...), now/1e6, now%1e6)
		}
		begin := now
		line("INFO", "TRACE", "func=%s | pid=%d | stage=FUNCTION_START", name, 100+i)
		var took [3]int64
		for stage, of := range []string{"GET", "COMPUTE", "PUT"} {
			line("INFO", "TRACE", "func=%s | stage=%s_START", name, of)
			took[stage] = 1000 + random.Int64N(900_000)
			now += took[stage]
			line("INFO", "TRACE", "func=%s | stage=%s_END | duration=%.6fs", name, of, float64(took[stage])/1e6)
			now += random.Int64N(50)
		}
		total := float64(now - begin)
		share := func(stage int) float64 { return 100 * float64(took[stage]) / total }
		line("INFO", "TRACE", "func=%s | stage=FUNCTION_END | total_duration=%.6fs | get_ratio=%.2f%% | compute_ratio=%.2f%% | put_ratio=%.2f%%",
			name, total/1e6, share(0), share(1), share(2))
		now += 1000
		if want[name] == nil {
			want[name] = new(call)
		}
		c := want[name]
		c.total, c.get = append(c.total, total), append(c.get, float64(took[0]))
		c.compute, c.put = append(c.compute, float64(took[1])), append(c.put, float64(took[2]))
		size, op := float64(1+random.IntN(400)), 1000+random.Int64N(90_000)
		line("DEBUG", "DETAIL", "stage=TQ_CLIENT_PUT_START | data_size_mb=%.2f", size)
		now += op
		line("DEBUG", "DETAIL", "stage=TQ_CLIENT_PUT_END | duration=%.6fs | data_size_mb=%.2f", float64(op)/1e6, size)
		sizes, rates = append(sizes, size), append(rates, size/(float64(op)/1e6))
		now += 1000
	}
	job := read(t, map[string]string{"verl.log": log.String()})
	var total, queue float64
	rows := job.Functions.Rows()
	require.Len(t, rows, 3)
	for _, f := range rows {
		c := want[f.Name]
		equal(t, c.total, 1e-6, &f.Took, f.Name)
		equal(t, c.get, 1e-6, &f.Stages[spans.TQGet], f.Name)
		equal(t, c.compute, 1e-6, &f.Stages[spans.TQCompute], f.Name)
		equal(t, c.put, 1e-6, &f.Stages[spans.TQPut], f.Name)
		total, queue = total+c.total.sum(), queue+c.get.sum()+c.put.sum()
		assert.Zero(t, f.WithoutID+f.Incomplete)
	}
	sum := job.Functions.Sum()
	assert.Equal(t, 60, sum.Calls)
	assert.InEpsilon(t, queue/total, sum.Ratio(sum.Get+sum.Put), 1e-9)
	assert.Equal(t, int64(60), job.Functions.Traces)
	operations := job.Functions.Operations()
	require.Len(t, operations, 1)
	equal(t, sizes, 1<<20, &operations[0].Size, "size")
	equal(t, rates, 1<<20, &operations[0].Throughput, "throughput")
}

// The series and statistics of FlagScale's monitor, and 004's JSONL with the points below P10.
func TestTrainingLogs(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	var log strings.Builder
	var loss, throughput sample
	for i := range 3000 {
		loss, throughput = append(loss, 3-float64(i)/1000+random.Float64()/10), append(throughput, 400+100*random.Float64())
		fmt.Fprintf(&log, "{\"step\": %d, \"loss\": %v, \"throughput\": %v, \"lr\": 1e-05}\n", i+1, loss[i], throughput[i])
	}
	job := read(t, map[string]string{"train.jsonl": log.String()})
	l := job.Steps.Rows()[0]
	assert.Equal(t, int64(3000), l.Records)
	m := &l.Measures[digest.SampleThroughput]
	assert.InEpsilon(t, throughput.sum(), m.Sum(), 1e-12)
	assert.InEpsilon(t, throughput.percentile(10), m.Quantile(0.1), 1e-12)
	assert.InDelta(t, loss[0], l.First.Value, 0)
	assert.InDelta(t, loss[2999], l.Last.Value, 0)
	assert.InDelta(t, slices.Min(loss), l.Lowest.Value, 0)
	limit := m.Quantile(0.1)
	var below []int64
	for i, x := range throughput {
		if x < limit {
			below = append(below, int64(i+1))
		}
	}
	var marked []int64
	for _, b := range m.Below(limit) {
		marked = append(marked, b.At)
	}
	assert.Equal(t, below, marked)
	for i, b := range l.Measures[digest.Loss].Over.Buckets() {
		require.InDelta(t, loss[i], b.Mean(), 0)
	}

	log.Reset()
	log.WriteString(strings.Repeat("=", 80) + "\nPerformance Monitor Session Started: 2026-06-12 10:30:00\n" + strings.Repeat("=", 80) + "\n")
	log.WriteString("Timestamp            Step     TFLOPS/GPU   TFLOPS     Samples/s    Tokens/s     Time(ms)   Memory(GB)\n" + strings.Repeat("-", 80) + "\n")
	columns := make([]sample, 6)
	for i := range 50 {
		row := []float64{
			float64(7000+random.IntN(900)) / 100, float64(60000+random.IntN(9000)) / 100, float64(60+random.IntN(9)) / 10, float64(13000 + random.IntN(900)),
			float64(48000+random.IntN(900)) / 10, float64(5000+random.IntN(200)) / 100,
		}
		for c, x := range row {
			columns[c] = append(columns[c], x)
		}
		fmt.Fprintf(&log, "2026-06-12 10:%02d:%02d  %-8d %-12.2f %-10.2f %-12.1f %-12.0f %-10.1f %-10.2f\n", 31+i/60, i%60, i+1, row[0], row[1], row[2], row[3], row[4], row[5])
	}
	job = read(t, map[string]string{"perf_metrics_20260612_103000.log": log.String()})
	l = job.Steps.Rows()[0]
	for of, c := range map[digest.Figure]struct {
		column int
		unit   float64
	}{
		digest.DeviceFlopThroughputReported: {0, 1e12}, digest.FlopThroughputReported: {1, 1e12}, digest.SampleThroughput: {2, 1}, digest.TokenThroughput: {3, 1},
		digest.StepTime: {4, 1e-3}, digest.MemoryUsage: {5, 1 << 30},
	} {
		equal(t, columns[c.column], c.unit, &l.Measures[of].Values, fmt.Sprint(of))
	}
}

// 003's analyze_telemetry.py reads the records of the ranks one by one.
func TestCollectivesLog(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	var took, bandwidth sample
	logs := map[string]string{}
	var ranks [4]strings.Builder
	bytes := 0.0
	for i := range 200 {
		size := int64(1) << (20 + random.IntN(4))
		bytes += float64(size)
		for rank := range ranks {
			us := float64(10000+random.IntN(5000)) / 10
			gbps := float64(size) / us / 1e3 // GB/s
			took, bandwidth = append(took, us), append(bandwidth, gbps)
			fmt.Fprintf(&ranks[rank], "{\"timestamp\": %d.%03d, \"rank\": %d, \"operation\": \"allreduce\", \"algorithm\": \"ring\", \"message_size\": %d, "+
				"\"duration_us\": %v, \"bandwidth_gbps\": %v, \"src_rank\": %d, \"dst_rank\": %d, \"channel_id\": 0, \"stream_id\": 7, \"error_count\": 0, \"retry_count\": %d}\n",
				1693958400+i/10, 100*(i%10), rank, size, us, gbps, rank, (rank+1)%4, i/199)
		}
	}
	for rank := range ranks {
		logs[fmt.Sprintf("rank_%d.json", rank)] = ranks[rank].String()
	}
	job := read(t, logs)
	operations := job.Collectives.Operations()
	require.Len(t, operations, 1)
	o := operations[0]
	assert.Equal(t, 200, o.Count)
	assert.Zero(t, o.Incomplete)
	equal(t, bandwidth, 1e9, &o.Records.Bandwidth, "bandwidth")
	equal(t, took, 1e-6, &o.Records.Took, "latency")
	assert.InDelta(t, 4, o.Retries, 0)
	sizes := 0.0
	n := int64(0)
	for power, s := range o.Sizes {
		sizes, n = sizes+s.Bytes, n+s.Count
		assert.InDelta(t, float64(s.Count)*float64(int64(1)<<power), s.Bytes, 0)
	}
	assert.Equal(t, int64(200), n)
	assert.InDelta(t, bytes, sizes, 0)
	assert.Len(t, job.Collectives.Ranks(), 4)
	assert.Len(t, job.Collectives.Links(), 4)
}
