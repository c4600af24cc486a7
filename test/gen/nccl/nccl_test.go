package nccl

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/test/gen/gentest"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// truthFile is the content of a truth file.
type truthFile = gentest.Truth[Run, Collective]

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ncclOptions(tb testing.TB, format string, change func(*Options)) Options {
	tb.Helper()
	o := DefaultOptions()
	o.Format, o.Out = format, filepath.Join(tb.TempDir(), "nccl")
	o.Start, o.Timezone = time.Date(2026, 2, 11, 8, 40, 0, 120_000_000, time.UTC), time.UTC
	o.Seed, o.Ranks, o.Nodes, o.Steps, o.PerStep = 42, 8, 2, 5, 6
	if change != nil {
		change(&o)
	}
	return o
}

func writeNCCL(t *testing.T, o Options) *truthFile {
	t.Helper()
	run, err := Generate(t.Context(), o)
	require.NoError(t, err)
	truth, err := gentest.ReadTruth[Run, Collective](o.truthPath())
	require.NoError(t, err)
	require.Equal(t, run, truth.Run)
	assert.Len(t, truth.Records, run.Collectives)
	lines, operations := int64(0), int64(0)
	for _, f := range run.Files {
		assert.EqualValues(t, strings.Count(gentest.Text(t, f.Path), "\n"), f.Lines-f.Overwritten, f.Path)
		assert.Equal(t, f.Lines, f.Records+f.Sides+f.Ignored, f.Path)
		lines += f.Lines
		operations += f.Operations
	}
	assert.Equal(t, lines, run.Lines)
	if !o.perNIC() {
		assert.Equal(t, operations, run.Operations)
	}
	return truth
}

// ncclRecord is an operation of a rank, read independently of the format.
type ncclRecord struct {
	rank     int
	name     string
	sequence uint64
	size     int64
	data     int64 // of all ranks, if logged
	ns       int64 // duration; -1: none
	start    int64 // ns
	state    string
	errors   int64
	retries  int64
	gbps     float64
	text     map[string]any
}

var ncclSpellings = map[string]string{
	"allreduce": "AllReduce", "allgather": "AllGather", "reducescatter": "ReduceScatter", "broadcast": "Broadcast",
	"nccl:all_reduce": "AllReduce", "nccl:_all_gather_base": "AllGather", "nccl:_reduce_scatter_base": "ReduceScatter", "nccl:broadcast": "Broadcast",
}

// decodeAll decodes consecutive JSON values.
func decodeAll(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	for {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		switch v := v.(type) {
		case map[string]any:
			all = append(all, v)
		case []any:
			for _, e := range v {
				all = append(all, e.(map[string]any))
			}
		}
	}
}

func integer(t *testing.T, v any) int64 {
	t.Helper()
	n, err := strconv.ParseInt(fmt.Sprint(v), 10, 64)
	require.NoError(t, err)
	return n
}

func float(t *testing.T, v any) float64 {
	t.Helper()
	return gentest.Number(t, fmt.Sprint(v))
}

// readNCCL reads the records of all ranks, the records of each rank in their order.
func readNCCL(t *testing.T, o *Options, run *Run) (all []ncclRecord) {
	t.Helper()
	for _, f := range run.Files {
		text := gentest.Text(t, f.Path)
		var records []ncclRecord
		switch {
		case o.documented():
			records = readVCCL(t, o, text)
		case o.inspector() != "":
			records = readInspector(t, o, text)
		case o.Format == FormatNCCLProfiler:
			records = readProfiler(t, o, text)
		case o.Format == FormatFlightRecorder:
			_, file, _ := strings.Cut(strings.TrimSuffix(f.Path, ".json"), "nccl_trace_rank_")
			records = readFlight(t, int(gentest.Number(t, file)), text)
		}
		assert.Len(t, records, int(f.Operations), f.Path)
		all = append(all, records...)
	}
	return all
}

func readVCCL(t *testing.T, o *Options, text string) (records []ncclRecord) {
	t.Helper()
	var objects []map[string]any
	if o.Format == FormatVCCLCSV {
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		require.NoError(t, err)
		for _, row := range rows[1:] {
			m := map[string]any{}
			for i, key := range rows[0] {
				m[key] = row[i]
			}
			objects = append(objects, m)
		}
	} else {
		objects = decodeAll(t, text)
	}
	counts := map[string]uint64{}
	for _, m := range objects {
		require.Len(t, m, 13)
		r := ncclRecord{
			rank: int(integer(t, m["rank"])), name: ncclSpellings[m["operation"].(string)], size: integer(t, m["message_size"]),
			ns:     int64(math.Round(float(t, m["duration_us"]) * 1000)),
			start:  integer(t, strings.Replace(fmt.Sprint(m["timestamp"]), ".", "", 1)) * 1000,
			errors: integer(t, m["error_count"]), retries: integer(t, m["retry_count"]), gbps: float(t, m["bandwidth_gbps"]), text: m,
		}
		r.sequence = counts[r.name]
		counts[r.name]++
		assert.EqualValues(t, r.rank, integer(t, m["src_rank"]))
		assert.EqualValues(t, (r.rank+1)%o.Ranks, integer(t, m["dst_rank"]))
		records = append(records, r)
	}
	return records
}

func readInspector(t *testing.T, o *Options, text string) (records []ncclRecord) {
	t.Helper()
	var context map[string]any
	left := int64(0)
	for _, m := range decodeAll(t, text) {
		if h, ok := m["header"]; ok {
			require.Zero(t, left, "records before the next marker")
			context = h.(map[string]any)
		}
		if stats, ok := m["dump_stats"]; ok {
			require.NotEqual(t, "v4.0", o.inspector())
			if s := stats.(map[string]any); o.inspector() >= "v4.3" {
				left = integer(t, s["coll_records"]) + integer(t, s["p2p_records"])
				if o.inspector() == "v4.4" {
					left += integer(t, s["proxy_records"])
				}
			}
			continue
		}
		if o.inspector() >= "v4.3" {
			require.NotContains(t, m, "header")
			left--
		}
		if _, ok := m["proxy_trace"]; ok {
			continue
		}
		p := m["coll_perf"].(map[string]any)
		assert.EqualValues(t, o.Ranks, integer(t, context["n_ranks"]))
		assert.EqualValues(t, o.Nodes, integer(t, context["nnodes"]))
		r := ncclRecord{
			rank: int(integer(t, context["rank"])), name: p["coll"].(string), sequence: uint64(integer(t, p["coll_sn"])),
			size: integer(t, p["coll_msg_size_bytes"]), ns: integer(t, p["coll_exec_time_us"]) * 1000, text: p,
		}
		checkBandwidth(t, &r, float64(o.Ranks))
		assert.Equal(t, o.inspector() >= "v4.2", p["coll_algo"] == "RING")
		if ts, ok := p["event_trace_ts"]; ok {
			events := ts.(map[string]any)["kernel_events"].([]any)
			assert.Len(t, events, o.Channels)
			first, last := int64(math.MaxInt64), int64(0)
			for _, e := range events {
				first = min(first, integer(t, e.(map[string]any)["kernel_start_ts"]))
				last = max(last, integer(t, e.(map[string]any)["kernel_stop_ts"]))
			}
			assert.Equal(t, r.ns, (last-first)*1000)
			r.start = first * 1000
		}
		assert.Equal(t, o.Verbose, r.start > 0)
		records = append(records, r)
	}
	require.Zero(t, left)
	return records
}

