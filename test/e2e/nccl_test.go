//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	"github.com/trainbridge/trainbridge/internal/porttest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// ncclLog is the truth of logs written by `gen nccl`.
type ncclLog struct {
	name, dir string
	run       ncclRun
	truth     []*ncclTruth
}

type ncclRun struct {
	Format            string
	Lines, Operations int64
	CommunicatorHash  string `json:"communicator_hash"`
	Ranks             int
	SlowRank          int `json:"slow_rank"`
	MissingRank       int `json:"missing_rank"`
	CollectivesInStep int `json:"collectives_in_step"`
	Errors, Retries   int64
	Hosts             []struct {
		Name     string
		OffsetNS int64 `json:"offset_ns"`
	}
	Links []ncclLink
	Files []struct {
		Operations  int64
		Overwritten int64 `json:"overwritten_lines"`
	}
}

type ncclLink struct {
	From, To       int
	Records, Bytes int64
	Bandwidth      float64
	Slow           bool
}

type ncclTruth struct {
	Index, Step   int
	Communicator  string
	Operation     string
	Sequence      uint64
	MessageSize   int64   `json:"message_size"`
	DataSize      int64   `json:"data_size"`
	LateRank      int64   `json:"late_rank"`
	LateNS        int64   `json:"late_ns"`
	CostNS        int64   `json:"cost_ns"`
	Missing       []int64 `json:"missing"`
	Records       int64
	ShortestNS    int64   `json:"shortest_ns"`
	LongestNS     int64   `json:"longest_ns"`
	Alg           float64 `json:"algbw"`
	Bus           float64 `json:"busbw"`
	Errors        int64
	Retries       int64
	EndUnixNano   int64 `json:"end_unix_nano"`
	StartUnixNano int64 `json:"start_unix_nano"`
	State         string
}

func generateNCCL(tb testing.TB, name string, flags ...string) *ncclLog {
	tb.Helper()
	return generateNCCLInto(tb, filepath.Join(tb.TempDir(), name), name, flags...)
}

func generateNCCLInto(tb testing.TB, dir, name string, flags ...string) *ncclLog {
	tb.Helper()
	gen(tb, ncclArgs(dir, flags...)...)
	return readNCCL(tb, dir, name)
}

func ncclArgs(dir string, flags ...string) []string {
	return append([]string{"nccl", "--out", dir, "--truth", dir + ".truth.json", "--timezone", "UTC"}, flags...)
}

// readNCCL reads the generator's truth of the logs in a folder.
func readNCCL(tb testing.TB, dir, name string) *ncclLog {
	tb.Helper()
	l := &ncclLog{name: name, dir: dir}
	truth := dir + ".truth.json"
	f, err := os.Open(truth)
	require.NoError(tb, err)
	defer f.Close()
	for dec := json.NewDecoder(f); ; {
		var rec struct {
			ncclTruth
			Run *ncclRun
		}
		require.NoErrorf(tb, dec.Decode(&rec), "%s after %d collectives", truth, len(l.truth))
		if rec.Run != nil {
			l.run = *rec.Run
			return l
		}
		l.truth = append(l.truth, &rec.ncclTruth)
	}
}

func (l *ncclLog) receiver() string { return "nccl/" + l.name }

// newNCCLCollector prepares a collector for the logs.
func newNCCLCollector(t *testing.T, bin, backend string, s *tempo, logs ...*ncclLog) *collector {
	t.Helper()
	var receivers [][2]string
	for _, l := range logs {
		receivers = append(receivers, [2]string{
			l.receiver(), fmt.Sprintf("{include: [%q], storage: state_storage, run_id: %q, service_name: %q, poll_interval: 20ms, pending_timeout: 2s, "+
				"hang_timeout: 3s, timezone: UTC}", l.dir+"/*", l.name, l.name),
		})
	}
	return newCollector(t, bin, filepath.Join(t.TempDir(), "none"), backend, readersConfig(s, receivers))
}

