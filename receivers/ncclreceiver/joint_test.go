package ncclreceiver

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// record is a line of NCCL Inspector v4.0 with event traces: the rank's kernel began at start and took us, both µs.
type record struct {
	comm, host string
	rank, of   int
	coll       string
	sn         int
	size       int64
	start, us  int64
}

const epochUS = 1781000000000000

func (r record) String() string {
	comm, host, coll := r.comm, r.host, r.coll
	if comm == "" {
		comm = "0xabc"
	}
	if host == "" {
		host = "node-0"
	}
	if coll == "" {
		coll = "AllReduce"
	}
	trace := ""
	if r.start != 0 {
		trace = fmt.Sprintf(`,"event_trace_ts":{"coll_start_ts":%d,"coll_stop_ts":%d,"kernel_events":[{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d,`+
			`"kernel_record_ts":%d}]}`,
			epochUS+r.start, epochUS+r.start+5, epochUS+r.start, epochUS+r.start+r.us, epochUS+r.start+r.us)
	}
	return fmt.Sprintf(`{"header":{"id":"%s","comm_name":"DP","rank":%d,"n_ranks":%d,"nnodes":2},"metadata":{"inspector_output_format_version":"v4.0",`+
		`"git_rev":"",`+
		`"rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":"%s","pid":%d},"coll_perf":{"coll":"%s","coll_sn":%d,"coll_msg_size_bytes":%d,`+
		`"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu"%s}}`,
		comm, r.rank, r.of, epochUS+r.start+r.us+100, host, 1000+r.rank, coll, r.sn, r.size, r.us, trace)
}

// logs writes each rank's records into a separate file and returns the glob.
func logs(t *testing.T, records ...record) string {
	t.Helper()
	dir := t.TempDir()
	files := make(map[string][]string)
	for _, r := range records {
		name := fmt.Sprintf("%s-pid%d.log", r.host, 1000+r.rank)
		files[name] = append(files[name], r.String())
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		filereceivertest.Put(t, dir, name, strings.Join(files[name], "\n")+"\n")
	}
	return filepath.Join(dir, "*.log")
}

// roots are the collectives, by operation and number.
func roots(r *filereceivertest.Result) map[string]ptrace.Span {
	out := make(map[string]ptrace.Span)
	for _, s := range r.All("") {
		if attr(s, spans.AttrNCCLRanks) != "" && attr(s, spans.AttrRecordOnly) == "" {
			out[s.Name()+" "+attr(s, spans.AttrNCCLSequence)] = s
		}
	}
	return out
}

// rankSpans are the spans of the ranks, by rank.
func rankSpans(r *filereceivertest.Result) (out []ptrace.Span) {
	for _, s := range r.All("") {
		if strings.HasPrefix(s.Name(), "rank ") || s.Name() == spans.SpanNCCLRank {
			out = append(out, s)
		}
	}
	rank := func(s ptrace.Span) int64 { v, _ := s.Attributes().Get(spans.AttrNCCLCommRank); return v.Int() }
	slices.SortStableFunc(out, func(x, y ptrace.Span) int { return cmp.Compare(rank(x), rank(y)) })
	return out
}

func number(t *testing.T, s ptrace.Span, name string) float64 {
	t.Helper()
	v, ok := s.Attributes().Get(name)
	require.True(t, ok, name)
	return spans.ValueNumber(v)
}

