package offsets

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMetadata(t *testing.T) {
	p := Position{1 << 40, 7, 1 << 41}
	assert.Equal(t, p, Committed(p.Begin, p.Metadata()))
	for _, foreign := range []string{"", "a text", "7", "-1 9", "9 9", "7 7"} {
		assert.Equal(t, Position{8, 8, 0}, Committed(8, foreign), foreign)
	}
}

func TestPosition(t *testing.T) {
	tr := New(Position{}, 0)
	assert.Equal(t, Position{}, tr.Position(), "nothing was read")
	for offset, records := range []int{1, 2, 0, 1, 1} {
		tr.Read(int64(offset))
		for range records {
			tr.Hold()
		}
		tr.Done()
	}
	assert.Equal(t, 4, tr.Behind())
	assert.Equal(t, Position{0, 0, 5}, tr.Position())
	tr.Accepted([]int64{3, 0})
	assert.Equal(t, Position{1, 0, 5}, tr.Position(), "its record of message 3 comes again")
	tr.Accepted([]int64{1})
	assert.Equal(t, Position{1, 0, 5}, tr.Position())
	tr.Accepted([]int64{1})
	assert.Equal(t, Position{4, 4, 5}, tr.Position(), "nothing of 0 to 3 comes again")
	tr.Accepted([]int64{4})
	assert.Equal(t, Position{5, 5, 5}, tr.Position())
	assert.Zero(t, tr.Behind())
	assert.EqualValues(t, 5, tr.Head())

	tr.Read(5)
	tr.Hold()
	tr.Done()
	tr.Read(6)
	tr.Hold()
	tr.Hold()
	tr.Done()
	tr.Accepted([]int64{5, 6})
	assert.Equal(t, Position{6, 5, 7}, tr.Position(), "it has a record of the first hole itself")

	// A message before the committed offset is no hole, but its records may be of a collective that continues beyond.
	tr = New(Position{10, 4, 11}, 2)
	assert.Equal(t, Position{10, 2, 11}, tr.Position())
	for offset := int64(2); offset < 12; offset++ {
		tr.Read(offset)
		tr.Hold()
		tr.Done()
	}
	assert.Equal(t, Position{10, 2, 12}, tr.Position())
	assert.True(t, tr.Known([]int64{2, 9}))
	assert.False(t, tr.Known([]int64{2, 10}))
	tr.Accepted([]int64{10, 11})
	assert.Equal(t, Position{12, 2, 12}, tr.Position())
	tr.Accepted([]int64{2, 3, 4, 5, 6, 7, 8})
	assert.Equal(t, Position{12, 9, 12}, tr.Position())
}

// record is a rank's record of a collective.
type record struct{ comm, seq, rank int }

// log is a topic's partition: messages with records, at offsets with gaps.
type log struct {
	offsets  []int64
	messages [][]record
}

const (
	comms       = 3
	ranks       = 4
	collectives = 40
)

// newLog is the log of inputs, each with the records of its ranks in order, some far ahead of others.
func newLog(random *rand.Rand) (l log) {
	at := int64(random.IntN(100))
	next := [comms][ranks]int{}
	for left := comms * ranks * collectives; left > 0; {
		comm, rank := random.IntN(comms), random.IntN(ranks)
		if random.IntN(4) > 0 {
			rank = random.IntN(1 + rank) // low ranks are ahead
		}
		var m []record
		for range random.IntN(6) { // none: not a partial
			if next[comm][rank] < collectives {
				m = append(m, record{comm, next[comm][rank], rank})
				next[comm][rank]++
				left--
			}
		}
		l.offsets, l.messages = append(l.offsets, at), append(l.messages, m)
		at += 1 + int64(random.IntN(2)*random.IntN(2)*random.IntN(5))
	}
	return l
}

// life is a gateway's state of a partition until a crash or the loss of the partition.
type life struct {
	*Tracker
	open   map[record][]int64 // by collective: the offsets of its records
	ranks  map[record]map[int]bool
	leaves [][]joined // batches on their way
}

type joined struct {
	key  record
	came []int64
}

// No collective is lost, and each one sent, once or again, has all its records, whatever the order of acceptance and the place of the crash.
func TestModel(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { model(t, rand.New(rand.NewPCG(seed, 19))) })
	}
}

func model(t *testing.T, random *rand.Rand) {
	t.Helper()
	l := newLog(random)
	sent := make(map[record]int)
	committed := Position{l.offsets[0], l.offsets[0], l.offsets[0]}
	for life := range 20 {
		crash := random.IntN(3 * len(l.offsets))
		if life == 19 {
			crash = -1
		}
		committed = l.live(t, random, committed, crash, sent)
	}
	assert.Equal(t, l.offsets[len(l.offsets)-1]+1, committed.Begin, "nothing is left")
	assert.Len(t, sent, comms*collectives)
}

// live reads on from the committed position until a crash after a number of steps, or at the end of the log with all accepted, and returns the committed
// position.
func (l *log) live(t *testing.T, random *rand.Rand, committed Position, crash int, sent map[record]int) Position {
	t.Helper()
	from := max(min(committed.From, committed.Begin-int64(random.IntN(2)*random.IntN(30))), l.offsets[0])
	now, head := life{New(committed, from), make(map[record][]int64), make(map[record]map[int]bool), nil}, committed.Head
	i, _ := slices.BinarySearch(l.offsets, from)
	for step := 0; step != crash && (i < len(l.offsets) || len(now.leaves) > 0); step++ {
		if n := len(now.leaves); i < len(l.offsets) && (n == 0 || random.IntN(3) > 0) {
			for _, r := range l.messages[i] {
				came := now.open[record{comm: r.comm, seq: r.seq}]
				require.False(t, l.offsets[i] >= head && len(came) > 0 && now.Known(came), "%v was sent without a record that is not late", r)
			}
			now.read(l.offsets[i], l.messages[i])
			i++
		} else {
			n = random.IntN(n) // batches are accepted in any order
			for _, c := range now.leaves[n] {
				require.Len(t, c.came, ranks, "a collective that is sent is whole")
				sent[c.key]++
				now.Accepted(c.came)
			}
			now.leaves = slices.Delete(now.leaves, n, n+1)
		}
		if random.IntN(4) == 0 || crash < 0 {
			p := now.Position()
			require.LessOrEqual(t, p.From, p.Begin)
			require.GreaterOrEqual(t, p.Begin, committed.Begin, "a commit never goes back")
			require.GreaterOrEqual(t, p.Head, committed.Head, "what was read before was read")
			committed = p
		}
	}
	for key, came := range now.open {
		require.True(t, i < len(l.offsets) || now.Known(came), "%v is not whole, and would be sent so", key)
	}
	return committed
}

// read takes a message into the joiner.
func (l *life) read(offset int64, records []record) {
	l.Read(offset)
	var batch []joined
	for _, r := range records {
		l.Hold()
		key := record{comm: r.comm, seq: r.seq}
		if l.ranks[key] == nil {
			l.ranks[key] = make(map[int]bool)
		}
		l.ranks[key][r.rank] = true
		l.open[key] = append(l.open[key], offset)
		if len(l.ranks[key]) < ranks {
			continue
		}
		if came := l.open[key]; l.Known(came) {
			l.Accepted(came)
		} else {
			batch = append(batch, joined{key, came})
		}
		delete(l.open, key)
	}
	l.Done()
	if len(batch) > 0 {
		l.leaves = append(l.leaves, batch)
	}
}
