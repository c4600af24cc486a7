// Package line is the receivers' common front end for one line of a training log: it strips terminal escapes and peels the prefixes of launchers and loggers
// before a record, keeping their values.
package line

import (
	"bytes"
)

// Prefix holds the prefixes around a record. Slices point into the line (or the Peeler's buffer) and share its lifetime.
type Prefix struct {
	RayName []byte // "AgentLoopWorker" of "(AgentLoopWorker pid=1, ip=10.0.0.1)"
	PID     int64  // of the Ray prefix or of a system log; 0: none
	IP      []byte // of the Ray prefix, only on other nodes than the driver's; of other prefixes the host or the pod

	Rank    int64 // of "[rank3]:", "[default3]:" (torchrun), "3: " (srun) or "[1,3]<stdout>:" (mpirun)
	HasRank bool
	Local   bool // the rank is relative to its node: "[default3]:", "[trainer3]:"

	Level  []byte // INFO, DEBUG, …
	Stamp  []byte // the logger's time, as printed, for clock.Stamps
	Logger []byte // logger name
	Source []byte // "file.py:12" or "file.py:12:func"

	Container []byte // time added by docker, Kubernetes, CRI, Determined, mpirun or the journal, in the notation of clock.Stamps
	Yearless  bool   // Container is of a system log, without a year: "Aug  3 09:14:23", for clock.Stamps.Day
	// Repeated is N of Ray's "[repeated Nx across cluster]": the line represents N lines of other workers.
	Repeated int64

	bracketed bool // a stamp or level stood in brackets
}

// Peeler peels lines. The zero value is ready. It is not safe for concurrent use.
//
// The functions below that are named peel… look at the beginning of a line for one prefix: they put its values into a Prefix and return the rest of the line,
// and false where the line begins otherwise. In all of them x-'0' <= 9 is true of digits alone: bytes below '0' wrap around.
type Peeler struct {
	buf   []byte
	stamp [40]byte // for a time in another notation than the line's
	hosts hosts
}

const (
	esc = 0x1b
	// maxKept bounds the buffer kept between lines: a long line now and then must not cost memory in every open file.
	maxKept = 16 << 10
)

// Peel fills p with the prefixes of b, in any order and number, and returns the rest, without ANSI escapes and without Ray's "[repeated …]" tail. It does not
// change b; the result is a part of b or, if b holds escapes, of a buffer that lives until the next call. It allocates only to grow that buffer. Given a
// result, the same Peeler counts the line twice, and may take a word after another prefix for a host of pdsh at the line's beginning.
func (pl *Peeler) Peel(b []byte, p *Prefix) []byte {
	*p = Prefix{}
	if len(b) > 0 && b[0] == esc {
		b = peelColouredRay(b, p)
	}
	// Terminal escapes: the rest is copied without them.
	if i := bytes.IndexByte(b, esc); i >= 0 {
		if cap(pl.buf) > maxKept && len(b) <= maxKept {
			pl.buf = nil
		}
		pl.buf = stripANSI(pl.buf[:0], b, i)
		b = pl.buf
	}
	b = cutRepeated(b, p)
	pl.hosts.lines++                     // evidence for hosts of pdsh: the share of lines that begin with one
	for first := true; ; first = false { // first: nothing is peeled yet
		// "[TQ-…]" is the tag of a TransferQueue record and no prefix. Most lines of the longest logs have one, so these lines end here, before all tries.
		if len(b) > 3 && b[0] == '[' && b[1] == 'T' && b[2] == 'Q' && b[3] == '-' {
			return b
		}
		rest, ok := peelOne(b, p)
		if !ok {
			rest, ok = pl.peelLauncher(b, p, first)
			if !ok {
				return b
			}
		}
		b = rest
		// One blank belongs to the prefix; more are the record's own indentation.
		if len(b) > 0 && b[0] == ' ' {
			b = b[1:]
		}
	}
}

