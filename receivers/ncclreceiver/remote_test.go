package ncclreceiver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/collectives/partial"
	"github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// elsewhere is the configuration of a receiver that reads the same logs without joining.
func elsewhere(cfg *Config) *Config {
	c := *cfg
	c.JoinConfig = collectives.DefaultJoinConfig()
	c.HangTimeout = cfg.HangTimeout
	c.Join = joinRemote
	return &c
}

// partials are the packed records and heartbeats of a message, in order.
func partials(tb testing.TB, td ptrace.Traces) (out []partial.Stretch) {
	tb.Helper()
	for _, rs := range td.ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			st, ok, err := partial.FromSpan(rs.Resource().Attributes(), s)
			assert.True(tb, ok, "nothing but packed records is sent")
			require.NoError(tb, err)
			out = append(out, st)
		}
	}
	return out
}

// rejoined reads logs with join: remote, and joins the result as local does.
func rejoined(tb testing.TB, cfg *Config) *filereceivertest.Result {
	tb.Helper()
	r := read(tb, elsewhere(cfg))
	var all []partial.Stretch
	for _, td := range r.Traces.AllTraces() {
		all = append(all, partials(tb, td)...)
	}
	r.Traces.Reset()
	opened := make(map[string]spans.RunSpan)
	j := collectives.New[int](collectives.Settings{
		JoinConfig: cfg.JoinConfig, Ranks: cfg.Ranks, HideHosts: cfg.Redact.HashHosts, Series: cfg.CardinalityLimit,
		OpenRun: func(file string, start int64, source spans.TimeSource) {
			run := cfg.Opens(file, start, source)
			if _, isKnown := opened[run.Run]; !isKnown {
				opened[run.Run] = run
			}
		},
	})
	var batch []*collectives.Collective
	records := 0
	take := func(c *collectives.Collective, came []int) {
		batch = append(batch, c)
		records += len(came)
	}
	inputs := make(map[string]*collectives.Input[int])
	for _, s := range all { // a collective of unknown size waits for all logs
		if inputs[s.From.Path] == nil {
			inputs[s.From.Path] = j.Input(s.From, take)
		}
	}
	added := 0
	for i, s := range all {
		in := inputs[s.From.Path]
		require.NoError(tb, partial.Read(s.Records, func(o *op.Op) {
			assert.Equal(tb, s.Comm, spans.Name(o.Comm))
			in.Add(o, []int{i}, int64(i))
			added++
		}))
		in.EndWait()
	}
	for _, in := range inputs {
		in.Expire(math.MaxInt64)
	}
	require.NoError(tb, j.Leftover())
	assert.Equal(tb, added, records)
	points := j.Learned(nil, batch)
	out := spans.NewBatch(metadata.ScopeName, "latest")
	out.KeepLinks(cfg.SpanLinks)
	for _, run := range opened {
		out.AddRun(run)
	}
	collectives.AddSpans(out, cfg.ServiceName, batch, func(int) {})
	for _, m := range out.Messages() {
		require.NoError(tb, r.Traces.ConsumeTraces(tb.Context(), m.Traces))
	}
	require.NoError(tb, r.Metrics.ConsumeMetrics(tb.Context(), collectives.Metrics(points, cfg.ServiceName, metadata.ScopeName, "latest")))
	return r
}

// Remote joining gives the same result as local joining: the same golden files. The number of a link's points depends on batches.
func TestRemoteJoined(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			cfg := config(fixture(t, name))
			r := rejoined(t, cfg)
			base := filepath.Join("testdata", name)
			filereceivertest.GoldenText(t, base+".tree.txt", tree(r))
			same(t, texts(t, read(t, cfg)), texts(t, r))
			if name != "vccl_json" && name != "vccl_csv" {
				r.Golden(t, base)
			}
		})
	}
}

