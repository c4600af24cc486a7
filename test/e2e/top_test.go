//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/trainbridge/trainbridge/internal/fakenvml"
)

// terminal is a pseudo-terminal with a program, and the program's output.
type terminal struct {
	master, program *os.File // our side, and the program's
	cmd             *exec.Cmd
	read            chan struct{} // closed when text is complete

	mu   sync.Mutex
	text strings.Builder
}

// openTerminal makes a terminal of a size.
func openTerminal(t *testing.T, width, height uint16) *terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	term := &terminal{master: os.NewFile(uintptr(fd), "ptmx"), read: make(chan struct{})}
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	term.program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	term.resize(t, width, height)
	go func() {
		defer close(term.read)
		buf := make([]byte, 32<<10)
		for {
			n, err := term.master.Read(buf)
			term.mu.Lock()
			term.text.Write(buf[:n])
			term.mu.Unlock()
			if err != nil { // EIO: nobody has the program's side any more, and all is read
				return
			}
		}
	}()
	t.Cleanup(func() {
		if term.cmd != nil && term.cmd.ProcessState == nil {
			_ = term.cmd.Process.Kill()
			_ = term.cmd.Wait()
		}
		_ = term.program.Close() // already closed in a passing test
		<-term.read
		term.master.Close()
	})
	return term
}

// start starts a program on the terminal.
func (term *terminal) start(t *testing.T, env []string, bin string, args ...string) {
	t.Helper()
	term.cmd = exec.Command(bin, args...)
	term.cmd.Env = append(os.Environ(), env...)
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = term.program, term.program, term.program
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, term.cmd.Start())
}

// end waits for the end of the program, and returns its output.
func (term *terminal) end(t *testing.T) string {
	t.Helper()
	require.NoError(t, term.cmd.Wait())
	require.NoError(t, term.program.Close())
	<-term.read
	return term.all()
}

// modes are the settings of the terminal.
func (term *terminal) modes(t *testing.T) *unix.Termios {
	t.Helper()
	modes, err := unix.IoctlGetTermios(int(term.master.Fd()), unix.TCGETS)
	require.NoError(t, err)
	return modes
}

func (term *terminal) resize(t *testing.T, width, height uint16) {
	t.Helper()
	require.NoError(t, unix.IoctlSetWinsize(int(term.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}))
}

func (term *terminal) all() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.text.String()
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// screen is the last whole frame, without escapes.
func (term *terminal) screen() []string {
	frames := strings.Split(term.all(), "\x1b[H")
	for i := len(frames) - 1; i > 0; i-- {
		if frame, _, ok := strings.Cut(frames[i], "\x1b[J"); ok {
			return strings.Split(escapes.ReplaceAllString(frame, ""), "\r\n")
		}
	}
	return nil
}

var atStep = regexp.MustCompile(`step (\d+)`)

// follows waits until the screen is at a step beyond above, and returns the step.
func (term *terminal) follows(t *testing.T, above int64) (at int64) {
	t.Helper()
	eventually(t, func() (err error) {
		lines := term.screen()
		if len(lines) == 0 {
			return fmt.Errorf("no frame: %q", term.all())
		}
		m := atStep.FindStringSubmatch(strings.ReplaceAll(lines[0], ",", ""))
		if m == nil {
			return fmt.Errorf("no step: %q", lines)
		}
		at, err = strconv.ParseInt(m[1], 10, 64)
		if err != nil || at <= above {
			return fmt.Errorf("step %d, not above %d: %w", at, above, err)
		}
		return nil
	})
	return at
}

// The screen follows a growing log, in any size, with the GPUs of this host, and restores the terminal.
func TestTop(t *testing.T) {
	t.Parallel()
	bin, log := trainbridgeBin(t), filepath.Join(t.TempDir(), "train.jsonl")
	fake := fakenvml.Build(t)
	state, err := fakenvml.New(filepath.Join(t.TempDir(), "state"), "devices 2\nmodel NVIDIA A100-SXM4-80GB\n")
	require.NoError(t, err)
	defer state.Close()
	live := start(t, "gen", genBin(t), nil, "jsonl", "--out", log, "--rate", "5", "--steps", "0")
	defer live.kill()

	term := openTerminal(t, 80, 24)
	before := term.modes(t)
	eventually(t, func() error { _, err := os.Stat(log); return err })
	env := []string{"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=xterm", "NO_COLOR=1", "LD_LIBRARY_PATH=" + fake, fakenvml.Env + "=" + state.Path()}
	term.start(t, env, bin, "top", log)
	at := term.follows(t, 5)
	eventually(t, func() error { // 5 steps a second
		body, err := os.ReadFile(log)
		at = term.follows(t, at)
		if n := int64(bytes.Count(body, []byte("\n"))); err == nil && (at < n-10 || at > n+10) {
			err = fmt.Errorf("the screen is at step %d, the log was at %d", at, n)
		}
		return err
	})
	eventually(t, func() error {
		text := strings.Join(term.screen(), "\n")
		for _, want := range []string{"step time ", "loss ", "2 GPUs, "} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("no %q in %s", want, text)
			}
		}
		return nil
	})
	assert.NotRegexp(t, `\x1b\[[0-9;]*m`, term.all()) // NO_COLOR

	term.resize(t, 40, 10)
	eventually(t, func() error {
		lines := term.screen()
		for _, l := range lines {
			if len(lines) > 10 || len([]rune(l)) > 40 {
				return fmt.Errorf("%q is no screen of 40 by 10", lines)
			}
		}
		return nil
	})
	_, err = io.WriteString(term.master, "q")
	require.NoError(t, err)
	all := term.end(t)
	assert.True(t, strings.HasPrefix(all, "\x1b[?1049h\x1b[?25l"), "the other screen")
	assert.True(t, strings.HasSuffix(all, "\x1b[?25h\x1b[?1049l"), "the cursor and the screen from before: %q", all[max(len(all)-40, 0):])
	assert.Equal(t, before, term.modes(t))
}

// A whole job, with its steps' breakdown and verdicts, into a pipe; SIGTERM ends the program.
func TestTopOfAJob(t *testing.T) {
	t.Parallel()
	bin, dir := trainbridgeBin(t), filepath.Join(t.TempDir(), "job")
	run(t, nil, bin, "gen", "run", dir, "--ranks", "2", "--steps", "40", "--faults", "get", "--fault-every", "10")
	p := start(t, "top", bin, nil, "top", dir)
	eventually(t, func() error {
		out := p.output(t)
		for _, want := range []string{"step 40  step time ", "step_slow"} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("no %q in %s", want, out)
			}
		}
		return nil
	})
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	code, out := p.end(t)
	assert.Zero(t, code)
	assert.NotContains(t, out, "\x1b")
}
