package events

import (
	"bytes"
	"regexp"
	"strings"
)

// traceback is a Python traceback in progress (traceback.py of CPython: "Traceback (most recent call last):", frames, "Type: message").
type traceback struct {
	where       place
	line        int64
	time        int64
	first, last Frame
	saving      bool
	lines       int
	indent      int  // of its frames
	done        bool // the exception was emitted
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
	failedLines = 6    // of torchrun's summary, between the rank and its traceback
	traceLines  = 4000 // of one traceback
	noMessage   = 300
)

// uncaught is the form of a traceback that matches no other form.
var uncaught = &Form{
	Name: "python.traceback", Writer: "CPython traceback.py", Class: ClassException, Text: "Traceback (most recent call last)",
	Example: "Traceback (most recent call last): …",
}

// inTrace takes a line that is part of a traceback.
func (s *Scanner) inTrace(p *place, found *hits, hit bool) (taken bool) {
	k := p.key()
	t := s.traces[k]
	if begins(p.text) {
		if t != nil {
			s.emitTrace(t)
		}
		if s.traces == nil {
			s.traces = make(map[key]*traceback)
		}
		if len(s.traces) >= openMost && t == nil {
			for k, old := range s.traces {
				s.emitTrace(old)
				delete(s.traces, k)
				break
			}
		}
		where := *p
		where.text = nil
		if s.failed.line > 0 && s.failed.line > s.lines-failedLines && bytes.HasPrefix(bytes.TrimLeft(p.text, " "), []byte("traceback ")) { // in torchrun's summary
			where.rank, where.host = s.failed.rank, s.failed.host
		}
		if s.spawned.line > 0 && s.spawned.line == s.lines-1 {
			where.local = s.spawned.rank
		}
		s.traces[k] = &traceback{where: where, line: s.lines, time: p.time}
		return true
	}
	if t == nil {
		return false
	}
	text := p.text
	t.lines++
	switch m := frameLine.FindSubmatch(text); {
	case t.lines > traceLines:
		s.emitTrace(t)
		delete(s.traces, k)
		return false
	case m != nil:
		f := Frame{string(m[1]), number(string(m[2]), 0), string(m[3])}
		if t.first.File == "" {
			t.first, t.indent = f, indentOf(text)
		}
		t.last = f
		t.saving = t.saving || savingFunc.Match(m[1]) || savingFunc.Match(m[3])
		return true
	case len(bytes.TrimSpace(text)) == 0:
		return true
	case indentOf(text) > max(t.indent-2, 0) || indentOf(text) > 0 && t.first.File == "", text[0] == '^', text[0] == '~':
		return true
	}
	text = bytes.TrimLeft(text, " \t")
	if t.done {
		delete(s.traces, k)
		return false
	}
	m := exceptionLine.FindSubmatch(text)
	if m == nil || len(m[2]) == 0 && !looksLikeException(m[1]) || !looksLikeException(m[1]) && hit && t.first.File == "" {
		if hit { // an unrelated line in between
			return false
		}
		t.lines += 50 // a foreign line: a few are tolerated
		return false
	}
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
			if last.Class == ClassDisk && t.saving {
				last.Class = ClassCheckpoint
			}
		}
	}
	if !matched {
		if t.saving && e.Class == ClassException && !strings.HasSuffix(e.Exception, "Interrupt") {
			e.Class = ClassCheckpoint
		}
		s.emit(&e, text)
	}
	t.first = Frame{}
	t.done = true
	t.lines = 0
	return true
}

func indentOf(text []byte) int { return len(text) - len(bytes.TrimLeft(text, " \t")) }

// addTo adds the traceback's findings to an event.
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

// emitTrace emits an incomplete traceback.
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

// looksLikeException says whether a word can be the type of an exception.
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

func clip(s string) string {
	if len(s) > noMessage {
		s = strings.ToValidUTF8(s[:noMessage], "") + "…"
	}
	return s
}
