package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A slow link of a short job is told with its hosts: VCCL has a row per send.
func TestSlowLink(t *testing.T) {
	dir := t.TempDir()
	for host := range 2 {
		for nic := range 2 {
			var log strings.Builder
			log.WriteString("Time,Group,FromRank,ToRank,DevIndex,Func,FuncTimes,SrcIP,DstIP,Bandwidth,SendWrCounter,RemainWrDataSize,Timestamp\n")
			for i := range 40 * 2 {
				bandwidth := 180 + i%5
				if host == 1 && nic == 0 {
					bandwidth = 40 + i%5
				}
				fmt.Fprintf(&log, "20260108180000,77,%d,%d,%d,4,%d,10.0.0.%d,10.0.0.%d,%d,3,524288,%d\n",
					host*8+nic, (1-host)*8+nic, nic, i/2, host, 1-host, bandwidth, 1767895200000000000+int64(i)*50_000_000)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("node%d-mlx5_%d-Port%d-A.log", host, nic, nic)), []byte(log.String()), 0o600))
		}
	}
	text := reported(t, dir)
	assert.Contains(t, text, "The link 8→0 was much slower than the others")
	assert.Contains(t, text, "8→0 is from node1 to node0, last at 5.44 GB/s")
	assert.NotContains(t, text, "0→8 is")
}

// dumps writes the Flight Recorder's dumps of some ranks: of all_reduces from first (of the rank) to 57, of which 57 is not completed.
func dumps(t *testing.T, last string, first ...int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for rank := range first {
		var entries []string
		for seq := first[rank]; seq <= 57; seq++ {
			state, completed := "completed", strconv.FormatInt(1767895200009000000+int64(seq)*1e9, 10)
			if seq == 57 {
				state, completed = last, "null"
			}
			entries = append(entries, fmt.Sprintf(`{"record_id":%d,"pg_id":0,"process_group":["0","default_pg"],"collective_seq_id":%d,"p2p_seq_id":0,"op_id":%d,`+
				`"profiling_name":"nccl:all_reduce","time_created_ns":%d,"input_sizes":[[1024]],"input_dtypes":["Float"],"output_sizes":[[1024]],`+
				`"output_dtypes":["Float"],"state":%q,"time_discovered_started_ns":null,"time_discovered_completed_ns":%s,"retired":false,"timeout_ms":600000,`+
				`"is_p2p":false}`, seq-1, seq, seq, 1767895200000000000+int64(seq)*1e9, state, completed))
		}
		dump := fmt.Sprintf(`{"version":"2.10","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1, 2]"}},"pg_status":{"0":{`+
			`"last_enqueued_collective":"57","last_started_collective":"57","last_completed_collective":"56"}},"entries":[%s]}`, strings.Join(entries, ","))
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("nccl_trace_rank_%d.json", rank)), []byte(dump), 0o600))
	}
	return dir
}

// Dumps of ranks that all stand in one collective say so, and accuse nobody. The rings of the ranks begin at different numbers, and no record is lost.
func TestInFlight(t *testing.T) {
	const told = "When the dumps were written, all 3 ranks of the group stood in all_reduce 57 of group 0 default_pg, and none had completed it."
	text := reported(t, dumps(t, "started", 17, 18, 18))
	assert.Contains(t, text, told)
	assert.NotContains(t, text, "later ones came")
	assert.NotContains(t, text, "did not finish")
	assert.Contains(t, reported(t, dumps(t, "started", 17, 18, 18), "--lang", "zh"), "写转储时")
	assert.NotContains(t, reported(t, dumps(t, "completed", 18, 18, 18)), "When the dumps were written")
	assert.NotContains(t, reported(t, dumps(t, "started", 18, 18)), "When the dumps were written", "a dump is missing")
}
