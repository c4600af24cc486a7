package stepjoinprocessor

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/why"
	"github.com/trainbridge/trainbridge/spans"
)

// joined is a leaf of another trace, assigned to a group.
type joined struct {
	leaf *facts.Leaf
	by   string // the clue to the group, as in spans.AttrJoinBy
	at   int64  // beginning as drawn, ns
}

// end returns the end of the leaf as drawn, ns.
func (j *joined) end() int64 { return j.at + j.leaf.End - j.leaf.Start }

// deriver makes the spans added to groups. The memory is reused.
type deriver struct {
	p        *stepJoin
	resolver facts.Resolver
	scratch  breakdown.Scratch
	times    breakdown.Breakdown // of the window at hand
	history  *why.History
	sheet    verdict.Sheet
	pieces   []breakdown.Piece
	joined   []joined
	calls    []facts.Leaf                      // windows of other traces within the window, as leaves
	callBy   []string                          // of each of calls: joined.by
	parents  map[pcommon.SpanID]pcommon.SpanID // of the parts of a step
	waits    []pcommon.SpanID                  // the parts of a step that wait for another process
	between  bool                              // checkpoints and evaluations among the parts of the step lie between two steps
	timers   []why.Timer
	loads    map[pcommon.SpanID]load // by the span of the step
	loader   why.Loader
	seconds  []float64
	ranks    int64 // of the job in the window; 0: unknown
	gpus     windowProcesses
	unsure   bool // clocks apart: parts of other hosts may lie in the window, and are not among d.pieces
	counts   struct{ joined, ambiguous int64 }
	out      *spans.Batch // takes the spans of this round, also breakdowns held before that now have their verdict; set by closeGroups
	free     []*plain     // for reuse
}

// derive makes the spans of a group that is being closed: our root of the trace, if the trace is to have one (rooted), copies of passes without a clock, and
// the content of the main window. Spans that the ledger (p.ledger) knows are not made again. placed: some part of the group has a clock. p.mu is held and the
// run sorted.
func (d *deriver) derive(out *spans.Batch, r *facts.Run, g *facts.Group, placed bool) {
	res := spans.Resource{Service: g.Service, RunID: r.ID}
	w, hasWindow := g.Main()
	top := d.topSpan(g, &w, hasWindow)
	lossesReachWindow := r.Lost > 0 && r.Lost >= w.Start && !w.Flags.Has(facts.Timeless)
	if hasWindow && lossesReachWindow {
		g.SetPartial(r.LostBy)
	}
	if r.Sampled && !r.RecordOnly { // collectives were left out by sampling, and no record of them came either (record_only)
		g.SetPartial(spans.PartialSampled)
	}
	if !placed && d.p.ledger.has(g.ID, pcommon.SpanID{}) { // passes without a clock whose step was sent and forgotten: nothing places the copies
		return
	}
	d.addRootAndUnplaced(out, res, r, g, &w, hasWindow, placed)
	window := w.Span
	if window.IsEmpty() { // all functions of a batch together have no span, and an empty id in the ledger means the root
		window = spans.SpanID(g.ID, spans.SpanBreakdown)
	}
	if !hasWindow || d.p.ledger.has(g.ID, window) {
		return
	}
	before := out.Len()
	d.deriveWindow(out, res, r, g, &w, top)
	if out.Len() != before { // else no span was made, or the breakdown is held for its verdict
		d.p.ledger.note(g.ID, window)
	}
}

// deriveWindow adds the content of a group's main window, below top: aggregates and copies of the joined leaves of other traces, and the breakdown. A step with
// exactly one TransferQueue batch that has a root gets this content in the trace of the batch instead, with links both ways.
func (d *deriver) deriveWindow(out *spans.Batch, res spans.Resource, r *facts.Run, g *facts.Group, w *facts.Window, top pcommon.SpanID) {
	if twin := r.Twin(g, w); twin != nil { // another log has the step in the trace of an id: the content is added to that trace
		if main, _ := twin.Main(); twin.Promised { // a copy of the twin in this trace leads to the content
			d.addCopy(out, res, g.ID, top, r.Text(twin.Name()), twin.Start, twin.End, twin.ID, d.topSpan(twin, &main, true), spans.JoinByIteration, spans.TimeDerived)
		}
		return
	}
	d.ranks = r.RanksAt(w)
	home, parent := g, top
	if batch := d.collect(r, g, w); batch != nil {
		home, parent = batch, spans.RootID(batch.ID)
		d.copyStep(out, res, r, g, w, home, parent)
	}
	d.addAggregates(out, res, r, w, home, parent)
	d.addBreakdown(out, res, r, g, w, home, parent)
}

// topSpan returns the id of the span that represents the group, the parent of added spans: our root of the trace, else the main window w; without a window
// always the id of the root.
func (d *deriver) topSpan(g *facts.Group, w *facts.Window, hasWindow bool) pcommon.SpanID {
	if rooted(g) || !hasWindow {
		return spans.RootID(g.ID)
	}
	return w.Span
}

