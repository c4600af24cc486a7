package nccl

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/collectives/partial"
	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/gentest"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

func partialsOptions(t *testing.T, layout string, change func(o *PartialsOptions)) PartialsOptions {
	t.Helper()
	o := DefaultPartialsOptions()
	o.Layout, o.GPUs, o.TP, o.PP, o.Duration, o.Interval = layout, 48, 8, 2, 3*time.Second, 500*time.Millisecond
	o.Start, o.Truth = time.Date(2026, 2, 11, 8, 40, 0, 0, time.UTC), filepath.Join(t.TempDir(), "truth.json")
	o.SlowRank, o.SlowFrom = 11, 10
	if change != nil {
		change(&o)
	}
	return o
}

// sent is the messages of a run, and its truth.
func sent(t *testing.T, o PartialsOptions) (all []message, truth *gentest.Truth[PartialsRun, Collective]) {
	t.Helper()
	run, err := generatePartials(t.Context(), o, logfile.RealClock, func() (func(message) error, func() error, error) {
		return func(m message) error { all = append(all, m); return nil }, func() error { return nil }, nil
	})
	require.NoError(t, err)
	truth, err = gentest.ReadTruth[PartialsRun, Collective](o.Truth)
	require.NoError(t, err)
	require.Equal(t, run, truth.Run)
	return all, truth
}

// which identifies a collective; Send and Recv count by stage.
type which struct {
	communicator, operation string
	sequence                int64
}

// joined is the output of a joiner for messages: the roots.
func joined(t *testing.T, messages []message) (roots map[which]pcommon.Map, alone map[which]int) {
	t.Helper()
	j := collectives.New[int](collectives.Settings{
		JoinConfig: collectives.DefaultJoinConfig(), Remote: true, Series: 1000,
	})
	var batch []*collectives.Collective
	inputs := make(map[string]*collectives.Input[int])
	for i, m := range messages {
		td, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(m.value)
		require.NoError(t, err)
		for _, rs := range td.ResourceSpans().All() {
			for _, span := range rs.ScopeSpans().At(0).Spans().All() {
				s, ok, err := partial.FromSpan(rs.Resource().Attributes(), span)
				require.NoError(t, err)
				require.True(t, ok)
				trace := span.TraceID()
				assert.Equal(t, trace.String(), string(m.key))
				in := inputs[s.From.Path]
				if in == nil {
					in = j.Input(s.From, func(c *collectives.Collective, _ []int) { batch = append(batch, c) })
					inputs[s.From.Path] = in
				}
				require.NoError(t, partial.Read(s.Records, func(o *op.Op) { assert.True(t, in.Add(o, []int{i}, int64(i))) }))
			}
		}
	}
	for _, in := range inputs {
		in.Expire(math.MaxInt64)
	}
	require.NoError(t, j.Leftover())
	j.Learned(nil, batch)
	out := spans.NewBatch("", "")
	collectives.AddSpans(out, "nccl", batch, func(int) {})
	roots, alone = make(map[which]pcommon.Map), make(map[which]int)
	for _, m := range out.Messages() {
		for _, span := range gentest.Spans([]ptrace.Traces{m.Traces}) {
			a := span.Attributes()
			if _, is := a.Get(spans.AttrNCCLRanks); !is {
				continue
			}
			sequence, _ := a.Get(spans.AttrNCCLSequence)
			w := which{spans.AttrText(a, spans.AttrNCCLCommID), spans.AttrText(a, spans.AttrNCCLOperation), sequence.Int()}
			if w.operation == "Send" || w.operation == "Recv" {
				alone[w]++
				continue
			}
			assert.NotContains(t, roots, w, "one root of each")
			roots[w] = a
		}
	}
	return roots, alone
}

