package filereceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/nonlog"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
)

// talk is a reporter with receivers whose state the test sets, and its own clock.
type talk struct {
	reporter
	now    time.Time
	logs   *observer.ObservedLogs
	status map[string]*tail.Status
	counts map[string]*tail.Counts
	reader map[string]string // of a path: the receiver that understands the file
	aliens []tail.Mute
	alienN int
}

func newTalk(ids ...string) *talk {
	core, logs := observer.New(zap.InfoLevel)
	k := &talk{now: time.Unix(1_780_000_000, 0), logs: logs, status: map[string]*tail.Status{}, counts: map[string]*tail.Counts{}, reader: map[string]string{}}
	k.began = k.now
	k.unsorted = func(time.Time) ([]tail.Mute, int, int64) { return k.aliens, k.alienN, 7 }
	for _, id := range ids {
		k.status[id], k.counts[id] = &tail.Status{Looked: true}, &tail.Counts{}
		k.members = append(k.members, &member{
			id: id, log: zap.New(core), status: func() tail.Status { return *k.status[id] }, counts: func() tail.Counts { return *k.counts[id] },
			head: func(path string) (string, string) { return k.reader[path], "first of " + path },
		})
	}
	return k
}

// after lets time pass, second by second, and returns the log.
func (k *talk) after(d time.Duration) (said []string) {
	for ; d > 0; d -= time.Second {
		k.now = k.now.Add(time.Second)
		k.report(k.now)
	}
	for _, e := range k.logs.TakeAll() {
		said = append(said, e.Message)
	}
	return said
}

func globs(list ...string) (out []tail.GlobStatus) {
	for _, g := range list {
		out = append(out, tail.GlobStatus{Pattern: g})
	}
	return out
}

// The files found at the start are one line, the globs without a file another, of all receivers together.
func TestReportFirstLook(t *testing.T) {
	k := newTalk("tq_trace", "train_log", "nccl")
	k.status["tq_trace"].Globs = []tail.GlobStatus{{Pattern: "/logs/*.err", Matched: true}}
	k.status["tq_trace"].Files, k.status["tq_trace"].Size = 10_000, 3<<30
	k.status["train_log"].Files, k.status["train_log"].Size = 1, 100
	k.status["train_log"].Globs = []tail.GlobStatus{{Pattern: "/a", Directory: "/a"}, {Pattern: "/b/*"}}
	k.status["nccl"].Globs = globs("/b/*")
	k.status["nccl"].Links, k.status["nccl"].Link = 3, "/b/l"
	k.status["tq_trace"].PassedOver = nonlog.Tally{".pt": 1}
	k.status["nccl"].PassedOver = nonlog.Tally{".pt": 3, ".git": 1}
	assert.Equal(t, []string{
		"Reading 10001 files, 3 GiB: tq_trace 10000, train_log 1",
		"Nothing matches /a, where /a is a directory: write /a/* for its files, /a/** for those below it, too (train_log), /b/* (train_log, nccl); files that come later are found",
		"Passed over by name, as no logs: 3 .pt, 1 .git: 'include_non_logs: true' reads them",
		"3 symbolic links passed over, such as /b/l: 'follow_symlinks: true' reads what they lead to, and TRAINBRIDGE_FOLLOW_SYMLINKS=true sets it in the shipped configuration",
	}, k.after(firstLook))
	assert.Empty(t, k.after(time.Hour), "once")
}

func TestReportNothingThere(t *testing.T) {
	k := newTalk("tq_trace", "nccl")
	k.status["tq_trace"].Globs, k.status["nccl"].Globs = globs("/tmp/ray/*.err"), globs("logs/nccl/*")
	k.status["nccl"].Looked = false
	assert.Empty(t, k.after(lateLook-time.Second), "a slow file system")
	dir, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, []string{
		"No log to read: nothing matches /tmp/ray/*.err (tq_trace), logs/nccl/* (nccl), in " + dir +
			". Name your logs in TRAINBRIDGE_LOGS, such as '/data/job/**/*.log', or in 'include' of a configuration of your own; files that come later are found",
	}, k.after(time.Second))
	k.status["nccl"].Files, k.status["nccl"].Newest = 10_000, "/x/9999"
	assert.Equal(t, []string{"nccl: 10000 new files found, such as /x/9999"}, k.after(time.Minute))
	k.status["nccl"].Files++
	k.status["nccl"].Newest = "/x/a"
	assert.Equal(t, []string{"nccl: 1 new file found, such as /x/a"}, k.after(time.Second))
	k.status["nccl"].Files += 5
	assert.Empty(t, k.after(foundEvery-time.Second))
	assert.Len(t, k.after(time.Second), 1)
}

