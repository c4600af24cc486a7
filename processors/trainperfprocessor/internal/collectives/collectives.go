// Package collectives judges the nccl receiver's comparison of collectives across their ranks.
package collectives

import (
	"math"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/domain"
	"github.com/trainbridge/trainbridge/spans"
)

// Outcomes of a collective.
const (
	judged = iota
	noVerdict
	alreadyJudged
)

var outcomes = []string{judged: "judged", noVerdict: "no_verdict", alreadyJudged: "already_judged"}

// Domain judges the root of a collective, or a Send or Recv. The root has the comparison of all ranks, so no further span is read.
type Domain struct{ cfg Config }

// New returns the domain with its thresholds.
func New(cfg Config) *Domain { return &Domain{cfg: cfg} }

// Kinds returns the kind of the roots of collectives. The thousands of spans below a root are not judged.
func (d *Domain) Kinds() []view.Kind { return []view.Kind{view.KindCollective} }

// Outcomes returns the names of the outcomes of a collective.
func (d *Domain) Outcomes() []string { return outcomes }

// NewJudge returns a judge for batches. It needs no memory of verdicts, because its verdicts depend on the span alone.
func (d *Domain) NewJudge(at *domain.At, status bool) domain.Judge {
	return &judge{cfg: &d.cfg, at: at, tally: domain.NewTally(outcomes), sheet: verdict.Sheet{Status: status}}
}

// judge has the values that its sentences name, of the collective under judgement.
type judge struct {
	cfg   *Config
	at    *domain.At
	tally domain.Tally
	sheet verdict.Sheet
	view.Collective
}

// EndResource implements domain.Judge: each span is judged by itself.
func (j *judge) EndResource() {}

// Tally implements domain.Judge.
func (j *judge) Tally() *domain.Tally { return &j.tally }

// Reset implements domain.Judge.
func (j *judge) Reset() {
	j.sheet.Reset()
	j.Collective = view.Collective{}
}

// Span implements domain.Judge.
func (j *judge) Span(_ view.Kind, span ptrace.Span) { j.tally.Outcomes[j.judgeSpan(span)]++ }

// judgeSpan writes the verdicts about a collective on its span, and returns the outcome. A span judged by another train_perf stays unchanged.
func (j *judge) judgeSpan(span ptrace.Span) int {
	j.Read(span)
	if j.Judged {
		return alreadyJudged
	}
	j.sheet.Begin()
	j.judgeRanks()
	j.judgeTimes()
	j.judgeWork()
	if j.sheet.Empty() {
		return noVerdict
	}
	j.sheet.Put(span)
	return judged
}

// judgeRanks gives the verdicts about missing and hanging ranks: a hang; else missing ranks, by the reason why the receiver did not wait longer. A gap, missing
// ranks that have gone on since, has a verdict of its own.
func (j *judge) judgeRanks() {
	none, missing := math.NaN(), j.MissingRanks()
	if j.Hang {
		j.hangVerdict().Say(&j.sheet, j, j.Waited, none)
	} else if v := rankMissing[j.Reason]; missing > 0 && v != nil { // nil: no reason is given, or a gap, see below
		v.Say(&j.sheet, j, float64(missing), none)
	}
	if j.Reason == spans.NCCLIncompleteGap {
		value := none
		if missing > 0 {
			value = float64(missing)
		}
		sequenceGap.Say(&j.sheet, j, value, none)
	}
}

// hangVerdict returns the verdict about a collective that did not complete, by what the log says about its ranks.
func (j *judge) hangVerdict() *verdict.Verdict[judge] {
	missing, stuck := j.MissingRanks() > 0, j.Stuck.Len() > 0
	switch {
	case missing && stuck:
		return hangMissingAndStuck
	case missing:
		return hangMissing
	case stuck:
		return hangStuck
	}
	return hangUnknown
}

// judgeTimes gives the verdicts about late ranks and about bandwidth. Stragglers are the receiver's finding over many collectives: Straggler is the slowest of
// Stragglers, or stands alone, without both lists. Where only StragglersOver has ranks, which are no longer late, Straggler is one of StragglersOver.
func (j *judge) judgeTimes() {
	none := math.NaN()
	switch {
	case j.Straggler.Rank.OK && (j.Stragglers.Len() > 0 || j.StragglersOver.Len() == 0):
		straggler.Say(&j.sheet, j, j.Straggler.Late, none)
	case j.StragglersOver.Len() == 1 && j.Straggler.Rank.OK:
		stragglerOver.Say(&j.sheet, j, none, none)
	case j.StragglersOver.Len() > 0:
		stragglersOver.Say(&j.sheet, j, none, none)
	}
	if j.cfg.LateTransfers > 0 {
		// Without a transfer time nothing aligns the ranks' clocks, and lateness is only clock offset.
		limit := max(j.cfg.LateTransfers*j.TransferDuration, j.cfg.LateMin.Seconds())
		if j.Last.Late > limit { // false for NaN
			late.Say(&j.sheet, j, j.Last.Late, limit)
		}
	}
	if !math.IsNaN(j.BandwidthDeviation) { // the limit is the receiver's: it writes only large deviations
		bandwidthLow.Say(&j.sheet, j, j.bandwidth(), none)
	}
}

// judgeWork gives the verdicts about errors, retries and message sizes that disagree in the collective, about slow and hot links up to the collective, and
// about a logged bandwidth that is not that of size and duration.
func (j *judge) judgeWork() {
	none := math.NaN()
	if j.Errors >= 1 {
		hadErrors.Say(&j.sheet, j, j.Errors, none)
	}
	if j.Retries >= 1 {
		hadRetries.Say(&j.sheet, j, j.Retries, none)
	}
	if j.Mismatch {
		mismatch.Say(&j.sheet, j, none, none)
	}
	if j.LinksSlow.Len() > 0 {
		linkSlow.Say(&j.sheet, j, none, none)
	}
	if j.LinksHot.Len() > 0 {
		linkHot.Say(&j.sheet, j, none, none)
	}
	if limit := j.cfg.BandwidthDisagreement; domain.Exceeds(j.BandwidthDisagreement, limit) {
		bandwidthUnit.Say(&j.sheet, j, j.BandwidthDisagreement, limit)
	}
}

// bandwidth returns the bus bandwidth, or the algorithm bandwidth where the log has no bus bandwidth, By/s.
func (j *judge) bandwidth() float64 {
	if math.IsNaN(j.BandwidthBus) {
		return j.BandwidthAlgorithm
	}
	return j.BandwidthBus
}
