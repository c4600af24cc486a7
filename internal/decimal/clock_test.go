package decimal

import "testing"

func TestSexagesimal(t *testing.T) {
	for text, want := range map[string]struct {
		v     float64
		parts int
	}{
		"00:12": {12, 2}, "1:02:03.5": {3723.5, 3}, "43:24:54": {156294, 3}, "7": {7, 1}, "1:2:3:4": {223384, 4},
		"": {}, ":": {}, "1:": {}, ":1": {}, "1::2": {}, "-1:02": {}, "1:-2": {}, "a:1": {}, "1234567:00": {}, "nan:1": {},
	} {
		if v, parts := Sexagesimal([]byte(text), 6); v != want.v || parts != want.parts {
			t.Errorf("%q: %v, %d", text, v, parts)
		}
	}
}
