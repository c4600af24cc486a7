package offline

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/trainbridge/trainbridge/internal/kernelfs"
)

// Glob lists the files that match a pattern, like doublestar.FilepathGlob. Virtual file systems of the kernel are not entered, but added to passed.
func Glob(pattern string, passed kernelfs.Passed) ([]string, error) {
	base, rest := doublestar.SplitPattern(filepath.ToSlash(filepath.Clean(pattern)))
	matches, err := doublestar.Glob(tree{os.DirFS(base), base, passed}, rest, doublestar.WithFilesOnly())
	for i, m := range matches {
		matches[i] = filepath.Join(base, m)
	}
	return matches, err
}

// tree is the directory base without the contents of the kernel's file systems (/proc, /sys), so that a glob such as /** does not list them.
type tree struct {
	fs.FS
	base   string
	passed kernelfs.Passed // the kernel's file systems met
}

// ReadDir lists a directory, given relative to base. For a file system of the kernel it returns nothing, and adds the directory to passed.
func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	dir := filepath.Join(t.base, name)
	if of := kernelfs.Of(dir); of != "" {
		t.passed[dir] = of
		return nil, nil
	}
	return fs.ReadDir(t.FS, name)
}

// Stat implements fs.StatFS.
func (t tree) Stat(name string) (fs.FileInfo, error) { return fs.Stat(t.FS, name) }
