package decimal

import "bytes"

// units of Duration; longer names come first.
var units = [...]struct {
	name  string
	scale float64
}{{"ms", 1e-3}, {"us", 1e-6}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}}

// Duration reads the times with units at the beginning of b, and returns their sum in s: "1h 2m 3.5s" is 3723.5, "12ms" 0.012. n is the number of bytes up to
// the end of the last unit; 0: b does not begin with a time. A unit may be the beginning of a word ("5steps" is 5 s, n 2): the caller looks behind n.
func Duration(b []byte) (seconds float64, n int) {
	for i := 0; ; {
		v, used := Leading(b[i:])
		if used == 0 {
			return seconds, n
		}
		i += used
		unit := 0.0
		for _, u := range units {
			if bytes.HasPrefix(b[i:], []byte(u.name)) {
				unit, i = u.scale, i+len(u.name)
				break
			}
		}
		if unit == 0 {
			return seconds, n
		}
		seconds, n = seconds+v*unit, i
		if i < len(b) && b[i] == ' ' {
			i++
		}
	}
}
