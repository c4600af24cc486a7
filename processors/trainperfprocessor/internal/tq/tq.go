// Package tq recomputes the split of TransferQueue functions' time, and judges it.
package tq

import (
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/domain"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/episode"
)

// mib turns the MiB/s of the config into the By/s of the spans.
const mib = 1 << 20

// Outcomes of a function.
const (
	measured = iota
	noStages
	incomplete
	noDuration
	alreadyMeasured
	selfMeasured
	partlyReported
)

var outcomes = []string{
	measured: "measured", noStages: "no_stages", incomplete: "incomplete", noDuration: "no_duration", alreadyMeasured: "already_measured",
	selfMeasured: "self_measured", partlyReported: "partly_reported",
}

// Domain recomputes and judges TransferQueue functions.
type Domain struct {
	cfg      Config
	windows  *windows
	episodes *episode.All
}

// New returns the domain with its thresholds.
func New(cfg Config) *Domain {
	cfg.ThroughputLow *= mib
	return &Domain{cfg: cfg, windows: newWindows(cfg.Fluctuation), episodes: episode.NewAll()}
}

// Kinds returns the kinds of functions, and of their stages and client operations.
func (d *Domain) Kinds() []view.Kind { return []view.Kind{view.KindFunction, view.KindStage} }

// Outcomes returns the names of the outcomes of a function.
func (d *Domain) Outcomes() []string { return outcomes }

// NewJudge returns a judge for batches.
func (d *Domain) NewJudge(at *domain.At, status bool) domain.Judge {
	return &judge{Domain: d, at: at, tally: domain.NewTally(outcomes), sheet: verdict.Sheet{Status: status, Memory: at.Memory}}
}
