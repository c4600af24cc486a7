package ncclreceiver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/collectives/partial"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/formats"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/offsets"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/spans"
)

// cluster is a broker with a topic, and the collectors that write to the topic.
type cluster struct {
	log        *zap.Logger // of its gateways; nil: none
	tb         testing.TB
	brokers    []string
	partitions int32
	fake       *kfake.Cluster
	client     *kgo.Client
	sent       int64 // messages
}

func newCluster(tb testing.TB, partitions int32) *cluster {
	tb.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "otlp_nccl"))
	require.NoError(tb, err)
	tb.Cleanup(fake.Close)
	c := &cluster{tb: tb, fake: fake, brokers: fake.ListenAddrs(), partitions: partitions}
	c.client, err = kgo.NewClient(kgo.SeedBrokers(c.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic("otlp_nccl"),
		kgo.ProducerLinger(0))
	require.NoError(tb, err)
	tb.Cleanup(c.client.Close)
	return c
}

// says sends packed records as one message of a collector.
func (c *cluster) says(partition int32, partials ...*partial.Stretch) {
	c.tb.Helper()
	out := spans.NewBatch("scope", "version")
	for _, s := range partials {
		s.Add(out)
	}
	for _, m := range out.Messages() {
		var marshaler ptrace.ProtoMarshaler
		b, err := marshaler.MarshalTraces(m.Traces)
		require.NoError(c.tb, err)
		c.message(partition, b)
	}
}

func (c *cluster) message(partition int32, value []byte) {
	c.tb.Helper()
	c.sent++
	require.NoError(c.tb, c.client.ProduceSync(c.tb.Context(), &kgo.Record{Partition: partition, Value: value}).FirstErr())
}

// gateway is a receiver of the topic.
type gateway struct {
	*kafkaTopic
	tb    testing.TB
	tel   *componenttest.Telemetry
	base  *filereceiver.Receiver
	mu    sync.Mutex
	alive bool
	clock time.Duration // ahead of time

	late   bool            // the next message is the last one, and is under way for long
	flying []ptrace.Traces // this message
}

// start starts a gateway that sends to next.
func (c *cluster) start(next consumer.ConsumeTracesFunc, change func(cfg *Config)) *gateway {
	c.tb.Helper()
	return c.startOn(componenttest.NewNopHost(), next, change)
}

func (c *cluster) startOn(host component.Host, next consumer.ConsumeTracesFunc, change func(cfg *Config)) *gateway {
	c.tb.Helper()
	g := &gateway{tb: c.tb, tel: componenttest.NewTelemetry(), alive: true}
	to, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		g.mu.Lock()
		alive := g.alive
		if alive && g.late {
			own := ptrace.NewTraces()
			td.CopyTo(own)
			alive, g.alive, g.flying = false, false, append(g.flying, own)
		}
		g.mu.Unlock()
		if !alive {
			return context.Canceled
		}
		return next(ctx, td)
	})
	require.NoError(c.tb, err)
	set := receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = g.tel.NewTelemetrySettings()
	if c.log != nil {
		set.Logger = c.log
	}
	g.base, err = filereceiver.Prepare(set, c.config(change), func(base *filereceiver.Receiver, cfg component.Config) (filereceiver.Parts, error) {
		r, err := newReceiver(base, cfg.(*Config))
		require.NoError(c.tb, err)
		g.kafkaTopic, err = newTopic(r, r.cfg.Kafka.Get())
		g.lookEvery, g.settle, g.retry, g.markEvery = 20*time.Millisecond, 200*time.Millisecond, time.Millisecond, time.Millisecond
		g.now = func() time.Time {
			g.mu.Lock()
			defer g.mu.Unlock()
			return time.Now().Add(g.clock)
		}
		return filereceiver.Parts{
			Source: g.kafkaTopic, Redact: r.cfg.Redact, Scope: metadata.ScopeName, Series: 1000, SpanLinks: true, Shutdown: r.tel.Shutdown,
		}, err
	}, to, nil)
	require.NoError(c.tb, err)
	require.NoError(c.tb, g.Start(c.tb.Context(), host))
	return g
}

func (c *cluster) config(change func(cfg *Config)) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.SpanLinks = true
	k := cfg.Kafka.GetOrInsertDefault()
	k.Brokers, k.HeartbeatInterval, k.AutoCommit.Interval, k.MaxFetchWait = c.brokers, 50*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
	if change != nil {
		change(cfg)
	}
	require.NoError(c.tb, cfg.Validate())
	return cfg
}

