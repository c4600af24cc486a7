package ncclreceiver

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// texts are all spans of a result.
func texts(tb testing.TB, r *filereceivertest.Result) map[spanKey]string {
	tb.Helper()
	out := make(map[spanKey]string)
	for _, td := range r.Traces.AllTraces() {
		for id, text := range spanTexts(td) {
			require.Empty(tb, out[id], "each span has an id of its own")
			out[id] = text
		}
	}
	return out
}

// same compares spans, and names those that differ.
func same(tb testing.TB, want, got map[spanKey]string) {
	tb.Helper()
	assert.Len(tb, got, len(want))
	for id, text := range want {
		if !assert.Equal(tb, text, got[id]) {
			return
		}
	}
}

// The same bytes give the same spans in any order of files, and in any folder.
func TestOrderOfFiles(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join("testdata", name, "*"))
			require.NoError(t, err)
			all, err := readFixture(name)
			require.NoError(t, err)
			want := texts(t, read(t, config(fixture(t, name))))
			for first := range files {
				dir := t.TempDir()
				for i := range files {
					n := (first + i) % len(files)
					folder := filepath.Join(dir, strconv.Itoa(i))
					require.NoError(t, os.Mkdir(folder, 0o700))
					filereceivertest.Put(t, folder, filepath.Base(files[n]), string(all[n]))
				}
				r := read(t, config(dir+"/*/*"))
				sound(t, r)
				same(t, want, texts(t, r))
			}
		})
	}
}

// Each rank's records are in order; the order between ranks does not matter. All collectives are complete.
func TestAnyOrder(t *testing.T) {
	var records []string
	for sn := range 40 {
		for rank := range 4 {
			records = append(records, record{host: "n", rank: rank, of: 4, sn: sn, size: 4096, start: int64(sn)*10_000 + 1, us: int64(100 + rank)}.String())
		}
	}
	cfg := func(lines []string) *Config {
		c := config(filereceivertest.Write(t, "all.log", lines...))
		c.AnomalyDetection = false
		return c
	}
	want := texts(t, read(t, cfg(records)))
	require.Len(t, want, 40*9)
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		var lines []string
		for next := [4]int{}; len(lines) < len(records); {
			if rank := rnd.IntN(4); next[rank] < 40 {
				lines = append(lines, records[4*next[rank]+rank])
				next[rank]++
			}
		}
		r := read(t, cfg(lines))
		sound(t, r)
		same(t, want, texts(t, r))
	}
}

// Whichever rank lacks a record, and in any order of files: one gap, and its span names the rank.
func TestGapOfAnyRank(t *testing.T) {
	for missing := range 3 {
		t.Run(strconv.Itoa(missing), func(t *testing.T) {
			dir := t.TempDir()
			for rank := range 3 {
				var lines []string
				for sn := range 6 {
					if rank != missing || sn != 2 {
						lines = append(lines, record{host: "n", rank: rank, of: 3, sn: sn, size: 4096, start: int64(sn)*10_000 + 1, us: 100}.String())
					}
				}
				filereceivertest.Put(t, dir, fmt.Sprintf("%d.log", rank), strings.Join(lines, "\n")+"\n")
			}
			r := read(t, config(dir+"/*"))
			sound(t, r)
			all := roots(r)
			require.Len(t, all, 6)
			for name, root := range all {
				if name == "AllReduce 2" {
					assert.Equal(t, fmt.Sprintf("[%d]", missing), attr(root, spans.AttrNCCLRanksMissing))
					assert.Equal(t, spans.NCCLIncompleteGap, attr(root, spans.AttrIncompleteReason))
				} else {
					assert.Empty(t, attr(root, spans.AttrIncompleteReason), name)
				}
			}
		})
	}
}

// A restarted job counts from the beginning: its collectives are complete. They share the traces of the first job if the log gives both communicators the same
// name.
func TestNumbersBeginAnew(t *testing.T) {
	var lines []string
	for job := range 2 {
		for sn := range 5 {
			for rank := range 3 {
				lines = append(lines, record{host: "n", rank: rank, of: 3, sn: sn, size: 4096, start: int64(job)*1_000_000 + int64(sn)*10_000 + 1, us: 100}.String())
			}
		}
	}
	r := read(t, config(filereceivertest.Write(t, "all.log", lines...)))
	n := 0
	for _, s := range r.All("AllReduce") {
		n++
		assert.Equal(t, "3", attr(s, spans.AttrNCCLRanks))
		assert.Empty(t, attr(s, spans.AttrIncompleteReason))
	}
	assert.Equal(t, 10, n)
}

