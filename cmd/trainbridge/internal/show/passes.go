package show

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// tabled is how many passes the table has a row for.
const tabled = 10

// passes are forward passes over RPCs, and the RPCs beside them.
var passes = domain{
	key: "passes",
	help: `[{"start", "incomplete", "pass", "calls", "duration_seconds", "serialize_ratio", "transport_ratio", "server_ratio",
                      "bytes_per_second", "verdicts"}]`,
	rows: passRows, table: passTable,
	what: func(t *tree.Trace) string {
		for _, s := range t.Spans {
			if s.Kind.IsGroup() {
				return groupTitle(s)
			}
		}
		return ""
	},
	colours: map[string]string{
		spans.SpanRPCPass: "1", spans.SpanRPCSerialize: "35", spans.SpanRPCSend: "34", spans.SpanRPCReceive: "94", spans.SpanRPCServer: "32",
		spans.SpanRPCDeserialize: "95", spans.SpanRPCUnattributed: "90", spans.SpanRPCOffline: "90",
	},
	details: callDetails,
}

// passColumn is a column of the table of passes.
type passColumn struct {
	name, key string // of the table, and of the document
	of        func(*digest.Pass) float64
	text      func(float64) string
	limited   bool // a share above 30 % is bad
}

var passColumns = []passColumn{
	{"pass", "pass", func(p *digest.Pass) float64 { return p.Ordinal }, human.Digits, false},
	{"calls", "calls", func(p *digest.Pass) float64 { return p.Calls }, human.Digits, false},
	{"duration", "duration_seconds", func(p *digest.Pass) float64 { return p.Duration }, human.Seconds, false},
	{"serialize", "serialize_ratio", func(p *digest.Pass) float64 { return p.Serialize }, human.Percent, true},
	{"transport", "transport_ratio", func(p *digest.Pass) float64 { return p.Transport }, human.Percent, true},
	{"server", "server_ratio", func(p *digest.Pass) float64 { return p.Server }, human.Percent, false},
	{"throughput", "bytes_per_second", func(p *digest.Pass) float64 { return p.Throughput }, human.BinaryRate, false},
}

func (c *passColumn) cell(v float64) cell {
	switch {
	case math.IsNaN(v):
		return cell{text: "-"}
	case c.limited:
		return cell{c.text(v), overheadColour(v, 1)}
	}
	return cell{text: c.text(v)}
}

func passRows(d *digest.Digest) (rows []any) {
	for _, p := range d.Passes.Newest() {
		row := map[string]any{"start": time.Unix(0, p.Start).UTC(), "incomplete": p.Incomplete, "verdicts": p.Shown()}
		for _, c := range passColumns {
			if v := known(c.of(p)); v != nil {
				row[c.key] = *v
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// passTable prints a row for each of the last passes of RPCs, and the medians of all that were seen to their end.
func passTable(w *strings.Builder, d *digest.Digest, l look) {
	all := d.Passes.Newest()
	if len(all) == 0 {
		return
	}
	g := grid{head: []string{"RPC passes"}, left: map[int]bool{len(passColumns) + 1: true}}
	for _, c := range passColumns {
		g.head = append(g.head, c.name)
	}
	g.head = append(g.head, "verdicts")
	add := func(name string, of func(c *passColumn) float64, notes string) {
		cells := texts(name)
		for i := range passColumns {
			cells = append(cells, passColumns[i].cell(of(&passColumns[i])))
		}
		g.add(append(cells, cell{text: notes})...)
	}
	for _, p := range all[max(0, len(all)-tabled):] {
		add(time.Unix(0, p.Start).In(l.loc).Format("01-02 15:04:05"), func(c *passColumn) float64 { return c.of(p) }, passNotes(p))
	}
	middle := d.Passes.Middle()
	add(fmt.Sprintf("median of %d", d.Passes.Count-d.Passes.Incomplete), func(c *passColumn) float64 { return c.of(middle) }, "")
	if whole := d.Passes.Whole(); whole != nil {
		add("all "+human.Plural(int(whole.Calls), "call"), func(c *passColumn) float64 { return c.of(whole) }, "")
	}
	g.print(w, l)
	if n := d.Passes.Count; n > tabled {
		paragraph(w, human.Thousands(n-tabled)+" before these are in the median too", "2", l)
	}
	verdictCounts(w, "passes", d.Passes.Sum(), l)
}

func passNotes(p *digest.Pass) string {
	var notes []string
	if p.Incomplete {
		notes = append(notes, "INCOMPLETE")
	}
	for _, name := range p.Told {
		notes = append(notes, strings.TrimPrefix(verdictName(name), "zeromq_"))
	}
	return strings.Join(notes, " ")
}

// groupTitle says which group of RPCs a span is the root of.
func groupTitle(s *tree.Span) string {
	var v view.Group
	v.Read(s.Span, s.Resource)
	var parts []string
	if v.Ordinal.OK {
		parts = append(parts, fmt.Sprintf("pass %d", v.Ordinal.N))
	}
	if !math.IsNaN(v.Calls) {
		parts = append(parts, human.Plural(int(v.Calls), "call"))
	}
	return strings.Join(parts, ", ")
}

// isCall says whether a span is one RPC of a group.
func isCall(s *tree.Span) bool {
	return s.Kind == view.KindCall && s.Parent != nil && s.Parent.Kind.IsGroup()
}

// callDetails are the numbers of a group of RPCs, of one of them or of a stage.
func callDetails(s *tree.Span) (d []string) {
	switch {
	case s.Kind.IsGroup():
		var v view.Group
		v.Read(s.Span, s.Resource)
		if share := digest.RPCShare(&v, view.RPCSerialize); !math.IsNaN(share) {
			d = append(d, "serialize "+human.Percent(share))
		}
		if share := digest.RPCShare(&v, view.RPCTransport); !math.IsNaN(share) {
			d = append(d, "transport "+human.Percent(share))
		}
	case s.Kind == view.KindAggregate:
		var v view.Aggregate
		if v.Read(s.Span); v.JoinBy != "" {
			return nil // its row says it otherwise
		}
		d = append(d, human.Plural(int(v.Count.N), "span"))
		if !math.IsNaN(v.Sum) {
			d = append(d, "together "+human.Seconds(v.Sum))
		}
		if !math.IsNaN(v.Max) {
			d = append(d, "longest "+human.Seconds(v.Max))
		}
	case isCall(s):
		var v view.Call
		v.Read(s.Span, s.Resource)
		d = append(d, ofParent(s)...)
		if v.ID.OK {
			d = append(d, fmt.Sprintf("#%d", v.ID.N))
		}
		if !math.IsNaN(v.Throughput) { // not through shared memory
			size := 0.0
			for _, part := range [...]float64{v.RequestSize, v.ResponseSize} {
				if !math.IsNaN(part) {
					size += part
				}
			}
			d = append(d, human.Bytes(size), human.BinaryRate(v.Throughput))
		}
	case s.Parent != nil && (isCall(s.Parent) || s.Name() == spans.SpanRPCServer):
		d = ofParent(s)
	}
	return d
}
