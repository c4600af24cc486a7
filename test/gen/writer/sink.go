// Package writer extends package logfile for the simulators: standard output, the truth beside the logs, common options, and more formats of printing.
package writer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/internal/outfile"
)

// Sink writes the lines and the truth.
type Sink struct {
	logfile.Sink
	truthFile *outfile.File
	truthBuf  *bufio.Writer
	truthJSON *json.Encoder
}

// OpenLog opens a log of a simulation: out itself, or the file name in it if out is a directory.
func (k *Sink) OpenLog(out string, dir bool, name, truth string, stdout io.Writer) (*logfile.Log, error) {
	if out == "-" {
		l := &logfile.Log{File: logfile.File{Path: "-"}, W: bufio.NewWriterSize(stdout, 1<<18)}
		k.Logs = append(k.Logs, l)
		return l, nil
	}
	if dir {
		if err := os.MkdirAll(out, 0o755); err != nil {
			return nil, fmt.Errorf("%w: --out: %w", logfile.ErrOptions, err)
		}
		out = filepath.Join(out, name)
	}
	l := &logfile.Log{File: logfile.File{Path: out}}
	return l, k.Create(l, truth, 1<<18)
}

// OpenTruth creates the truth; an empty path means no truth.
func (k *Sink) OpenTruth(path string) error {
	if path == "" {
		return nil
	}
	begin := outfile.Create
	if k.Paced {
		begin = outfile.Grow
	}
	f, err := begin(path)
	if err != nil {
		return fmt.Errorf("%w: --truth: %w", logfile.ErrOptions, err)
	}
	k.truthFile, k.truthBuf = f, bufio.NewWriterSize(f, 1<<18)
	k.truthJSON = json.NewEncoder(k.truthBuf)
	return nil
}

// Counts sums up the lines of all files.
func (k *Sink) Counts() (lines int64, c logfile.LineCounts) {
	for _, f := range k.Logs {
		lines += f.Lines
		c.Records += f.Records
		c.Sides += f.Sides
		c.Ignored += f.Ignored
		c.Rejected += f.Rejected
	}
	return lines, c
}

// Truth writes a record of the truth, if any.
func (k *Sink) Truth(record any) error {
	if k.truthJSON == nil {
		return nil
	}
	if err := k.truthJSON.Encode(record); err != nil {
		return err
	}
	if k.Paced {
		return k.truthBuf.Flush()
	}
	return nil
}

// Close flushes everything and, after a run without error, ends the truth with its summary, including the files.
func (k *Sink) Close(run any, files *[]logfile.File, failed error) error {
	errs := []error{failed}
	for _, l := range k.Logs {
		errs = append(errs, l.Close())
		*files = append(*files, l.File)
	}
	if k.truthFile == nil {
		return errors.Join(errs...)
	}
	defer k.truthFile.Close()
	if failed == nil {
		errs = append(errs, k.truthJSON.Encode(map[string]any{"run": run}))
	}
	if err := errors.Join(append(errs, k.truthBuf.Flush())...); err != nil {
		return err
	}
	return k.truthFile.Commit()
}
