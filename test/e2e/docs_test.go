//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each file of deploy/ is started by a test, and linked from a page.
func TestDeployFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repoRoot, "deploy/*/*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	sources, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var tests strings.Builder
	for _, f := range sources {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		tests.Write(text)
	}
	var pages strings.Builder
	for _, page := range []string{"docs/reference/scale.md", "docs/reference/dashboards.md", "docs/guides/kubernetes.md"} {
		text, err := os.ReadFile(filepath.Join(repoRoot, page))
		require.NoError(t, err)
		pages.Write(text)
	}
	for _, f := range files {
		name := filepath.Join(filepath.Base(filepath.Dir(f)), filepath.Base(f))
		if filepath.Dir(name) != "compose" { // TestCompose covers all of its mounts
			assert.Contains(t, tests.String(), name+`"`, "a test that starts it")
		}
		assert.Contains(t, pages.String(), "](../../deploy/"+name+")")
	}
}

// Queries of Tempo in tables.
var cellQuery = regexp.MustCompile("(?m)^\\| .* \\| `(\\{ .* \\})` \\|$")

// Tempo or Prometheus accepts each query of these pages.
func TestQueries(t *testing.T) {
	t.Parallel()
	tempo, prom := startTempo(t), startPrometheus(t)
	asked := map[bool]int{}
	var blocks []string
	for _, page := range []string{"docs/queries.md", "docs/reference/queries.md", "docs/reference/attributes.md"} {
		text, err := os.ReadFile(filepath.Join(repoRoot, page))
		require.NoError(t, err)
		for _, m := range cellQuery.FindAllStringSubmatch(string(text), -1) {
			blocks = append(blocks, m[1])
		}
		for i, block := range strings.Split(string(text), "```") {
			if i%2 == 1 {
				blocks = append(blocks, block)
			}
		}
	}
	for _, block := range blocks {
		for line := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
			trace := strings.HasPrefix(line, "{")
			asked[trace]++
			var err error
			if trace {
				_, err = tempo.search(line)
			} else {
				_, err = prom.query(line)
			}
			require.NoError(t, err, line)
		}
	}
	assert.GreaterOrEqual(t, asked[true], 34)
	assert.GreaterOrEqual(t, asked[false], 8)
}

// The operations of published jobs, in docs/reference/scale.md, follow from the formula above them.
func TestOperationsOfJobs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repoRoot, "docs/reference/scale.md"))
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| .*arxiv.* \| ([\d,]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| ([\d.]+) \| (\d+) \|$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, rows, 2)
	for _, row := range rows {
		var n [8]float64
		for i := 1; i < len(row); i++ {
			n[i], err = strconv.ParseFloat(strings.ReplaceAll(row[i], ",", ""), 64)
			require.NoError(t, err)
		}
		layers, pp, micro, virtual, step := n[2], n[3], n[4], n[5], n[6]
		assert.InDelta(t, (layers/pp*micro*8+4*micro*virtual)/step, n[7], 0.5)
	}
}
