package spans

import (
	"strings"
	"unicode/utf8"
)

// MaxLabelBytes bounds a label of a metric: it is in every series, and all of them are in every scrape.
const MaxLabelBytes = 256

// Label makes a label of text that a log or a span has: what exceeds MaxLabelBytes is cut at a rune's edge.
func Label(text string) string {
	if len(text) <= MaxLabelBytes {
		return text
	}
	cut := MaxLabelBytes
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strings.Clone(text[:cut]) // which does not keep the rest in memory
}
