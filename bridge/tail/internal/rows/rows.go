// Package rows reads the binary files of experiment trackers as lines of JSON, one per step: event files of TensorBoard, and the files of W&B runs. A line is a
// range of whole records in the file: positions are the file's own, and reading may begin at each line.
package rows

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/tfevents"
	"github.com/trainbridge/trainbridge/internal/wandb"
)

// Kind is a kind of file.
type Kind uint8

// The kinds.
const (
	None   Kind = iota
	Events      // of TensorBoard
	WandB
)

// HeadBytes is the number of first bytes that decide a file's kind.
const HeadBytes = 256

// Megatron logs TFLOP/s of a GPU as throughput, always beside the time of an iteration (megatron/training/training.py: training_log). In logs of other trainers
// the word means samples or tokens.
const (
	throughput     = "throughput"
	iterationTime  = "iteration-time"
	flopThroughput = "tflops_per_gpu"
)

// KindOf returns the kind of a file by its head, the whole file if shorter than HeadBytes. open: the kind is not known yet, because head, of two bytes or more,
// may become an event file with more bytes.
func KindOf(head []byte) (kind Kind, open bool) {
	switch {
	case wandb.IsFile(head):
		return WandB, false
	case tfevents.IsEventFile(head):
		return Events, false
	case len(head) >= HeadBytes || len(head) < 2 || head[1] != 0: // an event file begins with a length below 256, little-endian
		return None, false
	}
	// Perhaps the beginning of a first record: its length is not written yet, or more than the head has. An event file with a first record longer than
	// HeadBytes is never known.
	size, err := tfevents.RecordSize(head)
	return None, err == nil && (size == 0 || size > int64(len(head))) && size <= HeadBytes
}

// Line is a line of a file.
type Line struct {
	Text []byte // empty: the records have no row
	N    int    // bytes of the file; 0: the line is incomplete
	Bad  bool   // damaged
}

// Next reads the line at the beginning of b, at an offset in the file; dst is memory for its text. final: no further bytes come now. An incomplete record waits
// even then.
func (k Kind) Next(dst, b []byte, offset int64, final bool) Line {
	if isZero(b) { // preallocated space
		return Line{}
	}
	if k == WandB {
		return nextWandB(dst, b, offset, final)
	}
	return nextEvents(dst, b, final)
}

// Past returns the number of bytes of the file to skip, from an offset on, where the line at the beginning of b is too long.
func (k Kind) Past(b []byte, offset int64) int64 {
	if k == WandB {
		return wandbBlock - offset%wandbBlock
	}
	size, err := tfevents.RecordSize(b)
	if err != nil || size == 0 {
		return int64(len(b))
	}
	return size
}

// Begin returns the last offset, up to the given offset, at which a line may begin: of W&B, the start of a block; -1: known only from the file's beginning.
func (k Kind) Begin(offset int64) int64 {
	if k == WandB {
		return offset / wandbBlock * wandbBlock
	}
	return -1
}

// isZero reports whether all bytes are NUL.
func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// appendKey begins a member of the JSON object in dst: it appends a comma, if there is a member already, and the key.
func appendKey(dst []byte, key string) []byte {
	if len(dst) > 1 {
		dst = append(dst, ", "...)
	}
	plain := true
	for i := range len(key) {
		plain = plain && key[i] >= ' ' && key[i] != '"' && key[i] != '\\'
	}
	if plain {
		dst = append(append(append(dst, '"'), key...), '"')
	} else {
		text, _ := json.Marshal(key) // of a string: no error
		dst = append(dst, text...)
	}
	return append(dst, ": "...)
}

// appendTime appends seconds since 1970, to the microsecond, the precision of float64.
func appendTime(dst []byte, seconds float64) []byte {
	return strconv.AppendFloat(dst, seconds, 'f', 6, 64)
}

// appendValue appends a value as Python's json writes it, but a whole number without ".0", and a float32 with its shortest text.
func appendValue(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	}
	bits := 64
	if float64(float32(v)) == v {
		bits = 32
	}
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) { // from where on Python's repr has an exponent
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, bits)
}
