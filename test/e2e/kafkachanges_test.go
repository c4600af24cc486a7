//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"golang.org/x/sys/unix"

	"github.com/trainbridge/trainbridge/spans"
)

// fleetChange is an event in the life of a fleet that is no crash. do returns the number of records of ranks that nobody can read; nil: none.
type fleetChange struct {
	name     string
	start    time.Duration // of the job, before now
	patience time.Duration // as in fleet
	limit    string        // how long steps wait for their collectives, and more of step_join
	mixed    bool          // breakdowns have no truth
	do       func(f *fleet, rnd *rand.Rand) (lost *atomic.Int64)
}

// fleetChanges are drawn by the seed, in turn.
var fleetChanges = []fleetChange{
	{"topics made anew", 0, 8 * time.Second, "12s", false, (*fleet).remakeTopics},
	{"a later version at an agent", 0, 8 * time.Second, "12s", false, (*fleet).updateAgent},
	{"partitions added", 0, 8 * time.Second, "12s", false, (*fleet).addPartitions},
	{"two jobs of one run id", 0, time.Minute, "30s", true, (*fleet).secondJob},
	{"the disk of an agent is full", 0, time.Minute, "30s", false, (*fleet).fillDisk},
	{"ranks a day late", 24 * time.Hour, 10 * time.Second, "5s", false, func(f *fleet, rnd *rand.Rand) *atomic.Int64 { return f.startLate(rnd, 1) }},
	{"steps a day late", 24 * time.Hour, 10 * time.Second, "5s, keep: 5s", false, func(f *fleet, rnd *rand.Rand) *atomic.Int64 {
		return f.startLate(rnd, agentsOfFleet)
	}},
	{"a host's clock is off by 2 s", 0, time.Minute, "30s", false, (*fleet).moveClock},
}

// Whatever changes around a fleet, each record of a rank has a span, steps are counted once, nobody is accused of a hang, and a breakdown that differs from the
// truth is marked partial. Two jobs of one run id are one to step_join: their breakdowns have no truth. Nor do those of a run that goes on in other partitions.
func TestFleetChanges(all *testing.T) {
	all.Parallel()
	for seed := *fleetSeed; seed < *fleetSeed+*fleetSeeds; seed++ {
		c := fleetChanges[seed%uint64(len(fleetChanges))]
		all.Run(fmt.Sprintf("seed=%d %s", seed, c.name), func(t *testing.T) {
			t.Parallel()
			rnd, sink := rand.New(rand.NewPCG(seed, 29)), startSpanSink(t)
			f, tr := stepFleet(t, startKafka(t, 4), fmt.Sprint("changes-", seed), sink.addr, c.limit,
				"--steps", "30", "--seed", strconv.FormatUint(seed, 10), "--start", time.Now().Add(-c.start).Format(time.RFC3339))
			f.patience = c.patience
			f.gate()
			f.awaitRanks(sink, c.do(f, rnd))
			for _, text := range sink.roots() {
				assert.NotContains(t, text, spans.AttrNCCLHang+"=")
			}
			f.awaitSteps(len(f.logs) * len(tr.Steps))
			if c.mixed {
				f.stop()
				return
			}
			whole, partial := f.breakdowns(tr, sink)
			t.Logf("%d breakdowns are whole, partial %v; %d spans came again", whole, partial, sink.copies)
		})
	}
}

// upAll starts the agents.
func (f *fleet) upAll() {
	f.Helper()
	for _, a := range f.agents {
		a.up(quiet{f})
	}
}

// awaitRanks waits until each record of a rank but the lost ones has a span.
func (f *fleet) awaitRanks(sink *spanSink, lost *atomic.Int64) {
	f.Helper()
	records := 0
	for _, g := range f.files {
		if strings.HasPrefix(filepath.Base(filepath.Dir(g.to)), "nccl") {
			records += strings.Count(g.text, "\n")
		}
	}
	eventually(f, func() error {
		n, want := len(sink.with(func(text string) bool { return strings.HasPrefix(text, "rank ") })), records
		if lost != nil {
			want -= int(lost.Load())
		}
		if n != want {
			return fmt.Errorf("%d spans of ranks, want %d", n, want)
		}
		return nil
	})
}

// awaitSteps waits until the gateways have counted the steps.
func (f *fleet) awaitSteps(want int) {
	f.Helper()
	eventually(f, func() error {
		n := 0.0
		for _, g := range f.gateways {
			list, err := metricsOf(g.metrics)
			if err != nil {
				return err
			}
			for _, m := range list {
				if m.name == "ml_train_steps_total" && m.labels["trainbridge_source"] == "jsonl" {
					n += m.value
				}
			}
		}
		if n != float64(want) {
			return fmt.Errorf("%v steps are counted, want %d", n, want)
		}
		return nil
	})
}

