// Package episode says a verdict that is true of record after record once, not on each of them.
package episode

import (
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/trainbridge/trainbridge/processors/internal/lru"
	"github.com/trainbridge/trainbridge/spans"
)

// Window is how many records go by before a verdict that goes on holding is said again, and how many records its share is counted over.
const Window = 100

// Key names the records that share verdicts about all of them: a rank's steps, a function's calls.
type Key struct {
	Service, Run, Of string
	Rank             int64
	Stage            spans.TQStage // of TransferQueue
}

// All holds the episodes per key.
type All struct {
	sync.Mutex // of the map and of the episodes in it; held while the records of a resource are judged

	byKey *simplelru.LRU[Key, *Episodes]
}

// NewAll holds none.
func NewAll() *All { return &All{byKey: lru.New[Key, *Episodes](lru.Size)} }

// Len is how many keys have episodes.
func (a *All) Len() int { return a.byKey.Len() }

// Of returns the episodes of a key, and makes them where there are none. evicted tells that another key's episodes were forgotten.
func (a *All) Of(key Key) (e *Episodes, evicted bool) {
	e, ok := a.byKey.Get(key)
	if !ok {
		e = new(Episodes)
		// The key outlives the batch it was read from.
		key.Service, key.Run, key.Of = strings.Clone(key.Service), strings.Clone(key.Run), strings.Clone(key.Of)
		evicted = a.byKey.Add(key, e)
	}
	return e, evicted
}

// Episodes of a key, one per verdict. A verdict is said on the first record that it holds for, then on the first one after every Window records, with its
// share of them. A verdict that did not hold for Window records begins anew. Records for which it does not hold never carry it: its end is not said.
type Episodes struct {
	N      int64 // records ever
	Newest int64 // highest iteration ever, of steps
	Repeat bool  // the record that is judged was judged before: a retried batch

	ids  []uint64 // spans of the last records, a ring
	next int
	id   uint64
	by   []episode
}

// episode of one verdict.
type episode struct {
	verdict string
	// The last records that the verdict held for: bit i of lo is record at − i, bit i of hi is record at − 64 − i.
	at     int64
	lo, hi uint64
	said   int64 // the last record that said the verdict with its share, its span, and what it said; 0: none
	saidID uint64
	told   Told
	each   []uint64 // spans of the last records that said the verdict without a share: see Mostly
}

// Told is what is to be said of a verdict that holds for a record.
type Told struct {
	Say      bool
	Held, Of int // the verdict held for Held of the last Of records, this one included
	Again    bool
}

// Record begins the next record. Its verdicts stand on one span.
func (e *Episodes) Record(span uint64) {
	if e.id = span; slices.Contains(e.ids, span) {
		e.Repeat = true
		return
	}
	e.Fresh(span)
}

// Fresh begins the next record, which is known not to come again.
func (e *Episodes) Fresh(span uint64) {
	e.id, e.Repeat = span, false
	e.N++
	if len(e.ids) < Window {
		e.ids = append(e.ids, span)
		return
	}
	e.ids[e.next] = span
	e.next = (e.next + 1) % Window
}

// Holds is asked when a verdict holds for the record. A record that comes again gets the answer it had.
func (e *Episodes) Holds(verdict string) Told {
	ep, t, ok := e.note(verdict)
	if !ok || ep.said > 0 && e.N-ep.said < Window {
		return t
	}
	return e.say(ep, ep.said > 0)
}

// minShare is the number of records from which on a share is said.
const minShare = 10

// Mostly is as Holds, for a verdict about what each record does for itself: each says it, until it is true of more than four in five of them. The share is
// said once in Window records either way.
func (e *Episodes) Mostly(verdict string) Told {
	ep, t, ok := e.note(verdict)
	switch {
	case !ok:
		return t
	case e.N >= minShare && (ep.said == 0 || e.N-ep.said >= Window):
		return e.say(ep, true)
	case e.N >= minShare && 5*int64(ep.held()) > 4*min(e.N, Window):
		return Told{}
	}
	if len(ep.each) == Window {
		ep.each = slices.Delete(ep.each, 0, 1)
	}
	ep.each = append(ep.each, e.id)
	return Told{Say: true}
}

// note remembers that the verdict holds for the record. For a record that comes again it returns what was told then, and false.
func (e *Episodes) note(verdict string) (*episode, Told, bool) {
	i := slices.IndexFunc(e.by, func(ep episode) bool { return ep.verdict == verdict })
	if i < 0 {
		i = len(e.by)
		e.by = append(e.by, episode{verdict: verdict, at: e.N})
	}
	ep := &e.by[i]
	if e.Repeat {
		if ep.saidID == e.id {
			return ep, ep.told, false
		}
		return ep, Told{Say: slices.Contains(ep.each, e.id)}, false
	}
	switch d := e.N - ep.at; {
	case d < 64:
		ep.hi = ep.hi<<d | ep.lo>>(64-d)
		ep.lo <<= d
	case d < 128:
		ep.hi, ep.lo = ep.lo<<(d-64), 0
	default:
		ep.hi, ep.lo = 0, 0
	}
	ep.hi &= 1<<(Window-64) - 1
	ep.lo |= 1
	ep.at = e.N
	return ep, Told{}, true
}

// held is how many of the last records the verdict held for.
func (ep *episode) held() int { return bits.OnesCount64(ep.lo) + bits.OnesCount64(ep.hi) }

func (e *Episodes) say(ep *episode, again bool) Told {
	ep.told = Told{Say: true, Held: ep.held(), Of: int(min(e.N, Window)), Again: again}
	ep.said, ep.saidID = e.N, e.id
	return ep.told
}

// Share is the section of a template that ends the sentence of a verdict that is said again; {held} and {of} are places of the domain.
func Share(records string) string { return "[ It is so for {held} of the last {of} " + records + ".]" }

// HeldAgain is how many of the last records the verdict held for; −1 where that is not to be said.
func (t *Told) HeldAgain() int64 {
	if !t.Again {
		return -1
	}
	return int64(t.Held)
}
