package tfevents

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	tensorType    = 1<<3 | uint64(protowire.VarintType)
	tensorShape   = 2<<3 | uint64(protowire.BytesType)
	tensorContent = 4<<3 | uint64(protowire.BytesType)

	shapeDim         = 2<<3 | uint64(protowire.BytesType)
	shapeUnknownRank = 3<<3 | uint64(protowire.VarintType)
)

// element is how a tensor holds numbers of one type.
type element struct {
	field protowire.Number // of the values, where they are not in tensor_content
	wire  protowire.Type   // of a value there
	size  int              // B of a value in tensor_content, little-endian
	value func(bits uint64) float64
}

// elements are the types by their numbers in types.proto; size 0: of no numbers.
var elements = [...]element{
	1:  {5, protowire.Fixed32Type, 4, func(bits uint64) float64 { return float64(math.Float32frombits(uint32(bits))) }},       // DT_FLOAT
	2:  {6, protowire.Fixed64Type, 8, math.Float64frombits},                                                                   // DT_DOUBLE
	3:  {7, protowire.VarintType, 4, func(bits uint64) float64 { return float64(int32(bits)) }},                               // DT_INT32
	4:  {7, protowire.VarintType, 1, func(bits uint64) float64 { return float64(uint8(bits)) }},                               // DT_UINT8
	5:  {7, protowire.VarintType, 2, func(bits uint64) float64 { return float64(int16(bits)) }},                               // DT_INT16
	6:  {7, protowire.VarintType, 1, func(bits uint64) float64 { return float64(int8(bits)) }},                                // DT_INT8
	9:  {10, protowire.VarintType, 8, func(bits uint64) float64 { return float64(int64(bits)) }},                              // DT_INT64
	14: {13, protowire.VarintType, 2, func(bits uint64) float64 { return float64(math.Float32frombits(uint32(bits) << 16)) }}, // DT_BFLOAT16
	17: {7, protowire.VarintType, 2, func(bits uint64) float64 { return float64(uint16(bits)) }},                              // DT_UINT16
	19: {13, protowire.VarintType, 2, half},                                                                                   // DT_HALF
	22: {16, protowire.VarintType, 4, func(bits uint64) float64 { return float64(uint32(bits)) }},                             // DT_UINT32
	23: {17, protowire.VarintType, 8, func(bits uint64) float64 { return float64(bits) }},                                     // DT_UINT64
}

// half is a number of 16 bits in IEEE 754: a bit for the sign, 5 for the exponent with a bias of 15, and 10 for the fraction.
func half(bits uint64) float64 {
	exponent, fraction := int(bits>>10&31), float64(bits&1023)
	var v float64
	switch {
	case exponent == 0: // subnormal
		v = math.Ldexp(fraction, -24)
	case exponent < 31:
		v = math.Ldexp(1024+fraction, exponent-25) // 1.fraction · 2^(exponent−15)
	case fraction == 0:
		v = math.Inf(1)
	default:
		return math.NaN()
	}
	if bits>>15&1 == 1 {
		return -v
	}
	return v
}

// number is the number v in a tensor of rank 0, in tensor_content or in the field of its type. !is: the tensor is something else. !ok: malformed.
func number(tensor []byte) (v float64, is, ok bool) {
	var dtype uint64
	var content, shape []byte
	f := fields{rest: tensor}
	for f.next() {
		switch f.key {
		case tensorType:
			dtype = f.bits
		case tensorShape:
			shape = f.data
		case tensorContent:
			content = f.data
		}
	}
	scalar, ok := isRank0(shape)
	switch {
	case f.bad || !ok:
		return 0, false, false
	case !scalar || dtype >= uint64(len(elements)) || elements[dtype].size == 0:
		return 0, false, true
	}
	e := &elements[dtype]
	switch len(content) {
	case 0:
		return e.single(tensor)
	case e.size: // a single value
		var bits [8]byte
		copy(bits[:], content)
		return e.value(binary.LittleEndian.Uint64(bits[:])), true, true
	}
	return 0, false, true
}

// isRank0 reads a shape. A tensor without one has rank 0.
func isRank0(shape []byte) (yes, ok bool) {
	yes = true
	f := fields{rest: shape}
	for f.next() {
		if f.key == shapeDim || f.key == shapeUnknownRank && f.bits != 0 {
			yes = false
		}
	}
	return yes, !f.bad
}

// single is the only value v of a tensor in the field of its type, packed or not. !is: there are several, or none. !ok: malformed.
func (e *element) single(tensor []byte) (v float64, is, ok bool) {
	n := 0
	f := fields{rest: tensor}
	for f.next() {
		switch f.key {
		case protowire.EncodeTag(e.field, e.wire):
			n++
			v = e.value(f.bits)
		case protowire.EncodeTag(e.field, protowire.BytesType):
			for rest := f.data; len(rest) > 0; n++ {
				bits, size := e.consume(rest)
				if size < 0 {
					return 0, false, false
				}
				v = e.value(bits)
				rest = rest[size:]
			}
		}
	}
	return v, n == 1, true
}

// consume reads a packed value; size < 0: no whole one is left.
func (e *element) consume(b []byte) (bits uint64, size int) {
	switch e.wire {
	case protowire.Fixed32Type:
		v, size := protowire.ConsumeFixed32(b)
		return uint64(v), size
	case protowire.Fixed64Type:
		return protowire.ConsumeFixed64(b)
	}
	return protowire.ConsumeVarint(b)
}
