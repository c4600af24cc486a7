package flightrecorder

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// writer writes pickles as PyTorch does: torch/csrc/jit/serialization/pickler.cpp.
type writer struct {
	b    []byte
	memo map[string]int
	next int
}

func (w *writer) op(op ...byte) { w.b = append(w.b, op...) }

func (w *writer) put() int {
	if w.next <= math.MaxUint8 {
		w.op('q', byte(w.next))
	} else {
		w.b = binary.LittleEndian.AppendUint32(append(w.b, 'r'), uint32(w.next))
	}
	w.next++
	return w.next - 1
}

func (w *writer) get(n int) {
	if n <= math.MaxUint8 {
		w.op('h', byte(n))
	} else {
		w.b = binary.LittleEndian.AppendUint32(append(w.b, 'j'), uint32(n))
	}
}

func (w *writer) text(s string) {
	if n, ok := w.memo[s]; ok {
		w.get(n)
		return
	}
	w.b = append(binary.LittleEndian.AppendUint32(append(w.b, 'X'), uint32(len(s))), s...)
	w.memo[s] = w.put()
}

func (w *writer) integer(n int64) {
	switch {
	case n >= 0 && n <= math.MaxUint8:
		w.op('K', byte(n))
	case n >= 0 && n <= math.MaxUint16:
		w.b = binary.LittleEndian.AppendUint16(append(w.b, 'M'), uint16(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		w.b = binary.LittleEndian.AppendUint32(append(w.b, 'J'), uint32(n))
	default:
		w.b = binary.LittleEndian.AppendUint64(append(w.b, 0x8a, 8), uint64(n))
	}
}

func (w *writer) boolean(is bool) {
	if is {
		w.op(0x88)
	} else {
		w.op(0x89)
	}
}

func (w *writer) time(n Integer) {
	if n == 0 {
		w.op('N')
	} else {
		w.integer(int64(n))
	}
}

func (w *writer) list(n int, item func(i int)) {
	w.op(']')
	if n > 0 {
		w.op('(')
		for i := range n {
			item(i)
		}
		w.op('e')
	}
}

func (w *writer) dict(n int, pair func(i int)) {
	w.op('}')
	if n > 0 {
		w.op('(')
		for i := range n {
			pair(i)
		}
		w.op('u')
	}
}

// pickled writes a dump as FlightRecorderDetail.hpp does, with frames.
func pickled(d *Dump) []byte {
	w := &writer{memo: map[string]int{}}
	w.op(0x80, 2, '}', '(')
	w.text("version")
	w.text(string(d.Version))
	w.text("pg_config")
	names := sortedKeys(d.PGConfig)
	w.dict(len(names), func(i int) {
		pg := d.PGConfig[names[i]]
		w.text(names[i])
		w.op('}', '(')
		for _, pair := range [][2]string{
			{"name", names[i]}, {"desc", string(pg.Desc)}, {"ranks", "[" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint([]int32(pg.Ranks))), ", "), "[]") + "]"},
		} {
			w.text(pair[0])
			w.text(pair[1])
		}
		w.op('u')
	})
	w.text("comm_lib_version")
	w.text("2.27.5")
	w.text("pg_status")
	ids := sortedKeys(d.PGStatus)
	w.dict(len(ids), func(i int) {
		s := d.PGStatus[ids[i]]
		w.text(ids[i])
		w.op('}', '(')
		w.text("last_enqueued_collective")
		w.integer(int64(s.Enqueued))
		w.text("last_started_collective")
		w.integer(int64(s.Started))
		w.text("last_completed_collective")
		w.integer(int64(s.Completed))
		w.op('u')
	})
	w.text("entries")
	var frames []int
	w.list(len(d.Entries), func(i int) {
		e := &d.Entries[i]
		w.op('}', '(')
		w.text("frames")
		w.list(8, func(i int) {
			if i < len(frames) {
				w.get(frames[i])
				return
			}
			w.op('}', '(')
			w.text("name")
			w.text("forward")
			w.text("filename")
			w.text(fmt.Sprintf("/opt/train/model_%d.py", i))
			w.text("line")
			w.integer(int64(100 * i))
			w.op('u')
			frames = append(frames, w.put())
		})
		w.entry(e)
		w.op('u')
	})
	w.op('u', '.')
	return w.b
}

func (w *writer) entry(e *Entry) {
	integer := func(key string, n Integer) {
		w.text(key)
		w.integer(int64(n))
	}
	tensors := func(which string, sizes [][]int64, dtypes []Text) {
		w.text(which + "_sizes")
		w.list(len(sizes), func(i int) { w.list(len(sizes[i]), func(j int) { w.integer(sizes[i][j]) }) })
		w.text(which + "_dtypes")
		w.list(len(dtypes), func(i int) { w.text(string(dtypes[i])) })
	}
	integer("record_id", e.RecordID)
	integer("pg_id", e.PGID)
	w.text("process_group")
	w.text(string(e.ProcessGroup[0]))
	w.text(string(e.ProcessGroup[1]))
	w.op(0x86)
	w.text("thread_name")
	w.text("pt_main_thread")
	w.text("thread_id")
	w.text("139837465720640")
	integer("collective_seq_id", e.Collective)
	integer("p2p_seq_id", e.P2P)
	integer("op_id", e.RecordID+1)
	w.text("profiling_name")
	w.text(string(e.Name))
	integer("time_created_ns", e.Created)
	if e.Millis != nil {
		w.text("duration_ms")
		w.b = binary.BigEndian.AppendUint64(append(w.b, 'G'), math.Float64bits(float64(*e.Millis)))
	}
	tensors("input", e.InputSizes, e.InputDtypes)
	tensors("output", e.OutputSizes, e.OutputDtypes)
	w.text("state")
	w.text(string(e.State))
	w.text("time_discovered_started_ns")
	w.time(e.Started)
	w.text("time_discovered_completed_ns")
	w.time(e.Completed)
	w.text("retired")
	w.boolean(e.Retired)
	integer("timeout_ms", e.TimeoutMS)
	w.text("is_p2p")
	w.boolean(e.IsP2P)
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
