package tail

import (
	"context"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Once reads every matching file once to its end. It neither polls nor stores positions.
type Once struct{ t *Tailer }

// NewOnce makes a Once. Of several that share a Sorter, all are made before one of them reads.
func NewOnce(cfg Config, set Settings, newHandler NewHandler) (*Once, error) {
	t, err := New(cfg, set, newHandler)
	if err != nil {
		return nil, err
	}
	t.final, t.noWatch = true, true
	set.Pace.join(t)
	return &Once{t}, t.openCounts()
}

// Counts are the accounts so far.
func (o *Once) Counts() Counts { return o.t.Counts() }

// Sample is the beginning of a line as it may be shown.
func (o *Once) Sample(text []byte) string { return o.t.sample(text) }

// ReadAll is Read of a Once.
func ReadAll(ctx context.Context, cfg Config, set Settings, newHandler NewHandler) (Counts, error) {
	o, err := NewOnce(cfg, set, newHandler)
	if err != nil {
		return Counts{}, err
	}
	return o.Read(ctx)
}

// Read reads all, gives up the pending lines, delivers everything and returns the accounts. A batch that is not accepted is sent again until ctx ends; then
// Read returns ctx's error. It is called once. It stays in its Sorter: a file that it has read is not for another that reads on.
func (o *Once) Read(ctx context.Context) (Counts, error) {
	t := o.t
	defer t.kill()
	defer t.counts.close()
	defer t.set.Pace.leave(t)
	t.store = storage.NewNopClient()
	settled := make(chan struct{}, 1)
	defer context.AfterFunc(ctx, t.kill)()
	t.outbox.enough = 0 // nothing is to come that a batch could go with
	t.outbox.open(1, func(group []*lineBatch) {
		t.send(group)
		select {
		case settled <- struct{}{}:
		default:
		}
	})
	t.sweep(t.now())
	t.sweeper.number()
	t.order()
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
			t.set.Pace.wait(ctx, t)
			t.turn(s, &buf)
			continue
		}
		if kicked && looks < 1000 {
			looks++
			t.sweep(t.now())
			t.order()
			continue
		}
		if !waits && t.unpark() {
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
