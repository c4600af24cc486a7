package digest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// Collective sums up the collectives of one operation in one communicator. Times and bandwidths are of the completed ones.
type Collective struct {
	ID           string // of the communicator, "": not known
	Communicator string // its name, else its id, else "-"; name and id where several have one name
	Operation    string

	Count, Incomplete int
	Took              Values         // ns, from the first arrival on
	Bus               Values         // By/s
	Late              Values         // ns, of the last rank behind the first
	Last              map[string]int // "rank 3 on gpu-node-0": how often it was last
	Verdicts
}

func (g *Collective) add(s *tree.Span, v *view.Collective) {
	g.count(s)
	g.Count++
	if v.Incomplete {
		g.Incomplete++
		return
	}
	g.Took.add(CollectiveDuration(s, v))
	g.Bus.add(v.BandwidthBus)
	g.Late.add(v.Last.Late * 1e9)
	if v.Last.Rank.OK {
		who := fmt.Sprintf("rank %d", v.Last.Rank.N)
		if v.Last.Host != "" {
			who += " on " + v.Last.Host
		}
		g.Last[who]++
	}
}

// LastMostOften is who was last most often, and how often; "" where that is not known.
func (g *Collective) LastMostOften() (who string, times int) {
	if len(g.Last) == 0 {
		return "", 0
	}
	who = ByCount(g.Last)[0]
	return who, g.Last[who]
}

// Collectives are the collectives.
type Collectives struct{ by map[collectiveKey]*Collective }

type collectiveKey struct{ id, communicator, operation string }

func (d *Collectives) add(t *tree.Trace) {
	for _, s := range t.Spans {
		if s.Kind != view.KindCollective {
			continue
		}
		var v view.Collective
		v.Read(s.Span)
		k := collectiveKey{v.CommID, Communicator(&v), v.Operation}
		if d.by == nil {
			d.by = map[collectiveKey]*Collective{}
		}
		g := d.by[k]
		if g == nil {
			g = &Collective{ID: k.id, Communicator: k.communicator, Operation: k.operation, Last: map[string]int{}, Verdicts: newVerdicts()}
			d.by[k] = g
		}
		g.add(s, &v)
	}
}

// Rows are the collectives by communicator and operation.
func (d *Collectives) Rows() []*Collective {
	ids := map[string]map[string]bool{} // by the communicator's name
	for k := range d.by {
		if ids[k.communicator] == nil {
			ids[k.communicator] = map[string]bool{}
		}
		ids[k.communicator][k.id] = true
	}
	for k, g := range d.by {
		if g.Communicator = k.communicator; len(ids[k.communicator]) > 1 && k.id != "" {
			g.Communicator += " " + k.id
		}
	}
	return slices.SortedFunc(maps.Values(d.by), func(a, b *Collective) int {
		return cmp.Or(cmp.Compare(a.Communicator, b.Communicator), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.ID, b.ID))
	})
}

// Communicator is the name of a collective's communicator, else its id, else "-".
func Communicator(v *view.Collective) string {
	name := v.CommName
	if name == "unknown" { // as NCCL Inspector says when it has none
		name = ""
	}
	return cmp.Or(name, v.CommID, "-")
}

// CollectiveDuration is from the first arrival on, in ns.
func CollectiveDuration(s *tree.Span, v *view.Collective) float64 {
	if math.IsNaN(v.Duration) {
		return float64(s.NS())
	}
	return v.Duration * 1e9
}
