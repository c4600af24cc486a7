package lake

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	layout "github.com/trainbridge/trainbridge/internal/lake"
	"github.com/trainbridge/trainbridge/spans"
)

// The history of a run is what began before it, in the days that are wanted.
func TestHistory(t *testing.T) {
	lake, ids := t.TempDir(), []string{}
	for i := range 12 {
		log := put(t, t.TempDir(), steps(5, day.AddDate(0, 0, i)))
		require.NoError(t, report(t, lake, log))
		ids = append(ids, spans.DirectoryRun(log))
	}
	for _, tt := range []struct {
		id    string
		last  time.Duration
		want  string
		count int
	}{
		{"", 0, ids[11], 11},
		{"", 3*24*time.Hour + time.Minute, ids[11], 3},
		{ids[4], 0, ids[4], 4},
		{ids[4], 24*time.Hour + time.Minute, ids[4], 1},
		{ids[0], 0, ids[0], 0},
		{"none", 0, "", 0},
	} {
		run, before, left, err := History(lake, tt.id, tt.last)
		require.NoError(t, err)
		assert.Empty(t, left)
		assert.Equal(t, tt.want, run.Run)
		require.Len(t, before, tt.count, "%+v", tt)
		for i := range before {
			assert.True(t, before[i].Start.Before(run.Start))
		}
	}
	run, _, _, err := History(lake, ids[0], 0)
	require.NoError(t, err)
	assert.InDelta(t, 1, run.Numbers["step_time_s_p50"], 0)
	assert.InDelta(t, 5, run.Numbers["steps"], 0)
	assert.Equal(t, "jsonl", run.Texts["formats"])
	_, _, _, err = History(t.TempDir(), "", 0)
	require.ErrorContains(t, err, "is no lake")
}

// Files of a later version, foreign and damaged ones are left out by name; a file of an earlier version with fewer columns is read.
func TestHistoryOfOtherFiles(t *testing.T) {
	lake := t.TempDir()
	require.NoError(t, report(t, lake, put(t, t.TempDir(), steps(5, day))))
	good, err := os.ReadFile(filesOf(t, filepath.Join(lake, layout.RunsTable))[0])
	require.NoError(t, err)
	put := func(run string, text []byte) {
		path := layout.PathOf(lake, layout.RunsTable, "day=2026-11-20", "run="+run)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	file := func(version string) []byte {
		var out bytes.Buffer
		w := parquet.NewGenericWriter[any](&out, parquet.NewSchema("runs", parquet.Group{
			"run": parquet.String(), "time": parquet.Timestamp(parquet.Microsecond),
		}), parquet.KeyValueMetadata(layout.VersionKey, version))
		start := day.AddDate(0, 0, -4).UnixMicro()
		_, err := w.WriteRows([]parquet.Row{{parquet.ByteArrayValue([]byte("old")).Level(0, 0, 0), parquet.Int64Value(start).Level(0, 0, 1)}})
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return out.Bytes()
	}
	put("empty", nil)
	put("foreign", []byte("not Parquet at all"))
	put("later", file("2"))
	put("unversioned", file("x"))
	put("old", file("1"))
	for i := 8; i < len(good); i += len(good) / 50 { // cut, and with a byte of another value
		put("cut", good[:i])
		damaged := bytes.Clone(good)
		damaged[i] ^= 0xff
		put("damaged", damaged)
		run, before, left, err := History(lake, "", 0)
		require.NoError(t, err)
		assert.NotEmpty(t, run.Run)
		assert.GreaterOrEqual(t, len(left), 5)
		old := false
		for _, p := range before {
			old = old || p.Run == "old"
		}
		assert.True(t, old)
	}
	_, _, left, err := History(lake, "", 0)
	require.NoError(t, err)
	var text bytes.Buffer
	for _, err := range left {
		text.WriteString(err.Error() + "\n")
	}
	assert.Contains(t, text.String(), "run=later/part-0.parquet: schema_version 2: written by a later trainbridge\n")
	assert.Contains(t, text.String(), "run=unversioned/part-0.parquet: not a table of runs\n")
}
