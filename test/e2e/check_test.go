//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkLine runs a line of a shell in a directory with bin/trainbridge on the path.
func checkLine(t *testing.T, dir string, env []string, line string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	cmd.Env = append(os.Environ(), append([]string{"PATH=" + filepath.Dir(trainbridgeBin(t)) + ":" + os.Getenv("PATH")}, env...)...)
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), errs.String(), exit.ExitCode()
	}
	require.NoError(t, err)
	return out.String(), errs.String(), 0
}

// checkedJob makes the directory of docs/reference/check.md: a job, its configuration, and an old log.
func checkedJob(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	run(t, nil, trainbridgeBin(t), "gen", "run", filepath.Join(dir, "job"))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "logs"), 0o755))
	step := []byte(`{"timestamp": "2026-06-12T10:30:00Z", "step": 1, "loss": 2.5}` + "\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "logs", "a.log"), step, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old.log"), step, 0o600))
	run(t, nil, "gzip", filepath.Join(dir, "old.log"))
	config, err := os.ReadFile(shippedConfig(t))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "collector.yaml"), config, 0o600))
	return dir
}

// progress is the commands' output on a busy machine.
var progress = regexp.MustCompile(`(?m)^reading: .*\n`)

// The commands of docs/reference/check.md, on a job in all formats: nothing is off.
func TestCheckDoc(t *testing.T) {
	t.Parallel()
	dir := checkedJob(t)
	text, err := os.ReadFile(filepath.Join(repoRoot, "docs/reference/check.md"))
	require.NoError(t, err)
	n := 0
	for _, line := range shellLines(string(text)) {
		n++
		env := []string{"TRAINBRIDGE_STATE_DIR=" + filepath.Join(dir, "state")}
		if strings.Contains(line, "--config") {
			env = append(env, "TRAINBRIDGE_LOGS="+filepath.Join(dir, "job/**"))
		}
		out, errs, code := checkLine(t, dir, env, strings.ReplaceAll(line, "/data/", dir+"/"))
		assert.Zerof(t, code, "%s\n%s%s", line, out, errs)
		if strings.Contains(line, "--format json") {
			assert.True(t, json.Valid([]byte(out)), out)
		} else {
			assert.Contains(t, out, "check found nothing of what it looks for.\n", line)
		}
		if strings.Contains(line, "job") || strings.Contains(line, "--config") {
			for _, receiver := range []string{"tq_trace", "train_log", "zmq_rpc", "nccl"} {
				assert.Regexp(t, `(?m): `+receiver+`, [\d,]+ lines: `, out, line)
			}
			assert.Contains(t, out, "Passed over by name, as no logs: 1 truth.json", line)
		}
	}
	assert.Equal(t, 5, n)
	_, err = os.Stat(filepath.Join(dir, "state"))
	assert.ErrorIs(t, err, os.ErrNotExist, "nothing is left on the disk")
}

// Exit codes, with nothing on standard error that the account already contains.
func TestCheckExit(t *testing.T) {
	t.Parallel()
	dir := checkedJob(t)
	garbage := filepath.Join(dir, "garbage.log")
	require.NoError(t, os.WriteFile(garbage, bytes.Repeat([]byte("the quick brown fox\n"), 1<<20), 0o600)) // more than is looked at
	file := filepath.Join(dir, "logs", "a.log")
	for _, tt := range []struct {
		line, env, want, err string
		code                 int
	}{
		{line: "check logs", want: "a.log: train_log, 1 line: 1 record\n"},
		{line: "check logs nothing", want: "no such file", code: 1},
		{line: "check nothing", want: "Nothing can be read.", code: 2},
		{line: "check garbage.log", want: "garbage.log: the quick brown fox", code: 2},
		{line: "check logs", env: "TRAINBRIDGE_STATE_DIR=" + file, want: "nothing can be written to " + file, code: 1},
		{line: "check", env: "TRAINBRIDGE_STATE_DIR=" + file, want: "'extensions::state_storage::directory' is \"" + file + "\"", code: 2},
		{line: "check", env: "TRAINBRIDGE_LOGS=" + file, want: "train_log: include_by_content " + file + ": 1 file\n"},
		{line: "check", env: "TRAINBRIDGE_LOGS=/nothing/*", want: "'receivers::nccl::include_by_content': /nothing/* matches no file", code: 2},
		{line: "check --config nothing.yaml", err: "nothing.yaml: no such file", code: 2},
		{line: "check --nothing", err: "unknown flag: --nothing", code: 2},
	} {
		t.Run(tt.line+" "+strings.ReplaceAll(tt.env, dir, ""), func(t *testing.T) {
			out, errs, code := checkLine(t, dir, []string{tt.env, "TMPDIR=" + dir}, "trainbridge "+tt.line)
			assert.Equal(t, tt.code, code, out+errs)
			assert.Contains(t, out, tt.want)
			assert.Contains(t, errs, tt.err)
			if tt.err == "" {
				assert.Empty(t, progress.ReplaceAllString(errs, "")) // shown on a busy machine
			}
			assert.NotRegexp(t, stack, out+errs)
		})
	}
}

// Logs of healthy jobs pass without findings, in all formats of bin/gen.
func TestCheckHealthy(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"deepspeed"},
		{"flagscale"},
		{"hf"},
		{"jsonl"},
		{"maxtext"},
		{"megatron"},
		{"nanochat"},
		{"nccl"},
		{"nccl", "--format", "nccl_profiler"},
		{"nccl", "--format", "flight_recorder"},
		{"nccl", "--format", "vccl_json"},
		{"nccl", "--format", "vccl_csv"},
		{"nccl", "--format", "vccl_flow"},
		{"nemo"},
		{"openrlhf"},
		{"slime"},
		{"torchtitan"},
		{"tq"},
		{"verl"},
		{"zmq"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			dir := t.TempDir()
			_, errs, code := checkLine(t, dir, nil, genBin(t)+" "+strings.Join(args, " ")+" --truth none")
			require.Zero(t, code, errs)
			out, _, code := checkLine(t, dir, nil, "trainbridge check .")
			assert.Zero(t, code, out)
			assert.Contains(t, out, "check found nothing of what it looks for.\n")
			assert.NotContains(t, out, "no format that is known")
		})
	}
}