// checkPartials compares the output of a joiner with the truth.
func checkPartials(t *testing.T, o PartialsOptions) (roots map[which]pcommon.Map, truth *gentest.Truth[PartialsRun, Collective]) {
	t.Helper()
	messages, truth := sent(t, o)
	assert.Len(t, messages, int(truth.Run.Messages))
	roots, alone := joined(t, messages)
	assert.Len(t, roots, truth.Run.Collectives)
	records := int64(0)
	number := func(a pcommon.Map, name string) float64 {
		v, ok := a.Get(name)
		switch {
		case !ok:
			return 0
		case v.Type() == pcommon.ValueTypeInt:
			return float64(v.Int())
		}
		return v.Double()
	}
	for i := range truth.Records {
		c := &truth.Records[i]
		records += int64(c.Records)
		w := which{c.Communicator, c.Operation, int64(c.Sequence)}
		if c.Operation == "Send" || c.Operation == "Recv" {
			assert.Equal(t, c.Records, alone[w], "%+v", w)
			continue
		}
		a, ok := roots[w]
		require.True(t, ok, "%+v", w)
		require.InDelta(t, c.Records, number(a, spans.AttrNCCLRanks), 0, "%+v", w)
		require.InDelta(t, len(c.Missing), number(a, spans.AttrNCCLRanksMissingCount), 0, "%+v", w)
		require.InDelta(t, float64(c.LongestNS-c.ShortestNS)/1e9, number(a, spans.AttrNCCLLateMax), 1e-9, "%+v", w)
		require.InEpsilon(t, c.BusBandwidth, number(a, spans.AttrNCCLBandwidthBus), 1e-6, "%+v", w)
		if len(c.Missing) == 0 && c.CostNS > int64(c.Records)*2000 { // durations are printed in µs
			require.InDelta(t, c.LateRank, number(a, spans.AttrNCCLLateRank), 0, "%+v", w)
			require.InDelta(t, float64(c.LateNS), 1e9*number(a, spans.AttrNCCLLateMax), 1001, "%+v", w)
		}
	}
	assert.Equal(t, truth.Run.Records, records)
	return roots, truth
}

// The truth of the generator equals the output of a joiner with all messages, collective by collective, and the joiner names the slow rank and no other.
func TestPartialsAgreeWithTruth(t *testing.T) {
	for _, layout := range []string{Layout3D, LayoutHSDP, LayoutFSDP} {
		t.Run(layout, func(t *testing.T) {
			roots, truth := checkPartials(t, partialsOptions(t, layout, nil))
			steps := int64(truth.Run.Steps)
			assert.EqualValues(t, 30, steps)
			assert.Equal(t, map[string]int{Layout3D: 6 + 24 + 16, LayoutHSDP: 6 + 8, LayoutFSDP: 1}[layout], truth.Run.Communicators)
			assert.Equal(t, map[string]int64{Layout3D: steps * 48 * 9, LayoutHSDP: steps * 480, LayoutFSDP: steps * 480}[layout], truth.Run.Records)
			named := make(map[Member]bool)
			for w, a := range roots {
				if rank, ok := a.Get(spans.AttrNCCLStragglerRank); ok {
					named[Member{w.communicator, int(rank.Int())}] = true
				}
			}
			assert.True(t, named[truth.Run.Slow[0]], "%v of %v", named, truth.Run.Slow)
		})
	}
}

// A rank whose records stop is missing from then on, and nobody else is.
func TestPartialsMissing(t *testing.T) {
	_, truth := checkPartials(t, partialsOptions(t, LayoutHSDP, func(o *PartialsOptions) { o.SlowRank, o.Missing, o.MissingAt = -1, 20, 15 }))
	missing := 0
	for i := range truth.Records {
		missing += len(truth.Records[i].Missing)
	}
	assert.Equal(t, 15*slots, missing)
}

// A host that is cut off sends the same messages, later.
func TestPartialsAway(t *testing.T) {
	there, _ := sent(t, partialsOptions(t, LayoutFSDP, nil))
	o := partialsOptions(t, LayoutFSDP, func(o *PartialsOptions) { o.AwayHost, o.AwayFrom, o.AwayFor = 1, time.Second, time.Second })
	away, _ := sent(t, o)
	assert.NotEqual(t, there, away)
	assert.ElementsMatch(t, there, away)
	checkPartials(t, o)
}

