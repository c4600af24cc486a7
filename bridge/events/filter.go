package events

import (
	"encoding/binary"
	"math/bits"
)

// filter finds the texts in a line, in one pass. It reads the four bytes at every second place of the line: each text, of five bytes or more, has such a place
// at its first or second byte.
type filter struct {
	known [1 << knownBits / 64]uint64 // a bit for the hash of each gram: most places of most lines end here
	table [1 << tableBits]uint16      // index + 1 of the first gram in a slot; 0: none
	grams []gram
}

const (
	knownBits = 16
	tableBits = 12
)

type gram struct {
	bytes uint32
	next  uint16 // index + 1 of the slot's next gram
	at    uint8  // offset in the text
	text  string
	forms []int32 // by number
}

func hash(v uint32) uint32 { return v * 0x9e3779b1 }

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
	for _, text := range texts {
		for at := range 2 {
			v := binary.LittleEndian.Uint32([]byte(text[at:]))
			k := hash(v) >> (32 - knownBits)
			f.known[k>>6] |= 1 << (k & 63)
			s := hash(v) >> (32 - tableBits)
			f.grams = append(f.grams, gram{v, f.table[s], uint8(at), text, byText[text]})
			f.table[s] = uint16(len(f.grams))
		}
	}
	return f
}

// hits are the forms whose texts a line holds, a bit for each.
type hits [(maxForms + 63) / 64]uint64

const maxForms = 512

func (h *hits) set(form int32) { h[form>>6] |= 1 << (form & 63) }

// without takes forms out, and says whether any is left.
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
		for ; word != 0; word &= word - 1 {
			if !visit(i<<6 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

// find notes the texts in a line; false: none.
func (f *filter) find(line []byte, h *hits) (found bool) {
	for i := 0; i+4 <= len(line); i += 2 {
		v := binary.LittleEndian.Uint32(line[i:])
		sum := hash(v)
		if k := sum >> (32 - knownBits); f.known[k>>6]&(1<<(k&63)) == 0 {
			continue
		}
		for n := f.table[sum>>(32-tableBits)]; n != 0; n = f.grams[n-1].next {
			g := &f.grams[n-1]
			from := i - int(g.at)
			if g.bytes != v || from < 0 || from+len(g.text) > len(line) || string(line[from:from+len(g.text)]) != g.text {
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
	return found
}