// A second start says why nothing comes.
func TestReportResumed(t *testing.T) {
	k := newTalk("train_log")
	k.members[0].state = "/data/.trainbridge"
	*k.status["train_log"] = tail.Status{Looked: true, Files: 5, Size: 2048, Resumed: 4, Finished: 4}
	assert.Equal(
		t, []string{"Reading 5 files, 2 KiB: train_log 5; 4 already read to the end: to read them again, stop, remove /data/.trainbridge and start"},
		k.after(5*time.Second),
	)
	k = newTalk("train_log")
	*k.status["train_log"] = tail.Status{Looked: true, Files: 5, Size: 2048, Resumed: 4, Finished: 1}
	assert.Equal(
		t,
		[]string{
			"Reading 5 files, 2 KiB: train_log 5; 3 from where reading stopped before; 1 already read to the end: to read it again, stop, remove the directory of 'storage' and start",
		},
		k.after(5*time.Second),
	)
}

// The figures are from the issue: 312 MiB of 1.2 GiB, 41 MiB/s, 22 s to go.
func TestReportProgress(t *testing.T) {
	k := newTalk("tq_trace")
	st := k.status["tq_trace"]
	*st = tail.Status{Looked: true, Files: 1, Size: 1214 << 20, Lag: 902 << 20, LagSince: k.now, Rate: 41 << 20}
	assert.Len(t, k.after(progressEvery-time.Second), 1, "the first look only: a short backlog is not worth a line")
	assert.Equal(t, []string{"tq_trace: 312 MiB of 1.19 GiB read (25 %), 41 MiB/s, 22 s to go"}, k.after(time.Second))
	assert.Empty(t, k.after(progressEvery-time.Second))
	st.Rate = 0
	assert.Equal(
		t, []string{"tq_trace: 312 MiB of 1.19 GiB read (25 %), and nothing in the last 30 s: what was read before waits to be accepted"}, k.after(time.Second),
	)
	st.Lag, st.LagSince = 0, time.Time{}
	*k.counts["tq_trace"] = tail.Counts{Lines: 16251, Records: 13920, Ignored: map[string]int64{"a": 2000, "b": 330}, Rejected: map[string]int64{"c": 1}}
	assert.Equal(t, []string{"All is read: tq_trace 16251 lines, 13920 with records, 2330 not for us, 1 that cannot be read"}, k.after(time.Second))
	assert.Empty(t, k.after(time.Hour))
}

// "All is read" is said of no receiver while another still reads.
func TestReportAllIsRead(t *testing.T) {
	k := newTalk("nccl", "tq_trace")
	*k.status["nccl"], *k.counts["nccl"] = tail.Status{Looked: true, Files: 1, Size: 9}, tail.Counts{Lines: 7, Records: 7}
	*k.status["tq_trace"], *k.counts["tq_trace"] = tail.Status{Looked: true, Files: 1, Size: 9, Lag: 4, LagSince: k.now}, tail.Counts{Lines: 1, Records: 1}
	assert.Equal(
		t,
		[]string{
			"Reading 2 files, 18 B: nccl 1, tq_trace 1",
			"Read to the end, while other receivers still read: nccl 7 lines, 7 with records, 0 not for us",
		},
		k.after(firstLook),
	)
	k.status["tq_trace"].Lag, k.counts["tq_trace"].Lines = 0, 2
	assert.Equal(t, []string{"All is read: tq_trace 2 lines, 1 with records, 0 not for us"}, k.after(time.Second))
}

