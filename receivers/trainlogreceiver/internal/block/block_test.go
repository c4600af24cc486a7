package block_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/block"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink is a recordtest.Sink for lines with prefixes.
type sink struct {
	recordtest.Sink
	prefix line.Prefix
}

func (s *sink) Prefix() *line.Prefix { return &s.prefix }

var logs = map[string]struct {
	text string
	want []string
}{
	"OLMo": {
		"2026-08-03 09:14:44.379\tnode-0:0\tolmo.train:979\tINFO\t[step=1/739328,epoch=0]\n    optim/total_grad_norm=3.200\n    train/CrossEntropyLoss=11.40\n    throughput/total_tokens=1,048,576\n" +
			"    throughput/device/tokens_per_second=66,393\n    throughput/device/batches_per_second=0.5065\n2026-08-03 09:15:01.142\tnode-0:0\tolmo.train:1042\tINFO\t[eval_step=1/3]\n    train/CrossEntropyLoss=1\n",
		[]string{
			`block step open stamp="2026-08-03 09:14:44.379" iteration=1 iterations=739328 epoch=0 loss=11.4 grad_norm=3.2`, "block side consumed_tokens=1048576",
			"block side device_tokens/s=66393", "block side extra:throughput/device/batches_per_second=0.5065",
		},
	},
	"OLMo-core, by rich": {
		"[2026-08-03 09:14:37] INFO     [olmo_core.train.callbacks.console_logger:81, node-0, rank=0] [step=5/???,epoch=1,eta=20m6s]\n    optim/LR (group 0)=2.00E-07\n    train/CE loss=nan\n" +
			"    throughput/total tokens=1.234B\n    throughput/device/BPS=0.8\n    throughput/device/MFU=41.20\n    throughput/device/data loading (s)=0.0021\n" +
			"[2026-08-03 09:14:40] INFO     [olmo_core.train.callbacks.console_logger:73, node-0, rank=0] [step=6/???,epoch=1]\n",
		[]string{
			`block step open stamp="2026-08-03 09:14:37" iteration=5 epoch=1 loss=NaN lr=2e-07`, "block side consumed_tokens=1234000000", "block side duration=1.25",
			"block side mfu=0.412(%)", "block side stage:data_loading(s)=0.0021",
		},
	},
	"NeMo-RL": {
		"========================= Epoch 2/2 =========================\n========================= Step 1/5 =========================\n▶ Training policy...\n  loss: 7\n📊 Validation Results:\n    • Loss: 0.4\n\n" +
			"📊 Training Results:\n  • Loss: -0.0932\n  • Avg Reward: 0.35\n⏱️  Timing:\n  • Total step time: 67.18s\n  • generation: 32.85s (48.9%)\n(Worker pid=7)   • Loss: 9\n" +
			"  • Mean Tokens: 81.5 tokens\n========================= Step 2/5 =========================\n",
		[]string{
			"block step open iteration=6 iterations=10 epoch=2 loss=-0.0932", "block side extra:Avg Reward=0.35", "block side duration=67.18", "block side stage:generation=32.85",
			`block side extra:Mean Tokens="81.5tokens"`,
		},
	},
	"own loops": {
		"=====\nStep: 1/12\n  lr:        1e-3\n  loss:      2.3641\n  time:      0.024 s\n  memory: 12.5 GB\n  throughput: 1,234 tokens/s\n  step: 9\n=====\nEpoch [2/3] Step [3/12]:\n\t- train_loss = 2.5\n\t- step_time: 250 ms\nother\n\t- loss = 9\n" +
			"--- Iteration 7 ---\n  val_loss: 2.25\n",
		[]string{
			"block step open iteration=1 iterations=12 loss=2.3641 lr=0.001", "block side duration=0.024", "block side mem=13421772800(GiBy)", "block side tokens/s=1234",
			"block step open iteration=15 iterations=36 epoch=2 loss=2.5", "block side duration=0.25", "block evaluation open iteration=7 val_loss=2.25",
		},
	},
	"ranks print at a time": {
		"[rank0]:Step 5\n[rank1]:  loss: 1\n[rank0]:  loss: 2\n[rank1]:Step 6\n[rank0]:  lr: 3\n[rank1]:  loss: 4\n",
		[]string{"block step open iteration=5 loss=2", "block step open iteration=6 loss=4"},
	},
	"a long line of another rank": {
		"[rank0]:Step 5\n[rank1]:" + strings.Repeat("x", 600) + "\n[rank0]:  loss: 2\n", []string{"block step open iteration=5 loss=2"},
	},
	"Stable-Baselines3": {
		"---------------------------------\n| time/              |          |\n|    time_elapsed    | 1        |\n|    total_timesteps | 256      |\n---------------------------------\n---------------------------------\n" +
			"| time/              |          |\n|    fps             | 113      |\n|    time_elapsed    | 4        |\n|    total_timesteps | 512      |\n| train/             |          |\n|    loss            | 38.8     |\n|    n_updates       | 2        |\n" +
			"---------------------------------\n---------------------------------\n| train/             |          |\n|    loss            | 3        |\n| a | b | c |\n---------------------------------\n",
		[]string{
			"block step mean iteration=512 duration=0.01171875 loss=38.8 extra:time/fps=113 extra:time/time_elapsed=4 extra:time/total_timesteps=512 extra:train/n_updates=2",
		},
	},
	"ROLL": {
		"pipeline step 3 start...\npre_step_total_time: 83.1\n[{\"response\": \"loss: 2\"}]\n{\"time/step_total\": 83.1, \"time/step_train\": 24.9, \"actor_train/total_loss@sum\": 0.0021, \"actor_train/grad_norm@mean\": 0.31}\npipeline step 3 finished\n" +
			"{\"actor_train/total_loss@sum\": 9}\npipeline step 4 start...\nmetrics: {'sft_train/loss@sum': 2.5, 'total': 5, 'time/step_train': 1.9}\npipeline step 4 finished...\n",
		[]string{
			"block step iteration=3 loss=0.0021 grad_norm=0.31 stage:train=24.9 extra:actor_train/total_loss@sum=0.0021 extra:actor_train/grad_norm@mean=0.31",
			"block step iteration=4 loss=2.5 stage:train=1.9 extra:sft_train/loss@sum=2.5 extra:total=5",
		},
	},
	// A header alone is no record, nor are sentences below one, code, settings, and values without a loss.
	"none": {
		"Step 5\nStep 6: loading\n  loss: 2\nStep 7\n  lr: 1e-4\n  time: 5 s\nStep 8\nloss: 2\nStep 9\n  loss = criterion(x)\nStep 10\n  loss: 2 and more words here\nStep 11\n\n  device: cuda\n  loss: 2\n" +
			"  loss: 2\n=== Setup ===\n  loss: 2\n[step=5,lr=1]\n    loss=2\n[steps=5]\n    loss=2\nx[step=5]\n    loss=2\nEpoch 3\n  loss: 2\nSteps: 5\n  loss: 2\nStep 1 of 5\n  loss: 2\n" +
			"pipeline step x start...\n{\"actor_train/loss\": 2}\npipeline step 5 start...\n{\"x\": 1}\n--------------------\n| loss | 2 |\n--------------------\nstep 5 step 6\n  loss: 2\nepoch 5, epoch 6\n  loss: 2\n",
		nil,
	},
}

