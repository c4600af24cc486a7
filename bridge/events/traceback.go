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
	headless    bool  // its first lines are not in the log
	ignored     bool  // the interpreter went on, as after an error in a destructor
	done        bool  // the exception was emitted; what is indented below is still of the traceback
}

var (
	frameLine     = regexp.MustCompile(`^\s*File "([^"]+)", line (\d+)(?:, in (.+))?`)
	exceptionLine = regexp.MustCompile(`^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: (.*))?$`)
	savingFunc    = regexp.MustCompile(`(?i)checkpoint|\bsave\b|save_|load_model|state_dict|torch/serialization\.py|safetensors`)
	launcherFile  = regexp.MustCompile(`/bin/(?:torchrun|accelerate|deepspeed|llamafactory-cli|horovodrun)$|torch/distributed/(?:run|launch|launcher/\w+)\.py$|` +
		`accelerate/commands/|runpy\.py$`)
	launcherEnd = regexp.MustCompile(`torch/distributed/(?:run|launch|launcher/\w+|elastic/[\w/]+)\.py$|accelerate/commands/|` +
		`/bin/(?:torchrun|accelerate|deepspeed)$|subprocess\.py$|horovod/runner/\w+\.py$`)
	// The process of a task of Ray, before the frames of that process (RayTaskError in python/ray/exceptions.py).
	rayCall       = regexp.MustCompile(`^(?:[\w.]+\(\w+\): )?ray::[\w.<>]+\(\) \(pid=(\d+), ip=([^,)\s]+)`)
	tracebackText = []byte("Traceback (most recent call last)")
	rankError     = regexp.MustCompile(`\[rank\d+\]: (?:[A-Za-z_]\w*\.)*\w+Error: `)
)

// begins reports whether a traceback begins in the line.
func begins(text []byte) bool { return bytes.Contains(text, tracebackText) }

const frameText = `File "`

// traceTexts are the texts of lines of a traceback: the first line, a frame, also where the first line is not in the log, and Ray's call before frames.
var traceTexts = []string{string(tracebackText), frameText, "() (pid=", ignoredText}

// ignoredText begins the line before the traceback of an error in a destructor or a callback, after which CPython goes on (PyErr_WriteUnraisable).
const ignoredText = "Exception ignored "

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

// headless is the form of an exception whose traceback lacks its first lines in the log: more may have been lost than these.
var headless = &Form{
	Name: "python.headless", Writer: "CPython traceback.py", Class: ClassException, Text: frameText,
	Example: "  File \"/job/train.py\", line 7, in main …",
}

// wentOn is the form of a line that shows that a program did without an import. No line has the text: the Scanner makes the event of the line some way after
// the failed import (Scanner.Line).
var wentOn = Form{
	Name: "python.went_on", Writer: "any", Class: ClassWaiting, Text: "(the log goes on behind an import that failed)",
	Example: "(the log goes on behind an import that failed)",
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
	s.traces[k] = &traceback{where: where, line: s.lines, time: p.time, ignored: s.ignored.line == s.lines-1 && s.ignored.key == k}
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
	if bytes.HasPrefix(p.text, []byte(ignoredText)) {
		s.ignored.key, s.ignored.line = k, s.lines
	}
	t := s.traces[k]
	if t == nil {
		if t = s.beginHeadless(p); t == nil {
			return false
		}
	}
	text := p.text
	if m := rayCall.FindSubmatch(text); m != nil && !t.done { // the frames that follow are of this process
		t.where.pid, t.where.host = number(string(m[1]), 0), string(m[2])
		return !hit
	}
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
	if t.done { // a line at the margin after the exception: the traceback is over
		delete(s.traces, k)
		return false
	}
	text = bytes.TrimLeft(text, " \t")
	m := exceptionLine.FindSubmatch(text)
	if m == nil || !t.endsWith(m, hit) {
		if !hit {
			t.lines += foreignLine
			if t.headless {
				delete(s.traces, k)
			}
		}
		return false
	}
	s.endTrace(t, p, text, m, found, hit)
	return true
}

