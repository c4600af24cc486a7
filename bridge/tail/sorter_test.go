package tail

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/trainbridge/trainbridge/internal/nonlog"
)

// pair are two Tailers with common globs. The first knows lines that begin with "a", the second lines with "b"; both know lines with "c", and then the first
// gets the file.
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

	// A file without a known line is sniffed again after growth.
	p.a.append("empty.log", "b5\n")
	p.a.append("text.log", "a6")
	p.step(6 * time.Second)
	p.want(t, nil, []string{"b5"})
	p.step(6 * time.Second) // an idle last line without an ending
	p.a.append("text.log", "\n")
	p.step(6 * time.Second)
	p.want(t, []string{"x", "y", "a6"}, nil)

	// A path keeps its owner through a rotation and a restart.
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

// A file with two kinds of logs is read by two Tailers from its beginning, once its owner asks for the second: also after restarts, in which either may start
// first, and rotations. Lines that are no records of the second do not make it read the file.
func TestSorterShares(t *testing.T) {
	p := newPair(t)
	second := component.MustNewType("tail_b")
	p.b.id = second.String()
	var seconds []bool
	p.a.onLine = func(h *toy, text string, _ *Line) {
		if !h.s.IsSecond() {
			answered := h.s.ShareWith(second, []byte(text))
			assert.Equal(t, text > "a1", answered, text)
		}
	}
	p.b.onLine = func(h *toy, _ string, _ *Line) { seconds = append(seconds, h.s.IsSecond()) }
	p.restart()
	p.a.write("1.log", "a1\n")
	p.a.write("other.log", "a0\n")
	p.step(time.Second)
	p.want(t, []string{"a1", "a0"}, nil)
	p.a.append("1.log", "b2\na3\n")
	p.step(time.Second)
	p.step(time.Second)
	p.want(t, []string{"b2", "a3"}, []string{"a1", "b2", "a3"})
	assert.Equal(t, []bool{true, true, true}, seconds)

	for i, first := range []*rig{p.a, p.b} {
		p.a.checkpoint()
		p.b.checkpoint()
		p.a.crash()
		p.b.crash()
		first.boot()
		map[*rig]*rig{p.a: p.b, p.b: p.a}[first].boot()
		p.a.append("1.log", fmt.Sprintf("a%d\n", 4+i))
		p.step(time.Second)
		p.want(t, []string{fmt.Sprint("a", 4+i)}, []string{fmt.Sprint("a", 4+i)})
	}
	p.a.append("1.log", "a6\n")
	p.a.rename("1.log", "1.log.1")
	p.a.write("1.log", "a7\n")
	p.step(time.Second)
	p.step(time.Minute)
	p.want(t, []string{"a6", "a7"}, []string{"a6", "a7"})
}

// A file named in a Tailer's Include belongs to that Tailer, whatever its content.
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

// A Tailer with a stored position of a file that is another's by content, for instance after a change of the configuration, releases the file. A document
// belongs to the Tailer of its name, even if others understand the first line, and is one line.
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

// The decisive line is behind MiB of others, in a compressed file, in UTF-16.
func TestSorterLooksFar(t *testing.T) {
	oneGoroutine(t)
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

// A Once does not leave its files to another Tailer that knows their lines and continues.
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

// junk writes files that no Tailer understands, older than now.
func (p *pair) junk(t *testing.T, n int, text string) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("a%05d.txt", i)
		p.a.write(name, text)
		old := p.a.now.Add(-time.Hour)
		require.NoError(t, os.Chtimes(filepath.Join(p.dir, name), old, old))
	}
}

// The newest file is sniffed first, and an assigned file is read before the rest were sniffed.
func TestSorterNewestFirst(t *testing.T) {
	p := newPair(t)
	p.junk(t, 1000, "hello world\n")
	p.a.write("log.txt", "b1\n")
	p.b.tl.sweep(p.b.now)
	assert.Len(t, p.b.tl.sweeper.streams, 1)
	p.sorter.mu.Lock()
	left := len(p.sorter.queue)
	p.sorter.mu.Unlock()
	assert.Equal(t, 1001-sniffTurn/(sniffCost+len("hello world\n"))-1, left, "a turn is bounded")
	assert.True(t, p.b.tl.sweeper.sorting, "and the next one follows at once")
	for range 20 {
		p.step(0)
	}
	p.want(t, nil, []string{"b1"})
	assert.Empty(t, p.sorter.queue)
}

