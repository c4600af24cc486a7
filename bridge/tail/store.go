package tail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
)

// load reads all checkpoints. A damaged checkpoint is counted, and its stream begins again; an error of the storage is returned, since continuing would read
// everything twice.
func (t *Tailer) load(ctx context.Context) error {
	w := &t.sweeper
	b, err := t.store.Get(ctx, checkpoint.IndexKey)
	if err != nil {
		return fmt.Errorf("'storage': cannot read positions: %w", err)
	}
	if len(b) == 0 {
		return nil
	}
	keys, err := checkpoint.DecodeIndex(b)
	if err != nil {
		// Without the index the sweep asks for the checkpoint of each path that it finds (loadUnindexed).
		t.badCheckpoint(checkpoint.IndexKey, err)
		w.unindexed, w.indexDirty = true, true
		return nil
	}
	for part := range slices.Chunk(keys, 500) { // one after another, to bound the memory of a Batch
		ops := make([]*storage.Operation, len(part))
		for i, k := range part {
			ops[i] = storage.GetOperation(k)
		}
		if err := t.store.Batch(ctx, ops...); err != nil {
			return fmt.Errorf("'storage': cannot read positions: %w", err)
		}
		for _, op := range ops {
			w.keepCheckpoint(op.Key, op.Value)
		}
	}
	return nil
}

// keepCheckpoint keeps a checkpoint from the storage until its path's stream is restored. A damaged one is counted and left out. A file that was assigned by
// its content stays with this Tailer.
func (w *sweeper) keepCheckpoint(key string, b []byte) {
	c, err := checkpoint.Decode(b)
	if err == nil && checkpoint.Key(c.Path) != key { // of another path
		err = checkpoint.ErrDamaged
	}
	if err != nil {
		w.t.badCheckpoint(key, err)
		w.indexDirty = true // the index still names the checkpoint
		return
	}
	w.saved[c.Path] = c
	if c.ByContent && len(w.shared.Globs) > 0 {
		w.t.set.Sorter.claimSaved(w.t, c.Path, w.t.now())
	}
}

// loadUnindexed reads the checkpoint of one path into saved, if there is one: the index, which lists the checkpoints, was lost.
func (w *sweeper) loadUnindexed(path string) {
	key := checkpoint.Key(path)
	if b, err := w.t.store.Get(context.Background(), key); err == nil && len(b) > 0 {
		w.keepCheckpoint(key, b)
	}
}

// badCheckpoint counts a checkpoint that cannot be used, and warns.
func (t *Tailer) badCheckpoint(key string, err error) {
	t.counts.bump(&t.counts.ckptErrs, 1)
	t.warn("checkpoint", "A stored position cannot be used; its files are read from 'start_at' again", zap.String("key", key), zap.Error(err))
}

// storeLoop stores positions once a second until ctx ends, and after a file was taken up: a crash within that second must know the path's file. It runs beside
// the sweeper, which must not wait for a disk.
func (t *Tailer) storeLoop(ctx context.Context) {
	tick := time.NewTicker(checkpointGap)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-t.early:
		}
		_ = t.storeAll(ctx, false)
	}
}

// storeAll stores the checkpoints of all changed streams, deletes those of forgotten streams, and stores the index if streams were added or forgotten, all in
// one write. After an error, returned, all are stored again some seconds later. last: at shutdown, without regard to any delay.
func (t *Tailer) storeAll(ctx context.Context, last bool) error {
	if t.cfg.Storage == nil {
		return nil
	}
	t.storeMu.Lock()
	defer t.storeMu.Unlock()
	if !last && t.now().Before(t.nextStore) {
		return nil
	}
	t.sweepMu.Lock()
	thaw := t.policy.freeze(t) // before a new stream can come whose lines are accepted together with lines of the streams known now
	w := &t.sweeper
	var streams []*Stream // all, if any has changed: snapshots leaves out those that have not
	if t.dirty.Swap(false) || last || w.indexDirty || len(w.forgotten) > 0 {
		streams = slices.Collect(maps.Values(w.streams))
	}
	forgotten, indexed := w.forgotten, w.indexDirty
	w.forgotten, w.indexDirty = nil, false
	var ops []*storage.Operation
	for _, path := range forgotten {
		if w.streams[path] == nil { // else the path has a stream again
			ops = append(ops, storage.DeleteOperation(checkpoint.Key(path)))
		}
	}
	if indexed {
		keys := make([]string, len(streams))
		for i, s := range streams {
			keys[i] = checkpoint.Key(s.path)
		}
		slices.Sort(keys)
		ops = append(ops, storage.SetOperation(checkpoint.IndexKey, checkpoint.EncodeIndex(keys)))
	}
	t.sweepMu.Unlock()
	ops, taken := t.snapshots(ops, streams, last)
	thaw()
	if len(ops) == 0 {
		return nil
	}
	// Only storeMu is held while the disk works.
	err := t.store.Batch(ctx, ops...)
	if err == nil {
		if t.unstored {
			t.log.Info("Positions are stored again")
		}
		t.unstored = false
		noteStored(taken)
		return nil
	}
	t.nextStore = t.now().Add(storeRetry)
	t.storeFailed(streams, err)
	t.sweepMu.Lock()
	w.forgotten = append(w.forgotten, forgotten...)
	w.indexDirty = true
	t.sweepMu.Unlock()
	return fmt.Errorf("'storage': cannot store positions: %w", err)
}

