package tail

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lockorder"
	"github.com/trainbridge/trainbridge/internal/turns"
)

const (
	senders = 4 // deliveries under way at once
	// linger is the time for which a small batch waits for batches of streams that are read at the same time, to share a request: alone, the request would cost
	// more than its records.
	linger = 3 * time.Millisecond
	// smallGap is the least time between two small requests: many polled files may grow one after the other.
	smallGap = 30 * time.Millisecond
)

// outbox queues batches for the senders, oldest first. A stuck consumer fills the budget (Config.MaxInFlightBytes), not the outbox.
type outbox struct {
	enough int64 // bytes of a batch that is sent without waiting
	line   turns.Line
	inTurn bool // a stream's batch is sent when its last one was accepted (Settings.InTurn)

	mu      lockorder.Mutex[leaf]
	changed sync.Cond
	batches []*lineBatch // cut, and not yet taken by a sender, oldest first
	cost    int64        // budget of batches, in bytes
	small   time.Time    // of the last small request
	lingers bool         // a sender waits for more
	closed  bool
	full    chan struct{} // signals enough bytes for a request
	senders sync.WaitGroup
}

// init makes the outbox ready; batches of enough bytes together are sent without waiting for more.
func (o *outbox) init(enough int) {
	o.enough, o.full = int64(enough), make(chan struct{}, 1)
	o.changed.L = &o.mu
}

// open starts n senders, which call send with each group of batches to be sent as one. A single sender delivers in the order of cutting.
func (o *outbox) open(n int, send func(group []*lineBatch)) {
	for range n {
		o.senders.Go(func() {
			for group := o.next(); group != nil; group = o.next() {
				send(group)
			}
		})
	}
}

// close ends the senders after the queue is empty, and waits for their end.
func (o *outbox) close() {
	o.end()
	o.senders.Wait()
}

// end tells the senders that no batch comes any more.
func (o *outbox) end() {
	o.mu.Lock()
	o.closed = true
	o.changed.Broadcast()
	o.mu.Unlock()
	o.signal()
}

// signal ends the wait of a sender that lingers for more batches.
func (o *outbox) signal() {
	select {
	case o.full <- struct{}{}:
	default:
	}
}

// put queues a batch for the senders.
func (o *outbox) put(b *lineBatch) {
	o.mu.Lock()
	b.cut = time.Now()
	o.batches = append(o.batches, b)
	o.cost += b.bytes
	full := o.cost >= o.enough
	o.changed.Signal()
	o.mu.Unlock()
	if full {
		o.signal()
	}
}

// next waits for a request's worth of batches, or until the oldest batch has waited for linger and the last small request is smallGap ago. It removes from the
// queue, and returns, the oldest batch with those that can go in a request with that batch. A closed outbox is emptied without waiting; then next returns nil.
func (o *outbox) next() []*lineBatch {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.batches) == 0 && !o.closed || o.lingers { // one sender at a time lingers: the batches it waits for are in one group
			o.changed.Wait()
		}
		if len(o.batches) == 0 {
			return nil
		}
		now := time.Now()
		wait := max(linger-now.Sub(o.batches[0].cut), smallGap-now.Sub(o.small))
		if o.closed || o.cost >= o.enough {
			return o.group()
		}
		if wait <= 0 {
			group := o.group()
			if len(o.batches) == 0 { // all there was: a small request
				o.small = now
			}
			return group
		}
		// Linger without the lock.
		o.lingers = true
		o.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-o.full: // the signal may be for batches already sent: then check again
		case <-timer.C:
		}
		timer.Stop()
		o.mu.Lock()
		o.lingers = false
		o.changed.Broadcast()
	}
}

