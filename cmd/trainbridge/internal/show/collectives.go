package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/spans"
)

// isCollective says whether a span is the root of a collective, or a Send or Recv.
func (s *span) isCollective() bool {
	_, ok := s.number(spans.AttrNCCLRanks)
	return ok
}

// isRank says whether a span is what one rank did in a collective.
func (s *span) isRank() bool {
	return spans.IsNCCLRank(s.Name()) && s.parent != nil && s.parent.isCollective() && !s.aggregate()
}

// isPhase says whether a span is when a rank was late, waited or transferred: its rank's bar shows that.
func (s *span) isPhase() bool {
	return spans.IsNCCLPhase(s.Name()) && s.parent != nil && s.parent.isRank()
}

// own is how long a rank took part, ns: the one that came last is drawn in the trace from when the first came.
func (s *span) own() int64 {
	if transfer, ok := s.parent.number(spans.AttrNCCLTransferDuration); ok && s.attr(spans.AttrNCCLLast) != "" {
		return int64(transfer * 1e9)
	}
	return s.ns()
}

// rank is its number in the communicator, −1 where that is not known.
func (s *span) rank() float64 {
	if v, ok := s.number(spans.AttrNCCLCommRank); ok {
		return v
	}
	return -1
}

// late is how late it came after the first, s; −1 where that is not known.
func (s *span) late() float64 {
	if v, ok := s.number(spans.AttrNCCLLate); ok {
		return v
	}
	return -1
}

// last says whether a rank came last.
func (s *span) last() bool {
	v, ok := s.parent.number(spans.AttrNCCLLateRank)
	return ok && v == s.rank()
}

// took is the duration of a collective from the first arrival on, ns.
func (s *span) took() float64 {
	if v, ok := s.number(spans.AttrNCCLDuration); ok {
		return v * 1e9
	}
	return float64(s.ns())
}

func (s *span) operation() string { return clean(cmp.Or(s.attr(spans.AttrNCCLOperation), s.Name())) }

// communicator is its name, else its id.
func (s *span) communicator() string {
	name := s.attr(spans.AttrNCCLCommName)
	if name == "unknown" { // as NCCL Inspector says when it has none
		name = ""
	}
	return clean(cmp.Or(name, s.attr(spans.AttrNCCLCommID), "-"))
}

// title says which collective it is.
func (s *span) title() string {
	text := s.operation()
	if n, ok := s.number(spans.AttrNCCLSequence); ok {
		text += fmt.Sprintf(" %.0f", n)
	}
	if comm := s.communicator(); comm != "-" {
		text += " of " + comm
	}
	if n, _ := s.number(spans.AttrNCCLRanks); n > 1 {
		text += ", " + plural(int(n), "rank")
	}
	return text
}

// collective is the root of a trace, nil if it is about something else.
func (t *trace) collective() *span {
	for _, s := range t.roots {
		if s.isCollective() {
			return s
		}
	}
	return nil
}

// compareLate orders collectives by how late their last rank was, then by how long they took.
func (s *span) compareLate(o *span) int {
	if s == nil || o == nil {
		return 0
	}
	a, _ := s.number(spans.AttrNCCLLateMax)
	b, _ := o.number(spans.AttrNCCLLateMax)
	return cmp.Or(cmp.Compare(a, b), cmp.Compare(s.took(), o.took()))
}

// collectiveGroup is what the collectives of one kind in one communicator have in common.
type collectiveGroup struct {
	id, communicator, operation string
	count, incomplete           int
	took, bus, late             []float64 // ns, By/s, ns
	last                        map[string]int
	verdicts                    *tallies
}

