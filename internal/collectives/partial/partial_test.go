package partial

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pack(ops []op.Op) []byte {
	var w Writer
	for i := range ops {
		w.Add(&ops[i])
	}
	var s Stretch
	w.Pack(&s)
	return s.Records
}

// text is a record as text: NaN is NaN then, and nil is not empty, but for details.
func text(o *op.Op) string {
	c := *o
	c.IDs = nil
	if len(c.Details) == 0 {
		c.Details = nil
	}
	return fmt.Sprintf("%#v %#v", c, o.IDs)
}

func roundTrip(t *testing.T, ops []op.Op) {
	t.Helper()
	i := 0
	require.NoError(t, Read(pack(ops), func(o *op.Op) {
		require.Equal(t, text(&ops[i]), text(o), "record %d", i)
		i++
	}))
	require.Len(t, ops, i)
}

// fill sets all fields of a struct at random, by reflection: a new field is not forgotten.
func fill(r *rand.Rand, v reflect.Value) {
	wild := r.IntN(4) == 0
	switch v.Kind() {
	case reflect.Int32, reflect.Int64:
		n := int64(r.Uint64())
		if !wild {
			n = r.Int64N(1000) - 1
		}
		v.SetInt(n)
		if v.Kind() == reflect.Int32 {
			v.SetInt(int64(int32(n)))
		}
	case reflect.Uint8: // op.Kind, op.State
		most := int(op.Kinds)
		if v.Type() == reflect.TypeFor[op.State]() {
			most = int(op.Scheduled) + 1
		}
		v.SetUint(uint64(r.IntN(most)))
	case reflect.Uint64:
		v.SetUint(r.Uint64() >> r.IntN(64))
	case reflect.Float64:
		v.SetFloat([]float64{math.NaN(), 0, math.Copysign(0, -1), math.Inf(1), 12.5e9, float64(r.Int64N(1 << 50)), r.NormFloat64()}[r.IntN(7)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "a", "nccl.channel", strconv.Itoa(r.IntN(1000))}[r.IntN(4)])
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[[]byte]() {
			v.SetBytes([][]byte{nil, {}, []byte("0xabc"), []byte(strconv.Itoa(r.IntN(1000)))}[r.IntN(4)])
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(r, field)
		}
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	default:
		panic("a field of a kind that the codec does not know: " + v.Kind().String())
	}
}

// Every field of every record survives, whatever its value; but for Again, known only to the reader of the log.
func TestEveryField(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		ops := make([]op.Op, 1+r.IntN(50))
		for i := range ops {
			if i > 0 && r.IntN(2) == 0 { // some equal the one before but for a field
				ops[i] = ops[i-1]
				field := reflect.ValueOf(&ops[i]).Elem()
				field = field.Field(r.IntN(field.NumField()))
				if field.Kind() != reflect.Pointer {
					fill(r, field)
				}
			} else {
				fill(r, reflect.ValueOf(&ops[i]).Elem())
			}
			ops[i].Again = false // not transported
		}
		roundTrip(t, ops)
	}
}

// inspector are records of NCCL Inspector: n of one rank, verbose ones with the times of their channels.
func inspector(n, channels int, seed uint64) []op.Op {
	r := rand.New(rand.NewPCG(seed, 2))
	ops := make([]op.Op, n)
	for i := range ops {
		o := &ops[i]
		o.Init()
		us := 40_000 + r.Int64N(4000)
		o.Comm, o.CommName, o.CommSize, o.Nodes, o.Rank = []byte("0x959b6ba309c59fcf"), []byte("DP Group 0"), 64, 8, 11
		o.Host, o.PID, o.Kind, o.Seq, o.HasSeq = []byte("gpu-node-1"), 40011, op.AllReduce, uint64(i+4000), true
		o.Size, o.Total, o.Duration, o.Time, o.Waits, o.Timing = 64<<20, 64<<20, us*1000, spans.TimeLogged, true, []byte("kernel_gpu")
		alg := math.Round(float64(64<<20)/float64(us)*1e3) / 1e6
		o.ReportedAlg, o.ReportedBus, o.ReportedUnit = alg*1e9, math.Round(alg*2*63/64*1e6)/1e6*1e9, "GB/s"
		at := int64(1795262875894460+i*200_000)*1000 + r.Int64N(5000)*1000
		o.End = at
		for channel := range channels {
			o.Start, o.End = at-us*1000, at
			late := r.Int64N(20) * 1000
			o.Details = append(o.Details, op.Detail{
				Name: spans.SpanNCCLChannel, Start: o.Start + late, End: o.End, Duration: us*1000 - late, Channel: int32(channel), Peer: op.Unknown,
				Step: op.Unknown, Size: op.Unknown, Under: op.Unknown,
			})
		}
		if channels == 0 {
			o.Time = spans.TimeSynthetic
		}
	}
	return ops
}

