package vccl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// show writes the known values of an operation.
func show(o *op.Op) string {
	var s strings.Builder
	s.WriteString(o.Kind.String())
	if o.Kind == op.Other {
		fmt.Fprintf(&s, "%q", o.Name)
	}
	switch {
	case o.Ordinal && o.HasSeq:
		fmt.Fprintf(&s, " #%d", o.Seq)
	case o.Ordinal:
		fmt.Fprintf(&s, " (#%d)", o.Seq)
	case o.HasSeq:
		fmt.Fprintf(&s, " =%d", o.Seq)
	}
	if len(o.Comm) > 0 {
		fmt.Fprintf(&s, " in %s", o.Comm)
	}
	if o.Rank != op.Unknown {
		fmt.Fprintf(&s, " of %d", o.Rank)
	}
	if len(o.Host) > 0 {
		fmt.Fprintf(&s, " on %s", o.Host)
	}
	fmt.Fprintf(&s, " [%d %d]", o.Start, o.End)
	number := func(name string, v int64) {
		if v != op.Unknown {
			fmt.Fprintf(&s, " %s=%d", name, v)
		}
	}
	number("took", o.Duration)
	number("size", o.Size)
	if o.Total != o.Size {
		fmt.Fprintf(&s, " total=%d", o.Total)
	}
	number("from", int64(o.Source))
	number("to", int64(o.Destination))
	number("peer", int64(o.Peer))
	number("channel", int64(o.Channel))
	number("stream", o.Stream)
	if len(o.Algorithm) > 0 {
		fmt.Fprintf(&s, " %s", o.Algorithm)
	}
	if !math.IsNaN(o.ReportedAlg) {
		fmt.Fprintf(&s, " %.12g(%s)", o.ReportedAlg, o.ReportedUnit)
	}
	if o.Errors+o.Retries > 0 {
		fmt.Fprintf(&s, " errors=%d retries=%d", o.Errors, o.Retries)
	}
	if o.Sends > 0 {
		fmt.Fprintf(&s, " sends=%d mean=%.12g least=%.12g", o.Sends, o.LinkBandwidth, o.LinkBandwidthWorst)
	}
	for i := range o.Details {
		d := &o.Details[i]
		fmt.Fprintf(&s, " {%s %d: %s %d By to %d in %d}", d.Name, d.Channel, d.Direction, d.Size, d.Peer, d.Duration)
	}
	return s.String()
}

func showSample(x *parse.Sample) string {
	s := fmt.Sprintf("%s=%.12g at %d", x.Metric, x.Value, x.At)
	if x.FromEnd {
		s += "?"
	}
	if x.HasKind {
		s += " " + x.Kind.String()
	}
	if x.Source != op.Unknown {
		s += fmt.Sprintf(" %d→%d", x.Source, x.Destination)
	}
	if len(x.Comm) > 0 {
		s += " in " + string(x.Comm)
	}
	if x.Statistic != "" {
		s += " " + x.Statistic
	}
	if len(x.Host) > 0 {
		s += " on " + string(x.Host)
	}
	if x.Rank != op.Unknown {
		s += fmt.Sprintf(" of %d", x.Rank)
	}
	return s
}

// given is a line as passed to a parser.
type given struct {
	text  string
	again bool
	tag   uint64
	file  bool // another file begins with the line
}

func lines(text string) (out []given) {
	for s := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		out = append(out, given{text: s})
	}
	return out
}

// part is the output that leaves together, with the lines that a handler holds for it.
type part struct {
	ops     []string
	samples []string
	lines   []int
}

// account is the result of a stream.
type account struct {
	verdicts map[string]int // "record", "ignored blank", …
	parts    []part
	open     []int    // lines still held
	tags     []uint64 // of lines
	left     part     // at the end
}

func (a *account) ops() (all []string) {
	for _, p := range append(a.parts, a.left) {
		all = append(all, p.ops...)
	}
	return all
}

