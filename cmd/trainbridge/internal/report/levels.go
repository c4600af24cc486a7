package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/regimes"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/spans"
)

// levels are the stretches of steps of an attempt (regimes.Segment).
type levels struct {
	*conclusion
	steps []account.Step
	run   *regimes.Run
	ranks float64
}

// number is the number of a step. Without numbers in the log, steps are counted from 1.
func (l *levels) number(i int) string {
	if n := l.steps[i].Number; n >= 0 {
		return strconv.FormatInt(n, 10)
	}
	return strconv.Itoa(i + 1)
}

// begin is the number of the first step of a record.
func (l *levels) begin(i int) string {
	if s := &l.steps[i]; s.Number >= int64(s.Steps) {
		return strconv.FormatInt(s.Number-int64(s.Steps)+1, 10)
	}
	return l.number(i)
}

// levels adds a claim for each stretch that grew slower little by little, by 10 % or more and at a cost worth a claim, and for each lasting change of the time
// of a step: the longer is 1.1 times the shorter, or more.
func (c *conclusion) levels(steps []account.Step, run *regimes.Run, ranks float64) {
	l := levels{c, steps, run, ranks}
	for i, s := range run.Segments {
		if s.Trend >= 0.1 {
			l.trend(&s)
		}
		if i == 0 {
			continue
		}
		if was := run.Segments[i-1].Level; s.Level >= 1.1*was || was >= 1.1*s.Level {
			l.change(i)
		}
	}
}

// median is the median of the times of a step, s, of some steps; NaN: not known of any.
func (l *levels) median(from, to int) float64 {
	var each []float64
	for k := from; k < to; k++ {
		if took := l.steps[k].Each(); took > 0 {
			each = append(each, took)
		}
	}
	return stat.MedianInPlace(each)
}

// trend adds a claim for a stretch that grew slower, if it cost enough.
func (l *levels) trend(s *regimes.Segment) {
	n := min(max(5, (s.To-s.From)/8), s.To-s.From)
	first, last := l.median(s.From, s.From+n), l.median(s.To-n, s.To) // not the ends of a line: a stretch may stay as it was for long, and then grow
	if !(last >= 1.1*first) {
		return
	}
	lost := 0.0
	for k := s.From; k < s.To; k++ {
		lost += max(0, cmp.Or(l.steps[k].Each(), first)-first) * float64(l.steps[k].Steps) // 0 s: not known, and nothing lost
	}
	if !l.worth(lost) {
		return
	}
	begin, end := regimes.Segment{From: s.From, To: s.From + n, Level: first}, regimes.Segment{From: s.To - n, To: s.To, Level: last}
	work, _, ok := l.work(&begin, &end)
	more := ok && doesMore(work, &begin, &end)
	grew := l.in("slower", "变慢")
	if more {
		grew = l.in("longer", "变长")
	}
	text := l.sf("Steps grew %[7]s by %[1]s from step %[2]s to %[3]s (%[4]s to %[5]s), which took %[6]s more than at the beginning",
		"从第 %[2]s 步到第 %[3]s 步，每步逐渐%[7]s %[1]s（%[4]s 到 %[5]s），比开始时共多用 %[6]s",
		human.Percent(last/first-1), l.number(s.From), l.number(s.To-1), human.Seconds(first), human.Seconds(last), human.Seconds(lost), grew)
	advice := l.in("Look for what grows: sequence lengths, memory fragmentation, logs, a cache, heat.", "查找逐渐增长的因素：序列长度、显存碎片、日志、缓存、温度。")
	if more {
		text += l.sf(", and do %s times the work", "，工作量为此前的 %s 倍", human.Digits(work))
		advice = ""
	} else if part, was, is := l.grown(&begin, &end); part != "" {
		text += l.sf(" (%s: %s instead of %s)", "（%s：%s，此前为 %s）", l.part(part), human.Seconds(is), human.Seconds(was))
		advice = l.advice(part)
	}
	l.claims = append(l.claims, claim{ // no loss by itself: longer sequences do as much
		kind: "trend", cost: lost, grade: remark, proof: []proof{l.proofOf(&l.steps[s.To-1], l.steps[s.To-1].Each())}, what: text, advice: advice,
	})
}

