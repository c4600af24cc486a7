package tqline_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/tqline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// show writes the present fields.
func show(l *tqline.Line) string {
	var s strings.Builder
	fmt.Fprintf(&s, "stage=%d", l.Stage)
	if l.Stage >= tqline.ClientStart {
		fmt.Fprintf(&s, " op=%d log=%v", l.Op, l.Log)
	}
	if l.TraceID != nil {
		fmt.Fprintf(&s, " id=%s", l.TraceID)
	}
	if l.Func != nil {
		fmt.Fprintf(&s, " func=%s", l.Func)
	}
	if l.PID != 0 {
		fmt.Fprintf(&s, " pid=%d", l.PID)
	}
	if l.Duration != 0 {
		fmt.Fprintf(&s, " dur=%d", l.Duration)
	}
	if l.RawTime != nil {
		fmt.Fprintf(&s, " t=%d", l.Timestamp)
	}
	if l.BatchSize >= 0 {
		fmt.Fprintf(&s, " batch=%d", l.BatchSize)
	}
	if l.DataSize >= 0 {
		fmt.Fprintf(&s, " size=%d", l.DataSize)
	}
	if l.Throughput >= 0 {
		fmt.Fprintf(&s, " tp=%.6g", l.Throughput)
	}
	if l.GetRatio >= 0 {
		fmt.Fprintf(&s, " ratios=%v,%v,%v", l.GetRatio, l.ComputeRatio, l.PutRatio)
	}
	for _, f := range l.Fields[:l.N] {
		fmt.Fprintf(&s, " %s:%s", f.Name, f.Value)
	}
	return s.String()
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"[TQ-TRACE] trace_id=N/A | func=gen | pid=12 | stage=FUNCTION_START | timestamp=98231.402113":                                                                           "stage=0 id=N/A func=gen pid=12 t=98231402113000",
		"[TQ-TRACE] trace_id=N/A | func=gen | stage=GET_START | batch_size=32 | timestamp=1.5":                                                                                  "stage=1 id=N/A func=gen t=1500000000 batch=32",
		"[TQ-TRACE] trace_id=N/A | func=gen | stage=GET_END | duration=0.052000s | timestamp=1.5":                                                                               "stage=2 id=N/A func=gen dur=52000000 t=1500000000",
		"[TQ-TRACE] trace_id= | func=gen | stage=COMPUTE_START | timestamp=1":                                                                                                   "stage=3 id= func=gen t=1000000000",
		"[TQ-TRACE] stage=COMPUTE_END | timestamp=1 | duration=2s | func=gen":                                                                                                   "stage=4 func=gen dur=2000000000 t=1000000000",
		"[TQ-TRACE] trace_id=x|func=gen|stage=PUT_START":                                                                                                                        "stage=5 id=x func=gen",
		"[TQ-TRACE] trace_id=x | func=gen | stage=PUT_END | duration=0.1s\r":                                                                                                    "stage=6 id=x func=gen dur=100000000",
		"[TQ-TRACE] trace_id=a1b2c3d4 | func=rollout | stage=FUNCTION_END | total_duration=0.914024s | get_ratio=5.69% | compute_ratio=87.52% | put_ratio=6.78%":                "stage=7 id=a1b2c3d4 func=rollout dur=914024000 ratios=0.0569,0.8752,0.0678",
		"[TQ-DETAIL] trace_id=N/A | stage=TQ_CLIENT_GET_START | batch_size=32 | timestamp=1":                                                                                    "stage=8 op=0 log=false id=N/A t=1000000000 batch=32",
		"[TQ-DETAIL] trace_id=N/A | stage=TQ_CLIENT_GET_END | duration=0.05s | data_size_mb=15.20 | timestamp=1":                                                                "stage=9 op=0 log=false id=N/A dur=50000000 t=1000000000 size=15938355",
		"[TQ-DETAIL] trace_id=N/A | func=f | pid=3 | stage=TQ_CLIENT_PUT_START | batch_size=torch.Size([32]) | data_size_mb=0.00":                                               "stage=8 op=1 log=false id=N/A func=f pid=3 batch=32 size=0",
		"[TQ-DETAIL] trace_id=a1b2c3d4 | stage=TQ_CLIENT_PUT_END | duration=0.060000s | throughput_mbps=253.33":                                                                 "stage=9 op=1 log=false id=a1b2c3d4 dur=60000000 tp=2.65636e+08",
		"[TQ-LOG] op=TQ_GET | func=fit:x | stage=START":                                                                                                                         "stage=8 op=0 log=true func=fit:x",
		"[TQ-LOG] op=TQ_PUT | func=f | stage=END | duration=0.031187s | pid=3":                                                                                                  "stage=9 op=1 log=true func=f pid=3 dur=31187000",
		"[TQ-LOG] op=TQ_GET_META | func=f | stage=START":                                                                                                                        "stage=8 op=2 log=true func=f",
		"[TQ-LOG] op=TQ_CLEAR | func=f | stage=END | duration=0s":                                                                                                               "stage=9 op=3 log=true func=f",
		"[TQ-TRACE] func=g | stage=GET_START | batch_size=torch.Size([8, 4]) | color=red | loose | pid=x | batch_size=many":                                                     "stage=1 func=g color:red :loose pid:x batch_size:many",
		"[TQ-TRACE] func=g | stage=FUNCTION_END | total_duration=1s | get_ratio=nan% | compute_ratio=inf | put_ratio=-1%":                                                       "stage=7 func=g dur=1000000000 get_ratio:nan% compute_ratio:inf put_ratio:-1%",
		"[TQ-DETAIL] stage=TQ_CLIENT_PUT_START | data_size_mb=1e99 | throughput_mbps=nan":                                                                                       "stage=8 op=1 log=false data_size_mb:1e99 throughput_mbps:nan",
		"[TQ-TRACE] func=g | stage=GET_START | a=1 | b=2 | c=3 | d=4 | e=5 | f=6 | g=7 | h=8 | i=9":                                                                             "stage=1 func=g a:1 b:2 c:3 d:4 e:5 f:6 g:7 h:8",
		"[TQ-TRACE] func=g | stage=GET_START | duration=3s":                                                                                                                     "stage=1 func=g duration:3s",
		"[TQ-TRACE] trace_id=N/A | func=generate=x | stage=GET_START | batch_size=1":                                                                                            "stage=1 id=N/A func=generate=x batch=1",
		"[TQ-TRACE] trace_id=N/A | func=gen | stage=COMPUTE_END | duration=9.5e-07s | timestamp=0":                                                                              "stage=4 id=N/A func=gen dur=950 t=0",
		"[TQ-TRACE] trace_id=0123456789abcdef0123456789abcdef | func=generate_sequences | pid=2642022 | stage=FUNCTION_START | timestamp=1770828000.123456 | extra=a | extra=b": "stage=0 id=0123456789abcdef0123456789abcdef func=generate_sequences pid=2642022 t=1770828000123456000 extra:a extra:b",
	} {
		var l tqline.Line
		l.N, l.PID, l.BatchSize = 3, 9, 9 // left over from the line before
		err := tqline.Parse([]byte(in), &l)
		if assert.NoError(t, err, in) {
			assert.Equal(t, want, show(&l), in)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"[TQ-TRACE] trace_id=N/A | func=gener":                                            "no_stage",
		"[TQ-TRACE]":                                                                      "no_stage",
		"[TQ-TRACE] trace_id=N/A | func=g | stage=":                                       "no_stage",
		"[TQ-TRACE] func=g | stage=CACHE_START":                                           "unknown_stage",
		"[TQ-TRACE] func=g | stage=TQ_CLIENT_GET_START":                                   "unknown_stage",
		"[TQ-DETAIL] stage=GET_START":                                                     "unknown_stage",
		"[TQ-LOG] op=TQ_GET | func=f | stage=MIDDLE":                                      "unknown_stage",
		"[TQ-LOG] op=TQ_DANCE | func=f | stage=START":                                     "unknown_op",
		"[TQ-TRACE] stage=GET_START":                                                      "no_func",
		"[TQ-LOG] op=TQ_GET | stage=START":                                                "no_func",
		"[TQ-TRACE] func=g | stage=GET_END | timestamp=1":                                 "no_duration",
		"[TQ-TRACE] func=g | stage=GET_END | duration=fasts | timestamp=1":                "bad_duration",
		"[TQ-TRACE] func=g | stage=GET_END | duration=-1s":                                "bad_duration",
		"[TQ-TRACE] func=g | stage=GET_END | duration=nans":                               "bad_duration",
		"[TQ-TRACE] func=g | stage=GET_END | duration=9999999999s":                        "bad_duration",
		"[TQ-TRACE] func=g | stage=GET_START | timestamp=soon":                            "bad_timestamp",
		"[TQ-TRACE] func=g | stage=GET_START | timestamp=-4":                              "bad_timestamp",
		"[TQ-TRACE] func=g | stage=GET_START | timestamp=":                                "bad_timestamp",
		"[TQ-TRACE] func=g | stage=GET_START | timestamp=99999999999999999999999999":      "bad_timestamp",
		"[TQ-NEW] func=g | stage=GET_START":                                               "unknown_tag",
		"[TQ-TRACE":                                                                       "unknown_tag",
		"[TQ-TRACE] func=g | stage=GET_END | duration=0.1s | timestamp=1.5 (truncated he": "bad_timestamp",
	} {
		var l tqline.Line
		err := tqline.Parse([]byte(in), &l)
		require.Error(t, err, in)
		assert.Equal(t, want, tqline.Reason(err), in)
	}
}