// endsWith reports whether a line with the type m[1] and the message m[2] is the exception at the end of a traceback. A type with an unusual name counts where
// a message follows, unless the line is one of a form (hit) and there was no frame yet. Behind frames without a first line, which warnings print too, the name
// must be usual.
func (t *traceback) endsWith(m [][]byte, hit bool) bool {
	if t.headless {
		return endsLikeException(m[1]) && !bytes.HasSuffix(m[1], []byte("Warning"))
	}
	return looksLikeException(m[1]) || len(m[2]) > 0 && (!hit || t.first.File != "")
}

// endTrace emits the event of a traceback at its exception, text, of which m has the type and the message. Where the line is of a form as well, the event is of
// that form, with what the traceback says.
func (s *Scanner) endTrace(t *traceback, p *place, text []byte, m [][]byte, found *hits, hit bool) {
	defer t.close()
	if t.ignored && !bytes.HasSuffix(m[1], []byte("Interrupt")) { // an interrupt ends the program, whatever it hits
		return
	}
	t.where.text = text
	form := uncaught
	if t.headless {
		form = headless
	}
	e := s.begin(form, &t.where)
	e.Line, e.Exception, e.What = t.line, string(m[1]), clip(string(m[2]))
	if IsImport(e.Exception) {
		s.imported = s.lines
	}
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
}

// close keeps a traceback after its exception, for notes that are indented below.
func (t *traceback) close() {
	t.first = Frame{}
	t.done = true
	t.lines = 0
}

// indentOf returns the number of blanks and tabs before a text.
func indentOf(text []byte) int { return len(text) - len(bytes.TrimLeft(text, " \t")) }

// addTo adds the innermost frame to an event. The exception of a launcher only reports the end of a rank.
func (t *traceback) addTo(e *Event) {
	e.Last = t.last
	if e.Class == ClassException && t.launcher() {
		e.Class = ClassTeardown
	}
}

// launcher reports whether the traceback is of the program that started the ranks.
func (t *traceback) launcher() bool {
	return launcherFile.MatchString(t.first.File) && launcherEnd.MatchString(t.last.File)
}

// beginHeadless returns a new traceback whose first line is not in the log, at one of its frames, or at Ray's call before; nil: the line is neither.
func (s *Scanner) beginHeadless(p *place) *traceback {
	if m := frameLine.FindSubmatch(p.text); (m == nil || len(m[3]) == 0) && !rayCall.Match(p.text) {
		return nil
	}
	s.beginTrace(p)
	t := s.traces[p.key()]
	t.headless = true
	return t
}

// ofRank makes an event of an exception without a traceback in the log. Only PyTorch's hook for uncaught exceptions (_distributed_excepthook in
// torch/distributed/distributed_c10d.py, from 2.4) writes "[rank1]: " right before the type. The line has the text of a form, "Error" of python.peer.
func (s *Scanner) ofRank(p *place, line []byte) {
	m := exceptionLine.FindSubmatch(p.text)
	if m == nil || len(m[2]) == 0 || !rankError.Match(line) {
		return
	}
	e := s.begin(headless, p)
	e.Exception, e.What = string(m[1]), clip(string(m[2]))
	s.emit(&e, p.text)
}

// emitTrace emits the event of a traceback that ended without its exception, if there was a frame. Without its first line too, frames say nothing.
func (s *Scanner) emitTrace(t *traceback) {
	if t.done || t.last.File == "" || t.headless || t.ignored {
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

// looksLikeException reports whether a word can be the type of an exception: by a usual ending, or by the dots of a module's name ("queue.Empty").
func looksLikeException(name []byte) bool {
	return endsLikeException(name) || bytes.Count(name, []byte(".")) > 0
}

// endsLikeException reports whether a word has a usual ending of the types of exceptions.
func endsLikeException(name []byte) bool {
	for _, end := range []string{
		"Error", "Exception", "Interrupt", "Exit", "Warning", "Timeout", "Refused", "Reset", "Died", "Found", "Failed", "Failure", "StopIteration", "Expired",
	} {
		if bytes.HasSuffix(name, []byte(end)) {
			return true
		}
	}
	return false
}

// IsImport reports whether a type of exception is that of an import, which programs try and do without.
func IsImport(exception string) bool {
	return exception == "ImportError" || exception == "ModuleNotFoundError"
}

// clip returns the message of an exception, cut to its bound.
func clip(s string) string {
	if len(s) > mostOfReason {
		s = strings.ToValidUTF8(s[:mostOfReason], "") + "…"
	}
	return s
}
