package vccl

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// send is a row of the CSV.
func send(group uint64, from, to, dev, function, times, bandwidth, at int) string {
	return fmt.Sprintf("20260108180000,%d,%d,%d,%d,%d,%d,10.10.1.11,10.10.1.12,%d,3,524288,%d\n", group, from, to, dev, function, times, bandwidth, at)
}

const nicFile = "/t/node01-mlx5_0-Port0-A.log"

type flowTest struct {
	name, text string
	want       []string
	open       int // lines before the end
	verdicts   map[string]int
}

func readFlows(t *testing.T, cases []flowTest) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := parseAll(t, NewFlow(nicFile), lines(c.text), nil)
			assert.Equal(t, c.want, a.ops())
			assert.Equal(t, c.verdicts, a.verdicts)
			assert.Len(t, a.open, c.open)
			assert.Empty(t, a.samples(), "links are made of operations")
		})
	}
}

func TestFlowOperations(t *testing.T) {
	const hash = uint64(12715772615376301750) // printf '%x': b0777fd29824eeb6
	readFlows(t, []flowTest{
		{
			"two operations",
			flowHeader + "\n" + send(hash, 0, 8, 0, 4, 118, 180, 1000) + send(hash, 0, 8, 0, 4, 118, 90, 3000) + send(hash, 0, 8, 0, 4, 119, 200, 4000),
			[]string{
				"AllReduce =118 in 0xb0777fd29824eeb6 of 0 on node01 [1000 3000] took=2000 from=0 to=8 sends=2 mean=16875000000 least=11250000000",
				"AllReduce =119 in 0xb0777fd29824eeb6 of 0 on node01 [4000 4000] took=0 from=0 to=8 sends=1 mean=25000000000 least=25000000000",
			},
			1,
			map[string]int{"ignored header": 1, "record": 3},
		},
		{
			"several links",
			send(1, 0, 8, 0, 2, 7, 80, 1000) + send(1, 0, 16, 0, 2, 7, 80, 1500) + send(1, 1, 8, 0, 2, 7, 80, 1600) + send(1, 0, 8, 1, 2, 7, 80, 1700) +
				send(1, 0, 8, 0, 2, 7, 40, 2000),
			[]string{
				"AllGather =7 in 0x1 of 0 on node01 [1000 2000] took=1000 from=0 to=8 sends=2 mean=7500000000 least=5000000000",
				"AllGather =7 in 0x1 of 0 on node01 [1500 1500] took=0 from=0 to=16 sends=1 mean=10000000000 least=10000000000",
				"AllGather =7 in 0x1 of 1 on node01 [1600 1600] took=0 from=1 to=8 sends=1 mean=10000000000 least=10000000000",
				"AllGather =7 in 0x1 of 0 on node01 [1700 1700] took=0 from=0 to=8 sends=1 mean=10000000000 least=10000000000",
			},
			5,
			map[string]int{"record": 5},
		},
		{
			"groups that interleave leave together",
			send(1, 0, 8, 0, 4, 1, 80, 1000) + send(2, 0, 8, 0, 3, 9, 80, 1100) + send(1, 0, 8, 0, 4, 1, 80, 1200) + send(1, 0, 8, 0, 4, 2, 80, 1300) +
				send(2, 0, 8, 0, 3, 9, 40, 1400),
			[]string{
				"AllReduce =1 in 0x1 of 0 on node01 [1000 1200] took=200 from=0 to=8 sends=2 mean=10000000000 least=10000000000",
				"ReduceScatter =9 in 0x2 of 0 on node01 [1100 1100] took=0 from=0 to=8 sends=1 mean=10000000000 least=10000000000",
				"AllReduce =2 in 0x1 of 0 on node01 [1300 1300] took=0 from=0 to=8 sends=1 mean=10000000000 least=10000000000",
				"ReduceScatter =9 in 0x2 of 0 on node01 [1400 1400] took=0 from=0 to=8 sends=1 mean=5000000000 least=5000000000",
			},
			2,
			map[string]int{"record": 5},
		},
		{
			"another function with the same number", send(1, 0, 8, 0, 2, 7, 80, 1000) + send(1, 0, 8, 0, 3, 7, 80, 2000),
			[]string{
				"AllGather =7 in 0x1 of 0 on node01 [1000 1000] took=0 from=0 to=8 sends=1 mean=10000000000 least=10000000000",
				"ReduceScatter =7 in 0x1 of 0 on node01 [2000 2000] took=0 from=0 to=8 sends=1 mean=10000000000 least=10000000000",
			},
			1,
			map[string]int{"record": 2},
		},
	})
}

