package top

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/spans"
)

// look is the size and the abilities of a terminal.
type look struct {
	width, height int // columns, lines
	colour        bool
	plain         bool // ASCII only
}

const (
	recent = 20 // steps of the mean breakdown
	roomy  = 16 // lines of a screen with room for the account
)

// The ANSI codes.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	yellow = "33"
	cyan   = "36"
)

var colours = map[string]string{spans.SeverityBad: red, spans.SeverityWarning: yellow}

// piece is a piece of a line in a colour.
type piece struct{ text, colour string }

// line is pieces in a row.
type line []piece

// print is the line for a terminal: cut to its width, in its signs, and in colours if it has any.
func (l line) print(k look) string {
	var b strings.Builder
	left := k.width
	for _, p := range l {
		text := reading.Clean(p.text)
		if k.plain {
			text = asciiOnly(text)
		}
		wide := human.Columns(text)
		if text = human.Cut(text, left); k.plain {
			text = strings.ReplaceAll(text, "…", "~")
		}
		if k.colour && p.colour != "" && text != "" {
			b.WriteString("\x1b[" + p.colour + "m" + text + "\x1b[0m")
		} else {
			b.WriteString(text)
		}
		if left -= wide; left <= 0 {
			break
		}
	}
	return b.String()
}

// asciiOnly replaces signs other than ASCII for terminals that cannot show them: µs is us, °C is C, the rest are "?".
func asciiOnly(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x80:
			return r
		case r == '°':
			return -1
		case r == 'µ':
			return 'u'
		}
		return '?'
	}, text)
}

// section is a part of the screen, of which as many lines are shown as fit.
type section struct {
	lines []line
	least int // without room for so many lines the section is left out
}

// render makes the lines of a screen, at most its height, each at most its width: a header, and sections for figures of steps, parts of their time, verdicts,
// and GPUs. Without a job the reason stands in place of the figures; with a job, trouble of the source is a yellow line. Called under m.mu.
func (m *model) render(k look, now time.Time) []string {
	k.width, k.height = max(k.width, 1), max(k.height, 1)
	j := m.current()
	all := []line{m.header(j, now)}
	if j == nil {
		wait := "waiting for a training step"
		if m.trouble != "" {
			wait = m.trouble
		}
		all = append(all, line{}, line{{wait, ""}})
	} else if m.trouble != "" {
		all = append(all, line{{m.trouble, yellow}})
	}
	var sections []section
	if j != nil {
		j.refresh(now)
		// 2: a title and a row.
		sections = append(sections, section{j.figures(k), 1}, section{j.parts(k), 2}, section{j.latest(), 2})
	}
	sections = append(sections, section{m.gpuLines(), 2})
	given := share(sections, k.height-len(all))
	for i, s := range sections {
		all = append(all, s.lines[:given[i]]...)
	}
	out := make([]string, 0, k.height)
	for _, l := range all[:min(len(all), k.height)] {
		out = append(out, l.print(k))
	}
	return out
}

// share says how many lines each section gets of those left: the figures, the only section with a least of 1, all; then each section in order its least, if
// there is room and the section has so many; then each section shown so far in turn a line more.
func share(sections []section, left int) []int {
	given := make([]int, len(sections))
	if len(sections) == 0 || left <= 0 {
		return given
	}
	if first := &sections[0]; first.least == 1 { // the figures: absent without a job
		given[0] = min(len(first.lines), left)
		left -= given[0]
	}
	for i, s := range sections {
		if n := min(s.least, len(s.lines)); given[i] == 0 && n == s.least && n <= left {
			given[i] = n
			left -= n
		}
	}
	for more := true; more && left > 0; {
		more = false
		for i, s := range sections {
			if given[i] > 0 && given[i] < len(s.lines) && left > 0 {
				given[i]++
				left--
				more = true
			}
		}
	}
	return given
}

// header is the first line: the step, how many are planned and how long the rest takes, the age of the data, where the data come from, the run, and how many
// further runs there are.
func (m *model) header(j *job, now time.Time) line {
	l := line{{"trainbridge top", bold}}
	if j == nil {
		return append(l, piece{"  " + m.from, ""})
	}
	if n := len(j.steps); n > 0 && j.steps[n-1].n >= 0 {
		text := "  step " + human.Thousands(j.steps[n-1].n)
		if j.of > 0 {
			text += " of " + human.Thousands(j.of) + j.left()
		}
		l = append(l, piece{text, bold})
	}
	if at := j.last(); at > 0 {
		if age := now.Sub(time.Unix(0, at)); age >= 0 { // less than 0: the clock of the logs is ahead
			l = append(l, piece{"  " + ago(age), ""})
		}
	}
	l = append(l, piece{"  " + m.from, faint})
	if j.id != "" {
		l = append(l, piece{"  " + j.id, faint})
	}
	if n := len(m.jobs) - 1; n > 0 {
		l = append(l, piece{fmt.Sprintf("  and %d more", n), faint})
	}
	return append(l, piece{"  q quits", faint})
}

// left is how long the remaining steps take at the median step time on the screen, such as "  2 h 6 min left"; "": unknown, or none remain.
func (j *job) left() string {
	var times []float64
	for i := range j.steps {
		if t := j.steps[i].time; t > 0 {
			times = append(times, t)
		}
	}
	steps := j.of - j.steps[len(j.steps)-1].n
	if len(times) == 0 || steps <= 0 {
		return ""
	}
	return "  " + human.Seconds(math.Round(stat.Middle(times)*float64(steps))) + " left"
}

// ago is "12 s ago".
func ago(d time.Duration) string { return human.Seconds(math.Round(d.Seconds())) + " ago" }

// figure is a value of steps with a row on the screen: name, latest value, median, and the course as a curve.
type figure struct {
	name   string
	print  func(float64) string
	of     func(*step) float64
	median bool // a median is shown; of a falling loss, the median means nothing
}

// figures are the rows in their order.
var figures = []figure{
	{"step time", human.Seconds, func(s *step) float64 { return s.time }, true},
	{"tokens/s", human.Digits, func(s *step) float64 { return s.tokens }, true},
	{"samples/s", human.Digits, func(s *step) float64 { return s.sample }, true},
	{"TFLOP/s/GPU", func(v float64) string { return human.Digits(v / 1e12) }, func(s *step) float64 { return s.flop }, true},
	{"MFU", human.Percent, func(s *step) float64 { return s.mfu }, true},
	{"loss", human.Digits, func(s *step) float64 { return s.loss }, false},
}

// figures are the rows of the figures that any step has, and, on a high screen, where the wall-clock time went. The median is left out below 60 columns.
func (j *job) figures(k look) (all []line) {
	for _, f := range figures {
		values := make([]float64, len(j.steps))
		var known []float64
		for i := range j.steps {
			if values[i] = f.of(&j.steps[i]); !math.IsNaN(values[i]) && !math.IsInf(values[i], 0) {
				known = append(known, values[i])
			}
		}
		if len(known) == 0 {
			continue
		}
		last, colour := "-", ""
		if v := values[len(values)-1]; !math.IsNaN(v) {
			last = f.print(v)
		} else if odd := j.steps[len(j.steps)-1].odd; odd != "" && f.name == "loss" {
			last, colour = odd, red
		}
		l := line{{human.Pad(f.name, 11) + " ", ""}, {human.PadLeft(last, 9), cmp.Or(colour, bold)}}
		if k.width >= 60 {
			typical := strings.Repeat(" ", 16)
			if f.median {
				typical = human.PadLeft("p50 "+f.print(stat.Middle(known)), 16)
			}
			l = append(l, piece{typical, faint})
		}
		used := 0
		for _, p := range l {
			used += len([]rune(p.text))
		}
		all = append(all, append(l, piece{"  ", ""}, piece{spark(values, k.width-used-2, k.plain), cyan}))
	}
	if l := j.spent.line(); l != nil && k.height >= roomy {
		all = append(all, l)
	}
	return all
}

// parts are the rows of where the time of the recent steps goes, the largest part first: share, mean time, and the course over all steps kept. The mean is left
// out below 60 columns.
func (j *job) parts(k look) (all []line) {
	if len(j.windows) == 0 {
		return nil
	}
	latest := j.windows[max(0, len(j.windows)-recent):]
	sums, whole := map[string]float64{}, 0.0
	for _, w := range latest {
		whole += w.whole
		for part, s := range w.parts {
			sums[part] += s
		}
	}
	if whole <= 0 {
		return nil
	}
	all = append(all, line{{fmt.Sprintf("where the time goes, last %d", len(latest)), bold}})
	for _, part := range slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) }) {
		values := make([]float64, len(j.windows))
		for i, w := range j.windows {
			values[i] = w.parts[part]
		}
		l := line{{human.Pad(part, 16) + " ", ""}, {human.PadLeft(human.Percent(sums[part]/whole), 8), bold}}
		used := 17 + 8 // columns of the name and of the share
		if k.width >= 60 {
			l = append(l, piece{human.PadLeft(human.Seconds(sums[part]/float64(len(latest))), 12), faint})
			used += 12
		}
		all = append(all, append(l, piece{"  ", ""}, piece{spark(values, k.width-used-2, k.plain), cyan}))
	}
	return all
}

