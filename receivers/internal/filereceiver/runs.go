package filereceiver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap/zapcore"

	"github.com/trainbridge/trainbridge/internal/storageclient"
	"github.com/trainbridge/trainbridge/spans"
)

// OpenRun notes the beginning of a log of a run. The result is the span of a run that is new in this process, else nil. The span is the argument, or the one
// that an earlier process sent for the run: a repeated span must be equal. A receiver that reads its files once returns nil, and reports the beginnings of the
// runs at the end.
func (r *Receiver) OpenRun(span spans.RunSpan) *spans.RunSpan {
	opened, others := r.runs.open(span, r)
	if opened == nil {
		return nil
	}
	switch {
	case span.By == "" && others != "":
		r.runs.once.Do(func() {
			r.Set.Logger.Info(fmt.Sprintf(
				"%s: logs of two directories are two runs, as nothing names their job: %s (of %s) and %s. Where they are one job's, set TRAINBRIDGE_RUN_ID",
				r.Set.ID, span.Run, span.File, others,
			))
		})
	case span.By != "" && span.By != "run_id":
		r.Once(zapcore.InfoLevel, "run "+span.Run, fmt.Sprintf("the run is %s, by %s; TRAINBRIDGE_RUN_ID gives it another id", span.Run, span.By))
	}
	return opened
}

// processRuns are shared by all receivers of a collector: a run has one span for all its logs.
var processRuns runs

// runs are the runs whose train.run span was sent, and the spans sent before a restart.
type runs struct {
	mu    sync.Mutex
	by    map[string]*Receiver // sender
	named string               // the first run named by its directory: "id (of file)"
	once  sync.Once
	began map[string]spans.RunSpan // earliest beginnings where all logs are read before the spans are sent; nil: spans are sent at once

	store storage.Client // nil: none
	of    storage.Extension
	users map[*Receiver]bool // of store
	known []spans.RunSpan    // stored spans, the oldest first
}

const (
	maxKnown     = 256 // runs
	knownKey     = "runs"
	storeTimeout = 5 * time.Second
)

// open notes a run. others names another run, where both have only the directories of their logs for a name.
func (r *runs) open(span spans.RunSpan, by *Receiver) (opened *spans.RunSpan, others string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.began != nil {
		if first, ok := r.began[span.Run]; !ok || span.Before(first) {
			r.began[span.Run] = span
		}
		return nil, ""
	}
	if r.by[span.Run] != nil {
		return nil, ""
	}
	if r.by == nil {
		r.by = make(map[string]*Receiver)
	}
	r.by[span.Run] = by
	if span.By == "" {
		others = r.named
		if others == "" {
			r.named = fmt.Sprintf("%s (of %s)", span.Run, span.File)
		}
	}
	if r.store == nil {
		return &span, others
	}
	if i := slices.IndexFunc(r.known, func(k spans.RunSpan) bool { return k.Run == span.Run }); i >= 0 {
		known := r.known[i]
		return &known, others
	}
	r.known = append(r.known, span)
	r.known = r.known[max(0, len(r.known)-maxKnown):]
	if text, err := json.Marshal(r.known); err == nil { // texts and numbers
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		defer cancel()
		// A run's start is stored before its positions: otherwise a repeated span would differ.
		if err := storageclient.Write(ctx, r.store, storage.SetOperation(knownKey, text)); err != nil {
			by.Once(zapcore.InfoLevel, "runs", "the start of the run could not be stored: "+err.Error())
		}
	}
	return &span, others
}

// remember reads the spans that earlier processes sent. The receivers of a collector share one storage: the first extension named.
func (r *runs) remember(ctx context.Context, from storage.Extension, by *Receiver) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.store == nil {
		store, err := from.GetClient(ctx, component.KindReceiver, component.MustNewID("train"), "runs")
		if err != nil {
			return fmt.Errorf("'storage': %w", err)
		}
		text, err := store.Get(ctx, knownKey)
		if err != nil || json.Unmarshal(text, &r.known) != nil { // nothing was stored, or the content is unusable
			r.known = nil
		}
		r.store, r.of, r.users = store, from, make(map[*Receiver]bool)
	}
	if r.of == from {
		r.users[by] = true
	}
	return nil
}

// release forgets the runs of a receiver that stops: a collector with a new configuration starts anew.
func (r *runs) release(ctx context.Context, by *Receiver) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.by, func(_ string, of *Receiver) bool { return of == by })
	if len(r.by) == 0 {
		r.named = ""
	}
	if !r.users[by] {
		return nil
	}
	delete(r.users, by)
	if len(r.users) > 0 {
		return nil
	}
	store := r.store
	r.store, r.of, r.known = nil, nil, nil
	return store.Close(ctx)
}
