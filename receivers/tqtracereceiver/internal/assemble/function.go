package assemble

import (
	"cmp"
	"slices"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/tqline"
	"github.com/trainbridge/trainbridge/spans"
)

// Why a function, stage or operation is incomplete.
const (
	ReasonNoFunctionEnd = "no_function_end"
	ReasonNoGetEnd      = "no_get_end"
	ReasonNoComputeEnd  = "no_compute_end"
	ReasonNoPutEnd      = "no_put_end"
	ReasonNoClientEnd   = "no_client_end"
	// ReasonStageMissing: the call ended, but without the END of a stage: its line was lost (Ray's log deduplication).
	ReasonStageMissing = "stage_missing"
)

var reasonOfStage = [3]string{ReasonNoGetEnd, ReasonNoComputeEnd, ReasonNoPutEnd}

// function is an open call.
type function struct {
	g    *group
	name string
	pid  int64
	// t are the times of the events (tqline.FunctionStart … FunctionEnd). known are the events with a time, seen the events with a line of their own: a START's
	// time is also known from its END.
	t           [8]int64
	known, seen uint16
	state       tqline.Stage // the last event seen
	placed      int64        // place in g.at[state]
	first       int64        // place in g.all: the first known time
	cursor      int64        // end of the last client operation, to find the place of the next
	since       int64        // when the first line was read, ns
	batch       int64        // −1: unknown
	ratios      [3]float64   // see Function.Ratios
	source      spans.TimeSource
	keys        [3]Key      // made of FUNCTION_START, of FUNCTION_END, of the first line
	held        []tail.Held // its lines and its operations'
	ops         []*op
	fields      []Field

	prev, next *function // in Assembler's order of arrival
}

// fits reports whether the function may have a record with a function name (empty: none) and a pid (0: none).
func (f *function) fits(name string, pid int64) bool {
	return (name == f.name || name == "") && (pid == 0 || f.pid == 0 || pid == f.pid)
}

func (f *function) knows(e tqline.Stage) bool { return f.known>>e&1 != 0 }
func (f *function) saw(e tqline.Stage) bool   { return f.seen>>e&1 != 0 }

// isEnd reports whether e is the END of a stage; e−1 is its START then.
func isEnd(e tqline.Stage) bool {
	return e == tqline.GetEnd || e == tqline.ComputeEnd || e == tqline.PutEnd
}

// abs returns the absolute value of d.
func abs(d int64) int64 {
	if d < 0 {
		return -d
	}
	return d
}

// name returns the function name of a record as a string, made once for a row of records of the same function.
func (a *Assembler) name(g *group, raw []byte) string {
	if string(raw) != g.name {
		g.name = a.names.Text(raw)
	}
	return g.name
}

// open returns a new function whose first known moment is t (ns on the group's base). pid 0: the pid is the process's.
func (a *Assembler) open(g *group, name string, pid, t int64, at *At) *function {
	var f *function
	if n := len(a.freeFn); n > 0 {
		f = a.freeFn[n-1]
		a.freeFn = a.freeFn[:n-1]
	} else {
		f = &function{}
	}
	f.g, f.name, f.pid, f.first, f.since, f.source = g, name, pid, t, at.Since, at.Source
	if f.pid == 0 {
		f.pid = g.proc.PID
	}
	f.batch, f.ratios = -1, [3]float64{-1, -1, -1}
	g.all.add(t, f)
	f.prev = a.newest
	if a.newest != nil {
		a.newest.next = f
	} else {
		a.first = f
	}
	a.newest = f
	a.Open++
	return f
}

// addEvent records that f has a line of event e at t, and moves f to the list g.at[e], where the next event looks for f. An event that comes late, after its
// followers, leaves f in its list, and a time already known from an END stays.
func (f *function) addEvent(e tqline.Stage, t int64) {
	placed := f.seen != 0 // f is in a list of g.at
	f.seen |= 1 << e
	if placed && e < f.state { // late
		if !f.knows(e) {
			f.known |= 1 << e
			f.t[e] = t
		}
		return
	}
	if placed {
		f.g.at[f.state].remove(f.placed, f)
	}
	f.known |= 1 << e
	f.t[e], f.state, f.placed = t, e, t
	f.g.at[e].add(t, f)
}

