package show

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/trainbridge/trainbridge/spans"
)

const (
	maxLines = 40 // of one trace's waterfall, verdicts included: table and waterfall fit one screen
	minWidth = 40
)

// palette colours text with ANSI escapes, or not.
type palette bool

func (p palette) paint(code, s string) string {
	if !p || s == "" || code == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) bold(s string) string { return p.paint("1", s) }
func (p palette) dim(s string) string  { return p.paint("2", s) }

// overheadColour is by the mission's limits of a TQ overhead: over 30 % is bad, over 20 % elevated.
func overheadColour(part, whole int64) string {
	switch {
	case 10*part > 3*whole:
		return "31"
	case 5*part > whole:
		return "33"
	}
	return "32"
}

// stageColour is by tq.stage, else by name.
var stageColour = map[string]string{
	spans.StageGet: "34", spans.StageClientGet: "94", spans.StageCompute: "32", spans.StagePut: "35", spans.StageClientPut: "95", spans.StageFunction: "1",
	spans.SpanRPCPass: "1", spans.SpanRPCSerialize: "35", spans.SpanRPCSend: "34", spans.SpanRPCReceive: "94", spans.SpanRPCServer: "32",
	spans.SpanRPCDeserialize: "95", spans.SpanRPCUnattributed: "90", spans.SpanRPCOffline: "90",
	spans.SpanNCCLRank: "34", spans.SpanNCCLChannel: "32", spans.SpanNCCLProxyOp: "35", spans.SpanNCCLProxyStep: "95",
}

var severityColour = map[string]string{spans.SeverityBad: "31", spans.SeverityWarning: "33", spans.SeverityGood: "32"}

// row is a span to draw, with the lines of the tree before its name.
type row struct {
	*span
	tree string
	rest string // what continues below it, for verdicts
	note string // details of folded children
	fold *fold  // the spans that this row stands for; the span is the first of them
}

// waterfall draws a trace: name, time, bar on a common axis, details; beneath a span the verdicts about it.
func waterfall(w *strings.Builder, t *trace, width int, loc *time.Location, p palette) {
	width = max(width, minWidth)
	rows, folded := fit(t)
	more := 0
	for len(rows) > 1 && height(rows) > maxLines {
		rows = rows[:len(rows)-1]
		more++
	}
	head(w, t, width, loc, p)

	nameWidth, timeWidth := 0, 9
	for _, r := range rows {
		nameWidth = max(nameWidth, runes(r.name(1<<10)))
		timeWidth = max(timeWidth, runes(r.took()))
	}
	nameWidth = min(nameWidth, width*3/10)
	detailWidth := min(58, width*36/100)
	if width < 60 { // bars say more than details that are cut off
		detailWidth = 0
	}
	barWidth := width - nameWidth - timeWidth - detailWidth - 5
	fmt.Fprintf(w, "%s %s\n", strings.Repeat(" ", nameWidth+timeWidth+1), p.dim(axis(t.end-t.start, barWidth)))
	for _, r := range rows {
		name := pad(r.name(nameWidth), nameWidth)
		colour := cmp.Or(stageColour[cmp.Or(r.stage(), r.Name())], "36")
		detail, drawn := details(r.span), bar(r.span, t, barWidth, colour, p)
		if r.note != "" {
			detail = strings.TrimPrefix(detail+" · "+r.note, " · ")
		}
		if r.fold == nil && r.elsewhere(t) {
			detail = strings.TrimSuffix(cmp.Or(clean(r.service()), "no service")+" · "+detail, " · ")
		}
		if r.isRank() {
			drawn = rankBar(r.span, t, barWidth, p)
		}
		if r.fold != nil {
			detail, drawn = r.fold.details(), place(r.fold.start, r.fold.end, '░', t, barWidth, colour, p)
		}
		line := fmt.Sprintf("%s %*s ▕%s▏ %s", p.dimTree(name, runes(r.tree)), timeWidth, r.took(), drawn, cut(detail, detailWidth))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		for _, v := range r.verdicts() {
			colour := cmp.Or(severityColour[r.attr(spans.AttrVerdictSeverity)], "33")
			fmt.Fprintf(w, "%s%s\n", p.dim(r.rest), p.paint(colour, cut("! "+v.short(), max(20, width-runes(r.rest)))))
		}
	}
	note := func(text string) { paragraph(w, text, width, "2", p) }
	if folded {
		note("client operations without a verdict are folded into their stage")
	}
	if text := orders(t); text != "" {
		note(text)
	}
	if slices.ContainsFunc(rows, func(r row) bool { return r.isRank() }) {
		note("of a rank: ░ waiting for the last, █ transferring")
		part := func(s *span) bool { return s.parent != nil && s.parent.isRank() && !s.isPhase() }
		if slices.ContainsFunc(t.all, part) && !slices.ContainsFunc(rows, func(r row) bool { return part(r.span) }) {
			note("channels and proxies are left out")
		}
	}
	if more > 0 {
		fmt.Fprintf(w, "+%d more rows, see them in Jaeger\n", more)
	}
	meanings(w, t, width, p)
}

