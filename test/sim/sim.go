// Package sim simulates training jobs: the logs of a job, in the formats of its trainer and libraries, and the truth about the job, a reference for readers of
// logs. The package shares nothing with test/gen, and has its own model of a job, of noise and of the forms of logs.
//
// Forms are from the sources: Megatron-LM's megatron/training/training.py (training_log, save_checkpoint_and_time, evaluate_and_print_results), build-nanogpt's
// train_gpt2.py, verl's verl/utils/tracking.py, Transformers' trainer_callback.py, torchtitan's components/metrics.py, DeepSpeed's utils/timer.py, NeMo's
// progress printer, FlagScale's perf_monitor, and the inspector of NCCL's plugins/profiler.
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
	// Kind groups scenarios by conclusions that would be wrong: a job without a slow step is homogeneous, shrinking, mixed or drifting.
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

// Truth is the truth about a job, as far as its logs have evidence.
type Truth struct {
	// Steps is how many steps counted.
	Steps int
	// Slow are the slow steps.
	Slow []Slow
	// Open are steps without a score: the first of an attempt, the steps of a period, repeated steps.
	Open map[int64]bool
	// Parts: the logs have the parts of steps, data loading among them.
	Parts bool
	// Wall is the time from the first line to the last, s; the sum of the steps' times where no log has a clock; 0 where clocks do not agree.
	Wall float64
	// States is the time in each state, s. Several states joined by + have their sum.
	States map[string]float64
	// Devices are the same times multiplied by the current ranks of the job, s; empty if no log has the number.
	Devices map[string]float64
	// Goodput is the time of the steps that counted at their usual speed, without faults and noise, by Wall; 0 if the usual speed is undefined.
	Goodput float64
	// Attempts are the launches of the job.
	Attempts []Attempt
	// Lost has the losses that a sentence may name, s: the whole loss, or the largest reason. Empty: no loss worth a sentence.
	Lost []float64
	// Share is the lost part of Wall, 0..1.
	Share float64
	// Must are patterns required in the conclusion; Never are forbidden patterns.
	Must, Never []string
	// Somewhere are patterns required in the conclusion, a claim, or the list of unknowns.
	Somewhere []string
	// Flags are given to a reader beside the logs.
	Flags []string
	// Rank is the rank that a claim names, -1 for none; Host is its host, "" for none.
	Rank int
	Host string

	noClock bool // clocks do not agree: the duration is unknown
}

// Slow is a slow step.
type Slow struct {
	Iteration int64
	// Extra is the time of the fault, s.
	Extra float64
	// Devices is Extra multiplied by the current ranks of the job, s; 0 if no log has the number.
	Devices float64
	// Part is the name of the longer part, "" if in no log.
	Part string
	// Untold: a reader may leave the cause open.
	Untold bool
	// Rank is the rank that others waited for, -1 for none.
	Rank int
	Host string
}

// Attempt is a launch of the job: its first and last iteration, and its number of steps, of which Redone had been trained before.
type Attempt struct {
	First, Last   int64
	Steps, Redone int
}

// Write writes the logs of a job into dir. Equal seeds make equal logs. Stamps without a zone are in zone.
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
