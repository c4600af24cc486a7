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
	"go.opentelemetry.io/collector/component"
)

// pair are two Tailers that have globs in common: one knows lines that begin with "a", the other lines with "b"; both know lines with "c", and then the first
// one gets the file.
type pair struct {
	a, b   *rig
	dir    string
	sorter *Sorter
}

func newPair(t *testing.T, change ...func(a, b *Config)) *pair {
	t.Helper()
	p := &pair{dir: t.TempDir(), sorter: &Sorter{}}
	p.a, p.b = newRig(t), newRig(t)
	for _, r := range []*rig{p.a, p.b} {
		r.dir, r.sorter = p.dir, p.sorter
		r.cfg.Include, r.cfg.IncludeByContent = nil, []string{filepath.Join(p.dir, "**")}
	}
	for _, c := range change {
		c(&p.a.cfg, &p.b.cfg)
	}
	p.a.detect = func(string) Detect {
		return func(text []byte) Reads { return map[byte]Reads{'a': ReadsOwn, 'c': ReadsOwn}[text[0]] }
	}
	p.b.detect = func(string) Detect {
		return func(text []byte) Reads { return map[byte]Reads{'b': ReadsOwn, 'c': ReadsToo}[text[0]] }
	}
	p.restart()
	return p
}

func (p *pair) restart() {
	p.a.restart()
	p.b.restart()
}

// step lets both look, in turns: who asks first must not matter.
func (p *pair) step(d time.Duration) {
	p.b.step(d)
	p.a.now = p.a.now.Add(d)
	p.a.step(0)
	p.b.step(0)
}

func (p *pair) want(t *testing.T, a, b []string) {
	t.Helper()
	p.a.want(a...)
	p.b.want(b...)
}

func TestSorter(t *testing.T) {
	p := newPair(t)
	require.NoError(t, os.Mkdir(filepath.Join(p.dir, "sub"), 0o700))
	p.a.write("1.log", "a1\n")
	p.a.write("sub/2.log", "x\nb2\na3\n")
	p.a.write("3.log", "c4\n")
	p.a.write("empty.log", "")
	p.a.write("text.log", "x\ny\n")
	p.step(time.Second)
	p.want(t, []string{"a1", "c4"}, []string{"x", "b2", "a3"})
	assert.Equal(t, 2, p.a.tl.Status().Files)

	// A file that shows nothing yet is looked at again as it grows.
	p.a.append("empty.log", "b5\n")
	p.a.append("text.log", "a6")
	p.step(6 * time.Second)
	p.want(t, nil, []string{"b5"})
	p.step(6 * time.Second) // a line without an ending, which stands still
	p.a.append("text.log", "\n")
	p.step(6 * time.Second)
	p.want(t, []string{"x", "y", "a6"}, nil)

	// A path stays whose it is, also through a rotation and a restart.
	p.a.append("1.log", "a7\n")
	p.a.rename("1.log", "1.log.1")
	p.a.write("1.log", "b8\n")
	p.step(time.Second)
	p.step(time.Minute)
	p.want(t, []string{"a7", "b8"}, nil)
	p.a.append("sub/2.log", "a9\n")
	p.a.append("3.log", "b10\n")
	p.a.checkpoint()
	p.b.checkpoint()
	p.restart()
	p.step(time.Second)
	p.step(time.Minute)
	p.want(t, []string{"b10"}, []string{"a9"})
}

// A file that one Tailer names in Include is that Tailer's, whatever it holds.
func TestSorterInclude(t *testing.T) {
	p := newPair(t, func(_, b *Config) {
		b.Include = []string{filepath.Join(filepath.Dir(b.IncludeByContent[0]), "1.log")}
		b.Exclude = []string{"**/2.log"}
	})
	p.a.write("1.log", "a1\n")
	p.a.write("2.log", "b2\n")
	p.a.write("3.log", "b3\n")
	p.step(time.Second)
	p.step(time.Minute)
	p.want(t, nil, []string{"a1", "b3"})
	_, files, _ := p.sorter.Unsorted(p.a.now)
	assert.Equal(t, 1, files, "2.log is for nobody")
}

