package statestorage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/trainbridge/trainbridge/internal/storageclient"
)

// rig is an extension with a client, and the log of both.
type rig struct {
	*client
	ext  *stateStorage
	logs *observer.ObservedLogs
}

var tqTrace = component.MustNewID("tq_trace")

// newExtension is an extension before Start: only calls of check look at the directory.
func newExtension(tb testing.TB, dir string) (*stateStorage, *observer.ObservedLogs) {
	tb.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	set := extensiontest.NewNopSettings(NewFactory().Type())
	set.Logger = zap.New(core)
	ext, err := NewFactory().Create(tb.Context(), set, &Config{Directory: dir})
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, ext.Shutdown(context.Background())) })
	return ext.(*stateStorage), logs
}

func open(tb testing.TB, dir string) *rig {
	tb.Helper()
	ext, logs := newExtension(tb, dir)
	c, err := ext.GetClient(tb.Context(), component.KindReceiver, tqTrace, "tail")
	require.NoError(tb, err)
	return &rig{c.(*client), ext, logs}
}

func (r *rig) shutdown(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, r.ext.Shutdown(tb.Context()))
}

func (r *rig) set(tb testing.TB, key, value string) {
	tb.Helper()
	require.NoError(tb, r.Set(tb.Context(), key, []byte(value)))
}

func (r *rig) texts() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]string{}
	for k, v := range r.values {
		out[k] = string(v)
	}
	return out
}

// warnings are the log entries of level warn and above, with their fields.
func warnings(logs *observer.ObservedLogs) []string {
	var out []string
	for _, e := range logs.TakeAll() {
		if e.Level >= zapcore.WarnLevel {
			out = append(out, fmt.Sprint(e.Message, e.ContextMap()))
		}
	}
	return out
}

// onDisk is the state that another collector would find after a crash now.
func onDisk(tb testing.TB, path string) map[string]string {
	tb.Helper()
	b, err := os.ReadFile(path)
	require.NoError(tb, err)
	c := &client{values: map[string][]byte{}}
	good, err := readLog(bytes.NewReader(b), int64(len(b)), c.apply)
	require.NoError(tb, err)
	require.EqualValues(tb, len(b), good)
	return (&rig{client: c}).texts()
}

func TestClient(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	r := open(t, dir)
	assert.Equal(t, "receiver.tq_trace.tail.state", filepath.Base(r.path))
	r.set(t, "a", "1")
	r.set(t, "b", "")
	get := storage.GetOperation("c")
	require.NoError(
		t,
		r.Batch(
			t.Context(), storage.SetOperation("c", []byte("3")), get, storage.DeleteOperation("c"), storage.DeleteOperation("not there"), storage.DeleteOperation("a"),
			storage.SetOperation("a", []byte("2")),
		),
	)
	assert.Equal(t, "3", string(get.Value))
	v, err := r.Get(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, "2", string(v))
	v[0] = 'x' // the caller owns the slice
	v, err = r.Get(t.Context(), "b")
	require.NoError(t, err)
	assert.Equal(t, []byte{}, v)
	v, err = r.Get(t.Context(), "c")
	require.NoError(t, err)
	assert.Nil(t, v)
	_, err = r.ext.GetClient(t.Context(), component.KindReceiver, tqTrace, "tail")
	require.ErrorContains(t, err, r.path+" is open already")
	r.shutdown(t)
	require.ErrorIs(t, r.Set(t.Context(), "a", nil), errClosed)

	r = open(t, dir)
	assert.Equal(t, map[string]string{"a": "2", "b": ""}, r.texts())
	require.NoError(t, r.Close(t.Context()))
	require.NoError(t, r.Close(t.Context()))
	_, err = r.ext.GetClient(t.Context(), component.KindReceiver, tqTrace, "tail")
	require.NoError(t, err, "it is closed")
	assert.Empty(t, warnings(r.logs))
}

func TestShutdownWithoutStart(t *testing.T) {
	ext, _ := newExtension(t, t.TempDir())
	require.NoError(t, ext.Shutdown(t.Context()))
}

