package gen

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
)

// clock is the real time in --rate mode; tests put in their own.
type clock struct {
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration)
}

var realClock = clock{
	now: time.Now,
	sleep: func(ctx context.Context, d time.Duration) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	},
}

// sink writes the lines and the truth. The first error sticks and stops the simulation.
type sink struct {
	clock  clock
	paced  bool
	rotate int             // lines per file before it is renamed; 0: never
	ctx    context.Context // of the run: whatever waits, waits until its end
	buf    []byte
	files  []*logFile
	err    error

	truthFile *os.File
	truthBuf  *bufio.Writer
	truthJSON *json.Encoder
}

// logFile is one log with its rotation.
type logFile struct {
	File
	f     *os.File // nil for standard output
	w     *bufio.Writer
	since int // lines since the last rotation
}

// stdout makes standard output the log.
func (k *sink) stdout(w io.Writer) *logFile {
	l := &logFile{File: File{Path: "-"}, w: bufio.NewWriterSize(w, 1<<18)}
	k.files = append(k.files, l)
	return l
}

// create opens a log anew. What is not ours (no truth beside it) is not overwritten.
func (k *sink) create(l *logFile, truth string, buffer int) error {
	if st, err := os.Stat(l.Path); err == nil && st.Size() > 0 {
		if _, err := os.Stat(truth); err != nil {
			return fmt.Errorf("%w: --out: %s exists and has no truth beside it, so it may be a real log: remove it or choose another --out", ErrOptions, l.Path)
		}
	}
	f, err := os.Create(l.Path)
	if err != nil {
		return fmt.Errorf("%w: --out: %w", ErrOptions, err)
	}
	l.f, l.w = f, bufio.NewWriterSize(f, buffer)
	k.files = append(k.files, l)
	return nil
}

// openLog opens the log of a simulation that writes one, or one of several: out itself, or the file of this name in it.
func (k *sink) openLog(out string, dir bool, name, truth string, stdout io.Writer) (*logFile, error) {
	if out == "-" {
		return k.stdout(stdout), nil
	}
	if dir {
		if err := os.MkdirAll(out, 0o755); err != nil {
			return nil, fmt.Errorf("%w: --out: %w", ErrOptions, err)
		}
		out = filepath.Join(out, name)
	}
	f := &logFile{File: File{Path: out}}
	return f, k.create(f, truth, 1<<18)
}

// openTruth creates the truth; an empty path is none.
func (k *sink) openTruth(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("%w: --truth: %w", ErrOptions, err)
	}
	k.truthFile, k.truthBuf = f, bufio.NewWriterSize(f, 1<<18)
	k.truthJSON = json.NewEncoder(k.truthBuf)
	return nil
}

// wait holds a paced run until the wall time of the next line, or until its end.
func (k *sink) wait(wall int64) {
	if !k.paced {
		return
	}
	if d := time.Duration(wall - k.clock.now().UnixNano()); d > 0 && k.ctx.Err() == nil {
		k.clock.sleep(k.ctx, d)
	}
}

// write ends a message of so many physical lines and returns the buffer for reuse.
func (k *sink) write(l *logFile, b []byte, lines int) []byte {
	b = append(b, '\n')
	if k.err != nil {
		return b
	}
	_, err := l.w.Write(b)
	if err == nil && k.paced {
		err = l.w.Flush()
	}
	l.Lines += int64(lines)
	l.since += lines
	if err == nil && k.rotate > 0 && l.since >= k.rotate {
		err = l.rotate()
	}
	k.err = err
	return b
}

// lineClass sorts lines as LineCounts does.
type lineClass int

const (
	classRecord lineClass = iota
	classSide
	classIgnored
	classRejected
)

// text begins a line in the buffer that all lines share.
func (k *sink) text(parts ...string) []byte {
	b := k.buf[:0]
	for _, s := range parts {
		b = append(b, s...)
	}
	return b
}

// line ends a line.
func (k *sink) line(f *logFile, b []byte, class lineClass) {
	switch class {
	case classRecord:
		f.Records++
	case classSide:
		f.Sides++
	case classIgnored:
		f.Ignored++
	case classRejected:
		f.Rejected++
	}
	k.buf = k.write(f, b, 1)
}

// lineCounts sums up the lines of all files.
func (k *sink) lineCounts() (lines int64, c LineCounts) {
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
func (l *logFile) rotate() error {
	if err := l.close(); err != nil {
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
	l.f = f
	l.w.Reset(f)
	return nil
}

func (l *logFile) close() error {
	err := l.w.Flush()
	if l.f != nil {
		err = errors.Join(err, l.f.Close())
	}
	return err
}

// truth writes one record of the truth, if there is one.
func (k *sink) truth(record any) error {
	if k.truthJSON == nil {
		return nil
	}
	if err := k.truthJSON.Encode(record); err != nil {
		return err
	}
	if k.paced {
		return k.truthBuf.Flush()
	}
	return nil
}

// close flushes everything and, after a run without error, ends the truth with its summary, to which it adds the files.
func (k *sink) close(run any, files *[]File, failed error) error {
	errs := []error{failed}
	for _, l := range k.files {
		errs = append(errs, l.close())
		*files = append(*files, l.File)
	}
	if k.truthFile != nil {
		if failed == nil {
			errs = append(errs, k.truthJSON.Encode(map[string]any{"run": run}))
		}
		errs = append(errs, k.truthBuf.Flush(), k.truthFile.Close())
	}
	return errors.Join(errs...)
}
