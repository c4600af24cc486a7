package inspector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var fixtures = []string{"v4.0", "v4.2", "v4.4", "v4.4_flat", "relatives"}

// lines returns the lines of a fixture.
func lines(tb testing.TB, name string) []string {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".log"))
	require.NoError(tb, err)
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// read reads a line for the first time.
func read(p *Parser, text string) (string, uint64) {
	var out parse.Out
	v, reason := p.Line([]byte(text), false, 0, &out)
	return result(v, reason, &out), out.Tag
}

func reread(p *Parser, text string, tag uint64) (string, uint64) {
	var out parse.Out
	v, reason := p.Line([]byte(text), true, tag, &out)
	return result(v, reason, &out), out.Tag
}

// The lines of testdata/*.log, with their meaning worked out by hand in testdata/*.want.
func TestGolden(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata", name+".want"))
			require.NoError(t, err)
			var got strings.Builder
			p := New()
			for _, text := range lines(t, name) {
				r, _ := read(p, text)
				got.WriteString(r + "\n")
			}
			assert.Equal(t, string(want), got.String())
		})
	}
}

// selfContained is a line of v4.0.
func selfContained(payload string) string {
	return `{"header":{"id":"0xab","rank":1,"n_ranks":8,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","dump_timestamp_us":1781000000000000,` +
		`"hostname":"h","pid":9},` + payload + `}`
}

// Sizes, times and bandwidths of NVIDIA's README, and the formulas of nccl-tests' doc/PERFORMANCE.md.
func TestBandwidth(t *testing.T) {
	for _, c := range []struct {
		kind, name string
		ranks      float64
		size, us   int64
		alg, bus   float64 // GB/s, as printed with six decimals
		factor     float64
		total      int64
	}{
		{"coll", "AllReduce", 8, 17179869184, 61974, 277.210914, 485.119099, 2 * 7.0 / 8, 17179869184},
		{"coll", "ReduceScatter", 8, 2147483648, 41057, 418.439467, 366.134533, 7.0 / 8, 17179869184},
		{"coll", "ReduceScatter", 32, 65536, 110, 19.065018, 18.469236, 31.0 / 32, 2097152},
		{"p2p", "Send", 8, 33554432, 721, 46.538741, 46.538741, 1, 33554432},
	} {
		text := fmt.Sprintf(`{"header":{"id":"0xab","rank":1,"n_ranks":%[1]v,"nnodes":1},"%[2]s_perf":{"%[2]s":"%[3]s","%[2]s_msg_size_bytes":%[4]d,"%[2]s_exec_time_us":%[5]d,"%[2]s_algobw_gbs":%[6]f,"%[2]s_busbw_gbs":%[7]f}}`,
			c.ranks, c.kind, c.name, c.size, c.us, c.alg, c.bus)
		var out parse.Out
		v, reason := New().Line([]byte(text), false, 0, &out)
		require.Equal(t, parse.Record, v, reason)
		o := &out.Ops[0]
		assert.Equal(t, c.total, o.Total)
		assert.Equal(t, c.us*1000, o.Duration)
		alg := float64(o.Total) / (float64(o.Duration) / 1e9)
		assert.InDelta(t, alg, o.ReportedAlg, 500, "half of the last digit, 1e-6 GB/s")
		assert.InDelta(t, alg*c.factor, o.ReportedBus, 500)
		assert.Equal(t, "GB/s", o.ReportedUnit)
	}
}

