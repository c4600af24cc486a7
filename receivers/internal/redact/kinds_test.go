package redact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/secrets"
	"github.com/trainbridge/trainbridge/spans"
)

// Each example of the table is found: by itself, in JSON, at the ends of lines, and beside others.
func TestEachKind(t *testing.T) {
	r, err := New(DefaultConfig())
	require.NoError(t, err)
	var all strings.Builder
	names := map[string]bool{}
	for _, k := range secrets.Kinds() {
		assert.False(t, names[k.Name], k.Name)
		names[k.Name] = true
		assert.NotEmpty(t, k.Examples, k.Name)
		assert.NotEmpty(t, k.Source, k.Name)
		for _, e := range k.Examples {
			require.Contains(t, e.Text, e.Secret, k.Name)
			all.WriteString(e.Text + "\n")
			for _, text := range []string{
				e.Text, "line one\n" + e.Text + "\nline three", " " + e.Text, "\x1b[33m" + e.Text + "\x1b[0m", `{"msg": ` + fmt.Sprintf("%q", e.Text) + `, "step": 1}`,
				`two\n` + e.Text + `\nthree`,
			} {
				var n Counts
				got := r.text(text, &n)
				if strings.Contains(got, e.Secret) || !strings.Contains(got, Redacted) || n.Keys+n.Values == 0 {
					t.Errorf("%s: %q became %q, %v", k.Name, text, got, n)
				}
				var more Counts
				if again := r.text(got, &more); again != got || more != (Counts{}) {
					t.Errorf("%s: %q became %q the second time, %v", k.Name, got, again, more)
				}
			}
		}
	}
	got := r.text(all.String(), &Counts{})
	for _, k := range secrets.Kinds() {
		for _, e := range k.Examples {
			assert.NotContains(t, got, e.Secret, e.Text)
		}
	}
}

// The names in the table decide about values, in any case, joined and in words.
func TestEachName(t *testing.T) {
	for _, k := range secrets.Kinds() {
		for _, n := range k.Names {
			for _, name := range []string{strings.ReplaceAll(n, " ", "_"), strings.ReplaceAll(n, " ", "-"), strings.ToUpper(strings.ReplaceAll(n, " ", "_")), strings.ReplaceAll(n, " ", "")} {
				if n == "token" { // PAD_TOKEN and the like are words of models
					continue
				}
				assert.Equal(t, k.Looks, classify("my_"+name), name)
			}
		}
	}
}

// A secret truncated by the end of a long text leaves no trace, wherever it is cut.
func TestSecretAtTheCut(t *testing.T) {
	r, err := New(DefaultConfig())
	require.NoError(t, err)
	for _, k := range secrets.Kinds() {
		for _, e := range k.Examples {
			at, known := strings.Index(e.Text, e.Secret), 0
			for _, b := range k.Begins { // not secret itself
				if strings.HasPrefix(strings.ToLower(e.Secret), b) {
					known = max(known, len(b))
				}
			}
			if strings.HasPrefix(e.Secret, "JzdW") { // the middle of a JWT
				continue
			}
			for n := known + 4; n < len(e.Secret); n++ {
				text := spans.Text(strings.Repeat(" ", spans.MaxAttributeBytes-at-n) + e.Text)
				require.True(t, strings.HasSuffix(text, e.Secret[:n]))
				got := r.text(text, &Counts{})
				if strings.HasSuffix(got, e.Secret[:n]) {
					t.Errorf("%s: %d bytes of %q: %s", k.Name, n, e.Text, got[len(got)-min(len(got), 80):])
					break
				}
			}
		}
	}
}
