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
	// otherFiles is how many descriptors a collector needs beside its logs: 25 while idle, by a count of /proc/self/fd, and then those of connections, of
	// directories that are listed, and of files that are compared, one to three at a time for each receiver.
	otherFiles = 48
)

var errTurn = errors.New("other files have their turn")

// descriptors is the budget of files that are held open. All Tailers of a process share one. Where there are more files, these take turns: a file is opened to
// be read, and closed when it was read to its end, or when its turn is over. A Tailer that has no file open may always open one,
// and one that reads files once opens those that it reads.
type descriptors struct {
	most    int64
	limited bool // by the limit of the process

	mu      lockorder.Mutex[leaf]
	open    int64
	waiting []*Stream
	told    bool // the log says that files take turns
}

var processDescriptors = sync.OnceValue(func() *descriptors {
	var limit syscall.Rlimit // the soft one, which Go has made the hard one
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return newDescriptors(2 * maxOpenFiles)
	}
	return newDescriptors(limit.Cur)
})

// newDescriptors is the budget of a process that may have so many files open.
func newDescriptors(limit uint64) *descriptors {
	n := int64(min(limit, 2*maxOpenFiles))
	n = max(min(n/2, n-otherFiles), minOpenFiles)
	return &descriptors{most: n, limited: n < maxOpenFiles}
}

// share is how many of some kind may be open, where so many are meant to be.
func (d *descriptors) share(n, part int64) int64 { return max(1, min(n, d.most/part)) }

// take counts a file that was opened.
func (d *descriptors) take() {
	d.mu.Lock()
	d.open++
	d.mu.Unlock()
}

// mayTake is take for whoever can do without.
func (d *descriptors) mayTake() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open >= d.most {
		return false
	}
	d.open++
	return true
}

// takeFor is take for a stream, which otherwise is made ready when a file was closed.
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

// give is told that a file was closed.
func (d *descriptors) give() {
	d.mu.Lock()
	d.open--
	d.mu.Unlock()
	d.rouse()
}

// rouse makes as many of the streams ready that wait as there are descriptors.
func (d *descriptors) rouse() {
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

// pressure says whether half of the budget is used, and whether other files wait for their turn.
func (d *descriptors) pressure() (half, short bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open > d.most/2, d.open >= d.most || len(d.waiting) > 0
}

// tell says once that files take turns, where raising the limit would help.
func (t *Tailer) tellTurns() {
	d := t.descriptors
	d.mu.Lock()
	told := d.told || !d.limited
	d.told = true
	d.mu.Unlock()
	if !told {
		t.log.Warn("There are more logs than this process may have open: they take turns. Raise its limit of open files (ulimit -n, LimitNOFILE of systemd)",
			zap.Int64("logs_open", d.most))
	}
}

// spare closes a file that can be opened again, where descriptors are short: one that was read to its end as soon as half of them are used, so that the other
// half is for files with something to read. A file without a name stays open until it was read to its end.
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
	named, atEnd := fingerprint.Links(fi) > 0, !f.compressed && f.life == lifeRead && fi.Size() <= f.head
	switch {
	case named && atEnd, named && f.compressed && t.final:
	case short && (named || atEnd):
		t.tellTurns()
	default:
		return
	}
	t.close(f)
}

// spare is Tailer.spare for a file after its turn. A compressed one stays open: it would have to be decompressed from its beginning again.
func (s *Stream) spare(f *file) {
	if !f.compressed {
		s.t.spare(f)
	}
}

// reopenInTurn opens a file again to read it; errTurn: when a descriptor is free its stream is made ready.
func (t *Tailer) reopenInTurn(f *file) error {
	if !t.descriptors.takeFor(f.stream) {
		t.tellTurns()
		return errTurn
	}
	defer t.descriptors.give() // attach counts the file
	return t.reopen(f)
}

// mayUnpack says whether one more compressed file may be opened to be read.
func (t *Tailer) mayUnpack() bool {
	most := t.descriptors.share(maxPacked, 8)
	if t.final {
		most = t.descriptors.share(maxOpenFiles, 2) // logs of one job are read side by side
	}
	return t.packed.Load() < most
}

// isShort says whether a file could not be opened because the process, or the system, has too many open.
func isShort(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }
