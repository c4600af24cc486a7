package assemble

import (
	"slices"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/tqline"
	"github.com/trainbridge/trainbridge/spans"
)

// op is a client operation, open or waiting for its function to leave.
type op struct {
	g          *group
	f          *function // nil: none found
	kind       tqline.Op
	name       string // of the function; "": not printed
	pid        int64
	start, end int64 // ns on the group's base
	ended      bool  // the END was seen
	size       int64 // as in Op, also batch and reported
	batch      int64
	reported   float64
	source     spans.TimeSource
	startKey   Key // n is 0: no START was seen
	endKey     Key
	held       []tail.Held
	fields     []Field

	since, due int64    // ns: time of reading the first line; end of lingering
	queue      *opQueue // where the operation is in
	prev, next *op      // in queue
}

// fits reports whether the operation may have a record with a function name (empty: none) and a pid (0: none).
func (o *op) fits(name string, pid int64) bool {
	return (name == "" || o.name == "" || name == o.name) && (pid == 0 || o.pid == 0 || pid == o.pid)
}

// reason returns why the operation is incomplete; "": complete.
func (o *op) reason() string {
	if o.ended {
		return ""
	}
	return ReasonNoClientEnd
}

// opOfStage is the operation of each stage of a function. The compute stage has none: OpClear is in no function.
var opOfStage = [3]tqline.Op{tqline.OpGet, tqline.OpClear, tqline.OpPut}

// opQueue holds operations without a function in order of arrival.
type opQueue struct {
	head, tail *op
	n          int
}

// push puts an operation at the end.
func (q *opQueue) push(o *op) {
	o.queue, o.prev, o.next = q, q.tail, nil
	if q.tail != nil {
		q.tail.next = o
	} else {
		q.head = o
	}
	q.tail = o
	q.n++
}

// remove removes an operation from the queue.
func (q *opQueue) remove(o *op) {
	if o.prev != nil {
		o.prev.next = o.next
	} else {
		q.head = o.next
	}
	if o.next != nil {
		o.next.prev = o.prev
	} else {
		q.tail = o.prev
	}
	o.queue, o.prev, o.next = nil, nil, nil
	q.n--
}

// client handles a record of a client operation: TQ_CLIENT_… of a [TQ-DETAIL], or of a [TQ-LOG].
func (a *Assembler) client(g *group, l *tqline.Line, at *At) Fate {
	name := ""
	if len(l.Func) > 0 {
		name = a.name(g, l.Func)
	}
	switch {
	case g.printedTwice(l, at):
		return Duplicate
	case l.Stage == tqline.ClientEnd:
		return a.clientEnd(g, l, at, name)
	}
	return a.clientStart(g, l, at, name)
}

// clientEnd handles the END of an operation, whose START is open at the stated time, or was lost: then TooMany is returned if its function is full. Late: see
// placeEnded.
func (a *Assembler) clientEnd(g *group, l *tqline.Line, at *At, name string) Fate {
	start := at.T - l.Duration
	open := &g.open[l.Op]
	o, ok := open.near(start, tolerance[g.base], name, l.PID)
	if !ok { // the stated start may be later than START, because the writer reads its clock after the print
		o, ok = open.before(start, tolerance[g.base], limit[g.base], name, l.PID)
	}
	if ok {
		open.remove(o.start, o)
		if o.queue != nil {
			o.queue.remove(o)
		}
	} else {
		o = a.newOp(g, l, name, at)
		if a.full(g, l.Op, start, at.T, name, l.PID) {
			a.freeOp(o)
			return TooMany
		}
	}
	if o.startKey.n == 0 {
		g.startless++
	}
	o.start, o.end, o.ended = start, at.T, true
	o.endKey.set('e', at.Raw)
	if g.base == Stamp { // many end in one millisecond
		o.endKey.add(l.Duration)
	}
	a.setValues(o, l)
	return a.placeEnded(g, o)
}

// clientStart handles the START of an operation. An operation whose END came first gets its START. Any other waits for its END: in its function, if one has a
// stage for it now (TooMany: with maxOps operations already), else on its own.
func (a *Assembler) clientStart(g *group, l *tqline.Line, at *At, name string) Fate {
	if g.startless > 0 && g.base != None { // without a clock (None) the order of the lines is the order of the events: no END comes first
		o := g.opWithoutStart(l, at.T, name)
		if o != nil { // its END came first
			g.startless--
			o.startKey.set('s', at.Raw)
			a.setValues(o, l)
			if o.f != nil {
				o.f.held = append(o.f.held, a.lines.Hold())
			} else {
				o.held = append(o.held, a.lines.Hold())
			}
			return Used
		}
	}
	o := a.newOp(g, l, name, at)
	if !l.Log { // a [TQ-LOG] is of no function
		o.f = g.functionAround(l.Op, at.T, at.T, name, l.PID)
	}
	if o.f != nil && len(o.f.ops) >= maxOps {
		a.freeOp(o)
		return TooMany
	}
	o.start = at.T
	o.startKey.set('s', at.Raw)
	a.setValues(o, l)
	o.held = append(o.held, a.lines.Hold())
	g.open[l.Op].add(o.start, o)
	if o.f != nil {
		a.give(o, o.f)
		return Used
	}
	a.waiting.push(o)
	return Used
}

