package trainlogreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// Real runs with stalls of 3 s. The truth is of callbacks in the loops: the number of steps, the time from the first's begin to the last's end, s, and the
// stalled steps.
func TestBarsAgreeWithTheTruth(t *testing.T) {
	for name, want := range map[string]struct {
		steps, seconds float64
		stalls         []float64
	}{
		"tqdm":             {50, 13.41, []float64{24, 30}},
		"hf_stalls":        {50, 13.15, []float64{20, 30}}, // 17 and 28, of records of 5 steps
		"lightning_stalls": {50, 13.23, []float64{45}},     // 36 and 43, of a record of 10
		"keras":            {54, 2.68, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := read(t, nil, fixture(t, "trainers/"+name+".log"))
			steps, seconds := 0.0, 0.0
			var stalls []float64
			for _, s := range filereceivertest.ByEnd(b.All(spans.SpanStep)) {
				covers := number(s, spans.AttrStepsCovered)
				if !(covers > 1) {
					covers = 1
				}
				took := s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()).Seconds()
				steps, seconds = steps+covers, seconds+took
				if took > covers*0.2+1 && number(s, spans.AttrIteration) > 1 {
					stalls = append(stalls, number(s, spans.AttrIteration))
				}
			}
			assert.InDelta(t, want.steps, steps, 0)
			assert.InEpsilon(t, want.seconds, seconds, 0.01)
			assert.Equal(t, want.stalls, stalls)
		})
	}
}

// Text printed past a bar is a separate line.
func TestTextBehindBars(t *testing.T) {
	b := read(t, nil, write(t, "x.log",
		"\r  0%|          | 0/20 [00:00<?, ?it/s]step 0 loss 2.3641", "\r  5%|▌         | 1/20 [00:00<00:05,  3.28it/s]step 1 loss 2.4165",
		"\r 10%|█         | 2/20 [00:00<00:05,  3.29it/s, loss=2.2]`Trainer.fit` stopped",
		"\r 15%|█         | 3/20 [00:00<00:05,  3.29it/s]{'loss': 2.1, 'epoch': 0.1}"))
	assert.ElementsMatch(t, []string{"2.3641", "2.4165", "2.2", "2.1"}, attrs(filereceivertest.ByEnd(b.All(spans.SpanStep)), spans.AttrLoss))
}

func TestOddTimes(t *testing.T) {
	zone := func(name string) func(path string) *filereceivertest.Result {
		return func(path string) *filereceivertest.Result {
			return read(t, func(c *Config) { c.Timezone = name }, path)
		}
	}
	lines := []string{
		`{"step": 1, "loss": 2.3, "step_time_s": 86400}`,
		`{"timestamp": "1970-01-01T00:00:05", "step": 2, "loss": 2.3, "step_time_s": 60}`,
		`{"timestamp": "1970-01-01T00:00:05+08:00", "step": 3, "loss": 2.3, "step_time_s": 60}`,
		`{"timestamp": "1969-12-31T23:59:59Z", "step": 4, "loss": 2.3}`,
		`{"timestamp": "2262-12-31T23:59:59Z", "step": 5, "loss": 2.3}`,
		`{"timestamp": "2261-12-31T23:59:59Z", "step": 6, "loss": 2.3, "step_time_s": 60}`,
		`{"timestamp": -1000, "step": 7, "loss": 2.3}`,
		`{"timestamp": 8.9e18, "step": 8, "loss": 2.3, "step_time_s": 60}`,
		`{"timestamp": 9.3e18, "step": 9, "loss": 2.3}`,
		"[1970-01-01 00:00:04] iteration        10/     100 | elapsed time per iteration (ms): 15100.4 | lm loss: 9.87 |",
	}
	filereceivertest.OddTimes(t, zone("UTC"), lines...)
	filereceivertest.OddTimes(t, zone("Asia/Shanghai"), lines...)

	// An impossible time in the log does not become the time of the span.
	r := read(t, nil, write(t, "x.log", lines[1]))
	s := r.All(spans.SpanStep)[0]
	assert.Zero(t, s.StartTimestamp())
	assert.Equal(t, int64(5e9), int64(s.EndTimestamp()))
	assert.Equal(t, string(spans.TimeSynthetic), attr(s, spans.AttrTimeSource))
}
