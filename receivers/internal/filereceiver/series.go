package filereceiver

import (
	"context"
	"errors"
	"hash/maphash"
	"math/bits"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/spans"
)

// SeriesConfig bounds a receiver's gauges and counters in Prometheus. Labels come from the log, with any number of names, ranks or hosts.
type SeriesConfig struct {
	// CardinalityLimit is the number of series that the receiver's own metrics may have. Points beyond are counted, not sent; a series without a point for ten
	// minutes frees its place. The default is 400, and 1000 of nccl.
	CardinalityLimit int `mapstructure:"cardinality_limit"`
}

// DefaultCardinalityLimit leaves room for train_metrics and the GPUs in 10,000 series, the most that one scrape should hold.
const DefaultCardinalityLimit = 400

var (
	_ component.Config = (*SeriesConfig)(nil)

	errCardinality = errors.New("'cardinality_limit' must be at least 1, such as 400")
)

// Validate returns an error that names the wrong key.
func (c *SeriesConfig) Validate() error {
	if c.CardinalityLimit < 1 {
		return errCardinality
	}
	return nil
}

// forgetSeries is the length of a generation of series. A series keeps its place without a point for one to two generations, five to ten minutes: at least as
// long as the prometheus exporter shows the series (five minutes).
const forgetSeries = 5 * time.Minute

// series enforces cardinality_limit on a receiver's points: series knows the keys (hashes of resource, metric name and labels) of the time series that had a
// point in the current generation or in the generation before. Only a known series, or a new series while there is room, may have points.
type series struct {
	limit   int // 0: no limit
	now     func() time.Time
	seed    maphash.Seed
	dropped metric.Int64Counter
	id      metric.MeasurementOption
	logger  *zap.Logger

	mu                sync.Mutex
	current, previous map[uint64]struct{} // keys of the series with a point in this generation, and in the generation before
	live              int                 // number of series in current or previous
	since             time.Time           // beginning of the current generation
	full              bool                // the warning was logged
}

// newSeries makes the bound of a receiver, with its counter of dropped points.
func newSeries(limit int, set receiver.Settings) (*series, error) {
	dropped, err := set.MeterProvider.Meter("github.com/trainbridge/trainbridge/receivers/internal/filereceiver").Int64Counter("trainbridge.metrics.overflow",
		metric.WithUnit("{point}"), metric.WithDescription("Data points that were not sent, because their series is above cardinality_limit."))
	if err != nil {
		return nil, err
	}
	return &series{
		limit: limit, now: time.Now, seed: maphash.MakeSeed(), dropped: dropped, logger: set.Logger,
		id: metric.WithAttributeSet(attribute.NewSet(attribute.String("receiver", set.ID.String()))), current: map[uint64]struct{}{},
	}, nil
}

// trim removes the points of series beyond the limit from md, and returns their number: the caller counts the points (count) once they are not sent again. It
// also cuts labels that are too long. Without a limit trim does nothing.
func (s *series) trim(md pmetric.Metrics) (dropped int64) {
	if s.limit == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.age()
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		// Two attributes of a resource are labels: job and instance.
		resourceKey := s.text(s.text(0, spans.AttrText(attrs, spans.AttrServiceName)), spans.AttrText(attrs, spans.AttrServiceInstanceID))
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				metricKey, before := s.text(resourceKey, m.Name()), dropped
				last, refused := labels{}, false // of the point before: the same labels need no other look
				spans.Points(m).RemoveIf(func(p pmetric.NumberDataPoint) bool {
					if attrs := p.Attributes(); !last.same(attrs) {
						refused = !s.admit(s.key(metricKey, attrs))
						last.keep(attrs)
					}
					if refused {
						dropped++
					}
					return refused
				})
				if dropped > before && !s.full {
					s.full = true
					s.logger.Warn("there is no room for more series: values with new labels are not sent as metrics. Raise 'cardinality_limit', or see what in the log "+
						"has so many names",
						zap.Int("cardinality_limit", s.limit), zap.String("metric", m.Name()))
				}
			}
			if dropped > 0 {
				sm.Metrics().RemoveIf(func(m pmetric.Metric) bool { return spans.Points(m).Len() == 0 })
			}
		}
	}
	return dropped
}

