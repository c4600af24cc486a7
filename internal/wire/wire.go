// Package wire reads and writes binary data, stored or sent: varints, numbers of 8 bytes, little-endian, and bytes behind their length.
package wire

import (
	"encoding/binary"
	"math"
)

// Cursor is the unread rest. After a premature end the Cursor is bad: nothing is left, and zeros are read.
type Cursor struct {
	Rest []byte
	Bad  bool
}

// Fail makes the Cursor bad.
func (c *Cursor) Fail() { *c = Cursor{Bad: true} }

// Uvarint reads the output of binary.AppendUvarint.
func (c *Cursor) Uvarint() uint64 {
	v, n := binary.Uvarint(c.Rest)
	if n <= 0 {
		c.Fail()
		return 0
	}
	c.Rest = c.Rest[n:]
	return v
}

// Varint reads the output of binary.AppendVarint.
func (c *Cursor) Varint() int64 {
	v := c.Uvarint()
	return int64(v>>1) ^ -int64(v&1) // zigzag: the lowest bit is the sign
}

// Uint64 reads 8 bytes.
func (c *Cursor) Uint64() uint64 {
	if b := c.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Float64 reads the bits of a number.
func (c *Cursor) Float64() float64 { return math.Float64frombits(c.Uint64()) }

// Byte reads a byte.
func (c *Cursor) Byte() byte {
	if b := c.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// Take reads n bytes; nil: fewer are left.
func (c *Cursor) Take(n uint64) []byte {
	if n > uint64(len(c.Rest)) {
		c.Fail()
		return nil
	}
	b := c.Rest[:n]
	c.Rest = c.Rest[n:]
	return b
}

// Bytes reads the output of AppendBytes. The result is a part of Rest.
func (c *Cursor) Bytes() []byte { return c.Take(c.Uvarint()) }

// Count reads a number of items of at least size bytes each. A number for which the rest is too short makes the Cursor bad: no more memory is allocated than
// the data can fill.
func (c *Cursor) Count(size int) int {
	n := c.Uvarint()
	if n > uint64(len(c.Rest)/size) {
		c.Fail()
		return 0
	}
	return int(n)
}

// AppendVarints appends signed integers, for Cursor.Varint.
func AppendVarints(b []byte, all ...int64) []byte {
	for _, n := range all {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// AppendFloats appends the bits of numbers, for Cursor.Float64.
func AppendFloats(b []byte, all ...float64) []byte {
	for _, x := range all {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// AppendBytes appends bytes behind their length.
func AppendBytes[T string | []byte](b []byte, more T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(more))), more...)
}
