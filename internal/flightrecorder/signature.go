package flightrecorder

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// signature is an entry without its number and state.
type signature struct {
	Operation
	op        string // without the backend: all_reduce, send
	src, dst  int    // of a send or a receive, ranks of the group; -1: unknown
	in, out   int64  // elements of the first input and of the first output
	timeoutMS int64
}

// signatureOf returns the signature of an entry. The name of a send or a receive has the ranks: "nccl:send 0->1", "nccl:recv 1<-0".
func signatureOf(e *Entry) signature {
	s := signature{Operation: Operation{
		Name: string(e.Name), InputSizes: e.InputSizes, OutputSizes: e.OutputSizes, InputDtypes: e.InputDtypes, OutputDtypes: e.OutputDtypes,
	}, src: -1, dst: -1, timeoutMS: int64(e.TimeoutMS), in: firstElements(e.InputSizes), out: firstElements(e.OutputSizes)}
	name := s.Name[strings.LastIndexByte(s.Name, ':')+1:]
	var ends string
	s.op, ends, _ = strings.Cut(name, " ")
	if from, to, ok := strings.Cut(ends, "->"); ok && s.op == "send" {
		s.src, s.dst = number(from), number(to)
	} else if to, from, ok := strings.Cut(ends, "<-"); ok && s.op == "recv" {
		s.src, s.dst = number(from), number(to) // from is ? where any rank may send
	}
	return s
}

// number reads a rank of the group; -1: s is no rank.
func number(s string) int {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		return -1
	}
	return int(n)
}

// firstElements returns the number of elements of the first tensor; 0: no tensor.
func firstElements(sizes [][]int64) int64 {
	if len(sizes) == 0 {
		return 0
	}
	return product(sizes[0])
}

// allElements returns the number of elements of all tensors together.
func allElements(sizes [][]int64) (n int64) {
	for _, dims := range sizes {
		n += product(dims)
	}
	return n
}

// product returns the number of elements of a tensor with the given dimensions; 1 without a dimension, as of a scalar.
func product(dims []int64) int64 {
	n := int64(1)
	for _, dim := range dims {
		n = times(n, dim)
	}
	return n
}

// times multiplies; all products beyond 63 bits, and of negative numbers, are math.MaxInt64.
func times(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	if a < 0 || b < 0 || a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// operation returns the operation with the state of a record.
func (s *signature) operation(state uint8) Operation {
	o := s.Operation
	o.State = states[state]
	return o
}

// uneven reports whether the tensors of the ranks may have different sizes.
func (s *signature) uneven() bool { return s.op == "all_to_all" || s.op == "all_to_all_single" }

// ends reports whether s is the end of a coalesced launch, without tensors.
func (s *signature) ends() bool {
	return s.op == "coalesced" || s.op == "ALLGATHER_coalesced" || s.op == "REDUCE_SCATTER_coalesced"
}

// differ returns the difference of two collectives of a group of n ranks, s being the reference: the mismatches of Op.match in
// torch/distributed/flight_recorder/components/types.py, in its order.
func (s *signature) differ(o *signature, n int64) What {
	is := func(names ...string) bool { return slices.Contains(names, s.op) }
	switch {
	case s.op != o.op:
		return Type
	case s.ends():
		return Same
	// Inputs and outputs are equal on all ranks, but for a scatter's inputs and a gather's outputs, which only the root has. An all-reduce gives what it gets,
	// an all-gather n times as much, a reduce-scatter an n-th.
	case !s.uneven() && !is("scatter") && !equal(s.InputSizes, o.InputSizes), !s.uneven() && !is("gather") && !equal(s.OutputSizes, o.OutputSizes),
		is("all_reduce", "allreduce_coalesced") && !equal(s.InputSizes, o.OutputSizes),
		is("all_gather", "_all_gather_base", "all_gather_into_tensor_coalesced") && !gathers(o.OutputSizes, s.InputSizes, n),
		is("reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced") && !gathers(o.InputSizes, s.OutputSizes, n):
		return Sizes
	// The data types of input and output, of the inputs of both ranks, and of the outputs of both.
	case !is("scatter", "gather", "broadcast") && differ(s.InputDtypes, s.InputSizes, s.OutputDtypes, s.OutputSizes),
		!is("scatter", "broadcast") && differ(s.InputDtypes, s.InputSizes, o.InputDtypes, o.InputSizes),
		!is("gather") && differ(s.OutputDtypes, s.OutputSizes, o.OutputDtypes, o.OutputSizes):
		return Dtypes
	}
	return Same
}

// equal reports whether two lists of tensors have the same shapes.
func equal(a, b [][]int64) bool { return slices.EqualFunc(a, b, slices.Equal[[]int64]) }

// gathers reports whether gathered, the tensors of all ranks together, fit n times shard, the tensors of one rank. They fit in one of two forms: the first
// tensor of gathered has n times the elements of the first of shard, or gathered has n tensors for each of shard, with n times the elements of all. Without a
// tensor on either side nothing is compared, and the result is true.
func gathers(gathered, shard [][]int64, n int64) bool {
	if len(gathered) == 0 || len(shard) == 0 {
		return true
	}
	oneTensor := firstElements(gathered) == times(firstElements(shard), n)
	tensorPerRank := int64(len(gathered)) == n*int64(len(shard)) && allElements(gathered) == times(allElements(shard), n)
	return oneTensor || tensorPerRank
}

// differ reports whether one of two lists of tensors has a data type that the other lacks. Without a dimension in the first tensor of either, nothing is
// compared.
func differ(a []Text, aSizes [][]int64, b []Text, bSizes [][]int64) bool {
	has := func(sizes [][]int64) bool { return len(sizes) > 0 && len(sizes[0]) > 0 }
	notIn := func(list []Text) func(Text) bool { return func(t Text) bool { return !slices.Contains(list, t) } }
	return has(aSizes) && has(bSizes) && (slices.ContainsFunc(a, notIn(b)) || slices.ContainsFunc(b, notIn(a)))
}

// pairs returns the difference of a send and a receive of one message.
func (s *signature) pairs(receive *signature) What {
	if !equal(s.InputSizes, receive.OutputSizes) {
		return Sizes
	}
	if differ(s.InputDtypes, s.InputSizes, receive.OutputDtypes, receive.OutputSizes) {
		return Dtypes
	}
	return Same
}
