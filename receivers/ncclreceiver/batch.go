package ncclreceiver

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/spans"
)

// batch is what goes downstream together.
type batch struct {
	r           *ncclReceiver
	collectives []*collective
	points      []point
}

func (r *ncclReceiver) newBatch() *batch {
	b := r.batches.Get()
	b.r = r
	return b
}

// Done lets the batch and its collectives be used again.
func (b *batch) Done() {
	r := b.r
	var left [outcomes]int64
	var found [len(foundOptions)]int64
	dropped := int64(0)
	for _, c := range b.collectives {
		if !c.proxy {
			left[c.outcome]++
		}
		if c.join == byTime {
			found[c.found()]++
		}
		if c.dropped {
			dropped += int64(len(c.parts))
		}
		if cap(c.parts) <= usualParts {
			c.reset()
			r.collectives.Put(c, maxFree)
		}
	}
	for i, n := range left {
		if n > 0 {
			r.tel.TrainbridgeNcclCollectives.Add(context.Background(), n, outcomeOptions[i])
		}
	}
	for i, n := range found {
		if n > 0 {
			r.unpaired.Do(func() {
				r.Set.Logger.Warn("The ranks' records have no number and do not pair up by their order (sampled rank by rank, lines lost, several process groups): " +
					"joined by operation, size and time; who was late and bandwidth are left out where ranks may be missing")
			})
			r.tel.TrainbridgeNcclResynchronized.Add(context.Background(), n, foundOptions[i])
		}
	}
	if dropped > 0 {
		r.tel.TrainbridgeNcclSampledOut.Add(context.Background(), dropped)
	}
	clear(b.collectives)
	clear(b.points)
	*b = batch{collectives: b.collectives[:0], points: b.points[:0]}
	r.batches.Put(b, maxFreeBatches)
}

// maxSpans bounds a trace: Jaeger's page and Tempo take 2,000 spans well. maxAround of them are the root and what stands for those that found no room.
const (
	maxSpans  = 2_000
	maxAround = 10
)

// builder turns collectives into spans.
type builder struct {
	*spans.Batch
	service string
}

// Traces builds the spans.
func (b *batch) Traces(out *spans.Batch, from filereceiver.From) {
	bd := builder{Batch: out, service: b.r.cfg.ServiceName}
	roots, most := 0, 0
	for _, c := range b.collectives {
		if !c.dropped {
			roots++
			most = max(most, len(c.parts))
		}
	}
	bd.Grow(roots + 1)
	for _, c := range b.collectives {
		if c.dropped {
			continue
		}
		from(c.place)
		if c.opensRun {
			bd.AddRun(spans.Resource{Service: bd.service, RunID: c.run.id}, c.start, c.parts[0].how.time, c.run.file)
		}
		if c.proxy {
			bd.proxy(c)
		} else if c.alone() {
			bd.single(c)
		} else if c.outcome != tardy {
			bd.root(c)
		}
	}
	// Rank by rank: spans of one resource follow one another.
	for i := range most {
		bd.Grow(3 * roots) // with their phases
		for _, c := range b.collectives {
			if c.dropped || c.alone() || i >= len(c.parts) {
				continue
			}
			if i == 0 {
				c.fit()
			}
			if p := &c.parts[i]; !p.left {
				from(c.place)
				bd.rank(c, p)
			}
		}
	}
	for _, c := range b.collectives {
		if !c.dropped && c.crowded {
			from(c.place)
			bd.aggregate(c)
		}
	}
}

// alone says whether there is no collective around the record: it is one span.
func (c *collective) alone() bool { return !c.joined }

func (bd *builder) resource(c *collective, src *source) spans.Resource {
	if src == nil {
		return spans.Resource{Service: bd.service, RunID: c.run.id}
	}
	return spans.Resource{Service: bd.service, RunID: c.run.id, Host: src.host, PID: src.pid}
}

// judged is how many attributes train_perf adds to a root: room for them saves growing the map there.
const judged = 2

func (bd *builder) root(c *collective) {
	source := c.parts[0].how.time
	for i := range c.parts {
		if c.parts[i].how.synthetic {
			source = spans.TimeSynthetic
		}
	}
	s := bd.Add(bd.resource(c, nil), spans.Span{
		Trace: c.trace, ID: c.id, Name: c.operation(), Kind: ptrace.SpanKindInternal, Start: c.start, End: c.end, Source: source, Attributes: 22 + judged,
	})
	m := s.Attributes()
	c.describe(m)
	bd.Link(s, c.run.trace, c.run.span)
	status(s, c.errs, c.retries, c.hang)
}

