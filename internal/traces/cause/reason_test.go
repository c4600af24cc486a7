package cause_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/traces/cause"
	"github.com/trainbridge/trainbridge/spans"
)

func TestReasons(t *testing.T) {
	for _, of := range []string{
		spans.ReasonAlike, spans.ReasonArrivals, spans.ReasonSomeArrivals, spans.ReasonClocksApart, spans.ReasonDevices, spans.ReasonProfile, spans.ReasonServerTime,
		spans.ReasonStageTime, spans.ReasonStepTimers, spans.ReasonTimers,
	} {
		assert.Regexp(t, `^[a-z].*[a-zA-Z0-9]$`, string(cause.Reason{Of: of}.Append(nil, false)), of)
		assert.Regexp(t, `^\p{Han}`, string(cause.Reason{Of: of}.Append(nil, true)), of)
	}
	assert.Empty(t, cause.Reason{Of: "of a later version"}.Append(nil, false))
	for want, r := range map[string]cause.Reason{
		"the hosts' clocks are 50 ms apart, so their logs cannot be aligned; set the clocks by NTP or PTP": {
			Of: spans.ReasonClocksApart, Apart: 0.05,
		},
		"no timers of the step, so loading data and computing cannot be told apart; set megatron_log_level=2 of NeMo's " + "MegatronStrategy": {
			Of: spans.ReasonTimers, Trainer: "nemo",
		},
	} {
		assert.Equal(t, want, string(r.Append(nil, false)))
	}
}
