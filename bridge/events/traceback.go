package events

import (
	"bytes"
	"regexp"
	"strings"
)

// traceback is a Python traceback in progress (traceback.py of CPython: "Traceback (most recent call last):", frames, "Type: message").
type traceback struct {
	where       place // of its first line
	line        int64 // number of its first line
	time        int64 // ns since the epoch: of its first line; 0: unknown
	first, last Frame // outermost and innermost frame; empty: none yet
	saving      bool  // a frame saves or loads a checkpoint
	lines       int   // lines so far, with a surcharge for foreign lines
	indent      int   // of its frames
	done        bool  // the exception was emitted; what is indented below is still of the traceback
}

var (
	frameLine     = regexp.MustCompile(`^\s*File "([^"]+)", line (\d+)(?:, in (.+))?`)
	exceptionLine = regexp.MustCompile(`^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: (.*))?$`)
	savingFunc    = regexp.MustCompile(`(?i)checkpoint|\bsave\b|save_|load_model|state_dict|torch/serialization\.py|safetensors`)
	launcherFile  = regexp.MustCompile(`/bin/(?:torchrun|accelerate|deepspeed|llamafactory-cli)$|torch/distributed/(?:run|launch|launcher/\w+)\.py$|` +
		`accelerate/commands/|runpy\.py$`)
	launcherEnd = regexp.MustCompile(`torch/distributed/(?:run|launch|launcher/\w+|elastic/[\w/]+)\.py$|accelerate/commands/|` +
		`/bin/(?:torchrun|accelerate|deepspeed)$|subprocess\.py$`)
	tracebackText = []byte("Traceback (most recent call last)")
)

// begins says whether a traceback begins in the line.
func begins(text []byte) bool { return bytes.Contains(text, tracebackText) }

const (
	failedLines  = 6    // of torchrun's summary, between the rank and its traceback
	traceLines   = 4000 // of one traceback
	foreignLine  = 50   // lines that a foreign line counts as: a few are tolerated
	mostOfReason = 300  // bytes of an exception's message
)

// uncaught is the form of a traceback that matches no other form.
var uncaught = &Form{
	Name: "python.traceback", Writer: "CPython traceback.py", Class: ClassException, Text: "Traceback (most recent call last)",
	Example: "Traceback (most recent call last): …",
}

// beginTrace begins the traceback of a process. An older one of the process is over.
func (s *Scanner) beginTrace(p *place) {
	k := p.key()
	t := s.traces[k]
	if t != nil {
		s.emitTrace(t)
	}
	if s.traces == nil {
		s.traces = make(map[key]*traceback)
	}
	if len(s.traces) >= openMost && t == nil { // no room: any older one is given up
		for k, old := range s.traces {
			s.emitTrace(old)
			delete(s.traces, k)
			break
		}
	}
	where := *p
	where.text = nil
	// Launchers print the traceback of a process below the line that names the process, torchrun as "  traceback : Traceback (most recent call last):".
	summaryIsNear := s.failed.line > 0 && s.failed.line > s.lines-failedLines
	if summaryIsNear && bytes.HasPrefix(bytes.TrimLeft(p.text, " "), []byte("traceback ")) {
		where.rank, where.host = s.failed.rank, s.failed.host
	}
	if s.spawned.line > 0 && s.spawned.line == s.lines-1 {
		where.local = s.spawned.rank
	}
	s.traces[k] = &traceback{where: where, line: s.lines, time: p.time}
}

