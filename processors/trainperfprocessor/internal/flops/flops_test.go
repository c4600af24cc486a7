package flops

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden has the FLOPs of six shapes by Megatron-LM @d98e8a64 and both versions of perf_monitor, {flop} per step.
var golden = map[string]struct {
	model                   spans.Model
	batch                   float64
	megatron, merged, douzi float64
	explicitMixtral         float64
}{
	"gpt2_small": {
		model: spans.Model{
			Type: "gpt", NumLayers: 12, HiddenSize: 768, AttentionHeads: 12, QueryGroups: 12, KVChannels: 64, FFNHiddenSize: 3072,
			PaddedVocabSize: 50304, SeqLength: 1024,
		},
		batch: 8, megatron: 6537477095424, merged: 7001333563392, douzi: 7001333563392,
	},
	"gpt3_175b": {
		model: spans.Model{
			Type: "gpt", NumLayers: 96, HiddenSize: 12288, AttentionHeads: 96, QueryGroups: 96, KVChannels: 128, FFNHiddenSize: 49152,
			PaddedVocabSize: 51200, SeqLength: 2048,
		},
		batch: 1536, megatron: 3340597800160198656, merged: 3386196746387324928, douzi: 3386196746387324928,
	},
	"aquila_7b": {
		model: spans.Model{
			Type: "aquila", SwiGLU: true, NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, QueryGroups: 32, KVChannels: 128,
			FFNHiddenSize: 11008, PaddedVocabSize: 100008, SeqLength: 2048,
		},
		batch: 32, megatron: 2813096204697600, merged: 2918718577311744, douzi: 2918718577311744,
	},
	"llama3_8b": {
		model: spans.Model{
			Type: "llama", SwiGLU: true, NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, QueryGroups: 8, KVChannels: 128,
			FFNHiddenSize: 14336, PaddedVocabSize: 128256, SeqLength: 8192,
		},
		batch: 1, megatron: 421645529382912, merged: 474433361805312, douzi: 474433361805312,
	},
	"qwen2.5_7b": {
		model: spans.Model{
			Type: "qwen", SwiGLU: true, NumLayers: 28, HiddenSize: 3584, AttentionHeads: 28, QueryGroups: 4, KVChannels: 128,
			FFNHiddenSize: 18944, PaddedVocabSize: 152064, SeqLength: 4096,
		},
		batch: 16, megatron: 2941777719853056, merged: 3103510216310784, douzi: 3103510216310784,
	},
	"mixtral_8x7b": {
		model: spans.Model{
			Type: "mixtral", SwiGLU: true, NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, QueryGroups: 8, KVChannels: 128, FFNHiddenSize: 14336,
			PaddedVocabSize: 32000, SeqLength: 4096,
			NumExperts: 8, RouterTopK: 2,
		},
		batch: 16, megatron: 5223642304610304, merged: 5752000591429632, douzi: 4274076575072256, explicitMixtral: 3534882638659584,
	},
}

func TestGolden(t *testing.T) {
	for name, g := range golden {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, Missing(&g.model))
			assert.InEpsilon(t, g.megatron, Megatron(&g.model, true).Times(g.batch).Model(), 1e-9)
			assert.InEpsilon(t, g.merged, FlagScale(&g.model, Merged).Times(g.batch).Model(), 1e-9)
			assert.InEpsilon(t, g.douzi, FlagScale(&g.model, Douzi).Times(g.batch).Model(), 1e-9)
			if g.explicitMixtral > 0 {
				assert.InEpsilon(t, g.explicitMixtral, FlagScale(&g.model, MergedMixtral).Times(g.batch).Model(), 1e-9)
			}
			// Without a type, perf_monitor's formula follows from the shape; Aquila's shape leads to the formula of a GPT.
			g.model.Type = ""
			assert.InEpsilon(t, g.merged, FlagScale(&g.model, Merged).Times(g.batch).Model(), 1e-9)
		})
	}
}

