//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stack finds the frames of stack traces.
var stack = regexp.MustCompile(`(?m)^goroutine |\.go:\d+`)

// For each port of the shipped config that another process has, one line names the port's key and that process.
func TestTakenPorts(t *testing.T) {
	t.Parallel()
	takeShippedPorts(t)
	requireFree(t, collectorPorts...)
	for port, key := range map[int]string{
		4317:  "receivers::otlp::protocols::grpc::endpoint",
		4318:  "receivers::otlp::protocols::http::endpoint",
		8888:  "service::telemetry::metrics::readers::0::pull::exporter::prometheus::port",
		8889:  "exporters::prometheus::endpoint",
		13133: "extensions::health_check::endpoint",
	} {
		t.Run(strconv.Itoa(port), func(t *testing.T) {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			require.NoError(t, err)
			defer l.Close()
			p := start(t, "trainbridge", trainbridgeBin(t), []string{"TRAINBRIDGE_STATE_DIR=" + t.TempDir()})
			<-p.done
			assert.Equal(t, 1, p.cmd.ProcessState.ExitCode())
			out := p.output(t)
			assert.Regexp(t, fmt.Sprintf(`(?m)^Error: port %d is taken by \S+ \(pid %d\): stop that, or give '%s' another port$`, port, os.Getpid(), key), out)
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
			<-p.done
			assert.Equal(t, 1, p.cmd.ProcessState.ExitCode())
			said = append(said, p.output(t))
			assert.Equal(t, 1, strings.Count(p.output(t), tt.want), p.output(t))
			assert.NotRegexp(t, stack, p.output(t))
		}
		assert.Equal(t, said[0], said[1])
	}
}

// An empty variable is an unset one: the state goes where the shipped config puts it.
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

// Ctrl-C while no backend answers: plain lines, and not many.
func TestInterruptWithoutBackend(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	generate(t, logs, "--workers", "8", "--batches", "40", "--seed", "3")
	c := newCollector(t, trainbridgeBin(t), globOf(logs), freeAddr(t))
	c.up(t)
	eventually(t, time.Minute, func() error {
		metrics, err := c.ownMetrics()
		if err != nil {
			return err
		}
		for _, m := range metrics {
			if m.name == "trainbridge_tail_pending" && m.value > 0 {
				return nil
			}
		}
		return errors.New("nothing waits")
	})
	require.NoError(t, c.cmd.Process.Signal(os.Interrupt))
	<-c.done
	assert.Equal(t, 0, c.cmd.ProcessState.ExitCode())
	out := c.output(t)
	assert.NotRegexp(t, stack, out)
	assert.Less(t, strings.Count(out, "\n"), 100, out)
}

// A request that never ends keeps a collector from stopping. The second signal does not wait for it.
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
		eventually(t, time.Minute, func() error {
			if c.logged("Starting shutdown") {
				return nil
			}
			return errors.New("not stopping")
		})
		require.True(t, c.running())
		require.NoError(t, c.cmd.Process.Signal(s))
		<-c.done
		assert.Equal(t, 128+int(s), c.cmd.ProcessState.ExitCode())
		assert.NotRegexp(t, stack, c.output(t))
		conn.Close()
	}
}
