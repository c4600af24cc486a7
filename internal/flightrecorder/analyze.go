package flightrecorder

import (
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Group is the analysis of a process group.
type Group struct {
	Name, Desc string // of process_group: "0", "default_pg"
	// Ranks are the global ranks of the group, ascending: those of pg_config. Without ranks there (gloo), the ranks whose dump has the group, and for default_pg
	// all up to the highest rank with a dump.
	Ranks []int32
	// Members are of all Ranks, in their order.
	Members []Member
	// Missing are the ranks without a dump: frozen, killed, not asked for a dump, or ended by their launcher after the failure of a rank with a dump.
	Missing []int32
	// Behind are the ranks with a dump that lacks the last collective enqueued by another rank: they did not return from enqueueing it. If Missing is not
	// empty, the missing ranks are candidates as well, and may be further behind.
	Behind []int32
	// Elsewhere are the ranks of Behind that wait in another group: they enqueued its Stuck, which others lack. A rank of Behind outside of Elsewhere is
	// further up the chain; if none is, ranks wait for each other in groups called in different orders.
	Elsewhere []int32
	// Stateless says that the group's operations have no recorded state, as with gloo.
	Stateless bool
	// Stuck is the first collective that a rank enqueued and did not complete, or that a rank with a dump lacks; nil: none. If Stateless, Stuck is the first that
	// not all ranks enqueued or that differs, and with missing dumps the last one, which may be complete: a rank that failed alone dumps too, and waits for
	// nobody.
	Stuck *Collective
	// Latest is the last collective enqueued by any rank; nil: none. Collective.LastRank is the rank that enqueued last.
	Latest *Collective
	// Mismatch is the first operation with a type, sizes or data types that differ between ranks; nil: none.
	Mismatch *Collective
	// WentOn says that all ranks did the same again after Mismatch, and completed the operation (as far as states are recorded).
	WentOn bool
	// Odd are the first operations, at most mostOdd, that ranks lack or that differ between ranks, even in nothing but their state.
	Odd []*Collective
}

// mostOdd bounds Group.Odd, for memory.
const mostOdd = 64

// Member is a rank of a group.
type Member struct {
	Rank    int32 // global
	HasDump bool
	// Last is the highest recorded collective_seq_id of the rank; 0: none.
	Last int64
	// Enqueued, Started and Completed are pg_status's numbers of the last operation; -1: unknown. With gloo Completed also counts time-outs, and all three
	// count more than collective_seq_id does.
	Enqueued, Started, Completed int64
}

// What is the kind of a difference between operations.
type What uint8

// The kinds of differences, as in torch/distributed/flight_recorder/components/types.py (MatchState).
const (
	Same What = iota
	Type
	Sizes
	Dtypes
	State // one completed, another started or scheduled: not an error
)

func (w What) String() string { return [...]string{"same", "type", "sizes", "dtypes", "state"}[w] }

// Difference is a rank with an operation other than Collective.Reference's. Either side may be wrong. Of an all-to-all in which the ranks together receive
// other than they send, the wrong rank is unknown, and Rank is the Reference itself.
type Difference struct {
	Rank  int32
	What  What
	Entry Operation
}

// Operation is a rank's record of an operation. The slices are shared.
type Operation struct {
	Name                      string // profiling_name: nccl:all_reduce
	InputSizes, OutputSizes   [][]int64
	InputDtypes, OutputDtypes []Text
	State                     string // scheduled, started, completed
}

// Collective is an operation of a group: the ranks' records under one number.
type Collective struct {
	Seq int64 // collective_seq_id; of sends and receives p2p_seq_id
	P2P bool
	Operation
	Reference int32 // the first of Enqueued: source of Operation; the others are compared with it
	// Enqueued, Started and Completed are the ranks with a record, by state: a rank of Completed is in Started and Enqueued too.
	Enqueued, Started, Completed []int32
	// Lacking are the ranks with a dump but without a record.
	Lacking []int32
	// Unknown are the ranks without a dump, or with a dump that begins later.
	Unknown   []int32
	Differ    []Difference
	TimeoutMS int64 // of Reference
	// First and Last are the first and the last time of enqueueing, Unix ns of the hosts' clocks, and LastRank is the last rank.
	First, Last int64
	LastRank    int32
}

// Analyze compares the dumps of a job's ranks. Analyze reads one dump at a time, so the dumps may share memory (Reader.Read). Dumps without a rank are skipped,
// and so is a second dump of a rank. Groups come in the order of their ranks and names.
func Analyze(dumps iter.Seq[*Dump]) []Group {
	a := analysis{groups: map[string]*group{}, dumps: map[int32]bool{}, sigs: map[string]uint32{}, match: map[[3]uint32]What{}}
	for d := range dumps {
		if _, again := a.dumps[d.Rank]; d.Rank >= 0 && !again {
			a.add(d)
		}
	}
	return a.finish()
}

// analysis has what the dumps until now say. Signatures are numbered, so that each is kept, and each pair compared, once.
type analysis struct {
	groups map[string]*group // by name, description and ranks
	dumps  map[int32]bool    // by global rank; true: the first entries of the dump were dropped
	all    []signature
	sigs   map[string]uint32  // index in all, by the signature's bytes
	key    []byte             // scratch: the key of a map
	match  map[[3]uint32]What // results of differ, by two signatures and the number of ranks
	one    Collective         // current collective, with reused lists
}

// group is a process group, with the entries of the dumps until now.
type group struct {
	name, desc string
	ranks      []int32           // nil: pg_config does not say
	gloo       bool              // no entry is another backend's
	members    map[int32]*member // by global rank
}

// member is a rank of a group with a dump, and its entries.
type member struct {
	Member
	entries [2][]record // collectives; sends and receives
	dropped bool        // the dump's first entries were dropped
}

// record is an entry of a dump.
type record struct {
	seq     int64  // collective_seq_id, or p2p_seq_id
	created int64  // Unix ns
	sig     uint32 // index in analysis.all
	state   uint8  // scheduled, started or completed
}

const (
	scheduled = iota
	started
	completed
)

var states = [...]string{"scheduled", "started", "completed"}

// add takes over what the analysis needs of a dump: in each of the rank's groups the rank's counters (pg_status) and the rank's entries, as records without
// their shapes. Entries without a group, and ends of batches (endsBatch), are left out.
func (a *analysis) add(d *Dump) {
	a.dumps[d.Rank] = len(d.Entries) > 0 && d.Entries[0].RecordID > 0
	groups := a.groupsOf(d)
	for i := range d.Entries {
		e := &d.Entries[i]
		if len(e.ProcessGroup) == 0 || e.endsBatch(d.Entries[:i]) {
			continue
		}
		g := groups[[2]Text{e.ProcessGroup[0], e.desc()}]
		m := a.member(g, d.Rank)
		if s, ok := d.PGStatus[strconv.FormatInt(int64(e.PGID), 10)]; ok && m.Enqueued < 0 {
			m.Enqueued, m.Started, m.Completed = int64(s.Enqueued), int64(s.Started), int64(s.Completed)
		}
		rec := record{seq: int64(e.Collective), created: int64(e.Created), sig: a.signature(e), state: scheduled}
		switch e.State {
		case "started":
			rec.state = started
		case "completed":
			rec.state = completed
		}
		g.gloo = g.gloo && strings.HasPrefix(string(e.Name), "gloo:")
		list := &m.entries[0]
		if e.IsP2P {
			rec.seq, list = int64(e.P2P), &m.entries[1]
		} else {
			m.Last = max(m.Last, rec.seq)
		}
		if *list == nil {
			*list = make([]record, 0, min(len(d.Entries)-i, 64)) // room at first, 64 at most; more is appended
		}
		*list = append(*list, rec)
	}
}

// groupsOf finds the process groups of a dump, by name and description: those of its entries and of pg_config, which has their ranks. The dump's rank becomes a
// member of each.
func (a *analysis) groupsOf(d *Dump) map[[2]Text]*group {
	names := map[[2]Text]*group{}
	for i := range d.Entries {
		if e := &d.Entries[i]; len(e.ProcessGroup) > 0 {
			names[[2]Text{e.ProcessGroup[0], e.desc()}] = nil
		}
	}
	for name, pg := range d.PGConfig {
		if name != "" {
			names[[2]Text{Text(name), pg.Desc}] = nil
		}
	}
	unnamed, hasUnnamed := d.PGConfig[""] // gloo calls all groups so: with more than one, the group of the ranks is unknown
	for name := range names {
		pg, ok := d.PGConfig[string(name[0])]
		if !ok && hasUnnamed && len(names) == 1 {
			pg = unnamed
		}
		names[name] = a.group(name, pg.Ranks)
		a.member(names[name], d.Rank)
	}
	return names
}

// desc is the description of an entry's group.
func (e *Entry) desc() Text {
	if len(e.ProcessGroup) < 2 {
		return ""
	}
	return e.ProcessGroup[1]
}

// endsBatch says whether an entry is the end of a batch of sends and receives that counts as a collective, as until PyTorch 2.4: other ranks do not have the
// entry.
func (e *Entry) endsBatch(before []Entry) bool {
	if e.IsP2P || !strings.HasSuffix(string(e.Name), "coalesced") || len(before) == 0 {
		return false
	}
	part := &before[len(before)-1]
	return part.IsP2P && part.Collective == e.Collective && part.PGID == e.PGID
}

// group finds or makes the group of a name (with its description) and of ranks: groups made by a split may share a name.
func (a *analysis) group(name [2]Text, ranks Ranks) *group {
	key := append(append(append(append(a.key[:0], name[0]...), 0), name[1]...), 0)
	for _, r := range ranks {
		key = binary.AppendUvarint(key, uint64(r))
	}
	a.key = key
	g := a.groups[string(key)]
	if g == nil {
		g = &group{name: string(name[0]), desc: string(name[1]), gloo: true, members: map[int32]*member{}}
		g.ranks = slices.Compact(slices.Clone(ranks))
		a.groups[string(key)] = g
	}
	return g
}

// member finds or makes the member of a group with a rank whose dump was added.
func (a *analysis) member(g *group, rank int32) *member {
	m := g.members[rank]
	if m == nil {
		m = &member{Member: Member{Rank: rank, HasDump: true, Enqueued: -1, Started: -1, Completed: -1}, dropped: a.dumps[rank]}
		g.members[rank] = m
	}
	return m
}

// signature returns the number of an entry's signature: name, shapes, data types and time-out, without number and state. Equal entries have the same.
func (a *analysis) signature(e *Entry) uint32 {
	key := append(append(a.key[:0], e.Name...), 0)
	for _, sizes := range [2][][]int64{e.InputSizes, e.OutputSizes} {
		key = binary.AppendUvarint(key, uint64(len(sizes)))
		for _, dims := range sizes {
			key = binary.AppendUvarint(key, uint64(len(dims)))
			for _, dim := range dims {
				key = binary.AppendVarint(key, dim)
			}
		}
	}
	for _, dtypes := range [2][]Text{e.InputDtypes, e.OutputDtypes} {
		for _, t := range dtypes {
			key = append(append(key, t...), 0)
		}
		key = append(key, 0)
	}
	key = binary.AppendVarint(key, int64(e.TimeoutMS))
	a.key = key
	n, ok := a.sigs[string(key)]
	if !ok {
		n = uint32(len(a.all))
		a.sigs[string(key)] = n
		a.all = append(a.all, signatureOf(e))
	}
	return n
}

// finish makes the result when all dumps were added: each group gets its ranks and is judged.
func (a *analysis) finish() []Group {
	highest := int32(-1)
	for rank := range a.dumps {
		highest = max(highest, rank)
	}
	var out []Group
	for _, g := range a.groups {
		switch {
		case g.ranks != nil:
		case g.desc == "default_pg": // has all ranks of the job
			for rank := range highest + 1 {
				g.ranks = append(g.ranks, rank)
			}
		default:
			g.ranks = slices.Sorted(maps.Keys(g.members))
		}
		out = append(out, a.judge(g))
	}
	elsewhere(out)
	slices.SortFunc(out, func(x, y Group) int {
		return cmp.Or(slices.Compare(x.Ranks, y.Ranks), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Desc, y.Desc))
	})
	return out
}

