package book_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/book"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// stepsOf puts steps of 1 s into a book.
func stepsOf(steps int) *book.Book {
	b := new(book.Book)
	var res view.Resource
	for n := range steps {
		s := ptrace.NewSpan()
		s.SetStartTimestamp(1_700_000_000e9 + pcommon.Timestamp(n)*1e9)
		s.SetEndTimestamp(s.StartTimestamp() + 1e9)
		s.Attributes().PutInt(spans.AttrIteration, int64(n))
		var v view.Step
		v.Read(s, &res)
		e := book.Step(s, &v, &res, fmt.Sprint("log-", n%2), -1)
		b.Put(&e)
	}
	return b
}

// A log whose step numbers restart with each epoch has all its steps, and none counts as redone until the job goes back to an epoch.
func TestStepsPerEpoch(t *testing.T) {
	for _, first := range []int64{0, 1} {
		b := new(book.Book)
		var res view.Resource
		at := pcommon.Timestamp(1_700_000_000e9)
		put := func(epoch float64, from, to int64) {
			for n := from; n <= to; n++ {
				s := ptrace.NewSpan()
				s.SetStartTimestamp(at)
				at += 1e9
				s.SetEndTimestamp(at)
				s.Attributes().PutInt(spans.AttrIteration, n)
				s.Attributes().PutDouble(spans.AttrEpoch, epoch)
				var v view.Step
				v.Read(s, &res)
				e := book.Step(s, &v, &res, "log", -1)
				b.Put(&e)
			}
		}
		for epoch := range 4 {
			put(float64(epoch), first, first+19)
			at += 9e9
		}
		fit := func() { book.Fit(slices.Values([]*book.Book{b}), book.MostSteps) }
		fit()
		a, ok := b.Ledger.Account()
		assert.True(t, ok)
		assert.Equal(t, int64(80), a.Steps)
		assert.Zero(t, a.Redone)
		assert.Len(t, a.Attempts, 1)
		assert.InDelta(t, 80, a.Seconds[account.InStep], 1e-6)

		put(2, first, first+19) // a restart from the checkpoint of an epoch
		put(3, first, first+19)
		put(4, first, first+19)
		fit()
		a, _ = b.Ledger.Account()
		assert.Equal(t, int64(100), a.Steps)
		assert.Equal(t, int64(40), a.Redone)
		assert.Len(t, a.Attempts, 2)
	}
}

// The first steps of epochs come before all others of their message, from another resource.
func TestStepsPerEpochApart(t *testing.T) {
	b := new(book.Book)
	put := func(epoch, number, seconds int) {
		var res view.Resource
		s := ptrace.NewSpan()
		s.SetStartTimestamp(pcommon.Timestamp(1_700_000_000e9 + seconds*1e9))
		s.SetEndTimestamp(s.StartTimestamp() + 1e9)
		s.Attributes().PutInt(spans.AttrIteration, int64(number))
		s.Attributes().PutDouble(spans.AttrEpoch, float64(epoch))
		var v view.Step
		v.Read(s, &res)
		e := book.Step(s, &v, &res, "log", -1)
		b.Put(&e)
	}
	for epoch := range 3 {
		put(epoch, 0, 100*epoch)
	}
	for epoch := range 3 {
		for n := 1; n < 100; n++ {
			put(epoch, n, 100*epoch+n)
		}
	}
	book.Fit(slices.Values([]*book.Book{b}), book.MostSteps)
	a, _ := b.Ledger.Account()
	assert.Equal(t, int64(300), a.Steps)
	assert.Zero(t, a.Redone)
	assert.Len(t, a.Attempts, 1)
}

// The largest book makes room for all.
func TestFit(t *testing.T) {
	small, large := stepsOf(100), stepsOf(3000)
	books := slices.Values([]*book.Book{small, large})
	book.Fit(books, 3100)
	assert.Equal(t, 3100, small.Ledger.Len()+large.Ledger.Len())
	book.Fit(books, 1000)
	assert.Equal(t, 100, small.Ledger.Len())
	assert.LessOrEqual(t, large.Ledger.Len(), 900)
	a, ok := large.Ledger.Account()
	assert.True(t, ok)
	assert.InDelta(t, 3000, a.Wall, 1e-6)
	book.Fit(books, 0) // as far as possible
}

