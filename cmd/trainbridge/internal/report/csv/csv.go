// Package csv is the format csv of reports: a file of comma-separated values (RFC 4180) for each table of package records, for pandas and spreadsheets.
package csv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/internal/outfile"
	"github.com/trainbridge/trainbridge/internal/records"
)

// writer is the tables as a format of reports.
type writer struct {
	*records.Tables
	format.Request
}

// Open makes the writer of all tables, or of the wanted table, which must exist.
func Open(req format.Request) format.Writer {
	var only []string
	if req.Table != "" {
		only = []string{req.Table}
	}
	return &writer{records.New(req.Temporary, req.In.Name, only...), req}
}

// Sink implements format.Writer.
func (w *writer) Sink() offline.Sink { return format.Records(w.Tables) }

// Finish implements format.Writer.
func (w *writer) Finish(_ context.Context, read *offline.Reading) error {
	w.Jobs(w.Concluded(read))
	if w.Table != "" {
		return w.Write(w.Table, w.Out)
	}
	return writeDir(w.Tables, w.Dir)
}

// writeDir writes each table into a file of a directory, which is made if missing. The files are put in place after all are written.
func writeDir(t *records.Tables, dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // less the umask, as any new directory
		return fmt.Errorf("report: -o %s: %w", dir, outfile.Reason(err))
	}
	var files []*outfile.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for _, name := range records.Names() {
		f, err := outfile.Create(filepath.Join(dir, name+".csv"))
		if err != nil {
			return fmt.Errorf("report: -o %w", err)
		}
		files = append(files, f)
		if err := outfile.Fill(f, func(w io.Writer) error { return t.Write(name, w) }); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := f.Commit(); err != nil {
			return fmt.Errorf("report: -o %w", err)
		}
	}
	return nil
}
