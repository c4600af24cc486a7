// Package rpc measures and judges groups of ZeroMQ RPCs.
package rpc

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/domain"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/episode"
	"github.com/trainbridge/trainbridge/spans"
)

// Outcomes of a group of calls.
const (
	measured = iota
	noStages
	noDuration
	alreadyMeasured
)

var outcomes = []string{measured: "measured", noStages: "no_stages", noDuration: "no_duration", alreadyMeasured: "already_measured"}

// Domain measures and judges groups of RPCs. The span of a group has the sums of its calls, so no further span is read.
type Domain struct {
	cfg      Config
	episodes *episode.All
}

// New returns the domain with its thresholds.
func New(cfg Config) *Domain { return &Domain{cfg: cfg, episodes: episode.NewAll()} }

// Kinds returns the kinds of groups of calls. Single calls are not judged.
func (d *Domain) Kinds() []view.Kind {
	return []view.Kind{view.KindPass, view.KindSession, view.KindCalls}
}

// Outcomes returns the names of the outcomes of a group.
func (d *Domain) Outcomes() []string { return outcomes }

// NewJudge returns a judge for batches.
func (d *Domain) NewJudge(at *domain.At, status bool) domain.Judge {
	return &judge{Domain: d, at: at, tally: domain.NewTally(outcomes), sheet: verdict.Sheet{Status: status, Memory: at.Memory}}
}

// judge has the values that its sentences name, of the group under judgement.
type judge struct {
	*Domain
	at    *domain.At
	tally domain.Tally
	sheet verdict.Sheet
	line  verdict.Summary

	group  view.Group
	tcp    bool                    // the transport is TCP
	share  [view.RPCStages]float64 // of the calls' time; NaN: not known
	answer episode.Answer
}

// EndResource implements domain.Judge: each span is judged by itself.
func (j *judge) EndResource() {}

// Tally implements domain.Judge.
func (j *judge) Tally() *domain.Tally { return &j.tally }

// Reset implements domain.Judge.
func (j *judge) Reset() {
	j.sheet.Reset()
	j.group = view.Group{}
}

// Span implements domain.Judge.
func (j *judge) Span(kind view.Kind, span ptrace.Span) { j.tally.Outcomes[j.judgeSpan(kind, span)]++ }

// measures are the stages' shares, in the order of writing.
var measures = [...]struct {
	stage view.RPCStage
	attr  string
}{
	{view.RPCSerialize, spans.AttrZMQSerializeUtilization},
	{view.RPCSend, spans.AttrZMQSendUtilization},
	{view.RPCReceive, spans.AttrZMQReceiveUtilization},
	{view.RPCDeserialize, spans.AttrZMQDeserializeUtilization},
	{view.RPCServer, spans.AttrZMQServerUtilization},
	{view.RPCUnattributed, spans.AttrZMQUnattributedUtilization},
}

// judgeSpan measures one group of calls, writes the shares and verdicts on its span, and returns the outcome. A group that ended early is judged by the calls
// seen.
func (j *judge) judgeSpan(kind view.Kind, span ptrace.Span) int {
	j.group.Read(span, &j.at.Resource)
	if j.group.Judged {
		return alreadyMeasured
	}
	j.measureShares()
	j.sheet.Begin()
	if kind != view.KindSession { // setting up is no workload
		j.judgeGroup(kind, span)
	}
	outcome, attrs := noDuration, span.Attributes()
	if j.group.CallDuration > 0 {
		outcome = noStages
		attrs.EnsureCapacity(attrs.Len() + len(measures) + 2 + j.sheet.Attributes()) // the transport's share and the summary are the two
		for _, m := range measures {
			if x := j.share[m.stage]; !math.IsNaN(x) {
				attrs.PutDouble(m.attr, x)
				outcome = measured
			}
		}
		spans.PutFinite(attrs, spans.AttrZMQTransportUtilization, j.share[view.RPCTransport])
	}
	j.summarize(span)
	j.sheet.Put(span)
	return outcome
}

// judgeGroup gives the verdicts about a group: much time in serialization, much in the transport, many calls, TCP where IPC is expected.
func (j *judge) judgeGroup(kind view.Kind, span ptrace.Span) {
	j.episodes.Lock()
	defer j.episodes.Unlock()
	id := span.SpanID()
	e, _ := j.episodes.Of(episode.Key{Service: j.at.Service, Run: j.at.Run, Of: span.Name()})
	e.Record(binary.BigEndian.Uint64(id[:]))
	if share := j.share[view.RPCSerialize]; domain.Exceeds(share, j.cfg.SerializeHigh) {
		j.say(serializeHigh, e.Mostly(spans.VerdictZMQSerializeHigh), share, j.cfg.SerializeHigh)
	}
	transport := j.share[view.RPCTransport]
	canBeTransport := j.tcp || domain.Exceeds(j.minTransportShare(), j.cfg.TransportHigh) // see minTransportShare
	if domain.Exceeds(transport, j.cfg.TransportHigh) && canBeTransport {
		j.say(transportHigh, e.Mostly(spans.VerdictZMQTransportHigh), transport, j.cfg.TransportHigh)
	}
	// The number of calls and the transport are properties of the client's code: said once per episode.Window groups, not on each. Only passes have a usual
	// number of calls.
	if limit := float64(j.cfg.CallsHigh); kind == view.KindPass && limit > 0 && j.group.Calls > limit {
		j.say(callsHigh, e.Holds(spans.VerdictZMQCallsHigh), j.group.Calls, limit)
	}
	if j.tcp && j.cfg.ExpectedTransport == expectIPC {
		j.say(transportTCP, e.Holds(spans.VerdictZMQTransportTCP), math.NaN(), math.NaN())
	}
}

