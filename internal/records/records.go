// Package records makes a table of each kind of record, with a row per span of the kind or per job: `report --format csv`, and the tables of a lake.
// Columns documented by a log's own writer have its names and units; docs/reference/report.md has all.
package records

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/rows"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// byKind are the tables whose rows are spans of a kind, by view.Kind. Its initialization also completes the tables: the columns by attribute.
var byKind = func() (out [256][]*table) {
	for _, t := range tables {
		t.of, t.other = make(map[string][]int), -1
		for i, c := range t.columns {
			if c.attr != "" {
				t.of[c.attr] = append(t.of[c.attr], i)
			}
			if c.fields != "" {
				t.other = i
			}
		}
		for _, k := range t.kinds {
			out[k] = append(out[k], t)
		}
	}
	return out
}()

// Names returns the names of all tables.
func Names() []string {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.name
	}
	return names
}

// Tables take spans and points, from several goroutines at once, and have their rows in order: by run, time, trace and span. Some 60 MB stay in memory at
// most, the rest of the rows in temporary files without names. Close removes the files.
type Tables struct {
	name    func(path string) string // the name of a log
	rows    map[*table]*rows.Sorted
	jobs    *digest.Jobs // of the tables about whole jobs, if wanted
	facts   facts
	scratch sync.Pool

	mu    sync.Mutex
	roots map[pcommon.SpanID]*collectiveValues // the last collectives, for the rows of their ranks
	known []pcommon.SpanID                     // of roots, as a ring
	next  int                                  // the place in known of the next, where the oldest stands
}

// New returns empty tables. temp is the directory for temporary files; name returns the name of a log for its path; only has the names of the wanted tables,
// empty: all.
func New(temp string, name func(path string) string, only ...string) *Tables {
	t := &Tables{name: name, rows: make(map[*table]*rows.Sorted)}
	t.scratch.New = func() any { return new(scratch) }
	for _, table := range tables {
		if len(only) == 0 || slices.Contains(only, table.name) {
			t.rows[table] = rows.New(temp)
		}
	}
	if t.rows[runs] != nil || t.rows[lateness] != nil {
		t.jobs = digest.New()
	}
	if t.rows[ranks] != nil {
		t.roots, t.known = make(map[pcommon.SpanID]*collectiveValues), make([]pcommon.SpanID, knownRoots)
	}
	return t
}

// knownRoots bounds the collectives remembered for their ranks, which follow after the roots of a whole batch of reading. They take some 16 MB.
const knownRoots = 1 << 16

// scratch is the memory of a row in the making, for reuse.
type scratch struct {
	row
	key, text []byte
}

var (
	ranks     = tableNamed("collective_ranks")
	summaries = tableNamed("summaries")
	causes    = tableNamed("causes")
	verdicts  = tableNamed("verdicts")
	metrics   = tableNamed("metrics")
	runs      = tableNamed("runs")
	lateness  = tableNamed("lateness")
)

// tableNamed returns the table with a name, which must exist.
func tableNamed(name string) *table {
	return tables[slices.IndexFunc(tables, func(t *table) bool { return t.name == name })]
}

// Traces adds the rows for the spans of a message. The collectives of the message are remembered first, because the rows of their ranks need them.
func (t *Tables) Traces(td ptrace.Traces) {
	r := t.scratch.Get().(*scratch)
	defer t.scratch.Put(r)
	r.name = t.name
	t.rememberCollectives(td)
	if t.jobs != nil {
		t.jobs.Batch(td)
	}
	for _, rs := range td.ResourceSpans().All() {
		r.res.Read(rs.Resource().Attributes())
		t.facts.resource(&r.res, rs.Resource().Attributes())
		r.at = rows.Place{}
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				r.at.Next(s)
				r.span = s
				t.addSpan(r, rs.Resource().Attributes())
			}
		}
	}
	r.row = row{slots: r.slots} // keep the memory, not the message
}

