package train

import (
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/logfile"
)

// Step is a step, or several that share a record, of a job that another generator simulates.
type Step struct {
	N         int64 // the last one
	End, Took int64 // when it ended, and how long one of the steps took on average: ns
	Tokens    int64
	TraceID   string // empty: it is not logged
	Parts     []Part
}

// Part is a part of a step, in ns.
type Part struct {
	Name string
	Took int64
}

// append prints what only such a job knows.
func (s *Step) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, `, "tokens": `...), s.Tokens, 10)
	for _, part := range s.Parts {
		b = append(append(append(b, `, "timing_s/`...), part.Name...), `": `...)
		b = strconv.AppendFloat(b, float64(part.Took)/1e9, 'f', 6, 64)
	}
	if s.TraceID != "" {
		b = append(append(append(b, `, "trace_id": "`...), s.TraceID...), '"')
	}
	return b
}

// Writer writes a training log of steps that another generator simulates; loss, learning rate and the like are made up as ever.
type Writer struct {
	log     *log
	printer printer
}

// NewWriter creates the log of opt.Format in opt.Out; live writes each record at once.
func NewWriter(ctx context.Context, opt Options, start int64, live bool) (*Writer, error) {
	l := &log{
		Sink: logfile.Sink{Ctx: ctx, Paced: live}, opt: &opt, sim: newSim(&opt, start), rng: rand.New(rand.NewPCG(opt.Seed, 0x7072_696e_7465_7273)),
		count: map[string]int64{},
	}
	w := &Writer{log: l, printer: l.printer()}
	return w, w.printer.open()
}

// Write writes the record of a step.
func (w *Writer) Write(step *Step) error {
	var s trainStep
	w.log.sim.next(&s)
	s.n, s.end, s.took, s.job = step.N, step.End, step.Took, step
	w.printer.step(&s)
	return w.log.Err
}

// Close ends the log and says which files there are.
func (w *Writer) Close() (files []logfile.File, err error) {
	if w.log.Err == nil {
		w.printer.close()
	}
	err = w.log.Close(nil, &files, w.log.Err)
	return files, err
}
