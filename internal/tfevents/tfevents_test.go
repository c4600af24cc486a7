package tfevents_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trainbridge/trainbridge/internal/tfevents"
)

var update = flag.Bool("update", false, "write testdata/written.tfevents anew")

// file is the content of a file, with floats as bits: NaN equals itself.
type file struct {
	scalars []scalar
	starts  []start
	counts  tfevents.Counts
	offset  int64
	torn    int64
	damaged bool
}

type scalar struct {
	tag             string
	step            int64
	wallTime, value uint64
	record          int64 // offset
}

type start struct {
	wallTime uint64
	step     int64
	record   int64 // offset
}

func bits(v float64) uint64 {
	if math.IsNaN(v) {
		v = math.NaN()
	}
	return math.Float64bits(v)
}

// decode decodes a file in chunks of a number of bytes; 0: all at once.
func decode(tb testing.TB, data []byte, chunk, maxRecord int) file {
	tb.Helper()
	var got file
	d := tfevents.NewDecoder(0)
	d.MaxRecord = maxRecord
	d.Scalar = func(s tfevents.Scalar) {
		got.scalars = append(got.scalars, scalar{s.Tag, s.Step, bits(s.WallTime), bits(s.Value), d.Offset()})
	}
	d.Start = func(s tfevents.Start) { got.starts = append(got.starts, start{bits(s.WallTime), s.Step, d.Offset()}) }
	if chunk == 0 {
		chunk = max(1, len(data))
	}
	var err error
	for at := 0; at < len(data); at += chunk {
		piece := bytes.Clone(data[at:min(at+chunk, len(data))])
		err = d.Decode(piece)
		clear(piece) // a Decoder keeps nothing of a chunk
	}
	if err != nil {
		require.ErrorIs(tb, err, tfevents.ErrDamaged)
		assert.Equal(tb, err, d.Decode(nil))
	}
	got.counts, got.offset, got.torn, got.damaged = d.Counts(), d.Offset(), d.Torn(), err != nil
	assert.Equal(tb, got.counts.Records, got.counts.Events+got.counts.Corrupt+got.counts.Malformed+got.counts.TooLong)
	assert.EqualValues(tb, len(got.scalars), got.counts.Scalars)
	if err == nil {
		assert.EqualValues(tb, len(data), got.offset+got.torn)
	}
	return got
}

// truth is a fixture's JSON by tools/record-trainers/tfevents.py: the file as TensorBoard reads it.
type truth struct {
	Scalars [][4]any // tag, step, wall time, value
	Others  uint64
	Starts  [][2]any // step, wall time
}

func readTruth(t *testing.T, path string) (want file) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var loaded truth
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&loaded))
	step := func(v any) int64 {
		n, err := v.(json.Number).Int64()
		require.NoError(t, err)
		return n
	}
	number := func(v any) uint64 {
		f, err := strconv.ParseFloat(v.(string), 64)
		require.NoError(t, err)
		return bits(f)
	}
	for _, row := range loaded.Scalars {
		want.scalars = append(want.scalars, scalar{row[0].(string), step(row[1]), number(row[2]), number(row[3]), 0})
	}
	for _, row := range loaded.Starts {
		want.starts = append(want.starts, start{number(row[1]), step(row[0]), 0})
	}
	want.counts.Others = loaded.Others
	return want
}

func fixtures(tb testing.TB) []string {
	tb.Helper()
	paths, err := filepath.Glob("testdata/*.tfevents")
	require.NoError(tb, err)
	require.GreaterOrEqual(tb, len(paths), 11)
	return paths
}

func TestFixtures(t *testing.T) {
	for _, path := range fixtures(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".tfevents"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			got := decode(t, data, 0, 0)
			for _, chunk := range []int{1, 2, 3, 7, 13, 64, 1000} {
				assert.Equal(t, got, decode(t, data, chunk, 0), "chunks of %d bytes", chunk)
			}
			assert.EqualValues(t, len(data), got.offset)
			assert.Equal(t, got.counts.Records, got.counts.Events)

			want := readTruth(t, strings.TrimSuffix(path, "tfevents")+"json")
			for i := range got.scalars {
				got.scalars[i].record = 0
			}
			for i := range got.starts {
				got.starts[i].record = 0
			}
			assert.Equal(t, want.scalars, got.scalars)
			assert.Equal(t, want.starts, got.starts)
			assert.Equal(t, want.counts.Others, got.counts.Others)

			assert.True(t, tfevents.IsEventFile(data[:128]))
			first := headerAndFooter + int(binary.LittleEndian.Uint64(data))
			assert.LessOrEqual(t, first, 128)
			for n := range first {
				require.False(t, tfevents.IsEventFile(data[:n]))
			}
		})
	}
}

