package vccl

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// The example of VCCL's document.
const example = `{"timestamp": 1693958400.123, "rank": 0, "operation": "allreduce", "algorithm": "ring", "message_size": 4194304, "duration_us": 1250.5, ` +
	`"bandwidth_gbps": 26.8, "src_rank": 0, "dst_rank": 1, "channel_id": 0, "stream_id": 7, "error_count": 0, "retry_count": 0}`

// messageTest is a message in the file of rank 3, with its operation or the reason of its rejection.
type messageTest struct{ name, text, want string }

func readMessages(t *testing.T, cases []messageTest) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := parseAll(t, NewJSON("/logs/rank_3.json"), []given{{text: c.text}}, nil)
			if a.verdicts["record"] == 0 {
				assert.Equal(t, map[string]int{"rejected " + c.want: 1}, a.verdicts)
				assert.Empty(t, a.ops())
				return
			}
			assert.Equal(t, []string{c.want}, a.ops())
			assert.Empty(t, a.open)
		})
	}
}

func TestMessage(t *testing.T) {
	readMessages(t, []messageTest{
		{
			"the document's example", example,
			"AllReduce #0 of 0 [1693958400123000000 1693958400124250500] took=1250500 size=4194304 from=0 to=1 channel=0 stream=7 ring 3350000000(Gbit/s)",
		},
		{
			"GB/s", strings.Replace(example, "26.8", "3.4", 1),
			"AllReduce #0 of 0 [1693958400123000000 1693958400124250500] took=1250500 size=4194304 from=0 to=1 channel=0 stream=7 ring 3400000000(GB/s)",
		},
		{
			"errors", `{"timestamp": 5, "duration_us": 1, "operation": "ncclReduceScatter", "rank": 63, "error_count": 2, "retry_count": 3}`,
			"ReduceScatter #0 of 63 [5000000000 5000001000] took=1000 errors=2 retries=3",
		},
		{"rank of the file", `{"timestamp": 5, "duration_us": 1, "operation": "all_gather"}`, "AllGather #0 of 3 [5000000000 5000001000] took=1000"},
		{
			"nanoseconds", `{"timestamp": 1767866400.123456789, "duration_us": 0.125, "operation": "reduce"}`,
			"Reduce #0 of 3 [1767866400123456789 1767866400123456914] took=125",
		},
		{
			"exponent", `{"timestamp": 1.7678664e9, "duration_us": 1.25e3, "message_size": 4.194304e+06, "operation": "reduce"}`,
			"Reduce #0 of 3 [1767866400000000000 1767866400001250000] took=1250000 size=4194304",
		},
		{"no duration", `{"timestamp": 5, "operation": "reduce"}`, "Reduce #0 of 3 [5000000000 5000000000]"},
		{"no timestamp", `{"duration_us": 5, "operation": "reduce"}`, "Reduce #0 of 3 [0 0] took=5000"},
		{
			"nulls", `{"timestamp": 5, "duration_us": null, "operation": "reduce", "rank": null, "algorithm": null, "bandwidth_gbps": NaN, "stream_id": null}`,
			"Reduce #0 of 3 [5000000000 5000000000]",
		},
		{"numbers as texts", `{"timestamp": "5.5", "duration_us": "1.5", "operation": "reduce", "rank": "4"}`, "Reduce #0 of 4 [5500000000 5500001500] took=1500"},
		{
			"other keys", `{"x": {"rank": 9, "y": [1, {"rank": 8}, []]}, "timestamp": 5, "z": "a\"}b", "operation": "reduce", "w": [], "v": {}, "u": true}`,
			"Reduce #0 of 3 [5000000000 5000000000]",
		},
		{"twice", `{"timestamp": 5, "operation": "reduce", "timestamp": 6}`, "Reduce #0 of 3 [6000000000 6000000000]"},
		{"escapes", `{"timestamp": 5, "operation": "all\u005freduce", "algorithm": "a\"b"}`, `AllReduce #0 of 3 [5000000000 5000000000] a"b`},
		{"send", `{"timestamp": 5, "operation": "send", "src_rank": 3, "dst_rank": 4}`, "Send (#0) of 3 [5000000000 5000000000] from=3 to=4 peer=4"},
		{"receive", `{"timestamp": 5, "operation": "recv", "src_rank": 3, "dst_rank": 4}`, "Recv (#0) of 3 [5000000000 5000000000] from=3 to=4 peer=3"},
		{"another operation", `{"timestamp": 5, "operation": "barrier"}`, `"barrier" #0 of 3 [5000000000 5000000000]`},
		{"not UTF-8", "{\"timestamp\": 5, \"operation\": \"x\xff\"}", "\"x\ufffd\" #0 of 3 [5000000000 5000000000]"},
		{"long name", `{"timestamp": 5, "operation": "` + strings.Repeat("x", 1000) + `"}`, `"` + strings.Repeat("x", maxName) + `" #0 of 3 [5000000000 5000000000]`},
		{"no link", `{"timestamp": 5, "operation": "reduce", "src_rank": -1, "dst_rank": -1}`, "Reduce #0 of 3 [5000000000 5000000000]"},
		{
			"no size", `{"timestamp": 5, "operation": "reduce", "bandwidth_gbps": 8, "duration_us": 1}`,
			"Reduce #0 of 3 [5000000000 5000001000] took=1000 1000000000(Gbit/s)",
		},
		{"over 9 GB", `{"timestamp": 5, "operation": "reduce", "message_size": 34359738368}`, "Reduce #0 of 3 [5000000000 5000000000] size=34359738368"},
		{"over 2.5 hours", `{"timestamp": 5, "operation": "reduce", "duration_us": 36000000000}`, "Reduce #0 of 3 [5000000000 36005000000000] took=36000000000000"},
	})
}