// A file without a reader is named with its likely format and its beginning; ten thousand files are one line.
func TestReportNotUnderstood(t *testing.T) {
	k := newTalk("train_log", "zmq_rpc")
	st := k.status["train_log"]
	*st = tail.Status{Looked: true, Files: 1, MuteFiles: 1, MuteLines: 200, Mute: []tail.Mute{{Path: "x.log", Lines: 200}}}
	k.reader["x.log"] = "zmq_rpc"
	said := k.after(5 * time.Second)
	assert.Equal(
		t,
		"train_log: x.log: 200 lines, no record; it looks like a log for zmq_rpc: name it in 'include' of that one, or all logs in TRAINBRIDGE_LOGS; first line: first of x.log",
		said[len(said)-1],
	)
	*st = tail.Status{Looked: true, Files: 10_001, MuteFiles: 10_000, MuteLines: 1, Mute: []tail.Mute{{Path: "y.log", Lines: 201}}}
	said = k.after(muteEvery - 5*time.Second)
	assert.Len(t, said, 1, "new files")
	said = k.after(10 * time.Second)
	assert.Equal(
		t,
		[]string{
			"train_log: no record in 10000 of 10001 files, such as y.log with 201 lines; it looks like none of the logs that are known here; first line: first of y.log",
		},
		said,
	)
	assert.Empty(t, k.after(time.Hour))

	k = newTalk("train_log")
	*k.status["train_log"] = tail.Status{Looked: true, Files: 1, MuteFiles: 1, Mute: []tail.Mute{{Path: "copy.log", Lines: 200}}}
	k.reader["copy.log"] = "train_log"
	assert.Len(t, k.after(time.Minute), 1, "the first look: its records are known from another file")

	k = newTalk("train_log")
	k.aliens, k.alienN = []tail.Mute{{Path: "a.txt", Lines: 57}}, 1
	said = k.after(5 * time.Second)
	assert.Equal(t, []string{"a.txt: 57 lines, no record: no receiver understands it so far; first line: first of a.txt"}, said)
	k.alienN = 10_000
	assert.Equal(t, []string{"No receiver understands 10000 files with 7 lines so far, such as a.txt; first line: first of a.txt"}, k.after(time.Hour))
}

// The log of a real receiver about a real directory, without the secrets of its lines.
func TestReportFiles(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("some text api_key=sk-abcdefghijklmnopqrstuvwxyz1234567890\n", 300)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.log"), []byte(text), 0o600))
	core, logs := observer.New(zap.InfoLevel)
	set := receivertest.NewNopSettings(component.MustNewType("train_log"))
	set.ID, set.Logger = component.MustNewID("train_log"), zap.New(core)
	cfg := tail.DefaultConfig()
	cfg.Include = []string{filepath.Join(dir, "*")}
	factory := NewFactory(set.ID.Type(), func() component.Config { return &struct{}{} }, component.StabilityLevelAlpha, component.StabilityLevelAlpha,
		func(*Receiver, component.Config) (Parts, error) {
			return Parts{
				Tail: cfg, Redact: redact.DefaultConfig(), NewHandler: func(*tail.Stream) tail.Handler { return ignoring{} }, Scope: "test",
				Detect: func(string) tail.Detect { return func([]byte) tail.Reads { return tail.ReadsNot } },
			}, nil
		})
	r, err := factory.CreateTraces(t.Context(), set, factory.CreateDefaultConfig(), &next{answer: func([]string) error { return nil }})
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), receiverHost{}))
	want := []string{
		"Reading 1 file, 17 KiB: train_log 1",
		fmt.Sprintf("train_log: %s/x.log: 300 lines, no record; it looks like none of the logs that are known here; first line: some text api_key=", dir),
		"All is read: train_log 300 lines, 0 with records, 300 not for us",
	}
	require.Eventually(t, func() bool { return logs.Len() >= len(want) }, time.Minute, 10*time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	for i, e := range logs.All() {
		assert.True(t, strings.HasPrefix(e.Message, want[i]), e.Message)
		assert.Empty(t, e.Context)
	}
	assert.NotContains(t, logs.All()[1].Message, "sk-abcdef")
}

type ignoring struct{}

func (ignoring) Line(*tail.Line) (tail.Verdict, string) { return tail.Ignored, "other" }
func (ignoring) Expire(time.Time)                       {}
func (ignoring) Cut() tail.Delivery                     { return nil }
func (ignoring) Save() []byte                           { return nil }
func (ignoring) Restore([]byte)                         {}

type receiverHost struct{}

func (receiverHost) GetExtensions() map[component.ID]component.Component { return nil }

// Receivers begin while the last of others ends.
func TestReportInTurns(t *testing.T) {
	var tl reporter
	var receivers sync.WaitGroup
	for range 8 {
		receivers.Go(func() {
			for range 200 {
				m := new(member)
				tl.add(m)
				tl.remove(m)
			}
		})
	}
	receivers.Wait()
	assert.Empty(t, tl.members)
}
