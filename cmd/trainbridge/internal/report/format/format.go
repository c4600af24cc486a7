// Package format is the common part of the formats of a report: the request, and the writer.
package format

import (
	"context"
	"io"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/records"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// Request is the input of a report.
type Request struct {
	Out     io.Writer // buffered; becomes the file of -o when the writer has finished without an error
	In      *offline.Input
	Options offline.Options // of the reading of In; without Progress
	Chinese bool
	Full    bool            // of text: all figures, not the first screen alone
	Width   int             // of text: columns
	Colours reading.Palette // of text
	Steady  float64         // from this share of the time of steps on, a part of all steps is a loss of its own, 0..1
	// Conclude makes what a report of a job begins with.
	Conclude func(job *digest.Job, read *offline.Reading) Conclusion

	Links     []Link // of html
	Table     string // of csv: the only one that is wanted; "": all, into Dir
	Dir       string // with an existing parent
	Temporary string // where temporary files may stand; "": where the system has them
}

// Nothing says that there is nothing to report.
func (r *Request) Nothing() string {
	bounded := !r.Options.Since.IsZero() || !r.Options.Until.IsZero()
	switch {
	case bounded && r.Chinese:
		return "这些日志在 --since 与 --until 之间没有内容。"
	case bounded:
		return "There is nothing in these logs between --since and --until."
	case r.Chinese:
		return "这些日志中没有内容。"
	}
	return "There is nothing in these logs."
}

// Link leads from a trace to a page about the trace.
type Link struct {
	Name string `json:"name"`
	URL  string `json:"url"` // with {trace} in the place of the trace id, 32 hex digits
}

// Writer writes a report.
type Writer interface {
	// Sink takes the data of the reading. It is called once, before the reading.
	Sink() offline.Sink
	// Finish writes the rest after the reading.
	Finish(ctx context.Context, read *offline.Reading) error
}

// Digest is a sink that sums up what is read in jobs.
func Digest(jobs *digest.Jobs) offline.Sink {
	traces, _ := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		jobs.Batch(td)
		return nil
	})
	metrics, _ := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		jobs.Metrics(md)
		return nil
	})
	return offline.Sink{Traces: traces, Metrics: metrics, GPUs: jobs.GPUs, NoParts: true, Windows: jobs.Windows}
}

// Records is a sink that fills tables.
func Records(tables *records.Tables) offline.Sink {
	traces, _ := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		tables.Traces(td)
		return nil
	})
	metrics, _ := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		tables.Metrics(md)
		return nil
	})
	return offline.Sink{Traces: traces, Metrics: metrics, NoParts: true}
}

// Concluded makes a job's account complete, as Jobs does, and has the conclusion for the table of runs.
func (r *Request) Concluded(read *offline.Reading) func(*digest.Job) records.Conclusion {
	return func(j *digest.Job) records.Conclusion {
		read.Book(j.Run, &j.Ledger)
		if r.Conclude == nil {
			return records.Conclusion{}
		}
		c := r.Conclude(j, read)
		return records.Conclusion{
			Severity: c.Severity, Sentence: c.Headline, EndKind: c.End.Kind, EndReason: c.End.Sentence, EndRanks: c.End.Ranks, EndHosts: c.End.Hosts,
		}
	}
}

// Jobs are the jobs that were read. Their accounts are made complete: the reading also knows the times of lines without records.
func Jobs(jobs *digest.Jobs, read *offline.Reading) []*digest.Job {
	rows := jobs.Rows()
	for _, j := range rows {
		read.Book(j.Run, &j.Ledger)
	}
	return rows
}