// take keeps the values of a line for f: the first batch size, the pid, and unknown fields.
func (a *Assembler) take(f *function, l *tqline.Line) {
	if l.BatchSize >= 0 && f.batch < 0 {
		f.batch = l.BatchSize
	}
	if l.PID != 0 {
		f.pid = l.PID
	}
	for _, fl := range l.Fields[:l.N] {
		if len(f.fields) < tqline.MaxFields {
			f.fields = append(f.fields, a.field(fl))
		}
	}
}

// field copies an unknown field, up to maxName bytes of each text.
func (a *Assembler) field(f tqline.Field) Field {
	return Field{a.names.Text(f.Name[:min(len(f.Name), maxName)]), spans.Text(f.Value[:min(len(f.Value), maxName)])}
}

// hold keeps the current line unacknowledged until f leaves.
func (a *Assembler) hold(f *function) { f.held = append(f.held, a.lines.Hold()) }

// functionStart handles a FUNCTION_START: of a new function, of one whose other records came first, of one already sent (Late), or a duplicate.
func (a *Assembler) functionStart(g *group, l *tqline.Line, at *At) Fate {
	name := a.name(g, l.Func)
	tol := tolerance[g.base]
	var f *function
	// In an ordered log (None, too) a start is later than all known times, and every function has its FUNCTION_START: then no search is needed.
	n := len(g.all)
	outOfOrder := g.fragments > 0 || n > 0 && at.T <= g.all[n-1].t || at.T <= g.doneMax+tol
	if g.base != None && outOfOrder {
		for i := g.all.upper(at.T) - 1; i >= 0 && g.all[i].t == at.T; i-- {
			if o := g.all[i].v; o.saw(tqline.FunctionStart) && o.fits(name, l.PID) && g.base != Stamp { // several start in one millisecond
				return Duplicate
			}
		}
		f = g.findUnstarted(at.T, name, l.PID)
		if f == nil {
			if fate := g.startOfSent(at.T, name, l.PID); fate != Used {
				return fate
			}
		}
	}
	if f == nil {
		f = a.open(g, name, l.PID, at.T, at)
	} else { // the other records came first: the function begins earlier than known so far
		g.fragments--
		g.all.remove(f.first, f)
		f.first = at.T
		g.all.add(f.first, f)
	}
	f.addEvent(tqline.FunctionStart, at.T)
	f.keys[0].set('s', at.Raw)
	a.take(f, l)
	a.hold(f)
	return Used
}

// startOfSent reports whether a FUNCTION_START at t is of a function already sent: Late if the function lacked its START, Duplicate if its START was at t too,
// Used if of none. Stamps are no proof of a duplicate.
func (g *group) startOfSent(t int64, name string, pid int64) Fate {
	for i := range g.done {
		d := &g.done[i]
		if !d.knows(tqline.FunctionStart) || abs(d.t[tqline.FunctionStart]-t) > tolerance[g.base] || !d.is(name, pid) {
			continue
		}
		if !d.saw(tqline.FunctionStart) {
			d.seen |= 1 << tqline.FunctionStart
			return Late
		}
		if g.base != Stamp && d.t[tqline.FunctionStart] == t { // several start in one millisecond
			return Duplicate
		}
	}
	return Used
}

// findUnstarted returns the function of a late FUNCTION_START at t: the first without FUNCTION_START whose first known moment is within limit after t. nil:
// none.
func (g *group) findUnstarted(t int64, name string, pid int64) *function {
	if g.fragments == 0 {
		return nil
	}
	tol := tolerance[g.base]
	for i, n := g.all.upper(t-tol-1), 0; i < len(g.all) && g.all[i].t-t <= limit[g.base] && n < maxScan; i, n = i+1, n+1 {
		if f := g.all[i].v; !f.knows(tqline.FunctionStart) && f.fits(name, pid) {
			return f
		}
	}
	return nil
}