// peelColouredRay removes "\x1b[36m(Name pid=N)\x1b[0m ", with which Ray begins a worker's line: the rest of most lines holds no escape, and needs no copy. Any
// other line comes back unchanged.
func peelColouredRay(b []byte, p *Prefix) []byte {
	text := b[escapeLen(b):]
	if len(text) == 0 || text[0] != '(' {
		return b
	}
	rest, ok := peelRay(text, p)
	prefix := text[:len(text)-len(rest)]
	endsColoured := len(rest) > 0 && rest[0] == esc
	if !ok || bytes.IndexByte(prefix, esc) >= 0 || !endsColoured {
		*p = Prefix{}
		return b
	}
	rest = rest[escapeLen(rest):]
	if len(rest) > 0 && rest[0] == ' ' {
		rest = rest[1:]
	}
	return rest
}

// peelOne removes one prefix of a logger, of Ray, torchrun, srun, Determined or a container tool, and the blanks before the prefix. The first byte decides
// which prefix is looked for; the prefixes of other launchers are looked for later, by peelLauncher.
func peelOne(b []byte, p *Prefix) ([]byte, bool) {
	t := b
	for len(t) > 0 && (t[0] == ' ' || t[0] == '\t') {
		t = t[1:]
	}
	if len(t) < 3 {
		return nil, false
	}
	switch c := t[0]; {
	case c == '[':
		return peelBracket(t, p)
	case c == '(':
		return peelRay(t, p)
	case c >= '0' && c <= '9':
		return peelDigits(t, p)
	case c >= 'A' && c <= 'Z':
		return peelLevel(t, p)
	}
	return nil, false
}

// peelLevel reads "LEVEL:2026-02-11 16:40:00,120:" (verl's set_basic_config), "LEVEL 2026-02-11 16:40:00 " (LeRobot's init_logging) and
// "DLL 2026-02-11 16:40:00.123456 - " (NVIDIA's dllogger).
func peelLevel(b []byte, p *Prefix) ([]byte, bool) {
	level := levelLen(b)
	if level == 0 && bytes.HasPrefix(b, []byte("DLL ")) {
		if stamp := StampLen(b[4:]); stamp > 0 && bytes.HasPrefix(b[4+stamp:], []byte(" - ")) {
			p.Stamp = b[4 : 4+stamp]
			return b[4+stamp+2:], true
		}
	}
	if level == 0 || level == len(b) || b[level] != ':' && b[level] != ' ' {
		return nil, false
	}
	// The same byte, a colon or a blank, stands before and after the stamp.
	separator := b[level]
	stamp := StampLen(b[level+1:])
	end := level + 1 + stamp
	if stamp == 0 || end >= len(b) || b[end] != separator {
		return nil, false
	}
	p.Level, p.Stamp = b[:level], b[level+1:end]
	if separator == ' ' { // Peel takes the blank off
		return b[end:], true
	}
	return b[end+1:], true
}

// peelRay reads "(Name pid=N)" and "(Name pid=N, ip=A)". Names hold dots, colons, parentheses (an actor's class) and blanks.
func peelRay(b []byte, p *Prefix) ([]byte, bool) {
	// Ray's names are short: looking further would turn text in parentheses into a prefix.
	head := b[:min(len(b), 256)]
	nameEnd := bytes.Index(head, []byte(" pid="))
	if nameEnd < 2 {
		return nil, false
	}
	pid, pidLen := digits(head[nameEnd+5:])
	if pidLen == 0 {
		return nil, false
	}
	end := nameEnd + 5 + pidLen
	var ip []byte
	if bytes.HasPrefix(head[end:], []byte(", ip=")) {
		ipLen := bytes.IndexByte(head[end+5:], ')')
		if ipLen < 1 {
			return nil, false
		}
		ip = head[end+5 : end+5+ipLen]
		if bytes.IndexByte(ip, ' ') >= 0 {
			return nil, false
		}
		end += 5 + ipLen
	}
	if end >= len(head) || head[end] != ')' {
		return nil, false
	}
	p.RayName, p.PID, p.IP = b[1:nameEnd], pid, ip
	return b[end+1:], true
}

