package spans

import (
	"bytes"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/ascii"
)

// Model describes the model that a job trains, in the names of Megatron's arguments (megatron/training/arguments.py). A receiver that finds an argument dump in
// a log puts the model on the resource of its spans; train_perf reads it there, or has a model in its config. Zero means unknown.
type Model struct {
	Type             string `mapstructure:"type"` // gpt, llama, qwen, mixtral, moe, aquila, deepseek. FlagScale's formula reads it; some imply SwiGLU in a config
	NumLayers        int64  `mapstructure:"num_layers"`
	HiddenSize       int64  `mapstructure:"hidden_size"`
	AttentionHeads   int64  `mapstructure:"num_attention_heads"`
	QueryGroups      int64  `mapstructure:"num_query_groups"` // 0: as many as heads
	KVChannels       int64  `mapstructure:"kv_channels"`      // 0: hidden_size / num_attention_heads
	FFNHiddenSize    int64  `mapstructure:"ffn_hidden_size"`
	SeqLength        int64  `mapstructure:"seq_length"`
	PaddedVocabSize  int64  `mapstructure:"padded_vocab_size"` // 0: vocab_size
	VocabSize        int64  `mapstructure:"vocab_size"`
	GlobalBatchSize  int64  `mapstructure:"global_batch_size"` // a step's logged batch size has priority
	WorldSize        int64  `mapstructure:"world_size"`
	DataParallelSize int64  `mapstructure:"data_parallel_size"`
	PipelineParallel int64  `mapstructure:"pipeline_model_parallel_size"` // below 0: the ranks of a pipeline stage are not consecutive
	SwiGLU           bool   `mapstructure:"swiglu"`
	MTPLayers        int64  `mapstructure:"mtp_num_layers"`
	OutputGate       bool   `mapstructure:"attention_output_gate"`

	// Mixture of experts.
	NumExperts      int64 `mapstructure:"num_experts"`
	RouterTopK      int64 `mapstructure:"moe_router_topk"`
	MoEFFN          int64 `mapstructure:"moe_ffn_hidden_size"` // 0: ffn_hidden_size
	SharedExpertFFN int64 `mapstructure:"moe_shared_expert_intermediate_size"`
	MoELatentSize   int64 `mapstructure:"moe_latent_size"` // 0: experts work on hidden_size
	// MoELayerFreq: every Nth layer is a mixture of experts. 0 and 1: all. FirstDense layers before them are dense (first_k_dense_replace of DeepSeek's
	// config.json). MoEPattern has priority over both: a list in Megatron's moe_layer_freq, 1 (experts) or 0 per layer: "0111".
	MoELayerFreq int64  `mapstructure:"moe_layer_freq"`
	FirstDense   int64  `mapstructure:"first_k_dense_replace"`
	MoEPattern   string `mapstructure:"moe_layer_pattern"`

	// Multi-head latent attention (DeepSeek).
	MLA        bool  `mapstructure:"multi_latent_attention"`
	QLoRARank  int64 `mapstructure:"q_lora_rank"` // 0: queries are not compressed
	KVLoRARank int64 `mapstructure:"kv_lora_rank"`
	QKHeadDim  int64 `mapstructure:"qk_head_dim"`
	QKPosDim   int64 `mapstructure:"qk_pos_emb_head_dim"`
	VHeadDim   int64 `mapstructure:"v_head_dim"`

	// Attention other than softmax over all keys: gated_delta_net (gdn), gdn2, dsa. Every Nth layer (LinearFreq) still has softmax; LinearPattern has priority:
	// a list in linear_attention_freq, 1 (linear) or 0 per layer, multi-token prediction last.
	AttentionVariant    string `mapstructure:"experimental_attention_variant"`
	LinearFreq          int64  `mapstructure:"linear_attention_freq"`
	LinearPattern       string `mapstructure:"linear_attention_pattern"`
	LinearKeyHeadDim    int64  `mapstructure:"linear_key_head_dim"`    // 0: 128
	LinearValueHeadDim  int64  `mapstructure:"linear_value_head_dim"`  // 0: 128
	LinearKeyHeads      int64  `mapstructure:"linear_num_key_heads"`   // 0: 16
	LinearValueHeads    int64  `mapstructure:"linear_num_value_heads"` // 0: 32
	LinearConvKernelDim int64  `mapstructure:"linear_conv_kernel_dim"` // 0: 4

	// Layers of several kinds, one letter each: M Mamba, G gated delta net, * attention, - feed-forward, E experts; "/" begins a depth of multi-token
	// prediction. Older name: hybrid_override_pattern.
	HybridPattern  string  `mapstructure:"hybrid_layer_pattern"`
	Hybrid         bool    `mapstructure:"is_hybrid_model"`        // older versions: without a pattern, only the shares of the kinds of layers are known
	AttentionRatio float64 `mapstructure:"hybrid_attention_ratio"` // 0..1
	MLPRatio       float64 `mapstructure:"hybrid_mlp_ratio"`       // 0..1
	MambaStateDim  int64   `mapstructure:"mamba_state_dim"`        // 0: 128
	MambaHeadDim   int64   `mapstructure:"mamba_head_dim"`         // 0: 64
	MambaNumGroups int64   `mapstructure:"mamba_num_groups"`       // 0: 8
	MambaNumHeads  int64   `mapstructure:"mamba_num_heads"`        // 0: 2 · hidden_size / mamba_head_dim

	Recompute string `mapstructure:"recompute_granularity"` // full, selective or empty

	// FP8 and FP4 name the format of the GEMMs, which may be faster than the BF16 peak: e4m3, hybrid; e2m1.
	FP8 string `mapstructure:"fp8"`
	FP4 string `mapstructure:"fp4"`

	// Unsupported is a property that the fields cannot describe, so FLOPs cannot be counted. Empty: none.
	Unsupported string `mapstructure:"-"`

	// State of Set from the lines before: group_query_attention is False; the batch grows up to global_batch_size.
	NoGroups bool `mapstructure:"-"`
	RampUp   bool `mapstructure:"-"`
}

