package stepjoinprocessor

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/internal/storageclient"
	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
	"github.com/trainbridge/trainbridge/spans"
)

// journal stores the facts of each batch before the batch leaves: the process after a crash has the last process's facts, also of accepted batches that are not
// repeated. An entry is deleted once no open window can need it. See docs/reference/adr/0026.
type journal struct {
	to       int64   // the number of the next entry
	entries  []entry // the stored entries, in order
	bytes    int64   // of the entries
	unstored []byte  // refused by the storage: written with the next entry
	ends     ends    // of unstored
	needs    map[string]need
}

// ends are, by run, the latest end of an entry's facts, ns.
type ends map[string]int64

func (e ends) add(run string, end int64) { e[run] = max(e[run], end) }

type entry struct {
	number int64
	bytes  int64
	at     time.Time
	ends   ends
}

// need is the range of facts that the open windows of a run may need: facts that end after start, and entries from a number on.
type need struct {
	start, entry int64
	open         bool
}

// and adds the needs of the windows of a group.
func (n need) and(g *facts.Group) need {
	if !n.open {
		n = need{math.MaxInt64, math.MaxInt64, true}
	}
	n.entry = min(n.entry, g.Entry)
	if g.End != 0 {
		n.start = min(n.start, g.Start)
	}
	return n
}

const (
	journalKey     = "journal"       // the numbers of the stored entries, and their form
	stateKey       = "journal-state" // of the runs, as the deleted entries left the state
	journalVersion = 1
	mostEntries    = 1 << 20
)

func entryKey(n int64) string { return "facts-" + strconv.FormatInt(n, 10) }

func limits(from, to int64) *storage.Operation {
	return storage.SetOperation(journalKey, fmt.Appendf(nil, "%d %d %d", journalVersion, from, to))
}

func (j *journal) from() int64 {
	if len(j.entries) > 0 {
		return j.entries[0].number
	}
	return j.to
}

// The facts of an entry.
const (
	factPlace  = iota // where the batch came from
	factRun           // run of the following facts
	factSource        // a source has reached a time
	factWatermark
	factWhole
	factStage
	factCall // of a pass without a time
	factComm // a communicator was in use
	factSpan
)

// The flags of a factSpan.
const (
	spanWindow = 1 << iota
	spanOwn
	spanPromised
	spanUnplaced
	spanByID
	spanShared
)

// write appends a fact to the entry of the batch: the kind, and the bytes of appended.
func (r *reader) write(kind byte, end int64, appended func(b []byte) []byte) {
	if !r.p.promises.keeps {
		return
	}
	r.ends.add(r.run.ID, end)
	if !r.replays {
		r.log = appended(append(r.log, kind))
	}
}

// writeSpan appends the fact of a span.
func (r *reader) writeSpan(f *fact, byID bool) {
	if !r.p.promises.keeps {
		return
	}
	end := f.leaf.End
	if f.leaf.Flags.Has(facts.Timeless) {
		end = 0
	}
	r.write(factSpan, end, func(b []byte) []byte {
		flags := byte(0)
		for i, is := range [...]bool{f.isWindow, f.own, f.promised, r.unplaced, byID, f.shared} {
			if is {
				flags |= 1 << i
			}
		}
		b = r.run.AppendLeaf(wire.AppendBytes(append(b, flags), r.res.Service), &f.leaf)
		if f.isWindow {
			b = f.window.Append(b)
		}
		if r.unplaced {
			b = r.run.AppendUnplaced(b, &f.unplaced)
		}
		if f.shared {
			b = f.shares.Append(b)
		}
		return b
	})
}

// writePlace appends where the batch comes from.
func (r *reader) writePlace() {
	if r.p.promises.keeps && r.place.partition != "" {
		r.log = binary.AppendVarint(wire.AppendBytes(append(r.log, factPlace), r.place.partition), r.place.offset+1)
	}
}

// record stores the facts of a batch. p.mu is held.
func (p *stepJoin) record(ctx context.Context, r *reader) {
	j := &p.journal
	if !p.promises.keeps || len(r.log) == 0 && len(j.unstored) == 0 {
		return
	}
	all := slices.Concat(j.unstored, r.log)
	for run, end := range j.ends {
		r.ends.add(run, end)
	}
	err := storageclient.Write(ctx, p.promises.store, storage.SetOperation(entryKey(j.to), all), limits(j.from(), j.to+1))
	if err != nil {
		j.unstored, j.ends = all, maps.Clone(r.ends)
		if int64(len(all)) > p.cfg.MaxBytes {
			p.lose(j.ends)
			j.unstored, j.ends = nil, nil
		}
		if ctx.Err() == nil {
			p.promises.fails(p, err)
		}
		return
	}
	j.unstored, j.ends = nil, nil
	j.keep(int64(len(all)), maps.Clone(r.ends), r.now)
}

// keep counts the next entry as stored.
func (j *journal) keep(bytes int64, of ends, now time.Time) {
	j.entries = append(j.entries, entry{j.to, bytes, now, of})
	j.bytes += bytes
	j.to++
}

// lose records facts that the process after a crash will not have, by their ends.
func (p *stepJoin) lose(of ends) {
	for id, end := range of {
		if r := p.runs[id]; r != nil {
			r.Gone = max(r.Gone, end)
		}
	}
}

// needed says whether an open window may need an entry.
func (p *stepJoin) needed(e *entry) bool {
	for id, end := range e.ends {
		r := p.runs[id]
		if r == nil {
			continue
		}
		need := p.journal.needs[id]
		if end > r.Told || need.open && (need.entry <= e.number || need.start-slack < end) {
			return true
		}
	}
	return false
}

