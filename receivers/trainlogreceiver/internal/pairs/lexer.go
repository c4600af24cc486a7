package pairs

import (
	"bytes"
	"strconv"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

// unit is the meaning of a unit word after a number.
type unit struct {
	suffix string  // of names of objects with the unit: "_ms" of step_time_ms
	name   string  // the name of a number known by its unit alone: "it/s"
	scale  float64 // to the base unit, where no suffix implies it; 0: none
}

var units = map[string]unit{
	"ms": {suffix: "_ms", name: "step_time"}, "s": {suffix: "_s", name: "step_time"}, "sec": {suffix: "_s", name: "step_time"}, "secs": {suffix: "_s"},
	"seconds": {suffix: "_s"}, "us": {name: "step_time", scale: 1e-6}, "%": {suffix: "_percent"},
	"GB": {suffix: "_gb"}, "GiB": {suffix: "_gib"}, "MB": {suffix: "_mb"}, "MiB": {suffix: "_mib"}, "G": {scale: 1e9}, "M": {scale: 1e6}, "K": {scale: 1e3},
	"k": {scale: 1e3}, "B": {scale: 1e9}, "T": {scale: 1e12}, "W": {}, "TFLOPS": {}, "TFLOP/s": {},
	"ms/step": {suffix: "_ms", name: "step_time"}, "ms/it": {suffix: "_ms", name: "step_time"}, "ms/iter": {suffix: "_ms", name: "step_time"},
	"ms/batch": {suffix: "_ms", name: "step_time"}, "s/it": {suffix: "_s", name: "step_time"}, "s/step": {suffix: "_s", name: "step_time"},
	"s/iter": {suffix: "_s", name: "step_time"}, "s/batch": {suffix: "_s", name: "step_time"}, "sec/batch": {suffix: "_s", name: "step_time"},
	"sec/step": {suffix: "_s", name: "step_time"}, "sec/it": {suffix: "_s", name: "step_time"}, "sec/iter": {suffix: "_s", name: "step_time"},
	"it/s": {name: "it/s"}, "iter/s": {name: "it/s"}, "steps/s": {name: "it/s"}, "steps/sec": {name: "it/s"}, "iters/s": {name: "it/s"}, "step/s": {name: "it/s"},
	"tok/s": {name: "tok/s"}, "tok/sec": {name: "tok/s"}, "tokens/s": {name: "tok/s"}, "tokens/sec": {name: "tok/s"}, "samples/s": {name: "samples/s"},
	"samples/sec": {name: "samples/s"}, "examples/s": {name: "samples/s"}, "examples/sec": {name: "samples/s"}, "img/s": {name: "samples/s"},
	"images/s": {name: "samples/s"}, "images/sec": {name: "samples/s"}, "imgs/s": {name: "samples/s"},
	"step": {}, "steps": {}, "batches": {}, "iters": {}, "batch": {}, "day": {}, "days": {}, "h": {}, "hours": {}, "hrs": {}, "min": {}, "mins": {},
	"s/iters": {suffix: "_s"}, "s/epoch": {suffix: "_s"},
}

// pair is a name and its value.
type pair struct {
	name, value []byte // name empty: none
	unit        string
	number, of  float64 // of "100/600"; 0: nothing
	isNumber    bool
	about       object.About
	position    int // as of positionOf: the rank of the name among names for a step; 0: no step
}

// lexer reads a line of names and values.
type lexer struct {
	objects    *object.Parser
	pairs      []pair
	evaluation bool // a name is of an evaluation

	b        []byte // the line
	at       int    // offset of the current token
	words    int    // of the current name so far, which has no value yet; 0: there is no such name
	from     int    // where the current name begins
	until    int    // and ends
	leftover int    // words without a value
	signed   int    // pairs with a sign ("=", ":") between name and value
	depth    int    // of parentheses
	bracket  bool   // in [ ]
	fresh    bool   // the current name is the first after a separator
	cell     bool   // the current name begins the line, or follows a separator or a gap
	foreign  int    // pairs without a sign and with unknown names
	blanks   int    // before the current token
	dropped  int    // pairs beyond maxPairs
}

// line reads a line, and returns false if the line has more than names and values. A few words without a value may be before three pairs with a sign: the event
// of a structured log, "train_step step=1 loss=2.3 lr=0.1". Pairs with unknown names and no sign must be fewer than the others.
func (x *lexer) line(b []byte) bool {
	if !x.tokens(b) {
		return false
	}
	isEvent := x.leftover <= maxEvent && x.signed >= 3
	return (x.leftover == 0 || isEvent) && (x.foreign == 0 || 2*x.foreign+1 <= len(x.pairs))
}

// tokens reads a line in which words may have no value; x.leftover counts these words. It returns false at a character that is part of no name or value.
func (x *lexer) tokens(b []byte) bool {
	*x = lexer{objects: x.objects, pairs: x.pairs[:0], b: b}
	for x.at < len(b) && !beginsName(b[x.at]) && bytes.IndexByte(decoration, b[x.at]) >= 0 { // "=> [1/30]", "*** Step 5", "--> STEP"
		x.at++
	}
	for x.skip(); x.at < len(x.b); x.skip() {
		if !x.token() {
			return false
		}
	}
	x.dropName()
	return true
}

// skip moves past blanks and characters beyond ASCII, and sets x.blanks to their number: more than one blank, or a tab, is a gap between cells.
func (x *lexer) skip() {
	from := x.at
	for x.at < len(x.b) && (x.b[x.at] == ' ' || x.b[x.at] == '\t' || x.b[x.at] >= 0x80) {
		x.at++
	}
	x.blanks = x.at - from
	if bytes.IndexByte(x.b[from:x.at], '\t') >= 0 {
		x.blanks = max(x.blanks, 2)
	}
}

// dropName ends the current name, if any: its words have no value, and count as leftover.
func (x *lexer) dropName() {
	x.leftover += x.words
	x.words = 0
}

// token reads the next token: a separator between pairs, a bracket, a number, or a word with its value. It returns false if the line has more than names and
// values. Words before a number without a sign wait in the current name ("step 39").
func (x *lexer) token() bool {
	if n := x.separatorLen(); n > 0 {
		x.dropName()
		x.fresh = true
		x.at += n
		return true
	}
	switch c := x.b[x.at]; {
	case c == '.' && x.nextByte() == '.': // "Step: 10... Loss: 2.5..."
		for x.at < len(x.b) && x.b[x.at] == '.' {
			x.at++
		}
		if x.words == 0 || !bytes.HasPrefix(x.b[x.at:], []byte(" (")) { // "Step... (500 | Loss: 2.5)"
			x.dropName()
			x.fresh = true
		}
	case (c == '#' || c == '~') && ascii.IsDigit(x.nextByte()): // "step #12"
		x.at++
	case c == '(':
		if x.words > 0 && ascii.IsDigit(x.nextByte()) && positionName(x.b[x.from:x.until]) { // "Step (500/1000)"
			x.at++
			x.depth++
			x.skip()
			return x.number(nil, false)
		}
		x.dropName()
		x.fresh = true
		x.depth++
		x.at++
	case c == ')':
		if x.dropName(); x.depth == 0 {
			return false
		}
		x.depth--
		x.at++
	case c == '[' || c == ']':
		x.bracket = c == '['
		if !x.bracket {
			x.dropName()
		} else if x.words > 0 && x.blanks == 0 && beginsName(x.nextByte()) { // "loss[loss=0.3, ctc_loss=0.2]"
			x.words, x.fresh = 0, true
		}
		x.at++
	case c == ':' && x.words == 0 && len(x.pairs) > 0 && x.blanks == 0: // "Step 1: loss"
		x.at++
	case startsNumber(x.b[x.at:]):
		if n := line.StampLen(x.b[x.at:]); n > 0 && x.words == 0 { // "| 2026-02-11 16:40:00"
			x.add(pair{name: stampName, value: x.b[x.at : x.at+n]})
			x.at += n
			return true
		}
		return x.number(nil, false)
	case x.words > 0 && bytes.HasPrefix(x.b[x.at:], tensorMark): // "loss tensor(2.5)", of a loss alone
		name := x.b[x.from:x.until]
		if about := x.objects.About(name); !about.Loss {
			return false
		}
		x.words = 0
		return x.value(name)
	case beginsName(c):
		return x.word()
	default:
		return false
	}
	return true
}

// separatorLen returns the length of the separator between pairs at the current position: "," ";" "|" " - " "::" "=>" "->" "--", or a run such as "===" or
// ">>>" between blanks. 0: none.
func (x *lexer) separatorLen() int {
	if n := runLen(x.b[x.at:]); n > 1 && x.blanks > 0 && (x.at+n == len(x.b) || x.b[x.at+n] == ' ') {
		return n
	}
	switch c := x.b[x.at]; {
	case c == ',' || c == ';' || c == '|', c == '-' && x.blanks > 0 && x.nextByte() == ' ':
		return 1
	case c == ':' && x.nextByte() == ':', (c == '=' || c == '-') && x.nextByte() == '>', c == '-' && x.nextByte() == '-':
		return 2
	}
	return 0
}

// runLen returns the length of the run of one sign at the beginning of b, of the signs that separate cells of a line; 0: b begins with another character.
func runLen(b []byte) (n int) {
	switch b[0] {
	case '=', '>', '*', '#', '~', '<':
		for n < len(b) && b[n] == b[0] {
			n++
		}
	}
	return n
}

// nextByte returns the byte after the current one; a blank at the end of the line.
func (x *lexer) nextByte() byte {
	if x.at+1 < len(x.b) {
		return x.b[x.at+1]
	}
	return ' '
}

// beginsName reports whether a byte may begin a name.
func beginsName(c byte) bool { return ascii.IsLetter(c) || c == '_' }

// startsNumber reports whether b begins with a number: a digit, possibly after a sign and a point.
func startsNumber(b []byte) bool {
	if len(b) > 1 && (b[0] == '-' || b[0] == '+' || b[0] == '.') {
		b = b[1:]
	}
	if len(b) > 1 && b[0] == '.' {
		b = b[1:]
	}
	return ascii.IsDigit(b[0])
}

// word reads a word of a name, and the value where a sign follows: "loss" of "train loss: 2.3". It returns false if the name is too long, the word belongs to a
// sentence, a name before "=" has several words, or no value follows the sign.
func (x *lexer) word() bool {
	if x.words > 0 && x.blanks > 1 {
		x.dropName() // words of a name have one blank between them
	}
	start := x.at
	if x.words == 0 {
		x.from, x.cell = start, x.fresh || x.blanks > 1 || start == 0
	}
	x.passWord()
	x.until = x.at
	x.words++
	if x.words > maxWords || x.until-x.from > 128 || isSentenceWord(x.b[start:x.until]) {
		return false
	}
	if x.words > 1 && string(x.b[start:x.until]) == "is" { // "loss is 2.31"
		if name := bytes.TrimRight(x.b[x.from:start], " "); x.objects.About(name).Loss {
			x.words = 0
			x.signed++
			x.skip()
			return x.value(name)
		}
	}
	at := x.at // of the sign
	for at < len(x.b) && x.b[at] == ' ' {
		at++
	}
	signs := signLen(x.b[at:])
	cells := signs == 2 && x.b[at] == ':' && at > x.at // " :: " parts cells
	if signs == 0 || cells {
		return true
	}
	name := x.b[x.from:x.until]
	about := x.objects.About(name)
	isName := x.words == 1 || about.Loss || about.Step || x.fresh
	if x.b[at] == '=' && !isName { // a name before "=" is one word, if nothing else tells the name
		if len(x.pairs) > 0 {
			return false
		}
		x.leftover += x.words - 1 // an event: "train_step step=1 loss=2.3 lr=0.1"
		name = x.b[start:x.until]
	}
	x.words, x.at = 0, at+signs
	x.signed++
	x.skip()
	return x.value(name)
}

// passWord moves past a word: letters and digits with . / % @ - and parentheses inside ("tokens/s(gpu)"), without several dots at the end, and with a unit in
// parentheses after the word.
func (x *lexer) passWord() {
	start := x.at
	for depth := 0; x.at < len(x.b); x.at++ {
		c := x.b[x.at]
		switch {
		case beginsName(c), ascii.IsDigit(c), c == '.', c == '/', c == '%', c == '@':
			continue
		case c == '-' && x.nextByte() != ' ':
			continue
		case c == '(' && x.at > start && x.at+1 < len(x.b) && (beginsName(x.b[x.at+1]) || x.b[x.at+1] == '%'):
			depth++
			continue
		case c == ')' && depth > 0:
			depth--
			continue
		}
		break
	}
	for x.at > start+2 && x.b[x.at-1] == '.' && x.b[x.at-2] == '.' { // "Step..."
		x.at--
	}
	if x.at < len(x.b) && x.b[x.at] == '.' && x.b[x.at-1] == '.' { // the dots are a token of their own
		x.at--
	}
	if x.at > start {
		x.at += unitAfterName(x.b[x.at:])
	}
}

// unitAfterName returns the length of a unit in parentheses at the beginning of b, the text after a name: "time (sec): 2.4". 0: none.
func unitAfterName(b []byte) int {
	if len(b) < 2 || b[0] != ' ' || b[1] != '(' {
		return 0
	}
	for _, unit := range [...]string{" (s)", " (sec)", " (ms)", " (seconds)", " (%)"} {
		if bytes.HasPrefix(b, []byte(unit)) {
			return len(unit)
		}
	}
	return 0
}

// decoration is the characters that may stand before a line.
var decoration = []byte("=->*#~+ \t")

// signLen returns the length of the sign between a name and its value at the beginning of b: ":", "=", "=>", "->", "::". 0: none.
func signLen(b []byte) int {
	switch {
	case len(b) == 0:
		return 0
	case len(b) > 1 && (b[0] == '=' || b[0] == '-') && b[1] == '>', len(b) > 1 && b[0] == ':' && b[1] == ':':
		return 2
	case b[0] == ':' || b[0] == '=':
		return 1
	}
	return 0
}

// positionName reports whether a name is of a step or an epoch. None has more than 15 letters.
func positionName(name []byte) bool {
	if len(name) > 15 {
		return false
	}
	var lower [16]byte
	text := string(lowered(lower[:0], name))
	return stepNames[text] > 0 || text == "epoch"
}

// isSentenceWord reports whether a word occurs in sentences about steps and losses that are no records: "resumed at step 5, best loss 2.3".
func isSentenceWord(word []byte) bool {
	if len(word) < 4 || len(word) > 12 {
		return false
	}
	var lower [12]byte
	switch string(lowered(lower[:0], word)) {
	case "best", "resumed", "resuming", "resume", "restored", "restoring", "saved", "saving", "loaded", "loading", "checkpoint", "early", "config", "args",
		"overflow", "improved", "skipping", "previous", "lowest":
		return true
	}
	return false
}

// stampName is the name of a time among the pairs, as in JSON objects.
var stampName = []byte("timestamp")

var tensorMark = []byte("tensor(")

// value reads the value after a sign: a tensor's number, a number in brackets or not, a text in quotes, or a word. It returns false for any other text.
func (x *lexer) value(name []byte) bool {
	if x.at == len(x.b) {
		return false
	}
	b := x.b[x.at:]
	switch {
	case bytes.HasPrefix(b, tensorMark): // "tensor(2.5, device='cuda:0')"
		to := bytes.IndexByte(b, ')')
		if to < 0 {
			return false
		}
		inner := b[len(tensorMark):]
		v, n := decimal.Leading(inner)
		x.add(pair{name: name, value: inner[:n], number: v, isNumber: n > 0})
		x.at += to + 1
		return n > 0
	case b[0] == '[' && len(b) > 1 && (startsNumber(bytes.TrimLeft(b[1:], " "))):
		x.at++
		x.bracket = true
		x.skip()
		return x.number(name, true)
	case b[0] == '\'' || b[0] == '"':
		to := bytes.IndexByte(b[1:], b[0])
		if to < 0 {
			return false
		}
		x.add(pair{name: name, value: b[1 : 1+to]})
		x.at += to + 2
		return true
	case startsNumber(b):
		return x.number(name, true)
	}
	return x.textValue(name)
}

// textValue reads a word as the value of a name. Closing brackets after the word belong to the line, unless opened in the word. It returns false without a
// word, and for a word with characters of code.
func (x *lexer) textValue(name []byte) bool {
	b := x.b[x.at:]
	n := bytes.IndexAny(b, " ,;|\t")
	if n < 0 {
		n = len(b)
	}
	v := b[:n]
	if bare := bytes.TrimRight(v, ")]"); len(bare) < len(v) && !bytes.ContainsAny(bare, "([") {
		v = bare
	}
	if len(v) == 0 || bytes.ContainsAny(v, "=(){}<>'\"") || v[len(v)-1] == ':' {
		return false
	}
	q := pair{name: name, value: v}
	if f, ok := decimal.Float(v); ok { // nan, inf
		q.number, q.isNumber = f, true
	}
	x.add(q)
	x.at += len(v)
	return true
}

// number reads a number with its unit or total ("/600"), and finds its meaning: from name, the name before a sign (sign is true), from words before that are a
// known name, or from its unit. After a sign, digits that are no number are a text. It returns false for digits without a sign that are no number (a date, a
// version), and where addNamed does.
func (x *lexer) number(name []byte, sign bool) bool {
	start := x.at
	v, n := leading(x.b[x.at:])
	if n <= 0 { // a date
		return sign && x.textValue(name)
	}
	v, n = decimal.Thousands(x.b[x.at:], v, n)
	q := pair{value: x.b[start : start+n], number: v, isNumber: true}
	x.at += n
	if seconds, m := x.spoken(start); m > 0 { // "0m 12s"
		q.number, q.unit, q.value = seconds, "s", strconv.AppendFloat(nil, seconds, 'g', -1, 64)
		x.at = start + m
		return x.addNamed(q, name, sign)
	}
	if m := x.clockLen(start, sign); m > 0 { // a time that is left out: "elapsed 0:00:12", "| 0:00:05s"
		if x.words > 0 && !isElapsed(x.b[x.from:x.until]) {
			return false
		}
		x.at, x.words = start+m, 0
		return true
	}
	word := x.unitWord()
	if unit := unitNames[string(word)]; unit != "" {
		q.unit = unit
		x.at += len(word)
	} else if len(word) > 0 || x.goesOn() {
		if !sign {
			return false
		}
		x.at = start // a time of day, a version, …
		return x.textValue(name)
	}
	x.readTotal(&q)
	if q.unit == "" && x.at < len(x.b) && x.b[x.at] == ' ' {
		x.unitAfterBlank(&q, sign || x.words > 0)
	}
	return x.addNamed(q, name, sign)
}

// unitAfterBlank reads the unit in "250 ms" or "10/14 batches" into q. A letter alone other than s is no unit there. A word before a sign is the next pair's
// name ("0.5 step: 7"); so is a word before a number, if loops count the word ("epoch 1 step 200") or the word is a rate and the number has a name already
// ("lr 1e-4 samples/s 776", but "776 samples/s 3").
func (x *lexer) unitAfterBlank(q *pair, hasName bool) {
	save := x.at
	x.at++
	word := x.unitWord()
	unit, behind := unitNames[string(word)], x.b[x.at+len(word):]
	mayBeName := isCounted(unit) || hasName && isRate(unit)
	if unit == "" || len(word) == 1 && word[0] != 's' || signFollows(behind) || mayBeName && numberFollows(behind) {
		x.at = save
		return
	}
	q.unit = unit
	x.at += len(word)
}

// clockLen returns the length of a time of day or a running time at start, if it is after other pairs and has no sign of its own: "eta 0:00:12". 0: none.
func (x *lexer) clockLen(start int, sign bool) int {
	if sign || len(x.pairs) == 0 || bytes.IndexByte(x.b[start:min(len(x.b), start+3)], ':') < 0 {
		return 0
	}
	return runningTimeLen(x.b[start:])
}

// runningTimeLen returns the length of a time at the beginning of b: "0:00:12", "12:34", "1:02:03.5", "0:00:05s"; 0: none.
func runningTimeLen(b []byte) (n int) {
	parts := 1
	for n < len(b) && n < 16 && (ascii.IsDigit(b[n]) || b[n] == ':' || b[n] == '.') {
		if b[n] == ':' {
			if n+2 >= len(b) || b[n+1]-'0' > 5 || !ascii.IsDigit(b[n+2]) {
				return 0
			}
			parts++
		}
		n++
	}
	if n < len(b) && b[n] == 's' {
		n++
	}
	if parts < 2 || parts > 3 || n < len(b) && (beginsName(b[n]) || b[n] == '-' || b[n] == '/') {
		return 0
	}
	return n
}

// isElapsed reports whether a name is of a running time, or of the remaining time.
func isElapsed(name []byte) bool {
	switch string(bytes.ToLower(name)) {
	case "elapsed", "eta", "time", "remain", "remaining", "left", "total", "took", "elapsed time", "remaining time", "total time", "time left":
		return true
	}
	return false
}

// leading is decimal.Leading, but also reads a number with dots after it: "3...".
func leading(b []byte) (v float64, n int) {
	v, n = decimal.Leading(b)
	if n > 0 {
		return v, n
	}
	if dots := bytes.Index(b[:min(len(b), 32)], []byte("..")); dots > 0 {
		return decimal.Leading(b[:dots])
	}
	return v, n
}

// spoken reads a time in minutes and seconds from start on, including the number already read. n is its length; 0: none.
func (x *lexer) spoken(start int) (seconds float64, n int) {
	if x.at == len(x.b) || x.b[x.at] != 'm' && x.b[x.at] != 'h' {
		return 0, 0
	}
	return spoken(x.b[start:])
}

// spoken reads a time of hours, minutes and seconds: "1h 2m 3s", "0m 12.5s". n is 0 if b begins with another text.
func spoken(b []byte) (seconds float64, n int) {
	seconds, n = decimal.Duration(b)
	// Seconds at the end, neither ms nor us; minutes or hours before, no days; no word after.
	if n < 4 || b[0] == '-' || b[n-1] != 's' || b[n-2] == 'm' || b[n-2] == 'u' || !bytes.ContainsAny(b[:n], "mh") || bytes.IndexByte(b[:n], 'd') >= 0 ||
		n < len(b) && beginsName(b[n]) {
		return 0, 0
	}
	return seconds, n
}

// goesOn reports whether the number just read is the beginning of another value: a time of day, a date, a version.
func (x *lexer) goesOn() bool {
	if x.at == len(x.b) {
		return false
	}
	switch x.b[x.at] {
	case ':':
		return ascii.IsDigit(x.nextByte())
	case '-', '_', 'T':
		return x.nextByte() != ' '
	}
	return false
}

// addNamed adds the pair of the number q. Its name is, in order: the name before a separator (sign: there was a "=" or ":"), else the words before the number,
// else the unit ("10/14 batches", "0.25 s/it"), else no name for a position ("[2/20]", see isPosition). A running average in parentheses or brackets after a
// value, and a percentage, are left out. It returns false if the number has no meaning, as in a sentence.
func (x *lexer) addNamed(q pair, name []byte, sign bool) bool {
	if !sign && x.words > 0 {
		name = x.b[x.from:x.until]
	}
	x.words = 0
	switch isCount := isCounted(q.unit); {
	case sign:
		q.name = name
		x.add(q)
	case len(name) > 0:
		q.name = name
		blanks := bytes.Count(name, []byte(" "))
		// "fwd 0.317s". Other unknown names without a sign are taken in cells alone: "| grad 2.5 |".
		isTimer := blanks == 0 && (units[q.unit].suffix == "_s" || units[q.unit].suffix == "_ms")
		if !x.known(&q) && !isTimer {
			if !x.cell || blanks > 1 {
				return false
			}
			x.foreign++
		}
		x.add(q)
	case isCount: // "10/14 batches"
		q.name, q.unit = []byte(q.unit), ""
		x.add(q)
	case units[q.unit].name != "":
		x.add(q)
	case x.isPosition(&q):
		x.addPosition(q)
	case x.depth > 0 || x.bracket || q.unit == "%": // an average after a value, or a percentage: left out
	default:
		return false
	}
	return true
}

// isPosition reports whether a number without a name is the step's: with a total in brackets, after an epoch or at the beginning of a line ("[2/20]", "epoch 1
// 10/300", "1/2100 (epoch 0.5)"), or the first or second number in brackets ("[1, 2000]").
func (x *lexer) isPosition(q *pair) bool {
	if q.of > 0 && x.depth == 0 && (x.bracket || x.epochBefore() || x.beginsLine()) {
		return true
	}
	return x.bracket && (len(x.pairs) == 0 || x.unnamed())
}

// addPosition adds the number of a step without a name. Of two such numbers the first is the epoch: "[1, 2000]", "[0/2][3/40]".
func (x *lexer) addPosition(q pair) {
	if n := len(x.pairs); n > 0 && len(x.pairs[n-1].name) == 0 && x.pairs[n-1].unit == "" {
		x.pairs[n-1].name = []byte("epoch")
	}
	x.add(q)
}

// unnamed reports whether the only pair so far is a number without a name, in brackets: "[1," of "[1, 2000]".
func (x *lexer) unnamed() bool {
	return len(x.pairs) == 1 && len(x.pairs[0].name) == 0 && x.pairs[0].unit == ""
}

// epochBefore reports whether the last pair is the epoch.
func (x *lexer) epochBefore() bool { return len(x.pairs) > 0 && isEpoch(&x.pairs[len(x.pairs)-1]) }

// beginsLine reports whether the number just read is the first of the line and followed by " (", ": " or ", ": "1/2100 (epoch 0.01), train_loss = 2.5". Keras
// and dates have a blank alone.
func (x *lexer) beginsLine() bool {
	rest := x.b[x.at:]
	return len(x.pairs) == 0 && (bytes.HasPrefix(rest, []byte(" (")) || bytes.HasPrefix(rest, []byte(": ")) || bytes.HasPrefix(rest, []byte(", ")))
}

// isCounted reports whether a unit is the name of what loops count, such as steps.
func isCounted(unit string) bool {
	return unit == "step" || unit == "steps" || unit == "batches" || unit == "iters" || unit == "batch"
}

// isRate reports whether a unit is of a speed: "tok/s", "it/s".
func isRate(unit string) bool {
	name := units[unit].name
	return name != "" && name != "step_time"
}

// known reports whether the words before a number without a sign are its name: one that objects know, or a usual one of loops. The name of a loop at the end,
// "loss(val)", is cut off, and sets x.evaluation.
func (x *lexer) known(q *pair) bool {
	for _, loop := range [...]string{"(train)", "(val)", "(test)"} { // mmengine
		if bare, ok := bytes.CutSuffix(q.name, []byte(loop)); ok {
			x.evaluation = x.evaluation || loop != "(train)"
			q.name = bare
		}
	}
	about := x.objects.About(q.name)
	if about.Step || about.Loss || isTime(q.name) || isEpoch(q) || x.objects.Known(q.name) {
		return true
	}
	if len(q.name) > 15 { // no usual name is longer
		return false
	}
	var lower [16]byte
	name := string(lowered(lower[:0], q.name))
	if _, ok := stepNames[name]; ok || isRate(name) {
		return true
	}
	switch name {
	case "avg", "mean", "elapsed", "remain", "remaining", "eta", "psnr", "lr", "learning rate", "norm", "grad norm", "grad_norm", "ms/batch",
		"ms/step", "s/batch", "ppl", "acc", "accuracy", "rank", "train acc", "dt", "it/sec", "grad. norm",
		"entropy", "reward", "perplexity", "mfu", "gpu", "kl", "error", "throughput":
		return true
	}
	return bytes.IndexByte(q.name, '_') > 0 && bytes.IndexByte(q.name, ' ') < 0 // loss_ctc, th_accuracy
}

// add adds a pair, or counts a pair beyond maxPairs.
func (x *lexer) add(q pair) {
	x.fresh = false
	if len(x.pairs) == maxPairs {
		x.dropped++
		return
	}
	q.about = x.objects.About(q.name)
	x.pairs = append(x.pairs, q)
}

// unitWord returns the word of letters at the current position, with % and with / inside: "tok/s". It does not move.
func (x *lexer) unitWord() []byte {
	n := x.at
	for n < len(x.b) && (beginsName(x.b[n]) || x.b[n] == '/' && n > x.at && n+1 < len(x.b) && beginsName(x.b[n+1]) || x.b[n] == '%') {
		n++
	}
	return x.b[x.at:n]
}

// numberFollows reports whether a number comes next in b, the text after a word: the word is then its name, as in "epoch 1 step 200".
func numberFollows(b []byte) bool {
	b = bytes.TrimLeft(b, " ")
	return len(b) > 0 && ascii.IsDigit(b[0])
}

// signFollows reports whether a sign comes next in b, the text after a word: the word is then a name, as in "0.5 step: 7".
func signFollows(b []byte) bool {
	b = bytes.TrimLeft(b, " ")
	return len(b) > 0 && (b[0] == ':' || b[0] == '=')
}

// readTotal reads the total after a number into q.of: "/600", " / 600", " of 600". Without one, nothing is read.
func (x *lexer) readTotal(q *pair) {
	i := x.at
	for i < len(x.b) && x.b[i] == ' ' {
		i++
	}
	if i+3 < len(x.b) && x.b[i] == 'o' && x.b[i+1] == 'f' && x.b[i+2] == ' ' && i > x.at { // "12 of 30"
		i++
	} else if i == len(x.b) || x.b[i] != '/' {
		return
	}
	for i++; i < len(x.b) && x.b[i] == ' '; i++ {
	}
	v, n := leading(x.b[i:])
	if n <= 0 {
		return
	}
	v, n = decimal.Thousands(x.b[i:], v, n)
	q.of, x.at = v, i+n
}

// unitNames has the text of each unit, so that a unit in a line needs no copy of its own.
var unitNames = func() map[string]string {
	out := make(map[string]string, len(units))
	for name := range units {
		out[name] = name
	}
	return out
}()