// Unassigned files keep no detectors, except some with much sniffed, and no Tailer keeps anything of them.
func TestSorterKeepsLittle(t *testing.T) {
	p := newPair(t)
	p.junk(t, 2*sniffOpen, "x\n")
	p.a.write("much.txt", strings.Repeat("x\n", 4096))
	for range 20 {
		p.step(poll)
	}
	assert.Len(t, p.sorter.open, sniffOpen)
	assert.NotNil(t, p.sorter.paths[filepath.Join(p.dir, "much.txt")].detect, "of which most was looked at")
	assert.Empty(t, p.a.tl.sweeper.others)
	assert.Empty(t, p.b.tl.sweeper.others)

	// A growing file without detectors is sniffed from its beginning, and read from there.
	seen := 0
	p.a.detect = func(string) Detect {
		head := false
		return func(text []byte) Reads {
			seen++
			head = head || string(text) == "head"
			return map[bool]Reads{true: ReadsOwn}[head && text[0] == 'a']
		}
	}
	p.restart()
	p.a.write("late.txt", "head\n")
	p.junk(t, 2*sniffOpen, "x\nx\nx\nx\n")
	for range 20 {
		p.step(poll)
	}
	require.Nil(t, p.sorter.paths[filepath.Join(p.dir, "late.txt")].detect)
	p.step(time.Minute)
	before := seen
	p.a.append("late.txt", "a1\n")
	p.step(time.Minute)
	p.step(poll)
	p.want(t, []string{"head", "a1"}, nil)
	assert.Equal(t, before+2, seen, "both lines again")
}

// Empty files are not opened, and the more idle files, the less often each is checked.
func TestSorterIdle(t *testing.T) {
	p := newPair(t)
	p.junk(t, 300, "")
	p.step(poll)
	assert.Empty(t, p.sorter.queue)
	assert.Empty(t, p.sorter.open)
	assert.Len(t, p.sorter.idle, 300)
	p.a.append("a00007.txt", "a1\n")
	p.step(maxIdlePoll)
	p.want(t, []string{"a1"}, nil)
	k := &kind{size: 1, grown: p.a.now.Add(-time.Hour), readers: []*Tailer{p.a.tl}}
	new(Sorter).makeIdle(k, p.a.now)
	assert.Equal(t, p.a.now.Add(maxIdlePoll).UnixNano(), k.rank)
	many := Sorter{idle: make(kindHeap, 100_000)}
	for i := range many.idle {
		many.idle[i] = &kind{}
	}
	k.heap = nil
	many.makeIdle(k, p.a.now)
	assert.Equal(t, p.a.now.Add(50*time.Second).UnixNano(), k.rank)
}

// The path of an unassigned file may name another file later, or none.
func TestSorterOtherFile(t *testing.T) {
	p := newPair(t)
	p.a.write("1.txt", "x\nx\n")
	p.a.write("2.log", "a1\n")
	p.a.write("3.txt", "x\n")
	p.step(poll)
	p.a.write("new", "b1\nb2\n")
	p.a.rename("new", "1.txt")   // another file
	p.a.rename("2.log", "3.txt") // a known file
	p.step(maxIdlePoll)
	p.step(fullScanEvery)
	p.a.append("3.txt", "a2\n")
	p.step(maxIdlePoll)
	p.want(t, []string{"a1", "a2"}, []string{"b1", "b2"})
	require.NoError(t, os.Remove(filepath.Join(p.dir, "1.txt")))
	p.step(maxIdlePoll)
}

// With a start at the end, a file present at the start is skipped even if it takes several turns to assign.
func TestSorterStartAtEnd(t *testing.T) {
	p := newPair(t, func(a, _ *Config) { a.StartAt = StartAtEnd })
	noise := strings.Repeat(strings.Repeat("x", 99)+"\n", 60_000)
	p.a.write("far.log", noise+"a1\n")
	p.a.write("later.log", noise)
	for range 5 {
		p.step(poll)
	}
	p.want(t, nil, nil)
	p.a.append("far.log", "a2\n")
	p.a.append("later.log", "a3\n")
	p.step(maxIdlePoll)
	p.step(maxIdlePoll)
	require.Contains(t, p.a.out, "a2")
	assert.NotContains(t, p.a.out, "a1")
	assert.Len(t, p.a.out, 1+60_001, "later.log is a log since now, and read from its beginning")
	p.a.out = nil
	p.a.remove("far.log")
	p.step(fullScanEvery)
	p.a.write("far.log", "a4\n")
	p.step(fullScanEvery)
	p.want(t, []string{"a4"}, nil)
}

// A rotated file is its successor's even if only late lines of the successor show the owner.
func TestSorterRotated(t *testing.T) {
	p := newPair(t)
	p.a.write("1.log", strings.Repeat("x\n", sniffFirst)+"a2\n")
	p.a.write("1.log.1", "a1\n")
	p.step(poll)
	p.step(poll)
	require.Len(t, p.a.tl.sweeper.streams, 1)
	require.Len(t, p.a.out, sniffFirst+2)
	assert.Equal(t, "a1", p.a.out[0])
}

