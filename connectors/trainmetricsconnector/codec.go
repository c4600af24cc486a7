package trainmetricsconnector

import (
	"encoding/binary"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/wire"
)

// codec writes the groups of series into bytes, or reads them back. The same code serves both directions, and so cannot read anything but its own form. A nil
// codec does neither.
type codec struct {
	wire.Cursor        // input; Bad if this code has not written the bytes
	reads       bool   // else the codec writes
	b           []byte // output
}

// reading reports whether the codec reads; false when writing, and for a nil codec.
func (c *codec) reading() bool { return c != nil && c.reads }

// text writes s and returns it, or returns the text read. A nil codec returns a clone of s, which outlives the batch.
func (c *codec) text(s string) string {
	switch {
	case c == nil:
		return strings.Clone(s)
	case c.reads:
		return string(c.Bytes())
	}
	c.b = wire.AppendBytes(c.b, s)
	return s
}

// num writes n and returns it, or returns the number read. A nil codec returns n.
func (c *codec) num(n int64) int64 {
	switch {
	case c == nil:
	case c.reads:
		return c.Varint()
	default:
		c.b = binary.AppendVarint(c.b, n)
	}
	return n
}

// float is num for a float.
func (c *codec) float(x float64) float64 {
	switch {
	case c == nil:
	case c.reads:
		return c.Float64()
	default:
		c.b = binary.LittleEndian.AppendUint64(c.b, math.Float64bits(x))
	}
	return x
}

// flag is num for a bool.
func (c *codec) flag(is bool) bool {
	var n int64
	if is {
		n = 1
	}
	return c.num(n) != 0
}

// length is num for the length of a list whose elements take at least a byte each. A length above the rest of the input fails, before memory is allocated for
// the list.
func (c *codec) length(n int) int {
	m := c.num(int64(n))
	if c.reading() && (m < 0 || m > int64(len(c.Rest))) {
		c.Fail()
		return 0
	}
	return int(m)
}

// value is num for a value of a histogram, of either type.
func value[T uint64 | float64](c *codec, n T) T {
	switch v := any(n).(type) {
	case float64:
		return T(c.float(v))
	default:
		return T(c.num(int64(n)))
	}
}

// code passes the life of a series through the codec.
func (l *life) code(c *codec) {
	l.start, l.updated = c.num(l.start), c.num(l.updated)
	if c.reads { // reported before, perhaps with its value
		l.newborn = zeroFlushes
	}
}

// code passes a histogram through the codec, without exemplars. count is not stored: it is the sum of the buckets.
func (h *histogram[T]) code(c *codec, _ *store, _ metricID) {
	h.life.code(c)
	h.coarser, h.offset, h.zeros = int(c.num(int64(h.coarser))), int(c.num(int64(h.offset))), uint64(c.num(int64(h.zeros)))
	n := c.length(len(h.counts))
	if c.reads {
		if n > mostBuckets || h.coarser < 0 || h.coarser > coarsest || h.offset < -mostIndex || h.offset > mostIndex {
			c.Fail()
			return
		}
		h.counts = make([]uint64, n)
	}
	h.count = h.zeros
	for i, n := range h.counts {
		h.counts[i] = uint64(c.num(int64(n)))
		h.count += h.counts[i]
	}
	h.sum, h.min, h.max = value(c, h.sum), value(c, h.min), value(c, h.max)
}

// code passes a gauge through the codec.
func (g *gauge) code(c *codec, _ *store, _ metricID) {
	g.life.code(c)
	g.value, g.end = c.float(g.value), pcommon.Timestamp(c.num(int64(g.end)))
}

// code passes a counter through the codec, without exemplars.
func (n *counter) code(c *codec, _ *store, _ metricID) {
	n.life.code(c)
	n.n = c.float(n.n)
}
