package tail

import (
	"errors"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lockorder"
)

const (
	maxOpenFiles = 2048 // of the process
	minOpenFiles = 4
	// otherFiles is the number of descriptors that a collector needs beside its logs: 25 while idle, by a count of /proc/self/fd, plus connections, directories
	// being listed, and files being compared, one to three per receiver.
	otherFiles = 48
)

var errTurn = errors.New("other files have their turn")

// descriptors is the budget of open files, shared by all Tailers of a process. Beyond the budget, files take turns: a file is opened to be read, and closed at
// its end, or when its turn is over. A Tailer without an open file may always open one, and a Tailer that reads files once keeps its files open while reading.
type descriptors struct {
	most    int64 // files
	limited bool  // by the limit of the process: a higher limit would allow more files

	mu      lockorder.Mutex[leaf]
	open    int64     // files
	waiting []*Stream // for a descriptor, first come first
	logged  bool      // the log already says that files take turns
}

var processDescriptors = sync.OnceValue(func() *descriptors {
	var limit syscall.Rlimit // the soft limit, which Go has raised to the hard limit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return newDescriptors(2 * maxOpenFiles)
	}
	return newDescriptors(limit.Cur)
})

// newDescriptors returns the budget of a process with a limit of open files: half of the limit, less where other files would have no room, but minOpenFiles at
// least and maxOpenFiles at most.
func newDescriptors(limit uint64) *descriptors {
	n := int64(min(limit, 2*maxOpenFiles))
	n = max(min(n/2, n-otherFiles), minOpenFiles)
	return &descriptors{most: n, limited: n < maxOpenFiles}
}

// share returns the number of files of some kind that may be open: n, or a part of the budget (for 4, a quarter) if smaller.
func (d *descriptors) share(n, part int64) int64 { return max(1, min(n, d.most/part)) }

// take counts an opened file.
func (d *descriptors) take() {
	d.mu.Lock()
	d.open++
	d.mu.Unlock()
}

// mayTake counts another open file and returns true, unless the budget is used up.
func (d *descriptors) mayTake() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open >= d.most {
		return false
	}
	d.open++
	return true
}

// takeFor counts another open file, of a stream, and returns true. It returns false if the budget is used up: the stream becomes ready when a file is closed. A
// Once, and a Tailer without an open file, are never refused.
func (d *descriptors) takeFor(s *Stream) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open < d.most || s.t.final || s.t.open.Load() == 0 {
		d.open++
		return true
	}
	if !s.starves {
		s.starves = true
		d.waiting = append(d.waiting, s)
	}
	return false
}

// give counts a closed file.
func (d *descriptors) give() {
	d.mu.Lock()
	d.open--
	d.mu.Unlock()
	d.resume()
}

// resume makes as many waiting streams ready as descriptors are free.
func (d *descriptors) resume() {
	d.mu.Lock()
	n := min(max(0, d.most-d.open), int64(len(d.waiting)))
	next := d.waiting[:n:n]
	d.waiting = d.waiting[n:]
	for _, s := range next {
		s.starves = false
	}
	d.mu.Unlock()
	for _, s := range next {
		s.t.schedule(s)
	}
}

// pressure reports whether more than half of the budget is used (half), and whether all is used or files wait for their turn (short).
func (d *descriptors) pressure() (half, short bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open > d.most/2, d.open >= d.most || len(d.waiting) > 0
}

// logTurns logs, once, that files take turns, if a higher limit of open files would help.
func (t *Tailer) logTurns() {
	d := t.descriptors
	d.mu.Lock()
	logged := d.logged || !d.limited
	d.logged = true
	d.mu.Unlock()
	if !logged {
		t.log.Warn("There are more logs than this process may have open: they take turns. Raise its limit of open files (ulimit -n, LimitNOFILE of systemd)",
			zap.Int64("logs_open", d.most))
	}
}

// spare closes a file to save its descriptor, if the file can be opened again: a fully read uncompressed file once half of the budget is used, which leaves the
// other half for files with unread bytes, and any file once the budget is used up. A Once closes fully read files, to which no turn comes back, and compressed
// files at any time. A file without a name stays open until its end.
func (t *Tailer) spare(f *file) {
	if f.src == nil {
		return
	}
	half, short := t.descriptors.pressure()
	if !half && !short && !t.final {
		return
	}
	fi, err := f.raw.Stat()
	if err != nil {
		return
	}
	named := fingerprint.Links(fi) > 0
	atEnd := !f.compressed && f.life == lifeRead && fi.Size() <= f.head
	switch {
	case named && atEnd, named && f.compressed && t.final: // a Once opens a compressed file again in its turn
	case short && (named || atEnd): // named, also with unread bytes: others have their turn
		t.logTurns()
	default:
		return
	}
	t.close(f)
}

// spare closes a file to save its descriptor, as Tailer.spare does, after the file's turn. A compressed file stays open: reopening means decompressing from the
// beginning.
func (s *Stream) spare(f *file) {
	if !f.compressed {
		s.t.spare(f)
	}
}

// reopenInTurn opens a file again to read on; errTurn: the stream becomes ready once a descriptor is free.
func (t *Tailer) reopenInTurn(f *file) error {
	if !t.descriptors.takeFor(f.stream) {
		t.logTurns()
		return errTurn
	}
	defer t.descriptors.give() // attach counts the file
	return t.reopen(f)
}

// mayUnpack reports whether another compressed file may be opened for reading.
func (t *Tailer) mayUnpack() bool {
	most := t.descriptors.share(maxPacked, 8)
	if t.final {
		most = t.descriptors.share(maxOpenFiles, 2) // logs of one job are read side by side
	}
	return t.packed.Load() < most
}

// isShort reports whether a file could not be opened because the process, or the system, has too many open files.
func isShort(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }
