package nanochat_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/nanochat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var parser = recordtest.Parser{Source: nanochat.Source, Parse: nanochat.Parse}

var seeds = []string{
	"step 00012/21400 (0.06%) | loss: 4.512345 | lrm: 1.00 | dt: 345.67ms | tok/sec: 1,516,789 | bf16_mfu: 45.12 | epoch: 1 pq: 0 rg: 3 | total time: 0.05m | eta: 120.0m",
	"Step 00250 | Validation bpb: 0.912345", "step 00012 (3.25%) | loss: 1.1 | dt: ms", "Step / | loss: ", "step  (%) | dt: 1ms",
	"Step 1/2 | Training loss: 1| lrm: 1| num_tokens: 1,0",
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		seeds[0]: "step iteration=12 iterations=21400 epoch=1 duration=0.34567(ms) loss=4.512345 tokens/s=1516789 mfu=0.4512(%) extra:lrm=1",
		seeds[1]: "evaluation iteration=250 extra:Validation bpb=0.912345",
		// October 2025, with the gradient's norm; mfu was of the same devices.
		"step 00000/21400 (0.00%) | loss: 11.090355 | grad norm: 0.1234 | lrm: 1.00 | dt: 24100.50ms | tok/sec: 21,754 | mfu: 0.65 | total time: 0.00m": "step iteration=0 iterations=21400 duration=24.1005(ms) loss=11.090355 grad_norm=0.1234 tokens/s=21754 mfu=0.0065(%) extra:lrm=1",
		"step 00101 (3.25%) | loss: 1.100000 | lrm: 0.50 | dt: 500.00ms | tok/sec: 1,048,576 | mfu: 50.00 | epoch: 2 | total time: 1.50m":               "step iteration=101 epoch=2 duration=0.5(ms) loss=1.1 tokens/s=1048576 mfu=0.5(%) extra:lrm=0.5",
		"step 00101 (3.25%) | loss: nan | lrm: 0.50 | dt: 500.00ms | tok/sec: 1,048,576 | mfu: inf":                                                     "step iteration=101 duration=0.5(ms) loss=NaN tokens/s=1048576 mfu=+Inf(%) extra:lrm=0.5",
		"Step 02000 | CORE metric: 0.1234":                                              "evaluation iteration=2000 extra:CORE metric=0.1234",
		"Step 00100 | Validation loss: 1.012345":                                        "evaluation iteration=100 val_loss=1.012345",
		"Step 00100 | ChatCORE: 0.1000 | ChatCORE_cat: 0.2000":                          "evaluation iteration=100 extra:ChatCORE=0.1 extra:ChatCORE_cat=0.2",
		"Step 00101/00700 | Training loss: 1.100000| lrm: 0.500000| num_tokens: 12,345": "step iteration=101 iterations=700 loss=1.1 tokens=12345 extra:lrm=0.5",
		"Step 5/467 | Average reward: 0.28125 | Average sequence length: 199.50":        "step iteration=5 iterations=467 extra:Average reward=0.28125 extra:Average sequence length=199.5",
		"Step 5/467 | Example step 0 | Pass 1 | loss: -0.012345 | Average reward: 0.25": "",
		"step 00012/21400 (0.06%) | lrm: 1.00 | dt: 345.67ms | tok/sec: 1,516,789":      "!no_loss",
		"step 00012/21400 (0.06%) | loss: 4.512345 | lrm: 1.":                           "",

		"": "", "Step 12 | loss:2.1 lr:1e-05": "", "step 12 | loss: 2.1 | lr: 1e-5": "", "Step 5": "", "Step x | Validation loss: 1": "",
		"Step 12 | Saving checkpoint: now": "",
	} {
		assert.Equal(t, want, parser.Line(in), in)
	}
}

func FuzzParse(f *testing.F) { parser.Fuzz(f, seeds) }

func BenchmarkParse(b *testing.B) {
	parser.Bench(b, map[string]string{"step": seeds[0], "evaluation": seeds[1], "other": "Tokens / micro-batch / rank: 32 x 2048 = 65,536"})
}
