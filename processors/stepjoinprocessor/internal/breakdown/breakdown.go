// Package breakdown breaks down the time of a window: a training step, a TransferQueue batch, an RPC pass.
//
// Each instant of the window belongs to one kind, the most specific kind active. So the exclusive times of all kinds, with the unattributed rest, add up to the
// window's duration, for any overlap of the work.
package breakdown

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Who is the origin of a piece, as far as logged. The texts must not share reused memory.
type Who struct {
	Rank       int64 // valid if HasRank. Of a Wait the last rank
	HasRank    bool
	Local      bool // the rank is the communicator's: another communicator's of the same number is another
	Host       string
	Comm       string // the communicator's name
	Operation  string // of a collective
	Timer      string // of Compute: the trainer's own name of the part
	Unrecorded bool   // of a Collective: a rank has no record, and may be the cause
}

// Piece is one activity.
type Piece struct {
	Kind Kind
	// Start and End are ns since the epoch. If End is not after Start only Seconds is known: the time of one process, beside other such pieces, not overlapping
	// them. A piece without any length states that its kind is known, and took no time.
	Start, End int64
	Seconds    float64
	Who        Who
	// Split are the stages' shares of an RPC pass, from RPCSerialize on. The rest to 1 is RPCUnattributed's; a sum above 1 is scaled down. A piece without
	// shares is of its Kind.
	Split [RPCStages]float64
}

// Part is the exclusive wall-clock time of one kind and origin.
type Part struct {
	Who     Who
	Seconds float64
}

// Breakdown is a window's time by kind, in seconds. Its slices are valid until the next call of Of.
type Breakdown struct {
	Duration float64
	Time     [Kinds]float64 // exclusive wall-clock: adds up to Duration
	Sum      [Kinds]float64 // of durations, each cut to the window
	Union    [Kinds]float64 // wall-clock
	Known    [Kinds]bool    // a piece of the kind exists
	Waits    []Part         // by who was waited for, the longest first
	// Collectives is the rest of the collectives, by communicator and operation, the longest first.
	Collectives []Part
}

// Scratch is the memory of Of. The zero value is ready; once grown, Of allocates nothing. One goroutine may use it.
type Scratch struct {
	spans              []span     // the timed pieces, by level
	covered, spare     []interval // by the levels so far, in order of time; spare is memory for the next
	current            []interval // covered by the current level
	waits, collectives table
}

// span is a timed piece cut to the window.
type span struct {
	start, end int64
	level      int32
	piece      int32
}

// interval is a time range, ns.
type interval struct{ start, end int64 }

// table is the time of a kind by origin.
type table struct {
	ns    map[Who]int64
	parts []Part
}

// passLevel is the level of RPC passes split by shares: the calls within a pass are more specific. Every other level is the number of a kind.
const passLevel = int32(RPCUnattributed) + 1

// levels has the level of each kind: the lower, the more specific.
var levels = func() (levels [Kinds]int32) {
	for k := range levels {
		levels[k] = int32(k)
		if Kind(k) >= Compute {
			levels[k]++
		}
	}
	levels[RPCServer], levels[RPCReceive] = levels[RPCReceive], levels[RPCServer] // the server works while the client waits
	return levels
}()

// filling is the order in which pieces without times take from the time not covered by pieces with times. Computing comes last, because it includes the other
// timers. Calls take from timed computing first, because they are made in it.
var filling = [...]Kind{
	DataLoading, Checkpoint, Evaluation, Wait, Collective, RPCSerialize, RPCSend, RPCServer, RPCReceive, RPCDeserialize, RPCUnattributed, Get, Put, Compute,
}

// ns are nanoseconds by kind.
type ns [Kinds]int64

