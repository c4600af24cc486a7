package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var manDir = flag.String("man", "", "the `directory` that gets the man pages of a release")

// Each command has a man page, made of its help. The test binary writes the pages of a release: the program itself lacks the generator.
func TestManPages(t *testing.T) {
	dir := *manDir
	if dir == "" {
		dir = t.TempDir()
	}
	root := command()
	root.DisableAutoGenTag = true // SOURCE_DATE_EPOCH is the date
	require.NoError(t, doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "trainbridge " + version, Manual: "trainbridge"}, dir))
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		text, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		require.NoError(t, err)
		assert.Contains(t, string(text), strings.Fields(cmd.Short)[0])
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				assert.Contains(t, strings.ReplaceAll(string(text), `\-`, "-"), "--"+f.Name)
			}
		})
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				walk(c)
			}
		}
	}
	walk(root)
}
