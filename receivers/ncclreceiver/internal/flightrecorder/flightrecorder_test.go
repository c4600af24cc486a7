package flightrecorder

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	fr "github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/spans"
)

var _ parse.Parser = (*Parser)(nil)

func read(t *testing.T, file, text string) (ops []op.Op, v parse.Verdict, reason string) {
	t.Helper()
	var out parse.Out
	p := New(file)
	line := []byte(text)
	v, reason = p.Line(line, false, 0, &out)
	for i := range line { // the parser must keep copies: the line is gone
		line[i] = '#'
	}
	assert.False(t, out.Open)
	assert.Equal(t, v == parse.Record, reason == "" && len(out.Ops) > 0, text)
	assert.Nil(t, p.Save())
	for i := range out.Ops {
		assert.True(t, math.IsNaN(out.Ops[i].ReportedAlg))
		out.Ops[i].ReportedAlg, out.Ops[i].ReportedBus = 0, 0 // NaN is not equal to itself
	}
	return out.Ops, v, reason
}

// operation makes an operation with the fields of set, and all others unknown.
func operation(set func(*op.Op)) op.Op {
	var o op.Op
	o.Init()
	o.ReportedAlg, o.ReportedBus = 0, 0
	set(&o)
	return o
}

// The sample: the first entry is real, the second invented.
func TestReal(t *testing.T) {
	files, err := filepath.Glob("../../../../../shared/logs/pytorch_flight_recorder/*.json")
	require.NoError(t, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.True(t, Sniff(b))
		ops, v, _ := read(t, file, string(b))
		assert.Equal(t, parse.Record, v)
		assert.Equal(t, []op.Op{
			operation(func(o *op.Op) {
				o.Comm, o.CommName, o.CommSize, o.Rank, o.Global = []byte("0:default_pg"), []byte("default_pg"), 2, 0, true
				o.Kind, o.Seq, o.HasSeq, o.SeqOfAll, o.Size, o.Total, o.Datatype = op.AllReduce, 1, true, true, 48, 48, []byte("Float")
				o.Start, o.End, o.Time = 1724779239936775119, 1724779239975811724, spans.TimeLogged
			}),
			operation(func(o *op.Op) {
				o.Comm, o.CommName, o.CommSize, o.Rank, o.Global = []byte("0:default_pg"), []byte("default_pg"), 2, 0, true
				o.Kind, o.Seq, o.HasSeq, o.SeqOfAll, o.Size, o.Total, o.Datatype = op.AllReduce, 2, true, true, 32<<20, 32<<20, []byte("BFloat16")
				o.Start, o.Duration, o.Waits, o.State, o.Time = 1724779239986811724, 1_200_000, true, op.Started, spans.TimeLogged
			}),
		}, ops)
		var one strings.Builder // as sent by the worker's handler
		require.NoError(t, json.NewEncoder(&one).Encode(json.RawMessage(b)))
		again, _, _ := read(t, file, strings.ReplaceAll(one.String(), "\n", ""))
		assert.Equal(t, ops, again)
	}
}

const (
	second = 1_000_000_000
	unix   = 1_724_779_239 * second
)

// one is an entry of the group "1" of the global ranks 2, 3, 6, 7. more has members to add or to replace.
func one(name string, seq int, more map[string]any) map[string]any {
	e := map[string]any{
		"record_id": 0, "pg_id": 1, "process_group": []string{"1", "dp"}, "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq, "profiling_name": name,
		"time_created_ns": unix, "time_discovered_started_ns": nil, "time_discovered_completed_ns": unix + second, "state": "completed", "retired": true,
		"timeout_ms": 1000, "is_p2p": false, "input_sizes": [][]int64{{2, 3}}, "input_dtypes": []string{"Float"}, "output_sizes": [][]int64{{2, 3}},
		"output_dtypes": []string{"Float"},
	}
	maps.Copy(e, more)
	return e
}

func dumpOf(t *testing.T, entries ...map[string]any) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"version": "2.10", "pg_status": map[string]any{}, "pg_config": map[string]any{
			"1": map[string]any{"name": "1", "desc": "dp", "ranks": "[2, 3, 6, 7]"},
		}, "entries": entries,
	})
	require.NoError(t, err)
	return string(b)
}

