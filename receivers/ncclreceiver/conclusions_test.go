package ncclreceiver

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Collectives that come again after a crash have the same content, however little the next process reads of the records before.
func TestCrashKeepsConclusions(t *testing.T) {
	const all, again = 200, 12
	lines := make([]string, all)
	for i := range lines {
		r := record{host: "node", of: 1, coll: "AllReduce", sn: i, size: 1 << 20, start: int64(i)*1000 + 1, us: 100 + int64(i%7)}
		if i >= all-again && i%6 != 0 { // five in a row: a single slow collective is not accused
			r.us = 500
		}
		lines[i] = r.String() + "\n"
	}
	for name, keeps := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rank-0.log")
			cfg := func() *Config {
				c := createDefaultConfig().(*Config)
				c.Include = []string{path}
				return c
			}
			read := func(d *disk, lines []string) map[spanKey]string {
				require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
				said := make(map[spanKey]string)
				k := &taker{}
				stop := follow(t, cfg(), d, func(_ context.Context, td ptrace.Traces) error {
					k.do(func() { maps.Copy(said, spanTexts(td)) })
					return nil
				})
				wait(t, "the last collective", k.so(func() bool { return len(said) >= len(lines) }))
				stop()
				return said
			}
			d := &disk{values: make(map[string][]byte)}
			first := read(d, lines)
			for key := range d.values {
				if strings.HasPrefix(key, "ring") != keeps { // positions are older, or all is
					delete(d.values, key)
				}
			}
			second := read(d, lines[all-again:])
			same, said := true, 0
			for id, text := range second {
				same = same && text == first[id]
				if strings.Contains(first[id], spans.AttrNCCLBandwidthBaseline) {
					said++
				}
			}
			assert.Equal(t, keeps, same)
			assert.Positive(t, said)
		})
	}
}
