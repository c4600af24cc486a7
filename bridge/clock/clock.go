// Package clock converts the clocks found in logs to nanoseconds since the Unix epoch: stamps without a zone, decimal seconds, and monotonic counters, anchored
// to the wall clock by lines that print both.
package clock

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trainbridge/trainbridge/internal/wire"
)

// ErrStamp is the error for a text that is no date and time.
var ErrStamp = errors.New("not a time stamp")

// Stamps reads the stamps of one log. It remembers the last minute, because finding a zone's offset is the costly part. It is not safe for concurrent use.
type Stamps struct{ local, utc minutes }

// minutes reads the minutes of one zone.
type minutes struct {
	loc  *time.Location
	text [16]byte // "2026-02-11 16:40"
	unix int64    // Unix time of text, ns
}

// NewStamps reads stamps without a zone as times in loc. An hour repeated when clocks change is read as the one that follows the stamp before; where no stamp
// of the hours around came before, and in an hour skipped, as in Go's time.Date: the text is ambiguous. Such a log is right to the hour only with a zone.
func NewStamps(loc *time.Location) *Stamps {
	return &Stamps{minutes{loc: loc}, minutes{loc: time.UTC}}
}

// Parse reads "2026-02-11 16:40:00", with - or / in the date and a blank or T after, an optional fraction after "." or "," (digits beyond nanoseconds
// are dropped) and an optional zone (Z, +08:00, +0800), and returns Unix nanoseconds. Years 1970 to 2261.
//
// Here and below, x-'0' > 9 is true of all bytes but digits: bytes below '0' wrap around.
func (s *Stamps) Parse(b []byte) (int64, error) {
	if len(b) < 19 {
		return 0, ErrStamp
	}
	// The minute is read at the end, by the zone's cache.
	sec := int64(b[17]-'0')*10 + int64(b[18]-'0')
	if b[16] != ':' || b[17]-'0' > 5 || b[18]-'0' > 9 {
		return 0, ErrStamp
	}
	frac, zone, ok := fraction(b[19:])
	if !ok {
		return 0, ErrStamp
	}
	if len(zone) > 0 {
		offset, ok := zoneSeconds(zone)
		if !ok {
			return 0, ErrStamp
		}
		minute, err := s.utc.parse(b)
		return since1970(minute+(sec-offset)*1e9+frac, err)
	}
	minute, err := s.local.parse(b)
	return since1970(minute+sec*1e9+frac, err)
}

// Day reads "Aug 13 09:14:23" and an optional fraction, a time of a system log without a year. The day has two columns: a blank comes before a single digit.
// The year is the latest with a result no later than a day after the given time.
func (s *Stamps) Day(b []byte, before time.Time) (int64, error) {
	if len(b) < 15 {
		return 0, ErrStamp
	}
	month, err := time.Parse("Jan", string(b[:3]))
	if err != nil {
		return 0, ErrStamp
	}
	before = before.In(s.local.loc).Add(24 * time.Hour)
	day := 10*int(b[4]&0xf) + int(b[5]-'0')                     // the blank of "Aug  3" is 0x20, and counts as 0
	for year := before.Year(); year > before.Year()-8; year-- { // 29 February is in every fourth year, and not in 2100
		text := fmt.Appendf(nil, "%04d-%02d-%02d %s", year, month.Month(), day, b[7:])
		ns, err := s.Parse(text)
		if err == nil && ns <= before.UnixNano() {
			return ns, nil
		}
	}
	return 0, ErrStamp
}

// since1970 refuses a time that is in 1970 in its own zone but before 1970 in UTC.
func since1970(ns int64, err error) (int64, error) {
	if err == nil && ns < 0 {
		return 0, ErrStamp
	}
	return ns, err
}

// parse returns the time of the minute at the beginning of b, Unix s.
func (m *minutes) parse(b []byte) (int64, error) {
	if string(b[:16]) != string(m.text[:]) {
		unix, err := parseMinute(b, m.loc)
		if err != nil {
			return 0, err
		}
		m.unix = m.follow(unix)
		copy(m.text[:], b)
	}
	return m.unix, nil
}

const (
	// lateStamps is how late (ns) a line may stand in a log: a stamp that is further back is of the hour repeated.
	lateStamps = int64(5 * time.Minute)
	// aroundStamps is the distance (ns) within which the stamp before says which of two equal hours a stamp is of.
	aroundStamps = int64(6 * time.Hour)
)

