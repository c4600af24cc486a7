package collectives

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// describe writes the attributes of the collective on its root span, or on the single span of an operation that is not joined. Unknown values are left out.
func (c *Collective) describe(m pcommon.Map) {
	c.identity(m)
	c.measures(m)
	c.lateness(m)
	c.stragglers(m)
	if !c.undrawn { // the root of an undrawn collective only has what metrics are made of
		m.PutInt(spans.AttrNCCLErrors, c.errs)
		m.PutInt(spans.AttrNCCLRetries, c.retries)
	}
	c.absence(m)
	if c.mismatch {
		m.PutBool(spans.AttrNCCLMismatch, true)
	}
	if c.gap > 0 {
		m.PutInt(spans.AttrNCCLSequenceGap, int64(c.gap))
	}
	putText(m, spans.AttrNCCLClockReference, c.reference)
	if apart := c.clockSpread(); apart > leastApart {
		m.PutDouble(spans.AttrNCCLClockOffset, apart/1e9)
	}
	if c.corrected {
		m.PutBool(spans.AttrNCCLClockCorrected, true)
	}
	putAll(m, spans.AttrNCCLLinkHot, c.hotLinks, pcommon.Value.SetStr)
	putAll(m, spans.AttrNCCLLinkSlow, c.slowLinks, pcommon.Value.SetStr)
}

// identity writes the communicator, operation and number, and the algorithm and sizes as logged.
func (c *Collective) identity(m pcommon.Map) {
	m.PutInt(spans.AttrNCCLRanks, int64(max(c.ranks, min(1, len(c.parts))))) // a single operation counts no ranks, and has one
	m.PutStr(spans.AttrNCCLOperation, c.operation())
	putText(m, spans.AttrNCCLCommID, c.comm.id)
	putText(m, spans.AttrNCCLCommName, c.commName)
	putCount(m, spans.AttrNCCLCommSize, c.commSize)
	if !c.undrawn {
		putCount(m, spans.AttrNCCLCommNodes, c.nodes)
	}
	if c.join == byTime {
		m.PutStr(spans.AttrNCCLSequenceKind, spans.NCCLSequenceTime)
	} else {
		m.PutInt(spans.AttrNCCLSequence, int64(c.seq))
		if c.ordinal {
			m.PutStr(spans.AttrNCCLSequenceKind, spans.NCCLSequenceOrdinal)
		}
	}
	if c.unconfirmed() {
		m.PutBool(spans.AttrNCCLUnconfirmed, true)
	}
	putText(m, spans.AttrNCCLAlgorithm, c.algorithm)
	if !c.undrawn { // components that join or count do not read these
		putText(m, spans.AttrNCCLProtocol, c.protocol)
		putText(m, spans.AttrNCCLDatatype, c.datatype)
		putCount(m, spans.AttrNCCLChannels, c.channels)
	}
	putIndex(m, spans.AttrNCCLMessageSize, c.size)
	if !c.unconfirmed() { // else the size is shared by several collectives, perhaps
		putIndex(m, spans.AttrNCCLDataSize, c.total)
	}
}

// measures writes durations and bandwidths of the collective, and for a low bandwidth the baseline and the deviation.
func (c *Collective) measures(m pcommon.Map) {
	if !c.undrawn {
		putText(m, spans.AttrNCCLTiming, c.parts[0].how.timing)
	}
	putSeconds(m, spans.AttrNCCLDuration, c.duration)
	putSeconds(m, spans.AttrNCCLTransferDuration, c.transfer)
	spans.PutFinite(m, spans.AttrNCCLBandwidthAlgorithm, c.alg)
	spans.PutFinite(m, spans.AttrNCCLBandwidthBus, c.bus)
	spans.PutFinite(m, spans.AttrNCCLBandwidthBusMean, c.busMean)
	spans.PutFinite(m, spans.AttrNCCLBandwidthBaseline, c.baseline)
	spans.PutFinite(m, spans.AttrNCCLBandwidthDeviation, c.deviation)
	if c.disagreement > 0 {
		m.PutDouble(spans.AttrNCCLBandwidthDisagreement, c.disagreement)
	}
}

// lateness writes the rank that came last, how late, and the time lost by the other ranks; nothing if the arrivals were not compared.
func (c *Collective) lateness(m pcommon.Map) {
	if c.latest < 0 {
		return
	}
	p := &c.parts[c.latest]
	m.PutDouble(spans.AttrNCCLLateMax, seconds(c.lateMax))
	m.PutInt(spans.AttrNCCLLateRank, int64(p.rank))
	putText(m, spans.AttrNCCLLateHost, p.src.host)
	m.PutDouble(spans.AttrNCCLLateCost, seconds(c.lateCost))
}

// stragglers writes the straggler of the communicator: where a rank becomes a straggler, where it was late here, and where it no longer is one. In a dense row
// of collectives only the first waits for a slow rank, and the other ones have no attributes.
func (c *Collective) stragglers(m pcommon.Map) {
	s := slowRank{Rank: op.Unknown}
	if len(c.over) > 0 {
		s = c.over[0]
		putAll(m, spans.AttrNCCLStragglersOver, c.over, setSlow)
	}
	if c.slowest >= 0 {
		s = c.slow[c.slowest]
	}
	if s.Rank < 0 { // no straggler, and no end of one
		return
	}
	m.PutInt(spans.AttrNCCLStragglerRank, int64(s.Rank))
	putText(m, spans.AttrNCCLStragglerHost, s.host)
	if c.slowest < 0 { // only the end of a straggler
		return
	}
	m.PutDouble(spans.AttrNCCLStragglerLate, seconds(s.Late))
	m.PutDouble(spans.AttrNCCLStragglerCost, seconds(s.Cost))
	if s.Score > 0 {
		spans.PutFinite(m, spans.AttrNCCLStragglerScore, s.Score)
	}
	putAll(m, spans.AttrNCCLStragglers, c.slow, setSlow)
}

// absence writes the ranks without a record (missing, unheard) and without an end (stuck), whether the collective hangs, and how long missing ranks were waited
// for. It marks the collective as incomplete, with the reason, if ranks are missing or stuck, or a single operation has not completed.
func (c *Collective) absence(m pcommon.Map) {
	if c.missingCount > 0 {
		m.PutInt(spans.AttrNCCLRanksMissingCount, int64(c.missingCount))
		putAll(m, spans.AttrNCCLRanksMissing, c.missing, setRank)
	}
	putAll(m, spans.AttrNCCLRanksUnheard, c.unheard, setRank)
	putAll(m, spans.AttrNCCLRanksStuck, c.stuck, setRank)
	if c.hang {
		m.PutBool(spans.AttrNCCLHang, true)
	}
	if c.waited > 0 {
		m.PutDouble(spans.AttrNCCLWaited, seconds(c.waited))
	}
	if c.missingCount > 0 || len(c.stuck) > 0 || !c.joined && c.parts[0].state != op.Completed {
		why := reasons[c.outcome]
		if why == "" { // Complete or Late: nothing but an end is missing
			why = spans.NCCLIncompleteStuck
		}
		spans.PutIncomplete(m, why)
	}
}

// attributes returns about how many attributes the span of a rank has, to allocate memory once. last: the rank came last.
func (p *part) attributes(c *Collective, last bool) int {
	n := 4
	if last {
		n += 2
	}
	if p.how.global {
		n++
	}
	if len(c.offsets) > 0 {
		n += 2
	}
	if p.more != nil {
		n += 9
	}
	return n
}

