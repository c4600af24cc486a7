package filereceiver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/refusal"
	"github.com/trainbridge/trainbridge/internal/turns"
	"github.com/trainbridge/trainbridge/spans"
)

// counted is a batch with a span for each number, made at the place of the same number.
type counted struct {
	from, to, width int
	done            bool
}

func (n *counted) Traces(out *spans.Batch, from From) {
	for i := n.from; i < n.to; i++ {
		from(tail.Place(i))
		s := out.Add(spans.Resource{PID: int64(i % 3)}, spans.Span{Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{1}, Name: strconv.Itoa(i)})
		s.Attributes().PutStr("text", strings.Repeat("x", n.width))
	}
}

func (n *counted) Metrics() pmetric.Metrics { return pmetric.NewMetrics() }
func (n *counted) Done()                    { n.done = true }

// next is the next component: answer is called for each message with the names of its spans, and the message is emptied, as by a consumer that mutates.
type next struct {
	answer func(names []string) error
	got    map[string]int
	calls  int
}

func (*next) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (n *next) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	n.calls++
	var names []string
	for _, rs := range td.ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			names = append(names, s.Name())
		}
	}
	td.ResourceSpans().RemoveIf(func(ptrace.ResourceSpans) bool { return true })
	if err := n.answer(names); err != nil {
		return err
	}
	for _, name := range names {
		n.got[name]++
	}
	return nil
}

func with(t *testing.T, answer func(names []string) error) (*Receiver, *next) {
	t.Helper()
	n := &next{answer: answer, got: map[string]int{}}
	mk := func(*Receiver, component.Config) (Parts, error) { return Parts{Scope: "test"}, nil }
	r, err := Prepare(receivertest.NewNopSettings(component.MustNewType("numbers")), nil, mk, n, nil)
	require.NoError(t, err)
	return r, n
}

func bad(text string) error {
	return consumererror.NewPermanent(status.Error(codes.InvalidArgument, text))
}

// A refused record takes no neighbour with it, whichever of the joined batches has the record.
func TestOneBadRecord(t *testing.T) {
	for _, want := range []int{0, 1, 4999, 5000, 7777, 9999} {
		r, n := with(t, func(names []string) error {
			for _, name := range names {
				if name == strconv.Itoa(want) {
					return bad(name)
				}
			}
			return nil
		})
		a, b := &counted{from: 0, to: 5000}, &counted{from: 5000, to: 10_000}
		d := r.Deliver(a)
		require.True(t, d.Join(r.Deliver(b)))
		err := d.Send(t.Context())
		var refused *tail.Refused
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, map[int][]tail.Place{want / 5000: {tail.Place(want)}}, refused.Places)
		assert.Zero(t, refused.Share)
		assert.Len(t, n.got, 9999)
		assert.True(t, a.done && b.done)
		assert.Less(t, n.calls, 40)
	}
}

// ofRun is a batch of a run, with one span.
type ofRun struct {
	counted
	run, name string
}

func (r *ofRun) Traces(out *spans.Batch, _ From) {
	out.Add(spans.Resource{RunID: r.run}, spans.Span{Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{1}, Name: r.name})
}

// opener returns a receiver that shares runs, and has met run "x".
func opener(t *testing.T, shared *runs, answer func(names []string) error) (*Receiver, *next) {
	t.Helper()
	r, n := with(t, answer)
	r.runs = shared
	r.OpenRun(opening("x", 1))
	return r, n
}

