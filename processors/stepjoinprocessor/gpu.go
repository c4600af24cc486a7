package stepjoinprocessor

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/gpus"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/why"
	"github.com/trainbridge/trainbridge/spans"
)

// createMetrics makes the instance for a pipeline of metrics. It passes metrics on, and adds a metric of the runs for which the GPUs work (addInfo). The
// instance of traces with the same component id reads the GPU values.
func (f *factory) createMetrics(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	known, release := f.gpus.Use(set.ID)
	keep := cfg.(*Config).Keep
	return processorhelper.NewMetrics(ctx, set, cfg, next, func(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
		if n := known.Notice(md, keep, func(list []gpus.Info) { addInfo(md, list) }); n > 0 {
			telemetry.ProcessorStepJoinGpuPointsIgnored.Add(ctx, n)
		}
		return md, nil
	}, processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}), processorhelper.WithShutdown(func(context.Context) error {
		telemetry.Shutdown()
		release()
		return nil
	}))
}

// addInfo appends a gauge of value 1 (ml.run.gpu.info) for each GPU and process of a run, to join metrics of GPUs with metrics of runs and ranks in queries.
// Points of one run share a resource.
func addInfo(md pmetric.Metrics, list []gpus.Info) {
	type home struct{ service, run string }
	points := map[home]pmetric.NumberDataPointSlice{}
	for i := range list {
		info := &list[i]
		at, ok := points[home{info.Service, info.Run}]
		if !ok {
			rm := md.ResourceMetrics().AppendEmpty()
			spans.Resource{Service: info.Service, RunID: info.Run}.PutInstance(rm.Resource().Attributes())
			sm := rm.ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(metadata.ScopeName)
			m := sm.Metrics().AppendEmpty()
			d := spans.MetricNamed(spans.MetricRunGPUInfo)
			d.Declare(m)
			at = m.Gauge().DataPoints()
			points[home{info.Service, info.Run}] = at
		}
		p := at.AppendEmpty()
		p.SetTimestamp(pcommon.Timestamp(info.At))
		p.SetIntValue(1)
		p.Attributes().PutStr(spans.AttrHostName, info.Host)
		p.Attributes().PutStr(spans.AttrHardwareID, info.ID)
		p.Attributes().PutStr(spans.AttrHardwareName, info.Name)
		if info.Rank >= 0 {
			p.Attributes().PutInt(spans.AttrRank, info.Rank)
		}
	}
}

// recordProcess records the process that wrote the spans of a resource: in the run when the process worked, for the GPUs of steps; in p.gpus the run and the
// rank, because nvml knows the GPU of a process. Spans come nearly in order of time, so the first and the last span of a scope have about the earliest and the
// latest time. A resource without run, host or process id is ignored.
func (r *reader) recordProcess(rs ptrace.ResourceSpans, now time.Time) {
	if r.res.Run == "" || r.res.Host == "" || r.res.PID.Or(0) <= 0 {
		return
	}
	first, last := int64(math.MaxInt64), int64(0)
	rank := r.res.Rank.Or(-1)
	for _, ss := range rs.ScopeSpans().All() {
		list := ss.Spans()
		if n := list.Len(); n > 0 {
			first = min(first, int64(list.At(0).StartTimestamp()), int64(list.At(n-1).StartTimestamp()))
			last = max(last, int64(list.At(0).EndTimestamp()), int64(list.At(n-1).EndTimestamp()))
			if rank < 0 {
				rank = number(list.At(0).Attributes(), spans.AttrRank)
			}
		}
	}
	if last > 0 {
		run := r.p.run(r.res.Run, now)
		run.Process(facts.Process{Host: run.Number(r.res.Host), PID: int32(r.res.PID.Or(0))}, first, last)
		r.p.gpus.Work(gpus.Process{Host: r.res.Host, PID: int32(r.res.PID.Or(0))}, r.res.Service, r.res.Run, rank)
	}
}

// lateRanks finds the processes of the last ranks of a batch's collectives: the rank's span, in the same trace as the collective's, has the process. The memory
// is reused.
type lateRanks struct {
	wanted  bool // GPUs are known
	byTrace map[pcommon.TraceID]lateLeaf
	ranks   map[lateRank]struct{} // the last ranks so far
	names   map[string]struct{}   // their spans' names
}

