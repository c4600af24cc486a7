package inspector

import (
	"bytes"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/internal/jsonlike"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/spans"
)

// The reasons of lines without a record.
const (
	reasonBlank      = "blank"
	reasonPrometheus = "prometheus"     // a line of the plugin's other output: a file for the prometheus receiver
	reasonUnknown    = "unknown_record" // an object without any known record
	reasonNotJSON    = "not_json"
	reasonTruncated  = "truncated" // an unfinished object
	reasonValue      = "value"     // a member of a wrong type, or out of range
	reasonOperation  = "no_operation"
	reasonOrphan     = "orphan" // no marker announced the record: its communicator is unknown
)

// maxText bounds the texts of contexts: the plugin's longest (json.cc).
const maxText = 2048

// Parser reads the lines of one log. Not safe for concurrent use.
type Parser struct {
	recent map[recentKey]op.Kind // collectives read lately, for relate
	next   [len(keys)]uint8      // for each key of keys: which key came after it the last time; 0: none
	last   uint8                 // the key read last
	own    jsonlike.Texts        // texts of the line after resolving escapes, and normalized ids
	out    *parse.Out

	line        line
	op          *op.Op      // the operation being read
	trace       trace       // its times
	kernelEvent kernelEvent // its kernel being read
	record      proxyRecord // the proxy record being read
	step        step        // its step being read

	prefixes prefixes
	contexts table
	head     head
}

// line is the content of the current line.
type line struct {
	context
	hasContext bool               // the line has a context of its own
	hasStats   bool               // the line has "dump_stats"
	stateless  bool               // the version's records do not rely on a marker
	bad        bool               // a value was invalid
	unnamed    bool               // an operation without a name
	dump       int64              // Unix ns; 0: unknown
	prefix     int                // where the metadata end, if nothing but the header was before; else 0
	seen       [numKinds]uint64   // number of records in the line
	announced  [numKinds]uint64   // numbers in "dump_stats": records that follow
	dropped    [len(drops)]uint64 // counters in "dump_stats", or unknown
}

// New returns a parser.
func New() *Parser { return &Parser{} }

var _ parse.Parser = (*Parser)(nil)

// Sniff reports whether the first line of a file is of this format. A truncated line is judged by its beginning.
func Sniff(text []byte) bool {
	i := jsonlike.Blanks(text, 0)
	if i == len(text) || text[i] != '{' {
		return false
	}
	for _, mark := range [...]string{`"coll_perf"`, `"p2p_perf"`, `"proxy_trace"`, `"dump_stats"`, `"inspector_output_format_version"`} {
		if bytes.Contains(text, []byte(mark)) {
			return true
		}
	}
	return false
}

// Line implements parse.Parser. A line is read by its beginning, if known (begun), else member by member. A record without a context of its own gets the
// context of the marker before; a line with "dump_stats" gives samples of its counters, and may be the next marker.
func (p *Parser) Line(text []byte, again bool, tag uint64, out *parse.Out) (parse.Verdict, string) {
	p.begin(out)
	i := jsonlike.Blanks(text, 0)
	if i == len(text) {
		return parse.Ignored, reasonBlank
	}
	if IsPrometheus(text[i:]) {
		return parse.Ignored, reasonPrometheus
	}
	l := &p.line
	end := -1
	if at := p.begun(text); at > 0 {
		end = p.members(text, at, whole)
	} else if text[i] == '{' {
		end = p.object(text, i, whole)
	}
	switch {
	case end < 0 && text[i] == '{' && text[len(text)-1] != '}':
		return p.reject(again, reasonTruncated)
	case end < 0 || jsonlike.Blanks(text, end) < len(text):
		return p.reject(again, reasonNotJSON)
	case l.bad, len(l.Comm) > maxText, len(l.Name) > maxText, len(l.Host) > maxText:
		return p.reject(again, reasonValue)
	case l.unnamed:
		return p.reject(again, reasonOperation)
	}
	if l.prefix > 0 {
		p.learn(text, l.prefix)
	}
	c, dump := &l.context, l.dump
	hasRecords := l.seen != [numKinds]uint64{}
	if !l.hasContext && hasRecords {
		c, dump = p.inherit(again, tag)
		if c == nil {
			out.Reset()
			return parse.Rejected, reasonOrphan
		}
	}
	for n := range out.Ops {
		finish(&out.Ops[n], c, dump)
		if !l.hasContext { // only in the versions with markers do records refer to another
			p.findParent(&out.Ops[n], c)
		}
	}
	if l.hasStats {
		p.samples()
		if !again {
			p.setMarker()
		}
	}
	if len(out.Ops) == 0 && len(out.Samples) == 0 {
		return parse.Ignored, reasonUnknown
	}
	return parse.Record, ""
}

