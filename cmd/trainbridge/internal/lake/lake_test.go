package lake

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	csvformat "github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/csv"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	layout "github.com/trainbridge/trainbridge/internal/lake"
	"github.com/trainbridge/trainbridge/internal/records"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// conclude is a conclusion without the reading of a report.
func conclude(*digest.Job, *offline.Reading) format.Conclusion {
	return format.Conclusion{Headline: `=1+1, "so"`, Severity: "bad"}
}

// report writes a report into a lake.
func report(t *testing.T, dir string, paths ...string) error {
	t.Helper()
	return write(t, paths, func(in *offline.Input) format.Writer {
		return Open(format.Request{In: in, Dir: dir, Temporary: t.TempDir(), Conclude: conclude})
	})
}

// write reads logs as `trainbridge report` does.
func write(t *testing.T, paths []string, open func(*offline.Input) format.Writer) error {
	t.Helper()
	in, err := offline.Open(paths, strings.NewReader(""))
	require.NoError(t, err)
	defer in.Close()
	w := open(in)
	defer w.(interface{ Close() error }).Close()
	read, err := offline.Read(t.Context(), in, offline.Options{Positions: true}, w.Sink())
	require.NoError(t, err)
	return w.Finish(t.Context(), read)
}

// tablesOf are the tables of --format csv.
func tablesOf(t *testing.T, paths ...string) map[string][][]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "csv")
	require.NoError(t, write(t, paths, func(in *offline.Input) format.Writer {
		return csvformat.Open(format.Request{In: in, Dir: dir, Temporary: t.TempDir(), Conclude: conclude})
	}))
	out := make(map[string][][]string)
	for _, table := range layout.Tables {
		text, err := os.ReadFile(filepath.Join(dir, table+".csv"))
		require.NoError(t, err)
		out[table], err = csv.NewReader(bytes.NewReader(text)).ReadAll()
		require.NoError(t, err)
	}
	return out
}

// filesOf are the files of a lake.
func filesOf(t *testing.T, lake string) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(lake, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// rowsOf reads the rows of a file as CSV would have them.
func rowsOf(t *testing.T, path string) (names []string, rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	file, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	version, _ := file.Lookup(layout.VersionKey)
	require.Equal(t, strconv.Itoa(layout.SchemaVersion), version)
	fields := file.Schema().Fields()
	for _, f := range fields {
		names = append(names, f.Name())
	}
	for _, group := range file.RowGroups() {
		in := group.Rows()
		buf := make([]parquet.Row, 1)
		for {
			n, _ := in.ReadRows(buf)
			if n == 0 {
				break
			}
			row := make([]string, len(names))
			for _, v := range buf[0] {
				row[v.Column()] = cellOf(v, fields[v.Column()])
			}
			rows = append(rows, row)
		}
		require.NoError(t, in.Close())
	}
	return names, rows
}

func cellOf(v parquet.Value, field parquet.Field) string {
	switch {
	case v.IsNull():
		return ""
	case strings.HasPrefix(field.Type().String(), "TIMESTAMP"):
		return time.UnixMicro(v.Int64()).UTC().Format("2006-01-02T15:04:05.000000Z")
	case v.Kind() == parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	}
	return v.String()
}

// asRead is a cell of CSV as rowsOf has it.
func asRead(kind records.Kind, cell string) string {
	switch kind {
	case records.Time:
		return cell[:len("2006-01-02T15:04:05.000000")] + "Z"
	case records.Number:
		if x, err := strconv.ParseFloat(cell, 64); err == nil {
			return strconv.FormatFloat(x, 'g', -1, 64)
		}
	case records.Whole:
	case records.Text:
		if len(cell) > 1 && cell[0] == '\'' && strings.ContainsRune("=+-@\t\r", rune(cell[1])) {
			return cell[1:]
		}
	}
	return cell
}

// A lake has the rows of --format csv, each once, in the partition of its run, also after a second report.
func TestLakeHasTheTables(t *testing.T) {
	var jobs []string
	for seed := range 3 {
		opt := gen.DefaultOptions()
		opt.Out, opt.Faults, opt.Seed, opt.NCCL = t.TempDir(), gen.Faults(), uint64(seed), gen.NCCLInspector
		opt.Start = time.Date(2026, 11, 24+seed, 23, 59, 0, 0, time.UTC)
		_, err := gen.Generate(t.Context(), opt)
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(opt.Out, "truth.json")))
		jobs = append(jobs, opt.Out)
	}
	want := tablesOf(t, jobs...)
	lake := filepath.Join(t.TempDir(), "lake")
	for range 2 {
		require.NoError(t, report(t, lake, jobs...))
		got := make(map[string][][]string)
		for _, path := range filesOf(t, lake) {
			parts := strings.Split(path[len(lake)+1:], "/")
			require.Len(t, parts, 4, path)
			names, rows := rowsOf(t, path)
			require.Equal(t, append(slices.Clone(want[parts[0]][0]), "schema_version"), names)
			for _, row := range rows {
				assert.Equal(t, parts[2], layout.RunName(row[0]))
				assert.Equal(t, strconv.Itoa(layout.SchemaVersion), row[len(row)-1])
				got[parts[0]] = append(got[parts[0]], row[:len(row)-1])
			}
		}
		for _, table := range layout.Tables {
			columns, rows := records.Columns(table), want[table][1:]
			require.Len(t, got[table], len(rows), table)
			slices.SortStableFunc(got[table], func(a, b []string) int { return strings.Compare(a[0], b[0]) })
			for i, row := range rows {
				for k, cell := range row {
					require.Equal(t, asRead(columns[k].Kind, cell), got[table][i][k], "%s %s, row %d", table, columns[k].Name, i)
				}
			}
		}
		assert.Len(t, want[layout.RunsTable], 1+len(jobs))
		assert.NotEmpty(t, want["lateness"][1:])
	}
}

