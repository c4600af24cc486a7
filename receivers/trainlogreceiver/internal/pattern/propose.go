package pattern

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
)

const (
	proposedLines = 3  // lines of a shape, at least
	proposedMost  = 16 // numbers of a line
)

// Propose makes a pattern of the most frequent lines of a log, equal but for their 2 to proposedMost numbers: "step {iteration} loss {loss}" of "step 1 loss
// 2.3", "step 2 loss 2.2", …. Lines with "loss" count twice; of equally many the shape first in byte order counts. "": no shape with a number that counts steps
// has proposedLines lines.
func Propose(lines []string) string {
	shapes := make(map[string][][]string) // the numbers of lines, by the text between them
	for _, line := range lines {
		texts, numbers := cut(line)
		if len(numbers) < 2 || len(numbers) > proposedMost {
			continue
		}
		shape := strings.Join(texts, "\x00")
		shapes[shape] = append(shapes[shape], numbers)
	}
	best, most := "", 0
	for shape, rows := range shapes {
		if len(rows) < proposedLines {
			continue
		}
		texts := strings.Split(shape, "\x00")
		if counting(texts, rows) < 0 {
			continue
		}
		n := len(rows)
		if strings.Contains(strings.ToLower(shape), "loss") { // lines of the learning rate alone may be as frequent
			n *= 2
		}
		if best == "" || n > most || n == most && shape < best {
			best, most = shape, n
		}
	}
	if best == "" {
		return ""
	}
	text := write(strings.Split(best, "\x00"), shapes[best])
	if _, err := Compile(text); err != nil {
		return ""
	}
	return text
}

// cut divides a line into its numbers and the texts around them, one more than numbers. Digits of a word ("fp16") and the words NaN and Inf are text.
func cut(line string) (texts, numbers []string) {
	b, from := []byte(strings.TrimSpace(line)), 0 // from: where the current text begins
	for i := 0; i < len(b); {
		inWord := i > 0 && (ascii.IsLetter(b[i-1]) || b[i-1] == '_' || ascii.IsDigit(b[i-1]) || b[i-1] >= 0x80)
		isWord := b[i]|0x20 == 'n' || b[i]|0x20 == 'i'
		if _, n := decimal.Leading(b[i:]); n > 0 && !inWord && !isWord {
			texts, numbers = append(texts, string(blanks(string(b[from:i])))), append(numbers, string(b[i:i+n]))
			i += n
			from = i
			continue
		}
		i++
	}
	return append(texts, string(blanks(string(b[from:])))), numbers
}

// counting returns the index of the number in a row that counts steps: a whole number that rises from row to row; where several do, the one whose name is most
// like a step's, of equal ones the first. -1: none. texts[i] is the text before number i.
func counting(texts []string, rows [][]string) int {
	at, best := -1, 0
	for i := range rows[0] {
		last, rises := -1.0, true
		for _, row := range rows {
			v, ok := decimal.Float([]byte(row[i]))
			rises = rises && ok && v > last && !strings.ContainsAny(row[i], ".eE")
			last = v
		}
		rank := 1 // how likely the name is a step's; a number at the line's beginning needs no name
		switch name := nameBefore(texts[i]); {
		case name == "step", name == "iteration", name == "iter", name == "it", name == "iters", name == "global_step", strings.HasPrefix(name, "step"):
			rank = 3
		case name == "epoch", name == "batch", name == "episode", name == "" && i == 0, strings.HasSuffix(name, "step"):
			rank = 2
		}
		if rises && rank > best {
			at, best = i, rank
		}
	}
	return at
}

// losses are names of losses that objects do not know.
var losses = map[string]bool{
	"cross-entropy": true, "crossentropy": true, "cross_entropy": true, "ce": true, "xent": true, "nll": true, "cost": true,
}

// write writes the pattern of a shape: the texts between the numbers, and a placeholder for each number.
func write(texts []string, rows [][]string) string {
	names := namesOf(texts, rows)
	var out strings.Builder
	for i, text := range texts {
		out.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(text))
		if i == len(names) {
			break
		}
		switch names[i] {
		case "":
			out.WriteString(rows[0][i])
		case "*":
			out.WriteString("{*}")
		default:
			unit, _ := unitAt(texts[i+1])
			out.WriteString("{" + names[i] + unit + "}")
		}
	}
	return out.String()
}

// namesOf chooses the names of the placeholders, without units. The counting number is the iteration, a constant after a slash the planned iterations or
// epochs, the first duration of a step (isTimed) step_time. Other numbers have the word before them as name; one may become the loss (lossOf). "" stands for
// the number itself: the first constant that has no name, or no fraction. "*" stands for any text: a number without a name, with a name that another number has
// already, with a step's name and no count, with the name of a time and not the time of a step, or a further constant.
func namesOf(texts []string, rows [][]string) []string {
	step := counting(texts, rows)
	names := make([]string, len(rows[0]))
	same := make([]bool, len(names)) // the number is constant over all lines
	taken := map[string]bool{"iteration": true}
	for i := range names {
		same[i] = !slices.ContainsFunc(rows, func(row []string) bool { return row[i] != rows[0][i] })
		name := nameBefore(texts[i])
		slash := strings.HasSuffix(strings.TrimRight(texts[i], " "), "/")
		switch timed := isTimed(texts[i], texts[i+1], rows[0][i]); {
		case i == step:
			name = "iteration"
		case same[i] && slash && i == step+1: // "12/100"
			name = "iterations"
		case same[i] && slash && i > 0 && names[i-1] == "epoch":
			name = "epochs"
		case timed && !taken["step_time"]:
			name = "step_time"
		case same[i] && (name == "" || !strings.ContainsAny(rows[0][i], ".eE") && name != "epoch"): // a fraction may be a learning rate, and an epoch changes later
			name = ""
		case name == "step" || name == "iteration" || name == "iter": // not the number that counts
			name = "*"
		case name == "step_time": // another time than a step's, or a second one
			name = "*"
		case name == "" || taken[name]:
			name = "*"
		}
		if taken[name] && name != "iteration" { // also of a further constant: ""
			name = "*"
		}
		names[i], taken[name] = name, true
	}
	if i := lossOf(texts, rows, names); i >= 0 {
		names[i] = "loss"
	}
	return names
}

