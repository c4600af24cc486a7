package stepjoinprocessor

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/internal/storageclient"
	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
	"github.com/trainbridge/trainbridge/spans"
)

// promises stores the spans still to be sent, for the process after a crash: roots that already have children, and steps and passes, which state that their
// content is unknown if the journal has not kept their facts. The promises of one batch are a chunk, deleted once all of them are kept.
type promises struct {
	store    storage.Client
	from, to int64         // the range of existing chunks; to is the next one's number
	unsent   map[int64]int // by chunk: the number of promises not kept yet
	keeps    bool          // a storage exists
	unstored []promise     // promises refused by the storage
	failing  bool          // already logged
}

// promise is a span to be sent to a group: a root of ours, or the breakdown of a window.
type promise struct {
	run    *facts.Run
	group  *facts.Group
	window facts.Window // of the first top of the trace; of a leaf without a span, only with times
	flags  byte
}

// The flags of a stored promise.
const (
	promisedRoot = 1 << iota
	promisedFunction
	promisedByID
)

// promise records that group g will get a root of ours (f.promised), or else a breakdown of its window. The promises of the batch are collected in r.fresh, and
// stored by stepJoin.promise.
func (r *reader) promise(g *facts.Group, f *fact) {
	x := promise{r.run, g, f.window, 0}
	switch {
	case !f.isWindow:
		x.window = facts.Window{Start: f.leaf.Start, End: f.leaf.End, Number: -1}
	case f.window.Kind == facts.Function:
		x.flags = promisedFunction
	case !f.promised && !r.p.promises.keeps: // without storage nobody will know of the breakdown
		return
	}
	if f.promised {
		x.flags |= promisedRoot
	} else if x.window.Span.IsEmpty() || x.flags != 0 {
		return // a leaf has no breakdown, and a TransferQueue call alone gets none: the shares of a call are on the span
	}
	if g.Chunk >= 0 { // only the window was promised so far: the new promise, of the root, replaces that promise
		r.p.promises.unsent[g.Chunk]--
	}
	g.Chunk, g.Promised = r.p.promises.to, f.promised
	r.fresh = append(r.fresh, x)
}

// appendPromises appends the stored form of promises, for readPromise.
func appendPromises(b []byte, list []promise) []byte {
	for _, x := range list {
		b = wire.AppendBytes(b, x.run.ID)
		b = wire.AppendBytes(b, x.group.Service)
		b = append(b, x.group.ID[:]...)
		b = append(b, x.window.Span[:]...)
		b = wire.AppendVarints(b, x.window.Start, x.window.End, x.window.Number)
		if x.group.ByID {
			x.flags |= promisedByID
		}
		b = append(b, byte(x.window.Kind), x.flags)
	}
	return b
}

// stored is the stored form of a promise.
type stored struct {
	run, service string
	trace        pcommon.TraceID
	window       facts.Window
	flags        byte
}

var errPromise = errors.New("a promise that cannot be read")

// readPromise reads one promise that appendPromises has written. c.Bad: the text is damaged.
func readPromise(c *wire.Cursor) (x stored) {
	x.run, x.service = string(c.Bytes()), string(c.Bytes())
	copy(x.trace[:], c.Take(uint64(len(x.trace))))
	copy(x.window.Span[:], c.Take(uint64(len(x.window.Span))))
	x.window.Start, x.window.End, x.window.Number = c.Varint(), c.Varint(), c.Varint()
	x.window.Kind, x.flags = facts.WindowKind(c.Byte()), c.Byte()
	return x
}

const (
	rangeKey   = "range"
	mostChunks = 1 << 20 // of a range that can be used: a larger range is damage
)

// open opens the storage extension id for the processor owner. Without an id (nil) the storage keeps nothing.
func (s *promises) open(ctx context.Context, host component.Host, id *component.ID, owner component.ID) (err error) {
	s.unsent, s.keeps = map[int64]int{}, id != nil
	s.store, err = storageclient.Open(ctx, host, id, component.KindProcessor, owner, "promises")
	return err
}

func (s *promises) close(ctx context.Context) error { return s.store.Close(ctx) }

func chunkKey(chunk int64) string { return "chunk-" + strconv.FormatInt(chunk, 10) }

// promise stores the promises of a batch as a new chunk, before the batch is sent. Promises that cannot be stored are stored with those of the next batch. The
// spans are promised anyway, since a span sent without its parent would differ when repeated. If a crash comes first, most likely the positions in files are
// not stored either, and the batch is repeated with the promises. p.mu is held.
func (p *stepJoin) promise(ctx context.Context, fresh []promise) {
	if len(fresh) == 0 {
		return
	}
	s := &p.promises
	chunk := s.to
	s.to++
	list := append(s.moveUnstored(chunk), fresh...)
	s.unsent[chunk] += len(list) // +=, not =: reader.promise may have counted down already
	err := storageclient.Write(ctx, s.store, storage.SetOperation(chunkKey(chunk), appendPromises(nil, list)), storage.SetOperation(rangeKey, s.encodeRange()))
	if err == nil {
		s.unstored, s.failing = nil, false
		return
	}
	s.unstored = list
	if ctx.Err() == nil {
		s.logFailure(p, err)
	}
}

