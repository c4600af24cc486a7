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
	// File is another number where the lines of another file begin, or of a file that was written anew.
	File int
	// Again says that the line was held before a restart and is given again, not necessarily with its neighbours; Tag is the tag that it was lent with.
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

// Verdict says what a handler did with a line; with it tail keeps the accounts of every receiver:
// lines = records + ignored (by reason) + rejected (by reason).
type Verdict uint8

// The verdicts. The reasons that go with Ignored and Rejected are constants, never data.
const (
	Record   Verdict = iota // a record; reason is ""
	Ignored                 // a line that is not for this receiver
	Rejected                // a line that should have been a record and cannot be read
)

// Delivery is the batch that a handler cut, on its way downstream. Its methods are called from other goroutines than the handler's.
type Delivery interface {
	// Send hands it downstream. nil: accepted. An error of type Refused: the records that it names were refused for good, the rest accepted. A permanent error
	// (consumererror.IsPermanent): all records were refused. Refused records are counted and passed over. Any other error: tail calls Send again, with back-off,
	// until it succeeds or the receiver shuts down.
	Send(ctx context.Context) error
	// Join takes in a Delivery of another handler of the Tailer, so that both are sent as one. false: the other has to be sent by itself. It is called before
	// Send.
	Join(other Delivery) bool
}

// Locator is a Delivery that says of its records where they stand in the log. Locate is called before Send; where names the first line of a record of the
// joined Deliveries (numbered as in Refused): its file, and the place of its first byte there. It may be called until Send returns.
type Locator interface {
	Delivery
	Locate(where func(batch int, p Place) (path string, begin int64, ok bool))
}

// Refused is the error of a delivery some of whose records were refused for good.
type Refused struct {
	// Places are the refused records of the joined Deliveries: 0 is the Delivery itself, 1 the first that Join took in.
	Places map[int][]Place
	// Share is the share of the records that was refused besides, where it is not known which ones. Over 1: all.
	Share float64
	Err   error
}

func (r *Refused) Error() string { return r.Err.Error() }
func (r *Refused) Unwrap() error { return r.Err }

// Place says of a record of a batch which lines it was made of. See Stream.Place.
type Place int32

// Handler turns the lines of one stream into batches. A stream is the sequence of files that one path has named: a rotated file
// and its successor share a handler, so a record may begin in one and end in the other.
// The methods of one handler are called by one goroutine at a time.
type Handler interface {
	// Line takes the next line. Unless the handler calls Stream.Hold for it, the line is done with the current batch.
	Line(l *Line) (v Verdict, reason string)
	// Expire gives up on records held since before the given time: they go into the current batch, marked incomplete.
	// The time has a UnixNano.
	Expire(before time.Time)
	// Cut ends the current batch and returns it, or nil when there is nothing to send.
	Cut() Delivery
	// Save returns the state that the handler must have to go on after a restart from the end of the last line it was given, beyond held lines, which are
	// given again (clock anchors, a column layout). It is small. nil: nothing.
	Save() []byte
	// Restore is called once, before the first Line, with what Save returned.
	Restore(state []byte)
}

// InOrder is a Handler for which the meaning of a line depends on all lines before it, as for ids that count. After a restart it is given everything again from
// the oldest batch that was not accepted, also the lines that were accepted since, with the state it had then. Other handlers are given only the lines that
// were not accepted.
type InOrder interface {
	Handler
	InOrder()
}

// Forgetter is a Handler that is told when its stream is forgotten: none of its files is left, and none of its lines is held or in flight. It is not called
// after that.
type Forgetter interface {
	Handler
	Forget()
}

// Idler is a Handler that is told at looks at its stream, every five seconds at least, that all which there is was read and accepted. What it cuts then is sent
// as other batches are. Where it is not a Forgetter, too, it may be gone after ten seconds in which nothing came.
type Idler interface {
	Handler
	Idle(now time.Time)
}

// NewHandler makes the handler of a stream.
type NewHandler func(*Stream) Handler

// Held names a held line until its release.
type Held int32