// addRoot adds the promised root of the trace: from the group's first to last moment, named after the TransferQueue batch or the step. If no part of the group
// has a clock, the made-up times count.
func (d *deriver) addRoot(out *spans.Batch, res spans.Resource, g *facts.Group, w *facts.Window, hasWindow bool) {
	name, source := spans.SpanStepRoot, spans.TimeDerived
	if g.Functions() > 0 {
		name = spans.SpanTQBatch
	}
	start, end := g.Start, g.End
	if end == 0 { // nothing has a place in time
		source = spans.TimeSynthetic
		for i := range g.Own {
			start, end = extendRange(start, end, g.Own[i].Start, g.Own[i].End)
		}
		for _, s := range g.Stages {
			start, end = extendRange(start, end, s.Start, s.End)
		}
		for i := range g.Windows {
			start, end = extendRange(start, end, g.Windows[i].Start, g.Windows[i].End)
		}
	}
	s := out.Add(res, spans.Span{
		Trace: g.ID, ID: spans.RootID(g.ID), Name: name, Is: spans.KindRoot, Kind: ptrace.SpanKindInternal, Start: start, End: end, Source: source, Attributes: 3,
	})
	s.Attributes().PutStr(spans.AttrJoinBy, spans.JoinByID)
	if hasWindow && w.Kind == facts.Step && w.Number >= 0 {
		s.Attributes().PutInt(spans.AttrIteration, w.Number)
	}
	putPartial(s, g.Partial)
}

// extendRange returns the union of two time ranges; end 0: the first is still empty.
func extendRange(start, end, from, to int64) (newStart, newEnd int64) {
	if end == 0 {
		return from, to
	}
	return min(start, from), max(end, to)
}

// putPartial marks a span as partial, with the reason (spans.AttrJoinPartialReason). With an empty reason the span is complete, and unchanged.
func putPartial(s ptrace.Span, reason string) {
	if reason != "" {
		s.Attributes().PutBool(spans.AttrJoinPartial, true)
		s.Attributes().PutStr(spans.AttrJoinPartialReason, reason)
	}
}

// collect finds the content of the window w of group g: d.pieces for the breakdown, and d.joined, the leaves of other traces. It returns the group of the
// TransferQueue batch within a step, if exactly one exists and certainly lies in the step, and the step's own trace has no batch; else nil.
//
// A leaf counts in the breakdown of each window around it, but is joined (drawn) only in the innermost.
func (d *deriver) collect(r *facts.Run, g *facts.Group, w *facts.Window) (batch *facts.Group) {
	d.pieces, d.joined, d.calls, d.callBy = d.pieces[:0], d.joined[:0], d.calls[:0], d.callBy[:0]
	d.unsure = false
	d.resolver.Tolerance = d.p.cfg.Tolerance
	d.gpus.begin(r, w)
	d.addOwn(r, g, w)
	if w.Flags.Has(facts.Timeless) || r.OnlySteps() { // only parts of the window's own trace are known to be within
		return nil
	}
	// Other traces with windows of their own: batches, functions and passes.
	batches := 0
	isCall := w.Kind == facts.Pass || w.Kind == facts.Function && !g.Promised // contains no other window
	if !isCall && r.ID != "" {
		r.EachGroup(w.Start-slack, w.End+slack, w.Kind != facts.Function, func(o *facts.Group) {
			bothBatches := w.Kind == facts.Function && o.Functions() > 0 // a batch lies in no batch
			timeless := o.End == 0
			if o == g || timeless || bothBatches || !d.resolver.Holds(r, w, o.Place()) {
				return
			}
			owner, by, ambiguous := d.resolver.Home(r, o)
			direct := owner == g
			if !d.liesIn(r, owner, g) {
				return
			}
			if d.clocksApart(r) {
				d.unsure = true // how much lies in the window is not known
			} else {
				d.addOwn(r, o, nil)
			}
			if direct && !o.Promised { // no call of a batch with a root of ours: the batch as a whole is linked (copyStep)
				d.joinCalls(o, by, ambiguous)
			}
			if o.Functions() > 0 && o.Promised && !o.HasStep() { // a batch with a root of ours, and not a step's own trace
				batch = o
				batches++
			}
		})
	}
	// Leaves of traces without a window: collectives, calls, evaluations.
	reach := d.reach(r, w)
	r.EachLeaf(w.Start-reach, w.End+reach, func(l *facts.Leaf) {
		unknownProcess := w.PID != 0 && l.Host == 0 // the window is one process's time
		if l.Flags.Has(facts.Timeless|facts.Point) || unknownProcess {
			return
		}
		owner, by, ambiguous := r.Groups[l.Trace], "", false
		if owner == nil && r.ID != "" { // spans without a run may be of any job: only the trace ties them
			at := facts.Place{Start: l.Start, End: l.End, Name: l.Name, Host: l.Host, PID: l.PID, Observed: l.Flags.Has(facts.Observed)}
			if !d.resolver.Holds(r, w, at) {
				return
			}
			owner, by, ambiguous = d.resolver.Resolve(r, at)
		}
		direct := owner == g && by != "" // by is empty for a leaf of g's own trace, which needs no copy there
		inside := d.liesIn(r, owner, g)
		switch {
		case d.clocksApart(r) && (l.Host == 0 || l.Host != w.Host): // the leaf's time is by another clock
			d.addLongWait(r, g, w, l, inside)
		case inside:
			d.addPiece(r, l)
		}
		if !inside {
			return
		}
		if direct {
			d.joined = append(d.joined, joined{l, by, drawnStart(l, w)})
			d.countJoined(ambiguous)
		}
	})
	for i := range d.calls { // d.calls is final, so pointers into it stay valid
		d.joined = append(d.joined, joined{&d.calls[i], d.callBy[i], drawnStart(&d.calls[i], w)})
	}
	if w.Kind != facts.Step || batches != 1 {
		return nil
	}
	hasOwnBatch, placeUncertain := g.Functions() > 0, d.clocksApart(r) || batch.Observed()
	if hasOwnBatch || placeUncertain {
		return nil
	}
	return batch
}