func (g *collectiveGroup) add(s *span) {
	g.verdicts.count(s)
	g.count++
	if s.incomplete() {
		g.incomplete++
		return
	}
	g.took = append(g.took, s.took())
	if v, ok := s.number(spans.AttrNCCLBandwidthBus); ok {
		g.bus = append(g.bus, v)
	}
	if v, ok := s.number(spans.AttrNCCLLateMax); ok {
		g.late = append(g.late, v*1e9)
	}
	if rank, ok := s.number(spans.AttrNCCLLateRank); ok {
		who := fmt.Sprintf("rank %.0f", rank)
		if host := s.attr(spans.AttrNCCLLateHost); host != "" {
			who += " on " + clean(host)
		}
		g.last[who]++
	}
}

// lastMostOften is who was last most often, empty where that is not known.
func (g *collectiveGroup) lastMostOften() string {
	if len(g.last) == 0 {
		return ""
	}
	return byCount(g.last)[0]
}

// culprit is who was last most often, and how often.
func (g *collectiveGroup) culprit() string {
	who := g.lastMostOften()
	if who == "" {
		return "-"
	}
	return fmt.Sprintf("%s (%d×)", who, g.last[who])
}

// groups sorts the collectives by communicator and operation.
func groups(traces []*trace) []*collectiveGroup {
	by := map[[2]string]*collectiveGroup{}
	ids := map[string]map[string]bool{} // by what a communicator is called
	for _, t := range traces {
		for _, s := range t.all {
			if !s.isCollective() {
				continue
			}
			id := clean(s.attr(spans.AttrNCCLCommID))
			k := [2]string{id + "\n" + s.communicator(), s.operation()}
			if by[k] == nil {
				by[k] = &collectiveGroup{id: id, communicator: s.communicator(), operation: k[1], last: map[string]int{}, verdicts: newTallies()}
				if ids[s.communicator()] == nil {
					ids[s.communicator()] = map[string]bool{}
				}
				ids[s.communicator()][id] = true
			}
			by[k].add(s)
		}
	}
	for _, g := range by {
		if len(ids[g.communicator]) > 1 && g.id != "" { // of several with one name
			g.communicator += " " + g.id
		}
	}
	return slices.SortedFunc(maps.Values(by), func(a, b *collectiveGroup) int {
		return cmp.Or(cmp.Compare(a.communicator, b.communicator), cmp.Compare(a.operation, b.operation), cmp.Compare(a.id, b.id))
	})
}

// collectives prints a row per communicator and operation. Times and bandwidths are of those that completed.
func collectives(w *strings.Builder, traces []*trace, width int, p palette) {
	all := groups(traces)
	if len(all) == 0 {
		return
	}
	g := grid{head: []string{"communicator", "operation", "count", "duration p50", "max", "busbw p50 GB/s", "late p50", "max", "last most often"}, left: map[int]bool{1: true, 8: true}}
	for _, c := range all {
		culprit := c.culprit()
		if c.incomplete > 0 {
			culprit += fmt.Sprintf("  %s INCOMPLETE", thousands(c.incomplete))
		}
		g.add(texts(c.communicator, c.operation, strconv.Itoa(c.count), time1(c.took, 0.5), time1(c.took, 1), typical(c.bus, 1e9, "%.1f"),
			time1(c.late, 0.5), time1(c.late, 1), culprit)...)
	}
	g.print(w, width, p)
	for _, c := range all {
		c.verdicts.print(w, c.operation+" of "+c.communicator, width, p)
	}
}

// time1 is a quantile of times in ns.
func time1(ns []float64, q float64) string {
	if len(ns) == 0 {
		return "-"
	}
	return duration(int64(quantile(ns, q)))
}

// latest puts the ranks of a collective in the order in which they are of interest: who came last is first. So many are drawn, the others become one row.
// Bare ranks are drawn without what is below them.
func latest(children []*span, keep int, bare bool) []child {
	var ranks, others []*span
	for _, c := range children {
		if c.isRank() {
			ranks = append(ranks, c)
		} else {
			others = append(others, c)
		}
	}
	slices.SortStableFunc(ranks, func(a, b *span) int {
		return cmp.Or(cmp.Compare(b.late(), a.late()), cmp.Compare(a.rank(), b.rank()))
	})
	if keep == 0 || len(ranks) <= keep+1 { // a row for one saves nothing
		keep = len(ranks)
	}
	var out []child
	for _, c := range ranks[:keep] {
		out = append(out, child{span: c, bare: bare})
	}
	for _, c := range others {
		out = append(out, child{span: c})
	}
	if rest := ranks[keep:]; len(rest) > 0 {
		f := newFold(rest[0])
		for _, c := range rest[1:] {
			f.add(c)
		}
		out = append(out, child{span: rest[0], fold: f})
	}
	return out
}