// ncclKey names a collective.
type ncclKey struct {
	operation string
	sequence  uint64
}

// ncclAnswer are a backend's collectives.
type ncclAnswer struct {
	*answer
	of map[ncclKey]*node
}

// at is the span of a collective of the truth.
func (a *ncclAnswer) at(want *ncclTruth) *node { return a.of[ncclKey{want.Operation, want.Sequence}] }

func (l *ncclLog) roots(td ptrace.Traces) *ncclAnswer {
	a := &ncclAnswer{answer: read(td), of: make(map[ncclKey]*node)}
	for _, trace := range a.traces {
		for _, n := range trace {
			if n.str(spans.AttrNCCLRanks) == "" || n.str(spans.AttrNCCLCommRank) != "" {
				continue
			}
			key := ncclKey{n.str(spans.AttrNCCLOperation), uint64(n.int(spans.AttrNCCLSequence))}
			if a.of[key] != nil {
				a.wrong("there are two of %v", key)
			}
			a.of[key] = n
		}
	}
	return a
}

// kernelError is how far the end of a rank may be from the others' ends: the ranks leave at slightly different times, and logs print µs.
const kernelError = 25_000 // ns

// check holds a backend's answer against the truth.
func (l *ncclLog) check(td ptrace.Traces) *ncclAnswer {
	a := l.roots(td)
	for _, want := range l.truth {
		key := ncclKey{want.Operation, want.Sequence}
		n := a.of[key]
		if n == nil {
			a.missing = append(a.missing, fmt.Sprintf("%v", key))
			continue
		}
		ranks := 0
		for _, c := range n.children {
			if spans.IsNCCLRank(c.Name()) {
				ranks++
			}
		}
		if int64(ranks) != want.Records {
			a.missing = append(a.missing, fmt.Sprintf("%v has %d ranks, want %d", key, ranks, want.Records))
			continue
		}
		l.compare(a, key, n, want)
	}
	return a
}

func (l *ncclLog) compare(a *ncclAnswer, key ncclKey, n *node, want *ncclTruth) {
	number := func(name string, want, tolerance float64) {
		if got := n.number(name); math.IsNaN(got) || math.Abs(got-want) > tolerance {
			a.wrong("%s of %v is %v, want %v", name, key, got, want)
		}
	}
	number(spans.AttrNCCLMessageSize, float64(want.MessageSize), 0)
	if n.Name() != want.Operation {
		a.wrong("%v is named %s", key, n.Name())
	}
	if l.run.Format != "flight_recorder" && want.Communicator != "" && n.str(spans.AttrNCCLCommID) != l.run.CommunicatorHash {
		a.wrong("%v is of communicator %s, want %s", key, n.str(spans.AttrNCCLCommID), l.run.CommunicatorHash)
	}
	var missing []int64
	if v, ok := n.Attributes().Get(spans.AttrNCCLRanksMissing); ok {
		for _, r := range v.Slice().All() {
			missing = append(missing, r.Int())
		}
	}
	if !slices.Equal(missing, want.Missing) {
		a.wrong("%v misses ranks %v, want %v", key, missing, want.Missing)
	}
	if want.ShortestNS == 0 || want.State != "" {
		return
	}
	number(spans.AttrNCCLTransferDuration, float64(want.ShortestNS)/1e9, 1e-12)
	number(spans.AttrNCCLDuration, float64(want.LongestNS)/1e9, 1e-12)
	if dataSize := n.number(spans.AttrNCCLDataSize); dataSize > 0 { // the example profiler and VCCL_DOC's schema do not say how many ranks a size is for
		number(spans.AttrNCCLDataSize, float64(want.DataSize), 0)
		number(spans.AttrNCCLBandwidthAlgorithm, want.Alg, 1e-9*want.Alg)
		if n.int(spans.AttrNCCLCommSize) > 0 || n.number(spans.AttrNCCLBandwidthBus) > 0 { // of VCCL with a closed ring
			number(spans.AttrNCCLBandwidthBus, want.Bus, 1e-9*want.Bus)
		}
	}
	number(spans.AttrNCCLErrors, float64(want.Errors), 0)
	number(spans.AttrNCCLRetries, float64(want.Retries), 0)
	slowLink := slices.ContainsFunc(l.run.Links, func(k ncclLink) bool { return k.Slow }) // whose rank prints longer durations
	if len(want.Missing) == 0 && want.Operation != "Broadcast" && !slowLink {
		number(spans.AttrNCCLLateMax, float64(want.LateNS)/1e9, kernelError/1e9)
		if want.CostNS > 2*kernelError*int64(l.run.Ranks) && n.int(spans.AttrNCCLLateRank) != want.LateRank {
			a.wrong("rank %d was last to %v, want %d", n.int(spans.AttrNCCLLateRank), key, want.LateRank)
		}
	}
}

