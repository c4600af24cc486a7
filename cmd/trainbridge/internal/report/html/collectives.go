package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

const (
	mostRanks = 128 // rows of a map of lateness
	mostMaps  = 3   // communicators with a map
)

// collectives is about collectives: bandwidth over time, latency, lateness, sizes of messages, maps of late ranks and of links, then tables.
func (c *composer) collectives(j *digest.Job) section {
	s := section{Title: c.t("Collectives", "集合通信")}
	cs := &j.Collectives
	operations := cs.Operations()
	s.add(c.bandwidth(j, operations))
	var took, late []named
	times := &boxes{head: head{Kind: "boxes", Title: c.t("Latency by operation", "各操作延迟")}, Unit: "s"}
	for i, o := range operations {
		if o.Took.Count() == 0 {
			continue
		}
		times.Items = append(times.Items, boxOf(o.Operation, i%grey, &o.Took))
		took = append(took, named{o.Operation, &o.Took})
		late = append(late, named{o.Operation, &o.Late})
	}
	s.add(times)
	s.add(c.distribution(c.t("Latency", "延迟分布"), c.t("time", "耗时"), "s", took))
	s.add(c.distribution(c.t("Lateness of the last rank", "最晚 rank 的迟到时间"), c.t("late by", "迟到"), "s", late))
	s.add(c.sizes(operations))
	for _, m := range c.lateness(j) {
		s.add(m)
	}
	for _, of := range []struct {
		bandwidth, traffic, what string
		links                    []*digest.Link
	}{
		{c.t("Bandwidth between ranks", "rank 间带宽"), c.t("Traffic between ranks", "rank 间流量"), "rank", cs.Links()},
		{c.t("Bandwidth between hosts", "主机间带宽"), c.t("Traffic between hosts", "主机间流量"), c.t("host", "主机"), hostLinks(cs)},
	} {
		s.add(c.links(of.bandwidth, "By/s", of.what, of.links, func(l *digest.Link) float64 { return l.Bandwidth }))
		s.add(c.links(of.traffic, "By", of.what, of.links, func(l *digest.Link) float64 { return l.Bytes }))
	}
	rows := cs.Rows()
	figures := tableOf(c.t("Collectives by communicator and operation", "按通信域与操作的集合通信"), tables.Collectives(rows[:min(len(rows), 10*mostNames)], c.chinese))
	if more := len(rows) - len(figures.Cells); more > 0 {
		figures.Note = fmt.Sprintf(c.t("%d more are in --format csv.", "其余 %d 项见 --format csv。"), more)
	}
	s.add(figures)
	slow := tables.Ranks(&j.Digest, c.chinese)
	slow.Rows = slow.Rows[:min(len(slow.Rows), 10*mostNames)]
	s.add(tableOf(c.t("Ranks that the others waited for, or that had errors", "被等待或出错的 rank"), slow))
	return s
}

// bandwidth is the bus bandwidth of each operation (of the first, as many as there are colours) over the time since the job began, with a moving average where
// points are many.
func (c *composer) bandwidth(j *digest.Job, operations []*digest.Collective) *series {
	out := &series{
		head:   head{Kind: "series", Title: c.t("Bus bandwidth over time", "总线带宽随时间变化"), Wide: true},
		XLabel: c.t("since the start", "距开始"), XUnit: "clock", Axes: []axis{{Unit: "By/s", Zero: true}}, Sync: c.job + "time",
	}
	var all []*digest.Series
	var names []string
	for _, o := range operations {
		if len(all) < grey && o.Bus.Count() > 0 {
			all, names = append(all, &o.BusOver), append(names, o.Operation)
		}
	}
	if len(all) == 0 {
		return out
	}
	xs, values, width := points(c.points, all...)
	// Buckets are of ms since 1970; the axis has s since the start.
	first := float64(j.First) / 1e6
	for i := range xs {
		xs[i] = max(0, (xs[i]-first)/1e3)
	}
	out.Xs = xs
	for i, name := range names {
		out.Series = append(out.Series, values[i].line(width, line{Name: name, Colour: i, Draw: "line", Faint: len(xs) > 4*average}))
		if len(xs) > 4*average {
			out.Series = append(out.Series, line{
				Name: name + fmt.Sprintf(c.t(", mean of %d", "，%d 点移动平均"), average), Colour: i, Draw: "average", Values: movingAverage(values[i].of, average),
			})
		}
	}
	if width > 1 {
		out.Note = fmt.Sprintf(c.t("Means of %s, with the least and the most of it.", "每点为 %s 的平均，并示最小与最大值。"), human.Seconds(float64(width)/1e3))
	}
	return out
}