// peelBracket reads "[rank3]:" and "[default3]:" (torchrun), "[rank=3] " and "[UTC time]" (Determined), "[asctime]", "[asctime logger]", "[asctime LEVEL]",
// "[LEVEL]" and, after brackets with a time or level, "[file:line:func]". b has at least three bytes.
func peelBracket(b []byte, p *Prefix) ([]byte, bool) {
	in := b[1:]
	if in[0] == 'r' || in[0] == 'd' {
		if rest, ok := peelBracketRank(b, p); ok {
			return rest, true
		}
	}
	if n := StampLen(in); n > 0 && n < len(in) && in[n] == ']' {
		if in[n-1] == 'Z' && p.Container == nil { // only Determined's log prints UTC in brackets, in front of its own tag
			if rest, ok := peelDetermined(in[n+1:], p); ok {
				p.Container = in[:n]
				return rest, true
			}
		}
		p.Stamp, p.bracketed = in[:n], true
		return in[n+1:], true
	}
	if n := StampLen(in); n > 0 && n < len(in) && in[n] == ' ' { // "[2026-02-11 16:40:00 swin_tiny]", "[2026-02-11 16:40:00,123 INFO]"
		if end := bytes.IndexByte(in[:min(len(in), n+64)], ']'); end > n+1 && isName(in[n+1:end]) {
			if word := in[n+1 : end]; levelLen(word) == len(word) {
				p.Level = word
			} else {
				p.Logger = word
			}
			p.Stamp, p.bracketed = in[:n], true
			return in[end+1:], true
		}
	}
	if n := levelLen(in); n > 0 && n < len(in) && in[n] == ']' {
		p.Level, p.bracketed = in[:n], true
		return in[n+1:], true
	}
	if !p.bracketed { // a source is only in a row of brackets
		return nil, false
	}
	if end := bytes.IndexByte(in[:min(len(in), 128)], ']'); end > 0 && isSource(in[:end]) {
		p.Source = in[:end]
		return in[end+1:], true
	}
	return nil, false
}

// peelBracketRank reads "[rank3]:", "[rank=3] " and "[default3]:".
func peelBracketRank(b []byte, p *Prefix) ([]byte, bool) {
	in := b[1:]
	switch {
	case bytes.HasPrefix(in, []byte("rank=")):
		rank, n := digits(in[5:])
		if n == 0 || len(in) < n+7 || in[n+5] != ']' || in[n+6] != ' ' {
			return nil, false
		}
		p.Rank, p.HasRank, p.Local = rank, true, false
		return in[n+6:], true
	case bytes.HasPrefix(in, []byte("rank")):
		rest, ok := peelRank(b, in[4:], p)
		p.Local = p.Local && !ok // a rank of the job, which replaces a local one
		return rest, ok
	case bytes.HasPrefix(in, []byte("default")):
		if p.HasRank && !p.Local { // the global rank says more
			return peelRank(b, in[7:], &Prefix{})
		}
		rest, ok := peelRank(b, in[7:], p)
		p.Local = p.Local || ok
		return rest, ok
	}
	return nil, false
}

// peelRank reads the number and the end of "[rank3]:" or "[default3]:". in is the tail of b that begins with the number.
func peelRank(b, in []byte, p *Prefix) ([]byte, bool) {
	rank, n := digits(in)
	if n == 0 || len(in) < n+2 || in[n] != ']' || in[n+1] != ':' {
		return nil, false
	}
	p.Rank, p.HasRank = rank, true
	return b[len(b)-len(in)+n+2:], true
}

// isSource knows "file.py:12" and "file.py:12:func".
func isSource(b []byte) bool {
	i := bytes.IndexByte(b, ':')
	if i < 1 || bytes.IndexByte(b, ' ') >= 0 {
		return false
	}
	_, n := digits(b[i+1:])
	return n > 0 && (i+1+n == len(b) || b[i+1+n] == ':')
}

