package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plainJob is a job of 40 steps of a second on two hosts; step 31 takes 2 s longer, as rank 1 comes late to its collective.
type plainJob struct {
	clock time.Duration // by which the second host's is ahead
	// step writes a line of the training log.
	step  func(at time.Time, step int, took time.Duration) string
	ranks int
	later int // from this step on rank 1 comes 0.6 s late to each, and step 31 is like the others; 0: not
}

func (j *plainJob) write(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	put := func(file, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	var train strings.Builder
	logs := make([]strings.Builder, j.ranks)
	at := time.Unix(1_795_000_000, 0)
	for i := 1; i <= 40; i++ {
		took := 1013 * time.Millisecond // stamps of whole seconds alone would be as exact as a second
		late := time.Duration(0)
		switch {
		case j.later > 0 && i >= j.later:
			late = 600 * time.Millisecond
		case j.later == 0 && i == 31:
			late = 2 * time.Second
		}
		took += late
		at = at.Add(took)
		train.WriteString(j.step(at, i, took))
		for rank := range logs {
			end := at.Add(-50 * time.Millisecond).Add(time.Duration(rank) * j.clock)
			waited := time.Duration(3+(7*i+3*rank)%5) * time.Millisecond
			if rank != 1 {
				waited += late
			}
			from, to := end.Add(-waited).UnixMicro(), end.UnixMicro()
			fmt.Fprintf(&logs[rank], `{"header":{"id":"0x99","comm_name":"DP","rank":%d,"n_ranks":%d,"nnodes":2},"metadata":{`+
				`"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":"host-%d",`+
				`"pid":1},"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":1024,"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu",`+
				`"coll_algobw_gbs":1,"coll_busbw_gbs":1,"event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[{"channel_id":0,`+
				`"kernel_start_sn":3,"kernel_stop_sn":5,"kernel_record_sn":4}]},"event_trace_ts":{"coll_start_ts":%d,"coll_stop_ts":%d,"kernel_events":[`+
				`{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%d}]}}}`+"\n",
				rank, j.ranks, to+9, rank, i, to-from, from, from, from, to, to)
		}
	}
	put("train.log", train.String())
	for rank := range logs {
		put(fmt.Sprintf("host-%d-pid1.log", rank), logs[rank].String())
	}
	return dir
}

func megatron(at time.Time, step int, took time.Duration) string {
	return fmt.Sprintf(" [%s] iteration %8d/ 100 | consumed samples: %d | elapsed time per iteration (ms): %.1f | global batch size:    64 | lm loss: 9.8E+00 |\n",
		at.Local().Format("2006-01-02 15:04:05.000000"), step, 64*step, float64(took.Milliseconds()))
}

func jsonRow(at time.Time, step int, took time.Duration) string {
	return fmt.Sprintf(`{"step": %d, "timestamp": %q, "step_time_s": %g, "loss": 3.5}`+"\n", step, at.UTC().Format(time.RFC3339Nano), took.Seconds())
}

func nanoGPT(_ time.Time, step int, took time.Duration) string {
	return fmt.Sprintf("iter %d: loss 9.8, time %.2fms, mfu 30.00%%\n", step, float64(took.Milliseconds()))
}

// reported is the text of a report, in a single line.
func reported(t *testing.T, args ...string) string {
	t.Helper()
	cmd := NewCommand()
	var out, errs strings.Builder
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	require.NoError(t, cmd.Execute(), errs.String())
	return strings.Join(strings.Fields(out.String()), " ")
}

func TestClocks(t *testing.T) {
	const rank = "waiting for rank 1 on host-1 in AllReduce of DP"
	for clock, named := range map[time.Duration]bool{0: true, 50 * time.Millisecond: true, 5 * time.Second: false} {
		dir := (&plainJob{clock: clock, step: megatron, ranks: 2}).write(t)
		text, chinese := reported(t, dir), reported(t, dir, "--lang", "zh")
		if named {
			assert.Contains(t, text, rank, clock)
			assert.NotContains(t, text, "that no log explains", clock)
			continue
		}
		assert.NotContains(t, text, "waiting for rank", clock)
		assert.Regexp(t, `The hosts' clocks are 5(\.\d+)? s apart, so their logs cannot be aligned; set the clocks by NTP or PTP\.`, text)
		assert.Regexp(t, `主机时钟相差5(\.\d+)?s，其日志无法按时间对齐；请用NTP或PTP校时`, strings.ReplaceAll(chinese, " ", ""))
	}
}

func TestZones(t *testing.T) {
	ahead := func(at time.Time, step int, took time.Duration) string {
		return megatron(at.Add(3*time.Hour), step, took)
	}
	dir := (&plainJob{step: ahead, ranks: 2}).write(t)
	_, offset := time.Unix(1_795_000_000, 0).Zone()
	zone := time.Unix(0, 0).In(time.FixedZone("", offset+3*3600)).Format("-07:00")
	text := reported(t, dir)
	said := "train.log is 3 h ahead of the other logs and states no time zone"
	assert.Equal(t, 1, strings.Count(text, said), text)
	assert.Contains(t, text, "Add --timezone 'train.log="+zone+"'.")
	assert.Contains(t, reported(t, dir, "--lang", "zh"), "--timezone 'train.log="+zone+"'")
	text = reported(t, dir, "--timezone", "train.log="+zone)
	assert.NotContains(t, text, said)
	assert.Contains(t, text, "waiting for rank 1 on host-1 in AllReduce of DP")
}

// Advice fits the trainer of the log, and the number of ranks.
func TestAdviceFits(t *testing.T) {
	const plugin, timers, throughput = "NCCL_PROFILER_PLUGIN", "--timing-log-level", "--log-throughput"
	one := func(at time.Time, step int, took time.Duration) string {
		return strings.Replace(jsonRow(at, step, took), `"loss"`, `"world_size": 1, "loss"`, 1)
	}
	for name, c := range map[string]struct {
		job      plainJob
		has, not []string
	}{
		"megatron":            {plainJob{step: megatron}, []string{plugin, throughput}, []string{}},
		"JSON lines":          {plainJob{step: jsonRow}, []string{plugin}, []string{timers, throughput, "Megatron"}},
		"one GPU":             {plainJob{step: one}, nil, []string{plugin, timers, "Megatron"}},
		"nanoGPT":             {plainJob{step: nanoGPT}, []string{plugin}, []string{timers, throughput, "Megatron"}},
		"megatron, two ranks": {plainJob{step: megatron, ranks: 2}, []string{throughput}, []string{plugin}},
	} {
		for _, lang := range []string{"en", "zh"} {
			text := reported(t, c.job.write(t), "--lang", lang)
			for _, s := range c.has {
				assert.Contains(t, text, s, name)
			}
			for _, s := range c.not {
				assert.NotContains(t, text, s, name)
			}
		}
	}
}

// A log whose timers all grew in a slow step has timers, though none of them says why.
func TestTimersThatDoNotSayWhy(t *testing.T) {
	var log strings.Builder
	for i := 1; i <= 40; i++ {
		took := 10.0
		if i == 31 {
			took = 20
		}
		fmt.Fprintf(&log, "step:%d - actor/pg_loss:0.1 - timing_s/gen:%g - timing_s/ref:%g - timing_s/update_actor:%g - timing_s/step:%g\n",
			i, 0.35*took, 0.3*took, 0.33*took, took)
	}
	file := write1(t, "driver.log", log.String())
	said := reported(t, file, "--full")
	assert.Contains(t, said, "1 of 40 steps was slow (10 s of 410 s). This log does not say why.")
	assert.NotContains(t, said, "no timers within a step")
}

// Where verl's testing lies between steps, it takes nothing from the time of the step that it follows.
func TestEvaluationsBetweenSteps(t *testing.T) {
	var log strings.Builder
	for i := 1; i <= 60; i++ {
		gen := 5.0
		if i == 40 {
			gen = 9
		}
		fmt.Fprintf(&log, "step:%d - actor/pg_loss:0.1 - timing_s/gen:%g - timing_s/update_actor:4.5", i, gen)
		if i%20 == 0 {
			log.WriteString(" - timing_s/testing:3")
		}
		fmt.Fprintf(&log, " - timing_s/step:%g\n", gen+5)
	}
	file := write1(t, "driver.log", log.String())
	assert.Contains(t, reported(t, file, "--full"), "1. 4 s in gen, in 1 step.")
}