// stage handles GET_START … PUT_END. An END states its own start, and belongs to the function whose START was then; a START belongs to the function whose event
// before was just now. Otherwise lines were lost or are out of order (unusual).
func (a *Assembler) stage(g *group, l *tqline.Line, at *At) Fate {
	e, name := l.Stage, a.name(g, l.Func)
	start := at.T - l.Duration
	var f *function
	var ok bool
	if isEnd(e) {
		f, ok = g.at[e-1].near(start, tolerance[g.base], name, l.PID)
	} else {
		f, ok = g.at[e-1].before(at.T, tolerance[g.base], step[g.base], name, l.PID)
	}
	if !ok {
		var fate Fate
		f, fate = a.unusual(g, e, at.T, start, name, l.PID)
		if fate != Used {
			return fate
		}
	}
	if f == nil { // the lines before were lost
		f = a.open(g, name, l.PID, start, at)
		f.keys[2].set('f', at.Raw)
		g.fragments++
	}
	if isEnd(e) { // an END's own start counts, not the time of START's line
		f.known |= 1 << (e - 1)
		f.t[e-1] = start
	}
	f.addEvent(e, at.T)
	a.take(f, l)
	a.hold(f)
	if isEnd(e) && len(g.orphans) > 0 && e != tqline.ComputeEnd {
		a.takeOps(f, e)
	}
	return Used
}

// unusual finds the function of a record of stage e at t whose neighbours were lost, late or repeated; start is the START stated by an END. Tried in order: an
// open function with the record out of order, a function already sent, the latest function that came to the event before (before an END's START) within limit,
// the only function at an earlier event. nil and Used: none. A fate other than Used is of a repeated record, or of one of a function already sent.
func (a *Assembler) unusual(g *group, e tqline.Stage, t, start int64, name string, pid int64) (*function, Fate) {
	tol, lim := tolerance[g.base], limit[g.base]
	if g.base != None {
		if f, fate := g.outOfOrder(e, t, start, name, pid); f != nil || fate != Used {
			return f, fate
		}
		if fate := g.stageOfSent(e, t, start, name, pid); fate != Used {
			return nil, fate
		}
	}
	prev, at := e-1, t
	if isEnd(e) { // the START was lost
		prev, at = e-2, start
	}
	if f, ok := g.at[prev].before(at, tol, lim, name, pid); ok {
		return f, Used
	}
	// More lines were lost. If only one function has come to any earlier event and no further, take it.
	var only *function
	for k := range e {
		for i, n := g.at[k].upper(at+tol)-1, 0; i >= 0 && n < maxScan; i, n = i-1, n+1 {
			f := g.at[k][i].v
			hasOther := isEnd(e) && f.knows(e-1) && g.base != None // a START at another time than stated
			if !f.fits(name, pid) || hasOther {
				continue
			}
			if only != nil { // ambiguous
				return nil, Used
			}
			only = f
		}
	}
	return only, Used
}

// outOfOrder returns the open function of a record that comes after its followers: a START after its END, an END after the next event. Duplicate: a function
// has the same record already; stamps are no proof, as several records share a millisecond. nil and Used: none. start is the START stated by an END.
func (g *group) outOfOrder(e tqline.Stage, t, start int64, name string, pid int64) (*function, Fate) {
	tol := tolerance[g.base]
	for i, n := len(g.all)-1, 0; i >= 0 && n < maxScan; i, n = i-1, n+1 {
		f := g.all[i].v
		if !f.fits(name, pid) {
			continue
		}
		sameStart := !isEnd(e) || abs(f.t[e-1]-start) <= tol
		switch {
		case f.knows(e) && f.saw(e) && f.t[e] == t && sameStart && g.base != Stamp:
			return nil, Duplicate
		case f.knows(e) && !f.saw(e) && abs(f.t[e]-t) <= tol: // a START after its END
			return f, Used
		case isEnd(e) && !f.knows(e) && f.knows(e-1) && abs(f.t[e-1]-start) <= tol, // an END that states the time of f's START
			isEnd(e) && !f.knows(e) && !f.knows(e-1) && f.knows(e+1) && follows(f.t[e+1]-t, g.base): // or, the START lost, an END right before f's next event
			return f, Used
		}
	}
	return nil, Used
}

// follows reports whether an event that is d ns after another may be the next of the same function.
func follows(d int64, base Base) bool { return d >= -tolerance[base] && d <= step[base] }

