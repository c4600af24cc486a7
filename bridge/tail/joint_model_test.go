package tail

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
)

var (
	jointSeed  = flag.Uint64("tail.jointseed", 0, "run the model test of joint records with this seed only")
	jointSeeds = flag.Uint64("tail.jointseeds", 1000, "number of seeds of the model test of joint records")
)

// jointModel is the model of files, with ranks whose records are in files of their own.
type jointModel struct {
	*model
	r       *jointRig
	shared  bool // some lines are of two records
	next    []int
	skipped [][]int                   // records left out by a rank so far
	spoken  map[string][]*spokenLine  // by record
	whole   map[string]int            // number of times a record left with all of its ranks
	partial map[string]map[string]int // partial records, by their ranks, with their number
	certain int                       // records that must be whole, at most once per crash and once more
	crashes int
	ended   bool
	refuse  bool // records are refused for good
}

type spokenLine struct {
	text string
	rank string
}

// line is the next line of a rank: mostly of the next record, sometimes of a record left out before.
func (m *jointModel) line(name string) string {
	rank := int(name[0] - 'a')
	m.ids++
	switch m.rnd.IntN(20) {
	case 0:
		return fmt.Sprintf("# %05d", m.ids)
	case 1:
		return fmt.Sprintf("! %05d", m.ids)
	case 2:
		return fmt.Sprintf("= %05d", m.ids)
	}
	record := func() string {
		k := m.next[rank]
		if n := len(m.skipped[rank]); n > 0 && m.rnd.IntN(3) == 0 {
			i := m.rnd.IntN(n)
			k = m.skipped[rank][i]
			m.skipped[rank] = slices.Delete(m.skipped[rank], i, i+1)
		} else {
			for m.rnd.IntN(12) == 0 {
				m.skipped[rank] = append(m.skipped[rank], k)
				k++
			}
			m.next[rank] = k + 1
		}
		return fmt.Sprintf("k%05d", k)
	}
	keys := []string{record()}
	if m.shared && m.rnd.IntN(4) == 0 {
		keys = append(keys, record())
	}
	l := &spokenLine{rank: strconv.Itoa(rank)}
	l.text = fmt.Sprintf("%s %d %05d %s;", strings.Join(keys, ","), rank, m.ids, strings.Repeat("x", m.rnd.IntN(600)))
	for _, k := range keys {
		m.spoken[k] = append(m.spoken[k], l)
	}
	return l.text
}

// came checks the accepted or refused records.
func (m *jointModel) came(out []string) {
	for _, rec := range out {
		m.out = append(m.out, rec)
		k, said, ok := strings.Cut(rec, ":")
		if !ok {
			continue
		}
		ranks := strings.Split(said, ",")
		if len(ranks) == m.r.ranks {
			m.whole[k]++
			continue
		}
		if !m.ended {
			m.fail("%s left before its time", rec)
		}
		if m.partial[k] == nil {
			m.partial[k] = map[string]int{}
		}
		for _, rank := range ranks {
			rank, _, _ = strings.Cut(rank, "*")
			m.partial[k][rank]++
		}
	}
}

func (m *jointModel) run(ops int) {
	names := []string{"a.log", "b.log", "c.log"}[:m.r.ranks]
	for range ops {
		name := names[m.rnd.IntN(len(names))]
		m.do(m.rnd.IntN(100), name)
		if m.tl != nil {
			m.balance()
		}
	}
	m.note("end")
	m.err, m.refuse, m.hold, m.store.fail = nil, false, false, nil
	for _, name := range slices.Sorted(maps.Keys(m.paths)) {
		m.complete(name)
	}
	for _, name := range names {
		m.lines(name)
	}
	m.step(0)
	m.ackAll()
	m.rest()
	m.ended = true
	m.tl.expireAll()
	m.ackAll()
	m.r.still()
	m.check()
}