// S of algbw = S/t of a group of 4 ranks. By hand.
func TestSizes(t *testing.T) {
	type tensors map[string]any
	in := func(sizes [][]int64, dtypes ...string) tensors {
		return tensors{"input_sizes": sizes, "input_dtypes": dtypes, "output_sizes": [][]int64{}, "output_dtypes": []string{}}
	}
	both := func(in, out [][]int64) tensors {
		fill := func(n int) (d []string) {
			for range n {
				d = append(d, "Half")
			}
			return d
		}
		return tensors{"input_sizes": in, "input_dtypes": fill(len(in)), "output_sizes": out, "output_dtypes": fill(len(out))}
	}
	for _, c := range []struct {
		name        string
		tensors     tensors
		kind        op.Kind
		size, total int64
		datatype    string
	}{
		{"nccl:all_reduce", both([][]int64{{10}}, [][]int64{{10}}), op.AllReduce, 20, 20, "Half"},
		{"nccl:all_reduce_barrier", both([][]int64{{1}}, [][]int64{{1}}), op.AllReduce, 2, 2, "Half"},
		{"nccl:allreduce_coalesced", in([][]int64{{10}, {2, 2}, {}}, "Float", "Double", "Byte"), op.AllReduce, 40 + 32 + 1, 73, ""},
		{"nccl:_all_gather_base", both([][]int64{{10}}, [][]int64{{40}}), op.AllGather, 20, 80, "Half"},
		{"nccl:all_gather", both([][]int64{{10}}, [][]int64{{10}, {10}, {10}, {7}}), op.AllGather, 20, 74, "Half"}, // uneven
		{"nccl:all_gather_into_tensor_coalesced", in([][]int64{{10}}, "Long"), op.AllGather, 80, 320, "Long"},
		{"nccl:_reduce_scatter_base", both([][]int64{{40}}, [][]int64{{10}}), op.ReduceScatter, 80, 80, "Half"},
		{"nccl:reduce_scatter_tensor_coalesced", both(nil, [][]int64{{10}}), op.ReduceScatter, 20, 80, "Half"},
		{"xccl:broadcast", both([][]int64{{10}}, nil), op.Broadcast, 20, 20, "Half"},
		{"nccl:_broadcast_oop", both([][]int64{{10}}, nil), op.Broadcast, 20, 20, "Half"},
		{"nccl:_reduce_oop", both([][]int64{{10}}, nil), op.Reduce, 20, 20, "Half"},
		{"nccl:all_to_all", both([][]int64{{4, 3}}, [][]int64{{4, 3}}), op.AllToAll, 24, 24, "Half"},
		{"gloo:gather", both([][]int64{{10}}, nil), op.Gather, 20, 80, "Half"},
		{"gloo:gather", both([][]int64{{10}}, [][]int64{{10}, {10}, {10}, {10}}), op.Gather, 20, 80, "Half"},   // the root
		{"nccl:scatter", both([][]int64{{10}, {10}, {10}, {10}}, [][]int64{{10}}), op.Scatter, 20, 80, "Half"}, // the root
		{"nccl:scatter", both(nil, [][]int64{{10}}), op.Scatter, 20, 80, "Half"},                               // another
		{"nccl:all_reduce", both([][]int64{{0, 1 << 62}}, nil), op.AllReduce, 0, 0, "Half"},                    // empty
		{"nccl:all_reduce", both([][]int64{{1 << 62, 2}}, nil), op.AllReduce, -1, -1, "Half"},                  // beyond 63 bits
		{"nccl:all_reduce", both([][]int64{{1 << 61}, {1 << 61}}, nil), op.AllReduce, -1, -1, "Half"},          // as above
		{"nccl:all_reduce", both([][]int64{{-1}}, nil), op.AllReduce, -1, -1, "Half"},                          // none
		{"nccl:all_reduce", in([][]int64{{4}}, "Float4_e2m1fn_x2"), op.AllReduce, -1, -1, "Float4_e2m1fn_x2"},  // of no known size
		{"nccl:all_reduce", in([][]int64{{4}, {4}}, "Float"), op.AllReduce, -1, -1, "Float"},                   // a dtype is missing
		{"nccl:all_reduce_sparse", in([][]int64{{4}}, "ComplexDouble"), op.AllReduce, 64, 64, "ComplexDouble"}, //
		{"whatever", both([][]int64{{10}}, nil), op.Other, 20, -1, "Half"},
		{"nccl:barrier_of_some_kind now", both(nil, nil), op.Other, -1, -1, ""},
	} {
		ops, _, _ := read(t, "x", dumpOf(t, one(c.name, 1, c.tensors)))
		require.Len(t, ops, 1)
		o := ops[0]
		assert.Equal(t, []any{c.kind, c.size, c.total, c.datatype}, []any{o.Kind, o.Size, o.Total, string(o.Datatype)}, "%s %v", c.name, c.tensors)
		assert.Equal(t, c.kind == op.Other, len(o.Name) > 0)
		assert.Equal(
			t, []any{int32(op.Unknown), false, int32(4), "1:dp", "dp", true}, []any{o.Rank, o.Global, o.CommSize, string(o.Comm), string(o.CommName), o.HasSeq},
		)
	}
	ops, _, _ := read(t, "x", dumpOf(t, one("nccl:barrier_of_some_kind now", 1, nil)))
	assert.Equal(t, "barrier_of_some_kind", string(ops[0].Name))
}

