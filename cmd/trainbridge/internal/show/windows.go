package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// told is how many slow windows the text above the table names, those that lost most time.
const told = 5

// windows is the domain of step_join's additions: where the time of windows (steps, batches and passes) went, and what else happened meanwhile.
var windows = domain{
	key:  "windows",
	help: tables.WindowsHelp, rows: tables.Windows, table: windowTable,
	subject: rootTitle,
	details: joinedDetails,
	label:   joinedLabel,
	duration: func(s *tree.Span) (int64, bool) {
		v := aggregateOf(s)
		return int64(v.Sum * 1e9), v.JoinBy != "" && !math.IsNaN(v.Sum)
	},
	below:       withoutBreakdowns,
	order:       longestOfEach,
	foldDetails: foldedJoined,
	parallel:    func(s *tree.Span) bool { return s.Kind == view.KindRoot },
	notes:       joinedNotes,
}

// windowTable prints which windows of the outermost kind (steps, else batches, else passes) were slow and why, and a table of where the time of all of them
// went. For the kinds within, such as the batches of steps, only the numbers of verdicts are printed.
func windowTable(w *strings.Builder, d *digest.Digest, l style) {
	all := d.Windows.Rows()
	if len(all) == 0 {
		return
	}
	first := all[0]
	for _, s := range first.Slow[:min(told, len(first.Slow))] {
		printParagraph(w, reading.Clean(cmp.Or(s.Of.Reason, human.Seconds(s.Of.Took)+" is longer than usual")), severityColour[spans.SeverityWarning], l)
	}
	_, several := tables.Window(first.Of, false)
	if more := first.SlowCount - told; more > 0 {
		printParagraph(w, fmt.Sprintf("and %d more slow %s", more, several), "", l)
	}
	if first.SlowCount > 0 {
		w.WriteByte('\n')
	}
	t := tables.Parts(first, false)
	t.Head[0] = "where the time of " + several + " went"
	printTable(w, &t, l)
	for _, other := range all[1:] {
		_, several := tables.Window(other.Of, false)
		printVerdictCounts(w, several, other.Verdicts, l)
	}
}

// rootTitle returns what step_join joined under its root of a trace: "step 12, 3 functions, 1 pass"; "": the trace has no such root.
func rootTitle(t *tree.Trace) string {
	root := rootOf(t)
	if root == nil {
		return ""
	}
	var about []string
	if s := breakdownOf(t); s != nil {
		var b view.Breakdown
		if b.Read(s.Span); b.Iteration.OK {
			about = append(about, "step "+strconv.FormatInt(b.Iteration.N, 10))
		}
	}
	count := map[view.Kind]int{}
	for _, s := range t.Spans {
		count[s.Kind]++
		// A copy of a pass counts as a pass if drawn below the root itself; a copy below an aggregate is in the aggregate's count.
		if s.Kind == view.KindJoined && s.Name() == spans.SpanRPCPass && s.Parent == root {
			count[view.KindPass]++
		}
		if s.Kind == view.KindAggregate {
			v := aggregateOf(s)
			switch {
			case v.JoinBy != "" && v.ofCollectives:
				count[view.KindCollective] += int(v.Count.N)
			case v.JoinBy != "" && s.Name() == spans.SpanRPCPass:
				count[view.KindPass] += int(v.Count.N)
			case v.JoinBy != "" && !strings.HasPrefix(s.Name(), "rpc."): // neither collectives nor RPCs
				count[view.KindFunction] += int(v.Count.N)
			}
		}
	}
	for _, of := range []struct {
		kind view.Kind
		one  string
	}{{view.KindFunction, "function"}, {view.KindPass, "pass"}, {view.KindCollective, "collective"}} {
		if n := count[of.kind]; n > 0 {
			about = append(about, human.Plural(n, of.one))
		}
	}
	return strings.Join(about, ", ")
}

// rootOf returns the root that step_join added to a trace, or nil.
func rootOf(t *tree.Trace) *tree.Span {
	for _, s := range t.Roots {
		if s.Kind == view.KindRoot {
			return s
		}
	}
	return nil
}

// aggregate is a span that stands for many spans of a name, with their count, sum and longest.
type aggregate struct {
	view.Aggregate
	ofCollectives bool // only aggregates of collectives have a time of waiting
}

