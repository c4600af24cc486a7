package flops

import (
	"math"

	"github.com/trainbridge/trainbridge/spans"
)

// Writer is a version of FlagScale's perf_monitor (flagscale/train/perf_monitor/flops_calculator.py). The versions differ in mixtures of experts, and in the
// default feed-forward size of LLaMA and Qwen.
type Writer uint8

const (
	// Merged is flagos-ai/FlagScale PR #1216 (c3e88361).
	Merged Writer = iota
	// MergedMixtral is Merged with --perf-model-type mixtral: perf_monitor compares with "moe", so it counts a dense GPT.
	MergedMixtral
	// Douzi is the earlier branch of that name (e5899478): it does not pass swiglu on to mixtures of experts, and knows a model by its name only.
	Douzi
	// DouziUnnamed is Douzi without a model name, for which Megatron has no argument: a model without experts is a GPT, with as many key and value heads as
	// query heads. Merged with --perf-model-type gpt counts the same.
	DouziUnnamed
)

// FlagScale returns the count of one sample by perf_monitor: with the whole attention matrix, the product of SwiGLU, the router, and the vocabulary without
// padding; in a mixture of experts every layer has experts, with ffn_hidden_size, and without grouped queries.
func FlagScale(m *spans.Model, w Writer) Count {
	s := shapeOf(m)
	if m.VocabSize > 0 {
		s.vocab = float64(m.VocabSize)
	}
	// Per layer, at 2 operations for a multiply-add: the core attention (QK^T and the sum of V), the four projections (linear), and the feed-forward with its
	// router.
	head := math.Floor(s.hidden / s.heads)
	core := 4 * s.heads * s.seq * s.seq * head
	linear := 8 * s.seq * s.hidden * s.hidden
	moe := s.experts > 0 || m.Type == "moe"
	swiglu := m.SwiGLU
	switch {
	case moe:
		swiglu = swiglu && w != Douzi && w != DouziUnnamed
	case usesLLaMAFormula(m, w): // the LLaMA formula, always with SwiGLU
		linear = 4*s.seq*s.hidden*s.hidden + 4*s.seq*s.hidden*head*s.groups
		swiglu = true
		if m.FFNHiddenSize <= 0 {
			s.ffn = 4 * s.hidden
			if w == Douzi {
				s.ffn = math.Floor(8 * s.hidden / 3)
			}
		}
	}
	k, router := 1.0, 0.0 // experts per token
	if moe && w != MergedMixtral {
		k, router = s.topk, 2*s.seq*s.hidden*s.experts
	}
	ffn := router + 4*s.seq*k*s.hidden*s.ffn
	if swiglu {
		ffn = router + 6*s.seq*k*s.hidden*s.ffn + s.seq*k*s.ffn // three GEMMs, and the product
	}
	logits := 2 * s.seq * s.hidden * s.vocab
	return Count{Forward: s.layers*(linear+core+ffn) + logits, Attention: s.layers * core, Logits: logits}
}

// usesLLaMAFormula reports whether perf_monitor uses its LLaMA formula. Without a type, the merged version uses it for grouped queries.
func usesLLaMAFormula(m *spans.Model, w Writer) bool {
	switch {
	case w == DouziUnnamed:
	case m.Type == "llama", m.Type == "qwen":
		return true
	case m.Type == "" && w != Douzi:
		return m.QueryGroups > 0 && m.QueryGroups < m.AttentionHeads
	}
	return false
}
