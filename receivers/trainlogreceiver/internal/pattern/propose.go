package pattern

import (
	"bytes"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/internal/decimal"
)

const (
	proposedLines = 3  // of a shape, at least
	proposedMost  = 12 // numbers of a line
)

// Propose makes a pattern of the lines of a log that come most often with other numbers in them. "": no line with a number that counts comes again.
func Propose(lines []string) string {
	shapes := make(map[string][][]string) // the numbers of lines, by what is between them
	for _, line := range lines {
		texts, numbers := cut(line)
		if len(numbers) < 2 || len(numbers) > proposedMost {
			continue
		}
		shape := strings.Join(texts, "\x00")
		shapes[shape] = append(shapes[shape], numbers)
	}
	best := ""
	for shape, rows := range shapes {
		if len(rows) >= proposedLines && (best == "" || len(rows) > len(shapes[best]) || len(rows) == len(shapes[best]) && shape < best) && counting(rows) >= 0 {
			best = shape
		}
	}
	if best == "" {
		return ""
	}
	return write(strings.Split(best, "\x00"), shapes[best])
}

// cut parts a line into its numbers and the texts around them.
func cut(line string) (texts, numbers []string) {
	b, from := []byte(strings.TrimSpace(line)), 0
	for i := 0; i < len(b); {
		inWord := i > 0 && (b[i-1]|0x20 >= 'a' && b[i-1]|0x20 <= 'z' || b[i-1] == '_' || b[i-1]-'0' <= 9)
		if _, n := decimal.Leading(b[i:]); n > 0 && !inWord && b[i]|0x20 != 'n' && b[i]|0x20 != 'i' {
			texts, numbers = append(texts, string(blanks(string(b[from:i])))), append(numbers, string(b[i:i+n]))
			i += n
			from = i
			continue
		}
		i++
	}
	return append(texts, string(blanks(string(b[from:])))), numbers
}

// counting is the number of a row that counts steps: a whole one that rises from row to row; -1: there is none.
func counting(rows [][]string) int {
	for i := range rows[0] {
		last, rises := -1.0, true
		for _, row := range rows {
			v, ok := decimal.Float([]byte(row[i]))
			rises = rises && ok && v > last && !strings.ContainsAny(row[i], ".eE")
			last = v
		}
		if rises {
			return i
		}
	}
	return -1
}

// write writes the pattern: the number that counts is the step, a number that stays as it is is text, the others have the names before them.
func write(texts []string, rows [][]string) string {
	step := counting(rows)
	var out strings.Builder
	taken := map[string]bool{"iteration": true}
	for i, text := range texts {
		out.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(text))
		if i == len(rows[0]) {
			break
		}
		same := !slices.ContainsFunc(rows, func(row []string) bool { return row[i] != rows[0][i] })
		name := nameBefore(text)
		switch {
		case i == step:
			out.WriteString("{iteration}")
		case same && strings.HasSuffix(strings.TrimRight(text, " "), "/"):
			out.WriteString("{iterations}")
		case same:
			out.WriteString(rows[0][i])
		case name == "" || taken[name]:
			out.WriteString("{*}")
		default:
			taken[name] = true
			out.WriteString("{" + name + unitBehind(texts[i+1]) + "}")
		}
	}
	return out.String()
}

// nameBefore is the last word before a number, as a name.
func nameBefore(text string) string {
	b := bytes.TrimRight([]byte(text), " \t:=([|,")
	from := len(b)
	for from > 0 && (b[from-1]|0x20 >= 'a' && b[from-1]|0x20 <= 'z' || b[from-1] == '_' || from < len(b) && b[from-1]-'0' <= 9) {
		from--
	}
	switch name := strings.ToLower(string(b[from:])); name {
	case "time", "t", "in", "took", "dt":
		return "step_time"
	case "step", "iteration", "iter":
		return ""
	default:
		return name
	}
}

// unitBehind is the unit that a text begins with.
func unitBehind(text string) string {
	word := strings.TrimLeft(text, " ")
	for _, unit := range [...]string{"ms", "s", "%", "GiB", "GB", "MiB", "MB"} {
		if rest, ok := strings.CutPrefix(word, unit); ok && (rest == "" || rest[0]|0x20 < 'a' || rest[0]|0x20 > 'z') {
			return ":" + unit
		}
	}
	return ""
}
