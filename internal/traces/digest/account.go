package digest

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/spans"
)

// booked are the steps in a job's ledger to which parts may still come: mostly in the same message, or in one of the next.
type booked struct {
	now, before map[pcommon.SpanID]account.Ref
	sources     map[string]int32
	writers     map[writer]int32
	last        map[int32]account.Ref // of each source
}

// writer is who logs the steps of a source.
type writer struct {
	source int32
	file   string
	rank   int64
}

const (
	mostBooked  = 8192
	mostWriters = 1 << 12 // and logs
)

func (b *booked) put(id pcommon.SpanID, of account.Ref) {
	if b.now == nil || len(b.now) == mostBooked {
		b.now, b.before = make(map[pcommon.SpanID]account.Ref, len(b.now)), b.now
	}
	b.now[id] = of
}

func (b *booked) get(id pcommon.SpanID) (account.Ref, bool) {
	of, ok := b.now[id]
	if !ok {
		of, ok = b.before[id]
	}
	return of, ok
}

// number numbers keys, as far as there is room.
func number[K comparable](m *map[K]int32, k K, own func(K) K) int32 {
	n, ok := (*m)[k]
	if ok {
		return n
	}
	if *m == nil {
		*m = map[K]int32{}
	}
	if n = int32(len(*m)); n < mostWriters {
		(*m)[own(k)] = n
	}
	return n
}

// book puts what a span says of the run's time into the ledger.
func (j *Job) book(s ptrace.Span, kind view.Kind, res *resource) {
	switch kind {
	case view.KindStep:
		j.bookStep(s, res)
	case view.KindBreakdown:
		if b := &j.Windows.b; b.Window == spans.WindowStep && b.Excess > 0 { // just read; it begins with its step
			j.Ledger.Slow(int64(s.StartTimestamp()), b.Excess)
		}
	case view.KindPart:
		state, behind, ok := pauseOf(res, spans.AttrText(s.Attributes(), spans.AttrStage))
		if of, found := j.ledger.get(s.ParentSpanID()); ok && found {
			j.Ledger.Part(of, state, length(s), behind)
		}
	case view.KindEvaluation:
		start, end := int64(s.StartTimestamp()), int64(s.EndTimestamp())
		if end-start <= 1 {
			if of, ok := j.ledger.last[number(&j.ledger.sources, res.Source, text)]; ok {
				j.Ledger.Evaluated(of)
			}
			return
		}
		time := res.TimeSource
		if text := spans.AttrText(s.Attributes(), spans.AttrTimeSource); text != "" {
			time = spans.TimeSource(text)
		}
		if time != spans.TimeSynthetic {
			j.Ledger.Pause(account.Evaluation, start, end)
		} else if of, ok := j.ledger.last[number(&j.ledger.sources, res.Source, text)]; ok {
			j.Ledger.Part(of, account.Evaluation, length(s), true)
		}
	}
}

func (j *Job) bookStep(s ptrace.Span, res *resource) {
	v := &j.Steps.v // just read
	b := &j.ledger
	source := number(&b.sources, res.Source, text)
	step := account.Step{
		Start: int64(s.StartTimestamp()), End: int64(s.EndTimestamp()), Number: v.Step().Or(-1), Steps: int32(min(v.Covered(), math.MaxInt32)), Source: int16(source),
		Writer:  number(&b.writers, writer{source, res.file, v.Rank.Or(-1)}, func(w writer) writer { w.file = text(w.file); return w }),
		Attempt: int32(min(res.RunAttempt.Or(0), math.MaxInt32)), Synthetic: res.TimeSource == spans.TimeSynthetic,
		Ranks: int32(min(v.WorldSize.Or(0), math.MaxInt32)),
	}
	step.Trace, step.Offset = s.TraceID(), res.offset
	if v.TimePoint || step.End-step.Start <= 1 {
		step.End = step.Start // a span of no length has 1 ns
	}
	of := j.Ledger.Add(step)
	b.put(s.SpanID(), of)
	if b.last == nil {
		b.last = map[int32]account.Ref{}
	}
	b.last[source] = of
}

// Placed is where the record of a step in the ledger stands.
func (j *Job) Placed(p account.Place) At {
	at := At{Trace: p.Trace, Offset: -1}
	for w, n := range j.ledger.writers {
		if n == p.Writer {
			at.File, at.Offset = w.file, p.Offset
		}
	}
	return at
}

// pauseOf says what a part of a step is beside training, and whether the trainer does it behind the step that logs it.
func pauseOf(res *resource, part string) (of account.State, behind, ok bool) {
	loop := trainers.Of(res.Source, res.StepDurationKind)
	switch trainers.PartOf(part) {
	case trainers.Checkpointing:
		return account.Checkpoint, loop.Checkpoint == trainers.Between, true
	case trainers.Evaluating:
		return account.Evaluation, loop.Evaluation == trainers.Between, true
	}
	return 0, false, false
}
