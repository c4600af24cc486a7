package trainlogreceiver

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// read reads files whole and checks the accounts.
func read(t *testing.T, change func(*Config), paths ...string) *filereceivertest.Result {
	t.Helper()
	return readWith(t, receivertest.NewNopSettings(metadata.Type), change, paths...)
}

func readWith(t *testing.T, set receiver.Settings, change func(*Config), paths ...string) *filereceivertest.Result {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Include, cfg.RunID, cfg.Timezone = paths, "run", "UTC"
	if change != nil {
		change(cfg)
	}
	return filereceivertest.Read(t, set, cfg, makeParts)
}

var write, fixture, attr = filereceivertest.Write, filereceivertest.Fixture, filereceivertest.Attr

func attrs(list []ptrace.Span, name string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = attr(s, name)
	}
	return out
}

// points lists the gauges of a name.
func points(b *filereceivertest.Result, name string) []float64 {
	var out []float64
	for _, md := range b.Metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if m.Name() == name {
						for _, dp := range m.Gauge().DataPoints().All() {
							out = append(out, dp.DoubleValue())
						}
					}
				}
			}
		}
	}
	return out
}

// waterfall draws the spans as text, one a line, in order of arrival.
func waterfall(b *filereceivertest.Result) string {
	children := map[pcommon.SpanID][]ptrace.Span{}
	var roots []ptrace.Span
	for _, s := range b.All("") {
		switch {
		case s.Name() == spans.SpanRun:
		case s.ParentSpanID().IsEmpty() || s.Name() == spans.SpanSummary:
			roots = append(roots, s)
		default:
			children[s.ParentSpanID()] = append(children[s.ParentSpanID()], s)
		}
	}
	var w bytes.Buffer
	var draw func(s ptrace.Span, indent string)
	draw = func(s ptrace.Span, indent string) {
		fmt.Fprintf(
			&w, "%s%s %s +%.6f", indent, s.Name(), s.StartTimestamp().AsTime().Format("15:04:05.000000"),
			s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()).Seconds(),
		)
		var attrs []string
		for k, v := range s.Attributes().All() {
			if k != spans.AttrStage && k != spans.AttrStageOrder {
				attrs = append(attrs, strings.NewReplacer("ml.train.", "", "trainbridge.", "").Replace(k)+"="+v.AsString())
			}
		}
		sort.Strings(attrs)
		fmt.Fprintf(&w, " %s\n", strings.Join(attrs, " "))
		for _, c := range children[s.SpanID()] {
			draw(c, indent+"  ")
		}
	}
	for _, s := range roots {
		draw(s, "")
	}
	return w.String()
}

var fixtures = []string{
	"jsonl.log", "nasty.log", "ranks.log", "hf.log", "trainer_state.json", "deepspeed.log", "megatron.log", "megatron_ranks.log", "torchtitan.log", "nemo.log",
	"verl.log", "filelogger.jsonl", "mixed.log", "ids.log",
	"trainers/lightning.log", "trainers/lightning_metrics.csv", "trainers/nemo1.log", "trainers/composer.log", "trainers/composer_file.txt",
	"trainers/composer_bar.log", "trainers/torchtune.txt", "trainers/nanogpt.log", "trainers/nanochat.log",
	"trainers/litgpt.log", "trainers/litgpt_metrics.csv", "trainers/openrlhf.log", "trainers/openrlhf_ppo.log", "trainers/others.log", "trainers/table.csv",
	"trainers/xgboost.log", "trainers/modded_nanogpt.log", "trainers/mlx_lm.log", "trainers/imagenet.log", "trainers/timm.log",
	"trainers/metriclogger.log", "trainers/mmengine.log", "trainers/detectron2.log",
	"trainers/word_language_model.log", "trainers/fairseq.log", "trainers/loop.log",
	"trainers/maxtext.log", "trainers/paddlenlp.log",
	"trainers/olmo.log", "trainers/olmo_core.log", "trainers/nemo_rl.log", "trainers/roll.log", "trainers/sb3.log", "trainers/block.log",
	"trainers/console_table.log", "trainers/rich.log", "trainers/areal.log", "trainers/yolo.log",
	"trainers/keras.log", "trainers/slime.log", "trainers/tqdm.log", "trainers/hf_stalls.log", "trainers/lightning_stalls.log",
	"trackers/lightning.tfevents", "trackers/hf.wandb", "trackers/gpu.wandb",
}

