package view

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Source is which log a record of a training run comes from: its format, and the rank that wrote it.
type Source struct {
	Format    string // megatron, hf, …
	Rank      Int    // among all
	LocalRank Int    // on its node
	Host      string // where it is not the resource's
}

func (s *Source) take(name string, v pcommon.Value) bool {
	switch name {
	case spans.AttrSource:
		s.Format = spans.ValueText(v)
	case spans.AttrRank:
		s.Rank = IntOf(v)
	case spans.AttrLocalRank:
		s.LocalRank = IntOf(v)
	case spans.AttrHostName:
		s.Host = spans.ValueText(v)
	default:
		return false
	}
	return true
}

// Place is where a record stands in its run.
type Place struct {
	Iteration Int
	Record    Int // its ordinal in the log, from 1, where the log names no iteration
}

// Step is the iteration, or the ordinal of the record where there is none.
func (p Place) Step() Int {
	if !p.Iteration.OK && p.Record.N > 0 {
		return p.Record
	}
	return p.Iteration
}

func (p *Place) take(name string, v pcommon.Value) bool {
	switch name {
	case spans.AttrIteration:
		p.Iteration = IntOf(v)
	case spans.AttrRecord:
		p.Record = IntOf(v)
	default:
		return false
	}
	return true
}

// Loss is a loss, which may be one that is not finite.
type Loss struct {
	Value float64 // NaN: absent, or not finite
	Text  string  // of a loss that is no finite number, as it was sent: "NaN", "+Inf", "-Infinity", …
}

func lossOf(v pcommon.Value) Loss {
	l := Loss{Value: spans.ValueNumber(v)}
	if math.IsNaN(l.Value) && (v.Type() == pcommon.ValueTypeStr || v.Type() == pcommon.ValueTypeDouble) {
		l.Text = v.AsString()
	}
	return l
}

// NotFinite is "NaN", "+Inf" or "-Inf", empty for a loss that is finite or absent.
func (l Loss) NotFinite() string {
	if l.Text == "" {
		return ""
	}
	switch strings.ToLower(l.Text) {
	case "nan":
		return "NaN"
	case "inf", "+inf", "infinity", "+infinity":
		return "+Inf"
	case "-inf", "-infinity":
		return "-Inf"
	}
	return ""
}

// Slowest is the rank that computed for the longest in a step, compared with its peers, the ranks that do the same work.
type Slowest struct {
	Rank          Int
	Stage         string // the stage in which it lost most
	Peers         Int    // how many
	Duration      float64
	PeersDuration float64 // median of its peers, s
	Behind        List    // ranks (List.Int) that lost at least half as much, the slowest first
}

var noSlowest = Slowest{Duration: absent, PeersDuration: absent}

func (s *Slowest) take(name string, v pcommon.Value) bool {
	switch name {
	case spans.AttrRankSlowest:
		s.Rank = IntOf(v)
	case spans.AttrRankSlowestStage:
		s.Stage = spans.ValueText(v)
	case spans.AttrRankSlowestPeers:
		s.Peers = IntOf(v)
	case spans.AttrRankSlowestDuration:
		s.Duration = spans.ValueNumber(v)
	case spans.AttrRankSlowestPeersDuration:
		s.PeersDuration = spans.ValueNumber(v)
	case spans.AttrRanksBehind:
		s.Behind = listOf(v)
	default:
		return false
	}
	return true
}

// Step is a record of a training log: one step, or the several that it covers.
type Step struct {
	Head
	Source
	Place
	Loss    Loss
	Slowest Slowest

	TimePoint    bool    // only its end is known: the span's length says nothing
	StepsCovered float64 // as the span says it: see Covered
	Duration     float64 // s, of one step: the span's length tells it, where no attribute does
	DurationKind string  // one of the Duration… values, "" for DurationStep
	WorldSize    Int     // devices, as the log states it
	DeviceModel  string

	BatchSize float64 // samples of one step
	Samples   float64 // of all steps covered; train_perf's
	Tokens    float64 // of all steps covered

	// Rates are per second, of all devices and of one, as the log states them and recomputed by train_perf.
	SampleThroughput             float64
	TokenThroughput              float64
	DeviceTokenThroughput        float64
	FlopThroughput               float64
	FlopThroughputReported       float64
	DeviceFlopThroughput         float64
	DeviceFlopThroughputReported float64
	FlopCountReported            float64 // {flop} of one step
	FlopDisagreement             float64
	MFU, HFU                     float64

	LearningRate, GradientNorm float64
	MFUReported                float64
	MemoryUsage, MemoryPeak    float64 // By, of a device
	GPUUtilization             float64 // share, as the log states it

	ownDuration bool // an attribute says it, perhaps as something that is no number
}

