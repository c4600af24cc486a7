package inotify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	births      = unix.IN_CREATE | unix.IN_MOVED_TO
	comesOrGoes = births | unix.IN_DELETE | unix.IN_MOVED_FROM
	hints       = comesOrGoes | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_MOVE_SELF

	maxWatches = 2 * 4096 // per listener, two for each directory; further directories are only polled
	maxWaiting = 100_000  // unread hints and births of a listener; beyond the limit All is set
	bufferSize = 16 << 10 // per read: some 10,000 hints in a second; the kernel drops events beyond its queue, at no cost to writers
)

var (
	errTooManyInstances = errors.New("this user has as many as fs.inotify.max_user_instances allows, or this process too many open files: raise the limit")
	errTooManyWatches   = errors.New("this user has as many as fs.inotify.max_user_watches allows: raise the limit")
	errTooManyHere      = fmt.Errorf("%d directories are watched, and no more", maxWatches/2)
)

// Listener receives the events of its directories.
type Listener struct {
	pair    *pair
	pause   time.Duration
	notify  func()
	created chan struct{} // signals births

	// All below is under mu.
	closed  bool
	watches int     // in both instances
	hints   Hints   // not yet taken by Hints
	born    []birth // not yet taken by Births
}

// birth is a file that was created at a path, or renamed to it.
type birth struct {
	path    string
	created bool // not renamed
}

// pair is the two instances shared by all listeners. The first reports only created and renamed files, at once. The second also reports every write, and pauses
// after each read, to let the kernel merge equal events: a busy writer costs little.
type pair struct {
	births, hints *instance
	listeners     map[*Listener]struct{}
	users         int // listeners, and calls of Add: the last closes the instances
	done          chan struct{}
	readers       sync.WaitGroup
}

// instance is an inotify instance.
type instance struct {
	file    *os.File
	fd      int
	mask    uint32
	watched map[int32][]watched // by watch descriptor, unique per directory
	names   map[watched]int32   // the reverse: a name has one directory, perhaps another later
	ended   int                 // watches removed so far
}

// watched is a directory watched for a listener.
type watched struct {
	l   *Listener
	dir string
}

// mu guards all state shared by listeners. System calls that may hang are made outside: one listener must not block another.
var (
	mu      sync.Mutex
	current *pair // nil: nobody listens
)

// Open begins to listen, in no directory yet. After a report of hints the next comes after pause, or after the shorter pause of another listener. notify
// is called when hints are waiting, with mu held: it must neither block nor call the Listener.
func Open(pause time.Duration, notify func()) (*Listener, error) {
	mu.Lock()
	defer mu.Unlock()
	if current == nil {
		p, err := newPair()
		if err != nil {
			return nil, err
		}
		current = p
	}
	l := &Listener{pair: current, pause: pause, notify: notify, created: make(chan struct{}, 1)}
	current.listeners[l] = struct{}{}
	current.users++
	return l, nil
}

// newPair makes both instances and begins to read them.
func newPair() (*pair, error) {
	p := &pair{listeners: map[*Listener]struct{}{}, done: make(chan struct{})}
	var err error
	p.births, err = newInstance(births)
	if err != nil {
		return nil, err
	}
	p.hints, err = newInstance(hints)
	if err != nil {
		_ = p.births.file.Close()
		return nil, err
	}
	p.readers.Go(func() { p.read(p.births) })
	p.readers.Go(func() { p.read(p.hints) })
	return p, nil
}

// newInstance makes an inotify instance for the events of a mask.
func newInstance(mask uint32) (*instance, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		if errors.Is(err, unix.EMFILE) {
			err = errTooManyInstances
		}
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	// Without IN_MASK_ADD the kernel first sets the mask of an existing watch to 0, and loses the events of that moment (inotify_update_existing_watch).
	mask |= unix.IN_ONLYDIR | unix.IN_MASK_ADD
	return &instance{
		file: os.NewFile(uintptr(fd), "inotify"), fd: fd, mask: mask, watched: map[int32][]watched{}, names: map[watched]int32{},
	}, nil
}

