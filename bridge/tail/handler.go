package tail

import (
	"context"
	"time"
)

// Line is one line of a file, without its ending.
type Line struct {
	// Text lives only until Handler.Line returns.
	Text []byte
	// Observed is the reading time. Live: the line was appended while this process was tailing, and Observed is close to the time of writing.
	Observed time.Time
	Live     bool
	// ModTime is the file's modification time when the line was read.
	ModTime time.Time
	// File is a number that changes where the lines of another or rewritten file begin.
	File int
	// Again: the line was held before a restart and is given again, not necessarily with its neighbours; Tag is the tag of Lend.
	Again bool
	Tag   uint64
}

// earliest and latest bound the times of files: file systems have years beyond those of spans (1970 to 2262), and durations are added to times.
var earliest, latest = time.Unix(0, 0), time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC)

// Written is ModTime within the range of a span's times.
func (l *Line) Written() time.Time {
	switch {
	case l.ModTime.Before(earliest):
		return earliest
	case l.ModTime.After(latest):
		return latest
	}
	return l.ModTime
}

// Verdict is a handler's result for a line, the basis of every receiver's accounts: lines = records + ignored (by reason) + rejected (by reason).
type Verdict uint8

// Reasons of Ignored and Rejected are constants, never data.
const (
	Record   Verdict = iota // a record; reason is ""
	Ignored                 // a line of no interest to this receiver
	Rejected                // a malformed record
)

// Delivery is a batch cut by a handler, on the way downstream. The methods are called from other goroutines than the handler's.
type Delivery interface {
	// Send sends the batch downstream. nil: accepted. An error of type Refused: the named records were refused for good, the rest accepted. A permanent error
	// (consumererror.IsPermanent): all records were refused. Refused records are counted and skipped. After any other error tail calls Send again, with
	// back-off, until success or shutdown.
	Send(ctx context.Context) error
	// Join merges a Delivery of another handler of the Tailer, to send both as one. false: other must be sent separately. Join is called before Send.
	Join(other Delivery) bool
}

// Locator is a Delivery that maps its records to places in the log. Locate is called before Send; where returns the place of the first line of a record of the
// joined Deliveries (numbered as in Refused): the file, and the offset of the first byte. where may be called until Send returns.
type Locator interface {
	Delivery
	Locate(where func(batch int, p Place) (path string, begin int64, ok bool))
}

// Refused is the error of a delivery some of whose records were refused for good.
type Refused struct {
	// Places are the refused records of the joined Deliveries: 0 is the Delivery itself, 1 the first joined.
	Places map[int][]Place
	// Share is the share of further records refused without being named. Over 1: all.
	Share float64
	Err   error
}

func (r *Refused) Error() string { return r.Err.Error() }
func (r *Refused) Unwrap() error { return r.Err }

// Place identifies the lines of a record in a batch. See Stream.Place.
type Place int32

// Handler turns the lines of one stream into batches. A stream is the sequence of files that one path has named: a rotated file and its successor share a
// handler, so a record may begin in one file and end in the next. The methods of a handler are called by one goroutine at a time.
type Handler interface {
	// Line takes the next line. Unless the handler calls Stream.Hold for it, the line belongs to the current batch.
	Line(l *Line) (v Verdict, reason string)
	// Expire gives up records held since before the given time: they go into the current batch, marked incomplete. UnixNano can express the time.
	Expire(before time.Time)
	// Cut ends the current batch and returns it, or nil for nothing to send.
	Cut() Delivery
	// Save returns the handler's state (clock anchors, a column layout) for continuing after a restart at the end of the last line. Held lines are no part of the
	// state: they are given again. The state is small. nil: none.
	Save() []byte
	// Restore is called once, before the first Line, with the result of Save.
	Restore(state []byte)
}

// InOrder is a Handler for which the meaning of a line depends on all lines before, for instance in ids that count. After a restart it gets everything again
// from the oldest unaccepted batch on, including lines accepted since, with the state of that time. Other handlers get only the unaccepted lines.
type InOrder interface {
	Handler
	InOrder()
}

// Forgetter is a Handler with a last call at the end of its stream: no file is left, and no line is held or in flight.
type Forgetter interface {
	Handler
	Forget()
}

// Idler is a Handler with a call at looks at its stream, every five seconds at least, while everything is read and accepted. Batches are then sent as usual.
// Unless a Forgetter, too, the handler may be dropped after ten idle seconds.
type Idler interface {
	Handler
	Idle(now time.Time)
}

// NewHandler makes the handler of a stream.
type NewHandler func(*Stream) Handler

// Held identifies a held line until its release.
type Held int32
