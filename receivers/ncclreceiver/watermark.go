package ncclreceiver

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/collectives/partial"
	"github.com/trainbridge/trainbridge/spans"
)

// watermark is the progress of sending a run's collectives of a partition. The joiner of steps (step_join) reads from it whether more collectives of a step's
// time may come.
type watermark struct {
	source, run, service string
	whole                bool  // all of the run is sent by this reading: nothing in an earlier life, or by another gateway
	sent                 int64 // latest end of the collectives sent, also in an earlier life, Unix ns
	epoch, number        int64 // of the watermark itself: the start of this reading, Unix ns, and a count; of two watermarks the later one holds
	until                int64 // all collectives that began before were sent, Unix ns; 0: unknown so far
	unreadable           int64 // latest end of unreadable records, Unix ns; 0: none
	split                bool  // the run's communicators may have moved to other partitions lately

	proposed   int64     // the next until, if the topic does not grow before the next look
	proposedAt time.Time // when it was proposed; zero: none is

	reported time.Time // zero: not yet
	fresh    bool      // something changed since
}

const (
	// remindEvery is the interval of repeating an unchanged watermark: a gateway that takes over the run's steps needs the watermark before reporting a step
	// (step_join waits for 10 s).
	remindEvery = 5 * time.Second
	// silent bounds the silence of the logs of a live run: heartbeats come every 10 to 15 s.
	silent = 20 * time.Second
	// moving is the time after partitions were added in which agents may still learn of them: their exporter asks every 10 min (metadata::refresh_interval).
	moving = 15 * time.Minute
)

// noteWatermark records that packed records of a run have come; the first ones make the run's watermark. The watermark is whole if nothing of the run was sent
// before: the partition is unclaimed, or the run begins after all live runs are known (silent). Of any other run an earlier reader may have sent collectives:
// until the watermark first rises, sent follows the records, which are mostly read again.
func (p *partition) noteWatermark(s *partial.Stretch) {
	run := s.From.Run
	m := p.marks[run]
	if m == nil {
		if len(p.marks) >= maxComms {
			clear(p.marks) // bounds memory: a live run gets a mark again with the next records
		}
		m = &watermark{
			source: fmt.Sprintf("%s/%d", p.t.cfg.Topic, p.id), run: run, epoch: p.since.UnixNano(), whole: p.unclaimed || p.t.now().Sub(p.since) > silent, fresh: true,
		}
		p.marks[run] = m
	}
	m.service = s.Service
	if !m.whole && m.until == 0 && s.Count > 0 { // a heartbeat has no record
		m.sent = max(m.sent, s.End)
	}
}

// began returns the beginning of an operation, as far as its record shows.
func began(o *op.Op) int64 {
	if o.Start > 0 {
		return o.Start
	}
	return o.End - max(o.Duration, 0)
}

// watermarks puts the due watermarks into the batches of the runs: a run's first one at once; later ones, only while the partition is read to its end, when
// something has changed (every markEvery at most), and every remindEvery.
func (p *partition) watermarks() {
	now := p.t.now()
	p.mu.Lock()
	read := !p.endedAt.IsZero() && p.tracker.Head() >= p.end // otherwise an unread log may be behind
	looked, split := p.endedAt, !p.grown.IsZero() && now.Sub(p.grown) < moving
	p.mu.Unlock()
	for run, m := range p.marks {
		first, since := m.reported.IsZero(), now.Sub(m.reported)
		if since < p.t.markEvery {
			continue
		}
		switch {
		case read:
			m.rise(p, now, looked)
			m.split = split
			if !m.fresh && since < remindEvery {
				continue
			}
		case !first:
			continue
		}
		b := p.batch(run)
		m.number++
		b.mark, b.marked = *m, true
		if m.split { // what began before until may be in a partition of which nothing is known here
			b.mark.sent = max(m.sent, m.until)
		}
		if first { // the run begins: the watermark goes before its collectives
			b.mark.until = 0
			if m.whole { // of any other run, collectives up to sent left in an earlier life
				b.mark.sent = 0
			}
		}
		m.reported, m.fresh = now, first // the first has said nothing of what was sent: another follows
	}
}

// rise advances m.until to the time up to which all collectives of the run are sent: before the oldest that still waits in the joiner, and before the last
// record of each log. A log without records or heartbeats for hang_timeout is not waited for; without any live log the watermark stays. The time counts only
// after a later look at the topic: had partitions been added before, a log's records of some communicators might be in these, unread.
func (m *watermark) rise(p *partition, now, looked time.Time) {
	switch {
	case m.proposedAt.IsZero():
	case !looked.After(m.proposedAt):
		return
	case m.proposed > m.until:
		m.until, m.fresh = m.proposed, true
	}
	m.proposedAt = time.Time{}
	until, dead := p.joiner.Since(m.run), now.Add(-p.t.r.cfg.HangTimeout)
	live := false
	for key, in := range p.inputs {
		if key.run == m.run && in.lastRead.After(dead) {
			until, live = min(until, in.until), true
		}
	}
	if live && until > m.until {
		m.proposed, m.proposedAt = until, now
	}
}

// add adds the span of a watermark, for step_join alone (RecordOnly). The id is the same for all watermarks of a run and partition.
func (m *watermark) add(out *spans.Batch) {
	trace := spans.KeyTraceID(m.run, spans.SpanNCCLWatermark)
	out.From(spans.NoOrigin)
	s := out.Add(spans.Resource{Service: m.service, RunID: m.run, RecordOnly: true}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, spans.SpanNCCLWatermark, []byte(m.source)), Name: spans.SpanNCCLWatermark, Kind: ptrace.SpanKindInternal,
		Start: m.until, End: m.until, Attributes: 7,
	})
	a := s.Attributes()
	a.PutStr(spans.AttrNCCLWatermarkSource, m.source)
	a.PutInt(spans.AttrNCCLWatermarkEpoch, m.epoch)
	a.PutInt(spans.AttrNCCLWatermarkNumber, m.number)
	a.PutInt(spans.AttrNCCLWatermarkUntil, m.until)
	a.PutInt(spans.AttrNCCLWatermarkSent, m.sent)
	if m.unreadable > 0 {
		a.PutInt(spans.AttrNCCLWatermarkUnreadable, m.unreadable)
	}
	// The first watermark of a run that begins here. After partitions were added, all collectives up to sent may have been sent elsewhere, as of a run that
	// begins a second time.
	if m.whole && m.reported.IsZero() || m.split {
		a.PutBool(spans.AttrNCCLWatermarkFirst, true)
	}
}