func TestGolden(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			b := read(t, nil, fixture(t, name))
			base := filepath.Join("testdata", strings.TrimSuffix(name, filepath.Ext(name)))
			filereceivertest.GoldenText(t, base+".waterfall.txt", waterfall(b))
			b.Golden(t, base)
		})
	}
}

func TestAccounts(t *testing.T) {
	for name, want := range map[string]tail.Counts{
		"jsonl.log":          {Records: 5, Ignored: map[string]int64{"not_a_record": 1, "event": 1}},
		"nasty.log":          {Records: 11, Ignored: map[string]int64{"not_a_record": 1, "progress_bar": 1}, Rejected: map[string]int64{"bad_json": 1}},
		"ranks.log":          {Records: 5},
		"hf.log":             {Records: 9, Ignored: map[string]int64{"not_a_record": 2, "progress_bar": 1, "empty": 2}, Rejected: map[string]int64{"bad_dict": 1}},
		"trainer_state.json": {Records: 1},
		"filelogger.jsonl":   {Records: 3},
		"mixed.log":          {Records: 6, Ignored: map[string]int64{"not_a_record": 1}},
	} {
		b := read(t, nil, fixture(t, name))
		if want.Ignored == nil {
			want.Ignored = map[string]int64{}
		}
		if want.Rejected == nil {
			want.Rejected = map[string]int64{}
		}
		assert.Equal(t, want.Records, b.Counts.Records, name)
		assert.Equal(t, want.Ignored, b.Counts.Ignored, name)
		assert.Equal(t, want.Rejected, b.Counts.Rejected, name)
	}
}

// A configured format ignores records of other formats.
func TestFormats(t *testing.T) {
	for format, sources := range map[string][]string{
		"auto": {
			"jsonl", "deepspeed", "jsonl", "hf", "verl", "jsonl",
		}, "jsonl": {"jsonl", "jsonl", "hf", "jsonl"}, "hf": {"hf"}, "deepspeed": {"deepspeed"}, "verl": {"verl"},
		"megatron": {}, "torchtitan": {}, "nemo": {}, "nanogpt": {}, "nanochat": {}, "litgpt": {}, "torchtune": {}, "composer": {}, "openrlhf": {}, "tqdm": {},
		"slime": {}, "csv": {}, "keyvalue": {},
	} {
		b := read(t, func(c *Config) { c.Format = format }, fixture(t, "mixed.log"))
		assert.ElementsMatch(t, sources, attrs(b.All(spans.SpanStep), spans.AttrSource), format)
		assert.Equal(t, map[string]int64{"not_a_record": int64(7 - len(sources))}, b.Counts.Ignored, format)
	}
	for format, name := range map[string]string{
		"jsonl": "jsonl.log", "hf": "hf.log", "deepspeed": "deepspeed.log", "megatron": "megatron.log", "torchtitan": "torchtitan.log", "nemo": "nemo.log",
		"verl": "verl.log",
	} {
		auto := waterfall(read(t, nil, fixture(t, name)))
		assert.NotEmpty(t, auto)
		assert.Equal(t, auto, waterfall(read(t, func(c *Config) { c.Format = format }, fixture(t, name))), "%s, set and found out", format)
	}
}