func TestFlowRows(t *testing.T) {
	readFlows(t, []flowTest{
		{
			"sends have no sequence", send(1, 0, 8, 0, 6, 7, 80, 1000),
			[]string{"Send in 0x1 of 0 on node01 [1000 1000] took=0 from=0 to=8 peer=8 sends=1 mean=10000000000 least=10000000000"},
			1,
			map[string]int{"record": 1},
		},
		{
			"an operation of later versions", send(1, 0, 8, 0, 11, 7, 80, 1000),
			[]string{`"11" =7 in 0x1 of 0 on node01 [1000 1000] took=0 from=0 to=8 sends=1 mean=10000000000 least=10000000000`},
			1,
			map[string]int{"record": 1},
		},
		{
			"late rows", send(1, 0, 8, 0, 4, 1, 80, 2000) + send(1, 0, 8, 0, 4, 1, 80, 1000),
			[]string{"AllReduce =1 in 0x1 of 0 on node01 [1000 2000] took=1000 from=0 to=8 sends=2 mean=10000000000 least=10000000000"},
			2,
			map[string]int{"record": 2},
		},
		{
			"divided by zero", send(1, 0, 8, 0, 4, 1, -2147483648, 1000) + send(1, 0, 8, 0, 4, 1, 80, 2000),
			[]string{"AllReduce =1 in 0x1 of 0 on node01 [1000 2000] took=1000 from=0 to=8 sends=2 mean=10000000000 least=10000000000"},
			2,
			map[string]int{"record": 2},
		},
		{
			"nothing but that", send(1, 0, 8, 0, 4, 1, -2147483648, 1000),
			[]string{"AllReduce =1 in 0x1 of 0 on node01 [1000 1000] took=0 from=0 to=8 sends=1 mean=NaN least=NaN"},

			1,
			map[string]int{"record": 1},
		},
		{
			"header again", send(1, 0, 8, 0, 4, 1, 80, 1000) + flowHeader + "\r\n" + send(1, 0, 8, 0, 4, 1, 80, 2000),
			[]string{"AllReduce =1 in 0x1 of 0 on node01 [1000 2000] took=1000 from=0 to=8 sends=2 mean=10000000000 least=10000000000"},
			2,
			map[string]int{"record": 2, "ignored header": 1},
		},
		{
			"truncated by another process", "\x00\x00\x00" + send(1, 0, 8, 0, 4, 1, 80, 1000),
			[]string{"AllReduce =1 in 0x1 of 0 on node01 [1000 1000] took=0 from=0 to=8 sends=1 mean=10000000000 least=10000000000"},
			1,
			map[string]int{"record": 1},
		},
		{
			"largest numbers", send(1<<64-1, 0, 8, 0, 4, 1<<62, 511, 1<<62),
			[]string{
				"AllReduce =4611686018427387904 in 0xffffffffffffffff of 0 on node01 [4611686018427387904 4611686018427387904] took=0 from=0 to=8 sends=1 mean=63875000000 least=63875000000",
			},
			1,
			map[string]int{"record": 1},
		},
	})
}

func TestFlowNotRows(t *testing.T) {
	readFlows(t, []flowTest{
		{
			"not rows", strings.Join([]string{
				"Time,Group", "x", "2026010818000,1,0,8,0,4,1,a,b,80,3,5,1000", "20260108180000,1,0,8", "20260108180000,1,0,8,0,4,1,a,b,80,3,5,1000,7",
				"20260108180000,1,0,8,0,4,1,a,b,80,3,5,",
				"20260108180000,18446744073709551616,0,8,0,4,1,a,b,80,3,5,1000", "20260108180000,-1,0,8,0,4,1,a,b,80,3,5,1000",
				"20260108180000,1,0,4294967296,0,4,1,a,b,80,3,5,1000",
				"20260108180000,1,0,8,0,4,1,,b,80,3,5,1000", "20260108180000,1,0,8,0,4,1,a,b,80,3,5,0", "20260108180000,1,0,8,0,4,1,a,b,80,3,5,99999999999999999999",
				"20260108180000,1,0,8,0,4,1,a,b,8.5,3,5,1000",
				"20260108180000,1,0,8,0,4,1,a", "20260108180000,1,0,8,0,4,1,a,b,99999999999,3,5,1000",
			}, "\n") + "\n", nil, 0, map[string]int{"rejected not_a_row": 3, "rejected column_count": 3, "rejected number": 9},
		},
	})
}