func TestMessageBesideOtherText(t *testing.T) {
	readMessages(t, []messageTest{
		{"no blanks", `{"timestamp":5,"operation":"reduce"}`, "Reduce #0 of 3 [5000000000 5000000000]"},
		{"behind other text", `12:00 {"timestamp": 5, "operation": "reduce"}`, "Reduce #0 of 3 [5000000000 5000000000]"},
		{"before other text", `{"timestamp": 5, "operation": "reduce"} Traceback`, "Reduce #0 of 3 [5000000000 5000000000]"},
		{"behind a torn one", `{"timestamp": 5, "opera{"timestamp": 6, "operation": "reduce"}`, "Reduce #0 of 3 [6000000000 6000000000]"},
		{"behind a torn number", `{"timestamp": 5{"timestamp": 6, "operation": "reduce"}`, "Reduce #0 of 3 [6000000000 6000000000]"},
		{"in place of a value", `{"timestamp": {"timestamp": 6, "operation": "reduce"}`, "Reduce #0 of 3 [6000000000 6000000000]"},
	})
}

func TestMessageRejected(t *testing.T) {
	readMessages(t, []messageTest{
		{"no operation", `{"timestamp": 5}`, reasonNoOperation},
		{"no time", `{"operation": "reduce", "message_size": 5}`, reasonNoTime},
		{"milliseconds since the epoch", `{"timestamp": 1693958400123, "operation": "reduce"}`, reasonNumber},
		{"duration with a unit", `{"timestamp": 5, "operation": "reduce", "duration_us": "5us"}`, reasonNumber},
		{"timestamp with a unit", `{"timestamp": "5s", "operation": "reduce"}`, reasonNumber},
		{"timestamp before the epoch", `{"timestamp": -5, "operation": "reduce"}`, reasonNegative},
		{"negative duration", `{"timestamp": 5, "operation": "reduce", "duration_us": -5}`, reasonNegative},
		{"negative size", `{"timestamp": 5, "operation": "reduce", "message_size": -5}`, reasonNegative},
		{"negative errors", `{"timestamp": 5, "operation": "reduce", "error_count": -5}`, reasonNegative},
		{"half a byte", `{"timestamp": 5, "operation": "reduce", "message_size": 1.5}`, reasonNumber},
		{"endless", `{"timestamp": 5, "operation": "reduce", "duration_us": 9e18}`, reasonNumber},
		{"rank beyond 32 bits", `{"timestamp": 5, "operation": "reduce", "rank": 4294967296}`, reasonNumber},
		{"bandwidth as text", `{"timestamp": 5, "operation": "reduce", "bandwidth_gbps": "fast"}`, reasonNumber},
	})
}