// The span of a run goes before all else of the run: while the backend refuses the messages of a log, the next log's message takes the span along.
func TestRunFirst(t *testing.T) {
	shared, away := new(runs), errors.New("away")
	refuses := away
	a, first := opener(t, shared, func([]string) error { return refuses })
	b, second := opener(t, shared, func(names []string) error {
		assert.Equal(t, []string{spans.SpanRun, "b"}, names)
		return nil
	})
	stranger, third := with(t, func([]string) error { return nil }) // sends records of the run, as nccl does with join: remote
	stranger.runs = shared
	late := a.Deliver(&ofRun{run: "x", name: "a"})
	require.ErrorIs(t, late.Send(t.Context()), away)
	require.NoError(t, stranger.Deliver(&ofRun{run: "x", name: "stranger"}).Send(t.Context()))
	require.NoError(t, b.Deliver(&ofRun{run: "x", name: "b"}).Send(t.Context()))
	refuses = nil
	require.NoError(t, late.Send(t.Context()))
	assert.Equal(t, map[string]int{"a": 1}, first.got)
	assert.Equal(t, map[string]int{spans.SpanRun: 1, "b": 1}, second.got)
	assert.Equal(t, map[string]int{"stranger": 1}, third.got)
}

// While a message with a run's span is under way, no other message of the run is sent, unless the process ends.
func TestRunUnderWay(t *testing.T) {
	shared := new(runs)
	entered, answer := make(chan struct{}), make(chan error)
	a, _ := opener(t, shared, func([]string) error {
		close(entered)
		return <-answer
	})
	b, n := opener(t, shared, func([]string) error { return nil })
	ended := make(chan error)
	go func() { ended <- a.Deliver(&ofRun{run: "x", name: "a"}).Send(t.Context()) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := b.Deliver(&ofRun{run: "x", name: "b"})
	require.ErrorIs(t, d.Send(ctx), context.Canceled)
	require.NoError(t, b.Deliver(&ofRun{run: "y", name: "of another run"}).Send(ctx))
	go func() { ended <- d.Send(t.Context()) }()
	answer <- nil
	require.NoError(t, errors.Join(<-ended, <-ended))
	assert.Equal(t, map[string]int{"b": 1, "of another run": 1}, n.got)
}

// Deliveries of a log that owe the span of a run keep their order: a later delivery that comes first waits, and not with the right to send the span.
func TestRunInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent [][]string
		r, n := opener(t, new(runs), func(names []string) error {
			sent = append(sent, names)
			return nil
		})
		r.traces = judging{n}
		var line turns.Line
		first, second := line.Begin([]int{1}), line.Begin([]int{1})
		ended := make(chan error)
		go func() { ended <- r.Deliver(&ofRun{run: "x", name: "second"}).Send(turns.With(t.Context(), second)) }()
		synctest.Wait()
		require.NoError(t, r.Deliver(&ofRun{run: "x", name: "first"}).Send(turns.With(t.Context(), first)))
		require.NoError(t, <-ended)
		assert.Equal(t, [][]string{{spans.SpanRun, "first"}, {"second"}}, sent)
	})
}

// judging is a next component that judges by earlier records.
type judging struct{ *next }

func (j judging) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	turns.Enter(ctx, j.next)()
	return j.next.ConsumeTraces(ctx, td)
}

// A later delivery of a log is judged as soon as the last message of the earlier delivery was.
func TestTurnOfADelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{}, 1)
		var judged []bool // the later delivery, while the backend has each message
		r, n := with(t, func([]string) error {
			synctest.Wait()
			judged = append(judged, len(entered) > 0)
			return nil
		})
		r.traces = judging{n}
		var line turns.Line
		ctx := turns.With(t.Context(), line.Begin([]int{1}))
		later := turns.With(t.Context(), line.Begin([]int{1}))
		go func() {
			turns.Enter(later, n)
			entered <- struct{}{}
		}()
		require.NoError(t, r.Deliver(&counted{to: 2*spans.MaxMessageSpans + 1}).Send(ctx))
		assert.Equal(t, []bool{false, false, true}, judged)
	})
}

// A message of one run has the run in its metadata, for the message key; a message of several runs has none.
func TestWithRun(t *testing.T) {
	for want, runs := range map[string][]string{"run": {"run", "run"}, "": {"run", "other run"}, "alone": {"alone"}} {
		td := ptrace.NewTraces()
		for _, run := range runs {
			td.ResourceSpans().AppendEmpty().Resource().Attributes().PutStr(spans.AttrRunID, run)
		}
		assert.Equal(t, want, strings.Join(client.FromContext(withRun(t.Context(), td)).Metadata.Get(spans.AttrRunID), ", "))
	}
}