// The spans and their bytes: other versions must read them.
func TestRemoteGolden(t *testing.T) {
	for _, name := range []string{"inspector-v4.4", "flight_recorder", "vccl_json", "vccl_ids"} {
		t.Run(name, func(t *testing.T) {
			r := read(t, elsewhere(config(fixture(t, name))))
			for _, td := range r.Traces.AllTraces() {
				for _, rs := range td.ResourceSpans().All() {
					rs.Resource().Attributes().PutStr(spans.AttrHostName, "host")
					for _, s := range rs.ScopeSpans().At(0).Spans().All() {
						s.SetSpanID(pcommon.SpanID{}) // depends on the path, a new one each time
					}
				}
			}
			r.Golden(t, filepath.Join("testdata", "remote-"+name))
		})
	}
}

func TestRemoteRealLogs(t *testing.T) {
	for _, dir := range []string{"vccl_flow", "nccl_inspector", "nccl_example_profiler", "pytorch_flight_recorder"} {
		list, err := filepath.Glob("../../../shared/logs/" + dir + "/*")
		require.NoError(t, err)
		for _, file := range list {
			t.Run(filepath.Base(file), func(t *testing.T) {
				cfg := config(filereceivertest.Copy(t, file))
				local, remote := read(t, cfg), rejoined(t, cfg)
				assert.Equal(t, local.Counts, remote.Counts)
				assert.Equal(t, tree(local), tree(remote))
				same(t, texts(t, local), texts(t, remote))
			})
		}
	}
}

// Whole jobs of several ranks, in each format.
func TestRemoteJobs(t *testing.T) {
	for name, job := range jobs {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 19))
			dir := t.TempDir()
			for name, text := range job(rnd, 300) {
				filereceivertest.Put(t, dir, name, text)
			}
			cfg := config(dir + "/*")
			cfg.AnomalyDetection = false // depends on the order of reading
			same(t, texts(t, read(t, cfg)), texts(t, rejoined(t, cfg)))
		})
	}
}

// Excluded records are not sent.
func TestRemoteSettings(t *testing.T) {
	glob := logs(t, twoOperations()...)
	for reason, change := range map[string]func(*Config){
		reasonOperation: func(c *Config) { c.Operations = []string{"all_reduce"} },
		reasonRank:      func(c *Config) { c.Ranks = []int32{0, 3} },
		reasonSize:      func(c *Config) { c.MinSize = 4097 },
	} {
		t.Run(reason, func(t *testing.T) {
			cfg := config(glob)
			change(cfg)
			r := read(t, elsewhere(cfg))
			assert.Equal(t, map[string]int64{reason: 80}, r.Counts.Ignored)
			sent := 0
			for _, td := range r.Traces.AllTraces() {
				for _, s := range partials(t, td) {
					sent += s.Count
				}
			}
			assert.Equal(t, 80, sent)
			same(t, texts(t, read(t, cfg)), texts(t, rejoined(t, cfg)))
		})
	}
}

// Records of many communicators, and large ones: no span is too large, and nothing is lost.
func TestRemoteCut(t *testing.T) {
	var records []record
	for i := range 2*maxLogComms + 10 {
		records = append(records, record{comm: fmt.Sprintf("0x%x", i%(maxLogComms+5)+1), host: "n", of: 1, sn: i, size: 4096, start: int64(i)*1000 + 1, us: 100})
	}
	for i := range 9000 {
		records = append(records, record{host: "n", of: 1, sn: i, size: 4096, start: int64(i)*1000 + 1, us: 100})
	}
	r := read(t, elsewhere(config(logs(t, records...))))
	count, most := 0, 0
	for _, td := range r.Traces.AllTraces() {
		for _, s := range partials(t, td) {
			count += s.Count
			most = max(most, len(s.Records))
			assert.Equal(t, "nccl_inspector", s.From.Family)
			assert.Equal(t, "run", s.From.Run)
		}
	}
	assert.Equal(t, len(records), count)
	assert.LessOrEqual(t, most, maxPacked)
}

