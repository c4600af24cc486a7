package digest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

type gauges struct {
	pmetric.MetricSlice
}

func (g gauges) add(name string, at int64, value float64, attrs map[string]any) {
	m := g.AppendEmpty()
	m.SetName(name)
	points := m.SetEmptyGauge().DataPoints()
	if name == spans.MetricNCCLLinkIO || name == spans.MetricNCCLNodeIO {
		points = m.SetEmptySum().DataPoints()
	}
	p := points.AppendEmpty()
	p.SetTimestamp(pcommon.Timestamp(base + at))
	p.SetDoubleValue(value)
	if err := p.Attributes().FromRaw(attrs); err != nil {
		panic(err)
	}
}

// A message may begin with ranks of one collective, whose resources then stand before that of the next collective.
func TestRanksBeforeTheirCollective(t *testing.T) {
	m := newJobLike()
	for range 3 {
		m.collective(16)
	}
	td := m.Traces()
	turned := ptrace.NewTraces()
	for i := td.ResourceSpans().Len() - 1; i >= 0; i-- {
		td.ResourceSpans().At(i).CopyTo(turned.ResourceSpans().AppendEmpty())
	}
	records := func(td ptrace.Traces) (of []int64) {
		jobs := New()
		jobs.Batch(td)
		for _, job := range jobs.Rows() {
			for _, r := range job.Collectives.Ranks() {
				of = append(of, r.Records)
			}
		}
		return of
	}
	want := records(td)
	require.Len(t, want, 16)
	require.Equal(t, want, records(turned))
}

func TestMetrics(t *testing.T) {
	m := newJobLike()
	m.collective(16) // eight ranks on each of two hosts
	jobs := New()
	jobs.Batch(m.Traces())
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	spans.Resource{Service: "nccl", RunID: "run"}.Put(rm.Resource().Attributes())
	g := gauges{rm.ScopeMetrics().AppendEmpty().Metrics()}
	link := func(from, to int64) map[string]any {
		return map[string]any{spans.AttrNCCLSource: from, spans.AttrNCCLDestination: to}
	}
	g.add(spans.MetricNCCLLinkBandwidth, 2, 20e9, link(0, 8))
	g.add(spans.MetricNCCLLinkBandwidth, 1, 99e9, link(0, 8)) // an older one
	g.add(spans.MetricNCCLLinkBandwidth, 1, 30e9, link(1, 10))
	g.add(spans.MetricNCCLLinkBandwidth, 1, 200e9, link(2, 3))
	g.add(spans.MetricNCCLLinkBandwidth, 1, 1e9, link(2, 77)) // nobody knows where rank 77 is
	g.add(spans.MetricNCCLLinkIO, 1, 500, link(0, 8))
	g.add(spans.MetricNCCLLinkIO, 2, 700, link(0, 8))
	g.add(spans.MetricNCCLLinkIO, 2, 900, map[string]any{"otel.metric.overflow": true})
	g.add(spans.MetricNCCLNodeIO, 2, 5000, map[string]any{spans.AttrNCCLSourceHost: "node-0", spans.AttrNCCLDestHost: "node-1"})
	for i, x := range []float64{0.25, 0.75} {
		g.add(spans.MetricGPUUtilization, int64(i), x, map[string]any{spans.AttrHardwareID: "10", spans.AttrRank: 3})
		g.add(spans.MetricGPUUtilization, int64(i), x, map[string]any{spans.AttrHardwareID: "9", spans.AttrRank: 3, spans.AttrGPUTask: "general"})
		g.add(spans.MetricGPUUtilization, int64(i), 1, map[string]any{spans.AttrHardwareID: "9", spans.AttrRank: 3, spans.AttrGPUTask: "encoder"})
		g.add(spans.MetricHardwareTemperature, int64(i), 60+x, map[string]any{
			spans.AttrHardwareID: "GPU-1", spans.AttrHardwareName: "GPU 0", spans.AttrDeviceModel: "H100", spans.AttrHostName: "node-0", spans.AttrHardwareType: "gpu",
			spans.AttrSensorLocation: "gpu",
		})
	}
	g.add("ml.train.loss", 1, 1, nil)
	g.AppendEmpty().SetName(spans.MetricHardwarePower) // without points
	jobs.Metrics(md)

	rows := jobs.Rows()
	require.Len(t, rows, 1)
	var got []Link
	for _, l := range append(rows[0].Collectives.Links(), rows[0].Collectives.Nodes()...) {
		l.at = 0
		got = append(got, *l)
	}
	require.Len(t, got, 6)
	assert.Equal(t, Link{Source: "0", Destination: "8", Bytes: 700, Bandwidth: 20e9}, got[0])
	assert.Equal(t, []string{"1", "10"}, []string{got[1].Source, got[1].Destination})
	assert.Equal(t, []string{"2", "3", "77"}, []string{got[2].Source, got[2].Destination, got[3].Destination})
	assert.InDelta(t, 200e9, got[4].Bandwidth, 0)
	assert.Equal(t, Link{Source: "node-0", Destination: "node-1", Bytes: 5000, Bandwidth: 25e9}, got[5])

	cards := rows[0].GPUs()
	require.Len(t, cards, 3)
	assert.Equal(t, []string{"9", "10", "GPU-1"}, []string{cards[0].ID, cards[1].ID, cards[2].ID})
	assert.Equal(t, view.Int{N: 3, OK: true}, cards[0].Rank)
	assert.InDeltaSlice(t, []float64{2, 1, 0.25, 0.5, 0.75}, figuresOf(&cards[0].Utilization), 1e-12)
	assert.Equal(t, []string{"node-0", "GPU 0", "H100"}, []string{cards[2].Host, cards[2].Name, cards[2].Model})
	assert.InDelta(t, 60.75, cards[2].Temperature.Max(), 0)
}
