//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // as the peer sends
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trainbridge/trainbridge/internal/porttest"
)

// receiveLimit is the largest message: the default of gRPC, and so of Jaeger, Tempo and the collector.
const receiveLimit = 4 << 20

// item is a received span or log line.
type item struct {
	key     string // of a span, see spanKey, empty for a span of no line; of a log line, its text
	trace   pcommon.TraceID
	id      identity
	content *content // of a span
}

// identity is the part of a span that must never change when sent again.
type identity struct {
	trace  pcommon.TraceID
	span   pcommon.SpanID
	parent pcommon.SpanID
}

// oneIn picks every n-th record, always the same records. Each record has a trace of its own.
func (it *item) oneIn(n uint32) bool {
	h := fnv.New32a()
	if it.trace.IsEmpty() {
		_, _ = h.Write([]byte(it.key))
	} else {
		_, _ = h.Write(it.trace[:])
	}
	return h.Sum32()%n == 0
}

// behaviour is the sink's treatment of a request: the items accepted or refused, the reported number of rejections, and the error.
type behaviour func(ctx context.Context, k *otlpSink, items []item) (rejected int, err error)

// otlpSink is an OTLP server that remembers its accepted and its finally refused items.
type otlpSink struct {
	addr   string
	mu     sync.Mutex
	how    behaviour
	server *grpc.Server // nil: connections are refused

	accepted map[string]identity
	contents map[spanID]*content        // of all spans, also of no line
	changes  []changed                  // spans that came again with different content
	refused  map[string]bool            // keys
	traces   map[string]pcommon.TraceID // of refused keys
	cut      map[pcommon.TraceID]bool   // traces with a refused span: a call without a stage has different shares
	roots    map[pcommon.TraceID]string // keys of collectives
	seconds  []string                   // keys that came again with another identity
	copies   int                        // how many keys came again with the same identity

	// process is the name of the running collector, sent in a header; the next fields are about answers to this process only.
	process string
	// final are the spans refused with their whole request, or by number, and not accepted since.
	final    map[identity]bool
	byNumber bool
}

// processHeader is the header with a collector's name: requests of a killed collector may be answered while the next runs.
const processHeader = "torture-process"

func startOTLPSink(tb testing.TB) *otlpSink {
	tb.Helper()
	k := &otlpSink{
		addr: freeAddr(tb), how: accept, accepted: make(map[string]identity), contents: make(map[spanID]*content), refused: make(map[string]bool),
		cut: make(map[pcommon.TraceID]bool), final: make(map[identity]bool),
		traces: make(map[string]pcommon.TraceID), roots: make(map[pcommon.TraceID]string),
	}
	require.NoError(tb, k.up())
	tb.Cleanup(k.down)
	return k
}

// down closes the port and every connection.
func (k *otlpSink) down() {
	k.mu.Lock()
	server := k.server
	k.server = nil
	k.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}

// up opens the same port again.
func (k *otlpSink) up() error {
	l, err := porttest.Listen(k.addr)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(receiveLimit), grpc.WaitForHandlers(true))
	ptraceotlp.RegisterGRPCServer(server, &traceSink{otlpSink: k})
	plogotlp.RegisterGRPCServer(server, &logSink{otlpSink: k})
	k.mu.Lock()
	k.server = server
	k.mu.Unlock()
	go func() { _ = server.Serve(l) }()
	return nil
}

func (k *otlpSink) set(how behaviour) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.how = how
}

// begin sets the name of the sending process.
func (k *otlpSink) begin(process string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.process, k.byNumber = process, false
	clear(k.final)
}

// current says whether a request is of the running process.
func (k *otlpSink) current(ctx context.Context) bool {
	return strings.Join(metadata.ValueFromIncomingContext(ctx, processHeader), "") == k.process
}

func (k *otlpSink) answer(ctx context.Context, items []item) (int, error) {
	k.mu.Lock()
	how := k.how
	k.mu.Unlock()
	return how(ctx, k, items)
}

func (k *otlpSink) accept(ctx context.Context, items []item) {
	k.mu.Lock()
	defer k.mu.Unlock()
	current := k.current(ctx)
	for i := range items {
		it := &items[i]
		key := it.key
		if current {
			delete(k.final, it.id)
		}
		k.compare(it)
		if key == "" {
			continue
		}
		k.meet(it)
		if rank, ok := strings.CutPrefix(key, "rank "); ok {
			key = it.trace.String() + " rank " + rank
		}
		switch was, ok := k.accepted[key]; {
		case !ok:
			k.accepted[key] = it.id
		case was == it.id:
			k.copies++
		default:
			k.seconds = append(k.seconds, fmt.Sprintf("%s: %v and %v", key, was, it.id))
		}
	}
}