// More links, and more rows, than the capacity.
func TestSendsAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range maxLinks + 1 {
		text.WriteString(send(1, 0, i, 0, 4, 1, 80, 1000))
	}
	a := parseAll(t, NewFlow(nicFile), lines(text.String()), nil)
	require.Len(t, a.parts, 1)
	assert.Len(t, a.parts[0].ops, maxLinks)
	assert.Len(t, a.parts[0].lines, maxLinks)
	assert.Len(t, a.left.ops, 1)

	in := make([]given, 2*maxRows+1)
	for i := range in {
		in[i].text = send(1, 0, 8, 0, 4, 1, 80, 1000)
	}
	a = parseAll(t, NewFlow(nicFile), in, nil)
	require.Len(t, a.parts, 2)
	for _, p := range a.parts {
		assert.Len(t, p.lines, maxRows)
		assert.Equal(t, []string{"AllReduce =1 in 0x1 of 0 on node01 [1000 1000] took=0 from=0 to=8 sends=4096 mean=10000000000 least=10000000000"}, p.ops)
	}
	assert.Len(t, a.open, 1)
}

// One of the two files is truncated: the open operations leave with the next row.
func TestFlip(t *testing.T) {
	row := send(1, 0, 8, 0, 4, 1, 80, 1000)
	a := parseAll(t, NewFlow(nicFile), []given{{text: row}, {text: flowHeader, file: true}, {text: row}}, nil)
	one := "AllReduce =1 in 0x1 of 0 on node01 [1000 1000] took=0 from=0 to=8 sends=1 mean=10000000000 least=10000000000"
	require.Len(t, a.parts, 1)
	assert.Equal(t, []string{one}, a.parts[0].ops)
	assert.Equal(t, []int{0}, a.parts[0].lines)
	assert.Equal(t, []string{one}, a.left.ops)
	a = parseAll(t, NewFlow(nicFile), []given{{text: row}, {text: flowHeader, file: true}}, nil)
	assert.Equal(t, []string{one}, a.left.ops)
}

// sum adds up the numbers of each operation and link: a restart may divide an operation differently.
func sum(ops []string) any {
	m := map[string]int{}
	for _, o := range ops {
		name, _, _ := strings.Cut(o, " [")
		_, link, _ := strings.Cut(o, " from=")
		_, to, _ := strings.Cut(link, " to=")
		to, _, _ = strings.Cut(to, " ")
		_, sends, _ := strings.Cut(link, " sends=")
		sends, _, _ = strings.Cut(sends, " ")
		n, _ := strconv.Atoi(sends)
		m[name+" to "+to] += n
	}
	return m
}

// flowLog is a log of three groups with mixed operations.
func flowLog(rng *rand.Rand, n int) (text string) {
	var times [3]int
	var b strings.Builder
	b.WriteString(flowHeader + "\n")
	for i := range n {
		g := rng.IntN(3)
		if rng.IntN(5) == 0 {
			times[g]++
		}
		b.WriteString(send(uint64(g), rng.IntN(2), 8+rng.IntN(2), 0, 4, times[g], rng.IntN(512), 1000+i))
	}
	return b.String()
}

func TestFlowRestarts(t *testing.T) {
	restarts(t, func() parse.Parser { return NewFlow(nicFile) }, lines(flowLog(rand.New(rand.NewPCG(1, 9)), 60)), sum)
}

