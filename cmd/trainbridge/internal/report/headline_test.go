package report

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
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
