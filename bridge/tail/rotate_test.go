package tail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
)

// Files rotated before the first look are older generations of one stream, oldest first.
func TestFirstLookAtRotatedFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		files []string // oldest first
		ages  []int    // modification times, in ms; nil: all alike
	}{
		"logrotate":                      {[]string{"a.log.11", "a.log.2", "a.log.1", "a.log"}, []int{1, 2, 3, 4}},
		"numbers go up":                  {[]string{"a.log.1", "a.log.2", "a.log.11", "a.log"}, []int{1, 2, 3, 4}},
		"coarse clock, numbers go up":    {[]string{"a.log.1", "a.log.2", "a.log.3", "a.log.4", "a.log"}, []int{1, 1, 2, 2, 2}},
		"coarse clock, numbers go down":  {[]string{"a.log.4", "a.log.3", "a.log.2", "a.log.1", "a.log"}, []int{1, 1, 2, 2, 2}},
		"dates":                          {[]string{"a.log-20260101", "a.log-20260102", "a.log"}, nil},
		"the path is free":               {[]string{"a.log.2", "a.log.1"}, []int{1, 2}},
		"the older ones are compressed":  {[]string{"a.log.3.gz", "a.log.2.gz", "a.log.1", "a.log"}, []int{1, 1, 2, 2}},
		"the current one is written now": {[]string{"a.log.2", "a.log.1", "a.log"}, []int{1, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Include = []string{c.Include[0] + "*"} })
			at := r.now.Add(-time.Hour)
			want := []string{}
			for i, f := range tc.files {
				text := fmt.Sprintf("END %d\nfile %d\nSTART %d\n", i, i, i+1)
				if strings.HasSuffix(f, ".gz") {
					text = gz(text)
				}
				r.write(f, text)
				when := at
				if tc.ages != nil {
					when = at.Add(time.Duration(tc.ages[i]) * time.Millisecond)
				}
				require.NoError(t, os.Chtimes(r.path(f), when, when))
				if i > 0 {
					want = append(want, fmt.Sprintf("START %d | END %d", i, i), fmt.Sprintf("file %d", i))
				} else {
					want = append(want, "END 0", "file 0")
				}
			}
			r.step(0)
			r.rest()
			r.want(want...)
			assert.Len(t, r.tl.sweeper.streams, 1)
		})
	}
}

// statInfo is the file system's data about a file.
type statInfo struct {
	fs.FileInfo
	at  int64
	ino uint64
}

func (i statInfo) ModTime() time.Time { return time.Unix(0, i.at) }
func (i statInfo) Sys() any           { return &syscall.Stat_t{Ino: i.ino} }

func TestSortGenerations(t *testing.T) {
	type file struct {
		suffix string
		at     int64
		ino    uint64
	}
	for name, tc := range map[string]struct {
		want []file // oldest first
		own  fs.FileInfo
	}{
		"no evidence":                   {[]file{{".10", 5, 3}, {".9", 5, 2}, {".1", 5, 8}}, statInfo{at: 5, ino: 4}},
		"no evidence, no path":          {[]file{{".10", 5, 3}, {".9", 5, 2}, {".1", 5, 1}}, nil},
		"inodes count up, numbers too":  {[]file{{".1", 5, 1}, {".2.gz", 5, 2}, {".10", 5, 3}}, statInfo{at: 5, ino: 4}},
		"inodes count up, numbers down": {[]file{{".10", 5, 1}, {".2", 5, 2}, {".1", 5, 3}}, statInfo{at: 5, ino: 4}},
		"two inodes, one used again":    {[]file{{".2", 5, 3}, {".1", 5, 1}}, statInfo{at: 5, ino: 4}},
		"times say down, inodes up":     {[]file{{".3", 4, 3}, {".2", 5, 2}, {".1", 5, 1}}, statInfo{at: 5, ino: 4}},
		"times say up":                  {[]file{{".1", 4, 9}, {".2", 4, 8}, {".3", 5, 7}}, statInfo{at: 5, ino: 10}},
		"dates":                         {[]file{{"-20260101", 5, 9}, {"-20260102.gz", 5, 8}, {"-20260103", 5, 7}}, statInfo{at: 5, ino: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			var gens []generation
			for _, f := range slices.Backward(tc.want) {
				gens = append(gens, generation{suffix: f.suffix, fi: statInfo{at: f.at, ino: f.ino}})
			}
			sortGenerations(gens, tc.own)
			for i, f := range tc.want {
				assert.Equal(t, f.suffix, gens[i].suffix)
			}
		})
	}
}