// updateAgent has an agent send records of a later version from a moment on: a relay stands between the agent's topic and the gateways'.
func (f *fleet) updateAgent(rnd *rand.Rand) *atomic.Int64 {
	f.Helper()
	r := relay{f: f, from: "newer-" + f.name, to: "nccl-" + f.name}
	f.broker.topics(f, r.from)
	f.agents[1].merge(f, fmt.Sprintf("exporters: {kafka/nccl: {traces: {topic: %s}}}", r.from))
	r.start()
	f.upAll()
	f.grow(rnd, 0.4)
	lasts(3 * time.Second)
	r.updated.Store(true)
	f.grow(rnd, 1)
	eventually(f, func() error {
		rejected, said := 0.0, false
		for _, g := range f.gateways {
			list, err := g.ownMetrics()
			if err != nil {
				return err
			}
			for _, m := range list {
				if m.labels["message"] == "rejected" {
					rejected += m.value
				}
			}
			said = said || g.logged("in a form that this version does not know: update trainbridge here")
		}
		if n := r.messages.Load(); n == 0 || rejected != float64(n) || !said {
			return fmt.Errorf("%v messages are rejected of %d, and the log says so: %v", rejected, n, said)
		}
		return nil
	})
	return &r.records
}

// relay passes messages from topic to topic. Once updated, packed records are of a later version: messages and records are counted.
type relay struct {
	f                 *fleet
	from, to          string
	updated           atomic.Bool
	messages, records atomic.Int64
}

func (r *relay) start() {
	r.f.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.f.broker.addr), kgo.ConsumeTopics(r.from), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.DefaultProduceTopic(r.to))
	require.NoError(r.f, err)
	done := make(chan struct{})
	r.f.Cleanup(func() {
		client.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			fetches := client.PollFetches(context.Background())
			if fetches.IsClientClosed() {
				return
			}
			fetches.EachRecord(func(in *kgo.Record) {
				value := in.Value
				if r.updated.Load() {
					value = r.change(value)
				}
				client.Produce(context.Background(), &kgo.Record{Key: in.Key, Value: value, Partition: in.Partition}, nil)
			})
		}
	}()
}

// change has the packed records in a message be of a later version: their first byte says so.
func (r *relay) change(value []byte) []byte {
	td, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(value)
	if err != nil { // require must not end this goroutine
		r.f.Errorf("a message without spans: %v", err)
		return value
	}
	records := int64(0)
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if packed, ok := span.Attributes().Get(spans.AttrNCCLPartialRecords); ok {
					packed.Bytes().SetAt(0, packed.Bytes().At(0)+1)
					n, _ := span.Attributes().Get(spans.AttrNCCLPartialCount)
					records += n.Int()
				}
			}
		}
	}
	if records > 0 {
		r.messages.Add(1)
		r.records.Add(records)
	}
	value, err = new(ptrace.ProtoMarshaler).MarshalTraces(td)
	assert.NoError(r.f, err)
	return value
}

// startLate starts an agent when what it has to tell is not waited for any more.
func (f *fleet) startLate(rnd *rand.Rand, late int) *atomic.Int64 {
	f.Helper()
	f.grow(rnd, 1)
	for i, a := range f.agents {
		if i != late {
			a.up(quiet{f})
		}
	}
	lasts(16 * time.Second)
	f.agents[late].up(quiet{f})
	return nil
}

// addPartitions adds partitions to both topics while the logs grow, once the gateways have spoken of the run's collectives. Collectors see the partitions at
// different times.
func (f *fleet) addPartitions(rnd *rand.Rand) *atomic.Int64 {
	f.Helper()
	for _, a := range f.agents {
		a.merge(f, "exporters: {kafka: {metadata: {refresh_interval: 5s}}, kafka/nccl: {metadata: {refresh_interval: 5s}}}")
	}
	f.upAll()
	f.grow(rnd, 0.3)
	eventually(f, func() error {
		for _, g := range f.gateways {
			list, err := g.ownMetrics()
			if err != nil {
				return err
			}
			for _, m := range list {
				if strings.HasPrefix(m.name, "otelcol_trainbridge_nccl_collectives") && m.value > 0 {
					return nil
				}
			}
		}
		return errors.New("no collective is joined")
	})
	lasts(2 * time.Second) // watermarks are told once a second
	moment(rnd, 2000)
	f.admin(func(ctx context.Context, admin *kadm.Client) error {
		made, err := admin.CreatePartitions(ctx, 3, f.topics()...)
		return errors.Join(err, made.Error())
	})
	const parts = 7
	for i := range parts {
		lasts(time.Second)
		f.grow(rnd, 0.3+0.7*float64(i+1)/parts)
	}
	return nil
}

