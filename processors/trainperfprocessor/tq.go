package trainperfprocessor

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/spans"
)

// mib turns the MiB/s of the config into the By/s of the spans.
const mib = 1 << 20

const childStages = 3 // get, compute, put

var (
	shareAttr    = [childStages]string{spans.AttrTQGetUtilization, spans.AttrTQComputeUtilization, spans.AttrTQPutUtilization}
	shareSource  = [childStages]string{spans.AttrTQGetUtilizationSource, spans.AttrTQComputeUtilizationSource, spans.AttrTQPutUtilizationSource}
	stageTitle   = [...]string{spans.TQGet: "GET", spans.TQCompute: "COMPUTE", spans.TQPut: "PUT", spans.TQClientGet: "GET", spans.TQClientPut: "PUT"}
	stageVerdict = [...]string{
		spans.TQGet: spans.VerdictTQGetFluctuating, spans.TQPut: spans.VerdictTQPutFluctuating,
		spans.TQClientGet: spans.VerdictTQGetFluctuating, spans.TQClientPut: spans.VerdictTQPutFluctuating,
	}
)

// outcome says what could be said about a function.
type outcome uint8

const (
	measured outcome = iota
	noStages
	incomplete
	noDuration
	alreadyMeasured
	selfMeasured
	partlyReported
	outcomes
)

