// Package sim simulates training jobs: the logs of a job, as its trainer and libraries write them, and the truth of the same job. Readers of logs are held
// against that truth. The package shares nothing with test/gen, and has its own idea of a job, of noise and of the forms of logs.
//
// Forms are those of the sources: Megatron-LM's megatron/training/training.py (training_log, save_checkpoint_and_time, evaluate_and_print_results),
// build-nanogpt's train_gpt2.py, verl's verl/utils/tracking.py, Transformers' trainer_callback.py, torchtitan's components/metrics.py, DeepSpeed's
// utils/timer.py, NeMo's progress printer, FlagScale's perf_monitor, and the inspector of NCCL's plugins/profiler.
package sim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Scenario is a kind of job.
type Scenario struct {
	Name string
	// Kind groups scenarios by what must not be said of them: a job without a slow step is homogeneous, shrinking, mixed or drifting.
	Kind Kind
	play func(*job)
}

// Kind of a scenario.
type Kind string

// Kinds of scenarios.
const (
	Faulty      Kind = "faulty"
	Homogeneous Kind = "homogeneous"
	Shrinking   Kind = "shrinking"
	Mixed       Kind = "mixed lengths"
	Drifting    Kind = "drifting"
)

// The states of a run's time.
const (
	StartUp     = "start_up"
	Step        = "step"
	Checkpoint  = "checkpoint"
	Evaluation  = "evaluation"
	Redone      = "redone"
	Down        = "down"
	Stalled     = "stalled"
	Unexplained = "unexplained"
	AfterEnd    = "after_end"
)

// Truth is what happened in a job, as far as its logs can tell.
type Truth struct {
	// Steps is how many steps counted.
	Steps int
	// Slow are the slow steps.
	Slow []Slow
	// Open are steps of which no score is made: the first of an attempt, those of a period, those done twice.
	Open map[int64]bool
	// Parts says whether the logs tell what steps consist of, data loading among that.
	Parts bool
	// Wall is the time from the first line to the last, s; the sum of the steps' times where no log has a clock; 0 where clocks do not agree.
	Wall float64
	// States is the time in each state, s. Several states joined by + have that time together.
	States map[string]float64
	// Devices are the same times the ranks that the job had then, s; empty where no log tells how many.
	Devices map[string]float64
	// Goodput is the time of the steps that counted at their usual speed, without faults and noise, by Wall; 0 where nobody can say what is usual.
	Goodput float64
	// Attempts are the launches of the job.
	Attempts []Attempt
	// Lost has the losses that a sentence may name, s: all that was lost, or the largest reason. Empty: nothing worth a word.
	Lost []float64
	// Share is what was lost of Wall, 0..1.
	Share float64
	// Must are patterns, each of which the conclusion has; Never are those that it has not.
	Must, Never []string
	// Somewhere are patterns, each of which the conclusion has, a claim, or what no log can tell.
	Somewhere []string
	// Flags are what a reader is told beside the logs.
	Flags []string
	// Rank is the rank that a claim names, -1 for none; Host is its host, "" for none.
	Rank int
	Host string

	untold bool // clocks do not agree, so nobody can say how long it took
}

// Slow is a slow step.
type Slow struct {
	Iteration int64
	// Extra is what the fault added, s.
	Extra float64
	// Devices is that times the ranks that the job had then, s; 0 where no log tells how many.
	Devices float64
	// Part is the name of what took longer, "" where no log can tell.
	Part string
	// Untold says that a reader may leave the cause open.
	Untold bool
	// Rank is the rank that the others waited for, -1 for none.
	Rank int
	Host string
}

// Attempt is a launch of the job: its first and last iteration, how many steps it trained, and how many of them had been trained before.
type Attempt struct {
	First, Last   int64
	Steps, Redone int
}

// Write writes the logs of a job into dir. Equal seeds make equal logs. Stamps without a zone are those of zone.
func (s Scenario) Write(dir string, seed uint64, zone *time.Location) (truth *Truth, err error) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.Name))
	j := &job{
		rng: rand.New(rand.NewPCG(seed, h.Sum64())), dir: dir, zone: zone,
		epoch:  time.Date(2026, 2, 2, 6, 0, 0, 0, zone).Add(time.Duration(seed%97)*time.Hour + 137*time.Millisecond),
		truth:  Truth{Open: map[int64]bool{}, States: map[string]float64{}, Devices: map[string]float64{}, Rank: -1},
		faults: map[int64]fault{}, done: map[int64]bool{}, over: map[string]float64{}, ranks: 1,
	}
	defer func() {
		j.close()
		if r := recover(); r != nil {
			failed, ok := r.(failure)
			if !ok {
				panic(r)
			}
			truth, err = nil, failed.error
		}
	}()
	s.play(j)
	j.settle()
	return &j.truth, errors.Join(j.errs...)
}

// failure is an error that ends a scenario.
type failure struct{ error }

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }
