package zmqrpcreceiver

import (
	"encoding/json"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/rpclog"
	"github.com/trainbridge/trainbridge/spans"
)

// stream is the part of tail.Stream that a handler needs.
type stream interface {
	Path() string
	Hold() tail.Held
	Release(tail.Held)
	Place() tail.Place
	ByArrival()
	Ahead(visit func(text []byte) bool)
	Beginning(visit func(text []byte) bool)
}

// handler turns the lines of one stream into groups of calls. The lines of a group are held until the group ends: a group is sent as a whole, and a restart
// reads the group again from its first line.
type handler struct {
	r      *zmqReceiver
	stream stream
	run    string
	parser rpclog.Parser
	names  spans.Interner
	looked bool // for a header at the beginning of the file

	file int // number of the file of state.Ahead

	state state
	saved state  // the state before the first held line
	open  *group // the group being read; nil: none
	final *final // the summary being read; nil: none

	batch   *passBatch // nil between Cut and the next Line or Expire, so that idle files keep no memory
	runDone bool       // the run's span was sent
}

// state is the part that survives a restart.
type state struct {
	Parser []byte `json:"parser,omitempty"`
	// Session is the key of the session, its first row as printed. Empty: the next row begins a session.
	Session []byte `json:"session,omitempty"`
	Groups  int64  `json:"groups"`         // of the session
	Passes  int64  `json:"passes"`         // of the session
	More    bool   `json:"more,omitempty"` // the last pass was cut off: the next calls continue it
	LastID  int64  `json:"last_id"`
	Block   totals `json:"block"`            // rows since the last restart of the ids
	Blocks  int64  `json:"blocks,omitempty"` // restarts of the ids
	// Root is the root span of the session, Last the root span of the group before.
	Root ref `json:"root"`
	Last ref `json:"last"`
	// End is the time of the last row, ns. Ahead is the number of following rows already in the file, and Live whether a live line anchored End.
	End   int64 `json:"end"`
	Ahead int   `json:"ahead,omitempty"`
	Live  bool  `json:"live,omitempty"`
	// Summed says that the last group has its summary.
	Summed bool `json:"summed,omitempty"`
}

// ref names a span.
type ref struct {
	Trace pcommon.TraceID `json:"trace"`
	Span  pcommon.SpanID  `json:"span"`
	ByID  bool            `json:"by_id,omitempty"` // an id in the log decided the trace
}

func (r ref) none() bool { return r.Trace.IsEmpty() }

func newHandler(r *zmqReceiver, s stream) *handler {
	return &handler{r: r, stream: s, run: r.cfg.Run(s.Path())}
}

// Line takes the next line: a row of the table is a call, a title or another header is a new log, a summary ends a group of calls. Reading may have begun below
// the header: then the header is looked for at the beginning of the file.
func (h *handler) Line(l *tail.Line) (tail.Verdict, string) {
	if h.batch == nil {
		h.batch = h.r.newBatch()
	}
	columns := h.parser.Header()
	kind := h.parser.Line(l.Text)
	if kind == rpclog.Bad && h.parser.Reason() == rpclog.ReasonNoHeader && !h.looked {
		h.findHeader()
		kind = h.parser.Line(l.Text)
	}
	switch kind {
	case rpclog.Call:
		h.endSummary()
		h.call(l)
		return tail.Record, ""
	case rpclog.Statistic:
		h.statistic(l)
		return tail.Record, ""
	case rpclog.Bad:
		return tail.Rejected, h.parser.Reason()
	case rpclog.Title:
		h.restart()
	case rpclog.Header:
		if columns != h.parser.Header() { // otherwise the same header is repeated
			h.restart()
		}
	case rpclog.Summary:
		h.endSummary()
		h.close(spans.PassEndSummary)
		h.keep(l)
	case rpclog.Section:
		h.keep(l)
	case rpclog.Rule:
		if h.final != nil && len(h.final.stats) > 0 { // below the values: the end of the summary
			h.endSummary()
		}
	case rpclog.Blank, rpclog.Unknown:
	}
	return tail.Ignored, reasons[kind]
}

var reasons = [...]string{
	rpclog.Blank: "blank", rpclog.Rule: "rule", rpclog.Title: "title", rpclog.Header: "header", rpclog.Summary: "summary",
	rpclog.Section: "section", rpclog.Unknown: "unknown",
}

