package tail

import (
	"context"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// ReadAll reads every matching file once to its end, gives up the pending lines, delivers everything and returns the accounts.
// It neither polls nor stores positions. A batch that is not accepted is sent again until ctx ends; then ReadAll returns ctx's error.
func ReadAll(ctx context.Context, cfg Config, set Settings, newHandler NewHandler) (Counts, error) {
	t, err := New(cfg, set, newHandler)
	if err != nil {
		return Counts{}, err
	}
	defer t.kill()
	t.final, t.noWatch = true, true
	if err := t.openCounts(); err != nil {
		return Counts{}, err
	}
	defer t.counts.close()
	t.store = storage.NewNopClient()
	settled := make(chan struct{}, 1)
	defer context.AfterFunc(ctx, t.kill)()
	t.outbox.enough = 0 // nothing is to come that a batch could go with
	t.outbox.open(func(group []*lineBatch) {
		t.send(group)
		select {
		case settled <- struct{}{}:
		default:
		}
	})
	t.sweep(t.now())
	var buf []byte
	looks := 0 // a file that is cut again and again must not keep this from ending
	for {
		t.mu.Lock()
		var s *Stream
		if len(t.ready) > 0 {
			s = t.pop()
		}
		waits := t.inFlight > 0
		kicked := len(t.kicked) > 0
		t.mu.Unlock()
		if s != nil {
			t.turn(s, &buf)
			continue
		}
		if kicked && looks < 1000 {
			looks++
			t.sweep(t.now())
			continue
		}
		if !waits {
			break
		}
		select {
		case <-settled:
		case <-ctx.Done():
			waits = false
		}
		if !waits {
			break
		}
	}
	t.expireAll()
	t.outbox.close()
	t.closeFiles()
	return t.Counts(), ctx.Err()
}
