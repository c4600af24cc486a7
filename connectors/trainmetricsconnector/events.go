package trainmetricsconnector

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// runEvents are the lines about the end of runs, by class.
var runEvents = family{
	kinds:  []view.Kind{view.KindEvent},
	reader: func(family int8) reader { return &eventReader{family: family} },
	adder:  func(family int8) adder { return &eventAdder{groups[eventKey, eventSeries]{family: family}} },
}

var eventCount = newMetric(spans.MetricRunEvents)

// eventKey is the label of events: their class.
type eventKey struct{ class string }

// bare implements key.
func (k eventKey) bare() bool             { return k.class == "" }
func (k eventKey) code(c *codec) eventKey { return eventKey{c.text(k.class)} }

// labels implements key.
func (k eventKey) labels(m pcommon.Map, own label) {
	if k.class != "" {
		m.PutStr(spans.AttrEventClass, k.class)
	}
	own.put(m)
}

// eventReader reads events.
type eventReader struct {
	family int8
	values []eventKey
}

// reset implements reader.
func (r *eventReader) reset() {
	clear(r.values)
	r.values = r.values[:0]
}

// read records an event, by its class.
func (r *eventReader) read(span ptrace.Span, _ view.Kind, s *scratch) {
	ns, possible := durationOf(span)
	if !possible {
		s.invalid++
		return
	}
	s.note(span, r.family, &view.Head{}, len(r.values), ns)
	r.values = append(r.values, eventKey{spans.Label(spans.AttrText(span.Attributes(), spans.AttrEventClass))})
}

// eventSeries is the series of a class.
type eventSeries struct{ count *counter }

type eventAdder struct{ groups[eventKey, eventSeries] }

// add counts an event, and records in the account of the run how the run ended.
func (a *eventAdder) add(s *store, o *observation, from reader, in *scratch) {
	key := from.(*eventReader).values[o.values]
	s.accounts.noteEvent(s, o, events.Class(key.class), in)
	g, series, over := a.find(s, o, in, key, eventCount)
	s.count(slot(s, eventCount, g, &series.count, &over.count), 1, o)
}

// emit implements adder.
func (a *eventAdder) emit(e *emitter, g *group) {
	emit(e, eventCount, labels{of: g}, &seriesOf[eventSeries](g, a.family).count, counterPoint)
}
