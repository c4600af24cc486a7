package vccl

import (
	"bytes"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/jsonlike"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// The sniffers say for a line, usually the first non-blank one, whether the file is of their format. The line must not be Binary. No line fits two of them.

// SniffFlow recognizes the header and the rows of FlowParser's format: 13 columns, including two IP addresses.
func SniffFlow(text []byte) bool {
	b := trim(text)
	return string(b) == flowHeader || digits14(b, ',') && bytes.Count(b, []byte{','}) == 12 && bytes.Count(b, []byte{'.'}) == 6
}

// SniffPacked recognizes the header and the numbers of PackedParser's format.
func SniffPacked(text []byte) bool {
	b := trim(text)
	return bytes.HasPrefix(b, []byte(packedHeader)) || len(b) >= 16 && len(b) <= 20 && endOfColumn(b) == len(b)
}

// SurePacked reports whether the file's name confirms PackedParser's format: many files have long numbers.
func SurePacked(path string, _ []byte, _ *parse.Out) bool { return hostOf(path) != nil }

// IsHeader reports whether a line is a header of VCCL's files for a network card. The headers are written at once, often as the only line of one of the two
// files.
func IsHeader(text []byte) bool {
	b := trim(text)
	return string(b) == flowHeader || string(b) == meanHeader || bytes.HasPrefix(b, []byte(packedHeader))
}

// SniffMean recognizes the header and the rows of MeanParser's format.
func SniffMean(text []byte) bool {
	b := trim(text)
	return string(b) == meanHeader || digits14(b, ',') && bytes.Count(b, []byte{','}) == 5
}

// SniffText recognizes the lines of TextParser's format.
func SniffText(text []byte) bool {
	b := trim(text)
	return digits14(b, ':') && bytes.HasPrefix(b[14:], []byte(between[0]))
}

// SniffCSV recognizes the header of CSVParser's format.
func SniffCSV(text []byte) bool {
	b := trim(text)
	if len(b) == 0 || b[0] == '{' || b[0] == '[' {
		return false
	}
	_, ok := readHeader(b)
	return ok
}

// SureMessage reports whether a record with operations in out can be of no other writer, by how many values of the documented schema it has: three beside
// operation, time and rank, or two if NCCL has the operation. Many logs have a time and an operation, some even "send" or "reduce".
func SureMessage(_ string, _ []byte, out *parse.Out) bool {
	for i := range out.Ops {
		o := &out.Ops[i]
		more := 0 // values of the schema that few logs have
		for _, there := range [...]bool{o.Size >= 0, o.Duration > 0, o.ReportedUnit != "", o.Source >= 0, o.Destination >= 0, o.Channel >= 0, o.Stream >= 0} {
			if there {
				more++
			}
		}
		if more >= 3 || more == 2 && o.Kind != op.Other {
			return true
		}
	}
	return false
}

// endOfColumn returns the end of the integer at the beginning of b; 0: none.
func endOfColumn(b []byte) int {
	_, end := decimal.Unsigned(b, 0)
	return end
}

// SniffJSON recognizes JSONParser's format by the first key of an object, or by a key "operation" or "duration_us" further on. A line of brackets and braces
// alone is recognized, too, and may begin an object of any schema: ask other formats before.
func SniffJSON(text []byte) bool {
	b := trim(text)
	i := 0
	for i < len(b) && (b[i] == '[' || b[i] == '{' || b[i] <= ' ') {
		i++
	}
	if i == 0 || i == len(b) {
		return i > 0
	}
	if b[i] != '"' {
		return false
	}
	name, _, next := jsonlike.String(b, i)
	return next >= 0 && (keyOf(name) != noKey || bytes.Contains(b, []byte(`"operation"`)) || bytes.Contains(b, []byte(`"duration_us"`)))
}

// Binary reports whether a line is not text: zeros between other bytes, or much invalid UTF-8. No binary layout of VCCL is specified anywhere.
func Binary(text []byte) bool {
	text = bytes.Trim(text, "\x00") // the zeros before the rows of a truncated file
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
