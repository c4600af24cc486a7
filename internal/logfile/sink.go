package logfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/trainbridge/trainbridge/internal/outfile"
)

// ErrOptions wraps all errors in the options of a generator.
var ErrOptions = errors.New("gen")

// Sink writes the lines of logs. The first error sticks and stops the simulation.
type Sink struct {
	Clock Clock
	Paced bool            // lines are written at their own times, as by a live training; else as fast as possible
	Ctx   context.Context // the run's context: its end ends all waits
	Buf   []byte          // shared by all lines
	Logs  []*Log          // all created
	Err   error           // the first error of a write
}

// Log is one log.
type Log struct {
	File
	F *os.File // nil for standard output
	W *bufio.Writer
}

// Create opens a new log in place, as a trainer does, with a buffer of the given size, By. truth is the path of the file that a generator writes beside its
// logs: without that file, an existing log is not of a generator, and is not overwritten.
func (k *Sink) Create(l *Log, truth string, buffer int) error {
	if st, err := os.Stat(l.Path); err == nil && st.Size() > 0 && !outfile.IsStream(l.Path) {
		if _, err := os.Stat(truth); err != nil {
			return fmt.Errorf("%w: --out: %s exists and has no truth beside it, so it may be a real log: remove it or choose another --out", ErrOptions, l.Path)
		}
	}
	f, err := outfile.Grow(l.Path)
	if err != nil {
		return fmt.Errorf("%w: --out: %w", ErrOptions, err)
	}
	l.F, l.W = f.File, bufio.NewWriterSize(f, buffer)
	k.Logs = append(k.Logs, l)
	return nil
}

// Wait holds a paced run until wall, the time of the next line (Unix ns), or until the run is ended.
func (k *Sink) Wait(wall int64) {
	if !k.Paced {
		return
	}
	if d := time.Duration(wall - k.Clock.Now().UnixNano()); d > 0 && k.Ctx.Err() == nil {
		k.Clock.Sleep(k.Ctx, d)
	}
}

// Write writes a message of one or more lines, and returns the buffer b for reuse. After an error nothing more is written. A paced run shows each message at
// once.
func (k *Sink) Write(l *Log, b []byte, lines int) []byte {
	b = append(b, '\n')
	if k.Err != nil {
		return b
	}
	_, k.Err = l.W.Write(b)
	if k.Err == nil && k.Paced {
		k.Err = l.W.Flush()
	}
	l.Lines += int64(lines)
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

// Text begins a line in the buffer.
func (k *Sink) Text(parts ...string) []byte {
	b := k.Buf[:0]
	for _, s := range parts {
		b = append(b, s...)
	}
	return b
}

// Line writes a line begun with Text, and counts it by its class.
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

// Close flushes and closes all logs, and returns their list.
func (k *Sink) Close() (files []File, err error) {
	errs := []error{k.Err}
	for _, l := range k.Logs {
		errs = append(errs, l.Close())
		files = append(files, l.File)
	}
	return files, errors.Join(errs...)
}

// Close flushes and closes the file.
func (l *Log) Close() error {
	err := l.W.Flush()
	if l.F != nil {
		err = errors.Join(err, l.F.Close())
	}
	return err
}