// others are lines of the same kinds, of programs without training.
var others = []string{
	"Step 1/3 : FROM python:3.12\n ---> 5b3421cc8455\n", "===== Step 1 =====\n• Install: 5 packages\n", "Step 2:\n    x = 5\n    y = 6\n",
	"| step | loss | lr |\n|   100 | 2.31 | 1e-4 |\n", "    self.step = step\n    loss = 2\n",
}

func TestLine(t *testing.T) {
	for name, c := range logs {
		t.Run(name, func(t *testing.T) {
			// Restarted at every line, as a collector may be.
			out := &sink{}
			var state []byte
			var peeler line.Peeler
			for text := range strings.SplitSeq(c.text, "\n") {
				p := block.New(nil)
				p.Restore(state)
				before := len(out.Got)
				v, reason, mine := p.Line(peeler.Peel([]byte(text), &out.prefix), out)
				assert.Equal(t, len(out.Got) > before, v == tail.Record, text)
				assert.Equal(t, v != tail.Record && mine, reason != "", text)
				state = p.Save()
			}
			assert.Equal(t, c.want, out.Got)
		})
	}
	for _, text := range others {
		p, out := block.New(nil), &sink{}
		for l := range strings.SplitSeq(text, "\n") {
			p.Line([]byte(l), out)
		}
		assert.Empty(t, out.Got, text)
	}
}

// A record that waits when the collector ends is read again from its first line: the record begins again, and joins possible waiting values.
func TestReadAgain(t *testing.T) {
	p, out := block.New(nil), &sink{}
	for _, l := range []string{"Step: 1/12", "  lr: 1", "  loss: 2", "  grad_norm: 3"} {
		p.Line([]byte(l), out)
	}
	again := block.New(nil)
	again.Restore(p.Save())
	out.Got = nil
	for _, l := range []string{"  loss: 2", "  grad_norm: 3"} {
		again.Line([]byte(l), out)
	}
	assert.Equal(t, []string{"block step open join iteration=1 iterations=12 loss=2 lr=1", "block side grad_norm=3"}, out.Got)
}

func FuzzLine(f *testing.F) {
	for _, c := range logs {
		f.Add([]byte(c.text))
	}
	for _, text := range others {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, out := block.New(nil), &sink{}
		for text := range strings.SplitSeq(string(b), "\n") {
			before := len(out.Got)
			if v, reason, mine := p.Line([]byte(text), out); (v == tail.Record) != (len(out.Got) > before) || mine && (v == tail.Record) != (reason == "") {
				t.Fatalf("%q: %d %q %v", text, v, reason, mine)
			}
			p.Restore(p.Save())
		}
	})
}

type discard struct {
	recordtest.Discard
	prefix line.Prefix
}

func (d *discard) Prefix() *line.Prefix { return &d.prefix }

func BenchmarkLine(b *testing.B) {
	for name, text := range map[string]string{
		"block": "Step: 1/12\n  loss: 2.3641\n  grad_norm: 1.2", "other": "The attention mask and the pad token id were not set.",
	} {
		b.Run(name, func(b *testing.B) {
			p, out, lines := block.New(nil), &discard{}, bytes.Split([]byte(text), []byte("\n"))
			b.ReportAllocs()
			for b.Loop() {
				for _, l := range lines {
					p.Line(l, out)
				}
			}
		})
	}
}
