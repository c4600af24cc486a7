package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/records"
)

// report runs the command.
func report(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	cmd := NewCommand()
	var out bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors = true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func write1(t *testing.T, name, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
	return path
}

// Logs without a report end with advice and exit code 2.
func TestErrors(t *testing.T) {
	binaries, nonLogs := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(binaries, "a"), filepath.Join(binaries, "b"), filepath.Join(nonLogs, "a.so"), filepath.Join(nonLogs, "b.bin")} {
		require.NoError(t, os.WriteFile(path, []byte{0x7f, 'E', 'L', 'F', 0, 0, 1, 2, 3, 0, 0}, 0o600))
	}
	text := write1(t, "notes.txt", "nothing of interest\n")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "report: name the logs: files, directories, globs, or - for the standard input"},
		{[]string{binaries}, "report: nothing to read: of 2 files 2 binary; "},
		{[]string{nonLogs}, nonLogs + ": no file to read; passed over by name, as no logs: 1 .bin, 1 .so"},
		{[]string{text}, "report: nothing to read: the file is text in no format that is known; trainbridge check says more"},
		{[]string{write1(t, "empty.log", "")}, "report: nothing to read: the file is empty; "},
		{[]string{write1(t, "damaged.log.gz", "no gzip")}, "report: nothing to read: the file is unreadable; "},
		{[]string{binaries, text}, "report: nothing to read: of 3 files 2 binary, 1 text in no format that is known; "},
		{[]string{"-"}, "report: -: standard input is empty"},
		{[]string{"/nothing/here"}, "/nothing/here"},
		{[]string{text, "--format", "pdf"}, `report: --format "pdf": there are text`},
		{[]string{text, "--steady", "10"}, "report: --steady 10: a share above 0, at most 1, such as 0.1"},
		{[]string{text, "--since", "yesterday"}, `report: --since "yesterday": write 2026-11-23, `},
		{[]string{text, "--since", "2026-11-23", "--until", "2026-11-22"}, "report: --since 2026-11-23 is not before --until 2026-11-22"},
	} {
		stdout, err := report(t, "", tt.args...)
		require.ErrorContains(t, err, tt.want, tt.args)
		require.ErrorAs(t, err, new(*reading.UsageError))
		assert.Empty(t, stdout)
	}
	_, err := report(t, `{"step": 1, "loss": 2.5}`, "-", "-o", "/nothing/here/report.txt")
	require.ErrorContains(t, err, "report: -o /nothing/here/report.txt: ")
}

// A part of all steps is a loss from a share of their time on.
func TestSteady(t *testing.T) {
	var log strings.Builder
	for n := range 60 {
		fmt.Fprintf(&log, "{\"step\": %d, \"loss\": 2.5, \"step_time\": 1.0, \"data_time\": 0.08}\n", n+1)
	}
	for share, is := range map[string]bool{"0.1": false, "0.05": true} {
		stdout, err := report(t, log.String(), "-", "--steady", share)
		require.NoError(t, err)
		assert.Equal(t, is, strings.Contains(stdout, "8% of the time of all steps went to loading data: 4.8 s"), stdout)
	}
}

// A failed report leaves the file unchanged, and writes no other.
func TestOutput(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.txt")
	_, err := report(t, `{"step": 1, "loss": 2.5}`+"\n", "-", "-o", file)
	require.NoError(t, err)
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.NotEmpty(t, before)
	_, err = report(t, "nothing of interest\n", "-", "-o", file)
	require.Error(t, err)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, before, after)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, 1)
}