// compare compares a span with the earlier span of its id. A log line of the peer has no id.
func (k *otlpSink) compare(it *item) {
	if it.content == nil {
		return
	}
	id := spanID{it.id.trace, it.id.span}
	switch was, ok := k.contents[id]; {
	case !ok:
		k.contents[id] = it.content
	case was.sum != it.content.sum && !k.cut[it.trace]:
		k.changes = append(k.changes, changed{id, was, it.content})
	}
}

// meet notes the trace of a collective, by which its ranks are known.
func (k *otlpSink) meet(it *item) {
	if strings.HasPrefix(it.key, "nccl ") {
		k.roots[it.trace] = it.key
	}
}

// refuse notes an item refused for its content. A final refusal makes the loss certain for the collector.
func (k *otlpSink) refuse(ctx context.Context, final bool, it *item) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut[it.trace] = true
	if k.meet(it); it.key != "" {
		key := it.key
		if strings.HasPrefix(key, "rank ") { // the rank's collective may have been accepted before
			key = k.roots[it.trace] + " " + key
		}
		k.refused[key], k.traces[key] = true, it.trace
	}
	if final && k.current(ctx) {
		k.final[it.id] = true
	}
}

// refusedFor says whether a record was refused for its content.
func (k *otlpSink) refusedFor(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refused[key]
}

// refusals are the keys of records with a refused span, to be counted by the process, and whether some were refused by number only.
func (k *otlpSink) refusals() (final map[string]bool, byNumber bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	records := make(map[pcommon.TraceID]bool) // each record has a trace of its own
	for id := range k.final {
		records[id.trace] = true
	}
	final = make(map[string]bool)
	for key, trace := range k.traces {
		final[key] = records[trace]
	}
	return final, k.byNumber
}

// has says whether a key was accepted. A rank's key has the number of the collective, known by its trace.
func (k *otlpSink) has(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if root, rank, ok := strings.Cut(key, " rank "); ok && strings.HasPrefix(key, "nccl ") {
		key = k.accepted[root].trace.String() + " rank " + rank
	}
	_, ok := k.accepted[key]
	return ok
}

// progress is a number that grows with each accepted item.
func (k *otlpSink) progress() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.accepted) + k.copies
}

type traceSink struct {
	ptraceotlp.UnimplementedGRPCServer
	*otlpSink
}

// Export takes spans.
func (k *traceSink) Export(ctx context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	var items []item
	for _, rs := range req.Traces().ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				items = append(items, item{
					key: spanKey(rs.Resource().Attributes(), s), trace: s.TraceID(), id: identity{s.TraceID(), s.SpanID(), s.ParentSpanID()},
					content: contentOf(rs.Resource().Attributes(), ss.Scope(), s),
				})
			}
		}
	}
	rejected, err := k.answer(ctx, items)
	resp := ptraceotlp.NewExportResponse()
	if rejected > 0 {
		resp.PartialSuccess().SetRejectedSpans(int64(rejected))
		resp.PartialSuccess().SetErrorMessage("spans too old")
	}
	return resp, err
}

type logSink struct {
	plogotlp.UnimplementedGRPCServer
	*otlpSink
}

// Export takes the peer's log lines.
func (k *logSink) Export(ctx context.Context, req plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	var items []item
	for _, rl := range req.Logs().ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				items = append(items, item{key: strings.TrimLeft(r.Body().Str(), "\x00")})
			}
		}
	}
	rejected, err := k.answer(ctx, items)
	resp := plogotlp.NewExportResponse()
	if rejected > 0 {
		resp.PartialSuccess().SetRejectedLogRecords(int64(rejected))
	}
	return resp, err
}

func accept(ctx context.Context, k *otlpSink, items []item) (int, error) {
	k.accept(ctx, items)
	return 0, nil
}

// failing answers with a code, with or without a retry delay.
func failing(code codes.Code, retry time.Duration) behaviour {
	st := status.New(code, "torture")
	if retry > 0 {
		with, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
		if err != nil {
			panic(err) // cannot happen: the details are a message of our own
		}
		st = with
	}
	return func(context.Context, *otlpSink, []item) (int, error) { return 0, st.Err() }
}

// poison refuses each request with certain records, like a backend with an id that it cannot store.
func poison(ctx context.Context, k *otlpSink, items []item) (int, error) {
	bad := false
	for i := range items {
		if items[i].oneIn(8) {
			k.refuse(ctx, len(items) == 1, &items[i])
			bad = true
		}
	}
	if bad {
		return 0, status.Error(codes.InvalidArgument, "a span is not valid")
	}
	k.accept(ctx, items)
	return 0, nil
}

