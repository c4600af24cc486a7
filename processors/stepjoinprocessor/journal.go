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
	to       int64           // the number of the next entry
	entries  []entry         // the stored entries, in order
	bytes    int64           // of the entries
	unstored []byte          // refused by the storage: written with the next entry
	ends     ends            // of unstored
	needs    map[string]need // by run, as of the last sweep
}

// ends are, by run, the latest end of an entry's facts, ns.
type ends map[string]int64

func (e ends) add(run string, end int64) { e[run] = max(e[run], end) }

// entry is a stored entry: the facts of one batch.
type entry struct {
	number int64
	bytes  int64
	at     time.Time // when stored
	ends   ends
}

// need is the range of facts that the open windows of a run may need: facts that end after start, and entries from a number on.
type need struct {
	start, entry int64
	open         bool
}

// including returns the need n extended by one more open group: the group's own facts, from the journal entry of its first fact on, and facts of other traces
// that end after the group's start.
func (n need) including(g *facts.Group) need {
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
	journalVersion = 2
	mostEntries    = 1 << 20 // of a range that can be used: a larger range is damage
)

func entryKey(n int64) string { return "facts-" + strconv.FormatInt(n, 10) }

// rangeOperation returns the operation that stores which entries exist: from up to, but not including, to.
func rangeOperation(from, to int64) *storage.Operation {
	return storage.SetOperation(journalKey, fmt.Appendf(nil, "%d %d %d", journalVersion, from, to))
}

// from returns the number of the oldest stored entry.
func (j *journal) from() int64 {
	if len(j.entries) > 0 {
		return j.entries[0].number
	}
	return j.to
}

// The facts of an entry: a byte of the list below, and the values.
const (
	factPlace     = iota // the Kafka partition of the batch, and the offset of the next message
	factRun              // run of the following facts
	factSource           // a source has reached a time
	factWatermark        // of a source of collectives
	factRunState         // the run as a whole has changed
	factStage            // a stage of a TransferQueue call
	factCall             // a call of a pass without a time
	factComm             // a communicator was in use
	factSpan             // a leaf, with the window, the pass without a time and the shares that the flags name
)

// The flags of a factSpan, in the order of writeSpan.
const (
	spanWindow = 1 << iota
	spanOwn
	spanPromised
	spanUnplaced
	spanByID
	spanShared
)

// write appends a fact to the journal entry of the batch: its kind, and the values that appendValues appends. end is when the fact ends, ns: open windows that
// begin earlier may need the fact; 0: no window needs the fact for its time. In a replay nothing is appended, since the fact is stored already; only end
// counts.
func (r *reader) write(kind byte, end int64, appendValues func(b []byte) []byte) {
	if !r.p.promises.keeps {
		return
	}
	r.ends.add(r.run.ID, end)
	if !r.replays {
		r.log = appendValues(append(r.log, kind))
	}
}

// writeSpan appends the fact of a span to the journal entry; byID is as in keep. A fact with made-up times has the end 0: only the group of its own trace needs
// the fact.
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

// writePlace appends the Kafka partition of the batch, and the offset of the next message.
func (r *reader) writePlace() {
	if r.p.promises.keeps && r.place.partition != "" {
		r.log = binary.AppendVarint(wire.AppendBytes(append(r.log, factPlace), r.place.partition), r.place.offset+1)
	}
}

// record stores the facts of a batch as the next journal entry, together with facts that the storage has refused before. Facts refused now wait for the next
// batch; beyond MaxBytes they are given up: windows of the next process that may need them will be partial. p.mu is held.
func (p *stepJoin) record(ctx context.Context, r *reader) {
	j := &p.journal
	nothing := len(r.log) == 0 && len(j.unstored) == 0
	if !p.promises.keeps || nothing {
		return
	}
	all := slices.Concat(j.unstored, r.log)
	for run, end := range j.ends {
		r.ends.add(run, end)
	}
	err := storageclient.Write(ctx, p.promises.store, storage.SetOperation(entryKey(j.to), all), rangeOperation(j.from(), j.to+1))
	if err != nil {
		j.unstored, j.ends = all, maps.Clone(r.ends)
		if int64(len(all)) > p.cfg.MaxBytes {
			p.markGone(j.ends)
			j.unstored, j.ends = nil, nil
		}
		if ctx.Err() == nil {
			p.promises.logFailure(p, err)
		}
		return
	}
	j.unstored, j.ends = nil, nil
	j.countStored(int64(len(all)), maps.Clone(r.ends), r.now)
}