// A Tailer that stored a position of a file that is another's by its content, as when the configuration changed, lets it go.
// A document belongs to the Tailer that its name says, whether or not others understand its first line, and is one line.
func TestSorterDocuments(t *testing.T) {
	p := newPair(t, func(a, _ *Config) { a.Exclude = []string{"**/not_state.json"} })
	p.a.isDocument = func(path string) bool { return strings.HasSuffix(path, "state.json") }
	p.restart()
	p.a.write("state.json", "b1\na1")
	p.a.write("not_state.json", "b2\n")
	p.a.write("other.json", "a2\n")
	p.step(poll)
	p.step(poll)
	p.want(t, []string{"a2", "b1\na1"}, []string{"b2"})
	s := p.a.tl.sweeper.streams[p.a.path("state.json")]
	assert.True(t, s.IsDocument())
	assert.False(t, p.a.tl.sweeper.streams[p.a.path("other.json")].IsDocument())
	p.a.checkpoint()
	p.b.checkpoint()
	p.restart()
	p.a.write("state.json", "b1\na3")
	p.step(poll)
	p.step(poll)
	p.want(t, []string{"b1\na3"}, nil)
}

func TestSorterTakesFromCheckpoint(t *testing.T) {
	p := newPair(t)
	shared := p.b.cfg.IncludeByContent
	p.b.cfg.Include, p.b.cfg.IncludeByContent = shared, nil
	p.restart()
	p.a.write("1.log", "a1\n")
	p.b.step(time.Second)
	p.want(t, nil, []string{"a1"})
	p.b.checkpoint()
	p.b.cfg.Include, p.b.cfg.IncludeByContent = nil, shared
	p.restart()
	p.step(time.Second)
	p.a.append("1.log", "a2\n")
	p.step(time.Second)
	p.want(t, []string{"a1", "a2"}, nil)
}

func TestSorterAlone(t *testing.T) {
	p := newPair(t, func(a, _ *Config) { a.IncludeByContent, a.Include = nil, []string{"/nothing"} })
	p.a.write("1.log", "c1\n")
	p.step(time.Second)
	p.want(t, nil, []string{"c1"})
}

// The decisive line stands after MiB of others, in a compressed file, in one of UTF-16.
func TestSorterLooksFar(t *testing.T) {
	p := newPair(t)
	text := strings.Repeat(strings.Repeat("x", 99)+"\n", 60_000) + "b1\n"
	p.a.write("far.log", text)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	p.a.write("packed.log.gz", packed.String())
	p.a.write("wide.log", "\xff\xfea\x002\x00\n\x00")
	p.a.write("beyond.log", strings.Repeat("x\n", sniffMost/2)+"a3\n")
	for range 10 {
		p.step(time.Second)
	}
	require.Len(t, p.b.out, 2*60_001)
	require.Equal(t, []string{"a2"}, p.a.out)
	some, files, lines := p.sorter.Unsorted(p.a.now)
	assert.Equal(t, 1, files)
	assert.EqualValues(t, sniffMost/2, lines)
	assert.Equal(t, []Mute{{filepath.Join(p.dir, "beyond.log"), sniffMost / 2}}, some)
}

func TestSorterHead(t *testing.T) {
	p := newPair(t)
	p.a.write("1.log", "\n\nfirst\nb\n")
	reader, first := p.sorter.Head(filepath.Join(p.dir, "1.log"))
	assert.Same(t, p.b.tl, reader)
	assert.Equal(t, "first", string(first))
	assert.Equal(t, component.MustNewID("tail_test"), reader.ID())
	reader, first = p.sorter.Head(filepath.Join(p.dir, "none"))
	assert.Nil(t, reader)
	assert.Empty(t, first)
}

// A Once that has read its files does not leave them to another, which also knows their lines and reads on.
func TestSorterOnce(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "1.log"), []byte("c1\n"), 0o600))
	cfg := DefaultConfig()
	cfg.IncludeByContent = []string{filepath.Join(dir, "**")}
	var sorter Sorter
	once := func(name string, reads Reads) *Once {
		set := testSettings()
		set.ID, set.Sorter = component.MustNewIDWithName("tail_test", name), &sorter
		set.Detect = func(string) Detect { return func([]byte) Reads { return reads } }
		o, err := NewOnce(cfg, set, func(*Stream) Handler { return &nop{} })
		require.NoError(t, err)
		return o
	}
	for i, o := range []*Once{once("a", ReadsOwn), once("b", ReadsToo)} {
		c, err := o.Read(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 1-i, c.Sent)
	}
}