func TestNotJSON(t *testing.T) {
	readMessages(t, []messageTest{
		{"text", `Traceback (most recent call last):`, reasonNotJSON},
		{"a member alone", `"rank": 0,`, reasonNotJSON},
		{"an end alone", `}`, reasonNotJSON},
		{"half", `{"timestamp": 5, "operation": "red`, reasonNotJSON},
		{"too deep", `{"x": ` + strings.Repeat("[", 100), reasonNotJSON},
		{"no colon", `{"timestamp" 5}`, reasonNotJSON},
		{"no comma", `{"timestamp": 5 "operation": "reduce"}`, reasonNotJSON},
		{"wrong bracket", `{"timestamp": 5, "operation": "reduce"]`, reasonNotJSON},
		{"one line that is too long", `{"x": "` + strings.Repeat("y", maxObject) + `",`, reasonTooLong},
	})
}

// The same three records in every layout.
func TestLayouts(t *testing.T) {
	first := []string{`"timestamp": 1`, `"rank": 2`, `"operation": "allreduce"`, `"duration_us": 10`, `"extra": {"a": [1, 2]}`}
	second := []string{`"timestamp": 2`, `"rank": 2`, `"operation": "broadcast"`, `"duration_us": 20`}
	third := []string{`"timestamp": 3`, `"rank": 2`, `"operation": "allreduce"`, `"duration_us": 30`}
	all := [][]string{first, second, third}
	want := []string{
		"AllReduce #0 of 2 [1000000000 1000010000] took=10000",
		"Broadcast #0 of 2 [2000000000 2000020000] took=20000",
		"AllReduce #1 of 2 [3000000000 3000030000] took=30000",
	}
	join := func(before, open, member, end, between, after string) string {
		var objects []string
		for _, o := range all {
			objects = append(objects, open+strings.Join(o, ","+member)+end)
		}
		return before + strings.Join(objects, between) + after
	}
	pretty := join("", "{\n  ", "\n  ", "\n}", "\n", "\n")
	for name, c := range map[string]struct {
		text     string
		verdicts map[string]int
	}{
		"lines":                    {join("", "{", " ", "}", "\n", "\n"), map[string]int{"record": 3}},
		"one line":                 {join("", "{", " ", "}", "", "\n"), map[string]int{"record": 1}},
		"pretty":                   {pretty, map[string]int{"record": 19}},
		"pretty, no line between":  {join("", "{\n  ", "\n  ", "\n}", "", "\n"), map[string]int{"record": 17}},
		"pretty, blank between":    {join("", "{\n  ", "\n  ", "\n}", "\n \n", "\n"), map[string]int{"record": 19, "ignored blank": 2}},
		"pretty, every token":      {join("", "{\n", "\n", "\n}", "\n,\n", "\n"), map[string]int{"record": 19, "ignored bracket": 2}},
		"pretty, CRLF":             {"\xef\xbb\xbf" + strings.ReplaceAll(pretty, "\n", "\r\n"), map[string]int{"record": 19}},
		"array in a line":          {join("[", "{", " ", "}", ", ", "]\n"), map[string]int{"record": 1}},
		"array, one per line":      {join("[\n", "{", " ", "}", ",\n", "\n]\n"), map[string]int{"record": 3, "ignored bracket": 2}},
		"array, brackets with it":  {join("[", "{", " ", "}", ",\n ", "]\n"), map[string]int{"record": 3}},
		"array, comma first":       {join("[\n ", "{", " ", "}", "\n,", "\n]\n"), map[string]int{"record": 3, "ignored bracket": 2}},
		"array, pretty":            {join("[\n  ", "{\n    ", "\n    ", "\n  }", ",\n  ", "\n]\n"), map[string]int{"record": 19, "ignored bracket": 2}},
		"array, braces in a row":   {join("[{\n", "", "\n", "\n", "}, {\n", "}]\n"), map[string]int{"record": 17}},
		"arrays, one after other":  {join("[", "{", " ", "}", "]\n[", "]\n"), map[string]int{"record": 3}},
		"pretty, begins with more": {join("", "{ ", "\n", " }", "\n", "\n"), map[string]int{"record": 13}},
	} {
		t.Run(name, func(t *testing.T) {
			in := lines(c.text)
			create := func() parse.Parser { return NewJSON("rank_9.json") }
			a := parseAll(t, create(), in, nil)
			assert.Equal(t, want, a.ops())
			assert.Equal(t, c.verdicts, a.verdicts)
			assert.Empty(t, a.open)
			restarts(t, create, in, sorted)
		})
	}
}

