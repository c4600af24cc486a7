package partial

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/spans"
)

// Read calls visit for each packed record, in order. visit may change the record, which is valid during the call. Everything is checked first: visit is never
// called for damaged records.
func Read(packed []byte, visit func(o *op.Op)) error {
	r := readers.Get().(*reader)
	defer r.free()
	if err := r.open(packed); err != nil {
		return err
	}
	for range r.n {
		visit(r.next())
	}
	return nil
}

// count returns the number of records that packed records claim to have; −1: not packed by this version.
func count(packed []byte) int {
	if len(packed) == 0 || packed[0] != version {
		return -1
	}
	n, _ := binary.Uvarint(packed[1:])
	return int(min(n, math.MaxInt32))
}

var (
	errVersion = errors.New("packed records are in a form that this version does not know: update trainbridge here before it is updated on the hosts")
	errBroken  = errors.New("packed records are broken: they were cut or changed on the way")
)

var readers = sync.Pool{New: func() any { return new(reader) }}

// reader goes through all columns in parallel, record by record: its memory does not grow with the packed records.
type reader struct {
	packed     []byte // but for the last byte
	n, details int    // records, and details of all of them together
	texts      []textAt
	cursors    [columns]cursor
	varying    []int // columns with different values, but for details
	all        op.Op // values common to all records
	op         op.Op // the record visited
	end, count int64 // columns colEnd and colDetails of the record
	ids        logids.IDs
	names      map[string]string // texts as strings, each made once
}

// textAt is where a text of the dictionary is.
type textAt struct{ from, to uint32 }

// Bounds of a reader's memory between packings.
const (
	maxNames   = 1024
	maxTexts   = 1 << 14
	maxDetails = 1 << 14
)

// free empties the reader and puts it back into readers; tables larger than the bounds are dropped.
func (r *reader) free() {
	if len(r.names) > maxNames {
		r.names = nil
	}
	if cap(r.texts) > maxTexts {
		r.texts = nil
	}
	details := r.op.Details[:0]
	if cap(details) > maxDetails {
		details = nil
	}
	*r = reader{texts: r.texts[:0], varying: r.varying[:0], names: r.names, op: op.Op{Details: details}}
	readers.Put(r)
}

// open checks packed records (see Writer.Pack for their form) and places a cursor at the start of each column. After open, next cannot fail.
func (r *reader) open(packed []byte) error {
	if len(packed) == 0 || len(packed) > math.MaxInt32 {
		return errBroken
	}
	if packed[0] != version {
		return errVersion
	}
	if packed[len(packed)-1] != lastByte {
		return errBroken
	}
	packed = packed[:len(packed)-1]
	r.packed = packed
	in := wire.Cursor{Rest: packed[1:]}
	n, details, texts := in.Uvarint(), in.Uvarint(), in.Uvarint()
	size := uint64(len(packed))
	if n > size || details > size || texts > size { // each record, detail and text takes at least a byte
		return errBroken
	}
	r.n, r.details = int(n), int(details)
	if !r.readDictionary(int(texts), &in) {
		return errBroken
	}
	for i := range r.cursors {
		r.cursors[i] = cursor{base: absent[i]}
	}
	before := -1 // columns come in order, each once
	for len(in.Rest) > 0 {
		at := int(in.Byte())
		if at <= before || at >= columns || !r.readColumn(at, &in) {
			return errBroken
		}
		before = at
	}
	noKinds, noNames := r.n > 0 && r.cursors[colKind].unit == 0, r.details > 0 && r.cursors[colName].unit == 0
	if in.Bad || noKinds || noNames { // columns that are always written
		return errBroken
	}
	// The records' numbers of details must add up, or next would read beyond the columns of details. The loop uses a copy of the cursor.
	sum := uint64(0)
	for c, i := r.cursors[colDetails], 0; i < r.n; i++ {
		sum += uint64(c.next())
	}
	if sum != details {
		return errBroken
	}
	r.splitColumns()
	return nil
}

