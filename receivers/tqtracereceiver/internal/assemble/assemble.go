// Package assemble puts the records of a TransferQueue log together into function calls with their stages and client operations. A record does not name its
// call (trace_id is N/A in practice and only FUNCTION_START has a pid), so times distinguish concurrent calls: an END record states its own start (timestamp −
// duration), and a START follows the record before within microseconds, because no other coroutine can run in between.
package assemble

import (
	"slices"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/tqline"
	"github.com/trainbridge/trainbridge/spans"
)

// Lines is the part of tail.Stream that keeps a line unacknowledged until its record is delivered.
type Lines interface {
	Hold() tail.Held
	Release(h tail.Held)
	Place() tail.Place
}

// Base is the clock of a record's time. Records on different clocks never belong together.
type Base uint8

// The bases, with the precision of their times.
const (
	Perf  Base = iota // perf_counter, µs
	Epoch             // Unix time in the record, µs
	Stamp             // the logger's stamp, ms
	None              // the order of the lines only, taken for the order of the events: no record is late, and none is proven to be printed twice
	bases
)

const forever = int64(1) << 60

// Times of records on a base, ns. Without a clock (None) any two records may belong together.
var (
	// tolerance is the largest difference of two times of one moment: two roundings to 1 µs and the call between two clock readings.
	tolerance = [bases]int64{5e3, 5e3, 2e6, forever}
	// step is the usual time of the code between two records; limit is its maximum on a busy machine.
	step  = [bases]int64{1e6, 1e6, 5e6, forever}
	limit = [bases]int64{10e6, 10e6, 50e6, forever}
)

// linger is the time, on the log's own clock, that a client operation without a function waits for late records of its function.
const linger = int64(2e9)

const (
	maxOpen    = 100_000 // functions and operations of a stream
	maxOps     = 1_900   // of a function: Tempo and Jaeger take 2,000 spans a trace well
	maxIdle    = 512     // groups kept for late lines
	maxDone    = 32      // functions of a group remembered for late lines
	maxOrphans = 4096    // operations that linger
	maxName    = 256     // significant bytes of an id or function name
)

// Proc is one process of a log.
type Proc struct {
	Who
	Anchor *clock.Anchor
	hash   uint64 // of Who, for the keys of groups
	last   *group // of the last record
}

// NewProc returns the process named by a line's prefix or the file name.
func NewProc(host string, pid int64, anchor *clock.Anchor) *Proc {
	return &Proc{Who: Who{host, pid}, Anchor: anchor, hash: xxh3.HashString(host) ^ uint64(pid)*0x9e3779b97f4a7c15}
}

// At says when and where a record was printed.
type At struct {
	Proc   *Proc
	Base   Base
	T      int64            // ns on the base
	Wall   int64            // about when, ns
	Since  int64            // when the line was read, ns
	Source spans.TimeSource // for bases other than Perf
	Raw    []byte           // the text of T in keys
}

// Fate is the result for a record.
type Fate uint8

// The fates.
const (
	Used      Fate = iota // part of a span
	Late                  // of a function already sent
	Duplicate             // printed twice
	TooMany               // of a function with too many operations
)

// Assembler puts the records of one stream together. Not safe for concurrent use.
type Assembler struct {
	// Out receives finished functions. The owner sets Out before Add, Expire and Break.
	Out *Out
	// Open is the number of functions and operations that have not left, an operation of a function too.
	Open int

	lines  Lines
	names  spans.Interner
	groups map[uint64]*group // by group.key
	now    int64             // latest wall time seen, ns
	// Groups with nothing open, the longest idle first, and their number.
	idle, idleLast *group
	idleN          int

	first, newest *function // open functions by arrival
	// Operations without a function: operations without END wait, finished ones linger for their function.
	waiting, lingering opQueue

	freeFn  []*function // for reuse
	freeOps []*op
}

// New returns an assembler that holds lines of a stream.
func New(lines Lines) *Assembler { return &Assembler{lines: lines, groups: make(map[uint64]*group)} }

