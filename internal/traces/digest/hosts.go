package digest

import (
	"cmp"
	"slices"

	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/internal/trainers"
)

// PartTimes is the time of some records of steps, with that of their parts directly below the steps. A record of several steps has the time of one.
type PartTimes struct {
	Records                           int64
	Steps                             float64
	Took                              float64 // s
	Loading, Computing, Communicating float64 // s, by timers of the trainer; 0: no timer
}

// HostTime is the time of a host's records of steps.
type HostTime struct {
	Host  string
	Total PartTimes
}

// mostHosts bounds the hosts of a log; further ones are left out.
const mostHosts = 4096

// host returns the time of a host, made if absent; nil: no name, or beyond mostHosts.
func (l *Log) host(name string) *HostTime {
	h := l.hosts[name]
	if h == nil && name != "" && len(l.hosts) < mostHosts {
		if l.hosts == nil {
			l.hosts = map[string]*HostTime{}
		}
		h = &HostTime{Host: shortText(name)}
		l.hosts[h.Host] = h
	}
	return h
}

// add adds a record of some steps, each of which took so many seconds.
func (t *PartTimes) add(took, steps float64) {
	if stat.Finite(took) {
		t.Records, t.Steps, t.Took = t.Records+1, t.Steps+steps, t.Took+took
	}
}

// addPart adds the time of a part of the last record, s.
func (t *PartTimes) addPart(part trainers.Part, took float64) {
	switch part {
	case trainers.LoadingData:
		t.Loading += took
	case trainers.Computing:
		t.Computing += took
	case trainers.Communicating:
		t.Communicating += took
	default:
	}
}

// RankTime is the time of a rank's steps for which nobody else is waited: loading data and computing.
type RankTime struct {
	Rank               int64
	Host               string // "": unknown
	Total              PartTimes
	Loading, Computing Series // s of a step
	Forward            Series // the part of Computing without collectives: gradients are reduced during the backward pass
}

// mostRankTimes bounds the ranks of a log with series of their own; further ones are left out.
const mostRankTimes = 128

// rank returns the time of the rank that logs a step, made if absent; nil: unknown rank, or beyond mostRankTimes.
func (l *Log) rank(rank view.Int, res *resource) *RankTime {
	if !rank.OK {
		return nil
	}
	r := l.ranks[rank.N]
	if r == nil && len(l.ranks) < mostRankTimes {
		if l.ranks == nil {
			l.ranks = map[int64]*RankTime{}
		}
		r = &RankTime{Rank: rank.N, Host: shortText(res.Host)}
		l.ranks[rank.N] = r
	}
	return r
}

// addPart adds the time of a named part directly below step number at, s. Parts of one kind are added up.
func (r *RankTime) addPart(name string, part trainers.Part, at int64, took float64) {
	r.Total.addPart(part, took)
	if trainers.Forward(name) {
		r.Forward.Add(at, took)
	}
	switch part {
	case trainers.LoadingData:
		r.Loading.Add(at, took)
	case trainers.Computing:
		r.Computing.Add(at, took)
	default:
	}
}

// Ranks returns the times of the ranks that log steps, by rank.
func (l *Log) Ranks() (all []*RankTime) {
	for _, r := range l.ranks {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *RankTime) int { return cmp.Compare(a.Rank, b.Rank) })
	return all
}

// Hosts returns the times of the hosts, by name.
func (l *Log) Hosts() (all []*HostTime) {
	for _, h := range l.hosts {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *HostTime) int { return cmp.Compare(a.Host, b.Host) })
	return all
}
