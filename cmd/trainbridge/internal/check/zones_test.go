package check

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// twoHosts are logs of two ranks on two hosts, the second with a clock ahead, and the steps of a trainer with stamps ahead of the first host's.
func twoHosts(clock, stamps time.Duration) map[string]string {
	files := map[string]string{}
	var train strings.Builder
	begin := time.Unix(1_795_000_000, 0)
	for i := range 40 {
		end := begin.Add(time.Duration(i+1) * time.Second)
		for rank := range 2 {
			to := end.Add(-50 * time.Millisecond).Add(time.Duration(rank) * clock).UnixMicro()
			from := to - 5000
			files[fmt.Sprintf("host-%d-pid1.log", rank)] += fmt.Sprintf(`{"header":{"id":"0x99","comm_name":"DP","rank":%d,"n_ranks":2,"nnodes":2},`+
				`"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,`+
				`"hostname":"host-%d","pid":1},"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":1024,"coll_exec_time_us":5000,`+
				`"coll_timing_source":"kernel_gpu","coll_algobw_gbs":1,"coll_busbw_gbs":1,"event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,`+
				`"kernel_events":[{"channel_id":0,"kernel_start_sn":3,"kernel_stop_sn":5,"kernel_record_sn":4}]},"event_trace_ts":{"coll_start_ts":%d,`+
				`"coll_stop_ts":%d,"kernel_events":[{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%d}]}}}`+"\n",
				rank, to+9, rank, i, from, from, from, to, to)
		}
		fmt.Fprintf(&train, `{"step": %d, "timestamp": %q, "step_time_s": 1, "loss": 3.5}`+"\n", i+1, end.Local().Add(stamps).Format("2006-01-02 15:04:05.000"))
	}
	files["train.jsonl"] = train.String()
	return files
}

func TestClocksAndZones(t *testing.T) {
	for name, c := range map[string]struct {
		clock, stamps time.Duration
		args          []string
		off, notes    []string
	}{
		"in order":       {},
		"2 ms":           {clock: 2 * time.Millisecond, notes: []string{"clocks_apart"}},
		"50 ms":          {clock: 50 * time.Millisecond, off: []string{"clocks_apart"}},
		"another zone":   {stamps: 3 * time.Hour, off: []string{"timezone"}},
		"both":           {clock: time.Second, stamps: 3 * time.Hour, off: []string{"timezone", "clocks_apart"}},
		"one way wrong":  {stamps: -90 * time.Minute, off: []string{"timezone"}},
		"zone is given":  {stamps: 3 * time.Hour, args: []string{"--timezone", "*.jsonl=" + time.Now().In(ahead(3)).Format("-07:00")}},
		"of another log": {stamps: 3 * time.Hour, args: []string{"--timezone", "x.jsonl=UTC"}, off: []string{"timezone"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, code := run(t, "", append(c.args, logs(t, twoHosts(c.clock, c.stamps)), "--format=json")...)
			var d document
			require.NoError(t, json.Unmarshal([]byte(out), &d), out)
			var off, notes []string
			for _, f := range d.Findings {
				switch {
				case f.Off:
					off = append(off, f.Name)
				case f.Name != "no_model":
					notes = append(notes, f.Name)
				}
			}
			assert.Equal(t, c.off, off, out)
			assert.Equal(t, c.notes, notes, out)
			assert.Equal(t, min(1, len(off)), code)
			if name == "another zone" {
				assert.Contains(t, out, time.Now().In(ahead(3)).Format("--timezone 'train.jsonl=-07:00'"))
			}
		})
	}
}

// ahead is a zone some hours ahead of the machine's.
func ahead(hours int) *time.Location {
	_, offset := time.Unix(1_795_000_000, 0).Zone()
	return time.FixedZone("", offset+hours*3600)
}
