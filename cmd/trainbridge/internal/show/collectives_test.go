package show

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// cluster is a simulated training, as told by nccl and train_perf of its collectives.
type cluster struct {
	ranks, collectives int
	channels           int // of each rank; 0: not in the log
	slow               int // the rank late in every collective but the first; −1: none
	missing            int // the rank missing in the last collective; −1: none
	twins              bool
	untimed            bool // the log has no durations
	p2p                int
}

// traces makes collectives in turn: AllReduce and AllGather of 64 MiB with transfers of 2 ms. Rank i is late by i%100 times 10 µs; the slow rank by 5 ms.
func (c cluster) traces() ptrace.Traces {
	b := spans.NewBatch("test", "")
	at := int64(1770799200) * second
	for n := range c.collectives {
		at = c.collective(b, n, at) + 80_000_000
	}
	for i := range c.p2p {
		trace := spans.TraceID("run-7", []byte{byte(i)})
		res := spans.Resource{Service: "nccl", RunID: "run-7", Host: "gpu-node-0", PID: 4000}
		s := b.Add(res, spans.Span{Trace: trace, ID: spans.SpanID(trace, "Send"), Name: "Send", Start: at, End: at + 721_000})
		m := s.Attributes()
		m.PutInt(spans.AttrNCCLRanks, 1)
		m.PutStr(spans.AttrNCCLOperation, "Send")
		m.PutStr(spans.AttrNCCLCommName, "unknown")
		m.PutInt(spans.AttrNCCLCommRank, 0)
		m.PutInt(spans.AttrNCCLPeerRank, 3)
		m.PutDouble(spans.AttrNCCLBandwidthBus, 46.5e9)
	}
	return b.Traces()
}

// late is how late a rank comes to a collective, ns.
func (c cluster) late(n, rank int) int64 {
	if rank == c.slow && n > 0 {
		return 5_000_000
	}
	return int64(rank%100) * 10_000
}

// present are the ranks with a record of a collective, and latest is the last of these.
func (c cluster) present(n int) (ranks []int, latest int) {
	latest = -1
	for rank := range c.ranks {
		if rank == c.missing && n == c.collectives-1 {
			continue
		}
		ranks = append(ranks, rank)
		if latest < 0 || c.late(n, rank) > c.late(n, latest) {
			latest = rank
		}
	}
	return ranks, latest
}

// collective makes the n-th collective, and returns its end.
func (c cluster) collective(b *spans.Batch, n int, at int64) (end int64) {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], uint64(n))
	trace := spans.TraceID("run-7", key[:])
	operation := []string{"AllReduce", "AllGather"}[n%2]
	id := spans.SpanID(trace, operation)
	ranks, latest := c.present(n)
	late := c.late(n, latest)
	end = at + late + 2_000_000
	for _, rank := range ranks {
		c.rank(b, spans.Span{Trace: trace, Parent: id, Start: at, End: end}, rank, c.late(n, rank), rank == latest)
	}
	s := b.Add(spans.Resource{Service: "nccl", RunID: "run-7"}, spans.Span{Trace: trace, ID: id, Name: operation, Start: at, End: end})
	m := s.Attributes()
	m.PutInt(spans.AttrNCCLRanks, int64(len(ranks)))
	m.PutStr(spans.AttrNCCLOperation, operation)
	m.PutStr(spans.AttrNCCLCommID, "0x7f8c496ae9f661")
	m.PutStr(spans.AttrNCCLCommName, "DP Group 0")
	if c.twins && n%4 > 1 {
		m.PutStr(spans.AttrNCCLCommID, "0x1c9e09adf1b2a7")
	}
	m.PutInt(spans.AttrNCCLSequence, int64(n/2))
	m.PutInt(spans.AttrNCCLMessageSize, 64<<20)
	if len(ranks) < c.ranks {
		m.PutBool(spans.AttrIncomplete, true)
		m.PutStr(spans.AttrIncompleteReason, spans.NCCLIncompleteTimeout)
		m.PutInt(spans.AttrNCCLRanksMissingCount, 1)
		m.PutEmptySlice(spans.AttrNCCLRanksMissing).AppendEmpty().SetInt(int64(c.missing))
		verdictOn(s, spans.SeverityBad, verdict{Said: view.Said{Name: spans.VerdictNCCLRankMissing}, reason: fmt.Sprintf("Rank %d has no record.", c.missing)})
	}
	if c.untimed {
		return end
	}
	m.PutDouble(spans.AttrNCCLDuration, float64(end-at)/1e9)
	m.PutDouble(spans.AttrNCCLTransferDuration, 0.002)
	m.PutDouble(spans.AttrNCCLBandwidthBus, (58+float64(n))*1e9)
	m.PutDouble(spans.AttrNCCLLateMax, float64(late)/1e9)
	m.PutInt(spans.AttrNCCLLateRank, int64(latest))
	m.PutStr(spans.AttrNCCLLateHost, fmt.Sprintf("gpu-node-%d", latest/8))
	if late > 2_000_000 {
		judge(s, verdict{view.Said{Name: spans.VerdictNCCLLate}, fmt.Sprintf("Rank %d was late by 5.0 ms, more than the transfer took.", latest), 0.005, 0.002})
	}
	return end
}

