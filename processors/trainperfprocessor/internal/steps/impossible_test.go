package steps

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

// TestImpossible: an MFU of 110 % and of 5,419 % gets a verdict.
func TestImpossible(t *testing.T) {
	a100 := func(c *Config) { c.Device = "NVIDIA A100-SXM4-80GB" }
	known := withModel(perftest.Aquila)
	for name, tt := range map[string]mfuCase{
		"another device, reported": {[]func(*Config){a100}, 1, attrs{spans.AttrDeviceFlopThroughputReported: 343.2e12}, []string{
			"MFU is 110%: 343 of 312 TFLOP/s per device, as logged, more than the device can do. Likely causes, in this order: 1) the devices are " +
				"not NVIDIA A100-SXM4-80GB: " +
				"of H100 it would be 34.7%; 2) the GEMMs run in FP8 or FP4, and the peak is that of BF16; 3) the log counts more than the model's FLOPs.",
		}},
		"another maker": {
			[]func(*Config){func(c *Config) { c.Device = "AMD Instinct MI250X" }},
			1,
			attrs{spans.AttrDeviceFlopThroughputReported: 600e12},
			[]string{
				"the devices are not AMD Instinct MI250X: of MI300X it would be 45.9%;",
			},
		},
		"GFLOP/s": {[]func(*Config){onH100}, 1, attrs{spans.AttrDeviceFlopThroughputReported: 54.19 * 989e12}, []string{
			"MFU is 5,419%: 53,594 of 989 TFLOP/s per device, as logged, more than the device can do. Likely causes, in this order: " +
				"1) the log's number is in GFLOP/s, not TFLOP/s: it would be 5.4%; 2) the log counts more than the model's FLOPs.",
		}},
		"devices": {[]func(*Config){onH100, known}, secondsOf(4), attrs{spans.AttrDeviceFlopThroughputReported: 4 * 989e12 / 8}, []string{
			"MFU is 400%: 3,956 of 989 TFLOP/s per device, more than the device can do. Likely causes, in this order: 1) the job has more devices than 8: with 64, " +
				"by the log's own FLOP/s per device, it would be 50%; " +
				"2) the GEMMs run in FP8 or FP4, and the peak is that of BF16; 3) the model, its seq_length or the batch is not what runs.",
		}},
		"steps covered": {[]func(*Config){onH100, known}, secondsOf(5), attrs{spans.AttrStepsCovered: int64(10)}, []string{
			"MFU is 500%: 4,945 of 989 TFLOP/s per device, more than the device can do. Likely causes, in this order: 1) the job has more devices than 8 (at least " +
				"54): set 'train::world_size'; " +
				"2) the time is that of all 10 steps of the record, divided once too often: it would be 50%; 3) the model, its seq_length or the batch is " +
				"not what runs.",
		}},
		"a peak of the config": {[]func(*Config){func(c *Config) { c.PeakFlops = 100e12 }}, 1, attrs{spans.AttrDeviceFlopThroughputReported: 400e12}, []string{
			"MFU is 400%: 400 of 100 TFLOP/s per device, as logged, more than the device can do. Likely causes, in this order: 1) 'train::peak_flops' " +
				"is not that of the devices: " +
				"of H100 it would be 40.4%; 2) the GEMMs run in FP8 or FP4, and the peak is that of BF16; 3) the log counts more than the model's FLOPs.",
		}},
		"no division by none": {[]func(*Config){onH100, known}, secondsOf(2000), nil, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := checkReasons(t, &tt)
			assert.Equal(t, []string{saidImpossible}, perftest.Verdicts(s), "and no verdict beside it")
			assert.Equal(t, spans.SeverityBad, perftest.Text(s, spans.AttrVerdictSeverity))
		})
	}
}

func TestPossible(t *testing.T) {
	fp8, fp4 := perftest.Aquila, perftest.Aquila
	fp8.FP8, fp4.FP4 = "hybrid", "e2m1"
	for name, tt := range map[string]mfuCase{
		"possible in FP8":  {[]func(*Config){onH100, withModel(fp8)}, secondsOf(1.4), nil, nil},
		"possible in FP4":  {[]func(*Config){onH100, withModel(fp4)}, secondsOf(3), nil, nil},
		"just possible":    {[]func(*Config){onH100, withModel(perftest.Aquila)}, secondsOf(0.999), nil, nil},
		"nothing is known": {nil, 1, attrs{spans.AttrDeviceFlopThroughputReported: 1e18}, nil},
	} {
		t.Run(name, func(t *testing.T) { checkReasons(t, &tt) })
	}
}

type mfuCase struct {
	config  []func(*Config)
	seconds float64
	attrs   attrs
	want    []string
}

// secondsOf is the duration of a step of Aquila on H100 for an MFU.
func secondsOf(mfu float64) float64 { return perftest.AquilaMegatron / 8 / (mfu * 989e12) }