// stageOfSent reports whether a record is of a function already sent: Duplicate if the function has the record, Late if the record is one that the function
// lacks, Used if of none. A START that is lacking comes right after the event before; an END states the START, or a time right after the event before the
// START. Stamps are no proof of a duplicate.
func (g *group) stageOfSent(e tqline.Stage, t, start int64, name string, pid int64) Fate {
	tol := tolerance[g.base]
	for i := range g.done {
		d := &g.done[i]
		if !d.is(name, pid) {
			continue
		}
		if d.knows(e) {
			switch {
			case abs(d.t[e]-t) > tol:
			case !d.saw(e):
				d.seen |= 1 << e
				return Late
			case g.base != Stamp:
				return Duplicate
			}
			continue
		}
		missing := d.knows(e-1) && follows(t-d.t[e-1], g.base)
		if isEnd(e) {
			missing = d.knows(e-1) && abs(d.t[e-1]-start) <= tol || d.knows(e-2) && follows(start-d.t[e-2], g.base)
		}
		if missing { // noted, so that the same record again is a Duplicate
			d.known, d.seen = d.known|1<<e, d.seen|1<<e
			d.t[e] = t
			return Late
		}
	}
	return Used
}

// functionEnd handles a FUNCTION_END. The candidates are tried in order: a function after its PUT_END (with times in µs corrected by untangle), one that
// started at the stated time, one without FUNCTION_START so far, one already sent with the same times (Duplicate), the only open one. Without any, the record
// is of a new function known only by its end.
func (a *Assembler) functionEnd(g *group, l *tqline.Line, at *At) Fate {
	name := a.name(g, l.Func)
	tol := tolerance[g.base]
	start := at.T - l.Duration
	f := g.findEnding(at.T, start, name, l.PID)
	if g.base == Perf || g.base == Epoch {
		f = g.untangle(f, at.T, start, name, l.PID)
	}
	if f == nil {
		f = g.startedAt(start, name, l.PID)
	}
	if f == nil && g.fragments > 0 {
		f = g.findUnstarted(start, name, l.PID)
	}
	if f == nil && g.base != None {
		for i := range g.done {
			d := &g.done[i]
			sameTimes := d.t[tqline.FunctionEnd] == at.T && abs(d.t[tqline.FunctionStart]-start) <= tol
			if d.name == name && d.knows(tqline.FunctionEnd) && sameTimes && g.base != Stamp {
				return Duplicate
			}
		}
	}
	if f == nil && len(g.all) == 1 { // the only open function, if without FUNCTION_START, and first known at or after the stated start
		only := g.all[0].v
		mayHave := !only.knows(tqline.FunctionStart) && only.first >= start-tol
		if mayHave && only.fits(name, l.PID) {
			f = only
		}
	}
	if f == nil { // a function known only by its end
		f = a.open(g, name, l.PID, start, at)
		g.fragments++
	}
	if !f.knows(tqline.FunctionStart) {
		// Its FUNCTION_START may wait alone, because the connecting lines were lost.
		onlyStart := uint16(1) << tqline.FunctionStart
		if o := g.startedAt(start, name, f.pid); o != nil && o != f && o.known == onlyStart {
			a.merge(f, o)
		}
	}
	if !f.knows(tqline.FunctionStart) {
		f.known |= 1 << tqline.FunctionStart
		g.fragments--
	}
	f.t[tqline.FunctionStart] = start
	f.keys[1].set('e', at.Raw)
	f.ratios = [3]float64{l.GetRatio, l.ComputeRatio, l.PutRatio}
	a.take(f, l)
	a.finish(f, at.T)
	return Used
}

// finish sets the time t of FUNCTION_END and sends the function.
func (a *Assembler) finish(f *function, t int64) {
	if f.seen != 0 { // f is in a list of g.at
		f.g.at[f.state].remove(f.placed, f)
	}
	f.t[tqline.FunctionEnd] = t
	f.known |= 1 << tqline.FunctionEnd
	f.seen |= 1 << tqline.FunctionEnd
	f.state = tqline.FunctionEnd
	a.leave(f, false)
}

