package steps

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/internal/lru"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/episode"
	"github.com/trainbridge/trainbridge/spans"
)

const (
	// slowRankWindow is the number of records considered, slowRankRecords the number of slow records of a rank for a verdict. A rank slow by noise in a quarter
	// of the records reaches slowRankRecords once in 30,000 windows.
	slowRankWindow  = 10
	slowRankRecords = 9
	// slowRankShare is the least cost of the slowest rank, as a share of the step's time.
	slowRankShare = 0.01
)

// slowRanks remembers the slow ranks of the last records of a log.
type slowRanks struct {
	mu    sync.Mutex
	byKey *simplelru.LRU[slowRankKey, *slowRankLog]
}

// slowRankKey identifies a log of records about ranks; of is the name of the spans.
type slowRankKey struct{ service, run, format, of string }

// slowRankLog is what the last records of a log have said.
type slowRankLog struct {
	episode.Episodes

	behind [slowRankWindow][]int64 // slow ranks of each of the last records
}

// newSlowRanks returns no logs yet.
func newSlowRanks() *slowRanks {
	return &slowRanks{byKey: lru.New[slowRankKey, *slowRankLog](lru.Size)}
}

// logOf returns the log of a key, made if absent. evicted: another log was dropped.
func (s *slowRanks) logOf(key slowRankKey) (log *slowRankLog, evicted bool) {
	log, ok := s.byKey.Get(key)
	if !ok {
		log = new(slowRankLog)
		// The key outlives its batch.
		key = slowRankKey{strings.Clone(key.service), strings.Clone(key.run), strings.Clone(key.format), strings.Clone(key.of)}
		evicted = s.byKey.Add(key, log)
	}
	return log, evicted
}

// slowest is a record's statement about its slowest rank.
type slowest struct {
	view.Slowest

	format    string
	iteration view.Int
	step      float64 // s, of one step
}

// comparesRanks reports whether the record has a valid comparison of ranks. The first iteration, which compiles and allocates, has none.
func (r *slowest) comparesRanks() bool {
	first := r.iteration.OK && r.iteration.N <= 1
	return r.Rank.OK && !first && r.Peers.N > 0 && r.Duration > 0 && r.PeersDuration > 0
}

// judgeRank gives a verdict where one rank repeatedly computes for longer than its peers with the same work, so that the peers wait. name and id are of the
// span. A record counts as slow if its slowest rank exceeds its peers by Config.Slowdown, and by a part of the step that matters; the rank must have been among
// the slow ones in slowRankRecords of the last slowRankWindow records.
func (j *judge) judgeRank(name string, id [8]byte, r slowest) {
	if !r.comparesRanks() {
		return
	}
	j.behind = j.behind[:0]
	for i := range r.Behind.Len() {
		if rank := r.Behind.Int(i); rank.OK {
			j.behind = append(j.behind, rank.N)
		}
	}
	j.slow.mu.Lock()
	defer j.slow.mu.Unlock()
	log, evicted := j.slow.logOf(slowRankKey{j.at.Service, j.at.Run, r.format, name})
	if evicted {
		j.tally.Evicted++
	}
	late := r.Duration/r.PeersDuration - 1
	slow := late > j.cfg.Slowdown && !(r.Duration-r.PeersDuration < slowRankShare*r.step) // negated: step may be NaN, unknown
	log.Record(binary.BigEndian.Uint64(id[:]))
	if !log.Repeat {
		i := log.N % slowRankWindow
		log.behind[i] = log.behind[i][:0]
		if slow {
			log.behind[i] = append(log.behind[i], j.behind...)
		}
	}
	if !slow {
		return
	}
	rank, times := log.worst(j.behind)
	if times < slowRankRecords && !log.Repeat { // a repeat gets its first answer, whatever is counted now
		return
	}
	j.slowest, j.slowRank, j.slowRecords, j.seenRecords = r, rank, int64(times), min(log.N, slowRankWindow)
	j.sayIf(rankSlow, log.Holds(spans.VerdictRankSlow+strconv.FormatInt(rank, 10)), late, j.cfg.Slowdown)
}

// judgeRanks judges a span that only reports about ranks, beside the steps.
func (j *judge) judgeRanks(span ptrace.Span) {
	r := &j.ranks
	if r.Read(span, &j.at.Resource); r.Judged {
		return
	}
	j.sheet.Begin()
	j.judgeRank(span.Name(), span.SpanID(), slowest{Slowest: r.Slowest, format: r.Format, iteration: r.Iteration, step: r.Duration})
	j.sheet.Put(span)
}

// worst returns which of the ranks was slow most often in the last records, and how often; 0 times: none of them.
func (l *slowRankLog) worst(ranks []int64) (rank int64, times int) {
	for _, r := range ranks {
		n := 0
		for _, behind := range l.behind {
			if slices.Contains(behind, r) {
				n++
			}
		}
		if n > times {
			rank, times = r, n
		}
	}
	return rank, times
}