// A refused span takes its lines with it, and no others.
func TestRemoteRefused(t *testing.T) {
	var records []record
	for i := range 60 {
		records = append(records, record{comm: [...]string{"0xa", "0xb", "0xc"}[i%3], host: "n", of: 1, sn: i, size: 4096, start: int64(i)*1000 + 1, us: 100})
	}
	next, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		for _, s := range partials(t, td) {
			if s.Comm == "0xb" {
				return consumererror.NewPermanent(status.Error(codes.InvalidArgument, "bad"))
			}
		}
		return nil
	})
	require.NoError(t, err)
	counts, err := filereceiver.ReadAll(t.Context(), receivertest.NewNopSettings(metadata.Type), elsewhere(config(logs(t, records...))), newParts, nil, next, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 20, counts.Refused)
	assert.EqualValues(t, 40, counts.Sent)
}

// A refused event takes its own line with it, and no record: its place is not the number of a packed span.
func TestRemoteEventRefused(t *testing.T) {
	path := filereceivertest.Write(t, "n-pid1.log",
		record{host: "n", of: 1, sn: 1, size: 4096, start: 1000, us: 100}.String(),
		"torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL",
		record{host: "n", of: 1, sn: 2, size: 4096, start: 2000, us: 100}.String())
	events := 0
	next, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		if len(filereceivertest.Spans([]ptrace.Traces{td}, spans.SpanEvent)) == 0 {
			return nil
		}
		events++
		return consumererror.NewPermanent(status.Error(codes.InvalidArgument, "bad"))
	})
	require.NoError(t, err)
	counts, err := filereceiver.ReadAll(t.Context(), receivertest.NewNopSettings(metadata.Type), elsewhere(config(path)), newParts, nil, next, nil)
	require.NoError(t, err)
	assert.Positive(t, events)
	assert.EqualValues(t, 2, counts.Sent)
	assert.Zero(t, counts.Refused)
}

// A silent log has heartbeats as often as needed, and no longer than anyone may wait for its records.
func TestHeartbeat(t *testing.T) {
	l := newLive(t, func(c *Config) { c.Join = joinRemote })
	got := func() (beats []partial.Stretch, records int) {
		l.do(func() {
			for _, td := range l.got.Traces.AllTraces() {
				for _, s := range partials(t, td) {
					if records += s.Count; s.Count == 0 {
						beats = append(beats, s)
					}
				}
			}
		})
		return beats, records
	}
	for rank := range 2 {
		l.say(record{host: "n", rank: rank, of: 3, sn: 1, size: 4096, start: 1000, us: 100})
	}
	wait(t, "two records", func() bool { _, n := got(); return n == 2 })
	start := time.Now()
	beats, _ := got()
	assert.Empty(t, beats)
	l.ahead.Add(int64(heartbeat))
	wait(t, "two heartbeats", func() bool { beats, _ := got(); return len(beats) == 2 })
	beats, _ = got()
	for _, b := range beats {
		assert.Equal(t, "0xabc", b.Comm)
		assert.Equal(t, "run", b.From.Run)
		assert.NotEmpty(t, b.Host)
		assert.GreaterOrEqual(t, b.ReadTo, start.Add(heartbeat-time.Second).UnixNano())
	}
	assert.NotEqual(t, beats[0].From.Path, beats[1].From.Path)

	// While a record is not accepted, its log has no heartbeats.
	l.do(func() { l.down = true })
	l.say(record{host: "n", rank: 0, of: 3, sn: 2, size: 4096, start: 2000, us: 100})
	l.read()
	l.ahead.Add(int64(heartbeat))
	asked := l.asked.Load()
	wait(t, "looks", func() bool { return l.asked.Load() > asked+20 })
	l.do(func() { l.down = false })
	wait(t, "the record", func() bool { _, n := got(); return n == 3 })
	wait(t, "the other log's heartbeat", func() bool { beats, _ := got(); return len(beats) >= 3 })

	l.ahead.Add(int64(2 * heartbeatFor))
	asked = l.asked.Load()
	wait(t, "looks", func() bool { return l.asked.Load() > asked+20 })
	beats, _ = got()
	n := len(beats)
	l.ahead.Add(int64(heartbeat))
	asked = l.asked.Load()
	wait(t, "looks", func() bool { return l.asked.Load() > asked+20 })
	beats, _ = got()
	assert.Len(t, beats, n)
}