// steps are the lines of a training log.
func steps(n int, start time.Time) string {
	var log strings.Builder
	for i := range n {
		fmt.Fprintf(&log, `{"step": %d, "time": %q, "loss": 2.5, "step_time": 1.0}`+"\n", i+1, start.Add(time.Duration(i)*time.Second).Format(time.RFC3339))
	}
	return log.String()
}

var day = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// put writes a training log.
func put(t *testing.T, dir, log string) string {
	t.Helper()
	path := filepath.Join(dir, "train.log")
	require.NoError(t, os.WriteFile(path, []byte(log), 0o600))
	return path
}

// A path has a run id of any text in a single name, and each id in a name of its own.
func TestNamesOfRuns(t *testing.T) {
	for run, want := range map[string]string{
		"":              "run=__HIVE_DEFAULT_PARTITION__",
		"slurm-4711_2":  "run=slurm-4711_2",
		"..":            "run=..",
		"../../x=/y%":   "run=..%2F..%2Fx%3D%2Fy%25",
		"a b*?[1]{2}\\": "run=a%20b%2A%3F%5B1%5D%7B2%7D%5C",
		"中文/运行":         "run=中文%2F运行",
		"nul\x00\x7f":   "run=nul%00%7F",
	} {
		assert.Equal(t, want, layout.RunName(run))
	}
	long := layout.RunName(strings.Repeat("中", 1000) + "1")
	assert.LessOrEqual(t, len(long), 255)
	assert.NotEqual(t, long, layout.RunName(strings.Repeat("中", 1000)+"2"))
}

// A run id in the form of a path stays in the lake.
func TestRunNamedLikeAPath(t *testing.T) {
	t.Setenv("TRAINBRIDGE_RUN_ID", "../../../=x/y")
	dir := t.TempDir()
	lake := filepath.Join(dir, "deep", "lake")
	require.NoError(t, os.Mkdir(filepath.Dir(lake), 0o700))
	require.NoError(t, report(t, lake, put(t, t.TempDir(), steps(3, day))))
	files := filesOf(t, dir)
	require.Len(t, files, 3)
	for i, table := range []string{"breakdowns", layout.RunsTable, "steps"} {
		assert.Equal(t, lake+"/"+table+"/day=2026-11-24/run=..%2F..%2F..%2F%3Dx%2Fy/part-0.parquet", files[i])
	}
}

