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

	maxWatches = 2 * 4096 // of one listener, two for each directory; directories beyond it are polled only
	maxWaiting = 100_000  // hints, and births, that a listener does not ask for; beyond it anything may have happened
	bufferSize = 16 << 10 // of one look: some 10,000 hints in a second; writers pay nothing for what the kernel cannot queue beside them
)

var (
	errTooManyInstances = errors.New("this user has as many as fs.inotify.max_user_instances allows, or this process too many open files: raise the limit")
	errTooManyWatches   = errors.New("this user has as many as fs.inotify.max_user_watches allows: raise the limit")
	errTooManyHere      = fmt.Errorf("%d directories are watched, and no more", maxWatches/2)
)

// Listener is told what happens in the directories that it adds.
type Listener struct {
	pair  *pair
	pause time.Duration
	wake  func()
	bell  chan struct{} // rung when there are births

	// All below is under mu.
	closed  bool
	watches int
	hints   Hints
	born    []birth
}

type birth struct {
	path    string
	created bool
}

// pair is the two instances that all listeners share. One hears at once of files that are created or renamed, and of nothing else. The other one hears every
// write as well, and pauses after each look, so that the kernel merges equal events and a busy writer costs little.
type pair struct {
	births, hints *instance
	listeners     map[*Listener]struct{}
	users         int // listeners, and calls of Add: whoever is last closes the instances
	done          chan struct{}
	readers       sync.WaitGroup
}

// instance is one of inotify.
type instance struct {
	file    *os.File
	fd      int
	mask    uint32
	watched map[int32][]watched // by watch descriptor, of which the kernel has one for each directory, whatever its names
	names   map[watched]int32   // the other way round: a name has one directory, and another one later perhaps
	ended   int                 // watches so far
}

type watched struct {
	l   *Listener
	dir string
}

// mu guards all that listeners share. Nothing that may hang on a file system is done under it: one listener must not hold up another.
var (
	mu      sync.Mutex
	current *pair // nil: nobody listens
)

// Open begins to listen, in no directory yet. After hints were heard there are none for as long as pause, or less if another listener asks for less. It calls
// wake, which must not wait, when there are hints.
func Open(pause time.Duration, wake func()) (*Listener, error) {
	mu.Lock()
	defer mu.Unlock()
	if current == nil {
		p, err := newPair()
		if err != nil {
			return nil, err
		}
		current = p
	}
	l := &Listener{pair: current, pause: pause, wake: wake, bell: make(chan struct{}, 1)}
	current.listeners[l] = struct{}{}
	current.users++
	return l, nil
}

func newPair() (*pair, error) {
	p := &pair{listeners: map[*Listener]struct{}{}, done: make(chan struct{})}
	var err error
	if p.births, err = newInstance(births); err != nil {
		return nil, err
	}
	if p.hints, err = newInstance(hints); err != nil {
		_ = p.births.file.Close()
		return nil, err
	}
	p.readers.Go(func() { p.read(p.births) })
	p.readers.Go(func() { p.read(p.hints) })
	return p, nil
}

func newInstance(mask uint32) (*instance, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		if errors.Is(err, unix.EMFILE) {
			err = errTooManyInstances
		}
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	// Without IN_MASK_ADD the kernel sets the mask of a watch that is there to 0 first, and loses what happens at that moment (inotify_update_existing_watch).
	mask |= unix.IN_ONLYDIR | unix.IN_MASK_ADD
	return &instance{
		file: os.NewFile(uintptr(fd), "inotify"), fd: fd, mask: mask, watched: map[int32][]watched{}, names: map[watched]int32{},
	}, nil
}

// release lets go of the instances; the last user ends them.
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

// Add listens in a directory. It may be called again at any time: a directory of this name may be another one by now. fresh says that nothing was heard of it
// so far.
func (l *Listener) Add(dir string) (fresh bool, err error) {
	mu.Lock()
	if l.closed || l.watches >= maxWatches {
		defer mu.Unlock()
		if l.closed || l.has(dir) {
			return false, nil
		}
		return false, errTooManyHere
	}
	l.pair.users++
	mu.Unlock()
	defer l.pair.release()
	if _, err := l.add(l.pair.births, dir); err != nil {
		return false, err
	}
	return l.add(l.pair.hints, dir)
}

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
		if i.ended == ended { // else the watch that it found may be one that ended
			fresh = i.note(int32(wd), watched{l, dir})
			mu.Unlock()
			return fresh, nil
		}
		mu.Unlock()
	}
}

// note notes who watches a directory, and says whether that is new.
func (i *instance) note(wd int32, w watched) (fresh bool) {
	if w.l.closed {
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

func (l *Listener) has(dir string) bool {
	_, ok := l.pair.hints.names[watched{l, dir}]
	return ok
}

// Forget ends listening in the directories that are gone.
func (l *Listener) Forget(gone func(dir string) bool) {
	mu.Lock()
	defer mu.Unlock()
	for _, i := range []*instance{l.pair.births, l.pair.hints} {
		for wd := range i.watched {
			i.end(wd, func(w watched) bool { return w.l == l && gone(w.dir) })
		}
	}
}

// end forgets who watches a directory, and has the kernel forget it when nobody does.
func (i *instance) end(wd int32, gone func(watched) bool) {
	if i.forget(wd, gone) {
		_, _ = unix.InotifyRmWatch(i.fd, uint32(wd)) // it fails where the kernel has ended the watch
	}
}

// forget forgets who watches a directory, and says whether nobody does any more.
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

// Close ends listening; what was not asked for is dropped.
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

// read hands events to the listeners until the instance is closed.
func (p *pair) read(i *instance) {
	buf := make([]byte, bufferSize)
	for {
		n, err := i.file.Read(buf)
		if err != nil {
			return
		}
		pause := p.tell(i, buf[:n])
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

// tell hands events to those that watch their directories, and wakes those that have hints. It returns the shortest pause that a listener asks for.
func (p *pair) tell(i *instance, events []byte) (pause time.Duration) {
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
			i.forget(wd, func(watched) bool { return true }) // the kernel has, and the instance may be closed
		case i == p.hints:
			for _, w := range i.watched[wd] {
				w.l.hint(w.dir, string(name), mask)
			}
		case len(name) > 0 && mask&unix.IN_ISDIR == 0:
			for _, w := range i.watched[wd] {
				w.l.bear(birth{filepath.Join(w.dir, string(name)), mask&unix.IN_CREATE != 0})
			}
		}
	}
	for l := range p.listeners {
		if h := &l.hints; i == p.hints && (h.All || len(h.Paths) > 0) {
			l.wake()
		}
		if pause == 0 || l.pause < pause {
			pause = l.pause
		}
	}
	return pause
}

func (l *Listener) hint(dir, name string, mask uint32) {
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

func (l *Listener) bear(b birth) {
	if len(l.born) >= maxWaiting {
		l.hints.All = true
		return
	}
	l.born = append(l.born, b)
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// Hints returns what was heard since the last call.
func (l *Listener) Hints() Hints {
	mu.Lock()
	defer mu.Unlock()
	h := l.hints
	l.hints = Hints{}
	return h
}

// Births calls heard for every file that is created or renamed, at once, until ctx ends.
func (l *Listener) Births(ctx context.Context, heard func(path string, created bool)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.bell:
		}
		mu.Lock()
		born := l.born
		l.born = nil
		mu.Unlock()
		for _, b := range born {
			if ctx.Err() != nil {
				return
			}
			heard(b.path, b.created)
		}
	}
}
