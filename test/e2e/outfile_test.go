//go:build e2e

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/trainbridge/trainbridge/internal/porttest"
)

// smallLog is a training log of some steps.
func smallLog(t *testing.T, steps int) string {
	t.Helper()
	var b strings.Builder
	for i := range steps {
		fmt.Fprintf(&b, `{"step": %d, "timestamp": "%s", "loss": 1.5, "step_time_s": 1.0}`+"\n", i+1,
			time.Unix(1_767_323_045+int64(i), 0).UTC().Format(time.RFC3339))
	}
	return write(t, "train.jsonl", b.String())
}

// writers are the commands that write a file, by its kind. The last argument is the file.
func writers(t *testing.T, log string) map[string][]string {
	t.Helper()
	bin, generator := trainbridgeBin(t), genBin(t)
	return map[string][]string{
		"text":     {bin, "report", log, "--format", "text", "-o"},
		"html":     {bin, "report", log, "--format", "html", "-o"},
		"json":     {bin, "report", log, "--format", "json", "-o"},
		"perfetto": {bin, "report", log, "--format", "perfetto", "-o"},
		"csv":      {bin, "report", log, "--format", "csv", "--table", "steps", "-o"},
		"partials": {generator, "partials", "--gpus", "16", "--tp", "2", "--pp", "1", "--rate", "10", "--duration", "1s", "--truth", "none", "--out"},
		"log":      {generator, "jsonl", "--steps", "5", "--truth", "none", "--out"},
		"truth":    {generator, "jsonl", "--steps", "5", "--out", "-", "--truth"},
	}
}

