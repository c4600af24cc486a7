package tail

import (
	"context"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Once reads every matching file once to its end. It neither polls nor stores positions.
type Once struct{ t *Tailer }

// NewOnce makes a Once. If several share a Sorter, make all before the first Read.
func NewOnce(cfg Config, set Settings, newHandler NewHandler) (*Once, error) {
	t, err := New(cfg, set, newHandler)
	if err != nil {
		return nil, err
	}
	t.final = true
	set.Pace.join(t)
	return &Once{t}, t.openCounts()
}

// Counts returns the accounts so far.
func (o *Once) Counts() Counts { return o.t.Counts() }

// Claim assigns files to this Once without sniffing them, because their receiver is known.
func (o *Once) Claim(paths []string) {
	for _, path := range paths {
		o.t.set.Sorter.claim(o.t, path, o.t.now())
	}
}

// Sample returns the loggable beginning of a line.
func (o *Once) Sample(text []byte) string { return o.t.sample(text) }

// ReadAll makes a Once and calls Read.
func ReadAll(ctx context.Context, cfg Config, set Settings, newHandler NewHandler) (Counts, error) {
	o, err := NewOnce(cfg, set, newHandler)
	if err != nil {
		return Counts{}, err
	}
	return o.Read(ctx)
}

// Read reads everything, gives up the pending lines, delivers everything and returns the accounts. An unaccepted batch is retried until ctx ends; then Read
// returns ctx's error. Call Read once. The files stay assigned in the Sorter: no Tailer that continues gets them.
func (o *Once) Read(ctx context.Context) (Counts, error) {
	t := o.t
	defer t.kill()
	defer t.counts.close()
	defer t.set.Pace.leave(t)
	t.store = storage.NewNopClient()
	settled := make(chan struct{}, 1)
	defer context.AfterFunc(ctx, t.kill)()
	t.outbox.enough = 0 // no batch to wait for will come
	t.outbox.open(1, func(group []*lineBatch) {
		t.send(group)
		select {
		case settled <- struct{}{}:
		default:
		}
	})
	t.sweep(t.now())
	t.sweeper.numberStreams()
	t.order()
	// This goroutine is worker and sweeper in turn, so that the order of reading is the same each time.
	var buf []byte
	looks := 0 // a repeatedly truncated file must not keep this from ending
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
		if !waits { // nothing is ready, and no batch is under way that would make a stream ready
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
