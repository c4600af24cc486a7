// Package facts keeps what step_join needs of the spans that pass: small facts about leaves (stages, calls, collectives, parts of steps), and the groups that
// they may belong to. A group is a trace that has a window: a training step, a batch or a function of TransferQueue, an RPC pass. Which leaf of another trace
// belongs to which group is decided by [Run.Resolve], by containment in time.
package facts

import (
	"cmp"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// Flags of leaves and windows.
type Flags uint8

// The flags.
const (
	Timeless Flags = 1 << iota // its times are made up: it has a duration and no place in time
	Point                      // only its end is known
	Observed                   // its times are those of its arrival, or of stamps of whole seconds
	Bad                        // it has a bad verdict
	Error                      // it ended in an error
)

// Has says whether a flag is set.
func (f Flags) Has(flag Flags) bool { return f&flag != 0 }

// Leaf is what is kept of one span, some 100 bytes. Texts are numbers of [Run.Text].
type Leaf struct {
	Trace      pcommon.TraceID
	Span       pcommon.SpanID
	Parent     pcommon.SpanID // of a part of a step
	Start, End int64          // ns
	Late       int64          // ns from the first rank's arrival to the last's, of a collective; −1: not known
	Blame      int64          // ns of it from the last but one's arrival on
	Name       uint32
	Comm       uint32
	Host       uint32
	LateHost   uint32
	LateRank   int32 // in the communicator; −1: not known
	Ranks      int32 // of the communicator
	PID        int32 // 0: not known
	LatePID    int32 // of the rank that came last; 0: not known
	Shares     bool  // of RPCs: Run.Shares has how long their stages took
	Kind       breakdown.Kind
	Flags      Flags
}

// Shares are which shares of the time of RPCs their stages took, from breakdown.RPCSerialize on.
type Shares [breakdown.RPCStages]float64

// Stage is what is kept of a stage of a call of TransferQueue, of which there are many.
type Stage struct {
	Span       pcommon.SpanID
	Start, End int64 // ns
	Kind       breakdown.Kind
	Flags      Flags
}

// WindowKind says what a window is.
type WindowKind uint8

// The kinds of windows.
const (
	Step WindowKind = iota
	Pass
	Function // of TransferQueue
	Other    // a span that the configuration calls a window
)

// Window is a span that has a time in which others may lie.
type Window struct {
	Kind       WindowKind
	Flags      Flags
	Span       pcommon.SpanID
	Start, End int64
	Number     int64 // iteration or ordinal; −1: none
	Steps      float64
	Batch      float64 // samples; NaN: not known
	Host       uint32
	PID        int32
	Name       uint32
}

// Group is a trace with windows.
type Group struct {
	ID       pcommon.TraceID
	Service  string
	ByID     bool // its trace is the one that an id names
	Promised bool // its tops were given a parent: a root has to be sent
	Partial  bool
	Restored bool // after a crash, of which only a promise is known
	Closed   bool
	Windows  []Window
	Own      []Leaf  // of its own trace
	Stages   []Stage // likewise, of its calls of TransferQueue

	// Start and End are the ends of what has a place in time; End is 0 where nothing has.
	Start, End int64
	Last       time.Time // when the last of it came
	Chunk      int64     // of the promise that is stored; −1: none
	told       uint8     // what Service is of
	functions  int
	staged     int64 // stages that were added
	settled    bool
	flags      Flags                       // Observed, where a time of it is
	gone       bool                        // forgotten, and still in a list
	seen       map[pcommon.SpanID]struct{} // nil while small
}

// Functions is how many functions of TransferQueue it has.
func (g *Group) Functions() int { return g.functions }

// HasStep says whether a training step is in its trace.
func (g *Group) HasStep() bool {
	return slices.ContainsFunc(g.Windows, func(w Window) bool { return w.Kind == Step })
}

// has says whether a span is known already: what a source sends again after a crash counts once.
func (g *Group) has(id pcommon.SpanID) bool {
	if g.seen != nil {
		_, ok := g.seen[id]
		return ok
	}
	for i := range g.Own {
		if g.Own[i].Span == id {
			return true
		}
	}
	for i := range g.Windows {
		if g.Windows[i].Span == id {
			return true
		}
	}
	return false
}

const smallGroup = 48 // below, looking through all is as fast as a map

func (g *Group) note(id pcommon.SpanID) {
	if g.seen == nil && len(g.Own)+len(g.Windows) >= smallGroup {
		g.seen = make(map[pcommon.SpanID]struct{}, 2*smallGroup)
		for i := range g.Own {
			g.seen[g.Own[i].Span] = struct{}{}
		}
		for i := range g.Windows {
			g.seen[g.Windows[i].Span] = struct{}{}
		}
	}
	if g.seen != nil {
		g.seen[id] = struct{}{}
	}
}

func (g *Group) widen(start, end int64, flags Flags) {
	if flags.Has(Timeless) {
		return
	}
	if flags.Has(Point) {
		start = end
	}
	g.flags |= flags & Observed
	if g.End == 0 {
		g.Start, g.End = start, end
		return
	}
	g.Start, g.End = min(g.Start, start), max(g.End, end)
}

// Observed says that its times are known to a second only.
func (g *Group) Observed() bool { return g.flags.Has(Observed) }

// Place is when all of it was.
func (g *Group) Place() Place {
	return Place{Start: g.Start, End: g.End, Name: g.Name(), Observed: g.Observed(), Not: g}
}

// Name is the number of the name of one of the group's windows; 0: it has none.
func (g *Group) Name() uint32 {
	if len(g.Windows) == 0 {
		return 0
	}
	return g.Windows[0].Name
}

// Main is the window that the time of the group is broken down by: the longest of its training steps, else all of its functions together, else the
// pass. It is false where nothing has a length in time.
func (g *Group) Main() (w Window, ok bool) {
	parted := g.parted()
	for i := range g.Windows {
		c := &g.Windows[i]
		if c.Flags.Has(Timeless|Point) || c.Kind == Function || c.End <= c.Start {
			continue
		}
		if !ok || before(c, &w, parted) {
			w, ok = *c, true
		}
	}
	if ok || g.functions == 0 || g.End <= g.Start {
		return w, ok
	}
	w = Window{Kind: Function, Start: math.MaxInt64, Number: -1, Steps: 1, Batch: math.NaN()}
	for i := range g.Windows {
		if c := &g.Windows[i]; c.Kind == Function && !c.Flags.Has(Timeless) {
			w.Start, w.End, ok = min(w.Start, c.Start), max(w.End, c.End), true
			if !(w.Batch >= c.Batch) {
				w.Batch = c.Batch
			}
			if !g.Promised { // it is alone in its trace
				w.Span = c.Span
			}
		}
	}
	return w, ok
}

// parted are the steps of which parts are told, where there are several steps.
func (g *Group) parted() map[pcommon.SpanID]struct{} {
	if len(g.Windows) < 2 || len(g.Own) == 0 {
		return nil
	}
	of := map[pcommon.SpanID]struct{}{}
	for i := range g.Own {
		if parent := g.Own[i].Parent; !parent.IsEmpty() {
			of[parent] = struct{}{}
		}
	}
	return of
}

// before orders windows of a group: steps first, then those of which parts are told, then the longest.
func before(a, b *Window, parted map[pcommon.SpanID]struct{}) bool {
	if a.Kind != b.Kind {
		return a.Kind < b.Kind
	}
	_, x := parted[a.Span]
	if _, y := parted[b.Span]; x != y {
		return x
	}
	if a.End-a.Start != b.End-b.Start {
		return a.End-a.Start > b.End-b.Start
	}
	return slices.Compare(a.Span[:], b.Span[:]) < 0
}

// source is one receiver of a run, and how far in time it has come.
type source struct {
	until int64     // ns: the latest end that it has sent
	last  time.Time // when it sent something
	ended bool

	// Whether it catches up: it reads old logs, faster than they were written. One that does not, and is behind, has another clock.
	live  bool
	since time.Time
	from  int64 // until, then
}

const (
	pace     = 2 * time.Second // how often it is measured
	catching = 3               // times as fast as time goes by
)

// Run is what is known of one run.
type Run struct {
	ID     string
	Groups map[pcommon.TraceID]*Group

	shares  map[pcommon.SpanID]Shares
	texts   map[string]uint32
	names   []string
	recent  [4]uint32 // texts that were asked for last
	turn    int
	fine    []bool // by the number of a name: its times have more than whole seconds
	sources map[string]*source
	wide    list     // groups that others may lie in by their time
	batches list     // batches of TransferQueue, and nothing else: none lies in another
	narrow  list     // groups of one process's time: a call of TransferQueue without an id
	fresh   []*Group // in none of the lists yet, or in one by an older time
	sorted  bool
	done    []*Group                    // closed, in the order of closing
	bytes   int64                       // about
	plain   []plain                     // steps, while nothing else is known of the run
	mixed   bool                        // something else is
	known   map[pcommon.SpanID]struct{} // of leaves, while Careful
	leaves  []Leaf                      // of traces without a window, by start where leavesSorted

	leavesSorted bool
	arrived      []arrival // of leaves, in order of coming
	// Lost is the end of the latest leaf that was forgotten before its time: a window that begins before it may lack leaves. It is 0 where none was.
	Lost  int64
	Ranks int64 // the most that a collective had
	// Apart is by how many ns the clocks of its hosts differ, where its collectives say that they do.
	Apart int64
	Used  time.Time
	Fresh bool // windows were closed that were not reported yet

	processes map[Process]stretch
}

type arrival struct {
	at time.Time
	n  int
}

// NewRun returns a run of which nothing is known.
func NewRun(id string) *Run {
	return &Run{
		ID: id, Groups: map[pcommon.TraceID]*Group{}, texts: map[string]uint32{"": 0}, names: []string{""}, sources: map[string]*source{},
		sorted: true, leavesSorted: true,
	}
}

const maxTexts = 65_536

// Number is the number of a text. Where a run has too many it is that of the empty text.
func (r *Run) Number(text string) uint32 {
	if text == "" {
		return 0
	}
	for _, n := range r.recent { // spans come in runs of one name
		if r.names[n] == text {
			return n
		}
	}
	n, ok := r.texts[text]
	if !ok {
		n = r.newText(text)
	}
	r.recent[r.turn%len(r.recent)] = n
	r.turn++
	return n
}

func (r *Run) newText(text string) uint32 {
	if len(r.names) >= maxTexts {
		return 0
	}
	n := uint32(len(r.names))
	text = string([]byte(text)) // it outlives the batch
	r.texts[text], r.names = n, append(r.names, text)
	return n
}

// Text is the text of a number.
func (r *Run) Text(n uint32) string { return r.names[n] }

// Group is the group of a trace, made where there is none.
func (r *Run) Group(id pcommon.TraceID, service string) *Group {
	g := r.Groups[id]
	if g == nil {
		g = &Group{ID: id, Service: service, Chunk: -1}
		r.Groups[id] = g
		r.fresh, r.sorted = append(r.fresh, g), false
		r.bytes += groupBytes
	}
	return g
}

// Of says of which service a window or a leaf of the group is. What the group is told by does not depend on what came first: it is the service of the calls of
// TransferQueue, else that of the steps, else the first by name.
func (g *Group) Of(service string, kind WindowKind) {
	order := [...]uint8{Function: 1, Step: 2, Pass: 3, Other: 4}[kind]
	if g.told == 0 || order < g.told || order == g.told && service < g.Service {
		g.Service, g.told = service, order
	}
}

// AddWindow adds a window to its group. It is false for one that is known already.
func (r *Run) AddWindow(g *Group, w Window, now time.Time) bool {
	if g.has(w.Span) {
		return false
	}
	g.note(w.Span)
	if g.Windows == nil {
		g.Windows = make([]Window, 0, g.expected())
	}
	if g.Windows = append(g.Windows, w); w.Kind == Function {
		g.functions++
	}
	g.widen(w.Start, w.End, w.Flags)
	r.noteTime(w.Name, w.End, w.Flags)
	r.bytes += windowBytes
	r.touch(g, now)
	return true
}

// AddOwn adds a leaf to the group whose trace it is in. It is false for one that is known already.
func (r *Run) AddOwn(g *Group, l Leaf, now time.Time) bool {
	if g.has(l.Span) {
		return false
	}
	g.note(l.Span)
	g.Own = append(g.Own, l)
	g.widen(l.Start, l.End, l.Flags)
	r.bytes += ownBytes
	r.touch(g, now)
	return true
}

// SetShares keeps the shares of a leaf that Shares is set of.
func (r *Run) SetShares(id pcommon.SpanID, of Shares) {
	if r.shares == nil {
		r.shares = map[pcommon.SpanID]Shares{}
	}
	r.shares[id] = of
}

// SharesOf are the shares of a leaf.
func (r *Run) SharesOf(l *Leaf) Shares {
	if !l.Shares {
		return Shares{}
	}
	return r.shares[l.Span]
}

// forgetShares forgets those of leaves.
func (r *Run) forgetShares(of []Leaf) {
	if len(r.shares) == 0 {
		return
	}
	for i := range of {
		if of[i].Shares {
			delete(r.shares, of[i].Span)
		}
	}
}

// expected is how many calls a group mostly has: growing costs as much again.
func (g *Group) expected() int {
	if g.Promised {
		return 16
	}
	return 1
}

// AddStage adds a stage to the group whose trace it is in. One that comes again is there twice, until Settled.
func (r *Run) AddStage(g *Group, s Stage, now time.Time) {
	if r.known != nil && slices.ContainsFunc(g.Stages, func(o Stage) bool { return o.Span == s.Span }) {
		return
	}
	if g.Stages == nil {
		g.Stages = make([]Stage, 0, 3*g.expected())
	}
	g.Stages = append(g.Stages, s)
	g.staged++
	g.widen(s.Start, s.End, s.Flags)
	r.bytes += stageBytes
	r.touch(g, now)
}

// Settled are the stages, each once, in order of time.
func (g *Group) Settled() []Stage {
	if !g.settled {
		slices.SortFunc(g.Stages, func(a, b Stage) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), slices.Compare(a.Span[:], b.Span[:]))
		})
		g.Stages = slices.CompactFunc(g.Stages, func(a, b Stage) bool { return a.Span == b.Span })
		g.settled = true
	}
	return g.Stages
}

