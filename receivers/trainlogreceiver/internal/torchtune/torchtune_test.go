package torchtune_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/torchtune"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var parser = recordtest.Parser{Source: torchtune.Source, Parse: torchtune.Parse}

var seeds = []string{
	"Step 12 | loss:2.3456 lr:2e-05 tokens_per_second_per_gpu:1234.5 peak_memory_active:10.5 peak_memory_alloc:10.5 peak_memory_reserved:11.25 grad_norm:1.5 ",
	"Step 12 | val_loss:2.25 ", "Step 1 | loss:tensor(1.5, device='cuda:0') grad_norm:tensor(2)", "Step 1 | :", "Step  | a:b", "Step 1 | loss:(",
	"Step 1 | a:tensor(",
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		seeds[0]: "step iteration=12 loss=2.3456 lr=2e-05 grad_norm=1.5 device_tokens/s=1234.5 mem_peak=11274289152(GiBy) mem_reserved_peak=12079595520(GiBy) extra:peak_memory_active=10.5",
		seeds[1]: "evaluation iteration=12 val_loss=2.25",
		seeds[2]: "step iteration=1 loss=1.5 grad_norm=2",
		"Step 3 | loss:0.6 rewards/chosen:tensor(0.0125) rewards/accuracies:tensor(0.5000, device='npu:0') kind:dpo": `step iteration=3 loss=0.6 extra:rewards/chosen=0.0125 extra:rewards/accuracies=0.5 extra:kind="dpo"`,
		"Step 3 | scores:tensor(nan) loss:nan": "step iteration=3 loss=NaN extra:scores=NaN",

		"": "", "Step 5": "", "Step 5 | ": "", "Step x | loss:1": "", "Step 00250 | Validation bpb: 0.9": "", "Step 5 | loss: 1.5": "", "Step 5 | saved": "",
		"step 5 | loss:1": "",
	} {
		assert.Equal(t, want, parser.Line(in), in)
	}
}

func FuzzParse(f *testing.F) { parser.Fuzz(f, seeds) }

func BenchmarkParse(b *testing.B) {
	parser.Bench(b, map[string]string{"step": seeds[0], "evaluation": seeds[1], "other": "INFO:torchtune.utils._logging:Memory stats after model init:"})
}
