package tail

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/tfevents"
)

// eventFile is an event file with two scalars in each of the steps 1 to to.
func eventFile(t *testing.T, to int64) string {
	t.Helper()
	var b bytes.Buffer
	w, err := tfevents.NewWriter(&b, 1.7e9)
	require.NoError(t, err)
	for i := int64(1); i <= to; i++ {
		require.NoError(t, w.Scalar(tfevents.Scalar{WallTime: 1.7e9 + float64(i), Step: i, Tag: "train/loss", Value: float64(i) / 4}))
		require.NoError(t, w.Scalar(tfevents.Scalar{WallTime: 1.7e9 + float64(i) + 0.125, Step: i, Tag: "lr", Value: 0.1}))
	}
	return b.String()
}

// eventLines are the lines of eventFile.
func eventLines(from, to int64) (lines []string) {
	for i := from; i <= to; i++ {
		lines = append(lines, fmt.Sprintf(`{"step": %d, "wall_time": %d.125000, "train/loss": %v, "lr": 0.1}`, i, 1_700_000_000+i, float64(i)/4))
	}
	return lines
}

func wandbFile(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open("../../internal/wandb/testdata/" + name + ".wandb.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(b)
}

// trackers has a rig read the files of trackers.
func trackers(c *Config) {
	dir := filepath.Dir(c.Include[0])
	c.Include = []string{filepath.Join(dir, "*tfevents*"), filepath.Join(dir, "*.wandb")}
}

const eventName = "events.out.tfevents.1700000000.host.17.0"

// For any growth of a file, and any restarts, its rows are the same.
func TestRowsGrow(t *testing.T) {
	files := map[string]string{eventName: eventFile(t, 300)}
	for _, name := range []string{"hf-0.31.0", "blocks-0.31.0", "plain-0.16.6", "gpu-0.31.0"} {
		files["run-"+name+".wandb"] = wandbFile(t, name)
	}
	for name, content := range files {
		whole := newRig(t, trackers)
		whole.write(name, content)
		whole.rest()
		whole.step(whole.cfg.PendingTimeout)
		want := whole.out
		require.NotEmpty(t, want)
		for _, size := range []int{7, 97, 5003} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, trackers, every)
				size := max(size, len(content)/400)
				for n, rest := 0, content; rest != ""; n++ {
					part := min(size, len(rest))
					r.append(name, rest[:part])
					rest = rest[part:]
					r.step(poll)
					if n%50 == 20 {
						r.checkpoint()
						r.restart()
					}
				}
				r.rest()
				r.step(r.cfg.PendingTimeout)
				assert.Equal(t, want, r.out)
				r.balance()
			})
		}
	}
}

// The last row comes once the file is idle, and the next row behind it.
func TestLastRow(t *testing.T) {
	r := newRig(t, trackers)
	short, long := eventFile(t, 3), eventFile(t, 4)
	r.write(eventName, short)
	r.step(0)
	r.want(eventLines(1, 2)...)
	r.step(r.cfg.PendingTimeout)
	r.want(eventLines(3, 3)...)
	r.append(eventName, long[len(short):len(long)-3])
	r.step(10 * time.Second)
	r.want()
	r.append(eventName, long[len(long)-3:])
	r.step(10 * time.Second)
	r.step(r.cfg.PendingTimeout)
	r.want(eventLines(4, 4)...)
}

// Unaccepted rows are read again after a crash.
func TestRowsAgain(t *testing.T) {
	for _, packed := range []bool{false, true} {
		t.Run(strconv.FormatBool(packed), func(t *testing.T) {
			r := newRig(t, trackers, every, func(c *Config) { c.MaxInFlightBytes = minInFlight })
			name, text := eventName, eventFile(t, 500)
			if packed {
				name, text = name+".gz", gz(text)
			}
			r.write(name, text)
			r.hold = true
			r.step(0)
			r.step(poll)
			r.step(poll)
			require.NotEmpty(t, r.flying)
			r.ack(len(r.flying) - 1)
			r.checkpoint()
			r.restart()
			r.hold = false
			r.rest()
			r.step(r.cfg.PendingTimeout)
			r.rest()
			assert.ElementsMatch(t, eventLines(1, 500), r.out)
		})
	}
}

// A reader that starts at the end begins with the unfinished row.
func TestRowsFromTheEnd(t *testing.T) {
	for name, content := range map[string][2]string{
		eventName: {eventFile(t, 5), eventFile(t, 7)},
		"a.wandb": {wandbFile(t, "blocks-0.31.0")[:150_000], wandbFile(t, "blocks-0.31.0")},
	} {
		r := newRig(t, trackers, func(c *Config) { c.StartAt = StartAtEnd })
		r.write(name, content[0])
		r.step(0)
		before := len(r.out)
		r.append(name, content[1][len(content[0]):])
		r.step(10 * time.Second)
		r.step(r.cfg.PendingTimeout)
		if name == eventName {
			r.want(eventLines(5, 7)...)
			continue
		}
		assert.Zero(t, before)
		assert.NotEmpty(t, r.out)
	}
}

// A picture beyond the line limit is skipped, and counted.
func TestLongRecord(t *testing.T) {
	r := newRig(t, trackers, func(c *Config) { c.MaxLineBytes = minLineBytes })
	head, tail := eventFile(t, 2), eventFile(t, 3)
	var b bytes.Buffer
	w, err := tfevents.NewWriter(&b, 1.7e9)
	require.NoError(t, err)
	first := b.Len()
	require.NoError(t, w.Scalar(tfevents.Scalar{Tag: strings.Repeat("x", 1<<20)}))
	r.write(eventName, head+b.String()[first:1<<19])
	r.step(0)
	r.step(poll)
	r.append(eventName, b.String()[1<<19:]+tail[len(head):])
	r.step(poll)
	r.step(poll)
	r.step(r.cfg.PendingTimeout)
	r.want(eventLines(1, 3)...)
	assert.Equal(t, int64(1), r.tl.Counts().Ignored[reasonLong])
}

// Of a damaged file the whole records are read, and the others counted.
func TestDamagedRows(t *testing.T) {
	r := newRig(t, trackers)
	b := []byte(eventFile(t, 100))
	b[2000] ^= 1
	b[3000] ^= 1
	r.write(eventName, string(b))
	r.step(0)
	r.step(r.cfg.PendingTimeout)
	assert.Greater(t, len(r.out), 96)
	assert.Positive(t, r.tl.Counts().Rejected[reasonDamaged])
	r.balance()
}
