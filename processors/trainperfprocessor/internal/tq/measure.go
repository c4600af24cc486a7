package tq

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

var (
	shareAttr   = [childStages]string{spans.AttrTQGetUtilization, spans.AttrTQComputeUtilization, spans.AttrTQPutUtilization}
	shareSource = [childStages]string{spans.AttrTQGetUtilizationSource, spans.AttrTQComputeUtilizationSource, spans.AttrTQPutUtilizationSource}
)

// shares is the split of a function's time. NaN is unknown.
type shares struct {
	share    [childStages]float64
	overhead float64           // get + put
	reported [childStages]bool // the share is the log's

	unattributed float64 // in no stage
	disagreement float64 // the largest error of the log's own shares
}

var noShares = shares{share: [childStages]float64{math.NaN(), math.NaN(), math.NaN()}, overhead: math.NaN()}

// attributes returns the largest number of attributes that put and summarize write: three shares, each with its source if taken from the log, three more
// numbers, and the summary.
func (s *shares) attributes() int {
	n := childStages + 3 + 1
	for _, reported := range s.reported {
		if reported {
			n++
		}
	}
	return n
}

// stageTimes is the time of a function's stages.
type stageTimes struct {
	sum        [childStages]uint64 // ns
	have, open [childStages]bool   // the stage has a span with a duration; one without
	covered    uint64              // ns of the function covered by stages
	complete   bool                // the end of the function was seen, and the end of each stage
}

// hasStages reports whether any stage has a duration.
func (s *stageTimes) hasStages() bool {
	return s.have[spans.TQGet] || s.have[spans.TQCompute] || s.have[spans.TQPut]
}

// add adds the stages of a function from start to end, ns. children must be in order of start.
func (s *stageTimes) add(start, end uint64, children []child) {
	at := start // the function is covered up to here
	for i := range children {
		c := &children[i]
		if c.open {
			s.open[c.stage], s.complete = true, false
			continue
		}
		s.have[c.stage] = true
		s.sum[c.stage] = addSaturated(s.sum[c.stage], c.end-c.start)
		// The part of [start, end] that this child covers beyond earlier children.
		if from, to := max(c.start, at), min(c.end, end); to > from {
			s.covered += to - from
			at = to
		}
	}
}