// elsewhere sets Group.Elsewhere of each group: the ranks that are behind in the group because they wait in another.
func elsewhere(groups []Group) {
	// A rank waits in a group if it enqueued the stuck operation, has not completed it, and another rank may lack it.
	waiting := map[int32][]int{} // groups by rank
	for i := range groups {
		if c := groups[i].Stuck; c != nil && len(c.Lacking)+len(c.Unknown) > 0 {
			for _, rank := range c.Enqueued {
				if !slices.Contains(c.Completed, rank) {
					waiting[rank] = append(waiting[rank], i)
				}
			}
		}
	}
	for i := range groups {
		g := &groups[i]
		for _, rank := range g.Behind {
			if slices.ContainsFunc(waiting[rank], func(in int) bool { return in != i }) {
				g.Elsewhere = append(g.Elsewhere, rank)
			}
		}
	}
}

// judge finds the faults of a group: ranks without a dump and ranks behind, and operations stuck or different. The records of each member are sorted by number.
func (a *analysis) judge(g *group) Group {
	out := Group{Name: g.name, Desc: g.desc, Ranks: g.ranks, Stateless: g.gloo}
	last := int64(0)
	for _, rank := range g.ranks {
		m := g.members[rank]
		_, has := a.dumps[rank]
		switch {
		case m == nil && has: // the dump does not have the group: the rank never got there
			m = a.member(g, rank)
		case m == nil: // no dump
			out.Members = append(out.Members, Member{Rank: rank, Enqueued: -1, Started: -1, Completed: -1})
			out.Missing = append(out.Missing, rank)
			continue
		}
		for i := range m.entries {
			slices.SortStableFunc(m.entries[i], func(x, y record) int { return cmp.Compare(x.seq, y.seq) })
		}
		out.Members = append(out.Members, m.Member)
		last = max(last, m.Last)
	}
	for _, m := range out.Members {
		if m.HasDump && m.Last < last {
			out.Behind = append(out.Behind, m.Rank)
		}
	}
	for c := range a.collectives(g) {
		a.take(&out, g, c, last)
	}
	for c := range a.messages(g) {
		a.take(&out, g, c, -1)
	}
	return out
}

