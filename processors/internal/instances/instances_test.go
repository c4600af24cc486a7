package instances

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"
)

func TestDropped(t *testing.T) {
	s := New(func() *int { return new(int) })
	id, other := component.MustNewID("one"), component.MustNewID("other")
	one, releaseOne := s.Use(id)
	two, releaseTwo := s.Use(id)
	assert.Same(t, one, two)
	of, releaseOther := s.Use(other)
	assert.NotSame(t, one, of)
	releaseOther()
	releaseOne()
	releaseOne()
	assert.Len(t, s.used, 1)
	releaseTwo()
	assert.Empty(t, s.used)
	three, releaseThree := s.Use(id)
	assert.NotSame(t, one, three)
	releaseOne()
	assert.Len(t, s.used, 1)
	releaseThree()
}