// aggregateOf returns the values of an aggregate of step_join; JoinBy is how step_join found the spans that it stands for. For any other span, aggregates of
// receivers included, JoinBy is empty.
func aggregateOf(s *tree.Span) (v aggregate) {
	if s.Kind != view.KindAggregate {
		return aggregate{}
	}
	v.Read(s.Span)
	v.ofCollectives = !math.IsNaN(v.Wait)
	return v
}

// joinedLabel returns the label of a span of step_join. end is " ×12" for an aggregate of 12 spans, and " rank 3 +1.2 s" for the copy of a collective in which
// rank 3 came last, by 1.2 s.
func joinedLabel(s *tree.Span) (name, end string, ok bool) {
	switch s.Kind {
	case view.KindAggregate:
		v := aggregateOf(s)
		if v.JoinBy == "" {
			return "", "", false
		}
		return reading.Clean(s.Name()), fmt.Sprintf(" ×%d", v.Count.N), true
	case view.KindJoined:
		var v view.Collective
		v.Read(s.Span)
		if v.Last.Late > 0 {
			end = " +" + human.Seconds(v.Last.Late)
			if v.Last.Rank.OK {
				end = fmt.Sprintf(" rank %d%s", v.Last.Rank.N, end)
			}
		}
		return reading.Clean(s.Name()), end, true
	}
	return "", "", false
}

// joinedDetails returns the details of a span of step_join. For an aggregate: the waiting, the longest, the communicator and how the spans were found. For a
// copy of a span from another trace: the id of that trace and whether the time is unknown. For a breakdown: the three longest parts.
func joinedDetails(s *tree.Span) (d []string) {
	switch s.Kind {
	case view.KindAggregate:
		v := aggregateOf(s)
		if v.JoinBy == "" {
			return nil
		}
		if v.Wait > 0 {
			d = append(d, "waited "+human.Seconds(v.Wait))
		}
		if !math.IsNaN(v.Max) {
			d = append(d, "longest "+human.Seconds(v.Max))
		}
		if v.CommName != "" {
			d = append(d, reading.Clean(v.CommName))
		}
		d = append(d, "by "+reading.Clean(v.JoinBy))
	case view.KindJoined:
		var m view.Mark
		m.Read(s.Span, s.Resource)
		below := s.Parent != nil && s.Parent.Kind == view.KindJoined    // the copy above says so already
		if m.Time == spans.TimeSynthetic && s.Parent != nil && !below { // without a parent the row says "parent missing" (details)
			d = append(d, "when is not in the log")
		}
		for _, link := range s.Links().All() {
			d = append(d, "trace "+link.TraceID().String())
		}
	case view.KindBreakdown:
		parts := partsOf(s)
		for _, p := range parts[:min(3, len(parts))] {
			d = append(d, reading.Clean(p.Part)+" "+human.Seconds(p.Seconds))
		}
	}
	return d
}

