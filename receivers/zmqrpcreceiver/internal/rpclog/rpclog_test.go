package rpclog

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var kinds = [...]string{
	Blank: "blank", Rule: "rule", Title: "title", Header: "header", Call: "call", Summary: "summary", Statistic: "statistic", Section: "section",
	Unknown: "unknown", Bad: "bad",
}

var names = [...]string{
	Serialize: "ser", Send: "send", Receive: "recv", Deserialize: "deser", Total: "total", Server: "server", Offline: "offline", Comm: "comm",
}

// show writes the read line.
func show(p *Parser, kind Kind) string {
	var s strings.Builder
	s.WriteString(kinds[kind])
	switch kind {
	case Title:
		s.WriteString(" " + p.Transport())
	case Bad:
		s.WriteString(" " + p.Reason())
	case Summary:
		s.WriteString(" " + p.Statistic.Detail)
	case Statistic:
		st := &p.Statistic
		fmt.Fprintf(&s, " %s=%v%s ±%.3g", st.Key, st.Value, st.Unit, st.Step)
		if st.Detail != "" {
			s.WriteString(" (" + st.Detail + ")")
		}
	case Call:
		r := &p.Row
		fmt.Fprintf(&s, " %d %s", r.ID, r.Method)
		for c := Serialize; c < Durations; c++ {
			if r.Has.Has(c) {
				fmt.Fprintf(&s, " %s=%d", names[c], r.NS[c])
			}
		}
		fmt.Fprintf(&s, " ±%d", r.Step)
		if r.Has.Has(Sent) {
			fmt.Fprintf(&s, " sent=%d", r.Sent)
		}
		if r.Has.Has(Received) {
			fmt.Fprintf(&s, " received=%d", r.Received)
		}
		if r.SizeStep > 0 {
			s.WriteString(" ±" + strconv.FormatFloat(r.SizeStep, 'f', -1, 64))
		}
		if r.Has.Has(Throughput) {
			fmt.Fprintf(&s, " throughput=%.9g ±%s", r.Throughput, strconv.FormatFloat(r.ThroughputStep, 'f', -1, 64))
		}
		for _, f := range r.Fields {
			fmt.Fprintf(&s, " %s:%s", f.Name, f.Text)
		}
	}
	return strings.TrimSpace(s.String())
}

// read reads a line, and checks the invariants of every line: Duration agrees with Line, and a restart before the line changes nothing.
func read(t *testing.T, p *Parser, text string) (Kind, string) {
	t.Helper()
	var restored Parser
	if state := p.Save(); state != nil {
		restored.Restore(state)
	}
	before := p.Row
	p.LookAhead()
	ns, ok := p.Duration([]byte(text))
	require.Equal(t, before, p.Row, text)
	kind := p.Line([]byte(text))
	require.Equal(t, kind == Call, ok, text)
	require.Equal(t, kind == Bad, p.Reason() != "", text)
	if ok {
		require.Equal(t, p.Row.NS[Total]+p.Row.NS[Offline], ns, text)
	}
	got := show(p, kind)
	require.Equal(t, got, show(&restored, restored.Line([]byte(text))), text)
	require.Equal(t, p.Transport(), restored.Transport(), text)
	return kind, got
}

// Headers and rows as the writers pad them.
const (
	titleV1  = "ZeroMQ Performance Log - Transport: IPC"
	headerV1 = "ID    Method               Serialize(ms)   Send(ms)     Recv(ms)     Deserialize(ms)   Total(ms)    Sent(KB)     Recv(KB)     Throughput(MB/s)  "
	rowV1    = "1     Init                 0.085           0.030        2.057        0.091             2.268        0.02         266.33       114.68            "
	callV1   = "call 1 Init ser=85000 send=30000 recv=2057000 deser=91000 total=2268000 ±1000 sent=20 received=272722 ±10.24 throughput=120250696 ±10485.76"
	headerV2 = "ID    Method               Offline(ms)  Ser(ms)    Send(ms)   Recv(ms)   Deser(ms)  Compute(ms)  Total(ms)    Sent(KB)   Recv(KB)  "
	headerV3 = "ID    Method               Ser(ms)    Send(ms)   Recv(ms)   Deser(ms)  Comm(ms)     Total(ms)    Sent(KB)   Recv(KB)  "
	headerV4 = "ID    Method               Ser(ms)    Send(ms)   Recv(ms)   Deser(ms)  Comm(ms)     GPU(ms)    Total(ms)    Sent(KB)   Recv(KB)  "
	rowV4    = "30    BatchLinear          0.025      0.053      229.417    30.925     260.438      0.690      260.439      0.12       32768.15  "
	callV4   = "call 30 BatchLinear ser=25000 send=53000 recv=229417000 deser=30925000 total=260439000 server=690000 comm=260438000 ±1000 sent=123 received=33554586 ±10.24"
	rule     = "===================================================================================================================="
)

