package profiler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/spans"
)

var _ parse.Parser = (*Parser)(nil)

// seen is the output of a parser.
type seen struct {
	ops     []op.Op
	reasons map[string]int // of lines; "": records, "open": unfinished records
	groups  []int          // number of operations at a time
}

func (s *seen) take(out *parse.Out) {
	for i := range out.Ops {
		o := out.Ops[i]
		o.Comm, o.Name, o.Host, o.Datatype = bytes.Clone(o.Comm), bytes.Clone(o.Name), bytes.Clone(o.Host), bytes.Clone(o.Datatype)
		o.Algorithm, o.Protocol, o.Timing = bytes.Clone(o.Algorithm), bytes.Clone(o.Protocol), bytes.Clone(o.Timing)
		o.Details = slices.Clone(o.Details)
		o.ReportedAlg, o.ReportedBus = 0, 0 // NaN is not equal to itself
		s.ops = append(s.ops, o)
	}
}

func (s *seen) line(t *testing.T, p *Parser, text string, out *parse.Out) {
	t.Helper()
	out.Reset()
	line := []byte(text)
	v, reason := p.Line(line, false, 0, out)
	s.take(out)
	clear(line) // the parser must keep copies
	record := v == parse.Record
	if record != (reason == "") || !record && (out.Open || len(out.Ops) > 0) || out.Open && len(out.Ops) > 0 ||
		(v == parse.Rejected) != (reason == reasonNotJSON || reason == reasonField) {
		t.Errorf("verdict %d, reason %q, open %t, %d operations: %s", v, reason, out.Open, len(out.Ops), text)
	}
	if out.Open {
		reason = "open"
	}
	if len(out.Ops) > 0 {
		s.groups = append(s.groups, len(out.Ops))
	}
	s.reasons[reason]++
}

func read(t *testing.T, p *Parser, lines ...string) *seen {
	t.Helper()
	s, out := &seen{reasons: map[string]int{}}, &parse.Out{}
	for _, line := range lines {
		s.line(t, p, line, out)
	}
	out.Reset()
	p.End(out)
	s.take(out)
	if len(out.Ops) > 0 {
		s.groups = append(s.groups, len(out.Ops))
	}
	return s
}

func begin(cat, name string, id int, ts, args string) string {
	if args != "" {
		args = `, "args": {` + args + "}"
	}
	return fmt.Sprintf(`{"name": "%s", "cat": "%s", "ph": "b", "id": %d, "pid": 7, "tid": 1, "ts": %s%s},`, name, cat, id, ts, args)
}

func end(cat, name string, id int, ts string) string {
	return fmt.Sprintf(`{"name": "%s", "cat": "%s", "ph": "e", "id": %d, "pid": 7, "tid": 1, "ts": %s},`, name, cat, id, ts)
}

// in puts lines into a group and a call of the API.
func in(kind, name string, id int, lines ...string) []string {
	all := []string{
		begin("GROUP_API", "Group API", id, "1.000000", `"groupApiId": 0, "groupDepth":1`),
		begin("KERNEL_LAUNCH", "KernelLaunch", id, "0.000000", `"groupId": 0, "Stream": 0x2a`), end("KERNEL_LAUNCH", "KernelLaunch", id, "2.000000"),
		begin(kind+"_API", name, id, "0.000000", `"count": 4, "datatype": ncclFloat32, "GraphCaptured":0, "Stream": 0x2a`),
	}
	all = append(all, lines...)
	return append(all, end(kind+"_API", name, id, "99999.000000"), end("GROUP_API", "Group API", id, "99999.000000"))
}

func shared(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob("../../../../../shared/logs/nccl_example_profiler/" + pattern)
	require.NoError(t, err)
	return files
}

func linesOf(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// The real trace of 2.28: one group of 8 sends and receives by 4 GPUs of one process, with clocks up to 9 s apart. Numbers read by eye.
func TestReal228(t *testing.T) {
	for _, file := range shared(t, "real_v2.28*") {
		lines := linesOf(t, file)
		require.Len(t, lines, 312)
		s := read(t, New(file), lines...)
		assert.Equal(t, map[string]int{"open": 297, "": 1, reasonBracket: 2, reasonControl: 12}, s.reasons)
		require.Equal(t, []int{8}, s.groups)
		first := s.ops[0]
		assert.Len(t, first.Details, 16)
		assert.Equal(t, op.Detail{
			Name: spans.SpanNCCLChannel, Start: 1765223116927674080, Duration: op.Unknown, Channel: 16, Peer: op.Unknown, Step: op.Unknown, Size: op.Unknown,
			Under: op.Unknown,
		}, first.Details[0])
		first.Details = nil
		assert.Equal(t, op.Op{
			Comm: []byte("0xb0777fd29824eeb6"), Rank: 0, PID: 3937375, Kind: op.Send, Peer: 1, Source: op.Unknown, Destination: op.Unknown,
			Size: 1 << 30, Total: 1 << 30, Start: 1765223116927674016, Duration: op.Unknown, Time: spans.TimeAnchored,
			Datatype: []byte("ncclFloat32"), Channel: op.Unknown, Channels: 16, Stream: 0x4142e90,
		}, first)
		// The anchor is 1765223116927674080 − 1824045316.895. Rank 3's first kernel was seen at 1810754614.746, when its own clock was 4 s behind.
		assert.Equal(t, int64(1765223115103628763+1810754615), s.ops[6].Details[0].Start)
		assert.Equal(t, s.ops[6].Details[0].Start+(1765223112919376768-1765223112919376832), s.ops[6].Details[2].Start)

		// Everything else, compared with the result of a simple search for keys.
		at, channels := -1, 0
		for _, line := range lines {
			switch {
			case strings.Contains(line, `"cat": "P2P", "ph": "b"`):
				at++
				channels = 0
				o := s.ops[at]
				assert.Equal(t, number(t, line, "Rank"), int64(o.Rank))
				assert.Equal(t, number(t, line, "Peer"), int64(o.Peer))
				assert.Equal(t, []string{"Send", "Recv"}[at%2], o.Kind.String())
			case strings.Contains(line, `"name": "KernelCh", "cat": "GPU", "ph": "b"`):
				assert.Equal(t, number(t, line, "Channel"), int64(s.ops[at].Details[channels].Channel))
				channels++
			}
		}
		assert.Equal(t, 7, at)
	}
}

func number(t *testing.T, line, key string) int64 {
	t.Helper()
	_, after, ok := strings.Cut(line, `"`+key+`": `)
	require.True(t, ok)
	n, err := strconv.ParseInt(after[:strings.IndexAny(after, ",}")], 10, 64)
	require.NoError(t, err)
	return n
}

// The trace of the plugin's README: a part is missing and one quote is a curly one.
func TestReadme(t *testing.T) {
	for _, file := range shared(t, "readme*") {
		s := read(t, New(file), linesOf(t, file)...)
		// Rejected: RecvWait's begin and the note. Unmatched: its end and the ends of another AllReduce. The last bracket ends the unit.
		assert.Equal(t, map[string]int{"open": 39, "": 1, reasonBracket: 1, reasonNotJSON: 2, reasonUnmatched: 4}, s.reasons)
		require.Len(t, s.ops, 1)
		o := s.ops[0]
		assert.Equal(t, op.AllReduce, o.Kind)
		assert.Equal(t, "0x14ba61f9a096f33f", string(o.Comm))
		assert.Equal(t, []any{uint64(0), true, int32(0), int64(1 << 20), int64(1 << 20), "RING", "SIMPLE", int32(2), int64(0x5020000567d0), op.Started},
			[]any{o.Seq, o.HasSeq, o.Rank, o.Size, o.Total, string(o.Algorithm), string(o.Protocol), o.Channels, o.Stream, o.State})
		// One of the two kernels is in the trace, and stopped.
		assert.Equal(t, int64(1756135989724672000), o.Start)
		assert.Equal(t, int64(8159232), o.Duration)
		assert.True(t, o.Waits)
		const anchor = 1756135989724672000 - 119711888
		require.Len(t, o.Details, 1+4+11+2)
		assert.Equal(t, op.Detail{
			Name: spans.SpanNCCLProxyOp, Start: anchor + 119686301, End: anchor + 120165357, Duration: 479056, Channel: 0, Peer: 1, Step: op.Unknown, Size: 524288,
			Direction: "receive", Operation: "ProgressRecv", Under: op.Unknown,
		}, o.Details[2])
		assert.Equal(t, op.Detail{
			Name: spans.SpanNCCLProxyStep, Start: anchor + 119807692, End: anchor + 119867339, Duration: 59647, Channel: 0, Peer: 1, Step: 0, Size: op.Unknown,
			Direction: "receive", Operation: "RecvFlushWait", Under: 2,
		}, o.Details[3])
		assert.Equal(t, []int64{0, op.Unknown}, []int64{o.Details[15].End, o.Details[15].Duration}, "ProgressSend goes on in what was cut out")
	}
}

const (
	unix  = 1_700_000_000_000_000_000
	args1 = `"SeqNum": 5, "CommHash": 18446744073709551615, "Rank": 3, "Count": 1000, "Datatype": "ncclBfloat16", "Algorithm": "RING", "Protocol": "LL128", "nChannels": 2`
)

func kernel(channel int, ts string, start, stop int64) string {
	return begin("GPU", "KernelCh", 0, ts, fmt.Sprintf(`"Channel": %d, "StartGpuClk": %d, "StopGpuClk": %d`, channel, start, stop))
}

// The sources of an operation's times. coll is an AllReduce with its parts; with an empty stop, it does not end.
func coll(stop string, parts ...string) []string {
	all := append([]string{begin("COLL", "AllReduce", 0, "100.0005", args1)}, parts...)
	if stop != "" {
		all = append(all, end("COLL", "AllReduce", 0, stop))
	}
	return in("COLL", "AllReduce", 0, all...)
}

type times struct {
	start, end, duration int64
	waits                bool
	timing               string
	source               spans.TimeSource
	state                op.State
}

func TestTimes(t *testing.T) {
	kernelEnd := end("GPU", "KernelCh", 0, "900.000000")
	for name, c := range map[string]struct {
		lines []string
		want  times
	}{
		"kernels": {
			coll("901.000000", kernel(0, "200.000000", unix+10, unix+800), kernelEnd, kernel(1, "201.000000", unix+5, unix+700), kernelEnd),
			times{unix + 5, unix + 800, 795, true, "kernel_gpu", spans.TimeAnchored, op.Completed},
		},
		"kernels without an end of the operation": {
			coll("", kernel(0, "200.000000", unix+10, unix+800), kernelEnd, kernel(1, "201.000000", unix+5, unix+700), kernelEnd),
			times{unix + 5, unix + 800, 795, true, "kernel_gpu", spans.TimeAnchored, op.Completed},
		},
		// 100.0005 µs before the anchor, at 200 µs: to 901 µs.
		"a kernel that did not stop by its clock": {
			coll("901.000000", kernel(0, "200.000000", unix, unix+800), kernelEnd, kernel(1, "201.000000", unix+5, 0), kernelEnd),
			times{unix - 200_000 + 100_001, unix - 200_000 + 901_000, 801_000 - 1, false, "collective_cpu", spans.TimeAnchored, op.Completed},
		},
		"a kernel that stopped before it started": {
			coll("901.000000", kernel(0, "200.000000", unix, unix-1), kernelEnd),
			times{unix - 200_000 + 100_001, unix - 200_000 + 901_000, 801_000 - 1, false, "collective_cpu", spans.TimeAnchored, op.Completed},
		},
		"no clocks": {
			coll("901.000000", begin("GPU", "KernelCh", 0, "200.000000", `"Channel": 0`), kernelEnd),
			times{0, 0, 801_000 - 1, false, "collective_cpu", spans.TimeSynthetic, op.Completed},
		},
		"clocks that count ticks since boot": {
			coll("901.000000", kernel(0, "200.000000", 123456789, 123456999), kernelEnd),
			times{0, 0, 801_000 - 1, false, "collective_cpu", spans.TimeSynthetic, op.Completed},
		},
		"the end is when it was enqueued": {
			coll("150.000000", kernel(0, "200.000000", unix, 0), kernelEnd),
			times{unix, 0, op.Unknown, false, "", spans.TimeAnchored, op.Completed},
		},
		"the end is when it was enqueued, a part never ended": {
			coll("250.000000", kernel(0, "200.000000", unix, 0), end("GPU", "KernelCh", 0, "0.000000")),
			times{unix, 0, op.Unknown, false, "", spans.TimeAnchored, op.Completed},
		},
		"no parts": {coll("901.000000"), times{0, 0, op.Unknown, false, "", spans.TimeSynthetic, op.Completed}},
		"no end":   {coll(""), times{0, 0, op.Unknown, false, "", spans.TimeSynthetic, op.Started}},
		"an end that did not happen": {
			coll("0.000000", kernel(0, "200.000000", unix, 0)), times{unix, 0, op.Unknown, false, "", spans.TimeAnchored, op.Started},
		},
		"a kernel that nobody saw start": {
			coll("901.000000", kernel(0, "0.000000", unix, unix+7), end("GPU", "KernelCh", 0, "0.000000")),
			times{unix, unix + 7, 7, true, "kernel_gpu", spans.TimeAnchored, op.Completed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, New("x.json"), c.lines...)
			require.Len(t, s.ops, 1)
			o := s.ops[0]
			assert.Equal(t, c.want, times{o.Start, o.End, o.Duration, o.Waits, string(o.Timing), o.Time, o.State})
		})
	}
}

