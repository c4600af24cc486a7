package compare

import (
	"math"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
)

const (
	leastDifference = 0.01 // of the wall clock: a state with a smaller difference counts as equal
	leastSentence   = 0.05 // of the wall clock: the conclusion begins with a difference of as much or more
)

// accounts are the accounts of the wall-clock time of both runs. nil: the logs of the run have no step.
type accounts struct{ a, b *account.Account }

// accountsOf returns the accounts of both runs.
func accountsOf(a, b *Run) accounts {
	of := func(r *Run) *account.Account {
		r.Tell(&r.Ledger)
		told, ok := r.Ledger.Account()
		if !ok || told.Wall <= 0 {
			return nil
		}
		return &told
	}
	return accounts{of(a), of(b)}
}

// shareOfWall returns a state's share of the run's wall clock, 0 to 1; 0 of a run without an account.
func shareOfWall(a *account.Account, s account.State) float64 {
	if a == nil {
		return 0
	}
	return a.Seconds[s] / a.Wall
}

// goodput returns the goodput of a run, 0 to 1; NaN of a run without an account.
func goodput(a *account.Account) float64 {
	if a == nil {
		return math.NaN()
	}
	return a.Goodput()
}

// largest returns the state whose share differs most, and the difference: the share of B less that of A. Shares add up to one, so the share of steps falls by
// as much as another state's grows: then the other is told.
func (c *accounts) largest() (state account.State, by float64) {
	for s := range account.States {
		d := shareOfWall(c.b, s) - shareOfWall(c.a, s)
		if math.Abs(d) > math.Abs(by) || state == account.InStep && math.Abs(d) > 0.99*math.Abs(by) {
			state, by = s, d
		}
	}
	return state, by
}

// alike reports whether goodput and all states differ by less than leastTold of the wall clock: as shares, and if the runs did as many steps, in seconds too.
// (Runs of unlike length differ in seconds anyway.) Both runs must have an account.
func (c *accounts) alike() bool {
	if _, most := c.largest(); math.Abs(most) >= leastDifference || math.Abs(goodput(c.a)-goodput(c.b)) >= leastDifference {
		return false
	}
	if c.a.Steps != c.b.Steps {
		return true
	}
	for s := range account.States {
		if math.Abs(c.a.Seconds[s]-c.b.Seconds[s]) >= leastDifference*max(c.a.Wall, c.b.Wall) {
			return false
		}
	}
	return true
}

// both reports whether both runs have an account.
func (c *accounts) both() bool { return c.a != nil && c.b != nil }

// accountTitle returns the title of the section; "": no run has an account.
func (d *document) accountTitle() string {
	if d.accounts.a == nil && d.accounts.b == nil {
		return ""
	}
	return d.in("Where the wall-clock time went", "总时间去向")
}

// accountHead returns the head of the columns of accountRows.
func (d *document) accountHead() []string {
	return []string{"", "A", "B", "B − A", d.in("share, B − A", "占比之差")}
}

// accountRows returns the rows below accountHead: the states with a share of half of leastDifference or more in either run, the wall clock, and goodput. nil:
// the accounts are alike.
func (d *document) accountRows() (rows [][]string) {
	a, b := d.accounts.a, d.accounts.b
	if d.accounts.both() && d.accounts.alike() {
		return nil
	}
	for s := range account.States {
		if x, y := shareOfWall(a, s), shareOfWall(b, s); max(x, y) >= leastDifference/2 {
			rows = append(rows, d.accountRow(tables.State(s, bool(d.words)), func(of *account.Account) float64 { return of.Seconds[s] }, pointsBetween(x, y)))
		}
	}
	rows = append(rows, d.accountRow(d.in("wall clock", "总时间"), func(of *account.Account) float64 { return of.Wall }, ""))
	x, y := goodput(a), goodput(b)
	return append(rows, []string{d.in("goodput", "有效时间比"), human.Percent(x), human.Percent(y), "", d.ifBoth(pointsBetween(x, y))})
}