// checkBandwidth compares the printed GB/s: of the data of all ranks, and by the factors of NCCL's documentation.
func checkBandwidth(t *testing.T, r *ncclRecord, n float64) {
	t.Helper()
	data, factor := float64(r.size), 1.0
	switch r.name {
	case "AllReduce":
		factor = 2 * (n - 1) / n
	case "AllGather", "ReduceScatter":
		data *= n
		factor = 1 - 1/n
	}
	assert.InDelta(t, data/float64(r.ns), float(t, r.text["coll_algobw_gbs"]), 1e-6)
	assert.InDelta(t, data/float64(r.ns)*factor, float(t, r.text["coll_busbw_gbs"]), 1e-6)
}

var (
	bareToken  = regexp.MustCompile(`("datatype": |"Stream": )(\w+)`)
	traceStart = regexp.MustCompile(`^\[\n`)
)

func readProfiler(t *testing.T, o *Options, text string) (records []ncclRecord) {
	t.Helper()
	require.Regexp(t, traceStart, text)
	assert.Equal(t, o.InvalidTokens, bareToken.MatchString(text))
	text = bareToken.ReplaceAllString(text, `$1"$2"`)
	assert.Equal(t, o.NoEnd, !strings.HasSuffix(text, "},\n{}]\n"))
	if o.NoEnd {
		text += "{}]\n"
	}
	var r ncclRecord
	first, last := int64(0), int64(0)
	for _, m := range decodeAll(t, text) {
		if len(m) == 0 {
			continue
		}
		args, _ := m["args"].(map[string]any)
		switch cat, ph := m["cat"], m["ph"]; {
		case cat == "COLL" && ph == "b":
			sizes := map[string]int64{`ncclFloat32`: 4, `ncclInt8`: 1}
			r = ncclRecord{
				rank: int(integer(t, args["Rank"])), name: m["name"].(string), sequence: uint64(integer(t, args["SeqNum"])),
				size: integer(t, args["Count"]) * sizes[args["Datatype"].(string)], text: args,
			}
			first, last = math.MaxInt64, 0
		case cat == "GPU" && ph == "b":
			first, last = min(first, integer(t, args["StartGpuClk"])), max(last, integer(t, args["StopGpuClk"]))
		case cat == "COLL" && ph == "e":
			r.start, r.ns = first, last-first
			records = append(records, r)
		}
	}
	return records
}

func readFlight(t *testing.T, rank int, text string) (records []ncclRecord) {
	t.Helper()
	all := decodeAll(t, text)
	require.Len(t, all, 1)
	status := all[0]["pg_status"].(map[string]any)["0"].(map[string]any)
	completed := 0
	for i, e := range all[0]["entries"].([]any) {
		m := e.(map[string]any)
		assert.EqualValues(t, i, integer(t, m["record_id"]))
		r := ncclRecord{
			rank: rank, name: ncclSpellings[m["profiling_name"].(string)], sequence: uint64(integer(t, m["collective_seq_id"])), ns: -1,
			start: integer(t, m["time_created_ns"]), state: m["state"].(string), text: m,
		}
		elements := func(key string) int64 { return integer(t, m[key].([]any)[0].([]any)[0]) * 2 }
		r.size = elements("input_sizes")
		r.data = max(r.size, elements("output_sizes"))
		if ms, ok := m["duration_ms"]; ok {
			r.ns = int64(math.Round(float(t, ms) * 1e6))
		}
		switch r.state {
		case "completed":
			completed++
			assert.GreaterOrEqual(t, integer(t, m["time_discovered_completed_ns"]), r.start+max(0, r.ns))
		default:
			assert.Nil(t, m["time_discovered_completed_ns"])
		}
		records = append(records, r)
	}
	assert.EqualValues(t, completed, integer(t, status["last_completed_collective"]))
	assert.EqualValues(t, len(records), integer(t, status["last_enqueued_collective"]))
	return records
}

// checkNCCL compares logs and truth.
func checkNCCL(t *testing.T, o *Options, truth *truthFile) {
	t.Helper()
	type key struct {
		name     string
		sequence uint64
	}
	by := map[key][]ncclRecord{}
	for _, r := range readNCCL(t, o, &truth.Run) {
		k := key{r.name, r.sequence}
		by[k] = append(by[k], r)
	}
	assert.Len(t, by, len(truth.Records))
	n := float64(o.Ranks)
	before := int64(0)
	for i, c := range truth.Records {
		require.Equal(t, i, c.Index)
		require.Equal(t, i/o.PerStep, c.Step)
		assert.Equal(t, truth.Run.Communicator, c.Communicator)
		records := by[key{c.Operation, c.Sequence}]
		require.Len(t, records, c.Records, "%s %d", c.Operation, c.Sequence)
		shortest, longest := checkRanks(t, o, &c, records)
		perRank := (c.Operation == "AllGather" || c.Operation == "ReduceScatter" && o.Format != FormatFlightRecorder) && !o.documented()
		if perRank {
			assert.Equal(t, c.DataSize, c.MessageSize*int64(o.Ranks))
		} else {
			assert.Equal(t, c.DataSize, c.MessageSize)
		}
		if longest < 0 {
			assert.Zero(t, c.AlgBandwidth)
			continue
		}
		assert.Equal(t, shortest, c.ShortestNS)
		assert.Equal(t, longest, c.LongestNS)
		algbw := float64(c.DataSize) * 1e9 / float64(shortest)
		assert.InEpsilon(t, algbw, c.AlgBandwidth, 1e-12)
		busbw := map[string]float64{"AllReduce": algbw * (2 - 2/n), "AllGather": algbw * (1 - 1/n), "ReduceScatter": algbw * (1 - 1/n), "Broadcast": algbw}
		assert.InEpsilon(t, busbw[c.Operation], c.BusBandwidth, 1e-12)
		// The last rank to come took least, within the error of printing and leaving; the first rank waited for it.
		slack := float64(2*o.EndJitter) + 2000
		if o.SlowLink == "" && c.Operation != "Broadcast" && len(c.Missing) == 0 {
			assert.InDelta(t, c.TransferNS, float64(c.ShortestNS), slack)
			assert.InDelta(t, c.LateNS, float64(c.LongestNS-c.ShortestNS), 2*slack)
		}
		assert.Greater(t, c.StartUnixNano, before-int64(2*o.EndJitter))
		assert.GreaterOrEqual(t, c.BegunUnixNano, c.StartUnixNano)
		assert.InDelta(t, c.BegunUnixNano+c.TransferNS, c.EndUnixNano, float64(o.EndJitter))
		before = c.BegunUnixNano
	}
}