// printedTwice reports whether the same record of an operation was among the last sixteen: a logger that also passes its lines to the root logger prints each
// twice. Only times in µs are proof.
func (g *group) printedTwice(l *tqline.Line, at *At) bool {
	if g.base != Perf && g.base != Epoch {
		return false
	}
	// Different records have the same mark only by chance: the factor spreads the time over all bits.
	mark := uint64(at.T)*0x9e3779b97f4a7c15 ^ uint64(l.Duration)<<8 ^ uint64(l.PID)<<3 ^ uint64(l.Op)<<1 ^ uint64(l.Stage&1)
	for _, p := range g.prints {
		if p == mark {
			return true
		}
	}
	g.prints[g.printNext%len(g.prints)] = mark
	g.printNext++
	return false
}

// opWithoutStart returns the ended operation whose START comes only now, at t, among the last maxScan without a function, and the last 8 of each of the last
// maxScan open functions. nil: none.
func (g *group) opWithoutStart(l *tqline.Line, t int64, name string) *op {
	match := func(o *op) bool {
		return o.ended && o.startKey.n == 0 && o.kind == l.Op && o.fits(name, l.PID) && follows(o.start-t, g.base)
	}
	for i := len(g.orphans) - 1; i >= max(0, len(g.orphans)-maxScan); i-- {
		if match(g.orphans[i]) {
			return g.orphans[i]
		}
	}
	for i := len(g.all) - 1; i >= max(0, len(g.all)-maxScan); i-- {
		ops := g.all[i].v.ops
		for j := len(ops) - 1; j >= max(0, len(ops)-8); j-- {
			if match(ops[j]) {
				return ops[j]
			}
		}
	}
	return nil
}

// full reports whether the function of an operation has its maximum of operations.
func (a *Assembler) full(g *group, kind tqline.Op, start, end int64, name string, pid int64) bool {
	f := g.functionAround(kind, start, end, name, pid)
	return f != nil && len(f.ops) >= maxOps
}

// placeEnded adds a finished operation to its function: the one that has it, or one with a stage around it. Without a function the operation is sent if of a
// [TQ-LOG], is dropped if its function was sent already (Late), or waits for late records of its function. Without a clock (None) no record is late: the order
// of the lines is the order of the events.
func (a *Assembler) placeEnded(g *group, o *op) Fate {
	if o.f != nil {
		o.f.cursor = max(o.f.cursor, o.end)
		o.f.held = append(o.f.held, a.lines.Hold())
		return Used
	}
	if g.log { // [TQ-LOG] records know no functions
		a.leaveOp(o, "")
		return Used
	}
	if f := g.functionAround(o.kind, o.start, o.end, o.name, o.pid); f != nil {
		o.held = append(o.held, a.lines.Hold())
		a.give(o, f)
		f.cursor = max(f.cursor, o.end)
		return Used
	}
	if g.base != None && g.wasDuring(o) {
		for _, h := range o.held {
			a.lines.Release(h)
		}
		a.freeOp(o)
		return Late
	}
	o.held = append(o.held, a.lines.Hold())
	o.due = a.now + linger
	a.lingering.push(o)
	g.orphans = append(g.orphans, o)
	return Used
}

// newOp returns the operation of a record, without values.
func (a *Assembler) newOp(g *group, l *tqline.Line, name string, at *At) *op {
	var o *op
	if n := len(a.freeOps); n > 0 {
		o = a.freeOps[n-1]
		a.freeOps = a.freeOps[:n-1]
	} else {
		o = &op{}
	}
	o.g, o.kind, o.name, o.pid, o.since, o.source = g, l.Op, name, l.PID, at.Since, at.Source
	o.size, o.batch, o.reported = -1, -1, -1
	a.Open++
	return o
}

// setValues sets the values of a record on its operation.
func (a *Assembler) setValues(o *op, l *tqline.Line) {
	if l.DataSize >= 0 {
		o.size = l.DataSize
	}
	if l.BatchSize >= 0 {
		o.batch = l.BatchSize
	}
	if l.Throughput >= 0 {
		o.reported = l.Throughput
	}
	if l.PID != 0 {
		o.pid = l.PID
	}
	for _, f := range l.Fields[:l.N] {
		if len(o.fields) < tqline.MaxFields {
			o.fields = append(o.fields, a.field(f))
		}
	}
}

// give moves an operation and its lines to a function.
func (a *Assembler) give(o *op, f *function) {
	o.f = f
	f.ops = append(f.ops, o)
	f.held = append(f.held, o.held...)
	o.held = o.held[:0]
}

