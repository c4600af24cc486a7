package tq

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/logfile"
)

// tqSink is the sink of a simulation of workers.
type tqSink struct {
	logfile.Sink
	opt   *Options
	stamp logfile.Stamps
}

func newTQSink(ctx context.Context, opt *Options, c logfile.Clock) *tqSink {
	return &tqSink{
		Sink:  logfile.Sink{Clock: c, Paced: opt.Rate > 0, Rotate: opt.RotateEvery, Ctx: ctx},
		opt:   opt,
		stamp: logfile.Stamps{Loc: opt.Timezone},
	}
}

// processes are all that log.
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
	l, err := k.OpenLog(k.opt.Out, false, "", truth, stdout)
	if err != nil {
		return err
	}
	for _, w := range s.processes() {
		w.out = l
	}
	return k.OpenTruth(truth)
}

func (k *tqSink) prefix(b []byte, w *Worker, level string, at int64) []byte {
	if k.opt.Prefix == logfile.PrefixNone {
		return b
	}
	b = append(b, w.rayPrefix...)
	b = append(b, level...)
	b = k.stamp.Append(b, at)
	return append(b, ':')
}