func TestStart(t *testing.T) {
	ext, logs := newExtension(t, filepath.Join(t.TempDir(), "state"))
	require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, ext.Shutdown(t.Context()))
	require.NoError(t, ext.Shutdown(t.Context()))
	assert.Empty(t, warnings(logs))
}

func TestFileName(t *testing.T) {
	name := func(id string) string {
		var cid component.ID
		require.NoError(t, cid.UnmarshalText([]byte(id)))
		return fileName(component.KindReceiver, cid, "tail")
	}
	assert.Equal(t, "receiver.nccl%2Fjob%2F17.tail.state", name("nccl/job/17"))
	long := name("nccl/" + strings.Repeat("…", 300))
	assert.Less(t, len(long), 230)
	assert.NotEqual(t, long, name("nccl/"+strings.Repeat("…", 301)))
}

// history stores some batches, and returns the state and the file size after each, and the final file.
func history(t *testing.T, dir string) (states []map[string]string, ends []int, file []byte) {
	t.Helper()
	r := open(t, dir)
	note := func() {
		states, ends = append(states, r.texts()), append(ends, int(r.size))
	}
	note()
	for i := range 3 {
		require.NoError(
			t,
			r.Batch(
				t.Context(), storage.SetOperation("index", []byte(strconv.Itoa(i))), storage.SetOperation("s"+strconv.Itoa(i), []byte("position")),
				storage.DeleteOperation("s"+strconv.Itoa(i-1)),
			),
		)
		note()
	}
	r.shutdown(t)
	file, err := os.ReadFile(r.path)
	require.NoError(t, err)
	return states, ends, file
}

// damaged opens a state file with the content, and returns the state, the warnings, and the file set aside.
func damaged(t *testing.T, content []byte) (state map[string]string, warned []string, aside []byte) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, fileName(component.KindReceiver, tqTrace, "tail"))
	require.NoError(t, os.WriteFile(path, content, 0o600))
	r := open(t, dir)
	state, warned = r.texts(), warnings(r.logs)
	for _, w := range warned {
		require.Contains(t, w, path)
	}
	r.set(t, "next", "1")
	assert.Equal(t, r.texts(), onDisk(t, path))
	r.shutdown(t)
	found, err := filepath.Glob(path + ".*")
	require.NoError(t, err)
	if len(found) > 0 {
		require.Len(t, found, 1)
		aside, err = os.ReadFile(found[0])
		require.NoError(t, err)
	}
	return state, warned, aside
}

// A state file truncated anywhere has the state after one of its batches, and storing continues from there.
func TestCutAnywhere(t *testing.T) {
	states, ends, file := history(t, t.TempDir())
	for size := range len(file) + 1 {
		state, warned, aside := damaged(t, file[:size])
		whole := -1
		for i, end := range ends {
			if end <= size {
				whole = i
			}
		}
		switch {
		case whole < 0: // shorter than its first line: 0 bytes, 1 byte, …
			require.Empty(t, state, size)
			require.Len(t, warned, 1, size)
			require.Equal(t, string(file[:size]), string(aside))
		case ends[whole] == size:
			require.Equal(t, states[whole], state, size)
			require.Empty(t, warned, size)
			require.Nil(t, aside)
		default:
			require.Equal(t, states[whole], state, size)
			require.Len(t, warned, 1, size)
			require.Nil(t, aside)
		}
	}
}

// The same for a state file garbled anywhere; the garbled file is kept.
func TestGarbledAnywhere(t *testing.T) {
	states, ends, file := history(t, t.TempDir())
	for at := range file {
		n := 1 + at%3*len(file) // one byte, or all to the end
		bad := bytes.Clone(file)
		for i := at; i < min(at+n, len(bad)); i++ {
			bad[i] ^= 0xa5
		}
		state, warned, aside := damaged(t, bad)
		want := map[string]string{}
		for i, end := range ends {
			if end <= at {
				want = states[i]
			}
		}
		require.Equal(t, want, state, at)
		require.Len(t, warned, 1, at)
		if aside != nil { // else a garbled length made the end look truncated
			require.Equal(t, bad, aside, at)
		}
	}
}

