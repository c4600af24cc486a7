package megatron

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
