package profiler

import (
	"math"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/jsonlike"
)

// event is a line of the trace, with the used args. Texts are parts of the line.
type event struct {
	name, cat []byte
	phase     byte
	id, pid   int64 // id −1: absent; pid 0: absent
	ts        int64 // ns since the profiler's start; 0: unknown

	algorithm, protocol, datatype, stream []byte
	count, comm, seq                      uint64 // number of elements; hash of the communicator; number of the collective
	hasCount, hasComm, hasSeq             bool
	start, stop                           uint64 // GPU clocks, ns; 0: unknown
	size                                  int64  // By; -1: absent
	rank, peer, channel, channels, step   int32  // -1: absent
	gpuTime, cpuTime                      int64  // ns, of copy engines; -1: absent
}

// scan reads the event in a line: an object in JSON, with bare words allowed as values, and perhaps a comma. The result reports whether the object is complete.
func (e *event) scan(t []byte) bool {
	*e = event{id: -1, size: -1, rank: -1, peer: -1, channel: -1, channels: -1, step: -1, gpuTime: -1, cpuTime: -1}
	i := e.object(t, 0, false)
	if i < 0 {
		return false
	}
	i, _ = jsonlike.Comma(t, i)
	return jsonlike.Blanks(t, i) == len(t)
}

// object reads the members of the object at t[i:], the event itself or (args) the object of its member "args", and returns its end; -1: unfinished, or no
// object.
func (e *event) object(t []byte, i int, args bool) (end int) {
	if i >= len(t) || t[i] != '{' {
		return -1
	}
	i, more := jsonlike.Begin(t, i, '}')
	for more {
		i = jsonlike.Blanks(t, i)
		if i >= len(t) || t[i] != '"' {
			return -1
		}
		key, _, at := jsonlike.String(t, i)
		if at < 0 {
			return -1
		}
		at = jsonlike.Colon(t, at)
		if at < 0 {
			return -1
		}
		at = jsonlike.Blanks(t, at)
		if !args && string(key) == "args" && at < len(t) && t[at] == '{' {
			i = e.object(t, at, true)
		} else {
			var v []byte
			v, i = lexer.Value(t, at)
			if i >= 0 && args {
				e.arg(key, v)
			} else if i >= 0 {
				e.member(key, v)
			}
		}
		if i < 0 {
			return -1
		}
		i, more = jsonlike.Comma(t, i)
	}
	return jsonlike.Close(t, i, '}')
}

// member reads a value of the event itself: name, category, phase, ids and time.
func (e *event) member(key, v []byte) {
	switch string(key) {
	case "name":
		e.name = v
	case "cat":
		e.cat = v
	case "ph":
		if len(v) == 1 {
			e.phase = v[0]
		}
	case "id":
		e.id = integer(v, math.MaxInt64)
	case "pid":
		e.pid = max(0, integer(v, math.MaxInt64))
	case "ts":
		e.ts = max(0, micros(v))
	}
}

// arg reads a value of "args". Any text in place of a number counts as absent. Some names differ between versions of the plugin.
func (e *event) arg(key, v []byte) {
	switch string(key) {
	case "Channel":
		e.channel = int32(integer(v, math.MaxInt32))
	case "StartGpuClk":
		e.start, _ = unsigned(v)
	case "StopGpuClk":
		e.stop, _ = unsigned(v)
	case "Step":
		e.step = int32(integer(v, math.MaxInt32))
	case "Peer":
		e.peer = int32(integer(v, math.MaxInt32))
	case "transSize", "size":
		e.size = integer(v, math.MaxInt64)
	case "SeqNum":
		e.seq, e.hasSeq = unsigned(v)
	case "CommHash":
		e.comm, e.hasComm = unsigned(v)
	case "Rank":
		e.rank = int32(integer(v, math.MaxInt32))
	case "Count", "count":
		e.count, e.hasCount = unsigned(v)
	case "Datatype", "datatype":
		e.datatype = v
	case "Algorithm":
		e.algorithm = v
	case "Protocol":
		e.protocol = v
	case "nChannels", "nMaxChannels": // the latter until 2.26
		e.channels = int32(integer(v, math.MaxInt32))
	case "Stream":
		e.stream = v
	case "duration_gpu_us":
		e.gpuTime = micros(v)
	case "duration_cpu_us":
		e.cpuTime = micros(v)
	}
}

// lexer reads values. Without quotes a value may be a number, true, ncclFloat32, 0x262ca50 or (nil). An object is {"step": 0, "ts": 1.5} of the proxy events
// until 2.26.
var lexer = jsonlike.Lexer{Word: jsonlike.Alphanumeric(".-+_()")}

// unsigned reads an integer of up to 64 bits, such as a communicator's hash.
func unsigned(v []byte) (n uint64, ok bool) {
	n, end := decimal.Unsigned(v, 0)
	if end == 0 || end < len(v) {
		return 0, false
	}
	return n, true
}

// integer reads an integer from 0 to limit; -1: any other text.
func integer(v []byte, limit uint64) int64 {
	if n, ok := unsigned(v); ok && n <= limit {
		return int64(n)
	}
	return -1
}

// maxNanos bounds a time to three years, so that every sum with a Unix time fits.
const maxNanos = 1e17

// micros reads µs, printed with %f, as ns, to the nearest; -1: v is no number, or beyond maxNanos.
func micros(v []byte) int64 {
	if ns, ok := decimal.Thousandths(v); ok && ns <= maxNanos {
		return ns
	}
	return -1
}
