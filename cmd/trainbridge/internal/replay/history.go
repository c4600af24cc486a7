package replay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

const (
	// interval is the time between two samples of a series: the flush interval of train_metrics.
	interval = 15 * time.Second
	// goOn is how long a series goes on after its last span, less than in train_metrics (metrics_expiration): a live job may go on, a finished log does not. Gaps
	// of up to between are bridged: a step may take long.
	goOn, between = 5 * time.Minute, time.Hour
	// openIntervals bounds how many intervals are counted at once. Logs are read side by side, at most a fiftieth of their size apart.
	openIntervals = 256
)

// history is the output of train_metrics at the time when spans ended. Each interval has a train_metrics of its own for the spans that end in it, whose counts
// are added up in the end: the order of spans does not matter.
//
// Accounts of runs are no sums of accounts of 15 s: a separate train_metrics gets all steps, and each account is emitted once, at the end of its run.
type history struct {
	mu      sync.Mutex
	open    *simplelru.LRU[int64, connector.Traces] // by number of the interval since 1970
	counted *table                                  // samples are at the end of their interval
	closing int64                                   // the interval whose train_metrics is being stopped, and sends its counts
	err     error                                   // of stopped ones

	accounts connector.Traces // nil before the first span
	ends     map[string]int64 // by run: the interval in which its last span ended

	breakdown view.Breakdown
	synthetic int64 // spans with made-up times: in no metric
}

// newHistory counts spans, in so many intervals at once: beyond, the interval without spans for the longest time is closed, and is opened again for a late
// span.
func newHistory(open int) *history {
	h := &history{counted: newTable(), ends: map[string]int64{}}
	var err error
	h.open, err = simplelru.NewLRU(open, func(at int64, c connector.Traces) {
		h.closing = at
		h.err = errors.Join(h.err, c.Shutdown(context.Background())) // sends its counts first
	})
	if err != nil {
		panic(err) // only for a size below one
	}
	return h
}

// take moves the spans with metrics out of td, and counts each in the interval in which a live collector would have (countedAt). Spans of an account are
// counted for their run, too. Spans with made-up times are counted nowhere, but for the parts of a step with a clock: where a part lies in the step is made up,
// its duration is logged.
func (h *history) take(ctx context.Context, td ptrace.Traces) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	intervals, inAccounts, clocked := map[int64]ptrace.Traces{}, ptrace.NewTraces(), clockedSteps(td)
	for _, rs := range td.ResourceSpans().All() {
		to := map[int64]ptrace.SpanSlice{} // the resource's spans in intervals
		made := isMadeUp(rs.Resource().Attributes())
		run := spans.AttrText(rs.Resource().Attributes(), spans.AttrRunID)
		var account *ptrace.SpanSlice // nil: no span of an account yet
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if view.IsDetail(s) {
					continue
				}
				kind := view.KindOf(s)
				if (made || isMadeUp(s.Attributes())) && !clocked[s.ParentSpanID()] {
					if kind != view.KindJoined { // joined spans are in no metric anyway
						h.synthetic++
					}
					continue
				}
				at := h.countedAt(s) / int64(interval)
				if ofAccounts[kind] {
					if account == nil {
						list := below(inAccounts, rs.Resource())
						account = &list
					}
					s.CopyTo(account.AppendEmpty())
					h.ends[run] = max(h.ends[run], at)
				}
				list, ok := to[at]
				if !ok {
					if _, ok := intervals[at]; !ok {
						intervals[at] = ptrace.NewTraces()
					}
					list = below(intervals[at], rs.Resource())
					to[at] = list
				}
				s.MoveTo(list.AppendEmpty())
			}
		}
	}
	if err := h.addToAccounts(ctx, inAccounts); err != nil {
		return err
	}
	for at, td := range intervals {
		c, ok := h.open.Get(at)
		if !ok {
			var err error
			c, err = newCounts(ctx, h.counts)
			if err != nil {
				return err
			}
			h.open.Add(at, c)
		}
		if err := c.ConsumeTraces(ctx, td); err != nil {
			return err
		}
	}
	return h.err
}

// below adds a copy of a resource to td, and returns its list of spans, which is empty.
func below(td ptrace.Traces, res pcommon.Resource) ptrace.SpanSlice {
	rs := td.ResourceSpans().AppendEmpty()
	res.CopyTo(rs.Resource())
	return rs.ScopeSpans().AppendEmpty().Spans()
}

// ofAccounts are the kinds of spans that an account of a run's wall-clock time is made of.
var ofAccounts = map[view.Kind]bool{view.KindStep: true, view.KindPart: true, view.KindEvaluation: true, view.KindBreakdown: true}

// clockedSteps are the ids of the steps in td whose times are not made up.
func clockedSteps(td ptrace.Traces) map[pcommon.SpanID]bool {
	out := map[pcommon.SpanID]bool{}
	for _, rs := range td.ResourceSpans().All() {
		if isMadeUp(rs.Resource().Attributes()) {
			continue
		}
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if view.KindOf(s) == view.KindStep && !isMadeUp(s.Attributes()) {
					out[s.SpanID()] = true
				}
			}
		}
	}
	return out
}

