package ncclreceiver

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/collectives/partial"
	"github.com/trainbridge/trainbridge/spans"
)

// watermark is how far the collectives of a run were sent that come by a partition. Who joins steps learns by it whether more is to come of the time of a step.
type watermark struct {
	source, run, service string
	whole                bool  // of the run nothing was sent in an earlier life, or by another
	sent                 int64 // the latest end of what was sent, also then, Unix ns
	epoch, number        int64 // of the word
	until                int64 // when the records of each log are behind, and the collectives that wait began, Unix ns; 0: not known yet

	told  time.Time // zero: not yet
	fresh bool      // something changed since
}

const (
	// remindEvery is how often a watermark is told that does not move: whoever takes over the run's steps has to hear of it before it tells one (step_join waits
	// for 10 s).
	remindEvery = 5 * time.Second
	// silent is how long the logs of a live run are silent at most: heartbeats come every 10 to 15 s.
	silent = 20 * time.Second
)

// mark notes that a stretch came of a run. Where another gateway had the partition before, or this one in an earlier life, it may have sent some of the run, of
// what was there then: not of a run that begins when all live runs have been heard of.
func (p *partition) mark(s *partial.Stretch) {
	run := s.From.Run
	m := p.marks[run]
	if m == nil {
		if len(p.marks) >= maxComms {
			clear(p.marks)
		}
		m = &watermark{
			source: fmt.Sprintf("%s/%d", p.t.cfg.Topic, p.id), run: run, epoch: p.since.UnixNano(), whole: p.virgin || p.t.now().Sub(p.since) > silent, fresh: true,
		}
		p.marks[run] = m
	}
	if m.service = s.Service; !m.whole && m.until == 0 && s.Count > 0 { // a heartbeat has no record
		m.sent = max(m.sent, s.End)
	}
}

// began is when an operation began by its record, as far as that says.
func began(o *op.Op) int64 {
	if o.Start > 0 {
		return o.Start
	}
	return o.End - max(o.Duration, 0)
}

// watermarks puts what is to be told into the batches of the runs, behind the collectives that have left.
func (p *partition) watermarks() {
	now := p.t.now()
	p.mu.Lock()
	read := !p.endedAt.IsZero() && p.tracker.Head() >= p.end // else a log that was not heard of yet may be behind
	p.mu.Unlock()
	for run, m := range p.marks {
		if since := now.Sub(m.told); since < p.t.markEvery {
			continue
		} else if read {
			m.rise(p, now)
			if !m.fresh && since < remindEvery {
				continue
			}
		} else if !m.told.IsZero() {
			continue
		}
		b := p.batch(run)
		m.number++
		b.mark, b.marked = *m, true
		if m.told.IsZero() { // the run begins: this goes before its collectives
			b.mark.until = 0
			if m.whole {
				b.mark.sent = 0
			}
		}
		m.told, m.fresh = now, m.told.IsZero()
	}
}

// rise finds out how far the run has come. A log that nobody has read for hang_timeout is not waited for.
func (m *watermark) rise(p *partition, now time.Time) {
	until, dead := p.joiner.Since(m.run), now.Add(-p.t.r.cfg.HangTimeout)
	heard := false
	for key, in := range p.inputs {
		if key.run == m.run && in.heard.After(dead) {
			until, heard = min(until, in.until), true
		}
	}
	if heard && until > m.until {
		m.until, m.fresh = until, true
	}
}

// add adds the span of a watermark.
func (m *watermark) add(out *spans.Batch) {
	trace := spans.KeyTraceID(m.run, spans.SpanNCCLWatermark)
	out.From(spans.NoOrigin)
	s := out.Add(spans.Resource{Service: m.service, RunID: m.run, RecordOnly: true}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, spans.SpanNCCLWatermark, []byte(m.source)), Name: spans.SpanNCCLWatermark, Kind: ptrace.SpanKindInternal,
		Start: m.until, End: m.until, Attributes: 6,
	})
	a := s.Attributes()
	a.PutStr(spans.AttrNCCLWatermarkSource, m.source)
	a.PutInt(spans.AttrNCCLWatermarkEpoch, m.epoch)
	a.PutInt(spans.AttrNCCLWatermarkNumber, m.number)
	a.PutInt(spans.AttrNCCLWatermarkUntil, m.until)
	a.PutInt(spans.AttrNCCLWatermarkSent, m.sent)
	if m.whole && m.told.IsZero() {
		a.PutBool(spans.AttrNCCLWatermarkFirst, true)
	}
}
