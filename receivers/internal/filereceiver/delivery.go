package filereceiver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/refusal"
	"github.com/trainbridge/trainbridge/internal/turns"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/spans"
)

// Batch is the result of a handler's Cut. A Batch keeps records, not pdata: a consumer may change or empty its argument even when the call fails, so each try
// builds the data anew, and the usual single try costs no copy.
type Batch interface {
	// Traces adds the batch's spans to out. Before the spans of a record, Traces calls from with the record's tail.Place.
	Traces(out *spans.Batch, from From)
	// Metrics returns the batch's data points. Without points no metrics are sent.
	Metrics() pmetric.Metrics
	// Done is called once when the batch is delivered or refused for good.
	Done()
}

// Spread is a Batch with spans that are each made of several records. Such a Batch calls From with numbers of its own, above all places, and Places maps such a
// number to the places of the records. Any other number is a place, and maps to itself.
type Spread interface {
	Places(n tail.Place) []tail.Place
}

// Valued is a Batch that can pass the GPU values of its records (nvidia-smi, DCGM) directly, instead of as metrics: an offline report reads only the values
// (Receiver.gpus). A value is valid until the call of to returns.
type Valued interface {
	GPUs(to func(*spans.GPUValues))
}

// Texter is a Batch that knows whether its spans have texts or field names of the log, and whether its points have labels made of texts. Without texts nothing
// is redacted.
type Texter interface {
	Texts() (onSpans, onPoints bool)
}

// From is called by Traces before the spans of a record, with the record's place: by the place a refused span is traced back to the lines of its record.
type From func(tail.Place)

// Deliver returns a batch as a tail.Delivery, for a handler's Cut to return. bridge/tail sends the Delivery later, perhaps joined with others.
func (r *Receiver) Deliver(b Batch) tail.Delivery { return &delivery{r: r, batches: []Batch{b}} }

// HasTraces reports whether there is a traces pipeline.
func (r *Receiver) HasTraces() bool { return r.traces != nil }

// HasMetrics reports whether there is a metrics pipeline.
func (r *Receiver) HasMetrics() bool { return r.metrics != nil }

// Locates reports whether the reader of the log asked for positions (factory.Once with locate, for "trainbridge show" and the like): spans then have the
// position of their record in the log, and all values of the record.
func (r *Receiver) Locates() bool { return r.locate }

// delivery is batches of one receiver, perhaps of several streams, sent together. The spans are sent first, then the points. After a failed try the next Send
// goes on where the try failed.
type delivery struct {
	r       *Receiver
	batches []Batch
	traces  progress
	metrics progress
	opens   []spans.RunSpan // the spans of runs that go with the first message (messagesToSend)

	// While a refused message is sifted (perhaps over several tries): sifting, and Receiver.accepted at the beginning. An equal count later means that the backend
	// has accepted nothing since then. The next try begins at span siftFrom, behind the spans refused by the last one.
	sifting        bool
	acceptedBefore int64
	siftFrom       int

	redactionsCounted bool         // by the first try: each try redacts the same texts again
	refused           tail.Refused // records refused for good so far
	// where is the position of a record in its log (tail.Locator). nil: spans get no positions.
	where func(batch int, p tail.Place) (path string, begin int64, ok bool)
}

// progress is how far a delivery has come with its traces or its metrics. The messages are cut anew at each try, in the same places, so numbers are enough.
type progress struct {
	batches  int // of metrics only: batches sent whole
	messages int // messages accepted or refused for good; of metrics, only messages after those batches
	done     bool
}

// originOf returns the number of a record within the delivery, for spans.Batch.From: the batch's number in the upper 32 bits, the record's place in the lower
// ones.
func originOf(batch int, p tail.Place) int64 { return int64(batch)<<32 | int64(p) }

// recordOf returns the batch and the place of a number made by originOf.
func recordOf(origin int64) (batch int, p tail.Place) {
	return int(origin >> 32), tail.Place(uint32(origin))
}

// Join implements tail.Delivery: batches of the same receiver are sent together.
func (d *delivery) Join(other tail.Delivery) bool {
	o, ok := other.(*delivery)
	ok = ok && o.r == d.r
	if ok {
		d.batches = append(d.batches, o.batches...)
	}
	return ok
}

// Locate implements tail.Locator. where is kept only if the receiver locates its records.
func (d *delivery) Locate(where func(batch int, p tail.Place) (path string, begin int64, ok bool)) {
	if d.r.locate {
		d.where = where
	}
}

// Send implements tail.Delivery: Send sends what earlier tries have not delivered, first spans, then points. A nil error means that everything was accepted,
// tail.Refused that some records were refused for good. Any other error asks for another try.
func (d *delivery) Send(ctx context.Context) error {
	if d.r.traces != nil && !d.traces.done {
		if err := d.sendTraces(ctx); err != nil {
			return err
		}
	}
	d.traces.done = true
	turns.Of(ctx).Over() // no component judges points by earlier points
	if d.r.metrics != nil && !d.metrics.done {
		if err := d.sendMetrics(ctx); err != nil {
			return err
		}
	}
	d.metrics.done = true
	for _, b := range d.batches {
		b.Done()
	}
	if d.refused.Err != nil {
		return &d.refused
	}
	return nil
}

// sendTraces builds the messages of spans and sends the messages that earlier tries have not delivered, one by one. Refused spans are recorded in d.refused,
// and sending goes on. An error means that the backend cannot be reached or refuses everything: the caller tries again later.
func (d *delivery) sendTraces(ctx context.Context) error {
	messages, release, err := d.messagesToSend(ctx)
	if err != nil {
		return err
	}
	defer release()
	total := spanCount(messages)
	for ; d.traces.messages < len(messages); d.traces.messages++ {
		td := messages[d.traces.messages].Traces
		messages[d.traces.messages] = spans.Message{} // frees the memory at once
		if d.traces.messages == len(messages)-1 {
			turns.Of(ctx).Last()
		}
		if err := d.sendMessage(ctx, td, total); err != nil {
			return err
		}
		if d.traces.messages == 0 {
			d.r.runs.paid(d.opens)
			release()
		}
		d.sifting = false // the message is finished: the next one is sifted anew
	}
	return nil
}

// sendMessage sends td, the next message of spans (number d.traces.messages). Refused spans are recorded in d.refused. An error asks for another try of the
// message. total is the number of spans of the delivery.
func (d *delivery) sendMessage(ctx context.Context, td ptrace.Traces, total int) error {
	n := td.SpanCount() // before a consumer takes the data
	err := d.r.sendTraces(ctx, td)
	partial, isPartial := refusal.AsPartial(err)
	switch {
	case err == nil:
		d.r.accepted.Add(1)
	case isPartial && partial.Rejected >= int64(n): // all of the message: the records are known
		d.refuse(d.build(ctx, true)[d.traces.messages], upTo(n), err)
	case isPartial:
		d.r.accepted.Add(1)
		d.countPartial(partial, total)
	case !refusal.OfData(err):
		return err
	default: // Somewhere in the message is bad data. The message is built again, now with the records of the spans.
		return d.sift(ctx, d.build(ctx, true)[d.traces.messages], total, err)
	}
	return nil
}

// messagesToSend builds the messages of spans. Until the first message is accepted, the spans of runs not sent yet (runs.takeOwed) are added to the first
// message. A message already sent in part stays as it is. The caller calls release after the first message.
func (d *delivery) messagesToSend(ctx context.Context) (messages []spans.Message, release func(), err error) {
	release = func() {}
	if d.traces.messages > 0 || d.sifting {
		return d.build(ctx, false), release, nil
	}
	d.opens = nil
	messages = d.build(ctx, false)
	d.opens, release, err = d.r.runs.takeOwed(ctx, d.r, messages)
	turns.Of(ctx).Pass(d.r.runs)
	if len(d.opens) > 0 {
		messages = d.build(ctx, false)
	}
	return messages, release, err
}

// build makes the messages of spans of all batches, redacted. With origins, each message has the records of its spans (Message.Origins): that costs memory, and
// only refused messages need origins. Each call builds the same messages.
func (d *delivery) build(ctx context.Context, origins bool) []spans.Message {
	out := spans.NewBatch(d.r.parts.Scope, d.r.Set.BuildInfo.Version)
	out.KeepLinks(d.r.parts.SpanLinks)
	if d.r.detail == spans.NoParts {
		out.LeaveParts()
	}
	from := From(func(tail.Place) {})
	redacted := func() redact.Counts { return redact.Counts{} }
	if len(d.opens) > 0 || slices.ContainsFunc(d.batches, hasTexts) {
		redacted = d.r.redactor.Batch(out)
	}
	batch := 0
	if origins || d.where != nil {
		out.Keep()
		from = func(p tail.Place) { out.From(originOf(batch, p)) }
	}
	for _, run := range d.opens {
		out.AddRun(run)
	}
	for batch = range d.batches { // not :=, because from reads batch
		b := d.batches[batch]
		if d.r.detail != spans.OnlyEvents {
			b.Traces(out, from)
		} else if with, is := b.(*eventBatch); is {
			with.events(out, from)
		}
	}
	messages := out.Messages()
	if d.where != nil {
		for _, m := range messages {
			d.locate(m)
		}
	}
	if n := redacted(); !d.redactionsCounted {
		d.r.redacted.add(ctx, n)
	}
	d.redactionsCounted = true
	return messages
}

// locate writes the position in the log (file, offset) of each record on the record's first span in a message. A new origin begins a record, and a new trace
// too: two records of one line have the same origin, and a trace each.
func (d *delivery) locate(m spans.Message) {
	for i, origins := range m.Origins {
		list := m.Traces.ResourceSpans().At(i).ScopeSpans().At(0).Spans()
		lastOrigin, lastTrace := int64(spans.NoOrigin), pcommon.TraceID{}
		for n, origin := range origins {
			trace := list.At(n).TraceID()
			sameRecord := origin == lastOrigin && trace == lastTrace
			if sameRecord || origin == spans.NoOrigin {
				continue
			}
			lastOrigin, lastTrace = origin, trace
			batch, place := recordOf(origin)
			if path, begin, ok := d.where(batch, place); ok {
				list.At(n).Attributes().PutStr(spans.AttrLogFile, path)
				list.At(n).Attributes().PutInt(spans.AttrLogOffset, begin)
			}
		}
	}
}

// hasTexts reports whether the batch's spans may have texts of the log, as all but a Texter may.
func hasTexts(b Batch) bool {
	t, ok := b.(Texter)
	if !ok {
		return true
	}
	onSpans, _ := t.Texts()
	return onSpans
}

// hasLabels reports whether the batch's points may have labels made of texts of the log, as all but a Texter may.
func hasLabels(b Batch) bool {
	t, ok := b.(Texter)
	if !ok {
		return true
	}
	_, onPoints := t.Texts()
	return onPoints
}

// spanCount returns the number of spans in all messages.
func spanCount(messages []spans.Message) (n int) {
	for _, m := range messages {
		n += m.Traces.SpanCount()
	}
	return n
}

// countPartial counts the rejected spans of a message accepted otherwise. The backend states only their number, so they count as a share of the delivery's
// total spans.
func (d *delivery) countPartial(p *refusal.Partial, total int) {
	d.refused.Share += float64(p.Rejected) / float64(max(total, 1))
	d.refused.Err = errors.Join(d.refused.Err, p)
}

