// Package flops counts the floating-point operations of training a transformer, as Megatron-LM and as FlagScale's perf_monitor count them.
package flops

import (
	"math"
	"strings"

	"github.com/trainbridge/trainbridge/spans"
)

// Count is the floating-point operations of the forward pass, {flop}.
type Count struct {
	Forward float64
	// Attention is the part of Forward for QK^T and the weighted sum of V, repeated by selective recomputation.
	Attention float64
	// Logits is the part of Forward after the last layer, never recomputed.
	Logits float64
}

// Times returns the count multiplied by n, for instance from one sample to a batch.
func (c Count) Times(n float64) Count {
	return Count{Forward: c.Forward * n, Attention: c.Attention * n, Logits: c.Logits * n}
}

// Model returns the FLOPs of the model, without recomputation: the forward pass, and the backward pass with two GEMMs for each forward GEMM.
func (c Count) Model() float64 { return 3 * c.Forward }

// The recomputations of Megatron's recompute_granularity.
const (
	RecomputeNone      = "none"
	RecomputeSelective = "selective" // the core attention runs once more
	RecomputeFull      = "full"      // the layers run once more
)

// Hardware returns the FLOPs of the devices, with recomputed activations. For full recomputation that is the 96·B·s·l·h²·(1 + s/6h + V/16lh) of
// arXiv:2104.04473: four passes over the layers, three over the logits.
func (c Count) Hardware(recompute string) float64 {
	switch recompute {
	case RecomputeFull:
		return c.Model() + c.Forward - c.Logits
	case RecomputeSelective:
		return c.Model() + c.Attention
	}
	return c.Model()
}