// The other values of an operation.
func TestOperations(t *testing.T) {
	for name, c := range map[string]struct {
		kind, name, args string
		want             func(*op.Op)
	}{
		"AllReduce": {"COLL", "AllReduce", args1, func(o *op.Op) {
			o.Kind, o.Comm, o.Rank, o.Seq, o.HasSeq, o.Size, o.Total = op.AllReduce, []byte("0xffffffffffffffff"), 3, 5, true, 2000, 2000
			o.Datatype, o.Algorithm, o.Protocol, o.Channels = []byte("ncclBfloat16"), []byte("RING"), []byte("LL128"), 2
		}},
		"a size of one rank": {"COLL", "AllGather", `"SeqNum": 0, "CommHash": 10, "Rank": 0, "Count": 3, "Datatype": ncclInt8, "nMaxChannels": 4`, func(o *op.Op) {
			o.Kind, o.Comm, o.Rank, o.HasSeq, o.Size, o.Datatype, o.Channels = op.AllGather, []byte("0xa"), 0, true, 3, []byte("ncclInt8"), 4
		}},
		"by the file": {"COLL", "PutSignal", `"Count": 3, "Datatype": "ncclFuture9"`, func(o *op.Op) {
			o.Name, o.Datatype = []byte("PutSignal"), []byte("ncclFuture9")
		}},
		"a size beyond 63 bits": {"P2P", "Recv", `"CommHash": 0, "Peer": 2, "Count": 18446744073709551615, "Datatype": "ncclFloat64"`, func(o *op.Op) {
			o.Kind, o.Comm, o.Peer, o.Datatype = op.Recv, []byte("0x0"), 2, []byte("ncclFloat64")
		}},
		"numbers that are none": {"P2P", "Send", `"CommHash": 99999999999999999999, "Peer": -1, "Rank": x, "Count": 1e3, "Datatype": "ncclInt8"`, func(o *op.Op) {
			o.Kind, o.Datatype = op.Send, []byte("ncclInt8")
		}},
		"a copy engine": {"CE_COLL", "AlltoAll", `"eventId": 4, "count": 3, "datatype": "ncclInt32", "strategy": "x", "duration_cpu_us": 9.5, "duration_gpu_us": 12`, func(o *op.Op) {
			o.Kind, o.Size, o.Datatype, o.Duration, o.Timing = op.AllToAll, 12, []byte("ncclInt32"), 12000, []byte("copy_engine_gpu")
		}},
		"a copy engine by the CPU": {"CE_COLL", "AlltoAll", `"duration_cpu_us": 9.5`, func(o *op.Op) {
			o.Kind, o.Duration, o.Timing = op.AllToAll, 9500, []byte("collective_cpu")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := op.Op{}
			want.Init()
			want.ReportedAlg, want.ReportedBus, want.Details = 0, 0, nil
			want.Comm, want.Rank, want.PID, want.Time, want.Stream = []byte("0x4d2"), 56, 7, spans.TimeSynthetic, 42
			c.want(&want)
			s := read(t, New("/tmp/dump_x_1234_56.json"), in("COLL", c.name, 1, begin(c.kind, c.name, 9, "3.000000", c.args), end(c.kind, c.name, 9, "4.000000"))...)
			assert.Equal(t, []op.Op{want}, s.ops)
		})
	}
}

// 2.26 and before: groups without API calls, proxies with counts in their args, no clocks.
func TestOldTrace(t *testing.T) {
	s := read(t, New("dump-node7-4711.txt"), "[",
		begin("GROUP", "Group", 0, "1.500000", `"groupId": 0`),
		begin(
			"COLL", "ReduceScatter", 0, "2.000000",
			`"SeqNum": 1, "CommHash": 15, "Rank": 1, "Count": 8, "Datatype": "ncclFloat32", "Algorithm": "RING", "Protocol": "LL", "nMaxChannels": 1`,
		),
		begin("GPU", "KernelCh", 0, "3.000000", `"Channel": 0`),
		begin(
			"PROXY", "Send", 0, "4.000000",
			`"Channel": 0, "Peer": 2, "Steps": 2, "ChunkSize": 4, "transSize": 32, "POSTED": {"step": 2, "ts": 4.1}, "DONE": {"step": 2, "ts": 5.0}`,
		),
		begin("NET", "SendBufferWait", 0, "4.100000", `"Step": 0`), end("NET", "SendBufferWait", 0, "4.200000"),
		begin("NET", "SendWait", 0, "4.200000", `"Step": 0`),
		begin("NET_IB", "Qp", 0, "4.300000", `"device": 0, "qp_num": 5, "opcode": 1, "wr_id": 18446744073709551615, "size": 16`), end("NET_IB", "Qp", 0, "4.400000"),
		end("NET", "SendWait", 0, "5.000000"),
		end("PROXY", "Send", 0, "5.500000"),
		end("GPU", "KernelCh", 0, "6.000000"),
		end("COLL", "ReduceScatter", 0, "6.250000"),
		end("GROUP", "Group", 0, "6.300000"),
		"{}]")
	assert.Equal(t, map[string]int{"open": 13, "": 1, reasonBracket: 2}, s.reasons)
	require.Len(t, s.ops, 1)
	o := s.ops[0]
	assert.Equal(
		t, []any{"node7", "0xf", int64(32), int64(op.Unknown), int64(4250), int64(op.Unknown)},
		[]any{string(o.Host), string(o.Comm), o.Size, o.Total, o.Duration, o.Stream},
	)
	none := int32(op.Unknown)
	assert.Equal(t, []op.Detail{
		{Name: spans.SpanNCCLChannel, Duration: 3000, Channel: 0, Peer: none, Step: none, Size: -1, Under: none},
		{Name: spans.SpanNCCLProxyOp, Duration: 1500, Channel: 0, Peer: 2, Step: none, Size: 32, Direction: "send", Operation: "Send", Under: none},
		{Name: spans.SpanNCCLProxyStep, Duration: 100, Channel: 0, Peer: 2, Step: 0, Size: -1, Direction: "send", Operation: "SendBufferWait", Under: 1},
		{Name: spans.SpanNCCLProxyStep, Duration: 800, Channel: 0, Peer: 2, Step: 0, Size: -1, Direction: "send", Operation: "SendWait", Under: 1},
		{Name: spans.SpanNCCLProxyStep, Duration: 100, Channel: 0, Peer: 2, Step: 0, Size: 16, Direction: "send", Operation: "Qp", Under: 3},
	}, o.Details)
}

func TestFileNames(t *testing.T) {
	for name, want := range map[string]origin{
		"/a/dump_18446744073709551615_0.json": {comm: math.MaxUint64, hasComm: true},
		"my_dump_7_12.json":                   {comm: 7, hasComm: true, rank: 12},
		"dump_x_12.json":                      {rank: -1},
		"dump_7.json":                         {rank: -1},
		"dump-node7-4711.txt":                 {host: []byte("node7"), rank: -1},
		"dump-worker-0-4711.txt":              {rank: -1}, // dump and worker-0, or dump-worker and 0?
		"dump-node7-x.txt":                    {rank: -1},
		"trace.log":                           {rank: -1},
	} {
		assert.Equal(t, want, originOf(name), name)
	}
}

// Lines that are no events, and missing ends.
func TestLines(t *testing.T) {
	send := func(id int, lines ...string) []string {
		return in(
			"P2P", "Send", id,
			slices.Concat([]string{begin("P2P", "Send", id, "3.000000", `"CommHash": 1, "Rank": 0, "Peer": 1`)}, lines, []string{end("P2P", "Send", id, "4.000000")})...,
		)
	}
	one := send(0)
	for name, c := range map[string]struct {
		lines  []string
		want   map[string]int
		groups []int
	}{
		"nothing":         {[]string{"[", "", "{}]", "]", "{}"}, map[string]int{reasonBracket: 4, reasonBlank: 1}, nil},
		"one":             {one, map[string]int{"open": 7, "": 1}, []int{1}},
		"two":             {append(send(0), send(1)...), map[string]int{"open": 14, "": 2}, []int{1, 1}},
		"no operation":    {in("COLL", "AllReduce", 0), map[string]int{"open": 5, "": 1}, nil},
		"carriage return": {[]string{"[\r", one[0] + "\r", "{}]\r"}, map[string]int{reasonBracket: 1, "open": 1, "": 1}, nil},
		"control":         {[]string{begin("PROXY", "Sleep", 0, "1.0", ""), end("PROXY", "Sleep", 0, "2.0")}, map[string]int{reasonControl: 2}, nil},
		"detached": {[]string{
			begin("PROXY", "ScheduleSend", 0, "1.0", `"Channel": 0`), end("PROXY", "ScheduleSend", 0, "2.0"),
		}, map[string]int{"open": 1, "": 1}, nil},
		"torn": {
			append(
				slices.Clone(one[:5]), one[4][:len(one[4])/2], `" ... [ trace truncated for brevity ]`, strings.Replace(one[4], `{"`, "{“", 1), one[5]+one[6], one[5],
				one[6], one[7],
			),
			map[string]int{"open": 7, "": 1, reasonNotJSON: 4},
			[]int{1},
		},
		"the trace of a killed job": {one[:6], map[string]int{"open": 6}, []int{1}},
		"another trace":             {append(slices.Clone(one[:6]), append([]string{"["}, one...)...), map[string]int{"open": 13, "": 2}, []int{1, 1}},
		"the middle of a trace":     {one[6:], map[string]int{reasonUnmatched: 2}, nil},
		"an end of another": {slices.Insert(
			slices.Clone(one), 5, end("P2P", "Send", 1, "3.5"), end("P2P", "Recv", 0, "3.5"), end("COLL", "Send", 0, "3.5"),
			strings.Replace(one[5], `"pid": 7`, `"pid": 8`, 1),
		), map[string]int{"open": 7, "": 1, reasonUnmatched: 4}, []int{1}},
		"a group whose end is lost": {append(slices.Clone(one[:7]), send(1)...), map[string]int{"open": 14, "": 1}, []int{2}},
		"an operation without": {slices.Insert(
			slices.Clone(one), 5, begin("P2P", "Send", 0, "3.000000", `"Peer": 2`),
		), map[string]int{"open": 8, "": 1}, []int{2}},
		"other events": {[]string{
			strings.Replace(one[0], `"ph": "b"`, `"ph": "X"`, 1), strings.Replace(one[0], `"cat": "GROUP_API", `, "", 1),
			strings.Replace(one[0], `"id": 0`, `"id": -1`, 1),
		}, map[string]int{reasonPhase: 1, reasonField: 2}, nil},
		"no blanks":                  {[]string{strings.ReplaceAll(one[0], " ", ""), strings.ReplaceAll(one[7], " ", "")}, map[string]int{"open": 1, "": 1}, nil},
		"a category that is unknown": {[]string{begin("NEW", "x", 0, "1.0", ""), end("NEW", "x", 0, "1.0")}, map[string]int{"open": 1, "": 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, New(""), c.lines...)
			assert.Equal(t, c.want, s.reasons)
			assert.Equal(t, c.groups, s.groups)
		})
	}
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]bool{
		begin("GROUP_API", "Group API", 0, "1.0", ""): true,
		"  " + end("PROXY", "Sleep", 0, "1.0"):        true,
		"[":                                           false,
		"{}]":                                         false,
		begin("other", "x", 0, "1.0", ""):             false,
		`{"header":{"id":"0x9e7a479f95a66c","rank":31}}`:             false,
		begin("GROUP_API", "Group API", 0, "1.0", "")[:40]:           false,
		`{"name": "x", "cat": "GPU", "ph": "X", "id": 0, "ts": 1.0}`: false,
	} {
		assert.Equal(t, want, Sniff([]byte(text)), text)
	}
}

// The clocks of the first trace hold for lines read after a restart, and end with another trace.
func TestRestart(t *testing.T) {
	unit := func(id, rank int, start int64) []string {
		return in("COLL", "AllReduce", id,
			begin("COLL", "AllReduce", id, "100.000000", fmt.Sprintf(`"SeqNum": %d, "CommHash": 1, "Rank": %d, "Count": 8, "Datatype": "ncclInt8"`, id, rank)),
			kernel(0, "200.000000", start, start+50), end("GPU", "KernelCh", 0, "300.000000"), end("COLL", "AllReduce", id, "400.000000"))
	}
	// Rank 1's clock is 1000 s ahead of rank 0's: both kernels were seen at the same time.
	first, second := append(unit(0, 0, unix), unit(1, 1, unix+1000e9)...), append(unit(2, 1, unix+1000e9+5), unit(3, 0, 0)...)
	whole := read(t, New(""), slices.Concat(first, second)...)
	require.Len(t, whole.ops, 4)
	assert.Equal(t, []int64{unix, unix, unix + 5, unix - 100_000}, []int64{whole.ops[0].Start, whole.ops[1].Start, whole.ops[2].Start, whole.ops[3].Start})
	assert.Equal(t, []int64{unix + 50, unix + 50, unix + 55, unix + 200_000}, []int64{whole.ops[0].End, whole.ops[1].End, whole.ops[2].End, whole.ops[3].End})

	for cut := range len(first) + 1 { // the state is saved while a unit is open; the unit is read again whole
		a, b := New(""), New("")
		read(t, a, first[:cut]...)
		state := a.Save()
		b.Restore(state)
		assert.Equal(t, state, b.Save())
		from := 0
		if cut >= len(first)/2 {
			from = len(first) / 2
		}
		s := read(t, b, slices.Concat(first[from:], second)...)
		assert.Equal(t, whole.ops[len(whole.ops)-len(s.ops):], s.ops)
	}

	p := New("")
	read(t, p, slices.Concat(first, []string{"["})...)
	assert.Nil(t, p.Save())
	s := read(t, p, unit(0, 1, unix+1000e9)...)
	assert.Equal(t, int64(unix+1000e9), s.ops[0].Start)

	for _, bad := range [][]byte{nil, {0x80}, append(New("").Save(), bytes.Repeat([]byte{0xff}, 30)...)} {
		p := New("")
		p.Restore(bad)
		assert.Nil(t, p.Save())
	}
}

// A group that is too large leaves in parts, and no part is lost; a single operation that is too large leaves as it is.
func TestLimits(t *testing.T) {
	const sends = 5000
	var lines []string
	for i := range sends {
		lines = append(lines, begin("P2P_API", "Send", i, "0.0", ""), begin("P2P", "Send", i, "3.0", `"Peer": 1`),
			kernel(0, "200.0", unix, unix+1), end("GPU", "KernelCh", 0, "300.0"), end("P2P", "Send", i, "400.0"), end("P2P_API", "Send", i, "400.0"))
	}
	s := read(t, New(""), slices.Concat([]string{begin("GROUP_API", "Group API", 0, "1.0", "")}, lines, []string{end("GROUP_API", "Group API", 0, "2.0")})...)
	assert.Equal(t, []int{3334, 1666}, s.groups)
	assert.Equal(t, map[string]int{"open": 2 + 6*sends - 2, "": 2}, s.reasons)

	lines = []string{begin("COLL", "AllReduce", 0, "1.0", args1)}
	for i := range maxLines {
		lines = append(lines, begin("PROXY", "ScheduleSend", i, "2.0", `"Channel": 1`))
	}
	s = read(t, New(""), append(lines, end("COLL", "AllReduce", 0, "3.0"))...)
	assert.Equal(t, []int{1}, s.groups)
	assert.Len(t, s.ops[0].Details, maxLines-1)
	assert.Equal(t, op.Started, s.ops[0].State)
	assert.Equal(t, map[string]int{"open": maxLines, "": 1, reasonUnmatched: 1}, s.reasons)
	assert.Less(t, maxLines*detailBytes, maxBytes)

	p := New("") // text counts too
	long := begin("COLL", strings.Repeat("x", 1<<20), 0, "1.0", "")
	s = read(t, p, slices.Repeat([]string{long}, 20)...)
	assert.Equal(t, []int{16, 4}, s.groups)
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]int64{
		"0.000000": 0, "1.000000": 1000, "1818542.097656": 1818542098, "0.0005": 1, "0.0004999": 0, "12": 12000, "99999999999999.9999": 1e17, "3.": 3000,
		"": -1, ".5": -1, "-1.0": -1, "nan": -1, "inf": -1, "1e3": -1, "1.5e3": -1, "100000000000001": -1, "1.x": -1,
	} {
		assert.Equal(t, want, micros([]byte(text)), text)
	}
	for text, want := range map[string]int64{
		"0x262ca50": 0x262ca50, "0x5020000567d0": 0x5020000567d0, "(nil)": -1, "0x": -1, "0xg": -1, "": -1, "0x7fffffffffffffff": -1,
	} {
		assert.Equal(t, want, streamOf([]byte(text)), text)
	}
}

// Every object in JSON is read, with the same members as by encoding/json.
func checkScan(t *testing.T, line string) {
	t.Helper()
	var e event
	whole := e.scan([]byte(line))
	var want map[string]json.RawMessage
	if strings.ContainsFunc(line, func(c rune) bool { return c < ' ' }) || !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &want) != nil {
		return
	}
	require.True(t, whole, line)
	keys := slices.Collect(maps.Keys(want))
	if slices.ContainsFunc(keys, func(k string) bool { return strings.Count(line, k) > 1 }) || strings.Contains(line, `\`) {
		return // the choice among equal keys is undefined
	}
	var id json.Number
	if json.Unmarshal(want["id"], &id) == nil && id != "" {
		if n, err := strconv.ParseInt(string(id), 10, 64); err == nil {
			assert.Equal(t, max(-1, n), max(-1, e.id), line)
		}
	}
}

func FuzzTrace(f *testing.F) {
	for _, lines := range [][]string{
		in("COLL", "AllReduce", 0, begin("COLL", "AllReduce", 0, "100.0", args1), kernel(0, "200.000000", unix, unix+50), begin(
			"PROXY", "ProgressSend", 1, "1.0", `"Channel": 0, "Peer": 2, "transSize": 5, "x": {"a": [1, "}"]}`,
		),
			begin(
				"NET", "SendWait", 2, "2.0", `"Step": 3`,
			), end("NET", "SendWait", 2, "3.0"), end("PROXY", "ProgressSend", 1, "4.0"), end("GPU", "KernelCh", 0, "300.0"), end("COLL", "AllReduce", 0, "400.0")),
		{
			"[", begin("P2P", "Send", 0, "1.0", `"CommHash": 12715772615376301750, "Count": 268435456, "Datatype": ncclFloat32`), "{}]", "[",
			end("P2P", "Send", 0, "2.0"),
		},
		{
			begin("CE_COLL", "AllGather", 0, "1.0", `"duration_gpu_us": 5`), `{"a": "\\"", "b": [{}, [1.5e+3, null]]}`, begin("GPU", "KernelStep", 0, "1.0", ""),
			"{“name",
		},
	} {
		f.Add(strings.Join(lines, "\n"), uint(2))
	}
	f.Fuzz(func(t *testing.T, in string, cut uint) {
		lines := strings.Split(in, "\n")
		p := New("dump_1_2.json")
		s := read(t, p, lines...)
		all := 0
		for _, n := range s.reasons {
			all += n
		}
		assert.Equal(t, len(lines), all)
		assert.False(t, p.open)
		for i := range s.ops {
			checkOp(t, &s.ops[i])
		}
		for _, line := range lines {
			checkScan(t, line)
		}
		// A restart that reads everything again changes nothing once the clocks are set, nor does the state saved on the way.
		head := New("dump_1_2.json")
		read(t, head, lines[:int(cut%uint(len(lines)+1))]...)
		again := New("dump_1_2.json")
		again.Restore(head.Save())
		assert.Equal(t, head.Save(), again.Save())
		if !strings.Contains(in, "[") {
			got := read(t, again, lines...)
			require.Len(t, got.ops, len(s.ops))
			for i := range got.ops {
				assert.Equal(t, s.ops[i].Duration, got.ops[i].Duration)
			}
		}
	})
}

