package show

import (
	"fmt"
	"math"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/spans"
)

// palette colours text with ANSI escapes, or not.
type palette bool

func (p palette) paint(code, s string) string {
	if !p || s == "" || code == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) bold(s string) string { return p.paint("1", s) }
func (p palette) dim(s string) string  { return p.paint("2", s) }

var severityColour = map[string]string{spans.SeverityBad: "31", spans.SeverityWarning: "33"}

// duration prints ns with four significant digits at most, in a unit that fits.
func duration(ns int64) string {
	switch {
	case ns >= 100e9:
		return fmt.Sprintf("%.1f s", float64(ns)/1e9)
	case ns >= 1e9:
		return fmt.Sprintf("%.3f s", float64(ns)/1e9)
	case ns >= 1e6:
		return fmt.Sprintf("%.1f ms", float64(ns)/1e6)
	case ns >= 1e3:
		return fmt.Sprintf("%.0f µs", float64(ns)/1e3)
	case ns == 0:
		return "0 s"
	}
	return strconv.FormatInt(ns, 10) + " ns"
}

// seconds is a duration in s.
func seconds(s float64) string {
	if s > math.MaxInt64/1e9 {
		return fmt.Sprintf("%.1f s", human.Number(s))
	}
	return duration(int64(math.Round(s * 1e9)))
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", human.Number(100*share)) }

// ofParent is the share that a span has of its parent's time.
func ofParent(s *tree.Span) []string {
	whole := s.Parent.NS()
	if whole == 0 {
		return nil
	}
	return []string{percent(float64(s.NS()) / float64(whole))}
}

// typical is the median in a unit.
func typical(v *digest.Values, unit float64, format string) string {
	if v.Count() == 0 {
		return "-"
	}
	return fmt.Sprintf(format, human.Number(v.Quantile(0.5)/unit))
}

// typicalTime is a quantile of times in s.
func typicalTime(v *digest.Values, q float64) string {
	if v.Count() == 0 {
		return "-"
	}
	return seconds(v.Quantile(q))
}
