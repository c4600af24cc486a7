package rows

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/tfevents"
)

const internal = "../../../../internal/"

// readAll reads the lines of a file from an offset on.
func readAll(k Kind, b []byte, from int) (texts []string, begins []int, bad int) {
	texts, begins, bad, _ = readTo(k, b, from)
	return texts, begins, bad
}

// readTo is readAll with the end position.
func readTo(k Kind, b []byte, from int) (texts []string, begins []int, bad, at int) {
	var buf []byte
	for at = from; at < len(b); {
		l := k.Next(buf, b[at:], int64(at), true)
		if l.N == 0 {
			break
		}
		if l.Bad {
			bad++
		}
		if len(l.Text) > 0 {
			texts, begins = append(texts, string(l.Text)), append(begins, at)
		}
		at += l.N
	}
	return texts, begins, bad, at
}

// members are a row's names and values.
func members(t *testing.T, text string) map[string]float64 {
	t.Helper()
	var raw map[string]json.RawMessage
	quoted := text
	for _, w := range []string{"-Infinity", "NaN", "Infinity"} {
		quoted = strings.ReplaceAll(quoted, ": "+w, `: "`+w+`"`)
	}
	require.NoError(t, json.Unmarshal([]byte(quoted), &raw), text)
	out := make(map[string]float64)
	for k, v := range raw {
		f, err := strconv.ParseFloat(strings.Trim(string(v), `"`), 64)
		require.NoError(t, err)
		out[k] = f
	}
	return out
}

// The scalars of all writers are in the rows, each once, as read by TensorBoard's loader.
func TestEvents(t *testing.T) {
	paths, _ := filepath.Glob(internal + "tfevents/testdata/*.tfevents")
	require.Greater(t, len(paths), 5)
	for _, path := range paths {
		if filepath.Base(path) == "tensorboard.tfevents" {
			continue // the type of its later values is known only by the metadata of the first
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			kind, _ := KindOf(b[:min(len(b), HeadBytes)])
			require.Equal(t, Events, kind)
			var truth struct {
				Scalars [][4]any `json:"scalars"`
			}
			text, err := os.ReadFile(strings.TrimSuffix(path, ".tfevents") + ".json")
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &truth))
			texts, begins, bad := readAll(Events, b, 0)
			assert.Zero(t, bad)
			next := 0
			for i, text := range texts {
				row := members(t, text)
				n := len(row) - 2
				for range n {
					s := truth.Scalars[next]
					next++
					tag, want := s[0].(string), 0.0
					_, err := fmt.Sscan(s[3].(string), &want)
					require.NoError(t, err)
					got, ok := row[tag]
					require.True(t, ok, "%s in %s", tag, text)
					switch {
					case math.IsNaN(want):
						assert.True(t, math.IsNaN(got))
					case math.IsInf(want, 0):
						assert.True(t, math.IsInf(got, int(math.Copysign(1, want))))
					default:
						assert.InDelta(t, want, got, max(math.Abs(want)*1e-7, 1e-44), "%s in %s", tag, text)
					}
					step := row["step"] + row["epoch"]
					if _, both := row["step"]; both {
						step = row["step"]
					}
					assert.InDelta(t, s[1].(float64), step, 0, text)
				}
				again, _, _ := readAll(Events, b, begins[i])
				assert.Equal(t, texts[i:], again)
			}
			assert.Len(t, truth.Scalars, next)
		})
	}
}

func unzip(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return b
}

// All rows of W&B's files are read, with their numbers.
func TestWandB(t *testing.T) {
	paths, _ := filepath.Glob(internal + "wandb/testdata/*.wandb.gz")
	require.Greater(t, len(paths), 5)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			b := unzip(t, path)
			kind, _ := KindOf(b)
			require.Equal(t, WandB, kind)
			var truth struct {
				Records []struct {
					History *struct {
						Step  int64       `json:"step"`
						Items [][2]string `json:"items"`
					} `json:"history"`
					Stats struct {
						Timestamp float64     `json:"timestamp"`
						Items     [][2]string `json:"items"`
					} `json:"stats"`
				} `json:"records"`
			}
			require.NoError(t, json.Unmarshal(unzip(t, strings.TrimSuffix(path, ".wandb.gz")+".json.gz"), &truth))
			texts, begins, bad := readAll(WandB, b, 0)
			assert.Zero(t, bad)
			i, samples := 0, 0
			for _, r := range truth.Records {
				if want := gpuItems(t, r.Stats.Items); len(want) > 0 {
					row := members(t, texts[i])
					i++
					samples++
					assert.InDelta(t, r.Stats.Timestamp, row["_timestamp"], 1e-6)
					delete(row, "_timestamp")
					assert.Equal(t, want, row)
				}
				if r.History == nil || !slices.ContainsFunc(r.History.Items, func(item [2]string) bool { return item[0][0] != '_' && isNumber([]byte(item[1])) }) {
					continue
				}
				row := members(t, texts[i])
				i++
				for _, item := range r.History.Items {
					if item[0] == "_step" || item[0] == "_runtime" {
						continue
					}
					if want, err := strconv.ParseFloat(item[1], 64); err == nil {
						assert.InDelta(t, want, row[item[0]], 1e-6+math.Abs(want)*1e-12, "%s in %s", item[0], texts[i-1])
					}
				}
			}
			assert.Len(t, texts, i)
			assert.Equal(t, strings.HasPrefix(filepath.Base(path), "gpu-"), samples > 0)
			for i := range texts {
				again, _, _ := readAll(WandB, b, begins[i])
				assert.Equal(t, texts[i:], again)
			}
		})
	}
}