// The line in which one object ends and the next begins belongs to the one that ends, also if that one began there.
func TestNextBegins(t *testing.T) {
	in := lines(`{"timestamp": 1, "rank": 2, "operation": "allreduce", "duration_us": 10}{
"timestamp": 2,
"operation": "broadcast", "duration_us": 20
}
{"timestamp": 3, "operation": "allreduce"}
`)
	create := func() parse.Parser { return NewJSON("rank_2.json") }
	a := parseAll(t, create(), in, nil)
	assert.Equal(t, []string{
		"AllReduce #0 of 2 [1000000000 1000010000] took=10000", "Broadcast #0 of 2 [2000000000 2000020000] took=20000",
		"AllReduce #1 of 2 [3000000000 3000000000]",
	}, a.ops())
	assert.Equal(t, []int{0}, a.parts[0].lines)
	restarts(t, create, in, sorted)
}

func sorted(ops []string) any {
	m := map[string]int{}
	for _, o := range ops {
		m[o]++
	}
	return m
}

func TestTorn(t *testing.T) {
	const (
		begin = "{\n\"timestamp\": 1,\n\"operation\": \"allreduce\",\n"
		rest  = "\"duration_us\": 10\n}\n"
		next  = `{"timestamp": 2, "operation": "allreduce", "duration_us": 20}` + "\n"
	)
	torn, after := "AllReduce of 3 [1000000000 1000010000] took=10000", "AllReduce #1 of 3 [2000000000 2000020000] took=20000"
	alone := "AllReduce #0 of 3 [2000000000 2000020000] took=20000"
	for _, c := range []struct {
		name, text string
		want       []string
		verdicts   map[string]int
	}{
		{"before its duration", begin + next, []string{alone}, map[string]int{"record": 4}},
		{"behind its duration", begin + "\"duration_us\": 10,\n" + next, []string{torn, after}, map[string]int{"record": 5}},
		{"within its duration", begin + "\"duration_us\": 10\n" + next, []string{alone}, map[string]int{"record": 5}},
		{"within a number, same line", begin + "\"duration_us\": 10" + next, []string{alone}, map[string]int{"record": 4}},
		{"within a text", begin + "\"duration_us\": 10,\n\"algorithm\": \"ri\n" + next, []string{torn, after}, map[string]int{"record": 5, "rejected not_json": 1}},
		{"before a value", begin + "\"duration_us\":\n" + next, []string{alone}, map[string]int{"record": 5}},
		{"behind its brace", "{\n" + next, []string{alone}, map[string]int{"record": 2}},
		{"other text within", begin + "Traceback:\n" + rest + next, []string{alone}, map[string]int{"record": 4, "rejected not_json": 3}},
		{
			"other text behind its duration", begin + "\"duration_us\": 10,\nTraceback:\n\"rank\": 5\n}\n" + next,
			[]string{torn, after},
			map[string]int{"record": 5, "rejected not_json": 3},
		},
		{"twice", begin + begin + rest + next, []string{"AllReduce #0 of 3 [1000000000 1000010000] took=10000", after}, map[string]int{"record": 9}},
		{
			"not one of ours, the next begins with its end", "{\n\"x\": 1\n}{\n" + strings.TrimPrefix(begin, "{\n") + rest,
			[]string{"AllReduce #0 of 3 [1000000000 1000010000] took=10000"},
			map[string]int{"record": 6, "rejected no_operation": 1},
		},
		{"at the end", begin + "\"duration_us\": 10,\n", []string{torn}, map[string]int{"record": 4}},
		{"at the end, too early", begin, nil, map[string]int{"record": 3}},
		{"its beginning", strings.TrimPrefix(begin, "{\n") + rest + next, []string{alone}, map[string]int{"record": 1, "rejected not_json": 4}},
		{
			"too long", begin + "\"duration_us\": 10,\n\"x\": \"" + strings.Repeat("y", maxObject) + "\",\n\"rank\": 5\n}\n" + next,
			[]string{torn, after},
			map[string]int{"record": 5, "rejected too_long": 1, "rejected not_json": 2},
		},
		{
			"ever longer", begin + strings.Repeat("\"x\": \""+strings.Repeat("y", 1000)+"\",\n", 100) + next,
			[]string{alone},
			map[string]int{"record": 68, "rejected too_long": 1, "rejected not_json": 35},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			create := func() parse.Parser { return NewJSON("rank_3.json") }
			a := parseAll(t, create(), lines(c.text), nil)
			assert.Equal(t, c.want, a.ops())
			assert.Equal(t, c.verdicts, a.verdicts)
		})
	}
}