// TestSharedGolden compares with the recorded file, where present.
func TestSharedGolden(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "shared", "logs", "flagscale_perf_monitor", "flops_golden.json"))
	if err != nil {
		return // the table above holds the same
	}
	var file map[string]struct {
		Config struct {
			NumExperts     int64 `json:"num_experts"`
			TopK           int64 `json:"moe_router_topk"`
			SwiGLU         bool  `json:"swiglu"`
			Layers         int64 `json:"num_layers"`
			Hidden         int64 `json:"hidden_size"`
			Heads          int64 `json:"num_attention_heads"`
			Groups         int64 `json:"num_query_groups"`
			Channels       int64 `json:"kv_channels"`
			FFN            int64 `json:"ffn_hidden_size"`
			Vocab          int64 `json:"padded_vocab_size"`
			SequenceLength int64 `json:"seq_length"`
		} `json:"config"`
		Batch    float64 `json:"batch_size"`
		Megatron float64 `json:"megatron_flops"`
		Merged   float64 `json:"perf_monitor_merged_flops"`
		Douzi    float64 `json:"perf_monitor_douzi_flops"`
		Mixtral  float64 `json:"perf_monitor_merged_explicit_model_type_mixtral_flops"`
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	require.Len(t, file, len(golden))
	for name, f := range file {
		c := f.Config
		m := spans.Model{
			Type: golden[name].model.Type, NumExperts: c.NumExperts, RouterTopK: c.TopK, SwiGLU: c.SwiGLU, NumLayers: c.Layers, HiddenSize: c.Hidden,
			AttentionHeads: c.Heads,
			QueryGroups:    c.Groups, KVChannels: c.Channels, FFNHiddenSize: c.FFN, PaddedVocabSize: c.Vocab, SeqLength: c.SequenceLength,
		}
		assert.InEpsilon(t, f.Megatron, Megatron(&m, true).Times(f.Batch).Model(), 1e-9, name)
		assert.InEpsilon(t, f.Merged, FlagScale(&m, Merged).Times(f.Batch).Model(), 1e-9, name)
		assert.InEpsilon(t, f.Douzi, FlagScale(&m, Douzi).Times(f.Batch).Model(), 1e-9, name)
		if f.Mixtral > 0 {
			assert.InEpsilon(t, f.Mixtral, FlagScale(&m, MergedMixtral).Times(f.Batch).Model(), 1e-9, name)
		}
	}
}

// TestMegatronPaper: arXiv:2104.04473, all of the attention matrix, V without padding.
func TestMegatronPaper(t *testing.T) {
	for _, c := range []struct{ B, s, l, h, V, heads float64 }{
		{512, 2048, 24, 2304, 51200, 24}, {1536, 2048, 96, 12288, 51200, 96}, {3072, 2048, 128, 25600, 51200, 160},
	} {
		m := spans.Model{NumLayers: int64(c.l), HiddenSize: int64(c.h), AttentionHeads: int64(c.heads), SeqLength: int64(c.s), VocabSize: int64(c.V)}
		got := Megatron(&m, false).Times(c.B)
		base := c.B * c.s * c.l * c.h * c.h
		assert.InEpsilon(t, 72*base*(1+c.s/(6*c.h)+c.V/(12*c.l*c.h)), got.Model(), 1e-12)
		assert.InEpsilon(t, 96*base*(1+c.s/(6*c.h)+c.V/(16*c.l*c.h)), got.Hardware(RecomputeFull), 1e-12)
	}
}

// TestPaLM: arXiv:2204.02311 appendix B, 6N + 12·L·H·Q·T per token; N without the embedding, a look-up.
func TestPaLM(t *testing.T) {
	for name, g := range golden {
		if g.model.NumExperts > 0 {
			continue
		}
		m := g.model
		h, f, q, kv := float64(m.HiddenSize), float64(m.FFNHiddenSize), float64(m.AttentionHeads*m.KVChannels), float64(m.QueryGroups*m.KVChannels)
		gemms := 2.0
		if m.SwiGLU {
			gemms = 3
		}
		n := float64(m.NumLayers)*(h*(q+2*kv)+q*h+gemms*h*f) + h*float64(m.PaddedVocabSize)
		perToken := 6*n + 12*float64(m.NumLayers)*float64(m.AttentionHeads)*float64(m.KVChannels)*float64(m.SeqLength)
		assert.InEpsilon(t, perToken, Megatron(&m, false).Model()/float64(m.SeqLength), 1e-12, name)
	}
}

