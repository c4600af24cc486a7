package source

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
)

const (
	page     = 100     // traces of an answer
	maxPage  = 100_000 // of an answer where a window cannot be split any more
	recent   = 7 * 24 * time.Hour
	tomorrow = 24 * time.Hour // clocks of other hosts may be ahead
)

// store is a backend whose search is bounded by time and by a number of traces.
type store interface {
	// window asks for traces of a service with spans in a window of time, at most n traces, by start. No traces are no error. full: more traces may exist.
	window(ctx context.Context, service string, in window, n int) (traces []*tree.Trace, full bool, err error)
}

// windows collects the newest traces of a store. Stores have no pages, and no common order: a window of time with more than a page is split in two, the later
// part first. When Query.Limit traces are collected, the older ones are only counted, for as long as Query.Counting.
type windows struct {
	store
	Query
	shortest time.Duration // of a window: a shorter window would have no fewer traces

	traces map[pcommon.TraceID]*tree.Trace // collected
	older  error                           // why the earlier windows could not be read
	seen   map[pcommon.TraceID]bool        // traces in earlier answers
	there  map[pcommon.TraceID]bool        // the wanted traces among them, but for traces about a run as a whole
	more   bool                            // further traces may exist, not counted
	until  time.Time                       // the counting ends then; zero while traces are collected
}

// newWindows begins a search. shortest: see windows.
func newWindows(s store, q Query, shortest time.Duration) *windows {
	return &windows{
		store: s, Query: q, shortest: shortest,
		traces: map[pcommon.TraceID]*tree.Trace{}, seen: map[pcommon.TraceID]bool{}, there: map[pcommon.TraceID]bool{},
	}
}

// window is a span of time; zero: whenever.
type window struct{ from, to time.Time }

// all collects the traces of each service, in the first window, then in the others: stores with an index per day search years slowly, or not at all. So an
// error in one of the others ends the search only while no service has traces; else Found.Older has the error.
func (w *windows) all(ctx context.Context, services []string, all []window) (*Found, error) {
	for _, service := range services {
		w.until = time.Time{} // collect again: the newest traces of this service may be newer than the last one's
		for i, in := range all {
			err := w.within(ctx, service, in, page)
			if err != nil && i > 0 && len(w.traces) > 0 { // recent traces are an answer
				w.older = err
				break
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return w.found(), nil
}

// found returns the answer: the newest of the collected traces.
func (w *windows) found() *Found {
	traces := make([]*tree.Trace, 0, len(w.traces))
	for _, t := range w.traces {
		traces = append(traces, t)
	}
	traces = newest(traces, w.Limit)
	return &Found{Traces: traces, Share: Share{Read: count(traces), There: len(w.there), More: w.more}, Older: w.older}
}

// within collects the traces of a service in a window. If the store has more than n, the window is searched in two parts. A window that cannot be split any
// more, or whose answer has nothing new, is searched again with room for twice as many, up to maxPage.
func (w *windows) within(ctx context.Context, service string, in window, n int) error {
	counts := !w.until.IsZero()
	if counts {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, w.until)
		defer cancel()
	}
	traces, full, err := w.window(ctx, service, in, n)
	if counts && errors.Is(ctx.Err(), context.DeadlineExceeded) { // the time for counting is over
		w.more = true
		return nil
	}
	if err != nil {
		return err
	}
	fresh := w.take(traces)
	if !full { // all of the window, and all later ones before
		w.enough(in.from)
		return nil
	}
	cut := in.cut(traces).Truncate(w.shortest)
	splits := cut.After(in.from) && cut.Before(in.to)
	if !fresh || !splits { // parts of a window would have no other answer
		if n >= maxPage {
			w.more = true
			return nil
		}
		return w.within(ctx, service, in, 2*n)
	}
	if err := w.within(ctx, service, window{cut, in.to}, page); err != nil {
		return err
	}
	return w.within(ctx, service, window{in.from, cut}, page)
}

// cut returns the time to split a full window: a quarter of the traces in its answer is before, so the later part, searched first, has the rest. If that time
// is not within the window, as of a trace that began before, the window is split in the middle.
func (in window) cut(traces []*tree.Trace) time.Time {
	var at time.Time
	if len(traces) > 0 {
		at = time.Unix(0, traces[len(traces)/4].Start)
	}
	if !at.After(in.from) || !at.Before(in.to) {
		at = in.from.Add(in.to.Sub(in.from) / 2)
	}
	return at
}

// take keeps, or only counts, traces new since earlier answers. fresh: at least one is new.
func (w *windows) take(traces []*tree.Trace) (fresh bool) {
	for _, t := range traces {
		if w.seen[t.ID] {
			continue
		}
		fresh, w.seen[t.ID] = true, true
		if w.Run != "" && !t.OfRun(w.Run) {
			continue
		}
		if w.until.IsZero() {
			w.traces[t.ID] = t
		}
		if !t.IsRun() {
			w.there[t.ID] = true
		}
	}
	return fresh
}

// enough begins to count when all traces since a time are known, and the limit is reached.
func (w *windows) enough(since time.Time) {
	if w.Limit == 0 || !w.until.IsZero() {
		return
	}
	known := 0
	for id, t := range w.traces {
		if w.there[id] && t.Start >= since.UnixNano() {
			known++
		}
	}
	if known >= w.Limit {
		w.until = time.Now().Add(w.Counting)
	}
}