// checkRanks compares the records of a collective's ranks with the truth, and returns the shortest and the longest time of a rank, negative if no rank has a
// time.
func checkRanks(t *testing.T, o *Options, c *Collective, records []ncclRecord) (shortest, longest int64) {
	t.Helper()
	shortest, longest = math.MaxInt64, -1
	var have, want []int
	failed, retried := int64(0), int64(0)
	for _, r := range records {
		have = append(have, r.rank)
		shortest, longest = min(shortest, r.ns), max(longest, r.ns)
		failed += r.errors
		retried += r.retries
		assert.Equal(t, c.MessageSize, r.size, "%s %d", c.Operation, c.Sequence)
		assert.True(t, r.data == 0 || r.data == c.DataSize, "%s %d", c.Operation, c.Sequence)
	}
	for rank := range o.Ranks {
		if !slices.Contains(c.Missing, rank) {
			want = append(want, rank)
		}
	}
	slices.Sort(have)
	assert.Equal(t, want, have)
	assert.Equal(t, failed, c.Errors)
	assert.Equal(t, retried, c.Retries)
	return shortest, longest
}

// Every format with records of ranks, with every fault that it knows.
func TestNCCLRecordsAgreeWithTruth(t *testing.T) {
	for _, format := range ncclFormats() {
		changes := map[string]func(*Options){
			"plain":     nil,
			"missing":   func(o *Options) { o.MissingRank, o.MissingFrom = 3, 8 },
			"slow":      func(o *Options) { o.SlowRank, o.SlowBy, o.SlowFrom, o.SlowCollective = 2, 0.2, 1, 9 },
			"broadcast": func(o *Options) { o.Operations = ncclNames(); o.Sizes = []int64{1 << 20, 3 << 20} },
			"clocks":    func(o *Options) { o.ClockSkew, o.ClockDrift, o.EndJitter = 5*time.Second, 50, 0 },
		}
		switch o := ncclOptions(t, format, nil); {
		case o.perNIC():
			continue
		case o.documented():
			changes["faults"] = func(o *Options) { o.Retries, o.Errors, o.Gigabytes = 0.2, 0.1, true }
			changes["link"] = func(o *Options) { o.SlowLink = "7:0" }
			changes["none"] = func(o *Options) { o.MissingRank, o.MissingFrom = 0, 0 }
		case o.inspector() != "":
			changes["verbose"] = func(o *Options) { o.Verbose, o.Channels, o.DumpInterval = true, 3, 30*time.Millisecond }
			changes["process"] = func(o *Options) { o.RanksPerFile, o.DumpInterval, o.MissingRank, o.MissingFrom = 4, 0, 5, 3 }
			changes["gap"] = func(o *Options) { o.GapRank, o.GapAt = 6, 4 }
		case format == FormatNCCLProfiler:
			changes["invalid"] = func(o *Options) { o.InvalidTokens, o.NoEnd = true, true }
			changes["verbose"] = func(o *Options) { o.Verbose = true }
			changes["gap"] = func(o *Options) { o.GapRank, o.GapAt = 6, 4 }
		case format == FormatFlightRecorder:
			delete(changes, "missing") // see TestFlightRecorderOfAHang
			changes["untimed"] = func(o *Options) { o.NoTiming = true }
			changes["compact"] = func(o *Options) { o.Compact = true }
		}
		for name, change := range changes {
			t.Run(format+" "+name, func(t *testing.T) {
				o := ncclOptions(t, format, change)
				truth := writeNCCL(t, o)
				checkNCCL(t, &o, truth)
				if o.MissingRank >= 0 {
					for _, c := range truth.Records {
						assert.Equal(t, c.Index >= o.MissingFrom, slices.Equal(c.Missing, []int{o.MissingRank}))
					}
				}
				if o.Errors > 0 {
					assert.InDelta(t, 2*0.1*240, truth.Run.Errors, 30)
					assert.InDelta(t, 2*0.2*240, truth.Run.Retries, 40)
				}
				if o.Compact {
					assert.EqualValues(t, o.Ranks, truth.Run.Lines)
				}
			})
		}
	}
}

// keysOf returns the keys of a record in their order; keys of lists of records stand once each.
func keysOf(line string) string {
	var keys []string
	for _, m := range regexp.MustCompile(`"(\w+)": ?`).FindAllStringSubmatch(line, -1) {
		keys = append(keys, m[1])
	}
	return strings.Join(keys, " ")
}

// shapes are the samples' distinct records by their keys.
func shapes(t *testing.T, pattern, only string) map[string]bool {
	t.Helper()
	lines := gentest.Samples(t, pattern)
	if lines == nil {
		return nil
	}
	found := map[string]bool{}
	for _, line := range lines {
		if strings.Contains(line, only) {
			found[keysOf(line)] = true
		}
	}
	require.NotEmpty(t, found, pattern)
	return found
}

const (
	inspectorContext = "header id comm_name rank n_ranks nnodes metadata inspector_output_format_version git_rev rec_mechanism dump_timestamp_us hostname pid "
	inspectorStats   = "dump_stats coll_records coll_dropped_total coll_dropped_since_last_dump p2p_records p2p_dropped_total p2p_dropped_since_last_dump"
	inspectorProxies = " proxy_records proxy_dropped_total proxy_dropped_since_last_dump proxy_ops_dropped_total proxy_ops_dropped_since_last_dump proxy_steps_overwritten_total proxy_steps_overwritten_since_last_dump proxy_output_mode proxy_segment_step_capacity proxy_pxn_skipped_process_total proxy_steps_enabled"
	inspectorPerf    = "coll_sn coll_msg_size_bytes coll_exec_time_us coll_timing_source coll_algobw_gbs coll_busbw_gbs"
	inspectorTrace   = " event_trace_sn coll_start_sn coll_stop_sn kernel_events channel_id kernel_start_sn kernel_stop_sn kernel_record_sn event_trace_ts coll_start_ts coll_stop_ts kernel_events channel_id kernel_start_ts kernel_stop_ts kernel_record_ts"
	inspectorProxy   = "proxy_trace record_type record_sn parent_type parent_sn proxy_op_sn rank channel_id peer direction timing_source is_final n_steps chunk_size_bytes n_steps_started n_steps_completed n_steps_dropped trans_size_bytes total_us op_bw_gbs event_trace_ts proxy_op_start_ts proxy_op_in_progress_ts proxy_op_stop_ts steps proxy_step_sn step trans_size_bytes total_us gpu_produce_us peer_credit_us wire_us event_trace_ts proxy_step_start_ts send_gpu_wait_ts send_peer_wait_ts send_wait_ts proxy_step_stop_ts"
)