// partial takes some records and rejects the others.
func partial(ctx context.Context, k *otlpSink, items []item) (rejected int, err error) {
	var good []item
	for i := range items {
		if items[i].key != "" && items[i].oneIn(4) {
			k.refuse(ctx, true, &items[i])
			rejected++
		} else {
			good = append(good, items[i])
		}
	}
	k.accept(ctx, good)
	if rejected > 0 {
		k.mu.Lock()
		k.byNumber = k.byNumber || k.current(ctx)
		k.mu.Unlock()
	}
	return rejected, nil
}

// half takes the first half and reports failure.
func half(ctx context.Context, k *otlpSink, items []item) (int, error) {
	k.accept(ctx, items[:len(items)/2])
	return 0, status.Error(codes.Unavailable, "disk full")
}

// slow answers after a delay.
func slow(took time.Duration) behaviour {
	return func(ctx context.Context, k *otlpSink, items []item) (int, error) {
		select {
		case <-time.After(took):
			k.accept(ctx, items)
			return 0, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// hang never answers, with or without accepting the items.
func hang(taken bool) behaviour {
	return func(ctx context.Context, k *otlpSink, items []item) (int, error) {
		if taken {
			k.accept(ctx, items)
		}
		<-ctx.Done()
		return 0, ctx.Err()
	}
}

// answer is the sink's answer to items under a behaviour.
func (s *sequence) answer(how behaviour, items ...item) error {
	s.sink.set(how)
	_, err := s.sink.answer(s.Context(), items)
	return err
}

// Foundation of the campaign: the sink notices items that are lost, repeated, or under another id.
func TestTortureSink(t *testing.T) {
	s := newSequence(t, "", 1, newTally())
	r := in(0, "train_log", []string{"line 1"}, []string{"jsonl 1"})
	one, other := item{
		key: "jsonl 1", trace: pcommon.TraceID{1}, id: identity{trace: pcommon.TraceID{1}, span: pcommon.SpanID{1}},
	}, item{key: "jsonl 1", trace: pcommon.TraceID{1}, id: identity{trace: pcommon.TraceID{1}, span: pcommon.SpanID{2}}}
	require.Error(t, s.answer(failing(codes.Internal, 0), one))
	require.Error(t, s.answer(half, one))
	assert.Equal(t, 1, s.lost(&r))
	require.NoError(t, s.answer(accept, one))
	assert.Zero(t, s.lost(&r))
	require.NoError(t, s.answer(accept, one))
	assert.Equal(t, 1, s.sink.copies)
	assert.Empty(t, s.sink.seconds)
	require.NoError(t, s.answer(accept, other))
	assert.Len(t, s.sink.seconds, 1)
}

// A rank belongs to the collective of its trace.
func TestTortureSinkRanks(t *testing.T) {
	s := newSequence(t, "", 1, newTally())
	collective := ncclRecord(s.rng, 0, 7)
	root := item{key: "nccl 7", trace: pcommon.TraceID{7}, id: identity{trace: pcommon.TraceID{7}}}
	rank := func(trace byte, rank string) item {
		return item{key: "rank " + rank, trace: pcommon.TraceID{trace}, id: identity{trace: pcommon.TraceID{trace}}}
	}
	require.NoError(t, s.answer(accept, root, rank(7, "0"), rank(8, "1")))
	assert.Equal(t, 2, s.lost(&collective))
	require.NoError(t, s.answer(accept, rank(7, "1")))
	assert.Zero(t, s.lost(&collective))
}

// A record refused for its content need not arrive; its neighbours must.
func TestTortureSinkRefusal(t *testing.T) {
	s := newSequence(t, "", 1, newTally())
	var bad, good item
	for i := byte(1); bad.key == "" || good.key == ""; i++ {
		it := item{key: fmt.Sprintf("jsonl %d", 100+int(i)), trace: pcommon.TraceID{i}, id: identity{trace: pcommon.TraceID{i}}}
		if it.oneIn(8) {
			bad = it
		} else {
			good = it
		}
	}
	require.Error(t, s.answer(poison, bad, good))
	badOne, goodOne := in(0, "train_log", []string{"bad"}, []string{bad.key}), in(0, "train_log", []string{"good"}, []string{good.key})
	assert.Zero(t, s.lost(&badOne))
	assert.Equal(t, 1, s.lost(&goodOne))
	require.NoError(t, s.answer(poison, good))
	assert.Zero(t, s.lost(&goodOne))

	// The collector must count records refused alone, and not accepted later.
	s.records = []record{badOne, goodOne}
	mustCount := func(lines int64) {
		t.Helper()
		want, byNumber := s.refusedLines()
		assert.Equal(t, lines, want["train_log"])
		assert.False(t, byNumber)
	}
	mustCount(0)
	require.Error(t, s.answer(poison, bad))
	mustCount(1)
	require.NoError(t, s.answer(accept, bad))
	mustCount(0)
	require.Error(t, s.answer(poison, bad))
	s.sink.begin("another process")
	require.Error(t, s.answer(poison, bad))
	mustCount(0)
}
