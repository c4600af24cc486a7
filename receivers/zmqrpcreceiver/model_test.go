package zmqrpcreceiver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// host has one extension.
type host struct {
	id  component.ID
	ext component.Component
}

func (h host) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{h.id: h.ext}
}

// follow runs the receiver, with its positions in a directory, until stop.
func follow(t *testing.T, cfg *Config, dir string, take consumer.ConsumeTracesFunc) (stop func()) {
	t.Helper()
	storage := filestorage.NewFactory()
	storageCfg := storage.CreateDefaultConfig().(*filestorage.Config)
	storageCfg.Directory = dir
	ext, err := storage.Create(t.Context(), extensiontest.NewNopSettings(storage.Type()), storageCfg)
	require.NoError(t, err)
	require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
	id := component.NewID(storage.Type())
	cfg.Storage, cfg.PollInterval = &id, 10*time.Millisecond
	next, err := consumer.NewTraces(take)
	require.NoError(t, err)
	set := receivertest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type) // constant: the positions are stored under the ID
	r, err := NewFactory().CreateTraces(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), host{id, ext}))
	return func() {
		require.NoError(t, r.Shutdown(context.Background()))
		require.NoError(t, ext.Shutdown(context.Background()))
	}
}

// wait waits until a condition is true.
func wait(t *testing.T, what string, so func() bool) {
	t.Helper()
	require.Eventually(t, so, 5*time.Minute, time.Millisecond, "does not come: %s", what)
}

type spanKey struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// spanTexts writes the spans as text, with their times only if times is set: times depend on when rows are read.
func spanTexts(td ptrace.Traces, times bool) map[spanKey]string {
	out := make(map[spanKey]string)
	for _, rs := range td.ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			if s.Name() == spans.SpanRun {
				continue
			}
			at := ""
			if times {
				at = when(s)
			} else if s.Kind() == ptrace.SpanKindClient {
				at = strconv.FormatInt(int64(s.EndTimestamp()-s.StartTimestamp()), 10)
			}
			links := make([]spanKey, 0, 3)
			for _, l := range s.Links().All() {
				links = append(links, spanKey{l.TraceID(), l.SpanID()})
			}
			attrs := s.Attributes().AsRaw()
			delete(attrs, spans.AttrTimeSource)
			out[spanKey{s.TraceID(), s.SpanID()}] = fmt.Sprint(s.Name(), s.ParentSpanID(), at, links, attrs)
		}
	}
	return out
}

// taker is a consumer that knows the expected spans.
type taker struct {
	want  map[spanKey]string
	times bool

	mu     sync.Mutex
	refuse func(td map[spanKey]string) bool // nil: nothing
	tries  int
	came   map[spanKey]bool
	wrong  []string
}

// newTaker makes a taker that expects the spans of the log read whole, without interruption.
func newTaker(t *testing.T, cfg *Config, times bool) *taker {
	t.Helper()
	k := &taker{want: make(map[spanKey]string), times: times, came: make(map[spanKey]bool)}
	for _, td := range read(t, cfg).Traces.AllTraces() {
		for id, text := range spanTexts(td, times) {
			require.Empty(t, k.want[id], "each span has an id of its own")
			k.want[id] = text
		}
	}
	return k
}

func (k *taker) take(_ context.Context, td ptrace.Traces) error {
	got := spanTexts(td, k.times)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tries++
	if k.refuse != nil && k.refuse(got) {
		return errors.New("down")
	}
	for id, text := range got {
		k.came[id] = true
		if text != k.want[id] {
			k.wrong = append(k.wrong, fmt.Sprintf("want %q\n got %q", k.want[id], text))
		}
	}
	return nil
}

func (k *taker) set(refuse func(map[spanKey]string) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refuse = refuse
}

// so locks around a condition, for wait.
func (k *taker) so(what func() bool) func() bool {
	return func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return what()
	}
}

func (k *taker) check(t *testing.T) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	require.Empty(t, k.wrong[:min(3, len(k.wrong))])
	require.Len(t, k.came, len(k.want))
}