// partsOf returns the parts of a breakdown that took time, the longest first, but unattributed time last.
func partsOf(s *tree.Span) []view.PartTime {
	var b view.Breakdown
	b.Read(s.Span)
	parts := slices.DeleteFunc(b.Times, func(p view.PartTime) bool { return !(p.Seconds > 0 || p.Union > 0) }) // NaN too
	slices.SortStableFunc(parts, func(a, b view.PartTime) int {
		last := func(p view.PartTime) int {
			if p.Part == spans.PartUnattributed {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(b.Seconds, a.Seconds))
	})
	return parts
}

// withoutBreakdowns removes breakdowns, which are in a table above the drawing. From level 3 on, only the slowest of the spans below an aggregate of step_join
// is kept.
func withoutBreakdowns(s *tree.Span, children []*tree.Span, e extent) (drawn, told []*tree.Span) {
	drawn = slices.DeleteFunc(slices.Clone(children), func(c *tree.Span) bool { return c.Kind == view.KindBreakdown })
	if e.level > 2 && len(drawn) > 1 && aggregateOf(s).JoinBy != "" {
		slices.SortStableFunc(drawn, func(a, b *tree.Span) int { return cmp.Compare(b.NS(), a.NS()) })
		drawn = drawn[:1]
	}
	return drawn, nil
}

// bareAt is the level of extent from which a child of step_join's root is drawn bare, without the spans below.
var bareAt = map[view.Kind]int{view.KindCollective: 1, view.KindPass: 2, view.KindFunction: 5}

// othersBareAt is the level from which functions beside the longest of their name are drawn bare.
const othersBareAt = 3

// longestOfEach orders the children of the root of step_join in a brief drawing: for each name the longest, as many as e.roots (all if e.calls is 0), and a row
// for the rest. Collectives have only one row for each name.
func longestOfEach(s *tree.Span, children []*tree.Span, e extent) (drawn []child, ok bool) {
	if s.Kind != view.KindRoot || !e.brief {
		return nil, false
	}
	by := map[string][]*tree.Span{}
	var order []string
	for _, c := range children {
		if by[c.Name()] == nil {
			order = append(order, c.Name())
		}
		by[c.Name()] = append(by[c.Name()], c)
	}
	for _, name := range order {
		same := by[name]
		keep := e.roots // how many of the name are drawn with a row of their own
		if e.calls == 0 {
			keep = len(same)
		}
		slices.SortStableFunc(same, func(a, b *tree.Span) int { return cmp.Compare(b.NS(), a.NS()) })
		if same[0].Kind == view.KindCollective {
			keep = 0
		}
		if len(same) <= keep+1 { // a row for a single span saves little
			keep = len(same)
		}
		for i, c := range same[:keep] {
			bare := bareAt[c.Kind] > 0 && e.level >= bareAt[c.Kind]
			drawn = append(drawn, child{Span: c, bare: bare || i > 0 && e.level >= othersBareAt && c.Kind == view.KindFunction})
		}
		if rest := same[keep:]; len(rest) > 0 {
			f := newFold(rest[0])
			f.whole = keep == 0
			for _, c := range rest[1:] {
				f.add(c)
			}
			drawn = append(drawn, child{Span: rest[0], fold: f})
		}
	}
	return drawn, true
}

// foldedJoined returns two texts about folded collectives: the sum of their durations, as "together 1.2 s", and the sum of the waiting in them, as "waited
// 0.3 s". nil: the parent of the fold is no root of step_join, or a folded span is neither a collective nor an aggregate of step_join.
func foldedJoined(f *fold) []string {
	if f.parent == nil || f.parent.Kind != view.KindRoot {
		return nil
	}
	sum, late := 0.0, 0.0 // ns
	for _, s := range f.spans {
		switch s.Kind {
		case view.KindCollective:
			var v view.Collective
			v.Read(s.Span)
			sum += digest.CollectiveDuration(s.Span, &v) * 1e9
			if v.Last.Late > 0 {
				late += v.Last.Late * 1e9
			}
		case view.KindAggregate:
			v := aggregateOf(s)
			if v.JoinBy == "" {
				return nil
			}
			sum += v.Sum * 1e9
			if v.Wait > 0 {
				late += v.Wait * 1e9
			}
		default:
			return nil
		}
	}
	return []string{"together " + human.Seconds(sum/1e9), "waited " + human.Seconds(late/1e9)}
}

// joinedNotes returns the note that explains the sign ×, if a row is an aggregate of step_join.
func joinedNotes(_ *tree.Trace, rows []row) []string {
	if !slices.ContainsFunc(rows, func(r row) bool { return aggregateOf(r.Span).JoinBy != "" }) {
		return nil
	}
	return []string{"rows with × sum up spans of other traces, joined by process, host or run; the slowest of these are below"}
}

// withLoggedAxis returns the trace with a Start and End, the axis of the drawing, from spans with logged times alone: below the root of step_join may be spans
// of logs without times, whose synthetic times may lie hours away. A trace without such a root, or without logged times, is returned unchanged.
func withLoggedAxis(t *tree.Trace) *tree.Trace {
	if rootOf(t) == nil {
		return t
	}
	f := *t
	f.Start, f.End = math.MaxInt64, 0
	var m view.Mark
	for _, s := range t.Spans {
		if m.Read(s.Span, s.Resource); m.Time == spans.TimeSynthetic {
			continue
		}
		f.Start, f.End = min(f.Start, s.Start()), max(f.End, s.End())
	}
	if f.Start > f.End { // all times are synthetic
		return t
	}
	return &f
}

// leavesAxis reports whether a span lies outside of the axis of a trace (see withLoggedAxis) and its parent does not: a subtree needs only one note.
func leavesAxis(s *tree.Span, t *tree.Trace) bool {
	out := func(s *tree.Span) bool { return s.End() < t.Start || s.Start() > t.End }
	return out(s) && (s.Parent == nil || !out(s.Parent))
}

// breakdownOf returns the breakdown of the longest window of a trace, or nil. The longest window is the outermost: a batch lies in its step.
func breakdownOf(t *tree.Trace) (longest *tree.Span) {
	for _, s := range t.Spans {
		if s.Kind == view.KindBreakdown && (longest == nil || s.NS() > longest.NS()) {
			longest = s
		}
	}
	return longest
}

// roomFor returns how many lines the rows of a waterfall may have: maxLines without the table of the breakdown above, which has a head and a line for each
// part.
func roomFor(t *tree.Trace) int {
	if s := breakdownOf(t); s != nil {
		return maxLines - len(partsOf(s)) - 1
	}
	return maxLines
}

// printBreakdown prints, above a waterfall, why the longest window of the trace was slow, and a table of where the time of that window went; nothing without a
// window.
func printBreakdown(w *strings.Builder, t *tree.Trace, l style) {
	s := breakdownOf(t)
	if s == nil {
		return
	}
	if slow, ok := digest.SlowOf(s.Span); ok && slow.Reason != "" {
		printParagraph(w, reading.Clean(slow.Reason), severityColour[spans.SeverityWarning], l)
	}
	breakdownTable(w, s, l)
}

// breakdownTable prints a row per part of a window: the part's time and its share as a number and a bar, the sum over overlapping spans, and the wall-clock
// time that they cover. Below: GPUs, errors of GPUs, and whether the window may lack spans.
func breakdownTable(w *strings.Builder, s *tree.Span, l style) {
	var b view.Breakdown
	b.Read(s.Span)
	of, _ := tables.Window(b.Window, false)
	if b.Iteration.OK {
		of += " " + strconv.FormatInt(b.Iteration.N, 10)
	}
	whole := b.Length()
	g := tables.Table{
		Head: []string{"the " + human.Seconds(whole) + " of " + of, "time", "share", "", "summed", "wall-clock"}, Left: []bool{true, 3: true, 5: false},
	}
	cells := min(40, max(10, l.width-70)) // of the bars; the other columns take about 70
	for _, p := range partsOf(s) {
		share := p.Seconds / whole
		bar := ""
		if whole > 0 {
			bar = strings.Repeat("█", min(cells, int(math.Round(share*float64(cells)))))
		}
		cells := textCells(reading.Clean(p.Part), human.Seconds(p.Seconds), human.Percent(share), bar, human.Seconds(p.Sum), human.Seconds(p.Union))
		cells[3].Severity = "36"
		g.Add(cells...)
	}
	printTable(w, &g, l)
	if text := gpusText(&b.GPUs); text != "" {
		printParagraph(w, text, "", l)
	}
	for _, e := range s.Events().All() {
		if e.Name() == spans.EventGPUXID {
			printParagraph(w, xidText(e.Attributes()), severityColour[spans.SeverityBad], l)
		}
	}
	switch {
	case b.PartialReason == spans.PartialClocks:
		printParagraph(w, "the clocks of the hosts differ: what other hosts logged counts only where its place in time is certain", "2", l)
	case b.Partial:
		printParagraph(w, "some time may be missing here: a collector restarted meanwhile, or had no room to wait for all records", "2", l)
	}
	w.WriteByte('\n')
}

// gpusText returns the known values about the GPUs of a window ("8 GPUs, 96 samples: busy 91 %, least 40 %, …"); "": there is no sample.
func gpusText(g *view.GPUs) string {
	if g.Count.N == 0 {
		return ""
	}
	var all detailList
	all.add(g.Utilization, human.Percent, "busy ")
	all.add(g.UtilizationMin, human.Percent, "least ")
	all.add(g.Power, human.Watts, "")
	all.add(g.Temperature, human.Celsius, "")
	all.add(g.TemperatureMax, human.Celsius, "hottest ")
	all.add(g.Clock, human.Hertz, "")
	all.add(g.ClockMin, human.Hertz, "slowest ")
	for _, t := range g.Throttled {
		all = append(all, "held down for "+human.Seconds(t.Seconds)+" ("+reading.Clean(t.Cause)+")")
	}
	return fmt.Sprintf("%s, %s: %s", human.Plural(int(g.Count.N), "GPU"), human.Plural(int(g.Samples.N), "sample"), strings.Join(all, ", "))
}

// xidText returns the error (an XID, NVIDIA's number), the GPU and the host in the event of a report of the driver.
func xidText(event pcommon.Map) string {
	of := func(key string) string { return reading.Clean(spans.AttrText(event, key)) }
	return fmt.Sprintf("XID %s of %s on %s", of(spans.AttrErrorType), of(spans.AttrHardwareName), of(spans.AttrHostName))
}
