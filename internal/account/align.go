package account

import (
	"maps"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/stat"
)

// clocksApart is the skew (s) from which the clocks of ranks are aligned: less is the spread of ranks in a step, and of their loggers.
const clocksApart = 1

// Rank records the rank of a writer; below 0: unknown.
func (l *Ledger) Rank(writer int32, rank int64) {
	if rank < 0 {
		return
	}
	if l.rankOf == nil {
		l.rankOf = map[int32]int64{}
	}
	l.rankOf[writer] = rank
}

// alignClocks moves steps, which are in order of time, to the clock of the lowest rank. The ranks of a job do a step at the same time, but the clocks of their
// hosts may differ by minutes: the steps of a host that is ahead would look like those of a restart. Ranks that begin with another step than the lowest rank
// did not train beside it, and stay unchanged.
func (l *Ledger) alignClocks() {
	by := map[int64][]int{} // indices of the steps of each rank
	for i := range l.steps {
		if rank, known := l.alignsAs(&l.steps[i]); known {
			by[rank] = append(by[rank], i)
		}
	}
	if len(by) < 2 {
		return
	}
	ranks := slices.Sorted(maps.Keys(by))
	lowest := by[ranks[0]]
	ends := make(map[int64]int64, len(lowest)) // of each number, the first time
	for _, i := range lowest {
		if s := &l.steps[i]; ends[s.Number] == 0 {
			ends[s.Number] = s.End
		}
	}
	moved := false
	for _, rank := range ranks[1:] {
		if own := by[rank]; l.steps[own[0]].Number == l.steps[lowest[0]].Number {
			moved = l.moveEarlier(own, l.clockLead(own, ends)) || moved
		}
	}
	if moved {
		sortSteps(l.steps)
	}
}

// alignsAs returns the rank whose clock a step has. false: no rank is known, or the step has no number. The steps of a log without a clock begin when its file
// was last written: these times order no two files, so each writer is a rank of its own.
func (l *Ledger) alignsAs(s *Step) (rank int64, known bool) {
	rank, known = l.rankOf[s.Writer]
	if s.Synthetic {
		rank, known = int64(s.Writer), true
	}
	return rank, known && s.Number >= 0
}

// clockLead returns how far the clock of a rank is ahead of the lowest rank's, s: the median over the steps that both have, each counted once. own has the
// indices of the steps of the rank; ends is when the steps of the lowest rank ended, by number; NaN: no common step.
func (l *Ledger) clockLead(own []int, ends map[int64]int64) float64 {
	diffs := make([]float64, 0, len(own))
	seen := make(map[int64]bool, len(own))
	for _, i := range own {
		s := &l.steps[i]
		if end, ok := ends[s.Number]; ok && !seen[s.Number] {
			diffs = append(diffs, float64(s.End-end)/1e9)
			seen[s.Number] = true
		}
	}
	return stat.MedianInPlace(diffs)
}

// moveEarlier moves steps to earlier times by so many seconds, if that exceeds the spread of ranks (clocksApart), and reports whether it did.
func (l *Ledger) moveEarlier(own []int, seconds float64) bool {
	if math.Abs(seconds) < clocksApart {
		return false
	}
	by := int64(math.Round(seconds * 1e9))
	for _, i := range own {
		s := &l.steps[i]
		s.Start = boundedTime(s.Start - by)
		s.End = max(s.Start, boundedTime(s.End-by))
	}
	return true
}