// peelDigits reads "3: " (srun --label) and a time: one that a container tool or the journal added, with whatever such a tool puts after, or the logger's own
// "2026-08-20 10:15:00,123 - INFO - name - ", "2026-08-20 10:15:00 " or "2026-08-20 10:15:00:".
func peelDigits(b []byte, p *Prefix) ([]byte, bool) {
	n := StampLen(b)
	if n == 0 {
		rank, n := digits(b) // a longer number is no rank
		if n == 0 || n > 6 || len(b) < n+2 || b[n] != ':' || b[n+1] != ' ' {
			return nil, false
		}
		p.Rank, p.HasRank = rank, true
		return b[n+1:], true
	}
	stamp, rest := b[:n], b[n:]
	// A container tool's time is in RFC 3339 ("2026-08-03T09:14:23.8Z", "…+08:00"), and stands before the logger's.
	mayBeContainers := stamp[10] == 'T' && p.Container == nil && p.Stamp == nil && len(rest) > 0 && rest[0] == ' '
	utc := stamp[n-1] == 'Z'
	zoned := stamp[n-3] == ':' && (stamp[n-6] == '+' || stamp[n-6] == '-')
	if mayBeContainers && (utc || zoned) {
		p.Container = stamp
		// CRI: "<time> stdout F <text>", where P marks a partial line.
		if len(rest) > 10 && (rest[8] == 'F' || rest[8] == 'P') && rest[9] == ' ' && rest[7] == ' ' &&
			(bytes.HasPrefix(rest, []byte(" stdout ")) || bytes.HasPrefix(rest, []byte(" stderr "))) {
			return rest[9:], true
		}
		return behindTime(rest, p), true
	}
	if mayBeContainers {
		if after, ok := peelIdent(rest, p); ok { // journalctl prints zones without a colon
			p.Container = stamp
			return after, true
		}
	}
	if level, name, r, ok := dashes(rest); ok {
		p.Stamp, p.Level, p.Logger = stamp, level, name
		return r, true
	}
	if len(rest) == 0 || rest[0] == ' ' {
		p.Stamp = stamp
		return rest, true
	}
	if rest[0] == ':' {
		p.Stamp = stamp
		return rest[1:], true
	}
	return nil, false
}

// dashes reads " - LEVEL - name - " and " - name - LEVEL - ", the two usual orders of Python's logging, and " - LEVEL - " without a name.
func dashes(b []byte) (level, name, rest []byte, ok bool) {
	sep := []byte(" - ")
	if !bytes.HasPrefix(b, sep) {
		return nil, nil, nil, false
	}
	first, rest, ok := bytes.Cut(b[3:], sep)
	if !ok {
		return nil, nil, nil, false
	}
	second, after, ok2 := bytes.Cut(rest, sep)
	switch {
	case levelLen(first) == len(first) && len(first) > 0:
		if ok2 && isName(second) {
			return first, second, after, true
		}
		return first, nil, rest, true
	case ok2 && isName(first) && len(second) > 0 && levelLen(second) == len(second):
		return second, first, after, true
	}
	return nil, nil, nil, false
}

// isName reports whether a text can be the name of a logger: letters, digits, dots, underscores and hyphens.
func isName(b []byte) bool {
	for _, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return len(b) > 0
}

// levelLen returns the length of the log level at the beginning of b, 0 if none.
func levelLen(b []byte) int {
	n := 0
	for n < len(b) && n < 9 && b[n] >= 'A' && b[n] <= 'Z' {
		n++
	}
	switch string(b[:n]) {
	case "INFO", "DEBUG", "WARNING", "ERROR", "WARN", "CRITICAL", "FATAL", "TRACE", "NOTICE":
		return n
	}
	return 0
}

// StampLen returns the length of the time at the beginning of b: "2026-02-11 16:40:00" with T or a blank between, an optional fraction after a dot or comma,
// and an optional zone; or "2026/02/11 16:40:00" (the files of mmengine, mmengine/logging/logger.py). 0: none.
func StampLen(b []byte) int {
	if len(b) < 19 || b[4] != '-' && b[4] != '/' || b[7] != b[4] || b[10] != ' ' && b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return 0
	}
	// Most digits may be 0 to 9. The first one of a month is at most 1, of a day 3, of an hour 2, of a minute 5, of a second 6 (a leap second).
	ok := b[0]-'0' <= 9 && b[1]-'0' <= 9 && b[2]-'0' <= 9 && b[3]-'0' <= 9 && b[5]-'0' <= 1 && b[6]-'0' <= 9 &&
		b[8]-'0' <= 3 && b[9]-'0' <= 9 && b[11]-'0' <= 2 && b[12]-'0' <= 9 && b[14]-'0' <= 5 && b[15]-'0' <= 9 && b[17]-'0' <= 6 && b[18]-'0' <= 9
	if !ok {
		return 0
	}
	n := 19
	if n+1 < len(b) && (b[n] == ',' || b[n] == '.') && b[n+1]-'0' <= 9 {
		for n += 2; n < len(b) && b[n]-'0' <= 9; n++ {
		}
	}
	if n < len(b) {
		switch b[n] {
		case 'Z':
			n++
		case '+', '-':
			z := b[n+1:] // after the sign
			switch {
			case len(z) >= 5 && z[2] == ':' && allDigits(z[:2]) && allDigits(z[3:5]):
				n += 6
			case len(z) >= 4 && allDigits(z[:4]):
				n += 5
			}
		}
	}
	return n
}

