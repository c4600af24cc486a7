//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
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
	"go.yaml.in/yaml/v3"

	"github.com/trainbridge/trainbridge/spans"
)

// stepSink is a backend that counts the spans of each step of each run.
type stepSink struct {
	ptraceotlp.UnimplementedGRPCServer

	mu   sync.Mutex
	runs map[string]map[int64]map[pcommon.SpanID]string // ml.run.id, iteration, span: name
	addr string
}

func startStepSink(tb testing.TB) *stepSink {
	tb.Helper()
	s := &stepSink{runs: make(map[string]map[int64]map[pcommon.SpanID]string)}
	s.addr = serveTraces(tb, s)
	return s
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

// has says whether exactly these runs arrived, with their numbers of steps, each step once.
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
	p := &podLog{tb: tb, links: filepath.Join(root, "var/log/containers"), dir: filepath.Join(root, "var/log/pods", namespace+"_"+pod+"_"+uid, container), link: pod + "_" + namespace + "_" + container}
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

// write logs n steps. One line in four is in two pieces, as lines over 16 KiB are.
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

// rotate does the kubelet's rotation at 10 MiB: it compresses the last rotated file, renames the log, and has the runtime begin a new log.
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

// manifest has the tested parts of the objects in a file of deploy/kubernetes.
type manifest struct {
	Kind string
	Data map[string]string // of a ConfigMap
	Spec struct {
		Config   map[string]any // of an OpenTelemetryCollector
		Env      []environment
		Template struct {
			Spec struct {
				InitContainers []podContainer `yaml:"initContainers"`
				Containers     []podContainer
			}
		}
	}
}

type podContainer struct{ Env []environment }

type environment struct {
	Name, Value string
	ValueFrom   struct {
		FieldRef struct {
			FieldPath string `yaml:"fieldPath"`
		} `yaml:"fieldRef"`
	} `yaml:"valueFrom"`
}

// manifests reads a file of deploy, such as "kubernetes/agent.yaml", and returns its objects by kind.
func manifests(tb testing.TB, file string) map[string]*manifest {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot, "deploy", file))
	require.NoError(tb, err)
	all := make(map[string]*manifest)
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		m := new(manifest)
		err := d.Decode(m)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(tb, err)
		all[m.Kind] = m
	}
}

// onDisk is the environment of a pod's container, with the kubelet's values by field path; its directories are below root.
func onDisk(env []environment, root string, fields map[string]string) (vars []string) {
	for _, e := range env {
		if at := e.ValueFrom.FieldRef.FieldPath; at != "" {
			e.Value = fields[at]
		}
		switch {
		case strings.HasPrefix(e.Value, "/"):
			e.Value = root + strings.ReplaceAll(e.Value, ",/", ","+root+"/")
		case e.Name == "TRAINBRIDGE_LISTEN":
			e.Value = "127.0.0.1" // the test's host may have others listen on all addresses
		}
		if strings.HasPrefix(e.Name, "TRAINBRIDGE_") {
			vars = append(vars, e.Name+"="+e.Value)
		}
	}
	return vars
}

// Kubernetes' API and the operator's CRD have each field of the manifests; the configurations are those of deploy/otlp, and a collector accepts them.
func TestKubernetesManifests(t *testing.T) {
	t.Parallel()
	python := binary(t, "TRAINBRIDGE_KUBERNETES_PYTHON", "bin/tools/kubernetes/bin/python", "make kubernetes")
	check := filepath.Join(repoRoot, "tools/kubernetes/check.py")
	files := []string{"agent.yaml", "gateway.yaml", "operator.yaml", "job-node.yaml", "job-sidecar.yaml"}
	all := []string{check}
	for _, f := range files {
		all = append(all, filepath.Join(repoRoot, "deploy/kubernetes", f))
	}
	run(t, nil, python, all...)
	for i, path := range all[1:] {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		wrong := write(t, files[i], strings.Replace(string(text), "volumeMounts:", "volumemounts:", 1))
		out, err := exec.Command(python, check, wrong).CombinedOutput()
		require.Error(t, err, path)
		assert.Contains(t, string(out), "'volumemounts' was unexpected", path)
	}

	for values, of := range map[string]*manifest{
		"kubernetes/agent-values.yaml":   manifests(t, "kubernetes/agent.yaml")["DaemonSet"],
		"kubernetes/gateway-values.yaml": manifests(t, "kubernetes/gateway.yaml")["StatefulSet"],
	} {
		text, err := os.ReadFile(filepath.Join(repoRoot, "deploy", values))
		require.NoError(t, err)
		var chart struct {
			ExtraEnvs []environment `yaml:"extraEnvs"`
		}
		require.NoError(t, yaml.Unmarshal(text, &chart))
		require.NotEmpty(t, chart.ExtraEnvs)
		assert.Subset(t, of.Spec.Template.Spec.Containers[0].Env, chart.ExtraEnvs, "run tools/kubernetes/render.sh")
	}

	parse := func(text string) (config map[string]any) {
		require.NoError(t, yaml.Unmarshal([]byte(text), &config))
		return config
	}
	of := func(file string) map[string]any {
		text, err := os.ReadFile(filepath.Join(repoRoot, "deploy", file))
		require.NoError(t, err)
		return parse(string(text))
	}
	assert.Equal(t, of("otlp/agent.yaml"), parse(manifests(t, "kubernetes/agent.yaml")["ConfigMap"].Data["relay"]), "run tools/kubernetes/render.sh")
	assert.Equal(t, of("otlp/gateway.yaml"), parse(manifests(t, "kubernetes/gateway.yaml")["ConfigMap"].Data["relay"]), "run tools/kubernetes/render.sh")
	operator := manifests(t, "kubernetes/operator.yaml")["OpenTelemetryCollector"]
	want := of("otlp/agent.yaml")
	want["receivers"].(map[string]any)["nvml"] = map[string]any{}
	delete(want["extensions"].(map[string]any), "health_check")
	want["service"].(map[string]any)["extensions"] = []any{"state_storage"}
	assert.Equal(t, want, operator.Spec.Config, "run tools/kubernetes/render.sh")

	config, err := yaml.Marshal(operator.Spec.Config)
	require.NoError(t, err)
	root := t.TempDir()
	env := append(onDisk(operator.Spec.Env, root, nil), "OTEL_CONFIG="+string(config)) // as the operator passes it (pkg/sidecar/pod.go)
	run(t, env, trainbridgeBin(t), "validate", "--config=env:OTEL_CONFIG")
}