// modelField binds a name to a field of a model. Exactly one of the pointers is set.
type modelField struct {
	name string
	i    *int64
	f    *float64
	s    *string
	b    *bool
}

const modelFields = 51

// fields binds the names of attributes, Megatron's arguments mostly, to the fields. An array, so that nothing is allocated.
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
		{name: "pipeline_model_parallel_size", i: &m.PipelineParallel},
		{name: "swiglu", b: &m.SwiGLU},
		{name: "mtp_num_layers", i: &m.MTPLayers},
		{name: "attention_output_gate", b: &m.OutputGate},
		{name: "num_experts", i: &m.NumExperts},
		{name: "moe_router_topk", i: &m.RouterTopK},
		{name: "moe_ffn_hidden_size", i: &m.MoEFFN},
		{name: "moe_shared_expert_intermediate_size", i: &m.SharedExpertFFN},
		{name: "moe_latent_size", i: &m.MoELatentSize},
		{name: "moe_layer_freq", i: &m.MoELayerFreq},
		{name: "first_k_dense_replace", i: &m.FirstDense},
		{name: "moe_layer_pattern", s: &m.MoEPattern},
		{name: "multi_latent_attention", b: &m.MLA},
		{name: "q_lora_rank", i: &m.QLoRARank},
		{name: "kv_lora_rank", i: &m.KVLoRARank},
		{name: "qk_head_dim", i: &m.QKHeadDim},
		{name: "qk_pos_emb_head_dim", i: &m.QKPosDim},
		{name: "v_head_dim", i: &m.VHeadDim},
		{name: "experimental_attention_variant", s: &m.AttentionVariant},
		{name: "linear_attention_freq", i: &m.LinearFreq},
		{name: "linear_attention_pattern", s: &m.LinearPattern},
		{name: "linear_key_head_dim", i: &m.LinearKeyHeadDim},
		{name: "linear_value_head_dim", i: &m.LinearValueHeadDim},
		{name: "linear_num_key_heads", i: &m.LinearKeyHeads},
		{name: "linear_num_value_heads", i: &m.LinearValueHeads},
		{name: "linear_conv_kernel_dim", i: &m.LinearConvKernelDim},
		{name: "hybrid_layer_pattern", s: &m.HybridPattern},
		{name: "is_hybrid_model", b: &m.Hybrid},
		{name: "hybrid_attention_ratio", f: &m.AttentionRatio},
		{name: "hybrid_mlp_ratio", f: &m.MLPRatio},
		{name: "mamba_state_dim", i: &m.MambaStateDim},
		{name: "mamba_head_dim", i: &m.MambaHeadDim},
		{name: "mamba_num_groups", i: &m.MambaNumGroups},
		{name: "mamba_num_heads", i: &m.MambaNumHeads},
		{name: "recompute_granularity", s: &m.Recompute},
		{name: "fp8", s: &m.FP8},
		{name: "fp4", s: &m.FP4},
		{name: "unsupported", s: &m.Unsupported},
	}
}