// findEnding returns the function whose PUT_END is at t, and which began at start; among several the one that began closest to start. Of a function without
// FUNCTION_START only the first known moment is known, which must not be before start. nil: none.
func (g *group) findEnding(t, start int64, name string, pid int64) *function {
	l, tol := g.at[tqline.PutEnd], tolerance[g.base]
	var best *function
	gap := forever * 2 // more than any
	for i, n := l.upper(t+tol)-1, 0; i >= 0 && l[i].t >= t-tol && n < maxScan; i, n = i-1, n+1 {
		f := l[i].v
		if !f.fits(name, pid) {
			continue
		}
		d := abs(f.first - start)
		if !f.knows(tqline.FunctionStart) {
			if f.first < start-tol { // began before start
				continue
			}
		} else if d > tol && g.base != None { // without a clock the distance says nothing
			continue
		}
		if d < gap {
			best, gap = f, d
		}
	}
	return best
}

// untangle corrects two calls that took each other's START of a stage: when two processes get there within microseconds, the closest record before a START may
// be of the other call. The end decides: f (found by ending; nil: none), whose PUT_END was just before t, did not begin at start, but o did. From the first
// stage on where each may continue the other, they exchange what came before. The result is the ending function, f if nothing was wrong. nil: the
// PUT_END says nothing about this end, and the caller looks for the start alone (startedAt).
func (g *group) untangle(f *function, t, start int64, name string, pid int64) *function {
	if f != nil && (!f.saw(tqline.FunctionStart) || abs(f.first-start) <= 1e3) { // two roundings to 1 µs
		return f
	}
	o := g.startedAt(start, name, pid)
	if o == nil || o == f || !o.saw(tqline.FunctionStart) || f != nil && abs(o.first-start) >= abs(f.first-start) {
		return f
	}
	if f == nil { // the function with its PUT_END closest to t, whenever it began
		l, tol := g.at[tqline.PutEnd], tolerance[g.base]
		gap := tol + 1
		for i, n := l.upper(t+tol)-1, 0; i >= 0 && l[i].t >= t-tol && n < maxScan; i, n = i-1, n+1 {
			c := l[i].v
			if c == o { // the call's own end
				return nil
			}
			if c.fits(name, pid) && c.saw(tqline.FunctionStart) && abs(l[i].t-t) < gap {
				f, gap = c, abs(l[i].t-t)
			}
		}
		if f == nil {
			return nil
		}
	}
	// From e on f may be the continuation of o, and the other way round, unless o has come no further.
	for _, e := range [...]tqline.Stage{tqline.GetStart, tqline.ComputeStart, tqline.PutStart} {
		if f.mayFollow(e, o) && (o.mayFollow(e, f) || o.state == e-1) {
			g.swapHeads(f, o, e)
			return f
		}
	}
	// No exchange fits: f ends here only if it began at start, within the tolerance.
	if abs(f.first-start) <= tolerance[g.base] {
		return f
	}
	return nil
}

// mayFollow reports whether the part of f from e on could be o's.
func (f *function) mayFollow(e tqline.Stage, o *function) bool {
	if !f.knows(e) || !o.knows(e-1) {
		return false
	}
	return follows(f.t[e]-o.t[e-1], f.g.base)
}

// swapHeads exchanges the heads of f and o, what came before the event e: times, pid, key and batch size. An operation moves if its pid is now the other
// function's; a get without a pid moves if the get stage is in the head.
// The lines stay where they are held: both calls are about to leave.
func (g *group) swapHeads(f, o *function, e tqline.Stage) {
	for _, x := range [...]*function{f, o} {
		g.all.remove(x.first, x)
		g.at[x.state].remove(x.placed, x)
	}
	for i := range e {
		f.t[i], o.t[i] = o.t[i], f.t[i]
	}
	head := uint16(1)<<e - 1 // the bits of the events before e
	f.known, o.known = f.known&^head|o.known&head, o.known&^head|f.known&head
	f.seen, o.seen = f.seen&^head|o.seen&head, o.seen&^head|f.seen&head
	f.first, o.first = o.first, f.first
	f.pid, o.pid = o.pid, f.pid
	f.keys[0], o.keys[0] = o.keys[0], f.keys[0]
	if e > tqline.GetStart { // the head has GET_START, which states the batch size
		f.batch, o.batch = o.batch, f.batch
	}
	ops := slices.Concat(f.ops, o.ops)
	f.ops, o.ops = f.ops[:0], o.ops[:0]
	for _, c := range ops {
		other := f
		if c.f == f {
			other = o
		}
		inHead := c.kind == tqline.OpGet && e > tqline.GetStart
		if c.pid != 0 && c.pid == other.pid || c.pid == 0 && inHead {
			c.f = other
		}
		c.f.ops = append(c.f.ops, c)
	}
	for _, x := range [...]*function{f, o} { // back into the lists, with the new times
		if x.state < e {
			x.placed = x.t[x.state]
		}
		g.all.add(x.first, x)
		g.at[x.state].add(x.placed, x)
		slices.SortStableFunc(x.ops, func(a, b *op) int { return cmp.Compare(a.start, b.start) })
	}
}

