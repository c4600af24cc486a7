package digest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/spans"
)

// Clocks are what reports on ranks (Megatron's --log-straggler) say of the clocks and temperatures of GPUs. Each report has the extremes of all ranks.
type Clocks struct {
	Reports int // with clocks
	slow    map[int64]*SlowClock
}

// SlowClock is a GPU whose clock was the lowest of all in some reports, and 10 % below the highest, or more.
type SlowClock struct {
	Rank          int64
	Reports       int
	Least, Others float64 // MHz: the lowest clock, and the highest of all in the same report
	Hottest       float64 // °C, in the reports in which the rank was the hottest as well; 0: never
	At
}

const (
	slowClock      = 0.9
	mostSlowClocks = 256
)

// add adds a report: counts it, and records the GPU with the lowest clock if slow.
func (c *Clocks) add(s ptrace.Span, res *resource) {
	least, rank, ok := readExtreme(s, "MnClk/Rnk", "MHz")
	most, _, also := readExtreme(s, "MxClk/Rnk", "MHz")
	if !ok || !also {
		return
	}
	c.Reports++
	if !(least > 0) || least > slowClock*most {
		return
	}
	gpu := c.slow[rank]
	if gpu == nil {
		if c.slow == nil {
			c.slow = map[int64]*SlowClock{}
		}
		if len(c.slow) >= mostSlowClocks {
			return
		}
		gpu = &SlowClock{Rank: rank, Least: least + 1}
		c.slow[rank] = gpu
	}
	gpu.Reports++
	if least < gpu.Least {
		gpu.Least, gpu.Others, gpu.At = least, most, res.at(s)
	}
	if hot, who, ok := readExtreme(s, "MxTmp/Rnk", "C"); ok && who == rank {
		gpu.Hottest = max(gpu.Hottest, hot)
	}
}

// readExtreme reads an attribute such as "1590.00MHz/21": a value with a unit, and the rank that has it. false: absent, or of another form.
func readExtreme(s ptrace.Span, name, unit string) (x float64, rank int64, ok bool) {
	value, after, _ := strings.Cut(spans.AttrText(s.Attributes(), spans.AttrTrainFieldPrefix+name), unit+"/")
	x, isNumber := decimal.Float([]byte(value))
	rank, err := strconv.ParseInt(after, 10, 64)
	return x, rank, isNumber && err == nil
}

// Slow returns the GPUs with a low clock, the GPU with the most reports first.
func (c *Clocks) Slow() []*SlowClock {
	return slices.SortedFunc(maps.Values(c.slow), func(a, b *SlowClock) int {
		return cmp.Or(cmp.Compare(b.Reports, a.Reports), cmp.Compare(a.Rank, b.Rank))
	})
}