// Every row is in one operation, however rows are mixed: counts, minimum, mean and times are checked against a second reading.
func TestFlowAddsUp(t *testing.T) {
	type total struct {
		n, sum, least int
	}
	for seed := range uint64(20) {
		text := flowLog(rand.New(rand.NewPCG(seed, 2)), 500)
		want, got := map[string]total{}, map[string]total{}
		for _, l := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
			f := strings.Split(l, ",")
			k := strings.Join([]string{f[1], f[2], f[3], f[6]}, " ")
			var v int
			_, err := fmt.Sscan(f[9], &v)
			require.NoError(t, err)
			w, ok := want[k]
			if !ok || v < w.least {
				w.least = v
			}
			w.n++
			w.sum += v
			want[k] = w
		}
		p, out := NewFlow(nicFile), parse.Out{}
		note := func() {
			for i := range out.Ops {
				o := &out.Ops[i]
				k := fmt.Sprint(strings.TrimPrefix(string(o.Comm), "0x"), " ", o.Source, " ", o.Destination, " ", o.Seq)
				w, ok := got[k]
				if least := int(o.LinkBandwidthWorst/1.25e8 + 0.5); !ok || least < w.least {
					w.least = least
				}
				w.n += int(o.Sends)
				w.sum += int(o.LinkBandwidth/1.25e8*float64(o.Sends) + 0.5)
				got[k] = w
			}
		}
		for _, l := range lines(text) {
			out.Reset()
			p.Line([]byte(l.text), false, 0, &out)
			note()
		}
		out.Reset()
		p.End(&out)
		note()
		require.Equal(t, want, got)
	}
}

func TestText(t *testing.T) {
	line := func(stamp string, channel, times, bytes, ns int) string {
		return fmt.Sprintf("%s: Group:12715772615376301750, from rank 0 to rank 8, channel_id:%d, func:4,FuncTimes:%d, 10.10.1.11->10.10.1.12 send %d Bytes used %d nsec, devIndex:0, sendWrCounter:3\n",
			stamp, channel, times, bytes, ns)
	}
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(t, err)
	newYork, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	for _, c := range []struct {
		name, text string
		zone       *time.Location
		want       []string
		verdicts   map[string]int
	}{
		{
			// 2025-07-10 14:30:00 UTC is 1752157800.
			"one", line("20250710143000", 0, 118, 524288, 22310), time.UTC, []string{
				"AllReduce =118 in 0xb0777fd29824eeb6 of 0 on node01 [1752157799999977690 1752157800000000000] took=22310 size=524288 total=-1 from=0 to=8 channel=0 sends=1 mean=23500134468.8 least=23500134468.8 {nccl.channel 0: send 524288 By to 8 in 22310}",
			}, map[string]int{"record": 1},
		},
		{
			"zone, channels, next", line("20250710223000", 0, 118, 1000, 100) + line("20250710223001", 1, 118, 3000, 100) + line("20250710223001", 1, 118, 2000, 300) +
				line("20250710223001", 0, 119, 1000, 100), shanghai, []string{
				"AllReduce =118 in 0xb0777fd29824eeb6 of 0 on node01 [1752157800999999600 1752157801000000000] took=400 size=6000 total=-1 from=0 to=8 sends=3 mean=12000000000 least=6666666666.67 {nccl.channel 0: send 1000 By to 8 in 100} {nccl.channel 1: send 5000 By to 8 in 400}",
				"AllReduce =119 in 0xb0777fd29824eeb6 of 0 on node01 [1752157800999999900 1752157801000000000] took=100 size=1000 total=-1 from=0 to=8 channel=0 sends=1 mean=10000000000 least=10000000000 {nccl.channel 0: send 1000 By to 8 in 100}",
			}, map[string]int{"record": 4},
		},
		{
			// 02:30 on 2025-03-09 does not exist; time.Date takes the later offset, −04:00.
			"hour that is not", line("20250309023000", 0, 1, 1000, 100), newYork, []string{
				fmt.Sprintf("AllReduce =1 in 0xb0777fd29824eeb6 of 0 on node01 [%d %d] took=100 size=1000 total=-1 from=0 to=8 channel=0 sends=1 mean=10000000000 least=10000000000 {nccl.channel 0: send 1000 By to 8 in 100}",
					time.Date(2025, 3, 9, 6, 30, 0, 0, time.UTC).UnixNano()-100, time.Date(2025, 3, 9, 6, 30, 0, 0, time.UTC).UnixNano()),
			}, map[string]int{"record": 1},
		},
		{
			"others", "\n" + strings.Join([]string{
				"x", "20250710143000: Group:1, from rank 0 to rank 8", strings.TrimSuffix(line("20251310143000", 0, 1, 1, 1), "\n"), strings.TrimSuffix(
					line("20250710143000", 0, 1, -1, 1), "\n",
				),
				strings.TrimSuffix(line("20250710143000", 0, 1, 1, 3600e9+1), "\n"), strings.TrimSuffix(line("20250710143000", 0, 1, 1, 1), "\n") + "x", strings.Replace(
					line("20250710143000", 0, 1, 1, 1), "10.10.1.11->10.10.1.12", "", 1,
				),
			}, "\n"), time.UTC, nil, map[string]int{"ignored blank": 1, "rejected not_a_row": 3, "rejected number": 3, "rejected negative": 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := parseAll(t, NewText(nicFile, c.zone), lines(c.text), nil)
			assert.Equal(t, c.want, a.ops())
			assert.Equal(t, c.verdicts, a.verdicts)
		})
	}
}

