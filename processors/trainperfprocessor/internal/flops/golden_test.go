package flops

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/spans"
)

// originals is the output of tools/flops/golden.py: the arguments as Megatron prints them, and the original FLOPs, {flop} per step.
type originals map[string]struct {
	Batch     float64           `json:"batch_size"`
	Flops     float64           `json:"flops"`
	Type      string            `json:"model_type"`
	Arguments map[string]string `json:"arguments"`
}

func readOriginals(t *testing.T) (megatron, douzi originals) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	require.NoError(t, err)
	var file struct {
		Megatron originals `json:"megatron"`
		Douzi    originals `json:"perf_monitor_douzi"`
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	require.NotEmpty(t, file.Megatron)
	require.NotEmpty(t, file.Douzi)
	return file.Megatron, file.Douzi
}

// modelOf makes a model from printed arguments, in the order of a dump; lists as receivers/internal/megatron reads them.
func modelOf(arguments map[string]string) (m spans.Model) {
	lists := map[string]string{"moe_layer_freq": "moe_layer_pattern", "linear_attention_freq": "linear_attention_pattern"}
	for name, text := range arguments {
		if name == "vocab_size" { // an argument of perf_monitor
			m.Set("padded_vocab_size", []byte(text))
		}
		if list, ok := lists[name]; ok && strings.HasPrefix(text, "[") {
			name, text = list, strings.NewReplacer("[", "", "]", "", ", ", "").Replace(text)
		}
		m.Set(name, []byte(text))
	}
	return m
}

// TestModelsOfManyKinds: moe_latent_size was 1.49 times too much; hybrid models were counted as transformers of as many layers, linear attention as softmax.
func TestModelsOfManyKinds(t *testing.T) {
	megatron, _ := readOriginals(t)
	for name, g := range megatron {
		t.Run(name, func(t *testing.T) {
			m := modelOf(g.Arguments)
			require.Empty(t, Missing(&m))
			require.Empty(t, Unsupported(&m))
			count := Megatron(&m, true)
			assert.InEpsilon(t, g.Flops, count.Times(g.Batch).Model(), 1e-12)
			// The whole attention matrix is twice the causal half, and nothing else changes.
			full := Megatron(&m, false)
			assert.InEpsilon(t, full.Attention, 2*count.Attention, 1e-12)
			assert.InEpsilon(t, full.Forward-full.Attention, count.Forward-count.Attention, 1e-12)
			if m.HybridPattern != "" {
				m.NumLayers = 0 // Megatron derives the number from the pattern
				require.Empty(t, Missing(&m))
				assert.Equal(t, count, Megatron(&m, true))
			}
		})
	}
}

// TestHybridByShares: versions before core 0.17 had shares of the layers in place of a pattern: round(52 · 0.08) and round(52 · 0.46).
func TestHybridByShares(t *testing.T) {
	megatron, _ := readOriginals(t)
	m := modelOf(megatron["nemotron_h_8b"].Arguments)
	want := Megatron(&m, true)
	assert.Equal(t, layers{mamba: 24, attention: 4, feedForward: 24, main: 52, known: true}, layersOf(&m))
	m.HybridPattern, m.Hybrid, m.AttentionRatio, m.MLPRatio = "", true, 0.08, 0.46
	require.Empty(t, Unsupported(&m))
	assert.Equal(t, want, Megatron(&m, true))
	m.AttentionRatio = 2.5 / 52 // to the even neighbour, as Python rounds
	assert.InDelta(t, 2, layersOf(&m).attention, 0)
}

