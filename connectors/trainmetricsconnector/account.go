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

// accounts are where the wall-clock time of runs went. The family of steps reads steps and their parts, this family reads evaluations.
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

	// pastAfter, ns: metrics of a run that ended longer ago appear in graphs at the wrong time.
	pastAfter = int64(time.Hour)

	// clocksApart is the largest skew (ns) assumed between the hosts of a job: within that time, an ending and a step have no order.
	clocksApart = int64(10 * time.Second)
)

// runKey are the labels of an account: none beside the resource's.
type runKey struct{}

// bare implements key.
func (runKey) bare() bool                      { return true }
func (k runKey) code(*codec) runKey            { return k }
func (runKey) labels(m pcommon.Map, own label) { own.put(m) }

// attachEntry attaches an entry for the book of the run to the observation noted last.
func (s *scratch) attachEntry(e *book.Entry) {
	s.entries = append(s.entries, *e)
	s.observations[len(s.observations)-1].entry = int32(len(s.entries))
}

type evaluationReader struct{ family int8 }

// read records an evaluation for the account of its run. An impossible length makes the span invalid.
func (r evaluationReader) read(span ptrace.Span, _ view.Kind, s *scratch) {
	ns, possible := durationOf(span)
	if !possible {
		s.invalid++
		return
	}
	s.note(span, r.family, &view.Head{}, 0, ns)
	e := book.Evaluation(span, &s.resource, "")
	s.attachEntry(&e)
}

// reset implements reader.
func (evaluationReader) reset() {}

// accountSeries are the series of a run's account.
type accountSeries struct {
	states   [account.States]*gauge
	goodput  *gauge
	ended    [len(outcomes)]*gauge
	lastTime *gauge
}

// run is the account of one run's time.
type run struct {
	*book.Book

	key      resourceKey       // resourceKey.withoutService: the run, whatever the service
	service  string            // service of the series: the first to report the run
	slot     int               // index in slots, and in the names of the storage's keys
	end      pcommon.Timestamp // of the last span, by the log
	updated  int64             // ns, by our clock: when the latest span came
	changed  bool              // since the last report
	reported int               // number of steps in the last report
	stored   storedParts       // what of the run is stored

	pulse   pulse.Pulse // of the run's steps
	live    bool        // steps arrived while the run went on
	came    int64       // ns, by our clock: when the latest step came
	outcome int64       // index in outcomes
	at      int64       // ns: time of the outcome, by the log
	fresh   bool        // came, outcome or at changed since the last report
}

// accountAdder has the accounts of the latest mostRuns runs.
type accountAdder struct {
	groups[runKey, accountSeries]

	runs  map[resourceKey]*run // by resourceKey.withoutService
	slots []*run               // of the storage; nil: free
	gone  []storedParts        // stored state of evicted runs
	final bool                 // nothing will come any more
}

// add does nothing: store.apply passes the entries of every family to enter.
func (*accountAdder) add(*store, *observation, reader, *scratch) {}

// enter adds the time of a span to the book of its run.
func (a *accountAdder) enter(s *store, o *observation, in *scratch) {
	r := a.runOf(s, in.resources[o.resource])
	r.Put(&in.entries[o.entry-1])
	r.end, r.changed = max(r.end, o.end), true
}

// runOf returns the book of a run, made if absent, and marks it as updated.
func (a *accountAdder) runOf(s *store, key resourceKey) *run {
	r := a.runs[key.withoutService()]
	if r == nil {
		r = a.newRun(key.withoutService(), key.service)
	}
	r.updated, r.stored.stale = s.now, true
	return r
}

// noteStep records the arrival of a step: whether the run is live, and whether it has ended. The last planned step is a success; a step after the end means
// that the run went on.
func (a *accountAdder) noteStep(s *store, o *observation, v *stepValues, in *scratch) {
	r := a.runOf(s, in.resources[o.resource])
	end := int64(o.end)
	if !r.pulse.Step("", v.number, v.planned, end, time.Unix(0, s.now)) { // of another rank, or read again
		return
	}
	r.came, r.fresh = s.now, true
	r.live = r.live || r.pulse.Live()
	if r.outcome != running && end > r.at+clocksApart { // the run went on
		r.outcome = running
	}
	if v.planned > 0 && v.number >= v.planned {
		r.outcome, r.at = succeeded, end
	}
}

