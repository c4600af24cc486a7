package bar_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/bar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var logs = map[string]struct {
	lines []string
	want  []string
}{
	// The first drawing of a count has the loss of the count before; the loss at the beginning of an epoch is the last of the epoch before.
	"lightning": {
		[]string{
			"Epoch 0:   0%|          | 0/8 [00:00<?, ?it/s]", "Epoch 0:  12%|█▎        | 1/8 [00:00<00:00, 42.06it/s]",
			"Epoch 0:  12%|█▎        | 1/8 [00:00<00:00, 40.00it/s, v_num=0, train_loss_step=16.20]",
			"Epoch 0:  25%|██▌       | 2/8 [00:00<00:00, 42.63it/s, v_num=0, train_loss_step=16.20]",
			"Epoch 0:  25%|██▌       | 2/8 [00:00<00:00, 40.00it/s, v_num=0, train_loss_step=11.60]",
			"Validation DataLoader 0: 100%|██████████| 8/8 [00:00<00:00, 819.22it/s]",
			"Epoch 0: 100%|██████████| 8/8 [00:00<00:00, 38.26it/s, v_num=0, train_loss_step=11.60, train_loss_epoch=10.70, val_loss=5.330]",
			"Epoch 1:   0%|          | 0/8 [00:00<?, ?it/s, v_num=0, train_loss_step=7.560, train_loss_epoch=6.960, val_loss=5.330]",
			"Epoch 1:  12%|█▎        | 1/8 [00:00<00:00, 20.00it/s, v_num=0, train_loss_step=7.020, train_loss_epoch=6.960, val_loss=5.330]",
		},
		[]string{
			"lightning step iteration=1 epoch=0 duration=0.02377555872563 loss=16.2", "lightning step iteration=2 epoch=0 duration=0.02313975912565 loss=11.6",
			"lightning evaluation val_loss=5.33",
			"lightning step iteration=9 epoch=1 duration=0.05 loss=7.02",
		},
	},
	// 1.x shows a mean over the last batches, as loss.
	"lightning 1": {
		[]string{
			"Epoch 0:  22%|██▏       | 4/18 [00:17<01:02,  4.47s/it, loss=10.072, v_num=193315]",
			"Epoch 0:  22%|██▏       | 4/18 [00:17<01:02,  4.47s/it, loss=9.947, v_num=193315] ",
		},
		[]string{"lightning step mean iteration=4 epoch=0 duration=4.47 loss=10.072", "lightning step mean iteration=4 epoch=0 duration=4.47 loss=9.947"},
	},
	"nemo 1": {
		[]string{
			"Epoch 0: :  47%|████▋     | 7/15 [06:19<07:13, reduced_train_loss=11.50, global_step=6.000, consumed_samples=12288.0, train_step_timing in s=49.50]",
			"Epoch 0: :  50%|████▋     | 2000/4000 [43:24:54<00:00, reduced_train_loss=0.139, global_step=2e+3, consumed_samples=2.56e+5, train_step_timing in s=68.70, val_loss=0.212][NeMo I 2024-06-17",
			"Epoch 1: : 1it [00:04,  4.36s/it, v_num=d3c7, reduced_train_loss=0.674, global_step=1.000, consumed_samples=128.0, train_step_timing in s=3.370, samples/sec=14.60]",
		},
		[]string{
			"nemo step iteration=6 epoch=0 duration=49.5 loss=11.5 consumed_samples=12288",
			"nemo step iteration=1999 epoch=0 duration=68.7 loss=0.139 consumed_samples=256000", "nemo evaluation val_loss=0.212",
			"nemo step iteration=1 epoch=1 duration=3.37 loss=0.674 consumed_samples=128 samples/s=14.6",
		},
	},
	// The postfix is set before the bar advances.
	"openrlhf": {
		[]string{
			"Train step of epoch 0:   0%|          | 0/17 [00:00<?, ?it/s]",
			"Train step of epoch 0:   0%|          | 0/17 [00:02<?, ?it/s, gpt_loss=2.04, lr=0, grad_norm=0]",
			"Train step of epoch 0:   6%|▌         | 1/17 [00:02<00:32,  2.00s/it, gpt_loss=2.04, lr=0, grad_norm=0]",
			"Train step of epoch 0:   6%|▌         | 1/17 [00:04<00:32,  2.00s/it, gpt_loss=0.793, lr=1.25e-6, grad_norm=38.9]",
			"Train step of epoch 0:  12%|█         | 2/17 [00:04<00:32,  2.00s/it, gpt_loss=0.793, lr=1.25e-6, grad_norm=38.9]",
			"Eval stage of steps 2:  50%|█████     | 1/2 [00:01<00:01,  1.00s/it, eval gpt_loss=0.7]",
			"Eval stage of steps 2: 100%|██████████| 2/2 [00:02<00:00,  1.00s/it, eval gpt_loss=0.7]",
			"Eval stage of steps 2: 100%|██████████| 2/2 [00:02<00:00,  1.00s/it, eval gpt_loss=0.75]",
			"Train step of epoch 1:   0%|          | 0/17 [00:00<?, ?it/s]",
			"Train step of epoch 0:  12%|█         | 2/17 [00:09<00:32,  2.00s/it, gpt_loss=0.793, lr=1.25e-6, grad_norm=38.9]",
			"Train step of epoch 1:   6%|▌         | 1/17 [00:02<00:32,  2.00s/it, gpt_loss=0.5, lr=1e-6, grad_norm=2]",
			"Train epoch [1/1]:  50%|█████     | 1/2 [00:10<00:10, 10.00s/it, act_loss=-0.01, reward=0.5, kl=0.001]",
		},
		[]string{
			"openrlhf step iteration=1 epoch=0 duration=2 loss=2.04 lr=0 grad_norm=0",
			"openrlhf step iteration=2 epoch=0 duration=2 loss=0.793 lr=1.25e-06 grad_norm=38.9",
			"openrlhf evaluation iteration=2 duration=2 val_loss=0.75", "openrlhf step iteration=18 epoch=1 duration=2 loss=0.5 lr=1e-06 grad_norm=2",
			"openrlhf step iteration=1 duration=10 extra:act_loss=-0.01 extra:reward=0.5 extra:kl=0.001",
		},
	},
	// The loss beside a count is the next batch's. The lines of results are cut at the width of the screen.
	"composer": {
		[]string{
			"train          Epoch   0:    0%|     | 0/8 [00:00<?, ?ba/s]   ",
			"train          Epoch   0:    0%|     | 0/8 [00:00<?, ?ba/s, loss/train/total=16.2451]  ",
			"train          Epoch   0:   12%|█    | 1/8 [00:00<00:00, 100.00ba/s, loss/train/total=11.5874]",
			"eval           Batch   8:  100%|█████| 4/4 [00:00<00:00, 1283.54ba/s, metrics/eval/CrossEntropyLoss=8",
			"train          Epoch   0:  100%|█████| 8/8 [00:00<00:00, 212.28ba/s, loss/train/total=11.5874]",
			"train          Epoch   1:    0%|     | 0/8 [00:00<?, ?ba/s, loss/train/total=10.5974]",
			"train          Batch   4:   40%|█    | 4/10 [00:00<00:00, 50.00ba/s, loss/train/total=9.5]",
			"train          Token   4:   40%|█    | 4/10 [00:00<00:00, 50.00tok/s, loss/train/total=9.25]",
		},
		[]string{
			"composer step iteration=1 epoch=0 loss=16.2451", "composer step mean iteration=2 epoch=0 duration=0.01 loss=11.5874",
			"composer step iteration=9 epoch=1 loss=10.5974", "composer step mean iteration=5 duration=0.02 loss=9.5",
		},
	},
	"torchtune": {
		[]string{
			"1|11|Loss: 2.5:   9%|▉   | 11/120 [00:10<01:30,  1.20s/it]", "1|11|Loss: 2.5:  10%|█   | 12/120 [00:11<01:30,  1.20s/it]",
			"1|12|Loss: 2.345:  10%|█   | 12/120 [00:11<01:30,  1.25s/it]",
		},
		[]string{"torchtune step mean iteration=11 epoch=1 duration=1.2 loss=2.5", "torchtune step iteration=12 epoch=1 duration=1.2 loss=2.345"},
	},
	"others": {
		[]string{
			"steps:   5%|██    | 891/17824 [22:07<7:00:00,  1.49s/it, avr_loss=0.123]", "steps:   5%|██    | 891/17824 [22:07<7:00:00,  1.49s/it, avr_loss=0.13]",
		},
		[]string{"tqdm step mean iteration=891 duration=1.49 extra:avr_loss=0.123"},
	},
	// A loop that sets the postfix before the count advances, and does not draw each count: a record is of all steps since the one before.
	"postfix first": {
		[]string{
			"Epoch 0:   0%|          | 0/60 [00:00<?, ?it/s]", "Epoch 0:   0%|          | 0/60 [00:00<?, ?it/s, loss=2.46]",
			"Epoch 0:   2%|▏         | 1/60 [00:00<00:08,  6.58it/s, loss=2.46]", "Epoch 0:   2%|▏         | 1/60 [00:00<00:08,  6.58it/s, loss=2.42]",
			"Epoch 0:   7%|▋         | 4/60 [00:00<00:08,  6.58it/s, loss=2.3] ", "Epoch 1:   0%|          | 0/60 [00:00<?, ?it/s, loss=2.2]",
			"Epoch 1:   2%|▏         | 1/60 [00:00<00:08,  6.58it/s, loss=2.2]",
		},
		[]string{
			"tqdm step iteration=1 epoch=0 duration=0.1519756838906 loss=2.46", "tqdm step mean iteration=4 epoch=0 duration=0.1519756838906 loss=2.3",
			"tqdm step iteration=61 epoch=1 duration=0.1519756838906 loss=2.2",
		},
	},
	// The loss of a description, and llama-cookbook's, beside the index of a micro-batch.
	"description": {
		[]string{
			"Epoch 1/2 loss 2.2693:   0%|          | 0/60 [00:00<?, ?it/s]", "Epoch 1/2 loss 2.2693:   8%|▊         | 5/60 [00:00<00:01, 44.36it/s]",
			"Epoch 1/2 loss 2.2298:   8%|▊         | 5/60 [00:00<00:01, 44.36it/s]", "Epoch 2/2 loss 2.1693:   0%|          | 0/60 [00:00<?, ?it/s]",
			"Epoch 2/2 loss 2.1:   8%|▊         | 5/60 [00:00<00:01, 50.00it/s]",
			"Training Epoch: 1:   0%|          | 0/10 [00:00<?, ?it/s]",
			"Training Epoch: 1/2, step 0/20 completed (loss: 2.2891869000000002):   0%|          | 0/10 [00:00<?, ?it/s]",
			"Training Epoch: 1/2, step 0/20 completed (loss: 2.2891869000000002):  10%|█         | 1/10 [00:00<00:01,  4.83it/s]",
			"loss: 8.1856:   4%|▏         | 2/50 [00:02<01:07,  1.38s/it]", "Validation loss 3.1:   2%|▏         | 1/50 [00:01<01:07,  1.38s/it]",
		},
		[]string{
			"tqdm step mean iteration=5 epoch=1 duration=0.02254283137962 loss=2.2693", "tqdm step mean iteration=65 epoch=2 duration=0.02 loss=2.1",
			"tqdm step iteration=1 epoch=1 duration=0.2070393374741 loss=2.2891869", "tqdm step mean iteration=2 duration=1.38 loss=8.1856",
		},
	},
	// The examples of diffusers draw the count first, and each micro-batch.
	"diffusers": {
		[]string{
			"Steps:   0%|          | 0/24 [00:00<?, ?it/s, lr=1e-5, step_loss=2.3]", "Steps:   4%|▍         | 1/24 [00:00<00:06,  4.00it/s, lr=1e-5, step_loss=2.3]",
			"Steps:   4%|▍         | 1/24 [00:00<00:06,  4.00it/s, lr=1e-5, step_loss=2.36]",
			"Steps:   4%|▍         | 1/24 [00:00<00:06,  4.00it/s, lr=1e-5, step_loss=2.4]",
			"Steps:   8%|▊         | 2/24 [00:00<00:05,  4.00it/s, lr=1e-5, step_loss=2.4]",
			"Steps:   8%|▊         | 2/24 [00:00<00:05,  4.00it/s, lr=1e-5, step_loss=2.42]",
		},
		[]string{"tqdm step iteration=1 duration=0.25 loss=2.36 lr=1e-05", "tqdm step iteration=2 duration=0.25 loss=2.42 lr=1e-05"},
	},
	// Without a loss: slow steps of a training.
	"trange": {
		[]string{
			"train:   0%|          | 0/16 [00:00<?, ?it/s]", "train:   6%|▋         | 1/16 [00:01<00:19,  1.32s/it]", "train:  12%|█▎        | 2/16 [00:02<00:19,  1.37s/it]",
			"Train:   6%|▋         | 1/16 [00:01<00:19,  1.32s/it]",
		},
		[]string{"tqdm step iteration=1 duration=1.32", "tqdm step iteration=2 duration=1.405"},
	},
	// Not for us: no loss, a search over trials, a dict behind a bar.
	"none": {
		[]string{
			"Map (num_proc=8): 100%|██████████| 1000/1000 [00:01<00:00, 812.10 examples/s]", "100%|██████████| 50/50 [00:10<00:00,  5.00trial/s, best loss: 0.3]",
			" 50%|████| 5/10 [00:10<00:10, 2.00s/it, best_loss=0.3]",
			"  2%|▏         | 1/60 [00:55<54:36, 55.53s/it]{'loss': 1}", "Loading checkpoint shards: 100%|██████████| 4/4 [00:05<00:00,  1.30s/it]", "", "loss",
		},
		nil,
	},
}

