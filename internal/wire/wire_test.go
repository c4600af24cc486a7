package wire_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/wire"
)

// all has one of each.
type all struct {
	u    uint64
	v    int64
	f    uint64 // bits
	b    byte
	text string
	of   []string
}

func (a *all) append(b []byte) []byte {
	b = wire.AppendVarints(binary.AppendUvarint(b, a.u), a.v)
	b = append(wire.AppendFloats(b, math.Float64frombits(a.f)), a.b)
	b = binary.AppendUvarint(wire.AppendBytes(b, a.text), uint64(len(a.of)))
	for _, text := range a.of {
		b = wire.AppendBytes(b, []byte(text))
	}
	return b
}

func read(c *wire.Cursor) (a all) {
	a.u, a.v, a.f, a.b, a.text = c.Uvarint(), c.Varint(), math.Float64bits(c.Float64()), c.Byte(), string(c.Bytes())
	for range c.Count(1) {
		a.of = append(a.of, string(c.Bytes()))
	}
	return a
}

func TestCursor(t *testing.T) {
	for _, want := range []all{
		{},
		{1<<64 - 1, math.MinInt64, math.Float64bits(math.Inf(-1)), 255, "text", []string{"", "a"}},
		{127, math.MaxInt64, math.Float64bits(math.NaN()), 1, "", nil},
		{128, -1, 1, 0, "é", []string{""}},
	} {
		b := want.append(nil)
		c := wire.Cursor{Rest: append(b, 'x')}
		assert.Equal(t, want, read(&c))
		assert.Equal(t, wire.Cursor{Rest: []byte("x")}, c)
		for n := range b {
			c := wire.Cursor{Rest: b[:n]}
			read(&c)
			assert.Equal(t, wire.Cursor{Bad: true}, c, "cut behind %d bytes", n)
			assert.Zero(t, read(&c), "bad ones give zeros")
		}
	}
}

func TestBadNumbers(t *testing.T) {
	for name, read := range map[string]func(c *wire.Cursor) bool{
		"beyond 64 bits":       func(c *wire.Cursor) bool { return c.Uvarint() == 0 },
		"beyond 64 bits too":   func(c *wire.Cursor) bool { return c.Varint() == 0 },
		"a length beyond int":  func(c *wire.Cursor) bool { return c.Take(math.MaxUint64) == nil },
		"more than bytes":      func(c *wire.Cursor) bool { c.Rest = []byte{3, 0, 0}; return c.Count(1) == 0 },
		"more than have bytes": func(c *wire.Cursor) bool { c.Rest = []byte{2, 0, 0, 0}; return c.Count(2) == 0 },
	} {
		c := wire.Cursor{Rest: []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}}
		assert.True(t, read(&c), name)
		assert.Equal(t, wire.Cursor{Bad: true}, c, name)
	}
	c := wire.Cursor{Rest: []byte{2, 0, 0, 0, 0}}
	assert.Equal(t, 2, c.Count(2))
}

// FuzzCursor: reading returns the written values, or the cursor is bad; reading never goes beyond the end.
func FuzzCursor(f *testing.F) {
	f.Add((&all{1, -1, 2, 3, "a", []string{"b"}}).append(nil))
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := wire.Cursor{Rest: b}
		a := read(&c)
		if c.Bad {
			assert.Empty(t, c.Rest)
			return
		}
		again := wire.Cursor{Rest: a.append(nil)}
		assert.Equal(t, a, read(&again))
		assert.Equal(t, wire.Cursor{Rest: []byte{}}, again)
	})
}
