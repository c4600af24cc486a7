package facts

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// Shares are the stages' shares of the time of RPCs, from breakdown.RPCSerialize on.
type Shares [breakdown.RPCStages]float64

// SetShares keeps the shares of a leaf with the flag Shares.
func (r *Run) SetShares(id pcommon.SpanID, shares Shares) {
	if r.shares == nil {
		r.shares = map[pcommon.SpanID]Shares{}
	}
	r.shares[id] = shares
}

// SharesOf returns the shares of a leaf; zeros: the leaf has none.
func (r *Run) SharesOf(l *Leaf) Shares {
	if !l.Shares {
		return Shares{}
	}
	return r.shares[l.Span]
}

// forgetShares drops the shares of leaves.
func (r *Run) forgetShares(leaves []Leaf) {
	if len(r.shares) == 0 {
		return
	}
	for i := range leaves {
		if leaves[i].Shares {
			delete(r.shares, leaves[i].Span)
		}
	}
}
