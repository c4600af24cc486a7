package tq

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/internal/outfile"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// tqSink is the sink of a simulation of workers.
type tqSink struct {
	writer.Sink
	opt   *Options
	stamp logfile.Stamps
	// renamed is how many lines of a log are in renamed files.
	renamed map[*logfile.Log]int64
}

func newTQSink(ctx context.Context, opt *Options, c logfile.Clock) *tqSink {
	return &tqSink{
		Sink:    writer.Sink{Sink: logfile.Sink{Clock: c, Paced: opt.Rate > 0, Ctx: ctx}},
		opt:     opt,
		stamp:   logfile.Stamps{Loc: opt.Timezone},
		renamed: map[*logfile.Log]int64{},
	}
}

// Write ends a message, and renames a log at RotateEvery lines.
func (k *tqSink) Write(l *logfile.Log, b []byte, lines int) []byte {
	b = k.Sink.Write(l, b, lines)
	if k.Err == nil && k.opt.RotateEvery > 0 && l.Lines-k.renamed[l] >= int64(k.opt.RotateEvery) {
		k.Err = k.rotate(l)
	}
	return b
}

// rotate renames the file to the next number and goes on in a new file.
func (k *tqSink) rotate(l *logfile.Log) error {
	if err := l.Close(); err != nil {
		return err
	}
	l.Rotated++
	k.renamed[l] = l.Lines
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

// processes are all processes with lines.
func (s *sim) processes() []*Worker {
	if s.unit == nil {
		return s.ws
	}
	return append(slices.Clip(s.ws), &s.unit.Worker)
}

// open creates the files; stdout is where "-" goes.
func (k *tqSink) open(s *sim, stdout io.Writer) error {
	truth := k.opt.truthPath()
	if k.opt.intoFiles() {
		if err := os.MkdirAll(k.opt.Out, 0o755); err != nil {
			return fmt.Errorf("%w: --out: %w", logfile.ErrOptions, err)
		}
		for _, w := range s.processes() {
			name := "worker-" + w.id + "-01000000-" + strconv.Itoa(w.Pid) + ".err" // Ray's name of a Worker's stderr
			w.out = &logfile.Log{File: logfile.File{Path: filepath.Join(k.opt.Out, name), PID: w.Pid, IP: w.ip}}
			if err := k.Create(w.out, truth, 1<<15); err != nil {
				return err
			}
		}
		return k.OpenTruth(truth)
	}
	out := k.opt.Out
	if k.opt.RotateEvery > 0 && outfile.IsStream(out) {
		return fmt.Errorf("%w: --out: %s is no regular file, and rotation renames the log: choose another --out, or no rotation", logfile.ErrOptions, out)
	}
	if to, err := filepath.EvalSymlinks(out); k.opt.RotateEvery > 0 && err == nil {
		out = to // rename the log, not a link to it
	}
	l, err := k.OpenLog(out, false, "", truth, stdout)
	if err != nil {
		return err
	}
	for _, w := range s.processes() {
		w.out = l
	}
	return k.OpenTruth(truth)
}

func (k *tqSink) prefix(b []byte, w *Worker, level string, at int64) []byte {
	if k.opt.Prefix == writer.PrefixNone {
		return b
	}
	b = append(b, w.rayPrefix...)
	b = append(b, level...)
	b = k.stamp.Append(b, at)
	return append(b, ':')
}
