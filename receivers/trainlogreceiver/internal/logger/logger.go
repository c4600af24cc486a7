// Package logger removes loggers' prefixes that bridge/line leaves, because removing them there would damage lines without a logger.
//
//	INFO trainer: message                                    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
//	INFO:root:message                                        logging.basicConfig()
//	| INFO     | __main__:loop:9 - message                   loguru, behind its stamp
//	[12:14:31] INFO     message               frames.py:9    rich.logging.RichHandler
//	[info     ] message                                      structlog.dev.ConsoleRenderer
//	I1120 10:00:02.500000 139872345678912 file.py:48] message      absl
//	[11/26 12:29:12 d2.utils.events]: message                detectron2
//	11/26 12:28:17 - mmengine - INFO - message               mmengine
//	11/26/2026 12:13:00 - INFO - __main__ - message          the examples of Transformers
//	[rlvr_pipeline.py (840)] [INFO] [DRIVER 0 / 1][PID 7] message  ROLL, behind its stamp
package logger

import (
	"bytes"
	"math"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
)

// Prefix is the content of the pieces before a message.
type Prefix struct {
	Sure    bool // one piece was a logger's for certain: a level, a place in a source, a time
	Rank    int64
	HasRank bool
	// Seconds is the time of a clock with stamps that bridge/clock does not read, for lack of the year, or the day. Differences are times; NaN: none.
	Seconds float64
}

// Reset empties the prefix.
func (p *Prefix) Reset() { *p = Prefix{Seconds: math.NaN()} }

// Stamp removes the time that ts puts before lines of any program: "Nov 26 12:21:30 ", and with -s "00:00:12.012882 ". ok is false for another line, and for a
// time with nothing after.
func Stamp(b []byte, p *Prefix) (rest []byte, ok bool) {
	// A quick look, since all lines come here: a time of day, or a month ("Apr" to "Sep").
	if len(b) < 17 || b[2] != ':' && (b[3] != ' ' || b[0] < 'A' || b[0] > 'S') {
		return nil, false
	}
	n := 0
	if b[2] != ':' {
		n = monthDay(b)
	} else if n = clockLen(b); n != len("00:00:12.012882") {
		n = 0
	}
	if n == 0 || n == len(b) || b[n] != ' ' {
		return nil, false
	}
	p.Sure, p.Seconds = true, seconds(b, n)
	return b[n+1:], len(b) > n+1
}

// Since removes the seconds that ts -i puts before a line: "0.023711 ". words reports whether letters follow, as values have none.
func Since(b []byte) (rest []byte, words, ok bool) {
	n := numberLen(b)
	if n == 0 || len(b) < n+8 || b[n] != '.' || numberLen(b[n+1:]) != 6 || b[n+7] != ' ' {
		return nil, false, false
	}
	rest = b[n+8:]
	return rest, bytes.ContainsAny(rest, "abcdefghijklmnopqrstuvwxyz"), true
}

const most = 160 // bytes of a piece

// Next removes one piece of a logger (a level, a name, a place in a source, a time), with the separator before, and notes what the piece says in p. A separator
// alone is removed after a sure piece: then the message follows. ok is false without a piece at the beginning of b.
func Next(b []byte, p *Prefix) (rest []byte, ok bool) {
	b = bytes.TrimLeft(b, " \t")
	for _, separator := range [...]string{"| ", "- ", ": ", "] "} {
		after, has := bytes.CutPrefix(b, []byte(separator))
		if !has {
			continue
		}
		rest, ok = piece(bytes.TrimLeft(after, " "), p)
		switch {
		case ok:
			return rest, true
		case p.Sure:
			return after, true
		}
		return nil, false
	}
	return piece(b, p)
}

// piece removes a piece without a separator before. The first byte tells most kinds of pieces apart; a name is tried last, since any word may be one.
func piece(b []byte, p *Prefix) (rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, false
	}
	switch c := b[0]; {
	case c == '[':
		return bracket(b, p)
	case c == '(':
		if end := bytes.IndexByte(b[:min(len(b), 64)], ')'); end > 0 && isPlace(b[1:end]) {
			p.Sure = true
			return b[end+1:], true
		}
		return nil, false
	case ascii.IsDigit(c):
		return digits(b, p)
	}
	if n := levelLen(b); n > 0 {
		return level(b, n, p)
	}
	rest, ok = absl(b, p)
	if ok {
		return rest, true
	}
	if n := monthDay(b); n > 0 {
		p.Sure = true
		p.Seconds = seconds(b, n)
		return b[n:], true
	}
	return name(b, p)
}

