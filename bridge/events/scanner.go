package events

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"github.com/trainbridge/trainbridge/bridge/clock"
)

// Scanner finds the events in the lines of one log. It is not safe for concurrent use.
type Scanner struct {
	placer
	rank, local int64              // by the path; -1: unknown
	lines       int64              // number of lines so far
	last        int64              // ns: the last stamp
	open        []*pending         // events that continue, oldest first
	traces      map[key]*traceback // the traceback in progress of each process
	counts      [maxForms]uint16   // events of each form, by index in Forms
	enough      hits               // forms with mostOfForm events
	failed      failed             // by torchrun
	spawned     failed             // by torch.multiprocessing
	pod         string             // of kubectl describe's lines; "": none yet
	ignored     struct {           // the last line with ignoredText: the traceback on the next line ends nothing
		key  key
		line int64
	}
	imported int64   // number of the line of the last import that failed; 0: none, or the log went on
	out      []Event // of the current Line or Flush
}

// pending is an event that continues on the following lines.
type pending struct {
	key   key
	event Event
	where place
	text  []byte // of all lines so far, with a blank between
	lines int
}

// failed is the process that a launcher's line named last. A traceback that follows is of this process.
type failed struct {
	rank, line int64 // rank of the process, of torch.multiprocessing on the node; number of the launcher's line, 0: none yet
	host       string
}

const (
	// mostOfForm bounds the events of one form in a log: of a warning that comes a million times, the first thousand are evidence enough, and the rest costs
	// little. Events that waited for further lines are not counted.
	mostOfForm  = 1000
	importLines = 10 // after an import that failed, after which a program counts as going on
	openLines   = 24 // most lines of an event
	openMost    = 64 // most pending events, and most tracebacks
)

var shared = sync.OnceValue(func() *filter { return newFilter(Forms) })

// NewScanner makes the scanner of a log. Stamps without a zone are of zone; wrote is when the log was written last, for stamps without a year.
func NewScanner(path string, zone *time.Location, wrote time.Time) *Scanner {
	if zone == nil {
		zone = time.Local
	}
	s := &Scanner{placer: placer{stamps: clock.NewStamps(zone), zone: zone, wrote: wrote}}
	s.rank, s.local = pathRank(path)
	return s
}

// Record counts a line that is a record of its log, and no event. The time of the line is noted only while events wait: otherwise the cost is one comparison.
func (s *Scanner) Record(text []byte) {
	s.lines++
	if s.Busy() {
		if ns := s.when(text); ns != 0 {
			s.last = ns
		}
	}
}

// Line reads a line and returns the events that end with it, valid until the next call.
func (s *Scanner) Line(text []byte) []Event {
	s.lines++
	s.out = s.out[:0]
	if len(text) > maxLine {
		text = text[:maxLine]
	}
	var found hits
	hit, trace := shared().find(text, &found)
	hit = hit && found.without(&s.enough)
	if !hit && !trace && s.imported > 0 && s.lines-s.imported >= importLines {
		s.imported = 0
		p := s.of(text)
		e := s.begin(&wentOn, &p)
		s.emit(&e, p.text)
		return s.out
	}
	if !hit && !trace && !s.Busy() {
		return nil
	}
	p := s.of(text)
	if p.time == 0 {
		p.time = s.when(text)
	}
	was := s.last
	if p.time != 0 {
		s.last = p.time
	}
	// A line is the rest of an event, else a part of a traceback, else perhaps an event of its own.
	if s.goesOn(&p, &found, hit) {
		return s.out
	}
	switch {
	case s.inTrace(&p, &found, hit):
	case hit && !s.match(&p, &found, nil):
		s.ofRank(&p, text)
	}
	if len(s.out) == 1 && s.out[0].Class == ClassSlowing && !s.Busy() { // the job goes on for long: a later line without a stamp has another time
		s.last = was
	}
	return s.out
}

// maxLine bounds the part of a line that is looked at.
const maxLine = 64 << 10

// Busy reports whether events wait for more lines.
func (s *Scanner) Busy() bool { return len(s.open)+len(s.traces) > 0 }

// Lines returns the number of lines looked at.
func (s *Scanner) Lines() int64 { return s.lines }

// Flush ends the events that wait for more lines, and returns them.
func (s *Scanner) Flush() []Event {
	s.out = s.out[:0]
	for len(s.open) > 0 {
		s.settle(0)
	}
	for k, t := range s.traces {
		s.emitTrace(t)
		delete(s.traces, k)
	}
	return s.out
}