// startedAt returns the open function whose FUNCTION_START was printed closest to start, within the tolerance. nil: none.
func (g *group) startedAt(start int64, name string, pid int64) *function {
	l, tol := g.all, tolerance[g.base]
	var best *function
	gap := tol + 1
	for i, n := l.upper(start+tol)-1, 0; i >= 0 && l[i].t >= start-tol && n < maxScan; i, n = i-1, n+1 {
		if f := l[i].v; f.knows(tqline.FunctionStart) && f.fits(name, pid) && abs(l[i].t-start) < gap {
			best, gap = f, abs(l[i].t-start)
		}
	}
	return best
}

// merge moves all of o, known only by its FUNCTION_START, into f, which lacks one. o is gone then.
func (a *Assembler) merge(f, o *function) {
	g := f.g
	f.t[tqline.FunctionStart], f.keys[0] = o.t[tqline.FunctionStart], o.keys[0]
	f.known |= 1 << tqline.FunctionStart
	f.seen |= o.seen
	g.fragments--
	f.held = append(f.held, o.held...)
	o.held = o.held[:0]
	if f.batch < 0 {
		f.batch = o.batch
	}
	if o.pid != 0 {
		f.pid = o.pid
	}
	f.fields = append(f.fields, o.fields...)
	for _, c := range o.ops {
		c.f = f
		f.ops = append(f.ops, c)
	}
	o.ops = o.ops[:0]
	f.since = min(f.since, o.since)
	g.at[o.state].remove(o.placed, o)
	a.unlink(o)
	a.free(o)
}

// unlink removes f from the order of arrival and from g.all. The caller removes f from g.at.
func (a *Assembler) unlink(f *function) {
	f.g.all.remove(f.first, f)
	if f.prev != nil {
		f.prev.next = f.next
	} else {
		a.first = f.next
	}
	if f.next != nil {
		f.next.prev = f.prev
	} else {
		a.newest = f.prev
	}
	a.Open--
}

// free empties a function for reuse.
func (a *Assembler) free(f *function) {
	clear(f.fields)
	clear(f.ops)
	*f = function{held: f.held[:0], ops: f.ops[:0], fields: f.fields[:0]}
	a.freeFn = append(a.freeFn, f)
}

// leave sends f to Out, with its stages and operations in wall time, and acknowledges its lines. open: without FUNCTION_END.
func (a *Assembler) leave(f *function, open bool) {
	g := f.g
	if open {
		g.at[f.state].remove(f.placed, f)
		if !f.knows(tqline.FunctionStart) {
			g.fragments--
		}
	}
	off, source := g.wall(f.source)
	begin, end := f.span()
	out := Function{
		Who: Who{g.proc.Host, f.pid}, Trace: g.trace, Name: f.name, Source: source, BatchSize: f.batch, Ratios: f.ratios,
		OpsFrom: len(a.Out.Ops), FieldsFrom: len(a.Out.Fields),
	}
	// The key is by the first of the lines FUNCTION_START, FUNCTION_END and any other: by the same line each time the log is read.
	out.Key = f.keys[2]
	for _, k := range f.keys[:2] {
		if k.n > 0 {
			out.Key = k
			break
		}
	}
	f.stages(&out, end, off, open)
	a.leaveOps(f, &out, end, off, source)
	if open {
		out.Start, out.End = begin+off, end+off
	} else {
		out.Start, out.End = begin+off, f.t[tqline.FunctionEnd]+off
	}
	out.OpsTo = len(a.Out.Ops)
	out.FieldsFrom = len(a.Out.Fields)
	a.Out.Fields = append(a.Out.Fields, f.fields...)
	out.FieldsTo = len(a.Out.Fields)
	for _, h := range f.held {
		a.lines.Release(h)
	}
	out.Place = a.lines.Place()
	a.Out.Functions = append(a.Out.Functions, out)
	g.remember(f)
	a.unlink(f)
	a.free(f)
}