// allDigits reports whether all bytes of b are digits.
func allDigits(b []byte) bool {
	for _, c := range b {
		if c-'0' > 9 {
			return false
		}
	}
	return true
}

// digits reads a decimal number of at most 18 digits and returns its length, 0 if none.
func digits(b []byte) (v int64, n int) {
	for n < len(b) && b[n]-'0' <= 9 {
		if n == 18 {
			return 0, 0
		}
		v = v*10 + int64(b[n]-'0')
		n++
	}
	return v, n
}

var (
	repeatedEnd = []byte("x across cluster]")
	repeatedWhy = []byte(" (Ray deduplicates logs")
)

// cutRepeated removes Ray's " [repeated 7x across cluster]" from the end of a line, with the explanation " (Ray deduplicates logs …)" after its first use, and
// adds the number to p.Repeated. A line of several such ends, from a Ray within Ray, loses all.
func cutRepeated(b []byte, p *Prefix) []byte {
	for {
		t := b // loses one part after another; b stays the answer until all parts were there
		if n := len(t); n > 0 && t[n-1] == ')' {
			from := max(0, n-300) // the explanation is shorter
			i := bytes.Index(t[from:], repeatedWhy)
			if i < 0 {
				return b
			}
			t = t[:from+i]
		}
		t, ok := bytes.CutSuffix(t, repeatedEnd)
		if !ok {
			return b
		}
		n := len(t)
		for n > 0 && t[n-1]-'0' <= 9 {
			n--
		}
		v, d := digits(t[n:])
		t, ok = bytes.CutSuffix(t[:n], []byte("[repeated "))
		if !ok || d == 0 {
			return b
		}
		p.Repeated += v
		for b = t; len(b) > 0 && b[len(b)-1] == ' '; b = b[:len(b)-1] {
		}
	}
}

// stripANSI appends b to out without its CSI and OSC escapes (ECMA-48). first is the index of the first ESC. A lone ESC is removed too, so nothing of the
// result can read as an escape.
func stripANSI(out, b []byte, first int) []byte {
	for i := first; i >= 0; i = bytes.IndexByte(b, esc) {
		out = append(out, b[:i]...)
		b = b[i+escapeLen(b[i:]):]
	}
	return append(out, b...)
}

// escapeLen returns the length of the escape at the beginning of b, at least 1.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 1
	}
	switch b[1] {
	case '[': // CSI: parameters, intermediates, one final byte
		for n := 2; n < len(b); n++ {
			switch c := b[n]; {
			case c >= 0x40 && c <= 0x7e:
				return n + 1
			case c < 0x20 || c > 0x3f: // neither a parameter nor an intermediate: the escape is cut off here
				return n
			}
		}
		return len(b)
	case ']': // OSC: ends with BEL or ESC \; without an end it must not eat the record
		if n := bytes.IndexAny(b[2:], "\x07\x1b"); n >= 0 {
			n += 2
			if b[n] == 0x07 {
				return n + 1
			}
			if n+1 < len(b) && b[n+1] == '\\' {
				return n + 2
			}
		}
		return 2
	case '(', ')': // character set
		return min(3, len(b))
	}
	if b[1] >= 0x40 && b[1] <= 0x5f { // the other escapes of two bytes (Fe)
		return 2
	}
	return 1
}

// Around adds the values of the prefixes outside of an envelope, such as a JSON object around the line, where the prefixes inside have none; level, logger and
// source are those inside. Lines that Ray left out are summed.
func (p *Prefix) Around(outer *Prefix) {
	if p.PID == 0 && p.RayName == nil {
		p.RayName, p.PID = outer.RayName, outer.PID
	}
	if p.IP == nil {
		p.IP = outer.IP
	}
	if !p.HasRank {
		p.Rank, p.HasRank, p.Local = outer.Rank, outer.HasRank, outer.Local
	}
	if p.Stamp == nil {
		p.Stamp = outer.Stamp
	}
	if p.Container == nil {
		p.Container, p.Yearless = outer.Container, outer.Yearless
	}
	p.Repeated += outer.Repeated
}