// step is a line with the parser's result.
type step struct{ text, want string }

// readLines reads the lines of each case with one parser, and compares each result.
func readLines(t *testing.T, cases map[string][]step) {
	t.Helper()
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			var p Parser
			for _, s := range steps {
				_, got := read(t, &p, s.text)
				assert.Equal(t, s.want, got, s.text)
			}
		})
	}
}

func TestLayoutsV1AndV2(t *testing.T) {
	readLines(t, map[string][]step{
		"v1": {
			{titleV1, "title IPC"},
			{rule, "rule"},
			{headerV1, "header"},
			{rule, "rule"},
			{rowV1, callV1},
			{
				"5     Matmul               167.568         80.885       388.809      4.622             641.917      139264.08    8192.05      224.33            ",
				"call 5 Matmul ser=167568000 send=80885000 recv=388809000 deser=4622000 total=641917000 ±1000 sent=142606418 received=8388659 ±10.24 throughput=235227054 ±10485.76",
			},
			{"", "blank"},
			{rule, "rule"},
			{"SUMMARY", "summary"},
			{rule, "rule"},
			{"Total RPC Calls: 98", "statistic total_rpc_calls=98 ±1"},
			{"Average Serialize Time: 56.467 ms", "statistic average_serialize_time=0.056467s ±1e-06"},
			{"Total Data Sent: 3328.02 MB", "statistic total_data_sent=3.48968189952e+09By ±1.05e+04"},
			{"Shared Memory Transfers: 276 (324.75 MB)", "statistic shared_memory_transfers=276 ±1 (324.75 MB)"},
			{"ZeroMQ Transfers: 0 (0.00 MB)", "statistic zeromq_transfers=0 ±1 (0.00 MB)"},
			{"Average Throughput: 162.43 MB/s", "statistic average_throughput=1.7032019968e+08By/s ±1.05e+04"},
			{rule, "rule"},
		},
		"v2": {
			{"ZeroMQ Performance Log (OTP) - Transport: IPC+SHM+OTP", "title IPC+SHM+OTP"},
			{headerV2, "header"},
			{
				"3     BatchLinear          0.125        0.010      0.014      1.467      0.006      0.000        1.501        0.12       0.14      ",
				"call 3 BatchLinear ser=10000 send=14000 recv=1467000 deser=6000 total=1501000 server=0 offline=125000 ±1000 sent=123 received=143 ±10.24",
			},
			{"SUMMARY (OTP Encryption)", "summary OTP Encryption"},
			{"Total RPC Calls: 98", "statistic total_rpc_calls=98 ±1"},
			{"", "blank"},
			{"Offline Precomputation:", "section"},
			{"  Total: 0.0398 s", "statistic offline_precomputation.total=0.0398s ±0.0001"},
			{"  Count: 144", "statistic offline_precomputation.count=144 ±1"},
			{"", "blank"},
			{"Communication Overhead:", "section"},
			{"  Serialize: 0.0006 s", "statistic communication_overhead.serialize=0.0006s ±0.0001"},
			{"  Total: 0.3518 s (3.590 ms/call)", "statistic communication_overhead.total=0.3518s ±0.0001 (3.590 ms/call)"},
			{"Actual Computation:", "section"},
			{"  GPU: -0.0543 s", "statistic actual_computation.gpu=-0.0543s ±0.0001"},
			{"  TEE Recovery: 0.0084 s", "statistic actual_computation.tee_recovery=0.0084s ±0.0001"},
			{"", "blank"},
			{"Effective Time (excl. offline & comm): -0.0394 s", "statistic effective_time=-0.0394s ±0.0001 (excl. offline & comm)"},
			{"Rounds: 3", "statistic rounds=3 ±1"},
		},
	})
}