// Each batch of a log says up to which time its operations were in the batches before.
func TestReadTo(t *testing.T) {
	l := newLive(t, func(c *Config) { c.Join = joinRemote })
	var got []partial.Stretch
	for i := range 3 {
		l.say(record{host: "n", of: 1, sn: i, size: 4096, start: int64(i) * 1000, us: 100})
		wait(t, "the record", func() bool {
			got = nil
			l.do(func() {
				for _, td := range l.got.Traces.AllTraces() {
					got = append(got, partials(t, td)...)
				}
			})
			return len(got) == i+1
		})
	}
	before := int64(0)
	for _, s := range got {
		assert.Equal(t, before, s.ReadTo)
		require.NoError(t, partial.Read(s.Records, func(o *op.Op) { before = began(o) }))
	}
}

// place is a stream without a file.
type place struct{}

func (place) Path() string              { return "/logs/rank-0.log" }
func (place) Lend(uint64) tail.Lent     { return tail.Lent{} }
func (place) Share(tail.Lent, int)      {}
func (place) Take(tail.Lent)            {}
func (place) Place() tail.Place         { return 0 }
func (place) Ahead(func(_ []byte) bool) {}

// After a restart an idle log has heartbeats as before, for all communicators with records in the last hour.
func TestHeartbeatAfterRestart(t *testing.T) {
	cfg := elsewhere(config("/logs/*"))
	base, err := filereceiver.Prepare(receivertest.NewNopSettings(metadata.Type), cfg, newParts, nil, nil)
	require.NoError(t, err)
	r, err := newReceiver(base, cfg)
	require.NoError(t, err)
	defer r.tel.Shutdown()
	h := newHandler(r, place{})
	at := time.Date(2026, 6, 12, 12, 0, 0, 0, time.UTC)
	for i, comm := range []string{"old", "0xa", "a\n\x00\" b"} {
		rec := record{comm: strings.NewReplacer("\n", `\n`, "\x00", `\u0000`, `"`, `\"`).Replace(comm), of: 1, sn: 1, size: 4096, start: 1000, us: 100}
		v, reason := h.Line(&tail.Line{Text: []byte(rec.String()), Observed: at.Add(time.Duration(i) * heartbeatFor * 2 / 3)})
		require.Equal(t, tail.Record, v, reason)
	}
	at = at.Add(heartbeatFor * 4 / 3)
	saved := h.Save()
	h = newHandler(r, place{})
	h.Restore(saved)
	assert.Equal(t, "nccl_inspector", h.format.Name)
	h.Idle(at.Add(heartbeat / 2))
	var ids []string
	for _, s := range h.batch.packed {
		ids = append(ids, s.Comm)
		assert.Zero(t, s.Count)
	}
	assert.ElementsMatch(t, []string{"0xa", spans.Name("a\n\x00\" b")}, ids)
	h.Idle(at.Add(heartbeat))
	assert.Len(t, h.batch.packed, 2)

	h = newHandler(r, place{})
	h.Restore([]byte("nccl_inspector\nnonsense\n1 \"\n \"x\"\x00"))
	assert.Empty(t, h.remote.comms)
}

// topic is the accepted output: of each log and communicator the records, in order of acceptance.
type topic struct {
	mu      sync.Mutex
	refuse  func() bool
	dead    bool
	records map[string][]string
	tries   int
}

func (k *topic) take(tb testing.TB, td ptrace.Traces) error {
	tb.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tries++
	if k.dead || k.refuse != nil && k.refuse() {
		return errors.New("down")
	}
	for _, s := range partials(tb, td) {
		if s.Count == 0 {
			continue // after a restart
		}
		key := filepath.Base(s.From.Path) + " " + s.Comm
		assert.NoError(tb, partial.Read(s.Records, func(o *op.Op) {
			if o.Time == spans.TimeSynthetic {
				o.End = 0 // of the file
			}
			text := fmt.Sprint(o.Kind, o.Seq, o.Rank, o.Start, o.End, o.Duration, o.Size, len(o.Details), o.Source, o.Destination)
			k.records[key] = append(k.records[key], text)
		}))
	}
	return nil
}

