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
	gpus     near
	unsure   bool // clocks apart: parts of other hosts may lie in the window, and are not among d.pieces
	counts   struct{ joined, ambiguous int64 }
	out      *spans.Batch // takes the spans of this round, also breakdowns held before that now have their verdict; set by closeGroups
	free     []*plain     // for reuse
}

// derive makes the spans of a group that is being closed: our root of the trace, if the trace is to have one (rooted), copies of passes without a clock, and
// the content of the main window. Spans that were made before, as the ledger (p.told) says, are not made again. placed: some of the group has a clock. p.mu is
// held and the run sorted.
func (d *deriver) derive(out *spans.Batch, r *facts.Run, g *facts.Group, placed bool) {
	res := spans.Resource{Service: g.Service, RunID: r.ID}
	w, hasWindow := g.Main()
	top := d.top(g, &w, hasWindow)
	lossesReachWindow := r.Lost > 0 && r.Lost >= w.Start && !w.Flags.Has(facts.Timeless)
	if hasWindow && lossesReachWindow {
		g.Lacks(r.LostBy)
	}
	if r.Sampled && !r.RecordOnly { // unsampled collectives did not come, as behind an exporter without record_only
		g.Lacks(spans.PartialSampled)
	}
	if !placed && d.p.told.has(g.ID, pcommon.SpanID{}) { // passes without a clock, after their step was sent and forgotten: copies have no place
		return
	}
	d.head(out, res, r, g, &w, hasWindow, placed)
	window := w.Span
	if window.IsEmpty() { // all functions of a batch together have no span, and an empty id in the ledger means the root
		window = spans.SpanID(g.ID, spans.SpanBreakdown)
	}
	if !hasWindow || d.p.told.has(g.ID, window) {
		return
	}
	before := out.Len()
	d.inside(out, res, r, g, &w, top)
	if out.Len() != before { // else no span was made, or the breakdown is held for its verdict
		d.p.told.note(g.ID, window)
	}
}

// inside adds the content of a group's main window, below top: the joined leaves of other traces, as aggregates and copies, and the breakdown. A step that
// contains exactly one TransferQueue batch with a root has all of this in the batch's trace instead, with links both ways.
func (d *deriver) inside(out *spans.Batch, res spans.Resource, r *facts.Run, g *facts.Group, w *facts.Window, top pcommon.SpanID) {
	if twin := r.Twin(g, w); twin != nil { // another log has the step in the trace of an id: the content is added there
		if of, _ := twin.Main(); twin.Promised { // a copy of the twin here leads there
			d.addCopy(out, res, g.ID, top, r.Text(twin.Name()), twin.Start, twin.End, twin.ID, d.top(twin, &of, true), spans.JoinByIteration, spans.TimeDerived)
		}
		return
	}
	d.ranks = r.RanksAt(w)
	home, parent := g, top
	if batch := d.collect(r, g, w); batch != nil {
		home, parent = batch, spans.RootID(batch.ID)
		d.copyStep(out, res, r, g, w, home, parent)
	}
	d.aggregates(out, res, r, w, home, parent)
	d.breakdown(out, res, r, g, w, home, parent)
}

// top returns the id of the span that represents the group, and is the parent of added spans: our root of the trace, else the main window w. Without a window
// the root's id is all there is.
func (d *deriver) top(g *facts.Group, w *facts.Window, hasWindow bool) pcommon.SpanID {
	if rooted(g) || !hasWindow {
		return spans.RootID(g.ID)
	}
	return w.Span
}

