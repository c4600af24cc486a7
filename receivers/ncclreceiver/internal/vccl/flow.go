package vccl

import (
	"bytes"
	"math"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// flowHeader is the header of FlowParser's files.
const flowHeader = "Time,Group,FromRank,ToRank,DevIndex,Func,FuncTimes,SrcIP,DstIP,Bandwidth,SendWrCounter,RemainWrDataSize,Timestamp"

// FlowParser reads VCCL's CSV with 13 columns, written with NCCL_TELEMETRY_OBSERVE=1 and by v0.3.x always (timer_log.cc): a row per send between nodes, after
// enough sends (TELEMETRY_WINDOWSIZE) of the same operation. Rows become operations in sends. Not safe for concurrent use.
//
// Time is local and in whole seconds, so Timestamp is used, the end of the send by CLOCK_REALTIME. So Start is the end of the first send, not its beginning.
// FromRank is the rank in the communicator with the hash Group. A bandwidth below 0 means none (for simultaneous sends the writer divides by 0).
type FlowParser struct{ sends }

// NewFlow returns a parser of the file at a path.
func NewFlow(file string) *FlowParser { return &FlowParser{sends{host: hostOf(file)}} }

// Line implements parse.Parser: a row is open until its operation leaves (sends.add).
func (p *FlowParser) Line(text []byte, _ bool, _ uint64, out *parse.Out) (parse.Verdict, string) {
	b := trim(text)
	switch {
	case len(b) == 0:
		return parse.Ignored, ignoredBlank
	case !ascii.IsDigit(b[0]):
		if string(b) == flowHeader {
			return parse.Ignored, ignoredHeader
		}
		return parse.Rejected, reasonNotARow
	}
	var r row
	if reason := flowRow(b, &r); reason != "" {
		return parse.Rejected, reason
	}
	p.add(&r, out)
	return parse.Record, ""
}

// flowRow reads a row of the columns of flowHeader, printed as "%s,%lu,%d,%d,%d,%u,%lld,%d.%d.%d.%d,%d.%d.%d.%d,%d,%d,%d,%lld". The reason is "" for a row;
// columns without a field in r are only checked.
func flowRow(b []byte, r *row) (reason string) {
	if !digits14(b, ',') {
		return reasonNotARow
	}
	i := 15 // after Time
	ok := true
	for column := 1; column < 13; column++ {
		var v int64
		end := i
		switch column {
		case 1:
			r.group, end = decimal.Unsigned(b, i)
		case 5:
			r.function, end = decimal.Unsigned(b, i)
		case 6:
			r.times, end = decimal.Unsigned(b, i)
		case 7, 8: // the addresses
			if end += bytes.IndexByte(b[i:], ','); end < i {
				return reasonColumnCount
			}
		default:
			v, end = signed(b, i)
		}
		last := column == 12
		switch {
		case end == len(b) && !last:
			return reasonColumnCount
		case end == i:
			return reasonNumber
		case last && end < len(b):
			return reasonColumnCount
		case !last && b[end] != ',':
			return reasonNumber
		}
		switch column {
		case 2:
			r.from, ok = rank(v, ok)
		case 3:
			r.to, ok = rank(v, ok)
		case 4:
			r.dev, ok = rank(v, ok)
		case 9:
			r.bandwidth = v
		case 12:
			r.at = v
		}
		i = end + 1
	}
	if !ok || r.at <= 0 || r.bandwidth > math.MaxInt32 {
		return reasonNumber
	}
	return ""
}

// rank turns a number into a rank, −1 for none. The result ok is false if n is no rank, or if the argument ok is: false stays false from column to column.
func rank(n int64, ok bool) (int32, bool) {
	return int32(n), ok && n >= op.Unknown && n <= math.MaxInt32
}
