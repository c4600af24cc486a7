package secrets

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the list in docs/reference/redaction.md anew")

// The list in docs/reference/redaction.md is the table.
func TestDocument(t *testing.T) {
	const path, begin, end = "../../docs/reference/redaction.md", "<!-- kinds -->\n", "<!-- end of kinds -->"
	var list strings.Builder
	list.WriteString("| kind | known by | rule |\n|---|---|---|\n")
	for _, k := range Kinds() {
		known := k.Begins
		for _, n := range k.Names {
			known = append(known, strings.ReplaceAll(n, " ", "_"))
		}
		by := "the end of the name"
		if len(known) > 0 {
			by = "`" + strings.Join(known, "` `") + "`"
		}
		list.WriteString("| " + k.Name + " | " + by + " | " + k.Source + " |\n")
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	is, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+list.String()+end+after), 0o600))
		return
	}
	assert.Equal(t, list.String(), is, "go test ./internal/secrets -run TestDocument -update")
}

// Each kind has its pattern or names, a source and an example. No example stands in the sources in a form that a scanner would find.
func TestKinds(t *testing.T) {
	sources := ""
	var sourcesSb48 strings.Builder
	for _, name := range []string{"kinds.go", "names.go"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		sourcesSb48.WriteString(string(text))
	}
	sources += sourcesSb48.String()
	seen := map[string]bool{}
	for _, k := range Kinds() {
		assert.False(t, seen[k.Name], k.Name)
		seen[k.Name] = true
		assert.NotEmpty(t, k.Source, k.Name)
		assert.NotEmpty(t, k.Examples, k.Name)
		assert.Equal(t, k.Pattern == "", len(k.Begins) == 0, k.Name)
		for _, b := range k.Begins {
			assert.Equal(t, strings.ToLower(b), b)
			assert.GreaterOrEqual(t, len(b), 2, k.Name)
		}
		for _, e := range k.Examples {
			assert.Contains(t, e.Text, e.Secret, k.Name)
			if k.Pattern == "" {
				continue
			}
			for _, b := range k.Begins {
				assert.False(t, strings.HasPrefix(strings.ToLower(e.Secret), b) && strings.Contains(sources, e.Secret), e.Text)
			}
			re := regexp.MustCompile("(?s)" + k.Pattern)
			assert.True(t, re.MatchString(e.Text), e.Text)
		}
	}
}
