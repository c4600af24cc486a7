package flightrecorder

import (
	"math"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	fr "github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/spans"
)

// entry is an entry of a dump.
type entry struct {
	*fr.Entry
	end  *entry // of an entry of a coalesced launch: the last entry, with state and times; nil: the entry is alone, or the dump lacks the last
	over bool   // the entry makes no operation of its own: an end, or a collective that is merged into another
}

// launch is the identity of a kernel launch, common to its entries.
type launch struct {
	comm string
	p2p  bool
	seq  fr.Integer
}

// launch returns the launch of an entry. ok is false if the entry has no number: which launch is then unknown.
func (e *entry) launch() (l launch, ok bool) {
	if e.IsP2P {
		return launch{e.comm(), true, e.P2P}, e.P2P > 0
	}
	return launch{e.comm(), false, e.Collective}, e.Collective > 0 // numbers begin with 1
}

// comm names the process group by id and description: "0:default_pg".
func (e *entry) comm() string {
	switch len(e.ProcessGroup) {
	case 0:
		return strconv.FormatInt(int64(e.PGID), 10)
	case 1:
		return string(e.ProcessGroup[0])
	}
	return string(e.ProcessGroup[0]) + ":" + string(e.ProcessGroup[1])
}

// gone reports whether gloo has finished an entry. Gloo sets no state: a retired entry is completed or has timed out, and the other ranks show the difference.
func (e *entry) gone() bool {
	return e.Retired && e.State == "scheduled" && strings.HasPrefix(string(e.Name), "gloo:")
}

const nameCoalesced = "coalesced"

// ends reports whether an entry is the end of a coalesced launch: "nccl:coalesced", without tensors.
func (e *entry) ends() bool {
	return strings.HasSuffix(string(e.Name), nameCoalesced) && len(e.InputSizes) == 0 && len(e.OutputSizes) == 0
}

// entries adds the operations of a dump to out: one for each entry, but one for all collectives of a coalesced launch, and none for the end of a launch and for
// entries without a name.
func (p *Parser) entries(d *fr.Dump, out *parse.Out) {
	list, launches, latest := coalesced(d)
	for i := range list {
		e := &list[i]
		if e.Name == "" || e.over {
			continue
		}
		o := p.operation(d, e, latest, out)
		l, ok := e.launch()
		if !ok || l.p2p {
			continue
		}
		all := launches[l]
		o.HasSeq = len(all) == 1 || e.end != nil // several entries without an end: the launch is cut off by the dump
		if e.end != nil {
			for _, more := range all[1 : len(all)-1] {
				merge(o, more)
			}
		}
	}
}

// coalesced lists the entries of a dump, with end and over set for those of coalesced launches, and returns the entries by launch, and the latest time in the
// dump, Unix ns.
func coalesced(d *fr.Dump) (list []entry, launches map[launch][]*entry, latest fr.Integer) {
	launches = make(map[launch][]*entry, len(d.Entries))
	batches := map[launch][]*entry{} // sends and receives, by the number that they have as a collective
	list = make([]entry, len(d.Entries))
	for i := range list {
		e := &list[i]
		e.Entry = &d.Entries[i]
		latest = max(latest, e.Created, e.Started, e.Completed)
		l, ok := e.launch()
		if ok {
			launches[l] = append(launches[l], e)
		}
		// Until PyTorch 2.4 a batch of sends and receives counted as a collective: so did its end, and its parts have the number too.
		switch batch := (launch{comm: e.comm(), seq: e.Collective}); {
		case e.IsP2P:
			batches[batch] = append(batches[batch], e)
		case e.ends() && batches[batch] != nil:
			for _, part := range batches[batch] {
				part.end = e
			}
			e.over = true
		}
	}
	for l, all := range launches {
		last := all[len(all)-1]
		if len(all) == 1 || !last.ends() { // alone, or the dump lacks the end of the launch
			continue
		}
		last.over = true
		for _, part := range all[:len(all)-1] {
			part.end, part.over = last, !l.p2p && part != all[0] // sends and receives stay apart
		}
	}
	return list, launches, latest
}

