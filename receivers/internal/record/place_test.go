package record

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOutline(t *testing.T) {
	places := Outline("\na\n  b b\n    c *\n  d\ne\n")
	a, b, c, d, e := places["a"], places["b b"], places["c"], places["d"], places["e"]
	assert.Equal(t, Places{
		"a": {Name: "a", Order: 1}, "b b": {Name: "b b", Under: a, Order: 2}, "c": {
			Name: "c", Under: b, Order: 3, Own: true,
		}, "d": {Name: "d", Under: a, Order: 4}, "e": {Name: "e", Order: 5},
	}, places)
	assert.Same(t, b, c.Under)
	assert.Same(t, a, d.Under)
	assert.Nil(t, e.Under)
}
