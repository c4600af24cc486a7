//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stateConfig has the exporter and the storage of the shipped config, and nothing that slows a start.
const stateConfig = `
receivers: {tq_trace: {include: [%q], storage: state_storage, run_id: %q, service_name: %q}}
processors: {train_perf: }
exporters:
  otlp_acked:
    endpoint: %q
    tls: {insecure: true}
extensions: {state_storage: {directory: %q}}
service:
  extensions: [state_storage]
  pipelines: {traces: {receivers: [tq_trace], processors: [train_perf], exporters: [otlp_acked]}}
  telemetry: {metrics: {level: none}}
`

// stateRun is a log whose first half is read when something happens to the state.
type stateRun struct {
	*process
	bin, config, service string
	tr                   *truth
	jaeger               *jaeger
	state, file          string // directory, and the receiver's state file in it
	rest                 map[string][]byte
}

func newStateRun(t *testing.T, j *jaeger) *stateRun {
	t.Helper()
	source, live := t.TempDir(), t.TempDir()
	r := &stateRun{bin: trainbridgeBin(t), jaeger: j, state: filepath.Join(t.TempDir(), "state"), rest: map[string][]byte{}}
	r.service = strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())
	r.file = filepath.Join(r.state, "receiver.tq_trace.tail.state")
	r.tr = generate(
		t, source, "--seed", strconv.Itoa(int(crc32.ChecksumIEEE([]byte(t.Name())))), "--workers", "2", "--batches", "12", "--functions",
		"generate_sequences,update_actor",
	)
	lines := 0
	for _, f := range r.tr.run.Files {
		data, err := os.ReadFile(f.Path)
		require.NoError(t, err)
		half := len(data)/2 + bytes.IndexByte(data[len(data)/2:], '\n') + 1
		path := filepath.Join(live, filepath.Base(f.Path))
		r.rest[path] = data[half:]
		lines += bytes.Count(data[:half], []byte("\n"))
		require.NoError(t, os.WriteFile(path, data[:half], 0o600))
	}
	require.Positive(t, lines)
	r.config = write(t, "state.yaml", fmt.Sprintf(stateConfig, globOf(live), r.service, r.service, j.otlp, r.state))
	r.start(t)
	r.says(t, fmt.Sprintf("All is read: tq_trace %d lines", lines))
	return r
}

func (r *stateRun) start(t *testing.T) {
	t.Helper()
	r.process = start(t, "trainbridge", r.bin, nil, "--config", r.config)
}

// restart stops the collector, which delivers its data and stores its positions, and starts it again.
func (r *stateRun) restart(t *testing.T) {
	t.Helper()
	r.stop(t)
	r.start(t)
	r.says(t, "Everything is ready")
}

// says waits for a text in the collector's log.
func (r *stateRun) says(t *testing.T, text string) {
	t.Helper()
	eventually(t, func() error {
		if !r.logged(text) {
			return fmt.Errorf("it does not say %q", text)
		}
		return nil
	})
}

// finish writes the second half and waits until every span of the log is present, with its own id.
func (r *stateRun) finish(t *testing.T) *answer {
	t.Helper()
	for path, data := range r.rest {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.Write(data)
		require.NoError(t, errors.Join(err, f.Close()))
	}
	var a *answer
	eventually(t, func() error {
		if !r.running() {
			return fatal(fmt.Errorf("the collector ended by itself:\n%s", r.tail(10)))
		}
		td, err := r.jaeger.find(r.service)
		if err != nil {
			return err
		}
		a = r.tr.compare(td)
		if len(a.missing) == 0 && len(a.problems) > 0 {
			return fatal(a.err())
		}
		return a.err()
	})
	return a
}

// warned counts the warnings in the collector's log with a text.
func (r *stateRun) warned(t *testing.T, text string) int {
	t.Helper()
	n := 0
	for line := range strings.Lines(r.output(t)) {
		if strings.Contains(line, "\twarn\t") && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// A state damaged while no collector ran is set aside with one warning that names it; the log is delivered to its end.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	j := startJaeger(t)
	garble := func(from, to func(size int) int) func(path string, b []byte) error {
		return func(path string, b []byte) error {
			for i := from(len(b)); i < to(len(b)); i++ {
				b[i] ^= 0x5a
			}
			return os.WriteFile(path, b, 0o600)
		}
	}
	at := func(n int) func(int) int { return func(size int) int { return min(n, size) } }
	part := func(n int) func(int) int { return func(size int) int { return size * n / 4 } }
	for name, damage := range map[string]func(path string, b []byte) error{
		"empty":       func(path string, _ []byte) error { return os.Truncate(path, 0) },
		"one byte":    func(path string, _ []byte) error { return os.Truncate(path, 1) },
		"half":        func(path string, b []byte) error { return os.Truncate(path, int64(len(b)/2)) },
		"beginning":   garble(at(0), at(5)),
		"all":         garble(at(0), part(4)),
		"middle":      garble(part(2), part(3)),
		"end":         garble(part(3), part(4)),
		"a directory": func(path string, _ []byte) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newStateRun(t, j)
			r.stop(t)
			b, err := os.ReadFile(r.file)
			require.NoError(t, err)
			require.NoError(t, damage(r.file, b))
			r.start(t)
			r.finish(t)
			assert.Equal(t, 1, r.warned(t, r.file), r.output(t))
			assert.NotContains(t, r.output(t), "panic")
			r.restart(t) // and the state is whole again
			assert.Zero(t, r.warned(t, "state"))
		})
	}
}

// A state directory deleted under an idle collector comes back, with all positions: after a crash nothing is delivered again.
func TestDeletedState(t *testing.T) {
	t.Parallel()
	j := startJaeger(t)
	for name, remove := range map[string]func(r *stateRun) error{
		"directory": func(r *stateRun) error { return os.RemoveAll(r.state) },
		"file":      func(r *stateRun) error { return os.Remove(r.file) },
		"content":   func(r *stateRun) error { return os.Truncate(r.file, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newStateRun(t, j)
			r.restart(t)
			require.NoError(t, remove(r))
			eventually(t, func() error {
				info, err := os.Stat(r.file)
				if err == nil && info.Size() < 100 {
					err = errors.New("there are no positions in it")
				}
				if err == nil && r.warned(t, r.state) == 0 { // the file exists a moment before the log line
					err = errors.New("the collector has not said so")
				}
				return err
			})
			assert.Equal(t, 1, r.warned(t, r.state), r.output(t))
			r.kill()
			r.start(t)
			a := r.finish(t)
			assert.Equal(t, 1, a.copies, "only the span of the run, which each collector sends")
			assert.Zero(t, r.warned(t, r.state))
		})
	}
}

// A second collector on the state directory of a running collector exits at once and names the owner; the first is not disturbed.
func TestSecondCollector(t *testing.T) {
	t.Parallel()
	r := newStateRun(t, startJaeger(t))
	second := start(t, "second", r.bin, nil, "--config", r.config)
	code, out := second.end(t)
	assert.NotZero(t, code)
	assert.Contains(t, out, fmt.Sprintf("'directory': %s is in use by another collector (pid %d on ", r.state, r.cmd.Process.Pid))
	assert.NotContains(t, out, "goroutine ")
	t.Logf("it says:\n%s", out)
	a := r.finish(t)
	assert.Zero(t, a.copies)
	assert.Zero(t, r.warned(t, "state"))
}