// drawnStart returns the start of a leaf as drawn in the window, ns. A leaf whose times are not exact (Observed: lines arrive late, whole seconds are early) is
// moved into the window.
func drawnStart(l *facts.Leaf, w *facts.Window) int64 {
	if !l.Flags.Has(facts.Observed) {
		return l.Start
	}
	return max(min(l.Start, w.End-(l.End-l.Start)), w.Start)
}

// liesIn reports whether group g is other, or lies within other, directly or over further groups (a call in a batch in a step).
func (d *deriver) liesIn(r *facts.Run, g, other *facts.Group) bool {
	// Without a run, spans may be of any job: no group lies in another.
	for depth := 0; g != nil && g != other && depth < 3 && r.ID != ""; depth++ {
		g, _, _ = d.resolver.Home(r, g)
	}
	return g == other
}

// joinCalls joins the windows of group o, except steps, to the window at hand as leaves: calls of TransferQueue and passes of RPCs. by and ambiguous are
// results of Resolver.Home for o.
func (d *deriver) joinCalls(o *facts.Group, by string, ambiguous bool) {
	for i := range o.Windows {
		w := &o.Windows[i]
		if w.Kind == facts.Step {
			continue
		}
		d.calls = append(d.calls, facts.Leaf{
			Trace: o.ID, Span: w.Span, Start: w.Start, End: w.End, Name: w.Name, Host: w.Host, LateRank: -1, Kind: breakdown.Unattributed, Flags: w.Flags,
		})
		d.callBy = append(d.callBy, by)
		d.countJoined(ambiguous)
	}
}

// countJoined counts a joined leaf for the telemetry; ambiguous: several windows contained it.
func (d *deriver) countJoined(ambiguous bool) {
	d.counts.joined++
	if ambiguous {
		d.counts.ambiguous++
	}
}

// addOwn adds the pieces of the own trace of a group to the breakdown: stages of TransferQueue, leaves with a kind of time, and the trainer's timers of the
// step w. w is the main window of g; nil: g lies within the window at hand. Parts of steps come from the main window only, because each rank logs its own
// parts; only the loading of data delays every rank, and is compared over all ranks (addLoading).
func (d *deriver) addOwn(r *facts.Run, g *facts.Group, w *facts.Window) {
	factor := d.readParts(g, w)
	if w != nil {
		d.timers = d.timers[:0]
	}
	for _, s := range g.Settled() {
		d.pieces = append(d.pieces, pieceOf(s.Kind, s.Start, s.End, s.Flags))
	}
	compute, computes := 0.0, false // s: parts without a kind are computing; computes: at least one exists
	d.gpus.windows(g)
	for i := range g.Own {
		l := &g.Own[i]
		if l.Parent.IsEmpty() { // no part of a step
			switch {
			case l.Kind == breakdown.Unattributed || w != nil && l.Span == w.Span: // of no kind, or the window itself
			case w != nil && l.Kind == breakdown.Evaluation && l.Flags.Has(facts.Timeless) && l.Start >= w.End: // after the step: not part of its time
			case l.Kind != breakdown.Collective || !d.clocksApart(r):
				d.addPiece(r, l)
			case w != nil: // a collective, with clocks apart
				d.addLongWait(r, g, w, l, true)
			}
			continue
		}
		if w == nil || w.Kind != facts.Step || d.stepOf(l) != w.Span || d.between && l.Parent == w.Span && besideSteps(l) {
			continue // of another step, or between two steps
		}
		length, direct := factor*float64(l.End-l.Start)/1e9, l.Parent == w.Span // s; not nested in another part
		inWait := slices.Contains(d.waits, l.Parent)
		if l.Kind == breakdown.Unattributed {
			d.timers = append(d.timers, why.Timer{Name: r.Text(l.Name), Seconds: length, Rank: int64(l.LateRank), Late: factor * float64(l.Late) / 1e9})
		}
		switch {
		case l.Kind != breakdown.Unattributed && d.timedInAnotherPart(r, g, w, l): // would count twice
		case l.Kind != breakdown.Unattributed:
			d.pieces = append(d.pieces, breakdown.Piece{Kind: l.Kind, Seconds: length})
			if !direct && !inWait { // the enclosing part is computing, and includes this time
				compute -= length
			}
		case l.Flags.Has(facts.Waiting): // nobody computes
		case direct || inWait: // a deeper part is already in the time of the enclosing computing part
			compute, computes = compute+length, true
		}
	}
	if computes {
		d.pieces = append(d.pieces, breakdown.Piece{Kind: breakdown.Compute, Seconds: math.Max(compute, 0)})
	}
	if w != nil && w.Kind == facts.Step {
		d.addLoading(r, g, w, factor)
	}
}

