package tail

import "bytes"

const (
	dullShapes = 1024 // of a file
	dullAfter  = 8    // lines of a shape without any understood line
	dullLeast  = 32   // bytes of a line that may be dull
	dullMost   = 1024 // likewise
)

// dull recognizes repetitive lines that no detector understands: most of a megabyte of warnings is of few shapes. Lines that differ only in their numbers have
// one shape. Short and long lines, and possible parts of a multi-line JSON document, are never dull.
type dull struct {
	shapes [dullShapes]uint32 // the hash of a shape, at hash modulo dullShapes; 0: none. A new shape replaces the one in its place
	seen   [dullShapes]uint8  // lines of the shape so far, at most dullAfter
}

// isRepetitive reports whether dullAfter lines of the same shape as line were seen before, and counts the line.
func (d *dull) isRepetitive(line []byte) bool {
	text := bytes.TrimLeft(line, " \t")
	if len(text) < dullLeast || len(text) > dullMost || text[0] == '"' || text[0] == '{' || text[0] == '}' || text[0] == ',' {
		return false
	}
	h, number := uint32(2166136261), false // FNV-1a
	for _, c := range text {
		if '0' <= c && c <= '9' { // every number counts as a single 0
			if number {
				continue
			}
			c, number = '0', true
		} else {
			number = false
		}
		h = (h ^ uint32(c)) * 16777619
	}
	h = max(h, 1) // 0 is an empty place
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