// A restarted job restarts its ordinals, in another communicator.
func TestSessions(t *testing.T) {
	record := `{"timestamp": 1, "operation": "reduce"}`
	for name, create := range map[string]func() parse.Parser{
		"json": func() parse.Parser { return NewJSON("rank_1.json") }, "csv": func() parse.Parser { return NewCSV("rank_1.csv") },
	} {
		t.Run(name, func(t *testing.T) {
			in := []given{{text: record}, {text: record}, {text: record, file: true}, {text: record}, {text: record, file: true}}
			if name == "csv" {
				in = append([]given{{text: "timestamp,operation"}}, in...)
				for i := range in[1:] {
					in[i+1].text = "1,reduce"
				}
				in[3].file, in[3].text = true, "timestamp,operation" // a header first
				in[4].file = false
				in = append(in, given{text: "1,reduce"})
				in[5], in[6] = given{text: "1,reduce"}, given{text: "1,reduce", file: true}
			}
			var saved [][]byte
			p := create()
			a := parseAll(t, p, in, func(int) { saved = append(saved, p.Save()) })
			const at = " of 1 [1000000000 1000000000]"
			want := []string{"Reduce #0" + at, "Reduce #1" + at, "Reduce #0 in session-2" + at, "Reduce #1 in session-2" + at, "Reduce #0 in session-3" + at}
			assert.Equal(t, want, a.ops())
			// Lines read again after a complete save have their session and ordinal, and the next line continues them.
			var again []given
			for _, part := range a.parts {
				for _, i := range part.lines {
					again = append(again, given{text: in[i].text, again: true, tag: a.tags[i]})
				}
			}
			q := create()
			q.Restore(saved[len(saved)-1])
			again = append(again, in[len(in)-1])
			again[len(again)-1].file = false
			assert.Equal(t, append(want, "Reduce #1 in session-3"+at), parseAll(t, q, again, nil).ops())
		})
	}
	t.Run("not of nothing", func(t *testing.T) {
		assert.Equal(t, []string{"Reduce #0 of 1 [1000000000 1000000000]"}, parseAll(t, NewJSON("rank_1.json"), []given{{text: record, file: true}}, nil).ops())
	})
	t.Run("torn by it", func(t *testing.T) {
		in := []given{{text: record}, {text: `{"timestamp": 1, "operation": "reduce", "duration_us": 1,`}, {text: record, file: true}}
		assert.Equal(t, []string{
			"Reduce #0 of 1 [1000000000 1000000000]", "Reduce of 1 [1000000000 1000001000] took=1000", "Reduce #0 in session-2 of 1 [1000000000 1000000000]",
		},
			parseAll(t, NewJSON("rank_1.json"), in, nil).ops())
	})
	t.Run("saved before its first line", func(t *testing.T) {
		p, q := NewJSON("rank_1.json"), NewJSON("rank_1.json")
		parseAll(t, p, []given{{text: record}}, nil)
		p.NewFile()
		q.Restore(p.Save())
		assert.Equal(t, []string{"Reduce #0 in session-2 of 1 [1000000000 1000000000]"}, parseAll(t, q, []given{{text: record}}, nil).ops())
	})
}

// Operations are counted by rank and name, also where the record is rejected for another reason.
func TestOrdinals(t *testing.T) {
	in := []given{
		{text: `{"timestamp": 1, "operation": "reduce", "rank": 0}`},
		{text: `{"timestamp": 1, "operation": "reduce", "rank": 1}`},
		{text: `{"timestamp": 1, "operation": "Reduce", "rank": 0}`},
		{text: `{"timestamp": 1, "operation": "x", "rank": 0}`},
		{text: `{"timestamp": 1, "operation": "y", "rank": 0}`},
		{text: `{"timestamp": 1, "operation": "x", "rank": 0}`},
		{text: `{"timestamp": 1, "operation": "reduce", "rank": 0, "duration_us": -1}`},
		{text: `{"timestamp": 1, "operation": "reduce", "rank": 0}{"timestamp": 1, "operation": "x", "rank": 0}`},
	}
	a := parseAll(t, NewJSON(""), in, nil)
	var got []string
	for _, o := range a.ops() {
		name, _, _ := strings.Cut(o, " [")
		got = append(got, name)
	}
	assert.Equal(
		t, []string{`Reduce #0 of 0`, `Reduce #0 of 1`, `Reduce #1 of 0`, `"x" #0 of 0`, `"y" #0 of 0`, `"x" #1 of 0`, `Reduce #3 of 0`, `"x" #2 of 0`}, got,
	)
	// A line with several operations, not at the beginning: after a restart only the first is known.
	p := NewJSON("")
	again := parseAll(t, p, []given{{text: in[7].text, again: true, tag: a.tags[7]}}, nil)
	assert.Equal(t, []string{`Reduce #3 of 0 [1000000000 1000000000]`, `"x" of 0 [1000000000 1000000000]`}, again.ops())
	assert.Nil(t, p.Save(), "what is read again does not count")
}

