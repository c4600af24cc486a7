package check

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/internal/human"
)

// account is the result of a check: counts, files, and findings.
type account struct {
	Understood int // files with a receiver
	Lines      int64
	Records    int64
	Ignored    int64
	Rejected   int64

	zones    []offline.Zone // as given
	patterns []string       // likewise
	globs    []glob         // of the configuration checked, if any
	files    []*file        // in the order of their paths
	findings []finding
}

// glob is a glob of a receiver.
type glob struct {
	Receiver string `json:"receiver"`
	Key      string `json:"key"` // include, document or include_by_content
	Glob     string `json:"glob"`
	Files    int    `json:"files"` // number of matches
}

// file is a file with its ignored and rejected lines.
type file struct {
	*offline.File
	ignored, rejected []reason // the most lines first
}

// kind is the type of the file's receiver: train_log for train_log/2.
func (f *file) kind() string {
	kind, _, _ := strings.Cut(f.Receiver, "/")
	return kind
}

// reason is why lines are no records.
type reason struct {
	name  string
	lines int64
	first place
}

// place is a line of a file.
type place struct {
	File string `json:"file"`
	Line int64  `json:"line,omitempty"` // from 1
	Text string `json:"text,omitempty"` // its beginning, without secrets
}

// finding is a problem, or a note: a log that is fine, and could have more.
type finding struct {
	Name string  `json:"finding"`
	Off  bool    `json:"off"` // a problem; false: a note
	What string  `json:"what"`
	Seen []place `json:"seen,omitempty"` // the first places
	Why  string  `json:"why"`
	Fix  string  `json:"fix"`
}

const mostPlaces = 3 // of a finding

// find adds a finding, with at most mostPlaces places.
func (c *account) find(f finding) {
	f.Seen = f.Seen[:min(len(f.Seen), mostPlaces)]
	c.findings = append(c.findings, f)
}

// off is how many findings are off.
func (c *account) off() (n int) {
	for i := range c.findings {
		if c.findings[i].Off {
			n++
		}
	}
	return n
}

// missing adds a finding for each path without a file; err has one error per path (errors.Join), nil: none.
func (c *account) missing(err error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range several.Unwrap() {
			c.missing(err)
		}
		return
	}
	if err != nil {
		c.find(finding{
			Name: "no_file", Off: true, What: err.Error(),
			Why: "The path yields nothing; a collector waits for a file, and says nothing.",
			Fix: "Correct the path; put a glob in quotes, so that the shell leaves ** alone.",
		})
	}
}

// take evaluates a reading: counts files and lines, and adds the findings of every rule.
func (c *account) take(in *offline.Input, got *offline.Reading, w *watch) {
	for _, f := range got.Files {
		own := &file{File: f, ignored: reasons(got, f, f.Ignored), rejected: reasons(got, f, f.Rejected)}
		c.files = append(c.files, own)
		if f.Receiver == "" {
			continue
		}
		c.Understood++
		c.Lines += f.Lines
		c.Records += f.Records
		c.Ignored += total(own.ignored)
		c.Rejected += total(own.rejected)
	}
	c.missing(errors.Join(in.Missing...))
	c.paths(in)
	c.unread()
	c.rejections()
	r := &rules{account: c, got: got, watch: w}
	r.transferQueue()
	r.ended()
	r.calls()
	r.perfMonitor()
	r.collectives()
	r.ranks()
	r.copies()
	r.training()
	r.shifted()
	r.clocks()
}

// sort puts problems before notes; within each, findings stay in the order of the rules.
func (c *account) sort() {
	rank := map[bool]int{true: 0, false: 1}
	slices.SortStableFunc(c.findings, func(a, b finding) int { return rank[a.Off] - rank[b.Off] })
}

// reasons lists why lines of a file were ignored or rejected, the most lines first, each with its first line.
func reasons(got *offline.Reading, f *offline.File, by map[string]*offline.Reason) (list []reason) {
	// By ascending offsets, so that LineAt counts each part of the file's line ends once.
	inOrder := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Compare(by[a].Offset, by[b].Offset) })
	for _, name := range inOrder {
		why := by[name]
		list = append(list, reason{name: name, lines: why.Lines, first: place{File: f.Name, Line: got.LineAt(f.Path, why.Offset), Text: why.Text}})
	}
	slices.SortStableFunc(list, func(a, b reason) int {
		if a.lines != b.lines {
			return int(b.lines - a.lines)
		}
		return strings.Compare(a.name, b.name)
	})
	return list
}

// total is the number of lines of all reasons.
func total(list []reason) (n int64) {
	for _, r := range list {
		n += r.lines
	}
	return n
}

// several makes "1 file is", "3 files are", … of some files, and places of the first ones with their first lines.
func several(files []*file, one, many string) (what string, seen []place) {
	for _, f := range files[:min(len(files), mostPlaces)] {
		seen = append(seen, place{File: f.Name, Text: f.First})
	}
	if len(files) == 1 {
		return "1 file " + one, seen
	}
	return fmt.Sprintf("%s files %s", human.Thousands(len(files)), many), seen
}