// level removes a level of n bytes at the beginning of b, with the name after the level in "INFO:root:message", and rich's place at the end of the line.
// false: the word has another character after, or nothing.
func level(b []byte, n int, p *Prefix) ([]byte, bool) {
	rest := b[n:]
	switch {
	case len(rest) == 0:
		return nil, false
	case rest[0] == ':':
		rest = rest[1:]
		if i := bytes.IndexByte(rest[:min(len(rest), most)], ':'); i > 0 && isName(rest[:i]) {
			rest = rest[i+1:]
		}
	case rest[0] != ' ' && rest[0] != '\t' && rest[0] != ']' && rest[0] != '|':
		return nil, false
	}
	p.Sure = true
	return column(rest), true
}

// column removes the place in the source that RichHandler puts at the end of a line, after blanks.
func column(b []byte) []byte {
	t := bytes.TrimRight(b, " ")
	i := bytes.LastIndexByte(t, ' ')
	if i > 1 && t[i-1] == ' ' && bytes.Contains(t[i:], []byte(".py:")) && isPlace(t[i+1:]) {
		return bytes.TrimRight(t[:i], " ")
	}
	return b
}

// bracket removes brackets around a level, a place in a source, a time, a rank, a process, or a host with a time after. Other brackets are the message's: they
// hold numbers or other words.
func bracket(b []byte, p *Prefix) ([]byte, bool) {
	end := bytes.IndexByte(b[:min(len(b), most)], ']')
	if end < 2 {
		return nil, false
	}
	in, rest := b[1:end], b[end+1:]
	anyCase := levelLen(bytes.ToUpper(in[:min(len(in), 9)])) // of structlog's "[info     ]" too
	switch {
	case anyCase > 0 && anyCase == len(bytes.TrimRight(in, " ")), hasLevel(in):
	case namesHydra(in, rest):
	case isPlace(in), bytes.HasPrefix(in, []byte("PID ")), bytes.HasPrefix(in, []byte("DRIVER ")), bytes.Equal(in, []byte("__main__")):
	case rank(in, p):
	case clockLen(in) > 0:
		p.Seconds = seconds(in, clockLen(in))
	case monthDay(in) > 0:
		p.Seconds = seconds(in, monthDay(in))
	case line.StampLen(rest[min(len(rest), 1):]) > 0 && isName(in): // "[host] 2026-06-12 10:30:00": a host before a time
		n := 1 + line.StampLen(rest[1:])
		rest = rest[n:]
	default:
		return nil, false
	}
	p.Sure = true
	if len(rest) > 0 && rest[0] == ':' {
		rest = rest[1:]
	}
	return rest, true
}

// Rank notes a rank in brackets before a message, "[rank2] step 5", and reports whether there is one. The text stays as it is: some formats begin with a rank,
// and a format that takes any text passes over the brackets.
func Rank(b []byte, p *Prefix) bool {
	end := bytes.Index(b[:min(len(b), most)], []byte("] "))
	return end > 1 && b[0] == '[' && rank(b[1:end], p)
}

// namesHydra reports whether brackets hold the name of a logger of Hydra's: "[train][INFO] - message", behind the time in brackets
// (facebookresearch/hydra, hydra/conf/hydra/job_logging/default.yaml).
func namesHydra(in, behind []byte) bool {
	n := levelLen(bytes.TrimPrefix(behind, []byte("[")))
	return isName(in) && n > 0 && behind[0] == '[' && bytes.HasPrefix(behind[1+n:], []byte("] - "))
}

// hasLevel reports whether a level is the last word, or the first before a bar: "Nov 26 12:13:22 train INFO", "INFO|DP=0".
func hasLevel(in []byte) bool {
	if n := levelLen(in); n > 0 && n < len(in) && in[n] == '|' {
		return true
	}
	i := bytes.LastIndexByte(in, ' ')
	return i > 0 && levelLen(in[i+1:]) == len(in)-i-1
}

