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
		p.show(int64(now.Sub(time.Unix(0, 0)).Seconds())*10<<20, 200<<20)
	}
	p.clear()
	assert.Equal(t, "reading: 50 of 200 MiB, 10 MiB/s, 15 s left\nreading: 100 of 200 MiB, 10 MiB/s, 10 s left\n", out.String())

	out.Reset()
	now = time.Unix(0, 0)
	p = newProgress(&out, func() time.Time { return now })
	p.bar = true
	p.show(0, 0)
	now = now.Add(2 * time.Second)
	p.show(3<<20, 4<<20)
	p.clear()
	assert.Equal(t, "\r\x1b[K░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0 of 0 B"+
		"\r\x1b[K██████████████████████░░░░░░░░  3 of 4 MiB, 1.5 MiB/s, 1 s left\r\x1b[K", out.String())
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