// say says a verdict, if the answer of its episode allows.
func (j *judge) say(v *verdict.Verdict[judge], answer episode.Answer, value, threshold float64) {
	j.answer = answer
	if answer.Say {
		v.Say(&j.sheet, j, value, threshold)
	}
}

// measureShares sets j.tcp and the shares of the stages of the group.
func (j *judge) measureShares() {
	g := &j.group
	// spans.AttrZMQTransport begins with the network, in capitals: "TCP+OTP".
	j.tcp = g.Network == expectTCP || len(g.Transport) >= len(expectTCP) && strings.EqualFold(g.Transport[:len(expectTCP)], expectTCP)
	for _, m := range measures {
		j.share[m.stage] = j.shareOf(g.Duration[m.stage])
	}
	j.share[view.RPCTransport] = j.transportShare()
}

// shareOf returns seconds as a share of the time of the calls; NaN: that time is unknown, or the share is no valid number.
func (j *judge) shareOf(seconds float64) float64 {
	if x := seconds / j.group.CallDuration; j.group.CallDuration > 0 && x >= 0 && !math.IsInf(x, 1) {
		return x
	}
	return math.NaN()
}

// serverKnown reports whether the time of the server is logged: the log prints 0 if the server did not report it.
func (j *judge) serverKnown() bool { return j.group.Duration[view.RPCServer] > 0 }

// transportShare returns the share of sending and receiving, without the time of the server if logged. NaN: sending or receiving is unknown, or the server
// worked for longer than the client waited, which only wrong numbers say.
func (j *judge) transportShare() float64 {
	wait := j.share[view.RPCSend] + j.share[view.RPCReceive]
	if j.serverKnown() {
		wait -= j.share[view.RPCServer]
	}
	if wait < 0 && wait >= -domain.ShareResolution { // 0, but for rounding
		return 0
	}
	if !(wait >= 0) || math.IsInf(wait, 1) {
		return math.NaN()
	}
	return wait
}

// ipcRate is a lower bound of ZeroMQ's rate through a Unix socket, By/s: in a public log of 43 s, sending 3.3 GiB took 2.5 s.
const ipcRate = 1 << 30

// minTransportShare returns the share of the time of the calls that moving their bytes takes at ipcRate; NaN: the bytes do not travel over the transport.
// Receive times include the queue and compute of the server, and the log's server column counts kernels at best; only the bytes show whether the transport can
// be the cause.
func (j *judge) minTransportShare() float64 {
	if j.group.SharedMemory {
		return math.NaN()
	}
	return j.shareOf(j.bytes() / ipcRate)
}

// bytes returns the size of the messages; 0: unknown.
func (j *judge) bytes() float64 {
	total := 0.0
	for _, x := range [...]float64{j.group.RequestSize, j.group.ResponseSize} {
		if x > 0 {
			total += x
		}
	}
	return total
}

// summarize writes one line about the group on its span: "serialize 12.9% · send 5.9% · receive 74.5% · deserialize 6.8%; 98 calls in 43 s; 162 MiB/s; IPC".
func (j *judge) summarize(span ptrace.Span) {
	l, g := &j.line, &j.group
	l.Begin()
	for _, stage := range [...]view.RPCStage{view.RPCSerialize, view.RPCSend, view.RPCReceive, view.RPCDeserialize} {
		x := j.share[stage]
		l.Share(stage.String(), x)
		if stage == view.RPCReceive && j.serverKnown() && !math.IsNaN(x) {
			l.Text = append(l.Text, " (server "...)
			l.Text = human.AppendPercent(l.Text, j.share[view.RPCServer])
			l.Text = append(l.Text, ')')
		}
	}
	if g.Incomplete {
		l.Part("incomplete")
	}
	if g.Calls >= 1 {
		l.Part("")
		l.Text = append(strconv.AppendInt(l.Text, int64(g.Calls), 10), " call"...)
		if g.Calls > 1 {
			l.Text = append(l.Text, 's')
		}
		if g.CallDuration > 0 {
			l.Text = human.AppendSeconds(append(l.Text, " in "...), g.CallDuration)
		}
	}
	if g.Throughput > 0 {
		l.Part("")
		l.Text = human.AppendBinaryRate(l.Text, g.Throughput)
	}
	if g.Transport != "" {
		l.Part(g.Transport)
	}
	l.Put(span)
}
