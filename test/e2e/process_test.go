//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/trainbridge/trainbridge/internal/porttest"
)

// repoRoot is where the default paths of the binaries and the shipped config live.
const repoRoot = "../.."

// binary finds a program, in the environment variable env or at its default place. A missing program fails the test: a skipped end-to-end test looks like a
// passed test.
func binary(tb testing.TB, env, path, fix string) string {
	tb.Helper()
	if p := os.Getenv(env); p != "" {
		path = p
	} else if strings.Contains(path, "/") {
		path = filepath.Join(repoRoot, path)
	}
	found, err := exec.LookPath(path)
	if err != nil {
		tb.Fatalf("%s is not there (%v): run `%s`, or set %s", path, err, fix, env)
	}
	abs, err := filepath.Abs(found)
	require.NoError(tb, err)
	return abs
}

func trainbridgeBin(tb testing.TB) string {
	tb.Helper()
	return binary(tb, "TRAINBRIDGE_BIN", "bin/trainbridge", "make build")
}

// fullBin is the build with the components left out of the agent.
func fullBin(tb testing.TB) string {
	tb.Helper()
	return binary(tb, "TRAINBRIDGE_FULL_BIN", "bin/trainbridge-full", "make build-full")
}

func ocbBin(tb testing.TB) string {
	tb.Helper()
	return binary(tb, "TRAINBRIDGE_OCB_BIN", "bin/trainbridge-ocb", "make ocb")
}

// gen writes logs of one kind by bin/gen.
func gen(tb testing.TB, args ...string) {
	tb.Helper()
	run(tb, nil, genBin(tb), args...)
}

func genBin(tb testing.TB) string {
	tb.Helper()
	return binary(tb, "TRAINBRIDGE_GEN_BIN", "bin/gen", "make gen")
}

func jaegerBin(tb testing.TB) string {
	tb.Helper()
	return binary(tb, "JAEGER_BIN", "bin/tools/jaeger", "make jaeger")
}

func tempoBin(tb testing.TB) string {
	tb.Helper()
	return binary(tb, "TEMPO_BIN", "bin/tools/tempo", "make tempo")
}

func prometheusBin(tb testing.TB) string {
	tb.Helper()
	return binary(tb, "PROMETHEUS_BIN", "prometheus", "apt-get install prometheus")
}

func promtoolBin(tb testing.TB) string {
	tb.Helper()
	return binary(tb, "PROMTOOL_BIN", "promtool", "apt-get install prometheus")
}

// freeAddr is an address without a listener.
func freeAddr(tb testing.TB) string {
	tb.Helper()
	return porttest.Addr(tb)
}

// The ports of the shipped config, and of the Jaeger and the Prometheus of `make run`. One test at a time uses them (takeShippedPorts).
var (
	collectorPorts = []int{4317, 4318, 8888, 8889, 13133}
	jaegerPorts    = []int{13134, 14317, 16685, 16686}
	prometheusPort = 9090
)

// takeShippedPorts waits until no test, of any process, uses the ports above, and keeps them until the end of the test and its processes.
func takeShippedPorts(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "trainbridge-e2e-ports.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
}

// requireFree fails the test if a required port has a listener.
func requireFree(tb testing.TB, ports ...int) {
	tb.Helper()
	for _, port := range ports {
		l, err := porttest.Listen(fmt.Sprintf("127.0.0.1:%d", port))
		require.NoErrorf(tb, err, "this test needs the default ports; stop what listens there (make run? another collector?)")
		require.NoError(tb, l.Close())
	}
}

// process is a running server with its output in a file.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone
}

// start runs a program until the end of the test. If the test fails, the end of the program's log is shown.
func start(tb testing.TB, name, bin string, env []string, args ...string) *process {
	tb.Helper()
	return startWith(tb, name, bin, env, &syscall.SysProcAttr{}, args...)
}

// startGroup starts a program as start does, in a process group of its own.
func startGroup(tb testing.TB, name, bin string, env []string, args ...string) *process {
	tb.Helper()
	return startWith(tb, name, bin, env, &syscall.SysProcAttr{Setpgid: true}, args...)
}