// take notes an operation in the group if the operation is the first stuck one, the first mismatch, an odd one, or the latest. last is the number of the
// group's last collective. A noted operation is a copy: c is overwritten by the next.
func (a *analysis) take(out *Group, g *group, c *Collective, last int64) {
	wrong := slices.ContainsFunc(c.Differ, func(d Difference) bool { return d.What != State })
	open := len(c.Completed) < len(c.Enqueued) || len(c.Lacking) > 0 // not known to be completed
	if g.gloo {                                                      // has no states: see Group.Stuck
		open = wrong || len(c.Lacking) > 0 || c.Seq == last && len(out.Missing) > 0
	}
	stuck := out.Stuck == nil && !c.P2P && open
	mismatch := out.Mismatch == nil && wrong
	out.WentOn = out.WentOn || out.Mismatch != nil && !wrong && !open && !c.P2P && len(c.Enqueued) == len(g.ranks)
	odd := len(out.Odd) < mostOdd && len(c.Lacking)+len(c.Differ) > 0
	latest := !c.P2P && c.Seq == last
	if !stuck && !mismatch && !odd && !latest {
		return
	}
	c = c.clone()
	if stuck {
		out.Stuck = c
	}
	if mismatch {
		out.Mismatch = c
	}
	if odd {
		out.Odd = append(out.Odd, c)
	}
	if latest {
		out.Latest = c
	}
}

