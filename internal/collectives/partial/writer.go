package partial

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/spans"
)

// The first and the last byte of packed records.
const (
	version  = 1
	lastByte = 0xff
)

// Writer packs records of one log in one communicator. The zero value is ready.
type Writer struct {
	columns    [columns]column
	n, details int      // records, and details of all of them together
	start, end int64    // Stretch.Start and Stretch.End
	key        [16]byte // Stretch.key
	comm       string   // Stretch.Comm

	numbers map[string]int64 // of the texts, from 1 on
	texts   []string
	length  int // of the texts together
}

// Add adds a record: one value to each column. The Writer keeps no reference to o.
func (w *Writer) Add(o *op.Op) {
	if w.n == 0 {
		w.begin(o)
	}
	w.n++
	c := &w.columns
	c[colKind].put(int64(o.Kind))
	for i, f := range ints64 {
		c[colInt64+i].put(*f(o))
	}
	for i, f := range ints32 {
		c[colInt32+i].put(int64(*f(o)))
	}
	for i, f := range numbers {
		c[colNumber+i].put(int64(*f(o)))
	}
	for i, f := range floats {
		c[colFloat+i].put(int64(math.Float64bits(*f(o))))
	}
	for i, f := range texts {
		w.putText(colText+i, *f(o))
	}
	set := int64(0)
	for i, f := range flags {
		if *f(o) {
			set |= 1 << i
		}
	}
	if o.IDs != nil {
		set |= hasIDs
		for i, id := range o.IDs {
			w.putText(colID+i, id)
		}
	} else {
		for i := range idFields {
			c[colID+i].put(0)
		}
	}
	c[colFlags].put(set)
	w.putName(colTime, string(o.Time))
	w.putName(colUnit, o.ReportedUnit)
	c[colEnd].put(o.End - expectedEnd(o.Start, o.Duration))
	c[colState].put(int64(o.State))
	c[colParentKind].put(int64(o.ParentKind))
	c[colDetails].put(int64(len(o.Details)))
	for i := range o.Details {
		w.putDetail(o, &o.Details[i])
	}
	at := o.Start
	if at == 0 { // unknown
		at = o.End
	}
	w.start, w.end = min(w.start, at), max(w.end, o.End, at)
}

// begin sets the communicator and the key of the stretch from its first record. The key is a hash of values that distinguish the record from others of the log.
func (w *Writer) begin(o *op.Op) {
	w.comm = spans.Name(o.Comm)
	w.start, w.end = math.MaxInt64, 0
	var key []byte
	for _, v := range [...]int64{int64(o.Kind), int64(o.Seq), o.Start, o.End, o.Duration, int64(o.Rank), o.PID, int64(o.Peer)} {
		key = binary.BigEndian.AppendUint64(key, uint64(v))
	}
	w.key = [16]byte(spans.ShortKey(append(key, o.Name...)))
}

// putDetail adds a detail of record o to the columns of details.
func (w *Writer) putDetail(o *op.Op, d *op.Detail) {
	w.details++
	c := &w.columns
	w.putName(colName, d.Name)
	c[colStart].put(d.Start - o.Start)
	c[colDetailEnd].put(d.End - expectedEnd(d.Start, d.Duration))
	c[colDuration].put(d.Duration)
	c[colChannel].put(int64(d.Channel))
	c[colPeer].put(int64(d.Peer))
	c[colStep].put(int64(d.Step))
	c[colSize].put(d.Size)
	w.putName(colDirection, d.Direction)
	w.putName(colOperation, d.Operation)
	c[colUnder].put(int64(d.Under))
}

// putText adds a text to a column, as the number of its entry in the dictionary. nil is 0; an empty text has an entry, because Read distinguishes the two.
func (w *Writer) putText(at int, b []byte) {
	c := &w.columns[at]
	if b == nil {
		c.put(0)
		return
	}
	n := c.last // mostly the same as before
	if n == 0 || w.texts[n-1] != string(b) {
		var ok bool
		n, ok = w.numbers[string(b)]
		if !ok {
			n = w.addText(string(b))
		}
	}
	c.put(n)
}

