package collectives

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/spans"
)

// maxPhased bounds the ranks with spans of waiting and transferring: nobody reads a thousand.
const maxPhased = 64

// fitToTrace decides which ranks and details have spans of their own, and which are summed up (aggregate), because a trace has at most MaxSpans spans. First
// each rank gets a span (part.left: no span). The remaining spans go rank by rank, the latest and longest first, to the phases waiting and transferring of at
// most maxPhased ranks (part.plain: no phases), and to the details (part.bare: no details).
//
// fitToTrace also numbers the records of a rank with several records (part.again).
func (c *Collective) fitToTrace() {
	need, phased := len(c.parts), 0
	if c.hasPhases() {
		phased = min(len(c.parts), maxPhased)
	}
	need += 2 * phased // waiting and transferring
	for i := range c.parts {
		if p := &c.parts[i]; p.more != nil {
			need += len(p.more.details)
		}
		if i > 0 && c.parts[i-1].rank == c.parts[i].rank {
			c.parts[i].again = c.parts[i-1].again + 1
		}
	}
	room := MaxSpans - maxAround
	allPhased := phased == 0 || phased == len(c.parts) // else the phases of ranks beyond maxPhased are summed up, whatever the room
	if need <= room && allPhased {
		return
	}
	c.crowded = true
	order := make([]int32, len(c.parts)) // indices in parts, the latest and longest first
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(x, y int32) int {
		a, b := &c.parts[x], &c.parts[y]
		return cmp.Or(cmp.Compare(b.late, a.late), cmp.Compare(b.duration, a.duration))
	})
	room -= len(c.parts) // once room is below 0, all further ranks are plain and bare
	for n, i := range order {
		p := &c.parts[i]
		if n >= MaxSpans-maxAround {
			p.left = true
		}
		p.plain = n >= phased || room < 2
		if !p.plain {
			room -= 2
		}
		if p.more != nil {
			if room -= len(p.more.details); room < 0 {
				p.bare = true
			}
		}
	}
}

// sums has the totals of spans of one name that have no room in the trace: one aggregate span stands for them.
type sums struct {
	name     string
	took     []int64 // duration of each, ns
	from, to int64   // from the first start to the last end, Unix ns
}

// addToSums adds a span to the sums of its name, and returns the list. took is the duration of the span, ns; negative: unknown, counts as 0.
func addToSums(all []*sums, name string, start, end, took int64) []*sums {
	at := slices.IndexFunc(all, func(s *sums) bool { return s.name == name })
	if at < 0 {
		at = len(all)
		all = append(all, &sums{name: name, from: math.MaxInt64})
	}
	s := all[at]
	s.took = append(s.took, max(took, 0))
	s.from, s.to = min(s.from, start), max(s.to, end)
	return all
}

// sumsWithoutRoom returns, by name, the sums of the spans that fitToTrace found no room for: of ranks, of their phases, of their details.
func (c *Collective) sumsWithoutRoom() (all []*sums) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.left {
			all = addToSums(all, spans.SpanNCCLRank, p.start, p.end, p.duration)
		}
		if (p.left || p.plain) && c.hasPhases() {
			begun := c.transferStart(p)
			all = addToSums(all, spans.SpanNCCLWait, p.start, begun, begun-p.start)
			all = addToSums(all, spans.SpanNCCLTransfer, begun, p.end, p.end-begun)
		}
		if p.bare || p.left && p.more != nil {
			for k := range p.more.details {
				d := &p.more.details[k]
				took := d.duration
				if took < 0 {
					took = d.end - d.start
				}
				all = addToSums(all, d.name, p.start, p.end, took) // with the rank's times: a detail may lack its own
			}
		}
	}
	return all
}

// aggregate adds, below the root, a span per name for the spans without room: their number, and sum, median and maximum of their durations.
func (bd *builder) aggregate(c *Collective) {
	for _, v := range c.sumsWithoutRoom() {
		slices.Sort(v.took)
		n, sum := len(v.took), int64(0)
		for _, took := range v.took {
			sum += took
		}
		s := bd.Add(spans.Resource{Service: bd.service, RunID: c.run.id, Time: c.parts[0].how.time}, spans.Span{
			Trace: c.trace, ID: spans.SpanID(childTrace(c.trace, c.id), "aggregate", []byte(v.name)), Parent: c.id, Name: v.name, Is: spans.KindAggregate,
			Kind: ptrace.SpanKindInternal, State: c.state,
			Start: v.from, End: v.to, Source: c.parts[0].how.time, Attributes: 4,
		})
		m := s.Attributes()
		m.PutInt(spans.AttrAggregateCount, int64(n))
		m.PutDouble(spans.AttrAggregateSum, seconds(sum))
		m.PutDouble(spans.AttrAggregateP50, stat.Median(v.took)/1e9)
		m.PutDouble(spans.AttrAggregateMax, seconds(v.took[n-1]))
	}
}