func (r *Run) touch(g *Group, now time.Time) {
	g.Last, r.sorted, g.settled = now, false, false
}

// Careful says whether what is added may be there already, for a batch that was refused comes again. Else nothing is looked up for each leaf.
func (r *Run) Careful(careful bool) {
	if !careful {
		r.known = nil
		return
	}
	if r.known == nil {
		r.known = make(map[pcommon.SpanID]struct{}, len(r.leaves))
		for i := range r.leaves {
			r.known[r.leaves[i].Span] = struct{}{}
		}
	}
}

// AddLeaf adds a leaf whose trace has no window. One that comes again, from a source that was started anew, is there twice: Each passes over it.
func (r *Run) AddLeaf(l Leaf, now time.Time) {
	if r.known != nil {
		if _, ok := r.known[l.Span]; ok {
			return
		}
		r.known[l.Span] = struct{}{}
	}
	if n := len(r.leaves); n > 0 && compareLeaves(l, r.leaves[n-1]) < 0 {
		r.leavesSorted = false
	}
	r.leaves = append(r.leaves, l)
	r.noteTime(l.Name, l.End, l.Flags)
	r.bytes += LeafBytes
	if n := len(r.arrived); n > 0 && now.Sub(r.arrived[n-1].at) < time.Second {
		r.arrived[n-1].n++
	} else {
		r.arrived = append(r.arrived, arrival{now, 1})
	}
}