// describe writes the attributes of one record: rank, lateness, bandwidths, state and clock. The span is of the rank, below the root of c, or the single span
// of an operation that is not joined, which also has the attributes of the collective.
func (p *part) describe(m pcommon.Map, c *Collective) {
	if p.rank >= 0 {
		m.PutInt(spans.AttrNCCLCommRank, int64(p.rank))
		if p.how.global {
			m.PutInt(spans.AttrRank, int64(p.rank))
		}
	}
	if p.more != nil && p.more.traceText != "" && !spans.IsUUID(p.more.traceText, c.trace) { // the trace is not named as in the log
		m.PutStr(spans.AttrNCCLTraceID, p.more.traceText)
	}
	if p.late >= 0 {
		m.PutDouble(spans.AttrNCCLLate, seconds(p.late))
	}
	if c.joined {
		alg := c.ownBandwidth(p)
		spans.PutFinite(m, spans.AttrNCCLBandwidthBus, alg*c.factor)
		if math.IsNaN(c.factor) { // no bus bandwidth
			spans.PutFinite(m, spans.AttrNCCLBandwidthAlgorithm, alg)
		}
	}
	spans.PutFinite(m, spans.AttrNCCLBandwidthBusReported, p.reportedBus)
	if math.IsNaN(p.reportedBus) {
		spans.PutFinite(m, spans.AttrNCCLBandwidthAlgorithmReported, p.reportedAlg)
	}
	if off := c.disagreementOf(p); off > 0 && c.joined {
		m.PutDouble(spans.AttrNCCLBandwidthDisagreement, off)
	}
	if p.how.unit != "" && p.how.unit != usualUnit {
		m.PutStr(spans.AttrNCCLBandwidthUnit, p.how.unit)
	}
	if p.state != op.Completed {
		m.PutStr(spans.AttrNCCLState, states[p.state])
	}
	if o := c.offset(p.src.clock); o != nil && !p.how.synthetic {
		m.PutDouble(spans.AttrNCCLClockOffset, o.offset/1e9)
		m.PutDouble(spans.AttrNCCLClockUncertainty, o.uncertainty/1e9)
	}
	if p.more != nil {
		p.more.describe(m, c.joined)
	}
}

var states = [...]string{op.Completed: "completed", op.Started: "started", op.Scheduled: "scheduled"}

// describe writes the rarely used fields. joined: the span is of a rank. Otherwise the span is of a single operation, and its errors and retries are attributes
// of the collective; operations of proxies have none (only VCCL logs errors, and has no proxies).
func (d *more) describe(m pcommon.Map, joined bool) {
	putIndex(m, spans.AttrNCCLPeerRank, int64(d.peer))
	putIndex(m, spans.AttrNCCLSource, int64(d.sourceRank))
	putIndex(m, spans.AttrNCCLDestination, int64(d.destRank))
	putIndex(m, spans.AttrNCCLChannelID, int64(d.channel))
	putIndex(m, spans.AttrNCCLStreamID, d.stream)
	if joined && d.errors > 0 {
		m.PutInt(spans.AttrNCCLErrors, d.errors)
	}
	if joined && d.retries > 0 {
		m.PutInt(spans.AttrNCCLRetries, d.retries)
	}
	if d.sends > 0 {
		m.PutInt(spans.AttrNCCLLinkSends, d.sends)
		spans.PutFinite(m, spans.AttrNCCLLinkBandwidth, d.linkBandwidth)
		spans.PutFinite(m, spans.AttrNCCLLinkBandwidthWorst, d.linkWorst)
	}
}

// usualUnit is the unit of NCCL's own tools, which is not written.
const usualUnit = "GB/s"

// seconds converts ns to s.
func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// putText writes a text, unless empty.
func putText(m pcommon.Map, name, text string) {
	if text != "" {
		m.PutStr(name, text)
	}
}

// putSeconds writes a time given in ns as s; negative: unknown.
func putSeconds(m pcommon.Map, name string, ns int64) {
	if ns >= 0 {
		m.PutDouble(name, seconds(ns))
	}
}

// putCount writes a number above 0.
func putCount(m pcommon.Map, name string, n int32) {
	if n > 0 {
		m.PutInt(name, int64(n))
	}
}

// putIndex writes a number, unless negative: unknown.
func putIndex(m pcommon.Map, name string, v int64) {
	if v >= 0 {
		m.PutInt(name, v)
	}
}

// putAll writes a list, unless empty.
func putAll[T any](m pcommon.Map, name string, all []T, set func(v pcommon.Value, t T)) {
	if len(all) == 0 {
		return
	}
	list := m.PutEmptySlice(name)
	for _, t := range all {
		set(list.AppendEmpty(), t)
	}
}

func setRank(v pcommon.Value, rank int32) { v.SetInt(int64(rank)) }

func setSlow(v pcommon.Value, s slowRank) { setRank(v, s.Rank) }
