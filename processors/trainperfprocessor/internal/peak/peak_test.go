package peak

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOf(t *testing.T) {
	for device, want := range map[string]float64{ // TFLOP/s, 0: not known
		"NVIDIA H100 80GB HBM3": 989, "nvidia h100 80gb hbm3": 989, "H100": 989, "NVIDIA H100 PCIe": 756, "NVIDIA H100 80GB PCIe": 756, "NVIDIA H100 " +
			"NVL": 835, "H100-NVL": 835,
		"NVIDIA H200": 989, "NVIDIA H200 NVL": 836, "NVIDIA H200 PCIe": 836, "NVIDIA H800": 989, "NVIDIA H800 PCIe": 756, "NVIDIA H20": 148, "NVIDIA " +
			"H20-3e": 148,
		"NVIDIA A100-SXM4-80GB": 312, "NVIDIA A100 80GB PCIe": 312, "NVIDIA A800-SXM4-80GB": 312, "NVIDIA A40": 149.7, "NVIDIA A30": 165,
		"NVIDIA B100": 1800, "NVIDIA B200": 2250, "NVIDIA GB200": 2500,
		"NVIDIA L40S": 362, "NVIDIA L40": 181, "NVIDIA L20": 119.5, "NVIDIA L4": 121,
		"AMD Instinct MI300X OAM": 1307.4, "AMD Instinct MI325X": 1307.4, "AMD Instinct MI300A": 980.6, "AMD Instinct MI250X": 383, "AMD Instinct MI250": 362.1,
		"AMD Instinct MI350X": 2300, "AMD Instinct MI355X": 2500,
		"Ascend910B": 354, "Ascend 910B": 354, "910B": 354, "TPU v4": 275, "TPU v5e": 197, "TPU v5 lite": 197, "TPU v6e": 918, "TPU v6 lite": 918,
		"NVIDIA GeForce RTX 4090": 165.2, "NVIDIA GeForce RTX 5090": 209.5,

		"": 0, "Tesla V100-SXM2-32GB": 0, "NVIDIA RTX A4000": 0, "NVIDIA GH200 480GB": 0, "AMD Instinct MI308X": 0, "Ascend910B3": 0, "TPU " +
			"v5p": 0, "TPU": 0, "RTX": 0,
		"NVIDIA H100 80GB HBM3 MIG 1g.10gb": 0, "NVIDIA GeForce RTX 4090 Laptop GPU": 0, "NVIDIA GeForce RTX 5090 D": 0, "XH100": 0, "批": 0,
	} {
		flops, source, ok := Of(device)
		assert.Equal(t, want > 0, ok, device)
		assert.InDelta(t, want*1e12, flops, 1, device)
		assert.Equal(t, ok, source != "", device)
	}
}

// TestTable: every row is found by each of its names, has a source, and states the version.
func TestTable(t *testing.T) {
	assert.Contains(t, table, "# version 20")
	for _, r := range rows {
		flops, source, ok := Of(strings.Join(r.words, " "))
		assert.True(t, ok, r.words)
		assert.InDelta(t, r.flops, flops, 0, r.words)
		assert.Equal(t, r.source, source)
		assert.NotEmpty(t, source, r.words)
		assert.Greater(t, r.flops, 100e12)
		assert.Less(t, r.flops, 3000e12)
	}
	assert.Panics(t, func() { readTable("names,tflops,source\nX,fast,me\n") })
	assert.Panics(t, func() { readTable("names,tflops,source\nX\n") })
}

func FuzzOf(f *testing.F) {
	f.Add("NVIDIA H100 80GB HBM3")
	f.Fuzz(func(t *testing.T, device string) {
		if flops, _, ok := Of(device); ok != (flops > 0) {
			t.Fatal(device)
		}
	})
}
