package pairs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pairs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var parser = recordtest.Parser{Source: pairs.Source, Parse: func(b []byte, rec *record.Record) (bool, string) { return pairs.New(nil).Parse(b, rec) }}

var records = map[string]string{
	"step: 100, loss: 2.31, lr: 1e-4, step_time: 0.25s":                               "step iteration=100 duration=0.25 loss=2.31 lr=0.0001",
	"step=100 loss=2.31 tokens/s=12,345":                                              "step iteration=100 loss=2.31 tokens/s=12345",
	"step=100 loss=2.31 tokens/s=12,345.6":                                            "step iteration=100 loss=2.31 tokens/s=12345.6",
	"step = 100 loss = 2.31":                                                          "step iteration=100 loss=2.31",
	"iteration: 100 | train loss: 2.31 | iter time: 250 ms | memory: 12.5 GB | x: 3%": `step iteration=100 duration=0.25(ms) loss=2.31 mem=13421772800(GiBy) extra:x="3%"`,
	"Epoch [2/5], Step [100/600], Loss: 0.1234":                                       "step iteration=700 iterations=3000 epoch=2 loss=0.1234",
	"Epoch 3 Step 12/600 loss=0.5":                                                    "step iteration=12 iterations=600 epoch=3 loss=0.5",
	"[train] step 5 loss 2.5 lr 1e-05":                                                "step iteration=5 loss=2.5 lr=1e-05",
	"Train: step=5, loss=nan, grad_norm=inf, phase=warmup":                            `step iteration=5 loss=NaN grad_norm=+Inf extra:phase="warmup"`,
	"Eval: step=5, loss=2.5":                                                          "evaluation iteration=5 val_loss=2.5",
	"step: 5 - val_loss: 2.5 - val_acc: 0.5":                                          "evaluation iteration=5 val_loss=2.5 extra:val_acc=0.5",
	"step:1234/1770 train_loss:3.28 train_time:1234ms step_avg:87.5ms":                `step iteration=1234 iterations=1770 loss=3.28 extra:train_time="1234ms" extra:step_avg="87.5ms"`,
	// build-nanogpt (train_gpt2.py), and llm.c (train_gpt2.cu).
	"step    4 | loss: 6.512345 | lr 1.2590e-04 | norm: 2.0 | dt: 338.10ms | tok/sec: 1550000.00":                          `step iteration=4 duration=0.3381(ms) loss=6.512345 lr=0.0001259 tokens/s=1550000 extra:norm=2`,
	"step   10/19560 | loss 7.412345 (+1.20z)| norm 2.5 (+nanz)| lr 8.57e-06 | 353.80 ms | 46.5% bf16 MFU | 1481908 tok/s": "",
	"2025-01-01 12:00:00,123 - train - INFO - step: 7, loss: 1.5":                                                          "step iteration=7 loss=1.5",
	"step: 1,000, loss: 2.5":       "step iteration=1000 loss=2.5",
	"step: 1, seconds: 3, loss: 2": "step iteration=1 loss=2 extra:seconds=3",
	"Step 5, Pérdida: 2.5":         "step iteration=5 loss=2.5",
	"шаг: 10, потери: 2.5":         "step iteration=10 loss=2.5",
	"步数: 100, loss: 2.5":           "step iteration=100 loss=2.5",
	"第 100 步, loss: 2.5":           "step iteration=100 loss=2.5",
	"ステップ 100, loss: 2.5":          "step iteration=100 loss=2.5",
	// A time's unit behind its name.
	"step: 1, time per batch (seconds): 0.25, loss: 2": "step iteration=1 duration=0.25 loss=2",
	"step: 1, time (sec): 3, loss: 2":                  "step iteration=1 duration=3 loss=2",
	"step: 1, time (ms): 250, loss: 2":                 "step iteration=1 duration=0.25 loss=2",
	// MaxText.
	"completed step: 1, seconds: 0.277, TFLOP/s/device: 370.707, Tokens/s/device: 14774.896, total_weights: 31850, loss: 12.939": "step iteration=1 duration=0.277 loss=12.939 device_tokens/s=14774.896 device_flop/s=3.70707e+14(TFLOP/s) extra:total_weights=31850",
	"completed step: 2, seconds: 3.033, TFLOP/s/device: 340.650, loss: 1.989":                                                    "step iteration=2 duration=3.033 loss=1.989 device_flop/s=3.4065e+14(TFLOP/s)",
	"eval metrics after step: 99, loss=2.345, total_weights=65536":                                                               "evaluation iteration=99 val_loss=2.345 extra:total_weights=65536",
	// Arrows, double colons, dots, clocks, and names of cells.
	"=> [012/030] loss => 2.34 :: lr => 0.001 :: time => 0.25s":                                     "step iteration=12 iterations=30 duration=0.25 loss=2.34 lr=0.001",
	"TRAIN :: step 5 :: loss 2.5 :: 0.25 s":                                                         "step iteration=5 duration=0.25 loss=2.5",
	"Epoch: 1/3... Step: 10... Loss: 2.5... Val Loss: 2.75":                                         "step iteration=10 epoch=1 loss=2.5 val_loss=2.75",
	"Step... (500 | Loss: 2.5, Learning Rate: 0.0003)":                                              "step iteration=500 loss=2.5 lr=0.0003",
	"Epoch: [1][10/300] Elapsed 0m 5s (remain 2m 50s) Loss: 2.5(2.75) Grad: 1.5  LR: 0.00002":       "step iteration=10 iterations=300 epoch=1 loss=2.5 lr=2e-05 extra:Elapsed=\"5s\" extra:remain=\"170s\" extra:Grad=1.5",
	"eta: 1 day, 2:03:04  iter: 20  loss: 2.5 (2.75)  time: 0.25 (0.36)  lr: 0.002":                 "step iteration=20 duration=0.25 loss=2.5 lr=0.002 extra:eta=1",
	"Epoch 1, batch 50, loss[loss=2.5, ctc_loss=0.5, over 1234.00 frames. ], tot_loss[loss=2.75, ]": "step iteration=50 epoch=1 loss=2.5 extra:ctc_loss=0.5 extra:over=1234",
	"epoch: 1 step: 5, loss is 2.5":                                                                 "step iteration=5 epoch=1 loss=2.5",
	"1/2100 (epoch 0.5), train_loss = 2.5, grad/param norm = 5.1e-01, time/batch = 0.25s":           "step iteration=1 iterations=2100 epoch=0.5 duration=0.25 loss=2.5 extra:grad/param norm=0.51",
	"(epoch: 1, iters: 100, time: 0.25, data: 0.002) D_A: 0.3 G_A: 0.4":                             "step iteration=100 epoch=1 duration=0.25 extra:data=0.002 extra:D_A=0.3 extra:G_A=0.4",
	"Epoch: 0001 loss_train: 2.5 acc_train: 0.1 loss_val: 2.75 time: 0.25s":                         "step iteration=1 epoch=1 duration=0.25 loss=2.5 val_loss=2.75 extra:loss_train=2.5 extra:acc_train=0.1 extra:loss_val=2.75",
	// PaddleNLP.
	"loss: 1.07373798, learning_rate: 8e-08, global_step: 2, interval_runtime: 0.1491, interval_samples_per_second: 214.5, interval_steps_per_second: 8, progress_or_epoch: 0.0016": "step mean iteration=2 duration=0.125 loss=1.07373798 lr=8e-08 samples/s=214.5 extra:interval_runtime=0.1491 extra:progress_or_epoch=0.0016",
}

