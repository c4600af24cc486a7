package main

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge"
)

func runCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	cmd := command()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	err := cmd.Execute()
	return out.String(), err
}

// The first screen says what the program is, what happens without --config, and lists variables and commands.
func TestHelp(t *testing.T) {
	for _, arg := range []string{"-h", "--help", "help"} {
		text, err := runCommand(t, arg)
		require.NoError(t, err)
		for _, words := range []string{
			"OpenTelemetry Collector", "Without --config", "127.0.0.1:4317", "\n  gen ", "\n  show ", "\n  validate ", "\n  version ", "--config file", "\n  completion ", "\n  print-config ", "\n  featuregate ",
		} {
			assert.Contains(t, text, words)
		}
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, len(line), 145, line)
		}
		assert.LessOrEqual(t, strings.Count(text, "\n"), 53)
	}
	for _, cmd := range command().Commands() {
		text, err := runCommand(t, cmd.Name(), "-h")
		require.NoError(t, err)
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, len(line), 220, "%s: %s", cmd.Name(), line)
		}
	}
}

// The help has each variable of the shipped configuration, and no more.
func TestHelpVariables(t *testing.T) {
	text, err := runCommand(t, "-h")
	require.NoError(t, err)
	for _, word := range strings.FieldsFunc(trainbridge.DefaultConfig+text, func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') }) {
		if strings.HasPrefix(word, "TRAINBRIDGE_") {
			assert.Contains(t, text, word)
			assert.Contains(t, trainbridge.DefaultConfig, word)
		}
	}
}

func TestVersion(t *testing.T) {
	text, err := runCommand(t, "version")
	require.NoError(t, err)
	flag, err := runCommand(t, "--version")
	require.NoError(t, err)
	assert.Equal(t, text, flag)
	assert.Regexp(t, `^trainbridge `+version+`, commit \S.*, `+runtime.Version()+" ", text)
}

// An unknown command or flag is an error of the command line: exit code 2. It was 0.
func TestExitCode(t *testing.T) {
	for _, line := range []string{
		"gen bogus", "bogus", "--bogus", "gen tq", "gen run --bogus", "gen run", "show x", "version x", "report x --lang de", "compare x x --format pdf",
		"report x --schema", "check x --format yaml", "top --bogus",
	} {
		args := strings.Fields(line)
		_, err := runCommand(t, args...)
		require.Error(t, err, "%v", args)
		assert.Equal(t, 2, exitCode(err), "%v: %v", args, err)
	}
	assert.Equal(t, 1, exitCode(errors.New("other")))
	text, err := runCommand(t, "gen")
	require.NoError(t, err)
	assert.Regexp(t, `(?s)Available Commands:\n  run +\S[^\n]*\n\n`, text, "run alone")
}

func TestLogsOfAnyKindHaveNoDefaults(t *testing.T) {
	t.Setenv("TRAINBRIDGE_LOGS", "")
	for _, name := range kinds {
		t.Setenv(name, "/x/*") // restored after the test
	}
	for _, name := range kinds[1:] {
		require.NoError(t, os.Unsetenv(name))
	}
	logsOfAnyKind()
	assert.Equal(t, []string{"/x/*", "", "", "", "", ""}, values(kinds))
	t.Setenv("TRAINBRIDGE_LOGS", "/y/*")
	logsOfAnyKind()
	assert.Equal(t, []string{"/x/*", "[]", "[]", "[]", "[]", "[]"}, values(kinds))
}

func values(names []string) (out []string) {
	for _, name := range names {
		out = append(out, os.Getenv(name))
	}
	return out
}
