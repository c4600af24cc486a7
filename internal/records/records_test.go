package records

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Columns of numbers in another unit than the column's are numbers too.
func TestKinds(t *testing.T) {
	for table, column := range map[string]string{"metrics": "value", "collective_ranks": "bandwidth_gbps", "verdicts": "value"} {
		assert.Contains(t, Columns(table), Column{column, Number}, table)
	}
}

// The batch size of a run is the largest that was stated, whatever is no number between.
func TestBatchSize(t *testing.T) {
	k := runFacts{batch: math.NaN()}
	for _, batch := range []float64{4, 8, math.NaN(), 2} {
		k.setBatch(batch)
	}
	assert.InDelta(t, 8, k.batch, 0)
}

// A collective that comes again, as after an error, is remembered as long as any: its first place takes nothing of it.
func TestCollectiveAgain(t *testing.T) {
	all := New(t.TempDir(), func(path string) string { return path }, "collective_ranks")
	see := func(id uint32) {
		s := ptrace.NewSpan()
		s.SetSpanID(idOf(id))
		all.remember(s)
	}
	see(1)
	see(1)
	for i := range uint32(knownRoots - 1) {
		see(2 + i)
	}
	rank := ptrace.NewSpan()
	rank.SetParentSpanID(idOf(1))
	assert.NotNil(t, all.rootOf(rank))
	see(knownRoots + 1)
	assert.Nil(t, all.rootOf(rank))
	assert.Len(t, all.roots, knownRoots)
	require.NoError(t, all.Close())
}

func idOf(n uint32) (id pcommon.SpanID) {
	binary.BigEndian.PutUint32(id[:], n)
	return id
}

// A million rows take no more memory than some ten thousand: the rest stands in the temporary file.
func TestMillion(t *testing.T) {
	const each = 5000
	batch := spans.NewBatch("test", "")
	for i := range each {
		m := batch.Add(spans.Resource{RunID: "run"}, spans.Span{
			Trace: pcommon.TraceID{1, byte(i >> 8), byte(i)}, ID: pcommon.SpanID{byte(i >> 8), byte(i)}, Name: "Matmul", Is: spans.KindCall, Kind: ptrace.SpanKindClient,
			Start: int64(i) * 1e6, End: int64(i+1) * 1e6,
		}).Attributes()
		m.PutInt(spans.AttrZMQCallID, int64(i))
		m.PutDouble(spans.AttrZMQCallDuration, 0.001)
	}
	all := New(t.TempDir(), func(path string) string { return path }, "rpc_calls")
	most := uint64(0)
	for i := range 1_000_000 / each {
		for _, m := range batch.Messages() {
			all.Traces(m.Traces)
		}
		if i%20 == 0 {
			var mem runtime.MemStats
			runtime.GC() // the amount of garbage depends on how busy the machine is
			runtime.ReadMemStats(&mem)
			most = max(most, mem.HeapAlloc)
		}
	}
	assert.Less(t, most, uint64(64<<20))
	n := 0
	require.NoError(t, all.Write("rpc_calls", write(func(b []byte) { n += bytes.Count(b, []byte{'\n'}) })))
	assert.Equal(t, 1_000_001, n)
	require.NoError(t, all.Close())
}

type write func([]byte)

func (w write) Write(b []byte) (int, error) { w(b); return len(b), nil }

var update = flag.Bool("update", false, "write docs/reference/report.md anew")

const (
	begin = "<!-- Generated from internal/records. Do not edit up to the end of the tables. -->\n"
	end   = "<!-- End of the tables. -->\n"
)

// The document has every column of every table.
func TestDocument(t *testing.T) {
	const path = "../../docs/reference/report.md"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	var b strings.Builder
	list := func(columns []column) {
		b.WriteString("\n| column | unit | |\n|---|---|---|\n")
		for _, c := range columns {
			require.NotEmpty(t, c.means, c.name)
			unit := strings.NewReplacer("{", "", "}", "").Replace(c.unit)
			if unit == "1" {
				unit = ""
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.name, unit, c.means)
		}
	}
	b.WriteString("\nThe first columns of every table but `metrics`:\n")
	list(head)
	b.WriteString("\nThe last columns of tables of spans, which are all but `summaries`, `verdicts` and `metrics`:\n")
	list(tail)
	for _, table := range tables {
		names := make(map[string]bool)
		for _, c := range table.columns {
			require.False(t, names[c.name], "%s.%s", table.name, c.name)
			names[c.name] = true
		}
		columns := table.columns
		if table.columns[2].name == head[2].name {
			columns = columns[len(head):]
		}
		if table.columns[len(table.columns)-1].name == tail[len(tail)-1].name {
			columns = columns[:len(columns)-len(tail)]
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s.\n", table.name, table.means)
		list(columns)
	}
	want := before + begin + b.String() + "\n" + end + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, string(text), "go test ./internal/records -run TestDocument -update")
}
