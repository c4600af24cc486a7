package jsonlike_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/jsonlike"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestString(t *testing.T) {
	for in, want := range map[string]struct {
		text    string
		escaped bool
		end     int
	}{
		`"a"`: {"a", false, 3}, `"",`: {"", false, 2}, `'it"s',`: {`it"s`, false, 6}, `"a\"b"`: {`a\"b`, true, 6}, `"\\"x`: {`\\`, true, 4},
		`'it\'s'`: {`it\'s`, true, 7},
		`"a`:      {"", false, -1}, `"`: {"", false, -1}, `"a\"`: {"", false, -1}, `"a\`: {"", false, -1}, `'a"`: {"", false, -1},
	} {
		text, escaped, end := jsonlike.String([]byte(in), 0)
		assert.Equal(t, want.text, string(text), in)
		assert.Equal(t, want.escaped, escaped, in)
		assert.Equal(t, want.end, end, in)
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]struct {
		json, python string
	}{
		`plain`: {"plain", "plain"}, `\n\t\r\b\f\"\\\/`: {"\n\t\r\b\f\"\\/", "\n\t\r\b\f\"\\/"}, `a\u00e9b`: {"aéb", "aéb"}, `\ud83d\ude00`: {"😀", "😀"},
		`\ud83dx`: {"\ufffdx", "\ufffdx"}, `\ud83d\u0041`: {"\ufffdA", "\ufffdA"}, `\ude00`: {"\ufffd", "\ufffd"}, `\u12`: {}, `\u12g4`: {}, `\`: {},
		`it\'s`: {"", "it's"}, `\xe9`: {"", "é"}, `\U0001f600`: {"", "😀"}, `\q`: {"", "q"}, `\x1`: {},
	} {
		for n, want := range []string{want.json, want.python} {
			x := jsonlike.Lexer{Notation: jsonlike.Notation(n)}
			own := jsonlike.Texts("> ")
			got, end := x.Text([]byte(`"`+in+`",`), 0, &own)
			if want == "" {
				assert.Equal(t, -1, end, in)
				continue
			}
			assert.Equal(t, len(in)+2, end, in)
			assert.Equal(t, want, string(got), in)
			if in != "plain" {
				assert.Equal(t, "> "+want, string(own), in)
			}
		}
	}
	own := make(jsonlike.Texts, 3, 65<<10)
	own.Reset()
	assert.Zero(t, cap(own), "much room is not kept")
	own = append(own, 'a')
	own.Reset()
	assert.NotZero(t, cap(own))
	assert.Empty(t, own)
}

func TestNested(t *testing.T) {
	for in, want := range map[string]int{
		`[]`: 2, `{"a": [1, {"b": "]"}]} ,`: 22, `(1, 'x)') y`: 9, `["\"]"]`: 7, `['"']`: 5, `[`: -1, `[1`: -1, `["`: -1, `[(]`: -1, `[[1], 2`: -1,
	} {
		assert.Equal(t, want, python.Nested([]byte(in), 0), in)
	}
	for in, want := range map[string]int{`{"a": [1, {"b": "]"}]} ,`: 22, `[(]`: 3, `{"a": (it's)}`: 13, `["'", ')']`: 10, `[(`: -1, `["`: -1} {
		assert.Equal(t, want, lexer.Nested([]byte(in), 0), in)
	}
}

// behind passes over blanks, after a successful read.
func behind(b []byte, i int) int {
	if i < 0 {
		return -1
	}
	return jsonlike.Blanks(b, i)
}

// next reads a comma, or the closing bracket.
func next(b []byte, i int, closing byte) (end int, more bool) {
	i, more = jsonlike.Comma(b, i)
	if more {
		return jsonlike.Blanks(b, i), true
	}
	return jsonlike.Close(b, i, closing), false
}

func TestPunctuation(t *testing.T) {
	for in, want := range map[string]int{":": 1, ": x": 2, ":  x": 3, ":x": 1, " : x": 3, ":\t\n1": 3, "": -1, " ": -1, ",": -1} {
		assert.Equal(t, want, behind([]byte(in), jsonlike.Colon([]byte(in), 0)), in)
	}
	for in, want := range map[string]struct {
		end  int
		more bool
	}{
		",x": {1, true}, ", x": {2, true}, ",  x": {3, true}, ",\tx": {2, true}, " ,  x": {4, true}, ",": {1, true},
		"}": {1, false}, " } ": {2, false}, "": {-1, false}, " ": {-1, false}, "]": {-1, false},
		"x": {-1, false},
	} {
		end, more := next([]byte(in), 0, '}')
		assert.Equal(t, want.end, end, in)
		assert.Equal(t, want.more, more, in)
	}
}

var (
	words  = jsonlike.Alphanumeric("+-._")
	lexer  = jsonlike.Lexer{Word: words}
	python = jsonlike.Lexer{Notation: jsonlike.Python, Word: words}
)