func TestLayoutsV3AndV4(t *testing.T) {
	readLines(t, map[string][]step{
		"v3": {
			{"ZeroMQ Performance Log (Ours) - Transport:  IPC+SHM+OURS ", "title IPC+SHM+OURS"},
			{headerV3, "header"},
			{
				"2     Embedding            0.012      0.015      44.684     0.014      44.733       44.733       0.07       0.07      ",
				"call 2 Embedding ser=12000 send=15000 recv=44684000 deser=14000 total=44733000 comm=44733000 ±1000 sent=72 received=72 ±10.24",
			},
			{"SUMMARY (Our Scheme)", "summary Our Scheme"},
		},
		"v4": {
			{headerV4, "header"},
			{rowV4, callV4},
			{"SUMMARY (No Encryption)", "summary No Encryption"},
			{"Computation Time:", "section"},
			{"  GPU Compute: -0.0543 s", "statistic computation_time.gpu_compute=-0.0543s ±0.0001"},
			{"", "blank"},
			{"Operation Statistics:", "section"},
			{"  Linear (count=112):", "statistic operation_statistics.linear.count=112 ±1"},
			{"    Avg Total: 1.336 ms", "statistic operation_statistics.linear.avg_total=0.001336s ±1e-06"},
			{"    Avg Comm:  1.752 ms", "statistic operation_statistics.linear.avg_comm=0.001752s ±1e-06"},
			{"  Matmul (count=32):", "statistic operation_statistics.matmul.count=32 ±1"},
			{"\tAvg Total: 2.008 ms", "statistic operation_statistics.matmul.avg_total=0.002008s ±1e-06"},
			{"  Softmax (on the client):", "section"},
			{"    Avg: 2 us", "statistic operation_statistics.softmax.avg=2e-06s ±1e-06"},
			{"  All: 2.5 ns", "statistic operation_statistics.all=2.5e-09s ±1e-10"},
		},
	})
}

func TestSummaryValues(t *testing.T) {
	readLines(t, map[string][]step{
		"the summary's values": {
			{"Total RPC Calls: 98", "unknown"},
			{"SUMMARY: done", "unknown"},
			{"SUMMARYX", "unknown"},
			{"SUMMARY", "summary"},
			{"Hit rate: 40.9%", "statistic hit_rate=40.9% ±0.1"},
			{"Serialize:            1.388 ms  ( 40.9%)", "statistic serialize=0.001388s ±1e-06 (40.9%)"},
			{"Total Sent:         3750.23 MB  (38.27 KB/call)", "statistic total_sent=3.93240117248e+09By ±1.05e+04 (38.27 KB/call)"},
			{"Per call: 38.27 KB/call", "statistic per_call=38.27KB/call ±0.01"},
			{"Largest: 2 GB", "statistic largest=2.147483648e+09By ±1.07e+09"},
			{"Größe: 2 KB", "statistic größe=2048By ±1.02e+03"},
			{"Drift: +1.50 s", "statistic drift=1.5s ±0.01"},
			{"Average Throughput: nan MB/s", "unknown"},
			{"Average Throughput: inf MB/s", "unknown"},
			{"Average: 1e5 ms", "unknown"},
			{"Started: 10:30:00", "unknown"},
			{"Calls: 1,234", "unknown"},
			{"Wrote zmq.log", "unknown"},
			{": 5", "unknown"},
			{"(x): 5", "unknown"},
			{"&&: 5", "unknown"},
			{"Total: 0.3518 s (3.590", "unknown"},
			{"State: fine", "unknown"},
			{"Huge: " + strings.Repeat("9", 310), "unknown"},
			{"Long: 1 " + strings.Repeat("s", 300), "unknown"},
			{"98 calls in all", "unknown"},
			{"98 calls: 3 s", "statistic 98_calls=3s ±1"},
			{"  Deep:", "section"},
			{"  x: 1", "statistic x=1 ±1"},
			{"  Deep (count=many):", "section"},
			{"   x: 1", "statistic deep.x=1 ±1"},
			{headerV4, "header"},
			{"x: 1", "unknown"}, // ends the summary
			{"SUMMARY", "summary"},
			{"x: 1", "statistic x=1 ±1"},
			{titleV1, "title IPC"},
			{"x: 1", "unknown"}, // ends the summary
			{"SUMMARY", "summary"},
			{rowV1, "unknown"},
			{"x: 1", "statistic x=1 ±1"}, // a row of another layout
			{strings.Replace(rowV4, "0.053", "0.05x", 1), "bad number"},
			{"x: 1", "statistic x=1 ±1"},
			{rowV4, callV4},
			{"x: 1", "unknown"}, // ends the summary
		},
	})
}

