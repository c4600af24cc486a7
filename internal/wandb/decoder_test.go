package wandb_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trainbridge/trainbridge/internal/wandb"
)

const (
	header = ":W&B\xe1\xbe\x00"
	block  = 32 << 10
)

// file writes records as core/pkg/leveldb/record.go does.
func file(records ...[]byte) []byte {
	b := []byte(header)
	for _, r := range records {
		b = appendRecord(b, r)
	}
	return b
}

func appendRecord(b, data []byte) []byte {
	if left := block - len(b)%block; left < 7 {
		b = append(b, make([]byte, left)...)
	}
	for kind := byte(1); ; kind = 3 {
		room := block - len(b)%block - 7
		if len(data) <= room {
			if kind == 3 {
				kind++
			}
			return appendFragment(b, kind, data)
		}
		if kind == 1 {
			kind++
		}
		b = appendFragment(b, kind, data[:room])
		data = data[room:]
	}
}

func appendFragment(b []byte, kind byte, data []byte) []byte {
	sum := crc32.ChecksumIEEE(append([]byte{kind}, data...))
	b = binary.LittleEndian.AppendUint32(b, sum)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(data)))
	return append(append(b, kind), data...)
}

// sub is a field with a message or a text, of the texts of the parts.
func sub(number protowire.Number, parts ...string) string {
	var b []byte
	for _, part := range parts {
		b = append(b, part...)
	}
	return string(protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b))
}

func varint(number protowire.Number, v uint64) string {
	return string(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), v))
}

func double(v float64) string {
	return string(protowire.AppendFixed64(protowire.AppendTag(nil, 6, protowire.Fixed64Type), math.Float64bits(v)))
}

// row is a record of a history with one item, of size bytes at least.
func row(step uint64, size int) []byte {
	return []byte(varint(1, step) + sub(2, sub(1, sub(2, "x"), sub(16, string(bytes.Repeat([]byte("1"), size)))), sub(2, varint(1, step))))
}

func steps(of events) (all []int64) {
	for _, e := range of {
		if e.History != nil && e.History.Step != nil {
			all = append(all, *e.History.Step)
		}
	}
	return all
}

func decode(tb testing.TB, b []byte) (events, wandb.Counts) {
	tb.Helper()
	var got events
	d := wandb.NewDecoder(0, got.handler())
	require.NoError(tb, d.Feed(b))
	return got, d.Counts()
}

func TestHeader(t *testing.T) {
	for _, b := range []string{":W&B\xe1\xbe\x01", "1234567", ":W&B\xbe\xe1\x00 and more"} {
		d := wandb.NewDecoder(0, wandb.Handler{})
		require.NoError(t, d.Feed([]byte(b[:6])))
		require.ErrorIs(t, d.Feed([]byte(b[6:])), wandb.ErrHeader)
		require.ErrorIs(t, d.Feed([]byte(header)), wandb.ErrHeader, "the error stays")
		assert.Zero(t, d.Offset())
	}
	d := wandb.NewDecoder(0, wandb.Handler{})
	require.NoError(t, d.Feed([]byte(header[:3])))
	require.NoError(t, d.Feed(nil))
	assert.Zero(t, d.Offset())
	assert.Zero(t, d.Counts())
}

// A record ends at every place near the end of a block, with the next record behind.
func TestBlockEnds(t *testing.T) {
	for short := range 24 {
		b := file(row(0, 0))
		b = appendRecord(b, row(1, block-len(b)-short-30))
		b = appendRecord(b, row(2, 10))
		b = appendRecord(b, row(3, 3*block))
		b = appendRecord(b, row(4, 10))
		got, counts := decode(t, b)
		assert.Equal(t, []int64{0, 1, 2, 3, 4}, steps(got), "%d", short)
		assert.Equal(t, wandb.Counts{History: 5}, counts)
	}
}