// shell runs a command line of the shell with its own umask; the arguments are "$@".
func shell(t *testing.T, umask, line string, args ...string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", "umask " + umask + "; " + line, "sh"}, args...)...)
	cmd.Dir = t.TempDir()
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// Commands keep the type of an existing output path, for every command that writes a file.
func TestWhatStandsThereStays(t *testing.T) {
	t.Parallel()
	for name, args := range writers(t, smallLog(t, 20)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := func(umask, path string) {
				t.Helper()
				out, err := shell(t, umask, `"$@" >said 2>&1 || { cat said; exit 1; }`, append(args, path)...)
				require.NoError(t, err, out)
			}
			size := func(path string) int64 {
				t.Helper()
				fi, err := os.Stat(path)
				require.NoError(t, err)
				return fi.Size()
			}
			mode := func(path string) fs.FileMode { return modeOf(t, path) }
			for umask, want := range map[string]fs.FileMode{"022": 0o644, "027": 0o640, "077": 0o600, "002": 0o664} {
				path := filepath.Join(dir, umask+".log")
				run(umask, path)
				assert.Equal(t, want, mode(path), umask)
				assert.Positive(t, size(path))
			}
			replaced := filepath.Join(dir, "replaced.log")
			require.NoError(t, os.WriteFile(replaced, nil, 0o600))
			require.NoError(t, os.Chmod(replaced, 0o604))
			run("077", replaced)
			assert.Equal(t, fs.FileMode(0o604), mode(replaced))
			assert.Positive(t, size(replaced))

			require.NoError(t, os.Mkdir(filepath.Join(dir, "else"), 0o700))
			for link, to := range map[string]string{"link.log": "second", "second": "else/third", "else/third": "../target"} {
				require.NoError(t, os.Symlink(to, filepath.Join(dir, link)))
			}
			run("022", filepath.Join(dir, "link.log"))
			assert.Equal(t, fs.ModeSymlink, mode(filepath.Join(dir, "link.log")).Type())
			assert.Equal(t, fs.ModeSymlink, mode(filepath.Join(dir, "else/third")).Type())
			assert.True(t, mode(filepath.Join(dir, "target")).IsRegular())
			assert.Positive(t, size(filepath.Join(dir, "target")))

			streams(t, dir, args, run)
			if os.Getuid() == 0 {
				devices(t, dir, args, run)
			}
			left, err := filepath.Glob(filepath.Join(dir, ".*"))
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

// modeOf is the mode of the path itself, without following links.
func modeOf(tb testing.TB, path string) fs.FileMode {
	tb.Helper()
	fi, err := os.Lstat(path)
	require.NoError(tb, err)
	return fi.Mode()
}

// streams are written in place: a FIFO, and the target of a link such as /dev/stdout.
func streams(t *testing.T, dir string, args []string, run func(umask, path string)) {
	t.Helper()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	got := make(chan int, 1)
	go func() {
		b, _ := os.ReadFile(fifo)
		got <- len(b)
	}()
	run("022", fifo)
	assert.Positive(t, <-got)
	assert.Equal(t, fs.ModeNamedPipe, modeOf(t, fifo).Type())

	stdout := filepath.Join(dir, "stdout") // like /dev/stdout
	require.NoError(t, os.Symlink("/proc/self/fd/1", stdout))
	out, err := shell(t, "022", `"$@" 2>/dev/null | wc -c`, append(args, stdout)...)
	require.NoError(t, err, out)
	assert.NotEqual(t, "0", strings.TrimSpace(out))
	redirected := filepath.Join(dir, "redirected")
	_, err = shell(t, "022", `to=$1; shift; { echo first; "$@"; echo last; } >"$to" 2>/dev/null`, append(append([]string{redirected}, args...), stdout)...)
	require.NoError(t, err)
	text, err := os.ReadFile(redirected)
	require.NoError(t, err)
	assert.Greater(t, len(text), len("first\nlast\n"))
	assert.True(t, strings.HasPrefix(string(text), "first\n") && strings.HasSuffix(string(text), "last\n"))
	assert.Equal(t, fs.ModeSymlink, modeOf(t, stdout).Type())
}

// devices are for root: a device stays a device, a full device is an error, and a directory without write permission stays unchanged.
func devices(t *testing.T, dir string, args []string, run func(umask, path string)) {
	t.Helper()
	null, full := filepath.Join(dir, "null"), filepath.Join(dir, "full")
	require.NoError(t, unix.Mknod(null, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	require.NoError(t, unix.Mknod(full, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 7))))
	run("022", null)
	out, err := shell(t, "022", `"$@" >&2`, append(args, full)...)
	require.Error(t, err)
	assert.Equal(t, 1, strings.Count(out, "no space left on device"), out)
	for _, path := range []string{null, full} {
		fi, err := os.Lstat(path)
		require.NoError(t, err)
		assert.Equal(t, fs.ModeDevice|fs.ModeCharDevice, fi.Mode().Type())
	}
	assert.NoFileExists(t, null+".truth.json")
	closed := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(closed, "x"), []byte("old"), 0o644))
	require.NoError(t, os.Chmod(closed, 0o555))
	cmd := exec.CommandContext(t.Context(), args[0], append(args[1:], filepath.Join(closed, "x"))...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	b, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(b), "denied")
	text, err := os.ReadFile(filepath.Join(closed, "x"))
	require.NoError(t, err)
	assert.Equal(t, "old", string(text))
}

// The tables of csv are files in a directory, each written like any file.
func TestTablesStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tables"), 0o700))
	require.NoError(t, os.Symlink("../target", filepath.Join(dir, "tables/steps.csv")))
	fifo := filepath.Join(dir, "tables/verdicts.csv")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	got := make(chan string, 1)
	go func() {
		b, _ := os.ReadFile(fifo)
		got <- string(b)
	}()
	args := []string{trainbridgeBin(t), "report", smallLog(t, 20), "--format", "csv", "-o"}
	out, err := shell(t, "027", `"$@"`, append(args, filepath.Join(dir, "tables"))...)
	require.NoError(t, err, out)
	assert.Contains(t, <-got, "verdict")
	text, err := os.ReadFile(filepath.Join(dir, "target"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "loss")
	fi, err := os.Stat(filepath.Join(dir, "tables/metrics.csv"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o640), fi.Mode())
	out, err = shell(t, "027", `"$@"`, append(args, filepath.Join(dir, "new"))...)
	require.NoError(t, err, out)
	fi, err = os.Stat(filepath.Join(dir, "new"))
	if assert.NoError(t, err) {
		assert.Equal(t, fs.FileMode(0o750), fi.Mode().Perm())
	}
}

// A command killed in the middle leaves nothing behind, neither of standard input nor beside its file. SIGKILL stands for a panic: no code of the process runs
// afterwards.
func TestNothingStaysBehind(t *testing.T) {
	t.Parallel()
	bin, log := trainbridgeBin(t), smallLog(t, 20)
	line, err := os.ReadFile(log)
	require.NoError(t, err)
	server, err := porttest.Listen("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	hangups := make(chan os.Signal, 1) // below nohup a test ignores these signals, and its commands would, too
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	input := []byte(strings.Repeat(string(line), 1+(1<<20)/len(line))) // more than a pipe holds: once written, the command has read
	for name, args := range map[string][]string{
		"report": {"report", "-"}, "html": {"report", "-", "-o", "x.html"}, "json": {"report", "-", "-o", "x.json"},
		"perfetto": {"report", "-", "-o", "x.pftrace"}, "csv": {"report", "-", "--format", "csv", "-o", "x"},
		"check": {"check", "-"}, "compare": {"compare", log, "-"},
		"replay": {"replay", "-", "--endpoint", server.Addr().String()},
	} {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
			t.Run(name+" "+signal.String(), func(t *testing.T) {
				t.Parallel()
				temp, dir := t.TempDir(), t.TempDir()
				cmd := exec.CommandContext(t.Context(), bin, args...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+temp)
				stdin, err := cmd.StdinPipe()
				require.NoError(t, err)
				require.NoError(t, cmd.Start())
				_, err = stdin.Write(input)
				require.NoError(t, err)
				require.NoError(t, cmd.Process.Signal(signal))
				require.Error(t, cmd.Wait())
				assert.Equal(t, signal, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
				for _, d := range []string{temp, dir} {
					left, err := os.ReadDir(d)
					require.NoError(t, err)
					assert.Empty(t, left)
				}
			})
		}
	}
}

// A command that dies while writing leaves the existing file unchanged.
func TestUnfinishedFileIsNotThere(t *testing.T) {
	t.Parallel()
	bin, log := trainbridgeBin(t), smallLog(t, 400_000)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		for _, file := range []string{"x.html", "x.json", "x.pftrace", "x.csv"} {
			temp, dir := t.TempDir(), t.TempDir()
			path := filepath.Join(dir, file)
			require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
			args := []string{"report", log, "-o", path}
			if file == "x.csv" {
				args = append(args, "--table", "steps")
			}
			cmd := exec.CommandContext(t.Context(), bin, args...)
			cmd.Env = append(os.Environ(), "TMPDIR="+temp)
			require.NoError(t, cmd.Start())
			eventually(t, func() error { return hasOpen(cmd.Process.Pid, dir) })
			require.NoError(t, cmd.Process.Signal(signal))
			require.Error(t, cmd.Wait())
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, "old", string(text))
			for d, want := range map[string]int{temp: 0, dir: 1} {
				left, err := os.ReadDir(d)
				require.NoError(t, err)
				assert.Len(t, left, want, "%v %s", signal, file)
			}
		}
	}
}

