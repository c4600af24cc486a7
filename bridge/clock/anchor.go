package clock

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// jump is by how much an offset may change before the line is taken to have another clock: a reboot, or a new process in the same file whose
// counter began anew.
const jump = int64(60e9)

const windowLength = int64(600e9)

const (
	maxAnchors = 4096
	// maxSaved bounds the anchors that Save writes into the checkpoint, about 10 KB.
	maxSaved = 256
)

// Anchor ties the monotonic counter of one process (Python's perf_counter) to the wall clock.
type Anchor struct {
	key    anchorKey
	offset int64 // wall − counter, ns: the smallest of this window and the one before it
	window int64 // smallest of this window
	from   int64 // counter at which this window began
	top    int64 // highest counter seen
	set    bool
	guess  bool
	used   uint64
}

// Offset is wall − counter in ns. ok is false before the first Observe.
func (a *Anchor) Offset() (ns int64, ok bool) { return a.offset, a.set }

// Guessed says that no line of this process carried a wall clock: the offset was given by Guess.
func (a *Anchor) Guessed() bool { return a.guess }

// Breaks says whether a line with these times (ns) belongs to another clock than the lines before it, so that what is still open
// was cut off by a reboot or an end of the process. A counter that went back does not break when the wall clock went back with it:
// that is a late line.
func (a *Anchor) Breaks(counter, wall int64) bool {
	d := wall - counter - a.offset
	return a.set && !a.guess && (d > jump || d < -jump)
}

// Observe takes the counter and the wall clock of one line, in ns. The smallest offset of the last 10 to 20 minutes wins, because a
// line is printed after its counter was read, and because a wall clock that was set stays so. A line that breaks with the lines before it (see Breaks) starts
// anew.
func (a *Anchor) Observe(counter, wall int64) {
	offset := wall - counter
	switch {
	case !a.set || a.guess || a.Breaks(counter, wall):
		a.offset, a.window, a.from, a.top, a.set, a.guess = offset, offset, counter, counter, true, false
	case counter > a.from+windowLength:
		a.offset, a.window, a.from, a.top = min(a.window, offset), offset, counter, counter
	default:
		a.window = min(a.window, offset)
		a.offset = min(a.offset, offset)
		a.top = max(a.top, counter)
	}
}

// Guess ties the counter to a time that does not come from the log. It only fills the gap until a line carries a wall clock.
func (a *Anchor) Guess(counter, wall int64) {
	if !a.set || a.guess && counter < a.top-jump {
		a.offset, a.top, a.set, a.guess = wall-counter, counter, true, true
		return
	}
	a.top = max(a.top, counter)
}

type anchorKey struct {
	host string
	pid  int64
}

// Anchors are the anchors of one log. It keeps the 4096 processes used last. The zero value is ready; it is not safe for
// concurrent use.
type Anchors struct {
	byKey map[anchorKey]*Anchor
	seq   uint64
}

// Touch notes that a caller that keeps an anchor still uses it.
func (a *Anchors) Touch(an *Anchor) {
	a.seq++
	an.used = a.seq
}

// Get returns the anchor of a process, new if it was not known. An empty host and a zero pid stand for "not known".
func (a *Anchors) Get(host string, pid int64) *Anchor {
	a.seq++
	key := anchorKey{host, pid}
	if an, ok := a.byKey[key]; ok {
		an.used = a.seq
		return an
	}
	if a.byKey == nil {
		a.byKey = make(map[anchorKey]*Anchor)
	}
	if len(a.byKey) >= maxAnchors {
		// A quarter at a time, so that a log with ever new pids does not sort for each.
		for _, an := range a.recent()[maxAnchors*3/4:] {
			delete(a.byKey, an.key)
		}
	}
	an := &Anchor{key: key, used: a.seq}
	a.byKey[key] = an
	return an
}

// Len is how many anchors are kept.
func (a *Anchors) Len() int { return len(a.byKey) }

func (a *Anchors) recent() []*Anchor {
	all := make([]*Anchor, 0, len(a.byKey))
	for _, an := range a.byKey {
		all = append(all, an)
	}
	slices.SortFunc(all, func(x, y *Anchor) int { return cmp.Compare(y.used, x.used) })
	return all
}

// Save writes the anchors used last, nil when there are none. Guesses are not saved: they are made again.
func (a *Anchors) Save() []byte {
	if len(a.byKey) == 0 {
		return nil
	}
	var out []byte
	n := 0
	for _, an := range a.recent() {
		if n == maxSaved {
			break
		}
		if !an.set || an.guess {
			continue
		}
		n++
		out = binary.AppendUvarint(out, uint64(len(an.key.host)))
		out = append(out, an.key.host...)
		out = binary.AppendVarint(out, an.key.pid)
		out = binary.AppendVarint(out, an.offset)
		out = binary.AppendVarint(out, an.top)
	}
	return out
}

// Restore reads what Save wrote. Where bytes are damaged it keeps the anchors before the damage.
func (a *Anchors) Restore(b []byte) {
	// Oldest last in the text, so the order of use is set backwards.
	for used := uint64(maxSaved); len(b) > 0; used-- {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) || used == 0 {
			return
		}
		host := string(b[k : k+int(n)])
		b = b[k+int(n):]
		var v [3]int64
		for i := range v {
			x, k := binary.Varint(b)
			if k <= 0 {
				return
			}
			v[i], b = x, b[k:]
		}
		an := a.Get(host, v[0])
		an.offset, an.window, an.from, an.top, an.set, an.guess, an.used = v[1], v[1], v[2], v[2], true, false, used
		a.seq = max(a.seq, maxSaved)
	}
}