// refuse records in d.refused that the spans with the numbers bad, within the message m, were refused for good: tail counts their records. Spans made of no
// record are left out.
func (d *delivery) refuse(m spans.Message, bad []int, cause error) {
	if len(bad) == 0 {
		return
	}
	origins := slices.Concat(m.Origins...)
	if d.refused.Places == nil {
		d.refused.Places = map[int][]tail.Place{}
	}
	for _, i := range bad {
		if origins[i] == spans.NoOrigin {
			continue
		}
		batch, place := recordOf(origins[i])
		if s, ok := d.batches[batch].(Spread); ok {
			d.refused.Places[batch] = append(d.refused.Places[batch], s.Places(place)...)
		} else {
			d.refused.Places[batch] = append(d.refused.Places[batch], place)
		}
	}
	d.refused.Err = errors.Join(d.refused.Err, cause)
}

// upTo returns the numbers 0 to n-1.
func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// unanimous is the number of single spans that are refused, with none accepted, before the rest of the message is left to the next try: the backend then seems
// to refuse everything, and a call for each further span would be wasted.
const unanimous = 16

// sift finds the bad spans of a message that the backend refused with the error cause. It sends the message in halves, and each refused half in halves again,
// down to single spans. Spans are counted as refused only after something else was accepted, of this message or of another: a wrong tenant or a proxy's error
// page refuses everything, and is retried like an unreachable backend. total is the number of spans of the delivery. After an error the caller tries the whole
// message again; sift then begins at siftFrom, because the message may begin with many bad spans.
func (d *delivery) sift(ctx context.Context, m spans.Message, total int, cause error) error {
	n := m.Traces.SpanCount()
	if !d.sifting {
		d.sifting, d.acceptedBefore, d.siftFrom = true, d.r.accepted.Load(), 0
	}
	var bad []int                   // numbers of refused spans
	var partials []*refusal.Partial // counted at the end only: an error begins the search anew
	begins := beginnings(m.Traces)
	var parts []spanRange // not sent yet, in the message's order, from siftFrom on
	switch {
	case n == 1:
		bad = []int{0} // refused just now: cause
	case d.siftFrom > 0:
		parts = []spanRange{{d.siftFrom, n}, {0, d.siftFrom}}
	default:
		parts = spanRange{0, n}.halves(begins)
	}
	for len(parts) > 0 {
		p := parts[0]
		parts = parts[1:]
		err := d.r.sendTraces(ctx, p.of(m.Traces))
		partial, isPartial := refusal.AsPartial(err)
		switch {
		case err == nil:
			d.r.accepted.Add(1)
		case isPartial && partial.Rejected >= int64(p.to-p.from): // all of the part: nothing is accepted, and the records are known
			for i := p.from; i < p.to; i++ {
				bad = append(bad, i)
			}
		case isPartial:
			d.r.accepted.Add(1)
			partials = append(partials, partial)
		case !refusal.OfData(err):
			return err
		case p.to-p.from == 1:
			bad = append(bad, p.from)
			if len(bad) >= unanimous && d.r.accepted.Load() == d.acceptedBefore {
				d.siftFrom = p.to % n
				return allRefused(cause) // not worth a call for each further span
			}
		default:
			parts = slices.Insert(parts, 0, p.halves(begins)...)
		}
	}
	if d.r.accepted.Load() == d.acceptedBefore {
		return allRefused(cause)
	}
	for _, partial := range partials {
		d.countPartial(partial, total)
	}
	d.refuse(m, bad, cause)
	return nil
}

// allRefused returns the error of a try in which no record was accepted. The error does not wrap cause, so as not to look like an error of the data.
func allRefused(cause error) error {
	return fmt.Errorf("every record is refused, so it is not the records: %v", cause) //nolint:errorlint // see above
}

// spanRange is a part of a message: the spans with the numbers from (included) to to (excluded), counted over all resources.
type spanRange struct{ from, to int }

// beginnings returns, for each span of the message, whether a call begins there. A call's span comes first, followed by the spans of its stages; so a span of
// another trace, or whose parent is not among the call's spans so far, begins another call.
func beginnings(td ptrace.Traces) (begins []bool) {
	callTrace, callSpans := pcommon.TraceID{}, map[pcommon.SpanID]bool{}
	for _, rs := range td.ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			begin := s.TraceID() != callTrace || !callSpans[s.ParentSpanID()]
			if begin {
				clear(callSpans)
				callTrace = s.TraceID()
			}
			callSpans[s.SpanID()] = true
			begins = append(begins, begin)
		}
	}
	return begins
}

