package view

import "go.opentelemetry.io/collector/pdata/ptrace"

// LateRank is a late rank, and its cost for the others.
type LateRank struct {
	Rank       Int // absent: not known
	Host       string
	Late, Cost float64 // s
}

// MissingRanks returns how many ranks have no record.
func (c *Collective) MissingRanks() int64 {
	if c.MissingCount > float64(c.Missing.Len()) {
		return int64(c.MissingCount)
	}
	return int64(c.Missing.Len())
}

// LacksRanks reports whether the communicator has ranks without a record of the collective, possibly the rank that others waited for. Sends and receives have a
// single rank.
func (c *Collective) LacksRanks() bool {
	if c.Operation == "Send" || c.Operation == "Recv" {
		return false
	}
	return c.MissingRanks() > 0 || c.CommSize.OK && c.Ranks.N < c.CommSize.N
}

// finish names a collective of another writer, whose operation is the span's name.
func (c *Collective) finish(span ptrace.Span) {
	if c.Operation == "" {
		c.Operation = span.Name()
	}
}
