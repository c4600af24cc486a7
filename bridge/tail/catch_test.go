package tail

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
)

// shift rotates a.log, keeps some, and says so to the tailer if heard is set.
func (r *rig) shift(keep int, heard bool) {
	for i := keep; i >= 1; i-- {
		from, to := fmt.Sprintf("a.log.%d", i), fmt.Sprintf("a.log.%d", i+1)
		if os.Rename(r.path(from), r.path(to)) == nil && heard {
			r.tl.catch(r.path(to), false)
		}
	}
	r.rename("a.log", "a.log.1")
	if heard {
		r.tl.catch(r.path("a.log.1"), false)
	}
	_ = os.Remove(r.path(fmt.Sprintf("a.log.%d", keep+1)))
}

// Files that come and go between two looks are read, in order, when the system says in time that they were created.
func TestRotatedOutBetweenLooks(t *testing.T) {
	for pattern, change := range map[string]func(*Config){"out of pattern": func(*Config) {}, "in pattern": every} {
		for _, sameTime := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, times alike %v", pattern, sameTime), func(t *testing.T) {
				r := newRig(t, change)
				if sameTime {
					at := r.now
					r.tick = func(string) time.Time { return at }
				}
				r.append("a.log", numbered(0, 0)+"START 0\n")
				r.step(0)
				r.step(2 * time.Second)
				want := numberedLines(0, 0)
				for i := range 50 {
					r.shift(2, true)
					if i%10 == 0 {
						r.step(poll)
					}
					r.write("a.log", "")
					r.tl.catch(r.path("a.log"), true)
					r.append("a.log", fmt.Sprintf("END %d\n", i)+numbered(i, i)+fmt.Sprintf("START %d\n", i+1))
					want = append(want, fmt.Sprintf("START %d | END %d", i, i), numberedLines(i, i)[0])
					if i%7 == 0 {
						r.step(poll)
					}
				}
				r.rest()
				r.rest()
				r.want(want...)
				c := r.tl.Counts()
				assert.Zero(t, c.LostFiles)
				assert.Zero(t, c.Truncations)
				r.steps(4, time.Minute)
				assert.Empty(t, r.tl.catches.open)
				assert.Empty(t, r.tl.sweeper.nets)
				assert.LessOrEqual(t, r.tl.open.Load(), int64(1))
			})
		}
	}
}

// Files that were gone before they could be opened are counted.
func TestRotatedOutUnseenIsCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		keep, times int
		heard       bool
		early       bool // right after the path was met
		gap         bool
		want        int64
	}{
		"each creation is heard of too late": {keep: 2, times: 10, heard: true, want: 7},
		"early":                              {keep: 2, times: 10, heard: true, early: true, want: 6}, // one creation may be the first file's
		"the last one read is no longer in the chain": {keep: 2, times: 10, want: 1},
		"it is":                         {keep: 5, times: 4},
		"a number is missing":           {keep: 5, times: 4, gap: true, want: 1},
		"heard of, and all still there": {keep: 5, times: 4, heard: true},
		"early, and all still there":    {keep: 5, times: 4, heard: true, early: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			logs := r.observed()
			r.append("a.log", "0\n")
			r.step(0)
			if !tc.early {
				r.step(2 * time.Second)
			}
			for i := range tc.times {
				r.shift(tc.keep, false)
				r.append("a.log", fmt.Sprintf("%d\n", i+1))
			}
			if tc.gap {
				r.remove("a.log.2")
			}
			if tc.heard {
				for range tc.times {
					r.tl.catch(r.path("a.log"), true)
				}
			}
			r.step(poll)
			r.rest()
			assert.Equal(t, tc.want, r.tl.Counts().LostFiles)
			assert.Equal(t, int(min(tc.want, 1)), logs.FilterMessageSnippet("rotated away before they could be opened").Len(), "said once")
			kept := min(tc.keep, tc.times-1) + 1
			if tc.gap {
				kept--
			}
			assert.Len(t, r.out, 1+kept)
		})
	}
}

// Creations that are heard of after a look has found the files, and files that get their name back, are no losses.
func TestBirthsThatAreNoLosses(t *testing.T) {
	r := newRig(t)
	r.append("a.log", "0\n")
	r.step(0)
	r.tl.catch(r.path("a.log"), true) // the event of its own path, late
	r.step(2 * time.Second)
	for i := range 10 {
		r.shift(3, true)
		r.append("a.log", fmt.Sprintf("%d\n", i+1))
		r.step(poll)
		r.tl.catch(r.path("a.log"), true)
		r.step(poll)
	}
	r.rename("a.log", "b")
	r.rename("b", "a.log")
	r.tl.catch(r.path("a.log"), false)
	r.copy("a.log", "a.log.9")
	r.tl.catch(r.path("a.log.9"), true)
	r.rest()
	assert.Len(t, r.out, 11)
	assert.Zero(t, r.tl.Counts().LostFiles)
}

// A deleted file that was not read to its end is lost when the process ends.
func TestDeletedFileAtTheEnd(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxInFlightBytes = minInFlight })
	r.hold = true
	r.append("a.log", numbered(1, 100_000))
	r.step(0)
	r.remove("a.log")
	r.step(poll)
	tl := r.tl
	r.tl.closeFiles()
	assert.EqualValues(t, 1, tl.Counts().LostFiles)
	require.Zero(t, tl.open.Load())
}

// A file that is renamed while it is compared with the file at its path is not taken for a copy of itself.
func TestNoFileIsItsOwnCopy(t *testing.T) {
	r := newRig(t)
	r.write("a.log", "one\n")
	raw, fi, err := osfile.Open(r.path("a.log"), false)
	require.NoError(t, err)
	defer raw.Close()
	assert.False(t, sameSoFar(r.path("a.log"), raw, fi))
}
