// Package series writes what training logs state of their steps as event files of TensorBoard, in a directory for each run.
package series

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/internal/outfile"
	"github.com/trainbridge/trainbridge/internal/rows"
	"github.com/trainbridge/trainbridge/internal/tfevents"
	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// figure is a series of a run.
type figure struct {
	tag string
	of  func(*view.Step) float64
}

// figures are in the units of OpenTelemetry: seconds, 1/s, and shares of 1.
var figures = []figure{
	{"train/loss", func(s *view.Step) float64 { return s.Loss.Value }},
	{"train/learning_rate", func(s *view.Step) float64 { return s.LearningRate }},
	{"train/grad_norm", func(s *view.Step) float64 { return s.GradientNorm }},
	{"train/step_time_s", func(s *view.Step) float64 { return s.Duration }},
	{"train/tokens_per_second", func(s *view.Step) float64 { return s.TokenThroughput }},
	{"train/tokens_per_second_per_gpu", func(s *view.Step) float64 { return s.DeviceTokenThroughput }},
	{"train/mfu", func(s *view.Step) float64 {
		if math.IsNaN(s.MFU) {
			return s.MFUReported
		}
		return s.MFU
	}},
}

// writer collects the steps as rows, in the order of run and time, and writes an event file for each run.
type writer struct {
	format.Request
	steps *rows.Sorted
}

// Open is format.kind's open.
func Open(req format.Request) format.Writer { return &writer{req, rows.New(req.Temporary)} }

// Sink implements format.Writer.
func (w *writer) Sink() offline.Sink {
	traces, _ := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		var res view.Resource
		var step view.Step
		for _, rs := range td.ResourceSpans().All() {
			res.Read(rs.Resource().Attributes())
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if view.KindOf(s) == view.KindStep {
						step.Read(s, &res)
						w.add(s, res.Run, &step)
					}
				}
			}
		}
		return nil
	})
	return offline.Sink{Traces: traces, NoParts: true, NoJoins: true}
}

// add keeps a step as the text of a row: the run and a 0, then 8 bytes each: the end in ns, the number of the step, the values of figures. Steps without a
// number have no place in TensorBoard and are left out.
func (w *writer) add(s ptrace.Span, run string, step *view.Step) {
	n := step.Step().Or(-1)
	if n < 0 {
		return
	}
	text := append([]byte(run), 0)
	text = binary.BigEndian.AppendUint64(text, uint64(s.EndTimestamp()))
	text = binary.BigEndian.AppendUint64(text, uint64(n))
	for _, f := range figures {
		text = binary.BigEndian.AppendUint64(text, math.Float64bits(f.of(step)))
	}
	w.steps.Add(rows.Key(nil, run, s.EndTimestamp(), s.TraceID(), s.SpanID()), text)
}

// folder is the name of a run's folder: the run's id, of which nothing leads out of the parent's folder.
func folder(run string) string {
	name := url.PathEscape(cmp.Or(run, "run"))
	if strings.Trim(name, ".") == "" { // ".." is the folder above, and the first character hides a folder
		name = strings.ReplaceAll(name, ".", "%2E")
	}
	return name
}

// Finish implements format.Writer. The rows come run by run: at the first of another run the file is put in place, and the next begun.
func (w *writer) Finish(context.Context, *offline.Reading) error {
	if err := makeDir(w.Dir); err != nil {
		return err
	}
	var run string
	var to *file // of the run; nil: none is begun
	defer func() { to.close() }()
	err := w.steps.Each(func(text []byte) error {
		i := bytes.IndexByte(text, 0) // the end of the run's id; see add
		// at: the end of the step, s; b: the number of the step, then the values.
		at, b := float64(binary.BigEndian.Uint64(text[i+1:]))/1e9, text[i+9:]
		if to == nil || run != string(text[:i]) {
			if err := to.commit(); err != nil {
				return err
			}
			run = string(text[:i])
			var err error
			if to, err = begin(filepath.Join(w.Dir, folder(run)), at); err != nil {
				return err
			}
		}
		step := int64(binary.BigEndian.Uint64(b))
		for k, f := range figures {
			v := math.Float64frombits(binary.BigEndian.Uint64(b[8*(k+1):]))
			if math.IsNaN(v) {
				continue
			}
			if err := to.events.Scalar(tfevents.Scalar{WallTime: at, Step: step, Tag: f.tag, Value: v}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return to.commit()
}

// Close gives the temporary file back.
func (w *writer) Close() error { return w.steps.Close() }

// file is an event file in the making. Its methods commit and close allow for nil.
type file struct {
	*outfile.File
	buffer bytes.Buffer
	events *tfevents.Writer
}

// begin begins the file of a run in a directory of its own, named as TensorBoard wants by the time of the first step, s.
func begin(dir string, at float64) (*file, error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	out, err := outfile.Create(filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%010d.trainbridge", int64(at))))
	if err != nil {
		return nil, fmt.Errorf("report: -o %w", err)
	}
	f := &file{File: out}
	f.events, err = tfevents.NewWriter(&f.buffer, at)
	return f, err
}

// commit writes the file and puts it in place.
func (f *file) commit() error {
	if f == nil {
		return nil
	}
	err := outfile.Fill(f.File, func(w io.Writer) error {
		_, err := f.buffer.WriteTo(w)
		return err
	})
	if err == nil {
		err = f.Commit()
	}
	if err != nil {
		return fmt.Errorf("report: -o %w", err)
	}
	return nil
}

// close drops what commit has not put in place.
func (f *file) close() {
	if f != nil {
		_ = f.Close()
	}
}

// makeDir makes a directory unless there is one.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // less the umask, as any new directory
		return fmt.Errorf("report: -o %s: %w", dir, outfile.Reason(err))
	}
	return nil
}
