package ncclreceiver

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/collectives/partial"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/spans"
)

// remote packs the records of one log, by communicators, for the receiver that joins them. Nothing waits for other ranks: a complete record is in the current
// batch, with its lines.
type remote struct {
	h     *handler
	from  collectives.From
	comms map[string]*commWriter
	last  *commWriter // of the last record; mostly the next is of the same communicator
	begun int64       // the latest beginning of an operation in the log so far, Unix ns
	sent  int64       // the same of earlier batches: at least all operations that began before are in Kafka once a span of the current batch is
}

// commWriter packs the records of one communicator.
type commWriter struct {
	id       string          // as logged
	name     string          // spans.Name of id
	writer   *partial.Writer // nil without a record to send
	places   []tail.Place    // of the records in writer
	record   int64           // when a record was read last, Unix ns
	notified int64           // last time the joining receiver got records or a heartbeat of the log, Unix ns
}

const (
	// maxLogComms bounds the known communicators of a log. Heartbeats are only for known ones.
	maxLogComms = 256
	// maxPacked is the size of the packed records of one span, bytes, about: several fit into a message.
	maxPacked = 256 << 10
	// heartbeat is the silence of a log before the first heartbeat, and the interval of further ones.
	heartbeat = 10 * time.Second
	// heartbeatFor is the silence of a log after which heartbeats end: logs of finished jobs remain. Far longer than any wait for a record.
	heartbeatFor = time.Hour
)

// newRemote makes the packer of a log.
func newRemote(h *handler, from collectives.From) *remote {
	return &remote{h: h, from: from, comms: make(map[string]*commWriter)}
}

// Add implements collectives.Input: the record is packed, and its lines belong to the current batch. Enough records of a communicator make a span.
func (r *remote) Add(o *op.Op, came []tail.Lent, at int64) bool {
	for _, l := range came {
		r.h.stream.Take(l)
	}
	p := r.writerOf(o.Comm)
	if p.writer == nil {
		p.writer = r.h.r.writers.Get()
	}
	p.writer.Add(o)
	r.begun = max(r.begun, began(o))
	p.places = append(p.places, r.h.stream.Place())
	p.record, p.notified = at, at
	if p.writer.Size() >= maxPacked {
		r.cut(r.h.batch, p)
	}
	return true
}

// writerOf returns the writer of a communicator, added if new. Beyond maxLogComms all writers are forgotten, after their records were moved into the batch.
func (r *remote) writerOf(id []byte) *commWriter {
	if r.last != nil && r.last.id == string(id) {
		return r.last
	}
	p := r.comms[string(id)]
	if p == nil {
		if len(r.comms) >= maxLogComms {
			r.pack(r.h.batch)
			clear(r.comms)
		}
		p = &commWriter{id: string(id), name: spans.Name(id)}
		r.comms[p.id] = p
	}
	r.last = p
	return p
}

// pack moves the records of all communicators into the batch, a span for each.
func (r *remote) pack(b *joined) {
	for _, p := range r.comms {
		if p.writer != nil {
			r.cut(b, p)
		}
	}
}

// end moves the remaining records into the batch, which is complete then.
func (r *remote) end(b *joined) {
	r.pack(b)
	r.sent = r.begun
}

// cut moves the records of a communicator into the batch, as one span.
func (r *remote) cut(b *joined, p *commWriter) {
	s := b.newPacked(r)
	p.writer.Pack(&s.Stretch)
	s.ReadTo = r.sent
	s.places = append(s.places[:0], p.places...)
	p.places = p.places[:0]
	r.h.r.writers.Put(p.writer, maxFreeWriters)
	p.writer = nil
}

// The other methods of input do nothing: no record waits for others here.

func (*remote) EndWait()     {}
func (*remote) Begin()       {}
func (*remote) End()         {}
func (*remote) Expire(int64) {}

// Idle implements tail.Idler: all of the log was read and accepted. With join: remote, Idle adds to the batch a heartbeat of each communicator that was silent
// for heartbeat, and for heartbeatFor at most: without heartbeats a hanging rank would look like an unreachable host to the joining receiver.
func (h *handler) Idle(now time.Time) {
	if h.remote == nil {
		return
	}
	at := now.UnixNano()
	for _, p := range h.remote.comms {
		if at-p.notified < int64(heartbeat) || at-p.record > int64(heartbeatFor) {
			continue
		}
		p.notified = at
		if h.batch == nil {
			h.batch = h.r.newBatch()
		}
		s := h.batch.newPacked(h.remote)
		s.Comm, s.ReadTo = p.name, at
	}
}

// maxSaved bounds the communicators in a checkpoint.
const maxSaved = 64

// save appends the latest communicators to b, maxSaved at most and none older than the latest by heartbeatFor: after a restart, idle ranks must not become
// silent. A line, such as `1785748462776244708 "0x5eed"`, has the time of the last record and the id.
func (r *remote) save(b []byte) []byte {
	all := slices.SortedFunc(maps.Values(r.comms), func(p, q *commWriter) int { return cmp.Or(cmp.Compare(q.record, p.record), cmp.Compare(p.id, q.id)) })
	for _, p := range all[:min(len(all), maxSaved)] {
		if all[0].record-p.record > int64(heartbeatFor) {
			break
		}
		b = append(strconv.AppendInt(append(b, '\n'), p.record, 10), ' ')
		b = strconv.AppendQuote(b, p.id)
	}
	return b
}

// restore reads the lines of save; other lines are skipped.
func (r *remote) restore(saved string) {
	for line := range strings.Lines(saved) {
		at, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		record, err := strconv.ParseInt(at, 10, 64)
		id, malformed := strconv.Unquote(quoted)
		if err == nil && malformed == nil && len(r.comms) < maxSaved {
			r.comms[id] = &commWriter{id: id, name: spans.Name(id), record: record}
		}
	}
}

// packedSpan is the content of one span, with the places of its records.
type packedSpan struct {
	partial.Stretch

	places []tail.Place // of the records
}

const (
	maxFreeWriters = 64
	maxFreeBytes   = 32 << 10 // of packed records kept for reuse
)

// newPacked adds an empty span of a log to the batch, with the memory of an earlier one.
func (b *joined) newPacked(r *remote) *packedSpan {
	n := len(b.packed)
	b.packed = slices.Grow(b.packed, 1)[:n+1]
	s := &b.packed[n]
	s.Stretch = partial.Stretch{From: r.from, Service: b.r.cfg.ServiceName, Host: b.r.host, Records: s.Records[:0]}
	return s
}

// emptied empties a list of spans, and keeps its memory, except for large spans.
func emptied(all []packedSpan) []packedSpan {
	for i := range all {
		s := &all[i]
		s.Stretch = (partial.Stretch{Records: s.Records[:0]})
		if cap(s.Records) > maxFreeBytes {
			s.Records = nil
		}
		s.places = s.places[:0]
	}
	return all[:0]
}

// firstPacked is the number of a batch's first packed span, for From and Places, above all places of records: the events of the log (filereceiver) have their
// own places in the same batch.
const firstPacked tail.Place = 1 << 30

// addPacked adds the spans of packed records.
func (b *joined) addPacked(out *spans.Batch, from filereceiver.From) {
	for i := range b.packed {
		from(firstPacked + tail.Place(i))
		b.packed[i].Add(out)
	}
}

// Places implements filereceiver.Spread: a span of packed records has the places of all its records; n of a collective, joined here, or of an event is a place.
func (b *joined) Places(n tail.Place) []tail.Place {
	if n >= firstPacked {
		return b.packed[n-firstPacked].places
	}
	return []tail.Place{n}
}
