package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The errors other than CodeError, wrapped with the offset of the opcode, if one is at fault.
var (
	// ErrTruncated is a pickle that ends before STOP, or with a number in text of more than maxDigits bytes.
	ErrTruncated = errors.New("the pickle ends too early")
	// ErrDense is a pickle beyond the bounds of a Decoder: the memory for values, maxDepth or mostData.
	ErrDense = errors.New("the pickle's values take more than twice the file")
	// ErrMalformed is a pickle that no Python could load, of another protocol, or with an opcode that is not read here.
	ErrMalformed = errors.New("the pickle is malformed")
)

const (
	spare    = 1 << 20 // B beyond twice the size of the pickle
	mostData = 1 << 30 // B; positions have 31 bits
	wordSize = 4       // B
	maxDepth = 1 << 10 // open marks
	memoGap  = 1 << 10 // numbers of the memo that a writer may leave out

	leastProtocol, mostProtocol = 2, 5
)

// Value is a value of the pickle last decoded. The zero Value is the pickle's first byte, decoded as None.
type Value uint32

// A Value with this bit is a container: the rest is the index of its header of two words: kind and length, and the start of its items.
const container = 1 << 31

const (
	kindDict  = 1 << 30 // in a header; the length counts keys and values
	kindTuple = 1 << 29
	moved     = 1 << 28 // the items were moved: their room is the next power of two
	lengths   = moved - 1
)

// Decoder decodes pickles, one at a time, and keeps its buffer for the next. The zero Decoder is ready. Not safe for concurrent use.
type Decoder struct {
	data   []byte
	buffer []uint32 // containers and the memo grow from its beginning, the stack from its end

	used    int   // words of containers and the memo
	stack   int   // index of the top of the stack; len(buffer): empty
	marks   []int // for each open MARK the number of values below
	memo    int   // index in buffer of the memo …
	memoMax int   // … which has room for this number of values
	memos   int   // values of the memo, and gaps
	pos     int   // of the current opcode
	next    int   // behind the opcode's argument
}

// Decode decodes a pickle. Bytes behind STOP are ignored, as in Python's pickle.load. The Value and all its content are valid until the next Decode, and as
// long as data is unchanged. The error is a *CodeError, ErrTruncated, ErrDense or ErrMalformed.
func (d *Decoder) Decode(data []byte) (Value, error) {
	if len(data) > mostData {
		return 0, ErrDense
	}
	words := (2*len(data) + spare) / wordSize
	if cap(d.buffer) < words {
		d.buffer = make([]uint32, words)
	}
	*d = Decoder{data: data, buffer: d.buffer[:words], stack: words, marks: d.marks[:0]}
	if len(data) < 2 {
		return 0, ErrTruncated
	}
	if data[0] != opProto || data[1] < leastProtocol || data[1] > mostProtocol {
		return 0, fmt.Errorf("%w: no protocol of 2 to 5 at its beginning", ErrMalformed)
	}
	for d.next < len(data) {
		d.pos = d.next
		op := data[d.pos]
		d.next++
		if op == opStop {
			if len(d.marks) > 0 || d.height() != 1 { // more or less than one value is left
				return 0, d.fail(ErrMalformed)
			}
			return d.pop(), nil
		}
		if err := d.step(op); err != nil {
			return 0, d.fail(err)
		}
	}
	return 0, ErrTruncated
}

// fail adds the offset of the current opcode to an error.
func (d *Decoder) fail(err error) error {
	if _, ok := errors.AsType[*CodeError](err); ok {
		return err
	}
	return fmt.Errorf("%w (byte %d)", err, d.pos)
}

// step executes an opcode, the one at d.pos, and moves d.next behind its argument. Scalars are pushed as their position; opcodes that would run code are
// errors.
func (d *Decoder) step(op byte) error {
	switch op {
	case opProto:
		return d.skip(1)
	case opFrame: // a hint for readers of a stream
		return d.skip(8)
	case opMark:
		if len(d.marks) == maxDepth {
			return ErrDense
		}
		d.marks = append(d.marks, len(d.buffer)-d.stack)
		return nil
	case opNone, opNewTrue, opNewFalse:
		return d.push(Value(d.pos))
	case opBinInt1, opBinInt2, opBinInt, opBinFloat, opLong1, opLong4, opInt, opLong, opFloat, opBinUnicode, opShortBinUnicode, opBinUnicode8, opBinString,
		opShortBinString, opBinBytes, opShortBinBytes, opBinBytes8:
		if _, err := d.argument(); err != nil {
			return err
		}
		return d.push(Value(d.pos))
	case opEmptyDict, opEmptyList, opEmptyTuple, opDict, opList, opTuple, opTuple1, opTuple2, opTuple3:
		return d.create(op)
	case opAppend, opAppends, opSetItem, opSetItems:
		return d.fill(op)
	case opPop, opPopMark, opDup:
		return d.shuffle(op)
	case opBinPut, opLongBinPut, opMemoize, opBinGet, opLongBinGet:
		return d.remember(op)
	}
	if r, ok := refused[op]; ok {
		if r.code {
			return &CodeError{Opcode: r.name, Offset: d.pos}
		}
		return fmt.Errorf("%w: %s is not read", ErrMalformed, r.name)
	}
	return fmt.Errorf("%w: no opcode 0x%02x", ErrMalformed, op)
}