func TestFirstLookAtTheEnd(t *testing.T) {
	r := newRig(t, every, func(c *Config) { c.StartAt = StartAtEnd })
	r.write("a.log.1", numbered(1, 3))
	r.write("a.log", numbered(4, 6))
	r.step(0)
	r.append("a.log", numbered(7, 7))
	r.append("a.log.1", "late\n")
	r.step(poll)
	r.want("late", "line 7 of this very log")
}

// Files of one stream are grouped even if the first is found while its successor is missing.
func TestRotatedFileWaitsForItsSuccessor(t *testing.T) {
	r := newRig(t, every)
	r.write("a.log.1", "START x\n")
	r.step(0)
	r.write("a.log", "END x\n")
	r.step(poll)
	r.want("START x | END x")
	r.write("rank-1.log", "one\n") // no rotated rank
	r.write("b.1.log", "two\n")
	r.step(poll)
	r.want("two", "one")
	assert.Len(t, r.tl.sweeper.streams, 3)
}

// A rotated file is read once, even without any successor.
func TestRotatedFileWithoutSuccessor(t *testing.T) {
	for pattern, change := range map[string]func(*Config){"out of pattern": func(*Config) {}, "in pattern": every} {
		t.Run(pattern, func(t *testing.T) {
			r := newRig(t, change)
			r.append("a.log", "one\n")
			r.step(0)
			r.rename("a.log", "a.log.1")
			r.append("a.log.1", "two\n")
			r.step(poll)
			r.want("one", "two")
			for i := range 60 {
				if r.step(5 * time.Second); i%20 == 7 {
					r.checkpoint()
					r.restart()
				}
			}
			r.want()
			r.append("a.log", "three\n")
			r.rest()
			r.want("three")
			r.append("b.log", numbered(1, 100))
			r.rest()
			r.want(numberedLines(1, 100)...)
			r.remove("b.log")
			r.write("b.log.1.gz", gz(numbered(1, 100)))
			r.steps(60, 5*time.Second)
			r.want()
		})
	}
}

// Old files outside the globs, present at the first look, stay unread.
func TestOldRotatedFileOutOfPattern(t *testing.T) {
	r := newRig(t)
	r.write("a.log.1", numbered(1, 3))
	r.write("a.log", numbered(4, 6))
	r.step(0)
	r.rest()
	r.want(numberedLines(4, 6)...)
}

// A crash before the first periodic checkpoint: without any checkpoint, all lines come again, in order; with the early checkpoint, files rotated out of the
// globs are read too.
func TestCrashBeforeTheFirstCheckpoint(t *testing.T) {
	for name, change := range map[string]func(*Config){"out of pattern": func(*Config) {}, "in pattern": every} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, early %v", name, early), func(t *testing.T) {
				if !early && name == "out of pattern" {
					change = every // nobody could know
				}
				r := newRig(t, change)
				r.early = early
				r.append("a.log", "START x\none\n")
				r.err = errors.New("busy")
				r.step(0)
				r.restart()
				r.rename("a.log", "a.log.2")
				r.append("a.log.1", "two\n")
				r.append("a.log", "END x\n")
				r.err = nil
				r.step(0)
				r.want("one", "two", "START x | END x")
			})
		}
	}
}

// others rotates the log, as Python's handlers do, each time the tailer has listed the directory, a number of times.
func (r *rig) others(times, keep int) (lines *int) {
	n := 0
	write := func() { n++; r.append("a.log", fmt.Sprintf("END %d\nSTART %d\n", n, n+1)) }
	write()
	r.tl.listed = func() {
		if times == 0 {
			return
		}
		times--
		for i := keep; i > 0; i-- {
			_ = os.Rename(r.path(fmt.Sprintf("a.log.%d", i)), r.path(fmt.Sprintf("a.log.%d", i+1)))
		}
		r.rename("a.log", "a.log.1")
		write()
	}
	return &n
}

