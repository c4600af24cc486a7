package nemo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/nemo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var parser = recordtest.Parser{Source: nemo.Source, Parse: nemo.Parse}

func TestSamples(t *testing.T) { parser.Samples(t, "nemo") }

var seeds = []string{
	"Training epoch 0, iteration 45/99 | lr: 6.897e-06 | global_batch_size: 128 | global_step: 45 | max_memory_reserved: 127785762816 | max_memory_allocated: 115792977920 | reduced_train_loss: 11.96 | train_step_timing in s: 6.08 | TFLOPS_per_GPU: 1.249e+03 | consumed_samples: 5888",
	"Training epoch 0, iteration 28/99 | lr: 5.6e-06 | global_batch_size: 32 | global_step: 28 | reduced_train_loss: 2.778 | train_step_timing in s: 0.189 | consumed_samples: 928 | val_loss: 2.861 | val_ppl: 17.57",
	"Training epoch , iteration / | : ", "Training epoch 1, iteration 2/3 | x | y: z | global_step: 1e3", "Training epoch 1, iteration 2/3 | ",
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		seeds[0]:         `step mean iteration=45 iterations=99 epoch=0 duration=6.08 loss=11.96 lr=6.897e-06 batch=128 consumed_samples=5888 device_flop/s=1.249e+15(TFLOP/s) mem_peak=115792977920 mem_reserved_peak=127785762816`,
		"0: " + seeds[1]: `step mean iteration=28 iterations=99 epoch=0 duration=0.189 loss=2.778 lr=5.6e-06 val_loss=2.861 ppl=17.57 batch=32 consumed_samples=928`,
		"[2025-10-17T11:32:59+08:00] Training epoch 0, iteration 527/999 | lr: 0.0001758 | global_batch_size: 32 | global_step: 527 | reduced_train_loss: 2.792 | train_step_timing in s: 2.389 | tokens_per_sec_per_gpu: 6.859e+03 | consumed_samples: 16896 | val_loss: 3.624": `step mean iteration=527 iterations=999 epoch=0 duration=2.389 loss=2.792 lr=0.0001758 val_loss=3.624 batch=32 consumed_samples=16896 device_tokens/s=6859`,
		// The platform names the pod behind its time.
		"[2025-11-20T14:55:23+08:00] retraining/0 Training epoch 0, iteration 97/99 | reduced_train_loss: 6.265": `step mean iteration=97 iterations=99 epoch=0 loss=6.265`,
		"x[2025-11-20T14:55:23+08:00] Training epoch 0, iteration 97/99 | reduced_train_loss: 6.265":             `step mean stamp="2025-11-20T14:55:23+08:00" iteration=97 iterations=99 epoch=0 loss=6.265`,
		// A later epoch restarts its iterations.
		"Training epoch 3, iteration 5/99 | global_step: 305 | reduced_train_loss: nan | grad_norm: inf | tokens_per_sec: 8e+05": `step mean iteration=305 iterations=99 epoch=3 loss=NaN grad_norm=+Inf tokens/s=800000 extra:iteration=5`,
		"Training epoch 0, iteration 12345/99999 | global_step: 1.234e+04 | lr: 0":                                               `step mean iteration=12345 iterations=99999 epoch=0 lr=0 extra:global_step="1.234e+04"`,
		"    Training epoch 0, iteration 0/9 | lr: 0 | global_batch_size: 1 | global_step: 0 | train_step_timing in s: 2.193":    `step mean iteration=0 iterations=9 epoch=0 duration=2.193 lr=0 batch=1`,
		"Training epoch 0, iteration 1/9 | mtp_1 loss: 2.5 | note: a: b | peft: None | reduced_train_lo":                         `step mean iteration=1 iterations=9 epoch=0 extra:mtp_1 loss=2.5 extra:note: a="b" extra:peft="None" extra:text="reduced_train_lo"`,

		"[NeMo I 2026-02-17 17:58:40 nemo_logging:393] Global Checkpoint Save : Rank: 0 : Iteration: 24 : Start time: 1771351120.135s : Save duration: 25.537s": `side stamp="2026-02-17 17:58:40" stage:checkpoint=25.537`,
		"[NeMo I 2026-02-17 17:58:40 nemo_logging:393] Global Checkpoint Save : Rank: 3 : Iteration: 24 : Start time: 1771351120.135s : Save duration: 25.537s": "",
		"Global Checkpoint Save : Rank: 0 : Iteration: 24 : Start time: 1771351120.135s : Save duration: x":                                                     "",

		"Training epoch 0, iteration 4":           "!bad_iteration",
		"Training epoch 0, iteration 4/":          "!bad_iteration",
		"Training epoch 0, iteration x/9 | lr: 1": "!bad_iteration",
		"Training epoch 0, iteration 45/99":       "!no_fields",

		"": "", "Validation: iteration 3/8": "", "Sanity checking Validation: iteration 1/2": "", "Testing: iteration 1/2": "",
		"Training epoch 3 took 5 minutes": "", "Training epoch x, iteration 5/9 | lr: 1": "", "Training epoch ": "",
	} {
		assert.Equal(t, want, parser.Line(in), in)
	}
}

func benchmarks() map[string]string {
	return map[string]string{"step": seeds[0], "other": "[NeMo W 2025-06-18 21:57:03 rerun_state_machine:1264] Implicit initialization of Rerun State Machine!"}
}

func FuzzParse(f *testing.F) { parser.Fuzz(f, seeds) }

func BenchmarkParse(b *testing.B) { parser.Bench(b, benchmarks()) }
