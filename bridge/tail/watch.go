package tail

import (
	"errors"
	"io/fs"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/inotify"
)

// openWatcher begins to listen to inotify's events. Without inotify, files are polled only.
func (t *Tailer) openWatcher() {
	if t.noWatch {
		return
	}
	var err error
	t.watcher, err = inotify.Open(min(t.cfg.PollInterval/4, 40*time.Millisecond), t.wakeSweeper)
	if err != nil {
		t.warn("watch", "inotify is not to be had: files are polled, and may be missed if they are rotated away within poll_interval", zap.Error(err))
	}
}

// watch has inotify watch a directory; it is called before each listing, because the directory may have been recreated since. It returns true if the directory
// was not watched before.
func (w *sweeper) watch(d *directory) (fresh bool) {
	if w.t.watcher == nil {
		return false
	}
	fresh, err := w.t.watcher.Add(d.path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // listing reports it
		return false
	}
	if err != nil && !d.polled {
		w.t.warn("watch", "inotify cannot watch a directory: it is polled", zap.String("directory", d.path), zap.Error(err))
	}
	d.polled = err != nil
	return fresh
}

// takeHints makes files and directories with inotify events due; all of them, where events were lost, but not again within maxIdlePoll. Events decide nothing:
// they only advance the next look.
func (w *sweeper) takeHints(now time.Time) {
	if w.t.watcher == nil {
		return
	}
	h := w.t.watcher.Hints()
	if h.All && now.Sub(w.allAt).Abs() >= maxIdlePoll { // the interval of idle files
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
			w.setNextLook(s, now)
		}
		if d != nil {
			d.next, d.listAgain = now, true
		}
		if s == nil && d == nil && len(w.shared.Globs) > 0 { // perhaps another Tailer's file so far, or a file that waits to be sorted
			delete(w.others, p)
			unsorted = append(unsorted, p)
		}
	}
	if len(unsorted) > 0 {
		w.t.set.Sorter.hint(unsorted, now)
	}
}
