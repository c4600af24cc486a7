package ncclreceiver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/ncclras"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/ras"
	"github.com/trainbridge/trainbridge/spans"
)

// rasPoller asks NCCL's RAS server (Reliability, Availability, Serviceability: a thread in each process of a job) for the state of the ranks, and sends what
// has changed since the question before as spans, and the state as gauges.
type rasPoller struct {
	r     *ncclReceiver
	cfg   *RASConfig
	run   string
	now   func() time.Time
	ask   func(context.Context) (*ncclras.Answer, error)
	watch ras.Watch

	outcome string        // of the last question
	waiting []ras.Finding // not accepted yet
	end     context.CancelFunc
	loop    sync.WaitGroup
}

// maxWaiting bounds the findings kept for an absent backend; the newest stay.
const maxWaiting = 256

// newRASPoller makes the poller of a receiver.
func newRASPoller(r *ncclReceiver, cfg *RASConfig) *rasPoller {
	client := ncclras.Client{Endpoint: cfg.Endpoint, Risky: cfg.AllowNCCL228}
	return &rasPoller{
		r: r, cfg: cfg, run: r.cfg.Run(""), now: time.Now, ask: client.Ask, watch: ras.Watch{Patience: r.cfg.HangTimeout},
	}
}

// Start begins to ask, at once and then in each interval. A job need not run yet.
func (p *rasPoller) Start(ctx context.Context, _ component.Host) error {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx)) // the given context ends with Start
	p.end = end
	p.loop.Go(func() {
		ticks := time.NewTicker(p.cfg.Interval)
		defer ticks.Stop()
		for {
			p.poll(ctx)
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
		}
	})
	return nil
}

// Shutdown ends the asking, and a question still without answer.
func (p *rasPoller) Shutdown(context.Context) error {
	if p.end != nil {
		p.end()
		p.loop.Wait()
	}
	return nil
}

// poll asks once, and sends the new findings, with those that earlier polls could not send, and the gauges. A backend that is away is tried again with the next
// poll; findings that are refused, or too many to keep, are counted as lost.
func (p *rasPoller) poll(ctx context.Context) {
	question, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	answer, err := p.ask(question)
	cancel()
	if ctx.Err() != nil {
		return
	}
	at := p.now()
	p.report(ctx, answer, err)
	b := &rasBatch{p: p, at: at}
	if err == nil {
		var found []ras.Finding
		found, b.sum = p.watch.See(at, answer)
		p.waiting = append(p.waiting, found...)
		if n := len(p.waiting) - maxWaiting; n > 0 {
			p.r.tel.TrainbridgeNcclRasLost.Add(ctx, int64(n))
			p.waiting = p.waiting[n:]
		}
	}
	b.found = p.waiting
	if len(b.found) == 0 && !b.sum.Known {
		return
	}
	err = p.r.Deliver(b).Send(ctx)
	if refused, ok := errors.AsType[*tail.Refused](err); ok {
		p.r.tel.TrainbridgeNcclRasLost.Add(ctx, int64(len(refused.Places[0]))) // of the only batch
		p.r.Set.Logger.Warn("what NCCL's RAS says was refused", zap.Error(err))
	} else if err != nil {
		return // the findings wait for the next poll
	}
	p.waiting = nil
}

// outcomes are the outcomes of a question by its error (ncclras), as in the attribute poll: without an error "answered".
var outcomes = []struct {
	err  error
	name string
}{
	{ncclras.ErrAbsent, "absent"},
	{ncclras.ErrTimeout, "timeout"},
	{ncclras.ErrOld, "old"},
	{ncclras.ErrRisky, "risky"},
	{ncclras.ErrInvalid, "invalid"},
}

// report counts a question by its outcome, and logs an outcome other than the last one's. The need of another NCCL is logged once; an absent server each time,
// at the debug level, as a job need not run.
func (p *rasPoller) report(ctx context.Context, answer *ncclras.Answer, err error) {
	outcome := "answered"
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			outcome = o.name
			break
		}
	}
	p.r.tel.TrainbridgeNcclRasPolls.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(attribute.String("poll", outcome))))
	changed := outcome != p.outcome
	p.outcome = outcome
	text := fmt.Sprintf("%s: NCCL's RAS at %s: ", p.r.Set.ID, p.cfg.Endpoint)
	switch outcome {
	case "answered":
		if changed {
			p.r.Set.Logger.Info(text + fmt.Sprintf("NCCL %s answers for %d communicators", spans.Name(answer.Version), len(answer.Communicators)))
		}
	case "old":
		p.r.Once(zapcore.WarnLevel, outcome, text+err.Error()+": nothing is told of hangs until a newer NCCL is there (2.29.2 or later)")
	case "risky":
		p.r.Once(zapcore.WarnLevel, outcome, text+err.Error()+": it is not asked. 'ras::allow_nccl_2_28: true' takes the risk")
	case "absent":
		p.r.Set.Logger.Debug(text + err.Error())
	default:
		if changed {
			p.r.Set.Logger.Warn(text + err.Error())
		}
	}
}

// rasBatch is the data of a poll.
type rasBatch struct {
	p     *rasPoller
	at    time.Time
	found []ras.Finding
	sum   ras.Summary
}

// rasLength is the length of a span, as of all events.
const rasLength = time.Millisecond