// The span of a run is made of no record: when the span is refused, no record is.
func TestRunRefused(t *testing.T) {
	r, n := opener(t, new(runs), func(names []string) error {
		if slices.Contains(names, spans.SpanRun) {
			return bad("run")
		}
		return nil
	})
	d := r.Deliver(&counted{to: 10})
	require.True(t, d.Join(r.Deliver(&ofRun{run: "x", name: "x"})))
	var refused *tail.Refused
	require.ErrorAs(t, d.Send(t.Context()), &refused)
	assert.Empty(t, refused.Places)
	assert.Len(t, n.got, 11)
	require.NoError(t, r.Deliver(&ofRun{run: "x", name: "x"}).Send(t.Context()), "refused for good")
}

// A backend that refuses everything has a wrong address or tenant, not 5,000 wrong records.
func TestAllRefused(t *testing.T) {
	away := true
	r, n := with(t, func([]string) error {
		if away {
			return bad("tenant")
		}
		return nil
	})
	b := &counted{to: 5000}
	d := r.Deliver(b)
	for range 30 {
		err := d.Send(t.Context())
		require.Error(t, err)
		require.False(t, consumererror.IsPermanent(err))
		require.False(t, b.done)
	}
	away = false
	require.NoError(t, d.Send(t.Context()))
	assert.Len(t, n.got, 5000)
}

// When other records are accepted meanwhile, the refused records were bad.
func TestAllBad(t *testing.T) {
	r, _ := with(t, func(names []string) error {
		if len(names[0]) < 4 {
			return bad("short")
		}
		return nil
	})
	d := r.Deliver(&counted{to: 100})
	require.False(t, consumererror.IsPermanent(d.Send(t.Context())))
	require.NoError(t, r.Deliver(&counted{from: 1000, to: 1001}).Send(t.Context()))
	var refused *tail.Refused
	require.ErrorAs(t, d.Send(t.Context()), &refused)
	assert.Len(t, refused.Places[0], 100)
}

// Many bad records at the beginning of a message take no good ones with them, also when nothing else is ever accepted.
func TestBadFirst(t *testing.T) {
	for _, first := range []int{45, 51, 100} { // of three resources
		r, n := with(t, func(names []string) error {
			for _, name := range names {
				if i, _ := strconv.Atoi(name); i < first {
					return bad(name)
				}
			}
			return nil
		})
		d := r.Deliver(&counted{to: first + 100})
		var refused *tail.Refused
		for range 10 {
			if errors.As(d.Send(t.Context()), &refused) {
				break
			}
		}
		require.NotNil(t, refused, first)
		assert.Len(t, refused.Places[0], first)
		assert.Len(t, n.got, 100)
	}
}

// A single bad record in a log without others: bad record or bad backend is unknown. The record waits, alone, until something is accepted.
func TestBadAlone(t *testing.T) {
	r, n := with(t, func(names []string) error {
		if names[0] == "0" {
			return bad("never")
		}
		return nil
	})
	d := r.Deliver(&counted{to: 1})
	for range 30 {
		require.False(t, consumererror.IsPermanent(d.Send(t.Context())))
	}
	require.NoError(t, r.Deliver(&counted{from: 1, to: 2}).Send(t.Context()))
	var refused *tail.Refused
	require.ErrorAs(t, d.Send(t.Context()), &refused)
	assert.Len(t, n.got, 1)
}

// An error that is not the data's fault is retried, even if the exporter calls the error permanent.
func TestOtherCodes(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		if code == codes.InvalidArgument {
			continue
		}
		for _, permanent := range []bool{false, true} {
			t.Run(fmt.Sprint(code, permanent), func(t *testing.T) {
				answer := status.Error(code, "no")
				if permanent {
					answer = consumererror.NewPermanent(answer)
				}
				r, n := with(t, func([]string) error { return answer })
				d := r.Deliver(&counted{to: 10})
				for range 20 {
					require.Error(t, d.Send(t.Context()))
				}
				answer = nil
				require.NoError(t, d.Send(t.Context()))
				assert.Len(t, n.got, 10)
			})
		}
	}
}