// accountRow returns a row of times: name, A, B, B − A (signed) and points, the difference of shares; the last two are empty unless both runs have an account.
// of returns the seconds of a run's account.
func (d *document) accountRow(name string, of func(*account.Account) float64, points string) []string {
	row := []string{name, human.Unknown, human.Unknown, "", d.ifBoth(points)}
	for i, run := range []*account.Account{d.accounts.a, d.accounts.b} {
		if run != nil {
			row[1+i] = human.Seconds(of(run))
		}
	}
	if d.accounts.both() {
		by := of(d.accounts.b) - of(d.accounts.a)
		if math.Abs(by) < 1e-6 { // sums of equal times may differ in the last bits
			by = 0
		}
		row[3] = human.Seconds(math.Abs(by))
		switch {
		case by > 0:
			row[3] = "+" + row[3]
		case by < 0:
			row[3] = "-" + row[3]
		}
	}
	return row
}

// ifBoth returns a text about the difference of the accounts; "" unless both runs have an account.
func (d *document) ifBoth(points string) string {
	if !d.accounts.both() {
		return ""
	}
	return points
}

// pointsBetween returns the difference of two shares in percentage points: "+1.2 %".
func pointsBetween(a, b float64) string {
	return human.Signed(math.Round(1000*(b-a))/10+0, 1) + " %" // + 0 makes −0 a 0
}

// accountBelow returns the text below the rows: that a run has no account, or, where there are no rows, that the accounts are alike; "": neither.
func (d *document) accountBelow() string {
	a, b := d.accounts.a, d.accounts.b
	switch {
	case a == nil:
		return d.in("The logs of A tell of no step.", "A 的日志没有训练步。")
	case b == nil:
		return d.in("The logs of B tell of no step.", "B 的日志没有训练步。")
	case !d.accounts.alike():
		return ""
	}
	return d.sf("Alike to 1 %% of the wall clock: A %s, goodput %s; B %s, goodput %s.", "相差不到总时间的 1 %%：A %s，有效时间比 %s；B %s，有效时间比 %s。",
		human.Seconds(a.Wall), human.Percent(a.Goodput()), human.Seconds(b.Wall), human.Percent(b.Goodput()))
}

// accountSentence returns the sentence at the beginning of the conclusion about goodput or a state that differs by leastSentence of the wall clock; "": none
// does.
func (d *document) accountSentence() string {
	if !d.accounts.both() {
		return ""
	}
	a, b := d.accounts.a, d.accounts.b
	s, most := d.accounts.largest()
	if math.Abs(most) < leastSentence && math.Abs(goodput(a)-goodput(b)) < leastSentence {
		return ""
	}
	if math.Abs(most) < leastSentence {
		return d.sf("Goodput: A %s, B %s. ", "有效时间比：A %s，B %s。", human.Percent(a.Goodput()), human.Percent(b.Goodput()))
	}
	return d.sf("Goodput: A %s, B %s. What differs most of the wall clock: %s, A %s of %s, B %s of %s. ",
		"有效时间比：A %s，B %s。总时间中差别最大的是%s：A %s（共 %s），B %s（共 %s）。",
		human.Percent(a.Goodput()), human.Percent(b.Goodput()), tables.State(s, bool(d.words)),
		human.Seconds(a.Seconds[s]), human.Seconds(a.Wall), human.Seconds(b.Seconds[s]), human.Seconds(b.Wall))
}

// jsonAccountOf returns the account of a run for the JSON document; nil for nil.
func jsonAccountOf(a *account.Account) *jsonAccount {
	if a == nil {
		return nil
	}
	out := &jsonAccount{Wall: a.Wall, Goodput: a.Goodput(), States: map[string]float64{}}
	for s, seconds := range a.Seconds {
		out.States[account.State(s).String()] = seconds
	}
	return out
}