// Traces builds a span for each finding, an event of class ras in the trace of the run. A hang, and an error of NCCL, make the span an error.
func (b *rasBatch) Traces(out *spans.Batch, from filereceiver.From) {
	trace, _ := spans.RunIDs(b.p.run)
	res := spans.Resource{Service: b.p.r.cfg.ServiceName, RunID: b.p.run, Time: spans.TimeObserved}
	for i := range b.found {
		f := &b.found[i]
		form, at := "ras."+f.Kind.String(), f.At.UnixNano()
		id := spans.SpanID(trace, spans.SpanEvent, []byte(form), []byte(f.Comm), strconv.AppendInt(nil, at, 10), []byte(b.p.r.cfg.Collector))
		from(tail.Place(i))
		s := out.Add(res, spans.Span{
			Trace: trace, ID: id, Name: spans.SpanEvent, Is: spans.KindEvent, Kind: ptrace.SpanKindInternal, Start: at, End: at + int64(rasLength),
			Source: spans.TimeObserved, Attributes: 16,
		})
		m := s.Attributes()
		m.PutStr(spans.AttrEventClass, string(events.ClassRAS))
		m.PutStr(spans.AttrEventForm, form)
		text := spans.Text(f.Text)
		m.PutStr(spans.AttrEventText, text)
		putFinding(m, f)
		if f.Hang || f.Kind == ras.Failed {
			s.Status().SetCode(ptrace.StatusCodeError)
			s.Status().SetMessage(text)
		}
	}
}

// putFinding writes the attributes of a finding, without those that the finding lacks.
func putFinding(m pcommon.Map, f *ras.Finding) {
	if f.Comm != "" {
		m.PutStr(spans.AttrNCCLCommID, spans.Name(f.Comm))
		m.PutInt(spans.AttrNCCLCommSize, f.Size)
	}
	m.PutInt(spans.AttrNCCLRASHeard, f.Heard)
	m.PutInt(spans.AttrNCCLRASCommunicators, f.Communicators)
	if f.Version != "" {
		m.PutStr(spans.AttrNCCLRASVersion, spans.Name(f.Version))
	}
	if f.For > 0 {
		m.PutDouble(spans.AttrNCCLRASStill, f.For.Seconds())
	}
	if f.Hang {
		m.PutBool(spans.AttrNCCLHang, true)
	}
	// A list has the first ranks only, the count all.
	for _, list := range []struct {
		ranks, count string // names of attributes
		of           []int32
		n            int64
	}{
		{spans.AttrNCCLRanksBehind, spans.AttrNCCLRanksBehindCount, f.Behind, f.BehindCount},
		{spans.AttrNCCLRanksAhead, spans.AttrNCCLRanksAheadCount, f.Ahead, f.AheadCount},
		{spans.AttrNCCLRanksMissing, spans.AttrNCCLRanksMissingCount, f.Missing, f.MissingCount},
	} {
		if list.n == 0 {
			continue
		}
		ranks := m.PutEmptySlice(list.ranks)
		for _, rank := range list.of {
			ranks.AppendEmpty().SetInt(int64(rank))
		}
		m.PutInt(list.count, list.n)
	}
	putLines(m, spans.AttrNCCLRASCounts, f.Counts)
	putLines(m, spans.AttrNCCLRASProcesses, f.Processes)
	putLines(m, spans.AttrNCCLRASErrors, f.Errors)
}

// putLines writes a list of texts, if any.
func putLines(m pcommon.Map, name string, lines []string) {
	if len(lines) == 0 {
		return
	}
	list := m.PutEmptySlice(name)
	for _, line := range lines {
		list.AppendEmpty().SetStr(spans.Text(line))
	}
}

// Metrics has the gauges of an answer: how many ranks are in each state, and how long the ranks have stood still. Without an answer, or a communicator in it
// that can be compared, there are none.
func (b *rasBatch) Metrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	if !b.sum.Known {
		return md
	}
	rm := md.ResourceMetrics().AppendEmpty()
	spans.Resource{Service: b.p.r.cfg.ServiceName, RunID: b.p.run}.PutInstance(rm.Resource().Attributes())
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(metadata.ScopeName)
	sm.Scope().SetVersion(b.p.r.Set.BuildInfo.Version)
	point := func(list pmetric.NumberDataPointSlice, v float64) pcommon.Map {
		p := list.AppendEmpty()
		p.SetTimestamp(spans.Timestamp(b.at.UnixNano()))
		p.SetDoubleValue(v)
		if b.p.r.cfg.Collector != "" {
			p.Attributes().PutStr(spans.AttrCollector, b.p.r.cfg.Collector)
		}
		return p.Attributes()
	}
	declared := func(name string) pmetric.NumberDataPointSlice {
		m, d := sm.Metrics().AppendEmpty(), spans.MetricNamed(name)
		d.Declare(m)
		return m.Gauge().DataPoints()
	}
	ranks := declared(spans.MetricNCCLRASRanks)
	for _, s := range []struct {
		state string
		n     int64
	}{
		{spans.NCCLRASHeard, b.sum.Heard},
		{spans.NCCLRASBehind, b.sum.Behind},
		{spans.NCCLRASFailed, b.sum.Failed},
		{spans.NCCLRASUnresponsive, b.sum.Unresponsive},
		{spans.NCCLRASDead, b.sum.Dead},
		{spans.NCCLRASAbsent, b.sum.Absent},
	} {
		point(ranks, float64(s.n)).PutStr(spans.AttrNCCLRASState, s.state)
	}
	point(declared(spans.MetricNCCLRASStill), b.sum.For.Seconds())
	return md
}

// Done implements filereceiver.Batch.
func (b *rasBatch) Done() {}
