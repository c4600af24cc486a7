package vccl

import (
	"bytes"

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// maxObject bounds an object over several lines, By.
const maxObject = 64 << 10

// maxResyncs bounds the restarts of reading within a line.
const maxResyncs = 16

// JSONParser reads the documented schema (see messages) as objects, wherever their lines end: JSON lines, objects printed over several lines one after the
// other, or an array of them. Unknown keys are ignored. Not safe for concurrent use.
//
// The lines of an object are Open up to the line with its end. After a torn object, reading goes on with the next line that begins one; the part read of the
// torn object leaves with that line, or at End, if it has the operation, the time and the duration. The line may be Open itself: then the operations in Out are
// of the lines before. A line that ends an object and begins the next ("}{", "{…}{") belongs to the object that ends, and is not Open: only the brace of the
// next is in the line, usually, and the members may be read again without the brace. The states (open, torn):
//
//	         an object begins              the object ends         an unreadable part          the line ends   NewFile   End
//	between  open                          -                       between                     between         between   between
//	open     -                             between: an operation   torn; between if the        open            torn      between: the torn part leaves
//	                                                               object began in the line
//	torn     open: the torn part leaves    -                       torn                        torn            torn      between: the torn part leaves
type JSONParser struct {
	m messages
	s scan
	// open: s is within an object of earlier lines, with its text in text. torn: the object will not continue.
	open, torn bool
	again      bool // one of the object's lines was read again
	// braceOnly: the open object has only a brace so far, in a line that is not held for the object. bare: braceOnly as restored
	// after a restart, until the first new line.
	braceOnly, bare bool
	text            []byte // the lines of the open object
	free            []byte // memory for the text of the next one
}

// NewJSON returns a parser of the file at a path.
func NewJSON(file string) *JSONParser { return &JSONParser{m: newMessages(file)} }

// NewFile is messages.NewFile. An open object is torn.
func (p *JSONParser) NewFile() {
	p.m.NewFile()
	p.tear()
	p.braceOnly, p.bare = false, false
}

// tear gives up the open object.
func (p *JSONParser) tear() { p.open, p.torn = false, p.torn || p.open }

// Line implements parse.Parser: see JSONParser for the lines that are Open.
func (p *JSONParser) Line(text []byte, again bool, tag uint64, out *parse.Out) (parse.Verdict, string) {
	b := trim(text)
	if len(b) == 0 {
		out.Open = p.open
		return parse.Ignored, ignoredBlank
	}
	p.m.begin(again, tag)
	p.braceOnly = false
	l := jsonLine{JSONParser: p, again: again, out: out}
	continued := p.open
	if continued {
		if len(p.text)+len(b) > maxObject {
			p.tear()
			return parse.Rejected, reasonTooLong
		}
		p.again = p.again || again
		from := len(p.text) // the line is read in the copy, which lives as long as the object
		p.text = append(append(p.text, b...), '\n')
		b = p.text[from : len(p.text)-1]
	}
	l.read(b, continued)
	p.bare = p.bare && again        // bare serves up to the first line that is new after the restart (in read)
	p.braceOnly = p.open && l.ended // "}{": the line belongs to the object that ends
	switch {
	case l.ops == 0 && l.ended: // and the object was no record
		return parse.Rejected, l.reason
	case l.ops > 0, l.opened:
		out.Open = p.open && !l.ended
		return parse.Record, ""
	case l.reason != "":
		return parse.Rejected, l.reason
	}
	return parse.Ignored, ignoredBracket
}

// jsonLine is the reading of one line.
type jsonLine struct {
	*JSONParser
	out    *parse.Out
	again  bool   // the line is read again after a restart
	ops    int    // operations of objects that the line ended
	opened bool   // an object continues on the next line
	ended  bool   // the line ended an object
	reason string // of the first unreadable part
}

// note sets the line's reason, unless an earlier one is set.
func (l *jsonLine) note(reason string) {
	if l.reason == "" {
		l.reason = reason
	}
}

// read reads all objects of a line, up to its end or to an unreadable part without a further object after. If continued, the line begins within the open
// object.
func (l *jsonLine) read(b []byte, continued bool) {
	i, resyncs := 0, 0
	for {
		begin := i // of the object, as far as it is in b
		if !l.open {
			i = l.between(b, i)
			begin = i
			if i == len(b) {
				return
			}
			brace := b[i] == '{'
			// The members of an object without its brace, which stands in a line that is not read again.
			bare := !brace && i == 0 && (l.again || l.bare) && b[0] == '"'
			if !brace && !bare {
				l.note(reasonNotJSON)
				i = l.resync(b, i, &resyncs)
				if i < 0 {
					return
				}
				continue
			}
			l.begin()
			if brace {
				i++
			}
		}
		end, st := l.s.run(b, i)
		switch st {
		case closed:
			l.close()
			continued = false
			i = end
		case more:
			if !continued {
				if len(b)-begin > maxObject {
					l.open = false
					l.note(reasonTooLong)
					return
				}
				l.keep(b[begin:])
			}
			l.opened = true
			return
		case bad:
			l.note(reasonNotJSON)
			from := begin + 1
			if continued {
				from = 0 // the next object may begin anywhere in the torn one
			}
			l.tear()
			if !continued { // the object began and failed here: nothing is worth keeping
				l.torn = false
			}
			continued = false
			i = l.resync(b, from, &resyncs)
			if i < 0 {
				return
			}
		}
	}
}

// between skips the text between objects, and returns its end: blanks, commas, and the brackets of an array; in a line that is read again also the end of an
// object whose other lines are not read again.
func (l *jsonLine) between(b []byte, i int) int {
	for i < len(b) && (b[i] <= ' ' || b[i] == ',' || b[i] == '[' || b[i] == ']' || b[i] == '}' && l.again) {
		i++
	}
	return i
}

// resync returns where the next object seems to begin in b[i:], at a brace before a quote or the line's end; −1: nowhere, or after more than maxResyncs calls
// (resyncs) for the line.
func (l *jsonLine) resync(b []byte, i int, resyncs *int) int {
	if *resyncs++; *resyncs > maxResyncs {
		return -1
	}
	for {
		n := bytes.IndexByte(b[i:], '{')
		if n < 0 {
			return -1
		}
		i += n
		next := i + 1
		for next < len(b) && b[next] <= ' ' {
			next++
		}
		if next == len(b) || b[next] == '"' {
			return i
		}
		i++
	}
}

// begin begins an object in the current line. The part read of a torn object leaves before.
func (l *jsonLine) begin() {
	l.flush(l.out)
	l.m.renew()
	l.s.begin()
	l.open, l.JSONParser.again = true, l.again
}

// flush outputs the readable part of a torn object.
func (p *JSONParser) flush(out *parse.Out) {
	if p.torn {
		p.m.addTorn(&p.s.v, p.again, out)
	}
	p.torn = false
}

// close ends an object: its record becomes an operation in out, or the reason is noted.
func (l *jsonLine) close() {
	l.open, l.ended = false, true
	if reason := l.m.add(&l.s.v, l.out); reason != "" {
		l.note(reason)
		return
	}
	l.ops++
}

// keep copies the beginning of an unfinished object out of the line, and reads the copy: the values kept must lie in memory that outlives the line. The buffers
// take turns, because texts in Out may still lie in the other one.
func (l *jsonLine) keep(b []byte) {
	l.text, l.free = l.free[:0], l.text
	l.text = append(append(l.text, b...), '\n')
	l.s.begin()
	i := 0
	if b[0] == '{' {
		i = 1
	}
	l.s.run(l.text[:len(l.text)-1], i)
}

// End implements parse.Parser: the part read of the open object is output, if of use (messages.addTorn).
func (p *JSONParser) End(out *parse.Out) {
	p.m.begin(false, 0)
	p.tear()
	p.flush(out)
}

// Save implements parse.Parser: it returns the ordinals.
func (p *JSONParser) Save() []byte { return p.m.save(saved{BraceOnly: p.braceOnly}) }

// Restore implements parse.Parser.
func (p *JSONParser) Restore(state []byte) { p.bare = p.m.restore(state).BraceOnly }
