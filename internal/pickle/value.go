package pickle

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// Kind is the kind of a Value.
type Kind uint8

// The kinds.
const (
	None Kind = iota
	Bool
	Int
	Float
	Text  // str, and Python 2's str
	Bytes // bytes
	List
	Tuple
	Dict
)

// Kind is the kind of a value, by its opcode or, of a container, by its header.
func (d *Decoder) Kind(v Value) Kind {
	if v&container != 0 {
		switch header := d.header(v); {
		case header&kindDict != 0:
			return Dict
		case header&kindTuple != 0:
			return Tuple
		}
		return List
	}
	switch d.data[v] {
	case opNewTrue, opNewFalse:
		return Bool
	case opInt:
		if b, _ := argumentAt(d.data, int(v)); len(b) == 2 && b[0] == '0' { // I00 and I01
			return Bool
		}
		return Int
	case opBinInt, opBinInt1, opBinInt2, opLong, opLong1, opLong4:
		return Int
	case opFloat, opBinFloat:
		return Float
	case opBinUnicode, opShortBinUnicode, opBinUnicode8, opBinString, opShortBinString:
		return Text
	case opBinBytes, opShortBinBytes, opBinBytes8:
		return Bytes
	}
	return None
}

// header is the first word of a container: kind and length.
func (d *Decoder) header(v Value) uint32 { return d.buffer[v&^container] }

// Bool returns a boolean; not ok: the value is of another kind.
func (d *Decoder) Bool(v Value) (is, ok bool) {
	if d.Kind(v) != Bool {
		return false, false
	}
	if d.data[v] == opInt { // I00 or I01
		return d.data[v+2] == '1', true
	}
	return d.data[v] == opNewTrue, true
}

// Int returns a whole number; not ok: the value is of another kind, or beyond 64 bits.
func (d *Decoder) Int(v Value) (n int64, ok bool) {
	if v&container != 0 {
		return 0, false
	}
	b, _ := argumentAt(d.data, int(v))
	switch d.data[v] {
	case opBinInt1:
		return int64(b[0]), true
	case opBinInt2:
		return int64(binary.LittleEndian.Uint16(b)), true
	case opBinInt:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	case opLong1, opLong4:
		return twos(b)
	case opInt, opLong:
		n, err := strconv.ParseInt(string(bytes.TrimSuffix(b, []byte("L"))), 10, 64) // LONG of Python 2 ends with L
		return n, err == nil && d.Kind(v) == Int                                     // I00 and I01 are booleans
	}
	return 0, false
}

// twos reads a number in two's complement, little-endian, of any length; not ok: more than 64 bits.
func twos(b []byte) (n int64, ok bool) {
	if len(b) == 0 {
		return 0, true
	}
	sign := byte(0) // the bytes that continue a number of this sign
	if b[len(b)-1]&0x80 != 0 {
		sign = 0xff
	}
	for len(b) > 8 { // bytes beyond 64 bits must repeat the sign
		if b[len(b)-1] != sign {
			return 0, false
		}
		b = b[:len(b)-1]
	}
	if b[len(b)-1]&0x80 != sign&0x80 {
		return 0, false
	}
	if sign != 0 {
		n = -1
	}
	for _, c := range slices.Backward(b) {
		n = n<<8 | int64(c)
	}
	return n, true
}

// Float returns a number, whole or not; not ok: the value is of another kind, or a whole number beyond 64 bits.
func (d *Decoder) Float(v Value) (f float64, ok bool) {
	if n, ok := d.Int(v); ok {
		return float64(n), true
	}
	if v&container != 0 {
		return 0, false
	}
	switch b, _ := argumentAt(d.data, int(v)); d.data[v] {
	case opBinFloat:
		return math.Float64frombits(binary.BigEndian.Uint64(b)), true
	case opFloat:
		f, err := strconv.ParseFloat(string(b), 64)
		return f, err == nil
	}
	return 0, false
}

// Text returns the bytes of a text or of bytes, part of the pickle; nil: the value is neither.
func (d *Decoder) Text(v Value) []byte {
	if k := d.Kind(v); k != Text && k != Bytes {
		return nil
	}
	b, _ := argumentAt(d.data, int(v))
	return b
}

// Len is the number of items of a list or a tuple, or of pairs of a dictionary; 0 of other values.
func (d *Decoder) Len(v Value) int {
	if v&container == 0 {
		return 0
	}
	header := d.header(v)
	n := int(header & lengths)
	if header&kindDict != 0 {
		n /= 2
	}
	return n
}

// Item returns an item of a list or a tuple. It panics where i is not below Len.
func (d *Decoder) Item(v Value, i int) Value { return Value(d.items(v)[i]) }

// Pair returns a pair of a dictionary, in order of assignment: a key may be repeated, and then the last one counts. Pair panics where i is not below Len.
func (d *Decoder) Pair(v Value, i int) (key, value Value) {
	all := d.items(v)
	return Value(all[2*i]), Value(all[2*i+1])
}

// items are the Values in a container; a dictionary has keys and values in turn.
func (d *Decoder) items(v Value) []uint32 {
	at := v &^ container
	from := d.buffer[at+1]
	return d.buffer[from : from+d.buffer[at]&lengths]
}
