package collectives

import (
	"cmp"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// For a log with neither communicator nor number (VCCL's schema), a rank's n-th record of an operation is taken for the same operation as the n-th records of
// all ranks. This is right until a line is lost, records are sampled rank by rank or a second process group writes into the same files. So size and time must
// confirm the count: joined records agree in both. Contradicting records are loose: they wait until all ranks have gone on, and are joined by operation, size
// and time. Records without a match leave alone. Partly joined collectives allow no conclusions.

// clockBound is how far the clocks of a job's hosts may be apart, ns: the accuracy of NTP between hosts, and the digits of times in logs.
const clockBound = 10_000_000

// maxCluster bounds a row of collectives too dense to be separated by time, ns.
const maxCluster = 100 * clockBound

// releaseMost bounds the collectives released with one record: they go into the current batch.
const releaseMost = 256

// shaky is the number of consecutive complete collectives before lateness is judged again after an incomplete one.
const shaky = 16

// joinKind is how the records of a collective were matched.
type joinKind uint8

const (
	byNumber joinKind = iota // the log has the number
	byCount                  // n-th with n-th
	byTime                   // by operation, size and time; or the record has no match
)

// extent is the range of the starts and ends of a collective's records, Unix ns, and their longest duration, ns.
type extent struct {
	firstStart, lastStart, firstEnd, lastEnd, longest int64
}

// extentOf returns the extent of a single record.
func extentOf(start, end int64) extent {
	return extent{start, start, end, end, max(end-start, 0)}
}

// union returns the extent of the records of both.
func (s extent) union(o extent) extent {
	return extent{
		min(s.firstStart, o.firstStart), max(s.lastStart, o.lastStart), min(s.firstEnd, o.firstEnd), max(s.lastEnd, o.lastEnd), max(s.longest, o.longest),
	}
}

// canBeOne reports whether records with these starts and ends can be one collective: every rank is present at some common moment, and, for operations where
// each rank waits for the others, they leave together.
func (s extent) canBeOne(kind op.Kind) bool {
	return s.lastStart-s.firstStart <= s.longest+clockBound && s.lastEnd-s.firstEnd <= s.slack(kind)
}

// slack returns how far the ends of the records of one collective may differ, ns: where the ranks leave together, as far as their clocks; else up to a duration
// more.
func (s extent) slack(kind op.Kind) int64 {
	if kind.Symmetric() {
		return clockBound
	}
	return clockBound + s.longest
}

// counted is the state of a communicator whose collectives have no number in the log.
type counted struct {
	loose     []*open // collectives of a single record each, which contradict the count: by end
	progress  []int64 // by rank: the last end, Unix ns
	slowest   int32   // the rank with the least progress …
	slowestOf int     // … among this number of ranks
	horizon   int64   // the progress of slowest, Unix ns: all ranks have come to here
	sweepAt   int64   // the horizon at which to look again at the waiting records
}

// countJoin joins records without a number in the log.
type countJoin struct{ *joiner }

// join puts the n-th record of a rank into the collective of the n-th records, if size and time agree. Otherwise the count has failed, and the records of the
// collective and the new one become loose. At last, collectives that every rank has passed are released.
func (n countJoin) join(in *input, r *record) {
	o, when := r.op, extentOf(r.start, r.end)
	c := r.track.open[o.Seq]
	sizeDiffers := c != nil && o.Size != c.size && o.Kind != op.AllToAll // in an AllToAll each rank has a size of its own
	refuted := c != nil && (sizeDiffers || !c.when.union(when).canBeOne(c.kind))
	if refuted {
		n.dissolve(c)
		c = nil
	}
	if c == nil {
		c = n.newOpen(r)
		c.join, c.when = byCount, when
	}
	n.addRecord(in, c, r)
	c.when = c.when.union(when)
	r.comm.advance(r.rank, when.lastEnd)
	if refuted { // after addRecord, which records the rank and its input
		n.dissolve(c)
	} else {
		n.joiningOf(c.join).settle(c)
	}
	n.sweep(r.comm)
}

// settle ends a collective if it is full. If its ranks form several rings, the records are of several process groups, and become loose instead.
func (n countJoin) settle(c *open) {
	if c.join == byTime || !n.full(c) {
		return
	}
	if n.hasSeveralRings(c.parts) {
		n.dissolve(c)
		return
	}
	c.whole = true
	n.end(c, c.whyFull())
}

// advance records that the log of a rank has come to end, Unix ns, and moves the horizon, the progress of the slowest rank.
func (comm *communicator) advance(rank int32, end int64) {
	for int(rank) >= len(comm.progress) {
		comm.progress = append(comm.progress, math.MinInt64)
	}
	comm.progress[rank] = max(comm.progress[rank], end)
	// The horizon only moves when the slowest rank does, or when ranks come or are given up.
	if n := comm.known - comm.lost; rank == comm.slowest || n != comm.slowestOf {
		comm.slowestOf = n
		comm.horizon = math.MaxInt64
		for rank, reached := range comm.progress {
			if comm.seen.has(int32(rank)) && !comm.gone.has(int32(rank)) && reached < comm.horizon {
				comm.slowest, comm.horizon = int32(rank), reached
			}
		}
	}
}

// sweep releases the collectives that every rank has passed. While an input is silent, unknown ranks may still have records, and nothing is released.
func (n countJoin) sweep(comm *communicator) {
	ranksUnknown := n.silent > 0 && !comm.settled
	if comm.open == 0 || comm.horizon < comm.sweepAt || ranksUnknown {
		return
	}
	comm.sweepAt = comm.horizon
	if n.release(comm, comm.horizon, Gap) < releaseMost { // else more are ready: they leave with the next record
		comm.sweepAt += clockBound
	}
}

// dissolve makes the records of a wrongly joined collective loose: each becomes a collective of its own, which waits for a match by time.
func (n countJoin) dissolve(c *open) {
	n.withdraw(c)
	last := len(c.parts) - 1
	for i := range c.parts[:last] {
		s := n.opens.get()
		s.comm, s.run, s.track, s.kind, s.name, s.seq, s.ordinal, s.seqOfAll = c.comm, c.run, c.track, c.kind, c.name, c.seq, c.ordinal, c.seqOfAll
		s.algorithm, s.protocol, s.datatype, s.nodes, s.channels = c.algorithm, c.protocol, c.datatype, c.nodes, c.channels
		s.size, s.total = c.size, c.total
		s.opened, s.last, s.known, s.logged = c.opened, c.last, c.known, c.parts[i].end
		s.parts = append(s.parts[:0], c.parts[i])
		n.loosen(s)
	}
	// c itself is the last of them.
	c.parts[0] = c.parts[last]
	clear(c.parts[1:])
	c.parts = c.parts[:1]
	clear(c.has)
	c.has = c.has[:0]
	n.loosen(c)
}

// loosen makes a collective with one record, in no list, a loose collective that waits.
func (n countJoin) loosen(c *open) {
	p := &c.parts[0]
	c.has.set(p.rank)
	c.ranks, c.join, c.joined, c.errs, c.retries = 1, byTime, false, 0, 0
	c.bytes = collectiveBytes + partBytes + cameBytes
	if m := p.more; m != nil {
		c.errs, c.retries = m.errors, m.retries
		c.bytes += m.bytes()
	}
	c.when = extentOf(p.start, p.end)
	n.enlist(c)
	at, _ := slices.BinarySearchFunc(c.comm.loose, c, compareLoose)
	c.comm.loose = slices.Insert(c.comm.loose, at, c)
}

// compareLoose orders loose records by end, independent of the reading order.
func compareLoose(x, y *open) int {
	p, q := &x.parts[0], &y.parts[0]
	return cmp.Or(cmp.Compare(p.end, q.end), cmp.Compare(p.rank, q.rank), cmp.Compare(p.start, q.start), cmp.Compare(x.seq, y.seq))
}

// looseKey has the fields common to the loose records of a collective.
type looseKey struct {
	kind op.Kind
	name string
	size int64
}

// release ends the collectives that no further record can join once every rank has come to horizon, Unix ns; at most about releaseMost. why is the outcome of
// collectives that lack ranks. It returns the number of collectives ended.
func (n countJoin) release(comm *communicator, horizon int64, why Outcome) (left int) {
	n.dissolveUpTo(comm, horizon)
	if len(comm.loose) == 0 {
		return 0
	}
	done := comm.clusters(horizon)
	for _, list := range done[:min(len(done), releaseMost)] {
		left += n.match(comm, list, why)
	}
	comm.loose = slices.DeleteFunc(comm.loose, func(c *open) bool { return !c.waiting })
	return left
}

// dissolveUpTo dissolves the open collectives that ended more than a slack before horizon, Unix ns, to which every rank has come: further records would have
// come by now.
func (n countJoin) dissolveUpTo(comm *communicator, horizon int64) {
	tracks := comm.tracks[:]
	for _, t := range comm.others {
		tracks = append(tracks, t)
	}
	for _, t := range tracks {
		for i := 0; t != nil && i < len(t.seqs); {
			if c := t.open[t.seqs[i]]; c.when.lastEnd < horizon-c.when.slack(c.kind) {
				n.dissolve(c) // dissolve removes c from seqs
			} else {
				i++
			}
		}
	}
}

// clusters groups the loose records of the same operation and size by end: each ends at most a slack after the one before, and at most maxCluster after the
// first. It returns the groups that can get no more records once every rank has come to horizon, in the order of their first ends.
func (comm *communicator) clusters(horizon int64) (done [][]*open) {
	growing := make(map[looseKey][]*open)
	end := func(list []*open) { // puts a group into done, unless more records can come
		// A record that is not loose yet is in a waiting collective, whose last end is at most a slack before horizon (dissolveUpTo). The record's own end is
		// at most a slack before that end, and the group takes records up to a slack behind its last one: three slacks in all.
		if last := list[len(list)-1].when; last.lastEnd < horizon-3*last.slack(list[0].kind) {
			done = append(done, list)
		}
	}
	for _, c := range comm.loose {
		key := looseKey{c.kind, c.name, c.size}
		if c.kind == op.AllToAll {
			key.size = op.Unknown // each rank has a size of its own
		}
		list := growing[key]
		if n := len(list); n > 0 {
			last := list[n-1].when.union(c.when)
			apart := c.when.lastEnd-list[n-1].when.lastEnd > last.slack(c.kind)
			tooLong := c.when.lastEnd-list[0].when.lastEnd > maxCluster
			if apart || tooLong {
				end(list)
				list = nil
			}
		}
		growing[key] = append(list, c)
	}
	for _, list := range growing {
		end(list)
	}
	slices.SortFunc(done, func(x, y []*open) int {
		return cmp.Or(compareLoose(x[0], y[0]), cmp.Compare(x[0].kind, y[0].kind), cmp.Compare(x[0].name, y[0].name))
	})
	return done
}

// match joins the loose records of a group (see clusters) to collectives, and ends them. First process groups are separated (ringsOf). In each ring consecutive
// collectives are separated by counting, if several ranks have equally many records and their n-th records coincide (countPerRank); otherwise each record
// leaves alone. why is the outcome of incomplete collectives and of records alone. It returns the number of collectives ended.
func (n countJoin) match(comm *communicator, list []*open, why Outcome) (left int) {
	for _, c := range list {
		n.withdraw(c)
	}
	for _, ring := range ringsOf(list) {
		records := ring.of
		slices.SortStableFunc(records, func(x, y *open) int { return cmp.Compare(x.parts[0].rank, y.parts[0].rank) })
		each, even := countPerRank(records)
		if !even { // no way to tell which records belong together
			for _, c := range records {
				n.end(c, why)
			}
			left += len(records)
			continue
		}
		for i := range each { // the i-th collective: the i-th record of each rank
			c := records[i]
			for k := i + each; k < len(records); k += each {
				c.absorb(records[k])
				records[k].reset()
				n.opens.put(records[k])
			}
			c.joined = true
			c.whole = ring.closed || c.ranks >= comm.known-comm.lost
			if c.whole {
				n.end(c, Complete)
			} else {
				n.end(c, why)
			}
		}
		left += each
	}
	return left
}

// countPerRank returns how many records each rank has in list, sorted by rank: as many consecutive collectives. even: several ranks have equally many records,
// and their n-th records coincide in time. Without even, each is meaningless.
func countPerRank(list []*open) (each int, even bool) {
	ranks := 1
	for i := range list[1:] {
		if list[i].parts[0].rank != list[i+1].parts[0].rank {
			ranks++
		}
	}
	each = len(list) / ranks
	if each*ranks != len(list) {
		return each, false
	}
	for i, c := range list { // the i-th of rank k is at k·each + i
		if c.parts[0].rank != list[i/each*each].parts[0].rank {
			return each, false
		}
	}
	for i := range each { // the i-th records of all ranks
		when := list[i].when
		for k := i; k < len(list); k += each {
			when = when.union(list[k].when)
		}
		if !when.canBeOne(list[0].kind) {
			return each, false
		}
	}
	return each, ranks > 1
}

// absorb adds the record of another loose collective, of another rank.
func (c *open) absorb(o *open) {
	c.parts = append(c.parts, o.parts...)
	c.has.set(o.parts[0].rank)
	c.ranks++
	c.errs, c.retries, c.channels = c.errs+o.errs, c.retries+o.retries, max(c.channels, o.channels)
	c.when = c.when.union(o.when)
	c.known, c.logged = c.known && o.known, max(c.logged, o.logged)
}

// ring is the set of a process group's records, as far as the destinations tell. closed: each rank sends to the next, in a circle.
type ring struct {
	of     []*open
	closed bool
}

// ringsOf separates process groups that run the same operation at the same time: the record of a rank names the next rank of its ring as destination. If one
// record has no destination, or two contradict, the result is a single ring, not closed. Otherwise the first ring has the records outside of circles, if any.
func ringsOf(list []*open) []ring {
	next := make(map[int32]int32, len(list)) // the destination of each rank …
	from := make(map[int32]int32, len(list)) // … and the other way round
	for _, c := range list {
		to, rank := destination(&c.parts[0]), c.parts[0].rank
		earlierTo, sends := next[rank]
		source, receives := from[to]
		if to < 0 || sends && earlierTo != to || receives && source != rank { // not known, two destinations, or two sources
			return []ring{{of: list}}
		}
		next[rank], from[to] = to, rank
	}
	// Each rank sends to one rank and receives from one: circles, and lines with missing ends.
	ringOf := make(map[int32]int, len(next)) // index in out, by rank
	out := []ring{{}}                        // the first has the records outside of circles
	for _, c := range list {
		rank := c.parts[0].rank
		i, ok := ringOf[rank]
		if !ok && circular(next, rank) {
			i = len(out)
			out = append(out, ring{closed: true})
			for at := rank; ; {
				ringOf[at] = i
				at = next[at]
				if at == rank {
					break
				}
			}
		}
		out[i].of = append(out[i].of, c)
	}
	if len(out[0].of) == 0 {
		out = out[1:]
	}
	return out
}

// circular reports whether following the destinations from a rank leads back to the rank, over at least one other rank.
func circular(next map[int32]int32, rank int32) bool {
	at := next[rank]
	for ok := true; ok && at != rank; {
		at, ok = next[at]
		if !ok {
			return false
		}
	}
	return next[rank] != rank
}

// hasSeveralRings reports whether the ranks of a collective form more than one closed ring, by the destinations in their records: the ring of the first rank
// closes before every rank was met.
func (n countJoin) hasSeveralRings(parts []part) bool {
	next := n.next[:0] // by rank: the destination
	for i := range parts {
		for rank := int(parts[i].rank); rank >= len(next); {
			next = append(next, op.Unknown)
		}
		next[parts[i].rank] = destination(&parts[i])
	}
	n.next = next
	// Around the ring of the first rank.
	first := parts[0].rank
	at := first
	for k := 1; k <= len(parts); k++ {
		at = next[at]
		if at < 0 || int(at) >= len(next) { // no ring: the destination is unknown, or has no record
			return false
		}
		if at == first {
			return k > 1 && k < len(parts) // 1: the rank sends to itself, which is no ring
		}
	}
	return false
}

// destination returns the rank to which the record's rank sends; op.Unknown: not logged, or the record is of a transfer from another rank.
func destination(p *part) int32 {
	if p.more == nil || p.more.sourceRank != p.rank {
		return op.Unknown
	}
	return p.more.destRank
}

// giveUp ends a collective that waits for too long, together with other waiting records of the communicator that ended by then. After a timeout, ranks whose
// logs have not come to the end of c are given up.
func (n countJoin) giveUp(c *open, why Outcome) {
	comm, upTo := c.comm, c.when.lastEnd
	switch why {
	case TimedOut:
		comm.settled = true // unseen ranks are not waited for any more
		for rank := range comm.progress {
			if r := int32(rank); comm.seen.has(r) && comm.progress[rank] < upTo {
				comm.giveUpRank(r)
			}
		}
	case Evicted:
		comm.settled = comm.settled || n.silent == 0 // likewise, unless a silent input may have them
	case Complete, Gap, Gone, Ended, Late, Outcomes:
	}
	// Release as if every rank had come to four slacks after the end of c: after one slack c becomes loose (dissolveUpTo), after three its records are matched
	// (clusters). If c is still the oldest, in a longer row of records, each collective of the communicator ends.
	slack := c.when.slack(c.kind)
	for _, horizon := range [...]int64{upTo + 4*slack, math.MaxInt64} {
		for n.oldest == c && n.release(comm, horizon, why) > 0 { // releaseMost at a time
		}
	}
}