// skip moves behind an argument of n bytes.
func (d *Decoder) skip(n int) error {
	if n > len(d.data)-d.next {
		return ErrTruncated
	}
	d.next += n
	return nil
}

// argument returns the bytes of the scalar at d.pos, and moves behind them.
func (d *Decoder) argument() ([]byte, error) {
	b, end := argumentAt(d.data, d.pos)
	if end < 0 {
		return nil, ErrTruncated
	}
	d.next = end
	return b, nil
}

// argumentAt returns the bytes of the scalar with its opcode at pos, without their length, and their end; -1: beyond the file, or a number in text of more than
// maxDigits bytes.
func argumentAt(data []byte, pos int) (b []byte, end int) {
	rest := data[pos+1:]
	n, prefix := 0, 0 // bytes of the argument, and of the length before
	switch data[pos] {
	case opBinInt1:
		n = 1
	case opBinInt2:
		n = 2
	case opBinInt:
		n = 4
	case opBinFloat:
		n = 8
	case opInt, opLong, opFloat: // text, up to a newline
		n = bytes.IndexByte(rest, '\n')
		if n < 0 || n > maxDigits {
			return nil, -1
		}
		return rest[:n], pos + n + 2
	case opLong1, opShortBinUnicode, opShortBinString, opShortBinBytes:
		prefix = 1
	case opLong4, opBinUnicode, opBinString, opBinBytes:
		prefix = 4
	case opBinUnicode8, opBinBytes8:
		prefix = 8
	default: // no argument
		return nil, pos + 1
	}
	if prefix > 0 {
		if len(rest) < prefix {
			return nil, -1
		}
		switch prefix {
		case 1:
			n = int(rest[0])
		case 4:
			n = int(binary.LittleEndian.Uint32(rest))
		default:
			n = int(min(binary.LittleEndian.Uint64(rest), math.MaxInt32))
		}
		rest = rest[prefix:]
	}
	if n > len(rest) {
		return nil, -1
	}
	return rest[:n], pos + 1 + prefix + n
}

// maxDigits bounds a number written as text: a longer one is not of PyTorch.
const maxDigits = 64

// height is the number of values above the last mark.
func (d *Decoder) height() int { return len(d.buffer) - d.stack - d.floor() }

// floor is the number of values below the last mark.
func (d *Decoder) floor() int {
	if n := len(d.marks); n > 0 {
		return d.marks[n-1]
	}
	return 0
}

// push puts a value on the stack, which grows towards the containers.
func (d *Decoder) push(v Value) error {
	if d.stack == d.used {
		return ErrDense
	}
	d.stack--
	d.buffer[d.stack] = uint32(v)
	return nil
}

// pop takes the top of the stack, which must exist.
func (d *Decoder) pop() Value {
	v := Value(d.buffer[d.stack])
	d.stack++
	return v
}

// room takes n words of the buffer for a container or the memo, from index at on.
func (d *Decoder) room(n int) (at int, err error) {
	if n > d.stack-d.used {
		return 0, ErrDense
	}
	at = d.used
	d.used += n
	return at, nil
}

// create makes a container and pushes it: empty, of the values above the last mark (DICT, LIST, TUPLE), or of the top one to three values (TUPLE1 …).
func (d *Decoder) create(op byte) error {
	kind, n := uint32(0), 0 // neither kind: a list; n is the number of values taken from the stack
	switch op {
	case opEmptyDict, opDict:
		kind = kindDict
	case opEmptyTuple, opTuple, opTuple1, opTuple2, opTuple3:
		kind = kindTuple
	}
	switch op {
	case opDict, opList, opTuple:
		if len(d.marks) == 0 {
			return ErrMalformed
		}
		n = d.height()
		d.marks = d.marks[:len(d.marks)-1]
	case opTuple1, opTuple2, opTuple3:
		n = int(op) - opTuple1 + 1
		if n > d.height() {
			return ErrMalformed
		}
	}
	if kind == kindDict && n%2 != 0 {
		return ErrMalformed
	}
	at, err := d.room(2)
	if err != nil {
		return err
	}
	d.buffer[at], d.buffer[at+1] = kind, uint32(d.used)
	if err := d.add(at, n); err != nil {
		return err
	}
	return d.push(container | Value(at))
}

