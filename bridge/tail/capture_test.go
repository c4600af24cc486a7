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

// shift rotates a.log, keeps some, and reports the events to the tailer if seen is set.
func (r *rig) shift(keep int, seen bool) {
	for i := keep; i >= 1; i-- {
		from, to := fmt.Sprintf("a.log.%d", i), fmt.Sprintf("a.log.%d", i+1)
		if os.Rename(r.path(from), r.path(to)) == nil && seen {
			r.tl.capture(r.path(to), false)
		}
	}
	r.rename("a.log", "a.log.1")
	if seen {
		r.tl.capture(r.path("a.log.1"), false)
	}
	_ = os.Remove(r.path(fmt.Sprintf("a.log.%d", keep+1)))
}

// Files that come and go between two looks are read, in order, if their creation events arrive in time.
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
					r.tl.capture(r.path("a.log"), true)
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
				assert.Empty(t, r.tl.captures.open)
				assert.Empty(t, r.tl.sweeper.captured)
				assert.LessOrEqual(t, r.tl.open.Load(), int64(1))
			})
		}
	}
}

// Files removed before they could be opened are counted.
func TestRotatedOutUnseenIsCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		keep, times int
		seen        bool
		early       bool // right after the path was met
		gap         bool
		want        int64
	}{
		"each creation event is late": {keep: 2, times: 10, seen: true, want: 7},
		"early":                       {keep: 2, times: 10, seen: true, early: true, want: 6}, // one creation may be the first file's
		"the last one read is no longer in the chain": {keep: 2, times: 10, want: 1},
		"it is":                      {keep: 5, times: 4},
		"a number is missing":        {keep: 5, times: 4, gap: true, want: 1},
		"seen, and all still there":  {keep: 5, times: 4, seen: true},
		"early, and all still there": {keep: 5, times: 4, seen: true, early: true},
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
			if tc.seen {
				for range tc.times {
					r.tl.capture(r.path("a.log"), true)
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

// Creation events after a look has found the files, and files that get their name back, are no losses.
func TestBirthsThatAreNoLosses(t *testing.T) {
	r := newRig(t)
	r.append("a.log", "0\n")
	r.step(0)
	r.tl.capture(r.path("a.log"), true) // the event of its own path, late
	r.step(2 * time.Second)
	for i := range 10 {
		r.shift(3, true)
		r.append("a.log", fmt.Sprintf("%d\n", i+1))
		r.step(poll)
		r.tl.capture(r.path("a.log"), true)
		r.step(poll)
	}
	r.rename("a.log", "b")
	r.rename("b", "a.log")
	r.tl.capture(r.path("a.log"), false)
	r.copy("a.log", "a.log.9")
	r.tl.capture(r.path("a.log.9"), true)
	r.rest()
	assert.Len(t, r.out, 11)
	assert.Zero(t, r.tl.Counts().LostFiles)
}

// Files that a rotation renames to other names in the globs are read there, and not lost, however late the events of their creation are; a removed file is.
func TestRotatedIntoTheGlobsIsNoLoss(t *testing.T) {
	for _, late := range []bool{false, true} {
		for removed := range 2 {
			r := newRig(t)
			r.append("a.log", "0\n")
			r.step(0)
			r.step(2 * time.Second)
			created := func() { r.tl.capture(r.path("a.log"), true) }
			for i := range 3 {
				to := fmt.Sprintf("a.%d.log", i)
				r.rename("a.log", to)
				r.tl.capture(r.path(to), false)
				r.append("a.log", fmt.Sprintf("%d\n", i+1))
				if !late {
					created()
				}
			}
			for range removed {
				r.remove("a.log")
				r.append("a.log", "new\n")
				created()
			}
			for range 3 {
				if late {
					created()
				}
			}
			r.step(poll)
			r.rest()
			lost := 0
			if late { // else the removed file was opened
				lost = removed
			}
			assert.EqualValues(t, lost, r.tl.Counts().LostFiles)
			assert.Len(t, r.out, 4+removed-lost)
		}
	}
}

// A deleted file not read to its end is lost when the process ends.
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

// A file renamed during the comparison with its path's file is not taken for a copy of itself.
func TestNoFileIsItsOwnCopy(t *testing.T) {
	r := newRig(t)
	r.write("a.log", "one\n")
	raw, fi, err := osfile.Open(r.path("a.log"), false)
	require.NoError(t, err)
	defer raw.Close()
	assert.False(t, sameSoFar(r.path("a.log"), raw, fi))
}