// Time, duration and hang of an operation.
func TestTimes(t *testing.T) {
	type times struct {
		start, end, duration int64
		waits                bool
		state                op.State
		source               spans.TimeSource
		timedOut             bool
	}
	for name, c := range map[string]struct {
		more map[string]any
		want times
	}{
		"completed":   {nil, times{unix, unix + second, -1, false, op.Completed, spans.TimeLogged, false}},
		"start known": {map[string]any{"time_discovered_started_ns": unix + 5}, times{unix + 5, unix + second, -1, false, op.Completed, spans.TimeLogged, false}},
		"with timing": {map[string]any{"time_discovered_started_ns": unix + 5, "duration_ms": 0.0125}, times{
			unix + 5, unix + 12505, 12500, true, op.Completed, spans.TimeLogged, false,
		}},
		"no time":      {map[string]any{"time_created_ns": 0}, times{0, unix + second, -1, false, op.Completed, spans.TimeSynthetic, false}},
		"bad duration": {map[string]any{"duration_ms": -1}, times{unix, unix + second, -1, false, op.Completed, spans.TimeLogged, false}},
		"no duration":  {map[string]any{"duration_ms": "x"}, times{unix, unix + second, -1, false, op.Completed, spans.TimeLogged, false}},
		"scheduled": {map[string]any{
			"state": "scheduled", "retired": false, "time_discovered_completed_ns": 0,
		}, times{unix, 0, -1, false, op.Scheduled, spans.TimeLogged, true}},
		"patient": {map[string]any{
			"state": "started", "retired": false, "time_discovered_completed_ns": 0, "timeout_ms": 3000,
		}, times{unix, 0, -1, false, op.Started, spans.TimeLogged, false}},
		"no timeout": {map[string]any{
			"state": "started", "retired": false, "time_discovered_completed_ns": 0, "timeout_ms": 0,
		}, times{unix, 0, -1, false, op.Started, spans.TimeLogged, false}},
		"gloo": {map[string]any{
			"profiling_name": "gloo:all_reduce", "state": "scheduled", "time_discovered_completed_ns": 0,
		}, times{unix, 0, -1, false, op.Completed, spans.TimeLogged, false}},
		"gloo, in flight": {map[string]any{
			"profiling_name": "gloo:all_reduce", "state": "scheduled", "retired": false, "time_discovered_completed_ns": 0,
		}, times{unix, 0, -1, false, op.Scheduled, spans.TimeLogged, true}},
		"given up": {map[string]any{
			"state": "started", "time_discovered_completed_ns": 0, "timeout_ms": 3000,
		}, times{unix, 0, -1, false, op.Started, spans.TimeLogged, true}},
		"wrong types": {map[string]any{
			"time_created_ns": []int{1}, "timeout_ms": map[string]any{}, "retired": "yes", "time_discovered_completed_ns": 1.5,
		}, times{0, 0, -1, false, op.Completed, spans.TimeSynthetic, false}},
	} {
		t.Run(name, func(t *testing.T) {
			// The second entry serves as the clock: two seconds later.
			ops, _, _ := read(t, "x", dumpOf(t, one("nccl:all_reduce", 1, c.more), one("nccl:all_reduce", 2, map[string]any{"time_created_ns": unix + 2*second})))
			require.Len(t, ops, 2)
			o := ops[0]
			assert.Equal(t, c.want, times{o.Start, o.End, o.Duration, o.Waits, o.State, o.Time, o.TimedOut})
		})
	}
}

