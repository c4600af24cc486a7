package trainlogreceiver

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// wrapper wraps a line like a launcher, a container runtime or a log collector, by the tools' sources or real runs.
type wrapper struct {
	name string
	wrap func(at time.Time, inner string) string
	// clock: the time of the wrapper is the time of the records without one.
	clock  bool
	rank   string // of the records; "": none
	host   string
	frames bool // carriage returns become line ends
	// lacks says why lines with carriage returns cannot be read; "": they can.
	lacks string
}

func printf(format, layout string) func(time.Time, string) string {
	return func(at time.Time, inner string) string {
		return strings.NewReplacer("TIME", at.Format(layout), "LINE", inner).Replace(format)
	}
}

func objectOf(pairs ...any) func(time.Time, string) string {
	return func(at time.Time, inner string) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := 0; i < len(pairs); i += 2 {
			v := pairs[i+1]
			if f, ok := v.(func(time.Time, string) any); ok {
				v = f(at, inner)
			}
			text, err := json.Marshal(v)
			if err != nil {
				return err.Error()
			}
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%q:%s", pairs[i], text)
		}
		return b.String() + "}"
	}
}

const nine = "2006-01-02T15:04:05.000000000Z"

var (
	text    = func(_ time.Time, inner string) any { return inner }
	ended   = func(_ time.Time, inner string) any { return inner + "\n" }
	stamp   = func(at time.Time, _ string) any { return at.Format(nine) }
	seconds = func(at time.Time, _ string) any { return float64(at.UnixMicro()) / 1e6 }
	micros  = func(at time.Time, _ string) any { return strconv.FormatInt(at.UnixMicro(), 10) }
	payload = func(_ time.Time, inner string) any {
		return map[string]any{"levelname": "INFO", "message": inner + "\n"}
	}
	loguru = func(at time.Time, inner string) any {
		return map[string]any{
			"elapsed": map[string]any{"repr": "0:00:00.024544", "seconds": 0.024544}, "function": "loop", "line": 6, "message": inner, "module": "frames",
			"process": map[string]any{"id": 7507}, "time": map[string]any{"repr": "2026-11-26 12:14:10.6", "timestamp": float64(at.UnixMicro()) / 1e6},
		}
	}
	// The journal prints a message with letters forbidden on terminals as its bytes.
	bytesOf = func(_ time.Time, inner string) any {
		if !strings.ContainsAny(inner, "\r\x1b") {
			return inner
		}
		var list []int
		for _, c := range []byte(inner) {
			list = append(list, int(c))
		}
		return list
	}
)

const blob = "journalctl prints a message with carriage returns as [4.6K blob data]"

// journal makes the output of journalctl for a terminal: tabs become blanks.
func journal(format, layout string) func(time.Time, string) string {
	wrap := printf(format, layout)
	return func(at time.Time, inner string) string { return wrap(at, strings.ReplaceAll(inner, "\t", "        ")) }
}

