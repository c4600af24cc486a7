package reading

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := newProgress(&out, func() time.Time { return now })
	for range 60 { // 12 s
		now = now.Add(200 * time.Millisecond)
		p.tell(int64(now.Sub(time.Unix(0, 0)).Seconds()*1e7), 2e8)
	}
	p.clear()
	assert.Equal(t, "reading: 50 MB of 200 MB, 10 MB/s, 15 s left\nreading: 100 MB of 200 MB, 10 MB/s, 10 s left\n", out.String())

	out.Reset()
	now = time.Unix(0, 0)
	p = newProgress(&out, func() time.Time { return now })
	p.bar = true
	p.tell(0, 0)
	now = now.Add(2 * time.Second)
	p.tell(3e6, 4e6)
	p.clear()
	assert.Equal(t, "\r\x1b[K░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0 B of 0 B"+
		"\r\x1b[K██████████████████████░░░░░░░░  3 MB of 4 MB, 1.5 MB/s, 1 s left\r\x1b[K", out.String())
}

func TestSize(t *testing.T) {
	for bytes, want := range map[float64]string{
		0: "0 B", 999: "999 B", 1000: "1 kB", 1234: "1.23 kB", 99_940: "99.9 kB", 99_960: "100 kB", 999_499: "999 kB", 999_501: "1 MB", 2.5e12: "2.5 TB", 1e16: "10000 TB",
	} {
		assert.Equal(t, want, Size(bytes))
	}
}

func TestOpenPassesOver(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.log", "a.pt", "b.pt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600))
	}
	cmd, said := &cobra.Command{}, new(bytes.Buffer)
	cmd.SetErr(said)
	in, err := Open(cmd, []string{dir})
	require.NoError(t, err)
	defer in.Close()
	assert.Len(t, in.Files, 1)
	assert.Equal(t, "passed over by name, as no logs: 2 .pt; a file that is named itself is read\n", said.String())
}