// Keys and their order equal the writer's, and the samples' if available.
func TestNCCLShapes(t *testing.T) {
	for _, tt := range []struct {
		format    string
		verbose   bool
		want      []string // keys of the lines, once for each kind of line
		originals map[string]bool
	}{
		{FormatInspector, false, []string{inspectorContext + "coll_perf coll " + inspectorPerf}, shapes(t, "nccl_inspector/GENERATED_v4.0*", "coll_perf")},
		{FormatInspector + "_v4.1", false, []string{inspectorContext + inspectorStats, inspectorContext + "coll_perf coll " + inspectorPerf}, nil},
		{
			FormatInspector + "_v4.2", false,
			[]string{inspectorContext + inspectorStats, inspectorContext + "coll_perf coll coll_algo coll_proto " + inspectorPerf},
			shapes(t, "nccl_inspector/GENERATED_v4.2*", "coll"),
		},
		{FormatInspector + "_v4.3", false, []string{inspectorContext + inspectorStats, "coll_perf coll coll_algo coll_proto " + inspectorPerf}, nil},
		{
			FormatInspector + "_v4.4", true,
			[]string{inspectorContext + inspectorStats + inspectorProxies, "coll_perf coll coll_algo coll_proto " + inspectorPerf + inspectorTrace, inspectorProxy},
			shapes(t, "nccl_inspector/GENERATED_v4.4_marker*", "{"),
		},
		{
			FormatVCCLJSON, false,
			[]string{"timestamp rank operation algorithm message_size duration_us bandwidth_gbps src_rank dst_rank channel_id stream_id error_count retry_count"},
			shapes(t, "vccl_flow/GENERATED_seed_style_rank_0.jsonl", "{"),
		},
	} {
		o := ncclOptions(t, tt.format, func(o *Options) { o.Verbose, o.Channels = tt.verbose, 1 })
		truth := writeNCCL(t, o)
		found := map[string]bool{}
		for line := range strings.Lines(gentest.Text(t, truth.Run.Files[0].Path)) {
			found[keysOf(line)] = true
			assert.True(t, tt.originals == nil || tt.originals[keysOf(line)], "%s: no sample has %s", tt.format, keysOf(line))
		}
		assert.Len(t, found, len(tt.want), tt.format)
		for _, want := range tt.want {
			assert.True(t, found[want], "%s has no %s", tt.format, want)
		}
	}
}

// Whole first records.
func TestNCCLText(t *testing.T) {
	for format, want := range map[string]string{
		FormatVCCLPretty: `^\{
  "timestamp": \d{10}\.\d{6},
  "rank": 0,
  "operation": "allreduce",
  "algorithm": "ring",
  "message_size": 4194304,
  "duration_us": \d+\.\d,
  "bandwidth_gbps": \d+\.\d,
  "src_rank": 0,
  "dst_rank": 1,
  "channel_id": 0,
  "stream_id": 7,
  "error_count": 0,
  "retry_count": 0
\}
\{
`,
		FormatVCCLCSV:  `^timestamp,rank,operation,algorithm,message_size,duration_us,bandwidth_gbps,src_rank,dst_rank,channel_id,stream_id,error_count,retry_count\n\d+\.\d{6},0,allreduce,ring,4194304,\d+\.\d,\d+\.\d,0,1,0,7,0,0\n`,
		FormatVCCLFlow: `^Time,Group,FromRank,ToRank,DevIndex,Func,FuncTimes,SrcIP,DstIP,Bandwidth,SendWrCounter,RemainWrDataSize,Timestamp\n20260211084000,\d{19,20},0,4,0,4,0,10\.10\.1\.11,10\.10\.1\.12,1\d\d,\d+,\d+,17707992\d{11}\n`,
		FormatVCCLText: `^20260211084000: Group:\d{19,20}, from rank 0 to rank 4, channel_id:0, func:4,FuncTimes:0, 10\.10\.1\.11->10\.10\.1\.12 send 524288 Bytes used 2\d{4} nsec, devIndex:0, sendWrCounter:\d+\n`,
		FormatVCCLMean: `^Time,DevIndex,Func,MaxBandwidth,MeanBandwidth,Status\n20260211084000,0,2,1\d\d,18\d,0\n20260211084000,0,3,1\d\d,18\d,0\n20260211084000,0,4,1\d\d,18\d,0\n`,
		FormatNCCLProfiler: `^\[
\{"name": "Group API", "cat": "GROUP_API", "ph": "b", "id": 0, "pid": \d+, "tid": 1, "ts": \d+\.\d{6}, "args": \{"groupApiId": 0, "groupDepth": 1\}\},
\{"name": "KernelLaunch", "cat": "KERNEL_LAUNCH", "ph": "b", "id": 0, "pid": \d+, "tid": 1, "ts": 0\.000000, "args": \{"groupId": 0, "Stream": "0x5020000567d0"\}\},
\{"name": "KernelLaunch", "cat": "KERNEL_LAUNCH", "ph": "e", "id": 0, "pid": \d+, "tid": 1, "ts": \d+\.\d{6}\},
\{"name": "AllReduce", "cat": "COLL_API", "ph": "b", "id": 0, "pid": \d+, "tid": 1, "ts": 0\.000000, "args": \{"count": 1048576, "datatype": "ncclFloat32", "root": 0, "GraphCaptured": 0, "Stream": "0x5020000567d0"\}\},
\{"name": "AllReduce", "cat": "COLL", "ph": "b", "id": 0, "pid": \d+, "tid": 1, "ts": \d+\.\d{6}, "args": \{"SeqNum": 0, "CommHash": \d{19,20}, "Rank": 0, "Count": 1048576, "Datatype": "ncclFloat32", "Algorithm": "RING", "Protocol": "SIMPLE", "nChannels": 2\}\},
\{"name": "KernelCh", "cat": "GPU", "ph": "b", "id": 0, "pid": \d+, "tid": 1, "ts": \d+\.\d{6}, "args": \{"Channel": 0, "StartGpuClk": \d{19}, "StopGpuClk": \d{19}\}\},
\{"name": "KernelCh", "cat": "GPU", "ph": "e", "id": 0, "pid": \d+, "tid": 1, "ts": \d+\.\d{6}\},
`,
	} {
		truth := writeNCCL(t, ncclOptions(t, format, nil))
		assert.Regexp(t, want, gentest.Text(t, truth.Run.Files[0].Path), format)
	}
	// A flight recorder's dump has the keys of the sample, but for the stack, which only the sample's first entry has.
	sample := strings.Join(gentest.Samples(t, "pytorch_flight_recorder/*.json"), "\n")
	keys := "version nccl_version pg_config 0 name desc ranks pg_status 0 last_enqueued_collective last_started_collective last_completed_collective entries record_id pg_id process_group thread_id thread_name collective_seq_id p2p_seq_id op_id profiling_name time_created_ns duration_ms input_sizes input_dtypes output_sizes output_dtypes state time_discovered_started_ns time_discovered_completed_ns retired timeout_ms is_p2p"
	truth := writeNCCL(t, ncclOptions(t, FormatFlightRecorder, func(o *Options) { o.Steps, o.PerStep = 1, 1 }))
	text := gentest.Text(t, truth.Run.Files[0].Path)
	assert.Equal(t, keys, keysOf(text))
	if sample != "" {
		head, entries, ok := strings.Cut(sample, `"frames"`)
		require.True(t, ok)
		last := strings.Split(entries, `"record_id"`)
		assert.Equal(t, keys, keysOf(head)+" record_id "+keysOf(last[len(last)-1]))
		ownHead, _, _ := strings.Cut(text, `"record_id"`)
		assert.Equal(t, strings.Count(head, "\n"), strings.Count(ownHead, "\n"))
	}
	// And the headers of VCCL's own logs.
	originals := strings.Join(gentest.Samples(t, "vccl_flow/*.log"), "\n")
	for _, header := range flowHeaders {
		assert.True(t, originals == "" || strings.Contains(originals, header+"\n"), header)
	}
}

