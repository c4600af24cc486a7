package stepjoinprocessor

import (
	"cmp"
	"encoding/binary"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
	"github.com/trainbridge/trainbridge/spans"
)

// fact is what is kept of a span: a leaf, which of a window has the span's name and times, and the window.
type fact struct {
	window   facts.Window // where isWindow
	leaf     facts.Leaf
	isWindow bool
	own      bool           // belongs to the group of its trace, which is made if there is none
	promised bool           // a top of an id's trace: gets a root of ours as its parent
	unplaced facts.Unplaced // where reader.unplaced
	shared   bool
	shares   facts.Shares // where shared
}

// reader reads the facts of a batch. The memory is reused.
type reader struct {
	p         *stepJoin
	now       time.Time
	fresh     []promise      // of the batch
	lateSpans int64          // spans whose group was closed
	place     place          // of the batch
	log       []byte         // the facts in stored form
	ends      ends           // of the facts in log
	replays   bool           // reading the facts of the last process
	runState  facts.RunState // of the run, as stored
	run       *facts.Run     // of the resource
	group     *facts.Group   // of the last span with a group
	res       view.Resource
	mark      view.Mark // of the span
	late      lateRanks
	attrs     pcommon.Map     // of the resource
	call      view.Group      // the span, if a pass of RPCs
	coll      view.Collective // the span, if a collective

	unplaced                bool            // the resource is of calls tied to a trace by an id, and to no time by a clock
	trace                   pcommon.TraceID // of the current span, by its log
	unplacedTrace, ownTrace pcommon.TraceID // the last trace with unplaced spans, and the trace of their own
}

// read reads the facts of a batch into the runs. Tops of traces that will get a root of ours get this root as parent; passes without a clock get a trace of
// their own. A repeat of a refused batch adds nothing. A resource without a wanted span costs little: its run is looked up with the first wanted span (ready).
// p.mu is held.
func (r *reader) read(td ptrace.Traces, now time.Time) {
	r.now, r.fresh, r.lateSpans, r.group, r.log = now, r.fresh[:0], 0, nil, r.log[:0]
	clear(r.ends)
	r.writePlace()
	gpus := r.p.gpus.Known()
	r.late.begin(gpus)
	for _, rs := range td.ResourceSpans().All() {
		attrs, ready := rs.Resource().Attributes(), false
		r.attrs = attrs
		r.unplaced = r.clockless(attrs)
		if r.unplaced { // the spans move to a trace of their own, not joined by an id
			attrs.Remove(spans.AttrJoinBy)
			ready = r.begin()
		}
		for _, ss := range rs.ScopeSpans().All() {
			if ss.Scope().Name() == scopeName {
				continue // from another step_join
			}
			list, until := ss.Spans(), int64(0)
			for i := range list.Len() {
				span := list.At(i)
				r.trace = span.TraceID()
				if r.unplaced {
					r.moveToOwnTrace(span)
				}
				if view.IsDetail(span) { // part of a span that is read
					continue
				}
				kind := view.KindOf(span)
				if r.unplaced && kind == view.KindCall {
					r.keepSlowCall(span)
				}
				if !r.wanted(kind, span) {
					continue
				}
				if !ready {
					r.res.Read(attrs)
					ready = r.begin()
				}
				if end := r.span(span, kind); end > until {
					until = end
				}
			}
			if until > 0 {
				r.advance(ss.Scope().Name(), until)
			}
		}
		if ready {
			r.writeRunState()
		}
		if gpus {
			if !ready {
				r.res.Read(attrs)
			}
			r.recordProcess(rs, now)
		}
	}
	if gpus {
		r.latePIDs(td)
	}
	r.coll, r.call, r.mark, r.res = view.Collective{}, view.Group{}, view.Mark{}, view.Resource{} // they point into the batch
}

// begin sets r.run to the run of the resource, made if absent, and always returns true: the caller's ready.
func (r *reader) begin() (ready bool) {
	r.run, r.group = r.p.run(r.res.Run, r.now), nil
	r.run.FindRepeats(r.p.refused) // a refused batch comes again, perhaps as this one
	r.run.Entry, r.runState = r.p.journal.to, r.run.State()
	r.write(factRun, 0, func(b []byte) []byte { return wire.AppendBytes(b, r.run.ID) })
	if partition := r.place.partition; partition != "" && partition != r.run.Partition {
		isMoved := r.run.Partition != "" // partitions were added, and another process may have read some of the run
		r.run.Partition = partition
		if r.place.midway || isMoved {
			r.run.MarkMissed(r.now)
		}
	}
	return true
}

