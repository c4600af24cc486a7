package filereceiver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap/zapcore"

	"github.com/trainbridge/trainbridge/internal/storageclient"
	"github.com/trainbridge/trainbridge/internal/turns"
	"github.com/trainbridge/trainbridge/spans"
)

// OpenRun is called by a handler before the delivery of a log's first record, with the train.run span of the log's run. The span of a run that is new in this
// process is sent before the run's first record, whichever of the receivers that have called OpenRun sends the record (runs.takeOwed): step_join takes a run
// whose steps come first for one that another gateway has begun to read. If an earlier process has sent a span for the run, the same span is sent again,
// because a repeated span must be equal. A receiver that reads its files once (factory.Once) sends none: its caller sends the spans at the end.
func (r *Receiver) OpenRun(span spans.RunSpan) {
	isNew, others := r.runs.open(span, r)
	if !isNew {
		return
	}
	// Ids that are only a guess are logged (RunSpan.By: where the id comes from; "": the log's directory).
	switch {
	case span.By == "" && others != "":
		r.runs.once.Do(func() {
			r.Set.Logger.Info(fmt.Sprintf(
				"%s: logs of two directories are two runs, as nothing names their job: %s (of %s) and %s. Where they are one job's, set TRAINBRIDGE_RUN_ID",
				r.Set.ID, span.Run, span.File, others,
			))
		})
	case span.By != "" && span.By != "run_id":
		said := fmt.Sprintf("the run is %s, by %s", span.Run, span.By)
		if span.By != "TRAINBRIDGE_RUN_ID" {
			said += "; TRAINBRIDGE_RUN_ID gives it another id"
		}
		r.Once(zapcore.InfoLevel, "run "+span.Run, said)
	}
}

// processRuns are shared by all receivers of a collector: a run has one span for all its logs.
var processRuns runs

// runs are the runs whose train.run span was sent, and the spans sent before a restart.
type runs struct {
	mu    sync.Mutex
	by    map[string][]*Receiver   // by run id: the receivers that have met the run
	owed  map[string]spans.RunSpan // by run id: no message with the span was accepted yet
	turn  chan struct{}            // full while a message with owed spans is under way; made with the first owed span
	named string                   // the first run named by its directory: "id (of file)"
	once  sync.Once                // for the line about two directories
	began map[string]spans.RunSpan // earliest beginnings where all logs are read before the spans are sent; nil: spans are sent at once

	store   storage.Client     // keeps known across restarts; nil: no receiver has a storage
	storeOf storage.Extension  // the extension that store belongs to
	users   map[*Receiver]bool // the running receivers configured with storeOf; store is closed with the last of them
	known   []spans.RunSpan    // the train.run spans sent by earlier processes and by this one, as stored: the oldest first, maxKnown at most
}

const (
	maxKnown     = 256    // stored runs
	knownKey     = "runs" // key of the stored spans
	storeTimeout = 5 * time.Second
)

// open records a run, met by a receiver. isNew: this process has not met the run before, and has to send its span; false if the spans are sent at the end
// (began). For a new run that is named by the directory of its logs, others is the first run named so, "" if there is none: the two may be one job.
func (r *runs) open(span spans.RunSpan, by *Receiver) (isNew bool, others string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.began != nil {
		if first, ok := r.began[span.Run]; !ok || span.Before(first) {
			r.began[span.Run] = span
		}
		return false, ""
	}
	if r.by == nil {
		r.by, r.owed, r.turn = make(map[string][]*Receiver), make(map[string]spans.RunSpan), make(chan struct{}, 1)
	}
	met := r.by[span.Run]
	if !slices.Contains(met, by) {
		r.by[span.Run] = append(met, by)
	}
	if len(met) > 0 {
		return false, ""
	}
	r.owed[span.Run] = span
	if span.By == "" {
		others = r.named
		if others == "" {
			r.named = fmt.Sprintf("%s (of %s)", span.Run, span.File)
		}
	}
	if r.store == nil {
		return true, others
	}
	// An earlier process may have sent the span.
	if i := slices.IndexFunc(r.known, func(k spans.RunSpan) bool { return k.Run == span.Run }); i >= 0 {
		r.owed[span.Run] = r.known[i]
		return true, others
	}
	r.known = append(r.known, span)
	r.known = r.known[max(0, len(r.known)-maxKnown):]
	if text, err := json.Marshal(r.known); err == nil { // always: only texts and numbers
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		defer cancel()
		// A run's start is stored before its positions: otherwise a repeated span would differ.
		if err := storageclient.Write(ctx, r.store, storage.SetOperation(knownKey, text)); err != nil {
			by.Once(zapcore.InfoLevel, "runs", "the start of the run could not be stored: "+err.Error())
		}
	}
	return true, others
}

