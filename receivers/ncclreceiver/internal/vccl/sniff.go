package vccl

import (
	"bytes"
	"unicode/utf8"
)

// Format is one of VCCL's.
type Format uint8

// The formats.
const (
	None Format = iota
	FormatJSON
	FormatCSV
	FormatFlow
	FormatPacked
	FormatMean
	FormatText
)

// Sniff says by the first line that is not blank which format a file has. A line that is only a bracket or brace may begin an object of any schema:
// ask others before. None: another one, or a binary file, the layout of which is nowhere specified.
func Sniff(text []byte) Format {
	if Binary(text) {
		return None
	}
	b := trim(text)
	if len(b) == 0 {
		return None
	}
	switch {
	case b[0] == '{' || b[0] == '[':
		return sniffJSON(b)
	case bytes.HasPrefix(b, []byte(packedHeader)) || len(b) >= 16 && len(b) <= 20 && endOfColumn(b) == len(b):
		return FormatPacked
	case string(b) == flowHeader || digits14(b, ',') && bytes.Count(b, []byte{','}) == 12:
		return FormatFlow
	case string(b) == meanHeader || digits14(b, ',') && bytes.Count(b, []byte{','}) == 5:
		return FormatMean
	case digits14(b, ':') && bytes.HasPrefix(b[14:], []byte(between[0])):
		return FormatText
	}
	if _, ok := readHeader(b); ok {
		return FormatCSV
	}
	return None
}

func endOfColumn(b []byte) int {
	_, end := column(b, 0)
	return end
}

// sniffJSON knows the schema by a key.
func sniffJSON(b []byte) Format {
	i := 0
	for i < len(b) && (b[i] == '[' || b[i] == '{' || b[i] <= ' ') {
		i++
	}
	if i == len(b) {
		return FormatJSON
	}
	if b[i] != '"' {
		return None
	}
	if name, next := quoted(b, i+1); next < 0 || keyOf(name) == noKey && !bytes.Contains(b, []byte(`"operation"`)) && !bytes.Contains(b, []byte(`"duration_us"`)) {
		return None
	}
	return FormatJSON
}

// Binary says whether text is none: it has zeros between other bytes, or much that is no UTF-8.
func Binary(text []byte) bool {
	text = bytes.Trim(text, "\x00") // what a truncated file has before its rows
	if bytes.IndexByte(text, 0) >= 0 {
		return true
	}
	wrong := 0
	for b := text; len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			wrong++
		}
		b = b[n:]
	}
	return wrong > len(text)/8
}
