package train

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// flagscale writes the logs of FlagScale's perf_monitor: flagscale/train/perf_monitor/{perf_metrics,perf_logger}.py as merged (lzy-edu/FlagScale @c3e88361) or
// of the branch douzi (xiaodouzi666/FlagScale-new-feature @e5899478).
type flagscale struct {
	*log
	metrics, realtime *logfile.Log
	stamp             logfile.Stamps
	rule              int    // characters of the rules
	started           string // the stamp in the file names
	session           int
	times             []int64 // of the session's steps, ns
	window            window  // the later half of times
	shortest, longest int64
	last              row // the latest figures
	peak              float64
	rows              bytes.Buffer // of the summary
	entries           int
	before            int64 // the step of the previous record
	beforeEnd         int64
}

type row struct {
	perGPU, total, samples, tokens, ms float64
}

func (p *flagscale) open() error {
	p.stamp.Loc = p.opt.Timezone
	p.rule = 96
	if p.opt.Writer == "douzi" {
		p.rule = 80
	}
	var err error
	p.realtime, err = p.file("perf_realtime.log")
	if err != nil {
		return err
	}
	return p.begins(p.sim.now)
}

// begins opens the files of a session.
func (p *flagscale) begins(at int64) (err error) {
	p.session++
	p.started = time.Unix(0, at).In(p.opt.Timezone).Format("20060102_150405")
	p.metrics, err = p.file("perf_metrics_" + p.started + ".log")
	if err != nil {
		return err
	}
	p.times, p.window, p.shortest, p.longest = p.times[:0], window{}, 0, 0
	p.rows.Reset()
	p.entries, p.peak = 0, 0
	p.beforeEnd = at
	for _, f := range []*logfile.Log{p.metrics, p.realtime} {
		p.Line(f, []byte(strings.Repeat("=", p.rule)), logfile.Ignored)
		p.Line(f, p.stamp.AppendSeconds([]byte("Performance Monitor Session Started: "), at), logfile.Ignored)
		p.Line(f, []byte(strings.Repeat("=", p.rule)), logfile.Ignored)
		p.Line(f, []byte("Timestamp            Step     TFLOPS/GPU   TFLOPS     Samples/s    Tokens/s     Time(ms)   Memory(GB)"), logfile.Ignored)
		p.Line(f, []byte(strings.Repeat("-", p.rule)), logfile.Ignored)
	}
	return p.Err
}

func (p *flagscale) step(s *trainStep) {
	if s.restarted {
		p.Err = p.restart(s.end - s.took)
		if p.Err != nil {
			return
		}
	}
	// perf_metrics.py: statistics.median(step_times[len(step_times) // 2:])
	p.times = append(p.times, s.took)
	p.window.add(s.took)
	if n := len(p.times); n%2 == 0 {
		p.window.remove(p.times[n/2-1])
	}
	if p.shortest == 0 || s.took < p.shortest {
		p.shortest = s.took
	}
	p.longest = max(p.longest, s.took)
	p.peak = max(p.peak, s.peak)
	if s.n == 1 || s.n%int64(p.opt.Interval) == 0 {
		p.row(s)
	}
}

// restart begins a new session; the session before was killed, without a summary. perf_realtime.log is truncated.
func (p *flagscale) restart(at int64) error {
	if err := p.realtime.Close(); err != nil {
		return err
	}
	f, err := os.Create(p.realtime.Path)
	if err != nil {
		return err
	}
	p.realtime.F = f
	p.realtime.W.Reset(f)
	p.realtime.File = logfile.File{Path: p.realtime.Path}
	return p.begins(at)
}

func (p *flagscale) batch() float64 {
	m := &p.sim.model
	if p.opt.DPOmitted {
		return float64(m.GlobalBatchSize / m.DataParallelSize)
	}
	return float64(m.GlobalBatchSize)
}

func (p *flagscale) figures() {
	seconds := p.window.median() / 1e9
	total := flagscaleFlops(&p.sim.model, p.batch()) / (1e12 * seconds)
	samples := p.batch() / seconds
	p.last = row{total / float64(p.opt.WorldSize), total, samples, samples * float64(p.sim.model.SeqLength), seconds * 1e3}
}

func (p *flagscale) row(s *trainStep) {
	p.figures()
	p.begin(p.metrics, KindStep, s)
	p.rec.Session = p.session
	p.covered(s.n-p.before, s.end-p.beforeEnd)
	p.clocked(s.end, time.Second)
	p.before, p.beforeEnd = s.n, s.end

	stamp := string(p.stamp.AppendSeconds(nil, s.end))
	b := p.Text(stamp)
	p.note("timestamp", "", b, 1)
	b = append(writer.PadRight(b, 0, 20), ' ')
	from := len(b)
	b = strconv.AppendInt(b, s.n, 10)
	p.note("iteration", spans.AttrIteration, b[from:], 1)
	b = writer.PadRight(b, from, 8)
	b = p.cell(b, "TFLOPS_per_GPU", spans.AttrDeviceFlopThroughputReported, p.last.perGPU, 2, 12, 1e12)
	b = p.cell(b, "TFLOPS_total", spans.AttrFlopThroughputReported, p.last.total, 2, 10, 1e12)
	b = p.cell(b, "samples_per_sec", spans.AttrSampleThroughput, p.last.samples, 1, 12, 1)
	b = p.cell(b, "tokens_per_sec", spans.AttrTokenThroughput, p.last.tokens, 0, 12, 1)
	b = p.cell(b, "step_time_ms", spans.AttrStepDuration, p.last.ms, 1, 10, 1e-3)
	b = p.cell(b, "memory_GB", spans.AttrMemoryUsage, s.memory/gib, 2, 10, 1<<30)
	text := bytes.Clone(b)
	p.Line(p.metrics, b, logfile.Record)
	p.Line(p.realtime, text, logfile.Record)
	if p.opt.Breakdown {
		p.breakdown(s.n)
	}
	p.end()
	p.entry(s, stamp)
}