// The log of the real profiler has the same events with the same keys, if written by 2.28.
func TestProfilerEventsAreReal(t *testing.T) {
	originals := map[string]bool{}
	for _, line := range gentest.Samples(t, "nccl_example_profiler/*.txt") {
		originals[keysOf(line)] = true
	}
	if len(originals) == 0 {
		return
	}
	o := ncclOptions(t, FormatNCCLProfiler, func(o *Options) { o.InvalidTokens, o.Verbose = true, true })
	truth := writeNCCL(t, o)
	for line := range strings.Lines(gentest.Text(t, truth.Run.Files[0].Path)) {
		if k := keysOf(line); k != "" {
			assert.True(t, originals[k], k)
		}
	}
}

// A host's clock stamps the leaving of its ranks; the hosts' stamps differ by the offsets of the truth.
func TestNCCLClocks(t *testing.T) {
	for _, format := range []string{FormatInspector, FormatInspector + "_v4.4", FormatNCCLProfiler, FormatVCCLJSON, FormatFlightRecorder} {
		o := ncclOptions(t, format, func(o *Options) {
			o.ClockSkew, o.ClockDrift, o.Steps, o.Ranks, o.Nodes = 5*time.Second, 50, 60, 8, 4
			o.Verbose = format != FormatNCCLProfiler
		})
		truth := writeNCCL(t, o)
		records := readNCCL(t, &o, &truth.Run)
		last := truth.Records[len(truth.Records)-1]
		end := make([]int64, o.Ranks)
		count := make([]int, o.Ranks)
		for _, r := range records {
			end[r.rank] = r.start + r.ns
			if format == FormatFlightRecorder {
				end[r.rank] += 20_000 // the call is before the kernel
			}
			count[r.rank]++
		}
		hosts := truth.Run.Hosts
		require.Len(t, hosts, 4)
		assert.Zero(t, hosts[0].OffsetNS)
		assert.Equal(t, last.EndUnixNano, truth.Run.EndUnixNano)
		spread := 0.0
		for i, h := range hosts {
			assert.Less(t, math.Abs(float64(h.SkewNS)), 5e9)
			assert.Less(t, math.Abs(h.DriftPPM), 50.0)
			spread = max(spread, math.Abs(float64(h.SkewNS)))
			elapsed := float64(last.EndUnixNano - truth.Run.StartUnixNano)
			assert.InDelta(t, float64(h.SkewNS-hosts[0].SkewNS)+(h.DriftPPM-hosts[0].DriftPPM)/1e6*elapsed, float64(h.OffsetNS), 2)
			assert.Equal(t, o.collectives(), count[2*i])
			// Both left at the same time but for the jitter; the logs have µs.
			assert.InDelta(t, h.OffsetNS, end[2*i]-end[0], float64(2*o.EndJitter)+4000, format)
		}
		assert.Greater(t, spread, 5e8)
	}
}

// The slow rank makes the others wait, from the step in the options on.
func TestNCCLSlowRank(t *testing.T) {
	o := ncclOptions(t, FormatInspector, func(o *Options) {
		o.Ranks, o.Nodes, o.Steps, o.PerStep, o.SlowRank, o.SlowFrom = 64, 8, 100, 2, 41, 40
	})
	truth := writeNCCL(t, o)
	var times [2]int
	var cost, all float64
	for _, c := range truth.Records {
		if c.Index%2 == 1 {
			assert.Less(t, c.LateNS, int64(60_000), "there was nothing to compute")
			continue
		}
		if all += float64(c.CostNS); c.LateRank == 41 {
			times[min(1, c.Step/40)]++
			cost += float64(c.CostNS)
		}
	}
	assert.LessOrEqual(t, times[0], 5)     // of 40 steps, as all others
	assert.GreaterOrEqual(t, times[1], 55) // of 60
	assert.Greater(t, cost/all, 0.8)
	assert.Equal(t, []any{41, 40, 0.05}, []any{truth.Run.SlowRank, truth.Run.SlowFrom, truth.Run.SlowBy})
}

// A rank's time for a step has the deviation of the options, over ranks.
func TestNCCLJitter(t *testing.T) {
	o := ncclOptions(t, FormatInspector, func(o *Options) { o.Ranks, o.Nodes, o.PerStep, o.Steps, o.EndJitter = 64, 1, 1, 200, 0 })
	sim := newSim(&o, 0)
	var c ncclCollective
	sum, squares, n, before := 0.0, 0.0, 0.0, int64(0)
	for sim.next(&c) {
		mean := 0.0
		for _, at := range c.arrive {
			mean += float64(at-before) / float64(len(c.arrive))
		}
		for rank, at := range c.arrive {
			d := (float64(at-before) - mean) / float64(o.Compute)
			sum += d
			squares += d * d
			n++
			assert.Equal(t, c.begun+c.transfer, c.leave[rank])
		}
		assert.InEpsilon(t, float64(o.Compute), mean, 0.03)
		before = c.leave[0]
	}
	assert.InDelta(t, 0.01, math.Sqrt(squares/n-sum/n*sum/n), 0.0003)
	assert.Equal(t, before, rehearseNCCL(&o))
}

