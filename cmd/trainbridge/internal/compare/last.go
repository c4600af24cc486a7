package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/cause"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// lateCosts are the costs of waiting, s x waiting ranks, by the rank and the host that came last to collectives.
type lateCosts struct {
	ranks map[int64]float64
	hosts map[string]float64
	of    map[int64]string // the host of a rank
	all   float64
}

// mostLast bounds the ranks of lateCosts.
const mostLast = 10_000

// add adds a collective: the rank that came last, and the GPU-seconds that the others would not have waited if that rank had come with the last but one
// (nccl.late.cost). Collectives whose ranks called different operations are left out. Ranks beyond mostLast are only counted in all.
func (l *lateCosts) add(v *view.Collective) {
	if !v.Last.Rank.OK || !(v.Last.Cost > 0) || v.Mismatch {
		return
	}
	if l.ranks == nil {
		l.ranks, l.hosts, l.of = map[int64]float64{}, map[string]float64{}, map[int64]string{}
	}
	l.all += v.Last.Cost
	if _, known := l.ranks[v.Last.Rank.N]; !known && len(l.ranks) == mostLast {
		return
	}
	l.ranks[v.Last.Rank.N] += v.Last.Cost
	if v.Last.Host != "" {
		l.hosts[v.Last.Host] += v.Last.Cost
		l.of[v.Last.Rank.N] = v.Last.Host
	}
}

// What makes a rank, or a host, the cause of more waiting in one run.
const (
	leastShare = 1.0 / 3 // of all waiting in the run: one with a smaller share is not the cause
	muchLess   = 0.5     // of that share: the share in the other run is smaller
)

// costliest returns the rank or host with the highest cost, the lowest of equals, with its shares of all waiting in the run and in the other run. ok: the rank
// or host is the cause of more waiting in this run.
func costliest[K cmp.Ordered](of map[K]float64, all float64, other map[K]float64, otherAll float64) (who K, share, otherShare float64, ok bool) {
	for _, k := range slices.Sorted(maps.Keys(of)) {
		if cost := of[k] / all; cost > share {
			who, share = k, cost
		}
	}
	if otherAll > 0 {
		otherShare = other[who] / otherAll
	}
	return who, share, otherShare, share >= leastShare && otherShare < muchLess*share
}

// lateSentence returns a sentence about the rank or host that the run with more waiting waits for, and the other does not; "": the runs do not differ in
// waiting, or no single rank or host is the cause.
func (d *document) lateSentence() string {
	if len(d.a.last.ranks) == 0 || len(d.b.last.ranks) == 0 {
		return "" // a run without this knowledge
	}
	higher, lower := false, false
	for _, f := range d.figures {
		if f.name == spans.PartWait || f.section == sectionCollectives && f.name == "wait for the last rank" {
			higher, lower = higher || f.finding() == findingHigher, lower || f.finding() == findingLower
		}
	}
	switch { // B, even if A waits longer in further figures
	case higher:
		return d.lateSentenceOf("B", &d.b.last, "A", &d.a.last)
	case lower:
		return d.lateSentenceOf("A", &d.a.last, "B", &d.b.last)
	}
	return ""
}

// lateSentenceOf is lateSentence for the run with more waiting, called name. A host is named if no single rank is the cause, and the run has more than two
// hosts: one of two has half of the waiting or more in any case.
func (d *document) lateSentenceOf(name string, of *lateCosts, otherName string, other *lateCosts) string {
	who, share, otherShare := "", 0.0, 0.0
	if rank, s, o, ok := costliest(of.ranks, of.all, other.ranks, other.all); ok {
		who = string(cause.AppendRank(nil, cause.Who{Rank: rank, Host: reading.Clean(of.of[rank])}, bool(d.words)))
		share, otherShare = s, o
	} else if host, s, o, ok := costliest(of.hosts, of.all, other.hosts, other.all); ok && len(of.hosts) > 2 {
		who = d.in("host ", "主机 ") + reading.Clean(host)
		share, otherShare = s, o
	} else {
		return ""
	}
	return fmt.Sprintf(d.in(" %s waits for %s: %s of all waiting for late ranks, in %s %s.", " %s 在等待 %s：占全部等待的 %s，在 %s 中为 %s。"),
		name, who, human.Percent(share), otherName, human.Percent(otherShare))
}
