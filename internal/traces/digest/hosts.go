package digest

import (
	"cmp"
	"slices"

	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/trainers"
)

// HostTime is the time of a host's records of steps, with that of their parts directly below the steps.
type HostTime struct {
	Host               string
	Records            int64
	Took               float64 // s
	Loading, Computing float64 // s, by timers of the trainer; 0: no timer
}

// mostHosts bounds the hosts of a log; further ones are left out.
const mostHosts = 4096

// host finds or begins the time of a host; nil: its name is not known, or there are too many.
func (l *Log) host(name string) *HostTime {
	h := l.hosts[name]
	if h == nil && name != "" && len(l.hosts) < mostHosts {
		if l.hosts == nil {
			l.hosts = map[string]*HostTime{}
		}
		h = &HostTime{Host: text(name)}
		l.hosts[h.Host] = h
	}
	return h
}

// add adds a record; h may be nil.
func (h *HostTime) add(took float64) {
	if h != nil && stat.Finite(took) {
		h.Records, h.Took = h.Records+1, h.Took+took
	}
}

// part adds a part of the last record; h may be nil.
func (h *HostTime) part(name string, took float64) {
	if h == nil {
		return
	}
	switch trainers.PartOf(name) {
	case trainers.LoadingData:
		h.Loading += took
	case trainers.Computing:
		h.Computing += took
	default:
	}
}

// Hosts are the times of all hosts, by name.
func (l *Log) Hosts() (all []*HostTime) {
	for _, h := range l.hosts {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *HostTime) int { return cmp.Compare(a.Host, b.Host) })
	return all
}