func compareLeaves(a, b Leaf) int {
	if c := cmp.Compare(a.Start, b.Start); c != 0 {
		return c
	}
	if c := cmp.Compare(a.End, b.End); c != 0 {
		return c
	}
	return slices.Compare(a.Span[:], b.Span[:])
}

// Heard notes how far in time a source has come.
func (r *Run) Heard(name string, until int64, now time.Time) {
	s := r.sources[name]
	if s == nil {
		s = &source{since: now, from: until}
		r.sources[string([]byte(name))] = s
	}
	s.until, s.last = max(s.until, until), now
	if passed := now.Sub(s.since); passed >= pace {
		s.live = s.until-s.from < catching*int64(passed)
		s.since, s.from = now, s.until
	}
}

// Behind says whether a source that reads old logs has not yet come to a time.
func (r *Run) Behind(until int64, now time.Time, wait time.Duration) bool {
	for _, s := range r.sources {
		if s.until < until && now.Sub(s.last) < wait && !s.live {
			return true
		}
	}
	return false
}

// Ended notes that nothing more comes of a source.
func (r *Run) Ended(name string) {
	if s := r.sources[name]; s != nil {
		s.ended = true
	}
}

// Unread says whether a source that has not ended has not come to a time, whatever time has passed.
func (r *Run) Unread(until int64) bool {
	for _, s := range r.sources {
		if s.until < until && !s.ended {
			return true
		}
	}
	return false
}

