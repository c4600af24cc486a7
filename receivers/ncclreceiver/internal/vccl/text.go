package vccl

import (
	"bytes"
	"math"
	"time"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// TextParser reads the oldest form: "%s: Group:%lu, from rank %d to rank %d, channel_id:%d, func:%u,FuncTimes:%lld, ip->ip send %d Bytes used %lld nsec,
// devIndex:%d, sendWrCounter:%d", a line per send. Lines become operations in sends; here lines have bytes and the duration of the send (from post to
// completion, so sends in flight together overlap), and a local stamp in seconds of about its end. LinkBandwidth is the bytes of all sends by the time of all.
// Not safe for concurrent use.
type TextParser struct {
	sends
	stamps *clock.Stamps
}

// NewText reads the file at a path, with stamps in the zone loc.
func NewText(file string, loc *time.Location) *TextParser {
	return &TextParser{sends{host: hostOf(file)}, clock.NewStamps(loc)}
}

// Line implements parse.Parser: a line is open until its operation leaves (sends.add).
func (p *TextParser) Line(text []byte, _ bool, _ uint64, out *parse.Out) (parse.Verdict, string) {
	b := trim(text)
	if len(b) == 0 {
		return parse.Ignored, ignoredBlank
	}
	r := row{bandwidth: -1}
	if reason := p.row(b, &r); reason != "" {
		return parse.Rejected, reason
	}
	p.add(&r, out)
	return parse.Record, ""
}

// between are the texts between the numbers of a line.
var between = [...]string{
	": Group:", ", from rank ", " to rank ", ", channel_id:", ", func:", ",FuncTimes:", ", ",
	" send ", " Bytes used ", " nsec, devIndex:", ", sendWrCounter:",
}

// row reads a line into r: the time, then text and number in turns (between). Numbers without a field in r are only checked. The reason is "" for a send.
func (p *TextParser) row(b []byte, r *row) (reason string) {
	if !digits14(b, ':') {
		return reasonNotARow
	}
	at, ok := compactStamp(p.stamps, b)
	if !ok {
		return reasonNumber
	}
	r.at = at
	fit := true // all ranks, the channel and the device so far are in range
	i := 14     // after the time
	for column, text := range between {
		if len(b)-i < len(text) || string(b[i:i+len(text)]) != text {
			return reasonNotARow
		}
		i += len(text)
		var v int64
		end := i
		switch column {
		case 0:
			r.group, end = decimal.Unsigned(b, i)
		case 4:
			r.function, end = decimal.Unsigned(b, i)
		case 5:
			r.times, end = decimal.Unsigned(b, i)
		case 6: // the addresses; without a blank after them end stays at i: no row
			end += max(0, bytes.IndexByte(b[i:], ' '))
		default:
			v, end = signed(b, i)
		}
		if end == i {
			return reasonNumber
		}
		switch column {
		case 1:
			r.from, fit = rank(v, fit)
		case 2:
			r.to, fit = rank(v, fit)
		case 3:
			r.channel, fit = rank(v, fit)
		case 7: // %d of an unsigned size: negative beyond 2 GiB
			r.bytes = v
		case 8:
			r.ns = v
		case 9:
			r.dev, fit = rank(v, fit)
		}
		i = end
	}
	if i < len(b) {
		return reasonNotARow
	}
	switch {
	case !fit || r.bytes > math.MaxInt32 || r.ns > maxSend:
		return reasonNumber
	case r.bytes < 0 || r.ns < 0:
		return reasonNegative
	}
	return ""
}

// maxSend bounds the duration of a send, ns: an hour. Sums stay within int64.
const maxSend = 3600e9
