package trainlogreceiver

import (
	"bytes"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/logger"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pattern"
)

// ProposePattern makes a pattern of the most frequent lines, equal but for their numbers, of a log without a known format: trainbridge check prints it for
// train_log's 'patterns'. "": none.
func ProposePattern(lines []string) string {
	var launchers line.Peeler
	messages := make([]string, len(lines))
	for i, text := range lines {
		var prefix line.Prefix
		messages[i] = withoutLogger(launchers.Peel([]byte(text), &prefix))
	}
	return pattern.Propose(messages)
}

// withoutLogger removes the pieces of a logger before a message ("INFO:trainer: "). Without a sure sign of a logger among the pieces, such as a level, nothing
// is taken off: "step 1: " alone is the message's own.
func withoutLogger(text []byte) string {
	var pieces logger.Prefix
	pieces.Reset()
	message, rest := text, text
	for range maxPieces {
		var ok bool
		rest, ok = logger.Next(rest, &pieces)
		if !ok {
			break
		}
		if pieces.Sure {
			message = rest
		}
	}
	return string(bytes.TrimSpace(message))
}
