package report

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/regimes"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/spans"
)

// disturbance is a kind of lines that tell what held steps up.
type disturbance struct {
	forms         []string // of bridge/events
	while, advice both     // "while a network link was down"
	// about is the part of an event that the sentence names: a port, a server, a function.
	about func(e *events.Event) string
}

var disturbances = []disturbance{
	{
		[]string{"nccl.ib_port", "nccl.ib_async", "kernel.link_down", "kernel.nic_down"},
		both{"while a network link was down", "此时网络链路断开"},
		both{"Check the cable, NIC and switch port.", "检查线缆、网卡与交换机端口。"},
		func(e *events.Event) string {
			if e.Form.Name == "nccl.ib_async" {
				return ""
			}
			return e.What
		},
	},
	{
		[]string{"kernel.nfs", "kernel.lustre_lost"},
		both{"while a file system did not answer", "此时文件系统没有响应"},
		both{"Look at the file server and the way to it at these times.", "查看当时的文件服务器及其网络。"},
		func(e *events.Event) string { return e.Peer },
	},
	{
		savings,
		both{"while a checkpoint was saved", "此时在保存检查点"},
		advices[spans.PartCheckpoint],
		func(*events.Event) string { return "" },
	},
	{
		[]string{"loop.evaluating"},
		both{"while the model was evaluated", "此时在评估模型"},
		both{"Evaluate less often, on fewer samples, or in a job of its own.", "降低评估频率、减少样本，或用单独的任务评估。"},
		func(*events.Event) string { return "" },
	},
	{
		[]string{cacheFlush},
		both{"while PyTorch's allocator emptied its cache", "此时 PyTorch 分配器在清空缓存"},
		memoryShort,
		func(*events.Event) string { return "" },
	},
	{
		[]string{"dynamo.recompile"},
		both{"while torch.compile compiled again", "此时 torch.compile 在重新编译"},
		both{
			"TORCH_LOGS=recompiles tells the guard that failed: keep shapes equal (padding, drop_last), or mark them dynamic.",
			"TORCH_LOGS=recompiles 会说明失败的 guard：保持形状一致（填充、drop_last），或标为动态。",
		},
		func(e *events.Event) string {
			file := path.Base(e.What)
			if e.Process == "" {
				return file
			}
			return e.Process + " in " + file
		},
	},
}

// savings are the forms of lines about a checkpoint.
var savings = []string{"deepspeed.saving", "loop.saved", "accelerate.saving"}

// cacheFlush is the form of lines about a lack of GPU memory, and memoryShort the advice.
const cacheFlush = "deepspeed.cache_flush"

var memoryShort = both{
	"GPU memory is short: make the micro-batch smaller or shard more, and set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
	"显存紧张：减小 micro-batch 或增加切分，并设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True。",
}

// span is a time in which something was lost, ns since 1970.
type span struct {
	start, end int64
	lost       float64 // s
}

// slack is how far a line may be from the step that it explains, ns: other writers' clocks, and stamps of whole seconds.
const slack = 1_500_000_000

// disturbed is the kind of lines that explains most (2/3) of the seconds lost in some spans, as a continuation of their sentence: " while a network link was
// down (mlx5_3:1 on node05)"; nil: none. Half of the lines or more must be in the spans: what goes on beside usual steps too is no reason. Those before the
// third step do not count, as in a warm-up.
func (c *conclusion) disturbed(times []span) (of *disturbance, text string, seen []proof) {
	whole := 0.0
	for _, s := range times {
		whole += s.lost
	}
	for i := range disturbances {
		d := &disturbances[i]
		held, without := 0.0, 0
		hit := make([]bool, len(times))
		var in []*digest.Event
		for _, e := range c.eventsOf(d.forms) {
			found := false
			for k, s := range times {
				if e.Time >= s.start-slack && e.Time <= s.end+slack {
					found, hit[k] = true, true
				}
			}
			if !found {
				without++
				continue
			}
			in = append(in, e)
		}
		for k, s := range times {
			if hit[k] {
				held += s.lost
			}
		}
		if len(in) == 0 || without > len(in) || 3*held < 2*whole {
			continue
		}
		return d, " " + c.of(d.while) + c.whoHeld(d, in), []proof{{what: name(strings.TrimSpace(in[0].Text)), At: in[0].At}}
	}
	return nil, "", nil
}

