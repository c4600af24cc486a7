package vccl

import (
	"bytes"

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// maxObject bounds an object that goes on over several lines, By.
const maxObject = 64 << 10

// maxResyncs bounds how often reading begins anew within a line.
const maxResyncs = 16

// JSONParser reads the documented schema (see messages) as objects, wherever their lines end: JSON lines, objects printed over several lines one after the
// other, or an array of them. Unknown keys are ignored. It is not safe for concurrent use.
//
// The lines of an object are Open up to the line in which it ends. Where an object is torn, reading goes on with the next line that begins one; what was read
// of the torn object leaves with that line, or at End, if it says what, when and how long. That line may be Open itself: then the operations in Out are of
// the lines before it. A line that ends an object and begins the next ("}{") is not Open: it has nothing of the next but its brace, and the members may
// be read again without it.
type JSONParser struct {
	m messages
	s scan
	// open: s is within an object of earlier lines, whose text is in text. torn: that object will not go on.
	open, torn bool
	again      bool // one of its lines was read again
	// braceOnly: the open object has nothing yet but a brace, in a line that is not held for it. bare: that was so before a restart.
	braceOnly, bare bool
	text, free      []byte
}

// NewJSON reads the file of this path.
func NewJSON(file string) *JSONParser { return &JSONParser{m: newMessages(file)} }

// NewFile does what messages.NewFile does. An open object is torn.
func (p *JSONParser) NewFile() {
	p.m.NewFile()
	p.tear()
	p.braceOnly, p.bare = false, false
}

// tear gives up on the object that is open.
func (p *JSONParser) tear() { p.open, p.torn = false, p.torn || p.open }

// Line reads a line.
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
		from := len(p.text)
		p.text = append(append(p.text, b...), '\n')
		b = p.text[from : len(p.text)-1]
	}
	l.read(b, continued)
	p.bare = p.bare && again
	p.braceOnly = p.open && l.ended
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
	again  bool
	ops    int
	opened bool   // an object goes on behind the line
	ended  bool   // the line ended an object that began before it
	reason string // of the first thing that could not be read
}

func (l *jsonLine) note(reason string) {
	if l.reason == "" {
		l.reason = reason
	}
}

// read reads a line; if continued, the open object goes on in it.
func (l *jsonLine) read(b []byte, continued bool) {
	i, resyncs := 0, 0
	for {
		begin := i
		if !l.open {
			i = l.between(b, i)
			if begin = i; i == len(b) {
				return
			}
			brace := b[i] == '{'
			// Of an object whose brace is in a line that is not read again.
			if bare := !brace && i == 0 && (l.again || l.bare) && b[0] == '"'; !brace && !bare {
				l.note(reasonNotJSON)
				if i = l.resync(b, i, &resyncs); i < 0 {
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
			l.close(continued)
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
				from = 0 // the next object may stand wherever this one was torn
			}
			l.tear()
			if !continued { // the object began and failed here: nothing is worth keeping
				l.torn = false
			}
			continued = false
			if i = l.resync(b, from, &resyncs); i < 0 {
				return
			}
		}
	}
}

// between passes over what stands between objects.
func (l *jsonLine) between(b []byte, i int) int {
	for i < len(b) && (b[i] <= ' ' || b[i] == ',' || b[i] == '[' || b[i] == ']' || b[i] == '}' && l.again) {
		i++
	}
	return i
}

// resync returns where the next object seems to begin, −1: nowhere.
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

// begin begins an object. A torn object leaves before it.
func (l *jsonLine) begin() {
	l.flush(l.out)
	l.m.renew()
	l.s.begin()
	l.open, l.JSONParser.again = true, l.again
}

// flush gives out what was read of a torn object.
func (p *JSONParser) flush(out *parse.Out) {
	if p.torn {
		p.m.addTorn(&p.s.v, p.again, out)
	}
	p.torn = false
}

// close ends an object.
func (l *jsonLine) close(continued bool) {
	l.open = false
	l.ended = l.ended || continued
	if reason := l.m.add(&l.s.v, l.out); reason != "" {
		l.note(reason)
		return
	}
	l.ops++
}

// keep copies the beginning of an object that goes on, and reads the copy. The texts in Out are in the buffer used before.
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

// End gives up waiting for the end of an object.
func (p *JSONParser) End(out *parse.Out) {
	p.m.begin(false, 0)
	p.tear()
	p.flush(out)
}

// Save returns the ordinals.
func (p *JSONParser) Save() []byte { return p.m.save(saved{BraceOnly: p.braceOnly}) }

// Restore takes what Save returned.
func (p *JSONParser) Restore(state []byte) { p.bare = p.m.restore(state).BraceOnly }
