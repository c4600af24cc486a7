package flagscalereceiver

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// recorded reads a recording of Megatron's output (tools/record-trainers/megatron.py), with or without an argument dump.
func recorded(t *testing.T, name string, arguments ...string) (*filereceivertest.Result, string) {
	t.Helper()
	b, err := os.ReadFile("../internal/megatron/testdata/" + name)
	require.NoError(t, err)
	lines := []string{"------------------------ arguments ------------------------", "  hidden_size ..................................... 4096"}
	lines = append(append(lines, arguments...), "-------------------- end of arguments ---------------------")
	if arguments == nil {
		lines = nil
	}
	return read(t, config(filereceivertest.Write(t, "host_0_localhost.output", append(lines, strings.TrimSpace(string(b)))...))), string(b)
}

const (
	world4 = "  world_size ...................................... 4"
	stages = "  pipeline_model_parallel_size .................... "
)

var (
	iterationLine = regexp.MustCompile(`iteration +(\d+)/`)
	timerLine     = regexp.MustCompile(`^\[default3\]:  ([a-z-]+):$`)
	rankLine      = regexp.MustCompile(`rank +(\d+): ([\d.]+)$`)
	reportLine    = regexp.MustCompile(`MnRtt/Rnk: ([\d.]+)ms/\d \| MxRtt/Rnk: ([\d.]+ms/\d)`)
)

func ms(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

func length(s ptrace.Span) float64 { return float64(s.EndTimestamp()-s.StartTimestamp()) / 1e6 }

// Regression: times per rank were dropped (`[default3]: rank 2: 75.63`). Each number of the log is compared with its span.
func TestTimesPerRank(t *testing.T) {
	res, text := recorded(t, "slow_all.log")
	assert.Equal(t, map[string]int64{"times_title": 12, "timer_title": 120, "not_flagscale": 1}, res.Counts.Ignored)
	assert.Empty(t, res.Counts.Rejected)
	assert.EqualValues(t, 12+480+12+24, res.Counts.Records) // iterations, ranks, reports and their Bottom and Top

	type key struct {
		iteration, timer string
	}
	parts, below := map[key]ptrace.Span{}, map[pcommon.SpanID]map[string]ptrace.Span{}
	steps := map[pcommon.TraceID]string{}
	for _, s := range res.All(spans.SpanStep) {
		steps[s.TraceID()] = filereceivertest.Attr(s, spans.AttrIteration)
		assert.Empty(t, filereceivertest.Attr(s, spans.AttrRankSlowest), "it does not say how many pipeline stages there are")
	}
	for _, s := range res.All("") {
		if name := filereceivertest.Attr(s, spans.AttrStage); name != "" {
			parts[key{steps[s.TraceID()], name}] = s
		}
		if strings.HasPrefix(s.Name(), spans.SpanRank) {
			if below[s.ParentSpanID()] == nil {
				below[s.ParentSpanID()] = map[string]ptrace.Span{}
			}
			below[s.ParentSpanID()][s.Name()] = s
		}
	}
	var at key
	times := map[key][]float64{}
	ranks := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := iterationLine.FindStringSubmatch(line); m != nil {
			at.iteration = m[1]
		} else if m := timerLine.FindStringSubmatch(line); m != nil {
			at.timer = m[1]
		} else if m := rankLine.FindStringSubmatch(line); m != nil {
			ranks++
			s, ok := below[parts[at].SpanID()]["rank "+m[1]]
			require.True(t, ok, "%v %s", at, line)
			assert.InDelta(t, ms(m[2]), length(s), 1e-5, "%v %s", at, line)
			assert.Equal(t, m[1], filereceivertest.Attr(s, spans.AttrRank))
			assert.GreaterOrEqual(t, s.StartTimestamp(), parts[at].StartTimestamp())
			assert.LessOrEqual(t, s.EndTimestamp(), parts[at].EndTimestamp())
			times[at] = append(times[at], ms(m[2]))
		}
	}
	assert.Equal(t, 480, ranks)
	for at, of := range times {
		s := parts[at]
		num := func(name string) float64 { return 1e3 * ms(filereceivertest.Attr(s, name)) }
		slowest := slices.Index(of, slices.Max(of))
		assert.InDelta(t, slices.Max(of), length(s), 1e-5)
		assert.InDelta(t, slices.Min(of), num(spans.AttrStageDurationMin), 1e-9)
		assert.Equal(t, strconv.Itoa(slowest), filereceivertest.Attr(s, spans.AttrStageRankSlowest), at)
		assert.InDelta(t, slices.Min(of), of[int(ms(filereceivertest.Attr(s, spans.AttrStageRankFastest)))], 0, "%v", at)
		assert.Equal(t, "4", filereceivertest.Attr(s, spans.AttrStageRanks))
		slices.Sort(of)
		assert.InDelta(t, (of[1]+of[2])/2, num(spans.AttrStageDurationMedian), 1e-9)
	}
}

