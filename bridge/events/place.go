package events

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/line"
)

// place is the origin and time of a line, from its prefix.
type place struct {
	rank, local int64 // -1: unknown
	pid         int64 // 0: unknown
	host        string
	time        int64  // ns since the epoch; 0: unknown
	text        []byte // the line after its prefixes
}

// key distinguishes the lines of several processes in one log.
type key struct {
	rank, local, pid int64
	host             string
}

func (p *place) key() key { return key{p.rank, p.local, p.pid, p.host} }

var (
	// Prefixes beyond bridge/line: pdsh's and parallel-ssh's host, milabench's and docker compose's name, Open MPI's --tag-output, Rich's frame.
	hostPrefix = regexp.MustCompile(`^\s*((?:\d{1,3}\.){3}\d{1,3}|[a-z][a-z-]*[\w.-]*\d[\w.-]*): (?:\s*)`)
	namePrefix = regexp.MustCompile(`^\s*[\w./-]+ +(?:\[std(?:err|out)\] |\|{1,2} )`)
	// The level, and vLLM's stamp and source, before each line of a traceback.
	tagPrefix   = regexp.MustCompile(`^<\w*> +\[`) // Determined's level before its stamp
	levelPrefix = regexp.MustCompile(`^(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL) (?:\d\d-\d\d \d\d:\d\d:\d\d )?(?:\[?[\w./-]+\.py:\d+\] ?)?`)
	gluedRank   = regexp.MustCompile(`\[rank\d+\]: ?(?:Traceback|\S*Error|\[[EWF])`)
	mpiPrefix   = regexp.MustCompile(`^\[\d+,(\d+)\]<std(?:err|out)>: ?`)
	// glog's level, month, day and time; before PyTorch 2.3 only the level. A month below 10 has one digit in PyTorch's logger.
	glogStamp   = regexp.MustCompile(`[EWIFV](\d{1,2})(\d{2}) (\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?`)
	shortStamp  = regexp.MustCompile(`\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d{2})-(\d{2}) (\d{2}):(\d{2}):(\d{2})()`)
	syslogStamp = regexp.MustCompile(`^([A-Z][a-z]{2}) +(\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\S+) `)
	dmesgStamp  = regexp.MustCompile(`^\[[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\d{4})\]`)
	fullStamp   = regexp.MustCompile(`(\d{4})-(\d{2})-(\d{2})[T _-](\d{2}:\d{2}:\d{2})([.,]\d+)?(Z|[+-]\d{2}:?\d{2})?`)
	ncclHost    = regexp.MustCompile(`(?:^|[\s\]|])([A-Za-z0-9][\w.-]*):(\d+):(\d+) \[(\d+)\] `)
	kernelHost  = regexp.MustCompile(`^(?:\S+ )?([A-Za-z0-9][\w.-]*) kernel: `) // the stamp before may be taken off
	podWord     = regexp.MustCompile(`\bpod/([\w.-]+)|\bdeletion Pod [\w-]+/([\w.-]+)`)
	rankWord    = regexp.MustCompile(`\[rank(\d+)\]|\bRankID:(\d+)`)
	groupWord   = regexp.MustCompile(`\[((?:PG [^\]]*? ?)?)Rank (\d+)\]`)
	months      = map[string]time.Month{
		"Jan": 1, "Feb": 2, "Mar": 3, "Apr": 4, "May": 5, "Jun": 6, "Jul": 7, "Aug": 8, "Sep": 9, "Oct": 10, "Nov": 11, "Dec": 12,
	}
)

// placer finds the places of the lines of one log.
type placer struct {
	peeler line.Peeler
	prefix line.Prefix
	stamps *clock.Stamps
	zone   *time.Location
	full   time.Time // the last full stamp; zero: none was seen
	wrote  time.Time // when the log was written
}

