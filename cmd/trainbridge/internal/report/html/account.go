package html

import (
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// states is a bar of the wall clock of the run by state, below the conclusion; nil without an account.
func (c *composer) states(j *digest.Job) *bars {
	a := j.Account()
	if a == nil {
		return nil
	}
	whole := &bars{head: head{Kind: "bars", Title: c.t("Wall clock by state", "总时间按状态"), Wide: true}, Unit: "s"}
	one := bar{}
	for state, seconds := range a.Seconds {
		if seconds > 0 {
			whole.Parts = append(whole.Parts, barPart{tables.State(account.State(state), c.chinese), len(whole.Parts) % grey})
			one.Values = append(one.Values, seconds)
		}
	}
	whole.Items = append(whole.Items, one)
	return whole
}

// account has the states, attempts and goodput of the run as tables.
func (c *composer) account(j *digest.Job) section {
	s := section{Title: c.t("Where the wall-clock time went", "总时间去向")}
	a := j.Account()
	if a == nil {
		return s
	}
	s.add(tableOf(c.t("States", "状态"), tables.Account(a, c.chinese)))
	s.add(tableOf(c.t("Attempts", "各次尝试"), tables.Attempts(a, c.chinese)))
	s.add(tableOf(c.t("Goodput by its definitions", "有效时间比，按各家定义"), tables.Goodput(a, c.chinese)))
	return s
}
