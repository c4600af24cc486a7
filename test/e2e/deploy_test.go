//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/spans"
)

// deployed prepares a collector with a file of deploy/, on free ports and with its state in a folder of its own.
func deployed(tb testing.TB, file string, env ...string) *collector {
	tb.Helper()
	c := newCollector(tb, trainbridgeBin(tb), "", "")
	c.args = nil
	c.config(tb, file)
	c.env = append([]string{"TRAINBRIDGE_STATE_DIR=" + tb.TempDir()}, env...)
	health, metrics, own := freeAddr(tb), freeAddr(tb), freeAddr(tb)
	host, port, _ := strings.Cut(own, ":")
	c.merge(tb, fmt.Sprintf(`
exporters: {prometheus: {endpoint: %q}}
extensions: {health_check: {endpoint: %q}}
service: {telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: %q, port: %s}}}}]}}}
`, metrics, health, host, port))
	c.health, c.metrics, c.own, c.scrape = "http://"+health, "http://"+metrics+"/metrics", "http://"+own+"/metrics", []string{metrics, own}
	return c
}

// config has a collector read a file of deploy/ too.
func (c *collector) config(tb testing.TB, file string) {
	tb.Helper()
	path, err := filepath.Abs(filepath.Join(repoRoot, "deploy", file))
	require.NoError(tb, err)
	c.args = append(c.args, "--config", path)
}

// merge has a collector read more configuration.
func (c *collector) merge(tb testing.TB, text string) {
	tb.Helper()
	c.args = append(c.args, "--config", write(tb, "more.yaml", text))
}

// otlpPorts configures an agent's receiver for services.
func otlpPorts(tb testing.TB) string {
	tb.Helper()
	return fmt.Sprintf("receivers: {otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}}", freeAddr(tb), freeAddr(tb))
}

// joinedSpan stands for step_join's spans: their content depends on the parts that arrive within its wait.
const joinedSpan = "joined"

// told is a backend's content of a job: each span's name and times, by its ids. RPCs have no clock in their log: their times are those of reading. The spans of
// runs are left out: each collector writes its first meeting of the run under an id of its own.
func told(j *jaeger) (map[[2]string]string, error) {
	td, err := j.find("")
	if err != nil {
		return nil, err
	}
	a := readAll(td)
	if err := a.err(); err != nil {
		if len(a.problems) > 0 { // for instance two spans under one id
			err = fatal(err)
		}
		return nil, err
	}
	all := map[[2]string]string{}
	for id, trace := range a.traces {
		for span, n := range trace {
			text := n.Name()
			switch {
			case n.Name() == spans.SpanRun:
				continue
			case n.joined:
				text = joinedSpan
			case !strings.HasPrefix(n.str(spans.AttrServiceName), "zeromq"):
				text += fmt.Sprint(n.StartTimestamp(), n.EndTimestamp())
			}
			all[[2]string{id.String(), span.String()}] = text
		}
	}
	return all, nil
}

// grow appends a part of each of these logs, in directories of the same names.
func grow(tb testing.TB, from, to string, part, parts int) {
	tb.Helper()
	files, err := filepath.Glob(from)
	require.NoError(tb, err)
	require.NotEmpty(tb, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(tb, err)
		lines := strings.SplitAfter(string(text), "\n")
		out := filepath.Join(to, filepath.Base(filepath.Dir(file)), filepath.Base(file))
		require.NoError(tb, os.MkdirAll(filepath.Dir(out), 0o750))
		f, err := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(tb, err)
		_, err = f.WriteString(strings.Join(lines[len(lines)*part/parts:len(lines)*(part+1)/parts], ""))
		require.NoError(tb, errors.Join(err, f.Close()))
	}
}
