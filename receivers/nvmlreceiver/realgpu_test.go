//go:build linux && cgo && gpu

package nvmlreceiver

import (
	"context"
	"encoding/csv"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRealGPU compares a scrape of this machine's GPUs with nvidia-smi, the driver's own reader, before and after. A value between both readings, or within a
// tolerance for values in motion, is right. `make gpu-test` runs the test on a host with a driver; load on the GPUs makes the test stricter.
func TestRealGPU(t *testing.T) {
	b := newBed(t, nvml.New(), func(c *Config) { c.Metrics.TrainbridgeGpuFieldSupported.Enabled = true })
	b.clock = time.Now
	b.begin(t)
	b.pass(t)
	before := smi(t)
	time.Sleep(2 * time.Second) // NVML's sampling needs wall time
	got := b.pass(t)
	after := smi(t)
	for _, entry := range b.log.All() {
		t.Log(entry.Level, entry.Message, entry.ContextMap())
	}
	for key, value := range got {
		t.Logf("%s %v", key, value)
	}
	require.NotEmpty(t, before, "GPUs of nvidia-smi")
	for uuid, was := range before {
		is := after[uuid]
		for _, c := range compared {
			low, ok := reading(was[c.smi])
			high, still := reading(is[c.smi])
			value, found := got[fmt.Sprintf(c.key, uuid)]
			if assert.Equal(t, ok && still, found, "%s: nvidia-smi has %q", c.key, is[c.smi]) && found {
				assert.GreaterOrEqual(t, value, (min(low, high)-c.tolerance)*c.unit, c.key)
				assert.LessOrEqual(t, value, (max(low, high)+c.tolerance)*c.unit, c.key)
			}
		}
	}
}

// pass scrapes, and allows no error.
func (b *bed) pass(t *testing.T) points {
	t.Helper()
	md, err := b.scrape(context.Background())
	require.NoError(t, err)
	return pointsOf(md)
}

// compared are points and nvidia-smi's fields: nvidia-smi's unit in the point's, and the tolerance in nvidia-smi's.
var compared = []struct {
	key, smi        string
	unit, tolerance float64
}{
	{"hw.gpu.memory.limit id=%s", "memory.total", 1 << 20, 1},
	{"hw.gpu.memory.usage id=%s", "memory.used", 1 << 20, 64},
	{"hw.temperature id=%s sensor_location=gpu", "temperature.gpu", 1, 3},
	{"hw.temperature id=%s sensor_location=memory", "temperature.memory", 1, 3},
	{"hw.power id=%s", "power.draw.average", 1, 100},
	{"hw.errors id=%s type=corrected", "ecc.errors.corrected.volatile.total", 1, 0},
	{"hw.errors id=%s type=uncorrected", "ecc.errors.uncorrected.volatile.total", 1, 0},
	{"hw.gpu.utilization id=%s task=general", "utilization.gpu", 0.01, 50},
	{"trainbridge.gpu.clock.frequency domain=graphics id=%s", "clocks.gr", 1e6, 300},
	{"trainbridge.gpu.clock.frequency domain=sm id=%s", "clocks.sm", 1e6, 300},
	{"trainbridge.gpu.clock.frequency domain=memory id=%s", "clocks.mem", 1e6, 0},
	{"trainbridge.gpu.clock.frequency domain=video id=%s", "clocks.video", 1e6, 300},
}

// smi is nvidia-smi's answer: fields by UUID.
func smi(t *testing.T) map[string]map[string]string {
	t.Helper()
	fields := []string{"uuid"}
	for _, c := range compared {
		fields = append(fields, c.smi)
	}
	out, err := exec.Command("nvidia-smi", "--query-gpu="+strings.Join(fields, ","), "--format=csv,noheader,nounits").Output()
	require.NoError(t, err)
	r := csv.NewReader(strings.NewReader(string(out)))
	r.TrimLeadingSpace = true
	rows, err := r.ReadAll()
	require.NoError(t, err)
	all := map[string]map[string]string{}
	for _, row := range rows {
		gpu := map[string]string{}
		for i, name := range fields {
			gpu[name] = row[i]
		}
		all[gpu["uuid"]] = gpu
	}
	return all
}

// reading is a number of nvidia-smi; not ok: [N/A] and the like.
func reading(text string) (v float64, ok bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}