// lateLeaf is a collective whose last rank is looked for: by index, because lists grow.
type lateLeaf struct {
	run   *facts.Run
	group *facts.Group // nil: the leaf is one of the run's
	at    int          // index in group.Own, or in the run's leaves
}

// begin starts a batch. With wanted false, nothing is recorded.
func (l *lateRanks) begin(wanted bool) {
	l.wanted = wanted
	if l.ranks == nil {
		l.byTrace, l.ranks, l.names = map[pcommon.TraceID]lateLeaf{}, map[lateRank]struct{}{}, map[string]struct{}{}
	}
	clear(l.byTrace)
	clear(l.ranks)
	clear(l.names)
}

// note records the leaf that was just added, to group g or (nil) to the run, if the leaf is a late collective with a rank to blame.
func (l *lateRanks) note(r *facts.Run, g *facts.Group, leaf *facts.Leaf) {
	rankToBlame := leaf.Kind == breakdown.Collective && leaf.LateRank >= 0 && leaf.Blame > 0
	if !l.wanted || !rankToBlame {
		return
	}
	index := r.Leaves() - 1
	if g != nil {
		index = len(g.Own) - 1
	}
	l.byTrace[leaf.Trace] = lateLeaf{r, g, index}
	last := lateRank{r, leaf.LateRank, leaf.LateHost}
	if _, ok := l.ranks[last]; !ok {
		l.ranks[last] = struct{}{}
		l.names[spans.NCCLRankName(last.rank, r.Text(last.host))] = struct{}{}
	}
}

// leaf returns the leaf of the collective; the pointer is valid until the next leaf is added.
func (l lateLeaf) leaf() *facts.Leaf {
	if l.group != nil {
		return &l.group.Own[l.at]
	}
	return l.run.Leaf(l.at)
}

// lateRank is the last rank of a collective.
type lateRank struct {
	run  *facts.Run
	rank int32
	host uint32
}

// latePIDs is called at the end of a batch. It finds the processes of the last ranks, and writes them in the leaves of their collectives (LatePID).
func (r *reader) latePIDs(td ptrace.Traces) {
	if len(r.late.byTrace) == 0 {
		return
	}
	for _, rs := range td.ResourceSpans().All() {
		r.late.find(rs)
	}
}

// find looks in a resource, which names host and process, for spans of last ranks. Most spans are ruled out by their names alone.
func (l *lateRanks) find(rs ptrace.ResourceSpans) {
	host, pid, read := "", int64(0), false // of the resource, read for the first span that matters
	last, wanted := "", false              // spans of one rank are consecutive
	for _, ss := range rs.ScopeSpans().All() {
		list := ss.Spans()
		for i := range list.Len() {
			s := list.At(i)
			if name := s.Name(); name != last {
				last = name
				_, wanted = l.names[name]
			}
			if !wanted {
				continue
			}
			at, ok := l.byTrace[s.TraceID()]
			if !ok {
				continue
			}
			if !read {
				attrs := rs.Resource().Attributes()
				host, pid, read = spans.AttrText(attrs, spans.AttrHostName), number(attrs, spans.AttrProcessPID), true
			}
			leaf := at.leaf()
			if rank := number(s.Attributes(), spans.AttrNCCLCommRank); rank == int64(leaf.LateRank) && host == at.run.Text(leaf.LateHost) {
				leaf.LatePID = int32(pid)
			}
		}
	}
}

// number returns the whole number in an attribute; −1: absent, or beyond 32 bits.
func number(attrs pcommon.Map, key string) int64 {
	if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeInt && v.Int() == int64(int32(v.Int())) {
		return v.Int()
	}
	return -1
}

// windowProcesses has the processes and hosts where the work of the window at hand ran, and the ranks waited for, to find the GPUs of the window. The memory is
// reused.
type windowProcesses struct {
	run       *facts.Run
	processes map[facts.Process]struct{}
	hosts     map[uint32]struct{}
	late      map[breakdown.Who]int32 // the process of each rank waited for; −1: unknown, or several
	last      facts.Process           // added last

	// Memory of putGPUState and noteGPUs.
	list    []gpus.Process
	names   []string
	ranks   []breakdown.Who
	of      []*gpus.GPU
	notes   []why.Note
	scratch gpus.Scratch
}

