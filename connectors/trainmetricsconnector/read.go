package trainmetricsconnector

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/seen"
	"github.com/trainbridge/trainbridge/internal/traces/book"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// maxDuration is longer than any span of a job takes; the start of a longer span was never set.
const maxDuration = 366 * 24 * time.Hour

// resourceKey is the resource of the metrics. Host and pid would make a series per worker.
type resourceKey struct{ service, run string }

// observation is the part of a span common to all families.
type observation struct {
	resource   int32 // index in scratch.resources
	values     int32 // index in the list of the family's reader, which knows the list
	entry      int32 // index in scratch.entries plus 1; 0: nothing for the account
	family     int8
	incomplete bool
	recordOnly bool // no backend has the span
	verdicts   []seriesName
	origin
	id uint64 // seen.ID of the span; 0 for a span without an id
	ns uint64 // duration, of several steps together that of one
}

// scratch has what is read of a batch before the lock is taken; reused from batch to batch.
type scratch struct {
	resources    []resourceKey
	jobs         []label       // of all resources: their attributes of jobs
	jobsEnd      []int32       // by resource, the end of its part of jobs
	resource     view.Resource // of the span at hand
	observations []observation
	verdicts     []seriesName // of the observations
	readers      []reader     // by family
	calls        *rpcReader   // an element of readers
	entries      []book.Entry // of the observations
	invalid      int64
}

// newScratch returns a scratch with a reader for each family.
func newScratch() *scratch {
	s := new(scratch)
	for i, f := range families {
		s.readers = append(s.readers, f.reader(int8(i)))
		if r, ok := s.readers[i].(*rpcReader); ok {
			s.calls = r
		}
	}
	return s
}

// reset empties the scratch, and drops the references to strings and slices of the batch.
func (s *scratch) reset() {
	clear(s.resources)
	clear(s.jobs)
	clear(s.observations)
	clear(s.verdicts)
	clear(s.entries)
	s.resources, s.observations, s.verdicts, s.invalid, s.resource = s.resources[:0], s.observations[:0], s.verdicts[:0], 0, view.Resource{}
	s.entries, s.jobs, s.jobsEnd = s.entries[:0], s.jobs[:0], s.jobsEnd[:0]
	for _, r := range s.readers {
		r.reset()
	}
}

// read turns the spans that have metrics into observations, without a lock. Details, such as the parts of calls, are only added to the call before.
func (s *scratch) read(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		s.resource.Read(rs.Resource().Attributes())
		s.resources = append(s.resources, resourceKey{service: spans.Label(s.resource.Service), run: spans.Label(s.resource.Run)})
		for name, value := range rs.Resource().Attributes().All() {
			if spans.IsJobAttribute(name) {
				s.jobs = append(s.jobs, label{name, spans.Label(value.AsString())})
			}
		}
		s.jobsEnd = append(s.jobsEnd, int32(len(s.jobs)))
		for _, ss := range rs.ScopeSpans().All() {
			list := ss.Spans()
			for i := range list.Len() {
				span := list.At(i)
				if view.IsDetail(span) { // no metric is made of a detail alone
					s.calls.readPart(span)
					continue
				}
				kind := view.KindOf(span)
				if f := familyOf[kind]; f >= 0 {
					s.readers[f].read(span, kind, s)
				}
			}
		}
	}
}

// durationOf returns the duration of a span, ns; false: negative, or above maxDuration.
func durationOf(span ptrace.Span) (ns uint64, ok bool) {
	start, end := span.StartTimestamp(), span.EndTimestamp()
	ns = uint64(end - start)
	return ns, end >= start && ns <= uint64(maxDuration)
}

// note adds the observation of a span, for the adder of a family. values says where the reader of the family has the other values; ns is the duration.
func (s *scratch) note(span ptrace.Span, family int8, head *view.Head, values int, ns uint64) {
	s.observations = append(s.observations, observation{}) // filled in place, for its size
	o := &s.observations[len(s.observations)-1]
	o.resource, o.values, o.family = int32(len(s.resources)-1), int32(values), family
	o.incomplete, o.recordOnly, o.ns = head.Incomplete, s.resource.RecordOnly, ns
	if first := len(s.verdicts); head.Verdicts.Len() > 0 {
		for v := range head.Told(span) {
			s.verdicts = append(s.verdicts, seriesName{spans.Label(v.Name), spans.Label(v.Severity), spans.Label(v.Cause), spans.Label(v.Stage)})
		}
		o.verdicts = s.verdicts[first:]
	}
	o.trace, o.span, o.end = span.TraceID(), span.SpanID(), span.EndTimestamp()
	if !o.span.IsEmpty() {
		o.id = seen.ID(o.trace, o.span)
	}
}

// maxCount is the most that one span can add to a counter: more than any job trains on, and sums stay finite.
const maxCount = 1 << 53

// countOf returns n, or NaN, and sets bad, for a negative n or one above maxCount.
func countOf(n float64, bad *bool) float64 {
	if n < 0 || n > maxCount {
		n, *bad = math.NaN(), true
	}
	return n
}

// nanoseconds converts s to ns. A negative time, or one above maxDuration, sets bad; ok is false for such a time, and for NaN (unknown).
func nanoseconds(seconds float64, bad *bool) (ns uint64, ok bool) {
	if seconds >= 0 && seconds <= maxDuration.Seconds() {
		return uint64(math.Round(seconds * 1e9)), true
	}
	*bad = *bad || !math.IsNaN(seconds)
	return 0, false
}
