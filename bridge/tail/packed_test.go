package tail

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rotated file is packed beside itself and then removed. For any times of looks and restarts, with or without state, each line comes once, in order.
func TestPackedBesideItsOriginal(t *testing.T) {
	const stages = 5
	for suffix, pack := range map[string]func(string) string{".gz": gz, ".zst": zst} {
		for looks := range 1 << stages {
			if testing.Short() && looks%16 > 0 {
				continue
			}
			for restart := range 2*stages + 1 {
				after, lost := (restart-1)/2, (restart-1)%2 == 1
				name := fmt.Sprintf("%s, looks %05b", suffix, looks)
				if restart > 0 {
					name += fmt.Sprintf(", restart after %d, state lost %v", after, lost)
				}
				t.Run(name, func(t *testing.T) {
					r := newRig(t, every)
					r.early = true
					var packed string
					for i, stage := range []func(){
						func() { r.append("a.log", numbered(1, 100)) },
						func() { r.rename("a.log", "a.log.1"); r.append("a.log", numbered(101, 150)) },
						func() { packed = pack(numbered(1, 100)); r.write("a.log.1"+suffix, packed[:len(packed)/2]) },
						func() {
							fi, err := os.Stat(r.path("a.log.1"))
							require.NoError(t, err)
							r.append("a.log.1"+suffix, packed[len(packed)/2:])
							require.NoError(t, os.Chtimes(r.path("a.log.1"+suffix), fi.ModTime(), fi.ModTime()))
						},
						func() { r.remove("a.log.1") },
					} {
						stage()
						if looks>>i&1 == 1 {
							r.step(poll)
						}
						if restart > 0 && after == i {
							r.checkpoint()
							if lost {
								clear(r.store.values)
								r.out = nil
							}
							r.restart()
						}
					}
					r.append("a.log", numbered(151, 160))
					r.rest()
					r.rest()
					r.want(numberedLines(1, 160)...)
					assert.Len(t, r.tl.sweeper.streams, 1)
					assert.Zero(t, r.tl.Counts().LostFiles)
				})
			}
		}
	}
}

// A packed file read in part is removed between processes: a loss, also where the file is smaller than the part read.
func TestPackedLostInPart(t *testing.T) {
	for _, whole := range []bool{false, true} {
		r := newRig(t, every, func(c *Config) { c.MaxInFlightBytes = minInFlight })
		r.write("a.log.1.gz", gz(strings.Repeat("a line of more than a few bytes\n", 1000)))
		r.hold = true
		r.now = r.now.Add(time.Hour)
		r.step(0)
		r.ackAll()
		if whole {
			r.hold = false
			r.step(0)
		}
		r.checkpoint()
		f := r.tl.sweeper.streams[r.path("a.log")].files[0]
		require.Greater(t, f.head, f.size)
		require.Equal(t, whole, f.isComplete() || f.isRetired())
		r.crash()
		r.remove("a.log.1.gz")
		r.boot()
		r.rest()
		assert.Equal(t, !whole, r.tl.Counts().LostFiles == 1, whole)
	}
}

// A process that has just taken up a rotated file is killed, and the file packed before the next process starts.
func TestPackedWhileDown(t *testing.T) {
	for _, moved := range []bool{false, true} {
		t.Run(fmt.Sprintf("moved on %v", moved), func(t *testing.T) {
			r := newRig(t, every)
			at := r.now.Add(-time.Hour)
			r.tick = func(string) time.Time { at = at.Add(time.Second); return at }
			r.append("a.log", numbered(1, 100))
			r.rename("a.log", "a.log.1")
			written := at
			r.append("a.log", numbered(101, 150))
			r.tl.sweep(r.now)
			r.checkpoint()
			r.crash()
			to := "a.log.1.gz"
			if moved {
				to = "a.log.2.gz"
			}
			r.write(to, gz(numbered(1, 100)))
			require.NoError(t, os.Chtimes(r.path(to), written, written))
			r.remove("a.log.1")
			if moved {
				r.rename("a.log", "a.log.1")
				r.append("a.log", numbered(151, 160))
			}
			r.boot()
			r.rest()
			r.rest()
			if moved {
				r.want(numberedLines(1, 160)...)
			} else {
				r.want(numberedLines(1, 150)...)
			}
			assert.Len(t, r.tl.sweeper.streams, 1)
			assert.Zero(t, r.tl.Counts().LostFiles)
		})
	}
}

