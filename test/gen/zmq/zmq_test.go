package zmq

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/test/gen/gentest"
)

// truthFile is the content of a truth file.
type truthFile = gentest.Truth[Run, Pass]

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func zmqOptions(t *testing.T, change func(*Options)) Options {
	t.Helper()
	o := DefaultOptions()
	o.Out = filepath.Join(t.TempDir(), "zmq.log")
	o.Start = time.Date(2026, 2, 11, 8, 40, 0, 120_000_000, time.UTC)
	o.Seed, o.Passes = 42, 3
	if change != nil {
		change(&o)
	}
	return o
}

func writeZMQ(t *testing.T, o Options) (string, *truthFile) {
	t.Helper()
	run, err := Generate(t.Context(), o, io.Discard)
	require.NoError(t, err)
	truth, err := gentest.ReadTruth[Run, Pass](o.truthPath())
	require.NoError(t, err)
	require.Equal(t, run, truth.Run)
	text := gentest.Text(t, run.Files[0].Path)
	assert.EqualValues(t, strings.Count(text, "\n"), run.Lines)
	assert.Equal(t, run.Lines, run.Records+run.Sides+run.Ignored)
	return text, truth
}

// printed is the text of a log of one layout.
func printed(layout, transport string, write func(*log)) string {
	var out bytes.Buffer
	o := DefaultOptions()
	o.Transport, o.Layout = transport, layout
	l := &log{opt: &o, layout: layouts[layout]}
	l.f, _ = l.OpenLog("-", false, "", "", &out)
	write(l)
	_ = l.f.W.Flush()
	return out.String()
}

// us makes times of µs: serialize, send, receive, deserialize, total, server, offline, communication.
func us(v ...int64) (ns [times]int64) {
	for i, v := range v {
		ns[i] = v * 1000
	}
	return ns
}

// The heads and rows of real logs, and for the CSV the rows in the guide of the writer.
func TestZMQRows(t *testing.T) {
	operation := func(method string) *zmqOperation { return &zmqOperation{method: method} }
	embedding := zmqCall{zmqOperation: operation("Embedding"), id: 2, ns: us(12, 17, 25_680, 4725, 30_451), sent: 8243, recv: 8_388_659}
	for _, tt := range []struct {
		layout, head, row string
		call              zmqCall
	}{
		{
			"v1",
			"ZeroMQ Performance Log - Transport: IPC+SHM\n" + strings.Repeat("=", 120) + "\n" +
				"ID    Method               Serialize(ms)   Send(ms)     Recv(ms)     Deserialize(ms)   Total(ms)    Sent(KB)     Recv(KB)     Throughput(MB/s)  \n" +
				strings.Repeat("=", 120) + "\n",
			"2     Embedding            0.012           0.017        25.680       4.725             30.451       8.05         8192.05      262.98            \n",
			embedding,
		},
		{
			"v1", "",
			"3     BatchLinearWithMask  0.011           0.025        0.667        0.004             0.711        0.17         0.06         0.32              \n",
			zmqCall{zmqOperation: operation("BatchLinearWithMask"), id: 3, ns: us(11, 25, 667, 4, 711), sent: 174, recv: 63},
		},
		{
			"v2",
			"ZeroMQ Performance Log (OTP) - Transport: IPC+SHM\n" + strings.Repeat("=", 140) + "\n" +
				"ID    Method               Offline(ms)  Ser(ms)    Send(ms)   Recv(ms)   Deser(ms)  Compute(ms)  Total(ms)    Sent(KB)   Recv(KB)  \n" +
				strings.Repeat("=", 140) + "\n",
			"4     Matmul               1.066        0.009      0.015      1.861      0.005      0.000        1.893        0.10       0.07      \n",
			zmqCall{zmqOperation: operation("Matmul"), id: 4, ns: us(9, 15, 1861, 5, 1893, 0, 1066), sent: 104, recv: 74},
		},
		{
			"v3",
			"ZeroMQ Performance Log - Transport: IPC+SHM\n" + strings.Repeat("=", 120) + "\n" +
				"ID    Method               Ser(ms)    Send(ms)   Recv(ms)   Deser(ms)  Comm(ms)     Total(ms)    Sent(KB)   Recv(KB)  \n" +
				strings.Repeat("=", 120) + "\n",
			"2     Embedding            0.012      0.015      44.684     0.014      44.733       44.733       0.07       0.07      \n",
			zmqCall{zmqOperation: operation("Embedding"), id: 2, ns: us(12, 15, 44_684, 14, 44_733, 0, 0, 44_733), sent: 72, recv: 72},
		},
		{
			"v4",
			"ZeroMQ Performance Log - Transport: IPC+SHM\n" + strings.Repeat("=", 120) + "\n" +
				"ID    Method               Ser(ms)    Send(ms)   Recv(ms)   Deser(ms)  Comm(ms)     GPU(ms)    Total(ms)    Sent(KB)   Recv(KB)  \n" +
				strings.Repeat("=", 120) + "\n",
			"30    BatchLinear          0.025      0.053      229.417    30.925     260.438      0.690      260.439      0.12       32768.15  \n",
			zmqCall{zmqOperation: operation("BatchLinear"), id: 30, ns: us(25, 53, 229_417, 30_925, 260_439, 690, 0, 260_438), sent: 123, recv: 33_554_586},
		},
		{
			LayoutCSV,
			"ID,Method,Serialize_ms,Send_ms,Recv_ms,Deserialize_ms,Total_ms,Sent_KB,Recv_KB,Throughput_MBps\n",
			"2,Embedding,0.012,0.017,25.680,4.725,30.451,8.05,8192.05,262.98\n",
			embedding,
		},
	} {
		if tt.head != "" {
			assert.Equal(t, tt.head, printed(tt.layout, "IPC+SHM", (*log).head))
		}
		assert.Equal(t, tt.row, printed(tt.layout, "IPC", func(l *log) { l.row(&tt.call) }))
	}
}

