package ncclreceiver

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// Bandwidths of nccl-tests' doc/PERFORMANCE.md, computed independently here: from a duration in s, by hand-written factors. AllGather, ReduceScatter and
// AllToAll log the size of one rank.
func TestBandwidth(t *testing.T) {
	const size, us = 3_145_733, 457
	for _, n := range []int{2, 3, 8, 1024} {
		if testing.Short() && n > 8 {
			break
		}
		f := float64(n)
		for _, c := range []struct {
			coll, algorithm string
			total, factor   float64
		}{
			{"AllReduce", "RING", size, 2 - 2/f},
			{"AllReduce", "TREE", size, 2 - 2/f},
			{"AllReduce", "NVLS", size, (f - 1) / (f + 1)},
			{"AllReduce", "NVLS_TREE", size, (f - 1) / (f + 1)},
			{"AllReduce", "COLLNET_DIRECT", size, (f - 1) / (f + 1)},
			{"AllGather", "NVLS", size * f, 1 - 1/f},
			{"AllGather", "PAT", size * f, 1 - 1/f},
			{"ReduceScatter", "RING", size * f, 1 - 1/f},
			{"AllToAll", "RING", size * f, 1 - 1/f},
			{"Broadcast", "TREE", size, 1},
			{"Reduce", "RING", size, 1},
		} {
			t.Run(fmt.Sprint(c.coll, c.algorithm, n), func(t *testing.T) {
				var lines []string
				for rank := range n {
					line := record{rank: rank, of: n, coll: c.coll, sn: 3, size: size, start: 1000 - int64(rank%2)*100, us: us + int64(rank%2)*100}.String()
					lines = append(lines, strings.Replace(line, `"coll_sn"`, `"coll_algo":"`+c.algorithm+`","coll_sn"`, 1))
				}
				r := read(t, config(filereceivertest.Write(t, "all.log", lines...)))
				sound(t, r)
				root := roots(r)[c.coll+" 3"]
				want := c.total / us * 1e6
				assert.InEpsilon(t, want, number(t, root, spans.AttrNCCLBandwidthAlgorithm), 1e-9)
				assert.InEpsilon(t, want*c.factor, number(t, root, spans.AttrNCCLBandwidthBus), 1e-9)
				assert.InEpsilon(t, us*1e-6, number(t, root, spans.AttrNCCLTransferDuration), 1e-9)
				assert.InEpsilon(t, (us+100)*1e-6, number(t, root, spans.AttrNCCLDuration), 1e-9)
				ranks := rankSpans(r)
				without := c.total / us * 1e6 // waiting, where all wait for all
				if c.coll == "Broadcast" || c.coll == "Reduce" {
					without = c.total / (us + 100) * 1e6
				}
				assert.InEpsilon(t, without*c.factor, number(t, ranks[1], spans.AttrNCCLBandwidthBus), 1e-9)
			})
		}
	}
}

// VCCL's schema does not have the number of ranks, but the destinations of sends: if they lead through all records, none is missing, and there is a bus
// bandwidth. The schema does not specify whose data the size of an AllGather is, either.
func TestBandwidthOfRings(t *testing.T) {
	for _, tt := range []struct {
		name, operation string
		to              []int // of each rank
		factor          float64
	}{
		{"two", "allreduce", []int{1, 0}, 1},
		{"eight", "allreduce", []int{1, 2, 3, 4, 5, 6, 7, 0}, 1.75},
		{"in another order", "allreduce", []int{2, 0, 3, 1}, 1.5},
		{"broadcast", "broadcast", []int{1, 2, 3, 0}, 1},
		{"allgather", "allgather", []int{1, 2, 3, 0}, 0},
		{"a rank without a log", "allreduce", []int{1, 2, 3}, 0},
		{"no circle", "allreduce", []int{1, 2, 1}, 0},
		{"itself", "allreduce", []int{0, 1}, 0},
		{"not said", "allreduce", []int{-1, -1, -1}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var all [][]message
			for i := range 40 {
				var of []message
				for rank, to := range tt.to {
					of = append(of, message{rank: rank, to: to, name: tt.operation, size: 4 << 20, start: float64(i) * 1e6, us: 400, collective: i})
				}
				all = append(all, of)
			}
			glob, _ := perFile(t, all, func(message) bool { return true })
			r := read(t, config(glob))
			sound(t, r)
			n := 0
			for _, root := range roots(r) {
				text := attr(root, spans.AttrNCCLBandwidthBus)
				if tt.factor == 0 {
					assert.Empty(t, text)
					continue
				}
				assert.InEpsilon(t, float64(4<<20)/400e-6*tt.factor, number(t, root, spans.AttrNCCLBandwidthBus), 1e-9)
				assert.Empty(t, attr(root, spans.AttrNCCLCommSize))
				n++
			}
			if tt.factor > 0 {
				assert.Equal(t, 40, n)
			}
		})
	}
}

