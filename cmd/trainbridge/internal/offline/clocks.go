package offline

import (
	"bytes"
	"fmt"
	"regexp"
	"time"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/account"
)

// clocks are the clocks of a file's lines that are no records: a run begins before its first step, and ends behind its last.
type clocks struct {
	peeler line.Peeler
	prefix line.Prefix // of the last line
	zone   *time.Location
	stamps *clock.Stamps
	at     int64 // ns since 1970, of the last line with a clock; of records only of the first one, if before all others

	first, last int64   // ns since 1970, of the earliest and the latest line; 0: no line has a clock
	begins      []int64 // ns since 1970, of the file's first line with a clock, and of each line in which a process says that Megatron is initialized
}

// mostBegins bounds clocks.begins.
const mostBegins = 10_000

// Megatron-LM's print_datetime (megatron/training/utils.py): "[after megatron is initialized] datetime: 2026-11-01 10:00:00.000000 ".
var (
	datetime    = []byte("] datetime: ")
	initialized = []byte("[after megatron is initialized]")
	titan       = []byte("[titan] ") // before the stamp, torchtitan/tools/logging.py
)

func newClocks(zone *time.Location) *clocks {
	return &clocks{zone: zone, stamps: clock.NewStamps(zone)}
}

// line notes the clock of a line, the first that the line has: "datetime: …", a stamp before the message, the container's stamp, torchrun's prefix. Only
// ignored lines widen first and last, as the clocks of records are in the spans. The text is valid during the call.
func (c *clocks) line(text []byte, v tail.Verdict) {
	// Of records a single one is parsed, only for c.at: the year of stamps without one (glog).
	if v != tail.Ignored && c.at != 0 {
		return
	}
	rest := c.peeler.Peel(text, &c.prefix)
	if after, ok := bytes.CutPrefix(rest, titan); ok && c.prefix.Stamp == nil {
		rest = c.peeler.Peel(after, &c.prefix)
	}
	stamp := c.prefix.Stamp
	if stamp == nil {
		stamp = c.prefix.Container
	}
	if _, after, ok := bytes.Cut(rest, datetime); ok {
		stamp = bytes.TrimSpace(after)
	}
	if stamp == nil {
		stamp = c.glog(rest)
	}
	if stamp == nil {
		return
	}
	ns, err := c.stamps.Parse(stamp)
	if err != nil {
		return
	}
	c.at = ns
	if v != tail.Ignored {
		return
	}
	if c.first == 0 || bytes.HasPrefix(rest, initialized) {
		if len(c.begins) < mostBegins {
			c.begins = append(c.begins, ns)
		}
	}
	if c.first == 0 || ns < c.first {
		c.first = ns
	}
	c.last = max(c.last, ns)
}

// glogStamp is the beginning of lines of torchrun, "E0813 15:04:05.000000 ", and of PyTorch's C++, "[E813 15:04:05.000000000 ": there the month has no zero
// before, and the digits after the second are no fraction of the second.
var glogStamp = regexp.MustCompile(`^(?:[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d{6}) |\[[IWEF](\d{1,2})(\d\d) (\d\d:\d\d:\d\d)\.\d{9} )`)

// glog makes a stamp of a line of torchrun or of PyTorch's C++, with the year of the clock before (glog's format has none). nil: no stamp.
func (c *clocks) glog(text []byte) []byte {
	if c.at == 0 || len(text) < len("E0813 15:04:05.000000") || text[0] != '[' && text[5] != ' ' {
		return nil
	}
	m := glogStamp.FindSubmatch(text)
	if m == nil {
		return nil
	}
	month, day, at := m[1], m[2], m[3]
	if month == nil {
		month, day, at = m[4], m[5], m[6]
	}
	return fmt.Appendf(nil, "%d-%02s-%s %s", time.Unix(0, c.at).In(c.zone).Year(), month, day, at)
}

// Book puts the clocks of a run's training logs into the run's ledger, which accounts for the wall-clock time: the run lasts from the first line to the last,
// and the begins tell restarts. Files without a record are not the run's.
func (r *Reading) Book(run string, l *account.Ledger) {
	for _, j := range r.Runs {
		if j.ID != run {
			continue
		}
		for _, path := range j.Files {
			f := r.by[path]
			if f == nil || f.clocks == nil || f.Records == 0 {
				continue
			}
			l.Seen(f.clocks.first)
			l.Seen(f.clocks.last)
			for _, ns := range f.clocks.begins {
				l.Begins(ns)
			}
		}
	}
}