func TestSteady(t *testing.T) {
	for name, ops := range map[string][]op.Op{
		"one": inspector(1, 0, 1), "short": inspector(100, 0, 1), "verbose": inspector(100, 2, 1), "none": nil,
	} {
		t.Run(name, func(t *testing.T) {
			roundTrip(t, ops)
			if n := len(ops); n > 1 {
				t.Logf("%.1f bytes a record", float64(len(pack(ops)))/float64(n))
			}
		})
	}
	assert.Less(t, len(pack(inspector(100, 0, 1))), 100*20)
	assert.Less(t, len(pack(inspector(100, 2, 1))), 100*65)
}

// A writer is empty after packing, and its next packing does not depend on the previous one.
func TestReuse(t *testing.T) {
	var w Writer
	var s Stretch
	for i, ops := range [][]op.Op{inspector(50, 2, 1), inspector(3, 0, 2), inspector(50, 1, 3)} {
		for i := range ops {
			w.Add(&ops[i])
		}
		assert.Equal(t, len(ops), w.Len())
		assert.Positive(t, w.Size())
		w.Pack(&s)
		assert.Zero(t, w.Len())
		assert.Equal(t, pack(ops), s.Records, "%d", i)
		assert.Equal(t, len(ops), s.Count)
		assert.Equal(t, "0x959b6ba309c59fcf", s.Comm)
	}
}

func TestBroken(t *testing.T) {
	visited := 0
	visit := func(*op.Op) { visited++ }
	require.ErrorIs(t, Read(nil, visit), errBroken)
	require.ErrorIs(t, Read([]byte{version + 1}, visit), errVersion)
	good := pack(inspector(20, 2, 1))
	for cut := 1; cut < len(good); cut++ {
		require.ErrorIs(t, Read(good[:cut], visit), errBroken)
	}
	for name, b := range map[string][]byte{
		"records without bytes": binary.AppendUvarint([]byte{version}, 1<<40),
		"details without bytes": {version, 0, 100, 0},
		"texts without bytes":   {version, 0, 0, 5},
		"kinds missing":         {version, 1, 0, 0},
		"kind unknown":          {version, 1, 0, 0, byte(colKind), 0, 0, 1, 1, byte(op.Kinds)},
		"column twice":          {version, 1, 0, 0, byte(colKind), 0, 0, 1, 1, 1, byte(colKind), 0, 0, 1, 1, 1},
		"column of the future":  {version, 1, 0, 0, byte(colKind), 0, 0, 1, 1, 1, byte(columns), 0, 0, 0},
		"text missing":          {version, 1, 0, 0, byte(colKind), 0, 0, 1, 1, 1, byte(colText), 0, 2, 0},
		"number without end":    {version, 1, 0, 0, byte(colKind), 0, 0, 1, 1, 0x81},
	} {
		visited = 0
		require.ErrorIs(t, Read(append(b, lastByte), visit), errBroken, name)
		assert.Zero(t, visited, name)
	}
}

