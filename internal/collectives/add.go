package collectives

import (
	"slices"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/spans"
)

// record is one rank's account of an operation.
type record struct {
	comm *communicator
	src  *source
	op   *op.Op
	held slot  // of the lent lines or offsets that it came by
	came int   // how much that is
	at   int64 // when it was read, Unix ns
	// known says that it was sent in an earlier life: Input.Known.
	known bool
}

// joins says whether other ranks have records of the same operation: it has a number that all its ranks share.
func (r *record) joins() bool { return r.op.HasSeq && r.op.Rank >= 0 && r.op.Rank <= MaxRank }

// add takes a record. It leaves at once, or waits in its collective for the records of the other ranks.
func (j *joiner) add(in *input, r *record) {
	switch {
	case !r.joins():
		j.end(j.single(r), Complete)
	case r.op.Ordinal:
		j.joinByCount(in, r)
	default:
		j.joinByNumber(in, r)
	}
	j.lookAgain(againMost)
	j.close()
	j.bound()
}

// joinByNumber takes a record whose number is in the log.
func (j *joiner) joinByNumber(in *input, r *record) {
	t := j.track(r.comm, r.op)
	c := t.open[r.op.Seq]
	if c == nil {
		if left, ok := j.ghosts.has(t.key, r.op.Seq); ok && !left.whole {
			c = j.single(r)
			c.joined, c.dropped, c.rootID = true, !left.sent, left.byID
			j.ghosts.add(t.key, r.op.Seq, r.op.Rank)
			j.end(c, Tardy)
			return
		}
		c = j.open(t, r)
	}
	j.touch(c, r.at)
	j.put(c, r)
	first := j.attend(c, r.op.Rank)
	j.see(r.comm, r.op.Rank, r.src, in)
	j.hear(in)
	j.goOn(t, c, r.op.Rank, first)
	j.settle(c)
}

// single makes a collective of a record that leaves alone.
func (j *joiner) single(r *record) *Collective {
	c := j.get()
	j.begin(c, r)
	j.put(c, r)
	return c
}

// open takes up a collective with its first record, which is not in it yet.
func (j *joiner) open(t *track, r *record) *Collective {
	c := j.get()
	j.begin(c, r)
	comm, seq := r.comm, r.op.Seq
	c.joined, c.track = true, t
	if n := int(min(max(comm.size, int32(comm.known)), usualParts)); cap(c.parts) < n {
		c.parts = make([]part, 0, n)
	}
	if t.any && seq > t.top+1 && !comm.sparse && !c.ordinal && !t.again && !r.op.Again {
		c.gap = seq - t.top - 1
	}
	if t.any && seq < t.top {
		c.passed = t.passedBy(r.op.Rank, seq)
	}
	if seq >= t.top {
		t.again = r.op.Again
	}
	t.top, t.any = max(t.top, seq), true
	c.bytes = collectiveBytes + int64(cap(c.parts))*partBytes
	t.insert(c)
	j.enlist(c)
	return c
}

// passedBy counts the ranks that have gone on before seq was taken up. Where its first rank has gone on too, numbers begin anew, as in a job that was started
// again.
func (t *track) passedBy(first int32, seq uint64) (n int) {
	if t.beyond(first, seq) {
		return 0
	}
	for rank := range t.last {
		if t.beyond(int32(rank), seq) {
			n++
		}
	}
	return n
}

// begin takes over what the first record of a collective says of the collective as a whole.
func (j *joiner) begin(c *Collective, r *record) {
	o := r.op
	c.comm, c.run = r.comm, r.comm.run
	c.kind, c.seq, c.ordinal = o.Kind, o.Seq, o.Ordinal
	c.name, c.algorithm, c.protocol, c.datatype = j.text(o.Name), j.text(o.Algorithm), j.text(o.Protocol), j.text(o.Datatype)
	c.nodes, c.channels = o.Nodes, o.Channels
	c.size, c.total = o.Size, o.Total
	c.proxy, c.hasParent, c.parentKind, c.parentSeq = o.Proxy, o.HasParent && o.Rank >= 0, o.ParentKind, o.ParentSeq
	c.opened, c.last = r.at, r.at
	c.known = true
}

// put adds a record to a collective.
func (j *joiner) put(c *Collective, r *record) {
	o := r.op
	// In AllToAll each rank may send as much as it likes, and the size of a send over a link is not the message size.
	if o.Size >= 0 && c.size >= 0 && o.Size != c.size && o.Kind != op.AllToAll && o.Sends == 0 || o.Kind != c.kind {
		c.mismatch = c.joined
	}
	c.total = max(c.total, o.Total)
	c.channels = max(c.channels, o.Channels)
	c.errs += o.Errors
	c.retries += o.Retries
	c.known = c.known && r.known
	c.logged = max(c.logged, o.End)
	c.parts = append(c.parts, part{
		held: r.held, src: r.src, rank: o.Rank, how: j.howOf(o), more: moreOf(r), state: o.State, start: o.Start, end: o.End, duration: o.Duration,
		late: op.Unknown, reportedAlg: o.ReportedAlg, reportedBus: o.ReportedBus,
	})
	bytes := int64(cameBytes)
	if len(c.parts) > usualParts {
		bytes += partBytes
	}
	if m := c.parts[len(c.parts)-1].more; m != nil {
		bytes += m.bytes()
	}
	c.bytes += bytes
	if c.waiting {
		j.bytes += bytes
	}
}