// TestVerl: verl/utils/flops_counter.py, 6·N·tokens + 6·Σs²·head_dim·heads·layers, where N also counts the embedding and the router.
func TestVerl(t *testing.T) {
	for _, name := range []string{"llama3_8b", "qwen2.5_7b", "mixtral_8x7b"} {
		m := golden[name].model
		h, s, l := float64(m.HiddenSize), float64(m.SeqLength), float64(m.NumLayers)
		head := float64(m.KVChannels)
		attn := h * (float64(m.AttentionHeads)*head*2 + float64(m.QueryGroups)*head*2)
		mlp, router := 3*h*float64(m.FFNHiddenSize), 0.0
		if m.NumExperts > 0 {
			mlp *= float64(m.RouterTopK)
			router = h * float64(m.NumExperts)
		}
		embedding := h * float64(m.PaddedVocabSize)
		verl := 6*(l*(attn+mlp+router)+2*embedding)*s + 6*s*s*head*float64(m.AttentionHeads)*l
		assert.InEpsilon(t, verl-6*s*(embedding+l*router), Megatron(&m, true).Model(), 1e-12, name)
	}
}

// gemms lists every GEMM of one forward pass over one sample, in integers.
type gemms struct{ linear, scores, logits big.Int }

func mul(f ...int64) *big.Int {
	p := big.NewInt(1)
	for _, x := range f {
		p.Mul(p, big.NewInt(x))
	}
	return p
}

// add is a GEMM of m×k with k×n: 2·m·k·n.
func add(to *big.Int, m, k, n int64) { to.Add(to, mul(2, m, k, n)) }

func enumerate(m spans.Model) *gemms {
	g := new(gemms)
	s, h := m.SeqLength, m.HiddenSize
	layer := func(isMoE bool) {
		g.attention(&m)
		mlp := func(f int64) {
			add(&g.linear, s, h, f)
			if m.SwiGLU {
				add(&g.linear, s, h, f)
			}
			add(&g.linear, s, f, h)
		}
		if !isMoE {
			mlp(m.FFNHiddenSize)
			return
		}
		for range m.RouterTopK {
			mlp(m.MoEFFN)
		}
		mlp(m.SharedExpertFFN)
	}
	last := false
	for i := range m.NumLayers {
		last = m.NumExperts > 0 && i >= m.FirstDense && i%max(m.MoELayerFreq, 1) == 0
		layer(last)
	}
	for range m.MTPLayers {
		layer(last)
		add(&g.linear, s, 2*h, h)
		add(&g.linear, s, 3*h, 1) // norms
		add(&g.logits, s, h, m.PaddedVocabSize)
	}
	add(&g.logits, s, h, m.PaddedVocabSize)
	return g
}

// attention adds the GEMMs of a layer's attention.
func (g *gemms) attention(m *spans.Model) {
	s, h, heads := m.SeqLength, m.HiddenSize, m.AttentionHeads
	if m.MLA {
		g.latentAttention(m)
		return
	}
	add(&g.linear, s, h, heads*m.KVChannels)
	if m.OutputGate {
		add(&g.linear, s, h, heads*m.KVChannels)
	}
	for range 2 { // keys, values
		add(&g.linear, s, h, m.QueryGroups*m.KVChannels)
	}
	for range heads {
		add(&g.scores, s, m.KVChannels, s)
		add(&g.scores, s, s, m.KVChannels)
	}
	add(&g.linear, s, heads*m.KVChannels, h)
}

func (g *gemms) latentAttention(m *spans.Model) {
	s, h, heads := m.SeqLength, m.HiddenSize, m.AttentionHeads
	qk := m.QKHeadDim + m.QKPosDim
	if m.QLoRARank > 0 {
		add(&g.linear, s, h, m.QLoRARank)
		add(&g.linear, s, m.QLoRARank, 1) // a norm, as Megatron counts norms
		add(&g.linear, s, m.QLoRARank, heads*qk)
	} else {
		add(&g.linear, s, h, heads*qk)
	}
	add(&g.linear, s, h, m.KVLoRARank)
	add(&g.linear, s, m.KVLoRARank, 1)
	add(&g.linear, s, h, m.QKPosDim)
	add(&g.linear, s, m.KVLoRARank, heads*m.QKHeadDim)
	add(&g.linear, s, m.KVLoRARank, heads*m.VHeadDim)
	for range heads {
		add(&g.scores, s, qk, s)
		add(&g.scores, s, s, m.VHeadDim)
	}
	add(&g.linear, s, heads*m.VHeadDim, h)
}

