package nanogpt_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/nanogpt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var parser = recordtest.Parser{Source: nanogpt.Source, Parse: nanogpt.Parse}

var seeds = []string{
	"iter 100: loss 2.3456, time 45.23ms, mfu 30.12%", "step 250: train loss 2.3012, val loss 2.4103", "iter 0: loss nan, time 1ms",
	"iter : loss , time ms, mfu %", "step : train loss , val loss ",
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		seeds[0]: "step iteration=100 duration=0.04523(ms) loss=2.3456 mfu=0.3012(%)",
		seeds[1]: "evaluation iteration=250 val_loss=2.4103 extra:train_loss=2.3012",
		"iter 4: loss 10.9, time 31212.01ms, mfu -100.00%": "step iteration=4 duration=31.21201(ms) loss=10.9",
		"iter 7: loss nan, time 45.23ms, mfu 0.00%":        "step iteration=7 duration=0.04523(ms) loss=NaN mfu=0(%)",
		"iter 7: loss 2.1, time 45.23ms":                   "step iteration=7 duration=0.04523(ms) loss=2.1",

		"iter 7: loss 2.1, time 45": "step iteration=7 duration=0.045(ms) loss=2.1",
		"iter 7: loss x, time 4ms":  "!bad_number",

		"": "", "iter ": "", "iter 5: loss 2.1": "", "iter x: loss 2.1, time 4ms": "", "the iter 5: loss 2.1, time 4ms": "", "step 250: train loss 2.3": "",
		"step 250: loss 2.3":                 "",
		"step 250: train loss a, val loss 2": "", "iter 100: val loss 2.3456, val time: 45.23 ms": "",
	} {
		assert.Equal(t, want, parser.Line(in), in)
	}
}

func FuzzParse(f *testing.F) { parser.Fuzz(f, seeds) }

func BenchmarkParse(b *testing.B) {
	parser.Bench(b, map[string]string{"iter": seeds[0], "evaluation": seeds[1], "other": "number of parameters: 10.65M"})
}
