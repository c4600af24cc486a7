package events

import (
	"encoding/binary"
	"math/bits"
)

// filter finds the forms' texts (Form.Text), and those of tracebacks (traceTexts), in a line, in one pass. The filter reads the four bytes at every second
// place of the line and looks them up among the grams: the first four bytes of each text, and the four from the second on. A text has five bytes or more, so
// one of its two grams is at a place read.
type filter struct {
	known [1 << knownBits / 64]uint64 // a bit for the hash of each gram: most places of most lines end here
	table [1 << tableBits]uint16      // a hash table of chains: index + 1 in grams of the first gram of a slot; 0: none
	grams []gram
}

const (
	knownBits = 16
	tableBits = 12
)

// gram is four consecutive bytes of a text.
type gram struct {
	bytes uint32 // the four, little-endian
	next  uint16 // index + 1 of the slot's next gram; 0: none
	at    uint8  // offset of the gram in the text: 0 or 1
	text  string
	forms []int32 // indices in Forms of the forms with the text; none: the text is of tracebacks
}

// hash returns a hash of v by Fibonacci hashing: the upper bits of the product.
func hash(v uint32) uint32 { return v * 0x9e3779b1 }

// newFilter makes the filter of the forms' texts, and of the texts of tracebacks, which no form has. Forms with the same text share its grams.
func newFilter(forms []*Form) *filter {
	f := new(filter)
	byText := make(map[string][]int32)
	var texts []string
	for i, form := range forms {
		if byText[form.Text] == nil {
			texts = append(texts, form.Text)
		}
		byText[form.Text] = append(byText[form.Text], int32(i))
	}
	for _, text := range append(texts, traceTexts...) {
		for at := range 2 {
			four := binary.LittleEndian.Uint32([]byte(text[at:]))
			bit := hash(four) >> (32 - knownBits)
			f.known[bit>>6] |= 1 << (bit & 63)
			slot := hash(four) >> (32 - tableBits)
			f.grams = append(f.grams, gram{four, f.table[slot], uint8(at), text, byText[text]}) // before the slot's first gram so far
			f.table[slot] = uint16(len(f.grams))
		}
	}
	return f
}

// hits are the forms whose texts a line holds: a bit for each, by index in Forms.
type hits [(maxForms + 63) / 64]uint64

const maxForms = 512

func (h *hits) set(form int32) { h[form>>6] |= 1 << (form & 63) }

// without removes the forms in other, and reports whether any is left.
func (h *hits) without(other *hits) (left bool) {
	for i := range h {
		h[i] &^= other[i]
		left = left || h[i] != 0
	}
	return left
}

// each visits the forms in order, until visit returns false.
func (h *hits) each(visit func(form int) bool) {
	for i, word := range h {
		for ; word != 0; word &= word - 1 { // without its lowest bit
			if !visit(i<<6 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

// find sets h to the forms whose texts are in a line. Without any, found is false and h is not touched: most lines need no clearing. trace: the line has a text
// of tracebacks.
func (f *filter) find(line []byte, h *hits) (found, trace bool) {
	for i := 0; i+4 <= len(line); i += 2 {
		four := binary.LittleEndian.Uint32(line[i:])
		sum := hash(four)
		if bit := sum >> (32 - knownBits); f.known[bit>>6]&(1<<(bit&63)) == 0 {
			continue
		}
		for n := f.table[sum>>(32-tableBits)]; n != 0; n = f.grams[n-1].next {
			g := &f.grams[n-1]
			from := i - int(g.at) // where the whole text would begin
			if g.bytes != four || from < 0 || from+len(g.text) > len(line) || string(line[from:from+len(g.text)]) != g.text {
				continue
			}
			if g.forms == nil {
				trace = true
				continue
			}
			if !found {
				*h, found = hits{}, true
			}
			for _, form := range g.forms {
				h.set(form)
			}
		}
	}
	return found, trace
}