// Anything at the path other than a state file is set aside.
func TestForeign(t *testing.T) {
	for name, content := range map[string][]byte{
		"zeros":           make([]byte, 1<<16),
		"a text":          []byte("hello\n"),
		"another version": []byte("trainbridge state 9\n and more"),
		"a longer line":   []byte(logHeader[:len(logHeader)-1] + "1\n"),
		"huge length":     []byte(logHeader + "\xff\xff\xff\xff\xff\xff\xff\x7f01234567890123456789"),
		"huge length 2":   []byte(logHeader + "\xff\xff\xff\xff\xff\xff\xff\xff01234567890123456789"),
	} {
		t.Run(name, func(t *testing.T) {
			state, warned, aside := damaged(t, content)
			assert.Empty(t, state)
			assert.Len(t, warned, 1)
			if !strings.HasPrefix(name, "huge") {
				assert.Equal(t, content, aside)
			}
		})
	}
	for name, put := range map[string]func(path string) error{
		"a directory":           func(path string) error { return os.MkdirAll(filepath.Join(path, "with", "more"), 0o700) },
		"a link to a directory": func(path string) error { return os.Symlink(filepath.Dir(path), path) },
		"a fifo":                func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, fileName(component.KindReceiver, tqTrace, "tail"))
			require.NoError(t, put(path))
			r := open(t, dir)
			warned := warnings(r.logs)
			require.Len(t, warned, 1)
			assert.Contains(t, warned[0], path)
			r.set(t, "a", "1")
			assert.Equal(t, r.texts(), onDisk(t, path))
		})
	}
}

// After any damage to the directory while the collector runs, all state is rewritten, even if no component stores anything.
func TestChangedWhileRunning(t *testing.T) {
	all := map[string]string{"a": "1", "b": "2"}
	for _, tt := range []struct {
		name   string
		change func(r *rig) error
		aside  bool
	}{
		{"directory deleted", func(r *rig) error { return os.RemoveAll(r.ext.dir) }, false},
		{"directory renamed", func(r *rig) error { return os.Rename(r.ext.dir, r.ext.dir+".old") }, false},
		{"directory made again", func(r *rig) error {
			_ = os.RemoveAll(r.ext.dir)
			return os.Mkdir(r.ext.dir, 0o700)
		}, false},
		{"all files deleted", func(r *rig) error { _ = os.Remove(r.path); return os.Remove(r.ext.lock.Name()) }, false},
		{"lock deleted", func(r *rig) error { return os.Remove(r.ext.lock.Name()) }, false},
		{"file deleted", func(r *rig) error { return os.Remove(r.path) }, false},
		{"file emptied", func(r *rig) error { return os.Truncate(r.path, 0) }, false},
		{"file cut", func(r *rig) error { return os.Truncate(r.path, r.size/2) }, false},
		{"file appended to", func(r *rig) error { return os.Truncate(r.path, r.size+1) }, false},
		{"file replaced", func(r *rig) error {
			other := filepath.Join(filepath.Dir(r.ext.dir), "other")
			_ = os.WriteFile(other, []byte("theirs"), 0o600)
			return os.Rename(other, r.path)
		}, true},
		{"file replaced by a directory", func(r *rig) error { _ = os.Remove(r.path); return os.Mkdir(r.path, 0o700) }, true},
	} {
		for name, idle := range map[string]bool{"noticed when idle": true, "noticed when storing": false} {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "state")
				r := open(t, dir)
				r.set(t, "a", "1")
				r.set(t, "b", "2")
				require.NoError(t, tt.change(r))
				if !idle {
					r.set(t, "b", "2")
				}
				r.ext.check()
				require.Equal(t, all, onDisk(t, r.path))
				warned := warnings(r.logs)
				want := 1
				if tt.aside {
					want = 2 // with the warning about the file set aside
				}
				require.Len(t, warned, want, "it is said once")
				assert.Contains(t, warned[0], dir)
				found, err := filepath.Glob(r.path + ".*")
				require.NoError(t, err)
				assert.Equal(t, tt.aside, len(found) == 1)
				r.set(t, "c", "3")
				assert.Equal(t, r.texts(), onDisk(t, r.path))
				_, err = lockFile(filepath.Join(dir, lockName))
				require.ErrorIs(t, err, errInUse, "nobody else may come now")
				r.shutdown(t)

				r = open(t, dir)
				assert.Equal(t, map[string]string{"a": "1", "b": "2", "c": "3"}, r.texts())
				assert.Empty(t, warnings(r.logs))
			})
		}
	}
}