// Peers are ranks of the group; all other ranks are global.
func TestPeers(t *testing.T) {
	for name, want := range map[string]struct {
		kind op.Kind
		peer int32
	}{
		"nccl:send 0->1": {op.Send, 3}, "nccl:recv 3<-2": {op.Recv, 6}, "nccl:send 0->9": {op.Send, 9}, "nccl:send": {op.Send, -1}, "nccl:recv 0<-": {op.Recv, -1},
		"nccl:recv 0<-x": {op.Recv, -1}, "nccl:send 1": {op.Send, -1}, "nccl:recvAnySource": {op.Other, -1},
	} {
		ops, _, _ := read(t, "nccl_trace_rank_2", dumpOf(t, one(name, 4, map[string]any{"is_p2p": true, "p2p_seq_id": 8})))
		require.Len(t, ops, 1)
		o := ops[0]
		assert.Equal(
			t, []any{want.kind, want.peer, uint64(8), false, false, int32(2), true}, []any{o.Kind, o.Peer, o.Seq, o.HasSeq, o.SeqOfAll, o.Rank, o.Global}, name,
		)
	}
}

func TestCoalesced(t *testing.T) {
	none := map[string]any{"input_sizes": [][]int64{}, "input_dtypes": []string{}, "output_sizes": [][]int64{}, "output_dtypes": []string{}}
	with := func(parts ...map[string]any) map[string]any {
		all := map[string]any{}
		for _, part := range parts {
			maps.Copy(all, part)
		}
		return all
	}
	// Parts have no events of their own: they stay scheduled for ever.
	part := map[string]any{"state": "scheduled", "retired": false, "time_discovered_completed_ns": 0}
	p2p := map[string]any{"is_p2p": true, "p2p_seq_id": 5}
	other := map[string]any{"input_dtypes": []string{"Half"}}
	for name, c := range map[string]struct {
		entries []map[string]any
		want    []string
	}{
		"one kind": {
			[]map[string]any{one("nccl:all_reduce", 1, part), one("nccl:all_reduce", 1, part), one("nccl:coalesced", 1, none), one("nccl:all_reduce", 2, nil)},
			[]string{"AllReduce #1 true 48/48 Float state=0 end=1000000000 late=false", "AllReduce #2 true 24/24 Float state=0 end=1000000000 late=false"},
		},
		"two kinds": {
			[]map[string]any{one("nccl:_all_gather_base", 1, part), one("nccl:_reduce_oop", 1, with(part, other)), one("nccl:coalesced", 1, with(none, part))},
			[]string{"coalesced #1 true 36/36  state=2 end=0 late=false"},
		},
		"not over": {
			[]map[string]any{one("nccl:all_reduce", 1, part), one("nccl:all_reduce", 1, part)},
			[]string{"AllReduce #1 false 24/24 Float state=2 end=0 late=false", "AllReduce #1 false 24/24 Float state=2 end=0 late=false"},
		},
		"parts that were not recorded, until 2.6": {
			[]map[string]any{one("nccl:coalesced", 1, none)}, []string{"coalesced #1 true -1/-1  state=0 end=1000000000 late=false"},
		},
		"sends": {
			[]map[string]any{
				one("nccl:send 0->1", 9, with(part, p2p)), one("nccl:recv 0<-1", 9, with(part, p2p)), one("nccl:coalesced", 9, with(none, p2p)),
				one("nccl:send 0->1", 9, with(p2p, map[string]any{"p2p_seq_id": 6})),
			},
			[]string{
				"Send #5 false 24/24 Float state=0 end=1000000000 late=false", "Recv #5 false 24/24 Float state=0 end=1000000000 late=false",
				"Send #6 false 24/24 Float state=0 end=1000000000 late=false",
			},
		},
		"sends until 2.4": {
			[]map[string]any{one("nccl:send 0->1", 9, with(part, p2p)), one("nccl:recv 0<-1", 9, with(part, p2p)), one("nccl:coalesced", 9, none)},
			[]string{"Send #5 false 24/24 Float state=0 end=1000000000 late=false", "Recv #5 false 24/24 Float state=0 end=1000000000 late=false"},
		},
		"another group": {
			[]map[string]any{one("nccl:all_reduce", 1, nil), one("nccl:all_reduce", 1, map[string]any{"process_group": []string{"2", "tp"}})},
			[]string{"AllReduce #1 true 24/24 Float state=0 end=1000000000 late=false", "AllReduce #1 true 24/24 Float state=0 end=1000000000 late=false"},
		},
		"no sequence": {
			[]map[string]any{one("nccl:all_reduce", 1, map[string]any{"collective_seq_id": nil})},
			[]string{"AllReduce #0 false 24/24 Float state=0 end=1000000000 late=false"},
		},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, summary(t, dumpOf(t, c.entries...))) })
	}
}