func TestZMQHeadsOfTheOriginals(t *testing.T) {
	originals := gentest.Samples(t, "zmq_tsqp/v*.log")
	for _, layout := range []string{"v1", "v4"} {
		for line := range strings.Lines(printed(layout, "IPC+SHM", (*log).head)) {
			assert.True(t, originals == nil || strings.Contains(strings.Join(originals, "\n")+"\n", line), line)
		}
	}
}

// The summaries of real logs come out of the times that their clients must have measured.
func TestZMQFooterOfAverages(t *testing.T) {
	rule := strings.Repeat("=", 120) + "\n"
	for _, tt := range []struct {
		transport, want string
		stats           zmqStats
	}{
		{
			"IPC+SHM",
			"\n" + rule + "SUMMARY\n" + rule + `Total RPC Calls: 98
Average Serialize Time: 0.008 ms
Average Send Time: 0.032 ms
Average Receive Time: 2.367 ms
Average Deserialize Time: 0.006 ms
Average Total Time: 2.418 ms
Total Data Sent: 0.01 MB
Total Data Received: 0.01 MB
Shared Memory Transfers: 276 (324.75 MB)
ZeroMQ Transfers: 0 (0.00 MB)
Average Throughput: 0.08 MB/s
` + rule,
			zmqStats{
				calls: 98, sent: 10_650, recv: 8900, tensors: 276, shared: 340_525_056,
				ns: [times]int64{826_000, 3_172_000, 231_938_000, 628_000, 236_979_000},
			},
		},
		{
			"TCP",
			"\n" + rule + "SUMMARY\n" + rule + `Total RPC Calls: 2
Average Serialize Time: 1.000 ms
Average Send Time: 2.000 ms
Average Receive Time: 3.000 ms
Average Deserialize Time: 4.500 ms
Average Total Time: 10.510 ms
Total Data Sent: 1.00 MB
Total Data Received: 2.50 MB
Average Throughput: 166.51 MB/s
` + rule,
			zmqStats{calls: 2, sent: 1 << 20, recv: 5 << 19, ns: [times]int64{2e6, 4e6, 6e6, 9e6, 21_020_000}},
		},
	} {
		assert.Equal(t, tt.want, printed("v1", tt.transport, footerOf(tt.stats)))
	}
}