// change adds a claim for the change of level at the beginning of a segment. The change is a loss where a log tells that steps do the same work as those of
// an earlier one (base).
func (l *levels) change(i int) {
	s, before := &l.run.Segments[i], &l.run.Segments[i-1]
	from := &l.steps[s.From]
	text := l.sf("From step %s on a step takes %s instead of %s", "从第 %s 步起每步用 %s，此前为 %s", l.begin(s.From), human.Seconds(s.Level), human.Seconds(before.Level))
	if was, is := l.steps[before.From].Ranks, from.Ranks; was != is && was > 0 && is > 0 {
		text += l.sf(": %d ranks instead of %d", "：rank 数由 %[2]d 变为 %[1]d", is, was)
	}
	part, was, is := l.grown(before, s)
	late := l.late(before, s)
	switch {
	case late != nil:
		part = spans.PartWait
		l.grownRanks = append(l.grownRanks, late.rank)
		text += l.sf(" (%s %s for %s instead of %s, and the others wait)", "（%s 用 %s %s，此前为 %s，其他 rank 等待）",
			late.who, human.Seconds(late.is), late.did, human.Seconds(late.was))
	case part != "":
		text += l.sf(" (%s: %s instead of %s)", "（%s：%s，此前为 %s）", l.part(part), human.Seconds(is), human.Seconds(was))
	}
	seen := l.proofOf(from, from.Each())
	gpus := l.slowGPUs(before, s)
	flushed, _ := l.flushed(s)
	base := l.base(i, part, gpus != "" || flushed != "")
	if late != nil && base < 0 {
		base = i - 1 // the other ranks do as much work as before
	}
	if base >= 0 {
		steps := 0.0
		for k := s.From; k < s.To; k++ {
			steps += float64(l.steps[k].Steps)
		}
		if lost := steps * (s.Level - l.run.Segments[base].Level); l.worth(lost) {
			advice := l.in("Check for a throttled device, other processes on the GPUs (nvidia-smi), other jobs on the network or the storage, and memory fragmentation.",
				"检查是否有降频的设备、网络或存储上的其他任务、显存碎片。")
			switch meanwhile, what := l.meanwhile(s); {
			case gpus != "":
				text, advice = text+gpus, l.of(throttled)
			case part != "":
				advice = l.advice(part)
			case meanwhile != "":
				text, advice = text+meanwhile, what
			}
			cl := l.lose("level", lost, l.ranks, text+l.sf(", for the same work: %s more in all, %s", "，而工作量相同：共多用 %s，%s", human.Seconds(lost), l.share(lost)),
				l.short(s, late), advice, seen)
			cl.lost = max(0, lost-l.alsoSlow(s))
			return
		}
	}
	advice := l.in("Look at what changed there: sequence length, batch size, number of ranks, data.", "查看此处的变化：序列长度、批大小、rank 数、数据。")
	switch work, _, ok := l.work(before, s); {
	case !ok:
	case math.Abs(work-1) < 0.1:
		text += l.in(", for as many samples", "，而样本数相同")
	case doesMore(work, before, s), math.Abs(work/(s.Level/before.Level)-1) < 0.1:
		text += l.sf(", and does %s times the work", "，工作量为此前的 %s 倍", human.Digits(work))
		advice = l.in("No fault: longer sequences or a larger batch, as fast as before.", "并非故障：序列更长或批更大，速度与此前相同。")
	}
	l.claims = append(l.claims, claim{kind: "change", what: text, cost: math.NaN(), grade: remark, proof: []proof{seen}, advice: advice})
}

