package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
)

const (
	maxLines = 40 // of a waterfall, verdicts included: table and waterfall fit a screen
	minWidth = 40 // columns, also in a narrower terminal
	levels   = 6  // of extent
)

// row is a row of a waterfall: a span, or a fold of several, with the lines of the tree in front of the name.
type row struct {
	*tree.Span
	tree string // "│ ├─"
	rest string // the tree's lines in the rows below, for verdicts: "│ │ "
	note string // details of children without a row
	fold *fold  // nil, or the spans that the row stands for; Span is the first
}

// printWaterfall prints a trace: a head, the breakdown of the longest window, then for each span a row with name, time, bar on a common axis and details,
// followed by its verdicts. Notes and the meanings of verdicts come last. The extent is chosen so that the rows fit the lines of roomFor. If even the smallest
// is too long, rows at the end are dropped and counted.
func printWaterfall(w *strings.Builder, t *tree.Trace, l style) {
	l.width = max(l.width, minWidth)
	most := roomFor(t)
	rows, folded := fitRows(t, most)
	more := 0
	for len(rows) > 1 && linesOf(rows) > most {
		rows = rows[:len(rows)-1]
		more++
	}
	t = withLoggedAxis(t) // synthetic times do not stretch the axis
	printHead(w, t, l)
	printBreakdown(w, t, l)

	// Widths in columns: names get at most 30 % of the line, times 9 or more, details 36 % but at most 58, the bar the rest.
	nameWidth, timeWidth := 0, 9
	for _, r := range rows {
		nameWidth = max(nameWidth, human.Columns(r.name(1<<10)))
		timeWidth = max(timeWidth, human.Columns(r.duration()))
	}
	nameWidth = min(nameWidth, l.width*3/10)
	detailWidth := min(58, l.width*36/100)
	if l.width < 60 { // bars say more than truncated details
		detailWidth = 0
	}
	barWidth := l.width - nameWidth - timeWidth - detailWidth - 5 // 5: blanks, and the frame ▕ ▏
	fmt.Fprintf(w, "%s %s\n", strings.Repeat(" ", nameWidth+timeWidth+1), l.Dim(axis(t.End-t.Start, barWidth)))
	for _, r := range rows {
		line := fmt.Sprintf("%s %*s ▕%s▏ %s", l.dimTree(human.Pad(r.name(nameWidth), nameWidth), human.Columns(r.tree)), timeWidth, r.duration(),
			r.bar(t, barWidth, l.Palette), human.Cut(r.details(t), detailWidth))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		for _, v := range r.verdicts() {
			colour := cmp.Or(severityColour[r.Head.Severity], "33")
			fmt.Fprintf(w, "%s%s\n", l.Dim(r.rest), l.Paint(colour, human.Cut("! "+v.summary(), max(20, l.width-human.Columns(r.rest)))))
		}
	}
	printNotes(w, t, rows, folded, l)
	if more > 0 {
		fmt.Fprintf(w, "+%d more rows are not drawn\n", more)
	}
	printMeanings(w, t, l)
}

// printNotes prints, below the rows, what is left out and what special signs mean. folded: client operations are left out.
func printNotes(w *strings.Builder, t *tree.Trace, rows []row, folded bool, l style) {
	if folded {
		printParagraph(w, "client operations without a verdict are folded into their stage", "2", l)
	}
	for _, d := range domains {
		if d.notes == nil {
			continue
		}
		for _, text := range d.notes(t, rows) {
			printParagraph(w, text, "2", l)
		}
	}
}

// dimTree returns the name of a row with its first columns, the lines of the tree, faint.
func (l style) dimTree(name string, tree int) string {
	r := []rune(name)
	tree = min(tree, len(r))
	return l.Dim(string(r[:tree])) + string(r[tree:])
}

