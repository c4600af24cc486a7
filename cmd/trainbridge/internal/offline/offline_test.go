package offline

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/nonlog"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is a span as received by a sink.
type seen struct {
	run, name, path string
	trace           string
	offset          int64 // -1: none
	kind            view.Kind
}

// read reads paths and returns the spans, in a fixed order.
func read(tb testing.TB, opt Options, paths ...string) (*Reading, []seen) {
	tb.Helper()
	in, err := Open(paths, strings.NewReader(""))
	require.NoError(tb, err)
	defer in.Close()
	var mu sync.Mutex
	var all []seen
	sink, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range td.ResourceSpans().All() {
			var res view.Resource
			res.Read(rs.Resource().Attributes())
			run := strings.Clone(res.Run)
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					x := seen{run: run, name: s.Name(), trace: s.TraceID().String() + s.SpanID().String(), offset: -1, kind: view.KindOf(s)}
					if v, ok := s.Attributes().Get(spans.AttrLogOffset); ok {
						x.offset = v.Int()
						path, _ := s.Attributes().Get(spans.AttrLogFile)
						x.path = path.Str()
					}
					all = append(all, x)
				}
			}
		}
		return nil
	})
	require.NoError(tb, err)
	r, err := Read(tb.Context(), in, opt, Sink{Traces: sink})
	require.NoError(tb, err)
	slices.SortFunc(all, func(a, b seen) int { return strings.Compare(a.trace+a.name, b.trace+b.name) })
	return r, all
}

const fixtures = "../../../../receivers"

// tq is a log of TransferQueue of some calls, each with a trace of its own.
func tq(calls int, at time.Time) string {
	var b strings.Builder
	for i := range calls {
		line := func(s float64, text string) {
			stamp := at.Add(time.Duration(i)*10*time.Second + time.Duration(s*1e9)).UTC().Format("2006-01-02 15:04:05,000")
			fmt.Fprintf(&b, "%s INFO worker.py:1 -- [TQ-TRACE] trace_id=0198c9d4-0000-7000-8000-%012d | func=rollout | stage=%s\n", stamp, i, text)
		}
		line(0, "FUNCTION_START | pid=7 | timestamp=0.0")
		line(0, "GET_START | pid=7")
		line(1, "GET_END | pid=7 | duration=1.000000s")
		line(1, "COMPUTE_START | pid=7")
		line(3, "COMPUTE_END | pid=7 | duration=2.000000s")
		line(3, "PUT_START | pid=7")
		line(4, "PUT_END | pid=7 | duration=1.000000s")
		line(4, "FUNCTION_END | pid=7 | total_duration=4.000000s | get_ratio=25.00% | compute_ratio=50.00% | put_ratio=25.00%")
	}
	return b.String()
}

func jsonl(steps int, at time.Time) string {
	var b strings.Builder
	for i := range steps {
		fmt.Fprintf(&b, `{"timestamp": %q, "step": %d, "loss": %g, "throughput": 1000, "step_time_s": 4.5}`+"\n",
			at.Add(time.Duration(i)*10*time.Second).UTC().Format(time.RFC3339), i+1, 3-0.01*float64(i))
	}
	return b.String()
}

var at = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