// hasOpen says whether a process has a file open in a directory.
func hasOpen(pid int, dir string) error {
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return err
	}
	for _, fd := range all {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, dir) {
			return nil
		}
	}
	return fmt.Errorf("no file of %s is open", dir)
}

// A full standard output is reported in one sentence, and by the exit code.
func TestFullStandardOutput(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = full.Close() })
	var log strings.Builder
	for i := range 3000 { // distinct verdicts, for a long document
		fmt.Fprintf(&log, `{"step": %d, "timestamp": "%s", "loss": NaN, "step_time_s": 1.0}`+"\n", i+1, time.Unix(1_767_323_045+int64(i), 0).UTC().Format(time.RFC3339))
	}
	bin, path := trainbridgeBin(t), write(t, "train.jsonl", log.String())
	for _, args := range [][]string{
		{bin, "report", path, "--format", "json"},
		{bin, "report", path, "--format", "text"},
		{bin, "report", path, "--format", "html"},
		{bin, "report", path, "--format", "perfetto"},
		{bin, "report", path, "--format", "csv", "--table", "steps"},
		{bin, "compare", path, path},
		{bin, "check", path},
		{bin, "top", path},
		{genBin(t), "jsonl", "--out", "-"},
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = full, &said
		require.Error(t, cmd.Run(), args)
		assert.Equal(t, 1, cmd.ProcessState.ExitCode(), args)
		assert.Equal(t, 1, strings.Count(said.String(), "no space left on device"), "%v: %s", args, said.String())
	}
}

// --set applies to the built-in configuration unless another is named.
func TestSetWithoutConfig(t *testing.T) {
	t.Parallel()
	bin := trainbridgeBin(t)
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Env = append(os.Environ(), "TRAINBRIDGE_STATE_DIR="+t.TempDir(), "TRAINBRIDGE_VERDICTS=")
		b, err := cmd.CombinedOutput()
		return string(b), err
	}
	set := "--set=processors.train_perf.train.device=H100" // of the help
	out, err := run("validate", set)
	require.NoError(t, err, out)
	plain, err := run("print-config")
	require.NoError(t, err, plain)
	changed, err := run("print-config", set)
	require.NoError(t, err, changed)
	assert.NotEqual(t, plain, changed)
	assert.Contains(t, changed, "H100")
	assert.Contains(t, changed, "otlp_acked")
	out, err = run("validate", "--set=receivers.train_log.poll_interval=200")
	require.Error(t, err)
	assert.Contains(t, out, "'poll_interval': 200 has no unit")
	own := write(t, "own.yaml", "receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:0'}}}}\nexporters: {debug: {}}\n"+
		"service: {pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}\n")
	out, err = run("print-config", "--config", own, "--set=exporters.debug.verbosity=detailed")
	require.NoError(t, err, out)
	assert.NotContains(t, out, "otlp_acked", "--config replaces the built-in one")
}