// count adds points removed by trim to the counter, once they are not sent again.
func (s *series) count(ctx context.Context, dropped int64) {
	if dropped > 0 {
		s.dropped.Add(context.WithoutCancel(ctx), dropped, s.id)
	}
}

// age begins a new generation when the current one is forgetSeries old: series without a point in the current generation are forgotten.
func (s *series) age() {
	now := s.now()
	if now.Sub(s.since) < forgetSeries {
		return
	}
	s.current, s.previous = make(map[uint64]struct{}, len(s.current)), s.current
	s.live, s.since = len(s.previous), now
}

// admit reports whether the series of a key may have a point: a known series, or a new one while there is room. An admitted series keeps its place.
func (s *series) admit(key uint64) bool {
	if _, ok := s.current[key]; ok {
		return true
	}
	if _, ok := s.previous[key]; !ok {
		if s.live >= s.limit {
			return false
		}
		s.live++
	}
	s.current[key] = struct{}{}
	return true
}

// labels are the labels of the point before: mostly also of the next point of a metric, because a file is of one rank. Comparing labels costs less than
// hashing.
type labels struct {
	n    int // number of labels in list; 0: no labels are kept
	list [8]struct {
		name, text string
		number     int64
	}
}

// same reports whether a point has the kept labels, in the same order. Without kept labels, or with a label that is neither text nor integer, the answer is
// false.
func (l *labels) same(attrs pcommon.Map) bool {
	if l.n == 0 || attrs.Len() != l.n {
		return false
	}
	i := 0
	for name, v := range attrs.All() {
		at := &l.list[i]
		i++
		same := at.name == name
		switch v.Type() {
		case pcommon.ValueTypeStr:
			same = same && v.Str() == at.text
		case pcommon.ValueTypeInt:
			same = same && v.Int() == at.number
		default:
			return false
		}
		if !same {
			return false
		}
	}
	return true
}

// keep remembers the labels of a point. If there are more labels than list has room for, or one is neither text nor integer, nothing is remembered, and same
// returns false.
func (l *labels) keep(attrs pcommon.Map) {
	l.n = attrs.Len()
	if l.n > len(l.list) {
		l.n = 0
		return
	}
	i := 0
	for name, v := range attrs.All() {
		at := &l.list[i]
		at.name, at.text, at.number = name, "", 0
		switch v.Type() {
		case pcommon.ValueTypeStr:
			at.text = v.Str()
		case pcommon.ValueTypeInt:
			at.number = v.Int()
		default:
			l.n = 0
			return
		}
		i++
	}
}

// key returns the key of a point's series: the metric's key, mixed with the point's labels. Long labels are cut in the point first. A receiver writes the
// labels of a series in the same order each time.
func (s *series) key(key uint64, attrs pcommon.Map) uint64 {
	for name, v := range attrs.All() {
		key = s.text(key, name)
		switch v.Type() {
		case pcommon.ValueTypeStr:
			if text := v.Str(); len(text) > spans.MaxLabelBytes {
				v.SetStr(spans.Label(text))
			}
			key = s.text(key, v.Str())
		case pcommon.ValueTypeInt:
			key = mix(key, uint64(v.Int()))
		default:
			key = s.text(key, v.AsString())
		}
	}
	return key
}

// text returns a key with a text mixed into it.
func (s *series) text(key uint64, text string) uint64 { return mix(key, maphash.String(s.seed, text)) }

// mix returns the combination of two hashes. The rotation makes the order count; the constant is 2^64 divided by the golden ratio, which spreads the bits (as
// in FxHash).
func mix(key, more uint64) uint64 { return (bits.RotateLeft64(key, 5) ^ more) * 0x9e3779b97f4a7c15 }
