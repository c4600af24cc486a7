package flightrecorder

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// big makes the dump of a rank of a job: each fifth operation is of all ranks, three of five of eight neighbours, and one of every eighth rank.
func big(rank, ranks int32, entries int) *Dump {
	d := &Dump{Rank: rank, Version: "2.10", PGConfig: map[string]PG{}, PGStatus: map[string]Status{}}
	all, tp, dp := jobGroup{name: "0", desc: "default_pg"}, jobGroup{name: strconv.Itoa(int(1 + rank/8)), desc: "tp"}, jobGroup{desc: "dp"}
	dp.name = strconv.Itoa(int(1 + ranks/8 + rank%8))
	for r := range ranks {
		all.ranks = append(all.ranks, r)
		if r/8 == rank/8 {
			tp.ranks = append(tp.ranks, r)
		}
		if r%8 == rank%8 {
			dp.ranks = append(dp.ranks, r)
		}
	}
	groups := []jobGroup{all, tp, dp, tp, tp}
	seqs := map[string]Integer{}
	for i := range entries {
		g := groups[i%len(groups)]
		s := step{op: jobOps[i%3], count: int64(1+i%7) << 20}
		e := entriesOf(s, g, 0)[0]
		seqs[g.name]++
		e.RecordID, e.PGID, e.ProcessGroup = Integer(i), Integer(i%len(groups)), []Text{Text(g.name), Text(g.desc)}
		e.Collective, e.Created, e.TimeoutMS = seqs[g.name], 1_790_000_000_000_000_000+Integer(i)*1_000_000+Integer(rank), 600_000
		e.State, e.Retired, e.Started, e.Completed = "completed", true, e.Created+1000, e.Created+2000
		if i == entries-1 {
			e.State, e.Retired, e.Completed = "started", false, 0
		}
		d.Entries = append(d.Entries, e)
	}
	for _, g := range []jobGroup{all, tp, dp} {
		d.PGConfig[g.name] = PG{Desc: Text(g.desc), Ranks: g.ranks}
	}
	return d
}

// BenchmarkJob reads and compares the dumps of 1,024 ranks, of 2,000 entries each (TORCH_FR_BUFFER_SIZE's default), from files. peak-MiB is the process's.
func BenchmarkJob(b *testing.B) {
	const ranks, entries = 1024, 2000
	dir := b.TempDir()
	bytes := int64(0)
	for rank := range int32(ranks) {
		p := pickled(big(rank, ranks, entries))
		bytes += int64(len(p))
		require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("nccl_trace_rank_%d", rank)), p, 0o600))
	}
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600) // resets the peak
	b.SetBytes(bytes)
	for b.Loop() {
		groups := Analyze(func(yield func(*Dump) bool) {
			var r Reader
			var d Dump
			for rank := range int32(ranks) {
				text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("nccl_trace_rank_%d", rank)))
				require.NoError(b, err)
				d.Rank = rank
				require.NoError(b, r.Read(text, &d))
				if !yield(&d) {
					return
				}
			}
		})
		require.Len(b, groups, 1+ranks/8+8)
	}
	status, _ := os.ReadFile("/proc/self/status")
	if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
		kib, _ := strconv.Atoi(strings.Fields(after)[0])
		b.ReportMetric(float64(kib)/1024, "peak-MiB")
	}
}
