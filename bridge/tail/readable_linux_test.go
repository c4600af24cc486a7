package tail

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asNobody has the test's thread open files as another user: root may read everything.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread()
	for dir := t.TempDir(); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if fi, err := os.Stat(dir); err == nil && fi.Mode()&0o055 != 0o055 {
			require.NoError(t, os.Chmod(dir, fi.Mode()|0o055))
		}
	}
	_, err := unix.SetfsuidRetUid(65534)
	require.NoError(t, err)
}

func asRoot(f func()) {
	if os.Geteuid() != 0 {
		f()
		return
	}
	_ = unix.Setfsuid(0)
	f()
	_ = unix.Setfsuid(65534)
}

type unreadable struct {
	path string // the path unreadable at first
	late bool   // it was readable when first seen
	boot bool   // the process begins meanwhile
	want string
}

func makeReadable(t *testing.T, cases map[string]unreadable) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				c.Include = []string{filepath.Join(filepath.Dir(c.Include[0]), "**", "*.log")}
			})
			require.NoError(t, os.Chmod(r.dir, 0o777))
			require.NoError(t, os.Mkdir(r.path("x"), 0o777))
			require.NoError(t, os.Chmod(r.path("x"), 0o777))
			mode := func(m os.FileMode) { asRoot(func() { require.NoError(t, os.Chmod(r.path(tc.path), m)) }) }
			asNobody(t)
			defer func() {
				_ = unix.Setfsuid(0)
				_ = os.Chmod(r.path(tc.path), 0o777)
			}()
			write := func(text string) {
				asRoot(func() {
					r.append("x/a.log", text)
					require.NoError(t, os.Chmod(r.path("x/a.log"), 0o644))
				})
			}
			write("one\n")
			if !tc.late {
				mode(0)
			}
			r.step(0)
			if tc.late {
				r.want("one")
				r.checkpoint()
				r.crash()
				write("two\n")
				mode(0)
				if !tc.boot {
					asRoot(func() { require.NoError(t, os.Chmod(r.path(tc.path), 0o755)) })
					r.boot()
					r.step(0)
					r.want("two")
					write("three\n")
					mode(0)
				} else {
					r.boot()
				}
			}
			r.steps(200, poll)
			r.steps(100, 3*time.Second)
			if len(r.out) == 0 {
				assert.Positive(t, r.tl.Counts().ReadErrors)
			}
			mode(0o755)
			r.steps(25, poll)
			r.want(tc.want)
			assert.Zero(t, r.tl.Counts().LostFiles)
			assert.Zero(t, r.tl.Counts().Truncations)
		})
	}
}

// A path that becomes readable is read within five seconds, after any time, even without an event.
func TestMadeReadable(t *testing.T) {
	makeReadable(t, map[string]unreadable{
		"file":                    {path: "x/a.log", want: "one"},
		"file that was read":      {path: "x/a.log", late: true, want: "three"},
		"file, at a restart":      {path: "x/a.log", late: true, boot: true, want: "two"},
		"directory":               {path: "x", want: "one"},
		"directory that was read": {path: "x", late: true, want: "three"},
		"directory, at a restart": {path: "x", late: true, boot: true, want: "two"},
	})
}

// A file moved, copied or swapped while unreadable is recognized once readable.
func TestMadeReadableElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		while func(r *rig) // between two processes
		want  []string
	}{
		"renamed": {func(r *rig) {
			r.rename("a.log", "a.log.1")
			r.append("a.log", "three\n")
			require.NoError(r.t, os.Chmod(r.path("a.log"), 0))
		}, []string{"two", "three"}},
		"copied and cut": {func(r *rig) {
			r.copy("a.log", "a.log.1")
			require.NoError(r.t, os.Chmod(r.path("a.log.1"), 0o644))
			r.truncate("a.log")
			r.append("a.log", "three and more than there was\n")
			require.NoError(r.t, os.Chmod(r.path("a.log"), 0))
		}, []string{"two", "three and more than there was"}},
		"exchanged": {func(r *rig) {
			r.rename("a.log", "aside")
			r.rename("b.log", "a.log")
			r.rename("aside", "b.log")
			r.append("a.log", "four\n")
			for _, name := range []string{"a.log", "b.log"} {
				require.NoError(r.t, os.Chmod(r.path(name), 0))
			}
		}, []string{"two", "four"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Include = append(c.Include, c.Include[0]+".*") })
			require.NoError(t, os.Chmod(r.dir, 0o777))
			asNobody(t)
			defer func() { _ = unix.Setfsuid(0) }()
			public := func(names ...string) {
				for _, name := range names {
					require.NoError(t, os.Chmod(r.path(name), 0o644))
				}
			}
			asRoot(func() {
				r.append("a.log", "one\n")
				r.append("b.log", "one of b\n")
				public("a.log", "b.log")
			})
			r.step(0)
			r.want("one", "one of b")
			r.checkpoint()
			r.crash()
			asRoot(func() {
				r.append("a.log", "two\n")
				tc.while(r)
			})
			r.boot()
			r.steps(50, poll)
			asRoot(func() { public("a.log", "b.log") })
			r.steps(25, poll)
			assert.ElementsMatch(t, tc.want, r.out)
			assert.Zero(t, r.tl.Counts().LostFiles)
		})
	}
}

// An existing directory without write permission for this user is rejected for refused lines.
func TestDeadLetterDenied(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "closed")
	require.NoError(t, os.Mkdir(dir, 0o555))
	path := filepath.Join(dir, "refused.txt")
	asNobody(t)
	defer func() { _ = unix.Setfsuid(os.Geteuid()) }()
	c := DefaultConfig()
	c.Include, c.DeadLetter = []string{"**/*.log"}, path
	err := c.Check()
	require.ErrorContains(t, err, "cannot be written")
	require.ErrorContains(t, err, "'dead_letter': \""+path+"\"")
}
