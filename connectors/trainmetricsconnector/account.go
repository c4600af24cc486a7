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

	// past, ns: metrics of a run that ended longer ago appear in graphs at the wrong time.
	past = int64(time.Hour)

	// clocksApart is the largest skew (ns) assumed between the hosts of a job: within that time, an ending and a step have no order.
	clocksApart = int64(10 * time.Second)
)

// runKey are the labels of an account: none beside the resource's.
type runKey struct{}

func (runKey) bare() bool                      { return true }
func (k runKey) code(*codec) runKey            { return k }
func (runKey) labels(m pcommon.Map, own label) { own.put(m) }

// enter attaches an entry of the run's book to the span noted last.
func (s *scratch) enter(e *book.Entry) {
	s.entries = append(s.entries, *e)
	s.observations[len(s.observations)-1].entry = int32(len(s.entries))
}

type evaluationReader struct{ family int8 }

// read notes an evaluation for the account of its run.
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

// run is the account of one run's time.
type run struct {
	*book.Book

	key      resourceKey       // resourceKey.home: the run, whatever the service
	service  string            // service of the series: the first to report the run
	slot     int               // index in slots, and in the names of the storage's keys
	end      pcommon.Timestamp // of the last span, by the log
	updated  int64             // ns, by our clock: when the latest span came
	changed  bool              // since the last report
	reported int               // number of steps in the last report
	kept     kept              // what of the run is stored

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

	runs  map[resourceKey]*run // by resourceKey.home
	slots []*run               // of the storage; nil: free
	gone  []kept               // stored state of evicted runs
	final bool                 // nothing will come any more
}

// add does nothing: apply enters the time of spans of every family.
func (*accountAdder) add(*store, *observation, reader, *scratch) {}

// enter puts the time of a span into the book of its run.
func (a *accountAdder) enter(s *store, o *observation, in *scratch) {
	r := a.runOf(s, in.resources[o.resource])
	r.Put(&in.entries[o.entry-1])
	r.end, r.changed = max(r.end, o.end), true
}

// runOf finds or begins the book of a run.
func (a *accountAdder) runOf(s *store, of resourceKey) *run {
	r := a.runs[of.home()]
	if r == nil {
		r = a.open(of.home(), of.service)
	}
	r.updated, r.kept.stale = s.now, true
	return r
}

// beat notes the arrival of a step: whether the run is live, and whether it has ended. The last planned step is a success; a step after the ending says that
// the run went on.
func (a *accountAdder) beat(s *store, o *observation, v *stepValues, in *scratch) {
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

// noteEvent notes a line about the end of a known run. Training that reported success has not failed, whatever its processes log while they exit; and a line
// from before the run's last span says nothing about the end.
func (a *accountAdder) noteEvent(s *store, o *observation, class events.Class, in *scratch) {
	outcome := int64(running)
	switch {
	case class == events.ClassEnded:
		outcome = succeeded
	case class.Fatal():
		outcome = failed
	}
	r := a.runs[in.resources[o.resource].home()]
	if r == nil || outcome == running || outcome == failed && r.outcome == succeeded {
		return
	}
	if int64(o.end) < int64(r.end)-clocksApart {
		return
	}
	r.outcome, r.at, r.fresh, r.updated, r.kept.stale = outcome, int64(o.end), true, s.now, true
}

// open begins the book of a run. The run without news for longest is evicted.
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

// fit bounds the steps of all runs together, by merging neighbouring ones of the longest.
func (a *accountAdder) fit() { book.Fit(a.books(), book.MostSteps) }

// books returns the books of all runs.
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

// due sets the series of the states of live runs with news, and returns the runs whose accounts are due. The account of a long run is not made for every step
// (Due), but at the end. Runs that ended long before they were read are noted in s.past, with their first account.
func (a *accountAdder) due(s *store) (list []dueAccount) {
	for _, r := range a.slots {
		if r != nil && r.fresh && r.live {
			a.state(s, r)
		}
		if r == nil || !r.changed {
			continue
		}
		if !a.final && !r.Due(r.reported, time.Duration(s.now-r.updated)) {
			continue
		}
		if r.reported == 0 && !r.live && s.now-int64(r.end) > past {
			s.past = append(s.past, r.key.run)
		}
		r.changed, r.reported, r.kept.stale = false, r.Ledger.Len(), true
		list = append(list, dueAccount{r, r.Ledger.Snapshot(), r.end})
	}
	return list
}

// state sets the series of a live run's state: when the latest step came, and for each outcome whether the run has ended so. The overflow has no labels: a
// single slot there, that of outcome 1, stands for all outcomes.
func (a *accountAdder) state(s *store, r *run) {
	g := a.look(s, resourceKey{r.service, r.key.run}, runKey{}, stepLastTime)
	series, over := seriesOf[accountSeries](g, a.family), seriesOf[accountSeries](&s.overflow, a.family)
	s.change(g)
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

// set sets the series of a run's account: the time in each state, and goodput. A state without time has no series until it has some. In the overflow, slot 0
// stands for all states.
func (a *accountAdder) set(s *store, r *run, made *account.Account, end pcommon.Timestamp) {
	if a.slots[r.slot] != r { // evicted while the account was made
		return
	}
	g := a.look(s, resourceKey{r.service, r.key.run}, runKey{}, runTime)
	series, over := seriesOf[accountSeries](g, a.family), seriesOf[accountSeries](&s.overflow, a.family)
	s.change(g)
	o := observation{origin: origin{end: end}} // a gauge keeps the value of the last span to end
	for state, seconds := range made.Seconds {
		if at := &series.states[state]; seconds > 0 || *at != nil {
			s.set(slot(s, runTime, g, at, &over.states[0]), seconds, &o)
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
