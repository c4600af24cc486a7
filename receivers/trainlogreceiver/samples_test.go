package trainlogreceiver

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// sampleOf is the target of a name of W&B's samples: metric and label, and the conversion of its unit.
var sampleOf = map[string]struct {
	series string
	per    float64
}{
	"gpu":                  {"hw.gpu.utilization hw.gpu.task=general", 100},
	"memoryAllocated":      {"hw.gpu.memory.utilization", 100},
	"memoryAllocatedBytes": {"hw.gpu.memory.usage", 1},
	"temp":                 {"hw.temperature hw.sensor_location=gpu", 1},
	"powerWatts":           {"hw.power hw.type=gpu", 1},
	"energyJoules":         {"hw.energy hw.type=gpu", 1},
	"smClock":              {"trainbridge.gpu.clock.frequency trainbridge.gpu.clock.domain=sm", 1e-6},
	"memoryClock":          {"trainbridge.gpu.clock.frequency trainbridge.gpu.clock.domain=memory", 1e-6},
	"pcieRxBytes":          {"trainbridge.gpu.pcie.throughput network.io.direction=receive", 1},
	"pcieTxBytes":          {"trainbridge.gpu.pcie.throughput network.io.direction=transmit", 1},
}

// samplesOf is the content of a file by the SDK's own reader, by series and device: by the time in µs the value.
func samplesOf(t *testing.T, path string) map[string]map[int64]float64 {
	t.Helper()
	var truth struct {
		Records []struct {
			Stats *struct {
				Timestamp float64
				Items     [][2]string
			}
		}
	}
	scalarsOf(t, path, true, &truth)
	all := make(map[string]map[int64]float64)
	for _, r := range truth.Records {
		if r.Stats == nil {
			continue
		}
		for _, item := range r.Stats.Items {
			var device int
			var name string
			if _, err := fmt.Sscanf(item[0], "gpu.%d.%s", &device, &name); err != nil || sampleOf[name].per == 0 {
				continue
			}
			v, err := strconv.ParseFloat(item[1], 64)
			require.NoError(t, err)
			series := fmt.Sprintf("%s hw.id=%d", sampleOf[name].series, device)
			if all[series] == nil {
				all[series] = make(map[int64]float64)
			}
			all[series][int64(math.Round(r.Stats.Timestamp*1e6))] = v / sampleOf[name].per
		}
	}
	return all
}

// gpuPoints are the points of GPUs in the form of samplesOf.
func gpuPoints(t *testing.T, list []pmetric.Metrics) map[string]map[int64]float64 {
	t.Helper()
	all := make(map[string]map[int64]float64)
	for _, md := range list {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					for _, p := range spans.Points(m).All() {
						id, ok := p.Attributes().Get(spans.AttrHardwareID)
						if !ok {
							continue
						}
						names := []string{m.Name()}
						for k, v := range p.Attributes().All() {
							if k != spans.AttrHardwareID && k != spans.AttrSource {
								names = append(names, k+"="+v.AsString())
							}
						}
						series := strings.Join(append(names, "hw.id="+id.Str()), " ")
						if all[series] == nil {
							all[series] = make(map[int64]float64)
						}
						at := int64(math.Round(float64(p.Timestamp()) / 1e3))
						assert.NotContains(t, all[series], at)
						all[series][at] = spans.PointNumber(p)
					}
				}
			}
		}
	}
	return all
}

// near says that values are equal but for the last bit of a division, and times to 2 µs: the truth has seconds as a float64.
func near(t *testing.T, want, got map[string]map[int64]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for series, values := range want {
		require.Len(t, got[series], len(values), series)
		for at, v := range values {
			found := math.NaN()
			for d := int64(-2); d <= 2; d++ {
				if x, ok := got[series][at+d]; ok {
					found = x
				}
			}
			assert.InDelta(t, v, found, math.Abs(v)*1e-15, "%s at %d", series, at)
		}
	}
}

// The GPU samples of a W&B file equal those of the SDK's own reader.
func TestGPUSamples(t *testing.T) {
	for _, name := range []string{"gpu-0.31.0", "gpu-0.19.11"} {
		t.Run(name, func(t *testing.T) {
			want := samplesOf(t, "../../internal/wandb/testdata/"+name+".json.gz")
			require.Greater(t, len(want), 13)
			path := filereceivertest.Put(t, t.TempDir(), "run-gpu00001.wandb", string(unpacked(t, "../../internal/wandb/testdata/"+name+".wandb.gz")))
			all := read(t, nil, path)
			near(t, want, gpuPoints(t, all.Metrics.AllMetrics()))
			assert.Len(t, all.All(spans.SpanStep), 8)
			assert.Empty(t, all.Counts.Rejected)
			samples := len(want["hw.power hw.type=gpu hw.id=0"])
			assert.EqualValues(t, 8+samples, all.Counts.Records)

			for series, values := range want {
				last := int64(0)
				for at := range values {
					last = max(last, at)
				}
				want[series] = map[int64]float64{last: values[last]}
			}
			near(t, want, gpuPoints(t, read(t, func(c *Config) { c.LatestPoints = true }, path).Metrics.AllMetrics()))
		})
	}
}

// withoutSamples is a W&B file of one block without its samples.
func withoutSamples(t *testing.T, file []byte) []byte {
	t.Helper()
	const header, fragment = 7, 7
	require.Less(t, len(file), 32<<10)
	out := file[:header:header]
	for rest := file[header:]; len(rest) > 0; {
		n := fragment + int(binary.LittleEndian.Uint16(rest[4:]))
		require.EqualValues(t, 1, rest[6], "a whole record")
		stats := false
		for record := rest[fragment:n]; len(record) > 0; {
			number, _, size := protowire.ConsumeField(record)
			require.Positive(t, size)
			stats, record = stats || number == 7, record[size:]
		}
		if !stats {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}

// Samples do not change the steps around them, and make no spans.
func TestGPUSamplesBesideSteps(t *testing.T) {
	file, err := os.ReadFile("testdata/trackers/gpu.wandb")
	require.NoError(t, err)
	dir := t.TempDir() // the same for both: the ids of a run's spans depend on its path
	with := read(t, nil, filereceivertest.Put(t, dir, "gpu.wandb", string(file)))
	without := read(t, nil, filereceivertest.Put(t, dir, "gpu.wandb", string(withoutSamples(t, file))))
	assert.Empty(t, gpuPoints(t, without.Metrics.AllMetrics()))
	assert.Equal(t, waterfall(without), waterfall(with))
	require.NoError(t, ptracetest.CompareTraces(without.Traces.AllTraces()[0], with.Traces.AllTraces()[0]))
	assert.Equal(t, points(without, spans.AttrLoss), points(with, spans.AttrLoss))
}

// A growing file: a sample comes before the first step.
func TestGPUSamplesLive(t *testing.T) {
	file, err := os.ReadFile("testdata/trackers/gpu.wandb")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "run-gpu00001.wandb")
	s := started(t, live(path))
	want := samplesOf(t, "../../internal/wandb/testdata/gpu-0.31.0.json.gz")
	n := 0
	for _, values := range want {
		n += len(values)
	}
	appendTo(t, path, string(file[:len(file)/3]))
	got := []pmetric.Metrics{<-s.metrics}
	assert.NotEmpty(t, gpuPoints(t, got), "without waiting for the rest")
	appendTo(t, path, string(file[len(file)/3:]))
	for found := 0; found < n; {
		got = append(got, <-s.metrics)
		found = 0
		for _, values := range gpuPoints(t, got) {
			found += len(values)
		}
	}
	near(t, want, gpuPoints(t, got))
}