func (a *account) samples() (all []string) {
	for _, p := range append(a.parts, a.left) {
		all = append(all, p.samples...)
	}
	return all
}

func (a *account) total() (n int) {
	for _, v := range a.verdicts {
		n += v
	}
	return n
}

// collect copies the content of out.
func collect(out *parse.Out) (p part) {
	for i := range out.Ops {
		p.ops = append(p.ops, show(&out.Ops[i]))
	}
	for i := range out.Samples {
		p.samples = append(p.samples, showSample(&out.Samples[i]))
	}
	return p
}

// parseAll passes lines to a parser, and holds lines as the receiver's handler does: operations that come with an Open line are of the lines before.
func parseAll(tb testing.TB, p parse.Parser, in []given, after func(i int)) *account {
	tb.Helper()
	a := &account{verdicts: make(map[string]int)}
	var out parse.Out
	room := make([]byte, 0, 1<<10)
	for i, l := range in {
		out.Reset()
		if l.file {
			p.(interface{ NewFile() }).NewFile()
		}
		room = append(room[:0], l.text...)
		v, reason := p.Line(room, l.again, l.tag, &out)
		got := collect(&out)
		for j := range room { // anything kept by the parser must not be a part of the line
			room[j] = 'X'
		}
		a.tags = append(a.tags, out.Tag)
		switch v {
		case parse.Record:
			require.Empty(tb, reason, l.text)
			a.verdicts["record"]++
		case parse.Ignored:
			a.verdicts["ignored "+reason]++
		case parse.Rejected:
			a.verdicts["rejected "+reason]++
		}
		if v != parse.Record {
			require.NotEmpty(tb, reason, l.text)
		}
		last := v == parse.Record && !out.Open
		if last {
			a.open = append(a.open, i)
		}
		if len(got.ops)+len(got.samples) > 0 {
			got.lines, a.open = a.open, nil
			a.parts = append(a.parts, got)
		} else {
			require.False(tb, last, "a record that says nothing: %s", l.text)
		}
		if v == parse.Record && out.Open {
			a.open = append(a.open, i)
		}
		if after != nil {
			after(i)
		}
	}
	require.Equal(tb, len(in), a.total())
	out.Reset()
	p.End(&out)
	a.left = collect(&out)
	a.left.lines = a.open
	return a
}

