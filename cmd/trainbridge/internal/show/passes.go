package show

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// tabled is how many passes the table has a row for.
const tabled = 10

// passes is the domain of forward passes over RPCs (ZeroMQ, gRPC), and of RPCs outside of a pass.
var passes = domain{
	key:  "passes",
	help: tables.PassesHelp, rows: tables.PassObjects, table: passTable,
	subject: func(t *tree.Trace) string {
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

// passTable prints a row for each of the last 10 passes of RPCs, one with the medians of all complete passes, and one with the sums over all calls, if known.
func passTable(w *strings.Builder, d *digest.Digest, l style) {
	all := d.Passes.Newest()
	if len(all) == 0 {
		return
	}
	var rows []*tables.Pass
	for _, p := range all[max(0, len(all)-tabled):] {
		rows = append(rows, &tables.Pass{Pass: p, Name: time.Unix(0, p.Start).In(l.loc).Format("01-02 15:04:05"), Notes: passNotes(p)})
	}
	rows = append(rows, &tables.Pass{Pass: d.Passes.Middle(), Name: fmt.Sprintf("median of %d", d.Passes.Count-d.Passes.Incomplete)})
	if whole := d.Passes.Whole(); whole != nil {
		rows = append(rows, &tables.Pass{Pass: whole, Name: "all " + human.Plural(int(whole.Calls), "call")})
	}
	t := tables.Passes(rows)
	printTable(w, &t, l)
	if n := d.Passes.Count; n > tabled {
		printParagraph(w, "the median also counts "+human.Plural(n-tabled, "earlier pass"), "2", l)
	}
	printVerdictCounts(w, "passes", d.Passes.Sum(), l)
}

// passNotes returns the notes after a pass: whether the pass is incomplete, and its verdicts by their short names.
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

// groupTitle returns the title of a group of RPCs, a pass or a session: "pass 3, 12 calls", as far as known.
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

// isCall reports whether a span is an RPC of a group.
func isCall(s *tree.Span) bool {
	return s.Kind == view.KindCall && s.Parent != nil && s.Parent.Kind.IsGroup()
}

// callDetails returns the numbers of a span of RPCs: for a group the shares of serializing and transport; for an aggregate count, sum and longest; for a call
// the share of the pass, id, size and rate; for a stage the share of the call.
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
			return nil // its row says the same
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
		d = append(d, shareOfParent(s)...)
		if v.ID.OK {
			d = append(d, fmt.Sprintf("#%d", v.ID.N))
		}
		if !math.IsNaN(v.Throughput) { // a call through shared memory has none
			size := 0.0
			for _, part := range [...]float64{v.RequestSize, v.ResponseSize} {
				if !math.IsNaN(part) {
					size += part
				}
			}
			d = append(d, human.Bytes(size), human.BinaryRate(v.Throughput))
		}
	case s.Parent != nil && (isCall(s.Parent) || s.Name() == spans.SpanRPCServer): // a stage of a call, or a server's part
		d = shareOfParent(s)
	}
	return d
}