// rank reads "RANK0", "Rank 0", "rank 7" and sets the rank of the prefix; "GPU0" is the rank too (pytorch/examples, distributed/ddp-tutorial-series). It
// returns false for another text.
func rank(in []byte, p *Prefix) bool {
	number, ok := bytes.CutPrefix(in, []byte("GPU"))
	if !ok {
		if len(in) < 5 || !bytes.EqualFold(in[:4], []byte("rank")) {
			return false
		}
		number = in[4:]
	}
	number = bytes.TrimLeft(number, " :")
	n, used := decimal.Unsigned(number, 0)
	if used == 0 || used != len(number) || n > 1<<24 {
		return false
	}
	p.Rank, p.HasRank = int64(n), true
	return true
}

// digits removes a piece that begins with a digit: a time ("11/26 12:28:17", "12:13:19"), or one or two numbers before a level ("1764154800.25 INFO", "4711 12
// INFO"): a process, a thread, seconds since the epoch or the start. It returns false for a number before anything else, which is a value of the message.
func digits(b []byte, p *Prefix) ([]byte, bool) {
	if n := monthDay(b); n > 0 {
		p.Sure = true
		p.Seconds = seconds(b, n)
		rest := b[n:]
		for _, half := range [...]string{" AM", " PM"} {
			rest = bytes.TrimPrefix(rest, []byte(half))
		}
		return rest, true
	}
	if n := clockLen(b); n > 0 && n < len(b) && (b[n] == ' ' || b[n] == '\t') {
		p.Sure = true
		p.Seconds = seconds(b, n)
		return b[n:], true
	}
	n := 0
	for n < len(b) && (ascii.IsDigit(b[n]) || b[n] == '.') {
		n++
	}
	after := bytes.TrimLeft(b[n:], " \t")
	if n < len(b) && b[n] == ' ' && len(after) > 0 && n < 20 {
		if levelLen(after) > 0 {
			p.Seconds = epoch(b[:n], p.Seconds)
			return after, true
		}
		if m := numberLen(after); m > 0 && m < len(after) && after[m] == ' ' && levelLen(bytes.TrimLeft(after[m:], " ")) > 0 {
			p.Seconds = epoch(b[:n], p.Seconds)
			return bytes.TrimLeft(after[m:], " "), true
		}
	}
	return nil, false
}

// numberLen returns the number of digits at the beginning of b.
func numberLen(b []byte) int {
	n := 0
	for n < len(b) && ascii.IsDigit(b[n]) {
		n++
	}
	return n
}

// epoch reads a time in s since 1970, as logging's %(created)f, which always has a fraction. The result is otherwise for another number: a process, a thread,
// or a time since the start.
func epoch(b []byte, otherwise float64) float64 {
	if v, ok := decimal.Float(b); ok && v > 1e9 && v < 4e9 && bytes.IndexByte(b, '.') > 0 {
		return v
	}
	return otherwise
}

// absl removes "I1120 10:00:02.500000 139872345678912 file.py:48] ": a letter for the level, then month and day. The day of the month counts in Seconds.
func absl(b []byte, p *Prefix) ([]byte, bool) {
	if len(b) < 20 || bytes.IndexByte([]byte("DIWEF"), b[0]) < 0 || numberLen(b[1:]) != 4 || b[5] != ' ' {
		return nil, false
	}
	end := bytes.Index(b[:min(len(b), most)], []byte("] "))
	n := clockLen(b[6:])
	if end < 0 || n == 0 {
		return nil, false
	}
	p.Sure = true
	p.Seconds = seconds(b[6:], n) + 86400*float64(10*(b[3]-'0')+b[4]-'0')
	return b[end+2:], true
}

// name removes a word that is a logger's name ("trainer:" of "INFO trainer: message"), a place in a source ("file.py:12"), or the names of a pod and a
// container. A word may as well be the message's first, so a name needs signs: a sure piece before or a level after, and a separator or level after.
func name(b []byte, p *Prefix) ([]byte, bool) {
	end := 0
	for end < len(b) && end < most && b[end] != ' ' && b[end] != '\t' {
		end++
	}
	if end == 0 || end == len(b) {
		return nil, false
	}
	word, rest := b[:end], bytes.TrimLeft(b[end:], " \t")
	if rest, ok := stern(word, b[end:]); ok {
		p.Sure = true
		return rest, true
	}
	bare := bytes.TrimSuffix(word, []byte(":"))
	colon := len(bare) < len(word)
	levelBehind := levelLen(rest) > 0
	levelBehindSeparator := len(rest) >= 2 && levelLen(bytes.TrimLeft(rest[1:], " ")) > 0 // "name - INFO"
	separator := bytes.HasPrefix(rest, []byte("- ")) || bytes.HasPrefix(rest, []byte("| "))
	switch {
	case isPlace(bare):
		p.Sure = true
	case !p.Sure && !levelBehind && !levelBehindSeparator:
		return nil, false
	case !isName(bare) || isLoop(bare):
		return nil, false
	case !colon && !levelBehind && !separator:
		return nil, false
	}
	return b[end:], true
}