// A log may have W&B's samples of GPUs alone.
func TestSamplesOfGPUsAlone(t *testing.T) {
	path := filereceivertest.Put(t, t.TempDir(), "wandb.jsonl", `{"_timestamp": 1781260205.5, "system.gpu.0.gpu": 97.0}`+"\n")
	b := read(t, func(c *Config) { c.Format = "jsonl" }, path)
	assert.Equal(t, []float64{0.97}, points(b, spans.AttrGPUUtilization))
	assert.Empty(t, b.Traces.AllTraces())
}

// The samples of the project, where available, with contents counted by eye.
func TestSamples(t *testing.T) {
	logs := filepath.Join("..", "..", "..", "shared", "logs")
	for name, want := range map[string]struct{ records, rejected int64 }{
		"jsonl_seed004/GENERATED_sample_log.jsonl":                     {50, 0},
		"jsonl_seed004/GENERATED_recommended_fields_and_nasties.jsonl": {9, 1},
		"hf_trainer/GENERATED_nasty.log":                               {4, 0},
		"hf_trainer/GENERATED_trainer_state.json":                      {1, 0},
		"hf_trainer/real_ms_swift_glued_to_tqdm.log":                   {1, 0},
		"hf_trainer/real_v4_stdout_dicts.log":                          {5, 0},
		"hf_trainer/real_v5_stdout_stringified.log":                    {3, 0},
		"deepspeed/GENERATED_wall_clock_breakdown.log":                 {3, 0},
		"deepspeed/real_lines.log":                                     {9, 0},
		"torchtitan/GENERATED_ansi.log":                                {1, 0},
		"nemo/real_lines.log":                                          {3, 0},
		"verl_console/GENERATED_filelogger.jsonl":                      {2, 0},
		"verl_console/GENERATED_variants.log":                          {4, 0},
		"megatron_flagscale_stdout/real_flagscale_torchrun_prefix.log": {3, 0},
		"megatron_flagscale_stdout/real_variants.log":                  {2, 0},
		"megatron_flagscale_stdout/GENERATED_full_fields.log":          {7, 0},
	} {
		path := filepath.Join(logs, filepath.FromSlash(name))
		if _, err := os.Stat(path); err != nil {
			continue
		}
		b := read(t, func(c *Config) {
			if strings.HasSuffix(name, ".json") {
				c.Document = c.Include
			}
		}, path)
		rejected := int64(0)
		for _, n := range b.Counts.Rejected {
			rejected += n
		}
		assert.Equal(t, want.records, b.Counts.Records, "%s: %+v", name, b.Counts)
		assert.Equal(t, want.rejected, rejected, "%s: %+v", name, b.Counts)
	}
}

// A log without steps and times: records are numbered, and reading again gives the same ids.
func TestOrdinals(t *testing.T) {
	path := write(t, "seed.jsonl", `{"loss": 2.0, "throughput": 100}`, `{"loss": 1.99, "throughput": 102}`, `{"loss": 1.99, "throughput": 102}`)
	b := read(t, nil, path)
	steps := b.All(spans.SpanStep)
	assert.Equal(t, []string{"1", "2", "3"}, attrs(steps, spans.AttrRecord))
	traces := map[pcommon.TraceID]bool{}
	for i, s := range steps {
		traces[s.TraceID()] = true
		assert.Equal(t, string(spans.TimeSynthetic), attr(s, spans.AttrTimeSource))
		again := read(t, nil, path).All(spans.SpanStep)[i]
		assert.Equal(t, s.TraceID(), again.TraceID())
		assert.Equal(t, s.SpanID(), again.SpanID())
		require.Zero(t, s.Links().Len(), "Jaeger takes a link of a root for its parent")
	}
	assert.Len(t, traces, 3)
	assert.Equal(t, []float64{2, 1.99, 1.99}, points(b, spans.AttrLoss))
	assert.Len(t, b.All(spans.SpanRun), 1)
}

