package breakdown

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const second = int64(1e9)

var (
	rank3  = Who{Rank: 3, HasRank: true, Host: "node-1", Comm: "TP Group 0", Operation: "ReduceScatter"}
	rank17 = Who{Rank: 17, HasRank: true, Host: "node-2", Comm: "DP Group 0", Operation: "AllReduce"}
)

// at is a piece from one second to another.
func at(k Kind, from, to float64) Piece {
	return Piece{Kind: k, Start: 1000*second + int64(from*1e9), End: 1000*second + int64(to*1e9)}
}

func timer(k Kind, took float64) Piece { return Piece{Kind: k, Seconds: took} }

func by(p Piece, who Who) Piece {
	p.Who = who
	return p
}

func split(p Piece, shares ...float64) Piece {
	copy(p.Split[:], shares)
	return p
}

type of map[Kind]float64

// windows take ten seconds each.
var windows = map[string]struct {
	pieces           []Piece
	time, sum, union of // union is omitted if equal to time, sum if equal to union
	waits            []Part
}{
	"nothing": {time: of{Unattributed: 10}},
	"one stage after the other": {
		pieces: []Piece{at(Get, 0, 1), at(Compute, 1, 8), at(Put, 8, 9.5)},
		time:   of{Get: 1, Compute: 7, Put: 1.5, Unattributed: 0.5},
	},
	"cut to the window": {
		pieces: []Piece{at(Get, -5, 1), at(Compute, 8, 20), at(Put, -2, -1), at(Checkpoint, 10, 11)},
		time:   of{Get: 1, Compute: 2, Checkpoint: 0, Unattributed: 7, Put: 0},
	},
	"the most specific first": {
		pieces: []Piece{at(Compute, 0, 10), at(Collective, 2, 5), at(Wait, 2, 4), at(Checkpoint, 3, 3.5), at(Get, 0, 10)},
		time:   of{Compute: 7, Collective: 1, Wait: 1.5, Checkpoint: 0.5, Get: 0},
		union:  of{Compute: 10, Collective: 3, Wait: 2, Checkpoint: 0.5, Get: 10},
		waits:  []Part{{Who{}, 1.5}},
	},
	"of one kind at the same time": {
		pieces: []Piece{at(Compute, 0, 4), at(Compute, 2, 6), at(Compute, 3, 5)},
		time:   of{Compute: 6, Unattributed: 4},
		sum:    of{Compute: 10},
	},
	"who is waited for": {
		pieces: []Piece{by(at(Wait, 5, 6), rank3), by(at(Wait, 0, 2), rank17), by(at(Wait, 1, 2.5), rank3), by(at(Wait, 8, 9), rank17)},
		time:   of{Wait: 4.5, Unattributed: 5.5},
		sum:    of{Wait: 5.5},
		waits:  []Part{{rank17, 3}, {rank3, 1.5}},
	},
	"the server works while the client waits": {
		pieces: []Piece{at(RPCReceive, 0, 5), at(RPCServer, 1, 4), at(RPCUnattributed, 0, 6)},
		time:   of{RPCReceive: 2, RPCServer: 3, RPCUnattributed: 1, Unattributed: 4},
		union:  of{RPCReceive: 5, RPCServer: 3, RPCUnattributed: 6},
	},
	"a pass is split": {
		pieces: []Piece{split(at(RPCUnattributed, 0, 8), 0.25, 0, 0.5), at(Collective, 0, 4)},
		time:   of{RPCSerialize: 1, RPCReceive: 2, RPCUnattributed: 1, Collective: 4, Unattributed: 2},
		union:  of{RPCSerialize: 2, RPCReceive: 4, RPCUnattributed: 2, Collective: 4},
	},
	"shares above 1": {
		pieces: []Piece{split(at(RPCUnattributed, 0, 8), 1, 0, 3, math.NaN(), -7)},
		time:   of{RPCSerialize: 2, RPCReceive: 6, RPCUnattributed: 0, Unattributed: 2},
	},
	"timers take what is left, computing last": {
		pieces: []Piece{timer(Compute, 9), timer(Evaluation, 1), timer(Checkpoint, 2), timer(DataLoading, 3), at(Get, 0, 1)},
		time:   of{Compute: 3, Evaluation: 1, Checkpoint: 2, DataLoading: 3, Get: 1},
		union:  of{Compute: 9, Evaluation: 1, Checkpoint: 2, DataLoading: 3, Get: 1},
	},
	"timers of one kind": {
		pieces: []Piece{timer(DataLoading, 1), timer(DataLoading, 2), timer(Compute, math.NaN()), timer(Put, -1), timer(Compute, math.Inf(1))},
		time:   of{DataLoading: 3, Compute: 7, Put: 0},
		union:  of{DataLoading: 3, Compute: 10, Put: 0},
	},
	"a span and a timer tell of the same": {
		pieces: []Piece{at(Checkpoint, 0, 2), timer(Checkpoint, 3)},
		time:   of{Checkpoint: 3, Unattributed: 7},
		sum:    of{Checkpoint: 5},
	},
	"known, and no time": {
		pieces: []Piece{at(Wait, 3, 3), {Kind: Get, Start: 5, End: 3}, {Kind: Unattributed, Seconds: 3}, {Kind: 200, Seconds: 1}},
		time:   of{Wait: 0, Get: 0, Unattributed: 10},
	},
}

