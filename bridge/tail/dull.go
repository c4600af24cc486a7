package tail

import "bytes"

const (
	dullShapes = 1024 // of a file
	dullAfter  = 8    // lines of a shape without any understood line
	dullLeast  = 32   // bytes of a line
	dullMost   = 1024
)

// dull recognizes repetitive lines that no detector understands: most of a megabyte of warnings is of few shapes. Lines that differ only in their numbers have
// one shape. Short lines, and possible parts of a multi-line JSON document, are never dull.
type dull struct {
	shapes [dullShapes]uint32 // hashes, by their last bits
	seen   [dullShapes]uint8
}

// is says whether enough lines of the shape of a line were seen.
func (d *dull) is(line []byte) bool {
	text := bytes.TrimLeft(line, " \t")
	if len(text) < dullLeast || len(text) > dullMost || text[0] == '"' || text[0] == '{' || text[0] == '}' || text[0] == ',' {
		return false
	}
	h, number := uint32(2166136261), false // FNV-1a
	for _, c := range text {
		if '0' <= c && c <= '9' {
			if number {
				continue
			}
			c, number = '0', true
		} else {
			number = false
		}
		h = (h ^ uint32(c)) * 16777619
	}
	h = max(h, 1)
	at := h % dullShapes
	if d.shapes[at] != h {
		d.shapes[at], d.seen[at] = h, 1
		return false
	}
	if d.seen[at] < dullAfter {
		d.seen[at]++
		return false
	}
	return true
}
