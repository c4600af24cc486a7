package trainlogreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

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

	// A time of the log that cannot be true does not become the time of the span.
	r := read(t, nil, write(t, "x.log", lines[1]))
	s := r.All(spans.SpanStep)[0]
	assert.Zero(t, s.StartTimestamp())
	assert.Equal(t, int64(5e9), int64(s.EndTimestamp()))
	assert.Equal(t, string(spans.TimeSynthetic), attr(s, spans.AttrTimeSource))
}
