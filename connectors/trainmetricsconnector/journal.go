package trainmetricsconnector

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/internal/storageclient"
	"github.com/trainbridge/trainbridge/internal/wire"
)

// The stored state: each group of series under a key of its own; the ids of the spans counted last, in a ring of chunks, the last of which grows by parts; and
// the number of each. A batch stores its changed groups and its ids in one write: the ids of a span and its values are both stored or both not.
const (
	stateKey = "state"

	// storedForm is raised with every change of the stored form, but for changes in layout.
	storedForm = 6

	chunkIDs  = 1 << 15 // ids of a full chunk
	chunks    = 17      // of the ring. The last chunk is not full: at least 2¹⁹ ids, as many as without a restart
	mostParts = 64      // of a chunk, before it is stored whole

	mostGroups = 1 << 20 // of a state that can be used: a larger number is damage
)

// journal is the stored state of a store, and the changes not stored yet.
type journal struct {
	keeps   bool     // with a storage
	taken   bool     // ids were restored, and no batch has come yet
	changed []*group // not stored yet
	counted []uint64 // ids of spans, not stored yet

	layout int64    // of the stored state: see layoutOf
	groups int      // number of keys of groups
	free   []string // keys of deleted groups
	ring   ring
	runs   int // slots of runs when restored
}

// ring is how far the ids are stored, in chunks under keys that are used again in turn.
type ring struct {
	chunk  int64    // number of the chunk that is not full
	parts  int      // number of its stored parts
	recent []uint64 // its ids
}

// note adds the id of a counted span to the next write.
func (j *journal) note(id uint64) {
	if j.keeps && id != 0 {
		j.counted = append(j.counted, id)
	}
}

// markChanged marks a group as changed since it was stored.
func (s *store) markChanged(g *group) {
	if s.journal.keeps && !g.changed {
		g.changed = true
		s.journal.changed = append(s.journal.changed, g)
	}
}

// write is one write to the storage, and what is needed to take the write back if it fails.
type write struct {
	ops     []*storage.Operation
	groups  []*group      // stored
	ids     []uint64      // stored
	deleted []string      // keys of groups that are gone
	before  ring          // before the write
	runs    []*runWrite   // stored
	gone    []storedParts // runs that are deleted
}

// changes returns the next write, with everything that has changed since the last; nil: nothing. The changes count as stored from now on, so the caller must
// call writeStored or writeFailed.
func (s *store) changes() *write {
	j := &s.journal
	if len(j.changed)+len(j.counted) == 0 && !s.accounts.hasChanges() {
		return nil
	}
	w := &write{groups: j.changed, ids: j.counted, before: j.ring}
	j.changed, j.counted = nil, nil
	for _, g := range w.groups {
		g.changed = false
		switch {
		case !g.gone:
			if g.at == "" {
				g.at = j.newKey()
			}
			w.ops = append(w.ops, storage.SetOperation(g.at, s.encodeGroup(g)))
		case g.at != "":
			w.ops = append(w.ops, storage.DeleteOperation(g.at))
			w.deleted = append(w.deleted, g.at)
		}
	}
	j.ring.add(w)
	s.accounts.changes(w)
	state := &codec{}
	s.codeState(state)
	w.ops = append(w.ops, storage.SetOperation(stateKey, state.b))
	return w
}

// writeStored is called after a successful write: keys of deleted groups may be used again.
func (s *store) writeStored(w *write) { s.journal.free = append(s.journal.free, w.deleted...) }

// writeFailed returns a failed write to the changes, for the next write. Of the ids the latest are kept, as many as the ring has room for.
func (s *store) writeFailed(w *write) {
	for _, g := range w.groups {
		s.markChanged(g)
	}
	s.accounts.takeBackWrite(w)
	j := &s.journal
	j.ring = w.before
	j.counted = append(w.ids, j.counted...)
	if more := len(j.counted) - chunks*chunkIDs; more > 0 {
		j.counted = slices.Clone(j.counted[more:])
	}
}

// newKey returns a key for a group that was never stored: the key of a deleted group, else a new one.
func (j *journal) newKey() string {
	if n := len(j.free) - 1; n >= 0 {
		key := j.free[n]
		j.free = j.free[:n]
		return key
	}
	j.groups++
	return groupKeyOf(j.groups - 1)
}

func groupKeyOf(i int) string { return "group-" + strconv.Itoa(i) }
func chunkKey(n int64) string { return "ids-" + strconv.FormatInt(n%chunks, 10) }
func partKey(i int) string    { return "part-" + strconv.Itoa(i) }

