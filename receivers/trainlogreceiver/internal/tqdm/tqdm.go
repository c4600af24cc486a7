// Package tqdm reads the progress bars of tqdm (tqdm/std.py, format_meter), used by most trainers:
//
//	Epoch 0:  12%|█▎        | 1/8 [00:00<00:00, 41.65it/s, v_num=0, train_loss_step=16.20]
//	Epoch 1: : 1it [00:04,  4.36s/it, v_num=d3c7, reduced_train_loss=0.674]
//
// The trainer's parser decides which numbers belong to a step.
package tqdm

import (
	"bytes"
	"math"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
)

// Bar is one drawing of a bar. Slices point into the line.
type Bar struct {
	Desc    []byte  // "Epoch 0", without its colon
	Done    float64 // with unit_scale rounded to three digits, as Total
	Total   float64 // 0: unknown
	Elapsed float64 // seconds since the bar was first drawn
	// Per is the seconds per iteration: a mean, over the whole bar or the last iterations, depending on tqdm's smoothing. 0: unknown.
	Per     float64
	Err     float64 // possible error of Per, s: tqdm prints two decimals
	Postfix []byte  // "v_num=0, train_loss_step=16.20"
	scaled  bool    // the counts have letters of unit_scale
}

var percentMark = []byte("%|")

// Parse reads the bar at the beginning of b, and returns its length, 0 without a bar. Text before the percentage, or before a count alone, becomes Desc. A
// bar with a total has a percentage and a drawing before its count, a bar without has the count alone.
func Parse(b []byte) (bar Bar, n int) {
	open := bytes.IndexByte(b, '[')               // before the times
	if i := bytes.Index(b, percentMark); i >= 0 { // "Epoch 0:  12%|█▎        | 1/8 ["
		end := bytes.IndexByte(b[i+len(percentMark):], '|')
		if end < 0 {
			return Bar{}, 0
		}
		after := i + len(percentMark) + end + 1
		open = bytes.IndexByte(b[after:], '[')
		if open < 0 {
			return Bar{}, 0
		}
		open += after
		if !bar.count(bytes.TrimSpace(b[after:open])) {
			return Bar{}, 0
		}
		bar.Desc = description(bytes.TrimRight(b[:i], "0123456789."))
	} else { // "Epoch 1: 17it ["
		if open < 1 {
			return Bar{}, 0
		}
		head := bytes.TrimRight(b[:open], " ")
		at := bytes.LastIndexByte(head, ' ') + 1
		if len(head) == open || !bar.count(head[at:]) { // a blank stands before the bracket
			return Bar{}, 0
		}
		if bar.Total > 0 { // "[train] 3/8 [INFO]": a bar with a total has a percentage
			return Bar{}, 0
		}
		bar.Desc = description(head[:at])
	}
	end := bytes.IndexByte(b[open:], ']')
	if end < 0 {
		return Bar{}, 0
	}
	n = bar.times(b[open+1:open+end], open+end+1)
	return bar, n
}

// description removes the characters after a description: NeMo 1 writes "Epoch 0: : ", and a bar without a total "Epoch 0: |          |".
func description(b []byte) []byte { return bytes.TrimSpace(bytes.TrimRight(b, "|: ")) }

// count reads "1/8", "1/?", "17it" with any unit, and the counts of unit_scale, "1.25k/8.00k" and "1.25kit". It returns false for another text. decimal.Leading
// takes an e for an exponent, and refuses "17ex": then the digits are tried by themselves.
func (bar *Bar) count(b []byte) bool {
	done, n := decimal.Leading(b)
	if n == 0 {
		done, n = digits(b)
		if n == 0 {
			return false
		}
	}
	rest := b[n:]
	if len(rest) == 0 {
		return false
	}
	if by := scale(rest[0]); by > 1 && (bytes.HasPrefix(rest[1:], []byte("/")) || string(rest[1:]) == "it") {
		done, rest, bar.scaled = math.Round(done*by), rest[1:], true
	}
	bar.Done = done
	total, ok := bytes.CutPrefix(rest, []byte("/"))
	if !ok || string(total) == "?" {
		return true
	}
	if last := len(total) - 1; last > 0 && scale(total[last]) > 1 {
		v, ok := decimal.Float(total[:last])
		bar.Total, bar.scaled = math.Round(v*scale(total[last])), true
		return ok
	}
	bar.Total, ok = decimal.Float(total)
	return ok
}

// scale returns the factor of the letter that unit_scale puts after a number: 1000 for k, a million for M; 1 for any other.
func scale(c byte) float64 { return math.Pow10(3 * (1 + bytes.IndexByte([]byte("kMGT"), c))) }

// times reads the text in a bar's brackets, "00:12<20:31, 1.24s/it, loss=2.3": the elapsed time, the seconds per iteration with half a last digit as their
// possible error, and the postfix. The result is n, the length of the bar, or 0 if the text has no elapsed time.
func (bar *Bar) times(in []byte, n int) int {
	clock, rest, _ := bytes.Cut(in, []byte(","))
	elapsed, _, _ := bytes.Cut(clock, []byte("<"))
	v, ok := seconds(elapsed)
	if !ok {
		return 0
	}
	bar.Elapsed = v
	rate, postfix, _ := bytes.Cut(rest, []byte(", "))
	rate = bytes.TrimSpace(rate)
	if bytes.IndexByte(rate, '=') >= 0 { // a bar without its rate
		bar.Postfix = bytes.TrimSpace(rest)
		return n
	}
	bar.Postfix = bytes.TrimSpace(postfix)
	number, length := digits(rate)
	unit, off := rate[length:], 0.5
	if i := bytes.IndexByte(rate[:length], '.'); i >= 0 {
		off = 0.5 * math.Pow10(i+1-length)
	}
	switch {
	case length == 0 || !(number > 0):
	case bytes.HasPrefix(unit, []byte("s/")):
		bar.Per, bar.Err = number, off
	case bytes.HasSuffix(unit, []byte("/s")): // the error of 1/x is the error of x divided by x²
		if string(unit[1:]) == "it/s" || bar.scaled && len(unit) > len("k/s") && unit[0] != 'T' { // unit_scale; T is of Tokens
			by := scale(unit[0])
			number, off = number*by, off*by
		}
		bar.Per, bar.Err = 1/number, off/number/number
	}
	return n
}

// digits reads the digits at the beginning of b as a number, and returns their length; 0: none. decimal.Leading takes an e for an exponent, and refuses
// "41.65ex/s".
func digits(b []byte) (float64, int) {
	n := 0
	for n < len(b) && (ascii.IsDigit(b[n]) || b[n] == '.') {
		n++
	}
	v, ok := decimal.Float(b[:n])
	if !ok {
		return 0, 0
	}
	return v, n
}

// seconds reads "01:02" and "43:24:54", s. It returns false for another text.
func seconds(b []byte) (float64, bool) {
	if bytes.ContainsFunc(b, func(r rune) bool { return r != ':' && (r < '0' || r > '9') }) {
		return 0, false
	}
	total, parts := decimal.Sexagesimal(b, 6)
	return total, parts == 2 || parts == 3
}