func (l *ncclLog) await(t *testing.T, j *jaeger) (a *ncclAnswer) {
	t.Helper()
	eventually(t, func() error {
		td, err := j.find(l.name)
		if err != nil {
			return err
		}
		a = l.check(td)
		return a.err()
	})
	return a
}

// said are the verdicts of a span, by title, and their reasons.
func (n *node) said() map[string]string {
	out := make(map[string]string)
	for v := range view.Verdicts(n.Span) {
		out[v.Title()] = v.Reason
	}
	return out
}

// Logs of all formats in; collectives in Jaeger and Tempo, distributions in Prometheus, all equal to the truth.
func TestNCCL(t *testing.T) {
	t.Parallel()
	j, s := startJaeger(t), startTempo(t)
	small := []string{"--seed", "5", "--ranks", "8", "--nodes", "2", "--steps", "20"}
	log := func(name, format string, flags ...string) *ncclLog {
		return generateNCCL(t, name, slices.Concat(small, []string{"--format", format}, flags)...)
	}
	slow := log("slow", "nccl_inspector", "--ranks", "64", "--nodes", "8", "--ranks-per-file", "8", "--steps", "30", "--slow-rank", "17", "--slow-by", "0.05")
	late := log("late", "nccl_inspector_v4.4", "--verbose", "--jitter", "0.05", "--gap-rank", "3", "--gap-at", "33")
	skewed := log("skewed", "nccl_inspector_v4.2", "--verbose", "--nodes", "4", "--clock-skew", "5s", "--clock-drift", "50", "--steps", "40")
	vccl := log("json", "vccl_json", "--retries", "0.02", "--errors", "0.02", "--slow-link", "2:3")
	recorder := log("recorder", "flight_recorder", "--missing-rank", "5", "--missing-from", "60")
	stops := log("stops", "nccl_inspector_v4.1", "--missing-rank", "6", "--missing-from", "50")
	logs := []*ncclLog{
		slow, late, skewed, vccl, recorder, stops,
		log("pretty", "vccl_json_pretty"), log("array", "vccl_json_array"), log("csv", "vccl_csv", "--gigabytes"),
		log("profiler", "nccl_profiler", "--invalid-tokens", "--no-end"),
	}
	c := newNCCLCollector(t, trainbridgeBin(t), j.otlp, s, logs...)
	prom := startPrometheus(t, c.scrape...)
	c.up(t)

	answers := make(map[string]*ncclAnswer)
	for _, l := range logs {
		t.Run(l.name, func(t *testing.T) {
			answers[l.name] = l.await(t, j)
			lines := l.run.Lines
			if l == recorder { // a dump is one document
				lines = int64(len(l.run.Files))
			}
			sum := accountsOf(t, c, l.receiver(), lines)
			assert.Zero(t, sum["rejected"]+sum["refused"], "%v", sum)
			checkNCCLPrometheus(t, prom, l)
		})
	}
	if t.Failed() {
		return
	}
	t.Run("Tempo", func(t *testing.T) { late.checkTempo(t, s, answers["late"]) })
	t.Run("straggler", func(t *testing.T) { slow.checkStraggler(t, answers["slow"]) })
	t.Run("clocks", func(t *testing.T) { skewed.checkClocks(t, prom, answers["skewed"]) })
	t.Run("hang", func(t *testing.T) { recorder.checkHang(t, answers["recorder"]) })
	t.Run("verdicts", func(t *testing.T) {
		vccl.checkErrorsAndRetries(t, answers["json"])
		for _, l := range []*ncclLog{late, skewed, vccl} {
			for key, n := range answers[l.name].of {
				assert.Empty(t, n.said()[spans.VerdictNCCLStraggler], "%s: %v", l.name, key)
			}
		}
		assert.NotEmpty(t, answers["late"].at(late.truth[33]).said()[spans.VerdictNCCLRankMissing+" (sequence_gap)"])
		said := answers["stops"].at(stops.truth[50]).said()
		assert.Contains(t, said[spans.VerdictNCCLRankMissing], "6", "%v", said)
	})
	t.Run("links", func(t *testing.T) { vccl.checkLinks(t, prom, answers["json"]) })
	t.Run("promtool", func(t *testing.T) { checkPromtool(t, c.metrics) })
	c.stop(t)
}

