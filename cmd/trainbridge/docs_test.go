package main

import (
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
	ourCommand = regexp.MustCompile(`(?:^|[\s/])trainbridge ([a-z][a-z-]*)([^|&#]*)`)
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
