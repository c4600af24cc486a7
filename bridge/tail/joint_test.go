package tail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
)

// meeting joins the lines of all streams: "k 1 …;" is rank 1's part of the record k, complete with the parts of all ranks. "k,m 1 …;" is a part of two records.
// "( …" belongs to the next line of its stream. "= …" is a record by itself. "# …" is ignored, all other lines are rejected.
type meeting struct {
	ranks   int
	consume func(ctx context.Context, s *Stream, out []string) error
	wrong   func(format string, args ...any) // reports a line given wrongly
	most    int                              // records that Expire releases at once; 0: all
	silent  func(key string) bool            // records that are not sent; nil: none
	t       *Tailer

	mu   sync.Mutex
	open map[string]*met
}

type met struct {
	key   string
	ranks map[string]int // for each rank the number of its lines, and of open lines before them
	lents []Lent
	last  time.Time
}

// tagOf is the tag of a lent line: of few or many bits, or none.
func tagOf(text string) uint64 {
	h := xxh3.HashString(text)
	return h >> (h % 65)
}

// member is the handler of one stream.
type member struct {
	m     *meeting
	s     *Stream
	open  []Lent
	since time.Time
	batch []string
	sent  int
}

func (h *member) Line(l *Line) (Verdict, string) {
	text := string(l.Text)
	if text[0] == '#' {
		return Ignored, "comment"
	}
	if text[0] == '=' {
		h.batch = append(h.batch, text)
		return Record, ""
	}
	keys, rest, ok := strings.Cut(text, " ")
	rank, _, whole := strings.Cut(rest, ";")
	rank, _, _ = strings.Cut(rank, " ")
	if text[0] != '(' && (!ok || !whole) {
		return Rejected, "torn"
	}
	switch {
	case l.Again && l.Tag != tagOf(text):
		h.m.wrong("%q is given again with tag %d instead of %d", text, l.Tag, tagOf(text))
	case !l.Again && l.Tag != 0:
		h.m.wrong("%q is new, with tag %d", text, l.Tag)
	}
	lent := h.s.Lend(tagOf(text))
	if text[0] == '(' {
		if len(h.open) == 0 {
			h.since = l.Observed
		}
		h.open = append(h.open, lent)
		return Record, ""
	}
	h.open = append(h.open, lent)
	h.m.add(h, strings.Split(keys, ","), rank, l.Observed)
	return Record, ""
}