// group is all records with the same trace id text of one process on one clock.
type group struct {
	key   uint64 // in Assembler.groups
	trace string // as printed
	proc  *Proc
	base  Base
	log   bool // of [TQ-LOG] records, which know no functions

	name string // last function name, interned once
	// at holds the open functions by their last event, sorted by its time; all holds them sorted by their first time.
	at        [tqline.FunctionEnd]list[*function]
	all       list[*function]
	fragments int // functions without FUNCTION_START
	// open holds the client operations without END by kind.
	open      [4]list[*op]
	orphans   []*op // operations with END but no function so far
	startless int   // operations with END but no START so far
	// prints are the hashes of the last client records, a ring.
	prints    [16]uint64
	printNext int

	done     []left // ring of functions sent
	doneNext int    // index of the oldest, once the ring is full
	doneMax  int64  // latest start of a function sent

	isIdle     bool
	prev, next *group // idle ones
}

// left is the memory of a function already sent: the fields of function with these names.
type left struct {
	name        string
	pid         int64
	known, seen uint16
	t           [8]int64
}

func (d *left) knows(e tqline.Stage) bool { return d.known>>e&1 != 0 }
func (d *left) saw(e tqline.Stage) bool   { return d.seen>>e&1 != 0 }

// is reports whether the function may have a record with a function name (empty: none) and a pid (0: none).
func (d *left) is(name string, pid int64) bool {
	return (name == "" || d.name == name) && (pid == 0 || d.pid == 0 || d.pid == pid)
}

// Add adds one record, and returns its fate. Finished functions and operations go to Out. With more than maxOpen open ones the oldest function is given up, or,
// without one, the oldest operation that waits for its END.
func (a *Assembler) Add(l *tqline.Line, at *At) Fate {
	l.TraceID, l.Func = l.TraceID[:min(len(l.TraceID), maxName)], l.Func[:min(len(l.Func), maxName)]
	a.now = max(a.now, at.Wall)
	// Operations whose function has not come leave on their own.
	for a.lingering.head != nil && (a.lingering.head.due < a.now || a.lingering.n > maxOrphans) {
		a.leaveOp(a.lingering.head, "")
	}
	g := a.group(l, at)
	var fate Fate
	switch {
	case l.Stage >= tqline.ClientStart:
		fate = a.client(g, l, at)
	case l.Stage == tqline.FunctionStart:
		fate = a.functionStart(g, l, at)
	case l.Stage == tqline.FunctionEnd:
		fate = a.functionEnd(g, l, at)
	default:
		fate = a.stage(g, l, at)
	}
	if a.Open > maxOpen {
		switch {
		case a.first != nil:
			old := a.first.g
			a.leave(a.first, true)
			a.settle(old)
		case a.waiting.head != nil:
			a.leaveOp(a.waiting.head, ReasonNoClientEnd)
		}
	}
	a.settle(g)
	return fate
}

// Expire sends functions and operations whose first line was read before a time (ns), as incomplete ones if they have not ended. The caller calls Expire now
// and then, so that no line is held for good.
func (a *Assembler) Expire(before int64) {
	for a.first != nil && a.first.since < before {
		g := a.first.g
		a.leave(a.first, true)
		a.settle(g)
	}
	for a.lingering.head != nil && a.lingering.head.since < before {
		a.leaveOp(a.lingering.head, "")
	}
	for a.waiting.head != nil && a.waiting.head.since < before {
		a.leaveOp(a.waiting.head, ReasonNoClientEnd)
	}
}

// Break gives up the open functions and operations of a process whose perf_counter restarted: their end cannot come.
func (a *Assembler) Break(host string, pid int64) {
	for f := a.first; f != nil; {
		next := f.next
		if g := f.g; g.base == Perf && g.proc.Who == (Who{host, pid}) {
			a.leave(f, true)
			a.settle(g)
		}
		f = next
	}
	for _, q := range []*opQueue{&a.lingering, &a.waiting} {
		for o := q.head; o != nil; {
			next := o.next
			if o.g.base == Perf && o.g.proc.Who == (Who{host, pid}) {
				a.leaveOp(o, o.reason())
			}
			o = next
		}
	}
	// The times remembered for late lines are of the old counter too.
	for _, g := range a.groups {
		if g.base == Perf && g.proc.Who == (Who{host, pid}) {
			g.done, g.doneNext, g.doneMax = g.done[:0], 0, 0
		}
	}
}

