package composer_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/composer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var logs = map[string]struct {
	text string
	want []string
}{
	"console, in batches": {
		"[batch=3/10]:\n\t Train time/epoch: 0\n\t Train time/batch: 2\n\t Train time/sample: 16\n\t Train loss/train/total: 16.1129\n\t Train lr-SGD/group0: 0.0100\n\t Train throughput/batches_per_sec: 500.0000\n" +
			"\t Train throughput/samples_per_sec: 4240.6573\n\t Train throughput/device/tokens_per_sec: 12.5\n\t Train throughput/tokens_per_sec: 100\n\t Train throughput/device/flops_per_sec: 1e12\n\t Train throughput/flops_per_sec: 8e12\n" +
			"\t Train throughput/device/mfu: 0.4\n\t Train l2_norm/grad/global: 1.5\n\t Train memory/peak_allocated_mem: 1.5\n\t Train memory/current_allocated_mem: 1\n\t Train memory/peak_reserved_mem: 2.5\n\t Train memory/current_reserved_mem: 2\n" +
			"\t Train time/total: 0.5000\nother\n\t Train name: \"x\"\nother\nother\nother\nother\n\t Train loss/train/total: 1\n",
		[]string{
			"composer step open iteration=3 iterations=10 loss=16.1129", "composer side lr=0.01", "composer side mean duration=0.002",
			"composer side samples/s=4240.6573", "composer side device_tokens/s=12.5",
			"composer side tokens/s=100", "composer side device_flop/s=1000000000000", "composer side flop/s=8000000000000", "composer side mfu=0.4",
			"composer side grad_norm=1.5", "composer side mem_peak=1500000000",
			"composer side mem=1000000000", "composer side mem_reserved_peak=2500000000", "composer side mem_reserved=2000000000", `composer side extra:name="\"x\""`,
		},
	},
	// In epochs the head counts the batches of the epoch, and time/batch counts the batches of the job.
	"console, in epochs, with results": {
		"[epoch=2][batch=3/8]:\n\t Train time/batch: 10\n\t Train loss/train/total: nan\n[Eval batch=1/4] Eval on eval data\n[Eval batch=4/4] Eval on eval data:\n\t Eval metrics/eval/LanguageCrossEntropy: 2.5\n\t Eval metrics/eval/LanguagePerplexity: 12.2\n" +
			"\t Eval metrics/eval/MeanSquaredError: 9.4941\n[epoch=2][batch=4/8]:\n\t Train time/batch: 11\n\t Train loss/train/total: 2\n",
		[]string{
			"composer step open iteration=11 epoch=2 loss=NaN", `composer evaluation open extra:data="eval"`, "composer side val_loss=2.5", "composer side ppl=12.2",
			"composer side extra:metrics/eval/MeanSquaredError=9.4941",
			"composer step open iteration=12 epoch=2 loss=2",
		},
	},
	// Metrics that callbacks log at the end of a batch have the number of the next one. The copy of the console is ignored.
	"file": {
		"[hyperparameter]: num_nodes: 1 \n[stderr]: [batch=1/10]:\n[stderr]: \t Train time/batch: 0\n[stderr]: \t Train loss/train/total: 16.2451\n" +
			"[metric][batch=1]: time/batch: 1 \n[metric][batch=1]: time/sample: 8 \n[metric][batch=1]: trainer/x: 8 \n[metric][batch=1]: loss/train/total: 11.5874 \n[metric][batch=2]: lr-SGD/group0: 0.0100 \n" +
			"[metric][batch=2]: metrics/eval/CrossEntropy: 2.5 \n[metric][batch=2]: metrics/eval/Perplexity: 12.2 \n[metric][batch=2]: time/batch: 2 \n[metric][batch=2]: loss/train/total: 9 \n" +
			"[metric][batch=3]: time/epoch: 1 \n[metric][batch=3]: time/batch: 3 \n[metric][batch=3]: metrics/train/x: 5 \n",
		[]string{
			"composer step open iteration=2 extra:trainer/x=8", "composer side loss=11.5874", "composer side lr=0.01",
			"composer evaluation open iteration=2 val_loss=2.5", "composer side ppl=12.2", "composer step open iteration=3 loss=9",
			"composer side extra:metrics/train/x=5",
		},
	},
	"foreign lines before a head": {
		"[batch=1/10]:\n\t Train time/batch: 0\n\t Train loss/train/total: 16\nx\nx\nx\n[Eval batch=4/4] Eval on eval data:\nx\n\t Eval metrics/eval/CrossEntropy: 2.5\n",
		[]string{"composer step open iteration=1 iterations=10 loss=16", `composer evaluation open extra:data="eval"`, "composer side val_loss=2.5"},
	},
	"foreign lines in a file": {
		"[metric][batch=1]: time/batch: 1 \n[metric][batch=1]: loss/train/total: 11 \nx\nx\n[metric][batch=1]: lr-SGD/group0: 0.1 \nx\nx\n[metric][batch=1]: throughput/samples_per_sec: 5 \n",
		[]string{"composer step open iteration=2 loss=11", "composer side lr=0.1", "composer side samples/s=5"},
	},
	"none": {
		"[batch]:\n[INFO] batch=3\n[rank=0][lr=5]:\n\t Train loss/train/total: 2\n[metric]: x\n[Eval batch=3]\n[batch=x/10]:\n[batch=3/10]:\n\t Train loss/train/total: 2\n\t\n",
		nil,
	},
}

func TestLine(t *testing.T) {
	for name, c := range logs {
		t.Run(name, func(t *testing.T) {
			// Restarted at every line, as a collector may be.
			out := &recordtest.Sink{}
			var state []byte
			var peeler line.Peeler
			var prefix line.Prefix
			for text := range strings.SplitSeq(c.text, "\n") {
				var p composer.Parser
				p.Restore(state)
				before := len(out.Got)
				v, reason, mine := p.Line(peeler.Peel([]byte(text), &prefix), out)
				assert.Equal(t, len(out.Got) > before, v == tail.Record, text)
				assert.Equal(t, v != tail.Record && mine, reason != "", text)
				state = p.Save()
			}
			assert.Equal(t, c.want, out.Got)
		})
	}
}

func FuzzLine(f *testing.F) {
	for _, c := range logs {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p composer.Parser
		out := &recordtest.Sink{}
		for text := range strings.SplitSeq(string(b), "\n") {
			before := len(out.Got)
			if v, reason, mine := p.Line([]byte(text), out); (v == tail.Record) != (len(out.Got) > before) || mine && (v == tail.Record) != (reason == "") {
				t.Fatalf("%q: %d %q %v", text, v, reason, mine)
			}
			p.Restore(p.Save())
		}
	})
}

func BenchmarkLine(b *testing.B) {
	for name, text := range map[string]string{
		"block": "[batch=3/10]:\n\t Train time/batch: 2\n\t Train loss/train/total: 16.1129", "other": "The attention mask and the pad token id were not set.",
	} {
		b.Run(name, func(b *testing.B) {
			var p composer.Parser
			out, lines := &recordtest.Discard{}, bytes.Split([]byte(text), []byte("\n"))
			b.ReportAllocs()
			for b.Loop() {
				for _, l := range lines {
					p.Line(l, out)
				}
			}
		})
	}
}