func TestZMQFootersOfSums(t *testing.T) {
	rule := func(n int) string { return strings.Repeat("=", n) + "\n" }
	for _, tt := range []struct {
		layout, transport, want string
		stats                   zmqStats
	}{
		{
			"v2", "IPC+SHM+OTP",
			"\n" + rule(140) + "SUMMARY (OTP Encryption)\n" + rule(140) + `Total RPC Calls: 98

Offline Precomputation:
  Total: 0.0398 s
  Count: 144

Communication Overhead:
  Serialize: 0.0006 s
  Send: 0.0010 s
  Receive: 0.0552 s
  Deserialize: 0.0004 s
  Total: 0.0573 s

Actual Computation:
  GPU: 0.0000 s
  TEE Recovery: 0.0084 s
  Total: 0.0084 s

Effective Time (excl. offline & comm): -0.0394 s
` + rule(140),
			zmqStats{calls: 98, prepared: 144, handling: 8_400_000, ns: [times]int64{590_000, 1_040_000, 55_197_000, 434_000, 57_620_000, 0, 39_767_000}},
		},
		{
			"v4", "IPC+SHM",
			"\n" + rule(120) + "SUMMARY (No Encryption)\n" + rule(120) + `Total RPC Calls: 98

Communication Overhead:
  Total: 0.1522 s (1.553 ms/call)

Computation Time:
  GPU Compute: 0.0004 s

Operation Statistics:
  Linear (count=112):
    Avg Total: 1.336 ms
    Avg Comm:  0.953 ms
    Avg Compute: 0.383 ms
  Matmul (count=32):
    Avg Total: 2.008 ms
    Avg Comm:  1.381 ms
    Avg Compute: 0.627 ms
` + rule(120),
			zmqStats{
				calls: 98, ns: [times]int64{715_000, 5_145_000, 145_829_000, 510_000, 152_560_000},
				linear: operationStats{112, 149_632_000, 106_736_000}, matmul: operationStats{32, 64_256_000, 44_192_000},
			},
		},
	} {
		assert.Equal(t, tt.want, printed(tt.layout, tt.transport, footerOf(tt.stats)))
	}
}

func footerOf(stats zmqStats) func(*log) {
	return func(l *log) {
		l.stats = stats
		l.footer()
	}
}

func TestKilobytes(t *testing.T) {
	for n := range int64(5000) {
		h := kilobyteHundredths(n)
		require.Equal(t, strconv.FormatFloat(float64(n)/1024, 'f', 2, 64), string(logfile.AppendHundredths(nil, h)))
		require.InDelta(t, math.Round(float64(h)*10.24), printedBytes(n), 0)
	}
}

// zmqRow is a row: by the names in the head, with decimals as integers.
type zmqRow struct {
	id     int64
	method string
	us     map[string]int64 // by stage
	bytes  [2]int64
	rate   float64
}

var zmqNames = strings.NewReplacer("Serialize", "ser", "Deserialize", "deser", "Ser", "ser", "Send", "send", "Recv_ms", "recv", "Recv(ms)", "recv", "Deser",
	"deser",
	"Total", "total", "GPU", "server", "Compute", "server", "Offline", "offline", "Comm", "comm", "(ms)", "", "_ms", "")

