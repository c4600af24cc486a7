package trainmetricsconnector

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/pulse"
	"github.com/trainbridge/trainbridge/internal/traces/book"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// accounts are where the wall-clock time of runs went. Steps and their parts are read by the family of steps, evaluations by this one.
var accounts = family{
	kinds:  []view.Kind{view.KindEvaluation},
	reader: func(family int8) reader { return evaluationReader{family} },
	adder: func(family int8) adder {
		return &accountAdder{groups: groups[runKey, accountSeries]{family: family}, runs: map[resourceKey]*run{}}
	},
}

var (
	runTime      = newMetric(spans.MetricRunTime)
	goodput      = newMetric(spans.MetricGoodput)
	runEnded     = newMetric(spans.MetricRunEnded)
	stepLastTime = newMetric(spans.MetricStepLastTime)
)

// outcomes are the values of spans.AttrRunOutcome, from 1 on: 0 is a run that has not ended.
var outcomes = [...]string{"", "success", "failure"}

const (
	running = iota
	succeeded
	failed
)

const (
	mostRuns = 256

	// past is how long ago a run ended, ns, whose graph the time of its metrics does not give.
	past = int64(time.Hour)

	// clocksApart is how far the clocks of two hosts of a job may be apart, ns: a line of one that tells of an end, and a step of the other, come in no order.
	clocksApart = int64(10 * time.Second)
)

// runKey are the labels of an account: none beside the resource's.
type runKey struct{}

func (runKey) bare() bool                      { return true }
func (k runKey) code(*codec) runKey            { return k }
func (runKey) labels(m pcommon.Map, own label) { own.put(m) }

// enter has the span that was noted last put an entry into the book of its run.
func (s *scratch) enter(e *book.Entry) {
	s.entries = append(s.entries, *e)
	s.observations[len(s.observations)-1].entry = int32(len(s.entries))
}

type evaluationReader struct{ family int8 }

func (r evaluationReader) read(span ptrace.Span, _ view.Kind, s *scratch) {
	ns, possible := length(span)
	if !possible {
		s.invalid++
		return
	}
	s.note(span, r.family, &view.Head{}, 0, ns)
	e := book.Evaluation(span, &s.resource, "")
	s.enter(&e)
}

func (evaluationReader) reset() {}

// accountSeries are the series of a run's account.
type accountSeries struct {
	states   [account.States]*gauge
	goodput  *gauge
	ended    [len(outcomes)]*gauge
	lastTime *gauge
}

// run is what was told of a run's time.
type run struct {
	*book.Book

	key     resourceKey
	service string // of the series: that which told of the run first
	slot    int    // of the storage
	end     pcommon.Timestamp
	updated int64 // ns, when it was told of last
	changed bool  // since its account was told
	told    int   // steps of that account
	kept    kept

	pulse   pulse.Pulse
	live    bool  // its steps came while it ran
	came    int64 // ns, by our clock: when the latest step came
	outcome int64 // index in outcomes
	at      int64 // ns: when that was, by its log
	fresh   bool  // the three before are to be told
}

type accountAdder struct {
	groups[runKey, accountSeries]

	runs  map[resourceKey]*run
	slots []*run // of the storage; nil: free
	gone  []kept // what the storage has of runs that made room
	final bool   // nothing will come any more
}

// add has nothing to do: apply enters what spans of any family say of the time.
func (*accountAdder) add(*store, *observation, reader, *scratch) {}

// enter puts what a span says of the time into the book of its run.
func (a *accountAdder) enter(s *store, o *observation, in *scratch) {
	r := a.runOf(s, in.resources[o.resource])
	r.Put(&in.entries[o.entry-1])
	r.end, r.changed = max(r.end, o.end), true
}

// runOf finds or begins the book of a run of which something is told.
func (a *accountAdder) runOf(s *store, of resourceKey) *run {
	r := a.runs[of.home()]
	if r == nil {
		r = a.open(of.home(), of.service)
	}
	r.updated, r.kept.stale = s.now, true
	return r
}

// beat notes that a step came.
func (a *accountAdder) beat(s *store, o *observation, v *stepValues, in *scratch) {
	r := a.runOf(s, in.resources[o.resource])
	end := int64(o.end)
	if !r.pulse.Step("", v.number, v.planned, end, time.Unix(0, s.now)) { // of another rank, or read again
		return
	}
	r.came, r.fresh = s.now, true
	r.live = r.live || r.pulse.Live()
	if r.outcome != running && end > r.at+clocksApart { // it went on
		r.outcome = running
	}
	if v.planned > 0 && v.number >= v.planned {
		r.outcome, r.at = succeeded, end
	}
}

