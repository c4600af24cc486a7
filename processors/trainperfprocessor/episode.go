package trainperfprocessor

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/trainbridge/trainbridge/spans"
)

// episodeWindow is how many records go by before a verdict that goes on holding is said again, and how many its share is of.
const episodeWindow = 100

// episodeKey names the records that share verdicts about all of them: a rank's steps, a function's calls.
type episodeKey struct {
	service, run, of string
	rank             int64
	stage            spans.TQStage // of TransferQueue
}

// allEpisodes holds the episodes per key.
type allEpisodes struct {
	mu    sync.Mutex // of the map and of the episodes in it; held while the records of a resource are judged
	byKey *simplelru.LRU[episodeKey, *episodes]
}

func newAllEpisodes() *allEpisodes {
	return &allEpisodes{byKey: newLRU[episodeKey, *episodes]()}
}

// of returns the episodes of a key, and makes them where there are none. evicted tells that others were forgotten.
func (a *allEpisodes) of(key episodeKey) (e *episodes, evicted bool) {
	e, ok := a.byKey.Get(key)
	if !ok {
		e = new(episodes)
		// The key outlives the batch it was read from.
		key.service, key.run, key.of = strings.Clone(key.service), strings.Clone(key.run), strings.Clone(key.of)
		evicted = a.byKey.Add(key, e)
	}
	return e, evicted
}

// episodes say a verdict that is true of record after record once, not on each: on the first record that it holds for, then on the
// first one after every episodeWindow records, with its share of them. One that did not hold for so long begins anew. A record that it
// does not hold for never carries it, so that an end is not said.
type episodes struct {
	ids    []uint64 // of the last records, a ring
	next   int
	n      int64 // records ever
	newest int64 // highest iteration ever, of steps
	id     uint64
	repeat bool // the record that is judged was judged before: a retried batch
	by     []episode
}

type episode struct {
	verdict string
	// The last records that it held for: bit i of lo is record at − i, that of hi record at − 64 − i.
	at     int64
	lo, hi uint64
	said   int64 // the record that said it last, and what it said; 0: none
	saidID uint64
	told   told
	each   []uint64 // the last records that said it for themselves
}

// told is what is to be said of a verdict that holds for a record.
type told struct {
	say      bool
	held, of int // it held for so many of the last records, this one included
	again    bool
	more     string // what else is said with the share
}

// record begins the next record. Its verdicts are those of one span.
func (e *episodes) record(span uint64) {
	if e.id = span; slices.Contains(e.ids, span) {
		e.repeat = true
		return
	}
	e.fresh(span)
}

// fresh begins the next record, which is known not to come again.
func (e *episodes) fresh(span uint64) {
	e.id, e.repeat = span, false
	e.n++
	if len(e.ids) < episodeWindow {
		e.ids = append(e.ids, span)
		return
	}
	e.ids[e.next] = span
	e.next = (e.next + 1) % episodeWindow
}

// holds is asked when a verdict holds for the record. A record that comes again gets the answer it had.
func (e *episodes) holds(verdict string) told {
	ep, t, ok := e.note(verdict)
	if !ok || ep.said > 0 && e.n-ep.said < episodeWindow {
		return t
	}
	return e.say(ep, ep.said > 0)
}

// minShare is of how many records a share is said at least.
const minShare = 10

// mostly is as holds, for a verdict about what each record does for itself: each says it, until it is true of more than four in five of them. The share is
// said once in episodeWindow records either way.
func (e *episodes) mostly(verdict string) told {
	ep, t, ok := e.note(verdict)
	switch {
	case !ok:
		return t
	case e.n >= minShare && (ep.said == 0 || e.n-ep.said >= episodeWindow):
		return e.say(ep, true)
	case e.n >= minShare && 5*int64(ep.held()) > 4*min(e.n, episodeWindow):
		return told{}
	}
	if len(ep.each) == episodeWindow {
		ep.each = slices.Delete(ep.each, 0, 1)
	}
	ep.each = append(ep.each, e.id)
	return told{say: true}
}

// note remembers that the verdict holds for the record. Of one that comes again it returns what was told then, and false.
func (e *episodes) note(verdict string) (*episode, told, bool) {
	i := slices.IndexFunc(e.by, func(ep episode) bool { return ep.verdict == verdict })
	if i < 0 {
		i = len(e.by)
		e.by = append(e.by, episode{verdict: verdict, at: e.n})
	}
	ep := &e.by[i]
	if e.repeat {
		if ep.saidID == e.id {
			return ep, ep.told, false
		}
		return ep, told{say: slices.Contains(ep.each, e.id)}, false
	}
	switch d := e.n - ep.at; {
	case d < 64:
		ep.hi = ep.hi<<d | ep.lo>>(64-d)
		ep.lo <<= d
	case d < 128:
		ep.hi, ep.lo = ep.lo<<(d-64), 0
	default:
		ep.hi, ep.lo = 0, 0
	}
	ep.hi &= 1<<(episodeWindow-64) - 1
	ep.lo |= 1
	ep.at = e.n
	return ep, told{}, true
}

// held is how many of the last records it held for.
func (ep *episode) held() int { return bits.OnesCount64(ep.lo) + bits.OnesCount64(ep.hi) }

func (e *episodes) say(ep *episode, again bool) told {
	ep.told = told{say: true, held: ep.held(), of: int(min(e.n, episodeWindow)), again: again}
	ep.said, ep.saidID = e.n, e.id
	return ep.told
}

// add keeps what else is said with the share of a verdict, for when the record comes again.
func (e *episodes) add(verdict, more string) {
	for i := range e.by {
		if e.by[i].verdict == verdict {
			e.by[i].told.more = more
		}
	}
}

// appendShare ends the sentence of a verdict that is said again.
func (t told) appendShare(b []byte, records string) []byte {
	if !t.again {
		return b
	}
	b = append(b, " It is so for "...)
	b = appendInt(b, t.held)
	b = append(b, " of the last "...)
	b = appendInt(b, t.of)
	b = append(b, ' ')
	b = append(b, records...)
	return append(b, '.')
}

// recentEpisodes are those used last of a service and run: mostly all steps of a resource share them.
type recentEpisodes struct {
	source   string
	rank     int64
	episodes *episodes
}

// beginRecord finds the episodes of a step's run, source and rank.
func (t *train) beginRecord(w *work, s *scratch) {
	r, rank := &s.recentBy, w.rankOr()
	if r.episodes == nil || r.rank != rank || r.source != w.source {
		e, evicted := t.episodes.of(episodeKey{service: s.service, run: s.run, of: w.source, rank: rank})
		if evicted {
			s.evicted++
		}
		*r = recentEpisodes{source: w.source, rank: rank, episodes: e}
	}
	if e, id := r.episodes, binary.BigEndian.Uint64(w.id[:]); w.hasIteration && w.iteration > e.newest {
		e.newest = w.iteration // a record that comes again is of no higher iteration than any before
		e.fresh(id)
	} else {
		e.record(id)
	}
}