// advance records that a source has sent spans up to the time until, ns.
func (r *reader) advance(source string, until int64) {
	r.run.Advance(source, until, r.now)
	r.write(factSource, 0, func(b []byte) []byte { return binary.AppendVarint(wire.AppendBytes(b, source), until) })
}

// writeRunState appends the state of the run (facts.RunState) to the journal entry, if the resource has changed it.
func (r *reader) writeRunState() {
	if w := r.run.State(); w != r.runState {
		r.write(factRunState, 0, w.Append)
	}
}

// wanted reports, by kind, name and parent alone, whether a span may have facts.
func (r *reader) wanted(kind view.Kind, span ptrace.Span) bool {
	switch kind {
	case view.KindStep, view.KindPart, view.KindFunction, view.KindStage, view.KindCollective, view.KindPass, view.KindSession, view.KindCalls,
		view.KindEvaluation, view.KindEvent, view.KindRun:
		return true
	case view.KindCall:
		return span.ParentSpanID().IsEmpty() // calls with a parent are in the sums of their group
	case view.KindOther:
		return span.ParentSpanID().IsEmpty() || r.p.matches(span.Name())
	}
	return false
}

// span reads the facts of a span, and returns the end of the span, ns: how far in time the source was read; 0: the times are made up, or the span is no work.
func (r *reader) span(span ptrace.Span, kind view.Kind) (end int64) {
	if kind == view.KindOther && span.Name() == spans.SpanNCCLWatermark {
		r.watermark(span)
		return 0
	}
	if kind == view.KindRun {
		r.run.Opened = true
		return 0
	}
	if kind == view.KindEvent {
		if events.Class(spans.AttrText(span.Attributes(), spans.AttrEventClass)).Ends() {
			r.run.Pulse.Over()
		}
		return 0
	}
	stage := breakdown.Unattributed
	if kind == view.KindStage {
		stage = stageOf(span.Name())
		if stage == breakdown.Unattributed { // an operation within a stage
			return 0
		}
	}
	m := &r.mark
	m.Read(span, &r.res)
	byID := m.JoinBy == spans.JoinByID
	if kind == view.KindOther && !byID && !r.p.matches(span.Name()) { // of another service, without an id, and not in the configuration
		return 0
	}
	run := r.run
	flags := r.flags(span)
	if stage != breakdown.Unattributed {
		r.stage(r.trace, facts.Stage{Span: span.SpanID(), Start: int64(span.StartTimestamp()), End: int64(span.EndTimestamp()), Kind: stage, Flags: flags})
		return r.readUntil(span, flags)
	}
	isTop := span.ParentSpanID().IsEmpty()
	f := fact{own: byID, promised: isTop && byID}
	f.leaf = facts.Leaf{
		Trace: r.trace, Span: span.SpanID(), Start: int64(span.StartTimestamp()), End: int64(span.EndTimestamp()), Name: run.Number(span.Name()),
		Host: run.Number(m.Host), PID: int32(m.PID.Or(0)), LateRank: -1, Kind: breakdown.Unattributed, Flags: flags,
	}
	if !r.describe(&f, span, kind) {
		return 0
	}
	if r.unplaced { // a pass without a clock becomes the root of its own trace, and needs no root of ours
		f.promised, f.unplaced = false, r.makeRoot(span, &f)
	}
	if f.promised {
		span.SetParentSpanID(spans.RootID(r.trace))
	}
	r.keep(&f, byID)
	return r.readUntil(span, flags)
}

