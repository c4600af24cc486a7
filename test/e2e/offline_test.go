//go:build e2e

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// socketless turns this test binary, by its environment, into another program given by its arguments, which the kernel kills at its first socket call.
const socketless = "TRAINBRIDGE_E2E_NO_SOCKETS"

// becomeSocketless does not return if socketless is set. The filter needs a process: a filter of one thread would kill that thread, and with it all servers
// started from it.
func becomeSocketless() {
	if os.Getenv(socketless) == "" {
		return
	}
	runtime.LockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
			err = errno
		}
	}
	runtime.KeepAlive(filter)
	if err == nil {
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	panic(err)
}

// noSockets is a command that is killed if it opens a socket.
func noSockets(t *testing.T, bin string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, append([]string{bin}, args...)...)
	cmd.Env = append(os.Environ(), socketless+"=1")
	return cmd
}

// fileTree lists the files below a directory.
func fileTree(t *testing.T, dir string) (out []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out = append(out, path)
		}
		return err
	}))
	return out
}

// Commands for finished logs open no socket, and leave nothing on disk: neither beside the logs, nor in their working directory, nor in the temporary
// directory.
func TestFinishedLogsNeedNothing(t *testing.T) {
	t.Parallel()
	job := generateJob(t, "--ranks", "2", "--steps", "30")
	before := fileTree(t, job.dir)
	logs, err := os.ReadFile(filepath.Join(job.dir, "train", "train.jsonl"))
	require.NoError(t, err)
	for _, args := range [][]string{
		{"report", job.dir},
		{"report", "-"},
		{"report", job.dir, "--format", "json"},
		{"report", job.dir, "--format", "csv", "--table", "rpc_calls"},
		{"report", job.dir, "--format", "html"},
		{"report", job.dir, "--format", "perfetto"},
		{"check", job.dir},
		{"compare", job.dir, job.dir},
	} {
		empty := t.TempDir()
		cmd := noSockets(t, trainbridgeBin(t), args...)
		cmd.Dir = empty
		cmd.Env = append(cmd.Env, "HOME="+empty, "TMPDIR="+empty, "XDG_CACHE_HOME="+empty)
		cmd.Stdin = strings.NewReader(string(logs))
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil { // check reports findings by its exit code
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			assert.False(t, status.Signaled(), "%v: %v", args, err)
			assert.Equal(t, "check", args[0], out.String())
		}
		assert.NotEmpty(t, out.String())
		assert.Empty(t, fileTree(t, empty), args)
	}
	assert.Equal(t, before, fileTree(t, job.dir))

	show := noSockets(t, trainbridgeBin(t), "show", "--jaeger", "http://127.0.0.1:1") // opens a socket: the check can fail
	require.Error(t, show.Run())
	status := show.ProcessState.Sys().(syscall.WaitStatus)
	assert.Equal(t, syscall.SIGSYS, status.Signal())
}