// readDictionary finds the texts of the dictionary; false: damaged.
func (r *reader) readDictionary(texts int, in *wire.Cursor) (ok bool) {
	for range texts {
		text := in.Bytes()
		if in.Bad {
			return false
		}
		to := len(r.packed) - len(in.Rest)
		r.texts = append(r.texts, textAt{uint32(to - len(text)), uint32(to)})
	}
	return true
}

// readColumn reads the head of column at (see column.append), places its cursor before the first value, and checks the number and the bounds of the values;
// false: damaged.
func (r *reader) readColumn(at int, in *wire.Cursor) (ok bool) {
	c := &r.cursors[at]
	form := in.Uvarint()
	c.delta, c.integer = form&uint64(formDelta) != 0, form&uint64(formInteger) != 0
	c.base = in.Varint()
	if c.delta {
		c.step = in.Varint()
	}
	c.unit = in.Uvarint()
	rows, numbers := r.n, r.n // values, and numbers written
	if at >= colName {
		rows, numbers = r.details, r.details
	}
	isFloat := at >= colFloat && at < colText
	if form > uint64(formDelta|formInteger) || c.integer && !isFloat || rows == 0 || in.Bad {
		return false
	}
	if always := at == colKind || at == colName; always && (c.delta || c.unit != 1) { // each value must take at least a byte
		return false
	}
	if c.unit > 0 {
		c.rest = in.Bytes()
		if c.delta { // the first value is the base
			numbers--
		}
		endsInside := len(c.rest) > 0 && c.rest[len(c.rest)-1] < 0x80 // the last varint is whole
		if !endsInside || countVarints(c.rest) != numbers {
			return false
		}
	}
	lo, hi := r.bounds(at)
	if lo == math.MinInt64 { // every value is allowed
		return true
	}
	if !c.varies() {
		rows = 1 // stands for all
	}
	for run := *c; rows > 0; rows-- {
		if v := run.next(); v < lo || v > hi {
			return false
		}
	}
	return true
}

// bounds returns the least and the largest allowed value of a column; the whole range of int64: no limits.
func (r *reader) bounds(at int) (lo, hi int64) {
	switch {
	case at == colKind, at == colParentKind:
		return 0, int64(op.Kinds) - 1
	case at >= colInt32 && at < colNumber, at >= colChannel && at <= colStep, at == colUnder:
		return math.MinInt32, math.MaxInt32
	case at >= colText && at < colFlags, at == colTime, at == colUnit, at == colName, at == colDirection, at == colOperation:
		return 0, int64(len(r.texts))
	case at == colFlags:
		return 0, 2*hasIDs - 1
	case at == colState:
		return 0, int64(op.Scheduled)
	case at == colDetails:
		return 0, int64(r.details)
	}
	return math.MinInt64, math.MaxInt64
}

// splitColumns sets the values common to all records in r.all, and lists the other columns, which next reads for each record, in r.varying.
func (r *reader) splitColumns() {
	r.all.Init()
	r.end, r.count = absent[colEnd], absent[colDetails]
	for at := range colName {
		if c := &r.cursors[at]; c.varies() {
			r.varying = append(r.varying, at)
		} else if c.base != absent[at] || c.integer { // absent has the bits of a float, no integer
			r.set(&r.all, at, c.base)
		}
	}
}

// next reads the next record into r.op, which the next call overwrites.
func (r *reader) next() *op.Op {
	o, details := &r.op, r.op.Details[:0]
	*o = r.all
	for _, at := range r.varying {
		r.set(o, at, r.cursors[at].next())
	}
	o.End = r.end + expectedEnd(o.Start, o.Duration)
	for range r.count {
		details = append(details, r.detail(o.Start))
	}
	o.Details = details
	return o
}

