// Package hfconfig reads the model in a config.json of Hugging Face transformers.
package hfconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/spans"
)

// families maps model_type to our model types. Families with further kinds of layers (sliding windows, …) are left out: their FLOPs would be wrong.
var families = map[string]string{
	"gpt2": "gpt", "llama": "llama", "mistral": "llama", "aquila": "aquila", "qwen2": "qwen", "qwen3": "qwen",
	"mixtral": "mixtral", "qwen2_moe": "moe", "qwen3_moe": "moe", "deepseek_v2": "deepseek", "deepseek_v3": "deepseek",
	"qwen3_next": "moe", "nemotron_h": "gpt",
}

var (
	errType = errors.New("'model_type' is not one of gpt2, llama, mistral, aquila, qwen2, qwen3, mixtral, qwen2_moe, qwen3_moe, deepseek_v2, " +
		"deepseek_v3, qwen3_next, nemotron_h: describe the model under 'train::model' instead")
	errMissing = errors.New("is missing")
	errNumber  = errors.New("is not a whole number of 0 or more")
	errKinds   = errors.New("has kinds of layers that are not known here: describe the model under 'train::model' instead")
	errLayers  = errors.New("describes a pattern of layers other than dense ones first: describe the model under 'train::model' instead")
)

// Parse returns the model described by a config.json. Numbers may be strings, and null is an absent key. An absent key is an error where FLOPs cannot be
// counted without it (required), or has the default of transformers (delta, hybrid); otherwise the value stays zero. An error about a key names the key.
//
// The sequence length (max_position_embeddings is only an upper limit) and the batch are never read. Multi-token prediction is ignored: transformers does not
// train it.
func Parse(raw []byte) (spans.Model, error) {
	var m spans.Model
	var f file
	if err := json.Unmarshal(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")), &f.keys); err != nil { // a UTF-8 byte order mark
		return m, fmt.Errorf("is not a JSON object: %w", err)
	}
	kind := f.text("model_type")
	m.Type = families[kind]
	if m.Type == "" {
		return m, fmt.Errorf("%w (it is %q)", errType, kind)
	}
	m.KVChannels = f.number("head_dim")
	if kind == "nemotron_h" {
		f.hybrid(&m)
	} else {
		m.NumLayers = f.required("num_hidden_layers", "n_layer")
	}
	m.HiddenSize = f.required("hidden_size", "n_embd")
	m.AttentionHeads = f.required("num_attention_heads", "n_head")
	m.VocabSize = f.required("vocab_size")
	m.QueryGroups = f.number("num_key_value_heads")
	m.SwiGLU = m.Type != "gpt" && kind != "nemotron_h" // Nemotron-H with experts is of type moe, and has no SwiGLU either
	if kind == "gpt2" {
		m.FFNHiddenSize = f.number("n_inner", "intermediate_size") // null: four times hidden_size, as in Megatron
	} else {
		m.FFNHiddenSize = f.required("intermediate_size")
	}
	f.experts(&m)
	if kind == "qwen3_next" {
		f.delta(&m)
	}
	if m.Type == "deepseek" {
		m.MLA, m.KVChannels, m.QueryGroups = true, 0, 0 // latent attention has sizes of its own
		m.QLoRARank = f.number("q_lora_rank")
		m.KVLoRARank, m.QKHeadDim = f.required("kv_lora_rank"), f.required("qk_nope_head_dim")
		m.QKPosDim, m.VHeadDim = f.required("qk_rope_head_dim"), f.required("v_head_dim")
	}
	if f.err != nil {
		return spans.Model{}, f.err
	}
	return m, nil
}

// experts reads a mixture of experts: the number of experts, in total and per token, their size, shared experts, and which layers have experts: those at a
// frequency, after the dense layers at the beginning. Another pattern is an error. In a family with experts their number must be present, if only as 0, because
// transformers and the models' own code have different defaults.
func (f *file) experts(m *spans.Model) {
	keys := []string{"num_local_experts", "num_experts", "n_routed_experts"}
	m.NumExperts = f.number(keys...)
	if m.NumExperts == 0 {
		isStated := slices.ContainsFunc(keys, func(key string) bool { return f.text(key) != "" })
		hasExperts := m.Type == "mixtral" || m.Type == "moe" || m.Type == "deepseek"
		if hasExperts && !isStated {
			f.fail(strings.Join(keys, "' or '"), errMissing)
		}
		return
	}
	m.RouterTopK = f.required("num_experts_per_tok")
	m.MoEFFN = f.number("moe_intermediate_size")
	m.SharedExpertFFN = f.number("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size")
	if n := f.number("n_shared_experts"); n > 0 && m.SharedExpertFFN == 0 {
		m.SharedExpertFFN = n * f.required("moe_intermediate_size")
	}
	m.MoELayerFreq, m.FirstDense = f.number("moe_layer_freq"), f.number("first_k_dense_replace")
	// decoder_sparse_step N of Qwen is every Nth layer too, but the last of each N (moe_layer_freq: the first), which the model cannot say. Qwen lists its
	// dense layers.
	if f.number("decoder_sparse_step") > 1 {
		f.fail("decoder_sparse_step", errLayers)
	}
	var dense []int64
	if raw, ok := f.keys["mlp_only_layers"]; ok && json.Unmarshal(raw, &dense) != nil {
		f.fail("mlp_only_layers", errLayers)
	}
	for i, layer := range dense { // must be 0, 1, 2, …
		if layer != int64(i) {
			f.fail("mlp_only_layers", errLayers)
		}
		m.FirstDense = int64(i) + 1
	}
}

