package bridge

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/trainbridge/trainbridge/spans"
)

// reportEvery is the interval of reported export errors. A busy service whose collector refuses its spans would have hundreds a second.
const reportEvery = time.Minute

// exporter is between the queue and OTLP. It makes texts fit for OTLP, and lets through one export error a minute.
type exporter struct {
	sdktrace.SpanExporter
	now func() time.Time

	mu       sync.Mutex
	reported time.Time // when an error was returned last
	lost     int       // failed exports since then
	stopping bool      // an error is returned by Shutdown, not reported
	stopErr  error     // the last error while stopping
}

// ExportSpans sends a batch. The queue that calls it reports an error to OpenTelemetry's error handler, so an error is returned once in reportEvery, with the
// number of failed exports that were kept quiet before. While the bridge stops, the error is kept for Shutdown instead.
func (e *exporter) ExportSpans(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	sent, room := make([]sdktrace.ReadOnlySpan, len(batch)), make([]outgoing, len(batch)) // one allocation for all, not one for each span
	for i, s := range batch {
		room[i] = outgoing{s}
		sent[i] = &room[i]
	}
	err := e.SpanExporter.ExportSpans(ctx, sent)
	if err == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		e.stopErr = err
		return nil
	}
	e.lost++
	now := e.now()
	if now.Sub(e.reported) < reportEvery {
		return nil
	}
	if e.lost > 1 {
		err = fmt.Errorf("%w (and %d exports before it)", err, e.lost-1)
	}
	e.reported, e.lost = now, 0
	return err
}

// stop is called before the queue is emptied for the last time; errors count for failed from then on.
func (e *exporter) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopping = true
}

// failed returns the last error since stop.
func (e *exporter) failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopErr
}

// outgoing is a span with texts valid for OTLP, made as in the receivers (spans.Text, spans.Name). A single byte of invalid UTF-8 from some client would cost
// the whole batch.
type outgoing struct{ sdktrace.ReadOnlySpan }

func (s outgoing) Name() string { return spans.Name(s.ReadOnlySpan.Name()) }

func (s outgoing) Attributes() []attribute.KeyValue { return texts(s.ReadOnlySpan.Attributes()) }

func (s outgoing) Status() sdktrace.Status {
	status := s.ReadOnlySpan.Status()
	status.Description = spans.Text(status.Description)
	return status
}

func (s outgoing) Events() []sdktrace.Event {
	events := slices.Clone(s.ReadOnlySpan.Events())
	for i := range events {
		events[i].Name, events[i].Attributes = spans.Name(events[i].Name), texts(events[i].Attributes)
	}
	return events
}

func (s outgoing) Links() []sdktrace.Link {
	links := slices.Clone(s.ReadOnlySpan.Links())
	for i := range links {
		links[i].Attributes = texts(links[i].Attributes)
	}
	return links
}

// texts returns attributes with their keys and values made fit for OTLP. Attributes that are fit, the usual case, are returned without a copy.
func texts(attrs []attribute.KeyValue) []attribute.KeyValue {
	if !slices.ContainsFunc(attrs, mayNotFit) {
		return attrs
	}
	out := slices.Clone(attrs) // the caller's program may share the span's
	for i, a := range out {
		out[i] = attribute.KeyValue{Key: attribute.Key(spans.Name(string(a.Key))), Value: textValue(a.Value)}
	}
	return out
}

// mayNotFit reports whether an attribute may be unfit for OTLP. A list always may: textValue checks its elements.
func mayNotFit(a attribute.KeyValue) bool {
	key, value := string(a.Key), ""
	switch a.Value.Type() {
	case attribute.STRING:
		value = a.Value.AsString()
	case attribute.STRINGSLICE, attribute.SLICE:
		return true
	}
	return spans.Name(key) != key || spans.Text(value) != value
}

// textValue returns a value with its texts made fit for OTLP, through all levels of lists.
func textValue(v attribute.Value) attribute.Value {
	switch v.Type() {
	case attribute.STRING:
		return attribute.StringValue(spans.Text(v.AsString()))
	case attribute.STRINGSLICE:
		all := v.AsStringSlice()
		for i, text := range all {
			all[i] = spans.Text(text)
		}
		return attribute.StringSliceValue(all)
	case attribute.SLICE:
		all := v.AsSlice()
		for i, value := range all {
			all[i] = textValue(value)
		}
		return attribute.SliceValue(all...)
	}
	return v
}