func (m *meeting) add(h *member, keys []string, rank string, at time.Time) {
	for _, l := range h.open {
		if len(keys) > 1 {
			h.s.Share(l, len(keys))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range keys {
		r := m.open[k]
		if r == nil {
			r = &met{key: k, ranks: map[string]int{}}
			m.open[k] = r
		}
		r.ranks[rank] += len(h.open)
		r.lents = append(r.lents, h.open...)
		r.last = at
		if len(r.ranks) == m.ranks {
			m.leave(h, r)
		}
	}
	h.open = h.open[:0]
}

// leave puts a record into the batch of whichever handler is at hand.
func (m *meeting) leave(h *member, r *met) {
	delete(m.open, r.key)
	for _, l := range r.lents {
		h.s.Take(l)
	}
	if m.silent != nil && m.silent(r.key) {
		return
	}
	var said []string
	for _, rank := range slices.Sorted(maps.Keys(r.ranks)) {
		if n := r.ranks[rank]; n > 1 {
			rank += "*" + strconv.Itoa(n)
		}
		said = append(said, rank)
	}
	h.batch = append(h.batch, r.key+":"+strings.Join(said, ","))
}

func (h *member) Expire(before time.Time) {
	if len(h.open) > 0 && h.since.Before(before) {
		for _, l := range h.open {
			h.s.Share(l, 0)
		}
		h.batch = append(h.batch, "("+strconv.Itoa(len(h.open)))
		h.open = h.open[:0]
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	n := 0
	for _, k := range slices.Sorted(maps.Keys(h.m.open)) {
		if r := h.m.open[k]; r.last.Before(before) && (h.m.most == 0 || n < h.m.most) {
			h.m.leave(h, r)
			n++
		}
	}
}

func (h *member) Cut() Delivery {
	if len(h.batch) == 0 {
		return nil
	}
	out := h.batch
	h.batch = nil
	h.sent++
	return sendFunc(func(ctx context.Context) error { return h.m.consume(ctx, h.s, out) })
}

func (h *member) Save() []byte   { return nil }
func (h *member) Restore([]byte) {}

// jointRig is a rig whose handlers share a meeting.
type jointRig struct {
	*rig
	m     *meeting
	ranks int
}

func newJointRig(tb testing.TB, ranks int, change ...func(*Config)) *jointRig {
	tb.Helper()
	r := &jointRig{rig: newRig(tb, change...), ranks: ranks}
	r.joint, r.holdTimeout = true, time.Hour
	r.m = r.meet(nil)
	r.handler = func(s *Stream) Handler {
		switch r.m.t {
		case nil:
			r.m.t = s.t
		case s.t:
		default: // after a restart
			r.m = r.meet(s.t)
		}
		return &member{m: r.m, s: s}
	}
	r.restart()
	return r
}

func (r *jointRig) meet(t *Tailer) *meeting {
	return &meeting{
		t: t, ranks: r.ranks, open: map[string]*met{},
		wrong:   func(format string, args ...any) { require.Fail(r.t, fmt.Sprintf(format, args...)) },
		consume: func(ctx context.Context, s *Stream, out []string) error { return r.consume(ctx, s, out) },
	}
}

// say appends a rank's line about some records to the rank's file.
func (r *jointRig) say(rank int, keys ...string) {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s %d;\n", k, rank)
	}
	r.append(fmt.Sprintf("r%d.log", rank), b.String())
}

// got checks the records accepted since the last call, in any order.
func (r *jointRig) got(want ...string) {
	r.t.Helper()
	slices.Sort(r.out)
	slices.Sort(want)
	if len(want) == 0 {
		require.Empty(r.t, r.out)
	} else {
		require.Equal(r.t, want, r.out)
	}
	r.out = nil
}

// still checks that nothing is held or in flight.
func (r *jointRig) still() {
	r.t.Helper()
	r.balance()
	require.Zero(r.t, r.tl.Counts().Pending)
	require.Zero(r.t, r.tl.inFlight)
	require.Zero(r.t, r.tl.kept)
	require.Zero(r.t, r.tl.shared.Load())
	for _, s := range r.tl.sweeper.streams {
		require.Zero(r.t, s.held.n, s.path)
		require.Empty(r.t, s.shared, s.path)
		require.False(r.t, s.blocked, s.path)
		for _, f := range append(slices.Clone(s.files), s.doc.file) {
			require.True(r.t, f == nil || f.outstanding == 0, s.path)
		}
	}
}

// stored returns the stored holes and tags of the first rank's file.
func (r *jointRig) stored() (head int64, holes []checkpoint.Range, tags []checkpoint.Tag) {
	r.t.Helper()
	c, err := checkpoint.Decode(r.store.values[checkpoint.Key(r.path("r0.log"))])
	require.NoError(r.t, err)
	require.Len(r.t, c.Files, 1)
	return c.Files[0].Head, c.Files[0].Holes, c.Files[0].Tags
}

// recordTest is an event while a:0,1,2 and b:0,1,2 are in flight, one batch each, and c waits for rank 2.
type recordTest struct {
	do    func(r *jointRig)
	again []string // records repeated after the crash, before c 2 is written
}

func crashAmid(t *testing.T, cases map[string]recordTest) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newJointRig(t, 3)
			r.hold = true
			r.say(0, "# x", "a", "= x", "b", "c")
			r.say(1, "c", "b", "a")
			r.step(0)
			r.got()
			r.say(2, "a")
			r.step(poll)
			r.say(2, "b")
			r.step(poll)
			require.Len(t, r.flying, 3)
			require.EqualValues(t, 9, r.tl.Counts().Records)
			require.True(t, r.ack(0))
			r.got("= x 0;")
			tc.do(r)
			r.out = nil
			r.restart()
			r.hold = false
			r.step(0)
			r.rest()
			r.out = slices.DeleteFunc(r.out, func(s string) bool { return s[0] == '=' })
			r.got(tc.again...)
			r.say(2, "c")
			r.rest()
			r.got("c:0,1,2")
			r.still()
			r.checkpoint()
			r.restart()
			r.step(0)
			r.rest()
			r.got()
		})
	}
}

// A record of three files: the part left by a crash depends on the time of the crash.
func TestJointRecord(t *testing.T) {
	down := errors.New("down")
	crashAmid(t, map[string]recordTest{
		"in flight":              {func(r *jointRig) { r.checkpoint() }, []string{"a:0,1,2", "b:0,1,2"}},
		"accepted, not stored":   {func(r *jointRig) { r.checkpoint(); r.ackAll() }, []string{"a:0,1,2", "b:0,1,2"}},
		"accepted and stored":    {func(r *jointRig) { r.ackAll(); r.checkpoint() }, nil},
		"one of them accepted":   {func(r *jointRig) { r.ack(1); r.checkpoint() }, []string{"a:0,1,2"}},
		"the other one accepted": {func(r *jointRig) { r.ack(0); r.checkpoint() }, []string{"b:0,1,2"}},
		"refused":                {func(r *jointRig) { r.err = consumererror.NewPermanent(down); r.ackAll(); r.err = nil; r.checkpoint() }, nil},
		"one refused, the other not taken": {func(r *jointRig) {
			r.err = consumererror.NewPermanent(down)
			r.ack(0)
			r.err = down
			r.ack(0)
			r.err = nil
			r.checkpoint()
		}, []string{"b:0,1,2"}},
	})
}

// A record of three files whose checkpoint fails, or is not stored.
func TestJointRecordStorage(t *testing.T) {
	down := errors.New("down")
	crashAmid(t, map[string]recordTest{
		"nothing was ever stored": {func(r *jointRig) { r.ackAll(); clear(r.store.values) }, []string{"a:0,1,2", "b:0,1,2"}},
		"the storage fails once": {func(r *jointRig) {
			r.checkpoint()
			r.ack(0)
			r.store.fail = down
			r.checkpoint()
			r.store.fail = nil
			r.ackAll()
			r.checkpoint()
		}, nil},
		"the storage fails at last": {func(r *jointRig) {
			r.ack(0)
			r.checkpoint()
			r.ackAll()
			r.store.fail = down
			r.checkpoint()
			r.store.fail = nil
		}, []string{"b:0,1,2"}},
		"it was stored too often for now": {func(r *jointRig) {
			r.ack(0)
			r.checkpoint()
			r.tl.nextStore = r.now.Add(time.Second)
			r.ackAll()
			require.NoError(r.t, r.tl.storeAll(context.Background(), false))
		}, []string{"b:0,1,2"}},
	})
}