// delta reads models with layers of gated delta net and of gated attention (Qwen3-Next).
func (f *file) delta(m *spans.Model) {
	m.AttentionVariant, m.OutputGate = "gated_delta_net", true
	m.LinearKeyHeadDim, m.LinearValueHeadDim = f.number("linear_key_head_dim"), f.number("linear_value_head_dim")
	m.LinearKeyHeads, m.LinearValueHeads = f.number("linear_num_key_heads"), f.number("linear_num_value_heads")
	m.LinearConvKernelDim = f.number("linear_conv_kernel_dim")
	if m.KVChannels == 0 {
		m.KVChannels = 256 // the default of transformers, not hidden_size / heads
	}
	m.LinearPattern = f.layers("layer_types", map[string]byte{"linear_attention": '1', "full_attention": '0'})
	if m.LinearPattern == "" {
		m.LinearFreq = f.number("full_attention_interval")
		if m.LinearFreq == 0 {
			m.LinearFreq = 4 // the default of transformers
		}
	}
}

// hybrid reads layers of Mamba, attention, feed-forward and experts (Nemotron-H). Multi-token prediction is ignored.
func (f *file) hybrid(m *spans.Model) {
	kinds := map[string]byte{"mamba": 'M', "linear_attention": 'M', "attention": '*', "full_attention": '*', "mlp": '-', "moe": 'E'}
	m.HybridPattern = f.text("hybrid_override_pattern")
	if m.HybridPattern == "" {
		m.HybridPattern = f.layers("layers_block_type", kinds)
	}
	if m.HybridPattern == "" {
		f.fail("hybrid_override_pattern' or 'layers_block_type", errMissing)
	}
	if strings.Trim(m.HybridPattern, "M*-E") != "" {
		f.fail("hybrid_override_pattern", errKinds)
	}
	m.NumLayers = int64(len(m.HybridPattern))
	m.KVChannels = f.number("head_dim", "attention_head_dim")
	if m.KVChannels == 0 {
		m.KVChannels = 128 // the default of transformers, not hidden_size / heads
	}
	m.MambaStateDim, m.MambaHeadDim = f.number("ssm_state_size"), f.number("mamba_head_dim")
	m.MambaNumGroups, m.MambaNumHeads = f.number("n_groups"), f.number("mamba_num_heads")
	if !strings.Contains(m.HybridPattern, "E") {
		delete(f.keys, "n_routed_experts") // else experts, called next, reads experts of a model without expert layers
		return
	}
	m.Type, m.MoELatentSize = "moe", f.number("moe_latent_size")
}

// layers reads the list of layer kinds under a key as a pattern, with the letter that kinds has for each layer. Empty: absent; or an unknown kind or no list of
// names, which are recorded as errors.
func (f *file) layers(key string, kinds map[string]byte) string {
	var names []string
	if raw, ok := f.keys[key]; ok && json.Unmarshal(raw, &names) != nil {
		f.fail(key, errKinds)
	}
	pattern := make([]byte, len(names))
	for i, name := range names {
		pattern[i] = kinds[name]
		if pattern[i] == 0 {
			f.fail(key, errKinds)
			return ""
		}
	}
	return string(pattern)
}

// file has the keys of a config.json. It keeps the first error, so that Parse need not check each key.
type file struct {
	keys map[string]json.RawMessage
	err  error
}

// fail records the first error, about a key.
func (f *file) fail(key string, err error) {
	if f.err == nil {
		f.err = fmt.Errorf("'%s' %w", key, err)
	}
}

// text returns the value of a key as text: the content of a string, or the JSON of another value, such as a number; empty: absent, or null.
func (f *file) text(key string) (s string) {
	if raw, ok := f.keys[key]; ok && json.Unmarshal(raw, &s) != nil {
		return strings.TrimSpace(string(raw))
	}
	return s
}

// number returns the value of the first of the keys that is present, not null and not an empty text: a whole number of 0 or more; 0: none, or another value,
// which is recorded as an error. Numbers up to 2⁵³ are exact as floats.
func (f *file) number(keys ...string) int64 {
	for _, key := range keys {
		text := f.text(key)
		if text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v != math.Trunc(v) || v < 0 || v > 1<<53 {
			f.fail(key, errNumber)
			return 0
		}
		return int64(v)
	}
	return 0
}

// required is number for a key that must be present: 0 is recorded as an error.
func (f *file) required(keys ...string) int64 {
	v := f.number(keys...)
	if v == 0 {
		f.fail(strings.Join(keys, "' or '"), errMissing)
	}
	return v
}
