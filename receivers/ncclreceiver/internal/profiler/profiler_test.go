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

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/op"
	"github.com/trainbridge/trainbridge/spans"
)

var _ op.Parser = (*Parser)(nil)

// seen is what a parser made of lines.
type seen struct {
	ops     []op.Op
	reasons map[string]int // of lines; "": records, "open": those that go on
	groups  []int          // how many operations came at a time
}

func (s *seen) take(out *op.Out) {
	for i := range out.Ops {
		o := out.Ops[i]
		o.Comm, o.Name, o.Host, o.Datatype = bytes.Clone(o.Comm), bytes.Clone(o.Name), bytes.Clone(o.Host), bytes.Clone(o.Datatype)
		o.Algorithm, o.Protocol, o.Timing = bytes.Clone(o.Algorithm), bytes.Clone(o.Protocol), bytes.Clone(o.Timing)
		o.Details = slices.Clone(o.Details)
		o.ReportedAlg, o.ReportedBus = 0, 0 // NaN is not equal to itself
		s.ops = append(s.ops, o)
	}
}

func (s *seen) line(t testing.TB, p *Parser, text string, out *op.Out) {
	t.Helper()
	out.Reset()
	line := []byte(text)
	v, reason := p.Line(line, false, 0, out)
	s.take(out)
	for i := range line { // what was kept of the line has to be a copy
		line[i] = '#'
	}
	assert.Equal(t, v == op.Record, reason == "", text)
	assert.True(t, v == op.Record || !out.Open && len(out.Ops) == 0, text)
	assert.Equal(t, v == op.Rejected, reason == reasonNotJSON || reason == reasonField, text)
	assert.False(t, out.Open && len(out.Ops) > 0, text)
	if out.Open {
		reason = "open"
	}
	if len(out.Ops) > 0 {
		s.groups = append(s.groups, len(out.Ops))
	}
	s.reasons[reason]++
}

func read(t testing.TB, p *Parser, lines ...string) *seen {
	t.Helper()
	s, out := &seen{reasons: map[string]int{}}, &op.Out{}
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

func shared(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob("../../../../../shared/logs/nccl_example_profiler/" + pattern)
	require.NoError(t, err)
	return files
}

func linesOf(t testing.TB, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// The real trace of 2.28: one group of 8 sends and receives by 4 GPUs of one process, whose clocks are up to 12 s apart. Numbers read by eye.
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
			Name: spans.SpanNCCLChannel, Start: 1765223116927674080, Duration: op.Unknown, Channel: 16, Peer: op.Unknown, Step: op.Unknown, Size: op.Unknown, Under: op.Unknown,
		}, first.Details[0])
		first.Details = nil
		assert.Equal(t, op.Op{
			Comm: []byte("0xb077359de6a20376"), Rank: 0, PID: 3937375, Kind: op.Send, Peer: 1, Source: op.Unknown, Destination: op.Unknown,
			Size: 1 << 30, Total: 1 << 30, Start: 1765223116927674016, Duration: op.Unknown, Time: spans.TimeAnchored,
			Datatype: []byte("ncclFloat32"), Channel: op.Unknown, Channels: 16, Stream: 0x4142e90,
		}, first)
		// The anchor is 1765223116927674080 − 1824045316.895. Rank 3's first kernel was seen at 1810754614.746, when its own clock was 4 s behind.
		assert.Equal(t, int64(1765223115103628763+1810754615), s.ops[6].Details[0].Start)
		assert.Equal(t, s.ops[6].Details[0].Start+(1765223112919376768-1765223112919376832), s.ops[6].Details[2].Start)

		// Everything else, against a reader of keys.
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

func number(t testing.TB, line, key string) int64 {
	t.Helper()
	_, after, ok := strings.Cut(line, `"`+key+`": `)
	require.True(t, ok)
	n, err := strconv.ParseInt(after[:strings.IndexAny(after, ",}")], 10, 64)
	require.NoError(t, err)
	return n
}

// The trace of the plugin's README: a part of it was cut out and one quote is a curly one.
func TestReadme(t *testing.T) {
	for _, file := range shared(t, "readme*") {
		s := read(t, New(file), linesOf(t, file)...)
		// Rejected: RecvWait's begin and the note. Unmatched: its end and those of another AllReduce. The last bracket ends the unit.
		assert.Equal(t, map[string]int{"open": 36, "": 1, reasonBracket: 1, reasonNotJSON: 2, reasonUnmatched: 4}, s.reasons)
		require.Len(t, s.ops, 1)
		o := s.ops[0]
		assert.Equal(t, op.AllReduce, o.Kind)
		assert.Equal(t, "0x14ba5a0b67a7f13f", fmt.Sprintf("0x%x", uint64(1493613951195738943)), "the oracle")
		assert.Equal(t, "0x14ba5a0b67a7f13f", string(o.Comm))
		assert.Equal(t, []any{uint64(0), true, int32(0), int64(1 << 20), int64(1 << 20), "RING", "SIMPLE", int32(2), int64(0x5020000567d0), op.Started},
			[]any{o.Seq, o.HasSeq, o.Rank, o.Size, o.Total, string(o.Algorithm), string(o.Protocol), o.Channels, o.Stream, o.State})
		// One of the two kernels is in it, and stopped.
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
