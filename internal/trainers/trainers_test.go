package trainers_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/spans"
)

// Waits for rollouts are no computing.
func TestWaiting(t *testing.T) {
	for _, name := range []string{"train_wait", "wait_prev_gen"} {
		assert.Equal(t, trainers.Waiting, trainers.PartOf(name), name)
	}
}

// Timers of training scripts for collectives are no computing.
func TestTimersOfScripts(t *testing.T) {
	for _, name := range []string{"comm_time_s", "communication_time", "allreduce_time_ms", "bwd_allreduce_microstep", "all-grads-sync"} {
		assert.Equal(t, trainers.Communicating, trainers.PartOf(name), name)
	}
	for _, name := range []string{"compute_time_s", "commit_time", "forward-compute"} {
		assert.Equal(t, trainers.Computing, trainers.PartOf(name), name)
	}
}

func TestBeside(t *testing.T) {
	for _, c := range []struct {
		step, others, beside float64
		want                 bool
	}{
		{10, 8, 1, false},
		{10, 9, 1.05, false}, // rounded
		{10, 8, 3, true},
		{10, 0, 11, true},
		{10, 12, 3, false}, // the others overlap
		{10, 12, 11, true},
		{10, 12, 0, false},
		{0, 0, 1, true}, // of unknown length
		{math.NaN(), 1, 1, false},
	} {
		assert.Equal(t, c.want, trainers.Beside(c.step, c.others, c.beside), c)
	}
}

// A word that only has another's letters within says nothing: a search agent's retrieval is no evaluation.
func TestEvaluating(t *testing.T) {
	for name, want := range map[string]trainers.Part{
		"eval-time": trainers.Evaluating, "Evaluate": trainers.Evaluating, "testing": trainers.Evaluating, "pre_validation": trainers.Evaluating,
		"timing/test.all": trainers.Evaluating, "full eval": trainers.Evaluating,
		"retrieval": trainers.Computing, "tool_retrieval_time": trainers.Computing, "fastest_rank": trainers.Computing, "latest": trainers.Computing,
		"invalid_filter": trainers.Computing,
	} {
		assert.Equal(t, want, trainers.PartOf(name), name)
	}
}

// Collectives in any spelling are communication, and data parallelism loads no data.
func TestCommunicating(t *testing.T) {
	for name, want := range map[string]trainers.Part{
		"all-reduce": trainers.Communicating, "grads_all_reduce": trainers.Communicating, "allreduce_time": trainers.Communicating,
		"data_parallel_allgather": trainers.Communicating, "reduce_scatter": trainers.Communicating, "forward-recv": trainers.Communicating,
		"data_parallel_step": trainers.Computing, "data_time": trainers.LoadingData, "dataloader": trainers.LoadingData,
	} {
		assert.Equal(t, want, trainers.PartOf(name), name)
	}
}

// TestOf holds the function to the table in docs/reference/trainers.md.
func TestOf(t *testing.T) {
	const in, between, unknown = trainers.Within, trainers.Between, trainers.Unknown
	for _, c := range []struct {
		source, kind string
		want         trainers.Loop
	}{
		{"megatron", spans.DurationStep, trainers.Loop{Checkpoint: between, Evaluation: between, Data: in}},
		{"megatron", "", trainers.Loop{Checkpoint: between, Evaluation: between, Data: in}},
		{"nanochat", spans.DurationStep, trainers.Loop{Checkpoint: between, Evaluation: between, Data: in}},
		{"nanogpt", spans.DurationStep, trainers.Loop{Checkpoint: in, Evaluation: in, Data: in}},
		{"hf", spans.DurationMean, trainers.Loop{Checkpoint: in, Evaluation: in, Data: in}},
		{"hf", spans.DurationInterval, trainers.Loop{Checkpoint: between, Evaluation: between, Data: in}},
		{"torchtitan", spans.DurationInterval, trainers.Loop{Checkpoint: between, Evaluation: between, Data: in}},
		{"nemo", spans.DurationStep, trainers.Loop{Checkpoint: between, Evaluation: between, Data: in}},
		{"nemo", spans.DurationMean, trainers.Loop{Checkpoint: in, Evaluation: in, Data: in}},
		{"openrlhf", spans.DurationStep, trainers.Loop{Checkpoint: between, Evaluation: between, Data: in}},
		{"openrlhf", spans.DurationMean, trainers.Loop{Checkpoint: in, Evaluation: in, Data: in}},
		{"slime", spans.DurationStep, trainers.Loop{Checkpoint: in, Evaluation: in, Data: in}},
		{"deepspeed", spans.DurationMean, trainers.Loop{Checkpoint: between, Evaluation: between, Data: in}},
		{"litgpt", spans.DurationStep, trainers.Loop{Checkpoint: between, Evaluation: between, Data: unknown}},
		{"verl", spans.DurationStep, trainers.Loop{Checkpoint: unknown, Evaluation: unknown, Data: between}},
		{"composer", spans.DurationMean, trainers.Loop{Checkpoint: in, Evaluation: unknown, Data: in}},
		{"perf_monitor", spans.DurationMedian, trainers.Loop{}},
		{"jsonl", spans.DurationStep, trainers.Loop{}},
	} {
		assert.Equal(t, c.want, trainers.Of(c.source, c.kind), "%s %s", c.source, c.kind)
	}
}

func TestTogether(t *testing.T) {
	for name, want := range map[string]bool{
		"all-grads-sync": true, "params-all-gather": true, "allreduce_s": true, "backward-send-forward-recv": false, "forward-compute": false, "data_time": false,
	} {
		assert.Equal(t, want, trainers.Together(name), name)
	}
}

func TestForward(t *testing.T) {
	for name, want := range map[string]bool{
		"forward_time": true, "fwd_s": true, "forward-compute": true, "t_fwd": true,
		"forward-backward": false, "fwd_bwd_s": false, "forward-recv": false, "bwd_s": false, "compute_time": false,
	} {
		assert.Equal(t, want, trainers.Forward(name), name)
	}
}