// addToAccounts gives spans to the train_metrics that accounts for whole runs.
func (h *history) addToAccounts(ctx context.Context, td ptrace.Traces) error {
	if td.SpanCount() == 0 {
		return nil
	}
	if h.accounts == nil {
		var err error
		h.accounts, err = newCounts(ctx, h.account)
		if err != nil {
			return err
		}
	}
	return h.accounts.ConsumeTraces(ctx, td)
}

// account takes the output of the train_metrics that accounts for whole runs: accounts, each a sample at the end of the interval in which its run was over.
func (h *history) account(md pmetric.Metrics) {
	keep(md, true)
	for _, rm := range md.ResourceMetrics().All() {
		run := spans.AttrText(rm.Resource().Attributes(), spans.AttrServiceInstanceID)
		end := (h.ends[run] + 1) * interval.Milliseconds()
		one := pmetric.NewMetrics()
		rm.MoveTo(one.ResourceMetrics().AppendEmpty())
		h.counted.add(one, func(pcommon.Timestamp) int64 { return end })
	}
}

// keep removes all metrics but accounts of runs, or, if accounts is false, these accounts.
func keep(md pmetric.Metrics, accounts bool) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				return (m.Name() == spans.MetricRunTime || m.Name() == spans.MetricGoodput) != accounts
			})
		}
	}
}

// countedAt is when a live collector would have counted a span, Unix ns: at its end. A breakdown is a point at the begin of its window: its end is a length
// later.
func (h *history) countedAt(s ptrace.Span) int64 {
	end := int64(s.EndTimestamp())
	if view.KindOf(s) == view.KindBreakdown {
		h.breakdown.Read(s)
		end += int64(h.breakdown.Length() * 1e9)
	}
	return end
}

// isMadeUp reports, by the attributes of a resource or a span, that no clock stands behind the times.
func isMadeUp(attrs pcommon.Map) bool {
	return spans.AttrText(attrs, spans.AttrTimeSource) == string(spans.TimeSynthetic)
}

// counts takes the output of the train_metrics of the interval h.closing: counts, each a sample at the end of the interval.
func (h *history) counts(md pmetric.Metrics) {
	keep(md, false)
	end := (h.closing + 1) * interval.Milliseconds()
	h.counted.add(md, func(pcommon.Timestamp) int64 { return end })
}

// newCounts makes a train_metrics that is not started: without its timer, it passes its metrics to take only when stopped, and forgets nothing before.
func newCounts(ctx context.Context, take func(pmetric.Metrics)) (connector.Traces, error) {
	f := trainmetricsconnector.NewFactory()
	cfg := f.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(map[string]any{"metrics_expiration": "0s", "collector": ""}).Unmarshal(cfg); err != nil {
		return nil, err
	}
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		take(md)
		return nil
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	if err != nil {
		return nil, err
	}
	set := connector.Settings{ID: component.NewID(f.Type()), TelemetrySettings: telemetry(), BuildInfo: component.NewDefaultBuildInfo()}
	return f.CreateTracesToMetrics(ctx, set, cfg, next)
}

// each ends the counting and passes all series to send, one by one, with a sample for each interval (spread): all at once would be many times the stored size.
func (h *history) each(ctx context.Context, send func(*series) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open.Purge() // stops the train_metrics of each open interval, which sends its counts
	if h.accounts != nil {
		h.err = errors.Join(h.err, h.accounts.Shutdown(ctx))
		h.accounts = nil
	}
	if h.err != nil {
		return h.err
	}
	all := h.counted.take()
	sets := boundsOf(all)
	for _, s := range all {
		s.sort()
		for x := range s.each(sets) {
			if err := send(&series{labels: x.labels, samples: x.spread()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// spread makes of the samples, at the intervals in which something was counted, a sample at the end of every interval, as scraped from a live collector: the
// last value, of a counter the sum so far, goes on for goOn, or up to the next sample if at most between away. Then the series ends, with a mark of staleness.
// A counter begins with 0 at the start of its first interval, for increase() to see the first count.
func (s *series) spread() []sample {
	out := make([]sample, 0, len(s.samples)+2)
	const every = int64(interval / time.Millisecond)
	sum := 0.0
	for i, x := range s.samples {
		switch {
		case !s.adds:
			sum = x.value
		case i == 0:
			out = append(out, sample{x.at - every, 0})
			sum = x.value
		default:
			sum += x.value
		}
		last := x.at + goOn.Milliseconds()
		if i+1 < len(s.samples) && s.samples[i+1].at <= x.at+between.Milliseconds() {
			last = s.samples[i+1].at - every
		}
		for at := x.at; at <= last; at += every {
			out = append(out, sample{at, sum})
		}
		if i+1 == len(s.samples) || s.samples[i+1].at > last+every {
			out = append(out, sample{last + every, staleNaN})
		}
	}
	return slices.Clip(out)
}