func (p *flagscale) cell(b []byte, name, attr string, v float64, decimals, width int, scale float64) []byte {
	b = append(b, ' ')
	from := len(b)
	b = strconv.AppendFloat(b, v, 'f', decimals, 64)
	p.note(name, attr, b[from:], scale)
	return writer.PadRight(b, from, width)
}

// breakdown prints counts of FLOPs under the name of TFLOPS, as the original does.
func (p *flagscale) breakdown(n int64) {
	total := flagscaleFlops(&p.sim.model, p.batch())
	b := p.Text("Estimated FLOPS Breakdown (Iteration ")
	p.Line(p.metrics, append(strconv.AppendInt(b, n, 10), "):"...), logfile.Side)
	for _, part := range []struct {
		name, attr string
		flops      float64
	}{
		{"forward", spans.AttrFlopCountForward, total / 3},
		{"backward", spans.AttrFlopCountBackward, 2 * (total / 3)},
		{"optimizer", spans.AttrFlopCountOptimizer, 0},
		{"total", spans.AttrFlopCountReported, total},
	} {
		b := p.Text("  ", part.name, ": ")
		from := len(b)
		b = strconv.AppendFloat(b, part.flops/1e12, 'f', 2, 64)
		p.note(part.name, part.attr, b[from:], 1e12)
		p.Line(p.metrics, append(b, " TFLOPS"...), logfile.Side)
	}
}

// entry keeps the row for the summary.
func (p *flagscale) entry(s *trainStep, stamp string) {
	b := p.rows.AvailableBuffer()
	if p.entries > 0 {
		b = append(b, ',')
	}
	p.entries++
	b = append(b, "\n    {\n      \"iteration\": "...)
	b = strconv.AppendInt(b, s.n, 10)
	b = append(b, ",\n      \"timestamp\": \""...)
	b = append(append(b, stamp...), '"')
	for _, f := range []struct {
		name string
		v    float64
	}{
		{"TFLOPS_per_GPU", p.last.perGPU},
		{"TFLOPS_total", p.last.total},
		{"samples_per_sec", p.last.samples},
		{"tokens_per_sec", p.last.tokens},
		{"step_time_ms", p.last.ms},
		{"memory_GB", s.memory / gib},
		{"peak_memory_GB", p.peak / gib},
	} {
		b = append(append(append(b, ",\n      \""...), f.name...), "\": "...)
		b = writer.AppendJSONRepr(b, f.v)
	}
	b = append(b, "\n    }"...)
	p.rows.Write(b)
}

func (p *flagscale) eval(*trainStep, float64, float64) {}

// close writes the summary of the last session.
func (p *flagscale) close() {
	if len(p.times) == 0 {
		return
	}
	p.figures()
	end := time.Unix(0, p.run.EndUnixNano).In(p.opt.Timezone)
	path := filepath.Join(p.opt.Out, "perf_summary_"+p.started+".json")
	total := len(p.times)
	if p.opt.Writer == "douzi" {
		total = p.entries
		p.Line(p.metrics, nil, logfile.Ignored)
		p.Line(p.metrics, []byte(strings.Repeat("=", p.rule)), logfile.Ignored)
		p.Line(p.metrics, p.stamp.AppendSeconds([]byte("Performance Monitor Session Completed: "), end.UnixNano()), logfile.Ignored)
		p.Line(p.metrics, []byte("Summary saved to: "+path), logfile.Ignored)
		p.Line(p.metrics, []byte(strings.Repeat("=", p.rule)), logfile.Ignored)
	}
	f, err := p.file(filepath.Base(path))
	if err != nil {
		p.Err = err
		return
	}
	s := trainStep{n: p.before, end: p.run.EndUnixNano}
	p.begin(f, KindSummary, &s)
	p.rec.Session = p.session
	p.clocked(end.UnixNano(), time.Microsecond)
	b := p.Text("{\n  \"session_info\": {\n    \"start_time\": \"")
	b = append(append(b, p.started...), "\",\n    \"end_time\": \""...)
	b = append(end.AppendFormat(b, "2006-01-02T15:04:05.000000-07:00"), "\",\n    \"total_iterations\": "...)
	b = append(strconv.AppendInt(b, int64(total), 10), "\n  },\n  \"final_statistics\": {"...)
	for i, st := range []struct {
		name, attr string
		v, scale   float64
	}{
		{"avg_tflops_per_gpu", spans.AttrDeviceFlopThroughputReported, p.last.perGPU, 1e12},
		{"avg_tflops_total", spans.AttrFlopThroughputReported, p.last.total, 1e12},
		{"avg_step_time_ms", spans.AttrStepDuration, p.last.ms, 1e-3},
		{"min_step_time_ms", "", float64(p.shortest) / 1e6, 1},
		{"max_step_time_ms", "", float64(p.longest) / 1e6, 1},
		{"peak_memory_gb", spans.AttrMemoryPeak, p.peak / gib, 1 << 30},
	} {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, "\n    \""...), st.name...), "\": "...)
		from := len(b)
		b = writer.AppendJSONRepr(b, st.v)
		p.note(st.name, st.attr, b[from:], st.scale)
	}
	b = append(b, "\n  },\n  \"iteration_logs\": ["...)
	b = append(b, p.rows.Bytes()...)
	b = append(b, "\n  ]\n}"...)
	f.Lines, f.Records = int64(bytes.Count(b, []byte("\n"))+1), 1
	f.Sides = f.Lines - 1
	if _, err := f.W.Write(b); err != nil {
		p.Err = err
	}
	p.end()
}
