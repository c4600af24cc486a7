package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// rankColour is the ANSI code of ranks.
const rankColour = "34"

// drawnRanks is how many ranks of a collective are drawn, by level of extent; 0: all.
var drawnRanks = [levels]int{2: 30, 20, 10, 10}

// collectives is the domain of NCCL's collectives; the table has a row per communicator and operation.
var collectives = domain{
	key:  "collectives",
	help: tables.CollectivesHelp, rows: tables.CollectiveObjects, table: collectiveTable,
	subject: func(t *tree.Trace) string {
		for _, s := range t.Roots {
			if s.Kind == view.KindCollective {
				return collectiveTitle(s)
			}
		}
		return ""
	},
	colours:  map[string]string{spans.SpanNCCLRank: rankColour, spans.SpanNCCLChannel: "32", spans.SpanNCCLProxyOp: "35", spans.SpanNCCLProxyStep: "95"},
	details:  collectiveDetails,
	showsEnd: func(s *tree.Span) bool { return s.Kind == view.KindCollective || isRank(s) },
	label:    rankLabel,
	duration: func(s *tree.Span) (int64, bool) {
		if !isRank(s) {
			return 0, false
		}
		return ownTime(s), true
	},
	bar: func(s *tree.Span, t *tree.Trace, cells int, p reading.Palette) (string, bool) {
		if !isRank(s) {
			return "", false
		}
		return rankBar(s, t, cells, p), true
	},
	below:       withoutPhases,
	order:       latestFirst,
	foldDetails: foldedLateness,
	parallel:    func(s *tree.Span) bool { return s.Kind == view.KindCollective },
	notes:       rankNotes,
}

// collectiveTable prints a row per communicator and operation, and the verdicts on each.
func collectiveTable(w *strings.Builder, d *digest.Digest, l style) {
	all := d.Collectives.Rows()
	if len(all) == 0 {
		return
	}
	t := tables.Collectives(all, false)
	printTable(w, &t, l)
	for _, c := range all {
		printVerdictCounts(w, c.Operation+" of "+c.Communicator, c.Verdicts, l)
	}
}

// collectiveTitle returns the title of a collective: "AllReduce 12 of dp, 8 ranks", as far as known.
func collectiveTitle(s *tree.Span) string {
	var v view.Collective
	v.Read(s.Span)
	text := reading.Clean(v.Operation)
	if v.Sequence.OK {
		text += fmt.Sprintf(" %d", v.Sequence.N)
	}
	if comm := digest.CommunicatorName(&v); comm != "-" {
		text += " of " + reading.Clean(comm)
	}
	if v.Ranks.N > 1 {
		text += ", " + human.Plural(int(v.Ranks.N), "rank")
	}
	return text
}

// isRank reports whether a span is a rank's part in a collective.
func isRank(s *tree.Span) bool {
	return s.Kind == view.KindRank && s.Parent != nil && s.Parent.Kind == view.KindCollective
}

// isPhase reports whether a span is a phase of a rank (late, waiting, transferring), shown in the rank's bar.
func isPhase(s *tree.Span) bool {
	return s.Kind == view.KindPhase && s.Parent != nil && isRank(s.Parent)
}

// rankOf returns a rank and its collective.
func rankOf(s *tree.Span) (r view.Rank, c view.Collective) {
	r.Read(s.Span)
	c.Read(s.Parent.Span)
	return r, c
}

// ownTime returns the time that a rank spent in the collective, ns. For the rank that came last this is the time of the transfer, because its span already
// begins when the first rank came.
func ownTime(s *tree.Span) int64 {
	if r, c := rankOf(s); r.Last && !math.IsNaN(c.TransferDuration) {
		return int64(c.TransferDuration * 1e9)
	}
	return s.NS()
}

// cameLast reports whether a rank came last.
func cameLast(s *tree.Span) bool {
	r, c := rankOf(s)
	return c.Last.Rank.OK && c.Last.Rank == r.Rank
}

// lateness returns how late a rank came after the first, s; −1 if unknown.
func lateness(s *tree.Span) float64 {
	var v view.Rank
	if v.Read(s.Span); math.IsNaN(v.Late) {
		return -1
	}
	return v.Late
}

