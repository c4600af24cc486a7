// Package recordtest shows records as text, for the tables of tests.
package recordtest

import (
	"fmt"
	"strings"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

var names = [record.NumFields]string{
	record.Iteration: "iteration", record.Iterations: "iterations", record.Epoch: "epoch", record.Duration: "duration", record.WorldSize: "world",
	record.LocalRank: "local_rank",
	record.Loss:      "loss", record.LearningRate: "lr", record.GradientNorm: "grad_norm", record.GradientZeros: "grad_zeros", record.ParamsNorm: "params_norm",
	record.LossScale:      "loss_scale",
	record.ValidationLoss: "val_loss", record.Perplexity: "ppl", record.BatchSize: "batch", record.ConsumedSamples: "consumed_samples",
	record.ConsumedTokens: "consumed_tokens", record.Tokens: "tokens",
	record.SkippedIterations: "skipped", record.NaNIterations: "nan_iterations", record.SampleThroughput: "samples/s", record.TokenThroughput: "tokens/s",
	record.DeviceTokenThroughput: "device_tokens/s",
	record.FlopThroughput:        "flop/s", record.DeviceFlopThroughput: "device_flop/s", record.MFU: "mfu", record.FlopCount: "flop",
	record.FlopForward: "flop_forward", record.FlopBackward: "flop_backward",
	record.FlopOptimizer: "flop_optimizer", record.MemoryUsage: "mem", record.MemoryPeak: "mem_peak", record.MemoryReserved: "mem_reserved",
	record.MemoryReservedPeak: "mem_reserved_peak",
	record.MemoryUtilization:  "mem_utilization", record.DeviceEnergy: "energy", record.DevicePower: "power",
}

// Show writes the content of a record, in the order of the fields and with 13 digits, without absent fields: `step mean iteration=5 loss=2.5 stage:gen=1.5
// extra:mom="[0.9]"`. Source, times other than the stamp, keys, ids and what is said about steps (Covers, Several, …) are left out.
func Show(r *record.Record) string {
	var s strings.Builder
	s.WriteString([...]string{
		record.Step: "step", record.Evaluation: "evaluation", record.Summary: "summary", record.Side: "side", record.Ranks: "ranks", record.Sample: "sample",
	}[r.Kind])
	s.WriteString([...]string{record.OneStep: "", record.Mean: " mean", record.Median: " median"}[r.Of])
	for _, flag := range [...]struct {
		set  bool
		name string
	}{{r.Open, "open"}, {r.Join, "join"}, {r.Dedup, "dedup"}} {
		if flag.set {
			s.WriteString(" " + flag.name)
		}
	}
	if r.HasRank {
		fmt.Fprintf(&s, " rank=%d", r.Rank)
	}
	if r.Host != nil {
		fmt.Fprintf(&s, " host=%s", r.Host)
	}
	if r.Stamp != nil {
		fmt.Fprintf(&s, " stamp=%q", r.Stamp)
	}
	for f := range record.NumFields {
		if r.Has(f) {
			fmt.Fprintf(&s, " %s=%.13g", names[f], r.Get(f))
			if u := r.UnitOf(f); u != record.Base {
				fmt.Fprintf(&s, "(%s)", u)
			}
		}
	}
	for _, g := range r.GPUs {
		fmt.Fprintf(&s, " gpu=%.13g", g)
	}
	for _, x := range r.Samples {
		fmt.Fprintf(&s, " sample:%d[%d]=%.13g", x.Metric, int16(x.Device), x.Value)
	}
	for _, st := range r.Stages {
		fmt.Fprintf(&s, " stage:%s", st.Name)
		if st.HasRank {
			fmt.Fprintf(&s, "[%d]", st.Rank)
		}
		fmt.Fprintf(&s, "=%.13g", st.Seconds)
		if st.HasMin {
			fmt.Fprintf(&s, "(min %.13g)", st.Min)
		}
	}
	for _, e := range r.Extra {
		if e.Text != nil {
			fmt.Fprintf(&s, " extra:%s=%q", e.Name, e.Text)
		} else {
			fmt.Fprintf(&s, " extra:%s=%.13g", e.Name, e.Value)
		}
	}
	return s.String()
}