// storeFailed handles a failed store: it is counted, and all positions are stored again, not only the changed: a failing storage may have lost everything.
func (t *Tailer) storeFailed(streams []*Stream, err error) {
	t.unstored = true
	t.counts.bump(&t.counts.ckptErrs, 1)
	t.warn("store", "Positions cannot be stored; a crash now would read and send again what came since", zap.Error(err))
	for _, s := range streams {
		s.mu.Lock()
		s.stored = s.arrived // nothing to store before a batch is sent
		if slices.ContainsFunc(s.files, func(f *file) bool { return len(f.arrivals) > 0 }) {
			s.stored = 0 // all arrivals are to be stored first
		}
		s.changed()
		s.mu.Unlock()
	}
}

// noteStored handles a successful store of streams' checkpoints: their arrivals count as stored, so batches with these may be sent.
func noteStored(taken []*Stream) {
	for _, s := range taken {
		s.mu.Lock()
		s.stored = s.storing
		s.mu.Unlock()
	}
}

// snapshots appends the checkpoints of the streams that changed and are due (last: of all that changed), and returns these streams. After many holes, the
// next checkpoint of the stream, or of all streams, comes later (nextStore).
func (t *Tailer) snapshots(ops []*storage.Operation, streams []*Stream, last bool) (_ []*storage.Operation, taken []*Stream) {
	now := t.now()
	all := 0 // holes
	for _, s := range streams {
		s.mu.Lock()
		switch {
		case !s.dirty || s.gone:
		case !last && !t.policy.due(s, now):
			t.dirty.Store(true)
		default:
			b, holes := s.snapshot(nil)
			all += holes
			s.nextStore = now.Add(time.Duration(holes/holesPerSecond) * time.Second)
			s.dirty = false
			ops, taken = append(ops, storage.SetOperation(checkpoint.Key(s.path), b)), append(taken, s)
		}
		s.mu.Unlock()
	}
	t.nextStore = now.Add(t.policy.pause(all))
	return ops, taken
}

// restore takes up the streams with a checkpoint, before any file is looked for: a file rotated between processes belongs to its old stream.
func (w *sweeper) restore(now time.Time) {
	paths := slices.Sorted(maps.Keys(w.saved))
	var restored []*Stream
	for _, path := range paths {
		c := w.saved[path]
		delete(w.saved, path)
		if !w.wanted(path) || !w.isMineStill(c, now) {
			w.forgotten = append(w.forgotten, path)
			w.indexDirty = true
			continue
		}
		restored = append(restored, w.restoreStream(c, now))
	}
	// Only now is known which files belong to no stream.
	for _, s := range restored {
		w.takeUpOlder(s, now)
	}
}

// takeUpOlder takes up rotated files older than the stream's current file, if files are still to be compared (s.behind), or the current file is unread: after a
// restart, an unread file may be another file with the old inode.
func (w *sweeper) takeUpOlder(s *Stream, now time.Time) {
	defer w.lock(s)()
	cur := s.current
	if cur == nil || cur.head > 0 && !s.behind {
		return
	}
	// takeUp appends: cur is put after the older files again.
	s.files = slices.DeleteFunc(s.files, func(f *file) bool { return f == cur })
	w.takeUp(s, now, false)
	s.files = append(s.files, cur)
	// If a file with cur's inode was taken up, cur was another file, and is gone.
	if f := w.files[cur.id]; f != nil && f.stream == s && !f.isRetired() {
		f.supersede()
	}
}