// rank makes a rank's part of a collective: its own span, waiting and transferring, its channels. The last rank is drawn from the first arrival on, as by the
// receiver.
func (c cluster) rank(b *spans.Batch, of spans.Span, rank int, late int64, last bool) {
	host := fmt.Sprintf("gpu-node-%d", rank/8)
	var key [4]byte
	binary.BigEndian.PutUint32(key[:], uint32(rank))
	id := spans.SpanID(of.Trace, "rank", key[:])
	res := spans.Resource{Service: "nccl", RunID: "run-7", Host: host, PID: 4000 + int64(rank%8)}
	came, start := of.Start+late, of.Start+late
	if last && !c.untimed {
		start = of.Start
	}
	s := b.Add(res, spans.Span{Trace: of.Trace, ID: id, Parent: of.Parent, Name: spans.NCCLRankName(int32(rank), host), Start: start, End: of.End})
	s.Attributes().PutInt(spans.AttrNCCLCommRank, int64(rank))
	if !c.untimed {
		s.Attributes().PutDouble(spans.AttrNCCLLate, float64(late)/1e9)
		phase := func(name string, from, to int64) {
			b.Add(res, spans.Span{Trace: of.Trace, ID: spans.SpanID(of.Trace, name, key[:]), Parent: id, Name: name, Start: from, End: to})
		}
		if last {
			s.Attributes().PutBool(spans.AttrNCCLLast, true)
			phase(spans.SpanNCCLLate, of.Start, came)
		} else {
			phase(spans.SpanNCCLWait, start, of.End-2_000_000)
		}
		phase(spans.SpanNCCLTransfer, of.End-2_000_000, of.End)
	}
	for ch := range c.channels {
		key[0] = byte(ch + 1)
		s := b.Add(res, spans.Span{
			Trace: of.Trace, ID: spans.SpanID(of.Trace, "channel", key[:]), Parent: id, Name: spans.SpanNCCLChannel, Start: came, End: of.End,
		})
		s.Attributes().PutInt(spans.AttrNCCLChannelID, int64(ch))
	}
}

func TestCollectivesGolden(t *testing.T) {
	clusters := map[string]cluster{
		"collectives.txt":         {ranks: 64, collectives: 12, channels: 2, slow: 41, missing: -1, p2p: 3},
		"collectives_missing.txt": {ranks: 8, collectives: 6, slow: -1, missing: 3, twins: true},
		"collectives_small.txt":   {ranks: 4, collectives: 2, channels: 2, slow: 2, missing: -1},
	}
	url := answering(t, func(service string) ptrace.Traces { return clusters[service].traces() })
	for golden := range clusters {
		got, err := draw(t, options{jaeger: url, service: golden, width: 120}, false)
		require.NoError(t, err)
		compare(t, golden, got)
	}
}

// figuresOf are count, sum, minimum and maximum.
func figuresOf(v *digest.Values) []float64 {
	return []float64{float64(v.Count()), v.Sum(), v.Min(), v.Max()}
}

// The rows of a table equal the spans, counted by hand.
func TestCollectiveGroups(t *testing.T) {
	all := digestOf(tree.Build(cluster{ranks: 16, collectives: 9, slow: 5, missing: 9, p2p: 2}.traces())).Collectives.Rows()
	require.Len(t, all, 3)
	var names []string
	for _, g := range all {
		names = append(names, fmt.Sprintf("%s/%s %d %d", g.Communicator, g.Operation, g.Count, g.Incomplete))
	}
	assert.Equal(t, []string{"-/Send 2 0", "DP Group 0/AllGather 4 0", "DP Group 0/AllReduce 5 1"}, names)
	gather, reduce := all[1], all[2]
	assert.InDeltaSlice(t, []float64{4, 28e-3, 7e-3, 7e-3}, figuresOf(&gather.Took), 1e-12)
	assert.InDeltaSlice(t, []float64{4, 248e9, 59e9, 65e9}, figuresOf(&gather.Bus), 0)
	assert.Equal(t, "rank 5 on gpu-node-0 (4×)", tables.LastMostOften(gather))
	assert.Equal(t, "rank 5 on gpu-node-0 (3×)", tables.LastMostOften(reduce)) // of 4 complete collectives; in the first, rank 15 came last
	assert.Equal(t, digest.Verdicts{spans.VerdictNCCLLate: 4, spans.VerdictNCCLRankMissing: 1}, reduce.Verdicts)
	assert.InDeltaSlice(t, []float64{2, 1.442e-3, 0.721e-3, 0.721e-3}, figuresOf(&all[0].Took), 1e-12)
	assert.Equal(t, "-", tables.LastMostOften(all[0]))
	assert.Equal(t, "rank 4 (2×)", tables.LastMostOften(&digest.Collective{Last: map[digest.Who]int{{Rank: 30}: 2, {Rank: 2}: 1, {Rank: 4}: 2}}), "the first of equals")
}