// A slow collective takes four times as long.
func TestNCCLSlowCollective(t *testing.T) {
	o := ncclOptions(t, FormatVCCLJSON, func(o *Options) { o.SlowCollective, o.PerStep = 13, 4 })
	truth := writeNCCL(t, o)
	for _, c := range truth.Records {
		assert.Equal(t, c.Index == 13, c.Slow)
	}
	assert.InEpsilon(t, 4, float64(truth.Records[13].TransferNS)/float64(truth.Records[9].TransferNS), 0.1)
}

// The slow link shows in the records of the sending rank.
func TestNCCLSlowLink(t *testing.T) {
	for format, link := range map[string]string{FormatVCCLJSON: "2:3", FormatVCCLCSV: "2:3", FormatVCCLFlow: "2:6", FormatVCCLText: "2:6"} {
		o := ncclOptions(t, format, func(o *Options) { o.SlowLink, o.Steps, o.Jitter = link, 20, 0 })
		truth := writeNCCL(t, o)
		require.Len(t, truth.Run.Links, o.Ranks)
		for i, k := range truth.Run.Links {
			assert.Equal(t, i, k.From)
			assert.Equal(t, o.neighbour(i), k.To)
			assert.Equal(t, i == 2, k.Slow)
			if !k.Slow {
				assert.InEpsilon(t, 4, k.Bandwidth/truth.Run.Links[2].Bandwidth, 0.05, format)
			}
		}
	}
}

// flowRows reads the rows of 13 columns by their names.
func flowRows(t *testing.T, path string) (rows []map[string]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(gentest.Text(t, path))).ReadAll()
	require.NoError(t, err)
	for _, row := range all[1:] {
		m := map[string]string{}
		for i, v := range row {
			m[all[0][i]] = v
		}
		rows = append(rows, m)
	}
	return rows
}

func TestNCCLFlow(t *testing.T) {
	o := ncclOptions(t, FormatVCCLFlow, func(o *Options) { o.ClockSkew = 5 * time.Second })
	truth := writeNCCL(t, o)
	group, err := strconv.ParseUint(truth.Run.CommunicatorHash[2:], 16, 64)
	require.NoError(t, err)
	assert.Equal(t, strconv.FormatUint(group, 10), truth.Run.Communicator)
	require.Len(t, truth.Run.Files, 2*o.Ranks)
	functions := map[string]string{"AllReduce": "4", "AllGather": "2", "ReduceScatter": "3"}
	for i := range o.Ranks {
		file := truth.Run.Files[2*i]
		host := truth.Run.Hosts[i/4]
		assert.Equal(t, fmt.Sprintf("%s-mlx5_%d-Port%d-A.log", host.Name, i%4, i%4), filepath.Base(file.Path))
		assert.Empty(t, flowRows(t, truth.Run.Files[2*i+1].Path))
		rows := flowRows(t, file.Path)
		require.Len(t, rows, 4*len(truth.Records))
		sum := 0.0
		for k, row := range rows {
			c := truth.Records[k/4]
			assert.Equal(t, []string{
				truth.Run.Communicator, strconv.Itoa(i), strconv.Itoa((i + 4) % 8), strconv.Itoa(i % 4), functions[c.Operation], strconv.Itoa(c.Index),
			},
				[]string{row["Group"], row["FromRank"], row["ToRank"], row["DevIndex"], row["Func"], row["FuncTimes"]})
			assert.EqualValues(t, c.Index, c.Sequence)
			assert.Zero(t, c.MessageSize)
			at := integer(t, row["Timestamp"])
			assert.InDelta(t, c.BegunUnixNano+c.TransferNS*int64(k%4+1)/4+host.SkewNS, at, 1)
			assert.Equal(t, time.Unix(0, at).UTC().Format("20060102150405"), row["Time"])
			sum += gentest.Number(t, row["Bandwidth"])
		}
		assert.InEpsilon(t, sum/float64(len(rows))*1e9/8, truth.Run.Links[i].Bandwidth, 1e-9)
	}
	assert.EqualValues(t, 4*o.Ranks*len(truth.Records), truth.Run.Operations)
}

// A card has two files: each is written anew when the other is full.
func TestNCCLFlip(t *testing.T) {
	o := ncclOptions(t, FormatVCCLFlow, func(o *Options) { o.FlipAt, o.Steps = 20_000, 40 })
	truth := writeNCCL(t, o) // compares the remaining lines with the counts
	overwritten := int64(0)
	for _, f := range truth.Run.Files {
		st, err := os.Stat(f.Path)
		require.NoError(t, err)
		assert.Less(t, st.Size(), o.FlipAt+200)
		overwritten += f.Overwritten
	}
	assert.Greater(t, overwritten, truth.Run.Lines/2)
	a, b := flowRows(t, truth.Run.Files[0].Path), flowRows(t, truth.Run.Files[1].Path)
	if a[0]["Timestamp"] > b[0]["Timestamp"] {
		a, b = b, a
	}
	all := slices.Concat(a, b)
	assert.True(t, slices.IsSortedFunc(all, func(x, y map[string]string) int { return strings.Compare(x["Timestamp"], y["Timestamp"]) }))
	last := truth.Records[len(truth.Records)-1]
	assert.Equal(t, strconv.FormatInt(last.BegunUnixNano+last.TransferNS, 10), all[len(all)-1]["Timestamp"])
}

// The words of a second hold its mean; the words of an abnormal send its bandwidth and time. The zero of times follows only from the file's time.
func TestNCCLPacked(t *testing.T) {
	o := ncclOptions(t, FormatVCCLPacked, func(o *Options) { o.SlowLink, o.Steps, o.SlowCollective = "1:5", 50, 20 })
	truth := writeNCCL(t, o)
	for i := range o.Ranks {
		path := truth.Run.Files[2*i].Path
		lines := strings.Split(strings.TrimSuffix(gentest.Text(t, path), "\n"), "\n")
		st, err := os.Stat(path)
		require.NoError(t, err)
		var status, before, base uint64
		for k, line := range lines[1:] {
			v, err := strconv.ParseUint(line, 10, 64)
			require.NoError(t, err)
			status += v >> 63
			gbits := float64(v >> 54 & 511)
			want := 186.0
			if v>>63 == 1 {
				if want /= 4; i == 1 && status > 4*20 && status <= 4*21 {
					want /= 4 // both are slow
				}
			}
			assert.InDelta(t, want, gbits, 1+0.06*want)
			at := v & (1<<54 - 1)
			assert.GreaterOrEqual(t, at, before)
			before = at
			if k == len(lines)-2 {
				base = uint64(st.ModTime().UnixNano()) - at
			}
		}
		if i == 1 {
			assert.EqualValues(t, 4*len(truth.Records), status)
			continue
		}
		assert.EqualValues(t, 4, status)
		assert.InDelta(t, float64(truth.Run.StartUnixNano), float64(base), 2e9, "an offset of 1 to 2 s")
	}
}