// alsoSlow are the seconds of a segment's longer steps that slow steps have too: those of the first steps of the segment, which were compared with the steps
// before.
func (l *levels) alsoSlow(s *regimes.Segment) (seconds float64) {
	if !l.slow() || l.window.Of != spans.WindowStep {
		return 0
	}
	usual := make(map[int64]float64, len(l.window.Slow)) // s, of a record
	for i := range l.window.Slow {
		if of := &l.window.Slow[i].Of; of.Iteration.OK {
			usual[of.Iteration.N] = of.Usual
		}
	}
	for k := s.From; k < s.To; k++ {
		if was, ok := usual[l.steps[k].Number]; ok {
			seconds += max(0, s.Level*float64(l.steps[k].Steps)-was)
		}
	}
	return seconds
}

// base is the fastest segment before the i-th whose steps took less than 1/1.1 of the time for the same work on the same ranks; -1: none. As many samples may
// be more work, of longer sequences, which take longer to compute: not where the part that grew is another, or a log tells why (told): the clocks of GPUs
// fell, or memory was short. A segment half as long as the longest before, or shorter, is no measure of what is usual.
func (l *levels) base(i int, part string, told bool) int {
	computes := part == "" || part == spans.PartCompute || part == spans.PartUnattributed || l.timer(part) && trainers.PartOf(part) == trainers.Computing
	s, longest, found := &l.run.Segments[i], 0, -1
	for _, of := range l.run.Segments[:i] {
		longest = max(longest, of.To-of.From)
	}
	for n := range l.run.Segments[:i] {
		of := &l.run.Segments[n]
		work, by, ok := l.work(of, s)
		slower := ok && (by != digest.SampleThroughput || !computes || told) && s.Level >= 1.1*of.Level && math.Abs(work-1) < 0.1
		if slower && 2*(of.To-of.From) > longest && l.steps[s.From].Ranks == l.steps[of.From].Ranks && (found < 0 || of.Level < l.run.Segments[found].Level) {
			found = n
		}
	}
	return found
}

// rates are the figures with which a log tells the work of a step, the most telling first.
var rates = [...]digest.Figure{
	digest.FlopThroughput, digest.DeviceFlopThroughput, digest.FlopThroughputReported, digest.DeviceFlopThroughputReported,
	digest.TokenThroughput, digest.DeviceTokenThroughput, digest.SampleThroughput,
}

// doesMore reports whether the steps of segment s are longer than those before and do so much more (work, a ratio) that the rate is at least 90 % of the rate
// before.
func doesMore(work float64, before, s *regimes.Segment) bool {
	longer := s.Level / before.Level
	return longer > 1 && work > 1.1 && work > 0.9*longer
}

// work returns the ratio of the work of a step in segment s to the work of a step in segment before. Work is rate × time; by is the first of rates with a value
// in both segments, in the log with the most records of steps. false: that log has no such rate.
func (l *levels) work(before, s *regimes.Segment) (times float64, by digest.Figure, ok bool) {
	var most *digest.Log
	for _, log := range l.job.Steps.Rows() {
		if most == nil || log.Records > most.Records {
			most = log
		}
	}
	if most == nil {
		return 0, 0, false
	}
	for _, f := range rates {
		series := &most.Measures[f].Over
		rateBefore, rateNow := l.over(series, before), l.over(series, s)
		if rateBefore > 0 && rateNow > 0 {
			return rateNow / rateBefore * s.Level / before.Level, f, true
		}
	}
	return 0, 0, false
}

// over is the median of the series' buckets that lie wholly within a segment; NaN: none. A timer at zero has a span of 1 ns.
func (l *levels) over(of *digest.Series, s *regimes.Segment) float64 {
	from, to := l.steps[s.From].Number, l.steps[s.To-1].Number
	if from < 0 || to < 0 {
		return math.NaN()
	}
	var values []float64
	for _, b := range of.Buckets() {
		if b.At >= from && b.At+of.Width-1 <= to {
			values = append(values, b.Mean())
		}
	}
	if m := stat.MedianInPlace(values); !(m < 2e-9) {
		return m
	}
	return 0
}