// Rotated and packed between processes: the empty log is gone, and the path names another file with the same inode. Identifying the packed files takes more
// than a sweep.
func TestInodeOfThePackedFile(t *testing.T) {
	for _, oldest := range []bool{false, true} {
		for _, last := range []int{300, 310} {
			t.Run(fmt.Sprintf("the oldest is packed %v, lines %d", oldest, last), func(t *testing.T) {
				r := newRig(t, every)
				r.append("a.log", numbered(1, 100))
				r.step(0)
				r.rename("a.log", "a.log.20260101")
				r.write("a.log", "")
				r.step(poll)
				r.checkpoint()
				r.want(numberedLines(1, 100)...)
				r.crash()
				if oldest {
					r.write("a.log.20260101.gz", gz(numbered(1, 100)))
					r.remove("a.log.20260101")
				}
				r.write("a.log.20260102.gz", gz(numbered(101, 200)))
				r.write("a.log.20260103.gz", gz(numbered(201, 300)))
				r.append("a.log", numbered(301, last))
				r.boot()
				r.tl.probeBytes = 1 // one comparison
				r.rest()
				r.want(numberedLines(101, last)...)
				r.append("a.log", numbered(last+1, 400))
				r.rest()
				r.want(numberedLines(last+1, 400)...)
				assert.Len(t, r.tl.sweeper.streams, 1)
				assert.Zero(t, r.tl.Counts().LostFiles)
			})
		}
	}
}

// The file is packed while unread, because the consumer is down.
func TestUnreadFileIsPacked(t *testing.T) {
	const fits = minInFlight / 4 / minRecordCost
	for _, look := range []bool{false, true} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("look %v, restart %v", look, restart), func(t *testing.T) {
				r := newRig(t, every, func(c *Config) { c.MaxInFlightBytes = minInFlight })
				r.hold = true
				r.append("a.log", numbered(1, fits+5))
				r.step(0)
				r.rename("a.log", "a.log.1")
				r.append("a.log", numbered(fits+6, fits+100))
				r.step(poll)
				r.rename("a.log.1", "a.log.2")
				r.rename("a.log", "a.log.1")
				r.append("a.log", numbered(fits+101, fits+110))
				if look {
					r.step(poll)
				}
				r.write("a.log.1.gz", gz(numbered(fits+6, fits+100)))
				r.step(poll)
				r.remove("a.log.1")
				r.step(poll)
				if restart {
					r.checkpoint()
					r.out = nil
					r.restart()
				}
				r.hold = false
				r.ackAll()
				r.rest()
				r.rest()
				r.want(numberedLines(1, fits+110)...)
				assert.Len(t, r.tl.sweeper.streams, 1)
			})
		}
	}
}

// A compressed file is read before later files, even while the tailer waits for its size to settle.
func TestPackedIsReadInOrder(t *testing.T) {
	r := newRig(t, every)
	r.write("a.log.1.zst", zst("START x\n"))
	r.write("a.log", "END x\n")
	r.step(0)
	r.want()
	r.step(poll)
	r.want("START x | END x")
}

// A compressed file is read even if a file has its name without the suffix, unless made from that file.
func TestPackedBesideAnother(t *testing.T) {
	r := newRig(t, every)
	r.write("a.log.1.gz", gz("one\n"))
	r.write("a.log.1", "two\n")
	r.write("a.log", "three\n")
	r.step(0)
	r.rest()
	assert.ElementsMatch(t, []string{"one", "two", "three"}, r.out)
}

// The current file is packed after its writer has ended.
func TestCurrentFileIsPacked(t *testing.T) {
	for _, restart := range []bool{false, true} {
		r := newRig(t, every)
		r.append("a.log", numbered(1, 100))
		r.step(0)
		packed := gz(numbered(1, 100))
		r.write("a.log.gz", packed[:len(packed)/2])
		r.step(poll)
		r.step(time.Minute)
		r.write("a.log.gz", packed)
		r.step(poll)
		if restart {
			r.checkpoint()
			r.restart()
		}
		r.remove("a.log")
		r.rest()
		r.rest()
		r.want(numberedLines(1, 100)...)
	}
}