var outcomeOptions = func() (options [outcomes]metric.AddOption) {
	for i, name := range [outcomes]string{"measured", "no_stages", "incomplete", "no_duration", "already_measured", "self_measured", "partly_reported"} {
		options[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", name)))
	}
	return options
}()

// tq recomputes and judges TransferQueue functions.
type tq struct {
	cfg      TQConfig
	windows  *windows
	episodes *allEpisodes
	runs     *simplelru.LRU[runKey, *tqRun] // the lock of episodes is its too
}

func newTQ(cfg TQConfig) *tq {
	cfg.ThroughputGood *= mib
	cfg.ThroughputLow *= mib
	return &tq{cfg: cfg, windows: newWindows(cfg.Fluctuation), episodes: newAllEpisodes(), runs: newLRU[runKey, *tqRun]()}
}

// spanKey names a span. Span ids alone are unique only within their trace.
type spanKey struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// function is a function span with what its attributes say.
type function struct {
	span ptrace.Span
	key  spanKey
	tqSpan
}

// child is a stage span of a function.
type child struct {
	fn         int32 // index of the function, −1 while unknown
	stage      spans.TQStage
	open       bool // its duration is not known
	parent     spanKey
	id         pcommon.SpanID
	start, end uint64
}

// apart is a stage span whose function did not come before it.
type apart struct {
	child int32 // its index
	span  ptrace.Span
	tqSpan
}

// tqScratch is the part of scratch that is about TransferQueue.
type tqScratch struct {
	functions []function
	children  []child
	apart     []apart
	byKey     map[spanKey]int32
	outcomes  [outcomes]int64
}

// process handles the spans collected of one resource. A function and its stages share one, and tq_trace sends them together. The SDK of a Go service sends
// what ended first, so that a function may come without its stages, and brings its shares itself.
func (t *tq) process(s *scratch) {
	t.resolve(s)
	next := 0
	for i := range s.functions {
		first := next
		for next < len(s.children) && s.children[next].fn == int32(i) {
			next++
		}
		s.outcomes[t.function(&s.functions[i], s.children[first:next], s)]++
	}
}

// collect sorts one span into the scratch. Client operations need nothing but themselves and are judged at once.
func (t *tq) collect(span ptrace.Span, in *tqSpan, s *scratch) {
	if in.stage == spans.TQNone {
		return
	}
	s.scopeTQ = true
	in.done = in.done || s.scopeJudged
	switch in.stage {
	case spans.TQFunction:
		s.functions = append(s.functions, function{span: span, key: spanKey{span.TraceID(), span.SpanID()}, tqSpan: *in})
	case spans.TQGet, spans.TQCompute, spans.TQPut:
		c := child{
			fn: -1, stage: in.stage, parent: spanKey{span.TraceID(), span.ParentSpanID()}, id: span.SpanID(),
			start: uint64(span.StartTimestamp()), end: uint64(span.EndTimestamp()),
		}
		c.open = in.incomplete || c.end < c.start
		// tq_trace writes the children right after their function.
		if last := len(s.functions) - 1; last >= 0 && s.functions[last].key == c.parent {
			c.fn = int32(last)
		}
		if c.fn < 0 {
			s.apart = append(s.apart, apart{child: int32(len(s.children)), span: span, tqSpan: *in})
		}
		s.children = append(s.children, c)
	case spans.TQClientGet, spans.TQClientPut:
		t.client(span, in, s)
	}
}

// resolve finds the functions of children that did not follow theirs, judges those without function by themselves, and leaves the
// rest in the order of functions and, within each, of time.
func (t *tq) resolve(s *scratch) {
	if len(s.apart) > 0 {
		if s.byKey == nil {
			s.byKey = make(map[spanKey]int32)
		}
		clear(s.byKey)
		for i := range s.functions {
			s.byKey[s.functions[i].key] = int32(i)
		}
		for i := range s.apart {
			a := &s.apart[i]
			c := &s.children[a.child]
			if fn, ok := s.byKey[c.parent]; ok {
				c.fn = fn
			} else {
				t.stageApart(a, c, s)
			}
		}
		s.children = slices.DeleteFunc(s.children, func(c child) bool { return c.fn < 0 })
	}
	order := func(a, b child) int { return cmp.Or(cmp.Compare(a.fn, b.fn), cmp.Compare(a.start, b.start)) }
	if !slices.IsSortedFunc(s.children, order) {
		slices.SortStableFunc(s.children, order)
	}
}

// function measures and judges one function by its stages, which are in order of start.
//
// The shares are ΣGET/total and so on: sums, as the log's own ratios. Stages that overlap can sum to more than 1;
// tq.unattributed.utilization is 1 − wall-clock union, and so stays within 0..1. The share of a stage whose line was lost is the one that
// FUNCTION_END states, and says so.
func (t *tq) function(f *function, children []child, s *scratch) outcome {
	switch {
	case f.done:
		return alreadyMeasured
	case f.carried:
		return t.judgeCarried(f, children, s)
	}
	start, end := uint64(f.span.StartTimestamp()), uint64(f.span.EndTimestamp())
	var sum [childStages]uint64
	var have, open [childStages]bool
	var covered uint64
	complete := !f.incomplete
	at := start
	for i := range children {
		c := &children[i]
		if c.open {
			open[c.stage], complete = true, false
			continue
		}
		have[c.stage] = true
		sum[c.stage] = addSaturated(sum[c.stage], c.end-c.start)
		// The part of [start, end] this child covers beyond the ones before it.
		if from, to := max(c.start, at), min(c.end, end); to > from {
			covered += to - from
			at = to
		}
	}
	staged := have[spans.TQGet] || have[spans.TQCompute] || have[spans.TQPut]
	attrs := f.span.Attributes()
	attrs.EnsureCapacity(attrs.Len() + 9)
	nothing := measured
	switch {
	case end <= start:
		nothing = noDuration
	case !complete && !f.reportedAny:
		// The end of such a function is only the last thing seen of it: shares of that would be invented.
		nothing = incomplete
	case !staged && !f.reportedAny:
		nothing = noStages
	}
	if nothing != measured {
		nan := math.NaN()
		f.summarize(&[childStages]float64{nan, nan, nan}, nan, &[childStages]bool{}, s)
		return nothing
	}

	total := float64(end - start)
	var share [childStages]float64
	var reported [childStages]bool
	known, recomputed := true, true
	disagreement, compared := 0.0, false
	for i := range share {
		r := f.reported[i]
		switch {
		case have[i] && !open[i], complete && staged: // of the latter a stage without spans took no time
			share[i] = float64(sum[i]) / total
			if !math.IsNaN(r) {
				disagreement, compared = max(disagreement, math.Abs(share[i]-r)), true
			}
		case math.IsNaN(r):
			share[i], known, recomputed = r, false, false
			continue
		default:
			share[i], reported[i], recomputed = r, true, false
			attrs.PutStr(shareSource[i], spans.TQShareReported)
		}
		attrs.PutDouble(shareAttr[i], share[i])
	}
	overhead := share[spans.TQGet] + share[spans.TQPut] // NaN where one is not known
	if !math.IsNaN(overhead) && !reported[spans.TQGet] && !reported[spans.TQPut] {
		overhead = float64(addSaturated(sum[spans.TQGet], sum[spans.TQPut])) / total // rounded once
	}
	spans.PutFinite(attrs, spans.AttrTQOverheadUtilization, overhead)
	if recomputed {
		attrs.PutDouble(spans.AttrTQUnattributedUtilization, float64(end-start-covered)/total)
	}
	if compared {
		attrs.PutDouble(spans.AttrTQUtilizationDisagreement, disagreement)
	}

	f.summarize(&share, overhead, &reported, s)
	s.verdicts = s.verdicts[:0]
	t.judgeCompute(share[spans.TQCompute], s)
	t.judgeOverhead(f, &share, overhead, &reported, s)
	t.judgeFluctuation(f, children, s)
	s.put(f.span)
	switch {
	case !staged:
		return noStages
	case !known:
		return incomplete
	case !recomputed:
		return partlyReported
	}
	return measured
}

// judgeCarried judges a function by the shares that it brought, and leaves them as they are: stages that miss here may have come in another batch.
func (t *tq) judgeCarried(f *function, children []child, s *scratch) outcome {
	switch {
	case f.incomplete:
		return incomplete
	case f.span.EndTimestamp() <= f.span.StartTimestamp():
		return noDuration
	}
	number := func(name string) float64 {
		if v, ok := f.span.Attributes().Get(name); ok {
			return spans.ValueNumber(v)
		}
		return math.NaN()
	}
	var share [childStages]float64
	for i, name := range shareAttr {
		share[i] = number(name)
	}
	overhead := number(spans.AttrTQOverheadUtilization)
	if math.IsNaN(overhead) {
		overhead = share[spans.TQGet] + share[spans.TQPut]
	}
	f.summarize(&share, overhead, &[childStages]bool{}, s)
	s.verdicts = s.verdicts[:0]
	t.judgeCompute(share[spans.TQCompute], s)
	t.judgeOverhead(f, &share, overhead, &[childStages]bool{}, s)
	t.judgeFluctuation(f, children, s)
	s.put(f.span)
	return selfMeasured
}

func (t *tq) judgeCompute(share float64, s *scratch) {
	if share > t.cfg.ComputeShareGood {
		s.verdicts = append(s.verdicts, verdict{
			name: spans.VerdictTQComputeShareGood, severity: good, value: share, threshold: t.cfg.ComputeShareGood,
		})
	}
}

// summarize writes what the function is about in one line: "TQ overhead 41.6 % · get 21.8 % · put 19.8 %; batch 64; worker 1531903".
func (f *function) summarize(share *[childStages]float64, overhead float64, reported *[childStages]bool, s *scratch) {
	l := line{s.text[:0]}
	l.share("TQ overhead", overhead)
	for _, st := range [...]spans.TQStage{spans.TQGet, spans.TQPut} {
		l.share(st.String(), share[st])
		if reported[st] {
			l.text = append(l.text, " (the log's)"...)
		}
	}
	if f.incomplete {
		l.part("incomplete")
		if f.reason != "" {
			l.text = append(append(append(l.text, " ("...), f.reason...), ')')
		}
	}
	if f.batch >= 0 {
		l.part("batch ")
		l.text = strconv.AppendInt(l.text, f.batch, 10)
	}
	if f.pid != 0 {
		l.part("worker ")
		l.text = strconv.AppendInt(l.text, f.pid, 10)
	}
	s.text = l.put(f.span)
}

// runKey names a run.
type runKey struct{ service, run string }

// tqRun is what TransferQueue cost a run so far: what one call's verdict is to be seen against.
type tqRun struct {
	calls, high int     // calls with known shares, and those above the limit
	total, tq   float64 // s
	host        string  // of the first call
	highHost    string  // of the first above the limit
	hosts       bool    // calls ran on several hosts
	highHosts   bool    // those above the limit did
}

// record counts a call, whose verdicts are asked for next, and returns what the run is like with it. The lock must be held.
func (t *tq) record(f *function, overhead float64, s *scratch) (*episodes, *tqRun) {
	e, _ := t.episodes.of(episodeKey{service: s.service, run: s.run, of: f.name, stage: spans.TQFunction})
	e.record(binary.BigEndian.Uint64(f.key.span[:]))
	r, ok := t.runs.Get(runKey{s.service, s.run})
	if !ok {
		r = new(tqRun)
		t.runs.Add(runKey{strings.Clone(s.service), strings.Clone(s.run)}, r)
	}
	if e.repeat {
		return e, r
	}
	host := spans.AttrText(s.resource, spans.AttrHostName)
	total := float64(f.span.EndTimestamp()-f.span.StartTimestamp()) / 1e9
	if r.calls++; r.calls == 1 {
		r.host = strings.Clone(host)
	}
	r.hosts = r.hosts || host != r.host
	r.total += total
	r.tq += total * overhead
	if overhead > t.cfg.OverheadHigh {
		if r.high++; r.high == 1 {
			r.highHost = strings.Clone(host)
		}
		r.highHosts = r.highHosts || host != r.highHost
	}
	return e, r
}

// append writes "TransferQueue took 17% of the time of the run's 240 calls so far; 48 of them were above 30%, all on 10.4.1.33."
func (r *tqRun) append(b []byte, limit float64) []byte {
	b = append(b, " TransferQueue took "...)
	b = appendPercent(b, r.tq/r.total)
	b = append(b, " of the time of the run's "...)
	b = appendInt(b, r.calls)
	b = append(b, " calls so far; "...)
	b = appendInt(b, r.high)
	b = append(b, " of them were above "...)
	b = appendPercent(b, limit)
	if r.high > 1 && r.hosts && !r.highHosts && r.highHost != "" {
		b = append(b, ", all on "...)
		b = append(b, r.highHost...)
	}
	return append(b, '.')
}

// judgeOverhead says that a call spent much of its time in TransferQueue: on each such call, until it is so for nearly all of them. Once in a while it says
// what that means for the run.
func (t *tq) judgeOverhead(f *function, share *[childStages]float64, overhead float64, reported *[childStages]bool, s *scratch) {
	if math.IsNaN(overhead) {
		return
	}
	t.episodes.mu.Lock()
	defer t.episodes.mu.Unlock()
	e, run := t.record(f, overhead, s)
	v := verdict{value: overhead}
	switch {
	case overhead > t.cfg.OverheadHigh:
		v.name, v.severity, v.threshold = spans.VerdictTQOverheadHigh, bad, t.cfg.OverheadHigh
	case overhead >= t.cfg.OverheadElevated:
		v.name, v.severity, v.threshold = spans.VerdictTQOverheadElevated, warning, t.cfg.OverheadElevated
	default:
		return
	}
	said := e.mostly(v.name)
	if !said.say {
		return
	}
	b := s.text[:0]
	b = append(b, "TransferQueue took "...)
	b = appendPercent(b, overhead)
	b = append(b, " of the "...)
	b = appendDecimal(b, float64(f.span.EndTimestamp()-f.span.StartTimestamp())/1e9, 6)
	b = append(b, " s of "...)
	b = append(b, f.name...)
	if get, put := share[spans.TQGet], share[spans.TQPut]; !math.IsNaN(get + put) {
		const asReported = " as reported by the log"
		b = append(b, " (GET "...)
		b = appendPercent(b, get)
		if reported[spans.TQGet] && !reported[spans.TQPut] {
			b = append(b, asReported...)
		}
		b = append(b, ", PUT "...)
		b = appendPercent(b, put)
		switch {
		case reported[spans.TQGet] && reported[spans.TQPut]:
			b = append(b, ", both"...)
			fallthrough
		case reported[spans.TQPut]:
			b = append(b, asReported...)
		}
		b = append(b, ')')
	}
	if v.severity == bad {
		b = append(b, ", above the limit of "...)
	} else {
		b = append(b, ", not below the target of "...)
	}
	b = appendPercent(b, v.threshold)
	b = append(b, ": check the storage backend's configuration (Redis or distributed storage), "+
		"tune the batch size so that fewer transfers are needed, consider compressing the data."...)
	b = said.appendShare(b, "calls")
	if said.again && !e.repeat {
		from := len(b)
		b = run.append(b, t.cfg.OverheadHigh)
		e.add(v.name, string(b[from:]))
	}
	b = append(b, said.more...)
	v.reason, s.text = string(b), b
	s.verdicts = append(s.verdicts, v)
}

// judgeFluctuation feeds the windows with the function's GET and PUT times, in their order.
func (t *tq) judgeFluctuation(f *function, children []child, s *scratch) {
	var news [childStages]spread
	for i := range children {
		if c := &children[i]; c.stage != spans.TQCompute && !c.open {
			sp := t.feed(f.name, c.stage, c.id, c.end-c.start, s)
			if !news[c.stage].tell {
				news[c.stage] = sp
			}
		}
	}
	t.judgeSpread(f.name, spans.TQGet, news[spans.TQGet], s)
	t.judgeSpread(f.name, spans.TQPut, news[spans.TQPut], s)
}

func (t *tq) feed(fn string, st spans.TQStage, id pcommon.SpanID, ns uint64, s *scratch) spread {
	key := windowKey{service: s.service, run: s.run, function: fn, stage: st}
	got, evicted := t.windows.add(key, binary.BigEndian.Uint64(id[:]), ns)
	if evicted {
		s.evicted++
	}
	return got
}

func (t *tq) judgeSpread(fn string, st spans.TQStage, sp spread, s *scratch) {
	if !sp.tell {
		return
	}
	limit := t.cfg.Fluctuation.Threshold
	b := s.text[:0]
	b = append(b, "The "...)
	b = append(b, stageTitle[st]...)
	b = append(b, " times of "...)
	b = append(b, fn...)
	b = append(b, " fluctuate: over the last "...)
	b = appendInt(b, sp.n)
	b = append(b, " the standard deviation was "...)
	b = appendPercent(b, sp.cv)
	b = append(b, " of the mean of "...)
	b = appendDecimal(b, sp.mean, 6)
	b = append(b, " s, above the limit of "...)
	b = appendPercent(b, limit)
	b = append(b, ": the network or the storage is not stable."...)
	s.text = b
	s.verdicts = append(s.verdicts, verdict{
		name: stageVerdict[st], severity: warning, reason: string(b), value: sp.cv, threshold: limit,
	})
}

// stageApart judges a stage that came without its function by the window of the function's name, so that a window misses nothing that a
// batch was cut through. COMPUTE has no window.
func (t *tq) stageApart(a *apart, c *child, s *scratch) {
	if a.done || c.open || c.stage == spans.TQCompute || a.name == "" {
		return
	}
	s.verdicts = s.verdicts[:0]
	t.judgeSpread(a.name, c.stage, t.feed(a.name, c.stage, c.id, c.end-c.start, s), s)
	s.put(a.span)
}

// client judges one client operation. Those that stand alone (sync workers log no function around them) feed a
// window of their own; those inside a function are already in the window of its GET or PUT.
func (t *tq) client(span ptrace.Span, in *tqSpan, s *scratch) {
	if in.done || in.incomplete || span.EndTimestamp() < span.StartTimestamp() {
		return
	}
	s.verdicts = s.verdicts[:0]
	t.judgeThroughput(span.SpanID(), in, s)
	if span.ParentSpanID().IsEmpty() {
		ns := uint64(span.EndTimestamp() - span.StartTimestamp())
		t.judgeSpread(in.name, in.stage, t.feed(in.name, in.stage, span.SpanID(), ns, s), s)
	}
	s.put(span)
}

// judgeThroughput leaves out operations of no known size: the log counts tensors only, so a size of 0 says nothing.
func (t *tq) judgeThroughput(id pcommon.SpanID, in *tqSpan, s *scratch) {
	speed := in.throughput
	if math.IsNaN(speed) {
		speed = in.throughputReported
	}
	if !(speed > 0) {
		return
	}
	t.episodes.mu.Lock()
	defer t.episodes.mu.Unlock()
	e, _ := t.episodes.of(episodeKey{service: s.service, run: s.run, of: in.name, stage: in.stage})
	e.record(binary.BigEndian.Uint64(id[:]))
	switch {
	case speed > t.cfg.ThroughputGood:
		s.verdicts = append(s.verdicts, verdict{
			name: spans.VerdictTQThroughputGood, severity: good, value: speed, threshold: t.cfg.ThroughputGood,
		})
	case speed < t.cfg.ThroughputLow:
		said := e.mostly(spans.VerdictTQThroughputLow)
		if !said.say {
			return
		}
		b := s.text[:0]
		b = append(b, stageTitle[in.stage]...)
		if in.size > 0 {
			b = append(b, " moved "...)
			b = appendDecimal(b, float64(in.size)/mib, 2)
			b = append(b, " MiB"...)
		} else {
			b = append(b, " ran"...)
		}
		b = append(b, " at "...)
		b = appendDecimal(b, speed/mib, 2)
		b = append(b, " MiB/s, below the limit of "...)
		b = appendDecimal(b, t.cfg.ThroughputLow/mib, 2)
		b = append(b, " MiB/s: check the network bandwidth, the IOPS of the storage, and how the data is serialised."...)
		b = said.appendShare(b, "operations")
		s.text = b
		s.verdicts = append(s.verdicts, verdict{
			name: spans.VerdictTQThroughputLow, severity: bad, reason: string(b), value: speed, threshold: t.cfg.ThroughputLow,
		})
	}
}

// addSaturated keeps absurd times from wrapping around to plausible ones.
func addSaturated(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
