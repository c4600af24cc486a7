package vccl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// checkOps checks the invariants of every operation; ordinals count operations of the same kind.
func checkOps(t *testing.T, out *parse.Out, next map[string]uint64) {
	t.Helper()
	for i := range out.Ops {
		o := &out.Ops[i]
		require.True(t, o.Duration >= 0 || o.Duration == op.Unknown)
		require.GreaterOrEqual(t, o.Size, int64(op.Unknown))
		if o.Start > 0 {
			require.Equal(t, o.Start+max(0, o.Duration), o.End)
		}
		if o.HasSeq {
			require.NotContains(t, []op.Kind{op.Send, op.Recv, op.SendRecv}, o.Kind)
		}
		if o.Ordinal {
			of := fmt.Sprintf("%s %d %q %d", o.Comm, o.Kind, o.Name, o.Rank)
			require.GreaterOrEqual(t, o.Seq, next[of], of)
			next[of] = o.Seq + 1
		}
	}
}

// checkMessages reads in line by line. From every place without an open record the rest is read again, by a restored parser and by one with a new file. Both
// read the rest alike.
func checkMessages(t *testing.T, create func() parse.Parser, in []given, idle func(parse.Parser) bool) {
	t.Helper()
	p, next := create(), map[string]uint64{}
	var out parse.Out
	var states [][]byte
	var quiet []int
	for i, l := range in {
		out.Reset()
		p.Line([]byte(l.text), false, 0, &out)
		checkOps(t, &out, next)
		if idle(p) && len(quiet) < 20 {
			quiet, states = append(quiet, i+1), append(states, p.Save())
		}
	}
	out.Reset()
	p.End(&out)
	checkOps(t, &out, next)

	whole := parseAll(t, create(), in, nil)
	for i, at := range quiet {
		head := parseAll(t, create(), in[:at], nil)
		q := create()
		if states[i] != nil {
			q.Restore(states[i])
		}
		tail := parseAll(t, q, in[at:], nil)
		require.Equal(t, whole.ops(), append(head.ops(), tail.ops()...))
		for v, n := range whole.verdicts {
			require.Equal(t, n, head.verdicts[v]+tail.verdicts[v], v)
		}
		if at < len(in) {
			other := append([]given(nil), in...)
			other[at].file = true
			a := parseAll(t, create(), other, nil)
			require.Equal(t, whole.verdicts, a.verdicts)
			require.Len(t, a.ops(), len(whole.ops()))
		}
	}
}

func FuzzJSON(f *testing.F) {
	pretty := strings.NewReplacer("{", "{\n", ", ", ",\n  ", "}", "\n}").Replace(example)
	for _, s := range []string{
		example, example + "\n" + example, pretty, pretty + pretty, "[" + pretty + ",\n" + pretty + "\n]", "[" + example + ", " + example + "]",
		example[:50] + "\n" + example, example[:100] + example,
		`{"operation": "x", "timestamp": 1, "duration_us": 1,` + "\n" + `{"operation": "x", "timestamp": 1}`,
		`{"operation": "send", "timestamp": 1, "x": {"y": [1, {}]}}` + "\n\n" + `}`,
		"{\n\"operation\": \"a\\u005fb\",\n\"timestamp\": 1\nTraceback\n\"rank\": 3,\n{",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := lines(text)
		if len(in) > 200 || len(text) > 4<<10 {
			return
		}
		checkMessages(t, func() parse.Parser { return NewJSON("rank_3.json") }, in, func(p parse.Parser) bool { j := p.(*JSONParser); return !j.open && !j.torn })
		for _, l := range in {
			var out parse.Out
			v, reason := NewJSON("").Line([]byte(l.text), false, 0, &out)
			if reason == reasonNotJSON && readable(l.text) {
				t.Fatalf("%q is JSON", l.text)
			}
			require.False(t, v == parse.Record && !out.Open && len(out.Ops) == 0)
			sniffed(t, l.text)
		}
	})
}

// readable reports whether text is an object by the standard library, with plain values for our keys.
func readable(text string) bool {
	if !json.Valid([]byte(text)) || strings.TrimSpace(text)[0] != '{' {
		return false
	}
	d := json.NewDecoder(strings.NewReader(text))
	depth, name := 0, ""
	key := false // the next token at depth 1 is a key
	for {
		token, err := d.Token()
		if err != nil {
			return true
		}
		switch x := token.(type) {
		case json.Delim:
			switch x {
			case '{', '[':
				if depth == 1 && keyOf([]byte(name)) != noKey || depth == maxDepth-1 {
					return false
				}
				depth++
				key = depth == 1
			default:
				depth--
				key = depth == 1
			}
			continue
		case string:
			if depth == 1 && key {
				name, key = x, false
				continue
			}
		}
		if depth == 1 {
			key = true
		}
	}
}

func FuzzCSV(f *testing.F) {
	row := "1693958400.123,0,allreduce,ring,4194304,1250.5,26.8,0,1,0,7,0,0"
	for _, s := range []string{
		exampleHeader + "\n" + row + "\n" + row, "operation,timestamp\nreduce,5\ntimestamp,operation\n5,reduce\n", row + "\n" + exampleHeader,
		"operation,timestamp,x\n\"a,\"\"b\"\"\",5,\nreduce,5\n\"reduce,5,6",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := lines(text)
		if len(in) > 200 || len(text) > 4<<10 {
			return
		}
		checkMessages(t, func() parse.Parser { return NewCSV("rank_3.csv") }, in, func(parse.Parser) bool { return true })
	})
}

