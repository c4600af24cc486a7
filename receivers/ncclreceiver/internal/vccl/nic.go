package vccl

import (
	"bytes"
	"time"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/spans"
)

// nic are the samples of a NIC.
type nic struct{ host []byte }

// sample returns a sample of the NIC without a rank.
func (n *nic) sample(metric string, at int64, value float64) parse.Sample {
	return parse.Sample{Metric: metric, At: at, Value: value, Source: op.Unknown, Destination: op.Unknown, Rank: op.Unknown, Host: n.host}
}

// End implements parse.Parser: each line is complete, so there is nothing to output.
func (n *nic) End(*parse.Out) {}

// Save implements parse.Parser: there is no state.
func (n *nic) Save() []byte { return nil }

// Restore implements parse.Parser: there is no state.
func (n *nic) Restore([]byte) {}

// packedHeader begins the header of PackedParser's files.
const packedHeader = "64 bits data:"

// PackedParser reads VCCL's default output since its PR #27 (timer_log.cc, compress_func): a header and 64-bit words in decimal, status<<63 | bandwidth<<54 |
// ns. An older header has "timestamp(63-10) | bandwidth(9-1) | status(0)"; the words are the same. Not safe for concurrent use.
//
// Each word gives two samples: the bandwidth (spans.MetricNCCLDeviceBandwidth, By/s; 9 bits of FlowParser's number: from 512 on the value restarts at 0), and
// whether VCCL takes the bandwidth as abnormal (spans.MetricNCCLDeviceAbnormal, 0 or 1). At is ns since the first send of the process, at a time missing from
// the log, as FromEnd says. The newest word of a file is as old as its modification time. Words are written around anomalies (± 50 ms) and once a second as a
// mean, without a distinction.
type PackedParser struct{ nic }

// NewPacked returns a parser of the file at a path.
func NewPacked(file string) *PackedParser { return &PackedParser{nic{hostOf(file)}} }

// Line implements parse.Parser: a word gives two samples.
func (p *PackedParser) Line(text []byte, _ bool, _ uint64, out *parse.Out) (parse.Verdict, string) {
	b := trim(text)
	if len(b) == 0 {
		return parse.Ignored, ignoredBlank
	}
	word, end := decimal.Unsigned(b, 0)
	switch {
	case bytes.HasPrefix(b, []byte(packedHeader)):
		return parse.Ignored, ignoredHeader
	case end < len(b):
		return parse.Rejected, reasonNumber
	case word == 0: // "Timestamp exceeds compressible range!"
		return parse.Ignored, ignoredOverflow
	}
	at := int64(word & (1<<54 - 1)) // the lower 54 bits; then 9 of the bandwidth, and the status
	for _, s := range [...]parse.Sample{
		p.sample(spans.MetricNCCLDeviceBandwidth, at, float64(word>>54&511)*perUnit),
		p.sample(spans.MetricNCCLDeviceAbnormal, at, float64(word>>63)),
	} {
		s.FromEnd = true
		out.Samples = append(out.Samples, s)
	}
	return parse.Record, ""
}

// meanHeader is the header of MeanParser's files.
const meanHeader = "Time,DevIndex,Func,MaxBandwidth,MeanBandwidth,Status"

// MeanParser reads the form of b63e3e5's time (January 2026): `Time,DevIndex,Func,MaxBandwidth,MeanBandwidth,Status`, a row per 100 ms after a mean fell below
// half of the best mean before: then Status is 1, and no row marks the recovery. Not safe for concurrent use.
//
// Each row gives three samples, by operation: the largest and the mean bandwidth, By/s, and Status. Time is local, in seconds.
type MeanParser struct {
	nic
	stamps *clock.Stamps
}

// NewMean reads the file at a path, with stamps in the zone loc.
func NewMean(file string, loc *time.Location) *MeanParser {
	return &MeanParser{nic{hostOf(file)}, clock.NewStamps(loc)}
}

// Line implements parse.Parser: a row of the columns of meanHeader gives three samples.
func (p *MeanParser) Line(text []byte, _ bool, _ uint64, out *parse.Out) (parse.Verdict, string) {
	b := trim(text)
	switch {
	case len(b) == 0:
		return parse.Ignored, ignoredBlank
	case string(b) == meanHeader:
		return parse.Ignored, ignoredHeader
	case !digits14(b, ','):
		return parse.Rejected, reasonNotARow
	}
	at, ok := compactStamp(p.stamps, b)
	if !ok {
		return parse.Rejected, reasonNumber
	}
	var function, most, mean, status int64
	i := 15                                                                          // after Time
	for column, to := range []*int64{new(int64), &function, &most, &mean, &status} { // DevIndex is only checked: the file is of one device
		v, end := signed(b, i)
		*to = v
		last := column == 4
		switch {
		case end == len(b) && !last:
			return parse.Rejected, reasonColumnCount
		case end == i:
			return parse.Rejected, reasonNumber
		case last && end < len(b):
			return parse.Rejected, reasonColumnCount
		case !last && b[end] != ',':
			return parse.Rejected, reasonNumber
		}
		i = end + 1
	}
	switch {
	case function < 0 || most < 0 || mean < 0 || status < 0:
		return parse.Rejected, reasonNegative
	case status > 1:
		return parse.Rejected, reasonNumber
	}
	kind := funcKind(uint64(function))
	for _, s := range [...]struct {
		metric, statistic string
		value             float64
	}{
		{spans.MetricNCCLDeviceBandwidth, "max", float64(most) * perUnit},
		{spans.MetricNCCLDeviceBandwidth, "mean", float64(mean) * perUnit},
		{spans.MetricNCCLDeviceAbnormal, "", float64(status)},
	} {
		x := p.sample(s.metric, at, s.value)
		x.Statistic, x.Kind, x.HasKind = s.statistic, kind, true
		out.Samples = append(out.Samples, x)
	}
	return parse.Record, ""
}
