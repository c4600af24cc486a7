package gpus

import (
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/spans"
)

// worker is a process of a run.
type worker struct {
	service, run string
	rank         int64 // noRank: not known
	several      bool  // its spans name several ranks
	used         time.Time
}

// Info says which run a GPU works for at a time, ns: the driver names a process that has memory of the GPU, and the process has written spans of the run.
type Info struct {
	*GPU
	Service, Run string
	Rank         int64 // of the process; below 0: no log says it
	At           int64
}

const (
	maxWorkers = 16_384
	noRank     = -1
)

// Work notes that a process works for a run, and as which rank; below 0: that is not known. Of a process that has written for several runs it is the latest one.
func (g *GPUs) Work(p Process, service, run string, rank int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.workers[p]
	switch {
	case w == nil && (len(g.workers) >= maxWorkers || len(p.Host) > maxText):
		return
	case w == nil || w.run != run:
		w = &worker{service: strings.Clone(spans.Label(service)), run: strings.Clone(run), rank: noRank}
		p.Host = strings.Clone(p.Host)
		g.workers[p] = w
	}
	w.used = g.now()
	switch {
	case rank < 0 || w.several:
	case w.rank == noRank:
		w.rank = rank
	case w.rank != rank:
		w.rank, w.several = noRank, true
	}
}

// tell notes the run of a process that has memory of a GPU.
func (g *GPUs) tell(u *GPU, pid, at int64) {
	if w := g.workers[Process{u.Host, int32(pid)}]; w != nil {
		w.used = g.now()
		g.told = append(g.told, Info{u, w.service, w.run, w.rank, at})
	}
}
