//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	fewDescriptors = 64 // the hard limit, raised to the soft limit by Go
	manyFiles      = 300
)

// manyLogs are more logs of one run than a process may have open.
type manyLogs struct {
	dir  string
	rng  *rand.Rand
	made [manyFiles]int
	keys []string
}

func seeded() *rand.Rand { return rand.New(rand.NewPCG(27, 6)) }

// write appends records to each log. The logs from packed on are packed, each in one write.
func (m *manyLogs) write(t *testing.T, packed, records int) {
	t.Helper()
	for i := range m.made {
		var text bytes.Buffer
		for range records {
			r := jsonRecord(m.rng, 0, 10_000*i+m.made[i])
			m.made[i]++
			m.keys = append(m.keys, r.keys...)
			text.WriteString(r.lines[0][0] + "\n")
		}
		name := filepath.Join(m.dir, fmt.Sprintf("rank-%03d.jsonl", i))
		if i >= packed {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, err := z.Write(text.Bytes())
			require.NoError(t, err)
			require.NoError(t, z.Close())
			require.NoError(t, os.WriteFile(fmt.Sprintf("%s-%d.gz", name, m.made[i]), b.Bytes(), 0o600))
			continue
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		require.NoError(t, err)
		_, err = f.Write(text.Bytes())
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
}

func (m *manyLogs) arrived(k *otlpSink) error {
	missing := 0
	for _, key := range m.keys {
		if !k.has(key) {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d records are missing", missing, len(m.keys))
	}
	return nil
}

// Logs beyond the limit of open files take turns: all their lines arrive, the collector's own pages answer, and one line reports the limit.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	for name, packed := range map[string]int{"plain": manyFiles, "packed": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := startOTLPSink(t)
			logs := &manyLogs{dir: t.TempDir(), rng: seeded()}
			logs.write(t, packed, 10)
			c := newCollector(t, trainbridgeBin(t), "[]", k.addr)
			c.env = append(c.env, "TRAINBRIDGE_LOGS="+logs.dir+"/**")
			c.args = append([]string{fmt.Sprintf("--nofile=%d:%[1]d", fewDescriptors), c.bin}, c.args...)
			c.bin = "/usr/bin/prlimit"
			c.up(t)
			for range 5 {
				_, err := c.accounts()
				require.NoError(t, err)
				eventually(t, func() error { return logs.arrived(k) })
				logs.write(t, packed, 8)
			}
			// The backend is down: unsent data holds no descriptor needed by another log.
			k.down()
			logs.write(t, packed, 5)
			_, err := c.accounts()
			require.NoError(t, err)
			c.kill()
			c.up(t)
			_, err = get(c.health, "")
			require.NoError(t, err)
			require.NoError(t, k.up())
			eventually(t, func() error { return logs.arrived(k) })
			accounts, err := c.accounts()
			require.NoError(t, err)
			for receiver, a := range accounts {
				assert.Zero(t, a["read_errors"], receiver)
				assert.Zero(t, a["lost_files"], receiver)
			}
			out := c.output(t)
			assert.NotContains(t, out, "too many open files")
			assert.Equal(t, 1, strings.Count(out, "take turns"), out)
			c.stop(t)
		})
	}
}