// Lines about steps and losses that are no record of a step.
var others = []string{
	"", "step", "loss", "step loss", "step: 5", "loss: 5", "step=5 lr=1e-4", "max_steps: 100, loss: 2.3", "total_steps=100 loss=2.3",
	"Namespace(step=5, loss=0.1, lr=0.1)", "step=5 loss=mse lr=0.1", "TrainingArguments(step=5, loss=0.1)", "loss_fn: cross_entropy, step: 5",
	"config: step=1 loss=0",
	"Restored checkpoint at step: 100, loss: 2.3", "resumed at step=100 with loss=2.3", "Best: step=100, loss=2.3", "best loss: 2.3 (step 100)",
	"New best model, step 100, loss 2.3",
	"Saving checkpoint /ckpt/step=100-loss=2.30.ckpt", "saved step=100 loss=2.3 to disk", "Epoch 1 done in 5 s, step 100: loss improved from 2.5 to 2.3",
	"INFO: early stopping: step=100, val_loss=2.3", "WARNING: loss is nan at step 5", "step 5 loss scale 65536 reduced", "overflow at step 5: loss scale: 1024",
	"--step 100 --loss mse", "python train.py --steps 100 --loss l2", "| step | loss | lr |", "|   100 | 2.31 | 1e-4 |", "step,loss,lr", "100,2.31,1e-4",
	"|   0  NVIDIA H100 80GB HBM3   On | 00000000:18:00.0 Off |  0 |", "| N/A   31C    P0    71W / 700W |    353MiB / 81920MiB |      0%      Default |",
	"wandb: train/loss 2.31", "wandb: step: 100 loss: ▁▂▃", "Traceback: step=5, loss=<Tensor>", "ValueError: step=5 loss=0.1", "if step == 5: loss = 2",
	"    self.step = step; self.loss = loss", "GET /metrics?step=5&loss=2 HTTP/1.1", "step: five, loss: 2.3",
	"[INFO] step function loss function", `level=warn caller=retry.go:17 msg="step failed" step=3 attempts=2 packet_loss=0.02`,
	"At step 5, the loss was 0.3 and 12 workers were idle", "In epoch 3 the loss is 0.5 of the former", "Step 1: loss of precision in 3 of 5 cases",
	"step 3 - loss 5 pounds in 2 weeks", "12:34:56 loss 3 step", "3/4 iterations, and a loss of 5", "Iteration 5 of the loop => loss", "step 4 (see 5) loss", "1.2.3 step loss 5",
	"train | epoch 002 | loss 0.478 | nll_loss 1.2 | wps 171000 | ups 42.7 | wpb 4000 | bsz 128 | num_updates 100 | lr 0.0005", "20/20 - 0s - 3ms/step - accuracy: 0.5 - loss: 2.5",
	"Step 2... of 5: the loss is here", "loss -> 5 :: no", "See section 3, step 4: 5, loss",
	`{"step": 5, "loss": 2.5}`, `{'step': 5, 'loss': 2.5}`, "optimizer step: 5 loss: 2.3", "number of steps: 5, loss: 2.3",
}

