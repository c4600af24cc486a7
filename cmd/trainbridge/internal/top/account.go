package top

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/book"
	"github.com/trainbridge/trainbridge/spans"
)

// spent is where the wall-clock time of a run went. The zero value is not known.
type spent struct {
	states  [account.States]float64 // s, by state
	goodput float64                 // share
}

// refresh brings spent up to date with the job's book, not for every new line: the account of a long run takes some ms (book.Due).
func (j *job) refresh(now time.Time) {
	if j.book == nil || !j.stale || !j.book.Due(j.known, now.Sub(j.changed)) {
		return
	}
	j.stale, j.known = false, j.book.Ledger.Len()
	if a, ok := j.book.Ledger.Account(); ok && a.Wall > 0 {
		j.spent = spent{a.Seconds, a.Goodput()}
	}
}

// accountsOf reads where the wall-clock time of each run went from the metrics of a running trainbridge. each calls a function for each series of a metric,
// with the run.
func accountsOf(each func(family string, f func(run string, m *dto.Metric))) map[string]*spent {
	out := map[string]*spent{}
	of := func(run string) *spent {
		if out[run] == nil {
			out[run] = new(spent)
		}
		return out[run]
	}
	each("ml_run_time_seconds", func(run string, m *dto.Metric) {
		for state := range account.States {
			if state.String() == label(m, spans.AttrRunState) {
				of(run).states[state] = value(m)
			}
		}
	})
	each("ml_train_goodput_ratio", func(run string, m *dto.Metric) { of(run).goodput = value(m) })
	return out
}

// books of all jobs.
func (m *model) books() iter.Seq[*book.Book] {
	return func(yield func(*book.Book) bool) {
		for _, j := range m.jobs {
			if j.book != nil && !yield(j.book) {
				return
			}
		}
	}
}

const mostStates = 4 // that are named

// line is the row of the account: "goodput  91 %  of 2 h 6 min: training 91 %, checkpoint 4 %, …", with up to four states, those that took most of the
// wall clock and 0.1 % at least; nil: unknown.
func (s *spent) line() line {
	wall := 0.0
	var states []account.State
	for state, seconds := range s.states {
		if wall += seconds; seconds > 0 {
			states = append(states, account.State(state))
		}
	}
	if wall <= 0 {
		return nil
	}
	slices.SortStableFunc(states, func(a, b account.State) int { return cmp.Compare(s.states[b], s.states[a]) })
	var texts []string
	for _, state := range states[:min(len(states), mostStates)] {
		if share := s.states[state] / wall; share >= 0.001 {
			texts = append(texts, tables.State(state, false)+" "+human.Percent(share))
		}
	}
	return line{
		{human.Pad("goodput", 11) + " ", ""},
		{human.PadLeft(human.Percent(s.goodput), 9), bold},
		{fmt.Sprintf("  of %s: %s", human.Seconds(wall), strings.Join(texts, ", ")), ""},
	}
}