// grown is the part of a step that grew by most of a change to longer steps, s; "": no part did.
func (l *levels) grown(before, s *regimes.Segment) (part string, was, is float64) {
	most := (s.Level - before.Level) / 2
	if most <= 0 {
		return "", 0, 0
	}
	note := func(of string, series *digest.Series, n, m int32) { // n and m: the steps of a value, before and since
		a, b := l.over(series, before)/float64(n), l.over(series, s)/float64(m)
		if b-a > most {
			part, was, is, most = of, a, b, b-a
		}
	}
	for _, log := range l.job.Steps.Rows() {
		for _, of := range slices.Sorted(maps.Keys(log.Parts)) {
			note(of, &log.Parts[of].Over, 1, 1) // timers are means of a record's steps
		}
	}
	if part != "" && trainers.PartOf(part) != trainers.Computing || l.window == nil || l.window.Of != spans.WindowStep {
		return part, was, is
	}
	// A timer of computing may run around a collective or the loading of data, which then is the part that grew.
	own, ownWas, ownIs := part, was, is
	part, most = "", (s.Level-before.Level)/2
	for _, of := range l.window.ByTime() {
		if of.Name != spans.PartUnattributed && of.Name != spans.PartCompute {
			note(of.Name, &of.Over, l.steps[before.To-1].Steps, l.steps[s.To-1].Steps)
		}
	}
	if part == "" {
		return own, ownWas, ownIs
	}
	return part, was, is
}

// meanwhile is what the logs say of a compiler that gave up, a lack of GPU memory, a GPU with a low clock, or a slow network, for longer steps that no part
// explains, and what to do; "": nothing.
func (l *levels) meanwhile(s *regimes.Segment) (text, advice string) {
	if text, advice = l.uncompiled(s); text != "" {
		return text, advice
	}
	if text, advice = l.flushed(s); text != "" {
		return text, advice
	}
	if g := l.slowClock(); g != nil {
		return l.sf(" (%s ran at %s MHz, others at %s MHz)", "（%s 运行在 %s MHz，其他为 %s MHz）", l.who(view.Int{N: g.Rank, OK: true}, ""),
			human.Thousands(math.Round(g.Least)), human.Thousands(math.Round(g.Others))), l.of(throttled)
	}
	for _, f := range l.job.Verdicts.Rows() {
		switch {
		case f.Name == spans.VerdictNCCLLink && f.Cause == spans.CauseLinkSlow:
			return l.sf(" (a link is slow: %s)", "（存在慢链路：%s）", strings.TrimLeft(l.places(f), "; ；")), l.in("Check the cable, NIC and switch port.", "检查线缆、网卡与交换机端口。")
		case f.Name == spans.VerdictNCCLBandwidthLow && !l.passedOver(f):
			text = l.in(" (collectives had less bandwidth)", "（集合通信带宽较低）")
		}
	}
	return text, l.of(advices[spans.PartCollective])
}

// short is the headline's name for longer steps.
func (l *levels) short(s *regimes.Segment, late *lateness) string {
	if late != nil {
		return l.sf("longer steps from step %s on, of %s", "从第 %s 步起变慢，因 %s", l.begin(s.From), late.who)
	}
	return l.sf("longer steps from step %s on", "从第 %s 步起变慢", l.begin(s.From))
}

// lateness is the work of a rank that grew.
type lateness struct {
	rank     int64
	who, did string
	was, is  float64 // s a step
}

