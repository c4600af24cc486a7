package report

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
)

// Evaluations that take much of the time are told beside a loss too small for the headline as well.
func TestHeadlineEvaluations(t *testing.T) {
	for _, lost := range []float64{0, 0.5, 5} {
		c := &conclusion{page: &page{w: io.Discard}, job: new(digest.Job), accounted: true, account: account.Account{Wall: 100, Steps: 10}}
		c.account.Seconds[account.Evaluation] = 20
		c.claims = []claim{{kind: "redone", short: "steps done again", lost: lost, grade: costly}}
		if lost == 0 {
			c.claims = nil
		}
		assert.Contains(t, c.headline(), "Evaluations took 20 s (20%).", lost)
	}
}

// Slow windows that cost less than what was lost beside them, and all of it less than is worth a headline: the log does say where that time went.
func TestHeadlineOfSmallLosses(t *testing.T) {
	w := &digest.Window{Of: spans.WindowStep, SlowCount: 1}
	for range 3600 {
		w.Took.Add(1)
	}
	c := &conclusion{page: &page{w: io.Discard}, job: new(digest.Job), read: new(offline.Reading), window: w, lost: 2}
	c.accounted, c.account = true, account.Account{Wall: 3607, Steps: 3600}
	c.claims = []claim{{kind: "checkpoint", short: "checkpoints", lost: 5, grade: costly}}
	assert.Equal(t, "1 of 3,600 steps was slow (2 s of 1 h). These logs do not say why.", c.headline())
}

// Judged windows without facts leave no empty sentence behind.
func TestHeadlineWithoutFacts(t *testing.T) {
	w := &digest.Window{Of: spans.WindowPass}
	for range enough + 1 {
		w.Took.Add(1)
	}
	c := &conclusion{page: &page{w: io.Discard}, job: new(digest.Job), read: new(offline.Reading), window: w}
	assert.Equal(t, "Healthy. None of 17 passes was slow.", c.headline())
}

// Seconds of slow steps that no log explains, as those of collectives could not be placed in steps, are lost once.
func TestHeadlineTwice(t *testing.T) {
	w := &digest.Window{Of: spans.WindowStep, SlowCount: 3}
	for range 90 {
		w.Took.Add(2)
	}
	c := &conclusion{page: &page{w: io.Discard}, job: new(digest.Job), read: new(offline.Reading), window: w, lost: 9, twice: 8.9}
	c.accounted, c.account = true, account.Account{Wall: 180, Steps: 90}
	c.claims = []claim{{kind: "late_rank", short: "waiting for rank 13", lost: 8.9, grade: costly}}
	assert.InDelta(t, 9, c.total(), 1e-9)
	assert.Equal(t, "3 of 90 steps were slow (9 s of 180 s). No log of steps says why; those of collectives tell of 8.9 s waiting for rank 13.", c.headline())
}