// A directory that cannot be created again is logged once, and so is its recovery.
func TestBlockedWhileRunning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	r := open(t, dir)
	r.set(t, "a", "1")
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	for range 3 {
		r.ext.check()
		require.ErrorContains(t, r.Set(t.Context(), "b", []byte("2")), dir+": not a directory")
	}
	warned := warnings(r.logs)
	require.Len(t, warned, 1)
	assert.Contains(t, warned[0], dir+": not a directory")
	assert.Equal(t, map[string]string{"a": "1"}, r.texts(), "what was not stored is not there")
	require.NoError(t, os.Remove(dir))
	r.ext.check()
	assert.Equal(t, 1, r.logs.FilterMessage("State is stored again").Len())
	assert.Equal(t, map[string]string{"a": "1"}, onDisk(t, r.path))
}

// A full disk loses no stored value, and storing continues once space is free.
func TestFullDisk(t *testing.T) {
	const inner = "STATE_FULL_DISK"
	if os.Getenv(inner) == "" { // in a process of its own: the limit is per process, and the test binary writes files, too
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), inner+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "--- PASS: "+t.Name())
		return
	}
	r := open(t, t.TempDir())
	r.set(t, "a", "1")
	before := r.texts()
	for _, room := range []int64{0, 1, batchHead, batchHead + 3, 40} { // the end of the disk lies somewhere in the batch
		full(t, r.size+room, func() {
			for range 3 {
				require.ErrorIs(t, r.Set(t.Context(), "b", bytes.Repeat([]byte("2"), 100)), unix.EFBIG)
				r.ext.check()
			}
		})
		assert.Equal(t, before, r.texts())
		require.Equal(t, before, onDisk(t, r.path), room)
	}
	full(t, 5, func() { // rewriting the whole file fails likewise
		require.NoError(t, os.Remove(r.path))
		r.ext.check()
		require.ErrorIs(t, r.Set(t.Context(), "b", nil), unix.EFBIG)
	})
	assert.Len(t, warnings(r.logs), 1)
	r.ext.check()
	assert.Equal(t, before, onDisk(t, r.path))
	r.set(t, "b", "2")
	assert.Equal(t, map[string]string{"a": "1", "b": "2"}, onDisk(t, r.path))
	left, err := filepath.Glob(r.path + ".*")
	require.NoError(t, err)
	assert.Empty(t, left)
}

// full calls f while no file of this process can grow beyond size.
func full(t *testing.T, size int64, f func()) {
	t.Helper()
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(size), Max: old.Max}))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &old)) }()
	f()
}

// A second collector does not start, and says who has the directory.
func TestSecondCollector(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	first.set(t, "a", "1")
	host, err := os.Hostname()
	require.NoError(t, err)
	who := fmt.Sprintf("'directory': %s is in use by another collector (pid %d on %s)", dir, os.Getpid(), host)
	second, logs := newExtension(t, dir)
	require.ErrorContains(t, second.Start(t.Context(), componenttest.NewNopHost()), who)
	_, err = second.GetClient(t.Context(), component.KindReceiver, tqTrace, "tail")
	require.ErrorContains(t, err, who)
	for _, text := range []string{"", "pid", "pid 5", "\x00\xff\n", strings.Repeat("pid ", 1000)} {
		require.NoError(t, os.WriteFile(first.ext.lock.Name(), []byte(text), 0o600))
		require.ErrorContains(t, second.Start(t.Context(), componenttest.NewNopHost()), "(its pid is not known)")
	}
	first.shutdown(t)
	require.NoError(t, second.Start(t.Context(), componenttest.NewNopHost()))
	assert.Empty(t, warnings(logs))
}

