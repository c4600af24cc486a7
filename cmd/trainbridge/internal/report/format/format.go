// Package format is what the formats of a report have in common: what they are asked, and what they do.
package format

import (
	"context"
	"io"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// Request is what a report is made of.
type Request struct {
	Out     io.Writer // buffered; it becomes the file of -o when the writer has finished without an error
	In      *offline.Input
	Options offline.Options // with which In is read; without Progress
	Chinese bool
	Full    bool            // of text: all figures, not the first screen alone
	Width   int             // of text: columns
	Colours reading.Palette // of text
	Steady  float64         // from which share of the time of steps on a part that all of them have is a loss of its own, 0..1
	// Conclude says what the text report says first.
	Conclude func(job *digest.Job, read *offline.Reading) Conclusion

	Links     []Link // of html
	Table     string // of csv: the only one that is wanted; "": all, into Dir
	Dir       string // whose parent is there
	Temporary string // where temporary files may stand; "": where the system has them
}

// Link leads from a trace to where it can be seen.
type Link struct {
	Name string `json:"name"`
	URL  string `json:"url"` // with {trace} in the place of the trace id, 32 hex digits
}

// Writer writes one report.
type Writer interface {
	// Sink takes what is read. It is called once, before the reading.
	Sink() offline.Sink
	// Finish writes what is still to be written after the reading.
	Finish(ctx context.Context, read *offline.Reading) error
}

// Digest sums up what is read.
func Digest(jobs *digest.Jobs) offline.Sink {
	traces, _ := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		jobs.Batch(td)
		return nil
	})
	metrics, _ := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		jobs.Metrics(md)
		return nil
	})
	return offline.Sink{Traces: traces, Metrics: metrics, GPUs: jobs.GPUs, NoParts: true}
}

// Jobs are the jobs that were read, each with the clocks of its lines that are no records.
func Jobs(jobs *digest.Jobs, read *offline.Reading) []*digest.Job {
	rows := jobs.Rows()
	for _, j := range rows {
		read.Book(j.Run, &j.Ledger)
	}
	return rows
}
