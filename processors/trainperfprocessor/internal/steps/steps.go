// Package steps counts the FLOPs of training steps and judges them: by their log's numbers, by the steps before, and by the times of their ranks.
package steps

import (
	"encoding/binary"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/internal/lru"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/devices"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/domain"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/episode"
	"github.com/trainbridge/trainbridge/spans"
)

// formatPerfMonitor is the format of FlagScale's perf_monitor (view.Source.Format).
const formatPerfMonitor = "perf_monitor"

// Outcomes of a training step.
const (
	measured = iota
	reported
	noModel
	noTime
	alreadyMeasured
	unsupported
)

var outcomes = []string{
	measured: "measured", reported: "reported", noModel: "no_model", noTime: "no_time", alreadyMeasured: "already_measured", unsupported: "unsupported",
}

// Domain counts the FLOPs of training steps and judges them.
type Domain struct {
	cfg      Config
	logger   *zap.Logger
	devices  *devices.Devices
	series   *allSeries
	episodes *episode.All
	slow     *slowRanks

	mu     sync.Mutex
	peaks  *simplelru.LRU[string, float64] // {flop}/s by device name; 0: unknown, and logged
	warned map[string]bool                 // why a model cannot be counted: at most maxWarned
}

// New returns the domain. known are the devices seen in GPU metrics.
func New(cfg Config, logger *zap.Logger, known *devices.Devices) *Domain {
	return &Domain{
		cfg: cfg, logger: logger, devices: known, series: newAllSeries(), episodes: episode.NewAll(), slow: newSlowRanks(),
		peaks: lru.New[string, float64](lru.Size), warned: map[string]bool{},
	}
}

// Kinds returns the kinds of steps, and of reports about ranks.
func (d *Domain) Kinds() []view.Kind { return []view.Kind{view.KindStep, view.KindRanks} }

// Outcomes returns the names of the outcomes of a step.
func (d *Domain) Outcomes() []string { return outcomes }

// NewJudge returns a judge for batches.
func (d *Domain) NewJudge(at *domain.At, status bool) domain.Judge {
	return &judge{Domain: d, at: at, tally: domain.NewTally(outcomes), sheet: verdict.Sheet{Status: status, Memory: at.Memory}}
}

// judge has the values that its sentences name: of a step, or of a report about ranks.
type judge struct {
	*Domain
	work
	at     *domain.At
	tally  domain.Tally
	sheet  verdict.Sheet
	line   verdict.Summary
	steps  []ptrace.Span // of the resource
	ranks  view.Ranks
	added  additions // to the step
	stated stated    // to the resource

	// The state used last: most steps of a resource share it.
	recent   recentSeries
	recentBy recentEpisodes

	found finding // of the value compared last
	saying
}

// Tally implements domain.Judge.
func (j *judge) Tally() *domain.Tally { return &j.tally }

// Reset implements domain.Judge.
func (j *judge) Reset() {
	j.endResource()
	j.sheet.Reset()
	j.work, j.ranks = work{}, view.Ranks{}
	j.saying = saying{behind: j.behind[:0]}
}

// endResource empties the memory of a resource, which points into the batch.
func (j *judge) endResource() {
	clear(j.steps)
	clear(j.added[:cap(j.added)])
	clear(j.stated.additions[:cap(j.stated.additions)])
	j.steps, j.added, j.stated = j.steps[:0], j.added[:0], stated{additions: j.stated.additions[:0]}
	j.recent, j.recentBy = recentSeries{}, recentEpisodes{}
}

// Span implements domain.Judge.
func (j *judge) Span(kind view.Kind, span ptrace.Span) {
	if kind == view.KindRanks {
		j.judgeRanks(span)
		return
	}
	j.steps = append(j.steps, span)
}

// EndResource measures and judges the training steps of one resource. Series and episodes are locked once for all steps.
func (j *judge) EndResource() {
	if len(j.steps) == 0 {
		return
	}
	res := j.resource(j.at)
	j.series.mu.Lock()
	defer j.series.mu.Unlock()
	j.episodes.Lock()
	defer j.episodes.Unlock()
	j.stateCommon(&res)
	for _, span := range j.steps {
		j.tally.Outcomes[j.step(span, &res)]++
	}
	j.stated.put(j.at.Attributes)
	j.endResource()
}

// stateCommon computes, in j.stated, the results that depend only on configuration and resource, as if for a step without attributes. They are written to the
// resource if a step has the same values, and to a step only where its value differs.
func (j *judge) stateCommon(res *resource) {
	var w work
	w.read(ptrace.NewSpan(), &j.at.Resource)
	w.res = res
	w.setSizes()
	w.addAmounts(&j.stated.additions)
	switch {
	case res.unsupported != "":
		j.stated.text(spans.AttrFlopUnsupported, res.unsupported)
	case res.known:
		if w.batch > 0 {
			j.stated.finite(spans.AttrFlopCount, res.sample.Model()*w.batch)
		}
		j.addMethod(&w, &j.stated.additions)
	}
	if j.cfg.PeakFlops > 0 || j.cfg.Device != "" || res.device != "" { // GPU metrics are left out: their model may change with time
		if peak := j.peakOf(&w); peak > 0 {
			if !res.known { // an MFU will be of the log's own FLOP/s
				j.stated.text(spans.AttrFlopFormula, formulaReported)
			}
			j.stated.finite(spans.AttrFlopPeak, peak)
		}
	}
}

// step measures and judges one step, writes the results and verdicts on its span, and returns the outcome.
func (j *judge) step(span ptrace.Span, res *resource) int {
	j.read(span, &j.at.Resource)
	j.res, j.results = res, results{}
	if j.Judged {
		return alreadyMeasured
	}
	j.sheet.Begin()
	j.added = j.added[:0]
	j.beginRecord()
	j.world = j.worldSize(&j.work)
	j.setSizes()
	j.addAmounts(&j.added)
	outcome := j.addFlops(&j.work, &j.added)
	j.impossible = j.mfu > j.mfuLimit()
	if j.Format == formatPerfMonitor {
		j.judgePerfMonitor()
	} else {
		j.judgeReport()
	}
	j.judgeStep()
	if j.Slowest.Rank.OK {
		j.judgeRank(span.Name(), j.id, slowest{Slowest: j.Slowest, format: j.Format, iteration: j.Iteration, step: j.Duration})
	}
	j.sheet.Settle(span) // now the number of attributes to come is known
	j.added.removeStated(&j.stated)
	others := j.sheet.Attributes()
	if others > 0 {
		others++ // the summary
	}
	j.added.put(span.Attributes(), others)
	j.summarize(span)
	j.sheet.Put(span)
	return outcome
}

// recentEpisodes are the episodes used last, of the resource's service and run, with their format and rank.
type recentEpisodes struct {
	format   string
	rank     int64
	episodes *episode.Episodes
}

// beginRecord finds the episodes for the run, format and rank of a step, and starts the step as their next record.
func (j *judge) beginRecord() {
	r, rank := &j.recentBy, j.rank()
	if r.episodes == nil || r.rank != rank || r.format != j.Format {
		e, evicted := j.episodes.Of(episode.Key{Service: j.at.Service, Run: j.at.Run, Of: j.Format, Rank: rank})
		if evicted {
			j.tally.Evicted++
		}
		*r = recentEpisodes{format: j.Format, rank: rank, episodes: e}
	}
	if e, id := r.episodes, binary.BigEndian.Uint64(j.id[:]); j.place.OK && j.place.N > e.Newest {
		e.Newest = j.place.N // a repeated record is of no new highest iteration
		e.Fresh(id)
	} else {
		e.Record(id)
	}
}
