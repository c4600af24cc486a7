package collectives

import (
	"cmp"
	"encoding/binary"
	bits64 "math/bits"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// close finishes the collectives that have ended: it passes each through the last stages (seal, measureTimes, judge) and puts it into j.leaving. They leave
// with the current record, whichever inputs their records came from.
func (j *joiner) close() {
	for _, ended := range j.ended {
		c := j.free.get()
		c.open = ended
		j.seal(&c.closed)
		j.measureTimes(&c.closed)
		j.judge(&c.judged)
		j.leaving = append(j.leaving, c)
	}
	clear(j.ended)
	j.ended = j.ended[:0]
}

// seal orders the records of a collective by rank, finds the missing ranks, and makes names and ids.
func (j *joiner) seal(c *closed) {
	slices.SortStableFunc(c.parts, func(x, y part) int { return cmp.Compare(x.rank, y.rank) })
	j.decideSure(c)
	j.nameRanks(c)
	c.makeIDs()
	c.run.closed++
	c.comm.closed++
}

// decideSure sets c.sure: whether the records certainly are one collective. Then it finds the missing ranks, if missing records are evidence of them, or
// decides whether a single operation hangs.
func (j *joiner) decideSure(c *closed) {
	c.sure = c.join == byNumber
	if !c.sure { // counted, or joined by time: a missing record is no sign of a missing rank
		c.sure = c.track.trust(c.whole)
	} else if c.track != nil {
		j.findAbsent(c)
	} else if m := c.parts[0].more; m != nil { // a single operation, such as a Send, hangs if the log says so
		c.hang = m.timedOut && c.parts[0].state != op.Completed
	}
}

// nameRanks gives the spans of the ranks their names, and the collective the name and the size of its communicator. A rank whose first record is late is not in
// the communicator yet.
func (j *joiner) nameRanks(c *closed) {
	c.commName, c.commSize = c.comm.name, c.comm.size
	for i := range c.parts {
		p := &c.parts[i]
		p.name = spans.SpanNCCLRank
		switch {
		case !c.joined:
		case c.comm.seen.has(p.rank):
			p.name = c.comm.rows[p.rank]
		default:
			p.name = j.rankSpanName(p.rank, p.src.host)
		}
	}
}

// trust reports whether a collective with counted numbers allows conclusions; whole: the collective is complete. After an incomplete collective, shaky complete
// collectives must come first: lost records are often followed by more, and chance joins foreign records.
func (t *track) trust(whole bool) bool {
	if !whole {
		t.shaky = shaky
		return false
	}
	t.shaky = max(t.shaky-1, -1)
	return t.shaky < 0
}

// MaxListed bounds the ranks in an attribute.
const MaxListed = 32

// findAbsent lists the ranks without a record (missing), and the ranks whose operation has no end (stuck), and decides whether the collective hangs (c.hang).
// An outcome TimedOut becomes Unheard if the input of a missing rank is silent too. By the outcome, findAbsent also sets completedAt and settled of the
// communicator.
func (j *joiner) findAbsent(c *closed) {
	c.listMissing(j.aliveSince)
	stuck := c.findStuck() // sets c.hang if a log has a timeout
	comm := c.comm
	switch c.outcome {
	case Complete:
		if stuck == 0 {
			comm.completedAt = max(comm.completedAt, c.opened) // not c.last: another log may be read much later
		}
	case TimedOut:
		comm.settled = true // ranks without any record were waited for long enough
		if len(c.unheard) > 0 {
			c.outcome = Unheard
		}
		missing := c.missingCount > 0 && c.outcome == TimedOut // Unheard: a silent input may have the missing records
		noneWentOn := c.seq == c.track.top && comm.completedAt <= c.last
		// A hang is an operation without an end, or a missing rank while no rank has gone on since.
		if stuck > 0 || missing && noneWentOn {
			c.hang = true
		}
		c.waited = j.set.HangTimeout.Nanoseconds() * 5 / 4 // see expire
	case Evicted:
		comm.settled = comm.settled || j.silent == 0 // unseen ranks get no more time, unless a silent input may have them
	case Gap, Gone, Unheard, Ended, Late, Outcomes:
	}
}

// listMissing counts the known ranks of the communicator without a record here (missingCount), and lists the first MaxListed. If the collective timed out,
// missing ranks that have not gone on are given up, and those whose input was silent since the given time, Unix ns, are listed as unheard, up to MaxListed too.
func (c *closed) listMissing(since int64) {
	comm := c.comm
	if comm.sparse { // missing records are no fault
		return
	}
	for w, word := range comm.seen {
		for word != 0 { // the lowest bit is the next rank
			rank := int32(w*64) + int32(bits64.TrailingZeros64(word))
			word &= word - 1
			outside := comm.size > 0 && rank >= comm.size && !comm.global // the communicator has become smaller
			if outside || c.has.has(rank) {
				continue
			}
			if c.missingCount++; len(c.missing) < MaxListed {
				c.missing = append(c.missing, rank)
			}
			if c.outcome == TimedOut && !c.track.isBeyond(rank, c.seq) {
				comm.giveUpRank(rank)
				// Only of remote collectors is known whether they still read.
				if in := comm.inputs; len(in) > 0 && in[rank].alive < since && len(c.unheard) < MaxListed {
					c.unheard = append(c.unheard, rank)
				}
			}
		}
	}
}

// findStuck returns the number of ranks whose record has no end of the operation, and lists the first MaxListed in c.stuck. A timeout in one of their logs
// makes the collective a hang.
func (c *closed) findStuck() (stuck int) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.state == op.Completed {
			continue
		}
		stuck++
		if len(c.stuck) < MaxListed {
			c.stuck = append(c.stuck, p.rank)
		}
		if p.more != nil && p.more.timedOut {
			c.hang = true
		}
	}
	return stuck
}

