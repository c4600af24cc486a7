package tables

import (
	"math"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
)

// inState is a row of Account: the time in a state of the run, or the whole wall clock.
type inState struct {
	english, chinese string
	seconds, share   float64 // s, and of the wall clock
	devices          float64 // s, times ranks; NaN: not known
}

var stateTexts = [account.States]struct{ english, chinese string }{
	account.StartUp: {"start-up", "启动"}, account.InStep: {"steps", "训练步"}, account.Checkpoint: {"checkpoints", "检查点"},
	account.Evaluation: {"evaluations", "评估"}, account.Redone: {"steps done again", "重做的训练步"}, account.Down: {"down between attempts", "中断"},
	account.Stalled: {"stalled", "停滞"}, account.Unexplained: {"between steps, unexplained", "步间，原因未知"}, account.AfterEnd: {"after the last step", "末步之后"},
}

// stateColumns are the columns of Account.
func stateColumns(chinese bool) []Column[*inState] {
	return []Column[*inState]{
		text("state", "状态", "", func(s *inState) string {
			if chinese {
				return s.chinese
			}
			return s.english
		}),
		number("time", "时间", "", human.Seconds, func(s *inState) float64 { return s.seconds }),
		number("share", "占比", "", human.Percent, func(s *inState) float64 { return s.share }),
		number("GPU time", "GPU 时间", "", human.Seconds, func(s *inState) float64 { return s.devices }),
	}
}

// leastShare is the share of the wall clock above which a state has a row: times as stamps of µs leave gaps of ns, which mean nothing.
const leastShare = 0.0005

// State is the name of a state.
func State(s account.State, chinese bool) string {
	if chinese {
		return stateTexts[s].chinese
	}
	return stateTexts[s].english
}

// Account is a table of where the wall-clock time of a run went: a row for each state of the run, then the whole.
func Account(a *account.Account, chinese bool) Table {
	var rows []*inState
	all := &inState{english: "wall clock", chinese: "总时间", seconds: a.Wall, share: math.NaN()}
	for s, seconds := range a.Seconds {
		devices := math.NaN()
		if a.Ranks > 1 { // of a single rank the column would repeat the time
			devices = a.Devices[s]
		}
		all.devices += devices
		if seconds > leastShare*a.Wall {
			rows = append(rows, &inState{stateTexts[s].english, stateTexts[s].chinese, seconds, seconds / a.Wall, devices})
		}
	}
	rows = append(rows, all)
	return tableOf(stateColumns(chinese), rows, chinese)
}

var attempts = []Column[*account.Attempt]{
	text("attempt", "尝试", "", func(a *account.Attempt) string {
		if a.First < 0 {
			return human.Unknown
		}
		return strconv.FormatInt(a.First, 10) + "–" + strconv.FormatInt(a.Last, 10)
	}),
	count("steps", "步数", "", func(a *account.Attempt) int64 { return a.Steps }),
	some("done again", "重做", "", func(a *account.Attempt) int { return int(a.Redone) }),
	number("took", "耗时", "", human.Seconds, func(a *account.Attempt) float64 { return float64(a.End-a.Start) / 1e9 }),
}

// Attempts is a table of the attempts of a run, by their first and last step; empty of a run with a single attempt.
func Attempts(a *account.Account, chinese bool) Table {
	if len(a.Attempts) < 2 {
		return Table{}
	}
	var rows []*account.Attempt
	for i := range a.Attempts {
		rows = append(rows, &a.Attempts[i])
	}
	return tableOf(attempts, rows, chinese)
}

// definition is a row of Goodput: goodput by the definition of a company.
type definition struct {
	by, english, chinese string // whose definition, and the time that counts
	share                float64
}

// definitionColumns are the columns of Goodput.
func definitionColumns(chinese bool) []Column[*definition] {
	return []Column[*definition]{
		text("goodput by", "有效时间比，按", "", func(d *definition) string { return d.by }),
		number("share", "占比", "", human.Percent, func(d *definition) float64 { return d.share }),
		text("what counts", "计入", "", func(d *definition) string {
			if chinese {
				return d.chinese
			}
			return d.english
		}),
	}
}

// Goodput is the goodput of a run by the known definitions (docs/reference/goodput.md), as far as its logs allow.
func Goodput(a *account.Account, chinese bool) Table {
	var rows []*definition
	for _, d := range [...]definition{
		{"trainbridge", "steps that counted, at their usual speed", "计入的训练步，按正常速度", a.Goodput()},
		{"Google", "from step to step, without evaluations and checkpoints", "步与步之间，不含评估与检查点", a.Google()},
		{"NVIDIA CRE", "all but resumes, checkpoints, lost work; no down time", "除恢复、检查点与丢失的工作；不计中断", a.CRE()},
		{"Meta (ETTR)", "all but start-up, down time, checkpoints, redone steps", "除启动、中断、检查点与重做的步", a.ETTR()},
	} {
		if !math.IsNaN(d.share) {
			rows = append(rows, &d)
		}
	}
	return tableOf(definitionColumns(chinese), rows, chinese)
}
