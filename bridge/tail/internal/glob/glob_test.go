package glob

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGlobs(t *testing.T) {
	for pattern, tc := range map[string]struct {
		match, other  []string
		below, beside []string // directories that can hold a match, and others
	}{
		"/logs/*.log":       {[]string{"/logs/a.log"}, []string{"/logs/a/b.log", "/logs/a.txt"}, []string{"/logs"}, []string{"/", "/log"}},
		"/logs/**/*.log":    {[]string{"/logs/a.log", "/logs/a/b.log"}, []string{"/log/a.log"}, []string{"/logs", "/logs/a/b"}, []string{"/log"}},
		"/logs/run*/*.log":  {[]string{"/logs/run1/a.log"}, []string{"/logs/a.log"}, []string{"/logs", "/logs/run1"}, []string{"/logs/old"}},
		"/logs/{a,b/c}/x*":  {[]string{"/logs/a/x1", "/logs/b/c/x"}, []string{"/logs/b/x"}, []string{"/logs/a", "/logs/b"}, []string{"/log"}},
		"logs//./train.log": {[]string{"logs/train.log"}, []string{"/logs/train.log"}, []string{"logs"}, []string{"log", "logs/train.log"}},
	} {
		l := New([]string{pattern})
		for _, path := range tc.match {
			assert.True(t, l.Match(path), "%s %s", pattern, path)
		}
		for _, path := range tc.other {
			assert.False(t, l.Match(path), "%s %s", pattern, path)
		}
		for _, dir := range tc.below {
			assert.True(t, l[0].Below(dir), "%s %s", pattern, dir)
		}
		for _, dir := range tc.beside {
			assert.False(t, l[0].Below(dir), "%s %s", pattern, dir)
		}
	}
	assert.False(t, List(nil).Match("/logs/a.log"))
}
