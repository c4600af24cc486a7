package tqtracereceiver

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/receivers/internal/envelope"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/assemble"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/tqline"
	"github.com/trainbridge/trainbridge/spans"
)

// handler turns the lines of one stream into batches.
type handler struct {
	r       *tqReceiver
	stream  stream
	run     string
	filePID int64 // of worker-…-<pid>.err

	peeler envelope.Peeler
	glued  line.Peeler   // of prefixes after foreign text
	prefix line.Prefix   // of the current line
	rec    tqline.Line   // the current record …
	at     assemble.At   // … and when and where it was printed
	raw    []byte        // of at.Raw, without any clock
	stamps *clock.Stamps // reads the stamps of loggers

	anchors clock.Anchors // of the processes: perf_counter to wall clock
	procs   map[procKey]*assemble.Proc
	recent  [16]*assemble.Proc // of the last lines, by pid modulo 16
	asm     *assemble.Assembler
	perf    perfRecords
	names   spans.Interner

	// For records without any clock: their number, the reconstructed time (ns), and the time of the current function's stages within it.
	ordinal, made, staged int64

	records, nameless int64 // of this process; nameless: records without a trace in trace_id; -1: already logged

	batch *functionBatch // nil between Cut and the next Line or Expire, so that idle files keep no memory
	began int64          // ns: the first start of all batches
}

// stream is the part of tail.Stream that a handler needs.
type stream interface {
	assemble.Lines
	Path() string
	ByArrival()
}

type procKey struct {
	host string
	pid  int64
}

// enoughIDs is the number of records without an id that is no accident.
const enoughIDs = 8

// maxProcs bounds the known processes of one file.
const maxProcs = 4096

// handle returns the handler of a stream.
func (r *tqReceiver) handle(s stream) *handler {
	h := &handler{
		r: r, stream: s, run: r.cfg.Run(s.Path()), filePID: pidOfFile(s.Path()), stamps: clock.NewStamps(r.zone),
		procs: make(map[procKey]*assemble.Proc), began: math.MaxInt64,
	}
	h.asm = assemble.New(s)
	return h
}

// ensureBatch makes a batch if there is none.
func (h *handler) ensureBatch() {
	if h.batch == nil {
		h.batch = h.r.newBatch()
		h.asm.Out = &h.batch.out
	}
}

// pidOfFile reads the pid from the names of Ray's files, "worker-<worker id>-<job id>-<pid>.err". 0: another name.
func pidOfFile(path string) int64 {
	name := filepath.Base(path)
	if !strings.HasPrefix(name, "worker-") {
		return 0
	}
	name, _, _ = strings.Cut(name, ".")
	i := strings.LastIndexByte(name, '-')
	pid, err := strconv.ParseInt(name[i+1:], 10, 32)
	if err != nil || pid < 0 || strings.Count(name, "-") < 3 {
		return 0
	}
	return pid
}

// Line implements tail.Handler: the prefix is removed, and the first format that knows the line reads the rest. Lines of no format are ignored.
func (h *handler) Line(l *tail.Line) (tail.Verdict, string) {
	h.ensureBatch()
	rest := h.peeler.Peel(l.Text, &h.prefix)
	for i := range formats {
		if v, reason, mine := formats[i].parse(h, rest, l); mine {
			return v, reason
		}
	}
	return tail.Ignored, "not_tq"
}

// readTagged reads a line with a [TQ-…] tag: the record gets its time and process, and goes to the assembler. mine is false without a tag. A broken record is
// rejected; without a pipeline of traces a record is ignored. A record that becomes part of no span (fate) is counted, and still a record.
func (h *handler) readTagged(b []byte, l *tail.Line) (v tail.Verdict, reason string, mine bool) {
	i := tqline.Find(b)
	if i < 0 {
		return tail.Ignored, "", false
	}
	if i > 0 { // foreign text, perhaps with a prefix of its own
		h.peelGlued(b[:i])
	}
	if h.prefix.Repeated > 1 {
		h.r.repeated(h.prefix.Repeated-1, h.stream.Path())
	}
	if err := tqline.Parse(b[i:], &h.rec); err != nil {
		return tail.Rejected, tqline.Reason(err), true
	}
	if h.nameless == h.records && spans.NoTraceID(string(h.rec.TraceID)) { // counts as long as no record has an id
		h.nameless++
	}
	h.records++
	if !h.r.HasTraces() {
		return tail.Ignored, "no_traces_pipeline", true
	}
	h.setTime(l)
	if fate := h.asm.Add(&h.rec, &h.at); fate != assemble.Used {
		h.r.tel.TrainbridgeTqUnusedLines.Add(context.Background(), 1, h.r.reasons[fate])
	}
	return tail.Record, "", true
}

