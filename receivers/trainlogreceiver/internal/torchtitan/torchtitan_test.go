package torchtitan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/torchtitan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var parser = recordtest.Parser{Source: torchtitan.Source, Parse: torchtitan.Parse}

func TestSamples(t *testing.T) { parser.Samples(t, "torchtitan") }

var seeds = []string{
	"[titan] 2025-10-30 14:32:58,990 - root - INFO - step:  2  loss:  6.1098  grad_norm:  4.6416  memory:  2.49GiB(3.14%)  tps: 177,138  tflops: 96.17  mfu: 9.72%",
	"[titan] 2026-01-16 02:42:36,857 - root - INFO - validate step:  1  loss: 12.4699  memory: 69.81GiB(88.17%)  tps: 74,600",
	"step: 640/644 = 99.3789%  loss: 2.0  tps: 1", "step:  1  loss: nan  mfu: N/A", "step:", "step: /  = ", "step: 1/  =", "step: 1  memory: GiB(%)  loss: 1",
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"[rank0]:" + seeds[0]: `step stamp="2025-10-30 14:32:58,990" iteration=2 loss=6.1098 grad_norm=4.6416 device_tokens/s=177138 device_flop/s=9.617e+13(TFLOP/s) mfu=0.0972(%) mem_reserved_peak=2673617141.76(GiBy) mem_utilization=0.0314(%)`,
		"[rank0]:[titan] 2026-08-21 00:54:17,768 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss: 10.85991  \x1b[38;2;180;60;0mgrad_norm:  2.1345  \x1b[38;2;54;234;195mmemory: 19.45GiB(30.39%)  \x1b[34mtps: 5,941  \x1b[36mtflops: 56.37  \x1b[35mmfu: N/A\x1b[39m": `step stamp="2026-08-21 00:54:17,768" iteration=10 loss=10.85991 grad_norm=2.1345 device_tokens/s=5941 device_flop/s=5.637e+13(TFLOP/s) mem_reserved_peak=20884278476.8(GiBy) mem_utilization=0.3039(%)`,
		// The logger's prefix of before 2025-04 is peeled by bridge/line. tps was called wps, and tflops and grad_norm were missing.
		"2024-10-03 16:44:28,481 - root - INFO - step:  1  loss: 10.8235  memory: 26.73GiB(60.17%)  wps: 1,176  mfu: 16.15%":              `step iteration=1 loss=10.8235 device_tokens/s=1176 mfu=0.1615(%) mem_reserved_peak=28701118955.52(GiBy) mem_utilization=0.6017(%)`,
		"[titan] INFO - step:  1  loss:  7.58945  grad_norm:  9.3716  memory:  0.39GiB(0.13%)  tps: 68      tflops: 1,096.02  mfu: 0.00%": `step iteration=1 loss=7.58945 grad_norm=9.3716 device_tokens/s=68 device_flop/s=1.09602e+15(TFLOP/s) mfu=0(%) mem_reserved_peak=418759311.36(GiBy) mem_utilization=0.0013(%)`,
		seeds[1]: `evaluation stamp="2026-01-16 02:42:36,857" iteration=1 val_loss=12.4699 device_tokens/s=74600 mem_reserved_peak=74957916733.44(GiBy) mem_utilization=0.8817(%)`,
		// Behind other text, with another order of fields, and fields of forks.
		"[N]<-2.0899,-0.9608>[titan] 2026-01-16 02:42:36,857 - root - INFO - step: 99  tps: 1,234,567  lr: 3e-04  epoch_frac: 0.5  loss:     nan  note: hi  mfu: 41.2": `step stamp="2026-01-16 02:42:36,857" iteration=99 loss=NaN lr=0.0003 device_tokens/s=1234567 extra:epoch_frac=0.5 extra:note="hi" extra:mfu="41.2"`,
		"step: 640/644 = 99.3789%  loss:  2.5000  grad_norm:  0.1234  memory: 1.00GiB(1.00%)  tps: 10":                                                                 `step iteration=640 iterations=644 loss=2.5 grad_norm=0.1234 device_tokens/s=10 mem_reserved_peak=1073741824(GiBy) mem_utilization=0.01(%)`,
		"step: 5  loss: 1.0  memory: 1.00GiB  tps: x  grad_norm: 1.0 and then words: 1":                                                                                `step iteration=5 loss=1 grad_norm=1 mem_reserved_peak=1073741824(GiBy) extra:tps="x"`,

		"[titan] 2026-08-21 00:54:17,768 - root - INFO - step: 10  loss: 10.85991  gra":   "!only_loss",
		"[titan] 2026-08-21 00:54:17,768 - root - INFO - step: 10  grad_norm: 10.85991  ": "!no_loss",
		"step: 10  loss: ten  tps: 5": "!no_loss",

		"": "", "step:": "", "step: ": "", "step: 1": "", "step: 10 loss: 1.5 tps: 3": "", "step: x  loss: 1.5  tps: 3": "",
		"step:1 - actor/pg_loss:0.5":         "",
		"global_step: 10  loss: 1.5  tps: 3": "",
		"step:10  loss: 1.5  tps: 3":         "",
		"step: 10  saving checkpoint: now":   "",
		"[titan] 2025-02-13 11:33:29,482 - root - INFO - Training starts at step 1, with local batch size 1": "",
	} {
		assert.Equal(t, want, parser.Line(in), in)
	}
}

// A collection of garbage is within the next logged step: a mean of the steps since the line before, and of several ranks the longest.
func TestCollected(t *testing.T) {
	var p torchtitan.Parser
	line := func(text string) string {
		var rec record.Record
		found, reason := p.Parse([]byte("[titan] 2026-01-16 02:42:36,857 - root - INFO - "+text), &rec)
		assert.Empty(t, reason)
		if !found {
			return ""
		}
		assert.Equal(t, record.Step, rec.Kind)
		if len(rec.Stages) == 0 {
			return "step"
		}
		return fmt.Sprintf("step %s=%g", rec.Stages[0].Name, rec.Stages[0].Seconds)
	}
	step := func(n int) string { return line(fmt.Sprintf("step: %d  loss:  2.5000  tps: 10", n)) }
	assert.Equal(t, "step", step(49))
	for _, seconds := range []string{"2.50", "3.00", "x"} {
		assert.Empty(t, line("[GC] Performing periodic GC collection took "+seconds+" seconds"))
	}
	assert.Empty(t, line("[GC] Initial GC collection took 9.00 seconds"))
	assert.Equal(t, "step garbage_collection=3", step(50))
	assert.Equal(t, "step", step(60))
	assert.Empty(t, line("[GC] Performing periodic GC collection took 3.00 seconds"))
	assert.Equal(t, "step garbage_collection=0.3", step(70))
}

func benchmarks() map[string]string {
	return map[string]string{
		"step": seeds[0], "validate": seeds[1],
		"other": "[titan] 2025-02-13 11:33:29,482 - root - INFO - Training starts at step 1, with local batch size 1, global batch size 8, sequence length 8192",
	}
}

func FuzzParse(f *testing.F) { parser.Fuzz(f, seeds) }

func BenchmarkParse(b *testing.B) { parser.Bench(b, benchmarks()) }
