package report

import (
	"math"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
)

// died says how the job ended, where its logs tell of an error.
func (c *conclusion) died() {
	c.step = -1
	for _, at := range c.account.Attempts {
		c.step = max(c.step, at.Last)
	}
	c.end = postmortem.Of(&c.job.Ends, files(c.job, c.read), c.size, c.step)
	if !c.end.Failed() {
		return
	}
	cl := claim{kind: "end", what: c.end.Sentence, cost: math.NaN(), rank: ended, advice: c.end.Advice}
	for i := range c.end.Evidence[:min(len(c.end.Evidence), evidences)] {
		e := &c.end.Evidence[i]
		cl.proof = append(cl.proof, proof{what: name(e.Text), At: e.At})
	}
	c.claims = append(c.claims, cl)
}