// clone is a copy with lists of its own.
func (c *Collective) clone() *Collective {
	own := *c
	for _, list := range []*[]int32{&own.Enqueued, &own.Started, &own.Completed, &own.Lacking, &own.Unknown} {
		*list = slices.Clone(*list)
	}
	own.Differ = slices.Clone(own.Differ)
	return &own
}

// collectives yields the collectives of a group by number, each in the same memory; records without a number (0 or below) are skipped. The parts of a coalesced
// launch are one collective: the first part that lacks a rank or differs, else the last part.
func (a *analysis) collectives(g *group) iter.Seq[*Collective] {
	return func(yield func(*Collective) bool) {
		at := make([]int, len(g.ranks)) // the next record of each rank
		for {
			seq := int64(-1) // the least number of the next records; below 0: no records are left
			for i, rank := range g.ranks {
				if m := g.members[rank]; m != nil && at[i] < len(m.entries[0]) && (seq < 0 || m.entries[0][at[i]].seq < seq) {
					seq = max(0, m.entries[0][at[i]].seq) // a record's number below 0 must not say "none left"
				}
			}
			if seq < 0 {
				return
			}
			parts := 0 // the largest number of records of a rank under this number
			for i, rank := range g.ranks {
				if m := g.members[rank]; m != nil {
					parts = max(parts, countOf(m.entries[0][at[i]:], seq))
				}
			}
			var c *Collective
			for part := range parts {
				c = a.compare(g, seq, part, parts, at)
				if len(c.Lacking)+len(c.Differ) > 0 {
					break
				}
			}
			for i, rank := range g.ranks {
				if m := g.members[rank]; m != nil {
					at[i] += countOf(m.entries[0][at[i]:], seq)
				}
			}
			if seq > 0 && c != nil && !yield(c) { // 0: no number
				return
			}
		}
	}
}