// add adds the ids of a write to the ring and to the operations of the write: as one more part of the last chunk; or, if the chunk is full or has mostParts
// parts, by storing the whole chunk in place of its parts. After a full chunk the next one begins, in place of the oldest.
func (r *ring) add(w *write) {
	if len(w.ids) == 0 {
		return
	}
	if r.chunk == 0 && r.parts == 0 && len(r.recent) == 0 { // an unusable earlier state may have left one
		w.ops = append(w.ops, storage.DeleteOperation(chunkKey(0)))
	}
	r.recent = append(r.recent, w.ids...)
	if r.parts < mostParts && len(r.recent) < chunkIDs {
		w.ops = append(w.ops, storage.SetOperation(partKey(r.parts), bytesOf(w.ids)))
		r.parts++
		return
	}
	w.ops = append(w.ops, storage.SetOperation(chunkKey(r.chunk), bytesOf(r.recent)))
	for i := range r.parts {
		w.ops = append(w.ops, storage.DeleteOperation(partKey(i)))
	}
	r.parts = 0
	if len(r.recent) >= chunkIDs {
		r.chunk, r.recent = r.chunk+1, nil
		w.ops = append(w.ops, storage.DeleteOperation(chunkKey(r.chunk))) // the oldest
	}
}

// bytesOf returns the stored form of ids.
func bytesOf(ids []uint64) []byte {
	b := make([]byte, 0, 8*len(ids))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	return b
}

// idsOf returns the ids stored by bytesOf.
func idsOf(b []byte) []uint64 {
	ids := make([]uint64, 0, len(b)/8)
	for ; len(b) >= 8; b = b[8:] {
		ids = append(ids, binary.LittleEndian.Uint64(b))
	}
	return ids
}

// layoutOf returns a hash of everything that must not change between storing and restoring: the stored form and the names of the metrics.
func layoutOf() int64 {
	h := xxh3.New()
	_, _ = fmt.Fprintln(h, storedForm)
	for _, m := range metrics {
		_, _ = fmt.Fprintln(h, m.Name)
	}
	return int64(h.Sum64())
}

// codeState passes the numbers under stateKey through a codec: how many groups, chunks and runs are stored. Another layout fails.
func (s *store) codeState(c *codec) {
	j := &s.journal
	if c.num(j.layout) != j.layout {
		c.Fail()
	}
	s.lastFlush = max(s.lastFlush, c.num(s.lastFlush)) // a series must not begin after its last point
	j.groups, j.ring.chunk, j.ring.parts = int(c.num(int64(j.groups))), c.num(j.ring.chunk), int(c.num(int64(j.ring.parts)))
	j.runs = int(c.num(int64(len(s.accounts.slots))))
}

// encodeGroup returns the stored form of a group: resource, family, labels, and its series.
func (s *store) encodeGroup(g *group) []byte {
	c := &codec{}
	if r := g.resource; r != nil {
		c.text(r.key.service)
		c.text(r.key.run)
		c.num(r.longest)
		c.num(int64(g.family))
		g.code(c)
	} else {
		c.text("")
		c.text("")
		c.num(0)
		c.num(overflowFamily)
	}
	(&emitter{s: s, codec: c}).group(g)
	return c.b
}

// overflowFamily is stored in place of the family of a group.
const overflowFamily = -1

// restoreGroup restores the group stored under a key, with its series. Anything that encodeGroup would not have written is an error.
func (s *store) restoreGroup(key string, b []byte) error {
	c := &codec{Cursor: wire.Cursor{Rest: b}, reads: true}
	of := resourceKey{service: c.text(""), run: c.text("")}
	longest := c.num(0)
	var g *group
	switch family := c.num(0); {
	case c.Bad:
	case family >= 0 && family < int64(len(s.adders)):
		g = s.adders[family].restore(s, of, c)
	case family == overflowFamily && s.overflow.at == "":
		g = &s.overflow
	}
	if c.Bad || g == nil {
		return fmt.Errorf("%w: %s", errStored, key)
	}
	g.at = key
	g.noteDuration(longest)
	(&emitter{s: s, codec: c}).group(g)
	if c.Bad || len(c.Rest) > 0 {
		return fmt.Errorf("%w: %s", errStored, key)
	}
	return nil
}

var (
	errStored = errors.New("it was changed")
	errLayout = errors.New("it is of another version")
)