// restart ends the open summary, group and session: the client writes a new log. Only the place in time and the number of restarts go on.
func (h *handler) restart() {
	h.endSummary()
	h.close(spans.PassEndRestart)
	blocks := h.state.Blocks
	if h.state.Block.Calls > 0 {
		blocks++
	}
	h.state = state{End: h.state.End, Ahead: h.state.Ahead, Live: h.state.Live, Blocks: blocks}
}

// findHeader reads the columns from the beginning of the file, when reading began later.
func (h *handler) findHeader() {
	h.looked = true
	h.stream.Beginning(func(text []byte) bool {
		h.parser.Line(text)
		return true
	})
}

// call takes a row: as a call of the open group, or as the first of the next. Methods with a role (session, begin, end), a restart of the ids and the limits of
// a trace end a group.
func (h *handler) call(l *tail.Line) {
	row := &h.parser.Row
	is := h.r.methods[string(row.Method)]
	st := &h.state
	if st.Block.Calls > 0 && row.ID <= st.LastID { // the statistics were reset: another count, the same client
		h.close(spans.PassEndRestart)
		st.Block, st.More = totals{}, false
		st.Blocks++
	}
	switch {
	case is.session:
		h.close(spans.PassEndRestart)
		st.Session = nil
	case is.begin:
		h.close(spans.PassEndNext)
	}
	if len(st.Session) == 0 { // the first row of a session names it
		st.Session = spans.ShortKey(l.Text)
		st.Groups, st.Passes, st.More, st.Root, st.Last = 0, 0, false, ref{}, ref{}
	}
	if h.open == nil {
		h.begin(l, is)
	}
	st.LastID = row.ID
	h.open.held = append(h.open.held, h.stream.Hold())
	h.add(l)
	switch g := h.open; {
	case g.kind == passGroup && is.end:
		h.close(spans.PassEndMethod)
	case len(g.calls) >= h.r.cfg.MaxCalls, g.text >= maxText:
		h.close(spans.PassEndMax)
	}
}

// begin opens a group with the current row, of the kind by the method's role; what follows a pass that was cut off is a pass too.
func (h *handler) begin(l *tail.Line, is role) {
	st := &h.state
	h.snapshot()
	g := h.r.groups.Get()
	g.kind = callsGroup
	switch {
	case is.session:
		g.kind = sessionGroup
	case is.begin || st.More:
		g.kind = passGroup
	}
	st.More = false
	st.Groups++
	if g.kind == passGroup {
		st.Passes++
		g.ordinal = st.Passes
	}
	g.number, g.block, g.since = st.Groups, st.Blocks, l.Observed.UnixNano()
	g.transport = h.names.Text([]byte(h.parser.Transport()))
	g.session, g.before = st.Root, st.Last
	h.open = g
}

// snapshot keeps the state before the current row: a restart reads again from this row.
func (h *handler) snapshot() {
	h.saved = h.state
	h.saved.Parser = h.parser.Save()
}

// add puts the row into the open group, with its unknown columns and ids, and into the sums of the group and of the rows since the last restart of the ids.
func (h *handler) add(l *tail.Line) {
	row, g, st := &h.parser.Row, h.open, &h.state
	from := len(g.fields)
	for _, f := range row.Fields {
		if f.ID == logids.Trace && logids.IsUUID(f.Text) {
			continue // already the trace id
		}
		g.fields = append(g.fields, field{h.names.Text([]byte(f.Name)), spans.Text(f.Text)})
		g.text += len(f.Name)
	}
	g.text += len(l.Text) + len(row.Fields)*fieldBytes
	g.rows.Add(l.Text)
	start := h.place(l, row.NS[rpclog.Total], row.NS[rpclog.Offline])
	g.calls = append(g.calls, call{
		id: row.ID, method: h.names.Text(row.Method), has: row.Has, ns: row.NS, sent: row.Sent, received: row.Received, throughput: row.Throughput, step: row.Step,
		start: start, observed: st.Live, fieldsFrom: from, fieldsTo: len(g.fields),
	})
	c := &g.calls[len(g.calls)-1]
	if row.IDs.Any() {
		if trace, parent, ok := spans.Carried(h.run, &row.IDs); ok {
			c.trace, c.parent, g.carried = trace, parent, true
		}
	}
	g.sums.add(row.Has, &row.NS, row.Sent, row.Received)
	st.Block.add(row.Has, &row.NS, row.Sent, row.Received)
	h.check(row, c)
}

// place returns the start of a call that took a time (ns) behind some offline work (ns), and advances the time of the log. The log has no clock. The last row
// now in the file ended on arrival if the current row was seen to arrive, else at the file's modification time; each earlier row ended at the start (with
// offline work) of the next. Time between calls is then unknown. Rows behind the current one are counted (state.Ahead), and come behind the row before.
func (h *handler) place(l *tail.Line, took, offline int64) (start int64) {
	st := &h.state
	if l.File != h.file {
		h.file, st.Ahead = l.File, 0
	}
	if st.Ahead > 0 { // was placed with the rows before
		st.Ahead--
		start = st.End + offline
	} else {
		h.stream.ByArrival()
		var rest int64 // ns of the following rows in the file: they end at the anchor
		h.parser.LookAhead()
		h.stream.Ahead(func(text []byte) bool {
			if ns, ok := h.parser.Duration(text); ok {
				rest += ns
				st.Ahead++
			}
			return rest < maxLog
		})
		anchor := l.Written()
		if l.Live {
			anchor = l.Observed
		}
		st.Live = l.Live
		end := anchor.UnixNano() - rest
		start = max(end-took, offline) // a file can be of 1970
		// A client makes one call at a time. The previous row may have been read late: then the call begins at the end of the previous call.
		if st.End-end < maxLate {
			start = max(start, st.End+offline)
		}
	}
	st.End = start + took
	return start
}

// maxLate bounds the delay of reading a row. If the previous row seems to end more than maxLate after the current row, the clock was set back.
const maxLate = 10 * int64(time.Second)

// maxLog bounds the time that a log may cover: ten years.
const maxLog = 10 * 365 * 24 * int64(time.Hour)

// close ends the open group, if any, for a reason, and puts it into the batch, with its lines acknowledged. Calls with ids of other traces leave as groups of
// their own.
func (h *handler) close(why string) {
	g := h.open
	if g == nil {
		return
	}
	h.open = nil
	st := &h.state
	st.More = g.kind == passGroup && (why == spans.PassEndMax || why == spans.PassEndTimeout)
	// A pass is refused as a whole, so its lines are one place; where positions are only for a reader, each call has its own.
	for i, held := range g.held { // a line of each call
		if h.stream.Release(held); h.r.Locates() {
			g.calls[i].place = h.stream.Place()
		}
	}
	if !h.r.Locates() {
		of := h.stream.Place()
		for i := range g.calls {
			g.calls[i].place = of
		}
	}
	var others []*group
	if g.carried {
		others = g.apart(h.r.groups.Get)
	}
	g.name(h.run, st.Session)
	st.Last, st.Summed = g.root, false
	if g.kind == sessionGroup {
		st.Root = g.root
	}
	g.finish(why)
	h.batch.groups = append(h.batch.groups, g)
	for _, o := range others {
		o.name(h.run, st.Session)
		o.finish(why)
		h.batch.groups = append(h.batch.groups, o)
	}
}

// Expire ends a group and a summary that began before the given time.
func (h *handler) Expire(before time.Time) {
	ns := before.UnixNano()
	if h.batch == nil {
		h.batch = h.r.newBatch()
	}
	if h.open != nil && h.open.since < ns {
		h.close(spans.PassEndTimeout)
	}
	if h.final != nil && h.final.since < ns {
		h.endSummary()
	}
}

// Cut ends the current batch, and returns it for delivery; nil: nothing to send. The first batch with calls opens the run's span.
func (h *handler) Cut() tail.Delivery {
	b := h.batch
	if b == nil {
		return nil
	}
	h.batch = nil
	if len(b.groups)+len(b.finals) == 0 {
		b.Done()
		return nil
	}
	b.run = h.run
	if !h.runDone && len(b.groups) > 0 {
		h.runDone = true
		first := &b.groups[0].calls[0]
		h.r.OpenRun(h.r.cfg.Opens(h.stream.Path(), first.start, timeSource(first.observed)))
	}
	return h.r.Deliver(b)
}

// InOrder: groups are numbered, and the time of a row follows from its neighbours.
func (h *handler) InOrder() {}

// Save returns the state before the first held line, from which a restart reads again; nil: none.
func (h *handler) Save() []byte {
	s := h.saved
	if h.open == nil && h.final == nil {
		s = h.state
		s.Parser = h.parser.Save()
	}
	if s.Parser == nil {
		return nil
	}
	b, err := json.Marshal(&s)
	if err != nil {
		return nil // cannot be: numbers, texts and bytes
	}
	return b
}

// Restore reads the result of Save. A damaged state is passed over.
func (h *handler) Restore(saved []byte) {
	var s state
	if json.Unmarshal(saved, &s) != nil {
		return
	}
	h.parser.Restore(s.Parser)
	h.state, h.file = s, 1 // the number of a stream's first file
}
