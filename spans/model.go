package spans

import (
	"bytes"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// ModelPrefix goes before the name of a Model's field as a resource attribute: ml.model.hidden_size.
const ModelPrefix = "ml.model."

// Model describes the model that a job trains, in the names of Megatron's arguments (megatron/training/arguments.py). A receiver that
// finds an argument dump in a log puts it on the resource of its spans; train_perf reads it there, or has it in its config.
// Zero means not known.
type Model struct {
	Type             string `mapstructure:"type"` // gpt, llama, qwen, mixtral, moe, aquila, deepseek; decides FlagScale's formula only
	NumLayers        int64  `mapstructure:"num_layers"`
	HiddenSize       int64  `mapstructure:"hidden_size"`
	AttentionHeads   int64  `mapstructure:"num_attention_heads"`
	QueryGroups      int64  `mapstructure:"num_query_groups"` // 0: as many as heads
	KVChannels       int64  `mapstructure:"kv_channels"`      // 0: hidden_size / num_attention_heads
	FFNHiddenSize    int64  `mapstructure:"ffn_hidden_size"`
	SeqLength        int64  `mapstructure:"seq_length"`
	PaddedVocabSize  int64  `mapstructure:"padded_vocab_size"` // 0: vocab_size
	VocabSize        int64  `mapstructure:"vocab_size"`
	GlobalBatchSize  int64  `mapstructure:"global_batch_size"` // a step's logged batch size comes before it
	WorldSize        int64  `mapstructure:"world_size"`
	DataParallelSize int64  `mapstructure:"data_parallel_size"`
	SwiGLU           bool   `mapstructure:"swiglu"`
	MTPLayers        int64  `mapstructure:"mtp_num_layers"`
	OutputGate       bool   `mapstructure:"attention_output_gate"`

	// Mixture of experts.
	NumExperts      int64 `mapstructure:"num_experts"`
	RouterTopK      int64 `mapstructure:"moe_router_topk"`
	MoEFFN          int64 `mapstructure:"moe_ffn_hidden_size"` // 0: ffn_hidden_size
	SharedExpertFFN int64 `mapstructure:"moe_shared_expert_intermediate_size"`
	// MoELayerFreq: every Nth layer is a mixture of experts. 0 and 1: all. FirstDense layers before them are dense (first_k_dense_replace of
	// DeepSeek's config.json; Megatron writes both as a list in moe_layer_freq).
	MoELayerFreq int64 `mapstructure:"moe_layer_freq"`
	FirstDense   int64 `mapstructure:"first_k_dense_replace"`

	// Multi-head latent attention (DeepSeek).
	MLA        bool  `mapstructure:"multi_latent_attention"`
	QLoRARank  int64 `mapstructure:"q_lora_rank"` // 0: queries are not compressed
	KVLoRARank int64 `mapstructure:"kv_lora_rank"`
	QKHeadDim  int64 `mapstructure:"qk_head_dim"`
	QKPosDim   int64 `mapstructure:"qk_pos_emb_head_dim"`
	VHeadDim   int64 `mapstructure:"v_head_dim"`

	Recompute string `mapstructure:"recompute_granularity"` // full, selective or empty

	noGroups bool // Set: group_query_attention is False
}

// Known says whether the model is described well enough to count its FLOPs.
func (m *Model) Known() bool {
	return m.NumLayers > 0 && m.HiddenSize > 0 && m.AttentionHeads > 0 && m.SeqLength > 0
}

// modelField binds a name to a field of a model. One of the pointers is set.
type modelField struct {
	name string
	i    *int64
	s    *string
	b    *bool
}

const modelFields = 29

func (m *Model) fields() [modelFields]modelField {
	return [modelFields]modelField{
		{name: "type", s: &m.Type},
		{name: "num_layers", i: &m.NumLayers},
		{name: "hidden_size", i: &m.HiddenSize},
		{name: "num_attention_heads", i: &m.AttentionHeads},
		{name: "num_query_groups", i: &m.QueryGroups},
		{name: "kv_channels", i: &m.KVChannels},
		{name: "ffn_hidden_size", i: &m.FFNHiddenSize},
		{name: "seq_length", i: &m.SeqLength},
		{name: "padded_vocab_size", i: &m.PaddedVocabSize},
		{name: "vocab_size", i: &m.VocabSize},
		{name: "global_batch_size", i: &m.GlobalBatchSize},
		{name: "world_size", i: &m.WorldSize},
		{name: "data_parallel_size", i: &m.DataParallelSize},
		{name: "swiglu", b: &m.SwiGLU},
		{name: "mtp_num_layers", i: &m.MTPLayers},
		{name: "attention_output_gate", b: &m.OutputGate},
		{name: "num_experts", i: &m.NumExperts},
		{name: "moe_router_topk", i: &m.RouterTopK},
		{name: "moe_ffn_hidden_size", i: &m.MoEFFN},
		{name: "moe_shared_expert_intermediate_size", i: &m.SharedExpertFFN},
		{name: "moe_layer_freq", i: &m.MoELayerFreq},
		{name: "first_k_dense_replace", i: &m.FirstDense},
		{name: "multi_latent_attention", b: &m.MLA},
		{name: "q_lora_rank", i: &m.QLoRARank},
		{name: "kv_lora_rank", i: &m.KVLoRARank},
		{name: "qk_head_dim", i: &m.QKHeadDim},
		{name: "qk_pos_emb_head_dim", i: &m.QKPosDim},
		{name: "v_head_dim", i: &m.VHeadDim},
		{name: "recompute_granularity", s: &m.Recompute},
	}
}

// Put writes what is known as attributes of a resource.
func (m *Model) Put(attrs pcommon.Map) {
	for _, f := range m.fields() {
		switch {
		case f.i != nil && *f.i != 0:
			attrs.PutInt(ModelPrefix+f.name, *f.i)
		case f.s != nil && *f.s != "":
			attrs.PutStr(ModelPrefix+f.name, *f.s)
		case f.b != nil && *f.b:
			attrs.PutBool(ModelPrefix+f.name, true)
		}
	}
}

// ModelOf reads the model in the attributes of a resource. It is cheap where there is none.
func ModelOf(attrs pcommon.Map) (m Model, ok bool) {
	if _, ok := attrs.Get(ModelPrefix + "hidden_size"); !ok {
		return m, false
	}
	fields := m.fields()
	for name, v := range attrs.All() {
		name, ok := strings.CutPrefix(name, ModelPrefix)
		if !ok {
			continue
		}
		for i := range fields {
			f := &fields[i]
			switch {
			case f.name != name:
			case f.i != nil:
				*f.i = v.Int()
			case f.s != nil:
				*f.s = ValueText(v)
			case f.b != nil:
				*f.b = v.Bool()
			}
		}
	}
	return m, true
}

// Set sets the field of a Megatron argument. It says false for an argument that has none here, and for a value that is not of its kind.
func (m *Model) Set(name string, text []byte) bool {
	switch name {
	case "group_query_attention":
		// Without it num_query_groups says 1 (its default), and means as many as heads.
		if m.noGroups = string(text) == "False"; m.noGroups {
			m.QueryGroups = 0
		}
		return m.noGroups || string(text) == "True"
	case "num_query_groups":
		if m.noGroups {
			return true
		}
	}
	for _, f := range m.fields() {
		if f.name != name {
			continue
		}
		switch {
		case f.i != nil:
			digits := bytes.TrimPrefix(text, []byte("-"))
			var v int64
			for _, c := range digits {
				if c-'0' > 9 || v > 1<<53 {
					return false
				}
				v = v*10 + int64(c-'0')
			}
			if len(digits) < len(text) {
				v = -v
			}
			*f.i = v
			return len(digits) > 0
		case f.s != nil:
			if string(text) != "None" {
				*f.s = Name(text)
			}
			return true
		case f.b != nil:
			*f.b = string(text) == "True"
			return *f.b || string(text) == "False"
		}
	}
	return false
}
