// Package turns keeps the order of a log of which several deliveries are under way at once. A component that judges by what came before calls Enter, and waits
// until earlier deliveries of the log are judged. Nothing else waits: judged deliveries may be on their way to a backend for as long as the backend takes.
package turns

import (
	"context"
	"slices"
	"sync"
)

// Line has the deliveries of a sender that are under way, oldest first. The zero value is empty.
type Line struct {
	mu      sync.Mutex
	turns   []*Turn
	changed chan struct{} // closed at the next change of a turn; nil: nobody waits
}

// Turn is the place of a delivery in the Line. A nil Turn is that of a delivery without a Line, and waits for nothing.
type Turn struct {
	line   *Line
	logs   []int   // sorted
	after  []*Turn // earlier deliveries of these logs that were under way at the beginning
	last   bool    // the message under way is the delivery's last
	passed []any   // places that the whole delivery has passed
	over   bool
}

// Begin gives a delivery with records of logs, by number, the place behind all deliveries under way. The caller calls Over.
func (l *Line) Begin(logs []int) *Turn {
	slices.Sort(logs)
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &Turn{line: l, logs: logs}
	for _, earlier := range l.turns {
		if share(earlier.logs, logs) {
			t.after = append(t.after, earlier)
		}
	}
	l.turns = append(l.turns, t)
	return t
}

// share says whether two sorted lists have a number in common.
func share(a, b []int) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			return true
		case a[0] < b[0]:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return false
}

// Over ends a turn: nobody waits for the delivery any more, and another try of the delivery waits for nobody. Over may be called again.
func (t *Turn) Over() {
	t.change(func() {
		t.over, t.after = true, nil
		t.line.turns = slices.DeleteFunc(t.line.turns, func(u *Turn) bool { return u == t })
	})
}

// Last says that the next message of the delivery is the last.
func (t *Turn) Last() { t.change(func() { t.last = true }) }

// change changes the turn, and wakes all who wait.
func (t *Turn) change(f func()) {
	if t == nil {
		return
	}
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	f()
	if t.line.changed != nil {
		close(t.line.changed)
		t.line.changed = nil
	}
}

// Pass says that the whole delivery has passed a place, a pointer.
func (t *Turn) Pass(place any) { t.change(func() { t.passed = append(t.passed, place) }) }

// Wait waits until the earlier deliveries of the logs have passed the place or are over, or until ctx ends.
func (t *Turn) Wait(ctx context.Context, place any) {
	if t == nil {
		return
	}
	for {
		t.line.mu.Lock()
		if !slices.ContainsFunc(t.after, func(u *Turn) bool { return !u.over && !slices.Contains(u.passed, place) }) {
			t.line.mu.Unlock()
			return
		}
		if t.line.changed == nil {
			t.line.changed = make(chan struct{})
		}
		changed := t.line.changed
		t.line.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

type key struct{}

// With returns ctx with the turn of what is sent.
func With(ctx context.Context, t *Turn) context.Context { return context.WithValue(ctx, key{}, t) }

// Of is the turn of what is sent; nil: none.
func Of(ctx context.Context) *Turn {
	t, _ := ctx.Value(key{}).(*Turn)
	return t
}

// Enter waits until the judge, a pointer, has judged the earlier deliveries of the logs, or until ctx ends. The judge calls leave after judging the message.
func Enter(ctx context.Context, judge any) (leave func()) {
	t := Of(ctx)
	t.Wait(ctx, judge)
	return func() {
		t.change(func() {
			if t.last {
				t.passed = append(t.passed, judge)
			}
		})
	}
}