func TestRotationDuringTheLook(t *testing.T) {
	for name, change := range map[string]func(*Config){"out of pattern": func(*Config) {}, "in pattern": every} {
		for _, times := range []int{1, 2, 3, 4, 5, 6, 7, 8, 15} {
			for _, first := range []bool{true, false} {
				if first && name == "out of pattern" {
					continue // files rotated away before the first look match no glob
				}
				t.Run(fmt.Sprintf("%s, %d times, first look %v", name, times, first), func(t *testing.T) {
					r := newRig(t, change)
					var n *int
					if first {
						n = r.others(times, 20)
						r.step(0)
					} else {
						r.append("a.log", "START 1\n")
						r.step(0)
						r.rename("a.log", "a.log.1")
						n = r.others(times, 20)
						r.step(poll)
					}
					r.tl.listed = func() {}
					r.rest()
					var want []string
					if first {
						want = append(want, "END 1")
					} else {
						want = append(want, "START 1 | END 1")
					}
					for i := 2; i <= *n; i++ {
						want = append(want, fmt.Sprintf("START %d | END %d", i, i))
					}
					r.want(want...)
					assert.Len(t, r.tl.sweeper.streams, 1)
				})
			}
		}
	}
}

// A file replaced by a non-file between stat and open is an error that stops no other file.
func TestOpenError(t *testing.T) {
	r := newRig(t)
	r.write("a.log", "one\n")
	r.write("b.log", "two\n")
	once := false
	r.tl.listed = func() {
		if fi, err := os.Lstat(r.path("a.log")); err == nil && fi.Mode().IsRegular() && !once {
			once = true
			r.remove("a.log")
			require.NoError(t, os.Symlink("a.log", r.path("a.log")))
		}
	}
	r.step(0)
	r.want("two")
	require.NoError(t, os.Remove(r.path("a.log")))
	r.write("a.log", "three\n")
	r.rest()
	r.want("three")
}

func TestLoopingSymlinkIsCounted(t *testing.T) {
	r := newRig(t, func(c *Config) { c.FollowSymlinks = true })
	require.NoError(t, os.Symlink("a.log", r.path("a.log")))
	require.NoError(t, os.Symlink("nothing", r.path("c.log")))
	r.write("b.log", "two\n")
	require.NoError(t, os.Mkdir(r.path("d.log"), 0o700))
	r.step(0)
	r.want("two")
	assert.EqualValues(t, 1, r.tl.Counts().ReadErrors)
}

// A rotated file compressed meanwhile is read once, and its unread lines are read in the compressed file.
func TestRotatedFileIsCompressed(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"out of pattern": func(*Config) {},
		"in pattern":     func(c *Config) { c.Include = []string{c.Include[0] + "*"} },
	} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, while down %v", name, down), func(t *testing.T) {
				r := newRig(t, change)
				r.append("a.log", numbered(1, 3))
				r.step(0)
				r.checkpoint()
				if down {
					r.append("a.log", numbered(4, 5))
					r.crash()
				}
				r.rename("a.log", "a.log.1")
				r.append("a.log", numbered(6, 7))
				text, err := os.ReadFile(r.path("a.log.1"))
				require.NoError(t, err)
				if !down {
					r.step(poll)
				}
				r.write("a.log.1.gz", gz(string(text)))
				r.remove("a.log.1")
				if down {
					r.boot()
				}
				r.rest()
				r.rest()
				if down {
					assert.ElementsMatch(t, numberedLines(1, 7), r.out)
				} else {
					assert.ElementsMatch(t, append(numberedLines(1, 3), numberedLines(6, 7)...), r.out)
				}
				assert.Zero(t, r.tl.Counts().LostFiles)
			})
		}
	}
}

