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
	fewRanks = 8 // drawn of a part with more than maxRanks
)

// addStage packs a stage of the record that is being added. A stage that the log states for each rank comes as several record.Stages in a row, one per rank:
// these become one stage, with the time of the slowest rank, and a list of the ranks.
func (b *stepBatch) addStage(h *handler, it *item, s *record.Stage) {
	if !s.HasRank {
		b.stages = append(b.stages, stage{name: h.names.Text(s.Name), seconds: s.Seconds, min: s.Min, hasMin: s.HasMin, place: s.Place})
		return
	}
	n := uint32(len(b.ranks))
	b.ranks = append(b.ranks, rankTime{s.Rank, s.Seconds})
	if last := len(b.stages) - 1; last >= int(it.stagesFrom) {
		// The same stage as the one before, and that has ranks.
		if st := &b.stages[last]; st.ranksTo == n && st.ranksTo > st.ranksFrom && st.name == string(s.Name) {
			st.ranksTo, st.seconds, st.min = n+1, max(st.seconds, s.Seconds), min(st.min, s.Seconds)
			return
		}
	}
	b.stages = append(b.stages, stage{name: h.names.Text(s.Name), seconds: s.Seconds, min: s.Seconds, hasMin: true, place: s.Place, ranksFrom: n, ranksTo: n + 1})
}

// rankParts describes the times of a part's ranks in m, the part's attributes, and adds a span for each rank below the part's span id, the slowest rank first.
// Of more than maxRanks ranks only fewRanks get spans: the slowest ones, the median and the fastest. After maxPlaced parts of a record no ranks get spans.
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
		if n > maxRanks && i >= fewRanks-2 && i != n/2 && i != n-1 { // two of fewRanks are the middle one and the fastest
			continue
		}
		r := &ranks[i]
		ns := min(nanos(r.seconds), p.ns)
		start := min(p.start+int64(i)*tick, p.start+p.ns-ns) // a tick apart, as far as the part has room
		number := strconv.FormatInt(r.rank, 10)
		c := out.Add(b.partResource(it), spans.Span{
			Trace: it.trace, ID: spans.SpanID(it.trace, spans.SpanRank, id[:], []byte(number)), Parent: id, Name: spans.SpanRank + number,
			Is: spans.KindPartRank, Kind: ptrace.SpanKindInternal, Start: start, End: start + ns, Source: spans.TimeSynthetic, Attributes: 1,
		})
		c.Attributes().PutInt(spans.AttrRank, r.rank)
	}
}

// rankSummary returns the summary of a report on ranks: "Rtt 40.3 ms on rank 0, 70.9 ms on rank 2; DRtt …", the fastest rank first.
func (b *stepBatch) rankSummary(it *item) string {
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

// rankSlow is the rank of a step that computed longest in comparison with its peers, the ranks with equal work.
type rankSlow struct {
	rank    int64
	peers   int     // number of the others
	seconds float64 // of computing, in the Own parts of the step
	usual   float64 // the median of the peers' seconds
	stage   string  // the part in which the rank lost most
	behind  []int64 // the rank, and the peers that lost at least half as much: at most maxBehind
}

// maxBehind bounds AttrRanksBehind.
const maxBehind = 16

// put writes the slowest rank as attributes of the step's span.
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

// compare sets it.slow to the rank that computed longest, where the log has the times of all ranks. A rank is compared with the ranks of its pipeline stage,
// which have equal work: the first and the last stage have other layers than the stages between. The ranks of a stage are contiguous in the default order of
// Megatron's groups (tp-cp-ep-dp-pp, megatron/training/initialize.py). Without the number of stages in the log, nothing is compared.
func (b *stepBatch) compare(it *item) {
	model := b.shared[it.shared].model
	if model == nil || model.PipelineParallel < 1 {
		return
	}
	own := b.ownStages(it)
	if len(own) == 0 {
		return
	}
	perStage := int64(1) << 62 // ranks of a pipeline stage; at first all ranks
	if pp := model.PipelineParallel; pp > 1 {
		// Of a report, only the extremes of all ranks are known. Without a world size that the stages divide, the ranks of a stage are unknown.
		if it.kind == record.Ranks || model.WorldSize%pp != 0 || model.WorldSize == 0 {
			return
		}
		perStage = model.WorldSize / pp
	}
	// The sum of each rank's times for these parts.
	b.sums = append(b.sums[:0], b.ranks[own[0].ranksFrom:own[0].ranksTo]...)
	sums := b.sums
	for _, st := range own[1:] {
		if !sameRanks(sums, b.ranks[st.ranksFrom:st.ranksTo]) { // a rank without all parts would look fast
			return
		}
		for i := range sums {
			sums[i].seconds += b.ranks[int(st.ranksFrom)+i].seconds
		}
	}
	// The slowest rank of each pipeline stage: the one furthest behind stays in it.slow.
	for from := 0; from < len(sums); {
		to := from
		for to < len(sums) && sums[to].rank/perStage == sums[from].rank/perStage {
			to++
		}
		b.noteSlowest(it, sums[from:to])
		from = to
	}
	if it.slow == nil {
		return
	}
	mostLost := -1.0
	for _, st := range own {
		mine, usual := timeAndMedian(b.ranks[st.ranksFrom:st.ranksTo], it.slow.rank, perStage)
		if lost := mine - usual; lost > mostLost {
			mostLost, it.slow.stage = lost, st.name
		}
	}
}

// ownStages returns the record's stages in which a rank computes without waiting for others (record.Place.Own), if the log has the times of at least two ranks;
// the times are sorted by rank. A stage within another such stage is left out, because its time is part of the other's.
func (b *stepBatch) ownStages(it *item) (own []*stage) {
	for i := it.stagesFrom; i < it.stagesTo; i++ {
		st := &b.stages[i]
		if st.ranksTo-st.ranksFrom < 2 || st.place == nil || !st.place.Own || st.place.Under != nil && st.place.Under.Own {
			continue
		}
		ranks := b.ranks[st.ranksFrom:st.ranksTo]
		slices.SortStableFunc(ranks, func(a, b rankTime) int { return cmp.Compare(a.rank, b.rank) })
		if ranks[0].rank < ranks[len(ranks)-1].rank { // not the same rank twice
			own = append(own, st)
		}
	}
	return own
}

// sameRanks reports whether two lists are of the same ranks in the same order.
func sameRanks(a, b []rankTime) bool {
	return slices.EqualFunc(a, b, func(a, b rankTime) bool { return a.rank == b.rank })
}

// noteSlowest sets it.slow to the slowest of peers, the ranks of a pipeline stage, if it is further behind the median of the others than the slowest rank of
// earlier pipeline stages.
func (b *stepBatch) noteSlowest(it *item, peers []rankTime) {
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

// medianTime returns the median time of ranks.
func medianTime(of []rankTime) float64 {
	seconds := make([]float64, len(of))
	for i := range of {
		seconds[i] = of[i].seconds
	}
	return stat.Middle(seconds)
}

// timeAndMedian returns the time of a rank in a part, and the median time of the other ranks of its pipeline stage, in s. perStage is the number of ranks in a
// stage.
func timeAndMedian(ranks []rankTime, rank, perStage int64) (mine, usual float64) {
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