// begin starts a window. For a step, it adds every process of the run that is active during the step. Other windows name their own process (windows).
func (n *windowProcesses) begin(r *facts.Run, w *facts.Window) {
	if n.processes == nil {
		n.processes, n.hosts, n.late = map[facts.Process]struct{}{}, map[uint32]struct{}{}, map[breakdown.Who]int32{}
	}
	clear(n.processes)
	clear(n.hosts)
	clear(n.late)
	n.run, n.last = r, facts.Process{}
	if w.Kind == facts.Step && !w.Flags.Has(facts.Timeless) {
		r.Processes(w.Start, w.End, n.add)
	}
}

// add adds a process, or only its host if the process id is 0.
func (n *windowProcesses) add(p facts.Process) {
	if p.Host == 0 || p == n.last {
		return
	}
	n.last = p
	n.hosts[p.Host] = struct{}{}
	if p.PID > 0 {
		n.processes[p] = struct{}{}
	}
}

// windows adds the processes of a group's windows.
func (n *windowProcesses) windows(g *facts.Group) {
	for i := range g.Windows {
		n.add(facts.Process{Host: g.Windows[i].Host, PID: g.Windows[i].PID})
	}
}

// leaf adds the process of a leaf, and that of the last rank.
func (n *windowProcesses) leaf(l *facts.Leaf) {
	n.add(facts.Process{Host: l.Host, PID: l.PID})
	n.add(facts.Process{Host: l.LateHost, PID: l.LatePID})
}

// lateRank records the process of a rank that a collective waited for. If collectives of the window name different processes, or none, the process is −1:
// unknown.
func (n *windowProcesses) lateRank(who *breakdown.Who, l *facts.Leaf) {
	worker, ok := who.RankOnly()
	if !ok {
		return
	}
	pid := l.LatePID
	before, again := n.late[worker]
	if pid <= 0 || again && before != pid {
		pid = -1
	}
	n.late[worker] = pid
}

// mostHeld bounds the events of a window, and mostNotes the notes about GPUs of unknown ranks.
const (
	mostHeld  = 8
	mostNotes = 4
)

// putGPUState writes the state of the GPUs on a breakdown span: the GPUs of the window's processes, else all GPUs of the window's hosts. It returns notes that
// may explain slowness, only if the GPUs are those of the processes. For a window without a place in time, or without a GPU sample, nothing is written and nil
// returned.
func (d *deriver) putGPUState(s ptrace.Span, r *facts.Run, w *facts.Window) []why.Note {
	n := &d.gpus
	n.list, n.names, n.notes = n.list[:0], n.names[:0], n.notes[:0]
	// With clocks apart, only samples of the window's own host are certainly of the window's time.
	apart := d.clocksApart(r)
	for p := range n.processes {
		if !apart || p.Host == w.Host {
			n.list = append(n.list, gpus.Process{Host: r.Text(p.Host), PID: p.PID})
		}
	}
	for host := range n.hosts {
		if !apart || host == w.Host {
			n.names = append(n.names, r.Text(host))
		}
	}
	if w.Flags.Has(facts.Timeless) {
		return nil
	}
	seen, ok := d.p.gpus.Within(&n.scratch, w.Start, w.End, n.list, n.names)
	if !ok {
		return nil
	}
	putGPUs(s, &seen, w)
	if seen.Stated { // otherwise the GPUs of the window are unknown
		d.noteGPUs(&seen, w)
	}
	return n.notes
}