// A restored book has the same account, sources and writers.
func TestRestore(t *testing.T) {
	b := stepsOf(50)
	sources, writers := b.Names()
	steps, same := b.Ledger.Steps()
	assert.Zero(t, same)
	again := book.Restore(sources, writers, steps)
	_, same = again.Ledger.Steps()
	assert.Equal(t, 50, same)
	assert.Equal(t, "log-1", again.File(1))
	want, _ := b.Ledger.Account()
	got, _ := again.Ledger.Account()
	assert.Equal(t, want.Seconds, got.Seconds)
	names, writing := again.Names()
	assert.Equal(t, sources, names)
	assert.Equal(t, writers, writing)
}

func TestDue(t *testing.T) {
	b := stepsOf(6400)
	assert.True(t, b.Due(6300, 0))
	assert.False(t, b.Due(6301, 0))
	assert.True(t, b.Due(6400, time.Minute))
	assert.True(t, b.Due(7000, 0), "neighbours were put together")
	assert.True(t, stepsOf(512).Due(512, 0))
}

// The result of an evaluation may come before its step: another resource of the message has the step.
func TestEvaluationBeforeItsStep(t *testing.T) {
	b, res := new(book.Book), view.Resource{}
	at := pcommon.Timestamp(1_700_000_000e9)
	result := ptrace.NewSpan()
	result.SetStartTimestamp(at + 11e9)
	result.SetEndTimestamp(at + 11e9)
	result.Attributes().PutStr(spans.AttrSource, "keyvalue")
	result.Attributes().PutInt(spans.AttrIteration, 1)
	e := book.Evaluation(result, &res, "log")
	b.Put(&e)
	for n := range pcommon.Timestamp(3) { // 10 s after step 1 without a step
		s := ptrace.NewSpan()
		s.SetSpanID(pcommon.SpanID{1, byte(n)})
		s.SetStartTimestamp(at + n*1e9 + max(n, 1)/2*10e9)
		s.SetEndTimestamp(s.StartTimestamp() + 1e9)
		s.Attributes().PutStr(spans.AttrSource, "keyvalue")
		s.Attributes().PutInt(spans.AttrIteration, int64(n))
		var v view.Step
		v.Read(s, &res)
		e := book.Step(s, &v, &res, "log", -1)
		b.Put(&e)
	}
	a, _ := b.Ledger.Account()
	assert.InDelta(t, 10, a.Seconds[account.Evaluation], 1e-6)
	assert.InDelta(t, 0, a.Seconds[account.Unexplained], 1e-6)
}

// An evaluation that does not fit in its step, beside the step's other parts, came after the step: verl's since 0.6.
func TestEvaluationBetweenSteps(t *testing.T) {
	for others, want := range map[int]float64{40: 20 * 60, 115: 20 * 120} {
		b := new(book.Book)
		res := view.Resource{Source: "verl"}
		at := pcommon.Timestamp(1_700_000_000e9)
		for n := range 20 {
			s := ptrace.NewSpan()
			s.SetSpanID(pcommon.SpanID{1, byte(n)})
			s.SetStartTimestamp(at)
			s.SetEndTimestamp(at + 120e9)
			at += 180e9
			s.Attributes().PutInt(spans.AttrIteration, int64(n))
			var v view.Step
			v.Read(s, &res)
			e := book.Step(s, &v, &res, "log", -1)
			b.Put(&e)
			for name, seconds := range map[string]int{"gen": others, "testing": 60} {
				p := ptrace.NewSpan()
				p.SetParentSpanID(s.SpanID())
				p.SetStartTimestamp(s.StartTimestamp())
				p.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(seconds)*1e9)
				e, ok := book.Part(p, name, &res)
				assert.True(t, ok)
				b.Put(&e)
			}
		}
		a, _ := b.Ledger.Account()
		assert.InDelta(t, want, a.Seconds[account.InStep], 1e-6)
		assert.InDelta(t, 20*60, a.Seconds[account.Evaluation], 1e-6)
	}
}