// stop shuts the gateway down.
func (g *gateway) stop() {
	g.tb.Helper()
	require.NoError(g.tb, g.Shutdown(context.Background()))
	g.accounts()
}

// kill ends the gateway at once: no batch leaves, no offset is committed.
func (g *gateway) kill() {
	g.mu.Lock()
	g.alive = false
	g.mu.Unlock()
	g.end()
	g.loops.Wait()
	g.client.AllowRebalance()
	var ids []int32
	for id, p := range g.partitionsNow() {
		p.cancel()
		ids = append(ids, id)
	}
	g.giveUp(context.Background(), ids, false)
	require.NoError(g.tb, g.Shutdown(context.Background()))
	g.accounts()
}

// metric is the sum of a metric of the gateway's own.
func (g *gateway) metric(name string) (n int64) {
	m, err := g.tel.GetMetric("otelcol_" + name)
	if err != nil {
		return 0
	}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		n += p.Value
	}
	return n
}

// accounts checks that each message read is accounted for, once the gateway is empty.
func (g *gateway) accounts() {
	g.tb.Helper()
	assert.Equal(g.tb, g.metric("trainbridge.nccl.kafka.read"), g.metric("trainbridge.nccl.kafka.messages"))
	require.NoError(g.tb, g.tel.Shutdown(context.Background()))
}

// committed is the committed position of a partition.
func (c *cluster) committed(partition int32) offsets.Position {
	c.tb.Helper()
	all, err := kadm.NewClient(c.client).FetchOffsets(c.tb.Context(), "trainbridge-nccl")
	o, ok := all.Lookup("otlp_nccl", partition)
	if err != nil || !ok { // no such group yet
		return offsets.Position{Begin: -1}
	}
	return offsets.Committed(o.At, o.Metadata)
}

// agent is a collector that has read a log: its packed records.
func agent(tb testing.TB, name, text string, most func() int) (list []*partial.Stretch) {
	tb.Helper()
	f, _, _ := formats.Of([]byte(text[:strings.IndexByte(text, '\n')]))
	parser := f.New(name, time.UTC)
	var w partial.Writer
	left, begun := most(), int64(0)
	cut := func() {
		if w.Len() > 0 {
			s := partialOf(name)
			s.From.Family = f.Tool
			w.Pack(s)
			if len(list) > 0 {
				s.ReadTo = begun
			}
			list = append(list, s)
			require.NoError(tb, partial.Read(s.Records, func(o *op.Op) { begun = max(begun, began(o)) }))
		}
		left = most()
	}
	var out parse.Out
	for line := range strings.Lines(text) {
		out.Reset()
		v, reason := parser.Line([]byte(strings.TrimSuffix(line, "\n")), false, 0, &out)
		require.Equal(tb, parse.Record, v, reason)
		for i := range out.Ops {
			w.Add(&out.Ops[i])
		}
		if left--; left <= 0 {
			cut()
		}
	}
	cut()
	return list
}

func partialOf(name string) *partial.Stretch {
	return &partial.Stretch{From: collectives.From{Run: "run", Path: "/logs/" + name}, Service: "nccl", Host: "node", Comm: "0xabc"}
}

// A gateway sends the same as one receiver that reads all files itself.
func TestGateway(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 19))
	files := jobs["inspector v4.0"](rnd, 200)
	k := expecting(t, func(dir string) *Config { return config(dir + "/*") }, files)
	c := newCluster(t, 2)
	foreign := ptrace.NewTraces()
	foreign.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("step")
	other, err := new(ptrace.ProtoMarshaler).MarshalTraces(foreign)
	require.NoError(t, err)
	c.message(1, other)
	c.message(1, []byte("no traces"))
	broken := partialOf("broken")
	broken.Count, broken.Records = 3, []byte("no records")
	c.says(1, broken)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, s := range agent(t, name, files[name], func() int { return 20 }) {
			c.says(1, s)
		}
	}
	g := c.start(k.take, nil)
	wait(t, "all spans", k.so(func() bool { return len(k.came) >= len(k.want) || len(k.wrong) > 0 }))
	wait(t, "all is committed", func() bool { return c.committed(1).Begin == c.sent })
	wait(t, "a watermark", k.so(func() bool {
		return slices.ContainsFunc(k.words["run"], func(h heardOf) bool { return h.word != nil && h.word.until > 0 })
	}))
	assert.Equal(t, offsets.Position{Begin: c.sent, From: c.sent, Head: c.sent}, c.committed(1))
	assert.EqualValues(t, 0, g.metric("trainbridge.nccl.kafka.pending"))
	assert.Equal(t, c.sent, g.metric("trainbridge.nccl.kafka.read"))
	g.stop()
	require.Empty(t, k.wrong[:min(2, len(k.wrong))])
	require.Len(t, k.came, len(k.want))
}

// Whatever happens to collectors, gateways and whoever takes the spans: all come, each with the same ids and the same content.
func TestGatewayModel(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { newStorm(t, rand.New(rand.NewPCG(seed, 20))).blow() })
	}
}

// storm is a random course of events.
type storm struct {
	*cluster
	t        *testing.T
	rnd      *rand.Rand
	k        *taker
	logs     []*sentLog
	gateways []*gateway
	lookBack int64

	flying []ptrace.Traces // the last messages of gateways that were killed meanwhile
}

// sentLog is a log being sent.
type sentLog struct {
	partition int32
	partials  []*partial.Stretch
	next      int
}

// killSending kills a gateway while a message is under way, perhaps: the message arrives later (land).
func (s *storm) killSending() {
	g := s.leave()
	g.mu.Lock()
	g.late = true
	g.mu.Unlock()
	s.k.getOn(s.t)
	g.kill()
	s.flying = append(s.flying, g.flying...)
}

// land has the messages under way arrive.
func (s *storm) land() {
	for len(s.flying) > 0 && s.k.take(s.t.Context(), s.flying[0]) == nil {
		s.flying = s.flying[1:]
	}
}

func newStorm(t *testing.T, rnd *rand.Rand) *storm {
	t.Helper()
	const partitions = 2
	s := &storm{t: t, rnd: rnd, k: newTaker(), cluster: newCluster(t, partitions)}
	s.lookBack = int64(rnd.IntN(2) * 4096)
	for partition := range int32(partitions) { // a job for each
		files, run := jobs["inspector v4.0"](rnd, 30+rnd.IntN(100)), fmt.Sprintf("run-%d", partition)
		job := expecting(t, func(dir string) *Config {
			cfg := config(dir + "/*")
			cfg.RunID = run
			return cfg
		}, files)
		maps.Copy(s.k.want, job.want)
		maps.Copy(s.k.begins, job.begins)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			l := &sentLog{partition: partition, partials: agent(t, name, files[name], func() int { return 1 + rnd.IntN(12) })}
			for _, s := range l.partials {
				s.From.Run = run
			}
			s.logs = append(s.logs, l)
		}
	}
	return s
}

func (s *storm) blow() {
	for s.begin(); len(s.logs) > 0; {
		switch n := s.rnd.IntN(40); {
		case n == 0 && len(s.gateways) < 3:
			s.begin()
		case n == 1 && len(s.gateways) > 0:
			s.leave().kill()
		case n == 2 && len(s.gateways) > 0:
			s.leave().stop()
		case n == 3:
			s.k.behave(s.rnd)
		case n == 4:
			s.k.getOn(s.t)
		case n == 5 && len(s.gateways) > 0:
			s.killSending()
		case n == 6:
			s.land()
		default:
			s.say(s.rnd.IntN(len(s.logs)))
		}
	}
	s.k.do(func() { s.k.refuse = nil })
	s.land()
	if len(s.gateways) == 0 {
		s.begin()
	}
	wait(s.t, "all spans", s.k.so(func() bool { return len(s.k.came) >= len(s.k.want) || len(s.k.wrong) > 0 }))
	for _, g := range s.gateways {
		g.stop()
	}
	require.Empty(s.t, s.k.wrong[:min(2, len(s.k.wrong))])
	require.Len(s.t, s.k.came, len(s.k.want))
	s.k.midway(s.t)
}

// begin begins another gateway.
func (s *storm) begin() {
	s.gateways = append(s.gateways, s.start(s.k.take, func(cfg *Config) {
		cfg.Kafka.Get().MaxPartitionFetchSize, cfg.Kafka.Get().LookBack = 1<<12, s.lookBack
	}))
}