func TestOf(t *testing.T) {
	for name, tt := range windows {
		t.Run(name, func(t *testing.T) {
			var s Scratch
			b := s.Of(1000*second, 1010*second, tt.pieces)
			assert.InDelta(t, 10, b.Duration, 0)
			for k := range Kind(Kinds) {
				want, known := tt.time[k]
				assert.InDelta(t, want, b.Time[k], 1e-9, "time of %s", k)
				if w, ok := tt.union[k]; ok {
					want = w
				}
				assert.InDelta(t, want, b.Union[k], 1e-9, "union of %s", k)
				if w, ok := tt.sum[k]; ok {
					want = w
				}
				assert.InDelta(t, want, b.Sum[k], 1e-9, "sum of %s", k)
				assert.Equal(t, known || k == Unattributed, b.Known[k], "%s known", k)
			}
			assert.Equal(t, tt.waits, slices.Clip(slices.Clone(b.Waits)))
		})
	}
}

func TestNames(t *testing.T) {
	assert.Equal(t, "collective.wait", Wait.String())
	assert.Equal(t, "ml.step.time.rpc.serialize", RPCSerialize.TimeAttribute())
	assert.Equal(t, "ml.step.sum.data_loading", DataLoading.SumAttribute())
	assert.Equal(t, "ml.step.union.unattributed", Unattributed.UnionAttribute())
	for k := range Kind(Kinds) {
		assert.NotEmpty(t, k.String())
	}
}

// Collectives are distinguished by communicator and operation.
func TestCollectives(t *testing.T) {
	var s Scratch
	tp, dp := Who{Comm: "TP Group 0", Operation: "AllGather"}, Who{Comm: "DP Group 0", Operation: "AllReduce"}
	b := s.Of(1000*second, 1010*second, []Piece{
		by(at(Collective, 0, 1), tp), by(at(Collective, 2, 6), dp), by(at(Wait, 2, 4), rank17), by(at(Collective, 7, 8.5), tp),
	})
	assert.Equal(t, []Part{{tp, 2.5}, {dp, 2}}, b.Collectives)
	assert.Equal(t, []Part{{rank17, 2}}, b.Waits)
}

