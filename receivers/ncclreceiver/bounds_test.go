package ncclreceiver

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/formats"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// sound checks the invariants of all spans and metrics, for any logs.
func sound(tb testing.TB, r *filereceivertest.Result) {
	tb.Helper()
	type made struct {
		name   string
		parent pcommon.SpanID
	}
	all := make(map[spanKey]made)
	perTrace := make(map[pcommon.TraceID]int)
	runs := make(map[pcommon.TraceID]bool)
	for _, s := range r.All("") {
		id := spanKey{s.TraceID(), s.SpanID()}
		require.False(tb, s.TraceID().IsEmpty() || s.SpanID().IsEmpty())
		all[id] = made{s.Name(), s.ParentSpanID()}
		perTrace[s.TraceID()]++
		if s.Name() == spans.SpanRun {
			require.False(tb, runs[s.TraceID()], "a run is opened once")
			runs[s.TraceID()] = true
		}
	}
	for _, s := range r.All("") {
		require.Less(tb, s.StartTimestamp(), s.EndTimestamp(), s.Name())
		require.LessOrEqual(tb, uint64(s.EndTimestamp()), uint64(math.MaxInt64), s.Name())
		require.True(tb, utf8.ValidString(s.Name()), s.Name())
		require.LessOrEqual(tb, len(s.Name()), spans.MaxAttributeBytes)
		if !s.ParentSpanID().IsEmpty() {
			require.NotEqual(tb, s.SpanID(), s.ParentSpanID())
		} else if s.Name() != spans.SpanRun {
			require.Equal(tb, 1, s.Links().Len(), s.Name())
			require.True(tb, runs[s.Links().At(0).TraceID()], "the run that %s links to was sent", s.Name())
		}
		for name, v := range s.Attributes().All() {
			switch v.Type() {
			case pcommon.ValueTypeStr:
				require.True(tb, utf8.ValidString(v.Str()), name)
				require.LessOrEqual(tb, len(v.Str()), spans.MaxAttributeBytes, name)
				require.NotEmpty(tb, v.Str(), name)
			case pcommon.ValueTypeDouble:
				require.False(tb, math.IsNaN(v.Double()) || math.IsInf(v.Double(), 0), name)
				if strings.HasPrefix(name, "nccl.bandwidth") || strings.HasPrefix(name, "nccl.late") || strings.HasSuffix(name, "duration") {
					require.GreaterOrEqual(tb, v.Double(), 0.0, name)
				}
			case pcommon.ValueTypeSlice:
				require.LessOrEqual(tb, v.Slice().Len(), collectives.MaxListed, name)
			default:
			}
		}
		if why := attr(s, spans.AttrIncompleteReason); why != "" {
			require.Contains(tb, incomplete(), why)
		}
	}
	for _, md := range r.Metrics.AllMetrics() {
		soundMetrics(tb, md)
	}
}

// incomplete are the reasons why a collective may not be whole.
func incomplete() []string {
	out := []string{spans.NCCLIncompleteStuck}
	for o := collectives.Gap; o < collectives.Late; o++ {
		out = append(out, o.String())
	}
	return out
}

func soundMetrics(tb testing.TB, md pmetric.Metrics) {
	tb.Helper()
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			require.NotEmpty(tb, m.Unit(), m.Name())
			var list pmetric.NumberDataPointSlice
			if m.Type() == pmetric.MetricTypeSum {
				require.True(tb, m.Sum().IsMonotonic())
				require.Equal(tb, pmetric.AggregationTemporalityCumulative, m.Sum().AggregationTemporality())
				list = m.Sum().DataPoints()
			} else {
				list = m.Gauge().DataPoints()
			}
			for _, dp := range list.All() {
				require.LessOrEqual(tb, uint64(dp.Timestamp()), uint64(math.MaxInt64), m.Name())
				require.LessOrEqual(tb, dp.StartTimestamp(), dp.Timestamp(), m.Name())
				if dp.ValueType() == pmetric.NumberDataPointValueTypeDouble {
					require.False(tb, math.IsNaN(dp.DoubleValue()) || math.IsInf(dp.DoubleValue(), 0), m.Name())
				} else {
					require.GreaterOrEqual(tb, dp.IntValue(), int64(0), m.Name())
				}
			}
		}
	}
}

// For any bytes, everything is counted, nothing panics, and the output is sound.
func FuzzReceiver(f *testing.F) {
	for _, name := range fixtures {
		b, err := readFixture(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[0], b[len(b)-1], uint8(0))
		f.Add(b[len(b)-1], b[0], uint8(255))
	}
	little := record{rank: -5, of: -3, sn: -1, size: -9, us: -7}
	large := record{rank: 1 << 30, of: 1 << 30, sn: 1 << 60, size: 1 << 62, us: 1 << 50, start: 1 << 51}
	f.Add([]byte(little.String()), []byte(large.String()), uint8(7))
	f.Fuzz(func(t *testing.T, one, two []byte, settings uint8) {
		dir := t.TempDir()
		filereceivertest.Put(t, dir, "rank_0.json", string(one))
		filereceivertest.Put(t, dir, "nccl_trace_rank_1", string(two))
		cfg := config(dir + "/*")
		cfg.CorrectClock = settings&1 != 0
		cfg.AnomalyDetection = settings&2 == 0
		if settings&4 != 0 {
			cfg.SampleRate = 0.5
		}
		if settings&8 != 0 {
			cfg.Ranks = []int32{0, 1}
		}
		if settings&16 != 0 {
			cfg.Format = formats.All[settings>>5].Name
		}
		var joiner *collectives.Joiner[tail.Lent]
		r := filereceivertest.Read(t, receivertest.NewNopSettings(metadata.Type), cfg, keeping(&joiner))
		if cfg.SampleRate == 1 {
			sound(t, r)
		}
		if joiner != nil {
			require.NoError(t, joiner.Leftover())
		}
	})
}
