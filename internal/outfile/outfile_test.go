package outfile

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

const interrupted = "TRAINBRIDGE_TEST_INTERRUPTED"

func TestMain(m *testing.M) {
	if dir := os.Getenv(interrupted); dir != "" {
		interruptItself(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// put writes "new" to a path as commands do.
func put(path string) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := Fill(f, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil {
		return err
	}
	return f.Commit()
}

// umask sets the mask of the process for a test.
func umask(t *testing.T, mask int) {
	t.Helper()
	before := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(before) })
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	fi, err := os.Lstat(path)
	require.NoError(t, err)
	return fi.Mode()
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// A new file has the usual mode of a new file.
func TestNewFileHasTheUmask(t *testing.T) {
	for mask, want := range map[int]fs.FileMode{0o022: 0o644, 0o027: 0o640, 0o077: 0o600, 0o002: 0o664, 0: 0o666} {
		umask(t, mask)
		path := filepath.Join(t.TempDir(), "x")
		require.NoError(t, put(path))
		assert.Equal(t, want, modeOf(t, path), "%o", mask)
		assert.Equal(t, "new", textOf(t, path))
		assert.Equal(t, []string{"x"}, names(t, filepath.Dir(path)))
	}
}

// A replaced file keeps its mode and owner; a process with the old file open goes on reading the old one.
func TestReplacedFileKeepsModeAndOwner(t *testing.T) {
	umask(t, 0o077)
	for _, mode := range []fs.FileMode{0o600, 0o644, 0o640, 0o666, 0o444} {
		path := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		uid, gid := os.Getuid(), os.Getgid()
		if uid == 0 {
			uid, gid = 12345, 23456
			require.NoError(t, os.Chown(path, uid, gid))
		}
		reader, err := os.Open(path)
		require.NoError(t, err)
		require.NoError(t, put(path))
		fi, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, fi.Mode())
		st := fi.Sys().(*syscall.Stat_t)
		assert.Equal(t, []int{uid, gid}, []int{int(st.Uid), int(st.Gid)})
		assert.Equal(t, "new", textOf(t, path))
		old, err := io.ReadAll(reader)
		require.NoError(t, err)
		require.NoError(t, reader.Close())
		assert.Equal(t, "old", string(old))
	}
}

// A symbolic link stays, and its target gets the content: also through several links, to another directory, and to a missing target.
func TestLinksStay(t *testing.T) {
	for name, it := range map[string]struct {
		links  map[string]string // by name
		before bool              // the target exists
	}{
		"same directory":  {map[string]string{"link": "here/x", "here/x": ""}, true},
		"dangling":        {map[string]string{"link": "there/x"}, false},
		"chain":           {map[string]string{"link": "second", "second": "here/third", "here/third": "../there/x"}, true},
		"dangling chain":  {map[string]string{"link": "here/second", "here/second": "../there/x"}, false},
		"directory":       {map[string]string{"link": "way/x", "way": "there"}, true},
		"up from a link":  {map[string]string{"link": "way/../there/x", "way": "here/deep"}, false},
		"with its folder": {map[string]string{"link": "./there/../there/x"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, d := range []string{"here/deep", "there", "here/there"} {
				require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
			}
			for link, to := range it.links {
				if to != "" {
					require.NoError(t, os.Symlink(to, filepath.Join(dir, link)))
				}
			}
			link := filepath.Join(dir, "link")
			if it.before {
				require.NoError(t, os.WriteFile(link, []byte("old"), 0o600))
			}
			require.NoError(t, put(link))
			for name, to := range it.links {
				if to != "" {
					got, err := os.Readlink(filepath.Join(dir, name))
					require.NoError(t, err)
					assert.Equal(t, to, got)
				}
			}
			assert.Equal(t, "new", textOf(t, link)) // as followed by the kernel
			left := 0
			require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					left++
				}
				return err
			}))
			assert.Equal(t, 1, left, "the target and nothing else")
		})
	}
}

// A FIFO is written to, and so is a device; both stay.
func TestStreamsAreWrittenTo(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	got := make(chan string, 1)
	go func() {
		b, _ := os.ReadFile(fifo)
		got <- string(b)
	}()
	require.NoError(t, put(fifo))
	assert.Equal(t, "new", <-got)
	assert.True(t, IsStream(fifo))
	assert.Equal(t, fs.ModeNamedPipe, modeOf(t, fifo).Type())
	if os.Getuid() != 0 {
		return // only root makes devices
	}
	null, full := filepath.Join(dir, "null"), filepath.Join(dir, "full")
	require.NoError(t, unix.Mknod(null, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	require.NoError(t, unix.Mknod(full, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 7))))
	require.NoError(t, put(null))
	require.ErrorIs(t, put(full), syscall.ENOSPC)
	for _, path := range []string{null, full} {
		assert.True(t, IsStream(path))
		assert.Equal(t, fs.ModeDevice|fs.ModeCharDevice, modeOf(t, path).Type())
	}
	assert.Equal(t, []string{"fifo", "full", "null"}, names(t, dir))
}