// collectiveDetails are the numbers of a collective, of a rank or of a part of what it did.
func collectiveDetails(s *span) (d []string) {
	add := func(attr, format string, unit float64) {
		if v, ok := s.number(attr); ok {
			d = append(d, fmt.Sprintf(format, v/unit))
		}
	}
	switch {
	case s.isCollective():
		if n, ok := s.number(spans.AttrNCCLRanksMissingCount); ok {
			d = append(d, fmt.Sprintf("%.0f missing: %s", n, clean(strings.Trim(s.attr(spans.AttrNCCLRanksMissing), "[]"))))
		}
		if v, ok := s.number(spans.AttrNCCLLateMax); ok {
			rank, _ := s.number(spans.AttrNCCLLateRank)
			d = append(d, fmt.Sprintf("rank %.0f late by %s", rank, duration(int64(v*1e9))))
		}
		add(spans.AttrNCCLBandwidthBus, "busbw %.1f GB/s", 1e9)
		add(spans.AttrNCCLPeerRank, "peer %.0f", 1)
		add(spans.AttrNCCLMessageSize, "%.2f MiB", 1<<20)
	case s.isRank():
		switch v := s.late(); {
		case s.last() && v > 0:
			d = append(d, "LAST, late by "+duration(int64(v*1e9)))
		case v > 0:
			d = append(d, "late by "+duration(int64(v*1e9)))
		case v == 0:
			d = append(d, "first")
		}
		if state := s.attr(spans.AttrNCCLState); state != "" {
			d = append(d, clean(state))
		}
		add(spans.AttrNCCLErrors, "errors %.0f", 1)
		add(spans.AttrNCCLRetries, "retries %.0f", 1)
	case s.Name() == spans.SpanNCCLChannel || s.Name() == spans.SpanNCCLProxyOp || s.Name() == spans.SpanNCCLProxyStep:
		add(spans.AttrNCCLChannelID, "channel %.0f", 1)
		if v := s.attr(spans.AttrNCCLDirection); v != "" {
			d = append(d, clean(v))
		}
		add(spans.AttrNCCLPeerRank, "peer %.0f", 1)
		add(spans.AttrNCCLStep, "step %.0f", 1)
		if v := s.attr(spans.AttrNCCLProxyState); v != "" {
			d = append(d, clean(v))
		}
		add(spans.AttrNCCLMessageSize, "%.2f MiB", 1<<20)
	}
	return d
}

// rankBar draws waiting and transferring apart.
func rankBar(s *span, t *trace, cells int, p palette) string {
	colour := stageColour[spans.SpanNCCLRank]
	if s.last() {
		colour = "31"
	}
	transfer, ok := s.parent.number(spans.AttrNCCLTransferDuration)
	begun := s.end() - int64(transfer*1e9)
	if !ok || begun <= s.start() {
		return bar(s, t, cells, colour, p)
	}
	if s.last() {
		return place(begun, s.end(), '█', t, cells, colour, p)
	}
	line := []rune(place(s.start(), begun, '░', t, cells, "", false))
	for i, r := range []rune(place(begun, s.end(), '█', t, cells, "", false)) {
		if r != ' ' {
			line[i] = r
		}
	}
	drawn := strings.TrimSpace(string(line))
	lead := slices.IndexFunc(line, func(r rune) bool { return r != ' ' })
	return strings.Repeat(" ", lead) + p.paint(colour, drawn) + strings.Repeat(" ", cells-lead-runes(drawn))
}