// fileTest is an event of rank 0's file, with lent lines.
type fileTest struct {
	do   func(r *jointRig)
	gone bool // none of its lines can be read again
}

func outlive(t *testing.T, cases map[string]fileTest) {
	t.Helper()
	for name, tc := range cases {
		for pattern, change := range map[string]func(*Config){"out of pattern": func(*Config) {}, "in pattern": every} {
			for _, down := range []string{"", "the same process", "a crash", "a crash before it", "two crashes"} {
				t.Run(name+", "+pattern+", "+down, func(t *testing.T) {
					r := newJointRig(t, 2, change)
					r.say(0, "# x", "a", "b", "( x", "c")
					r.step(0)
					r.say(1, "b")
					r.step(poll)
					r.got("b:0,1")
					r.checkpoint()
					if down == "a crash before it" || down == "two crashes" {
						r.restart()
						r.step(0)
					}
					tc.do(r)
					if down == "a crash" || down == "two crashes" {
						r.restart()
					}
					r.rest()
					r.got()
					r.say(1, "a", "c")
					r.rest()
					if tc.gone && (down == "a crash" || down == "two crashes") {
						r.got()
						r.step(2 * r.holdTimeout)
						r.rest()
						r.got("a:1", "c:1")
					} else {
						r.got("a:0,1", "c:0*2,1")
					}
					r.steps(50, 5*time.Second)
					r.still()
					for _, s := range r.tl.sweeper.streams {
						for _, f := range s.files {
							require.NotEqual(t, lifeDead, f.life, f.path)
						}
					}
					r.checkpoint()
					r.restart()
					r.rest()
					r.got()
					r.still()
				})
			}
		}
	}
}

// No event of a file affects its lent lines.
func TestJointFiles(t *testing.T) {
	outlive(t, map[string]fileTest{
		"appended": {func(r *jointRig) { r.append("r0.log", "# x\n") }, false},
		"renamed":  {func(r *jointRig) { r.rename("r0.log", "r0.log.1") }, false},
		"renamed twice": {func(r *jointRig) {
			r.rename("r0.log", "r0.log.1")
			r.append("r0.log", "# x\n")
			r.rename("r0.log.1", "r0.log.2")
			r.rename("r0.log", "r0.log.1")
			r.append("r0.log", "# y\n")
		}, false},
		"copied and truncated": {func(r *jointRig) { r.copy("r0.log", "r0.log.1"); r.truncate("r0.log"); r.append("r0.log", "# x\n") }, false},
		"compressed": {func(r *jointRig) {
			r.append("r0.log", strings.Repeat("# x\n", 1000))
			r.step(poll)
			r.copy("r0.log", "x")
			r.remove("r0.log")
			b, _ := os.ReadFile(r.path("x"))
			r.write("r0.log.1.gz", gz(string(b)))
			r.remove("x")
		}, false},
		"truncated": {func(r *jointRig) { r.truncate("r0.log"); r.append("r0.log", "# x\n") }, true},
		"deleted":   {func(r *jointRig) { r.remove("r0.log") }, true},
		"made anew": {func(r *jointRig) { r.remove("r0.log"); r.append("r0.log", "# x\n") }, true},
	})
}

// Lines of a complete compressed file wait like others, and are read again after a crash.
func TestJointCompressed(t *testing.T) {
	r := newJointRig(t, 2, every)
	r.write("r0.log.1.gz", gz("a 0;\nb 0;\n# x\nc 0;\n"))
	for range 3 {
		r.rest()
		r.got()
		r.checkpoint()
		_, holes, tags := r.stored()
		require.Len(t, holes, 2)
		require.NotEmpty(t, tags)
		r.restart()
	}
	r.say(1, "b", "a")
	r.rest()
	r.got("a:0,1", "b:0,1")
	r.step(2 * r.holdTimeout)
	r.rest()
	r.got("c:0")
	r.still()
}

