package logfile

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/trainbridge/trainbridge/internal/outfile"
)

// Clock is the real time in --rate mode; tests put in their own.
type Clock struct {
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)
}

// RealClock is the clock of the machine.
var RealClock = Clock{
	Now: time.Now,
	Sleep: func(ctx context.Context, d time.Duration) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	},
}

// Sink writes the lines and the truth. The first error sticks and stops the simulation.
type Sink struct {
	Clock  Clock
	Paced  bool
	Rotate int             // lines per file before it is renamed; 0: never
	Ctx    context.Context // the run's context: whatever waits, waits until it ends
	Buf    []byte
	files  []*Log
	Err    error

	truthFile *outfile.File
	truthBuf  *bufio.Writer
	truthJSON *json.Encoder
}

// Log is one log with its rotation.
type Log struct {
	File
	F     *os.File // nil for standard output
	W     *bufio.Writer
	since int // lines since the last rotation
}

// Stdout makes standard output the log.
func (k *Sink) Stdout(w io.Writer) *Log {
	l := &Log{File: File{Path: "-"}, W: bufio.NewWriterSize(w, 1<<18)}
	k.files = append(k.files, l)
	return l
}

// Create opens a log anew, where it stands, as a trainer does. A file that is not ours (without truth beside it) is not overwritten.
func (k *Sink) Create(l *Log, truth string, buffer int) error {
	if outfile.IsStream(l.Path) {
		if k.Rotate > 0 {
			return fmt.Errorf("%w: --out: %s is no regular file, and rotation renames the log: choose another --out, or no rotation", ErrOptions, l.Path)
		}
	} else if st, err := os.Stat(l.Path); err == nil && st.Size() > 0 {
		if _, err := os.Stat(truth); err != nil {
			return fmt.Errorf("%w: --out: %s exists and has no truth beside it, so it may be a real log: remove it or choose another --out", ErrOptions, l.Path)
		}
	}
	if to, err := filepath.EvalSymlinks(l.Path); k.Rotate > 0 && err == nil {
		l.Path = to // what is renamed is the log, not a link to it
	}
	f, err := outfile.Grow(l.Path)
	if err != nil {
		return fmt.Errorf("%w: --out: %w", ErrOptions, err)
	}
	l.F, l.W = f.File, bufio.NewWriterSize(f, buffer)
	k.files = append(k.files, l)
	return nil
}

// OpenLog opens the log of a simulation that writes one, or one of several: out itself, or the file of this name in it.
func (k *Sink) OpenLog(out string, dir bool, name, truth string, stdout io.Writer) (*Log, error) {
	if out == "-" {
		return k.Stdout(stdout), nil
	}
	if dir {
		if err := os.MkdirAll(out, 0o755); err != nil {
			return nil, fmt.Errorf("%w: --out: %w", ErrOptions, err)
		}
		out = filepath.Join(out, name)
	}
	f := &Log{File: File{Path: out}}
	return f, k.Create(f, truth, 1<<18)
}

// OpenTruth creates the truth; with an empty path there is no truth.
func (k *Sink) OpenTruth(path string) error {
	if path == "" {
		return nil
	}
	begin := outfile.Create
	if k.Paced {
		begin = outfile.Grow
	}
	f, err := begin(path)
	if err != nil {
		return fmt.Errorf("%w: --truth: %w", ErrOptions, err)
	}
	k.truthFile, k.truthBuf = f, bufio.NewWriterSize(f, 1<<18)
	k.truthJSON = json.NewEncoder(k.truthBuf)
	return nil
}

// Wait holds a paced run until the wall time of the next line, or until its end.
func (k *Sink) Wait(wall int64) {
	if !k.Paced {
		return
	}
	if d := time.Duration(wall - k.Clock.Now().UnixNano()); d > 0 && k.Ctx.Err() == nil {
		k.Clock.Sleep(k.Ctx, d)
	}
}

// Write ends a message of so many physical lines and returns the buffer for reuse.
func (k *Sink) Write(l *Log, b []byte, lines int) []byte {
	b = append(b, '\n')
	if k.Err != nil {
		return b
	}
	_, err := l.W.Write(b)
	if err == nil && k.Paced {
		err = l.W.Flush()
	}
	l.Lines += int64(lines)
	l.since += lines
	if err == nil && k.Rotate > 0 && l.since >= k.Rotate {
		err = l.rotate()
	}
	k.Err = err
	return b
}

// Class sorts lines as LineCounts does.
type Class int

// The classes.
const (
	Record Class = iota
	Side
	Ignored
	Rejected
)

// Text begins a line in the buffer that all lines share.
func (k *Sink) Text(parts ...string) []byte {
	b := k.Buf[:0]
	for _, s := range parts {
		b = append(b, s...)
	}
	return b
}

// Line ends a line.
func (k *Sink) Line(f *Log, b []byte, class Class) {
	switch class {
	case Record:
		f.Records++
	case Side:
		f.Sides++
	case Ignored:
		f.Ignored++
	case Rejected:
		f.Rejected++
	}
	k.Buf = k.Write(f, b, 1)
}

// Counts sums up the lines of all files.
func (k *Sink) Counts() (lines int64, c LineCounts) {
	for _, f := range k.files {
		lines += f.Lines
		c.Records += f.Records
		c.Sides += f.Sides
		c.Ignored += f.Ignored
		c.Rejected += f.Rejected
	}
	return lines, c
}

// rotate renames the file to the next number and goes on in a new one.
func (l *Log) rotate() error {
	if err := l.Close(); err != nil {
		return err
	}
	l.Rotated++
	l.since = 0
	if err := os.Rename(l.Path, l.Path+"."+strconv.Itoa(l.Rotated)); err != nil {
		return err
	}
	f, err := os.Create(l.Path)
	if err != nil {
		return err
	}
	l.F = f
	l.W.Reset(f)
	return nil
}

// Close flushes and closes the file.
func (l *Log) Close() error {
	err := l.W.Flush()
	if l.F != nil {
		err = errors.Join(err, l.F.Close())
	}
	return err
}

// Truth writes one record of the truth, if there is one.
func (k *Sink) Truth(record any) error {
	if k.truthJSON == nil {
		return nil
	}
	if err := k.truthJSON.Encode(record); err != nil {
		return err
	}
	if k.Paced {
		return k.truthBuf.Flush()
	}
	return nil
}

// Close flushes everything and, after a run without error, ends the truth with its summary, to which it adds the files.
func (k *Sink) Close(run any, files *[]File, failed error) error {
	errs := []error{failed}
	for _, l := range k.files {
		errs = append(errs, l.Close())
		*files = append(*files, l.File)
	}
	if k.truthFile == nil {
		return errors.Join(errs...)
	}
	defer k.truthFile.Close()
	if failed == nil {
		errs = append(errs, k.truthJSON.Encode(map[string]any{"run": run}))
	}
	if err := errors.Join(append(errs, k.truthBuf.Flush())...); err != nil {
		return err
	}
	return k.truthFile.Commit()
}
