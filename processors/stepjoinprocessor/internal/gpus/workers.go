package gpus

import (
	"slices"
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

// Info is the run for which a GPU works at a time, ns: the driver names a process with memory of the GPU, and the process has written spans of the run.
type Info struct {
	*GPU
	Service, Run string
	Rank         int64 // of the process; below 0: not logged
	At           int64
}

const (
	maxWorkers = 16_384
	noRank     = -1
)

// Work records the run of a process, and its rank; below 0: unknown. For a process with spans of several runs the latest counts; a process with spans of
// several ranks has no rank. Beyond maxWorkers a new process is not recorded.
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

// seen is a process that a scrape has found on a GPU.
type seen struct {
	*GPU
	pid int32
	at  int64
}

// infos returns the GPUs on which the metrics just read have found working processes of runs. A process with little memory on a GPU (minMemoryShare) does not
// work there. The list is valid until the next call.
func (g *GPUs) infos() []Info {
	g.infoList = g.infoList[:0]
	for _, s := range g.found {
		p := Process{s.Host, s.pid}
		w := g.workers[p]
		if w == nil {
			continue
		}
		w.used = g.now()
		g.on = g.gpusOf(g.on[:0], p, s.at, s.at)
		if slices.Contains(g.on, s.GPU) {
			g.infoList = append(g.infoList, Info{s.GPU, w.service, w.run, w.rank, s.at})
		}
	}
	g.found = g.found[:0]
	return g.infoList
}
