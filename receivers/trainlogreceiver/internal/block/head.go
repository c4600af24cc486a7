package block

import (
	"bytes"
	"math"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/count"
)

var (
	olmoMark  = []byte("[step=")
	rollMark  = []byte("pipeline step ")
	rollStart = []byte(" start...")
	finished  = []byte(" finished")
)

// head reads a header, and opens its block: "[step=5/1000,…]" (olmo), "Train step 1/4 done." (areal), "pipeline step 1 start..." (roll), "Step 2/12", possibly
// between rules ("==== Step 2/100 ====", a banner) or after an arrow. A banner of an epoch alone gives the epoch of all steps below. It returns false for
// another line.
func (p *Parser) head(b []byte, pre *line.Prefix) bool {
	last := b[len(b)-1]
	switch {
	case last == ']' && bytes.Contains(b, olmoMark):
		return p.olmo(b, pre)
	case last == '.' && bytes.Contains(b, arealStep):
		return p.areal(b, pre)
	case last == '.' || last == 'd': // "start...", "finished"
		return p.roll(b, pre)
	}
	// The text between rules, and the width of the rules.
	text, rules := b, 0
	if arrow := bytes.TrimLeft(b, " "); bytes.HasPrefix(arrow, []byte("-->")) { // Coqui's TTS (trainer/logging/console_logger.py of coqui-ai/Trainer)
		text = bytes.TrimLeft(arrow, "-> ")
	} else if c := b[0]; c == '=' || c == '-' || c == '#' || c == '*' {
		text = bytes.TrimLeft(b, string(c))
		rules = len(b) - len(text)
		text = bytes.Trim(bytes.TrimRight(text, string(c)), " ")
	}
	h, ok := names(text)
	if !ok {
		return false
	}
	if h.step < 0 {
		if h.epoch == nil || rules < 3 { // "Epoch 1/2" alone on a line may be anything
			return false
		}
		p.state.end()
		p.state.Banner = h.epoch
		p.state.Zero = p.state.Zero || h.epoch.At == 0
		return true
	}
	s := &p.state
	s.end()
	s.In, s.Epoch = plain, h.epoch
	if rules >= 3 {
		s.In = banner
	}
	if s.Epoch == nil {
		s.Epoch = s.Banner
	}
	s.Step, s.Steps = h.step, h.steps
	if e := s.Epoch; e != nil {
		s.Zero = s.Zero || e.At == 0
		var c count.Counter
		if s.Zero {
			c.Iteration(0, 0, 0, 0) // tells the counter that epochs count from 0
		}
		s.Step, s.Steps = c.Iteration(e.At, e.Of, h.step, h.steps)
	}
	s.setWriter(pre)
	return true
}

// olmo reads OLMo's header "[step=5/1000,epoch=1,eta=20m6s]", after a logger's fields with tabs or in brackets, and opens its block. A time at the beginning of
// the line is the record's. It returns false for another line.
func (p *Parser) olmo(b []byte, pre *line.Prefix) bool {
	i := bytes.LastIndex(b, olmoMark)
	before, in := b[:i], b[i+1:len(b)-1]
	if len(before) > 0 && before[i-1] != '\t' && !bytes.HasSuffix(before, []byte("] ")) {
		return false
	}
	next := state{In: olmo, Step: -1}
	for item := range bytes.SplitSeq(in, []byte(",")) {
		name, value, _ := bytes.Cut(item, []byte("="))
		at, of, _ := bytes.Cut(value, []byte("/"))
		n, ok := decimal.Float(at)
		switch string(name) {
		case "step":
			if !ok || !whole(n) {
				return false
			}
			next.Step = n
			if total, ok := decimal.Float(of); ok && whole(total) { // "???" if unknown
				next.Steps = total
			}
		case "epoch":
			if !ok || !whole(n) {
				return false
			}
			next.Epoch = &epoch{At: n}
		case "eta":
		default:
			return false
		}
	}
	if next.Step < 0 {
		return false
	}
	next.Banner, next.Zero, next.Clock = p.state.Banner, p.state.Zero, p.state.Clock // as in end
	if n := line.StampLen(b); n > 0 && n < i && b[n] == '\t' {
		next.Stamp = bytes.Clone(b[:n])
	}
	p.state = next
	p.state.setWriter(pre)
	return true
}

