package pickle

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var (
	mutations = flag.Int("pickle.mutations", 200_000, "programs that TestMutations decodes")
	mutateBy  = flag.Uint64("pickle.seed", 1, "the seed of the first")
)

// Opcodes with mostly valid arguments, and a few other pieces of a pickle.
var pieces = []string{
	"(", ")", "]", "}", "N", "0", "1", "2", "\x85", "\x86", "\x87", "\x88", "\x89", "\x94", "a", "e", "s", "u", "t", "l", "d", ".",
	"K\x00", "K\xff", "M\x01\x02", "J\xfe\xff\xff\xff", "\x8a\x00", "\x8a\x01\x80", "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\x00", "\x8b\x01\x00\x00\x00\x05",
	"I00\n", "I-8\n", "L9L\n", "F1.5\n", "G\x3f\xf8\x00\x00\x00\x00\x00\x00", "X\x01\x00\x00\x00a", "U\x01a", "\x8c\x01a", "C\x01a", "B\x01\x00\x00\x00b",
	"q\x00", "q\x05", "r\x01\x00\x00\x00", "r\xff\xff\xff\xff", "h\x00", "h\x05", "j\x01\x00\x00\x00", "\x95\x02\x00\x00\x00\x00\x00\x00\x00", "\x80\x04",
	"cos\nsystem\n", "R", "b", "\x81", "o", "P1\n", "\x82\x01", "\x00", "\xff", "X\xff\xff\xff\x7f", "\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
}

var values = []string{"]", "}", "N", ")", "K\x00", "K\x01", "M\x01\x02", "X\x01\x00\x00\x00a", "\x88", "]q\x00", "}q\x05", "(NK\x01t", "}(NK\x01u", "](NNe", "h\x00"}

// walk visits a value and its content, as long as there is budget.
func walk(d *Decoder, v Value, depth int, budget *int) {
	if *budget--; *budget < 0 || depth == 0 {
		return
	}
	switch d.Kind(v) {
	case Dict:
		for i := 0; i < d.Len(v) && *budget > 0; i++ {
			key, value := d.Pair(v, i)
			walk(d, key, depth-1, budget)
			walk(d, value, depth-1, budget)
		}
	case List, Tuple:
		for i := 0; i < d.Len(v) && *budget > 0; i++ {
			walk(d, d.Item(v, i), depth-1, budget)
		}
	default:
		_, _ = d.Bool(v)
		_, _ = d.Int(v)
		_, _ = d.Float(v)
		_ = d.Text(v)
	}
}

// Any program of opcodes is decoded or refused, within the bounds. A fuzzer with coverage runs some 20,000 programs a second, this test a hundred times as
// many: go test ./internal/pickle -run Mutations -timeout 0 -args -pickle.mutations 1000000000.
func TestMutations(t *testing.T) {
	rng := rand.New(rand.NewPCG(*mutateBy, 7))
	var d Decoder
	var in []byte
	decoded := 0
	for n := range *mutations {
		if n%4 == 0 || len(in) < 4 { // otherwise the last input is mutated once more
			in = append(in[:0], "\x80\x02("...)
			for range 1 + rng.IntN(12) {
				if rng.IntN(3) > 0 { // something for the opcodes to work on
					in = append(in, values[rng.IntN(len(values))]...)
				}
				in = append(in, pieces[rng.IntN(len(pieces))]...)
			}
			in = append(in, "t."...)
		} else {
			switch at := rng.IntN(len(in)); rng.IntN(4) {
			case 0:
				in[at] ^= 1 << rng.IntN(8)
			case 1:
				in[at] = byte(rng.Uint32())
			case 2:
				in = in[:at]
			case 3:
				in = append(in[:at:at], append([]byte(pieces[rng.IntN(len(pieces))]), in[at:]...)...)
			}
		}
		v, err := d.Decode(in)
		if most := (2*len(in) + spare) / wordSize; len(d.buffer) > most || len(d.marks) > maxDepth {
			t.Fatalf("%q: %d words, %d marks", in, len(d.buffer), len(d.marks))
		}
		if err == nil {
			decoded++
			budget := 100
			walk(&d, v, 10, &budget)
		}
	}
	if decoded < *mutations/100 {
		t.Fatalf("%d of %d programs are pickles: too few to tell anything", decoded, *mutations)
	}
}