// takeOwed returns the train.run spans of the runs of messages, as far as not sent yet; they go with the first of the messages. One delivery at a time sends
// such spans, so each goes once, and before all else of the run: takeOwed waits for its turn, and the caller calls release when the first message was accepted
// (paid) or has failed. Without such a span nobody waits. Messages of a receiver unknown to the run (nccl with join: remote) may go elsewhere, and take no
// span. An error is that of ctx.
func (r *runs) takeOwed(ctx context.Context, by *Receiver, messages []spans.Message) (owed []spans.RunSpan, release func(), err error) {
	if len(r.owedTo(by, messages)) == 0 {
		return nil, func() {}, nil
	}
	turns.Of(ctx).Wait(ctx, r) // else an earlier delivery of the log would wait here, and this delivery, with the turn, for the earlier to be judged
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	release = sync.OnceFunc(func() { <-r.turn })
	owed = r.owedTo(by, messages)
	if len(owed) == 0 { // another delivery has sent all meanwhile
		release()
	}
	return owed, release, nil
}

// owedTo returns the unsent train.run spans of the runs of a receiver's messages, in the order of the runs in the messages.
func (r *runs) owedTo(by *Receiver, messages []spans.Message) (owed []spans.RunSpan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.owed) == 0 {
		return nil
	}
	found := make(map[string]bool)
	for _, m := range messages {
		for _, rs := range m.Traces.ResourceSpans().All() {
			run := spans.AttrText(rs.Resource().Attributes(), spans.AttrRunID)
			if span, ok := r.owed[run]; ok && !found[run] && slices.Contains(r.by[run], by) {
				found[run] = true
				owed = append(owed, span)
			}
		}
	}
	return owed
}

// paid records that a message with the spans of runs was accepted: they are not sent again.
func (r *runs) paid(sent []spans.RunSpan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range sent {
		delete(r.owed, s.Run)
	}
}

// loadKnown is called at the start of each receiver with 'storage'. The first caller's extension is used for the whole process: the call opens the client and
// fills r.known with the train.run spans that earlier processes have sent, so that open repeats them unchanged. Later calls only add their receiver to r.users,
// if it has the same extension: users counts the receivers whose shutdown must precede the closing of the client (release). An error means that the extension
// has no client. Spans that cannot be read are no error: the runs then begin with new spans.
func (r *runs) loadKnown(ctx context.Context, from storage.Extension, by *Receiver) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.store == nil {
		store, err := from.GetClient(ctx, component.KindReceiver, component.MustNewID("train"), "runs")
		if err != nil {
			return fmt.Errorf("'storage': %w", err)
		}
		r.store, r.storeOf, r.known, r.users = store, from, readKnown(ctx, store), make(map[*Receiver]bool)
	}
	if r.storeOf == from {
		r.users[by] = true
	}
	return nil
}

// readKnown returns the stored train.run spans; nil: nothing is stored, the storage cannot be read, or the content is not the JSON that open has written.
func readKnown(ctx context.Context, store storage.Client) (known []spans.RunSpan) {
	text, err := store.Get(ctx, knownKey)
	if err != nil || json.Unmarshal(text, &known) != nil {
		return nil
	}
	return known
}

// release forgets the runs that no receiver but a stopping one has met: a collector that loads a new configuration starts anew in the same process. The last
// receiver with the storage closes the client, and returns its error.
func (r *runs) release(ctx context.Context, by *Receiver) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for run, met := range r.by {
		r.by[run] = slices.DeleteFunc(met, func(of *Receiver) bool { return of == by })
		if len(r.by[run]) == 0 {
			delete(r.by, run)
			delete(r.owed, run)
		}
	}
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
	r.store, r.storeOf, r.known = nil, nil, nil
	return store.Close(ctx)
}