// csv is a file for each table in a directory, or one table.
func TestTables(t *testing.T) {
	log := write1(t, "zmq_performance.log", "ZeroMQ Performance Log - Transport: IPC\n"+
		"ID    Method  Serialize(ms)  Send(ms)  Recv(ms)  Deserialize(ms)  Total(ms)  Sent(KB)  Recv(KB)  Throughput(MB/s)\n"+
		"1     =Init   0.123          0.045     0.234     0.089            0.491      0.15      125.34    255.23\n")
	stdout, err := report(t, "", log, "--format", "csv", "--table", "rpc_calls")
	require.NoError(t, err)
	assert.Contains(t, stdout, ",1,'=Init,0.123,0.045,0.234,0.089,0.491,0.15,125.34,255.23,")
	file := filepath.Join(t.TempDir(), "calls.csv")
	_, err = report(t, "", log, "--table", "rpc_calls", "-o", file)
	require.NoError(t, err)
	same, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, stdout, string(same))

	dir := filepath.Join(t.TempDir(), "tables")
	for range 2 { // into a new directory, and over existing files
		_, err = report(t, "", log, "--format", "csv", "-o", dir)
		require.NoError(t, err)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, len(records.Names()))
	same, err = os.ReadFile(filepath.Join(dir, "rpc_calls.csv"))
	require.NoError(t, err)
	assert.Equal(t, stdout, string(same))

	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--format", "csv"}, "report: csv is a table for each kind of record: add -o DIR for all of them, or --table NAME for one of steps, "},
		{[]string{"--format", "csv", "-o", file}, "calls.csv: csv is a table for each kind of record: name a directory, or add --table NAME: steps, "},
		{[]string{"-o", "/nothing/here.csv"}, "name a directory, or add --table NAME"},
		{[]string{"--format", "csv", "-o", log}, "name a directory"},
		{[]string{"--format", "csv", "--table", "calls"}, `report: --table "calls": there are steps, `},
		{[]string{"--table", "steps"}, "report: --table steps is of --format csv, not of text"},
		{[]string{"--format", "csv", "-o", "/nothing/here"}, "report: -o /nothing/here: "},
	} {
		_, err := report(t, "", append(tt.args, log)...)
		require.ErrorContains(t, err, tt.want, tt.args)
	}
}

// json is the report for programs, by the schema that --schema writes.
func TestJSON(t *testing.T) {
	log := write1(t, "train.jsonl", strings.Repeat(`{"step": 1, "loss": 2.5, "throughput": 10.5, "step_time_s": 0.5}`+"\n", 3)+`{"step": 4, "loss": NaN}`+"\n")
	stdout, err := report(t, "", log, "--format", "json")
	require.NoError(t, err)
	var doc struct {
		Jobs []struct {
			Conclusion string
			Claims     []struct {
				Kind, Text string
				Evidence   []struct {
					File         string
					Offset, Line int64
				}
			}
			Untold []string
		}
		Verdicts []struct{ Verdict string }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	require.Len(t, doc.Jobs, 1)
	assert.Contains(t, doc.Jobs[0].Conclusion, "NaN")
	require.NotEmpty(t, doc.Jobs[0].Claims)
	first := doc.Jobs[0].Claims[0]
	assert.Equal(t, "wrong", first.Kind)
	require.NotEmpty(t, first.Evidence)
	assert.Equal(t, log, first.Evidence[0].File)
	assert.Equal(t, int64(4), first.Evidence[0].Line)
	assert.NotEmpty(t, doc.Jobs[0].Untold)
	assert.Equal(t, "train_loss_not_finite", doc.Verdicts[0].Verdict)

	chinese, err := report(t, "", log, "--format", "json", "--lang", "zh")
	require.NoError(t, err)
	assert.NotEqual(t, stdout, chinese)

	schema, err := report(t, "", "--schema")
	require.NoError(t, err)
	assert.True(t, json.Valid([]byte(schema)))
	_, err = report(t, "", "--schema", log)
	require.Error(t, err)
}

// The agent says what makes the lake's format.
func TestParquetIsOfTheFullBuild(t *testing.T) {
	_, err := report(t, `{"step": 1, "loss": 2.5}`, "-", "--format", "parquet", "-o", t.TempDir())
	if named("parquet").open == nil {
		require.EqualError(t, err, "report: --format parquet is in the full build only: make that with `make build-full`; --format csv has the same tables")
		return
	}
	require.NoError(t, err)
}