// randomLog is a log of n rows, with nothing open at its end.
func randomLog(rnd *rand.Rand, n int) string {
	var b strings.Builder
	b.WriteString("Log - Transport: IPC\n====\n" + header + " Sent(KB) Recv(KB)\n====\n")
	id := 0
	row := func(method string) {
		id++
		fmt.Fprintf(&b, "%-5d %-20s %-15.3f %-12.3f %-12.3f %-17.3f %-12.3f %-12.2f %-12.2f\n", id, method,
			rnd.Float64(), rnd.Float64(), rnd.Float64(), rnd.Float64(), 4+rnd.Float64(), rnd.Float64(), rnd.Float64())
	}
	for range n {
		switch k := rnd.IntN(200); {
		case k < 4:
			row("Embedding")
		case k < 8:
			row("LMHead")
		case k == 8:
			id = 0
			row("A")
		case k == 9:
			id = 0
			row("Init")
		case k == 10:
			b.WriteString("====\nSUMMARY\n====\nTotal RPC Calls: 3\nAverage Total Time: 4.2 ms\n====\n")
		default:
			row("A")
		}
	}
	row("Embedding")
	row("LMHead")
	return b.String()
}

// TestModel subjects a log, the consumer and the process to random events in random order. The spans are those of the whole log read at once.
func TestModel(t *testing.T) {
	seeds := uint64(10)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			log := randomLog(rnd, 1000+rnd.IntN(3000))
			conf := func(path string) *Config {
				c := config(path, path+".*")
				c.MaxCalls = 300
				if seed%2 == 0 {
					c.MaxInFlightBytes = 64 << 10
				}
				return c
			}
			k := newTaker(t, conf(filereceivertest.Put(t, t.TempDir(), "zmq.log", log)), false)
			path, positions := filepath.Join(t.TempDir(), "zmq.log"), t.TempDir()
			stop := follow(t, conf(path), positions, k.take)
			files := 0
			for len(log) > 0 {
				n := min(len(log), 1+rnd.IntN(40_000))
				rotate := rnd.IntN(3) == 0
				if rotate {
					n += strings.IndexByte(log[n-1:], '\n') // up to a line's end
				}
				f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				require.NoError(t, err)
				_, err = f.WriteString(log[:n])
				require.NoError(t, errors.Join(err, f.Close()))
				log = log[n:]
				k.set(someRefusal(rnd))
				// Give the receiver time, or not.
				if rnd.IntN(3) > 0 {
					before, until := -1, time.Now().Add(20*time.Millisecond)
					wait(t, "a batch, or time passes", k.so(func() bool {
						if before < 0 {
							before = k.tries
						}
						return k.tries > before || time.Now().After(until)
					}))
				}
				if rnd.IntN(3) == 0 {
					stop()
					stop = follow(t, conf(path), positions, k.take)
				}
				if rotate && len(log) > 0 {
					files++
					rename(t, path, files)
				}
			}
			k.set(nil)
			wait(t, "all spans", k.so(func() bool { return len(k.came) >= len(k.want) || len(k.wrong) > 0 }))
			stop()
			k.check(t)
		})
	}
}

// someRefusal refuses none of the batches, all of them, or some.
func someRefusal(rnd *rand.Rand) func(map[spanKey]string) bool {
	switch rnd.IntN(3) {
	case 0:
		return nil
	case 1:
		return func(map[spanKey]string) bool { return true }
	}
	some := byte(rnd.IntN(256))
	return func(td map[spanKey]string) bool {
		least := spanKey{span: pcommon.SpanID{255}}
		for id := range td {
			if string(id.span[:]) < string(least.span[:]) {
				least = id
			}
		}
		return least.span[7] < some
	}
}

// rename rotates a log: path.1 is the newest of the n old files.
func rename(t *testing.T, path string, n int) {
	t.Helper()
	for i := n - 1; i > 0; i-- {
		require.NoError(t, os.Rename(fmt.Sprintf("%s.%d", path, i), fmt.Sprintf("%s.%d", path, i+1)))
	}
	require.NoError(t, os.Rename(path, path+".1"))
}

