package tail

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAhead(t *testing.T) {
	long := strings.Repeat("x", 2*chunkBytes)
	huge := strings.Repeat("y", 5*chunkBytes)
	for _, tc := range []struct {
		name, content string
		want          []string
	}{
		{"each line sees those behind it", "a\nb\r\nc\n", []string{"a", "b", "c"}},
		{"an unfinished line is not one yet", "a\nb\nc", []string{"a", "b"}},
		{"empty lines are passed over", "a\n\n\nb\n", []string{"a", "b"}},
		{"neither a mark nor a hole at the beginning is of a line", "\xef\xbb\xbfa\nb\n\x00\x00c\n", []string{"a", "b", "c"}},
		{"a line longer than a chunk", "a\n" + long + "\nb\n", []string{"a", long, "b"}},
		{"a line longer than is allowed", "a\n" + huge + "\nb\n", []string{"a", "b"}},
	} {
		for _, packed := range []bool{false, true} {
			t.Run(tc.name, func(t *testing.T) {
				r := newRig(t, func(c *Config) {
					c.MaxLineBytes = 3 * chunkBytes
					c.Include[0] += "*"
				})
				want := tc.want
				content := []byte(tc.content)
				name := "job.log"
				if packed {
					var b bytes.Buffer
					z := gzip.NewWriter(&b)
					_, _ = z.Write(content)
					require.NoError(t, z.Close())
					content, name = b.Bytes(), "job.log.gz"
					if strings.HasSuffix(tc.content, "c") { // nothing more will come
						want = append(want[:len(want):len(want)], "c")
					}
				}
				require.NoError(t, os.WriteFile(filepath.Join(r.dir, name), content, 0o600))
				var seen []string
				r.onLine = func(h *toy, text string, _ *Line) {
					var ahead, all []string
					h.s.Ahead(func(b []byte) bool { ahead = append(ahead, string(b)); return true })
					h.s.Beginning(func(b []byte) bool { all = append(all, string(b)); return true })
					assert.Equal(t, want[len(seen)+1:], append([]string{}, ahead...))
					assert.Equal(t, want[:len(seen)], append([]string{}, all...))
					seen = append(seen, text)
				}
				r.step(time.Second)
				r.step(time.Second)
				r.step(time.Second)
				assert.Equal(t, want, seen, "looking ahead changes nothing in what is read")
			})
		}
	}
}