// Ranks that append to one file are distinguished, and share the trace of a step.
func TestRanks(t *testing.T) {
	steps := read(t, nil, fixture(t, "ranks.log")).All(spans.SpanStep)
	assert.Equal(t, []string{"0", "1", "0", "1", "1"}, attrs(steps, spans.AttrRank))
	assert.Equal(t, []string{"", "", "", "", "2"}, attrs(steps, spans.AttrStepsCovered), "steps covered are a rank's own")
	assert.Equal(t, steps[0].TraceID(), steps[1].TraceID())
	assert.NotEqual(t, steps[0].SpanID(), steps[1].SpanID())
	assert.Equal(t, spans.StepTraceID("run", 1), steps[0].TraceID())
}

// A job that goes back to a checkpoint repeats steps: the same traces, other spans.
func TestRestart(t *testing.T) {
	steps := filereceivertest.ByEnd(read(t, nil, write(t, "x.jsonl",
		`{"step": 10, "loss": 2.5, "step_time": 0.5}`, `{"step": 20, "loss": 2.4, "step_time": 0.5}`, `{"step": 30, "loss": 2.3, "step_time": 0.5}`,
		`{"step": 20, "loss": 2.4, "step_time": 0.5}`, `{"step": 30, "loss": 2.3, "step_time": 0.5}`,
	)).All(spans.SpanStep))
	require.Len(t, steps, 5)
	assert.Equal(t, []string{"", "10", "10", "", "10"}, attrs(steps, spans.AttrStepsCovered))
	assert.Equal(t, steps[1].TraceID(), steps[3].TraceID())
	assert.NotEqual(t, steps[1].SpanID(), steps[3].SpanID())
	assert.NotEqual(t, steps[2].SpanID(), steps[4].SpanID())
	assert.Less(t, steps[2].StartTimestamp(), steps[4].StartTimestamp())
}

// Two runs appended to one file, without steps: the numbers of records continue.
func TestAppendedRuns(t *testing.T) {
	run := []string{`{'loss': 2.0, 'epoch': 0.5}`, `{'loss': 1.5, 'epoch': 1.0}`, `{'train_runtime': 10.0, 'train_loss': 1.75, 'epoch': 1.0}`}
	b := read(t, nil, write(t, "x.log", append(run, run...)...))
	steps := b.All(spans.SpanStep)
	assert.Equal(t, []string{"1", "2", "3", "4"}, attrs(steps, spans.AttrRecord))
	ids := map[pcommon.SpanID]bool{}
	for _, s := range steps {
		ids[s.SpanID()] = true
	}
	assert.Len(t, ids, 4)
	assert.Len(t, b.All(spans.SpanSummary), 2)
}

func TestFields(t *testing.T) {
	fields := func(c *Config) {
		c.Fields = map[string]FieldConfig{
			"reward/mean": {Metric: "rl.reward.mean", Unit: "1"}, "seq_s": {Metric: spans.AttrSampleThroughput}, "wait_ms": {
				Metric: "dataloader.wait", Unit: "s", Scale: 0.001,
			},
			"loss": {Metric: "my.loss", Unit: "1"}, "actor/pg_loss": {Metric: spans.AttrLoss},
		}
	}
	b := read(t, fields, write(t, "x.log",
		`{"step": 1, "reward/mean": 0.5, "seq_s": 8, "wait_ms": 250, "loss": 3}`, `{'step': '2', 'reward/mean': '0.75', 'loss': '4'}`, `step:3 - actor/pg_loss:0.25 - reward/mean:1 - timing_s/step:2`))
	assert.Equal(t, []float64{0.5, 0.75, 1}, points(b, "rl.reward.mean"))
	assert.Equal(t, []float64{8}, points(b, spans.AttrSampleThroughput))
	assert.Equal(t, []float64{0.25}, points(b, "dataloader.wait"))
	assert.Equal(t, []float64{3, 4}, points(b, "my.loss"))
	assert.Equal(t, []float64{0.25}, points(b, spans.AttrLoss))
	steps := b.All(spans.SpanStep)
	require.Len(t, steps, 3)
	assert.Equal(t, []string{"0.5", "0.75", "1"}, attrs(steps, spans.AttrTrainFieldPrefix+"reward/mean"))
	assert.Equal(t, []string{"3", "4", ""}, attrs(steps, spans.AttrTrainFieldPrefix+"loss"))
	assert.Equal(t, []string{"", "", "0.25"}, attrs(steps, spans.AttrLoss))
}

