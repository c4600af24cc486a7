// Package tqline reads one line of a verl log that uses TransferQueue: [TQ-TRACE], [TQ-DETAIL] and [TQ-LOG] records and their neighbours (formats: verl
// utils/transferqueue_utils.py @c55ddc26 and @89c88d49, TransferQueue @b75d570d), without allocating.
package tqline

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"

	"github.com/trainbridge/trainbridge/internal/decimal"
)

// Stage is the event that a record reports.
type Stage uint8

// The stages. The stages of a function are in their order of time.
const (
	FunctionStart Stage = iota
	GetStart
	GetEnd
	ComputeStart
	ComputeEnd
	PutStart
	PutEnd
	FunctionEnd
	ClientStart
	ClientEnd
)

// Op is the kind of a client operation.
type Op uint8

// The client operations.
const (
	OpGet Op = iota
	OpPut
	OpGetMeta
	OpClear
)

// MaxFields bounds the unknown fields of a line.
const MaxFields = 8

// Field is an unknown field, or one with an unreadable value.
type Field struct{ Name, Value []byte }

// Line is one record. Slices point into the parsed line. Absent fields are zero, unless a comment says otherwise.
type Line struct {
	Stage Stage
	Op    Op   // of ClientStart and ClientEnd
	Log   bool // a [TQ-LOG] record

	TraceID, Func []byte // original text
	PID           int64

	Duration  int64  // ns; of END stages
	Timestamp int64  // ns; perf_counter, or Unix time in some forks
	RawTime   []byte // Timestamp as printed; nil: the record has none

	BatchSize  int64   // samples; −1: absent
	DataSize   int64   // bytes; −1: absent
	Throughput float64 // By/s as reported; −1: absent
	// Shares as reported, 0..1 (and beyond, if the log says so); −1: absent.
	GetRatio, ComputeRatio, PutRatio float64

	Fields [MaxFields]Field
	N      int // of Fields
}

// The errors of Parse. Reason names them for counters.
var (
	ErrNoStage      = errors.New("no stage= field")
	ErrUnknownStage = errors.New("unknown stage")
	ErrUnknownOp    = errors.New("unknown op")
	ErrNoFunc       = errors.New("no func= field")
	ErrNoDuration   = errors.New("END without duration")
	ErrBadDuration  = errors.New("unreadable duration")
	ErrBadTimestamp = errors.New("unreadable timestamp")
	ErrUnknownTag   = errors.New("unknown [TQ-…] tag")
)

// Reason returns the constant for counting a line refused with err.
func Reason(err error) string {
	switch {
	case errors.Is(err, ErrNoStage):
		return "no_stage"
	case errors.Is(err, ErrUnknownStage):
		return "unknown_stage"
	case errors.Is(err, ErrUnknownOp):
		return "unknown_op"
	case errors.Is(err, ErrNoFunc):
		return "no_func"
	case errors.Is(err, ErrNoDuration):
		return "no_duration"
	case errors.Is(err, ErrBadDuration):
		return "bad_duration"
	case errors.Is(err, ErrBadTimestamp):
		return "bad_timestamp"
	case errors.Is(err, ErrUnknownTag):
		return "unknown_tag"
	}
	return "bad_record"
}

var (
	tagTrace  = []byte("[TQ-TRACE]")
	tagDetail = []byte("[TQ-DETAIL]")
	tagLog    = []byte("[TQ-LOG]")
)

// Find returns the position of the first "[TQ-" in a line, −1 without one: progress bars glue text before the tag.
func Find(b []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], '[')
		if i < 0 {
			return -1
		}
		from += i
		if len(b)-from >= 4 && b[from+1] == 'T' && b[from+2] == 'Q' && b[from+3] == '-' {
			return from
		}
		from++
	}
}

// Parse reads the record at the beginning of b (see Find). Fields may stand in any order. A field with an unreadable value is kept as unknown, unless the
// record is worthless without the field: then the error names it.
func Parse(b []byte, l *Line) error {
	rest, detail := b, false
	l.Log = false
	switch {
	case bytes.HasPrefix(b, tagTrace):
		rest = b[len(tagTrace):]
	case bytes.HasPrefix(b, tagDetail):
		rest, detail = b[len(tagDetail):], true
	case bytes.HasPrefix(b, tagLog):
		rest, l.Log = b[len(tagLog):], true
	default:
		return ErrUnknownTag
	}
	l.TraceID, l.Func, l.RawTime, l.PID, l.N = nil, nil, nil, 0, 0
	l.Duration, l.Timestamp, l.BatchSize, l.DataSize = 0, 0, -1, -1
	l.Throughput, l.GetRatio, l.ComputeRatio, l.PutRatio = -1, -1, -1, -1

	var stage, op, duration []byte
	for len(rest) > 0 { // "name=value" up to the next "|"
		if c := rest[0]; c == ' ' || c == '|' {
			rest = rest[1:]
			continue
		}
		name, n := key(rest) // no name holds a '|'
		end := n + indexPipe(rest[n:])
		field := rest[:end]
		rest = rest[min(end+1, len(rest)):]
		for len(field) > 0 && field[len(field)-1] <= ' ' { // blanks and control characters
			field = field[:len(field)-1]
		}
		if len(field) == 0 {
			continue
		}
		value := field[n:]
		ok := true
		switch name {
		case keyTraceID:
			l.TraceID = value
		case keyFunc:
			l.Func = value
		case keyStage:
			stage = value
		case keyOp:
			op = value
		case keyDuration:
			duration = value
		case keyTimestamp:
			l.RawTime = value
		case keyPID:
			l.PID, ok = integer(value)
		case keyBatchSize:
			l.BatchSize, ok = batchSize(value)
		case keyDataSize:
			l.DataSize, ok = mebibytes(value)
		case keyThroughput:
			l.Throughput, ok = number(value, 1<<20)
		case keyGetRatio:
			l.GetRatio, ok = parsePercent(value)
		case keyComputeRatio:
			l.ComputeRatio, ok = parsePercent(value)
		case keyPutRatio:
			l.PutRatio, ok = parsePercent(value)
		default:
			ok = false
		}
		if !ok {
			l.unknown(field)
		}
	}
	return l.finish(stage, op, duration, detail)
}

