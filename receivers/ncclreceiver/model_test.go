package ncclreceiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// disk is a storage extension, and its only client. Once killed, a disk ignores writes, as of a dead process.
type disk struct {
	component.StartFunc
	component.ShutdownFunc
	mu     sync.Mutex
	values map[string][]byte
	killed bool
}

var diskID = component.MustNewID("disk")

func (d *disk) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{diskID: d}
}

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (d *disk) Get(_ context.Context, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.values[key], nil
}

func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}

func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

func (d *disk) Batch(_ context.Context, ops ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range ops {
		switch {
		case o.Type == storage.Get:
			o.Value = d.values[o.Key]
		case d.killed:
		case o.Type == storage.Set:
			d.values[o.Key] = slices.Clone(o.Value)
		default:
			delete(d.values, o.Key)
		}
	}
	return nil
}

func (d *disk) Close(context.Context) error { return nil }

func (d *disk) kill(now bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.killed = now
}

// follow runs the receiver until stop.
func follow(t *testing.T, cfg *Config, d *disk, take consumer.ConsumeTracesFunc) (stop func()) {
	t.Helper()
	cfg.Storage, cfg.PollInterval = &diskID, 10*time.Millisecond
	next, err := consumer.NewTraces(take)
	require.NoError(t, err)
	set := receivertest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type) // constant: the positions are stored under the ID
	r, err := NewFactory().CreateTraces(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), d))
	return func() { require.NoError(t, r.Shutdown(context.Background())) }
}

var _ component.Host = (*disk)(nil)

// wait waits until a condition is true.
func wait(t *testing.T, what string, so func() bool) {
	t.Helper()
	require.Eventually(t, so, 5*time.Minute, time.Millisecond, "does not come: %s", what)
}

type spanKey struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// history lists the attributes that depend on earlier records, forgotten by a restart.
var history = []string{
	spans.AttrNCCLSequenceGap, spans.AttrNCCLLinkHot, spans.AttrNCCLLinkSlow, spans.AttrNCCLClockReference, spans.AttrNCCLClockOffset,
	spans.AttrNCCLClockUncertainty,
}

// spanTexts writes spans as text.
func spanTexts(td ptrace.Traces) map[spanKey]string {
	out := make(map[spanKey]string)
	for _, rs := range td.ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			if s.Name() == spans.SpanRun || s.Name() == spans.SpanNCCLWatermark {
				continue
			}
			attrs := s.Attributes().AsRaw()
			for _, name := range history {
				delete(attrs, name)
			}
			at := [2]pcommon.Timestamp{s.StartTimestamp(), s.EndTimestamp()}
			if attrs[spans.AttrTimeSource] == string(spans.TimeSynthetic) {
				at = [2]pcommon.Timestamp{} // of the file
			}
			links := 0
			for _, l := range s.Links().All() {
				if trace, id := spans.RunIDs("run"); l.TraceID() == trace && l.SpanID() == id {
					links++
				}
			}
			out[spanKey{s.TraceID(), s.SpanID()}] = fmt.Sprint(s.Name(), s.ParentSpanID(), s.Status().Code(), at, links, attrs, rs.Resource().Attributes().AsRaw())
		}
	}
	return out
}

// taker is a consumer that knows the expected spans.
type taker struct {
	want map[spanKey]string

	mu     sync.Mutex
	refuse func() bool // nil: nothing
	dead   bool        // the process is dead: its output counts for nothing
	tries  int
	came   map[spanKey]bool
	wrong  []string
	begins map[string]map[spanKey]int64 // when collectives begin, by run
	words  map[string][]heardOf         // collectives and watermarks in the order of coming, by run

	messages int
}

func newTaker() *taker {
	return &taker{
		want: make(map[spanKey]string), came: make(map[spanKey]bool), begins: make(map[string]map[spanKey]int64), words: make(map[string][]heardOf),
	}
}

