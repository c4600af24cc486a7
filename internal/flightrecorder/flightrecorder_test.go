package flightrecorder

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/pickle"
)

// ops makes the dump of a rank of one group of the ranks 0 to 3: c completed, s started, e enqueued; other letters are other operations. from is the first
// number.
func ops(rank int32, from int, states string) *Dump {
	d := &Dump{Rank: rank, Version: "2.10", PGConfig: map[string]PG{"0": {Desc: "default_pg", Ranks: Ranks{0, 1, 2, 3}}}, PGStatus: map[string]Status{}}
	for i, c := range states {
		e := entriesOf(step{op: "all_reduce", count: 64}, jobGroup{ranks: d.PGConfig["0"].Ranks}, 0)[0]
		switch e.State = "completed"; c {
		case 'c':
		case 's':
			e.State = "started"
		case 'e':
			e.State = "scheduled"
		case 'b':
			e.Name = "nccl:broadcast"
		case 'z':
			e.InputSizes = [][]int64{{65}}
		case 't':
			e.InputDtypes, e.OutputDtypes = []Text{"Float"}, []Text{"Float"}
		}
		e.ProcessGroup, e.RecordID, e.Collective = []Text{"0", "default_pg"}, Integer(from+i-1), Integer(from+i)
		d.Entries = append(d.Entries, e)
	}
	return d
}

func TestAnalyze(t *testing.T) {
	all := func(states ...string) (dumps []*Dump) {
		for rank, s := range states {
			if s != "none" {
				dumps = append(dumps, ops(int32(rank), 1, s))
			}
		}
		return dumps
	}
	const group = "0 default_pg [0 1 2 3]"
	for name, c := range map[string]struct {
		dumps []*Dump
		want  string
	}{
		"healthy":          {all("ccc", "ccc", "ccc", "ccc"), group},
		"stuck in flight":  {all("ccs", "ccs", "ccs", "ccs"), group + ", stuck nccl:all_reduce 3 of [0 1 2 3]"},
		"a rank is behind": {all("ccs", "cc", "ccs", "cce"), group + ", behind [1], stuck nccl:all_reduce 3 of [0 2 3] not [1] 3 state"},
		"two are, one more than the other": {
			all("cse", "cs", "c", "cse"), group + ", behind [1 2], stuck nccl:all_reduce 2 of [0 1 3] not [2]",
		},
		"no dump of one":         {all("ccs", "none", "ccs", "ccs"), group + ", missing [1], stuck nccl:all_reduce 3 of [0 2 3]"},
		"one missing and behind": {all("ccs", "none", "cc", "ccs"), group + ", missing [1], behind [2], stuck nccl:all_reduce 3 of [0 3] not [2]"},
		"another operation": {
			all("ccs", "cbs", "ccs", "ccs"), group + ", stuck nccl:all_reduce 3 of [0 1 2 3], mismatch nccl:all_reduce 2 of [0 1 2 3] 1 type",
		},
		"other sizes": {all("cc", "cc", "cz", "cc"), group + ", mismatch nccl:all_reduce 2 of [0 1 2 3] 2 sizes"},
		"other types": {all("ct", "cc", "cc", "cc"), group + ", mismatch nccl:all_reduce 2 of [0 1 2 3] 1 dtypes 2 dtypes 3 dtypes"},
		"an empty dump": {
			all("c", "c", "", "c"), group + ", behind [2], stuck nccl:all_reduce 1 of [0 1 3] not [2]",
		},
		"nothing at all": {all("", "", "", ""), group},
		"a buffer that was too small": { // rank 1 forgot the first two
			[]*Dump{ops(0, 1, "ccc"), ops(1, 3, "c"), ops(2, 1, "ccc"), ops(3, 1, "ccc")}, group,
		},
		"a number left out": { // the buffer goes back further
			[]*Dump{ops(0, 1, "ccc"), ops(1, 1, "ccc"), ops(2, 1, "ccc"), {Rank: 3, PGConfig: ops(3, 1, "").PGConfig, Entries: slices.Delete(ops(3, 1, "ccc").Entries, 1, 2)}},
			group + ", stuck nccl:all_reduce 2 of [0 1 2] not [3]",
		},
		"twice the same rank": {append(all("c", "c", "c", "c"), ops(3, 1, "")), group},
		"no rank":             {append(all("c", "c", "c", "c"), ops(-1, 1, "")), group},
	} {
		t.Run(name, func(t *testing.T) {
			groups := Analyze(slices.Values(read(t, c.dumps)))
			require.Len(t, groups, 1)
			assert.Equal(t, c.want, say(&groups[0]))
		})
	}
	assert.Empty(t, Analyze(slices.Values([]*Dump(nil))))
}

