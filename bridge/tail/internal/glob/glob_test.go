package glob

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGlobs(t *testing.T) {
	for pattern, tc := range map[string]struct {
		match, other  []string
		below, beside []string // directories that can hold a match, and directories that cannot
	}{
		"/logs/*.log":         {[]string{"/logs/a.log"}, []string{"/logs/a/b.log", "/logs/a.txt"}, []string{"/logs"}, []string{"/", "/log"}},
		"/logs/**/*.log":      {[]string{"/logs/a.log", "/logs/a/b.log"}, []string{"/log/a.log"}, []string{"/logs", "/logs/a/b"}, []string{"/log"}},
		"/logs/run*/*.log":    {[]string{"/logs/run1/a.log"}, []string{"/logs/a.log"}, []string{"/logs", "/logs/run1"}, []string{"/logs/old"}},
		"/logs/{a,b/c}/x*":    {[]string{"/logs/a/x1", "/logs/b/c/x"}, []string{"/logs/b/x"}, []string{"/logs/a", "/logs/b"}, []string{"/log"}},
		`/logs/a\[1\]/\*.log`: {[]string{"/logs/a[1]/*.log"}, []string{"/logs/a1/x.log", `/logs/a\[1\]/\*.log`}, []string{"/logs/a[1]"}, []string{"/logs", "/logs/a1"}},
		"logs//./train.log":   {[]string{"logs/train.log"}, []string{"/logs/train.log"}, []string{"logs"}, []string{"log", "logs/train.log"}},
	} {
		l := New([]string{pattern})
		for _, path := range tc.match {
			assert.True(t, l.Match(path), "%s %s", pattern, path)
		}
		for _, path := range tc.other {
			assert.False(t, l.Match(path), "%s %s", pattern, path)
		}
		for _, dir := range tc.below {
			assert.True(t, l.Below(dir), "%s %s", pattern, dir)
		}
		for _, dir := range tc.beside {
			assert.False(t, l.Below(dir), "%s %s", pattern, dir)
		}
	}
	assert.False(t, List{}.Match("/logs/a.log"))
}

// Globs exclude non-logs by name, unless spelled out; a plain path is always included.
func TestSifting(t *testing.T) {
	l := Sifting([]string{"/job/**", "/job/ckpt/x.pt", "/other/**/*.bin", "/repo/.git/*.log"})
	for path, passed := range map[string]string{ // empty: the path is included
		"/job/train.log": "", "/job/ckpt/y.pt": ".pt", "/job/ckpt/x.pt": "", "/job/.git/HEAD": ".git", "/job/a/__pycache__/b.log": "__pycache__",
		"/other/a/b.bin": "", "/other/node_modules/b.bin": "node_modules", "/repo/.git/gc.log": "",
	} {
		assert.Equal(t, passed == "", l.Match(path), path)
		if passed != "" {
			assert.Equal(t, passed, l.PassedOver(path, false), path)
		}
	}
	assert.True(t, l.Below("/job/a"))
	assert.False(t, l.Below("/job/a/.git"))
	assert.True(t, l.Below("/repo/.git"))
	assert.Equal(t, ".git", l.PassedOver("/job/a/.git", true))
	assert.Empty(t, l.PassedOver("/elsewhere/.git", true))
	assert.Empty(t, l.PassedOver("/elsewhere/y.pt", false))
	assert.True(t, New([]string{"/job/**"}).Match("/job/ckpt/y.pt"))
}

// In a list of thousands of plain paths, as from a command for the logs of a directory, paths are looked up, and only patterns are tried in turn.
func TestPlain(t *testing.T) {
	var paths []string
	for i := range 1000 {
		paths = append(paths, fmt.Sprintf("/job/rank-%d.log", i))
	}
	l := Sifting(paths).With(New([]string{"/job/*.log", paths[7], `/job/\[x\]`}))
	assert.Equal(t, []int{1000}, l.others, "are tried")
	assert.Equal(t, []int{7, 1001, 1000}, slices.Collect(l.Matching(paths[7])))
	assert.Equal(t, []int{1002}, slices.Collect(l.Matching("/job/[x]")))
	assert.True(t, l.Names("/job"))
	assert.False(t, l.Names("/"))
}