func float(x *big.Int) float64 { f, _ := new(big.Float).SetInt(x).Float64(); return f }

func TestAgainstEveryGEMM(t *testing.T) {
	check := func(m spans.Model) {
		t.Helper()
		require.Empty(t, Missing(&m))
		g := enumerate(m)
		for _, causal := range []bool{true, false} {
			scores := new(big.Int).Set(&g.scores)
			if causal {
				scores.Rsh(scores, 1)
			}
			forward := new(big.Int).Add(scores, &g.linear)
			forward.Add(forward, &g.logits)
			got := Megatron(&m, causal)
			assert.InEpsilon(t, float(forward), got.Forward, 1e-12, "%+v", m)
			assert.InEpsilon(t, float(scores), got.Attention, 1e-12)
			assert.InEpsilon(t, float(&g.logits), got.Logits, 1e-12)
			assert.InEpsilon(t, float(new(big.Int).Mul(forward, big.NewInt(3))), got.Model(), 1e-12)
			assert.InEpsilon(t, float(new(big.Int).Add(new(big.Int).Mul(forward, big.NewInt(3)), scores)), got.Hardware(RecomputeSelective), 1e-12)
		}
	}
	for _, g := range golden {
		m := g.model
		if m.NumExperts > 0 {
			m.MoEFFN = m.FFNHiddenSize
		}
		check(m)
	}
	// DeepSeek-V3, with its prediction layer.
	check(spans.Model{
		Type: "deepseek", SwiGLU: true, NumLayers: 61, HiddenSize: 7168, AttentionHeads: 128, FFNHiddenSize: 18432, SeqLength: 4096, PaddedVocabSize: 129280,
		MTPLayers:  1,
		NumExperts: 256, RouterTopK: 8, MoEFFN: 2048, SharedExpertFFN: 2048, FirstDense: 3,
		MLA: true, QLoRARank: 1536, KVLoRARank: 512, QKHeadDim: 128, QKPosDim: 64, VHeadDim: 128,
	})
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := func(top int64) int64 { return 1 + rng.Int64N(top) }
		m := spans.Model{
			NumLayers: n(12), HiddenSize: n(4096), AttentionHeads: n(32), QueryGroups: n(32), KVChannels: n(256), FFNHiddenSize: n(20000),
			SeqLength: 2 * n(4096), PaddedVocabSize: n(200000),
			SwiGLU: rng.IntN(2) > 0, OutputGate: rng.IntN(2) > 0, MTPLayers: rng.Int64N(3),
		}
		if rng.IntN(2) > 0 {
			m.NumExperts, m.RouterTopK, m.MoEFFN, m.SharedExpertFFN = n(64), n(8), n(4096), rng.Int64N(4096)
			m.MoELayerFreq, m.FirstDense = rng.Int64N(5), rng.Int64N(m.NumLayers+1)
		}
		if rng.IntN(3) == 0 {
			m.MLA, m.OutputGate = true, false
			m.QLoRARank, m.KVLoRARank, m.QKHeadDim, m.QKPosDim, m.VHeadDim = rng.Int64N(1000), n(1000), n(256), n(128), n(256)
		}
		check(m)
	}
}

