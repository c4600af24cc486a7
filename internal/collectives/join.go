package collectives

import (
	"slices"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// joining finds the records of a collective: by the number in the log (numberJoin), or by counting (countJoin).
type joining interface {
	// join puts a record into its collective, and ends the collectives that are then complete.
	join(in *input, r *record)
	// settle ends a full collective.
	settle(c *open)
	// giveUp ends an incomplete collective, and the records waiting with it.
	giveUp(c *open, why Outcome)
}

// by returns the joining of collectives that are joined in the given way.
func (j *joiner) by(way join) joining {
	if way == byNumber {
		return numberJoin{j}
	}
	return countJoin{j}
}

// numberJoin joins records with a number in the log.
type numberJoin struct{ *joiner }

// join puts a record into the open collective of its number, and makes one for the first record. If the collective has left already, the record leaves alone,
// late, into the trace of the collective.
func (n numberJoin) join(in *input, r *record) {
	c := r.track.open[r.op.Seq]
	if c == nil {
		if left, ok := n.departures.late(r.track.key, r.op.Seq, r.rank); ok {
			c = n.single(r)
			c.joined, c.unsent, c.rootID = true, !left.sent, left.byID
			n.end(c, Late)
			return
		}
		c = n.open(r)
	}
	first := n.take(in, c, r)
	n.goOn(r.track, c, r.rank, first)
	n.by(c.join).settle(c)
}

func (n numberJoin) settle(c *open) {
	if n.full(c) {
		n.end(c, c.whyFull())
	}
}

func (n numberJoin) giveUp(c *open, why Outcome) { n.end(c, why) }

// goOn notes that a rank has come to collective c, and has passed all open collectives before c in the sequence: their records do not come any more, because
// ranks log in the order of their operations. Open collectives that become full in this way end. In a sparse communicator, with a record per link, the rank has
// also passed the collective it comes from: all its records have come. first: the rank's first record of c.
func (n numberJoin) goOn(t *track, c *open, rank int32, first bool) {
	sparse, seq := c.comm.sparse, c.seq
	if more := int(rank) + 1 - len(t.last); more > 0 {
		t.last = append(t.last, make([]lastSeq, more)...)
		n.remember(c.comm, lastSeqBytes*more)
	}
	before := t.last[rank]
	if before.seen && seq <= before.seq { // the rank was here, or farther
		if first && !sparse && c.passed > 0 && seq < before.seq {
			c.passed-- // the record comes after all
		}
		return
	}
	t.last[rank] = lastSeq{seq, true}
	next := before.seq + 1 // the first one passed now
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

// take adds a record to a waiting or new collective, which from now on waits as the newest. first: the record is the first of its rank.
func (j *joiner) take(in *input, c *open, r *record) (first bool) {
	before, words := c.bytes, len(c.has)
	first = c.has.set(r.rank)
	if first {
		c.ranks++
	}
	c.bytes += int64(len(c.has)-words) * 8
	c.put(r)
	j.see(in, r)
	j.wait(c, r.at, c.bytes-before)
	j.startInput(in)
	return first
}

// single makes a collective of a single record.
func (j *joiner) single(r *record) *open {
	c := j.begin(r)
	c.put(r)
	return c
}

// open makes a joined collective for its first record, which take adds. Its number moves the top of its sequence: skipped numbers are a gap, and a number below
// the top has been passed by ranks already.
func (j *joiner) open(r *record) *open {
	c, t := j.begin(r), r.track
	comm, seq := r.comm, r.op.Seq
	c.joined, c.track = true, t
	if n := int(min(max(comm.size, int32(comm.known)), usualParts)); cap(c.parts) < n { // expected records
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

// passedBy counts the ranks that went on beyond seq before its first record, of rank first, came. If first has gone on too, numbers restart, as in a restarted
// job, and no rank has passed seq.
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

// begin makes a collective without records, with the fields that its first record shares with the rest.
func (j *joiner) begin(r *record) *open {
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
	c.known = true // until put adds a record that is not
	return c
}

// put adds a record to the parts of a collective, and its values to the collective's: the largest Total and Channels, the sums of errors and retries. Records
// that disagree about operation or size make a joined collective a mismatch.
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