func startWith(tb testing.TB, name, bin string, env []string, attr *syscall.SysProcAttr, args ...string) *process {
	tb.Helper()
	eventually(tb, hasInotify)
	log := filepath.Join(tb.TempDir(), name+".log")
	out, err := os.Create(log)
	require.NoError(tb, err)
	defer out.Close()
	p := &process{name: name, log: log, cmd: exec.Command(bin, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Dir = filepath.Dir(log)
	// A test binary that dies (timeout, panic) must not leave servers behind.
	attr.Pdeathsig = syscall.SIGKILL
	p.cmd.SysProcAttr = attr
	require.NoError(tb, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	tb.Cleanup(func() {
		p.kill()
		if tb.Failed() {
			tb.Logf("end of the log of %s:\n%s", name, p.tail(30))
		}
	})
	return p
}

// hasInotify says whether a collector would get its two inotify instances. A user has 128, for all tests and all else: a collector without inotify polls, and
// misses rewrites.
func hasInotify() error {
	for range 2 {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return fmt.Errorf("other programs have all instances of inotify (fs.inotify.max_user_instances): %w", err)
		}
		defer unix.Close(fd)
	}
	return nil
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill is kill -9, and returns when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// end waits until the process ends, and returns its exit code and output.
func (p *process) end(tb testing.TB) (code int, out string) {
	tb.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.kill()
		tb.Fatalf("%s does not end:\n%s", p.name, p.tail(30))
	}
	return p.cmd.ProcessState.ExitCode(), p.output(tb)
}

// stop asks the process to end, and fails the test on a failed exit.
func (p *process) stop(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, p.cmd.Process.Signal(syscall.SIGTERM))
	code, _ := p.end(tb)
	require.Equalf(tb, 0, code, "exit code of %s after SIGTERM", p.name)
}

func (p *process) tail(lines int) string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	for i, l := range all {
		if len(l) > 1000 {
			all[i] = append(l[:1000:1000], " …"...)
		}
	}
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// output is the process's output so far. The process itself writes the file, so it is complete after the exit.
func (p *process) output(tb testing.TB) string {
	tb.Helper()
	data, err := os.ReadFile(p.log)
	require.NoError(tb, err)
	return string(data)
}

// status is a number of /proc/PID/status, of memory in bytes.
func (p *process) status(name string) (n int64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(data, []byte("\n"+name+":"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	text, isKiB := bytes.CutSuffix(bytes.TrimSpace(line), []byte(" kB"))
	n, err = strconv.ParseInt(string(text), 10, 64)
	if isKiB {
		n <<= 10
	}
	return n, err
}

// inotify counts the process's inotify instances.
func (p *process) inotify(tb testing.TB) (n int) {
	tb.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid))
	require.NoError(tb, err)
	require.NotEmpty(tb, fds)
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == "anon_inode:inotify" {
			n++
		}
	}
	return n
}

// logged says whether the process has printed text.
func (p *process) logged(text string) bool {
	data, err := os.ReadFile(p.log)
	return err == nil && bytes.Contains(data, []byte(text))
}

// ready waits until url answers 200.
func (p *process) ready(tb testing.TB, url string) {
	tb.Helper()
	eventually(tb, func() error {
		if !p.running() {
			return fatal(fmt.Errorf("%s ended while starting:\n%s", p.name, p.tail(15)))
		}
		_, err := get(url, "")
		return err
	})
}

type fatalError struct{ error }

// fatal marks an error that waiting cannot cure.
func fatal(err error) error { return fatalError{err} }

// patience is the longest time without progress. A crowded machine is slow: a test about a duration runs alone.
const patience = 2 * time.Minute

// eventually calls f, less and less often, until it returns nil. It fails the test with f's last error.
func eventually(tb testing.TB, f func() error) {
	tb.Helper()
	if err := within(patience, f); err != nil {
		missed.Store(tb.Name(), err)
		tb.Fatal(err)
	}
}

// within calls f until it returns nil, returns the same error for still, or has taken five times as long.
func within(still time.Duration, f func() error) error {
	began, moved, last := time.Now(), time.Now(), ""
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		asked := time.Now()
		err := f()
		now := time.Now()
		if err == nil {
			return nil
		}
		if _, ok := errors.AsType[fatalError](err); ok {
			return err
		}
		if text := err.Error(); text != last {
			moved, last = now, text
		}
		if now.Sub(moved) > still || now.Sub(began) > 5*still {
			return fmt.Errorf("after %v, of which it stood still for %v: %w", now.Sub(began).Round(time.Second), now.Sub(moved).Round(time.Second), err)
		}
		time.Sleep(max(pause, min(4*now.Sub(asked), 2*time.Second))) // polling takes CPU time from the polled servers
	}
}

// moment waits for a random time of up to upTo ms: the next action meets the other processes in any state.
func moment(rnd *rand.Rand, upTo int) { time.Sleep(time.Duration(rnd.IntN(upTo)) * time.Millisecond) }

// lasts lets a fault last. No condition tells when it has lasted long enough.
func lasts(d time.Duration) { time.Sleep(d) }

// No connection outlives its request: servers come and go, and goleak counts remaining connections.
var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// statusError is an answer other than 200.
type statusError struct {
	code int
	body string
}

func (e *statusError) Error() string { return fmt.Sprintf("HTTP %d: %s", e.code, e.body) }

func get(url, accept string) ([]byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fatal(err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &statusError{resp.StatusCode, string(body[:min(len(body), 500)])}
	}
	return body, nil
}

// write puts text into a file of the test's own folder and returns its path.
func write(tb testing.TB, name, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	require.NoError(tb, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// run runs a command to its end; its output is shown on failure.
func run(tb testing.TB, env []string, bin string, args ...string) {
	tb.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoErrorf(tb, err, "%s %s\n%s", bin, strings.Join(args, " "), out)
}