var wrappers = []wrapper{
	{name: "kubectl logs --prefix", wrap: printf("[pod/train-worker-0/pytorch] LINE", ""), host: "train-worker-0"},
	{name: "stern", wrap: printf("train-worker-0 pytorch LINE", "")},
	{name: "stern, colour, a deployment", wrap: printf("\x1b[96mtrain-7d4b9c6f5-x2x9k\x1b[0m \x1b[96mmain-1\x1b[0m LINE", "")},
	{name: "stern, in CRI", wrap: printf("TIME stdout F train-worker-0 pytorch LINE", nine), clock: true},
	{name: "journalctl -o export", clock: true, wrap: func(at time.Time, inner string) string {
		message := "MESSAGE=" + inner
		if strings.ContainsAny(inner, "\r\x1b") {
			message = "MESSAGE\n" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(inner)))) + inner
		}
		return fmt.Sprintf("__CURSOR=s=5\n__REALTIME_TIMESTAMP=%d\n_BOOT_ID=e364\nPRIORITY=6\n%s\n_HOSTNAME=gpu-01\n", at.UnixMicro(), message)
	}},
	{name: "kubectl logs --timestamps", wrap: printf("TIME LINE", nine), clock: true},
	{name: "kubectl logs --prefix --timestamps", wrap: printf("[pod/train-worker-0/pytorch] TIME LINE", nine), clock: true, host: "train-worker-0"},
	{name: "Kubeflow's get_job_logs", wrap: printf("[Pod train-master-0]: LINE", ""), host: "train-master-0"},
	{name: "docker json-file", wrap: objectOf("log", ended, "stream", "stdout", "time", stamp), clock: true},
	{name: "docker json-file, labelled", wrap: objectOf("log", ended, "stream", "stderr", "attrs", map[string]any{"tag": "x"}, "time", stamp), clock: true},
	{name: "docker compose", wrap: printf("trainer-1  | LINE", "")},
	{name: "docker compose, colour", wrap: printf("\x1b[36mtrainer-1  | \x1b[0mLINE", "")},
	{name: "docker compose --timestamps", wrap: printf("trainer-1  | TIME LINE", nine), clock: true},
	{name: "docker compose 1", wrap: printf("trainer_1  | LINE", "")},
	{name: "docker service logs", wrap: printf("trainer.1.x8m0e7v2q3z1@gpu-01    | LINE", "")},
	{name: "CRI", wrap: printf("TIME stdout F LINE", "2006-01-02T15:04:05.999999999Z07:00"), clock: true},
	{name: "CRI, local", wrap: func(at time.Time, inner string) string {
		return at.In(time.FixedZone("", 8*3600)).Format("2006-01-02T15:04:05.999999999-07:00") + " stdout F " + inner
	}, clock: true},
	{name: "journalctl -o short", wrap: journal("TIME gpu-01 python3[41233]: LINE", "Jan 02 15:04:05"), host: "gpu-01", lacks: blob},
	{name: "journalctl -o short-precise", wrap: journal("TIME gpu-01 python3[41233]: LINE", "Jan 02 15:04:05.000000"), clock: true, host: "gpu-01", lacks: blob},
	{name: "journalctl -o short-iso", wrap: journal("TIME gpu-01 python3[41233]: LINE", "2006-01-02T15:04:05-0700"), host: "gpu-01", lacks: blob},
	{name: "journalctl -o short-iso, new", wrap: journal("TIME gpu-01 python3[41233]: LINE", "2006-01-02T15:04:05-07:00"), host: "gpu-01", lacks: blob},
	{
		name: "journalctl -o short-iso-precise", wrap: journal("TIME gpu-01 python3[41233]: LINE", "2006-01-02T15:04:05.000000-0700"), clock: true, host: "gpu-01",
		lacks: blob,
	},
	{name: "journalctl -o short-full", wrap: journal("TIME gpu-01 python3[41233]: LINE", "Mon 2006-01-02 15:04:05 MST"), host: "gpu-01", lacks: blob},
	{name: "journalctl -o short-monotonic", wrap: journal("[ 5000.523417] gpu-01 python3[41233]: LINE", ""), host: "gpu-01", lacks: blob},
	{name: "journalctl -o short-unix", wrap: func(at time.Time, inner string) string {
		return fmt.Sprintf("%d.%06d gpu-01 python3[41233]: %s", at.Unix(), at.Nanosecond()/1000, inner)
	}, clock: true, host: "gpu-01", lacks: blob},
	{name: "journalctl -o with-unit", wrap: journal("TIME gpu-01 train.service[41233]: LINE", "Mon 2006-01-02 15:04:05 MST"), host: "gpu-01", lacks: blob},
	{
		name: "journalctl -o json", wrap: objectOf("_BOOT_ID", "e364", "PRIORITY", "6", "MESSAGE", bytesOf, "_PID", "41233", "__REALTIME_TIMESTAMP", micros, "__CURSOR", "s=5"),
		clock: true,
	},
	{name: "syslog", wrap: printf("TIME gpu-01 train[41233]: LINE", "Jan _2 15:04:05"), host: "gpu-01", lacks: "syslog daemons print carriage returns as #015"},
	{name: "mpirun 4 --tag-output", wrap: printf("[1,3]<stdout>:LINE", ""), rank: "3"},
	{name: "mpirun 4 --tag-output --timestamp-output", wrap: printf("TIME[1,3]<stdout>:LINE", time.ANSIC), rank: "3"},
	{name: "mpirun 4 --timestamp-output", wrap: printf("TIME<stdout>:LINE", time.ANSIC)},
	{name: "mpirun 5 --output tag", wrap: printf("[1,3]<stdout>: LINE", ""), rank: "3"},
	{name: "mpirun 5 --output tag,timestamp", wrap: printf("[TIME][1,3]<stdout>: LINE", time.ANSIC), rank: "3"},
	{name: "mpirun 5 --output timestamp", wrap: printf("[TIME]<stdout>: LINE", time.ANSIC)},
	{name: "mpirun 5 --output rank", wrap: printf("[3]<stderr>: LINE", ""), rank: "3"},
	{name: "prterun --output tag-detailed", wrap: printf("[1,3][gpu01:41233]<stdout>: LINE", ""), rank: "3", host: "gpu01"},
	{name: "prterun, namespace", wrap: printf("[prterun-gpu01-100629@1,3]<stdout>: LINE", ""), rank: "3"},
	{name: "SageMaker", wrap: printf("[1,mpirank:3,algo-1]<stdout>:LINE", ""), rank: "3", host: "algo-1"},
	{name: "SageMaker's notebook", wrap: printf("\x1b[34m[1,mpirank:3,algo-1]<stdout>:LINE\x1b[0m", ""), rank: "3", host: "algo-1"},
	{name: "SageMaker local", wrap: printf("algo-1-5rcld_1  | LINE", "")},
	{name: "SageMaker local, compose 2", wrap: printf("5f0vzqsk4n-algo-1-5rcld  | LINE", "")},
	{name: "pdsh", wrap: printf("gpu01: LINE", ""), host: "gpu01"},
	{name: "pdsh, addresses", wrap: printf("10.4.1.33: LINE", ""), host: "10.4.1.33"},
	{name: "srun --label", wrap: printf(" 3: LINE", ""), rank: "3"},
	{name: "srun --label, het job", wrap: printf("P1 3: LINE", ""), rank: "3"},
	{name: "Determined", wrap: printf("[TIME] f6114bb3 [rank=3] || INFO: LINE", "2006-01-02T15:04:05.000000Z"), clock: true, rank: "3", frames: true},
	{name: "Determined, no level", wrap: printf("[TIME] f6114bb3 || LINE", "2006-01-02T15:04:05Z"), frames: true},
	{name: "Determined's container", wrap: printf("[rank=3] LINE", ""), rank: "3", frames: true},
	{name: "logging, rank", wrap: printf("TIME [INFO] [rank3] LINE", "2006-01-02 15:04:05,000"), clock: true, rank: "3"},
	{name: "logging, rank before the level", wrap: printf("TIME [rank 3] [INFO] LINE", "2006-01-02 15:04:05,000"), clock: true, rank: "3"},
	{name: "Ray", wrap: printf("(TrainWorker pid=41233, ip=10.0.0.12) LINE", ""), host: "10.0.0.12"},
	{name: "Ray, colour", wrap: printf("\x1b[36m(TrainWorker pid=41233, ip=10.0.0.12)\x1b[0m LINE", ""), host: "10.0.0.12"},
	{name: "torchrun --tee", wrap: printf("[default3]:LINE", "")},
	{name: "torchrun --tee, role", wrap: printf("[trainer3]:LINE", "")},
	{name: "Cloud Logging, text", wrap: objectOf("insertId", "75bcd15", "textPayload", ended, "timestamp", stamp, "severity", "INFO", "receiveTimestamp", stamp), clock: true},
	{name: "Cloud Logging, message", wrap: objectOf("insertId", "75bcd15", "jsonPayload", payload, "timestamp", stamp, "logName", "projects/p"), clock: true},
	{name: "CloudWatch's export", wrap: printf("TIME LINE", "2006-01-02T15:04:05.000Z")},
	{name: "GitHub's runner", wrap: printf("TIME LINE", "2006-01-02T15:04:05.0000000Z"), clock: true},
	{name: "aws logs tail", wrap: printf("TIME train-2026-08-03/algo-1-1785748462 LINE", "2006-01-02T15:04:05.000000-07:00"), clock: true},
	{name: "logcli, trimmed", wrap: func(at time.Time, inner string) string { return at.Format(nine) + " " + strings.TrimSpace(inner) }, clock: true},
	{name: "another service between", wrap: func(_ time.Time, inner string) string {
		return "redis-1    | 1:M 03 Aug 2026 09:14:22.417 * Background saving started by pid 21\ntrainer-1  | " + inner
	}},
	{name: "logcli", wrap: printf(`TIME {app="train", pod="train-worker-0"} LINE`, "2006-01-02T15:04:05Z")},
	{name: "logcli -o jsonl", wrap: objectOf("labels", map[string]any{"app": "train"}, "line", text, "timestamp", stamp), clock: true},
	{name: "Fluent Bit", wrap: objectOf("date", seconds, "time", stamp, "stream", "stdout", "_p", "F", "log", text, "kubernetes", map[string]any{"host": "gpu-01"}), clock: true},
	{name: "vector", wrap: objectOf("file", "/var/log/train.log", "host", "gpu-01", "message", text, "source_type", "file", "timestamp", stamp), clock: true},
	{name: "vector, Kubernetes", wrap: objectOf("kubernetes", map[string]any{"host": "gpu-01"}, "message", text, "source_type", "kubernetes_logs", "timestamp", stamp), clock: true},
	{name: "zap", wrap: objectOf("level", "info", "ts", seconds, "caller", "run/main.go:12", "msg", text), clock: true},
	{name: "structlog", wrap: objectOf("event", text, "level", "info", "timestamp", stamp), clock: true},
	{name: "logging to JSON", wrap: objectOf("ts", func(at time.Time, _ string) any { return at.Format("2006-01-02 15:04:05,000") }, "level", "INFO", "msg", text)},
	{name: "loguru, serialize", wrap: objectOf("text", ended, "record", loguru), clock: true},
	{name: "ts", wrap: printf("TIME LINE", "Jan 02 15:04:05")},
	{name: "ts with a format", wrap: printf("[TIME] LINE", "2006-01-02 15:04:05.000000"), clock: true},
	{name: "ts -i", wrap: printf("0.023711 LINE", "")},
	{name: "ts -s", wrap: printf("TIME LINE", "15:04:05.000000")},
	{name: "script", wrap: printf("LINE\r", "")},
	{name: "kubectl --prefix of docker json-file", clock: true, host: "train-worker-0", wrap: func(at time.Time, inner string) string {
		return "[pod/train-worker-0/pytorch] " + objectOf("log", ended, "stream", "stdout", "time", stamp)(at, inner)
	}},
	{name: "mpirun in docker json-file", clock: true, rank: "3", wrap: func(at time.Time, inner string) string {
		return objectOf("log", ended, "stream", "stdout", "time", stamp)(at, "[1,3]<stdout>:"+inner)
	}},
	{name: "zap in docker json-file", clock: true, wrap: func(at time.Time, inner string) string {
		return objectOf("log", ended, "stream", "stdout", "time", stamp)(at, objectOf("level", "info", "ts", seconds, "msg", text)(at, inner))
	}},
	{name: "CRI of torchrun of the journal", clock: true, wrap: func(at time.Time, inner string) string {
		return objectOf("MESSAGE", bytesOf, "__REALTIME_TIMESTAMP", micros, "_HOSTNAME", "gpu-01")(at, at.Format(nine)+" stdout F [default3]:"+inner)
	}},
}

