// Package outfile writes the output files of commands, and preserves the kind of an existing file: a device and a FIFO are written to, a symbolic link stays
// and its target gets the content, a regular file is replaced at once and keeps its mode and owner. An unfinished file has no name, and leaves nothing behind
// however the process ends.
package outfile

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	mostLinks = 40 // paths until one ends in no symbolic link; the kernel follows 40 links, those of directories included
	bufBytes  = 64 << 10
)

// errSocket is the error for a socket as the place of a file.
var errSocket = errors.New("a socket cannot be opened: name a file, a FIFO or a device")

// File is an unfinished file. Commit puts the file in its place; Close without Commit changes nothing, unless File is the destination itself.
type File struct {
	*os.File
	path   string      // as given
	target string      // the destination; "": File is the destination itself
	was    fs.FileInfo // the replaced file; nil: none
}

// Create begins a file. A FIFO without a reader is waited for, as in a shell. Errors name the path.
func Create(path string) (*File, error) {
	return begin(path, func(target string, was fs.FileInfo) (*File, error) {
		tmp, err := unnamed(filepath.Dir(target), path, 0o666)
		return &File{tmp, path, target, was}, err
	})
}

// Grow begins a file that is read while it is written: in its place at once, empty.
func Grow(path string) (*File, error) {
	return begin(path, func(target string, _ fs.FileInfo) (*File, error) {
		f, err := os.Create(target)
		return &File{File: f, path: path}, err
	})
}

// begin opens a descriptor of this process, a FIFO or a device as it is, and calls file for a regular file (was) or a new one (was is nil). A directory and a
// socket are errors.
func begin(path string, file func(target string, was fs.FileInfo) (*File, error)) (*File, error) {
	target, fi, err := resolve(path)
	if err != nil {
		return nil, named(path, err)
	}
	f := &File{path: path}
	fd, owned := own(target)
	switch {
	case owned: // a duplicate: Close leaves the process its own
		fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			f.File = os.NewFile(uintptr(fd), path)
		}
	case fi == nil || fi.Mode().IsRegular():
		f, err = file(target, fi)
	case fi.IsDir():
		err = syscall.EISDIR
	case fi.Mode()&fs.ModeSocket != 0:
		err = errSocket
	default:
		f.File, err = os.OpenFile(target, os.O_WRONLY|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, named(path, err)
	}
	return f, nil
}

// Dir is a directory with the file system of the file; "" where File is the destination itself, such as a device.
func (f *File) Dir() string {
	if f.target == "" {
		return ""
	}
	return filepath.Dir(f.target)
}

// Commit puts the file in its place and closes the file. Errors name the path.
func (f *File) Commit() error {
	var err error
	if f.target != "" {
		err = f.publish()
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		return named(f.path, err)
	}
	return nil
}

// IsStream says whether the path is a stream, written to as it is: a descriptor of this process, a FIFO, a device; or a socket, which begin refuses.
func IsStream(path string) bool {
	target, fi, err := resolve(path)
	_, owned := own(target)
	return err == nil && (owned || fi != nil && !fi.Mode().IsRegular() && !fi.IsDir())
}

// Fill calls write with a buffer before w. If w fails, the error is w's, however often write has met w's error.
func Fill(w io.Writer, write func(io.Writer) error) error {
	buf := bufio.NewWriterSize(w, bufBytes)
	err := write(buf)
	if _, failed := buf.Write(nil); failed != nil { // writes nothing: a bufio.Writer repeats the first error of w
		return failed
	}
	if err != nil {
		return err
	}
	return buf.Flush()
}

// Temporary is an empty file without a name, for reading and writing, on the file system of dir; "": the system's directory for temporary files.
func Temporary(dir string) (*os.File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	return unnamed(dir, dir, 0o600)
}

// resolve follows the symbolic links at the end of a path to the file that is to be written, target. fi is the file found; nil: there is none, and one may be
// created, or target is a descriptor of this process (own).
func resolve(path string) (target string, fi fs.FileInfo, err error) {
	for range mostLinks { // path is the target so far
		dir, name := filepath.Split(path) // without the cleaning of Dir: a/../b would become b even where a is a link
		if dir == "" {
			dir = "."
		}
		dir, err = filepath.EvalSymlinks(dir)
		if err != nil {
			return "", nil, err
		}
		path = filepath.Join(dir, name)
		if _, ok := own(path); ok {
			return path, nil, nil
		}
		fi, err = os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return path, nil, nil
		case err != nil:
			return "", nil, err
		case fi.Mode()&fs.ModeSymlink == 0:
			return path, fi, nil
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", nil, err
		}
		path = to
		if !filepath.IsAbs(to) {
			path = dir + string(filepath.Separator) + to
		}
	}
	return "", nil, syscall.ELOOP
}

// own says whether a path is a descriptor of this process: the target of /dev/stdout and /dev/fd/N. A descriptor is written to directly: opening the path would
// overwrite a file opened by the shell from its beginning, and fail for a socket.
func own(path string) (fd int, ok bool) {
	name, ok := strings.CutPrefix(path, "/proc/"+strconv.Itoa(os.Getpid())+"/fd/")
	fd, err := strconv.Atoi(name)
	return fd, ok && err == nil
}

// publish gives the finished file its name, with the mode and owner of the file replaced. linkat cannot replace an existing name, so the file first gets a
// random name beside, which is then renamed; signals wait meanwhile, or the random name might stay behind.
func (f *File) publish() error {
	dir := filepath.Dir(f.target)
	return unsignalled(func() error {
		name, err := f.link(dir)
		if err != nil {
			return err
		}
		if f.was != nil {
			err = f.likeBefore(name)
		}
		if err == nil {
			err = os.Rename(name, f.target)
		}
		if err != nil {
			_ = os.Remove(name)
		}
		return err
	})
}

// link gives the file a random name in a directory, and returns the path. Where the system cannot name a nameless file, a copy gets the name.
func (f *File) link(dir string) (string, error) {
	name := filepath.Join(dir, ".trainbridge-"+rand.Text())
	if link(f.File, name) == nil {
		return name, nil
	}
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // less the umask, as any new file
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, io.NewSectionReader(f.File, 0, math.MaxInt64))
	err = errors.Join(err, to.Close())
	if err != nil {
		_ = os.Remove(name)
	}
	return name, err
}

// likeBefore gives a file the owner and the mode of the replaced one. Only root may give files away.
func (f *File) likeBefore(name string) error {
	if st, ok := f.was.Sys().(*syscall.Stat_t); ok {
		_ = os.Lchown(name, int(st.Uid), int(st.Gid))
	}
	return os.Chmod(name, f.was.Mode().Perm())
}

// removed makes a file without a name in a directory, where the system knows no such files: the file is created, and its name removed at once.
func removed(dir string) (f *os.File, err error) {
	err = unsignalled(func() error {
		f, err = os.CreateTemp(dir, ".trainbridge-*")
		if err != nil {
			return err
		}
		return os.Remove(f.Name())
	})
	return f, err
}

// unsignalled calls do while signals that end the process wait. After do, a received signal ends the process.
func unsignalled(do func() error) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	err := do()
	signal.Stop(signals)
	select {
	case s := <-signals:
		_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
	default:
	}
	return err
}

// named is an error about a path, once, without the names of files on the way.
func named(path string, err error) error { return fmt.Errorf("%s: %w", path, Reason(err)) }

// Reason is an error about a file without the operation and the path: "permission denied".
func Reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return err
}