func (k *taker) take(_ context.Context, td ptrace.Traces) error {
	got := spanTexts(td)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tries++
	if k.dead || k.refuse != nil && k.refuse() {
		return errors.New("down")
	}
	defer k.hold(td)
	for id, text := range got {
		k.came[id] = true
		if text != k.want[id] {
			k.wrong = append(k.wrong, fmt.Sprintf("%v\nwant %q\n got %q", id, k.want[id], text))
		}
	}
	return nil
}

// hold checks watermarks against the collectives so far. Each message has one run.
func (k *taker) hold(td ptrace.Traces) {
	k.messages++
	for _, rs := range td.ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			run, m := spans.AttrText(rs.Resource().Attributes(), spans.AttrRunID), s.Attributes().AsRaw()
			if id := (spanKey{s.TraceID(), s.SpanID()}); k.begins[run][id] != 0 {
				k.words[run] = append(k.words[run], heardOf{message: k.messages, id: id})
			}
			if s.Name() != spans.SpanNCCLWatermark {
				continue
			}
			w := wordOf(m)
			k.words[run] = append(k.words[run], heardOf{message: k.messages, word: &w})
			for id, at := range k.begins[run] {
				if at < w.until && !k.came[id] {
					k.wrong = append(k.wrong, fmt.Sprintf("%s says that all until %d is sent; %v at %d is not", run, w.until, id, at))
				}
			}
		}
	}
}

// word is the content of a watermark.
type word struct {
	until, sent, epoch, number int64
	first                      bool
}

func wordOf(m map[string]any) word {
	return word{
		until: m[spans.AttrNCCLWatermarkUntil].(int64), sent: m[spans.AttrNCCLWatermarkSent].(int64), epoch: m[spans.AttrNCCLWatermarkEpoch].(int64),
		number: m[spans.AttrNCCLWatermarkNumber].(int64), first: m[spans.AttrNCCLWatermarkFirst] == true,
	}
}

// heardOf is a collective or a watermark, as received.
type heardOf struct {
	message int
	id      spanKey
	word    *word
}

// midway checks watermarks against the collectives after any of them: a receiver that starts with the run then knows which collectives went to another.
func (k *taker) midway(t *testing.T) {
	t.Helper()
	said := 0
	for run, all := range k.words {
		for from := range all {
			if from > 0 && all[from].message == all[from-1].message {
				continue
			}
			lost, known, midway, last, came := int64(0), false, true, word{}, map[spanKey]bool{}
			for _, h := range all[from:] {
				w := h.word
				if w == nil {
					came[h.id] = true
					continue
				}
				if known && (w.epoch < last.epoch || w.epoch == last.epoch && w.number <= last.number) {
					continue
				}
				switch {
				case !known:
					midway = !w.first || w.number > 1
				case w.first, w.epoch != last.epoch: // of another gateway, which may have sent something before
					midway = true
				}
				known, last = true, *w
				if midway {
					lost, midway = max(lost, w.sent), w.until == 0
				}
			}
			if !known || midway {
				continue
			}
			said++
			for id, at := range k.begins[run] {
				if at > lost && !came[id] {
					require.Fail(t, "a collective went to another, and that is not said", "%s from %d of %d on: %v at %d, said is %d", run, from, len(all), id, at, lost)
				}
			}
		}
	}
	t.Logf("%d times a run was heard of midway", said)
}

func (k *taker) do(what func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	what()
}

func (k *taker) so(what func() bool) func() bool {
	return func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return what()
	}
}

