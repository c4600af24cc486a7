//go:build e2e

package e2e

import (
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/trainbridge/trainbridge/spans"
)

// stepSink is a backend that counts the spans of each step of each run.
type stepSink struct {
	ptraceotlp.UnimplementedGRPCServer

	mu   sync.Mutex
	runs map[string]map[int64]map[pcommon.SpanID]string // ml.run.id, iteration, span: the log
}

// Export takes spans.
func (s *stepSink) Export(_ context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rs := range req.Traces().ResourceSpans().All() {
		id, _ := rs.Resource().Attributes().Get(spans.AttrRunID)
		run := id.AsString()
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				iteration, ok := span.Attributes().Get(spans.AttrIteration)
				if !ok || strings.HasSuffix(ss.Scope().Name(), "/stepjoinprocessor") {
					continue
				}
				if s.runs[run] == nil {
					s.runs[run] = make(map[int64]map[pcommon.SpanID]string)
				}
				if s.runs[run][iteration.Int()] == nil {
					s.runs[run][iteration.Int()] = make(map[pcommon.SpanID]string)
				}
				s.runs[run][iteration.Int()][span.SpanID()] = span.Name()
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

// has says whether these runs, each by its number of steps, are all that came, each step once.
func (s *stepSink) has(want map[string]int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runs) > len(want) {
		return fatal(fmt.Errorf("%d runs, want %d", len(s.runs), len(want)))
	}
	for _, run := range slices.Sorted(maps.Keys(want)) {
		got, steps := s.runs[run], want[run]
		for i := range int64(steps) {
			if n := len(got[i+1]); n != 1 {
				return fmt.Errorf("run %s: %d spans of step %d: %v", run, n, i+1, got[i+1])
			}
		}
		if len(got) != steps {
			return fatal(fmt.Errorf("run %s: %d steps, want %d", run, len(got), steps))
		}
	}
	return nil
}

// podLog is the log of a container as containerd writes it and the kubelet rotates it (kubernetes/kubernetes pkg/kubelet/logs/container_log_manager.go).
type podLog struct {
	tb        testing.TB
	links     string // /var/log/containers
	dir       string // /var/log/pods/<namespace>_<pod>_<uid>/<container>
	link      string // the link's name without the container's id
	restarts  int
	rotations int
	steps     int
}

func newPodLog(tb testing.TB, root, namespace, pod, container string) *podLog {
	tb.Helper()
	id := spans.KeyTraceID("", "pod", []byte(namespace+pod))
	uid := fmt.Sprintf("0f3a1b52-7a3c-4c11-9d5e-%012x", id[:6])
	p := &podLog{tb: tb, links: filepath.Join(root, "containers"), dir: filepath.Join(root, "pods", namespace+"_"+pod+"_"+uid, container), link: pod + "_" + namespace + "_" + container}
	for _, dir := range []string{p.links, p.dir} {
		require.NoError(tb, os.MkdirAll(dir, 0o750))
	}
	p.starts()
	return p
}

func (p *podLog) path() string { return filepath.Join(p.dir, fmt.Sprintf("%d.log", p.restarts)) }

func (p *podLog) starts() {
	require.NoError(p.tb, os.WriteFile(p.path(), nil, 0o600))
	id := strings.Repeat(fmt.Sprintf("%x", p.restarts+10), 64)
	require.NoError(p.tb, os.Symlink(p.path(), filepath.Join(p.links, p.link+"-"+id+".log")))
}

// restart has the kubelet start the container again: a new file, and a new link.
func (p *podLog) restart() {
	p.restarts++
	p.starts()
}

// write logs n steps. One line in four comes in two pieces, as one of more than 16 KiB does.
func (p *podLog) write(n int) {
	p.tb.Helper()
	f, err := os.OpenFile(p.path(), os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(p.tb, err)
	for range n {
		p.steps++
		at := time.Date(2026, 11, 26, 10, 0, p.steps, 123456789, time.UTC).Format(time.RFC3339Nano)
		line := fmt.Sprintf(`{"step": %d, "loss": %.4f, "step_time": 0.%03d}`, p.steps, 9/float64(p.steps), 500+p.steps%100)
		if p.steps%4 == 0 {
			_, err = fmt.Fprintf(f, "%s stdout P %s\n%s stdout F %s\n", at, line[:20], at, line[20:])
		} else {
			_, err = fmt.Fprintf(f, "%s stdout F %s\n", at, line)
		}
		require.NoError(p.tb, err)
	}
	require.NoError(p.tb, f.Close())
}

// rotate does what the kubelet does at 10 MiB: it compresses what was rotated before, renames the log, and has the runtime begin another.
func (p *podLog) rotate() {
	p.tb.Helper()
	old, err := filepath.Glob(p.path() + ".*")
	require.NoError(p.tb, err)
	for _, path := range old {
		if strings.HasSuffix(path, ".gz") {
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(p.tb, err)
		f, err := os.Create(path + ".tmp")
		require.NoError(p.tb, err)
		w := gzip.NewWriter(f)
		_, err = w.Write(text)
		require.NoError(p.tb, err)
		require.NoError(p.tb, w.Close())
		require.NoError(p.tb, f.Close())
		require.NoError(p.tb, os.Rename(path+".tmp", path+".gz"))
		require.NoError(p.tb, os.Remove(path))
	}
	p.rotations++
	require.NoError(p.tb, os.Rename(p.path(), fmt.Sprintf("%s.20261126-1000%02d", p.path(), p.rotations)))
	require.NoError(p.tb, os.WriteFile(p.path(), nil, 0o600))
}

// An agent on a node reads what the kubelet writes, through its links or where they lead: each line once, and each pod is a run. What the kubelet rotates while
// the agent is away is found where it lies, and not through the links.
func TestKubernetesLogs(t *testing.T) {
	t.Parallel()
	for name, logs := range map[string]string{"links": "containers/*.log", "files": "pods/*/*/*.log"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			pods := []*podLog{newPodLog(t, root, "ml", "llama-worker-0", "pytorch"), newPodLog(t, root, "ml", "qwen-worker-0", "pytorch")}
			want := func() map[string]int {
				steps := make(map[string]int)
				for _, p := range pods {
					steps[spans.DirectoryRun(filepath.Join(p.dir, "0.log"))] = p.steps
				}
				return steps
			}
			s := &stepSink{runs: make(map[string]map[int64]map[pcommon.SpanID]string)}
			c := newCollector(t, trainbridgeBin(t), "", serveTraces(t, s))
			c.env = append(c.env, "TRAINBRIDGE_LOGS="+filepath.Join(root, logs), "TRAINBRIDGE_FOLLOW_SYMLINKS="+fmt.Sprint(name == "links"))
			c.up(t)
			all := func(do func(p *podLog)) {
				for _, p := range pods {
					do(p)
				}
				eventually(t, func() error { return s.has(want()) })
			}
			all(func(p *podLog) { p.write(20) })
			all(func(p *podLog) { p.rotate(); p.write(20) })
			all(func(p *podLog) { p.rotate(); p.write(20) })
			c.kill()
			for _, p := range pods {
				p.write(10)
				if name == "files" { // beside a link is nothing that was rotated
					p.rotate()
					p.write(10)
					p.rotate()
				}
				p.restart()
				p.write(10)
			}
			c.up(t)
			all(func(p *podLog) { p.write(10) })
			all(func(p *podLog) { p.rotate(); p.restart(); p.write(10) })
			assert.Len(t, want(), 2)
			c.stop(t)
		})
	}
}