func readZMQ(t *testing.T, layout, text string) (rows []zmqRow, footer []string) {
	t.Helper()
	split := strings.Fields
	if layout == LayoutCSV {
		split = func(s string) []string { return strings.Split(s, ",") }
	}
	integer := func(text string, decimals int) int64 {
		whole, part, ok := strings.Cut(text, ".")
		require.True(t, ok && len(part) == decimals, text)
		n, err := strconv.ParseInt(whole+part, 10, 64)
		require.NoError(t, err)
		return n
	}
	var names []string
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "ID"):
			names = split(line)
		case names == nil || strings.HasPrefix(line, "="):
		case line == "":
			return rows, lines[i:]
		default:
			cells := split(line)
			require.Len(t, cells, len(names), line)
			r := zmqRow{method: cells[1], us: map[string]int64{}}
			for i, name := range names {
				var err error
				switch {
				case name == "ID":
					r.id, err = strconv.ParseInt(cells[i], 10, 64)
				case name == "Method":
				case strings.Contains(name, "KB") && strings.HasPrefix(name, "Sent"):
					r.bytes[0] = int64(math.Round(float64(integer(cells[i], 2)) * 10.24))
				case strings.Contains(name, "KB"):
					r.bytes[1] = int64(math.Round(float64(integer(cells[i], 2)) * 10.24))
				case strings.HasPrefix(name, "Throughput"):
					r.rate = gentest.Number(t, cells[i])
				default:
					r.us[zmqNames.Replace(name)] = integer(cells[i], 3)
				}
				require.NoError(t, err)
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// sums adds up rows, and finds the slowest.
func zmqSums(rows []zmqRow) (s Sums, slowest Slowest) {
	for _, r := range rows {
		s.Calls++
		s.SerializeNS += r.us["ser"] * 1000
		s.SendNS += r.us["send"] * 1000
		s.ReceiveNS += r.us["recv"] * 1000
		s.DeserializeNS += r.us["deser"] * 1000
		s.TotalNS += r.us["total"] * 1000
		s.ServerNS += r.us["server"] * 1000
		s.OfflineNS += r.us["offline"] * 1000
		s.RequestBytes += r.bytes[0]
		s.ResponseBytes += r.bytes[1]
		if r.us["total"]*1000 > slowest.TotalNS {
			slowest = Slowest{r.id, r.method, r.us["total"] * 1000}
		}
	}
	s.UnattributedNS = s.TotalNS - s.SerializeNS - s.SendNS - s.ReceiveNS - s.DeserializeNS
	return s, slowest
}

// checkZMQ compares a log and its truth.
func checkZMQ(t *testing.T, o *Options, text string, truth *truthFile) {
	t.Helper()
	rows, footer := readZMQ(t, o.Layout, text)
	assert.EqualValues(t, len(rows), truth.Run.Records)
	at, block, high := 0, 0, 0
	for i, p := range truth.Records {
		block = p.Block
		n := int(p.Calls)
		group := rows[at : at+n]
		at += n
		sums := checkZMQPass(t, o, i, &p, group)
		if share := float64(sums.SerializeNS) / float64(sums.TotalNS); p.SerializeHigh {
			high++
			assert.InDelta(t, 0.45, share, 0.055)
		} else if i > 0 && p.Complete {
			assert.Less(t, share, 0.2)
		}
		for k, r := range group {
			assert.Equal(t, group[0].id+int64(k), r.id)
			checkZMQRow(t, o.Layout, r)
		}
	}
	assert.Len(t, rows, at)
	assert.Equal(t, block, truth.Run.Blocks)
	assert.Len(t, truth.Records, int(truth.Run.Passes)+1)
	if !o.Crash && o.Lines == 0 {
		assert.Equal(t, int(math.Floor(o.SerializeHigh*float64(o.Warmup+o.Passes))), high)
	}
	if footer == nil {
		assert.Nil(t, truth.Run.Footer)
		return
	}
	var last []zmqRow // since the ids restarted
	for i := range rows {
		if rows[i].id == 1 {
			last = rows[i:]
		}
	}
	sums, _ := zmqSums(last)
	require.NotNil(t, truth.Run.Footer)
	assert.Equal(t, sums, *truth.Run.Footer)
	checkZMQFooter(t, o.Layout, footer, sums)
}

// checkZMQPass compares the rows of a pass, or of the session's Init, with the truth, and returns their sums.
func checkZMQPass(t *testing.T, o *Options, i int, p *Pass, group []zmqRow) Sums {
	t.Helper()
	n, perPass := len(group), 2+6*o.Layers
	layer := []string{"BatchLinear", "Matmul", "Matmul", "BatchLinear", "BatchLinear", "BatchLinear"}
	if i == 0 {
		assert.Equal(t, "rpc.session", p.Kind)
		assert.Equal(t, []string{"Init"}, []string{group[0].method})
		assert.Equal(t, 1, n)
	} else {
		assert.Equal(t, "rpc.pass", p.Kind)
		assert.Equal(t, i, p.Pass)
		want := 1
		if o.Warmup > 0 && i > o.Warmup {
			want = 2
		}
		assert.Equal(t, want, p.Block)
		assert.Equal(t, n == perPass, p.Complete)
		for k, r := range group {
			want := "Embedding"
			if k == perPass-1 {
				want = "LMHead"
			} else if k > 0 {
				want = layer[(k-1)%6]
			}
			assert.Equal(t, want, r.method)
		}
	}
	sums, slowest := zmqSums(group)
	assert.Equal(t, sums, p.Sums)
	assert.Equal(t, slowest, p.Slowest)
	assert.Equal(t, group[0].id, p.FirstID)
	assert.Equal(t, group[n-1].id, p.LastID)
	assert.GreaterOrEqual(t, p.EndUnixNano-p.StartUnixNano, p.TotalNS-int64(n)*500)
	return sums
}

// checkZMQRow compares the times of a row with each other.
func checkZMQRow(t *testing.T, layout string, r zmqRow) {
	t.Helper()
	stages := r.us["ser"] + r.us["send"] + r.us["recv"] + r.us["deser"]
	assert.InDelta(t, 27.5, r.us["total"]-stages, 22.5+2.5) // 5 to 50 µs, with five rounded numbers
	assert.LessOrEqual(t, r.us["server"], r.us["recv"])
	assert.Equal(t, layout == "v4" && (r.method == "BatchLinear" || r.method == "Matmul"), r.us["server"] > 0)
	assert.Equal(t, layout == "v2" && (r.method == "BatchLinear" || r.method == "Matmul"), r.us["offline"] > 0)
	if layout == "v3" || layout == "v4" {
		assert.InDelta(t, r.us["total"], r.us["comm"], 1)
	}
	if layout == "v1" || layout == LayoutCSV {
		rate := float64(r.bytes[0]+r.bytes[1]) / (1 << 20) / (float64(r.us["total"]) / 1e6)
		// The rate is off by the print rounding of two sizes, of the time and of the rate itself.
		assert.InDelta(t, rate, r.rate, rate*(11/float64(r.bytes[0]+r.bytes[1])+0.6/float64(r.us["total"]))+0.005)
	}
}

// checkZMQFooter compares the numbers of a footer with the sums of the rows above.
func checkZMQFooter(t *testing.T, layout string, footer []string, sums Sums) {
	t.Helper()
	value := func(name string) float64 {
		for _, line := range footer {
			if rest, ok := strings.CutPrefix(line, name); ok {
				return gentest.Number(t, strings.Fields(rest)[0])
			}
		}
		require.Fail(t, "no such line", name)
		return 0
	}
	assert.InDelta(t, sums.Calls, value("Total RPC Calls: "), 0)
	if layout == "v1" {
		for name, ns := range map[string]int64{
			"Serialize": sums.SerializeNS, "Send": sums.SendNS, "Receive": sums.ReceiveNS, "Deserialize": sums.DeserializeNS, "Total": sums.TotalNS,
		} {
			assert.InDelta(t, float64(ns)/1e6/float64(sums.Calls), value("Average "+name+" Time: "), 0.001)
		}
		assert.InDelta(t, float64(sums.RequestBytes)/(1<<20), value("Total Data Sent: "), 0.01)
		assert.InDelta(t, float64(sums.ResponseBytes)/(1<<20), value("Total Data Received: "), 0.01)
		rate := float64(sums.RequestBytes+sums.ResponseBytes) / (1 << 20) / (float64(sums.TotalNS) / 1e9)
		assert.InDelta(t, rate, value("Average Throughput: "), 0.01+rate/1000)
		return
	}
	stages := sums.SerializeNS + sums.SendNS + sums.ReceiveNS + sums.DeserializeNS
	if layout == "v2" {
		assert.InDelta(t, float64(sums.OfflineNS)/1e9, value("  Total: "), 0.0002) // the first total
		assert.InDelta(t, float64(sums.SerializeNS)/1e9, value("  Serialize: "), 0.0003)
		assert.InDelta(t, float64(sums.TotalNS-sums.OfflineNS-stages)/1e9, value("Effective Time (excl. offline & comm): "), 0.0005)
		return
	}
	assert.InDelta(t, float64(stages)/1e9, value("  Total: "), 0.0003)
	assert.InDelta(t, float64(sums.UnattributedNS)/1e9, value("  GPU Compute: "), 0.0003)
}

func TestZMQ(t *testing.T) {
	for _, layout := range []string{"v1", "v2", "v3", "v4", LayoutCSV} {
		for name, change := range map[string]func(*Options){
			"as it is":     func(*Options) {},
			"shared":       func(o *Options) { o.Transport, o.SerializeHigh = "IPC+SHM", 0.5 },
			"high":         func(o *Options) { o.SerializeHigh, o.Layers, o.Passes = 1, 1, 20 },
			"no warm-up":   func(o *Options) { o.Warmup, o.Transport, o.SerializeHigh = 0, "TCP", 0 },
			"two warm-ups": func(o *Options) { o.Warmup, o.Layers, o.NoFooter = 2, 3, true },
			"crash":        func(o *Options) { o.Crash, o.Warmup, o.SerializeHigh = true, 0, 0 },
			"short":        func(o *Options) { o.Lines, o.Passes, o.SerializeHigh = 150, 0, 0 },
		} {
			t.Run(layout+" "+name, func(t *testing.T) {
				o := zmqOptions(t, change)
				o.Layout = layout
				text, truth := writeZMQ(t, o)
				checkZMQ(t, &o, text, truth)
				assert.Equal(t, layout != LayoutCSV && !o.Crash && !o.NoFooter, truth.Run.Footer != nil)
				last := truth.Records[len(truth.Records)-1]
				assert.Equal(t, !o.Crash && o.Lines == 0, last.Complete)
				want := 1 + min(1, o.Warmup)
				assert.Equal(t, want, truth.Run.Blocks)
			})
		}
	}
}

// Init, a warm-up of 98 calls, and the ids restart without another Init.
func TestZMQLikeTheRealLog(t *testing.T) {
	o := zmqOptions(t, func(o *Options) { o.Passes = 1 })
	text, _ := writeZMQ(t, o)
	var ids []string
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 10 && f[0] != "ID" {
			ids = append(ids, f[0]+" "+f[1])
		}
	}
	require.Len(t, ids, 99+98)
	assert.Equal(t, "1 Init", ids[0])
	assert.Equal(t, "99 LMHead", ids[98])
	assert.Equal(t, "1 Embedding", ids[99])
	assert.Equal(t, "98 LMHead", ids[196])
	assert.Contains(t, text, "\nTotal RPC Calls: 98\n")
}