func TestResume(t *testing.T) {
	for _, path := range fixtures(t) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		all := decode(t, data, 0, 0)
		var got []scalar
		var offset int64
		for at := range len(data) {
			d := tfevents.NewDecoder(offset)
			d.Scalar = func(s tfevents.Scalar) {
				got = append(got, scalar{s.Tag, s.Step, bits(s.WallTime), bits(s.Value), d.Offset()})
			}
			require.NoError(t, d.Decode(data[offset:at+1]))
			offset = d.Offset()
		}
		if strings.Contains(path, "tensorboard.") {
			got = withoutTag(got, "of another plugin once") // whose metadata stand before the offset
		}
		assert.Equal(t, all.scalars, got, path)
	}
}

func withoutTag(all []scalar, tag string) (rest []scalar) {
	for _, s := range all {
		if s.tag != tag {
			rest = append(rest, s)
		}
	}
	return rest
}

// written is a file by Writer, which TensorBoard read: testdata/written.json.
func written(tb testing.TB) []byte {
	tb.Helper()
	var out bytes.Buffer
	w, err := tfevents.NewWriter(&out, 1700000000.125)
	require.NoError(tb, err)
	require.NoError(tb, w.Start(tfevents.Start{WallTime: 1700000001, Step: 1}))
	for i, value := range []float64{0, math.Copysign(0, -1), 0.1, 1e300, math.Inf(-1), math.NaN(), math.MaxFloat32, 1e-45, 16777217} {
		for _, tag := range []string{"train/loss", "Größe/学习率", strings.Repeat("long ", 60), "", "not UTF-8: \xff"} {
			require.NoError(tb, w.Scalar(tfevents.Scalar{WallTime: 1700000002 + float64(i)/3, Step: int64(i) << (7 * i) * int64(1-i%2*2), Tag: tag, Value: value}))
		}
	}
	require.NoError(tb, w.Start(tfevents.Start{WallTime: 1700000003, Step: -1}))
	return out.Bytes()
}

func TestWriter(t *testing.T) {
	const path = "testdata/written.tfevents"
	if *update {
		require.NoError(t, os.WriteFile(path, written(t), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, want, written(t))
}

// full takes some bytes and fails then.
type full int

func (f *full) Write(b []byte) (int, error) {
	if *f -= full(len(b)); *f < 0 {
		return 0, os.ErrClosed
	}
	return len(b), nil
}

func TestWriterFails(t *testing.T) {
	room := full(10)
	_, err := tfevents.NewWriter(&room, 0)
	require.ErrorIs(t, err, os.ErrClosed)
	room = 60
	w, err := tfevents.NewWriter(&room, 0)
	require.NoError(t, err)
	require.ErrorIs(t, w.Scalar(tfevents.Scalar{}), os.ErrClosed)
	require.ErrorIs(t, w.Start(tfevents.Start{}), os.ErrClosed)
}

const headerAndFooter = 16 // B

// record frames data, apart from Writer.
func record(data string) string {
	sum := func(b []byte) []byte {
		crc := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
		return binary.LittleEndian.AppendUint32(nil, (crc>>15|crc<<17)+0xa282ead8)
	}
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	return string(length) + string(sum(length)) + data + string(sum([]byte(data)))
}

// number, text, fixed32 and fixed64 are fields.
func number(field protowire.Number, v uint64) string {
	return string(protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), v))
}

func text(field protowire.Number, parts ...string) string {
	return string(protowire.AppendString(protowire.AppendTag(nil, field, protowire.BytesType), strings.Join(parts, "")))
}

func fixed32(field protowire.Number, v float32) string {
	return string(protowire.AppendFixed32(protowire.AppendTag(nil, field, protowire.Fixed32Type), math.Float32bits(v)))
}

func fixed64(field protowire.Number, v float64) string {
	return string(protowire.AppendFixed64(protowire.AppendTag(nil, field, protowire.Fixed64Type), math.Float64bits(v)))
}

// event is a record at 5 s and step 7 with a value of the tag a.
func event(value ...string) string {
	return record(fixed64(1, 5) + number(2, 7) + text(5, text(1, text(1, "a"), strings.Join(value, ""))))
}

