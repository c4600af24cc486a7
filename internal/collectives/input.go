package collectives

import (
	"slices"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// From says where the records of an Input are from.
type From struct {
	Run string
	// Path is the log's. Where the host is not known, its base stands for the clock.
	Path string
	// Family is the family of log formats. Each family is joined by itself: otherwise a collective in the logs of two tools would have each rank twice.
	Family string
	// OwnClock says that the times are not of the host's clock but of a clock of its own, such as a GPU's.
	OwnClock bool
	// Coarse says that the times are about when it was, as a watchdog sees them: they are not compared.
	Coarse bool
}

// Input is one of the streams that records come by, such as a file. While an input has said nothing its ranks are not known, and where the size of a
// communicator is not known either, its collectives wait for the input. The methods of one Input must not be called at the same time.
type Input[H any] struct {
	From From // to be complete before Add is called
	of   *Joiner[H]
	take func(c *Collective, came []H)
	input
}

// input is the part of an Input that does not depend on H.
type input struct {
	heard bool // it said something, or has nothing to say

	comms   map[string]*communicator
	comm    *communicator // the last one, of the id
	id      string
	sources []*source
}

// maxKnown bounds what an input remembers of communicators and sources; it may ask again.
const maxKnown = 256

// Input makes an input. take is given each collective that leaves with a call of the input's methods, whichever inputs its records came by, and the H values of
// its records (valid during the call). take is called with the Joiner locked and must not call it.
func (j *Joiner[H]) Input(from From, take func(c *Collective, came []H)) *Input[H] {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.silent++
	return &Input[H]{From: from, of: j, take: take, input: input{comms: make(map[string]*communicator)}}
}

// Heard says that the input has said something, or has nothing to say: nothing waits for it any more.
func (in *Input[H]) Heard() {
	if in.heard {
		return
	}
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	in.of.hear(&in.input)
}

// Begin says that a record has begun whose rest comes later: reading does not end before its End.
func (in *Input[H]) Begin() { in.unfinished(1) }

// End says that the record that had begun was added, or is given up.
func (in *Input[H]) End() { in.unfinished(-1) }

func (in *Input[H]) unfinished(n int) {
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	in.of.begun += n
}

// Add takes a rank's record of an operation, and came, the lines or offsets that it came by, read at Unix ns at. o is only read during the call. A line with
// the records of several ranks is added rank by rank, each time with the same came.
func (in *Input[H]) Add(o *op.Op, came []H, at int64) {
	comm, src := in.communicator(o.Comm), in.source(o.Host, o.PID)
	j := in.of
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(&in.input, &record{comm: comm, src: src, op: o, held: j.held.put(came), came: len(came), at: at})
	j.leave(in.take)
}

// Expire lets go of collectives whose last record was read before the given Unix ns, the oldest first and about a batch of them. math.MaxInt64 says
// that reading has ended: then all leave, once no record is unfinished.
func (in *Input[H]) Expire(before int64) {
	j := in.of
	j.mu.Lock()
	defer j.mu.Unlock()
	j.expire(before)
	j.leave(in.take)
}

// communicator finds the communicator of an operation; mostly it is the same as for the operation before.
func (in *Input[H]) communicator(id []byte) *communicator {
	if in.comm != nil && in.id == string(id) {
		return in.comm
	}
	c := in.comms[string(id)]
	if c == nil {
		if len(in.comms) >= maxKnown {
			clear(in.comms)
		}
		in.of.mu.Lock()
		c = in.of.communicator(&in.From, id)
		in.of.mu.Unlock()
		in.comms[string(id)] = c
	}
	in.comm, in.id = c, string(id)
	return c
}

// source finds who wrote a record; mostly it is who wrote the one before.
func (in *Input[H]) source(host []byte, pid int64) *source {
	for _, s := range slices.Backward(in.sources) {
		if s.pid == pid && s.host == string(host) {
			return s
		}
	}
	if len(in.sources) >= maxKnown {
		in.sources = in.sources[:0]
	}
	in.of.mu.Lock()
	s := in.of.source(&in.From, host, pid)
	in.of.mu.Unlock()
	in.sources = append(in.sources, s)
	return s
}
