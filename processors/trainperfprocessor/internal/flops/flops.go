// Package flops counts the floating-point operations of training a transformer: what Megatron-LM would count, and what FlagScale's
// perf_monitor counts.
package flops

import (
	"math"

	"github.com/trainbridge/trainbridge/spans"
)

// Count is the floating-point operations of the forward pass, {flop}.
type Count struct {
	Forward float64
	// Attention is the part of Forward that is QK^T and the weighted sum of V: what selective recomputation runs again.
	Attention float64
	// Logits is the part of Forward after the last layer, which no recomputation runs again.
	Logits float64
}

// Times scales a count, such as that of one sample to a batch.
func (c Count) Times(n float64) Count {
	return Count{Forward: c.Forward * n, Attention: c.Attention * n, Logits: c.Logits * n}
}

// Model is what the model needs, recomputation left out: forward and, with two GEMMs for each of its own, backward.
func (c Count) Model() float64 { return 3 * c.Forward }

// The recomputations of Megatron's recompute_granularity.
const (
	RecomputeNone      = "none"
	RecomputeSelective = "selective" // the core attention runs once more
	RecomputeFull      = "full"      // the layers run once more
)

// Hardware is what the devices do, recomputed activations included. With full recomputation that is the 96·B·s·l·h²·(1 + s/6h + V/16lh)
// of arXiv:2104.04473: four passes over the layers, three over the logits.
func (c Count) Hardware(recompute string) float64 {
	switch recompute {
	case RecomputeFull:
		return c.Model() + c.Forward - c.Logits
	case RecomputeSelective:
		return c.Model() + c.Attention
	}
	return c.Model()
}

// Missing names the first key without which the FLOPs cannot be counted; empty when all is there. Nothing is guessed: only what has a
// default in Megatron (arguments.py) may be left out.
func Missing(m *spans.Model) string {
	for _, f := range [...]struct {
		name  string
		value int64
	}{
		{"num_layers", m.NumLayers},
		{"hidden_size", m.HiddenSize},
		{"num_attention_heads", m.AttentionHeads},
		{"seq_length", m.SeqLength},
		{"padded_vocab_size", max(m.PaddedVocabSize, m.VocabSize)},
	} {
		if f.value <= 0 {
			return f.name
		}
	}
	if m.MLA {
		switch {
		case m.KVLoRARank <= 0:
			return "kv_lora_rank"
		case m.QKHeadDim <= 0:
			return "qk_head_dim"
		case m.VHeadDim <= 0:
			return "v_head_dim"
		}
	}
	// Negative: a list of layers that has no other form here.
	if m.NumExperts > 0 && m.MoELayerFreq < 0 {
		return "moe_layer_freq"
	}
	return ""
}

// shape is a model with Megatron's defaults filled in, in floats: products of a careless config must not wrap around.
type shape struct {
	layers, hidden, heads, groups, channels, ffn, seq, vocab float64
	experts, topk, moeFFN, sharedFFN                         float64
	dense, moe                                               float64 // layers
	lastIsMoE                                                bool
	mtp                                                      float64
}

func shapeOf(m *spans.Model) shape {
	f := func(n int64) float64 { return float64(max(n, 0)) }
	s := shape{
		layers: f(m.NumLayers), hidden: f(m.HiddenSize), heads: f(m.AttentionHeads), groups: f(m.QueryGroups),
		channels: f(m.KVChannels), ffn: f(m.FFNHiddenSize), seq: f(m.SeqLength), vocab: f(m.PaddedVocabSize),
		experts: f(m.NumExperts), topk: f(m.RouterTopK), moeFFN: f(m.MoEFFN), sharedFFN: f(m.SharedExpertFFN), mtp: f(m.MTPLayers),
	}
	if s.groups == 0 {
		s.groups = s.heads
	}
	if s.channels == 0 {
		s.channels = math.Floor(s.hidden / s.heads)
	}
	if s.ffn == 0 {
		s.ffn = 4 * s.hidden
		if m.SwiGLU { // two thirds, so that the parameters are as many; a multiple of 64
			s.ffn = math.Floor(4*s.hidden*2/3/64) * 64
		}
	}
	if s.vocab == 0 {
		s.vocab = f(m.VocabSize)
	}
	s.dense = s.layers
	if s.experts == 0 {
		return s
	}
	if s.topk == 0 {
		s.topk = 2
	}
	if s.moeFFN == 0 {
		s.moeFFN = s.ffn
	}
	// Layer i is a mixture of experts when i ≥ first and i divides by the frequency.
	freq, first := max(f(m.MoELayerFreq), 1), min(f(m.FirstDense), s.layers)
	s.moe = math.Ceil(s.layers/freq) - math.Ceil(first/freq)
	s.dense = s.layers - s.moe
	s.lastIsMoE = s.layers-1 >= first && math.Mod(s.layers-1, freq) == 0
	return s
}

// Megatron counts one sample (one sequence of seq_length tokens) as num_floating_point_operations of Megatron-LM does
// (megatron/training/training.py @d98e8a64, transformer_flops): GEMMs only, plus the few terms it adds for norms in MLA and MTP.
// causal halves the attention matrix, as Megatron does; without, all of it counts, as in PaLM's MFU.
// Not covered, because spans.Model does not describe it: moe_latent_size, linear attention, and Mamba hybrids.
func Megatron(m *spans.Model, causal bool) Count {
	s := shapeOf(m)
	gemms := 2.0 // of a feed-forward layer
	if m.SwiGLU {
		gemms = 3
	}
	moe, dense := s.moe, s.dense
	if s.lastIsMoE {
		moe += s.mtp
	} else {
		dense += s.mtp
	}
	linear, core := attention(m, &s)
	if causal {
		core /= 2
	}
	attentions := s.layers + s.mtp
	// Multiply-adds per token.
	perToken := s.hidden*gemms*(s.ffn*dense+(s.moeFFN*s.topk+s.sharedFFN)*moe) +
		linear*attentions +
		s.mtp*(3*s.hidden+2*s.hidden*s.hidden)
	scores := 2 * s.seq * core * attentions
	logits := 2 * s.seq * s.hidden * s.vocab * (1 + s.mtp)
	return Count{Forward: 2*s.seq*perToken + scores + logits, Attention: scores, Logits: logits}
}

// attention returns the multiply-adds of one layer for one token: of the projections, and of QK^T and the sum of V over a whole row.
func attention(m *spans.Model, s *shape) (linear, core float64) {
	if !m.MLA {
		q := s.channels * s.heads
		kv := 2 * s.channels * s.groups
		if m.OutputGate {
			kv += q
		}
		return s.hidden*(q+kv) + q*s.hidden, 2 * q * s.seq
	}
	rank, qk, pos, v := float64(m.KVLoRARank), float64(m.QKHeadDim), float64(max(m.QKPosDim, 0)), float64(m.VHeadDim)
	if q := float64(m.QLoRARank); q > 0 {
		linear = q * (s.hidden + s.heads*(qk+pos) + 1) // + 1: the norm of the compressed queries
	} else {
		linear = s.hidden * s.heads * (qk + pos)
	}
	linear += rank*(s.hidden+s.heads*(qk+v)+1) + s.hidden*pos + s.heads*v*s.hidden
	return linear, s.seq * s.heads * (qk + pos + v)
}
