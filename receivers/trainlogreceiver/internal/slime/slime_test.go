package slime_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/slime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	generated = "rollout_metrics.py:268 - perf 3: {'rollout/response_len/mean': 812.5, 'perf/rollout_time': 20.5}\n"
	rewards   = "train_metric_utils.py:135 - rollout 3: {'rollout/raw_reward': 0.5}\n"
	step      = "model.py:918 - step 3: {'train/loss': 0.0123, 'train/kl_loss': 0.5, 'train/grad_norm': 0.25, 'train/lr-pg_0': 1e-06, 'train/global_batch_size': 256, 'train/step': 3}\n"
	perf      = "train_metric_utils.py:401 - perf 3: {'perf/sleep_time': 1.5, 'perf/train_wait_time': 30.25, 'perf/actor_train_time': 16.5, 'perf/train_time': 21.75, 'perf/ref_model_update_time': 2.5, 'perf/actor_train_tflops': 95.5, 'perf/step_time': 52.0}\n"
)

var logs = map[string]struct {
	text string
	want []string
}{
	"one step per rollout": {
		generated + rewards + step + perf + "rollout_metrics.py:247 - eval 3: {'eval/aime': 0.3}\n",
		[]string{
			"slime step open iteration=3 loss=0.0123 lr=1e-06 grad_norm=0.25 batch=256 extra:train/kl_loss=0.5",
			"slime side iteration=3 duration=52 stage:sleep=1.5 stage:train_wait=30.25 stage:actor_train=16.5 stage:train=21.75 stage:rollout=20.5 " +
				"extra:perf/ref_model_update_time=2.5 extra:perf/actor_train_tflops=95.5 extra:rollout/response_len/mean=812.5 extra:rollout/raw_reward=0.5",
			"slime evaluation iteration=3 extra:eval/aime=0.3",
		},
	},
	// Rollout 1 is steps 2 and 3, and the next rollout is over before the training. Its values are left for the next.
	"several steps per rollout": {
		"perf 1: {'perf/rollout_time': 5}\nperf 2: {'perf/rollout_time': 6}\nstep 2: {'train/loss': 1, 'train/step': 2}\nstep 3: {'train/loss': 2, 'train/step': 3}\n" +
			"perf 1: {'perf/train_wait_time': 4, 'perf/train_time': 3, 'perf/step_time': 7}\neval 1: {'eval/aime': 0.3}\n",
		[]string{
			"slime step open iteration=2 loss=1", "slime step open iteration=3 loss=2",
			"slime side extra:perf/train_wait_time=4 extra:perf/train_time=3 extra:perf/step_time=7 extra:perf/rollout_time=5",
			"slime evaluation extra:eval/aime=0.3",
		},
	},
	// Generation of 6 s does not lie in a wait of 4 s.
	"beside the training before": {
		"perf 1: {'perf/rollout_time': 6}\nstep 1: {'train/loss': 1, 'train/step': 1}\nperf 1: {'perf/train_wait_time': 4, 'perf/train_time': 3, 'perf/step_time': 7}\n",
		[]string{"slime step open iteration=1 loss=1", "slime side iteration=1 duration=7 stage:train_wait=4 stage:train=3 extra:perf/rollout_time=6"},
	},
	// Each text with an escape keeps its memory.
	"texts": {
		"rollout 1: {'rollout/a': 'it\\'s a'}\nmulti_turn 1: {'multi_turn/b': 'it\\'s b'}\nstep 1: {'train/loss': 1, 'train/step': 1}\nperf 1: {'perf/c': 'it\\'s c', 'perf/train_time': 3}\n",
		[]string{
			"slime step open iteration=1 loss=1",
			`slime side iteration=1 stage:train=3 extra:perf/c="it's c" extra:rollout/a="it's a" extra:multi_turn/b="it's b"`,
		},
	},
	"of others": {
		"perf 1: {'perf/train_time': 3}\ncritic-step 1: {'train/critic-loss': 1, 'train/step': 1}\nstep 1: {'loss': 2}\nperf x: {'perf/train_time': 3}\nperf -1: {'perf/train_time': 3}\n" +
			"step: {'train/step': 1}\nstep 1\nperf 1: {'perf/cpu': 3}\nrollout 1: {'x': 2}\n: {'\n 1: {'\n",
		nil,
	},
}

// sink is a recordtest.Sink for lines with prefixes.
type sink struct{ recordtest.Sink }