// A collector started on a deleted directory's path keeps the new directory; the first collector stores again when the second has gone.
func TestDirectoryTakenOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first := open(t, dir)
	first.set(t, "a", "1")
	require.NoError(t, os.RemoveAll(dir))
	second := open(t, dir)
	second.set(t, "z", "26")
	first.ext.check()
	require.ErrorIs(t, first.Set(t.Context(), "b", nil), errInUse)
	assert.Equal(t, map[string]string{"z": "26"}, onDisk(t, second.path))
	second.shutdown(t)
	first.set(t, "b", "2")
	assert.Equal(t, map[string]string{"a": "1", "b": "2"}, onDisk(t, first.path))
}

// The directory is deleted while the collector starts.
func TestDirectoryDeletedDuringStart(t *testing.T) {
	for range 300 {
		ext, _ := newExtension(t, filepath.Join(t.TempDir(), "state"))
		require.NoError(t, ext.own())
		begun, done := make(chan struct{}), make(chan struct{})
		go func() {
			close(begun)
			_ = os.RemoveAll(ext.dir)
			close(done)
		}()
		<-begun
		c, err := ext.GetClient(t.Context(), component.KindReceiver, tqTrace, "tail")
		<-done
		require.NoError(t, err)
		require.NoError(t, c.Set(t.Context(), "k", []byte("v")))
	}
}

func TestUnusableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	ext, _ := newExtension(t, filepath.Join(file, "state"))
	require.ErrorContains(t, ext.Start(t.Context(), componenttest.NewNopHost()), "'directory': mkdir "+file)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, lockName), 0o700))
	ext, _ = newExtension(t, dir)
	require.ErrorContains(t, ext.Start(t.Context(), componenttest.NewNopHost()), "'directory': cannot be locked: open "+filepath.Join(dir, lockName))
}

// The file's size is bounded by the state, for any number of writes.
func TestBounded(t *testing.T) {
	r := open(t, t.TempDir())
	value := bytes.Repeat([]byte("v"), 100_000)
	for i := range 100 {
		require.NoError(t, r.Batch(t.Context(), storage.SetOperation("s"+strconv.Itoa(i%2), value), storage.SetOperation("gone"+strconv.Itoa(i), value)))
		require.NoError(t, r.Delete(t.Context(), "gone"+strconv.Itoa(i)))
		info, err := os.Stat(r.path)
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(4*200_100+spare))
	}
	assert.Equal(t, r.texts(), onDisk(t, r.path))
	assert.Len(t, r.texts(), 2)
	assert.EqualValues(t, 2*100_002, r.used)
	assert.Empty(t, warnings(r.logs))
}

// Against a map, with restarts, damage and deletion in between: a state is always one of the stored states.
func TestModel(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 7))
		dir := filepath.Join(t.TempDir(), "state")
		r := open(t, dir)
		want := map[string]string{}
		for range 100 {
			switch rng.IntN(12) {
			case 0:
				r.shutdown(t)
				r = open(t, dir)
			case 1:
				require.NoError(t, os.RemoveAll(dir))
				r.ext.check()
			case 2: // a crash while a batch was written
				r.shutdown(t)
				f, err := os.OpenFile(r.path, os.O_APPEND|os.O_WRONLY, 0)
				require.NoError(t, err)
				b := appendBatch(nil, []*storage.Operation{storage.SetOperation("k1", []byte("torn"))})
				_, err = f.Write(b[:rng.IntN(len(b))])
				require.NoError(t, err)
				require.NoError(t, f.Close())
				r = open(t, dir)
			default:
				var ops []*storage.Operation
				for range rng.IntN(4) {
					key := "k" + strconv.Itoa(rng.IntN(20))
					if rng.IntN(3) == 0 {
						ops = append(ops, storage.DeleteOperation(key))
						delete(want, key)
					} else {
						value := strconv.Itoa(rng.IntN(1000))
						ops = append(ops, storage.SetOperation(key, []byte(value)))
						want[key] = value
					}
				}
				require.NoError(t, r.Batch(t.Context(), ops...))
			}
			require.Equal(t, want, r.texts(), seed)
		}
		require.Equal(t, want, onDisk(t, r.path), seed)
		r.shutdown(t)
	}
}

