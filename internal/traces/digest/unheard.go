package digest

import "cmp"

// Unheard is a communicator with missing logs, or with logs that end early.
type Unheard struct {
	*Communicator

	Heard int64   // how many ranks have records
	None  []int64 // the ranks without records; empty if all have some, or if ranks are not numbered 0 to Size-1
	Early []*Rank // ranks whose records end early
}

// Ended returns the ranks whose records end early, and the largest number of collectives that one of them missed.
func (u *Unheard) Ended() (ranks []int64, missed int64) {
	for _, r := range u.Early {
		ranks, missed = append(ranks, r.Rank), max(missed, r.Missed)
	}
	return ranks, missed
}

// earlyMissed is the number of missed collectives that make a log end early: the record of the last one may be unwritten.
const earlyMissed = 2

// Unheard returns the communicators with missing logs, or with logs that end early, the largest first.
func (d *Collectives) Unheard() (out []Unheard) {
	if d.ranks.Left > 0 {
		return nil // the ranks with logs are not all known
	}
	by := map[string][]*Rank{}
	for _, r := range d.Ranks() {
		by[r.Communicator] = append(by[r.Communicator], r)
	}
	for _, c := range d.Communicators() {
		u := Unheard{Communicator: c}
		withLogs := make(map[int64]bool)
		for _, r := range by[cmp.Or(c.ID, c.Name)] {
			if r.Records == 0 {
				continue
			}
			withLogs[r.Rank] = true
			if r.Missed >= earlyMissed {
				u.Early = append(u.Early, r)
			}
		}
		u.Heard = int64(len(withLogs))
		allHeard := u.Heard >= c.Size && len(u.Early) == 0
		if u.Heard == 0 || allHeard { // without a record of any rank nothing is known
			continue
		}
		for n := range c.Size {
			if !withLogs[n] {
				u.None = append(u.None, n)
			}
		}
		if int64(len(u.None))+u.Heard != c.Size { // some numbers are above: ranks are numbered over all communicators
			u.None = nil
		}
		out = append(out, u)
	}
	return out
}