type keyID uint8

const (
	keyUnknown keyID = iota
	keyTraceID
	keyFunc
	keyStage
	keyOp
	keyDuration
	keyTimestamp
	keyPID
	keyBatchSize
	keyDataSize
	keyThroughput
	keyGetRatio
	keyComputeRatio
	keyPutRatio
)

// key returns the known name at the beginning of b (not empty) and its length with the "="; keyUnknown and 0: none. Comparing with the few names of the same
// first letter is cheaper than looking for the "=", and constants of known length are cheaper than a helper function.
func key(b []byte) (keyID, int) {
	n := len(b)
	switch b[0] {
	case 't':
		switch {
		case n >= 9 && string(b[:9]) == "trace_id=":
			return keyTraceID, 9
		case n >= 10 && string(b[:10]) == "timestamp=":
			return keyTimestamp, 10
		case n >= 15 && string(b[:15]) == "total_duration=":
			return keyDuration, 15
		case n >= 16 && string(b[:16]) == "throughput_mbps=":
			return keyThroughput, 16
		}
	case 'f':
		if n >= 5 && string(b[:5]) == "func=" {
			return keyFunc, 5
		}
	case 's':
		if n >= 6 && string(b[:6]) == "stage=" {
			return keyStage, 6
		}
	case 'd':
		switch {
		case n >= 9 && string(b[:9]) == "duration=":
			return keyDuration, 9
		case n >= 13 && string(b[:13]) == "data_size_mb=":
			return keyDataSize, 13
		}
	case 'b':
		if n >= 11 && string(b[:11]) == "batch_size=" {
			return keyBatchSize, 11
		}
	case 'p':
		switch {
		case n >= 4 && string(b[:4]) == "pid=":
			return keyPID, 4
		case n >= 10 && string(b[:10]) == "put_ratio=":
			return keyPutRatio, 10
		}
	case 'g':
		if n >= 10 && string(b[:10]) == "get_ratio=" {
			return keyGetRatio, 10
		}
	case 'c':
		if n >= 14 && string(b[:14]) == "compute_ratio=" {
			return keyComputeRatio, 14
		}
	case 'o':
		if n >= 3 && string(b[:3]) == "op=" {
			return keyOp, 3
		}
	}
	return keyUnknown, 0
}

