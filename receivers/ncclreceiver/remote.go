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

// remote packs the records of one log, by communicators, for the receiver that joins them. Nothing waits for other ranks: a record is in the batch in which it
// became whole, and its lines with it.
type remote struct {
	h     *handler
	from  collectives.From
	comms map[string]*packer
	last  *packer // of the last record; mostly the next is of the same communicator
}

// packer packs the records of one communicator.
type packer struct {
	id     string          // as logged
	name   string          // spans.Name of it
	writer *partial.Writer // nil while there is no record to send
	places []tail.Place
	record int64 // when a record was read last, Unix ns
	told   int64 // when the receiver that joins heard of the log last, Unix ns
}

const (
	// maxPackers bounds the communicators of a log that are known. Heartbeats are for known ones only.
	maxPackers = 256
	// maxPacked is how many bytes of packed records one span has, about: some go into one message.
	maxPacked = 256 << 10
	// heartbeat is how long a log is silent before it is said that it is being read, and then how often that is said.
	heartbeat = 10 * time.Second
	// heartbeatFor is how long a log is silent until nothing is said of it any more: logs of jobs that have ended lie about. It is far longer than what one would
	// wait for a record.
	heartbeatFor = time.Hour
)

func newRemote(h *handler, from collectives.From) *remote {
	return &remote{h: h, from: from, comms: make(map[string]*packer)}
}

// Add packs a record.
func (r *remote) Add(o *op.Op, came []tail.Lent, at int64) bool {
	for _, l := range came {
		r.h.stream.Take(l)
	}
	p := r.packer(o.Comm)
	if p.writer == nil {
		p.writer = r.h.r.writers.Get()
	}
	p.writer.Add(o)
	p.places = append(p.places, r.h.stream.Place())
	p.record, p.told = at, at
	if p.writer.Size() >= maxPacked {
		r.cut(r.h.batch, p)
	}
	return true
}

func (r *remote) packer(id []byte) *packer {
	if r.last != nil && r.last.id == string(id) {
		return r.last
	}
	p := r.comms[string(id)]
	if p == nil {
		if len(r.comms) >= maxPackers {
			r.pack(r.h.batch)
			clear(r.comms)
		}
		p = &packer{id: string(id), name: spans.Name(id)}
		r.comms[p.id] = p
	}
	r.last = p
	return p
}

// pack moves all records into the batch.
func (r *remote) pack(b *joined) {
	for _, p := range r.comms {
		if p.writer != nil {
			r.cut(b, p)
		}
	}
}

// cut moves the records of a communicator into the batch.
func (r *remote) cut(b *joined, p *packer) {
	s := b.stretch(r)
	p.writer.Pack(&s.Stretch)
	s.places = append(s.places[:0], p.places...)
	p.places = p.places[:0]
	r.h.r.writers.Put(p.writer, maxFreeWriters)
	p.writer = nil
}

// Nothing waits here.

func (*remote) Heard()       {}
func (*remote) Begin()       {}
func (*remote) End()         {}
func (*remote) Expire(int64) {}

// Idle is called when all of the log was read and accepted. The receiver that joins is told so: it could not tell a rank that hangs from a host that is away.
func (h *handler) Idle(now time.Time) {
	if h.remote == nil {
		return
	}
	at := now.UnixNano()
	for _, p := range h.remote.comms {
		if at-p.told < int64(heartbeat) || at-p.record > int64(heartbeatFor) {
			continue
		}
		p.told = at
		if h.batch == nil {
			h.batch = h.r.newBatch()
		}
		s := h.batch.stretch(h.remote)
		s.Comm, s.ReadTo = p.name, at
	}
}

// maxSaved bounds the communicators that a restart remembers.
const maxSaved = 64

// save appends the communicators that heartbeats are for, a line each: a restart must not make ranks of whom there is nothing new unheard of.
func (r *remote) save(b []byte) []byte {
	all := slices.SortedFunc(maps.Values(r.comms), func(p, q *packer) int { return cmp.Or(cmp.Compare(q.record, p.record), cmp.Compare(p.id, q.id)) })
	for _, p := range all[:min(len(all), maxSaved)] {
		if all[0].record-p.record > int64(heartbeatFor) {
			break
		}
		b = append(strconv.AppendInt(append(b, '\n'), p.record, 10), ' ')
		b = strconv.AppendQuote(b, p.id)
	}
	return b
}

func (r *remote) restore(saved string) {
	for line := range strings.Lines(saved) {
		at, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		record, err := strconv.ParseInt(at, 10, 64)
		id, malformed := strconv.Unquote(quoted)
		if err == nil && malformed == nil && len(r.comms) < maxSaved {
			r.comms[id] = &packer{id: id, name: spans.Name(id), record: record}
		}
	}
}

// stretch is what one span has.
type stretch struct {
	partial.Stretch

	places []tail.Place // of the records
}

const (
	maxFreeWriters = 64
	maxFreeBytes   = 32 << 10 // of packed records that are kept for use again
)

// stretch adds one to the batch.
func (b *joined) stretch(r *remote) *stretch {
	n := len(b.stretches)
	b.stretches = slices.Grow(b.stretches, 1)[:n+1]
	s := &b.stretches[n]
	s.Stretch = partial.Stretch{From: r.from, Service: b.r.cfg.ServiceName, Host: b.r.host, Records: s.Records[:0]}
	return s
}

// emptied keeps the room of stretches.
func emptied(all []stretch) []stretch {
	for i := range all {
		s := &all[i]
		if s.Stretch = (partial.Stretch{Records: s.Records[:0]}); cap(s.Records) > maxFreeBytes {
			s.Records = nil
		}
		s.places = s.places[:0]
	}
	return all[:0]
}

// addStretches adds the spans of packed records. They come from their number among the stretches.
func (b *joined) addStretches(out *spans.Batch, from filereceiver.From) {
	for i := range b.stretches {
		from(tail.Place(i))
		b.stretches[i].Add(out)
	}
}

// Places are the records that a span was made of.
func (b *joined) Places(n tail.Place) []tail.Place {
	if b.r.joiner == nil {
		return b.stretches[n].places
	}
	return []tail.Place{n}
}
