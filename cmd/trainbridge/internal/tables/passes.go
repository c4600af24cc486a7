package tables

import (
	"time"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// Pass is a pass of RPCs, or several together, under a name.
type Pass struct {
	*digest.Pass
	Name, Notes string
}

// limited is a column of shares of a pass, 0 to 1, judged by train_perf's limits (share).
func limited(english, chinese, key string, of func(*Pass) float64) Column[*Pass] {
	c := number(english, chinese, key, human.Percent, of)
	c.judge = func(p *Pass) string {
		if x := of(p); x == x { // not NaN
			return share(x, 1)
		}
		return ""
	}
	return c
}

var passes = []Column[*Pass]{
	text("RPC passes", "前向", "", func(p *Pass) string { return p.Name }),
	number("pass", "序号", "pass", human.Digits, func(p *Pass) float64 { return p.Ordinal }),
	number("calls", "调用次数", "calls", human.Digits, func(p *Pass) float64 { return p.Calls }),
	number("duration", "耗时", "duration_seconds", human.Seconds, func(p *Pass) float64 { return p.Duration }),
	limited("serialize", "序列化", "serialize_ratio", func(p *Pass) float64 { return p.Serialize }),
	limited("transport", "传输", "transport_ratio", func(p *Pass) float64 { return p.Transport }),
	number("server", "服务端", "server_ratio", human.Percent, func(p *Pass) float64 { return p.Server }),
	number("throughput", "吞吐", "bytes_per_second", human.BinaryRate, func(p *Pass) float64 { return p.Throughput }),
	text("verdicts", "判定", "", func(p *Pass) string { return p.Notes }),
}

// Passes are passes of RPCs.
func Passes(rows []*Pass) Table { return tableOf(passes, rows, false) }

// PassesHelp are the keys of PassObjects.
var PassesHelp = `{"start", "incomplete", ` + keys(passes, `"verdicts"`) + "}"

// PassObjects are the newest passes for the document.
func PassObjects(d *digest.Digest) (rows []any) {
	for _, p := range d.Passes.Newest() {
		o := append(Object{{"start", time.Unix(0, p.Start).UTC()}, {"incomplete", p.Incomplete}}, object(passes, &Pass{Pass: p})...)
		o.Add("verdicts", p.Shown())
		rows = append(rows, o)
	}
	return rows
}

func spent(m *digest.Method) *digest.Values { return &m.Took }

var methods = []Column[*digest.Method]{
	text("method", "方法", "", func(m *digest.Method) string { return m.Name }),
	count("calls", "调用次数", "", func(m *digest.Method) int64 { return m.Took.Count() }),
	number("in all", "合计", "", human.Seconds, sum(spent)),
	number("mean", "平均", "", human.Seconds, mean(spent)),
	number("P50", "P50", "", human.Seconds, at(spent, 0.5)),
	number("P95", "P95", "", human.Seconds, at(spent, 0.95)),
	number("P99", "P99", "", human.Seconds, at(spent, 0.99)),
	number("longest", "最长", "", human.Seconds, at(spent, 1)),
	number("sent", "发送", "", human.Bytes, sum(func(m *digest.Method) *digest.Values { return &m.Sent })),
	number("received", "接收", "", human.Bytes, sum(func(m *digest.Method) *digest.Values { return &m.Received })),
}

// Methods are the methods of RPCs.
func Methods(rows []*digest.Method, chinese bool) Table { return tableOf(methods, rows, chinese) }