// countOf is the number of first records with numbers up to seq.
func countOf(list []record, seq int64) (n int) {
	for n < len(list) && list[n].seq <= seq {
		n++
	}
	return n
}

// compare compares the ranks' records of one part of a collective (number seq, of which a rank has up to parts records) with the first rank's. at has the index
// of each rank's first record from seq on. The result is overwritten by the next call.
func (a *analysis) compare(g *group, seq int64, part, parts int, at []int) *Collective {
	c := &a.one
	*c = Collective{
		Seq: seq, Reference: -1, Enqueued: c.Enqueued[:0], Started: c.Started[:0], Completed: c.Completed[:0], Lacking: c.Lacking[:0],
		Unknown: c.Unknown[:0], Differ: c.Differ[:0],
	}
	var own record // of Reference
	var ownSig *signature
	uneven, in, out := true, int64(0), int64(0) // all-to-all; elements sent and received by all ranks together
	for i, rank := range g.ranks {
		m := g.members[rank]
		if m == nil {
			c.Unknown = append(c.Unknown, rank)
			continue
		}
		list := m.entries[0]
		// A dump that lost its first entries may begin behind the collective, or amid its parts: no sign that the rank lacked it.
		beginsLater := m.dropped && (len(list) == 0 || seq < list[0].seq)
		beginsWithin := m.dropped && at[i] == 0 && countOf(list, seq) < parts
		switch {
		case beginsLater, beginsWithin:
			c.Unknown = append(c.Unknown, rank)
			continue
		case at[i]+part >= len(list) || list[at[i]+part].seq != seq:
			c.Lacking = append(c.Lacking, rank)
			continue
		}
		rec := list[at[i]+part]
		sig := &a.all[rec.sig]
		c.came(rank, rec)
		in, out = in+sig.in, out+sig.out
		if c.Reference < 0 {
			c.Reference, own, ownSig = rank, rec, sig
			c.Operation, c.TimeoutMS = sig.operation(rec.state), sig.timeoutMS
			uneven = sig.uneven()
			continue
		}
		if what := a.differ(own, rec, len(g.ranks)); what != Same {
			c.Differ = append(c.Differ, Difference{Rank: rank, What: what, Entry: sig.operation(rec.state)})
		}
	}
	// Of an all-to-all only the sums are comparable: all ranks together receive what they send. The wrong rank is unknown.
	comparable := uneven && ownSig != nil && len(c.Enqueued) == len(g.ranks) && len(c.Differ) == 0 && len(g.ranks) > 1
	if comparable && in != out {
		c.Differ = append(c.Differ, Difference{Rank: c.Reference, What: Sizes, Entry: c.Operation})
	}
	return c
}

// came notes a rank with a record of the operation: its state, and when the operation was enqueued.
func (c *Collective) came(rank int32, rec record) {
	c.Enqueued = append(c.Enqueued, rank)
	if rec.state >= started {
		c.Started = append(c.Started, rank)
	}
	if rec.state == completed {
		c.Completed = append(c.Completed, rank)
	}
	if rec.created > 0 {
		if c.First == 0 || rec.created < c.First {
			c.First = rec.created
		}
		if rec.created > c.Last {
			c.Last, c.LastRank = rec.created, rank
		}
	}
}

// differ finds the difference of two records, in a group of n ranks. Signatures are compared once; a different state is only reported if nothing else differs,
// and not of the end of a coalesced launch, as in signature.differ's source.
func (a *analysis) differ(x, y record, n int) What {
	key := [3]uint32{x.sig, y.sig, uint32(n)}
	what, ok := a.match[key]
	if !ok {
		what = a.all[x.sig].differ(&a.all[y.sig], int64(n))
		a.match[key] = what
	}
	if what == Same && x.state != y.state && !a.all[x.sig].ends() {
		return State
	}
	return what
}