func TestNCCLMean(t *testing.T) {
	o := ncclOptions(t, FormatVCCLMean, func(o *Options) {
		o.Steps, o.PerStep, o.SlowCollective = 40, 1, 35
		o.Compute = 500 * time.Millisecond
	})
	truth := writeNCCL(t, o)
	rows := flowRows(t, truth.Run.Files[0].Path)
	slow := truth.Records[35].EndUnixNano / 1e9
	abnormal := 0
	for _, row := range rows {
		at, err := time.ParseInLocation("20060102150405", row["Time"], time.UTC)
		require.NoError(t, err)
		if row["Status"] == "1" {
			abnormal++
			assert.Equal(t, slow, at.Unix())
		}
	}
	assert.LessOrEqual(t, abnormal, 1) // the mean of a second may hide it
	assert.InDelta(t, 20, len(rows), 2)
	assert.Zero(t, truth.Run.Operations)
}

// The rank that never comes has no entry; the other ranks have begun the collective, the rest of the step is scheduled, and nothing follows.
func TestFlightRecorderOfAHang(t *testing.T) {
	for _, untimed := range []bool{false, true} {
		o := ncclOptions(t, FormatFlightRecorder, func(o *Options) { o.MissingRank, o.MissingFrom, o.PerStep, o.NoTiming = 3, 9, 4, untimed })
		truth := writeNCCL(t, o)
		require.Len(t, truth.Records, 12)
		records := readNCCL(t, &o, &truth.Run)
		assert.Len(t, records, 7*12+9)
		for _, r := range records {
			want := "completed"
			switch {
			case r.sequence == 10 && !untimed:
				want = "started"
			case r.sequence >= 10:
				want = "scheduled"
			}
			assert.Equal(t, want, r.state, "%d", r.sequence)
			assert.True(t, r.rank != 3 || r.sequence < 10)
			assert.Equal(t, want == "completed", r.text["retired"])
			assert.Equal(t, want == "completed" && !untimed, r.ns > 0)
		}
		assert.Equal(t, []string{"", "started", "scheduled", "scheduled"},
			[]string{truth.Records[8].State, truth.Records[9].State, truth.Records[10].State, truth.Records[11].State})
		assert.Equal(t, []int{3}, truth.Records[9].Missing)
		assert.Zero(t, truth.Records[9].EndUnixNano)
		assert.Equal(t, truth.Records[8].EndUnixNano, truth.Run.EndUnixNano)
	}
}

// The Inspector logs its own losses.
func TestInspectorDropped(t *testing.T) {
	o := ncclOptions(t, FormatInspector+"_v4.3", func(o *Options) { o.GapRank, o.GapAt, o.DumpInterval, o.Steps = 5, 31, 100*time.Millisecond, 20 })
	truth := writeNCCL(t, o)
	checkNCCL(t, &o, truth)
	for rank, f := range truth.Run.Files {
		total, since, markers := int64(0), int64(0), 0
		for _, m := range decodeAll(t, gentest.Text(t, f.Path)) {
			if s, ok := m["dump_stats"].(map[string]any); ok {
				markers++
				total = integer(t, s["coll_dropped_total"])
				since += integer(t, s["coll_dropped_since_last_dump"])
			}
		}
		assert.Greater(t, markers, 10)
		assert.EqualValues(t, f.Sides, markers)
		want := int64(0)
		if rank == 5 {
			want = 1
		}
		assert.Equal(t, []int64{want, want}, []int64{total, since})
	}
}

// Dumps come at their intervals, after their collectives.
func TestInspectorDumps(t *testing.T) {
	o := ncclOptions(t, FormatInspector, func(o *Options) {
		o.Steps, o.DumpInterval, o.RanksPerFile, o.Verbose = 30, 250*time.Millisecond, 4, true
	})
	truth := writeNCCL(t, o)
	require.Len(t, truth.Run.Files, 2)
	for _, f := range truth.Run.Files {
		assert.Regexp(t, fmt.Sprintf(`/gpu-node-\d-pid%d\.log$`, f.PID), f.Path)
		var dumps []int64
		before := int64(0)
		for _, m := range decodeAll(t, gentest.Text(t, f.Path)) {
			at := integer(t, m["metadata"].(map[string]any)["dump_timestamp_us"])
			assert.Greater(t, at, before)
			if at > before+1000 {
				dumps = append(dumps, at)
			}
			before = at
			e := m["coll_perf"].(map[string]any)["event_trace_ts"].(map[string]any)["kernel_events"].([]any)[0].(map[string]any)
			stop := integer(t, e["kernel_stop_ts"])
			assert.Less(t, stop, at)
			assert.Less(t, at-stop, int64(351_000), "it had to wait for one dump")
		}
		require.InDelta(t, 10, len(dumps), 2)
		for i := 1; i < len(dumps)-1; i++ {
			assert.EqualValues(t, 250_000, dumps[i]-dumps[i-1])
		}
	}
}

func TestNCCLSameSeedSameBytes(t *testing.T) {
	for _, format := range ncclFormats() {
		all := func(seed uint64) string {
			o := ncclOptions(t, format, func(o *Options) { o.Seed, o.ClockSkew, o.ClockDrift, o.Verbose = seed, time.Second, 50, true })
			truth := writeNCCL(t, o)
			var text strings.Builder
			for _, f := range truth.Run.Files {
				text.WriteString(filepath.Base(f.Path) + "\n" + gentest.Text(t, f.Path))
			}
			return text.String() + strings.ReplaceAll(gentest.Text(t, o.truthPath()), o.Out, "")
		}
		first := all(1)
		assert.Equal(t, first, all(1), format)
		assert.NotEqual(t, first, all(2), format)
	}
}

// All formats of a seed have the same collectives.
func TestNCCLFormatsTellTheSame(t *testing.T) {
	var first []Collective
	for _, format := range ncclFormats() {
		truth := writeNCCL(t, ncclOptions(t, format, nil))
		for i := range truth.Records {
			c := &truth.Records[i]
			*c = Collective{
				Operation: c.Operation, DataSize: c.DataSize, StartUnixNano: c.StartUnixNano, EndUnixNano: c.EndUnixNano, LateRank: c.LateRank, LateNS: c.LateNS,
				CostNS: c.CostNS,
			}
		}
		if first == nil {
			first = truth.Records
		}
		assert.Equal(t, first, truth.Records, format)
	}
}

