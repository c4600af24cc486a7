package filereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPool(t *testing.T) {
	var p Pool[int]
	a, b := p.Get(), p.Get()
	assert.NotSame(t, a, b)
	p.Put(a, 1)
	p.Put(b, 1)
	assert.Len(t, p.free, 1, "no more than so many")
	assert.Same(t, a, p.Get())
	assert.NotSame(t, a, p.Get())
}