// A restart with batches in flight: all spans come as without the restart, with the same times. Rows after the restart have their times of arrival.
func TestRestartInFlight(t *testing.T) {
	log := randomLog(rand.New(rand.NewPCG(1, 4)), 6000) // three batches; two of them may be in flight
	for name, tc := range map[string]struct {
		refuse func(td map[spanKey]string, first spanKey) bool
		until  func(k *taker) bool
	}{
		"none is accepted": {
			func(map[spanKey]string, spanKey) bool { return true },
			func(k *taker) bool { return k.tries >= 4 },
		},
		"only the first is accepted": {
			func(td map[spanKey]string, first spanKey) bool { return td[first] == "" },
			func(k *taker) bool { return len(k.came) > 0 && k.tries >= 4 },
		},
		"all but the first are accepted": {
			func(td map[spanKey]string, first spanKey) bool { return td[first] != "" },
			func(k *taker) bool { return len(k.came) > len(k.want)/2 },
		},
	} {
		if testing.Short() && name != "only the first is accepted" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			path, positions := filereceivertest.Put(t, t.TempDir(), "zmq.log", log), t.TempDir()
			k := newTaker(t, config(path), true)
			roots := read(t, config(path)).All("")
			first := spanKey{roots[1].TraceID(), roots[1].SpanID()} // roots[0] is the run
			k.refuse = func(td map[spanKey]string) bool { return tc.refuse(td, first) }
			stop := follow(t, config(path), positions, k.take)
			wait(t, "batches", k.so(func() bool { return tc.until(k) }))
			stop()
			require.Less(t, len(k.came), len(k.want))
			require.Empty(t, k.wrong)

			var arrived map[string]ptrace.Span // calls added to the log later, by method
			stop = follow(t, config(path), positions, k.until(&arrived))
			defer stop()
			k.set(nil)
			wait(t, "all spans", k.so(func() bool { return len(k.came) >= len(k.want) || len(k.wrong) > 0 }))
			k.check(t)
			k.so(func() bool { arrived = make(map[string]ptrace.Span); return true })()
			// The first may come before the receiver saw the end of the log.
			for _, method := range []string{"First", "Second"} {
				before := time.Now()
				appendTo(t, path, "10001 Embedding 0 0 0 0 0 1 1\n10002 "+method+" 0 0 0 0 0 1 1\n10003 LMHead 0 0 0 0 0 1 1\n")
				var s ptrace.Span
				wait(t, method, k.so(func() (ok bool) { s, ok = arrived[method]; return ok }))
				if method == "Second" {
					assert.Equal(t, string(spans.TimeObserved), attr(s, spans.AttrTimeSource))
					assert.WithinRange(t, s.EndTimestamp().AsTime(), before, time.Now())
				}
			}
		})
	}
}

// until takes batches until calls have to arrive, and then keeps the calls by method.
func (k *taker) until(arrived *map[string]ptrace.Span) func(context.Context, ptrace.Traces) error {
	return func(ctx context.Context, td ptrace.Traces) error {
		k.mu.Lock()
		for _, s := range filereceivertest.Spans([]ptrace.Traces{td}, "") {
			if *arrived != nil && s.Kind() == ptrace.SpanKindClient {
				(*arrived)[s.Name()] = s
			}
		}
		late := *arrived != nil
		k.mu.Unlock()
		if late {
			return nil
		}
		return k.take(ctx, td)
	}
}

// While the next component is down, reading pauses. A pass whose rest is unread does not time out meanwhile.
func TestPauseCutsNoPass(t *testing.T) {
	const passes = 40
	log := wideLog(passes)
	first := strings.Index(log, "\n") + 1 // the first row comes alone
	path := filereceivertest.Put(t, t.TempDir(), "zmq.log", "ID Method Total(ms)\n"+log[:first])
	cfg := config(path)
	cfg.MaxInFlightBytes, cfg.PollInterval = 64<<10, 10*time.Millisecond
	var mu sync.Mutex
	down, tried := true, false
	ends := make(map[string]int)
	next, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		mu.Lock()
		defer mu.Unlock()
		tried = true
		if down {
			return errors.New("down")
		}
		for _, s := range filereceivertest.Spans([]ptrace.Traces{td}, "") {
			if end := attr(s, spans.AttrZMQPassEnd); end != "" {
				ends[end]++
			}
		}
		return nil
	})
	require.NoError(t, err)
	var ahead, asked atomic.Int64 // of the clock
	tl := startTail(t, cfg, next, func() time.Time { asked.Add(1); return time.Now().Add(time.Duration(ahead.Load())) })
	wait(t, "the first row", func() bool { return tl.Counts().Records == 1 })
	appendTo(t, path, log[first:])
	so := func(what func() bool) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return what() }
	}
	wait(t, "a batch", so(func() bool { return tried }))
	looks := func() {
		before := asked.Load()
		wait(t, "looks at the file", func() bool { return asked.Load() > before+50 })
	}
	looks()
	read := tl.Counts().Records
	require.NotZero(t, read%5, "reading paused within a pass")
	ahead.Store(int64(6 * cfg.PendingTimeout))
	looks()
	require.Equal(t, read, tl.Counts().Records)
	so(func() bool { down = false; return true })()
	wait(t, "all passes", so(func() bool {
		n := 0
		for _, of := range ends {
			n += of
		}
		return n >= passes
	}))
	assert.Equal(t, map[string]int{spans.PassEndMethod: passes}, ends)
}

