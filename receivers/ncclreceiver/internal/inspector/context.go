package inspector

import (
	"bytes"
	"encoding/json"
)

// context says which rank of which communicator and process wrote a record: the content of header and metadata, but for the time of the dump. Contexts in a
// table are never changed: operations hold slices of them.
type context struct {
	Comm  []byte `json:"comm,omitempty"`
	Name  []byte `json:"name,omitempty"`
	Host  []byte `json:"host,omitempty"`
	Size  int32  `json:"size,omitempty"`
	Nodes int32  `json:"nodes,omitempty"`
	Rank  int32  `json:"rank"`
	PID   int64  `json:"pid,omitempty"`
}

// equal reports whether two contexts have the same content.
func (c *context) equal(d *context) bool {
	return c.Rank == d.Rank && c.Size == d.Size && c.Nodes == d.Nodes && c.PID == d.PID &&
		bytes.Equal(c.Comm, d.Comm) && bytes.Equal(c.Name, d.Name) && bytes.Equal(c.Host, d.Host)
}

// clone returns a copy of a context whose texts are not in the line.
func (c *context) clone() *context {
	d := *c
	d.Comm, d.Name, d.Host = bytes.Clone(c.Comm), bytes.Clone(c.Name), bytes.Clone(c.Host)
	return &d
}

// A tag (parse.Out.Tag) is kept with a record whose context stood in an earlier line, the marker: with the tag alone the record can be read again after a
// restart. A tag is the number of the context in the upper bits, above timeBits bits for the time of the dump in microseconds, sufficient to the year 2112.
const (
	timeBits    = 52
	maxNumber   = 1<<(64-timeBits) - 1
	maxContexts = 512 // communicators × ranks of one process
)

// tagOf returns the tag made of a context's number and the time of a dump, Unix ns.
func tagOf(number uint16, dump int64) uint64 {
	us := uint64(dump / 1000)
	if us >= 1<<timeBits {
		us = 0
	}
	return uint64(number)<<timeBits | us
}

// table has the last maxContexts different contexts of markers. Numbers run from 1 to maxNumber and from 1 again; maxNumber is much larger than maxContexts, so
// the number of a forgotten context finds nothing for long, and no other context.
type table struct {
	all    []numbered
	last   uint16 // the number given last
	oldest int    // index in all of the oldest context, once all is full
	used   int    // index in all of the context found last
}

// numbered is a context with its number in tags.
type numbered struct {
	Context *context `json:"context"`
	Number  uint16   `json:"number"`
}

// find returns the table's entry of a context, added if new. Every dump has the communicators in one order: the context after the last marker's is tried first.
func (t *table) find(c *context) numbered {
	for n := range t.all { // from the entry after the last one, in a circle
		at := t.used + 1 + n
		if at >= len(t.all) {
			at -= len(t.all)
		}
		if t.all[at].Context.equal(c) {
			t.used = at
			return t.all[at]
		}
	}
	t.last = t.last%maxNumber + 1
	t.add(numbered{c.clone(), t.last})
	return t.all[t.used]
}

// add adds an entry, in place of the oldest if the table is full.
func (t *table) add(c numbered) {
	if len(t.all) < maxContexts {
		t.used = len(t.all)
		t.all = append(t.all, c)
		return
	}
	t.used = t.oldest
	t.all[t.used] = c
	t.oldest = (t.oldest + 1) % maxContexts
}

// tagged returns the context and the time of a tag. nil: forgotten.
func (t *table) tagged(tag uint64) (c *context, dump int64) {
	for _, e := range t.all {
		if e.Number == uint16(tag>>timeBits) {
			return e.Context, int64(tag&(1<<timeBits-1)) * 1000
		}
	}
	return nil, 0
}

// The kinds of records after a marker.
const (
	collectives = iota
	pointToPoint
	proxies
	numKinds
)

// head is the last marker: a "dump_stats" line with a context, and the numbers of the records that follow without one (from format v4.3 on).
type head struct {
	numbered
	dump int64            // Unix ns
	left [numKinds]uint64 // records of the dump, of each kind, that have not come yet
}

// saved is the state of a Parser.
type saved struct {
	Contexts []numbered       `json:"contexts"` // the oldest first
	Last     uint16           `json:"last"`
	Head     uint16           `json:"head,omitempty"`
	Dump     int64            `json:"dump,omitempty"`
	Left     [numKinds]uint64 `json:"left"`
}

// Save returns the contexts and the marker needed by the next lines. nil: none.
func (p *Parser) Save() []byte {
	t := &p.contexts
	if len(t.all) == 0 {
		return nil
	}
	s := saved{Last: t.last, Head: p.head.Number, Dump: p.head.dump, Left: p.head.left}
	s.Contexts = append(append(s.Contexts, t.all[t.oldest:]...), t.all[:t.oldest]...)
	b, err := json.Marshal(&s)
	if err != nil {
		return nil // cannot be: texts and numbers
	}
	return b
}

// Restore implements parse.Parser: it restores the table of contexts, and the marker if its context is in the table. Unusable entries are left out.
func (p *Parser) Restore(state []byte) {
	p.contexts, p.head = table{}, head{}
	var s saved
	if json.Unmarshal(state, &s) != nil {
		return
	}
	p.contexts.last = s.Last % (maxNumber + 1)
	for _, c := range s.Contexts {
		if c.Context == nil || c.Number == 0 || c.Number > maxNumber {
			continue
		}
		p.contexts.add(c)
		if c.Number == s.Head {
			p.head = head{c, s.Dump, s.Left}
		}
	}
}