// When the ranks enqueued an operation.
func TestWhen(t *testing.T) {
	var dumps []*Dump
	for rank := range int32(4) {
		d := ops(rank, 1, "s")
		d.Entries[0].Created = 1000 + Integer(rank)*10
		dumps = append(dumps, d)
	}
	g := Analyze(slices.Values(dumps))[0]
	assert.Equal(t, []int64{1, 1000, 1030, 3}, []int64{g.Latest.Seq, g.Latest.First, g.Latest.Last, int64(g.Latest.LastRank)})
	assert.Equal(t, []int32{0, 1, 2, 3}, g.Stuck.Started)
	assert.Empty(t, g.Stuck.Completed)
}

// Until PyTorch 2.4 a batch of sends and receives counts as a collective that the other ranks do not have.
func TestBatch(t *testing.T) {
	dumps := []*Dump{ops(0, 1, "ccc"), ops(1, 1, "ccc"), ops(2, 1, "cc"), ops(3, 1, "cc")}
	for _, d := range dumps[:2] {
		d.Entries[2].Name, d.Entries[1].IsP2P, d.Entries[1].P2P, d.Entries[1].Name = "nccl:coalesced", true, 1, "nccl:send 0->1"
		d.Entries[1].Collective = 3
	}
	dumps[1].Entries[1].Name = "nccl:recv 1<-0"
	for _, d := range dumps[2:] {
		d.Entries = d.Entries[:1]
	}
	groups := Analyze(slices.Values(dumps))
	assert.Equal(t, "0 default_pg [0 1 2 3]", say(&groups[0]))
}

func TestMessages(t *testing.T) {
	message := func(d *Dump, name string, count int64) {
		d.Entries = append(d.Entries, Entry{
			RecordID: Integer(len(d.Entries)), ProcessGroup: []Text{"0", "default_pg"}, IsP2P: true, P2P: Integer(len(d.Entries) + 1), Name: Text(name), State: "completed",
			InputSizes: [][]int64{{count}}, OutputSizes: [][]int64{{count}}, InputDtypes: []Text{"Half"}, OutputDtypes: []Text{"Half"},
		})
	}
	dumps := []*Dump{ops(0, 1, ""), ops(1, 1, ""), ops(2, 1, ""), ops(3, 1, "")}
	message(dumps[0], "nccl:send 0->1", 5)
	message(dumps[0], "nccl:send 0->1", 6)
	message(dumps[0], "nccl:send 0->3", 6)
	message(dumps[1], "nccl:recv 1<-0", 5)
	message(dumps[1], "nccl:recv 1<-0", 7)
	message(dumps[2], "nccl:recv 2<-1", 7)
	message(dumps[3], "nccl:recv 3<-?", 7)
	var got []string
	for _, c := range Analyze(slices.Values(dumps))[0].Odd {
		got = append(got, sayOperation(c))
	}
	assert.Equal(t, []string{
		"nccl:recv 2<-1 1 of [2] not [1]", "nccl:send 0->1 2 of [0 1] 1 sizes", "nccl:send 0->3 3 of [0] not [3]",
	}, got)
}

// A value of a wrong type counts as missing, in both formats alike.
func TestRead(t *testing.T) {
	for in, want := range map[string]Dump{
		"\x80\x02}.": {},
		"\x80\x02}(X\x07\x00\x00\x00versionK\x02u.": {Version: "2"},
		"\x80\x02}(X\x07\x00\x00\x00entries](Neu.":  {Entries: []Entry{{}}},
		"\x80\x02}(X\x09\x00\x00\x00pg_status]u.":   {},
		"\x80\x02}(X\x09\x00\x00\x00pg_config}(X\x01\x00\x00\x000}(X\x05\x00\x00\x00ranks](K\x05K\x04euX\x01\x00\x00\x001Nuu.": {
			PGConfig: map[string]PG{"0": {Ranks: Ranks{4, 5}}},
		},
		`{"version": 2, "entries": [null, {"pg_id": "7", "is_p2p": 5}]}`: {Version: "2", Entries: []Entry{{}, {PGID: 7}}},
	} {
		var d Dump
		require.NoError(t, new(Reader).Read([]byte(in), &d), "%q", in)
		if len(d.Entries) == 0 {
			d.Entries = nil
		}
		assert.Equal(t, want, d, "%q", in)
	}
	for in, want := range map[string]error{"\x80\x02].": ErrNotDump, "\x80\x02}": pickle.ErrTruncated, "(dp0\n.": pickle.ErrMalformed} {
		require.ErrorIs(t, new(Reader).Read([]byte(in), new(Dump)), want, "%q", in)
	}
	require.Error(t, new(Reader).Read([]byte(`{"entries": [`), new(Dump)))
	var d Dump
	code := new(pickle.CodeError)
	require.ErrorAs(t, new(Reader).Read([]byte("\x80\x02cos\nsystem\n."), &d), &code)
	assert.Equal(t, "GLOBAL", code.Opcode)
}

