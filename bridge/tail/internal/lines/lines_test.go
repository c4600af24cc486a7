package lines

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf16"

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
			sp := NewSplitter(data[begin:end], Bytes, nil, int64(begin))
			for text, ok := sp.Next(final); ok; text, ok = sp.Next(final) {
				got = append(got, string(text))
			}
			begin += sp.Pos
		}
		require.Equal(t, refSplit(data), got)
	})
}

// FuzzUTF16 compares the lines of UTF-16 read in parts with the lines of the whole text.
func FuzzUTF16(f *testing.F) {
	f.Add([]byte("a\x00\r\x00\n\x00b\x00\r\x00c"), uint8(3), true)
	f.Add([]byte("\x00\n\xd8\x00\xdc\x00\x00\r"), uint8(1), false)
	f.Fuzz(func(t *testing.T, data []byte, chunk uint8, little bool) {
		enc := UTF16BE
		if little {
			enc = UTF16LE
		}
		var units []uint16
		for i := 0; i+1 < len(data); i += 2 {
			units = append(units, enc.unit(data[i:]))
		}
		var want []string
		for _, l := range refSplit([]byte(string(utf16.Decode(units)))) {
			want = append(want, strings.TrimPrefix(l, string(BOM)))
		}
		var got []string
		var text []byte
		for begin, end := 0, 0; begin+1 < len(data); {
			end = min(len(data), max(end, begin)+int(chunk)+1)
			final := end == len(data)
			sp := NewSplitter(data[begin:end], enc, &text, int64(begin))
			for text, ok := sp.Next(final); ok; text, ok = sp.Next(final) {
				got = append(got, string(text))
			}
			begin += sp.Pos
		}
		require.Equal(t, want, got)
	})
}
