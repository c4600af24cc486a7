package hfconfig

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/flops"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const llama = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
	"num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, "rope_scaling": {"factor": 8.0},
		"tie_word_embeddings": false}`

const deepseek = `{"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
		"num_hidden_layers": 61, "num_attention_heads": 128,
	"num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_layer_freq": 1,
		"first_k_dense_replace": 3, "vocab_size": 129280,
	"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "num_nextn_predict_layers": 1}`

// The relevant keys of published config.json files.
const (
	nemotronH = `{"model_type": "nemotron_h", "attention_head_dim": 128, "hidden_size": 4096,
		"hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-", "intermediate_size": 21504,
	"mamba_head_dim": 64, "mamba_num_heads": 128, "mlp_hidden_act": "relu2", "n_groups": 8, "num_attention_heads": 32, "num_hidden_layers": 52,
		"num_key_value_heads": 8, "ssm_state_size": 128,
	"vocab_size": 131072, "expand": 2, "n_routed_experts": 8, "num_experts_per_tok": 2}`
	nano = `{"model_type": "nemotron_h", "head_dim": 128, "hidden_size": 2688,
		"hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", "intermediate_size": 1856,
	"mamba_head_dim": 64, "mamba_num_heads": 64, "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712, "n_groups": 8,
		"n_routed_experts": 128, "n_shared_experts": 1,
	"num_attention_heads": 32, "num_experts_per_tok": 6, "num_hidden_layers": 52, "num_key_value_heads": 2, "ssm_state_size": 128, "vocab_size": 131072}`
	qwen3Next = `{"model_type": "qwen3_next", "decoder_sparse_step": 1, "full_attention_interval": 4, "head_dim": 256, "hidden_size": 2048,
		"intermediate_size": 5120, "linear_conv_kernel_dim": 4,
	"linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128, "mlp_only_layers": [],
		"moe_intermediate_size": 512,
	"num_attention_heads": 16, "num_experts": 512, "num_experts_per_tok": 10, "num_hidden_layers": 48, "num_key_value_heads": 2,
		"shared_expert_intermediate_size": 512, "vocab_size": 151936}`
)

// superConfig is the config.json of Nemotron 3 Super by newer versions of transformers: the layers by name.
func superConfig() string {
	var names []string
	for _, kind := range "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME" {
		names = append(names, map[rune]string{'M': `"linear_attention"`, 'E': `"moe"`, '*': `"full_attention"`}[kind])
	}
	return `{"model_type": "nemotron_h", "hidden_size": 4096, "intermediate_size": 2688, "layers_block_type": [` + strings.Join(names, ", ") + `],
		"mamba_num_heads": 128, "moe_intermediate_size": 2688,
	"moe_latent_size": 1024, "moe_shared_expert_intermediate_size": 5376, "n_routed_experts": 512, "num_attention_heads": 32, "num_experts_per_tok": 22,
		"num_key_value_heads": 2,
	"num_nextn_predict_layers": 1, "vocab_size": 131072}`
}

// TestCountedAsMegatronDoes: a config.json leads to the FLOPs of Megatron's own function for the same model's arguments.
func TestCountedAsMegatronDoes(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "flops", "testdata", "golden.json"))
	require.NoError(t, err)
	var golden struct {
		Megatron map[string]struct {
			Batch     float64           `json:"batch_size"`
			Flops     float64           `json:"flops"`
			Arguments map[string]string `json:"arguments"`
		} `json:"megatron"`
	}
	require.NoError(t, json.Unmarshal(raw, &golden))
	for name, config := range map[string]string{
		"nemotron_h_8b": nemotronH, "nemotron_3_nano_30b": nano, "nemotron_3_super_120b": superConfig(),
		"qwen3_next_80b": qwen3Next,
	} {
		m, err := Parse([]byte(config))
		require.NoError(t, err, name)
		want := golden.Megatron[name]
		m.SeqLength, err = strconv.ParseInt(want.Arguments["seq_length"], 10, 64)
		require.NoError(t, err)
		require.Empty(t, flops.Missing(&m), name)
		require.Empty(t, flops.Unsupported(&m), name)
		assert.InEpsilon(t, want.Flops, flops.Megatron(&m, true).Times(want.Batch).Model(), 1e-12, name)
	}
}

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		json string
		want spans.Model
	}{
		"llama": {llama, spans.Model{
			Type: "llama", NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, QueryGroups: 8, FFNHiddenSize: 14336,
			VocabSize: 128256, SwiGLU: true,
		}},
		"strings, floats, null, BOM": {
			"\xef\xbb\xbf" + `{"model_type": "qwen3", "hidden_size": "4096", "intermediate_size": 12288.0, "num_attention_heads": 32, ` +
				`"num_hidden_layers": "36", "num_key_value_heads": null, "head_dim": 128, "vocab_size": 151936}`,
			spans.Model{
				Type: "qwen", NumLayers: 36, HiddenSize: 4096, AttentionHeads: 32, KVChannels: 128, FFNHiddenSize: 12288, VocabSize: 151936,
				SwiGLU: true,
			},
		},
		"gpt2": {
			`{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_inner": null, "n_positions": 1024, "vocab_size": 50257}`,
			spans.Model{Type: "gpt", NumLayers: 12, HiddenSize: 768, AttentionHeads: 12, VocabSize: 50257},
		},
		"mixtral": {
			`{"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32, ` +
				`"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000}`,
			spans.Model{
				Type: "mixtral", NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, QueryGroups: 8, FFNHiddenSize: 14336, VocabSize: 32000,
				SwiGLU: true, NumExperts: 8, RouterTopK: 2,
			},
		},
		"qwen2_moe": {
			`{"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632, "moe_intermediate_size": 1408,
		"shared_expert_intermediate_size": 5632, "num_attention_heads": 16, "num_hidden_layers": 24,
			"num_key_value_heads": 16, "num_experts": 60, "num_experts_per_tok": 4, "decoder_sparse_step": 1, "mlp_only_layers": [0, 1], "vocab_size": 151936}`,
			spans.Model{
				Type: "moe", NumLayers: 24, HiddenSize: 2048, AttentionHeads: 16, QueryGroups: 16, FFNHiddenSize: 5632, VocabSize: 151936, SwiGLU: true,
				NumExperts: 60, RouterTopK: 4, MoEFFN: 1408, SharedExpertFFN: 5632, FirstDense: 2,
			},
		},
		"qwen3_next by the names of its layers": {
			strings.Replace(qwen3Next, `"full_attention_interval": 4`, `"layer_types": ["linear_attention", "full_attention"]`, 1),
			spans.Model{
				Type: "moe", NumLayers: 48, HiddenSize: 2048, AttentionHeads: 16, QueryGroups: 2, KVChannels: 256, FFNHiddenSize: 5120, VocabSize: 151936,
				SwiGLU: true, OutputGate: true,
				NumExperts: 512, RouterTopK: 10, MoEFFN: 512, SharedExpertFFN: 512, AttentionVariant: "gated_delta_net", LinearPattern: "10",
				LinearKeyHeadDim: 128, LinearValueHeadDim: 128,
				LinearKeyHeads: 16, LinearValueHeads: 32, LinearConvKernelDim: 4,
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

// A family with experts may have a model without: the number 0 is no absent number.
func TestNoExperts(t *testing.T) {
	m, err := Parse([]byte(`{"model_type": "qwen3_moe", "hidden_size": 2, "intermediate_size": 6, "num_attention_heads": 1, "num_hidden_layers": 4,
		"num_experts": 0, "vocab_size": 8}`))
	require.NoError(t, err)
	assert.Equal(t, spans.Model{Type: "moe", NumLayers: 4, HiddenSize: 2, AttentionHeads: 1, FFNHiddenSize: 6, VocabSize: 8, SwiGLU: true}, m)
}

func TestErrorsNameTheKey(t *testing.T) {
	moe := func(extra string) string {
		return `{"model_type": "qwen3_moe", "hidden_size": 1, "intermediate_size": 1, "num_attention_heads": 1, "num_hidden_layers": 1, "vocab_size": 1, ` +
			`"num_experts": 8, "num_experts_per_tok": 2, ` + extra + `}`
	}
	for name, tt := range map[string]struct {
		json, text string
		want       error
	}{
		"empty":        {``, "is not a JSON object", nil},
		"a list":       {`[1]`, "is not a JSON object", nil},
		"cut off":      {llama[:100], "is not a JSON object", nil},
		"no type":      {`{}`, `'model_type' is not one of`, errType},
		"unknown type": {`{"model_type": "mamba2"}`, `(it is "mamba2")`, errType},
		"missing":      {`{"model_type": "gpt2", "n_layer": 12}`, "'hidden_size' or 'n_embd' is missing", errMissing},
		"null":         {`{"model_type": "llama", "num_hidden_layers": null}`, "'num_hidden_layers' or 'n_layer' is missing", errMissing},
		"text":         {`{"model_type": "llama", "num_hidden_layers": "many"}`, "'num_hidden_layers' is not a whole number", errNumber},
		"fraction":     {`{"model_type": "llama", "num_hidden_layers": 1.5}`, "'num_hidden_layers' is not a whole number", errNumber},
		"negative":     {`{"model_type": "llama", "num_hidden_layers": -1}`, "'num_hidden_layers' is not a whole number", errNumber},
		"list":         {`{"model_type": "llama", "num_hidden_layers": [1]}`, "'num_hidden_layers' is not a whole number", errNumber},
		"huge":         {`{"model_type": "llama", "num_hidden_layers": 1e300}`, "'num_hidden_layers' is not a whole number", errNumber},
		"kinds":        {strings.Replace(nemotronH, "M-M-M-M*", "M-Mo", 1), "'hybrid_override_pattern' has kinds", errKinds},
		"no kinds": {
			strings.Replace(nemotronH, "hybrid_override_pattern", "x", 1), "'hybrid_override_pattern' or 'layers_block_type' is missing",
			errMissing,
		},
		"names of kinds":  {strings.Replace(superConfig(), "moe", "mystery", 1), "'layers_block_type' has kinds", errKinds},
		"kinds by number": {strings.Replace(qwen3Next, `"full_attention_interval": 4`, `"layer_types": [1]`, 1), "'layer_types' has kinds", errKinds},
		"sparse step":     {moe(`"decoder_sparse_step": 2`), "'decoder_sparse_step' describes", errLayers},
		"dense elsewhere": {moe(`"mlp_only_layers": [0, 5]`), "'mlp_only_layers' describes", errLayers},
		"dense text":      {moe(`"mlp_only_layers": "none"`), "'mlp_only_layers' describes", errLayers},
		"no latent rank": {`{"model_type": "deepseek_v2", "hidden_size": 1, "intermediate_size": 1, "num_attention_heads": 1, "num_hidden_layers": 1, ` +
			`"vocab_size": 1, "n_routed_experts": 0}`, "'kv_lora_rank' is missing", errMissing},
		"no number of experts": {
			strings.Replace(deepseek, "n_routed_experts", "x", 1), "'num_local_experts' or 'num_experts' or 'n_routed_experts' is missing", errMissing,
		},
		"no number of experts in layers with experts": {strings.Replace(nano, "n_routed_experts", "x", 1), "'n_routed_experts' is missing", errMissing},
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
	f.Add([]byte(nemotronH))
	f.Add([]byte(qwen3Next))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Parse(raw)
		if err == nil && (m.NumLayers <= 0 || m.HiddenSize <= 0 || m.AttentionHeads <= 0 || m.VocabSize <= 0) {
			t.Fatalf("%q: %+v", raw, m)
		}
	})
}