func put(tb testing.TB, dir, name, text string) string {
	tb.Helper()
	path := filepath.Join(dir, name)
	require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(tb, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Each line of the receivers' fixtures is accounted for, and each position is the begin of a line, with the line number found by counting.
func TestPositions(t *testing.T) {
	r, all := read(t, Options{Positions: true}, fixtures+"/*/testdata/**")
	texts := map[string][]byte{}
	located := 0
	for _, s := range all {
		if s.offset < 0 || strings.HasSuffix(s.path, ".gz") || strings.HasSuffix(s.path, ".zst") {
			continue
		}
		located++
		if isRows(headOf(s.path)) {
			assert.Zero(t, r.LineAt(s.path, s.offset), "records have no lines")
			continue
		}
		if texts[s.path] == nil {
			text, err := os.ReadFile(s.path)
			require.NoError(t, err)
			texts[s.path] = text
		}
		text := texts[s.path]
		require.LessOrEqualf(t, s.offset, int64(len(text)), "%s of %s", s.name, s.path)
		if before := text[:s.offset]; len(before) > 0 && !bytes.ContainsAny(before[len(before)-1:], "\n\r\x00") && text[0] < 0xfe {
			require.Failf(t, "no line begins there", "%s of %s: %d", s.name, s.path, s.offset)
		}
		assert.Equal(t, int64(bytes.Count(text[:s.offset], []byte{'\n'})+1), r.LineAt(s.path, s.offset))
	}
	assert.Greater(t, located, 900)
	read := 0
	for _, f := range r.Files {
		sum := f.Records
		for _, reasons := range []map[string]*Reason{f.Ignored, f.Rejected} {
			for _, why := range reasons {
				sum += why.Lines
			}
		}
		assert.Equal(t, f.Lines, sum, f.Name)
		if f.Records > 0 {
			read++
		}
	}
	assert.Greater(t, read, 20)
	var lined, records int64
	for _, f := range r.Files {
		lined += f.Lines
		records += f.Records
	}
	assert.Equal(t, r.Lines, lined)
	assert.Equal(t, r.Records, records)
}

// The same bytes give the same spans, again and compressed.
func TestAgain(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "tq.log", tq(40, at))
	put(t, dir, "train.jsonl", jsonl(40, at))
	_, first := read(t, Options{Run: "r"}, dir)
	_, second := read(t, Options{Run: "r"}, dir)
	assert.Equal(t, first, second)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write([]byte(tq(40, at)))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, "tq.log")))
	put(t, dir, "tq.log.gz", z.String())
	r, packed := read(t, Options{Run: "r"}, dir)
	assert.Equal(t, first, packed)
	f := r.File(r.Files[0].Path)
	assert.Equal(t, int64(len(strings.Split(tq(3, at), "\n"))), r.LineAt(f.Path, int64(len(tq(3, at)))))
}

func TestJobs(t *testing.T) {
	text := map[string]string{"tq": tq(2, at), "train": jsonl(2, at)}
	for _, c := range []struct {
		name  string
		files []string // the first letters are the kind
		paths []string
		want  []string // directories of the jobs
	}{
		{"one directory", []string{"tq.log", "train.jsonl"}, []string{"."}, []string{"."}},
		{"a directory for each kind", []string{"tq/tq.log", "train/train.jsonl"}, []string{"."}, []string{"."}},
		{"two jobs", []string{"a/tq.log", "b/tq.log"}, []string{"."}, []string{"a", "b"}},
		{"two jobs, each with directories", []string{"a/tq/tq.log", "a/train/train.jsonl", "b/tq/tq.log", "b/train/train.jsonl"}, []string{"."}, []string{"a", "b"}},
		{"two jobs of a host, one of another", []string{"host0/a/c/tq.log", "host0/a/d/tq.log", "host1/b/tq.log"}, []string{"."}, []string{"a/c", "a/d", "b"}},
		{"ranks", []string{"attempt_0/0/tq.log", "attempt_0/1/tq.log", "train.jsonl"}, []string{"."}, []string{"."}},
		{"hosts", []string{"node-a/tq.log", "10.0.0.2/tq.log", "gpu-node-3/tq.log", "train.jsonl"}, []string{"."}, []string{"."}},
		{"logs beside one training", []string{"train.jsonl", "calls-0/tq.log", "calls-1/tq.log"}, []string{"."}, []string{"."}},
		{"a training and another job", []string{"a/train.jsonl", "a/tq.log", "b/tq.log"}, []string{"."}, []string{"a", "b"}},
		{"two paths", []string{"a/tq.log", "b/train.jsonl"}, []string{"a", "b"}, []string{"a", "b"}},
		{"two files", []string{"a/tq.log", "b/train.jsonl"}, []string{"a/tq.log", "b/train.jsonl"}, []string{"a", "b"}},
		{"a glob", []string{"a/tq.log", "a/train.jsonl"}, []string{"a/t*"}, []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			for _, f := range c.files {
				put(t, dir, f, text[strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f), ".log"), ".jsonl")])
			}
			var paths []string
			for _, p := range c.paths {
				paths = append(paths, filepath.Join(dir, p))
			}
			_, all := read(t, Options{}, paths...)
			got := map[string]bool{}
			for _, s := range all {
				got[s.run] = true
			}
			want := map[string]bool{}
			for _, d := range c.want {
				want[spans.DirectoryRun(filepath.Join(dir, d, "x"))] = true
			}
			assert.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
			_, all = read(t, Options{Run: "one"}, paths...)
			for _, s := range all {
				assert.Equal(t, "one", s.run)
			}
		})
	}
}