// Leaf is a leaf by its place, until Sort or Forget.
func (r *Run) Leaf(i int) *Leaf { return &r.leaves[i] }

// Leaves is how many leaves of traces without a window there are.
func (r *Run) Leaves() int { return len(r.leaves) }

// list is groups in order of their start.
type list struct {
	groups  []*Group
	longest int64 // ns
}

func (l *list) sort() {
	l.groups = slices.DeleteFunc(l.groups, func(g *Group) bool { return g.gone })
	slices.SortFunc(l.groups, func(a, b *Group) int {
		if c := cmp.Compare(a.Start, b.Start); c != 0 {
			return c
		}
		return slices.Compare(a.ID[:], b.ID[:])
	})
	l.longest = 0
	for _, g := range l.groups {
		l.longest = max(l.longest, g.End-g.Start)
	}
}

// from are the groups that begin at a time or later.
func (l *list) from(start int64) []*Group {
	i, _ := slices.BinarySearchFunc(l.groups, start, func(g *Group, t int64) int { return cmp.Compare(g.Start, t) })
	return l.groups[i:]
}

// Sort puts groups and leaves in order of time.
func (r *Run) Sort() {
	if !r.sorted {
		fresh := r.fresh
		for _, l := range r.lists() {
			for i, g := range l.groups {
				if r.listOf(g) != l { // it has a window of another kind by now
					fresh, l.groups[i] = append(fresh, g), &Group{gone: true}
				}
			}
		}
		for _, g := range fresh {
			l := r.listOf(g)
			l.groups = append(l.groups, g)
		}
		clear(fresh)
		r.fresh = fresh[:0]
		for _, l := range r.lists() {
			l.sort()
		}
		r.sorted = true
	}
	if !r.leavesSorted {
		slices.SortFunc(r.leaves, compareLeaves)
		r.leavesSorted = true
	}
}