var noStep = Step{
	Loss: Loss{Value: absent}, Slowest: noSlowest, StepsCovered: absent, Duration: absent, BatchSize: absent, Samples: absent, Tokens: absent,
	SampleThroughput: absent, TokenThroughput: absent, DeviceTokenThroughput: absent, FlopThroughput: absent, FlopThroughputReported: absent,
	DeviceFlopThroughput: absent, DeviceFlopThroughputReported: absent, FlopCountReported: absent, FlopDisagreement: absent, MFU: absent, HFU: absent,
	LearningRate: absent, GradientNorm: absent, MFUReported: absent, MemoryUsage: absent, MemoryPeak: absent, GPUUtilization: absent,
}

// Covered is how many steps the record stands for: one where the span does not say it.
func (s *Step) Covered() float64 {
	if s.StepsCovered > 1 {
		return s.StepsCovered
	}
	return 1
}

// Read reads a span of KindStep.
func (s *Step) Read(span ptrace.Span, res *Resource) {
	if res.ofSteps {
		*s = res.step
	} else {
		*s = noStep
	}
	s.Format = res.format
	for name, v := range span.Attributes().All() {
		s.note(name, v)
	}
	// A length of 1 ns is none: spans.Batch makes it of a step that took no time.
	if length := int64(span.EndTimestamp() - span.StartTimestamp()); !s.ownDuration && !s.TimePoint && !s.Incomplete && length > 1 {
		s.Duration = float64(length) / 1e9 / s.Covered()
	}
}

// note notes an attribute. It says itself whose the attribute is, where the other views ask each part in turn: a step has the most attributes, and most of them
// are of no part. To ask took a quarter longer (BenchmarkRead).
func (s *Step) note(name string, v pcommon.Value) {
	switch name {
	case spans.AttrSource, spans.AttrRank, spans.AttrLocalRank, spans.AttrHostName:
		s.Source.take(name, v)
	case spans.AttrIteration, spans.AttrRecord:
		s.Place.take(name, v)
	case spans.AttrTimePoint:
		s.TimePoint = flagOf(v)
	case spans.AttrStepsCovered:
		s.StepsCovered = spans.ValueNumber(v)
	case spans.AttrStepDuration:
		s.Duration, s.ownDuration = spans.ValueNumber(v), true
	case spans.AttrStepDurationKind:
		s.DurationKind = spans.ValueText(v)
	case spans.AttrWorldSize:
		s.WorldSize = IntOf(v)
	case spans.AttrDeviceModel:
		s.DeviceModel = spans.ValueText(v)
	case spans.AttrLoss:
		s.Loss = lossOf(v)
	case spans.AttrBatchSize:
		s.BatchSize = spans.ValueNumber(v)
	case spans.AttrSamples:
		s.Samples, s.Judged = spans.ValueNumber(v), true
	case spans.AttrFlopFormula, spans.AttrFlopUnsupported:
		s.Judged = true
	case spans.AttrTokens:
		s.Tokens = spans.ValueNumber(v)
	case spans.AttrSampleThroughput:
		s.SampleThroughput = spans.ValueNumber(v)
	case spans.AttrTokenThroughput:
		s.TokenThroughput = spans.ValueNumber(v)
	case spans.AttrDeviceTokenThroughput:
		s.DeviceTokenThroughput = spans.ValueNumber(v)
	case spans.AttrFlopThroughput:
		s.FlopThroughput = spans.ValueNumber(v)
	case spans.AttrFlopThroughputReported:
		s.FlopThroughputReported = spans.ValueNumber(v)
	case spans.AttrDeviceFlopThroughput:
		s.DeviceFlopThroughput = spans.ValueNumber(v)
	case spans.AttrDeviceFlopThroughputReported:
		s.DeviceFlopThroughputReported = spans.ValueNumber(v)
	case spans.AttrFlopCountReported:
		s.FlopCountReported = spans.ValueNumber(v)
	case spans.AttrFlopDisagreement:
		s.FlopDisagreement = spans.ValueNumber(v)
	case spans.AttrMFU:
		s.MFU = spans.ValueNumber(v)
	case spans.AttrHFU:
		s.HFU = spans.ValueNumber(v)
	case spans.AttrLearningRate:
		s.LearningRate = spans.ValueNumber(v)
	case spans.AttrGradientNorm:
		s.GradientNorm = spans.ValueNumber(v)
	case spans.AttrMFUReported:
		s.MFUReported = spans.ValueNumber(v)
	case spans.AttrGPUUtilization:
		s.GPUUtilization = spans.ValueNumber(v)
	case spans.AttrMemoryUsage:
		s.MemoryUsage = spans.ValueNumber(v)
	case spans.AttrMemoryPeak:
		s.MemoryPeak = spans.ValueNumber(v)
	case spans.AttrRankSlowest, spans.AttrRankSlowestStage, spans.AttrRankSlowestPeers, spans.AttrRankSlowestDuration,
		spans.AttrRankSlowestPeersDuration, spans.AttrRanksBehind:
		s.Slowest.take(name, v)
	default:
		s.Head.take(name, v)
	}
}

