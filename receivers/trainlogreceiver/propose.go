package trainlogreceiver

import (
	"bytes"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/logger"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pattern"
)

// ProposePattern makes a pattern of the most frequent lines, equal but for their numbers, of a log without a known format. "": none.
func ProposePattern(lines []string) string {
	var peeler line.Peeler
	bare := make([]string, len(lines))
	for i, text := range lines {
		var prefix line.Prefix
		b := peeler.Peel([]byte(text), &prefix)
		var pre logger.Prefix
		pre.Reset()
		message := b
		for range maxPieces {
			rest, ok := logger.Next(b, &pre)
			if !ok {
				break
			}
			b = rest
			if pre.Sure {
				message = rest
			}
		}
		bare[i] = string(bytes.TrimSpace(message))
	}
	return pattern.Propose(bare)
}
