package account

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// reader takes numbers from the fuzzer's bytes.
type reader struct{ data []byte }

func (r *reader) next(most int64) int64 {
	var b [8]byte
	n := copy(b[:], r.data)
	r.data = r.data[n:]
	return int64(binary.LittleEndian.Uint64(b[:]) % uint64(most))
}

func (r *reader) float() float64 {
	var b [8]byte
	n := copy(b[:], r.data)
	r.data = r.data[n:]
	return math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
}

func (r *reader) bit() bool { return r.next(2) == 1 }

// ledger makes arbitrary calls: small numbers, for repeated and overlapping steps, and hostile ones.
func (r *reader) ledger() *Ledger {
	var l Ledger
	var last []Ref
	for len(r.data) > 0 && len(l.steps) < 500 {
		ns := func() int64 {
			if r.next(16) == 0 {
				return int64(math.Float64bits(r.float()))
			}
			return second(0) + r.next(2000)*5e8 + r.next(3)
		}
		switch r.next(8) {
		case 0, 1, 2, 3:
			s := Step{
				Start: ns(), Number: r.next(60) - 2, Steps: int32(r.next(12) - 1), Attempt: int32(r.next(3)), Ranks: int32(r.next(9)), Writer: int32(r.next(3)),
				Checkpoint: float32(r.next(5)), EvaluationBehind: float32(r.next(100)), Source: int16(r.next(2)), Evaluated: r.bit(), Synthetic: r.next(5) == 0,
			}
			s.End = s.Start + r.next(20)*25e7
			if r.next(16) == 0 {
				s.End, s.Number, s.Steps = ns(), int64(math.Float64bits(r.float())), int32(math.Float64bits(r.float()))
			}
			last = append(last, l.Add(s))
		case 4:
			if len(last) > 0 {
				l.Part(last[r.next(int64(len(last)))], []State{Checkpoint, Evaluation, InStep}[r.next(3)], r.float(), r.bit())
			}
		case 5:
			start := ns()
			l.Pause([]State{Checkpoint, Evaluation}[r.next(2)], start, start+r.next(100)*1e9)
		case 6:
			l.Seen(ns())
		case 7:
			l.Begins(ns())
		}
	}
	return &l
}

// No calls make a negative state, a NaN, or a sum other than the wall clock.
func FuzzAccount(f *testing.F) {
	seed := make([]byte, 0, 4096)
	for i := range 4096 {
		seed = append(seed, byte(i*i*7+i>>3))
	}
	for n := 64; n <= len(seed); n *= 2 {
		f.Add(seed[:n])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := reader{data}
		l := r.ledger()
		check := func() {
			a, ok := l.Account()
			if !ok {
				return
			}
			sum := int64(0)
			for s, seconds := range a.Seconds {
				require.GreaterOrEqual(t, seconds, 0.0, State(s))
				sum += int64(math.Round(seconds * 1e9))
			}
			if a.Clock {
				wall := a.End - a.Start
				for _, g := range a.Apart {
					wall -= g.End - g.Start
				}
				require.InDelta(t, float64(wall), float64(sum), 1e-12*float64(sum), "%v", a.Seconds)
			}
			require.InDelta(t, float64(sum)/1e9, a.Wall, 1e-9*a.Wall)
			require.GreaterOrEqual(t, a.Productive, 0.0)
			for _, of := range [...]float64{a.Goodput(), a.Google(), a.CRE(), a.ETTR()} {
				require.False(t, of < 0 || of > 1, of)
			}
			require.Len(t, a.Attempts, len(a.Course))
		}
		check()
		l.Merge()
		check()
	})
}
