package check

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/internal/human"
)

// rules find settings of the job or of the collector that are probably missing, and add a finding for each. A rule that would have to guess finds nothing.
type rules struct {
	*account
	got   *offline.Reading
	watch *watch // the facts in lines and spans
}

// of are the files of some types of receivers, with what their lines showed: all[i] are the signs of files[i].
func (r *rules) of(receivers ...string) (files []*file, all []*signs) {
	for _, f := range r.files {
		if s := r.watch.files[f.Path]; s != nil && slices.Contains(receivers, f.kind()) {
			files, all = append(files, f), append(all, s)
		}
	}
	return files, all
}

// gather counts the lines of one kind: pick returns the sight of the kind among the signs of a file. n is the number of lines in all files; seen has the first
// line of each file with such lines, of mostPlaces files at most.
func (r *rules) gather(files []*file, all []*signs, pick func(*signs) *sight) (n int64, seen []place) {
	for i, s := range all {
		what := pick(s)
		if what.n == 0 {
			continue
		}
		n += what.n
		if len(seen) < mostPlaces {
			seen = append(seen, place{File: files[i].Name, Line: r.got.LineAt(files[i].Path, what.at)})
		}
	}
	return n, seen
}

// traceOn is the advice that has verl write the lines that tq_trace reads.
const traceOn = "Start the job with TQ_TRACE_ENABLED=1 and VERL_LOGGING_LEVEL=INFO, and a verl that prints [TQ-TRACE] lines."

// transferQueue looks at logs of verl with TransferQueue: the tracing of calls is off, in whole or for sizes (tq_trace_off, tq_detail_off), Ray has dropped
// lines (ray_dedup), or no call has a trace id (tq_no_ids).
func (r *rules) transferQueue() {
	files, all := r.of("tq_trace", "train_log") // verl's console, which may name TransferQueue, is train_log's
	traces, _ := r.gather(files, all, func(s *signs) *sight { return &s.trace })
	details, _ := r.gather(files, all, func(s *signs) *sight { return &s.detail })
	// Only of tq_trace's files: in the files of train_log each step is a record without [TQ-.
	ofTQ, signsOfTQ := r.of("tq_trace")
	totals, calls := r.gather(ofTQ, signsOfTQ, func(s *signs) *sight { return &s.total })
	named, where := r.gather(files, all, func(s *signs) *sight { return &s.queue })
	switch { // the best that the logs have decides
	case traces+details > 0:
	case totals > 0:
		r.find(finding{
			Name: "tq_trace_off", What: count(totals, "line has", "lines have") + " how long a call of TransferQueue took, and none has its parts", Seen: calls,
			Why: "The times of get, compute and put are not known.", Fix: traceOn,
		})
	case named > 0:
		r.find(finding{
			Name: "tq_trace_off", Off: true, What: "TransferQueue is at work, and no line is a [TQ-TRACE]", Seen: where,
			Why: "Nothing is known of its calls.", Fix: traceOn,
		})
	}
	if traces > 0 && details == 0 {
		_, seen := r.gather(files, all, func(s *signs) *sight { return &s.trace })
		r.find(finding{
			Name: "tq_detail_off", What: "No line is a [TQ-DETAIL]", Seen: seen[:1], Why: "The MB of each call are not known.",
			Fix: "Start the job with TQ_TRACE_DETAIL_ENABLED=1 and VERL_LOGGING_LEVEL=DEBUG.",
		})
	}
	if n, seen := r.gather(files, all, func(s *signs) *sight { return &s.collapsed }); n > 0 {
		r.find(finding{
			Name: "ray_dedup", Off: true, What: count(n, "line was", "lines were") + " collapsed by Ray ([repeated Nx across cluster])", Seen: seen,
			Why: "Ray drops lines of other workers that look alike, so calls have no end and counts are too low.",
			Fix: "Start the job with RAY_DEDUP_LOGS=0, or read the workers' own files: /tmp/ray/session_*/logs/worker-*.err.",
		})
	}
	// Only if no call has an id.
	withField, _ := r.gather(files, all, func(s *signs) *sight { return &s.idField })
	if n, seen := r.gather(files, all, func(s *signs) *sight { return &s.noID }); n > 0 && n == withField {
		r.find(finding{
			Name: "tq_no_ids", What: fmt.Sprintf("All %s have trace_id=N/A", count(n, "line", "lines")), Seen: seen,
			Why: "Each call is a trace of its own, not part of its batch.",
			Fix: "Put integrations/verl/trainbridge_trace.py beside the job: one import.",
		})
	}
}

// calls looks at performance logs of ZeroMQ clients: a log without its SUMMARY at the end (zmq_no_summary), and sessions over TCP (zmq_tcp).
func (r *rules) calls() {
	files, all := r.of("zmq_rpc")
	var open []place
	for i, s := range all {
		// Offsets in the log, −1 without such a line: the log has a call, and no SUMMARY behind.
		if unfinished := s.call > s.summary; unfinished {
			open = append(open, place{File: files[i].Name, Line: r.got.LineAt(files[i].Path, s.call)})
		}
	}
	if len(open) > 0 {
		what := "has"
		if len(open) > 1 {
			what = "have"
		}
		r.find(finding{
			Name: "zmq_no_summary", What: count(int64(len(open)), "log", "logs") + " of ZeroMQ calls " + what + " no SUMMARY behind the last call", Seen: open,
			Why: "The client has not ended in order: it crashed, was killed, or still runs.", Fix: "Look at the client's own output; where it still runs, nothing.",
		})
	}
	if n, seen := r.gather(files, all, func(s *signs) *sight { return &s.tcp }); n > 0 {
		r.find(finding{
			Name: "zmq_tcp", What: count(n, "session uses", "sessions use") + " ZeroMQ over TCP", Seen: seen,
			Why: "On one host IPC is faster: no checksums, no loopback.", Fix: "Where client and server share a host, give both an ipc:// address.",
		})
	}
}

