package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/human"
)

const screen = 45 // lines

// The first screen of a job with many causes is a screen: lines wrap at the width, except evidence for copying.
func TestBriefIsOneScreen(t *testing.T) {
	dir := t.TempDir()
	job(t, dir, "--ranks", "16", "--steps", "60", "--faults", "straggler,data_loading,get,put,checkpoint,link,gpu,rpc.serialize", "--fault-every", "3")
	for _, columns := range []string{"60", "80", "200"} {
		t.Setenv("COLUMNS", columns)
		for _, lang := range []string{"en", "zh"} {
			out, err := report(t, "", dir, "--run", "job", "--lang", lang)
			require.NoError(t, err)
			width := map[string]int{"60": 60, "80": 80, "200": fullWidth}[columns]
			n := 0
			for line := range strings.Lines(out) {
				n++
				if !strings.Contains(line, "trace ") {
					assert.LessOrEqual(t, human.Columns(strings.TrimSuffix(line, "\n")), width, line)
				}
			}
			if columns != "60" {
				assert.LessOrEqual(t, n, screen, out)
			}
			assert.NotContains(t, out, "\x1b", "no terminal, no colours")
		}
	}
}

// The figures of the first screen are those of the whole report.
func TestBriefGolden(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("COLUMNS", "")
	job(t, dir, "--ranks", "2", "--steps", "30", "--faults", "straggler,data_loading")
	for _, lang := range []string{"en", "zh"} {
		out, err := report(t, "", dir, "--lang", lang, "--run", "job", "--device", "H100 SXM")
		require.NoError(t, err)
		file := filepath.Join("testdata", "brief."+lang+".txt")
		got := strings.ReplaceAll(out, dir, "/logs")
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), got)
		full := strings.Join(strings.Fields(textOf(t, dir, "--lang", lang, "--run", "job", "--device", "H100 SXM")), " ")
		for line := range strings.Lines(out) {
			if words := strings.Fields(line); lang == "en" && len(words) > 1 && strings.Contains(line, " s ") && !strings.Contains(line, "Wall clock") {
				assert.Contains(t, full, strings.Join(words, " "))
			}
		}
	}
}

// Of several runs each has its conclusion, and the run that failed comes first: how it ended, with all of its evidence, below.
func TestBriefOfSeveralRuns(t *testing.T) {
	dir := t.TempDir()
	steps := `{"step":1,"loss":2,"step_time_s":1}` + "\n" + `{"step":2,"loss":2,"step_time_s":1}` + "\n"
	for run, body := range map[string]string{
		"a": steps,
		"b": steps + "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"train.py\", line 3, in <module>\n[rank1]: ValueError: no such batch\n",
	} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, run), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, run, "train.log"), []byte(body), 0o600))
	}
	out, err := report(t, "", dir)
	require.NoError(t, err)
	first, second := strings.Index(out, filepath.Join(dir, "b")), strings.Index(out, filepath.Join(dir, "a"))
	assert.Less(t, first, second, out)
	assert.GreaterOrEqual(t, first, 0, out)
	assert.Contains(t, out, "\n    ValueError: no such batch, train.log:3, trace ")
	assert.NotContains(t, out, "Where the time went")
	assert.Regexp(t, `^2 runs\n  run +failed by +steps +step P50 +last loss +time +lost +share\n  b +exception +2 +1 s +2 .*\n  a +- +2 +1 s +2 `, out)
}

// A log of nobody's format is not called unreadable.
func TestBriefOfForeignFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.jsonl"), []byte(`{"step":1,"loss":2,"step_time_s":1}`+"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("hello\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cut.log.gz"), []byte("\x1f\x8b\x08"), 0o600))
	out, err := report(t, "", dir)
	require.NoError(t, err)
	assert.Contains(t, out, "1 file could not be read, 1 file had nothing that is known; trainbridge check")
}
