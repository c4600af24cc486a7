package view

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// LateRank is a rank that came late, and the time that it cost the others.
type LateRank struct {
	Rank       Int // absent: not known
	Host       string
	Late, Cost float64 // s
}

var noLateRank = LateRank{Late: absent, Cost: absent}

// Collective is the root of a collective, or a Send or Recv. It has the findings about all ranks.
type Collective struct {
	Head

	Operation string // never empty, unless the span has no name either
	Algorithm string
	CommID    string
	CommName  string
	CommSize  Int // ranks of the communicator

	Sequence Int  // per communicator and operation
	Counted  bool // the sequence, or that there is none, is not the log's: see spans.AttrNCCLSequenceKind
	Ranks    Int  // number of ranks whose records are in the trace
	Rank     Int  // of a Send or Recv
	Peer     Int  // as above

	Duration         float64 // s, from the first arrival on
	TransferDuration float64 // s, of the rank that came last
	MessageSize      float64 // By, as logged
	DataSize         float64 // By, S of algbw = S/t

	// By/s.
	BandwidthAlgorithm float64
	BandwidthBus       float64
	BandwidthBusMean   float64
	BandwidthReported  float64 // of a Send or Recv, or of a record that was not joined: as its log states it
	BandwidthBaseline  float64
	BandwidthDeviation float64 // robust standard deviations below the baseline; said only where it is much
	// |recomputed − reported| / recomputed, and the unit that the log's numbers are read in.
	BandwidthDisagreement float64
	BandwidthUnit         string

	Last            LateRank // who came last
	Straggler       LateRank // who is late again and again, by median
	StragglerScore  float64  // 1 is the fastest
	Stragglers      List     // ranks, the slowest first
	StragglersOver  List     // ranks that are as fast as the others again
	Errors, Retries float64  // of all ranks
	Missing         List     // ranks without a record, the first of them
	MissingCount    float64  // how many, as the span says it: see MissingRanks
	Stuck           List     // ranks that had not completed
	ClocksApart     float64  // s, of its hosts; said only where it is much
	Waited          float64  // s
	Hang, Mismatch  bool
	LinksSlow       List // "0→8"
	LinksHot        List
}

var noCollective = Collective{
	Duration: absent, TransferDuration: absent, MessageSize: absent, DataSize: absent,
	BandwidthAlgorithm: absent, BandwidthBus: absent, BandwidthBusMean: absent, BandwidthBaseline: absent, BandwidthDeviation: absent,
	BandwidthDisagreement: absent, BandwidthReported: absent, Last: noLateRank, Straggler: noLateRank, StragglerScore: absent,
	Errors: absent, Retries: absent, MissingCount: absent, Waited: absent, ClocksApart: absent,
}

// MissingRanks is how many ranks have no record.
func (c *Collective) MissingRanks() int64 {
	if c.MissingCount > float64(c.Missing.Len()) {
		return int64(c.MissingCount)
	}
	return int64(c.Missing.Len())
}

