package compare

import (
	"math"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
)

const (
	leastTold  = 0.01 // of the wall clock: states with a smaller difference are alike
	leastNamed = 0.05 // likewise: a difference of as much or more is said first
)

// accounts are where the wall-clock time of both runs went; nil: the logs of a run tell of no step.
type accounts struct{ a, b *account.Account }

// accountsOf makes the accounts of both runs.
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

// share returns a state's share of the run's wall clock, 0 to 1; 0 of a run without an account.
func share(a *account.Account, s account.State) float64 {
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

// most returns the state whose share differs most, and by how much: B's share less A's.
func (c *accounts) most() (state account.State, by float64) {
	for s := range account.States {
		if d := share(c.b, s) - share(c.a, s); math.Abs(d) > math.Abs(by) {
			state, by = s, d
		}
	}
	return state, by
}

// alike reports whether goodput and all states differ by less than leastTold of the wall clock: as shares, and if the runs did as many steps, in seconds too.
// (Runs of unlike length differ in seconds anyway.) Both runs must have an account.
func (c *accounts) alike() bool {
	if _, most := c.most(); math.Abs(most) >= leastTold || math.Abs(goodput(c.a)-goodput(c.b)) >= leastTold {
		return false
	}
	if c.a.Steps != c.b.Steps {
		return true
	}
	for s := range account.States {
		if math.Abs(c.a.Seconds[s]-c.b.Seconds[s]) >= leastTold*max(c.a.Wall, c.b.Wall) {
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

// accountHead is above the columns of accountRows.
func (d *document) accountHead() []string {
	return []string{"", "A", "B", "B − A", d.in("share, B − A", "占比之差")}
}

// accountRows returns the rows below accountHead: the states with a share of half of leastTold or more in either run, the wall clock, and goodput. Accounts
// that are alike have no rows.
func (d *document) accountRows() (rows [][]string) {
	a, b := d.accounts.a, d.accounts.b
	if d.accounts.both() && d.accounts.alike() {
		return nil
	}
	for s := range account.States {
		if x, y := share(a, s), share(b, s); max(x, y) >= leastTold/2 {
			rows = append(rows, d.accountRow(tables.State(s, bool(d.words)), func(of *account.Account) float64 { return of.Seconds[s] }, points(x, y)))
		}
	}
	rows = append(rows, d.accountRow(d.in("wall clock", "总时间"), func(of *account.Account) float64 { return of.Wall }, ""))
	x, y := goodput(a), goodput(b)
	return append(rows, []string{d.in("goodput", "有效时间比"), human.Percent(x), human.Percent(y), "", d.known(points(x, y))})
}

// accountRow returns a row of times: name, A, B, B − A (signed) and points, the difference of shares; the last two are empty unless both runs have an account.
// of returns the seconds of a run's account.
func (d *document) accountRow(name string, of func(*account.Account) float64, points string) []string {
	row := []string{name, human.Unknown, human.Unknown, "", d.known(points)}
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

// known is points, a printed difference, or "" unless both runs have an account.
func (d *document) known(points string) string {
	if !d.accounts.both() {
		return ""
	}
	return points
}

// points returns the difference of two shares in percentage points: "+1.2 %".
func points(a, b float64) string {
	return human.Signed(math.Round(1000*(b-a))/10+0, 1) + " %" // + 0 makes −0 a 0
}

// accountBelow returns the text below the rows, about a run without an account, or in place of rows, about accounts that are alike; "": neither.
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

// accountSentence begins the conclusion where goodput or a state differ by leastNamed of the wall clock; "" otherwise.
func (d *document) accountSentence() string {
	if !d.accounts.both() {
		return ""
	}
	a, b := d.accounts.a, d.accounts.b
	s, most := d.accounts.most()
	if math.Abs(most) < leastNamed && math.Abs(goodput(a)-goodput(b)) < leastNamed {
		return ""
	}
	if math.Abs(most) < leastNamed {
		return d.sf("Goodput: A %s, B %s. ", "有效时间比：A %s，B %s。", human.Percent(a.Goodput()), human.Percent(b.Goodput()))
	}
	return d.sf("Goodput: A %s, B %s. What differs most of the wall clock: %s, A %s of %s, B %s of %s. ",
		"有效时间比：A %s，B %s。总时间中差别最大的是%s：A %s（共 %s），B %s（共 %s）。",
		human.Percent(a.Goodput()), human.Percent(b.Goodput()), tables.State(s, bool(d.words)),
		human.Seconds(a.Seconds[s]), human.Seconds(a.Wall), human.Seconds(b.Seconds[s]), human.Seconds(b.Wall))
}

// jsonAccountOf returns the account of a run.
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