// Of each step, the rank with the longest computing, and its peers.
func TestSlowestRank(t *testing.T) {
	for _, tt := range []struct {
		log, stages string
		peers       string
		slow        int // of 12 steps: rank 2 is slowest by more than 10 %
	}{
		{"slow_all.log", "1", "3", 12},
		{"slow_all.log", "2", "1", 12}, // ranks 0 and 1 are the first stage, 2 and 3 the second
		{"slow_all.log", "4", "", 0},   // each rank is a stage of its own
		{"slow_all.log", "3", "", 0},   // cannot be
		{"slow_all.log", "1\n  use_tp_pp_dp_mapping ............................ True", "", 0},
		{"healthy_all.log", "1", "3", 0},
		{"healthy_all.log", "2", "1", 0},
	} {
		t.Run(tt.log+" "+tt.stages, func(t *testing.T) {
			res, _ := recorded(t, tt.log, stages+tt.stages, world4)
			slow := 0
			for _, s := range res.All(spans.SpanStep) {
				assert.Equal(t, tt.peers, filereceivertest.Attr(s, spans.AttrRankSlowestPeers))
				if ms(filereceivertest.Attr(s, spans.AttrRankSlowestDuration)) <= 1.1*ms(filereceivertest.Attr(s, spans.AttrRankSlowestPeersDuration)) {
					continue
				}
				slow++
				assert.Equal(t, "2", filereceivertest.Attr(s, spans.AttrRankSlowest))
				assert.Equal(t, "[2]", filereceivertest.Attr(s, spans.AttrRanksBehind))
				assert.Equal(t, "backward-compute", filereceivertest.Attr(s, spans.AttrRankSlowestStage))
			}
			assert.Equal(t, tt.slow, slow)
		})
	}
}

// The report of --log-straggler was dropped: `MxRtt/Rnk: 69.32ms/2`.
func TestStragglerReport(t *testing.T) {
	res, text := recorded(t, "slow_all.log", stages+"1", world4)
	reports, steps := res.All(spans.SpanRanks), res.All(spans.SpanStep)
	got := map[string]int{}
	for i, s := range reports {
		assert.GreaterOrEqual(t, s.EndTimestamp(), steps[i].EndTimestamp(), "its time has whole seconds: it was before the step")
		assert.Equal(t, spans.StepTraceID("run", int64(2*i+2)), s.TraceID(), "with the step that it is printed after")
		assert.True(t, s.ParentSpanID().IsEmpty())
		assert.Equal(t, "2", filereceivertest.Attr(s, spans.AttrRankSlowest))
		assert.Equal(t, "1", filereceivertest.Attr(s, spans.AttrRankSlowestPeers))
		assert.Equal(t, "Rtt", filereceivertest.Attr(s, spans.AttrRankSlowestStage))
		assert.Regexp(t, `^\d\.\d\d/2, \d\.\d\d/\d$`, filereceivertest.Attr(s, spans.AttrTrainFieldPrefix+"Bottom_Ranks"))
		assert.Regexp(t, `^\d\.\d\d/\d, \d\.\d\d/\d$`, filereceivertest.Attr(s, spans.AttrTrainFieldPrefix+"Top_Ranks"))
		assert.Equal(t, "63.00C/3", filereceivertest.Attr(s, spans.AttrTrainFieldPrefix+"MxTmp/Rnk"))
		got[fmt.Sprintf("%.2fms/2", 1e3*ms(filereceivertest.Attr(s, spans.AttrRankSlowestDuration)))]++
		got[fmt.Sprintf("%.2fms", 1e3*ms(filereceivertest.Attr(s, spans.AttrRankSlowestPeersDuration)))]++
	}
	want := map[string]int{}
	for _, m := range reportLine.FindAllStringSubmatch(text, -1) {
		want[m[1]+"ms"]++
		want[m[2]]++
	}
	assert.Len(t, reports, 12)
	assert.Equal(t, want, got)

	// With more than one pipeline stage, the extremes of all ranks have no meaning for a rank.
	res, _ = recorded(t, "slow_all.log", stages+"2", world4)
	for _, s := range res.All(spans.SpanRanks) {
		assert.Empty(t, filereceivertest.Attr(s, spans.AttrRankSlowest))
	}
	rtt := res.All("Rtt")
	require.Len(t, rtt, 12)
	assert.Equal(t, "2", filereceivertest.Attr(rtt[0], spans.AttrStageRankSlowest))
}

