package bridge

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/trainbridge/trainbridge/spans"
)

// StartFunction starts the span of a TransferQueue function, like tq_trace's span of FUNCTION_START and FUNCTION_END. At its end it gets the time shares of its
// stages: tq.get.utilization and so on.
//
//	ctx, s := b.StartFunction(ctx, "generate_sequences", attribute.Int(spans.AttrTQBatchSize, 32))
//	defer s.End()
func (b *Bridge) StartFunction(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, *Span) {
	name = spans.Name(name)
	ctx, s := b.begin(ctx, kindFunction, name, nil)
	s.name = name
	if s.start.IsZero() {
		return ctx, s
	}
	s.stages = new(stages)
	own := append(
		make([]attribute.KeyValue, 0, 6), is[kindFunction], timeLogged, attribute.String(spans.AttrTQStage, spans.StageFunction),
		attribute.String(spans.AttrTQFunction, name),
	)
	s.set(attrs, b.outermost(ctx, own)...)
	return ctx, s
}

// outermost adds the attributes of an outermost TransferQueue span.
func (b *Bridge) outermost(ctx context.Context, own []attribute.KeyValue) []attribute.KeyValue {
	own = append(own, attribute.Int(spans.AttrProcessPID, b.pid))
	if j := joinOf(ctx); j != nil && j.text != "" {
		own = append(own, attribute.String(spans.AttrTQTraceID, spans.Text(j.text)))
	}
	return own
}

// StartGet starts a GET stage, directly below its function. Stages may overlap, and may run in goroutines of their own.
func (b *Bridge) StartGet(ctx context.Context, attrs ...attribute.KeyValue) (context.Context, *Span) {
	return b.tqStage(ctx, spans.TQGet, spans.SpanTQGet, attrs)
}

// StartCompute starts a COMPUTE stage.
func (b *Bridge) StartCompute(ctx context.Context, attrs ...attribute.KeyValue) (context.Context, *Span) {
	return b.tqStage(ctx, spans.TQCompute, spans.SpanTQCompute, attrs)
}

// StartPut starts a PUT stage.
func (b *Bridge) StartPut(ctx context.Context, attrs ...attribute.KeyValue) (context.Context, *Span) {
	return b.tqStage(ctx, spans.TQPut, spans.SpanTQPut, attrs)
}

// StartClientGet starts a client operation that gets data, below its stage. See [Span.DataSize].
func (b *Bridge) StartClientGet(ctx context.Context, attrs ...attribute.KeyValue) (context.Context, *Span) {
	return b.tqClient(ctx, spans.StageClientGet, spans.SpanTQClientGet, attrs)
}

// StartClientPut starts a client operation that puts data.
func (b *Bridge) StartClientPut(ctx context.Context, attrs ...attribute.KeyValue) (context.Context, *Span) {
	return b.tqClient(ctx, spans.StageClientPut, spans.SpanTQClientPut, attrs)
}

// tqStage starts a stage and, where its function is known, notes the stage in the function's shares of time.
func (b *Bridge) tqStage(ctx context.Context, stage spans.TQStage, name string, attrs []attribute.KeyValue) (context.Context, *Span) {
	ctx, s := b.begin(ctx, kindStage, name, nil)
	fn := s.function()
	if fn != nil && fn.stages != nil && !s.start.IsZero() {
		s.stages, s.stage = fn.stages, fn.stages.begin(stage, s.start.UnixNano())
	}
	b.tq(ctx, s, fn, stage.String(), attrs)
	return ctx, s
}

// tqClient starts a client operation of TransferQueue.
func (b *Bridge) tqClient(ctx context.Context, stage, name string, attrs []attribute.KeyValue) (context.Context, *Span) {
	ctx, s := b.begin(ctx, kindClient, name, nil, clientSpan...)
	b.tq(ctx, s, s.function(), stage, attrs, peerTransferQueue)
	return ctx, s
}

var peerTransferQueue = attribute.String(spans.AttrPeerService, spans.PeerTransferQueue)

// function returns the function of a stage or client operation.
func (s *Span) function() *Span { return s.up.innermost(kindFunction, s.SpanContext().TraceID()) }

// tq sets the attributes of a stage or client operation. Without a function around, they say of which process and batch the span is.
func (b *Bridge) tq(ctx context.Context, s, fn *Span, stage string, attrs []attribute.KeyValue, more ...attribute.KeyValue) {
	if s.start.IsZero() {
		return
	}
	own := append(append(make([]attribute.KeyValue, 0, 7), is[s.kind], timeLogged, attribute.String(spans.AttrTQStage, stage)), more...)
	if fn != nil {
		own = append(own, attribute.String(spans.AttrTQFunction, fn.name))
	} else {
		own = b.outermost(ctx, own)
	}
	s.set(attrs, own...)
}

// maxStages bounds the stages that a function remembers, to 1.5 MiB. A function with more stages, for instance without an end, gets no shares.
const maxStages = 1 << 16

// stages are the direct stages of a function, 24 bytes each: the SDK may send a function without its stages, so the shares are measured here.
type stages struct {
	mu     sync.Mutex
	all    []stageTime
	room   [4]stageTime // for the first four of all: most functions have no more
	closed bool         // the function has ended, or has too many
}

// stageTime is a stage. Times are ns since the epoch.
type stageTime struct {
	start, end int64 // end 0: still running
	stage      spans.TQStage
}

// begin records the start of a stage and returns the stage's index for end. Of a closed list the index means nothing, and end ignores it.
func (st *stages) begin(stage spans.TQStage, start int64) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.all) == maxStages {
		st.all, st.closed = nil, true
	}
	if st.closed {
		return 0
	}
	if st.all == nil {
		st.all = st.room[:0]
	}
	st.all = append(st.all, stageTime{start: start, stage: stage})
	return len(st.all) - 1
}

// end records the end of the stage with index i.
func (st *stages) end(i int, end int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.closed {
		st.all[i].end = end
	}
}

// shareNames are the attributes that train_perf computes from a whole trace (trainperfprocessor/internal/tq), in the order of shares.
var shareNames = [...]string{
	spans.AttrTQGetUtilization, spans.AttrTQComputeUtilization, spans.AttrTQPutUtilization, spans.AttrTQOverheadUtilization, spans.AttrTQUnattributedUtilization,
}

// shares computes the shares of a function's time, given in ns since the epoch, and closes the list: later beginnings and ends of stages do not count. Get,
// compute and put are sums, which may exceed 1 where stages overlap; unattributed is the time without any stage. Overhead is get and put.
// A running stage counts up to the function's end. ok is false without stages, and for a function without length.
func (st *stages) shares(start, end int64) (shares [len(shareNames)]float64, ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	all := st.all
	st.closed = true
	if len(all) == 0 || end <= start {
		return shares, false
	}
	slices.SortFunc(all, func(a, b stageTime) int { return cmp.Compare(a.start, b.start) })
	var sum [3]int64
	covered, at := int64(0), start // ns with any stage; the end of the time looked at so far
	for i := range all {
		t := &all[i]
		if t.end == 0 {
			t.end = max(t.start, end)
		}
		sum[t.stage] += t.end - t.start
		if from, to := max(t.start, at), min(t.end, end); to > from {
			covered += to - from
			at = to
		}
	}
	get, compute, put := sum[spans.TQGet], sum[spans.TQCompute], sum[spans.TQPut]
	for i, ns := range [...]int64{get, compute, put, get + put, end - start - covered} {
		shares[i] = float64(ns) / float64(end-start)
	}
	return shares, true
}