func (r *Run) lists() [3]*list { return [...]*list{&r.wide, &r.batches, &r.narrow} }

func (r *Run) listOf(g *Group) *list {
	switch {
	case g.narrow():
		return &r.narrow
	case g.Promised && g.functions > 0 && g.functions == len(g.Windows):
		return &r.batches
	}
	return &r.wide
}

// narrow says whether the group is calls of one process, each alone in its trace.
func (g *Group) narrow() bool {
	return !g.Promised && len(g.Windows) > 0 && !slices.ContainsFunc(g.Windows, func(w Window) bool { return w.PID == 0 || w.Kind != Function })
}

// Open are the groups that are not closed, in order of their start. Sort comes before.
func (r *Run) Open() (open []*Group) {
	for _, l := range r.lists() {
		for _, g := range l.groups {
			if !g.Closed {
				open = append(open, g)
			}
		}
	}
	slices.SortStableFunc(open, func(a, b *Group) int { return cmp.Compare(a.Start, b.Start) })
	return open
}

// Within calls f with the groups that begin in a stretch of time, but with batches only where they are wanted. Sort comes before.
func (r *Run) Within(start, end int64, batches bool, f func(*Group)) {
	for _, l := range r.lists() {
		if l == &r.batches && !batches {
			continue
		}
		for _, g := range l.from(start) {
			if g.Start > end {
				break
			}
			f(g)
		}
	}
}

// Close closes a group.
func (r *Run) Close(g *Group, now time.Time) {
	g.Closed, g.Last, g.seen = true, now, nil
	r.done = append(r.done, g)
}

// forgetGroup forgets the group that was closed first.
func (r *Run) forgetGroup() {
	g := r.done[0]
	r.done[0] = nil
	r.done = r.done[1:]
	g.gone, r.sorted = true, false
	r.forgetShares(g.Own)
	delete(r.Groups, g.ID)
	r.bytes -= g.Bytes()
}

// Bytes is what the group takes, about.
func (g *Group) Bytes() int64 {
	return groupBytes + int64(len(g.Windows))*windowBytes + int64(len(g.Own))*ownBytes + g.staged*stageBytes
}

