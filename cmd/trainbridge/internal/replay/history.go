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
	// step is the time between two samples of a series: the flush interval of train_metrics.
	step = 15 * time.Second
	// goOn is how long a series goes on after its last span, less than in train_metrics (metrics_expiration): a live job may go on, a finished log does not. Gaps
	// of up to between are bridged: a step may take long.
	goOn, between = 5 * time.Minute, time.Hour
	// openSteps bounds how many steps are counted at once. Logs are read side by side, at most a fiftieth of their size apart.
	openSteps = 256
)

// history is the output of train_metrics at the time when spans ended. Each interval has a train_metrics of its own for the spans that end in it, whose counts
// are added up in the end: the order of spans does not matter.
//
// Accounts of runs are no sums of accounts of 15 s: a separate train_metrics gets all steps, and each account is emitted once, at the end of its run.
type history struct {
	mu      sync.Mutex
	open    *simplelru.LRU[int64, connector.Traces] // by step
	counted *table                                  // samples are at the end of their step
	closing int64                                   // the step whose counts come
	err     error

	accounts connector.Traces // nil before the first span
	ends     map[string]int64 // by run: the interval of its last span's end

	breakdown view.Breakdown
	synthetic int64 // spans with made-up times: in no metric
}

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

// take moves the spans with metrics out of td.
func (h *history) take(ctx context.Context, td ptrace.Traces) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	steps, inAccounts, clocked := map[int64]ptrace.Traces{}, ptrace.NewTraces(), clockedSteps(td)
	for _, rs := range td.ResourceSpans().All() {
		to := map[int64]ptrace.SpanSlice{}
		made := isMadeUp(rs.Resource().Attributes())
		run := spans.AttrText(rs.Resource().Attributes(), spans.AttrRunID)
		var account *ptrace.SpanSlice // nil: no span of an account yet
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if view.IsDetail(s) {
					continue
				}
				kind := view.KindOf(s)
				if (made || isMadeUp(s.Attributes())) && !clocked[s.ParentSpanID()] { // the place of a part in its step is made up, not its duration
					if kind != view.KindJoined { // joined spans are in no metric anyway
						h.synthetic++
					}
					continue
				}
				at := h.countedAt(s) / int64(step)
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
					if _, ok := steps[at]; !ok {
						steps[at] = ptrace.NewTraces()
					}
					list = below(steps[at], rs.Resource())
					to[at] = list
				}
				s.MoveTo(list.AppendEmpty())
			}
		}
	}
	if err := h.addToAccounts(ctx, inAccounts); err != nil {
		return err
	}
	for at, td := range steps {
		c, ok := h.open.Get(at)
		if !ok {
			var err error
			c, err = newCounts(ctx, h.step)
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

// below returns the spans, none yet, of a copy of a resource in td.
func below(td ptrace.Traces, res pcommon.Resource) ptrace.SpanSlice {
	rs := td.ResourceSpans().AppendEmpty()
	res.CopyTo(rs.Resource())
	return rs.ScopeSpans().AppendEmpty().Spans()
}

// ofAccounts are the kinds of spans in an account.
var ofAccounts = map[view.Kind]bool{view.KindStep: true, view.KindPart: true, view.KindEvaluation: true, view.KindBreakdown: true}

// clockedSteps are the steps with times of a clock.
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

// addToAccounts adds spans to the accounts of their runs.
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

// account takes the accounts of runs, each at the end of the interval in which its run was over.
func (h *history) account(md pmetric.Metrics) {
	keep(md, true)
	for _, rm := range md.ResourceMetrics().All() {
		end := (h.ends[spans.AttrText(rm.Resource().Attributes(), spans.AttrServiceInstanceID)] + 1) * step.Milliseconds()
		one := pmetric.NewMetrics()
		rm.MoveTo(one.ResourceMetrics().AppendEmpty())
		h.counted.add(one, func(pcommon.Timestamp) int64 { return end })
	}
}

// keep removes all metrics but accounts; without accounts, the accounts.
func keep(md pmetric.Metrics, accounts bool) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				return (m.Name() == spans.MetricRunTime || m.Name() == spans.MetricGoodput) != accounts
			})
		}
	}
}

// countedAt is when a live collector would have counted a span, Unix ns: at its end. A breakdown is a point at the begin of its window, and its parts add up to
// the window's length.
func (h *history) countedAt(s ptrace.Span) int64 {
	end := int64(s.EndTimestamp())
	if view.KindOf(s) == view.KindBreakdown {
		h.breakdown.Read(s)
		for _, part := range h.breakdown.Times {
			end += int64(part.Seconds * 1e9)
		}
	}
	return end
}

// isMadeUp reports, by the attributes of a resource or a span, that no clock stands behind the times.
func isMadeUp(attrs pcommon.Map) bool {
	return spans.AttrText(attrs, spans.AttrTimeSource) == string(spans.TimeSynthetic)
}

// step takes the counts of a step.
func (h *history) step(md pmetric.Metrics) {
	keep(md, false)
	end := (h.closing + 1) * step.Milliseconds()
	h.counted.add(md, func(pcommon.Timestamp) int64 { return end })
}

// newCounts makes a train_metrics without a start: it sends its counts when stopped, and forgets nothing before.
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

// each ends the counting and passes all series to send, one by one: with their samples in between, all series are many times the stored size.
func (h *history) each(ctx context.Context, send func(*series) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open.Purge()
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

// spread makes a sample at the end of each interval as long as the series goes on. A counter begins with 0 at the start of its first interval, and the end of
// the series is marked.
func (s *series) spread() []sample {
	out := make([]sample, 0, len(s.samples)+2)
	const every = int64(step / time.Millisecond)
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
