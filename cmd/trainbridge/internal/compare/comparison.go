package compare

import (
	"cmp"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Confidence is of all intervals together: the share of comparisons of two equal runs without a finding.
const Confidence = 0.95

// The sections of a comparison.
const (
	sectionSteps       = "steps"
	sectionBreakdown   = "breakdown"
	sectionTimers      = "timers"
	sectionFunctions   = "transfer_queue"
	sectionPasses      = "rpc"
	sectionCollectives = "collectives"
	sectionLoss        = "loss"
)

// The rows of a breakdown besides the parts.
const (
	nameWhole = "whole"
	nameUsual = "without checkpoint and evaluation"
	nameOther = "other"
)

// Whether high or low values are better.
const (
	lowerIsBetter  = -1
	higherIsBetter = 1
)

// figure is a measured quantity, such as the time of a step, with its values in both runs.
type figure struct {
	section string
	of      string // whose: a window, a function, an operation; "" in a section about one thing
	name    string
	unit    string // s, By/s, 1/s, FLOP/s, 1 or ""
	better  int    // lowerIsBetter or higherIsBetter; 0: neither, of times of steps with unlike work
	paired  bool   // a[i] and b[i] are of the same step

	a, b             []unit // in order of time
	countA, countB   int    // values
	medianA, medianB float64
	likeA, likeB     []float64 // the means of units, or the differences of pairs, for their autocorrelation time

	blockA, blockB int // steps that are drawn together
	estimate
}

// id returns the identifier of a figure: "breakdown/step/compute".
func (f *figure) id() string { return strings.Join([]string{f.section, f.of, f.name}, "/") }

// Comparison is two runs side by side.
type Comparison struct {
	a, b       *Run
	facts      []fact
	figures    []*figure
	confidence float64 // of each interval
	work       float64 // of a step in B, by a step in A: tokens, else samples; NaN: not known
	workOf     *figure // the throughput that work is made of
	unitsA     string  // what is drawn: steps, or traces where a run has no steps
	unitsB     string
	accounts   accounts
	lossA      lastLoss
	lossB      lastLoss
}

// lastLoss is the last loss of a run; its zero value: the run has none.
type lastLoss struct {
	step int64
	loss float64
}

// collectiveRanks is the fact in place of a missing world size.
const collectiveRanks = "ranks of the largest collective"

// fact is a setting or property of both runs, from their logs.
type fact struct {
	name    string
	a, b    []string // values; none: not in the log
	differs bool
	needed  bool // runs with different values cannot be compared
}

// Comparable reports whether a difference may come from the change, and not from another model, batch or number of GPUs.
func (c *Comparison) Comparable() bool {
	return !slices.ContainsFunc(c.facts, func(f fact) bool { return f.differs && f.needed })
}

// side is a run whose values are grouped into units. A unit is a step, by its number in order of time; the first, 0, is warm-up.
type side struct {
	*Run
	log     string            // the format of the training log whose steps are the units
	steps   map[int64]int     // the unit of an iteration
	ends    []int64           // of the units, ns
	traces  map[uint64]int    // the unit of a trace
	covered map[int64]float64 // how many steps the record of an iteration covers
}

// newSide finds the steps of a run, in the training log of a format, else in the windows of steps. An iteration is a step, and steps are in the order of their
// ends. A run with neither has no steps.
func newSide(run *Run, log string) *side {
	s := &side{Run: run, log: log, steps: map[int64]int{}, covered: map[int64]float64{}, traces: map[uint64]int{}}
	rows := cmp.Or(run.steps[log], run.windows[spans.WindowStep])
	if rows == nil {
		return s
	}
	end := map[int64]int64{} // of an iteration, which may have several records
	// The first row may not be among the kept rows, but is the warm-up; it has no values.
	for _, r := range append([]row{rows.first}, rows.sorted()...) {
		if r.step == noStep {
			continue
		}
		end[r.step] = max(end[r.step], r.end)
		if run.steps[log] != nil && len(r.values) == stepColumns {
			s.covered[r.step] = max(1, r.values[stepCovered])
		}
	}
	order := slices.SortedFunc(maps.Keys(end), func(a, b int64) int { return cmp.Or(cmp.Compare(end[a], end[b]), cmp.Compare(a, b)) })
	for i, step := range order {
		s.steps[step] = i
		s.ends = append(s.ends, end[step])
	}
	for _, r := range rows.rows {
		if i, ok := s.steps[r.step]; ok {
			s.traces[r.trace] = i
		}
	}
	return s
}

// firstTrace is the number of the first unit that is a trace, beyond the numbers of all steps.
const firstTrace = 1 << 40

// unitOf returns the unit of a row: its step; else the step of its trace; else the step during which the row began, or the last one if the row began after all
// steps. Without steps, or with made-up times, the unit is the trace itself, with a number from firstTrace on; traces has the numbers given so far.
func (s *side) unitOf(r *row, traces map[uint64]int) int {
	if i, ok := s.steps[r.step]; ok && r.step != noStep {
		return i
	}
	if i, ok := s.traces[r.trace]; ok {
		return i
	}
	if len(s.ends) > 0 && !r.madeUp {
		i, _ := slices.BinarySearch(s.ends, r.start+1) // the first step that ends after the row's start
		return min(i, len(s.ends)-1)
	}
	i, ok := traces[r.trace]
	if !ok {
		i = firstTrace + len(traces)
		traces[r.trace] = i
	}
	return i
}

// units groups the values of a column into units, without the first unit, the warm-up. fill replaces missing values, unless NaN. scale, if not nil, returns a
// factor for the values of a row. like has the means of the units, values all values.
func (s *side) units(of *sample, column int, fill float64, scale func(*row) float64) (units []unit, like, values []float64) {
	if of == nil {
		return nil, nil, nil
	}
	by := map[int]unit{}
	traces := map[uint64]int{}
	for _, r := range of.sorted() {
		at := s.unitOf(&r, traces)
		v := r.values[column]
		if math.IsNaN(v) {
			v = fill
		}
		warmUp := at == 0 || at == firstTrace
		if warmUp || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if scale != nil {
			v *= scale(&r)
		}
		u := by[at]
		by[at] = unit{u.sum + v, u.count + 1}
		values = append(values, v)
	}
	for _, at := range slices.Sorted(maps.Keys(by)) {
		units = append(units, by[at])
		like = append(like, by[at].sum/by[at].count)
	}
	return units, like, values
}

// Compare compares two runs: their facts, their accounts, and each figure that at least one of them has.
func Compare(a, b *Run) *Comparison {
	c := &Comparison{a: a, b: b, accounts: accountsOf(a, b), work: math.NaN()}
	logA, logB := chooseLogs(a, b)
	sa, sb := newSide(a, logA), newSide(b, logB)
	c.unitsA, c.unitsB = unitNames(sa), unitNames(sb)
	c.compareFacts()
	c.addSteps(sa, sb)
	c.addWindows(sa, sb)
	c.addTimers(sa, sb)
	c.addFunctions(sa, sb)
	c.addPasses(sa, sb)
	c.addCollectives(sa, sb)
	c.addLoss(sa, sb)
	if c.unlikeSteps() { // more work takes longer
		for _, f := range c.figures {
			if f.unit == "s" && (f.section == sectionSteps || f.section == sectionBreakdown || f.section == sectionTimers) {
				f.better = 0
			}
		}
	}
	c.estimate()
	return c
}

// unitNames returns what the units of a run are.
func unitNames(s *side) string {
	if len(s.ends) > 0 {
		return "steps"
	}
	return "traces"
}

// chooseLogs returns the training logs to compare, by format: the format with the most records in A among those that both runs have, else the largest of each
// run; "": the run has none.
func chooseLogs(a, b *Run) (ofA, ofB string) {
	largest := func(of *Run, other map[string]*sample) string {
		best := ""
		for _, name := range slices.Sorted(maps.Keys(of.steps)) {
			if (other == nil || other[name] != nil) && (best == "" || of.steps[name].seen > of.steps[best].seen) {
				best = name
			}
		}
		return best
	}
	if both := largest(a, b.steps); both != "" {
		return both, both
	}
	return largest(a, nil), largest(b, nil)
}

// add adds a figure unless neither run has values. The values are a column of a sample of each run; a sample may be nil.
func (c *Comparison) add(f *figure, sa, sb *side, a, b *sample, column int) {
	c.addScaled(f, sa, sb, a, b, column, math.NaN(), math.NaN(), nil, nil)
}

// addScaled is add with replacements for missing values, and with factors for the values of a row (see side.units).
func (c *Comparison) addScaled(f *figure, sa, sb *side, a, b *sample, column int, fillA, fillB float64, scaleA, scaleB func(*row) float64) {
	var va, vb []float64
	f.a, f.likeA, va = sa.units(a, column, fillA, scaleA)
	f.b, f.likeB, vb = sb.units(b, column, fillB, scaleB)
	f.countA, f.countB, f.medianA, f.medianB = len(va), len(vb), stat.Middle(va), stat.Middle(vb)
	if len(va)+len(vb) > 0 {
		c.figures = append(c.figures, f)
	}
}

// addSteps adds the figures of training steps.
func (c *Comparison) addSteps(sa, sb *side) {
	a, b := sa.Run.steps[sa.log], sb.Run.steps[sb.log]
	for _, f := range []struct {
		column, better int
		name, unit     string
	}{
		{stepTime, lowerIsBetter, "time", "s"},
		{stepTokens, higherIsBetter, "tokens/s", "1/s"},
		{stepSamples, higherIsBetter, "samples/s", "1/s"},
		{stepFlopReported, higherIsBetter, "FLOP/s per GPU, as logged", "FLOP/s"},
		{stepFlop, higherIsBetter, "FLOP/s per GPU, recomputed", "FLOP/s"},
		{stepMFU, higherIsBetter, "MFU", "1"},
	} {
		of := &figure{section: sectionSteps, name: f.name, unit: f.unit, better: f.better}
		c.add(of, sa, sb, a, b, f.column)
		if work := stepWork(b, f.column) / stepWork(a, f.column); f.unit == "1/s" && c.workOf == nil && work > 0 {
			c.work, c.workOf = work, of
		}
	}
}

// stepWork returns the mean work of a step, its time by the throughput in a column; NaN: not in the log.
func stepWork(of *sample, throughput int) float64 {
	sum, n := 0.0, 0.0
	if of != nil {
		for _, r := range of.rows {
			if w := r.values[stepTime] * r.values[throughput]; w > 0 && !math.IsInf(w, 0) {
				sum, n = sum+w, n+1
			}
		}
	}
	return sum / n
}

// unlikeWork is the relative difference of the work of steps above which their times are no measure of speed.
const unlikeWork = 0.05

// unlikeSteps reports whether a step of B does a different amount of work than a step of A.
func (c *Comparison) unlikeSteps() bool { return math.Abs(c.work-1) > unlikeWork }

// addWindows adds the breakdown of the outermost windows that both runs have: steps, else batches, else passes. Times of a window that covers several steps are
// divided by their number.
func (c *Comparison) addWindows(sa, sb *side) {
	for _, of := range []string{spans.WindowStep, spans.WindowBatch, spans.WindowPass} {
		a, b := sa.windows[of], sb.windows[of]
		if a == nil || b == nil {
			continue
		}
		perStep := func(s *side) func(*row) float64 {
			return func(r *row) float64 {
				if n := s.covered[r.step]; n > 1 {
					return 1 / n
				}
				return 1
			}
		}
		add := func(column int, name string, fillA, fillB float64) {
			f := &figure{section: sectionBreakdown, of: of, name: name, unit: "s", better: lowerIsBetter}
			c.addScaled(f, sa, sb, a, b, column, fillA, fillB, perStep(sa), perStep(sb))
		}
		add(len(partNames)+windowWhole, nameWhole, math.NaN(), math.NaN())
		// The time without checkpoint and evaluation differs from the whole only if a run has either.
		for _, column := range []int{slices.Index(partNames, spans.PartCheckpoint), slices.Index(partNames, spans.PartEvaluation)} {
			if !math.IsNaN(fillOf(a, column)) || !math.IsNaN(fillOf(b, column)) {
				add(len(partNames)+windowUsual, nameUsual, math.NaN(), math.NaN())
				break
			}
		}
		for column, name := range append(slices.Clone(partNames), nameOther) {
			add(column, name, fillOf(a, column), fillOf(b, column))
		}
		return
	}
}

// fillOf returns the value of a part without time in a window: 0, or NaN if the logs of the run never have the part.
func fillOf(of *sample, column int) float64 {
	if slices.ContainsFunc(of.rows, func(r row) bool { return !math.IsNaN(r.values[column]) }) {
		return 0
	}
	return math.NaN()
}

// namesOf returns the names that either run has, sorted.
func namesOf(a, b map[string]*sample) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// addTimers adds the trainer's own timers, into which the time of computing is divided: two runs may be equally fast with one part longer and another shorter.
func (c *Comparison) addTimers(sa, sb *side) {
	for _, name := range namesOf(sa.timers, sb.timers) {
		c.add(&figure{section: sectionTimers, name: name, unit: "s", better: lowerIsBetter}, sa, sb, sa.timers[name], sb.timers[name], 0)
	}
}

// addFunctions adds the times of TransferQueue's functions, in the columns of runs.addSpan.
func (c *Comparison) addFunctions(sa, sb *side) {
	for _, of := range namesOf(sa.functions, sb.functions) {
		for column, name := range []string{"time", "get", "compute", "put"} {
			c.add(&figure{section: sectionFunctions, of: of, name: name, unit: "s", better: lowerIsBetter}, sa, sb, sa.functions[of], sb.functions[of], column)
		}
	}
}

// addPasses adds the times of RPC passes, in the columns of runs.addSpan: the stages, the whole, the throughput.
func (c *Comparison) addPasses(sa, sb *side) {
	add := func(column, better int, name, unit string) {
		c.add(&figure{section: sectionPasses, name: name, unit: unit, better: better}, sa, sb, sa.passes, sb.passes, column)
	}
	add(int(view.RPCTransport), lowerIsBetter, "time", "s") // the columns before are the stages
	for stage := range view.RPCTransport {
		add(int(stage), lowerIsBetter, stage.String(), "s")
	}
	add(int(view.RPCTransport)+1, higherIsBetter, "throughput", "By/s")
}

// addCollectives adds time, bandwidth and waiting of each operation of each communicator.
func (c *Comparison) addCollectives(sa, sb *side) {
	for _, of := range namesOf(sa.collectives, sb.collectives) {
		for _, f := range []struct {
			column, better int
			name, unit     string
		}{
			{collectiveTime, lowerIsBetter, "time", "s"},
			{collectiveBandwidth, higherIsBetter, "bus bandwidth", "By/s"},
			{collectiveWait, lowerIsBetter, "wait for the last rank", "s"},
		} {
			c.add(&figure{section: sectionCollectives, of: of, name: f.name, unit: f.unit, better: f.better}, sa, sb,
				sa.collectives[of], sb.collectives[of], f.column)
		}
	}
}

// addLoss adds the loss at equal steps, without the warm-up of either run. The values are pairs, so that the fall of the loss during training is not taken for
// chance. addLoss also sets the last loss of each run.
func (c *Comparison) addLoss(sa, sb *side) {
	a, b := losses(sa), losses(sb)
	f := &figure{section: sectionLoss, name: "at equal steps", paired: true, better: lowerIsBetter}
	var va, vb []float64
	for _, step := range slices.Sorted(maps.Keys(a)) {
		c.lossA = lastLoss{step, a[step].sum / a[step].count}
		warmUp := sa.steps[step] == 0 || sb.steps[step] == 0
		if _, ok := b[step]; !ok || warmUp {
			continue
		}
		x, y := a[step].sum/a[step].count, b[step].sum/b[step].count
		f.a, f.b = append(f.a, unit{x, 1}), append(f.b, unit{y, 1})
		f.likeA = append(f.likeA, y-x)
		va, vb = append(va, x), append(vb, y)
	}
	for _, step := range slices.Sorted(maps.Keys(b)) {
		c.lossB = lastLoss{step, b[step].sum / b[step].count}
	}
	f.likeB = f.likeA
	f.countA, f.countB, f.medianA, f.medianB = len(va), len(vb), stat.Middle(va), stat.Middle(vb)
	if len(va) > 0 {
		c.figures = append(c.figures, f)
	}
}

// losses returns the finite losses by iteration; several records of an iteration are one unit.
func losses(s *side) map[int64]unit {
	by := map[int64]unit{}
	of := s.Run.steps[s.log]
	if of == nil {
		return by
	}
	for _, r := range of.sorted() {
		if v := r.values[stepLoss]; !math.IsNaN(v) && r.step != noStep {
			u := by[r.step]
			by[r.step] = unit{u.sum + v, u.count + 1}
		}
	}
	return by
}

// countCompared returns how many figures both runs have.
func (c *Comparison) countCompared() (n int) {
	for _, f := range c.figures {
		if len(f.a) > 0 && len(f.b) > 0 {
			n++
		}
	}
	return n
}

// estimate computes the intervals of all figures, each wide enough for all to hold at once (Bonferroni).
func (c *Comparison) estimate() {
	c.confidence = 1 - (1-Confidence)/float64(max(1, c.countCompared()))
	var workers sync.WaitGroup
	next := make(chan *figure)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for f := range next {
				f.estimateOne(c.confidence)
			}
		})
	}
	for _, f := range c.figures {
		next <- f
	}
	close(next)
	workers.Wait()
}