// perfMonitor looks at the logs of FlagScale's perf_monitor: files perf_metrics_STAMP.log, each with a perf_summary_STAMP.json once the session ends. Found are
// sessions without an end (perf_monitor_unfinished), and that nothing is known of ranks other than 0, as logs of NCCL would tell (perf_monitor_rank_0).
func (r *rules) perfMonitor() {
	files, all := r.of("flagscale")
	var tables, open []place
	for i, f := range files {
		stamp, ok := strings.CutPrefix(filepath.Base(f.Path), "perf_metrics_")
		if !ok {
			continue
		}
		tables = append(tables, place{File: f.Name})
		summary := filepath.Join(filepath.Dir(f.Path), "perf_summary_"+strings.TrimSuffix(stamp, ".log")+".json")
		if _, err := os.Stat(summary); err != nil && !all[i].sessionDone {
			open = append(open, place{File: f.Name, Line: r.got.LineAt(f.Path, all[i].record)})
		}
	}
	if nccl, _ := r.of("nccl"); len(tables) > 0 && len(nccl) == 0 {
		r.find(finding{
			Name: "perf_monitor_rank_0", What: "perf_monitor writes on rank 0 only", Seen: tables,
			Why: "Slow ranks are not known.", Fix: "Add --timing-log-level 2 --timing-log-option all to Megatron, or NCCL Inspector to the job.",
		})
	}
	if len(open) > 0 {
		r.find(finding{
			Name: "perf_monitor_unfinished", What: count(int64(len(open)), "session", "sessions") + " of perf_monitor without a summary", Seen: open,
			Why: "The job has not ended in order, still runs, or perf_summary_*.json is elsewhere.", Fix: "Read the directory of perf_monitor whole.",
		})
	}
}

// unconfirmedShare is the share of a run's collectives from which nccl_sampled is found. A few collectives at the beginning and the end of files never have a
// number that ranks share.
const unconfirmedShare = 0.5

// places are where something was first seen in some files.
func (r *rules) places(s sights) (seen []place) {
	for _, path := range slices.Sorted(maps.Keys(s)) {
		if f := r.got.File(path); f != nil && len(seen) < mostPlaces {
			seen = append(seen, place{File: f.Name, Line: r.got.LineAt(path, s[path].at)})
		}
	}
	return seen
}

// collectives looks at NCCL's collectives: those that cannot be matched between ranks, of runs in which their share is above unconfirmedShare (nccl_sampled),
// and those without a start time, of all runs (nccl_no_start).
func (r *rules) collectives() {
	var all, unconfirmed int64
	var where, made sights
	for _, f := range r.watch.runs {
		made.add(f.made)
		if n := f.unconfirmed.count(); float64(n) > unconfirmedShare*float64(f.collectives.count()) {
			all, unconfirmed = all+f.collectives.count(), unconfirmed+n
			where.add(f.unconfirmed)
		}
	}
	if files, _ := r.of("nccl"); unconfirmed > 0 && len(files) > 1 { // a single log has no other ranks to match
		r.find(finding{
			Name: "nccl_sampled", Off: true,
			What: human.Thousands(unconfirmed) + " of " + count(all, "collective", "collectives") + " have no number that ranks share", Seen: r.places(where),
			Why: "The ranks' files hold different operations, as when each rank samples for itself: late ranks are not known.",
			Fix: "Log each operation on all ranks (sample rate 1), or let all ranks sample the same ones.",
		})
	}
	if n := made.count(); n > 0 {
		r.find(finding{
			Name: "nccl_no_start", What: count(n, "collective has", "collectives have") + " no start time", Seen: r.places(made),
			Why: "Only the time of writing is known: late ranks are not known.", Fix: "Start the job with NCCL_INSPECTOR_DUMP_VERBOSE=1.",
		})
	}
}

// training looks at training steps: why there is no MFU (no_device, no_model), and steps without a time in the log (no_time). A single step with an MFU says
// that model and GPU are known.
func (r *rules) training() {
	var steps, rated, timeless sights
	utilized := int64(0)
	for _, f := range r.watch.runs {
		steps.add(f.steps)
		rated.add(f.rated)
		timeless.add(f.timeless)
		utilized += f.utilized
	}
	switch {
	case utilized > 0:
	case len(rated) > 0:
		r.find(finding{
			Name: "no_device", What: count(rated.count(), "step has", "steps have") + " FLOP/s and no MFU", Seen: r.places(rated),
			Why: "No log names the GPUs, so their peak is not known.", Fix: "Set TRAINBRIDGE_DEVICE='H100 SXM', or --device of report.",
		})
	case len(steps) > 0:
		r.find(finding{
			Name: "no_model", What: count(steps.count(), "step has", "steps have") + " no FLOP/s", Seen: r.places(steps),
			Why: "No log describes the model, so there is no MFU.", Fix: "Set train_perf's train::model (hf_config: config.json) and train::device.",
		})
	}
	if n := timeless.count(); n > 0 {
		r.find(finding{
			Name: "no_time", What: count(n, "step has", "steps have") + " no time in the log", Seen: r.places(timeless),
			Why: "Times are estimated from the file's modification time, so other logs cannot be aligned.",
			Fix: "Have the trainer print a timestamp with each record, or run the collector while it trains.",
		})
	}
}