// remakeTopics deletes both topics when all in them is sent, and creates them again. Agents go on by themselves, gateways have to be started anew.
func (f *fleet) remakeTopics(rnd *rand.Rand) *atomic.Int64 {
	f.Helper()
	f.upAll()
	f.growLines(rnd, 0.5)
	lasts(8 * time.Second)
	f.admin(func(ctx context.Context, admin *kadm.Client) error {
		gone, err := admin.DeleteTopics(ctx, f.topics()...)
		return errors.Join(err, gone.Error())
	})
	eventually(f, func() error {
		there := 0
		f.admin(func(ctx context.Context, admin *kadm.Client) error {
			list, err := admin.ListTopics(ctx)
			for _, name := range f.topics() {
				if list.Has(name) {
					there++
				}
			}
			return err
		})
		if there > 0 {
			return fmt.Errorf("%d topics are still there", there)
		}
		return nil
	})
	f.broker.topics(f, f.topics()...)
	f.grow(rnd, 1)
	for _, g := range f.gateways {
		g.stop(f)
		g.up(quiet{f})
	}
	return nil
}

// fillDisk kills an agent whose state has no room on its disk. Without permission to mount a file system, the agent is only killed.
func (f *fleet) fillDisk(rnd *rand.Rand) *atomic.Int64 {
	f.Helper()
	dir := f.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		f.Logf("no file system of its own here: %v", err)
	} else {
		f.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	}
	a, filler := f.agents[1], filepath.Join(dir, "filler")
	a.env = append(a.env, "TRAINBRIDGE_STATE_DIR="+dir)
	f.upAll()
	f.grow(rnd, 0.3)
	moment(rnd, 2000)
	full := os.WriteFile(filler, make([]byte, 1<<20), 0o600)
	f.Logf("the disk: %v", full)
	f.grow(rnd, 0.6)
	lasts(2 * time.Second)
	a.kill()
	a.up(quiet{f})
	f.grow(rnd, 0.8)
	lasts(2 * time.Second)
	require.NoError(f, os.Remove(filler))
	f.grow(rnd, 1)
	return nil
}

// secondJob has the logs of another job grow beside those of the first, under the same run id.
func (f *fleet) secondJob(rnd *rand.Rand) *atomic.Int64 {
	f.Helper()
	tr := generateJob(f.T, "--ranks", "16", "--nccl", "nccl_inspector", "--steps", "30", "--seed", "977")
	f.logs = append(f.logs, &ncclLog{name: "nccl-1", dir: filepath.Join(tr.dir, "nccl")})
	for _, g := range f.files[:len(f.files):len(f.files)] {
		name := filepath.Base(g.to)
		for _, dir := range []string{"nccl", "train", "tq", "zmq"} {
			text, err := os.ReadFile(filepath.Join(tr.dir, dir, name))
			if err == nil {
				to := filepath.Join(filepath.Dir(g.to), "second-"+name)
				f.files = append(f.files, &grownFile{text: string(text), to: to})
			}
		}
	}
	f.upAll()
	f.grow(rnd, 1)
	return nil
}

// moveClock has the clock of one of the two hosts be two seconds fast or slow.
func (f *fleet) moveClock(rnd *rand.Rand) *atomic.Int64 {
	f.Helper()
	stamp, moved := regexp.MustCompile(`(?:_ts|_timestamp_us)":(\d+)`), 0
	by, host := 2_000_000*(2*rnd.Int64N(2)-1), 11+rnd.IntN(2)
	f.Logf("the clock of host %d: %+d µs", host, by)
	for _, g := range f.files {
		if !strings.Contains(g.text, fmt.Sprintf(`"hostname":"10.10.1.%d"`, host)) {
			continue
		}
		g.text = stamp.ReplaceAllStringFunc(g.text, func(text string) string {
			digits := stamp.FindStringSubmatch(text)[1]
			us, err := strconv.ParseInt(digits, 10, 64)
			require.NoError(f, err)
			moved++
			return strings.TrimSuffix(text, digits) + strconv.FormatInt(us+by, 10)
		})
	}
	require.Positive(f, moved)
	f.upAll()
	f.grow(rnd, 1)
	return nil
}

// topics are those of the fleet.
func (f *fleet) topics() []string { return []string{"spans-" + f.name, "nccl-" + f.name} }

// admin asks the broker.
func (f *fleet) admin(do func(ctx context.Context, admin *kadm.Client) error) {
	f.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(f.broker.addr))
	require.NoError(f, err)
	defer client.Close()
	require.NoError(f, do(f.Context(), kadm.NewClient(client)))
}

// growLines has each log grow by whole lines, up to a share of them: no rank waits for another.
func (f *fleet) growLines(rnd *rand.Rand, share float64) {
	f.Helper()
	all := map[*grownFile]string{}
	for _, g := range f.files {
		lines := strings.SplitAfter(g.text, "\n")
		all[g], g.text = g.text, strings.Join(lines[:int(share*float64(len(lines)))], "")
	}
	f.grow(rnd, 1)
	for g, text := range all {
		g.text = text
	}
}