// End has nothing to give up: every record is one line.
func (p *Parser) End(*parse.Out) {}

// begin forgets the line before, and prepares for the next.
func (p *Parser) begin(out *parse.Out) {
	p.own.Reset()
	p.last, p.out = 0, out
	p.line = line{context: context{Rank: op.Unknown}}
}

// reject refuses a line. A broken record that the marker has announced counts as read. Any other line may have been a marker: the old marker no longer holds,
// and records up to the next one have no context. again: the line was counted at its first reading.
func (p *Parser) reject(again bool, reason string) (parse.Verdict, string) {
	p.out.Reset()
	switch {
	case again:
	case !p.line.hasContext && p.line.seen != [numKinds]uint64{}:
		p.take()
	default:
		p.head = head{}
	}
	return parse.Rejected, reason
}

// take counts the records of the line among those that the marker has announced. ok is false if more came than announced: lines are missing.
func (p *Parser) take() (ok bool) {
	ok = true
	for n, seen := range p.line.seen {
		if p.head.left[n] < seen {
			p.head.left[n], ok = 0, false
		} else {
			p.head.left[n] -= seen
		}
	}
	return ok
}

// inherit returns the context, and the time of the dump, of a line without its own: the marker's, or the tag's for a line that is read again. nil: unknown.
func (p *Parser) inherit(again bool, tag uint64) (*context, int64) {
	if again {
		p.out.Tag = tag
		return p.contexts.tagged(tag)
	}
	if !p.take() {
		return nil, 0
	}
	p.out.Tag = tagOf(p.head.Number, p.head.dump)
	return p.head.Context, p.head.dump
}

// setMarker makes the line the marker of the next records, or ends the marker before: a line of a version that needs none.
func (p *Parser) setMarker() {
	l := &p.line
	p.head = head{}
	if !l.stateless && l.hasContext {
		p.head = head{p.contexts.find(&l.context), l.dump, l.announced}
	}
}

// whole reads a member of the outermost object of a line. In the flat form the outermost object has the members of "header" and "metadata" itself.
func (p *Parser) whole(b []byte, i int, n name) int {
	switch n {
	case header:
		p.line.hasContext = true
		return p.object(b, i, headerObject)
	case metadata:
		behindHeader := p.line.hasContext && p.line.seen == [numKinds]uint64{} && !p.line.hasStats
		i = p.object(b, i, metadataObject)
		if behindHeader { // the line begins as lines usually do: learn may remember the beginning up to here
			p.line.prefix = i
		}
		return i
	case collPerf:
		return p.operation(b, i, perfObject, collectives)
	case p2pPerf:
		return p.operation(b, i, perfObject, pointToPoint)
	case proxyTrace:
		p.record = proxyRecord{}
		return p.operation(b, i, proxyObject, proxies)
	case proxyOp:
		p.record = proxyRecord{kind: proxyOpType}
		return p.operation(b, i, proxyObject, proxies)
	case dumpStats:
		p.line.hasStats = true
		for n := range p.line.dropped {
			p.line.dropped[n] = unknown
		}
		return p.object(b, i, statsObject)
	case commID, commName, rank, nRanks, nNodes:
		p.line.hasContext = true
		return p.header(b, i, n)
	}
	return p.metadata(b, i, n)
}