// putGPUs writes the means over the window's GPUs and the throttled seconds as attributes, and an event for each of the mostHeld longest throttled GPUs and
// for each of the first mostBad XID errors.
func putGPUs(s ptrace.Span, seen *gpus.Window, w *facts.Window) {
	m := s.Attributes()
	m.PutInt(spans.AttrGPUCount, int64(seen.GPUs))
	m.PutInt(spans.AttrGPUSampleCount, int64(seen.Samples))
	for _, a := range [...]struct {
		key   string
		value float64
	}{
		{spans.AttrGPUUtilization, seen.Utilization.Mean},
		{spans.AttrGPUUtilizationMin, seen.Utilization.Min},
		{spans.AttrGPUPower, seen.Power.Mean},
		{spans.AttrGPUTemperature, seen.Temperature.Mean},
		{spans.AttrGPUTemperatureMax, seen.Temperature.Max},
		{spans.AttrGPUClock, seen.Clock.Mean * 1e6}, // MHz to Hz
		{spans.AttrGPUClockMin, seen.Clock.Min * 1e6},
	} {
		if a.value == a.value { // not NaN: measured
			m.PutDouble(a.key, a.value)
		}
	}
	for c, seconds := range seen.Throttled {
		if seconds > 0 {
			m.PutDouble(gpus.Cause(c).Attribute(), seconds)
		}
	}
	slices.SortStableFunc(seen.Held, func(a, b gpus.Held) int { return cmp.Compare(b.Most(), a.Most()) })
	for i := range seen.Held[:min(len(seen.Held), mostHeld)] {
		h := &seen.Held[i]
		if h.Most() == 0 {
			break // throttled only by the power limit
		}
		e := event(s, spans.EventGPUThrottled, max(h.Since, w.Start), h.GPU)
		for c, seconds := range h.Seconds {
			if seconds > 0 {
				e.PutDouble(gpus.Cause(c).Attribute(), seconds)
			}
		}
	}
	for i := range seen.Errors[:min(len(seen.Errors), mostBad)] {
		x := &seen.Errors[i]
		e := event(s, spans.EventGPUXID, x.At, x.GPU)
		e.PutStr(spans.AttrErrorType, x.Code)
		e.PutInt(spans.AttrGPUErrorCount, x.Count)
	}
}

// event adds an event about a GPU to a span, and returns the attributes of the event; the attributes of the GPU are set.
func event(s ptrace.Span, name string, at int64, gpu *gpus.GPU) pcommon.Map {
	e := s.Events().AppendEmpty()
	e.SetName(name)
	e.SetTimestamp(pcommon.Timestamp(at))
	m := e.Attributes()
	m.PutStr(spans.AttrHostName, gpu.Host)
	m.PutStr(spans.AttrHardwareID, gpu.ID)
	m.PutStr(spans.AttrHardwareName, gpu.Name)
	return m
}

// noteGPUs adds notes about throttled GPUs, for causes that a healthy machine does not have (windowProcesses.note), in two groups. First, by host, the
// mostNotes GPUs of the window throttled the longest (putGPUs has sorted them): they may explain longer computing. Then the GPU of each rank waited for, if the
// rank's process and the GPUs of the process are known.
//
// A throttled GPU on the host of a late rank, perhaps of another rank, does not explain the rank's lateness.
func (d *deriver) noteGPUs(seen *gpus.Window, w *facts.Window) {
	n := &d.gpus
	for i := range seen.Held[:min(len(seen.Held), mostNotes)] {
		n.note(breakdown.Who{Host: seen.Held[i].Host}, &seen.Held[i])
	}
	// In a fixed order, because maps have none and a verdict names the first of equal notes.
	n.ranks = slices.AppendSeq(n.ranks[:0], maps.Keys(n.late))
	slices.SortFunc(n.ranks, breakdown.Who.Compare)
	for _, who := range n.ranks {
		pid := n.late[who]
		if pid <= 0 || who.Host == "" {
			continue
		}
		n.of = d.p.gpus.Of(n.of[:0], gpus.Process{Host: who.Host, PID: pid}, w.Start, w.End)
		for i := range seen.Held {
			if slices.Contains(n.of, seen.Held[i].GPU) {
				n.note(who, &seen.Held[i])
			}
		}
	}
}

// note adds a note about a rank or a host, unless the GPU was throttled only for causes that any healthy machine has.
func (n *windowProcesses) note(who breakdown.Who, h *gpus.Held) {
	if c, ok := h.Longest(); ok {
		n.notes = append(n.notes, why.Note{Who: who, Text: h.Name + " was held down " + c.Phrase(), Seconds: h.Seconds[c]})
	}
}
