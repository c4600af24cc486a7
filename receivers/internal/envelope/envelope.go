// Package envelope removes the wrapping of lines: the prefixes of bridge/line, and JSON objects around a line of text.
//
//	{"log":"text\n","stream":"stdout","time":"2026-08-03T09:14:22.776244708Z"}         docker's json-file, Fluent Bit
//	{"MESSAGE":"text","__REALTIME_TIMESTAMP":"1785748462523417", …}                    journalctl -o json
//	MESSAGE=text                                                                       journalctl -o export, a field a line
//	{"textPayload":"text","timestamp":"…", …}, {"jsonPayload":{"message":"text"}, …}   Cloud Logging
//	{"labels":{…},"line":"text","timestamp":"…"}                                       logcli -o jsonl
//	{"message":"text","source_type":"kubernetes_logs","timestamp":"…", …}              vector
//
// The objects of a program's own logger ([Peeler.Logger]) look like records too, so the reader of records opens them:
//
//	{"level":"info","ts":1785748462.776,"msg":"text"}                                  zap, slog, Python's logging, structlog
//	{"text":"…","record":{"message":"text","time":{"timestamp":1795695250.68}, …}}     loguru, serialize=True
package envelope

import (
	"bytes"
	"math"
	"time"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/jsonlike"
)

// MaxDepth bounds envelopes in envelopes.
const MaxDepth = 3

// Peeler peels the lines of one stream. The zero value is ready. Not safe for concurrent use.
type Peeler struct {
	outer line.Peeler       // of the line as read
	inner *[MaxDepth]opened // by depth; nil until an envelope is met: most streams have none
	exp   *export           // nil until an entry of journalctl -o export is met
	// Opened says that the line stood in an object or an entry of the journal: the text may hold several lines, as a carriage return ends none within them.
	Opened bool
}

// opened is the memory for one opened object, reused from line to line.
type opened struct {
	line   line.Peeler    // of the text in the object
	prefix line.Prefix    // of the text
	text   jsonlike.Texts // the text, its escapes resolved
	stamp  []byte         // the object's time, written out where the object has a number
}

// Peel returns the program's own text in a line and fills pre. Peel does what line.Peeler does, and also opens envelopes, nested ones too. The envelope's time
// goes to pre.Container, unless the line has a container's time before the envelope. In journalctl -o export, a line other than the message gives an empty
// text, and an object inside the message is not opened.
func (p *Peeler) Peel(b []byte, pre *line.Prefix) []byte {
	// To stay cheap, until a journal entry was met (exp) only lines beginning with '_' are tried: an entry is recognised by __REALTIME_TIMESTAMP.
	if len(b) > 0 && b[0] == '_' || p.exp != nil {
		if text, ok := p.journal(b); ok {
			b = p.outer.Peel(text, pre)
			if pre.Container == nil {
				pre.Container = p.exp.stamp
			}
			p.Opened = true // the message may contain carriage returns
			return b
		}
	}
	b = p.outer.Peel(b, pre)
	p.Opened = false
	if len(b) < 2 || b[0] != '{' || !carries(b) {
		return b
	}
	return p.open(b, pre)
}

// open opens up to MaxDepth nested envelopes, and returns the innermost text, peeled. An object that is no envelope after all is returned as the text. Of the
// objects' times the outermost counts: an inner one is the program's.
func (p *Peeler) open(b []byte, pre *line.Prefix) []byte {
	for depth := 0; depth < MaxDepth && len(b) > 1 && b[0] == '{' && carries(b); depth++ {
		var f found
		if !f.read(b) || !f.carrier() {
			break
		}
		o := p.level(depth)
		text, ok := f.message(&o.text)
		if !ok {
			break
		}
		if pre.Container == nil {
			pre.Container = f.at(&o.stamp)
		}
		p.Opened = true
		b = o.peel(text, pre)
	}
	return b
}

// Logger opens the object of a program's own logger ({"level":"info","ts":…,"msg":"text"}), and returns the message, peeled. The object's time becomes the
// logger's time of pre, if neither pre nor the message's own prefix has one. ok is false where b is no such object.
//
// depth (0 to MaxDepth-1) counts objects in objects. The message is valid until another object of the same depth is opened.
func (p *Peeler) Logger(b []byte, pre *line.Prefix, depth int) (message []byte, ok bool) {
	first := jsonlike.Blanks(b, 1) // behind the bracket
	if len(b) < 2 || first == len(b) || b[first] != '"' {
		return nil, false
	}
	var f found
	if !f.read(b) || f.raw == nil || !f.logged() {
		return nil, false
	}
	o := p.level(depth)
	text, ok := f.message(&o.text)
	if !ok {
		return nil, false
	}
	if pre.Stamp == nil {
		pre.Stamp = f.at(&o.stamp)
	}
	return o.peel(text, pre), true
}

