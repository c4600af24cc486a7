package ncclreceiver

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
)

// fixtures are folders of testdata, each with the logs of one job in one format.
var fixtures = []string{
	"inspector-v4.0", "inspector-v4.4", "profiler", "flight_recorder", "vccl_json", "vccl_csv", "vccl_flow", "vccl_packed", "vccl_mean", "vccl_text", "vccl_ids",
}

// fixture copies a folder of testdata and returns a glob of its files.
func fixture(tb testing.TB, name string) string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", name, "*"))
	require.NoError(tb, err)
	require.NotEmpty(tb, files)
	dir := tb.TempDir()
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(tb, err)
		filereceivertest.Put(tb, dir, filepath.Base(file), string(b))
	}
	return filepath.Join(dir, "*")
}

func TestGolden(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			r := read(t, config(fixture(t, name)))
			base := filepath.Join("testdata", name)
			filereceivertest.GoldenText(t, base+".tree.txt", tree(r))
			r.Golden(t, base)
		})
	}
}

// Lines without a record are in the accounts, by reason.
func TestAccounts(t *testing.T) {
	want := map[string]struct {
		records           int64
		ignored, rejected map[string]int64
	}{
		"inspector-v4.0":  {9, nil, nil},
		"inspector-v4.4":  {10, nil, map[string]int64{"orphan": 1}},
		"profiler":        {48, map[string]int64{"bracket": 4}, nil},
		"flight_recorder": {2, nil, nil},
		"vccl_json":       {65, nil, nil},
		"vccl_csv":        {8, map[string]int64{"header": 2}, map[string]int64{"number": 1}},
		"vccl_flow":       {17, map[string]int64{"header": 2}, nil},
		"vccl_packed":     {3, map[string]int64{"header": 1, "overflow": 1}, nil},
		"vccl_mean":       {2, map[string]int64{"header": 1}, map[string]int64{"number": 1}},
		"vccl_text":       {3, nil, nil},
		"vccl_ids":        {16, nil, nil},
	}
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			want := want[name]
			r := read(t, config(fixture(t, name)))
			assert.Equal(t, want.records, r.Counts.Records)
			assert.Equal(t, maps.Collect(maps.All(want.ignored)), r.Counts.Ignored)
			assert.Equal(t, maps.Collect(maps.All(want.rejected)), r.Counts.Rejected)
		})
	}
}

// readFixture returns the files of a folder of testdata.
func readFixture(name string) (texts [][]byte, err error) {
	files, err := filepath.Glob(filepath.Join("testdata", name, "*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		texts = append(texts, b)
	}
	return texts, nil
}