// gpuItems are a sample's items as named in a line.
func gpuItems(t *testing.T, items [][2]string) map[string]float64 {
	t.Helper()
	of := make(map[string]float64)
	for _, item := range items {
		if strings.HasPrefix(item[0], "gpu.") {
			v, err := strconv.ParseFloat(item[1], 64)
			require.NoError(t, err)
			of["system."+item[0]] = v
		}
	}
	return of
}

// events writes an event file.
func events(t *testing.T, scalars ...tfevents.Scalar) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := tfevents.NewWriter(&b, 1.7e9)
	require.NoError(t, err)
	for _, s := range scalars {
		require.NoError(t, w.Scalar(s))
	}
	return b.Bytes()
}

// The end of a row, and the names of its members.
func TestRows(t *testing.T) {
	at := func(second float64, step int64, tag string, value float64) tfevents.Scalar {
		return tfevents.Scalar{WallTime: 1.7e9 + second, Step: step, Tag: tag, Value: value}
	}
	for name, tc := range map[string]struct {
		scalars []tfevents.Scalar
		want    []string
	}{
		"steps": {
			[]tfevents.Scalar{at(0, 1, "train/loss", 2.31), at(0.25, 1, "lr", 1e-5), at(1, 2, "train/loss", 0.1)},
			[]string{
				`{"step": 1, "wall_time": 1700000000.250000, "train/loss": 2.31, "lr": 1e-05}`,
				`{"step": 2, "wall_time": 1700000001.000000, "train/loss": 0.1}`,
			},
		},
		"a repeated tag": {
			[]tfevents.Scalar{at(0, 1, "a", 1), at(0, 1, "a", 2)},
			[]string{`{"step": 1, "wall_time": 1700000000.000000, "a": 1}`, `{"step": 1, "wall_time": 1700000000.000000, "a": 2}`},
		},
		"an evaluation later": {
			[]tfevents.Scalar{at(0, 1, "loss", 1), at(20, 1, "eval/loss", 2)},
			[]string{`{"step": 1, "wall_time": 1700000000.000000, "loss": 1}`, `{"step": 1, "wall_time": 1700000020.000000, "eval/loss": 2}`},
		},
		"Megatron": {
			[]tfevents.Scalar{
				at(0, 9, "lm loss", 3), at(0, 9, "lm loss vs samples", 3), at(0, 9, "iteration-time", 0.5), at(0, 9, "throughput", 400),
				at(0, 640, "x vs samples", 3),
			},
			[]string{`{"step": 9, "wall_time": 1700000000.000000, "lm loss": 3, "iteration-time": 0.5, "tflops_per_gpu": 400}`},
		},
		"Keras":    {[]tfevents.Scalar{at(0, 3, "epoch_loss", 1)}, []string{`{"epoch": 3, "wall_time": 1700000000.000000, "epoch_loss": 1}`}},
		"names":    {[]tfevents.Scalar{at(0, 1, "a\"\n", 1), at(0, 1, "step", 7)}, []string{`{"step": 1, "wall_time": 1700000000.000000, "a\"\n": 1}`}},
		"no time":  {[]tfevents.Scalar{{Step: 1, Tag: "a", Value: math.Inf(-1)}}, []string{`{"step": 1, "a": -Infinity}`}},
		"too many": {[]tfevents.Scalar{at(0, 1, strings.Repeat("a", maxRow), 1), at(0, 1, "b", 2)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := events(t, tc.scalars...)
			texts, _, bad := readAll(Events, b, 0)
			assert.Zero(t, bad)
			if tc.want != nil {
				assert.Equal(t, tc.want, texts)
			} else {
				assert.Len(t, texts, 2)
			}
		})
	}
}

// The head of an event file is known, or else open, however short.
func TestKindOf(t *testing.T) {
	b := events(t)
	for n := range len(b) {
		kind, open := KindOf(b[:n])
		assert.Equal(t, None, kind)
		assert.Equal(t, n >= 2, open, n)
	}
	for _, text := range []string{"", "{", "{}", "\x00\x00", "\xff\xfea\x00", ":W&B", "a\x00b\x00c\x00d\x00e\x00f\x00g\x00"} {
		kind, _ := KindOf([]byte(text))
		assert.Equal(t, None, kind, text)
	}
}

// Of damaged files each record is read or counted, and reading ends.
func TestDamage(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	torch, err := os.ReadFile(internal + "tfevents/testdata/torch.tfevents")
	require.NoError(t, err)
	files := map[Kind][]byte{Events: torch, WandB: unzip(t, internal+"wandb/testdata/blocks-0.31.0.wandb.gz")}
	for kind, whole := range files {
		all, _, _ := readAll(kind, whole, 0)
		for range 300 {
			b := bytes.Clone(whole)
			b[1+rnd.IntN(len(b)-1)] ^= byte(1 + rnd.IntN(255))
			some, _, bad, end := readTo(kind, b, 0)
			assert.True(t, bad > 0 || end < len(b) || len(some) >= len(all)-1, "%d of %d rows", len(some), len(all))
			if kind == Events {
				assert.GreaterOrEqual(t, len(some), len(all)-2)
			}
		}
	}
	kind, n := Events, len(torch)
	assert.Equal(t, Line{}, kind.Next(nil, make([]byte, 100), int64(n), true), "space that is not written")
}

func FuzzNext(f *testing.F) {
	f.Add([]byte("x"), true)
	f.Fuzz(func(t *testing.T, b []byte, final bool) {
		for _, k := range []Kind{Events, WandB} {
			if l := k.Next(nil, b, 0, final); l.N < 0 || l.N > len(b) {
				t.Fatal(l.N)
			}
			if len(b) > 0 && k.Past(b, 0) <= 0 {
				t.Fatal("no way on")
			}
		}
	})
}