// Read reads a span of KindCollective.
func (c *Collective) Read(span ptrace.Span) {
	*c = noCollective
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrNCCLOperation:
			c.Operation = spans.ValueText(v)
		case spans.AttrNCCLAlgorithm:
			c.Algorithm = spans.ValueText(v)
		case spans.AttrNCCLCommID:
			c.CommID = spans.ValueText(v)
		case spans.AttrNCCLCommName:
			c.CommName = spans.ValueText(v)
		case spans.AttrNCCLCommSize:
			c.CommSize = ordinalOf(v)
		case spans.AttrNCCLSequence:
			c.Sequence = ordinalOf(v)
		case spans.AttrNCCLSequenceKind:
			c.Counted = true
		case spans.AttrNCCLRanks:
			c.Ranks = ordinalOf(v)
		case spans.AttrNCCLCommRank:
			c.Rank = ordinalOf(v)
		case spans.AttrNCCLPeerRank:
			c.Peer = ordinalOf(v)
		case spans.AttrNCCLDuration:
			c.Duration = spans.ValueNumber(v)
		case spans.AttrNCCLTransferDuration:
			c.TransferDuration = spans.ValueNumber(v)
		case spans.AttrNCCLMessageSize:
			c.MessageSize = spans.ValueNumber(v)
		case spans.AttrNCCLDataSize:
			c.DataSize = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthAlgorithm:
			c.BandwidthAlgorithm = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthBus:
			c.BandwidthBus = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthBusMean:
			c.BandwidthBusMean = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthBusReported, spans.AttrNCCLBandwidthAlgorithmReported:
			c.BandwidthReported = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthBaseline:
			c.BandwidthBaseline = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthDeviation:
			c.BandwidthDeviation = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthDisagreement:
			c.BandwidthDisagreement = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthUnit:
			c.BandwidthUnit = spans.ValueText(v)
		case spans.AttrNCCLLateMax:
			c.Last.Late = spans.ValueNumber(v)
		case spans.AttrNCCLLateRank:
			c.Last.Rank = ordinalOf(v)
		case spans.AttrNCCLLateHost:
			c.Last.Host = spans.ValueText(v)
		case spans.AttrNCCLLateCost:
			c.Last.Cost = spans.ValueNumber(v)
		case spans.AttrNCCLStragglerRank:
			c.Straggler.Rank = ordinalOf(v)
		case spans.AttrNCCLStragglerHost:
			c.Straggler.Host = spans.ValueText(v)
		case spans.AttrNCCLStragglerLate:
			c.Straggler.Late = spans.ValueNumber(v)
		case spans.AttrNCCLStragglerCost:
			c.Straggler.Cost = spans.ValueNumber(v)
		case spans.AttrNCCLStragglerScore:
			c.StragglerScore = spans.ValueNumber(v)
		case spans.AttrNCCLStragglers:
			c.Stragglers = listOf(v)
		case spans.AttrNCCLStragglersOver:
			c.StragglersOver = listOf(v)
		case spans.AttrNCCLErrors:
			c.Errors = spans.ValueNumber(v)
		case spans.AttrNCCLRetries:
			c.Retries = spans.ValueNumber(v)
		case spans.AttrNCCLRanksMissing:
			c.Missing = listOf(v)
		case spans.AttrNCCLRanksMissingCount:
			c.MissingCount = spans.ValueNumber(v)
		case spans.AttrNCCLRanksStuck:
			c.Stuck = listOf(v)
		case spans.AttrNCCLWaited:
			c.Waited = spans.ValueNumber(v)
		case spans.AttrNCCLClockOffset:
			c.ClocksApart = spans.ValueNumber(v)
		case spans.AttrNCCLHang:
			c.Hang = flagOf(v)
		case spans.AttrNCCLMismatch:
			c.Mismatch = flagOf(v)
		case spans.AttrNCCLLinkSlow:
			c.LinksSlow = listOf(v)
		case spans.AttrNCCLLinkHot:
			c.LinksHot = listOf(v)
		default:
			c.take(name, v)
		}
	}
	if c.Operation == "" {
		c.Operation = span.Name()
	}
}

// Rank is one rank's part in a collective.
type Rank struct {
	Head

	Rank            Int     // in the communicator
	Host            string  // where it is not the resource's
	Late            float64 // s behind the first that came
	Last            bool    // it came last
	State           string  // where it is not completed
	Errors, Retries float64

	BandwidthReported float64 // By/s, as its log states it
}

// Read reads a span of KindRank.
func (r *Rank) Read(span ptrace.Span) {
	*r = Rank{Late: absent, Errors: absent, Retries: absent, BandwidthReported: absent}
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrNCCLCommRank:
			r.Rank = ordinalOf(v)
		case spans.AttrHostName:
			r.Host = spans.ValueText(v)
		case spans.AttrNCCLLate:
			r.Late = spans.ValueNumber(v)
		case spans.AttrNCCLLast:
			r.Last = flagOf(v)
		case spans.AttrNCCLState:
			r.State = spans.ValueText(v)
		case spans.AttrNCCLErrors:
			r.Errors = spans.ValueNumber(v)
		case spans.AttrNCCLRetries:
			r.Retries = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthBusReported, spans.AttrNCCLBandwidthAlgorithmReported:
			r.BandwidthReported = spans.ValueNumber(v)
		default:
			r.take(name, v)
		}
	}
}

// Link is what a channel or a network proxy moved to or from a peer, below a rank.
type Link struct {
	Channel, Peer, Step Int
	Direction           string  // send, receive
	State               string  // of a proxy's step: ScheduleSend, …
	MessageSize         float64 // By
}

// Read reads a span of KindChannel, KindProxyOp or KindProxyStep.
func (l *Link) Read(span ptrace.Span) {
	*l = Link{MessageSize: absent}
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrNCCLChannelID:
			l.Channel = ordinalOf(v)
		case spans.AttrNCCLPeerRank:
			l.Peer = ordinalOf(v)
		case spans.AttrNCCLStep:
			l.Step = ordinalOf(v)
		case spans.AttrNCCLDirection:
			l.Direction = spans.ValueText(v)
		case spans.AttrNCCLProxyState:
			l.State = spans.ValueText(v)
		case spans.AttrNCCLMessageSize:
			l.MessageSize = spans.ValueNumber(v)
		}
	}
}