func TestFind(t *testing.T) {
	assert.Equal(t, 0, tqline.Find([]byte("[TQ-LOG] x")))
	assert.Equal(t, 10, tqline.Find([]byte("50%|## [x][TQ-LOG] x")))
	assert.Equal(t, -1, tqline.Find([]byte("TQ-LOG [TQ] [")))
	assert.Equal(t, -1, tqline.Find(nil))
}

func TestNeighbours(t *testing.T) {
	for in, want := range map[string]tqline.Neighbour{
		"Task generate_sequences (pid=1) is getting len_samples=32, global_idx=[" + strings.Repeat("1, ", 9000) + "2]": tqline.TaskGetting,
		"Task generate_sequences (pid=1) putting output data to TransferQueue with batch_size=torch.Size([32]),":       tqline.TaskPutting,
		"tensordict keys=['prompts']": tqline.TensordictKeys,
		"Task update_actor (pid=54223) is getting len_samples=256, cost time: 0.18342280387878418":                          tqline.TaskCost,
		"Task update_actor (pid=54223) is writing to TransferQueue, cost time: 0.04191160202026367s)":                       tqline.TaskCost,
		"TQ_STORAGE_UNIT_4f: [Performance] Total success requests: 1840, Total req/min: 1, Total avg process time: 0.0042s": tqline.PerfHeader,
		"Time range: last 5.00 minutes; ":                   tqline.PerfRange,
		"Per-operation statistics: PUT_DATA: req_count=920": tqline.PerfOperations,
		"Task force meets":                                  tqline.Other,
		"":                                                  tqline.Other,
		"Training: 3%":                                      tqline.Other,
	} {
		assert.Equal(t, want, tqline.Classify([]byte(in)), in)
	}
	c, ok := tqline.ParseCost([]byte("Task update_actor (pid=54223) is writing to TransferQueue, cost time: 0.04191160202026367s)"))
	require.True(t, ok)
	assert.Equal(t, tqline.Cost{Func: []byte("update_actor"), PID: 54223, Put: true, Duration: 41911602}, c)
	c, ok = tqline.ParseCost([]byte("Task update_actor (pid=54223) is getting len_samples=256, cost time: 9.5367431640625e-07"))
	require.True(t, ok)
	assert.Equal(t, tqline.Cost{Func: []byte("update_actor"), PID: 54223, Duration: 953}, c)
	for _, in := range []string{
		"Task update_actor (pid=54223) is getting len_samples=256, cost time: soon", "Task f (pid=x) is getting len_samples=256, cost time: 1",
		"Task f (pid=1) is dancing, cost time: 1", "Task f (pid=1, cost time: 1",
	} {
		_, ok = tqline.ParseCost([]byte(in))
		assert.False(t, ok, in)
	}

	p, ok := tqline.ParsePerf(
		[]byte("TQ_STORAGE_UNIT_4f1c09ab: [Performance] Total success requests: 1840, Total req/min: 360.00, Total avg process time: 0.0042s; "),
	)
	require.True(t, ok)
	assert.Equal(t, tqline.Perf{Unit: []byte("TQ_STORAGE_UNIT_4f1c09ab"), Requests: 1840, Rate: 6, Average: 0.0042}, p)
	r, ok := tqline.ParseRange([]byte("Time range: last 5.00 minutes; "))
	require.True(t, ok)
	assert.Equal(t, int64(300e9), r)
	op, rest, ok := tqline.NextOp(
		[]byte(
			"Per-operation statistics: PUT_DATA: req_count=920, req/min=180.00, avg_time=0.006112s, max_time=0.081233s, min_time=0.000512s; GET_DATA: req_count=1, req/min=60, avg_time=bad",
		),
	)
	require.True(t, ok)
	assert.Equal(t, tqline.PerfOp{Name: []byte("PUT_DATA"), Requests: 920, Rate: 3, Avg: 0.006112, Max: 0.081233, Min: 0.000512}, op)
	op, rest, ok = tqline.NextOp(rest)
	assert.False(t, ok)
	assert.Equal(t, "GET_DATA", string(op.Name))
	op, _, ok = tqline.NextOp(rest)
	assert.True(t, ok)
	assert.Nil(t, op.Name)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"[TQ-TRACE] trace_id=N/A | func=gen | pid=12 | stage=FUNCTION_START | timestamp=98231.402113", "[TQ-LOG] op=TQ_GET | func=f | stage=END | duration=1s",
		"[TQ-DETAIL] trace_id=N/A | func=f | pid=3 | stage=TQ_CLIENT_PUT_START | batch_size=torch.Size([32]) | data_size_mb=15.2", "[TQ-TRACE] |=|=| |",
		"Per-operation statistics: PUT_DATA: req_count=920, req/min=180.00, avg_time=0.006112s", "Task f (pid=1) is getting len_samples=256, cost time: 1)",
		"U: [Performance] Total success requests: 1, Total req/min: 1, Total avg process time: 1s",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var l tqline.Line
		if i := tqline.Find(in); i >= 0 {
			err := tqline.Parse(in[i:], &l)
			if err == nil && (l.Duration < 0 || l.Timestamp < 0 || l.N > tqline.MaxFields || l.PID < 0 || l.BatchSize < -1 || l.DataSize < -1) {
				t.Fatalf("%q: %+v", in, l)
			}
			if err == nil && !bytes.Contains(in, l.Func) {
				t.Fatalf("%q: func %q", in, l.Func)
			}
		}
		tqline.Classify(in)
		tqline.ParseCost(in)
		tqline.ParsePerf(in)
		tqline.ParseRange(in)
		for rest, n := in, 0; len(rest) > 0; n++ {
			_, rest, _ = tqline.NextOp(rest)
			if n > len(in) {
				t.Fatalf("%q: no end", in)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for name, s := range map[string]string{
		"stage":    "[TQ-TRACE] trace_id=N/A | func=generate_sequences | stage=COMPUTE_END | duration=6.047038s | timestamp=98237.505756",
		"function": "[TQ-TRACE] trace_id=N/A | func=generate_sequences | stage=FUNCTION_END | total_duration=6.182528s | get_ratio=0.85% | compute_ratio=97.81% | put_ratio=1.34% | timestamp=98237.588641",
		"other":    "Training Progress:  45%|####5     | 45/100 [12:34<15:20, 16.7s/it] the quick brown fox jumps over the lazy dog",
	} {
		b.Run(name, func(b *testing.B) {
			in := []byte(s)
			var l tqline.Line
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				if i := tqline.Find(in); i >= 0 {
					if err := tqline.Parse(in[i:], &l); err != nil {
						b.Fatal(err)
					}
				} else {
					tqline.Classify(in)
				}
			}
		})
	}
}