// rankLabel returns the label of a rank of a collective: "rank 3", and " host-1" after the name.
func rankLabel(s *tree.Span) (name, end string, ok bool) {
	if !isRank(s) {
		return "", "", false
	}
	var v view.Rank
	if v.Read(s.Span); !v.Rank.OK {
		return "", "", false
	}
	if host := cmp.Or(v.Host, s.Resource.Host); host != "" {
		end = " " + reading.Clean(host)
	}
	return fmt.Sprintf("rank %d", v.Rank.N), end, true
}

// withoutPhases removes the phases of a rank, which are in the bar of the rank.
func withoutPhases(s *tree.Span, children []*tree.Span, _ extent) (drawn, told []*tree.Span) {
	if !isRank(s) {
		return children, nil
	}
	return slices.DeleteFunc(slices.Clone(children), isPhase), nil
}

// latestFirst orders the children of a collective: first the ranks, the latest first, as many as drawnRanks allows, without their children in a brief drawing;
// then all other spans; last a row for the rest of the ranks.
func latestFirst(s *tree.Span, children []*tree.Span, e extent) (drawn []child, ok bool) {
	if s.Kind != view.KindCollective {
		return nil, false
	}
	type rank struct {
		*tree.Span
		late   float64
		number int64
	}
	var ranks []rank
	var others []*tree.Span
	for _, c := range children {
		if !isRank(c) {
			others = append(others, c)
			continue
		}
		var v view.Rank
		v.Read(c.Span)
		ranks = append(ranks, rank{c, lateness(c), v.Rank.Or(-1)})
	}
	slices.SortStableFunc(ranks, func(a, b rank) int { return cmp.Or(cmp.Compare(b.late, a.late), cmp.Compare(a.number, b.number)) })
	keep := drawnRanks[e.level]
	if keep == 0 || len(ranks) <= keep+1 { // a row for a single rank saves nothing
		keep = len(ranks)
	}
	for _, c := range ranks[:keep] {
		drawn = append(drawn, child{Span: c.Span, bare: e.brief})
	}
	for _, c := range others {
		drawn = append(drawn, child{Span: c})
	}
	if rest := ranks[keep:]; len(rest) > 0 {
		f := newFold(rest[0].Span)
		f.name = spans.SpanNCCLRank // the folded spans have many names
		for _, c := range rest[1:] {
			f.add(c.Span)
		}
		drawn = append(drawn, child{Span: rest[0].Span, fold: f})
	}
	return drawn, true
}

// foldedLateness returns how late the folded ranks came, the least and the most; nil if unknown.
func foldedLateness(f *fold) []string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range f.spans {
		if v := lateness(s); isRank(s) && v >= 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high { // none known
		return nil
	}
	return []string{"late by " + human.Seconds(low) + " to " + human.Seconds(high)}
}

// collectiveDetails returns the numbers of a collective, of a rank in it, or of a channel or a proxy below a rank.
func collectiveDetails(s *tree.Span) []string {
	switch {
	case s.Kind == view.KindCollective:
		return rootDetails(s)
	case isRank(s):
		return rankDetails(s)
	case s.Kind == view.KindChannel || s.Kind == view.KindProxyOp || s.Kind == view.KindProxyStep:
		return linkDetails(s)
	}
	return nil
}

// detailList is a list of texts of known numbers, with their units and meanings.
type detailList []string

// add adds a number after a text, unless NaN.
func (d *detailList) add(v float64, write func(float64) string, before string) {
	if !math.IsNaN(v) {
		*d = append(*d, before+write(v))
	}
}

// addInt adds a number in a format, if known.
func (d *detailList) addInt(v view.Int, format string) {
	if v.OK {
		*d = append(*d, fmt.Sprintf(format, v.N))
	}
}

// addText adds a text unless empty.
func (d *detailList) addText(text string) {
	if text != "" {
		*d = append(*d, reading.Clean(text))
	}
}