func TestValues(t *testing.T) {
	for name, c := range map[string]struct{ payload, want string }{
		"fractions of microseconds": {`"coll_exec_time_us":12.5`, "took=12500 "},
		"ns":                        {`"coll_exec_time_us":0.001`, "took=1 "},
		"rounded":                   {`"coll_exec_time_us":1.0005`, "took=1001 "},
		"many decimals":             {`"coll_exec_time_us":1.000499999999999999999`, "took=1000 "},
		"exponent":                  {`"coll_exec_time_us":1.5e3`, "took=1500000 "},
		"in quotes":                 {`"coll_exec_time_us":"7"`, "took=7000 "},
		"long":                      {`"coll_exec_time_us":9000000000000000`, "took=9000000000000000000 "},
		"large sequence":            {`"coll_sn":18446744073709551614`, "#18446744073709551614 "},
		"sequence of 2^53+1":        {`"coll_sn":9007199254740993`, "#9007199254740993 "},
		"decimal sequence":          {`"coll_sn":9007199254740993.0`, "#9007199254740993 "},
		"sequence in quotes":        {`"coll_sn":"12"`, "#12 "},
		"exponent of a size":        {`"coll_msg_size_bytes":1e6`, "size=1000000 "},
		"bandwidth":                 {`"coll_busbw_gbs":13.559172`, "bus=13559172000"},
		"bandwidth, integer":        {`"coll_busbw_gbs":3`, "bus=3000000000"},
		"bandwidth, many digits":    {`"coll_busbw_gbs":0.123456789012345678`, "bus=123456789"},
		"bandwidth, exponent":       {`"coll_busbw_gbs":1e-3`, "bus=1000000"},
		"unknown algorithm":         {`"coll_algo":"unknown","coll_proto":"LL"`, "algo=/LL"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := read(New(), selfContained(`"coll_perf":{"coll":"AllReduce",`+c.payload+`}`))
			assert.Contains(t, got+" ", c.want)
		})
	}
	// None of the values is known; the line is good all the same.
	none, _ := read(New(), selfContained(`"coll_perf":{"coll":"AllReduce"}`))
	for _, payload := range []string{
		`"coll_busbw_gbs":"nan"`, `"coll_busbw_gbs":null`, `"coll_busbw_gbs":0.000000`, `"coll_busbw_gbs":NaN`, `"coll_exec_time_us":null`,
		`"coll_exec_time_us":"nan"`,
		`"coll_sn":null`, `"coll_sn":-1`, `"coll_msg_size_bytes":"nan"`, `"coll_algo":null`, `"event_trace_ts":null`, `"event_trace_ts":{}`,
		`"event_trace_ts":{"kernel_events":[]}`,
		`"event_trace_ts":{"coll_start_ts":0,"kernel_events":[{}]}`, `"event_trace_ts":{"coll_start_ts":5000}`,
		`"event_trace_ts":{"coll_start_ts":18446744073709551615}`, `"new":[{"a":["]"]}],"x":{"coll_sn":3}`,
		`"p2p_peer":-1`, `"coll_n_channels":0`,
	} {
		got, _ := read(New(), selfContained(`"coll_perf":{"coll":"AllReduce",`+payload+`}`))
		assert.Equal(t, none, got, payload)
	}
	// Nanoseconds in place of microseconds, and fractions of them.
	for _, stamp := range []string{"1781000000000001000", "1781000000000001", "1781000000000001.0", `"1781000000000001"`, "1.781000000000001e15"} {
		got, _ := read(New(), selfContained(`"coll_perf":{"coll":"AllReduce","coll_exec_time_us":1,"event_trace_ts":{"coll_start_ts":`+stamp+`}}`))
		assert.Contains(t, got, "start=1781000000000001000 end=1781000000000002000 ", stamp)
	}
}

func TestDataSize(t *testing.T) {
	for _, c := range []struct {
		kind  op.Kind
		size  int64
		ranks int32
		want  int64
	}{
		{op.AllReduce, 10, 4, 10},
		{op.AllGather, 10, 4, 40},
		{op.ReduceScatter, 10, 4, 40},
		{op.AllToAll, 10, 4, 40},
		{op.Gather, 10, 4, 40}, // gather.cu and scatter.cu of nccl-tests: count · nranks
		{op.Scatter, 10, 4, 40},
		{op.Broadcast, 10, 4, 10},
		{op.Send, 10, 4, 10},
		{op.Other, 10, 4, 10},
		{op.AllGather, 0, 4, 0},
		{op.AllGather, op.Unknown, 4, op.Unknown},
		{op.AllGather, 10, 0, op.Unknown},
		{op.AllReduce, op.Unknown, 4, op.Unknown},
		{op.AllReduce, 10, 0, 10},
		{op.AllGather, math.MaxInt64/4 + 1, 4, op.Unknown},
		{op.AllGather, math.MaxInt64 / 4, 4, math.MaxInt64 - 3},
	} {
		assert.Equal(t, c.want, dataSize(c.kind, c.size, c.ranks), "%v", c)
	}
}

