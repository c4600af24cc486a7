package trainbridge_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// markdown returns the repository's pages by their paths.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Skip("no clone of git: ", err)
	}
	pages := map[string]string{}
	for path := range strings.FieldsSeq(string(out)) {
		text, err := os.ReadFile(path)
		if !os.IsNotExist(err) { // removed, and not committed yet
			require.NoError(t, err)
			pages[path] = string(text)
		}
	}
	require.NotEmpty(t, pages)
	return pages
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	inline  = regexp.MustCompile("`[^`\n]*`")
	mdLink  = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// anchors are the addresses of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	of := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		anchor := "#" + strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, mdLink.ReplaceAllString(m[1], ""))
		name := anchor
		for n := 1; of[anchor]; n++ { // headings of one name are numbered
			anchor = name + "-" + strconv.Itoa(n)
		}
		of[anchor] = true
	}
	return of
}

// Each relative link leads to a file, and each anchor to a heading.
func TestLinks(t *testing.T) {
	pages := markdown(t)
	for path, text := range pages {
		text = inline.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
		for _, m := range mdLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := path
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(path), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, m[0], err)
			}
			if page, ok := pages[target]; ok && m[2] != "" {
				assert.Truef(t, anchors(page)[m[2]], "%s links to %s, which has no such heading", path, m[0])
			}
		}
	}
}

// docs/README.md leads to every page.
func TestMapOfPages(t *testing.T) {
	pages := markdown(t)
	for path := range pages {
		if dir := filepath.Dir(path); dir == "docs" || dir == "docs/guides" || dir == "docs/reference" {
			assert.Contains(t, pages["docs/README.md"]+"(README.md)", "("+strings.TrimPrefix(path, "docs/")+")")
		}
	}
}

// What a user is led to stays short: details are in docs/reference. Words are counted with tables and code.
func TestWords(t *testing.T) {
	total := 0
	for path, text := range markdown(t) {
		words := len(strings.Fields(text))
		switch {
		case path == "CHANGELOG.md" || strings.HasPrefix(path, "docs/reference/") || filepath.Base(path) == "documentation.md":
			continue
		case path == "README.md":
			assert.LessOrEqual(t, words, 900, path)
		case strings.HasPrefix(path, "docs/guides/"):
			assert.LessOrEqual(t, words, 700, path)
		}
		total += words
	}
	assert.LessOrEqual(t, total, 22_000, "words of all pages outside of docs/reference")
}

// The first page fits a screen.
func TestReadmeFits(t *testing.T) {
	lines := slices.Collect(strings.Lines(markdown(t)["README.md"]))
	assert.LessOrEqual(t, len(lines), 150)
	for i, line := range lines {
		assert.LessOrEqualf(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 120, "README.md:%d", i+1)
	}
}

var verdictRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")

// Each verdict has its cause and cure on the page about slow jobs.
func TestVerdictsExplained(t *testing.T) {
	pages := markdown(t)
	_, table, found := strings.Cut(pages["docs/reference/semconv.md"], "### Table")
	require.True(t, found)
	verdicts := verdictRow.FindAllStringSubmatch(table, -1)
	require.Len(t, verdicts, 24)
	for _, v := range verdicts {
		assert.Contains(t, pages["docs/why-slow.md"], "`"+v[1]+"`")
	}
}

// The samples of top are what it draws in its test.
func TestSamplesOfTop(t *testing.T) {
	golden, err := os.ReadFile("cmd/trainbridge/internal/top/testdata/80x24.txt")
	require.NoError(t, err)
	pages := markdown(t)
	assert.Contains(t, pages["docs/reference/top.md"], strings.TrimSpace(string(golden)))
	_, sample, found := strings.Cut(pages["docs/commands.md"], "```\ntrainbridge top  step")
	require.True(t, found)
	sample, _, _ = strings.Cut("trainbridge top  step"+sample, "```")
	for line := range strings.Lines(sample) {
		assert.Contains(t, string(golden), line)
	}
}