// operation adds the operation of an entry to out. State and times are those of the last entry of its coalesced launch. latest, the latest time in the dump, is
// used as the time of the dump, which has no other clock: an operation is timed out if its timeout is over by then.
func (p *Parser) operation(d *fr.Dump, e *entry, latest fr.Integer, out *parse.Out) *op.Op {
	end := e
	if e.end != nil {
		end = e.end
	}
	o := out.Add()
	o.Comm = []byte(e.comm())
	var group fr.Ranks
	if len(e.ProcessGroup) > 0 {
		group = d.PGConfig[string(e.ProcessGroup[0])].Ranks
	}
	if len(e.ProcessGroup) > 1 {
		o.CommName = []byte(e.ProcessGroup[1])
	}
	o.CommSize = int32(len(group))
	o.Rank, o.Global = p.rank, p.rank >= 0
	var name, ends string
	o.Kind, name, ends = kindOf(string(e.Name))
	if o.Kind == op.Other {
		o.Name = []byte(name)
	}
	if o.Kind == op.Send || o.Kind == op.Recv {
		o.Peer = peerOf(ends, group)
	}
	if l, ok := e.launch(); ok {
		o.Seq, o.SeqOfAll = uint64(l.seq), !l.p2p
	}
	o.Size, o.Total = e.measure(o.Kind, int64(len(group)))
	o.Datatype = e.datatype()

	switch {
	case end.State == "completed", end.gone():
		o.State = op.Completed
	case end.State == "started":
		o.State = op.Started
	default:
		o.State = op.Scheduled
	}
	o.Start = int64(max(0, end.Started)) // as a thread of PyTorch saw it, up to a second late
	if o.Start == 0 {
		o.Start = int64(max(0, e.Created)) // the time of enqueueing
	}
	o.Time = spans.TimeLogged
	if o.Start == 0 {
		o.Time = spans.TimeSynthetic
	}
	if ms := end.Millis; ms != nil && *ms >= 0 && *ms < maxMillis { // not NaN
		o.Duration, o.Waits = int64(math.Round(float64(*ms)*1e6)), true
	}
	if o.State == op.Completed {
		o.End = int64(max(0, end.Completed))
		if o.Duration >= 0 && o.Start > 0 { // better than end.Completed, which is up to a second late
			o.End = o.Start + o.Duration
		}
	} else {
		// "A retired but not completed event has timed out" (FlightRecorder.hpp).
		o.TimedOut = end.Retired || end.TimeoutMS > 0 && end.TimeoutMS < maxMillis && end.Created > 0 && latest-end.Created > end.TimeoutMS*1e6
	}
	return o
}

// maxMillis bounds durations to three years, within the range of ns.
const maxMillis = 1e11

// merge adds another collective of a coalesced launch to the operation o: sizes are summed up; kinds that differ make the operation "coalesced".
func merge(o *op.Op, e *entry) {
	kind, name, _ := kindOf(string(e.Name))
	if kind != o.Kind || kind == op.Other && name != string(o.Name) {
		o.Kind, o.Name = op.Other, []byte(nameCoalesced)
	}
	size, total := e.measure(kind, int64(o.CommSize))
	o.Size, o.Total = sum(o.Size, size), sum(o.Total, total)
	if string(e.datatype()) != string(o.Datatype) {
		o.Datatype = nil
	}
}

// sum adds two sizes; op.Unknown if either is unknown.
func sum(a, b int64) int64 {
	if a < 0 || b < 0 || a > math.MaxInt64-b {
		return op.Unknown
	}
	return a + b
}

// measure returns the message size, By, and S of algbw = S/t (nccl-tests doc/PERFORMANCE.md): for AllGather a rank's output, for ReduceScatter a rank's input,
// for AllToAll (count × ranks in alltoall.cu) all sends of a rank; n is the number of ranks, 0: unknown. The root of Gather and Scatter has other tensors than
// the rest; the size is the common part.
func (e *entry) measure(k op.Kind, n int64) (size, total int64) {
	in, out := bytesOf(e.InputSizes, e.InputDtypes), bytesOf(e.OutputSizes, e.OutputDtypes)
	size = in
	if size < 0 {
		size = out
	}
	switch k {
	case op.AllReduce, op.Broadcast, op.Reduce, op.AllToAll, op.Send, op.Recv:
		return size, size
	case op.ReduceScatter:
		if in < 0 {
			return size, times(out, n)
		}
		return size, in
	case op.AllGather:
		if out < 0 {
			return size, times(in, n)
		}
		return size, out
	case op.Gather:
		return size, times(in, n)
	case op.Scatter:
		if out < 0 {
			return size, in // the root's tensors for all
		}
		return out, times(out, n)
	}
	return size, op.Unknown
}