func TestCountersAreBounded(t *testing.T) {
	p := NewJSON("")
	var out parse.Out
	for i := range 3 * maxCounts {
		out.Reset()
		v, _ := p.Line(fmt.Appendf(nil, `{"timestamp": 1, "operation": "reduce", "rank": %d}`, i), false, 0, &out)
		require.Equal(t, parse.Record, v)
		require.Equal(t, i < maxCounts, out.Ops[0].HasSeq)
	}
	saved := p.Save()
	assert.Less(t, len(saved), 64<<10)
	q := NewJSON("")
	q.Restore(saved)
	assert.Equal(t, saved, q.Save())
	for n := 0; n < len(saved); n += 97 { // damaged
		NewJSON("").Restore(saved[:n])
	}
}

// The unit, and the value in By/s, against exact arithmetic: bandwidths of all sizes, printed with one to three decimals.
func TestBandwidthUnit(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 3))
	wrong := 0
	for range 50_000 {
		size := int64(math.Exp2(10 + 24*rng.Float64()))
		ns := int64(float64(size)/(0.2+400*rng.Float64())) / 100 * 100 // 0.2 to 400 GB/s
		if ns == 0 {
			continue
		}
		gb, _ := new(big.Rat).SetFrac64(size, ns).Float64() // By/ns = GB/s
		factor, unit, per := 8.0, "Gbit/s", big.NewRat(1e9, 8)
		if rng.IntN(2) == 0 {
			factor, unit, per = 1, "GB/s", big.NewRat(1e9, 1)
		}
		printed := strconv.FormatFloat(gb*factor, 'f', 1+rng.IntN(3), 64)
		reported, ok := new(big.Rat).SetString(printed)
		require.True(t, ok)
		text := fmt.Sprintf(
			`{"timestamp": 1, "operation": "reduce", "message_size": %d, "duration_us": %d.%d, "bandwidth_gbps": %s}`, size, ns/1000, ns%1000/100, printed,
		)
		var out parse.Out
		v, _ := NewJSON("").Line([]byte(text), false, 0, &out)
		require.Equal(t, parse.Record, v, text)
		o := &out.Ops[0]
		require.Equal(t, ns, o.Duration, text)
		require.Equal(t, unit, o.ReportedUnit, text)
		want, _ := reported.Mul(reported, per).Float64()
		if math.Abs(o.ReportedAlg-want) > 1e-12*want {
			wrong++
		}
	}
	assert.Zero(t, wrong)
	for _, c := range []struct {
		reported, want float64
		size, ns       int64
		unit           string
	}{
		{26.8, 3.35e9, 4194304, 1250500, "Gbit/s"},
		{3.4, 3.4e9, 4194304, 1250500, "GB/s"},
		{10, 1.25e9, 4194304, 1250500, "Gbit/s"}, // neither
		{0, 0, 4194304, 1250500, "Gbit/s"},
		{0.1, 0.1e9 / 8, 1000, 80000, "Gbit/s"},  // 0.0125 GB/s
		{0.0, 0, 10, 80000, "GB/s"},              // rounded to nothing in either unit
		{5, 5e9 / 8, op.Unknown, 1000, "Gbit/s"}, // no size
		{5, 5e9 / 8, 5000, op.Unknown, "Gbit/s"}, // no duration
		{5, 5e9 / 8, 5000, 0, "Gbit/s"},
	} {
		unit, v := bandwidth(c.reported, c.size, c.ns)
		assert.Equal(t, c.unit, unit, "%v", c)
		assert.InDelta(t, c.want, v, 1e-3, "%v", c)
	}
}