func TestID(t *testing.T) {
	for in, want := range map[string]string{
		`"0x7f8c496ae9f661"`: "0x7f8c496ae9f661", `"0x007F"`: "0x7f", `"0X7f"`: "0x7f", `"0x0"`: "0x0", `"0x000"`: "0x0",
		`"0xffffffffffffffff"`: "0xffffffffffffffff",
		`18446744073709551614`: "0xfffffffffffffffe", `255`: "0xff", `"world"`: "world", `"0x"`: "0x", `"0xyz"`: "0xyz", `"\u0030x0A"`: "0xa", `""`: "",
		`null`: "", `"12"`: "12",
	} {
		var out parse.Out
		v, reason := New().Line([]byte(`{"id":`+in+`,"rank":0,"coll_perf":{"coll":"AllReduce"}}`), false, 0, &out)
		require.Equal(t, parse.Record, v, reason)
		assert.Equal(t, want, string(out.Ops[0].Comm), in)
	}
}

func TestNoRecords(t *testing.T) {
	for text, want := range map[string]string{
		"": "ignored blank", " \t": "ignored blank",
		`{}`: "ignored unknown_record", `{"a":1}`: "ignored unknown_record", selfContained(`"coll_api":{"start_ts":1}`): "ignored unknown_record",
		`{"version":"2.1","entries":[{"coll_perf":{}}]}`: "ignored unknown_record", `{"coll_perf":null}`: "ignored unknown_record",
		selfContained(`"proxy_trace":{"record_type":"proxy_ctrl"}`): "ignored unknown_record", selfContained(`"proxy_trace":{}`): "ignored unknown_record",
		`{"header":{"rank":0},"dump_stats":{}}`:       "ignored unknown_record",
		`# HELP nccl_bus_bandwidth_gbs Bus bandwidth`: "ignored prometheus",
		`nccl_p2p_total{gpu="GPU0"} 3`:                "ignored prometheus",
		`NCCL INFO Init COMPLETE`:                     "rejected not_json", `[{"coll_perf":{}}]`: "rejected not_json", `"header"`: "rejected not_json",
		`}`: "rejected not_json",
		selfContained(`"coll_perf":{"coll":"AllReduce"}`) + `,`:  "rejected not_json",
		selfContained(`"coll_perf":{"coll":"AllReduce"}`) + `{}`: "rejected not_json",
		`{"coll_perf":{"coll":"AllReduce"},}`:                    "rejected not_json",
		`{"coll_perf":{"coll" "AllReduce"}}`:                     "rejected not_json", `{"coll_perf":{"coll":}}`: "rejected not_json",
		`{"a":x}`: "rejected not_json", `{"a":"\q","coll":"\q}`: "rejected not_json",
		`{"header":{"id":"0xab","ra`:    "rejected truncated",
		selfContained(`"coll_perf":{}`): "rejected no_operation", selfContained(`"coll_perf":{"coll":""}`): "rejected no_operation",
		selfContained(`"coll_perf":{"coll":null}`): "rejected no_operation",
		selfContained(`"coll_perf":{"coll":7}`):    "rejected value", selfContained(`"coll_perf":[]`): "rejected value", selfContained(
			`"coll_perf":{"coll":"AllReduce","coll_sn":"abc"}`,
		): "rejected value",
		selfContained(`"coll_perf":{"coll":"AllReduce","coll_sn":18446744073709551615}`):            "rejected value",
		selfContained(`"coll_perf":{"coll":"AllReduce","coll_sn":1.5}`):                             "rejected value",
		selfContained(`"coll_perf":{"coll":"AllReduce","coll_msg_size_bytes":1e19}`):                "rejected value",
		selfContained(`"coll_perf":{"coll":"AllReduce","coll_msg_size_bytes":9999999999999999999}`): "rejected value",
		selfContained(`"coll_perf":{"coll":"AllReduce","coll_exec_time_us":-1}`):                    "rejected value",
		selfContained(`"coll_perf":{"coll":"AllReduce","coll_exec_time_us":1e300}`):                 "rejected value",
		selfContained(`"coll_perf":{"coll":"AllReduce","coll_exec_time_us":{}}`):                    "rejected value",
		selfContained(`"coll_perf":{"coll":"AllReduce","coll_busbw_gbs":"fast"}`):                   "rejected value",
		selfContained(`"p2p_perf":{"p2p":"Send","p2p_peer":4294967296}`):                            "rejected value",
		selfContained(`"coll_perf":{"coll":"AllReduce","event_trace_ts":{"kernel_events":{}}}`):     "rejected value",
		selfContained(`"coll_perf":{"coll":"AllReduce","event_trace_ts":{"coll_start_ts":"x"}}`):    "rejected value",
		`{"coll_perf":{"coll":"AllReduce"}}`:                                                        "rejected orphan",
		`{"proxy_trace":{"record_type":"proxy_op"}}`:                                                "rejected orphan",
	} {
		got, tag := read(New(), text)
		assert.Equal(t, want, got, text)
		assert.Zero(t, tag)
	}
}