// restoreStream makes the stream of a checkpoint, with the files that are found again, each at its stored position, and has the stream read. Files that are not
// found, and were not read and accepted whole, are lost.
func (w *sweeper) restoreStream(c *checkpoint.Stream, now time.Time) *Stream {
	s := w.newStream(c.Path, now)
	defer w.lock(s)()
	s.state = c.Handler
	s.restoreState()
	if s.document { // the hash is all that is stored: the next looks read the file whole, and compare
		s.doc.sum = c.Sum
		return s
	}
	s.known, s.resumed = true, true
	if c.LastWrite != 0 {
		s.lastWrite = time.Unix(0, c.LastWrite)
	}
	for i := range c.Files {
		sf := &c.Files[i]
		f := &file{ // seen: as if the full scan to come had met the file
			stream: s, id: sf.ID, path: sf.Path, size: sf.Size, mtime: time.Unix(0, sf.MTime),
			head: sf.Head, print: sf.Print, tail: fingerprint.Stored(sf.TailSum, sf.TailN),
			skip: sf.Skip, replay: sf.Holes, tags: sf.Tags, arrivals: sf.Arrivals, grown: now, rotated: now, seen: w.scans + 1,
		}
		if sf.Retired {
			f.life = lifeRetired
		}
		f.wrote = f.mtime
		if sf.Current && !s.lastWrite.IsZero() { // snapshot has stored the current file's
			f.wrote = s.lastWrite
		}
		if !sf.Retired && !w.locate(s, f, now) {
			w.lost(f, !sf.Complete && (sf.Size > sf.Head || w.t.packing(sf.Path) != CompressionNone))
			continue
		}
		unchanged := f.size == sf.Size && unixNano(f.mtime) == sf.MTime
		if sf.Complete && len(f.replay) == 0 && f.compressed && unchanged {
			f.setLife(lifeRead) // not to be decompressed once more
			w.t.close(f)
		}
		elsewhere := !sf.Current || f.path != s.path
		if !sf.Retired && elsewhere && sf.Vague() && !unchanged { // perhaps another file with the inode
			w.t.close(f) // if it is the same file after all, takeUp finds it again
			continue
		}
		f.begin() // may have been empty in the checkpoint
		w.t.spare(f)
		s.files = append(s.files, f)
		if !f.isRetired() || w.files[f.id] == nil { // a retired file that is gone may have left its inode to another, also another stream's
			w.files[f.id] = f
		}
		if f.path == s.path && sf.Current && !sf.Retired && f.life != lifeMissing {
			s.current = f
			f.rotated = time.Time{}
		}
	}
	s.changed()
	w.t.schedule(s)
	return s
}

// locate opens the file of a checkpoint: at its path, elsewhere in the directory, or the copy with its content. It returns false if no such file exists. A
// search for a copy that takes more than this call makes the file lifeMissing, and goes on with the stream's looks.
func (w *sweeper) locate(s *Stream, f *file, now time.Time) bool {
	err := w.t.reopen(f)
	gone := errors.Is(err, errTruncated) || errors.Is(err, osfile.ErrNotRegular) || errors.Is(err, syscall.ELOOP) // ELOOP: a link, which is not followed
	if err != nil && !gone {
		w.t.readError(f.path, err)
		f.failed = true
		return true // it exists, and may be readable later
	}
	if err == nil {
		if f.raw != nil {
			if fi, err := f.raw.Stat(); err == nil {
				f.size, f.mtime = fi.Size(), fi.ModTime()
			}
		}
		return true
	}
	c, wait := w.copyOf(s, f)
	switch {
	case wait:
		f.setLife(lifeMissing)
	case c != nil:
		w.continueIn(f, c, now)
	}
	return c != nil || wait
}

