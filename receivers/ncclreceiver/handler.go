package ncclreceiver

import (
	"bytes"
	"math"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/formats"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/spans"
)

// stream is the part of tail.Stream that a handler needs.
type stream interface {
	Path() string
	Lend(tag uint64) tail.Lent
	Share(l tail.Lent, batches int)
	Take(l tail.Lent)
	Place() tail.Place
	Ahead(visit func(text []byte) bool)
}

// input takes the records of a stream: an Input of the Joiner, or remote.
type input interface {
	Heard()
	Begin()
	End()
	Add(o *op.Op, came []tail.Lent, at int64) bool
	Expire(before int64)
}

// handler reads the lines of one stream and passes their records to the joiner.
type handler struct {
	r      *ncclReceiver
	stream stream
	from   *collectives.From // of input
	input  input
	remote *remote         // the input if records are joined elsewhere; otherwise nil
	format *formats.Format // nil: unknown so far
	parser parse.Parser
	out    parse.Out
	quiet  int  // lines without a record
	paired bool // one of VCCL's two files for a network card
	file   int

	open      []tail.Lent // lines of an unfinished record
	openSince int64       // time of reading the first of them

	now     int64
	modTime int64
	again   bool
	words   words
	names   spans.Interner
	counted map[countKey]int64 // when counts of the log were first seen

	batch *joined // nil between Cut and the next line, so that idle files keep no memory
}

func newHandler(r *ncclReceiver, s stream) *handler {
	h := &handler{r: r, stream: s}
	from := collectives.From{Run: r.cfg.Run(s.Path()), Path: s.Path()}
	if r.joiner == nil {
		h.remote = newRemote(h, from)
		h.from, h.input = &h.remote.from, h.remote
	} else {
		in := r.joiner.Input(from, h.take)
		h.from, h.input = &in.From, in
	}
	h.paired = strings.HasSuffix(s.Path(), "A.log") || strings.HasSuffix(s.Path(), "B.log") // <host>-<NIC>-Port<i>-A.log
	if f := formats.Named(r.cfg.Format); f != nil {
		h.setFormat(f)
	}
	return h
}

// setFormat makes the parser.
func (h *handler) setFormat(f *formats.Format) {
	h.parser, h.format = f.New(h.stream.Path(), h.r.zone), f
	h.from.Family, h.from.OwnClock, h.from.Coarse = f.Tool, f.Name == formats.Profiler, f.Name == formats.FlightRecorder
}

// sniff finds the format by a line. While the format is unknown, the reason says why.
func (h *handler) sniff(text []byte) (v tail.Verdict, reason string) {
	f, verdict, reason := formats.Of(text)
	if f != nil {
		h.setFormat(f)
	}
	if verdict == parse.Rejected {
		return tail.Rejected, reason
	}
	return tail.Ignored, reason
}

// detect makes the function that recognizes the records of all formats. If lines of a format look like those of other writers, detection goes on until a
// certain one, and a line may show another format. A format named in the configuration needs no proof.
func (r *ncclReceiver) detect(path string) tail.Detect {
	format := formats.Named(r.cfg.Format)
	named := format != nil
	var parser parse.Parser
	if named {
		parser = format.New(path, r.zone)
	}
	var out parse.Out
	open := false // the line before began or continued a record
	return func(text []byte) tail.Reads {
		if format == nil || format.Sure != nil && !named && !open {
			if f, _, _ := formats.Of(text); f != nil && f != format {
				format, parser = f, f.New(path, r.zone)
			}
			if format == nil {
				return tail.ReadsNot
			}
		}
		if format.Header != nil && format.Header(text) {
			return tail.ReadsOwn
		}
		out.Reset()
		v, _ := parser.Line(text, false, 0, &out)
		record := v == parse.Record
		open = record && out.Open
		if format.Sure != nil {
			// Any object begins with a brace, whatever its content.
			record = format.Sure(path, text, &out) || named && record && len(out.Ops)+len(out.Samples) > 0
		}
		if record {
			return tail.ReadsOwn
		}
		return tail.ReadsNot
	}
}

// Line takes the next line.
func (h *handler) Line(l *tail.Line) (tail.Verdict, string) {
	if h.batch == nil {
		h.batch = h.r.newBatch()
	}
	h.again = l.Again
	h.now, h.modTime = l.Observed.UnixNano(), l.Written().UnixNano()
	if h.parser == nil {
		if v, reason := h.sniff(l.Text); h.parser == nil {
			h.saidNothing()
			return v, reason
		}
	}
	if l.File != h.file && !l.Again {
		if p, ok := h.parser.(interface{ NewFile() }); ok && h.file != 0 {
			p.NewFile()
		}
		h.file = l.File
	}
	h.out.Reset()
	v, reason := h.parser.Line(l.Text, l.Again, l.Tag, &h.out)
	switch {
	case v == parse.Ignored:
		h.saidNothing()
		h.give(false)
		return tail.Ignored, reason
	case v == parse.Rejected:
		h.saidNothing()
		h.give(false)
		return tail.Rejected, reason
	case h.out.Open:
		h.give(false)
		if len(h.open) == 0 {
			h.openSince = h.now
			h.input.Begin()
		}
		h.open = append(h.open, h.stream.Lend(h.out.Tag))
		return tail.Record, ""
	}
	if reason := h.give(true); reason != "" {
		return tail.Ignored, reason
	}
	return tail.Record, ""
}

