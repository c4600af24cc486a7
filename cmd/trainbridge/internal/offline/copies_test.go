package offline

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hfRow is a row of log_history, as transformers writes it.
func hfRow(step int, loss float64) map[string]any {
	return map[string]any{"epoch": float64(step) / 500, "grad_norm": 1.0, "learning_rate": 1e-4, "loss": loss, "step": step}
}

// writeState writes a trainer_state.json with rows up to a step.
func writeState(t *testing.T, dir string, steps int, last ...map[string]any) string {
	t.Helper()
	var rows []map[string]any
	for s := 10; s <= steps; s += 10 {
		rows = append(rows, hfRow(s, 3-float64(s)/1000))
	}
	body, err := json.MarshalIndent(map[string]any{"global_step": steps, "log_history": append(rows, last...)}, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	path := filepath.Join(dir, "trainer_state.json")
	require.NoError(t, os.WriteFile(path, body, 0o600))
	return path
}

// TestStatesOfOneTraining: an output directory of Hugging Face's Trainer is one run with each row once, however many checkpoints.
func TestStatesOfOneTraining(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	out := filepath.Join(dir, "out")
	for _, s := range []int{500, 1000, 1500} {
		writeState(t, filepath.Join(out, fmt.Sprintf("checkpoint-%d", s)), s)
	}
	last := filepath.Join(out, "checkpoint-1500", "trainer_state.json")
	in, err := Open([]string{dir}, nil)
	require.NoError(t, err)
	defer in.Close()
	assert.Equal(t, []string{last}, in.Files)
	assert.Equal(t, []Copy{
		{filepath.Join(out, "checkpoint-1000", "trainer_state.json"), last}, {filepath.Join(out, "checkpoint-500", "trainer_state.json"), last},
	}, in.Copies)
	got, err := Read(t.Context(), in, Options{}, Sink{})
	require.NoError(t, err)
	assert.Len(t, got.Runs, 1)

	// The run's own state has the summary besides.
	own := writeState(t, out, 1500, map[string]any{"epoch": 3, "step": 1500, "train_runtime": 500.0})
	in, err = Open([]string{dir}, nil)
	require.NoError(t, err)
	defer in.Close()
	assert.Equal(t, []string{own}, in.Files)
	assert.Len(t, in.Copies, 3)

	// An earlier training in the same directory has different rows.
	other := filepath.Join(out, "checkpoint-400")
	writeState(t, other, 390, hfRow(400, 9))
	in, err = Open([]string{dir}, nil)
	require.NoError(t, err)
	defer in.Close()
	assert.Equal(t, []string{filepath.Join(other, "trainer_state.json"), own}, in.Files)
	got, err = Read(t.Context(), in, Options{}, Sink{})
	require.NoError(t, err)
	assert.Len(t, got.Runs, 1)

	// A state named alone is read.
	in, err = Open([]string{filepath.Join(out, "checkpoint-500")}, nil)
	require.NoError(t, err)
	defer in.Close()
	assert.Len(t, in.Files, 1)

	// An invalid state is no copy.
	for _, body := range []string{"", "{", `{"log_history": []}`, `{"log_history": 3}`, "NaN"} {
		a := t.TempDir()
		for _, d := range []string{a, filepath.Join(a, "checkpoint-1")} {
			require.NoError(t, os.MkdirAll(d, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(d, "trainer_state.json"), []byte(body), 0o600))
		}
		in, err := Open([]string{a}, nil)
		require.NoError(t, err)
		assert.Len(t, in.Files, 2, body)
		in.Close()
	}
}

// TestTruthIsNoLog: the generator's truth beside its logs is passed over, unless named.
func TestTruthIsNoLog(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"train.log", "train.log.truth.json", "truth.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(`{"step": 1, "loss": 2.5}`+"\n"), 0o600))
	}
	for _, path := range []string{dir, filepath.Join(dir, "*")} {
		in, err := Open([]string{path}, nil)
		require.NoError(t, err)
		assert.Len(t, in.Files, 1, path)
		assert.Equal(t, 2, in.PassedOver["truth.json"], path)
		in.Close()
	}
	in, err := Open([]string{filepath.Join(dir, "truth.json")}, nil)
	require.NoError(t, err)
	assert.Len(t, in.Files, 1)
	in.Close()
}

// A state beside a console that has its steps, and a bar with their times, is not read. Without the bar the console's lines have no steps.
func TestStateBesideConsole(t *testing.T) {
	for name, tt := range map[string]struct {
		bar  string
		read int // files
	}{
		"a bar":  {"\r 10%%|█         | %d/600 [00:12<10:44,  1.10s/it]", 1},
		"no bar": {"", 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			path := writeState(t, filepath.Join(dir, "out", "checkpoint-600"), 600)
			body, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(body), `"global_step": 600`, `"global_step": 600, "max_steps": 600`, 1)), 0o600))
			var console strings.Builder
			for s := 10; s <= 600; s += 10 {
				if tt.bar != "" {
					fmt.Fprintf(&console, tt.bar, s)
				}
				fmt.Fprintf(&console, "{'loss': %.3f, 'grad_norm': 1.0, 'learning_rate': 0.0001, 'epoch': %.2f}\n", 3-float64(s)/1000, float64(s)/500)
			}
			put(t, dir, "train.log", console.String())
			in, err := Open([]string{dir}, nil)
			require.NoError(t, err)
			defer in.Close()
			assert.Len(t, in.Files, tt.read)
		})
	}
}