// Four ranks on two hosts: the third comes 400 µs after the first; the last rank waits for no one.
func TestCollective(t *testing.T) {
	r := read(t, config(logs(
		t,
		record{host: "a", rank: 0, of: 4, sn: 7, size: 1 << 20, start: 1000, us: 500},
		record{host: "a", rank: 1, of: 4, sn: 7, size: 1 << 20, start: 1100, us: 400},
		record{host: "b", rank: 2, of: 4, sn: 7, size: 1 << 20, start: 1400, us: 100},
		record{host: "b", rank: 3, of: 4, sn: 7, size: 1 << 20, start: 1200, us: 300},
	)))
	require.Len(t, roots(r), 1)
	root := roots(r)["AllReduce 7"]
	assert.EqualValues(t, int64(epochUS+1000)*1000, root.StartTimestamp())
	assert.EqualValues(t, int64(epochUS+1500)*1000, root.EndTimestamp())
	want := map[string]any{
		spans.AttrKind: spans.KindCollective, spans.AttrTimeSource: string(spans.TimeLogged), spans.AttrNCCLRanks: int64(4),
		spans.AttrNCCLOperation: "AllReduce", spans.AttrNCCLCommID: "0xabc", spans.AttrNCCLCommName: "DP",
		spans.AttrNCCLCommSize: int64(4), spans.AttrNCCLCommNodes: int64(2), spans.AttrNCCLSequence: int64(7), spans.AttrNCCLMessageSize: int64(1 << 20),
		spans.AttrNCCLDataSize: int64(1 << 20), spans.AttrNCCLTiming: "kernel_gpu", spans.AttrNCCLDuration: 500e-6, spans.AttrNCCLTransferDuration: 100e-6,
		spans.AttrNCCLBandwidthAlgorithm: 1048576 / 100e-6, spans.AttrNCCLBandwidthBus: 1048576 / 100e-6 * 2 * 3 / 4,
		spans.AttrNCCLLateMax: 400e-6, spans.AttrNCCLLateRank: int64(2), spans.AttrNCCLLateHost: "b", spans.AttrNCCLLateCost: 3 * 200e-6,
		spans.AttrNCCLErrors: int64(0), spans.AttrNCCLRetries: int64(0),
	}
	got := root.Attributes().AsRaw()
	for name, v := range want {
		if f, ok := v.(float64); ok {
			assert.InEpsilon(t, f, got[name], 1e-9, name)
		} else {
			assert.Equal(t, v, got[name], name)
		}
	}
	ranks := rankSpans(r)
	require.Len(t, ranks, 4)
	for i, late := range []float64{0, 100e-6, 400e-6, 200e-6} {
		s := ranks[i]
		assert.Equal(t, root.TraceID(), s.TraceID())
		assert.Equal(t, root.SpanID(), s.ParentSpanID())
		assert.InDelta(t, late, number(t, s, spans.AttrNCCLLate), 1e-12)
		assert.InDelta(t, i, number(t, s, spans.AttrNCCLCommRank), 0)
	}
	below := make(map[string]int)
	for _, s := range r.All(spans.SpanNCCLChannel) {
		below[s.ParentSpanID().String()]++
	}
	for _, s := range ranks {
		assert.Equal(t, 1, below[s.SpanID().String()])
	}
	assert.Len(t, below, 4)
}

// The meaning of missing records.
func TestAbsent(t *testing.T) {
	all := func(of, from, to int, but func(rank, sn int) bool) (out []record) {
		for sn := from; sn < to; sn++ {
			for rank := range of {
				if !but(rank, sn) {
					out = append(out, record{host: "n", rank: rank, of: of, sn: sn, size: 4096, start: int64(sn)*10_000 + 1, us: 100})
				}
			}
		}
		return out
	}
	none := func(int, int) bool { return false }
	for name, c := range map[string]struct {
		records []record
		why     map[int]string // reasons of the incomplete collectives
		missing map[int]string
	}{
		"complete":     {records: all(3, 0, 5, none)},
		"a gap":        {all(3, 0, 5, func(rank, sn int) bool { return rank == 1 && sn == 2 }), map[int]string{2: "gap"}, map[int]string{2: "[1]"}},
		"the end":      {all(3, 0, 5, func(rank, sn int) bool { return rank == 2 && sn >= 4 }), map[int]string{4: "end"}, map[int]string{4: "[2]"}},
		"never seen":   {records: all(3, 0, 5, func(rank, _ int) bool { return rank == 2 })},
		"begins later": {all(2, 0, 3, func(rank, sn int) bool { return rank == 1 && sn == 0 }), map[int]string{0: "gap"}, map[int]string{0: "[1]"}},
		"several gaps": {
			all(4, 0, 9, func(rank, sn int) bool { return rank == 3 && sn >= 2 && sn <= 4 }),
			map[int]string{2: "gap", 3: "gap", 4: "gap"},
			map[int]string{2: "[3]", 3: "[3]", 4: "[3]"},
		},
		"numbers left out":   {records: all(2, 0, 9, func(_, sn int) bool { return sn%3 == 1 })}, // small messages are not dumped
		"several at the end": {all(4, 0, 3, func(rank, sn int) bool { return rank%2 == 1 && sn == 2 }), map[int]string{2: "end"}, map[int]string{2: "[1,3]"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, config(logs(t, c.records...)))
			sns := make(map[int]bool)
			for _, rec := range c.records {
				sns[rec.sn] = true
			}
			require.Len(t, roots(r), len(sns))
			for sn := range sns {
				root := roots(r)[fmt.Sprintf("AllReduce %d", sn)]
				assert.Equal(t, c.why[sn], attr(root, spans.AttrIncompleteReason), "%d", sn)
				assert.Equal(t, c.missing[sn], attr(root, spans.AttrNCCLRanksMissing), "%d", sn)
			}
			assert.Len(t, rankSpans(r), len(c.records))
		})
	}
}