// Tags are returned after any number of restarts, with any lines in between, and after reading in parts.
func TestJointTags(t *testing.T) {
	r := newJointRig(t, 2)
	var keys []string
	for i := range 400 {
		keys = append(keys, fmt.Sprintf("k%03d", i))
	}
	r.say(0, keys...)
	r.say(1, "#")
	r.step(0)
	r.checkpoint()
	head, holes, tags := r.stored()
	require.Equal(t, []checkpoint.Range{{Begin: 0, End: head}}, holes, "neighbours are one hole")
	require.Greater(t, len(tags), 380)
	r.say(1, keys[7], keys[200], keys[201])
	r.step(poll)
	r.checkpoint()
	_, holes, tags = r.stored()
	require.Len(t, holes, 3)
	r.got("k007:0,1", "k200:0,1", "k201:0,1")

	for range 3 { // a crash after a number of turns, each of 1 KiB
		for turns := range 5 {
			r.restart()
			r.tl.chunk = minRead
			r.tl.sweep(r.now)
			for range turns {
				for _, s := range r.tl.sweeper.streams {
					s.drain(&r.buf)
				}
			}
			r.checkpoint()
			_, again, same := r.stored()
			require.Equal(t, holes, again)
			require.Equal(t, tags, same)
		}
	}
	r.step(0)
	r.append("r0.log", "( x\n( y\nlast 0;\n")
	r.step(poll)
	r.checkpoint()
	r.restart()
	r.say(1, append(keys[8:], "last")...)
	r.rest()
	r.say(1, keys[:7]...)
	r.rest()
	want := []string{"last:0*3,1"}
	for i, k := range keys {
		if i != 7 && i != 200 && i != 201 {
			want = append(want, k+":0,1")
		}
	}
	slices.Sort(r.out)
	r.out = slices.DeleteFunc(r.out, func(s string) bool { return slices.Contains([]string{"k200:1", "k201:1"}, s) })
	r.got(want...)
	r.step(2 * r.holdTimeout)
	r.rest()
	r.got("k200:1", "k201:1")
	r.still()
}

// halves returns an error where the store has some lines of a record accepted and others not. lines are the records of each line, by path and offset.
func halves(values map[string][]byte, lines map[string]map[int64][]string) error {
	type place struct {
		path  string
		begin int64
	}
	done, open := map[string]place{}, map[string]place{} // a line of each record
	for path, at := range lines {
		var c checkpoint.Stream
		if b := values[checkpoint.Key(path)]; b != nil {
			d, err := checkpoint.Decode(b)
			if err != nil {
				return err
			}
			c = *d
		}
		for begin, keys := range at {
			accepted := slices.ContainsFunc(c.Files, func(f checkpoint.File) bool { // one exists
				return begin < f.Head && !slices.ContainsFunc(f.Holes, func(h checkpoint.Range) bool { return h.Begin <= begin && begin < h.End })
			})
			for _, k := range keys {
				if accepted {
					done[k] = place{path, begin}
				} else {
					open[k] = place{path, begin}
				}
			}
		}
	}
	for k, d := range done {
		if o, both := open[k]; both {
			return fmt.Errorf("%s: %+v is accepted, and not %+v", k, d, o)
		}
	}
	return nil
}

// sharedLines makes the lines of each rank, of one to three keys each in any order, and maps the offsets in a file to the keys of its lines.
func sharedLines(r *jointRig, rnd *rand.Rand, keys int) (said []string, lines map[string]map[int64][]string) {
	lines = map[string]map[int64][]string{}
	said = make([]string, r.ranks)
	for rank := range r.ranks {
		name := r.path(fmt.Sprintf("r%d.log", rank))
		lines[name] = map[int64][]string{}
		order := rnd.Perm(keys)
		var b strings.Builder
		for len(order) > 0 {
			n := min(1+rnd.IntN(3), len(order))
			var ks []string
			for _, k := range order[:n] {
				ks = append(ks, fmt.Sprintf("k%d", k))
			}
			order = order[n:]
			lines[name][int64(b.Len())] = ks
			if rnd.IntN(4) == 0 {
				b.WriteString("( x\n")
				lines[name][int64(b.Len())] = ks
			}
			fmt.Fprintf(&b, "%s %d;\n", strings.Join(ks, ","), rank)
		}
		said[rank] = b.String()
	}
	return said, lines
}

// A line of several records: records repeated after a crash are whole, for any accepted batches in any order.
func TestJointShared(t *testing.T) {
	oneGoroutine(t)
	for seed := range uint64(200) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 5))
			ranks, keys := 2+rnd.IntN(3), 3+rnd.IntN(8)
			r := newJointRig(t, ranks)
			r.hold = true
			said, lines := sharedLines(r, rnd, keys)
			var want []string
			for k := range keys {
				want = append(want, fmt.Sprintf("k%d", k))
			}
			slices.Sort(want)
			for { // each file line by line, in any order
				rank := rnd.IntN(ranks)
				if text, rest, ok := strings.Cut(said[rank], "\n"); ok {
					said[rank] = rest
					r.append(fmt.Sprintf("r%d.log", rank), text+"\n")
				}
				if !slices.ContainsFunc(said, func(s string) bool { return s != "" }) {
					break
				}
				r.step(poll)
				if len(r.flying) > 0 && rnd.IntN(2) == 0 {
					r.ack(rnd.IntN(len(r.flying)))
					r.checkpoint()
					require.NoError(t, halves(r.store.values, lines))
				}
				if rnd.IntN(20) == 0 {
					r.restart()
				}
			}
			r.rest()
			for len(r.flying) > 0 {
				r.ack(rnd.IntN(len(r.flying)))
				r.checkpoint()
				require.NoError(t, halves(r.store.values, lines))
			}
			r.still()
			got := map[string]bool{}
			for _, rec := range r.out {
				k, ranks, _ := strings.Cut(rec, ":")
				require.Len(t, strings.Split(ranks, ","), r.ranks, rec)
				got[k] = true
			}
			require.Equal(t, want, slices.Sorted(maps.Keys(got)))
		})
	}
}