// trim deletes the entries that no window needs, the oldest beyond MaxBytes, and entries older than Keep. p.mu is held.
func (p *stepJoin) trim(ctx context.Context, now time.Time) {
	j := &p.journal
	n, bytes := 0, j.bytes
	for ; n < len(j.entries); n++ {
		e := &j.entries[n]
		if bytes <= p.cfg.MaxBytes && now.Sub(e.at) < p.cfg.Keep && p.needed(e) {
			break
		}
		bytes -= e.bytes
	}
	if n == 0 {
		return
	}
	ops := []*storage.Operation{nil, nil}
	for i := range j.entries[:n] {
		p.lose(j.entries[i].ends)
		ops = append(ops, storage.DeleteOperation(entryKey(j.entries[i].number)))
	}
	j.entries = slices.Delete(j.entries, 0, n)
	j.bytes = bytes
	ops[0], ops[1] = limits(j.from(), j.to), storage.SetOperation(stateKey, p.state())
	if err := storageclient.Write(ctx, p.promises.store, ops...); err != nil && ctx.Err() == nil {
		p.promises.fails(p, err)
	}
}

// state is the read offsets of the partitions, and the state of the runs as a whole.
func (p *stepJoin) state() (b []byte) {
	b = binary.AppendUvarint(b, uint64(len(p.places)))
	for partition, r := range p.places {
		b = binary.AppendVarint(wire.AppendBytes(b, partition), r.next)
	}
	for id, r := range p.runs {
		b = binary.AppendVarint(wire.AppendBytes(b, id), r.Gone)
		b = r.AppendState(b)
	}
	return b
}

// restoreJournal restores the facts of the last process.
func (p *stepJoin) restoreJournal(ctx context.Context, now time.Time) error {
	j, store := &p.journal, p.promises.store
	if !p.promises.keeps {
		return nil
	}
	b, err := store.Get(ctx, journalKey)
	if err != nil || len(b) == 0 {
		return err
	}
	var version int
	var from, to int64
	_, err = fmt.Sscanf(string(b), "%d %d %d", &version, &from, &to)
	if err != nil || version != journalVersion || from < 0 || to < from || to-from > mostEntries {
		return fmt.Errorf("%w: the range of its facts is %q", errPromise, b)
	}
	b, err = store.Get(ctx, stateKey)
	if err != nil {
		return err
	}
	c := wire.Cursor{Rest: b}
	if len(b) > 0 {
		for range c.Count(2) {
			partition := string(c.Bytes())
			p.places.read(partition, c.Varint(), now)
		}
	}
	for len(c.Rest) > 0 {
		r := p.run(string(c.Bytes()), now)
		gone := c.Varint()
		r.ReadState(&c, now)
		if c.Bad {
			return fmt.Errorf("%w: the state of its runs", errPromise)
		}
		r.Gone = gone
		r.Loses(gone-1, spans.PartialRestart) // a fact that ends where a step begins is of the step before
	}
	for j.to = from; j.to < to; {
		b, err = store.Get(ctx, entryKey(j.to))
		if err != nil {
			return err
		}
		r := &reader{p: p, now: now, ends: ends{}, replays: true}
		if !r.replay(b) {
			p.set.Logger.Warn("Some of what the last process knew of steps cannot be read", zap.Int64("entry", j.to))
		}
		j.keep(int64(len(b)), r.ends, now)
	}
	for _, r := range p.runs {
		for _, g := range r.Groups {
			g.Chunk = -1 // promises are restored by themselves
		}
	}
	clear(p.promises.unsent)
	return nil
}

// replay takes the facts of an entry.
func (r *reader) replay(b []byte) bool {
	c := wire.Cursor{Rest: b}
	for len(c.Rest) > 0 {
		kind := c.Byte()
		if kind > factRun && r.run == nil {
			return false
		}
		switch kind {
		case factPlace:
			partition := string(c.Bytes())
			r.p.places.read(partition, c.Varint(), r.now)
		case factRun:
			r.run, r.group = r.p.run(string(c.Bytes()), r.now), nil
			r.run.Entry = r.p.journal.to
			r.ends.add(r.run.ID, 0)
		case factSource:
			name := string(c.Bytes())
			r.run.Advance(name, c.Varint(), r.now)
		case factWatermark:
			w := facts.ReadWatermark(&c)
			r.run.Watermark(&w)
		case factWhole:
			r.run.ReadWhole(&c)
		case factStage:
			r.res.Service = string(c.Bytes())
			if trace, s := facts.ReadTrace(&c), facts.ReadStage(&c); !c.Bad {
				r.stage(trace, s)
			}
		case factCall:
			if g, u := r.run.Groups[facts.ReadTrace(&c)], r.run.ReadUnplaced(&c); g != nil {
				r.run.AddUnplaced(g, u)
			}
		case factComm:
			r.run.Communicates(r.run.Number(string(c.Bytes())), c.Varint(), c.Varint(), c.Varint())
		case factSpan:
			r.replaySpan(&c)
		default:
			return false
		}
		if c.Bad {
			return false
		}
	}
	return true
}

func (r *reader) replaySpan(c *wire.Cursor) {
	flags := c.Byte()
	r.res.Service = string(c.Bytes())
	f := fact{
		isWindow: flags&spanWindow != 0, own: flags&spanOwn != 0, promised: flags&spanPromised != 0, shared: flags&spanShared != 0, leaf: r.run.ReadLeaf(c),
	}
	if f.isWindow {
		f.window = facts.ReadWindow(c, &f.leaf)
	}
	r.unplaced = flags&spanUnplaced != 0
	if r.unplaced {
		f.unplaced = r.run.ReadUnplaced(c)
	}
	if f.shared {
		f.shares = facts.ReadShares(c)
	}
	if !c.Bad {
		r.keep(&f, flags&spanByID != 0)
	}
}
