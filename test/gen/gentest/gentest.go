// Package gentest is common to the tests of generators.
package gentest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// ErrTruthUnfinished is the error about a truth file without its closing line.
var ErrTruthUnfinished = errors.New("the truth has no closing run line: the generator still runs or was killed")

// Truth is the content of a truth file: the generator's truth of each record, and of the whole run.
type Truth[Run, Record any] struct {
	Run     Run
	Records []Record
}

// ReadTruth reads a truth file: JSON lines, a record each, then {"run": …}.
func ReadTruth[Run, Record any](path string) (*Truth[Run, Record], error) {
	truth := &Truth[Run, Record]{}
	f, err := os.Open(path)
	if err != nil {
		return truth, err
	}
	defer f.Close()
	dec := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return truth, fmt.Errorf("%s: %w", path, ErrTruthUnfinished)
		}
		end := struct {
			Run *Run `json:"run"`
		}{}
		var rec Record
		err = errors.Join(err, json.Unmarshal(raw, &end))
		if err == nil && end.Run == nil {
			err = json.Unmarshal(raw, &rec)
		}
		switch {
		case err != nil:
			return truth, fmt.Errorf("%s: %w", path, err)
		case end.Run != nil:
			truth.Run = *end.Run
			return truth, nil
		}
		truth.Records = append(truth.Records, rec)
	}
}

// Clock advances by sleeping only.
type Clock struct {
	At    time.Time
	Stop  context.CancelFunc
	Until time.Time // the run is stopped at this time
}

// Clock is the clock of a simulation.
func (c *Clock) Clock() logfile.Clock {
	return logfile.Clock{
		Now: func() time.Time { return c.At },
		Sleep: func(_ context.Context, d time.Duration) {
			c.At = c.At.Add(d)
			if c.Stop != nil && !c.At.Before(c.Until) {
				c.Stop()
			}
		},
	}
}

// Writer is an io.Writer.
type Writer func([]byte) (int, error)

// Write is as in io.Writer.
func (f Writer) Write(p []byte) (int, error) { return f(p) }

// Text reads a file.
func Text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// Number reads a float.
func Number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return v
}

// Samples are lines of the real programs; the folder is not part of this repository.
func Samples(t *testing.T, pattern string) (lines []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../../../shared/logs", pattern))
	require.NoError(t, err)
	for _, f := range files {
		lines = append(lines, strings.Split(Text(t, f), "\n")...)
	}
	return lines
}
