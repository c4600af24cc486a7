package inotify

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ear is a listener with all its events.
type ear struct {
	*Listener
	t     *testing.T
	woken chan struct{}
	born  chan birth
	close func()
	paths map[string]bool
}

func listen(t *testing.T, dirs ...string) *ear {
	t.Helper()
	e := &ear{t: t, woken: make(chan struct{}, 1), born: make(chan birth, 1000), paths: map[string]bool{}}
	var err error
	e.Listener, err = Open(time.Millisecond, func() {
		select {
		case e.woken <- struct{}{}:
		default:
		}
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { e.Births(ctx, func(path string, created bool) { e.born <- birth{path, created} }) })
	e.close = func() { e.Close(); cancel(); ended.Wait() }
	t.Cleanup(e.close)
	for _, dir := range dirs {
		add(t, e, dir)
	}
	return e
}

func add(t *testing.T, e *ear, dir string) (fresh bool) {
	t.Helper()
	fresh, err := e.Add(dir)
	require.NoError(t, err)
	return fresh
}

// hearsOf waits for a hint.
func (e *ear) hearsOf(path string) {
	e.t.Helper()
	for deadline := time.After(time.Minute); !e.paths[path]; {
		select {
		case <-e.woken:
		case <-deadline:
			require.FailNow(e.t, "no event arrived", path)
		}
		maps.Copy(e.paths, e.Hints().Paths)
	}
}

func (e *ear) hearsBirth(path string, created bool) {
	e.t.Helper()
	select {
	case b := <-e.born:
		assert.Equal(e.t, birth{path, created}, b)
	case <-time.After(time.Minute):
		require.FailNow(e.t, "no birth arrived", path)
	}
}

// instances counts the inotify instances of this process.
func instances(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == "anon_inode:inotify" {
			n++
		}
	}
	return n
}

func write(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte("line\n"), 0o600))
}

// Many listeners share two instances, and each receives the events of its directories until it is closed.
func TestShared(t *testing.T) {
	require.Zero(t, instances(t))
	dir, other := t.TempDir(), t.TempDir()
	var ears []*ear
	for range 12 {
		ears = append(ears, listen(t, dir))
	}
	apart := listen(t, other)
	require.Equal(t, 2, instances(t))
	a, b := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	write(t, a)
	for _, e := range ears {
		e.hearsBirth(a, true)
		e.hearsOf(a)
		e.hearsOf(dir)
	}
	for _, e := range ears[:6] {
		e.close()
		e.close()
		add(t, e, dir)
	}
	require.NoError(t, os.Rename(a, b))
	write(t, filepath.Join(other, "c.log"))
	for _, e := range ears[6:] {
		e.hearsBirth(b, false)
		e.hearsOf(b)
		e.close()
	}
	mu.Lock()
	assert.Len(t, current.hints.watched, 1, "a directory of which nobody wants to hear is not watched")
	mu.Unlock()
	apart.hearsBirth(filepath.Join(other, "c.log"), true)
	apart.hearsOf(other)
	assert.NotContains(t, apart.paths, dir)
	assert.Empty(t, ears[0].born)
	apart.close()
	require.Zero(t, instances(t))
	write(t, a)
	listen(t, dir)
	require.Equal(t, 2, instances(t))
}

// A renamed directory is watched under its new name, a recreated directory after it was added again.
func TestDirectories(t *testing.T) {
	root := t.TempDir()
	x, y := filepath.Join(root, "x"), filepath.Join(root, "y")
	require.NoError(t, os.Mkdir(x, 0o700))
	e := listen(t, x, x)
	require.NoError(t, os.Rename(x, y))
	e.hearsOf(x)
	add(t, e, y)
	e.Forget(func(dir string) bool { return dir == x })
	write(t, filepath.Join(y, "a.log"))
	e.hearsBirth(filepath.Join(y, "a.log"), true)
	require.NoError(t, os.RemoveAll(y))
	e.hearsOf(y)
	_, err := e.Add(y)
	require.Error(t, err)
	require.NoError(t, os.Mkdir(y, 0o700))
	add(t, e, y)
	write(t, filepath.Join(y, "b.log"))
	e.hearsBirth(filepath.Join(y, "b.log"), true)
	e.close()
	assert.Zero(t, e.watches)
}