// level is the memory for an object of a depth.
func (p *Peeler) level(depth int) *opened {
	if p.inner == nil {
		p.inner = new([MaxDepth]opened)
	}
	return &p.inner[depth]
}

// peel takes the prefixes off the text of an object, and adds what they say to pre: where an inner and an outer prefix say the same thing, the inner one
// counts.
func (o *opened) peel(text []byte, pre *line.Prefix) []byte {
	text = bytes.TrimRight(text, "\r\n")
	text = o.line.Peel(text, &o.prefix)
	o.prefix.Around(pre)
	*pre = o.prefix
	return text
}

// carries says by its first name whether an object may be an envelope: looking at all names would cost as much as reading a record.
func carries(b []byte) bool {
	i := jsonlike.Blanks(b, 1)
	if i+2 >= len(b) || b[i] != '"' {
		return false
	}
	switch c := b[i+1]; {
	case c == '_', c >= 'A' && c <= 'Z': // of a journal: __CURSOR, MESSAGE
		return true
	}
	name, _, end := jsonlike.String(b[:min(len(b), i+24)], i) // 24: longer than the names below
	if end < 0 {
		return false
	}
	switch string(name) {
	case "log", "stream", "attrs", "time", "date", "insertId", "textPayload", "jsonPayload", "labels", "line", "file", "kubernetes", "host", "message":
		return true
	}
	return false
}

// found is what the members of an object tell about its kind and its text.
type found struct {
	raw   []byte // the text, as printed: "…", […] or {…}; nil: none
	stamp []byte // a time in letters
	clock []byte // a time as a number, or as loguru's object with the number

	log          bool // the member log has a text
	logger       bool // a member message, msg or event has a text: loggers write these, and vector
	loguruRecord bool // raw is the message in loguru's record

	proof bool // a member that only log transports write, such as "stream"
	level bool // a level, as loggers write
}

// lexer reads the values of members: a value without quotes ends at a comma or a bracket.
var lexer = jsonlike.Lexer{Word: jsonlike.Until(",}", "")}

// read notes the members of the object b in f (member). false: b is no whole object, or text follows the object.
func (f *found) read(b []byte) bool {
	i, more := jsonlike.Begin(b, 0, '}')
	for more {
		if i >= len(b) || b[i] != '"' {
			return false
		}
		name, _, at := jsonlike.String(b, i)
		if at < 0 {
			return false
		}
		at = jsonlike.Colon(b, at)
		if at < 0 {
			return false
		}
		from := jsonlike.Blanks(b, at)
		text, end := lexer.Value(b, from)
		if end < 0 {
			return false
		}
		f.member(name, b[from:end], text)
		i, more = jsonlike.Comma(b, end)
		i = jsonlike.Blanks(b, i)
	}
	return jsonlike.Close(b, i, '}') == len(bytes.TrimRight(b, " \t\r\n"))
}

// member notes what a member of the object tells, by its name: the text, the time, or that the object is of a log transport or of a logger. raw is the value as
// printed, text without quotes.
func (f *found) member(name, raw, text []byte) {
	quoted := raw[0] == '"'
	switch string(name) {
	case "log": // docker, Fluent Bit
		f.log = f.keep(raw, quoted) || f.log
	case "MESSAGE": // journalctl
		f.keep(raw, quoted || raw[0] == '[')
	case "jsonPayload": // Cloud Logging
		f.keep(raw, raw[0] == '{')
	case "textPayload", "line": // Cloud Logging, logcli
		f.keep(raw, quoted)
	case "message", "msg", "event":
		f.logger = f.keep(raw, quoted) || f.logger
	case "record":
		f.loguru(raw)
	case "stream", "kubernetes", "source_type", "insertId", "logName", "_p":
		f.proof = true
	case "labels":
		f.proof = f.proof || raw[0] == '{'
	case "time", "timestamp", "ts", "date", "@timestamp", "asctime", "__REALTIME_TIMESTAMP":
		f.time(text)
	case "level", "levelname", "severity":
		f.level = true
	case "_HOSTNAME", "__CURSOR":
		f.proof = true
	}
}