// root adds the span that was promised to the trace as the parent of its tops: from the group's first to last moment, named after the batch or the step.
// Without any part with a clock, the made-up times are taken.
func (d *deriver) root(out *spans.Batch, res spans.Resource, g *facts.Group, w *facts.Window, hasWindow bool) {
	name, source := spans.SpanStepRoot, spans.TimeDerived
	if g.Functions() > 0 {
		name = spans.SpanTQBatch
	}
	start, end := g.Start, g.End
	if end == 0 { // nothing has a place in time
		source = spans.TimeSynthetic
		for i := range g.Own {
			start, end = extend(start, end, g.Own[i].Start, g.Own[i].End)
		}
		for _, s := range g.Stages {
			start, end = extend(start, end, s.Start, s.End)
		}
		for i := range g.Windows {
			start, end = extend(start, end, g.Windows[i].Start, g.Windows[i].End)
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

// extend extends a time range by another; end 0: the range is still empty.
func extend(start, end, from, to int64) (newStart, newEnd int64) {
	if end == 0 {
		return from, to
	}
	return min(start, from), max(end, to)
}

// putPartial marks a span that may lack something, with the reason (spans.AttrJoinPartialReason); empty: the span is whole.
func putPartial(s ptrace.Span, reason string) {
	if reason != "" {
		s.Attributes().PutBool(spans.AttrJoinPartial, true)
		s.Attributes().PutStr(spans.AttrJoinPartialReason, reason)
	}
}

// collect finds the content of the window w of group g: d.pieces of the breakdown, and d.joined, the leaves of other traces. It returns the group of the
// TransferQueue batch within a step, if exactly one exists and certainly lies there, and the step's own trace has no batch; else nil.
//
// A leaf counts in the breakdown of each window around it, but is joined (drawn) only in the innermost.
func (d *deriver) collect(r *facts.Run, g *facts.Group, w *facts.Window) (batch *facts.Group) {
	d.pieces, d.joined, d.calls, d.callBy = d.pieces[:0], d.joined[:0], d.calls[:0], d.callBy[:0]
	d.unsure = false
	d.resolver.Tolerance = d.p.cfg.Tolerance
	d.gpus.begin(r, w)
	d.own(r, g, w)
	if w.Flags.Has(facts.Timeless) { // only parts of the window's own trace are known to be within
		return nil
	}
	// Other traces with windows of their own: batches, functions and passes.
	batches := 0
	isCall := w.Kind == facts.Pass || w.Kind == facts.Function && !g.Promised // contains no other window
	if !isCall && r.ID != "" {
		r.Within(w.Start-slack, w.End+slack, w.Kind != facts.Function, func(o *facts.Group) {
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
			if d.apart(r) {
				d.unsure = true // how much lies in the window is not known
			} else {
				d.own(r, o, nil)
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
	r.Each(w.Start-reach, w.End+reach, func(l *facts.Leaf) {
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
		case d.apart(r) && (l.Host == 0 || l.Host != w.Host): // the leaf's time is by another clock
			d.despite(r, g, w, l, inside)
		case inside:
			d.piece(r, l)
		}
		if !inside {
			return
		}
		if direct {
			d.joined = append(d.joined, joined{l, by, drawnStart(l, w)})
			d.count(ambiguous)
		}
	})
	for i := range d.calls { // d.calls is final, so pointers into it stay valid
		d.joined = append(d.joined, joined{&d.calls[i], d.callBy[i], drawnStart(&d.calls[i], w)})
	}
	if w.Kind != facts.Step || batches != 1 {
		return nil
	}
	hasOwnBatch, placeUncertain := g.Functions() > 0, d.apart(r) || batch.Observed()
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

// liesIn reports whether a group is other or lies within other, directly or over further groups: a call in a batch in a step.
func (d *deriver) liesIn(r *facts.Run, g, other *facts.Group) bool {
	// Without a run, spans may be of any job: no group lies in another.
	for depth := 0; g != nil && g != other && depth < 3 && r.ID != ""; depth++ {
		g, _, _ = d.resolver.Home(r, g)
	}
	return g == other
}

// joinCalls joins the windows of another trace but steps, such as calls of TransferQueue and passes of RPCs, to the window at hand. by and ambiguous are of
// Resolver.Home.
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
		d.count(ambiguous)
	}
}

// count counts a joined leaf for the telemetry; ambiguous: several windows contained it.
func (d *deriver) count(ambiguous bool) {
	d.counts.joined++
	if ambiguous {
		d.counts.ambiguous++
	}
}

// own adds the pieces of a group's own trace to the breakdown: stages of TransferQueue, leaves with a kind of time, and the trainer's timers of the step w. w
// is the main window of the group at hand; nil for a group within the window at hand. Parts of steps are taken from the main window only, because each rank
// writes its own; but for data, which all ranks wait for (loading).
func (d *deriver) own(r *facts.Run, g *facts.Group, w *facts.Window) {
	factor := d.parts(g, w)
	if w != nil {
		d.timers = d.timers[:0]
	}
	for _, s := range g.Settled() {
		d.pieces = append(d.pieces, pieceOf(s.Kind, s.Start, s.End, s.Flags))
	}
	compute, computes := 0.0, false // s, the time of parts without a kind, which is computing
	d.gpus.windows(g)
	for i := range g.Own {
		l := &g.Own[i]
		if l.Parent.IsEmpty() { // no part of a step
			switch {
			case l.Kind == breakdown.Unattributed || w != nil && l.Span == w.Span: // of no kind, or the window itself
			case w != nil && l.Kind == breakdown.Evaluation && l.Flags.Has(facts.Timeless) && l.Start >= w.End: // logged behind the step, whose time leaves it out
			case l.Kind != breakdown.Collective || !d.apart(r):
				d.piece(r, l)
			case w != nil: // a collective, with clocks apart
				d.despite(r, g, w, l, true)
			}
			continue
		}
		if w == nil || w.Kind != facts.Step || d.stepOf(l) != w.Span || d.between && l.Parent == w.Span && besideSteps(l) {
			continue // of another step, or between two steps
		}
		length, direct := factor*float64(l.End-l.Start)/1e9, l.Parent == w.Span // s; not nested in another part
		// Within a part that waits: the waiting part's own time is no computing.
		inWait := slices.Contains(d.waits, l.Parent)
		if l.Kind == breakdown.Unattributed {
			d.timers = append(d.timers, why.Timer{Name: r.Text(l.Name), Seconds: length, Rank: int64(l.LateRank), Late: factor * float64(l.Late) / 1e9})
		}
		switch {
		case l.Kind != breakdown.Unattributed && d.inWhole(r, g, w, l):
		case l.Kind != breakdown.Unattributed:
			d.pieces = append(d.pieces, breakdown.Piece{Kind: l.Kind, Seconds: length})
			if !direct && !inWait { // the computing part around it includes this time
				compute -= length
			}
		case l.Flags.Has(facts.Waiting): // nobody computes
		case direct || inWait: // a deeper part is in the time of the computing part around already
			compute, computes = compute+length, true
		}
	}
	if computes {
		d.pieces = append(d.pieces, breakdown.Piece{Kind: breakdown.Compute, Seconds: math.Max(compute, 0)})
	}
	if w != nil && w.Kind == facts.Step {
		d.loading(r, g, w, factor)
	}
}

// load is how long a rank loaded data in a step, s, and the rank, -1: unknown.
type load struct {
	took float64
	rank int32
}

// loading adds the time by which another rank loaded data for longer than the rank of the step w, where several ranks log the step: all wait for that rank.
func (d *deriver) loading(r *facts.Run, g *facts.Group, w *facts.Window, factor float64) {
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
		of := &g.Windows[i]
		if of.Kind != facts.Step || of.Steps != w.Steps {
			continue
		}
		one := d.loads[of.Span]
		if one.took > most {
			most, d.loader.Who = one.took, breakdown.Who{Rank: int64(one.rank), HasRank: one.rank >= 0, Host: r.Text(of.Host)}
		}
		d.seconds = append(d.seconds, one.took)
	}
	if len(d.seconds) < 2 || most == 0 {
		return
	}
	slices.Sort(d.seconds)
	d.loader.Late = most - stat.Median(d.seconds)
	if mine := d.loads[w.Span].took; most > mine {
		d.pieces = append(d.pieces, breakdown.Piece{Kind: breakdown.DataLoading, Seconds: most - mine})
	}
}

// inWhole reports whether the time of a part, of one micro batch, is in another part of the step w, over all micro batches.
func (d *deriver) inWhole(r *facts.Run, g *facts.Group, w *facts.Window, l *facts.Leaf) bool {
	whole, ok := trainers.WholeOf(r.Text(l.Name))
	if !ok {
		return false
	}
	for i := range g.Own {
		if o := &g.Own[i]; !o.Parent.IsEmpty() && r.Text(o.Name) == whole && d.stepOf(o) == w.Span {
			return true
		}
	}
	return false
}

// besideSteps reports whether a part is work that some trainers do within steps, and others between two steps.
func besideSteps(l *facts.Leaf) bool {
	return l.Kind == breakdown.Checkpoint || l.Kind == breakdown.Evaluation
}

// parts records the parent of each part of a step (d.parents), the parts that wait (d.waits), and whether checkpoints and evaluations lie between steps
// (d.between), as trainers.Beside has it. It returns by which number the timers are to be multiplied. A record of several
// steps mostly has the timers' means per step: w.Steps. If that many of those within the steps do not fit in the window, the timers are sums: 1.
func (d *deriver) parts(g *facts.Group, w *facts.Window) (factor float64) {
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

// pieceOf returns a piece from start to end, or of that length only where the times are synthetic.
func pieceOf(kind breakdown.Kind, start, end int64, flags facts.Flags) breakdown.Piece {
	if flags.Has(facts.Timeless) {
		return breakdown.Piece{Kind: kind, Seconds: float64(end-start) / 1e9}
	}
	return breakdown.Piece{Kind: kind, Start: start, End: end}
}

// piece adds a leaf to the breakdown. A collective with known arrivals is split into the wait for the last rank, and the rest. RPCs are split by the shares of
// their stages.
func (d *deriver) piece(r *facts.Run, l *facts.Leaf) {
	p := pieceOf(l.Kind, l.Start, l.End, l.Flags)
	d.gpus.leaf(l)
	switch {
	case l.Kind == breakdown.Collective:
		p.Who = breakdown.Who{Comm: r.Text(l.Comm), Operation: r.Text(l.Name)}
		if l.Late >= 0 && p.End > p.Start {
			p.Start = d.wait(r, l, p)
			if p.Start >= p.End { // nothing but waiting
				return
			}
		}
		p.Who.Unrecorded = l.Flags.Has(facts.Unrecorded)
	case l.Shares:
		p.Split = r.SharesOf(l)
	}
	d.pieces = append(d.pieces, p)
}

// wait adds the wait for the last rank of a collective, and returns the end of the wait, ns. p has the collective's start and origin. The last rank is to blame
// only from the arrival of the last but one on (Leaf.Blame): until then another rank was late, too. So the wait is two pieces: of nobody, then of the rank.
func (d *deriver) wait(r *facts.Run, l *facts.Leaf, p breakdown.Piece) (end int64) {
	end = min(l.Start+l.Late, l.End)
	p.Kind, p.End = breakdown.Wait, max(end-l.Blame, l.Start)
	d.pieces = append(d.pieces, p) // even without length: punctuality is known
	if p.End < end {
		p.Start, p.End = p.End, end
		p.Who.Rank, p.Who.HasRank, p.Who.Host = int64(l.LateRank), l.LateRank >= 0, r.Text(l.LateHost)
		p.Who.Local = int64(l.Ranks) < d.ranks // the numbers of the largest communicator are those of the job
		d.gpus.lateRank(&p.Who, l)
		d.pieces = append(d.pieces, p)
	}
	return end
}

// copyStep adds a copy of the step w, of group g, to the trace of its batch (home), below parent; and a copy of the batch to the step's own trace, where the
// reader finds the link to the batch.
func (d *deriver) copyStep(out *spans.Batch, res spans.Resource, r *facts.Run, g *facts.Group, w *facts.Window, home *facts.Group, parent pcommon.SpanID) {
	s := d.addCopy(out, res, home.ID, parent, r.Text(w.Name), w.Start, w.End, g.ID, w.Span, spans.JoinByRun, spans.TimeDerived)
	if w.Number >= 0 {
		s.Attributes().PutInt(spans.AttrIteration, w.Number)
	}
	d.addCopy(out, res, g.ID, d.top(g, w, true), spans.SpanTQBatch, home.Start, home.End, home.ID, parent, spans.JoinByRun, spans.TimeDerived)
}

// addCopy adds a copy of a span to another trace, below parent, with a link to the original, whose trace is of and whose id is span. name, start, end and
// source are the copy's; by is the clue by which the two traces belong together.
func (d *deriver) addCopy(out *spans.Batch, res spans.Resource, trace pcommon.TraceID, parent pcommon.SpanID, name string, start, end int64, of pcommon.TraceID,
	span pcommon.SpanID, by string, source spans.TimeSource,
) ptrace.Span {
	s := out.Add(res, spans.Span{
		Trace: trace, ID: copyID(trace, of, span), Parent: parent, Name: name, Is: spans.KindJoined, Kind: ptrace.SpanKindInternal,
		Start: start, End: end, Source: source, Attributes: 5,
	})
	s.Attributes().PutStr(spans.AttrJoinBy, by)
	link := s.Links().AppendEmpty()
	link.SetTraceID(of)
	link.SetSpanID(span)
	return s
}

// copyID returns the id of the copy of a span in another trace.
func copyID(trace, of pcommon.TraceID, span pcommon.SpanID) pcommon.SpanID {
	return spans.SpanID(trace, spans.KindJoined, of[:], span[:])
}

// aggregates adds, for the joined leaves (d.joined), a span for each operation of each communicator and for each name of other leaves, by each clue, with
// copies of the slowest and the bad ones below.
func (d *deriver) aggregates(out *spans.Batch, res spans.Resource, r *facts.Run, w *facts.Window, home *facts.Group, parent pcommon.SpanID) {
	// The leaves of an aggregate side by side, by start; the order does not depend on that of reading.
	slices.SortFunc(d.joined, func(a, b joined) int {
		return cmp.Or(cmp.Compare(a.leaf.Kind, b.leaf.Kind), cmp.Compare(r.Text(a.leaf.Comm), r.Text(b.leaf.Comm)),
			cmp.Compare(r.Text(a.leaf.Name), r.Text(b.leaf.Name)), cmp.Compare(a.by, b.by), cmp.Compare(a.leaf.Start, b.leaf.Start),
			slices.Compare(a.leaf.Span[:], b.leaf.Span[:]))
	})
	for from, to := 0, 0; from < len(d.joined); from = to {
		for first := d.joined[from]; to < len(d.joined) && same(first, d.joined[to]); {
			to++
		}
		d.aggregate(out, res, r, w, home, parent, d.joined[from:to])
	}
}

// same reports whether two leaves belong to one aggregate.
func same(a, b joined) bool {
	return a.leaf.Kind == b.leaf.Kind && a.leaf.Comm == b.leaf.Comm && a.leaf.Name == b.leaf.Name && a.by == b.by
}

const mostBad = 20 // bad leaves copied of each aggregate; and GPU errors of each window

// aggregate adds the span that stands for leaves of one operation or name, with their count, sum, union, quantiles and waiting. list is in order of start.
func (d *deriver) aggregate(out *spans.Batch, res spans.Resource, r *facts.Run, w *facts.Window, home *facts.Group, parent pcommon.SpanID, list []joined) {
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

// copySlowest adds copies of the slowest of an aggregate's leaves, and of those with a bad verdict or an error, at most mostBad; a span in the trace of each
// original links back to the step, unless the original is RecordOnly.
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

// breakdown adds the breakdown span of window w to the trace of home, below parent. A window without known parts has none, except steps: offline all steps have
// a breakdown, live all steps after the run's first step with parts; and except windows restored after a crash, whose breakdown is promised.
//
// A partial window is not judged, unless only clocks are apart: the window's length is certain. Live the others are judged at once; offline the span is held
// back until the window's verdict is known.
func (d *deriver) breakdown(out *spans.Batch, res spans.Resource, r *facts.Run, g *facts.Group, w *facts.Window, home *facts.Group, parent pcommon.SpanID) {
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
		d.history.Hold(&in, d.plain(of, made, b.Time[breakdown.Unattributed]))
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

// plain is the held breakdown of a window without known parts. The span is made once the verdict is known; then the memory is reused.
type plain struct {
	d         *deriver
	of        window
	made      spans.Span // what the span will be made of
	length    float64    // s, of the window
	onVerdict func(v *why.Verdict, slow bool)
}

// Attributes of a plain breakdown, and of a slow plain breakdown.
const plainAttributes, slowAttributes = 5, 9

// plain returns the function that makes a window's breakdown, to be called with the verdict. length is the window's, s.
func (d *deriver) plain(of window, made spans.Span, length float64) (onVerdict func(v *why.Verdict, slow bool)) {
	var p *plain
	if n := len(d.free); n > 0 {
		p, d.free = d.free[n-1], d.free[:n-1]
	} else {
		p = &plain{d: d}
		p.onVerdict = p.done
	}
	p.of, p.made, p.length = of, made, length
	return p.onVerdict
}

// done makes the breakdown: all time of the window is unattributed.
func (p *plain) done(v *why.Verdict, slow bool) {
	p.made.Attributes = plainAttributes
	if slow {
		p.made.Attributes = slowAttributes
	}
	s := p.d.out.Add(p.of.resource(), p.made)
	var b breakdown.Breakdown
	b.Known[breakdown.Unattributed], b.Time[breakdown.Unattributed] = true, p.length
	p.of.put(s, &b)
	p.d.putVerdict(s, p.of.ranks, v, slow)
	p.d.free = append(p.d.free, p)
}

// window is the breakdown's description of a window.
type window struct {
	service, run  string
	kind          facts.WindowKind
	number, ranks int64 // iteration, or −1; ranks of the job, or 0
}

func (t window) resource() spans.Resource { return spans.Resource{Service: t.service, RunID: t.run} }

// put writes the description, and the times of b; nil: the times are unknown.
func (t window) put(s ptrace.Span, b *breakdown.Breakdown) {
	m := s.Attributes()
	// A window by the configuration (Other) has no such text.
	if of := [...]string{facts.Step: spans.WindowStep, facts.Pass: spans.WindowPass, facts.Function: spans.WindowBatch, facts.Other: ""}[t.kind]; of != "" {
		m.PutStr(spans.AttrStepWindow, of)
	}
	if b != nil {
		putBreakdown(m, b)
	}
	if t.number >= 0 && t.kind == facts.Step {
		m.PutInt(spans.AttrIteration, t.number)
	}
	if t.ranks > 0 {
		m.PutInt(spans.AttrWorldSize, t.ranks)
	}
}

// putVerdict writes the window's usual time on the breakdown, and, if slow, the verdict with an event for each cause and one for the unexplained rest.
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

// putCause adds an event with a cause of the verdict's sentence, for programs, and returns the event's attributes.
func putCause(span ptrace.Span, ranks int64, c why.Cause) pcommon.Map {
	e := span.Events().AppendEmpty()
	e.SetName(spans.EventCause)
	e.SetTimestamp(span.EndTimestamp())
	m := e.Attributes()
	m.EnsureCapacity(8)
	m.PutStr(spans.AttrStepPart, c.Who.Part(c.Kind))
	m.PutDouble(spans.AttrCauseTime, c.Seconds)
	if ranks > 0 {
		m.PutDouble(spans.AttrCauseCost, c.Seconds*float64(ranks))
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

// whyWindow is window w as the history compares it: with windows of the same run and kind, number of steps and batch size. b is the breakdown, notes are of the
// window's GPUs.
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
	if d.apart(r) {
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

// putBreakdown writes the times of the known kinds, s: exclusive time, sum and union. Of the unattributed rest all three are the same, and one is written.
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