// halves splits the part in two at the beginning of the call nearest to the middle, the earlier at equal distance: the next component measures a call by its
// stages, and needs calls whole. A part that is a single call is split in the middle. The same part is always split in the same place.
func (p spanRange) halves(begins []bool) []spanRange {
	mid := (p.from + p.to) / 2
	at := mid
	for off := range p.to - p.from {
		if before := mid - off; before > p.from && begins[before] {
			at = before
			break
		}
		if after := mid + off; p.from < after && after < p.to && begins[after] {
			at = after
			break
		}
	}
	return []spanRange{{p.from, at}, {at, p.to}}
}

// of returns a copy of the part's spans, with their resources.
func (p spanRange) of(td ptrace.Traces) ptrace.Traces {
	out := ptrace.NewTraces()
	passed := 0 // spans of the resources before
	for _, rs := range td.ResourceSpans().All() {
		ss := rs.ScopeSpans().At(0)
		first, last := max(p.from-passed, 0), min(p.to-passed, ss.Spans().Len())
		passed += ss.Spans().Len()
		if first >= last {
			continue
		}
		o := out.ResourceSpans().AppendEmpty()
		rs.Resource().CopyTo(o.Resource())
		os := o.ScopeSpans().AppendEmpty()
		ss.Scope().CopyTo(os.Scope())
		os.Spans().EnsureCapacity(last - first)
		for i := first; i < last; i++ {
			ss.Spans().At(i).CopyTo(os.Spans().AppendEmpty())
		}
	}
	return out
}

// sendMetrics sends the points of the batches that earlier tries have not delivered, small batches together in one message. Refused points are noted in
// d.refused as a share of the delivery, and sending goes on. An error means that the backend cannot be reached: the caller tries again later. With
// Receiver.gpus, a Valued batch sends no points: its values go to gpus.
func (d *delivery) sendMetrics(ctx context.Context) error {
	for d.metrics.batches < len(d.batches) {
		if b, ok := d.gpuBatch(d.batches[d.metrics.batches]); ok {
			d.passGPUs(b)
			d.metrics.batches++
			continue
		}
		md, end, redacted := d.joinPoints(d.metrics.batches)
		// A batch counts the same whatever its number of points: a point's share of the delivery is that of these batches, divided by their points.
		share := float64(end-d.metrics.batches) / float64(len(d.batches)) / float64(max(md.DataPointCount(), 1))
		for _, m := range cutPoints(md)[d.metrics.messages:] {
			n := m.DataPointCount() // before a consumer takes the data
			err := d.r.sendMetrics(ctx, m)
			partial, isPartial := refusal.AsPartial(err)
			switch {
			case err == nil:
			case isPartial:
				d.refused.Share += share * float64(partial.Rejected)
				d.refused.Err = errors.Join(d.refused.Err, err)
			case refusal.OfData(err):
				d.refused.Share += share * float64(n)
				d.refused.Err = errors.Join(d.refused.Err, err)
			default:
				return err
			}
			d.metrics.messages++
		}
		if d.r.traces == nil { // the labels are attributes of spans too, and counted there
			d.r.redacted.add(ctx, redacted)
		}
		d.metrics.batches, d.metrics.messages = end, 0
	}
	return nil
}

// gpuBatch returns a batch as one with GPU values, and true if the values go to Receiver.gpus in place of points. Of a batch surrounded with events, the inner
// batch is returned.
func (d *delivery) gpuBatch(b Batch) (v Valued, ok bool) {
	if d.r.gpus == nil {
		return nil, false
	}
	if with, is := b.(*eventBatch); is {
		b = with.Batch
	}
	v, ok = b.(Valued)
	return v, ok
}

