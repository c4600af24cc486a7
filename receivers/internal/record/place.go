package record

import "strings"

// Place is the position of a part in the step, as far as the trainer's code shows it.
type Place struct {
	Name  string
	Under *Place // the enclosing part; nil: the step
	Order int    // position in the code's order, from 1
	// Own: in this part a rank waits for no other rank, except those that share each operation. The times of ranks with equal work can be compared; in parts that
	// are not Own, a rank's time includes waiting for other ranks.
	Own bool
}

// Places are the parts of a trainer's step, by name.
type Places map[string]*Place

// Outline reads the parts of a trainer's step from a table in the parser's code: one part a line, in the order of execution, indented by two blanks more than
// the enclosing part, with " *" after parts that are Own.
func Outline(text string) Places {
	places := Places{}
	var open []*Place // the parts around the line before, and its part: outermost first
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		name, own := strings.CutSuffix(strings.TrimLeft(strings.TrimSuffix(line, "\n"), " "), " *")
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		p := &Place{Name: name, Order: len(places) + 1, Own: own}
		open = open[:depth]
		if depth > 0 {
			p.Under = open[depth-1]
		}
		open = append(open, p)
		places[name] = p
	}
	return places
}
