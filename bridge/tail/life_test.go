package tail

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every life is reachable, and every one but the last can end. All tests check that no other transitions happen: see TestMain.
func TestLives(t *testing.T) {
	met := []life{lifeUnread}
	for i := 0; i < len(met); i++ {
		for _, next := range becomes[met[i]] {
			if !slices.Contains(met, next) {
				met = append(met, next)
			}
		}
		f := &file{life: met[i]}
		f.setLife(met[i])
		assert.Equal(t, met[i], f.life, "no turn at all is always possible")
	}
	assert.Len(t, met, int(lives))
	for l := range lives {
		assert.NotEmpty(t, l.String())
		for to := range lives {
			f := &file{path: "x", life: l}
			if l == to || slices.Contains(becomes[l], to) {
				require.NotPanics(t, func() { f.setLife(to) })
			} else {
				require.Panics(t, func() { f.setLife(to) }, "%v to %v", l, to)
			}
		}
	}
}

// Each event takes a file from one life to the next.
func TestLifeOfAFile(t *testing.T) {
	r := newRig(t, every)
	r.write("a.log", "1\n")
	r.step(0)
	f := r.tl.sweeper.streams[r.path("a.log")].current
	assert.Equal(t, lifeRead, f.life)
	r.append("a.log", "2\n")
	r.now = r.now.Add(poll)
	r.tl.sweep(r.now)
	assert.Equal(t, lifeUnread, f.life)
	r.step(0)
	assert.Equal(t, lifeRead, f.life)
	r.rename("a.log", "a.log.1")
	r.write("a.log", "3\n")
	r.step(poll)
	assert.Equal(t, lifeRead, f.life)
	r.step(lingerMax)
	r.step(lingerMax)
	assert.Equal(t, lifeRetired, f.life)
	r.append("a.log.1", "4\n")
	r.remove("a.log")
	r.rename("a.log.1", "a.log")
	r.step(maxIdlePoll)
	assert.Equal(t, lifeRead, f.life, "it has its name back")
	assert.Same(t, f, r.tl.sweeper.streams[r.path("a.log")].current)
	r.truncate("a.log")
	r.step(poll)
	assert.Equal(t, lifeDead, f.life)
	r.want("1", "2", "3", "4")
}
