package recordtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Parser is a parser of lines that hold one record each, with the Source of its records.
type Parser struct {
	Source string
	Parse  func(b []byte, rec *record.Record) (found bool, reason string)
}

// Line shows the result for a line, after its prefixes were peeled as in the receiver: the record, "!" and the reason, or "". A result against the contract of
// Parse is "both" (a record and a reason), "not empty" (no record, but values) or "no source".
func (p Parser) Line(text string) string {
	var peeler line.Peeler
	var prefix line.Prefix
	var rec record.Record
	found, reason := p.Parse(peeler.Peel([]byte(text), &prefix), &rec)
	switch {
	case found && reason != "":
		return "both"
	case !found && !rec.Empty():
		return "not empty"
	case found && rec.Source != p.Source:
		return "no source"
	case found:
		return Show(&rec)
	case reason != "":
		return "!" + reason
	}
	return ""
}

// Samples checks that each line of the sample logs in a folder of ../shared/logs, beside the repository, is a record. Without the logs nothing is checked. The
// test's package must be four folders deep in the repository.
func (p Parser) Samples(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob("../../../../../shared/logs/" + folder + "/*.log")
	require.NoError(t, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for l := range strings.SplitSeq(strings.TrimSuffix(string(b), "\n"), "\n") {
			assert.NotContains(t, []string{"", "both", "no source", "not empty"}, p.Line(l), l)
			assert.False(t, strings.HasPrefix(p.Line(l), "!"), l)
		}
	}
}

// Fuzz checks invariants for any bytes: a whole record with its source, or nothing.
func (p Parser) Fuzz(f *testing.F, seeds []string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var rec record.Record
		found, reason := p.Parse(b, &rec)
		if found == rec.Empty() || found && (reason != "" || rec.Source == "") {
			t.Fatalf("%q: %v %q %s", b, found, reason, Show(&rec))
		}
	})
}

// Bench measures lines by name.
func (p Parser) Bench(b *testing.B, lines map[string]string) {
	b.Helper()
	for name, text := range lines {
		b.Run(name, func(b *testing.B) {
			in := []byte(text)
			var rec record.Record
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				rec.Reset()
				p.Parse(in, &rec)
			}
		})
	}
}