// indexPipe returns the index of the first '|', or len(b). Values are short: eight bytes at a time in line are cheaper than a call.
func indexPipe(b []byte) int {
	// (x − ones) &^ x & highs has the highest bit of the first zero byte of x set, and none in the bytes before.
	const ones, highs, pipes = 0x0101010101010101, 0x8080808080808080, '|' * 0x0101010101010101
	i := 0
	for ; len(b)-i >= 8; i += 8 {
		x := binary.LittleEndian.Uint64(b[i:]) ^ pipes // a zero byte is a '|'
		x = (x - ones) &^ x & highs
		if x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for ; i < len(b) && b[i] != '|'; i++ {
	}
	return i
}

// unknown keeps a field as printed. A field without "=" has no name.
func (l *Line) unknown(field []byte) {
	f := Field{Value: field}
	if i := bytes.IndexByte(field, '='); i >= 0 {
		f = Field{field[:i], field[i+1:]}
	}
	l.keep(f)
}

// keep appends an unknown field to the line's fields, up to MaxFields.
func (l *Line) keep(f Field) {
	if l.N < MaxFields {
		l.Fields[l.N] = f
		l.N++
	}
}

// finish sets the fields that need others, from their texts, and checks that the record has all required ones: the stage, the function (except in a
// [TQ-DETAIL]), and the duration of an END. The duration of a START is kept as an unknown field.
func (l *Line) finish(stage, op, duration []byte, detail bool) error {
	if len(stage) == 0 {
		return ErrNoStage
	}
	if err := l.setStage(stage, op, detail); err != nil {
		return err
	}
	if len(l.Func) == 0 && !detail {
		return ErrNoFunc
	}
	if l.RawTime != nil {
		t, err := decimal.Nanos(l.RawTime)
		if err != nil || t < 0 {
			return ErrBadTimestamp
		}
		l.Timestamp = t
	}
	switch l.Stage {
	case GetEnd, ComputeEnd, PutEnd, FunctionEnd, ClientEnd:
		if len(duration) == 0 {
			return ErrNoDuration
		}
		d, err := decimal.Nanos(duration)
		// A duration of a century is a broken number, and would overflow in computations.
		if err != nil || d < 0 || d > 3e18 {
			return ErrBadDuration
		}
		l.Duration = d
	default:
		if duration != nil {
			l.keep(Field{[]byte("duration"), duration})
		}
	}
	return nil
}

// setStage sets Stage and Op. The words depend on the tag: [TQ-LOG] has an op and START or END, [TQ-DETAIL] both in one word, and [TQ-TRACE] the stages of a
// function.
func (l *Line) setStage(stage, op []byte, detail bool) error {
	if l.Log {
		switch string(op) {
		case "TQ_GET":
			l.Op = OpGet
		case "TQ_PUT":
			l.Op = OpPut
		case "TQ_GET_META":
			l.Op = OpGetMeta
		case "TQ_CLEAR":
			l.Op = OpClear
		default:
			return ErrUnknownOp
		}
		switch string(stage) {
		case "START":
			l.Stage = ClientStart
		case "END":
			l.Stage = ClientEnd
		default:
			return ErrUnknownStage
		}
		return nil
	}
	if detail {
		switch string(stage) {
		case "TQ_CLIENT_GET_START":
			l.Stage, l.Op = ClientStart, OpGet
		case "TQ_CLIENT_GET_END":
			l.Stage, l.Op = ClientEnd, OpGet
		case "TQ_CLIENT_PUT_START":
			l.Stage, l.Op = ClientStart, OpPut
		case "TQ_CLIENT_PUT_END":
			l.Stage, l.Op = ClientEnd, OpPut
		default:
			return ErrUnknownStage
		}
		return nil
	}
	switch string(stage) {
	case "FUNCTION_START":
		l.Stage = FunctionStart
	case "GET_START":
		l.Stage = GetStart
	case "GET_END":
		l.Stage = GetEnd
	case "COMPUTE_START":
		l.Stage = ComputeStart
	case "COMPUTE_END":
		l.Stage = ComputeEnd
	case "PUT_START":
		l.Stage = PutStart
	case "PUT_END":
		l.Stage = PutEnd
	case "FUNCTION_END":
		l.Stage = FunctionEnd
	default:
		return ErrUnknownStage
	}
	return nil
}

// integer reads a number ≥ 0 of at most 18 digits. false: unreadable.
func integer(b []byte) (int64, bool) {
	v, n := decimal.Integer(b, 18)
	return v, n > 0 && n == len(b)
}

// batchSize reads "32" and "torch.Size([32, 8])"; the first dimension is the number of samples. −1 and false: unreadable.
func batchSize(b []byte) (int64, bool) {
	if rest, ok := bytes.CutPrefix(b, []byte("torch.Size([")); ok {
		n := bytes.IndexAny(rest, ",]")
		if n < 0 {
			return -1, false
		}
		b = rest[:n]
	}
	if v, ok := integer(b); ok {
		return v, true
	}
	return -1, false
}

// mebibytes reads a size in MiB as bytes, to the nearest, in 128-bit integers: a float64 would lose digits. −1 and false: unreadable, or beyond
// 64 bits.
func mebibytes(b []byte) (int64, bool) {
	v, err := decimal.Fixed9(b)
	if err != nil || v < 0 {
		return -1, false
	}
	hi, lo := bits.Mul64(uint64(v), 1<<20) // v is in 1e-9 MiB
	lo, carry := bits.Add64(lo, 5e8, 0)    // for rounding
	hi += carry
	if hi >= 1e9 { // the quotient does not fit
		return -1, false
	}
	q, _ := bits.Div64(hi, lo, 1e9)
	if q > math.MaxInt64 {
		return -1, false
	}
	return int64(q), true
}

// number reads a number ≥ 0 and multiplies it. −1 and false: unreadable.
func number(b []byte, by float64) (float64, bool) {
	v, err := decimal.Fixed9(b)
	if err != nil || v < 0 {
		return -1, false
	}
	return float64(v) / 1e9 * by, true
}

// parsePercent reads "5.69%" as 0.0569. −1 and false: unreadable. One division of two exact numbers gives the closest float.
func parsePercent(b []byte) (float64, bool) {
	b, ok := bytes.CutSuffix(b, []byte("%"))
	if !ok {
		return -1, false
	}
	v, err := decimal.Fixed9(b)
	if err != nil || v < 0 {
		return -1, false
	}
	return float64(v) / 1e11, true
}