// The files of a job of three ranks, in each format, by name. Every collective is complete.
var jobs = map[string]func(rnd *rand.Rand, n int) map[string]string{
	"inspector v4.0": func(rnd *rand.Rand, n int) map[string]string {
		return perRank("rank-%d.log", rnd, n, func(rank int, ops []operation) string {
			var b strings.Builder
			for i, o := range ops {
				r := record{host: "node", rank: rank, of: ranksOfJob, coll: o.name, sn: o.seq, size: o.size, start: int64(i)*1000 + 1, us: o.us(rank)}
				b.WriteString(r.String() + "\n")
			}
			return b.String()
		})
	},
	"inspector v4.4": func(rnd *rand.Rand, n int) map[string]string {
		return perRank("rank-%d.log", rnd, n, func(rank int, ops []operation) string {
			var b strings.Builder
			for i := 0; i < len(ops); {
				m := min(1+(i*7+rank)%5, len(ops)-i)
				fmt.Fprintf(&b, `{"header":{"id":"0xabc","comm_name":"DP","rank":%d,"n_ranks":%d,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.4",`+
					`"git_rev":"",`+
					`"dump_timestamp_us":%d,"hostname":"node","pid":%d},"dump_stats":{"coll_records":%d,"coll_dropped_total":0,"p2p_records":0,"proxy_records":0}}`+"\n",
					rank, ranksOfJob, epochUS+i*1000, 1000+rank, m)
				for _, o := range ops[i : i+m] {
					fmt.Fprintf(&b, `{"coll_perf":{"coll":"%s","coll_algo":"RING","coll_sn":%d,"coll_msg_size_bytes":%d,"coll_exec_time_us":%d,`+
						`"coll_timing_source":"kernel_gpu"}}`+"\n", o.name, o.seq, o.size, o.us(rank))
				}
				i += m
			}
			return b.String()
		})
	},
	"vccl_json lines": func(rnd *rand.Rand, n int) map[string]string {
		return perRank("rank_%d.json", rnd, n, func(rank int, ops []operation) string {
			var b strings.Builder
			for i, o := range ops {
				b.WriteString(o.message(rank, i, " ") + "\n")
			}
			return b.String()
		})
	},
	// Each rank leaves out records at random. At the end all ranks have the same record, so that nothing waits.
	"vccl_json sampled": func(rnd *rand.Rand, n int) map[string]string {
		share := uint32(1 + rnd.IntN(9))
		return perRank("rank_%d.json", rnd, n, func(rank int, ops []operation) string {
			var b strings.Builder
			for i, o := range ops {
				if uint32(i*ranksOfJob+rank)*2654435761>>8%10 < share {
					b.WriteString(o.message(rank, i, " ") + "\n")
				}
			}
			return b.String() + operation{"Barrier", 0, 7, 9}.message(rank, 1_000_000, " ") + "\n"
		})
	},
	"vccl_json pretty": func(rnd *rand.Rand, n int) map[string]string {
		return perRank("rank_%d.json", rnd, n, func(rank int, ops []operation) string {
			var b strings.Builder
			for i, o := range ops {
				b.WriteString(o.message(rank, i, "\n  ") + "\n")
			}
			return b.String()
		})
	},
	"vccl_csv": func(rnd *rand.Rand, n int) map[string]string {
		return perRank("rank_%d.csv", rnd, n, func(rank int, ops []operation) string {
			var b strings.Builder
			b.WriteString("timestamp,rank,operation,message_size,duration_us,bandwidth_gbps\n")
			for i, o := range ops {
				fmt.Fprintf(&b, "%d.%03d,%d,%s,%d,%d,1\n", 1693958400+i/1000, i%1000, rank, o.name, o.size, o.us(rank))
			}
			return b.String()
		})
	},
	"profiler": func(rnd *rand.Rand, n int) map[string]string {
		return perRank("prof-%d.json", rnd, n, func(rank int, ops []operation) string {
			var b strings.Builder
			b.WriteString("[\n")
			event := func(name, cat, ph string, id, ts int, args string) {
				if args != "" {
					args = `, "args": {` + args + "}"
				}
				fmt.Fprintf(&b, `{"name": "%s", "cat": "%s", "ph": "%s", "id": %d, "pid": %d, "tid": 1, "ts": %d.000%s},`+"\n", name, cat, ph, id, 1000+rank, ts, args)
			}
			for i, o := range ops {
				at := 1000 + i*1000
				clock := int64(epochUS+at) * 1000
				event("Group API", "GROUP_API", "b", i, at, `"groupApiId": 1`)
				event(o.name, "COLL", "b", i, at, fmt.Sprintf(`"SeqNum": %d, "CommHash": 77, "Rank": %d, "Count": %d, "Datatype": "ncclInt8", "nChannels": 1`, o.seq,
					rank, o.size))
				event("KernelCh", "GPU", "b", i, at, fmt.Sprintf(`"Channel": 0, "StartGpuClk": %d, "StopGpuClk": %d`, clock, clock+o.us(rank)*1000))
				event("KernelCh", "GPU", "e", i, at+int(o.us(rank)), "")
				event(o.name, "COLL", "e", i, at+int(o.us(rank)), "")
				event("Group API", "GROUP_API", "e", i, at+900, "")
			}
			return b.String() + "{}]\n"
		})
	},
	"flight_recorder": func(rnd *rand.Rand, n int) map[string]string {
		return perRank("nccl_trace_rank_%d", rnd, n, func(rank int, ops []operation) string {
			entries := make([]map[string]any, len(ops))
			for i, o := range ops {
				at := int64(epochUS+i*1000) * 1000
				entries[i] = map[string]any{
					"record_id": i, "process_group": []string{"0", "default_pg"}, "collective_seq_id": i + 1, "p2p_seq_id": 0, "op_id": i + 1,
					"profiling_name":  "nccl:all_reduce",
					"time_created_ns": at, "input_sizes": [][]int64{{o.size}}, "input_dtypes": []string{"Byte"}, "output_sizes": [][]int64{{o.size}},
					"output_dtypes": []string{"Byte"},
					"state":         "completed", "time_discovered_started_ns": at, "time_discovered_completed_ns": at + o.us(rank)*1000,
					"duration_ms": float64(o.us(rank)) / 1000, "is_p2p": false,
				}
			}
			groups := map[string]any{"0": map[string]any{"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}
			text, err := json.Marshal(map[string]any{"version": "2.5", "pg_config": groups, "entries": entries})
			if err != nil {
				panic(err)
			}
			return string(text) + "\n"
		})
	},
}

const ranksOfJob = 3

type operation struct {
	name string
	seq  int
	size int64
	base int64
}

func (o operation) us(rank int) int64 { return o.base + int64(rank*o.seq%7) }

func (o operation) message(rank, i int, sep string) string {
	return fmt.Sprintf(`{%s"timestamp": %d.%03d,%s"rank": %d,%s"operation": "%s",%s"message_size": %d,%s"duration_us": %d,%s"bandwidth_gbps": 1,`+
		`%s"src_rank": %d,%s"dst_rank": %d}`,
		sep, 1693958400+i/1000, i%1000, sep, rank, sep, o.name, sep, o.size, sep, o.us(rank), sep, sep, rank, sep, (rank+1)%ranksOfJob)
}

func perRank(name string, rnd *rand.Rand, n int, write func(rank int, ops []operation) string) map[string]string {
	names := []string{"AllReduce", "AllGather", "ReduceScatter"}
	next := make(map[string]int)
	ops := make([]operation, n)
	for i := range ops {
		o := names[rnd.IntN(len(names))]
		ops[i] = operation{o, next[o], int64(1) << rnd.IntN(20), int64(10 + rnd.IntN(300))}
		next[o]++
	}
	out := make(map[string]string)
	for rank := range ranksOfJob {
		out[fmt.Sprintf(name, rank)] = write(rank, ops)
	}
	return out
}

// TestModel subjects logs, the consumer and the process to random events in random order: files grow by pieces, the consumer is down, the process is stopped,
// or killed. The spans are those of the whole logs read at once: none comes more often than allowed, none is missing, and each has the same ids, parents and
// attributes.
func TestModel(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1
	}
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 5))
				model(t, rnd, jobs[name](rnd, 100+rnd.IntN(900)), seed)
			})
		}
	}
}