// loggedTrace returns the trace and the parent span that ids in the records name, if all records agree; records without ids agree with any. If they agree only
// about the trace, parent is empty. false: the records name two traces, or none.
func (c *closed) loggedTrace() (trace pcommon.TraceID, parent pcommon.SpanID, ok bool) {
	for i := range c.parts {
		m := c.parts[i].more
		switch {
		case m == nil || m.trace.IsEmpty():
		case trace.IsEmpty():
			trace, parent = m.trace, m.parent
		case m.trace != trace:
			return pcommon.TraceID{}, pcommon.SpanID{}, false
		case m.parent != parent:
			parent = pcommon.SpanID{}
		}
	}
	return trace, parent, !trace.IsEmpty()
}

// makeIDs makes the ids of the trace and the root span. They are a hash of the natural key: communicator, operation and number, or, if not joined, the record
// itself.
//
// If the records name a trace, the collective goes into that trace, which has more spans: the key then makes the ids of the spans. A late record goes below the
// root that left, whatever ids the record has.
func (c *closed) makeIDs() {
	var seq [9]byte // the number, and whether it is counted: a counted number has ids of its own
	binary.BigEndian.PutUint64(seq[:], c.seq)
	if c.ordinal {
		seq[8] = 1
	}
	operation := c.operation()
	if c.seqOfAll {
		operation = "" // ranks may disagree about the operation
	}
	var room [64]byte
	joined := c.joined && c.join != byTime
	if !joined { // the number alone does not distinguish records
		p := &c.parts[0]
		key := p.recordKey(binary.BigEndian.AppendUint64(room[:0], uint64(c.size)))
		c.trace = spans.KeyTraceID(c.run.id, c.comm.family, []byte(c.comm.id), []byte(operation), seq[:], []byte(p.src.key), key)
	} else {
		c.trace = spans.KeyTraceID(c.run.id, c.comm.family, []byte(c.comm.id), []byte(operation), seq[:])
	}
	trace, parent, named := c.loggedTrace()
	switch {
	case c.outcome == Late && c.rootID != nil:
		c.trace, c.id, c.byID = c.rootID.trace, c.rootID.span, true
	case c.outcome != Late && named:
		c.id = spans.SpanID(trace, "collective", c.trace[:])
		c.trace, c.parent, c.byID = trace, parent, true
	default:
		c.id = spans.SpanID(c.trace, "collective")
	}
	for i := range c.parts {
		// A rank has a record per link. They may leave in parts, in an order that depends on the files, so the values of the record make the id.
		if p := &c.parts[i]; joined && p.more != nil && p.more.sends > 0 {
			p.more.id = c.childID("rank", p.recordKey(room[:0]))
		}
	}
	if c.hasParent {
		c.adopt()
	}
}

// childID returns the id of a span below the root, from its role and a key that is unique in the collective. In a trace shared with other collectives (byID)
// the id of the root joins the key.
func (c *closed) childID(role string, key []byte) pcommon.SpanID {
	if c.byID {
		return spans.SpanID(c.trace, role, c.id[:], key)
	}
	return spans.SpanID(c.trace, role, key)
}

// adopt moves the operation of a proxy into the trace of its collective, below the span of its rank. It computes both ids as the collective does (makeIDs,
// rankID), since the collective may be closed earlier, later, or by another collector.
func (c *closed) adopt() {
	own := c.trace
	var seq [9]byte
	binary.BigEndian.PutUint64(seq[:], c.parentSeq)
	c.trace = spans.KeyTraceID(c.run.id, c.comm.family, []byte(c.comm.id), []byte(c.parentKind.String()), seq[:])
	c.parent = c.rankID(&c.parts[0])
	c.id = spans.SpanID(c.trace, "proxy", own[:])
}

// recordKey appends the logged values that distinguish the record from others of the same operation: rank and times, and of the rare fields (more) the ranks,
// the channel, and the start and the step of the first detail.
func (p *part) recordKey(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(p.rank))
	b = binary.BigEndian.AppendUint64(b, uint64(p.start))
	b = binary.BigEndian.AppendUint64(b, uint64(p.duration))
	m := p.more
	if m == nil {
		return b
	}
	for _, n := range [...]int32{m.peer, m.sourceRank, m.destRank, m.channel} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	if len(m.details) > 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(m.details[0].start))
		b = binary.BigEndian.AppendUint32(b, uint32(m.details[0].step))
	}
	return b
}

// rankID returns the id of the span of a rank. For a rank with a record per link the values of the record make the id (makeIDs); else the rank, and how many
// records of the rank come before.
func (c *closed) rankID(p *part) pcommon.SpanID {
	if p.more != nil && !p.more.id.IsEmpty() {
		return p.more.id
	}
	var key [8]byte
	binary.BigEndian.PutUint32(key[:], uint32(p.rank))
	n := 4
	if p.again > 0 {
		binary.BigEndian.PutUint32(key[4:], uint32(p.again))
		n = 8
	}
	return c.childID("rank", key[:n])
}

// childTrace mixes the id of a span into its trace id, to make the ids of the children of the span: children of different ranks have equal names and numbers.
func childTrace(trace pcommon.TraceID, parent pcommon.SpanID) pcommon.TraceID {
	for i := range parent {
		trace[i] ^= parent[i]
	}
	return trace
}
