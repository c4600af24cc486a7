package nonlog

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		rel, pattern string
		isDir        bool
		name, at     string
	}{
		{"train.log", "/job/**", false, "", ""},
		{"step_100/model.safetensors", "/job/**", false, ".safetensors", "step_100/model.safetensors"},
		{"step_100/MODEL.PT", "/job/**", false, ".pt", "step_100/MODEL.PT"},
		{"MODEL.PT", "/job/*.pt", false, "", ""},
		{"a/.git/HEAD", "/job/**", false, ".git", "a/.git"},
		{"a/.git", "/job/**", true, ".git", "a/.git"},
		{"a/.git", "/job/**", false, "", ""}, // of a worktree: a file
		{"a/.git/HEAD", "/job/**/.git/*", false, "", ""},
		{"a.pt", "/job/**", true, "", ""},
		{"env/lib/python3.12/site-packages/x/y.txt", "/job/**", false, "site-packages", "env/lib/python3.12/site-packages"},
		{".git/x/__pycache__/y.pyc", "/job/.git/**", false, "__pycache__", ".git/x/__pycache__"},
		{"nccl_trace_rank_3", "/job/**", false, "", ""},
		{"train.log.truth.json", "/job/**", false, "truth.json", "train.log.truth.json"},
		{"a/truth.json", "/job/**", false, "truth.json", "a/truth.json"},
		{"a/truth.json", "/job/*/truth.json", false, "", ""},
		{"a/untruth.json", "/job/**", false, "", ""},
		{"train.log.gz", "/job/**", false, "", ""},
		{"logs.tar", "/job/**", false, "", ""},
		{"job.o4711", "/job/**", false, "", ""},
	} {
		name, end := Of(tc.rel, tc.pattern, tc.isDir)
		assert.Equal(t, tc.name, name, "%+v", tc)
		assert.Equal(t, tc.at, tc.rel[:end], "%+v", tc)
	}
}

// No file that tests read is skipped, and no recorded log.
func TestOfFixtures(t *testing.T) {
	var fixtures []string
	for _, root := range []string{"../..", "../../../shared/logs"} {
		root, err := filepath.Abs(root)
		require.NoError(t, err)
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && (strings.Contains(path, "/testdata/") || strings.Contains(path, "/shared/logs/")) {
				rel, _ := filepath.Rel(root, path)
				fixtures = append(fixtures, rel)
			}
			return nil
		}))
	}
	require.Greater(t, len(fixtures), 100)
	for _, f := range fixtures {
		name, _ := Of(f, "**", false)
		if isTruth(filepath.Base(f)) {
			continue // see TestOf
		}
		assert.Empty(t, name, f)
	}
}

func TestTally(t *testing.T) {
	assert.Empty(t, Tally(nil).String())
	assert.Equal(t, "1200 .pt, 3 .git, 3 .so", Tally{".pt": 1200, ".so": 3, ".git": 3}.String())
	many := make(Tally)
	for i, s := range suffixes {
		many[s] = i + 1
	}
	assert.Equal(t, len(suffixes)*(len(suffixes)+1)/2, many.Sum())
	assert.True(t, strings.HasSuffix(many.String(), "more kinds"), many)
	for _, list := range [][]string{directories, suffixes} {
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(list))), len(list), "each once")
	}
	for _, s := range suffixes {
		assert.Equal(t, "."+strings.ToLower(strings.TrimPrefix(s, ".")), s)
	}
}