// sizes is the number of messages by size, a bar for each power of two from the smallest to the largest, with a part for each operation that has a colour; the
// messages of other operations are left out.
func (c *composer) sizes(operations []*digest.Collective) *bars {
	out := &bars{head: head{Kind: "bars", Title: c.t("Messages by size", "消息大小分布")}}
	low, high := 64, -1 // exponents of two
	for i, o := range operations {
		if i >= grey {
			break
		}
		out.Parts = append(out.Parts, barPart{o.Operation, i})
		for k := range o.Sizes {
			if o.Sizes[k].Count > 0 {
				low, high = min(low, k), max(high, k)
			}
		}
	}
	for k := low; k <= high; k++ {
		b := bar{Name: human.Binary(k) + " – " + human.Binary(k+1)}
		for i := range out.Parts {
			b.Values = append(b.Values, float64(operations[i].Sizes[k].Count))
		}
		out.Items = append(out.Items, b)
	}
	return out
}

// lateness are maps of how late ranks came over the time of the job, a map for each of the mostMaps communicators with the most ranks, two at least: a row for
// each rank, a column for each piece of the time. Of many ranks those that were late for the longest have rows.
func (c *composer) lateness(j *digest.Job) (out []*heat) {
	cs := &j.Collectives
	start, width, n := cs.Columns()
	by := map[string][]*digest.Rank{} // by communicator: id, else name
	var names []string
	for _, r := range cs.Ranks() {
		if len(r.Over) == 0 {
			continue
		}
		if by[r.Communicator] == nil {
			names = append(names, r.Communicator)
		}
		by[r.Communicator] = append(by[r.Communicator], r)
	}
	called := map[string]string{} // the name of a communicator
	for _, m := range cs.Communicators() {
		called[cmp.Or(m.ID, m.Name)] = m.Name
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(by[b]), len(by[a])) })
	for _, name := range names[:min(len(names), mostMaps)] {
		ranks := by[name]
		if len(ranks) < 2 {
			continue
		}
		title := c.t("How late each rank came", "各 rank 的迟到时间")
		if name = cmp.Or(called[name], name); name != "-" { // human.Unknown: no name
			title += c.t(", communicator ", "，通信域 ") + name
		}
		h := &heat{
			head: head{Kind: "heat", Title: title, Wide: true},
			Unit: "s", RowLabel: "rank", ColumnLabel: c.t("since the start", "距开始"), FromZero: true,
			ValueLabel: fmt.Sprintf(c.t("mean over %s", "%s 内平均"), human.Seconds(float64(width)/1e9)),
		}
		if all := len(ranks); all > mostRanks {
			slices.SortStableFunc(ranks, func(a, b *digest.Rank) int { return cmp.Compare(b.Late.Sum(), a.Late.Sum()) })
			ranks = ranks[:mostRanks]
			slices.SortFunc(ranks, func(a, b *digest.Rank) int { return cmp.Compare(a.Rank, b.Rank) })
			h.Note = fmt.Sprintf(c.t("The %d of %d ranks that were late for the longest in all.", "累计迟到最久的 %d / %d 个 rank。"), mostRanks, all)
		}
		for i := range n {
			h.Columns = append(h.Columns, human.Clock(max(0, float64(start+int64(i)*width-j.First))/1e9))
		}
		for _, r := range ranks {
			label := strconv.FormatInt(r.Rank, 10)
			if r.Host != "" {
				label += " " + r.Host
			}
			h.Rows = append(h.Rows, label)
			for i := range n {
				v := math.NaN()
				if i < len(r.Over) && r.Over[i].Count > 0 {
					v = r.Over[i].Mean()
				}
				h.Values = append(h.Values, v)
			}
		}
		out = append(out, h)
	}
	return out
}