// putName adds a string to a column, as the number of its entry in the dictionary; empty is 0.
func (w *Writer) putName(at int, s string) {
	c := &w.columns[at]
	n := c.last
	switch {
	case s == "":
		n = 0
	case n == 0 || w.texts[n-1] != s:
		var ok bool
		n, ok = w.numbers[s]
		if !ok {
			n = w.addText(s)
		}
	}
	c.put(n)
}

// addText adds a text to the dictionary, and returns the number of its entry.
func (w *Writer) addText(s string) int64 {
	if w.numbers == nil {
		w.numbers = make(map[string]int64)
	}
	w.texts = append(w.texts, s)
	w.length += len(s)
	n := int64(len(w.texts))
	w.numbers[s] = n
	return n
}

// Len returns how many records were added.
func (w *Writer) Len() int { return w.n }

// Size returns about how many bytes the packed records will take, mostly less.
func (w *Writer) Size() int { return w.n*64 + w.details*24 + w.length + len(w.texts) }

// Pack moves the records into a stretch, in the form that Read reads, and empties the Writer. All of the stretch is set but its origin; the memory of s.Records
// is used again. The form is
//
//	version | records | details | texts | each text | each column: number, form, values (column.append) | last
func (w *Writer) Pack(s *Stretch) {
	s.Comm, s.Count, s.Start, s.End, s.key = w.comm, w.n, w.start, w.end, w.key
	b := s.Records[:0]
	b = append(b, version)
	b = binary.AppendUvarint(b, uint64(w.n))
	b = binary.AppendUvarint(b, uint64(w.details))
	b = binary.AppendUvarint(b, uint64(len(w.texts)))
	for _, text := range w.texts {
		b = wire.AppendBytes(b, text)
	}
	for i := range w.columns {
		b = w.columns[i].append(b, i)
		w.columns[i].reset()
	}
	b = append(b, lastByte)
	s.Records = b
	w.n, w.details, w.length = 0, 0, 0
	clear(w.numbers)
	clear(w.texts)
	w.texts = w.texts[:0]
}

// column has the values of a field.
type column struct {
	n      int     // number of values
	last   int64   // the latest value
	values []int64 // empty while all are the same
}

// put adds a value. While all values are equal, only their number is kept: most columns have the same value throughout.
func (c *column) put(v int64) {
	switch {
	case len(c.values) > 0:
		c.values = append(c.values, v)
	case c.n > 0 && v != c.last:
		for range c.n {
			c.values = append(c.values, c.last)
		}
		c.values = append(c.values, v)
	}
	c.n++
	c.last = v
}

// maxIdle bounds the memory of an empty column, in values.
const maxIdle = 1024

// reset empties the column, and keeps memory up to maxIdle values.
func (c *column) reset() {
	*c = column{values: c.values[:0]}
	if cap(c.values) > maxIdle {
		c.values = nil
	}
}

// The forms of a column:
//
//	formOffset: form | base | unit | length | numbers             the n-th value is base + unit · (the n-th number)
//	formDelta:  form | first value | step | unit | length | numbers   each further value is the one before + step + unit · (the next number)
//
// length is of all numbers together, in bytes. With unit 0 neither length nor numbers are written: all values are equal, or grow evenly by step.
const (
	formOffset  byte = 0
	formDelta   byte = 1
	formInteger byte = 2 // flag: values are float64, all integers
)