// heldUp completes the claim of a cause of slow windows that is computing, or that no part explains, with what held these up, where the logs tell. took is the
// cost in words. The answer is the line that tells.
func (c *conclusion) heldUp(cl *claim, of *digest.Cost, took string) []proof {
	unknown, computes := of.Part == spans.PartUnattributed, trainers.PartOf(of.Part) == trainers.Computing
	if !unknown && !computes {
		return nil
	}
	held, during, seen := c.disturbed(c.slowSpans())
	switch {
	case held == nil && unknown: // nobody is accused
		cl.grade, cl.advice = remark, c.capital(c.sentence(c.reasons(of)))
	case held == nil:
	case unknown:
		c.held = held
		cl.what = c.sf("%s%s, in %s", "%s：%s，共 %s", c.in(took, strings.TrimSpace(during)), c.in(during, took), c.windows(of.Windows))
		cl.short, cl.advice = c.of(held.while), c.of(held.advice)
	default:
		cl.what, cl.advice = cl.what+","+during, c.of(held.advice)
	}
	return seen
}

// disturbedGaps is disturbed for gaps between steps.
func (c *conclusion) disturbedGaps(gaps []account.Gap) (*disturbance, string, []proof) {
	times := make([]span, len(gaps))
	for i, g := range gaps {
		times[i] = span{g.Start, g.End, g.Seconds()}
	}
	return c.disturbed(times)
}

// eventsOf are the events of some forms with a time, from the end of the third step on, in order.
func (c *conclusion) eventsOf(forms []string) (out []*digest.Event) {
	from := int64(0)
	if len(c.account.Course) > 0 && len(c.account.Course[0]) > 2 {
		from = c.account.Course[0][2].End
	}
	for i := range c.job.Events {
		if e := &c.job.Events[i]; e.Time > from && slices.Contains(forms, e.Form) {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b *digest.Event) int { return cmp.Compare(a.Time, b.Time) })
	return out
}

// whoHeld names what the events are about, with rank or host, where nearly all (90 %) have these alike: " (mlx5_3:1 on node05)"; else "".
func (c *conclusion) whoHeld(d *disturbance, in []*digest.Event) string {
	what, who := map[string]int{}, map[string]int{}
	for _, e := range in {
		again := events.Again(e.Form, events.Class(e.Class), e.Text)
		host := cmp.Or(e.Host, again.Host)
		rank := ""
		if e.Rank.OK && d.forms[0] == "dynamo.recompile" { // of a network port, many ranks report
			rank = c.who(view.Int{N: e.Rank.N, OK: true}, host)
		}
		what[d.about(&again)]++
		who[cmp.Or(rank, host)]++
	}
	alike := func(of map[string]int) string {
		for text, n := range of {
			if 10*n >= 9*len(in) {
				return name(text)
			}
		}
		return ""
	}
	about, by := alike(what), alike(who)
	switch {
	case about == "" && by == "":
		return ""
	case about == "" || by == "":
		return c.sf(" (%s)", "（%s）", about+by)
	}
	return c.sf(" (%s: %s)", "（%s：%s）", by, about)
}

// slowSpans are the times of the slow windows, where these are steps of the account.
func (c *conclusion) slowSpans() (out []span) {
	if !c.slow() || c.window.Of != spans.WindowStep {
		return nil
	}
	at := map[int64]*account.Step{}
	for _, steps := range c.account.Course {
		for i := range steps {
			at[steps[i].Number] = &steps[i]
		}
	}
	for i := range c.window.Slow {
		of := &c.window.Slow[i].Of
		if s := at[of.Iteration.N]; s != nil && of.Iteration.OK && of.Usual > 0 {
			out = append(out, span{s.Start, s.End, of.Took - of.Usual})
		}
	}
	return out
}

// flushed says, for longer steps from a step on, that most of these, and few before, had the allocator empty its cache; "": not so.
func (l *levels) flushed(s *regimes.Segment) (text, advice string) {
	from, to := l.steps[s.From].Start, l.steps[s.To-1].End
	within := 0
	all := l.eventsOf([]string{cacheFlush})
	for _, e := range all {
		if e.Time >= from-slack && e.Time <= to+slack {
			within++
		}
	}
	if 2*within < s.To-s.From || 10*within < 9*len(all) {
		return "", ""
	}
	return l.in(" (PyTorch's allocator emptied its cache in most of these steps)", "（其中多数步 PyTorch 分配器清空了缓存）"), l.of(memoryShort)
}

// uncompiled says, for longer steps from a step on, that torch.compile gave up there; "": not so.
func (l *levels) uncompiled(s *regimes.Segment) (text, advice string) {
	from := &l.steps[max(0, s.From-1)]
	for _, e := range l.eventsOf([]string{"dynamo.limit"}) {
		if e.Time >= from.Start-slack && e.Time <= l.steps[s.From].End+slack {
			return l.in(" (torch.compile had compiled too often, and gave up)", "（torch.compile 重新编译次数过多而放弃）"), l.in(
				"Keep shapes equal or mark them dynamic; TORCH_LOGS=recompiles tells the guard that failed.", "保持形状一致或标为动态；TORCH_LOGS=recompiles 会说明失败的 guard。")
		}
	}
	return "", ""
}
