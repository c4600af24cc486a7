package digest

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/book"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// addToBook adds the time of a span to the ledger. Call it right after the span was added to the digest, whose last step or breakdown is used.
func (j *Job) addToBook(s ptrace.Span, kind view.Kind, res *resource) {
	switch kind {
	case view.KindStep:
		e := book.Step(s, &j.Steps.v, &res.Resource, res.file, res.offset)
		j.Put(&e)
	case view.KindBreakdown:
		if e, ok := book.Breakdown(s, &j.Windows.b); ok {
			j.Put(&e)
		}
	case view.KindPart:
		if e, ok := book.Part(s, spans.AttrText(s.Attributes(), spans.AttrStage), &res.Resource); ok {
			j.Put(&e)
		}
	case view.KindEvaluation:
		e := book.Evaluation(s, &res.Resource, res.file)
		j.Put(&e)
	}
}

// Account returns the account of the time of the job; nil: its logs have no times. Nothing may be added to the job afterwards.
func (j *Job) Account() *account.Account {
	if j.account == nil {
		j.Tell(&j.Ledger)
		if a, ok := j.Ledger.Account(); ok && a.Wall > 0 {
			j.account = &a
		}
	}
	return j.account
}

// books returns the books of the jobs.
func (j *Jobs) books() iter.Seq[*book.Book] {
	return func(yield func(*book.Book) bool) {
		for _, job := range j.by.by {
			if !yield(&job.Book) {
				return
			}
		}
	}
}

// Placed returns the file and offset of the record of a step in the ledger; the offset is -1 if unknown.
func (j *Job) Placed(p account.Place) At {
	at := At{Trace: p.Trace, Offset: -1}
	if file := j.File(p.Writer); file != "" {
		at.File, at.Offset = file, p.Offset
	}
	return at
}