// Rank 0 reports, the last rank logs the iterations: on several hosts these are two files.
func TestStragglerReportAlone(t *testing.T) {
	res := read(t, config(filereceivertest.Write(t, "host_0.output",
		" 0: INFO:megatron.core.utils:[2024-03-14 23:07:56] | MnRtt/Rnk: 3453.08ms/8 | MxRtt/Rnk: 3468.20ms/0 | MnDRtt/Rnk: 14.27ms/23 | MxDRtt/Rnk: 34.65ms/3 | MnEtpt/Rnk: 296.02TF/0 | MxEtpt/Rnk: 297.32TF/8",
		" 0: INFO:megatron.core.utils:^^^^ Bottom 4 Ranks with lowest  Etpt(TF): 296.02/0, 296.17/2, 296.23/1, 296.23/4,",
		" 0: INFO:megatron.core.utils:^^^^ Top    4 Ranks with highest Etpt(TF): 297.28/15, 297.28/11, 297.32/12, 297.32/8,",
		" 0: INFO:megatron.core.utils:[2024-03-14 23:08:56] | MnRtt/Rnk: 3453.08ms/8 | MxRtt/Rnk: 3468.20ms/0 | MnDRtt/Rnk: 14.27ms/23 | MxDRtt/Rnk: 34.65ms/3",
	)))
	reports := res.All(spans.SpanRanks)
	require.Len(t, reports, 2)
	assert.NotEqual(t, reports[0].TraceID(), reports[1].TraceID())
	assert.Equal(t, "2024-03-14 15:07:56", reports[0].EndTimestamp().AsTime().Format("2006-01-02 15:04:05"), "of Asia/Shanghai")
	assert.Equal(t, "296.02/0, 296.17/2, 296.23/1, 296.23/4", filereceivertest.Attr(reports[0], spans.AttrTrainFieldPrefix+"Bottom_Ranks"))
	assert.Equal(
		t, "Rtt 3.45 s on rank 8, 3.47 s on rank 0; DRtt 14.3 ms on rank 23, 34.6 ms on rank 3", filereceivertest.Attr(reports[0], spans.AttrSummary),
	)
	rtt := res.All("Rtt")
	require.Len(t, rtt, 2)
	assert.InDelta(t, 3468.2, length(rtt[0]), 1e-5)
	assert.Equal(t, reports[0].EndTimestamp(), rtt[0].EndTimestamp())
	assert.InDelta(t, 34.65+3468.2, length(reports[0]), 1e-5)
	assert.Empty(t, filereceivertest.Attr(rtt[0], spans.AttrStageRanks), "how many there are is not said")
	assert.EqualValues(t, 4, res.Counts.Records)
}