func TestZMQLines(t *testing.T) {
	for _, n := range []int64{1, 2, 99, 100, 1000, 12_345} {
		o := zmqOptions(t, func(o *Options) { o.Lines = n })
		text, truth := writeZMQ(t, o)
		rows, _ := readZMQ(t, "v1", text)
		assert.Len(t, rows, int(n))
		assert.Equal(t, n, truth.Run.Records)
	}
}

func TestZMQSameSeedSameBytes(t *testing.T) {
	all := func(change func(*Options)) string {
		o := zmqOptions(t, change)
		text, _ := writeZMQ(t, o)
		return text + strings.ReplaceAll(gentest.Text(t, o.truthPath()), o.Out, "")
	}
	for _, layout := range []string{"v1", "v2", "v3", "v4", LayoutCSV} {
		first := all(func(o *Options) { o.Layout = layout })
		assert.Equal(t, first, all(func(o *Options) { o.Layout = layout }))
		assert.NotEqual(t, first, all(func(o *Options) { o.Layout, o.Seed = layout, 43 }))
	}
}

// As with the real client, a second run truncates the file of the first.
func TestZMQWrittenAnew(t *testing.T) {
	o := zmqOptions(t, nil)
	first, _ := writeZMQ(t, o)
	before, err := os.Stat(o.Out)
	require.NoError(t, err)
	o.Seed, o.Passes = 43, 1
	second, _ := writeZMQ(t, o)
	after, err := os.Stat(o.Out)
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after))
	assert.Less(t, len(second), len(first))
	require.NoError(t, os.Remove(o.truthPath()))
	_, err = Generate(t.Context(), o, io.Discard)
	require.ErrorIs(t, err, logfile.ErrOptions)
	assert.ErrorContains(t, err, "may be a real log")
}