// tensor is a value.
func tensor(parts ...string) string { return text(8, parts...) }

var (
	metadata = text(9, text(1, text(1, "scalars")))
	mine     = text(9, text(1, text(1, "mine")))
	one      = fixed32(2, 1)
	badSum   = func(record string) string { return record[:len(record)-1] + string([]byte{record[len(record)-1] ^ 1}) }
)

// decodeCase is a file and its content: a line for each scalar and start, then the numbers above 0.
type decodeCase struct{ data, want string }

const t7 = "a 7 5 " // tag, step and time of event

var decodeCases = map[string]decodeCase{
	// tensorboard/data/server/tf_record.rs @70b76c92, of TensorFlow.
	"real": {
		"\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7f\x4b\x22\x09\x00\x00\x80\x38\x99\xd6\xd7\x41\x1a\x0dbrain.Event:2\x12\x4b\x36\xab",
		"1 events",
	},
	"nothing":         {"", ""},
	"an empty record": {record(""), "1 events"},
	"simple":          {event(one), t7 + "1\n1 events"},
	"order":           {record(text(5, text(1, one, text(1, "a"))) + number(2, 7) + fixed64(1, 5)), t7 + "1\n1 events"},
	"two summaries":   {record(text(5, text(1, text(5))) + text(5, text(1, one))), " 0 0 1\n1 events"},
	"three values":    {record(text(5, text(1, one), text(1, text(5)), text(1, one))), " 0 0 1\n 0 0 1\n1 events 1 others"},
	"the last counts": {event(text(1, "b"), fixed32(2, 3), tensor(), text(5), one), "b 7 5 1\n1 events"},
	"histogram last":  {event(one, text(5)), "1 events 1 others"},
	"no value":        {event(), "1 events 1 others"},
	"node name":       {record(text(5, text(1, text(7, "n"), one))), "n 0 0 1\n1 events"},
	"not UTF-8":       {record(text(5, text(1, text(1, "\xff\xfe."), one))), "\uFFFD. 0 0 1\n1 events"},
	"a group":         {record("\x0b\x08\x01\x0c" + text(5, text(1, one))), " 0 0 1\n1 events"},
	"negative step":   {record(number(2, math.MaxUint64) + text(5, text(1, one))), " -1 0 1\n1 events"},
	"wire type":       {record(number(1, 5) + fixed64(2, 5) + number(5, 5) + text(5, text(1, number(2, 5), number(1, 5)))), "1 events 1 others"},
	"start":           {record(number(2, 7) + text(7, number(1, 1))), "start 7\n1 events"},
	"stop":            {record(number(2, 7) + text(7, number(1, 2))), "1 events"},

	"no metadata":       {event(tensor(number(1, 1), fixed32(5, 2))), t7 + "2\n1 events"},
	"packed":            {event(metadata, tensor(number(1, 1), text(5, "\x00\x00\x80\x3f"))), t7 + "1\n1 events"},
	"data class":        {event(text(9, number(4, 1)), tensor(number(1, 1), fixed32(5, 2))), t7 + "2\n1 events"},
	"class over plugin": {event(text(9, text(1, text(1, "scalars")), number(4, 2)), tensor(number(1, 1), fixed32(5, 2))), "1 events 1 others"},
	"empty metadata":    {event(text(9, text(2, "name")), tensor(number(1, 1), fixed32(5, 2))), t7 + "2\n1 events"},
	"another plugin":    {event(mine, tensor(number(1, 1), fixed32(5, 2))), "1 events 1 others"},
	"remembered": {
		event(mine) + event(tensor(number(1, 1), fixed32(5, 2))) + event(metadata, tensor(number(1, 1), fixed32(5, 2))) + event(one),
		t7 + "1\n4 events 3 others",
	},
	"not looked at": {event(mine, tensor("\xff")), "1 events 1 others"},
	"empty shape":   {event(tensor(number(1, 2), fixed64(6, 2), text(2))), t7 + "2\n1 events"},
	"vector":        {event(metadata, tensor(number(1, 1), text(2, text(2, number(1, 1))), fixed32(5, 2))), "1 events 1 others"},
	"unknown rank":  {event(metadata, tensor(number(1, 1), text(2, number(3, 1)), fixed32(5, 2))), "1 events 1 others"},
	"two numbers":   {event(metadata, tensor(number(1, 1), fixed32(5, 2), fixed32(5, 2))), "1 events 1 others"},
	"no number":     {event(metadata, tensor(number(1, 1))), "1 events 1 others"},
	"another field": {event(metadata, tensor(number(1, 2), fixed32(5, 2))), "1 events 1 others"},
	"string":        {event(metadata, tensor(number(1, 7), text(8, "x"))), "1 events 1 others"},
	"long content":  {event(metadata, tensor(number(1, 1), text(4, "12345678"))), "1 events 1 others"},
	"packed int8":   {event(metadata, tensor(number(1, 6), text(7, string(protowire.AppendVarint(nil, math.MaxUint64))))), t7 + "-1\n1 events"},
	"packed double": {event(metadata, tensor(number(1, 2), text(6, "\x00\x00\x00\x00\x00\x00\xf0\x3f"))), t7 + "1\n1 events"},

	"malformed event":     {record("\x09"), "1 malformed"},
	"malformed key":       {record("\x00"), "1 malformed"},
	"malformed summary":   {record(text(5, text(1, one), "\xff")), " 0 0 1\n1 malformed"},
	"malformed value":     {event("\x15"), "1 malformed"},
	"malformed metadata":  {event(one, text(9, "\xff")), "1 malformed"},
	"malformed plugin":    {event(one, text(9, text(1, "\xff"))), "1 malformed"},
	"malformed tensor":    {event(tensor("\xff")), "1 malformed"},
	"malformed shape":     {event(tensor(text(2, "\xff"))), "1 malformed"},
	"malformed packed":    {event(tensor(number(1, 1), text(5, "\xff"))), "1 malformed"},
	"malformed integers":  {event(tensor(number(1, 3), text(7, "\xff"))), "1 malformed"},
	"malformed session":   {record(text(7, "\xff")), "1 malformed"},
	"malformed, then not": {record("\x09") + event(one), t7 + "1\n1 events 1 malformed"},

	"corrupt":     {event(one) + badSum(event(one)) + event(one), t7 + "1\n" + t7 + "1\n2 events 1 corrupt"},
	"torn header": {event(one) + event(one)[:11], t7 + "1\n1 events 11 torn"},
	"torn data":   {event(one)[:20], "20 torn"},
	"torn footer": {event(one)[:len(event(one))-1], fmt.Sprint(len(event(one))-1, " torn")},
	"bad length":  {event(one) + "\x01" + event(one)[1:], t7 + "1\n1 events damaged"},
	"zeros":       {event(one) + strings.Repeat("\x00", 100), t7 + "1\n1 events damaged"},
	"too long":    {event(one) + record(strings.Repeat("x", 101)) + event(one), t7 + "1\n" + t7 + "1\n2 events 1 long"},
	"long, torn":  {record(strings.Repeat("x", 101))[:50], "1 long 50 torn"},
	"longest":     {record(text(3, strings.Repeat("x", 98))), "1 events"},
}

