package tail

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
)

var (
	seedFlag  = flag.Uint64("tail.seed", 0, "run the model test with this seed only")
	seedsFlag = flag.Uint64("tail.seeds", 2200, "number of seeds of the model test")
)

// modelLine is a written line.
type modelLine struct {
	text     string
	in       *modelFile
	seq      int
	optional bool // destroyed before acceptance
	pre      bool // of a preamble, written repeatedly
}

// modelFile is the content of a file, wherever it is now.
type modelFile struct {
	lines   []*modelLine
	partial string // the unwritten part of the next line
	next    *modelLine
	copied  bool // is a copy made by copytruncate
	loose   bool // was out of the tailer's sight at a critical moment: pairs with other files may come apart
	seq     int
	pre     int64 // bytes of the preamble
}

// model is the world of files, and the expected records.
type model struct {
	*rig
	rnd    *rand.Rand
	log    []string
	byText map[string]*modelLine
	paths  map[string]*modelFile // the file of each name now
	ids    int
	open   map[string][]string // START lines without END, by stream
	seen   map[*toy]map[*modelFile]int
	inGlob bool
	swaps  bool                     // the names of the two logs are exchanged now and then
	speak  func(name string) string // makes other lines; nil: the lines of a toy
}

func (m *model) note(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

func (m *model) line(f *modelFile, text string, pre bool) *modelLine {
	f.seq++
	l := &modelLine{text: text, in: f, seq: f.seq, pre: pre}
	m.byText[text] = l
	return l
}

func (m *model) text(name string) string {
	if m.speak != nil {
		return m.speak(name)
	}
	name, _, _ = strings.Cut(name, ".")
	m.ids++
	switch n := m.rnd.IntN(10); {
	case n < 2:
		id := fmt.Sprintf("%05d", m.ids) // the end torn off a line must not be another line
		m.open[name] = append(m.open[name], id)
		return "START " + id
	case n < 4 && len(m.open[name]) > 0:
		i := m.rnd.IntN(len(m.open[name]))
		id := m.open[name][i]
		m.open[name] = slices.Delete(m.open[name], i, i+1)
		return "END " + id
	}
	return fmt.Sprintf("line %05d %s", m.ids, strings.Repeat("x", m.rnd.IntN(60)))
}

func (m *model) ending() string {
	return []string{"\n", "\n", "\n", "\r\n", "\r"}[m.rnd.IntN(5)]
}

func (m *model) file(name string) *modelFile {
	f := m.paths[name]
	if f == nil {
		f = &modelFile{}
		m.paths[name] = f
	}
	return f
}

// complete writes the rest of an unfinished line.
func (m *model) complete(name string) {
	if f := m.paths[name]; f != nil && f.next != nil {
		m.append(name, f.partial+"\n")
		f.lines = append(f.lines, f.next)
		f.next, f.partial = nil, ""
	}
}

func (m *model) lines(name string) {
	m.complete(name)
	f := m.file(name)
	var b strings.Builder
	for range 1 + m.rnd.IntN(12) {
		l := m.line(f, m.text(name), false)
		f.lines = append(f.lines, l)
		b.WriteString(l.text + m.ending())
	}
	// The last \r would wait for its \n.
	b.WriteString("\n")
	m.append(name, b.String())
}

func (m *model) part(name string) {
	m.complete(name)
	f := m.file(name)
	text := m.text(name)
	f.next = m.line(f, text, false)
	n := m.rnd.IntN(len(text)) + 1
	f.partial = text[n:]
	m.append(name, text[:n])
}

// preamble writes the first text of every run of a program, more than 1 KiB.
func (m *model) preamble(name string) {
	f := m.file(name)
	var b strings.Builder
	for i := range 20 {
		l := &modelLine{text: fmt.Sprintf("preamble %d %s", i, strings.Repeat("=", 60)), in: f, pre: true, optional: true}
		m.byText[l.text] = l
		b.WriteString(l.text + "\n")
	}
	if len(f.lines) == 0 && f.next == nil {
		f.pre += int64(b.Len())
	}
	m.append(name, b.String())
}

// destroy marks the unaccepted lines of a file as lost.
func (m *model) destroy(f *modelFile) {
	if f == nil {
		return
	}
	for _, l := range f.lines {
		l.optional = true
	}
	if f.next != nil {
		// The beginning of the last line may be taken for a whole line if nothing can follow it.
		f.next.optional = true
		torn := *f.next
		torn.text = strings.TrimSuffix(torn.text, f.partial)
		if m.byText[torn.text] == nil {
			m.byText[torn.text] = &torn
		}
	}
}

// sight reports whether the tailer knows the file under this name, and has read enough to distinguish the next file: more than the preamble. seen is set also
// if nothing was read, but the number of the first line was seen.
func (m *model) sight(name string) (read, seen bool) {
	fi, err := os.Stat(m.path(name))
	if err != nil {
		return false, false
	}
	if m.tl == nil {
		return false, false
	}
	f := m.tl.sweeper.files[fingerprint.IDOf(fi)]
	if f == nil || f.stream.path != m.path(name) && !m.swaps {
		return false, false
	}
	pre := m.paths[name].pre
	read = f.head > pre
	return read, read || f.head == 0 && pre == 0 && f.print.N >= len("START 00000")
}

// shift makes room for name.1.
func (m *model) shift(name string) {
	const keep = 3
	if f := m.paths[fmt.Sprintf("%s.%d", name, keep)]; f != nil {
		m.destroy(f)
		m.remove(fmt.Sprintf("%s.%d", name, keep))
		delete(m.paths, fmt.Sprintf("%s.%d", name, keep))
	}
	for i := keep - 1; i >= 1; i-- {
		from, to := fmt.Sprintf("%s.%d", name, i), fmt.Sprintf("%s.%d", name, i+1)
		if f := m.paths[from]; f != nil {
			m.rename(from, to)
			m.paths[to] = f
			delete(m.paths, from)
		}
	}
}

func (m *model) rotate(name string) {
	f := m.paths[name]
	if f == nil {
		return
	}
	before := f.next == nil || m.rnd.IntN(2) == 0
	if before {
		m.complete(name)
	}
	read, _ := m.sight(name)
	f.loose = f.loose || !m.inGlob && !read
	if f.loose && !m.inGlob && !m.everSeen(name) {
		m.destroy(f) // its existence was unknowable
	}
	m.shift(name)
	m.rename(name, name+".1")
	m.paths[name+".1"] = f
	delete(m.paths, name)
	m.complete(name + ".1")
	if m.rnd.IntN(2) == 0 {
		m.lines(name + ".1") // the writer has not noticed yet
		if f.loose && !m.inGlob {
			m.destroy(f)
		}
	}
}

// everSeen reports whether the tailer has a stream for the path, now or in the store.
func (m *model) everSeen(name string) bool {
	if m.tl != nil {
		if s := m.tl.sweeper.streams[m.path(name)]; s != nil && s.known {
			return true
		}
	}
	return false
}

func (m *model) copytruncate(name string) {
	f := m.paths[name]
	if f == nil {
		return
	}
	m.complete(name)
	read, seen := m.sight(name)
	m.shift(name)
	m.copy(name, name+".1")
	if m.rnd.IntN(3) == 0 {
		m.step(100 * time.Millisecond)
	}
	m.truncate(name)
	m.paths[name+".1"] = f
	f.copied = true
	m.paths[name] = &modelFile{loose: f.loose}
	f.loose = f.loose || !read
	if !seen && !m.inGlob {
		m.destroy(f)
	}
}

func (m *model) cut(name string) {
	f := m.paths[name]
	if f == nil {
		return
	}
	m.destroy(f)
	m.truncate(name)
	m.paths[name] = &modelFile{}
	if m.rnd.IntN(2) == 0 {
		m.preamble(name)
		m.lines(name)
	}
}

func (m *model) delete(name string) {
	if f := m.paths[name]; f != nil {
		m.destroy(f)
		m.remove(name)
		delete(m.paths, name)
	}
}

// swap exchanges the names of the two logs. Streams keep the files that they read, so the next lines of a name are not in the stream of its earlier lines.
func (m *model) swap() {
	a, b := m.paths["a.log"], m.paths["b.log"]
	if a == nil || b == nil {
		return
	}
	aside := filepath.Join(m.t.TempDir(), "aside")
	require.NoError(m.t, os.Rename(m.path("a.log"), aside))
	m.rename("b.log", "a.log")
	require.NoError(m.t, os.Rename(aside, m.path("b.log")))
	m.paths["a.log"], m.paths["b.log"] = b, a
	a.loose, b.loose = true, true
}

func (m *model) crashAndRestart() {
	m.restart()
	for name, f := range m.paths {
		if filepath.Ext(name) != ".log" && !m.found(name) {
			f.loose = f.loose || f.copied || !m.inGlob
			if !m.inGlob {
				m.destroy(f)
			}
		}
	}
}

// found reports whether the checkpoints lead to a file outside the globs.
func (m *model) found(name string) bool {
	raw, fi, err := osfile.Open(m.path(name), false)
	require.NoError(m.t, err)
	defer raw.Close()
	c := m.tl.sweeper.saved[m.path(strings.TrimSuffix(name, filepath.Ext(name)))]
	if c == nil {
		return false
	}
	for _, sf := range c.Files {
		f := &file{head: sf.Head, print: sf.Print, tail: fingerprint.Stored(sf.TailSum, sf.TailN)}
		if sf.ID == fingerprint.IDOf(fi) || sf.Head > 0 && sameFile(f, raw) {
			return true
		}
	}
	return !m.paths[name].copied
}

// ordered checks that the lines of a file come in order.
func (m *model) ordered(h *toy, text string, l *Line) {
	ml := m.byText[text]
	if ml == nil {
		m.fail("a line came out that was never written: %q", text)
		return
	}
	if *seedFlag != 0 {
		m.note("    %s (%p) gives %q", filepath.Base(h.s.path), h, text)
	}
	if ml.pre {
		return
	}
	if m.seen[h] == nil {
		m.seen[h] = map[*modelFile]int{}
	}
	// Runs with only the same preamble cannot be distinguished: the next run's file may be taken for a copy of an older file, and come twice.
	if last := m.seen[h][ml.in]; ml.seq <= last && ml.in.pre == 0 && !m.swaps {
		for _, f := range h.s.files {
			m.note("  %s %v head %d size %d replay %v %v, current %v", filepath.Base(f.path), f.id.Ino, f.head, f.size, f.replay, f.life, f == h.s.current)
		}
		m.fail("order: line %d of a file came after %d: %q", ml.seq, last, text)
	}
	m.seen[h][ml.in] = ml.seq
}

func (m *model) run(ops int) {
	names := []string{"a.log", "b.log"}
	m.onLine = m.ordered
	if m.rnd.IntN(3) == 0 {
		for range 2 + m.rnd.IntN(5) {
			name := names[m.rnd.IntN(len(names))]
			m.note("rotated before the start: %s", name)
			m.lines(name)
			m.rotate(name)
		}
	}
	for range ops {
		name := names[m.rnd.IntN(len(names))]
		m.do(m.rnd.IntN(100), name)
	}
	m.note("end")
	m.err, m.hold = nil, false
	for _, name := range slices.Sorted(maps.Keys(m.paths)) {
		m.complete(name)
	}
	m.lines("a.log")
	m.lines("b.log")
	m.step(0)
	m.ackAll()
	m.rest()
	m.tl.expireAll()
	m.ackAll()
	m.check()
}

// do applies one event to a file, the consumer or the process; n chooses it, of a hundred.
func (m *model) do(n int, name string) {
	switch {
	case m.toFile(n, name, fileOdds{20, 26, 30, 36, 41, 44, 46}):
	case m.swaps && n < 50:
		m.note("swap")
		m.swap()
	case n < 48:
		if m.paths[name] == nil {
			m.note("preamble %s", name)
			m.preamble(name)
		}
	case n < 78:
		d := time.Duration(m.rnd.IntN(400)) * time.Millisecond
		m.note("step %v", d)
		m.step(d)
	case n < 82:
		if m.err == nil {
			m.err = errors.New("not now")
		} else {
			m.err = nil
		}
		m.note("consumer %v", m.err)
	case n < 88:
		m.note("ack")
		for range m.rnd.IntN(4) {
			if len(m.flying) > 0 {
				m.ack(m.rnd.IntN(len(m.flying)))
			}
		}
	case n < 94:
		m.note("checkpoint")
		m.checkpoint()
	case n < 98:
		if m.rnd.IntN(8) == 0 {
			m.note("crash before the first checkpoint")
			clear(m.store.values)
		}
		m.note("crash")
		m.crashAndRestart()
	default:
		m.note("clean restart")
		m.checkpoint()
		m.restart()
	}
}

// fileOdds are the upper bounds, of a hundred, of each event of a file: lines, a part of a line, the rest, a rotation, copytruncate, a truncation, a deletion.
type fileOdds [7]int

// toFile applies n's event if it is a file's.
func (m *model) toFile(n int, name string, odds fileOdds) bool {
	for i, thing := range [len(odds)]struct {
		name string
		do   func(string)
	}{
		{"lines", m.lines},
		{"part", m.part},
		{"complete", m.complete},
		{"rotate", m.rotate},
		{"copytruncate", m.copytruncate},
		{"cut", m.cut},
		{"delete", m.delete},
	} {
		if n < odds[i] {
			m.note("%s %s", thing.name, name)
			thing.do(name)
			return true
		}
	}
	return false
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\noperations:\n  %s", fmt.Sprintf(format, args...), strings.Join(m.log, "\n  "))
}

func (m *model) check() {
	came := map[string]bool{}
	whole := map[string]bool{}
	for _, rec := range m.out {
		a, b, pair := strings.Cut(rec, " | ")
		came[a] = true
		if pair {
			came[b] = true
			if strings.TrimPrefix(a, "START ") != strings.TrimPrefix(b, "END ") {
				m.fail("a record of two others' lines: %q", rec)
			}
			whole[strings.TrimPrefix(a, "START ")] = true
		}
	}
	for text, l := range m.byText {
		if l.optional || l.in.next == l {
			continue
		}
		if !came[text] {
			for name, f := range m.paths {
				if f == l.in {
					m.note("it is in %s, loose %v, copied %v, in glob %v", name, f.loose, f.copied, m.inGlob)
				}
			}
			for _, s := range m.tl.sweeper.streams {
				for _, f := range s.files {
					m.note("  %s: %s %v head %d size %d replay %v %v, current %v",
						filepath.Base(s.path), filepath.Base(f.path), f.id.Ino, f.head, f.size, f.replay, f.life, f == s.current)
				}
			}
			m.fail("lost: %q", text)
		}
		if id, ok := strings.CutPrefix(text, "END "); ok && !whole[id] && !m.swaps {
			if s := m.byText["START "+id]; s != nil && !s.optional && s.in.pre == 0 && l.in.pre == 0 &&
				(s.in == l.in || !s.in.loose && !l.in.loose && (m.most == 0 || !s.in.copied)) {
				m.note("START loose %v copied %v; END loose %v copied %v; in glob %v", s.in.loose, s.in.copied, l.in.loose, l.in.copied, m.inGlob)
				m.fail("record %s came apart", id)
			}
		}
	}
	c := m.tl.Counts()
	if c.Pending != 0 {
		m.fail("%d lines are pending at the end", c.Pending)
	}
}

func runModel(t *testing.T, seed uint64, few bool) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	inGlob := rnd.IntN(2) == 0
	m := &model{
		rnd: rnd, byText: map[string]*modelLine{}, paths: map[string]*modelFile{}, open: map[string][]string{},
		seen: map[*toy]map[*modelFile]int{}, inGlob: inGlob,
	}
	m.rig = newRig(t, func(c *Config) {
		if inGlob {
			c.Include = append(c.Include, filepath.Join(filepath.Dir(c.Include[0]), "*.log.*"))
		}
		if rnd.IntN(2) == 0 {
			c.MaxInFlightBytes = minInFlight
		}
	})
	if few {
		m.most = 1 + rnd.Int64N(3)
		m.restart()
	}
	// Clocks of file systems are coarse: files written in succession may have the same time.
	at, last := m.now, ""
	m.tick = func(name string) time.Time {
		if name == last || rnd.IntN(2) == 0 {
			at = at.Add(time.Millisecond)
		}
		last = name
		return at
	}
	m.hold = rnd.IntN(4) > 0
	m.early = rnd.IntN(2) == 0
	m.swaps = inGlob && rnd.IntN(4) == 0
	m.run(20 + rnd.IntN(60))
}

// TestModel runs random sequences of events of files, consumer and process against a model of the expected records: every readable line comes at least once,
// nothing unwritten comes, records are whole, lines of a file in order. go test -run 'TestModel$' -tail.seed=N repeats one seed.
func TestModel(t *testing.T) { runSeeds(t, false) }

// TestModelOfFewDescriptors is TestModel with few open files, which take turns.
func TestModelOfFewDescriptors(t *testing.T) { runSeeds(t, true) }

func runSeeds(t *testing.T, few bool) {
	t.Helper()
	if *seedFlag != 0 {
		runModel(t, *seedFlag, few)
		return
	}
	seeds := *seedsFlag
	if few {
		seeds /= 4
	}
	if testing.Short() {
		seeds /= 32
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { runModel(t, seed, few) }) {
			t.Logf("repeat with -tail.seed=%d", seed)
		}
	}
}
