package stepjoinprocessor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/internal/storageclient"
	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
	"github.com/trainbridge/trainbridge/spans"
)

// promises stores what is still to be sent, for a process that follows a crash: roots of which tops are children already, and steps and passes, which say then
// that what happened in them is not known. What is promised by one batch is a chunk; it is deleted when all of it was sent.
type promises struct {
	store    storage.Client
	from, to int64         // the chunks that may be there
	unsent   map[int64]int // how much of a chunk is not sent yet
	keeps    bool          // there is a storage
	unstored []promise     // what the storage did not take
	failing  bool          // that was said
}

// promise is what is to be sent to a group.
type promise struct {
	run    *facts.Run
	group  *facts.Group
	window facts.Window // the first of its tops
	flags  byte
}

// The flags of a promise that is stored.
const (
	promisedRoot = 1 << iota
	promisedFunction
	promisedByID
)

// promise notes that a group gets a root, or that its window gets a breakdown.
func (r *reader) promise(g *facts.Group, f *fact) {
	x := promise{r.run, g, f.window, 0}
	switch {
	case !f.isWindow:
		x.window = facts.Window{Start: f.leaf.Start, End: f.leaf.End, Number: -1}
	case f.window.Kind == facts.Function:
		x.flags = promisedFunction
	case !f.promised && !r.p.promises.keeps:
		return
	}
	if f.promised {
		x.flags |= promisedRoot
	} else if x.window.Span.IsEmpty() || x.flags != 0 {
		return // the shares of a call stand on it
	}
	if g.Chunk >= 0 { // its window alone was promised
		r.p.promises.unsent[g.Chunk]--
	}
	g.Chunk, g.Promised = r.p.promises.to, f.promised
	r.fresh = append(r.fresh, x)
}

func appendPromises(b []byte, list []promise) []byte {
	for _, x := range list {
		b = wire.AppendBytes(b, x.run.ID)
		b = wire.AppendBytes(b, x.group.Service)
		b = append(b, x.group.ID[:]...)
		b = append(b, x.window.Span[:]...)
		for _, n := range [...]int64{x.window.Start, x.window.End, x.window.Number} {
			b = binary.AppendVarint(b, n)
		}
		if x.group.ByID {
			x.flags |= promisedByID
		}
		b = append(b, byte(x.window.Kind), x.flags)
	}
	return b
}

// stored is a promise as the storage has it.
type stored struct {
	run, service string
	trace        pcommon.TraceID
	window       facts.Window
	flags        byte
}

var errPromise = errors.New("a promise that cannot be read")

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
	runsKey    = "runs" // how far in time the runs have come
	mostChunks = 1 << 20
)

func (s *promises) open(ctx context.Context, host component.Host, id *component.ID, of component.ID) (err error) {
	s.unsent, s.keeps = map[int64]int{}, id != nil
	s.store, err = storageclient.Open(ctx, host, id, component.KindProcessor, of, "promises")
	return err
}

func (s *promises) close(ctx context.Context) error { return s.store.Close(ctx) }

func key(chunk int64) string { return "chunk-" + strconv.FormatInt(chunk, 10) }

// promise stores what a batch promises, before the batch leaves. What cannot be stored is promised all the same, and stored with the next: a span that came
// without its parent would be another one when it comes again. Where a crash comes first, the positions in files are most likely not stored either, so that
// the batch comes again and with it the promise. It is called with p.mu held.
func (p *stepJoin) promise(ctx context.Context, fresh []promise) {
	if len(fresh) == 0 {
		return
	}
	s := &p.promises
	chunk := s.to
	s.to++
	list := append(s.moved(chunk), fresh...)
	s.unsent[chunk] += len(list) // below 0 before, where a group is in the list twice
	err := storageclient.Write(ctx, s.store, storage.SetOperation(key(chunk), appendPromises(nil, list)), storage.SetOperation(rangeKey, s.limits()))
	if err == nil {
		s.unstored, s.failing = nil, false
		return
	}
	if s.unstored = list; ctx.Err() == nil {
		s.fails(p, err)
	}
}

// fails says once that nothing is kept.
func (s *promises) fails(p *stepJoin, err error) {
	if !s.failing {
		p.set.Logger.Warn("Storage keeps nothing: a crash before it does may leave spans below a root that nobody sends, or have some sent again with less in them",
			zap.Error(err))
		s.failing = true
	}
}

