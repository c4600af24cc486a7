package offline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"github.com/trainbridge/trainbridge/internal/kernelfs"
	"github.com/trainbridge/trainbridge/internal/nonlog"
	"github.com/trainbridge/trainbridge/internal/outfile"
)

const (
	// MostFiles bounds the files of one answer: a job of 10,000 ranks has some logs of each, and a file takes 0.3 ms of CPU and 13 KB.
	MostFiles = 100_000
	// countedTo: a walk ends at this many times MostFiles. A tree of millions of files takes minutes to list.
	countedTo = 10
)

// FollowSymlinks is the variable to follow links, here and in the shipped configuration.
const FollowSymlinks = "TRAINBRIDGE_FOLLOW_SYMLINKS"

// stdinName is how standard input is called.
const stdinName = "-"

// ErrNoFiles is in the error about a directory or a glob without a file.
var ErrNoFiles = errors.New("no file to read")

// Input is the files of paths.
type Input struct {
	Files []string // absolute, sorted
	Bytes int64    // of all
	// Missing are the paths without a file, each with the reason.
	Missing []error
	// Links are the symbolic links in directories and behind globs, not followed unless FollowSymlinks is set, as in a collector. Denied are the errors of
	// unreadable directories.
	Links  []string
	Denied []error

	// PassedOver counts files that are no logs by their names, in directories and behind globs that do not spell the name out.
	PassedOver nonlog.Tally
	// Kernel are the kernel's file systems in reach of directories and globs: they are not entered.
	Kernel kernelfs.Passed
	// Left is the number of files beyond MostFiles, not read. More: the count itself was cut off.
	Left int
	More bool
	// Copies are files with the same records as another of Files: they are not read.
	Copies []Copy

	most   int               // MostFiles, less in tests
	follow bool              // links are followed
	named  map[string]string // names of files that differ from their paths
	roots  []root
	spool  *os.File // the copy of the standard input
}

// root is one of the paths that the user gave, with the files found at the path.
type root struct {
	path  string // as given
	dir   bool   // a directory: files are all below
	files []string
}

// Open finds the files of paths: files, directories with everything below, globs (with **), and "-", the standard input, which is copied into a file without a
// name until Close. If no file is found, the error joins the reasons of all paths (Missing).
func Open(paths []string, stdin io.Reader) (*Input, error) { return open(paths, stdin, MostFiles) }

// open is Open with a limit for the number of files.
func open(paths []string, stdin io.Reader, most int) (*Input, error) {
	in := &Input{named: make(map[string]string), most: most}
	in.follow, _ = strconv.ParseBool(os.Getenv(FollowSymlinks))
	for _, path := range paths {
		passed, kernel, links := in.PassedOver, in.Kernel, in.Links // of the paths before
		in.PassedOver, in.Kernel, in.Links = make(nonlog.Tally), make(kernelfs.Passed), nil
		r, err := in.findRoot(path, stdin)
		switch {
		case err != nil:
			in.Missing = append(in.Missing, err)
		case len(r.files) == 0:
			err = fmt.Errorf("%s: %w", path, ErrNoFiles)
			if in.PassedOver.Sum() > 0 {
				err = fmt.Errorf("%w; passed over by name, as no logs: %s", err, in.PassedOver)
			}
			if len(in.Kernel) > 0 {
				err = fmt.Errorf("%w; passed over, as the kernel's: %s", err, in.Kernel)
			}
			if text := in.LinksText(); text != "" {
				err = fmt.Errorf("%w; %s", err, text)
			}
			in.Missing = append(in.Missing, err)
		default:
			in.roots = append(in.roots, r)
		}
		for name, n := range passed {
			in.PassedOver[name] += n
		}
		maps.Copy(in.Kernel, kernel)
		in.Links = append(links, in.Links...)
	}
	// A file of several paths belongs to the first; files beyond most are counted and left.
	seen := make(map[string]bool)
	for i := range in.roots {
		in.roots[i].files = slices.DeleteFunc(in.roots[i].files, func(f string) bool {
			again := seen[f]
			seen[f] = true
			if !again && len(seen) > most {
				in.Left++
				return true
			}
			return again
		})
		for _, f := range in.roots[i].files {
			if fi, err := os.Stat(f); err == nil {
				in.Bytes += fi.Size()
			}
			in.Files = append(in.Files, f)
		}
	}
	slices.Sort(in.Files)
	in.dropCopies()
	in.dropTrackers()
	if len(in.Files) == 0 {
		in.Close()
		return nil, errors.Join(in.Missing...)
	}
	return in, nil
}

// Close closes, and thereby deletes, the copy of the standard input.
func (in *Input) Close() {
	if in.spool != nil {
		_ = in.spool.Close()
	}
}

// Name returns the name of a file for the user: its path, or "-".
func (in *Input) Name(path string) string {
	if name, ok := in.named[path]; ok {
		return name
	}
	return path
}