// restarts reads in with one restart at every line: the parts not accepted by then (at random) are read again. The output after the restart must equal the
// output without it, plus the parts that were not accepted.
func restarts(t *testing.T, create func() parse.Parser, in []given, key func(ops []string) any) {
	t.Helper()
	whole := parseAll(t, create(), in, nil)
	rng := rand.New(rand.NewPCG(7, 7))
	for at := range in {
		for range 4 {
			var state []byte
			p := create()
			first := parseAll(t, p, in[:at+1], func(i int) {
				if i == at {
					state = p.Save()
				}
			})
			var want []string
			var second []given
			held := map[int]bool{}
			for _, i := range first.open {
				held[i] = true
			}
			for _, part := range first.parts {
				if rng.IntN(2) == 0 {
					want = append(want, part.ops...)
					for _, i := range part.lines {
						held[i] = true
					}
				}
			}
			for i := range in[:at+1] {
				if held[i] {
					second = append(second, given{text: in[i].text, again: true, tag: first.tags[i]})
				}
			}
			second = append(second, in[at+1:]...)
			n := 0
			for _, part := range first.parts {
				n += len(part.ops)
			}
			want = append(want, whole.ops()[n:]...)
			p = create()
			if state != nil {
				p.Restore(state)
			}
			got := parseAll(t, p, second, nil).ops()
			require.Equal(t, key(want), key(got), "restart after line %d: %s", at, in[at].text)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]int32{
		"/a/rank_0.json": 0, "rank_12.jsonl": 12, "rank_3.json.1": 3, "rank-7.csv.gz": 7, "rank5.json": 5, "telemetry_rank_31.json": 31,
		"rank.json": op.Unknown, "0.json": op.Unknown, "rank_99999999999.json": op.Unknown, "/rank_3/x.json": op.Unknown, "": op.Unknown,
	} {
		assert.Equal(t, want, rankOf(name), name)
	}
	for name, want := range map[string]string{
		"/t/node01-mlx5_0-Port0-A.log": "node01", "gpu-node-7-mlx5_bond_1-Port13-B.log": "gpu-node-7", "node01_mlx5_0_Port0_A.log": "node01",
		"gpu-7_mlx5_bond_0_Port1_B.log.gz":             "gpu-7",
		"GENERATED_observe1_node01-mlx5_0-Port0-A.log": "GENERATED_observe1_node01", "x.log": "", "node01-Port0-A.log": "", "node01-mlx5_0-Port-A.log": "",
		"node01-mlx5_0-Port0.log": "", "": "",
	} {
		assert.Equal(t, want, string(hostOf(name)), name)
	}
	for name, want := range map[string]op.Kind{
		"allreduce": op.AllReduce, "all_reduce": op.AllReduce, "AllReduce": op.AllReduce, "ncclAllReduce": op.AllReduce, "ALL-REDUCE": op.AllReduce,
		"allgather":      op.AllGather,
		"reduce_scatter": op.ReduceScatter, "broadcast": op.Broadcast, "Bcast": op.Broadcast, "reduce": op.Reduce, "alltoall": op.AllToAll,
		"all_to_all": op.AllToAll, "gather": op.Gather,
		"scatter": op.Scatter, "ncclSend": op.Send, "recv": op.Recv, "sendrecv": op.SendRecv, "send_recv": op.SendRecv, "barrier": op.Other, "": op.Other,
		"nccl": op.Other,
		"a_very_long_name_that_is_no_operation_of_nccl_at_all": op.Other,
	} {
		assert.Equal(t, want, kindOf([]byte(name)), name)
	}
	assert.Equal(t, op.AllReduce, funcKind(4))
	assert.Equal(t, op.Recv, funcKind(7))
	assert.Equal(t, op.Other, funcKind(8))
	assert.Equal(t, op.Other, funcKind(math.MaxUint64))
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]string{
		`{"timestamp": 1693958400.123, "rank": 0`: "json",
		`{`:                            "json",
		`[`:                            "json",
		"\xef\xbb\xbf [{ ":             "json",
		`[{"operation": "allreduce"}]`: "json",
		`{"version": 1, "operation": "allreduce"}`: "json",
		`{"header":{"id":"0x9e7a479f95a66c"}}`:     "",
		`{"loss": 2}`:                              "",
		`[INFO] x`:                                 "",
		`{"`:                                       "",
		`rank,operation,timestamp`:                 "csv",
		` "Operation" , duration_us`:               "csv",
		`operation,rank`:                           "",
		flowHeader + "\r":                          "flow",
		`20260108180000,1,0,8,0,4,118,10.10.1.11,10.10.1.12,181,12,0,1767866400000062445`: "flow",
		`64 bits data: status(63) | bandwidth(62 - 54) | timestamp(53 - 0) `:              "packed",
		`64 bits data: timestamp(63-10) | bandwidth(9-1) | status(0) `:                    "packed",
		`9601674407965897472`:          "packed",
		`12345`:                        "",
		`99999999999999999999`:         "", // beyond 64 bits
		meanHeader:                     "mean",
		`20260112140501,0,4,187,181,1`: "mean",
		`20250710143000: Group:1, from rank 0 to rank 8`: "text",
		`2025071014300x: Group:1, from rank 0 to rank 8`: "",
		``:                          "",
		` `:                         "",
		"\x00\x00\x00" + meanHeader: "mean",
		"{\x00\x01\x02}":            "",
		"\xff\xfe\xfd\xfc\xfb\xfa":  "",
		"2026/08/22 hello":          "",
	} {
		assert.Equal(t, want, sniffed(t, text).name, text)
	}
}