// follow is unix, or in an hour repeated as clocks go back the same local time an hour earlier or later: the first of both that is not before the last minute.
func (m *minutes) follow(unix int64) int64 {
	t := time.Unix(0, unix).In(m.loc)
	_, offset := t.Zone()
	_, before := t.Add(-3 * time.Hour).Zone()
	_, after := t.Add(3 * time.Hour).Zone()
	back := int64(before-after) * 1e9
	if back <= 0 || m.unix == 0 {
		return unix
	}
	first := unix
	if offset == after {
		first -= back
	}
	_, of := time.Unix(0, first).In(m.loc).Zone()
	_, then := time.Unix(0, first+back).In(m.loc).Zone()
	switch {
	case of != before || then != after: // the local time was once
		return unix
	case m.unix < first-aroundStamps || m.unix > first+aroundStamps:
		return unix
	case first >= m.unix-lateStamps:
		return first
	default:
		return first + back
	}
}

// fraction reads the text after the seconds, ".120" or ",120" in ns, and returns the rest, the zone. A text without a fraction is a zone, or empty. ok is
// false for a point without a digit.
func fraction(b []byte) (ns int64, zone []byte, ok bool) {
	if len(b) == 0 || b[0] != '.' && b[0] != ',' {
		return 0, b, true
	}
	b = b[1:]
	n, scale := 0, int64(1e8) // digits read; ns of the next digit, 0 beyond the ninth
	for n < len(b) && b[n]-'0' <= 9 {
		ns += int64(b[n]-'0') * scale
		scale /= 10
		n++
	}
	return ns, b[n:], n > 0
}

// zoneSeconds reads a zone, "Z", "+08:00" or "+0800", as seconds east of UTC.
func zoneSeconds(z []byte) (int64, bool) {
	if len(z) == 1 && z[0] == 'Z' {
		return 0, true
	}
	if len(z) == 6 && z[3] == ':' {
		z = []byte{z[0], z[1], z[2], z[4], z[5]}
	}
	if len(z) != 5 || z[0] != '+' && z[0] != '-' || z[1]-'0' > 2 || z[2]-'0' > 9 || z[3]-'0' > 5 || z[4]-'0' > 9 {
		return 0, false
	}
	hours := int64(z[1]-'0')*10 + int64(z[2]-'0')
	if hours > 23 {
		return 0, false
	}
	sec := hours*3600 + (int64(z[3]-'0')*10+int64(z[4]-'0'))*60
	if z[0] == '-' {
		sec = -sec
	}
	return sec, true
}

// parseMinute reads the first 16 bytes of a stamp, "2026-02-11 16:40" or "2026/02/11T16:40", in loc, as Unix nanoseconds.
func parseMinute(b []byte, loc *time.Location) (int64, error) {
	if b[4] != '-' && b[4] != '/' || b[7] != b[4] || b[10] != ' ' && b[10] != 'T' || b[13] != ':' {
		return 0, ErrStamp
	}
	for _, i := range [...]int{0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15} {
		if b[i]-'0' > 9 {
			return 0, ErrStamp
		}
	}
	two := func(i int) int { return int(b[i]-'0')*10 + int(b[i+1]-'0') }
	year, month, day, hour, minute := two(0)*100+two(2), two(5), two(8), two(11), two(14)
	// 2262 is where int64 nanoseconds end.
	if year < 1970 || year > 2261 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 {
		return 0, ErrStamp
	}
	t := time.Date(year, time.Month(month), day, hour, minute, 0, 0, loc)
	if time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() != day { // 31 February
		return 0, ErrStamp
	}
	return t.UnixNano(), nil
}

// ZoneConfig configures reading of stamps without a zone. It is squashed into the config of every file receiver.
type ZoneConfig struct {
	// Timezone is the zone in which the job's logger prints its stamps: an IANA name, or an offset such as +08:00. Default: the collector's local zone.
	Timezone string `mapstructure:"timezone"`
}

// Location returns the zone.
func (c ZoneConfig) Location() (*time.Location, error) {
	if c.Timezone == "" {
		return time.Local, nil
	}
	if offset, ok := zoneSeconds([]byte(c.Timezone)); ok {
		return time.FixedZone(c.Timezone, int(offset)), nil
	}
	loc, err := time.LoadLocation(c.Timezone)
	if err != nil {
		return nil, fmt.Errorf("'timezone': %w: use an IANA name such as Asia/Shanghai, an offset such as +08:00, or leave it out for the local zone", err)
	}
	return loc, nil
}

// jump is by how much an offset may change before the line is taken to have another clock: a reboot, or a new process in the same file whose
// counter began anew.
const jump = int64(60e9)

// windowLength, of a window in Anchor, is in ns of the counter.
const windowLength = int64(600e9)

const (
	maxAnchors = 4096
	// maxSaved bounds the anchors that Save writes into the checkpoint, about 10 KB.
	maxSaved = 256
)