// A line truncated anywhere is no record, and does not harm the lines after it.
func TestCut(t *testing.T) {
	for _, name := range fixtures {
		all := lines(t, name)
		for _, text := range all {
			p := New()
			for n := 1; n < len(text); n++ {
				got, _ := read(p, text[:n])
				require.Contains(t, []string{"rejected truncated", "rejected not_json"}, got, text[:n])
			}
			got, _ := read(p, text)
			want, _ := read(New(), text)
			require.Equal(t, want, got)
		}
	}
}

// scramble writes a JSON value with its members in another order, with blanks and unknown members in between, and texts escaped.
func scramble(t *testing.T, r *rand.Rand, raw json.RawMessage, w *strings.Builder) {
	t.Helper()
	blank := func() { w.WriteString([]string{"", "", " ", "\t ", "\r"}[r.IntN(5)]) }
	blank()
	defer blank()
	switch raw = bytes.TrimSpace(raw); raw[0] {
	case '{':
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &members))
		if r.IntN(2) == 0 {
			members["x_"+string(rune('a'+r.IntN(26)))] = json.RawMessage([]string{`null`, `{"rank":{"id":[1,"}"]}}`, `"\"]"`, `-1.5e3`, `[[],{}]`, `true`}[r.IntN(6)])
		}
		names := make([]string, 0, len(members))
		for name := range members {
			names = append(names, name)
		}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		w.WriteByte('{')
		for n, name := range names {
			if n > 0 {
				w.WriteByte(',')
			}
			blank()
			w.WriteString(escape(r, name))
			blank()
			w.WriteByte(':')
			scramble(t, r, members[name], w)
		}
		w.WriteByte('}')
	case '[':
		var items []json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &items))
		w.WriteByte('[')
		for n, item := range items {
			if n > 0 {
				w.WriteByte(',')
			}
			scramble(t, r, item, w)
		}
		w.WriteByte(']')
	case '"':
		var s string
		require.NoError(t, json.Unmarshal(raw, &s))
		w.WriteString(escape(r, s))
	default:
		w.Write(raw)
	}
}

func escape(r *rand.Rand, s string) string {
	b, _ := json.Marshal(s)
	if r.IntN(4) > 0 || s == "" || s[0] >= 0x80 {
		return string(b)
	}
	_, rest, _ := strings.Cut(string(b), s[:1])
	return fmt.Sprintf(`"\u%04X%s`, s[0], rest)
}

