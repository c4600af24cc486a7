// Package glob says which paths the globs of a configuration ask for, and which directories can hold such paths.
package glob

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/trainbridge/trainbridge/internal/nonlog"
)

// Glob is a pattern split at its slashes, so that a walk enters only directories that can hold a match.
type Glob struct {
	Pattern string
	Base    string // the directory before the first meta character
	segs    []string
	plain   bool // it has no meta characters: commands that read finished logs name thousands of files
	sifts   bool // it does not ask for what is no log by its name
}

func one(pattern string) Glob {
	pattern = filepath.Clean(pattern)
	base, rest := doublestar.SplitPattern(filepath.ToSlash(pattern))
	g := Glob{Pattern: pattern, Base: base, segs: strings.Split(rest, "/"), plain: !strings.ContainsAny(pattern, `*?[{\`)}
	for i, seg := range g.segs {
		// Braces may hold slashes; such a pattern is walked whole.
		if strings.ContainsAny(seg, "{}") {
			g.segs = append(g.segs[:i:i], "**")
			break
		}
	}
	return g
}

// List is a list of globs.
type List []Glob

// New makes a list of patterns that doublestar.ValidatePattern finds good.
func New(patterns []string) List {
	out := make(List, len(patterns))
	for i, p := range patterns {
		out[i] = one(p)
	}
	return out
}

// Names says whether a pattern without meta characters names a file in a directory.
func (l List) Names(dir string) bool {
	return slices.ContainsFunc(l, func(g Glob) bool { return g.plain && g.Base == dir })
}

// Sifting makes a list as New does, of which patterns with meta characters do not ask for what is no log by its name, unless they spell that out.
func Sifting(patterns []string) List {
	out := New(patterns)
	for i := range out {
		out[i].sifts = !out[i].plain
	}
	return out
}

// Match says whether the pattern asks for a path.
func (g *Glob) Match(path string) bool {
	if g.plain {
		return g.Pattern == path
	}
	return g.matches(path) && g.nonLog(path, false) == ""
}

func (g *Glob) matches(path string) bool {
	ok, err := doublestar.PathMatch(g.Pattern, path)
	return ok && err == nil
}

// nonLog returns by which part of its name the glob passes over a path; "": it does not.
func (g *Glob) nonLog(path string, isDir bool) string {
	if !g.sifts || len(path) <= len(g.Base) {
		return ""
	}
	name, _ := nonlog.Of(strings.TrimPrefix(path[len(g.Base):], "/"), g.Pattern, isDir)
	return name
}

// PassedOver returns by which part of its name a file or directory is passed over that a glob would match or hold a match in; "": none does that.
func (l List) PassedOver(path string, isDir bool) string {
	for i := range l {
		g := &l[i]
		if name := g.nonLog(path, isDir); name != "" && (isDir && g.mayHold(path) || !isDir && g.matches(path)) {
			return name
		}
	}
	return ""
}

// Below says whether the directory can hold a match.
func (g *Glob) Below(dir string) bool { return g.mayHold(dir) && g.nonLog(dir, true) == "" }

func (g *Glob) mayHold(dir string) bool {
	rel, err := filepath.Rel(g.Base, dir)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return false
	}
	if rel == "." {
		return true
	}
	parts := strings.Split(rel, "/")
	for i, seg := range g.segs {
		if seg == "**" || i >= len(parts) {
			return true
		}
		if ok, _ := doublestar.Match(seg, parts[i]); !ok {
			return false
		}
	}
	return false
}

// Match says whether any glob of the list matches.
func (l List) Match(path string) bool {
	return slices.ContainsFunc(l, func(g Glob) bool { return g.Match(path) })
}
