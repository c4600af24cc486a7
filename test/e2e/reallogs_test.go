//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Logs that others collected, where the checkout has them beside it: every file becomes spans, or metrics if it has no spans, and every line is accounted for.
func TestRealLogs(t *testing.T) {
	dir := filepath.Join(repoRoot, "../shared/logs/verl_tq")
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Logf("no logs in %s: nothing to check", dir)
		return
	}
	bin, j := trainbridgeBin(t), startJaeger(t)
	for i, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			path, err := filepath.Abs(file)
			require.NoError(t, err)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			service := fmt.Sprintf("real-%d", i)
			c := newCollector(t, bin, path, j.otlp, fmt.Sprintf("receivers: {tq_trace: {service_name: %q, pending_timeout: 2s}}", service))
			c.up(t)
			sum := accounts(t, c, int64(bytes.Count(data, []byte("\n"))))
			assert.Zero(t, sum["refused"])
			assert.Zero(t, sum["rejected"])
			if own := ownSpans(t, j, service); strings.Contains(name, "upstream") {
				// Only totals, which are metrics.
				assert.Zero(t, own)
				page, err := get(c.metrics, "")
				require.NoError(t, err)
				assert.Contains(t, string(page), "tq_storage_operation")
			} else {
				t.Log(own, "spans")
				assert.Positive(t, own)
			}
			c.stop(t)
		})
	}
}

// ownSpans counts the spans of a service. Logs of one run have the same trace ids, so that a trace may have spans of several.
func ownSpans(t *testing.T, j *jaeger, service string) (n int) {
	t.Helper()
	td, err := j.find(service)
	require.NoError(t, err)
	for _, rs := range td.ResourceSpans().All() {
		if v, _ := rs.Resource().Attributes().Get("service.name"); v.AsString() != service {
			continue
		}
		for _, ss := range rs.ScopeSpans().All() {
			n += ss.Spans().Len()
		}
	}
	return n
}