func TestDamage(t *testing.T) {
	small, large := row(1, 20), row(2, 2*block)
	whole := file(small, large, small, row(3, 2*block), row(4, 0))
	at := len(file(small)) // of the large record
	flip := func(i int) func([]byte) []byte {
		return func(b []byte) []byte { b[i] ^= 4; return b }
	}
	for name, c := range map[string]struct {
		damage  func([]byte) []byte
		steps   []int64
		damaged int64
	}{
		"nothing":                   {func(b []byte) []byte { return b }, []int64{1, 2, 1, 3, 4}, 0},
		"data of the first":         {flip(7 + 7 + 3), []int64{1, 3, 4}, 1}, // with the beginning of the second
		"checksum":                  {flip(7), []int64{1, 3, 4}, 1},
		"a type that is none":       {flip(at + 6), []int64{1, 1, 3, 4}, 1},
		"a length beyond the block": {func(b []byte) []byte { b[at+5] = 0xff; return b }, []int64{1, 1, 3, 4}, 1},
		"the middle of a record":    {flip(block + 100), []int64{1, 1, 3, 4}, 1},
		"zeros":                     {func(b []byte) []byte { clear(b[at:block]); return b }, []int64{1, 1, 3, 4}, 1},
		"cut":                       {func(b []byte) []byte { return b[:at+100] }, []int64{1}, 0},
		"a record without its end":  {func(b []byte) []byte { return appendRecord(b[:block:block], small) }, []int64{1, 1}, 1},
		"an end without beginning":  {func(b []byte) []byte { return appendRecord(appendFragment(b[:at:at], 4, small), small) }, []int64{1, 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, counts := decode(t, c.damage(bytes.Clone(whole)))
			assert.Equal(t, c.steps, steps(got))
			assert.Equal(t, wandb.Counts{History: int64(len(c.steps)), Damaged: c.damaged}, counts)
		})
	}
}

func TestTooLong(t *testing.T) {
	b := file(row(1, 0), row(2, wandb.MaxRecord-100), row(3, wandb.MaxRecord), row(4, 0))
	var got []int64
	d := wandb.NewDecoder(0, wandb.Handler{History: func(h *wandb.History) { got = append(got, h.Step) }})
	require.NoError(t, d.Feed(b))
	assert.Equal(t, []int64{1, 2, 4}, got)
	assert.Equal(t, wandb.Counts{History: 3, TooLong: 1}, d.Counts())
	b = nil
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	assert.Less(t, m.HeapAlloc, uint64(8<<20), "the buffer of a long record goes")
	runtime.KeepAlive(d)
}

func item(parts ...string) string { return sub(1, parts...) }

// rows are the events of a row with items.
func rows(items ...[2]string) events {
	return events{{History: &history{Items: append([][2]string{}, items...)}}}
}

func TestRecords(t *testing.T) {
	for name, c := range map[string]struct {
		record string
		want   events
		counts wandb.Counts
	}{
		"empty":               {"", nil, wandb.Counts{Skipped: 1}},
		"of a later SDK":      {sub(99, "\xff"), nil, wandb.Counts{Skipped: 1}},
		"a summary":           {sub(3, item(sub(1, "x"))), nil, wandb.Counts{Skipped: 1}},
		"a group":             {"\x0b\x0c", nil, wandb.Counts{Skipped: 1}},
		"no items":            {sub(2), rows(), wandb.Counts{History: 1}},
		"an item without key": {sub(2, item(sub(16, "1"))), rows(), wandb.Counts{History: 1}},
		"names": {
			sub(
				2, item(sub(1, "a"), sub(16, "1")), item(sub(2, "a"), sub(2, "b/c"), sub(2, "d"), sub(16, "2")), item(sub(2, "e"), sub(2, "f"), sub(16, "3")),
			),
			rows([2]string{"a", "1"}, [2]string{"a.b/c.d", "2"}, [2]string{"e.f", "3"}),
			wandb.Counts{History: 1},
		},
		"times that are none": {
			sub(
				2, item(sub(1, "_timestamp"), sub(16, `"now"`)), item(sub(1, "_runtime"), sub(16, "NaN")), item(sub(1, "_step"), sub(16, "-1")),
			), rows(), wandb.Counts{History: 1},
		},
		"config": {
			sub(5, item(sub(1, "lr"), sub(16, "0.1")), sub(2, sub(2, "a"), sub(2, "b")), item(sub(1, "wd"), sub(16, "0"))),
			events{{Config: &config{[][2]string{{"lr", "0.1"}, {"wd", "0"}}, []string{"a.b"}}}},
			wandb.Counts{Config: 1},
		},
		"a resumed run": {
			sub(17, sub(1, "id"), varint(14, 7), varint(18, 1), sub(17, varint(1, 5), varint(2, 5e8))),
			events{{Run: &run{ID: "id", StartingStep: 7, Resumed: true, Start: 5.5, Config: [][2]string{}}}},
			wandb.Counts{Run: 1},
		},
		"exit": {sub(18, varint(1, math.MaxUint64), varint(2, 60), varint(3, 1)), events{{Exit: &exit{-1, 60, true}}}, wandb.Counts{Exit: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, counts := decode(t, file([]byte(c.record)))
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.counts, counts)
		})
	}
}