// The order of members, blanks, escapes and unknown members mean nothing.
func TestScrambled(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for _, name := range fixtures {
		for range 60 {
			p, q := New(), New()
			for _, text := range lines(t, name) {
				var s strings.Builder
				scramble(t, r, json.RawMessage(text), &s)
				want, tag := read(p, text)
				got, gotTag := read(q, s.String())
				require.Equal(t, want, got, s.String())
				require.Equal(t, tag, gotTag)
			}
		}
	}
}

// After a restart before any line, the next lines are read as without the restart, and earlier lines can be read again between them in any order.
func TestRestart(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, name := range fixtures {
		all := lines(t, name)
		want, tags := make([]string, len(all)), make([]uint64, len(all))
		p := New()
		for n, text := range all {
			want[n], tags[n] = read(p, text)
		}
		for from := range all {
			first := New()
			for _, text := range all[:from] {
				read(first, text)
			}
			q := New()
			if state := first.Save(); state != nil {
				q.Restore(state)
			}
			for n, text := range all[from:] {
				for range 3 {
					if at := r.IntN(from + n + 1); at < from {
						got, tag := reread(q, all[at], tags[at])
						require.Equal(t, want[at], got, "line %d of %s", at, name)
						require.Equal(t, tags[at], tag)
					}
				}
				got, tag := read(q, text)
				require.Equal(t, want[from+n], got, "line %d of %s, restart before %d", from+n, name, from)
				require.Equal(t, tags[from+n], tag)
			}
		}
	}
}

func TestRestore(t *testing.T) {
	p := New()
	assert.Nil(t, p.Save())
	for _, state := range []string{"", "x", "{}", `{"contexts":[null,{},{"number":5000}],"head":1,"last":65535}`, `{"contexts":[{"rank":"x"}]}`} {
		p.Restore([]byte(state))
		got, _ := read(p, `{"coll_perf":{"coll":"AllReduce"}}`)
		assert.Equal(t, "rejected orphan", got, state)
		assert.Nil(t, p.Save(), state)
	}
}

func marker(rank, records int) string {
	return fmt.Sprintf(`{"header":{"id":"0xab","rank":%d,"n_ranks":9999,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.3","dump_timestamp_us":1781000000000000,`+
		`"hostname":"h","pid":9},"dump_stats":{"coll_records":%d}}`, rank, records)
}

const follower = `{"coll_perf":{"coll":"AllReduce","coll_sn":1}}`

// A parser knows the last 512 contexts. The tag of a forgotten context is not taken for the tag of another.
func TestForgotten(t *testing.T) {
	const ranks = 3*maxContexts + 7
	p := New()
	tags := make([]uint64, ranks)
	var kept parse.Out
	for rank := range ranks {
		read(p, marker(rank, 1))
		var out parse.Out
		v, _ := p.Line([]byte(follower), false, 0, &out)
		require.Equal(t, parse.Record, v)
		require.EqualValues(t, rank, out.Ops[0].Rank)
		require.NotZero(t, out.Tag)
		tags[rank] = out.Tag
		if rank == 0 {
			kept = out
		}
	}
	assert.Equal(t, "0xab", string(kept.Ops[0].Comm), "what was handed out is not changed")
	q := New()
	q.Restore(p.Save())
	for rank, tag := range tags {
		for _, parser := range []*Parser{p, q} {
			got, _ := reread(parser, follower, tag)
			if rank < ranks-maxContexts {
				assert.Equal(t, "rejected orphan", got)
			} else {
				assert.Contains(t, got, fmt.Sprintf("rank=%d of=9999 nodes=1 host=h pid=9 end=1781000000000000000 ", rank))
			}
		}
	}
	assert.Less(t, len(p.Save()), 160*maxContexts)
	// Markers of known contexts add none.
	last := p.contexts.last
	for rank := ranks - maxContexts; rank < ranks; rank++ {
		read(p, marker(rank, 0))
	}
	assert.Equal(t, last, p.contexts.last)
}

