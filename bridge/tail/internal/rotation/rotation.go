// Package rotation knows the names of rotated files: path.1, path-20260101, path.2.gz.
package rotation

import (
	"iter"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/unpack"
)

// Bases yields the possible paths of a file before its rotation, by its name. TensorBoard's event files end in a process id and a number, and never rotate:
// torch/utils/tensorboard and TensorFlow begin a new file.
func Bases(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		dir, name := filepath.Split(path)
		events := strings.Contains(name, "tfevents")
		for n := 1; n < len(name); n++ {
			if !events && IsSuffix(name[n:]) && !yield(dir+name[:n]) {
				return
			}
		}
	}
}

// IsSuffix reports whether a suffix is rotation's: .1, -20260101, .2026-01-01_00, .old, each perhaps with .gz or .zst. rank-3 is no rotated rank: after a dash
// there must be a date, old or bak.
func IsSuffix(s string) bool {
	if len(s) < 2 || s[0] != '.' && s[0] != '-' {
		return false
	}
	dash := s[0] == '-'
	s = unpack.Name(s[1:])
	if s == "old" || s == "bak" {
		return true
	}
	if dash && (len(s) < 6 || strings.Trim(s[:6], "0123456789-") != "") {
		return false
	}
	// The characters of dates and times.
	return s != "" && s[0] >= '0' && s[0] <= '9' && strings.Trim(s, "0123456789-_.T:Z+") == ""
}

// Number returns the number of a suffix like .1 or .12.gz. Longer numbers are dates.
func Number(suffix string) (n int, ok bool) {
	suffix = unpack.Name(suffix)
	if len(suffix) < 2 || len(suffix) > 6 || suffix[0] != '.' {
		return 0, false
	}
	n, err := strconv.Atoi(suffix[1:])
	return n, err == nil
}

// Stem splits a path into its directory and the common beginning of the names of its rotated files and copies: the name without its extension.
func Stem(path string) (dir, stem string) {
	dir, base := filepath.Split(path)
	stem = strings.TrimSuffix(base, filepath.Ext(base))
	if stem == "" {
		stem = base
	}
	return dir, stem
}

// EndsStem reports whether a name's first n bytes can be a stem: rank10.log is no copy of rank1.log.
func EndsStem(name string, n int) bool {
	if n == len(name) {
		return true
	}
	c := name[n]
	lower := c | 0x20 // of a letter
	return (c < '0' || c > '9') && (lower < 'a' || lower > 'z')
}
