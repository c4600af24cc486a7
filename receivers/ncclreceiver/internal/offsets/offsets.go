// Package offsets finds the committable position of a partition whose records are joined across messages: a collective has records of many messages, and leaves
// when complete.
//
// A message is a hole until all collectives with a record of it were accepted. Position.Begin is the lowest hole: nothing before Begin has to be sent again.
// But an accepted collective may have records on both sides of Begin. After a restart its records from Begin on come again, and alone they would make another
// collective of the same ids. So reading goes back to Position.From, the first record of any collective that has a record at or beyond Begin. Collectives with
// all records before Begin were accepted, and are not sent again: Tracker.Known. They may have been accepted without all their ranks, and are in the same state
// again once everything read then was read again, up to Position.Head. Their records beyond Head are late.
package offsets

import (
	"fmt"
	"slices"
)

// Position is the committed state: Begin as the offset, From and Head as its metadata.
type Position struct {
	Begin, From int64
	Head        int64 // the offset after the last message read; 0: unknown
}

// Metadata returns the text stored with the committed offset.
func (p Position) Metadata() string { return fmt.Sprint(p.From, p.Head) }

// Committed returns the committed position. With metadata of another writer, as after a manual reset of the offset, reading begins at the offset.
func Committed(begin int64, metadata string) Position {
	p := Position{Begin: begin}
	if _, err := fmt.Sscan(metadata, &p.From, &p.Head); err != nil || p.From < 0 || p.From > begin || p.Head < begin {
		return Position{Begin: begin, From: begin}
	}
	return p
}

// Tracker tracks the messages of one partition from the first hole on. Not safe for concurrent use.
type Tracker struct {
	floor    int64     // messages before were accepted in an earlier life
	read     int64     // messages before were read in an earlier life
	head     int64     // the offset after the last message
	messages []message // the messages read, by offset, from the oldest hole on; accepted ones before it are dropped by the next Read
	open     int       // number of holes
}

// message is a message read.
type message struct {
	offset int64
	open   int   // unaccepted records; plus one while the message is being read
	first  int64 // the lowest offset of the accepted collectives with their last record in this message
}

// New tracks a partition that is read from an offset on: at most committed.From, unless the broker has deleted messages.
func New(committed Position, from int64) *Tracker {
	return &Tracker{floor: committed.Begin, read: committed.Head, head: from}
}

// Read begins the next message: it is a hole until Done is called, and its held records are accepted. Older messages before the first hole are forgotten.
func (t *Tracker) Read(offset int64) {
	closed := 0
	for closed < len(t.messages) && t.messages[closed].open == 0 {
		closed++
	}
	t.messages = append(t.messages[closed:], message{offset: offset, open: 1, first: offset})
	t.head = offset + 1
	t.open++
}

// Hold counts another record of the current message.
func (t *Tracker) Hold() { t.messages[len(t.messages)-1].open++ }

// Done is called when the current message has no more records, or one of its records is a repetition and no longer held.
func (t *Tracker) Done() { t.release(&t.messages[len(t.messages)-1]) }

// Accepted is called when a collective was accepted, or needs no sending. came are the offsets of its records, one for each Hold.
func (t *Tracker) Accepted(came []int64) {
	first, last := slices.Min(came), slices.Max(came)
	m := t.find(last)
	m.first = min(m.first, first)
	for _, offset := range came {
		t.release(t.find(offset))
	}
}

// Known reports whether a collective with these offsets was accepted in an earlier life.
func (t *Tracker) Known(came []int64) bool { return slices.Max(came) < t.floor }

// Behind returns the number of holes.
func (t *Tracker) Behind() int { return t.open }

// Head returns the offset after the last message read.
func (t *Tracker) Head() int64 { return t.head }

// Position returns the committable position: see the package. From is before Begin where a collective has records on both sides of Begin.
func (t *Tracker) Position() Position {
	p := Position{max(t.head, t.floor), t.head, max(t.head, t.read)} // without holes
	// Begin is the first hole, but holes before floor were accepted in an earlier life, and only move From.
	for i := range t.messages {
		m := &t.messages[i]
		if m.open > 0 {
			p.From = min(p.From, m.offset) // with a record of an incomplete collective
			if m.offset >= t.floor {
				p.Begin = m.offset
				break
			}
		}
	}
	p.From = min(p.From, p.Begin)
	// An accepted collective with its last record after Begin comes again: it must come whole.
	for i := range t.messages {
		if m := &t.messages[i]; m.offset >= p.Begin {
			p.From = min(p.From, m.first)
		}
	}
	return p
}

// release counts one open record of a message as done: without any the message is no hole any more.
func (t *Tracker) release(m *message) {
	if m.open--; m.open == 0 {
		t.open--
	}
}

// find returns the message of an offset. The message must have an unaccepted record: others may be forgotten. Mostly offsets have no gaps, and the index
// follows from the offset.
func (t *Tracker) find(offset int64) *message {
	if i := offset - t.messages[0].offset; i < int64(len(t.messages)) && t.messages[i].offset == offset {
		return &t.messages[i]
	}
	i, _ := slices.BinarySearchFunc(t.messages, offset, func(m message, offset int64) int { return int(m.offset - offset) })
	return &t.messages[i]
}
