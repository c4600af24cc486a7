package document

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/internal/rows"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// writer makes a document. The verdicts, up to a million, are not kept in memory.
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

// scratch is memory of events, for reuse.
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

// events keeps the verdicts of spans, which are events of the spans, as rows.
func (w *writer) events(td ptrace.Traces) error {
	r := w.scratch.Get().(*scratch)
	defer w.scratch.Put(r)
	for _, rs := range td.ResourceSpans().All() {
		r.res.Read(rs.Resource().Attributes())
		at := rows.Place{}
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
	r.res = view.Resource{} // its texts are parts of the message
	return nil
}

// verdict keeps a verdict about a span as a row: its JSON, in the order of run, time and span.
func (w *writer) verdict(r *scratch, s ptrace.Span, at *rows.Place, v *view.Verdict) error {
	trace, span := s.TraceID(), s.SpanID()
	out := Verdict{
		Evidence: Evidence{What: s.Name(), TraceID: trace.String(), SpanID: span.String(), Time: stamp(int64(s.StartTimestamp()))},
		Run:      r.res.Run, Verdict: v.Name, Cause: v.Cause, Stage: v.Stage, Severity: v.Severity, Of: view.KindOf(s).String(), Reason: v.Reason,
		Value: number(v.Value), Threshold: number(v.Threshold),
	}
	if at.File != "" {
		out.File, out.Offset = w.In.Name(at.File), &at.Offset
	}
	text, err := json.Marshal(&out)
	if err != nil {
		return err
	}
	r.key = rows.Key(r.key[:0], r.res.Run, s.StartTimestamp(), trace, span)
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
	for _, j := range format.Jobs(w.jobs, read) {
		doc.Jobs = append(doc.Jobs, r.job(j, w.Conclude(j, read)))
	}
	return w.write(&doc)
}

// write writes the document, whose last key is the verdicts, row by row: they need not be in memory.
func (w *writer) write(doc *Document) error {
	text, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return err
	}
	// The document without its last brace.
	if _, err := fmt.Fprintf(w.Out, "%s,\n \"verdicts\": [", text[:len(text)-len("\n}")]); err != nil {
		return err
	}
	between := "\n  "
	err = w.verdicts.Each(func(text []byte) error {
		_, err := fmt.Fprintf(w.Out, "%s%s", between, text)
		between = ",\n  "
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w.Out, "\n ]\n}\n")
	return err
}

// Close gives temporary files back.
func (w *writer) Close() error { return w.verdicts.Close() }