// The lines kept for shared lines have a bound: beyond it a crash may repeat a record without all of its lines.
func TestJointSharedBound(t *testing.T) {
	r := newJointRig(t, 2)
	r.tl.maxKept = 3
	r.say(0, "a,b", "b,c", "c,d", "d,e", "e,f")
	for _, tc := range []struct {
		key  string
		kept int
	}{{"a", 1}, {"b", 3}, {"c", 0}, {"d", 2}, {"e", 0}} {
		r.say(1, tc.key)
		r.rest()
		require.Equal(t, tc.kept, r.tl.kept, tc.key)
	}
	r.say(1, "f")
	r.rest()
	r.got("a:0,1", "b:0*2,1", "c:0*2,1", "d:0*2,1", "e:0*2,1", "f:0,1")
	r.still()
}

func documents(c *Config) {
	c.Document = []string{filepath.Join(filepath.Dir(c.Include[0]), "*.json")}
	c.Include = append(c.Include, c.Document...)
}

// content has rank 0 write these keys to its document.
func (r *jointRig) content(keys string) {
	r.write("r0.json", keys+" 0;")
	r.rest()
}

func (r *jointRig) stream(name string) *Stream { return r.tl.sweeper.streams[r.path(name)] }

type documentTest struct {
	do    func(r *jointRig)
	again []string // after a crash, when a, b and c were said by rank 1
}

func crashAfter(t *testing.T, cases map[string]documentTest) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newJointRig(t, 2, documents)
			tc.do(r)
			r.checkpoint()
			r.out = nil
			r.restart()
			r.rest()
			r.say(1, "a", "b", "c")
			r.step(poll)
			r.rest()
			r.step(2 * r.holdTimeout)
			r.rest()
			r.got(tc.again...)
			r.still()
			r.remove("r0.json")
			r.rest()
			require.Nil(t, r.stream("r0.json"))
		})
	}
}

// The content of a document is accepted once all of its records are.
func TestJointDocuments(t *testing.T) {
	crashAfter(t, map[string]documentTest{
		"it waits": {func(r *jointRig) { r.content("a,b") }, []string{"a:0,1", "b:0,1", "c:1"}},
		"it waits, and its stream sends another record": {func(r *jointRig) {
			r.say(1, "x")
			r.rest()
			r.content("a,b")
			s := r.stream("r0.json")
			s.mu.Lock()
			s.expire(r.now.Add(-time.Second * 30)) // x only
			s.mu.Unlock()
			r.ackAll()
			r.got("x:1")
		}, []string{"a:0,1", "b:0,1", "c:1"}},
		"one of its records was accepted": {func(r *jointRig) {
			r.content("a,b")
			r.say(1, "a")
			r.rest()
			r.got("a:0,1")
		}, []string{"a:0,1", "a:1", "b:0,1", "c:1"}}, // rank 1 has written it twice
		"all of them, in batches of the other": {func(r *jointRig) {
			r.content("a,b")
			r.say(1, "a", "b")
			r.rest()
			r.got("a:0,1", "b:0,1")
		}, []string{"a:1", "b:1", "c:1"}},
		"all of them, in its own batch": {func(r *jointRig) {
			r.say(1, "a", "b")
			r.rest()
			r.content("a,b")
			r.got("a:0,1", "b:0,1")
		}, []string{"a:1", "b:1", "c:1"}},
	})
}

// New content in place of waiting content does not accept the old.
func TestJointDocumentWrittenAnew(t *testing.T) {
	crashAfter(t, map[string]documentTest{
		"all of the second content, and not the first": {func(r *jointRig) {
			r.content("x")
			r.content("a")
			r.say(1, "a")
			r.rest()
			r.got("a:0,1")
		}, []string{"a:1", "b:1", "c:1"}},
		"the first content after the second": {func(r *jointRig) {
			r.content("x")
			r.content("a")
			r.say(1, "a")
			r.rest()
			r.say(1, "x")
			r.rest()
			r.got("a:0,1", "x:0,1")
		}, []string{"a:1", "b:1", "c:1"}},
	})
}

// Content without records is accepted at once.
func TestJointDocumentOfNothing(t *testing.T) {
	crashAfter(t, map[string]documentTest{
		"nothing is wanted of it": {func(r *jointRig) { r.content("#") }, []string{"a:1", "b:1", "c:1"}},
		"it is not understood":    {func(r *jointRig) { r.write("r0.json", "no"); r.rest() }, []string{"a:1", "b:1", "c:1"}},
		"it is refused": {func(r *jointRig) {
			r.content("a")
			r.err = consumererror.NewPermanent(errors.New("no"))
			r.say(1, "a")
			r.rest()
			r.err = nil
		}, []string{"a:1", "b:1", "c:1"}},
	})
}

