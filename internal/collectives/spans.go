package collectives

import (
	"encoding/binary"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// MaxSpans bounds a trace: Jaeger's page and Tempo handle 2,000 spans well. maxAround of them are the root, the lateness of the last rank, and the aggregates
// of spans without room.
const (
	MaxSpans  = 2_000
	maxAround = 10
)

// AddSpans writes the spans of collectives that have left, for a service name: first the roots, then the ranks with their phases and details, last the
// aggregates. from is called before the spans of a collective or record are added, with its place in the batch (Collective.Place, Collective.Records). A second
// call with the same collectives writes the same spans.
func AddSpans(out *spans.Batch, service string, batch []*Collective, from func(place int)) {
	bd := builder{Batch: out, service: service, batch: batch, from: from}
	bd.roots()
	if undrawn := func(c *Collective) bool { return c.undrawn }; slices.ContainsFunc(batch, undrawn) {
		bd.batch = slices.DeleteFunc(slices.Clone(batch), undrawn)
	}
	bd.ranks()
	bd.aggregates()
}

// builder turns collectives into spans.
type builder struct {
	*spans.Batch
	service string
	batch   []*Collective
	from    func(place int)
}

// roots adds the root span of each collective, and the spans of single operations and of proxies. A late record gets no root: the root of its collective was
// sent before. An undrawn collective gets a root, which components join and count, and no backend receives.
func (bd *builder) roots() {
	for _, c := range bd.batch {
		bd.from(c.Place)
		switch {
		case c.proxy && c.undrawn: // no component joins or counts proxies
		case c.proxy:
			bd.proxy(c)
		case !c.joined:
			bd.single(c)
		case c.outcome != Late:
			bd.root(c)
		}
	}
}

// ranks adds the spans of the ranks: the first rank of every collective, then the second, and so on, so that spans of one resource are consecutive.
func (bd *builder) ranks() {
	for nth, more := 0, true; more; nth++ {
		more = false
		for _, c := range bd.batch {
			if !c.joined || nth >= len(c.parts) {
				continue
			}
			more = true
			if nth == 0 {
				c.fitToTrace() // decides about the spans of all its ranks
			}
			if p := &c.parts[nth]; !p.left {
				bd.from(c.placeOf(p))
				bd.rank(c, p)
			}
		}
	}
}

// placeOf returns the place of a record in the batch: its own, if Records gave one, else the collective's.
func (c *Collective) placeOf(p *part) int {
	if c.placed {
		return int(p.held)
	}
	return c.Place
}

// aggregates adds the spans that stand for spans without room in the trace.
func (bd *builder) aggregates() {
	for _, c := range bd.batch {
		if c.crowded {
			bd.from(c.Place)
			bd.aggregate(c)
		}
	}
}

// resource returns the resource of the spans of a rank: the process that wrote its record.
func (bd *builder) resource(c *Collective, p *part) spans.Resource {
	return spans.Resource{Service: bd.service, RunID: c.run.id, Host: p.src.host, PID: p.src.pid, JoinBy: c.joinBy(), RecordOnly: c.undrawn, Time: p.how.time}
}

// joinBy returns spans.JoinByID if an id in the log decided the trace; else empty: the trace is of the collective alone.
func (c *Collective) joinBy() string {
	if c.byID {
		return spans.JoinByID
	}
	return ""
}

// root adds the span of a collective, linked to the span of its run. The source of its times is that of the first rank, or synthetic if the record of any rank
// has no clock.
func (bd *builder) root(c *Collective) {
	source := c.parts[0].how.time
	for i := range c.parts {
		if c.parts[i].how.synthetic {
			source = spans.TimeSynthetic
		}
	}
	s := bd.Add(spans.Resource{Service: bd.service, RunID: c.run.id, JoinBy: c.joinBy(), RecordOnly: c.undrawn, Time: source}, spans.Span{
		Trace: c.trace, ID: c.id, Parent: c.parent, Name: c.operation(), Is: spans.KindCollective, Kind: ptrace.SpanKindInternal, State: c.state,
		Start: c.start, End: c.end, Source: source, Attributes: 22 + spans.AddedVerdicts,
	})
	m := s.Attributes()
	c.describe(m)
	bd.Link(s, c.run.trace, c.run.span)
	status(s, c.errs, c.retries, c.hang)
}

// status marks a span as failed if its operation had errors, did not complete or was retried: Jaeger and Tempo show the span in red.
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

// single adds the span of an operation that is not joined, such as a Send: a root and a rank in one, with the details of its channels below.
func (bd *builder) single(c *Collective) {
	p := &c.parts[0]
	kind := ptrace.SpanKindInternal
	s := bd.Add(bd.resource(c, p), spans.Span{
		Trace: c.trace, ID: c.id, Parent: c.parent, Name: c.operation(), Is: spans.KindCollective, Kind: kind, State: c.state,
		Start: c.start, End: c.end, Source: p.how.time, Attributes: 18 + spans.AddedVerdicts,
	})
	m := s.Attributes()
	c.describe(m)
	p.describe(m, c)
	bd.Link(s, c.run.trace, c.run.span)
	status(s, c.errs, c.retries, c.hang)
	if !c.undrawn {
		bd.detailsOf(c, p)
	}
}

// detailsOf adds the details below a single span. If they are too many for a trace, they are summed up instead (aggregates).
func (bd *builder) detailsOf(c *Collective, p *part) {
	if p.more == nil {
		return
	}
	c.crowded = len(p.more.details) > MaxSpans-maxAround
	if c.crowded {
		p.bare = true // aggregated instead
		return
	}
	bd.details(c, p, c.id)
}

// proxy adds the span of a network proxy's operation: below its rank's span, if its collective is known.
func (bd *builder) proxy(c *Collective) {
	p := &c.parts[0]
	name := spans.SpanNCCLProxyOp
	if c.name == op.ProxyStep {
		name = spans.SpanNCCLProxyStep
	}
	s := bd.Add(bd.resource(c, p), spans.Span{
		Trace: c.trace, ID: c.id, Parent: c.parent, Name: name, Kind: ptrace.SpanKindInternal, State: c.state, Start: p.start, End: p.end, Source: p.how.time,
		Attributes: 10,
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

// rank adds the span of a rank below the root, and below the rank its phases (waiting, transferring) and its details (channels, proxies). The span of the rank
// that came last begins with the first rank: its lateness is a phase too (see lastRankSpan).
func (bd *builder) rank(c *Collective, p *part) {
	id, res := c.rankID(p), bd.resource(c, p)
	start, end := p.start, p.end
	last := c.hasPhases() && p == &c.parts[c.latest]
	if last {
		start, end = c.lastRankSpan(p)
	}
	s := bd.Add(res, spans.Span{
		Trace: c.trace, ID: id, Parent: c.id, Name: p.name, Is: spans.KindRank, Kind: ptrace.SpanKindInternal, State: c.state, Start: start, End: end,
		Source: p.how.time, Attributes: p.attributes(c, last),
	})
	m := s.Attributes()
	if last {
		m.PutBool(spans.AttrNCCLLast, true)
		if c.placed { // a report on records needs the record's own duration: the span begins earlier, and may end later (see lastRankSpan)
			m.PutDouble(spans.AttrNCCLDuration, seconds(p.end-p.start))
		}
	}
	p.describe(m, c)
	if p.how.timing != c.parts[0].how.timing { // the root has the first rank's
		putText(m, spans.AttrNCCLTiming, p.how.timing)
	}
	if p.more != nil {
		status(s, p.more.errors, p.more.retries, false)
	}
	// Phases, one after the other: late (the last rank only), waiting, transferring.
	if c.hasPhases() && !p.plain {
		if last {
			bd.phase(c, id, spans.SpanNCCLLate, start+Ahead, p.start)
		}
		begun := c.transferStart(p)
		bd.phase(c, id, spans.SpanNCCLWait, p.start, begun)
		bd.phase(c, id, spans.SpanNCCLTransfer, begun, p.end)
	}
	if p.more != nil && !p.bare {
		bd.details(c, p, id)
	}
}

// phase adds a phase of a rank, from one time to another, Unix ns, below the span of the rank; nothing if empty. The name is its only content.
func (bd *builder) phase(c *Collective, rank pcommon.SpanID, name string, from, to int64) {
	if to > from {
		bd.AddPart(&spans.Span{
			Trace: c.trace, ID: spans.SpanID(childTrace(c.trace, rank), name, nil), Parent: rank, Name: name, Kind: ptrace.SpanKindInternal, State: c.state,
			Start: from, End: to,
		})
	}
}

// hasPhases reports whether waiting and transferring are distinguished: the last rank and the transfer time are known, and the lateness exceeds leaveSpread.
func (c *Collective) hasPhases() bool {
	return c.latest >= 0 && c.transfer > 0 && c.lateMax > leaveSpread
}

// leaveSpread is how far apart ranks leave a collective, ns: a shorter lateness is not seen as waiting.
const leaveSpread = 10_000

// transferStart returns when the transfer began for a rank, Unix ns: the ranks leave together, and the transfer took each as long as the last rank.
func (c *Collective) transferStart(p *part) int64 { return max(p.start, p.end-c.transfer) }

// Ahead is how far the row of the last rank begins before the row of the first, ns: Jaeger, with a precision of µs, draws spans with the same start in any
// order, and among spans with the same end its longest path goes through the earliest start.
const Ahead = 1000

// scatter is the largest distance of the ranks' ends by one clock, ns.
const scatter = 100_000

// lastRankSpan returns where the span of the last rank to arrive is drawn, Unix ns. It starts Ahead before the first rank's arrival, not at the rank's own:
// otherwise the span would be the shortest bar, at the bottom, and Jaeger's critical path (traced back from the latest end) would run through a rank that only
// waited.
//
// A first arrival less than scatter after the collective's start, or before the collective's start, snaps to that start; an end less than scatter before the
// collective's end snaps to that end.
func (c *Collective) lastRankSpan(p *part) (start, end int64) {
	start, end = p.start-c.lateMax, p.end
	// On one clock the two starts differ by less than scatter. Not with placed: a report on records recovers the rank's own start from this span, so the start
	// must stay exact.
	if start-c.start < scatter && !c.placed {
		start = c.start
	}
	if c.end-end < scatter {
		end = c.end
	}
	return start - Ahead, end
}

// details adds the details of a rank or a single operation below the span parent: channels and network proxies. A detail lies below the detail that encloses
// it, if any (op.Detail.Under, which is always an earlier one).
func (bd *builder) details(c *Collective, p *part, parent pcommon.SpanID) {
	ids := make([]pcommon.SpanID, len(p.more.details))
	var key [8]byte
	for i := range p.more.details {
		d := &p.more.details[i]
		binary.BigEndian.PutUint32(key[:], uint32(i))
		ids[i] = spans.SpanID(childTrace(c.trace, parent), d.name, key[:4])
		under := parent
		if d.parent >= 0 && int(d.parent) < i {
			under = ids[d.parent]
		}
		start, end := d.within(p)
		s := bd.Add(bd.resource(c, p), spans.Span{
			Trace: c.trace, ID: ids[i], Parent: under, Name: d.name, Kind: ptrace.SpanKindInternal, State: c.state, Start: start, End: end,
			Source:     p.how.time,
			Attributes: 6,
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

// within returns the start and end of a detail of p, Unix ns. A missing start or end follows from the duration; without both, the detail begins with p.
func (d *detail) within(p *part) (start, end int64) {
	took := max(d.duration, 0)
	switch {
	case d.start == 0 && d.end == 0:
		return p.start, p.start + took
	case d.start == 0:
		return d.end - took, d.end
	case d.end < d.start:
		return d.start, d.start + took
	}
	return d.start, d.end
}
