package pickle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// show writes a value as Python would, to a depth, and as long as there is budget.
func show(d *Decoder, v Value, depth int, budget *int) string {
	if *budget--; *budget < 0 || depth == 0 {
		return "…"
	}
	var parts []string
	switch d.Kind(v) {
	case None:
		return "None"
	case Bool:
		is, _ := d.Bool(v)
		return strconv.FormatBool(is)
	case Int:
		n, ok := d.Int(v)
		if !ok {
			return "beyond"
		}
		return strconv.FormatInt(n, 10)
	case Float:
		f, ok := d.Float(v)
		if !ok {
			return "no float"
		}
		return fmt.Sprintf("%g", f)
	case Text:
		return strconv.Quote(string(d.Text(v)))
	case Bytes:
		return "b" + strconv.Quote(string(d.Text(v)))
	case Dict:
		for i := 0; i < d.Len(v) && *budget > 0; i++ {
			key, value := d.Pair(v, i)
			parts = append(parts, show(d, key, depth-1, budget)+": "+show(d, value, depth-1, budget))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case List, Tuple:
		for i := 0; i < d.Len(v) && *budget > 0; i++ {
			parts = append(parts, show(d, d.Item(v, i), depth-1, budget))
		}
	}
	if d.Kind(v) == Tuple {
		return "(" + strings.Join(parts, ", ") + ")"
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func decoded(t *testing.T, in string) string {
	t.Helper()
	var d Decoder
	v, err := d.Decode([]byte(in))
	require.NoError(t, err, "%q", in)
	budget := 1000
	return show(&d, v, 6, &budget)
}

// The expected texts are Python 3.11's.
func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		"\x80\x02N.":                                                  "None",
		"\x80\x02\x88\x89\x86.":                                       "(true, false)",
		"\x80\x02(I01\nI00\nI7\nI-8\nt.":                              "(true, false, 7, -8)",
		"\x80\x02(K\xffM\x01\x02J\xfe\xff\xff\xfft.":                  "(255, 513, -2)",
		"\x80\x02(\x8a\x00\x8a\x01\x80\x8a\x02\xff\x00t.":             "(0, -128, 255)",
		"\x80\x02\x8a\x08\x15\xcd[\x07\x00\x00\x00\x80.":              "-9223372036731319019",
		"\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.":       "beyond",
		"\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\x00.":       "9223372036854775807",
		"\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\xff.":       "-9223372036854775808",
		"\x80\x02\x8b\x01\x00\x00\x00\x05.":                           "5",
		"\x80\x02L123L\n.":                                            "123",
		"\x80\x02L99999999999999999999L\n.":                           "beyond",
		"\x80\x02(F1.5\nG\x3f\xf8\x00\x00\x00\x00\x00\x00Fx\nt.":      "(1.5, 1.5, no float)",
		"\x80\x02(X\x02\x00\x00\x00abU\x01cT\x01\x00\x00\x00dt.":      `("ab", "c", "d")`,
		"\x80\x04\x8c\x01a\x8d\x01\x00\x00\x00\x00\x00\x00\x00b\x86.": `("a", "b")`,
		"\x80\x03(C\x01aB\x01\x00\x00\x00bt.":                         `(b"a", b"b")`,
		"\x80\x04\x8e\x01\x00\x00\x00\x00\x00\x00\x00a\x85.":          `(b"a")`,
		"\x80\x02).":                                             "()",
		"\x80\x02(K\x01K\x02l.":                                  "[1, 2]",
		"\x80\x02(K\x01K\x02d.":                                  "{1: 2}",
		"\x80\x02K\x01K\x02K\x03\x87.":                           "(1, 2, 3)",
		"\x80\x02]q\x00(K\x01K\x02e.":                            "[1, 2]",
		"\x80\x02](K\x01e(K\x02K\x03eK\x04a.":                    "[1, 2, 3, 4]",
		"\x80\x02]K\x01a.":                                       "[1]",
		"\x80\x02](]K\x01a]eK\x02a.":                             "[[1], [], 2]", // the outer list grows behind the inner ones
		"\x80\x02}(K\x01K\x02K\x03K\x04u.":                       "{1: 2, 3: 4}",
		"\x80\x02}K\x01Ns.":                                      "{1: None}",
		"\x80\x02](X\x01\x00\x00\x00aq\x05h\x05h\x05e.":          `["a", "a", "a"]`,
		"\x80\x04](\x8c\x01a\x94N\x94h\x00h\x01e.":               `["a", None, "a", None]`,
		"\x80\x02]r\x01\x00\x00\x00j\x01\x00\x00\x00a.":          "[[[[[[…]]]]]]", // a list within itself
		"\x80\x02NK\x010.":                                       "None",
		"\x80\x02N(K\x01K\x021.":                                 "None",
		"\x80\x02N(K\x0100.":                                     "None", // the second POP drops the mark
		"\x80\x02K\x012\x86.":                                    "(1, 1)",
		"\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00N.and more": "None",
	} {
		assert.Equal(t, want, decoded(t, in), "%q", in)
	}
}

func TestErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "the pickle ends too early",
		"\x80\x02":                    "the pickle ends too early",
		"\x80\x02N":                   "the pickle ends too early",
		"\x80\x02K":                   "the pickle ends too early (byte 2)",
		"\x80\x02I12.":                "the pickle ends too early (byte 2)",
		"\x80\x02X\xff\xff\xff\x7fa.": "the pickle ends too early (byte 2)",
		"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffa.": "the pickle ends too early (byte 2)",
		"\x80\x01N.":                  "the pickle is malformed: no protocol of 2 to 5 at its beginning",
		"\x80\x06N.":                  "the pickle is malformed: no protocol of 2 to 5 at its beginning",
		"(dp0\n.":                     "the pickle is malformed: no protocol of 2 to 5 at its beginning",
		"\x80\x02.":                   "the pickle is malformed (byte 2)",
		"\x80\x02NN.":                 "the pickle is malformed (byte 4)",
		"\x80\x02(N.":                 "the pickle is malformed (byte 4)",
		"\x80\x020.":                  "the pickle is malformed (byte 2)",
		"\x80\x02e.":                  "the pickle is malformed (byte 2)",
		"\x80\x02(e.":                 "the pickle is malformed (byte 3)",
		"\x80\x02N(Ne.":               "the pickle is malformed (byte 5)",
		"\x80\x02](NNu.":              "the pickle is malformed (byte 6)",
		"\x80\x02}(Nu.":               "the pickle is malformed (byte 5)",
		"\x80\x02}Na.":                "the pickle is malformed (byte 4)",
		"\x80\x02)Na.":                "the pickle is malformed (byte 4)",
		"\x80\x02(Nd.":                "the pickle is malformed (byte 4)",
		"\x80\x02N\x86.":              "the pickle is malformed (byte 3)",
		"\x80\x02h\x00.":              "the pickle is malformed (byte 2)",
		"\x80\x02Nq\x05h\x03.":        "the pickle is malformed (byte 5)",
		"\x80\x02Nr\xff\xff\xff\x7f.": "the pickle is malformed (byte 3)",
		"\x80\x02q\x00.":              "the pickle is malformed (byte 2)",
		"\x80\x02\xff.":               "the pickle is malformed: no opcode 0xff (byte 2)",
		"\x80\x02Va\n.":               "the pickle is malformed: UNICODE is not read (byte 2)",
		"\x80\x04\x8f.":               "the pickle is malformed: EMPTY_SET is not read (byte 2)",
		"\x80\x02cos\nsystem\n(X\x02\x00\x00\x00lstR.": "the pickle holds code: GLOBAL at byte 2, and is not followed",
		"\x80\x04\x8c\x02os\x8c\x06system\x93.":        "the pickle holds code: STACK_GLOBAL at byte 14, and is not followed",
		"\x80\x02N)R.":                                 "the pickle holds code: REDUCE at byte 4, and is not followed",
		"\x80\x02N}b.":                                 "the pickle holds code: BUILD at byte 4, and is not followed",
		"\x80\x02(ios\nsystem\n.":                      "the pickle holds code: INST at byte 3, and is not followed",
		"\x80\x02(No.":                                 "the pickle holds code: OBJ at byte 4, and is not followed",
		"\x80\x02N)\x81.":                              "the pickle holds code: NEWOBJ at byte 4, and is not followed",
		"\x80\x04N)}\x92.":                             "the pickle holds code: NEWOBJ_EX at byte 5, and is not followed",
		"\x80\x02\x82\x01.":                            "the pickle holds code: EXT1 at byte 2, and is not followed",
		"\x80\x02\x83\x01\x00.":                        "the pickle holds code: EXT2 at byte 2, and is not followed",
		"\x80\x02\x84\x01\x00\x00\x00.":                "the pickle holds code: EXT4 at byte 2, and is not followed",
		"\x80\x02P1\n.":                                "the pickle holds code: PERSID at byte 2, and is not followed",
		"\x80\x02NQ.":                                  "the pickle holds code: BINPERSID at byte 3, and is not followed",
		"\x80\x05\x97.":                                "the pickle holds code: NEXT_BUFFER at byte 2, and is not followed",
	} {
		var d Decoder
		_, err := d.Decode([]byte(in))
		assert.EqualError(t, err, want, "%q", in)
	}
}