// load is how long a rank loaded data in a step, s, and the rank, -1: unknown.
type load struct {
	took float64
	rank int32
}

// addLoading is for steps that several ranks log: if another rank loaded data for longer than the rank of step w, all ranks waited for that rank, and the
// difference is added as loading. It also sets d.loader.
func (d *deriver) addLoading(r *facts.Run, g *facts.Group, w *facts.Window, factor float64) {
	d.loader = why.Loader{}
	d.seconds = d.seconds[:0]
	if len(g.Windows) < 2 {
		return
	}
	clear(d.loads)
	for i := range g.Own {
		if l := &g.Own[i]; l.Kind == breakdown.DataLoading && !l.Parent.IsEmpty() {
			d.loads[l.Parent] = load{d.loads[l.Parent].took + factor*float64(l.End-l.Start)/1e9, l.LateRank}
		}
	}
	most := 0.0
	for i := range g.Windows {
		step := &g.Windows[i]
		if step.Kind != facts.Step || step.Steps != w.Steps {
			continue
		}
		loaded := d.loads[step.Span]
		if loaded.took > most {
			most, d.loader.Who = loaded.took, breakdown.Who{Rank: int64(loaded.rank), HasRank: loaded.rank >= 0, Host: r.Text(step.Host)}
		}
		d.seconds = append(d.seconds, loaded.took)
	}
	if len(d.seconds) < 2 || most == 0 {
		return
	}
	slices.Sort(d.seconds)
	d.loader.Late = most - stat.Median(d.seconds)
	if took := d.loads[w.Span].took; most > took {
		d.pieces = append(d.pieces, breakdown.Piece{Kind: breakdown.DataLoading, Seconds: most - took})
	}
}

// timedInAnotherPart reports whether l is a part of a single micro batch whose time is also in another part of step w: the part over all micro batches
// (trainers.WholeOf).
func (d *deriver) timedInAnotherPart(r *facts.Run, g *facts.Group, w *facts.Window, l *facts.Leaf) bool {
	allBatches, ok := trainers.WholeOf(r.Text(l.Name))
	if !ok {
		return false
	}
	for i := range g.Own {
		if o := &g.Own[i]; !o.Parent.IsEmpty() && r.Text(o.Name) == allBatches && d.stepOf(o) == w.Span {
			return true
		}
	}
	return false
}

// besideSteps reports whether a part is work that some trainers do within steps, and others between two steps.
func besideSteps(l *facts.Leaf) bool {
	return l.Kind == breakdown.Checkpoint || l.Kind == breakdown.Evaluation
}

// readParts records, for the step w, the parent of each part (d.parents), the parts that wait (d.waits), and whether checkpoints and evaluations lie between
// steps (d.between), as decided by trainers.Beside.
//
// It returns the factor for the timers of the parts. A record of several steps mostly has mean timers per step: the factor is w.Steps. If the parts times
// w.Steps are longer than the window, the timers are sums already: 1.
func (d *deriver) readParts(g *facts.Group, w *facts.Window) (factor float64) {
	clear(d.parents)
	d.waits, d.between = d.waits[:0], false
	if w == nil || w.Kind != facts.Step {
		return 1
	}
	sum, beside := int64(0), int64(0)
	for i := range g.Own {
		l := &g.Own[i]
		if !l.Parent.IsEmpty() {
			d.parents[l.Span] = l.Parent
		}
		if l.Flags.Has(facts.Waiting) {
			d.waits = append(d.waits, l.Span)
		}
		if l.Parent == w.Span {
			sum += l.End - l.Start
			if besideSteps(l) {
				beside += l.End - l.Start
			}
		}
	}
	length := float64(w.End - w.Start)
	if trainers.Beside(length, float64(sum-beside), float64(beside)) {
		d.between, sum = true, sum-beside
	}
	if float64(sum)*w.Steps <= 1.01*length { // 1 %: printed numbers are rounded
		return w.Steps
	}
	return 1
}

// stepOf returns the span of the step that contains a part, found by walking up the enclosing parts.
func (d *deriver) stepOf(l *facts.Leaf) pcommon.SpanID {
	parent := l.Parent
	for range 8 { // deeper than any trainer nests, and stops a cycle
		up := d.parents[parent]
		if up.IsEmpty() {
			return parent
		}
		parent = up
	}
	return parent
}

// pieceOf returns a piece of the time from start to end; with synthetic times (Timeless) a piece of that length without a place in time.
func pieceOf(kind breakdown.Kind, start, end int64, flags facts.Flags) breakdown.Piece {
	if flags.Has(facts.Timeless) {
		return breakdown.Piece{Kind: kind, Seconds: float64(end-start) / 1e9}
	}
	return breakdown.Piece{Kind: kind, Start: start, End: end}
}

// addPiece adds a leaf to the breakdown. A collective with known arrivals is split into the wait for the last rank and the rest. RPCs are split by the shares
// of their stages.
func (d *deriver) addPiece(r *facts.Run, l *facts.Leaf) {
	p := pieceOf(l.Kind, l.Start, l.End, l.Flags)
	d.gpus.leaf(l)
	switch {
	case l.Kind == breakdown.Collective:
		p.Who = breakdown.Who{Comm: r.Text(l.Comm), Operation: r.Text(l.Name)}
		if l.Late >= 0 && p.End > p.Start {
			p.Start = d.addWait(r, l, p)
			if p.Start >= p.End { // only waiting
				return
			}
		}
		p.Who.Unrecorded = l.Flags.Has(facts.Unrecorded)
	case l.Shares:
		p.Split = r.SharesOf(l)
	}
	d.pieces = append(d.pieces, p)
}

