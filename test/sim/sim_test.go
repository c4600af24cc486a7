package sim

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// read has the files of a directory.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(body)
		return err
	}))
	return files
}

// Equal seeds make equal bytes and an equal truth, others do not; names are unique; the truth adds up.
func TestScenarios(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Scenarios() {
		assert.False(t, names[s.Name], s.Name)
		names[s.Name] = true
		var bodies []map[string]string
		var truths []*Truth
		for _, seed := range []uint64{1, 1, 2} {
			dir := t.TempDir()
			truth, err := s.Write(dir, seed, time.UTC)
			require.NoError(t, err, s.Name)
			bodies, truths = append(bodies, read(t, dir)), append(truths, truth)
		}
		require.NotEmpty(t, bodies[0], s.Name)
		assert.True(t, assert.ObjectsAreEqual(bodies[0], bodies[1]), s.Name)
		assert.Equal(t, truths[0].Slow, truths[1].Slow, s.Name)
		assert.False(t, assert.ObjectsAreEqual(bodies[0], bodies[2]), s.Name)
		truth, sum := truths[0], 0.0
		for state, took := range truth.States {
			assert.GreaterOrEqual(t, took, 0.0, "%s: %s", s.Name, state)
			sum += took
		}
		assert.InDelta(t, truth.Wall, sum, 1e-6, s.Name)
		assert.Equal(t, truth.Wall > 0 && s.Kind != Drifting, truth.Goodput > 0, s.Name)
		assert.Less(t, truth.Goodput, 1.05, s.Name)
		steps, again := 0, 0
		for _, a := range truth.Attempts {
			steps, again = steps+a.Steps, again+a.Redone
		}
		assert.Equal(t, truth.Steps, steps-again, s.Name)
		if s.Kind != Faulty {
			assert.Empty(t, truth.Slow, s.Name)
		}
	}
	assert.GreaterOrEqual(t, len(names), 30)
}

// The wall clock of the truth agrees with the stamps in the log.
func TestWall(t *testing.T) {
	stamp := regexp.MustCompile(`(?m)(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6})\]? (?:iteration|$)`)
	seen := 0
	for _, s := range Scenarios() {
		dir := t.TempDir()
		truth, err := s.Write(dir, 3, time.UTC)
		require.NoError(t, err)
		var all []string
		for name, body := range read(t, dir) {
			if strings.HasPrefix(name, "megatron") {
				for _, m := range stamp.FindAllStringSubmatch(body, -1) {
					all = append(all, m[1])
				}
			}
		}
		if len(all) == 0 || truth.Wall == 0 || s.Name == "killed in mid-step" { // torchrun's line is the last there
			continue
		}
		seen++
		first, err := time.Parse(megatronTime, slices.Min(all))
		require.NoError(t, err)
		last, err := time.Parse(megatronTime, slices.Max(all))
		require.NoError(t, err)
		assert.InDelta(t, last.Sub(first).Seconds(), truth.Wall, 1e-3, s.Name)
	}
	assert.Greater(t, seen, 10)
}