// watermark reads the watermark of a source of collectives, which gateways send as a span.
func (r *reader) watermark(span ptrace.Span) {
	m := span.Attributes()
	first, _ := m.Get(spans.AttrNCCLWatermarkFirst)
	w := facts.Watermark{
		Source: strings.Clone(spans.AttrText(m, spans.AttrNCCLWatermarkSource)), First: first.Bool(),
		Epoch: integer(m, spans.AttrNCCLWatermarkEpoch), Number: integer(m, spans.AttrNCCLWatermarkNumber),
		Until: integer(m, spans.AttrNCCLWatermarkUntil), Sent: integer(m, spans.AttrNCCLWatermarkSent),
		Unreadable: integer(m, spans.AttrNCCLWatermarkUnreadable),
	}
	r.run.Watermark(&w)
	r.write(factWatermark, 0, w.Append)
}

// stageOf returns the kind of time of a TransferQueue stage by the name of its span; Unattributed: the span is an operation within a stage.
func stageOf(name string) breakdown.Kind {
	switch spans.TQStageNamed(name) {
	case spans.TQGet:
		return breakdown.Get
	case spans.TQCompute:
		return breakdown.Compute
	case spans.TQPut:
		return breakdown.Put
	}
	return breakdown.Unattributed
}

// flags returns the flags of a span, by its mark and resource. It also records in the run that the resource has records only (RecordOnly).
func (r *reader) flags(span ptrace.Span) (flags facts.Flags) {
	m := &r.mark
	if m.Time == spans.TimeSynthetic || r.unplaced {
		flags |= facts.Timeless
	}
	if m.Time == spans.TimeObserved || m.Time == spans.TimeAnchoredSecond {
		flags |= facts.Observed
	}
	if m.TimePoint {
		flags |= facts.Point
	}
	if m.Severity == spans.SeverityBad {
		flags |= facts.Bad
	}
	if span.Status().Code() == ptrace.StatusCodeError {
		flags |= facts.Error
	}
	if r.res.RecordOnly {
		flags |= facts.RecordOnly
		r.run.RecordOnly = true
	}
	return flags
}

// describe completes a fact by the kind of its span: window or leaf, the kind of time, ranks and calls. It also records what the span says about the run.
// false: the span has no fact to keep.
func (r *reader) describe(f *fact, span ptrace.Span, kind view.Kind) bool {
	switch kind {
	case view.KindStep:
		r.step(f, span)
	case view.KindPart:
		part := trainers.PartOf(r.mark.Part)
		timeKind, within := r.kindOfPart(part)
		if !within {
			return false
		}
		f.leaf.Kind, f.leaf.Parent, f.own = timeKind, span.ParentSpanID(), true
		f.promised = false // a part without a parent has no logged step, and its trace needs no root
		f.leaf.LateRank = int32(number(span.Attributes(), spans.AttrRank))
		if rank := r.res.Rank.Or(-1); f.leaf.LateRank < 0 && rank <= math.MaxInt32 { // the same for all spans of the log
			f.leaf.LateRank = int32(rank)
		}
		r.slowestRank(&f.leaf, span)
		r.fastestRank(&f.leaf, span)
		f.leaf.Flags |= facts.Timeless // the order of the parts is the trainer's, their times are made up
		if part == trainers.Waiting {
			f.leaf.Flags |= facts.Waiting
		}
	case view.KindFunction:
		r.window(f, facts.Function, view.Int{})
		f.own = true
	case view.KindCollective:
		r.collective(f, span)
	case view.KindPass, view.KindSession, view.KindCalls:
		if r.mark.Time == spans.TimeObserved { // the arrival of a line does not place a call: read later, the call would be elsewhere
			f.leaf.Flags |= facts.Timeless
		}
		r.call.Read(span, &r.res)
		f.leaf.Kind = breakdown.RPCUnattributed
		f.shares, f.shared = r.shares()
		if kind == view.KindPass {
			r.window(f, facts.Pass, r.call.Ordinal)
			f.own = true
		}
	case view.KindCall:
		f.leaf.Kind = breakdown.RPCUnattributed
	case view.KindEvaluation:
		f.leaf.Kind = breakdown.Evaluation
		f.own = f.own || f.leaf.Flags.Has(facts.Timeless) // without a time only the trace says to which step it belongs
	case view.KindOther: // of a service
		if r.p.isWindow(span.Name()) {
			r.window(f, facts.Other, r.mark.Iteration)
			f.own = true
		} else if l, ok := r.p.leafKind(span.Name()); ok {
			f.leaf.Kind = l
		} else if !f.own { // without an id the trace says nothing
			return false
		}
	}
	return true
}