// addWait adds the wait for the last rank of a collective, and returns the end of the wait, ns. p has the start and the origin of the collective. The last rank
// alone is to blame only since the arrival of the last but one (Leaf.Blame): before, another rank was late, too. So the wait becomes two pieces: first without
// a rank, then of the last rank.
func (d *deriver) addWait(r *facts.Run, l *facts.Leaf, p breakdown.Piece) (end int64) {
	end = min(l.Start+l.Late, l.End)
	p.Kind, p.End = breakdown.Wait, max(end-l.Blame, l.Start)
	d.pieces = append(d.pieces, p) // even of length 0: then no rank was late
	if p.End < end {
		p.Start, p.End = p.End, end
		p.Who.Rank, p.Who.HasRank, p.Who.Host = int64(l.LateRank), l.LateRank >= 0, r.Text(l.LateHost)
		p.Who.Local = int64(l.Ranks) < d.ranks // rank numbers of a communicator of the job's size are the job's
		d.gpus.lateRank(&p.Who, l)
		d.pieces = append(d.pieces, p)
	}
	return end
}

// copyStep adds a copy of the step w, of group g, to the trace of its batch (home), below parent; and a copy of the batch to the trace of the step, with a link
// to the batch.
func (d *deriver) copyStep(out *spans.Batch, res spans.Resource, r *facts.Run, g *facts.Group, w *facts.Window, home *facts.Group, parent pcommon.SpanID) {
	s := d.addCopy(out, res, home.ID, parent, r.Text(w.Name), w.Start, w.End, g.ID, w.Span, spans.JoinByRun, spans.TimeDerived)
	if w.Number >= 0 {
		s.Attributes().PutInt(spans.AttrIteration, w.Number)
	}
	d.addCopy(out, res, g.ID, d.topSpan(g, w, true), spans.SpanTQBatch, home.Start, home.End, home.ID, parent, spans.JoinByRun, spans.TimeDerived)
}

// addCopy adds a copy of a span to trace, below parent, with a link to the original: the span original in the trace originalTrace. name, start, end and source
// are of the copy; by is the clue by which the two traces belong together (spans.AttrJoinBy).
func (d *deriver) addCopy(out *spans.Batch, res spans.Resource, trace pcommon.TraceID, parent pcommon.SpanID, name string, start, end int64,
	originalTrace pcommon.TraceID, original pcommon.SpanID, by string, source spans.TimeSource,
) ptrace.Span {
	s := out.Add(res, spans.Span{
		Trace: trace, ID: copyID(trace, originalTrace, original), Parent: parent, Name: name, Is: spans.KindJoined, Kind: ptrace.SpanKindInternal,
		Start: start, End: end, Source: source, Attributes: 5,
	})
	s.Attributes().PutStr(spans.AttrJoinBy, by)
	link := s.Links().AppendEmpty()
	link.SetTraceID(originalTrace)
	link.SetSpanID(original)
	return s
}

// copyID returns the id of the copy, in trace, of a span of originalTrace.
func copyID(trace, originalTrace pcommon.TraceID, original pcommon.SpanID) pcommon.SpanID {
	return spans.SpanID(trace, spans.KindJoined, originalTrace[:], original[:])
}

// addAggregates adds aggregate spans for the joined leaves (d.joined), one per clue and per operation of a communicator or, of other leaves, per name; below
// each, copies of the slowest and the bad leaves.
func (d *deriver) addAggregates(out *spans.Batch, res spans.Resource, r *facts.Run, w *facts.Window, home *facts.Group, parent pcommon.SpanID) {
	// Leaves of one aggregate become neighbours, by start. The order does not depend on the order of reading.
	slices.SortFunc(d.joined, func(a, b joined) int {
		return cmp.Or(cmp.Compare(a.leaf.Kind, b.leaf.Kind), cmp.Compare(r.Text(a.leaf.Comm), r.Text(b.leaf.Comm)),
			cmp.Compare(r.Text(a.leaf.Name), r.Text(b.leaf.Name)), cmp.Compare(a.by, b.by), cmp.Compare(a.leaf.Start, b.leaf.Start),
			slices.Compare(a.leaf.Span[:], b.leaf.Span[:]))
	})
	for from, to := 0, 0; from < len(d.joined); from = to {
		for first := d.joined[from]; to < len(d.joined) && sameAggregate(first, d.joined[to]); {
			to++
		}
		d.addAggregate(out, res, r, w, home, parent, d.joined[from:to])
	}
}

// sameAggregate reports whether two leaves belong to one aggregate.
func sameAggregate(a, b joined) bool {
	return a.leaf.Kind == b.leaf.Kind && a.leaf.Comm == b.leaf.Comm && a.leaf.Name == b.leaf.Name && a.by == b.by
}

const mostBad = 20 // bad leaves copied of each aggregate; and GPU errors of each window

