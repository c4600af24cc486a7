package vccl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

const exampleHeader = "timestamp,rank,operation,algorithm,message_size,duration_us,bandwidth_gbps,src_rank,dst_rank,channel_id,stream_id,error_count,retry_count"

type csvTest struct {
	name, text string
	want       []string
	verdicts   map[string]int
}

func readCSV(t *testing.T, cases []csvTest) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := lines(c.text)
			create := func() parse.Parser { return NewCSV("rank_3.csv") }
			a := parseAll(t, create(), in, nil)
			assert.Equal(t, c.want, a.ops())
			assert.Equal(t, c.verdicts, a.verdicts)
			assert.Empty(t, a.open)
			restarts(t, create, in, sorted)
		})
	}
}

func TestCSV(t *testing.T) {
	const at = " of 3 [5000000000 5000001500] took=1500"
	readCSV(t, []csvTest{
		{
			"the document's example", exampleHeader + "\n1693958400.123,0,allreduce,ring,4194304,1250.5,26.8,0,1,0,7,0,0\n",
			[]string{"AllReduce #0 of 0 [1693958400123000000 1693958400124250500] took=1250500 size=4194304 from=0 to=1 channel=0 stream=7 ring 3350000000(Gbit/s)"},
			map[string]int{"record": 1, "ignored header": 1},
		},
		{
			"other order, other columns", "host,Operation, Duration_us ,\"TIMESTAMP\",x\nh,reduce,1.5,5,\n",
			[]string{"Reduce #0" + at},
			map[string]int{"record": 1, "ignored header": 1},
		},
		{
			"quoted", "timestamp,operation,duration_us,algorithm\n\"5\",\"all_reduce\", \"1.5\" ,\"a,\"\"b\"\"\"\n",
			[]string{`AllReduce #0` + at + ` a,"b"`},
			map[string]int{"record": 1, "ignored header": 1},
		},
		{"empty cells", exampleHeader + "\n5,,reduce,,,1.5,,,,,,,\n", []string{"Reduce #0" + at}, map[string]int{"record": 1, "ignored header": 1}},
		{
			"as pandas writes", exampleHeader + "\n5.0,3.0,reduce,nan,4194304.0,1.5,NaN,0.0,1.0,,,0.0,0.0\n",
			[]string{"Reduce #0" + at + " size=4194304 from=0 to=1"},
			map[string]int{"record": 1, "ignored header": 1},
		},
		{
			"CRLF, byte order mark, blanks", "\xef\xbb\xbfoperation,timestamp,duration_us\r\n \r\nreduce,5,1.5\r\n",
			[]string{"Reduce #0" + at},
			map[string]int{"record": 1, "ignored header": 1, "ignored blank": 1},
		},
	})
}

func TestCSVHeaders(t *testing.T) {
	const at = " of 3 [5000000000 5000001500] took=1500"
	readCSV(t, []csvTest{
		{
			"header again", "operation,timestamp,duration_us\nreduce,5,1.5\noperation,timestamp,duration_us\nreduce,5,1.5\n",
			[]string{"Reduce #0" + at, "Reduce #1" + at},
			map[string]int{"record": 2, "ignored header": 2},
		},
		{
			"another header",
			"operation,timestamp,duration_us\nreduce,5,1.5\nduration_us,timestamp,operation\n1.5,5,reduce\nx,timestamp,operation,duration_us\nx,5,reduce,1.5\n",
			[]string{"Reduce #0" + at, "Reduce #1" + at, "Reduce #2" + at},
			map[string]int{"record": 3, "ignored header": 3},
		},
		{"no header", "reduce,5,1.5\n", nil, map[string]int{"rejected no_header": 1}},
		{"header without an operation", "timestamp,rank\n5,1\n", nil, map[string]int{"rejected no_header": 2}},
	})
}

func TestCSVRejected(t *testing.T) {
	readCSV(t, []csvTest{
		{
			"cut rows", "operation,timestamp,duration_us\nreduce,5\nreduce,5,1.5,\nreduce\n\"reduce,5,1.5\n\"reduce\"x,5,1.5\n", nil,
			map[string]int{"rejected column_count": 5, "ignored header": 1},
		},
		{
			"bad values", "operation,timestamp,duration_us\nreduce,x,1.5\nreduce,5,-1\n,5,1\nreduce,,\n", nil,
			map[string]int{"rejected number": 1, "rejected negative": 1, "rejected no_operation": 1, "rejected no_time": 1, "ignored header": 1},
		},
		{"header that is too long", "operation,timestamp," + strings.Repeat("x", maxHeader) + "\n", nil, map[string]int{"rejected no_header": 1}},
		{"header of too many columns", "operation,timestamp" + strings.Repeat(",", maxColumns) + "\n", nil, map[string]int{"rejected no_header": 1}},
	})
}