// moved is what could not be stored, and is still to be sent: it is of another chunk now.
func (s *promises) moved(chunk int64) (list []promise) {
	for _, x := range s.unstored {
		if x.group.Chunk >= 0 {
			s.unsent[x.group.Chunk]--
			x.group.Chunk = chunk
			list = append(list, x)
		}
	}
	return list
}

func (s *promises) limits() []byte { return []byte(fmt.Sprintf("%d %d", s.from, s.to)) }

// sent notes that what groups were promised was sent. It says whether there are chunks of which all was.
func (s *promises) sent(closed []*facts.Group) (over bool) {
	for _, g := range closed {
		if g.Chunk >= 0 {
			s.unsent[g.Chunk]--
			g.Chunk = -1
		}
	}
	for _, n := range s.unsent {
		over = over || n <= 0
	}
	return over
}

// kept deletes the chunks of which all was sent.
func (s *promises) kept(ctx context.Context) {
	var ops []*storage.Operation
	var done []int64
	from := s.to
	for chunk, n := range s.unsent {
		if n > 0 {
			from = min(from, chunk)
			continue
		}
		ops, done = append(ops, storage.DeleteOperation(key(chunk))), append(done, chunk)
	}
	before := s.from
	s.from = from
	if err := storageclient.Write(ctx, s.store, append(ops, storage.SetOperation(rangeKey, s.limits()))...); err != nil {
		s.from = before // after a crash the roots are sent once more, with the same ids; else this is tried with the next
		return
	}
	for _, chunk := range done {
		delete(s.unsent, chunk)
	}
}

// restore opens again the groups whose roots the last process had promised. They are partial: what else it knew is gone.
func (p *stepJoin) restore(ctx context.Context) error {
	s := &p.promises
	now, n := p.now(), 0
	p.mu.Lock()
	defer p.mu.Unlock()
	known, err := p.restoreJournal(ctx, now)
	if err == nil && !known {
		err = p.restoreRuns(ctx, now)
	}
	if err != nil {
		return err
	}
	b, err := s.store.Get(ctx, rangeKey)
	if err != nil || len(b) == 0 {
		return err
	}
	if _, err := fmt.Sscanf(string(b), "%d %d", &s.from, &s.to); err != nil || s.from < 0 || s.to-s.from > mostChunks {
		s.from, s.to = 0, 0
		return fmt.Errorf("%w: its range is %q", errPromise, b)
	}
	for chunk := s.from; chunk < s.to; chunk++ {
		b, err := s.store.Get(ctx, key(chunk))
		if err != nil {
			return err
		}
		if len(b) > 0 {
			s.unsent[chunk] = 0
		}
		for c := (wire.Cursor{Rest: b}); len(c.Rest) > 0; {
			x := readPromise(&c)
			if c.Bad {
				break
			}
			r := p.run(x.run, now)
			_, known := r.Groups[x.trace]
			g := r.Group(x.trace, x.service)
			g.Promised, g.ByID, g.Last = g.Promised || x.flags&promisedRoot != 0, g.ByID || x.flags&promisedByID != 0, now
			if !known || g.Restored {
				g.Lacks(spans.PartialRestart)
				r.Restore(g, x.window, x.flags&promisedFunction != 0, now)
			}
			if g.Chunk < 0 { // else another chunk has it too, which was thought lost
				g.Chunk = chunk
				s.unsent[chunk]++
			}
			n++
		}
	}
	if n > 0 {
		p.set.Logger.Info("What the last process had promised to traces is sent by this one, without what only that one knew", zap.Int("traces", n))
	}
	return nil
}

// restoreRuns notes how far the runs had come: windows that begin before lack what only the last process knew.
func (p *stepJoin) restoreRuns(ctx context.Context, now time.Time) error {
	b, err := p.promises.store.Get(ctx, runsKey)
	if err != nil {
		return err
	}
	for c := (wire.Cursor{Rest: b}); len(c.Rest) > 0; {
		id, until := string(c.Bytes()), c.Varint()
		if c.Bad {
			break
		}
		r := p.run(id, now)
		r.Loses(until, spans.PartialRestart)
	}
	return nil
}