// checkHang: the first collective without rank 5 has the verdict, with the missing rank.
func (l *ncclLog) checkHang(t *testing.T, a *ncclAnswer) {
	t.Helper()
	last := l.truth[60]
	n := a.at(last)
	assert.Equal(t, []int64{5}, last.Missing)
	reason := n.said()[spans.VerdictNCCLHang]
	assert.Contains(t, reason, "5", "%v", n.Attributes().AsRaw())
	assert.Contains(t, reason, strconv.FormatUint(last.Sequence, 10))
}

// checkErrorsAndRetries: only the collectives with errors or retries have the verdicts.
func (l *ncclLog) checkErrorsAndRetries(t *testing.T, a *ncclAnswer) {
	t.Helper()
	for _, want := range l.truth {
		said := a.at(want).said()
		assert.Equal(t, want.Errors > 0, said[spans.VerdictNCCLErrors] != "", "%v", said)
		assert.Equal(t, want.Retries > 0, said[spans.VerdictNCCLErrors+" (retries)"] != "", "%v", said)
	}
}

// checkTempo: Tempo finds the collectives with a rank later than a limit.
func (l *ncclLog) checkTempo(t *testing.T, s *tempo, a *ncclAnswer) {
	t.Helper()
	const limit = 4e-3 // s; no lateness is close enough to the limit to depend on the ranks' finish
	want := make(map[pcommon.TraceID]bool)
	for _, n := range a.of {
		if n.attr(spans.AttrNCCLLateMax) > limit {
			want[n.TraceID()] = true
		}
	}
	require.NotEmpty(t, want)
	require.Less(t, len(want), len(a.of))
	query := fmt.Sprintf(`{ resource.service.name = %q && span.nccl.late.max > %v }`, l.name, limit)
	s.awaitFound(t, query, want)
	eventually(t, func() error {
		all, err := s.all(a.traces)
		if err != nil {
			return err
		}
		return l.check(all).err()
	})
}

// checkStraggler: only the slow rank is named, within 20 steps.
func (l *ncclLog) checkStraggler(t *testing.T, a *ncclAnswer) {
	t.Helper()
	first := -1
	for _, want := range l.truth {
		n := a.at(want)
		if n.str(spans.AttrNCCLStragglerRank) == "" {
			continue
		}
		if first < 0 {
			first = want.Step
		}
		assert.EqualValues(t, l.run.SlowRank, n.int(spans.AttrNCCLStragglerRank), "step %d", want.Step)
		assert.Contains(t, n.said()[spans.VerdictNCCLStraggler], strconv.Itoa(l.run.SlowRank))
	}
	assert.GreaterOrEqual(t, first, 0, "the slow rank is named")
	assert.Less(t, first, 20)
	t.Logf("rank %d is named in step %d", l.run.SlowRank, first)
}

