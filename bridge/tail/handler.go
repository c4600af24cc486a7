package tail

import (
	"context"
	"time"
)

// Line is one line of a file, without its ending.
type Line struct {
	// Text lives only until Handler.Line returns.
	Text []byte
	// Observed is when the line was read. Live says that it was appended while this process was tailing, so that
	// Observed is close to the time of writing.
	Observed time.Time
	Live     bool
	// ModTime is the file's modification time when the line was read.
	ModTime time.Time
	// File is another number where the lines of another file begin, or of one that was written anew.
	File int
	// Again says that the line was held before a restart and is given again, not necessarily with its neighbours; Tag is what it was lent with.
	Again bool
	Tag   uint64
}

// earliest and latest bound the times of files: file systems know years that spans do not (1970 to 2262), and durations are added to them.
var earliest, latest = time.Unix(0, 0), time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC)

// Written is ModTime as a time that a span can have.
func (l *Line) Written() time.Time {
	switch {
	case l.ModTime.Before(earliest):
		return earliest
	case l.ModTime.After(latest):
		return latest
	}
	return l.ModTime
}

// Verdict is what a handler made of a line; with it tail keeps the accounts of every receiver:
// lines = records + ignored (by reason) + rejected (by reason).
type Verdict uint8

// The verdicts. The reasons that go with Ignored and Rejected are constants, never data.
const (
	Record   Verdict = iota // a record; reason is ""
	Ignored                 // a line that is not for this receiver
	Rejected                // a line that should have been a record and cannot be read
)

// Deliver hands one batch downstream. nil: accepted; a permanent error (consumererror.IsPermanent): refused, counted and passed over; any other error:
// tail calls it again, with back-off, until it succeeds or the receiver shuts down. It is called from another goroutine than the handler's methods.
type Deliver func(ctx context.Context) error

// Handler turns the lines of one stream into batches. A stream is the sequence of files that one path has named: a rotated file
// and its successor share a handler, so a record may begin in one and end in the other.
// The methods of one handler are called by one goroutine at a time.
type Handler interface {
	// Line takes the next line. Unless the handler calls Stream.Hold for it, the line is done with the current batch.
	Line(l *Line) (v Verdict, reason string)
	// Expire gives up on what has been held since before the given time: it goes into the current batch, marked incomplete.
	// The time has a UnixNano.
	Expire(before time.Time)
	// Cut ends the current batch and returns how to deliver it, or nil when there is nothing to send.
	Cut() Deliver
	// Save returns what the handler must know to go on after a restart from the end of the last line it was given, beyond held lines, which are
	// given again (clock anchors, a column layout). It is small. nil: nothing.
	Save() []byte
	// Restore is called once, before the first Line, with what Save returned.
	Restore(state []byte)
}

// InOrder is a Handler to which a line means something by all that came before it, as for ids that count. After a restart it is given everything again from
// the oldest batch that was not accepted, also what was accepted since, and the state it had then. Others are given only what was not accepted.
type InOrder interface {
	Handler
	InOrder()
}

// Forgetter is a Handler that is told when its stream is forgotten: none of its files is left, and nothing of it is held or in flight. It is called no more after that.
type Forgetter interface {
	Handler
	Forget()
}

// NewHandler makes the handler of a stream.
type NewHandler func(*Stream) Handler

// Held names a held line until its release.
type Held int32