// lossOf returns the index of the loss where no number is called loss: by a name of its own, by the word before or after, or as the only number with a
// fraction; -1: none.
func lossOf(texts []string, rows [][]string, names []string) int {
	isFree := func(i int) bool { // a fraction without a name, and no time
		return names[i] == "*" && strings.ContainsAny(rows[0][i], ".eE") && nameBefore(texts[i]) != "step_time"
	}
	free, last := 0, -1
	for i, name := range names {
		unit, _ := unitAt(texts[i+1])
		switch {
		case strings.Contains(name, "loss"):
			return -1
		case losses[name]:
			return i
		case isFree(i) && unit == "":
			free, last = free+1, i
		}
	}
	lossBefore := false // the word stands somewhere before the number
	for i, name := range names {
		lossBefore = lossBefore || strings.Contains(strings.ToLower(texts[i]), "loss")
		lossBehind := strings.HasSuffix(wordsOf(texts[i+1]), "loss") // "2.31 train loss,"
		fraction := strings.ContainsAny(rows[0][i], ".eE")
		counts := name == "iteration" || name == "iterations"
		if fraction && lossBehind && !counts || lossBefore && isFree(i) {
			return i
		}
	}
	if free == 1 {
		return last
	}
	return -1
}

// wordsOf returns the beginning of a text up to a sign, in small letters.
func wordsOf(text string) string {
	if i := strings.IndexAny(text, ",;:|=([/"); i >= 0 {
		text = text[:i]
	}
	return strings.ToLower(strings.TrimSpace(text))
}

// nameBefore returns the last word before a number, as a name in small letters: "loss" of ", Loss: ". Words for a step's time, or a loss, are one name. "":
// none.
func nameBefore(text string) string {
	b := bytes.TrimRight([]byte(text), " \t:=([\"'>~#")
	from := len(b) // where the word begins
	for from > 0 {
		r, n := utf8.DecodeLastRune(b[:from])
		// A digit or a hyphen may be inside of a word, not at its end.
		inside := from < len(b) && (r >= '0' && r <= '9' || r == '-' && from > 1 && unicode.IsLetter(rune(b[from-2])))
		if !unicode.IsLetter(r) && r != '_' && !inside {
			break
		}
		from -= n
	}
	switch name := strings.ToLower(string(b[from:])); name {
	case "time", "t", "in", "took", "dt":
		return "step_time"
	case "pérdida", "потери", "perte":
		return "loss"
	default:
		return name
	}
}

// isTimed reports whether a number is a step's duration: by its name, or without a name by its unit. before and after are the texts around the number. A name
// counts only with a unit or a fraction, and a unit alone only with a fraction. Other times are not, nor is a time of several steps ("20 s/100 iters").
func isTimed(before, after, number string) bool {
	words := strings.ToLower(before) // after the number or the clause before
	if i := strings.LastIndexAny(words, ",;|)]"); i >= 0 {
		words = words[i+1:]
	}
	for _, not := range [...]string{"elapsed", "remain", "eta", "total", "data", "load", "eval", "val"} {
		if strings.Contains(words, not) {
			return false
		}
	}
	unit, rest := unitAt(after)
	isTime := unit == ":s" || unit == ":ms"
	fraction := strings.Contains(number, ".")
	perSteps := strings.TrimSpace(rest) == "/" // "20 s/100 iters": cut has taken the 100 out of the text
	switch {
	case perSteps:
		return false
	case nameBefore(before) == "step_time", strings.Contains(words, "time"):
		return isTime || unit == "" && fraction
	}
	return nameBefore(before) == "" && isTime && fraction
}

// unitAt returns the unit at the beginning of a text, as written in a placeholder, and the text after the unit: ":ms" and ", " of " ms, ". "": none.
func unitAt(text string) (unit, rest string) {
	word := strings.TrimLeft(text, " ")
	for _, unit := range [...]struct{ word, name string }{
		{"ms", "ms"}, {"s", "s"}, {"seconds", "s"}, {"secs", "s"}, {"sec", "s"}, {"%", "%"}, {"GiB", "GiB"}, {"GB", "GB"}, {"MiB", "MiB"}, {"MB", "MB"},
	} {
		if rest, ok := strings.CutPrefix(word, unit.word); ok && (rest == "" || !ascii.IsLetter(rest[0])) {
			return ":" + unit.name, rest
		}
	}
	return "", text
}