// group removes from the queue, and returns, the oldest batch and the batches after it that its Delivery joins, up to maxBatchCost; with inTurn, one of each
// stream. The caller holds mu.
func (o *outbox) group() []*lineBatch {
	first := o.batches[0]
	n, cost := 1, first.bytes
	for n < len(o.batches) {
		b := o.batches[n]
		tooLarge := cost+b.bytes > maxBatchCost
		sameStream := o.inTurn && slices.ContainsFunc(o.batches[:n], func(before *lineBatch) bool { return before.stream == b.stream })
		if tooLarge || sameStream || !first.delivery.Join(b.delivery) {
			break
		}
		cost += b.bytes
		n++
	}
	group := append([]*lineBatch(nil), o.batches[:n]...)
	logs := make([]int, n)
	for i, b := range group {
		logs[i] = b.stream.number
	}
	first.turn = o.line.Begin(logs)
	clear(o.batches[:n])
	o.batches = o.batches[n:]
	o.cost -= cost
	if len(o.batches) > 0 {
		o.changed.Signal()
	}
	return group
}

// send delivers joined batches: it tries again until they are accepted or refused for good, and then settles them. At shutdown send gives up without settling,
// and the lines stay holes in the checkpoint.
func (t *Tailer) send(group []*lineBatch) {
	d := group[0].delivery
	if l, ok := d.(Locator); ok {
		l.Locate(func(batch int, p Place) (string, int64, bool) { return group[batch].locate(p) })
	}
	t.storeArrivals(group)
	turn := group[0].turn
	ctx := turns.With(t.life, turn)
	var wait *backoff.ExponentialBackOff
	for {
		err := d.Send(ctx)
		turn.Over() // later batches of the logs do not wait for another try
		if err == nil || consumererror.IsPermanent(err) || errors.As(err, new(*Refused)) {
			t.settle(group, err)
			return
		}
		if t.ending() {
			return
		}
		t.warn("retry", "The next component does not accept a batch; it is sent again until it does, and reading pauses",
			zap.String("path", group[0].stream.path), zap.Error(err))
		if wait == nil {
			wait = &backoff.ExponentialBackOff{InitialInterval: 50 * time.Millisecond, RandomizationFactor: 0.3, Multiplier: 2, MaxInterval: maxRetryWait}
			wait.Reset()
		}
		timer := time.NewTimer(wait.NextBackOff())
		select {
		case <-timer.C:
		case <-t.life.Done():
		case <-t.halt:
		}
		timer.Stop()
	}
}

// ending reports whether the receiver is shutting down: unaccepted batches are then not retried.
func (t *Tailer) ending() bool {
	select {
	case <-t.halt:
		return true
	default:
		return t.life.Err() != nil
	}
}

// settle closes the batches of a group that were sent as one. err says which records were refused: those named are counted to their own batch; of the rest only
// the number is known, and it is counted to the batches from the first on.
func (t *Tailer) settle(group []*lineBatch, err error) {
	var refused Refused
	if r := (*Refused)(nil); errors.As(err, &r) {
		refused = *r
	} else if err != nil {
		refused.Share = 1
	}
	lines := int64(0)
	for _, b := range group {
		lines += b.recordLines()
	}
	lines = int64(math.Ceil(float64(lines)*min(refused.Share, 1) - 1e-6))  // refused without being named; 1e-6 for rounding errors of the share
	ofNone := err != nil && refused.Share == 0 && len(refused.Places) == 0 // the refused data was made of no record
	for i, b := range group {
		n := b.refused(refused.Places[i])
		sample := t.setAside(b, refused.Places[i])
		if n > 0 || refused.Share > 0 || ofNone && i == 0 {
			t.warn("refused", "The next component refused records for good",
				zap.String("path", b.stream.path), zap.String("sample", t.sample(sample)), zap.Error(err))
		}
		more := min(lines, b.recordLines()-n)
		lines -= more
		b.stream.settle(b, n+more)
	}
}

// piece is a range of bytes of one of a stream's files.
type piece struct {
	file *file
	checkpoint.Range
}

