package inspector

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// BenchmarkLine reads lines of each version, and in v4.0's form: of one communicator, of as many as there are known prefixes, and of more.
func BenchmarkLine(b *testing.B) {
	v40 := lines(b, "v4.0")[2]
	v44 := lines(b, "v4.4")
	context, _, _ := strings.Cut(v40, `"coll_perf"`)
	of := func(ranks int) (all []string) {
		for rank := range ranks {
			all = append(all, strings.Replace(v40, `"rank":1`, fmt.Sprintf(`"rank":%d`, rank), 1))
		}
		return all
	}
	dump := []string{strings.Replace(v44[0], `"coll_records":2`, `"coll_records":8`, 1)}
	for range 8 {
		dump = append(dump, v44[1])
	}
	for _, c := range []struct {
		name string
		all  []string
	}{
		{"v4.0", of(1)},
		{"v4.0/8_ranks", of(8)},
		{"v4.0/64_ranks", of(64)},
		{"v4.0/1000_ranks", of(1000)},
		{"v4.0/p2p", lines(b, "v4.0")[10:12]},
		{"v4.4/dump_of_8", dump},
		{"v4.4/verbose", []string{strings.Replace(v44[2], `{`, context, 1)}},
		{"v4.4/proxy", []string{strings.Replace(v44[6], `{`, context, 1)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			p, size := New(), 0
			var texts [][]byte
			for _, l := range c.all {
				texts = append(texts, []byte(l))
				size += len(l)
			}
			var out parse.Out
			b.SetBytes(int64(size / len(texts)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				out.Reset()
				if v, reason := p.Line(texts[n], false, 0, &out); v != parse.Record {
					b.Fatal(reason)
				}
				if n++; n == len(texts) {
					n = 0
				}
			}
		})
	}
}
