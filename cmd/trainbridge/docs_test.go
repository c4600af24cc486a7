package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	shellBlock = regexp.MustCompile("(?ms)^```(?:sh|bash)[^\n]*\n(.*?)^```")
	ourCommand = regexp.MustCompile(`(?:^|[\s/])trainbridge(?:-full)? ([a-z][a-z-]*)([^|&#]*)`)
	quoted     = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	oneWord    = func(s string) string { return strings.ReplaceAll(strings.Trim(s, `'"`), " ", "_") }
)

// Each command of ours in the pages that users are led to exists, and takes its flags and arguments.
func TestCommandsOfPages(t *testing.T) {
	pages := []string{"../../README.md"}
	for _, glob := range []string{"../../docs/*.md", "../../docs/guides/*.md"} {
		found, err := filepath.Glob(glob)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	n := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
				for _, m := range ourCommand.FindAllStringSubmatch(line, -1) {
					n++
					args := append([]string{m[1]}, strings.Fields(quoted.ReplaceAllStringFunc(m[2], oneWord))...)
					cmd, rest, err := command().Find(args)
					if assert.NoErrorf(t, err, "%s: %s", page, line) && assert.NotEqual(t, "trainbridge", cmd.Name(), line) {
						assert.NoErrorf(t, cmd.ParseFlags(rest), "%s: %s", page, line)
						assert.NoErrorf(t, cmd.ValidateArgs(cmd.Flags().Args()), "%s: %s", page, line)
					}
				}
			}
		}
	}
	assert.Greater(t, n, 40)
}

// say runs a command of ours and returns its standard output in one line.
func say(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	require.NoError(t, cmd.Execute())
	return strings.Join(strings.Fields(out.String()), " ")
}

// The samples of report and compare in pages are what these commands print of the logs generated there.
func TestSamplesOfPages(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	commands, err := os.ReadFile("../../docs/commands.md")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	say(t, "gen", "run", "--ranks", "16", "--steps", "50", "--faults", "straggler,get,data_loading", "job-logs")
	say(t, "gen", "run", "--seed", "1", "before")
	say(t, "gen", "run", "--seed", "2", "--faults", "get", "--fault-every", "3", "after")
	for _, tt := range []struct{ page, begin, out string }{
		{string(readme), "8 of 50 ", say(t, "report", "job-logs")},
		{string(commands), "Goodput: A ", say(t, "compare", "before", "after")},
	} {
		_, sample, found := strings.Cut(tt.page, "\n```\n"+tt.begin)
		require.True(t, found, tt.begin)
		sample, _, _ = strings.Cut(tt.begin+sample, "\n```")
		for part := range strings.SplitSeq(sample, "…") {
			assert.Contains(t, tt.out, strings.Join(strings.Fields(part), " "))
		}
	}
}