// family is a format of records, as printed by a trainer.
type family struct {
	name  string
	lines []string
	// bar: lines are drawn over each other, with carriage returns between them.
	bar   bool
	stamp bool // records have a clock of their own
	steps int
}

func drawn(n int, postfix string) string {
	return fmt.Sprintf("Epoch 0: %3d%%|█████     | %d/25 [00:0%d<00:03,  7.20it/s%s]", 4*n, n, n%10, postfix)
}

var families = []family{
	{name: "nanoGPT", steps: 3, lines: []string{
		"tokens per iteration will be: 16,384", "number of parameters: 10.65M", "step 0: train loss 4.2874, val loss 4.2823",
		"iter 0: loss 4.2000, time 34.33ms, mfu -100.00%", "iter 10: loss 4.0800, time 35.05ms, mfu -100.00%", "iter 20: loss 3.9600, time 34.96ms, mfu 10.05%",
	}},
	{name: "JSONL", steps: 3, lines: []string{
		"starting the job", "again a line of text", `{"step": 1, "loss": 2.3, "step_time": 0.5152}`, `{"step": 2, "loss": 2.25, "step_time": 0.5}`,
		`{"step": 3, "loss": 2.2, "step_time": 0.5089}`,
	}},
	{name: "Composer", steps: 2, lines: []string{
		"starting the job", "again a line of text",
		"[batch=4/6]:", "\t Train time/epoch: 0", "\t Train time/batch: 3", "\t Train loss/train/total: 16.1129", "\t Train throughput/batches_per_sec: 4.5000",
		"[batch=5/6]:", "\t Train time/epoch: 0", "\t Train time/batch: 4", "\t Train loss/train/total: 14.7100", "\t Train throughput/batches_per_sec: 4.0000",
	}},
	{name: "plain", steps: 3, lines: []string{
		"starting the job", "again a line of text", "step 39 loss 0.6881 time 0.055s", "step 40 loss 0.6870 time 0.054s", "step 41 loss 0.6860 time 0.155s",
	}},
	{name: "Megatron", steps: 2, stamp: true, lines: []string{
		"starting the job", "again a line of text",
		" [2026-08-03 09:14:22] iteration       10/     100 | consumed samples:          160 | elapsed time per iteration (ms): 15100.4 | " +
			"learning rate: 1.000000E-04 | global batch size:    16 | lm loss: 9.870000E+00 | loss scale: 1.0 | grad norm: 1.100 |",
		" [2026-08-03 09:16:52] iteration       20/     100 | consumed samples:          320 | elapsed time per iteration (ms): 15000.0 | " +
			"learning rate: 1.000000E-04 | global batch size:    16 | lm loss: 8.870000E+00 | loss scale: 1.0 | grad norm: 1.100 |",
	}},
	{name: "Hugging Face", steps: 3, lines: []string{
		"starting the job", "again a line of text", "{'loss': 2.5, 'step': 10, 'step_time': 0.5, 'epoch': 0.1}", "{'loss': 2.4, 'step': 20, 'step_time': 0.25, 'epoch': 0.2}",
		"{'loss': 2.3, 'step': 30, 'step_time': 0.75, 'epoch': 0.3}",
	}},
	{name: "Lightning's bar", steps: 3, bar: true, lines: []string{
		drawn(0, ""), drawn(1, ""), drawn(1, ", v_num=0, train_loss=2.300"), drawn(2, ", v_num=0, train_loss=2.300"), drawn(2, ", v_num=0, train_loss=2.250"),
		drawn(3, ", v_num=0, train_loss=2.250"), drawn(3, ", v_num=0, train_loss=2.200"),
	}},
}