// passGPUs gives the GPU values of a batch to Receiver.gpus, with the host's name redacted for the call: the batch keeps the value with its host.
func (d *delivery) passGPUs(b Valued) {
	host, redactedHost := "", "" // of the value before: mostly the same
	b.GPUs(func(v *spans.GPUValues) {
		if v.Host != host {
			host, redactedHost = v.Host, d.r.redactor.Attribute(spans.AttrHostName, v.Host)
		}
		v.Host = redactedHost
		d.r.gpus(v)
		v.Host = host
	})
}

// joinPoints returns the redacted points of the batches from first up to end (excluded), and the number of redacted texts. Batches are added up to maxPoints
// points, or more by the last batch (the caller cuts them, cutPoints), or until a batch passes its GPU values.
func (d *delivery) joinPoints(first int) (md pmetric.Metrics, end int, redacted redact.Counts) {
	md = pmetric.NewMetrics()
	points := 0
	for end = first; end < len(d.batches) && points < maxPoints; end++ {
		if _, ok := d.gpuBatch(d.batches[end]); ok {
			break
		}
		own := d.batches[end].Metrics()
		if hasLabels(d.batches[end]) {
			n := d.r.redactor.Metrics(own)
			redacted.Keys, redacted.Values, redacted.Hosts = redacted.Keys+n.Keys, redacted.Values+n.Values, redacted.Hosts+n.Hosts
		}
		points += own.DataPointCount()
		own.ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	}
	return md, end, redacted
}

// maxPoints bounds the points of a message.
const maxPoints = spans.MaxMessageSpans

// cutPoints cuts points into messages of at most maxPoints points and spans.MaxMessageBytes bytes. Points within both limits stay as they are. Messages that
// are cut repeat the resource for each metric. Receivers send gauges and sums only, so all points are number points.
func cutPoints(md pmetric.Metrics) (out []pmetric.Metrics) {
	var sizer pmetric.ProtoMarshaler
	if md.DataPointCount() <= maxPoints && sizer.MetricsSize(md) <= spans.MaxMessageBytes {
		return []pmetric.Metrics{md}
	}
	n, bytes := maxPoints, 0 // of the message begun last; at first as if full, so that the first point begins a message
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				var points pmetric.NumberDataPointSlice // of the same metric, in the current message
				begun := false
				for _, p := range spans.Points(m).All() {
					size := sizer.NumberDataPointSize(p) + perPointRoom
					if n == maxPoints || bytes+size > spans.MaxMessageBytes {
						out = append(out, pmetric.NewMetrics())
						n, bytes, begun = 0, 0, false
					}
					if !begun {
						begun = true
						own := out[len(out)-1].ResourceMetrics().AppendEmpty()
						points = likeMetric(own, rm, sm, m)
						bytes += sizer.ResourceMetricsSize(own)
					}
					p.MoveTo(points.AppendEmpty())
					n, bytes = n+1, bytes+size
				}
			}
		}
	}
	return out
}

// perPointRoom is bytes for the field tag and the length before a point in its message.
const perPointRoom = 8

// likeMetric fills own with the resource, the scope and the metric m, without the metric's points, and returns the new metric's empty list of points.
func likeMetric(own, rm pmetric.ResourceMetrics, sm pmetric.ScopeMetrics, m pmetric.Metric) pmetric.NumberDataPointSlice {
	rm.Resource().CopyTo(own.Resource())
	scope := own.ScopeMetrics().AppendEmpty()
	sm.Scope().CopyTo(scope.Scope())
	metric := scope.Metrics().AppendEmpty()
	metric.SetName(m.Name())
	metric.SetUnit(m.Unit())
	metric.SetDescription(m.Description())
	if m.Type() == pmetric.MetricTypeSum {
		sum := metric.SetEmptySum()
		sum.SetIsMonotonic(m.Sum().IsMonotonic())
		sum.SetAggregationTemporality(m.Sum().AggregationTemporality())
		return sum.DataPoints()
	}
	return metric.SetEmptyGauge().DataPoints()
}