// rootDetails returns the numbers of a collective: ranks without a record, who came last and by how much, bus bandwidth, peer (of send and receive), size.
func rootDetails(s *tree.Span) (d detailList) {
	var v view.Collective
	v.Read(s.Span)
	if !math.IsNaN(v.MissingCount) {
		missing := make([]string, v.Missing.Len())
		for i := range missing {
			missing[i] = v.Missing.At(i).AsString()
		}
		d = append(d, fmt.Sprintf("%s missing: %s", human.Thousands(v.MissingCount), reading.Clean(strings.Join(missing, ","))))
	}
	if !math.IsNaN(v.Last.Late) {
		text := "late by " + human.Seconds(v.Last.Late)
		if v.Last.Rank.OK {
			text = fmt.Sprintf("rank %d %s", v.Last.Rank.N, text)
		}
		d = append(d, text)
	}
	d.add(v.BandwidthBus, human.Rate, "busbw ")
	d.addInt(v.Peer, "peer %d")
	d.add(v.MessageSize, human.Bytes, "")
	return d
}

// rankDetails returns the numbers of a rank in a collective: how late, how far the rank came if the end is missing, errors and retries.
func rankDetails(s *tree.Span) (d detailList) {
	var v view.Rank
	v.Read(s.Span)
	switch {
	case v.Late > 0 && cameLast(s):
		d = append(d, "LAST, late by "+human.Seconds(v.Late))
	case v.Late > 0:
		d = append(d, "late by "+human.Seconds(v.Late))
	case v.Late == 0:
		d = append(d, "first")
	}
	d.addText(v.State)
	d.add(v.Errors, human.Digits, "errors ")
	d.add(v.Retries, human.Digits, "retries ")
	return d
}

// linkDetails returns the numbers of a channel, a proxy operation or a proxy step.
func linkDetails(s *tree.Span) (d detailList) {
	var v view.Link
	v.Read(s.Span)
	d.addInt(v.Channel, "channel %d")
	d.addText(v.Direction)
	d.addInt(v.Peer, "peer %d")
	d.addInt(v.Step, "step %d")
	d.addText(v.State)
	d.add(v.MessageSize, human.Bytes, "")
	return d
}

// rankBar returns the bar of a rank: the waiting for the last rank as ░, the transfer as █. The rank that came last is red and has no waiting. Without a time
// of transfer, or with a transfer as long as the span, the bar is plain.
func rankBar(s *tree.Span, t *tree.Trace, cells int, p reading.Palette) string {
	colour := rankColour
	last := cameLast(s)
	if last {
		colour = "31"
	}
	_, c := rankOf(s)
	begun := s.End() - int64(c.TransferDuration*1e9) // of the transfer, ns since 1970
	if math.IsNaN(c.TransferDuration) || begun <= s.Start() {
		return plainBar(s, t, cells, colour, p)
	}
	if last {
		return barBetween(begun, s.End(), '█', t, cells, colour, p)
	}
	// Both bars are drawn without a colour, the transfer is laid over the waiting, and the result is painted.
	line := []rune(barBetween(s.Start(), begun, '░', t, cells, "", false))
	for i, r := range []rune(barBetween(begun, s.End(), '█', t, cells, "", false)) {
		if r != ' ' {
			line[i] = r
		}
	}
	drawn := strings.TrimSpace(string(line))
	lead := slices.IndexFunc(line, func(r rune) bool { return r != ' ' })
	return strings.Repeat(" ", lead) + p.Paint(colour, drawn) + strings.Repeat(" ", cells-lead-human.Columns(drawn))
}

// rankNotes returns the notes that explain the bars of ranks, and name the parts left out.
func rankNotes(t *tree.Trace, rows []row) (notes []string) {
	if !slices.ContainsFunc(rows, func(r row) bool { return isRank(r.Span) }) {
		return nil
	}
	notes = append(notes, "ranks: ░ waiting for the last rank, █ transferring")
	part := func(s *tree.Span) bool { return s.Parent != nil && isRank(s.Parent) && !isPhase(s) }
	if slices.ContainsFunc(t.Spans, part) && !slices.ContainsFunc(rows, func(r row) bool { return part(r.Span) }) {
		notes = append(notes, "channels and proxies are left out")
	}
	return notes
}