var began = time.Date(2026, 8, 3, 9, 14, 22, 776_244_000, time.UTC)

// in is the log of a family in a wrapper.
func (f *family) in(w *wrapper) string {
	lines := f.lines
	if f.bar {
		lines = []string{"starting the job", "again a line of text", "\r" + strings.Join(f.lines, "\r")}
		if w.frames {
			lines = append(lines[:2], f.lines...)
		}
	}
	var b strings.Builder
	for i, l := range lines {
		b.WriteString(w.wrap(began.Add(time.Duration(i)*357*time.Millisecond), l))
		b.WriteByte('\n')
	}
	return b.String()
}

// enveloped is the content of a record, in any wrapper.
type enveloped struct{ iteration, loss, source, duration string }

func steps(r *filereceivertest.Result, durations bool) (out []enveloped) {
	for _, s := range r.All(spans.SpanStep) {
		one := enveloped{attr(s, spans.AttrIteration), attr(s, spans.AttrLoss), attr(s, spans.AttrSource), ""}
		if took := filereceivertest.Took(s); durations && !math.IsNaN(took) {
			one.duration = fmt.Sprintf("%.6f", took)
		}
		out = append(out, one)
	}
	return out
}

func hosts(r *filereceivertest.Result) (out []string) {
	for _, td := range r.Traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			if v, ok := rs.Resource().Attributes().Get(spans.AttrHostName); ok {
				out = append(out, v.Str())
			}
		}
	}
	return out
}