// header reads the value at b[i] of the member n of "header": the communicator and the rank. It returns the end of the value; -1: malformed.
func (p *Parser) header(b []byte, i int, n name) int {
	l := &p.line
	switch n {
	case commID:
		l.Comm, i = p.id(b, i)
	case commName:
		l.Name, i = p.known(b, i)
	case rank:
		l.Rank, i = p.int32(b, i)
	case nRanks:
		l.Size, i = p.int32(b, i)
		l.Size = max(l.Size, 0)
	case nNodes:
		l.Nodes, i = p.int32(b, i)
		l.Nodes = max(l.Nodes, 0)
	default:
		i = skip(b, i)
	}
	return i
}

// metadata reads the value at b[i] of the member n of "metadata": the process, the time of the dump, and the version of the format. It returns the end of the
// value; -1: malformed.
func (p *Parser) metadata(b []byte, i int, n name) int {
	l := &p.line
	switch n {
	case version:
		var v []byte
		v, i = p.text(b, i)
		switch string(v) {
		case "v4.0", "v4.1", "v4.2":
			l.stateless = true
		}
	case dumpTime:
		l.dump, i = p.stamp(b, i)
	case hostname:
		l.Host, i = p.text(b, i)
	case pid:
		l.PID, i = p.int64(b, i)
		l.PID = max(l.PID, 0)
	default:
		i = skip(b, i)
	}
	return i
}

// id reads the id of a communicator, a 64-bit hash, in one spelling: "0x0012AB" and the integer 4779 become "0x12ab", so that the logs of all versions have
// equal ids. A text that is no hexadecimal number stays.
func (p *Parser) id(b []byte, i int) ([]byte, int) {
	if i < len(b) && b[i] != '"' {
		v, i := p.integer(b, i)
		if v == unknown {
			return nil, i
		}
		from := len(p.own)
		p.own = strconv.AppendUint(append(p.own, "0x"...), v, 16)
		return p.own[from:], i
	}
	text, i := p.text(b, i)
	if len(text) < 3 || text[0] != '0' || text[1]|0x20 != 'x' {
		return text, i
	}
	canonical := text[1] == 'x' && (text[2] != '0' || len(text) == 3)
	for _, c := range text[2:] {
		switch {
		case ascii.IsDigit(c) || c >= 'a' && c <= 'f':
		case c >= 'A' && c <= 'F':
			canonical = false
		default:
			return text, i
		}
	}
	if canonical {
		return text, i
	}
	digits := bytes.TrimLeft(text[2:len(text)-1], "0") // without the last digit, which stays even if 0
	from := len(p.own)
	p.own = append(append(p.own, "0x"...), digits...)
	p.own = append(p.own, text[len(text)-1])
	for n := from; n < len(p.own); n++ {
		if p.own[n] <= 'F' && p.own[n] >= 'A' {
			p.own[n] |= 0x20 // the small letter
		}
	}
	return p.own[from:len(p.own):len(p.own)], i
}

// operation reads the object of a record at b[i], as an object of, into a new operation of p.out. An unusable proxy record is taken out again; a record without
// a name marks the line.
func (p *Parser) operation(b []byte, i int, of object, kind int) int {
	if i >= len(b) || b[i] != '{' {
		return p.skipWrongType(b, i)
	}
	p.line.seen[kind]++
	p.op = p.out.Add()
	p.trace = trace{}
	if of != proxyObject {
		i = p.object(b, i, of)
		p.line.unnamed = !p.finishPerf(kind == pointToPoint) || p.line.unnamed
		return i
	}
	p.step = noStep
	i = p.object(b, i, of)
	if !p.finishProxy() {
		p.out.Ops = p.out.Ops[:len(p.out.Ops)-1]
	}
	return i
}

