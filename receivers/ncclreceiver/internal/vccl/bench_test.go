package vccl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// hot returns readers of the frequent lines, after reading the lines needed before them.
func hot(tb testing.TB) map[string]func(out *parse.Out) int {
	tb.Helper()
	over := func(p parse.Parser, before string, rows ...string) func(out *parse.Out) int {
		var out parse.Out
		if before != "" {
			v, _ := p.Line([]byte(before), false, 0, &out)
			require.Equal(tb, parse.Ignored, v)
		}
		text := make([][]byte, len(rows))
		for i, r := range rows {
			text[i] = []byte(strings.TrimSuffix(r, "\n"))
		}
		i := 0
		return func(out *parse.Out) int {
			b := text[i%len(text)]
			i++
			out.Reset()
			if v, reason := p.Line(b, false, 0, out); v != parse.Record {
				tb.Fatal(reason)
			}
			return len(b)
		}
	}
	var rows, mixed []string
	for i := range 1000 {
		rows = append(rows, send(12715772615376301750, 0, 8, 0, 4, i/50, 180, 1767866400000062445+i*30000))
		mixed = append(mixed, send(12715772615376301750+uint64(i%8), 0, 8, 0, 4, i/200, 180, 1767866400000062445+i*30000))
	}
	pretty := strings.Split(strings.NewReplacer("{", "{\n", ", ", ",\n  ", "}", "\n}").Replace(example), "\n")
	return map[string]func(out *parse.Out) int{
		"json":        over(NewJSON("rank_0.json"), "", example),
		"json_pretty": over(NewJSON("rank_0.json"), "", pretty...),
		"csv":         over(NewCSV("rank_0.csv"), exampleHeader, "1693958400.123,0,allreduce,ring,4194304,1250.5,26.8,0,1,0,7,0,0"),
		"flow":        over(NewFlow(nicFile), flowHeader, rows...),
		"flow_mixed":  over(NewFlow(nicFile), flowHeader, mixed...),
		"packed":      over(NewPacked(nicFile), "", "9601674407965897472"),
		"mean":        over(NewMean(nicFile, time.UTC), meanHeader, "20260112140501,0,4,187,181,1"),
		"text": over(NewText(nicFile, time.UTC), "",
			fmt.Sprintf("20250710143000: Group:%d, from rank 0 to rank 8, channel_id:0, func:4,FuncTimes:118, 10.10.1.11->10.10.1.12 send 524288 Bytes used 22310 nsec, devIndex:0, sendWrCounter:3",
				uint64(12715772615376301750))),
	}
}

func TestNoAllocations(t *testing.T) {
	for name, next := range hot(t) {
		var out parse.Out
		for range 2 * maxRows {
			next(&out)
		}
		assert.Zero(t, testing.AllocsPerRun(10_000, func() { next(&out) }), name)
	}
}

func BenchmarkLine(b *testing.B) {
	for name, next := range hot(b) {
		b.Run(name, func(b *testing.B) {
			var out parse.Out
			n, bytes := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				bytes += next(&out)
				n++
			}
			b.SetBytes(int64(bytes / n))
		})
	}
}
