package tqline

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/decimal"
)

// Neighbour is the kind of a line without a [TQ-…] tag.
type Neighbour uint8

// The neighbours of TransferQueue's records.
const (
	Other          Neighbour = iota // nothing of ours
	TaskGetting                     // "Task f (pid=1) is getting len_samples=32, global_idx=[…"
	TaskPutting                     // "Task f (pid=1) putting output data to TransferQueue with batch_size=torch.Size([32]),"
	TensordictKeys                  // the second line
	TaskCost                        // a Task line with "cost time: "
	PerfHeader                      // "UNIT: [Performance] Total success requests: 1840, …"
	PerfRange                       // "Time range: last 5.00 minutes; "
	PerfOperations                  // "Per-operation statistics: PUT_DATA: req_count=…"
)

var (
	performance = []byte(": [Performance] Total success requests: ")
	costTime    = []byte(", cost time: ")
)

// Classify returns the kind of a line without its prefix, by its beginning: most lines of a log are none of these, and cost a look at the first byte and
// a search in the first 256, since the name of a storage unit may stand before [Performance].
func Classify(b []byte) Neighbour {
	if len(b) == 0 {
		return Other
	}
	switch b[0] {
	case 't':
		if bytes.HasPrefix(b, []byte("tensordict keys=")) {
			return TensordictKeys
		}
	case 'T':
		if bytes.HasPrefix(b, []byte("Task ")) {
			return classifyTask(b)
		}
		if bytes.HasPrefix(b, []byte("Time range: last ")) {
			return PerfRange
		}
	case 'P':
		if bytes.HasPrefix(b, []byte("Per-operation statistics: ")) {
			return PerfOperations
		}
	}
	if bytes.Contains(b[:min(len(b), 256)], performance) { // after the name of the storage unit
		return PerfHeader
	}
	return Other
}

// classifyTask is Classify for a line that begins with "Task ". Only the places where the words can be are searched, with room for a long function name and for
// the values between: the lines may be very long.
func classifyTask(b []byte) Neighbour {
	i := bytes.Index(b[:min(len(b), 512)], []byte(" (pid="))
	if i < 0 {
		return Other
	}
	rest := b[i:]
	last := rest[len(rest)-1]
	switch {
	// A long list of indices may stand before "cost time", so it is searched at the end of the line; a line that ends in the list has none.
	case last != ']' && last != ',' && bytes.Contains(rest[max(0, len(rest)-64):], costTime):
		return TaskCost
	case bytes.Contains(rest[:min(len(rest), 64)], []byte(") is getting len_samples=")):
		return TaskGetting
	case bytes.Contains(rest[:min(len(rest), 96)], []byte(") putting output data to TransferQueue")):
		return TaskPutting
	}
	return Other
}

// Cost is a "cost time" line (verl main @1dda039b).
type Cost struct {
	Func     []byte
	PID      int64
	Put      bool  // writing to TransferQueue; else getting
	Duration int64 // ns
}

// ParseCost reads a TaskCost line; false: unreadable. The closing parenthesis after the number is in the original:
//
//	Task f (pid=1) is getting len_samples=32, …, cost time: 0.25)
func ParseCost(b []byte) (c Cost, ok bool) {
	i := bytes.Index(b, []byte(" (pid="))
	at := bytes.LastIndex(b, costTime)
	if i < 5 || at < i {
		return c, false
	}
	c.Func = b[5:i] // after "Task "
	head := b[i+6 : at]
	end := bytes.IndexByte(head, ')')
	if end < 0 {
		return c, false
	}
	c.PID, ok = integer(head[:end])
	if !ok {
		return c, false
	}
	switch what := head[end+1:]; {
	case bytes.HasPrefix(what, []byte(" is writing to TransferQueue")):
		c.Put = true
	case bytes.HasPrefix(what, []byte(" is getting len_samples=")):
	default:
		return c, false
	}
	d, err := decimal.Nanos(bytes.TrimRight(b[at+len(costTime):], ") \t\r"))
	c.Duration = d
	return c, err == nil && d >= 0
}

// Perf is the first line of a [Performance] record (TransferQueue utils/perf_utils.py @b75d570d).
type Perf struct {
	Unit     []byte
	Requests int64   // successful, in the record's time range
	Rate     float64 // requests per second
	Average  float64 // s
}

// ParsePerf reads a PerfHeader line; false: unreadable. Rates in the log are per minute:
//
//	UNIT: [Performance] Total success requests: 1840, Total req/min: 368.00, Total avg process time: 0.0123s, …
func ParsePerf(b []byte) (p Perf, ok bool) {
	i := bytes.Index(b, performance)
	if i < 0 {
		return p, false
	}
	p.Unit = b[bytes.LastIndexByte(b[:i], ' ')+1 : i]
	rest := b[i+len(performance):]
	n := bytes.IndexByte(rest, ',')
	if n < 0 || len(p.Unit) == 0 {
		return p, false
	}
	var ok2, ok3 bool
	p.Requests, ok = integer(rest[:n])
	p.Rate, ok2 = value(rest, "Total req/min: ")
	p.Average, ok3 = value(rest, "Total avg process time: ")
	p.Rate /= 60
	return p, ok && ok2 && ok3
}

// ParseRange reads a PerfRange line: the length of the range in ns. false: unreadable, or more than 1e6 minutes, two years.
func ParseRange(b []byte) (int64, bool) {
	f, ok := value(b, "Time range: last ")
	if !ok || f > 1e6 || !bytes.Contains(b, []byte(" minutes")) {
		return 0, false
	}
	return int64(f * 60e9), true
}

// PerfOp is one operation of a PerfOperations line. Times in seconds.
type PerfOp struct {
	Name          []byte
	Requests      int64
	Rate          float64 // requests per second
	Avg, Max, Min float64
}

// NextOp takes the next operation off a PerfOperations line (or the rest from an earlier call). ok is false for an unreadable operation; at the end,
// ok is true and the name nil. Rates in the log are per minute:
//
//	PUT_DATA: req_count=920, req/min=180.00, avg_time=0.006112s, max_time=0.0511s, min_time=0.0021s;
func NextOp(b []byte) (op PerfOp, rest []byte, ok bool) {
	b = bytes.TrimPrefix(b, []byte("Per-operation statistics: "))
	b = bytes.TrimLeft(b, "; \t\r")
	if len(b) == 0 {
		return op, nil, true
	}
	one, rest, _ := bytes.Cut(b, []byte(";"))
	name, values, found := bytes.Cut(one, []byte(": "))
	if !found {
		return op, rest, false
	}
	op.Name = name
	count, ok := value(values, "req_count=")
	var oks [4]bool
	op.Requests = int64(count)
	op.Rate, oks[0] = value(values, "req/min=")
	op.Avg, oks[1] = value(values, "avg_time=")
	op.Max, oks[2] = value(values, "max_time=")
	op.Min, oks[3] = value(values, "min_time=")
	op.Rate /= 60
	return op, rest, ok && oks == [4]bool{true, true, true, true}
}

// value reads the number after a key in b, up to a unit (s), comma, semicolon or blank; false: none.
func value(b []byte, key string) (float64, bool) {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return 0, false
	}
	b = b[i+len(key):]
	n := bytes.IndexAny(b, ",;s \t\r")
	if n < 0 {
		n = len(b)
	}
	return number(b[:n], 1)
}
