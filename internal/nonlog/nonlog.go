// Package nonlog recognizes files other than logs by their names: weights, datasets, pictures, compiled code, and the files of version control and package
// managers.
package nonlog

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// directories hold no logs, at any depth. Of virtual environments site-packages is left out, whatever their names.
var directories = []string{
	".git", ".hg", ".svn", "node_modules", "__pycache__", "site-packages", "dist-packages", ".venv", ".tox", ".mypy_cache", ".pytest_cache", ".ruff_cache",
}

// suffixes are of binary files. Archives of logs (.tar, .zip, .xz) are not among them: check explains how to unpack unreadable archives, and a .tar is text.
var suffixes = []string{
	".pt", ".pth", ".bin", ".safetensors", ".ckpt", ".gguf", ".npz", ".npy", ".onnx", ".h5", ".hdf5", ".distcp", ".pdparams", ".pdopt",
	".parquet", ".arrow", ".tfrecord", ".idx",
	".so", ".dll", ".dylib", ".exe", ".pyc", ".pyo", ".class", ".jar", ".whl",
	".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".ico", ".tiff", ".mp3", ".mp4", ".wav", ".avi", ".mov", ".webm", ".flac", ".pdf",
}

// truth ends the name of the file that trainbridge gen and bin/gen write beside their logs: the true events, step by step.
const truth = "truth.json"

func isTruth(name string) bool { return name == truth || strings.HasSuffix(name, "."+truth) }

var directorySet, suffixSet = setOf(directories), setOf(suffixes)

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}

// Of says why a path, rel to the base of a glob, is no log: name is the directory's (".git"), the suffix (".pt") or truth.json, and rel[:end] the directory or
// file with this name. "": possibly a log. Names spelled out in the pattern of the glob are accepted.
func Of(rel, pattern string, isDir bool) (name string, end int) {
	for from := 0; from < len(rel); { // each directory of the path
		to := len(rel)
		if i := strings.IndexByte(rel[from:], '/'); i >= 0 {
			to = from + i
		}
		if to == len(rel) && !isDir { // the file
			break
		}
		if name := rel[from:to]; directorySet[name] && !hasSegment(pattern, name) {
			return name, to
		}
		from = to + 1
	}
	if isDir {
		return "", 0
	}
	if isTruth(path.Base(rel)) && !strings.HasSuffix(pattern, truth) {
		return truth, len(rel)
	}
	suffix := strings.ToLower(path.Ext(rel))
	if suffixSet[suffix] && !strings.HasSuffix(strings.ToLower(pattern), suffix) {
		return suffix, len(rel)
	}
	return "", 0
}

// hasSegment reports whether name is one of the pattern's slash-separated segments: then the user asked for that directory by name.
func hasSegment(pattern, name string) bool {
	for part := range strings.SplitSeq(pattern, "/") {
		if part == name {
			return true
		}
	}
	return false
}

// Tally counts the skipped files, by the name of their directory or by their suffix.
type Tally map[string]int

const mostNamed = 5

// String lists the most frequent first: 1200 .pt, 3 .git.
func (t Tally) String() string {
	names := slices.SortedFunc(maps.Keys(t), func(a, b string) int { return cmp.Or(cmp.Compare(t[b], t[a]), cmp.Compare(a, b)) })
	var parts []string
	for _, name := range names[:min(len(names), mostNamed)] {
		parts = append(parts, fmt.Sprintf("%d %s", t[name], name))
	}
	if more := len(names) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more kinds", more))
	}
	return strings.Join(parts, ", ")
}

// Sum is the number of skipped files.
func (t Tally) Sum() (n int) {
	for _, one := range t {
		n += one
	}
	return n
}