// A paced run writes a row when its call ends, at the requested rate.
func TestZMQRate(t *testing.T) {
	for _, rate := range []float64{0.5, 20, 1000, 5000} {
		for _, transport := range []string{"IPC", "IPC+SHM"} {
			o := zmqOptions(t, func(o *Options) {
				o.Start, o.Rate, o.Transport, o.Out, o.Layout, o.Passes, o.NoFooter = time.Time{}, rate, transport, "-", "v4", 20, true
			})
			o.Truth = filepath.Join(t.TempDir(), "t.json")
			c := &gentest.Clock{At: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}
			begin := c.At
			var written []int64
			var text strings.Builder
			w := gentest.Writer(func(p []byte) (int, error) { // called per flush
				if p[0] >= '1' && p[0] <= '9' {
					written = append(written, c.At.UnixNano())
				}
				return text.Write(p)
			})
			run, err := generate(t.Context(), o, w, c.Clock())
			require.NoError(t, err)
			require.Len(t, written, int(run.Records))
			assert.InEpsilon(t, rate, float64(run.Records)/c.At.Sub(begin).Seconds(), 0.02)
			truth, err := gentest.ReadTruth[Run, Pass](o.Truth)
			require.NoError(t, err)
			rows, _ := readZMQ(t, "v4", text.String())
			at := 0
			for _, p := range truth.Records {
				assert.InDelta(t, rows[at].us["total"], (written[at]-p.StartUnixNano)/1000, 1)
				at += int(p.Calls)
				assert.Equal(t, written[at-1], p.EndUnixNano)
			}
		}
	}
}