// inTrace takes a line that is part of the traceback of its process: the first line, a frame or a line below a frame, an empty line, the exception at the end,
// of which an event is made, or a note indented below the exception. Any other line is foreign, and not taken. After traceLines lines, of which a foreign one
// without a form counts as foreignLine, the traceback ends without its exception. found and hit: the forms whose texts the line holds, if any.
func (s *Scanner) inTrace(p *place, found *hits, hit bool) (taken bool) {
	if begins(p.text) {
		s.beginTrace(p)
		return true
	}
	k := p.key()
	t := s.traces[k]
	if t == nil {
		return false
	}
	text := p.text
	t.lines++
	indent := indentOf(text)
	switch m := frameLine.FindSubmatch(text); {
	case t.lines > traceLines:
		s.emitTrace(t)
		delete(s.traces, k)
		return false
	case m != nil:
		f := Frame{string(m[1]), number(string(m[2]), 0), string(m[3])}
		if t.first.File == "" {
			t.first, t.indent = f, indent
		}
		t.last = f
		t.saving = t.saving || savingFunc.Match(m[1]) || savingFunc.Match(m[3])
		return true
	case len(bytes.TrimSpace(text)) == 0:
		return true
	case indent > max(t.indent-2, 0), indent > 0 && t.first.File == "":
		return true // the source below a frame; frames are indented by 2 more than the exception
	case text[0] == '^', text[0] == '~':
		return true // the marks below the source
	}
	if t.done { // a line at the margin behind the exception: the traceback is over
		delete(s.traces, k)
		return false
	}
	text = bytes.TrimLeft(text, " \t")
	m := exceptionLine.FindSubmatch(text)
	named := m != nil && looksLikeException(m[1])
	// A type with an unusual name counts where a message follows, unless the line is one of a form and there was no frame yet.
	withMessage := m != nil && len(m[2]) > 0
	ends := named || withMessage && (!hit || t.first.File != "")
	if !ends {
		if !hit {
			t.lines += foreignLine
		}
		return false
	}
	s.endTrace(t, p, text, m, found, hit)
	return true
}

// endTrace emits the event of a traceback at its exception, text, of which m has the type and the message. Where the line is of a form as well, the event is of
// that form, with what the traceback says.
func (s *Scanner) endTrace(t *traceback, p *place, text []byte, m [][]byte, found *hits, hit bool) {
	t.where.text = text
	e := s.begin(uncaught, &t.where)
	e.Line, e.Exception, e.What = t.line, string(m[1]), clip(string(m[2]))
	if e.Time == 0 {
		e.Time = p.time
	}
	t.addTo(&e)
	matched := false
	if hit {
		before := len(s.out)
		matched = s.match(&t.where, found, t)
		if len(s.out) > before {
			last := &s.out[len(s.out)-1]
			last.Line, last.Exception = t.line, string(m[1])
			if last.What == "" {
				last.What = clip(string(m[2]))
			}
			if last.Class == ClassDisk && t.saving { // the checkpoint had no room
				last.Class = ClassCheckpoint
			}
		}
	}
	if !matched {
		if t.saving && e.Class == ClassException && !strings.HasSuffix(e.Exception, "Interrupt") { // an interrupt may hit any function
			e.Class = ClassCheckpoint
		}
		s.emit(&e, text)
	}
	// Kept for notes that are indented below the exception.
	t.first = Frame{}
	t.done = true
	t.lines = 0
}

// indentOf is the number of blanks and tabs before a text.
func indentOf(text []byte) int { return len(text) - len(bytes.TrimLeft(text, " \t")) }

// addTo adds the innermost frame to an event. The exception of a launcher only reports the end of a rank.
func (t *traceback) addTo(e *Event) {
	e.Last = t.last
	if e.Class == ClassException && t.launcher() {
		e.Class = ClassTeardown
	}
}

// launcher says whether the traceback is of the program that started the ranks.
func (t *traceback) launcher() bool {
	return launcherFile.MatchString(t.first.File) && launcherEnd.MatchString(t.last.File)
}

// emitTrace emits the event of a traceback that ended without its exception, if there was a frame.
func (s *Scanner) emitTrace(t *traceback) {
	if t.done || t.last.File == "" {
		return
	}
	e := s.begin(uncaught, &t.where)
	e.Line, e.Time = t.line, t.time
	if t.saving {
		e.Class = ClassCheckpoint
	}
	t.addTo(&e)
	s.emit(&e, []byte("Traceback … "+t.last.String()))
}

// looksLikeException says whether a word can be the type of an exception: by a usual ending, or by the dots of a module's name ("queue.Empty").
func looksLikeException(name []byte) bool {
	for _, end := range []string{
		"Error", "Exception", "Interrupt", "Exit", "Warning", "Timeout", "Refused", "Reset", "Died", "Found", "Failed", "Failure", "StopIteration", "Expired",
	} {
		if bytes.HasSuffix(name, []byte(end)) {
			return true
		}
	}
	return bytes.Count(name, []byte(".")) > 0
}

// clip bounds the message of an exception.
func clip(s string) string {
	if len(s) > mostOfReason {
		s = strings.ToValidUTF8(s[:mostOfReason], "") + "…"
	}
	return s
}