// hostLinks are the links between hosts: as logged, else the sums of the bytes of links between the ranks on the hosts. Links name ranks by number alone: nil
// if the number of a rank is on different hosts in different communicators, or a host is not known. Links of ranks without records, or without bytes, are
// left out.
func hostLinks(cs *digest.Collectives) []*digest.Link {
	if nodes := cs.Nodes(); len(nodes) > 0 {
		return nodes
	}
	hosts := map[string]string{} // by the number of a rank
	for _, r := range cs.Ranks() {
		n := strconv.FormatInt(r.Rank, 10)
		if known, ok := hosts[n]; ok && known != r.Host || r.Host == "" {
			return nil
		}
		hosts[n] = r.Host
	}
	sums := map[[2]string]*digest.Link{} // by the hosts of source and destination
	var out []*digest.Link
	for _, l := range cs.Links() {
		from, to := hosts[l.Source], hosts[l.Destination]
		if from == "" || to == "" || math.IsNaN(l.Bytes) {
			continue
		}
		k := [2]string{from, to}
		if sums[k] == nil {
			sums[k] = &digest.Link{Source: from, Destination: to, Bandwidth: math.NaN()}
			out = append(out, sums[k])
		}
		sums[k].Bytes += l.Bytes
	}
	return out
}

// links is a map of a value of links, with a row for each source and a column for each destination, both of a kind (of): ranks or hosts. Links without the
// value are left out. Links that were hot or slow are named below, in some 400 bytes.
func (c *composer) links(title, unit, of string, links []*digest.Link, value func(*digest.Link) float64) *heat {
	links = slices.DeleteFunc(slices.Clone(links), func(l *digest.Link) bool { return math.IsNaN(value(l)) })
	out := &heat{
		head: head{Kind: "heat", Title: title}, Unit: unit, RowLabel: c.t("from ", "源 ") + of, ColumnLabel: c.t("to ", "目的 ") + of, Square: true, FromZero: true,
	}
	for _, l := range links {
		if l.Hot > 0 || l.Slow > 0 {
			out.Note = joined(out.Note, fmt.Sprintf(c.t("%s→%s: hot %d×, slow %d×", "%s→%s：过热 %d 次，过慢 %d 次"), l.Source, l.Destination, l.Hot, l.Slow))
		}
	}
	if most := 400; len(out.Note) > most {
		out.Note = strings.ToValidUTF8(out.Note[:most], "") + " …"
	}
	rows, columns := map[string]int{}, map[string]int{}
	for _, l := range links {
		if _, ok := rows[l.Source]; !ok {
			rows[l.Source] = len(out.Rows)
			out.Rows = append(out.Rows, l.Source)
		}
		columns[l.Destination] = 0 // a destination; the column is chosen below
	}
	// The destinations in the order of the sources, the others behind.
	for _, name := range out.Rows {
		if _, ok := columns[name]; ok {
			columns[name] = len(out.Columns)
			out.Columns = append(out.Columns, name)
		}
	}
	for _, l := range links {
		if _, ok := rows[l.Destination]; !ok && !slices.Contains(out.Columns, l.Destination) {
			columns[l.Destination] = len(out.Columns)
			out.Columns = append(out.Columns, l.Destination)
		}
	}
	out.Values = make(numbers, len(out.Rows)*len(out.Columns))
	for i := range out.Values {
		out.Values[i] = math.NaN()
	}
	for _, l := range links {
		out.Values[rows[l.Source]*len(out.Columns)+columns[l.Destination]] = value(l)
	}
	return out
}
