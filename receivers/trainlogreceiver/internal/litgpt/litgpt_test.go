package litgpt_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/litgpt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var parser = recordtest.Parser{Source: litgpt.Source, Parse: litgpt.Parse}

var seeds = []string{
	"Epoch 1 | iter 100 step 25 | loss train: 1.913, val: n/a | iter time: 120.12 ms (step) remaining time: 0:01:02",
	"iter 100: val loss 2.0134, val time: 1234.56 ms",
	"Final evaluation | val loss: 1.853 | val ppl: 6.379", "iter 100 step 25: loss 1.9134, iter time: 120.12ms (optimizer.step)",
	"Epoch 1 | iter  step  | loss train: ", "iter : val loss ",
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		seeds[0]: "step iteration=100 epoch=1 duration=0.12012(ms) loss=1.913 extra:step=25",
		seeds[1]: "evaluation iteration=100 duration=1.23456(ms) val_loss=2.0134",
		seeds[2]: "evaluation val_loss=1.853 ppl=6.379",
		seeds[3]: "step iteration=100 duration=0.12012(ms) loss=1.9134 extra:step=25",
		"Epoch 2 | iter 101 step 25 | loss train: nan, val: 2.013 | iter time: 98.00 ms": "step iteration=101 epoch=2 duration=0.098(ms) loss=NaN extra:step=25",

		"Epoch 2 | iter 101 step 25 | loss train: 1.9": "!no_loss_or_time",

		"": "", "iter 100: loss 2.3456, time 45.23ms, mfu 30.12%": "", "Epoch 3 | loss 2": "", "Epoch 1 | iter x step 2 | loss train: 1, iter time: 2 ms": "",
		"iter ": "", "Final evaluation | val loss: ": "",
		"Epoch 3:  10%|█| 1/10 [00:00<00:01]": "", "iter 5 stepping on": "",
	} {
		assert.Equal(t, want, parser.Line(in), in)
	}
}

func FuzzParse(f *testing.F) { parser.Fuzz(f, seeds) }

func BenchmarkParse(b *testing.B) {
	parser.Bench(b, map[string]string{"step": seeds[0], "evaluation": seeds[1], "other": "Verifying settings ..."})
}
