package sim

import (
	"fmt"
	"io"
	"strings"
)

const megatronTime = "2006-01-02 15:04:05.000000"

// megatron is the standard output of Megatron-LM. Its interval-time runs from line to line, and stands still during checkpoints and evaluations: their timers
// come after the line of the iteration.
type megatron struct {
	w     io.Writer
	name  string
	level int     // --timing-log-level
	all   bool    // --timing-log-option all
	total int64   // --train-iters
	shift float64 // s, of its clock
	fresh bool    // each attempt has a file of its own
	tries int
}

func (m *megatron) traits() traits { return traits{clock: true, parts: m.level == 2, started: true} }

func (m *megatron) printf(format string, args ...any) { fmt.Fprintf(m.w, format+"\n", args...) }

func (m *megatron) begin(j *job, at float64, loaded int64) {
	if m.w == nil || m.fresh {
		name := m.name
		if name == "" {
			name = "megatron.log"
		}
		if m.tries > 0 {
			name = strings.Replace(name, ".log", fmt.Sprintf("-%d.log", m.tries+1), 1)
		}
		m.w = j.create(name)
	}
	m.tries++
	m.printf("using world size: %d, data-parallel size: %d, context-parallel size: 1, hierarchical context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1", j.ranks, j.ranks)
	m.printf("------------------------ arguments ------------------------")
	for _, arg := range []struct {
		name  string
		value any
	}{{"global_batch_size", 256}, {"log_interval", 1}, {"timing_log_level", m.level}, {"train_iters", m.total}, {"world_size", j.ranks}} {
		m.printf("  %s %s %v", arg.name, strings.Repeat(".", 48-len(arg.name)), arg.value)
	}
	m.printf("-------------------- end of arguments ---------------------")
	m.printf("[after megatron is initialized] datetime: %s ", j.stamp(at+m.shift, megatronTime))
	if loaded > 0 {
		m.printf(" loading distributed checkpoint from /ckpt at iteration %d", loaded)
		m.printf("  successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration %d", loaded)
	}
	m.printf("training ...")
}

func (m *megatron) step(j *job, s *step) {
	m.printf(" [%s] iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms): %.1f | learning rate: %.6E | global batch size: %5d | lm loss: %.6E | loss scale: 1.0 | grad norm: %.3f | number of skipped iterations: %3d | number of nan iterations: %3d |",
		j.stamp(s.start+s.took+m.shift, megatronTime), s.n, m.total, s.n*256, 1e3*s.took, 1e-4, s.batch, 2+8/float64(s.n+10), 0.9+0.2*j.rng.Float64(), 0, 0)
	switch {
	case m.all:
		m.each(j, s)
	case len(s.parts) > 0:
		m.printf("(min, max) time across ranks (ms):")
		for _, p := range s.parts {
			m.timer(j, p.name, p.took)
		}
	}
}

// each has the timers of each rank. A rank that computes longer has one longer timer, and so has the timer around; all other ranks wait for the gradients.
func (m *megatron) each(j *job, s *step) {
	m.printf("times across ranks (ms):")
	f := j.faults[s.n]
	for _, p := range s.parts {
		m.printf("  %s:", p.name)
		for r := range j.ranks {
			took := p.took
			late := f.extra > 0 && r == f.rank
			switch {
			case p.name == f.part && !late:
				took -= f.extra
			case p.name == "forward-backward", p.name == "all-grads-sync" && f.extra > 0 && !late:
				took += f.extra
			}
			m.printf("     rank %2d: %.2f", r, 1e3*took*(1-0.004*j.rng.Float64()))
		}
	}
}

// timer is a line of a timer: the least and the most of all ranks.
func (m *megatron) timer(j *job, name string, took float64) {
	m.printf("    %s: (%.2f, %.2f)", name+" "+strings.Repeat(".", max(0, 47-len(name))), 1e3*took*(1-0.002*j.rng.Float64()), 1e3*took)
}

func (m *megatron) save(j *job, _, took float64, n int64) {
	m.printf("saving checkpoint at iteration %7d to /ckpt in torch_dist format", n)
	m.printf("  successfully saved checkpoint from iteration %7d to /ckpt [ t 1/1, p 1/1 ]", n)
	m.printf("(min, max) time across ranks (ms):")
	m.timer(j, "save-checkpoint", took)
}

func (m *megatron) evaluate(j *job, _, took float64, n int64) {
	m.printf("(min, max) time across ranks (ms):")
	m.timer(j, "evaluate", took)
	text := fmt.Sprintf(" validation loss at iteration %d | lm loss value: %.6E | lm loss PPL: %.6E | ", n, 2.5, 12.18)
	rule := strings.Repeat("-", len(text)+1)
	m.printf("%s\n%s\n%s", rule, text, rule)
}

func (m *megatron) die(j *job, at float64) {
	m.printf("[rank3]: Traceback (most recent call last):")
	m.printf("[rank3]: torch.AcceleratorError: CUDA error: an illegal memory access was encountered")
	m.printf("E%s 4242 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 3 (pid: 4250) of binary: /usr/bin/python3",
		j.stamp(at+m.shift, "0102 15:04:05.000000"))
}

func (m *megatron) end(j *job, at float64) {
	m.printf("[after training is done] datetime: %s ", j.stamp(at+m.shift, megatronTime))
}

// within are the timers around a timer, which include its time.
var within = map[string][]string{"batch-generator": {"forward-compute", "forward-backward"}}

// megatronParts are the timers of --timing-log-level 2: batch-generator is within forward-compute, and forward-compute within forward-backward.
func megatronParts() []share {
	return []share{
		{"forward-backward", 0.86},
		{"forward-compute", 0.31},
		{"backward-compute", 0.53},
		{"batch-generator", 0.02},
		{"all-grads-sync", 0.03},
		{"optimizer-inner-step", 0.05},
		{"optimizer", 0.07},
	}
}