// keep takes raw as the object's text, if isText: the last such member counts. The message in loguru's record is not replaced. The result says whether raw was
// taken.
func (f *found) keep(raw []byte, isText bool) bool {
	if !isText || f.loguruRecord {
		return false
	}
	f.raw = raw
	return true
}

// time takes the first time in letters ("2026-08-03T09:14:22Z"), and the first value without any at its beginning: a number, or loguru's object.
func (f *found) time(text []byte) {
	switch n := line.StampLen(text); {
	case n > 0 && n == len(text) && f.stamp == nil:
		f.stamp = text
	case n == 0 && f.clock == nil:
		f.clock = text
	}
}

// loguru reads loguru's {"text":"<the whole line>","record":{"message":"text","time":{"timestamp":1795695250.68}}}: raw is the record. The record's message is
// the text.
func (f *found) loguru(raw []byte) {
	var in found
	if raw[0] != '{' || !in.read(raw) || in.raw == nil {
		return
	}
	f.raw, f.loguruRecord, f.logger = in.raw, true, true
	// The time is an object, with the number in "timestamp".
	if len(in.clock) > 0 && in.clock[0] == '{' {
		var at found
		if at.read(in.clock) {
			f.clock = at.clock
		}
	}
}

// carrier says whether the object is the envelope of a log transport, not an object of the program's own logger: the name of the text's member alone is no
// proof, as programs use the same names. docker's and Fluent Bit's "log" needs a time only.
func (f *found) carrier() bool {
	if f.raw == nil || f.loguruRecord {
		return false
	}
	return f.proof || f.log && (f.stamp != nil || f.clock != nil)
}

// logged says whether the object is a logger's, with a level or a time beside the message, or a transport's: a program's own objects may have a message, too.
func (f *found) logged() bool {
	return f.loguruRecord || f.level || f.proof || f.stamp != nil || f.clock != nil
}

// message is the object's text with its escapes resolved, in own where the text has escapes. ok is false where the text cannot be read.
func (f *found) message(own *jsonlike.Texts) (text []byte, ok bool) {
	own.Reset()
	switch f.raw[0] {
	case '{': // The payload is the object of a logger ({"message":"text"}), or a program's own JSON, which is the text.
		var in found
		if in.read(f.raw) && in.raw != nil && in.raw[0] == '"' && in.logger {
			text, end := lexer.Text(in.raw, 0, own)
			return text, end >= 0
		}
		return f.raw, true
	case '[':
		return numbers(f.raw, own)
	}
	text, end := lexer.Text(f.raw, 0, own)
	return text, end >= 0
}

// numbers reads the bytes of an unprintable message, which a journal prints as a list: [27,91,51]. The bytes are appended to own.
func numbers(b []byte, own *jsonlike.Texts) (text []byte, ok bool) {
	i, more := jsonlike.Begin(b, 0, ']')
	for more {
		v, n := decimal.Leading(b[i:])
		if n == 0 || v < 0 || v > 255 {
			return nil, false
		}
		*own = append(*own, byte(v))
		i, more = jsonlike.Comma(b, i+n)
		i = jsonlike.Blanks(b, i)
	}
	return *own, jsonlike.Close(b, i, ']') == len(b)
}

// at is the object's time in the notation of clock.Stamps, or nil without a time. A number is a time since the epoch in s, ms, µs or ns: its size tells the
// unit, as only one unit gives a year from 2001 to 2096. own is memory for the text of a number.
func (f *found) at(own *[]byte) []byte {
	if f.stamp != nil {
		return f.stamp
	}
	v, ok := decimal.Float(f.clock)
	if !ok {
		return nil
	}
	const first, last = 1e9, 4e9                 // s: 2001 to 2096
	for unit := 1.0; unit <= 1e9; unit *= 1000 { // per second
		if v < first*unit || v >= last*unit {
			continue
		}
		s, part := math.Modf(v / unit)
		// A float of seconds is good for microseconds.
		*own = time.Unix(int64(s), int64(math.Round(part*1e6))*1000).UTC().AppendFormat((*own)[:0], "2006-01-02T15:04:05.000000Z")
		return *own
	}
	return nil
}
