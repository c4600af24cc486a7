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
	EndWait()
	Begin()
	End()
	Add(o *op.Op, came []tail.Lent, at int64) bool
	Expire(before int64)
}

// handler reads the lines of one stream and passes their records to the joiner. All handlers of a receiver share the joiner, so a collective that is complete
// leaves with the batch of whichever stream had its last record (take).
type handler struct {
	r      *ncclReceiver
	stream stream
	from   *collectives.From // of input
	input  input
	remote *remote         // the input if records are joined elsewhere; otherwise nil
	format *formats.Format // nil: unknown so far
	parser parse.Parser    // of format; nil: format is nil
	out    parse.Out       // results of the current line
	quiet  int             // lines without a record
	paired bool            // one of VCCL's two files for a network card
	file   int             // number of the stream's current file (tail.Line.File)

	open      []tail.Lent // lines of an unfinished record
	openSince int64       // time of reading the first of them, Unix ns

	now     int64 // time of reading the current line, Unix ns
	modTime int64 // when the file was written, Unix ns
	again   bool  // the current line is read again after a restart
	words   words
	names   spans.Interner
	counted map[countKey]int64 // when counts of the log were first seen, Unix ns

	batch *joined // nil between Cut and the next Line, Expire or Idle, so that idle files keep no memory
}

// newHandler makes the handler of a stream. The format may be unknown until the first line.
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

// setFormat makes the stream's parser for a format, and passes the format to the joiner: which tool writes, and how far its times can be trusted.
func (h *handler) setFormat(f *formats.Format) {
	h.parser, h.format = f.New(h.stream.Path(), h.r.zone), f
	h.from.Family, h.from.OwnClock, h.from.Coarse = f.Tool, f.Name == formats.Profiler, f.Name == formats.FlightRecorder
}

// sniff sets the format of the stream by a line. If the line is of no format, sniff returns the verdict on the line, with the reason.
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

// detect returns the detector of a file's lines for tail.Settings.Detect: a line that is surely a record of this receiver's formats decides that the receiver
// reads the file. If lines of a format look like those of other writers (Format.Sure), detection goes on to a line that is sure, and until then a line may show
// another format. A format named in the configuration needs no such proof.
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
		mayBeOther := format != nil && format.Sure != nil && !named && !open // guessed by an earlier line, and not within a record of several lines
		if format == nil || mayBeOther {
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
			// Where the configuration names the format, a record with content is enough; without content, any object begins with a brace.
			record = format.Sure(path, text, &out) || named && record && len(out.Ops)+len(out.Samples) > 0
		}
		if record {
			return tail.ReadsOwn
		}
		return tail.ReadsNot
	}
}

// Line implements tail.Handler: the parser reads the line, and its records go to the joiner. A line of an unfinished record is lent, and waits with the record.
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
	if l.File != h.file && !l.Again { // the stream goes on in another file: some parsers count from its beginning
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
		h.passResults(linesBefore)
		return tail.Ignored, reason
	case v == parse.Rejected:
		h.saidNothing()
		h.passResults(linesBefore)
		return tail.Rejected, reason
	case h.out.Open: // The line begins a record or goes on with one. Results are of the record before.
		h.passResults(linesBefore)
		if len(h.open) == 0 {
			h.openSince = h.now
			h.input.Begin()
		}
		h.open = append(h.open, h.stream.Lend(h.out.Tag))
		return tail.Record, ""
	}
	if reason := h.passResults(thisLine); reason != "" {
		return tail.Ignored, reason
	}
	return tail.Record, ""
}

// maxQuiet is the number of first lines without a record after which the other streams no longer wait for a stream.
const maxQuiet = 64

// saidNothing counts a line without a record, until the stream counts as one without records.
func (h *handler) saidNothing() {
	if h.quiet++; h.quiet == maxQuiet {
		h.input.EndWait()
	}
}

// The lines to which the results of a line belong, for give: the open lines before alone (a record that ends where another line begins), or the current line,
// too.
const (
	linesBefore = false
	thisLine    = true
)