// findRoot returns the files of a path as given: "-", a directory, a regular file, or else a glob. For a glob, files that are no logs by their names are
// counted in PassedOver, and links that are not followed are added to Links. An error says why the path cannot be read; a glob without matches gives a root
// without files and no error.
func (in *Input) findRoot(path string, stdin io.Reader) (root, error) {
	if path == stdinName {
		return in.copyStdin(stdin)
	}
	fi, err := os.Stat(path)
	switch {
	case err == nil && fi.IsDir():
		files, err := in.listBelow(path)
		return root{path, true, files}, err
	case err == nil && !fi.Mode().IsRegular():
		return root{}, fmt.Errorf("%s: not a file: its bytes can be read from standard input, as -", path)
	case err == nil:
		file, err := resolve(path)
		return root{path, false, []string{file}}, err
	case !strings.ContainsAny(path, "*?[{"): // no glob either
		return root{}, err
	}
	matches, err := Glob(path, in.Kernel)
	if err != nil {
		return root{}, fmt.Errorf("%s: %w", path, err)
	}
	r := root{path: path}
	base, _ := doublestar.SplitPattern(filepath.ToSlash(filepath.Clean(path)))
	from, err := resolve(base)
	if err != nil {
		return r, nil //nolint:nilerr // then it matches nothing
	}
	seen := make(map[string]bool) // directories and files passed over by name: each counts once
	for _, m := range matches {
		if at, name := NonLog(base, path, m); name != "" {
			if !seen[at] {
				in.PassedOver[name]++
			}
			seen[at] = true
			continue
		}
		file, err := resolve(m)
		if err != nil {
			continue // deleted just now
		}
		if fi, err := os.Stat(file); err != nil || !fi.Mode().IsRegular() {
			continue
		}
		// Links in the glob's fixed part are followed, as named by the user; a link behind is met if the file's own path is not where the glob found the file.
		if rel, err := filepath.Rel(base, m); !in.follow && (err != nil || filepath.Join(from, rel) != file) {
			in.Links = append(in.Links, m)
			continue
		}
		r.files = append(r.files, file)
	}
	return r, nil
}

// Unfollowed returns the links of Links that lead to a file or directory of which nothing is read by another path.
func (in *Input) Unfollowed() (links []string) {
	read := make(map[string]bool, len(in.Files))
	for _, f := range in.Files {
		read[f] = true
	}
	for _, link := range in.Links {
		to, err := filepath.EvalSymlinks(link)
		if err != nil || read[to] || slices.ContainsFunc(in.Files, func(f string) bool { return strings.HasPrefix(f, to+string(filepath.Separator)) }) {
			continue // to nowhere, or to a file read anyway
		}
		links = append(links, link)
	}
	return links
}

// LinksText returns a text about the links that are not followed; "": there are none.
func (in *Input) LinksText() string {
	links := in.Unfollowed()
	switch len(links) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 symbolic link passed over, %s: %s=true follows links", links[0], FollowSymlinks)
	}
	return fmt.Sprintf("%d symbolic links passed over, such as %s: %s=true follows links", len(links), links[0], FollowSymlinks)
}

// resolve returns the absolute path of a file, with all links followed.
func resolve(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// listBelow returns the regular files below a directory, and with FollowSymlinks the files that links point to. What is not read is recorded in the Input:
// unreadable directories, file systems of the kernel, files that are no logs by their names, and links (those to directories in any case). The walk ends at
// countedTo times as many files as may be read. err is about dir itself.
func (in *Input) listBelow(dir string) (files []string, err error) {
	dir, err = resolve(dir)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == dir {
				return err
			}
			in.Denied = append(in.Denied, err)
			return nil
		}
		if len(files) > countedTo*in.most {
			in.More = true
			return filepath.SkipAll
		}
		if of := kernelfsOf(path, d); of != "" {
			in.Kernel[path] = of
			return filepath.SkipDir
		}
		if at, name := nonLog(dir, "", path, d.IsDir()); name != "" {
			in.PassedOver[name]++
			if at == path && d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		switch {
		case d.Type().IsRegular():
			files = append(files, path)
		case d.Type()&fs.ModeSymlink != 0:
			file, err := resolve(path)
			if fi, statErr := os.Stat(file); in.follow && err == nil && statErr == nil && fi.Mode().IsRegular() {
				files = append(files, file)
			} else {
				in.Links = append(in.Links, path)
			}
		}
		return nil
	})
	return files, err
}

// kernelfsOf returns the name of the kernel's file system mounted at a directory; "": none.
func kernelfsOf(path string, d fs.DirEntry) string {
	if !d.IsDir() {
		return ""
	}
	return kernelfs.Of(path)
}

// NonLog returns the part of the path of a file, below the base of a glob, by whose name the file is no log, and the path up to that part; "": the file may be
// a log.
func NonLog(base, pattern, file string) (at, name string) { return nonLog(base, pattern, file, false) }

// nonLog is NonLog of a file or a directory.
func nonLog(base, pattern, path string, isDir bool) (at, name string) {
	rel, err := filepath.Rel(base, path)
	if err != nil || rel == "." {
		return "", ""
	}
	name, end := nonlog.Of(rel, pattern, isDir)
	return filepath.Join(base, rel[:end]), name
}

// copyDescriptor is the least descriptor of the copy of the standard input: its path must not depend on open files, because ids of records include the name of
// their file.
const copyDescriptor = 100

// copyStdin copies the standard input into a file without a name, which is read twice: to find the format, and to read the records. The file of the root is the
// path of the descriptor in /proc.
func (in *Input) copyStdin(stdin io.Reader) (root, error) {
	if in.spool != nil {
		return root{}, errors.New("-: standard input can be read only once")
	}
	f, err := outfile.Temporary("")
	if err != nil {
		return root{}, err
	}
	in.spool = f
	n, err := io.Copy(f, stdin)
	if err != nil {
		return root{}, fmt.Errorf("-: standard input: %w", err)
	}
	if n == 0 {
		return root{}, errors.New("-: standard input is empty")
	}
	if fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, copyDescriptor); err == nil { // else the limit of descriptors is low
		_ = f.Close()
		in.spool = os.NewFile(uintptr(fd), f.Name())
	}
	path := "/proc/self/fd/" + strconv.Itoa(int(in.spool.Fd()))
	in.named[path] = stdinName
	return root{stdinName, false, []string{path}}, nil
}