// countStored adds the next entry to the list of stored entries. size is its length in bytes; latest has the latest end of its facts, by run.
func (j *journal) countStored(size int64, latest ends, now time.Time) {
	j.entries = append(j.entries, entry{j.to, size, now, latest})
	j.bytes += size
	j.to++
}

// markGone records in each run up to which end, ns, facts will be missing after a crash. lost has the ends by run.
func (p *stepJoin) markGone(lost ends) {
	for id, end := range lost {
		if r := p.runs[id]; r != nil {
			r.Gone = max(r.Gone, end)
		}
	}
}

// needed reports whether an open or a future window may need a fact of the entry. Future windows begin after the last closed step of the run (ClosedUntil).
func (p *stepJoin) needed(e *entry) bool {
	for id, end := range e.ends {
		r := p.runs[id]
		if r == nil {
			continue
		}
		need := p.journal.needs[id]
		openWindowNeeds := need.open && (need.entry <= e.number || need.start-slack < end)
		if end > r.ClosedUntil || openWindowNeeds {
			return true
		}
	}
	return false
}

// trim deletes the oldest entries, up to the first that a window needs. Needed entries are deleted, too, beyond MaxBytes or when older than Keep. The state of
// the runs is stored with the deletion. p.mu is held.
func (p *stepJoin) trim(ctx context.Context, now time.Time) {
	j := &p.journal
	n, bytes := 0, j.bytes
	for ; n < len(j.entries); n++ {
		e := &j.entries[n]
		fits, recent := bytes <= p.cfg.MaxBytes, now.Sub(e.at) < p.cfg.Keep
		if fits && recent && p.needed(e) {
			break
		}
		bytes -= e.bytes
	}
	if n == 0 {
		return
	}
	for i := range j.entries[:n] {
		p.markGone(j.entries[i].ends)
	}
	// The state has what the deletion loses: one write, so that the range never moves on without the state. Numbers have no gaps.
	first := j.entries[n-1].number + 1 // of the remaining entries
	ops := []*storage.Operation{rangeOperation(first, j.to), storage.SetOperation(stateKey, p.encodeState())}
	for i := range j.entries[:n] {
		ops = append(ops, storage.DeleteOperation(entryKey(j.entries[i].number)))
	}
	if err := storageclient.Write(ctx, p.promises.store, ops...); err != nil {
		if ctx.Err() == nil {
			p.promises.logFailure(p, err)
		}
		return // the entries stay in the range, and the next sweep tries again
	}
	j.entries = slices.Delete(j.entries, 0, n)
	j.bytes = bytes
}

// encodeState returns, in stored form, the state that trim keeps of deleted entries: the read offset of each Kafka partition, and for each run the end of the
// missing facts (Gone) and the state of facts.Run.AppendState.
func (p *stepJoin) encodeState() (b []byte) {
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

// restoreJournal restores the facts of the last process, if any: first the state that the deleted entries left, then the entries one after another.
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
	// The partitions, and the state of the runs.
	b, err = store.Get(ctx, stateKey)
	if err != nil {
		return err
	}
	c := wire.Cursor{Rest: b}
	if len(b) > 0 {
		for range c.Count(2) {
			partition := string(c.Bytes())
			p.places.advance(partition, c.Varint(), now)
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
		r.MarkLost(gone-1, spans.PartialRestart) // a fact that ends where a step begins is of the step before
	}
	// The entries.
	for j.to = from; j.to < to; { // keep counts j.to up
		b, err = store.Get(ctx, entryKey(j.to))
		if err != nil {
			return err
		}
		r := &reader{p: p, now: now, ends: ends{}, replays: true}
		if !r.replay(b) {
			p.set.Logger.Warn("Some of what the last process knew of steps cannot be read", zap.Int64("entry", j.to))
		}
		j.countStored(int64(len(b)), r.ends, now)
	}
	// The replay has made promises anew: they are forgotten, because restore reads the stored ones.
	for _, r := range p.runs {
		r.Opened = true
		for _, g := range r.Groups {
			g.Chunk = -1
		}
	}
	clear(p.promises.unsent)
	return nil
}

// replay applies the facts of a stored entry, in the order of writing. It returns false if the entry is damaged; facts before the damage stay applied.
func (r *reader) replay(b []byte) bool {
	c := wire.Cursor{Rest: b}
	for len(c.Rest) > 0 {
		kind := c.Byte()
		if kind > factRun && r.run == nil { // kinds after factRun belong to a run
			return false
		}
		switch kind {
		case factPlace:
			partition := string(c.Bytes())
			r.p.places.advance(partition, c.Varint(), r.now)
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
		case factRunState:
			r.run.ReadRunState(&c)
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

// replaySpan applies a fact that writeSpan has written.
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