// The last rank is drawn however many ranks take part, and the drawing fits a screen.
func TestManyRanksAreFolded(t *testing.T) {
	for _, ranks := range []int{1, 2, 30, 36, 37, 64, 1024} {
		for _, channels := range []int{0, 2} {
			c := cluster{ranks: ranks, collectives: 3, channels: channels, slow: ranks / 2, missing: -1}
			var out strings.Builder
			printWaterfall(&out, mostInteresting(tree.Build(c.traces())), style{120, cst, false})
			text := out.String()
			assert.LessOrEqual(t, strings.Count(text, "▕")+strings.Count(text, "! "), maxLines)
			assert.NotContains(t, text, "more rows")
			assert.Regexp(t, fmt.Sprintf(`─rank %d gpu-node-%d .*LAST, late by 5 ms`, ranks/2, ranks/16), text)
			drawn := strings.Count(text, "─rank ")
			if more := ranks - drawn; more > 0 {
				assert.Contains(t, text, fmt.Sprintf("nccl.rank ×%d more", more))
				assert.GreaterOrEqual(t, drawn, 30)
				assert.Regexp(t, `×\d+ more .* late by 0 s to [\d.]+ µs\n`, text)
			}
			assert.Equal(t, channels > 0 && !strings.Contains(text, spans.SpanNCCLChannel), strings.Contains(text, "left out"))
		}
	}
}

func TestLatestCollectiveIsInteresting(t *testing.T) {
	for _, tt := range []struct {
		c    cluster
		want string
	}{
		{cluster{ranks: 4, collectives: 6, slow: 2, missing: -1}, "AllGather 2 of DP Group 0, 4 ranks"},  // the newest
		{cluster{ranks: 4, collectives: 7, slow: 2, missing: 1}, "AllReduce 3 of DP Group 0, 3 ranks"},   // the worst
		{cluster{ranks: 4, collectives: 6, slow: -1, missing: -1}, "AllGather 2 of DP Group 0, 4 ranks"}, // the newest
		{cluster{ranks: 4, collectives: 2, slow: -1, missing: -1, p2p: 4}, "AllGather 0 of DP Group 0, 4 ranks"},
		{cluster{p2p: 1}, "Send"},
	} {
		assert.Equal(t, tt.want, subjectOf(mostInteresting(tree.Build(tt.c.traces()))))
	}
}

// A rank's bar has two parts in a colour; the bar of the last rank is red.
func TestRankBar(t *testing.T) {
	tr := mostInteresting(tree.Build(cluster{ranks: 2, collectives: 2, slow: 1, missing: -1}.traces()))
	root := tr.Roots[0]
	require.Len(t, root.Children, 2)
	first, last := root.Children[0], root.Children[1]
	if cameLast(first) { // the bars of both ranks begin at the same moment
		first, last = last, first
	}
	// 7 ms on 14 cells: the first rank waits for 5 ms.
	assert.Equal(t, "░░░░░░░░░░████", rankBar(first, tr, 14, false))
	assert.Equal(t, "          ████", rankBar(last, tr, 14, false))
	assert.Equal(t, "\x1b[34m░░░░░░░░░░████\x1b[0m", rankBar(first, tr, 14, true))
	assert.Equal(t, "          \x1b[31m████\x1b[0m", rankBar(last, tr, 14, true))
	root.Attributes().Remove(spans.AttrNCCLTransferDuration)
	assert.Equal(t, "██████████████", rankBar(first, tr, 14, false))
}

