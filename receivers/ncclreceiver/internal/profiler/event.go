package profiler

import "math"

// event is a line of the trace. Of args there is what has a use. Text is part of the line.
type event struct {
	name, cat []byte
	phase     byte
	id, pid   int64
	ts        int64 // ns since the profiler's start; 0: unknown

	algorithm, protocol, datatype, stream []byte
	count, comm, seq                      uint64
	hasCount, hasComm, hasSeq             bool
	start, stop                           uint64 // GPU clocks, ns; 0: unknown
	size                                  int64  // By; -1: not there
	rank, peer, channel, channels, step   int32  // -1: not there
	gpuMicros, cpuMicros                  int64  // ns, of copy engines; -1: not there
}

// scan reads a line: an object in JSON, in which values may also be bare words. It says whether it is a whole one.
func (e *event) scan(t []byte) bool {
	*e = event{id: -1, size: -1, rank: -1, peer: -1, channel: -1, channels: -1, step: -1, gpuMicros: -1, cpuMicros: -1}
	i, ok := e.object(t, 0, false)
	if !ok {
		return false
	}
	if i = blanks(t, i); i < len(t) && t[i] == ',' {
		i = blanks(t, i+1)
	}
	return i == len(t)
}

// object reads the members of the object at t[i:] and returns where it ends.
func (e *event) object(t []byte, i int, args bool) (end int, ok bool) {
	if i >= len(t) || t[i] != '{' {
		return 0, false
	}
	if i = blanks(t, i+1); i < len(t) && t[i] == '}' {
		return i + 1, true
	}
	for i < len(t) && t[i] == '"' {
		key, at, whole := value(t, i)
		if at = blanks(t, at); !whole || at >= len(t) || t[at] != ':' {
			return 0, false
		}
		i = blanks(t, at+1)
		if !args && string(key) == "args" && i < len(t) && t[i] == '{' {
			i, ok = e.object(t, i, true)
		} else {
			var v []byte
			if v, i, ok = value(t, i); ok && args {
				e.arg(key, v)
			} else if ok {
				e.member(key, v)
			}
		}
		if i = blanks(t, i); !ok || i >= len(t) {
			return 0, false
		}
		if t[i] == '}' {
			return i + 1, true
		}
		if t[i] != ',' {
			return 0, false
		}
		i = blanks(t, i+1)
	}
	return 0, false
}

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
		e.gpuMicros = micros(v)
	case "duration_cpu_us":
		e.cpuMicros = micros(v)
	}
}

// value reads the value at t[i:] without its quotes, an object or array as it is, and returns where it ends.
func value(t []byte, i int) (v []byte, end int, ok bool) {
	if i >= len(t) {
		return nil, i, false
	}
	switch t[i] {
	case '"':
		for j := i + 1; j < len(t); j++ {
			switch t[j] {
			case '"':
				return t[i+1 : j], j + 1, true
			case '\\':
				j++
			}
		}
		return nil, i, false
	case '{', '[':
		return nested(t, i)
	}
	j := i
	for j < len(t) && bare(t[j]) {
		j++
	}
	return t[i:j], j, j > i
}

// bare says whether c may be in a value that has no quotes: a number, true, ncclFloat32, 0x262ca50, (nil).
func bare(c byte) bool {
	return c-'0' <= 9 || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '.' || c == '-' || c == '+' || c == '_' || c == '(' || c == ')'
}

// nested passes over the object or array at t[i:]: {"step": 0, "ts": 1.5} of the proxy events until 2.26.
func nested(t []byte, i int) (v []byte, end int, ok bool) {
	depth := 0
	for j := i; j < len(t); j++ {
		switch t[j] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return t[i : j+1], j + 1, true
			}
		case '"':
			if _, j, ok = value(t, j); !ok {
				return nil, i, false
			}
			j--
		}
	}
	return nil, i, false
}

func blanks(t []byte, i int) int {
	for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
		i++
	}
	return i
}

// unsigned reads an integer that fills 64 bits, as a communicator's hash does.
func unsigned(v []byte) (n uint64, ok bool) {
	for _, c := range v {
		d := uint64(c - '0')
		if c-'0' > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, len(v) > 0
}

// integer reads one of 0 to limit; -1: v is none.
func integer(v []byte, limit uint64) int64 {
	if n, ok := unsigned(v); ok && n <= limit {
		return int64(n)
	}
	return -1
}

// maxMicros bounds a ts to three years, so that every sum of them and of a Unix time fits.
const maxMicros = 1e14

// micros reads µs, printed with %f, as ns, to the nearest; -1: v is none.
func micros(v []byte) int64 {
	i, n := 0, int64(0)
	for i < len(v) && v[i]-'0' <= 9 {
		if n = n*10 + int64(v[i]-'0'); n > maxMicros {
			return -1
		}
		i++
	}
	if i == 0 || i < len(v) && v[i] != '.' {
		return -1
	}
	n *= 1000
	for d, unit := i+1, int64(100); d < len(v); d++ {
		if v[d]-'0' > 9 {
			return -1
		}
		if unit > 0 {
			n += int64(v[d]-'0') * unit
		} else if d == i+4 && v[d] >= '5' {
			n++
		}
		unit /= 10
	}
	return n
}
