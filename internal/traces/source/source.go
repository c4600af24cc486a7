// Package source reads traces from a store: a [Jaeger], a [Tempo], files of the collector's file exporter ([Files]), [Memory]. Code that reads traces uses a
// [Source], whatever the store.
package source

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
)

// The kinds of errors; their texts say where and why. The remedy depends on who asks.
var (
	ErrAddress     = errors.New("no URL")
	ErrUnreachable = errors.New("cannot reach")
	ErrNotAPI      = errors.New("this is not")
	ErrTooLarge    = errors.New("the answer is too large")
	ErrNoTrace     = errors.New("no traces")
	ErrNoID        = errors.New("no trace id")
)

// Source is where traces are kept.
type Source interface {
	// String is the source's name in a sentence: "Jaeger at http://127.0.0.1:16686".
	String() string
	// Services are the names of the services with spans, sorted.
	Services(ctx context.Context) ([]string, error)
	// Trace is a whole trace, or ErrNoTrace.
	Trace(ctx context.Context, id pcommon.TraceID) (*tree.Trace, error)
	// Find returns the newest traces of a query. None is no error.
	Find(ctx context.Context, q Query) (*Found, error)
}

// Query selects traces.
type Query struct {
	Services []string // only traces of these; empty: any service
	Run      string   // with a span of the run (ml.run.id); "": any
	Limit    int      // number of newest traces, not counting traces about a run as a whole; 0: all
	Now      time.Time
	Counting time.Duration // time limit for counting the traces beyond Limit
}

// services returns the query's services, else all services of a source.
func (q *Query) services(ctx context.Context, s Source) ([]string, error) {
	if len(q.Services) > 0 {
		return q.Services, nil
	}
	return s.Services(ctx)
}

// Found is a source's answer to a Query.
type Found struct {
	Traces []*tree.Trace // by start
	Share  Share
	Older  error // why traces older than the last days could not be read
}

// Share is the number of traces read, of all traces. Traces about a run as a whole do not count.
type Share struct {
	Read  int  `json:"read"`
	There int  `json:"there"`
	More  bool `json:"more"` // further traces may exist, not counted
}

// newest sorts traces by start and keeps the newest up to a limit, 0: all. Traces about a run as a whole do not count.
func newest(traces []*tree.Trace, limit int) []*tree.Trace {
	tree.SortByStart(traces)
	n := 0
	for i, t := range slices.Backward(traces) {
		if !t.IsRun() {
			n++
		}
		if n > limit && limit > 0 {
			return traces[i+1:]
		}
	}
	return traces
}

// count counts the traces, but for traces about a run as a whole.
func count(traces []*tree.Trace) (n int) {
	for _, t := range traces {
		if !t.IsRun() {
			n++
		}
	}
	return n
}

// ParseID reads a trace id: 32 hex digits, with or without leading zeros, or a UUID as in a log.
func ParseID(text string) (id pcommon.TraceID, err error) {
	digits := strings.ReplaceAll(text, "-", "")
	if len(digits) < 2*len(id) {
		digits = strings.Repeat("0", 2*len(id)-len(digits)) + digits
	}
	if len(digits) == 2*len(id) {
		_, err = hex.Decode(id[:], []byte(digits))
	}
	if len(digits) > 2*len(id) || err != nil || id.IsEmpty() {
		return pcommon.TraceID{}, fmt.Errorf("%w: %q", ErrNoID, text)
	}
	return id, nil
}

// noTrace returns the error for a trace that a source does not have.
func noTrace(s Source, id pcommon.TraceID) error {
	return fmt.Errorf("%w with id %s in %s", ErrNoTrace, id, s)
}
