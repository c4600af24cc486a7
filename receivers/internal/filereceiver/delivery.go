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
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/spans"
)

// Batch is the result of a handler's Cut. A Batch keeps records, not pdata: a consumer may change or empty its argument even when the call fails, so each try
// builds the data anew, and the usual single try costs no copy.
type Batch interface {
	// Traces adds the spans. Traces calls from with the tail.Place of each record before adding the spans of the record.
	Traces(out *spans.Batch, from From)
	// Metrics may return no points: then no metrics are sent.
	Metrics() pmetric.Metrics
	// Done is called once when the batch is delivered or refused for good.
	Done()
}

// Spread is a Batch whose spans are made of several records each. The Batch calls From with its own numbers, and Places maps a number to the records.
type Spread interface {
	Places(n tail.Place) []tail.Place
}

// Valued is a Batch that passes the GPU values of its records as they are, to a consumer of nothing else. The values live until the call returns.
type Valued interface {
	GPUs(to func(*spans.GPUValues))
}

// Texter is a Batch that knows whether its spans have texts or field names of the log, and whether its points have labels made of texts. Without texts nothing
// is redacted.
type Texter interface {
	Texts() (onSpans, onPoints bool)
}

// From notes the record of the next spans.
type From func(tail.Place)

// Deliver sends a batch downstream.
func (r *Receiver) Deliver(b Batch) tail.Delivery { return &delivery{r: r, batches: []Batch{b}} }

// HasTraces says whether there is a traces pipeline.
func (r *Receiver) HasTraces() bool { return r.traces != nil }

// HasMetrics says whether there is a metrics pipeline.
func (r *Receiver) HasMetrics() bool { return r.metrics != nil }

// Locates says whether logs are read once, for a person: then spans have the position of their record and all its values.
func (r *Receiver) Locates() bool { return r.locate }

// delivery is batches of one receiver, perhaps of several streams, sent together.
type delivery struct {
	r        *Receiver
	batches  []Batch
	traces   progress
	metrics  progress
	refusing bool  // everything so far was refused
	since    int64 // count of accepted messages at the first refusal
	built    bool  // once at least: the redacted texts are counted
	refused  tail.Refused
	where    func(batch int, p tail.Place) (path string, begin int64, ok bool)
}

// progress is the state of one signal.
type progress struct {
	batches  int // of metrics: batches sent whole
	messages int // messages accepted or refused for good; of metrics, only messages after those batches
	done     bool
}

// Join takes in another batch of the same receiver.
func (d *delivery) Join(other tail.Delivery) bool {
	o, ok := other.(*delivery)
	ok = ok && o.r == d.r
	if ok {
		d.batches = append(d.batches, o.batches...)
	}
	return ok
}

// Locate implements tail.Locator.
func (d *delivery) Locate(where func(batch int, p tail.Place) (path string, begin int64, ok bool)) {
	if d.r.locate {
		d.where = where
	}
}

