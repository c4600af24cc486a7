package megatron

import (
	"testing"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// sink reuses one record, as step's handler does.
type sink struct{ rec record.Record }

func (s *sink) Record() *record.Record { s.rec.Reset(); return &s.rec }
func (*sink) Emit(*record.Record)      {}

func BenchmarkLine(b *testing.B) {
	for _, bb := range []struct{ name, line string }{
		{
			"iteration",
			"iteration        3/ 7629408 | consumed samples:           96 | elapsed time per iteration (ms): 24379.9 | throughput per GPU (TFLOP/s/GPU): 26.8 | learning rate: 1.406250E-04 | global batch size:    32 | lm loss: 1.107468E+01 | loss scale: 1.0 | grad norm: 30.066 | num zeros: 1299.0 | params norm: 496.206 | number of skipped iterations:   0 | number of nan iterations:   0 |",
		},
		{"timer", "    forward-backward ...............................: (1402.11, 1409.87)"},
		{"rank", "     rank  2: 75.63"},
		{
			"straggler",
			"INFO:megatron.core.utils:[2026-11-22 13:29:09] | MnRtt/Rnk: 40.26ms/1 | MxRtt/Rnk: 69.32ms/2 | MnPwr/Rnk: 601000.00W/0 | MxPwr/Rnk: 601300.00W/3 | MnTmp/Rnk: 60.00C/0 | MxTmp/Rnk: 63.00C/3 | MnDRtt/Rnk: 2.11ms/3 | MxDRtt/Rnk: 3.5ms/0 | MnEtpt/Rnk: 1.20TF/2 | MxEtpt/Rnk: 2.07TF/1",
		},
		{"memory", "[Rank 0] (after 2 iterations) memory (MB) | allocated: 9334.37 | max allocated: 12680.64 | reserved: 13236.0 | max reserved: 13236.0"},
		{"other", "WARNING:megatron.core.utils:fused_indices_to_multihot has reached end of life. Please migrate to a non-experimental function. iterations"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var p Parser
			var out sink
			p.Line([]byte("times across ranks (ms):"), &out)
			p.Line([]byte("  forward-compute:"), &out)
			line := []byte(bb.line)
			b.ReportAllocs()
			for b.Loop() {
				p.Line(line, &out)
			}
		})
	}
}