func model(t *testing.T, rnd *rand.Rand, files map[string]string, seed uint64) {
	t.Helper()
	conf := func(dir string) *Config {
		c := config(dir + "/*")
		c.AnomalyDetection = false // repeated lateness depends on earlier records
		if seed%2 == 0 {
			c.MaxInFlightBytes = 64 << 10
		}
		return c
	}
	k := expecting(t, conf, files)
	dir, d := t.TempDir(), &disk{values: make(map[string][]byte)}
	names := slices.Sorted(maps.Keys(files))
	document := strings.HasPrefix(names[0], flightrecorder.Prefixes[0])
	if !document {
		for _, name := range names { // without the number of ranks in a log, collectives wait for the ranks with a file
			grow(t, dir, files, name, 1+rnd.IntN(len(files[name])/4))
		}
	}
	stop := follow(t, conf(dir), d, k.take)
	for len(files) > 0 {
		left := slices.Sorted(maps.Keys(files))
		name := left[rnd.IntN(len(left))]
		n := min(len(files[name]), 1+rnd.IntN(30_000))
		if document {
			n = len(files[name])
		}
		grow(t, dir, files, name, n)
		k.behave(rnd)
		if rnd.IntN(3) > 0 {
			k.getOn(t)
		}
		switch rnd.IntN(4) {
		case 0:
			stop()
			stop = follow(t, conf(dir), d, k.take)
		case 1:
			d.kill(true)
			k.do(func() { k.dead = true })
			stop()
			d.kill(false)
			k.do(func() { k.dead = false })
			stop = follow(t, conf(dir), d, k.take)
		}
	}
	k.do(func() { k.refuse = nil })
	wait(t, "all spans", k.so(func() bool { return len(k.came) >= len(k.want) || len(k.wrong) > 0 }))
	stop()
	require.Empty(t, k.wrong[:min(2, len(k.wrong))])
	require.Len(t, k.came, len(k.want))
}