// of returns the place of a line: its text without prefixes, and the values of the prefixes. The prefixes of launchers may be around each other in any order,
// so all are tried again until none is left; 6 is more than was ever seen. The text is valid until the next call, and no longer than the line.
func (pl *placer) of(text []byte) place {
	p := place{rank: -1, local: -1}
	for range 6 {
		before := len(text)
		text = pl.peeler.Peel(text, &pl.prefix)
		pl.take(&p)
		text = bytes.TrimLeft(bytes.TrimPrefix(text, []byte("│")), "\r") // Rich's frame around a traceback
		if m := tagPrefix.Find(text); m != nil {
			text = text[len(m)-1:]
		}
		if m := mpiPrefix.FindSubmatch(text); m != nil {
			p.rank = number(string(m[1]), -1)
			text = text[len(m[0]):]
		}
		if m := hostPrefix.FindSubmatch(text); m != nil && p.host == "" && !noHost(m[1]) {
			p.host = strings.TrimPrefix(string(m[1]), "slurmstepd-")
			if p.host != string(m[1]) {
				p.rank = -1 // srun -l labels the daemon's lines with a task, too
			}
			text = text[len(m[0]):]
		}
		if m := levelPrefix.Find(text); m != nil && bytes.HasSuffix(m, []byte(" ")) { // without a blank after the source, the match is a part of the text
			if p.time == 0 { // vLLM's stamp is a part of this prefix
				p.time = pl.when(text)
			}
			text = text[len(m):]
		}
		if m := namePrefix.Find(text); m != nil {
			text = text[len(m):]
		}
		if len(text) < before {
			continue
		}
		// No prefix is left at the beginning.
		m := gluedRank.FindIndex(text)
		if m == nil || m[0] == 0 {
			break
		}
		text = text[m[0]:] // after a progress bar without a line end
	}
	p.text = bytes.TrimRight(text, " \t\r│")
	return p
}

// noHost reports whether a name before a colon is none of a host: "mlx5", by which rdma-core begins its messages, or the class of an exception.
func noHost(name []byte) bool { return string(name) == "mlx5" || endsLikeException(name) }

// Glued returns the text in a line after a record without a line end of its own, such as a progress bar: the beginning of a traceback, an error of a rank, or
// text that may be of a form. nil: none.
func Glued(line []byte) []byte {
	line = bytes.TrimRight(line, " \t\r")
	if bytes.HasSuffix(bytes.TrimSuffix(line, []byte(":")), tracebackText) || bytes.Contains(line, []byte("[rank")) {
		if m := gluedRank.FindIndex(line); m != nil && m[0] > 0 {
			return line[m[0]:]
		}
		if i := bytes.LastIndex(line, tracebackText); i > 0 && line[i-1] == ']' { // the end of tqdm's bar
			return line[i:]
		}
	}
	if text := behindBar(line); text != nil {
		if isForm, _ := shared().find(text, new(hits)); isForm {
			return text
		}
	}
	return nil
}

// behindBar returns the text after a bar of tqdm with its speed, "… 27/35 [00:12<00:03,  2.08it/s, loss=6.617]"; nil: no bar, or nothing after it.
func behindBar(line []byte) []byte {
	remaining := bytes.IndexByte(line, '<') // most records end here
	if remaining < 0 {
		return nil
	}
	i := max(bytes.LastIndex(line, []byte("it/s")), bytes.LastIndex(line, []byte("s/it")))
	if i < remaining {
		return nil
	}
	end := bytes.IndexByte(line[i:], ']')
	if end < 0 {
		return nil
	}
	if text := bytes.TrimLeft(line[i+end+1:], " \t\r"); len(text) > 0 {
		return text
	}
	return nil
}

// take adds the values of a prefix of bridge/line to a place. The first rank of the job and the first time stay; of local rank, process and host the last,
// which is the innermost.
func (pl *placer) take(p *place) {
	x := &pl.prefix
	if x.HasRank {
		if x.Local {
			p.local = x.Rank
		} else if p.rank < 0 {
			p.rank = x.Rank
		}
	}
	if x.PID != 0 {
		p.pid = x.PID
	}
	if x.IP != nil {
		p.host = string(x.IP)
	}
	for _, stamp := range [][]byte{x.Stamp, x.Container} {
		if p.time == 0 && stamp != nil {
			if ns, err := pl.stamps.Parse(stamp); err == nil {
				p.time = ns
				pl.full = time.Unix(0, ns).In(pl.zone)
			}
		}
	}
}