// Each setting leaves out its records, and counts them.
func TestSettings(t *testing.T) {
	glob := logs(t, twoOperations()...)
	count := func(change func(*Config)) (r *filereceivertest.Result, operations map[string]int) {
		cfg := config(glob)
		change(cfg)
		r = read(t, cfg)
		operations = make(map[string]int)
		for _, s := range roots(r) {
			operations[s.Name()]++
			assert.Empty(t, attr(s, spans.AttrIncompleteReason))
		}
		return r, operations
	}
	t.Run("operations", func(t *testing.T) {
		r, got := count(func(c *Config) { c.Operations = []string{"all_reduce"} })
		assert.Equal(t, map[string]int{"AllReduce": 20}, got)
		assert.Equal(t, map[string]int64{reasonOperation: 80}, r.Counts.Ignored)
	})
	t.Run("ranks", func(t *testing.T) {
		r, got := count(func(c *Config) { c.Ranks = []int32{0, 3, 9} })
		assert.Equal(t, map[string]int{"AllReduce": 20, "AllGather": 20}, got)
		assert.Equal(t, map[string]int64{reasonRank: 80}, r.Counts.Ignored)
		assert.Len(t, rankSpans(r), 80)
	})
	t.Run("min_size", func(t *testing.T) {
		r, got := count(func(c *Config) { c.MinSize = 4097 })
		assert.Equal(t, map[string]int{"AllGather": 20}, got)
		assert.Equal(t, map[string]int64{reasonSize: 80}, r.Counts.Ignored)
	})
	t.Run("max_size", func(t *testing.T) {
		r, got := count(func(c *Config) { c.MaxSize = 4096 })
		assert.Equal(t, map[string]int{"AllReduce": 20}, got)
		assert.Equal(t, map[string]int64{reasonSize: 80}, r.Counts.Ignored)
	})
	t.Run("sample_rate", func(t *testing.T) {
		r, got := count(func(c *Config) { c.SampleRate = 0.5 })
		n := got["AllReduce"] + got["AllGather"]
		assert.InDelta(t, 20, n, 12) // 40 of them, by a hash: 4 standard deviations
		assert.Len(t, rankSpans(r), 4*n, "all ranks of a collective, or none")
		again, _ := count(func(c *Config) { c.SampleRate = 0.5 })
		assert.Equal(t, slices.Sorted(maps.Keys(roots(r))), slices.Sorted(maps.Keys(roots(again))))
	})
	t.Run("anomaly_detection", func(t *testing.T) {
		r, _ := count(func(c *Config) { c.AnomalyDetection = false })
		for _, s := range r.All("") {
			assert.Empty(t, attr(s, spans.AttrNCCLLate))
			assert.Empty(t, attr(s, spans.AttrNCCLLateMax))
		}
	})
}

// An unsampled collective leaves as its root alone, with the records read so far.
func TestNothingIsDrawn(t *testing.T) {
	glob := logs(t, twoOperations()...)
	all := roots(read(t, config(glob)))
	cfg := config(glob)
	cfg.SampleRate = 0
	r := read(t, cfg)
	assert.Empty(t, roots(r))
	assert.Empty(t, rankSpans(r))
	left := r.All("")
	assert.Len(t, left, len(all))
	for _, s := range left {
		root := all[s.Name()+" "+attr(s, spans.AttrNCCLSequence)]
		assert.Equal(t, "true", attr(s, spans.AttrRecordOnly))
		for name, v := range s.Attributes().All() {
			if name != spans.AttrRecordOnly {
				assert.Equal(t, attr(root, name), v.AsString(), name)
			}
		}
		assert.Equal(t, [...]any{root.TraceID(), root.SpanID(), root.StartTimestamp(), root.EndTimestamp(), root.Name()},
			[...]any{s.TraceID(), s.SpanID(), s.StartTimestamp(), s.EndTimestamp(), s.Name()})
	}
}

// twoOperations are 20 AllReduce of 4 KiB and 20 AllGather of 1 MiB, of 4 ranks.
func twoOperations() (records []record) {
	for sn := range 20 {
		for rank := range 4 {
			records = append(records,
				record{host: "n", rank: rank, of: 4, sn: sn, size: 4096, start: int64(sn)*10_000 + 1, us: 100},
				record{host: "n", rank: rank, of: 4, coll: "AllGather", sn: sn, size: 1 << 20, start: int64(sn)*10_000 + 1001, us: 100})
		}
	}
	return records
}