// orders says where the parts of steps are drawn.
func orders(t *trace) string {
	known, unknown := false, false
	for _, s := range t.all {
		known = known || s.attr(spans.AttrStageOrder) == spans.OrderTrainer
		unknown = unknown || s.attr(spans.AttrStageOrder) == spans.OrderUnknown
	}
	note := "the log says how long the parts of a step took, not when: "
	switch {
	case known && unknown:
		return note + "drawn in the order in which the trainer runs them, where that is known and they fit"
	case known:
		return note + "drawn in the order in which the trainer runs them"
	case unknown:
		return note + "all are drawn from its start"
	}
	return ""
}

func (p palette) dimTree(name string, tree int) string {
	r := []rune(name)
	tree = min(tree, len(r))
	return p.dim(string(r[:tree])) + string(r[tree:])
}

func head(w *strings.Builder, t *trace, width int, loc *time.Location, p palette) {
	incomplete := 0
	run, text := "", ""
	for _, s := range t.all {
		if s.incomplete() {
			incomplete++
		}
		run, text = cmp.Or(run, s.attr(spans.AttrRunID)), cmp.Or(text, s.attr(spans.AttrTQTraceID))
	}
	id := t.id.String()
	about := []cell{{"trace " + id, "1"}, {t.services(), ""}}
	if run != "" {
		about = append(about, cell{"run " + clean(run), ""})
	}
	parts(w, width, p, about...)
	size := plural(len(t.all), "span")
	if incomplete > 0 {
		size += fmt.Sprintf(", %d incomplete", incomplete)
	}
	about = texts(time.Unix(0, t.start).In(loc).Format("2006-01-02 15:04:05.000 -0700"), duration(t.end-t.start), t.what(), size)
	switch {
	case t.noID() != nil:
		about = append(about, cell{"no trace id in the log", ""})
	case text != "" && strings.ReplaceAll(strings.ToLower(text), "-", "") != id:
		about = append(about, cell{"trace_id=" + clean(text) + " in the log", ""})
	}
	parts(w, width, p, about...)
	w.WriteByte('\n')
}

// what says what a trace is about.
func (t *trace) what() string {
	if fs := t.functions(); len(fs) > 0 {
		return plural(len(fs), "function")
	} else if i := slices.IndexFunc(t.all, (*span).isStep); i >= 0 {
		return strings.TrimSpace("step " + clean(t.all[i].attr(spans.AttrIteration)))
	} else if i := slices.IndexFunc(t.all, (*span).isCalls); i >= 0 {
		return t.all[i].what()
	} else if s := t.collective(); s != nil {
		return s.title()
	}
	return plural(0, "function")
}

