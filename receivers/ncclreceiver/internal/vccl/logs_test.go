package vccl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// format is one of VCCL's formats, for tests.
type format struct {
	name  string
	sniff func(text []byte) bool
	parse func(file string) parse.Parser
}

var formats = []format{
	{"json", SniffJSON, func(file string) parse.Parser { return NewJSON(file) }},
	{"csv", SniffCSV, func(file string) parse.Parser { return NewCSV(file) }},
	{"flow", SniffFlow, func(file string) parse.Parser { return NewFlow(file) }},
	{"packed", SniffPacked, func(file string) parse.Parser { return NewPacked(file) }},
	{"mean", SniffMean, func(file string) parse.Parser { return NewMean(file, time.UTC) }},
	{"text", SniffText, func(file string) parse.Parser { return NewText(file, time.UTC) }},
}

// sniffed returns the format of a line, and checks that no other format matches.
func sniffed(t *testing.T, text string) (f format) {
	t.Helper()
	if Binary([]byte(text)) {
		return f
	}
	for _, of := range formats {
		if of.sniff([]byte(text)) {
			require.Empty(t, f.name, text)
			f = of
		}
	}
	return f
}

// thousandth is a decimal number times 10^exp; the product must be whole.
func thousandth(t *testing.T, text string, exp int64) int64 {
	t.Helper()
	v, ok := new(big.Rat).SetString(text)
	require.True(t, ok, text)
	v.Mul(v, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(exp), nil)))
	require.True(t, v.IsInt(), text)
	return v.Num().Int64()
}

// All lines of the sample logs, where available, each compared with an independent reading.
func TestLogs(t *testing.T) {
	files, err := filepath.Glob("../../../../../shared/logs/vccl_flow/GENERATED_*")
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			in := lines(string(text))
			of := sniffed(t, in[0].text)
			require.NotEmpty(t, of.name)
			format := of.name
			a := parseAll(t, of.parse(file), in, nil)
			var want, samples []string
			verdicts := map[string]int{"record": len(in)}
			switch format {
			case "json":
				want = jsonOracle(t, text)
			case "flow":
				want = flowOracle(t, in[1:])
				verdicts = map[string]int{"record": len(in) - 1, "ignored header": 1}
			case "packed":
				verdicts = map[string]int{"record": len(in) - 1, "ignored header": 1}
				samples = packedOracle(t, in[1:])
				assert.Contains(t, samples[len(samples)-2], "bandwidth=11000000000 ", "600 wraps to 88")
			case "mean":
				verdicts = map[string]int{"record": len(in) - 1, "ignored header": 1}
				// 2026-01-12 14:05:01 is 1768226701.
				samples = []string{
					"nccl.device.bandwidth=23375000000 at 1768226701000000000 AllReduce max", "nccl.device.bandwidth=22625000000 at 1768226701000000000 AllReduce mean",
					"nccl.device.abnormal=1 at 1768226701000000000 AllReduce",
					"nccl.device.bandwidth=23250000000 at 1768226702000000000 AllReduce max", "nccl.device.bandwidth=22500000000 at 1768226702000000000 AllReduce mean",
					"nccl.device.abnormal=1 at 1768226702000000000 AllReduce",
				}
			case "text":
				want = []string{
					"AllReduce =118 in 0xb0777fd29824eeb6 of 0 [1752157799999977690 1752157800000000000] took=22310 size=524288 total=-1 from=0 to=8 channel=0 sends=1 mean=23500134468.8 least=23500134468.8 {nccl.channel 0: send 524288 By to 8 in 22310}",
				}
			default:
				t.Fatal(format)
			}
			if format != "packed" && format != "mean" {
				require.NotEmpty(t, want)
			}
			assert.Equal(t, want, a.ops())
			assert.Equal(t, verdicts, a.verdicts)
			if samples != nil {
				assert.Equal(t, samples, a.samples())
			}
			if format != "flow" && format != "text" {
				assert.Empty(t, a.open)
			}
			key := sorted
			if format == "flow" || format == "text" {
				key = sum
			}
			restarts(t, func() parse.Parser { return of.parse(file) }, in, key)
		})
	}
}

// packedOracle takes the samples out of the bits of each number.
func packedOracle(t *testing.T, in []given) (samples []string) {
	t.Helper()
	for _, l := range in {
		word, ok := new(big.Int).SetString(l.text, 10)
		require.True(t, ok)
		bits := fmt.Sprintf("%064b", word)
		bandwidth, _ := strconv.ParseInt(bits[1:10], 2, 64)
		ns, _ := strconv.ParseInt(bits[10:], 2, 64)
		samples = append(samples, fmt.Sprintf("nccl.device.bandwidth=%.12g at %d? on GENERATED_observe0_compressed_node01", float64(bandwidth)*125e6, ns),
			fmt.Sprintf("nccl.device.abnormal=%c at %d? on GENERATED_observe0_compressed_node01", bits[0], ns))
	}
	return samples
}

// jsonOracle reads the records by the standard library, with exact numbers.
func jsonOracle(t *testing.T, text []byte) (want []string) {
	t.Helper()
	names := map[string]string{"allreduce": "AllReduce", "broadcast": "Broadcast", "reduce": "Reduce", "allgather": "AllGather", "reducescatter": "ReduceScatter"}
	seen := map[string]int{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for d.More() {
		var r map[string]any
		require.NoError(t, d.Decode(&r))
		number := func(key string) string { return string(r[key].(json.Number)) }
		name := names[r["operation"].(string)]
		require.NotEmpty(t, name)
		start, took := thousandth(t, number("timestamp"), 9), thousandth(t, number("duration_us"), 3)
		s := fmt.Sprintf("%s #%d of %s [%d %d] took=%d size=%s from=%s to=%s channel=%s stream=%s %s %.12g(Gbit/s)", name, seen[name], number("rank"), start,
			start+took, took,
			number("message_size"), number("src_rank"), number("dst_rank"), number("channel_id"), number("stream_id"), r["algorithm"], float64(
				thousandth(t, number("bandwidth_gbps"), 1),
			)*1.25e7)
		if number("error_count") != "0" || number("retry_count") != "0" {
			s += fmt.Sprintf(" errors=%s retries=%s", number("error_count"), number("retry_count"))
		}
		want = append(want, s)
		seen[name]++
	}
	return want
}

// flowOracle groups consecutive rows.
func flowOracle(t *testing.T, rows []given) (want []string) {
	t.Helper()
	for from := 0; from < len(rows); {
		f := strings.Split(rows[from].text, ",")
		require.Len(t, f, 13)
		name := map[string]string{"2": "AllGather", "4": "AllReduce"}[f[5]]
		require.NotEmpty(t, name)
		to, sum, least := from, 0, 1<<30
		var last string
		for ; to < len(rows); to++ {
			g := strings.Split(rows[to].text, ",")
			if strings.Join(g[1:7], ",") != strings.Join(f[1:7], ",") {
				break
			}
			v, err := strconv.Atoi(g[9])
			require.NoError(t, err)
			sum += v
			least = min(least, v)
			last = g[12]
		}
		hash, ok := new(big.Int).SetString(f[1], 10)
		require.True(t, ok)
		n := to - from
		want = append(want, fmt.Sprintf("%s =%s in 0x%x of %s on GENERATED_observe1_node01 [%s %s] took=%d from=%s to=%s sends=%d mean=%.12g least=%.12g", name,
			f[6], hash, f[2], f[12], last,
			thousandth(t, last, 0)-thousandth(t, f[12], 0), f[2], f[3], n, float64(sum)/float64(n)*125e6, float64(least)*125e6))
		from = to
	}
	return want
}
