package offline

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// apartJob is a job of several hosts with different clocks and late ranks. Its model of time is independent of package gen's.
type apartJob struct {
	rng   *rand.Rand
	hosts int
	ranks int
	apart float64 // s, from the first host's clock to the last's
	drift float64 // s per s, of the last host
	fault float64 // s, lateness of a rank to one collective of each fifth step
	steps int
	zone  *time.Location // of Megatron's stamps
	late  map[int64]int  // by step, the late rank
}

// clock is the time of a host's clock at a true time, s since the beginning.
func (j *apartJob) clock(rank int, t float64) float64 {
	h := float64(rank/(j.ranks/j.hosts)) / float64(j.hosts-1)
	return t + h*(j.apart+j.drift*t)
}

// write writes NCCL Inspector's logs, one per rank, and Megatron's, on the last rank.
func (j *apartJob) write(t *testing.T, dir string) {
	t.Helper()
	j.late = map[int64]int{}
	logs := make([]strings.Builder, j.ranks)
	var megatron strings.Builder
	operations := []string{"AllGather", "ReduceScatter", "AllReduce"}
	now := 0.0
	for step := 1; step <= j.steps; step++ {
		begin, late, in := now, -1, -1
		if step > 15 && step%5 == 0 {
			late, in = j.rng.IntN(j.ranks), j.rng.IntN(len(operations))
			j.late[int64(step)] = late
		}
		for n, operation := range operations {
			arrive := make([]float64, j.ranks)
			last := 0.0
			for rank := range arrive {
				arrive[rank] = now + 0.4*(1+0.01*j.rng.NormFloat64())
				if rank == late && n == in {
					arrive[rank] += j.fault
				}
				last = math.Max(last, arrive[rank])
			}
			now = last + 0.02
			for rank := range arrive {
				us := func(s float64) int64 { return at.UnixMicro() + int64(s*1e6) }
				from, to := us(j.clock(rank, arrive[rank])), us(j.clock(rank, now)+7e-6*j.rng.NormFloat64())
				host := rank / (j.ranks / j.hosts)
				fmt.Fprintf(&logs[rank], `{"header":{"id":"0x99","comm_name":"DP","rank":%d,"n_ranks":%d,"nnodes":%d},`+
					`"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,`+
					`"hostname":"node-%d","pid":%d},"coll_perf":{"coll":"%s","coll_sn":%d,"coll_msg_size_bytes":16777216,"coll_exec_time_us":%d,`+
					`"coll_timing_source":"kernel_gpu","coll_algobw_gbs":1,"coll_busbw_gbs":1,"event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,`+
					`"kernel_events":[{"channel_id":0,"kernel_start_sn":3,"kernel_stop_sn":5,"kernel_record_sn":4}]},"event_trace_ts":{"coll_start_ts":%d,`+
					`"coll_stop_ts":%d,"kernel_events":[{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%d}]}}}`+"\n",
					rank, j.ranks, j.hosts, to+1000, host, 1000+rank, operation, step-1, to-from, from-60, from-55, from, to, to)
			}
		}
		now += 0.05
		end := at.Add(time.Duration(j.clock(j.ranks-1, now) * 1e9))
		fmt.Fprintf(&megatron, " [%s] iteration %8d/ %8d | consumed samples: %12d | elapsed time per iteration (ms): %.1f | learning rate: 1.0E-04 | "+
			"global batch size:    32 | lm loss: 9.8E+00 |\n", end.In(j.zone).Format("2006-01-02 15:04:05.000000"), step, j.steps, 32*step, (now-begin)*1e3)
	}
	for rank := range logs {
		put(t, dir, fmt.Sprintf("nccl/node-%d-pid%d.log", rank/(j.ranks/j.hosts), 1000+rank), logs[rank].String())
	}
	put(t, dir, "megatron.log", megatron.String())
}

// slowSteps are the causes of the slow steps of the logs in a directory, and their sentences.
func slowSteps(t *testing.T, dir string, opt Options) (causes map[int64][]view.Cause, reasons map[int64]string) {
	t.Helper()
	causes, reasons = map[int64][]view.Cause{}, map[int64]string{}
	var mu sync.Mutex
	sink, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if view.KindOf(s) != view.KindBreakdown {
						continue
					}
					n, _ := s.Attributes().Get(spans.AttrIteration)
					for v := range view.Verdicts(s) {
						reasons[n.Int()] = strings.Clone(v.Reason)
					}
					for c := range view.Causes(s) {
						causes[n.Int()] = append(causes[n.Int()], c)
					}
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	in, err := Open([]string{dir}, strings.NewReader(""))
	require.NoError(t, err)
	defer in.Close()
	_, err = Read(t.Context(), in, opt, Sink{Traces: sink})
	require.NoError(t, err)
	return causes, reasons
}

// A rank much later than the clocks' difference is named; no other rank is, whatever the clocks.
func TestLateRanksOfClocksApart(t *testing.T) {
	seeds := uint64(7)
	if testing.Short() {
		seeds = 1
	}
	for _, apart := range []float64{0, 0.001, 0.05, 0.5, 5, 3600} {
		if testing.Short() && apart != 0.5 {
			continue
		}
		for _, drift := range []float64{0, 50e-6} {
			for _, fault := range []float64{0.2, 0.5, 1, 2, 3.5, 5} {
				t.Run(fmt.Sprintf("%gs %gppm fault %gs", apart, drift*1e6, fault), func(t *testing.T) {
					t.Parallel()
					named, slow, wrong := 0, 0, 0
					for seed := range seeds {
						j := apartJob{rng: rand.New(rand.NewPCG(seed, 29)), hosts: 2, ranks: 6, apart: apart, drift: drift, fault: fault, steps: 45, zone: time.UTC}
						if seed%2 == 1 {
							j.hosts = 3
						}
						dir := t.TempDir()
						j.write(t, dir)
						causes, reasons := slowSteps(t, dir, Options{Run: "job", Zones: []Zone{{Log: "megatron.log", Name: "UTC"}}})
						for step, list := range causes {
							rank, is := j.late[step]
							for _, c := range list {
								if c.Rank.OK && (!is || c.Rank.N != int64(rank)) {
									wrong++
									t.Errorf("seed %d, step %d: rank %d is named, late was %d: %s", seed, step, c.Rank.N, rank, reasons[step])
								}
							}
						}
						for step, rank := range j.late {
							slow++
							for _, c := range causes[step] {
								if c.Rank.OK && c.Rank.N == int64(rank) {
									named++
									assert.InDelta(t, fault, c.Seconds, 0.3*fault, reasons[step])
								}
							}
						}
					}
					t.Logf("%s: %d of %d named", t.Name(), named, slow)
					assert.Zero(t, wrong)
					if fault > 4.5*(apart+0.002) {
						assert.Equal(t, slow, named)
					}
				})
			}
		}
	}
}
