package report

import (
	"cmp"
	"slices"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// deviceSeconds are the seconds of all ranks together, against which waiting is held: by the account if it has a clock, else from the first late record of a
// collective to the last, else from the first span to the last. The account is better, because logs with stamps of several time zones are apart by hours; so
// are collectives and a training log without a clock, whose times are those of its file.
func (c *conclusion) deviceSeconds() float64 {
	if c.accounted && c.account.Clock {
		devices := 0.0
		for s := range account.States {
			devices += c.ranksIn(s) * c.account.Seconds[s]
		}
		return devices
	}
	whole := c.job.Last - c.job.First
	if _, width, n := c.job.Collectives.Columns(); n > 1 {
		whole = min(whole, width*int64(n))
	}
	return float64(c.size) * float64(whole) / 1e9
}

// base are the GPU-seconds that waiting is held against, and how they are called: all time, or without any clock the time in collectives, by the records.
func (c *conclusion) base() (devices float64, called string) {
	if devices = c.deviceSeconds(); devices > 0 {
		return devices, c.in("all time", "全部时间")
	}
	for _, o := range c.job.Collectives.Operations() {
		devices += o.Records.Took.Sum()
	}
	return devices, c.in("the time in collectives", "集合通信时间")
}

// late adds a claim of a rank or host that others waited for: devices is the GPU-seconds of the wait, waiting how many ranks waited. Its seconds are no further
// loss if a claim of all waiting has them, or of a host the claim of a rank.
func (c *conclusion) late(kind, what, short string, devices float64, waiting int64, seen []proof) {
	seconds := devices / max(1, float64(waiting))
	cl := claim{
		kind: kind, what: what, short: short, cost: seconds, lost: seconds, devices: devices, grade: costly, proof: seen, advice: c.of(advices[spans.PartWait]),
	}
	if slices.ContainsFunc(c.claims, func(of claim) bool { return of.kind == "wait" || of.kind == "late_rank" && kind == "late_host" }) || !(c.whole() > 0) {
		cl.lost = 0 // or of an unknown whole
	}
	c.claims = append(c.claims, cl)
}

// once returns the record with which the rank came latest; ok: that one collective has nearly all (80 %) of the waiting for the rank.
func (c *conclusion) once(r *digest.Rank) (worst digest.Ranked[string], ok bool) {
	if len(r.Latest) == 0 {
		return worst, false
	}
	worst = r.Latest[0]
	return worst, worst.Weight*float64(c.size-1) >= 0.8*r.Cost.Sum()
}

// within names the communicator of a rank, " of TP_GROUP", where the number of the rank is that of another process in another communicator: by the logs of the
// records that came latest. "": the number has one meaning.
func (c *conclusion) within(r *digest.Rank, all []*digest.Rank) string {
	other := func(o *digest.Rank) bool {
		return o.Rank == r.Rank && o.Communicator != r.Communicator && len(o.Latest) > 0 && o.Latest[0].File != r.Latest[0].File
	}
	if len(r.Latest) == 0 || !slices.ContainsFunc(all, other) {
		return ""
	}
	called := r.Communicator
	for _, comm := range c.job.Collectives.Communicators() {
		if comm.ID == r.Communicator && comm.Name != "" && comm.Name != comm.ID {
			called = comm.Name + " " + comm.ID
		}
	}
	return c.sf(" of %s", "（%s）", name(called))
}

// ranks adds a claim for each rank that others waited for at high cost, though no cause of slow steps names it: a rank late in each step makes no step slower
// than the others. The waiting for the rank must be a quarter of all waiting, 1.5 times the rank's fair share, and 3 % of the time of all ranks, or 1 % if
// train_perf has called the rank a straggler; without a clock a quarter of the time in collectives.
func (c *conclusion) ranks() {
	waited := 0.0
	for _, o := range c.job.Collectives.Operations() {
		waited += o.Cost.Sum()
	}
	devices, base := c.base()
	ranks := c.job.Collectives.Ranks()
	slices.SortStableFunc(ranks, func(a, b *digest.Rank) int { return cmp.Compare(b.Cost.Sum(), a.Cost.Sum()) })
	for _, r := range ranks {
		least := 3 * little * devices
		if r.Straggler > 0 { // train_perf calls the rank late again and again
			least = little * devices
		}
		if !(c.whole() > 0) {
			least = devices / 4
		}
		fair := waited / float64(max(1, c.size)) // where nobody is to blame, such as with sequences of different lengths
		if devices <= 0 || r.Cost.Sum() < max(waited/4, 1.5*fair, least) || c.blamed(r.Rank) {
			continue
		}
		who := c.who(view.Int{N: r.Rank, OK: true}, r.Host) + c.within(r, ranks)
		what := c.sf(
			"The others waited %s GPU-seconds for %s, %s of %s, in %s of %s collectives",
			"其他 rank 共等待 %[2]s %[1]s GPU·秒，占%[4]s的 %[3]s（%[6]s 次集合通信中的 %[5]s 次）",
			human.Digits(r.Cost.Sum()), who, human.Percent(r.Cost.Sum()/devices), base, human.Thousands(r.Last), human.Thousands(r.Records),
		)
		if once, ok := c.once(r); ok {
			what = c.sf("%[2]s came %[3]s late to %[1]s: the others waited %[4]s GPU-seconds, %[5]s of %[6]s",
				"%[2]s 到达 %[1]s 时迟到 %[3]s：其他 rank 共等待 %[4]s GPU·秒，占%[6]s的 %[5]s",
				name(once.Of), c.capital(who), human.Seconds(once.Weight), human.Digits(r.Cost.Sum()), human.Percent(r.Cost.Sum()/devices), base)
		}
		c.late("late_rank", what, c.sf("waiting for %s", "等待 %s", who), r.Cost.Sum(), c.size-1, c.latestOf(r))
	}
}

// hosts adds a claim for each host that the ranks of other hosts waited for at high cost, unless a single rank of the host has more than 80 % of the waiting:
// then the rank is to blame, not the host.
func (c *conclusion) hosts() {
	hosts := c.job.Collectives.Hosts()
	if len(hosts) < 2 {
		return
	}
	total := 0.0
	for _, h := range hosts {
		total += h.Waited.Sum()
	}
	// Two limits, both in GPU-seconds. Of n equal hosts each has 1/n of all waiting, a host alone to blame has all: the first limit is half way between the two.
	leastOfWaiting := total * (1 + 1/float64(len(hosts))) / 2
	// The second limit is a share of the time of all ranks, or, without a clock, a larger share of the time in collectives.
	devices, base := c.base() // and the name of that time
	leastOfAll := little * devices
	if !(c.whole() > 0) {
		leastOfAll = devices / 4
	}
	for _, h := range hosts {
		waited := h.Waited.Sum()                                                // GPU-seconds
		if waited < max(leastOfWaiting, leastOfAll) || h.Name == digest.Other { // Other: hosts beyond the digest's bound
			continue
		}
		own, worst := int64(0), (*digest.Rank)(nil) // ranks of the host, and the one that cost the most
		for _, r := range c.job.Collectives.Ranks() {
			if r.Host != h.Name {
				continue
			}
			own++
			if worst == nil || r.Waited.Sum() > worst.Waited.Sum() {
				worst = r
			}
		}
		if worst == nil || own < 2 || worst.Waited.Sum() > 0.8*waited { // no rank with records, one rank, or a rank to blame
			continue
		}
		c.late("late_host", c.sf("Other hosts waited %s GPU-seconds for %s, %s of %s and %s of all waiting",
			"其他主机的 rank 共等待 %[2]s %[1]s GPU·秒，占%[4]s的 %[3]s、全部等待的 %[5]s", human.Digits(waited), name(h.Name),
			human.Percent(waited/devices), base, human.Percent(waited/total)),
			c.sf("waiting for host %s", "等待主机 %s", name(h.Name)), waited, c.size-own, c.latest(worst.Rank))
	}
}