// A trace stays small, however many the ranks.
func TestManyRanks(t *testing.T) {
	lines := []string{"[2026-03-01 10:00:04] iteration 2/ 9 | elapsed time per iteration (ms): 1000.0 | lm loss: 2 |", "times across ranks (ms):"}
	for timer := range 30 {
		lines = append(lines, fmt.Sprintf("  timer-%d:", timer))
		for rank := range 1024 {
			lines = append(lines, fmt.Sprintf("     rank %2d: %d.00", rank, 1+(rank*37+5)%1024))
		}
	}
	res := read(t, config(filereceivertest.Write(t, "host_0.output", lines...)))
	all := res.All("")
	assert.Len(t, all, 1+1+30*(1+8))
	part := res.All("timer-7")[0]
	var got []string
	for _, s := range all {
		if s.ParentSpanID() == part.SpanID() {
			got = append(got, fmt.Sprintf("%s %g", s.Name(), length(s)))
		}
	}
	// rank · 37 + 5 is 1023 for 525, 1022 for 885, …, 511 and 0
	inverse := func(took int) string {
		for rank := range 1024 {
			if 1+(rank*37+5)%1024 == took {
				return fmt.Sprintf("rank %d %d", rank, took)
			}
		}
		return ""
	}
	assert.Equal(t, []string{inverse(1024), inverse(1023), inverse(1022), inverse(1021), inverse(1020), inverse(1019), inverse(512), inverse(1)}, got)
	assert.Equal(t, "1024", filereceivertest.Attr(part, spans.AttrStageRanks))
	assert.Equal(t, "0.5125", filereceivertest.Attr(part, spans.AttrStageDurationMedian))
}

// The times of a record other than a step, and times under an unseen timer name, are counted.
func TestRanksOfNoStep(t *testing.T) {
	res := read(t, config(filereceivertest.Write(t, "host_0.output",
		"     rank  0: 3.00", "times across ranks (ms):", "     rank  0: 3.00", "  model-and-optimizer-setup:", "     rank  0: 100.00", "     rank  1: 200.00",
		"a line of another rank", "     rank  2: 200.00",
		"[2026-03-01 10:00:04] iteration 2/ 9 | elapsed time per iteration (ms): 1000.0 | lm loss: 2 |", "  forward-compute:", "     rank  0: 3.00",
		"max time across ranks (ms):", "    forward-compute ................................: 55.5", "     rank  0: 3.00",
	)))
	assert.Equal(t, map[string]int64{"not_flagscale": 6, "times_title": 2, "timer_title": 1, "no_step": 3}, res.Counts.Ignored)
	assert.EqualValues(t, 2, res.Counts.Records)
	assert.Len(t, res.All("forward-compute"), 1)
}

// Regression: timers of 0.00 ms, a step of 0.0 ms and a report without a time drew "Negative duration" in Jaeger. No span has zero length, or ends before its
// start.
func TestNothingIsZeroLong(t *testing.T) {
	res := read(t, config(filereceivertest.Write(t, "host_0.output",
		"[2026-03-01 10:00:04] iteration 2/ 9 | elapsed time per iteration (ms): 0.0 | lm loss: 2 |",
		"(min, max) time across ranks (ms):",
		"    forward-backward ...............................: (0.00, 0.00)", "    forward-compute ................................: (0.00, 0.00)",
		"    a-timer ........................................: (0.00, 0.00)",
		"[2026-03-01 10:00:05] iteration 3/ 9 | lm loss: 2 |",
		"times across ranks (ms):", "  optimizer:", "     rank  0: 0.00", "     rank  1: 0.00", "  params-all-gather:", "     rank  0: 0.00",
		"[2026-03-01 10:00:06] | MnRtt/Rnk: 0.00ms/0 | MxRtt/Rnk: 0.00ms/1",
		"    late ...........................................: (0.00, 0.00)",
	)))
	all := res.All("")
	assert.Len(t, all, 1+2+3+2+3+1+1+2+1)
	for _, s := range all {
		assert.Greater(t, s.EndTimestamp(), s.StartTimestamp(), s.Name())
	}
}