func TestLine(t *testing.T) {
	for name, c := range logs {
		t.Run(name, func(t *testing.T) {
			// Restarted at every line, as a collector may be.
			out := &recordtest.Sink{}
			var state []byte
			for _, line := range c.lines {
				p := bar.New(nil)
				p.Restore(state)
				before := len(out.Got)
				v, reason, mine := p.Line([]byte(line), out)
				assert.Equal(t, len(out.Got) > before, v == tail.Record, line)
				assert.Equal(t, v != tail.Record && mine, reason != "", line)
				state = p.Save()
			}
			assert.Equal(t, c.want, out.Got)
		})
	}
}

func FuzzLine(f *testing.F) {
	for _, c := range logs {
		f.Add([]byte(strings.Join(c.lines, "\n")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, out := bar.New(nil), &recordtest.Sink{}
		for line := range strings.SplitSeq(string(b), "\n") {
			before := len(out.Got)
			v, _, mine := p.Line([]byte(line), out)
			if (v == tail.Record) != (len(out.Got) > before) || v == tail.Record && !mine {
				t.Fatalf("%q: %d %v", line, v, mine)
			}
			p.Restore(p.Save())
		}
	})
}

func BenchmarkLine(b *testing.B) {
	for name, text := range map[string]string{
		"lightning": "Epoch 0:  12%|█▎        | 1/8 [00:00<00:00, 40.00it/s, v_num=0, train_loss_step=16.20]",
		"other":     "The attention mask and the pad token id were not set. As a consequence, you may observe unexpected behavior.",
	} {
		b.Run(name, func(b *testing.B) {
			p, out, line := bar.New(nil), &recordtest.Discard{}, []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				p.Line(line, out)
			}
		})
	}
}