func TestBare(t *testing.T) {
	for in, want := range map[string]int{
		"1e-5,": 4, "null}": 4, "np.float64(1)": 10, "0x262ca50]": 9, "-inf,": 4, "": -1, ",": -1, `"`: -1, "(nil)": -1, "é": -1,
	} {
		assert.Equal(t, want, lexer.Bare([]byte(in), 0), in)
	}
	until := jsonlike.Lexer{Word: jsonlike.Until(",}", "")}
	assert.Equal(t, 5, until.Bare([]byte("(a) é,"), 0)-1)
	assert.Equal(t, -1, until.Bare([]byte(",a"), 0))
	begun := jsonlike.Lexer{Word: jsonlike.Until(",}", "0123456789-n")}
	for in, want := range map[string]int{"1é:,": 4, "-}": 1, "null": 4, "x1": -1, ":": -1, ",": -1, "": -1} {
		assert.Equal(t, want, begun.Bare([]byte(in), 0), in)
	}
}

func TestValue(t *testing.T) {
	for in, want := range map[string]struct {
		text string
		end  int
	}{
		`"a\"b",`: {`a\"b`, 6}, `1e-5}`: {"1e-5", 4}, `{"a": [1]} ,`: {`{"a": [1]}`, 10}, `[]`: {"[]", 2}, "": {"", -1}, `"a`: {"", -1}, `[1`: {"", -1},
		`,`: {"", -1}, `'a'`: {"", -1},
	} {
		text, end := lexer.Value([]byte(in), 0)
		assert.Equal(t, want.text, string(text), in)
		assert.Equal(t, want.end, end, in)
	}
}

// value reads any value with the package alone, as the scanners do.
func value(b []byte, i int) (v any, end int) {
	switch {
	case i >= len(b):
		return nil, -1
	case b[i] == '"':
		text, end := lexer.Text(b, i, new(jsonlike.Texts))
		if end < 0 {
			return nil, -1
		}
		return string(text), end
	case b[i] == '{':
		return object(b, i)
	case b[i] == '[':
		return list(b, i)
	}
	end = lexer.Bare(b, i)
	if end < 0 {
		return nil, -1
	}
	switch word := string(b[i:end]); word {
	case "null":
		return nil, end
	case "true", "false":
		return word == "true", end
	default:
		return json.Number(word), end
	}
}

func object(b []byte, i int) (v any, end int) {
	all := map[string]any{}
	i, more := jsonlike.Begin(b, i, '}')
	for more {
		i = jsonlike.Blanks(b, i)
		if i >= len(b) || b[i] != '"' {
			return nil, -1
		}
		key, at := value(b, i)
		if at < 0 {
			return nil, -1
		}
		at = jsonlike.Colon(b, at)
		if at < 0 {
			return nil, -1
		}
		v, at := value(b, jsonlike.Blanks(b, at))
		if at < 0 {
			return nil, -1
		}
		all[key.(string)] = v
		i, more = jsonlike.Comma(b, at)
	}
	return all, jsonlike.Close(b, i, '}')
}

func list(b []byte, i int) (v any, end int) {
	all := []any{}
	i, more := jsonlike.Begin(b, i, ']')
	for more {
		v, at := value(b, jsonlike.Blanks(b, i))
		if at < 0 {
			return nil, -1
		}
		all = append(all, v)
		i, more = jsonlike.Comma(b, at)
	}
	return all, jsonlike.Close(b, i, ']')
}

// FuzzJSON: a value accepted by encoding/json is read alike, and a truncated value has no end.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"a": 1, "b": [1.5e-3, {"c": null}], "d": "x\u00e9\n\ud83d\ude00"}`, `[]`, `{}`, ` [ true , false ]`, `{"a":"\ud83d"}`, `"\\"`, `{"a" :{"b" :[ ]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		from := jsonlike.Blanks(b, 0)
		got, end := value(b, from)
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		var want any
		if !utf8.Valid(b) || !json.Valid(b) || d.Decode(&want) != nil {
			return
		}
		require.Equal(t, len(b), jsonlike.Blanks(b, max(end, 0)), "%q", b)
		require.Equal(t, want, got, "%q", b)
		if b[from] != '{' && b[from] != '[' {
			return
		}
		require.Equal(t, end, lexer.Nested(b, from), "%q", b)
		_, cut := value(b[:end-1], from)
		require.Equal(t, -1, cut, "%q", b)
	})
}

func BenchmarkMembers(b *testing.B) {
	text := []byte(`{"step": 1000, "loss": 2.0010, "throughput": 512.0, "step_time_s": 0.124, "lr": 1.2e-05, "note": "warm up"}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		i := 1
		for more := true; more; {
			_, _, i = jsonlike.String(text, jsonlike.Blanks(text, i))
			_, i = lexer.Value(text, jsonlike.Blanks(text, jsonlike.Colon(text, i)))
			i, more = jsonlike.Comma(text, i)
		}
	}
}