// Missing returns the first key that is missing in the description of a model for the count; empty: none. Nothing is guessed: only keys with a default in
// Megatron (arguments.py) may be absent.
func Missing(m *spans.Model) string {
	for _, f := range [...]struct {
		name  string
		value int64
	}{
		{"num_layers", max(m.NumLayers, int64(len(m.HybridPattern)))},
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
	if m.NumExperts > 0 && m.MoELayerFreq < 0 { // 0 is absent, with a default; a number below 0 is no frequency
		return "moe_layer_freq"
	}
	if !isHybrid(m) && hasLinearAttention(m) && m.LinearFreq <= 0 && m.LinearPattern == "" {
		return "linear_attention_freq"
	}
	return ""
}

// Unsupported returns a part of the model that cannot be counted; empty: none. Megatron's own function silently omits some parts, so its logged count may be
// wrong, too.
func Unsupported(m *spans.Model) string {
	if m.Unsupported != "" {
		return m.Unsupported
	}
	s := shapeOf(m)
	switch m.AttentionVariant {
	case "", "gdn", "gdn2", "gated_delta_net", "dsa":
	default:
		return "experimental_attention_variant " + m.AttentionVariant
	}
	switch {
	case isHybrid(m):
		if !layersOf(m).known {
			return "hybrid_layer_pattern " + m.HybridPattern
		}
		if m.MLA {
			return "multi_latent_attention in a hybrid model"
		}
	case m.AttentionRatio != 0 || m.MLPRatio != 0:
		return "hybrid_attention_ratio without is_hybrid_model"
	case hasLinearAttention(m) && m.LinearPattern != "" && float64(len(m.LinearPattern)) != s.layers+s.mtp:
		return "linear_attention_pattern of another number of layers"
	}
	if m.NumExperts > 0 && m.MoEPattern != "" && !isHybrid(m) && float64(len(m.MoEPattern)) != s.layers {
		return "moe_layer_pattern of another number of layers"
	}
	return ""
}

// isHybrid reports whether the model has several kinds of layers, Mamba among them.
func isHybrid(m *spans.Model) bool { return m.HybridPattern != "" || m.Hybrid }

// hasLinearAttention reports whether a model has linear attention. Megatron counts dsa (sparse attention) as dense.
func hasLinearAttention(m *spans.Model) bool {
	switch m.AttentionVariant {
	case "gdn", "gdn2", "gated_delta_net":
		return true
	}
	return false
}

// shape is a model with Megatron's defaults filled in, in floats: products of a careless config must not wrap around.
type shape struct {
	layers, hidden, heads, groups, channels, ffn, seq, vocab float64 // groups: of key and value heads; channels: of a head
	experts, topk, moeFFN, sharedFFN                         float64 // topk: experts per token
	dense, moe                                               float64 // layers
	lastIsMoE                                                bool    // the last layer has experts, and so have those of multi-token prediction
	mtp                                                      float64 // layers of multi-token prediction
	latent                                                   float64 // input size of routed experts; 0: hidden
}

// shapeOf returns the shape of a model, with the defaults of Megatron's arguments.py. Which layers have experts follows from the pattern, or from the frequency
// and the number of dense layers at the beginning.
func shapeOf(m *spans.Model) shape {
	f := func(n int64) float64 { return float64(max(n, 0)) }
	s := shape{
		layers: f(m.NumLayers), hidden: f(m.HiddenSize), heads: f(m.AttentionHeads), groups: f(m.QueryGroups),
		channels: f(m.KVChannels), ffn: f(m.FFNHiddenSize), seq: f(m.SeqLength), vocab: f(m.PaddedVocabSize),
		experts: f(m.NumExperts), topk: f(m.RouterTopK), moeFFN: f(m.MoEFFN), sharedFFN: f(m.SharedExpertFFN), mtp: f(m.MTPLayers), latent: f(m.MoELatentSize),
	}
	if s.groups == 0 {
		s.groups = s.heads
	}
	if s.channels == 0 {
		s.channels = math.Floor(s.hidden / s.heads)
	}
	if s.ffn == 0 {
		s.ffn = 4 * s.hidden
		if m.SwiGLU { // two thirds of 4h, for an equal number of parameters; a multiple of 64
			s.ffn = math.Floor(4*s.hidden*2/3/64) * 64
		}
	}
	if s.vocab == 0 {
		s.vocab = f(m.VocabSize)
	}
	if s.layers == 0 {
		s.layers = layersOf(m).main
	}
	s.dense = s.layers
	if s.experts == 0 && !strings.Contains(m.HybridPattern, "E") {
		return s
	}
	if s.topk == 0 {
		s.topk = 2
	}
	if s.moeFFN == 0 {
		s.moeFFN = s.ffn
	}
	if p := m.MoEPattern; p != "" { // a digit per layer, 1 with experts
		s.moe, s.lastIsMoE = float64(strings.Count(p, "1")), p[len(p)-1] == '1'
		s.dense = s.layers - s.moe
		return s
	}
	// Layer i is a mixture of experts when i ≥ first and i is a multiple of the frequency.
	freq, first := max(f(m.MoELayerFreq), 1), min(f(m.FirstDense), s.layers)
	s.moe = math.Ceil(s.layers/freq) - math.Ceil(first/freq) // the multiples of freq from first to below layers
	s.dense = s.layers - s.moe
	s.lastIsMoE = s.layers-1 >= first && math.Mod(s.layers-1, freq) == 0
	return s
}

// Megatron returns the count of one sample (one sequence of seq_length tokens) by num_floating_point_operations of Megatron-LM (megatron/training/training.py
// @d98e8a64): GEMMs, plus small terms for norms in MLA and MTP, convolutions and scans. causal halves the attention matrix, as Megatron does; otherwise the
// whole matrix counts, as in PaLM's MFU.
func Megatron(m *spans.Model, causal bool) Count {
	s := shapeOf(m)
	if isHybrid(m) {
		return hybridModel(m, &s, causal)
	}
	moe, dense := s.moe, s.dense
	if s.lastIsMoE { // the layers of multi-token prediction are like the last
		moe += s.mtp
	} else {
		dense += s.mtp
	}
	projections, core := attention(m, &s, causal)
	softmax := s.layers + s.mtp // layers with usual attention
	delta := 0.0                // layers with gated delta net
	if hasLinearAttention(m) {
		delta = linearLayers(m, softmax)
		softmax -= delta
	}
	// Multiply-adds per token.
	perToken := feedForward(m, s.hidden, s.ffn)*dense + experts(m, &s)*moe +
		projections*softmax + deltaNet(m, &s)*delta +
		s.mtp*(3*s.hidden+2*s.hidden*s.hidden) // norms, and the projection of two hidden states to one
	scores := 2 * s.seq * core * softmax
	logits := 2 * s.seq * s.hidden * s.vocab * (1 + s.mtp)
	return Count{Forward: 2*s.seq*perToken + scores + logits, Attention: scores, Logits: logits}
}

// feedForward returns the multiply-adds of one layer for one token.
func feedForward(m *spans.Model, hidden, ffn float64) float64 {
	if m.SwiGLU {
		return 3 * hidden * ffn
	}
	return 2 * hidden * ffn
}

// experts returns the multiply-adds of a mixture of experts for one token, without the router.
func experts(m *spans.Model, s *shape) float64 {
	shared := feedForward(m, s.hidden, s.sharedFFN)
	if s.latent > 0 { // a projection down and a projection up
		return feedForward(m, s.latent, s.moeFFN)*s.topk + 2*s.hidden*s.latent + shared
	}
	return feedForward(m, s.hidden, s.moeFFN)*s.topk + shared
}

// attention returns the multiply-adds of one layer for one token: of the projections, and of QK^T and the sum of V (core). The second part is for multi-head
// latent attention (MLA), whose queries, keys and values are compressed to a low rank.
func attention(m *spans.Model, s *shape, causal bool) (projections, core float64) {
	seq := s.seq
	if causal {
		seq /= 2
	}
	if !m.MLA {
		q := s.channels * s.heads
		kv := 2 * s.channels * s.groups
		if m.OutputGate && !isHybrid(m) { // Megatron does not count the gate of hybrid models
			kv += q
		}
		return s.hidden*(q+kv) + q*s.hidden, 2 * q * seq
	}
	// The rank of compressed keys and values; the dimensions of a head: without position, of the position (RoPE), of the values.
	rank, qk, pos, v := float64(m.KVLoRARank), float64(m.QKHeadDim), float64(max(m.QKPosDim, 0)), float64(m.VHeadDim)
	if q := float64(m.QLoRARank); q > 0 {
		projections = q * (s.hidden + s.heads*(qk+pos) + 1) // + 1: the norm of the compressed queries
	} else {
		projections = s.hidden * s.heads * (qk + pos)
	}
	projections += rank*(s.hidden+s.heads*(qk+v)+1) + s.hidden*pos + s.heads*v*s.hidden
	return projections, seq * s.heads * (qk + pos + v)
}

// linearLayers returns how many of the layers have linear attention.
func linearLayers(m *spans.Model, layers float64) float64 {
	if m.LinearPattern != "" {
		return min(float64(strings.Count(m.LinearPattern, "1")), layers)
	}
	return layers - math.Floor(layers/float64(max(m.LinearFreq, 1))) // each LinearFreq-th layer has usual attention
}

// deltaNet returns the multiply-adds of one layer of gated delta net for one token: of the input projections, the convolution, the delta rule (four products
// with the state of valueDim × valueDim of each head), and the output projection. Defaults are Megatron's.
func deltaNet(m *spans.Model, s *shape) float64 {
	keyDim, valueDim := orDefault(m.LinearKeyHeadDim, 128), orDefault(m.LinearValueHeadDim, 128)
	keyHeads, valueHeads := orDefault(m.LinearKeyHeads, 16), orDefault(m.LinearValueHeads, 32)
	keys, values := keyDim*keyHeads, valueDim*valueHeads
	in := 2*keys + 2*values + 2*valueHeads // outputs of the input projections: q, k; v, gate; two scalars per head
	if m.AttentionVariant == "gdn2" {      // more outputs as large as the keys and the values, and none per head
		in = 4*keys + 3*values
	}
	return s.hidden*in + orDefault(m.LinearConvKernelDim, 4)*(2*keys+values) + 4*valueHeads*valueDim*valueDim + s.hidden*values
}

// mamba returns half the operations of one Mamba layer for one token: of the input projection, the scan (7 operations for each element of the state), and the
// output projection. The inner size is twice the hidden size, independent of the heads. Defaults are Megatron's.
func mamba(m *spans.Model, s *shape) float64 {
	inner, state := 2*s.hidden, orDefault(m.MambaStateDim, 128)
	heads := orDefault(m.MambaNumHeads, math.Floor(inner/orDefault(m.MambaHeadDim, 64)))
	in := s.hidden * (2*inner + 2*orDefault(m.MambaNumGroups, 8)*state + heads)
	return in + 3.5*inner*state + inner*s.hidden
}

// orDefault returns n, or the default if n is not set.
func orDefault(n int64, otherwise float64) float64 {
	if n > 0 {
		return float64(n)
	}
	return otherwise
}

// layers is how many layers of each kind a hybrid model has, with the layers of multi-token prediction.
type layers struct {
	mamba, delta, attention, feedForward, experts float64
	main                                          float64 // without multi-token prediction
	mtp                                           float64 // depths
	known                                         bool
}

// layersOf returns the layers of a hybrid model by its pattern, read as parse_hybrid_pattern of megatron/core/models/hybrid/hybrid_layer_allocation.py does:
// "main|main/mtp/mtp". Not known: attention letters that hybrid_flops omits (D, +), unknown letters, and depths that differ.
func layersOf(m *spans.Model) layers {
	if m.HybridPattern == "" { // versions without patterns have shares of the layers
		all := float64(max(m.NumLayers, 0))
		l := layers{
			attention: math.RoundToEven(all * m.AttentionRatio), feedForward: math.RoundToEven(all * m.MLPRatio), main: all,
			mtp: float64(max(m.MTPLayers, 0)),
		}
		l.mamba = all - l.attention - l.feedForward
		l.known = l.attention >= 0 && l.feedForward >= 0 && l.mamba >= 0
		return l
	}
	pattern, depths, _ := strings.Cut(m.HybridPattern, "/") // | separates pipeline stages
	l := layers{known: true}
	l.add(strings.ReplaceAll(pattern, "|", ""), 1)
	l.main = l.mamba + l.delta + l.attention + l.feedForward + l.experts
	if strings.Trim(depths, "/") != "" {
		depth, _, _ := strings.Cut(depths, "/") // all must be like the first
		l.mtp = float64(strings.Count(depths, "/") + 1)
		l.known = l.known && depths == strings.Repeat(depth+"/", int(l.mtp)-1)+depth
		l.add(depth, l.mtp)
	} else {
		l.mtp = float64(max(m.MTPLayers, 0))
	}
	return l
}

// add adds the layers of a pattern, a letter for each, so many times.
func (l *layers) add(pattern string, times float64) {
	for _, kind := range pattern {
		switch kind {
		case 'M':
			l.mamba += times
		case 'G':
			l.delta += times
		case '*':
			l.attention += times
		case '-':
			l.feedForward += times
		case 'E':
			l.experts += times
		default:
			l.known = false
		}
	}
}

// hybridModel counts the FLOPs of models with several kinds of layers, as Megatron does in hybrid_flops.
func hybridModel(m *spans.Model, s *shape, causal bool) Count {
	l := layersOf(m)
	projections, core := attention(m, s, causal)
	perToken := l.attention*projections + l.feedForward*feedForward(m, s.hidden, s.ffn) + l.experts*experts(m, s) + l.mamba*mamba(m, s) + l.delta*deltaNet(m, s)
	scores := 2 * s.seq * core * l.attention
	logits := 2 * s.seq * s.hidden * s.vocab * (1 + l.mtp)
	return Count{Forward: 2*s.seq*perToken + scores + logits, Attention: scores, Logits: logits}
}
