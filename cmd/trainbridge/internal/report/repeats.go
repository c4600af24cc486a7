package report

import (
	"cmp"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/regimes"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
)

// repeats adds claims about calls of TransferQueue functions and passes of RPCs that no window judged, as their logs have no id or no clock: slow ones, lasting
// changes, and workers slower than the others. Windows of another log, such as a trainer's steps, judge no calls and no passes.
func (c *conclusion) repeats() {
	kinds := map[string][]*digest.Repeats{}
	for _, r := range c.job.Functions.Repeats() {
		ofCall := r.Part != "" && c.job.Functions.Sum().Calls > 0 // the calls say as much
		if ofCall || c.judges(spans.PartGet, spans.PartPut) {
			continue
		}
		kinds[r.Name] = append(kinds[r.Name], r)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		c.slowRepeats(kinds[kind])
		c.slowWorkers(kinds[kind])
	}
	passes := c.job.Passes.Repeats()
	if len(passes) > 0 && !c.judges(spans.PartRPCSerialize, spans.PartRPCSend, spans.PartRPCReceive, spans.PartRPCServer, spans.PartRPCDeserialize) {
		c.slowRepeats(passes)
	}
}

// judges says whether the windows have one of the parts.
func (c *conclusion) judges(parts ...string) bool {
	return c.window != nil && slices.ContainsFunc(parts, func(of string) bool { return c.window.Parts[of] != nil })
}

// whose is the worker of a series, or its log: "pid 12 on host-1".
func (c *conclusion) whose(r *digest.Repeats) string {
	text := name(filepath.Base(r.File))
	if r.PID >= 0 {
		text = "pid " + strconv.FormatInt(r.PID, 10)
	}
	if r.Host != "" {
		text = c.sf("%s on %s", "%[2]s 的 %[1]s", text, name(r.Host))
	}
	return text
}

// partOf is a part in words: "receiving", or of a TransferQueue function "GET".
func (c *conclusion) partOf(part string) string {
	return c.what(&digest.Cost{Part: part}, digest.Blamed{})
}

// slowRepeat is a slow call or pass.
type slowRepeat struct {
	of   *digest.Repeats
	at   digest.At
	more float64 // s longer than usual
}

// slowAmong are the spans that are slow among those of all series together: many calls show a long tail that those of a worker do not.
func slowAmong(all []*digest.Repeats) map[digest.At]bool {
	var entries []digest.RepeatOf
	for _, r := range all {
		entries = append(entries, r.Entries()...)
	}
	slices.SortStableFunc(entries, func(a, b digest.RepeatOf) int { return cmp.Compare(a.Start, b.Start) })
	of := regimes.Attempt{Seconds: make([]float64, len(entries))}
	for i := range entries {
		of.Seconds[i] = entries[i].Took
	}
	slow := map[digest.At]bool{}
	for i, s := range regimes.Judge(of).Steps {
		if s.State == regimes.Slow || s.State == regimes.Periodic {
			slow[entries[i].At] = true
		}
	}
	return slow
}