// addSpan adds the rows for a span, r.span: to the tables of its kind, and a row per statistic of a summary, per cause of a breakdown, and per verdict.
func (t *Tables) addSpan(r *scratch, resource pcommon.Map) {
	kind := view.KindOf(r.span)
	r.root = nil
	switch kind {
	case view.KindRank:
		r.root = t.rootOf(r.span)
	case view.KindStep:
		t.facts.step(r.res.Run, r.span.Attributes())
	case view.KindSummary, view.KindRPCSummary:
		t.addSummary(r, resource)
	}
	for _, of := range byKind[kind] {
		if t.rows[of] != nil && (of.only == nil || of.only(r.span)) {
			t.addRow(of, r, resource, r.begins())
		}
	}
	if kind == view.KindBreakdown && t.rows[causes] != nil {
		for c := range view.Causes(r.span) {
			r.cause = c
			t.addRow(causes, r, resource, r.span.StartTimestamp())
		}
	}
	if t.rows[verdicts] != nil && r.span.Events().Len() > 0 {
		for v := range view.Verdicts(r.span) {
			r.verdict = v
			t.addRow(verdicts, r, resource, r.span.StartTimestamp())
		}
	}
}

// addSummary adds a row per statistic of a log's own summary: its attributes, without those about the record itself, such as its place.
func (t *Tables) addSummary(r *scratch, resource pcommon.Map) {
	if t.rows[summaries] == nil {
		return
	}
	for name, v := range r.span.Attributes().All() {
		switch name {
		case spans.AttrKind, spans.AttrTimeSource, spans.AttrLogFile, spans.AttrLogOffset, spans.AttrSource, spans.AttrSummary, spans.AttrSourceUnit:
			continue
		}
		r.statistic, r.value = strings.TrimPrefix(name, spans.AttrZMQFinalPrefix), v
		t.addRow(summaries, r, resource, r.span.StartTimestamp())
	}
}

// rememberCollectives remembers the collectives of a message before the rows of their ranks are made: the resource of a rank may come before the resource of
// the collective.
func (t *Tables) rememberCollectives(td ptrace.Traces) {
	if t.rows[ranks] == nil {
		return
	}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if s.Attributes().Len() > 0 && view.KindOf(s) == view.KindCollective {
					t.remember(s)
				}
			}
		}
	}
}

// remember keeps the values of a collective for the rows of its ranks, in place of the oldest collective. A collective that comes again takes a new place, and
// the old place no longer counts. Texts are copied, because they are parts of the message.
func (t *Tables) remember(s ptrace.Span) {
	var c view.Collective
	c.Read(s)
	root := &collectiveValues{
		operation: strings.Clone(c.Operation), algorithm: strings.Clone(c.Algorithm), comm: strings.Clone(c.CommID), sequence: c.Sequence, size: c.MessageSize,
	}
	_, root.errors = s.Attributes().Get(spans.AttrNCCLErrors)
	_, root.retries = s.Attributes().Get(spans.AttrNCCLRetries)
	t.mu.Lock()
	defer t.mu.Unlock()
	if oldest := t.roots[t.known[t.next]]; oldest != nil && oldest.place == t.next {
		delete(t.roots, t.known[t.next])
	}
	root.place, t.known[t.next] = t.next, s.SpanID()
	t.next = (t.next + 1) % len(t.known)
	t.roots[s.SpanID()] = root
}

// rootOf returns the remembered values of the collective that a span of a rank belongs to; nil: none.
func (t *Tables) rootOf(s ptrace.Span) *collectiveValues {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.roots[s.ParentSpanID()]
}

// Metrics adds a row per point, except for estimates (isEstimate).
func (t *Tables) Metrics(md pmetric.Metrics) {
	if t.rows[metrics] == nil {
		return
	}
	r := t.scratch.Get().(*scratch)
	defer t.scratch.Put(r)
	for _, rm := range md.ResourceMetrics().All() {
		r.res.Read(rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if isEstimate(m.Name()) {
					continue
				}
				r.metric = m
				for _, p := range spans.Points(m).All() {
					r.point = p
					t.addRow(metrics, r, rm.Resource().Attributes(), p.Timestamp())
				}
			}
		}
	}
	r.row = row{slots: r.slots}
}

// isEstimate reports whether a metric is an estimate that the nccl receiver makes anew with each batch. The number of its points depends on how logs are read,
// but the same logs must make the same table. The estimate for a record is in the row of the rank.
func isEstimate(name string) bool {
	switch name {
	case spans.MetricNCCLClockOffset, spans.MetricNCCLClockUncertainty, spans.MetricNCCLLinkBandwidth, spans.MetricNCCLLinkIO, spans.MetricNCCLNodeIO,
		spans.MetricNCCLRankScore:
		return true
	}
	return false
}