// release ends one use of the instances; the last user closes them.
func (p *pair) release() {
	mu.Lock()
	p.users--
	last := p.users == 0
	if last {
		current = nil
	}
	mu.Unlock()
	if last {
		close(p.done)
		_ = p.births.file.Close()
		_ = p.hints.file.Close()
		p.readers.Wait()
	}
}

// Add watches a directory. It may be called again at any time: the name may have become another directory's. fresh: the directory was not watched before.
// A closed listener watches no directory.
func (l *Listener) Add(dir string) (fresh bool, err error) {
	mu.Lock()
	if l.closed || l.watches >= maxWatches {
		defer mu.Unlock()
		if l.closed || l.has(dir) {
			return false, nil
		}
		return false, errTooManyHere
	}
	l.pair.users++ // the instances must not be closed meanwhile
	mu.Unlock()
	defer l.pair.release()
	if _, err := l.add(l.pair.births, dir); err != nil {
		return false, err
	}
	return l.add(l.pair.hints, dir)
}

// add watches a directory in one of the instances. The kernel is asked without mu: asking is repeated if a watch was removed meanwhile, because the kernel then
// may have given the number of that watch.
func (l *Listener) add(i *instance, dir string) (fresh bool, err error) {
	for {
		mu.Lock()
		ended := i.ended
		mu.Unlock()
		wd, err := unix.InotifyAddWatch(i.fd, dir, i.mask)
		if err != nil {
			if errors.Is(err, unix.ENOSPC) {
				err = errTooManyWatches
			}
			return false, os.NewSyscallError("inotify_add_watch", err)
		}
		mu.Lock()
		if i.ended == ended {
			fresh = i.record(int32(wd), watched{l, dir})
			mu.Unlock()
			return fresh, nil
		}
		mu.Unlock()
	}
}

// record notes that a directory, of watch descriptor wd, is watched for a listener. It returns true if the listener did not watch the directory under this name
// before; the name may have been another directory's.
func (i *instance) record(wd int32, w watched) (fresh bool) {
	if w.l.closed { // meanwhile: the watch is nobody's
		if len(i.watched[wd]) == 0 {
			i.end(wd, func(watched) bool { return true })
		}
		return false
	}
	was, ok := i.names[w]
	if ok && was == wd {
		return false
	}
	if ok { // the name is another directory's by now
		i.end(was, func(o watched) bool { return o == w })
	}
	i.watched[wd], i.names[w] = append(i.watched[wd], w), wd
	w.l.watches++
	return true
}

// has reports whether a directory is watched for the listener. The caller holds mu.
func (l *Listener) has(dir string) bool {
	_, ok := l.pair.hints.names[watched{l, dir}]
	return ok
}

// Forget stops watching the directories for which gone returns true.
func (l *Listener) Forget(gone func(dir string) bool) {
	mu.Lock()
	defer mu.Unlock()
	for _, i := range []*instance{l.pair.births, l.pair.hints} {
		for wd := range i.watched {
			i.end(wd, func(w watched) bool { return w.l == l && gone(w.dir) })
		}
	}
}

// end removes the watchers of directory wd for which gone returns true, and the kernel's watch after the last.
func (i *instance) end(wd int32, gone func(watched) bool) {
	if i.forget(wd, gone) {
		_, _ = unix.InotifyRmWatch(i.fd, uint32(wd)) // fails where the kernel has removed the watch
	}
}

// forget removes the watchers of directory wd for which gone returns true, and reports whether none is left.
func (i *instance) forget(wd int32, gone func(watched) bool) bool {
	left := slices.DeleteFunc(i.watched[wd], func(w watched) bool {
		if !gone(w) {
			return false
		}
		delete(i.names, w)
		w.l.watches--
		return true
	})
	if len(left) > 0 {
		i.watched[wd] = left
		return false
	}
	delete(i.watched, wd)
	i.ended++
	return true
}