func FuzzReadLog(f *testing.F) {
	log := appendBatch([]byte(logHeader), []*storage.Operation{storage.SetOperation("a", []byte("1")), storage.DeleteOperation("b")})
	f.Add(log)
	f.Add(appendBatch(log, []*storage.Operation{storage.SetOperation("c", nil)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &client{values: map[string][]byte{}}
		good, err := readLog(bytes.NewReader(b), int64(len(b)), c.apply)
		if err == nil && good != int64(len(b)) || good > int64(len(b)) {
			t.Fatal(good, err)
		}
		again := &client{values: map[string][]byte{}}
		if _, err := readLog(bytes.NewReader(b[:good]), good, again.apply); good > 0 && (err != nil || !maps.EqualFunc(c.values, again.values, bytes.Equal)) {
			t.Fatal(err)
		}
		_, _ = decodeBatch(b)
	})
}

// disk injects faults between the storage and its files: at times files cannot grow, no blocks are left, or fsync fails, after which dirty pages are lost and
// later fsyncs succeed. After each call, died gets the files that a dead machine, or a dead process, would leave.
type disk struct {
	testing.TB
	dir   string
	full  map[string]bool // by path
	room  int64           // blocks
	fails func() bool
	died  func(left func(path string) []byte)

	synced  map[string][]byte // by path
	renamed map[string][]byte // files whose names come with the next sync of the directory
	failed  map[*os.File]bool
	syncs   int // of files
}

func newDisk(tb testing.TB, dir string, fails func() bool) *disk {
	tb.Helper()
	return &disk{
		TB: tb, dir: dir, full: map[string]bool{}, room: math.MaxInt32, fails: fails, synced: map[string][]byte{}, renamed: map[string][]byte{},
		failed: map[*os.File]bool{},
	}
}

func (d *disk) writeAt(f *os.File, b []byte, at int64) (n int, err error) {
	const block = 4096
	free := -at & (block - 1) // the rest of the last block
	if !d.full[strings.TrimSuffix(f.Name(), ".new")] {
		free += d.room * block
	}
	if free < int64(len(b)) {
		b, err = b[:free], unix.ENOSPC
	}
	if n, e := f.WriteAt(b, at); e != nil {
		return n, e
	}
	d.die()
	return len(b), err
}

func (d *disk) sync(f *os.File) error {
	if f.Name() != d.dir {
		d.syncs++
	}
	if d.fails() {
		d.failed[f] = true
		return unix.EIO
	}
	path, isNew := strings.CutSuffix(f.Name(), ".new")
	if _, same := isAt(f, f.Name()); isNew && !same {
		isNew = false
	}
	switch {
	case f.Name() == d.dir:
		maps.Copy(d.synced, d.renamed)
		clear(d.renamed)
	case d.failed[f]:
	case isNew:
		d.renamed[path] = d.read(f.Name())
	default:
		d.synced[path] = d.read(path)
	}
	d.die()
	return nil
}

func (d *disk) read(path string) []byte {
	b, err := os.ReadFile(path)
	require.NoError(d, err)
	return b
}

func (d *disk) die() {
	d.died(func(path string) []byte { return d.synced[path] })
	d.died(d.read)
}

// number is the number of put calls in a file; no call is partly present.
func number(tb testing.TB, file []byte) (n int) {
	tb.Helper()
	if file == nil {
		return 0
	}
	c := &client{values: map[string][]byte{}}
	if _, err := readLog(bytes.NewReader(file), int64(len(file)), c.apply); !errors.Is(err, errTorn) {
		require.NoError(tb, err)
	}
	n, _ = strconv.Atoi(string(c.values["n"]))
	want := []string{"n"}
	for i := max(1, n-9); i <= n; i++ {
		want = append(want, strconv.Itoa(i))
	}
	if n > 0 {
		require.ElementsMatch(tb, want, slices.Collect(maps.Keys(c.values)))
	}
	return n
}

// put counts one more.
func put(n int) []*storage.Operation {
	return []*storage.Operation{
		storage.SetOperation("n", []byte(strconv.Itoa(n))), storage.SetOperation(strconv.Itoa(n), make([]byte, 300)), storage.DeleteOperation(strconv.Itoa(n - 10)),
	}
}

func machines() uint64 {
	if testing.Short() {
		return 8
	}
	return 24
}

// For a death of the process or the machine at any time: a position on disk is never ahead of the counts up to it, although counting does not wait for the disk
// and continues while the disk fails. Once the disk works again, everything is stored.
func TestMachineDies(t *testing.T) {
	for seed := range machines() {
		r := rand.New(rand.NewPCG(seed, 0))
		failing, filling, crowding := seed%4 == 1, seed%4 == 2, seed%4 == 3
		dir := t.TempDir()
		ext, _ := newExtension(t, dir)
		open := func(kind component.Kind, name string) *client {
			c, err := ext.GetClient(t.Context(), kind, tqTrace, name)
			require.NoError(t, err)
			return c.(*client)
		}
		counts, promises, tail := open(component.KindConnector, "counts"), open(component.KindProcessor, "promises"), open(component.KindReceiver, "tail")
		stored, counted := 0, 0
		d := newDisk(t, dir, func() bool { return failing && r.IntN(3) == 0 })
		d.died = func(left func(path string) []byte) {
			at := number(t, left(tail.path))
			require.LessOrEqual(t, stored, at, "seed %d: what is stored is on the disk", seed)
			for _, c := range []*client{counts, promises} {
				require.LessOrEqual(t, at, number(t, left(c.path)), "seed %d: %s", seed, c.path)
			}
		}
		ext.fsync, ext.writeAt = d.sync, d.writeAt
		for range 60 {
			if filling && r.IntN(3) == 0 {
				c := []*client{counts, promises, tail}[r.IntN(3)]
				d.full[c.path] = !d.full[c.path]
			}
			if crowding {
				d.room = int64(r.IntN(3))
			}
			switch before := d.syncs; r.IntN(10) {
			default:
				for _, c := range []*client{promises, counts} {
					err := storageclient.Write(t.Context(), c, put(counted+1)...)
					require.True(t, err == nil && d.syncs == before || failing || filling || crowding, "it waits for the disk")
				}
				counted++
			case 6, 7:
				var ops []*storage.Operation
				for n := stored + 1; n <= counted; n++ {
					ops = append(ops, put(n)...)
				}
				if tail.Batch(t.Context(), ops...) == nil {
					stored = counted
				}
			case 8:
				ext.check()
			case 9:
				if storageclient.Sync(t.Context(), counts) == nil {
					require.Equal(t, counted, number(t, d.synced[counts.path]), "seed %d", seed)
				}
			}
			d.die()
		}
		failing, d.room = false, math.MaxInt32
		clear(d.full)
		ext.check() // within 2 s
		for _, c := range []*client{counts, promises} {
			require.Equal(t, counted, number(t, d.synced[c.path]), "seed %d", seed)
			require.Equal(t, counted, number(t, d.read(c.path)), "seed %d", seed)
		}
	}
}

// A batch as tail stores it: the positions of 10,000 grown files.
func BenchmarkBatch(b *testing.B) {
	r := open(b, b.TempDir())
	var ops []*storage.Operation
	for i := range 10_000 {
		ops = append(ops, storage.SetOperation("s"+strconv.Itoa(i), make([]byte, 250)))
	}
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, r.Batch(b.Context(), ops...))
	}
}
