package tq

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/gentest"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// values are gauges by metric and labels.
type values map[[3]string][]float64

func (v values) add(metric, label, second string, value float64) {
	v[[3]string{metric, label, second}] = append(v[[3]string{metric, label, second}], value)
}

func (v values) sorted() values {
	for _, list := range v {
		slices.Sort(list)
	}
	return v
}

func (v values) count() (n int) {
	for _, list := range v {
		n += len(list)
	}
	return n
}

// wanted is the truth about the lines between the records.
func wanted(t *testing.T, truth *truthFile) values {
	t.Helper()
	v := values{}
	for i := range truth.Records {
		f := &truth.Records[i]
		for direction, cost := range map[string]string{"get": f.GetCost, "put": f.PutCost} {
			if cost != "" {
				v.add(spans.MetricTQTaskDuration, f.Func, direction, gentest.Number(t, cost))
			}
		}
	}
	for _, r := range truth.Run.Storage {
		v.add(spans.MetricTQStorageRequests, r.Unit, "", float64(r.Requests))
		v.add(spans.MetricTQStorageRate, r.Unit, "", gentest.Number(t, r.PerMinute)/60)
		v.add(spans.MetricTQStorageDurationAvg, r.Unit, "", gentest.Number(t, r.Average))
		for _, op := range r.Operations {
			v.add(spans.MetricTQOperationRequests, r.Unit, op.Name, float64(op.Requests))
			v.add(spans.MetricTQOperationRate, r.Unit, op.Name, gentest.Number(t, op.PerMinute)/60)
			v.add(spans.MetricTQOperationDurationAvg, r.Unit, op.Name, gentest.Number(t, op.Average))
			v.add(spans.MetricTQOperationDurationMax, r.Unit, op.Name, gentest.Number(t, op.Max))
			v.add(spans.MetricTQOperationDurationMin, r.Unit, op.Name, gentest.Number(t, op.Min))
		}
	}
	return v.sorted()
}

// gauges are the gauges of a log.
func gauges(log *gentest.Log) values {
	v := values{}
	for _, md := range log.Metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					for _, dp := range m.Gauge().DataPoints().All() {
						var labels [2]string
						for i, names := range [2][2]string{{spans.AttrTQFunction, spans.AttrTQStorageUnit}, {spans.AttrTQDirection, spans.AttrTQOperation}} {
							for _, name := range names {
								if text, ok := dp.Attributes().Get(name); ok {
									labels[i] = text.Str()
								}
							}
						}
						v.add(m.Name(), labels[0], labels[1], dp.DoubleValue())
					}
				}
			}
		}
	}
	return v.sorted()
}

// Lines of newer versions between the records are read back as metrics, each value as printed.
func TestNeighboursAreReadBack(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"files":                    nil,
		"files, crashes":           func(o *Options) { o.Crash, o.ComputeOnly = 0.3, 0.3 },
		"driver":                   func(o *Options) { o.Out += ".log" },
		"driver, without colours":  func(o *Options) { o.Out, o.Prefix = o.Out+".log", writer.PrefixRay },
		"driver, hosts":            func(o *Options) { o.Out, o.IPs = o.Out+".log", []string{"10.0.0.2", "10.0.0.3"} },
		"driver, many at once":     func(o *Options) { o.Out, o.Concurrency, o.Workers = o.Out+".log", 8, 8 },
		"times as small as 10 µs":  func(o *Options) { o.Scale = 1e-6 },
		"times as long as minutes": func(o *Options) { o.Scale = 500 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, func(o *Options) {
				o.Costs, o.Timezone = true, time.UTC
				if change != nil {
					change(o)
				}
			})
			run, truth := write(t, o)
			require.NotEmpty(t, run.Storage)
			want := wanted(t, truth)
			glob := o.Out
			if o.intoFiles() {
				glob = filepath.Join(o.Out, "worker-*.err")
			}
			got := gauges(gentest.Read(t, tqtracereceiver.NewFactory(), glob, func(l *gentest.Log) bool { return gauges(l).count() >= want.count() }))
			for key, list := range want {
				if assert.Len(t, got[key], len(list), "%v", key) {
					assert.InEpsilonSlice(t, plusOne(list), plusOne(got[key]), 1e-9, "%v", key)
				}
			}
			assert.Len(t, got, len(want))
		})
	}
}

// plusOne: a relative error of 0 is none.
func plusOne(list []float64) []float64 {
	for i := range list {
		list[i]++
	}
	return list
}
