package step

import (
	"cmp"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// rankTime is the time of a part on one rank.
type rankTime struct {
	rank    int64
	seconds float64
}

const (
	// maxRanks bounds the drawn ranks of a part: of more, the fastest, the middle one and the slowest. Together with maxPlaced, maxRanks bounds a trace.
	maxRanks = 16
	fewRanks = 8
)

// addStage packs a part of the added record. Parts per rank become one, of the slowest.
func (b *stepBatch) addStage(h *handler, it *item, s *record.Stage) {
	if !s.HasRank {
		b.stages = append(b.stages, stage{name: h.names.Text(s.Name), seconds: s.Seconds, min: s.Min, hasMin: s.HasMin, place: s.Place})
		return
	}
	n := uint32(len(b.ranks))
	b.ranks = append(b.ranks, rankTime{s.Rank, s.Seconds})
	if last := len(b.stages) - 1; last >= int(it.stagesFrom) {
		if st := &b.stages[last]; st.ranksTo == n && st.ranksTo > st.ranksFrom && st.name == string(s.Name) {
			st.ranksTo, st.seconds, st.min = n+1, max(st.seconds, s.Seconds), min(st.min, s.Seconds)
			return
		}
	}
	b.stages = append(b.stages, stage{name: h.names.Text(s.Name), seconds: s.Seconds, min: s.Seconds, hasMin: true, place: s.Place, ranksFrom: n, ranksTo: n + 1})
}

// rankParts describes the times of a part's ranks, and draws some of them, the slowest first.
func (b *stepBatch) rankParts(out *spans.Batch, it *item, p *part, m pcommon.Map, id pcommon.SpanID) {
	ranks := b.ranks[p.ranksFrom:p.ranksTo]
	slices.SortStableFunc(ranks, func(a, b rankTime) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.rank, b.rank))
	})
	ranks = slices.Compact(ranks) // a log may have each line twice
	p.ranksTo = p.ranksFrom + uint32(len(ranks))
	n := len(ranks)
	if it.kind != record.Ranks { // a report has the two extremes of all ranks
		m.PutInt(spans.AttrStageRanks, int64(n))
		putNumber(m, spans.AttrStageDurationMedian, (ranks[(n-1)/2].seconds+ranks[n/2].seconds)/2)
	}
	m.PutInt(spans.AttrStageRankSlowest, ranks[0].rank)
	m.PutInt(spans.AttrStageRankFastest, ranks[n-1].rank)
	if it.parts++; it.parts > maxPlaced {
		return
	}
	for i := range ranks {
		if n > maxRanks && i >= fewRanks-2 && i != n/2 && i != n-1 {
			continue
		}
		r := &ranks[i]
		ns := min(nanos(r.seconds), p.ns)
		start := min(p.start+int64(i)*tick, p.start+p.ns-ns)
		number := strconv.FormatInt(r.rank, 10)
		c := out.Add(b.ofParts(it), spans.Span{
			Trace: it.trace, ID: spans.SpanID(it.trace, spans.SpanRank, id[:], []byte(number)), Parent: id, Name: spans.SpanRank + number,
			Is: spans.KindPartRank, Kind: ptrace.SpanKindInternal, Start: start, End: start + ns, Source: spans.TimeSynthetic, Attributes: 1,
		})
		c.Attributes().PutInt(spans.AttrRank, r.rank)
	}
}

// about is a report on one line: "Rtt 70.9 ms on rank 2, 40.3 ms on rank 0; DRtt …".
func (b *stepBatch) about(it *item) string {
	var text []byte
	for _, st := range b.stages[it.stagesFrom:it.stagesTo] {
		if len(text) > 0 {
			text = append(text, "; "...)
		}
		text = append(text, st.name...)
		ranks := b.ranks[st.ranksFrom:st.ranksTo]
		slices.SortStableFunc(ranks, func(a, b rankTime) int { return cmp.Compare(a.seconds, b.seconds) })
		for i, r := range ranks {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(human.AppendSeconds(append(text, ' '), r.seconds), " on rank "...)
			text = strconv.AppendInt(text, r.rank, 10)
		}
	}
	return string(text)
}

// rankSlow is the rank of a record with the longest computing among its peers.
type rankSlow struct {
	rank           int64
	peers          int
	seconds, usual float64
	stage          string
	behind         []int64
}

// maxBehind bounds AttrRanksBehind.
const maxBehind = 16