// span returns the first and the last known moment of a function and its operations.
func (f *function) span() (begin, end int64) {
	begin, end = f.first, f.first
	if f.knows(tqline.FunctionStart) {
		begin = f.t[tqline.FunctionStart]
	}
	for e := range f.t {
		if f.knows(tqline.Stage(e)) {
			end = max(end, f.t[e])
		}
	}
	for _, o := range f.ops {
		end = max(end, o.start, o.end) // o.end is 0 while open
	}
	return begin, end
}

// stages sets the stages of a leaving function, and why the function is incomplete: of several incomplete stages the last gives the reason. end is the
// function's last known moment, off the difference to wall time. open: the function has no FUNCTION_END.
func (f *function) stages(out *Function, end, off int64, open bool) {
	for i := range out.Stages {
		st, e := &out.Stages[i], tqline.GetEnd+tqline.Stage(2*i)
		switch {
		case f.knows(e):
			*st = Stage{Start: f.t[e-1] + off, End: f.t[e] + off, Known: true}
		case f.knows(e - 1):
			// The stage ended before the next known event; without one, the stage is drawn up to the last known moment.
			to := max(f.t[e-1], end)
			for next := e + 1; int(next) < len(f.t); next++ {
				if f.knows(next) {
					to = max(f.t[e-1], f.t[next])
					break
				}
			}
			why := ReasonStageMissing
			if open {
				why = reasonOfStage[i]
			}
			*st = Stage{Start: f.t[e-1] + off, End: to + off, Known: true, Incomplete: why}
			out.Incomplete = why
		case f.ratios[i] > 0: // FUNCTION_END says that the stage took time
			out.Incomplete = ReasonStageMissing
		}
	}
	if open && out.Incomplete == "" {
		out.Incomplete = ReasonNoFunctionEnd
	}
}

// leaveOps sends the operations of a leaving function. One without END is drawn up to the end of its stage, or else up to end, the function's last known
// moment.
func (a *Assembler) leaveOps(f *function, out *Function, end, off int64, source spans.TimeSource) {
	for _, o := range f.ops {
		if !o.ended {
			f.g.open[o.kind].remove(o.start, o)
			to := end
			for i := range out.Stages {
				if st := &out.Stages[i]; st.Known && o.kind == opOfStage[i] && st.End >= o.start+off {
					to = st.End - off
				}
			}
			o.end = max(o.start, to)
		}
		a.Out.Ops = append(a.Out.Ops, a.snapshot(o, off, source, o.reason()))
		a.freeOp(o)
	}
}

// wall returns the difference between wall time and a time of the group, ns, and how well wall time is known.
func (g *group) wall(source spans.TimeSource) (int64, spans.TimeSource) {
	if g.base != Perf {
		return 0, source
	}
	off, _ := g.proc.Anchor.Offset()
	if g.proc.Anchor.Guessed() {
		return off, spans.TimeSynthetic
	}
	if g.proc.Anchor.Coarse() {
		return off, spans.TimeAnchoredSecond
	}
	return off, spans.TimeAnchored
}

// remember keeps a function just sent for late lines, and forgets the oldest of maxDone.
func (g *group) remember(f *function) {
	d := left{f.name, f.pid, f.known, f.seen, f.t}
	if f.knows(tqline.FunctionStart) {
		g.doneMax = max(g.doneMax, f.t[tqline.FunctionStart])
	}
	if len(g.done) < maxDone {
		g.done = append(g.done, d)
		return
	}
	g.done[g.doneNext] = d
	g.doneNext = (g.doneNext + 1) % maxDone
}