// Stopped from outside, as with Ctrl-C, the client writes no summary; the truth is closed.
func TestZMQStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &gentest.Clock{At: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC), Stop: cancel}
	c.Until = c.At.Add(5 * time.Second)
	o := zmqOptions(t, func(o *Options) { o.Start, o.Rate, o.Passes = time.Time{}, 100, 0 })
	run, err := generate(ctx, o, io.Discard, c.Clock())
	require.NoError(t, err)
	assert.InDelta(t, 500, run.Records, 80)
	assert.Nil(t, run.Footer)
	truth, err := gentest.ReadTruth[Run, Pass](o.truthPath())
	require.NoError(t, err)
	checkZMQ(t, &Options{Layout: "v1", Layers: 16, Warmup: 1, Lines: 1}, gentest.Text(t, o.Out), truth)
	assert.False(t, truth.Records[len(truth.Records)-1].Complete)
}

func TestZMQEndsNowWithoutStart(t *testing.T) {
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	o := zmqOptions(t, func(o *Options) { o.Start = time.Time{} })
	run, err := generate(t.Context(), o, io.Discard, logfile.Clock{Now: func() time.Time { return now }})
	require.NoError(t, err)
	assert.Equal(t, now.UnixNano(), run.EndUnixNano)
}

func TestZMQOptionErrors(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"--out", ""}, "--out is empty"},
		{[]string{"--layout", "v5"}, `--layout "v5"`},
		{[]string{"--transport", "IPC SHM"}, "--transport"},
		{[]string{"--transport", ""}, "--transport"},
		{[]string{"--passes", "0"}, "needs --rate or --lines"},
		{[]string{"--passes", "-1"}, "--passes -1"},
		{[]string{"--layers", "0"}, "--layers 0"},
		{[]string{"--warmup", "-1"}, "--warmup -1"},
		{[]string{"--lines", "-1"}, "--lines -1"},
		{[]string{"--serialize-high", "NaN"}, "--serialize-high NaN"},
		{[]string{"--serialize-high", "1.1"}, "--serialize-high 1.1"},
		{[]string{"--rate", "1e6"}, "--rate 1e+06"},
		{[]string{"--rate", "5", "--start", "2026-02-11T16:40:00Z"}, "drop one"},
		{[]string{"--start", "today"}, "RFC 3339"},
		{[]string{"--crash", "--lines", "5"}, "--crash"},
	} {
		cmd := newCommand()
		cmd.SetArgs(tt.args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		require.ErrorIs(t, err, logfile.ErrOptions, "%v", tt.args)
		assert.ErrorContains(t, err, tt.says)
	}
}

func TestZMQCommand(t *testing.T) {
	for layout, name := range map[string]string{"v1": "zmq_performance.log", LayoutCSV: "zmq_performance.csv"} {
		var errs bytes.Buffer
		cmd := newCommand()
		cmd.SetErr(&errs)
		dir := filepath.Join(t.TempDir(), "logs")
		cmd.SetArgs([]string{"--out", dir, "--passes", "2", "--layers", "1", "--layout", layout})
		require.NoError(t, cmd.ExecuteContext(t.Context()))
		assert.Regexp(t, fmt.Sprintf(`^wrote \d+ lines to 1 file\(s\) at %s: 25 calls, 3 passes; truth: %s/truth.json\n$`, dir, dir), errs.String())
		assert.NotEmpty(t, gentest.Text(t, filepath.Join(dir, name)))
	}
}

func BenchmarkGenerateZMQ(b *testing.B) {
	for _, layout := range []string{"v1", "v4", LayoutCSV} {
		b.Run(layout, func(b *testing.B) {
			o := DefaultOptions()
			o.Out, o.Layout, o.Lines = "-", layout, 100_000
			b.ReportAllocs()
			var rows int64
			for b.Loop() {
				run, err := Generate(b.Context(), o, io.Discard)
				if err != nil {
					b.Fatal(err)
				}
				rows += run.Records
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