// maxQuiet is the number of first lines without a record after which the other streams no longer wait for a stream.
const maxQuiet = 64

func (h *handler) saidNothing() {
	if h.quiet++; h.quiet == maxQuiet {
		h.input.Heard()
	}
}

// give passes on the results for the open lines and, if line is set, for the current line. The result is the reason when none of them is wanted.
func (h *handler) give(line bool) (reason string) {
	if !line && len(h.out.Ops)+len(h.out.Samples) == 0 {
		return ""
	}
	for i := range h.out.Samples {
		h.sample(&h.out.Samples[i])
	}
	wanted := h.out.Ops[:0]
	for i := range h.out.Ops {
		o := &h.out.Ops[i]
		reason = h.r.unwanted(o)
		if reason != "" {
			continue
		}
		n := len(wanted)
		wanted = wanted[:n+1]
		if n < i {
			wanted[n], *o = *o, wanted[n]
		}
	}
	opened := len(h.open) > 0
	lents := h.open
	if line && len(wanted) > 0 {
		lents = append(lents, h.stream.Lend(h.out.Tag))
	}
	if n := len(wanted); n != 1 {
		for _, l := range lents {
			h.stream.Share(l, n)
		}
	}
	for i := range wanted {
		o := &wanted[i]
		if o.Start == 0 && o.End == 0 {
			o.End, o.Time = h.modTime, spans.TimeSynthetic
		}
		o.Again = h.again
		h.input.Add(o, lents, h.now)
	}
	h.input.Heard() // only after its ranks are known
	h.open = lents[:0]
	if opened {
		h.input.End()
		return ""
	}
	if len(wanted)+len(h.out.Samples) > 0 {
		return ""
	}
	return reason
}

// take puts a collective into the batch, with its lines.
func (h *handler) take(c *collectives.Collective, lines []tail.Lent) {
	take := func(from, to int) int {
		for _, l := range lines[from:to] {
			h.stream.Take(l)
		}
		return int(h.stream.Place())
	}
	if !h.r.Locates() {
		c.Place = take(0, len(lines))
	} else if !c.Records(take) {
		c.Place = int(h.stream.Place())
	}
	h.batch.collectives = append(h.batch.collectives, c)
}

// Expire gives up everything waiting since before the given time.
func (h *handler) Expire(before time.Time) {
	if h.batch == nil {
		h.batch = h.r.newBatch()
	}
	ns := before.UnixNano()
	if len(h.open) > 0 && h.openSince < ns {
		h.out.Reset()
		h.parser.End(&h.out)
		if ns < math.MaxInt64 {
			h.now = max(h.now, ns)
		}
		if len(h.out.Ops)+len(h.out.Samples) > 0 {
			h.give(false)
		} else {
			for _, l := range h.open {
				h.stream.Share(l, 0)
			}
			h.open = h.open[:0]
			h.input.End()
		}
	}
	h.input.Expire(ns)
}

// Cut ends the current batch.
func (h *handler) Cut() tail.Delivery {
	if h.paired && len(h.open) == 0 {
		h.input.Heard() // the other file of the pair has the records
	}
	b := h.batch
	if b == nil {
		return nil
	}
	h.batch = nil
	if h.remote != nil {
		h.remote.pack(b)
	}
	if len(b.collectives)+len(b.points)+len(b.packed) == 0 {
		b.Done()
		return nil
	}
	if len(b.collectives) > 0 {
		b.points = h.r.joiner.Learned(b.points, b.collectives)
	}
	return h.r.Deliver(b)
}

// Forget is called when the stream is gone and has no more records.
func (h *handler) Forget() { h.input.Heard() }

// Save returns the format and the state of its parser.
func (h *handler) Save() []byte {
	if h.parser == nil {
		return nil
	}
	b := []byte(h.format.Name)
	if h.remote != nil {
		b = h.remote.save(b)
	}
	return append(append(b, 0), h.parser.Save()...)
}

// Restore reads the result of Save.
func (h *handler) Restore(saved []byte) {
	format, state, ok := bytes.Cut(saved, []byte{0})
	if !ok {
		return
	}
	format, comms, _ := bytes.Cut(format, []byte{'\n'})
	if h.remote != nil {
		h.remote.restore(string(comms))
	}
	if f := formats.Named(string(format)); h.parser == nil && f != nil {
		h.setFormat(f)
	}
	if h.parser != nil && h.format.Name == string(format) && len(state) > 0 {
		h.parser.Restore(state)
	}
}