func TestNCCLEndsNowWithoutStart(t *testing.T) {
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	o := ncclOptions(t, FormatVCCLJSON, func(o *Options) { o.Start = time.Time{} })
	run, err := generate(t.Context(), o, logfile.Clock{Now: func() time.Time { return now }})
	require.NoError(t, err)
	assert.Equal(t, now.UnixNano(), run.EndUnixNano)
}

// A live run writes nothing before its time; when stopped, logs and truth are closed.
func TestNCCLLive(t *testing.T) {
	for _, format := range []string{FormatVCCLJSON, FormatVCCLArray, FormatInspector, FormatVCCLFlow, FormatNCCLProfiler} {
		ctx, cancel := context.WithCancel(t.Context())
		c := &gentest.Clock{At: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC), Stop: cancel}
		begin := c.At
		c.Until = begin.Add(3 * time.Second)
		o := ncclOptions(t, format, func(o *Options) {
			o.Start, o.Live, o.Steps, o.DumpInterval = time.Time{}, true, 0, 100*time.Millisecond
		})
		run, err := generate(ctx, o, c.Clock())
		cancel()
		require.NoError(t, err, format)
		truth, err := gentest.ReadTruth[Run, Collective](o.truthPath())
		require.NoError(t, err, format)
		assert.Equal(t, run, truth.Run)
		assert.Equal(t, begin.UnixNano(), run.StartUnixNano)
		assert.InDelta(t, 3e9, run.EndUnixNano-run.StartUnixNano, 3e8, format)
		assert.LessOrEqual(t, run.EndUnixNano, c.At.UnixNano()+int64(200*time.Millisecond))
		if !o.perNIC() {
			checkNCCL(t, &o, truth)
		}
	}
}

func TestNCCLOptionErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, tt := range []struct{ args, says string }{
		{"--out -", "give a directory"},
		{"--out " + file, "give a directory"},
		{"--format nccl_inspector_v5", `--format "nccl_inspector_v5"`},
		{"--ranks 1", "--ranks 1"},
		{"--ranks 8 --nodes 3", "a divisor of the 8 ranks"},
		{"--nodes 0", "--nodes 0"},
		{"--format vccl_flow --nodes 1", "--nodes of at least 2"},
		{"--ranks-per-file 3", "a divisor of the 8 ranks of a node"},
		{"--ranks-per-file 0", "--ranks-per-file 0"},
		{"--ranks-per-file 4 --format vccl_json", "only NCCL Inspector"},
		{"--steps 0", "needs --live"},
		{"--collectives-per-step 0", "--collectives-per-step 0"},
		{"--operations AllToAll", `--operations "AllToAll"`},
		{"--operations ", "--operations is empty"},
		{"--sizes 8", "--sizes 8"},
		{"--live --start 2026-02-11T16:40:00Z", "drop one"},
		{"--live --format flight_recorder", "dumped when all is over"},
		{"--start today", "RFC 3339"},
		{"--timezone Mars", "IANA"},
		{"--compute 0s", "--compute 0s"},
		{"--jitter NaN", "--jitter NaN"},
		{"--busbw 0", "--busbw 0"},
		{"--end-jitter 1s", "--end-jitter 1s"},
		{"--clock-skew 2h", "--clock-skew 2h"},
		{"--clock-drift -1", "--clock-drift -1"},
		{"--dump-interval 1us", "--dump-interval 1µs"},
		{"--channels 0", "--channels 0"},
		{`--comm-name "x`, "--comm-name"},
		{"--flip-at 10", "--flip-at 10"},
		{"--slow-rank 16", "--slow-rank 16"},
		{"--missing-rank -2", "--missing-rank -2"},
		{"--gap-rank 99", "--gap-rank 99"},
		{"--slow-by -1", "--slow-by -1"},
		{"--slow-from -1", "count from 0"},
		{"--slow-collective -2", "--slow-collective -2"},
		{"--format vccl_text --missing-rank 1", "no record per rank"},
		{"--slow-link 0:1 --slow-link-by 0", "--slow-link-by 0"},
		{"--slow-link 0:1", "does not say who sends to whom"},
		{"--format vccl_json --slow-link x", "use two ranks, such as 0:1"},
		{"--format vccl_json --slow-link 0:2", "rank 0 sends to 1"},
		{"--format vccl_flow --slow-link 0:1", "rank 0 sends to 8"},
		{"--retries 0.1", "has no such field"},
		{"--errors 2 --format vccl_csv", "--errors 2"},
	} {
		cmd := newCommand()
		cmd.SetArgs(strings.Split(tt.args, " "))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		require.ErrorIs(t, err, logfile.ErrOptions, "%v", tt.args)
		assert.ErrorContains(t, err, tt.says)
	}
}

func TestNCCLCommand(t *testing.T) {
	var errs bytes.Buffer
	cmd := newCommand()
	cmd.SetErr(&errs)
	dir := filepath.Join(t.TempDir(), "logs.of.v4.4") // a name that looks like a file's
	cmd.SetArgs([]string{"--out", dir, "--steps", "3", "--format", "nccl_inspector_v4.4", "--ranks-per-file", "8"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	assert.Regexp(t, fmt.Sprintf(`^wrote \d+ lines to 2 file\(s\) at %s: 12 collectives of 16 ranks in 3 steps; truth: %s/truth.json\n$`, dir, dir), errs.String())
	// Foreign logs are not overwritten, our own logs are.
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	require.NoError(t, os.Remove(filepath.Join(dir, "truth.json")))
	cmd.SilenceErrors = true
	require.ErrorContains(t, cmd.ExecuteContext(t.Context()), "may be a real log")

	o := ncclOptions(t, FormatVCCLJSON, func(o *Options) { o.Truth = writer.TruthNone })
	_, err := Generate(t.Context(), o)
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(o.Out, "truth.json"))
}

func BenchmarkGenerateNCCL(b *testing.B) {
	for _, format := range []string{FormatInspector, FormatInspector + "_v4.4", FormatVCCLJSON, FormatVCCLFlow, FormatNCCLProfiler, FormatFlightRecorder} {
		b.Run(format, func(b *testing.B) {
			o := ncclOptions(b, format, func(o *Options) { o.Ranks, o.Nodes, o.Steps, o.PerStep = 64, 8, 50, 4 })
			b.ReportAllocs()
			var operations int64
			for b.Loop() {
				run, err := Generate(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				operations += run.Operations
			}
			b.ReportMetric(float64(operations)/b.Elapsed().Seconds(), "operations/s")
		})
	}
}