// addAggregate adds the span that stands for leaves of one operation or name, with their count, sum, union, quantiles and waiting, and copies of the slowest.
// list is ordered by start.
func (d *deriver) addAggregate(out *spans.Batch, res spans.Resource, r *facts.Run, w *facts.Window, home *facts.Group, parent pcommon.SpanID, list []joined) {
	first := list[0].leaf
	name := r.Text(first.Name)
	sum, union, wait, until := int64(0), int64(0), int64(0), int64(math.MinInt64)
	start, end := int64(math.MaxInt64), int64(0)
	d.seconds = d.seconds[:0]
	for _, j := range list {
		l := j.leaf
		sum += l.End - l.Start
		wait += max(l.Late, 0)
		start, end = min(start, j.at), max(end, j.end())
		if from := max(l.Start, until); l.End > from { // only the time that no earlier leaf covers
			union += l.End - from
		}
		until = max(until, l.End)
		d.seconds = append(d.seconds, float64(l.End-l.Start)/1e9)
	}
	slices.Sort(d.seconds)
	s := out.Add(res, spans.Span{
		Trace:  home.ID,
		ID:     spans.SpanID(home.ID, spans.KindAggregate, w.Span[:], []byte{byte(first.Kind)}, []byte(r.Text(first.Comm)), []byte(name), []byte(list[0].by)),
		Parent: parent, Name: name, Is: spans.KindAggregate, Kind: ptrace.SpanKindInternal, Start: start, End: end, Source: spans.TimeDerived, Attributes: 10,
	})
	m := s.Attributes()
	m.PutStr(spans.AttrJoinBy, list[0].by)
	m.PutInt(spans.AttrAggregateCount, int64(len(list)))
	m.PutDouble(spans.AttrAggregateSum, float64(sum)/1e9)
	m.PutDouble(spans.AttrAggregateUnion, float64(union)/1e9)
	m.PutDouble(spans.AttrAggregateP50, stat.Median(d.seconds))
	m.PutDouble(spans.AttrAggregateP99, stat.Quantile(d.seconds, 0.99))
	m.PutDouble(spans.AttrAggregateMax, d.seconds[len(d.seconds)-1])
	if first.Kind == breakdown.Collective {
		m.PutStr(spans.AttrNCCLOperation, name)
		m.PutStr(spans.AttrNCCLCommName, r.Text(first.Comm))
		m.PutDouble(spans.AttrAggregateWait, float64(wait)/1e9)
	}
	d.copySlowest(out, res, r, home, s.SpanID(), list)
}

// copySlowest adds copies of the slowest leaves of an aggregate (Config.Slowest), and of leaves with a bad verdict or an error, at most mostBad. A span below
// each original links back to the step, unless the original is RecordOnly.
func (d *deriver) copySlowest(out *spans.Batch, res spans.Resource, r *facts.Run, home *facts.Group, parent pcommon.SpanID, list []joined) {
	slices.SortStableFunc(list, func(a, b joined) int { return cmp.Compare(b.leaf.End-b.leaf.Start, a.leaf.End-a.leaf.Start) })
	bad := 0
	for i, j := range list {
		l := j.leaf
		isBad := l.Flags.Has(facts.Bad | facts.Error)
		if isBad {
			bad++
		}
		isSlowest := i < d.p.cfg.Slowest // list is sorted by duration
		if !isSlowest && (!isBad || bad > mostBad) {
			continue
		}
		source := spans.TimeDerived
		if j.at != l.Start { // moved into the window
			source = spans.TimeSynthetic
		}
		s := d.addCopy(out, res, home.ID, parent, r.Text(l.Name), j.at, j.end(), l.Trace, l.Span, j.by, source)
		if l.Flags.Has(facts.RecordOnly) { // no backend has the original
			s.Links().RemoveIf(func(ptrace.SpanLink) bool { return true })
		}
		if l.Late > 0 {
			m := s.Attributes()
			m.PutDouble(spans.AttrNCCLLateMax, float64(l.Late)/1e9)
			if l.LateRank >= 0 {
				m.PutInt(spans.AttrNCCLLateRank, int64(l.LateRank))
			}
			if host := r.Text(l.LateHost); host != "" {
				m.PutStr(spans.AttrNCCLLateHost, host)
			}
		}
		if !l.Flags.Has(facts.RecordOnly) {
			d.addCopy(out, res, l.Trace, l.Span, spans.SpanStepRoot, l.Start, l.End, home.ID, parent, j.by, spans.TimeDerived)
		}
	}
}

