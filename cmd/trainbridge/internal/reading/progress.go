package reading

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/trainbridge/trainbridge/internal/human"
)

const (
	plainEvery = 5 * time.Second // between lines in a pipe
	barWidth   = 30
)

// progress says how far the reading is: a bar on a terminal, else a line now and then.
type progress struct {
	to    io.Writer
	bar   bool // to is a terminal
	drawn bool // the bar is on the terminal
	now   func() time.Time
	start time.Time
	next  time.Time // of a plain line
}

func newProgress(to io.Writer, now func() time.Time) *progress {
	p := &progress{to: to, now: now, start: now()}
	if f, ok := to.(*os.File); ok {
		p.bar = term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	}
	p.next = p.start.Add(plainEvery)
	return p
}

// show draws the bar anew, or prints a line every plainEvery: bytes read so far of all, the rate, and the time left at this rate. The reading calls it a few
// times a second, from one goroutine at a time.
func (p *progress) show(done, total int64) {
	now := p.now()
	done = min(done, total) // a file may grow meanwhile
	text := human.Of(human.Bytes(float64(done)), human.Bytes(float64(total)))
	if took := now.Sub(p.start).Seconds(); took > 0 && done > 0 {
		rate := float64(done) / took
		text += ", " + human.BinaryRate(rate)
		if done < total {
			text += ", " + human.Seconds(math.Ceil(float64(total-done)/rate)) + " left"
		}
	}
	switch {
	case p.bar:
		filled := 0
		if total > 0 {
			filled = int(barWidth * done / total)
		}
		// \r\x1b[K: to the beginning of the line, which is erased.
		_, _ = fmt.Fprintf(p.to, "\r\x1b[K%s%s  %s", strings.Repeat("█", filled), strings.Repeat("░", barWidth-filled), text)
		p.drawn = true
	case !now.Before(p.next):
		_, _ = fmt.Fprintf(p.to, "reading: %s\n", text)
		p.next = now.Add(plainEvery)
	}
}

// clear takes the bar away.
func (p *progress) clear() {
	if p.drawn {
		_, _ = fmt.Fprint(p.to, "\r\x1b[K")
	}
}