// Every opcode is either followed or has a name.
func TestOpcodes(t *testing.T) {
	unnamed := 0
	for op := range 256 {
		var d Decoder
		_, err := d.Decode([]byte{opProto, 5, byte(op), '.'})
		if err != nil && strings.Contains(err.Error(), "no opcode") {
			unnamed++
		}
	}
	assert.Equal(t, 256-68, unnamed, "Lib/pickle.py of CPython 3.11 has 68 opcodes")
}

// A hostile pickle takes no more memory than the bound, and no time beyond it.
func TestBounds(t *testing.T) {
	const n = 4 << 20
	for name, in := range map[string]string{
		"empty lists":    "(" + strings.Repeat("]", n) + "l.",
		"nothing":        "(" + strings.Repeat("N", n) + "l.",
		"appended":       "]" + strings.Repeat("Na", n/2) + ".",
		"two lists":      "]q\x00]q\x01" + strings.Repeat("h\x00Na0h\x01Na0", n/10) + ".",
		"nested":         "N" + strings.Repeat("\x85", n) + ".",
		"marks":          strings.Repeat("(", n),
		"memo":           "N" + strings.Repeat("\x94", n) + ".",
		"gaps":           "N" + strings.Repeat("r\x00\x04\x00\x00r\x00\x08\x00\x00", n/10) + ".",
		"repeated":       "N" + strings.Repeat("2", n) + ".",
		"many of itself": "]q\x00(" + strings.Repeat("h\x00", n/2) + "e.",
	} {
		t.Run(name, func(t *testing.T) {
			var d Decoder
			data := []byte("\x80\x02" + in)
			_, _ = d.Decode(data)
			assert.LessOrEqual(t, wordSize*cap(d.buffer)+8*cap(d.marks), 2*len(data)+spare+8*2*maxDepth)
		})
	}
	var d Decoder
	_, err := d.Decode([]byte("\x80\x02" + strings.Repeat("(", maxDepth+1)))
	require.ErrorIs(t, err, ErrDense)
	_, err = d.Decode([]byte("\x80\x02(" + strings.Repeat("]", n) + "l."))
	require.ErrorIs(t, err, ErrDense)
}