func (r *rankSlow) put(m pcommon.Map) {
	m.PutInt(spans.AttrRankSlowest, r.rank)
	m.PutStr(spans.AttrRankSlowestStage, r.stage)
	m.PutDouble(spans.AttrRankSlowestDuration, r.seconds)
	m.PutInt(spans.AttrRankSlowestPeers, int64(r.peers))
	m.PutDouble(spans.AttrRankSlowestPeersDuration, r.usual)
	list := m.PutEmptySlice(spans.AttrRanksBehind)
	list.EnsureCapacity(len(r.behind))
	for _, rank := range r.behind {
		list.AppendEmpty().SetInt(rank)
	}
}

// compare finds the rank with the longest computing, among ranks with equal work: the ranks of its pipeline stage, contiguous in the default order of
// Megatron's groups (tp-cp-ep-dp-pp, megatron/training/initialize.py). The first and the last stage have other layers than the stages between. Without the
// number of stages in the log, nothing is compared.
func (b *stepBatch) compare(it *item) {
	model := b.shared[it.shared].model
	if model == nil || model.PipelineParallel < 1 {
		return
	}
	var own []*stage
	for i := it.stagesFrom; i < it.stagesTo; i++ {
		st := &b.stages[i]
		if st.ranksTo-st.ranksFrom < 2 || st.place == nil || !st.place.Own || st.place.Under != nil && st.place.Under.Own {
			continue
		}
		ranks := b.ranks[st.ranksFrom:st.ranksTo]
		slices.SortStableFunc(ranks, func(a, b rankTime) int { return cmp.Compare(a.rank, b.rank) })
		if ranks[0].rank < ranks[len(ranks)-1].rank {
			own = append(own, st)
		}
	}
	if len(own) == 0 {
		return
	}
	perStage := int64(1) << 62
	if pp := model.PipelineParallel; pp > 1 {
		if it.kind == record.Ranks || model.WorldSize%pp != 0 || model.WorldSize == 0 { // of a report, only the extremes of all ranks are known
			return
		}
		perStage = model.WorldSize / pp
	}
	// The sum of each rank's times for these parts.
	b.sums = append(b.sums[:0], b.ranks[own[0].ranksFrom:own[0].ranksTo]...)
	sums := b.sums
	for _, st := range own[1:] {
		if !sameRanks(sums, b.ranks[st.ranksFrom:st.ranksTo]) {
			return
		}
		for i := range sums {
			sums[i].seconds += b.ranks[int(st.ranksFrom)+i].seconds
		}
	}
	for from := 0; from < len(sums); {
		to := from
		for to < len(sums) && sums[to].rank/perStage == sums[from].rank/perStage {
			to++
		}
		b.slowest(it, sums[from:to])
		from = to
	}
	if it.slow == nil {
		return
	}
	lost := -1.0
	for _, st := range own {
		mine, usual := among(b.ranks[st.ranksFrom:st.ranksTo], it.slow.rank, perStage)
		if late := mine - usual; late > lost {
			lost, it.slow.stage = late, st.name
		}
	}
}

func sameRanks(a, b []rankTime) bool {
	return slices.EqualFunc(a, b, func(a, b rankTime) bool { return a.rank == b.rank })
}

// slowest takes the slowest of ranks with equal work, if further behind than the slowest of earlier stages.
func (b *stepBatch) slowest(it *item, peers []rankTime) {
	n := len(peers)
	if n < 2 {
		return
	}
	slices.SortStableFunc(peers, func(a, b rankTime) int { return cmp.Compare(b.seconds, a.seconds) })
	usual := medianTime(peers[1:])
	late := peers[0].seconds - usual
	if it.slow != nil && late <= it.slow.seconds-it.slow.usual {
		return
	}
	it.slow = &rankSlow{rank: peers[0].rank, peers: n - 1, seconds: peers[0].seconds, usual: usual}
	for _, p := range peers {
		if p.seconds-usual < late/2 || len(it.slow.behind) == maxBehind {
			break
		}
		it.slow.behind = append(it.slow.behind, p.rank)
	}
}

// medianTime is the median time of ranks.
func medianTime(of []rankTime) float64 {
	seconds := make([]float64, len(of))
	for i := range of {
		seconds[i] = of[i].seconds
	}
	return stat.Middle(seconds)
}

// among is the time of a rank, and the median of its peers.
func among(ranks []rankTime, rank, perStage int64) (mine, usual float64) {
	var peers []rankTime
	for _, r := range ranks {
		switch {
		case r.rank == rank:
			mine = r.seconds
		case r.rank/perStage == rank/perStage:
			peers = append(peers, r)
		}
	}
	slices.SortStableFunc(peers, func(a, b rankTime) int { return cmp.Compare(a.seconds, b.seconds) })
	return mine, medianTime(peers)
}