// A name that has become another directory's belongs only to the new directory, even while the old still exists.
func TestAnotherDirectory(t *testing.T) {
	root := t.TempDir()
	older, newer, latest := filepath.Join(root, "run-42"), filepath.Join(root, "run-43"), filepath.Join(root, "latest")
	require.NoError(t, errors.Join(os.Mkdir(older, 0o700), os.Mkdir(newer, 0o700), os.Symlink(older, latest)))
	e := listen(t, latest)
	require.NoError(t, errors.Join(os.Remove(latest), os.Symlink(newer, latest)))
	assert.True(t, add(t, e, latest))
	assert.False(t, add(t, e, latest))
	write(t, filepath.Join(older, "a.log"))
	write(t, filepath.Join(newer, "b.log"))
	e.hearsBirth(filepath.Join(latest, "b.log"), true)
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, 2, e.watches)
}

// event is an event in the kernel's format.
func event(wd int32, mask uint32, name string) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(wd))
	b = binary.NativeEndian.AppendUint32(b, mask)
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = binary.NativeEndian.AppendUint32(b, uint32(len(name)+1))
	return append(append(b, name...), 0)
}

// Events dropped by the kernel may be of any directory.
func TestOverflow(t *testing.T) {
	for _, e := range []*ear{listen(t), listen(t, t.TempDir())} {
		current.dispatch(current.hints, event(-1, unix.IN_Q_OVERFLOW, ""))
		<-e.woken
		assert.True(t, e.Hints().All)
	}
}

// A listener that never reads takes nothing from the others, and memory only up to a bound.
func TestSlow(t *testing.T) {
	dir := t.TempDir()
	slow, err := Open(time.Hour, func() {})
	require.NoError(t, err)
	defer slow.Close()
	_, err = slow.Add(dir)
	require.NoError(t, err)
	quick := listen(t, dir)
	for wd := range current.hints.watched {
		for n := range maxWaiting + 1 {
			name := strconv.Itoa(n)
			current.dispatch(current.hints, event(wd, unix.IN_MODIFY, name))
			require.True(t, quick.Hints().Paths[filepath.Join(dir, name)])
		}
	}
	assert.Less(t, len(slow.hints.Paths), maxWaiting)
	assert.True(t, slow.Hints().All)
	for wd := range current.births.watched {
		for range maxWaiting + 1 {
			current.dispatch(current.births, event(wd, unix.IN_CREATE, "a.log"))
			<-quick.born
		}
	}
	assert.Equal(t, maxWaiting, len(slow.born)) //nolint:testifylint // Len would print them all
	assert.True(t, slow.Hints().All)
	assert.False(t, quick.Hints().All)
}

// A listener that begins to watch a directory, while its last watcher stops, receives the events.
func TestAddWhileOthersEnd(t *testing.T) {
	dir := t.TempDir()
	e := listen(t)
	stop := make(chan struct{})
	o := listen(t)
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = o.Add(dir)
				o.Forget(func(string) bool { return true })
			}
		}
	})
	for n := range 300 {
		path := filepath.Join(dir, strconv.Itoa(n))
		add(t, e, dir)
		write(t, path)
		e.hearsBirth(path, true)
		e.hearsOf(path)
		e.Forget(func(string) bool { return true })
	}
	close(stop)
	ended.Wait()
}

// No more directories are watched than the bound says.
func TestBound(t *testing.T) {
	e := listen(t)
	e.watches = maxWatches - 1
	dir := t.TempDir()
	add(t, e, dir)
	add(t, e, dir)
	_, err := e.Add(t.TempDir())
	require.ErrorIs(t, err, errTooManyHere)
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, maxWatches+1, e.watches)
}

// If no instance is available, the error has the reason and a remedy, and half a pair is closed.
func TestNoInstance(t *testing.T) {
	free, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Close(free))
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	for left := range 2 {
		fewer := limit
		fewer.Cur = uint64(free + left)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &fewer))
		_, err := Open(time.Second, func() {})
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
		require.ErrorIs(t, err, errTooManyInstances)
		require.ErrorContains(t, err, "fs.inotify.max_user_instances")
		assert.Zero(t, instances(t))
	}
	listen(t)
}