func TestHeaderChanges(t *testing.T) {
	readLines(t, map[string][]step{
		"one file, two clients": {
			{headerV1, "header"},
			{rowV1, callV1},
			{titleV1, "title IPC"},
			{rowV1, callV1},
			{headerV4, "header"},
			{rowV4, callV4},
			{rowV1, "bad column_count"},
			{headerV4, "header"},
			{rowV4, callV4},
			{headerV1, "header"},
			{rowV1, callV1},
		},
		"a crash": {
			{rowV1, "bad no_header"},
			{"7", "bad no_header"},
			{headerV1, "header"},
			{rowV1[:strings.LastIndex(rowV1, "68 ")], "bad number"}, // cut behind the point
			{rowV1[:110], "bad column_count"},
			{"1", "bad column_count"},
			{"1     Ini", "bad column_count"},
			{rowV1 + "2", "bad column_count"},
			{"2     Embedding            0.012      " + rowV1, "bad column_count"},
		},
	})
}

func TestSpoiltRows(t *testing.T) {
	readLines(t, map[string][]step{
		"spoilt rows": {
			{"ID Method Send(ms) Sent(KB) Throughput(MB/s)", "header"},
			{"1 a 1 1 1", "call 1 a send=1000000 ±1000000 sent=1024 ±1024 throughput=1048576 ±1048576"},
			{"1 a x 1 1", "bad number"},
			{"1 a 1 1x 1", "bad number"},
			{"1 a 1 1 1.2.3", "bad number"},
			{"1 a nan 1 1", "bad number"},
			{"1 a 1 inf 1", "bad number"},
			{"1 a 1 1 -inf", "bad number"},
			{"1 a 1,5 1 1", "bad number"},
			{"1 a . 1 1", "bad number"},
			{"1 a 1 1 2.", "bad number"},
			{"1 a - 1 1", "bad number"},
			{"1 a 0x1 1 1", "bad number"},
			{"1 a 1e 1 1", "bad number"},
			{"1 a -0.001 1 1", "bad negative"},
			{"1 a 1 -1 1", "bad negative"},
			{"1 a 1 1 -1e-3", "bad negative"},
			{"1 a -0.000 1 1", "call 1 a send=0 ±1000 sent=1024 ±1024 throughput=1048576 ±1048576"},
			{"1 a 9000000001 1 1", "bad number"},
			{"1 a 1 8589934593 1", "bad number"},
			{"1 a 1 1 99999999999", "bad number"},
			{"1 a 99999999999999999999 1 1", "bad number"},
			{"1 a 1 1e300 1", "bad number"},
			{"1 a 9e9 1 1", "call 1 a send=9000000000000000 ±1000000000000000 sent=1024 ±1024 throughput=1048576 ±1048576"},
			{"1 a 9000000000.999999 8589934592 8388608", "call 1 a send=9000000000999999 ±1 sent=8796093022208 ±1024 throughput=8.79609302e+12 ±1048576"},
			{"1 a 1.23456789 .5 2", "call 1 a send=1234567 ±1 sent=512 ±102.4 throughput=2097152 ±1048576"},
			{"1 a 1e-05 +2 1.5e+2", "call 1 a send=10 ±10 sent=2048 ±1024 throughput=157286400 ±10485760"},
			{"1 a 0e99999 0e-99999 0e-99999999999999999999999999", "call 1 a send=0 ±1000000000000000 sent=0 ±0.001024 throughput=0 ±1048576000000000"},
			{"1 a x 1", "bad column_count"},
			{"123456789012345678 a 1 1 1", "call 123456789012345678 a send=1000000 ±1000000 sent=1024 ±1024 throughput=1048576 ±1048576"},
			{"1234567890123456789 a 1 1 1", "bad number"},
			{"  1\ta\t1\t1\t1\r", "call 1 a send=1000000 ±1000000 sent=1024 ±1024 throughput=1048576 ±1048576"},
			{"1a a 1 1 1", "unknown"},
			{"-1 a 1 1 1", "unknown"},
			{"1.5 a 1 1 1", "unknown"},
			{"2025-11-05 10:00:00 INFO a b", "unknown"},
			{"1: a 1 1 1", "unknown"},
		},
	})
}

