package spans

import (
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// Hidden is what Unicode's categories say, for every rune.
func TestHidden(t *testing.T) {
	for r := range rune(unicode.MaxRune + 1) {
		if want := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp); Hidden(r) != want {
			assert.Fail(t, "hidden", "%U: want %t", r, want)
		}
	}
}

func TestText(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"empty":          {"", ""},
		"plain":          {"generate_sequences", "generate_sequences"},
		"unicode":        {"Größe 批", "Größe 批"},
		"invalid":        {"a\xffb\xc3", "a\uFFFDb\uFFFD"},
		"nul":            {"a\x00b", "a\uFFFDb"},
		"many nuls":      {strings.Repeat("\x00", MaxAttributeBytes), strings.Repeat("\uFFFD", MaxAttributeBytes/3)},
		"controls":       {"a\tb\nc\x1b[0m\u202E", "a\tb\nc\x1b[0m\u202E"},
		"cut":            {strings.Repeat("x", MaxAttributeBytes+1), strings.Repeat("x", MaxAttributeBytes)},
		"cut in a rune":  {strings.Repeat("x", MaxAttributeBytes-1) + "批", strings.Repeat("x", MaxAttributeBytes-1)},
		"fits exactly":   {strings.Repeat("x", MaxAttributeBytes-3) + "批", strings.Repeat("x", MaxAttributeBytes-3) + "批"},
		"invalid at cut": {strings.Repeat("\xff ", MaxAttributeBytes), strings.Repeat("\uFFFD ", MaxAttributeBytes/4)},
	} {
		t.Run(name, func(t *testing.T) {
			got := Text([]byte(tt.in))
			assert.Equal(t, tt.want, got)
			assert.True(t, utf8.ValidString(got))
			var in Interner
			assert.Equal(t, Name(tt.in), in.Text([]byte(tt.in)))
			assert.Equal(t, Name(tt.in), in.Text([]byte(tt.in)))
		})
	}
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"generate_sequences":      "generate_sequences",
		"Größe 批 🚀":               "Größe 批 🚀",
		"a\x00b\tc\nd\x7f\x1b[0m": "a\uFFFDb\uFFFDc\uFFFDd\uFFFD\uFFFD[0m",
		"c1 \u0085\u009b":         "c1 \uFFFD\uFFFD",
		"\uFEFFstep":              "\uFFFDstep",
		"zero\u200bwidth\u200d":   "zero\uFFFDwidth\uFFFD",
		"a\u202eb\u2066c\u061cd":  "a\uFFFDb\uFFFDc\uFFFDd",
		"l\u200el\u200fl\u2069":   "l\uFFFDl\uFFFDl\uFFFD",
		"line\u2028par\u2029":     "line\uFFFDpar\uFFFD",
		"bad \xff":                "bad \uFFFD",
		strings.Repeat("\x01", MaxAttributeBytes): strings.Repeat("\uFFFD", MaxAttributeBytes/3),
	} {
		assert.Equal(t, want, Name(in))
		assert.Equal(t, want, Name([]byte(in)))
		assert.False(t, strings.ContainsFunc(Name(in), Hidden))
	}
}

// The part cut off a long text does not stay in memory.
func TestCutTextKeepsNothingElse(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	raw := []byte(long)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cut := Text(raw)
	runtime.ReadMemStats(&after)
	assert.Len(t, cut, MaxAttributeBytes)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10))
	cut = Text(long)
	assert.NotSame(t, unsafe.StringData(long), unsafe.StringData(cut))
}

// A text that is cut is not kept either.
func TestInternerKeepsNoLongText(t *testing.T) {
	var in Interner
	short := in.Text([]byte("short"))
	for i := range 10 {
		assert.Len(t, in.Text([]byte(strings.Repeat(string(rune('a'+i)), MaxAttributeBytes+1))), MaxAttributeBytes)
	}
	in.Text([]byte(strings.Repeat("y", MaxAttributeBytes)))
	assert.Len(t, in.known, 2)
	assert.Same(t, unsafe.StringData(short), unsafe.StringData(in.Text([]byte("short"))))
}

func TestInternerIsBounded(t *testing.T) {
	var in Interner
	for i := range 3 * maxInterned {
		in.Text([]byte(strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/100)))
	}
	assert.LessOrEqual(t, len(in.known), maxInterned)
}

func TestInternerAllocatesOnce(t *testing.T) {
	var in Interner
	name := []byte("generate_sequences")
	in.Text(name)
	assert.Zero(t, testing.AllocsPerRun(100, func() { in.Text(name) }))
}
