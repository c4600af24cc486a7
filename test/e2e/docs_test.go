//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var docLink = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

// The pages that users read first fit a screen, and their links lead to pages that exist.
func TestDocs(t *testing.T) {
	pages := []string{"README.md", "CONTRIBUTING.md"}
	for _, glob := range []string{
		"docs/*.md", "docs/adr/*.md", "receivers/*/README.md", "processors/*/README.md", "connectors/*/README.md", "exporters/*/README.md", "extensions/*/README.md",
	} {
		found, err := filepath.Glob(filepath.Join(repoRoot, glob))
		require.NoError(t, err)
		require.NotEmpty(t, found, glob)
		for _, f := range found {
			page, err := filepath.Rel(repoRoot, f)
			require.NoError(t, err)
			pages = append(pages, page)
		}
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(repoRoot, page))
		require.NoError(t, err)
		for _, m := range docLink.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(m[1], "://") {
				_, err := os.Stat(filepath.Join(repoRoot, filepath.Dir(page), m[1]))
				require.NoErrorf(t, err, "%s links to it", page)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(repoRoot, "README.md"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	assert.LessOrEqual(t, len(lines), 150, "lines of README.md")
	for i, line := range lines {
		assert.LessOrEqualf(t, utf8.RuneCountInString(line), 120, "README.md:%d", i+1)
	}
}

// Each file of deploy/ is started by a test, and a page leads to it.
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
	for _, page := range []string{"docs/scale.md", "docs/dashboards.md", "docs/kubernetes.md"} {
		text, err := os.ReadFile(filepath.Join(repoRoot, page))
		require.NoError(t, err)
		pages.Write(text)
	}
	for _, f := range files {
		name := filepath.Join(filepath.Base(filepath.Dir(f)), filepath.Base(f))
		if filepath.Dir(name) != "compose" { // TestCompose takes all that it mounts
			assert.Contains(t, tests.String(), name+`"`, "a test that starts it")
		}
		assert.Contains(t, pages.String(), "](../deploy/"+name+")")
	}
}

// Tempo or Prometheus accepts each query of docs/queries.md and docs/attributes.md.
func TestQueries(t *testing.T) {
	t.Parallel()
	tempo, prom := startTempo(t), startPrometheus(t)
	asked := map[bool]int{}
	var blocks []string
	for _, page := range []string{"docs/queries.md", "docs/attributes.md"} {
		text, err := os.ReadFile(filepath.Join(repoRoot, page))
		require.NoError(t, err)
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
	assert.GreaterOrEqual(t, asked[true], 6)
	assert.GreaterOrEqual(t, asked[false], 8)
}

// The operations of published jobs, in docs/scale.md, are those of the formula above them.
func TestOperationsOfJobs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repoRoot, "docs/scale.md"))
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
