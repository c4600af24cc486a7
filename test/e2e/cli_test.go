//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/porttest"
)

// stack finds the frames of stack traces.
var stack = regexp.MustCompile(`(?m)^goroutine |\.go:\d+`)

// For each port of the shipped config taken by another process, one line names the port's key and variable, and the process.
func TestTakenPorts(t *testing.T) {
	t.Parallel()
	takeShippedPorts(t)
	requireFree(t, collectorPorts...)
	for port, key := range map[int][2]string{
		4317:  {"receivers::otlp::protocols::grpc::endpoint", "OTLP"},
		4318:  {"receivers::otlp::protocols::http::endpoint", "OTLP_HTTP"},
		8888:  {"service::telemetry::metrics::readers::0::pull::exporter::prometheus::port", "TELEMETRY"},
		8889:  {"exporters::prometheus::endpoint", "METRICS"},
		13133: {"extensions::health_check::endpoint", "HEALTH"},
	} {
		t.Run(strconv.Itoa(port), func(t *testing.T) {
			l, err := porttest.Listen(fmt.Sprintf("127.0.0.1:%d", port))
			require.NoError(t, err)
			defer l.Close()
			p := start(t, "trainbridge", trainbridgeBin(t), []string{"TRAINBRIDGE_STATE_DIR=" + t.TempDir()})
			code, out := p.end(t)
			assert.Equal(t, 1, code)
			assert.Regexp(t, fmt.Sprintf(`(?m)^Error: port %d is taken by \S+ \(pid %d\): stop that, or give '%s' another port; `+
				`in the shipped configuration it is TRAINBRIDGE_%s_PORT, 0 for a free one$`, port, os.Getpid(), key[0], key[1]), out)
			assert.Len(t, regexp.MustCompile(`(?mi)\berror\b|in use`).FindAllString(out, -1), 1, out)
			assert.NotRegexp(t, stack, out)
			assert.NotContains(t, out, "Usage:")
		})
	}
}

// `validate` and the collector itself report a wrong state directory or storage in the same words, and in no others.
func TestConfigErrorAtStart(t *testing.T) {
	t.Parallel()
	file, dir := write(t, "file", ""), t.TempDir()
	for _, tt := range []struct{ state, yaml, want string }{
		{file + "/state", `{}`, `Error: 'extensions::state_storage::directory' is "` + file + `/state", and nothing can be written to `},
		{dir, `receivers: {train_log: {storage: redis}}`, `Error: 'receivers::train_log::storage': extension "redis" is not configured: `},
		{dir, `receivers: {train_log: {poll_interval: 200}}`, `'poll_interval': 200 has no unit: write 200ms`},
	} {
		var said []string
		for _, args := range [][]string{{"validate"}, {}} {
			args = append(args, "--config", shippedConfig(t), "--config", write(t, "more.yaml", tt.yaml))
			p := start(t, "trainbridge", trainbridgeBin(t), []string{"TRAINBRIDGE_STATE_DIR=" + tt.state}, args...)
			code, out := p.end(t)
			assert.Equal(t, 1, code)
			said = append(said, out)
			assert.Equal(t, 1, strings.Count(out, tt.want), out)
			assert.NotRegexp(t, stack, out)
		}
		assert.Equal(t, said[0], said[1])
	}
}

// An empty variable is an unset variable: the state goes to the shipped config's directory.
func TestEmptyStateDirectory(t *testing.T) {
	t.Parallel()
	c := newCollector(t, trainbridgeBin(t), "/nothing/*", freeAddr(t))
	c.env = append(c.env, "TRAINBRIDGE_STATE_DIR=")
	c.up(t)
	c.stop(t)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(c.log), ".trainbridge", "*"))
	require.NoError(t, err)
	assert.NotEmpty(t, files)
}

// checkInterrupt: Ctrl-C while no backend answers has plain lines, and not many.
func checkInterrupt(t *testing.T) {
	t.Helper()
	t.Parallel()
	logs := t.TempDir()
	generate(t, logs, "--workers", "8", "--batches", "40", "--seed", "3")
	c := newCollector(t, trainbridgeBin(t), globOf(logs), freeAddr(t))
	c.up(t)
	c.waits(t, 1)
	require.NoError(t, c.cmd.Process.Signal(os.Interrupt))
	code, out := c.end(t)
	assert.Zero(t, code)
	assert.NotRegexp(t, stack, out)
	assert.Less(t, strings.Count(out, "\n"), 100, out)
}

