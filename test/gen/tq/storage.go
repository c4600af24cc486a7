package tq

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// storage is a storage unit of TransferQueue, with periodic reports.
type storage struct {
	Worker
	unit     string
	gets     []int64 // ns of its requests since the last report
	puts     []int64
	reported int64 // wall time of the last report
}

// report is IntervalPerfMonitor._flush_logs of transfer_queue/utils/perf_utils.py, through utils/logging_utils.py, of Ascend/TransferQueue @b75d570d: three
// physical lines. The original reports every five minutes, the simulation after each batch.
func (s *sim) report() {
	u := s.unit
	if u == nil || len(u.gets)+len(u.puts) == 0 {
		return
	}
	u.now = max(u.now, s.now)
	at := s.logged(&u.Worker)
	minutes := float64(at-u.reported) / 60e9
	u.reported = at
	s.counts.EndUnixNano = max(s.counts.EndUnixNano, at)
	s.counts.Lines += 3
	s.counts.Neighbours += 3
	if s.sink != nil {
		k := s.sink
		k.Wait(at)
		all := slices.Concat(u.gets, u.puts)
		r := StorageReport{
			Unit: u.unit, EndUnixNano: at - at%1e6, Minutes: decimals(minutes, 2), Requests: len(all), PerMinute: decimals(float64(len(all))/minutes, 2),
			Average: decimals(mean(all), 4),
		}
		for _, op := range []struct {
			name  string
			times []int64
		}{{"GET_DATA", u.gets}, {"PUT_DATA", u.puts}} {
			if len(op.times) > 0 {
				r.Operations = append(r.Operations, StorageOperation{
					Name: op.name, Requests: len(op.times), PerMinute: decimals(float64(len(op.times))/minutes, 2), Average: decimals(mean(op.times), 6),
					Max: decimals(float64(slices.Max(op.times))/1e9, 6), Min: decimals(float64(slices.Min(op.times))/1e9, 6),
				})
			}
		}
		b := k.Text(string(u.rayPrefix))
		b = append(k.stamp.Append(b, at), " - INFO - transfer_queue.utils.perf_utils - "...)
		b = fmt.Appendf(b, "%s: [Performance] Total success requests: %d, Total req/min: %s, Total avg process time: %ss; \n",
			r.Unit, r.Requests, r.PerMinute, r.Average)
		b = fmt.Appendf(b, "%sTime range: last %s minutes; \n", u.rayPrefix, r.Minutes)
		b = append(append(b, u.rayPrefix...), "Per-operation statistics: "...)
		for i, op := range r.Operations {
			if i > 0 {
				b = append(b, "; "...)
			}
			b = fmt.Appendf(b, "%s: req_count=%d, req/min=%s, avg_time=%ss, max_time=%ss, min_time=%ss", op.Name, op.Requests, op.PerMinute, op.Average, op.Max, op.Min)
		}
		k.Buf = k.Write(u.out, b, 3)
		s.counts.Storage = append(s.counts.Storage, r)
	}
	u.gets, u.puts = u.gets[:0], u.puts[:0]
}

func decimals(v float64, n int) string { return string(writer.AppendPython(nil, v, 'f', n)) }

// mean is in seconds.
func mean(ns []int64) float64 {
	sum := int64(0)
	for _, v := range ns {
		sum += v
	}
	return float64(sum) / float64(len(ns)) / 1e9
}

// cost logs how long a task took to get its input, or to put its output: tqbridge of verl/utils/transferqueue_utils.py of verl-project/verl @0abc9fb3, and the
// version before.
func (s *sim) cost(w *Worker, c *call, put bool, ns int64) {
	at := s.logged(w)
	s.counts.EndUnixNano = max(s.counts.EndUnixNano, at)
	s.counts.Lines++
	s.counts.Neighbours++
	if put {
		s.unit.puts = append(s.unit.puts, ns)
	} else {
		s.unit.gets = append(s.unit.gets, ns)
	}
	if s.sink == nil {
		return
	}
	k, f := s.sink, &c.truth
	k.Wait(at)
	b := fmt.Appendf(k.prefix(k.Buf[:0], w, "INFO:", at), "Task %s (pid=%d) is ", f.Func, f.PID)
	printed := string(logfile.AppendRepr(nil, float64(ns)/1e9))
	if put {
		f.PutCost = printed
		b = append(b, "writing to TransferQueue, cost time: "...)
		b = append(append(b, printed...), "s)"...) // the original's closing parenthesis
	} else {
		f.GetCost = printed
		b = strconv.AppendInt(append(b, "getting len_samples="...), int64(f.BatchSize), 10)
		b = append(append(b, ", cost time: "...), printed...)
	}
	k.Buf = k.Write(w.out, b, 1)
}