// passResults handles the parser's results: values become points, and records go to the joiner with their lines, unless excluded by the configuration.
// Afterwards no line is open. With linesBefore (withLine is false) and no results nothing happens, and open lines stay open. If all results of a record of one
// line are excluded, the reason is returned (unwanted), else "".
func (h *handler) passResults(withLine bool) (reason string) {
	if !withLine && len(h.out.Ops)+len(h.out.Samples) == 0 {
		return ""
	}
	for i := range h.out.Samples {
		h.sample(&h.out.Samples[i])
	}
	// The wanted records move to the front. They are swapped, not copied over others: each record keeps its memory for the next lines.
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
	// Each line waits for as many batches as there are wanted records: Lend stands for one, any other number needs Share; 0: the lines are done with.
	opened := len(h.open) > 0
	lents := h.open
	if withLine && len(wanted) > 0 {
		lents = append(lents, h.stream.Lend(h.out.Tag))
	}
	if n := len(wanted); n != 1 {
		for _, l := range lents {
			h.stream.Share(l, n)
		}
	}
	for i := range wanted {
		o := &wanted[i]
		if o.Start == 0 && o.End == 0 { // no time in the log
			o.End, o.Time = h.modTime, spans.TimeSynthetic
		}
		o.Again = h.again
		h.input.Add(o, lents, h.now)
	}
	h.input.EndWait() // not before Add: by now the joiner knows which ranks the stream has
	h.open = lents[:0]
	if opened {
		h.input.End()
		return "" // the lines were a record
	}
	if len(wanted)+len(h.out.Samples) > 0 {
		return ""
	}
	return reason
}

// take puts a collective that leaves the joiner into the batch, with its lines, which may be of many streams. The joiner calls take. If positions are wanted,
// each record of the collective gets a place of its own, else the collective has one place for all.
func (h *handler) take(c *collectives.Collective, lines []tail.Lent) {
	placeOf := func(from, to int) int {
		for _, l := range lines[from:to] {
			h.stream.Take(l)
		}
		return int(h.stream.Place())
	}
	if !h.r.Locates() {
		c.Place = placeOf(0, len(lines))
	} else if !c.Records(placeOf) {
		c.Place = int(h.stream.Place())
	}
	h.batch.collectives = append(h.batch.collectives, c)
}

// Expire implements tail.Handler: an unfinished record begun before the given time is given up, with its present part, if of use; then the joiner gives up
// collectives that waited since before.
func (h *handler) Expire(before time.Time) {
	if h.batch == nil {
		h.batch = h.r.newBatch()
	}
	ns := before.UnixNano()
	if len(h.open) > 0 && h.openSince < ns {
		h.out.Reset()
		h.parser.End(&h.out)
		if ns < math.MaxInt64 { // the part counts as read now; MaxInt64 is the end of reading, and no time
			h.now = max(h.now, ns)
		}
		if len(h.out.Ops)+len(h.out.Samples) > 0 {
			h.passResults(linesBefore)
		} else { // nothing of use
			for _, l := range h.open {
				h.stream.Share(l, 0)
			}
			h.open = h.open[:0]
			h.input.End()
		}
	}
	h.input.Expire(ns)
}

// Cut implements tail.Handler: the batch is complete with the points of what its collectives taught (Joiner.Learned). nil: there is nothing to send.
func (h *handler) Cut() tail.Delivery {
	if h.paired && len(h.open) == 0 {
		h.input.EndWait() // the other file of the pair has the records
	}
	b := h.batch
	if b == nil {
		return nil
	}
	h.batch = nil
	if h.remote != nil {
		h.remote.end(b)
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

// Forget implements tail.Forgetter: no collective waits any more for a first record of the stream.
func (h *handler) Forget() { h.input.EndWait() }

// Save implements tail.Handler. The result is the format's name, with join: remote a newline and a line for each communicator (remote.save), NUL, and the
// parser's state (see Restore). nil: the format is not known yet.
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

// Restore implements tail.Handler. saved is the result of Save: the format's name, with join: remote a newline and the communicators, then NUL and the parser's
// state. Without NUL nothing is restored. If the configuration names no format, the parser is made for the saved format. If the configuration names another
// format by now, the parser of that format begins without a state.
func (h *handler) Restore(saved []byte) {
	head, state, ok := bytes.Cut(saved, []byte{0})
	if !ok {
		return
	}
	name, comms, _ := bytes.Cut(head, []byte{'\n'}) // without join: remote all of head is the name
	if h.remote != nil {
		h.remote.restore(string(comms))
	}
	if h.parser == nil { // no format is configured
		format := formats.Named(string(name))
		if format == nil { // the saved format is unknown to this version
			return
		}
		h.setFormat(format)
	}
	isSameFormat := h.format.Name == string(name)
	if isSameFormat && len(state) > 0 {
		h.parser.Restore(state)
	}
}