// expecting makes a consumer that expects the spans of the whole logs read at once.
func expecting(t *testing.T, conf func(dir string) *Config, files map[string]string) *taker {
	t.Helper()
	whole := t.TempDir()
	for name, text := range files {
		filereceivertest.Put(t, whole, name, text)
	}
	k := newTaker()
	for _, td := range read(t, conf(whole)).Traces.AllTraces() {
		for id, text := range spanTexts(td) {
			require.Empty(t, k.want[id], "each span has an id of its own")
			k.want[id] = text
		}
		for _, rs := range td.ResourceSpans().All() {
			run := spans.AttrText(rs.Resource().Attributes(), spans.AttrRunID)
			if k.begins[run] == nil {
				k.begins[run] = make(map[spanKey]int64)
			}
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				if _, root := s.Attributes().Get(spans.AttrNCCLRanks); root {
					k.begins[run][spanKey{s.TraceID(), s.SpanID()}] = int64(s.StartTimestamp())
				}
			}
		}
	}
	return k
}

// grow appends the next n bytes to a file, and forgets a complete file.
func grow(t *testing.T, dir string, files map[string]string, name string, n int) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(files[name][:n])
	require.NoError(t, errors.Join(err, f.Close()))
	files[name] = files[name][n:]
	if files[name] == "" {
		delete(files, name)
	}
}

// behave sets the consumer's behaviour from now on: accept all, nothing, or every third batch.
func (k *taker) behave(rnd *rand.Rand) {
	nth := 0
	refuse := [...]func() bool{nil, func() bool { return true }, func() bool { nth++; return nth%3 != 0 }}[rnd.IntN(3)]
	k.do(func() { k.refuse = refuse })
}

// getOn lets the receiver run until a batch comes, or for some time.
func (k *taker) getOn(t *testing.T) {
	t.Helper()
	before, until := -1, time.Now().Add(20*time.Millisecond)
	wait(t, "a batch, or time passes", k.so(func() bool {
		if before < 0 {
			before = k.tries
		}
		return k.tries > before || time.Now().After(until)
	}))
}