// when returns the time stamp in the first 160 bytes of a line, in ns since the epoch; 0: none. Formats are tried in this order: full date, dmesg -T, syslog,
// glog (PyTorch's C++), vLLM. A full date is kept in pl.full, from which date infers the year of stamps without one.
func (pl *placer) when(text []byte) int64 {
	head := text[:min(len(text), 160)]
	if m := fullStamp.FindSubmatch(head); m != nil {
		at := string(m[1]) + "-" + string(m[2]) + "-" + string(m[3]) + " " + string(m[4]) + string(m[5]) + string(m[6])
		if ns, err := pl.stamps.Parse([]byte(at)); err == nil {
			pl.full = time.Unix(0, ns).In(pl.zone)
			return ns
		}
	}
	if m := dmesgStamp.FindSubmatch(head); m != nil && months[string(m[1])] > 0 {
		return pl.date(int(number(string(m[6]), 0)), months[string(m[1])], m[2], m[3], m[4], m[5], nil)
	}
	if m := syslogStamp.FindSubmatch(head); m != nil && months[string(m[1])] > 0 {
		return pl.date(0, months[string(m[1])], m[2], m[3], m[4], m[5], nil)
	}
	m := glogStamp.FindSubmatch(head)
	if m == nil {
		m = shortStamp.FindSubmatch(head)
	}
	if m == nil {
		return 0
	}
	month := time.Month(number(string(m[1]), 0))
	if month < 1 || month > 12 {
		return 0
	}
	return pl.date(0, month, m[2], m[3], m[4], m[5], m[6])
}

// date returns the time of its parts, in ns since the epoch; 0: the year is out of bounds. year 0: the stamp has none, and gets the year with the least
// distance from the log's last full stamp, else the last year up to the log's modification: no line is younger than the log.
func (pl *placer) date(year int, month time.Month, day, hour, minute, second, fraction []byte) int64 {
	n := func(b []byte) int { return int(number(string(b), 0)) }
	ns := 0
	if len(fraction) > 0 {
		digits := string(fraction)
		ns = int(number((digits + "000000000")[:9], 0)) // filled up to nine digits
		if len(digits) == 9 {
			ns = 0 // c10/util/Logging.cpp prints the nanoseconds of CLOCK_MONOTONIC after the second of the wall clock
		}
	}
	guessed := year == 0
	near := pl.full // a time of the log
	if near.IsZero() {
		near = pl.wrote.In(pl.zone)
	}
	if guessed {
		year = near.Year()
	}
	in := func(year int) time.Time {
		return time.Date(year, month, n(day), n(hour), n(minute), n(second), ns, pl.zone)
	}
	at := in(year)
	switch {
	case !guessed:
	case pl.full.IsZero():
		if at.After(near.Add(24 * time.Hour)) { // a line of December in a log modified in January; a day is left for other zones
			at = in(year - 1)
		}
	case at.Before(near.AddDate(0, -6, 0)): // a line of January after a full stamp of December
		at = in(year + 1)
	case at.After(near.AddDate(0, 6, 0)): // a late line of December
		at = in(year - 1)
	}
	if at.Year() < 1971 || at.Year() > 2260 { // int64 nanoseconds end in 2262; a span's times begin in 1970
		return 0
	}
	return at.UnixNano()
}

var rankFile = regexp.MustCompile(`(?:^|[_.-])(?:global_?)?rank[_-]?(\d{1,6})(?:[_.-]|$)`)

// pathRank returns the rank named by the path of a log: of the job in rank_3.log, rank3.err and rank_3/stderr.log, of the node in torchrun's
// <log_dir>/<run>/attempt_<n>/<local rank>/stderr.log. -1: the path names none.
func pathRank(path string) (rank, local int64) {
	dir, file := filepath.Split(path)
	if m := rankFile.FindStringSubmatch(file); m != nil {
		return number(m[1], -1), -1
	}
	parent := filepath.Base(dir)
	grandparent := filepath.Base(filepath.Dir(filepath.Clean(dir)))
	if strings.HasPrefix(grandparent, "attempt_") {
		if n, err := strconv.ParseUint(parent, 10, 31); err == nil {
			return -1, int64(n)
		}
	}
	if m := rankFile.FindStringSubmatch(parent); m != nil {
		return number(m[1], -1), -1
	}
	return -1, -1
}
