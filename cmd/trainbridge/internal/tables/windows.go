package tables

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
)

// Window is how windows of a kind (spans.WindowStep, …) are called, one and several: "batch", "batches". Chinese has a single form. A further kind is "window"
// in English, where its own name may have no plural; in Chinese it keeps its name, and is 窗口 without one.
func Window(of string, chinese bool) (one, several string) {
	if chinese {
		known := map[string]string{spans.WindowStep: "训练步", spans.WindowBatch: "批次", spans.WindowPass: "前向"}
		zh := cmp.Or(known[of], of, "窗口")
		return zh, zh
	}
	switch of {
	case spans.WindowStep:
		return of, "steps"
	case spans.WindowBatch:
		return of, "batches"
	case spans.WindowPass:
		return of, "passes"
	}
	return "window", "windows"
}

// part is a row of Parts: a part of the time of windows, or the whole.
type part struct {
	name      string
	all, slow *digest.Values // s in each window, and in each slow window
	share     float64        // of the time of all windows; NaN: of the whole
}

func allOf(p *part) *digest.Values  { return p.all }
func slowOf(p *part) *digest.Values { return p.slow }

var parts = []Column[*part]{
	text("part", "部分", "part", func(p *part) string { return p.name }),
	number("in all", "合计", "", human.Seconds, sum(allOf)),
	number("share", "占比", "ratio", human.Percent, func(p *part) float64 { return p.share }),
	number("mean", "平均", "", human.Seconds, mean(allOf)),
	number("P50", "P50", "seconds_p50", human.Seconds, at(allOf, 0.5)),
	number("P95", "P95", "", human.Seconds, at(allOf, 0.95)),
	number("longest", "最长", "", human.Seconds, at(allOf, 1)),
	number("mean of slow ones", "偏慢者平均", "", human.Seconds, mean(slowOf)),
	number("", "", "slow_seconds_p50", nil, at(slowOf, 0.5)),
}

// partsOf are the parts of the time of windows, the largest first, the unattributed rest last. A part that is only ever a point in time, as an evaluation whose
// result alone is logged, has no time that is known, and no row.
func partsOf(w *digest.Window, chinese bool) (rows []*part) {
	const point = 1e-6 // s: a span of a nanosecond stands for a point
	for _, p := range w.ByTime() {
		name := p.Name
		if longest := p.All.Quantile(1); longest > 0 && longest < point && name != spans.PartUnattributed {
			continue
		}
		if name == spans.PartUnattributed && chinese {
			name = "未归因"
		}
		rows = append(rows, &part{name, &p.All, &p.Slow, w.Share(p)})
	}
	return rows
}

// Parts is a table of the parts of the time of windows, as partsOf has them. The last row, "200 steps, 3 slow", is the whole.
func Parts(w *digest.Window, chinese bool) Table {
	one, several := Window(w.Of, chinese)
	n := w.Took.Count()
	all := fmt.Sprintf("%s %s，其中偏慢 %s", human.Thousands(n), one, human.Thousands(w.SlowCount))
	if !chinese {
		if n == 1 {
			several = one
		}
		all = fmt.Sprintf("%s %s, %s slow", human.Thousands(n), several, human.Thousands(w.SlowCount))
	}
	return tableOf(parts, append(partsOf(w, chinese), &part{all, &w.Took, &w.SlowTook, math.NaN()}), chinese)
}

// WindowsHelp are the keys of Windows.
var WindowsHelp = `{"window", "count", "slow", "duration_seconds_p50", "parts": [{` + keys(parts, "") +
	`}], "why": [{"trace", "start", "duration_seconds", "over_seconds", "reason"}]}`

// Windows are the kinds of windows for the document: the parts of their time, and why the slow windows were slow.
func Windows(d *digest.Digest) (rows []any) {
	for _, w := range d.Windows.Rows() {
		var o Object
		o.Add("window", reading.Clean(w.Of))
		o.Add("count", w.Took.Count())
		o.Add("slow", w.SlowCount)
		if x := w.Took.Quantile(0.5); spans.Finite(x) {
			o.Add("duration_seconds_p50", x)
		}
		o.Add("parts", objects(parts, partsOf(w, false), nil))
		var why []any
		for _, s := range w.Slow {
			var one Object
			one.Add("trace", s.Trace.String())
			one.Add("start", time.Unix(0, s.Start).UTC())
			one.Add("duration_seconds", s.Of.Took)
			one.Add("over_seconds", s.Of.Over)
			one.Add("reason", reading.Clean(s.Of.Reason))
			why = append(why, one)
		}
		AddAll(&o, "why", why)
		rows = append(rows, o)
	}
	return rows
}