// oracle breaks down by cutting the window at every boundary: each cut belongs to one piece as a whole. It is for timed pieces without shares.
func oracle(start, end int64, pieces []Piece) (exclusive, sum, union ns, waits map[Who]int64) {
	cuts := []int64{start, end}
	for _, p := range pieces {
		for _, c := range []int64{p.Start, p.End} {
			if start < c && c < end {
				cuts = append(cuts, c)
			}
		}
		sum[p.Kind] += max(min(p.End, end)-max(p.Start, start), 0)
	}
	slices.Sort(cuts)
	waits = map[Who]int64{}
	order := []Kind{
		Checkpoint, Evaluation, Wait, Collective, RPCSerialize, RPCSend, RPCServer, RPCReceive, RPCDeserialize, RPCUnattributed, Compute, Get, Put, DataLoading,
	}
	for i := range len(cuts) - 1 {
		from, to := cuts[i], cuts[i+1]
		var best *Piece
		on := map[Kind]bool{}
		for j := range pieces {
			p := &pieces[j]
			if p.Start > from || p.End < to || from == to {
				continue
			}
			on[p.Kind] = true
			if best == nil || slices.Index(order, p.Kind) < slices.Index(order, best.Kind) {
				best = p
				continue
			}
			if p.Kind != best.Kind {
				continue
			}
			first, last := max(p.Start, start), min(p.End, end)
			bestFirst, bestLast := max(best.Start, start), min(best.End, end)
			if first < bestFirst || first == bestFirst && (last > bestLast || last == bestLast && p.Who.Compare(best.Who) < 0) {
				best = p
			}
		}
		for k := range on {
			union[k] += to - from
		}
		if best == nil {
			exclusive[Unattributed] += to - from
			continue
		}
		exclusive[best.Kind] += to - from
		if best.Kind == Wait {
			waits[best.Who] += to - from
		}
	}
	sum[Unattributed], union[Unattributed] = exclusive[Unattributed], exclusive[Unattributed]
	return exclusive, sum, union, waits
}

func agree(t *testing.T, s *Scratch, start, end int64, pieces []Piece) {
	t.Helper()
	b := s.Of(start, end, pieces)
	exclusive, sum, union, waits := oracle(start, end, pieces)
	for k := range Kinds {
		require.InDelta(t, seconds(exclusive[k]), b.Time[k], 0, "time of %s", Kind(k))
		require.InDelta(t, seconds(sum[k]), b.Sum[k], 0, "sum of %s", Kind(k))
		require.InDelta(t, seconds(union[k]), b.Union[k], 0, "union of %s", Kind(k))
	}
	require.Len(t, b.Waits, len(waits))
	for i, w := range b.Waits {
		require.InDelta(t, seconds(waits[w.Who]), w.Seconds, 0)
		require.True(t, i == 0 || w.Seconds <= b.Waits[i-1].Seconds)
	}
}

// random pieces use few instants, and many of them begin and end together.
func random(r *rand.Rand, n int, length int64) []Piece {
	pieces := make([]Piece, n)
	for i := range pieces {
		start := r.Int64N(length+20) - 10
		p := Piece{Kind: Kind(r.IntN(Kinds - 1)), Start: 50 + start, End: 50 + start + r.Int64N(length/2+2)}
		if p.Kind == Wait {
			p.Who = Who{Rank: r.Int64N(4), HasRank: true}
		}
		pieces[i] = p
	}
	return pieces
}

func TestAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 17))
	var s Scratch
	for range 4000 {
		length := 1 + r.Int64N(60)
		pieces := random(r, r.IntN(25), length)
		agree(t, &s, 50, 50+length, pieces)
		before := clone(s.Of(50, 50+length, pieces))
		r.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
		require.Equal(t, before, clone(s.Of(50, 50+length, pieces)))
	}
}

func clone(b Breakdown) Breakdown {
	b.Waits, b.Collectives = slices.Clone(b.Waits), slices.Clone(b.Collectives)
	return b
}

