package facts

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// Stage has the kept facts of a stage of a TransferQueue call; stages are many.
type Stage struct {
	Span       pcommon.SpanID
	Start, End int64 // ns
	Kind       breakdown.Kind
	Flags      Flags
}

// AddStage adds a stage to the group of its trace. With FindRepeats a repeat is not added; otherwise it is stored twice, until Settled.
func (r *Run) AddStage(g *Group, s Stage, now time.Time) {
	if r.known != nil && slices.ContainsFunc(g.Stages, func(o Stage) bool { return o.Span == s.Span }) {
		return
	}
	if g.Stages == nil {
		g.Stages = make([]Stage, 0, 3*g.expected()) // get, compute and put
	}
	g.Stages = append(g.Stages, s)
	g.staged++
	g.extendBounds(s.Start, s.End, s.Flags)
	r.bytes += stageBytes
	r.touch(g, now)
}

// Settled returns the stages of the group in order of time, each once.
func (g *Group) Settled() []Stage {
	if !g.settled {
		slices.SortFunc(g.Stages, func(a, b Stage) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), slices.Compare(a.Span[:], b.Span[:]))
		})
		g.Stages = slices.CompactFunc(g.Stages, func(a, b Stage) bool { return a.Span == b.Span })
		g.settled = true
	}
	return g.Stages
}
