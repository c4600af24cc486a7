package train

import (
	"context"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// printer writes the log of a format. Errors stick in the sink.
type printer interface {
	// open creates the files and writes everything before the first record.
	open() error
	step(s *trainStep)
	// eval follows its step.
	eval(s *trainStep, loss, seconds float64)
	// close writes the end of the log. It is not called after an error.
	close()
}

// log is common to the printers: the files, and the truth of the current record.
type log struct {
	writer.Sink
	opt   *Options
	sim   *simulation
	rng   *rand.Rand // for values that a format makes up; the simulation has its own
	run   Run
	out   io.Writer
	known bool // the truth is written
	rec   Record
	count map[string]int64 // records by file
}

// Generate writes a training log and its truth, and returns the summary. A context that ends stops it early without an error. Errors about the options wrap
// ErrOptions.
func Generate(ctx context.Context, opt Options, stdout io.Writer) (Run, error) {
	return generate(ctx, opt, stdout, logfile.RealClock)
}

func generate(ctx context.Context, opt Options, stdout io.Writer, c logfile.Clock) (Run, error) {
	if err := opt.validate(); err != nil {
		return Run{}, err
	}
	start := opt.Start.UnixNano()
	if opt.Start.IsZero() {
		start = c.Now().UnixNano()
		if opt.Rate == 0 {
			start -= span(&opt)
		}
	}
	l := &log{
		Sink: writer.Sink{Sink: logfile.Sink{Clock: c, Paced: opt.Rate > 0, Ctx: ctx}}, opt: &opt, sim: newSim(&opt, start), out: stdout,
		rng: rand.New(rand.NewPCG(opt.Seed, 0x7072_696e_7465_7273)), known: opt.truthPath() != "", count: map[string]int64{},
	}
	l.describe(start)
	p := l.printer()
	err := p.open()
	if err == nil {
		err = l.OpenTruth(opt.truthPath())
	}
	if err == nil {
		l.steps(p)
		err = l.Err
	}
	l.run.Lines, l.run.LineCounts = l.Counts()
	err = l.Close(&l.run, &l.run.Files, err)
	return l.run, err
}

func (l *log) printer() printer {
	switch l.opt.Format {
	case FormatFlagScale:
		return &flagscale{log: l}
	case FormatMegatron:
		return &megatron{log: l}
	case FormatHF:
		return &hf{log: l}
	case FormatVerl:
		return &verl{log: l}
	}
	if t := trainers[l.opt.Format]; t != nil {
		return &console{log: l, trainer: t}
	}
	return &jsonl{log: l}
}

func (l *log) steps(p printer) {
	var s trainStep
	for i := 0; l.opt.Steps == 0 || i < l.opt.Steps; i++ {
		l.sim.next(&s)
		l.Wait(s.end)
		if l.Err != nil || l.Ctx.Err() != nil {
			break
		}
		l.run.Steps++
		l.run.EndUnixNano = s.end
		p.step(&s)
		if l.sim.evaluates() {
			loss, seconds := l.sim.eval()
			l.Wait(l.sim.now)
			l.run.EndUnixNano = l.sim.now
			p.eval(&s, loss, seconds)
		}
	}
	if l.Err == nil {
		p.close()
	}
}

// span simulates a run without writing, to learn its duration.
func span(opt *Options) int64 {
	sim := newSim(opt, 0)
	var s trainStep
	for range opt.Steps {
		sim.next(&s)
		if sim.evaluates() {
			sim.eval()
		}
	}
	return sim.now
}

func (l *log) describe(start int64) {
	m := &l.sim.model
	l.run = Run{
		Format: l.opt.Format, Seed: l.opt.Seed, Spans: map[string]int64{}, Device: device, Peak: devicePeak,
		FlopsMegatron: l.sim.flops(), FlopsFlagScale: flagscaleFlops(m, float64(m.GlobalBatchSize)),
		StartUnixNano: start, EndUnixNano: start,
		Model: map[string]any{
			"type": m.Type, "num_layers": m.NumLayers, "hidden_size": m.HiddenSize, "num_attention_heads": m.AttentionHeads, "num_query_groups": m.QueryGroups,
			"kv_channels": m.KVChannels, "ffn_hidden_size": m.FFNHiddenSize, "seq_length": m.SeqLength, "padded_vocab_size": m.PaddedVocabSize,
			"vocab_size": m.VocabSize, "global_batch_size": m.GlobalBatchSize, "world_size": m.WorldSize, "data_parallel_size": m.DataParallelSize,
			"swiglu": m.SwiGLU,
		},
	}
}

// file opens a log: --out itself, or a file of the name in it.
func (l *log) file(name string) (*logfile.Log, error) {
	return l.OpenLog(l.opt.Out, l.opt.Format == FormatFlagScale || writer.IsDir(l.opt.Out), name, l.opt.truthPath(), l.out)
}

// begin starts the truth of a record.
func (l *log) begin(f *logfile.Log, kind string, s *trainStep) {
	if !l.known {
		return
	}
	name := filepath.Base(f.Path)
	l.count[name]++
	l.rec = Record{
		Kind: kind, File: name, Record: l.count[name], Step: s.n, TrueEndUnixNano: s.end, Slow: s.slow && kind == KindStep,
		Printed: map[string]string{}, Values: map[string]Number{},
	}
}

// note adds a field whose text was just printed. attr may be empty: the field has no place among the attributes.
func (l *log) note(name, attr string, text []byte, scale float64) {
	if !l.known {
		return
	}
	l.rec.Printed[name] = string(text)
	if attr == "" {
		return
	}
	if v, err := strconv.ParseFloat(strings.ReplaceAll(string(text), ",", ""), 64); err == nil {
		l.rec.Values[attr] = Number(v * scale)
		if attr == spans.AttrIteration {
			l.rec.Iteration = int64(v)
		}
	}
}

func (l *log) stage(name string, seconds, least float64) {
	if l.known {
		l.rec.Stages = append(l.rec.Stages, Stage{Name: name, Seconds: seconds, Min: least})
	}
}

// covered says how many steps the record is about, and their time.
func (l *log) covered(steps, ns int64) {
	l.rec.StepsCovered, l.rec.TrueDuration = steps, float64(ns)/1e9
}

// clocked sets the meaning of the record's stamp, at the precision of the print.
func (l *log) clocked(end int64, precision time.Duration) {
	l.rec.EndUnixNano = end - end%int64(precision)
}

// end writes the truth of the record.
func (l *log) end() {
	if !l.known {
		return
	}
	r := &l.rec
	if d, ok := r.Values[spans.AttrStepDuration]; ok && d > 0 && r.Kind == KindStep {
		r.MFU = l.run.FlopsMegatron / (float64(d) * devicePeak * float64(l.opt.WorldSize))
	}
	l.run.Spans[r.Kind]++
	if n := len(r.Stages); n > 0 {
		l.run.Spans["stages"] += int64(n)
	}
	if err := l.Truth(r); err != nil && l.Err == nil {
		l.Err = err
	}
}
