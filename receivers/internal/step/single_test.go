package step

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// The time of a step with an evaluation of unknown length, beyond that of the step before, is the evaluation's, if the trainer's time holds evaluations.
func TestEvaluationWithinAStep(t *testing.T) {
	for name, c := range map[string]struct {
		source   string
		of       track
		duration float64
		want     []record.Stage
	}{
		"nanoGPT":             {"nanogpt", track{Evaluates: true, Evaluated: 250, Own: 0.25}, 14, []record.Stage{{Name: evaluation, Seconds: 13.75}}},
		"LitGPT's timer":      {"litgpt", track{Evaluates: true, Evaluated: 250, Own: 0.25}, 14, nil},
		"another step's":      {"nanogpt", track{Evaluates: true, Evaluated: 240, Own: 0.25}, 14, nil},
		"no evaluation":       {"nanogpt", track{Evaluated: 250, Own: 0.25}, 14, nil},
		"the first step":      {"nanogpt", track{Evaluates: true, Evaluated: 250}, 14, nil},
		"a shorter step":      {"nanogpt", track{Evaluates: true, Evaluated: 250, Own: 15}, 14, nil},
		"a step without time": {"nanogpt", track{Evaluates: true, Evaluated: 250, Own: 0.25}, -1, nil},
	} {
		rec := new(record.Record)
		rec.Reset()
		rec.Source = c.source
		if c.duration > 0 {
			rec.Set(record.Duration, c.duration)
		}
		assert.Equal(t, c.want != nil, addEvaluation(rec, &placed{item: item{iteration: 250, hasIteration: true}}, &c.of), name)
		assert.Len(t, rec.Stages, len(c.want), name)
		for i := range rec.Stages {
			assert.Equal(t, string(c.want[i].Name), string(rec.Stages[i].Name), name)
			assert.InDelta(t, c.want[i].Seconds, rec.Stages[i].Seconds, 1e-9, name)
		}
	}
}

// A logged step with an evaluation within says nothing of the nine steps before, but a second slow one in a row does.
func TestTimeOfSingleSteps(t *testing.T) {
	const ms = int64(1e6)
	for _, c := range []struct {
		before, duration float64
		steps, want      int64
	}{
		{0, 0.25, 10, 2500 * ms},
		{0.25, 9.25, 10, 11500 * ms},
		{9.25, 9.25, 10, 92500 * ms},
		{0.25, 0.30, 10, 3000 * ms},
		{0.25, 9.25, 1, 9250 * ms},
		{41, 0.25, 10, 2500 * ms},
	} {
		assert.Equal(t, c.want, (&track{Own: c.before}).stepsTime(c.duration, c.steps), c)
	}
}
