package hfconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const llama = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
	"num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, "rope_scaling": {"factor": 8.0}, "tie_word_embeddings": false}`

const deepseek = `{"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 128,
	"num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_layer_freq": 1, "first_k_dense_replace": 3, "vocab_size": 129280,
	"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "num_nextn_predict_layers": 1}`

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		json string
		want spans.Model
	}{
		"llama": {llama, spans.Model{Type: "llama", NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, QueryGroups: 8, FFNHiddenSize: 14336, VocabSize: 128256, SwiGLU: true}},
		"strings, floats, null, BOM": {
			"\xef\xbb\xbf" + `{"model_type": "qwen3", "hidden_size": "4096", "intermediate_size": 12288.0, "num_attention_heads": 32, "num_hidden_layers": "36", "num_key_value_heads": null, "head_dim": 128, "vocab_size": 151936}`,
			spans.Model{Type: "qwen", NumLayers: 36, HiddenSize: 4096, AttentionHeads: 32, KVChannels: 128, FFNHiddenSize: 12288, VocabSize: 151936, SwiGLU: true},
		},
		"gpt2": {
			`{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_inner": null, "n_positions": 1024, "vocab_size": 50257}`,
			spans.Model{Type: "gpt", NumLayers: 12, HiddenSize: 768, AttentionHeads: 12, VocabSize: 50257},
		},
		"mixtral": {
			`{"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000}`,
			spans.Model{Type: "mixtral", NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, QueryGroups: 8, FFNHiddenSize: 14336, VocabSize: 32000, SwiGLU: true, NumExperts: 8, RouterTopK: 2},
		},
		"qwen2_moe": {
			`{"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_attention_heads": 16, "num_hidden_layers": 24,
			"num_key_value_heads": 16, "num_experts": 60, "num_experts_per_tok": 4, "decoder_sparse_step": 1, "mlp_only_layers": [0, 1], "vocab_size": 151936}`,
			spans.Model{
				Type: "moe", NumLayers: 24, HiddenSize: 2048, AttentionHeads: 16, QueryGroups: 16, FFNHiddenSize: 5632, VocabSize: 151936, SwiGLU: true,
				NumExperts: 60, RouterTopK: 4, MoEFFN: 1408, SharedExpertFFN: 5632, FirstDense: 2,
			},
		},
		"deepseek_v3": {deepseek, spans.Model{
			Type: "deepseek", NumLayers: 61, HiddenSize: 7168, AttentionHeads: 128, FFNHiddenSize: 18432, VocabSize: 129280, SwiGLU: true,
			NumExperts: 256, RouterTopK: 8, MoEFFN: 2048, SharedExpertFFN: 2048, MoELayerFreq: 1, FirstDense: 3,
			MLA: true, QLoRARank: 1536, KVLoRARank: 512, QKHeadDim: 128, QKPosDim: 64, VHeadDim: 128,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Parse([]byte(tt.json))
			require.NoError(t, err)
			assert.Equal(t, tt.want, m)
		})
	}
}

func TestErrorsNameTheKey(t *testing.T) {
	moe := func(extra string) string {
		return `{"model_type": "qwen3_moe", "hidden_size": 1, "intermediate_size": 1, "num_attention_heads": 1, "num_hidden_layers": 1, "vocab_size": 1, "num_experts": 8, "num_experts_per_tok": 2, ` + extra + `}`
	}
	for name, tt := range map[string]struct {
		json, text string
		want       error
	}{
		"empty":           {``, "is not a JSON object", nil},
		"a list":          {`[1]`, "is not a JSON object", nil},
		"cut off":         {llama[:100], "is not a JSON object", nil},
		"no type":         {`{}`, `'model_type' is not one of`, errType},
		"unknown type":    {`{"model_type": "mamba2"}`, `(it is "mamba2")`, errType},
		"missing":         {`{"model_type": "gpt2", "n_layer": 12}`, "'hidden_size' or 'n_embd' is missing", errMissing},
		"null":            {`{"model_type": "llama", "num_hidden_layers": null}`, "'num_hidden_layers' or 'n_layer' is missing", errMissing},
		"text":            {`{"model_type": "llama", "num_hidden_layers": "many"}`, "'num_hidden_layers' is not a whole number", errNumber},
		"fraction":        {`{"model_type": "llama", "num_hidden_layers": 1.5}`, "'num_hidden_layers' is not a whole number", errNumber},
		"negative":        {`{"model_type": "llama", "num_hidden_layers": -1}`, "'num_hidden_layers' is not a whole number", errNumber},
		"list":            {`{"model_type": "llama", "num_hidden_layers": [1]}`, "'num_hidden_layers' is not a whole number", errNumber},
		"huge":            {`{"model_type": "llama", "num_hidden_layers": 1e300}`, "'num_hidden_layers' is not a whole number", errNumber},
		"sparse step":     {moe(`"decoder_sparse_step": 2`), "'decoder_sparse_step' describes", errLayers},
		"dense elsewhere": {moe(`"mlp_only_layers": [0, 5]`), "'mlp_only_layers' describes", errLayers},
		"dense text":      {moe(`"mlp_only_layers": "none"`), "'mlp_only_layers' describes", errLayers},
		"no latent rank":  {`{"model_type": "deepseek_v2", "hidden_size": 1, "intermediate_size": 1, "num_attention_heads": 1, "num_hidden_layers": 1, "vocab_size": 1}`, "'kv_lora_rank' is missing", errMissing},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tt.json))
			require.ErrorContains(t, err, tt.text)
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(llama))
	f.Add([]byte(deepseek))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Parse(raw)
		if err == nil && (m.NumLayers <= 0 || m.HiddenSize <= 0 || m.AttentionHeads <= 0 || m.VocabSize <= 0) {
			t.Fatalf("%q: %+v", raw, m)
		}
	})
}