// roll reads ROLL's "pipeline step 1 start...", which opens a block, and "pipeline step 1 finished", perhaps with dots, which ends the block. It returns false
// for another line.
func (p *Parser) roll(b []byte, pre *line.Prefix) bool {
	rest, ok := bytes.CutPrefix(b, rollMark)
	if !ok {
		return false
	}
	number, begins := bytes.CutSuffix(rest, rollStart)
	if !begins {
		number, ok = bytes.CutSuffix(bytes.TrimRight(rest, "."), finished)
		if !ok {
			return false
		}
	}
	n, ok := decimal.Float(number)
	if !ok || !whole(n) {
		return false
	}
	p.state.end()
	if begins {
		p.state.In, p.state.Step = roll, n
		p.state.setWriter(pre)
		p.state.Stamp = nil // not the header's time: the line of the metrics has that of the step's end
	}
	return true
}

// whole reports whether a number can be a count.
func whole(v float64) bool { return v >= 0 && v == math.Trunc(v) && v < 1<<53 }

// header is the content of a header. step is -1 without one; steps is 0 if unknown.
type header struct {
	step, steps float64
	epoch       *epoch
}

const longestName = 16 // "training step" and the blanks around

// names reads "Step: 1/12", "Epoch [1/2] Step [3/12]", "Iteration 5:". ok is false where the line has anything else. A step of the whole run ("global step")
// replaces a step of the epoch before it.
func names(b []byte) (h header, ok bool) {
	h.step = -1
	b = bytes.TrimSuffix(b, []byte(":"))
	for len(b) > 0 {
		n := 0
		for n < min(len(b), longestName) && (ascii.IsLetter(b[n]) || b[n] == '_' || b[n] == ' ') {
			n++
		}
		word := bytes.TrimSpace(b[:n])
		at, of, rest, found := fraction(bytes.TrimLeft(b[n:], ":=# ["))
		if !found {
			return h, false
		}
		b = bytes.TrimLeft(rest, " ],;|-")
		switch string(bytes.ToLower(word)) {
		case "epoch":
			if h.epoch != nil {
				return h, false
			}
			h.epoch = &epoch{at, of}
		case "global step", "global_step":
			h.step, h.steps = at, of
		case "step", "train step", "training step", "iteration", "iter", "update":
			if h.step >= 0 {
				return h, false
			}
			h.step, h.steps = at, of
		default:
			return h, false
		}
	}
	return h, h.step >= 0 || h.epoch != nil
}

// fraction reads "1/12" or "1", whole numbers of up to 12 digits; of is 0 without the second. rest is the text after. ok is false for another text.
func fraction(b []byte) (at, of float64, rest []byte, ok bool) {
	at, n := integer(b)
	if n == 0 {
		return 0, 0, nil, false
	}
	rest = b[n:]
	if after, slash := bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte("/")); slash {
		after = bytes.TrimLeft(after, " ")
		of, n = integer(after)
		if n == 0 {
			return 0, 0, nil, false
		}
		rest = after[n:]
	}
	if len(rest) > 0 && !bytes.ContainsRune([]byte(" ],;|-"), rune(rest[0])) {
		return 0, 0, nil, false
	}
	return at, of, rest, true
}

// integer reads up to 12 digits at the beginning of b; n is their number.
func integer(b []byte) (v float64, n int) {
	for n < len(b) && ascii.IsDigit(b[n]) && n < 12 {
		v = 10*v + float64(b[n]-'0')
		n++
	}
	return v, n
}

// section reads "📊 Training Results:", of a banner's block. Values below "Validation Results:" are an evaluation's. It returns false for another line.
func (p *Parser) section(b []byte) bool {
	if p.state.In != banner || b[len(b)-1] != ':' || bytes.Contains(b, bullet) {
		return false
	}
	for _, word := range [...]string{"Results", "Timing", "Metrics"} {
		if bytes.Contains(b, []byte(word)) {
			p.state.Aside = bytes.Contains(b, []byte("Validation")) || bytes.Contains(b, []byte("Eval"))
			p.state.Far = true
			return true
		}
	}
	return false
}
