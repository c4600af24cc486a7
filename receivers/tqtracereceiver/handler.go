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
	glued  line.Peeler
	prefix line.Prefix
	rec    tqline.Line
	stamps *clock.Stamps
	at     assemble.At
	raw    []byte

	anchors clock.Anchors
	procs   map[procKey]*assemble.Proc
	recent  [16]*assemble.Proc // of the last lines, by pid
	asm     *assemble.Assembler
	perf    perfRecords
	names   spans.Interner

	// For records without any clock: their number, the reconstructed time (ns), and the time of the current function's stages within it.
	ordinal, made, staged int64

	records, nameless int64 // of this process; nameless: records without a trace in trace_id; -1: already logged

	batch *functionBatch // nil between Cut and the next line, so that idle files keep no memory
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

func (r *tqReceiver) handle(s stream) *handler {
	h := &handler{
		r: r, stream: s, run: r.cfg.Run(s.Path()), filePID: pidOfFile(s.Path()), stamps: clock.NewStamps(r.zone),
		procs: make(map[procKey]*assemble.Proc), began: math.MaxInt64,
	}
	h.asm = assemble.New(s)
	return h
}

// fill makes a batch if none is open.
func (h *handler) fill() {
	if h.batch == nil {
		h.batch = h.r.newBatch()
		h.asm.Out = &h.batch.out
	}
}

// pidOfFile reads the pid from Ray's file names, "worker-<worker id>-<job id>-<pid>.err". 0: none.
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

// Line takes the next line.
func (h *handler) Line(l *tail.Line) (tail.Verdict, string) {
	h.fill()
	rest := h.peeler.Peel(l.Text, &h.prefix)
	for i := range formats {
		if v, reason, mine := formats[i].parse(h, rest, l); mine {
			return v, reason
		}
	}
	return tail.Ignored, "not_tq"
}

// trace takes a line with a [TQ-…] tag.
func (h *handler) trace(b []byte, l *tail.Line) (v tail.Verdict, reason string, mine bool) {
	i := tqline.Find(b)
	if i < 0 {
		return tail.Ignored, "", false
	}
	if i > 0 {
		h.peelGlued(b[:i])
	}
	if h.prefix.Repeated > 1 {
		h.r.repeated(h.prefix.Repeated-1, h.stream.Path())
	}
	if err := tqline.Parse(b[i:], &h.rec); err != nil {
		return tail.Rejected, tqline.Reason(err), true
	}
	if h.nameless == h.records && spans.NoTraceID(string(h.rec.TraceID)) {
		h.nameless++
	}
	h.records++
	if !h.r.HasTraces() {
		return tail.Ignored, "no_traces_pipeline", true
	}
	h.place(l)
	if fate := h.asm.Add(&h.rec, &h.at); fate != assemble.Used {
		h.r.tel.TrainbridgeTqUnusedLines.Add(context.Background(), 1, h.r.reasons[fate])
	}
	return tail.Record, "", true
}

// peelGlued looks for a prefix between foreign text (a progress bar) and the record.
func (h *handler) peelGlued(head []byte) {
	repeated := h.prefix.Repeated
	if i := bytes.LastIndexByte(head, '\r'); i >= 0 {
		head = head[i+1:]
	}
	if i := bytes.LastIndexByte(head, '('); i >= 0 && bytes.Contains(head[i:], []byte(" pid=")) {
		head = head[i:]
	}
	var p line.Prefix
	h.glued.Peel(head, &p)
	if p.Stamp == nil && len(head) > 0 && head[len(head)-1] == ':' {
		head = head[:len(head)-1]
		for _, n := range [...]int{23, 26, 19} {
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
	h.prefix.Repeated = repeated
}

// process finds the process that printed the line.
func (h *handler) process() *assemble.Proc {
	pid := h.prefix.PID
	if pid == 0 {
		pid = h.filePID
	}
	if p := h.recent[pid&15]; p != nil && p.PID == pid && p.Host == string(h.prefix.IP) {
		return p
	}
	p, ok := h.procs[procKey{string(h.prefix.IP), pid}]
	if !ok {
		if len(h.procs) >= maxProcs {
			clear(h.procs) // open functions keep their process
		}
		host := spans.Name(h.prefix.IP)
		p = assemble.NewProc(host, pid, h.anchors.Get(host, pid))
		h.procs[procKey{string(h.prefix.IP), pid}] = p
	}
	h.anchors.Touch(p.Anchor)
	h.recent[pid&15] = p
	return p
}

// wall returns the wall clock of the line, in ns.
func (h *handler) wall() (ns int64, raw []byte, ok bool) {
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

// place finds out when and where the record was printed.
func (h *handler) place(l *tail.Line) {
	at := &h.at
	at.Proc = h.process()
	at.Since = l.Observed.UnixNano()
	wall, raw, hasWall := h.wall()
	switch {
	case h.rec.RawTime != nil && h.rec.Timestamp >= unixFrom:
		at.Base, at.T, at.Wall, at.Raw, at.Source = assemble.Epoch, h.rec.Timestamp, h.rec.Timestamp, h.rec.RawTime, spans.TimeDerived
	case h.rec.RawTime != nil:
		anchor := at.Proc.Anchor
		if hasWall {
			if anchor.Breaks(h.rec.Timestamp, wall) {
				h.asm.Break(at.Proc.Host, at.Proc.PID)
			}
			anchor.Observe(h.rec.Timestamp, wall)
		} else {
			h.stream.ByArrival()
			anchor.Guess(h.rec.Timestamp, h.read(l).UnixNano())
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
// before.
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
	d := h.rec.Duration
	switch h.rec.Stage {
	case tqline.GetEnd, tqline.ComputeEnd, tqline.PutEnd:
		h.made += d
		h.staged += d
		d = 0
	case tqline.FunctionEnd:
		h.made += max(0, d-h.staged)
		h.staged, d = 0, 0
	case tqline.ClientEnd:
		if h.rec.Log { // no enclosing stage will count the time
			h.made += d
			d = 0
		}
	}
	at.T, at.Source = h.made+d, spans.TimeSynthetic
	at.Wall = at.T
}

// read is about when a line without a clock was written.
func (*handler) read(l *tail.Line) time.Time {
	if l.Live || l.ModTime.IsZero() {
		return l.Observed
	}
	return l.Written()
}

// repeated counts n lines dropped by Ray.
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

// Expire gives up everything held since before the given time.
func (h *handler) Expire(before time.Time) {
	ns := before.UnixNano()
	h.fill()
	h.asm.Expire(ns)
	h.perf.expire(h, ns)
}

// Cut ends the current batch.
func (h *handler) Cut() tail.Delivery {
	b := h.batch
	if b == nil {
		return nil
	}
	h.batch, h.asm.Out = nil, nil
	if h.records >= enoughIDs && h.nameless == h.records {
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
		b.opens = h.r.OpenRun(h.r.cfg.Opens(h.stream.Path(), at, source))
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

// Save returns the clock anchors and the counters for the keys of records without a clock.
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

// Restore reads the result of Save.
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