// A pickle with many references to one value takes no more memory than in proportion to the file.
func TestRepeated(t *testing.T) {
	const n = 100_000
	list := "](" + strings.Repeat("K\x01", n) + "eq\x00"
	for _, in := range []string{
		"\x80\x02}(X\x01\x00\x00\x00x" + list + "X\x07\x00\x00\x00entries](}(X\x0b\x00\x00\x00input_sizes](" + strings.Repeat("h\x00", n) + "eueu.",
		"\x80\x02}(X\x01\x00\x00\x00x}q\x00X\x07\x00\x00\x00entries](" + strings.Repeat("h\x00", n) + "eu.",
		"\x80\x02}(X\x01\x00\x00\x00xX\xa0\x86\x01\x00" + strings.Repeat("x", n) + "q\x00X\x07\x00\x00\x00entries](}(X\x0c\x00\x00\x00input_dtypes](" +
			strings.Repeat("h\x00", n) + "eueu.",
	} {
		assert.ErrorIs(t, new(Reader).Read([]byte(in), new(Dump)), ErrNotDump)
	}
}

// A list of ranks is read in time in proportion to its length: looking through all of it for each rank would take longer than the test may.
func TestMostRanks(t *testing.T) {
	text := []byte("[" + strings.Repeat("1234567, ", maxRanks-1) + "0]")
	var ranks Ranks
	require.NoError(t, ranks.UnmarshalJSON(text))
	require.Len(t, ranks, maxRanks)
	assert.Equal(t, int32(0), ranks[0], "ascending")
	require.NoError(t, ranks.UnmarshalJSON(append(text[:len(text)-1], ", 1]"...)))
	assert.Nil(t, ranks, "too many")
	require.NoError(t, ranks.UnmarshalJSON([]byte("[0, -1]")))
	assert.Nil(t, ranks)
}

func TestRankOf(t *testing.T) {
	for file, want := range map[string]int32{
		"/tmp/nccl_trace_rank_13": 13, "nccl_trace_rank_0.json": 0, "x_3.json": 3, "rank7.json.gz": 7, "comm_lib_trace_rank_12.txt": 12,
		"dump3.json": -1, "rank_.json": -1, "dump_20240827.json": -1, "": -1,
		"dump_20240827_120000.json": -1, "dump_2024-08-27_120000": -1, "dump_20240827_13.json": 13,
	} {
		assert.Equal(t, want, RankOf(file), file)
	}
	for file, want := range map[string]bool{
		"/x/nccl_trace_rank_1": true, "a_comm_lib_trace_rank_2": true, "hccl_trace_rank_0.gz": true, "/nccl_trace_rank_1/log": false, "trace_rank_1": false,
	} {
		assert.Equal(t, want, IsName(file), file)
	}
}

// FuzzRead never panics, and reads no more than fits into the file.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/gloo/*/*")
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil {
			f.Add(b)
		}
	}
	f.Add(pickled(generate(1)[0]))
	f.Add([]byte(`{"entries": [{"process_group": ["0"], "is_p2p": true, "profiling_name": "nccl:send 0->` + strconv.Itoa(1<<20) + `"}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		d := &Dump{Rank: 1}
		if new(Reader).Read(in, d) != nil {
			return
		}
		if len(d.Entries) > len(in) {
			t.Fatal(len(d.Entries))
		}
		other := *d
		other.Rank = 0
		for _, g := range Analyze(slices.Values([]*Dump{d, &other})) {
			if len(g.Members) != len(g.Ranks) {
				t.Fatal(g)
			}
		}
	})
}
