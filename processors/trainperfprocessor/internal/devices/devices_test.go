package devices

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDevicesAgainstOracle compares with the whole history of sightings.
func TestDevicesAgainstOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	d := New()
	start := time.Unix(perftest.Base/1e9, 0)
	now := start
	d.now = func() time.Time { return now }
	type sighting struct {
		device
		at time.Time
	}
	var history []sighting
	hosts, kinds := []string{"a", "b", "c"}, []string{perftest.H200, perftest.A100}
	forgotten, agreed := 0, 0
	for range 5000 {
		// Whole minutes, so a sweep is due at each step.
		now = now.Add(time.Duration(1+rng.IntN(25)) * time.Minute)
		g := perftest.GPU{Host: hosts[rng.IntN(3)], Model: kinds[min(rng.IntN(8)/3, 1)]}
		require.True(t, notice(d, perftest.Scrape(g)))
		history = append(history, sighting{device{g.Host, g.Model}, now})
		models := map[string]map[string]bool{"": {}}
		for _, s := range history {
			if now.Sub(s.at) > time.Hour {
				continue
			}
			if models[s.host] == nil {
				models[s.host] = map[string]bool{}
			}
			models[s.host][s.model], models[""][s.model] = true, true
		}
		known := d.Known()
		for _, host := range append(hosts, "") {
			want := ""
			if len(models[host]) == 1 {
				for model := range models[host] {
					want = model
				}
				agreed++
			}
			if len(models[host]) == 0 {
				forgotten++
			}
			require.Equal(t, want, known.Of(host), "host %q", host)
		}
	}
	assert.Positive(t, forgotten)
	assert.Positive(t, agreed)
}

func TestDevicesAreBounded(t *testing.T) {
	d := New()
	now := time.Unix(perftest.Base/1e9, 0)
	d.now = func() time.Time { return now }
	var gpus []perftest.GPU
	for i := range Max {
		gpus = append(gpus, perftest.GPU{Host: fmt.Sprint("node", i), Model: perftest.H200})
	}
	long := strings.Repeat("x", maxDeviceText+1)
	assert.True(t, notice(d, perftest.Scrape(perftest.GPU{Host: long, Model: perftest.H200}, perftest.GPU{Host: "a", Model: long})))
	assert.True(t, notice(d, perftest.Scrape(gpus...)))
	assert.Len(t, d.seen, Max)
	assert.False(t, notice(d, perftest.Scrape(perftest.GPU{Host: "one more", Model: perftest.H200})))
	assert.Empty(t, d.Known().Of("one more"))
	assert.Equal(t, perftest.H200, d.Known().Of("node17"))

	now = now.Add(forgetDevice + time.Second)
	notice(d, perftest.Scrape(perftest.GPU{Host: "one more", Model: perftest.H200}))
	assert.Equal(t, perftest.H200, d.Known().Of("one more"))
	assert.Len(t, d.seen, 1)
}

// TestDevicesOfOtherTypes: metrics other than gauge and sum, and labels that are no text, are ignored.
func TestDevicesOfOtherTypes(t *testing.T) {
	d := New()
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for _, name := range []string{spans.MetricHardwareStatus, spans.MetricGPUMemoryLimit} {
		ms.AppendEmpty().SetName(name)
		for _, m := range []pcommon.Map{
			newMetric(ms, name).SetEmptyHistogram().DataPoints().AppendEmpty().Attributes(),
			newMetric(ms, name).SetEmptySummary().DataPoints().AppendEmpty().Attributes(),
			newMetric(ms, name).SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Attributes(),
		} {
			m.PutStr("hw.type", "gpu")
			m.PutStr("hw.model", perftest.H200)
			m.PutStr("hw.parent", "GPU-0")
		}
		odd := newMetric(ms, name).SetEmptyGauge().DataPoints().AppendEmpty().Attributes()
		odd.PutEmptySlice("hw.type").AppendEmpty().SetStr("gpu")
		odd.PutInt("hw.model", 200)
		odd.PutEmptyMap("host.name")
	}
	notice(d, md)
	assert.Empty(t, d.seen)
	// A gauge will do: not every sender of hw.status sends a sum.
	m := newMetric(ms, spans.MetricHardwareStatus).SetEmptyGauge().DataPoints().AppendEmpty().Attributes()
	m.PutStr("hw.type", "gpu")
	m.PutStr("hw.model", perftest.H200)
	notice(d, md)
	assert.Equal(t, perftest.H200, d.Known().Of(""))
}

func newMetric(ms pmetric.MetricSlice, name string) pmetric.Metric {
	m := ms.AppendEmpty()
	m.SetName(name)
	return m
}

// notice passes all metrics about devices on. It returns false when no further host fits.
func notice(d *Devices, md pmetric.Metrics) bool {
	room := true
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if IsAbout(m.Name()) {
					room = d.Notice(rm.Resource().Attributes(), m) && room
				}
			}
		}
	}
	return room
}
