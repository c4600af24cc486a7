package gen

import (
	"fmt"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// tqLog is the driver's log, with the TQ-TRACE lines of all workers: verl/utils/transferqueue_utils.py @c55ddc26, behind Ray's prefix.
type tqLog struct {
	log     *logfile.Log
	stamp   logfile.Stamps
	seconds bool // stamps have whole seconds
}

// call prepares the eight lines of a function fn in a worker: begin, end and duration of each stage and of the whole, by the clock of the worker's host. The
// lines are written later, among those of other workers, in the order of true times.
func (j *job) call(t *doneStep, fn, rank int) {
	c, h := &t.functions[fn][rank], j.host(rank)
	id := "N/A"
	if j.opt.ids() && !j.opt.clock(ClockNA) {
		id = t.traceID
	}
	took := func(from, to int64) float64 { // s by the host's clock, to µs
		return float64(logfile.Micros(h.clock.Local(to)-h.clock.Local(from))) / 1e6
	}
	share := func(from, to int64) float64 { // % of the whole call
		return float64(h.clock.Local(to)-h.clock.Local(from)) / float64(h.clock.Local(c.end)-h.clock.Local(c.start)) * 100
	}
	line := func(at int64, format string, args ...any) {
		j.later(at, func() error {
			return j.trace(at, rank, fmt.Sprintf("trace_id=%s | func=%s | ", id, names[fn])+fmt.Sprintf(format, args...))
		})
	}
	line(c.start, "pid=%d | stage=FUNCTION_START", j.pids[rank])
	line(c.start, "stage=GET_START | batch_size=%d", t.samples)
	line(c.got, "stage=GET_END | duration=%.6fs", took(c.start, c.got))
	line(c.got, "stage=COMPUTE_START")
	line(c.computed, "stage=COMPUTE_END | duration=%.6fs", took(c.got, c.computed))
	line(c.computed, "stage=PUT_START")
	line(c.end, "stage=PUT_END | duration=%.6fs", took(c.computed, c.end))
	line(c.end, "stage=FUNCTION_END | total_duration=%.6fs | get_ratio=%.2f%% | compute_ratio=%.2f%% | put_ratio=%.2f%%",
		took(c.start, c.end), share(c.start, c.got), share(c.got, c.computed), share(c.computed, c.end))
}

// trace writes a line of a worker at a true time: "(WorkerDict pid=4711, ip=10.10.1.11) INFO:STAMP:[TQ-TRACE] TEXT | timestamp=PERF_COUNTER".
func (j *job) trace(at int64, rank int, text string) error {
	h := j.host(rank)
	local := h.clock.Local(at)
	b := fmt.Appendf(j.logs.Text(), "(WorkerDict pid=%d, ip=%s) INFO:", j.pids[rank], h.name)
	if j.tq.seconds {
		b = j.tq.stamp.AppendSeconds(b, local)
	} else {
		b = j.tq.stamp.Append(b, local)
	}
	b = append(append(append(b, ":[TQ-TRACE] "...), text...), " | timestamp="...)
	j.logs.Line(j.tq.log, logfile.AppendSeconds(b, logfile.Micros(local-h.boot)), logfile.Record)
	return j.logs.Err
}

// openTQ creates the driver's log, tq/driver.log.
func (j *job) openTQ() (err error) {
	j.tq = tqLog{stamp: logfile.Stamps{Loc: time.UTC}, seconds: j.opt.clock(ClockSeconds)}
	j.tq.log, err = j.create("tq", "driver.log", logfile.File{}, 1<<18)
	return err
}