// Put writes the known fields as attributes of a resource: those that are not zero.
func (m *Model) Put(attrs pcommon.Map) {
	for _, f := range m.fields() {
		switch {
		case f.i != nil && *f.i != 0:
			attrs.PutInt(ModelPrefix+f.name, *f.i)
		case f.f != nil && *f.f != 0:
			attrs.PutDouble(ModelPrefix+f.name, *f.f)
		case f.s != nil && *f.s != "":
			attrs.PutStr(ModelPrefix+f.name, *f.s)
		case f.b != nil && *f.b:
			attrs.PutBool(ModelPrefix+f.name, true)
		}
	}
}

// ModelOf reads the model in the attributes of a resource. A resource without a hidden_size has no model, which costs one look-up.
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
			case f.f != nil:
				*f.f = v.Double()
			case f.s != nil:
				*f.s = ValueText(v)
			case f.b != nil:
				*f.b = v.Bool()
			}
		}
	}
	return m, true
}

// Set sets the field of a Megatron argument, from a line of an argument dump such as "num_layers ...... 32". It returns false for an argument without a field,
// and for a value of the wrong kind. The switch has the arguments that change the meaning of others, or have other names;
// for an argument overruled by an earlier one the result is true.
func (m *Model) Set(name string, text []byte) bool {
	switch name {
	case "group_query_attention":
		// Without this argument, num_query_groups has its default 1, which means as many as heads.
		m.NoGroups = string(text) == "False"
		if m.NoGroups {
			m.QueryGroups = 0
		}
		return m.NoGroups || string(text) == "True"
	case "num_query_groups":
		if m.NoGroups {
			return true
		}
	case "rampup_batch_size": // its steps have batches other than global_batch_size
		m.RampUp = string(text) != "None"
		if m.RampUp {
			m.GlobalBatchSize = 0
		}
		return true
	case "global_batch_size":
		if m.RampUp {
			return true
		}
	case "hybrid_override_pattern":
		// The newer name comes first in a dump, and includes the layers of multi-token prediction.
		name = "hybrid_layer_pattern"
		if m.HybridPattern != "" {
			return true
		}
	case "mtp_hybrid_override_pattern", "spec":
		return m.exclude(name, string(text))
	}
	for _, f := range m.fields() {
		if f.name == name {
			return f.set(text)
		}
	}
	return false
}

// set sets the field to a value as Python prints it. It returns false for a value of the wrong kind, such as "None" for a number. "None" and "False" leave a
// field of text as it is.
func (f *modelField) set(text []byte) bool {
	switch {
	case f.i != nil:
		digits := bytes.TrimPrefix(text, []byte("-"))
		var v int64
		for _, c := range digits {
			if !ascii.IsDigit(c) || v > 1<<53 { // more digits could overflow
				return false
			}
			v = v*10 + int64(c-'0')
		}
		if len(digits) < len(text) {
			v = -v
		}
		*f.i = v
		return len(digits) > 0
	case f.f != nil:
		v, err := strconv.ParseFloat(string(text), 64)
		if err != nil || !Finite(v) {
			return false
		}
		*f.f = v
		return true
	case f.s != nil:
		if t := string(text); t != "None" && t != "False" {
			*f.s = Name(text)
		}
		return true
	case f.b != nil:
		*f.b = string(text) == "True"
		return *f.b || string(text) == "False"
	}
	return false
}

// exclude adds to Unsupported a property of the model that no field describes, if the argument's text shows the property. It returns true: the argument is
// known in any case.
func (m *Model) exclude(name, text string) bool {
	switch {
	case name == "mtp_hybrid_override_pattern":
		// Versions that count these layers include them in hybrid_layer_pattern, and print None here.
		if text != "None" {
			m.Unsupported = name
		}
	case strings.Contains(text, "gdp_stack_spec"), strings.Contains(text, "gated_delta_product_stack_spec"):
		m.Unsupported = "gated delta product"
	}
	return true
}