// leave takes a gateway out.
func (s *storm) leave() *gateway {
	i := s.rnd.IntN(len(s.gateways))
	g := s.gateways[i]
	s.gateways = slices.Delete(s.gateways, i, i+1)
	return g
}

// say sends the next packed records of a log. Where enough is read again after a restart, the collector may die, and send again everything that it does not
// know to have arrived.
func (s *storm) say(which int) {
	l := s.logs[which]
	if s.lookBack > 0 && s.rnd.IntN(20) == 0 {
		l.next -= s.rnd.IntN(l.next + 1)
	}
	s.says(l.partition, l.partials[l.next])
	if l.next++; l.next == len(l.partials) {
		s.logs = slices.Delete(s.logs, which, which+1)
	}
}

// ahead puts the gateway's clock ahead.
func (g *gateway) ahead(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clock += d
}

// ranked is packed records of collectives by one rank; of is the number of ranks (0: unknown).
func ranked(rank, of int, seqs ...int) *partial.Stretch { return rankedIn("0xabc", rank, of, seqs...) }

// rankedIn is ranked of a communicator.
func rankedIn(comm string, rank, of int, seqs ...int) *partial.Stretch {
	var w partial.Writer
	for _, seq := range seqs {
		var o op.Op
		o.Init()
		o.Kind, o.Seq, o.HasSeq, o.Comm = op.AllReduce, uint64(seq), true, []byte(comm)
		o.Rank, o.CommSize, o.Host, o.PID = int32(rank), int32(of), fmt.Appendf(nil, "node-%d", rank), 7
		o.Size, o.Total, o.Duration, o.Waits, o.Time = 4096, 4096, 100_000, true, spans.TimeLogged
		o.Start = 1_781_000_000_000_000_000 + int64(seq)*1_000_000
		o.End = o.Start + o.Duration
		w.Add(&o)
	}
	s := logOf(rank)
	w.Pack(s)
	return s
}

// heartbeatOf is a heartbeat of a rank's log.
func heartbeatOf(rank int) *partial.Stretch {
	s := logOf(rank)
	s.ReadTo = 1
	return s
}

func logOf(rank int) *partial.Stretch {
	s := partialOf(fmt.Sprintf("rank-%d.log", rank))
	s.From.Family, s.Host = "test", fmt.Sprintf("node-%d", rank)
	return s
}

// rootsOf collects the roots.
type rootsOf struct {
	mu    sync.Mutex
	roots map[string]ptrace.Span // by sequence number
	err   func() error
}

func (r *rootsOf) take(ctx context.Context, td ptrace.Traces) error {
	r.mu.Lock()
	fail := r.err
	r.mu.Unlock()
	if fail != nil {
		if err := fail(); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range filereceivertest.Spans([]ptrace.Traces{td}, "AllReduce") {
		if r.roots == nil {
			r.roots = make(map[string]ptrace.Span)
		}
		r.roots[attr(s, spans.AttrNCCLSequence)] = s
	}
	return ctx.Err()
}

func (r *rootsOf) has(n int) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.roots) >= n
	}
}

// A hanging rank differs from a rank whose collector is silent, and a backlog is neither.
func TestGatewayHang(t *testing.T) {
	for name, it := range map[string]struct {
		alive  bool
		reason string
	}{"hangs": {true, spans.NCCLIncompleteTimeout}, "unheard": {false, spans.NCCLIncompleteUnheard}} {
		t.Run(name, func(t *testing.T) {
			c, out := newCluster(t, 1), new(rootsOf)
			g := c.start(out.take, nil)
			c.says(0, ranked(0, 2, 0, 1), ranked(1, 2, 0))
			wait(t, "the whole one", out.has(1))
			g.ahead(4 * time.Minute)
			if it.alive {
				c.says(0, heartbeatOf(1))
				wait(t, "the heartbeat", func() bool { return g.metric("trainbridge.nccl.kafka.read") == c.sent })
			}
			g.ahead(3 * time.Minute)
			wait(t, "the other", out.has(2))
			root := out.roots["1"]
			assert.Equal(t, it.reason, attr(root, spans.AttrIncompleteReason))
			assert.Equal(t, "[1]", attr(root, spans.AttrNCCLRanksMissing))
			if it.alive {
				assert.Equal(t, "true", attr(root, spans.AttrNCCLHang))
				assert.Empty(t, attr(root, spans.AttrNCCLRanksUnheard))
			} else {
				assert.Empty(t, attr(root, spans.AttrNCCLHang))
				assert.Equal(t, "[1]", attr(root, spans.AttrNCCLRanksUnheard))
			}
			g.stop()
		})
	}
}

