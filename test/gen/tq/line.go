package tq

import (
	"strconv"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// lineKind names the lines of verl/utils/transferqueue_utils.py @c55ddc26, and verl's lines around them.
type lineKind int

// The lines.
const (
	lineStart lineKind = iota
	lineGetting
	lineGetStart
	lineClientGetStart
	lineClientGetEnd
	lineGetEnd
	lineComputeStart
	lineComputeEnd
	linePutStart
	linePutting
	lineClientPutStart
	lineClientPutEnd
	linePutEnd
	lineEnd
)

// line logs one message of a call; perf is the clock reading in the line (wall time) and ns the duration, if the line has one.
func (s *sim) line(w *Worker, kind lineKind, c *call, perf, ns int64) {
	at := s.logged(w)
	s.counts.EndUnixNano = max(s.counts.EndUnixNano, at)
	physical := int64(1)
	level := "INFO:"
	switch kind {
	case lineGetting:
		s.counts.Neighbours++
	case linePutting:
		physical = 2
		s.counts.Neighbours += 2
	case lineClientGetStart, lineClientGetEnd, lineClientPutStart, lineClientPutEnd:
		level = "DEBUG:"
		s.counts.Detail++
	default:
		s.counts.Trace++
	}
	s.counts.Lines += physical
	if s.sink == nil {
		return
	}
	k := s.sink
	k.Wait(at)
	b := k.prefix(k.Buf[:0], w, level, at)
	f := &c.truth
	switch kind {
	case lineGetting:
		b = appendGetting(b, f, c.order)
		k.Buf = k.Write(w.out, b, 1)
		return
	case linePutting:
		b = append(b, "Task "...)
		b = append(b, f.Func...)
		b = append(b, " (pid="...)
		b = strconv.AppendInt(b, int64(f.PID), 10)
		b = append(b, ") putting output data to TransferQueue with batch_size=torch.Size(["...)
		b = strconv.AppendInt(b, int64(f.BatchSize), 10)
		b = append(b, "]),\n"...)
		b = append(b, w.rayPrefix...) // Ray prefixes every physical line, Python's logging does not
		b = append(b, tensorKeys(f.Func)...)
		k.Buf = k.Write(w.out, b, 2)
		return
	}
	size := c.getBytes
	if kind == lineClientPutStart || kind == lineClientPutEnd {
		size = c.putBytes
	}
	k.Buf = k.Write(w.out, appendLine(b, kind, f, logfile.Micros(perf-w.boot), ns, size), 1)
}

// appendLine prints a line of function f without its prefix: perf is the reading of perf_counter in µs, ns the duration of the ended stage and size the bytes
// of a client operation, each for the kinds of lines with such a field.
func appendLine(b []byte, kind lineKind, f *Function, perf, ns, size int64) []byte {
	switch kind {
	case lineClientGetStart, lineClientGetEnd, lineClientPutStart, lineClientPutEnd:
		b = append(b, "[TQ-DETAIL] trace_id="...)
	default:
		b = append(b, "[TQ-TRACE] trace_id="...)
	}
	b = append(b, f.TraceID...)
	if kind != lineClientGetStart && kind != lineClientGetEnd {
		b = append(b, " | func="...)
		b = append(b, f.Func...)
	}
	if kind == lineStart || kind == lineClientPutStart || kind == lineClientPutEnd {
		b = append(b, " | pid="...)
		b = strconv.AppendInt(b, int64(f.PID), 10)
	}
	b = append(b, " | stage="...)
	switch kind {
	case lineStart:
		b = append(b, "FUNCTION_START"...)
	case lineGetStart, lineClientGetStart:
		if kind == lineClientGetStart {
			b = append(b, "TQ_CLIENT_"...)
		}
		b = append(b, "GET_START | batch_size="...)
		b = strconv.AppendInt(b, int64(f.BatchSize), 10)
	case lineClientGetEnd:
		b = appendDuration(append(b, "TQ_CLIENT_GET_END"...), "duration", ns)
		b = append(b, " | data_size_mb="...)
		b = logfile.AppendHundredths(b, mebiHundredths(size))
	case lineGetEnd:
		b = appendDuration(append(b, "GET_END"...), "duration", ns)
	case lineComputeStart:
		b = append(b, "COMPUTE_START"...)
	case lineComputeEnd:
		b = appendDuration(append(b, "COMPUTE_END"...), "duration", ns)
	case linePutStart:
		b = append(b, "PUT_START"...)
	case lineClientPutStart:
		b = append(b, "TQ_CLIENT_PUT_START | batch_size=torch.Size(["...)
		b = strconv.AppendInt(b, int64(f.BatchSize), 10)
		b = append(b, "]) | data_size_mb="...)
		b = logfile.AppendHundredths(b, mebiHundredths(size))
	case lineClientPutEnd:
		b = appendDuration(append(b, "TQ_CLIENT_PUT_END"...), "duration", ns)
		b = append(b, " | throughput_mbps="...)
		b = appendThroughput(b, size, ns)
	case linePutEnd:
		b = appendDuration(append(b, "PUT_END"...), "duration", ns)
	case lineEnd:
		b = appendDuration(append(b, "FUNCTION_END"...), "total_duration", ns)
		b = append(b, " | get_ratio="...)
		b = append(b, f.Ratios.Get.Printed...)
		b = append(b, "% | compute_ratio="...)
		b = append(b, f.Ratios.Compute.Printed...)
		b = append(b, "% | put_ratio="...)
		b = append(b, f.Ratios.Put.Printed...)
		b = append(b, '%')
	}
	b = append(b, " | timestamp="...)
	return logfile.AppendSeconds(b, perf)
}

func appendGetting(b []byte, f *Function, order int64) []byte {
	b = append(b, "Task "...)
	b = append(b, f.Func...)
	b = append(b, " (pid="...)
	b = strconv.AppendInt(b, int64(f.PID), 10)
	b = append(b, ") is getting len_samples="...)
	b = strconv.AppendInt(b, int64(f.BatchSize), 10)
	b = append(b, ", global_idx=["...)
	base := order % 100_000 * int64(f.BatchSize)
	for i := range f.BatchSize {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, base+int64(i), 10)
	}
	return append(b, ']')
}

func tensorKeys(fn string) string {
	switch fn {
	case "generate_sequences", "rollout":
		return "tensordict keys=['prompts', 'responses', 'response_mask', 'input_ids', 'attention_mask', 'position_ids']"
	case "compute_log_prob":
		return "tensordict keys=['old_log_probs', 'entropys']"
	}
	return "tensordict keys=['" + fn + "']"
}

func appendDuration(b []byte, name string, ns int64) []byte {
	b = append(b, " | "...)
	b = append(b, name...)
	b = append(b, '=')
	b = logfile.AppendSeconds(b, logfile.Micros(ns))
	return append(b, 's')
}

// mebiHundredths is a size in hundredths of a MiB, rounded: data_size_mb is bytes / 2^20 with two decimals.
func mebiHundredths(size int64) int64 { return (size*100 + 1<<19) >> 20 }

func appendThroughput(b []byte, size, ns int64) []byte {
	return strconv.AppendFloat(b, float64(size)/(1<<20)/(float64(ns)/1e9), 'f', 2, 64)
}

func appendPercent(b []byte, part, whole int64) []byte {
	return strconv.AppendFloat(b, float64(part)/float64(whole)*100, 'f', 2, 64)
}
