package gen

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/trainbridge/trainbridge/spans"
)

// Breakdown is the time of a window by part (the values of ml.step.part), in s. In Time each instant of the window counts once, for the most specific part
// going on; Sum adds up all durations within the window, Union the time in which any span of a part is going on.
type Breakdown struct {
	Time  map[string]float64 `json:"time"`
	Sum   map[string]float64 `json:"sum"`
	Union map[string]float64 `json:"union"`
}

// passKind names the pass of the i-th step: the time of each pass is split by its own stages.
func passKind(i int) string { return "pass " + strconv.Itoa(i) }

// kinds are the parts an instant may count for, the most specific first. Data loading is not among them: its line has only a duration, which is taken out of
// the rest.
func kinds(steps int) []string {
	all := []string{spans.PartCheckpoint, spans.PartEvaluation, spans.PartWait, spans.PartCollective}
	for i := range steps {
		all = append(all, passKind(i))
	}
	return append(all, spans.PartCompute, spans.PartGet, spans.PartPut)
}

// intervals are the intervals of steps within a window, by kind: each checkpoint, each stage of each worker, each wait for a rank, and so on.
func intervals(steps []doneStep, window interval) map[string][]interval {
	all := map[string][]interval{}
	add := func(kind string, start, end int64) {
		start, end = max(start, window.start), min(end, window.end)
		if start < end {
			all[kind] = append(all[kind], interval{start, end})
		}
	}
	for i := range steps {
		l := steps[i].timeline
		add(spans.PartCheckpoint, l.checkpoint.start, l.checkpoint.end)
		add(spans.PartEvaluation, l.evaluation.start, l.evaluation.end)
		add(passKind(i), l.pass.start, l.pass.end)
		for _, calls := range l.functions {
			for _, c := range calls {
				add(spans.PartGet, c.start, c.got)
				add(spans.PartCompute, c.got, c.computed)
				add(spans.PartPut, c.computed, c.end)
			}
		}
		for k := range l.collectives {
			c := &l.collectives[k]
			add(spans.PartWait, c.first(), c.begun)
			add(spans.PartCollective, c.begun, c.end)
		}
	}
	return all
}

// merge unites overlapping and touching intervals.
func merge(list []interval) (merged []interval) {
	list = slices.SortedFunc(slices.Values(list), func(a, b interval) int { return cmp.Compare(a.start, b.start) })
	for _, i := range list {
		if n := len(merged); n > 0 && i.start <= merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, i.end)
		} else {
			merged = append(merged, i)
		}
	}
	return merged
}

// breakDown is the true breakdown of a window, which step_join's is held against. The window is cut wherever an interval begins or ends; each piece counts for
// the most specific kind going on.
func breakDown(steps []doneStep, window interval) Breakdown {
	all, order := intervals(steps, window), kinds(len(steps))
	merged := map[string][]interval{}
	cuts := []int64{window.start, window.end}
	sum, union, times := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for kind, list := range all {
		for _, i := range list {
			sum[kind] += i.end - i.start
		}
		merged[kind] = merge(list)
		for _, i := range merged[kind] {
			union[kind] += i.end - i.start
			cuts = append(cuts, i.start, i.end)
		}
	}
	slices.Sort(cuts)
	for i, start := range cuts[:len(cuts)-1] {
		times[going(order, merged, start)] += cuts[i+1] - start
	}
	// Data loading has no interval in the logs, only durations: taken out of the time in which nothing else goes on, as step_join does.
	loading := int64(0)
	for i := range steps {
		loading += steps[i].timeline.loading.end - steps[i].timeline.loading.start
	}
	took := min(loading, times[spans.PartUnattributed])
	sum[spans.PartDataLoading], union[spans.PartDataLoading], times[spans.PartDataLoading] = loading, loading, took
	rest := times[spans.PartUnattributed] - took
	sum[spans.PartUnattributed], union[spans.PartUnattributed], times[spans.PartUnattributed] = rest, rest, rest
	return Breakdown{Time: seconds(times, steps), Sum: seconds(sum, steps), Union: seconds(union, steps)}
}

// going is the first kind of order with an interval at a time, else unattributed. The lists of merged are sorted and do not overlap.
func going(order []string, merged map[string][]interval, at int64) string {
	for _, kind := range order {
		list := merged[kind]
		i, _ := slices.BinarySearchFunc(list, at, func(i interval, at int64) int { return cmp.Compare(i.end, at+1) }) // the first to end later
		if i < len(list) && list[i].start <= at {
			return kind
		}
	}
	return spans.PartUnattributed
}

// stages are the shares of a pass's stages, by part, as printed in the log. They add up to 1: the server's time is taken out of receiving, in which it lies.
func stages(calls rpcs) map[string]float64 {
	all, sums := map[string]float64{}, calls.sums()
	for stage, ns := range map[string]int64{
		spans.PartRPCSerialize: sums[serialize], spans.PartRPCSend: sums[send], spans.PartRPCReceive: sums[receive] - sums[server], spans.PartRPCServer: sums[server],
		spans.PartRPCDeserialize: sums[deserialize], spans.PartRPCUnattributed: sums[whole] - sums[communication],
	} {
		all[stage] = float64(ns) / float64(sums[whole])
	}
	return all
}

// seconds turns ns by kind into s by part: the time of the pass of each step is split by the shares of its stages, and parts without time are dropped.
func seconds(ns map[string]int64, steps []doneStep) map[string]float64 {
	all := map[string]float64{}
	for i := range steps {
		took := float64(ns[passKind(i)]) / 1e9
		for stage, share := range stages(steps[i].rpcs) {
			if took*share > 0 {
				all[stage] += took * share
			}
		}
		delete(ns, passKind(i))
	}
	for kind, v := range ns {
		if v > 0 {
			all[kind] = float64(v) / 1e9
		}
	}
	return all
}
