package replay

import (
	"context"
	"io"
	"iter"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/internal/porttest"
)

var exposed = regexp.MustCompile(`(?m)^([a-zA-Z_]\w*)(?:\{(.*?)\})? (\S+)`)

// live is the page of the shipped configuration's prometheus exporter, as Prometheus scrapes it: values by name and sorted labels.
func live(t *testing.T, md pmetric.Metrics) map[string]float64 {
	t.Helper()
	address := porttest.Addr(t)
	f := prometheusexporter.NewFactory()
	cfg := f.CreateDefaultConfig().(*prometheusexporter.Config)
	cfg.ServerConfig.NetAddr.Endpoint, cfg.EnableOpenMetrics, cfg.WithoutScopeInfo = address, true, true
	exp, err := f.CreateMetrics(t.Context(), exportertest.NewNopSettings(f.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, exp.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, exp.Shutdown(context.Background())) }()
	require.NoError(t, exp.ConsumeMetrics(t.Context(), md))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(t, err)
	req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	values := map[string]float64{}
	for _, m := range exposed.FindAllStringSubmatch(string(page), -1) {
		if m[1] == "target_info" || strings.HasSuffix(m[1], "_created") {
			continue
		}
		labels := strings.Split(m[2], ",")
		slices.Sort(labels)
		v, err := strconv.ParseFloat(m[3], 64)
		require.NoError(t, err, m[0])
		values[m[1]+"{"+strings.Join(labels, ",")+"}"] = v
	}
	return values
}

// byLabels are the last values of series, by name and sorted labels.
func byLabels(t *testing.T, all iter.Seq[*series]) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for s := range all {
		name, labels := "", []string(nil)
		assert.True(t, slices.IsSortedFunc(s.labels, func(a, b label) int { return strings.Compare(a.name, b.name) }))
		for _, l := range s.labels {
			if l.name == metricName {
				name = l.value
				continue
			}
			labels = append(labels, l.name+"="+strconv.Quote(l.value))
		}
		slices.Sort(labels)
		key := name + "{" + strings.Join(labels, ",") + "}"
		assert.NotContains(t, out, key)
		out[key] = s.samples[len(s.samples)-1].value
	}
	return out
}

// A replay of train_metrics' output has the names, labels and values of a live collector's page, where its histograms have no buckets.
func TestAsLive(t *testing.T) {
	files, err := filepath.Glob("../../../../connectors/trainmetricsconnector/testdata/want*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		md, err := golden.ReadMetrics(file)
		require.NoError(t, err)
		md.MarkReadOnly()
		table := newTable()
		table.add(md, func(pcommon.Timestamp) int64 { return 7 })
		samples := table.samples
		all := table.take()
		for _, s := range all {
			require.Len(t, s.samples, 1)
			assert.Equal(t, int64(7), s.samples[0].at)
		}
		got := byLabels(t, slices.Values(all))
		assert.Len(t, got, samples)
		want := pmetric.NewMetrics()
		md.CopyTo(want)
		page := live(t, withNow(want))
		maps.DeleteFunc(page, func(key string, _ float64) bool { return strings.Contains(key, `le="+Inf"`) })
		assert.Equal(t, page, got, file)
		assert.Zero(t, table.samples)
	}
}

// withNow gives points the time of now: the exporter forgets old ones.
func withNow(md pmetric.Metrics) pmetric.Metrics {
	now := pcommon.NewTimestampFromTime(timeNow())
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						p.SetTimestamp(now)
					}
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						p.SetTimestamp(now)
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						p.SetTimestamp(now)
					}
				case pmetric.MetricTypeExponentialHistogram:
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						p.SetTimestamp(now)
					}
				default:
				}
			}
		}
	}
	return md
}

// Points without a value, and metrics of foreign types, make no sample; a whole number makes one.
func TestStrangePoints(t *testing.T) {
	md := pmetric.NewMetrics()
	list := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	list.AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty()
	list.AppendEmpty()
	g := list.AppendEmpty()
	g.SetName("a.b")
	p := g.SetEmptyGauge().DataPoints()
	p.AppendEmpty().SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	p.AppendEmpty().SetIntValue(3)
	table := newTable()
	table.add(md, func(at pcommon.Timestamp) int64 { return int64(at) })
	assert.Equal(t, []*series{{labels: []label{{"__name__", "a_b"}}, samples: []sample{{0, 3}}}}, table.take())
}

func TestSort(t *testing.T) {
	in := []sample{{2, 1}, {1, 4}, {2, 8}, {3, 16}, {1, 32}}
	s := series{samples: slices.Clone(in)}
	s.sort()
	assert.Equal(t, []sample{{1, 32}, {2, 8}, {3, 16}}, s.samples, "the later value")
	s = series{adds: true, samples: slices.Clone(in)}
	s.sort()
	assert.Equal(t, []sample{{1, 36}, {2, 9}, {3, 16}}, s.samples)
}