// Anchor relates the monotonic counter of one process (Python's perf_counter) to the wall clock. Of the offsets that the lines of a window of 10 minutes show,
// the smallest counts, see Observe.
type Anchor struct {
	key    anchorKey
	offset int64  // wall − counter, ns: the smallest of this window and the window before
	window int64  // smallest of this window
	from   int64  // counter at the beginning of this window
	top    int64  // highest counter seen
	set    bool   // offset has a value
	guess  bool   // of Guess, from outside the log
	fine   bool   // a stamp had more than whole seconds; not saved
	used   uint64 // Anchors.seq at the last use
}

// Offset returns wall − counter in ns. ok is false before the first Observe or Guess.
func (a *Anchor) Offset() (ns int64, ok bool) { return a.offset, a.set }

// Guessed reports whether the offset is that of Guess: no line of this process carried a wall clock.
func (a *Anchor) Guessed() bool { return a.guess }

// Coarse reports whether all stamps seen by this process had whole seconds: the offset is up to a second too small.
func (a *Anchor) Coarse() bool { return !a.fine }

// Breaks reports whether a line with these times (ns) is of another clock than the lines before: a reboot or an end of the process cut open work off. A counter
// that went back together with the wall clock does not break: the line is only late. false before the first wall clock, as with a guess.
func (a *Anchor) Breaks(counter, wall int64) bool {
	d := wall - counter - a.offset
	return a.set && !a.guess && (d > jump || d < -jump)
}

// Observe records the counter and the wall clock of one line, in ns. The smallest offset of the last 10 to 20 minutes is used, because a line is printed after
// its counter was read, and because an adjustment of the wall clock persists. A line that breaks (see Breaks) starts anew.
func (a *Anchor) Observe(counter, wall int64) {
	offset := wall - counter
	a.fine = a.fine || wall%int64(time.Second) != 0
	switch {
	case !a.set || a.guess || a.Breaks(counter, wall):
		a.offset, a.window, a.from, a.top, a.set, a.guess = offset, offset, counter, counter, true, false
	case counter > a.from+windowLength: // the window before last is forgotten
		a.offset, a.window, a.from, a.top = min(a.window, offset), offset, counter, counter
	default:
		a.window = min(a.window, offset)
		a.offset = min(a.offset, offset)
		a.top = max(a.top, counter)
	}
}

// Guess anchors the counter to a time from outside the log, until a line carries a wall clock. The first guess stays, unless the counter fell by more than
// jump: then a new process counts.
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

// Anchors are the anchors of one log, of the 3072 to 4096 processes used last. The zero value is ready; it is not safe for concurrent use.
type Anchors struct {
	byKey map[anchorKey]*Anchor
	seq   uint64 // number of uses
}

// Touch marks an anchor kept by a caller as still in use.
func (a *Anchors) Touch(an *Anchor) {
	a.seq++
	an.used = a.seq
}

// Get returns the anchor of a process, new if unknown. An empty host and a zero pid are unknown.
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
		// A quarter at a time: a log with ever new pids would otherwise sort for each.
		for _, an := range a.recent()[maxAnchors*3/4:] {
			delete(a.byKey, an.key)
		}
	}
	an := &Anchor{key: key, used: a.seq}
	a.byKey[key] = an
	return an
}

// Len returns the number of anchors kept.
func (a *Anchors) Len() int { return len(a.byKey) }

// recent returns all anchors, the one used last first.
func (a *Anchors) recent() []*Anchor {
	all := make([]*Anchor, 0, len(a.byKey))
	for _, an := range a.byKey {
		all = append(all, an)
	}
	slices.SortFunc(all, func(x, y *Anchor) int { return cmp.Compare(y.used, x.used) })
	return all
}

// Save writes the offsets of the maxSaved anchors used last, for the log's checkpoint, nil if none. Guesses are not saved, but made again.
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
		out = wire.AppendBytes(out, an.key.host)
		out = binary.AppendVarint(out, an.key.pid)
		out = binary.AppendVarint(out, an.offset)
		out = binary.AppendVarint(out, an.top)
	}
	return out
}

// Restore reads the output of Save. Of damaged bytes it keeps the anchors before the damage.
func (a *Anchors) Restore(b []byte) {
	// Save begins with the anchor used last: used counts down.
	c := wire.Cursor{Rest: b}
	for used := uint64(maxSaved); len(c.Rest) > 0 && used > 0; used-- {
		host, pid, offset, top := string(c.Bytes()), c.Varint(), c.Varint(), c.Varint()
		if c.Bad {
			return
		}
		an := a.Get(host, pid)
		an.offset, an.window, an.from, an.top, an.set, an.guess, an.used = offset, offset, top, top, true, false, used
		a.seq = max(a.seq, maxSaved) // later uses count on from the restored ones
	}
}