// checkSends checks that every row is in one operation, also when the files change and when reading restarts at any line.
func checkSends(t *testing.T, create func() parse.Parser, in []given, seed uint64) {
	t.Helper()
	count := func(a *account) (n int64) {
		for _, o := range a.ops() {
			i := strings.Index(o, " sends=")
			require.Positive(t, i)
			rest, _, _ := strings.Cut(o[i+7:], " ")
			sends, err := strconv.ParseInt(rest, 10, 64)
			require.NoError(t, err)
			n += sends
		}
		return n
	}
	whole := parseAll(t, create(), in, nil)
	require.Equal(t, int64(whole.verdicts["record"]), count(whole))
	rng := rand.New(rand.NewPCG(seed, 1))
	other := append([]given(nil), in...)
	for i := range other {
		other[i].file = rng.IntN(4) == 0
	}
	a := parseAll(t, create(), other, nil)
	require.Equal(t, whole.verdicts, a.verdicts)
	require.Equal(t, count(whole), count(a))
	held := 0
	for _, p := range append(whole.parts, whole.left) {
		held += len(p.lines)
	}
	require.Equal(t, whole.verdicts["record"], held, "every row is held for one part")
	at := rng.IntN(len(in))
	head := parseAll(t, create(), in[:at], nil)
	var rest []given
	for _, i := range head.open {
		rest = append(rest, given{text: in[i].text, again: true})
	}
	head.left = part{} // open rows are read again
	require.Equal(t, count(whole), count(head)+count(parseAll(t, create(), append(rest, in[at:]...), nil)))
}

func FuzzFlow(f *testing.F) {
	f.Add(flowHeader+"\n"+send(1, 0, 8, 0, 4, 1, 80, 1000)+send(1, 0, 8, 0, 4, 2, -1, 1000), uint64(1))
	f.Add(flowLog(rand.New(rand.NewPCG(3, 3)), 30), uint64(2))
	f.Add("20260108180000,1,0,8", uint64(3))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		in := lines(text)
		if len(in) > 200 || len(text) > 16<<10 {
			return
		}
		checkSends(t, func() parse.Parser { return NewFlow(nicFile) }, in, seed)
		for _, l := range in {
			var out parse.Out
			if v, _ := NewFlow("").Line([]byte(l.text), false, 0, &out); v == parse.Record {
				cells := bytes.Split(trim([]byte(l.text)), []byte{','})
				require.Len(t, cells, 13)
				_, err := strconv.ParseUint(string(cells[1]), 10, 64)
				require.NoError(t, err)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add(
		"20250710143000: Group:12715772615376301750, from rank 0 to rank 8, channel_id:0, func:4,FuncTimes:118, 10.10.1.11->10.10.1.12 send 524288 Bytes used 22310 nsec, devIndex:0, sendWrCounter:3\n",
		uint64(1),
	)
	f.Add(
		"20250710143000: Group:1, from rank -1 to rank 8, channel_id:0, func:9,FuncTimes:118, a->b send 1 Bytes used 0 nsec, devIndex:0, sendWrCounter:-3\nx\n20250710143000: Group:",
		uint64(2),
	)
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		in := lines(text)
		if len(in) > 200 || len(text) > 16<<10 {
			return
		}
		checkSends(t, func() parse.Parser { return NewText(nicFile, time.UTC) }, in, seed)
	})
}

func FuzzPacked(f *testing.F) {
	f.Add("64 bits data: status(63) | bandwidth(62 - 54) | timestamp(53 - 0) \n9601674407965897472\n0\n18446744073709551615\n18446744073709551616\n")
	f.Add("00000000000000000000000000000012\n+1\n1_0\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range lines(text) {
			var out parse.Out
			v, reason := NewPacked(nicFile).Line([]byte(l.text), false, 0, &out)
			word, err := strconv.ParseUint(string(trim([]byte(l.text))), 10, 64)
			switch {
			case err == nil && word > 0:
				require.Equal(t, parse.Record, v, l.text)
				require.Len(t, out.Samples, 2)
				require.InDelta(t, word>>54&0x1ff, out.Samples[0].Value/125e6, 1e-9)
				require.InDelta(t, word>>63, out.Samples[1].Value, 0)
				require.Equal(t, word, uint64(out.Samples[1].Value)<<63|uint64(out.Samples[0].Value/125e6+0.5)<<54|uint64(out.Samples[0].At), "all of its bits")
			case err == nil:
				require.Equal(t, ignoredOverflow, reason)
			default:
				require.NotEqual(t, parse.Record, v, l.text)
				require.Empty(t, out.Samples)
			}
		}
	})
}

func FuzzMean(f *testing.F) {
	f.Add(meanHeader + "\n20260112140501,0,4,187,181,1\n20260112140501,0,4,187\n20260230140501,0,4,187,181,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range lines(text) {
			var out parse.Out
			v, _ := NewMean(nicFile, time.UTC).Line([]byte(l.text), false, 0, &out)
			require.Equal(t, v == parse.Record, len(out.Samples) == 3)
			require.Empty(t, out.Ops)
			if v == parse.Record {
				at, err := time.Parse("20060102150405", string(trim([]byte(l.text))[:14]))
				require.NoError(t, err)
				require.Equal(t, at.UnixNano(), out.Samples[0].At)
			}
		}
	})
}