func TestCollectiveDetails(t *testing.T) {
	td := ptrace.NewTraces()
	all := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	add := func(id, parent byte, name string, attrs map[string]any) {
		s := all.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{1})
		s.SetSpanID(pcommon.SpanID{id})
		s.SetParentSpanID(pcommon.SpanID{parent})
		s.SetName(name)
		assert.NoError(t, s.Attributes().FromRaw(attrs))
	}
	add(1, 0, "AllReduce", map[string]any{
		spans.AttrNCCLRanks: 3, spans.AttrNCCLMessageSize: 3 << 19, spans.AttrNCCLBandwidthBus: 109.25e9, spans.AttrNCCLLateMax: 0.0012, spans.AttrNCCLLateRank: 2,
		spans.AttrNCCLRanksMissingCount: 2, spans.AttrNCCLRanksMissing: []any{4, 7},
	})
	add(2, 1, spans.SpanNCCLRank, map[string]any{
		spans.AttrNCCLCommRank: 0, spans.AttrNCCLLate: 0.0, spans.AttrNCCLState: "started", spans.AttrNCCLErrors: 2, spans.AttrNCCLRetries: 1,
	})
	add(3, 1, spans.SpanNCCLRank, map[string]any{spans.AttrNCCLCommRank: 1, spans.AttrNCCLLate: 0.000_3})
	add(4, 1, spans.SpanNCCLRank, map[string]any{spans.AttrNCCLCommRank: 2, spans.AttrNCCLLate: 0.0012})
	add(5, 4, spans.SpanNCCLChannel, map[string]any{spans.AttrNCCLChannelID: 7})
	add(6, 5, spans.SpanNCCLProxyOp, map[string]any{
		spans.AttrNCCLChannelID: 7, spans.AttrNCCLDirection: "send", spans.AttrNCCLPeerRank: 3, spans.AttrNCCLMessageSize: 1 << 20,
	})
	add(7, 6, spans.SpanNCCLProxyStep, map[string]any{spans.AttrNCCLStep: 4, spans.AttrNCCLProxyState: "SendWait"})
	want := map[pcommon.SpanID]string{
		{1}: "2 missing: 4,7 · rank 2 late by 1.2 ms · busbw 109 GB/s · 1.5 MiB",
		{2}: "first · started · errors 2 · retries 1",
		{3}: "late by 300 µs",
		{4}: "LAST, late by 1.2 ms",
		{5}: "channel 7",
		{6}: "channel 7 · send · peer 3 · 1 MiB",
		{7}: "step 4 · SendWait",
	}
	for _, s := range tree.Build(td)[0].Spans {
		assert.Equal(t, want[s.SpanID()], details(s))
	}
}

func TestCollectiveVerdictInShort(t *testing.T) {
	for _, tt := range []struct {
		v    verdict
		want string
	}{
		{verdict{Said: view.Said{Name: spans.VerdictNCCLLate}, value: 0.00512, threshold: 0.002}, "nccl_late 5.12 ms > 2 ms"},
		{verdict{Said: view.Said{Name: spans.VerdictNCCLBandwidthUnit}, value: 7, threshold: 0.1}, "nccl_bandwidth_unit 700% > 10%"},
	} {
		assert.Equal(t, tt.want, tt.v.summary())
	}
}

// Collectives with only their defining attributes, and with texts of an attacker, are drawn too.
func TestBareCollective(t *testing.T) {
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range byte(3) {
		s := ss.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{1})
		s.SetSpanID(pcommon.SpanID{i + 1})
		s.SetName("\x1b[2J")
		if i > 0 {
			s.SetParentSpanID(pcommon.SpanID{1})
			s.SetName(spans.SpanNCCLRank)
		}
	}
	ss.At(0).Attributes().PutInt(spans.AttrNCCLRanks, 2)
	for range 2 {
		for _, width := range []int{0, 60, 120} {
			var out strings.Builder
			traces := tree.Build(td)
			collectiveTable(&out, digestOf(traces), style{width, cst, true})
			printWaterfall(&out, mostInteresting(traces), style{width, cst, false})
			assert.Contains(t, out.String(), "collective")
			assert.NotContains(t, out.String(), "\x1b[2J")
		}
		for _, s := range ss.All() {
			for _, attr := range []string{
				spans.AttrNCCLOperation, spans.AttrNCCLCommName, spans.AttrNCCLCommID, spans.AttrNCCLLateHost, spans.AttrNCCLSequence,
				spans.AttrNCCLCommRank, spans.AttrNCCLState,
				spans.AttrNCCLRanksMissing, spans.AttrHostName,
			} {
				s.Attributes().PutStr(attr, "\x1b[2J")
			}
			s.Attributes().PutInt(spans.AttrNCCLRanksMissingCount, 1)
			s.Attributes().PutInt(spans.AttrNCCLLateRank, 1)
			s.Attributes().PutDouble(spans.AttrNCCLTransferDuration, -1e300)
		}
	}
}

// A collective may say how late the last rank was, and not which rank.
func TestLatenessOfAnUnknownRank(t *testing.T) {
	s := ptrace.NewSpan()
	s.Attributes().PutDouble(spans.AttrNCCLLateMax, 0.0012)
	assert.Equal(t, detailList{"late by 1.2 ms"}, rootDetails(&tree.Span{Span: s, Kind: view.KindCollective}))
}