// The configured field decides, in every format; trace_id is then an ordinary field.
func TestTraceIDField(t *testing.T) {
	const uuid = "6f1c2b3a-0000-4000-8000-000000000001"
	of := spans.TraceID("", []byte(uuid))
	b := read(t, func(c *Config) { c.TraceIDField = "Batch UUID" }, write(t, "x.log",
		`{"step": 1, "loss": 3, "batch uuid": "`+uuid+`", "trace_id": 7}`, `{'step': 2, 'loss': 4, 'Batch UUID': '`+uuid+`'}`,
		`step=3 loss=2.5 lr=0.1 trace_id=8`, `{"step": 4, "loss": 3, "traceparent": "00-6f1c2b3a000040008000000000000001-00f067aa0ba902b7-01"}`))
	steps := b.All(spans.SpanStep)
	require.Len(t, steps, 4)
	byStep := map[string]pcommon.TraceID{}
	for i, n := range attrs(steps, spans.AttrIteration) {
		byStep[n] = steps[i].TraceID()
	}
	assert.Equal(t, map[string]pcommon.TraceID{"1": of, "2": of, "3": spans.StepTraceID("run", 3), "4": of}, byStep)
	assert.ElementsMatch(t, []string{"7", "", "8", ""}, attrs(steps, spans.AttrTrainFieldPrefix+"trace_id"))
}

// Other formats have ids in their tables and pairs.
func TestIDsOfRows(t *testing.T) {
	const uuid = "6f1c2b3a-0000-4000-8000-000000000001"
	for name, lines := range map[string][]string{
		"x.csv": {"step,loss,lr,trace_id,span_id", "1,2.5,0.1," + uuid + ",00f067aa0ba902b7", "2,2.4,0.1," + uuid + ",00f067aa0ba902b7"},
		"x.log": {
			"step=1 loss=2.5 lr=0.1 trace_id=" + uuid + " span_id=00f067aa0ba902b7", "step=2 loss=2.4 lr=0.1 trace_id=" + uuid + " span_id=00f067aa0ba902b7",
		},
	} {
		steps := read(t, nil, write(t, name, lines...)).All(spans.SpanStep)
		require.Len(t, steps, 2, name)
		for _, s := range steps {
			assert.Equal(t, spans.TraceID("", []byte(uuid)), s.TraceID(), name)
			assert.Equal(t, "00f067aa0ba902b7", s.ParentSpanID().String(), name)
		}
		assert.NotEqual(t, steps[0].SpanID(), steps[1].SpanID(), name)
	}
}

// Numbers that JSON lacks (NaN) are text on spans, and numbers in gauges.
func TestNotFinite(t *testing.T) {
	b := read(t, nil, write(t, "x.jsonl", `{"step": 1, "loss": NaN, "throughput": Infinity, "x": -Infinity}`))
	s := b.All(spans.SpanStep)[0]
	for name, want := range map[string]string{spans.AttrLoss: "NaN", spans.AttrSampleThroughput: "+Inf", spans.AttrTrainFieldPrefix + "x": "-Inf"} {
		v, ok := s.Attributes().Get(name)
		require.True(t, ok)
		assert.Equal(t, pcommon.ValueTypeStr, v.Type())
		assert.Equal(t, want, v.Str())
	}
	assert.True(t, math.IsNaN(points(b, spans.AttrLoss)[0]))
	assert.Equal(t, []float64{math.Inf(1)}, points(b, spans.AttrSampleThroughput))
}