func TestDecode(t *testing.T) {
	for name, c := range decodeCases {
		t.Run(name, func(t *testing.T) {
			got := decode(t, []byte(c.data), 0, 100)
			assert.Equal(t, c.want, got.String())
			for chunk := 1; chunk < 20; chunk++ {
				assert.Equal(t, got, decode(t, []byte(c.data), chunk, 100))
			}
		})
	}
}

func (f file) String() string {
	var lines, numbers []string
	for _, s := range f.scalars {
		lines = append(lines, fmt.Sprint(s.tag, " ", s.step, " ", math.Float64frombits(s.wallTime), " ", math.Float64frombits(s.value)))
	}
	for _, s := range f.starts {
		lines = append(lines, fmt.Sprint("start ", s.step))
	}
	for _, n := range []struct {
		n    uint64
		what string
	}{
		{f.counts.Events, "events"},
		{f.counts.Others, "others"},
		{f.counts.Corrupt, "corrupt"},
		{f.counts.Malformed, "malformed"},
		{f.counts.TooLong, "long"},
		{uint64(f.torn), "torn"},
	} {
		if n.n > 0 {
			numbers = append(numbers, fmt.Sprint(n.n, " ", n.what))
		}
	}
	if f.damaged {
		numbers = append(numbers, "damaged")
	}
	if len(numbers) > 0 {
		lines = append(lines, strings.Join(numbers, " "))
	}
	return strings.Join(lines, "\n")
}