func TestCSV(t *testing.T) {
	readLines(t, map[string][]step{
		"an export to CSV": {
			{"ID,Method,Serialize_ms,Send_ms,Recv_ms,Deserialize_ms,Total_ms,Sent_KB,Recv_KB,Throughput_MBps", "header"},
			{rowV1, callV1},
			{"1,Init,0.085,0.030,2.057,0.091,2.268,0.02,266.33,114.68", callV1},
			{" 1 , Init , 0.085,0.030,2.057,0.091, 2.268,0.02 ,266.33,114.68 \r", callV1},
			{
				"2,Batch Linear (fused),0,0,0,0,0,0,0,0",
				"call 2 Batch Linear (fused) ser=0 send=0 recv=0 deser=0 total=0 ±1000000 sent=0 received=0 ±1024 throughput=0 ±1048576",
			},
			{"1,,0.085,0.030,2.057,0.091,2.268,0.02,266.33,114.68", "bad no_method"},
			{"1,Init,,0.030,2.057,0.091,2.268,0.02,266.33,114.68", "bad number"},
			{"1,Init,0.085 ms,0.030,2.057,0.091,2.268,0.02,266.33,114.68", "bad number"},
			{"1,Init,0.085,0.030,2.057,0.091,2.268,0.02,266.33,114.68,", "bad column_count"},
			{"1,Init,0.085,0.030,2.057,0.091,2.268,0.02,266.33,", "bad number"},
			{"1,Init,0.085,0.030,2.057,0.091,2.268,0.02,266.33", "bad column_count"},
			{"1,", "bad column_count"},
			{"1,Init", "bad column_count"},
		},
		"other units": {
			{
				"id, METHOD, Serialize (us), send_s, Receive(ns), deser_µs, TOTAL (ms), Sent(MB), Received_B, Throughput(GB/s), GPU_Compute_ms, Communication(s)",
				"header",
			},
			{
				"7,m,12.3456,0.000001001,15.9,2,1.5,0.5,12.5,0.25,3,0.1234567891",
				"call 7 m ser=12345 send=1001 recv=15 deser=2000 total=1500000 server=3000000 comm=123456789 ±1000000 sent=524288 received=13 ±104857.6 throughput=268435456 ±10737418.24",
			},
			{"ID Method Ser Recv Sent Received Throughput Compute", "header"}, // the writers' units
			{"7 m 1.5 2.5 1.5 2.5 0.5 0", "call 7 m ser=1500000 recv=2500000 server=0 ±1000000 sent=1536 received=2560 ±102.4 throughput=524288 ±104857.6"},
			{"ID Method Recv(KiB) Throughput_KBps Deser(μs)", "header"},
			{"7 m 1.5 2 3", "call 7 m deser=3000 ±1000 received=1536 ±102.4 throughput=2048 ±1024"},
		},
		"other columns": {
			{"ID Queue(ms) Method Retries # Send(ms) Send(us) Total(KB) Sent(ms) GPU(remote) Throughput(Mbps) Total(ms) Method", "header"},
			{
				"4 0.5 Matmul 3 x 1.5 9 8 7 on 6 2.000 y",
				"call 4 Matmul send=1500000 total=2000000 ±100000 queue:0.5 retries:3 column_5:x send:9 total:8 sent:7 gpu_remote:on throughput_mbps:6 method:y",
			},
			{"ID,Method,Batch Size,Note", "header"},
			{"4,Matmul,32,", "call 4 Matmul ±0 batch_size:32 note:"},
		},
	})
}