// printHead prints the lines above a waterfall: trace id, services and run; then start, duration, subject, number of spans, and what domains add.
func printHead(w *strings.Builder, t *tree.Trace, l style) {
	incomplete, run := 0, ""
	for _, s := range t.Spans {
		if s.Head.Incomplete {
			incomplete++
		}
		run = cmp.Or(run, s.Resource.Run)
	}
	about := []cell{{Text: "trace " + t.ID.String(), Severity: "1"}, {Text: servicesText(t)}} // "1": bold
	if run != "" {
		about = append(about, cell{Text: "run " + reading.Clean(run)})
	}
	printParts(w, l, about...)
	size := human.Plural(len(t.Spans), "span")
	if incomplete > 0 {
		size += fmt.Sprintf(", %d incomplete", incomplete)
	}
	about = textCells(time.Unix(0, t.Start).In(l.loc).Format("2006-01-02 15:04:05.000 -0700"), human.Nanoseconds(t.End-t.Start), subjectOf(t), size)
	for _, d := range domains {
		if d.more != nil {
			about = append(about, cell{Text: d.more(t)})
		}
	}
	printParts(w, l, about...)
	w.WriteByte('\n')
}

// servicesText returns the services of a trace, that of the first span first: "service verl", "services verl, rpc"; for five and more, three names and a
// number.
func servicesText(t *tree.Trace) string {
	var names []string
	for _, s := range t.Spans {
		if name := reading.Clean(s.Resource.Service); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch n := len(names); {
	case n == 0:
		return "service -"
	case n == 1:
		return "service " + names[0]
	case n > 4:
		names = append(names[:3], fmt.Sprintf("%d more", n-3))
	}
	return "services " + strings.Join(names, ", ")
}

// fitRows returns the rows of the largest extent that needs no more than a number of lines: everything; else all but the client operations and the parts of
// ranks; else three workers per function, five calls per pass and 30 ranks, or fewer. If no extent fits, the rows of the smallest are returned. folded: client
// operations are left out.
func fitRows(t *tree.Trace, lines int) (rows []row, folded bool) {
	all := len(t.Roots)
	for _, e := range [levels]extent{
		{level: 0, roots: all},
		{level: 1, roots: all, brief: true},
		{level: 2, roots: 3, brief: true, calls: 5},
		{level: 3, roots: 2, brief: true, calls: 4},
		{level: 4, roots: 1, brief: true, calls: 3},
		{level: 5, roots: 1, brief: true, calls: 3}, // functions bare
	} {
		if rows, folded = listRows(t, e), e.brief; linesOf(rows) <= lines {
			break
		}
	}
	return rows, folded && slices.ContainsFunc(rows, func(r row) bool { return r.note != "" })
}

// linesOf returns the number of lines that rows need: one for each row and each verdict.
func linesOf(rows []row) int {
	n := len(rows)
	for _, r := range rows {
		n += len(r.verdicts())
	}
	return n
}

// listRows returns the rows of a trace in an extent, depth first. Of the roots with the same name, the first e.roots are drawn with their children, and the
// rest are one row.
func listRows(t *tree.Trace, e extent) []row {
	var rows []row
	var walk func(s *tree.Span, tree, rest string)
	walk = func(s *tree.Span, tree, rest string) {
		drawn, note := childrenOf(s, e)
		r := row{Span: s, tree: tree, rest: rest + "  ", note: note}
		if len(drawn) > 0 {
			r.rest = rest + "│ "
		}
		rows = append(rows, r)
		for n, c := range drawn {
			branch, stem := "├─", "│ " // before the child's name, and in the rows below the child
			if n == len(drawn)-1 {
				branch, stem = "└─", "  "
			}
			if c.bare || c.fold != nil {
				rows = append(rows, row{Span: c.Span, tree: rest + branch, rest: rest + stem + "  ", fold: c.fold})
				continue
			}
			walk(c.Span, rest+branch, rest+stem)
		}
	}
	count := map[string]int{}
	for _, r := range t.Roots {
		count[r.Name()]++
	}
	seen := map[string]int{}
	folds := map[string]*fold{}
	for _, r := range t.Roots {
		name := r.Name()
		seen[name]++
		switch f := folds[name]; {
		case seen[name] <= e.roots || count[name] == e.roots+1: // a row for a single span saves little
			walk(r, "", "")
		case f == nil:
			f = newFold(r)
			folds[name] = f
			rows = append(rows, row{Span: r, fold: f})
		default:
			f.add(r)
		}
	}
	return rows
}

// childrenOf returns the rows to draw below a span. The below function of each domain may remove children; then the order function of the first domain that
// knows the span orders the rest, else longestFirst. note has the details of a child without a row.
func childrenOf(s *tree.Span, e extent) (drawn []child, note string) {
	children := s.Children
	for _, d := range domains {
		if d.below == nil {
			continue
		}
		var told []*tree.Span
		children, told = d.below(s, children, e)
		for _, c := range told {
			note = details(c)
		}
	}
	for _, d := range domains {
		if d.order == nil {
			continue
		}
		if drawn, ok := d.order(s, children, e); ok {
			return drawn, note
		}
	}
	return longestFirst(children, e.calls), note
}

// name returns the lines of the tree and the label, truncated to a number of columns. The end of the label (a number, a process) is kept if four columns are
// left for the name.
func (r row) name(width int) string {
	name, end := r.label()
	if room := width - human.Columns(r.tree) - human.Columns(end); room >= 4 {
		return r.tree + human.Cut(name, room) + end
	}
	return human.Cut(r.tree+name+end, width)
}

// label returns the name of a row, and the text after the name: for a fold " ×12 more" (fold.whole: " ×12"), for a span the text of its domain, for any other
// root its process or log.
func (r row) label() (name, end string) {
	if f := r.fold; f != nil {
		end = fmt.Sprintf(" ×%d more", len(f.spans))
		if f.whole {
			end = fmt.Sprintf(" ×%d", len(f.spans))
		}
		return reading.Clean(cmp.Or(f.name, r.Name())), end
	}
	for _, d := range domains {
		if d.label == nil {
			continue
		}
		if name, end, ok := d.label(r.Span); ok {
			return name, end
		}
	}
	if r.ParentSpanID().IsEmpty() {
		end = cmp.Or(processEnd(r.Span), sourceEnd(r.Span))
	}
	return reading.Clean(r.Name()), end
}

// sourceEnd returns the format of the log of a root, for the end of its label: " [megatron]"; "": unknown.
func sourceEnd(s *tree.Span) string {
	var v view.Evaluation // steps, reports about ranks and summaries of a job have the same attribute
	if v.Read(s.Span, s.Resource); v.Format == "" {
		return ""
	}
	return " [" + reading.Clean(v.Format) + "]"
}

// duration returns the duration of a row as a text: for a fold the shortest and the longest, for a span the duration of its domain, else the length of the
// span.
func (r row) duration() string {
	if r.fold != nil {
		return r.fold.times()
	}
	for _, d := range domains {
		if d.duration == nil {
			continue
		}
		if ns, ok := d.duration(r.Span); ok {
			return human.Nanoseconds(ns)
		}
	}
	return human.Nanoseconds(r.NS())
}

// bar returns the bar of a row, cells wide: for a fold shaded, from the first start to the last end; for a span the bar of its domain, else a plain one.
func (r row) bar(t *tree.Trace, cells int, p reading.Palette) string {
	if r.fold != nil {
		return barBetween(r.fold.start, r.fold.end, '░', t, cells, colour(r.Span), p)
	}
	for _, d := range domains {
		if d.bar == nil {
			continue
		}
		if text, ok := d.bar(r.Span, t, cells, p); ok {
			return text
		}
	}
	return plainBar(r.Span, t, cells, colour(r.Span), p)
}

// verdicts returns the verdicts that have lines of their own below the row; none for a fold, whose details count them.
func (r row) verdicts() []verdict {
	if r.fold != nil {
		return nil
	}
	return verdicts(r.Span)
}

// details returns the text after the bar of a row, joined by " · ": the service if the parent has another, then whether the time is on the axis, the important
// numbers, and the note about children without a row. The trims drop the separator beside an empty part.
func (r row) details(t *tree.Trace) string {
	if r.fold != nil {
		return r.fold.details()
	}
	text := details(r.Span)
	if leavesAxis(r.Span, t) {
		text = strings.TrimSuffix("when is not in the log · "+text, " · ")
	}
	if r.note != "" {
		text = strings.TrimPrefix(text+" · "+r.note, " · ")
	}
	if changesService(r.Span, t) {
		text = strings.TrimSuffix(cmp.Or(reading.Clean(r.Resource.Service), "no service")+" · "+text, " · ")
	}
	return text
}

// changesService reports whether a span is of another service than its parent, or for a root than the first span of the trace.
func changesService(s *tree.Span, t *tree.Trace) bool {
	if s.Parent != nil {
		return s.Resource.Service != s.Parent.Resource.Service
	}
	return s.Resource.Service != t.Spans[0].Resource.Service
}

// details returns what went wrong with a span and the important numbers of its kind, joined by " · ". An error status is left out if INCOMPLETE, verdicts, or
// the numbers of the domain (showsEnd) have the same meaning.
func details(s *tree.Span) string {
	var d []string
	if s.Head.Incomplete {
		note := "INCOMPLETE"
		if s.Head.Reason != "" {
			note += " (" + reading.Clean(s.Head.Reason) + ")"
		}
		d = append(d, note)
	}
	if s.Orphan {
		d = append(d, "parent missing")
	}
	ended := func(d *domain) bool { return d.showsEnd != nil && d.showsEnd(s) }
	if s.Failed() && !s.Head.Incomplete && len(verdicts(s)) == 0 && !slices.ContainsFunc(domains[:], ended) {
		d = append(d, strings.TrimSpace("ERROR "+reading.Clean(s.Status().Message())))
	}
	for _, domain := range domains {
		d = append(d, domain.details(s)...)
	}
	return strings.Join(d, " · ")
}

// plainBar returns the plain bar of a span on the axis of its trace; shaded if the end is not in the log, or for an aggregate, whose spans do not fill it.
func plainBar(s *tree.Span, t *tree.Trace, cells int, colour string, p reading.Palette) string {
	full := '█'
	if s.Head.Incomplete || s.Kind == view.KindAggregate {
		full = '░'
	}
	return barBetween(s.Start(), s.End(), full, t, cells, colour, p)
}

// barBetween returns a bar from start to end (ns since 1970) on the axis of the trace, in a text that is cells wide, to half a cell. A bar is at least half a
// cell long; times outside of the axis are blank.
func barBetween(start, end int64, full rune, t *tree.Trace, cells int, colour string, p reading.Palette) string {
	if end < t.Start || start > t.End {
		return strings.Repeat(" ", cells)
	}
	from, to := 0, 2*cells // half cells, of a trace without length the whole axis
	if whole := float64(t.End - t.Start); whole > 0 {
		at := func(ns int64) float64 { return float64(ns-t.Start) / whole * float64(2*cells) }
		from = max(0, min(int(at(start)), 2*cells-1))
		to = min(max(from+1, int(at(end)+0.5)), 2*cells)
	}
	var b strings.Builder
	lead := from / 2
	for i := lead; i*2 < to; i++ {
		left, right := i*2 >= from, i*2+1 < to // which halves of the cell are in the bar
		switch {
		case left && right, full == '░': // a shaded cell has no half
			b.WriteRune(full)
		case left:
			b.WriteRune('▌')
		default:
			b.WriteRune('▐')
		}
	}
	body := b.String()
	return strings.Repeat(" ", lead) + p.Paint(colour, body) + strings.Repeat(" ", cells-lead-human.Columns(body))
}

// axis returns the line above the bars: the times since the start, of a trace of ns, at both ends and, with enough room, at the quarters.
func axis(ns int64, cells int) string {
	line := []rune(strings.Repeat(" ", cells+2))   // as wide as a bar with its frame
	for _, quarter := range []int{0, 4, 2, 1, 3} { // the most important first: a later time that would touch an earlier one is left out
		text := []rune(human.Nanoseconds(ns * int64(quarter) / 4))
		at := 1 + cells*quarter/4
		if quarter == 4 {
			at = cells + 1 - len(text) // flush right
		}
		if at < 0 || at+len(text) > len(line) {
			continue
		}
		around := line[max(0, at-1):min(len(line), at+len(text)+1)]
		if strings.TrimSpace(string(around)) != "" {
			continue
		}
		copy(line[at:], text)
	}
	return strings.TrimRight(string(line), " ")
}