// A value that cannot be computed is not in the span.
func TestNoBandwidth(t *testing.T) {
	for name, r := range map[string]record{
		"no duration": {of: 1, sn: 1, size: 4096},
		"no size":     {of: 2, sn: 1, us: 10},
		"alone":       {of: 1, sn: 1, size: 4096, us: 10},
		"other":       {of: 2, sn: 1, size: 4096, us: 10, coll: "Frobnicate"},
		"too much":    {of: 1 << 20, sn: 1, size: math.MaxInt64 / 2, us: 10, coll: "AllGather"},
	} {
		t.Run(name, func(t *testing.T) {
			res := read(t, config(filereceivertest.Write(t, "all.log", r.String())))
			sound(t, res)
			require.Len(t, roots(res), 1)
			for _, s := range res.All("") {
				assert.Empty(t, attr(s, spans.AttrNCCLBandwidthBus))
				assert.Empty(t, attr(s, spans.AttrNCCLBandwidthDisagreement))
			}
		})
	}
}

// A send has no room for thousands of details: they become one span with their count.
func TestDetailsOfASend(t *testing.T) {
	const n = 3000
	var events []string
	for i := range n {
		events = append(events, fmt.Sprintf(`{"channel_id":%d,"kernel_start_ts":%d,"kernel_stop_ts":%d}`, i, epochUS+i, epochUS+2*i))
	}
	line := `{"header":{"id":"0xabc","rank":0,"n_ranks":2,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","hostname":"n","pid":1},` +
		`"p2p_perf":{"p2p":"Send","p2p_sn":1,"p2p_peer":1,` +
		`"p2p_msg_size_bytes":4096,"p2p_exec_time_us":6000,"event_trace_ts":{"kernel_events":[` + strings.Join(events, ",") + `]}}}`
	r := read(t, config(filereceivertest.Write(t, "all.log", line)))
	sound(t, r)
	require.Len(t, r.All(""), 3) // and the run's
	sum := r.All(spans.SpanNCCLChannel)[0]
	assert.InDelta(t, n, number(t, sum, spans.AttrAggregateCount), 0)
	assert.InEpsilon(t, n*(n-1)/2*1e-6, number(t, sum, spans.AttrAggregateSum), 1e-9)
	assert.InEpsilon(t, (n-1)/2.*1e-6, number(t, sum, spans.AttrAggregateP50), 1e-9)
	assert.InEpsilon(t, (n-1)*1e-6, number(t, sum, spans.AttrAggregateMax), 1e-9)
	assert.Equal(t, r.All("Send")[0].SpanID(), sum.ParentSpanID())
}

// Each run of one receiver is opened once, by its first batch.
func TestRuns(t *testing.T) {
	dir := t.TempDir()
	const runs = 5
	for i := range runs {
		folder := filepath.Join(dir, strconv.Itoa(i))
		require.NoError(t, os.Mkdir(folder, 0o700))
		var lines []string
		for sn := range 50 {
			lines = append(lines, record{rank: 0, of: 2, sn: sn, size: 4096, start: int64(sn)*1000 + 1, us: 100}.String()) // waiting until the end
		}
		filereceivertest.Put(t, folder, "rank0.log", strings.Join(lines, "\n")+"\n")
	}
	t.Setenv("SLURM_JOB_ID", "")
	for _, rate := range []float64{1, 0.2} {
		cfg := config(dir + "/*/*")
		cfg.RunID, cfg.SampleRate = "", rate
		r := read(t, cfg)
		sound(t, r)
		assert.Len(t, r.All(spans.SpanRun), runs)
	}
}

// A collective that was not sampled stays unsampled when more of it comes late.
func TestSampledLate(t *testing.T) {
	var lines []string
	const n = 200
	for _, rank := range []int{0, 1} { // no number of ranks in the log: each rank's record leaves alone
		for sn := range n {
			lines = append(lines, record{rank: rank, sn: sn, size: 4096, start: int64(sn)*1000 + 1, us: 100}.String())
		}
	}
	cfg := config(filereceivertest.Write(t, "all.log", lines...))
	cfg.SampleRate = 0.3
	r := read(t, cfg)
	sent := make(map[string]bool)
	for _, s := range roots(r) {
		sent[s.TraceID().String()] = true
	}
	assert.InDelta(t, 0.3*n, len(sent), 35)
	ranks := rankSpans(r)
	assert.Len(t, ranks, 2*len(sent), "both ranks of each, or none")
	for _, s := range ranks {
		assert.True(t, sent[s.TraceID().String()])
	}
}

