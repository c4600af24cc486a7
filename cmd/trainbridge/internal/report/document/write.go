package document

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/rows"
	"github.com/trainbridge/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// writer makes one document. The verdicts, of which there may be a million, are not kept in memory.
type writer struct {
	format.Request
	jobs     *digest.Jobs
	verdicts *rows.Sorted
	scratch  sync.Pool
}

// Open makes a writer.
func Open(req format.Request) format.Writer {
	w := &writer{Request: req, jobs: digest.New(), verdicts: rows.New(req.Temporary)}
	w.scratch.New = func() any { return new(scratch) }
	return w
}

type scratch struct {
	res view.Resource
	key []byte
}

// Sink implements format.Writer.
func (w *writer) Sink() offline.Sink {
	traces, _ := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		w.jobs.Batch(td)
		return w.events(td)
	})
	return offline.Sink{Traces: traces}
}

// events keeps the verdicts of spans.
func (w *writer) events(td ptrace.Traces) error {
	r := w.scratch.Get().(*scratch)
	defer w.scratch.Put(r)
	for _, rs := range td.ResourceSpans().All() {
		r.res.Read(rs.Resource().Attributes())
		at := format.Place{}
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				at.Next(s)
				if s.Events().Len() == 0 {
					continue
				}
				for v := range view.Verdicts(s) {
					if err := w.verdict(r, s, &at, &v); err != nil {
						return err
					}
				}
			}
		}
	}
	r.res = view.Resource{}
	return nil
}

func (w *writer) verdict(r *scratch, s ptrace.Span, at *format.Place, v *view.Verdict) error {
	trace, span := s.TraceID(), s.SpanID()
	out := Verdict{
		Evidence: Evidence{What: s.Name(), TraceID: trace.String(), SpanID: span.String(), Time: stamp(int64(s.StartTimestamp()))},
		Run:      r.res.Run, Verdict: v.Name, Severity: spans.AttrText(s.Attributes(), spans.AttrVerdictSeverity), Of: view.KindOf(s).String(), Reason: v.Reason,
		Value: number(v.Value), Threshold: number(v.Threshold),
	}
	if at.File != "" {
		out.File, out.Offset = w.In.Name(at.File), &at.Offset
	}
	text, err := json.Marshal(&out)
	if err != nil {
		return err
	}
	r.key = format.Key(r.key[:0], r.res.Run, s.StartTimestamp(), trace, span)
	w.verdicts.Add(r.key, text)
	return nil
}

// Finish implements format.Writer.
func (w *writer) Finish(_ context.Context, read *offline.Reading) error {
	r := reader{read}
	doc := Document{Format: "trainbridge.report", Version: Version, Jobs: []Job{}, Files: r.files(), Missing: []string{}}
	for _, err := range w.In.Missing {
		doc.Missing = append(doc.Missing, err.Error())
	}
	for _, j := range w.jobs.Rows() {
		doc.Jobs = append(doc.Jobs, r.job(j, w.Conclude(j, read)))
	}
	out := bufio.NewWriterSize(w.Out, 64<<10)
	if err := w.write(out, &doc); err != nil {
		return err
	}
	return out.Flush()
}

// write writes the document, and its verdicts into it.
func (w *writer) write(out *bufio.Writer, doc *Document) error {
	text, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return err
	}
	_, err = out.Write(text[:len(text)-len("\n}")])
	_, more := out.WriteString(",\n \"verdicts\": [")
	between := "\n  "
	err = errors.Join(err, more, w.verdicts.Each(func(text []byte) error {
		_, err := out.WriteString(between)
		between = ",\n  "
		_, more := out.Write(text)
		return errors.Join(err, more)
	}))
	_, more = io.WriteString(out, "\n ]\n}\n")
	return errors.Join(err, more)
}

// Close gives temporary files back.
func (w *writer) Close() error { return w.verdicts.Close() }