// step makes the fact a training step, and records in the run the trainer, the number of ranks and, live, that the run goes on (Pulse).
func (r *reader) step(f *fact, span ptrace.Span) {
	run := r.run
	if !r.p.offline && !f.leaf.Flags.Has(facts.Timeless) {
		run.Pulse.Step(run.Text(run.Number(r.res.Service)), r.mark.Iteration.Or(-1), r.planned(span), int64(span.EndTimestamp()), r.now)
	}
	if r.res.Source != run.Trainer {
		run.Trainer = run.Text(run.Number(r.res.Source))
	}
	run.World = max(run.World, r.res.WorldSize.Or(0))
	if cmp.Or(spans.AttrText(span.Attributes(), spans.AttrStepDurationKind), r.res.StepDurationKind) == spans.DurationMedian {
		f.leaf.Flags |= facts.Typical
	}
	r.window(f, facts.Step, r.mark.Iteration)
	f.own = true
}

// collective makes the fact a collective: operation, communicator, the wait for the last rank (Late), and the part of the wait for which the last rank alone is
// to blame (Blame). It records in the run the communicator, clocks that are apart, and, live, ranks that lack a record or are stuck (Pulse).
func (r *reader) collective(f *fact, span ptrace.Span) {
	run, l, c := r.run, &f.leaf, &r.coll
	c.Read(span)
	l.Kind, l.Name, l.Comm = breakdown.Collective, run.Number(c.Operation), run.Number(c.CommName)
	// The communicator is known by its id, else by its name, and is called by its name, else by its id.
	id := l.Comm
	if c.CommID != "" {
		id = run.Number(c.CommID)
	}
	r.communicates(id, max(c.Ranks.Or(0), c.CommSize.Or(0)), l.Start, l.End)
	if c.CommName == "" {
		l.Comm = run.Number(c.CommID)
	}
	if c.LacksRanks() {
		l.Flags |= facts.Unrecorded
	}
	if !r.p.offline && c.Missing.Len()+c.Stuck.Len() > 0 {
		run.Pulse.Behind = missingRanks(c)
	}
	l.Late, l.Ranks = -1, int32(min(c.CommSize.Or(c.Ranks.Or(0)), math.MaxInt32))
	if late := c.Last; late.Late >= 0 && !c.Mismatch { // Mismatch: the ranks made different calls, and none was late for another
		l.Late = int64(math.Round(late.Late * 1e9))
		l.LateRank, l.LateHost = int32(late.Rank.Or(-1)), run.Number(late.Host)
		// Cost is what all others together waited since the arrival of the last but one.
		if others := float64(c.Ranks.N - 1); late.Cost >= 0 && others > 0 {
			l.Blame = min(int64(math.Round(late.Cost/others*1e9)), l.Late)
		}
	}
	if apart := c.ClocksApart; apart > 0 {
		run.Apart = max(run.Apart, int64(math.Min(apart, maxApart)*1e9))
		if c.Duration >= 0 {
			l.End = min(l.End, l.Start+int64(c.Duration*1e9)) // the collective's ends are of two clocks
		}
	}
	f.promised = f.promised && !r.res.RecordOnly // a span that no backend has needs no root
	run.Sampled = run.Sampled || sampled(span.TraceState().AsRaw())
}

// readUntil returns the result of span: the end of the span, ns, or 0 for made-up times.
func (r *reader) readUntil(span ptrace.Span, flags facts.Flags) int64 {
	if flags.Has(facts.Timeless) {
		return 0
	}
	return int64(span.EndTimestamp())
}

// groupOf returns the group of a trace, made if absent.
func (r *reader) groupOf(trace pcommon.TraceID) *facts.Group {
	if r.group == nil || r.group.ID != trace {
		r.group = r.run.Group(trace, r.run.Text(r.run.Number(r.res.Service)))
	}
	return r.group
}