// Records of a later version, or broken ones, are refused by name. The rest of the message is joined, nobody is accused of a hang, and the watermarks say so.
func TestGatewayUnreadable(t *testing.T) {
	c, out := newCluster(t, 1), new(rootsOf)
	core, logged := observer.New(zap.WarnLevel)
	c.log = zap.New(core)
	var end atomic.Int64
	g := c.start(func(ctx context.Context, td ptrace.Traces) error {
		for _, s := range filereceivertest.Spans([]ptrace.Traces{td}, spans.SpanNCCLWatermark) {
			if v, ok := s.Attributes().Get(spans.AttrNCCLWatermarkUnreadable); ok {
				end.Store(v.Int())
			}
		}
		return out.take(ctx, td)
	}, nil)
	newer := ranked(1, 2, 1)
	newer.Records[0]++
	c.says(0, ranked(0, 2, 0), ranked(1, 2, 0), newer, ranked(0, 2, 1))
	wait(t, "the whole one", out.has(1))
	g.ahead(4 * time.Minute)
	c.says(0, heartbeatOf(1))
	wait(t, "the heartbeat", func() bool { return g.metric("trainbridge.nccl.kafka.read") == c.sent })
	g.ahead(3 * time.Minute)
	wait(t, "the other", out.has(2))
	wait(t, "a watermark", func() bool { return end.Load() == newer.End })
	root := out.roots["1"]
	assert.Equal(t, spans.NCCLIncompleteUnheard, attr(root, spans.AttrIncompleteReason))
	assert.Empty(t, attr(root, spans.AttrNCCLHang))
	assert.Equal(t, "[1]", attr(root, spans.AttrNCCLRanksUnheard))
	newest := ranked(1, 2, 2)
	c.says(0, newest, ranked(0, 2, 2))
	wait(t, "the last", out.has(3))
	g.stop()
	require.Equal(t, 1, logged.Len())
	assert.Contains(t, logged.All()[0].Message, "in a form that this version does not know: update trainbridge here")
}

// A gateway after another sends nothing again that was given up, even if the missing rank comes at last.
func TestGatewayLate(t *testing.T) {
	c, out, roots := newCluster(t, 1), new(rootsOf), atomic.Int64{}
	next := func(ctx context.Context, td ptrace.Traces) error {
		roots.Add(int64(len(filereceivertest.Spans([]ptrace.Traces{td}, "AllReduce"))))
		return out.take(ctx, td)
	}
	g := c.start(next, nil)
	c.says(0, ranked(0, 2, 0, 1), ranked(1, 2, 0))
	wait(t, "the whole one", out.has(1))
	g.ahead(7 * time.Minute)
	wait(t, "the other", out.has(2))
	wait(t, "all is committed", func() bool { return c.committed(0).Begin == c.sent })
	g.stop()
	c.says(0, ranked(0, 2, 2))
	g = c.start(next, nil)
	c.says(0, ranked(1, 2, 1, 2))
	wait(t, "the last one", out.has(3))
	wait(t, "all is committed", func() bool { return c.committed(0).Begin == c.sent })
	assert.EqualValues(t, 3, roots.Load())
	assert.Equal(t, "[1]", attr(out.roots["1"], spans.AttrNCCLRanksMissing))
	assert.Equal(t, "2", attr(out.roots["2"], spans.AttrNCCLRanks))
	g.stop()
}

// While the output is not accepted nothing is given up, however long: the records of the other ranks may be there already.
func TestGatewayStuck(t *testing.T) {
	c, out := newCluster(t, 1), new(rootsOf)
	var tries atomic.Int64
	out.err = func() error { tries.Add(1); return errors.New("down") }
	g := c.start(out.take, func(cfg *Config) { cfg.Kafka.Get().MaxPartitionFetchSize = 100 })
	c.says(0, ranked(0, 2, 0, 1, 2), ranked(1, 2, 0))
	wait(t, "a try", func() bool { return tries.Load() > 3 })
	for seq := range 20 {
		c.says(0, ranked(0, 2, 3+seq))
	}
	g.ahead(time.Hour)
	for seq := range 22 {
		c.says(0, ranked(1, 2, 1+seq))
	}
	wait(t, "the partition is paused", func() bool { return len(g.client.PauseFetchPartitions(nil)) == 1 })
	assert.Equal(t, offsets.Position{Begin: -1}, c.committed(0))
	out.mu.Lock()
	out.err = nil
	out.mu.Unlock()
	wait(t, "all", out.has(23))
	for _, root := range out.roots {
		assert.Empty(t, attr(root, spans.AttrIncompleteReason))
	}
	wait(t, "all is committed", func() bool { return c.committed(0).Begin == c.sent })
	g.stop()
}

