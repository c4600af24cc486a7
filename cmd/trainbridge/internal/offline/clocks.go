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

// clocks holds the clocks of the lines of a file that are no records: a run begins before its first step, and ends after its last.
type clocks struct {
	peeler line.Peeler
	prefix line.Prefix // of the last line
	zone   *time.Location
	stamps *clock.Stamps
	at     int64 // ns since 1970, of the last line with a clock; of records only of the first one, if before all others

	records     int64
	firstRecord int64  // ns since 1970; 0: no clock
	lastRecord  []byte // its first stampWithin bytes
	first, last int64  // ns since 1970, of the earliest and the latest line; 0: no line has a clock
	// begins, ns since 1970: the file's first line with a clock, if before the records, and each line in which a process says that Megatron is initialized.
	begins []int64
}

// mostBegins bounds clocks.begins.
const mostBegins = 10_000

// Megatron-LM's print_datetime (megatron/training/utils.py): "[after megatron is initialized] datetime: 2026-11-01 10:00:00.000000 ".
var (
	datetime    = []byte("] datetime: ")
	initialized = []byte("[after megatron is initialized]")
	titan       = []byte("[titan] ") // before the stamp, torchtitan/tools/logging.py
)

// newClocks returns clocks for a file whose stamps have the given zone.
func newClocks(zone *time.Location) *clocks {
	return &clocks{zone: zone, stamps: clock.NewStamps(zone)}
}

// noteLine updates the clocks with a line, whose text is valid during the call. Only ignored lines widen first and last, since the clocks of records are in the
// spans. Of the records, the clock of the first is parsed here, and that of the last in tailNS.
func (c *clocks) noteLine(text []byte, v tail.Verdict) {
	if v != tail.Ignored {
		c.lastRecord = append(c.lastRecord[:0], text[:min(len(text), stampWithin)]...)
		if c.records++; c.records > 1 && c.at != 0 {
			return
		}
	}
	ns, rest := c.clockOf(text)
	if ns == 0 {
		return
	}
	c.at = ns
	if v != tail.Ignored {
		if c.records == 1 {
			c.firstRecord = ns
		}
		return
	}
	if isFirst := c.first == 0 && c.records == 0; isFirst || bytes.HasPrefix(rest, initialized) {
		if len(c.begins) < mostBegins {
			c.begins = append(c.begins, ns)
		}
	}
	if c.first == 0 || ns < c.first {
		c.first = ns
	}
	c.last = max(c.last, ns)
}

// stampWithin bounds the part of a line in which its clock is looked for: prefixes of launchers, then the stamp.
const stampWithin = 256

// clockOf returns the clock of a line, ns since 1970, and the line without its prefixes (rest). The clock is, in this order: "datetime: …", a stamp before the
// message, the stamp of the container, the prefix of torchrun. 0: the line has none.
func (c *clocks) clockOf(text []byte) (ns int64, rest []byte) {
	rest = c.peeler.Peel(text, &c.prefix)
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
		stamp = c.glogStamp(rest)
	}
	if stamp == nil {
		return 0, rest
	}
	ns, err := c.stamps.Parse(stamp)
	if err != nil {
		return 0, rest
	}
	return ns, rest
}

// headNS returns how long the lines before the first record of the file took, ns. A duration is returned because clocks of hosts differ, and durations do not.
// Below 0: unknown, as the records have no clock.
func (c *clocks) headNS() int64 {
	if c.firstRecord == 0 || c.first == 0 {
		return -1
	}
	return max(c.firstRecord-c.first, 0)
}

// tailNS returns how long the lines after the last record of the file took, ns. Below 0: unknown, as the records have no clock.
func (c *clocks) tailNS() int64 {
	ns, _ := c.clockOf(c.lastRecord)
	if ns == 0 || c.last == 0 {
		return -1
	}
	return max(c.last-ns, 0)
}

// glogPattern is the beginning of lines of torchrun, "E0813 15:04:05.000000 ", and of PyTorch's C++, "[E813 15:04:05.000000000 ": there the month has no zero
// before, and the digits after the second are no fraction of the second.
var glogPattern = regexp.MustCompile(`^(?:[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d{6}) |\[[IWEF](\d{1,2})(\d\d) (\d\d:\d\d:\d\d)\.\d{9} )`)

// glogStamp returns the stamp of a line of torchrun or of PyTorch's C++, with the year of the last clock (the format of glog has no year). nil: the line has no
// stamp.
func (c *clocks) glogStamp(text []byte) []byte {
	if c.at == 0 || len(text) < len("E0813 15:04:05.000000") || text[0] != '[' && text[5] != ' ' {
		return nil
	}
	m := glogPattern.FindSubmatch(text)
	if m == nil {
		return nil
	}
	month, day, at := m[1], m[2], m[3]
	if month == nil {
		month, day, at = m[4], m[5], m[6]
	}
	return fmt.Appendf(nil, "%d-%02s-%s %s", time.Unix(0, c.at).In(c.zone).Year(), month, day, at)
}

// Book adds the clocks in the training logs of a run to the ledger of the run, which accounts for the wall-clock time: the run lasts from the first line to the
// last, and begins in the logs are restarts. Files without a record are left out.
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
			l.Began(f.clocks.first, f.clocks.headNS())
			l.Over(f.clocks.last, f.clocks.tailNS())
			for _, ns := range f.clocks.begins {
				l.Begins(ns)
			}
		}
	}
}