// attend takes note that a rank has a record of a collective, and says whether it is its first.
func (j *joiner) attend(c *Collective, rank int32) (first bool) {
	words := len(c.has)
	if first = c.has.set(rank); first {
		c.ranks++
	}
	grown := int64(len(c.has)-words) * 8
	c.bytes += grown
	j.bytes += grown
	return first
}

// goOn takes note that a rank has gone on to a collective: records that it left out before do not come any more, for ranks log in the order of their
// operations. Where ranks have as many records of a collective as links, all of the rank's have come once it goes on. first says that it is the rank's first
// record of the collective.
func (j *joiner) goOn(t *track, c *Collective, rank int32, first bool) {
	sparse, seq := c.comm.sparse, c.seq
	if n := int(rank) + 1 - len(t.last); n > 0 {
		t.last = append(t.last, make([]lastSeq, n)...)
		j.remember(c.comm, lastSeqBytes*n)
	}
	before := t.last[rank]
	if before.seen && seq <= before.seq {
		if first && !sparse && c.passed > 0 && seq < before.seq {
			c.passed-- // it does come
		}
		return
	}
	t.last[rank] = lastSeq{seq, true}
	next := before.seq + 1 // the first that is passed now
	if sparse {
		next = before.seq
	}
	from := 0
	if before.seen {
		if seq == next {
			return
		}
		from, _ = slices.BinarySearch(t.seqs, next)
	}
	for i := from; i < len(t.seqs) && t.seqs[i] < seq; {
		o := t.open[t.seqs[i]]
		if sparse || !o.has.has(rank) {
			o.passed++
			if j.full(o) {
				j.end(o, o.whyFull()) // takes it out of seqs
				continue
			}
		}
		i++
	}
}

// settle lets a collective go that is full, unless its ranks say that they are several rings.
func (j *joiner) settle(c *Collective) {
	if c.join == byTime || !j.full(c) {
		return
	}
	if c.join == byCount {
		if j.several(c.parts) {
			j.dissolve(c)
			return
		}
		c.whole = true
	}
	j.end(c, c.whyFull())
}

// full says whether no more records are to be expected.
func (j *joiner) full(c *Collective) bool {
	comm := c.comm
	need := comm.known - comm.lost
	switch {
	case comm.sparse:
		return j.silent == 0 && c.passed >= need
	case comm.settled:
	case comm.size > 0:
		need = max(j.ranksOf(comm.size), comm.known) - comm.lost // the log may name fewer ranks than it has
	case j.silent > 0:
		return false
	}
	return c.ranks+c.passed >= need
}

// whyFull is the outcome of a collective that is full.
func (c *Collective) whyFull() Outcome {
	switch {
	case c.comm.sparse:
	case c.passed > 0 && c.ranks < c.comm.known-c.comm.lost:
		return Gap
	case c.comm.lost > 0:
		return Gone
	}
	return Complete
}

// text is one string for equal bytes.
func (j *joiner) text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return j.names.Text(b)
}

// maxHows bounds them; they may be made again.
const maxHows = 256

// howOf finds the how that the record has in common with others; mostly it is the how of the record before.
func (j *joiner) howOf(o *op.Op) *how {
	h := j.lastHow
	if h != nil && h.timing == string(o.Timing) && h.time == o.Time && h.global == o.Global && h.waits == o.Waits &&
		h.synthetic == (o.Start == 0) && h.unit == o.ReportedUnit {
		return h
	}
	key := how{
		global: o.Global, waits: o.Waits, synthetic: o.Start == 0, time: o.Time, timing: j.text(o.Timing), unit: o.ReportedUnit,
	}
	h = j.hows[key]
	if h == nil {
		if len(j.hows) >= maxHows {
			clear(j.hows)
		}
		h = &key
		j.hows[key] = h
	}
	j.lastHow = h
	return h
}

// moreOf copies the fields that few records have; nil: this one has none of them. Ids are made of them, so that only the record itself decides whether they are
// there.
func moreOf(r *record) *more {
	o := r.op
	if r.came <= 1 && o.Peer < 0 && o.Source < 0 && o.Channel < 0 && o.Stream < 0 && o.Errors == 0 && o.Retries == 0 && o.Sends == 0 &&
		len(o.Details) == 0 && !o.TimedOut && o.IDs == nil {
		return nil
	}
	m := &more{
		came: r.came, peer: o.Peer, sourceRank: o.Source, destRank: o.Destination, channel: o.Channel, stream: o.Stream, errors: o.Errors, retries: o.Retries,
		timedOut: o.TimedOut, sends: o.Sends, linkBandwidth: o.LinkBandwidth, linkWorst: o.LinkBandwidthWorst,
	}
	if o.IDs != nil {
		m.trace, m.parent, _ = spans.Carried(r.comm.run.id, o.IDs)
		if m.traceText = spans.Text(o.IDs[logids.Trace]); m.traceText == "" {
			m.traceText = spans.Text(o.IDs[logids.TraceParent])
		}
	}
	if len(o.Details) > 0 {
		m.details = make([]detail, len(o.Details))
		for i := range o.Details {
			d := &o.Details[i]
			m.details[i] = detail{
				name: d.Name, direction: d.Direction, operation: spans.Name(d.Operation), start: d.Start, end: d.End, duration: d.Duration, size: d.Size,
				channel: d.Channel, peer: d.Peer, step: d.Step, parent: d.Under,
			}
		}
	}
	return m
}

func (m *more) bytes() int64 {
	return moreBytes + int64(len(m.details))*detailBytes + int64(m.came)*moreCameBytes
}