// match makes the event of the first form that the line matches, and emits it, or keeps an event of an open form (Form.Open) until its other lines are there.
// It reports whether a form matched. found are the forms whose texts the line has. trace: the line ends a traceback, whose frames the event gets; nil: none.
func (s *Scanner) match(p *place, found *hits, trace *traceback) (matched bool) {
	found.each(func(i int) bool {
		f := Forms[i]
		e := s.begin(f, p)
		ok, whole := e.read(p.text)
		// textAlone: the pattern may match once the next lines are there. The text of a form at the end of a line has lost its last blank.
		textAlone := !ok && bytes.Contains(p.text, bytes.TrimRight([]byte(f.Text), " "))
		if f.Open && (ok && !whole || textAlone) {
			if trace != nil {
				trace.addTo(&e)
			}
			s.wait(p, e)
			matched = true
			return false
		}
		if !ok {
			return true
		}
		matched = true
		if s.counts[i]++; s.counts[i] >= mostOfForm {
			s.enough.set(int32(i))
		}
		if trace != nil {
			trace.addTo(&e)
		}
		s.emit(&e, p.text)
		return false
	})
	return matched
}

// begin returns an event of a form with the values of its line's prefix; all else is unknown.
func (s *Scanner) begin(f *Form, p *place) Event {
	return Event{
		Form: f, Class: f.Class, Line: s.lines, Rank: p.rank, Local: p.local, GroupRank: -1, Host: p.host, PID: p.pid, Device: -1, Seq: -1,
		Enqueued: -1, Completed: -1, Time: p.time, Own: p.time != 0,
	}
}

// read fills the event from its line. ok: the line is of the event's form. whole: every group of the pattern matched, so following lines can add nothing.
func (e *Event) read(text []byte) (ok, whole bool) {
	if e.Form == uncaught || e.Form == headless {
		return true, true
	}
	if e.Form.re == nil {
		return bytes.Contains(text, []byte(e.Form.Text)), true
	}
	m := e.Form.re.FindSubmatchIndex(text)
	if m == nil {
		return false, false
	}
	whole = true
	for i, name := range e.Form.groups {
		switch {
		case name == "":
		case m[2*i] < 0:
			whole = false
		default:
			e.set(name, string(text[m[2*i]:m[2*i+1]]))
			if name == "tasks" && m[2*i+1] == len(text) { // a list, which may go on with the next line
				whole = false
			}
		}
	}
	return true, whole
}

// emit finishes an event and adds the event to the answer: with the writer's own prefix in the text, the host of a system log, the pod (whose name is its
// host's) of a line of Kubernetes, the rank of the log's path, and the time of the last stamp, each where the event has none yet.
func (s *Scanner) emit(e *Event, text []byte) {
	e.header(text)
	if e.Host == "" {
		if m := syslogStamp.FindSubmatch(text); m != nil {
			e.Host = string(m[6])
		} else if m := kernelHost.FindSubmatch(text); m != nil {
			e.Host = string(m[1])
		} else if strings.HasPrefix(e.Form.Name, "kubernetes.") {
			if e.Host = s.pod; podWord.Match(text) {
				e.Host = string(bytes.Join(podWord.FindSubmatch(text)[1:], nil))
			}
		}
	}
	if e.Rank < 0 {
		e.Rank = s.rank
	}
	if e.Local < 0 {
		e.Local = s.local
	}
	if e.Time == 0 {
		e.Time = s.when(text)
		if e.Time != 0 {
			e.Own, s.last = true, e.Time
		} else {
			e.Time = s.last
		}
	}
	// A traceback that follows is of the process named here.
	if e.Class == ClassSummary && len(e.Ranks) == 1 && e.Local >= 0 {
		s.failed = failed{e.Ranks[0], s.lines, e.Host}
	}
	switch e.Form.Name {
	case "spawn.error":
		s.spawned = failed{e.Local, s.lines, ""}
	case "kubernetes.pod":
		s.pod = e.Host
	}
	if len(text) > MaxText {
		text = text[:MaxText]
	}
	e.Text = strings.ToValidUTF8(string(text), "?")
	s.out = append(s.out, *e)
}