// wideLog has passes of five rows, wide enough that a few fill the in-flight limit.
func wideLog(passes int) string {
	var b strings.Builder
	for i := range passes {
		for j, method := range []string{"Embedding", "A", "A", "A", "LMHead"} {
			fmt.Fprintf(&b, "%d %s 1%s\n", 5*i+j+1, method, strings.Repeat(" ", 2500))
		}
	}
	return b.String()
}

// startTail follows the logs of a configuration, by a clock of the test's, until the test ends.
func startTail(t *testing.T, cfg *Config, next consumer.Traces, clock func() time.Time) *tail.Tailer {
	t.Helper()
	var parts filereceiver.Parts
	set := receivertest.NewNopSettings(metadata.Type)
	_, err := filereceiver.Prepare(set, cfg, func(r *filereceiver.Receiver, c component.Config) (_ filereceiver.Parts, err error) {
		parts, err = newParts(r, c)
		return parts, err
	}, next, nil)
	require.NoError(t, err)
	tl, err := tail.New(parts.Tail, tail.Settings{
		ID: component.NewID(metadata.Type), Kind: component.KindReceiver, Telemetry: componenttest.NewNopTelemetrySettings(),
		Clock: clock,
	}, parts.NewHandler)
	require.NoError(t, err)
	require.NoError(t, tl.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, tl.Shutdown(context.Background())); parts.Shutdown() })
	return tl
}

// Reading that begins at the end of a log knows the columns of the header above.
func TestStartAtEnd(t *testing.T) {
	for name, tc := range map[string]struct{ above, transport, comma string }{
		"CSV with a mark at its beginning": {"\xef\xbb\xbfID,Method,Total(ms)\n1,A,1\n", "", ","},
		"two logs in a file":               {"Log - Transport: IPC\nID Total(ms) Method\n1 5 A\nLog - Transport: TCP\nID Method Total(ms)\n1 A 5\n", "TCP", " "},
	} {
		t.Run(name, func(t *testing.T) {
			path := filereceivertest.Put(t, t.TempDir(), "zmq.log", tc.above)
			cfg := config(path)
			cfg.StartAt = tail.StartAtEnd
			got := make(chan ptrace.Traces, 1000)
			stop := follow(t, cfg, t.TempDir(), func(_ context.Context, td ptrace.Traces) error { got <- td; return nil })
			defer stop()
			id := 1
			// Rows written before the receiver's first look are above the end too.
			wait(t, "a pass", func() bool {
				id += 2
				appendTo(t, path, strings.ReplaceAll(fmt.Sprintf("%d Embedding 7\n%d LMHead 8\n", id, id+1), " ", tc.comma))
				return len(got) > 0
			})
			ms := make(map[string]float64)
			for _, s := range filereceivertest.Spans([]ptrace.Traces{<-got}, "") {
				ms[s.Name()] = float64(s.EndTimestamp()-s.StartTimestamp()) / 1e6
				if s.Name() == spans.SpanRPCPass {
					assert.Equal(t, tc.transport, attr(s, spans.AttrZMQTransport))
				}
			}
			assert.Equal(t, map[string]float64{spans.SpanRun: 1, spans.SpanRPCPass: 15, "Embedding": 7, "LMHead": 8}, ms)
		})
	}
}