// checkClocks: the offsets of the hosts at the end, relative to one another.
func (l *ncclLog) checkClocks(t *testing.T, prom *prometheus, a *ncclAnswer) {
	t.Helper()
	last := l.truth[len(l.truth)-1]
	n := a.at(last)
	truth := make(map[string]int64)
	for _, h := range l.run.Hosts {
		truth[h.Name] = h.OffsetNS
	}
	reference := n.str(spans.AttrNCCLClockReference)
	require.Contains(t, truth, reference)
	hosts := make(map[string]bool)
	for _, c := range n.children {
		host, _ := c.resource.Attributes().Get(spans.AttrHostName)
		hosts[host.Str()] = true
		want := float64(truth[host.Str()]-truth[reference]) / 1e9
		assert.InDelta(t, want, c.attr(spans.AttrNCCLClockOffset), 50e-6, host.Str())
	}
	assert.Len(t, hosts, 4)
	prom.awaitValues(t, map[string]float64{fmt.Sprintf("count(nccl_clock_offset_seconds{job=%q})", l.name): 4})
}

// checkLinks: the bytes sent between each pair of ranks, and the slow link.
func (l *ncclLog) checkLinks(t *testing.T, prom *prometheus, a *ncclAnswer) {
	t.Helper()
	slow, sent := "", make(map[string]float64)
	for _, link := range l.run.Links {
		sent[fmt.Sprintf(`nccl_link_io_bytes_total{job=%q,nccl_source_rank="%d",nccl_destination_rank="%d"}`, l.name, link.From, link.To)] = float64(link.Bytes)
		if link.Slow {
			slow = fmt.Sprintf("%d→%d", link.From, link.To)
		}
	}
	prom.awaitValues(t, sent)
	require.NotEmpty(t, slow)
	named := 0
	for _, n := range a.of {
		if links := n.str(spans.AttrNCCLLinkSlow); links != "" { // the receiver looks for slow links now and then only
			named++
			assert.Equal(t, fmt.Sprintf("[%q]", slow), links)
			assert.Contains(t, n.said()[spans.VerdictNCCLLink+" (slow)"], slow)
		}
	}
	assert.Positive(t, named)
}

// checkNCCLPrometheus asks for the sums over the collectives.
func checkNCCLPrometheus(t *testing.T, prom *prometheus, l *ncclLog) {
	t.Helper()
	complete, bytes, missing := 0.0, 0.0, 0.0
	bus := make(map[string]float64)
	for _, c := range l.truth {
		missing += float64(len(c.Missing))
		if len(c.Missing) == 0 && c.State == "" && c.ShortestNS > 0 {
			complete++
			bytes += float64(c.DataSize)
			bus[c.Operation] += c.Bus
		}
	}
	want := map[string]float64{
		`sum(nccl_collective_missing_total{%s})`: missing,
		`sum(nccl_collective_retries_total{%s})`: float64(l.run.Retries),
		`sum(nccl_collective_errors_total{%s})`:  float64(l.run.Errors),
	}
	if complete > 0 {
		want[`sum(histogram_count(nccl_collective_duration_seconds{%s}))`] = complete
	}
	if strings.HasPrefix(l.run.Format, "nccl_inspector") {
		want[`sum(nccl_collective_io_bytes_total{%s})`] = bytes
		for name, sum := range bus {
			want[`sum(histogram_sum(nccl_collective_bandwidth_bytes_per_second{nccl_bandwidth_kind="busbw",nccl_operation="`+name+`",%s}))`] = sum
		}
	}
	prom.awaitValues(t, ofJob(l.name, want))
}

