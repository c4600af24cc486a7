package profiler

import (
	"bytes"
	"encoding/binary"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// Why a line is no record.
const (
	reasonBlank     = "blank"
	reasonBracket   = "bracket"
	reasonControl   = "proxy_control" // of the proxy thread itself
	reasonUnmatched = "unmatched_end"
	reasonPhase     = "phase" // an event of another kind, by another writer
	reasonNotJSON   = "not_json"
	reasonField     = "field" // an event without category or id
)

// Bounds of a unit: the lines that become one record. Beyond splitLines a unit ends with the current operation, beyond the other bounds at once.
const (
	splitLines = 20_000
	maxLines   = 100_000
	maxBytes   = 16 << 20
)

// maxGPUs bounds the clocks of GPUs in a trace.
const maxGPUs = 64

// Parser reads one trace. A record is a unit: the plugin's output of one time, from the first outermost event to its end, usually a group; the record has an
// operation per COLL, P2P and CE_COLL, or none. Not safe for concurrent use.
type Parser struct {
	origin origin
	event  event // of the current line

	// The current unit.
	open   bool      // a unit has begun
	stack  []frame   // the open events, outermost first
	ops    []pending // the operations so far
	lines  int
	room   int    // bytes of details
	text   []byte // memory of the texts of ops
	stream int64  // of the current API call

	// The clock of the trace (package comment: Times).
	anchored bool
	anchor   int64 // Unix ns of ts 0
	gpus     []device
}

// device is the clock of a GPU: of a rank of a communicator.
type device struct {
	comm   uint64
	rank   int32
	offset int64 // time of the clock at ts 0, ns
}

// New makes a parser of the trace in file.
func New(file string) *Parser { return &Parser{origin: originOf(file), stream: op.Unknown} }

// Sniff reports whether a line is an event of the example profiler's trace.
func Sniff(text []byte) bool {
	var e event
	return e.scan(bytes.TrimSpace(text)) && (e.phase == 'b' || e.phase == 'e') && categoryOf(e.cat) != other
}

// Line implements parse.Parser. A line begins or ends an event. The line is open until the outermost event of its unit has ended, or the unit reaches a bound
// (splitLines, maxLines, maxBytes): then all operations of the unit so far are in out.
func (p *Parser) Line(text []byte, _ bool, _ uint64, out *parse.Out) (parse.Verdict, string) {
	text = bytes.TrimSpace(text)
	switch string(text) {
	case "":
		return parse.Ignored, reasonBlank
	case "[":
		v, reason := p.bracket(out)
		p.anchored, p.anchor, p.gpus = false, 0, p.gpus[:0] // the trace of another process
		return v, reason
	case "{}]", "{}", "]":
		return p.bracket(out)
	}
	e := &p.event
	if !e.scan(text) {
		return parse.Rejected, reasonNotJSON
	}
	if len(e.cat) == 0 || e.id < 0 {
		return parse.Rejected, reasonField
	}
	c := categoryOf(e.cat)
	if c == proxy && isControl(e.name) {
		return parse.Ignored, reasonControl
	}
	switch e.phase {
	case 'b':
		p.begin(c)
	case 'e':
		n := p.find(c)
		if n < 0 {
			return parse.Ignored, reasonUnmatched
		}
		p.end(n)
	default:
		return parse.Ignored, reasonPhase
	}
	p.lines++
	switch {
	case len(p.stack) == 0, p.lines >= maxLines, p.room+len(p.text) >= maxBytes:
		p.endUnit(out)
	case p.lines >= splitLines && e.phase == 'e' && c.isOperation(): // the end of an operation: the operations so far leave
		p.emit(out)
	default:
		out.Open = true
	}
	return parse.Record, ""
}

// bracket ends a unit without an end; any other bracket is ignored.
func (p *Parser) bracket(out *parse.Out) (parse.Verdict, string) {
	if !p.open {
		return parse.Ignored, reasonBracket
	}
	p.endUnit(out)
	return parse.Record, ""
}

// End implements parse.Parser: the operations of the open unit are output as they are.
func (p *Parser) End(out *parse.Out) {
	if p.open {
		p.endUnit(out)
	}
}

// Save implements parse.Parser: the clocks are saved, so that a restart does not change the times of later lines.
func (p *Parser) Save() []byte {
	if !p.anchored {
		return nil
	}
	b := binary.AppendVarint(nil, p.anchor)
	for _, d := range p.gpus {
		b = binary.AppendUvarint(b, d.comm)
		b = binary.AppendVarint(b, int64(d.rank))
		b = binary.AppendVarint(b, d.offset)
	}
	return b
}

// Restore implements parse.Parser: the anchor, and the clocks up to the first unreadable one.
func (p *Parser) Restore(state []byte) {
	c := wire.Cursor{Rest: state}
	anchor := c.Varint()
	if c.Bad {
		return
	}
	p.anchored, p.anchor, p.gpus = true, anchor, p.gpus[:0]
	for len(c.Rest) > 0 && len(p.gpus) < maxGPUs {
		d := device{c.Uvarint(), int32(c.Varint()), c.Varint()}
		if c.Bad {
			return
		}
		p.gpus = append(p.gpus, d)
	}
}
