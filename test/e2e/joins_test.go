//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/fakenvml"
)

// An operator's joins: a run with its Slurm job, its namespace and its GPUs, by nvml and by dcgm-exporter, with the queries of docs/reference/queries.md. The
// page of dcgm-exporter in testdata is ours, in the form of NVIDIA/dcgm-exporter internal/pkg/rendermetrics/render_metrics.go with the labels added by its
// transformation for Kubernetes.
func TestJoins(t *testing.T) {
	t.Parallel()
	tr := generateJob(t, "--ranks", "16", "--steps", "40", "--seed", "9")
	host, err := os.Hostname()
	require.NoError(t, err)
	dcgm := serveDCGM(t, host)
	lib := fakenvml.Build(t)
	state, err := fakenvml.New(filepath.Join(t.TempDir(), "state"), "devices 2\n")
	require.NoError(t, err)
	defer state.Close()
	logs := t.TempDir()
	j := startJaeger(t)
	c := newCollector(t, trainbridgeBin(t), filepath.Join(t.TempDir(), "none"), j.otlp, "receivers: {nvml: {collection_interval: 1s, initial_delay: 0s}}")
	c.env = append(c.env, "LD_LIBRARY_PATH="+lib, fakenvml.Env+"="+state.Path(), "TRAINBRIDGE_TRAIN_LOGS="+tr.dir+"/train/*,"+logs+"/*",
		"TRAINBRIDGE_RUN_ID="+tr.RunID, "TRAINBRIDGE_SERVICE=llama", "TRAINBRIDGE_COLLECTOR=agent-0",
		"SLURM_JOB_ID=81234", "SLURM_JOB_NAME=llama3", "SLURM_JOB_PARTITION=h100", "K8S_POD_NAME=llama-0", "K8S_NODE_NAME=node-7",
		"OTEL_RESOURCE_ATTRIBUTES=k8s.namespace.name=ml")
	prom := startPrometheusWith(t, fmt.Sprintf("  - job_name: dcgm\n    honor_labels: true\n    static_configs: [{targets: [%q]}]\n",
		dcgm), nil, c.scrape...)
	c.up(t)
	prom.awaitValues(t, map[string]float64{
		`sum(ml_train_tokens_total{trainbridge_source="jsonl"})`: float64(tr.Tokens), // the single truth of tokens
		`count(hw_power_watts)`:                                  2,
	})
	// A log that names its process, with memory of the first GPU in fakenvml, its host and its rank.
	var lines strings.Builder
	for i := range 3 {
		fmt.Fprintf(&lines, "(TaskRunner pid=1000, ip=10.1.2.3) {\"step\": %d, \"loss\": 2.5, \"rank\": 5, \"hostname\": %q, \"tokens\": 1000}\n", i+1, host)
	}
	require.NoError(t, os.WriteFile(filepath.Join(logs, "rank.log"), []byte(lines.String()), 0o600))

	queries := section(t, "docs/reference/queries.md", "## Joins")
	require.Len(t, queries, 7)
	const gpu = "GPU-00000000-0000-0000-0000-000000000000"
	run := map[string]string{"job": "llama", "instance": tr.RunID}
	onGPU := map[string]string{"job": "llama", "instance": tr.RunID, "host_name": host, "hw_id": gpu, "hw_name": "GPU 0", "dl_rank": "5"}
	checkJoins(t, prom, queries, []map[string]string{
		{"slurm_job_id": "81234", "slurm_job_name": "llama3", "slurm_job_partition": "h100"},
		{"k8s_namespace_name": "ml", "instance": tr.RunID},
		{"k8s_pod_name": "llama-0", "k8s_node_name": "node-7"},
		run, nil, onGPU,
		{"host_name": host},
	})
	prom.awaitValues(t, map[string]float64{queries[3]: 300, queries[5]: 0.92, queries[6]: 0.46})
	prom.awaitValues(t, map[string]float64{fmt.Sprintf(`ml_train_loss{host_name=%q,dl_rank="5"}`, host): 2.5})
	checkPromtool(t, c.metrics)
	c.stop(t)
	assert.Empty(t, c.complaints(t))
}

// serveDCGM serves a page of dcgm-exporter on a host.
func serveDCGM(t *testing.T, host string) (addr string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("testdata", "dcgm", "metrics.prom"))
	require.NoError(t, err)
	text := strings.ReplaceAll(string(page), `"HOST"`, fmt.Sprintf("%q", host))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// checkJoins waits until each query has one answer, with the expected labels; nil: none.
func checkJoins(t *testing.T, prom *prometheus, queries []string, wants []map[string]string) {
	t.Helper()
	for i, want := range wants {
		query := queries[i]
		if i == 0 {
			query = strings.TrimSuffix(query, " < 0.8")
		}
		eventually(t, func() error {
			got, err := prom.query(query)
			switch {
			case err != nil:
				return err
			case want == nil && len(got) == 0: // no heat
				return nil
			case len(got) != 1:
				return fmt.Errorf("%s is %v", query, got)
			}
			for name, value := range want {
				if got[0].Metric[name] != value {
					return fmt.Errorf("%s is %v, want %v", query, got, want)
				}
			}
			return nil
		})
	}
}

// section are the lines in code blocks of a section of a page.
func section(t *testing.T, page, title string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot, page))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "\n"+title+"\n")
	require.True(t, ok)
	rest, _, _ = strings.Cut(rest, "\n## ")
	for i, block := range strings.Split(rest, "```") {
		if i%2 == 1 {
			lines = append(lines, strings.Split(strings.TrimSpace(block), "\n")...)
		}
	}
	return lines
}