// A reused Decoder forgets the pickle before.
func TestAgain(t *testing.T) {
	var d Decoder
	_, err := d.Decode([]byte("\x80\x02X\x01\x00\x00\x00aq\x00."))
	require.NoError(t, err)
	_, err = d.Decode([]byte("\x80\x02h\x00."))
	require.ErrorIs(t, err, ErrMalformed)
	v, err := d.Decode([]byte("\x80\x02](K\x01e."))
	require.NoError(t, err)
	assert.Equal(t, 1, d.Len(v))
}

func TestWrongKinds(t *testing.T) {
	var d Decoder
	v, err := d.Decode([]byte("\x80\x02](N}X\x01\x00\x00\x00aK\x05e."))
	require.NoError(t, err)
	for i := range d.Len(v) {
		item := d.Item(v, i)
		_, isBool := d.Bool(item)
		_, isInt := d.Int(item)
		_, isFloat := d.Float(item)
		assert.Equal(t, []bool{false, i == 3, i == 3, i == 2}, []bool{isBool, isInt, isFloat, d.Text(item) != nil})
		assert.Zero(t, d.Len(item))
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"\x80\x02}q\x00(X\x07\x00\x00\x00versionq\x01X\x04\x00\x00\x002.10q\x02X\x07\x00\x00\x00entriesq\x03](}(h\x01K\x01eu.",
		"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94K\x01\x8c\x01b\x94]\x94(K\x01K\x02\x86\x94eu.",
		"\x80\x02]r\x01\x00\x00\x00j\x01\x00\x00\x00a.", "\x80\x02(I01\nL5L\nF1.5\nG\x3f\xf8\x00\x00\x00\x00\x00\x00t.", "\x80\x02cos\nsystem\n.",
		"\x80\x05(K\x01K\x02d2\x86\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00\x85.", "\x80\x02N(K\x01K\x0210](]K\x01a]eK\x02a\x87.",
	} {
		f.Add([]byte(s))
	}
	dumps, _ := filepath.Glob("../flightrecorder/testdata/gloo/*/nccl_trace_rank_0")
	for _, dump := range dumps {
		if b, err := os.ReadFile(dump); err == nil {
			f.Add(b)
		}
	}
	var d Decoder
	f.Fuzz(func(t *testing.T, in []byte) {
		before := bytes.Clone(in)
		v, err := d.Decode(in)
		if most := wordSize * ((2*len(in) + spare) / wordSize); len(d.buffer)*wordSize > most {
			t.Fatalf("%d bytes for %d", len(d.buffer)*wordSize, len(in))
		}
		if err != nil {
			return
		}
		budget := 10 * len(in)
		shown := show(&d, v, 50, &budget)
		if !bytes.Equal(before, in) {
			t.Fatal("the pickle was changed")
		}
		v, err = d.Decode(in)
		budget = 10 * len(in)
		if again := show(&d, v, 50, &budget); err != nil || again != shown {
			t.Fatalf("%v: %s, then %s", err, shown, again)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	entry := []byte("}(")
	for i := range 20 {
		entry = append(entry, 'h', byte(i), 'J')
		entry = binary.LittleEndian.AppendUint32(entry, uint32(i)<<20)
	}
	entry = append(entry, 'u')
	in := []byte("\x80\x02](")
	for i := range 20 {
		in = append(in, 'U', 3, 'k', 'e', 'a'+byte(i), 'q', byte(i))
	}
	in = append(append(in, bytes.Repeat(entry, 2000)...), 'e', '.')
	var d Decoder
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Decode(in); err != nil {
			b.Fatal(err)
		}
	}
}