// absences are ways of a backend's absence; each returns a function that restores it.
var absences = map[string]func(s *sequence) (back func()){
	"closed port": func(s *sequence) func() {
		s.sink.down()
		return func() { s.check(s.sink.up()) }
	},
	"no answer": func(s *sequence) func() {
		s.sink.set(hang(false))
		return func() { s.sink.set(accept) }
	},
	"no greeting": func(s *sequence) func() {
		s.sink.down()
		l, err := porttest.Listen(s.sink.addr)
		s.check(err)
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				s.Cleanup(func() { conn.Close() })
			}
		}()
		return func() {
			l.Close()
			s.check(s.sink.up())
		}
	},
}

// A collector whose backend went away exits within 10 s of SIGTERM, for any pending work: batches of all receivers, joined spans, and accepted calls of
// services. The next process sends everything. The test runs alone: the duration of an exit depends on the load of the cores.
func TestStopsWithoutBackend(t *testing.T) {
	t.Run("Ctrl-C", checkInterrupt)
	for name, leave := range absences {
		for _, signals := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s and %d signals", name, signals), func(t *testing.T) {
				t.Parallel()
				s := newSequence(t, trainbridgeBin(t), 27, newTally())
				s.prepare()
				otlp := freeAddr(t)
				s.c.args = append(s.c.args, "--config", write(t, "otlp.yaml", fmt.Sprintf("receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}", otlp)))
				s.launch()
				s.c.ready(t, s.c.health)
				s.work()
				require.Zero(t, s.drain())
				back := leave(s)
				for range 3 { // to all logs, most likely
					s.work()
				}
				service := make(chan error, 1)
				go func() { service <- send(t, otlp, pcommon.TraceID{1}) }() //nolint:testifylint // its only requirement is that an address can be parsed
				s.c.waits(t, 3)
				lasts(3 * time.Second) // step_join waits 2 s for late spans, then sends
				began := time.Now()
				for i := range signals {
					if i > 0 {
						lasts(time.Second) // signals at once count as one
					}
					require.NoError(t, s.c.cmd.Process.Signal(syscall.SIGTERM))
					s.c.says(t, "stopping; once more ends it at once")
				}
				code, _ := s.c.end(t)
				assert.LessOrEqual(t, time.Since(began), 10*time.Second)
				assert.Equal(t, []int{0, 128 + int(syscall.SIGTERM)}[signals-1], code)
				require.Error(t, <-service, "it keeps its span")
				back()
				s.launch()
				s.settle()
			})
		}
	}
}

// timeout(1) signals its command, and then its group with the command in it: that is one signal.
func TestTimeout(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "timeout", "5", trainbridgeBin(t), "--config", write(t, "timeout.yaml", `
receivers: {tq_trace: {include: [/nothing/*]}}
exporters: {otlp_acked: {endpoint: 127.0.0.1:1}}
service: {telemetry: {metrics: {level: none}}, pipelines: {traces: {receivers: [tq_trace], exporters: [otlp_acked]}}}
`))
	cmd.Dir = t.TempDir() // of its state
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 124, exit.ExitCode())
	assert.Contains(t, string(out), "Shutdown complete")
	assert.NotContains(t, string(out), "again: ended")
}

// A request that never ends delays the exit of a collector. The second signal does not wait for it.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		addr := freeAddr(t)
		c := newCollector(t, trainbridgeBin(t), "/nothing/*", freeAddr(t), fmt.Sprintf("receivers: {otlp: {protocols: {http: {endpoint: %q}}}}", addr))
		c.up(t)
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		_, err = fmt.Fprintf(
			conn, "%s /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n", http.MethodPost,
		)
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1)) // 100 Continue: the body is being read
		require.NoError(t, err)
		require.NoError(t, c.cmd.Process.Signal(s))
		eventually(t, func() error {
			if c.logged("Starting shutdown") {
				return nil
			}
			return errors.New("not stopping")
		})
		lasts(time.Second) // signals at once count as one
		require.True(t, c.running())
		require.NoError(t, c.cmd.Process.Signal(s))
		code, out := c.end(t)
		assert.Equal(t, 128+int(s), code)
		assert.NotRegexp(t, stack, out)
		conn.Close()
	}
}
