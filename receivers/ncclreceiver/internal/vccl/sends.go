package vccl

import (
	"math"
	"slices"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/spans"
)

// perUnit is the unit of VCCL's bandwidths in By/s. The number is whole and called Gbps in the source (timer_log.h, getBandWidths: bytes·0.93·8/ns, cut): with
// the factor 0.93 ≈ 1e9/2^30 the number is rather Gibit/s, so the true bandwidth is up to 7.5 % above the published one. The printed number is used as Gbit/s.
const perUnit = 1e9 / 8

const (
	maxLinks    = 64   // open operations and links
	maxRows     = 4096 // their rows
	maxChannels = 64   // of one operation, in Details; sends of further ones only count in the sums
)

// sends makes one operation of the rows of its sends: the rows with the same group, function, FuncTimes, ranks and device. An operation stays open until a row
// of its group is of another operation, the capacity is exceeded, or the end. Then all open operations leave, also of other groups: their lines are mixed, and
// the held lines belong to the operations that leave next. A continuing operation leaves in parts, with Sends as their weight.
//
// When a file is rewritten, the open operations leave with its first row.
type sends struct {
	host    []byte // of the file's name
	open    []link
	hint    int // index in open of the last row's link: mostly also the next row's
	rows    int // rows in open
	newFile bool
	text    []byte // communicators and names of the operations that left last
}

// row is a send.
type row struct {
	group         uint64 // hash of the communicator
	times         uint64 // FuncTimes: number of the operation
	function      uint64 // ncclFunc_t: kind of the operation
	from, to, dev int32  // ranks, and index of the network card
	at            int64  // end of the send, Unix ns
	bandwidth     int64  // as printed; below 0: none
	// Only in the oldest form: size, duration and channel of the send. ns 0: absent.
	bytes, ns int64
	channel   int32
}

// link is the sends of an operation over a link: from a rank to another, over a network card.
type link struct {
	group, times  uint64 // these and the next as in row
	function      uint64
	from, to, dev int32
	first, last   int64   // the earliest and the latest end of a send, Unix ns
	n             int64   // number of sends
	measured, sum int64   // number of sends with a bandwidth, and the sum of their bandwidths
	least         int64   // the lowest bandwidth
	bytes, ns     int64   // sums, of sends with a duration
	slowest       float64 // the lowest bytes/ns of a send
	channels      []channel
}

// channel is the sum of the sends over a channel.
type channel struct {
	id        int32
	bytes, ns int64
}

// is reports whether a row is of the link and operation.
func (l *link) is(r *row) bool {
	return l.group == r.group && l.times == r.times && l.function == r.function && l.from == r.from && l.to == r.to && l.dev == r.dev
}

// NewFile is called when the next lines are of another file, or of a rewritten one: VCCL truncates its files A and B in turn. The open operations are output
// with the next row.
func (s *sends) NewFile() { s.newFile = true }

// add handles a row. Afterwards out has the finished operations: of the rows before, and if Out.Open is false, of this row too.
func (s *sends) add(r *row, out *parse.Out) {
	if s.newFile {
		s.newFile = false
		s.flush(out)
	}
	if s.hint >= len(s.open) || !s.open[s.hint].is(r) {
		s.find(r, out)
	}
	s.open[s.hint].add(r)
	s.rows++
	if s.rows < maxRows {
		out.Open = true
		return
	}
	s.flush(out)
}

// find sets hint to the link of a row, added if new. A row of a new operation of its group ends the operation before, and a new link beyond maxLinks needs
// room: then all open operations are output (sends).
func (s *sends) find(r *row, out *parse.Out) {
	for i := range s.open {
		if s.open[i].is(r) {
			s.hint = i
			return
		}
	}
	other := func(l link) bool { return l.group == r.group && (l.times != r.times || l.function != r.function) }
	if len(s.open) == maxLinks || slices.ContainsFunc(s.open, other) {
		s.flush(out)
	}
	s.hint = len(s.open)
	if s.hint < cap(s.open) {
		s.open = s.open[:s.hint+1]
	} else {
		s.open = append(s.open, link{})
	}
	l := &s.open[s.hint]
	*l = link{
		group: r.group, times: r.times, function: r.function, from: r.from, to: r.to, dev: r.dev, first: r.at, last: r.at, least: math.MaxInt64,
		slowest: math.Inf(1), channels: l.channels[:0],
	}
}

