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
	opt   *Options
	clock clock
	paced bool
	ctx   context.Context // of the run: whatever waits, waits until its end
	stamp stampCache
	buf   []byte
	files []*logFile
	err   error

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

func newSink(ctx context.Context, opt *Options, c clock) *sink {
	return &sink{opt: opt, clock: c, paced: opt.Rate > 0, ctx: ctx, stamp: stampCache{loc: opt.Timezone}}
}

// open creates the files; stdout is where "-" goes.
func (k *sink) open(s *sim, stdout io.Writer) error {
	truth := k.opt.truthPath()
	if k.opt.Out == "-" {
		k.share(s, &logFile{File: File{Path: "-"}, w: bufio.NewWriterSize(stdout, 1<<18)})
	} else if !k.opt.intoFiles() {
		f := &logFile{File: File{Path: k.opt.Out}}
		if err := f.create(truth, 1<<18); err != nil {
			return err
		}
		k.share(s, f)
	} else {
		if err := os.MkdirAll(k.opt.Out, 0o755); err != nil {
			return fmt.Errorf("%w: --out: %w", ErrOptions, err)
		}
		for _, w := range s.ws {
			name := "worker-" + w.id + "-01000000-" + strconv.Itoa(w.pid) + ".err" // Ray's name of a worker's stderr
			w.out = &logFile{File: File{Path: filepath.Join(k.opt.Out, name), PID: w.pid, IP: w.ip}}
			if err := w.out.create(truth, 1<<15); err != nil {
				return err
			}
			k.files = append(k.files, w.out)
		}
	}
	if truth == "" {
		return nil
	}
	f, err := os.Create(truth)
	if err != nil {
		return fmt.Errorf("%w: --truth: %w", ErrOptions, err)
	}
	k.truthFile, k.truthBuf = f, bufio.NewWriterSize(f, 1<<18)
	k.truthJSON = json.NewEncoder(k.truthBuf)
	return nil
}

func (k *sink) share(s *sim, f *logFile) {
	k.files = append(k.files, f)
	for _, w := range s.ws {
		w.out = f
	}
}

// create opens a log anew. What is not ours (no truth beside it) is not overwritten.
func (l *logFile) create(truth string, buffer int) error {
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

func (k *sink) prefix(b []byte, w *worker, level string, at int64) []byte {
	if k.opt.Prefix == PrefixNone {
		return b
	}
	b = append(b, w.rayPrefix...)
	b = append(b, level...)
	b = k.stamp.append(b, at)
	return append(b, ':')
}

// write ends a message of so many physical lines and returns the buffer for reuse.
func (k *sink) write(w *worker, b []byte, lines int) []byte {
	b = append(b, '\n')
	if k.err != nil {
		return b
	}
	l := w.out
	_, err := l.w.Write(b)
	if err == nil && k.paced {
		err = l.w.Flush()
	}
	l.Lines += int64(lines)
	l.since += lines
	if err == nil && k.opt.RotateEvery > 0 && l.since >= k.opt.RotateEvery {
		err = l.rotate()
	}
	k.err = err
	return b
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

func (k *sink) truth(f *Function) error {
	if k.truthJSON == nil {
		return nil
	}
	if err := k.truthJSON.Encode(f); err != nil {
		return err
	}
	if k.paced {
		return k.truthBuf.Flush()
	}
	return nil
}

// close flushes everything and, after a run without error, ends the truth with its summary.
func (k *sink) close(run *Run, failed error) error {
	errs := []error{failed}
	for _, l := range k.files {
		errs = append(errs, l.close())
		run.Files = append(run.Files, l.File)
	}
	if k.truthFile != nil {
		if failed == nil {
			errs = append(errs, k.truthJSON.Encode(map[string]*Run{"run": run}))
		}
		errs = append(errs, k.truthBuf.Flush(), k.truthFile.Close())
	}
	return errors.Join(errs...)
}