// Of breaks down the window from start to end, in ns since the epoch. It takes O(n log n) for n pieces, in any order. If pieces of one kind overlap, an instant
// belongs to the piece that began first, and among these to the last to end.
//
// Three stages: pieces with times are sorted by level; level by level, the most specific first, they take the time that is still free (sweep); then pieces
// without times take from the rest, in the order of filling.
func (s *Scratch) Of(start, end int64, pieces []Piece) Breakdown {
	start = max(start, 0)
	end = max(end, start)
	b := Breakdown{Duration: seconds(end - start)}
	b.Known[Unattributed] = true
	if len(pieces) == 0 { // most steps of a log without parts
		b.Time[Unattributed], b.Sum[Unattributed], b.Union[Unattributed] = b.Duration, b.Duration, b.Duration
		return b
	}

	var exclusive, sum, union, untimed ns
	s.spans = s.spans[:0]
	for i := range pieces {
		p := &pieces[i]
		if p.Kind >= Unattributed { // unattributed time is computed, not given
			continue
		}
		level := levels[p.Kind]
		if p.hasShares() {
			level = passLevel
		}
		p.markKnown(&b, level)
		if p.End <= p.Start {
			p.addTo(&untimed, level, min(nanoseconds(p.Seconds), end-start))
		} else if from, to := max(p.Start, start), min(p.End, end); from < to {
			s.spans = append(s.spans, span{from, to, level, int32(i)})
			p.addTo(&sum, level, to-from)
		}
	}
	slices.SortFunc(s.spans, func(x, y span) int {
		switch {
		case x.level != y.level:
			return int(x.level - y.level)
		case x.start != y.start:
			return cmp.Compare(x.start, y.start)
		case x.end != y.end:
			return cmp.Compare(y.end, x.end)
		default:
			return comparePieces(&pieces[x.piece], &pieces[y.piece])
		}
	})
	s.covered = s.covered[:0]
	s.waits.reset()
	s.collectives.reset()
	// spans[from:to] are of one level.
	for from, to := 0, 0; from < len(s.spans); from = to {
		for to < len(s.spans) && s.spans[to].level == s.spans[from].level {
			to++
		}
		s.sweep(pieces, s.spans[from:to], &exclusive, &union)
	}

	rest := end - start // not covered by any timed piece
	for _, c := range s.covered {
		rest -= c.end - c.start
	}
	for _, k := range filling {
		more := max(untimed[k]-union[k], 0)            // a span and a timer of one kind describe the same work
		if k >= RPCSerialize && k <= RPCUnattributed { // calls are made in timed computing
			within := min(more, exclusive[Compute])
			exclusive[k] += within
			exclusive[Compute] -= within
			more -= within
		}
		took := min(more, rest)
		exclusive[k] += took
		rest -= took
		sum[k] = saturate(sum[k], untimed[k])
		union[k] = max(union[k], min(untimed[k], end-start))
	}
	exclusive[Unattributed], sum[Unattributed], union[Unattributed] = rest, rest, rest
	for k := range Kinds {
		b.Time[k], b.Sum[k], b.Union[k] = seconds(exclusive[k]), seconds(sum[k]), seconds(min(union[k], end-start))
	}
	b.Waits, b.Collectives = s.waits.sortedParts(), s.collectives.sortedParts()
	return b
}

// sweep handles the pieces of one level, in order of start. It adds to union the time that no earlier piece of the level covers, and to exclusive the part of
// this time that no earlier level covers; then the time of the level counts as covered (s.covered).
func (s *Scratch) sweep(pieces []Piece, level []span, exclusive, union *ns) {
	s.current = s.current[:0]
	head := int64(0) // the latest end of the level's pieces so far
	at := 0          // index of the first interval of s.covered that may overlap
	for _, sp := range level {
		fresh := interval{max(sp.start, head), sp.end}
		if fresh.start >= fresh.end {
			continue // an earlier piece is still active
		}
		head = fresh.end
		s.current = append(s.current, fresh)
		p := &pieces[sp.piece]
		p.addTo(union, sp.level, fresh.end-fresh.start)

		for at < len(s.covered) && s.covered[at].end <= fresh.start {
			at++
		}
		free := fresh.end - fresh.start // ns not covered by earlier levels
		for i := at; i < len(s.covered) && s.covered[i].start < fresh.end; i++ {
			free -= min(s.covered[i].end, fresh.end) - max(s.covered[i].start, fresh.start)
		}
		if free == 0 {
			continue
		}
		p.addTo(exclusive, sp.level, free)
		switch p.Kind {
		case Wait:
			s.waits.ns[p.Who] += free
		case Collective:
			s.collectives.ns[p.Who] += free
		}
	}
	s.covered, s.spare = merge(s.spare[:0], s.covered, s.current), s.covered
}

// merge appends the union of two lists of intervals, x and y, each in order of time. Overlapping and adjacent intervals become one.
func merge(to, x, y []interval) []interval {
	for len(x)+len(y) > 0 {
		next := &x // the list whose first interval begins first
		if len(x) == 0 || len(y) > 0 && y[0].start < x[0].start {
			next = &y
		}
		first := (*next)[0]
		*next = (*next)[1:]
		if last := len(to) - 1; last >= 0 && first.start <= to[last].end {
			to[last].end = max(to[last].end, first.end)
		} else {
			to = append(to, first)
		}
	}
	return to
}