// addBreakdown adds the breakdown span of window w of group g to the trace of home, below parent. A window without known parts gets no breakdown, with two
// exceptions: steps (offline all of them; live the steps after the run's first step with parts), and windows restored after a crash, whose breakdown is
// promised.
//
// A partial window is not judged, unless the only reason is that clocks are apart: the window's length is certain. Live the window is judged at once; offline
// the span waits in the history until the verdict is known.
func (d *deriver) addBreakdown(out *spans.Batch, res spans.Resource, r *facts.Run, g *facts.Group, w *facts.Window, home *facts.Group, parent pcommon.SpanID) {
	if w.Kind == facts.Function && !g.Promised && len(d.joined) == 0 { // the shares of a function are on its span
		return
	}
	r.Parted = r.Parted || w.Kind == facts.Step && len(d.pieces) > 0
	stepAnyway := w.Kind == facts.Step && w.End-w.Start > 1 && (r.Parted || d.p.offline) // 1 ns stands for no length
	if len(d.pieces) == 0 && !g.Restored && !stepAnyway {
		return
	}
	d.times = d.scratch.Of(w.Start, w.End, d.pieces)
	b := &d.times
	source := spans.TimeDerived
	if w.Flags.Has(facts.Timeless) {
		source = spans.TimeSynthetic
	}
	// The span is a point at the beginning of the window. As long as the window, it would be the last to end, and Jaeger's page would take the breakdown for
	// the critical path.
	made := spans.Span{
		Trace: home.ID, ID: spans.SpanID(home.ID, spans.SpanBreakdown, g.ID[:], w.Span[:]), Parent: parent, Name: spans.SpanBreakdown, Is: spans.KindBreakdown,
		Kind: ptrace.SpanKindInternal, Start: w.Start, End: w.Start, Source: source, Attributes: 27,
	}
	held := d.p.offline && g.Partial == ""
	of := window{g.Service, r.ID, w.Kind, w.Number, d.ranks}
	if held && len(d.pieces) == 0 && !g.Restored && !d.p.gpus.Known() { // most windows of a log of steps only: no span is kept in memory
		in := d.whyWindow(r, w, b, nil)
		d.history.Hold(&in, d.holdPlain(of, made, b.Time[breakdown.Unattributed]))
		return
	}
	var s ptrace.Span
	if held {
		s = ptrace.NewSpan()
		spans.Make(s, &res, made)
	} else {
		s = out.Add(res, made)
	}
	if len(d.pieces) == 0 && g.Restored { // a crash has lost the parts: that all is unattributed is not known
		b = nil
	}
	of.put(s, b)
	reason := g.Partial
	if reason == "" && d.unsure {
		reason = spans.PartialClocks
	}
	putPartial(s, reason)
	notes := d.putGPUState(s, r, w)
	switch {
	case g.Partial != "": // incomparable
	case held:
		in := d.whyWindow(r, w, &d.times, notes)
		d.history.Hold(&in, func(v *why.Verdict, slow bool) {
			d.putVerdict(s, of.ranks, v, slow)
			d.out.Take(of.resource(), s) // res, captured, would be copied to the heap for every window
		})
	default:
		in := d.whyWindow(r, w, &d.times, notes)
		v, slow := d.history.Judge(&in)
		d.putVerdict(s, of.ranks, &v, slow)
	}
}

// plain is the held breakdown of a window without known parts. The breakdown is made once the verdict is known; then the memory is reused.
type plain struct {
	d         *deriver
	of        window
	made      spans.Span // what the span will be made of
	length    float64    // s, of the window
	onVerdict func(v *why.Verdict, slow bool)
}

// Attributes of a plain breakdown, and of a slow plain breakdown.
const plainAttributes, slowAttributes = 5, 9

// holdPlain returns the function that makes the breakdown of a window without known parts; the history calls the function with the verdict. length is of
// the window, s.
func (d *deriver) holdPlain(of window, made spans.Span, length float64) (onVerdict func(v *why.Verdict, slow bool)) {
	var p *plain
	if n := len(d.free); n > 0 {
		p, d.free = d.free[n-1], d.free[:n-1]
	} else {
		p = &plain{d: d}
		p.onVerdict = p.make
	}
	p.of, p.made, p.length = of, made, length
	return p.onVerdict
}

// make makes the breakdown once the verdict is known: all time of the window is unattributed. The memory of p is reused.
func (p *plain) make(v *why.Verdict, slow bool) {
	defer func() { p.d.free = append(p.d.free, p) }()
	if !slow && p.d.p.windows != nil {
		p.d.p.plain = append(p.d.p.plain, p.of.value(&p.made, p.length, v))
		return
	}
	p.made.Attributes = plainAttributes
	if slow {
		p.made.Attributes = slowAttributes
	}
	s := p.d.out.Add(p.of.resource(), p.made)
	var b breakdown.Breakdown
	b.Known[breakdown.Unattributed], b.Time[breakdown.Unattributed] = true, p.length
	p.of.put(s, &b)
	p.d.putVerdict(s, p.of.ranks, v, slow)
}

// window is the breakdown's description of a window.
type window struct {
	service, run  string
	kind          facts.WindowKind
	number, ranks int64 // iteration, or −1; ranks of the job, or 0
}

// resource returns the resource of the window's spans.
func (t window) resource() spans.Resource { return spans.Resource{Service: t.service, RunID: t.run} }

// name returns the name of the kind of window, "" for a window by the configuration (Other).
func (t window) name() string {
	return [...]string{facts.Step: spans.WindowStep, facts.Pass: spans.WindowPass, facts.Function: spans.WindowBatch, facts.Other: ""}[t.kind]
}

// iteration returns the number of a step, -1 for other windows.
func (t window) iteration() int64 {
	if t.kind == facts.Step {
		return t.number
	}
	return -1
}

// value returns the breakdown of a window without known parts that was not slow, instead of the span made. seconds is the window's length.
func (t window) value(made *spans.Span, seconds float64, v *why.Verdict) spans.Window {
	usual := math.NaN()
	if v.Judged {
		usual = v.Usual
	}
	return spans.Window{
		Service: t.service, RunID: t.run, Of: t.name(), Trace: made.Trace, ID: made.ID, Start: made.Start, Seconds: seconds, Iteration: t.iteration(),
		Ranks: t.ranks, Usual: usual,
	}
}

