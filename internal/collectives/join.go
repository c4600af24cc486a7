package collectives

import (
	"slices"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// joining finds the records of a collective: by the number in the log (numberJoin), or by counting (countJoin).
type joining interface {
	// join puts a record into its collective, and ends the collectives that are then complete.
	join(in *input, r *record)
	// settle ends the collective if it is full.
	settle(c *open)
	// giveUp ends an incomplete collective, with the outcome why, and the records waiting with it.
	giveUp(c *open, why Outcome)
}

// joiningOf returns the joining for collectives that are joined in the given way.
func (j *joiner) joiningOf(way joinKind) joining {
	if way == byNumber {
		return numberJoin{j}
	}
	return countJoin{j}
}

// numberJoin joins records with a number in the log.
type numberJoin struct{ *joiner }

// join puts a record into the open collective of its number, made for the first record. If the collective has left already, the record leaves alone, late, into
// the trace of the collective.
func (n numberJoin) join(in *input, r *record) {
	c := r.track.open[r.op.Seq]
	if c == nil {
		if left, ok := n.departures.lateRecordOf(r.track.key, r.op.Seq, r.rank); ok {
			c = n.newSingle(r)
			c.joined, c.unsent, c.rootID = true, !left.sent, left.byID
			n.end(c, Late)
			return
		}
		c = n.newOpen(r)
	}
	first := n.addRecord(in, c, r)
	n.advanceRank(r.track, c, r.rank, first)
	n.joiningOf(c.join).settle(c)
}

// settle ends the collective if it is full.
func (n numberJoin) settle(c *open) {
	if n.full(c) {
		n.end(c, c.whyFull())
	}
}

// giveUp ends an incomplete collective, with the outcome why.
func (n numberJoin) giveUp(c *open, why Outcome) { n.end(c, why) }

// advanceRank records that a rank has come to collective c and so has passed the open collectives before c in the sequence: ranks log in the order of their
// operations, so its records of those cannot come any more. Open collectives that become full in this way end.
//
// In a sparse communicator, with a record per link, the rank has also passed the collective it comes from. first: the record is the rank's first in c.
func (n numberJoin) advanceRank(t *track, c *open, rank int32, first bool) {
	sparse, seq := c.comm.sparse, c.seq
	if more := int(rank) + 1 - len(t.last); more > 0 {
		t.last = append(t.last, make([]lastSeq, more)...)
		n.countMemory(c.comm, lastSeqBytes*more)
	}
	before := t.last[rank]
	if before.seen && seq <= before.seq { // the rank was here, or farther
		if first && !sparse && c.passed > 0 && seq < before.seq {
			c.passed-- // the record comes after all
		}
		return
	}
	t.last[rank] = lastSeq{seq, true}
	next := before.seq + 1 // the first number passed now
	if sparse {
		next = before.seq
	}
	from := 0 // index in seqs
	if before.seen {
		if seq == next { // mostly: nothing is passed
			return
		}
		from, _ = slices.BinarySearch(t.seqs, next)
	}
	for i := from; i < len(t.seqs) && t.seqs[i] < seq; {
		o := t.open[t.seqs[i]]
		if sparse || !o.has.has(rank) {
			o.passed++
			n.settle(o)
			if !o.waiting { // o has ended, and is no longer in seqs: the next one has its index
				continue
			}
		}
		i++
	}
}

// addRecord adds a record to an open collective, which becomes the newest in the list of waiting collectives. first: the record is the first of its rank.
func (j *joiner) addRecord(in *input, c *open, r *record) (first bool) {
	before, words := c.bytes, len(c.has)
	first = c.has.set(r.rank)
	if first {
		c.ranks++
	}
	c.bytes += int64(len(c.has)-words) * 8
	c.put(r)
	j.noteRank(in, r)
	j.markNewest(c, r.at, c.bytes-before)
	j.startInput(in)
	return first
}

// newSingle makes a collective of a single record.
func (j *joiner) newSingle(r *record) *open {
	c := j.newEmpty(r)
	c.put(r)
	return c
}

// newOpen makes a joined collective for its first record, which addRecord adds. The number of the collective moves the top of its sequence: skipped numbers are
// a gap, and a number below the top has been passed by some ranks already.
func (j *joiner) newOpen(r *record) *open {
	c, t := j.newEmpty(r), r.track
	comm, seq := r.comm, r.op.Seq
	c.joined, c.track = true, t
	if n := int(min(max(comm.size, int32(comm.known)), usualParts)); cap(c.parts) < n { // the expected number of records
		c.parts = make([]part, 0, n)
	}
	complete := !comm.sparse && !t.again && !r.op.Again   // all numbers are to be in the logs (see op.Op.Again)
	if t.any && seq > t.top+1 && complete && !c.ordinal { // a lost line takes no counted number
		c.gap = seq - t.top - 1
	}
	if t.any && seq < t.top {
		c.passed = t.passedBy(r.rank, seq)
	}
	if seq >= t.top {
		t.again = r.op.Again
	}
	t.top, t.any = max(t.top, seq), true
	c.bytes = collectiveBytes + int64(cap(c.parts))*partBytes
	return c
}

// passedBy returns how many ranks went on beyond seq before its first record, of rank first, came. If first has gone on too, numbers restart, as in a restarted
// job, and no rank has passed seq: 0.
func (t *track) passedBy(first int32, seq uint64) (n int) {
	if t.isBeyond(first, seq) {
		return 0
	}
	for rank := range t.last {
		if t.isBeyond(int32(rank), seq) {
			n++
		}
	}
	return n
}

// newEmpty makes a collective without records, with the fields that its first record shares with the others.
func (j *joiner) newEmpty(r *record) *open {
	c := j.opens.get()
	o := r.op
	c.comm, c.run = r.comm, r.comm.run
	c.kind, c.seq, c.ordinal, c.seqOfAll = o.Kind, o.Seq, o.Ordinal, o.SeqOfAll && r.track != nil
	c.name, c.algorithm = j.names.Text(o.Name), j.names.Text(o.Algorithm)
	c.protocol, c.datatype = j.names.Text(o.Protocol), j.names.Text(o.Datatype)
	c.nodes, c.channels = o.Nodes, o.Channels
	c.size, c.total = o.Size, o.Total
	c.proxy, c.hasParent, c.parentKind, c.parentSeq = o.Proxy, o.HasParent && o.Rank >= 0, o.ParentKind, o.ParentSeq
	c.opened, c.last = r.at, r.at
	c.known = true // until put adds a record that is not known
	return c
}

// put adds a record to the parts of a collective, and its values to those of the collective: the largest Total and Channels, the sums of errors and retries.
// Records that disagree about operation or size make a joined collective a mismatch.
func (c *open) put(r *record) {
	o := r.op
	bothSizes := o.Size >= 0 && c.size >= 0
	comparable := o.Kind != op.AllToAll && o.Sends == 0 // AllToAll has a size per rank, and the size of a send over a link is not the message size
	if bothSizes && comparable && o.Size != c.size || o.Kind != c.kind {
		c.mismatch = c.joined
	}
	c.total = max(c.total, o.Total)
	c.channels = max(c.channels, o.Channels)
	c.errs += o.Errors
	c.retries += o.Retries
	c.known = c.known && r.known
	c.logged = max(c.logged, o.End)
	room := cap(c.parts)
	c.parts = append(c.parts, r.part)
	c.bytes += cameBytes + int64(cap(c.parts)-room)*partBytes
	if r.more != nil {
		c.bytes += r.more.bytes()
	}
}