// hasShares reports whether the piece is an RPC pass with shares of its stages.
func (p *Piece) hasShares() bool {
	return p.Kind.rpc() && slices.ContainsFunc(p.Split[:], validShare)
}

// validShare reports whether a share is above 0 and finite.
func validShare(share float64) bool { return share > 0 && share <= math.MaxFloat64 }

// markKnown records in b.Known the kinds that the piece has time of: its kind, or at passLevel its stages.
func (p *Piece) markKnown(b *Breakdown, level int32) {
	if level != passLevel {
		b.Known[p.Kind] = true
		return
	}
	b.Known[RPCUnattributed] = true
	for i, share := range p.Split {
		if validShare(share) {
			b.Known[int(RPCSerialize)+i] = true
		}
	}
}

// addTo adds a length, ns, to the kind of the piece, or at passLevel to the stages by their shares and the rest to RPCUnattributed. Shares of more than 1 in
// total are scaled down to 1.
func (p *Piece) addTo(to *ns, level int32, length int64) {
	if level != passLevel {
		to[p.Kind] = saturate(to[p.Kind], length)
		return
	}
	total := 0.0
	for _, share := range p.Split {
		if validShare(share) {
			total += share
		}
	}
	left := length
	for k := RPCSerialize; k < RPCUnattributed; k++ {
		if share := p.Split[k-RPCSerialize]; validShare(share) {
			part := min(int64(share/max(total, 1)*float64(length)), left)
			to[k] = saturate(to[k], part)
			left -= part
		}
	}
	to[RPCUnattributed] = saturate(to[RPCUnattributed], left)
}

// reset empties the table, and keeps the memory.
func (t *table) reset() {
	if t.ns == nil {
		t.ns = map[Who]int64{}
	}
	clear(t.ns)
}

// sortedParts returns the times by origin, the longest first; valid until the next call.
func (t *table) sortedParts() []Part {
	t.parts = t.parts[:0]
	for who, length := range t.ns {
		t.parts = append(t.parts, Part{who, seconds(length)})
	}
	slices.SortFunc(t.parts, func(x, y Part) int { return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), x.Who.Compare(y.Who)) })
	return t.parts
}

// RankOnly returns w without the operation, to add up the time of a rank over operations; false: w names no rank. For a rank number that is only valid in a
// communicator (Local), the communicator stays.
func (w Who) RankOnly() (rank Who, hasRank bool) {
	rank = Who{Rank: w.Rank, HasRank: w.HasRank, Local: w.Local, Host: w.Host, Unrecorded: w.Unrecorded}
	if w.Local {
		rank.Comm = w.Comm
	}
	return rank, w.HasRank
}

// Compare orders for output: origins with a rank first, by rank; ranks of the job before those of a communicator, recorded before unrecorded; then by host,
// communicator and operation.
func (w Who) Compare(other Who) int {
	if w.HasRank != other.HasRank {
		if w.HasRank {
			return -1
		}
		return 1
	}
	if c := cmp.Compare(w.Rank, other.Rank); c != 0 {
		return c
	}
	if w.Local != other.Local {
		if w.Local {
			return 1
		}
		return -1
	}
	if w.Unrecorded != other.Unrecorded {
		if w.Unrecorded {
			return 1
		}
		return -1
	}
	for _, texts := range [...][2]string{{w.Host, other.Host}, {w.Comm, other.Comm}, {w.Operation, other.Operation}} {
		if c := strings.Compare(texts[0], texts[1]); c != 0 {
			return c
		}
	}
	return 0
}

// comparePieces orders pieces with the same times and level, so that the result does not depend on the order of input.
func comparePieces(x, y *Piece) int {
	if c := cmp.Or(cmp.Compare(x.Kind, y.Kind), slices.Compare(x.Split[:], y.Split[:])); c != 0 {
		return c
	}
	return x.Who.Compare(y.Who)
}

// seconds converts ns to s.
func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// nanoseconds converts s to ns; invalid or negative: 0; at most the largest int64.
func nanoseconds(seconds float64) int64 {
	switch ns := seconds * 1e9; {
	case !(ns > 0):
		return 0
	case ns >= math.MaxInt64:
		return math.MaxInt64
	default:
		return int64(math.Round(ns))
	}
}

// saturate returns x + y, at most the largest int64.
func saturate(x, y int64) int64 {
	if x > math.MaxInt64-y {
		return math.MaxInt64
	}
	return x + y
}
