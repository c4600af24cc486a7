package tail

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (r *rig) status() Status {
	r.step(surveyEvery) // reads
	r.step(surveyEvery)
	return r.tl.Status()
}

// Status names a glob without a match, a glob of a directory, and skipped links.
func TestStatusOfGlobs(t *testing.T) {
	var none, dir string
	r := newRig(t, func(c *Config) {
		at := filepath.Dir(c.Include[0])
		none, dir = filepath.Join(at, "none", "*"), filepath.Join(at, "run")
		c.Include = append(c.Include, none, dir)
	})
	require.NoError(t, os.Mkdir(dir, 0o700))
	r.write("a.log", "x\n")
	require.NoError(t, os.Symlink(r.path("a.log"), r.path("l.log")))
	require.NoError(t, os.Symlink(r.path("a.log"), r.path("other")))
	st := r.status()
	assert.True(t, st.Looked)
	assert.Equal(t, []GlobStatus{{r.cfg.Include[0], true, ""}, {none, false, ""}, {dir, false, dir}}, st.Globs)
	assert.Equal(t, 1, st.Links)
	assert.Equal(t, r.path("l.log"), st.Link)
	assert.Equal(t, 1, st.Files)
	assert.Equal(t, r.path("a.log"), st.Newest)
	r.remove("l.log")
	r.step(fullScanEvery)
	assert.Zero(t, r.status().Links)
}

// Status distinguishes files that a second start finds fully read from files that continue.
func TestStatusOfResumed(t *testing.T) {
	r := newRig(t)
	r.write("a.log", "x\n")
	r.write("b.log", "y\n")
	st := r.status()
	assert.Zero(t, st.Resumed)
	r.checkpoint()
	r.restart()
	r.append("b.log", "z\n")
	r.write("c.log", "new\n")
	st = r.status()
	assert.Equal(t, 3, st.Files)
	assert.Equal(t, 2, st.Resumed)
	assert.Equal(t, 1, st.Finished)
}

func TestStatusOfProgress(t *testing.T) {
	r := newRig(t)
	r.hold = true
	line := strings.Repeat("x", 1023) + "\n"
	r.write("a.log", strings.Repeat(line, 10_000))
	start := r.now
	st := r.status()
	assert.EqualValues(t, 10_240_000, st.Size)
	read := r.tl.Counts().Bytes
	assert.Positive(t, read)
	st = r.status() // the budget is used up
	assert.Equal(t, 10_240_000-read, st.Lag)
	assert.InDelta(t, 3, st.Behind(r.now).Seconds(), 0.1)
	assert.Equal(t, start.Add(surveyEvery).UnixNano(), st.LagSince.UnixNano(), "when it was met")
	assert.InDelta(t, float64(read)/3, st.Rate, 1)
	assert.InDelta(t, float64(st.Lag)/st.Rate, st.ETA().Seconds(), 1e-3)
	r.hold = false
	r.steps(100, surveyEvery)
	st = r.status()
	assert.Zero(t, st.Lag)
	assert.Zero(t, st.ETA())
	assert.Zero(t, st.Behind(r.now))
	assert.Zero(t, st.Rate)
	assert.EqualValues(t, 10_240_000, r.tl.Counts().Bytes)
	r.append("a.log", "half a line")
	assert.Zero(t, r.status().Lag, "a line without its end is not behind")
}

// Files with lines but no record are named, the longest first; ten thousand are a number.
func TestStatusOfMute(t *testing.T) {
	r := newRig(t)
	r.write("good.log", "# x\nrecord\n")
	r.write("short.log", "# x\n")
	r.write("empty.log", "")
	assert.Empty(t, r.status().Mute, "more may come")
	r.write("long.log", strings.Repeat("# y\n", muteLines))
	st := r.status()
	assert.Equal(t, Mute{r.path("long.log"), muteLines}, st.Mute[0])
	r.now = r.now.Add(muteAfter)
	st = r.status()
	assert.Equal(t, []Mute{{r.path("long.log"), muteLines}, {r.path("short.log"), 1}}, st.Mute)
	for i := range 100 {
		r.write(fmt.Sprintf("%03d.log", i), "# z\n")
	}
	r.step(muteAfter)
	st = r.status()
	assert.Equal(t, 102, st.MuteFiles)
	assert.EqualValues(t, 301, st.MuteLines)
	assert.Len(t, st.Mute, maxMute)
	r.append("long.log", "record\n")
	assert.Equal(t, 101, r.status().MuteFiles)
}