// fill adds the top of the stack (APPEND), the top two values (SETITEM) or all above the last mark to the list or dictionary below them.
func (d *Decoder) fill(op byte) error {
	kind, n := uint32(0), 0
	if op == opSetItem || op == opSetItems {
		kind = kindDict
	}
	switch op {
	case opAppend:
		n = 1
	case opSetItem:
		n = 2
	default:
		if len(d.marks) == 0 {
			return ErrMalformed
		}
		n = d.height()
		d.marks = d.marks[:len(d.marks)-1]
	}
	if d.height() <= n || kind == kindDict && n%2 != 0 {
		return ErrMalformed
	}
	to := d.buffer[d.stack+n] // the Value below
	if to&container == 0 {
		return ErrMalformed
	}
	at := int(to &^ container)                     // its header
	if d.buffer[at]&(kindDict|kindTuple) != kind { // a list has neither bit
		return ErrMalformed
	}
	return d.add(at, n)
}

// add moves n values from the stack into the container with its header at at, in the order of their pushes. A container whose items cannot grow in place moves
// to room of the next power of two: all its moves together copy at most twice as many items as it has in the end.
func (d *Decoder) add(at, n int) error {
	if n == 0 {
		return nil
	}
	header, from := d.buffer[at], int(d.buffer[at+1])
	have := int(header & lengths)
	if have+n > lengths {
		return ErrDense
	}
	switch {
	case header&moved != 0 && have+n <= powerOfTwo(have): // has the room
	case header&moved == 0 && from+have == d.used: // the last thing in the buffer
		if _, err := d.room(n); err != nil {
			return err
		}
	case have == 0: // all free room is at the end
		to, err := d.room(n)
		if err != nil {
			return err
		}
		from = to
	default:
		to, err := d.room(powerOfTwo(have + n))
		if err != nil {
			return err
		}
		copy(d.buffer[to:], d.buffer[from:from+have])
		from, header = to, header|moved
	}
	for i := range n { // the top of the stack, with the lowest index, was pushed last
		d.buffer[from+have+i] = d.buffer[d.stack+n-1-i]
	}
	d.stack += n
	d.buffer[at], d.buffer[at+1] = header&^lengths|uint32(have+n), uint32(from)
	return nil
}

// powerOfTwo returns the least power of two that is not below n.
func powerOfTwo(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// shuffle executes DUP, POP and POP_MARK: repeats or drops the top of the stack, or drops all above the last mark.
func (d *Decoder) shuffle(op byte) error {
	switch {
	case op == opDup && d.height() > 0:
		return d.push(Value(d.buffer[d.stack]))
	case op == opPop && d.height() > 0:
		d.stack++
	case op != opDup && len(d.marks) > 0: // POP of a mark drops the mark
		d.stack = len(d.buffer) - d.floor()
		d.marks = d.marks[:len(d.marks)-1]
	default:
		return ErrMalformed
	}
	return nil
}

// remember puts the top of the stack into the memo (PUT, MEMOIZE), or pushes a value of the memo (GET). Values of the memo are numbered by the writer, mostly
// without gaps; the memo doubles when full.
func (d *Decoder) remember(op byte) error {
	arg := d.next
	n := 0 // the number in the memo
	switch op {
	case opMemoize:
		n = d.memos
	case opBinPut, opBinGet:
		if err := d.skip(1); err != nil {
			return err
		}
		n = int(d.data[arg])
	default:
		if err := d.skip(4); err != nil {
			return err
		}
		n = int(binary.LittleEndian.Uint32(d.data[arg:]))
	}
	if op == opBinGet || op == opLongBinGet {
		if n >= d.memos || d.buffer[d.memo+n] == gap {
			return ErrMalformed
		}
		return d.push(Value(d.buffer[d.memo+n]))
	}
	if d.height() == 0 || n > d.memos+memoGap {
		return ErrMalformed
	}
	if n >= d.memoMax {
		room := powerOfTwo(max(n+1, 64))
		to, err := d.room(room)
		if err != nil {
			return err
		}
		copy(d.buffer[to:], d.buffer[d.memo:d.memo+d.memos])
		d.memo, d.memoMax = to, room
	}
	for ; d.memos <= n; d.memos++ {
		d.buffer[d.memo+d.memos] = gap
	}
	d.buffer[d.memo+n] = d.buffer[d.stack]
	return nil
}

// gap is a missing number of the memo.
const gap = math.MaxUint32