// hear notes a line that tells how a run ends. Training that said it is done did not fail by what its processes say when they leave.
func (a *accountAdder) hear(s *store, o *observation, class events.Class, in *scratch) {
	outcome := int64(running)
	switch {
	case class == events.ClassEnded:
		outcome = succeeded
	case class.Fatal():
		outcome = failed
	}
	r := a.runs[in.resources[o.resource].home()]
	if r == nil || outcome == running || outcome == failed && r.outcome == succeeded || int64(o.end) < int64(r.end)-clocksApart {
		return
	}
	r.outcome, r.at, r.fresh, r.updated, r.kept.stale = outcome, int64(o.end), true, s.now, true
}

// open begins the book of a run. That which was quiet for longest makes room.
func (a *accountAdder) open(key resourceKey, service string) *run {
	if len(a.runs) >= mostRuns {
		old := slices.MinFunc(slices.Collect(maps.Values(a.runs)), func(x, y *run) int {
			return cmp.Or(cmp.Compare(x.updated, y.updated), cmp.Compare(x.slot, y.slot))
		})
		delete(a.runs, old.key)
		a.slots[old.slot], a.gone = nil, append(a.gone, old.kept)
	}
	r := &run{Book: new(book.Book), key: resourceKey{strings.Clone(key.service), strings.Clone(key.run)}, service: strings.Clone(service)}
	r.slot = slices.Index(a.slots, nil)
	if r.slot < 0 {
		r.slot, a.slots = len(a.slots), append(a.slots, nil)
	}
	r.kept.slot = r.slot
	a.runs[r.key], a.slots[r.slot] = r, r
	return r
}

// fit bounds the steps of all runs together.
func (a *accountAdder) fit() { book.Fit(a.books(), book.MostSteps) }

func (a *accountAdder) books() iter.Seq[*book.Book] {
	return func(yield func(*book.Book) bool) {
		for _, r := range a.slots {
			if r != nil && !yield(r.Book) {
				return
			}
		}
	}
}

// tell sets the series of the runs of which something was told.
func (a *accountAdder) tell(s *store) {
	for _, r := range a.slots {
		if r != nil && r.fresh && r.live {
			a.state(s, r)
		}
		if r == nil || !r.changed {
			continue
		}
		if !a.final && !r.Due(r.told, time.Duration(s.now-r.updated)) {
			continue
		}
		if r.told == 0 && !r.live && s.now-int64(r.end) > past {
			s.past = append(s.past, r.key.run)
		}
		r.changed, r.told, r.kept.stale = false, r.Ledger.Len(), true
		a.set(s, r)
	}
}

// state sets when the latest step of a run came, and whether the run has ended.
func (a *accountAdder) state(s *store, r *run) {
	g := a.look(s, resourceKey{r.service, r.key.run}, runKey{}, stepLastTime)
	series, over := seriesOf[accountSeries](g, a.family), seriesOf[accountSeries](&s.overflow, a.family)
	s.change(g)
	var o observation // of no span: what is set last counts
	s.set(slot(s, stepLastTime, g, &series.lastTime, &over.lastTime), float64(r.came)/1e9, &o)
	for i := 1; i < len(outcomes); i++ {
		x := 0.0
		if r.outcome == int64(i) {
			x = 1
		}
		s.set(slot(s, runEnded, g, &series.ended[i], &over.ended[1]), x, &o)
	}
	r.fresh = false
}

// set sets the series of a run.
func (a *accountAdder) set(s *store, r *run) {
	told, ok := r.Ledger.Account()
	if !ok || told.Wall <= 0 {
		return
	}
	g := a.look(s, resourceKey{r.service, r.key.run}, runKey{}, runTime)
	series, over := seriesOf[accountSeries](g, a.family), seriesOf[accountSeries](&s.overflow, a.family)
	s.change(g)
	o := observation{origin: origin{end: r.end}}
	for state, seconds := range told.Seconds {
		if at := &series.states[state]; seconds > 0 || *at != nil {
			s.set(slot(s, runTime, g, at, &over.states[0]), seconds, &o)
		}
	}
	s.set(slot(s, goodput, g, &series.goodput, &over.goodput), told.Goodput(), &o)
}

// emit writes the series of a run.
func (a *accountAdder) emit(e *emitter, g *group) {
	series := seriesOf[accountSeries](g, a.family)
	for state := range series.states {
		emit(e, runTime, labels{of: g, own: label{spans.AttrRunState, account.State(state).String()}}, &series.states[state], upDownPoint)
	}
	emit(e, goodput, labels{of: g}, &series.goodput, gaugePoint)
	for i := 1; i < len(outcomes); i++ {
		emit(e, runEnded, labels{of: g, own: label{spans.AttrRunOutcome, outcomes[i]}}, &series.ended[i], gaugePoint)
	}
	emit(e, stepLastTime, labels{of: g}, &series.lastTime, gaugePoint)
}