// An unreadable line may have been the next marker: the lines after do not get the old marker. An unreadable record counts as announced.
func TestBroken(t *testing.T) {
	for name, c := range map[string]struct {
		texts []string
		want  string // of a last record
	}{
		"one too many":            {[]string{follower, follower, follower}, "rejected orphan"},
		"bad record":              {[]string{follower, `{"coll_perf":{"coll":"AllReduce","coll_sn":"x"}}`}, "record"},
		"cut record":              {[]string{follower, `{"coll_perf":{"coll":"AllRed`}, "record"},
		"bad record counts":       {[]string{follower, follower, `{"coll_perf":{"coll":"AllReduce","coll_sn":"x"}}`}, "rejected orphan"},
		"cut marker":              {[]string{follower, marker(2, 1)[:40]}, "rejected orphan"},
		"bad marker":              {[]string{follower, strings.Replace(marker(2, 1), `"rank":2`, `"rank":{}`, 1)}, "rejected orphan"},
		"marker without a header": {[]string{follower, `{"dump_stats":{"coll_records":9}}`}, "rejected orphan"},
		"marker of v4.2":          {[]string{strings.Replace(marker(2, 1), "v4.3", "v4.2", 1)}, "rejected orphan"},
		"marker of a new version": {[]string{strings.Replace(marker(1, 1), "v4.3", "v5.0", 1)}, "record"},
		"of another kind":         {[]string{`{"p2p_perf":{"p2p":"Send"}}`}, "record"},
		"blank":                   {[]string{"", follower}, "record"},
		"unknown":                 {[]string{`{"new":{}}`, follower}, "record"},
		"self-contained":          {[]string{selfContained(`"coll_perf":{"coll":"AllReduce"}`), follower}, "record"},
		"others, read again":      {[]string{follower}, "record"},
	} {
		t.Run(name, func(t *testing.T) {
			p := New()
			read(p, marker(1, 3))
			for _, text := range c.texts {
				read(p, text)
				reread(p, marker(7, 9), 0)
				reread(p, `{"coll_perf":{"coll`, 0)
				reread(p, follower, 1)
			}
			got, _ := read(p, follower)
			got, details, _ := strings.Cut(got, "\n")
			assert.Equal(t, c.want, got)
			if got == "record" {
				assert.Contains(t, details, "rank=1 ")
			}
		})
	}
}

// Lines of more communicators than known prefixes, in any order, mean the same as to a parser that reads each line alone.
func TestPrefixes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	base := lines(t, "v4.0")
	for _, ranks := range []int{1, 3, maxPrefixes, 3 * maxPrefixes} {
		p := New()
		for n := range 2000 {
			text := base[n%len(base)]
			text = strings.Replace(text, `"rank":1`, fmt.Sprintf(`"rank":%d`, r.IntN(ranks)), 1)
			text = strings.Replace(text, `"dump_timestamp_us":1781000000`, fmt.Sprintf(`"dump_timestamp_us":%d`, 1781000000+n), 1)
			switch r.IntN(20) {
			case 0:
				text = strings.Replace(text, `"pid"`, `"x":{"dump_timestamp_us":1},"pid"`, 1)
			case 1:
				text = strings.Replace(text, `"rank"`, `"x":"dump_timestamp_us","rank"`, 1)
			case 2:
				text = strings.Replace(text, `"dump_timestamp_us":`, `"dump_timestamp_us":x`, 1)
			case 3:
				text = strings.Replace(text, `"pid":4242`, fmt.Sprintf(`"pid":%d`, r.IntN(3)), 1)
			case 4:
				text = strings.ReplaceAll(text, `},"`, `}, "`)
			}
			want, _ := read(New(), text)
			got, _ := read(p, text)
			require.Equal(t, want, got, text)
		}
		require.LessOrEqual(t, len(p.prefixes.all), maxPrefixes)
	}
}

