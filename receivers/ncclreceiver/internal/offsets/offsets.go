// Package offsets finds how far the reading of a partition may be committed, where what the messages say is joined across messages: a collective has records of
// many messages, and leaves when it is whole.
//
// A message is a hole until all collectives that have a record of it were accepted. Position.Begin is the lowest hole: what lies before it never has to be sent
// again. But a collective that was accepted may have records on both sides of Begin. After a restart its records from Begin on come again, and alone they would
// make another collective of the same ids. So reading goes back to Position.From, where each collective that has a record at or beyond Begin has its first.
// Collectives all of whose records lie before Begin were accepted, and are not sent again: Tracker.Known. They may have been accepted without all their ranks,
// and they are as they were then when all was read again that was read then: at Position.Head. What comes of them beyond is late.
package offsets

import (
	"fmt"
	"slices"
)

// Position is what is committed: Begin as the offset, From and Head as its metadata.
type Position struct {
	Begin, From int64
	Head        int64 // the offset after the last message that was read; 0: not known
}

// Metadata is the text that stands beside the committed offset.
func (p Position) Metadata() string { return fmt.Sprint(p.From, p.Head) }

// Committed is the position that was committed. Where the metadata is of another writer, as after a person has set the offset, reading begins at the offset.
func Committed(begin int64, metadata string) Position {
	p := Position{Begin: begin}
	if _, err := fmt.Sscan(metadata, &p.From, &p.Head); err != nil || p.From < 0 || p.From > begin || p.Head < begin {
		return Position{Begin: begin, From: begin}
	}
	return p
}

// Tracker tracks the messages of one partition from the first hole on. It is not safe for concurrent use.
type Tracker struct {
	floor    int64 // what lies before was accepted in an earlier life
	read     int64 // what lies before was read in an earlier life
	head     int64 // the offset after the last message
	messages []message
	open     int // messages that are holes
}

// message is a message that was read.
type message struct {
	offset int64
	open   int   // records that were not accepted; one more while the message is being read
	first  int64 // the lowest offset of the accepted collectives whose last record is of this message
}

// New tracks a partition that is read from an offset on, which is at most committed.From.
func New(committed Position, from int64) *Tracker {
	return &Tracker{floor: committed.Begin, read: committed.Head, head: from}
}

// Read takes up the next message, until Done.
func (t *Tracker) Read(offset int64) {
	closed := 0
	for closed < len(t.messages) && t.messages[closed].open == 0 {
		closed++
	}
	t.messages = append(t.messages[closed:], message{offset: offset, open: 1, first: offset})
	t.head = offset + 1
	t.open++
}

// Hold says that the message being read has another record.
func (t *Tracker) Hold() { t.messages[len(t.messages)-1].open++ }

// Done says that the message being read has no more records, or that one of them came before and is held no more.
func (t *Tracker) Done() { t.release(&t.messages[len(t.messages)-1]) }

// Accepted takes note that a collective was accepted, or does not have to be sent. It came by these offsets, one for each record.
func (t *Tracker) Accepted(came []int64) {
	first, last := slices.Min(came), slices.Max(came)
	m := t.find(last)
	m.first = min(m.first, first)
	for _, offset := range came {
		t.release(t.find(offset))
	}
}

// Known says whether a collective that came by these offsets was accepted in an earlier life.
func (t *Tracker) Known(came []int64) bool { return slices.Max(came) < t.floor }

// Behind is how many messages are holes.
func (t *Tracker) Behind() int { return t.open }

// Head is the offset after the last message that was read.
func (t *Tracker) Head() int64 { return t.head }

// Position is what may be committed now.
func (t *Tracker) Position() Position {
	p := Position{max(t.head, t.floor), t.head, max(t.head, t.read)}
	for i := range t.messages {
		m := &t.messages[i]
		if m.open > 0 {
			p.From = min(p.From, m.offset) // a collective that waits for more has a record of it
			if m.offset >= t.floor {
				p.Begin = m.offset
				break
			}
		}
	}
	p.From = min(p.From, p.Begin)
	for i := range t.messages {
		if m := &t.messages[i]; m.offset >= p.Begin {
			p.From = min(p.From, m.first)
		}
	}
	return p
}

func (t *Tracker) release(m *message) {
	if m.open--; m.open == 0 {
		t.open--
	}
}

// find finds a message that has a record that was not accepted. Mostly offsets have no gaps.
func (t *Tracker) find(offset int64) *message {
	if i := offset - t.messages[0].offset; i < int64(len(t.messages)) && t.messages[i].offset == offset {
		return &t.messages[i]
	}
	i, _ := slices.BinarySearchFunc(t.messages, offset, func(m message, offset int64) int { return int(m.offset - offset) })
	return &t.messages[i]
}