// stern removes the names of a pod and a container: "train-worker-0 pytorch text" (stern/stern, cmd/cmd.go, its default template). pod is the first word, b the
// text after, from its blank on. Pods of a StatefulSet or a training operator end in a number, those of a Deployment or DaemonSet in five characters of
// Kubernetes: letters and digits, without vowels and what looks like a vowel (apimachinery, pkg/util/rand).
func stern(pod, b []byte) ([]byte, bool) {
	if len(b) < 3 || b[0] != ' ' || b[1] < 'a' || b[1] > 'z' {
		return nil, false
	}
	i := bytes.LastIndexByte(pod, '-')
	if i < 1 || i+1 == len(pod) || !isName(pod) || bytes.IndexByte(pod, '_') >= 0 {
		return nil, false
	}
	last := pod[i+1:]
	if numberLen(last) != len(last) && (len(last) != 5 || len(bytes.Trim(last, "bcdfghjklmnpqrstvwxz2456789")) > 0) {
		return nil, false
	}
	n := 1
	for n < len(b) && (b[n] >= 'a' && b[n] <= 'z' || ascii.IsDigit(b[n]) || b[n] == '-') {
		n++
	}
	if n == len(b) || b[n] != ' ' || isLoop(b[1:n]) { // "gpt-2 train loss 2.3" is a message
		return nil, false
	}
	return b[n+1:], true
}

// isLoop reports whether a word names a loop ("train - loss 2.3"), or a number of the loop: part of the message, and no logger's name.
func isLoop(b []byte) bool {
	for _, word := range [...]string{
		"train", "training", "val", "valid", "validation", "eval", "evaluation", "test", "cv", "epoch", "step", "iteration", "iter", "batch", "loss",
	} {
		if bytes.EqualFold(b, []byte(word)) {
			return true
		}
	}
	return false
}

// isName reports whether b may be the name of a logger: letters, digits and . _ - /, with a letter or _ first.
func isName(b []byte) bool {
	for _, c := range b {
		if !ascii.IsLetter(c) && !ascii.IsDigit(c) && c != '.' && c != '_' && c != '-' && c != '/' {
			return false
		}
	}
	return len(b) > 0 && (ascii.IsLetter(b[0]) || b[0] == '_')
}

// isPlace reports whether b is a place in a source: "file.py:12", "__main__:loop:9", "file.py (840)", "file.py 840", "log[path/file.py:490]", "trainer:732".
func isPlace(b []byte) bool {
	b = bytes.TrimRight(b, "])")
	i := len(b)
	for i > 0 && ascii.IsDigit(b[i-1]) {
		i--
	}
	if i == len(b) || i < 2 {
		return false
	}
	if bytes.HasSuffix(b[:i], []byte(".py (")) || bytes.HasSuffix(b[:i], []byte(".py ")) {
		return true
	}
	if b[i-1] != ':' || bytes.ContainsAny(b, " =,") {
		return false
	}
	if c := b[0]; !ascii.IsLetter(c) && c != '_' && c != '.' && c != '/' {
		return false
	}
	// A word and a number alone are values of a loop: "step:5", "epoch:1".
	return bytes.Contains(b, []byte(".py")) || bytes.Count(b, []byte(":")) > 1 || bytes.Equal(b[:i-1], []byte("trainer"))
}

// levelLen returns the length of the level at the beginning of b, 0 without one. Levels are in capitals.
func levelLen(b []byte) int {
	n := 0
	for n < len(b) && n < 9 && b[n] >= 'A' && b[n] <= 'Z' {
		n++
	}
	switch string(b[:n]) {
	case "INFO", "DEBUG", "WARNING", "ERROR", "WARN", "CRITICAL", "TRACE", "NOTICE", "SUCCESS":
		return n
	}
	return 0
}