// In the middle of the search for a bad record the backend goes away: the search begins again.
func TestAwayWhileSifting(t *testing.T) {
	calls := 0
	r, n := with(t, func(names []string) error {
		if calls++; calls%5 == 0 && calls < 20 {
			return errors.New("away")
		}
		for _, name := range names {
			if name == "33" {
				return bad(name)
			}
		}
		return nil
	})
	d := r.Deliver(&counted{to: 100})
	var refused *tail.Refused
	for range 10 {
		if errors.As(d.Send(t.Context()), &refused) {
			break
		}
	}
	require.NotNil(t, refused)
	assert.Equal(t, map[int][]tail.Place{0: {33}}, refused.Places)
	assert.Len(t, n.got, 99)
}

// Partial successes of a search that begins again are counted once: by the search that ends.
func TestPartialWhileSifting(t *testing.T) {
	share := func(awayAt int) float64 {
		calls := 0
		r, _ := with(t, func(names []string) error {
			if calls++; calls == awayAt {
				return errors.New("away")
			}
			if slices.Contains(names, "33") {
				return bad("33")
			}
			return consumererror.NewPermanent(&refusal.Partial{Rejected: 1})
		})
		d := r.Deliver(&counted{to: 100})
		var refused *tail.Refused
		for range 2 {
			if errors.As(d.Send(t.Context()), &refused) {
				break
			}
		}
		require.NotNil(t, refused)
		return refused.Share
	}
	for awayAt := 2; awayAt < 10; awayAt++ {
		assert.InDelta(t, share(0), share(awayAt), 1e-9, awayAt)
	}
}

// A part whose spans are all rejected is no sign that the backend accepts anything.
func TestAllRejectedWhileSifting(t *testing.T) {
	r, n := with(t, func(names []string) error {
		if len(names) == 100 {
			return bad("tenant")
		}
		return consumererror.NewPermanent(&refusal.Partial{Rejected: int64(len(names))})
	})
	d := r.Deliver(&counted{to: 100})
	var refused *tail.Refused
	require.NotErrorAs(t, d.Send(t.Context()), &refused)
	n.answer = func([]string) error { return nil }
	require.NoError(t, d.Send(t.Context()))
	assert.Len(t, n.got, 100)
}

// Each refused message is sifted anew: a message accepted before, after a search of its own that failed, says nothing of the next.
func TestSiftedAnew(t *testing.T) {
	r, n := with(t, func([]string) error { return bad("tenant") })
	d := r.Deliver(&counted{to: spans.MaxMessageSpans + 100}) // two messages
	var refused *tail.Refused
	require.NotErrorAs(t, d.Send(t.Context()), &refused)
	n.answer = func(names []string) error {
		if len(names) > spans.MaxMessageSpans/2 { // the first message, whole
			return nil
		}
		return bad("tenant")
	}
	err := d.Send(t.Context())
	require.Error(t, err)
	require.NotErrorAs(t, err, &refused)
	n.answer = func([]string) error { return nil }
	require.NoError(t, d.Send(t.Context()))
	assert.Len(t, n.got, spans.MaxMessageSpans+100)
}

// Spans rejected by a partial success are only counted, not sent again.
func TestPartial(t *testing.T) {
	for rejected, want := range map[int64]float64{1: 0.001, 500: 0.5, 999: 0.999} {
		r, n := with(t, func([]string) error { return consumererror.NewPermanent(&refusal.Partial{Rejected: rejected}) })
		var refused *tail.Refused
		require.ErrorAs(t, r.Deliver(&counted{to: 1000}).Send(t.Context()), &refused)
		assert.InDelta(t, want, refused.Share, 1e-9)
		assert.Empty(t, refused.Places)
		assert.Equal(t, 1, n.calls)
	}
	r, _ := with(t, func([]string) error { return consumererror.NewPermanent(&refusal.Partial{Rejected: 1000}) })
	var refused *tail.Refused
	require.ErrorAs(t, r.Deliver(&counted{to: 1000}).Send(t.Context()), &refused)
	assert.Len(t, refused.Places[0], 1000, "all: then it is known which")
}