func summary(t *testing.T, text string) (all []string) {
	t.Helper()
	ops, _, _ := read(t, "x", text)
	for i := range ops {
		o := &ops[i]
		all = append(
			all,
			fmt.Sprintf(
				"%s%s #%d %t %d/%d %s state=%d end=%d late=%t", o.Kind, o.Name, o.Seq, o.HasSeq, o.Size, o.Total, o.Datatype, o.State, max(0, o.End-unix), o.TimedOut,
			),
		)
	}
	return all
}

func TestDocuments(t *testing.T) {
	entry, err := json.Marshal(one("nccl:all_reduce", 1, nil))
	require.NoError(t, err)
	for text, want := range map[string]string{
		"":    reasonBlank,
		" \n": reasonBlank,
		`{"version": "2.5", "pg_config": {}, "pg_status": {}}`:                  reasonNoEntries,
		`{"version": "2.5", "pg_config": {}, "pg_status": {}, "entries": null}`: reasonNoEntries,
		`{"version": "2.5"}`:                    reasonNotDump,
		`{"entries": [1, "x", {"name": "y"}]}`:  reasonNotDump,
		`{"entries": {}}`:                       reasonNotDump,
		`[]`:                                    reasonNotDump,
		`{"entries": [` + string(entry) + `]}`:  "",
		`{"entries": [` + string(entry):         reasonNotJSON,
		`{"entries": [` + string(entry) + `]}}`: reasonNotJSON,
		`nccl:all_reduce`:                       reasonNotJSON,
		"\x80\x02}q\x00(X\x07\x00\x00\x00entriesq\x01]q\x02u.":   reasonNotDump,
		"\x80\x02}q\x00(X\x09\x00\x00\x00pg_configq\x01}q\x02u.": reasonNoEntries,
		"\x80\x02]q\x00.": reasonNotDump,
		"\x80\x05\x95":    reasonTruncated,
		"\x80\x05e.":      reasonNotPickle,
		"\x80\x02cos\nsystem\nq\x00X\x02\x00\x00\x00idq\x01\x85q\x02Rq\x03.": reasonPickle,
		"(dp0\nVversion\np1\nV2.5\np2\ns.":                                   reasonNotPickle,
		"}q\x00U\x07versionq\x01":                                            reasonNotPickle,
		"\x80\x06":                                                           reasonNotJSON,
	} {
		_, v, reason := read(t, "", text)
		assert.Equal(t, want, reason, text)
		assert.Equal(t, reason == reasonBlank || reason == reasonNoEntries, v == parse.Ignored, text)
	}
	// Ranks as a list, and values that are no ranks.
	for ranks, want := range map[string]int32{`[5, 4, 9]`: 3, `"[]"`: 0, `null`: 0, `"[-1, 2]"`: 0, `"[99999999999]"`: 0, `{"a": 1}`: 1} {
		ops, _, _ := read(t, "", `{"pg_config": {"1": {"ranks": `+ranks+`}}, "entries": [`+string(entry)+`]}`)
		require.Len(t, ops, 1)
		assert.Equal(t, want, ops[0].CommSize, ranks)
	}
	ops, _, _ := read(t, "", `{"entries": [{"pg_id": 3, "profiling_name": "nccl:send 0->1"}, {"process_group": ["x"], "profiling_name": 5}]}`)
	require.Len(t, ops, 2)
	assert.Equal(t, []string{"3", "x", "5"}, []string{string(ops[0].Comm), string(ops[1].Comm), string(ops[1].Name)})
}