// clockLen returns the length of the time of day at the beginning of b: "12:13:19", "12:22:27.148393". 0: none.
func clockLen(b []byte) int {
	if len(b) < 8 || b[2] != ':' || b[5] != ':' {
		return 0
	}
	for _, i := range [...]int{0, 1, 3, 4, 6, 7} {
		if !ascii.IsDigit(b[i]) {
			return 0
		}
	}
	n := 8
	if n < len(b) && (b[n] == '.' || b[n] == ',') {
		if m := numberLen(b[n+1:]); m > 0 {
			n += 1 + m
		}
	}
	return n
}

// monthDay returns the length of a day and a time without a year, or with the year in a form unknown to bridge/clock: "11/26 12:28:17", "11-26 12:28:17"
// (vLLM), "11/26/2026 12:13:30", "2026/11/26 12:28:17", "11/26/26 12:14:49", "Nov 26 12:13:22". 0: none.
func monthDay(b []byte) int {
	n := 0
	switch {
	case len(b) >= 14 && (b[2] == '/' || b[2] == '-') && b[5] == ' ':
		n = 6
	case len(b) > 18 && b[2] == '/' && b[5] == '/' && b[10] == ' ', len(b) > 18 && b[4] == '/' && b[7] == '/' && b[10] == ' ':
		n = 11
	case len(b) > 16 && b[2] == '/' && b[5] == '/' && b[8] == ' ': // rich
		n = 9
	case len(b) > 14 && b[3] == ' ' && b[6] == ' ' && isMonth(b[:3]):
		n = 7
	default:
		return 0
	}
	if m := clockLen(b[n:]); m > 0 {
		return n + m
	}
	return 0
}

// isMonth reports whether b is an English month in three letters.
func isMonth(b []byte) bool {
	switch string(b) {
	case "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec":
		return true
	}
	return false
}

// seconds returns the time of the day, s, at the end of a stamp of n bytes: 80002 of "11/26 22:13:22". NaN: none.
func seconds(b []byte, n int) float64 {
	i := bytes.IndexByte(b[:n], ':')
	if i < 2 {
		return math.NaN()
	}
	clock := b[i-2 : n] // 12:22:27.148393
	s, ok := decimal.Float(bytes.ReplaceAll(clock[6:], []byte(","), []byte(".")))
	if !ok {
		return math.NaN()
	}
	twoDigits := func(i int) float64 { return float64(10*(clock[i]-'0') + clock[i+1] - '0') }
	return 3600*twoDigits(0) + 60*twoDigits(3) + s
}

// Rich returns the column of the message in a line of rich's RichHandler: "[12:14:31] INFO     message", with blanks in place of a time equal to the line
// before. 0: not a line of rich. If bridge/line has removed the time, the line begins with the level, and the result is RichLevel, the least column.
func Rich(b []byte) int {
	at := 0 // where the level begins
	if len(b) > 0 && b[0] == '[' {
		at = bytes.IndexByte(b[:min(len(b), 40)], ']') + 1
		if from := bytes.IndexByte(b[:at], ' ') + 1; at == 0 || clockLen(b[max(from, 1):at]) == 0 { // a time [%X], or a day and a time [%x %X]
			return 0
		}
	}
	for at < len(b) && b[at] == ' ' {
		at++
	}
	if at == len(b) {
		return 0
	}
	n := levelLen(b[at:])
	end := at + RichLevel // of the level, filled with blanks
	if n == 0 || len(b) <= end {
		return 0
	}
	filled := len(bytes.TrimLeft(b[at+n:end], " ")) == 0
	indented := b[end] == ' ' && at > 0 // blanks where the message begins: not rich's columns
	if !filled || indented {
		return 0
	}
	return end
}

// RichLevel is how wide rich's levels are: columns, with the blank after.
const RichLevel = 9

// CutPath removes the place in the source at the end of the first line of a message of rich's. One blank separates the place from a message that fills its
// column.
func CutPath(b []byte) []byte {
	b = bytes.TrimRight(b, " ")
	i := bytes.LastIndexByte(b, ' ')
	if i < 0 || !bytes.Contains(b[i:], []byte(".py:")) || !isPlace(b[i+1:]) {
		return b
	}
	return bytes.TrimRight(b[:i], " ")
}