// noteEvent records how a known run ended, by a line about its end. Training that reported success has not failed, whatever its processes log while they exit;
// and a line from before the last span of the run says nothing about the end.
func (a *accountAdder) noteEvent(s *store, o *observation, class events.Class, in *scratch) {
	outcome := int64(running)
	switch {
	case class == events.ClassEnded:
		outcome = succeeded
	case class.Fatal():
		outcome = failed
	}
	r := a.runs[in.resources[o.resource].withoutService()]
	if r == nil || outcome == running || outcome == failed && r.outcome == succeeded {
		return
	}
	if int64(o.end) < int64(r.end)-clocksApart {
		return
	}
	r.outcome, r.at, r.fresh, r.updated, r.stored.stale = outcome, int64(o.end), true, s.now, true
}

// newRun begins the book of a run. Beyond mostRuns the run without news for the longest time is evicted.
func (a *accountAdder) newRun(key resourceKey, service string) *run {
	if len(a.runs) >= mostRuns {
		old := slices.MinFunc(slices.Collect(maps.Values(a.runs)), func(x, y *run) int {
			return cmp.Or(cmp.Compare(x.updated, y.updated), cmp.Compare(x.slot, y.slot))
		})
		delete(a.runs, old.key)
		a.slots[old.slot], a.gone = nil, append(a.gone, old.stored)
	}
	r := &run{Book: new(book.Book), key: resourceKey{strings.Clone(key.service), strings.Clone(key.run)}, service: strings.Clone(service)}
	r.slot = slices.Index(a.slots, nil)
	if r.slot < 0 {
		r.slot, a.slots = len(a.slots), append(a.slots, nil)
	}
	r.stored.slot = r.slot
	a.runs[r.key], a.slots[r.slot] = r, r
	return r
}

// limitSteps limits the steps of all runs together to book.MostSteps, by merging neighbouring steps of the longest books.
func (a *accountAdder) limitSteps() { book.Fit(a.books(), book.MostSteps) }

// books returns the books of the runs.
func (a *accountAdder) books() iter.Seq[*book.Book] {
	return func(yield func(*book.Book) bool) {
		for _, r := range a.slots {
			if r != nil && !yield(r.Book) {
				return
			}
		}
	}
}

// dueAccount is a run whose account is due, while the account is made.
type dueAccount struct {
	run  *run
	from *account.Snapshot
	end  pcommon.Timestamp // of the last span in the account, by the log
}

// due sets the series of the state of live runs with news, and returns the runs whose accounts are due: not for every step of a long run (book.Due), and at the
// end.
//
// Runs that ended long before they were read are listed in s.past with their first account.
func (a *accountAdder) due(s *store) (list []dueAccount) {
	for _, r := range a.slots {
		if r != nil && r.fresh && r.live {
			a.setState(s, r)
		}
		if r == nil || !r.changed {
			continue
		}
		if !a.final && !r.Due(r.reported, time.Duration(s.now-r.updated)) {
			continue
		}
		if r.reported == 0 && !r.live && s.now-int64(r.end) > pastAfter {
			s.past = append(s.past, r.key.run)
		}
		r.changed, r.reported, r.stored.stale = false, r.Ledger.Len(), true
		list = append(list, dueAccount{r, r.Ledger.Snapshot(), r.end})
	}
	return list
}

// setState sets the series of the state of a live run: when the latest step came, and for each outcome whether the run has ended so. The overflow group has no
// labels: a single slot there, that of outcome 1, stands for every outcome.
func (a *accountAdder) setState(s *store, r *run) {
	g := a.findOrMake(s, resourceKey{r.service, r.key.run}, runKey{}, stepLastTime)
	series, over := seriesOf[accountSeries](g, a.family), seriesOf[accountSeries](&s.overflow, a.family)
	s.markChanged(g)
	var o observation // of no span: the last value set counts
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

// setAccount sets the series of the account of a run: the time in each state, and goodput. A state without time has no series. In the overflow group, slot 0
// stands for every state.
func (a *accountAdder) setAccount(s *store, r *run, made *account.Account, end pcommon.Timestamp) {
	if a.slots[r.slot] != r { // evicted while the account was made
		return
	}
	g := a.findOrMake(s, resourceKey{r.service, r.key.run}, runKey{}, runTime)
	series, over := seriesOf[accountSeries](g, a.family), seriesOf[accountSeries](&s.overflow, a.family)
	s.markChanged(g)
	o := observation{origin: origin{end: end}} // a gauge keeps the value of the last span to end
	for state, seconds := range made.Seconds {
		if state := &series.states[state]; seconds > 0 || *state != nil {
			s.set(slot(s, runTime, g, state, &over.states[0]), seconds, &o)
		}
	}
	s.set(slot(s, goodput, g, &series.goodput, &over.goodput), made.Goodput(), &o)
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