// FuzzOf: whatever comes, the times add up to the window, and nothing is negative, or more than the window. Order changes nothing.
func FuzzOf(f *testing.F) {
	f.Add(uint64(0), uint64(100), []byte{2, 0, 0, 10, 0, 50, 9, 0x40, 0, 0, 5, 0, 80, 0})
	f.Add(uint64(math.MaxUint64), uint64(1), []byte{4, 1, 255, 255, 255, 255, 0, 10, 0, 0, 0, 9, 9, 9, 12, 1, 0, 0, 0, 0, 200})
	f.Fuzz(func(t *testing.T, start, end uint64, data []byte) {
		var pieces []Piece
		for ; len(data) >= 7; data = data[7:] {
			p := Piece{Kind: Kind(data[0] % 16), Seconds: math.Float64frombits(uint64(data[6]) << 55), Who: Who{Rank: int64(data[6] % 4), HasRank: data[6]&4 != 0}}
			p.Start = int64(start) + int64(binary.BigEndian.Uint16(data[2:]))
			p.End = p.Start + int64(int16(binary.BigEndian.Uint16(data[4:])))
			if data[1]&1 != 0 {
				p.Split[data[1]>>1%8%uint8(RPCStages)] = float64(data[6]) / 100
			}
			pieces = append(pieces, p)
		}
		var s Scratch
		b := clone(s.Of(int64(start), int64(end), pieces))
		total, waits := 0.0, 0.0
		for k := range Kinds {
			total += b.Time[k]
			require.GreaterOrEqual(t, b.Time[k], 0.0)
			require.GreaterOrEqual(t, b.Sum[k], b.Time[k])
			require.LessOrEqual(t, b.Time[k], b.Union[k])
			require.LessOrEqual(t, b.Union[k], b.Duration)
		}
		require.InEpsilon(t, 1+b.Duration, 1+total, 1e-12)
		for _, w := range b.Waits {
			waits += w.Seconds
		}
		require.LessOrEqual(t, waits, b.Time[Wait]*(1+1e-12))
		slices.Reverse(pieces)
		require.Equal(t, b, clone(s.Of(int64(start), int64(end), pieces)))
	})
}

// job is a window of ten seconds with n pieces, mostly collectives.
func job(n int) []Piece {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := make([]Piece, n)
	for i := range pieces {
		from := 10 * r.Float64()
		p := at(Collective, from, from+20*r.Float64()/float64(n))
		switch r.IntN(4) {
		case 0:
			p.Kind, p.Who = Wait, Who{Rank: r.Int64N(64), HasRank: true, Host: "node-2", Comm: "DP Group 0", Operation: "AllReduce"}
		case 1:
			p.Kind = Compute
		default:
			p.Who = rank3
		}
		pieces[i] = p
	}
	return pieces
}

// Once grown, Of allocates nothing.
func TestAllocations(t *testing.T) {
	var s Scratch
	pieces := job(10_000)
	s.Of(1000*second, 1010*second, pieces)
	assert.Zero(t, testing.AllocsPerRun(10, func() { s.Of(1000*second, 1010*second, pieces) }))
}

func BenchmarkOf(b *testing.B) {
	for name, n := range map[string]int{"100": 100, "20k": 20_000, "100k": 100_000} {
		b.Run(name, func(b *testing.B) {
			var s Scratch
			pieces := job(n)
			b.ReportAllocs()
			for b.Loop() {
				s.Of(1000*second, 1010*second, pieces)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/piece")
		})
	}
}

// A window without pieces is unattributed as a whole, and has nothing of the window before.
func TestNoPieces(t *testing.T) {
	var s Scratch
	s.Of(0, 5e9, []Piece{{Kind: Wait, Start: 1e9, End: 2e9, Who: Who{HasRank: true}}, {Kind: Compute, Seconds: 1}})
	want := Breakdown{Duration: 3}
	want.Known[Unattributed], want.Time[Unattributed], want.Sum[Unattributed], want.Union[Unattributed] = true, 3, 3, 3
	assert.Equal(t, want, s.Of(1e9, 4e9, nil))
}