// Forget drops closed groups and leaves that came before a time.
func (r *Run) Forget(before time.Time) {
	for len(r.done) > 0 && r.done[0].Last.Before(before) {
		r.forgetGroup()
	}
	n := 0
	for len(r.arrived) > 0 && r.arrived[0].at.Before(before) {
		n += r.arrived[0].n
		r.arrived = r.arrived[1:]
	}
	r.drop(n)
	old := slices.IndexFunc(r.plain, func(p plain) bool { return !p.at.Before(before) })
	if old < 0 {
		old = len(r.plain)
	}
	r.plain = slices.Delete(r.plain, 0, old)
}

// plain is a step of a run of which nothing but steps is known.
type plain struct {
	trace   pcommon.TraceID
	window  Window
	service string
	at      time.Time
}

const mostPlain = 8192

// AddPlain keeps a step of a run of which nothing but steps is known: nothing can be said about it yet. It is false where something else is known.
func (r *Run) AddPlain(trace pcommon.TraceID, w Window, service string, now time.Time) bool {
	if r.mixed {
		return false
	}
	if len(r.plain) >= mostPlain {
		r.plain = r.plain[:copy(r.plain, r.plain[mostPlain/2:])]
	}
	r.plain = append(r.plain, plain{trace, w, service, now})
	return true
}

// Mix makes groups of the steps that were kept as plain: there is something to join now.
func (r *Run) Mix() {
	if r.mixed {
		return
	}
	r.mixed = true
	for _, p := range r.plain {
		g := r.Group(p.trace, p.service)
		g.Of(p.service, p.window.Kind)
		r.AddWindow(g, p.window, p.at)
	}
	r.plain = nil
}

// ShedGroups forgets the groups that were closed first, for want of room, until so many bytes are free, and says so to the windows that may have needed them.
func (r *Run) ShedGroups(over int64) (freed int64) {
	for freed < over && len(r.done) > 0 {
		g := r.done[0]
		freed += g.Bytes()
		r.Lost = max(r.Lost, g.End)
		r.forgetGroup()
	}
	return freed
}

// Shed drops the oldest leaves, for want of room, and says so to the windows that may have needed them.
func (r *Run) Shed(n int) {
	n = min(n, len(r.leaves))
	for i := range r.leaves[:n] {
		r.Lost = max(r.Lost, r.leaves[i].End)
	}
	for left := n; left > 0 && len(r.arrived) > 0; {
		take := min(left, r.arrived[0].n)
		r.arrived[0].n -= take
		if left -= take; r.arrived[0].n == 0 {
			r.arrived = r.arrived[1:]
		}
	}
	r.drop(n)
}

// drop drops the n leaves that are the oldest by their own time, which are those that came first, or nearly.
func (r *Run) drop(n int) {
	if n <= 0 {
		return
	}
	r.Sort()
	n = min(n, len(r.leaves))
	r.forgetShares(r.leaves[:n])
	r.leaves = r.leaves[:copy(r.leaves, r.leaves[n:])]
	r.bytes -= int64(n) * LeafBytes
}

// What is kept takes so many bytes, about; a group without what is in it.
const (
	LeafBytes   = 136
	groupBytes  = 360
	windowBytes = 96
	ownBytes    = 128
	stageBytes  = 40
	plainBytes  = 160
)

// Bytes is what the run takes, about.
func (r *Run) Bytes() int64 {
	return r.bytes + int64(len(r.shares))*128 + int64(len(r.names))*64 + int64(len(r.plain))*plainBytes + int64(len(r.processes))*processBytes
}

// Restore sets what is known of a group after a crash: a window, or only a time where it has no span.
func (r *Run) Restore(g *Group, w Window, functions bool, now time.Time) {
	g.Restored = true
	if functions {
		g.functions = max(g.functions, 1)
	}
	if functions || w.Span.IsEmpty() || w.Kind > Other {
		g.widen(w.Start, w.End, 0)
		return
	}
	w.Steps, w.Batch = 1, math.NaN()
	r.AddWindow(g, w, now)
}

// Reached is how far in time the sources have come.
func (r *Run) Reached() (until int64) {
	for _, s := range r.sources {
		until = max(until, s.until)
	}
	return until
}