// A report replaces all that the lake has of a run, also where the run is now known to have begun a day earlier, and leaves other runs and other files alone.
func TestReportReplacesTheRun(t *testing.T) {
	lake, dir := t.TempDir(), t.TempDir()
	foreign := filepath.Join(lake, "steps", "notes.txt")
	require.NoError(t, os.Mkdir(filepath.Dir(foreign), 0o700))
	require.NoError(t, os.WriteFile(foreign, []byte("mine"), 0o600))
	require.NoError(t, report(t, lake, put(t, t.TempDir(), steps(5, day)))) // another run
	require.NoError(t, report(t, lake, put(t, dir, steps(10, day)+"RuntimeError: CUDA error: out of memory\n")))
	assert.Len(t, filesOf(t, lake), 1+2*3+1)
	require.NoError(t, report(t, lake, put(t, dir, steps(20, day.AddDate(0, 0, -1)))))
	files := filesOf(t, lake)
	assert.Len(t, files, 1+2*3, "no event is left")
	assert.Contains(t, files, foreign)
	var rows int
	for _, path := range files {
		if strings.HasPrefix(path, lake+"/steps/day=") {
			_, of := rowsOf(t, path)
			rows += len(of)
		}
	}
	assert.Equal(t, 5+20, rows)
}

// A loss that is no number, and logs without records.
func TestNotANumberAndNothing(t *testing.T) {
	lake := t.TempDir()
	log := `{"step": 1, "loss": NaN}` + "\n" + `{"step": 2, "loss": Infinity}` + "\n" + `{"step": 3, "loss": -Infinity}` + "\n" + `{"step": 4, "lr": 0.1, "loss": 1}` + "\n"
	require.NoError(t, report(t, lake, put(t, t.TempDir(), log)))
	names, rows := rowsOf(t, filesOf(t, filepath.Join(lake, "steps"))[0])
	var losses []string
	for _, row := range rows {
		losses = append(losses, row[slices.Index(names, "loss")])
	}
	assert.Equal(t, []string{"NaN", "+Inf", "-Inf", "1"}, losses)
	before := filesOf(t, lake)
	require.NoError(t, report(t, lake, put(t, t.TempDir(), "nothing of interest\n")))
	assert.Equal(t, before, filesOf(t, lake))
}

// A lake that cannot be written is an error that names the place, and leaves no half of a file.
func TestUnwritable(t *testing.T) {
	log := put(t, t.TempDir(), steps(3, day))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	require.EqualError(t, report(t, file, log), "report: -o "+file+": not a directory")

	lake := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(lake, "runs"), []byte("mine"), 0o600))
	require.ErrorContains(t, report(t, lake, log), lake+"/runs: not a directory")

	lake = t.TempDir()
	require.NoError(t, report(t, lake, log))
	path := filesOf(t, lake)[0]
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	require.ErrorContains(t, report(t, lake, log), "part-0.parquet: is a directory")
}

// Two reports at once: each file is one's or the other's.
func TestTwoWriters(t *testing.T) {
	lake, log := t.TempDir(), put(t, t.TempDir(), steps(500, day))
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for range 3 {
				assert.NoError(t, report(t, lake, log))
			}
		})
	}
	writers.Wait()
	files := filesOf(t, lake)
	assert.Len(t, files, 3)
	for _, path := range files {
		rowsOf(t, path)
	}
}

// More runs than a report tells apart are refused, before anything is written.
func TestTooManyRuns(t *testing.T) {
	var paths []string
	dir, lake := t.TempDir(), filepath.Join(t.TempDir(), "lake")
	for i := range 300 {
		sub := filepath.Join(dir, strconv.Itoa(i))
		require.NoError(t, os.Mkdir(sub, 0o700))
		paths = append(paths, filepath.Dir(put(t, sub, steps(1, day.Add(time.Duration(i)*time.Hour)))))
	}
	require.ErrorIs(t, report(t, lake, paths...), errRuns)
	assert.NoDirExists(t, lake)
}

// A long run is one file in several groups of rows, with each step once.
func TestManySteps(t *testing.T) {
	const n = (1 << 16) + 4000
	lake := t.TempDir()
	require.NoError(t, report(t, lake, put(t, t.TempDir(), steps(n, day))))
	files := filesOf(t, filepath.Join(lake, "steps"))
	require.Len(t, files, 1)
	names, rows := rowsOf(t, files[0])
	require.Len(t, rows, n)
	for i, row := range rows {
		require.Equal(t, strconv.Itoa(i+1), row[slices.Index(names, "iteration")])
	}
}