// Close stops listening; unread events are dropped.
func (l *Listener) Close() {
	mu.Lock()
	was := l.closed
	l.closed = true
	delete(l.pair.listeners, l)
	mu.Unlock()
	if !was {
		l.Forget(func(string) bool { return true })
		l.pair.release()
	}
}

// read hands events to the listeners until the instance is closed. After a read the instance of hints pauses, as pair says; births are handed on at once.
func (p *pair) read(i *instance) {
	buf := make([]byte, bufferSize)
	for {
		n, err := i.file.Read(buf)
		if err != nil {
			return
		}
		pause := p.dispatch(i, buf[:n])
		if i == p.births {
			continue
		}
		select {
		case <-time.After(pause):
		case <-p.done:
			return
		}
	}
}

// dispatch hands the events that were read from an instance to the watchers of their directories, and notifies listeners with hints. It returns the shortest
// pause of a listener. An event is a struct inotify_event (inotify(7)): descriptor, mask, cookie and length of the name, and the name, padded with NUL bytes.
func (p *pair) dispatch(i *instance, events []byte) (pause time.Duration) {
	mu.Lock()
	defer mu.Unlock()
	for len(events) >= unix.SizeofInotifyEvent {
		wd, mask := int32(binary.NativeEndian.Uint32(events)), binary.NativeEndian.Uint32(events[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		name, _, _ := bytes.Cut(events[unix.SizeofInotifyEvent:end], []byte{0})
		events = events[end:]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			for l := range p.listeners {
				l.hints.All = true
			}
		case mask&unix.IN_IGNORED != 0:
			i.forget(wd, func(watched) bool { return true }) // not end: the kernel has removed the watch, and the instance may be closed
		case i == p.hints:
			for _, w := range i.watched[wd] {
				w.l.noteHint(w.dir, string(name), mask)
			}
		case len(name) > 0 && mask&unix.IN_ISDIR == 0:
			for _, w := range i.watched[wd] {
				w.l.noteBirth(birth{filepath.Join(w.dir, string(name)), mask&unix.IN_CREATE != 0})
			}
		}
	}
	for l := range p.listeners {
		if h := &l.hints; i == p.hints && (h.All || len(h.Paths) > 0) {
			l.notify()
		}
		if pause == 0 || l.pause < pause {
			pause = l.pause
		}
	}
	return pause
}

// noteHint records an event of a file in a directory. The directory has changed as well where the file came or went.
func (l *Listener) noteHint(dir, name string, mask uint32) {
	h := &l.hints
	if len(h.Paths) >= maxWaiting {
		h.All, h.Paths = true, nil
	}
	if h.Paths == nil {
		h.Paths = map[string]bool{}
	}
	h.Paths[filepath.Join(dir, name)] = true
	if mask&comesOrGoes != 0 {
		h.Paths[dir] = true
	}
}

// noteBirth records a created or renamed file for Births. Beyond maxWaiting, the file is left to a look at all directories (Hints.All).
func (l *Listener) noteBirth(b birth) {
	if len(l.born) >= maxWaiting {
		l.hints.All = true
		return
	}
	l.born = append(l.born, b)
	select {
	case l.created <- struct{}{}:
	default:
	}
}

// Hints returns the events since the last call.
func (l *Listener) Hints() Hints {
	mu.Lock()
	defer mu.Unlock()
	h := l.hints
	l.hints = Hints{}
	return h
}

// Births calls report for each file created at a path (created), or renamed to the path, at once, until ctx ends. Beyond maxWaiting unread births, further
// births are lost, and Hints has All instead.
func (l *Listener) Births(ctx context.Context, report func(path string, created bool)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.created:
		}
		mu.Lock()
		born := l.born
		l.born = nil
		mu.Unlock()
		for _, b := range born {
			if ctx.Err() != nil {
				return
			}
			report(b.path, b.created)
		}
	}
}