// Directories with the records of one communicator are of one job, whatever their names; those of others are not.
func TestJobsOfOneCommunicator(t *testing.T) {
	inspector := func(comm string) string {
		return `{"header":{"id":"` + comm + `","rank":0,"n_ranks":2},"coll_perf":{"coll":"AllReduce"}}` + "\n"
	}
	vccl := func(comm string) string { return "Time,Group,FromRank\n20260108180000," + comm + ",0\n" }
	for name, tt := range map[string]struct {
		a, b string
		want int
	}{
		"one":           {inspector("0x9e7a479f95a66c"), inspector("0x1") + inspector("0x9e7a479f95a66c"), 1},
		"others":        {inspector("0x9e7a479f95a66c"), inspector("0x9e7a479f95a66d"), 2},
		"one of VCCL":   {vccl("12715772615376301750"), vccl("12715772615376301750"), 1},
		"other of VCCL": {vccl("12715772615376301750"), vccl("12715772615376301751"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "left/nccl/a.log", tt.a)
			put(t, dir, "left/train.log", "")
			put(t, dir, "right/nccl/b.log", tt.b)
			put(t, dir, "right/train.log", "")
			in, err := Open([]string{dir}, strings.NewReader(""))
			require.NoError(t, err)
			defer in.Close()
			jobs := in.jobs("", func(file string) string {
				if filepath.Base(file) == "train.log" {
					return "train_log"
				}
				return "nccl"
			})
			assert.Len(t, jobs, tt.want)
		})
	}
}

func TestSinceUntil(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "train.jsonl", jsonl(10, at))
	steps := func(opt Options) (n int) {
		_, all := read(t, opt, dir)
		for _, s := range all {
			if s.kind == view.KindStep {
				n++
			}
		}
		return n
	}
	assert.Equal(t, 10, steps(Options{}))
	assert.Equal(t, 7, steps(Options{Since: at.Add(25 * time.Second)}))
	assert.Equal(t, 3, steps(Options{Until: at.Add(25 * time.Second)}))
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	in, err := Open([]string{"-"}, strings.NewReader(jsonl(3, at)))
	require.NoError(t, err)
	require.Len(t, in.Files, 1)
	assert.Equal(t, "-", in.Name(in.Files[0]))
	spool := in.Files[0]
	jobs := in.jobs("", func(string) string { return "train_log" })
	require.Len(t, jobs, 1)
	assert.Equal(t, "stdin", jobs[0].run)
	in.Close()
	assert.NoFileExists(t, spool)

	for name, paths := range map[string][]string{
		"empty standard input": {"-"}, "no such file": {filepath.Join(dir, "x.log")}, "no match": {filepath.Join(dir, "*.log")}, "nothing in it": {dir},
	} {
		_, err := Open(paths, strings.NewReader(""))
		require.ErrorContains(t, err, paths[0], name)
	}
	odd := put(t, dir, "a[1]{x}*?\\.jsonl", jsonl(3, at))
	_, all := read(t, Options{}, odd)
	assert.NotEmpty(t, all)
	put(t, dir, "weights.bin", strings.Repeat("\x00\x01\x02\xff\xfe", 1000))
	r, _ := read(t, Options{}, dir)
	for _, f := range r.Files {
		assert.Equal(t, strings.HasSuffix(f.Path, ".bin"), f.Binary, f.Path)
		assert.Equal(t, !f.Binary, f.Receiver == "train_log", f.Path)
	}
}