// append writes the column: its number at, and its values in the shorter of both forms; nothing if every value is the absent one. Units are greatest common
// divisors, so that numbers are small. The columns of kinds and names are always written, with a byte or more for each value (see colKind), so that a reader
// need not trust the number of records.
func (c *column) append(b []byte, at int) []byte {
	always := at == colKind || at == colName
	if c.n == 0 || len(c.values) == 0 && c.last == absent[at] && !always {
		return b
	}
	values := c.values
	if len(values) == 0 { // all are equal: one stands for them
		one := [1]int64{c.last}
		values = one[:]
	}
	form := formOffset
	if at >= colFloat && at < colText && convertIntegers(values) { // converted in place
		form = formInteger
	}
	b = append(b, byte(at))
	if always {
		for len(values) < c.n {
			values = append(values, c.last)
		}
		return appendOffsets(append(b, form), values, 0, 1)
	}
	// By offsets from the least value.
	lo, offsets := slices.Min(values), divisor{}
	for _, v := range values {
		offsets.add(uint64(v - lo))
	}
	if offsets.gcd == 0 { // all are equal
		return binary.AppendUvarint(binary.AppendVarint(append(b, form), lo), 0)
	}
	// By differences of consecutive values, less the least of them.
	step, deltas := int64(math.MaxInt64), divisor{}
	for i, v := range values[1:] {
		step = min(step, v-values[i])
	}
	for i, v := range values[1:] {
		deltas.add(uint64(v - values[i] - step))
	}
	if deltas.gcd > 0 {
		more := 0 // bytes of the deltas, less those of the offsets
		for i, v := range values[1:] {
			more += varintSize(uint64(v-values[i]-step)/deltas.gcd) - varintSize(uint64(v-lo)/offsets.gcd)
		}
		if more >= 0 {
			return appendOffsets(append(b, form), values, lo, offsets.gcd)
		}
	}
	b = binary.AppendVarint(append(b, form|formDelta), values[0])
	b = binary.AppendUvarint(binary.AppendVarint(b, step), deltas.gcd)
	if deltas.gcd == 0 { // the values grow evenly
		return b
	}
	length := 0
	for i, v := range values[1:] {
		length += varintSize(uint64(v-values[i]-step) / deltas.gcd)
	}
	b = binary.AppendUvarint(b, uint64(length))
	for i, v := range values[1:] {
		b = binary.AppendUvarint(b, uint64(v-values[i]-step)/deltas.gcd)
	}
	return b
}

// appendOffsets appends base, unit, length and numbers of formOffset.
func appendOffsets(b []byte, values []int64, lo int64, gcd uint64) []byte {
	length := 0
	for _, v := range values {
		length += varintSize(uint64(v-lo) / gcd)
	}
	b = binary.AppendUvarint(binary.AppendVarint(b, lo), gcd)
	b = binary.AppendUvarint(b, uint64(length))
	for _, v := range values {
		b = binary.AppendUvarint(b, uint64(v-lo)/gcd)
	}
	return b
}

// convertIntegers converts the bits of floats in values to integers, in place, if every float is whole and small enough to be exact; false: nothing was
// changed. −0 is no integer.
func convertIntegers(values []int64) bool {
	for _, v := range values {
		f := math.Float64frombits(uint64(v))
		if f != math.Trunc(f) || math.Abs(f) > 1<<53 || f == 0 && math.Signbit(f) {
			return false
		}
	}
	for i, v := range values {
		values[i] = int64(math.Float64frombits(uint64(v)))
	}
	return true
}

// divisor is the greatest common divisor of numbers: times in ns are mostly whole µs, bandwidths whole kB/s. 0: every number is 0.
type divisor struct{ gcd uint64 }

// add includes the number v: afterwards gcd divides v and all numbers before.
func (u *divisor) add(v uint64) {
	switch {
	case u.gcd == 1 || v == 0: // no change
	case u.gcd == 0:
		u.gcd = v
	default: // Euclid's algorithm
		for a, b := v, u.gcd; ; {
			if a %= b; a == 0 {
				u.gcd = b
				return
			}
			a, b = b, a
		}
	}
}

// varintSize returns how many bytes a number takes as a varint, with seven bits a byte.
func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