// add adds a row's send to the sums of the link. The oldest form also states bytes and time, by channel.
func (l *link) add(r *row) {
	l.n++
	l.first, l.last = min(l.first, r.at), max(l.last, r.at)
	if r.bandwidth >= 0 {
		l.measured++
		l.sum += r.bandwidth
		l.least = min(l.least, r.bandwidth)
	}
	if r.ns > 0 {
		l.bytes += r.bytes
		l.ns += r.ns
		l.slowest = min(l.slowest, float64(r.bytes)/float64(r.ns))
		for i := range l.channels {
			if c := &l.channels[i]; c.id == r.channel {
				c.bytes += r.bytes
				c.ns += r.ns
				return
			}
		}
		if len(l.channels) < maxChannels {
			l.channels = append(l.channels, channel{r.channel, r.bytes, r.ns})
		}
	}
}

// flush outputs all open operations, an op.Op for each link.
func (s *sends) flush(out *parse.Out) {
	s.text = s.text[:0]
	for i := range s.open {
		s.give(&s.open[i], out)
	}
	s.open, s.hint, s.rows = s.open[:0], 0, 0
}

// give outputs the operation of a link: seen by the sending rank, from the end of its first send to the end of its last. Texts are in s.text, valid until the
// next flush.
func (s *sends) give(l *link, out *parse.Out) {
	o := out.Add()
	o.Kind, o.Seq = funcKind(l.function), l.times
	o.HasSeq = together(o.Kind)
	from := len(s.text)
	s.text = appendHash(s.text, l.group)
	o.Comm = s.text[from:len(s.text):len(s.text)]
	if o.Kind == op.Other {
		from = len(s.text)
		s.text = strconv.AppendUint(s.text, l.function, 10)
		o.Name = s.text[from:len(s.text):len(s.text)]
	}
	o.Rank, o.Source, o.Destination, o.Host = l.from, l.from, l.to, s.host
	if !together(o.Kind) {
		o.Peer = l.to
	}
	o.Start, o.End, o.Duration, o.Time = l.first, l.last, l.last-l.first, spans.TimeLogged
	o.Sends = l.n
	o.LinkBandwidth, o.LinkBandwidthWorst = math.NaN(), math.NaN()
	switch {
	case l.ns > 0: // the oldest form: also other times
		l.detail(o)
	case l.measured > 0:
		o.LinkBandwidth = float64(l.sum) / float64(l.measured) * perUnit
		o.LinkBandwidthWorst = float64(l.least) * perUnit
	}
}

// detail adds the values of the oldest form: bytes and the duration of each send. The clock has only seconds, so the times are derived from the last stamp and
// the longest channel: sends of a channel overlap, so the duration is an upper bound. Size is the bytes over the link, not the size of the message.
func (l *link) detail(o *op.Op) {
	o.Size, o.Duration = l.bytes, 0
	for _, c := range l.channels {
		o.Duration = max(o.Duration, c.ns)
		o.Details = append(o.Details, op.Detail{
			Name: spans.SpanNCCLChannel, Duration: c.ns, Channel: c.id, Peer: l.to, Step: op.Unknown, Size: c.bytes, Direction: "send", Under: op.Unknown,
		})
	}
	if len(l.channels) == 1 {
		o.Channel = l.channels[0].id
	}
	o.End, o.Start, o.Time = l.last, l.last-o.Duration, spans.TimeDerived
	o.LinkBandwidth, o.LinkBandwidthWorst = float64(l.bytes)/float64(l.ns)*1e9, l.slowest*1e9
}

// End outputs the open operations.
func (s *sends) End(out *parse.Out) { s.flush(out) }

// Save implements parse.Parser: there is no state, because open rows are read again.
func (s *sends) Save() []byte { return nil }

// Restore implements parse.Parser: there is no state.
func (s *sends) Restore([]byte) {}