// late is the rank, of several with logs of their own, whose loading or computing grew by most of a change to longer steps, s; nil: none, or others grew too.
func (l *levels) late(before, s *regimes.Segment) (found *lateness) {
	least := (s.Level - before.Level) / 2
	if least <= 0 {
		return nil
	}
	for _, log := range l.job.Steps.Rows() {
		for _, of := range []struct {
			did    string
			series func(*digest.RankTime) *digest.Series
		}{
			{l.in("loading data", "加载数据"), func(r *digest.RankTime) *digest.Series { return &r.Loading }},
			{l.in("computing", "计算"), func(r *digest.RankTime) *digest.Series { return &r.Computing }},
			{l.in("the forward pass", "前向计算"), func(r *digest.RankTime) *digest.Series { return &r.Forward }},
		} {
			var all []float64
			worst := -1
			ranks := log.Ranks()
			for i, r := range ranks {
				all = append(all, l.sum(of.series(r), s)-l.sum(of.series(r), before))
				if worst < 0 || all[i] > all[worst] {
					worst = i
				}
			}
			if len(all) < 2 || !(all[worst] > least) || !(stat.MedianInPlace(slices.Delete(slices.Clone(all), worst, worst+1)) < all[worst]/3) {
				continue
			}
			series := of.series(ranks[worst])
			least = all[worst]
			found = &lateness{ranks[worst].Rank, l.who(view.Int{N: ranks[worst].Rank, OK: true}, ranks[worst].Host), of.did, l.sum(series, before), l.sum(series, s)}
		}
	}
	return found
}

// sum is as over, with the values of a step added up; NaN: not known.
func (l *levels) sum(of *digest.Series, s *regimes.Segment) float64 {
	parts := 0.0
	for _, b := range of.Buckets() {
		parts = max(parts, float64(b.Count)/float64(of.Width))
	}
	return l.over(of, s) * math.Round(max(1, parts))
}

// timer says whether a part is a timer of the trainer.
func (l *levels) timer(of string) bool {
	return slices.ContainsFunc(l.job.Steps.Rows(), func(log *digest.Log) bool { return log.Parts[of] != nil })
}

// part is how a part that grew is called: a trainer's own by its name, others in words.
func (l *levels) part(of string) string {
	if l.timer(of) {
		return name(of)
	}
	return l.what(&digest.Cost{Part: of}, digest.Blamed{})
}

// shared leaves a loss of longer steps only so far as no claim about waiting, loading data or queues has the same seconds. Seconds of slow steps that no log
// explains, or in which a rank loaded data, are those of late ranks too, where no collective could be placed in a step. Waiting that is nearly all (80 %) for
// one rank or host is named so.
func (c *conclusion) shared() {
	others, late := 0.0, 0.0
	if c.slow() && c.window.Of != spans.WindowStep { // slow batches and passes make steps longer
		others += c.lost
	}
	var wait, who *claim
	for i := range c.claims {
		switch cl := &c.claims[i]; cl.kind {
		case "late_rank", "late_host", "slow_rank":
			late += cl.lost
			others += cl.lost
			if who == nil || cl.cost > who.cost {
				who = cl
			}
		case "wait":
			wait = cl
			others += cl.lost
		case "data_loading", "queue", "rpc":
			others += cl.lost
		}
	}
	if wait != nil && who != nil && who.cost >= 0.8*wait.cost {
		wait.short = who.short
	}
	if c.slow() {
		if wait := c.window.Parts[spans.PartWait]; wait == nil || wait.All.Sum() == 0 {
			same, _ := c.unexplained()
			for _, of := range c.window.Costs() {
				if of.Part == spans.PartDataLoading && c.note(of) != "" { // a rank loaded, the others waited for that rank
					same += of.Time.Sum()
				}
			}
			c.twice = min(same, late)
		}
	}
	for i := range c.claims {
		cl := &c.claims[i]
		if cl.kind != "level" {
			continue
		}
		both := min(cl.lost, others)
		cl.lost, others = cl.lost-both, others-both
		if cl.lost < 0.1*cl.cost {
			cl.lost, cl.grade = 0, remark
		}
	}
}
