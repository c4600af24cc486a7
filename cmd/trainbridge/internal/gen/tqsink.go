package gen

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// tqSink is the sink of a simulation of workers.
type tqSink struct {
	sink
	opt   *Options
	stamp stampCache
}

func newTQSink(ctx context.Context, opt *Options, c clock) *tqSink {
	return &tqSink{
		sink:  sink{clock: c, paced: opt.Rate > 0, rotate: opt.RotateEvery, ctx: ctx},
		opt:   opt,
		stamp: stampCache{loc: opt.Timezone},
	}
}

// open creates the files; stdout is where "-" goes.
func (k *tqSink) open(s *sim, stdout io.Writer) error {
	truth := k.opt.truthPath()
	if k.opt.intoFiles() {
		if err := os.MkdirAll(k.opt.Out, 0o755); err != nil {
			return fmt.Errorf("%w: --out: %w", ErrOptions, err)
		}
		for _, w := range s.ws {
			name := "worker-" + w.id + "-01000000-" + strconv.Itoa(w.pid) + ".err" // Ray's name of a worker's stderr
			w.out = &logFile{File: File{Path: filepath.Join(k.opt.Out, name), PID: w.pid, IP: w.ip}}
			if err := k.create(w.out, truth, 1<<15); err != nil {
				return err
			}
		}
		return k.openTruth(truth)
	}
	l, err := k.openLog(k.opt.Out, false, "", truth, stdout)
	if err != nil {
		return err
	}
	for _, w := range s.ws {
		w.out = l
	}
	return k.openTruth(truth)
}

func (k *tqSink) prefix(b []byte, w *worker, level string, at int64) []byte {
	if k.opt.Prefix == PrefixNone {
		return b
	}
	b = append(b, w.rayPrefix...)
	b = append(b, level...)
	b = k.stamp.append(b, at)
	return append(b, ':')
}