// An unreadable file is counted, and read once readable.
func TestSorterUnreadable(t *testing.T) {
	p := newPair(t)
	p.a.write("1.log", "a1\n")
	path := filepath.Join(p.dir, "1.log")
	k := &kind{path: filepath.Join(p.dir, "none"), readers: []*Tailer{p.a.tl}, seen: -1, size: 1}
	p.sorter.enqueue(k)
	found, _ := p.sorter.sniffNext(k, p.a.now)
	assert.Empty(t, found, "it is gone")
	p.sorter.moveToHeap(k, nil)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	k = &kind{path: path, readers: []*Tailer{p.a.tl}, seen: -1, size: 1}
	p.sorter.enqueue(k)
	found, _ = p.sorter.sniffNext(k, p.a.now)
	require.Len(t, found, 1)
	require.Error(t, found[0].err)
	deliver(found)
	assert.EqualValues(t, 1, p.a.tl.Counts().ReadErrors)
	assert.Same(t, &p.sorter.idle, k.heap, "it is tried again")
}

// Weights and repositories are not sniffed, unless included explicitly.
func TestNonLogs(t *testing.T) {
	p := newPair(t, func(a, _ *Config) { a.Include = []string{"/nothing/x.bin"} })
	require.NoError(t, os.MkdirAll(filepath.Join(p.dir, "src/.git"), 0o700))
	p.a.write("src/.git/gc.log", "a1\n")
	p.a.write("step_1.pt", "a2\n")
	p.a.write("step_2.pt", "b2\n")
	p.a.write("train.log", "a3\n")
	p.step(poll)
	p.want(t, []string{"a3"}, nil)
	for _, r := range []*rig{p.a, p.b} {
		assert.Equal(t, nonlog.Tally{".git": 1, ".pt": 2}, r.tl.Status().PassedOver)
	}
	p.step(fullScanEvery)
	p.step(surveyEvery)
	assert.Equal(t, nonlog.Tally{".git": 1, ".pt": 2}, p.a.tl.Status().PassedOver, "of one look at all")

	p.b.cfg.IncludeNonLogs = true
	p.a.cfg.IncludeByContent = append(p.a.cfg.IncludeByContent, filepath.Join(p.dir, "step_1.pt"))
	p.restart()
	p.step(poll)
	slices.Sort(p.a.out)
	p.want(t, []string{"a2", "a3"}, []string{"b2"})
	assert.Empty(t, p.b.tl.Status().PassedOver)
}

// Workers of joint records begin after all files were sniffed once, with the files assigned so far.
func TestSorterJointBegins(t *testing.T) {
	p := newPair(t)
	p.a.joint = true
	p.restart()
	p.junk(t, 200, "hello world\n")
	for _, r := range []*rig{p.a, p.b} {
		r.tl.sweep(r.now)
		r.tl.letWorkersRead()
	}
	assert.False(t, p.a.tl.swept)
	assert.True(t, p.b.tl.swept)
	p.a.tl.receive(news{t: p.a.tl, path: p.a.path("a00000.txt")})
	for range 20 {
		p.b.tl.sweep(p.b.now)
	}
	p.a.tl.letWorkersRead()
	assert.False(t, p.a.tl.swept, "it was found of a file")
	p.a.tl.sweep(p.a.now)
	p.a.tl.letWorkersRead()
	assert.True(t, p.a.tl.swept)
}

// Repetitive lines are shown to few detectors. A record between such lines is found, and so is a line that is short or may be a part of a JSON document.
func TestDullLines(t *testing.T) {
	asked := map[string]int{}
	p := newPair(t)
	p.a.detect = func(string) Detect {
		return func(text []byte) Reads {
			asked[string(bytes.TrimRight(text[:1], "\n"))]++
			return map[byte]Reads{'a': ReadsOwn}[text[0]]
		}
	}
	p.restart()
	const noise = 5000
	var b strings.Builder
	for i := range noise {
		fmt.Fprintf(&b, "x: warning %d of a library that says the same again\n", i)
		fmt.Fprintf(&b, "\"key\": \"a line of a document over many lines, %d\",\n", i)
		fmt.Fprintf(&b, "%d\n", i%10)
	}
	p.a.write("noise.log", b.String()+"a1\n")
	p.step(time.Second)
	p.a.step(time.Second)
	assert.Equal(t, 1, p.a.tl.Status().Files, "the record is found")
	assert.Less(t, asked["x"], 100)
	assert.GreaterOrEqual(t, asked["\""], noise)
	assert.GreaterOrEqual(t, asked["1"], noise/10)
}