func TestUnsupported(t *testing.T) {
	megatron, _ := readOriginals(t)
	nemotron := modelOf(megatron["nemotron_h_8b"].Arguments)
	qwen := modelOf(megatron["qwen3_next_80b"].Arguments)
	latent := modelOf(megatron["moe_latent"].Arguments)
	for want, m := range map[string]func() spans.Model{
		"gated delta product": func() spans.Model {
			m := nemotron
			m.Set("spec",
				[]byte("['megatron.x', 'gdp_stack_spec']"))
			return m
		},
		"mtp_hybrid_override_pattern": func() spans.Model {
			m := nemotron
			m.Set("mtp_hybrid_override_pattern",
				[]byte("*E"))
			return m
		},
		"hybrid_layer_pattern MD-":                             func() spans.Model { m := nemotron; m.HybridPattern = "MD-"; return m },
		"hybrid_layer_pattern M+/M":                            func() spans.Model { m := nemotron; m.HybridPattern = "M+/M"; return m },
		"hybrid_layer_pattern M-/M/*":                          func() spans.Model { m := nemotron; m.HybridPattern = "M-/M/*"; return m },
		"hybrid_layer_pattern M-//M":                           func() spans.Model { m := nemotron; m.HybridPattern = "M-//M"; return m },
		"multi_latent_attention in a hybrid model":             func() spans.Model { m := nemotron; m.MLA = true; return m },
		"hybrid_attention_ratio without is_hybrid_model":       func() spans.Model { m := latent; m.AttentionRatio = 0.08; return m },
		"experimental_attention_variant kda":                   func() spans.Model { m := qwen; m.AttentionVariant = "kda"; return m },
		"linear_attention_pattern of another number of layers": func() spans.Model { m := qwen; m.LinearPattern = "1110"; return m },
		"moe_layer_pattern of another number of layers":        func() spans.Model { m := qwen; m.MoEPattern = "1110"; return m },
		"hybrid_layer_pattern ": func() spans.Model {
			m := nemotron
			m.HybridPattern, m.Hybrid, m.MLPRatio = "", true,
				1.5
			return m
		},
	} {
		got := m()
		assert.Equal(t, want, Unsupported(&got))
	}
	for name, text := range map[string]string{"spec": "None", "mtp_hybrid_override_pattern": "None", "hybrid_override_pattern": "MM"} {
		m := nemotron
		assert.True(t, m.Set(name, []byte(text)))
		assert.Equal(t, nemotron, m, name)
	}
	m := spans.Model{}
	m.Set("hybrid_override_pattern", []byte("M-M*"))
	assert.Equal(t, "M-M*", m.HybridPattern)
}

// TestDouzi: the branch's FLOPs with a model name, and without: Megatron has no argument for the name.
func TestDouzi(t *testing.T) {
	_, douzi := readOriginals(t)
	for name, g := range douzi {
		m := modelOf(g.Arguments)
		m.Type = g.Type
		assert.InEpsilon(t, g.Flops, FlagScale(&m, Douzi).Times(g.Batch).Model(), 1e-12, name)
		if g.Arguments["model_name"] == "" {
			m.Type = "" // as a dump describes the model
			assert.InEpsilon(t, g.Flops, FlagScale(&m, Douzi).Times(g.Batch).Model(), 1e-12, name)
			m.Type = "llama" // the true type
			assert.InEpsilon(t, g.Flops, FlagScale(&m, DouziUnnamed).Times(g.Batch).Model(), 1e-12, name)
		}
	}
}

// FuzzHybrid: whatever a pattern says, a count is finite and not negative, or the reason is named.
func FuzzHybrid(f *testing.F) {
	f.Add("M-M*-E|G/*E/*E", "gdn2", "1101", "0101", 0.1, 0.5, int64(4), int64(1024))
	f.Add("////", "dsa", "", "", -1.0, 2.0, int64(-3), int64(-1))
	f.Fuzz(func(t *testing.T, pattern, variant, linear, moe string, attention, mlp float64, layers, n int64) {
		m := spans.Model{
			HybridPattern: pattern, AttentionVariant: variant, LinearPattern: linear, MoEPattern: moe, AttentionRatio: attention, MLPRatio: mlp,
			Hybrid: n%2 == 0, NumLayers: layers,
			HiddenSize: 64, AttentionHeads: 8, SeqLength: 128, VocabSize: 100, NumExperts: n, MoELatentSize: n, LinearFreq: n, MTPLayers: n, MambaNumHeads: n,
			LinearKeyHeads: n,
		}
		if Missing(&m) != "" || Unsupported(&m) != "" {
			return
		}
		if c := Megatron(&m, true); !(c.Forward >= 0) || c.Attention < 0 || c.Attention > c.Forward*(1+1e-12) {
			t.Fatalf("%+v: %+v", m, c)
		}
	})
}