// Records of one line are distinguished, without times and with the number of one step.
func TestSeveralInALine(t *testing.T) {
	steps := read(
		t, nil, write(t, "x.jsonl", `[{"step": 1, "loss": 2}, {"step": 1, "grad_norm": 3}]`, `{'step': 2, 'loss': 2}{'step': 2, 'loss': 4}`),
	).All(spans.SpanStep)
	require.Len(t, steps, 4)
	assert.Equal(t, steps[0].TraceID(), steps[1].TraceID())
	assert.NotEqual(t, steps[0].SpanID(), steps[1].SpanID())
	assert.Equal(t, steps[2].TraceID(), steps[3].TraceID())
	assert.NotEqual(t, steps[2].SpanID(), steps[3].SpanID())
}

// Some loggers write each metric of a step on a separate line, with one time.
func TestMetricByMetric(t *testing.T) {
	steps := read(t, nil, write(t, "x.jsonl", `{"ts": 1781260200, "step": 1, "loss": 2}`, `{"ts": 1781260200, "step": 1, "lr": 1}`)).All(spans.SpanStep)
	require.Len(t, steps, 2)
	assert.Equal(t, steps[0].TraceID(), steps[1].TraceID())
	assert.NotEqual(t, steps[0].SpanID(), steps[1].SpanID())
}

// Records without steps in two notations are different steps.
func TestOrdinalsOfTwoFormats(t *testing.T) {
	steps := read(t, nil, write(t, "x.jsonl", `{"loss": 2}`, `{'loss': 2}`)).All(spans.SpanStep)
	require.Len(t, steps, 2)
	assert.NotEqual(t, steps[0].TraceID(), steps[1].TraceID())
}

// Any line is a record, ignored or rejected, with a reason unless a record. The format of the record before comes first, so each must refuse the others' lines.
func TestNeMoAfterMegatron(t *testing.T) {
	b := read(t, nil, write(t, "x.log",
		"[2026-06-12 10:00:00] iteration        3/     100 | consumed samples:           96 | elapsed time per iteration (ms): 500.0 | lm loss: 2.5E+00 |",
		"[2026-06-12 10:00:01] Training epoch 0, iteration 45/99 | lr: 6.897e-06 | global_step: 45 | reduced_train_loss: 11.96 | train_step_timing in s: 6.08",
	))
	steps := b.All(spans.SpanStep)
	assert.ElementsMatch(t, []string{"megatron", "nemo"}, attrs(steps, spans.AttrSource))
	assert.ElementsMatch(t, []string{"2.5", "11.96"}, attrs(steps, spans.AttrLoss))
	assert.ElementsMatch(t, []string{"", "0.000006897"}, attrs(steps, spans.AttrLearningRate))
}

func TestDroppedFields(t *testing.T) {
	var line strings.Builder
	line.WriteString(`{"loss": 2.5`)
	for i := range 300 {
		fmt.Fprintf(&line, `, "f%d": %d`, i, i)
	}
	b := read(t, nil, write(t, "x.log", line.String()+"}"))
	require.Len(t, b.All(spans.SpanStep), 1)
	assert.EqualValues(t, 300-record.MaxExtra, b.All(spans.SpanStep)[0].DroppedAttributesCount())
}

func FuzzParser(f *testing.F) {
	for _, name := range fixtures {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		mapped := (&Config{Fields: map[string]FieldConfig{"loss": {Metric: "x"}, "a/b": {Metric: spans.AttrLoss}}}).mapped()
		for _, p := range []step.Parser{newParser(formatAuto, nil, nil), newParser(formatAuto, mapped, nil), newDocumentParser(mapped)} {
			out := &noOut{}
			for text := range bytes.SplitSeq(b, []byte("\n")) {
				v, reason := p.Line(text, out)
				if (v == tail.Record) != (reason == "") {
					t.Fatalf("%q: verdict %d, reason %q", text, v, reason)
				}
			}
			p.Restore(p.Save())
		}
	})
}
