package perfetto

import (
	"cmp"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

const (
	// maxProcesses bounds the process tracks: further hosts and jobs share a track.
	maxProcesses = 4096
	// maxTracks bounds the remembered tracks, with lanes and counters. At the bound all are forgotten: a later track of the same name has new lanes, which
	// Perfetto draws as the same track.
	maxTracks = 1 << 16
	// maxHomes bounds the spans whose track is known to their children, current and previous.
	maxHomes = 1 << 15
)

// owner is the owner of a process track.
type owner struct{ service, run, host string }

// process is a process track: the work of a run of a job on a host, or everywhere.
type process struct {
	owner
	uuid uint64
	// Of the clock of the host, against the reference host's, as written last.
	clock clock
	// Of a whole job: the reference host of the clock, and whether times were moved, by its collectives.
	reference string
	corrected bool
}

// who identifies a track of a process by who did the work on it.
type who struct {
	process *process
	what    what
	number  int64  // a rank, a process id; −1: not known
	text    string // a communicator, a format of logs, a GPU, by what; "": none
}

// what is the kind of a track.
type what uint8

const (
	job          what = iota
	worker            // of TransferQueue, by process id
	steps             // of a training log, by rank and format
	stepRank          // the parts of steps of a single rank
	client            // of RPCs, by process id
	server            // likewise
	communicator      // its collectives
	rank              // of a communicator
	joined            // spans that step_join has made, by name
	breakdowns        // of windows
	proxy             // a network proxy of NCCL, by process id
	other             // spans of any other kind
	verdicts          // instants, likewise the next two
	events
	clocks
	gpu    // the counters of a GPU
	values // counters of no GPU
)

// name is the visible name of the track.
func (w *who) name() string {
	number := ""
	if w.number >= 0 {
		number = " " + strconv.FormatInt(w.number, 10)
	}
	switch w.what {
	case job:
		return "run"
	case worker:
		return "TransferQueue worker" + number
	case steps:
		if number != "" {
			number = ", rank" + number
		}
		return "training" + of(" of ", w.text) + number
	case stepRank:
		return "parts of steps, rank" + number
	case client:
		return "RPC client" + number
	case server:
		return "RPC server" + number
	case communicator:
		return "communicator" + of(" ", w.text)
	case rank:
		return "rank" + number + of(" of ", w.text)
	case joined:
		return "joined" + of(": ", w.text)
	case breakdowns:
		return "where the time went"
	case proxy:
		return "network proxy" + number
	case verdicts:
		return "verdicts"
	case events:
		return "events"
	case clocks:
		return "clock"
	case gpu:
		return w.text
	case values:
		return "values"
	}
	return "spans" + number
}

// of is text with before, or "" for no text.
func of(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// tracks are the described tracks.
type tracks struct {
	*packets
	uuid      uint64 // the last given
	processes map[owner]*process
	known     map[who]*track
	counters  map[string]uint64
	kept      int    // tracks, lanes and counters
	used      uint64 // slices so far, the clock for the use of lanes
	// The tracks of spans with possible children, current and previous: when homes is full, it becomes before, and the former before is forgotten.
	homes, before map[pcommon.SpanID]*track
}

// init makes the tracks empty.
func (t *tracks) init(p *packets) {
	t.packets = p
	t.processes = make(map[owner]*process)
	t.homes, t.before = make(map[pcommon.SpanID]*track), make(map[pcommon.SpanID]*track)
	t.forgetTracks()
}

// forgetTracks forgets all but the processes: see maxTracks.
func (t *tracks) forgetTracks() {
	t.known, t.counters, t.kept = make(map[who]*track), make(map[string]uint64), 0
}

// grow makes room for another track, lane or counter.
func (t *tracks) grow() {
	if t.kept >= maxTracks {
		t.forgetTracks()
	}
	t.kept++
}

// next is a new uuid of a track.
func (t *tracks) next() uint64 {
	t.uuid++
	return t.uuid
}

const timesAsLogged = "Times are as the logs have them, on one axis. Where the clocks of hosts were compared, the track \"clock\" says how " +
	"far apart they are; no time is moved by it unless nccl.clock.corrected says so."

// process finds the process track of an owner. If there is none, it writes a packet that describes a new track to Perfetto. Beyond maxProcesses owners share a
// track.
func (t *tracks) process(o owner) *process {
	if p := t.processes[o]; p != nil {
		return p
	}
	if len(t.processes) >= maxProcesses {
		o = owner{service: "further jobs and hosts"}
		if p := t.processes[o]; p != nil {
			return p
		}
	}
	p := &process{owner: o, uuid: t.next()}
	t.processes[o] = p
	name := cmp.Or(o.service, o.host, "unnamed")
	if o.service != "" {
		name += of(" on ", o.host)
	}
	name += of(", run ", o.run)
	t.begin()
	raw, at := open(t.raw, packetTrackDescriptor)
	raw = appendUint(raw, trackUUID, p.uuid)
	raw = appendText(raw, trackDescription, timesAsLogged, maxText)
	raw, inner := open(raw, trackProcess)
	raw = appendUint(raw, processPID, uint64(len(t.processes))) // the process ids of several hosts may be the same: a number of our own tells tracks apart
	raw = shut(appendText(raw, processName, name, maxName), inner)
	t.raw = shut(raw, at)
	t.end()
	return p
}

// describe writes a packet that describes a new track below another to Perfetto, and returns its uuid. counter: the track is a counter in the unit, else of
// slices.
func (t *tracks) describe(parent uint64, name, unit string, counter bool) uint64 {
	uuid := t.next()
	t.begin()
	raw, at := open(t.raw, packetTrackDescriptor)
	raw = appendUint(raw, trackUUID, uuid)
	raw = appendUint(raw, trackParent, parent)
	raw = appendText(raw, trackName, name, maxName)
	if counter {
		var inner int
		raw, inner = open(raw, trackCounter)
		raw = shut(appendText(raw, counterUnit, unit, maxName), inner)
	}
	t.raw = shut(raw, at)
	t.end()
	return uuid
}

// track finds the track of who, or makes one. Nothing is written: lanes are described when their first slice comes.
func (t *tracks) track(w who) *track {
	if of := t.known[w]; of != nil {
		return of
	}
	t.grow()
	w.text = strings.Clone(w.text) // the text is a part of the message, whose memory the track would keep
	of := &track{parent: w.process.uuid, name: w.name(), peers: w.text}
	t.known[w] = of
	return of
}

// lane is the uuid of a lane of the track where the slice of a span has room, a new one if none has.
func (t *tracks) lane(of *track, id, parent pcommon.SpanID, start, end int64) uint64 {
	l := of.place(id, parent, start, end)
	if l == nil {
		if len(of.lanes) < maxLanes { // else the new lane replaces a lane (add)
			t.grow()
		}
		l = of.add(t.describe(of.parent, of.name, "", false), id, start, end)
	}
	t.used++
	l.used = t.used
	return l.uuid
}

// single is the uuid of a track of instants or counters, which needs a single lane.
func (t *tracks) single(w who) uint64 {
	of := t.track(w)
	if len(of.lanes) == 0 {
		of.lanes = append(of.lanes, lane{uuid: t.describe(of.parent, of.name, "", false)})
	}
	return of.lanes[0].uuid
}

// home is the track of an earlier span, or nil.
func (t *tracks) home(id pcommon.SpanID) *track {
	if id.IsEmpty() {
		return nil
	}
	if of := t.homes[id]; of != nil {
		return of
	}
	return t.before[id]
}

// settle notes the track of a span, for the children that may come.
func (t *tracks) settle(id pcommon.SpanID, of *track) {
	if len(t.homes) >= maxHomes {
		t.homes, t.before = t.before, t.homes
		clear(t.homes)
	}
	t.homes[id] = of
}

// source is what a resource says of who did the work of its spans.
type source struct {
	owner
	process *process // of owner; nil: not asked for yet
	pid     int64    // −1: not known, likewise rank
	rank    int64
	format  string // of the log
	time    string // where times come from
}

// read reads the attributes of a resource.
func (s *source) read(attrs pcommon.Map) {
	*s = source{pid: -1, rank: -1}
	for name, v := range attrs.All() {
		switch name {
		case spans.AttrServiceName:
			s.service = spans.ValueText(v)
		case spans.AttrRunID:
			s.run = spans.ValueText(v)
		case spans.AttrHostName:
			s.host = spans.ValueText(v)
		case spans.AttrProcessPID:
			s.pid = view.IntOf(v).Or(-1)
		case spans.AttrRank:
			s.rank = view.IntOf(v).Or(-1)
		case spans.AttrSource:
			s.format = spans.ValueText(v)
		case spans.AttrTimeSource:
			s.time = spans.ValueText(v)
		}
	}
}

// where is what a span itself, else its resource, says of who did its work.
type where struct {
	host, comm, format  string // comm: the communicator
	pid, rank, commRank int64  // commRank: the rank in the communicator; −1: not known
	reference           string // the host whose clock others are compared with, of a collective; "": none
	corrected           bool   // times were moved by the clocks
	joined              bool   // step_join has made the span
}

// read reads the attributes of a span of the resource s.
func (w *where) read(attrs pcommon.Map, s *source) {
	*w = where{host: s.host, pid: s.pid, rank: s.rank, format: s.format, commRank: -1}
	for name, v := range attrs.All() {
		switch name {
		case spans.AttrHostName:
			w.host = spans.ValueText(v)
		case spans.AttrProcessPID:
			w.pid = view.IntOf(v).Or(-1)
		case spans.AttrRank:
			w.rank = view.IntOf(v).Or(-1)
		case spans.AttrSource:
			w.format = spans.ValueText(v)
		case spans.AttrNCCLCommRank:
			w.commRank = view.IntOf(v).Or(-1)
		case spans.AttrNCCLCommName:
			w.comm = spans.ValueText(v)
		case spans.AttrNCCLCommID:
			w.comm = cmp.Or(w.comm, spans.ValueText(v))
		case spans.AttrNCCLClockReference:
			w.reference = spans.ValueText(v)
		case spans.AttrNCCLClockCorrected:
			w.corrected = v.Bool()
		case spans.AttrJoinBy:
			w.joined = true
		}
	}
}

// of decides the track of a span: parts of a call, step or collective (below), and sums of siblings without spans, are on the track of their parent, if that is
// known; everything else is on the track of who did the work.
func (t *tracks) of(span ptrace.Span, kind view.Kind, s *source) *track {
	home := t.home(span.ParentSpanID())
	if home != nil && below(span, kind) {
		if kind != view.KindPhase && kind != view.KindProxyStep { // which have no children
			t.settle(span.SpanID(), home)
		}
		return home
	}
	var at where
	at.read(span.Attributes(), s)
	if kind == view.KindAggregate && home != nil && !at.joined { // stands for siblings that have no spans
		return home
	}
	w := at.who(span, kind)
	if kind == view.KindRank && home != nil { // the collective alone has the communicator
		w.text = home.peers
	}
	// The process of the resource is found once, with its first span; a span may name another host.
	w.process = s.process
	if w.process == nil || at.host != s.host {
		o := s.owner
		o.host = at.host
		w.process = t.process(o)
		if at.host == s.host {
			s.process = w.process
		}
	}
	if kind == view.KindCollective && at.reference != "" { // clock needs it for the ranks of any host
		all := t.process(owner{service: s.service, run: s.run})
		all.reference, all.corrected = at.reference, at.corrected
	}
	of := t.track(w)
	switch kind {
	case view.KindStage, view.KindPartRank, view.KindBreakdown: // no child is on their track
	default:
		t.settle(span.SpanID(), of)
	}
	return of
}

// below says whether a span goes to the track of its parent. Work of the server does not: it happened elsewhere.
func below(span ptrace.Span, kind view.Kind) bool {
	switch kind {
	case view.KindPhase, view.KindProxyStep, view.KindPart, view.KindChannel, view.KindProxyOp:
		return true
	case view.KindCallPart:
		return span.Name() != spans.SpanRPCServer
	}
	return false
}

// who is the track of a span, without its process.
func (w *where) who(span ptrace.Span, kind view.Kind) who {
	switch kind {
	case view.KindRun:
		return who{what: job, number: -1}
	case view.KindFunction, view.KindStage:
		return who{what: worker, number: w.pid}
	case view.KindStep, view.KindPart, view.KindRanks, view.KindEvaluation, view.KindSummary:
		return who{what: steps, number: w.rank, text: w.format}
	case view.KindPartRank:
		return who{what: stepRank, number: w.rank}
	case view.KindPass, view.KindSession, view.KindCalls, view.KindCall, view.KindRPCSummary:
		return who{what: client, number: w.pid}
	case view.KindCallPart:
		if span.Name() == spans.SpanRPCServer {
			return who{what: server, number: w.pid}
		}
		return who{what: client, number: w.pid}
	case view.KindCollective:
		if w.commRank >= 0 { // a Send or Recv
			return who{what: rank, number: w.commRank, text: w.comm}
		}
		return who{what: communicator, number: -1, text: w.comm}
	case view.KindRank:
		return who{what: rank, number: w.commRank}
	case view.KindRoot, view.KindJoined, view.KindAggregate:
		return who{what: joined, number: -1, text: span.Name()}
	case view.KindBreakdown:
		return who{what: breakdowns, number: -1}
	case view.KindProxyOp, view.KindProxyStep:
		return who{what: proxy, number: w.pid}
	}
	return who{what: other, number: w.pid}
}
