// Package verl reads the metrics that verl logs per step, in the console form of verl 1dda039b (2026-08-22)
// verl/utils/logger (concat_dict_to_str), and maps their names for the JSONL form (verl/utils/tracking.py FileLogger) too:
//
//	step:1 - global_seqlen/min:159906 - actor/pg_loss:-0.0036 - timing_s/gen:16.227 - perf/throughput:3283.32
//
// The names and units come from verl/trainer/ppo/metric_utils.py and from the workers: seconds in timing_s/* (before 2025
// timing/*), GiB in *_gb, tokens per second and GPU in perf/throughput. The lines have no time. A step's time is timing_s/step,
// which leaves out validation and checkpoints, so the stages testing and save_checkpoint may be longer than the step.
package verl

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Source is the record's Source.
const Source = "verl"

var (
	stepMark  = []byte("step:")
	fieldMark = []byte(" - ")
	textName  = []byte("text")
)

// Parse fills rec with the record in b; rec must be empty. found false and no reason: b is a line of another format. A reason: the line is malformed. The
// values in rec point into b; without a record, rec stays empty.
func Parse(b []byte, rec *record.Record) (found bool, reason string) {
	start, step, fields := find(b)
	if step == nil {
		return false, ""
	}
	rec.Source, rec.Kind = Source, record.Step
	v, _ := decimal.Float(step)
	rec.Set(record.Iteration, v)
	numbers := 0
	for rest := fields; len(rest) > 0; {
		var field []byte
		field, rest, _ = bytes.Cut(rest, fieldMark)
		// Names hold colons, values do not.
		i := bytes.LastIndexByte(field, ':')
		if i < 0 {
			rec.AddExtra(record.Extra{Name: textName, Text: field}) // the line was cut short
			continue
		}
		key, value := field[:i], bytes.TrimSpace(field[i+1:])
		if v, ok := decimal.ReprFloat(value); ok {
			Key(key, v, rec)
			numbers++
		} else {
			rec.AddExtra(record.Extra{Name: key, Text: value})
		}
	}
	if numbers == 0 {
		rec.Reset()
		if field, _, _ := bytes.Cut(fields, fieldMark); bytes.IndexByte(field, ' ') >= 0 {
			return false, "" // a sentence
		}
		return false, "no_metrics"
	}
	rec.Stamp = record.LastStamp(b[:start])
	return true, ""
}

// find looks for "step:12 - ", possibly after a progress bar: start is where "step:" stands, step is "12", and fields is the text after. step is nil without
// a match.
func find(b []byte) (start int, step, fields []byte) {
	for from := 0; ; {
		i := bytes.Index(b[from:], stepMark)
		if i < 0 {
			return 0, nil, nil
		}
		i += from
		from = i + len(stepMark)
		if i > 0 && isWord(b[i-1]) { // "global_step:"
			continue
		}
		n := from
		for n < len(b) && ascii.IsDigit(b[n]) {
			n++
		}
		if n > from && n-from <= 15 && bytes.HasPrefix(b[n:], fieldMark) {
			return i, b[from:n], b[n+len(fieldMark):]
		}
	}
}

// Key sets the field of rec for a name of verl ("perf/throughput"), adds a part of the step ("timing_s/gen"), or keeps the value under its name. rec keeps key.
func Key(key []byte, v float64, rec *record.Record) {
	if name, ok := stage(key); ok {
		switch {
		case bytes.IndexByte(name, '/') >= 0:
			// Statistics over workers or requests, some of them no durations at all: agent_loop/slowest/prompt_length.
		case string(name) == "step":
			rec.Set(record.Duration, v)
			return
		default:
			rec.Stages = append(rec.Stages, record.Stage{Name: name, Seconds: v, Place: places[string(name)]})
			return
		}
	}
	switch string(key) {
	case "perf/total_num_tokens", "train/global_tokens":
		rec.Set(record.Tokens, v)
		return
	case "perf/time_per_step", "train/time(s)":
		if !rec.Has(record.Duration) {
			rec.Set(record.Duration, v)
			return
		}
	case "training/global_step":
		if !rec.Has(record.Iteration) || rec.Get(record.Iteration) == v {
			rec.Set(record.Iteration, v)
			return
		}
	case "training/epoch":
		rec.Set(record.Epoch, v)
		return
	case "perf/throughput":
		rec.Set(record.DeviceTokenThroughput, v)
		return
	case "perf/max_memory_allocated_gb", "actor/perf/max_memory_allocated_gb":
		rec.SetIn(record.MemoryPeak, v, record.Gibibytes)
		return
	case "perf/max_memory_reserved_gb", "actor/perf/max_memory_reserved_gb":
		rec.SetIn(record.MemoryReservedPeak, v, record.Gibibytes)
		return
	case "actor/lr", "train/lr":
		rec.Set(record.LearningRate, v)
		return
	case "actor/lr(1e-4)": // before 2025
		rec.Set(record.LearningRate, v*1e-4)
		return
	case "train/lr(1e-3)":
		rec.Set(record.LearningRate, v*1e-3)
		return
	case "actor/grad_norm", "train/grad_norm":
		rec.Set(record.GradientNorm, v)
		return
	case "train/loss": // of the SFT trainer, as all of train/ and val/loss; the losses of RL are no loss to compare with others
		rec.Set(record.Loss, v)
		return
	case "train/mfu":
		rec.Set(record.MFU, v)
		return
	case "val/loss":
		rec.Set(record.ValidationLoss, v)
		return
	}
	rec.AddExtra(record.Extra{Name: key, Value: v})
}

// places are the places in the step of the timers in fit() of verl/trainer/ppo/ray_trainer.py, and of generate_sequences in the workers. testing
// and save_checkpoint changed places over the years.
var places = record.Outline(`
start_profile
wait_prev_gen
gen
  generate_sequences
  reshard
gen_max
reward
old_log_prob
ref
values
adv
update_critic
update_actor
dump_rollout_generations
save_checkpoint
update_weights
testing
stop_profile
`)

// stage returns the name of a timer: "gen" of "timing_s/gen" or "timing/gen". It returns false for another name.
func stage(key []byte) ([]byte, bool) {
	if name, ok := bytes.CutPrefix(key, []byte("timing_s/")); ok {
		return name, true
	}
	return bytes.CutPrefix(key, []byte("timing/"))
}

// isWord reports whether a byte may be part of a name.
func isWord(c byte) bool {
	return c == '_' || c == '/' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
