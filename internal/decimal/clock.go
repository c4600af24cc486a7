package decimal

import "bytes"

// Sexagesimal reads numbers of 0 or more with colons between them, each sixty times the next: "00:12" is 12, "1:02:03.5" is 3723.5. longest bounds the bytes of
// a number. parts is the number of numbers; 0: b has another form.
func Sexagesimal(b []byte, longest int) (v float64, parts int) {
	for part := range bytes.SplitSeq(b, []byte(":")) {
		n, ok := Float(part)
		if !ok || !(n >= 0) || len(part) > longest {
			return 0, 0
		}
		v, parts = 60*v+n, parts+1
	}
	return v, parts
}
