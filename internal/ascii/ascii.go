// Package ascii says of what kind a byte of a log is.
package ascii

// IsDigit says whether a byte is 0 to 9. Bytes below '0' wrap to large numbers.
func IsDigit(c byte) bool { return c-'0' <= 9 }

// IsLetter says whether a byte is an ASCII letter. The bit 0x20 makes a capital small.
func IsLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// IsAlphanumeric reports whether a byte is an ASCII letter or 0 to 9.
func IsAlphanumeric(c byte) bool { return IsLetter(c) || IsDigit(c) }