func TestParse(t *testing.T) {
	for in, want := range records {
		assert.Equal(t, want, parser.Line(in), in)
	}
	for _, in := range others {
		assert.Empty(t, parser.Line(in), in)
	}
}

func FuzzParse(f *testing.F) {
	seeds := others
	for in := range records {
		seeds = append(seeds, in)
	}
	parser.Fuzz(f, seeds)
}

func BenchmarkParse(b *testing.B) {
	for name, text := range map[string]string{
		"record": "step: 100, loss: 2.31, lr: 1e-4, step_time: 0.25s", "sentence": "Restored checkpoint at step: 100, loss: 2.3",
		"other": "The attention mask and the pad token id were not set. As a consequence, you may observe unexpected behavior.",
	} {
		b.Run(name, func(b *testing.B) {
			p, in := pairs.New(nil), []byte(text)
			var rec record.Record
			b.ReportAllocs()
			for b.Loop() {
				rec.Reset()
				_, _ = p.Parse(in, &rec)
			}
		})
	}
}

// TestMany: of a line with too many pairs the first are kept and the others counted, whatever the separator.
func TestMany(t *testing.T) {
	for _, separator := range []string{" ", ", ", " | "} {
		line := []byte("step=7" + separator + "loss=2.5")
		for i := range 298 {
			line = fmt.Appendf(line, "%sf%d=%d", separator, i, i)
		}
		var rec record.Record
		found, _ := pairs.New(nil).Parse(line, &rec)
		require.True(t, found, separator)
		assert.InDelta(t, 7, rec.Get(record.Iteration), 0)
		assert.Len(t, rec.Extra, 254, separator)
		assert.Equal(t, 300-256, rec.Dropped, separator)
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[string]string{
		"Epoch 1/2 loss 0.6668":                                  "Epoch=1/2 epoch,loss=0.6668/0,",
		"Training Epoch: 1/2, step 19/20 completed (loss: 1.89)": "Training Epoch=1/2 epoch,step=19/20 step,loss=1.89/0,",
		"loss: 8.1856": "loss=8.1856/0,", "Downloading {x": "", "": "",
	} {
		var got strings.Builder
		for _, v := range pairs.New(nil).Values(nil, []byte(text)) {
			fmt.Fprintf(&got, "%s=%g/%g", v.Name, v.Number, v.Of)
			if v.Epoch {
				got.WriteString(" epoch")
			}
			if v.Step {
				got.WriteString(" step")
			}
			got.WriteString(",")
		}
		assert.Equal(t, want, got.String(), text)
	}
}