// Streams waiting for the budget resume once some is free, even if the streams before them read lines that put nothing in flight.
func TestJointBudget(t *testing.T) {
	const ranks = 40
	r := newJointRig(t, ranks, func(c *Config) { c.MaxInFlightBytes = minInFlight })
	for range 2 {
		r.hold = true
		r.append("x.log", "= "+strings.Repeat("x", minInFlight)+"\n") // one batch takes all
		r.rest()
		require.GreaterOrEqual(t, r.tl.inFlight, int64(minInFlight))
		before := r.tl.Counts().Lines
		for rank := range ranks - 1 {
			r.say(rank, "# x", "a")
		}
		r.rest()
		require.Equal(t, before, r.tl.Counts().Lines, "nothing is read ahead while the consumer is stuck")
		r.hold = false
		r.ackAll()
		for len(r.tl.ready) > 0 { // no look
			r.tl.turn(r.tl.pop(), &r.buf)
			r.ackAll()
		}
		require.Len(t, r.out, 1)
		r.out = nil
		r.say(ranks-1, "a")
		r.rest()
		require.Len(t, r.out, 1)
		require.Len(t, strings.Split(r.out[0], ","), ranks)
		r.out = nil
		r.still()
	}
}

// A stream that sends all records may use the whole budget, and no more. It resumes only with cause, and continues by acks.
func TestJointBudgetOfOne(t *testing.T) {
	r := newJointRig(t, 2, func(c *Config) { c.MaxInFlightBytes = minInFlight })
	var keys []string
	for i := range 2000 {
		keys = append(keys, fmt.Sprintf("k%04d", i))
	}
	r.say(0, keys...)
	r.rest()
	r.hold = true
	r.say(1, keys...)
	r.rest()
	require.Less(t, r.tl.inFlight, int64(minInFlight+2*minRecordCost))
	require.Len(t, r.flying, 4)
	r.say(2, "# x")
	r.rest()
	require.Empty(t, r.tl.ready)
	require.True(t, r.tl.sweeper.streams[r.path("r1.log")].blocked)
	for len(r.flying) > 0 {
		r.ack(0)
		for len(r.tl.ready) > 0 {
			r.tl.turn(r.tl.pop(), &r.buf)
		}
	}
	require.Len(t, r.out, 2000)
	r.still()
}

// The stream furthest behind is read first, but does not starve the others.
func TestJointOrder(t *testing.T) {
	r := newJointRig(t, 2)
	r.tl.chunk = minRead
	r.append("x.log", strings.Repeat("= "+strings.Repeat("x", 200)+"\n", 1000))
	for k := range 1000 {
		r.say(0, fmt.Sprintf("a%03d", k))
	}
	r.tl.sweep(r.now)
	ahead, own := r.tl.sweeper.streams[r.path("r0.log")], 0
	for range 6 * fairEvery {
		s := r.tl.pop()
		if s == ahead {
			own++
		}
		r.tl.turn(s, &r.buf)
		r.ackAll()
	}
	require.GreaterOrEqual(t, own, 6)
	require.Less(t, own, 12)
	r.rest()
	require.EqualValues(t, 2000, r.tl.Counts().Records)
	require.Len(t, r.out, 1000)
}

// ReadAll ends after all was read, including lines that waited for the budget while nothing of their stream was in flight.
func TestJointReadAll(t *testing.T) {
	const ranks = 40
	cfg := DefaultConfig()
	dir := t.TempDir()
	cfg.Include = []string{filepath.Join(dir, "*.log")}
	cfg.MaxInFlightBytes = minInFlight
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	put("x.log", "= "+strings.Repeat("x", minInFlight)+"\n") // one batch takes all
	for rank := range ranks {
		put(fmt.Sprintf("y%02d.log", rank), fmt.Sprintf("a %d;\n", rank))
	}
	m := &meeting{ranks: ranks + 1, open: map[string]*met{}, wrong: func(format string, args ...any) { t.Errorf(format, args...) }}
	var mu sync.Mutex
	out := map[string]int{}
	waited := false
	m.consume = func(_ context.Context, s *Stream, recs []string) error {
		mu.Lock()
		defer mu.Unlock()
		s.t.mu.Lock()
		waited = waited || len(s.t.waiting) >= ranks
		s.t.mu.Unlock()
		if !waited {
			return errors.New("not yet")
		}
		for _, rec := range recs {
			out[rec]++
		}
		return nil
	}
	set := testSettings()
	set.Joint = true
	c, err := ReadAll(t.Context(), cfg, set, func(s *Stream) Handler { return &member{m: m, s: s} })
	require.NoError(t, err)
	require.Len(t, out, 2)
	require.Zero(t, c.Pending)
	require.EqualValues(t, 1+ranks, c.Sent)
}

type expiryTest struct {
	obstacle func(r *jointRig)        // before time passes
	again    func(r *jointRig, i int) // every step
	waits    bool
}

func expire(t *testing.T, cases map[string]expiryTest) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newJointRig(t, 2, documents, every, func(c *Config) { c.MaxInFlightBytes, c.FollowSymlinks = minInFlight, true })
			defer func() { r.tl.inFlight = 0 }()
			r.say(0, "a")
			r.step(0)
			tc.obstacle(r)
			for i := range 100 {
				r.now = r.now.Add(r.holdTimeout / 50)
				if tc.again != nil {
					tc.again(r, i)
				}
				r.tl.sweep(r.now)
				for len(r.tl.ready) > 0 {
					r.tl.turn(r.tl.pop(), &r.buf)
				}
				if !r.hold {
					r.ackAll()
				}
				if i < 48 {
					require.NotContains(t, r.out, "a:0")
				}
			}
			if !tc.waits {
				require.Contains(t, r.out, "a:0")
				return
			}
			all := func() (out []string) {
				for _, b := range r.flying {
					require.NoError(t, b.delivery.Send(context.Background()))
				}
				return r.out
			}
			require.NotContains(t, all(), "a:0")
		})
	}
}