// However wide the records and however many, no message is more than a default receiver takes, and each is sent once.
func TestMessagesFit(t *testing.T) {
	for _, width := range []int{0, 100, 4000, 400_000} {
		n := 60_000
		if width > 0 {
			n = min(n, 20_000_000/width)
		}
		sizer := ptrace.ProtoMarshaler{}
		b := &counted{to: n, width: width}
		r, next := with(t, func([]string) error { return nil })
		for _, m := range (&delivery{r: r, batches: []Batch{b}}).build(t.Context(), false) {
			assert.LessOrEqual(t, m.Traces.SpanCount(), spans.MaxMessageSpans)
			assert.LessOrEqual(t, sizer.TracesSize(m.Traces), 3_500_000)
		}
		require.NoError(t, r.Deliver(b).Send(t.Context()))
		assert.Len(t, next.got, n)
		if width == 4000 {
			assert.Greater(t, next.calls, 5)
		}
	}
}

// Messages of points fit too, and each is sent once, also when the next component is away now and then.
func TestPointsFit(t *testing.T) {
	for name, c := range map[string]struct {
		gauges
		batches int
	}{
		"one metric":   {gauges{metrics: []string{"loss"}, ranks: 60_000}, 1},
		"two metrics":  {gauges{metrics: []string{"loss", "speed"}, ranks: 10_000}, 1},
		"counter":      {gauges{metrics: []string{"bytes"}, ranks: 60_000, counter: true}, 1},
		"many batches": {gauges{metrics: []string{"loss"}, ranks: 8000}, 4},
		"long labels":  {gauges{metrics: []string{"loss"}, ranks: 3000, host: strings.Repeat("x", spans.MaxAttributeBytes)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls, got := 0, map[string]int{}
			next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
				if calls++; calls%3 == 0 {
					md.ResourceMetrics().RemoveIf(func(pmetric.ResourceMetrics) bool { return true })
					return errors.New("away")
				}
				assert.LessOrEqual(t, (&pmetric.ProtoMarshaler{}).MetricsSize(md), 3_500_000)
				assert.LessOrEqual(t, md.DataPointCount(), maxPoints)
				for _, rm := range md.ResourceMetrics().All() {
					assert.Equal(t, map[string]any{spans.AttrServiceName: "train", spans.AttrServiceInstanceID: "run"}, rm.Resource().Attributes().AsRaw())
					m := rm.ScopeMetrics().At(0).Metrics().At(0)
					assert.Equal(t, c.counter, m.Type() == pmetric.MetricTypeSum)
					for _, p := range spans.Points(m).All() {
						rank, _ := p.Attributes().Get(spans.AttrRank)
						got[m.Name()+rank.AsString()]++
					}
				}
				return nil
			}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
			require.NoError(t, err)
			mk := func(*Receiver, component.Config) (Parts, error) { return Parts{Scope: "test"}, nil }
			r, err := Prepare(receivertest.NewNopSettings(component.MustNewType("numbers")), nil, mk, nil, next)
			require.NoError(t, err)
			c.run = "run"
			d := r.Deliver(c.gauges)
			for range c.batches - 1 {
				c.first += c.ranks
				require.True(t, d.Join(r.Deliver(c.gauges)))
			}
			for range 100 {
				err = d.Send(t.Context())
				if err == nil {
					break
				}
			}
			require.NoError(t, err)
			assert.Len(t, got, c.batches*c.ranks*len(c.metrics))
			for name, n := range got {
				assert.Equal(t, 1, n, name)
			}
		})
	}
}
