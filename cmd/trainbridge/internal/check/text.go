package check

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
)

const (
	mostFiles   = 50  // listed one by one in the text
	mostReasons = 5   // of a file
	textMost    = 100 // characters of a line shown
)

// text writes the account for people: globs of the configuration, files with their counts and reasons, the sum, problems, notes, and a last sentence.
func (c *account) text(out io.Writer) error {
	var b strings.Builder
	for _, g := range c.globs {
		fmt.Fprintf(&b, "%s: %s %s: %s\n", g.Receiver, g.Key, reading.Clean(g.Glob), count(int64(g.Files), "file", "files"))
	}
	if len(c.globs) > 0 && len(c.files) > 0 {
		b.WriteByte('\n')
	}
	rest, records := 0, int64(0) // files that are not listed, and their records
	listed := 0
	for _, f := range c.files {
		if f.Receiver == "" {
			continue
		}
		if listed == mostFiles {
			rest++
			records += f.Records
			continue
		}
		listed++
		fmt.Fprintf(&b, "%s: %s, %s\n", reading.Clean(f.Name), f.Readers(), amounts(f.Lines, f.Records, total(f.ignored), total(f.rejected)))
		lines(&b, "ignored", f.ignored)
		lines(&b, "rejected", f.rejected)
	}
	if rest > 0 {
		fmt.Fprintf(&b, "and %s with %s, which --format json lists\n", count(int64(rest), "more file", "more files"), count(records, "record", "records"))
	}
	if c.Understood > 1 {
		fmt.Fprintf(&b, "%s: %s\n", count(int64(c.Understood), "file", "files"), amounts(c.Lines, c.Records, c.Ignored, c.Rejected))
	}
	off := c.off()
	// Problems stand before notes (sort): a title begins each of the two groups.
	for i := range c.findings {
		if f := &c.findings[i]; i == 0 || f.Off != c.findings[i-1].Off {
			fmt.Fprintf(&b, "\n%s\n", map[bool]string{true: "Problems:", false: "Notes:"}[f.Off])
		}
		c.findings[i].text(&b)
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	switch {
	case c.Understood == 0:
		b.WriteString("Nothing can be read.\n")
	case off == 0:
		b.WriteString("Read as it should be: check found nothing of what it looks for.\n")
	default:
		fmt.Fprintf(&b, "%s.\n", count(int64(off), "problem", "problems"))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// amounts is "12 lines: 10 records, 1 ignored, 1 rejected".
func amounts(lines, records, ignored, rejected int64) string {
	s := fmt.Sprintf("%s: %s", count(lines, "line", "lines"), count(records, "record", "records"))
	if ignored > 0 {
		s += fmt.Sprintf(", %s ignored", human.Thousands(ignored))
	}
	if rejected > 0 {
		s += fmt.Sprintf(", %s rejected", human.Thousands(rejected))
	}
	return s
}

// lines writes why lines are no records: a line per reason, with the number of lines and the first one; what is "ignored" or "rejected".
func lines(b *strings.Builder, what string, list []reason) {
	for i, r := range list {
		if i == mostReasons {
			fmt.Fprintf(b, "    %-8s %8s  for %s\n", what, human.Thousands(total(list[i:])), count(int64(len(list)-i), "more reason", "more reasons"))
			return
		}
		fmt.Fprintf(b, "    %-8s %8s  %-20s line %d: %s\n", what, human.Thousands(r.lines), words(r.name), r.first.Line, shorten(r.first.Text))
	}
}

// colour matches terminal sequences for colours and movements of the cursor.
var colour = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// shorten is a line made safe and short for a terminal.
func shorten(s string) string {
	s = strings.TrimSpace(reading.Clean(strings.ReplaceAll(colour.ReplaceAllString(s, ""), "\t", " ")))
	if r := []rune(s); len(r) > textMost {
		return string(r[:textMost-1]) + "…"
	}
	return s
}

// text writes a finding: what, where, why, and what to do.
func (f *finding) text(b *strings.Builder) {
	fmt.Fprintf(b, "- %s.\n", reading.Clean(f.What))
	for _, p := range f.Seen {
		at := p.File
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d", p.File, p.Line)
		}
		if p.Text != "" {
			at += ": " + shorten(p.Text)
		}
		fmt.Fprintf(b, "    %s\n", reading.Clean(at))
	}
	fmt.Fprintf(b, "  why: %s\n  do:  %s\n", reading.Clean(f.Why), reading.Clean(f.Fix))
}

// document is the account as JSON.
type document struct {
	Exit     int            `json:"exit"` // the exit code
	Lines    int64          `json:"lines"`
	Records  int64          `json:"records"`
	Ignored  int64          `json:"ignored"`
	Rejected int64          `json:"rejected"`
	Globs    []glob         `json:"globs,omitempty"` // of the configuration
	Files    []documentFile `json:"files"`
	Findings []finding      `json:"findings"`
}

// documentFile is a file of a document.
type documentFile struct {
	Path     string           `json:"path"`
	Receiver string           `json:"receiver,omitempty"` // left out: no receiver understands the file
	Also     string           `json:"also,omitempty"`     // the receiver of a second kind of lines
	Size     int64            `json:"bytes"`
	Lines    int64            `json:"lines"`
	Records  int64            `json:"records"`
	Ignored  []documentReason `json:"ignored,omitempty"`
	Rejected []documentReason `json:"rejected,omitempty"`
}

// documentReason is why lines of a file were ignored or rejected.
type documentReason struct {
	Reason string `json:"reason"`
	Lines  int64  `json:"lines"`
	First  place  `json:"first"`
}

// json writes the account for programs. Without files or findings these lists are []; all other lists are left out if empty.
func (c *account) json(out io.Writer) error {
	d := document{
		Exit: c.exit(), Lines: c.Lines, Records: c.Records, Ignored: c.Ignored, Rejected: c.Rejected, Globs: c.globs, Files: []documentFile{}, Findings: c.findings,
	}
	if d.Findings == nil {
		d.Findings = []finding{}
	}
	of := func(list []reason) (out []documentReason) {
		for _, r := range list {
			out = append(out, documentReason{r.name, r.lines, r.first})
		}
		return out
	}
	for _, f := range c.files {
		d.Files = append(d.Files, documentFile{f.Name, f.Receiver, f.Also, f.Size, f.Lines, f.Records, of(f.ignored), of(f.rejected)})
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}