// tenSteps is a log of ten steps.
func tenSteps(t *testing.T) *Input {
	t.Helper()
	in, err := Open([]string{put(t, t.TempDir(), "train.jsonl", jsonl(10, at))}, nil)
	require.NoError(t, err)
	t.Cleanup(in.Close)
	return in
}

// A slow sink loses nothing at the end of the reading, and a sink that can refuse is waited for.
func TestSlowSink(t *testing.T) {
	in := tenSteps(t)
	for _, noParts := range []bool{false, true} {
		steps := 0
		sink, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
			time.Sleep(50 * time.Millisecond) // longer than the reading takes
			steps += td.SpanCount()
			return ctx.Err()
		})
		require.NoError(t, err)
		_, err = Read(t.Context(), in, Options{}, Sink{Traces: sink, NoParts: noParts})
		require.NoError(t, err)
		assert.GreaterOrEqual(t, steps, 10)
	}
}

func TestStopped(t *testing.T) {
	in := tenSteps(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Read(ctx, in, Options{}, Sink{})
	require.ErrorIs(t, err, context.Canceled)
}

func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	put(b, dir, "tq.log", tq(5000, at))
	put(b, dir, "train.jsonl", jsonl(10000, at))
	in, err := Open([]string{dir}, nil)
	require.NoError(b, err)
	b.SetBytes(in.Bytes)
	b.ReportAllocs()
	for b.Loop() {
		_, err := Read(b.Context(), in, Options{}, Sink{})
		require.NoError(b, err)
	}
}

// Weights and repositories are passed over, and counted, but for a file named itself or spelled out.
func TestOpenPassesOver(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, name := range []string{"train.log", "ckpt/a.pt", "ckpt/b.pt", "src/.git/HEAD", "src/.git/refs/main"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600))
	}
	for path, want := range map[string]struct {
		files  string
		passed nonlog.Tally
	}{
		"":                {"train.log", nonlog.Tally{".pt": 2, ".git": 1}},
		"**":              {"train.log", nonlog.Tally{".pt": 2, ".git": 1}},
		"ckpt/a.pt":       {"ckpt/a.pt", nonlog.Tally{}},
		"**/*.pt":         {"ckpt/a.pt ckpt/b.pt", nonlog.Tally{}},
		"src/.git":        {"src/.git/HEAD src/.git/refs/main", nonlog.Tally{}},
		"src/.git/*EA*":   {"src/.git/HEAD", nonlog.Tally{}},
		"{train*,ckpt/*}": {"train.log", nonlog.Tally{".pt": 2}},
	} {
		in, err := Open([]string{filepath.Join(dir, path)}, nil)
		require.NoError(t, err, path)
		var files []string
		for _, f := range in.Files {
			rel, _ := filepath.Rel(dir, f)
			files = append(files, rel)
		}
		assert.Equal(t, want.files, strings.Join(files, " "), path)
		assert.Equal(t, want.passed, in.PassedOver, path)
	}
	_, err = Open([]string{filepath.Join(dir, "ckpt")}, nil)
	require.ErrorIs(t, err, ErrNoFiles)
	require.ErrorContains(t, err, "passed over by name, as no logs: 2 .pt")

	// The reason of a path without files is the path's own; the sums are of all paths.
	empty := t.TempDir()
	in, err := Open([]string{dir, empty}, nil)
	require.NoError(t, err)
	defer in.Close()
	require.Len(t, in.Missing, 1)
	require.EqualError(t, in.Missing[0], empty+": no file to read")
	assert.Equal(t, nonlog.Tally{".pt": 2, ".git": 1}, in.PassedOver)
}

