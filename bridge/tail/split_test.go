package tail

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// refSplit is the plain reading of the rule: a line ends with \r\n, \n or \r.
func refSplit(data []byte) (lines []string) {
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	for _, l := range bytes.SplitAfter(data, []byte("\n")) {
		if len(l) > 0 {
			lines = append(lines, string(bytes.TrimSuffix(l, []byte("\n"))))
		}
	}
	return lines
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a\r\nb\rc\n\n\r\r\nd"), uint8(3))
	f.Add([]byte("\r"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, chunk uint8) {
		var got []string
		for begin, end := 0, 0; begin < len(data); {
			end = min(len(data), max(end, begin)+int(chunk)+1)
			final := end == len(data)
			sp := newSplitter(data[begin:end], encBytes, nil)
			for text, ok := sp.next(final); ok; text, ok = sp.next(final) {
				got = append(got, string(text))
			}
			begin += sp.pos
		}
		require.Equal(t, refSplit(data), got)
	})
}