// estimateOne computes the interval of a figure with the given confidence.
func (f *figure) estimateOne(confidence float64) {
	a, lengthA, tauA := blocksOf(f.a, f.likeA)
	b, lengthB, tauB := blocksOf(f.b, f.likeB)
	f.blockA, f.blockB = lengthA, lengthB
	f.estimate = compareMeans(f.id(), a, b, f.paired, confidence)
	f.correctDrift(tauA, tauB, confidence)
}

// compareFacts pairs the facts of both runs by name. If no log has the world size, the number of ranks of the largest collective is a fact instead.
func (c *Comparison) compareFacts() {
	all := map[string]bool{}
	for _, of := range []*Run{c.a, c.b} {
		for name := range of.facts {
			all[name] = true
		}
	}
	if !all[spans.AttrWorldSize] {
		for _, of := range []*Run{c.a, c.b} {
			if of.ranks > 0 {
				of.addFact(collectiveRanks, strconv.FormatInt(of.ranks, 10))
				all[collectiveRanks] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := fact{name: name, a: c.a.values(name), b: c.b.values(name), needed: name != spans.AttrDeviceModel} // other GPUs may be what is compared
		f.differs = len(f.a) > 0 && len(f.b) > 0 && !slices.Equal(f.a, f.b)
		c.facts = append(c.facts, f)
	}
}