// addRow adds a row to a table: a cell per column, from the attributes of r.span, else of its resource, or by the function of the column. at is the time by
// which rows are ordered.
func (t *Tables) addRow(of *table, r *scratch, resource pcommon.Map, at pcommon.Timestamp) {
	r.slots = append(r.slots[:0], make([]pcommon.Value, len(of.columns))...)
	var others map[string]any // attributes of the span for the column of fields
	if r.span != (ptrace.Span{}) && len(of.of) > 0 {
		// own: the attributes are the span's. The first value of a column stays, so the span comes before its resource.
		take := func(attrs pcommon.Map, own bool) {
			for name, v := range attrs.All() {
				columns, ok := of.of[name]
				for _, i := range columns {
					if r.slots[i] == (pcommon.Value{}) {
						r.slots[i] = v
					}
				}
				if own && !ok && of.other >= 0 && strings.HasPrefix(name, of.columns[of.other].fields) {
					if others == nil {
						others = make(map[string]any)
					}
					others[name[len(of.columns[of.other].fields):]] = v.AsRaw()
				}
			}
		}
		take(r.span.Attributes(), true)
		take(resource, false)
	}
	// The line.
	text := r.text[:0]
	for i := range of.columns {
		c := &of.columns[i]
		switch {
		case c.write != nil:
			text = c.write(text, &r.row)
		case i == of.other:
			text = appendObject(text, others)
		case r.slots[i] == (pcommon.Value{}):
		case c.kind != Text:
			text = appendNumber(text, r.slots[i], c.scale)
		default:
			text = appendValue(text, r.slots[i], c.scale)
		}
		text = append(text, cellEnd)
	}
	// Its key; rows of metrics and of whole jobs have no span.
	key := r.key[:0]
	if r.span == (ptrace.Span{}) {
		key = rows.Key(key, r.res.Run, at, pcommon.TraceID{}, pcommon.SpanID{})
	} else {
		key = rows.Key(key, r.res.Run, at, r.span.TraceID(), r.span.SpanID())
	}
	r.key, r.text = key, text
	t.rows[of].Add(key, text)
}

// Rows returns the number of rows of a table.
func (t *Tables) Rows(name string) int64 { return t.rows[tableNamed(name)].Len() }

// Column is a column of a table.
type Column struct {
	Name string
	Kind Kind
}

// Columns returns the columns of a table.
func Columns(name string) []Column {
	of := tableNamed(name)
	columns := make([]Column, len(of.columns))
	for i, c := range of.columns {
		columns[i] = Column{c.name, c.kind}
	}
	return columns
}

// Each calls f with the cells of each row, in order: the rows of a run together. The cells are valid until f returns. Call it once for a table.
func (t *Tables) Each(name string, f func(cells [][]byte) error) error {
	return t.each(name, func(cells [][]byte) error {
		for i, cell := range cells {
			if len(cell) > 0 && cell[0] == textMark {
				cells[i] = cell[1:]
			}
		}
		return f(cells)
	})
}

// each is Each, but the cells of texts begin with textMark.
func (t *Tables) each(name string, f func(cells [][]byte) error) error {
	var cells [][]byte
	return t.rows[tableNamed(name)].Each(func(row []byte) error {
		cells = cells[:0]
		for len(row) > 0 {
			end := bytes.IndexByte(row, cellEnd)
			cells = append(cells, row[:end])
			row = row[end+1:]
		}
		return f(cells)
	})
}

// Write writes a table as CSV: a line of column names, then the rows. Call it once for a table.
func (t *Tables) Write(name string, w io.Writer) error {
	of := tableNamed(name)
	names := make([]string, len(of.columns))
	for i, c := range of.columns {
		names[i] = c.name
	}
	if _, err := io.WriteString(w, strings.Join(names, ",")+"\n"); err != nil {
		return err
	}
	var line []byte
	return t.each(name, func(cells [][]byte) error {
		line = line[:0]
		for _, cell := range cells {
			line = append(appendCSV(line, cell), ',')
		}
		line[len(line)-1] = '\n'
		_, err := w.Write(line)
		return err
	})
}

// Close removes the temporary files.
func (t *Tables) Close() error {
	var err error
	for _, r := range t.rows {
		err = errors.Join(err, r.Close())
	}
	return err
}
