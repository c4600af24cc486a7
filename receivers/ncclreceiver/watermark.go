package ncclreceiver

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// watermark is how far the collectives of a run were sent that come by a partition. Who joins steps learns by it whether more is to come of the time of a step.
type watermark struct {
	source, run, service string
	first                bool  // of the run nothing was sent before
	sent                 int64 // the latest end of what was sent, Unix ns
	until                int64 // when the records of each log are behind, and the collectives that wait began, Unix ns; 0: not known yet

	told  time.Time
	fresh bool // something changed since
}

const (
	// markEvery is how often a watermark is told that moves, and remindEvery one that does not: whoever takes over the run's steps has to hear of it before it
	// tells one (step_join waits for 10 s).
	markEvery   = time.Second
	remindEvery = 5 * time.Second
	// silent is how long the logs of a live run are silent at most: heartbeats come every 10 to 15 s.
	silent = 20 * time.Second
)

// mark is the watermark of a run, made where there is none. start is when the first record of the run began. Where another gateway had the partition before,
// or this one in an earlier life, it may have sent some of the run: not of one that begins when all live runs have been heard of.
func (p *partition) mark(run, service string, start int64) *watermark {
	m := p.marks[run]
	if m == nil {
		if len(p.marks) >= maxComms {
			clear(p.marks)
		}
		m = &watermark{source: fmt.Sprintf("%s/%d", p.t.cfg.Topic, p.id), run: run, first: p.virgin || p.t.now().Sub(p.since) > silent, fresh: true}
		if !m.first {
			m.sent = start
		}
		p.marks[run] = m
	}
	m.service = service
	return m
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
		if since := now.Sub(m.told); since < markEvery {
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
		b.mark, b.marked = *m, true
		m.told, m.fresh, m.first = now, false, false
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
		Start: m.until, End: m.until, Attributes: 4,
	})
	a := s.Attributes()
	a.PutStr(spans.AttrNCCLWatermarkSource, m.source)
	a.PutInt(spans.AttrNCCLWatermarkUntil, m.until)
	a.PutInt(spans.AttrNCCLWatermarkSent, m.sent)
	if m.first {
		a.PutBool(spans.AttrNCCLWatermarkFirst, true)
	}
}