// latest are the rows of verdicts, each kind once, the worst first, below their number.
func (j *job) latest() (all []line) {
	if len(j.verdicts) == 0 {
		return nil
	}
	all = append(all, line{{fmt.Sprintf("verdicts: %s, the worst first", human.Thousands(j.told)), bold}})
	for _, v := range j.grouped() {
		all = append(all, v.line())
	}
	return all
}

// line is the row of a kind of verdict: severity, count, where the latest was, title, and reason.
func (v *told) line() line {
	l := line{{human.Pad(cmp.Or(v.severity, "verdict"), 7) + " ", colours[v.severity]}, {human.PadLeft(fmt.Sprintf("%dx ", v.times), 5), faint}}
	if v.where != "" {
		l = append(l, piece{v.where + " ", ""})
	}
	l = append(l, piece{v.name, colours[v.severity]})
	if v.reason != "" {
		l = append(l, piece{" " + v.reason, ""})
	}
	return l
}

// gpuLines are the rows of GPUs, below how many there are and how busy on average: those held down first, then by host and number.
func (m *model) gpuLines() (all []line) {
	cards := m.cards()
	if len(cards) == 0 {
		return nil
	}
	busy, known := 0.0, 0.0
	for _, g := range cards {
		if !math.IsNaN(g.busy) {
			busy += g.busy
			known++
		}
	}
	title := fmt.Sprintf("%d GPUs", len(cards))
	if len(cards) == 1 {
		title = "1 GPU"
	}
	if known > 0 {
		title += ", " + human.Percent(busy/known) + " busy"
	}
	all = append(all, line{{title, bold}})
	slices.SortStableFunc(cards, func(a, b *gpu) int { return -cmp.Compare(bit(a.throttled != ""), bit(b.throttled != "")) })
	for _, g := range cards {
		l := line{{human.Pad(strings.TrimSpace(g.host+" "+cmp.Or(g.name, g.id)), 15) + " ", ""}, {human.PadLeft(human.Percent(g.busy), 8), bold}}
		if !math.IsNaN(g.memory) {
			text := "  " + human.Bytes(g.memory)
			if g.memoryLimit > 0 {
				text = "  " + human.Of(human.Bytes(g.memory), human.Bytes(g.memoryLimit))
			}
			l = append(l, piece{text, ""})
		}
		if !math.IsNaN(g.power) {
			l = append(l, piece{"  " + human.Watts(g.power), ""})
		}
		if !math.IsNaN(g.temperature) {
			l = append(l, piece{"  " + human.Celsius(g.temperature), ""})
		}
		if g.throttled != "" {
			l = append(l, piece{"  held down: " + g.throttled, yellow})
		}
		if g.model != "" {
			l = append(l, piece{"  " + g.model, faint})
		}
		all = append(all, l)
	}
	return all
}

// bit is 1 for true.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

var (
	bars  = []rune("▁▂▃▄▅▆▇█")
	ascii = []rune("_.-:=+*#")
)

// spark is a curve of the latest values, a column each, blank for an unknown value: "▁▃▆█", plain in ASCII. The lowest of the values drawn is at the bottom,
// the highest at the top. Values within 1 % of each other are all in the middle: noise is not to look like a change.
func spark(values []float64, width int, plain bool) string {
	if width <= 0 {
		return ""
	}
	signs := bars
	if plain {
		signs = ascii
	}
	values = values[max(0, len(values)-width):]
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high = min(low, v), max(high, v)
		}
	}
	height := min(high-low, math.MaxFloat64) // not infinite
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			b.WriteByte(' ')
		case high-low <= 0.01*math.Abs(high):
			b.WriteRune(signs[3])
		default:
			b.WriteRune(signs[int(math.Round(min(v-low, height)/height*float64(len(signs)-1)))])
		}
	}
	return b.String()
}