// status says of errors and retries what Jaeger and Tempo show in red.
func status(s ptrace.Span, errs, retries int64, hang bool) {
	message := ""
	switch {
	case errs > 0:
		message = "errors"
	case hang:
		message = "did not complete"
	case retries > 0:
		message = "retried"
	default:
		return
	}
	s.Status().SetCode(ptrace.StatusCodeError)
	s.Status().SetMessage(message)
}

// describe writes what is true of the whole.
func (c *collective) describe(m pcommon.Map) {
	m.PutInt(spans.AttrNCCLRanks, int64(max(c.ranks, min(1, len(c.parts)))))
	m.PutStr(spans.AttrNCCLOperation, c.operation())
	putText(m, spans.AttrNCCLCommID, c.comm.id)
	putText(m, spans.AttrNCCLCommName, c.commName)
	if c.commSize > 0 {
		m.PutInt(spans.AttrNCCLCommSize, int64(c.commSize))
	}
	if c.nodes > 0 {
		m.PutInt(spans.AttrNCCLCommNodes, int64(c.nodes))
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
	putText(m, spans.AttrNCCLProtocol, c.protocol)
	putText(m, spans.AttrNCCLDatatype, c.datatype)
	if c.channels > 0 {
		m.PutInt(spans.AttrNCCLChannels, int64(c.channels))
	}
	if c.size >= 0 {
		m.PutInt(spans.AttrNCCLMessageSize, c.size)
	}
	if c.total >= 0 && !c.unconfirmed() { // the others may have it too
		m.PutInt(spans.AttrNCCLDataSize, c.total)
	}
	putText(m, spans.AttrNCCLTiming, c.parts[0].how.timing)
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
	if c.latest >= 0 {
		p := &c.parts[c.latest]
		m.PutDouble(spans.AttrNCCLLateMax, seconds(c.lateMax))
		m.PutInt(spans.AttrNCCLLateRank, int64(p.rank))
		putText(m, spans.AttrNCCLLateHost, p.src.host)
		m.PutDouble(spans.AttrNCCLLateCost, seconds(c.lateCost))
	}
	c.stragglers(m)
	m.PutInt(spans.AttrNCCLErrors, c.errs)
	m.PutInt(spans.AttrNCCLRetries, c.retries)
	c.absence(m)
	if c.mismatch {
		m.PutBool(spans.AttrNCCLMismatch, true)
	}
	if c.gap > 0 {
		m.PutInt(spans.AttrNCCLSequenceGap, int64(c.gap))
	}
	putText(m, spans.AttrNCCLClockReference, c.reference)
	if c.corrected {
		m.PutBool(spans.AttrNCCLClockCorrected, true)
	}
	putList(m, spans.AttrNCCLLinkHot, c.hotLinks)
	putList(m, spans.AttrNCCLLinkSlow, c.slowLinks)
}

// stragglers says who is late again and again: where that begins, where it was so in this collective, and where it is over. Of the collectives that follow each other
// closely only the first waits for a slow rank, and it would be on each.
func (c *collective) stragglers(m pcommon.Map) {
	s := slowRank{rank: op.Unknown}
	if len(c.over) > 0 {
		s = c.over[0]
		over := m.PutEmptySlice(spans.AttrNCCLStragglersOver)
		for i := range c.over {
			over.AppendEmpty().SetInt(int64(c.over[i].rank))
		}
	}
	if c.slowest >= 0 {
		s = c.slow[c.slowest]
	}
	if s.rank < 0 {
		return
	}
	m.PutInt(spans.AttrNCCLStragglerRank, int64(s.rank))
	putText(m, spans.AttrNCCLStragglerHost, s.host)
	if c.slowest < 0 {
		return
	}
	m.PutDouble(spans.AttrNCCLStragglerLate, seconds(s.late))
	m.PutDouble(spans.AttrNCCLStragglerCost, seconds(s.cost))
	if s.score > 0 {
		spans.PutFinite(m, spans.AttrNCCLStragglerScore, s.score)
	}
	all := m.PutEmptySlice(spans.AttrNCCLStragglers)
	for i := range c.slow {
		all.AppendEmpty().SetInt(int64(c.slow[i].rank))
	}
}

// absence writes what did not come.
func (c *collective) absence(m pcommon.Map) {
	if c.missingCount > 0 {
		m.PutInt(spans.AttrNCCLRanksMissingCount, int64(c.missingCount))
		putRanks(m, spans.AttrNCCLRanksMissing, c.missing)
	}
	putRanks(m, spans.AttrNCCLRanksStuck, c.stuck)
	if c.hang {
		m.PutBool(spans.AttrNCCLHang, true)
	}
	if c.waited > 0 {
		m.PutDouble(spans.AttrNCCLWaited, seconds(c.waited))
	}
	if c.missingCount > 0 || len(c.stuck) > 0 || !c.joined && c.parts[0].state != op.Completed {
		why := reasons[c.outcome]
		if why == "" {
			why = spans.NCCLIncompleteStuck
		}
		spans.PutIncomplete(m, why)
	}
}

// single is an operation that is not joined with others.
func (bd *builder) single(c *collective) {
	p := &c.parts[0]
	kind := ptrace.SpanKindInternal
	s := bd.Add(bd.resource(c, p.src), spans.Span{
		Trace: c.trace, ID: c.id, Name: c.operation(), Kind: kind, Start: c.start, End: c.end, Source: p.how.time, Attributes: 24 + judged,
	})
	m := s.Attributes()
	c.describe(m)
	p.describe(m, c)
	bd.Link(s, c.run.trace, c.run.span)
	status(s, c.errs, c.retries, c.hang)
	bd.detailsOf(c, p)
}

// detailsOf adds what is known below a span that stands alone.
func (bd *builder) detailsOf(c *collective, p *part) {
	if p.more == nil {
		return
	}
	if c.crowded = len(p.more.details) > maxSpans-maxAround; c.crowded {
		p.bare = true // aggregate stands for them
		return
	}
	bd.details(c, p, c.id)
}

// proxy is what a network proxy did: below its rank's span, where its collective is known.
func (bd *builder) proxy(c *collective) {
	p := &c.parts[0]
	name := spans.SpanNCCLProxyOp
	if c.name == proxyStep {
		name = spans.SpanNCCLProxyStep
	}
	s := bd.Add(bd.resource(c, p.src), spans.Span{
		Trace: c.trace, ID: c.id, Parent: c.parent, Name: name, Kind: ptrace.SpanKindInternal, Start: p.start, End: p.end, Source: p.how.time, Attributes: 10,
	})
	m := s.Attributes()
	putText(m, spans.AttrNCCLCommID, c.comm.id)
	p.describe(m, c)
	putIndex(m, spans.AttrNCCLMessageSize, c.size)
	if !c.hasParent {
		bd.Link(s, c.run.trace, c.run.span)
	}
	bd.detailsOf(c, p)
}

// proxyStep is the name of an operation that is one step of a proxy's.
const proxyStep = "ProxyStep"

// rank is what one rank did.
func (bd *builder) rank(c *collective, p *part) {
	id, res := c.rankID(p), bd.resource(c, p.src)
	start, end := p.start, p.end
	last := c.phased() && p == &c.parts[c.latest]
	if last {
		start, end = c.around(p)
	}
	s := bd.Add(res, spans.Span{
		Trace: c.trace, ID: id, Parent: c.id, Name: p.name, Kind: ptrace.SpanKindInternal, Start: start, End: end, Source: p.how.time, Attributes: p.attributes(c),
	})
	m := s.Attributes()
	if last {
		m.PutBool(spans.AttrNCCLLast, true)
	}
	p.describe(m, c)
	if p.how.timing != c.parts[0].how.timing {
		putText(m, spans.AttrNCCLTiming, p.how.timing)
	}
	if p.more != nil {
		status(s, p.more.errors, p.more.retries, false)
	}
	if c.phased() && !p.plain {
		phase := func(name string, from, to int64) {
			if to > from {
				bd.Add(res, spans.Span{
					Trace: c.trace, ID: spans.SpanID(parent16(c.trace, id), name, nil), Parent: id, Name: name, Kind: ptrace.SpanKindInternal, Start: from, End: to, Source: p.how.time,
				})
			}
		}
		if last {
			phase(spans.SpanNCCLLate, start+ahead, p.start)
		}
		begun := c.begun(p)
		phase(spans.SpanNCCLWait, p.start, begun)
		phase(spans.SpanNCCLTransfer, begun, p.end)
	}
	if p.more != nil && !p.bare {
		bd.details(c, p, id)
	}
}

// phased says whether it is known when the last rank came, so that waiting and transferring can be told apart.
func (c *collective) phased() bool { return c.latest >= 0 && c.transfer > 0 && c.lateMax > leaving }

// leaving is how far apart ranks leave a collective, ns: what is shorter is no waiting.
const leaving = 10_000

// begun is when the transfer began for a rank: all leave together, so that it took as long for all as for the rank that came last.
func (c *collective) begun(p *part) int64 { return max(p.start, p.end-c.transfer) }

// ahead is by how much the row of the rank that came last begins before that of the first, ns: Jaeger, which knows µs, draws in any order what begins together, and of
// what ends together its longest path goes through what began first.
const ahead = 1000

// scatter is how far apart the ranks' ends may be by one clock, ns.
const scatter = 100_000

// around is the row of the rank that came last: from when the first came, for all wait for this one. Drawn from its own arrival it would be the shortest, at the
// bottom, and the longest path of the trace (Jaeger's goes back from what ended last) would be that of a rank that waits.
func (c *collective) around(p *part) (start, end int64) {
	start, end = p.start-c.lateMax, p.end
	if start-c.start < scatter { // by one clock
		start = c.start
	}
	if c.end-end < scatter {
		end = c.end
	}
	return start - ahead, end
}

// rankID names the span of a rank. A rank with several links has a span for each.
func (c *collective) rankID(p *part) pcommon.SpanID {
	if p.more != nil && !p.more.id.IsEmpty() {
		return p.more.id
	}
	var key [16]byte
	binary.BigEndian.PutUint32(key[:], uint32(p.rank))
	n := 4
	if p.again > 0 {
		binary.BigEndian.PutUint32(key[4:], uint32(p.again))
		n = 8
	}
	return spans.SpanID(c.trace, "rank", key[:n])
}

func (p *part) attributes(c *collective) int {
	n := 4
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

// describe writes what is true of one rank.
func (p *part) describe(m pcommon.Map, c *collective) {
	if p.rank >= 0 {
		m.PutInt(spans.AttrNCCLCommRank, int64(p.rank))
		if p.how.global {
			m.PutInt(spans.AttrRank, int64(p.rank))
		}
	}
	if p.late >= 0 {
		m.PutDouble(spans.AttrNCCLLate, seconds(p.late))
	}
	if c.joined {
		alg := c.ownBandwidth(p)
		if spans.PutFinite(m, spans.AttrNCCLBandwidthBus, alg*c.factor); math.IsNaN(c.factor) {
			spans.PutFinite(m, spans.AttrNCCLBandwidthAlgorithm, alg)
		}
	}
	if spans.PutFinite(m, spans.AttrNCCLBandwidthBusReported, p.reportedBus); math.IsNaN(p.reportedBus) {
		spans.PutFinite(m, spans.AttrNCCLBandwidthAlgorithmReported, p.reportedAlg)
	}
	if off := c.off(p); off > 0 && c.joined {
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

// usualUnit is the unit that needs no word: that of NCCL's own tools.
const usualUnit = "GB/s"

// details adds what is known below a rank.
func (bd *builder) details(c *collective, p *part, parent pcommon.SpanID) {
	ids := make([]pcommon.SpanID, len(p.more.details))
	var key [8]byte
	for i := range p.more.details {
		d := &p.more.details[i]
		binary.BigEndian.PutUint32(key[:], uint32(i))
		ids[i] = spans.SpanID(parent16(c.trace, parent), d.name, key[:4])
		under := parent
		if d.parent >= 0 && int(d.parent) < i {
			under = ids[d.parent]
		}
		start, end := d.start, d.end
		switch {
		case start == 0 && end == 0:
			start, end = p.start, p.start+max(d.duration, 0)
		case start == 0:
			start = end - max(d.duration, 0)
		case end < start:
			end = start + max(d.duration, 0)
		}
		s := bd.Add(bd.resource(c, p.src), spans.Span{
			Trace: c.trace, ID: ids[i], Parent: under, Name: d.name, Kind: ptrace.SpanKindInternal, Start: start, End: end, Source: p.how.time, Attributes: 6,
		})
		m := s.Attributes()
		putIndex(m, spans.AttrNCCLChannelID, int64(d.channel))
		putIndex(m, spans.AttrNCCLPeerRank, int64(d.peer))
		putIndex(m, spans.AttrNCCLStep, int64(d.step))
		putIndex(m, spans.AttrNCCLMessageSize, d.size)
		putText(m, spans.AttrNCCLDirection, d.direction)
		putText(m, spans.AttrNCCLProxyState, d.operation)
	}
}

// parent16 makes the key space of a span's children: ranks have equal details.
func parent16(trace pcommon.TraceID, parent pcommon.SpanID) pcommon.TraceID {
	for i := range parent {
		trace[i] ^= parent[i]
	}
	return trace
}

// maxPhased is of how many ranks the trace shows when they waited and transferred: no one reads a thousand.
const maxPhased = 64

// fit decides which ranks and details have spans of their own: the ranks that took longest and came last keep theirs.
func (c *collective) fit() {
	need, phased := len(c.parts), 0
	if c.phased() {
		phased = min(len(c.parts), maxPhased)
	}
	need += 2 * phased
	for i := range c.parts {
		if p := &c.parts[i]; p.more != nil {
			need += len(p.more.details)
		}
		if i > 0 && c.parts[i-1].rank == c.parts[i].rank {
			c.parts[i].again = c.parts[i-1].again + 1
		}
	}
	room := maxSpans - maxAround
	if need <= room && (phased == 0 || phased == len(c.parts)) {
		return
	}
	c.crowded = true
	order := make([]int32, len(c.parts))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(x, y int32) int {
		a, b := &c.parts[x], &c.parts[y]
		return cmp.Or(cmp.Compare(b.late, a.late), cmp.Compare(b.duration, a.duration))
	})
	room -= len(c.parts)
	for n, i := range order {
		p := &c.parts[i]
		if n >= maxSpans-maxAround {
			p.left = true
		}
		if p.plain = n >= phased || room < 2; !p.plain {
			room -= 2
		}
		if p.more != nil {
			if room -= len(p.more.details); room < 0 {
				p.bare = true
			}
		}
	}
}

// aggregate stands for the spans that found no room.
func (bd *builder) aggregate(c *collective) {
	type sums struct {
		all      []int64
		sum      int64
		from, to int64
	}
	var names []string
	by := map[string]*sums{}
	add := func(name string, start, end, d int64) {
		s := by[name]
		if s == nil {
			s = &sums{from: math.MaxInt64}
			by[name] = s
			names = append(names, name)
		}
		d = max(d, 0)
		s.all = append(s.all, d)
		s.sum += d
		s.from, s.to = min(s.from, start), max(s.to, end)
	}
	for i := range c.parts {
		p := &c.parts[i]
		if p.left {
			add(spans.SpanNCCLRank, p.start, p.end, p.duration)
		}
		if (p.left || p.plain) && c.phased() {
			begun := c.begun(p)
			add(spans.SpanNCCLWait, p.start, begun, begun-p.start)
			add(spans.SpanNCCLTransfer, begun, p.end, p.end-begun)
		}
		if p.bare || p.left && p.more != nil {
			for j := range p.more.details {
				d := &p.more.details[j]
				took := d.duration
				if took < 0 {
					took = d.end - d.start
				}
				add(d.name, p.start, p.end, took)
			}
		}
	}
	for _, name := range names {
		v := by[name]
		slices.Sort(v.all)
		s := bd.Add(bd.resource(c, nil), spans.Span{
			Trace: c.trace, ID: spans.SpanID(parent16(c.trace, c.id), "aggregate", []byte(name)), Parent: c.id, Name: name, Kind: ptrace.SpanKindInternal,
			Start: v.from, End: v.to, Source: c.parts[0].how.time, Attributes: 4,
		})
		m := s.Attributes()
		m.PutInt(spans.AttrAggregateCount, int64(len(v.all)))
		m.PutDouble(spans.AttrAggregateSum, seconds(v.sum))
		m.PutDouble(spans.AttrAggregateP50, seconds(v.all[(len(v.all)-1)/2]))
		m.PutDouble(spans.AttrAggregateMax, seconds(v.all[len(v.all)-1]))
	}
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func putText(m pcommon.Map, name, text string) {
	if text != "" {
		m.PutStr(name, text)
	}
}

func putSeconds(m pcommon.Map, name string, ns int64) {
	if ns >= 0 {
		m.PutDouble(name, seconds(ns))
	}
}

func putIndex(m pcommon.Map, name string, v int64) {
	if v >= 0 {
		m.PutInt(name, v)
	}
}

func putRanks(m pcommon.Map, name string, ranks []int32) {
	if len(ranks) == 0 {
		return
	}
	list := m.PutEmptySlice(name)
	for _, r := range ranks {
		list.AppendEmpty().SetInt(int64(r))
	}
}

func putList(m pcommon.Map, name string, texts []string) {
	if len(texts) == 0 {
		return
	}
	list := m.PutEmptySlice(name)
	for _, t := range texts {
		list.AppendEmpty().SetStr(t)
	}
}
