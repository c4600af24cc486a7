package megatron

import "github.com/trainbridge/trainbridge/receivers/internal/record"

// Leading reads the number that b begins with, nan and inf included, and returns its length, 0 when there is none.
func Leading(b []byte) (float64, int) {
	n := 0
	for n < len(b) && (b[n]-'0' <= 9 || b[n] == '.' || b[n] == '-' || b[n] == '+' || b[n]|0x20 == 'e') {
		n++
	}
	if n < 2 { // a word, perhaps with a sign
		from := n
		if from > 0 && b[0] != '-' && b[0] != '+' {
			from = len(b)
		}
		for m := from; m < len(b) && m < from+9 && b[m]|0x20 >= 'a' && b[m]|0x20 <= 'z'; m++ {
			n = m + 1
		}
	}
	v, ok := record.Float(b[:n])
	if !ok {
		return 0, 0
	}
	return v, n
}

// integer reads the decimal integer that b begins with, of at most 15 digits, and returns its length, 0 when there is none.
func integer(b []byte) (v int64, n int) {
	for n < len(b) && b[n]-'0' <= 9 {
		if n == 15 {
			return 0, 0
		}
		v = v*10 + int64(b[n]-'0')
		n++
	}
	return v, n
}
