package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// past is a run of a day with a step time.
func past(day int, step, ranks float64) Past {
	return Past{
		Run: "run-" + string(rune('a'+day%26)), Start: time.Date(2026, 10, 1+day, 12, 0, 0, 0, time.UTC), Texts: map[string]string{"formats": "jsonl"},
		Numbers: map[string]float64{"step_time_s_p50": step, "ranks": ranks, "goodput": 0.9, "wall_s": 100, "steps": 10},
	}
}

// The conclusion says what is beyond all like runs, and nothing with few of them.
func TestAmong(t *testing.T) {
	var before []Past
	for day := range 40 {
		before = append(before, past(day, 1+float64(day%5)/100, 8), past(day, 9, 16))
	}
	slow := rankAmong(past(50, 1.3, 8), before, "")
	assert.Equal(t, "Unusual among 40 like runs before it: step time 1.3 s, longest of 41 (median 1.02 s). "+
		"By chance alone a figure is beyond all others in 2 of 41 runs.", slow.conclusion())
	assert.Equal(t, 40, slow.others)
	assert.Equal(t, 41, slow.figures[0].Rank)
	fast := rankAmong(past(50, 0.9, 8), before, "")
	assert.Contains(t, fast.conclusion(), "step time 900 ms, shortest of 41")
	assert.Equal(t, 1, fast.figures[0].Rank)
	usual := rankAmong(past(50, 1.02, 8), before, "")
	assert.Equal(t, "Nothing unusual: each figure is within those of 40 like runs before it.", usual.conclusion())
	assert.Equal(t, 17, usual.figures[0].Rank, "the same as 8 others")
	assert.Equal(t, "Only 5 like runs before it: too few to call anything unusual (10 at least).", rankAmong(past(50, 7, 8), before[:10], "").conclusion())
	none := rankAmong(past(50, 7, 4), before, "")
	assert.Equal(t, "There is no like run before it: nothing to compare with.", none.conclusion())

	var text bytes.Buffer
	slow.writeText(&text)
	assert.Equal(t, `run-y, begun 2026-11-20 12:00:00: jsonl, 8 GPUs
Unusual among 40 like runs before it: step time 1.3 s, longest of 41 (median 1.02 s). By chance
alone a figure is beyond all others in 2 of 41 runs.

figure                               this run       rank     median   range
step time                               1.3 s   41 of 41     1.02 s   1–1.04 s
goodput                                   90%    1 of 41        90%   90%

Rank 1 is the lowest. Like runs have the same trainer, model and number of GPUs; 40 other runs left out.
`, text.String())
	text.Reset()
	require.NoError(t, none.writeJSON(&text))
	var document map[string]any
	require.NoError(t, json.Unmarshal(text.Bytes(), &document))
	assert.InDelta(t, 0, document["like_runs"], 0)
}

// With a path alone, the command takes a lake, and says so of anything else.
func TestCompareHistory(t *testing.T) {
	was := ReadHistory
	t.Cleanup(func() { ReadHistory = was })
	ReadHistory = nil
	lake := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(lake, "runs", "day=2026-11-20"), 0o700))
	run := func(args ...string) (stdout, stderr string, err error) {
		cmd := NewCommand()
		var out, errs bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SilenceErrors = true
		cmd.SetArgs(args)
		err = cmd.ExecuteContext(t.Context())
		return out.String(), errs.String(), err
	}
	_, _, err := run(lake)
	require.EqualError(t, err, "compare: a lake is read by the full build only: make that with `make build-full`")
	ReadHistory = func(_, id string, last time.Duration) (Past, []Past, []error, error) {
		if id == "none" {
			return Past{}, nil, nil, nil
		}
		assert.Equal(t, 30*24*time.Hour, last)
		return past(50, 1, 8), nil, []error{io.ErrUnexpectedEOF, errors.New("more")}, nil
	}
	stdout, stderr, err := run(lake, "--last", "30d", "--format", "json")
	require.NoError(t, err)
	assert.Contains(t, stdout, `"last": "30d"`)
	assert.Equal(t, "2 files left out, such as unexpected EOF\n", stderr)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{lake, "--run", "none"}, "--run none: " + lake + " has no such run"},
		{[]string{lake, "--last", "30"}, `--last "30": a number of days, such as 30d`},
		{[]string{lake, "--last", "-1d"}, `--last "-1d"`},
		{[]string{lake, "--format", "html"}, "English text or JSON"},
		{[]string{t.TempDir(), "--last", "30d"}, "is no lake"},
		{[]string{"a", "b", "--last", "30d"}, "--last is of a lake"},
	} {
		_, _, err := run(tt.args...)
		require.ErrorContains(t, err, tt.want, tt.args)
	}
}