func (k *topic) do(what func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	what()
}

// However the process is stopped or killed, and the next component away: no record is lost, and none is made up.
func TestRemoteModel(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(7, 19))
			remoteModel(t, rnd, jobs[name](rnd, 200+rnd.IntN(300)))
		})
	}
}

func remoteModel(t *testing.T, rnd *rand.Rand, files map[string]string) {
	t.Helper()
	whole := t.TempDir()
	for name, text := range files {
		filereceivertest.Put(t, whole, name, text)
	}
	want, k := &topic{records: make(map[string][]string)}, &topic{records: make(map[string][]string)}
	for _, td := range read(t, elsewhere(config(whole+"/*"))).Traces.AllTraces() {
		require.NoError(t, want.take(t, td))
	}
	dir, d := t.TempDir(), &disk{values: make(map[string][]byte)}
	start := func() (stop func()) {
		return follow(t, elsewhere(config(dir+"/*")), d, func(_ context.Context, td ptrace.Traces) error { return k.take(t, td) })
	}
	document := strings.HasPrefix(slices.Sorted(maps.Keys(files))[0], flightrecorder.Prefixes[0])
	stop := start()
	for len(files) > 0 {
		left := slices.Sorted(maps.Keys(files))
		name := left[rnd.IntN(len(left))]
		n := min(len(files[name]), 1+rnd.IntN(30_000))
		if document {
			n = len(files[name])
		}
		grow(t, dir, files, name, n)
		nth := 0
		refuse := [...]func() bool{nil, func() bool { return true }, func() bool { nth++; return nth%3 != 0 }}[rnd.IntN(3)]
		k.do(func() { k.refuse = refuse })
		time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
		switch rnd.IntN(4) {
		case 0:
			stop()
			stop = start()
		case 1:
			d.kill(true)
			k.do(func() { k.dead = true })
			stop()
			d.kill(false)
			k.do(func() { k.dead = false })
			stop = start()
		}
	}
	k.do(func() { k.refuse = nil })
	wait(t, "all records", func() (all bool) {
		k.do(func() {
			all = true
			for key, records := range want.records {
				all = all && len(distinct(k.records[key])) >= len(distinct(records))
			}
		})
		return all
	})
	stop()
	for key, records := range want.records {
		assert.Equal(t, distinct(records), distinct(k.records[key]), key)
	}
	assert.Len(t, k.records, len(want.records))
}

func distinct(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// A broken pipeline delays, and does not mix: the records of a log come in their order.
func TestRemoteOrder(t *testing.T) {
	var lines []string
	for sn := range 20_000 {
		lines = append(lines, record{host: "n", of: 1, sn: sn, size: 4096, start: int64(sn)*1000 + 1, us: 100}.String())
	}
	path := filereceivertest.Write(t, "rank-0.log", lines...)
	cfg := elsewhere(config(path))
	cfg.MaxInFlightBytes = 1 << 20
	var mu sync.Mutex
	var came []uint64
	tries := 0
	stop := follow(t, cfg, &disk{values: make(map[string][]byte)}, func(_ context.Context, td ptrace.Traces) error {
		mu.Lock()
		defer mu.Unlock()
		if tries++; tries%2 == 1 {
			return errors.New("down")
		}
		for _, s := range partials(t, td) {
			assert.NoError(t, partial.Read(s.Records, func(o *op.Op) { came = append(came, o.Seq) }))
		}
		return nil
	})
	defer stop()
	wait(t, "all records", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(came) >= len(lines)
	})
	mu.Lock()
	defer mu.Unlock()
	assert.Greater(t, tries, 4)
	assert.True(t, slices.IsSorted(came))
	assert.Len(t, came, len(lines))
}