// VCCL's samples over time, and its sends: every line is accounted for, and is in Prometheus or in Jaeger.
func TestNCCLSamples(t *testing.T) {
	t.Parallel()
	j := startJaeger(t)
	flags := []string{"--seed", "9", "--ranks", "8", "--nodes", "2", "--steps", "10", "--slow-link", "0:4"}
	var logs []*ncclLog
	for _, format := range []string{"vccl_flow", "vccl_packed", "vccl_mean", "vccl_text"} {
		logs = append(logs, generateNCCL(t, format, append(flags, "--format", format)...))
	}
	c := newNCCLCollector(t, trainbridgeBin(t), j.otlp, nil, logs...)
	prom := startPrometheus(t, c.scrape...)
	c.up(t)
	for _, l := range logs {
		t.Run(l.name, func(t *testing.T) {
			sum := accountsOf(t, c, l.receiver(), l.run.Lines)
			assert.Zero(t, sum["rejected"]+sum["refused"], "%v", sum)
			query, want := "", 0
			switch l.name {
			case "vccl_packed", "vccl_mean":
				query = fmt.Sprintf(`count(count by (log_file_path) (nccl_device_bandwidth_bytes_per_second{job=%q}))`, l.name)
				for _, f := range l.run.Files {
					want += int(min(1, f.Operations))
				}
			default:
				query, want = fmt.Sprintf(`count(nccl_link_bandwidth_bytes_per_second{job=%q})`, l.name), len(l.run.Links)
				eventually(t, func() error {
					td, err := j.find(l.name)
					if err != nil {
						return err
					}
					if a := l.roots(td); len(a.of) != len(l.truth) {
						return fmt.Errorf("%d collectives, want %d", len(a.of), len(l.truth))
					}
					return nil
				})
			}
			prom.awaitValues(t, map[string]float64{query: float64(want)})
		})
	}
	c.stop(t)
}

// Ranks append while the collector runs and is killed, again and again: every collective is whole in the end, without a verdict about a missing rank.
func TestNCCLCrash(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"nccl_inspector", "nccl_inspector_v4.4", "vccl_json"} {
		t.Run(format, func(t *testing.T) {
			j := startJaeger(t)
			l := &ncclLog{name: format, dir: filepath.Join(t.TempDir(), format)}
			c := newNCCLCollector(t, trainbridgeBin(t), j.otlp, nil, l)
			written := make(chan error, 1)
			ranks := exec.Command(
				genBin(t),
				ncclArgs(
					l.dir, "--live", "--format", format, "--seed", "3", "--ranks", "8", "--nodes", "2", "--steps", "120", "--compute", "40ms", "--dump-interval", "90ms",
				)...,
			)
			require.NoError(t, ranks.Start())
			go func() { written <- ranks.Wait() }()
			kills := 0
			c.up(t)
			for writing := true; writing || kills < 3; { // a slow machine may start a collector for as long as the ranks write
				select {
				case err := <-written:
					require.NoError(t, err)
					writing = false
				case <-time.After(700 * time.Millisecond):
					c.kill()
					kills++
					c.up(t)
				}
			}
			l = readNCCL(t, l.dir, l.name)
			a := l.await(t, j)
			for key, n := range a.of {
				assert.Empty(t, n.str(spans.AttrIncomplete), "%v", key)
			}
			t.Logf("%d kills, %d spans came again", kills, a.copies)
			c.stop(t)
		})
	}
}

// VCCL alternates between two files per network card, truncating each before reuse: no row is missed.
func TestNCCLFlip(t *testing.T) {
	t.Parallel()
	j := startJaeger(t)
	l := &ncclLog{name: "flip", dir: filepath.Join(t.TempDir(), "flip")}
	require.NoError(t, os.Mkdir(l.dir, 0o750)) // else only the next full scan finds the directory, half a minute later
	c := newNCCLCollector(t, trainbridgeBin(t), j.otlp, nil, l)
	c.up(t)
	written := generateNCCLInto(
		t, l.dir, "flip", "--live", "--format", "vccl_flow", "--flip-at", "20000", "--seed", "4", "--ranks", "8", "--nodes", "2", "--steps", "80", "--compute",
		"100ms", // a busy machine reads a file before its next turn
	)
	overwritten := int64(0)
	for _, f := range written.run.Files {
		overwritten += f.Overwritten
	}
	require.Positive(t, overwritten)
	eventually(t, func() error {
		sum := accountsOf(t, c, l.receiver(), 1)
		if sum["records"] != written.run.Operations || sum["sent"] != sum["records"] {
			return fmt.Errorf("%v, want %d sends", sum, written.run.Operations)
		}
		assert.Zero(t, sum["rejected"]+sum["refused"], "%v", sum)
		return nil
	})
	c.stop(t)
}