func TestLongTexts(t *testing.T) {
	p := New()
	for _, name := range []string{"id", "comm_name", "hostname"} {
		for n, want := range map[int]string{maxText: "record", maxText + 1: "rejected value"} {
			got, _ := read(p, fmt.Sprintf(`{"%s":"%s","rank":1,"dump_stats":{"coll_dropped_total":1}}`, name, strings.Repeat("x", n)))
			got, _, _ = strings.Cut(got, "\n")
			assert.Equal(t, want, got)
		}
	}
	assert.Len(t, p.contexts.all, 3)
	read(p, strings.Replace(selfContained(`"coll_perf":{"coll":"AllReduce"}`), `"pid"`, `"x":"`+strings.Repeat("x", maxPrefix)+`","pid"`, 1))
	assert.Empty(t, p.prefixes.all)
}

// Once a parser and its output have enough memory, lines allocate nothing.
func TestAllocations(t *testing.T) {
	for _, name := range fixtures {
		p := New()
		var texts [][]byte
		for _, text := range lines(t, name) {
			texts = append(texts, []byte(text))
		}
		var out parse.Out
		all := func() {
			for _, text := range texts {
				out.Reset()
				p.Line(text, false, 0, &out)
			}
		}
		all()
		all()
		want := 0.0
		if name == "relatives" {
			want = 4 // numbers in other forms
		}
		assert.LessOrEqual(t, testing.AllocsPerRun(10, all), want, name)
	}
}

func TestSniff(t *testing.T) {
	for _, name := range fixtures {
		for n, text := range lines(t, name) {
			want := !strings.Contains(text, `"summary"`) && !strings.HasPrefix(text, `{"id":"0xad56c683b0c4ef","rank":2,"n_ranks":3,"nnodes":3,"pid":49,"hostname"`)
			assert.Equal(t, want, Sniff([]byte(text)), "line %d of %s", n, name)
			assert.Equal(t, want, Sniff([]byte(" "+text[:len(text)-2])))
		}
	}
	for _, text := range []string{
		"", " ", "x", "[", `[{"coll_perf":{}}]`, `{"rank": 0, "operation": "allreduce"}`, `nccl_bus_bandwidth_gbs{collective="AllReduce"} 1`,
		`{"version": "2.9", "entries": []}`,
		`{"name": "AllReduce", "cat": "COLL", "ph": "b"},`,
	} {
		assert.False(t, Sniff([]byte(text)), text)
	}
}

func TestIsPrometheus(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "n": false, "nccl_": false, "nccl_x": false, "# HELP nccl_x y": true, "#": true, `nccl_bus_bandwidth_gbs{collective="AllReduce"} 1`: true,
		`{"a": 1}`: false,
	} {
		assert.Equal(t, want, IsPrometheus([]byte(text)), text)
	}
}

func TestTag(t *testing.T) {
	assert.Equal(t, uint64(1)<<52|1781000000000001, tagOf(1, 1781000000000001000))
	assert.Equal(t, uint64(0xfff0000000000000), tagOf(maxNumber, 9e18), "a time beyond 2112 is not kept")
	assert.Equal(t, uint64(3)<<52, tagOf(3, 0))
}

