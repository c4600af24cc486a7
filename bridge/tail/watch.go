package tail

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/births"
)

// maxWatches bounds the directories that inotify watches; beyond it they are polled only.
const maxWatches = 4096

// hints are the events of inotify: nothing is decided by them, they only make the next look come sooner.
type hints struct {
	paths map[string]bool
	all   bool
}

func (h *hints) add(e fsnotify.Event) {
	h.paths[e.Name] = true
	if e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		h.paths[filepath.Dir(e.Name)] = true
	}
}

func (t *Tailer) openWatcher() {
	if t.noWatch {
		return
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.warn("watch", "inotify is not to be had: files are polled", zap.Error(err))
		return
	}
	t.watcher = w
	if t.births, err = births.Open(); err != nil {
		t.births = nil
		t.warn("births", "Files that are rotated away within poll_interval may be missed", zap.Error(err))
	}
}

// watch has inotify watch a directory.
func (w *sweeper) watch(dir string) {
	if w.t.watcher == nil || w.watches >= maxWatches {
		return
	}
	if err := w.t.watcher.Add(dir); err != nil {
		w.t.warn("watch", "inotify cannot watch a directory: it is polled", zap.String("directory", dir), zap.Error(err))
		return
	}
	if w.t.births != nil {
		if err := w.t.births.Add(dir); err != nil {
			w.t.warn("watch", "inotify cannot watch a directory: it is polled", zap.String("directory", dir), zap.Error(err))
		}
	}
	w.watches++
}

// listen collects hints. It takes events in bursts with a pause between them, during which the kernel merges equal ones, so a busy writer costs little.
func (t *Tailer) listen(ctx context.Context) {
	pause := min(t.cfg.PollInterval/4, 50*time.Millisecond)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	h := hints{paths: map[string]bool{}}
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-t.watcher.Events:
			if !ok {
				return
			}
			h.add(e)
		case _, ok := <-t.watcher.Errors:
			if !ok {
				return
			}
			h.all = true // events were lost
		}
	burst:
		for len(h.paths) < 10_000 {
			select {
			case e, ok := <-t.watcher.Events:
				if !ok {
					return
				}
				h.add(e)
			default:
				break burst
			}
		}
		t.mu.Lock()
		t.hints.all = t.hints.all || h.all
		if t.hints.paths == nil {
			t.hints.paths, h.paths = h.paths, map[string]bool{}
		} else {
			for p := range h.paths {
				t.hints.paths[p] = true
			}
			clear(h.paths)
		}
		t.mu.Unlock()
		h.all = false
		t.wakeSweeper()
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// hinted makes the files and directories that the hints name due.
func (w *sweeper) hinted(now time.Time) {
	w.t.mu.Lock()
	h := w.t.hints
	w.t.hints = hints{}
	w.t.mu.Unlock()
	if h.all {
		w.rescan = true
		for _, s := range w.due {
			s.next = now // all equal: still a heap
		}
		return
	}
	for p := range h.paths {
		if s := w.streams[p]; s != nil {
			w.again(s, now)
		}
		if f := w.sorted[p]; f != nil {
			f.next, f.scan = now, 0
		}
		if d := w.dirs[p]; d != nil {
			d.next, d.again = now, true
		}
	}
}
