package tables

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

func took(c *digest.Collective) *digest.Values { return &c.Took }
func late(c *digest.Collective) *digest.Values { return &c.Late }
func bus(c *digest.Collective) *digest.Values  { return &c.Bus }

var collectives = []Column[*digest.Collective]{
	text("collective", "集合通信", "", func(c *digest.Collective) string {
		if c.Communicator == "" || c.Communicator == human.Unknown {
			return c.Operation
		}
		return c.Operation + " of " + c.Communicator
	}),
	text("", "", "communicator", func(c *digest.Collective) string { return c.Communicator }),
	text("", "", "communicator_id", func(c *digest.Collective) string { return c.ID }),
	text("", "", "operation", func(c *digest.Collective) string { return c.Operation }),
	count("count", "次数", "count", func(c *digest.Collective) int { return c.Count }),
	some("incomplete", "未完成", "incomplete", func(c *digest.Collective) int { return c.Incomplete }),
	number("time P50", "耗时 P50", "duration_seconds_p50", human.Seconds, at(took, 0.5)),
	number("P95", "P95", "", human.Seconds, at(took, 0.95)),
	number("P99", "P99", "", human.Seconds, at(took, 0.99)),
	number("longest", "最长", "duration_seconds_max", human.Seconds, at(took, 1)),
	number("algbw", "algbw", "", human.Rate, func(c *digest.Collective) float64 { return c.Algorithm.Mean() }),
	number("busbw", "busbw", "", human.Rate, mean(bus)),
	number("busbw P50", "busbw P50", "bus_bytes_per_second_p50", human.Rate, at(bus, 0.5)),
	number("lowest", "最低", "", human.Rate, func(c *digest.Collective) float64 {
		if c.Bus.Count() == 0 { // without the size of the communicator
			return c.Algorithm.Min()
		}
		return c.Bus.Min()
	}),
	number("late P50", "迟到 P50", "late_seconds_p50", human.Seconds, at(late, 0.5)),
	number("latest", "最迟", "late_seconds_max", human.Seconds, at(late, 1)),
	number("GPU-seconds lost", "损失 GPU·秒", "", human.Digits, func(c *digest.Collective) float64 {
		if c.Late.Count() == 0 {
			return math.NaN()
		}
		return c.Cost.Sum()
	}),
	text("last most often", "最常最后到达", "", LastMostOften),
	text("", "", "last_most_often", func(c *digest.Collective) string {
		who, _ := c.LastMostOften()
		return who
	}),
}

// LastMostOften is the rank that came last most often, and how often.
func LastMostOften(c *digest.Collective) string {
	if who, times := c.LastMostOften(); who != "" {
		return fmt.Sprintf("%s (%s×)", reading.Clean(who), human.Thousands(times))
	}
	return human.Unknown
}

// Collectives are collectives by operation, or by communicator and operation.
func Collectives(rows []*digest.Collective, chinese bool) Table {
	return tableOf(collectives, rows, chinese)
}

// CollectivesHelp are the keys of CollectiveObjects.
var CollectivesHelp = "{" + keys(collectives, `"verdicts"`) + "}"

// CollectiveObjects are collectives for the document.
func CollectiveObjects(d *digest.Digest) []any {
	return objects(collectives, d.Collectives.Rows(), func(c *digest.Collective, o *Object) { o.Add("verdicts", c.Shown()) })
}

var ranks = []Column[*digest.Rank]{
	text("rank", "rank", "", func(r *digest.Rank) string { return fmt.Sprintf("rank %d", r.Rank) }),
	text("host", "主机", "", func(r *digest.Rank) string { return r.Host }),
	text("communicator", "通信域", "", func(r *digest.Rank) string { return r.Communicator }),
	count("last", "最后到达", "", func(r *digest.Rank) int64 { return r.Last }),
	count("of", "总次数", "", func(r *digest.Rank) int64 { return r.Records }),
	number("mean late", "平均迟到", "", human.Seconds, func(r *digest.Rank) float64 { return r.Late.Mean() }),
	number("latest", "最迟", "", human.Seconds, func(r *digest.Rank) float64 { return r.Late.Max() }),
	number("GPU-seconds lost", "损失 GPU·秒", "", human.Digits, func(r *digest.Rank) float64 { return r.Cost.Sum() }),
	some("errors", "错误", "", func(r *digest.Rank) int { return int(r.Errors) }),
	some("retries", "重试", "", func(r *digest.Rank) int { return int(r.Retries) }),
}

// Ranks are the ranks that others waited for, or that had errors or retries, the most expensive first.
func Ranks(d *digest.Digest, chinese bool) Table {
	rows := slices.DeleteFunc(d.Collectives.Ranks(), func(r *digest.Rank) bool { return r.Cost.Sum() == 0 && r.Errors+r.Retries == 0 })
	slices.SortStableFunc(rows, func(a, b *digest.Rank) int { return cmp.Compare(b.Cost.Sum(), a.Cost.Sum()) })
	return tableOf(ranks, rows, chinese)
}

func links(of, chineseOf string) []Column[*digest.Link] {
	return []Column[*digest.Link]{
		text("link between "+of, chineseOf+"间链路", "", func(l *digest.Link) string { return l.Source + " → " + l.Destination }),
		number("data", "数据量", "", human.Bytes, func(l *digest.Link) float64 { return l.Bytes }),
		number("bandwidth", "带宽", "", human.Rate, func(l *digest.Link) float64 { return l.Bandwidth }),
		count("said to be hot", "热点次数", "", func(l *digest.Link) int64 { return l.Hot }),
		count("slow", "慢链路次数", "", func(l *digest.Link) int64 { return l.Slow }),
	}
}

// Links are tables of the links between hosts and between ranks, those most often slow or hot first, then by bytes.
func Links(d *digest.Digest, chinese bool) (hosts, ranks Table) {
	of := func(columns []Column[*digest.Link], rows []*digest.Link) Table {
		slices.SortStableFunc(rows, func(a, b *digest.Link) int {
			return cmp.Or(cmp.Compare(b.Slow+b.Hot, a.Slow+a.Hot), cmp.Compare(b.Bytes, a.Bytes))
		})
		return tableOf(columns, rows, chinese)
	}
	return of(links("hosts", "主机"), d.Collectives.Nodes()), of(links("ranks", "rank "), d.Collectives.Links())
}