// addSaturated returns a + b, at most the largest uint64: absurd times must not wrap around to plausible ones.
func addSaturated(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// measureFunction measures and judges a function by its stages, given in order of start, and returns an outcome: measured, noStages, incomplete, noDuration,
// alreadyMeasured, selfMeasured or partlyReported.
//
// The shares are sums like the log's own ratios: ΣGET/total and so on. Overlapping stages can sum to more than 1; tq.unattributed.utilization is 1 − wall-clock
// union, always within 0..1. For a stage with a lost line, the share is FUNCTION_END's, marked as the log's.
func (j *judge) measureFunction(f *function, children []child) int {
	switch {
	case f.Judged:
		return alreadyMeasured // by an earlier train_perf: the span stays unchanged
	case f.Carried:
		return j.judgeCarried(f, children) // the span carries its shares
	}
	start, end := uint64(f.span.StartTimestamp()), uint64(f.span.EndTimestamp())
	s := stageTimes{complete: !f.Incomplete}
	s.add(start, end, children)
	reportedAny := false // the log gives at least one share, at FUNCTION_END
	for _, r := range f.Reported {
		reportedAny = reportedAny || !math.IsNaN(r)
	}
	outcome := measured // another: why no share can be given
	switch {
	case end <= start:
		outcome = noDuration
	case !s.complete && !reportedAny:
		// The end of an incomplete function is only its last known time: shares of the time until then would be invented.
		outcome = incomplete
	case !s.hasStages() && !reportedAny:
		outcome = noStages
	}
	if outcome != measured {
		j.summarize(f, &noShares)
		return outcome // no share can be given
	}
	found := f.sharesOf(&s, end-start)
	j.judgeFunction(f, &found, children)
	attrs := f.span.Attributes()
	attrs.EnsureCapacity(attrs.Len() + found.attributes() + j.sheet.Attributes())
	found.put(attrs)
	j.summarize(f, &found)
	j.sheet.Put(f.span)
	switch {
	case !s.hasStages():
		return noStages // all shares are the log's
	case math.IsNaN(found.share[spans.TQGet] + found.share[spans.TQCompute] + found.share[spans.TQPut]):
		return incomplete // a share is unknown, by the log too
	case math.IsNaN(found.unattributed):
		return partlyReported // a share is the log's
	}
	return measured // every share is computed from the times of the stages
}

// sharesOf returns the shares by the times of the stages; ns is the duration of the function. In a complete function with stages, a stage without spans took no
// time. Otherwise, for a stage without times or with a span whose end was lost, the share is the log's, NaN if unknown.
func (f *function) sharesOf(s *stageTimes, ns uint64) (found shares) {
	total := float64(ns)
	found = shares{unattributed: math.NaN(), disagreement: math.NaN()}
	recomputed := true
	for i := range found.share {
		r := f.Reported[i]
		switch {
		case s.have[i] && !s.open[i], s.complete && s.hasStages():
			found.share[i] = float64(s.sum[i]) / total
			// The largest; true also for the first, where disagreement is NaN.
			if off := math.Abs(found.share[i] - r); !math.IsNaN(off) && !(found.disagreement > off) {
				found.disagreement = off
			}
		default:
			found.share[i], found.reported[i], recomputed = r, !math.IsNaN(r), false
		}
	}
	found.overhead = found.share[spans.TQGet] + found.share[spans.TQPut] // NaN where either is unknown
	if !math.IsNaN(found.overhead) && !found.reported[spans.TQGet] && !found.reported[spans.TQPut] {
		found.overhead = float64(addSaturated(s.sum[spans.TQGet], s.sum[spans.TQPut])) / total // rounded once
	}
	if recomputed {
		found.unattributed = float64(ns-s.covered) / total
	}
	return found
}

// put writes the shares on a span.
func (s *shares) put(attrs pcommon.Map) {
	for i, x := range s.share {
		if s.reported[i] {
			attrs.PutStr(shareSource[i], spans.TQShareReported)
		}
		spans.PutFinite(attrs, shareAttr[i], x)
	}
	spans.PutFinite(attrs, spans.AttrTQOverheadUtilization, s.overhead)
	spans.PutFinite(attrs, spans.AttrTQUnattributedUtilization, s.unattributed)
	spans.PutFinite(attrs, spans.AttrTQUtilizationDisagreement, s.disagreement)
}

// judgeCarried judges a function whose span carries its shares, as those of Go services do, by these shares, and returns the outcome. Stages that are missing
// here may have come in another batch. The shares stay unchanged.
func (j *judge) judgeCarried(f *function, children []child) int {
	switch {
	case f.Incomplete:
		return incomplete
	case f.span.EndTimestamp() <= f.span.StartTimestamp():
		return noDuration
	}
	found := shares{share: f.Share, overhead: f.Overhead}
	if math.IsNaN(found.overhead) {
		found.overhead = found.share[spans.TQGet] + found.share[spans.TQPut]
	}
	j.judgeFunction(f, &found, children)
	attrs := f.span.Attributes()
	attrs.EnsureCapacity(attrs.Len() + 1 + j.sheet.Attributes()) // room for the summary
	j.summarize(f, &found)
	j.sheet.Put(f.span)
	return selfMeasured
}

// summarize writes one line about the function on its span: "TQ overhead 41.6% · get 21.8% · put 19.8%; batch 64; worker 1531903".
func (j *judge) summarize(f *function, found *shares) {
	l := &j.summary
	l.Begin()
	l.Share("TQ overhead", found.overhead)
	for _, st := range [...]spans.TQStage{spans.TQGet, spans.TQPut} {
		l.Share(st.String(), found.share[st])
		if found.reported[st] {
			l.Text = append(l.Text, " (the log's)"...)
		}
	}
	if f.Incomplete {
		l.Part("incomplete")
		if f.Reason != "" {
			l.Text = append(append(append(l.Text, " ("...), f.Reason...), ')')
		}
	}
	if f.BatchSize.OK && f.BatchSize.N >= 0 {
		l.Part("batch ")
		l.Text = strconv.AppendInt(l.Text, f.BatchSize.N, 10)
	}
	if pid := f.PID.Or(j.at.PID.N); pid != 0 {
		l.Part("worker ")
		l.Text = strconv.AppendInt(l.Text, pid, 10)
	}
	l.Put(f.span)
}
