package tables

import (
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// function is a row of Functions: a function of TransferQueue, with the sums of its calls.
type function struct {
	*digest.Function
	digest.FunctionSums
}

// stage is a column of the mean time in a stage and of its share of the call, "1.2 s (34%)". of selects the stage's sum of times. The document has the share.
func stage(name, key string, of func(*function) float64) Column[*function] {
	c := number(name, name, key, nil, ratioOf(of))
	c.text = func(f *function) string {
		if f.Calls == 0 {
			return human.Unknown
		}
		return human.Seconds(f.Mean(of(f))) + " (" + human.Percent(f.Ratio(of(f))) + ")"
	}
	return c
}

func get(f *function) float64     { return f.Get }
func compute(f *function) float64 { return f.Compute }
func put(f *function) float64     { return f.Put }
func queue(f *function) float64   { return f.Get + f.Put }

func meanOf(of func(*function) float64) func(*function) float64 {
	return func(f *function) float64 { return f.Mean(of(f)) }
}

func ratioOf(of func(*function) float64) func(*function) float64 {
	return func(f *function) float64 { return f.Ratio(of(f)) }
}

func calls(f *function) *digest.Values { return &f.Took }

var functions = []Column[*function]{
	text("function", "函数", "function", func(f *function) string { return f.Function.Name }),
	count("calls", "调用次数", "calls", func(f *function) int { return f.Calls }),
	some("incomplete", "未完成", "incomplete", func(f *function) int { return f.FunctionSums.Incomplete }),
	count("", "", "without_trace_id", func(f *function) int { return f.FunctionSums.WithoutID }),
	number("mean", "平均", "mean_seconds", human.Seconds, meanOf(func(f *function) float64 { return f.Total })),
	number("", "", "get_mean_seconds", nil, meanOf(get)),
	number("", "", "compute_mean_seconds", nil, meanOf(compute)),
	number("", "", "put_mean_seconds", nil, meanOf(put)),
	stage("get", "get_ratio", get),
	stage("compute", "compute_ratio", compute),
	stage("put", "put_ratio", put),
	{
		english: "TQ overhead", chinese: "TQ 开销", key: "overhead_ratio", write: human.Percent, of: ratioOf(queue),
		judge: func(f *function) string { return share(queue(f), f.Total) },
	},
	number("P95", "P95", "", human.Seconds, at(calls, 0.95)),
	number("longest", "最长", "", human.Seconds, at(calls, 1)),
}

func functionsOf(d *digest.Digest) (rows []*function) {
	for _, f := range d.Functions.Rows() {
		rows = append(rows, &function{f, f.Sums()})
	}
	return rows
}

// Functions are the functions of TransferQueue.
func Functions(d *digest.Digest, chinese bool) Table {
	return tableOf(functions, functionsOf(d), chinese)
}

// FunctionsHelp are the keys of FunctionObjects.
var FunctionsHelp = "{" + keys(functions, `"verdicts"`) + "}"

// FunctionObjects are the functions for the document.
func FunctionObjects(d *digest.Digest) []any {
	return objects(functions, functionsOf(d), func(f *function, o *Object) { o.Add("verdicts", f.Shown()) })
}

// operations are the columns of Operations. Their texts differ by language, not the heads alone.
func operations(chinese bool) []Column[*digest.Operation] {
	in := func(english, zh string) string {
		if chinese {
			return zh
		}
		return english
	}
	took := func(o *digest.Operation) *digest.Values { return &o.Took }
	return []Column[*digest.Operation]{
		text("operation", "操作", "", func(o *digest.Operation) string { return o.Stage.String() }),
		text("throughput is", "吞吐评价", "", func(o *digest.Operation) string {
			switch rate := o.Overall() / (1 << 20); { // MiB/s; the limits of verl's analyze_tq_logs.py
			case rate > 500:
				return in("good", "良好")
			case rate >= 100:
				return in("fair", "一般")
			case rate < 100:
				return in("low", "偏低")
			}
			return ""
		}),
		count("count", "次数", "", func(o *digest.Operation) int64 { return o.Took.Count() }),
		number("mean", "平均耗时", "", human.Seconds, mean(took)),
		number("P95", "P95", "", human.Seconds, at(took, 0.95)),
		number("data", "数据量", "", human.Bytes, sum(func(o *digest.Operation) *digest.Values { return &o.Size })),
		number("throughput", "吞吐", "", human.BinaryRate, (*digest.Operation).Overall),
		number("lowest", "最低", "", human.BinaryRate, func(o *digest.Operation) float64 { return o.Throughput.Min() }),
	}
}

// Operations are the client operations of TransferQueue.
func Operations(d *digest.Digest, chinese bool) Table {
	return tableOf(operations(chinese), d.Functions.Operations(), chinese)
}
