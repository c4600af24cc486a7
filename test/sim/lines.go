package sim

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// silent is a trainer that logs nothing but its steps.
type silent struct{}

func (silent) save(*job, float64, float64, int64)     {}
func (silent) evaluate(*job, float64, float64, int64) {}
func (silent) die(*job, float64)                      {}
func (silent) end(*job, float64)                      {}

// lines is a trainer whose log is a line per step.
type lines struct {
	silent
	w    io.Writer
	has  traits
	name string
	head func(j *job, at float64) string // nil: none
	open bool                            // the text behind a step's is on the same line
	line func(j *job, s *step) string
}

func (l *lines) traits() traits { return l.has }

func (l *lines) begin(j *job, at float64, _ int64) {
	if l.w == nil {
		l.w = j.create(l.name)
	}
	if l.head != nil {
		fmt.Fprint(l.w, l.head(j, at))
	}
}

func (l *lines) step(j *job, s *step) {
	text := l.line(j, s)
	if text != "" && !l.open {
		text += "\n"
	}
	fmt.Fprint(l.w, text)
}

// loss of a step.
func loss(j *job, n int64) float64 { return 2 + 8/math.Sqrt(float64(n+9)) + 0.02*j.rng.NormFloat64() }

// jsonl is a loop that writes a JSON object per step, with a clock and its parts.
func jsonl() *lines {
	return &lines{name: "metrics.jsonl", has: traits{clock: true, parts: true}, line: func(j *job, s *step) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"timestamp": "%s", "step": %d, "loss": %.4f, "lr": 0.0003, "throughput": %.2f, "step_time": %.6f`,
			j.when(s.start+s.took).UTC().Format("2006-01-02T15:04:05.000000Z"), s.n, loss(j, s.n), float64(s.batch)/s.took, s.took)
		for _, p := range s.parts {
			fmt.Fprintf(&b, `, "%s": %.6f`, p.name, p.took)
		}
		return b.String() + "}"
	}}
}

// buildNanoGPT is the row of build-nanogpt's train_gpt2.py. Its dt begins before the evaluation.
func buildNanoGPT() *lines {
	return &lines{name: "log.txt", line: func(j *job, s *step) string {
		return fmt.Sprintf("step %5d | loss: %.6f | lr %.4e | norm: %.4f | dt: %.2fms | tok/sec: %.2f", s.n, loss(j, s.n), 6e-4,
			0.3+0.01*j.rng.NormFloat64(), 1e3*s.took, 524288/s.took)
	}}
}

// nanoGPT is the row of nanoGPT's train.py.
func nanoGPT() *lines {
	return &lines{name: "nanogpt.log", line: func(j *job, s *step) string {
		return fmt.Sprintf("iter %d: loss %.4f, time %.2fms, mfu %.2f%%", s.n, loss(j, s.n), 1e3*s.took, 38*s.usual/s.took)
	}}
}

// nemo is the row of NeMo 2's progress printer, whose iterations begin at 0.
func nemo() *lines {
	return &lines{name: "nemo.log", line: func(j *job, s *step) string {
		return fmt.Sprintf("Training epoch 0, iteration %d/9999 | lr: 6.897e-06 | global_batch_size: %d | global_step: %d | reduced_train_loss: %.4g | train_step_timing in s: %.4g | consumed_samples: %d",
			s.n, s.batch, s.n, loss(j, s.n), s.took, s.n*int64(s.batch))
	}}
}

// verl is the console of verl, and with both also its FileLogger. Parts lie within timing_s/step, checkpoints and evaluations too (until 0.5); no part is the
// loading of data.
func verl(both bool) *lines {
	var file io.Writer
	return &lines{name: "verl.log", line: func(j *job, s *step) string {
		tokens := 150000 * s.usual / j.level(1)
		pairs := [][2]string{
			{"global_seqlen/mean", fmt.Sprintf("%.1f", tokens)},
			{"actor/entropy", fmt.Sprintf("%.6f", 0.3+0.1*j.rng.Float64())},
			{"actor/pg_loss", fmt.Sprintf("%.6f", 0.01*j.rng.NormFloat64())},
			{"critic/rewards/mean", fmt.Sprintf("%.4f", j.rng.Float64())},
			{"training/global_step", strconv.FormatInt(s.n, 10)},
		}
		for _, p := range s.parts {
			pairs = append(pairs, [2]string{"timing_s/" + p.name, fmt.Sprintf("%.6f", p.took)})
		}
		pairs = append(pairs, [2]string{"timing_s/step", fmt.Sprintf("%.6f", s.took)}, [2]string{"perf/time_per_step", fmt.Sprintf("%.6f", s.took)},
			[2]string{"perf/throughput", fmt.Sprintf("%.3f", tokens/s.took)})
		var console, data []string
		for _, p := range pairs {
			console, data = append(console, p[0]+":"+p[1]), append(data, fmt.Sprintf("%q:%s", p[0], p[1]))
		}
		if both {
			if file == nil {
				file = j.create("verl.jsonl")
			}
			fmt.Fprintf(file, "{\"step\":%d,\"data\":{%s}}\n", s.n, strings.Join(data, ","))
		}
		return fmt.Sprintf("\x1b[36m(TaskRunner pid=1042)\x1b[0m step:%d - %s", s.n, strings.Join(console, " - "))
	}}
}

// verlParts are stages of a GRPO step.
func verlParts() []share {
	return []share{{"gen", 0.52}, {"reward", 0.04}, {"old_log_prob", 0.09}, {"ref", 0.08}, {"adv", 0.002}, {"update_actor", 0.25}}
}

// deepspeed is the standard output of DeepSpeed. The end of a step has a stamp, and its samples per second are the only time in the log.
func deepspeed() *lines {
	line := func(j *job, at float64, by, format string, args ...any) string {
		return fmt.Sprintf("[%s] [INFO] [%s] ", strings.Replace(j.stamp(at, "2006-01-02 15:04:05.000"), ".", ",", 1), by) + fmt.Sprintf(format, args...)
	}
	return &lines{name: "deepspeed.log", has: traits{clock: true, started: true}, head: func(j *job, at float64) string {
		return line(j, at, "logging.py:107:log_dist", "[Rank 0] DeepSpeed info: version=0.15.4, git-hash=unknown, git-branch=unknown\n") +
			line(j, at+0.001, "config.py:1003:print", "  train_batch_size ............. 256\n")
	}, line: func(j *job, s *step) string {
		at := s.start + s.took
		return line(j, at, "logging.py:96:log_dist", "[Rank 0] step=%d, skipped=0, lr=[4.99e-05, 4.99e-05], mom=[(0.9, 0.95), (0.9, 0.95)]\n", s.n) +
			line(j, at, "timer.py:260:stop", "epoch=0/micro_step=%d/global_step=%d, RunningAvgSamplesPerSec=%.6f, CurrSamplesPerSec=%.6f, MemAllocated=4.32GB, MaxMemAllocated=38.49GB",
				s.n, s.n, 256/s.usual, 256/s.took)
	}}
}

// torchtitan is the console of torchtitan. Checkpoints are saved between steps and logged; a step's stamp is the time of logging its metrics.
type torchtitan struct {
	silent
	w io.Writer
}

func (t *torchtitan) traits() traits { return traits{clock: true, started: true, lines: true} }

func (t *torchtitan) say(j *job, at float64, format string, args ...any) {
	fmt.Fprintf(t.w, "[rank0]:[titan] %s - root - INFO - %s\n", strings.Replace(j.stamp(at, "2006-01-02 15:04:05.000"), ".", ",", 1), fmt.Sprintf(format, args...))
}

func (t *torchtitan) begin(j *job, at float64, _ int64) {
	t.w = j.create("titan.log")
	t.say(j, at, "Starting job: Llama 3 8B training")
}

func (t *torchtitan) step(j *job, s *step) {
	if len(j.done) == 0 {
		t.say(j, s.start, "Training starts at step 1")
	}
	t.say(j, s.start+s.took, "step: %2d  loss: %8.5f  grad_norm: %7.4f  memory: 19.45GiB(30.39%%)  tps: %d  tflops: %.2f  mfu: N/A",
		s.n, loss(j, s.n), 1+0.1*j.rng.Float64(), int(65536/s.took), 380*s.usual/s.took)
}

func (t *torchtitan) save(j *job, at, took float64, _ int64) {
	t.say(j, at, "Saving the checkpoint (or staging if async is enabled).")
	t.say(j, at+took, "Finished saving the checkpoint in %.2f seconds.", took)
}

func (t *torchtitan) end(j *job, at float64) { t.say(j, at, "Training completed") }

// bar is Transformers' Trainer with its progress bar: a bar per step, with a dict above. Times are whole seconds. Releases of 2023 round the epoch to two
// digits, later ones do not.
func bar(total int64, rounded bool) *lines {
	since, moved, weight := 0.0, 0.0, 1.0 // tqdm smooths its speed
	cells := []rune(" ▏▎▍▌▋▊▉")
	head := func(*job, float64) string {
		return fmt.Sprintf("\r  0%%|%s| 0/%d [00:00<?, ?it/s]", strings.Repeat(" ", 10), total)
	}
	return &lines{name: "train.log", head: head, open: true, line: func(j *job, s *step) string {
		since += s.took
		moved, weight = 0.3*s.took+0.7*moved, 0.7*weight
		speed := moved / (1 - weight)
		filled := int(80 * s.n / total)
		cell := string(cells[filled%8])
		if filled == 80 {
			cell = ""
		}
		drawn := fmt.Sprintf("%3.0f%%|%s| %d/%d [%s<%s, %5.2fs/it]", 100*float64(s.n)/float64(total),
			strings.Repeat("█", filled/8)+cell+strings.Repeat(" ", max(0, 9-filled/8)), s.n, total, minutes(since), minutes(speed*float64(total-s.n)), speed)
		epoch := strconv.FormatFloat(float64(s.n)/float64(total), 'f', -1, 64)
		if rounded {
			epoch = strconv.FormatFloat(math.Round(100*float64(s.n)/float64(total))/100, 'f', -1, 64)
		}
		return fmt.Sprintf("\r%s\r%s\r{'loss': %.4f, 'grad_norm': %.4f, 'learning_rate': 4e-05, 'epoch': %s}\n\r%s", drawn, strings.Repeat(" ", 80), loss(j, s.n),
			1+j.rng.Float64(), epoch, drawn)
	}}
}

func minutes(s float64) string {
	n := int(s)
	if n >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", n/3600, n/60%60, n%60)
	}
	return fmt.Sprintf("%02d:%02d", n/60, n%60)
}

// perfMonitor is a file of FlagScale's perf_monitor: a row for the first step and each tenth, with the median of the newer half of all steps.
func perfMonitor() *lines {
	var all []float64
	rule := strings.Repeat("=", 96)
	return &lines{name: "perf_metrics_20260202_060000.log", has: traits{clock: true}, head: func(j *job, at float64) string {
		return rule + "\nPerformance Monitor Session Started: " + j.stamp(at, time.DateTime) + "\n" + rule +
			"\nTimestamp            Step     TFLOPS/GPU   TFLOPS     Samples/s    Tokens/s     Time(ms)   Memory(GB)\n" + strings.Repeat("-", 96) + "\n"
	}, line: func(j *job, s *step) string {
		all = append(all, s.took)
		if s.n != 1 && s.n%10 != 0 {
			return ""
		}
		took := median(all[len(all)/2:])
		return fmt.Sprintf("%-20s %-8d %-12.2f %-10.2f %-12.1f %-12.0f %-10.1f %-10.2f", j.stamp(s.start+s.took, time.DateTime), s.n,
			300/took, 2400/took, 32/took, 65536/took, 1e3*took, 52.31)
	}}
}

// pair is a trainer whose steps are logged twice, the second time by a callback with the parts.
type pair struct {
	trainer
	second *lines
	one    bool // into a single file
}

func (p *pair) traits() traits {
	t := p.trainer.traits()
	t.parts = true
	return t
}

func (p *pair) begin(j *job, at float64, loaded int64) {
	p.trainer.begin(j, at, loaded)
	if m, ok := p.trainer.(*megatron); ok && p.one {
		p.second.w = m.w
	}
	p.second.begin(j, at, loaded)
}

func (p *pair) step(j *job, s *step) {
	alone := *s
	alone.parts = nil
	p.trainer.step(j, &alone)
	p.second.step(j, s)
}