// header reads the writers' own prefixes: process group and rank of PyTorch, host, process and device of NCCL. Of these, only the group replaces known values.
func (e *Event) header(text []byte) {
	if m := groupWord.FindSubmatch(text); m != nil {
		e.Group, e.GroupRank = groupName(string(m[1])), number(string(m[2]), -1)
	}
	if m := rankWord.FindSubmatch(text); m != nil && e.Rank < 0 {
		e.Rank = number(string(bytes.Join(m[1:], nil)), -1)
	}
	if m := ncclHost.FindSubmatch(text); m != nil {
		if e.Host == "" {
			e.Host = string(m[1])
		}
		if e.PID == 0 {
			e.PID = number(string(m[2]), 0)
		}
		if e.Device < 0 {
			e.Device = number(string(m[4]), -1)
		}
	}
}

// groupName returns the name of a process group as printed by all its ranks: "PG ID 0 PG GUID 0(default_pg) " is "0(default_pg)", "PG 0 " is "0".
func groupName(s string) string {
	s = strings.TrimSpace(s)
	if _, guid, ok := strings.Cut(s, "GUID "); ok {
		return guid
	}
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(s, "PG"), " ID"))
}

// wait keeps an event of an open form until its lines are complete. Beyond openMost the oldest event is emitted as it is.
func (s *Scanner) wait(p *place, e Event) {
	if len(s.open) >= openMost {
		s.settle(0)
	}
	s.open = append(s.open, &pending{key: p.key(), event: e, where: *p, text: bytes.Clone(p.text), lines: 1})
}

// goesOn adds a line to the pending event of its process. Lines are added as long as the event's pattern matches more with the line than without, or does not
// match yet, up to openLines; then the event is settled. taken: the line has no meaning of its own.
func (s *Scanner) goesOn(p *place, found *hits, hit bool) (taken bool) {
	for i, w := range s.open {
		if w.key != p.key() {
			// A wrapped line continues without the prefix: as the second line only.
			if p.rank >= 0 || p.local >= 0 || p.pid != 0 || w.lines > 1 {
				continue
			}
		}
		if w.lines >= openLines || len(w.text) > maxLine {
			s.settle(i)
			return false
		}
		before := w.event.reach(w.text)
		w.text = append(append(w.text, ' '), p.text...)
		w.lines++
		switch after := w.event.reach(w.text); {
		case after > before: // the line says more; with a form's text, the line may be an event of its own, too
			again := w.event
			if again.Ranks = nil; !hit { // with a form's text, both events are read to their ends
				if _, whole := again.read(w.text); whole {
					s.settle(i)
				}
			}
			return !hit
		case before > 0: // nothing more came of the line
			w.text = w.text[:len(w.text)-len(p.text)-1]
			s.settle(i)
			return false
		}
		// No match so far: the pattern may need more lines, possibly with the text of a form of the same class within.
		return !hit || first(found) == w.event.Class
	}
	return false
}

// first returns the class of the first form whose text a line has.
func first(found *hits) (of Class) {
	found.each(func(i int) bool {
		of = Forms[i].Class
		return false
	})
	return of
}

// reach measures how much of the text the pattern matches, to compare two texts by: it grows with each group that matches, and with the places where groups
// end. 0: no match.
func (e *Event) reach(text []byte) (n int) {
	m := e.Form.re.FindSubmatchIndex(text)
	for i := range len(m) / 2 {
		if m[2*i] >= 0 {
			n += 1 + m[2*i+1]
		}
	}
	return n
}

// settle emits the pending event at index i, read again from all of its lines.
func (s *Scanner) settle(i int) {
	w := s.open[i]
	s.open = append(s.open[:i], s.open[i+1:]...)
	e := w.event
	e.Ranks = nil  // read appends
	e.read(w.text) // without a match, as of a line cut off, the event keeps its class alone
	s.emit(&e, w.text)
}

// Again makes an event from the form, the class and the text in a span, as a Scanner read them from the log (the caller sets the fields of the prefix). An
// unknown form, as of a later version, counts as a traceback.
func Again(form string, class Class, text string) Event {
	f := uncaught
	if form == headless.Name {
		f = headless
	}
	for _, known := range Forms {
		if known.Name == form {
			f = known
			break
		}
	}
	s := Scanner{}
	e := s.begin(f, &place{rank: -1, local: -1})
	e.read([]byte(text))
	e.Class = class
	e.header([]byte(text))
	e.Text = text
	return e
}