// Send sends the unsent rest.
func (d *delivery) Send(ctx context.Context) error {
	if d.r.traces != nil && !d.traces.done {
		if err := d.sendTraces(ctx); err != nil {
			return err
		}
	}
	d.traces.done = true
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

// sendTraces sends message by message. The messages are cut again at each try, in the same places.
func (d *delivery) sendTraces(ctx context.Context) error {
	messages := d.build(ctx, false)
	total := spanCount(messages)
	for ; d.traces.messages < len(messages); d.traces.messages++ {
		td := messages[d.traces.messages].Traces
		messages[d.traces.messages] = spans.Message{} // frees the memory at once
		n := td.SpanCount()                           // before a consumer takes it
		err := d.r.sendTraces(ctx, td)
		partial, isPartial := refusal.AsPartial(err)
		switch {
		case err == nil:
			d.r.accepted.Add(1)
		case isPartial && partial.Rejected >= int64(n):
			d.refuse(d.build(ctx, true)[d.traces.messages], all(n), err)
		case isPartial:
			d.partly(partial, total)
		case !refusal.OfData(err):
			return err
		default:
			if err := d.sift(ctx, d.build(ctx, true)[d.traces.messages], total, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// build makes the messages of all batches. With keep, messages know the records of their spans.
func (d *delivery) build(ctx context.Context, keep bool) []spans.Message {
	out := spans.NewBatch(d.r.parts.Scope, d.r.Set.BuildInfo.Version)
	out.KeepLinks(d.r.parts.SpanLinks)
	if d.r.bare {
		out.LeaveParts()
	}
	from := From(func(tail.Place) {})
	redacted := func() redact.Counts { return redact.Counts{} }
	if slices.ContainsFunc(d.batches, hasTexts) {
		redacted = d.r.redactor.Batch(out)
	}
	i := 0
	if keep || d.where != nil {
		out.Keep()
		from = func(p tail.Place) { out.From(int64(i)<<32 | int64(p)) }
	}
	for i = range d.batches {
		d.batches[i].Traces(out, from)
	}
	messages := out.Messages()
	if d.where != nil {
		for _, m := range messages {
			d.locate(m)
		}
	}
	if n := redacted(); !d.built {
		d.r.redacted.add(ctx, n)
	}
	d.built = true
	return messages
}

// locate writes the position of each record on its first span. Two records of one line have one origin, and a trace each.
func (d *delivery) locate(m spans.Message) {
	for i, origins := range m.Origins {
		list, last, trace := m.Traces.ResourceSpans().At(i).ScopeSpans().At(0).Spans(), int64(spans.NoOrigin), pcommon.TraceID{}
		for n, origin := range origins {
			of := list.At(n).TraceID()
			if origin == last && of == trace || origin == spans.NoOrigin {
				continue
			}
			last, trace = origin, of
			if path, begin, ok := d.where(int(origin>>32), tail.Place(uint32(origin))); ok {
				list.At(n).Attributes().PutStr(spans.AttrLogFile, path)
				list.At(n).Attributes().PutInt(spans.AttrLogOffset, begin)
			}
		}
	}
}

func hasTexts(b Batch) bool {
	t, ok := b.(Texter)
	if !ok {
		return true
	}
	onSpans, _ := t.Texts()
	return onSpans
}

func hasLabels(b Batch) bool {
	t, ok := b.(Texter)
	if !ok {
		return true
	}
	_, onPoints := t.Texts()
	return onPoints
}

func spanCount(messages []spans.Message) (n int) {
	for _, m := range messages {
		n += m.Traces.SpanCount()
	}
	return n
}

// partly counts the refused spans of an accepted message. Only their share is known.
func (d *delivery) partly(p *refusal.Partial, total int) {
	d.refused.Share += float64(p.Rejected) / float64(max(total, 1))
	d.refused.Err = errors.Join(d.refused.Err, p)
	d.r.accepted.Add(1)
}

// refuse counts the refused spans of a message.
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
		batch, place := int(origins[i]>>32), tail.Place(uint32(origins[i]))
		if s, ok := d.batches[batch].(Spread); ok {
			d.refused.Places[batch] = append(d.refused.Places[batch], s.Places(place)...)
		} else {
			d.refused.Places[batch] = append(d.refused.Places[batch], place)
		}
	}
	d.refused.Err = errors.Join(d.refused.Err, cause)
}

func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// unanimous is the number of single spans that must be refused, with none accepted, before the rest is not tried.
const unanimous = 16

// sift sends a refused message in halves, and each half in halves again, down to single refused spans. Spans are counted as refused only after something else
// was accepted, of this message or of another: a wrong tenant or a proxy's error page refuses everything, and is retried like an unreachable backend.
func (d *delivery) sift(ctx context.Context, m spans.Message, total int, cause error) error {
	n := m.Traces.SpanCount()
	if !d.refusing {
		d.refusing, d.since = true, d.r.accepted.Load()
	}
	var bad []int
	begins := beginnings(m.Traces)
	var parts []spanRange
	if n == 1 {
		bad = []int{0}
	} else {
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
		case isPartial:
			d.partly(partial, total)
		case !refusal.OfData(err):
			return err
		case p.to-p.from == 1:
			bad = append(bad, p.from)
			if len(bad) >= unanimous && d.r.accepted.Load() == d.since {
				return nothing(cause)
			}
		default:
			parts = slices.Insert(parts, 0, p.halves(begins)...)
		}
	}
	if d.r.accepted.Load() == d.since {
		return nothing(cause)
	}
	d.refusing = false
	d.refuse(m, bad, cause)
	return nil
}

// nothing is the error of a try without any accepted record.
func nothing(cause error) error {
	// Not wrapped: the error must not look like an error of the data.
	return fmt.Errorf("every record is refused, so it is not the records: %v", cause) //nolint:errorlint // see above
}

// spanRange is a part of a message: spans from one number up to another.
type spanRange struct{ from, to int }

// beginnings says of each span whether its parent is not among the spans before: a call begins there, followed by its stages.
func beginnings(td ptrace.Traces) (begins []bool) {
	of, above := pcommon.TraceID{}, map[pcommon.SpanID]bool{}
	for _, rs := range td.ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			begin := s.TraceID() != of || !above[s.ParentSpanID()]
			if begin {
				clear(above)
				of = s.TraceID()
			}
			above[s.SpanID()] = true
			begins = append(begins, begin)
		}
	}
	return begins
}