// A descriptor of this process, such as /dev/stdout, is written to from its position.
func TestOwnDescriptor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString("before ")
	require.NoError(t, err)
	own := "/dev/fd/" + strconv.Itoa(int(f.Fd()))
	assert.True(t, IsStream(own))
	require.NoError(t, put(own))
	_, err = f.WriteString(" after")
	require.NoError(t, err)
	assert.Equal(t, "before new after", textOf(t, path))

	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	require.NoError(t, put("/proc/self/fd/"+strconv.Itoa(ends[0])))
	require.NoError(t, unix.Close(ends[0]))
	buf := make([]byte, 10)
	n, err := unix.Read(ends[1], buf)
	require.NoError(t, err)
	require.NoError(t, unix.Close(ends[1]))
	assert.Equal(t, "new", string(buf[:n]))
}

// An unwritable place gives one error, with the path as given, and stays unchanged.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	loop, socket := filepath.Join(dir, "loop"), filepath.Join(dir, "socket")
	require.NoError(t, os.Symlink("loop", loop))
	l, err := net.Listen("unix", socket) //nolint:noctx // it is closed below
	require.NoError(t, err)
	defer l.Close()
	for path, want := range map[string]error{
		dir: syscall.EISDIR, dir + "/": syscall.EISDIR, loop: syscall.ELOOP, socket: errSocket, dir + "/no/x": fs.ErrNotExist, "": fs.ErrNotExist,
		socket + "/x": syscall.ENOTDIR,
	} {
		err := put(path)
		if path == "" {
			require.Error(t, err)
			continue
		}
		require.ErrorIs(t, err, want, path)
		assert.Equal(t, path+": "+errors.Unwrap(err).Error(), err.Error())
		assert.Equal(t, 1, strings.Count(err.Error(), dir), err)
	}
	assert.Equal(t, []string{"loop", "socket"}, names(t, dir))
}

// Without Commit nothing has changed, and an unfinished file is invisible.
func TestNothingBeforeCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	f, err := Create(path)
	require.NoError(t, err)
	failed := errors.New("no data")
	require.ErrorIs(t, Fill(f, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 10*bufBytes))
		require.NoError(t, err)
		assert.Equal(t, []string{"x"}, names(t, dir))
		return failed
	}), failed)
	require.NoError(t, f.Close())
	assert.Equal(t, "old", textOf(t, path))
	assert.Equal(t, []string{"x"}, names(t, dir))
}

// A file system without unnamed files: the new file's name is removed, and a copy is put in place.
func TestWithoutUnnamedFiles(t *testing.T) {
	umask(t, 0o027)
	for _, before := range []fs.FileMode{0, 0o604} {
		dir := t.TempDir()
		path := filepath.Join(dir, "x")
		want := fs.FileMode(0o640)
		var was fs.FileInfo
		if before != 0 {
			require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
			require.NoError(t, os.Chmod(path, before))
			var err error
			was, err = os.Stat(path)
			require.NoError(t, err)
			want = before
		}
		tmp, err := removed(dir)
		require.NoError(t, err)
		_, err = tmp.WriteString("new")
		require.NoError(t, err)
		require.NoError(t, (&File{tmp, path, path, was}).Commit())
		assert.Equal(t, "new", textOf(t, path))
		assert.Equal(t, want, modeOf(t, path))
		assert.Equal(t, []string{"x"}, names(t, dir))
	}
}

// The error of a writer is reported once, however the caller uses it.
func TestFillReportsOnce(t *testing.T) {
	full := errors.New("full")
	err := Fill(writerFunc(func([]byte) (int, error) { return 0, full }), func(w io.Writer) error {
		var all error
		for range 100 {
			_, err := w.Write(make([]byte, bufBytes))
			all = errors.Join(all, err)
		}
		return all
	})
	assert.Equal(t, full, err)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// A signal during the second name of a file waits for the end of publish.
func TestSignalWaits(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	signals := make(chan os.Signal, 1) // below nohup, or in the background of a script, tests ignore some of these signals, and so would their children
	signal.Notify(signals, syscall.SIGINT, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(signals) })
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		dir := t.TempDir()
		cmd := exec.Command(self) //nolint:noctx // it ends itself
		cmd.Env = append(os.Environ(), interrupted+"="+dir, "SIGNAL="+strconv.Itoa(int(s)))
		require.Error(t, cmd.Run())
		assert.Equal(t, s, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
		assert.Equal(t, []string{"done"}, names(t, dir))
	}
}

// interruptItself is the process of TestSignalWaits, and does not return.
func interruptItself(dir string) {
	n, _ := strconv.Atoi(os.Getenv("SIGNAL"))
	_ = unsignalled(func() error {
		_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
		return os.WriteFile(filepath.Join(dir, "done"), nil, 0o600)
	})
	select {}
}