// Wrong sizes of communicators: no record is lost, and reading ends.
func TestSizeThatLies(t *testing.T) {
	for _, of := range []int{0, 1, 2, 3, 5, 1000, 1<<31 - 1} {
		t.Run(strconv.Itoa(of), func(t *testing.T) {
			var lines []string
			for sn := range 4 {
				for rank := range 4 {
					lines = append(lines, record{host: "n", rank: rank, of: of, sn: sn, size: 4096, start: int64(sn)*10_000 + 1, us: 100}.String())
				}
			}
			r := read(t, config(filereceivertest.Write(t, "all.log", lines...)))
			assert.Len(t, rankSpans(r), 16)
			assert.Len(t, roots(r), 4)
			assert.LessOrEqual(t, len(r.All("AllReduce")), 4+3, "what is found out with the first holds for all that follow")
			assert.EqualValues(t, 16, r.Counts.Sent)
			seen := make(map[spanKey]bool)
			for _, s := range rankSpans(r) {
				seen[spanKey{s.TraceID(), s.SpanID()}] = true
			}
			assert.Len(t, seen, 16)
		})
	}
}

// The spans of sends, receives and proxies all have different ids, however alike.
func TestAlike(t *testing.T) {
	line := func(rank int, object string) string {
		return fmt.Sprintf(`{"header":{"id":"0xabc","comm_name":"DP","rank":%d,"n_ranks":2,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0",`+
			`"dump_timestamp_us":%d,`+
			`"hostname":"n","pid":%d},%s}`, rank, epochUS, 100+rank, object)
	}
	var lines []string
	for rank := range 2 {
		for _, name := range []string{"Send", "Recv"} {
			for sn := range 2 {
				lines = append(lines, line(rank, fmt.Sprintf(`"p2p_perf":{"p2p":"%s","p2p_sn":%d,"p2p_peer":%d,"p2p_msg_size_bytes":4096,"p2p_exec_time_us":12}`, name,
					sn, 1-rank)))
			}
		}
		for channel := range 2 {
			for _, direction := range []string{"send", "recv"} {
				for _, stop := range []int{0, 5} {
					lines = append(lines, line(rank, fmt.Sprintf(`"proxy_trace":{"record_type":"proxy_op","parent_type":"coll","parent_sn":7,"proxy_op_sn":12,"rank":%d,`+
						`"channel_id":%d,"peer":%d,`+
						`"direction":"%s","is_final":true,"event_trace_ts":{"proxy_op_start_ts":%d,"proxy_op_stop_ts":%d}}`, rank, channel, 1-rank, direction, epochUS,
						epochUS+stop)))
				}
				for step := range 2 {
					lines = append(lines, line(rank, fmt.Sprintf(`"proxy_trace":{"record_type":"proxy_step","parent_type":"coll","parent_sn":7,"proxy_op_sn":12,"rank":%d,`+
						`"channel_id":%d,"peer":%d,`+
						`"direction":"%s","step":%d,"event_trace_ts":{"proxy_step_start_ts":%d,"proxy_step_stop_ts":%d}}`, rank, channel, 1-rank, direction, step, epochUS,
						epochUS+9)))
				}
			}
		}
	}
	r := read(t, config(filereceivertest.Write(t, "all.log", lines...)))
	assert.EqualValues(t, len(lines), r.Counts.Records)
	spansOf := make(map[string]int)
	for _, s := range r.All("") {
		spansOf[s.Name()]++
	}
	assert.Equal(t, 2*2, spansOf["Send"])
	assert.Equal(t, 2*2, spansOf["Recv"])
	texts(t, r)
}

// VCCL has a record for each link of a rank, which may leave in parts: each part has an id of its own, in the trace of its collective.
func TestLinksOfARank(t *testing.T) {
	var b strings.Builder
	b.WriteString("Time,Group,FromRank,ToRank,DevIndex,Func,FuncTimes,SrcIP,DstIP,Bandwidth,SendWrCounter,RemainWrDataSize,Timestamp\n")
	at := int64(1767866400000000000)
	for times := range 8 {
		for part := range 3 { // another group in between makes the open operations leave
			for to := 8; to < 11; to++ {
				at += 1000
				fmt.Fprintf(&b, "20260108180000,1,0,%d,0,4,%d,10.0.0.1,10.0.0.2,%d,3,0,%d\n", to, times, 100+to, at)
			}
			at += 1000
			fmt.Fprintf(&b, "20260108180000,2,0,8,0,4,%d,10.0.0.1,10.0.0.2,50,3,0,%d\n", 3*times+part, at)
		}
	}
	dir := t.TempDir()
	filereceivertest.Put(t, dir, "node01-mlx5_0-Port0-A.log", b.String())
	r := read(t, config(dir+"/*"))
	sound(t, r)
	texts(t, r)
	all := roots(r)
	byTrace := make(map[string]int)
	for _, s := range rankSpans(r) {
		byTrace[s.TraceID().String()+s.ParentSpanID().String()]++
	}
	for times := range 8 {
		assert.Contains(t, all, fmt.Sprintf("AllReduce %d", times))
	}
	for _, root := range all {
		assert.Empty(t, attr(root, spans.AttrNCCLMismatch))
		assert.Empty(t, attr(root, spans.AttrNCCLRanksMissing))
		assert.Positive(t, byTrace[root.TraceID().String()+root.SpanID().String()])
	}
	assert.Equal(t, 9, slices.Max(slices.Collect(maps.Values(byTrace))), "three links in three parts")
}
