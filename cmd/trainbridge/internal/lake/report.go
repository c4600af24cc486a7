// Package lake is a lake (internal/lake) as a format of reports, and the reader of its runs.
package lake

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/internal/lake"
	"github.com/trainbridge/trainbridge/internal/records"
)

// errRuns is the error for more runs than a digest tells apart.
var errRuns = errors.New("there are more than 256 runs in these logs: report them in several commands, some directories at a time")

// writer is a lake as a format of reports.
type writer struct {
	*records.Tables
	format.Request
}

// Open makes the writer of the lake req.Dir.
func Open(req format.Request) format.Writer {
	return &writer{lake.New(req.Temporary, req.In.Name), req}
}

// Sink implements format.Writer.
func (w *writer) Sink() offline.Sink { return format.Records(w.Tables) }

// Finish implements format.Writer.
func (w *writer) Finish(_ context.Context, read *offline.Reading) error {
	if !w.Jobs(w.Concluded(read)) {
		return fmt.Errorf("report: -o %s: %w", w.Dir, errRuns)
	}
	if err := lake.Write(w.Dir, w.Tables); err != nil {
		return fmt.Errorf("report: -o %w", err)
	}
	return nil
}
