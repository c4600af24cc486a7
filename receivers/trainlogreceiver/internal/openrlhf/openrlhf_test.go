package openrlhf_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/openrlhf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var parser = recordtest.Parser{Source: openrlhf.Source, Parse: func(b []byte, rec *record.Record) (bool, string) { return openrlhf.New(nil).Parse(b, rec) }}

var seeds = []string{
	"INFO 08-13 19:25:45 ppo_trainer.py:547] ✨ Global step 5: {'policy_loss': 0.0123, 'actor_lr': 1e-06, 'reward': 0.5, 'timing/generation': 12.5, 'timing/ppo_train': 27.75, 'timing/step_total': 40.25}",
	"✨ Evaluation completed in 0:01:02, global_step 5, eval_metrics: {'eval_default_pass1': 0.5}", "Eval at step 5: {'a': 1}", "Global step 5: {'a'",
	"Global step : {'", "Evaluation completed in , global_step 5, eval_metrics: {'",
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		seeds[0]: "step iteration=5 duration=40.25 stage:generation=12.5 stage:ppo_train=27.75 extra:policy_loss=0.0123 extra:actor_lr=1e-06 extra:reward=0.5",
		seeds[1]: "evaluation iteration=5 extra:eval_default_pass1=0.5",
		seeds[2]: "evaluation iteration=5 extra:a=1",
		seeds[3]: "!bad_dict",
		"(PPOTrainer pid=42) Global step 6: {'reward': nan, 'timing/step_total': 1}": "step iteration=6 duration=1 extra:reward=NaN",
		"": "", "Global step 5: done": "", "Global step five: {'a': 1}": "", "{'policy_loss': 0.1}": "", "Eval at step 5": "", "Evaluation completed in 0:01:02": "",
	} {
		assert.Equal(t, want, parser.Line(in), in)
	}
}

func FuzzParse(f *testing.F) { parser.Fuzz(f, seeds) }

func BenchmarkParse(b *testing.B) {
	p := openrlhf.New(nil)
	recordtest.Parser{Source: openrlhf.Source, Parse: p.Parse}.Bench(
		b, map[string]string{"step": seeds[0], "other": "INFO 08-13 19:25:45 experience_maker.py:116] 🚀 Starting experience making with 128 samples"},
	)
}