// 1024 ranks of 128 nodes, 1,000 collectives: all are joined, within the memory bound.
func TestNCCLManyRanks(t *testing.T) {
	t.Parallel()
	l := generateNCCL(t, "many", "--seed", "7", "--ranks", "1024", "--nodes", "128", "--ranks-per-file", "8", "--steps", "250")
	require.Len(t, l.truth, 1000)
	sink := startSink(t)
	c := newNCCLCollector(t, trainbridgeBin(t), sink.addr, nil, l)
	c.up(t)
	sum := accountsOf(t, c, l.receiver(), l.run.Lines)
	assert.Zero(t, sum["rejected"]+sum["refused"], "%v", sum)
	eventually(t, func() error {
		own, err := c.ownMetrics()
		outcomes := make(map[string]float64)
		for _, m := range own {
			if strings.HasPrefix(m.name, "otelcol_trainbridge_nccl_collectives") {
				outcomes[m.labels["outcome"]] += m.value
			}
		}
		if err == nil && !maps.Equal(outcomes, map[string]float64{"complete": 1000}) {
			err = fmt.Errorf("collectives are %v, want 1000 complete ones", outcomes)
		}
		return err
	})
	sent := sink.spans.Load() // beside the ranks' spans: the wait and transfer of 64 ranks, and the spans that stand for the remaining ranks'
	assert.Greater(t, sent, int64(1000*1025))
	assert.LessOrEqual(t, sent, int64(1000*(1025+2*64+2)+1))
	// 256,000 healthy steps of a rank: no rank is named as a straggler.
	eventually(t, func() error { // train_metrics sends once a second
		list, err := metricsOf(c.metrics)
		counted := 0.0
		for _, m := range list {
			if m.name == "nccl_collective_duration_seconds_count" {
				counted += m.value
			}
		}
		if err == nil && counted != 1000 {
			err = fmt.Errorf("%v collectives are counted", counted)
		}
		return err
	})
	page, err := get(c.metrics, "")
	require.NoError(t, err)
	assert.NotContains(t, string(page), spans.VerdictNCCLStraggler)
	peak, err := c.status("VmHWM")
	require.NoError(t, err)
	t.Logf("peak %d MiB", peak>>20)
	assert.Positive(t, peak)
	assert.Less(t, peak, int64(400<<20))
	c.stop(t)
}

// number is a numeric attribute, NaN if absent.
func (n *node) number(key string) float64 {
	v, ok := n.get(key)
	if !ok {
		return math.NaN()
	}
	return spans.ValueNumber(v)
}

// sink counts spans received over OTLP: a million spans are too many for a backend of a test.
type sink struct {
	ptraceotlp.UnimplementedGRPCServer
	addr  string
	spans atomic.Int64
}

func startSink(tb testing.TB) *sink {
	tb.Helper()
	s := new(sink)
	s.addr = serveTraces(tb, s)
	return s
}

// serveTraces serves a test's own backend over OTLP, and returns its address.
func serveTraces(tb testing.TB, backend ptraceotlp.GRPCServer) string {
	tb.Helper()
	listener, err := porttest.Listen("127.0.0.1:0")
	require.NoError(tb, err)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	ptraceotlp.RegisterGRPCServer(server, backend)
	go func() { _ = server.Serve(listener) }()
	tb.Cleanup(server.Stop)
	return listener.Addr().String()
}

// Export counts.
func (s *sink) Export(_ context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.spans.Add(int64(req.Traces().SpanCount()))
	return ptraceotlp.NewExportResponse(), nil
}
