package trainperfprocessor

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

const (
	// slowRankWindow is over how many records a rank has to be slow, slowRankRecords in how many of them. A rank that noise makes slow in a quarter of the
	// records is so in that many of so many once in 30,000 times.
	slowRankWindow  = 10
	slowRankRecords = 9
	// slowRankShare is which share of the step's time the slowest rank must cost.
	slowRankShare = 0.01
)

// slowRanks remembers which ranks were behind in the last records of a log.
type slowRanks struct {
	mu    sync.Mutex
	byKey *simplelru.LRU[slowRankKey, *slowRankLog]
}

type slowRankKey struct{ service, run, source, of string }

type slowRankLog struct {
	episodes
	behind [slowRankWindow][]int64 // of the last records, those that were slow
}

func newSlowRanks() *slowRanks {
	return &slowRanks{byKey: newLRU[slowRankKey, *slowRankLog]()}
}

// rankSpan is what a record says about its slowest rank.
type rankSpan struct {
	id             pcommon.SpanID
	source, stage  string
	rank, peers    int64
	seconds, usual float64
	step           float64 // s, of one step
	first          bool    // it compiles and allocates
	behind         []int64
}

// ranked passes over the attributes of a record. It says false where the record does not compare ranks, or was judged.
func (s *scratch) ranked(span ptrace.Span) (r rankSpan, ok bool) {
	r.behind = s.behind[:0]
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrSource:
			r.source = spans.ValueText(v)
		case spans.AttrIteration:
			n, known := integerOf(v)
			r.first = known && n <= 1
		case spans.AttrStepDuration:
			r.step = spans.ValueNumber(v)
		case spans.AttrRankSlowest:
			r.rank, ok = integerOf(v)
		case spans.AttrRankSlowestStage:
			r.stage = spans.ValueText(v)
		case spans.AttrRankSlowestPeers:
			r.peers, _ = integerOf(v)
		case spans.AttrRankSlowestDuration:
			r.seconds = spans.ValueNumber(v)
		case spans.AttrRankSlowestPeersDuration:
			r.usual = spans.ValueNumber(v)
		case spans.AttrRanksBehind:
			if v.Type() == pcommon.ValueTypeSlice {
				for _, rank := range v.Slice().All() {
					if n, ok := integerOf(rank); ok {
						r.behind = append(r.behind, n)
					}
				}
			}
		}
	}
	s.behind = r.behind[:0]
	r.id = span.SpanID()
	return r, ok && !r.first && r.peers > 0 && r.seconds > 0 && r.usual > 0
}

// judgeRank says that a rank computes for longer than those that do the same, where the same rank does so again and again: all others wait for it.
func (t *train) judgeRank(span ptrace.Span, s *scratch) {
	r, ok := s.ranked(span)
	if !ok {
		return
	}
	t.slow.mu.Lock()
	defer t.slow.mu.Unlock()
	key := slowRankKey{s.service, s.run, r.source, span.Name()}
	of, ok := t.slow.byKey.Get(key)
	if !ok {
		of = new(slowRankLog)
		// The key outlives the batch it was read from.
		key = slowRankKey{strings.Clone(s.service), strings.Clone(s.run), strings.Clone(r.source), strings.Clone(key.of)}
		if t.slow.byKey.Add(key, of) {
			s.evicted++
		}
	}
	late := r.seconds/r.usual - 1
	slow := late > t.cfg.Slowdown && !(r.seconds-r.usual < slowRankShare*r.step)
	id := r.id
	of.record(binary.BigEndian.Uint64(id[:]))
	if !of.repeat {
		i := of.n % slowRankWindow
		of.behind[i] = of.behind[i][:0]
		if slow {
			of.behind[i] = append(of.behind[i], r.behind...)
		}
	}
	if !slow {
		return
	}
	rank, times := of.worst(r.behind)
	if times < slowRankRecords && !of.repeat {
		return
	}
	said := of.holds(spans.VerdictRankSlow + strconv.FormatInt(rank, 10))
	if !said.say {
		return
	}
	s.say(verdict{name: spans.VerdictRankSlow, severity: bad, value: late, threshold: t.cfg.Slowdown}, func(b []byte) []byte {
		b = append(b, "Rank "...)
		b = strconv.AppendInt(b, rank, 10)
		if n := len(r.behind) - 1; n > 0 {
			b = append(b, " and "...)
			b = appendInt(b, n)
			b = append(b, " more that were as slow"...)
		}
		b = append(b, " computed for "...)
		b = appendShort(b, 1e3*r.seconds)
		b = append(b, " ms, "...)
		b = appendPercent(b, late)
		if r.peers == 1 {
			b = append(b, " longer than the fastest"...)
		} else {
			b = append(b, " longer than the median of the "...)
			b = strconv.AppendInt(b, r.peers, 10)
			b = append(b, " other ranks of its pipeline stage"...)
		}
		b = append(b, ", most of it lost in "...)
		b = append(b, r.stage...)
		b = append(b, "; it was slow in "...)
		b = appendInt(b, times)
		b = append(b, " of the last "...)
		b = appendInt(b, int(min(of.n, slowRankWindow)))
		b = append(b, " records. All others wait for it: check the clock, temperature and errors of its device, what else runs on its host, and its share of the work (experts, lengths of sequences)."...)
		return said.appendShare(b, "records")
	})
}

// ranks judges a report about ranks.
func (t *train) ranks(span ptrace.Span, s *scratch) {
	if _, done := span.Attributes().Get(spans.AttrVerdict); done {
		return
	}
	s.verdicts = s.verdicts[:0]
	t.judgeRank(span, s)
	s.put(span)
	s.verdicts = s.verdicts[:0]
}

// worst is the one of ranks that was behind most often, and how often.
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