func TestSpan(t *testing.T) {
	var w Writer
	ops := inspector(5, 0, 1)
	for i := range ops {
		w.Add(&ops[i])
	}
	sent := Stretch{
		From:    collectives.From{Run: "run", Path: "/var/log/nccl/a.log", Family: "nccl_inspector", OwnClock: true, Coarse: true},
		Service: "job", Host: "node-1",
	}
	w.Pack(&sent)
	beat := Stretch{From: sent.From, Service: "job", Host: "node-1", Comm: sent.Comm, ReadTo: 1781000000000000000}
	out := spans.NewBatch("scope", "1")
	sent.Add(out)
	beat.Add(out)
	td := out.Traces()
	require.Equal(t, 2, td.SpanCount())
	rs := td.ResourceSpans().At(0)
	list := rs.ScopeSpans().At(0).Spans()
	assert.Equal(t, list.At(0).TraceID(), list.At(1).TraceID())
	assert.NotEqual(t, list.At(0).SpanID(), list.At(1).SpanID())
	got, ok, err := FromSpan(rs.Resource().Attributes(), list.At(0))
	require.NoError(t, err)
	assert.True(t, ok)
	sent.key = [16]byte{}
	assert.Equal(t, sent, got)
	got, ok, err = FromSpan(rs.Resource().Attributes(), list.At(1))
	require.NoError(t, err)
	assert.True(t, ok)
	beat.Start, beat.End = beat.ReadTo, beat.ReadTo+1
	assert.Equal(t, beat, got)

	other := ptrace.NewSpan()
	_, ok, err = FromSpan(pcommon.NewMap(), other)
	assert.False(t, ok)
	require.NoError(t, err)
	other.SetName(spans.SpanNCCLPartial)
	_, ok, err = FromSpan(pcommon.NewMap(), other)
	assert.True(t, ok)
	require.ErrorIs(t, err, errNoRecords)
	list.At(0).Attributes().PutInt(spans.AttrNCCLPartialCount, 6)
	_, _, err = FromSpan(rs.Resource().Attributes(), list.At(0))
	require.ErrorContains(t, err, "6 records and has 5")
	records, _ := list.At(0).Attributes().Get(spans.AttrNCCLPartialRecords)
	records.Bytes().SetAt(0, version+1)
	_, _, err = FromSpan(rs.Resource().Attributes(), list.At(0))
	require.ErrorIs(t, err, errVersion)
}

// Any bytes from the network are read or refused, and a Joiner can take the records.
func FuzzRead(f *testing.F) {
	f.Add(pack(inspector(20, 2, 1)))
	f.Add(pack(inspector(3, 0, 1)))
	r := rand.New(rand.NewPCG(1, 1))
	ops := make([]op.Op, 10)
	for i := range ops {
		fill(r, reflect.ValueOf(&ops[i]).Elem())
	}
	f.Add(pack(ops))
	f.Fuzz(func(t *testing.T, b []byte) {
		j := collectives.New[int](collectives.Settings{JoinConfig: collectives.DefaultJoinConfig()})
		var batch []*collectives.Collective
		in := j.Input(collectives.From{Run: "run", Path: "x.log"}, func(c *collectives.Collective, _ []int) { batch = append(batch, c) })
		var w Writer
		n := 0
		if Read(b, func(o *op.Op) {
			w.Add(o)
			in.Add(o, []int{n}, int64(n))
			n++
		}) != nil {
			assert.Zero(t, n)
			return
		}
		assert.LessOrEqual(t, n, len(b))
		in.Expire(math.MaxInt64)
		out := spans.NewBatch("", "")
		collectives.AddSpans(out, "", batch, func(int) {})
		out.Messages()
		// Records can be packed again without a change.
		var s Stretch
		w.Pack(&s)
		var again []string
		if err := Read(s.Records, func(o *op.Op) { again = append(again, text(o)) }); err != nil {
			t.Fatal(err)
		}
		i := 0
		_ = Read(b, func(o *op.Op) {
			if i < len(again) {
				assert.Equal(t, text(o), again[i])
			}
			i++
		})
		assert.Len(t, again, i)
	})
}

func BenchmarkPack(b *testing.B) {
	for name, channels := range map[string]int{"short": 0, "verbose": 2} {
		ops := inspector(500, channels, 1)
		var w Writer
		var s Stretch
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range ops {
					w.Add(&ops[i])
				}
				w.Pack(&s)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(len(ops)), "ns/record")
			b.ReportMetric(float64(len(s.Records))/float64(len(ops)), "B/record")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for name, channels := range map[string]int{"short": 0, "verbose": 2} {
		ops := inspector(500, channels, 1)
		packed := pack(ops)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := Read(packed, func(*op.Op) {}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(len(ops)), "ns/record")
		})
	}
}