// Each wrapper around each format: the records are those of the bare log.
func TestWrappers(t *testing.T) {
	naked := wrapper{wrap: func(_ time.Time, inner string) string { return inner }}
	for i := range families {
		f := &families[i]
		bare := steps(read(t, nil, write(t, "bare.log", f.in(&naked))), true)
		require.Len(t, bare, f.steps, f.name)
		for i := range wrappers {
			w := &wrappers[i]
			if f.bar && w.lacks != "" {
				continue
			}
			t.Run(f.name+"/"+w.name, func(t *testing.T) {
				path := write(t, "enveloped.log", f.in(w))
				require.NoError(t, os.Chtimes(path, time.Time{}, began.Add(time.Hour))) // a time without a year is before the file time
				r := read(t, nil, path)
				assert.Equal(t, bare, steps(r, true))
				if w.host != "" && !f.bar {
					assert.Contains(t, hosts(r), w.host)
				}
				for _, s := range r.All(spans.SpanStep) {
					if f.bar && !w.frames && !strings.HasPrefix(w.wrap(began, "x"), "{") {
						continue // only the first drawing of a bar has the prefix: a carriage return ends a line here, and none for the wrapper
					}
					if w.rank != "" {
						assert.Equal(t, w.rank, attr(s, spans.AttrRank))
					}
					if w.clock && !f.stamp {
						assert.Less(t, s.EndTimestamp().AsTime().Sub(began).Abs(), 10*time.Second)
					}
				}
			})
		}
	}
}