func TestMalformed(t *testing.T) {
	for name, record := range map[string]string{
		"no protobuf":                  "\xff",
		"a group without end":          "\x0b",
		"a history":                    sub(2, item(sub(1, "x")), "\x0a\x7f"),
		"an item":                      sub(2, item("\x0a\x7f")),
		"a step":                       sub(2, sub(2, "\x08")),
		"the time of a sample":         sub(7, sub(2, "\x08")),
		"a sample":                     sub(7, "\x08"),
		"the configuration of a run":   sub(17, sub(4, "\x08")),
		"a run":                        sub(17, "\x08"),
		"a change of a configuration":  sub(5, sub(1, "\x0a\x7f")),
		"a removal of a configuration": sub(5, sub(2, "\x0a\x7f")),
		"an exit":                      sub(18, "\x08"),
	} {
		t.Run(name, func(t *testing.T) {
			got, counts := decode(t, file([]byte(record), row(1, 0)))
			assert.Equal(t, []int64{1}, steps(got), "nothing but the next record")
			assert.Equal(t, wandb.Counts{Malformed: 1, History: 1}, counts)
		})
	}
}

func TestTypedValues(t *testing.T) {
	for want, value := range map[string]string{
		"null":                 varint(3, 0),
		"true":                 varint(4, 1),
		"false":                varint(4, 0),
		"-9223372036854775808": varint(5, protowire.EncodeZigZag(math.MinInt64)),
		"2.5e-09":              double(2.5e-9),
		"NaN":                  double(math.NaN()),
		"Infinity":             double(math.Inf(1)),
		"-Infinity":            double(math.Inf(-1)),
		`"\"\n"`:               sub(7, "\"\n"),
		"[1]":                  sub(8, "[1]"),
		"1.0":                  double(1) + sub(16, "1.0"),
		"":                     "",
	} {
		got, counts := decode(t, file([]byte(sub(2, item(sub(2, "a"), sub(2, "b"), value), item(sub(1, "c"), sub(16, "1"))))))
		assert.Equal(t, rows([2]string{"a.b", want}, [2]string{"c", "1"}), got)
		assert.Equal(t, wandb.Counts{History: 1}, counts)
	}
}

// without leaves a field out of the messages at a path of field numbers.
func without(b []byte, field protowire.Number, path ...protowire.Number) (to []byte) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		size := n + protowire.ConsumeFieldValue(number, kind, b[n:])
		switch {
		case len(path) > 0 && number == path[0]:
			value, _ := protowire.ConsumeBytes(b[n:])
			to = protowire.AppendBytes(protowire.AppendTag(to, number, kind), without(value, field, path[1:]...))
		case len(path) > 0 || number != field:
			to = append(to, b[:size]...)
		}
		b = b[size:]
	}
	return to
}

// The typed values of a real file equal the JSON beside them.
func TestOnlyTyped(t *testing.T) {
	b := []byte(header)
	for _, r := range payloads(t, "testdata/typed-0.31.0.wandb.gz") {
		b = appendRecord(b, without(r, 16, 2, 1))
	}
	want, counts := decode(t, unzip(t, "testdata/typed-0.31.0.wandb.gz"))
	got, same := decode(t, b)
	assert.Equal(t, counts, same)
	for _, e := range got {
		if e.History != nil {
			for i, item := range e.History.Items {
				e.History.Items[i][1] = strings.ReplaceAll(item[1], `\u2028`, "\u2028") // Go escapes more than need be.
			}
		}
	}
	assert.Equal(t, want, got)
}