// An unusual collective is sent whatever the sample rate is.
func TestSampledUnusual(t *testing.T) {
	seed := func(rank, retries, errors int) string {
		return fmt.Sprintf(`{"timestamp": 1693958400.%03d, "rank": %d, "operation": "allreduce", "algorithm": "ring", "message_size": 4194304,`+
			` "duration_us": 1250.5, `+
			`"bandwidth_gbps": 26.8, "src_rank": %d, "dst_rank": %d, "channel_id": 0, "stream_id": 7, "error_count": %d, "retry_count": %d}`, 100, rank, rank,
			1-rank, errors, retries)
	}
	dir := t.TempDir()
	for rank := range 2 {
		var lines []string
		for i := range 30 {
			lines = append(lines, seed(rank, map[bool]int{i == 4 && rank == 1: 2}[true], map[bool]int{i == 9 && rank == 0: 1}[true]))
		}
		filereceivertest.Put(t, dir, fmt.Sprintf("rank_%d.json", rank), strings.Join(lines, "\n")+"\n")
	}
	cfg := config(dir + "/*.json")
	cfg.SampleRate = 0
	r := read(t, cfg)
	assert.Equal(t, []string{"AllReduce 4", "AllReduce 9"}, slices.Sorted(maps.Keys(roots(r))))
	assert.Len(t, rankSpans(r), 4)
	retried, failed := roots(r)["AllReduce 4"], roots(r)["AllReduce 9"]
	assert.Equal(t, ptrace.StatusCodeError, retried.Status().Code())
	assert.Equal(t, "retried", retried.Status().Message())
	assert.Equal(t, "errors", failed.Status().Message())
	assert.InDelta(t, 2, number(t, retried, spans.AttrNCCLRetries), 0)
	assert.InDelta(t, 1, number(t, failed, spans.AttrNCCLErrors), 0)
	for _, s := range rankSpans(r) {
		assert.Equal(t, "Gbit/s", attr(s, spans.AttrNCCLBandwidthUnit))
		assert.InEpsilon(t, 26.8e9/8, number(t, s, spans.AttrNCCLBandwidthAlgorithmReported), 1e-12)
		assert.InEpsilon(t, 4194304/1250.5e-6, number(t, s, spans.AttrNCCLBandwidthBus), 1e-12, "two ranks: the factor is 1")
	}
}

// More ranks, or details, than a trace may have.
func TestCap(t *testing.T) {
	for name, n := range map[string]int{"details": 1200, "ranks": 2500} {
		t.Run(name, func(t *testing.T) {
			var records []record
			for rank := range n {
				records = append(records, record{host: "n", rank: rank, of: n, sn: 1, size: 4096, start: 1000 + int64(rank), us: int64(n - rank)})
			}
			// One process with all GPUs: one file.
			lines := make([]string, len(records))
			for i, r := range records {
				lines[i] = r.String()
			}
			r := read(t, config(filereceivertest.Write(t, "all.log", lines...)))
			all := r.All("")
			assert.LessOrEqual(t, len(all), collectives.MaxSpans+1) // and the run's
			count, sum := 0.0, 0.0
			var own float64
			for _, s := range all {
				if s.Name() != spans.SpanNCCLChannel {
					continue
				}
				if v := attr(s, spans.AttrAggregateCount); v != "" {
					count += number(t, s, spans.AttrAggregateCount)
					sum += number(t, s, spans.AttrAggregateSum)
				} else {
					count++
					own += float64(s.EndTimestamp()-s.StartTimestamp()) / 1e9
				}
			}
			assert.InDelta(t, n, count, 0, "every channel is there, or in a sum")
			assert.InEpsilon(t, float64(n)*float64(n+1)/2*1e-6, sum+own, 1e-6)
			root := roots(r)["AllReduce 1"]
			assert.InDelta(t, n, number(t, root, spans.AttrNCCLRanks), 0)
			assert.InDelta(t, n-1, number(t, root, spans.AttrNCCLLateRank), 0)
			shown := false
			for _, s := range rankSpans(r) {
				shown = shown || attr(s, spans.AttrNCCLCommRank) == strconv.Itoa(n-1)
			}
			assert.True(t, shown, "who was last has a span")
		})
	}
}

// Evicted collectives still leave, and later records join their traces.
func TestEvicted(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	const n = 20_000 // more than 1 MiB of records
	var first, second []string
	for sn := range n {
		r := record{host: "n", rank: 0, of: 2, sn: sn, size: 4096, us: 100}
		first = append(first, r.String())
		r.rank = 1
		second = append(second, r.String())
	}
	dir := t.TempDir()
	filereceivertest.Put(t, dir, "one.log", strings.Join(append(first, second...), "\n")+"\n") // the second rank comes long after the first
	cfg := config(dir + "/*.log")
	cfg.MaxStateBytes = collectives.MinState
	r := read(t, cfg)
	assert.EqualValues(t, 2*n, r.Counts.Sent)
	assert.Len(t, roots(r), n)
	ranks := rankSpans(r)
	assert.Len(t, ranks, 2*n)
	late := 0
	byTrace := make(map[string]int)
	for _, s := range ranks {
		byTrace[s.TraceID().String()+s.ParentSpanID().String()]++
	}
	for _, k := range byTrace {
		if k == 2 {
			late++
		}
	}
	assert.Equal(t, n, late, "both ranks of each are in its trace, below its root")
}