// slowRepeats adds a claim for the slow calls or passes of some series together, and for lasting changes that are no other work.
func (c *conclusion) slowRepeats(all []*digest.Repeats) {
	var slow []slowRepeat
	among := slowAmong(all)
	n, took, lost := 0, 0.0, 0.0
	parts := map[string]float64{} // s longer than usual
	changed := map[string][]change{}
	for _, r := range all {
		entries := r.Entries()
		of := regimes.Attempt{Seconds: make([]float64, len(entries))}
		for i := range entries {
			of.Seconds[i], took = entries[i].Took, took+entries[i].Took
		}
		n += len(entries)
		run := regimes.Judge(of)
		for i := range run.Steps {
			if s := &run.Steps[i]; (s.State == regimes.Slow || s.State == regimes.Periodic) && among[entries[i].At] {
				more := entries[i].Took - run.Segments[s.Segment].Level
				slow, lost = append(slow, slowRepeat{r, entries[i].At, more}), lost+more
				part, _, _ := grownPart(r, entries, &run.Segments[s.Segment], entries[i:i+1])
				parts[part] += more
			}
		}
		for i := range run.Segments[:max(0, len(run.Segments)-1)] {
			if ch, ok := changeOf(r, entries, &run.Segments[i], &run.Segments[i+1]); ok {
				changed[ch.part] = append(changed[ch.part], ch)
			}
		}
	}
	if len(changed) == 0 {
		for _, ch := range partChanges(all) {
			changed[ch.part] = append(changed[ch.part], ch)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(changed)) {
		c.changes(changed[part], len(all))
	}
	if len(slow) == 0 || lost < little*took {
		return
	}
	slices.SortStableFunc(slow, func(a, b slowRepeat) int { return cmp.Compare(b.more, a.more) })
	where := ""
	for part, more := range parts {
		if part != "" && more > lost/2 {
			where = c.sf(", mostly %s", "，主要是%s", c.partOf(part))
		}
	}
	what := c.sf("%s passes", "%s 次前向", human.Thousands(n))
	if all[0].Name != "" {
		what = c.sf("%s calls of %s", "%[2]s 的 %[1]s 次调用", human.Thousands(n), name(all[0].Name))
	}
	cl := claim{
		kind: "slow_calls", cost: lost, grade: remark, advice: c.in("Look at what these had in common: their data, their host, what ran beside them.",
			"查看它们的共同点：数据、主机、同时运行的任务。"),
		what: c.sf("%s of %s took longer than usual, %s added up%s", "%[2]s中有 %[1]s 次偏慢，合计多用 %[3]s%[4]s",
			human.Thousands(len(slow)), what, human.Seconds(lost), where),
	}
	for _, s := range slow[:min(len(slow), evidences)] {
		cl.proof = append(cl.proof, proof{c.sf("%s longer, %s", "多用 %s，%s", human.Seconds(s.more), c.whose(s.of)), s.at})
	}
	c.claims = append(c.claims, cl)
}

// grownPart is the part that has most of the time by which some entries are longer than those of a segment, with its medians; "": none has most.
func grownPart(r *digest.Repeats, entries []digest.RepeatOf, usual *regimes.Segment, these []digest.RepeatOf) (part string, was, is float64) {
	median := func(list []digest.RepeatOf, of func(*digest.RepeatOf) float64) float64 {
		values := make([]float64, len(list))
		for i := range list {
			values[i] = of(&list[i])
		}
		return stat.MedianInPlace(values)
	}
	took := func(e *digest.RepeatOf) float64 { return e.Took }
	before := entries[usual.From:usual.To]
	most := (median(these, took) - median(before, took)) / 2
	for i, name := range r.Parts {
		of := func(e *digest.RepeatOf) float64 { return e.Parts[i] }
		if a, b := median(before, of), median(these, of); b-a > most {
			part, was, is, most = name, a, b, b-a
		}
	}
	return part, was, is
}

// change is a lasting change of a series to longer calls or passes.
type change struct {
	of         *digest.Repeats
	call       int // the first, from 1
	first      *digest.RepeatOf
	level, old float64 // s
	part       string
	is, was    float64 // s of the part
	lost       float64 // s
}

// changeOf is the change from a segment of a series to the next. None is where the change is not to longer ones, small, of computing, or of no single part, or
// where more data were moved: sequences are longer then.
func changeOf(r *digest.Repeats, entries []digest.RepeatOf, before, s *regimes.Segment) (ch change, ok bool) {
	ch = change{of: r, call: s.From + 1, first: &entries[s.From], level: s.Level, old: before.Level, lost: (s.Level - before.Level) * float64(s.To-s.From)}
	ch.part, ch.was, ch.is = grownPart(r, entries, before, entries[s.From:s.To])
	bytes := func(of *regimes.Segment) float64 {
		var values []float64
		for _, e := range entries[of.From:of.To] {
			values = append(values, e.Bytes)
		}
		return stat.MedianInPlace(values)
	}
	took := 0.0
	for i := range entries {
		took += entries[i].Took
	}
	same := r.Name != "" && r.Part == "" || math.Abs(bytes(s)/bytes(before)-1) < 0.1 || math.IsNaN(bytes(s))
	return ch, ch.part != "" && ch.part != spans.PartCompute && same && s.Level >= 1.1*before.Level && ch.lost >= little*took
}

// partChanges are the lasting changes of the GET and the PUT of a function's calls to longer ones, by 10 % of a call or more, in all workers together: where
// computing varies from call to call, those of the calls as a whole do not show.
func partChanges(all []*digest.Repeats) (out []change) {
	type entryOf struct {
		of *digest.Repeats
		digest.RepeatOf
	}
	var entries []entryOf
	var calls []float64
	for _, r := range all {
		if r.Name == "" || r.Part != "" {
			return nil
		}
		for _, e := range r.Entries() {
			entries, calls = append(entries, entryOf{r, e}), append(calls, e.Took)
		}
	}
	slices.SortStableFunc(entries, func(a, b entryOf) int { return cmp.Compare(a.Start, b.Start) })
	call := stat.MedianInPlace(calls)
	for i, part := range all[0].Parts {
		if part == spans.PartCompute {
			continue
		}
		of := regimes.Attempt{Seconds: make([]float64, len(entries))}
		for n := range entries {
			of.Seconds[n] = entries[n].Parts[i]
		}
		run := regimes.Judge(of)
		for n := range run.Segments[:max(0, len(run.Segments)-1)] {
			before, s := &run.Segments[n], &run.Segments[n+1]
			if s.Level-before.Level < 0.1*call || s.Level < 1.5*before.Level {
				continue
			}
			from, to := entries[s.From].Start, entries[s.To-1].Start
			for _, r := range all {
				if ch, ok := partChange(r, i, from, to); ok {
					out = append(out, ch)
				}
			}
		}
	}
	return out
}

// partChange is the change of the i-th part of a worker's calls from a time on, up to another, ns since 1970; false: the part of this worker is no longer.
func partChange(r *digest.Repeats, i int, from, to int64) (ch change, ok bool) {
	entries := r.Entries()
	first := slices.IndexFunc(entries, func(e digest.RepeatOf) bool { return e.Start >= from })
	if first < 1 {
		return ch, false
	}
	median := func(list []digest.RepeatOf, of func(*digest.RepeatOf) float64) float64 {
		var values []float64
		for n := range list {
			values = append(values, of(&list[n]))
		}
		return stat.MedianInPlace(values)
	}
	took := func(e *digest.RepeatOf) float64 { return e.Took }
	part := func(e *digest.RepeatOf) float64 { return e.Parts[i] }
	since := slices.DeleteFunc(slices.Clone(entries[first:]), func(e digest.RepeatOf) bool { return e.Start > to })
	ch = change{
		of: r, call: first + 1, first: &entries[first], part: r.Parts[i], level: median(since, took), old: median(entries[:first], took),
		is: median(since, part), was: median(entries[:first], part),
	}
	ch.lost = (ch.is - ch.was) * float64(len(since))
	return ch, ch.is >= 1.5*ch.was
}

// moved is how many times as many bytes the operations of a changed part move since the change, in the median of the workers; NaN: not known.
func (c *conclusion) moved(list []change) float64 {
	operation := map[string]string{spans.PartGet: spans.TQClientGet.String(), spans.PartPut: spans.TQClientPut.String()}
	var ratios []float64
	for i := range list {
		ch := &list[i]
		for _, o := range c.job.Functions.Repeats() {
			if o.Part != ch.part || o.PID != ch.of.PID || o.File != ch.of.File || !strings.HasPrefix(o.Name, operation[ch.part]+" ("+ch.of.Name) {
				continue
			}
			var before, since []float64
			for _, e := range o.Entries() {
				if e.Start < ch.first.Start {
					before = append(before, e.Bytes)
				} else {
					since = append(since, e.Bytes)
				}
			}
			ratios = append(ratios, stat.MedianInPlace(since)/stat.MedianInPlace(before))
		}
	}
	return stat.MedianInPlace(ratios)
}

// changes adds a claim for lasting changes of series of a kind, all in one part. all is the number of series.
func (c *conclusion) changes(list []change, all int) {
	slices.SortStableFunc(list, func(a, b change) int { return cmp.Compare(b.lost, a.lost) })
	ch := &list[0]
	cl := claim{kind: "slow_calls", grade: remark, advice: c.of(adviceOf(ch.part))}
	var was, is []float64
	from, to := ch.call, ch.call
	for i := range list {
		cl.cost, was, is = cl.cost+list[i].lost, append(was, list[i].was), append(is, list[i].is)
		from, to = min(from, list[i].call), max(to, list[i].call)
		if i < evidences {
			cl.proof = append(cl.proof, proof{c.sf("%s, from its %d on", "%s，自第 %d 次起", c.whose(list[i].of), list[i].call), list[i].first.At})
		}
	}
	switch calls := c.sf("calls of %s", "%s 的调用", name(ch.of.Name)); {
	case len(list) > 1 && ch.of.Name != "" && from == to:
		cl.what = c.sf("The %s of %d of %d workers take longer from their %s on", "%[3]d 个 worker 中 %[2]d 个的 %[1]s从第 %[4]s 次起变慢", calls, len(list), all,
			strings.TrimSpace(ordinal(int64(from), c.chinese)))
	case len(list) > 1 && ch.of.Name != "":
		cl.what = c.sf("The %s of %d of %d workers take longer from their calls %d to %d on", "%[3]d 个 worker 中 %[2]d 个的 %[1]s从第 %[4]d 至 %[5]d 次起变慢",
			calls, len(list), all, from, to)
	case len(list) > 1:
		cl.what = c.sf("The passes of %d of %d logs take longer from passes %d to %d on", "%[2]d 个日志中 %[1]d 个的前向从第 %[3]d 至 %[4]d 次起变慢", len(list), all, from, to)
	case ch.of.Name != "":
		cl.what = c.sf("The %s of %s take %s from its %s on, before %s", "%[2]s 的 %[1]s自第 %[4]s 次起每次用 %[3]s，此前为 %[5]s", calls, c.whose(ch.of),
			human.Seconds(ch.level), strings.TrimSpace(ordinal(int64(ch.call), c.chinese)), human.Seconds(ch.old))
	default:
		cl.what = c.sf("From pass %d of %s on a pass takes %s instead of %s", "%[2]s 从第 %[1]d 次前向起每次用 %[3]s，此前为 %[4]s", ch.call, c.whose(ch.of),
			human.Seconds(ch.level), human.Seconds(ch.old))
	}
	cl.what += c.sf(" (%s: %s instead of %s): %s more, added up", "（%s：%s，此前为 %s）：合计多用 %s",
		c.partOf(ch.part), human.Seconds(stat.MedianInPlace(is)), human.Seconds(stat.MedianInPlace(was)), human.Seconds(cl.cost))
	if times := c.moved(list); times > 1.2 {
		cl.what += c.sf(", for %s times the bytes", "，数据量为此前的 %s 倍", human.Digits(times))
		cl.advice = c.in("Send fewer bytes: the payload grew, not the time of a byte. ", "减少数据量：变大的是数据，而非单位数据的耗时。")
	}
	c.claims = append(c.claims, cl)
}

// slowWorkers adds a claim for the workers of a function that take longer than the others for a part, by the medians of at least 8 calls each: by 30 % of that
// part, and by 10 % of a call. Most of at least four workers must be as fast as each other, or a half of them, and each of the other half at half the speed.
// Workers whose batches are larger by as much have more work.
func (c *conclusion) slowWorkers(all []*digest.Repeats) {
	const leastCalls, leastWorkers = 8, 4
	all = slices.DeleteFunc(slices.Clone(all), func(r *digest.Repeats) bool { return len(r.Entries()) < leastCalls })
	if len(all) < leastWorkers {
		return
	}
	var calls, batches []float64
	for _, r := range all {
		calls = append(calls, medianOf(r, func(e *digest.RepeatOf) float64 { return e.Took }))
		batches = append(batches, medianOf(r, func(e *digest.RepeatOf) float64 { return e.Batch }))
	}
	call, batch := stat.Middle(calls), stat.Middle(batches)
	for i, part := range all[0].Parts {
		var of []float64
		for _, r := range all {
			of = append(of, medianOf(r, func(e *digest.RepeatOf) float64 { return e.Parts[i] }))
		}
		usual, halves := usually(of)
		cl := claim{kind: "slow_worker", grade: remark, advice: c.in(
			"Look at the hosts and GPUs of these, at their way to the storage, and whether they have more work than the others.",
			"查看它们的主机与 GPU、到存储的网络，以及负载是否多于其他 worker。")}
		var who []string
		least, most := math.Inf(1), 0.0
		for w, r := range all {
			more := of[w] - usual
			moreWork := of[w]/batches[w] <= 1.3*usual/batch // NaN: not known
			if !(more > 0.3*usual && more > 0.1*call) || moreWork {
				continue
			}
			who, least, most = append(who, c.whose(r)), min(least, of[w]), max(most, of[w])
			cl.cost += more * float64(len(r.Entries()))
			slowest := slices.MaxFunc(r.Entries(), func(a, b digest.RepeatOf) int { return cmp.Compare(a.Parts[i], b.Parts[i]) })
			if len(cl.proof) < evidences {
				cl.proof = append(cl.proof, proof{c.whose(r) + ": " + human.Seconds(slowest.Parts[i]), slowest.At})
			}
		}
		if len(who) == 0 || 2*len(who) >= len(all) && !halves {
			continue
		}
		verb, took := "take", human.Seconds(least)
		if len(who) == 1 {
			verb = "takes"
		}
		if most > 1.05*least {
			took += c.in(" to ", " 至 ") + human.Seconds(most)
		}
		cl.what = c.sf("Of %d workers of %s %d (%s) %s a call %s; usual is %s", "%[2]s 的 %[1]d 个 worker 中有 %[3]d 个（%[4]s）每次用 %[5]s %[6]s，通常为 %[7]s",
			len(all), name(all[0].Name), len(who), c.names(who, 2*mostRanks), c.in(verb+" "+took, took), c.partOf(part), human.Seconds(usual))
		c.claims = append(c.claims, cl)
	}
}

// usually is the usual time of workers: the median. Of two halves, each of one at more than twice the time of any of the other, the median of the faster half.
func usually(of []float64) (usual float64, halves bool) {
	sorted := slices.Sorted(slices.Values(of))
	if n := len(sorted); n%2 == 0 && sorted[n/2] > 2*sorted[n/2-1] {
		return stat.Median(sorted[:n/2]), true
	}
	return stat.MedianInPlace(sorted), false
}

// medianOf is the median of a value of the calls of a series.
func medianOf(r *digest.Repeats, of func(*digest.RepeatOf) float64) float64 {
	var values []float64
	for _, e := range r.Entries() {
		values = append(values, of(&e))
	}
	return stat.MedianInPlace(values)
}
