package reading

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/trainbridge/trainbridge/internal/human"
)

// Size is a number of bytes with three digits, in a unit that fits.
func Size(bytes float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB", "TB"} {
		if bytes < 999.5 || unit == "TB" {
			if unit == "B" || bytes >= 99.95 {
				return fmt.Sprintf("%.0f %s", human.Number(bytes), unit)
			}
			return fmt.Sprintf("%.3g %s", bytes, unit)
		}
		bytes /= 1000
	}
	return ""
}

// Clean keeps control characters of logged text from the terminal.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