// times returns a size times a number of ranks; op.Unknown if either is unknown, or the product too large.
func times(size, n int64) int64 {
	if size < 0 || n <= 0 || size > math.MaxInt64/n {
		return op.Unknown
	}
	return size * n
}

// bytesOf returns the size in bytes of all tensors together, by the dimensions and the data type of each; op.Unknown without tensors, or if one has an unknown
// type or size.
func bytesOf(sizes [][]int64, dtypes []fr.Text) int64 {
	if len(sizes) == 0 || len(sizes) != len(dtypes) {
		return op.Unknown
	}
	all := int64(0)
	for i, dims := range sizes {
		size := elementBytes(string(dtypes[i]))
		if size == 0 {
			return op.Unknown
		}
		for _, dim := range dims {
			if dim == 0 { // an empty tensor; for times, 0 is unknown
				size = 0
				break
			}
			size = times(size, dim)
			if size < 0 {
				return op.Unknown
			}
		}
		all = sum(all, size)
		if all < 0 {
			return op.Unknown
		}
	}
	return all
}

// elementBytes returns the size of an element of a c10::ScalarType by its name (c10/core/ScalarType.h); 0: unknown.
func elementBytes(dtype string) int64 {
	switch dtype {
	case "Byte", "Char", "Bool", "QInt8", "QUInt8", "Float8_e5m2", "Float8_e4m3fn", "Float8_e5m2fnuz", "Float8_e4m3fnuz", "Float8_e8m0fnu", "Bits8":
		return 1
	case "Half", "BFloat16", "Short", "UInt16", "Bits16":
		return 2
	case "Float", "Int", "UInt32", "QInt32", "ComplexHalf":
		return 4
	case "Double", "Long", "UInt64", "ComplexFloat":
		return 8
	case "ComplexDouble":
		return 16
	}
	return 0
}

// datatype returns the common data type of all tensors of an entry, nil if they differ.
func (e *entry) datatype() []byte {
	all := e.InputDtypes
	if len(all) == 0 {
		all = e.OutputDtypes
	}
	if len(all) == 0 {
		return nil
	}
	for _, d := range all[1:] {
		if d != all[0] {
			return nil
		}
	}
	return []byte(all[0])
}

// kindOf reads a profiling_name of PyTorch's process groups (ProcessGroupNCCL.cpp, ProcessGroupXCCL.cpp, ProcessGroupGloo.cpp): "nccl:_all_gather_base",
// "nccl:send 0->1". name is without the backend, ends is the rest.
func kindOf(profiling string) (k op.Kind, name, ends string) {
	name = profiling
	if _, after, ok := strings.Cut(name, ":"); ok {
		name = after
	}
	name, ends, _ = strings.Cut(name, " ")
	switch name {
	case "all_reduce", "allreduce", "all_reduce_barrier", "all_reduce_sparse", "allreduce_coalesced", "all_reduce_coalesced":
		return op.AllReduce, name, ends
	case "all_gather", "allgather", "_all_gather_base", "_allgather_base", "all_gather_into_tensor", "all_gather_into_tensor_coalesced",
		"allgather_into_tensor_coalesced":
		return op.AllGather, name, ends
	case "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor", "reduce_scatter_tensor_coalesced":
		return op.ReduceScatter, name, ends
	case "broadcast", "_broadcast_oop":
		return op.Broadcast, name, ends
	case "reduce", "_reduce_oop":
		return op.Reduce, name, ends
	case "all_to_all", "alltoall", "all_to_all_single", "alltoall_base", "all_to_all_base":
		return op.AllToAll, name, ends
	case "gather":
		return op.Gather, name, ends
	case "scatter":
		return op.Scatter, name, ends
	case "send":
		return op.Send, name, ends
	case "recv":
		return op.Recv, name, ends
	}
	return op.Other, name, ends
}

// peerOf reads the peer in "0->1" or "0<-1", a rank of the group, as a global rank where the group's ranks are known.
func peerOf(ends string, group fr.Ranks) int32 {
	i := strings.LastIndexAny(ends, ">-") // of -> or <-
	n, err := strconv.ParseInt(ends[i+1:], 10, 31)
	if i < 1 || err != nil || n < 0 {
		return op.Unknown
	}
	if int(n) < len(group) {
		return group[n]
	}
	return int32(n)
}