// peelGlued looks for a prefix in the text before the record, after a progress bar without a newline:
//
//	50%|█████     | 1/2 [00:01<00:01](TaskRunner pid=123) 2026-02-11 16:40:00,120:[TQ-TRACE] …
//
// Stamp and process found there replace the prefix at the beginning of the line, of the bar.
func (h *handler) peelGlued(head []byte) {
	if i := bytes.LastIndexByte(head, '\r'); i >= 0 {
		head = head[i+1:]
	}
	if i := bytes.LastIndexByte(head, '('); i >= 0 && bytes.Contains(head[i:], []byte(" pid=")) {
		head = head[i:]
	}
	var p line.Prefix
	h.glued.Peel(head, &p)
	if p.Stamp == nil && len(head) > 0 && head[len(head)-1] == ':' { // a stamp right before the record
		head = head[:len(head)-1]
		for _, n := range [...]int{23, 26, 19} { // the lengths of stamps with ms, with µs and with s
			if len(head) >= n && line.StampLen(head[len(head)-n:]) == n {
				p.Stamp = head[len(head)-n:]
				break
			}
		}
	}
	if p.Stamp != nil {
		h.prefix.Stamp = p.Stamp
	}
	if p.PID != 0 {
		h.prefix.RayName, h.prefix.PID, h.prefix.IP = p.RayName, p.PID, p.IP
	}
}

// process returns the process that printed the line, made if new: by pid and IP of Ray's prefix, else by the pid in the file's name. The pid is 0 where neither
// is known. Mostly one of the last lines was of the same process: recent is tried first.
func (h *handler) process() *assemble.Proc {
	pid := h.prefix.PID
	if pid == 0 {
		pid = h.filePID
	}
	if p := h.recent[pid&15]; p != nil && p.PID == pid && p.Host == string(h.prefix.IP) {
		h.anchors.Touch(p.Anchor)
		return p
	}
	p, ok := h.procs[procKey{string(h.prefix.IP), pid}]
	if !ok {
		if len(h.procs) >= maxProcs {
			clear(h.procs) // makes room; open functions keep their process
		}
		host := spans.Name(h.prefix.IP)
		p = assemble.NewProc(host, pid, h.anchors.Get(host, pid))
		h.procs[procKey{string(h.prefix.IP), pid}] = p
	}
	h.anchors.Touch(p.Anchor)
	h.recent[pid&15] = p
	return p
}

// stampTime returns the time of the line by the stamp of its logger, or else of its container runtime, Unix ns. raw is the stamp as printed. false: no stamp,
// or an unreadable one.
func (h *handler) stampTime() (ns int64, raw []byte, ok bool) {
	raw = h.prefix.Stamp
	if raw == nil {
		raw = h.prefix.Container
	}
	if raw == nil {
		return 0, nil, false
	}
	ns, err := h.stamps.Parse(raw)
	return ns, raw, err == nil
}

// unixFrom is the smallest timestamp taken as Unix time, not perf_counter: no machine runs for 31 years.
const unixFrom = int64(1e18)

// setTime sets at: when and where the record was printed. The clocks, best first: Unix time in the record, perf_counter in the record (converted to wall time
// by the process's anchor), the stamp of the line, the order of the lines.
func (h *handler) setTime(l *tail.Line) {
	at := &h.at
	at.Proc = h.process()
	at.Since = l.Observed.UnixNano()
	wall, raw, hasWall := h.stampTime()
	switch {
	case h.rec.RawTime != nil && h.rec.Timestamp >= unixFrom:
		at.Base, at.T, at.Wall, at.Raw, at.Source = assemble.Epoch, h.rec.Timestamp, h.rec.Timestamp, h.rec.RawTime, spans.TimeDerived
	case h.rec.RawTime != nil:
		anchor := at.Proc.Anchor
		if hasWall {
			if anchor.Breaks(h.rec.Timestamp, wall) { // the counter began anew: another process with the pid, or a reboot
				h.asm.Break(at.Proc.Host, at.Proc.PID)
			}
			anchor.Observe(h.rec.Timestamp, wall)
		} else { // the time of reading has to do
			h.stream.ByArrival()
			anchor.Guess(h.rec.Timestamp, h.arrivalTime(l).UnixNano())
			off, _ := anchor.Offset()
			wall = h.rec.Timestamp + off
		}
		at.Base, at.T, at.Wall, at.Raw = assemble.Perf, h.rec.Timestamp, wall, h.rec.RawTime
	case hasWall:
		at.Base, at.T, at.Wall, at.Raw, at.Source = assemble.Stamp, wall, wall, raw, spans.TimeDerived
	default:
		h.placeByOrder(l)
	}
}