// Runtimes of containers cut long lines into pieces, of two streams at a time.
func TestPieces(t *testing.T) {
	row := func(i int) string {
		return fmt.Sprintf(`{"step": %d, "loss": %g, "step_time": 0.5, "note": %q}`, i, 2.5-float64(i)/10, strings.Repeat("x\"", 10_000))
	}
	var bare, cri, docker strings.Builder
	for i := 1; i <= 3; i++ {
		inner := row(i)
		bare.WriteString(inner + "\n")
		at := began.Add(time.Duration(i) * time.Second).Format(nine)
		for len(inner) > 0 {
			piece := inner[:min(len(inner), 16<<10)]
			inner = inner[len(piece):]
			mark, end := "P", ""
			if inner == "" {
				mark, end = "F", "\n"
			}
			fmt.Fprintf(&cri, "%s stdout %s %s\n%s stderr P a word of another line\n", at, mark, piece, at)
			text, err := json.Marshal(piece + end)
			require.NoError(t, err)
			fmt.Fprintf(&docker, `{"log":%s,"stream":"stdout","time":%q}`+"\n", text, at)
		}
	}
	want := steps(read(t, nil, write(t, "bare.log", bare.String())), false)
	require.Len(t, want, 3)
	for name, text := range map[string]string{"CRI": cri.String(), "docker": docker.String()} {
		assert.Equal(t, want, steps(read(t, nil, write(t, "pieces.log", text)), false), name)
	}
}

// Records printed without a line's end between them.
func TestPasted(t *testing.T) {
	r := read(t, nil, write(t, "pasted.log", "step 1 loss 2.31\nstep 2 loss 2.29step 3 loss 2.27\nstep: 4, loss: 2.25step: 5, loss: 2.23step: 6, loss: 2.21\nstep 7 loss 2.19\n"))
	var got []string
	for _, s := range steps(r, false) {
		got = append(got, s.iteration+" "+s.loss)
	}
	assert.Equal(t, []string{"1 2.31", "2 2.29", "3 2.27", "4 2.25", "5 2.23", "6 2.21", "7 2.19"}, got)
}
