// Package episode limits lasting verdicts: a verdict on record after record is said once per window.
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

// Window is the number of records after which a lasting verdict is repeated, and over which the share is counted.
const Window = 100

// Key identifies records with common verdicts: a rank's steps, a function's calls.
type Key struct {
	Service, Run, Of string
	Rank             int64
	Stage            spans.TQStage // of TransferQueue
}

// All holds the episodes per key.
type All struct {
	sync.Mutex // guards the map with all episodes; held while the records of a resource are judged

	byKey *simplelru.LRU[Key, *Episodes]
}

// NewAll returns no episodes yet.
func NewAll() *All { return &All{byKey: lru.New[Key, *Episodes](lru.Size)} }

// Len returns how many keys have episodes.
func (a *All) Len() int { return a.byKey.Len() }

// Of returns the episodes of a key, made if absent. evicted: another key's episodes were dropped.
func (a *All) Of(key Key) (e *Episodes, evicted bool) {
	e, ok := a.byKey.Get(key)
	if !ok {
		e = new(Episodes)
		// The key outlives its batch.
		key.Service, key.Run, key.Of = strings.Clone(key.Service), strings.Clone(key.Run), strings.Clone(key.Of)
		evicted = a.byKey.Add(key, e)
	}
	return e, evicted
}

// Episodes of a key, one per verdict. A verdict is said on the first record for which it holds, then on the first such record after every Window records, with
// a share of the window. The end of an episode is not said: records without the verdict never carry the name.
type Episodes struct {
	N      int64 // records ever
	Newest int64 // highest iteration ever, of steps
	Repeat bool  // the current record was judged before: a retried batch

	ids  []uint64 // spans of the last records, a ring
	next int      // index in ids
	id   uint64   // span of the current record
	by   []episode
}

// episode is the state of one verdict.
type episode struct {
	verdict string
	// The last records with the verdict: bit i of lo is record at − i, bit i of hi is record at − 64 − i.
	at     int64
	lo, hi uint64
	said   int64    // number of the last record that said the verdict, once per Window records (Episodes.answerNow); 0: none
	saidID uint64   // the record's span
	answer Answer   // the answer for the record
	each   []uint64 // spans of the last records that said the verdict without a share: see Mostly
}

// Answer says whether and how to say a verdict on a record.
type Answer struct {
	Say      bool
	Held, Of int  // the verdict held for Held of the last Of records, the current record included
	Again    bool // the sentence has the share Held of Of
}

// Record starts the next record, by the id of its span; if the span is one of the last records, it is a repeat. Every verdict of a record is on one span.
func (e *Episodes) Record(span uint64) {
	e.id = span
	if slices.Contains(e.ids, span) {
		e.Repeat = true
		return
	}
	e.Fresh(span)
}

// Fresh starts the next record, known not to be a repeat.
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

// Holds records that a verdict holds for the current record, and answers whether to say it there: once per Window records. A repeated record gets its first
// answer again.
func (e *Episodes) Holds(verdict string) Answer {
	ep, first, fresh := e.note(verdict)
	saidRecently := ep.said > 0 && e.N-ep.said < Window
	if !fresh || saidRecently {
		return first
	}
	return e.answerNow(ep, ep.said > 0)
}

// minShare is the least number of records for a share.
const minShare = 10

// Mostly is Holds for a verdict about the record alone, which each record says. From minShare records on, one per Window records says the share, too; the other
// records say nothing while more than four in five of the last Window records have the verdict, since then hardly any record is special.
func (e *Episodes) Mostly(verdict string) Answer {
	ep, first, fresh := e.note(verdict)
	saidRecently := ep.said > 0 && e.N-ep.said < Window
	nearlyAll := 5*int64(ep.held()) > 4*min(e.N, Window)
	switch {
	case !fresh:
		return first
	case e.N >= minShare && !saidRecently:
		return e.answerNow(ep, true)
	case e.N >= minShare && nearlyAll:
		return Answer{}
	}
	if len(ep.each) == Window {
		ep.each = slices.Delete(ep.each, 0, 1)
	}
	ep.each = append(ep.each, e.id)
	return Answer{Say: true}
}

// note counts the verdict for the current record: the bits of its episode, ep, are shifted by the records since, and bit 0 is set. A repeated record is not
// fresh, is not counted again, and gets its first answer.
func (e *Episodes) note(verdict string) (ep *episode, first Answer, fresh bool) {
	i := slices.IndexFunc(e.by, func(ep episode) bool { return ep.verdict == verdict })
	if i < 0 {
		i = len(e.by)
		e.by = append(e.by, episode{verdict: verdict, at: e.N})
	}
	ep = &e.by[i]
	if e.Repeat {
		if ep.saidID == e.id {
			return ep, ep.answer, false
		}
		return ep, Answer{Say: slices.Contains(ep.each, e.id)}, false
	}
	switch d := e.N - ep.at; { // hi and lo are one number of 128 bits, shifted by d
	case d < 64:
		ep.hi = ep.hi<<d | ep.lo>>(64-d)
		ep.lo <<= d
	case d < 128:
		ep.hi, ep.lo = ep.lo<<(d-64), 0
	default:
		ep.hi, ep.lo = 0, 0
	}
	ep.hi &= 1<<(Window-64) - 1 // only the last Window records count
	ep.lo |= 1
	ep.at = e.N
	return ep, Answer{}, true
}

// held returns for how many of the last Window records the verdict held.
func (ep *episode) held() int { return bits.OnesCount64(ep.lo) + bits.OnesCount64(ep.hi) }

// answerNow returns the answer that says the verdict on the current record, with the share if again, and remembers the answer for a repeat.
func (e *Episodes) answerNow(ep *episode, again bool) Answer {
	ep.answer = Answer{Say: true, Held: ep.held(), Of: int(min(e.N, Window)), Again: again}
	ep.said, ep.saidID = e.N, e.id
	return ep.answer
}

// Share returns the end of a template for the sentence of a repeated verdict; {held} and {of} are places of the domain.
func Share(records string) string { return "[ True of {held} of the last {of} " + records + ".]" }

// HeldAgain returns the number of the last records with the verdict; −1 where the sentence has no share.
func (t *Answer) HeldAgain() int64 {
	if !t.Again {
		return -1
	}
	return int64(t.Held)
}