func checkReasons(t *testing.T, tt *mfuCase) ptrace.Span {
	t.Helper()
	p, _ := newTest(t, tt.config...)
	s := oneStep(t, p, perftest.Job, tt.seconds, tt.attrs)
	got := perftest.Reasons(s)
	require.Len(t, got, len(tt.want))
	for i, want := range tt.want {
		assert.Contains(t, got[i], want)
		assert.NotContains(t, got[i], "NaN")
		assert.NotContains(t, got[i], "Inf")
	}
	return s
}

// TestSlowStepsKeepTheirVerdict: one step in ten is slow, and each has a verdict.
func TestSlowStepsKeepTheirVerdict(t *testing.T) {
	p, _ := newTest(t, onH100, withModel(perftest.Aquila))
	low := 0
	for i := range int64(200) {
		seconds := 1.
		if i%10 == 5 {
			seconds = 4
		}
		b := spans.NewBatch("test", "")
		s := perftest.AddStep(b, perftest.Job, i+2, seconds, nil)
		perftest.Judge(p, b.Traces())
		if slices.Contains(perftest.Verdicts(s), spans.VerdictMFULow) {
			low++
		}
	}
	assert.Equal(t, 20, low)
}

// TestNoMFUOfPartOfTheSamples: perf_monitor's number omits the data-parallel size, so its low MFU proves nothing.
func TestNoMFUOfPartOfTheSamples(t *testing.T) {
	p, _ := newTest(t, onH100)
	a := attrs{spans.AttrSource: "perf_monitor", spans.AttrDeviceFlopThroughputReported: 20e12}
	s := oneStep(t, p, perftest.Job, 1, a)
	assert.Empty(t, perftest.Verdicts(s))
	perftest.Numbers(t, s, map[string]float64{spans.AttrMFU: 20. / 989})
	a[spans.AttrSource] = "megatron"
	s = oneStep(t, p, perftest.Job, 1, a)
	assert.Equal(t, []string{spans.VerdictMFULow}, perftest.Verdicts(s))
	assert.NotContains(t, perftest.Reasons(s)[0], "another unit")
	p, _ = newTest(t, onH100)
	a[spans.AttrDeviceFlopThroughputReported] = 0.4e12 // TFLOP/s where PFLOP/s were meant, say
	assert.Contains(t, perftest.Reasons(oneStep(t, p, perftest.Job, 1, a))[0],
		"; so little may also mean a wrong device, number of devices or unit.")
}

// TestVerdictsOfARunAreSaidOnce: a run with an MFU of 7 % does not repeat train_mfu_low on each of 250 steps, nor any other lasting verdict.
func TestVerdictsOfARunAreSaidOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		attrs attrs
		want  []string
	}{
		"MFU":          {nil, []string{spans.VerdictMFULow}},
		"impossible":   {attrs{spans.AttrStepDuration: 0.1}, []string{saidImpossible}},
		"FLOPs":        {attrs{spans.AttrDeviceFlopThroughputReported: 5e12}, []string{saidFlops, spans.VerdictMFULow}},
		"samples":      {attrs{spans.AttrSampleThroughput: 1., spans.AttrBatchSize: int64(32)}, []string{saidThroughput, spans.VerdictMFULow}},
		"perf_monitor": {perfMonitorRow(4, perftest.AquilaFlagScale/4, 8, 2048), []string{saidDP, spans.VerdictMFULow}},
		"loss":         {attrs{spans.AttrLoss: "NaN"}, []string{spans.VerdictLossNotFinite, spans.VerdictMFULow}},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newTest(t, onH100, withModel(perftest.Aquila))
			said := map[string][]string{}
			first := int64(2)
			for from := first; from < first+250; from += 10 { // in batches
				b := spans.NewBatch("test", "")
				for i := range int64(10) {
					perftest.AddStep(b, perftest.Job, from+i, 4, tt.attrs)
				}
				perftest.Judge(p, b.Traces())
				for i := range int64(10) {
					s := perftest.SpanByID(t, b.Traces(), int(from+i)+1_000_000)
					for j, v := range perftest.Verdicts(s) {
						if from+i > 100 {
							assert.Contains(t, perftest.Reasons(s)[j], " True of 100 of the last 100 records.")
						}
						said[v] = append(said[v], strconv.FormatInt(from+i, 10))
					}
				}
			}
			assert.Len(t, said, len(tt.want))
			for _, v := range tt.want {
				once := []string{"2", "102", "202"}
				if v == spans.VerdictMFULow || v == spans.VerdictLossNotFinite { // said on each step, until nearly all have it
					once = []string{"2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "111", "211"}
				}
				assert.Equal(t, once, said[v], v)
			}
		})
	}
}