// Counts continue from their first value, and do not decrease.
func TestCounts(t *testing.T) {
	series := make(map[string][]pmetric.NumberDataPoint)
	for _, name := range fixtures {
		r := read(t, config(fixture(t, name)))
		sound(t, r)
		for _, md := range r.Metrics.AllMetrics() {
			for _, rm := range md.ResourceMetrics().All() {
				for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
					if m.Type() != pmetric.MetricTypeSum {
						continue
					}
					for _, dp := range m.Sum().DataPoints().All() {
						key := fmt.Sprint(name, m.Name(), dp.Attributes().AsRaw())
						series[key] = append(series[key], dp)
						for _, label := range []string{spans.AttrNCCLSourceHost, spans.AttrNCCLDestHost, spans.AttrHostName} {
							v, _ := dp.Attributes().Get(label)
							assert.NotContains(t, v.Str(), "/", label)
						}
					}
				}
			}
		}
	}
	require.NotEmpty(t, series)
	several := 0
	for key, points := range series {
		slices.SortStableFunc(points, func(a, b pmetric.NumberDataPoint) int { // batches are sent concurrently
			return cmp.Or(cmp.Compare(a.Timestamp(), b.Timestamp()), cmp.Compare(a.IntValue(), b.IntValue()))
		})
		for i, dp := range points[1:] {
			several++
			assert.Equal(t, points[0].StartTimestamp(), dp.StartTimestamp(), key)
			assert.GreaterOrEqual(t, dp.IntValue(), points[i].IntValue(), key)
		}
	}
	assert.Positive(t, several)
}

// The span of a send shows that the log has no completion.
func TestStuckSend(t *testing.T) {
	text := `{"version":"2.5","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1]"}},"entries":[{"record_id":0,"process_group":["0",` +
		`"default_pg"],"collective_seq_id":1,` +
		`"p2p_seq_id":1,"op_id":1,"profiling_name":"nccl:send 0->1","time_created_ns":1781000000000000000,"input_sizes":[[4]],"input_dtypes":["Float"],` +
		`"output_sizes":[[4]],` +
		`"output_dtypes":["Float"],"state":"started","time_discovered_started_ns":1781000000001000000,"retired":true,"timeout_ms":1000,"is_p2p":true}]}`
	for _, rate := range []float64{1, 0} {
		cfg := config(filereceivertest.Write(t, "nccl_trace_rank_0", text))
		cfg.SampleRate = rate
		r := read(t, cfg)
		require.Len(t, r.All("Send"), 1)
		s := r.All("Send")[0]
		assert.Equal(t, spans.NCCLIncompleteStuck, attr(s, spans.AttrIncompleteReason))
		assert.Equal(t, "true", attr(s, spans.AttrNCCLHang))
		assert.Equal(t, ptrace.StatusCodeError, s.Status().Code())
	}
}

// The bytes in VCCL's oldest rows add up to the bytes over a link, not to the size of the message: different sums of ranks are no mismatch.
func TestLinksAreNoMismatch(t *testing.T) {
	row := func(rank, bytes int) string {
		return fmt.Sprintf("20250710143000: Group:7, from rank %d to rank 8, channel_id:0, func:4,FuncTimes:1, 10.0.0.1->10.0.0.2 send %d Bytes used 1000 nsec, "+
			"devIndex:0, sendWrCounter:3\n", rank, bytes)
	}
	dir := t.TempDir()
	filereceivertest.Put(t, dir, "node01-mlx5_0-Port0-A.log", row(0, 524288))
	filereceivertest.Put(t, dir, "node02-mlx5_0-Port0-A.log", row(1, 262144))
	r := read(t, config(dir+"/*"))
	require.Len(t, roots(r), 1)
	assert.Equal(t, "2", attr(roots(r)["AllReduce 1"], spans.AttrNCCLRanks))
	assert.Empty(t, attr(roots(r)["AllReduce 1"], spans.AttrNCCLMismatch))
	other := read(t, config(logs(t, record{host: "a", rank: 0, of: 2, sn: 1, size: 4096, us: 9}, record{host: "a", rank: 1, of: 2, sn: 1, size: 8192, us: 9})))
	assert.Equal(t, "true", attr(roots(other)["AllReduce 1"], spans.AttrNCCLMismatch))
}

// A run has a bounded number of score series, for any number of communicators.
func TestScoreSeries(t *testing.T) {
	const most = 1000 / collectives.MetricShare
	const comms, rounds = most/2 + 50, collectives.MinWindow + 2
	var records []record
	for sn := range rounds {
		for c := range comms {
			for rank := range 2 {
				records = append(records, record{
					comm: fmt.Sprintf("0x%x", c+1), host: "n", rank: rank, of: 2, sn: sn, size: 4096, start: 1 + int64(sn)*10_000 + int64(c%97), us: 100,
				})
			}
		}
	}
	cfg := config(logs(t, records...))
	cfg.Collector = "gateway-0"
	r := read(t, cfg)
	series := make(map[string]bool)
	for _, md := range r.Metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() != spans.MetricNCCLRankScore {
					continue
				}
				for _, dp := range m.Gauge().DataPoints().All() {
					series[fmt.Sprint(dp.Attributes().AsRaw())] = true
					assert.Equal(t, "gateway-0", spans.AttrText(dp.Attributes(), spans.AttrCollector))
				}
			}
		}
	}
	assert.Len(t, series, most)
}
