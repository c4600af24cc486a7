package offline

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/tfevents"
)

// putEvents writes an event file with the losses of every tenth step, equal to writeState's but for a difference.
func putEvents(t *testing.T, dir, name string, from, to int, more float64) string {
	t.Helper()
	var b bytes.Buffer
	w, err := tfevents.NewWriter(&b, 1.7e9)
	require.NoError(t, err)
	for s := from; s <= to; s += 10 {
		require.NoError(t, w.Scalar(tfevents.Scalar{WallTime: 1.7e9 + float64(s), Step: int64(s), Tag: "train/loss", Value: 3 - float64(s)/1000 + more}))
	}
	return put(t, dir, name, b.String())
}

const eventName = "events.out.tfevents.1700000000.host.17.0"

// A training counts once: of a console log and an event file with its losses, the console log is read; of an event file and a trainer_state.json, the event
// file.
func TestTrackersOfOneTraining(t *testing.T) {
	console := func(step func(i int) string) string {
		var b strings.Builder
		for i := 10; i <= 300; i += 10 {
			fmt.Fprintf(&b, "{'loss': %.4f, 'learning_rate': 1e-04%s}\n", 3-float64(i)/1000, step(i))
		}
		return b.String()
	}
	numbered := console(func(i int) string { return fmt.Sprintf(", 'step': %d", i) })
	plain := console(func(int) string { return "" })
	for name, tc := range map[string]struct {
		log  string
		more float64
		left bool
	}{
		"numbered":          {numbered, 0, true},
		"in order":          {plain, 0, true},
		"another training":  {numbered, 0.5, false},
		"another, in order": {plain, 0.5, false},
		"no training":       {"hello\n", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			log := put(t, dir, "train.log", tc.log)
			events := putEvents(t, filepath.Join(dir, "runs", "x"), eventName, 10, 300, tc.more)
			in, err := Open([]string{dir}, nil)
			require.NoError(t, err)
			defer in.Close()
			if tc.left {
				assert.Equal(t, []string{log}, in.Files)
				assert.Equal(t, []Copy{{events, log}}, in.Copies)
			} else {
				assert.Equal(t, []string{events, log}, in.Files)
			}
		})
	}
}

// A resumed training has several event files, and one state.
func TestEventsBeforeState(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	state := writeState(t, dir, 500)
	first := putEvents(t, filepath.Join(dir, "runs", "a"), eventName, 10, 200, 0)
	second := putEvents(t, filepath.Join(dir, "runs", "b"), eventName, 210, 500, 0)
	in, err := Open([]string{dir}, nil)
	require.NoError(t, err)
	defer in.Close()
	assert.Equal(t, []string{first, second}, in.Files)
	assert.Equal(t, []Copy{{state, first}}, in.Copies)
}