// put writes the description of the window on its breakdown span s, and the times of b; nil: the times are unknown.
func (t window) put(s ptrace.Span, b *breakdown.Breakdown) {
	m := s.Attributes()
	if name := t.name(); name != "" {
		m.PutStr(spans.AttrStepWindow, name)
	}
	if b != nil {
		putBreakdown(m, b)
	}
	if n := t.iteration(); n >= 0 {
		m.PutInt(spans.AttrIteration, n)
	}
	if t.ranks > 0 {
		m.PutInt(spans.AttrWorldSize, t.ranks)
	}
}

// putVerdict writes the usual time of the window on its breakdown span; if slow, also the verdict, with an event for each cause and one for the unexplained
// rest. ranks is the size of the job; 0: unknown.
func (d *deriver) putVerdict(s ptrace.Span, ranks int64, v *why.Verdict, slow bool) {
	if v.Judged {
		s.Attributes().PutDouble(spans.AttrStepUsual, v.Usual)
	}
	if !slow {
		return
	}
	s.Attributes().PutDouble(spans.AttrStepExcess, v.Excess)
	d.sheet.Begin()
	d.sheet.Tell(spans.VerdictStepSlow, v.Sentence, v.Value, v.Threshold)
	d.sheet.Put(s)
	for i := range v.Causes {
		putCause(s, ranks, v.Causes[i])
	}
	if v.Unexplained > 0 {
		m := putCause(s, ranks, why.Cause{Kind: breakdown.Unattributed, Seconds: v.Unexplained})
		m.PutStr(spans.AttrCauseReason, v.Reason.Of)
		if v.Reason.Apart > 0 {
			m.PutDouble(spans.AttrNCCLClockOffset, v.Reason.Apart)
		}
	}
}

// putCause adds an event with one cause of the verdict to the breakdown span, and returns the attributes of the event. Programs read the event, people the
// sentence of the verdict. ranks is the size of the job, which gives the cost in rank-seconds; 0: unknown, and the event has no cost. The rank of any kind of
// cause has the attribute of a late rank, as the job waited for the rank.
func putCause(span ptrace.Span, ranks int64, c why.Cause) pcommon.Map {
	e := span.Events().AppendEmpty()
	e.SetName(spans.EventCause)
	e.SetTimestamp(span.EndTimestamp())
	m := e.Attributes()
	m.EnsureCapacity(8)
	m.PutStr(spans.AttrStepPart, c.Who.Part(c.Kind)) // the trainer's own name of the part, if known
	m.PutDouble(spans.AttrCauseTime, c.Seconds)
	if ranks > 0 {
		m.PutDouble(spans.AttrCauseCost, c.Seconds*float64(ranks)) // rank-seconds: all ranks lost the time
	}
	if c.Who.HasRank {
		m.PutInt(spans.AttrNCCLLateRank, c.Who.Rank)
	}
	for _, t := range [...]struct{ name, text string }{
		{spans.AttrNCCLLateHost, c.Who.Host}, {spans.AttrNCCLCommName, c.Who.Comm}, {spans.AttrNCCLOperation, c.Who.Operation}, {spans.AttrCauseNote, c.Note.Text},
	} {
		if t.text != "" {
			m.PutStr(t.name, t.text)
		}
	}
	return m
}

// whyWindow returns window w in the form of the history, which compares it with windows of the same run, kind, number of steps and batch size. b is the
// breakdown of w; notes are about its GPUs.
func (d *deriver) whyWindow(r *facts.Run, w *facts.Window, b *breakdown.Breakdown, notes []why.Note) why.Window {
	k := why.Key{Run: r.ID, Steps: int64(w.Steps)}
	if w.Batch >= 1 {
		k.Batch = int64(w.Batch)
	}
	switch w.Kind {
	case facts.Pass:
		k.Of = why.Pass
	case facts.Function:
		k.Of = why.Batch
	case facts.Step:
	case facts.Other:
		k.Name = r.Text(w.Name)
	}
	apart := 0.0 // within the tolerance
	if d.clocksApart(r) {
		apart = float64(r.Apart) / 1e9
	}
	number := int64(-1)
	if w.Kind == facts.Step {
		number = w.Number
	}
	return why.Window{
		Key: k, Start: w.Start, Number: number, Ranks: d.ranks, World: r.World, Trainer: r.Trainer, Breakdown: b, Notes: notes,
		Timers: d.timers, Apart: apart, Loader: d.loader,
	}
}

// putBreakdown writes, for each known kind, the exclusive time, the sum and the union, s. For the unattributed rest the three are equal, and only the first is
// written.
func putBreakdown(m pcommon.Map, b *breakdown.Breakdown) {
	for k := range breakdown.Kind(breakdown.Kinds) {
		if !b.Known[k] {
			continue
		}
		m.PutDouble(k.TimeAttribute(), b.Time[k])
		if k != breakdown.Unattributed {
			m.PutDouble(k.SumAttribute(), b.Sum[k])
			m.PutDouble(k.UnionAttribute(), b.Union[k])
		}
	}
}