// The file system's clock may be set back: this affects only the order of files rotated unseen, not the lines read.
func TestClockStepsBack(t *testing.T) {
	for name, change := range map[string]func(*Config){"out of pattern": func(*Config) {}, "in pattern": every} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, change)
			at := r.now
			r.tick = func(string) time.Time { return at }
			r.append("a.log", numbered(1, 3))
			r.step(0)
			at = at.Add(-time.Hour)
			r.append("a.log", numbered(4, 5))
			r.step(poll)
			r.append("a.log", "START x\n")
			r.rename("a.log", "a.log.1")
			r.append("a.log", "END x\n"+numbered(6, 7))
			r.step(poll)
			r.checkpoint()
			r.want(append(append(numberedLines(1, 5), "START x | END x"), numberedLines(6, 7)...)...)
			r.restart()
			r.append("a.log", numbered(8, 9))
			r.rest()
			r.want(numberedLines(8, 9)...)
		})
	}
}

// While the consumer is down and the budget is used up, a file is truncated again before any line after the first truncation was read.
func TestCopyTruncateOfUnreadFile(t *testing.T) {
	const fits = minInFlight / 4 / minRecordCost // lines that may be in flight
	for name, change := range map[string]func(*Config){"out of pattern": func(*Config) {}, "in pattern": every} {
		for _, when := range []string{"a look between copy and cut", "a look before the copy", "read before the look", "renamed before the look", "no copy"} {
			t.Run(name+", "+when, func(t *testing.T) {
				r := newRig(t, change, func(c *Config) { c.MaxInFlightBytes = minInFlight })
				r.hold = true
				r.append("a.log", numbered(1, fits+5))
				r.step(0)
				r.copy("a.log", "a.log.1")
				r.truncate("a.log")
				r.append("a.log", numbered(fits+6, fits+7))
				if when != "a look between copy and cut" {
					r.step(poll) // notices the first cut
				}
				if when == "no copy" {
					r.truncate("a.log")
				} else {
					r.rename("a.log.1", "a.log.2")
					r.copy("a.log", "a.log.1")
					if when == "a look between copy and cut" {
						r.step(poll) // notices the first cut
					}
					r.truncate("a.log")
				}
				r.append("a.log", numbered(fits+8, fits+9))
				r.hold = false
				switch when {
				case "read before the look":
					r.ackAll()
					for len(r.tl.ready) > 0 {
						r.tl.turn(r.tl.pop(), &r.buf)
						r.ackAll()
					}
				case "renamed before the look":
					r.rename("a.log.2", "a.log.3")
					r.rename("a.log.1", "a.log.2")
					r.rename("a.log", "a.log.1")
				default:
					r.step(poll)
				}
				r.rest()
				if when == "no copy" {
					r.want(append(numberedLines(1, fits+5), numberedLines(fits+8, fits+9)...)...)
					assert.EqualValues(t, 1, r.tl.Counts().LostFiles)
				} else {
					r.want(numberedLines(1, fits+9)...)
					assert.Zero(t, r.tl.Counts().LostFiles)
				}
				assert.EqualValues(t, 2, r.tl.Counts().Truncations)
			})
		}
	}
}

// A process that starts during the copy of a log, before the truncation, waits: the copy is not another log. A handler that knows a record from two logs would
// be done once the second is read, although the first was not accepted.
func TestCopyWhileStarting(t *testing.T) {
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprintf("has a checkpoint %v", known), func(t *testing.T) {
			r := newRig(t, every)
			r.hold = true
			r.append("a.log", numbered(1, 5))
			if known {
				r.tl.sweep(r.now)
				r.checkpoint()
				r.restart()
			}
			r.copy("a.log", "a.log.1")
			r.step(0)
			r.truncate("a.log")
			r.append("a.log", numbered(6, 7))
			r.step(poll)
			r.checkpoint()
			r.restart() // nothing was accepted
			r.hold = false
			r.step(0)
			r.rest()
			r.want(numberedLines(1, 7)...)
			assert.Len(t, r.tl.sweeper.streams, 1)
			assert.Zero(t, r.tl.Counts().LostFiles)
		})
	}
}