func TestPacked(t *testing.T) {
	word := func(status, bandwidth, ns uint64) string {
		return strconv.FormatUint(status<<63|bandwidth<<54|ns, 10) + "\n"
	}
	a := parseAll(t, NewPacked(nicFile), lines("64 bits data: status(63) | bandwidth(62 - 54) | timestamp(53 - 0) \n"+
		word(0, 184, 1000)+word(1, 21, 1<<54-1)+word(0, 600&511, 2000)+"0\n\n64 bits data: timestamp(63-10) | bandwidth(9-1) | status(0) \n18446744073709551616\n-1\n12 13\nx\n18446744073709551615\n"), nil)
	assert.Equal(t, map[string]int{"record": 4, "ignored header": 2, "ignored overflow": 1, "ignored blank": 1, "rejected number": 4}, a.verdicts)
	assert.Equal(t, []string{
		"nccl.device.bandwidth=23000000000 at 1000? on node01", "nccl.device.abnormal=0 at 1000? on node01",
		"nccl.device.bandwidth=2625000000 at 18014398509481983? on node01", "nccl.device.abnormal=1 at 18014398509481983? on node01",
		"nccl.device.bandwidth=11000000000 at 2000? on node01", "nccl.device.abnormal=0 at 2000? on node01", // 600 became 88
		"nccl.device.bandwidth=63875000000 at 18014398509481983? on node01", "nccl.device.abnormal=1 at 18014398509481983? on node01",
	}, a.samples())
	assert.Empty(t, a.ops())
	assert.Empty(t, a.open)
}

func TestMean(t *testing.T) {
	a := parseAll(t, NewMean(nicFile, time.UTC), lines(meanHeader+"\n20260112140501,0,4,187,181,1\n\n20260112140502,1,2,186,180,0\r\n"+meanHeader+
		"\n20260112140501,0,4,187,181\n20260112140501,0,4,187,181,1,\n20260112140501,0,4,187,181,2\n20260112140501,0,4,187,-1,1\n20261312140501,0,4,187,181,1\n20260112140501,0,4,x,181,1\nx\n20260112140501\n"), nil)
	assert.Equal(t, map[string]int{
		"record": 2, "ignored header": 2, "ignored blank": 1, "rejected column_count": 2, "rejected number": 3, "rejected negative": 1, "rejected not_a_row": 2,
	}, a.verdicts)
	assert.Equal(t, []string{ // 2026-01-12 14:05:01 UTC is 1768226701
		"nccl.device.bandwidth=23375000000 at 1768226701000000000 AllReduce max on node01",
		"nccl.device.bandwidth=22625000000 at 1768226701000000000 AllReduce mean on node01",
		"nccl.device.abnormal=1 at 1768226701000000000 AllReduce on node01",
		"nccl.device.bandwidth=23250000000 at 1768226702000000000 AllGather max on node01",
		"nccl.device.bandwidth=22500000000 at 1768226702000000000 AllGather mean on node01",
		"nccl.device.abnormal=0 at 1768226702000000000 AllGather on node01",
	}, a.samples())
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(t, err)
	a = parseAll(t, NewMean(nicFile, shanghai), lines("20260112140501,0,4,187,181,1\n"), nil)
	assert.Contains(t, a.samples()[0], " at 1768197901000000000 ")
}
