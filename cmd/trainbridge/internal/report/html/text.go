package html

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
)

// seconds is a time with four digits, in a unit that fits.
func seconds(s float64) string {
	switch abs := math.Abs(s); {
	case math.IsNaN(s):
		return "–"
	case s == 0:
		return "0 s"
	case abs >= 0.9995:
		return digits(s) + " s"
	case abs >= 0.9995e-3:
		return digits(s*1e3) + " ms"
	case abs >= 0.9995e-6:
		return digits(s*1e6) + " µs"
	default:
		return digits(s*1e9) + " ns"
	}
}

// rate is By/s.
func rate(n float64) string {
	if math.IsNaN(n) {
		return "–"
	}
	return reading.Size(n) + "/s"
}

// mostSeconds is where a time is no longer told in hours.
const mostSeconds = 1e9

// clock is a time since the start: 90 s are 1:30.
func clock(s float64) string {
	whole := int64(math.Round(s))
	switch {
	case s < 60, s >= mostSeconds:
		return strconv.FormatFloat(s, 'g', 3, 64) + " s"
	case whole < 3600:
		return fmt.Sprintf("%d:%02d", whole/60, whole%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", whole/3600, whole/60%60, whole%60)
}

func share(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", human.Number(100*v))
}

// short is a number with four digits, however small or large it is.
func short(v float64) string {
	if abs := math.Abs(v); abs >= 1e4 && abs < 1e15 {
		return human.Thousands(math.Round(v))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// tera is 10¹²/s.
func tera(v float64) string { return short(v / 1e12) }

// gibi is a size of memory.
func gibi(v float64) string { return short(v/(1<<30)) + " GiB" }

// digits is a number with four digits.
func digits(v float64) string {
	decimals := 3
	for abs := math.Abs(v); abs >= 10 && decimals > 0; abs /= 10 {
		decimals--
	}
	text := fmt.Sprintf("%.*f", decimals, human.Number(v))
	if strings.Contains(text, ".") && !strings.Contains(text, "e") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