func TestUnknownLines(t *testing.T) {
	readLines(t, map[string][]step{
		"no headers": {
			{"ID Name Total(ms)", "unknown"},
			{"IDs Method", "unknown"},
			{"ID", "unknown"},
			{"Method ID", "unknown"},
			{"ID;Method", "unknown"},
			{"identical Method", "unknown"},
			{"ID Method" + strings.Repeat(" a", 63), "unknown"},
			{"ID Method" + strings.Repeat(" ", 4096) + "x", "unknown"},
			{"ID Method" + strings.Repeat(" a", 62), "header"},
			{"ID Method " + strings.Repeat("\xff", 4000), "header"},
			{"1 m x", "call 1 m ±0 column_3:x"}, // longer when saved
		},
		"a layout without a total": {
			{"ID Method Ser(ms) Send(ms) Recv(ms) Deser(ms) Offline(ms)", "header"},
			{"1 m 1 2 3 4 5", "call 1 m ser=1000000 send=2000000 recv=3000000 deser=4000000 offline=5000000 ±1000000"},
			{"ID Method Ser(ms) Comm(ms)", "header"},
			{"1 m 1 2.5", "call 1 m ser=1000000 comm=2500000 ±1000000"},
		},
		"lines": {
			{"", "blank"},
			{" \t\r", "blank"},
			{"===", "rule"},
			{"  ----  ", "rule"},
			{"───", "rule"},
			{"══", "unknown"},
			{"==", "unknown"},
			{"=-=", "unknown"},
			{"──", "unknown"},
			{"---x", "unknown"},
			{"Transport: TCP", "title TCP"},
			{"My Log v2, Transport:tcp://x", "title tcp://x"},
			{"Transport:", "title"},
			{"Transport: " + strings.Repeat("x", 129), "unknown"},
			{"Transport: a\xff\xfeb", "title a\ufffdb"},
			{"transport: x", "unknown"},
			{"Connecting to server", "unknown"},
			{"\xef\xbb\xbf", "unknown"},
		},
	})
}

// columns are the names of all layouts.
var columns = map[string]Column{
	"Offline(ms)": Offline, "Serialize(ms)": Serialize, "Ser(ms)": Serialize, "Send(ms)": Send, "Recv(ms)": Receive, "Deserialize(ms)": Deserialize,
	"Deser(ms)": Deserialize,
	"Comm(ms)":  Comm, "GPU(ms)": Server, "Compute(ms)": Server, "Total(ms)": Total, "Sent(KB)": Sent, "Recv(KB)": Received, "Throughput(MB/s)": Throughput,
}

// Every row of the real logs, where available, compared with a reader that knows only the name over each column.
func TestRealLogs(t *testing.T) {
	files, err := filepath.Glob("../../../../../shared/logs/zmq_tsqp/*.log")
	require.NoError(t, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		var p Parser
		var header []string
		calls, statistics, inSummary := 0, 0, false
		for text := range strings.Lines(string(b)) {
			text = strings.TrimSuffix(text, "\n")
			kind, _ := read(t, &p, text)
			require.NotContains(t, []Kind{Bad, Unknown}, kind, text)
			words := strings.Fields(text)
			switch {
			case len(words) == 0:
				require.Equal(t, Blank, kind)
			case words[0] == "ID":
				require.Equal(t, Header, kind)
				header = words
			case words[0] == "SUMMARY":
				require.Equal(t, Summary, kind)
				inSummary = true
			case words[0] == "ZeroMQ" && !inSummary:
				require.Equal(t, Title, kind)
				require.Equal(t, words[len(words)-1], p.Transport())
			case strings.Trim(text, "=") == "":
				require.Equal(t, Rule, kind)
			case inSummary && strings.ContainsAny(text, "0123456789"):
				require.Equal(t, Statistic, kind, text)
				require.Contains(t, text, strings.TrimSuffix(words[len(words)-1], ")"))
				statistics++
			case inSummary:
				require.Equal(t, Section, kind, text)
			default:
				require.Equal(t, Call, kind, text)
				calls++
				require.Equal(t, words[0], strconv.FormatInt(p.Row.ID, 10))
				require.Equal(t, words[1], string(p.Row.Method))
				require.Len(t, words, len(header))
				require.Equal(t, rowOf(t, &p.Row, header, words), p.Row, text)
				require.Empty(t, p.Row.Fields)
			}
		}
		t.Logf("%s: %d calls, %d statistics", filepath.Base(file), calls, statistics)
		require.Positive(t, calls)
		require.Equal(t, inSummary, statistics > 0)
	}
}