func checkOp(t *testing.T, o *op.Op) {
	t.Helper()
	assert.GreaterOrEqual(t, min(o.Start, o.End), int64(0))
	assert.GreaterOrEqual(t, min(o.Duration, o.Size, o.Total, int64(o.Rank), int64(o.Peer)), int64(op.Unknown))
	assert.Equal(t, o.Start > 0, o.Time == spans.TimeAnchored)
	switch {
	case o.Start > 0 && o.Duration >= 0:
		assert.Equal(t, o.Start+o.Duration, o.End)
	default:
		assert.Zero(t, o.End)
	}
	assert.True(t, o.Total == op.Unknown || o.Total == o.Size)
	for i, d := range o.Details {
		assert.True(t, d.Under == op.Unknown || d.Under >= 0 && int(d.Under) < i)
		assert.GreaterOrEqual(t, d.Duration, int64(op.Unknown))
		if d.Start > 0 && d.End > 0 && d.Duration >= 0 {
			assert.Equal(t, d.Duration, d.End-d.Start)
		}
	}
}

// A group with one AllReduce of 16 channels, each with two proxies of 4 steps: 613 lines.
func trace() [][]byte {
	var parts []string
	for channel := range 16 {
		parts = append(parts, kernel(channel, "119711.888000", unix, unix+8159232))
		for _, way := range []string{"Send", "Recv"} {
			args := fmt.Sprintf(`"Channel": %d, "Peer": 1, "Steps": 4, "ChunkSize": 4194304, "transSize": 524288`, channel)
			parts = append(parts, begin("PROXY", "Schedule"+way, channel, "119652.709991", args), end("PROXY", "Schedule"+way, channel, "119686.300995"),
				begin("PROXY", "Progress"+way, channel, "119686.300995", args))
			for step := range 4 {
				for _, wait := range []string{way + "Wait", way + "GpuWait"} {
					parts = append(parts, begin("NET", wait, step, "119707.677979", fmt.Sprintf(`"Step": %d`, step)), end("NET", wait, step, "119807.691986"))
				}
			}
			parts = append(parts, end("PROXY", "Progress"+way, channel, "120165.356995"))
		}
		parts = append(parts, end("GPU", "KernelCh", 0, "127900.000000"))
	}
	parts = append([]string{begin("COLL", "AllReduce", 0, "111994.477997", args1)}, append(parts, end("COLL", "AllReduce", 0, "128000.000000"))...)
	lines := [][]byte{}
	for _, line := range in("COLL", "AllReduce", 0, parts...) {
		lines = append(lines, []byte(line))
	}
	return lines
}

func BenchmarkLine(b *testing.B) {
	lines := trace()
	size := 0
	for _, line := range lines {
		size += len(line) + 1
	}
	p, out := New("dump_1_2.json"), &parse.Out{}
	b.SetBytes(int64(size / len(lines)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		out.Reset()
		p.Line(lines[i], false, 0, out)
		if i++; i == len(lines) {
			i = 0
		}
	}
}

// The same group again and again needs no new memory.
func TestAllocations(t *testing.T) {
	lines := trace()
	p, out := New("dump_1_2.json"), &parse.Out{}
	got := testing.AllocsPerRun(100, func() {
		for _, line := range lines {
			out.Reset()
			p.Line(line, false, 0, out)
		}
	})
	assert.Zero(t, got)
	assert.Len(t, out.Ops, 1)
	assert.Len(t, out.Ops[0].Details, 16*(1+2*(2+8)))
}