// logFailure logs a failure of the storage, once until promises can be stored again.
func (s *promises) logFailure(p *stepJoin, err error) {
	if !s.failing {
		p.set.Logger.Warn("Storage keeps nothing: a crash before it does may leave spans below a root that nobody sends, or have some sent again with less in them",
			zap.Error(err))
		s.failing = true
	}
}

// moveUnstored assigns the promises that the storage has refused to another chunk, and returns them. Promises kept meanwhile are left out.
func (s *promises) moveUnstored(chunk int64) (list []promise) {
	for _, x := range s.unstored {
		if x.group.Chunk >= 0 {
			s.unsent[x.group.Chunk]--
			x.group.Chunk = chunk
			list = append(list, x)
		}
	}
	return list
}

// encodeRange returns the stored form of the range of chunks.
func (s *promises) encodeRange() []byte { return []byte(fmt.Sprintf("%d %d", s.from, s.to)) }

// markKept counts the promises of groups as kept, once their spans are accepted. deletable: at least one chunk has no open promise.
func (s *promises) markKept(closed []*facts.Group) (deletable bool) {
	for _, g := range closed {
		if g.Chunk >= 0 {
			s.unsent[g.Chunk]--
			g.Chunk = -1
		}
	}
	for _, n := range s.unsent {
		deletable = deletable || n <= 0
	}
	return deletable
}

// deleteKept deletes the chunks without an open promise, and moves the start of the range to the oldest chunk with one.
func (s *promises) deleteKept(ctx context.Context) {
	var ops []*storage.Operation
	var done []int64 // the deleted chunks
	from := s.to
	for chunk, n := range s.unsent {
		if n > 0 {
			from = min(from, chunk)
			continue
		}
		ops, done = append(ops, storage.DeleteOperation(chunkKey(chunk))), append(done, chunk)
	}
	before := s.from
	s.from = from
	if err := storageclient.Write(ctx, s.store, append(ops, storage.SetOperation(rangeKey, s.encodeRange()))...); err != nil {
		s.from = before // after a crash the roots are sent once more, with the same ids; otherwise the next deletion includes these
		return
	}
	for _, chunk := range done {
		delete(s.unsent, chunk)
	}
}

// restore restores the state of the last process: the facts (journal), and the promises, whose groups are opened again. A group that the journal does not know
// is partial: every fact but the promise is lost.
func (p *stepJoin) restore(ctx context.Context) error {
	s := &p.promises
	now, n := p.now(), 0
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.restoreJournal(ctx, now)
	if err != nil {
		return err
	}
	// The promises, chunk by chunk.
	b, err := s.store.Get(ctx, rangeKey)
	if err != nil || len(b) == 0 {
		return err
	}
	if _, err := fmt.Sscanf(string(b), "%d %d", &s.from, &s.to); err != nil || s.from < 0 || s.to-s.from > mostChunks {
		s.from, s.to = 0, 0
		return fmt.Errorf("%w: its range is %q", errPromise, b)
	}
	for chunk := s.from; chunk < s.to; chunk++ {
		b, err := s.store.Get(ctx, chunkKey(chunk))
		if err != nil {
			return err
		}
		if len(b) > 0 { // the chunk exists, and is deleted even if none of its promises can be read
			s.unsent[chunk] = 0
		}
		for c := (wire.Cursor{Rest: b}); len(c.Rest) > 0; {
			x := readPromise(&c)
			if c.Bad {
				break
			}
			r := p.run(x.run, now)
			_, known := r.Groups[x.trace] // by the journal, or by an earlier promise (Restored)
			g := r.Group(x.trace, x.service)
			g.Promised = g.Promised || x.flags&promisedRoot != 0
			g.ByID = g.ByID || x.flags&promisedByID != 0
			g.Last = now
			if !known || g.Restored {
				g.SetPartial(spans.PartialRestart)
				r.Restore(g, x.window, x.flags&promisedFunction != 0, now)
			}
			if g.Chunk >= 0 { // an earlier chunk has the group too: its window only, or its write had failed and reached the disk all the same
				s.unsent[g.Chunk]--
			}
			g.Chunk = chunk // the last chunk promises the most
			s.unsent[chunk]++
			n++
		}
	}
	if n > 0 {
		p.set.Logger.Info("What the last process had promised to traces is sent by this one, without what only that one knew", zap.Int("traces", n))
	}
	return nil
}