// Without the number of ranks in the log, the first records are not taken as all.
func TestGatewayUnsized(t *testing.T) {
	c, out := newCluster(t, 1), new(rootsOf)
	g := c.start(out.take, nil)
	c.says(0, ranked(0, 0, 0, 1))
	wait(t, "it is read", func() bool { return g.metric("trainbridge.nccl.kafka.read") == c.sent })
	c.says(0, ranked(1, 0, 0, 1))
	g.ahead(time.Minute)
	c.says(0, heartbeatOf(0))
	wait(t, "both", out.has(2))
	assert.Equal(t, "2", attr(out.roots["0"], spans.AttrNCCLRanks))
	assert.Equal(t, "2", attr(out.roots["1"], spans.AttrNCCLRanks))
	g.stop()
}

// Data refused by the next component is dropped and counted; the rest is sent.
func TestGatewayRefused(t *testing.T) {
	c, out := newCluster(t, 1), new(rootsOf)
	next := func(ctx context.Context, td ptrace.Traces) error {
		for _, s := range filereceivertest.Spans([]ptrace.Traces{td}, "AllReduce") {
			if attr(s, spans.AttrNCCLSequence) == "1" {
				return consumererror.NewPermanent(status.Error(codes.InvalidArgument, "wrong"))
			}
		}
		return out.take(ctx, td)
	}
	g := c.start(next, nil)
	c.says(0, ranked(0, 2, 0, 1, 2), ranked(1, 2, 0, 1, 2))
	wait(t, "all is committed", func() bool { return c.committed(0).Begin == c.sent })
	assert.Len(t, out.roots, 2)
	assert.EqualValues(t, 1, g.metric("trainbridge.nccl.kafka.refused"))
	g.stop()
}

// Messages that the brokers deleted unread are counted, and reading goes on.
func TestGatewayLost(t *testing.T) {
	c, out := newCluster(t, 1), new(rootsOf)
	g := c.start(out.take, nil)
	c.says(0, ranked(0, 1, 0))
	wait(t, "all is committed", func() bool { return c.committed(0).Begin == 1 })
	g.stop()
	for seq := range 5 {
		c.says(0, ranked(0, 1, 1+seq))
	}
	_, err := kadm.NewClient(c.client).DeleteRecords(t.Context(), kadm.Offsets{"otlp_nccl": {0: {Topic: "otlp_nccl", Partition: 0, At: 4}}})
	require.NoError(t, err)
	g = c.start(out.take, func(cfg *Config) { cfg.Kafka.Get().InitialOffset = "latest" })
	wait(t, "the rest", out.has(3))
	assert.EqualValues(t, 3, g.metric("trainbridge.nccl.kafka.lost"))
	assert.Zero(t, g.metric("trainbridge.nccl.kafka.lag"))
	g.stop()
}

// The output is split by runs: an exporter that keys messages by their run gets each run separately.
func TestGatewayRuns(t *testing.T) {
	c, out, runs := newCluster(t, 1), new(rootsOf), make(map[string]bool)
	g := c.start(func(ctx context.Context, td ptrace.Traces) error {
		key := client.FromContext(ctx).Metadata.Get(spans.AttrRunID)
		for _, rs := range td.ResourceSpans().All() {
			assert.Equal(t, []string{spans.AttrText(rs.Resource().Attributes(), spans.AttrRunID)}, key)
		}
		runs[key[0]] = true
		return out.take(ctx, td)
	}, nil)
	var all []*partial.Stretch
	for seq := range 3 {
		s := ranked(0, 1, seq)
		s.From.Run = fmt.Sprint("run-", seq)
		all = append(all, s)
	}
	c.says(0, all...)
	wait(t, "all", out.has(3))
	g.stop()
	assert.Len(t, runs, 3)
}