// group returns the group of a record, made if new. Mostly the group is that of the process's last record, which is tried first.
func (a *Assembler) group(l *tqline.Line, at *At) *group {
	if g := at.Proc.last; g != nil && g.matches(l, at) {
		return g
	}
	key := xxh3.Hash(l.TraceID) ^ at.Proc.hash ^ uint64(at.Base)<<1
	if l.Log {
		key ^= 1
	}
	// Two keys with one hash do not happen by chance; with malicious input the group may take the slot of another after four tries.
	g := a.groups[key]
	for n := 0; g != nil && !g.matches(l, at) && n < 4; n++ {
		key++
		g = a.groups[key]
	}
	if g == nil || !g.matches(l, at) {
		g = a.newGroup(key, l, at)
	}
	at.Proc.last = g
	return g
}

// matches reports whether a record is of the group.
func (g *group) matches(l *tqline.Line, at *At) bool {
	return g.trace == string(l.TraceID) && g.base == at.Base && g.log == l.Log && (g.proc == at.Proc || g.proc.Who == at.Proc.Who)
}

// newGroup returns a new group of a record under a key. It reuses the longest idle group if maxIdle are idle.
func (a *Assembler) newGroup(key uint64, l *tqline.Line, at *At) *group {
	var g *group
	if a.idleN >= maxIdle {
		g = a.idle
		a.unidle(g)
		delete(a.groups, g.key)
	} else {
		g = &group{}
	}
	g.key, g.trace, g.proc, g.base, g.log, g.name = key, string(l.TraceID), at.Proc, at.Base, l.Log, ""
	g.done, g.doneNext, g.doneMax, g.fragments, g.prints = g.done[:0], 0, 0, 0, [16]uint64{}
	g.startless = 0
	a.groups[key] = g
	return g
}

// settle moves a group with nothing open to the end of the idle groups, for reuse; until then the group's memory of sent functions serves late lines. An idle
// group with something open again is taken out.
func (a *Assembler) settle(g *group) {
	empty := len(g.all) == 0 && len(g.orphans) == 0 && g.openOps() == 0
	switch {
	case empty && !g.isIdle:
		g.isIdle = true
		g.prev, g.next = a.idleLast, nil
		if a.idleLast != nil {
			a.idleLast.next = g
		} else {
			a.idle = g
		}
		a.idleLast = g
		a.idleN++
	case !empty && g.isIdle:
		a.unidle(g)
	}
}

// unidle removes a group from the list of idle ones.
func (a *Assembler) unidle(g *group) {
	if g.prev != nil {
		g.prev.next = g.next
	} else {
		a.idle = g.next
	}
	if g.next != nil {
		g.next.prev = g.prev
	} else {
		a.idleLast = g.prev
	}
	g.prev, g.next, g.isIdle = nil, nil, false
	a.idleN--
}

// openOps returns the number of client operations without END.
func (g *group) openOps() int {
	return len(g.open[0]) + len(g.open[1]) + len(g.open[2]) + len(g.open[3])
}

// Key is the raw log text for a record's ids. The first byte is the kind of text, so that a start and an end with the same text differ. The length is bounded;
// the few characters of a stamp always fit.
type Key struct {
	b [39]byte
	n uint8
}

// Bytes returns the key.
func (k *Key) Bytes() []byte { return k.b[:k.n] }

// set sets the key to a raw text. tag is the kind of text: 's' of a start, 'e' of an end, 'f' of another first line.
func (k *Key) set(tag byte, raw []byte) {
	k.b[0] = tag
	k.n = uint8(1 + copy(k.b[1:], raw)) // at most 39
}

// add appends a number, as far as it fits.
func (k *Key) add(n int64) {
	var b [24]byte
	k.n += uint8(copy(k.b[k.n:], strconv.AppendInt(append(b[:0], '/'), n, 10))) // at most 39
}

// Who is the process of a record.
type Who struct {
	Host string // "" when the log does not say
	PID  int64  // 0 when the log does not say
}

// Stage is one stage of a function, in wall ns.
type Stage struct {
	Start, End int64
	Known      bool
	Incomplete string // why no END was printed: End is the time of the next known event, or else the last known moment; "": printed
}