// halves splits at the beginning of the call nearest to the middle: the next component measures a call by its stages. Only a single call is split within,
// always in the same places.
func (p spanRange) halves(begins []bool) []spanRange {
	mid := (p.from + p.to) / 2
	at := mid
	for off := range p.to - p.from {
		if i := mid - off; i > p.from && begins[i] {
			at = i
			break
		}
		if i := mid + off; i < p.to && begins[i] && i > p.from {
			at = i
			break
		}
	}
	return []spanRange{{p.from, at}, {at, p.to}}
}

// of returns a copy of the part.
func (p spanRange) of(td ptrace.Traces) ptrace.Traces {
	out := ptrace.NewTraces()
	at := 0
	for _, rs := range td.ResourceSpans().All() {
		ss := rs.ScopeSpans().At(0)
		first, last := max(p.from-at, 0), min(p.to-at, ss.Spans().Len())
		at += ss.Spans().Len()
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

// sendMetrics sends the points batch by batch, small batches together. The messages are cut again at each try, in the same places.
func (d *delivery) sendMetrics(ctx context.Context) error {
	for d.metrics.batches < len(d.batches) {
		if b, ok := d.batches[d.metrics.batches].(Valued); ok && d.r.gpus != nil {
			host, clean := "", ""
			b.GPUs(func(v *spans.GPUValues) {
				if v.Host != host {
					host, clean = v.Host, d.r.redactor.Attribute(spans.AttrHostName, v.Host)
				}
				v.Host = clean
				d.r.gpus(v)
				v.Host = host
			})
			d.metrics.batches++
			continue
		}
		md := pmetric.NewMetrics()
		to, points := d.metrics.batches, 0
		var redacted redact.Counts
		for ; to < len(d.batches) && points < maxPoints; to++ {
			own := d.batches[to].Metrics()
			if hasLabels(d.batches[to]) {
				n := d.r.redactor.Metrics(own)
				redacted.Keys, redacted.Values, redacted.Hosts = redacted.Keys+n.Keys, redacted.Values+n.Values, redacted.Hosts+n.Hosts
			}
			points += own.DataPointCount()
			own.ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
		}
		share := float64(to-d.metrics.batches) / float64(len(d.batches)) / float64(max(points, 1)) // of a point
		for _, m := range cutPoints(md)[d.metrics.messages:] {
			n := m.DataPointCount() // before a consumer takes it
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
		d.metrics.batches, d.metrics.messages = to, 0
	}
	return nil
}

// maxPoints bounds the points of a message.
const maxPoints = spans.MaxMessageSpans

// cutPoints splits points that exceed one message. The rest of a split message has a resource per metric. Receivers send gauges and sums (numbers).
func cutPoints(md pmetric.Metrics) (out []pmetric.Metrics) {
	var sizer pmetric.ProtoMarshaler
	if md.DataPointCount() <= maxPoints && sizer.MetricsSize(md) <= spans.MaxMessageBytes {
		return []pmetric.Metrics{md}
	}
	n, bytes := maxPoints, 0
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

// perPointRoom is for the lengths before a point.
const perPointRoom = 8

// likeMetric makes a copy of a metric without its points, and returns the new points.
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

func (r *Receiver) sendTraces(ctx context.Context, td ptrace.Traces) error {
	if r.answers != nil {
		r.answers.Save(ctx, r.Set.Logger)
	}
	n := td.SpanCount()
	ctx = r.obs.StartTracesOp(ctx)
	err := r.traces.ConsumeTraces(withRun(ctx, td), td)
	r.obs.EndTracesOp(ctx, r.Set.ID.Type().String(), n, err)
	return err
}

// withRun writes the run into the metadata of a message whose spans are all of one run: kafka's exporter can use the run as message key
// (message_key_from_metadata_key), which keeps a run's messages together, and whole.
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

// redacted counts the replaced texts of spans.
type redacted struct {
	inst                metric.Int64Counter
	keys, values, hosts metric.MeasurementOption
}

func newRedacted(set receiver.Settings) (redacted, error) {
	inst, err := set.MeterProvider.Meter(scopeName).Int64Counter("trainbridge.redacted", metric.WithUnit("{text}"),
		metric.WithDescription("Texts of spans that were replaced by [redacted], because of the name of their field or their shape, or by the hash of a host."))
	by := func(reason string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String("receiver", set.ID.String()), attribute.String("reason", reason)))
	}
	return redacted{inst, by("key"), by("value"), by("host")}, err
}

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

// Put keeps a value, unless most are kept already.
func (p *Pool[T]) Put(v *T, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < most {
		p.free = append(p.free, v)
	}
}
