package report

import (
	"math"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// worker is a rank or a host, with the times of its records of steps.
type worker struct {
	who string // its name, to be put into a sentence
	digest.PartTimes
}

// mean returns the mean time of a part in a record, s: of data loading for spans.PartDataLoading, else of computing.
func (w *worker) mean(part string) float64 {
	if part == spans.PartDataLoading {
		return w.Loading / float64(w.Records)
	}
	return w.Computing / float64(w.Records)
}

// slowByTimers adds a claim for ranks, or else hosts, whose steps load data, or compute, longer than those of the others, by the trainer's timers in each log.
func (c *conclusion) slowByTimers() {
	const leastRecords = 20
	for _, l := range c.job.Steps.Rows() {
		var ranks, hosts []worker
		for _, r := range l.Ranks() {
			told := c.blamed(r.Rank) || slices.Contains(c.grownRanks, r.Rank)
			if r.Total.Records >= leastRecords && !told {
				ranks = append(ranks, worker{c.who(view.Int{N: r.Rank, OK: true}, r.Host), r.Total})
			}
		}
		for _, h := range l.Hosts() {
			if h.Total.Records >= leastRecords {
				hosts = append(hosts, worker{name(h.Host), h.Total})
			}
		}
		for _, part := range []string{spans.PartDataLoading, spans.PartCompute} {
			if slow := slowest(ranks, part); slow != nil {
				c.slowRanks(slow, part)
			} else if slow := slowest(hosts, part); slow != nil {
				// A host may have more to do, such as another stage of a pipeline: no loss.
				c.claims = append(c.claims, claim{
					kind: "slow_host", cost: slow.cost(part), grade: remark, advice: c.of(adviceOf(part)),
					what: c.timed(slow, part, c.sf("%d hosts", "%d 台主机", slow.all)) + c.in(": slower, or with more to do", "：较慢，或工作更多"),
				})
			}
		}
	}
}

// slowWorkers are the workers whose part of the step is longer than usual.
type slowWorkers struct {
	who           []string // the names of the slow workers
	all           int      // number of all workers compared, the slow ones among them
	worst         *worker  // with the longest part
	usual, step   float64  // s, medians over all workers: of the part, and of the step
	communicating float64  // s, median over all workers: of the time in collectives
}

// cost returns the seconds of all steps by which the part of the slowest worker was longer than usual.
func (s *slowWorkers) cost(part string) float64 {
	return (s.worst.mean(part) - s.usual) * s.worst.Steps
}

// slowest returns the workers whose part of the step is longer than usual, the median over all workers, by more than 20 % of the usual part and by more than
// 10 % of the usual step. It returns nil if:
//   - there are fewer than four workers
//   - the usual part is below 0.2 % of a step: workers that load next to nothing, as on a pipeline's later stages, are nothing to compare with
//   - no worker is slow
//   - half of the workers or more are slow: then neither half is the usual one
func slowest(all []worker, part string) *slowWorkers {
	const leastWorkers = 4
	if len(all) < leastWorkers {
		return nil
	}
	var parts, steps, collectives []float64
	for i := range all {
		w := &all[i]
		parts = append(parts, w.mean(part))
		steps = append(steps, w.Took/float64(w.Records))
		collectives = append(collectives, w.Communicating/float64(w.Records))
	}
	s := &slowWorkers{all: len(all), usual: stat.MedianInPlace(parts), step: stat.MedianInPlace(steps), communicating: stat.MedianInPlace(collectives)}
	if negligible := s.usual < 0.002*s.step; negligible {
		return nil
	}
	for i := range all {
		w := &all[i]
		if more := w.mean(part) - s.usual; more > 0.2*s.usual && more > 0.1*s.step {
			s.who = append(s.who, w.who)
			if s.worst == nil || w.mean(part) > s.worst.mean(part) {
				s.worst = w
			}
		}
	}
	if few := 2*len(s.who) < s.all; len(s.who) == 0 || !few {
		return nil
	}
	return s
}

// timed says how long the slow workers take for a part. all is the workers in words.
func (c *conclusion) timed(s *slowWorkers, part, all string) string {
	did := c.in("loading data", "加载数据")
	if part == spans.PartCompute {
		did = c.in("computing", "计算")
	}
	took := human.Seconds(s.worst.mean(part))
	if len(s.who) > 1 {
		took = c.sf("up to %s", "最多 %s", took)
	}
	return c.sf("%s took %s a step for %s, by the logs' timers; usual of %s is %s", "%s 每步用于%[3]s %[2]s（按日志计时），%[4]s中通常为 %[5]s",
		c.capital(c.names(s.who, mostRanks)), took, did, all, human.Seconds(s.usual))
}

// names joins the names of workers, at most most of them, and counts the others.
func (c *conclusion) names(who []string, most int) string {
	named := strings.Join(who[:min(len(who), most)], ", ")
	if n := len(who) - most; n > 0 {
		named += c.sf(" and %d more", " 等另外 %d 个", n)
	}
	return named
}

// slowRanks adds a claim for ranks with a longer part of the step. The others are known to wait if their steps are as long and, where the part is computing,
// their timers of collectives are longer by half of the excess or more: else the timer may contain the wait for another rank, or for the GPU.
func (c *conclusion) slowRanks(s *slowWorkers, part string) {
	cost, w := s.cost(part), s.worst
	cl := claim{kind: "slow_rank", cost: cost, grade: remark, advice: c.of(adviceOf(part)), what: c.timed(s, part, c.sf("%d ranks", "%d 个 rank", s.all))}
	waited := s.communicating - w.Communicating/float64(w.Records) // s: of a step, less than the others
	switch sameStep := w.Took/float64(w.Records) < 1.05*s.step; {
	case !sameStep || part == spans.PartCompute && waited < (w.mean(part)-s.usual)/2:
		cl.what += c.in(": slower, or with more to do", "：较慢，或工作更多")
	default:
		cl.what += c.sf(": the others wait, %s in all, %s", "：其他 rank 等待，共 %s，%s", human.Seconds(cost), c.share(cost))
		cl.short, cl.grade, cl.devices = c.sf("waiting for %s", "等待 %s", c.names(s.who, mostRanks)), costly, cost*float64(s.all-len(s.who))
		cl.lost = c.notYetLost(cost, part)
	}
	c.claims = append(c.claims, cl)
}

// notYetLost returns what remains of the seconds of waiting for ranks that load data or compute longer, without those that another claim counts as lost. The
// time of loading data in all steps is that of the rank that loads longest: the seconds move to the caller's claim, which replaces a claim with few others.
func (c *conclusion) notYetLost(seconds float64, part string) float64 {
	at := slices.IndexFunc(c.claims, func(cl claim) bool { return cl.kind == "data_loading" })
	switch {
	case slices.ContainsFunc(c.claims, func(cl claim) bool { return cl.kind == "wait" || cl.kind == "late_rank" }):
		return 0
	case at >= 0 && part == spans.PartDataLoading:
		loading := &c.claims[at]
		loading.lost = max(0, loading.lost-seconds)
		if loading.lost < 0.1*loading.cost {
			c.claims = slices.Delete(c.claims, at, at+1)
		}
	}
	return seconds
}

var throttled = both{
	"Look at the cooling, the power and the throttling of that GPU (nvidia-smi -q -d PERFORMANCE,TEMPERATURE), and drain its host.",
	"检查该 GPU 的散热、供电与降频原因（nvidia-smi -q -d PERFORMANCE,TEMPERATURE），并下线所在主机。",
}

// slowClock is the GPU that has the lowest clock in most of the reports with a low one; nil: none. A rank that computes nothing at the moment has a low clock
// now and then, in turn with others.
func (c *conclusion) slowClock() *digest.SlowClock {
	all := c.job.Steps.Clocks.Slow()
	low := 0
	for _, g := range all {
		low += g.Reports
	}
	if len(all) == 0 || all[0].Reports < 3 || 10*all[0].Reports < c.job.Steps.Clocks.Reports || 4*all[0].Reports < 3*low {
		return nil
	}
	return all[0]
}

// clocks adds a claim for a GPU with a low clock in report after report of Megatron's --log-straggler.
func (c *conclusion) clocks() {
	g := c.slowClock()
	if g == nil {
		return
	}
	what := c.sf("The GPU of %s had the lowest clock in %d of %d reports: down to %s MHz, where another had %s MHz",
		"%s 的 GPU 在 %[3]d 次报告中的 %[2]d 次频率最低：低至 %[4]s MHz，而其他为 %[5]s MHz",
		c.who(view.Int{N: g.Rank, OK: true}, ""), g.Reports, c.job.Steps.Clocks.Reports, human.Thousands(math.Round(g.Least)), human.Thousands(math.Round(g.Others)))
	if g.Hottest > 0 {
		what += c.sf("; it was the hottest, at up to %s °C", "；同时温度最高，达 %s °C", human.Digits(g.Hottest))
	}
	c.claims = append(c.claims, claim{kind: "slow_clock", what: what, cost: math.NaN(), grade: remark, proof: []proof{{"", g.At}}, advice: c.of(throttled)})
}
