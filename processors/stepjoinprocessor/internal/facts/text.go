package facts

const maxTexts = 65_536 // of a run

// Number returns the number that stands for a text in this run; a new text gets a number. Beyond maxTexts a new text is 0, the number of the empty text.
func (r *Run) Number(text string) uint32 {
	if text == "" {
		return 0
	}
	for _, n := range r.recent { // consecutive spans share names
		if r.names[n] == text {
			return n
		}
	}
	n, ok := r.texts[text]
	if !ok {
		n = r.newText(text)
	}
	r.recent[r.turn%len(r.recent)] = n
	r.turn++
	return n
}

// newText gives a new text a number. The text is copied: it outlives the batch.
func (r *Run) newText(text string) uint32 {
	if len(r.names) >= maxTexts {
		return 0
	}
	n := uint32(len(r.names))
	text = string([]byte(text))
	r.texts[text], r.names = n, append(r.names, text)
	return n
}

// Text returns the text of a number given by Number.
func (r *Run) Text(n uint32) string { return r.names[n] }
