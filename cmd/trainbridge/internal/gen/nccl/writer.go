package nccl

import (
	"context"
	"os"
	"slices"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/logfile"
)

// JobHost is a host of a job that another generator simulates: its name in the logs, and its clock.
type JobHost struct {
	Name  string
	Clock logfile.HostClock
}

// Job is where the ranks of such a job run: the ranks in order, as many on each host, and the process of each.
type Job struct {
	Hosts []JobHost
	PIDs  []int
}

// Writer writes logs of collectives that another generator simulates.
type Writer struct {
	log     *log
	printer ncclPrinter
	index   int
	counts  map[*operation]uint64
}

// NewWriter creates the logs in opt.Out, of opt.Format, of a job that begins at start. Of the options, those about the form of logs matter.
func NewWriter(ctx context.Context, opt Options, start int64, job *Job) (*Writer, error) {
	l := newNCCLLog(ctx, &opt, start, logfile.RealClock)
	for i, h := range job.Hosts {
		l.hosts[i] = ncclHost{name: h.Name, ip: h.Name, HostClock: h.Clock}
	}
	l.pids = job.PIDs
	if err := os.MkdirAll(opt.Out, 0o755); err != nil {
		return nil, err
	}
	w := &Writer{log: l, printer: l.printer(), counts: map[*operation]uint64{}}
	return w, w.printer.open()
}

// Event is a collective of all ranks at true times.
type Event struct {
	Operation     string // as NCCL Inspector has it
	Size          int64  // By, S of nccl-tests
	Begun         int64  // when the last rank came
	Arrive, Leave []int64
	Flaky         int    // rank whose sends are retried; -1: none
	TraceID       string // empty: it is not logged
}

// Write writes the records of all ranks.
func (w *Writer) Write(e *Event) error {
	op := &ncclOperations[slices.IndexFunc(ncclOperations, func(op operation) bool { return op.name == e.Operation })]
	kind := &ncclKind{operation: op, index: w.index, sequence: w.counts[op], message: e.Size, data: e.Size}
	if op.shared {
		kind.message /= int64(len(e.Arrive))
	}
	w.index++
	w.counts[op]++
	c := &ncclCollective{ncclKind: kind, flaky: e.Flaky, traceID: e.TraceID, begun: e.Begun, transfer: e.Leave[0] - e.Begun, arrive: e.Arrive, leave: e.Leave}
	w.log.begin(c)
	w.printer.collective(c)
	w.log.end(c)
	return w.log.Err
}

// Close ends the logs and says which files there are.
func (w *Writer) Close() (files []logfile.File, err error) {
	if w.log.Err == nil {
		w.printer.close()
	}
	err = w.log.Close(nil, &files, w.log.Err)
	return files, err
}
