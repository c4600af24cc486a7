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

func (j *joiner) by(way join) joining {
	if way == byNumber {
		return numberJoin{j}
	}
	return countJoin{j}
}

// numberJoin joins records with a number in the log.
type numberJoin struct{ *joiner }

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

// goOn notes that a rank has gone on to a collective: skipped records do not come any more, because ranks log in the order of their operations. For ranks with
// a record per link, all records of a collective have come once the rank goes on. first: the rank's first record of the collective.
func (n numberJoin) goOn(t *track, c *open, rank int32, first bool) {
	sparse, seq := c.comm.sparse, c.seq
	if more := int(rank) + 1 - len(t.last); more > 0 {
		t.last = append(t.last, make([]lastSeq, more)...)
		n.remember(c.comm, lastSeqBytes*more)
	}
	before := t.last[rank]
	if before.seen && seq <= before.seq {
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
			if n.settle(o); !o.waiting { // nor is o in seqs
				continue
			}
		}
		i++
	}
}

// take adds a record to a waiting or new collective. first: the first of its rank.
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

// open makes a collective for its first record, which is added later.
func (j *joiner) open(r *record) *open {
	c, t := j.begin(r), r.track
	comm, seq := r.comm, r.op.Seq
	c.joined, c.track = true, t
	if n := int(min(max(comm.size, int32(comm.known)), usualParts)); cap(c.parts) < n {
		c.parts = make([]part, 0, n)
	}
	if t.any && seq > t.top+1 && !comm.sparse && !c.ordinal && !t.again && !r.op.Again {
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

// passedBy counts the ranks that went on before seq began. If its first rank has gone on too, numbers restart, as in a restarted job.
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

// begin makes a collective from the common fields of its first record.
func (j *joiner) begin(r *record) *open {
	c := j.opens.get()
	o := r.op
	c.comm, c.run = r.comm, r.comm.run
	c.kind, c.seq, c.ordinal = o.Kind, o.Seq, o.Ordinal
	c.name, c.algorithm = j.names.Text(o.Name), j.names.Text(o.Algorithm)
	c.protocol, c.datatype = j.names.Text(o.Protocol), j.names.Text(o.Datatype)
	c.nodes, c.channels = o.Nodes, o.Channels
	c.size, c.total = o.Size, o.Total
	c.proxy, c.hasParent, c.parentKind, c.parentSeq = o.Proxy, o.HasParent && o.Rank >= 0, o.ParentKind, o.ParentSeq
	c.opened, c.last = r.at, r.at
	c.known = true
	return c
}

// put adds a record to a collective.
func (c *open) put(r *record) {
	o := r.op
	// AllToAll has a size per rank, and the size of a send over a link is not the message size.
	if o.Size >= 0 && c.size >= 0 && o.Size != c.size && o.Kind != op.AllToAll && o.Sends == 0 || o.Kind != c.kind {
		c.mismatch = c.joined
	}
	c.total = max(c.total, o.Total)
	c.channels = max(c.channels, o.Channels)
	c.errs += o.Errors
	c.retries += o.Retries
	c.known = c.known && r.known
	c.logged = max(c.logged, o.End)
	c.parts = append(c.parts, r.part)
	c.bytes += cameBytes
	if len(c.parts) > usualParts {
		c.bytes += partBytes
	}
	if r.more != nil {
		c.bytes += r.more.bytes()
	}
}