// Same seed, same messages; all of a communicator are in one partition of a topic; a file has them, too.
func TestPartialsKafka(t *testing.T) {
	o := partialsOptions(t, Layout3D, func(o *PartialsOptions) { o.Duration = time.Second })
	want, _ := sent(t, o)
	again, _ := sent(t, o)
	require.Equal(t, want, again)

	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "otlp_nccl"))
	require.NoError(t, err)
	defer fake.Close()
	o.Kafka = fake.ListenAddrs()
	_, err = GeneratePartials(t.Context(), o, nil)
	require.NoError(t, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(o.Kafka...), kgo.ConsumeTopics("otlp_nccl"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	got, partitions := make(map[string][][]byte), make(map[string]int32)
	for n := 0; n < len(want); {
		fetches := client.PollFetches(t.Context())
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			n++
			if p, ok := partitions[string(r.Key)]; ok {
				assert.Equal(t, p, r.Partition)
			}
			partitions[string(r.Key)] = r.Partition
			got[string(r.Key)] = append(got[string(r.Key)], r.Value)
		})
	}
	assert.Greater(t, len(slices.Compact(slices.Sorted(maps.Values(partitions)))), 1)

	var file bytes.Buffer
	o.Kafka, o.Out = nil, "-"
	_, err = GeneratePartials(t.Context(), o, &file)
	require.NoError(t, err)
	for _, m := range want {
		assert.Equal(t, m.value, got[string(m.key)][0])
		got[string(m.key)] = got[string(m.key)][1:]
		length := binary.BigEndian.Uint32(file.Next(4))
		assert.Equal(t, m.value, file.Next(int(length)))
	}
	_, err = file.ReadByte()
	assert.ErrorIs(t, err, io.EOF)
}

// With --live a message leaves when its records are complete, and the end of the context ends the run in order.
func TestPartialsLive(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	clock := &gentest.Clock{At: time.Date(2026, 2, 11, 8, 40, 0, 0, time.UTC), Stop: stop}
	clock.Until = clock.At.Add(2 * time.Second)
	o := partialsOptions(t, LayoutFSDP, func(o *PartialsOptions) { o.Live, o.Start, o.Duration = true, time.Time{}, time.Hour })
	begun, n := clock.At, 0
	run, err := generatePartials(ctx, o, clock.Clock(), func() (func(message) error, func() error, error) {
		return func(message) error { n++; return nil }, func() error { return nil }, nil
	})
	require.NoError(t, err)
	assert.WithinDuration(t, begun.Add(2*time.Second), time.Unix(0, run.EndUnixNano), 200*time.Millisecond)
	assert.EqualValues(t, n, run.Messages)
	truth, err := gentest.ReadTruth[PartialsRun, Collective](o.Truth)
	require.NoError(t, err)
	assert.Equal(t, run, truth.Run)
}

func TestPartialsOptionErrors(t *testing.T) {
	for want, change := range map[string]func(o *PartialsOptions){
		`--layout "ring": use one of ["3d" "hsdp" "fsdp"]`: func(o *PartialsOptions) { o.Layout = "ring" },
		"--gpus 1: use 2 to":                           func(o *PartialsOptions) { o.GPUs = 1 },
		"--gpus 50: use a multiple of --tp × --pp, 16": func(o *PartialsOptions) { o.GPUs = 50 },
		"use --layout hsdp":                            func(o *PartialsOptions) { o.Layout, o.GPUs = LayoutFSDP, 100_000 },
		"--rate 0: use":                                func(o *PartialsOptions) { o.Rate = 0 },
		"--run is empty":                               func(o *PartialsOptions) { o.Run = "" },
		"--slow-rank 48: use 0 to 47, or -1 for none":  func(o *PartialsOptions) { o.SlowRank = 48 },
		"--away-host 6: use 0 to 5, or -1 for none":    func(o *PartialsOptions) { o.AwayHost = 6 },
		"--live and --start":                           func(o *PartialsOptions) { o.Live = true },
		"no broker answers":                            func(o *PartialsOptions) { o.Kafka = []string{"127.0.0.1:1"} },
	} {
		o := partialsOptions(t, Layout3D, change)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := GeneratePartials(ctx, o, nil)
		cancel()
		assert.ErrorContains(t, err, want)
	}
}

// The cost of making a record, to be sure that the load on a gateway is not bounded by the generator.
func BenchmarkGeneratePartials(b *testing.B) {
	o := DefaultPartialsOptions()
	o.Truth = writer.TruthNone
	var run PartialsRun
	for b.Loop() {
		var err error
		run, err = generatePartials(b.Context(), o, logfile.RealClock, func() (func(message) error, func() error, error) {
			return func(message) error { return nil }, func() error { return nil }, nil
		})
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(run.Records), "ns/record")
	b.ReportMetric(float64(run.Bytes)/float64(run.Records), "B/record")
}
