package rows

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/tfevents"
)

const (
	// rowGap is the distance in s from the scalar before at which a scalar of the same step begins a row of its own: trainers write the values of a step
	// together, and the results of an evaluation after the evaluation.
	rowGap = 1.0
	// maxRow is the largest number of bytes in a row of several records.
	maxRow = 256 << 10
	// leastHeader is the length of a record's length and checksum.
	leastHeader = 12
)

// row is the scalars of a step so far.
type row struct {
	scalars []tfevents.Scalar
	tags    map[string]bool
	epochs  bool // the step is the number of an epoch
}

// nextEvents returns the row of the records of one step at the beginning of b. The row ends before a record that does not continue the row (takes), before
// damage, and where the row would exceed maxRow. If b ends before the row does, nextEvents returns the zero Line, and is called again with more bytes; if
// final, the whole records in b are the row, and only a first record in part waits. A first record without scalars, or damaged, is a Line without text.
func nextEvents(dst, b []byte, final bool) Line {
	var r row
	n := 0 // bytes of the records in the row
	for n < len(b) {
		size, err := tfevents.RecordSize(b[n:])
		if err != nil {
			if n == 0 {
				return Line{N: resume(b, final), Bad: true}
			}
			break
		}
		if n > 0 && int64(n)+size > maxRow {
			break
		}
		if size == 0 || size > int64(len(b)-n) { // b ends within the record
			if !final || n == 0 {
				return Line{}
			}
			break
		}
		scalars, ok := scalarsOf(b[n : n+int(size)])
		switch {
		case n == 0 && (!ok || len(scalars) == 0):
			return Line{N: int(size), Bad: !ok}
		case n == 0:
			r.tags, r.epochs = make(map[string]bool), ofEpoch(scalars)
			r.add(scalars)
		case !ok, len(scalars) > 0 && !r.takes(scalars):
			return Line{Text: r.text(dst), N: n}
		default:
			r.add(scalars)
		}
		n += int(size)
	}
	// The next record, not there yet, may be of the row; not if the first record alone exceeds maxRow, so that the row takes no other.
	if n == len(b) && n <= maxRow && !final {
		return Line{}
	}
	return Line{Text: r.text(dst), N: n}
}

// resume returns the number of damaged bytes at the beginning of b, up to the next record, which is recognized by a length with its checksum. Unless final, the
// last bytes of b are not counted, because the next record's length and checksum may begin there.
func resume(b []byte, final bool) int {
	for i := 1; i+leastHeader <= len(b); i++ {
		if _, err := tfevents.RecordSize(b[i:]); err == nil {
			return i
		}
	}
	if final {
		return len(b)
	}
	return max(0, len(b)-leastHeader+1)
}

// scalarsOf returns the scalars of a whole record, and false for a damaged record.
func scalarsOf(record []byte) (scalars []tfevents.Scalar, ok bool) {
	d := tfevents.Decoder{Scalar: func(s tfevents.Scalar) { scalars = append(scalars, s) }}
	err := d.Decode(record)
	return scalars, err == nil && d.Counts().Events == 1
}

// ofEpoch reports whether values are an epoch's. Keras writes them with the epoch as the step, named epoch_loss and so on, and evaluation_…
// (keras/src/callbacks/tensorboard.py: _log_epoch_metrics).
func ofEpoch(scalars []tfevents.Scalar) bool { return strings.HasPrefix(scalars[0].Tag, "epoch_") }

// takes reports whether the scalars of a record continue the row: step and time are the row's, both are of training or both of epochs, and no tag is repeated.
func (r *row) takes(next []tfevents.Scalar) bool {
	last := r.scalars[len(r.scalars)-1]
	if next[0].Step != last.Step || math.Abs(next[0].WallTime-last.WallTime) > rowGap || ofEpoch(next) != r.epochs {
		return false
	}
	return !slices.ContainsFunc(next, func(s tfevents.Scalar) bool { return r.tags[s.Tag] })
}

// add adds the scalars of a record to the row.
func (r *row) add(scalars []tfevents.Scalar) {
	r.scalars = append(r.scalars, scalars...)
	for _, s := range scalars {
		r.tags[s.Tag] = true
	}
}

// text returns the row as JSON, with the time of the last scalar; empty without a value. Left out are tags with the name of the step or time, and repetitions:
// Megatron repeats values by the number of samples (megatron/training/training.py: "vs samples"). Megatron's throughput is renamed (flopThroughput).
func (r *row) text(dst []byte) []byte {
	last := r.scalars[len(r.scalars)-1]
	step := "step"
	if r.epochs {
		step = "epoch"
	}
	dst = append(dst[:0], '{')
	dst = strconv.AppendInt(appendKey(dst, step), last.Step, 10)
	if last.WallTime > 0 && last.WallTime < 1e12 { // beyond, the value is no time in seconds
		dst = appendTime(appendKey(dst, "wall_time"), last.WallTime)
	}
	head := len(dst)
	for _, s := range r.scalars {
		if s.Tag == step || s.Tag == "wall_time" || strings.HasSuffix(s.Tag, " vs samples") {
			continue
		}
		key := s.Tag
		if key == throughput && r.tags[iterationTime] { // of Megatron
			key = flopThroughput
		}
		dst = appendValue(appendKey(dst, key), s.Value)
	}
	if len(dst) == head {
		return dst[:0]
	}
	return append(dst, '}')
}