// do applies one event to a file, the consumer, the storage or the process; n chooses it, of a hundred.
func (m *jointModel) do(n int, name string) {
	switch {
	case m.toFile(n, name, fileOdds{25, 28, 30, 36, 39, 40, 41}):
	case n < 70:
		d := time.Duration(m.rnd.IntN(400)) * time.Millisecond
		m.note("step %v", d)
		m.step(d)
	case n < 73:
		m.err = [...]error{nil, errors.New("not now")}[m.rnd.IntN(2)]
		m.refuse = m.rnd.IntN(3) == 0
		m.note("consumer %v, refuses %v", m.err, m.refuse)
	case n < 80:
		m.note("ack")
		for range m.rnd.IntN(4) {
			if len(m.flying) > 0 {
				m.ack(m.rnd.IntN(len(m.flying)))
			}
		}
	case n < 88:
		m.note("checkpoint")
		m.checkpoint()
	case n < 91:
		m.store.fail = [...]error{nil, errors.New("disk full")}[m.rnd.IntN(2)]
		m.note("storage %v", m.store.fail)
	case n < 97:
		m.note("crash")
		m.down()
	default:
		m.note("clean restart")
		m.store.fail = nil
		m.checkpoint()
		m.down()
	}
}

func (m *jointModel) down() {
	m.store.fail = nil
	m.crashes++
	m.crashAndRestart()
}

func (m *jointModel) check() {
	for k, lines := range m.spoken {
		ranks := map[string]bool{}
		sure, certain := true, true // sure: the line can be read; certain: it can be read only once
		for _, l := range lines {
			ranks[l.rank] = true
			ml := m.byText[l.text]
			if ml.optional || ml.in.next == ml {
				sure = false
				continue
			}
			certain = certain && !ml.in.loose && !ml.in.copied
			if m.whole[k] == 0 && m.partial[k][l.rank] == 0 {
				m.fail("lost: %q", l.text)
			}
		}
		if !sure || !certain || len(ranks) < m.r.ranks {
			continue
		}
		m.certain++
		switch {
		case len(m.partial[k]) > 0:
			m.fail("%s came without all of its lines: %v, and %d times with them", k, m.partial[k], m.whole[k])
		case m.whole[k] == 0:
			m.fail("%s did not come", k)
		case m.whole[k] > 1+m.crashes:
			m.fail("%s came %d times with %d crashes", k, m.whole[k], m.crashes)
		}
	}
	for text, l := range m.byText {
		if text[0] == '=' && !l.optional && l.in.next != l && !slices.Contains(m.out, text) {
			m.fail("lost: %q", text)
		}
	}
}

func runJointModel(t *testing.T, seed uint64) (certain, crashes int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 7))
	ranks := 2 + rnd.IntN(2)
	m := &jointModel{
		model:  &model{rnd: rnd, byText: map[string]*modelLine{}, paths: map[string]*modelFile{}, open: map[string][]string{}, inGlob: rnd.IntN(2) == 0},
		shared: rnd.IntN(3) == 0, next: make([]int, ranks), skipped: make([][]int, ranks),
		spoken: map[string][]*spokenLine{}, whole: map[string]int{}, partial: map[string]map[string]int{},
	}
	m.r = newJointRig(t, ranks, func(c *Config) {
		if m.inGlob {
			c.Include = append(c.Include, filepath.Join(filepath.Dir(c.Include[0]), "*.log.*"))
		}
		if rnd.IntN(2) == 0 {
			c.MaxInFlightBytes = minInFlight
		}
	})
	m.rig = m.r.rig
	m.speak = m.line
	m.r.holdTimeout = 1000 * time.Hour
	m.restart()
	m.consume = func(_ context.Context, _ *Stream, out []string) error {
		if m.err != nil {
			return m.err
		}
		m.came(out)
		if m.refuse {
			return consumererror.NewPermanent(errors.New("no"))
		}
		return nil
	}
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
	m.run(20 + rnd.IntN(80))
	return m.certain, m.crashes
}

// TestJointModel runs random sequences of events of files, consumer, storage and process against a model of the expected records: each record leaves with the
// lines of all ranks, once, or again as a whole after a crash, never with only some of its readable lines; no line is lost; the accounts and the budget are
// right at every step; tags are returned unchanged. go test -run TestJointModel -tail.jointseed=N repeats one seed.
func TestJointModel(t *testing.T) {
	if *jointSeed != 0 {
		runJointModel(t, *jointSeed)
		return
	}
	certain, crashes, seeds := 0, 0, *jointSeeds
	if testing.Short() {
		seeds /= 32
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			n, down := runJointModel(t, seed)
			certain, crashes = certain+n, crashes+down
		}) {
			t.Logf("repeat with -tail.jointseed=%d", seed)
		}
	}
	require.Greater(t, certain, 10*int(seeds))
	require.Greater(t, crashes, 3*int(seeds))
}