// snapshot appends the stream's checkpoint to b: of each file the head, and as holes the lines before the head that are held, in flight, or still to be read
// again. holes counts these; ten tags count as a hole. The caller holds s.mu, so no batch is half built.
func (s *Stream) snapshot(b []byte) (_ []byte, holes int) {
	c := checkpoint.Stream{Path: s.path, LastWrite: unixNano(s.lastWrite), Document: s.document, ByContent: s.byContent, Sum: s.doc.sum, Handler: s.save()}
	if s.current != nil {
		c.LastWrite = unixNano(s.current.wrote)
	}
	first := s.firstMark() // an InOrder handler begins there again, with the state of then
	if first != nil {
		c.Handler = first.state
	}
	open, tags := map[*file][]checkpoint.Range{}, map[*file][]checkpoint.Tag{} // lines that are not accepted, and the tags of lent lines among them
	for i := range s.held.slots {
		if h := &s.held.slots[i]; h.file != nil {
			open[h.file] = append(open[h.file], h.Range)
			if h.tag != 0 {
				tags[h.file] = append(tags[h.file], checkpoint.Tag{Begin: h.Begin, Value: h.tag})
			}
		}
	}
	for fb := range s.flying {
		for _, p := range fb.pieces {
			open[p.file] = append(open[p.file], p.Range)
		}
	}
	for _, f := range s.files {
		if f.life == lifeDead || f != s.current && f.head == 0 && f.print.N == 0 && !f.compressed {
			continue // a dead file is not read again; an empty file cannot be distinguished from another with its inode
		}
		if first != nil && first.at[f] < f.head { // from the mark on; of a file later than the mark, all
			open[f] = append(open[f], checkpoint.Range{Begin: first.at[f], End: f.head})
		}
		merged := checkpoint.Merge(append(open[f], f.replay...))
		tagged := slices.Concat(tags[f], f.tags)
		f.forgetArrivals(merged)
		holes += len(merged) + len(tagged)/10
		slices.SortFunc(tagged, func(a, b checkpoint.Tag) int { return cmp.Compare(a.Begin, b.Begin) })
		c.Files = append(c.Files, checkpoint.File{
			Path: f.path, ID: f.id, Size: f.size, MTime: unixNano(f.mtime), Head: f.head, Print: f.print, TailSum: f.tail.Hash(), TailN: f.tail.Len(),
			Skip: f.skip, Current: f == s.current, Retired: f.isRetired(), Complete: f.isComplete(), Holes: merged, Tags: tagged,
			Arrivals: f.arrivals,
		})
	}
	s.storing = s.arrived // noteStored copies the number once the checkpoint is stored
	return c.Encode(b), holes
}

// forgetArrivals drops the arrivals of lines before the first hole, which are never read again. holes are in order.
func (f *file) forgetArrivals(holes []checkpoint.Range) {
	from := f.head
	if len(holes) > 0 {
		from = holes[0].Begin
	}
	f.arrivals = slices.DeleteFunc(f.arrivals, func(a checkpoint.Arrival) bool { return a.End <= from })
}

// storeArrivals stores the positions of a group's streams whose lines have only the time of their arrival, before the group is sent: after a crash, the lines
// must be sent with the same time.
func (t *Tailer) storeArrivals(group []*lineBatch) {
	if t.cfg.Storage == nil || len(streamsToStore(group)) == 0 {
		return
	}
	t.sweepMu.Lock()
	unindexed := t.sweeper.indexDirty
	t.sweepMu.Unlock()
	if unindexed { // a checkpoint outside the index is not found again
		_ = t.storeAll(t.life, false)
	}
	t.storeMu.Lock()
	defer t.storeMu.Unlock()
	streams := streamsToStore(group) // those being stored are stored by now
	if len(streams) == 0 {
		return
	}
	var ops []*storage.Operation
	for _, s := range streams {
		s.mu.Lock()
		b, _ := s.snapshot(nil)
		ops = append(ops, storage.SetOperation(checkpoint.Key(s.path), b))
		s.mu.Unlock()
	}
	// A Batch, as for each position: state_storage first brings the counts of lines accepted meanwhile to disk, and a position must not be ahead of the counts.
	// Stored at the end of t.life, too: a component that ignores the context still accepts the group.
	if err := t.store.Batch(context.WithoutCancel(t.life), ops...); err != nil {
		t.storeFailed(streams, err)
		return
	}
	noteStored(streams)
}

// streamsToStore returns the streams of a group's batches with arrivals that are not in the storage yet.
func streamsToStore(group []*lineBatch) (streams []*Stream) {
	for _, b := range group {
		s := b.stream
		s.mu.Lock()
		if s.stored < s.arrived && !slices.Contains(streams, s) {
			streams = append(streams, s)
		}
		s.mu.Unlock()
	}
	return streams
}
