package spans

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/trainbridge/trainbridge/internal/ascii"
)

// MaxLabelBytes bounds a label of a metric: labels are in every series, and every scrape has all series.
const MaxLabelBytes = 256

// Label returns a text of a log or a span as a label: cut to MaxLabelBytes, at a rune's edge.
func Label(text string) string { return clip(text, MaxLabelBytes) }

// maxRowHost bounds how much of a host's name is in a span's, in bytes.
const maxRowHost = 48

// NCCLRankName names the span of a rank: "rank 11 gpu-node-1", with the host's name up to the first dot. A longer name cannot be read in a waterfall.
func NCCLRankName(rank int32, host string) string {
	if i := strings.IndexByte(host, '.'); i > 0 && strings.ContainsFunc(host[:i], unicode.IsLetter) { // an IP address stays whole
		host = host[:i]
	}
	if len(host) > maxRowHost {
		host = strings.ToValidUTF8(host[:maxRowHost], "")
	}
	b := strconv.AppendInt(append(make([]byte, 0, len(SpanRank)+8+len(host)), SpanRank...), int64(rank), 10)
	if host != "" {
		b = append(append(b, ' '), host...)
	}
	return string(b)
}

// IsNCCLRank reports whether name is a rank's span name, as NCCLRankName makes, or SpanNCCLRank, of a rank without a number.
func IsNCCLRank(name string) bool {
	return name == SpanNCCLRank || len(name) > len(SpanRank) && name[:len(SpanRank)] == SpanRank && ascii.IsDigit(name[len(SpanRank)])
}

// IsNCCLPhase reports whether a span of this name is a phase of a rank: late, wait or transfer.
func IsNCCLPhase(name string) bool {
	return name == SpanNCCLTransfer || name == SpanNCCLWait || name == SpanNCCLLate
}

// IsNCCLPart reports whether a span of this name is below the root of a collective: the span of a rank or of a part of a rank.
func IsNCCLPart(name string) bool {
	switch name {
	case SpanNCCLChannel, SpanNCCLProxyOp, SpanNCCLProxyStep:
		return true
	}
	return IsNCCLPhase(name) || IsNCCLRank(name)
}