// set sets the field of column at to a value of the column. The end and the number of details only go into r: next completes them with other fields.
func (r *reader) set(o *op.Op, at int, v int64) {
	switch {
	case at == colKind:
		o.Kind = op.Kind(v)
	case at < colInt32:
		*ints64[at-colInt64](o) = v
	case at < colNumber:
		*ints32[at-colInt32](o) = int32(v)
	case at < colFloat:
		*numbers[at-colNumber](o) = uint64(v)
	case at < colText:
		f := math.Float64frombits(uint64(v))
		if r.cursors[at].integer {
			f = float64(v)
		}
		*floats[at-colFloat](o) = f
	case at < colID:
		*texts[at-colText](o) = r.text(v)
	case at < colFlags:
		r.ids[at-colID] = r.text(v)
	case at == colFlags:
		for i, f := range flags {
			*f(o) = v>>i&1 == 1
		}
		o.IDs = nil
		if v&hasIDs != 0 {
			o.IDs = &r.ids
		}
	case at == colTime:
		o.Time = spans.TimeSource(r.name(v))
	case at == colUnit:
		o.ReportedUnit = r.name(v)
	case at == colEnd:
		r.end = v
	case at == colState:
		o.State = op.State(v)
	case at == colParentKind:
		o.ParentKind = op.Kind(v)
	case at == colDetails:
		r.count = v
	}
}

// detail reads the next detail of a record with the given start.
func (r *reader) detail(start int64) op.Detail {
	c := &r.cursors
	d := op.Detail{
		Name: r.name(c[colName].next()), Start: start + c[colStart].next(), Duration: c[colDuration].next(), Channel: int32(c[colChannel].next()),
		Peer: int32(c[colPeer].next()), Step: int32(c[colStep].next()), Size: c[colSize].next(), Direction: r.name(c[colDirection].next()),
		Operation: r.name(c[colOperation].next()), Under: int32(c[colUnder].next()),
	}
	d.End = c[colDetailEnd].next() + expectedEnd(d.Start, d.Duration)
	return d
}

// text returns the n-th text of the dictionary, as a slice of the packed bytes; 0: nil.
func (r *reader) text(n int64) []byte {
	if n == 0 {
		return nil
	}
	t := r.texts[n-1]
	return r.packed[t.from:t.to:t.to]
}

// name returns the n-th text of the dictionary as a string; 0: empty.
func (r *reader) name(n int64) string {
	b := r.text(n)
	if len(b) == 0 {
		return ""
	}
	s, ok := r.names[string(b)]
	if !ok {
		if r.names == nil {
			r.names = make(map[string]string)
		}
		s = string(b)
		r.names[s] = s
	}
	return s
}

// cursor is a place in a column. The forms of columns are in writer.go.
type cursor struct {
	delta, integer bool   // formDelta, formInteger
	begun          bool   // delta: the first value was given
	base           int64  // of the offsets; delta: the value before
	step           int64  // delta: the least difference of two values
	unit           uint64 // factor of the numbers; 0: none are written
	rest           []byte // numbers not read yet, varints
}

// varies reports whether the values of the column may differ.
func (c *cursor) varies() bool { return c.unit > 0 || c.delta }

// next returns the next value. The caller knows that it exists (open).
func (c *cursor) next() int64 {
	if c.delta && !c.begun {
		c.begun = true
		return c.base
	}
	n := uint64(0)
	if c.unit > 0 {
		for shift := 0; ; shift += 7 {
			b := c.rest[0]
			c.rest = c.rest[1:]
			n |= uint64(b&0x7f) << shift // bits beyond 64 are dropped
			if b < 0x80 {
				break
			}
		}
	}
	v := c.base + c.step + int64(n*c.unit)
	if c.delta {
		c.base = v
	}
	return v
}

// countVarints returns the number of varints in b: the last byte of each lacks the highest bit.
func countVarints(b []byte) (n int) {
	for _, x := range b {
		n += int(x>>7 ^ 1)
	}
	return n
}