// restore restores the stored state into an empty store: groups with their series, ids of counted spans, and accounts of runs. After an error the store is
// partly restored, and must not be used.
func (s *store) restore(ctx context.Context, from storage.Client, now time.Time) error {
	j := &s.journal
	b, err := from.Get(ctx, stateKey)
	if err != nil || len(b) == 0 {
		return err
	}
	c := &codec{Cursor: wire.Cursor{Rest: b}, reads: true}
	if s.codeState(c); c.Bad {
		return errLayout
	}
	if j.groups < 0 || j.groups > mostGroups || j.ring.chunk < 0 || j.ring.parts < 0 || j.ring.parts > mostParts || j.runs < 0 || j.runs > mostRuns {
		return fmt.Errorf("%w: %s", errStored, stateKey)
	}
	var ops []*storage.Operation
	get := func(key string) { ops = append(ops, storage.GetOperation(key)) }
	for i := range j.groups {
		get(groupKeyOf(i))
	}
	for n := max(0, j.ring.chunk-chunks+1); n <= j.ring.chunk; n++ {
		get(chunkKey(n))
	}
	last := len(ops) - 1 // the chunk that is not full; its parts follow
	for i := range j.ring.parts {
		get(partKey(i))
	}
	if err := from.Batch(ctx, ops...); err != nil {
		return err
	}
	limit := s.room.limit
	s.room.limit = math.MaxInt32 // restored series had room; a lower limit holds only for new ones
	defer func() { s.room.limit = limit }()
	for i, op := range ops {
		switch {
		case i >= j.groups: // chunks and parts
			ids := idsOf(op.Value)
			for _, id := range ids {
				s.seen.Known(id, now.UnixNano())
			}
			if i >= last {
				j.ring.recent = append(j.ring.recent, ids...)
			}
		case len(op.Value) == 0: // a deleted group's key
			j.free = append(j.free, op.Key)
		default:
			if err := s.restoreGroup(op.Key, op.Value); err != nil {
				return err
			}
		}
	}
	s.seen.Early, j.taken = 0, true // ids restored now must not count as ended early by a batch
	return s.restoreRuns(ctx, from)
}

// restoreRuns restores the accounts of runs, slot by slot.
func (s *store) restoreRuns(ctx context.Context, from storage.Client) error {
	get := func(keys ...string) ([][]byte, error) {
		ops := make([]*storage.Operation, len(keys))
		for i, key := range keys {
			ops[i] = storage.GetOperation(key)
		}
		err := from.Batch(ctx, ops...)
		values := make([][]byte, len(keys))
		for i, op := range ops {
			values[i] = op.Value
		}
		return values, err
	}
	for slot := range s.journal.runs {
		head, err := get((&storedParts{slot: slot}).head())
		if err != nil {
			return err
		}
		if err := s.accounts.restoreRun(slot, head[0], get); err != nil {
			return err
		}
	}
	return nil
}

// open opens the storage, if configured, and restores the counts of the last process. If they cannot be used, a warning is logged and counting starts anew.
func (c *trainMetrics) open(ctx context.Context, host component.Host) (err error) {
	if c.cfg.Storage == nil {
		return nil
	}
	c.storage, err = storageclient.Open(ctx, host, c.cfg.Storage, component.KindConnector, c.id, "counts")
	if err != nil {
		return err
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.store.restore(ctx, c.storage, now); err != nil {
		c.logger.Warn("What the last process has counted cannot be used; counters begin anew, and what is read again is counted again", zap.Error(err))
		c.store = newStore(c.cfg, now)
	}
	c.store.journal.keeps = true
	series := 0
	for _, r := range c.store.resources {
		series += r.series
	}
	if series > 0 {
		c.logger.Info("Counters go on where the last process stopped", zap.Int("series", series))
	}
	return nil
}

// save stores all changes, also those of concurrent calls: calls that wait for one write share the next. A failed write is logged once, until a write succeeds.
func (c *trainMetrics) save(ctx context.Context) {
	if c.storage == nil {
		return
	}
	c.saving.Lock()
	defer c.saving.Unlock()
	c.mu.Lock()
	w := c.store.changes()
	c.mu.Unlock()
	if w == nil {
		return
	}
	err := storageclient.Write(context.WithoutCancel(ctx), c.storage, w.ops...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.store.writeStored(w)
		c.failing = false
		return
	}
	c.store.writeFailed(w)
	c.telemetry.ConnectorTrainMetricsStorageFailures.Add(context.WithoutCancel(ctx), 1)
	if !c.failing {
		c.failing = true
		c.logger.Warn("Storage keeps nothing: counting goes on, but a crash before it does would have counters begin where they were stored last", zap.Error(err))
	}
}

// syncStorage flushes the storage to disk. The storage logs its own failures.
func (c *trainMetrics) syncStorage(ctx context.Context) {
	if c.storage == nil {
		return
	}
	if err := storageclient.Sync(context.WithoutCancel(ctx), c.storage); err != nil {
		c.telemetry.ConnectorTrainMetricsStorageFailures.Add(context.WithoutCancel(ctx), 1)
	}
}