// sendTraces passes a message of spans to the traces pipeline, and counts the spans for the collector's own receiver metrics.
func (r *Receiver) sendTraces(ctx context.Context, td ptrace.Traces) error {
	if r.answers != nil { // Answers are stored first: after a crash the same lines must give the same spans (Parts.Answers).
		r.answers.Save(ctx, r.Set.Logger)
	}
	n := td.SpanCount()
	ctx = r.obs.StartTracesOp(ctx)
	err := r.traces.ConsumeTraces(withRun(ctx, td), td)
	r.obs.EndTracesOp(ctx, r.Set.ID.Type().String(), n, err)
	return err
}

// withRun returns ctx with the run in its metadata, if the spans of a message are all of one run: kafka's exporter can use the run as message key
// (message_key_from_metadata_key), which keeps a run's messages together, and whole. For spans of several runs ctx is returned as it is.
func withRun(ctx context.Context, td ptrace.Traces) context.Context {
	run := ""
	for i, rs := range td.ResourceSpans().All() {
		own := spans.AttrText(rs.Resource().Attributes(), spans.AttrRunID)
		if i > 0 && own != run {
			return ctx
		}
		run = own
	}
	return client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(map[string][]string{spans.AttrRunID: {run}})})
}

// sendMetrics passes a message of points to the metrics pipeline, without the points of series above cardinality_limit. A message without other points is not
// sent.
func (r *Receiver) sendMetrics(ctx context.Context, md pmetric.Metrics) error {
	dropped := r.series.trim(md)
	n := md.DataPointCount()
	var err error
	if n > 0 {
		ctx = r.obs.StartMetricsOp(ctx)
		err = r.metrics.ConsumeMetrics(ctx, md)
		r.obs.EndMetricsOp(ctx, r.Set.ID.Type().String(), n, err)
	}
	if err == nil || consumererror.IsPermanent(err) { // after any other error the same points are tried again
		r.series.count(ctx, dropped)
	}
	return err
}

const scopeName = "github.com/trainbridge/trainbridge/receivers/internal/filereceiver"

// redacted is the counter trainbridge.redacted, of texts that were replaced, with an attribute set for each reason.
type redacted struct {
	inst                metric.Int64Counter
	keys, values, hosts metric.MeasurementOption
}

// newRedacted makes the counter of a receiver.
func newRedacted(set receiver.Settings) (redacted, error) {
	inst, err := set.MeterProvider.Meter(scopeName).Int64Counter("trainbridge.redacted", metric.WithUnit("{text}"),
		metric.WithDescription("Texts of spans that were replaced by [redacted], because of the name of their field or their shape, or by the hash of a host."))
	by := func(reason string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String("receiver", set.ID.String()), attribute.String("reason", reason)))
	}
	return redacted{inst, by("key"), by("value"), by("host")}, err
}

// add adds the numbers of replaced texts to the counter, for each reason.
func (c *redacted) add(ctx context.Context, n redact.Counts) {
	for _, x := range [...]struct {
		n  int64
		by metric.MeasurementOption
	}{{n.Keys, c.keys}, {n.Values, c.values}, {n.Hosts, c.hosts}} {
		if x.n > 0 {
			c.inst.Add(ctx, x.n, x.by)
		}
	}
}

// Pool keeps values for reuse: growing new ones costs more than filling old ones. A sync.Pool would lose the values at every garbage collection. The zero value
// is ready.
type Pool[T any] struct {
	mu   sync.Mutex
	free []*T
}

// Get returns a value that was put back, or a new one.
func (p *Pool[T]) Get() *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		return new(T)
	}
	v := p.free[n-1]
	p.free = p.free[:n-1]
	return v
}

// Put keeps a value for Get, unless most values are kept already.
func (p *Pool[T]) Put(v *T, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < most {
		p.free = append(p.free, v)
	}
}