// placeByOrder gives a time to a record without any clock: its arrival while tailing; else the file's modification time plus the durations of the records
// before. The key is the record's number in the file, "#12". ByArrival keeps the times of reading, for the same result when the line is read again.
func (h *handler) placeByOrder(l *tail.Line) {
	at := &h.at
	h.ordinal++
	h.raw = strconv.AppendInt(append(h.raw[:0], '#'), h.ordinal, 10)
	at.Base, at.Raw = assemble.None, h.raw
	if l.Live {
		h.stream.ByArrival()
		at.T, at.Source = l.Observed.UnixNano(), spans.TimeObserved
		at.Wall = at.T
		return
	}
	if h.made == 0 {
		h.stream.ByArrival()
		h.made = l.Written().UnixNano()
	}
	ahead := h.rec.Duration // of a record inside a stage: the stage's end counts the time
	switch h.rec.Stage {
	case tqline.GetEnd, tqline.ComputeEnd, tqline.PutEnd: // one after the other
		h.made += ahead
		h.staged += ahead
		ahead = 0
	case tqline.FunctionEnd: // the stages have counted their part
		h.made += max(0, ahead-h.staged)
		h.staged, ahead = 0, 0
	case tqline.ClientEnd:
		if h.rec.Log { // no enclosing stage will count the time
			h.made += ahead
			ahead = 0
		}
	}
	at.T, at.Source = h.made+ahead, spans.TimeSynthetic
	at.Wall = at.T
}

// arrivalTime returns about when a line without a clock was written: when it was read while tailing, else the file's modification time.
func (*handler) arrivalTime(l *tail.Line) time.Time {
	if l.Live || l.ModTime.IsZero() {
		return l.Observed
	}
	return l.Written()
}

// repeated counts n lines dropped by Ray, and logs once how to keep all lines.
func (r *tqReceiver) repeated(n int64, path string) {
	r.tel.TrainbridgeTqRepeatedLines.Add(context.Background(), n)
	if !r.Said("repeated") {
		r.Once(
			zapcore.WarnLevel, "repeated",
			"Ray drops lines that are alike ([repeated 7x across cluster]), so functions will be incomplete: set RAY_DEDUP_LOGS=0 for the job, or read the workers' "+
				"own logs, /tmp/ray/session_*/logs/worker-*.err; seen in "+path,
		)
	}
}

// Expire sends the functions, operations and [Performance] records that began to be read before the given time, though lines are missing.
func (h *handler) Expire(before time.Time) {
	ns := before.UnixNano()
	h.ensureBatch()
	h.asm.Expire(ns)
	h.perf.expire(h, ns)
}

// Cut ends the current batch, and returns it for delivery; nil: nothing to send. The first batch of the file, and each with an earlier start, opens the run's
// span.
func (h *handler) Cut() tail.Delivery {
	b := h.batch
	if b == nil {
		return nil
	}
	h.batch, h.asm.Out = nil, nil
	if h.records >= enoughIDs && h.nameless == h.records { // not one record has an id
		h.r.noIDs(h.nameless, h.stream.Path())
		h.nameless = -1
	}
	if b.empty() {
		b.Done()
		return nil
	}
	b.run = h.run
	if at, source := b.began(); at < h.began {
		h.began = at
		h.r.OpenRun(h.r.cfg.Opens(h.stream.Path(), at, source))
	}
	return h.r.Deliver(b)
}

// noIDs explains to the user that no record has an id. TransferQueue reads the id from BatchMeta.extra_info, where verl puts none.
func (r *tqReceiver) noIDs(records int64, path string) {
	if !r.Said("ids") {
		r.Once(
			zapcore.InfoLevel, "ids",
			fmt.Sprintf(
				"trace_id is N/A in all %d records of %s, so that each call is a trace of its own: to have those of a batch in one, import trainbridge's "+
					"integrations/verl/trainbridge_trace.py in the trainer, or put a UUID into extra_info[\"trace_id\"] of its BatchMeta",
				records, path,
			),
		)
	}
}

const stateVersion = 1

// Save returns what the next process needs to give the same ids and times: the clock anchors, and the counters of placeByOrder. nil: nothing.
func (h *handler) Save() []byte {
	anchors := h.anchors.Save()
	if anchors == nil && h.ordinal == 0 {
		return nil
	}
	b := binary.AppendVarint([]byte{stateVersion}, h.ordinal)
	b = binary.AppendVarint(b, h.made)
	b = binary.AppendVarint(b, h.staged)
	return append(b, anchors...)
}

// Restore implements tail.Handler. A damaged or unknown state is ignored.
func (h *handler) Restore(state []byte) {
	if len(state) == 0 || state[0] != stateVersion {
		return
	}
	c := wire.Cursor{Rest: state[1:]}
	ordinal, made, staged := c.Varint(), c.Varint(), c.Varint()
	if c.Bad {
		return
	}
	h.ordinal, h.made, h.staged = ordinal, made, staged
	h.anchors.Restore(c.Rest)
}