// finish adds the values of the context to an operation. Of a proxy's transfer only the peer's end is known so far (finishProxy): the rank is the other end.
// Without a time of its own the operation has ended by the time of the dump.
func finish(o *op.Op, c *context, dump int64) {
	o.Comm, o.CommName, o.CommSize, o.Nodes = c.Comm, c.Name, c.Size, c.Nodes
	o.Host, o.PID = c.Host, c.PID
	if c.Rank != op.Unknown {
		o.Rank = c.Rank
	}
	switch {
	case o.Destination != op.Unknown:
		o.Source = o.Rank
	case o.Source != op.Unknown:
		o.Destination = o.Rank
	}
	o.Total = dataSize(o.Kind, o.Size, c.Size)
	if o.Start == 0 {
		o.End, o.Time = dump, spans.TimeSynthetic
	}
}

// recentKey identifies a collective of a rank, without its kind.
type recentKey struct {
	context *context
	seq     uint64
}

// maxRecent bounds the collectives with possible later proxy records: those come in the dump of the collective, or in the next.
const maxRecent = 4096

// ambiguous is the kind of collectives of several kinds with the same number.
const ambiguous = op.Kinds

// findParent records a collective, and sets the kind of the collective that a proxy record belongs to: each kind is numbered separately, and the record's
// parent_sn is only the number. If collectives of several kinds have the number, the proxy record has no parent.
func (p *Parser) findParent(o *op.Op, c *context) {
	key := recentKey{c, o.ParentSeq}
	switch {
	case o.Proxy:
		kind, ok := p.recent[key]
		o.ParentKind = kind
		o.HasParent = o.HasParent && ok && kind != ambiguous
	case o.HasSeq && o.Kind != op.Other:
		key.seq = o.Seq
		if len(p.recent) >= maxRecent {
			clear(p.recent)
		}
		if p.recent == nil {
			p.recent = make(map[recentKey]op.Kind)
		}
		if kind, ok := p.recent[key]; ok && kind != o.Kind {
			p.recent[key] = ambiguous
		} else {
			p.recent[key] = o.Kind
		}
	}
}

// drops are the counters of records lost by the plugin, by their unit. The lost records of steps are among the lost proxy records.
var drops = [...]string{"coll", "p2p", "proxy", "proxy_op", "proxy_step", "proxy_pxn"}

// pxn is the index of the last of drops, a counter of the whole process, repeated in the markers of all its communicators.
const pxn = len(drops) - 1

// stats reads the value at b[i] of the member n of "dump_stats": how many records follow, and how many the plugin has lost. It returns the end of the value;
// -1: malformed.
func (p *Parser) stats(b []byte, i int, n name) int {
	l := &p.line
	switch n {
	case collRecords, p2pRecords, proxyRecords:
		var v uint64
		v, i = p.integer(b, i)
		if v != unknown {
			l.announced[n-collRecords] = v
		}
	case collDropped, p2pDropped, proxyDropped, proxyOpsDropped, proxyStepsDropped, proxyPXNSkipped:
		l.dropped[n-collDropped], i = p.integer(b, i)
	default:
		i = skip(b, i)
	}
	return i
}

// samples adds samples of the counters of lost records in "dump_stats", each with the line's communicator and rank; the counter of the whole process has
// neither.
func (p *Parser) samples() {
	l := &p.line
	for n, v := range l.dropped {
		if v == unknown {
			continue
		}
		s := parse.Sample{
			Metric: spans.MetricNCCLRecordsDropped, At: l.dump, Value: float64(v), Cumulative: true, Record: drops[n],
			Comm: l.Comm, Rank: l.Rank, Host: l.Host, PID: l.PID, Source: op.Unknown, Destination: op.Unknown,
		}
		if n == pxn {
			s.Comm, s.Rank = nil, op.Unknown
		}
		p.out.Samples = append(p.out.Samples, s)
	}
}

// IsPrometheus reports whether a line is of the Prometheus text format: a comment, or a metric of the plugin.
func IsPrometheus(t []byte) bool {
	return bytes.HasPrefix(t, []byte("#")) || bytes.HasPrefix(t, []byte("nccl_")) && bytes.IndexByte(t, ' ') > 0
}