// Part is a named part of a step, such as generation or the backward pass.
type Part struct {
	Head
	Source

	Name           string
	Order          string // one of the Order… values: where it is drawn
	DurationMin    float64
	DurationMedian float64 // s, over the ranks
	Ranks          Int     // how many the log has a time of
	RankSlowest    Int
	RankFastest    Int
}

// Read reads a span of KindPart.
func (p *Part) Read(span ptrace.Span, res *Resource) {
	*p = Part{Source: Source{Format: res.format}, DurationMin: absent, DurationMedian: absent}
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrStage:
			p.Name = spans.ValueText(v)
		case spans.AttrStageOrder:
			p.Order = spans.ValueText(v)
		case spans.AttrStageDurationMin:
			p.DurationMin = spans.ValueNumber(v)
		case spans.AttrStageDurationMedian:
			p.DurationMedian = spans.ValueNumber(v)
		case spans.AttrStageRanks:
			p.Ranks = IntOf(v)
		case spans.AttrStageRankSlowest:
			p.RankSlowest = IntOf(v)
		case spans.AttrStageRankFastest:
			p.RankFastest = IntOf(v)
		default:
			if !p.Source.take(name, v) {
				p.Head.take(name, v)
			}
		}
	}
}

// Ranks is what a job reports about the times of its ranks.
type Ranks struct {
	Head
	Source
	Place
	Slowest  Slowest
	Duration float64 // s, of one step
}

// Read reads a span of KindRanks.
func (r *Ranks) Read(span ptrace.Span, res *Resource) {
	*r = Ranks{Source: Source{Format: res.format}, Slowest: noSlowest, Duration: absent}
	for name, v := range span.Attributes().All() {
		switch {
		case name == spans.AttrStepDuration:
			r.Duration = spans.ValueNumber(v)
		case r.Slowest.take(name, v), r.Place.take(name, v), r.Source.take(name, v):
		default:
			r.Head.take(name, v)
		}
	}
}

// Evaluation is a validation result.
type Evaluation struct {
	Head
	Source
	Place
	Loss       Loss // loss of the validation
	Perplexity float64
}

// Read reads a span of KindEvaluation.
func (e *Evaluation) Read(span ptrace.Span, res *Resource) {
	*e = Evaluation{Source: Source{Format: res.format}, Loss: Loss{Value: absent}, Perplexity: absent}
	for name, v := range span.Attributes().All() {
		switch {
		case name == spans.AttrValidationLoss:
			e.Loss = lossOf(v)
		case name == spans.AttrPerplexity:
			e.Perplexity = spans.ValueNumber(v)
		case e.Source.take(name, v), e.Place.take(name, v):
		default:
			e.Head.take(name, v)
		}
	}
}