// Function is one finished (or given up) call. Times in wall ns.
type Function struct {
	Who
	Trace, Name string // as printed
	Source      spans.TimeSource
	Key         Key
	Start, End  int64
	Stages      [3]Stage   // get, compute, put
	BatchSize   int64      // −1: unknown
	Ratios      [3]float64 // as reported; −1: unknown
	Incomplete  string
	// Ranges of Out.Ops and Out.Fields.
	OpsFrom, OpsTo       int
	FieldsFrom, FieldsTo int
	Place                tail.Place
}

// Op is one client operation: of a function, or outside of any (Out.Lone). Times in wall ns.
type Op struct {
	Who
	Trace, Name          string
	Source               spans.TimeSource
	Kind                 tqline.Op
	Key                  Key
	Start, End           int64
	BatchSize, Size      int64   // samples, bytes; −1: unknown
	Reported             float64 // By/s; −1: unknown
	Incomplete           string
	FieldsFrom, FieldsTo int
	Place                tail.Place // of Out.Lone
}

// Field is an attribute from an unknown field.
type Field struct{ Name, Value string }

// Out collects finished functions and operations, in a compact form for any number of conversions into spans.
type Out struct {
	Functions []Function
	Ops       []Op // of Functions
	Lone      []Op // without a function
	Fields    []Field
}

// Reset empties Out, keeping its memory.
func (o *Out) Reset() {
	o.Functions, o.Ops, o.Lone, o.Fields = o.Functions[:0], o.Ops[:0], o.Lone[:0], o.Fields[:0]
}

// matchable is an element of a list, with a function name and perhaps a pid.
type matchable interface {
	comparable
	fits(name string, pid int64) bool
}

// entry is an element of a list, with its time on the group's base, ns.
type entry[T matchable] struct {
	t int64
	v T
}

// list is sorted by time. Lines come nearly in order, so almost all changes are at the end.
type list[T matchable] []entry[T]

// maxScan bounds the neighbours in a search, so that no log makes it quadratic.
const maxScan = 256

// upper returns the index just after the entries with times ≤ t.
func (l list[T]) upper(t int64) int {
	lo, hi := 0, len(l)
	if hi == 0 || l[hi-1].t <= t {
		return hi
	}
	for lo < hi {
		if m := (lo + hi) / 2; l[m].t <= t {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// add inserts v at time t, after the elements of the same time.
func (l *list[T]) add(t int64, v T) {
	i := l.upper(t)
	if i == len(*l) {
		*l = append(*l, entry[T]{t, v})
		return
	}
	*l = slices.Insert(*l, i, entry[T]{t, v})
}

// remove removes v, which was added at time t, from the list.
func (l *list[T]) remove(t int64, v T) {
	for i := l.upper(t) - 1; i >= 0 && (*l)[i].t == t; i-- {
		if (*l)[i].v == v {
			// Calls without an end stay long and leave at the front: moving the elements after would be quadratic. Short lists keep their place in memory
			// instead.
			if len(*l) > 64 && i < len(*l)/2 {
				copy((*l)[1:i+1], (*l)[:i])
				(*l)[0] = entry[T]{}
				*l = (*l)[1:]
				return
			}
			n := copy((*l)[i:], (*l)[i+1:]) + i
			clear((*l)[n:])
			*l = (*l)[:n]
			return
		}
	}
}

// near returns the fitting element closest to t, at most tol away; of two as close, the later one in the list.
func (l list[T]) near(t, tol int64, name string, pid int64) (best T, ok bool) {
	gap := tol + 1 // the distance of best
	for i, n := l.upper(t+tol)-1, 0; i >= 0 && n < maxScan; i, n = i-1, n+1 {
		d := l[i].t - t
		if d < 0 {
			d = -d
			if d >= gap { // the gap only grows from here
				break
			}
		}
		if d < gap && l[i].v.fits(name, pid) {
			best, gap, ok = l[i].v, d, true
		}
	}
	return best, ok
}

// before returns the latest fitting element, from limit before t to tol after t.
func (l list[T]) before(t, tol, limit int64, name string, pid int64) (best T, ok bool) {
	for i, n := l.upper(t+tol)-1, 0; i >= 0 && n < maxScan && t-l[i].t <= limit; i, n = i-1, n+1 {
		if l[i].v.fits(name, pid) {
			return l[i].v, true
		}
	}
	return best, false
}
