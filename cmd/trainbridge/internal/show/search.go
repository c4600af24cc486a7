package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

const (
	page     = 100 // traces of one answer
	maxPage  = 100_000
	recent   = 7 * 24 * time.Hour
	counting = 3 * time.Second // to count the traces beyond the limit
)

// search collects the newest traces of a service. Jaeger has no pages, and no order that all its stores keep to: a window of time that holds more than a page
// is asked for in two parts, the later one first.
type search struct {
	*jaeger
	run      string // only this one's; "": all
	limit    int    // 0: none
	counting time.Duration

	traces map[pcommon.TraceID]*trace
	seen   map[pcommon.TraceID]bool // in an answer
	there  map[pcommon.TraceID]bool // of these, what was asked for, without those about a run as a whole
	more   bool                     // there may be others that were not counted
	until  time.Time                // the counting ends then; zero while traces are collected
	older  error                    // of the search for what is older than the last days
}

// all asks for the traces of services one after the other. Those of the last days come first, because stores with an index per day search years slowly.
func (s *search) all(ctx context.Context, services []string, now time.Time) error {
	s.traces, s.seen, s.there = map[pcommon.TraceID]*trace{}, map[pcommon.TraceID]bool{}, map[pcommon.TraceID]bool{}
	days, end := now.Add(-recent), now.Add(24*time.Hour) // clocks of other hosts may be ahead
	for _, service := range services {
		s.until = time.Time{}
		before := len(s.traces)
		err := s.within(ctx, service, days, end, page)
		if err == nil {
			err = s.within(ctx, service, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), days, page)
			if err != nil && len(s.traces) > before {
				s.older, err = err, nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *search) within(ctx context.Context, service string, from, to time.Time, n int) error {
	counts := !s.until.IsZero()
	if counts {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, s.until)
		defer cancel()
	}
	td, err := s.window(ctx, service, from, to, n)
	if counts && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.more = true
		return nil
	}
	if err != nil {
		return err
	}
	traces := build(td)
	fresh := false
	for _, t := range traces {
		if s.seen[t.id] {
			continue
		}
		fresh, s.seen[t.id] = true, true
		if s.run != "" && !t.ofRun(s.run) {
			continue
		}
		if !counts {
			s.traces[t.id] = t
		}
		if !isRun(t) {
			s.there[t.id] = true
		}
	}
	if len(traces) < n {
		s.enough(from)
		return nil
	}
	cut := time.Unix(0, traces[len(traces)/4].start)
	if !cut.After(from) || !cut.Before(to) {
		cut = from.Add(to.Sub(from) / 2)
	}
	if !fresh || to.Sub(from) <= time.Microsecond { // shorter windows would have no less
		if n >= maxPage {
			s.more = true
			return nil
		}
		return s.within(ctx, service, from, to, 2*n)
	}
	if err := s.within(ctx, service, cut, to, page); err != nil {
		return err
	}
	return s.within(ctx, service, from, cut, page)
}

// enough begins to count where all traces since a time are known, and they are as many as were asked for.
func (s *search) enough(since time.Time) {
	if s.limit == 0 || !s.until.IsZero() {
		return
	}
	known := 0
	for id, t := range s.traces {
		if s.there[id] && t.start >= since.UnixNano() {
			known++
		}
	}
	if known >= s.limit {
		s.until = time.Now().Add(s.counting)
	}
}

// newest returns the traces that were asked for, by start.
func (s *search) newest() []*trace {
	var traces []*trace
	for _, t := range s.traces {
		traces = append(traces, t)
	}
	slices.SortFunc(traces, func(a, b *trace) int { return cmp.Or(cmp.Compare(b.start, a.start), slices.Compare(b.id[:], a.id[:])) })
	n := 0
	for i, t := range traces {
		if !isRun(t) {
			n++
		}
		if n > s.limit && s.limit > 0 {
			traces = traces[:i]
			break
		}
	}
	slices.Reverse(traces)
	return traces
}

// ofRun says whether a trace has spans of a run.
func (t *trace) ofRun(run string) bool {
	return slices.ContainsFunc(t.all, func(s *span) bool { return s.attr(spans.AttrRunID) == run })
}

// isRun says whether a trace is only about a run as a whole.
func isRun(t *trace) bool {
	return !slices.ContainsFunc(t.all, func(s *span) bool { return s.Name() != spans.SpanRun && s.Name() != spans.SpanSummary })
}

// share is how many traces were read of how many that are there.
type share struct {
	Read  int  `json:"read"`
	There int  `json:"there"`
	More  bool `json:"more"` // there are others that were not counted
}

func (s *search) share(traces []*trace) share {
	read := 0
	for _, t := range traces {
		if !isRun(t) {
			read++
		}
	}
	return share{Read: read, There: len(s.there), More: s.more}
}

func (s share) String() string {
	switch {
	case s.There == 1 && !s.More:
		return "The only trace"
	case s.Read == s.There && !s.More:
		return "All " + plural(s.Read, "trace")
	case s.More:
		return fmt.Sprintf("The latest %s of more than %s", thousands(s.Read), plural(s.There, "trace"))
	}
	return fmt.Sprintf("The latest %s of %s", thousands(s.Read), plural(s.There, "trace"))
}

// thousands groups digits.
func thousands(n int) string {
	text := strconv.Itoa(n)
	var b strings.Builder
	for i, r := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// byCount are the keys, those with the highest numbers first.
func byCount[N int | int64](m map[string]N) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
}