// partitionsAdded handles a run that moved to a Kafka partition of this process in the middle: at the first logged step, if the span of the run (KindRun) never
// came, the run is marked as lacking what another partition had.
func (r *reader) partitionsAdded(f *fact) {
	isLoggedStep := f.isWindow && f.window.Kind == facts.Step && r.res.Source != ""
	if !isLoggedStep || r.run.Opened || r.run.Partition == "" {
		return
	}
	r.run.Opened = true
	r.run.MarkMissed(r.now)
}

// keep adds a fact to its run: to the group of its trace, which an own fact creates, else to the leaves of the run, which may lie in windows of other traces. A
// fact of a closed group is late and only counted, except a pass without a clock (AddLate). If the group will get a span of ours, that span is promised. byID:
// the trace is named by an id.
func (r *reader) keep(f *fact, byID bool) {
	run := r.run
	r.writeSpan(f, byID)
	r.partitionsAdded(f)
	var g *facts.Group
	if !f.own || !r.p.offline { // offline, groupOf below looks for the group
		g = run.Groups[f.leaf.Trace]
	}
	// Perhaps the run has steps only: then no group is needed (AddPlain).
	isPlainStep := f.isWindow && f.window.Kind == facts.Step && !f.promised && !byID && g == nil
	switch {
	case !isPlainStep:
		run.Mix()
	case r.p.offline: // each step gets a breakdown, by way of a group
	case run.AddPlain(f.leaf.Trace, f.window, run.Text(run.Number(r.res.Service)), r.now):
		return
	}
	if f.isWindow && f.leaf.Kind != breakdown.Unattributed {
		f.leaf.Span = spans.SpanID(f.leaf.Trace, "leaf", f.leaf.Span[:]) // a pass is a window and a leaf
	}
	f.leaf.Shares = f.shared
	if f.shared {
		run.SetShares(f.leaf.Span, f.shares)
	}
	if g == nil {
		if !f.own {
			if f.leaf.Kind != breakdown.Unattributed {
				run.AddLeaf(f.leaf, r.now)
				r.late.note(run, nil, &f.leaf)
			}
			return
		}
		g = r.groupOf(f.leaf.Trace)
	}
	owesRoot, owesBreakdown := f.promised && !g.Promised, f.isWindow && g.Chunk < 0
	if (owesRoot || owesBreakdown) && !g.Closed && !r.unplaced { // unplaced spans are in a trace of their own, where nothing waits for a span of ours
		r.promise(g, f)
	}
	if g.Closed {
		r.lateSpans++
		if r.unplaced {
			run.AddLate(g, f.unplaced)
		}
		return
	}
	g.Promised, g.ByID = g.Promised || f.promised, g.ByID || byID
	of := facts.Other
	if f.isWindow {
		of = f.window.Kind
	}
	g.SetService(run.Text(run.Number(r.res.Service)), of)
	if r.unplaced && !g.Has(f.unplaced.Span) {
		run.AddUnplaced(g, f.unplaced)
	}
	if f.isWindow {
		run.AddWindow(g, f.window, r.now)
	}
	if f.isWindow && f.leaf.Kind == breakdown.Unattributed { // only a window
		return
	}
	if run.AddOwn(g, f.leaf, r.now) {
		r.late.note(run, g, &f.leaf)
	}
}

// stage adds a stage of a TransferQueue call to the group of its trace.
func (r *reader) stage(trace pcommon.TraceID, s facts.Stage) {
	r.write(factStage, s.End, func(b []byte) []byte { return s.Append(append(wire.AppendBytes(b, r.res.Service), trace[:]...)) })
	r.run.Mix()
	if g := r.groupOf(trace); g.Closed {
		r.lateSpans++
	} else {
		r.run.AddStage(g, s, r.now)
	}
}

// communicates records that the communicator with the text number id was used by so many ranks from start to end, ns.
func (r *reader) communicates(id uint32, ranks, start, end int64) {
	r.run.Communicates(id, ranks, start, end)
	r.write(factComm, 0, func(b []byte) []byte {
		b = binary.AppendVarint(wire.AppendBytes(b, r.run.Text(id)), ranks)
		return binary.AppendVarint(binary.AppendVarint(b, start), end)
	})
}

// integer returns the whole number in an attribute; 0: absent.
func integer(m pcommon.Map, name string) int64 {
	v, _ := m.Get(name)
	return v.Int()
}