// lineBatch has the lines of one Cut: the pieces of the stream that depend on one delivery.
type lineBatch struct {
	stream   *Stream
	pieces   []piece
	lent     []Lent      // held lines of this and other streams in the batch
	records  int64       // record lines, without lent ones
	bytes    int64       // budget taken by the record lines
	length   int64       // of all pieces together
	places   []place     // of the batch's records, by the number in Place
	cut      time.Time   // time of Cut
	delivery Delivery    // what is sent
	from     *mark       // of an InOrder handler: the beginning of the batch; nil: of another handler
	turn     *turns.Turn // of the batch and those joined with it, once taken by a sender
}

// extent measures a batch: bytes of its pieces as one text, record lines among them, and lent lines.
type extent struct {
	bytes, records int64
	lent           int
}

// place is the part of a batch that became one record.
type place struct {
	from, to extent
	held     *file // of a held line, which is in no batch yet; nil: none
	begin    int64 // of that line in held
}

// extent returns the present size of the batch.
func (b *lineBatch) extent() extent { return extent{b.length, b.records, len(b.lent)} }

// mark is the beginning of a batch of an InOrder handler.
type mark struct {
	number int             // counts the stream's batches
	state  []byte          // of the handler then
	at     map[*file]int64 // offset of the first byte of each file that is in no earlier batch
}

// add appends a range of a file to the batch. Neighbours are merged: unheld lines cost one piece per chunk.
func (b *lineBatch) add(f *file, begin, end int64) {
	b.length += end - begin
	if n := len(b.pieces); n > 0 {
		if last := &b.pieces[n-1]; last.file == f && last.End == begin {
			last.End = end
			return
		}
	}
	f.outstanding++
	b.pieces = append(b.pieces, piece{f, checkpoint.Range{Begin: begin, End: end}})
}

// empty reports whether the batch has no line.
func (b *lineBatch) empty() bool { return len(b.pieces) == 0 && len(b.lent) == 0 }

// locate returns the file and the offset of the first line of a place: in a piece, else among the lent lines. It returns false where the batch has no such
// place, or the lines were given up.
func (b *lineBatch) locate(p Place) (path string, begin int64, ok bool) {
	if p < 0 || int(p) >= len(b.places) {
		return "", 0, false
	}
	at, of := int64(0), b.places[p] // at: bytes of the pieces so far
	if of.held != nil {
		return of.held.path, of.begin, true
	}
	for _, pc := range b.pieces {
		length := pc.End - pc.Begin
		// The place begins in this piece, and has bytes in the pieces at all.
		if of.from.bytes < at+length && of.from.bytes < of.to.bytes {
			return pc.file.path, pc.Begin + of.from.bytes - at, true
		}
		at += length
	}
	for _, l := range b.lent[of.from.lent:of.to.lent] {
		l.stream.mu.Lock()
		h := l.stream.held.slots[l.held]
		l.stream.mu.Unlock()
		if h.file != nil {
			return h.file.path, h.Begin, true
		}
	}
	return "", 0, false
}

// reset ends a settled batch: its files no longer count the pieces as outstanding. The batch is empty then, to be filled again.
func (b *lineBatch) reset() {
	for i := range b.pieces {
		b.pieces[i].file.outstanding--
	}
	clear(b.pieces)
	clear(b.lent)
	clear(b.places)
	*b = lineBatch{pieces: b.pieces[:0], lent: b.lent[:0], places: b.places[:0]}
}

// newBatch returns an empty batch.
func (t *Tailer) newBatch() *lineBatch {
	if b, ok := t.batches.Get().(*lineBatch); ok {
		return b
	}
	return &lineBatch{}
}

// recordLines returns how many record lines are accepted or refused with the batch, at most: a lent line may go with other batches, too.
func (b *lineBatch) recordLines() int64 { return b.records + int64(len(b.lent)) }

// refused returns the number of record lines in the places of refused records, each place counted once.
func (b *lineBatch) refused(places []Place) (n int64) {
	seen := make(map[Place]bool, len(places))
	for _, p := range places {
		if int(p) >= len(b.places) || seen[p] {
			continue
		}
		seen[p] = true
		pl := &b.places[p]
		n += pl.to.records - pl.from.records + int64(pl.to.lent-pl.from.lent)
	}
	return n
}