// services names those of the trace, the first one first.
func (t *trace) services() string {
	var names []string
	for _, s := range t.all {
		if name := clean(s.service()); name != "" && !slices.Contains(names, name) {
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

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

// view is what to draw of a trace.
type view struct {
	roots   int  // of one name that are drawn whole; the others become one row
	clients bool // client operations become a note of the stage above
	calls   int  // the longest children of a span that are drawn whole; of the others those of one name become one row. 0: all are drawn
	ranks   int  // of a collective that are drawn; 0: all
	bare    bool // ranks are drawn without their channels and proxies
}

// fit chooses what to draw of a trace: all of it if that is short enough; else without the client operations and the parts of ranks; else three workers
// per function, five calls per pass and 30 ranks, or less of them.
func fit(t *trace) (rows []row, folded bool) {
	all := len(t.roots)
	for _, v := range []view{{all, false, 0, 0, false}, {all, true, 0, 0, true}, {3, true, 5, 30, true}, {2, true, 4, 20, true}, {1, true, 3, 10, true}} {
		if rows, folded = list(t, v), v.clients; height(rows) <= maxLines {
			break
		}
	}
	return rows, folded && slices.ContainsFunc(rows, func(r row) bool { return r.note != "" })
}

// height is the lines that rows take.
func height(rows []row) int {
	n := len(rows)
	for _, r := range rows {
		n += len(r.verdicts())
	}
	return n
}

// list walks the tree.
func list(t *trace, v view) []row {
	var rows []row
	var walk func(s *span, tree, rest string)
	walk = func(s *span, tree, rest string) {
		i := len(rows)
		below := s.children
		if s.attr(spans.AttrStageRankSlowest) != "" { // whose times are in the details
			below = slices.DeleteFunc(slices.Clone(below), func(c *span) bool { return strings.HasPrefix(c.Name(), spans.SpanRank) })
		}
		rows = append(rows, row{span: s, tree: tree})
		if v.clients {
			below = nil
			for _, c := range s.children {
				if st := c.stage(); (st == spans.StageClientGet || st == spans.StageClientPut) && len(c.children) == 0 && len(c.verdicts()) == 0 && !c.incomplete() {
					rows[i].note = details(c)
					continue
				}
				below = append(below, c)
			}
		}
		if s.isRank() {
			below = slices.DeleteFunc(slices.Clone(below), (*span).isPhase)
		}
		rows[i].rest = rest + "  "
		if len(below) > 0 {
			rows[i].rest = rest + "│ "
		}
		var drawn []child
		if s.isCollective() {
			drawn = latest(below, v.ranks, v.bare)
		} else {
			drawn = longest(below, v.calls)
		}
		for n, c := range drawn {
			branch, stem := "├─", "│ "
			if n == len(drawn)-1 {
				branch, stem = "└─", "  "
			}
			if c.bare || c.fold != nil {
				rows = append(rows, row{span: c.span, tree: rest + branch, rest: rest + stem + "  ", fold: c.fold})
				continue
			}
			walk(c.span, rest+branch, rest+stem)
		}
	}
	count := map[string]int{}
	for _, r := range t.roots {
		count[r.Name()]++
	}
	seen := map[string]int{}
	folds := map[string]*fold{}
	for _, r := range t.roots {
		name := r.Name()
		seen[name]++
		switch f := folds[name]; {
		case seen[name] <= v.roots || count[name] == v.roots+1: // a row for one saves little
			walk(r, "", "")
		case f == nil:
			f = newFold(r)
			folds[name] = f
			rows = append(rows, row{span: r, fold: f})
		default:
			f.add(r)
		}
	}
	return rows
}

// child is a span to draw below another one, with what is below it or without, or as one of those that a fold sums up.
type child struct {
	*span
	bare bool
	fold *fold
}

// longest keeps so many of the children whole, and draws the others without what is below them: those of one name as one row at the end.
func longest(children []*span, keep int) []child {
	out := make([]child, 0, len(children))
	if keep == 0 || len(children) <= keep {
		for _, c := range children {
			out = append(out, child{span: c})
		}
		return out
	}
	ranked := slices.DeleteFunc(slices.Clone(children), (*span).aggregate)
	slices.SortStableFunc(ranked, func(a, b *span) int { return cmp.Compare(b.ns(), a.ns()) })
	whole := map[*span]bool{}
	for _, c := range ranked[:min(keep, len(ranked))] {
		whole[c] = true
	}
	count, left := map[string]int{}, map[string]int{}
	for _, c := range children {
		count[c.Name()]++
		if !whole[c] {
			left[c.Name()]++
		}
	}
	var folds []child
	at := map[string]int{}
	for _, c := range children {
		name := c.Name()
		i, known := at[name]
		switch {
		case whole[c] || left[name] == 1:
			out = append(out, child{span: c, bare: !whole[c]})
		case known:
			folds[i].fold.add(c)
		default:
			at[name] = len(folds)
			f := newFold(c)
			f.whole = left[name] == count[name]
			folds = append(folds, child{span: c, fold: f})
		}
	}
	return append(out, folds...)
}

// name is the tree and the name in at most so many columns. Functions say in which process they ran, folds how many they are;
// this end of the name is kept where there is room.
func (r row) name(width int) string {
	name, end := clean(r.Name()), ""
	if rank := r.rank(); r.fold == nil && r.isRank() && rank >= 0 {
		name = fmt.Sprintf("rank %.0f", rank)
		if host := r.attr(spans.AttrHostName); host != "" {
			end = " " + clean(host)
		}
	} else if r.fold != nil {
		if r.isRank() { // of many names
			name = spans.SpanNCCLRank
		}
		end = fmt.Sprintf(" ×%d more", r.fold.n)
		if r.fold.whole {
			end = fmt.Sprintf(" ×%d", r.fold.n)
		}
	} else if pid := r.attr(spans.AttrProcessPID); pid != "" && (r.stage() == spans.StageFunction || r.ParentSpanID().IsEmpty()) {
		end = " [" + clean(pid) + "]"
	} else if source := r.attr(spans.AttrSource); source != "" && r.ParentSpanID().IsEmpty() {
		end = " [" + clean(source) + "]"
	}
	if room := width - runes(r.tree) - runes(end); room >= 4 {
		return r.tree + cut(name, room) + end
	}
	return cut(r.tree+name+end, width)
}

func (r row) took() string {
	if r.fold != nil {
		return r.fold.times()
	}
	if r.isRank() {
		return duration(r.own())
	}
	return duration(r.ns())
}

// verdicts of a fold stand in its details.
func (r row) verdicts() []verdict {
	if r.fold != nil {
		return nil
	}
	return r.span.verdicts()
}

// details are the numbers that matter for the kind of span.
func details(s *span) string {
	var d []string
	if s.incomplete() {
		note := "INCOMPLETE"
		if r := s.attr(spans.AttrIncompleteReason); r != "" {
			note += " (" + clean(r) + ")"
		}
		d = append(d, note)
	}
	if s.orphan {
		d = append(d, "parent missing")
	}
	if s.failed() && len(s.verdicts()) == 0 && !s.incomplete() && !s.isCollective() && !s.isRank() { // those say it already
		d = append(d, strings.TrimSpace("ERROR "+clean(s.Status().Message())))
	}
	switch s.stage() {
	case spans.StageFunction:
		if v, ok := s.overhead(); ok {
			d = append(d, "TQ overhead "+percent(v))
		}
	case spans.StageGet, spans.StageCompute, spans.StagePut:
		if s.parent != nil && s.parent.ns() > 0 && !s.parent.incomplete() {
			d = append(d, percent(float64(s.ns())/float64(s.parent.ns())))
		}
	case spans.StageClientGet, spans.StageClientPut:
		if v, ok := s.number(spans.AttrTQDataSize); ok {
			d = append(d, fmt.Sprintf("%.2f MiB", v/(1<<20)))
		}
		if v, ok := s.number(spans.AttrTQThroughput); ok {
			d = append(d, fmt.Sprintf("%.1f MiB/s", v/(1<<20)))
		}
	}
	if v, ok := s.number(spans.AttrTQBatchSize); ok && s.stage() == spans.StageFunction {
		d = append(d, fmt.Sprintf("batch %.0f", v))
	}
	d = append(d, stepDetails(s)...)
	d = append(d, callDetails(s)...)
	return strings.Join(append(d, collectiveDetails(s)...), " · ")
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + "%" }

// bar is the bar of one span.
func bar(s *span, t *trace, cells int, colour string, p palette) string {
	full := '█'
	if s.incomplete() || s.aggregate() {
		full = '░'
	}
	return place(s.start(), s.end(), full, t, cells, colour, p)
}

// place draws a time on the axis to half a cell; whatever happened is at least half a cell long.
func place(start, end int64, full rune, t *trace, cells int, colour string, p palette) string {
	from, to := 0, 2*cells
	if whole := float64(t.end - t.start); whole > 0 {
		at := func(ns int64) float64 { return float64(ns-t.start) / whole * float64(2*cells) }
		from = min(int(at(start)), 2*cells-1)
		to = min(max(from+1, int(at(end)+0.5)), 2*cells)
	}
	var b strings.Builder
	lead := from / 2
	for i := lead; i*2 < to; i++ {
		left, right := i*2 >= from, i*2+1 < to
		switch {
		case left && right, full == '░':
			b.WriteRune(full)
		case left:
			b.WriteRune('▌')
		default:
			b.WriteRune('▐')
		}
	}
	body := b.String()
	return strings.Repeat(" ", lead) + p.paint(colour, body) + strings.Repeat(" ", cells-lead-runes(body))
}

// axis writes times at both ends and, where there is room, at the quarters.
func axis(ns int64, cells int) string {
	line := []rune(strings.Repeat(" ", cells+2))
	for _, q := range []int{0, 4, 2, 1, 3} {
		text := []rune(duration(ns * int64(q) / 4))
		at := 1 + cells*q/4
		if q == 4 {
			at = cells + 1 - len(text)
		}
		if at < 0 || at+len(text) > len(line) || strings.TrimSpace(string(line[max(0, at-1):min(len(line), at+len(text)+1)])) != "" {
			continue
		}
		copy(line[at:], text)
	}
	return strings.TrimRight(string(line), " ")
}

// duration prints ns with four significant digits at most, in a unit that fits.
func duration(ns int64) string {
	switch {
	case ns >= 100e9:
		return fmt.Sprintf("%.1f s", float64(ns)/1e9)
	case ns >= 1e9:
		return fmt.Sprintf("%.3f s", float64(ns)/1e9)
	case ns >= 1e6:
		return fmt.Sprintf("%.1f ms", float64(ns)/1e6)
	case ns >= 1e3:
		return fmt.Sprintf("%.0f µs", float64(ns)/1e3)
	case ns == 0:
		return "0 s"
	}
	return strconv.FormatInt(ns, 10) + " ns"
}

// clean keeps control characters of logged text from the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func runes(s string) int { return len([]rune(s)) }

func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-runes(s))) }

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		if n < 1 {
			return ""
		}
		return string(r[:n-1]) + "…"
	}
	return s
}