func TestDefaultsOfMegatron(t *testing.T) {
	m := spans.Model{NumLayers: 2, HiddenSize: 4096, AttentionHeads: 32, SeqLength: 128, VocabSize: 1000}
	full := m
	full.QueryGroups, full.KVChannels, full.FFNHiddenSize, full.PaddedVocabSize = 32, 128, 16384, 1000
	assert.Equal(t, Megatron(&full, true), Megatron(&m, true))
	m.SwiGLU, full.SwiGLU, full.FFNHiddenSize = true, true, 10880 // ⌊4·4096·⅔ / 64⌋·64
	assert.Equal(t, Megatron(&full, true), Megatron(&m, true))
	m.NumExperts, full.NumExperts, full.RouterTopK, full.MoEFFN = 4, 4, 2, 10880
	assert.Equal(t, Megatron(&full, true), Megatron(&m, true))
	// perf_monitor's own default size: 4h, and in the earlier branch ⌊8h/3⌋.
	llama := spans.Model{Type: "llama", NumLayers: 1, HiddenSize: 1000, AttentionHeads: 10, SeqLength: 10, VocabSize: 1}
	ffn := func(f float64) float64 { return 6*10*1000*f + 10*f }
	assert.InEpsilon(t, ffn(4000)-ffn(2666), FlagScale(&llama, Merged).Forward-FlagScale(&llama, Douzi).Forward, 1e-12)
}

func TestHardware(t *testing.T) {
	c := Count{Forward: 100, Attention: 10, Logits: 5}
	assert.InDelta(t, 300, c.Hardware(RecomputeNone), 0)
	assert.InDelta(t, 300, c.Hardware(""), 0)
	assert.InDelta(t, 310, c.Hardware(RecomputeSelective), 0)
	assert.InDelta(t, 395, c.Hardware(RecomputeFull), 0)
}

func TestMissing(t *testing.T) {
	whole := golden["llama3_8b"].model
	deepseek := whole
	deepseek.MLA, deepseek.KVLoRARank, deepseek.QKHeadDim, deepseek.VHeadDim = true, 512, 128, 128
	for want, change := range map[string]func(*spans.Model){
		"":                    func(*spans.Model) {},
		"num_layers":          func(m *spans.Model) { m.NumLayers = 0 },
		"hidden_size":         func(m *spans.Model) { m.HiddenSize = -1 },
		"num_attention_heads": func(m *spans.Model) { m.AttentionHeads = 0 },
		"seq_length":          func(m *spans.Model) { m.SeqLength = 0 },
		"padded_vocab_size":   func(m *spans.Model) { m.PaddedVocabSize = 0 },
		"kv_lora_rank":        func(m *spans.Model) { m.KVLoRARank = 0 },
		"qk_head_dim":         func(m *spans.Model) { m.QKHeadDim = 0 },
		"v_head_dim":          func(m *spans.Model) { m.VHeadDim = 0 },
		"moe_layer_freq":      func(m *spans.Model) { m.NumExperts, m.MoELayerFreq = 8, -1 },
	} {
		m := deepseek
		change(&m)
		assert.Equal(t, want, Missing(&m))
	}
}

// FuzzCount: for any config, a count is positive or not finite; nothing panics or overflows.
func FuzzCount(f *testing.F) {
	f.Add(int64(32), int64(4096), int64(32), int64(8), int64(0), int64(14336), int64(8192), int64(128256), int64(8), int64(2), int64(1), int64(3))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(1), int64(1), int64(-1), int64(math.MinInt64), int64(1), int64(1), int64(1), int64(-5), int64(7),
		int64(1<<62))
	f.Fuzz(func(t *testing.T, l, h, a, g, c, ffn, s, v, e, k, freq, first int64) {
		m := spans.Model{
			NumLayers: l, HiddenSize: h, AttentionHeads: a, QueryGroups: g, KVChannels: c, FFNHiddenSize: ffn, SeqLength: s, VocabSize: v,
			NumExperts: e, RouterTopK: k, MoELayerFreq: freq, FirstDense: first,
		}
		if Missing(&m) != "" {
			return
		}
		for _, count := range []Count{Megatron(&m, true), FlagScale(&m, Merged), FlagScale(&m, MergedMixtral), FlagScale(&m, Douzi)} {
			if !(count.Forward >= 0) || !(count.Attention >= 0) || count.Attention > count.Forward*(1+1e-12) {
				t.Fatalf("%+v: %+v", m, count)
			}
		}
	})
}

func BenchmarkMegatron(b *testing.B) {
	m := golden["mixtral_8x7b"].model
	b.ReportAllocs()
	for b.Loop() {
		Megatron(&m, true)
	}
}
