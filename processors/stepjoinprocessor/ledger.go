package stepjoinprocessor

import (
	"context"
	"encoding/binary"
	"fmt"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/internal/seen"
	"github.com/trainbridge/trainbridge/internal/storageclient"
	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/spans"
)

// ledger remembers the windows and roots whose spans were made, also by the last process. Beyond this memory, spans would be made again with less content,
// under the same ids. Spans are stored before sending: after a crash the next process sends them unchanged. See docs/reference/adr/0017.
type ledger struct {
	keeps  bool               // a storage exists
	made   seen.Seen          // spans.IDHash of the windows and roots
	fresh  []byte             // hashes not written yet
	stored bool               // some made spans are stored
	ring   storageclient.Ring // the stored hashes
}

const (
	mostRemembered = 1 << 15 // remembered at least
	madeKey        = "made"  // the spans made and not yet accepted
)

func newLedger() ledger { return ledger{made: seen.Last(mostRemembered)} }

// has reports whether the spans of a window were made before, by this process or the last; window empty: the root of the trace.
func (t *ledger) has(trace pcommon.TraceID, window pcommon.SpanID) bool {
	return t.made.Has(spans.IDHash(trace, window))
}

// note records that the spans of a window, or with window empty the root of the trace, were made.
func (t *ledger) note(trace pcommon.TraceID, window pcommon.SpanID) {
	id := spans.IDHash(trace, window)
	t.made.Known(id, 0) // adds the id
	if t.keeps {
		t.fresh = binary.LittleEndian.AppendUint64(t.fresh, id)
	}
}

// storeUnsent stores the spans in p.unsent and the hashes of new windows, before the spans are sent. If the storage fails, the spans are sent all the same.
// p.sweeping is held.
func (p *stepJoin) storeUnsent(ctx context.Context) {
	t := &p.ledger
	if !t.keeps || len(p.unsent) == 0 {
		return
	}
	var made []byte
	for _, td := range p.unsent {
		b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		if err != nil {
			continue // impossible: made here
		}
		made = wire.AppendBytes(made, b)
	}
	if err := t.ring.Add(context.WithoutCancel(ctx), p.promises.store, t.fresh, len(t.fresh)/8, storage.SetOperation(madeKey, made)); err != nil {
		p.mu.Lock()
		p.promises.logFailure(p, err)
		p.mu.Unlock()
		return
	}
	t.fresh, t.stored = nil, true
}

// deleteStoredSpans deletes the spans stored by storeUnsent; called once all were accepted.
func (p *stepJoin) deleteStoredSpans(ctx context.Context) {
	if p.ledger.stored {
		// On failure, the spans are sent once more after a crash, unchanged.
		p.ledger.stored = storageclient.Write(context.WithoutCancel(ctx), p.promises.store, storage.DeleteOperation(madeKey)) != nil
	}
}

// restoreLedger restores the hashes of the last process, and puts its unaccepted spans into p.unsent for the first sweep.
func (p *stepJoin) restoreLedger(ctx context.Context) error {
	t := &p.ledger
	t.keeps = p.promises.keeps
	if !t.keeps {
		return nil
	}
	// The hashes of windows and roots.
	t.ring = storageclient.Ring{Name: "told-", Keep: mostRemembered}
	ids, err := t.ring.Restore(ctx, p.promises.store)
	if err != nil {
		return err
	}
	for ; len(ids) >= 8; ids = ids[8:] {
		t.made.Known(binary.LittleEndian.Uint64(ids), 0)
	}
	// The spans made and not accepted.
	made, err := p.promises.store.Get(ctx, madeKey)
	if err != nil {
		return err
	}
	for c := (wire.Cursor{Rest: made}); len(c.Rest) > 0; {
		b := c.Bytes()
		if c.Bad {
			return fmt.Errorf("%w: spans that were made", errPromise)
		}
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(b)
		if err != nil {
			return fmt.Errorf("%w: spans that were made: %w", errPromise, err)
		}
		p.unsent, t.stored = append(p.unsent, td), true
	}
	if n := len(p.unsent); n > 0 {
		p.set.Logger.Info("What the last process had made and not sent is sent by this one", zap.Int("messages", n))
	}
	return nil
}