func feed(p *slime.Parser, text string, out *sink, each func(tail.Verdict, string)) {
	var peeler line.Peeler
	for l := range strings.Lines(text) {
		var prefix line.Prefix
		v, reason, _ := p.Line(peeler.Peel(bytes.TrimSuffix([]byte(l), []byte("\n")), &prefix), out)
		each(v, reason)
	}
}

func TestLine(t *testing.T) {
	for name, c := range logs {
		for _, saved := range []bool{false, true} {
			p, out := slime.New(nil), new(sink)
			for l := range strings.Lines(c.text) {
				feed(p, l, out, func(tail.Verdict, string) {})
				if saved { // each line by a parser of its own
					next := slime.New(nil)
					if state := p.Save(); state != nil {
						next.Restore(state)
					}
					p = next
				}
			}
			assert.Equal(t, c.want, out.Got, "%s, saved: %v", name, saved)
		}
	}
}

func TestVerdicts(t *testing.T) {
	var got []string
	feed(slime.New(nil), "perf 1: {'perf/train_time': 3}\n"+generated+step+"step 4: {'train/step': 4, 'tr\nperf 4: {'perf/train_time': 3,\neval 4: {'eval/a': \nother\n", new(sink),
		func(v tail.Verdict, reason string) {
			got = append(got, strings.TrimSpace(strings.Repeat("!", int(v))+reason))
		})
	rejected, ignored, found := strings.Repeat("!", int(tail.Rejected)), strings.Repeat("!", int(tail.Ignored)), strings.Repeat("!", int(tail.Record))
	bad := rejected + slime.BadDict
	assert.Equal(t, []string{ignored + slime.NoStep, ignored + slime.Rollout, found, bad, bad, bad, ignored}, got)
}

// Rollouts without a training do not gather.
func TestKept(t *testing.T) {
	p := slime.New(nil)
	for range 100 {
		feed(p, generated, new(sink), func(tail.Verdict, string) {})
	}
	feed(p, "perf 9: {'perf/rollout_time': 1, 'x': '"+strings.Repeat("x", 1<<15)+"'}", new(sink), func(tail.Verdict, string) {})
	assert.Less(t, len(p.Save()), 1000)
	for at := range 100 {
		feed(p, strings.ReplaceAll(generated, "perf 3", "perf "+strconv.Itoa(at)), new(sink), func(tail.Verdict, string) {})
	}
	assert.Less(t, len(p.Save()), 2000)
}

// The trainer's perf line read again, as after a restart, says the same; a rollout made again replaces its values.
func TestAgain(t *testing.T) {
	p, out := slime.New(nil), new(sink)
	feed(p, generated+rewards+step+perf+perf+strings.ReplaceAll(rewards, "0.5", "0.75")+perf, out, func(tail.Verdict, string) {})
	assert.Len(t, out.Got, 4)
	assert.Equal(t, out.Got[1], out.Got[2])
	assert.Equal(t, strings.ReplaceAll(out.Got[1], "raw_reward=0.5", "raw_reward=0.75"), out.Got[3])
}

// A name of a kept line may be mapped to a field.
func TestKeptFields(t *testing.T) {
	p, out := slime.New(map[string]object.Target{"rollout/raw_reward": object.Mapped(record.Perplexity, 1)}), new(sink)
	feed(p, rewards+step+perf, out, func(tail.Verdict, string) {})
	assert.Contains(t, out.Got[1], " ppl=0.5")
}

func FuzzLine(f *testing.F) {
	for _, c := range logs {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, out, records := slime.New(nil), new(sink), 0
		feed(p, text, out, func(v tail.Verdict, reason string) {
			if v == tail.Record {
				records++
			}
			if v == tail.Rejected && reason == "" {
				t.Fatal("rejected without a reason")
			}
		})
		if records != len(out.Got) {
			t.Fatalf("%d records by their lines, %d emitted", records, len(out.Got))
		}
		if state := p.Save(); state != nil {
			slime.New(nil).Restore(state)
		}
	})
}

func BenchmarkLine(b *testing.B) {
	for name, text := range map[string]string{"step": strings.TrimSpace(step), "other": "rollout.py:440 - Recovered 2 dead rollout engines (worker_type=regular)"} {
		b.Run(name, func(b *testing.B) {
			p, in, out := slime.New(nil), []byte(text), new(recordtest.Discard)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				p.Line(in, out)
			}
		})
	}
}
