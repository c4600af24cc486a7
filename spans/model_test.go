package spans

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestModelAttributes(t *testing.T) {
	m := Model{
		Type: "deepseek", NumLayers: 61, HiddenSize: 7168, AttentionHeads: 128, FFNHiddenSize: 18432, SeqLength: 4096, VocabSize: 129280, GlobalBatchSize: 32,
		SwiGLU: true, NumExperts: 256, RouterTopK: 8, MoEFFN: 2048, SharedExpertFFN: 2048, FirstDense: 3, MLA: true, KVLoRARank: 512, QKHeadDim: 128, QKPosDim: 64,
		VHeadDim:  128,
		Recompute: "full", Hybrid: true, AttentionRatio: 0.08, MLPRatio: 0.46, HybridPattern: "M-*E", Unsupported: "gated delta product",
	}
	attrs := pcommon.NewMap()
	attrs.PutStr(AttrServiceName, "job")
	_, ok := ModelOf(attrs)
	assert.False(t, ok)
	m.Put(attrs)
	attrs.PutStr("ml.model.num_query_groups", "8") // of another type: not a number
	attrs.PutInt("ml.model.unknown", 1)
	got, ok := ModelOf(attrs)
	assert.True(t, ok)
	assert.Equal(t, m, got)
	assert.Zero(t, testing.AllocsPerRun(100, func() { ModelOf(attrs) }))
}

// TestModelSetQueryGroups: Megatron prints num_query_groups 1 for a model without grouped queries.
func TestModelSetQueryGroups(t *testing.T) {
	for _, dump := range [][2]string{{"group_query_attention", "num_query_groups"}, {"num_query_groups", "group_query_attention"}} {
		for use, want := range map[string]int64{"False": 0, "True": 1} {
			var m Model
			for _, name := range dump {
				text := use
				if name == "num_query_groups" {
					text = "1"
				}
				assert.True(t, m.Set(name, []byte(text)))
			}
			assert.Equal(t, want, m.QueryGroups, "%v %s", dump, use)
		}
	}
	var m Model
	assert.False(t, m.Set("group_query_attention", []byte("maybe")))
}

// TestModelSetHybrid: a dump has the older name of the pattern after the newer name, whose value also has the layers of multi-token prediction.
func TestModelSetHybrid(t *testing.T) {
	var m Model
	for _, a := range [][2]string{
		{"hybrid_attention_ratio", "0.08"},
		{"hybrid_layer_pattern", "M-/M"},
		{"hybrid_mlp_ratio", "0.0"},
		{"hybrid_override_pattern", "M-"},
		{"mtp_hybrid_override_pattern", "None"},
		{"spec", "None"},
	} {
		assert.True(t, m.Set(a[0], []byte(a[1])), a[0])
	}
	assert.Equal(t, Model{AttentionRatio: 0.08, HybridPattern: "M-/M"}, m)
	assert.False(t, m.Set("hybrid_mlp_ratio", []byte("nan")))
	assert.False(t, m.Set("hybrid_mlp_ratio", []byte("half")))
	m = Model{}
	assert.True(t, m.Set("hybrid_override_pattern", []byte("M-")))
	assert.Equal(t, "M-", m.HybridPattern)
}

// TestModelSetRampUp: steps are not compared with the batch at the end of a ramp-up, so perf_monitor is not blamed for omitting samples.
func TestModelSetRampUp(t *testing.T) {
	for _, dump := range [][2][2]string{
		{{"global_batch_size", "512"}, {"rampup_batch_size", "['32', '32', '100000']"}},
		{{"rampup_batch_size", "['32', '32', '100000']"}, {"global_batch_size", "512"}},
	} {
		var m Model
		for _, a := range dump {
			assert.True(t, m.Set(a[0], []byte(a[1])))
		}
		assert.Zero(t, m.GlobalBatchSize)
	}
	var m Model
	assert.True(t, m.Set("global_batch_size", []byte("512")))
	assert.True(t, m.Set("rampup_batch_size", []byte("None")))
	assert.True(t, m.Set("fp8", []byte("hybrid")))
	assert.True(t, m.Set("fp4", []byte("None")))
	assert.True(t, m.Set("recompute_granularity", []byte("False")))
	assert.Equal(t, Model{GlobalBatchSize: 512, FP8: "hybrid"}, m)
}
