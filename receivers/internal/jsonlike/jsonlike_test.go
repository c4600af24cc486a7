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

func TestUnescape(t *testing.T) {
	for in, want := range map[string]struct {
		json, python string
	}{
		`plain`: {"plain", "plain"}, `\n\t\r\b\f\"\\\/`: {"\n\t\r\b\f\"\\/", "\n\t\r\b\f\"\\/"}, `a\u00e9b`: {"aéb", "aéb"}, `\ud83d\ude00`: {"😀", "😀"},
		`\ud83dx`: {"\ufffdx", "\ufffdx"}, `\ud83d\u0041`: {"\ufffdA", "\ufffdA"}, `\ude00`: {"\ufffd", "\ufffd"}, `\u12`: {}, `\u12g4`: {}, `\`: {},
		`it\'s`: {"", "it's"}, `\xe9`: {"", "é"}, `\U0001f600`: {"", "😀"}, `\q`: {"", "q"}, `\x1`: {},
	} {
		for n, want := range []string{want.json, want.python} {
			got, ok := jsonlike.Unescape([]byte("> "), []byte(in), jsonlike.Notation(n))
			assert.Equal(t, want != "", ok, in)
			if ok {
				assert.Equal(t, "> "+want, string(got), in)
			}
		}
	}
}

func TestNested(t *testing.T) {
	for in, want := range map[string]int{
		`[]`: 2, `{"a": [1, {"b": "]"}]} ,`: 22, `(1, 'x)') y`: 9, `["\"]"]`: 7, `['"']`: 5, `[`: -1, `[1`: -1, `["`: -1, `[(]`: -1, `[[1], 2`: -1,
	} {
		assert.Equal(t, want, jsonlike.Nested([]byte(in), 0, jsonlike.Python), in)
	}
	for in, want := range map[string]int{`{"a": [1, {"b": "]"}]} ,`: 22, `[(]`: 3, `{"a": (it's)}`: 13, `["'", ')']`: 10, `[(`: -1, `["`: -1} {
		assert.Equal(t, want, jsonlike.Nested([]byte(in), 0, jsonlike.JSON), in)
	}
}

func TestPunctuation(t *testing.T) {
	for in, want := range map[string]int{":": 1, " : x": 3, ":\t\n1": 3, "": -1, " ": -1, ",": -1} {
		assert.Equal(t, want, jsonlike.Colon([]byte(in), 0), in)
	}
	for in, want := range map[string]struct {
		end  int
		more bool
	}{
		",x": {1, true}, " ,  x": {4, true}, ",": {1, true}, "}": {1, false}, " } ": {2, false}, "": {-1, false}, " ": {-1, false}, "]": {-1, false},
		"x": {-1, false},
	} {
		end, more := jsonlike.Next([]byte(in), 0, '}')
		assert.Equal(t, want.end, end, in)
		assert.Equal(t, want.more, more, in)
	}
}

var words = jsonlike.Alphanumeric("+-._")

func TestBare(t *testing.T) {
	for in, want := range map[string]int{
		"1e-5,": 4, "null}": 4, "np.float64(1)": 10, "0x262ca50]": 9, "-inf,": 4, "": -1, ",": -1, `"`: -1, "(nil)": -1, "é": -1,
	} {
		assert.Equal(t, want, jsonlike.Bare([]byte(in), 0, words), in)
	}
	delimiters := jsonlike.Except(",}")
	assert.Equal(t, 5, jsonlike.Bare([]byte("(a) é,"), 0, delimiters)-1)
	assert.Equal(t, -1, jsonlike.Bare([]byte(",a"), 0, delimiters))
}

// value reads any value with the package alone, as the scanners do.
func value(b []byte, i int) (v any, end int) {
	switch {
	case i >= len(b):
		return nil, -1
	case b[i] == '"':
		text, escaped, end := jsonlike.String(b, i)
		if end < 0 {
			return nil, -1
		}
		if escaped {
			var ok bool
			if text, ok = jsonlike.Unescape(nil, text, jsonlike.JSON); !ok {
				return nil, -1
			}
		}
		return string(text), end
	case b[i] == '{':
		return object(b, i)
	case b[i] == '[':
		return list(b, i)
	}
	end = jsonlike.Bare(b, i, words)
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
	i = jsonlike.Blanks(b, i+1)
	if i < len(b) && b[i] == '}' {
		return all, i + 1
	}
	for more := true; more; {
		if i >= len(b) || b[i] != '"' {
			return nil, -1
		}
		key, at := value(b, i)
		if at < 0 {
			return nil, -1
		}
		if at = jsonlike.Colon(b, at); at < 0 {
			return nil, -1
		}
		v, at := value(b, at)
		if at < 0 {
			return nil, -1
		}
		all[key.(string)] = v
		if i, more = jsonlike.Next(b, at, '}'); i < 0 {
			return nil, -1
		}
	}
	return all, i
}

func list(b []byte, i int) (v any, end int) {
	all := []any{}
	if i = jsonlike.Blanks(b, i+1); i < len(b) && b[i] == ']' {
		return all, i + 1
	}
	for more := true; more; {
		v, at := value(b, i)
		if at < 0 {
			return nil, -1
		}
		all = append(all, v)
		if i, more = jsonlike.Next(b, at, ']'); i < 0 {
			return nil, -1
		}
	}
	return all, i
}

// FuzzJSON: a value that encoding/json reads, the package reads alike, and a value that is cut has no end.
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
		require.Equal(t, end, jsonlike.Nested(b, from, jsonlike.JSON), "%q", b)
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
			_, _, i = jsonlike.String(text, i)
			if i = jsonlike.Colon(text, i); text[i] == '"' {
				_, _, i = jsonlike.String(text, i)
			} else {
				i = jsonlike.Bare(text, i, words)
			}
			i, more = jsonlike.Next(text, i, '}')
		}
	}
}
