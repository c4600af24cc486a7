package record

import "strings"

// Place is where in a step a part belongs, as far as the trainer's code tells.
type Place struct {
	Name  string
	Under *Place // the part that this one is a part of; nil: the step
	Order int    // in which the code runs the parts, from 1
	// Own: in this part a rank waits for no other, except the ranks that it shares each operation with. The times of ranks that do the same can be compared;
	// in parts that are not Own, a rank's time says how long other ranks let it wait.
	Own bool
}

// Places are the places of a trainer's parts in its step, by the names of the parts.
type Places map[string]*Place

// Outline reads the parts of a trainer's step, one a line, in the order in which they run, indented by two blanks more than the part that they are
// a part of, with " *" after parts that are Own.
func Outline(text string) Places {
	places := Places{}
	var open []*Place
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		name, own := strings.CutSuffix(strings.TrimLeft(strings.TrimSuffix(line, "\n"), " "), " *")
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		p := &Place{Name: name, Order: len(places) + 1, Own: own}
		if open = open[:depth]; depth > 0 {
			p.Under = open[depth-1]
		}
		open = append(open, p)
		places[name] = p
	}
	return places
}