// payloads are the records of a file of a block at most.
func payloads(tb testing.TB, path string) (all [][]byte) {
	tb.Helper()
	b := unzip(tb, path)
	require.Less(tb, len(b), block)
	for b = b[len(header):]; len(b) > 0; {
		n := 7 + int(binary.LittleEndian.Uint16(b[4:]))
		all = append(all, b[7:n])
		b = b[n:]
	}
	return all
}

// long is a file with the records of a real file, repeated.
func long(tb testing.TB, path string, times int) (b []byte, records int) {
	tb.Helper()
	all := payloads(tb, path)
	b = []byte(header)
	for range times {
		for _, r := range all {
			b = appendRecord(b, r)
		}
	}
	return b, times * len(all)
}

func TestAllocations(t *testing.T) {
	b, records := long(t, "testdata/hf-0.31.0.wandb.gz", 100)
	n := 0
	allocs := testing.AllocsPerRun(3, func() {
		d := wandb.NewDecoder(0, counting(&n))
		for rest := b; len(rest) > 0; {
			k := min(len(rest), 1000)
			assert.NoError(t, d.Feed(rest[:k]))
			rest = rest[k:]
		}
	})
	assert.Less(t, allocs, 40.0, "for %d records", records)
	assert.NotZero(t, n)
}

func BenchmarkDecoder(b *testing.B) {
	file, records := long(b, "testdata/hf-0.31.0.wandb.gz", 200)
	n := 0
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		d := wandb.NewDecoder(0, counting(&n))
		for rest := file; len(rest) > 0; {
			k := min(len(rest), 64<<10)
			if err := d.Feed(rest[:k]); err != nil {
				b.Fatal(err)
			}
			rest = rest[k:]
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
}

// counting counts the items.
func counting(n *int) wandb.Handler {
	return wandb.Handler{
		History: func(h *wandb.History) { *n += len(h.Items) },
		Stats:   func(s *wandb.Stats) { *n += len(s.Items) },
		Run:     func(r *wandb.Run) { *n += len(r.Config) },
		Config:  func(c *wandb.Config) { *n += len(c.Items) },
		Exit:    func(*wandb.Exit) { *n++ },
	}
}

func FuzzDecoder(f *testing.F) {
	for _, path := range fixtures(f) {
		if b := unzip(f, path); len(b) < block {
			f.Add(b, []byte{1, 7, 200}, uint32(100))
		}
	}
	f.Add(file(row(1, 0), row(2, 2*block), row(3, 0)), []byte{250, 255}, uint32(block+1))
	f.Fuzz(func(t *testing.T, b, cuts []byte, stop uint32) {
		var want, got, twice events
		whole := wandb.NewDecoder(0, want.handler())
		err := whole.Feed(b)
		var records int64
		for _, n := range []int64{whole.Counts().History, whole.Counts().Stats, whole.Counts().Run, whole.Counts().Config, whole.Counts().Exit} {
			records += n
		}
		require.EqualValues(t, len(want), records)

		pieces := wandb.NewDecoder(0, got.handler())
		for rest, i := b, 0; len(rest) > 0; i++ {
			n := len(rest)
			if len(cuts) > 0 {
				n = min(n, 1+int(cuts[i%len(cuts)])*int(cuts[i%len(cuts)]))
			}
			_ = pieces.Feed(rest[:n])
			rest = rest[n:]
		}
		require.Equal(t, want, got)
		require.Equal(t, whole.Counts(), pieces.Counts())
		require.Equal(t, whole.Offset(), pieces.Offset())
		if err != nil {
			return
		}

		before := wandb.NewDecoder(0, twice.handler())
		require.NoError(t, before.Feed(b[:min(int(stop), len(b))]))
		after := wandb.NewDecoder(before.Offset(), twice.handler())
		require.NoError(t, after.Feed(b[min(int(before.Offset()), len(b)):]))
		require.Equal(t, want, twice)
		require.Equal(t, whole.Offset(), after.Offset())
	})
}

func FuzzRecord(f *testing.F) {
	for _, path := range fixtures(f) {
		if len(unzip(f, path)) < block {
			for _, r := range payloads(f, path) {
				f.Add(r)
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, c := decode(t, file(b))
		require.EqualValues(t, 1, c.History+c.Stats+c.Run+c.Config+c.Exit+c.Skipped+c.Malformed)
		require.Equal(t, c.Skipped+c.Malformed == 0, len(got) == 1)
	})
}