// sampled reports whether a span represents several, by its tracestate: sampling with a rejection threshold (OpenTelemetry's ot=th) above 0.
func sampled(state string) bool {
	const certain, threshold = "ot=th:0", "ot=th:"
	return state != certain && strings.HasPrefix(state, threshold)
}

const maxApart = 3600 // s: clocks of two hosts are hardly as far apart

// window makes the fact a window of a kind, with the times and the process of the leaf. number is the iteration of a step or the ordinal of a pass.
func (r *reader) window(f *fact, kind facts.WindowKind, number view.Int) {
	l := &f.leaf
	steps := r.mark.StepsCovered
	if !(steps > 1) { // or NaN: not stated
		steps = 1
	}
	f.isWindow = true
	f.window = facts.Window{
		Kind: kind, Flags: l.Flags, Span: l.Span, Start: l.Start, End: l.End, Number: number.Or(-1), Steps: steps, Batch: r.mark.BatchSize,
		World: max(0, r.res.WorldSize.Or(0)), Host: l.Host, PID: l.PID, Name: l.Name,
	}
}

// shares returns the shares of the stages in the time of an RPC pass (r.call), each 0 to 1; ok is false if the log does not state them.
func (r *reader) shares() (shares facts.Shares, ok bool) {
	g := &r.call
	if !(g.CallDuration > 0) {
		return shares, false
	}
	share := func(s view.RPCStage) float64 {
		if x := g.Duration[s] / g.CallDuration; x > 0 {
			return math.Min(x, 1)
		}
		return 0
	}
	server := share(view.RPCServer)
	return facts.Shares{
		0: share(view.RPCSerialize),
		breakdown.RPCSend - breakdown.RPCSerialize:        share(view.RPCSend),
		breakdown.RPCReceive - breakdown.RPCSerialize:     math.Max(0, share(view.RPCReceive)-server), // the server works while the client waits
		breakdown.RPCServer - breakdown.RPCSerialize:      server,
		breakdown.RPCDeserialize - breakdown.RPCSerialize: share(view.RPCDeserialize),
	}, true
}

// slowestRank records the slowest rank of a part of a step, and by how much the rank exceeds the median of the ranks, where the log states both.
func (r *reader) slowestRank(l *facts.Leaf, span ptrace.Span) {
	rank, ok := span.Attributes().Get(spans.AttrStageRankSlowest)
	if !ok {
		return
	}
	median, ok := span.Attributes().Get(spans.AttrStageDurationMedian)
	if !ok {
		return
	}
	isRank := rank.Int() >= 0 && rank.Int() <= math.MaxInt32
	if more := float64(l.End-l.Start) - 1e9*spans.ValueNumber(median); more > 0 && isRank {
		l.LateRank, l.Late = int32(rank.Int()), int64(more)
	}
}

// fastestRank shortens a collective to the time of the fastest rank, where the log states it: slower ranks waited for a rank that computed or loaded data
// meanwhile, which is in the time of that rank.
func (r *reader) fastestRank(l *facts.Leaf, span ptrace.Span) {
	least, ok := span.Attributes().Get(spans.AttrStageDurationMin)
	if ok && l.Kind == breakdown.Collective && trainers.Together(r.mark.Part) {
		l.End = min(l.End, l.Start+max(0, int64(1e9*spans.ValueNumber(least))))
	}
}

// kindOfPart returns the kind of time that a timer of the trainer measures; Unattributed: computing or waiting, which addOwn distinguishes by facts.Waiting.
// within: the timer runs inside the step; false only where the trainer is known to do the work between two steps.
func (r *reader) kindOfPart(part trainers.Part) (kind breakdown.Kind, within bool) {
	loop := trainers.Of(r.res.Source, r.res.StepDurationKind)
	switch part {
	case trainers.Communicating:
		return breakdown.Collective, true
	case trainers.LoadingData:
		return breakdown.DataLoading, true
	case trainers.Checkpointing:
		return breakdown.Checkpoint, loop.Checkpoint != trainers.Between
	case trainers.Evaluating:
		return breakdown.Evaluation, loop.Evaluation != trainers.Between
	case trainers.Computing, trainers.Waiting: // distinguished by facts.Waiting
	}
	return breakdown.Unattributed, true
}