// Records wait for unread lines, but not for unreadable files, nor for unfinished lines.
func TestJointExpiry(t *testing.T) {
	expire(t, map[string]expiryTest{
		"nothing": {func(*jointRig) {}, nil, false},
		"a document that cannot be opened": {func(r *jointRig) {
			r.write("d.json", "b 0;")
			r.rest()
			r.write("d.json", "b,c 0;")
			r.now = r.now.Add(5 * time.Second)
			r.tl.sweep(r.now)
			r.now = r.now.Add(5 * time.Second)
			r.tl.sweep(r.now) // to be read now
			r.remove("d.json")
			require.NoError(r.t, os.Mkdir(r.path("d.json"), 0o700))
		}, nil, false},
		"a document that is deleted before it was read": {func(r *jointRig) {
			r.write("d.json", "b 0;")
			r.rest()
			r.write("d.json", "b,c 0;")
			r.now = r.now.Add(5 * time.Second)
			r.tl.sweep(r.now)
			r.remove("d.json")
		}, nil, false},
		"a document that is always being written": {func(*jointRig) {}, func(r *jointRig, i int) { r.write("d.json", strings.Repeat("x", i)) }, false},
	})
}

func TestJointExpiryBesideFiles(t *testing.T) {
	expire(t, map[string]expiryTest{
		"a file that cannot be opened": {func(r *jointRig) {
			r.append("z.log", "# x\n")
			r.rest()
			r.append("z.log", "# y\n")
			r.now = r.now.Add(5 * time.Second)
			r.tl.sweep(r.now)
			r.tl.close(r.tl.sweeper.streams[r.path("z.log")].current)
			r.rename("z.log", "elsewhere")
			require.NoError(r.t, os.Mkdir(r.path("z.log"), 0o700))
		}, nil, false},
		"a file that was cut, and whose path cannot be looked at": {func(r *jointRig) {
			r.append("z.log", "# x\n")
			r.rest()
			r.append("z.log", "# y\n")
			r.now = r.now.Add(5 * time.Second)
			r.tl.sweep(r.now)
			r.truncate("z.log")
			r.remove("z.log")
			require.NoError(r.t, os.Symlink("z.log", r.path("z.log"))) // a loop
		}, nil, false},
		"a compressed file that is always being written": {func(*jointRig) {}, func(r *jointRig, i int) {
			r.write("z.log.1.gz", gz(strings.Repeat("# x\n", i+1)))
		}, false},
		"a compressed file that is complete": {func(r *jointRig) { r.write("z.log.1.gz", gz("b 0;\n")); r.rest() }, nil, false},
		"a last line without its end":        {func(r *jointRig) { r.append("z.log", "b") }, func(r *jointRig, _ int) { r.append("z.log", "b") }, false},
	})
}

func TestJointExpiryWaits(t *testing.T) {
	expire(t, map[string]expiryTest{
		"a file of which nothing was read": {func(r *jointRig) {
			r.hold = true
			r.append("x.log", strings.Repeat("= x\n", 4*minInFlight/minRecordCost))
		}, nil, true},
		"a document that was not read": {func(r *jointRig) {
			r.hold = true
			r.append("x.log", "# x\n"+strings.Repeat("= x\n", minInFlight/minRecordCost))
			r.rest()
			r.tl.inFlight += minInFlight // bytes of other streams
			r.write("d.json", "b 0;")
		}, nil, true},
	})
}

// Expired records leave in as many batches as the handler makes.
func TestJointExpiryInParts(t *testing.T) {
	for _, end := range []bool{false, true} {
		t.Run(fmt.Sprintf("at the end %v", end), func(t *testing.T) {
			r := newJointRig(t, 3)
			r.m.most = 2
			r.say(0, "a", "b", "c", "d", "e")
			r.say(1, "e", "f", "g", "( x", "( y")
			r.step(0)
			r.hold = true
			if end {
				r.tl.expireAll()
			} else {
				r.step(2 * r.holdTimeout)
			}
			require.GreaterOrEqual(t, len(r.flying), 4)
			r.ackAll()
			r.got("a:0", "b:0", "c:0", "d:0", "e:0,1", "f:1", "g:1", "(2")
			r.still()
		})
	}
}

// The oldest lines of a stream that lends too many are given up, and not again while in flight.
func TestJointTooMany(t *testing.T) {
	r := newJointRig(t, 2)
	r.tl.maxHeld = 5
	r.hold = true
	for i := range 6 {
		r.say(0, fmt.Sprintf("k%d", i))
		r.step(poll)
	}
	r.step(poll)
	require.Len(t, r.flying, 1)
	r.steps(4, poll)
	require.EqualValues(t, 1, r.tl.counts.forced.n)
	r.hold = false
	r.ackAll()
	r.got("k0:0", "k1:0", "k2:0")
	r.rest()
	r.say(1, "k3", "k4", "k5")
	r.rest()
	r.got("k3:0,1", "k4:0,1", "k5:0,1")
	require.EqualValues(t, 1, r.tl.counts.forced.n)
	r.still()
}