// The kernel's file systems are passed over, with all their endless files; a file named itself is read.
func TestOpenPassesOverTheKernels(t *testing.T) {
	for _, path := range []string{"/proc", "/proc/self", "/proc/**/*", "/pro?/**"} {
		_, err := Open([]string{path}, nil)
		require.ErrorIs(t, err, ErrNoFiles, path)
		require.ErrorContains(t, err, "(proc)", path)
	}
	in, err := Open([]string{"/proc/version"}, nil)
	require.NoError(t, err)
	defer in.Close()
	assert.Equal(t, []string{"/proc/version"}, in.Files)
	assert.Empty(t, in.Kernel)
}

// Neither FIFOs, sockets, devices nor loops of links are opened.
func TestOpenTakesRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(path("a.log"), []byte("x\n"), 0o600))
	require.NoError(t, os.Symlink(".", path("loop")))
	require.NoError(t, os.Symlink("b", path("a")))
	require.NoError(t, os.Symlink("a", path("b")))
	require.NoError(t, syscall.Mkfifo(path("fifo.log"), 0o600))
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path("s.log"))
	require.NoError(t, err)
	defer l.Close()
	if os.Geteuid() == 0 { // else nobody may make one
		require.NoError(t, syscall.Mknod(path("zero.log"), syscall.S_IFCHR|0o600, 1<<8|5))
	}
	for _, name := range []string{dir, path("*"), path("**/*"), path("**")} {
		in, err := Open([]string{name}, nil)
		require.NoError(t, err, name)
		assert.Equal(t, []string{path("a.log")}, in.Files, name)
		in.Close()
	}
}

// Links behind globs and in directories are followed as by a collector: if the variable says so.
func TestOpenLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	path := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.MkdirAll(path("pods/0"), 0o700))
	require.NoError(t, os.Mkdir(path("containers"), 0o700))
	require.NoError(t, os.WriteFile(path("pods/0/0.log"), []byte("x\n"), 0o600))
	require.NoError(t, os.Symlink(path("pods/0/0.log"), path("containers/a.log")))
	for _, name := range []string{path("containers/*.log"), path("containers")} {
		t.Setenv(FollowSymlinks, "")
		_, err = Open([]string{name}, nil)
		require.ErrorIs(t, err, ErrNoFiles)
		require.ErrorContains(t, err, "1 symbolic link passed over, "+path("containers/a.log")+": TRAINBRIDGE_FOLLOW_SYMLINKS=true follows links")
		t.Setenv(FollowSymlinks, "true")
		in, err := Open([]string{name}, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{path("pods/0/0.log")}, in.Files)
		assert.Empty(t, in.LinksText())
		in.Close()
	}
	t.Setenv(FollowSymlinks, "")
	in, err := Open([]string{path("containers/a.log")}, nil)
	require.NoError(t, err, "somebody has named it")
	assert.Equal(t, []string{path("pods/0/0.log")}, in.Files)
	in.Close()
}

// An answer covers at most MostFiles files, and reports the number left out; a file named twice counts once.
func TestOpenIsBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 8 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.log", i)), []byte("x\n"), 0o600))
	}
	for most, want := range map[int]struct {
		left int
		more bool
	}{8: {0, false}, 6: {2, false}, 1: {7, false}} {
		in, err := open([]string{dir, dir}, nil, most)
		require.NoError(t, err)
		assert.Len(t, in.Files, min(8, most))
		assert.Equal(t, want.left, in.Left, most)
		assert.Equal(t, want.more, in.More, most)
		in.Close()
	}
	for i := range countedTo {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("more%02d.log", i)), []byte("x\n"), 0o600))
	}
	in, err := open([]string{dir}, nil, 1)
	require.NoError(t, err)
	defer in.Close()
	assert.Equal(t, countedTo, in.Left)
	assert.True(t, in.More)
}
