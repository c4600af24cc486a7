// Package glob matches paths with the globs of a configuration, and finds the directories that can hold such paths.
package glob

import (
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/trainbridge/trainbridge/internal/nonlog"
)

// Glob is a pattern split at its slashes: a walk enters only directories that can hold a match.
type Glob struct {
	Pattern string
	Base    string   // the directory before the first meta character
	segs    []string // the pattern after Base, split at the slashes
	plain   string   // the single matching path; "": the pattern has meta characters
	sifts   bool     // excludes non-logs by name
}

// one returns the Glob of a pattern: of a single path, or of a directory and the segments below.
func one(pattern string) Glob {
	pattern = filepath.Clean(pattern)
	if path, ok := plain(pattern); ok {
		return Glob{Pattern: pattern, Base: filepath.Dir(path), plain: path}
	}
	base, rest := doublestar.SplitPattern(filepath.ToSlash(pattern))
	g := Glob{Pattern: pattern, Base: base, segs: strings.Split(rest, "/")}
	for i, seg := range g.segs {
		// Braces may hold slashes; such a pattern is walked whole.
		if strings.ContainsAny(seg, "{}") {
			g.segs = append(g.segs[:i:i], "**")
			break
		}
	}
	return g
}

const meta = `*?[]{}\`

// plain returns the path named by a pattern, without escapes. It returns false if the pattern has unescaped meta characters.
func plain(pattern string) (path string, ok bool) {
	if !strings.ContainsAny(pattern, meta) {
		return pattern, true
	}
	var out strings.Builder
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c == '\\' && i+1 < len(pattern) {
			i++
			c = pattern[i]
		} else if strings.IndexByte(meta, c) >= 0 {
			return "", false
		}
		out.WriteByte(c)
	}
	return out.String(), true
}

// List is a list of globs. Commands for finished logs name thousands of files: plain paths are looked up, and only patterns are tried in turn. The zero value
// is empty.
type List struct {
	Globs  []Glob
	plain  map[string]int   // the first glob of a path, by its place
	again  map[string][]int // the other globs of a path
	bases  map[string]struct{}
	others []int // with meta characters
}

// New returns a list of patterns accepted by doublestar.ValidatePattern.
func New(patterns []string) List {
	var l List
	for _, p := range patterns {
		l.add(one(p))
	}
	return l
}

// add appends a glob to Globs, and its index to the maps (a pattern without meta characters) or to others.
func (l *List) add(g Glob) {
	at := len(l.Globs)
	l.Globs = append(l.Globs, g)
	if g.plain == "" {
		l.others = append(l.others, at)
		return
	}
	if l.plain == nil {
		l.plain, l.bases = make(map[string]int), make(map[string]struct{})
	}
	if _, ok := l.plain[g.plain]; !ok {
		l.plain[g.plain] = at
	} else {
		if l.again == nil {
			l.again = make(map[string][]int)
		}
		l.again[g.plain] = append(l.again[g.plain], at)
	}
	l.bases[g.Base] = struct{}{}
}

// With returns a list with the globs of other appended.
func (l List) With(other List) List {
	if len(l.Globs) == 0 {
		return other
	}
	if len(other.Globs) == 0 {
		return l
	}
	var both List
	for _, g := range slices.Concat(l.Globs, other.Globs) {
		both.add(g)
	}
	return both
}

// Names reports whether a pattern without meta characters names a file in directory dir.
func (l List) Names(dir string) bool {
	_, ok := l.bases[dir]
	return ok
}

// Sifting returns a list like New, but its patterns with meta characters exclude non-logs by name, unless spelled out.
func Sifting(patterns []string) List {
	out := New(patterns)
	for _, i := range out.others {
		out.Globs[i].sifts = true
	}
	return out
}

// match reports whether a pattern with meta characters matches a path whose name is not excluded.
func (g *Glob) match(path string) bool {
	return g.matches(path) && g.nonLog(path, false) == ""
}

// matches reports whether the pattern matches a path, excluded by its name or not.
func (g *Glob) matches(path string) bool {
	ok, err := doublestar.PathMatch(g.Pattern, path)
	return ok && err == nil
}

// nonLog returns the part of a path, such as ".git", for which the path is excluded as no log; "": not excluded.
func (g *Glob) nonLog(path string, isDir bool) string {
	if !g.sifts || len(path) <= len(g.Base) {
		return ""
	}
	name, _ := nonlog.Of(strings.TrimPrefix(path[len(g.Base):], "/"), g.Pattern, isDir)
	return name
}

// PassedOver returns the part of a path's name for which a file or directory is excluded although a glob would match the path, or hold a match in the
// directory; "": none.
func (l List) PassedOver(path string, isDir bool) string {
	for _, i := range l.others {
		g := &l.Globs[i]
		if name := g.nonLog(path, isDir); name != "" && (isDir && g.mayHold(path) || !isDir && g.matches(path)) {
			return name
		}
	}
	return ""
}

// Below reports whether a directory, or a directory below, may hold a match of any glob.
func (l List) Below(dir string) bool {
	return l.Names(dir) || slices.ContainsFunc(l.others, func(i int) bool { return l.Globs[i].mayHold(dir) && l.Globs[i].nonLog(dir, true) == "" })
}

// mayHold reports whether a directory, or a directory below, may hold a match: its parts below Base match the pattern's, as far as both go.
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
	return false // the pattern ends with the directory or above
}

// Match reports whether any glob of the list matches.
func (l List) Match(path string) bool {
	if _, ok := l.plain[path]; ok {
		return true
	}
	return slices.ContainsFunc(l.others, func(i int) bool { return l.Globs[i].match(path) })
}

// Matching yields the indices of the matching globs.
func (l List) Matching(path string) iter.Seq[int] {
	return func(yield func(int) bool) {
		if i, ok := l.plain[path]; ok && !yield(i) {
			return
		}
		for _, i := range l.again[path] {
			if !yield(i) {
				return
			}
		}
		for _, i := range l.others {
			if l.Globs[i].match(path) && !yield(i) {
				return
			}
		}
	}
}
