package tail

import (
	"errors"
	"io/fs"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/inotify"
)

func (t *Tailer) openWatcher() {
	if t.noWatch {
		return
	}
	var err error
	if t.watcher, err = inotify.Open(min(t.cfg.PollInterval/4, 50*time.Millisecond), t.wakeSweeper); err != nil {
		t.warn("watch", "inotify is not to be had: files are polled, and may be missed if they are rotated away within poll_interval", zap.Error(err))
	}
}

// watch has inotify watch a directory that is about to be listed: it may have been deleted and made again since. fresh says that nothing was heard of its files
// so far.
func (w *sweeper) watch(d *directory) (fresh bool) {
	if w.t.watcher == nil {
		return false
	}
	fresh, err := w.t.watcher.Add(d.path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // listing it says so
		return false
	}
	if err != nil && !d.polled {
		w.t.warn("watch", "inotify cannot watch a directory: it is polled", zap.String("directory", d.path), zap.Error(err))
	}
	d.polled = err != nil
	return fresh
}

// hinted makes the files and directories due of which inotify was heard. Nothing is decided by that: it only makes the next look come sooner.
func (w *sweeper) hinted(now time.Time) {
	if w.t.watcher == nil {
		return
	}
	h := w.t.watcher.Hints()
	if h.All && now.Sub(w.allAt).Abs() >= maxIdlePoll { // whoever is idle is looked at as often
		w.allAt = now
		w.rescan = true
		for _, s := range w.due {
			s.next = now // all equal: still a heap
		}
		return
	}
	var unsorted []string
	for p := range h.Paths {
		s, d := w.streams[p], w.dirs[p]
		if s != nil {
			w.again(s, now)
		}
		if d != nil {
			d.next, d.again = now, true
		}
		if s == nil && d == nil && len(w.shared.Globs) > 0 {
			delete(w.others, p)
			unsorted = append(unsorted, p)
		}
	}
	if len(unsorted) > 0 {
		w.t.set.Sorter.hint(unsorted, now)
	}
}