// A pickle gives the same operations as PyTorch's JSON of the same dump.
func TestPickle(t *testing.T) {
	files, err := filepath.Glob("../../../../internal/flightrecorder/testdata/gloo/*/rank_*.json")
	require.NoError(t, err)
	require.Len(t, files, 8)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		pickled := strings.TrimSuffix(strings.Replace(file, "/rank_", "/nccl_trace_rank_", 1), ".json")
		p, err := os.ReadFile(pickled)
		require.NoError(t, err)
		assert.True(t, Sniff(p))
		got, v, reason := read(t, pickled, string(p))
		assert.Equal(t, parse.Record, v, reason)
		want, _, _ := read(t, file, string(b))
		n := len(want) - 1 // of the last one the JSON, written a moment later, may have more
		assert.Equal(t, want[:n], got[:n])
		assert.Len(t, got, n+1)
	}
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]bool{
		dumpOf(t): true, `{"entries": [{"profiling_name": "x"}]}`: true, `{"header":{"id":"0x1"}}`: false, `[{"entries": 1, "profiling_name": 2}]`: false,
		"": false, "\x80\x02": false, "\x80\x02}X\x09\x00\x00\x00pg_config": true,
	} {
		assert.Equal(t, want, Sniff([]byte(text)), text)
	}
}

func TestRankOf(t *testing.T) {
	for file, want := range map[string]int32{
		"/tmp/nccl_trace_rank_13": 13, "nccl_trace_rank_0.json": 0, "x_3.json": 3, "rank7.json.gz": 7, "comm_lib_trace_rank_12.txt": 12,
		"dump3.json": -1, "rank_.json": -1, "dump_20240827.json": -1, "": -1,
	} {
		assert.Equal(t, want, fr.RankOf(file), file)
	}
}

func FuzzDump(f *testing.F) {
	for _, s := range []string{
		`{"version":"2.5","pg_config":{"0":{"name":"0","ranks":"[0, 1]"}},"pg_status":{},"entries":[{"process_group":["0","d"],"collective_seq_id":1,"profiling_name":"nccl:all_reduce","time_created_ns":1724779239936775119,"duration_ms":1.5,"input_sizes":[[3,4]],"input_dtypes":["Float"],"state":"completed","time_discovered_completed_ns":1724779239975811724,"timeout_ms":600000},{"process_group":["0","d"],"collective_seq_id":1,"profiling_name":"nccl:coalesced"}]}`,
		`{"entries":[{"is_p2p":true,"p2p_seq_id":-1,"profiling_name":"nccl:recv 1<-0","output_sizes":[[9223372036854775807,2]],"output_dtypes":["Long"]},{"profiling_name":"coalesced","collective_seq_id":18446744073709551615}]}`,
		"\x80\x02}q\x00.", "(dp0", `{"entries": 5}`, "\x80\x02}(X\x07\x00\x00\x00entries](}(X\x0e\x00\x00\x00profiling_nameX\x0f\x00\x00\x00nccl:all_reduceueu.",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		ops, v, reason := read(t, "rank_3", in)
		again, _, _ := read(t, "rank_3", in)
		assert.Equal(t, ops, again)
		assert.Equal(t, v == parse.Record, reason == "")
		var entries struct{ Entries []json.RawMessage }
		if v == parse.Record && json.Unmarshal([]byte(in), &entries) == nil {
			assert.LessOrEqual(t, len(ops), len(entries.Entries))
		}
		for i := range ops {
			o := &ops[i]
			assert.GreaterOrEqual(t, min(o.Start, o.End), int64(0))
			assert.GreaterOrEqual(t, min(o.Duration, o.Size, o.Total, int64(o.Peer)), int64(op.Unknown))
			assert.Equal(t, o.Start > 0, o.Time == spans.TimeLogged)
			assert.False(t, o.State != op.Completed && o.End != 0)
			assert.False(t, o.HasSeq && !o.SeqOfAll)
			assert.Equal(t, o.Duration >= 0, o.Waits)
			if o.End > 0 && o.Start > 0 && o.Duration >= 0 {
				assert.Equal(t, o.Start+o.Duration, o.End)
			}
		}
	})
}

func BenchmarkDump(b *testing.B) {
	var text strings.Builder
	text.WriteString(`{"pg_config":{},"pg_status":{},"entries":[`)
	for i := range 2000 {
		if i > 0 {
			text.WriteByte(',')
		}
		entry, err := json.Marshal(one("nccl:all_reduce", i, nil))
		if err != nil {
			b.Fatal(err)
		}
		text.Write(entry)
	}
	text.WriteString("]}")
	line := []byte(text.String())
	var out parse.Out
	p := New("rank_1")
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		p.Line(line, false, 0, &out)
	}
}