// rowOf is the content of a row by its header, with the id, the method and the fields of the row read.
func rowOf(t *testing.T, got *Row, header, words []string) Row {
	t.Helper()
	want := Row{ID: got.ID, Method: got.Method, Fields: got.Fields, Has: 1<<ID | 1<<Method, Step: 1000, SizeStep: 10.24}
	for i, name := range header[2:] {
		c, text := columns[name], words[i+2]
		want.Has |= 1 << c
		switch c {
		case Sent:
			want.Sent = kibibytes(t, text)
		case Received:
			want.Received = kibibytes(t, text)
		case Throughput:
			v, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			want.Throughput, want.ThroughputStep = v*1048576, 10485.76
		default:
			us, err := strconv.ParseInt(strings.Replace(text, ".", "", 1), 10, 64) // three decimals
			require.NoError(t, err)
			want.NS[c] = us * 1000
		}
	}
	return want
}

// kibibytes is the size in bytes to the nearest.
func kibibytes(t *testing.T, text string) int64 {
	t.Helper()
	v, ok := new(big.Rat).SetString(text)
	require.True(t, ok, text)
	v.Mul(v, big.NewRat(1024, 1))
	v.Add(v, big.NewRat(1, 2))
	return new(big.Int).Div(v.Num(), v.Denom()).Int64()
}

// Numbers printed as by the writers come back unchanged, in any unit.
func TestNumbersComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	var p Parser
	require.Equal(t, Header, p.Line([]byte("ID Method Ser(ms) Send(s) Recv(us) Deser(ns) Sent(KB) Recv(KB)")))
	for n := range 20_000 {
		var ns [4]int64
		for i := range ns {
			ns[i] = rng.Int64N(int64(math.Pow10(rng.IntN(15))) + 1)
		}
		sent, received := fmt.Sprintf("%d.%02d", rng.Int64N(1<<rng.IntN(33)), rng.IntN(100)), fmt.Sprintf("%d.%06d", rng.Int64N(1<<rng.IntN(33)), rng.IntN(1e6))
		text := fmt.Sprintf(
			"%-5d %-20s %-15s %-12s %-12s %-17d %-12s %-12s ", n, "Matmul", decimals(ns[0], 6), decimals(ns[1], 9), decimals(ns[2], 3), ns[3], sent, received,
		)
		require.Equal(t, Call, p.Line([]byte(text)), text)
		require.Equal(t, ns, [4]int64(p.Row.NS[Serialize:Total]), text)
		require.Equal(t, kibibytes(t, sent), p.Row.Sent, text)
		require.Equal(t, kibibytes(t, received), p.Row.Received, text)
	}
}

func decimals(v int64, n int) string {
	s := fmt.Sprintf("%0*d", n+1, v)
	return s[:len(s)-n] + "." + s[len(s)-n:]
}

// Without a total in the log, the total is the least possible one.
func TestNoTotal(t *testing.T) {
	for _, c := range []struct {
		header, text string
		total, ahead int64
	}{
		{"ID Method Ser(ms) Send(ms) Recv(ms) Deser(ms) Offline(ms)", "1 m 1 2 3 4 5", 10e6, 15e6},
		{"ID Method Ser(ms) Recv(ms) Comm(ms) GPU(ms)", "1 m 1 2 3.5 2", 3.5e6, 3.5e6},
		{"ID Method Sent(KB)", "1 m 1", 0, 0},
	} {
		var p Parser
		p.Line([]byte(c.header))
		require.Equal(t, Call, p.Line([]byte(c.text)))
		assert.Equal(t, c.total, p.Row.NS[Total])
		assert.False(t, p.Row.Has.Has(Total))
		p.LookAhead()
		ns, ok := p.Duration([]byte(c.text))
		assert.True(t, ok)
		assert.Equal(t, c.ahead, ns)
	}
}

