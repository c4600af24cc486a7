package inspector

import (
	"bytes"
	"encoding/json"
)

// context is the content of header and metadata, but for the time of the dump. Contexts in a table are never changed: operations hold slices of them.
type context struct {
	Comm  []byte `json:"comm,omitempty"`
	Name  []byte `json:"name,omitempty"`
	Host  []byte `json:"host,omitempty"`
	Size  int32  `json:"size,omitempty"`
	Nodes int32  `json:"nodes,omitempty"`
	Rank  int32  `json:"rank"`
	PID   int64  `json:"pid,omitempty"`
}

func (c *context) equal(d *context) bool {
	return c.Rank == d.Rank && c.Size == d.Size && c.Nodes == d.Nodes && c.PID == d.PID &&
		bytes.Equal(c.Comm, d.Comm) && bytes.Equal(c.Name, d.Name) && bytes.Equal(c.Host, d.Host)
}

func (c *context) clone() *context {
	d := *c
	d.Comm, d.Name, d.Host = bytes.Clone(c.Comm), bytes.Clone(c.Name), bytes.Clone(c.Host)
	return &d
}

// A tag is a context and the time of a dump: the number of the context above timeBits bits of microseconds, sufficient to the year 2112.
const (
	timeBits    = 52
	maxNumber   = 1<<(64-timeBits) - 1
	maxContexts = 512 // communicators × ranks of one process
)

func tagOf(number uint16, dump int64) uint64 {
	us := uint64(dump / 1000)
	if us >= 1<<timeBits {
		us = 0
	}
	return uint64(number)<<timeBits | us
}

// table has the last maxContexts different contexts of markers. Numbers run from 1 to maxNumber and from 1 again; maxNumber is much larger than maxContexts, so
// the number of a forgotten context is not in use.
type table struct {
	all    []numbered
	last   uint16 // number
	oldest int    // index in all, once full
	used   int
}

type numbered struct {
	Context *context `json:"context"`
	Number  uint16   `json:"number"`
}

// find returns a context, added if new. Every dump has the communicators in one order: the context after the last marker's is tried first.
func (t *table) find(c *context) numbered {
	for n := range t.all {
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

// head is the marker with the context of the next records.
type head struct {
	numbered
	dump int64            // Unix ns
	left [numKinds]uint64 // remaining records of the dump
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

// Restore reads the result of Save.
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
