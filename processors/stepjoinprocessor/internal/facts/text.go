package facts

const maxTexts = 65_536 // of a run

// Number returns the number of a text, made if absent. Beyond a run's limit, the number of the empty text: 0.
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

// newText numbers a new text.
func (r *Run) newText(text string) uint32 {
	if len(r.names) >= maxTexts {
		return 0
	}
	n := uint32(len(r.names))
	text = string([]byte(text)) // the text outlives the batch
	r.texts[text], r.names = n, append(r.names, text)
	return n
}

// Text returns the text of a number.
func (r *Run) Text(n uint32) string { return r.names[n] }
