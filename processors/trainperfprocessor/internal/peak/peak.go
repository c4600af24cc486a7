// Package peak has the dense BF16 peak of devices, by the names of drivers and PyTorch.
package peak

import (
	_ "embed"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

//go:embed peaks.csv
var table string

// row is a device of the table, by one of its names.
type row struct {
	words  []string // of the name
	length int      // of all words
	flops  float64  // the peak, {flop}/s
	source string   // of the number
}

var rows = readTable(table)

// readTable returns the rows of the table with lines "name|other name,TFLOP/s,source" after a header: a row for each name, the longest names first. It panics
// on a malformed table: the table is embedded, and checked by a test.
func readTable(table string) []row {
	r := csv.NewReader(strings.NewReader(table))
	r.Comment = '#'
	records, err := r.ReadAll()
	if err != nil {
		panic(err)
	}
	var rows []row
	for _, rec := range records[1:] {
		tflops, err := strconv.ParseFloat(rec[1], 64)
		if err != nil {
			panic(err)
		}
		for name := range strings.SplitSeq(rec[0], "|") {
			w := words(name)
			rows = append(rows, row{words: w, length: len(strings.Join(w, "")), flops: tflops * 1e12, source: rec[2]})
		}
	}
	// Longest first: "H100 NVL" before "H100".
	slices.SortStableFunc(rows, func(a, b row) int { return b.length - a.length })
	return rows
}

// words returns the words of a name, in lower case: "A100-SXM4" has a100 and sxm4.
func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// slower are words that turn a name of the table into a slower device: "max" of Max-Q, "d" of RTX 4090 D.
var slower = []string{"mig", "laptop", "mobile", "max", "d"}

// Of returns the dense BF16 peak of a device, {flop}/s, and the source of the number. A name with all words of a row in order is the row's device: "NVIDIA
// A100-SXM4-80GB" is an A100, "NVIDIA RTX A4000" no A40. ok is false for an unknown device.
func Of(device string) (flops float64, source string, ok bool) {
	name := words(device)
	for _, w := range slower {
		if slices.Contains(name, w) {
			return 0, "", false
		}
	}
	for i := range rows {
		if contains(name, rows[i].words) {
			return rows[i].flops, rows[i].source, true
		}
	}
	return 0, "", false
}

// contains reports whether a name has all words of a pattern, in order, perhaps with others between.
func contains(name, pattern []string) bool {
	for _, w := range name {
		if w == pattern[0] {
			pattern = pattern[1:]
			if len(pattern) == 0 {
				return true
			}
		}
	}
	return false
}