// lengthOf is a sound header.
func lengthOf(n uint64) string {
	length := binary.LittleEndian.AppendUint64(nil, n)
	crc := crc32.Checksum(length, crc32.MakeTable(crc32.Castagnoli))
	return string(binary.LittleEndian.AppendUint32(length, (crc>>15|crc<<17)+0xa282ead8))
}

func TestLengths(t *testing.T) {
	for n, want := range map[uint64]string{
		math.MaxUint64:                "damaged",
		math.MaxInt64:                 "damaged",
		1 << 31:                       "damaged",
		1<<31 - 1:                     "1 long 15 torn",
		tfevents.DefaultMaxRecord:     "15 torn",
		tfevents.DefaultMaxRecord + 1: "1 long 15 torn",
	} {
		got := decode(t, []byte(lengthOf(n)+"abc"), 0, 0)
		assert.Equal(t, want, got.String(), n)
		assert.Equal(t, got, decode(t, []byte(lengthOf(n)+"abc"), 1, 0))
		assert.False(t, tfevents.IsEventFile([]byte(lengthOf(n)+"abc")))
	}
}

func TestIsEventFile(t *testing.T) {
	for name, head := range map[string]string{
		"an example of training data": record(text(1, "features")),
		"no prefix":                   record(text(3, "brain.Event")),
		"no version":                  event(one),
		"malformed":                   record(text(3, "brain.Event:2") + "\xff"),
		"wrong checksum":              badSum(record(text(3, "brain.Event:2"))),
		"text":                        strings.Repeat("step 1 loss 2\n", 20),
		"zeros":                       strings.Repeat("\x00", 200),
	} {
		assert.False(t, tfevents.IsEventFile([]byte(head)), name)
	}
	assert.True(t, tfevents.IsEventFile([]byte(record(text(3, "brain.Event:1")))))
}

// Tags without end, and long ones, are all given and do not stay.
func TestManyTags(t *testing.T) {
	var out bytes.Buffer
	w, err := tfevents.NewWriter(&out, 0)
	require.NoError(t, err)
	d := tfevents.Decoder{}
	next := 0
	d.Scalar = func(s tfevents.Scalar) {
		assert.True(t, strings.HasPrefix(s.Tag, strconv.Itoa(next)+" "))
		next++
	}
	long := strings.Repeat("x", 5000)
	for i := range 4000 {
		require.NoError(t, w.Scalar(tfevents.Scalar{Tag: fmt.Sprint(i, " ", long)}))
	}
	require.NoError(t, d.Decode(out.Bytes()))
	assert.Equal(t, 4000, next)
}

func TestNoCallbacks(t *testing.T) {
	var d tfevents.Decoder
	require.NoError(t, d.Decode(written(t)))
	assert.EqualValues(t, 45, d.Counts().Scalars)
}

func FuzzDecoder(f *testing.F) {
	for _, path := range fixtures(f) {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data, uint16(7), uint16(0))
	}
	f.Add([]byte(event(one)+badSum(event(one))+record(strings.Repeat("x", 101))+event(one)), uint16(3), uint16(100))
	f.Fuzz(func(t *testing.T, data []byte, chunk, maxRecord uint16) {
		tfevents.IsEventFile(data)
		want := decode(t, data, 0, int(maxRecord))
		assert.Equal(t, want, decode(t, data, 1, int(maxRecord)))
		assert.Equal(t, want, decode(t, data, int(chunk), int(maxRecord)))
		// As an event whose checksums are right.
		framed := []byte(record(string(data)))
		assert.Equal(t, decode(t, framed, 0, 0), decode(t, framed, int(chunk), 0))
	})
}

func BenchmarkDecoder(b *testing.B) {
	for name, value := range map[string]string{
		"simple_value": one,
		"tensor":       metadata + tensor(number(1, 1), text(2), text(4, "\x00\x00\x80\x3f")),
	} {
		b.Run(name, func(b *testing.B) {
			var data []byte
			const scalars = 1000
			for i := range scalars {
				value := text(1, text(1, fmt.Sprint("train/metric_", i%50)), value)
				data = append(data, record(fixed64(1, 1.7e9+float64(i))+number(2, uint64(i/50))+text(5, value))...)
			}
			d := tfevents.Decoder{}
			sum := 0.0
			d.Scalar = func(s tfevents.Scalar) { sum += s.Value }
			require.NoError(b, d.Decode(data))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Decode(data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*scalars/b.Elapsed().Seconds()/1e6, "Mscalars/s")
		})
	}
}