func TestRestoreRefuses(t *testing.T) {
	for _, in := range []string{"", "no json", `{"header":"no header"}`, `[]`} {
		var p Parser
		p.Restore([]byte(in))
		assert.Nil(t, p.Save(), in)
		assert.Equal(t, Bad, p.Line([]byte(rowV1)))
		assert.Equal(t, ReasonNoHeader, p.Reason())
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{
		titleV1 + "\n" + headerV1 + "\n" + rowV1 + "\nSUMMARY (x)\nTotal RPC Calls: 98\n  Linear (count=112):\n    Avg: 1.5 ms (2)\n" + rule + "\n" + rowV1,
		headerV4 + "\n" + rowV4 + "\n" + rowV4[:50] + "\n3 a 1e-05 -1 .5 +2 1. 1e5 7 8 9",
		"ID,Method,Serialize_us,Send_s,Recv_ns,Sent_MB,Recv_B,Throughput_GBps,Queue_ms,Note\n1,a b,1,2,3,4,5,6,7,\n1 a 1 2 3 4 5 6 7 8",
		"ID,Method,Total_ms,trace_id,traceparent,Span ID\n1,a,2,b1,00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01,\n2,a,2,,,0",
		"id method recv(kb) offline\n1 \xff 0e99999 1\n1 m 9e9 9000000000.9999",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var p Parser
		for text := range strings.SplitSeq(in, "\n") {
			switch kind, _ := read(t, &p, text); kind {
			case Call:
				for _, ns := range p.Row.NS {
					assert.GreaterOrEqual(t, ns, int64(0), text)
				}
				assert.Equal(t, max(0, min(p.Row.ID, p.Row.Sent, p.Row.Received, p.Row.Step)), min(p.Row.ID, p.Row.Sent, p.Row.Received, p.Row.Step), text)
				assert.False(t, p.Row.Throughput < 0 || math.IsInf(p.Row.Throughput, 0) || math.IsNaN(p.Row.Throughput), text)
				assert.NotEmpty(t, p.Row.Method, text)
				assert.Contains(t, text, string(p.Row.Method))
			case Statistic:
				assert.False(t, math.IsInf(p.Statistic.Value, 0) || math.IsNaN(p.Statistic.Value) || p.Statistic.Step <= 0 || p.Statistic.Key == "", text)
			}
		}
	})
}

func BenchmarkLine(b *testing.B) {
	// Rows differ, as in real logs: the branch predictor learns equal rows.
	rng := rand.New(rand.NewPCG(4, 2))
	number := func(most, digits int) string {
		return decimals(rng.Int64N(int64(math.Pow10(1+rng.IntN(most)))), digits)
	}
	var v1, v4, csv []string
	for i := range 256 {
		method := []string{"BatchLinear", "Matmul", "Embedding", "BatchLinearWithMask"}[rng.IntN(4)]
		ms, kb := func() string { return number(6, 3) }, func() string { return number(7, 2) }
		v1 = append(v1, fmt.Sprintf("%-5d %-20s %-15s %-12s %-12s %-17s %-12s %-12s %-12s %-18s", i, method, ms(), ms(), ms(), ms(), ms(), kb(), kb(), kb()))
		v4 = append(
			v4, fmt.Sprintf("%-5d %-20s %-10s %-10s %-10s %-10s %-12s %-10s %-12s %-10s %-10s", i, method, ms(), ms(), ms(), ms(), ms(), ms(), ms(), kb(), kb()),
		)
		csv = append(csv, strings.Join(strings.Fields(v1[i]), ","))
	}
	for _, c := range []struct {
		name  string
		first string
		texts []string
	}{
		{"v1", headerV1, v1},
		{"v4", headerV4, v4},
		{"csv", headerV1, csv},
		{"rule", headerV1, []string{rule}},
		{"other", headerV1, []string{"Warning: the quick brown fox jumps over the lazy dog, and comes back with 3 others after a while"}},
		{"statistic", "SUMMARY", []string{"Shared Memory Transfers: 276 (324.75 MB)"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			benchmark(b, c.first, c.texts, func(p *Parser, text []byte) bool { return p.Line(text) != Bad })
		})
	}
	b.Run("ahead", func(b *testing.B) {
		benchmark(b, headerV1, v1, func(p *Parser, text []byte) bool { p.LookAhead(); _, ok := p.Duration(text); return ok })
	})
}

func benchmark(b *testing.B, first string, texts []string, read func(*Parser, []byte) bool) {
	b.Helper()
	var p Parser
	p.Line([]byte(first))
	lines, total := make([][]byte, len(texts)), 0
	for i, text := range texts {
		lines[i] = []byte(text)
		total += len(text)
	}
	b.ReportAllocs()
	b.SetBytes(int64(total / len(lines)))
	i := 0
	for b.Loop() {
		if !read(&p, lines[i]) {
			b.Fatal(texts[i])
		}
		if i++; i == len(lines) {
			i = 0
		}
	}
}