// Records that are sent nowhere release their lines all the same.
func TestJointNothingToSend(t *testing.T) {
	r := newJointRig(t, 3)
	r.m.silent = func(key string) bool { return key[0] == 's' }
	r.say(0, "s1", "a", "s2")
	r.say(1, "s1", "a", "s2")
	r.step(0)
	r.say(2, "s1")
	r.rest()
	require.EqualValues(t, 3, r.tl.Counts().Sent)
	r.say(2, "a", "s2")
	r.rest()
	r.got("a:0,1,2")
	r.still()
	r.say(0, "s3")
	r.rest()
	r.step(2 * r.holdTimeout)
	r.rest()
	r.got()
	r.still()
	r.checkpoint()
	_, holes, _ := r.stored()
	require.Empty(t, holes)
}

// A checkpoint is one state of all streams: nothing is accepted, and no stream is added, during its collection.
func TestJointCheckpointIsOneState(t *testing.T) {
	r := newJointRig(t, 2)
	r.say(0, "a")
	r.step(0)
	r.hold = true
	r.say(1, "a")
	r.rest()
	settling := func() bool { // a batch is being settled
		if r.tl.settling.TryRLock() {
			r.tl.settling.RUnlock()
			return true
		}
		return false
	}
	require.True(t, settling())
	r.tl.settling.RLock() // another is
	stored := make(chan error)
	go func() { stored <- r.tl.storeAll(context.Background(), true) }()
	for settling() {
		runtime.Gosched()
	}
	require.False(t, r.tl.sweepMu.TryLock(), "a stream that comes now may have lines accepted with those of streams that are stored")
	r.tl.settling.RUnlock()
	require.NoError(t, <-stored)
	require.True(t, r.tl.sweepMu.TryLock())
	r.tl.sweepMu.Unlock()
	r.ackAll()
	r.got("a:0,1")
	r.still()
}

// Checkpoints with many holes are stored less often, and then completely: neither the index alone nor the deletions alone.
func TestJointCheckpointsAreRare(t *testing.T) {
	oneGoroutine(t)
	r := newJointRig(t, 2)
	var b strings.Builder
	for i := range 3 * holesPerSecond {
		fmt.Fprintf(&b, "%d 0;\n= x\n", i)
	}
	r.append("r0.log", b.String())
	r.say(1, "# x")
	r.step(0)
	store := func() { require.NoError(t, r.tl.storeAll(context.Background(), false)) }
	store()
	stored := maps.Clone(r.store.values)
	require.Len(t, stored, 3)
	r.say(1, "7")
	r.say(2, "# a file that none knows")
	r.remove("r1.log")
	for range 14 {
		r.step(poll)
		store()
		require.True(t, maps.EqualFunc(stored, r.store.values, bytes.Equal))
	}
	r.rest()
	store()
	require.False(t, maps.EqualFunc(stored, r.store.values, bytes.Equal))
	_, holes, _ := r.stored()
	require.Len(t, holes, 3*holesPerSecond-1)
	r.restart()
	r.step(0)
	require.Zero(t, r.tl.Counts().CheckpointErrors)
}

// BenchmarkJointExpiry is one look at 10,000 streams, each with a held line, all of them asked for lines to give up.
func BenchmarkJointExpiry(b *testing.B) {
	r := benchStreams(b, 10_000, 1)
	r.tl.sweep(r.now)
	b.ReportAllocs()
	for b.Loop() {
		r.now = r.now.Add(30 * time.Second)
		r.tl.sweepMu.Lock()
		for _, s := range r.tl.sweeper.streams {
			s.noteCaughtUp()
			r.tl.sweeper.expire(s, r.now)
		}
		r.tl.sweepMu.Unlock()
	}
}

// BenchmarkJointCheckpoint stores a million lent lines of 1,000 streams.
func BenchmarkJointCheckpoint(b *testing.B) {
	r := benchStreams(b, 1000, 1000)
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range r.tl.sweeper.streams {
			s.dirty = true
		}
		r.checkpoint()
	}
}

// BenchmarkJointSettle settles batches of 1,000 lines of 1,000 streams.
func BenchmarkJointSettle(b *testing.B) {
	r := benchStreams(b, 1000, 1)
	b.ReportAllocs()
	lents := make([]Lent, 0, 1000)
	for b.Loop() {
		lents = lents[:0]
		for _, s := range r.tl.sweeper.streams {
			h := s.held.put(held{piece: piece{file: s.current}, refs: 1})
			lents = append(lents, Lent{s, h, 100})
		}
		r.tl.settleLent(lents)
	}
}

func benchStreams(b *testing.B, streams, lines int) *jointRig {
	b.Helper()
	r := newJointRig(b, streams+1)
	var text strings.Builder
	for i := range streams {
		text.Reset()
		for k := range lines {
			fmt.Fprintf(&text, "%d %d;\n", k, i)
		}
		r.append(fmt.Sprintf("r%d.log", i), text.String())
	}
	r.step(0)
	r.rest()
	require.Len(b, r.tl.sweeper.streams, streams)
	require.EqualValues(b, streams*lines, r.tl.Counts().Pending)
	return r
}