// startPods runs the agent of a manifest with a backend of the test's own.
func startPods(t *testing.T, s *stepSink, env []string, more ...string) *collector {
	t.Helper()
	c := deployed(t, "otlp/agent.yaml", append(append(env, "TRAINBRIDGE_OTLP_ENDPOINT="+s.addr, "TRAINBRIDGE_OTLP_PORT=0", "TRAINBRIDGE_OTLP_HTTP_PORT=0"), more...)...)
	c.merge(t, "exporters: {otlp_acked: {compression: none}}") // the test's backend knows no zstd
	c.up(t)
	return c
}

// An agent on a node reads the kubelet's logs, through the links or directly: each line once, for any rotation, also while the agent is down, and each pod is a
// run.
func TestKubernetesLogs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"links", "files"} {
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
			s := startStepSink(t)
			env := onDisk(manifests(t, "kubernetes/agent.yaml")["DaemonSet"].Spec.Template.Spec.Containers[0].Env, root, map[string]string{"spec.nodeName": "node-0"})
			if name == "links" {
				env = append(env, "TRAINBRIDGE_LOGS="+root+"/var/log/containers/*.log", "TRAINBRIDGE_FOLLOW_SYMLINKS=true")
			}
			c := startPods(t, s, env)
			all := func(do func(p *podLog)) {
				for _, p := range pods {
					do(p)
				}
				eventually(t, func() error { return s.has(want()) })
			}
			all(func(p *podLog) { p.write(20) })
			all(func(p *podLog) { p.rotate(); p.write(20); p.rotate(); p.write(20) })
			c.kill()
			for _, p := range pods {
				p.write(10)
				p.rotate()
				p.write(10)
				p.rotate()
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

// All pods of a job are one run, with logs in one directory of a node or read by an agent in each pod, and the next job is another run.
func TestKubernetesJobs(t *testing.T) {
	t.Parallel()
	steps := func(path string, from, to int) {
		var text strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&text, `{"step": %d, "loss": %.4f, "step_time": 0.5}`+"\n", i, 9/float64(i))
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	}
	const uid = "metadata.labels['batch.kubernetes.io/controller-uid']"

	t.Run("node", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		job := manifests(t, "kubernetes/job-node.yaml")["Job"].Spec.Template.Spec.Containers[0]
		assert.Equal(t, uid, job.Env[0].ValueFrom.FieldRef.FieldPath)
		dir := func(job string) string { return filepath.Join(root, "var/log/training", job) }
		steps(dir("0f3a1b52")+"/llama-0.log", 1, 10)
		steps(dir("0f3a1b52")+"/llama-1.log", 11, 20)
		steps(dir("7c41d00e")+"/llama-0.log", 1, 30)
		s := startStepSink(t)
		c := startPods(t, s, onDisk(manifests(t, "kubernetes/agent.yaml")["DaemonSet"].Spec.Template.Spec.Containers[0].Env, root, nil))
		eventually(t, func() error {
			return s.has(map[string]int{spans.DirectoryRun(dir("0f3a1b52") + "/x"): 20, spans.DirectoryRun(dir("7c41d00e") + "/x"): 30})
		})
		c.stop(t)
	})

	t.Run("sidecar", func(t *testing.T) {
		t.Parallel()
		s := startStepSink(t)
		var pods []*collector
		for i, job := range []string{"0f3a1b52", "0f3a1b52", "7c41d00e"} {
			root := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(root, "logs"), 0o750)) // the volume
			sidecar := manifests(t, "kubernetes/job-sidecar.yaml")["Job"].Spec.Template.Spec.InitContainers[0]
			c := startPods(t, s, onDisk(sidecar.Env, root, map[string]string{uid: job, "metadata.name": fmt.Sprint("llama-", i)}))
			steps(filepath.Join(root, "logs/llama.log"), 1+10*(i%2), 10+10*(i%2))
			pods = append(pods, c)
		}
		eventually(t, func() error { return s.has(map[string]int{"0f3a1b52": 20, "7c41d00e": 10}) })
		for _, c := range pods {
			c.stop(t)
		}
	})
}