// A file beside a file truncated unread is its copy only if younger.
func TestCutOfUnreadFile(t *testing.T) {
	r := newRig(t)
	r.write("a.log.1", "old\n")
	require.NoError(t, os.Chtimes(r.path("a.log.1"), r.now.Add(-time.Hour), r.now.Add(-time.Hour)))
	r.append("a.log", "unfini")
	r.step(0)
	r.truncate("a.log")
	r.append("a.log", "new line\n")
	r.step(poll)
	r.want("new line")
	assert.EqualValues(t, 1, r.tl.Counts().Truncations)
	assert.EqualValues(t, 1, r.tl.Counts().LostFiles)
}

// Rotated files of a log beside, "train.err.1", are none of "train.log".
func TestBesideAnother(t *testing.T) {
	r := newRig(t)
	r.append("train.log", "1\n")
	r.step(0)
	r.write("train.err.1", "x\n")
	r.remove("train.log")
	r.append("train.log", "2\n")
	r.step(poll)
	r.rest()
	r.want("1", "2")
	assert.Zero(t, r.tl.Counts().LostFiles)
}

// A new log has the inode of a rotated file that was read and removed, and the process restarts before that file is forgotten.
func TestInodeOfARemovedFile(t *testing.T) {
	r := newRig(t)
	r.append("a.log", "1\n")
	r.step(0)
	r.checkpoint()
	key := checkpoint.Key(r.path("a.log"))
	c, err := checkpoint.Decode(r.store.values[key])
	require.NoError(t, err)
	removed := c.Files[0]
	removed.Path, removed.Current, removed.Retired = r.path("a.log.3"), false, true
	c.Files = append([]checkpoint.File{removed}, c.Files...)
	r.store.values[key] = c.Encode(nil)
	r.restart()
	r.rest()
	r.append("a.log", "2\n")
	r.rename("a.log", "a.log.1")
	r.append("a.log", "3\n")
	r.rest()
	r.want("1", "2", "3")
}

// A file empty at one restart, and filled but unread before the next, is recognized although renamed meanwhile.
func TestUnreadFileIsRotatedBetweenRestarts(t *testing.T) {
	const fits = minInFlight / 4 / minRecordCost
	r := newRig(t, func(c *Config) { c.MaxInFlightBytes = minInFlight })
	r.hold = true
	r.append("a.log", numbered(1, fits+5))
	r.step(0)
	r.copy("a.log", "a.log.1")
	r.truncate("a.log")
	r.step(poll)
	r.checkpoint()
	r.crash()
	r.append("a.log", numbered(fits+6, fits+7))
	r.boot()
	r.step(poll)
	r.rename("a.log.1", "a.log.2")
	r.rename("a.log", "a.log.1")
	r.append("a.log", numbered(fits+8, fits+9))
	r.step(poll)
	r.checkpoint()
	r.restart()
	r.hold = false
	r.rest()
	r.want(numberedLines(1, fits+9)...)
}

// The names of two logs were swapped, and the writers keep their files: the file truncated under a stream's path is another stream's.
func TestCopyTruncateOfSwappedFile(t *testing.T) {
	for _, noticed := range []bool{false, true} {
		for _, between := range []bool{false, true} {
			t.Run(fmt.Sprintf("noticed %v, look between %v", noticed, between), func(t *testing.T) {
				r := newRig(t, every)
				r.append("a.log", numbered(1, 10))
				r.append("b.log", numbered(101, 110))
				r.step(0)
				r.rename("a.log", "c")
				r.rename("b.log", "a.log")
				r.rename("c", "b.log")
				if noticed {
					r.step(poll)
				}
				r.append("a.log", numbered(111, 120))
				r.copy("a.log", "a.log.1")
				if between {
					r.step(poll)
				}
				r.truncate("a.log")
				r.append("a.log", numbered(121, 122))
				r.rest()
				r.rest()
				assert.ElementsMatch(t, append(numberedLines(1, 10), numberedLines(101, 122)...), r.out)
				assert.Zero(t, r.tl.Counts().LostFiles)
				assert.EqualValues(t, 1, r.tl.Counts().Truncations)
			})
		}
	}
}