// Logs collected by others, where the checkout has them.
func TestOtherLogs(t *testing.T) {
	files, err := filepath.Glob("../../../../../shared/logs/nccl_inspector/*_*")
	require.NoError(t, err)
	want := map[string]map[string]int{
		"GENERATED_v4.0_2.30.7_coll_p2p_nan.log":                {"record": 8},
		"GENERATED_v4.2_per_record_context_with_dump_stats.log": {"record": 3},
		"GENERATED_v4.4_marker_context_with_proxy.log":          {"record": 9},
		"GENERATED_v4.4_orphan_lines_rotated_away_marker.log":   {"rejected orphan": 3},
		"README_nccl_inspector_metrics.prom":                    {"ignored prometheus": 4},
		"README_proxy_flat_step_and_op_v4.4.jsonl":              {"rejected orphan": 2},
		"README_records_v4.0_one_per_line.jsonl":                {"record": 3},
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		p := New()
		var all strings.Builder
		got, samples := make(map[string]int), 0
		for text := range strings.Lines(string(b)) {
			r, _ := read(p, strings.TrimSuffix(text, "\n"))
			verdict, rest, _ := strings.Cut(r, "\n")
			got[verdict]++
			all.WriteString(rest + "\n")
			samples += strings.Count(rest, "nccl.records.dropped")
		}
		name, ops := filepath.Base(file), all.String()
		assert.Equal(t, want[name], got, name)
		switch name {
		case "GENERATED_v4.0_2.30.7_coll_p2p_nan.log":
			assert.Contains(
				t, ops,
				`AllGather #101 comm=0x7f8c496ae9f661 name="DP Group 0" rank=1 of=16 nodes=2 host=gpu-node-1 pid=1639453 size=2097152 total=33554432 end=1781000000748239000 took=221000 synthetic waits by=kernel_gpu alg=9489376000 bus=17792579000`,
			)
		case "GENERATED_v4.4_marker_context_with_proxy.log":
			assert.Equal(t, 3*len(drops), samples)
			assert.Contains(
				t, ops,
				`AllReduce #1407 comm=0x7f8c496ae9f661 name="DP Group 0" rank=2 of=8 nodes=1 host=gpu-node-1 pid=1639453 size=17179869184 end=1752867229290000000 took=61974000`,
			)
			assert.Contains(
				t, ops,
				`AllGather #7 comm=0x1c9e09adf1b2a7 name="TP Group 1" rank=0 of=2 nodes=1 host=gpu-node-1 pid=1639453 size=1048576 total=2097152 end=1752867229290123000 took=42000`,
			)
			assert.Contains(
				t, ops,
				"ProxyOp #12 alone comm=0x7f8c496ae9f661 name=\"DP Group 0\" rank=2 of=8 nodes=1 host=gpu-node-1 pid=1639453 peer=3 2→3 size=1048576 start=1752867229235080000 end=1752867229235150000 took=70000",
			)
		case "README_records_v4.0_one_per_line.jsonl":
			assert.Contains(t, ops, "total=17179869184 start=1752867229235181000 end=1752867229276238000 took=41057000 logged waits")
		}
	}
}

// FuzzLine: a parser that has read many lines reads a line as a new parser does, and the values agree with one another.
func FuzzLine(f *testing.F) {
	used := New()
	for _, name := range fixtures {
		for _, text := range lines(f, name) {
			f.Add([]byte(text))
			read(used, text)
		}
	}
	f.Add([]byte("{\"header\":{\"comm_name\":0,\x000}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, q := New(), New()
		for _, parser := range []*Parser{p, q} {
			read(parser, marker(1, 1))
		}
		q.prefixes, q.next = used.prefixes, used.next
		var a, b parse.Out
		before := bytes.Clone(text)
		v, reason := p.Line(text, false, 0, &a)
		w, other := q.Line(text, false, 0, &b)
		require.Equal(t, before, text)
		require.Equal(t, result(v, reason, &a), result(w, other, &b))
		require.Equal(t, v == parse.Record, reason == "")
		require.Equal(t, v == parse.Record, len(a.Ops)+len(a.Samples) > 0)
		if json.Valid(text) && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
			require.NotContains(t, []string{reasonNotJSON, reasonTruncated}, reason)
		}
		for n := range a.Ops {
			o := &a.Ops[n]
			require.True(t, o.Start == 0 || o.Start >= 1e18)
			if o.Start > 0 && o.Duration != op.Unknown {
				require.Equal(t, o.Start+o.Duration, o.End)
			}
			require.GreaterOrEqual(t, o.Duration, int64(op.Unknown))
			require.GreaterOrEqual(t, o.Size, int64(op.Unknown))
			require.GreaterOrEqual(t, o.Total, int64(op.Unknown))
			require.False(t, o.ReportedAlg <= 0 || o.ReportedBus <= 0 || math.IsInf(o.ReportedAlg, 0) || math.IsInf(o.ReportedBus, 0))
			for m := range o.Details {
				require.Less(t, int(o.Details[m].Under), m)
			}
		}
		q = New()
		q.Restore(p.Save())
		if got, tag := reread(q, string(text), a.Tag); a.Tag != 0 {
			require.Equal(t, result(v, reason, &a), got)
			require.Equal(t, a.Tag, tag)
		}
	})
}
