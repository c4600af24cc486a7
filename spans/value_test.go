package spans

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestValues(t *testing.T) {
	m := pcommon.NewMap()
	m.PutStr("s", "x")
	m.PutInt("i", 3)
	m.PutDouble("d", 0.5)
	m.PutDouble("inf", math.Inf(1))
	assert.Equal(t, "x", AttrText(m, "s"))
	assert.Empty(t, AttrText(m, "i"))
	assert.Empty(t, AttrText(m, "absent"))
	for name, want := range map[string]float64{"i": 3, "d": 0.5} {
		v, _ := m.Get(name)
		assert.InDelta(t, want, ValueNumber(v), 0)
	}
	for _, name := range []string{"s", "inf"} {
		v, _ := m.Get(name)
		assert.True(t, math.IsNaN(ValueNumber(v)), name)
	}
}