// functionAround returns the function with a stage around an operation from start to end: a get stage for a get, a put stage for a put. Tried in order: a stage
// that started just before, the open stage with the least time since its start or its last operation, the shortest stage around both times that has ended. Only
// the last maxScan functions are looked at. nil: none, as for kinds in no function.
func (g *group) functionAround(kind tqline.Op, start, end int64, name string, pid int64) *function {
	open, e := tqline.GetStart, tqline.GetEnd // the events of the stage
	switch kind {
	case tqline.OpGet:
	case tqline.OpPut:
		open, e = tqline.PutStart, tqline.PutEnd
	default:
		return nil
	}
	tol := tolerance[g.base]
	l := g.at[open]
	// The first operation follows its stage's start at once.
	if f, ok := l.before(start, tol, step[g.base], name, pid); ok {
		return f
	}
	// A further operation follows the operation before.
	var best *function
	gap := forever * 2
	for i, n := l.upper(start+tol)-1, 0; i >= 0 && n < maxScan; i, n = i-1, n+1 {
		if f := l[i].v; f.fits(name, pid) {
			if d := start - max(l[i].t, f.cursor); d >= -tol && d < gap {
				best, gap = f, d
			}
		}
	}
	if best != nil {
		return best
	}
	// Late: the stage has ended. The shortest around the operation is the likeliest.
	for i, n := g.all.upper(start+tol)-1, 0; i >= 0 && n < maxScan; i, n = i-1, n+1 {
		if f := g.all[i].v; f.fits(name, pid) && f.knows(e) && start >= f.t[e-1]-tol && end <= f.t[e]+tol && f.t[e]-f.t[e-1] < gap {
			best, gap = f, f.t[e]-f.t[e-1]
		}
	}
	return best
}

// wasDuring reports whether a function already sent, which may have o by name and pid, had a stage around o: a put stage for a put, else a get stage, as a
// [TQ-DETAIL] is of either. Without its END a stage lasted until the next known event. g has a clock: without one, all times are within the tolerance.
func (g *group) wasDuring(o *op) bool {
	e, tol := tqline.GetEnd, tolerance[g.base]
	if o.kind == tqline.OpPut {
		e = tqline.PutEnd
	}
	for i := range g.done {
		d := &g.done[i]
		if !d.knows(e-1) || !d.is(o.name, o.pid) || o.start < d.t[e-1]-tol {
			continue
		}
		for next := e; int(next) < len(d.t); next++ { // the stage's end, or the next known event
			if d.knows(next) {
				if o.end <= d.t[next]+tol {
					return true
				}
				break
			}
		}
	}
	return false
}

// takeOps moves to f the operations without a function that lie within its stage ended by e, now that both ends of the stage are known: of the last maxScan
// operations, and up to maxOps in f.
func (a *Assembler) takeOps(f *function, e tqline.Stage) {
	g := f.g
	kind, tol := tqline.OpGet, tolerance[g.base]
	if e == tqline.PutEnd {
		kind = tqline.OpPut
	}
	for i := len(g.orphans) - 1; i >= max(0, len(g.orphans)-maxScan); i-- {
		o := g.orphans[i]
		within := o.start >= f.t[e-1]-tol && o.end <= f.t[e]+tol
		if o.kind != kind || !f.fits(o.name, o.pid) || !within || len(f.ops) >= maxOps {
			continue
		}
		o.queue.remove(o)
		g.orphans = slices.Delete(g.orphans, i, i+1)
		a.give(o, f)
	}
}

// leaveOp sends an operation without a function to Out.Lone. reason is why the operation is incomplete; "": complete.
func (a *Assembler) leaveOp(o *op, reason string) {
	g := o.g
	if o.queue != nil {
		o.queue.remove(o)
	}
	if i := slices.Index(g.orphans, o); i >= 0 {
		g.orphans = slices.Delete(g.orphans, i, i+1)
	}
	if !o.ended { // nothing is known of its end
		g.open[o.kind].remove(o.start, o)
		o.end = o.start
	}
	off, source := g.wall(o.source)
	s := a.snapshot(o, off, source, reason)
	if s.PID == 0 {
		s.PID = g.proc.PID
	}
	for _, h := range o.held {
		a.lines.Release(h)
	}
	s.Place = a.lines.Place()
	a.Out.Lone = append(a.Out.Lone, s)
	a.freeOp(o)
	a.settle(g)
}

// snapshot returns an operation as sent, its times by off in wall time.
func (a *Assembler) snapshot(o *op, off int64, source spans.TimeSource, reason string) Op {
	s := Op{
		Who: Who{o.g.proc.Host, o.pid}, Trace: o.g.trace, Name: o.name, Source: source, Kind: o.kind, Key: o.startKey,
		Start: o.start + off, End: o.end + off, BatchSize: o.batch, Size: o.size, Reported: o.reported, Incomplete: reason, FieldsFrom: len(a.Out.Fields),
	}
	// A replay always has the END; the START may be in a file that was rotated away.
	if o.endKey.n > 0 {
		s.Key = o.endKey
	}
	a.Out.Fields = append(a.Out.Fields, o.fields...)
	s.FieldsTo = len(a.Out.Fields)
	return s
}

// freeOp empties an operation for reuse.
func (a *Assembler) freeOp(o *op) {
	if o.ended && o.startKey.n == 0 {
		o.g.startless--
	}
	clear(o.fields)
	*o = op{held: o.held[:0], fields: o.fields[:0]}
	a.freeOps = append(a.freeOps, o)
	a.Open--
}
